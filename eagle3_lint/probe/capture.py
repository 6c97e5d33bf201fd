"""Does a target model that has the EAGLE-3 hook also hand the captured states over?

A hook only sets a mark; the forward pass of the decoder has to look at it. Classes exist that
inherit the hook while their decoder looks elsewhere, or nowhere. This module finds candidates by
AST; a human confirms each one in ``rules/targets/overrides.toml``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from eagle3_lint.probe.construction import held
from eagle3_lint.probe.source_tree import ClassSource, SourceTree

_MARKS = frozenset({"layers_to_capture", "_is_layer_to_capture"})


def names_read(function: ast.FunctionDef) -> set[str]:
    """All attribute names, names and string constants that occur in a function."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def forward_names(tree: SourceTree, cls: ClassSource) -> set[str]:
    """What ``forward`` of a class mentions, and of its bases as far as it calls ``super()``."""
    found: set[str] = set()
    for owner in tree.lineage(cls):
        if "forward" not in owner.bodies:
            continue
        here = names_read(owner.bodies["forward"])
        found |= here
        if "super" not in here:
            break
    return found


def sglang_doubts(tree: SourceTree, cls: ClassSource, hook: ast.FunctionDef) -> Iterator[str]:
    """Why the hook of an SGLang target model might not be honoured."""
    marks = names_read(hook)
    outer = forward_names(tree, cls)
    if "logits_processor" in outer and "aux_hidden_states" not in outer:
        yield "forward hands no aux_hidden_states to the logits processor"
    forward = next(c.bodies["forward"] for c in tree.lineage(cls) if "forward" in c.bodies)
    if "aux_hidden_states" in names_read(forward) and not _passes_aux(forward):
        yield "forward unpacks aux_hidden_states and drops them"
    holder = "language_model" if "language_model" in marks else "model"
    inner = held(tree, cls, holder)
    if not inner:
        yield f"cannot tell what self.{holder} is"
    for decoder in inner:
        own = tree.provider(decoder, "set_eagle3_layers_to_capture")
        if own is not None and calls(hook, "set_eagle3_layers_to_capture"):
            if "logits_processor" in forward_names(tree, decoder):
                # A whole causal language model, which is an entry of its own.
                continue
            marks = marks | names_read(own.bodies["set_eagle3_layers_to_capture"])
        if not marks & _MARKS & forward_names(tree, decoder):
            yield f"{decoder.name}.forward never looks at what the hook sets"


def _passes_aux(forward: ast.FunctionDef) -> bool:
    """Whether a call or a return takes aux_hidden_states on."""
    for node in ast.walk(forward):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Return) and node.value is not None:
            parts = list(ast.walk(node.value))  # type: ignore[arg-type]
        if any(isinstance(part, ast.Name) and part.id == "aux_hidden_states" for part in parts):
            return True
    return False


def calls(function: ast.FunctionDef, name: str) -> bool:
    """Whether a function calls a method or function of that name."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        for node in ast.walk(function)
    )


def vllm_doubts(tree: SourceTree, decoders: list[ClassSource]) -> Iterator[str]:
    """Why a decoder of vLLM might not hand over aux hidden states."""
    if not decoders:
        yield "cannot tell which decoder it holds"
    for decoder in decoders:
        names = forward_names(tree, decoder)
        if not names & {"_maybe_add_hidden_state", "aux_hidden_state_layers"}:
            yield f"{decoder.name}.forward never looks at aux_hidden_state_layers"
