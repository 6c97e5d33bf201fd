"""Target architectures of one vLLM release, read from its model registry.

The registry maps an architecture to a class. A target feeds an EAGLE-3 draft when that class has
the interface ``SupportsEagle3`` (0.10.1 on; before, when it has the two methods the runner calls).
From 0.18 on the interface's own setter also asserts that the decoder is an ``EagleModelMixin``.
Until 0.21 a list of model types, read here too, is checked before anything is loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from eagle3_lint.probe.capture import vllm_doubts
from eagle3_lint.probe.construction import held
from eagle3_lint.probe.reading import EAGLE3, Reading, Whitelist
from eagle3_lint.probe.source_tree import ClassSource, SourceTree, below, dotted

MODELS = "vllm.model_executor.models"
INTERFACE = "SupportsEagle3"
MIXIN = "EagleModelMixin"
SETTER = "set_aux_hidden_state_layers"

#: Where SpeculativeConfig has been, newest first.
_CONFIG_FILES = ("vllm.config.speculative", "vllm.config")
_WHITELISTS = frozenset({"eagle3_target_supported", "aux_hidden_states_supported"})


class Registry:
    """Architecture → class, and which of them are drafts."""

    def __init__(self, tree: SourceTree) -> None:
        source = tree.module(f"{MODELS}.registry")
        if source is None:
            raise LookupError("no model registry (model_executor/models/registry.py)")
        self.tree = tree
        self._values = source.values
        self.entries = dict(self._items(source.values["_VLLM_MODELS"]))
        self.drafts = dict(self._items(source.values["_SPECULATIVE_DECODING_MODELS"])).keys()

    def _items(self, table: ast.expr) -> Iterator[tuple[str, tuple[str, str]]]:
        if not isinstance(table, ast.Dict):
            raise LookupError(f"a registry table is no dict: {ast.unparse(table)[:80]}")
        for key, value in zip(table.keys, table.values, strict=True):
            if key is not None:
                yield ast.literal_eval(key), ast.literal_eval(value)
            elif isinstance(value, ast.Name):
                yield from self._items(self._values[value.id])
            elif not isinstance(value, ast.DictComp):
                # A comprehension repeats architectures of another table.
                raise LookupError(f"a registry table includes {ast.unparse(value)[:80]}")

    def find(self, architecture: str) -> ClassSource | None:
        """The class of an architecture; None when it is made by a function call."""
        module, name = self.entries[architecture]
        return self.tree.find(module if "." in module else f"{MODELS}.{module}", name)


def read(tree: SourceTree, transformers: str, only: str = "") -> dict[str, Reading]:
    """Every architecture that the release registers.

    Args:
        transformers: the release's requirement on transformers, such as ``>=4.56.0,<5``.
        only: one architecture, which is quicker.
    """
    registry = Registry(tree)
    found: dict[str, Reading] = {}
    for name in registry.entries:
        if only not in ("", name):
            continue
        cls = registry.find(name)
        place = "model_executor/models/registry.py" if cls is None else tree.place(cls)
        if cls is None or name in registry.drafts:
            found[name] = Reading(place, "no-hook", draft=name in registry.drafts)
        else:
            found[name] = _reading(registry, cls, transformers)
    return found


def drafts(tree: SourceTree) -> dict[str, ClassSource]:
    """EAGLE-3 architectures that the release registers, with their classes."""
    registry = Registry(tree)
    found = {name: registry.find(name) for name in registry.drafts if EAGLE3.search(name)}
    return {name: cls for name, cls in found.items() if cls is not None}


def _reading(registry: Registry, cls: ClassSource, transformers: str) -> Reading:
    tree = registry.tree
    place = tree.place(cls)
    interface = tree.find(f"{MODELS}.interfaces", INTERFACE)
    setter = tree.provider(cls, SETTER)
    if setter is None or (interface is not None and not _implements(tree, cls, interface)):
        return Reading(place, "no-hook")
    inherited = interface is not None and setter.name == INTERFACE
    hook = place if inherited else tree.place(setter, setter.methods[SETTER])
    if _wants_newer_transformers(setter.bodies[SETTER], transformers):
        return Reading(place, "transformers-too-old", hook)
    if "_can_record_outputs" in ast.unparse(setter.bodies[SETTER]):
        # The Transformers backend records the outputs of layers; it has no decoder of vLLM's.
        return Reading(place, None, hook)
    decoders = _decoders(registry, cls, setter)
    asserted = inherited and tree.find(f"{MODELS}.interfaces", MIXIN) is not None
    if asserted and decoders and not any(_is_mixin(tree, decoder) for decoder in decoders):
        return Reading(place, "no-mixin", hook)
    return Reading(place, None, hook, doubts=tuple(vllm_doubts(tree, decoders)))


def _implements(tree: SourceTree, cls: ClassSource, interface: ClassSource) -> bool:
    """Whether isinstance() holds: by inheritance, or by having every member of the protocol."""
    if any(c.name == INTERFACE for c in tree.lineage(cls)):
        return True
    members = {name for c in tree.lineage(interface) for name in c.methods}
    return all(tree.provider(cls, member) is not None for member in members)


def _wants_newer_transformers(setter: ast.FunctionDef, requirement: str) -> bool:
    """Whether the setter asks for a transformers that the release's own pin rules out."""
    for node in ast.walk(setter):
        if isinstance(node, ast.Call) and dotted(node.func) == "self.check_version":
            wanted = Version(ast.literal_eval(node.args[0]))
            bounds = [Version(s.version) for s in SpecifierSet(requirement) if s.operator == "<"]
            # An upper bound rules out the pre-releases of its own version too.
            return any(bound <= Version(wanted.base_version) for bound in bounds)
    return False


