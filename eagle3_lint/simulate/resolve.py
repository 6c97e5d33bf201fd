"""From config.json to the draft class: the steps a runtime takes before it builds anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NoReturn

from eagle3_lint.contract.expression import compile_expression
from eagle3_lint.contract.model import Raise
from eagle3_lint.contract.runtime import ResolveStep, RuntimeRelease
from eagle3_lint.frozen import frozen
from eagle3_lint.simulate.configure import fill, look_up
from eagle3_lint.simulate.result import Failure


class ConfigClassRefusal(Exception):
    """A configuration class raises on a value; the text is ``"Type: message"``."""


#: Says what a configuration class adds: (model_type, config) → (class name, configuration) or
#: None when the release's transformers knows no such model_type.
ConfigClasses = Callable[[str | None, Mapping[str, object]], "tuple[str, dict[str, object]] | None"]
#: Whether the release has a model class of that name.
IsRegistered = Callable[[str], bool]


@frozen
class Resolution:
    """Where a configuration leads.

    Attributes:
        written: the architecture as config.json has it.
        architecture: what the runtime makes of it and looks up.
        draft_class: the class it reaches; None when it reaches none (see ``failure``).
        config: the configuration as the draft class sees it, class defaults included.
        config_class: name of the configuration class, for messages.
        speculators: whether a nested speculators configuration was lifted.
        replaced_by: the step that put another architecture in place, if one did.
    """

    written: str | None
    architecture: str | None
    draft_class: str | None
    config: Mapping[str, object]
    config_class: str
    speculators: bool
    failure: Failure | None = None
    replaced_by: ResolveStep | None = None


class _Stop(Exception):
    def __init__(self, error: Raise, source: str) -> None:
        super().__init__(error.type)
        self.error, self.source = error, source


class _Walk:
    def __init__(
        self,
        config: Mapping[str, object],
        classes: ConfigClasses,
        registered: IsRegistered,
        tensors: Collection[str],
    ) -> None:
        self.tensors = tensors
        self.config: dict[str, object] = dict(config)
        self.classes, self.registered = classes, registered
        named = config.get("architectures")
        listed = named if isinstance(named, list) else [named]
        self.listed = [a for a in listed if isinstance(a, str)]
        self.written = next(iter(self.listed), None)
        self.architecture = self.written
        kind = config.get("model_type")
        self.model_type = kind if isinstance(kind, str) else None
        self.config_class = "PretrainedConfig"
        self.speculators = False
        self.replaced_by: ResolveStep | None = None
        self.drafts: Mapping[str, str] = {}

    def names(self) -> dict[str, object]:
        named = self.config.get("architectures")
        auto_map = self.config.get("auto_map")
        nested = self.config.get("transformer_layer_config")
        return {
            "listed": self.listed,
            "replaced": int(self.replaced_by is not None),
            "base_model": self.config_class.removesuffix("Config") + "Model",
            "layer_type": nested.get("model_type") if isinstance(nested, Mapping) else None,
            "architectures": named,
            "architectures_type": type(named).__name__,
            "architectures_count": len(named) if isinstance(named, (list, str)) else 0,
            "first_of_architectures": named[0] if isinstance(named, (list, str)) and named else "",
            "has_auto_config": int(isinstance(auto_map, Mapping) and "AutoConfig" in auto_map),
            "has_model_type": int("model_type" in self.config),
            "model_type": self.model_type,
            "architecture": self.architecture,
            "written": self.written,
            "speculators": int(self.speculators),
            "has_speculators_config": int(self.config.get("speculators_config") is not None),
            "has_auto_map": int(bool(self.config.get("auto_map"))),
            "speculators_model_type": self.config.get("speculators_model_type"),
        }

    def applies(self, step: ResolveStep) -> bool:
        if step.model_types and self.model_type not in step.model_types:
            return False
        if step.architectures and self.architecture not in step.architectures:
            return False
        if any(look_up(self.config, path, self) is self for path in step.present):
            return False
        if step.tensor is not None and not any(map(step.tensor.holds, self.tensors)):
            return False
        return step.when is None or bool(compile_expression(step.when)(self._names_for(step)))

    def _names_for(self, step: ResolveStep) -> dict[str, object]:
        read = {name: look_up(self.config, path, None) for name, path in step.reads.items()}
        types = {f"{name}_type": type(value).__name__ for name, value in read.items()}
        return {**self.names(), **types, **read}

    def take(self, step: ResolveStep) -> None:
        if step.do == "refuse":
            self._stop(step)
        elif step.do == "registered":
            if not any(map(self._known, self.listed)):
                self._stop(step)
        elif step.do == "first_registered":
            self.architecture = next(filter(self._known, self.listed), self.architecture)
        elif step.do == "replace":
            self.architecture, self.replaced_by = step.into, step
            self.listed = [step.into]
            self.model_type = step.to_type or self.model_type
        elif step.do == "prefix":
            self.listed = [_prefixed(a, step) for a in self.listed]
            self.architecture = _prefixed(self.architecture or "", step)
        elif step.do == "wrap":
            self.config_class = step.into
        elif step.do == "class":
            self._find_class(step)
        else:
            self._lift(step)

    def _known(self, architecture: str) -> bool:
        return architecture in self.drafts or self.registered(architecture)

    def _stop(self, step: ResolveStep) -> NoReturn:
        assert step.error is not None
        text = fill(step.error.message, self._names_for(step))
        raise _Stop(Raise(step.error.type, text), step.source)

    def _find_class(self, step: ResolveStep) -> None:
        try:
            found = self.classes(self.model_type, self.config)
        except ConfigClassRefusal as refusal:
            raise _Stop(Raise.parse(str(refusal)), step.source) from None
        if found is not None:
            self.config_class, self.config = found
        elif step.into and self.names()["has_auto_config"]:
            # The checkpoint brings a class of its own along, about which nothing more is known.
            self.config_class = step.into
        else:
            self._stop(step)

    def _lift(self, step: ResolveStep) -> None:
        """A nested speculators configuration becomes a flat one."""
        nested = self.config.get("transformer_layer_config")
        flat: dict[str, object] = dict(nested) if isinstance(nested, Mapping) else {}
        kind = flat.pop("model_type", "llama")
        for field, instead in step.copies.items():
            flat[field] = self.config.get(field, None if instead == "null" else instead)
        for field in step.copies_if_set:
            if self.config.get(field):
                flat[field] = self.config[field]
        architecture = step.by_layer_type.get(str(kind)) or step.by_layer_type.get("*")
        if architecture is None:
            self._stop(step)
        self.architecture, self.listed = architecture, [architecture]
        self.config, self.speculators = flat, True
        self.model_type, self.config_class = "speculators", "SpeculatorsConfig"


def _prefixed(architecture: str, step: ResolveStep) -> str:
    """``architecture`` with the step's word in front, unless it is one that is left alone."""
    if step.unless_starts and architecture.startswith(step.unless_starts):
        return architecture
    if step.unless_ends and architecture.endswith(step.unless_ends):
        return architecture
    return step.into + architecture


