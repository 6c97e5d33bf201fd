"""One form of config.json turned into the other, as edits. Nothing is dropped without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eagle3_lint.diagnostic import Edit
from eagle3_lint.draft_spec import dialects
from eagle3_lint.facts import Facts, bare, layer_of
from eagle3_lint.forward import needs
from eagle3_lint.load.document import escape
from eagle3_lint.trained import TOP

_LAYER = "transformer_layer_config"
#: Tokens that a nested configuration proposes unless the server says otherwise.
_PROPOSED = 3
#: Switches that both forms have at the top; what each means by their absence is not the same.
_SWITCHES = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output")


class CannotBeNestedError(ValueError):
    """The nested form has no place for something that the draft needs."""


def is_nested(config: Mapping[str, object]) -> bool:
    """Whether a configuration has the form of the speculators library."""
    return isinstance(config.get(_LAYER), Mapping)


def flattened(
    facts: Facts,
    architecture: str,
    states: Sequence[int] | None,
    rules: Path | None = None,
) -> tuple[Edit, ...]:
    """The edits that make a nested configuration flat.

    Args:
        architecture: of the draft class that the flat one is for.
        states: aux states that it was trained on. The ids are written where each runtime looks, in
            its own convention, so that what they mean does not go with the form.
    """
    config = facts.config
    nested = config.get(_LAYER)
    assert isinstance(nested, Mapping)
    edits = [Edit.set_config("/architectures", [architecture])]
    for key, value in nested.items():
        # null says what absence says, but for readers that multiply it.
        if key not in config and value is not None:
            edits.append(Edit.set_config(f"/{escape(key)}", value))
    verifier = _verifier(config)
    if verifier:
        edits.append(Edit.set_config("/verifier_name_or_path", verifier))
    if states:
        edits.append(Edit.set_config(f"/{TOP}", list(states)))
        edits.append(
            Edit.set_config(
                "/eagle_config", {"use_aux_hidden_state": True, TOP: [s - 1 for s in states]}
            )
        )
    edits += _explicit_switches(facts, rules)
    edits += (
        Edit.remove_config(f"/{escape(key)}")
        for key in config
        if key in dialects(rules).nested_only or (config[key] is None and key not in nested)
    )
    return tuple(edits)


def nested(
    facts: Facts,
    states: Sequence[int] | None,
    target_model: str | None,
    target_architecture: str | None,
    rules: Path | None = None,
) -> tuple[Edit, ...]:
    """The edits that give a flat draft the nested form, and its tensors that form's names.

    Args:
        states: aux states that it was trained on; the nested form means inputs of layers by ids.
        target_model: name or path for the verifier; None keeps what the draft says.

    Raises:
        CannotBeNestedError: the draft needs what that form has no place for.
    """
    config, form = facts.config, dialects(rules)
    _refuse(facts, form.nested_layers)
    layer = {key: config[key] for key in form.layer_fields if key in config}
    verifier = target_model or _named(config)
    edits = [
        Edit.set_config("/architectures", [form.nested_architecture]),
        Edit.set_config("/speculators_model_type", "eagle3"),
        Edit.set_config("/speculators_config", _proposals(verifier, target_architecture)),
        Edit.set_config(f"/{_LAYER}", layer),
        *_explicit_switches(facts, rules),
    ]
    if "draft_vocab_size" not in config and facts.shown.draft_vocab_size is not None:
        edits.append(Edit.set_config("/draft_vocab_size", facts.shown.draft_vocab_size))
    if states is not None:
        edits.append(Edit.set_config(f"/{TOP}", list(states)))
    gone = (*layer, "eagle_config", "auto_map", "verifier_name_or_path")
    edits += (Edit.remove_config(f"/{escape(key)}") for key in gone if key in config)
    edits += _layer_names(facts)
    return tuple(edits)


def _refuse(facts: Facts, layers: Sequence[str]) -> None:
    config = facts.config
    eagle = config.get("eagle_config")
    kind = config.get("model_type")
    if "kv_lora_rank" in config or any("kv_a_proj" in name for name in facts.tensors):
        raise CannotBeNestedError("the nested form has no layer with latent attention")
    if kind not in layers:
        raise CannotBeNestedError(
            f"the nested form has layers of {' and '.join(layers)}, and this one is {kind!r}"
        )
    if isinstance(eagle, Mapping) and eagle.get("use_aux_hidden_state") is False:
        raise CannotBeNestedError("the nested form has no place for use_aux_hidden_state: false")


def _explicit_switches(facts: Facts, rules: Path | None) -> Iterator[Edit]:
    """Each switch that both forms have, said aloud."""
    for need in needs(facts, rules):
        name = need.switch.name
        if name in _SWITCHES and facts.config.get(name) != bool(need.value):
            yield Edit.set_config(f"/{name}", bool(need.value))


def _layer_names(facts: Facts) -> Iterator[Edit]:
    """``layers.N.`` without anything in front."""
    for name in facts.tensors:
        core = bare(name)
        if core.startswith("midlayer."):
            rest = core.removeprefix("midlayer.")
            number, _, inner = rest.partition(".")
            spelled = f"layers.{rest}" if number.isdecimal() and inner else f"layers.0.{rest}"
        else:
            spelled = core
        layer = layer_of(spelled)
        if layer and spelled.endswith(".hidden_norm.weight"):
            spelled = spelled.replace(".hidden_norm.", ".input_layernorm.")
        if spelled != name:
            yield Edit.rename(name, spelled)


def _proposals(verifier: str | None, architecture: str | None) -> dict[str, object]:
    return {
        "algorithm": "eagle3",
        "default_proposal_method": "greedy",
        "proposal_methods": [
            {
                "proposal_type": "greedy",
                "speculative_tokens": _PROPOSED,
                "verifier_accept_k": 1,
                "accept_tolerance": 0.0,
            }
        ],
        "verifier": {
            "name_or_path": verifier,
            "architectures": [architecture] if architecture else [],
        },
    }


def _verifier(config: Mapping[str, object]) -> str | None:
    held = config.get("speculators_config")
    verifier = held.get("verifier") if isinstance(held, Mapping) else None
    name = verifier.get("name_or_path") if isinstance(verifier, Mapping) else None
    return name if isinstance(name, str) else None


def _named(config: Mapping[str, object]) -> str | None:
    for key in ("verifier_name_or_path", "target_model_name_or_path"):
        if isinstance(config.get(key), str):
            return str(config[key])
    return None
