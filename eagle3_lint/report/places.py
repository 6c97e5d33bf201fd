"""Findings as CI systems want them: files as the repository has them, and a name that lasts."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from json import dumps
from pathlib import Path
from urllib.parse import quote_from_bytes

from eagle3_lint.diagnostic import Diagnostic, Place
from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import CheckpointReport, Report, Result, TargetReport

#: What CI systems call the folder that they checked the repository out into.
_CHECKOUTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
#: How a draft's own files end; another file that a finding names lies where its name says.
_OF_A_DRAFT = (".json", ".safetensors", ".bin")
_CONFIG = Place("config.json")
#: Controls but tab and line ends, halves of surrogate pairs (JSON and file names can hold both),
#: and what XML 1.0 (2.2, Char) leaves out besides.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def repository() -> Path:
    """The folder that CI systems tell files from: the checkout that the working directory is in.

    Without one it is the working directory itself.
    """
    here = Path.cwd()
    for name in _CHECKOUTS:
        checkout = os.environ.get(name)
        if checkout and here.is_relative_to(os.path.realpath(checkout)):
            return Path(os.path.realpath(checkout))
    return here


@frozen
class Found:
    """One finding for one target.

    A finding that several targets share is told once for each: message, severity and fix can
    differ between them, and it goes away for one target before it does for another.

    Attributes:
        fingerprint: what stays the same from run to run: 32 hexadecimal digits from the rule, the
            target, and the draft's files, tensors and pointers. Line numbers, words and where a
            draft outside the repository lies have no part in it. If all this is equal in two
            findings, the second one's has ``:2`` behind it.
    """

    checkpoint: CheckpointReport
    result: Result
    diagnostic: Diagnostic
    fingerprint: str

    @property
    def place(self) -> Place:
        """The first place; for a finding that has none, the file that describes the draft."""
        return self.diagnostic.where[0] if self.diagnostic.where else _CONFIG

    @property
    def text(self) -> str:
        """The message, with the target in front where it does not name it."""
        target, message = self.result.target, self.diagnostic.message
        named = f"{target.runtime} {target.release}" in message
        return visible(message if named else f"{target}: {message}")


def findings(report: Report, root: Path) -> Iterator[Found]:
    """Every finding for every target, in the order of the report.

    Args:
        root: the repository's folder.
    """
    seen: Counter[str] = Counter()
    for checkpoint in report.checkpoints:
        for result in checkpoint.results:
            for diagnostic in result.diagnostics:
                mark = _fingerprint(checkpoint, result.target, diagnostic, root)
                seen[mark] += 1
                again = f":{seen[mark]}" if seen[mark] > 1 else ""
                yield Found(checkpoint, result, diagnostic, mark + again)


def _fingerprint(
    checkpoint: CheckpointReport, target: TargetReport, diagnostic: Diagnostic, root: Path
) -> str:
    parts = [
        _lasting(located(checkpoint.path, "", root)),
        diagnostic.rule,
        target.runtime,
        target.release,
        # A name, or the path of a config.json.
        _last((target.model or "").removesuffix("/config.json")),
        sorted([_lasting(p.file), p.tensor or "", p.pointer or ""] for p in diagnostic.where),
    ]
    return sha256(dumps(parts).encode()).hexdigest()[:32]


def _lasting(path: str) -> str:
    """A path in the repository; of one outside of it only the last part."""
    return _last(path) if path.startswith(("/", "..")) else path


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def located(draft: str, file: str, root: Path) -> str:
    """A file of a draft, with slashes: from ``root`` if it lies below, else absolute.

    Args:
        draft: the folder, as the report has it; an address (``hf://...``) stays one.
        file: as a :class:`Place` has it; nothing for the folder itself.
    """
    if "://" in draft:
        return f"{draft.rstrip('/')}/{file}".rstrip("/")
    inside = not file or file.endswith(_OF_A_DRAFT)
    whole = Path(os.path.abspath(os.path.join(draft, file) if inside else file))
    return (whole.relative_to(root) if whole.is_relative_to(root) else whole).as_posix()


def uri(path: str) -> str:
    """What :func:`located` gives as a URI (RFC 3986); relative stays relative."""
    scheme, address, rest = path.rpartition("://")
    if address:
        return f"{scheme}://{quote_from_bytes(_bytes(rest), safe='/@')}"
    quoted = quote_from_bytes(_bytes(path), safe="/")
    return f"file://{quoted}" if quoted.startswith("/") else quoted


def _bytes(path: str) -> bytes:
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:  # a name that only JSON can hold
        return visible(path).encode()


def visible(text: str) -> str:
    r"""Text that UTF-8 and XML can hold, on a terminal too: ``\x1b`` for what has no shape."""
    return _INVISIBLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
