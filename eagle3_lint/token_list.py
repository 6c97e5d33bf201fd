"""The tokens of a draft's vocabulary, where its trainer left a list of them beside the weights.

Some trainers keep the list in a torch file of their own and not in d2t. Which files is data
(``[[token_list]]`` in ``rules/producers``); they are opened only for a draft that lacks d2t.
"""

from __future__ import annotations

from pathlib import Path

from eagle3_lint.facts import Facts
from eagle3_lint.load import bring, folder_shown_as
from eagle3_lint.load.pickle import load_object
from eagle3_lint.producer import token_lists


def recorded_tokens(facts: Facts, rules: Path | None = None) -> tuple[int, ...] | None:
    """One token for each row of the head, as a side file has them.

    Returns:
        None when the draft has a d2t or its whole vocabulary, when there is no such file, when
        torch is not installed, or when the file holds no such list.
    """
    rows = facts.shown.draft_vocab_size
    if facts.d2t is not None or rows is None or rows == facts.stated.vocab_size:
        return None
    for file, key in token_lists(rules):
        if file in facts.files:
            found = _read(folder_shown_as(facts.path) / file, key, rows)
            if found is not None:
                return found
    return None


def _read(path: Path, key: str | None, rows: int) -> tuple[int, ...] | None:
    bring(path, "whole")
    try:
        held = load_object(path)
    except Exception:  # no torch, a damaged file, or one that holds more than data
        return None
    if key is not None:
        held = held.get(key) if isinstance(held, dict) else None
    values = held.flatten().tolist() if hasattr(held, "flatten") else held
    if not isinstance(values, (list, tuple)) or len(values) != rows:
        return None
    if not all(type(v) is int and v >= 0 for v in values) or len(set(values)) != rows:
        return None
    return tuple(values)
