"""What a file is that should hold weights and does not: a pointer, a web page, nothing at all."""

from __future__ import annotations

from typing import Literal

ForeignKind = Literal[
    "git-lfs-pointer", "torch-zip", "torch-legacy-pickle", "html", "empty-file", "all-zero"
]
#: Bytes that are enough to recognise every kind.
SNIFFED = 64

_MAGIC: tuple[tuple[bytes, ForeignKind, str], ...] = (
    (
        b"version https://git-lfs",
        "git-lfs-pointer",
        "it is a Git LFS pointer, not the weights: run `git lfs pull`",
    ),
    (
        b"PK\x03\x04",
        "torch-zip",
        "it is a zip, as torch.save writes it, not safetensors: name it pytorch_model.bin or save"
        " it with safetensors",
    ),
)
_PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
_MARKUP = (b"<!doctype", b"<html", b"<?xml", b"<!--", b"<head")
#: Formats without a rule of their own; only the words differ.
_OTHER_FORMATS = (
    (b"GGUF", "a GGUF file of llama.cpp"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"{", "bare JSON, such as a server's answer or an index under the wrong name"),
)


def recognise(start: bytes, size: int) -> tuple[ForeignKind, str] | None:
    """The kind of a file that begins with ``start`` and has ``size`` bytes, and a sentence on it.

    Args:
        start: the first :data:`SNIFFED` bytes, or the whole file if it is shorter.
    """
    if size == 0:
        return "empty-file", "the file is empty: a save or a download never wrote into it"
    if start and not any(start):
        return "all-zero", "it begins with zeros: a download that was never filled in"
    for magic, kind, message in _MAGIC:
        if start.startswith(magic):
            return kind, message
    if start.startswith(_PICKLES):
        return "torch-legacy-pickle", (
            "it is a Python pickle, as an old torch.save writes it, not safetensors: load it with"
            " torch and save it with safetensors"
        )
    if start.lstrip(b" \t\r\n\xef\xbb\xbf")[:9].lower().startswith(_MARKUP):
        return "html", "it is a web page, such as a login or error page, not the weights"
    return None


def describe(start: bytes) -> str:
    """What a file without a kind of its own seems to be, as a clause; empty when unknown."""
    for magic, what in _OTHER_FORMATS:
        if start.startswith(magic):
            return f"it is {what}"
    line = start[:SNIFFED].split(b"\n", 1)[0][:40]
    if len(line) >= 4 and all(0x20 <= byte < 0x7F for byte in line):
        return f"it begins with the text {line.decode('ascii')!r}"
    return ""
