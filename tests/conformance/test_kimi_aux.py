"""Kimi-K2.5 and the ids of its Llama-style drafts: what ``check`` says, and what wheels do.

Every release that can feed a draft from Kimi-K2.5 is asked about the two usual lists of ids, at the
top level, in ``eagle_config``, in both places and in none. Its own code answers, cut out of its
files (``wheel_code``), so neither torch nor the runtime is imported; our side is the public
``eagle3_lint.check``. Releases that cannot are asked too: their code has to raise.

Real, for SGLang, is what ``sglang_aux_oracle`` says. Real for vLLM: the statement or method of
either model runner that sets the layers (``vllm_aux_runner``), the functions that it calls, and the
setters, defaults and forward passes of the Kimi class, its text model and the decoder in it. Not
real there: the draft's configuration object, which has the keys of config.json as attributes, the
way from the Kimi class to its text model, and decoder layers, which only count.
``test_vllm_aux.py`` has the way from config.json, with torch.

A few releases, those beside which an answer changes, are asked in every test run if they are
unpacked; all of them only with ``-m conformance``.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast

import pytest

import eagle3_lint
from eagle3_lint.contract.rules_folder import rules_folder
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.models import find_target_model
from eagle3_lint.probe.construction import held
from eagle3_lint.probe.source_tree import ClassSource
from eagle3_lint.probe.vllm_targets import SETTER, Registry
from eagle3_lint.releases import Target
from eagle3_lint.report.model import Result
from eagle3_lint.support import SupportTable
from tests.conformance import sources, vllm_aux_runner
from tests.conformance.aux_cases import IDS
from tests.conformance.corpus import Case
from tests.conformance.draft import llama
from tests.conformance.sglang_aux_oracle import fed
from tests.conformance.sglang_aux_target import Layer, States, Tokens, returned_names
from tests.conformance.vllm_aux import RUNNERS
from tests.conformance.wheel_code import WheelCode
from tests.conformance.writing import write

MODEL: Final = "kimi-k2.5"
KIMI: Final = "KimiK25ForConditionalGeneration"
LAYERS: Final = 61

#: The same three states, by the layers that they enter and by those that they leave.
INPUTS: Final = (2, 30, 58)
OUTPUTS: Final = (1, 29, 57)

#: Ids at the top level, and ids in ``eagle_config``.
PLACES: Final[Mapping[str, tuple[States | None, States | None]]] = {
    "none": (None, None),
    "top inputs": (INPUTS, None),
    "top outputs": (OUTPUTS, None),
    "nested inputs": (None, INPUTS),
    "nested outputs": (None, OUTPUTS),
    "inputs twice": (INPUTS, INPUTS),
    "outputs twice": (OUTPUTS, OUTPUTS),
    # For both runtimes: vLLM looks at the top level first, SGLang in eagle_config only.
    "top inputs, nested outputs": (INPUTS, OUTPUTS),
    "top outputs, nested inputs": (OUTPUTS, INPUTS),
}

#: The first and the last release that feed a draft, and those beside which answers change.
EVERY_RUN: Final[Mapping[str, Collection[str]]] = {
    "sglang": ("0.5.9", "0.5.10", "0.5.12", "0.5.13", "0.5.23"),
    "vllm": ("0.17.1", "0.18.0", "0.21.0", "0.22.0", "0.29.0", "0.33.0"),
}


class Fed(NamedTuple):
    """Where ids are read, and the states that the target model hands over."""

    read_from: str
    states: States | None


Answers = dict[str, Fed]


class Id(int):
    """A layer id that knows the place it stood in: vLLM hands on a tuple of its own."""

    place: str


def _ids(ids: States, place: str) -> list[Id]:
    found = [Id(i) for i in ids]
    for one in found:
        one.place = place
    return found


def config(place: str) -> dict[str, Any]:
    """The draft's config.json. Its sizes are small and not Kimi's, which no reader of ids minds."""
    top, nested = PLACES[place]
    written: dict[str, Any] = dict(llama().fields)
    if top is not None:
        written[IDS] = _ids(top, "top")
    if nested is not None:
        written["eagle_config"] = {IDS: _ids(nested, "nested")}
    return written


# --- our side -------------------------------------------------------------------------------------


@pytest.fixture(name="drafts", scope="module")
def _drafts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with a whole draft for each place."""
    draft, room = llama(), tmp_path_factory.mktemp("kimi")
    cases = (
        Case(place, config(place), dict(draft.tensors), draft.d2t, frozenset()) for place in PLACES
    )
    return {case.name: write(case, room / case.name) for case in cases}


def said(
    draft: Path, runtime: str, release: str, runner: str | None, rules: Path | None = None
) -> Result:
    target = f"{runtime}=={release}"
    report = eagle3_lint.check(
        draft, targets=[target], target_model=MODEL, runner=runner, rules=rules
    )
    [result] = report.checkpoints[0].results
    assert (result.target.runtime, result.target.release) == (runtime, release)
    return result


