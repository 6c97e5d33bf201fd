"""E3L1xx: what config.json says, and which class it reaches."""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.checks.mending import mend
from eagle3_lint.checks.subject import Subject
from eagle3_lint.contract.runtime import RuntimeFile
from eagle3_lint.diagnostic import Edit, Finding, Fix, Place
from eagle3_lint.dialect import flattened, is_nested
from eagle3_lint.facts import Facts

_MLA = "q_a_proj.weight"
_QK_NORM = "self_attn.q_norm.weight"


def check_config(subject: Subject) -> Iterator[Finding]:
    """Findings about the configuration before any tensor is looked at."""
    yield from _duplicates(subject)
    if subject.resolution.failure is not None:
        yield _unresolved(subject)
        return
    if subject.load is None or subject.load.error is None:
        return
    failure = subject.load.error
    if failure.stage == "configuration":
        missing = failure.type == "AttributeError"
        field = failure.message.rpartition("'")[0].rpartition("'")[2] if missing else ""
        yield Finding(
            "E3L106" if missing else "E3L107",
            {"target": str(subject.target), "error": str(failure), "field": field},
            subject.field(f"/{field}") if field else _blamed(subject, failure.message),
            subject.cite(failure.source),
            mend(subject, "head", "layers", "null", "dtype", "quantisation", "tied", "sizes"),
        )


def _blamed(subject: Subject, message: str) -> tuple[Place, ...]:
    """The field that a refused value most likely stands in."""
    if "layer" in message:
        return subject.field("/num_hidden_layers")
    if "activation" in message:
        return subject.field("/hidden_act")
    for name, value in subject.facts.config.items():
        if value is None and name in ("target_hidden_size", "draft_vocab_size", "eagle_config"):
            return subject.field(f"/{name}")
    return subject.field()


def _fitting_model_type(subject: Subject) -> Fix | None:
    """A model_type whose configuration class and draft class are made for tensors like these."""
    names = subject.facts.tensors
    kind = "llama"
    if any(name.endswith(_MLA) for name in names):
        kind = "deepseek_v2"
    elif any(name.endswith(_QK_NORM) for name in names):
        kind = "qwen3"
    if subject.facts.config.get("model_type") == kind:
        return None
    edit = Edit.set_config("/model_type", kind)
    return Fix(f'set model_type to "{kind}"', "safe", (edit,))


def _duplicates(subject: Subject) -> Iterator[Finding]:
    for pointer in subject.facts.document.duplicates:
        yield Finding("E3L108", {"pointer": pointer}, subject.field(pointer))


def fitting_architecture(facts: Facts, runtime: RuntimeFile, release: str) -> str | None:
    """The architecture of ``release`` whose draft class is made for tensors like these."""
    wanted = "Deepseek" if any(n.endswith(_MLA) for n in facts.tensors) else "Llama"
    if any(n.endswith(_QK_NORM) for n in facts.tensors):
        wanted = "Qwen3"
    drafts = runtime.release(release).drafts
    named = [a for a in drafts if "Eagle3" in a and wanted in a]
    # The name of the class itself where it is registered, else any name that reaches it.
    return next((a for a in named if drafts[a] == a), named[0] if named else None)


def _unresolved(subject: Subject) -> Finding:
    resolution, target = subject.resolution, str(subject.target)
    failure = resolution.failure
    assert failure is not None
    written = resolution.written
    values: dict[str, object] = {
        "target": target,
        "written": written,
        "architecture": resolution.architecture,
        "model_type": subject.facts.config.get("model_type"),
        "error": str(failure),
    }
    source = subject.cite(failure.source)
    if subject.facts.dialect == "speculators" and not resolution.speculators:
        where = subject.field("/speculators_config", "/speculators_model_type")
        fix = _flat_fix(subject)
        variant = "message" if fix is not None else "no-class"
        return Finding("E3L104", values, where, source, fix, variant=variant)
    if resolution.replaced_by is not None:
        where = subject.field("/model_type")
        return Finding("E3L103", values, where, source, _fitting_model_type(subject))
    if written is None:
        values["suggestion"] = _suggestion(subject)
        return Finding("E3L101", values, subject.field("/architectures"), source,
                       _architecture_fix(subject), variant="absent")  # fmt: skip
    since = _first_release(subject, written)
    if since is not None and written not in subject.release.drafts:
        values["since"] = since
        return Finding(
            "E3L109", values, subject.field("/architectures"), source, _architecture_fix(subject)
        )
    if "has model type" in failure.message:
        return Finding(
            "E3L105", values, subject.field("/model_type"), source, _fitting_model_type(subject)
        )
    values["suggestion"] = _suggestion(subject)
    rule = "E3L102" if subject.is_model else "E3L101"
    return Finding(rule, values, subject.field("/architectures"), source,
                   _architecture_fix(subject))  # fmt: skip


def _flat_fix(subject: Subject) -> Fix | None:
    """The configuration made flat, where the release has a draft class for what it describes."""
    architecture = fitting_architecture(subject.facts, subject.runtime, subject.target.release)
    if architecture is None or not is_nested(subject.facts.config):
        return None
    edits = flattened(subject.facts, architecture, subject.trained.states)
    return Fix(f"make the configuration flat, for {architecture}", "safe", edits)


def _first_release(subject: Subject, architecture: str) -> str | None:
    for release in subject.runtime.releases:
        if architecture in subject.runtime.release(release).drafts:
            return release
    return None


def _suggestion(subject: Subject) -> str:
    fitting = fitting_architecture(subject.facts, subject.runtime, subject.target.release)
    if fitting is None:
        return "No draft class of it fits these tensors."
    return f"These tensors fit `{fitting}`."


def _architecture_fix(subject: Subject) -> Fix | None:
    fitting = fitting_architecture(subject.facts, subject.runtime, subject.target.release)
    if fitting is None:
        return None
    edit = Edit.set_config("/architectures", [fitting])
    return Fix(f'set architectures to ["{fitting}"]', "safe", (edit,))
