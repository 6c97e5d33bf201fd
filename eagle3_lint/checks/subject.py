"""What a check may look at: one draft before one target, already simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from eagle3_lint.contract.model import Contract, SwitchStatement
from eagle3_lint.contract.runtime import RuntimeFile, RuntimeRelease
from eagle3_lint.diagnostic import Place
from eagle3_lint.facts import Facts
from eagle3_lint.forward import Need
from eagle3_lint.frozen import frozen
from eagle3_lint.fused import Part
from eagle3_lint.producer import UNKNOWN_PRODUCER
from eagle3_lint.releases import Target
from eagle3_lint.report.model import ProducerReport
from eagle3_lint.simulate.aux_states import AuxStates
from eagle3_lint.simulate.load import simulate_load
from eagle3_lint.simulate.resolve import Resolution
from eagle3_lint.simulate.result import Load
from eagle3_lint.target_model import Support, TargetModel
from eagle3_lint.trained import Trained
from eagle3_lint.vocabulary import VocabularyMap

if TYPE_CHECKING:
    from eagle3_lint.comparison import Comparison
    from eagle3_lint.probe.patch import Patch


@frozen
class Subject:
    """One draft before one target.

    Attributes:
        contract: None when the configuration reaches no draft class.
        load: None likewise, or when the container cannot be read.
        shapes: of the tensors as ``load`` has them, where other names or parts are tried; None:
            as they are in the files.
        known: names the contract is given from outside.
        support: what the release says of the target model; None when that is not known.
        fed: the aux states that the target feeds.
        trained: the aux states that the draft was trained on.
        vocabulary: the draft's d2t in numbers.
        producer: who wrote the draft.
        needs: what the draft's forward pass was trained to do, switch by switch.
        switches: what the release makes of each switch; empty without a contract.
        trains_with: what the producer means by switches, whatever it writes.
        is_model: the architecture that config.json names is a model's, though no draft's.
        sorts_rows: whether the draft's producer numbers the head's rows by ascending token, as far
            as is known.
        comparison: what the draft's weights say beside the target model's; None without those.
        patch: what the target's own sources say, where sources were asked for.
    """

    facts: Facts
    target: Target
    runtime: RuntimeFile
    release: RuntimeRelease
    resolution: Resolution
    contract: Contract | None
    load: Load | None
    known: Mapping[str, object]
    model: TargetModel | None
    support: Support | None
    fed: AuxStates
    trained: Trained
    vocabulary: VocabularyMap | None = None
    producer: ProducerReport = UNKNOWN_PRODUCER
    needs: tuple[Need, ...] = ()
    switches: Mapping[str, SwitchStatement] = field(default_factory=dict)
    trains_with: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_model: bool = False
    sorts_rows: bool = True
    comparison: Comparison | None = None
    patch: Patch | None = None
    shapes: Mapping[str, tuple[int, ...]] | None = None

    @property
    def layers(self) -> int | None:
        """Decoder layers of the target model, if they are known."""
        return self.model.num_hidden_layers if self.model is not None else None

    @property
    def policy(self) -> str | None:
        """How the release turns ids into aux states for the target model, if that depends."""
        return self.support.policy if self.support is not None else None

    def at(self, tensor: str) -> Place:
        """Where a tensor is."""
        return Place(file=self.facts.tensors[tensor].file, tensor=tensor)

    def all_at(self, tensors: Sequence[str]) -> tuple[Place, ...]:
        return tuple(self.at(t) for t in tensors if t in self.facts.tensors)

    def field(self, *pointers: str) -> tuple[Place, ...]:
        """The first of ``pointers`` that config.json has, with its line; else the file."""
        document = self.facts.document
        for pointer in pointers:
            if document.has(pointer):
                return (Place(file="config.json", pointer=pointer, line=document.line(pointer)),)
        return (Place(file="config.json"),)

    def cite(self, source: str) -> str:
        """A source as a report prints it: runtime in front."""
        return f"{self.target.runtime} {source}" if source[:1].isdigit() else source

    def played(
        self,
        names: Mapping[str, str] | None = None,
        config: Mapping[str, object] | None = None,
        parts: Mapping[str, Sequence[Part]] | None = None,
    ) -> Load:
        """The load of this draft with tensors renamed or split, or configuration fields set."""
        assert self.contract is not None
        shapes = _shapes(self.facts, names or {}, parts or {})
        merged = {**self.resolution.config, **(config or {})}
        return simulate_load(self.contract, merged, shapes, self.known)

    def replayed(self, config: Mapping[str, object]) -> Load:
        """The load of this draft with another configuration, as the class sees it."""
        assert self.contract is not None
        return simulate_load(self.contract, config, self.shapes or self.facts.shapes, self.known)

    def enriched(self, tensors: Mapping[str, tuple[int, ...]]) -> Load:
        """The load of this draft with further tensors: name → shape."""
        assert self.contract is not None
        shapes = {**(self.shapes or self.facts.shapes), **tensors}
        config = self.resolution.config
        return simulate_load(self.contract, config, dict(sorted(shapes.items())), self.known)

    def with_load(
        self,
        load: Load,
        names: Mapping[str, str] | None = None,
        parts: Mapping[str, Sequence[Part]] | None = None,
    ) -> Subject:
        """The draft as it would be with tensors renamed or split, and its load then."""
        shapes = _shapes(self.facts, names or {}, parts or {})
        return replace(self, load=load, shapes=shapes)


def _shapes(
    facts: Facts, names: Mapping[str, str], parts: Mapping[str, Sequence[Part]]
) -> dict[str, tuple[int, ...]]:
    """Name → shape with tensors renamed or split, in the order in which runtimes iterate."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, tensor in facts.tensors.items():
        if name in parts:
            shapes |= {p.name: (p.rows, *tensor.shape[1:]) for p in parts[name]}
        else:
            shapes[names.get(name, name)] = tensor.shape
    return dict(sorted(shapes.items()))
