"""A small Hub on loopback: the routes that huggingface_hub uses, with the headers that it reads.

``GET /api/models/{repo}/revision/{rev}`` describes a repository, ``/{repo}/resolve/{rev}/{file}``
leads to a file: directly when it is small, by a signed link to another host (another port here)
when it lies in LFS. Error answers carry ``X-Error-Code`` and ``X-Error-Message``, as
``huggingface_hub.utils._http.hf_raise_for_status`` looks for them. ``test_server.py`` holds all of
that against huggingface_hub itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_of_the_tests"
_RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_REVISION = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?")
_TREE = re.compile(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_PIECE = 2**16


def commit_of(folder: Path, revision: str = "main") -> str:
    """Forty hexadecimal digits."""
    return hashlib.sha1(f"{folder}@{revision}".encode()).hexdigest()


@dataclass
class Repository:
    """A repository: a folder on disk for each revision.

    Attributes:
        access: ``public``, ``private`` or ``gated``.
        sizes: whether the description has them, as the Hub's does when asked for blobs.
    """

    revisions: dict[str, Path]
    access: str = "public"
    sizes: bool = True

    def find(self, revision: str) -> tuple[str, Path] | None:
        """Commit and folder of a branch, a tag or a commit."""
        for name, folder in self.revisions.items():
            if revision in (name, commit_of(folder, name)):
                return commit_of(folder, name), folder
        return None


@dataclass
class Seen:
    """A request and what was sent for it."""

    method: str
    path: str
    range: str | None
    token: str | None
    port: int
    received: int
    status: int = 0
    sent: int = 0


@dataclass
class Hub:
    """The state of the server.

    Attributes:
        faults: part of a path → what goes wrong, request after request (see ``_Handler.fault``).
        seen: every request, in order.
    """

    repositories: dict[str, Repository] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    store_url: str = ""
    lock: Lock = field(default_factory=Lock)

    def add(self, name: str, folder: Path, **how: Any) -> str:
        """Put a folder on the main branch; its commit."""
        self.repositories[name] = Repository({"main": folder}, **how)
        return commit_of(folder)

    def paths(self, ending: str = "") -> list[str]:
        """Paths of the requests so far."""
        return [seen.path for seen in self.seen if seen.path.endswith(ending)]

    @property
    def traffic(self) -> int:
        """Bytes in both directions, headers included."""
        return sum(seen.sent + seen.received for seen in self.seen)

    def fault(self, path: str) -> str | None:
        with self.lock:
            for part, faults in self.faults.items():
                if part in path and faults:
                    return faults.pop(0)
        return None


def lies_in_lfs(path: str) -> bool:
    """As the Hub's own .gitattributes has it."""
    return path.endswith((".safetensors", ".bin"))


