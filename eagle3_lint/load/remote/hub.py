"""A folder of a repository on the Hub, at one commit.

One request tells the commit, the files and their sizes; a file is then read in stretches from where
the Hub's ``resolve`` route leads, which is asked for once. Endpoint, token, timeout and the cache
are huggingface_hub's. What a download has left in its cache is read there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from eagle3_lint.errors import InputError
from eagle3_lint.frozen import frozen
from eagle3_lint.load.remote.address import SCHEME, Address
from eagle3_lint.load.remote.listing import CONFIG, folder_in, is_drafts_file
from eagle3_lint.load.remote.ranged import Answer, Failure, get
from eagle3_lint.version import __version__

#: The description of a repository has some 200 bytes a file.
_LARGEST_DESCRIPTION = 32 * 2**20
#: Statuses by which a signed link says that it is too old.
_LINK_IS_OLD = (400, 401, 403, 404, 410)


def offline() -> bool:
    """Whether huggingface_hub is told to leave the network alone (``HF_HUB_OFFLINE``)."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


@frozen
class Repository:
    """A repository at one commit.

    Attributes:
        files: path → bytes; None where the Hub does not say.
    """

    name: str
    commit: str
    files: Mapping[str, int | None]


def need_hub(address: Address) -> None:
    """See that huggingface_hub is there.

    Raises:
        InputError: it is not.
    """
    try:
        import huggingface_hub.constants  # noqa: F401
    except ImportError:
        pip = "pip install 'eagle3-lint[hub]'"
        if address.bare:
            message = f"no such file or folder; give the draft's folder (or, for the Hub, {pip})"
        else:
            message = f"reading from the Hub needs huggingface_hub: {pip}"
        raise InputError(f"{address.given}: {message}") from None


