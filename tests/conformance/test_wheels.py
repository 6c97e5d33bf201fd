"""``probe`` on real wheels, and a check that follows patched sources."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from eagle3_lint.checking import check
from eagle3_lint.cli import main
from eagle3_lint.contract.runtime import known_runtimes, runtime_file
from eagle3_lint.probe.compare import Prober
from eagle3_lint.probe.origin import find_origin
from tests.conformance import sources
from tests.conformance.answers import PYTHON
from tests.drafts import write_case

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(PYTHON is None, reason="EAGLE3_LINT_ORACLE_PYTHON is not set"),
]
KIMI = "KimiK25ForConditionalGeneration"
EVERY = os.environ.get("EAGLE3_LINT_PROBE") == "all"
RELEASES = [
    pytest.param(runtime, release, id=f"{runtime}-{release}")
    for runtime in known_runtimes()
    for release in runtime_file(runtime).releases
]


@pytest.mark.skipif(not EVERY, reason="reads every release; EAGLE3_LINT_PROBE=all asks for it")
@pytest.mark.parametrize(("runtime", "release"), RELEASES)
def test_the_contract_of_every_release_is_what_its_sources_say(runtime: str, release: str) -> None:
    origin = find_origin(str(sources.fetch(runtime, release)), known_runtimes())
    assert origin.release == release
    assert Prober(origin, release).probe().differences == ()


@pytest.mark.parametrize(("release", "feeds"), [("0.5.9", False), ("0.5.10", True)])
def test_the_hook_of_kimi(release: str, feeds: bool) -> None:
    # models/kimi_k25.py: the class has set_eagle3_layers_to_capture from 0.5.10 on (line 841).
    folder = sources.fetch("sglang", release)
    ran = CliRunner().invoke(main, ["probe", str(folder)])
    assert ran.exit_code == 0, ran.output
    without = ran.output.partition("target models without it")
    assert (KIMI in without[0]) == feeds
    assert (KIMI in without[2]) != feeds


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SGLang 0.5.9 with the hook that 0.5.10 has."""
    folder = tmp_path_factory.mktemp("patched") / "sources"
    shutil.copytree(sources.fetch("sglang", "0.5.9"), folder)
    path = folder / "sglang" / "srt" / "models" / "kimi_k25.py"
    text = path.read_text(encoding="utf-8")
    inside = text.index("    def load_weights(", text.index(f"class {KIMI}"))
    hook = (
        "    def set_eagle3_layers_to_capture(self, layer_ids=None):\n"
        "        self.language_model.set_eagle3_layers_to_capture(layer_ids)\n\n"
        "    def get_embed_and_head(self):\n"
        "        return self.language_model.get_embed_and_head()\n\n"
    )
    path.write_text(text[:inside] + hook + text[inside:], encoding="utf-8")
    return folder


def test_probe_names_the_patch(patched: Path) -> None:
    ran = CliRunner().invoke(main, ["probe", str(patched)])
    assert ran.exit_code == 1
    assert f"target model: {KIMI}" in ran.output
    assert "1 difference " in ran.output


def test_a_check_follows_the_patch(patched: Path, tmp_path: Path) -> None:
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    as_published = check(draft, ["sglang==0.5.9"], "kimi-k2.5").checkpoints[0].results[0]
    assert [d.rule for d in as_published.diagnostics if d.rule == "E3L601"] == ["E3L601"]
    followed = check(draft, [f"sglang@{patched}"], "kimi-k2.5").checkpoints[0].results[0]
    assert followed.target.release == "0.5.9"
    assert "E3L601" not in [d.rule for d in followed.diagnostics]