def ours(
    drafts: Mapping[str, Path],
    runtime: str,
    release: str,
    runner: str | None,
    rules: Path | None = None,
) -> Answers:
    found: Answers = {}
    for place, draft in drafts.items():
        aux = said(draft, runtime, release, runner, rules).aux
        assert aux is not None
        found[place] = Fed(aux.read_from, aux.states)
    return found


# --- their side -----------------------------------------------------------------------------------


class NotFedError(Exception):
    """SGLang's code raised before it handed anything over."""


def theirs(runtime: str, release: str, runner: str | None) -> Answers:
    """A release's own answers.

    Raises KeyError when it registers no Kimi-K2.5, and what its code raises when that is there but
    cannot be told what to capture (NotFedError for SGLang).
    """
    if runtime == "sglang":
        return _sglang(sources.cache() / "sglang" / release)
    assert runner is not None
    return _vllm(sources.cache() / "vllm" / release, runner)


@cache
def _sglang(folder: Path) -> Answers:
    found: Answers = {}
    for place in PLACES:
        answer = fed(folder, KIMI, config(place), LAYERS)
        if answer.eager.error is not None:
            raise NotFedError(str(answer.eager.error))
        found[place] = Fed(answer.read_from, answer.eager.states)
    return found


@cache
def _vllm(folder: Path, runner: str) -> Answers:
    code = vllm_code(folder)
    return {place: _vllm_fed(code, runner, config(place)) for place in PLACES}


@cache
def vllm_code(folder: Path) -> WheelCode:
    """The code of an unpacked vLLM release, for both of its runners."""
    names = {
        "cast": cast,
        "islice": islice,
        # isinstance() with a protocol, which looks for its methods.
        "supports_eagle3": lambda model: hasattr(model, SETTER),
    }
    return WheelCode(folder, "vllm", "vllm/", names=names)


def _vllm_fed(code: WheelCode, runner: str, draft_config: Mapping[str, Any]) -> Fed:
    model, decoder = kimi(code)
    tell(code, runner, draft_config, model)
    told = decoder.aux_hidden_state_layers
    # Positions of one token, as many as a Stream has.
    _, captured = model.forward(Tokens(), SimpleNamespace(shape=(1,)))
    assert all(stream.part == "whole" for stream in captured)
    places = {getattr(i, "place", "default") for i in told}
    assert len(places) == 1, told
    return Fed(places.pop(), tuple(stream.layers for stream in captured))


def kimi(code: WheelCode) -> tuple[Any, Any]:
    """A Kimi-K2.5 of a vLLM release, and the decoder in its text model.

    Raises KeyError where there is no Kimi-K2.5. The decoder is None where it names no text model,
    which is where it cannot be told anything (before 0.16.0).
    """
    registry = Registry(code.tree)
    wrapper = registry.find(KIMI)
    assert wrapper is not None
    named = next(built_by_name(wrapper), None)
    if named is None:
        return code.instance(wrapper), None
    text = registry.find(named)
    assert text is not None
    [source] = held(code.tree, text, "model")
    returned = returned_names(source.bodies["forward"])
    decoder = code.instance(
        source,
        layers=[Layer(i, returned) for i in range(LAYERS)],
        start_layer=0,
        end_layer=LAYERS,
        aux_hidden_state_layers=(),
    )
    inside = code.instance(text, model=decoder)
    model = code.instance(wrapper, language_model=inside, get_language_model=lambda: inside)
    return model, decoder


def built_by_name(wrapper: ClassSource) -> Iterator[str]:
    """The architectures under which a wrapper looks its text model up."""
    for node in ast.walk(wrapper.bodies["__init__"]):
        if isinstance(node, ast.keyword) and node.arg == "architectures":
            yield from ast.literal_eval(node.value)


#: The second runner's functions for it.
UTILITIES: Final = "v1/worker/gpu/spec_decode/eagle/eagle3_utils.py"
READS: Final = "get_eagle3_aux_layers_from_config"
SETS: Final = "set_eagle3_aux_hidden_state_layers"


