"""E3L611 to E3L618: what a user's own command does to the draft, beside what the draft is.

The command was read in :mod:`eagle3_lint.launch.parse`; what a release makes of its arguments is
data in ``rules/launch``.
"""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.checks.launch_counts import check_counts
from eagle3_lint.checks.launch_finding import finding, written
from eagle3_lint.checks.launch_method import check_method, taken_for_class
from eagle3_lint.checks.subject import Subject
from eagle3_lint.checks.switches import positions
from eagle3_lint.diagnostic import Effect, Finding
from eagle3_lint.launch.line import quantised
from eagle3_lint.launch.options import Given, whole_number
from eagle3_lint.launch.parse import Launch
from eagle3_lint.launch.shell import UNKNOWN
from eagle3_lint.launch.statements import LaunchRelease, Statement, launch_file
from eagle3_lint.simulate.configure import fill


def check_launch(subject: Subject, launch: Launch | None) -> Iterator[Finding]:
    """Findings about the command; none before a target of another runtime.

    Raises:
        InputError: a speculative configuration is no JSON object.
    """
    if launch is None or launch.runtime != subject.target.runtime:
        return
    release = launch_file(launch.runtime, launch.rules).release(subject.target.release)
    given = launch.given(subject.target.release)
    yield from _arguments(subject, launch, release, given)
    nothing = list(_drafts_nothing(subject, launch, release, given))
    yield from nothing
    if nothing:
        return
    yield from _algorithm(subject, launch, release, given)
    yield from check_method(subject, launch, release, given)
    yield from _path(subject, launch, release, given)
    yield from check_counts(subject, launch, release, given)
    yield from _quantisation(subject, launch, release, given)
    yield from _context(subject, launch, given)


# -- arguments that the release does not take ------------------------------------------------------


def _arguments(
    subject: Subject, launch: Launch, release: LaunchRelease, given: Given
) -> Iterator[Finding]:
    for option in given.unknown:
        spans = _spans(launch, option)
        values = {"option": option, "since": f" Releases {spans} have it." if spans else ""}
        yield finding(subject, launch, "E3L617", "message", values, word=option)
    for option, options in given.ambiguous:
        values = {"option": option, "options": " or ".join(options)}
        yield finding(subject, launch, "E3L617", "ambiguous", values, word=option)
    for field in given.twice:
        yield finding(subject, launch, "E3L617", "twice", {"field": field}, word="--spec-")
    fields = {name for entry in release.all("fields") for name in entry["names"]}
    for field in (given.speculation or {}) if fields else ():
        if field not in fields:
            yield finding(subject, launch, "E3L617", "field", {"field": field}, word=field)
    for add in release.all("add", when="always"):
        for name, value in add.get("env", {}).items():
            if launch.env.get(name) not in (value, UNKNOWN):
                needed = {"name": name, "value": value, "why": add["why"]}
                yield finding(subject, launch, "E3L617", "env", needed, statement=add)


def _spans(launch: Launch, option: str) -> str:
    """The releases that have an option, as ranges."""
    statements = launch_file(launch.runtime, launch.rules).any_release()
    entries = (*statements.all("option"), *statements.all("other"))
    return " or ".join(e["in"] for e in entries if option in e["names"] and "in" in e)


# -- nothing drafts --------------------------------------------------------------------------------


def _drafts_nothing(
    subject: Subject, launch: Launch, release: LaunchRelease, given: Given
) -> Iterator[Finding]:
    """The command does not draft at all, or not with a draft."""
    if launch.leading(given.model or "") == "draft":
        itself = release.first("itself")
        # A speculators configuration names target and method, and needs nothing of the command.
        if itself is None or "speculators_config" not in subject.facts.config:
            yield finding(subject, launch, "E3L612", "as-model", {}, word=given.model)
        return
    switch, path = _switches(release)
    spoken = any(given.gives(meaning) for meaning in switch) or given.speculation is not None
    method = _method(given)
    words = [w for e in release.all("draftless") for w in e["words"]]
    words += [w for e in release.all("algorithm", runs="none") for w in e["words"]]
    if method in words:
        yield finding(subject, launch, "E3L612", "draftless", {"method": method}, word=method)
    elif given.partial and not spoken:
        yield finding(subject, launch, "E3L612", "partial", {}, severity="info")
    elif not spoken:
        values = {"option": written(release, switch[0])}
        yield finding(subject, launch, "E3L612", "message", values)
    elif not given.partial and not (given.gives("draft") or "model" in (given.speculation or {})):
        yield finding(subject, launch, "E3L612", "no-path", {"option": path})


