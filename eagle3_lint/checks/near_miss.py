"""Tensors whose names are nearly those of parameters that nothing fills."""

from __future__ import annotations

from eagle3_lint.checks.spelling import badness, misfits
from eagle3_lint.checks.subject import Subject
from eagle3_lint.facts import bare, layer_of
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.result import Load

#: Names that producers give the tensors of a draft, the layer's prefix aside.
_OUTSIDE = ("fc.weight", "norm.weight", "lm_head.weight", "embed_tokens.weight", "d2t")
_INSIDE = (
    "hidden_norm.weight", "input_layernorm.weight", "post_attention_layernorm.weight",
    "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
    "self_attn.o_proj.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight",
    "self_attn.q_a_proj.weight", "self_attn.q_a_layernorm.weight", "self_attn.q_b_proj.weight",
    "self_attn.kv_a_proj_with_mqa.weight", "self_attn.kv_a_layernorm.weight",
    "self_attn.kv_b_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
    "mlp.down_proj.weight",
)  # fmt: skip
#: Names less alike than this have nothing to do with each other.
_ALIKE = 0.6


@frozen
class NearMiss:
    """A better name for a tensor.

    Attributes:
        certain: the tensor's shape fits no other name that is missing.
    """

    tensor: str
    name: str
    certain: bool


def near_misses(subject: Subject) -> tuple[NearMiss, ...]:
    """Better names for tensors that find no parameter, where one makes the load better.

    Each is found for itself; a name that two tensors could have is given to neither.
    """
    load = subject.load
    if load is None or not load.parameters:
        return ()
    lost = [*load.dropped, *(f.tensor for f in load.failures if f.about == "name" and f.tensor)]
    missing = _missing(subject)
    found: list[NearMiss] = []
    for tensor in dict.fromkeys(lost):
        # A load is played for each pair, so what looks like nothing that is missing is left alone.
        if not any(_likeness(tensor, name) >= _ALIKE for name in missing):
            continue
        fitting = [name for name in missing if _better(subject, load, tensor, name)]
        alike = sorted(fitting, key=lambda name: _likeness(tensor, name), reverse=True)
        if alike and _likeness(tensor, alike[0]) >= _ALIKE:
            found.append(NearMiss(tensor, alike[0], len(fitting) == 1))
    wanted = [miss.name for miss in found]
    return tuple(miss for miss in found if wanted.count(miss.name) == 1)


def _missing(subject: Subject) -> list[str]:
    """Names of a draft's tensors that the checkpoint does not have, in its own spelling."""
    names = subject.facts.tensors
    inside = next((n for n in names if bare(n).endswith(_INSIDE) and layer_of(n) is not None), None)
    front, prefix = "", "midlayer."
    if inside is not None:
        ending = next(e for e in _INSIDE if bare(inside).endswith(e))
        prefix = inside[: -len(ending)]
        front = prefix[: prefix.find("midlayer" if "midlayer" in prefix else "layers")]
    spelled = [
        *(front + n if n not in ("lm_head.weight", "d2t") else n for n in _OUTSIDE),
        *(prefix + n for n in _INSIDE),
    ]
    return [name for name in spelled if name not in names]


def _better(subject: Subject, load: Load, tensor: str, name: str) -> bool:
    tried = subject.played({tensor: name})
    if not tried.parameters or misfits(tried) > misfits(load):
        return False
    lost, empty = badness(load)
    lost_now, empty_now = badness(tried)
    return lost_now < lost and empty_now <= empty


def _likeness(one: str, other: str) -> float:
    # Few drafts come this far, and every check would pay for the import.
    from difflib import SequenceMatcher

    return SequenceMatcher(None, _last(one), _last(other)).ratio()


def _last(name: str) -> str:
    """The name from the layer on."""
    core = bare(name)
    index = max(core.rfind("layers."), core.rfind("midlayer."))
    return core[index:] if index >= 0 else core
