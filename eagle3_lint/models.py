"""Target models: known by name, or read from a config.json of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from eagle3_lint.contract.rules_folder import read_json, rules_folder
from eagle3_lint.errors import InputError
from eagle3_lint.load import is_address, lies_elsewhere, shown
from eagle3_lint.load.document import DocumentError, load_document
from eagle3_lint.target_model import TargetModel

#: Where wrappers of text models keep the text model's configuration.
_TEXT_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")
#: Fields of a draft's configuration that name its target model.
NAMING = ("target_model_name_or_path", "verifier_name_or_path", "target_model", "base_model_name")


def normal(name: str) -> str:
    """A model's name without organisation and case."""
    return name.rstrip("/").rpartition("/")[2].lower().replace("_", "-")


@cache
def known_models(rules: Path | None = None) -> tuple[TargetModel, ...]:
    """The models of ``rules/targets/models.json``, in the order of the file."""
    return tuple(model for model, _ in _entries(rules))


@cache
def _entries(rules: Path | None) -> tuple[tuple[TargetModel, tuple[str, ...]], ...]:
    folder = rules_folder() if rules is None else rules
    found = []
    for entry in read_json(folder / "targets" / "models.json")["models"]:
        names = tuple(map(normal, (entry["name"], entry["repo"], *entry["aliases"])))
        model = TargetModel(
            name=entry["name"],
            architecture=entry["architecture"],
            model_type=entry["model_type"],
            hidden_size=entry["hidden_size"],
            num_hidden_layers=entry["num_hidden_layers"],
            vocab_size=entry["vocab_size"],
            max_position_embeddings=entry["max_position_embeddings"],
            quantised=entry["quantised"],
            source=entry["source"],
            attention_layers=_attention_layers(entry),
        )
        found.append((model, names))
    return tuple(found)


def known_model(name: str, rules: Path | None = None) -> TargetModel | None:
    """The known model of that name (case and organisation do not matter)."""
    wanted = normal(name)
    for model, names in _entries(rules):
        if wanted in names:
            return model
    return None


def find_target_model(text: str, rules: Path | None = None) -> TargetModel:
    """The model that a user names: a folder, a config.json, the address of one, or a known name.

    Raises:
        InputError: none of them exists, or its config.json cannot be read.
    """
    if is_address(text):
        from eagle3_lint.load.remote import open_folder

        return _from_file(open_folder(text) / "config.json", text)
    path = Path(text)
    if path.is_dir():
        path = path / "config.json"
    if path.is_file():
        return _from_file(path, text)
    model = known_model(text, rules)
    if model is not None:
        return model
    if path.name == "config.json" or "/config.json" in text or text.startswith((".", "/", "~")):
        raise InputError(f"target model {text}: no such folder or config.json")
    close = _close(text, rules)
    hint = f"; did you mean {close}?" if close else "; `eagle3-lint targets --models` lists them"
    if lies_elsewhere(text):
        hint += f" (hf://{text} would be read from the Hub)"
    raise InputError(f"target model {text!r}: neither a path nor a known name{hint}")


def _close(text: str, rules: Path | None) -> str:
    from difflib import get_close_matches

    names = [model.name for model in known_models(rules)]
    return ", ".join(get_close_matches(normal(text), names, 2, 0.6))


def _from_file(path: Path, name: str) -> TargetModel:
    try:
        config = load_document(path).data
    except DocumentError as error:
        line = f":{error.line}" if error.line is not None else ""
        raise InputError(f"target model {shown(path)}{line}: {error.message}") from None
    except OSError as error:
        raise InputError(f"target model {shown(path)}: cannot be read: {error.strerror}") from None
    model = replace(from_config(config, name), folder=path.parent)
    return replace(model, source=shown(path)) if is_address(name) else model


def _integer(config: Mapping[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def from_config(config: Mapping[str, Any], name: str) -> TargetModel:
    """A target model from its own configuration; sizes come from the text model it wraps.

    Raises:
        InputError: it names no architecture.
    """
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise InputError(f"target model {name}: its config.json names no architectures")
    text = next((config[k] for k in _TEXT_CONFIGS if isinstance(config.get(k), Mapping)), config)
    kind = text.get("model_type", config.get("model_type"))
    quantised = any("quantization_config" in c for c in (config, text))
    return TargetModel(
        name=name,
        architecture=str(architectures[0]),
        model_type=kind if isinstance(kind, str) else None,
        hidden_size=_integer(text, "hidden_size"),
        num_hidden_layers=_integer(text, "num_hidden_layers"),
        vocab_size=_integer(text, "vocab_size"),
        max_position_embeddings=_integer(text, "max_position_embeddings"),
        quantised=quantised,
        source=f"{name}/config.json",
        attention_layers=_attention_layers(text),
        rope=_rope(text),
        kv_size=_kv_size(text),
        dtype=_dtype(text) or _dtype(config),
    )


def _kv_size(config: Mapping[str, Any]) -> int | None:
    heads, hidden = _integer(config, "num_attention_heads"), _integer(config, "hidden_size")
    width = _integer(config, "head_dim") or (hidden // heads if heads and hidden else None)
    kv_heads = _integer(config, "num_key_value_heads") or heads
    if "kv_lora_rank" in config or width is None or kv_heads is None:
        return None
    return kv_heads * width


def _dtype(config: Mapping[str, Any]) -> str | None:
    for field in ("torch_dtype", "dtype"):
        if isinstance(config.get(field), str):
            return str(config[field])
    return None


def _rope(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for field in ("rope_parameters", "rope_scaling"):
        if isinstance(config.get(field), Mapping):
            return dict(config[field])
    return None


def _attention_layers(config: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The layers with full attention of a model that has linear ones too; None for any other."""
    kinds, layers = config.get("layer_types"), _integer(config, "num_hidden_layers")
    if isinstance(kinds, list) and "linear_attention" in kinds:
        return tuple(i for i, kind in enumerate(kinds) if kind != "linear_attention")
    every = _integer(config, "full_attention_interval")
    if every is None or layers is None or isinstance(kinds, list):
        return None
    return tuple(range(every - 1, layers, every))


def named_in_config(config: Mapping[str, Any], rules: Path | None = None) -> TargetModel | None:
    """The known model that a draft's configuration names, if it names one."""
    names = [config.get(field) for field in NAMING]
    speculators = config.get("speculators_config")
    if isinstance(speculators, Mapping):
        verifier = speculators.get("verifier")
        names.append(verifier.get("name_or_path") if isinstance(verifier, Mapping) else None)
    for name in names:
        if isinstance(name, str) and name:
            found = known_model(name, rules)
            if found is not None:
                return found
    return None