def _switches(release: LaunchRelease) -> tuple[tuple[str, ...], str]:
    """What makes the server draft at all, and what names the draft, in words for a message."""
    if release.all("algorithm"):
        return ("algorithm",), written(release, "draft")
    return ("speculation", "method", "draft"), '"model"'


def _method(given: Given) -> str | None:
    """The algorithm or method as it was written."""
    named = given.value("algorithm") or given.field("method")
    return named if isinstance(named, str) else None


# -- the algorithm ---------------------------------------------------------------------------------


def _algorithm(
    subject: Subject, launch: Launch, release: LaunchRelease, given: Given
) -> Iterator[Finding]:
    algorithm, spelling = given.value("algorithm"), release.first("spelling")
    if algorithm is None or spelling is None:
        return
    word = algorithm.upper() if spelling["any_case"] else algorithm
    statement = next((s for s in release.all("algorithm") if word in s["words"]), None)
    values: dict[str, object] = {"algorithm": algorithm}
    option = given.names["algorithm"]
    if statement is None:
        error = fill(spelling["raises"], {"word": algorithm})
        yield finding(
            subject,
            launch,
            "E3L611",
            "unknown",
            {**values, "error": error},
            word=option,
            statement=spelling,
            effect="refused",
        )
    elif statement["runs"] == "eagle":
        yield _as_eagle(subject, launch, statement, values, option)
    elif statement["runs"] != "eagle3":
        yield finding(subject, launch, "E3L611", "other", values, word=option, statement=statement)


def _as_eagle(
    subject: Subject,
    launch: Launch,
    statement: Statement,
    values: dict[str, object],
    option: str,
) -> Finding:
    """One layer's states: past the fc where they are as wide as the draft, else it raises."""
    facts = subject.facts
    hidden = facts.stated.hidden_size
    width = facts.stated.target_hidden_size or hidden
    if subject.model is not None and subject.model.hidden_size is not None:
        width = subject.model.hidden_size
    values.update(width=width or "as wide as the target model", fc_in=facts.shown.fc_in or "more")
    fits = width == hidden
    return finding(
        subject,
        launch,
        "E3L611",
        "message" if fits else "width",
        values,
        word=option,
        statement=statement,
        fix=f"{option} EAGLE3",
        effect=None if fits else "refused",
    )


# -- the path --------------------------------------------------------------------------------------


def _path(
    subject: Subject, launch: Launch, release: LaunchRelease, given: Given
) -> Iterator[Finding]:
    path = given.draft
    if path is None:
        return
    values = {"path": path, "draft": subject.facts.path}
    statement = taken_for_class(release, given)
    nowhere = release.first("nowhere")
    if statement is not None:
        module = path.rpartition(".")[0]
        error = fill(statement["raises"], {"path": path, "module": module})
        yield finding(
            subject,
            launch,
            "E3L614",
            "class",
            {**values, "error": error},
            word=path,
            statement=statement,
            effect="refused",
            severity="error",
        )
    elif path.startswith("~") and nowhere is not None:
        values["error"] = fill(nowhere["raises"], {"path": path})
        yield finding(
            subject,
            launch,
            "E3L614",
            "tilde",
            values,
            word=path,
            statement=nowhere,
            effect="refused",
            severity="error",
        )
    elif launch.leading(path) == "nowhere" and _is_relative(path, subject.facts.path):
        yield finding(subject, launch, "E3L614", "message", values, word=path)
    elif launch.leading(path) in ("nowhere", "elsewhere"):
        yield finding(subject, launch, "E3L618", "message", values, word=path)


