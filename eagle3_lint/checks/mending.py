"""Which change of config.json mends a load: each is tried, and kept when the load says so.

The tensors say what a draft is; where a field contradicts them, the field is what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Edit, Fix
from eagle3_lint.facts import Facts, bare
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.result import Load

Topic = Literal["bias", "layers", "head", "fc", "sizes", "null", "quantisation", "tied", "dtype"]

_ABSENT = object()
_BIASES = ("attention_bias", "bias", "mlp_bias")
#: Aux hidden states of a draft that says nothing else; every runtime's default.
_STATES = 3
#: Optional fields that runtimes read with a default of their own, which null takes away.
_OPTIONAL = (
    "target_hidden_size",
    "eagle_config",
    "rope_scaling",
    "head_dim",
    "quantization_config",
)


@frozen
class Change:
    """One thing to try.

    Attributes:
        fields: top-level field → new value; :data:`_ABSENT` removes it.
    """

    topic: Topic
    title: str
    fields: tuple[tuple[str, object], ...]


def mend(subject: Subject, *topics: Topic, lost: Sequence[str] = ()) -> Fix | None:
    """The first change of these topics that makes the load better and nothing in it worse.

    Args:
        lost: tensors that are dropped; a change that saves only some of them is none.
    """
    load = subject.load
    if load is None or "transformer_layer_config" in subject.facts.config:
        # Fields of a nested configuration are renamed on the way, so trials would not be exact.
        return None
    before = _faults(load)
    for change in _changes(subject.facts, subject.resolution.config):
        if change.topic not in topics:
            continue
        after = _tried(subject, change)
        if _improves(before, _faults(after)) and not set(lost) & set(after.dropped):
            edits = tuple(_edit(name, value) for name, value in change.fields)
            return Fix(change.title, "safe", edits)
    return None


def _edit(name: str, value: object) -> Edit:
    pointer = f"/{name}"
    return Edit.remove_config(pointer) if value is _ABSENT else Edit.set_config(pointer, value)


def _tried(subject: Subject, change: Change) -> Load:
    config = dict(subject.resolution.config)
    for name, value in change.fields:
        if value is _ABSENT:
            config.pop(name, None)
        else:
            config[name] = value
    return subject.replayed(config)


def _faults(load: Load) -> tuple[int, int, int, int]:
    """What a load suffers from: refusals that stop it, tensors lost, parameters empty, misfits."""
    stops = sum(f.tensor is None for f in load.failures)
    nameless = sum(f.about == "name" for f in load.failures)
    misshapen = sum(f.about == "shape" for f in load.failures)
    if stops and not load.parameters:
        # It never came to the tensors: anything that gets there is better.
        return stops, 10**6, 10**6, 10**6
    return stops, len(load.dropped) + nameless, len(load.unfilled), len(load.altered) + misshapen


def _improves(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    return before != after and all(b <= a for a, b in zip(before, after, strict=True))


# -- what could be changed -------------------------------------------------------------------------


def _changes(facts: Facts, resolved: Mapping[str, object]) -> Iterator[Change]:
    """Everything worth trying.

    Args:
        resolved: the configuration with the defaults of its class, which can be what is wrong.
    """
    config, shown = facts.config, facts.shown
    yield from _biases(resolved, facts)
    found = len(facts.layers)
    if found and config.get("num_hidden_layers") != found:
        yield Change("layers", f"set num_hidden_layers to the {found} in the checkpoint",
                     (("num_hidden_layers", found),))  # fmt: skip
    rows = shown.draft_vocab_size
    if rows is not None and config.get("draft_vocab_size") != rows:
        yield Change("head", f"set draft_vocab_size to the {rows} rows of the head",
                     (("draft_vocab_size", rows),))  # fmt: skip
    if rows is None and config.get("draft_vocab_size") == config.get("vocab_size", 0):
        # A head that is missing is lent by the target model where the field is null.
        yield Change("head", "set draft_vocab_size to null: the target model's head is taken then",
                     (("draft_vocab_size", None),))  # fmt: skip
    if rows is not None and config.get("tie_word_embeddings"):
        yield Change("tied", "set tie_word_embeddings to false: the checkpoint has a head",
                     (("tie_word_embeddings", False),))  # fmt: skip
    yield from _widths(config, facts)
    for name in _OPTIONAL:
        if config.get(name, 0) is None:
            yield Change("null", f"remove {name}: null", ((name, _ABSENT),))
    if config.get("torch_dtype", config.get("dtype")) == "auto":
        name = "torch_dtype" if "torch_dtype" in config else "dtype"
        yield Change("dtype", f'remove {name}: "auto"', ((name, _ABSENT),))
    if "quantization_config" in config and not quantised(facts):
        yield Change(
            "quantisation",
            "remove quantization_config: no tensor is quantised",
            (("quantization_config", _ABSENT),),
        )


def _biases(config: Mapping[str, object], facts: Facts) -> Iterator[Change]:
    names = [bare(name) for name in facts.tensors if name.endswith(".bias")]
    for flag in _BIASES:
        if config.get(flag) is True:
            yield Change("bias", f"set {flag} to false: no tensor fills those biases",
                         ((flag, False),))  # fmt: skip
        elif names:
            yield Change("bias", f"set {flag} to true: the checkpoint has those biases",
                         ((flag, True),))  # fmt: skip
    both = tuple((flag, False) for flag in _BIASES if config.get(flag) is True)
    if len(both) > 1:
        yield Change("bias", "set the bias switches to false: no tensor fills those biases", both)


def _widths(config: Mapping[str, object], facts: Facts) -> Iterator[Change]:
    shown = facts.shown
    if shown.fc_in is not None and shown.fc_in % _STATES == 0:
        width = shown.fc_in // _STATES
        if config.get("target_hidden_size", config.get("hidden_size")) != width:
            yield Change("fc", f"set target_hidden_size to {width}, a third of the fc's columns",
                         (("target_hidden_size", width),))  # fmt: skip
    for name, size, what in (
        ("hidden_size", shown.hidden_size, "norms"),
        ("intermediate_size", shown.intermediate_size, "rows of the MLP"),
        ("vocab_size", shown.vocab_size, "rows of the embedding"),
    ):
        if size is not None and config.get(name) != size:
            yield Change("sizes", f"set {name} to {size}, as the {what} have it", ((name, size),))


def quantised(facts: Facts) -> bool:
    """Whether any tensor is that of a quantised matrix."""
    whole = ("BF16", "F16", "F32", "F64")
    return any(
        name.endswith(("_scale", "_scale_inv", "qweight", "weight_packed"))
        or (name.endswith("proj.weight") and tensor.dtype not in whole)
        for name, tensor in facts.tensors.items()
    )
