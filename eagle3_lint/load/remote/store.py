"""A folder in an object store, or wherever else fsspec reaches (the ``stores`` extra)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any, TypeVar

from eagle3_lint.errors import InputError
from eagle3_lint.load.remote.listing import is_drafts_file

#: Pauses before the second and the third try, in seconds; most clients try again themselves.
WAITS = (0.5, 2.0)
_OPEN = BoundedSemaphore(16)
_SECRETS = re.compile(r"(?<=://)[^/@\s]*@|\?[^\s=]+=\S*")
Given = TypeVar("Given")


class StoreFolder:
    """A folder behind an fsspec URL, as ``mirror.Source`` wants it.

    A store has no commits; what is changed while it is read is told by its size alone.

    Attributes:
        address: the URL without secrets. files, inner: as there.
    """

    def __init__(self, url: str) -> None:
        """List the folder.

        Raises:
            InputError: fsspec or the store's own client is missing, or nothing is there.
        """
        self.address = without_secrets(url).rstrip("/")
        self.inner: Sequence[str] = ()
        self._system, path = self._reach(url)
        self._http = "http" in self._protocols()
        path = path.rstrip("/")
        folder, _, name = path.rpartition("/")
        if is_drafts_file(name):
            path = folder
            self.address = self.address.rpartition("/")[0]
        self._paths: dict[str, str] = {}
        self._sizes: dict[str, int | None] = {}
        self.files: Mapping[str, int | None] = self._sizes
        self._list(path)

    def _list(self, path: str) -> None:
        # An HTTP server lists a folder at the address with the slash.
        listed = path + "/" if self._http else path
        self._system.invalidate_cache(listed)
        for entry in self._try("", lambda: self._system.ls(listed, detail=True)):
            full = str(entry["name"])
            name = full.rstrip("/").rpartition("/")[2]
            # A store can have an entry for the folder itself, a server's page links to sort by.
            own = full.rstrip("/") == path or "?" in name or "\\" in name or name in ("", ".", "..")
            if entry.get("type") != "directory" and not own:
                self._paths[name] = full
                self._sizes[name] = entry.get("size")
        if not self._paths:
            raise InputError(f"{self.address}: no such folder, or no file in it")

    def read(self, file: str, begin: int, end: int) -> tuple[bytes, int | None]:
        """Bytes of a file, and its size.

        Raises:
            InputError: they cannot be had.
        """
        path = self._paths[file]
        size = self._sizes[file]
        if size is None:
            size = self._try(f"/{file}", lambda: self._system.info(path).get("size"))
            self._sizes[file] = size
        last = end if size is None else min(end, size)
        if begin >= last:
            return b"", size
        return self._try(f"/{file}", lambda: self._stretch(path, begin, last, size)), size

    def _stretch(self, path: str, begin: int, end: int, size: int | None) -> bytes:
        body: bytes
        if getattr(self._system, "async_impl", False) and not self._http:
            body = self._system.cat_file(path, start=begin, end=end)
        else:
            # Otherwise read-ahead would fetch megabytes; and this way a web server that gives the
            # whole file instead of a stretch is noticed before it does.
            known = {"size": size} if self._http else {}
            with self._system.open(path, "rb", cache_type="none", **known) as file:
                file.seek(begin)
                body = file.read(end - begin)
        if len(body) != end - begin:
            raise EOFError(f"{end - begin:,} bytes were asked for, and {len(body):,} came")
        return body

    def _reach(self, url: str) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise InputError(
                f"{self.address}: reading from a store needs fsspec: pip install"
                " 'eagle3-lint[stores]'"
            ) from None
        try:
            system, path = url_to_fs(url)
        except ImportError as error:
            message = f"fsspec needs one more package for it: {_line(error)}"
            raise InputError(f"{self.address}: {message}") from None
        except Exception as error:  # a client may look for credentials already
            raise InputError(f"{self.address}: cannot be reached: {_line(error)}") from None
        return system, str(path)

    def _protocols(self) -> Sequence[str]:
        protocol = self._system.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def _try(self, file: str, step: Callable[[], Given]) -> Given:
        """A step that is tried again when the network failed."""
        where = self.address + file
        for pause in (*WAITS, None):
            try:
                with _OPEN:
                    return step()
            except FileNotFoundError:
                raise InputError(f"{where}: no such folder or file") from None
            except PermissionError as error:
                message = f"the store refuses: {_line(error)}; check the credentials"
                raise InputError(f"{where}: {message}") from None
            except Exception as error:  # every store's client has kinds of its own
                if pause is None or not isinstance(error, (OSError, EOFError, TimeoutError)):
                    message = f"cannot be read: {_line(error)}; check address and credentials, or"
                    message += " copy it to a local folder and give that"
                    raise InputError(f"{where}: {message}") from None
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")


def without_secrets(url: str) -> str:
    """A URL as it can be shown: no user, no password, no signature."""
    return _SECRETS.sub("", url)


def _line(error: Exception) -> str:
    words = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return without_secrets(words)