def tell(code: WheelCode, runner: str, draft_config: Mapping[str, Any], model: Any) -> None:
    """Lets a model runner tell the target model which layers to capture."""
    module = vllm_aux_runner.FIRST if runner == "v1" else vllm_aux_runner.SECOND
    path = module.removeprefix("vllm.").replace(".", "/") + ".py"
    tree, source = code.parse(path), code.tree.find(module, "GPUModelRunner")
    assert tree is not None and source is not None
    draft = SimpleNamespace(hf_config=SimpleNamespace(**draft_config))
    spec = SimpleNamespace(method="eagle3", draft_model_config=draft)
    made = code.instance(source, model=model, speculative_config=spec)
    setattr(made, vllm_aux_runner.ENABLED, True)
    methods = vllm_aux_runner.methods(tree)
    if vllm_aux_runner.SET_UP in methods:
        getattr(made, vllm_aux_runner.SET_UP)()
        return
    names: dict[str, Any] = {"self": made}
    if runner == "v2":
        reads = code.function(UTILITIES, READS, {})
        names[SETS] = code.function(UTILITIES, SETS, {READS: reads})
    code.run(vllm_aux_runner.setting(methods["load_model"]), path, names)


# --- which releases -------------------------------------------------------------------------------


def state(runtime: str, release: str) -> str:
    """What our data say of Kimi-K2.5 in a release: ``yes``, or what it lacks."""
    return SupportTable().of(Target(runtime, release), find_target_model(MODEL)).state


STATES: Final = {
    (runtime, release): state(runtime, release)
    for runtime in ("sglang", "vllm")
    for release in runtime_file(runtime).releases
}

FEEDING: Final = [
    pytest.param(runtime, release, runner, id="-".join(filter(None, (runtime, release, runner))))
    for (runtime, release), lacks in STATES.items()
    if lacks == "yes"
    for runner in (RUNNERS if runtime == "vllm" else (None,))
]

NOT_FEEDING: Final = [
    pytest.param(runtime, release, lacks, id=f"{runtime}-{release}-{lacks}")
    for (runtime, release), lacks in STATES.items()
    if lacks != "yes"
]


def need(runtime: str, release: str) -> None:
    """Skips when the release is not unpacked."""
    if not (sources.cache() / runtime / release / ".complete").is_file():
        pytest.skip(f"not unpacked: sources.fetch('{runtime}', '{release}')")


@pytest.fixture(name="opted_in")
def _opted_in(request: pytest.FixtureRequest, runtime: str, release: str) -> None:
    asked = "conformance" in request.config.getoption("-m")
    if not asked and release not in EVERY_RUN[runtime]:
        pytest.skip("opt-in: -m conformance")


# --- tests ----------------------------------------------------------------------------------------


def test_the_known_model() -> None:
    """Its wrapper's architecture, and ``text_config.num_hidden_layers`` of its config.json."""
    model = find_target_model(MODEL)
    assert (model.architecture, model.num_hidden_layers) == (KIMI, LAYERS)


