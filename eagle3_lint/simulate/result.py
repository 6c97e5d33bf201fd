"""What a simulated load comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from eagle3_lint.contract.model import Initial
from eagle3_lint.frozen import frozen

Stage = Literal["configuration", "loading", "after loading"]
Shape = tuple[int, ...]


@frozen
class Failure:
    """An exception the runtime raises, with its text filled in.

    Attributes:
        tensor: the checkpoint's tensor on which it is raised, if it is one.
        about: whether the tensor's name or its shape is refused.
        source: release, file and line that raise it.
        because: what its text does not say; mostly empty.
    """

    type: str
    message: str
    stage: Stage
    source: str
    tensor: str | None = None
    about: Literal["name", "shape"] | None = None
    because: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@frozen
class Parameter:
    """A parameter of the draft class as one configuration sizes it."""

    name: str
    role: str
    shape: Shape
    loader: str
    initial: Initial
    source: str
    parts: Mapping[str, int]
    used: bool
    index: int


@frozen
class Alteration:
    """A tensor that is cut, zero-padded or repeated on its way into a parameter."""

    tensor: str
    parameter: str
    how: Literal["cut", "pad", "spread"]
    loaded: Shape
    expected: Shape
    source: str


@frozen
class Load:
    """What the loader does with one checkpoint.

    Attributes:
        failures: every exception met; the runtime stops at the first.
        unfilled: parameters that the forward pass uses and nothing fills, by name, sorted.
        dropped: tensors that reach no parameter, sorted.
        altered: tensors cut, padded or repeated, sorted by tensor.
        ignored: tensors that the runtime has no use for (t2d, rotary buffers), sorted.
        borrowed: parameters that the target model fills, sorted.
        reached: parameter name of each tensor that arrived.
        vocabulary_map: the tensor taken as d2t, if one was.
        parameters: every parameter of the draft class by name.
        environment: the names of the contract with the values of this configuration.
        dropped_by: source of the statement that dropped each tensor.
    """

    failures: tuple[Failure, ...] = ()
    unfilled: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    altered: tuple[Alteration, ...] = ()
    ignored: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    reached: Mapping[str, str] = field(default_factory=dict)
    vocabulary_map: str | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)
    dropped_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def outcome(self) -> Literal["ok", "silent", "error"]:
        if self.failures:
            return "error"
        return "silent" if self.unfilled or self.dropped or self.altered else "ok"

    @property
    def error(self) -> Failure | None:
        """The exception that stops the runtime."""
        return self.failures[0] if self.failures else None