def _decoders(registry: Registry, cls: ClassSource, setter: ClassSource) -> list[ClassSource]:
    """The decoder that gets the mark; empty when it follows from the text model's config."""
    tree = registry.tree
    text_models = held(tree, cls, "language_model") + _registered(registry, cls)
    if not text_models:
        own = held(tree, cls, "model")
        wraps = "language_model" in ast.unparse(setter.bodies[SETTER])
        wraps = wraps and tree.provider(cls, "get_language_model") is not None
        return [] if wraps and not any(_is_mixin(tree, model) for model in own) else own
    decoders = [decoder for model in text_models for decoder in held(tree, model, "model")]
    return decoders or [model for model in text_models if _is_mixin(tree, model)]


def _is_mixin(tree: SourceTree, cls: ClassSource) -> bool:
    return any(c.name == MIXIN for c in tree.lineage(cls))


def _registered(registry: Registry, cls: ClassSource) -> list[ClassSource]:
    """Text models that a wrapper builds by naming their architectures."""
    for owner in registry.tree.lineage(cls):
        init = owner.bodies.get("__init__")
        if init is None:
            continue
        for node in ast.walk(init):
            if not isinstance(node, ast.keyword) or node.arg != "architectures":
                continue
            if isinstance(node.value, ast.List):
                names = [ast.literal_eval(element) for element in node.value.elts]
                found = [registry.find(name) for name in names if name in registry.entries]
                return [model for model in found if model is not None]
        return []
    return []


def whitelist(tree: SourceTree) -> Whitelist | None:
    """The list of model types that may be targets; None when the release has none."""
    for module in _CONFIG_FILES:
        path, source = tree.path(module), tree.module(module)
        if path is None or source is None or "SpeculativeConfig" not in source.classes:
            continue
        verify = source.classes["SpeculativeConfig"].bodies["_verify_args"]
        plain = source.imports.get("dataclass", ("", None))[0] == "dataclasses"
        wrapper = "ValidationError: 1 validation error for SpeculativeConfig\n  Value error, "
        kind = "ValueError: " if plain else wrapper
        inside = below(path)
        for node in ast.walk(verify):
            if isinstance(node, ast.If) and "hf_text_config.model_type" in ast.unparse(node.test):
                for raised in node.body:
                    message = _message(raised)
                    if "only supported for" in message:
                        words = _substrings(verify, node.test)
                        return Whitelist(words, kind + message, f"{inside}:{raised.lineno}")
    return None


def _substrings(verify: ast.FunctionDef, test: ast.expr) -> tuple[str, ...]:
    """The list that the test names, or the one word that it compares with."""
    named = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)} & _WHITELISTS
    for node in ast.walk(verify):
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) in named:
            return tuple(ast.literal_eval(node.value))
    compared = (n.left for n in ast.walk(test) if isinstance(n, ast.Compare))
    words = [n.value for n in compared if isinstance(n, ast.Constant)]
    return (str(words[0]),)


def _message(statement: ast.stmt) -> str:
    """The text of a raise, its f-string values named ``{known}`` and ``{model_type}``."""
    if not isinstance(statement, ast.Raise) or not isinstance(statement.exc, ast.Call):
        return ""
    message = statement.exc.args[0]
    if not isinstance(message, ast.JoinedStr):
        return str(ast.literal_eval(message))
    text = ""
    for part in message.values:
        if isinstance(part, ast.Constant):
            text += str(part.value)
        elif isinstance(part, ast.FormattedValue):
            name = dotted(part.value)
            names = {"self.method": "eagle3", **dict.fromkeys(_WHITELISTS, "{known}")}
            text += names.get(name, "'{model_type}'")
    return text
