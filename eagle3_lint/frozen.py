"""Frozen dataclasses that are cheap to define.

The standard decorator compiles six methods for every class; with fifty classes that is a third of
the time of a cold check. Here the methods that can be the same for all classes are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Only type checkers look at it."""
        return lambda decorator: decorator


Class = TypeVar("Class", bound=type)


def _values(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, f.name) for f in fields(record))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
    return f"{type(self).__name__}({shown})"


def _equal(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Class) -> Class:
    """A frozen dataclass with ``repr``, equality and hash over its fields."""
    made: Any = dataclass(frozen=True, repr=False, eq=False)(cls)
    made.__repr__, made.__eq__, made.__hash__ = _repr, _equal, _hash
    return cls
