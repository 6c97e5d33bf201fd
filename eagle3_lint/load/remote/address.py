"""``hf://org/name[@revision][/folder]`` and what people write instead of it."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen

SCHEME = "hf://"
#: The Hub's own name rules, as far as they keep a name from meaning something else in a URL.
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*", re.ASCII)
#: Revisions with a slash; any other one writes it as %2F (huggingface_hub parses hf:// so too).
_REFERENCE = re.compile(r"refs/(?:pr/\d+|convert/[\w.-]+)(?=/|$)")
_HOSTS = ("https://huggingface.co/", "https://hf.co/")
#: Routes of the Hub's pages that lead to a revision and a path in it.
_PAGES = ("tree", "blob", "resolve", "raw")
_OTHER_KINDS = ("datasets", "spaces", "kernels", "buckets")


@frozen
class Address:
    """A place on the Hub.

    Attributes:
        given: what the user wrote. repository: ``org/name``.
        revision: a branch, a tag, a commit; None is the main branch.
        path: a folder in the repository, or a file; empty for all of it.
    """

    given: str
    repository: str
    revision: str | None = None
    path: str = ""

    @property
    def key(self) -> str:
        """The same for all spellings of one place."""
        return f"{SCHEME}{self.repository}@{self.revision or 'main'}/{self.path}".rstrip("/")

    @property
    def bare(self) -> bool:
        """Whether it was written as ``org/name``, which could have been a path on this disk."""
        return "://" not in self.given


def is_hub(text: str) -> bool:
    """Whether a text is an address on the Hub, a page of it included."""
    return "://" not in text or text.startswith((SCHEME, *_hosts()))


def parse(text: str) -> Address:
    """An address from ``hf://org/name[@revision][/folder]`` or ``hf://org/name/folder@revision``.

    ``hf://`` may be missing, and a page of the Hub (``https://huggingface.co/org/name/tree/main``)
    is the same as its address.

    Raises:
        InputError: it is none.
    """
    given = text
    text = re.sub("^hf:/(?!/)", SCHEME, text)  # as pathlib leaves it
    for host in _hosts():
        if text.startswith(host):
            return _of_page(given, text[len(host) :].split("?")[0].split("#")[0])
    rest = text.removeprefix(SCHEME).strip("/").removeprefix("models/")
    organisation, _, rest = rest.partition("/")
    if organisation in _OTHER_KINDS:
        raise InputError(f"{given}: a draft is a model repository, and {organisation}/ has none")
    named, slash, path = rest.partition("/")
    name, at, revision = named.partition("@")
    if at:
        found = _REFERENCE.match(revision + slash + path)
        if found is not None:
            path = (revision + slash + path)[found.end() :].strip("/")
            revision = found[0]
    elif "@" in path:
        path, at, revision = path.rpartition("@")
    return _checked(given, organisation, name, unquote(revision) if at else None, path)


def _hosts() -> tuple[str, ...]:
    own = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    return (f"{own}/", *_HOSTS) if own else _HOSTS


def _of_page(given: str, rest: str) -> Address:
    parts = [unquote(part) for part in rest.strip("/").split("/")]
    if parts[0] in _OTHER_KINDS:
        raise InputError(f"{given}: a draft is a model repository, and {parts[0]}/ has none")
    organisation, name, *others = [*parts, ""] if len(parts) < 2 else parts
    if not others:
        return _checked(given, organisation, name, None, "")
    if others[0] not in _PAGES or len(others) < 2:
        raise InputError(f"{given}: this page is no draft; write hf://{organisation}/{name}")
    size = 1
    reference = _REFERENCE.match("/".join(others[1:]))
    if reference is not None and "/" not in others[1]:
        size += reference[0].count("/")
    revision, path = "/".join(others[1 : size + 1]), "/".join(others[size + 1 :])
    return _checked(given, organisation, name, revision, path)


def _checked(given: str, organisation: str, name: str, revision: str | None, path: str) -> Address:
    for part in (organisation, name):
        if not _NAME.fullmatch(part):
            raise InputError(f"{given}: write hf://org/name[@revision][/folder]")
    path = path.strip("/")
    if revision == "" or any(part in ("", ".", "..") for part in path.split("/") if path):
        raise InputError(f"{given}: write hf://org/name[@revision][/folder]")
    return Address(given, f"{organisation}/{name}", revision, path)
