"""Target architectures of one SGLang release, read from its model files.

A model file registers the classes of its ``EntryClass``; the class name is the architecture. To
feed an EAGLE-3 draft, a target needs ``set_eagle3_layers_to_capture``, which chooses the layers,
and ``get_embed_and_head``, through which the draft gets the target's embedding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from eagle3_lint.probe.capture import calls, sglang_doubts
from eagle3_lint.probe.construction import held
from eagle3_lint.probe.reading import EAGLE3, Reading, Whitelist
from eagle3_lint.probe.source_tree import ClassSource, SourceTree, dotted

MODELS = "sglang.srt.models"
HOOK = "set_eagle3_layers_to_capture"
EMBEDDING = "get_embed_and_head"

#: Draft classes are registered like models, but are no targets.
_DRAFT = re.compile(r"(NextN|MTP|Eagle3?)$|Draft|Assistant|^(DFlash|DSpark|LiLiCorr)|DSpark$")


class UnknownPolicyError(Exception):
    """A hook turns ids into layers in a way that none of the known policies describes."""


def read(tree: SourceTree, transformers: str, only: str = "") -> dict[str, Reading]:
    """Every architecture that the release registers.

    Args:
        transformers: the release's requirement on transformers, which nothing here depends on.
        only: one architecture, which is quicker.

    Raises:
        UnknownPolicyError: see there.
    """
    return {cls.name: _reading(tree, cls) for cls in entries(tree, only) if only in ("", cls.name)}


def drafts(tree: SourceTree) -> dict[str, ClassSource]:
    """EAGLE-3 architectures that the release registers, with their classes."""
    # Both spellings, Eagle3 and eagle3, hold these letters; few files do.
    found = entries(tree, "agle3")
    return {cls.name: cls for cls in found if EAGLE3.search(cls.name)}


def whitelist(tree: SourceTree) -> Whitelist | None:
    """No release has a list of model types that may be targets."""
    return None


def entries(tree: SourceTree, mentioned: str = "") -> Iterator[ClassSource]:
    """The classes of every ``EntryClass`` in files that mention a word."""
    for path in tree.files.listing(MODELS.replace(".", "/")):
        stem = path.rpartition("/")[2].removesuffix(".py")
        if stem == "registry":
            continue
        text = tree.files.read(path)
        if "EntryClass" not in text or mentioned not in text:
            continue
        module = f"{MODELS}.{stem}"
        source = tree.module(module)
        value = source.values.get("EntryClass") if source is not None else None
        listed = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
        for entry in listed:
            cls = tree.find(module, dotted(entry)) if entry is not None else None
            if cls is None:
                raise LookupError(f"{path}: EntryClass names a class that is not found")
            yield cls


def _reading(tree: SourceTree, cls: ClassSource) -> Reading:
    place = tree.place(cls)
    if _DRAFT.search(cls.name):
        return Reading(place, "no-hook", draft=True)
    owner = tree.provider(cls, HOOK)
    if owner is None:
        return Reading(place, "no-hook")
    hook = tree.place(owner, owner.methods[HOOK])
    if tree.provider(cls, EMBEDDING) is None:
        return Reading(place, "no-embedding", hook)
    body = owner.bodies[HOOK]
    return Reading(
        place, None, hook, policy(tree, cls, body), tuple(sglang_doubts(tree, cls, body))
    )


def policy(tree: SourceTree, cls: ClassSource, hook: ast.FunctionDef) -> str | None:
    """The name of the hook's id policy; None when it passes ids to something out of sight.

    Raises:
        UnknownPolicyError: see there.
    """
    if len(hook.args.args) == 1:
        return "default-only"
    test = " ".join(ast.unparse(node.test) for node in ast.walk(hook) if isinstance(node, ast.If))
    if "layer_ids[0] == 1" in test:
        return "plus1-if-first-is-1"
    if "max(layer_ids) == num_layers" in test:
        return "plus1-unless-max-is-n"
    if any(_adds_one(statement) for statement in hook.body if not isinstance(statement, ast.If)):
        return "plus1-also-on-default"
    if _adds_one(hook):
        return "plus1"
    if calls(hook, HOOK):
        holder = "language_model" if "self.language_model" in ast.unparse(hook) else "model"
        for inner in held(tree, cls, holder):
            owner = tree.provider(inner, HOOK)
            if owner is not None:
                return policy(tree, inner, owner.bodies[HOOK])
        return None
    raise UnknownPolicyError(f"{tree.place(cls)}: {ast.unparse(hook)}")


def _adds_one(node: ast.AST) -> bool:
    """Whether a statement holds ``[value + 1 for value in ids]``."""
    return any(
        isinstance(part, ast.ListComp)
        and isinstance(part.elt, ast.BinOp)
        and isinstance(part.elt.op, ast.Add)
        and isinstance(part.elt.right, ast.Constant)
        and part.elt.right.value == 1
        for part in ast.walk(node)
    )
