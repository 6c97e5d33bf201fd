"""Play the configuration part of a contract: what the draft class reads, or what it raises."""

from __future__ import annotations

from collections.abc import Mapping

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.model import ConfigStatement, Contract, Raise
from eagle3_lint.simulate.result import Failure

_ABSENT = object()
#: Builtin exceptions of arithmetic that a runtime's constructor meets on the same values.
_ARITHMETIC = (TypeError, ZeroDivisionError)


class ConfigurationFailure(Exception):
    """The constructor raises; carries the :class:`Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Quoted(dict[str, object]):
    """Template values; a name that is not known stays as it is written."""

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


def fill(template: str, values: Mapping[str, object]) -> str:
    """Fill ``{name}`` in an exception's text."""
    return template.format_map(_Quoted(values))


def look_up(config: Mapping[str, object], path: str, absent: object = _ABSENT) -> object:
    """The value at a dotted path, or ``absent`` when some step of it is absent or no object.

    A step into a list is the place, from 0.
    """
    value: object = config
    for step in path.split("."):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, Mapping) and step in value:
            value = value[step]
        else:
            return absent
    return value


def _raise(error: Raise, statement: ConfigStatement, values: Mapping[str, object]) -> None:
    raise ConfigurationFailure(
        Failure(error.type, fill(error.message, values), "configuration", statement.source)
    )


def _read(
    statement: ConfigStatement, config: Mapping[str, object], names: Mapping[str, object]
) -> object:
    found: object = _ABSENT
    for path in statement.read:
        found = look_up(config, path)
        if found is not _ABSENT:
            break
    if statement.take == "type" and found is not _ABSENT:
        return type(found).__name__
    if found is _ABSENT:
        instead: str | Raise | None = statement.absent
        if instead is None:
            field = statement.read[0].rpartition(".")[2]
            holder = names.get("config_class", "PretrainedConfig")
            instead = Raise("AttributeError", f"'{holder}' object has no attribute '{field}'")
    elif found is None and statement.null is not None:
        instead = statement.null
    else:
        if statement.take == "length":
            return len(found) if isinstance(found, (list, tuple, str, Mapping)) else 0
        return found
    if isinstance(instead, Raise):
        _raise(instead, statement, names)
    assert isinstance(instead, str)
    return compile_expression(instead)(names)


def configure(
    contract: Contract, config: Mapping[str, object], known: Mapping[str, object]
) -> dict[str, object]:
    """The names of ``contract`` for ``config``.

    Args:
        contract: the contract of one release.
        config: the configuration as the runtime sees it, class defaults included.
        known: names given from outside (``config_class``, the target model's sizes).

    Raises:
        ConfigurationFailure: the draft class raises while it is built.
    """
    names: dict[str, object] = dict(known)
    for statement in contract.config:
        try:
            if statement.when is not None and not compile_expression(statement.when)(names):
                continue
            if statement.refuse is not None:
                _raise(statement.refuse, statement, names)
            elif statement.value is not None:
                names[statement.name] = compile_expression(statement.value)(names)
            else:
                names[statement.name] = _read(statement, config, names)
        except _ARITHMETIC as error:
            failure = Failure(type(error).__name__, str(error), "configuration", statement.source)
            raise ConfigurationFailure(failure) from None
    return names
