"""A draft as edits make it, and the edits that lead there."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from eagle3_lint.diagnostic import Edit
from eagle3_lint.dialect import is_nested
from eagle3_lint.facts import Facts, bare, changed
from eagle3_lint.frozen import frozen
from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.document import escape, parse_document
from eagle3_lint.plan.json_text import with_value, without
from eagle3_lint.vocabulary import marked_tokens, offsets_of

#: Integers of either sign, as :mod:`struct` calls them.
_CODES = {"I16": "h", "I32": "i", "I64": "q"}


#: What a split tensor came to: present name and number of rows of each part, in order.
Parts = tuple[tuple[str, int], ...]


class CollisionError(ValueError):
    """Edits that would give two tensors one name."""


@frozen
class Rebuilt:
    """A d2t with other values.

    Attributes:
        tensor: its name on disk.
        source: what the values come from (see :meth:`Edit.rebuild_d2t`).
    """

    tensor: str
    source: Literal["absolute", "t2d", "list"]
    offsets: tuple[int, ...]


@frozen
class Edited:
    """A draft and what has been done to it.

    Attributes:
        original: as it is on disk.
        facts: as the edits make it.
        names: name on disk → name now; a tensor that is dropped or split is not in it.
        parts: name on disk → the parts into which the tensor is split.
        d2t: the rebuilt offsets and what they were rebuilt from; None when they are as on disk.
        added: the present name of a d2t that is not on disk.
        fc: the name on disk of an fc whose column blocks are moved (``facts.fc_order``).
    """

    original: Facts
    facts: Facts
    names: Mapping[str, str]
    parts: Mapping[str, Parts] = field(default_factory=dict)
    d2t: Rebuilt | None = None
    added: str | None = None
    fc: str | None = None

    @classmethod
    def untouched(cls, facts: Facts) -> Edited:
        return cls(facts, facts, {name: name for name in facts.tensors})

    def then(self, edits: Iterable[Edit]) -> Edited:
        """The draft after further edits, which speak of its tensors by their present names.

        Raises:
            CollisionError: two tensors would have one name.
            KeyError: an edit names a tensor that is not there.
            ValueError: an edit sets what cannot be set.
        """
        text = self.facts.document.text
        rebuilt, fc, order = self.d2t, self.fc, self.facts.fc_order
        held = self.facts.tensors
        now = {name: name for name in held}
        new: list[Tensor] = []
        added: str | None = None
        split: dict[str, Parts] = {}
        for edit in edits:
            fields = dict(edit.fields)
            if edit.op == "rename_tensor":
                now[_present(now, fields["tensor"])] = str(fields["to"])
            elif edit.op == "drop_tensor":
                del now[_present(now, fields["tensor"])]
            elif edit.op == "split_tensor":
                whole = _present(now, fields["tensor"])
                made = _split(held[whole], fields["parts"])
                del now[whole]
                new += made
                split[self._on_disk(whole)] = tuple((t.name, t.shape[0]) for t in made)
            elif edit.op == "rebuild_d2t":
                rebuilt = self._rebuilt(_present(now, fields["tensor"]), fields["from"])
            elif edit.op == "add_d2t":
                added = str(fields["tensor"])
                rebuilt = self._added(added, fields["from"])
                new.append(self._new_tensor(added, rebuilt))
            elif edit.op == "sort_fc":
                fc = self._on_disk(_present(now, fields["tensor"]))
                order = _moved(order, fields["order"])
            elif edit.op == "set_config":
                text = with_value(text, str(fields["pointer"]), fields["value"])
            else:
                text = without(text, str(fields["pointer"]))
        _check([*now.items(), *((t.name, t.name) for t in new)])
        document = self.facts.document
        if text != document.text:
            document = parse_document(text.encode("utf-8"))
        tensors = [*(replace(held[old], name=name) for old, name in now.items()), *new]
        names = {first: now[old] for first, old in self.names.items() if old in now}
        parts = {
            first: tuple((now[_present(now, name)], rows) for name, rows in made)
            for first, made in self.parts.items()
        }
        facts = replace(changed(self.facts, document, tensors), fc_order=order)
        if rebuilt is not self.d2t and rebuilt is not None:
            facts = replace(facts, d2t=rebuilt.offsets)
        added = added or now.get(self.added or "")
        return Edited(self.original, facts, names, parts | split, rebuilt, added, fc)

    def _on_disk(self, name: str) -> str:
        """Raises KeyError for a tensor that is not on disk as such."""
        for old, new in self.names.items():
            if new == name:
                return old
        raise KeyError(name)

    def _added(self, name: str, source: object) -> Rebuilt:
        """Raises ValueError when the source does not have one token for each row of the head."""
        listed = source == "list"
        tokens = (self.facts.token_list or ()) if listed else marked_tokens(self.facts.t2d or ())
        if not tokens or len(tokens) != self.facts.shown.draft_vocab_size:
            raise ValueError(f"{source} has {len(tokens)} tokens, which is not one for each row")
        return Rebuilt(name, "list" if listed else "t2d", tuple(offsets_of(tokens)))

    def _new_tensor(self, name: str, made: Rebuilt) -> Tensor:
        """The tensor goes into the file that holds t2d, or else the head."""
        beside = ("t2d", "lm_head.weight")
        held = {bare(n): t.file for n, t in self.facts.tensors.items() if bare(n) in beside}
        file = held.get("t2d") or held["lm_head.weight"]
        return Tensor(name, "I64", (len(made.offsets),), file, -1, 8 * len(made.offsets))

    def _rebuilt(self, tensor: str, source: object) -> Rebuilt:
        """Raises ValueError when what it is to be rebuilt from does not give one token a row, or
        the offsets do not fit the tensor's dtype."""
        facts = self.facts
        on_disk = self._on_disk(tensor)
        if facts.d2t is None:
            raise ValueError(f"{tensor} has no values to go by")
        absolute = source == "absolute"
        tokens = [int(v) for v in facts.d2t] if absolute else marked_tokens(facts.t2d or ())
        if len(tokens) != len(facts.d2t):
            raise ValueError(f"t2d marks {len(tokens)} tokens, and d2t has {len(facts.d2t)} rows")
        offsets = tuple(offsets_of(tokens))
        packed(offsets, facts.tensors[tensor].dtype)
        return Rebuilt(on_disk, "absolute" if absolute else "t2d", offsets)

    def edits(self) -> tuple[Edit, ...]:
        """What leads from the draft on disk to this one, each change once."""
        found: list[Edit] = []
        for name in self.original.tensors:
            if name in self.parts:
                found.append(Edit.split(name, self.parts[name]))
            elif name not in self.names:
                found.append(Edit.drop(name))
            elif self.names[name] != name:
                found.append(Edit.rename(name, self.names[name]))
        if self.added is not None:
            listed = self.d2t is not None and self.d2t.source == "list"
            found.append(Edit.add_d2t(self.added, "list" if listed else "t2d"))
        elif self.d2t is not None:
            source = "absolute" if self.d2t.source == "absolute" else "t2d"
            found.append(Edit.rebuild_d2t(self.d2t.tensor, source))  # type: ignore[arg-type]
        if self.fc is not None:
            found.append(Edit.sort_fc(self.fc, self.facts.fc_order))
        found.extend(_config("", self.original.config, self.facts.config))
        return tuple(found)

    @property
    def converted(self) -> bool:
        """Whether config.json has the other of its two forms now."""
        return is_nested(self.original.config) != is_nested(self.facts.config)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal drafts."""
        names = tuple(self.parts.get(n, self.names.get(n, "")) for n in self.original.tensors)
        values = self.d2t and self.d2t.source, self.added, self.facts.fc_order
        return self.facts.document.text, names, values


def packed(offsets: Sequence[int], dtype: str) -> bytes:
    """Offsets as the bytes of a tensor.

    Raises:
        ValueError: the dtype holds no such offsets.
    """
    if dtype not in _CODES:
        raise ValueError(f"{dtype} holds no offsets of either sign")
    try:
        return struct.pack(f"<{len(offsets)}{_CODES[dtype]}", *offsets)
    except struct.error as error:
        raise ValueError(f"{dtype} is too small for these offsets: {error}") from None


def _split(whole: Tensor, parts: object) -> tuple[Tensor, ...]:
    """The parts of a tensor, each where its rows are.

    Raises:
        ValueError: the parts do not take all of its rows, or a row is no number of whole bytes.
    """
    into = [(str(p["to"]), int(p["rows"])) for p in parts] if isinstance(parts, list) else []
    rows = whole.shape[0] if whole.shape else 0
    if not rows or sum(n for _, n in into) != rows or min(n for _, n in into) < 1:
        raise ValueError(f"{whole.name}: {into} are not parts of {rows} rows")
    if whole.nbytes % rows:
        raise ValueError(f"{whole.name}: its rows are no whole bytes")
    row, begin = whole.nbytes // rows, 0
    made: list[Tensor] = []
    for name, count in into:
        shape = (count, *whole.shape[1:])
        at = whole.offset + begin * row if whole.offset >= 0 else whole.offset
        made.append(Tensor(name, whole.dtype, shape, whole.file, at, count * row))
        begin += count
    return tuple(made)


def _moved(before: tuple[int, ...], order: object) -> tuple[int, ...]:
    """Two moves of column blocks, one after the other.

    Raises:
        ValueError: the order does not name each block once.
    """
    if not isinstance(order, list) or sorted(order) != list(range(len(order))):
        raise ValueError(f"{order} does not name each column block once")
    return tuple(before[i] for i in order) if before else tuple(order)


def _present(names: Mapping[str, str], name: object) -> str:
    if name not in names:
        raise KeyError(name)
    return str(name)


def _check(names: Iterable[tuple[str, str]]) -> None:
    """Names before and after."""
    taken: dict[str, str] = {}
    for old, new in names:
        if new in taken:
            raise CollisionError(f"{taken[new]!r} and {old!r} would both be called {new!r}")
        taken[new] = old


def _config(pointer: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Edit]:
    for key in [*before, *(k for k in after if k not in before)]:
        here = f"{pointer}/{escape(key)}"
        if key not in after:
            yield Edit.remove_config(here)
        elif key not in before or type(before[key]) is not type(after[key]):
            yield Edit.set_config(here, after[key])
        elif isinstance(before[key], dict):
            yield from _config(here, before[key], after[key])
        elif before[key] != after[key]:
            yield Edit.set_config(here, after[key])
