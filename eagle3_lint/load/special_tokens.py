"""Special tokens by id: from the configurations of a draft and of its target model's tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eagle3_lint.load.document import DocumentError, load_document

_FIELDS = ("bos_token_id", "eos_token_id", "pad_token_id")


def special_tokens(config: Mapping[str, object], target: Path | None) -> dict[int, str]:
    """Token id → name.

    Args:
        config: of the draft.
        target: the target model's folder, whose tokenizer_config.json has names for all of them;
            None for what the draft's configuration says.
    """
    found = _from_fields(config)
    if target is None:
        return found
    for file in ("generation_config.json", "config.json"):
        found |= _from_fields(_read(target / file))
    added = _read(target / "tokenizer_config.json").get("added_tokens_decoder")
    for token, entry in (added if isinstance(added, Mapping) else {}).items():
        if str(token).isdecimal() and isinstance(entry, Mapping) and entry.get("special"):
            found[int(token)] = str(entry.get("content", ""))
    return found


def _from_fields(config: Mapping[str, object]) -> dict[int, str]:
    found: dict[int, str] = {}
    for field in _FIELDS:
        value = config.get(field)
        for token in value if isinstance(value, list) else [value]:
            if type(token) is int:
                found[token] = field.removesuffix("_token_id")
    return found


def _read(path: Path) -> Mapping[str, object]:
    """A JSON object; empty when there is none to read."""
    try:
        return load_document(path).data
    except (DocumentError, OSError):
        return {}
