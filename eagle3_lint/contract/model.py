"""The statements of a contract, as frozen objects; one module per question is kept elsewhere.

A contract file lists statements, each with the releases it holds for and the source it was read
from. :class:`Contract` is the selection that holds for one release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from eagle3_lint.frozen import frozen

Initial = Literal["ones", "zeros", "random", "garbage"]


@frozen
class Raise:
    """An exception that the runtime raises: its class and the template of its text."""

    type: str
    message: str

    @classmethod
    def parse(cls, text: str) -> Raise:
        """Read ``"ValueError: text"``."""
        kind, _, message = text.partition(":")
        return cls(kind.strip(), message.strip())


@frozen
class ConfigStatement:
    """One step of a constructor: it reads or computes a name, or it refuses.

    Attributes:
        name: what later statements call the value; empty for a refusal.
        read: dotted paths into the configuration, the first that is present wins.
        value: an expression instead of a path.
        take: ``value``, ``length`` (of a list, 0 when it has none) or ``type`` (what Python calls
            it: ``'dict'``, ``'list'``, ``'NoneType'``).
        absent: expression for a field that is nowhere; a :class:`Raise` when the runtime raises.
        null: the same for a field that is ``null``; None lets the null through.
        when: the statement is passed over unless this holds.
        refuse: what is raised when ``when`` holds.
    """

    source: str
    name: str = ""
    read: tuple[str, ...] = ()
    value: str | None = None
    take: Literal["value", "length", "type"] = "value"
    absent: str | Raise | None = None
    null: str | Raise | None = None
    when: str | None = None
    refuse: Raise | None = None


@frozen
class LayerStatement:
    """How the parameters of a decoder layer are called, and how many layers there are."""

    prefix: str
    each: str
    source: str


@frozen
class ParameterStatement:
    """A parameter that the draft class creates.

    Attributes:
        name: template with ``{layer}`` (the layer's prefix) and ``{index}``.
        role: the tensor's role, the same for every runtime and producer.
        shape: one expression per dimension (rows first).
        parts: rows of each part of a fused parameter, in order.
        each: expression; one parameter per index below it.
        initial: what the parameter holds when nothing is loaded.
        used: expression; whether the forward pass reads it.
        from_target: expression; whether the target model's tensor replaces it after loading.
            It may ask ``missing`` (no tensor of the checkpoint reached the parameter).
        lost: the runtime throws it away again after loading.
    """

    name: str
    role: str
    shape: tuple[str, ...]
    loader: str
    initial: Initial
    source: str
    parts: Mapping[str, str]
    each: str | None = None
    when: str | None = None
    used: str | None = None
    from_target: str | None = None
    lost: bool = False


@frozen
class KeyCondition:
    """Which keys a statement speaks of; an empty condition speaks of all."""

    contains: str | None = None
    equals: str | None = None
    starts: str | None = None
    ends: str | None = None
    lacks: tuple[str, ...] = ()

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> KeyCondition:
        """Read the fields of a condition out of a statement that may have others."""
        lacks = entry.get("lacks", ())
        return cls(
            contains=entry.get("contains"),
            equals=entry.get("equals"),
            starts=entry.get("starts"),
            ends=entry.get("ends"),
            lacks=(lacks,) if isinstance(lacks, str) else tuple(lacks),
        )

    def holds(self, key: str) -> bool:
        return (
            (self.contains is None or self.contains in key)
            and (self.equals is None or self.equals == key)
            and (self.starts is None or key.startswith(self.starts))
            and (self.ends is None or key.endswith(self.ends))
            and not any(word in key for word in self.lacks)
        )


@frozen
class PresentStatement:
    """A name for the number of the checkpoint's tensors that a condition holds for."""

    name: str
    condition: KeyCondition
    source: str


@frozen
class KeyStatement:
    """One step of ``load_weights`` for each tensor name.

    ``replace`` puts ``into`` for every ``find`` (``at_start``: only at the start) · ``prefix`` puts
    ``into`` in front · ``ignore`` ends: the runtime has no use for the tensor · ``discard`` ends: a
    weight is lost · ``map`` ends: the tensor is the vocabulary map · ``mistake`` ends: it is taken
    for the vocabulary map, and lost as what it is · ``fuse`` tries the name with ``into`` for
    ``find`` and loads one ``part`` · ``gather`` holds a part back until all parts of the fused
    tensor have come, and raises ``differs`` when their columns differ · ``load`` tries the name as
    it is.
    """

    do: Literal[
        "replace", "prefix", "ignore", "discard", "map", "mistake", "fuse", "gather", "load"
    ]
    source: str
    condition: KeyCondition
    when: str | None = None
    find: str = ""
    into: str = ""
    part: str = ""
    partners: tuple[str, ...] = ()
    at_start: bool = False
    differs: Raise | None = None


@frozen
class LookupStatement:
    """The spellings that are tried, and what follows when no parameter has any of them.

    Attributes:
        condition: the keys that the statement speaks of.
        unknown: what must hold for the shortest beginning of the key that names nothing.
        within: the module whose own loader looks; it names keys relative to itself.
    """

    tries: tuple[str, ...]
    missing: str | Raise
    fused_missing: str | Raise
    condition: KeyCondition
    source: str
    unknown: KeyCondition = KeyCondition()
    within: str = ""


@frozen
class ShapeStatement:
    """What a loader does with a tensor of another size: ``cut``, ``pad``, ``spread`` or raise.

    Attributes:
        differs: raised for any other shape; the loader compares, and that is all it does.
        rows_more, rows_fewer, columns_more, columns_fewer: for each axis and direction.
        columns_one: for a single column; None treats it like any smaller number.
        fewer_dimensions, more_dimensions: for a vector where a matrix belongs, or the other way
            round; None treats a missing axis as one of size 1.
        repeats: a tensor that torch can repeat into the parameter's shape is repeated, as
            ``copy_`` does: each of its axes, from the last on, has the right size or is one.
        of_whole: the statement speaks of a fused tensor that arrives whole.
    """

    loader: str
    source: str
    differs: Raise | None = None
    rows_more: str | Raise | None = None
    rows_fewer: str | Raise | None = None
    columns_more: str | Raise | None = None
    columns_fewer: str | Raise | None = None
    columns_one: str | Raise | None = None
    fewer_dimensions: Raise | None = None
    more_dimensions: Raise | None = None
    repeats: bool = False
    of_whole: bool = False


@frozen
class AfterStatement:
    """What is raised after the weights are loaded.

    It may ask ``mapped`` (a d2t was found), ``untouched`` (the parameters that no tensor reached,
    as a text; empty when there is none), ``empty_LOADER`` (how many parameters of a loader are not
    filled whole), ``halved`` (how many of all are empty in a module that has others which are not)
    and ``shadowed`` (how many are in a module with no tensor, but for those whose names begin as
    its name does and do not go on with a dot).
    ``because`` says what the text of the exception does not; it has ``lacking`` besides, the empty
    parameters as a text.
    """

    refuse: Raise
    when: str
    source: str
    because: str = ""


@frozen
class SwitchStatement:
    """What the forward pass takes for one of its switches.

    Attributes:
        name: as ``rules/switches.toml`` has it.
        read: dotted paths into the configuration as the class sees it, the first that is present
            wins; empty when the release never looks.
        absent: expression for what it takes when no path is there.
        value: expression instead of both, over the names of the contract.
        when: unless this holds, ``absent`` is taken whatever the paths have.
    """

    name: str
    source: str
    read: tuple[str, ...] = ()
    absent: str = "null"
    value: str | None = None
    when: str | None = None


@frozen
class Contract:
    """What one draft class of one release expects.

    Attributes:
        quantisations: methods whose tensors the parameters describe.
    """

    runtime: str
    draft_class: str
    release: str
    config: tuple[ConfigStatement, ...]
    layer: LayerStatement
    parameters: tuple[ParameterStatement, ...]
    present: tuple[PresentStatement, ...]
    keys: tuple[KeyStatement, ...]
    lookups: tuple[LookupStatement, ...]
    shapes: Mapping[str, ShapeStatement]
    shapes_of_whole: Mapping[str, ShapeStatement]
    after: tuple[AfterStatement, ...]
    quantisations: tuple[str, ...] = ()