def _is_relative(path: str, draft: str) -> bool:
    """Whether a path is meant as one: ``org/name`` and ``name`` may be a repository."""
    if path.startswith("/"):
        return False
    name = draft.rstrip("/").rpartition("/")[2]
    return path.startswith(("./", "../")) or path.count("/") > 1 or path == name


# -- quantisation ----------------------------------------------------------------------------------


def _quantisation(
    subject: Subject, launch: Launch, release: LaunchRelease, given: Given
) -> Iterator[Finding]:
    """The target's method, which is the draft's too unless something else is said."""
    inherits, method = release.first("inherits"), given.value("quantisation")
    if inherits is None or not method or method in inherits["unless"]:
        return
    if given.gives("draft-quantisation") or quantised(subject.facts.config):
        return
    statement = next((s for s in release.all("quantised") if method in s["methods"]), None)
    if statement is not None and (statement.get("harmless") or _has(subject, statement)):
        return
    own = release.first("option", **{"is": "draft-quantisation"})
    remedy = f"add {own['names'][0]} unquant" if own is not None else ""
    if subject.model is not None and subject.model.quantised:
        leave_out = f"leave out {given.names['quantisation']}: {subject.model.name} says it itself"
        remedy = f"{remedy}, or {leave_out}" if remedy else leave_out
    error = fill(statement["raises"], {"method": method}) if statement is not None else ""
    yield finding(
        subject,
        launch,
        "E3L615",
        "message" if statement is not None else "online",
        {"method": method, "error": error},
        word=given.names["quantisation"],
        statement=statement or inherits,
        fix=remedy or None,
        effect=None if statement is not None else "none",
        severity=None if statement is not None else "warning",
    )


def _has(subject: Subject, statement: Statement) -> bool:
    """Whether the draft's folder has a file that the method asks for."""
    return any(name.endswith(tuple(statement["files"])) for name in subject.facts.files)


# -- lengths ---------------------------------------------------------------------------------------


def _context(subject: Subject, launch: Launch, given: Given) -> Iterator[Finding]:
    """The length that is served, beside the draft's positions."""
    runner = subject.release.runner
    statement = next(
        (s for s in subject.release.contexts if s.get("runner") in (None, runner)), None
    )
    if statement is None:
        return
    draft = positions(subject.resolution.config, statement)
    asked = given.number("context")
    theirs = subject.model.max_position_embeddings if subject.model is not None else None
    # A length that cannot be known, or that the server chooses (``auto``), says nothing.
    unsaid = not given.gives("context") and not given.partial
    served = asked if asked is not None else theirs if unsaid else None
    own = whole_number(given.field("max_model_len"))
    limit = draft if own is None or draft is None else min(own, draft)
    if limit is None or served is None or served <= limit or _allowed(launch, statement):
        return
    option = given.names.get("context")
    values: dict[str, object] = {
        "served": served,
        "draft": limit,
        "said": option if asked is not None and option is not None else "all that the target has",
        "error": fill(statement.get("raises", ""), {"draft": limit, "theirs": served}),
    }
    variant = {"refuses": "message", "stops-drafting": "stops"}.get(statement["does"], "overruns")
    effects: dict[str, Effect] = {"stops": "degraded", "overruns": "none"}
    yield finding(
        subject,
        launch,
        "E3L616",
        variant,
        values,
        word=option,
        statement=statement,
        fix=_remedy(launch, subject, limit),
        effect=effects.get(variant),
        severity="warning" if variant in effects else None,
    )


def _allowed(launch: Launch, statement: Statement) -> bool:
    """Whether the command lets the server pass over the draft's length."""
    if statement["does"] != "refuses":
        return False
    statements = launch_file(launch.runtime, launch.rules).any_release()
    names = [n for add in statements.all("add", when="context") for n in add.get("env", {})]
    return any(
        launch.env.get(name, "").lower() in ("1", "true", "yes", "y", "t", "on") for name in names
    )


def _remedy(launch: Launch, subject: Subject, positions: int) -> str:
    """What the command could say instead."""
    release = launch_file(launch.runtime, launch.rules).release(subject.target.release)
    option = f"{written(release, 'context')} {positions}"
    for add in release.all("add", when="context"):
        for name, value in add.get("env", {}).items():
            return f"{name}={value}, or {option}"
    return option