def describe(address: Address) -> Repository:
    """Ask the Hub for the commit that a revision is, and for its files.

    Raises:
        InputError: there is no such repository or revision, or the Hub cannot be asked.
    """
    revision = quote(address.revision or "main", safe="")
    route = f"/api/models/{address.repository}/revision/{revision}?blobs=true"
    try:
        answer = _ask(_endpoint() + route, most=_LARGEST_DESCRIPTION)
    except Failure as failure:
        raise InputError(explain(address, failure)) from None
    try:
        said = json.loads(answer.body)
        name, commit = said.get("id", address.repository), said["sha"]
        files = {entry["rfilename"]: _size(entry) for entry in said["siblings"]}
        if not isinstance(name, str) or not isinstance(commit, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"{_endpoint()} does not answer as the Hub does; check HF_ENDPOINT and proxies"
        raise InputError(f"{address.given}: {message}") from None
    return Repository(name, commit, files)


def _size(entry: Mapping[str, Any]) -> int | None:
    """Bytes of a file; of one in LFS, not those of the pointer to it."""
    lfs = entry.get("lfs")
    size = lfs.get("size") if isinstance(lfs, Mapping) else entry.get("size")
    return size if isinstance(size, int) else None


class HubFolder:
    """A folder of a repository, as ``mirror.Source`` wants it.

    Attributes:
        address: ``hf://org/name@commit/folder``. files, inner: as there.
    """

    def __init__(self, address: Address, repository: Repository) -> None:
        """Look at a description; nothing is asked of the Hub.

        Raises:
            InputError: there is no such folder, or no draft's file of that name.
        """
        listing = folder_in(repository.files, address.path, address.given)
        self.address = shown_as(repository.name, repository.commit, listing.folder)
        self.files: Mapping[str, int | None] = listing.files
        self.inner: Sequence[str] = listing.inner
        self._asked, self._repository, self._listing = address, repository, listing
        self._links: dict[str, str] = {}

    def read(self, file: str, begin: int, end: int) -> tuple[bytes, int | None]:
        """Bytes of a file, and its size.

        Raises:
            InputError: they cannot be had.
        """
        path = self._listing.path(file)
        cached = self._cached(path)
        if cached is not None:
            return cached.read(begin, end)
        link = self._links.get(file)
        if link is not None:
            try:
                answer = self._stretch(link, begin, end)
                return answer.body, answer.total
            except Failure as failure:
                if failure.status not in _LINK_IS_OLD:
                    raise InputError(explain(self._asked, failure, path)) from None
        route = f"/{self._repository.name}/resolve/{self._repository.commit}/{quote(path)}"
        try:
            answer = self._stretch(_endpoint() + route, begin, end)
        except Failure as failure:
            raise InputError(explain(self._asked, failure, path)) from None
        self._links[file] = answer.url
        return answer.body, answer.total

    @staticmethod
    def _stretch(url: str, begin: int, end: int) -> Answer:
        return _ask(url, begin, end, most=end - begin)

    def _cached(self, path: str) -> _CachedFile | None:
        found = _in_cache(self._repository.name, path, self._repository.commit)
        return _CachedFile(found) if found is not None else None


class _CachedFile:
    """A whole file that a download has left on this disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, begin: int, end: int) -> tuple[bytes, int]:
        try:
            with self._path.open("rb") as file:
                file.seek(begin)
                return file.read(end - begin), self._path.stat().st_size
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror}") from None


class CachedFolder:
    """A folder of huggingface_hub's cache, all of which is on this disk.

    Attributes:
        address: ``hf://org/name@commit/folder``. folder: where it is.
    """

    def __init__(self, address: Address) -> None:
        """Find a revision in the cache; nothing is asked of the Hub.

        Raises:
            InputError: it is not there.
        """
        before, _, name = address.path.rpartition("/")
        folder = before if is_drafts_file(name) else address.path
        path = f"{folder}/{CONFIG}" if folder else CONFIG
        found = _in_cache(address.repository, path, address.revision or "main")
        if found is None:
            raise InputError(f"{address.given}: {not_in_cache(address, f'{path} is not')}")
        self.folder = found.parent
        commit = found.parents[path.count("/")].name
        self.address = shown_as(address.repository, commit, folder)

    def bring(self, file: str, part: object) -> None:
        """Nothing to do."""


def not_in_cache(address: Address, what: str) -> str:
    """A clause on what the cache does not have, and how it gets there."""
    local = "no such file or folder, and " if address.bare else ""
    revision = f" --revision {address.revision}" if address.revision else ""
    return (
        f"{local}HF_HUB_OFFLINE is set and {what} in huggingface_hub's cache: unset it, or let"
        f" `hf download {address.repository}{revision}` put it there"
    )


def _in_cache(repository: str, path: str, revision: str) -> Path | None:
    from huggingface_hub import constants, try_to_load_from_cache

    try:
        found = try_to_load_from_cache(repository, path, constants.HF_HUB_CACHE, revision)
    except ValueError:  # no name that the Hub would give
        return None
    return Path(found) if isinstance(found, str) else None


def shown_as(repository: str, commit: str, folder: str) -> str:
    """The address of a folder at a commit, as it can be given again."""
    return f"{SCHEME}{repository}@{commit}" + (f"/{folder}" if folder else "")


def _endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT


def _ask(url: str, begin: int = 0, end: int | None = None, *, most: int) -> Answer:
    from huggingface_hub import constants

    return get(
        url,
        dict(_headers(url)),
        begin,
        end,
        most=most,
        timeout=float(constants.HF_HUB_DOWNLOAD_TIMEOUT),
    )


def _headers(url: str) -> Iterator[tuple[str, str]]:
    from huggingface_hub import constants, get_token

    yield "user-agent", f"eagle3-lint/{__version__}"
    own = urlsplit(url)[:2] == urlsplit(_endpoint())[:2]
    # A signed link leads elsewhere, and what is there must not see the token.
    token = get_token() if own and not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else None
    if token:
        yield "authorization", f"Bearer {token}"


def explain(address: Address, failure: Failure, path: str = "") -> str:
    """One line on what the Hub did not give: what, where and what to do."""
    repository, endpoint = address.repository, _endpoint()
    if failure.code == "GatedRepo":
        what = (
            f"access to this repository has to be asked for at {endpoint}/{repository}; then log in"
            " with `hf auth login` or set HF_TOKEN"
        )
    elif failure.code == "RevisionNotFound":
        what = (
            f"{repository} has no revision {address.revision or 'main'!r}; a slash in a branch's"
            " name is written %2F"
        )
    elif failure.code == "EntryNotFound":
        what = f"{repository} has no file {path!r}"
    elif failure.code == "RepoNotFound" or (failure.status in (401, 404) and not failure.code):
        what = (
            f"{endpoint} has no such repository, or a private one: check the name, and for a"
            " private one log in with `hf auth login` or set HF_TOKEN"
        )
    elif failure.status in (401, 403):
        what = f"{endpoint}: {failure}; check what HF_TOKEN may read"
    elif failure.status == 429:
        wait = f" ({failure.wait:g} seconds)" if failure.wait else ""
        what = f"{endpoint}: {failure}: too many requests; wait{wait}, or log in for more"
    elif failure.status is not None:
        what = f"{endpoint}: {failure}; try again later, or {_elsewhere(address)}"
    else:
        what = (
            f"{endpoint}: {failure}; check the network, HF_ENDPOINT and proxies, or"
            f" {_elsewhere(address)}"
        )
    where = f"{address.given}/{path}" if path and failure.code != "EntryNotFound" else address.given
    return f"{where}: {'no such file or folder, and on the Hub: ' if address.bare else ''}{what}"


def _elsewhere(address: Address) -> str:
    return f"download it (hf download {address.repository}) and give the folder"
