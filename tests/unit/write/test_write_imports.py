"""What the writer depends on: little, and less still where nothing is written."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import eagle3_lint.write

PACKAGE = Path(eagle3_lint.write.__file__).parent
ALLOWED = ("eagle3_lint.errors", "eagle3_lint.frozen", "eagle3_lint.load.header")


def imported(code: str) -> set[str]:
    program = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_it_knows_nothing_of_rules() -> None:
    seen = set()
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                seen.add(name)
                if not name.startswith(("eagle3_lint.write", *ALLOWED)):
                    assert name.partition(".")[0] in sys.stdlib_module_names, f"{path}: {name}"
    assert seen >= set(ALLOWED)


def test_a_look_for_an_interrupted_fix_imports_nothing(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nbefore = set(sys.modules)\n"
        "from eagle3_lint.write import pending, recover\n"
        f"assert recover(Path({str(tmp_path)!r})) is None\n"
        f"assert not pending(Path({str(tmp_path)!r}))\n"
        "print(sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    ours = {name for name in imported(code) if name.startswith("eagle3_lint")}
    assert ours == {"eagle3_lint", "eagle3_lint.version", "eagle3_lint.write"}


def test_writing_imports_nothing_heavy() -> None:
    modules = imported("import eagle3_lint.write.fix, eagle3_lint.write.restore")
    heavy = {"ctypes", "subprocess", "asyncio", "safetensors", "numpy", "click", "packaging"}
    assert not modules & heavy


def test_it_imports_where_the_system_is_another(tmp_path: Path) -> None:
    """Windows has no fcntl, and fewer functions in os."""
    missing = (
        "copy_file_range", "fchmod", "fchown", "pread", "pwrite", "listxattr", "setxattr",
        "fstatvfs", "geteuid", "O_NOFOLLOW", "O_DIRECTORY", "major",
    )  # fmt: skip
    code = f"""
import os, signal
import hashlib, json, shutil, ctypes, tempfile, pathlib, dataclasses  # these need the real os
sys.modules["fcntl"] = None
for name in {missing!r}:
    delattr(os, name)
del signal.SIGURG
sys.platform = "win32"
from eagle3_lint.write import FolderChange, TextChange, WeightsChange, apply, seen, undo
folder = pathlib.Path({str(tmp_path)!r})
(folder / "config.json").write_bytes(b"old")
(folder / "a.safetensors").write_bytes((2).to_bytes(8, "little") + b"{{}}")
files = ("config.json", "a.safetensors")
change = FolderChange(
    folder,
    (WeightsChange("a.safetensors", b'{{"__metadata__":{{}}}}'),),
    (TextChange("config.json", b"new"), TextChange("b.json", b"new")),
    tuple(seen(folder, name) for name in files),
)
steps = [file.step for file in apply(change).files]
assert steps == ["streamed", "text created", "text replaced"], steps
assert (folder / "config.json").read_bytes() == b"new"
undo(folder)
assert sorted(os.listdir(folder)) == sorted(files)
assert (folder / "config.json").read_bytes() == b"old"
assert (folder / "a.safetensors").read_bytes()[8:] == b"{{}}"
"""
    imported(code)


def test_the_public_names() -> None:
    for name in eagle3_lint.write.__all__:
        assert getattr(eagle3_lint.write, name) is not None
    assert sorted(eagle3_lint.write.__all__) == dir(eagle3_lint.write)
