"""An edited draft → the change of its folder that the writer carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eagle3_lint.load.document import escape
from eagle3_lint.load.folder import CONFIG
from eagle3_lint.plan.edits import Edited, packed
from eagle3_lint.plan.header_text import renamed
from eagle3_lint.plan.json_text import with_keys, without
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
    made = _made(draft, here)
    if names == {name: name for name in here} and not made:
        return None
    header, pieces = renamed(text, names, made)
    return WeightsChange(file, header, pieces)


def _made(draft: Edited, here: Sequence[str]) -> dict[str, bytes]:
    """The data of tensors with new values, in the dtype that they have."""
    if draft.d2t is None or draft.d2t.tensor not in here:
        return {}
    dtype = draft.original.tensors[draft.d2t.tensor].dtype
    return {draft.d2t.tensor: packed(draft.d2t.offsets, dtype)}


def _index(draft: Edited, text: str) -> str:
    """The index with the new names; its other content stays."""
    for name in draft.original.tensors:
        if name not in draft.names:
            text = without(text, f"/weight_map/{escape(name)}")
    renames = {old: new for old, new in draft.names.items() if old != new}
    return with_keys(text, "/weight_map", renames)
