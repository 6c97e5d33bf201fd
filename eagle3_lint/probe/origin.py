"""Where a runtime's sources are: an installed package, a wheel, or a source folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path
from zipfile import BadZipFile

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.probe.files import Files, FolderFiles, WheelFiles

#: Where a checkout of a runtime keeps its package, relative to the folder that is given.
_INSIDE = ("", "python", "src", "..")
_VERSION = re.compile(r"^__version__\s*(?::[^=]*)?=\s*(?:version\s*=\s*)?['\"]([^'\"]+)", re.M)
_VERSION_FILES = ("version.py", "_version.py", "__init__.py")


@frozen
class Origin:
    """The sources of one release of one runtime.

    Attributes:
        runtime: name of the runtime, which is the name of its package too.
        release: as the sources state it; None when they do not.
        files: the sources.
        label: what the user calls them.
        transformers: their requirement on transformers (``>=4.56,<5``); empty when unknown.
    """

    runtime: str
    release: str | None
    files: Files
    label: str
    transformers: str = ""


def find_origin(text: str, runtimes: Sequence[str], package: str | None = None) -> Origin:
    """The sources that ``text`` names.

    Args:
        text: a runtime's name (the package installed in this Python environment), a wheel, or a
            folder that holds the package or is it.
        runtimes: names of known runtimes.
        package: only this runtime's sources will do.

    Raises:
        InputError: there are none.
    """
    allowed = (package,) if package is not None else tuple(runtimes)
    if text in allowed:
        return _installed(text)
    path = Path(text)
    if path.is_dir():
        return _in_folder(path, allowed)
    if not path.exists():
        names = ", ".join(allowed)
        raise InputError(
            f"{text}: neither a known runtime ({names}) nor a file or folder; give a runtime's"
            " name, a wheel or a source folder"
        )
    try:
        return _in_wheel(path, allowed)
    except (BadZipFile, OSError) as error:
        raise InputError(f"{path}: cannot be read as a wheel ({error})") from None


def _installed(runtime: str) -> Origin:
    """The package that this Python would import, found without importing it."""
    from importlib.util import find_spec

    spec = find_spec(runtime)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise InputError(
            f"{runtime}: this Python environment has no package of that name; give a wheel"
            f" (pip download --no-deps {runtime}) or a source folder instead"
        )
    # Builds for other processors have metadata of another name, and an editable installation has
    # its metadata elsewhere; the folder of the package is what counts.
    root = Path(places[0]).parent
    found = _in_folder(root, (runtime,))
    release, requirement = found.release, found.transformers
    if release is None or not requirement:
        release, requirement = _registered(runtime, release, requirement)
    return Origin(runtime, release, found.files, f"{runtime}, installed in {root}", requirement)


def _registered(runtime: str, release: str | None, requirement: str) -> tuple[str | None, str]:
    """What the environment's metadata say, where the package's folder does not."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(runtime)
    except PackageNotFoundError:
        return release, requirement
    return release or found.version, requirement or _transformers(found.requires or ())


def _in_folder(path: Path, allowed: Sequence[str]) -> Origin:
    for inside in _INSIDE:
        root = path / inside
        for runtime in allowed:
            if not (root / runtime).is_dir() or (inside == ".." and path.resolve().name != runtime):
                continue
            files = FolderFiles(root.resolve())
            metadata = [p.read_text(encoding="utf-8") for p in _metadata_files(root, runtime)]
            stated, requirement = _stated(metadata[0]) if metadata else (None, "")
            # A checkout beside the metadata of another version states its own in a file.
            return Origin(
                runtime, stated or _version_file(files, runtime), files, str(path), requirement
            )
    names = " or ".join(allowed)
    raise InputError(
        f"{path}: holds no package {names}; give the folder that contains it"
        " (site-packages, an unpacked wheel, a checkout)"
    )


def _metadata_files(root: Path, runtime: str) -> list[Path]:
    return sorted(
        metadata
        for pattern in (f"{runtime}-*.dist-info", f"{runtime}_cpu-*.dist-info")
        for metadata in root.glob(f"{pattern}/METADATA")
    )


def _in_wheel(path: Path, allowed: Sequence[str]) -> Origin:
    files = WheelFiles(path)
    for runtime in allowed:
        if files.listing(runtime):
            named = [n for n in files.names if n.endswith(".dist-info/METADATA")]
            stated, requirement = _stated(files.read(named[0])) if named else (None, "")
            return Origin(runtime, stated, files, path.name, requirement)
    raise InputError(f"{path}: the wheel holds no package {' or '.join(allowed)}")


def _stated(metadata: str) -> tuple[str, str]:
    """Version and requirement on transformers of a METADATA file."""
    headers = HeaderParser().parsestr(metadata)
    return headers["Version"], _transformers(headers.get_all("Requires-Dist") or ())


def _transformers(requirements: Sequence[str]) -> str:
    from packaging.requirements import Requirement

    for text in requirements:
        requirement = Requirement(text)
        if requirement.name == "transformers" and requirement.marker is None:
            return str(requirement.specifier)
    return ""


def _version_file(files: Files, runtime: str) -> str | None:
    for name in _VERSION_FILES:
        if files.exists(f"{runtime}/{name}"):
            match = _VERSION.search(files.read(f"{runtime}/{name}"))
            if match is not None:
                return match[1]
    return None
