"""Drafts in stores that fsspec reaches: memory://, a web server's folder, file://."""

from __future__ import annotations

import functools
import http.server
import json
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import pytest

from eagle3_lint.checking import check, read_draft
from eagle3_lint.errors import InputError
from eagle3_lint.load.remote.store import without_secrets
from eagle3_lint.models import find_target_model
from fixtures.build.materialise import materialise
from tests.drafts import llama_config, llama_tensors, write_case, write_draft
from tests.weights import give_weights, write_target

TARGETS = ("sglang==0.5.9", "vllm==0.12.0")


@pytest.fixture(name="draft")
def _draft(tmp_path: Path) -> Path:
    draft = write_draft(tmp_path / "draft", llama_config(), llama_tensors("layers.0."))
    give_weights(draft, "head-shuffled")
    return draft


@pytest.fixture(name="memory")
def _memory() -> Iterator[Any]:
    memory = fsspec.filesystem("memory")
    yield memory
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


class _Plain(http.server.SimpleHTTPRequestHandler):
    """Python's own: a page with the folder's files, and no ranges."""

    sent = 0

    def log_message(self, *_: Any) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        try:
            while piece := source.read(2**16):
                outputfile.write(piece)
                type(self).sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


class _Ranged(_Plain):
    """The same, with ranges."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        wanted = self.headers.get("range")
        if wanted is None or not path.is_file():
            super().do_GET()
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        body = path.read_bytes()[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(body)))
        end = int(first) + len(body) - 1
        self.send_header("Content-Range", f"bytes {first}-{end}/{path.stat().st_size}")
        self.end_headers()
        self.wfile.write(body)
        type(self).sent += len(body)


@contextmanager
def serving(folder: Path, kind: type[_Plain]) -> Iterator[str]:
    kind.sent = 0
    handler = functools.partial(kind, directory=str(folder))
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def results(path: str | Path, model: str | None = None) -> Any:
    found = check(path, TARGETS, model).to_json()["checkpoints"][0]
    del found["path"]
    text = json.dumps(found)
    return json.loads(text.replace(json.dumps(model)[1:-1], "TARGET") if model else text)


def test_an_object_store(memory: Any, draft: Path, tmp_path: Path) -> None:
    target = write_target(tmp_path / "target")
    memory.put(str(draft), "/bucket/draft", recursive=True)
    memory.put(str(target), "/bucket/target", recursive=True)
    local = results(draft, str(target))
    assert {d["rule"] for r in local["results"] for d in r["diagnostics"]} >= {"E3L201", "E3L411"}
    assert results("memory://bucket/draft", "memory://bucket/target") == local
    for text in ("memory://bucket/draft/", "memory://bucket/draft/config.json"):
        assert read_draft(text).path == "memory://bucket/draft"
    model = find_target_model("memory://bucket/target")
    assert model.source == "memory://bucket/target/config.json"


def test_a_local_folder_by_its_url(draft: Path) -> None:
    assert results(draft.as_uri()) == results(draft)


def test_shards_and_damage(memory: Any, tmp_path: Path) -> None:
    for container in ("shard-missing", "two-shards", "wrong-shard"):
        draft = write_case({"base": "llama", "container": container}, tmp_path / container)
        memory.put(str(draft), f"/bucket/{container}", recursive=True)
        local = results(draft)
        assert results(f"memory://bucket/{container}") == local


def test_a_web_server(draft: Path) -> None:
    with serving(draft.parent, _Ranged) as url:
        assert results(f"{url}/draft") == results(draft)
        # d2t and t2d (3,560 bytes), the first 32 KB with the header, a row or two.
        assert _Ranged.sent < 80_000


def test_a_web_server_without_ranges(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "kimi-k2.5-layers0"
    materialise(fixture, tmp_path / "kimi")
    with serving(tmp_path, _Plain) as url, pytest.raises(InputError) as caught:
        read_draft(f"{url}/kimi")
    assert str(caught.value).startswith(f"{url}/kimi/model.safetensors: cannot be read: ")
    assert "range" in str(caught.value)
    assert _Plain.sent < 64 * 2**20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("memory://bucket/nothing", "no such folder"),
        ("memory://bucket/draft/notes.txt", "no such folder"),
        ("nosuch://bucket/draft", "nosuch"),
        ("abfs://bucket/draft", "fsspec needs one more package"),
    ],
)
def test_what_is_not_there(memory: Any, draft: Path, text: str, words: str) -> None:
    memory.put(str(draft), "/bucket/draft", recursive=True)
    memory.pipe_file("/bucket/draft/notes.txt", b"hello")
    with pytest.raises(InputError) as caught:
        read_draft(text)
    message = str(caught.value)
    assert message.startswith(f"{text}: ")
    assert "\n" not in message
    assert words in message


def test_nobody_there() -> None:
    with serving(Path(), _Plain) as url:
        pass
    with pytest.raises(InputError, match=r"cannot be read: .*check address and credentials"):
        read_draft(f"{url}/draft")


@pytest.mark.parametrize(
    ("error", "calls", "words"),
    [
        (TimeoutError("slow"), 3, "cannot be read: slow"),
        (ConnectionResetError(104, "reset by peer"), 3, "reset by peer"),
        (PermissionError("Access Denied"), 1, "the store refuses: Access Denied; check the cred"),
        (ValueError("bad key\nmore"), 1, "cannot be read: bad key; check"),
        (FileNotFoundError("gone"), 1, "no such folder or file"),
    ],
)
def test_what_a_client_raises(
    memory: Any,
    draft: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    calls: int,
    words: str,
) -> None:
    memory.put(str(draft), "/bucket/draft", recursive=True)
    asked = []

    def refuse(path: str, *_: Any, **__: Any) -> Any:
        asked.append(path)
        raise error

    monkeypatch.setattr(memory, "open", refuse)
    with pytest.raises(InputError) as caught:
        read_draft("memory://bucket/draft")
    assert str(caught.value).startswith("memory://bucket/draft/config.json: ")
    assert words in str(caught.value)
    assert len(asked) == calls


def test_what_passes_is_tried_again(
    memory: Any, draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.put(str(draft), "/bucket/draft", recursive=True)
    real, failures = memory.open, [TimeoutError(), ConnectionResetError()]

    def open_at_last(*arguments: Any, **others: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(*arguments, **others)

    monkeypatch.setattr(memory, "open", open_at_last)
    assert read_draft("memory://bucket/draft").tensors == read_draft(draft).tensors


def test_a_file_that_changes_while_it_is_read(memory: Any, draft: Path) -> None:
    from eagle3_lint.load import bring
    from eagle3_lint.load.remote import open_folder

    memory.put(str(draft), "/bucket/draft", recursive=True)
    folder = open_folder("memory://bucket/draft")
    bring(folder / "model.safetensors", [(0, 100)])
    memory.pipe_file("/bucket/draft/model.safetensors", b"short")
    with pytest.raises(InputError, match="bytes were asked for, and 0 came"):
        bring(folder / "model.safetensors", [(100, 200)])


def test_secrets_are_not_shown() -> None:
    assert without_secrets("https://me:pass@host/draft?sig=abc&x=1") == "https://host/draft"
    assert without_secrets("s3://bucket/a@b/draft") == "s3://bucket/a@b/draft"
    assert without_secrets("Is it there? no") == "Is it there? no"