def resolve(
    release: RuntimeRelease,
    config: Mapping[str, object],
    classes: ConfigClasses,
    registered: IsRegistered,
    tensors: Collection[str] = (),
) -> Resolution:
    """Follow ``config`` to the draft class that ``release`` builds, or to what it raises.

    ``tensors``, the names in the checkpoint, only tell the ways apart in which a class that is no
    draft fails on them.
    """
    walk = _Walk(config, classes, registered, tensors)
    walk.drafts = release.drafts
    failure: Failure | None = None
    try:
        for step in release.steps:
            if walk.applies(step):
                walk.take(step)
        if walk.architecture not in release.drafts:
            if walk.registered(walk.architecture or ""):
                raise _Stop(release.not_a_draft, release.not_a_draft_source)
            raise _Stop(release.unknown, release.unknown_source)
    except _Stop as stopped:
        text = fill(stopped.error.message, walk.names())
        failure = Failure(stopped.error.type, text, "configuration", stopped.source)
    return Resolution(
        written=walk.written,
        architecture=walk.architecture,
        draft_class=None if failure else release.drafts[walk.architecture or ""],
        config=walk.config,
        config_class=walk.config_class,
        speculators=walk.speculators,
        failure=failure,
        replaced_by=walk.replaced_by,
    )