class _Counted:
    """A socket's file that counts."""

    def __init__(self, file: Any) -> None:
        self.file, self.count = file, 0

    def write(self, data: bytes) -> int:
        self.count += len(data)
        return int(self.file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, *_: Any) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        self.wfile: Any = _Counted(self.wfile)

    @property
    def hub(self) -> Hub:
        return self.server.hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        head = sum(len(k) + len(v) + 4 for k, v in self.headers.items())
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ") or None
        seen = Seen(
            self.command,
            unquote(self.path),
            self.headers.get("range"),
            token,
            self.server.server_address[1],
            len(self.requestline) + head + 4,
        )
        with self.hub.lock:
            self.hub.seen.append(seen)
        self.seen, before = seen, self.wfile.count
        try:
            if not self.fault(self.hub.fault(unquote(self.path))):
                self.route()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        seen.sent = self.wfile.count - before

    def fault(self, fault: str | None) -> bool:
        """Do what goes wrong instead of an answer; True when that was all."""
        self.cut = self.whole = self.drip = False
        if fault is None:
            return False
        kind, _, more = fault.partition(":")
        if kind == "sleep":
            time.sleep(float(more))
            return False
        if kind in ("cut", "whole", "drip"):
            setattr(self, kind, True)
            return False
        if kind == "drop":
            self.close_connection = True
        elif kind == "loop":
            self.answer(302, {"Location": self.path})
        elif kind == "page":
            self.answer(200, {"Content-Type": "text/html"}, b"<html>Sign in</html>")
        else:
            self.answer(int(kind), {"Retry-After": more} if more else {}, b"oops")
        return True

    def route(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        if path.startswith("/signed/"):
            self.signed(path.removeprefix("/signed/"))
            return
        for pattern, kind in ((_REVISION, "revision"), (_TREE, "tree"), (_RESOLVE, "resolve")):
            # Slashes in a revision come as %2F.
            match = pattern.fullmatch(url.path)
            if match is not None:
                parts = [unquote(part or "main") for part in match.groups()]
                self.repository(kind, parts, parse_qs(url.query))
                return
        self.answer(404, {}, b"not found")

    def repository(self, kind: str, parts: list[str], query: dict[str, list[str]]) -> None:
        name, revision, *rest = parts
        if name in self.hub.renamed:
            # The Hub answers with a path, without the host.
            location = self.path.replace(name, self.hub.renamed[name], 1)
            self.answer(307, {"Location": location})
            return
        repository = self.hub.repositories.get(name)
        known = self.seen.token == TOKEN
        if repository is None or (repository.access == "private" and not known):
            # What is private is said not to exist, and without a token both are 401.
            status = 401 if self.seen.token is None else 404
            self.error(status, "RepoNotFound", "Repository not found")
            return
        if kind == "resolve" and repository.access == "gated" and not known:
            status = 401 if self.seen.token is None else 403
            self.error(status, "GatedRepo", f"Access to model {name} is restricted")
            return
        found = repository.find(revision)
        if found is None:
            self.error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return
        commit, folder = found
        if kind == "resolve":
            self.resolve(commit, folder, rest[0])
            return
        blobs = kind == "tree" or (repository.sizes and "blobs" in query)
        files = [self.entry(folder, path, blobs) for path in sorted(folder.rglob("*"))]
        files = [entry for entry in files if entry]
        if kind == "revision":
            self.json({"id": name, "sha": commit, "siblings": files})
        else:
            self.json([{"type": "file", "path": e.pop("rfilename"), **e} for e in files])

    def entry(self, folder: Path, path: Path, blobs: bool) -> dict[str, Any]:
        if not path.is_file():
            return {}
        name, size = path.relative_to(folder).as_posix(), path.stat().st_size
        entry: dict[str, Any] = {"rfilename": name}
        if blobs:
            entry |= {"size": size, "blobId": hashlib.sha1(name.encode()).hexdigest()}
            if lies_in_lfs(name):
                sha256 = hashlib.sha256(name.encode()).hexdigest()
                entry["lfs"] = {"sha256": sha256, "size": size, "pointerSize": 134}
        return entry

    def resolve(self, commit: str, folder: Path, path: str) -> None:
        file = folder / path
        if not file.is_file():
            self.error(404, "EntryNotFound", "Entry not found")
            return
        headers = {
            "X-Repo-Commit": commit,
            "X-Linked-Size": str(file.stat().st_size),
            "X-Linked-ETag": f'"{hashlib.sha256(path.encode()).hexdigest()}"',
            "ETag": f'"{hashlib.sha1(path.encode()).hexdigest()}"',
        }
        if lies_in_lfs(path):
            location = f"{self.hub.store_url}/signed/{file}?Expires=9&Signature=secret"
            self.answer(302, {**headers, "Location": location})
        else:
            self.file(file, headers)

    def signed(self, path: str) -> None:
        self.file(Path(path), {"ETag": '"of the store"'})

    def file(self, path: Path, headers: dict[str, str]) -> None:
        size = path.stat().st_size
        match = _RANGE.fullmatch(self.headers.get("range") or "")
        begin, end, status = 0, size, 200
        if match is not None and not self.whole:
            begin, status = int(match[1]), 206
            end = min(int(match[2]) + 1 if match[2] else size, size)
            if begin >= size:
                self.answer(416, {"Content-Range": f"bytes */{size}"})
                return
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
        if not self.whole:
            headers["Accept-Ranges"] = "bytes"
        self.start(status, {**headers, "Content-Length": str(end - begin)})
        if self.command == "HEAD":
            return
        if self.cut:
            end -= (end - begin + 1) // 2
            self.close_connection = True
        with path.open("rb") as file:
            file.seek(begin)
            while begin < end:
                if self.drip:
                    time.sleep(0.1)
                piece = file.read(1 if self.drip else min(_PIECE, end - begin))
                self.wfile.write(piece)
                begin += len(piece)

    def error(self, status: int, code: str, message: str) -> None:
        self.answer(status, {"X-Error-Code": code, "X-Error-Message": message}, b"{}")

    def json(self, value: Any) -> None:
        self.answer(200, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.start(status, {**headers, "Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def start(self, status: int, headers: dict[str, str]) -> None:
        self.seen.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    hub: Hub

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is no news, and stderr belongs to what is tested."""


@contextmanager
def serve() -> Iterator[Hub]:
    """A Hub and the host that keeps its large files."""
    hub = Hub()
    servers = [_Server(("127.0.0.1", 0), _Handler) for _ in range(2)]
    for server in servers:
        server.hub = hub
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    # Two hosts, for huggingface_hub too, which goes by the name.
    hub.url = f"http://127.0.0.1:{servers[0].server_address[1]}"
    hub.store_url = f"http://localhost:{servers[1].server_address[1]}"
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
