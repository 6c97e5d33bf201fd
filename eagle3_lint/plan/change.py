"""An edited draft → the change of its folder that the writer carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eagle3_lint.load.checkpoint import Tensor
from eagle3_lint.load.document import escape
from eagle3_lint.load.folder import CONFIG
from eagle3_lint.plan.edits import Edited, packed
from eagle3_lint.plan.header_text import Added, NewData, renamed
from eagle3_lint.plan.json_text import with_keys, with_value, without
from eagle3_lint.write.change import FolderChange, Seen, TextChange, WeightsChange


def folder_change(
    draft: Edited,
    headers: Mapping[str, str],
    index: tuple[str, str] | None,
    seen: Sequence[Seen],
    title: str,
) -> FolderChange:
    """What the edits of a draft do to its files.

    Args:
        headers: safetensors file → the JSON of its header.
        index: name and text of the index of the shards, if there is one.
        seen: every file, as it was before it was read.
        title: what the fix does, in a few words.
    """
    weights = [
        change
        for file, text in headers.items()
        if (change := _weights(draft, file, text)) is not None
    ]
    texts: list[TextChange] = []
    if draft.facts.document.text != draft.original.document.text:
        texts.append(TextChange(CONFIG, draft.facts.document.text.encode("utf-8")))
    if index is not None and weights:
        texts.append(TextChange(index[0], _index(draft, index[1]).encode("utf-8")))
    return FolderChange(Path(draft.original.path), tuple(weights), tuple(texts), tuple(seen), title)


def _weights(draft: Edited, file: str, text: str) -> WeightsChange | None:
    here = [t.name for t in draft.original.tensors.values() if t.file == file]
    names = {name: draft.names[name] for name in here if name in draft.names}
    parts = {name: draft.parts[name] for name in here if name in draft.parts}
    made, added = _made(draft, here), _added(draft, file)
    if names == {name: name for name in here} and not made and not added:
        return None
    header, pieces = renamed(text, names, made, added, parts)
    return WeightsChange(file, header, pieces)


def _made(draft: Edited, here: Sequence[str]) -> dict[str, NewData]:
    """The data of tensors with new values, in the dtype that they have."""
    found: dict[str, NewData] = {}
    if draft.d2t is not None and draft.added is None and draft.d2t.tensor in here:
        dtype = draft.original.tensors[draft.d2t.tensor].dtype
        found[draft.d2t.tensor] = packed(draft.d2t.offsets, dtype)
    if draft.fc is not None and draft.fc in here:
        found[draft.fc] = column_blocks(draft.original.tensors[draft.fc], draft.facts.fc_order)
    return found


def _added(draft: Edited, file: str) -> dict[str, Added]:
    """Tensors that the file has not yet."""
    if draft.added is None or draft.d2t is None or draft.facts.tensors[draft.added].file != file:
        return {}
    tensor = draft.facts.tensors[draft.added]
    data = packed(draft.d2t.offsets, tensor.dtype)
    return {draft.added: Added(tensor.dtype, tensor.shape, data)}


def column_blocks(tensor: Tensor, order: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The bytes of a matrix, from its first, with its column blocks in another order.

    Args:
        order: block j of the new matrix is what was block ``order[j]``.

    Raises:
        ValueError: the columns do not fall into so many blocks of whole bytes.
    """
    rows = tensor.shape[0] if len(tensor.shape) == 2 else 0
    blocks = rows * len(order)
    if not blocks or tensor.shape[1] % len(order) or tensor.nbytes % blocks:
        raise ValueError(f"{tensor.name}: no matrix of {len(order)} column blocks")
    width = tensor.nbytes // blocks
    starts = (row * len(order) * width + i * width for row in range(rows) for i in order)
    return tuple((start, start + width) for start in starts)


def _index(draft: Edited, text: str) -> str:
    """The index with the new names; its other content stays."""
    for name in draft.original.tensors:
        if name not in draft.names:
            text = without(text, f"/weight_map/{escape(name)}")
        for part, _ in draft.parts.get(name, ()):
            file = draft.original.tensors[name].file
            text = with_value(text, f"/weight_map/{escape(part)}", file)
    if draft.added is not None:
        file = draft.facts.tensors[draft.added].file
        text = with_value(text, f"/weight_map/{escape(draft.added)}", file)
    renames = {old: new for old, new in draft.names.items() if old != new}
    return with_keys(text, "/weight_map", renames)
