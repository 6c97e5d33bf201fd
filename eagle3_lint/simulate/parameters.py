"""Size the parameters that a draft class creates for one configuration."""

from __future__ import annotations

from collections.abc import Mapping

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.model import Contract, ParameterStatement
from eagle3_lint.simulate.configure import ConfigurationFailure
from eagle3_lint.simulate.result import Failure, Parameter

#: No draft has more layers or aux hidden states; a larger number is a damaged configuration.
_MOST = 2048


def _number(text: str, names: Mapping[str, object], statement_source: str) -> int:
    """Evaluate a size; what is no size raises as ``torch.empty`` would."""
    try:
        value = compile_expression(text)(names)
        if not isinstance(value, int):
            raise TypeError(f"{text} is {value!r}, not a size")
        if value < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {value}")
    except (TypeError, ZeroDivisionError, RuntimeError) as error:
        raise ConfigurationFailure(
            Failure(type(error).__name__, str(error), "configuration", statement_source)
        ) from None
    return int(value)


def _counts(statement: ParameterStatement, contract: Contract, names: Mapping[str, object]) -> int:
    if "{layer}" in statement.name:
        count = _number(contract.layer.each, names, contract.layer.source)
    elif statement.each is not None:
        count = _number(statement.each, names, statement.source)
    else:
        return 1
    if count > _MOST:
        text = f"{count} layers or aux hidden states are more than any draft has"
        raise ConfigurationFailure(Failure("MemoryError", text, "configuration", statement.source))
    return count


def build_parameters(contract: Contract, names: Mapping[str, object]) -> dict[str, Parameter]:
    """Every parameter by name, in the order of the contract.

    Raises:
        ConfigurationFailure: a size cannot be computed (a field is missing, null or no number).
    """
    built: dict[str, Parameter] = {}
    for statement in contract.parameters:
        for index in range(_counts(statement, contract, names)):
            here = {**names, "index": index}
            if statement.when is not None and not compile_expression(statement.when)(here):
                continue
            layer = contract.layer.prefix.replace("{index}", str(index))
            name = statement.name.replace("{layer}", layer).replace("{index}", str(index))
            used = statement.used is None or bool(compile_expression(statement.used)(here))
            built[name] = Parameter(
                name=name,
                role=statement.role.replace("{index}", str(index)),
                shape=tuple(_number(d, here, statement.source) for d in statement.shape),
                loader=statement.loader,
                initial=statement.initial,
                source=statement.source,
                parts={
                    part: _number(rows, here, statement.source)
                    for part, rows in statement.parts.items()
                },
                used=used,
                index=index,
            )
    return built


def filled_by_target(
    contract: Contract, names: Mapping[str, object], missing: set[str]
) -> set[str]:
    """The parameters that the target model's tensors replace after loading.

    Args:
        contract: the contract of one release.
        names: the values of its names.
        missing: parameters that no tensor of the checkpoint reached.
    """
    borrowed = set()
    for statement in contract.parameters:
        if statement.from_target is None:
            continue
        here = {**names, "missing": int(statement.name in missing), "index": 0}
        if compile_expression(statement.from_target)(here):
            borrowed.add(statement.name)
    return borrowed