DEFAULT: Final = Fed("default", (2, LAYERS // 2, LAYERS - 3))

# Read off the sources, so that a stand-in which answers for a release is seen.
BY_HAND: Final = [
    # models/deepseek_v2.py:2541, [val + 1 for val in layer_ids]; 0.5.13:2752, if the first is 1
    ("sglang", "0.5.12", None, "nested inputs", Fed("nested", (3, 31, 59))),
    ("sglang", "0.5.12", None, "nested outputs", Fed("nested", (2, 30, 58))),
    ("sglang", "0.5.13", None, "nested inputs", Fed("nested", (2, 30, 58))),
    ("sglang", "0.5.13", None, "nested outputs", Fed("nested", (2, 30, 58))),
    # model_executor/model_runner_components/spec_aux_hidden_state.py:187, eagle_config or nothing
    ("sglang", "0.5.23", None, "top outputs", DEFAULT),
    ("sglang", "0.5.23", None, "top inputs, nested outputs", Fed("nested", (2, 30, 58))),
    # v1/worker/gpu_model_runner.py:5041; 0.22.0:5253 and 0.33.0:5219 look in eagle_config too
    ("vllm", "0.21.0", "v1", "nested outputs", DEFAULT),
    ("vllm", "0.22.0", "v1", "nested outputs", Fed("nested", (1, 29, 57))),
    ("vllm", "0.33.0", "v1", "top inputs, nested outputs", Fed("top", (2, 30, 58))),
    # v1/worker/gpu/spec_decode/eagle/eagle3_utils.py:119
    ("vllm", "0.33.0", "v2", "nested outputs", DEFAULT),
    ("vllm", "0.33.0", "v2", "top outputs, nested inputs", Fed("top", (1, 29, 57))),
]


@pytest.mark.parametrize(("runtime", "release", "runner", "place", "expected"), BY_HAND)
def test_by_hand(runtime: str, release: str, runner: str | None, place: str, expected: Fed) -> None:
    need(runtime, release)
    assert theirs(runtime, release, runner)[place] == expected


def differences(one: Answers, other: Answers) -> dict[str, tuple[Fed, Fed]]:
    """Places with different answers. Both have all of them."""
    assert one.keys() == other.keys() == PLACES.keys()
    return {place: (one[place], other[place]) for place in one if one[place] != other[place]}


@pytest.mark.conformance
@pytest.mark.usefixtures("opted_in")
@pytest.mark.parametrize(("runtime", "release", "runner"), FEEDING)
def test_release(
    runtime: str, release: str, runner: str | None, drafts: Mapping[str, Path]
) -> None:
    need(runtime, release)
    mine = ours(drafts, runtime, release, runner)
    assert differences(theirs(runtime, release, runner), mine) == {}


#: What a release without it raises in the place of an answer, and the rule that says so.
LACKS: Final[Mapping[tuple[str, str], tuple[type[Exception], str, str]]] = {
    ("sglang", "unregistered"): (KeyError, KIMI, "E3L602"),
    ("sglang", "no-hook"): (NotFedError, "no attribute 'set_eagle3_layers_to_capture'", "E3L601"),
    ("vllm", "unregistered"): (KeyError, KIMI, "E3L602"),
    # The list of model types comes first, but its class has no setter either.
    ("vllm", "refused"): (RuntimeError, "Model does not support EAGLE3 interface", "E3L601"),
}


@pytest.mark.conformance
@pytest.mark.usefixtures("opted_in")
@pytest.mark.parametrize(("runtime", "release", "lacks"), NOT_FEEDING)
def test_release_without_it(
    runtime: str, release: str, lacks: str, drafts: Mapping[str, Path]
) -> None:
    need(runtime, release)
    error, words, rule = LACKS[runtime, lacks]
    with pytest.raises(error, match=words):
        theirs(runtime, release, "v1")
    result = said(drafts["none"], runtime, release, None)
    assert result.verdict == "refused"
    assert rule in {diagnostic.rule for diagnostic in result.diagnostics}


@dataclass(frozen=True)
class Mistake:
    """In ``file`` of the rules, ``true`` becomes ``false``; ``seen`` are the places that notice."""

    name: str
    runtime: str
    release: str
    runner: str | None
    file: str
    true: str
    false: str
    seen: frozenset[str]


def _where(top: bool | None = None, nested: bool | None = None) -> frozenset[str]:
    """Places with or without ids at the top level, or in ``eagle_config``."""
    return frozenset(
        name
        for name, (one, other) in PLACES.items()
        if top in (None, one is not None) and nested in (None, other is not None)
    )


SGLANG, VLLM = "contracts/sglang/runtime.toml", "contracts/vllm/runtime.toml"
TARGETS = "targets/sglang.json"
SOME_IDS = frozenset(PLACES) - {"none"}
NESTED_INPUTS = frozenset(name for name, (_, nested) in PLACES.items() if nested == INPUTS)
MISTAKES = [
    # Outputs of layers are raised by one either way, inputs by one policy alone.
    Mistake("outputs after 0.5.12", "sglang", "0.5.13", None, TARGETS,
            '"plus1-if-first-is-1"', '"plus1"', NESTED_INPUTS),
    Mistake("inputs before 0.5.13", "sglang", "0.5.12", None, TARGETS,
            '"plus1"', '"plus1-if-first-is-1"', NESTED_INPUTS),
    Mistake("the top level is read", "sglang", "0.5.23", None, SGLANG,
            f'"eagle_config.{IDS}"', f'"{IDS}"', SOME_IDS),
    Mistake("the first runner does not read eagle_config", "vllm", "0.22.0", "v1", VLLM,
            f'"eagle_config.{IDS}",', "", _where(top=False, nested=True)),
    Mistake("the first runner reads eagle_config first", "vllm", "0.29.0", "v1", VLLM,
            f'"{IDS}",\n  "eagle_config.{IDS}",', f'"eagle_config.{IDS}",\n  "{IDS}",',
            _where(top=True, nested=True)),
    Mistake("the second runner reads eagle_config", "vllm", "0.29.0", "v2", VLLM,
            f'"{IDS}",\n  "dflash', f'"{IDS}",\n  "eagle_config.{IDS}",\n  "dflash',
            _where(top=False, nested=True)),
    Mistake("another default", "vllm", "0.33.0", "v2", VLLM,
            'default = ["2",', 'default = ["1",', _where(top=False)),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_a_mistake_is_noticed(mistake: Mistake, drafts: Mapping[str, Path], tmp_path: Path) -> None:
    need(mistake.runtime, mistake.release)
    asked = mistake.runtime, mistake.release, mistake.runner
    answers = theirs(*asked)
    assert differences(answers, ours(drafts, *asked)) == {}
    rules = tmp_path / "rules"
    shutil.copytree(rules_folder(), rules, ignore=shutil.ignore_patterns("build"))
    path = rules / mistake.file
    text = path.read_text(encoding="utf-8")
    assert mistake.true in text
    path.write_text(text.replace(mistake.true, mistake.false), encoding="utf-8")
    assert differences(answers, ours(drafts, *asked, rules)).keys() == mistake.seen
