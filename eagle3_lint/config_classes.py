"""What Hugging Face configuration classes add to a config.json, as each release would see it.

The table was made by running the classes of every transformers that a release pins
(``rules/build/config_classes.py``); ``[[transformers]]`` in a runtime's file says which it is, and
``[[config_alias]]`` which model types the runtime has classes of its own for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.ranges import covers, version
from eagle3_lint.contract.rules_folder import read_json, rules_folder
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.simulate.resolve import ConfigClasses, ConfigClassRefusal


@cache
def _table(rules: Path | None) -> dict[str, Any]:
    folder = rules_folder() if rules is None else rules
    table: dict[str, Any] = read_json(folder / "config_classes.json")
    return table


class ConfigClassTable:
    """Answers for one folder of rules."""

    def __init__(self, rules: Path | None = None) -> None:
        self.rules = rules
        self._functions: dict[tuple[str, tuple[tuple[str, str], ...]], ConfigClasses] = {}

    def lookup(self, runtime: str, release: str) -> ConfigClasses:
        """The function that adds class defaults to a configuration, for one release.

        Releases with the same transformers and the same aliases get the same function.
        """
        raw = runtime_file(runtime, self.rules).raw
        pins = (p["version"] for p in raw.get("transformers", ()) if covers(p["in"], release))
        transformers: str = next(pins, _table(self.rules)["transformers"][-1])
        aliases = {
            a["model_type"]: a["like"]
            for a in raw.get("config_alias", ())
            if covers(a.get("in", ""), release)
        }

        key = (transformers, tuple(sorted(aliases.items())))
        if key not in self._functions:
            self._functions[key] = self._function(transformers, aliases)
        return self._functions[key]

    def _function(self, transformers: str, aliases: Mapping[str, str]) -> ConfigClasses:
        def add_defaults(
            model_type: str | None, config: Mapping[str, object]
        ) -> tuple[str, dict[str, object]] | None:
            like = aliases.get(model_type or "", model_type or "")
            name = self._class_name(like, transformers)
            if name is None:
                return None
            return name, self._complete(like, transformers, config)

        return add_defaults

    def _class_name(self, model_type: str, transformers: str) -> str | None:
        entry = _table(self.rules)["types"].get(model_type)
        if entry is None or version(transformers) < version(entry["since"]):
            return None
        if "last" in entry and version(transformers) > version(entry["last"]):
            return None
        return str(entry["class"])

    def _complete(
        self, model_type: str, transformers: str, config: Mapping[str, object]
    ) -> dict[str, object]:
        fields: Mapping[str, Any] = {"absent": {}, "null": {}}
        for span in _table(self.rules)["details"].get(model_type, ()):
            if version(span["since"]) <= version(transformers):
                fields = span["fields"]
        _validate(fields, config)
        whole: dict[str, object] = dict(config)
        constants = {f: e["value"] for f, e in fields["absent"].items() if "value" in e}
        for field, value in constants.items():
            whole.setdefault(field, value)
        # Formulas come last: they are over fields that may themselves be defaults.
        for field, entry in fields["absent"].items():
            if "formula" in entry and field not in whole:
                whole[field] = _apply(entry["formula"], whole)
        for field, entry in fields["null"].items():
            if field in config and config[field] is None and not _raised(entry):
                whole[field] = (
                    _apply(entry["formula"], whole) if "formula" in entry else entry["value"]
                )
        return whole


def _raised(entry: Mapping[str, Any]) -> str:
    """The exception of an entry such as ``raises TypeError``; empty when it is a value."""
    value = entry.get("value")
    return value[7:] if isinstance(value, str) and value.startswith("raises ") else ""


def _validate(fields: Mapping[str, Any], config: Mapping[str, object]) -> None:
    """Raise as the strict configuration classes of transformers 5.6 and newer do."""
    for field, entry in fields["null"].items():
        raised = _raised(entry)
        if raised == "TypeError" and not _computed_from(field, fields["absent"], config):
            continue
        if raised and field in config and config[field] is None:
            raise ConfigClassRefusal(f"{raised}: field '{field}' must not be null")
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    sized = isinstance(hidden, int) and isinstance(heads, int) and heads > 0
    if fields.get("heads_must_divide") and sized and hidden % heads:  # type: ignore[operator]
        raise ConfigClassRefusal(
            "StrictDataclassClassValidationError: Class validation error for validator"
            f" 'validate_architecture': The hidden size ({hidden}) is not a multiple of the number"
            f" of attention heads ({heads})."
        )


def _computed_from(field: str, absent: Mapping[str, Any], config: Mapping[str, object]) -> bool:
    """Whether the class computes with ``field``: not when every quotient it is in is given."""
    quotients = [
        f for f, e in absent.items() if "//" in e.get("formula", "") and field in e["formula"]
    ]
    return not quotients or any(config.get(f) is None for f in quotients)


def _apply(formula: str, config: Mapping[str, object]) -> object:
    """A derived field; None when what it is derived from is no number."""
    try:
        return compile_expression(formula)(config)
    except (TypeError, ZeroDivisionError):
        return None
