"""What a plain check imports: modules, not milliseconds, since time is noisy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drafts import llama_config, llama_tensors, write_draft

FORBIDDEN = {
    "torch", "numpy", "pydantic", "jsonschema", "rich", "huggingface_hub", "safetensors",
    "importlib.metadata", "transformers",
}  # fmt: skip


def imported(code: str) -> set[str]:
    program = f"import sys, json\n{code}\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize("draft_kind", ["good", "bad"])
@pytest.mark.parametrize("form", ["text", "json", "html", "sarif", "github", "gitlab", "junit"])
def test_check_imports_nothing_heavy(tmp_path: Path, draft_kind: str, form: str) -> None:
    layer = "midlayer." if draft_kind == "good" else "layers.0."
    draft = write_draft(tmp_path, llama_config(), llama_tensors(layer))
    arguments = ["check", str(draft), "-t", "sglang==0.5.9", "--format", form, "-m", "kimi-k2.5"]
    code = (
        "from eagle3_lint.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as done:\n    assert done.code in (0, 1)"
    )
    assert imported(code) & FORBIDDEN == set()


def test_importing_the_package_imports_none_of_its_parts() -> None:
    mine = {name for name in imported("import eagle3_lint") if name.startswith("eagle3_lint")}
    assert mine == {"eagle3_lint", "eagle3_lint.version"}
