"""Every producer's draft, as it is and after a conversion, in the runtimes' own loaders.

The drafts of ``fixtures/``, and one of them with matrices that are stored as one, are asked as they
are, fixed for each runtime and, where that form has their layer, in speculators' nested form. Our
contracts must say the same of each; and what was fixed for a runtime must load whole in the release
that it was fixed for.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import eagle3_lint
from eagle3_lint.checking import read_draft
from eagle3_lint.errors import InputError
from tests.conformance import tensorrt_run
from tests.conformance.answers import PYTHON
from tests.conformance.compare import compare, report
from tests.conformance.corpus import Case, write
from tests.conformance.sglang_run import ask as ask_sglang
from tests.conformance.vllm_run import ask as ask_vllm

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(PYTHON is None, reason="EAGLE3_LINT_ORACLE_PYTHON is not set"),
]
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ASK = {"sglang": ask_sglang, "vllm": ask_vllm, "tensorrt-llm": tensorrt_run.ask}
#: The newest release and two older ones of each.
NEWEST = {"sglang": "0.5.23", "vllm": "0.33.0", "tensorrt-llm": "1.3.0rc25"}
OLDER = (
    ("sglang", "0.5.17"), ("sglang", "0.5.12"), ("vllm", "0.27.0"), ("vllm", "0.22.0"),
    ("tensorrt-llm", "1.3.0rc15"), ("tensorrt-llm", "1.2.0rc2"),
)  # fmt: skip
RELEASES = (*NEWEST.items(), *OLDER)
#: What no release of a runtime has a draft class for.
NOT_SERVED = {("speculators-0.9.0-qwen3", "sglang"), ("speculators-0.9.0-qwen3", "tensorrt-llm")}


#: Latent attention; its a-projections are joined for the drafts of this name.
LATENT = "modelopt-0.47.0-mla"
FUSED = f"{LATENT}, fused"


def names() -> list[str]:
    """The fixtures that the producers' own code wrote, or by their documented names; and FUSED."""
    found = (path.parent.name for path in FIXTURES.glob("*/fixture.json"))
    return [*sorted(name for name in found if not name.startswith("kimi")), FUSED]


def case(name: str, draft: Path) -> Case:
    """A draft on disk as a case of the corpus."""
    facts = read_draft(draft)
    layers = "pair" if len(facts.layers) > 1 else "single"
    family = "mla" if any("kv_a_proj" in n for n in facts.tensors) else "llama"
    return Case(
        name=name,
        config=json.loads((draft / "config.json").read_text(encoding="utf-8")),
        tensors={n: (t.dtype, t.shape) for n, t in facts.tensors.items()},
        d2t=tuple(int(v) for v in facts.d2t) if facts.d2t is not None else None,
        tags=frozenset({family, layers}),
    )


@cache
def drafts() -> tuple[Case, ...]:
    """Each fixture in each state that a conversion leads to."""
    with TemporaryDirectory() as room:
        return tuple(_drafts(Path(room)))


def _drafts(room: Path) -> Iterator[Case]:
    for name in names():
        draft = FIXTURES / name if name != FUSED else fused(room / "fused")
        yield case(f"{name}: as it is", draft)
        for words, runtime, how in (
            *((f"for {runtime}", runtime, {}) for runtime in NEWEST),
            ("nested", "vllm", {"as_": "speculators"}),
        ):
            targets = [f"{runtime}=={NEWEST[runtime]}"]
            converted = room / f"{name} {words}"
            try:
                eagle3_lint.fix(draft, targets, output=converted, **how)
            except InputError:
                continue  # the form has no such layer; tests/unit/test_round_trips.py says which
            if not converted.is_dir():
                shutil.copytree(draft, converted)  # there was nothing to change
            yield case(f"{name}: {words}", converted)


def fused(folder: Path) -> Path:
    """The draft with latent attention, its a-projections joined as the runtimes join them."""
    facts = read_draft(FIXTURES / LATENT)
    joined = Case(
        name=FUSED,
        config=json.loads((FIXTURES / LATENT / "config.json").read_text(encoding="utf-8")),
        tensors={n: (t.dtype, t.shape) for n, t in facts.tensors.items()},
        d2t=None,
        tags=frozenset(),
    )
    layer = "layers.0.self_attn."
    dtype, (first, columns) = joined.tensors.pop(f"{layer}q_a_proj.weight")
    _, (second, _) = joined.tensors.pop(f"{layer}kv_a_proj_with_mqa.weight")
    name = f"{layer}fused_qkv_a_proj_with_mqa.weight"
    joined.tensors[name] = (dtype, (first + second, columns))
    return write(joined, folder)


@cache
def answers(runtime: str, release: str) -> dict[str, dict[str, Any]]:
    assert PYTHON is not None
    if runtime == tensorrt_run.RUNTIME and release not in tensorrt_run.releases():
        pytest.skip(f"the sources of {runtime} {release} are not in the cache")
    with pytest.MonkeyPatch.context() as environment:
        # The oracles' target model serves 2048 positions, and these drafts have 512.
        environment.setenv("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "1")
        return ASK[runtime](Path(PYTHON), release, list(drafts()))


@pytest.mark.parametrize(("runtime", "release"), RELEASES)
def test_the_contracts_say_the_same(runtime: str, release: str) -> None:
    given = answers(runtime, release)
    asked = [one for one in drafts() if one.name in given]
    found = compare(runtime, release, given, asked)
    assert not found, "\n".join(report(found, 200))


@pytest.mark.parametrize(("runtime", "release"), NEWEST.items())
def test_what_was_fixed_for_a_runtime_loads_whole(runtime: str, release: str) -> None:
    given = answers(runtime, release)
    for name in names():
        if (name, runtime) in NOT_SERVED:
            continue
        answer = given[f"{name}: for {runtime}"]
        assert answer["outcome"] == "ok", (name, answer["error"], answer["unfilled"])


def test_the_nested_form_loads_whole() -> None:
    given = answers("vllm", "0.33.0")
    nested = [name for name in given if name.endswith(": nested")]
    assert len(nested) >= 10
    for name in nested:
        assert given[name]["outcome"] == "ok", (name, given[name])
