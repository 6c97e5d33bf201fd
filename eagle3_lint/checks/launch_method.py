"""E3L613: the method by which a runtime runs a draft, given or guessed from the draft's path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eagle3_lint.checks.launch_finding import finding
from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Effect, Finding, Severity
from eagle3_lint.frozen import frozen
from eagle3_lint.launch.options import Given
from eagle3_lint.launch.parse import Launch
from eagle3_lint.launch.statements import LaunchRelease, Statement
from eagle3_lint.simulate.configure import fill

EAGLE3 = "eagle3"


@frozen
class Taken:
    """What a release takes a draft for.

    Attributes:
        method: None when it raises.
        word: the word of the path that decided; None when none did.
        error: what it raises, if it does.
    """

    method: str | None
    word: str | None = None
    error: str = ""


def taken(statement: Statement, method: str | None, path: str | None) -> Taken:
    """The method that a release arrives at.

    Args:
        method: as it was given; None for none.
        path: the draft's; None when it is not known.
    """
    if method in statement["keeps"]:
        return Taken(method)
    for word, named in statement["by_path"]:
        if path is not None and word in path.lower():
            return Taken(named, word)
    default = statement.get("default")
    if method in (None, default) and default is not None:
        return Taken(default)
    return Taken(None, error=fill(statement.get("raises", ""), {"method": method}))


def taken_for_class(release: LaunchRelease, given: Given) -> Statement | None:
    """The statement by which the draft's path is taken for a Python class, if it is."""
    statement, path = release.first("class_path"), given.draft
    if statement is None or path is None or "/" in path or "." not in path:
        return None
    if "method" in (given.speculation or {}) and not statement.get("over_method"):
        return None
    if statement.get("identifiers") and not all(p.isidentifier() for p in path.split(".")):
        return None
    return statement


def check_method(
    subject: Subject, launch: Launch, release: LaunchRelease, given: Given
) -> Iterator[Finding]:
    """Findings about the method; none where the runtime has none, or the draft reaches no class."""
    statement, table = release.first("method"), given.speculation
    if statement is None or table is None or subject.resolution.failure is not None:
        return
    method, path = given.field("method"), given.draft
    method = method if isinstance(method, str) else None
    if method is None and "method" in table:
        return  # a shell's variable stands for it
    if path is None and method not in statement["keeps"]:
        return
    strict = release.first("strict")
    if strict is not None and method is not None and not _is_word(strict, method):
        values = {"method": method, "error": strict["raises"]}
        yield _found(subject, launch, "word", values, strict)
        return
    if taken_for_class(release, given) is not None:
        return
    found = taken(statement, method, path)
    values = {"method": found.method, "why": _why(statement, method, found), "error": found.error}
    if found.method == EAGLE3:
        if method is None:
            yield _found(subject, launch, "guessed", {**values, "word": found.word}, statement)
        return
    yield _wrong(subject, launch, release, statement, found, values)


def _is_word(strict: Statement, method: str) -> bool:
    return method in strict["words"] or method.endswith(tuple(strict["words_ending"]))


def _why(statement: Statement, method: str | None, found: Taken) -> str:
    given = "no method is given" if method is None else f'method is "{method}"'
    if found.word is not None:
        return f"{given}, and the draft's path contains {found.word!r}"
    if method is None:
        words = " or ".join(repr(word) for word, _ in statement["by_path"])
        return f"{given}, and the draft's path does not contain {words}"
    return given


def _wrong(
    subject: Subject,
    launch: Launch,
    release: LaunchRelease,
    statement: Statement,
    found: Taken,
    values: Mapping[str, object],
) -> Finding:
    """A method that is not EAGLE-3's."""
    if found.method is None:
        return _found(subject, launch, "none", values, statement)
    said = release.first("taken_for", method=found.method)
    if found.method == "eagle":
        kept = said is not None and "prefix" in said and _keeps_class(subject, said)
        return _found(subject, launch, "eagle" if kept else "eagle-1", values, said or statement)
    if found.method == statement.get("default"):
        error = said["raises"] if said is not None else "no EAGLE-3 draft is one"
        return _found(subject, launch, "draft-model", {**values, "error": error}, said or statement)
    return _found(subject, launch, "message", values, statement)


def _keeps_class(subject: Subject, said: Statement) -> bool:
    """Whether the draft's class is the same as under its own method."""
    written = subject.resolution.written or ""
    return subject.resolution.speculators or written.startswith(said["prefix"])


def _found(
    subject: Subject,
    launch: Launch,
    variant: str,
    values: Mapping[str, object],
    statement: Statement,
) -> Finding:
    # As EAGLE-1 it starts, and the last layer's states alone are better than nothing.
    effects: dict[str, Effect] = {"guessed": "none", "eagle": "degraded"}
    severities: dict[str, Severity] = {"guessed": "info"}
    return finding(
        subject,
        launch,
        "E3L613",
        variant,
        values,
        word="method",
        statement=statement,
        fix='write "method": "eagle3" in --speculative-config',
        effect=effects.get(variant),
        severity=severities.get(variant),
    )
