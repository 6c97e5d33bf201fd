"""What goes wrong on the way: tried again where that helps, and else one line, exit code 2."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from huggingface_hub import constants

from eagle3_lint.checking import check, read_draft
from eagle3_lint.errors import InputError
from eagle3_lint.load.remote import ranged
from eagle3_lint.models import find_target_model
from fixtures.build.materialise import materialise
from tests.drafts import llama_config, llama_tensors, write_draft
from tests.hub.server import Hub, Repository

WEIGHTS = "model.safetensors"


@pytest.fixture(name="draft")
def _draft(tmp_path: Path) -> Path:
    return write_draft(tmp_path / "draft", llama_config(), llama_tensors())


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_draft(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{text}"), message
    return message


# -- what the Hub says no to -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "token", "words"),
    [
        ("hf://org/nowhere", None, ("no such repository", "HF_TOKEN")),
        ("hf://org/nowhere", "hf_other", ("no such repository", "HF_TOKEN")),
        ("hf://org/private", None, ("no such repository, or a private one", "hf auth login")),
        ("hf://org/gated", None, ("asked for at", "/org/gated", "hf auth login")),
        ("hf://org/gated", "hf_other", ("asked for at", "/org/gated", "hf auth login")),
        ("hf://org/open@nowhere", None, ("no revision 'nowhere'", "%2F")),
        ("hf://org/open/nowhere", None, ("no folder 'nowhere'", "there are deep, the root")),
        ("hf://org/open/README.md", None, ("no draft", "give its folder")),
        ("hf://org/empty", None, ("it is empty",)),
        ("out/draft", None, ("out/draft: no such file or folder, and on the Hub",)),
    ],
)
def test_what_is_not_there(
    hub: Hub,
    draft: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    token: str | None,
    words: tuple[str, ...],
) -> None:
    (draft / "README.md").write_text("# A draft")
    write_draft(draft / "deep", llama_config(), llama_tensors())
    (tmp_path / "empty").mkdir()
    hub.add("org/open", draft)
    hub.add("org/private", draft, access="private")
    hub.add("org/gated", draft, access="gated")
    hub.add("org/empty", tmp_path / "empty")
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    message = refusal(text)
    for word in words:
        assert word in message
    assert "hf_other" not in message
    asked = [seen.path for seen in hub.seen]
    assert len(asked) == len(set(asked)), "a no is final"


def test_a_folder_without_a_configuration(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "training_state.pt").touch()
    hub.add("org/state", tmp_path / "state")
    message = refusal("hf://org/state")
    assert re.match(r"hf://org/state@[0-9a-f]{40}: not an exported draft: training_state", message)
    assert "/tmp" not in message


def test_a_broken_configuration(hub: Hub, draft: Path) -> None:
    (draft / "config.json").write_text("{\n]")
    hub.add("org/draft", draft)
    message = refusal("hf://org/draft")
    assert re.match(r"hf://org/draft@[0-9a-f]{40}/config.json:2:1: it is not JSON", message)
    with pytest.raises(InputError, match=r"target model hf://org/draft@\w+/config.json:2: it is"):
        find_target_model("hf://org/draft")


def test_what_is_no_draft(hub: Hub, draft: Path) -> None:
    (draft / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    write_draft(draft, {"architectures": ["LlamaForCausalLM"]}, {"fc.weight": ("BF16", (2, 4))})
    hub.add("org/draft", draft)
    assert "no EAGLE-3 draft: it looks like an EAGLE-1" in refusal("hf://org/draft")


def test_torch_files_of_old_are_read_whole_and_so_not_at_all(hub: Hub, draft: Path) -> None:
    (draft / WEIGHTS).unlink()
    with (draft / "pytorch_model.bin").open("wb") as file:
        file.write(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")  # torch before 1.6: no zip
        file.truncate(3 * 10**9)
    hub.add("org/draft", draft)
    message = refusal("hf://org/draft")
    assert "/pytorch_model.bin: a file of this kind is read whole, and has 3,000,000,000" in message
    assert "download" in message
    assert hub.traffic < 200_000


def test_a_header_of_megabytes_is_not_fetched(hub: Hub, draft: Path) -> None:
    with (draft / WEIGHTS).open("wb") as file:
        file.write(struct.pack("<Q", 30_000_000) + b"{")
        file.truncate(50_000_000)
    hub.add("org/draft", draft)
    message = refusal("hf://org/draft")
    assert "/model.safetensors: its header has 30,000,000 bytes" in message
    assert hub.traffic < 100_000


def test_a_configuration_of_gigabytes_is_not_fetched(hub: Hub, draft: Path) -> None:
    with (draft / "config.json").open("r+b") as file:
        file.truncate(3 * 2**30)
    hub.add("org/draft", draft)
    assert "it has 3,221,225,472 bytes, far too many" in refusal("hf://org/draft")
    assert not hub.paths("config.json")


def test_a_server_that_is_no_hub(hub: Hub) -> None:
    hub.faults["/api/"] = ["page"]
    message = refusal("hf://org/draft")
    assert f"{hub.url} does not answer as the Hub does; check HF_ENDPOINT" in message


class _Careless:
    """A session of requests on urllib3 1, which takes a broken answer for a whole one."""

    stream = False
    calls = 0

    def get(self, url: str, **_: object) -> _Careless:
        self.calls += 1
        return self

    def __enter__(self) -> _Careless:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    status_code, url, raw = 206, "https://hub.example.org/file", None
    headers: ClassVar[dict[str, str]] = {
        "content-length": "100", "content-range": "bytes 0-99/1000",
    }  # fmt: skip

    def iter_content(self, size: int) -> Iterator[bytes]:
        yield bytes(60 if self.calls < 3 else 100)


def test_a_client_that_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Careless()
    monkeypatch.setattr("huggingface_hub.utils.get_session", lambda: session)
    answer = ranged.get("https://hub.example.org/file", {}, 0, 100, most=100, timeout=1.0)
    assert (answer.body, answer.total, session.calls) == (bytes(100), 1000, 3)
    session.calls = -9
    with pytest.raises(ranged.Failure, match="broke off after 60 of 100 bytes"):
        ranged.get("https://hub.example.org/file", {}, 0, 100, most=100, timeout=1.0)
    assert session.calls == -6


def test_other_bytes_than_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _Careless()
    monkeypatch.setattr("huggingface_hub.utils.get_session", lambda: session)
    with pytest.raises(ranged.Failure, match="other bytes"):
        ranged.get("https://hub.example.org/file", {}, 50, 150, most=100, timeout=1.0)


# -- what passes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["/api/", "config.json", "/resolve/", "/signed/"])
@pytest.mark.parametrize("fault", ["503", "500", "429:0", "drop"])
def test_what_passes_is_tried_again(hub: Hub, draft: Path, where: str, fault: str) -> None:
    hub.add("org/draft", draft)
    near = read_draft(draft)
    hub.faults[where] = [fault, fault]
    far = read_draft("hf://org/draft")
    assert (far.tensors, list(far.d2t or ())) == (near.tensors, list(near.d2t or ()))
    assert hub.faults[where] == []


@pytest.mark.parametrize("where", ["config.json", "/signed/"])
def test_an_answer_that_breaks_off_is_asked_for_again(hub: Hub, draft: Path, where: str) -> None:
    hub.add("org/draft", draft)
    hub.faults[where] = ["cut", "cut"]
    assert read_draft("hf://org/draft").tensors == read_draft(draft).tensors


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("503", ("answers 503", "try again later", "hf download org/draft")),
        ("500", ("answers 500", "try again later")),
        ("429:7", ("answers 429", "too many requests", "7 seconds")),
        ("429", ("answers 429", "too many requests")),
        ("drop", ("no whole answer", "check the network, HF_ENDPOINT")),
        ("loop", ("no whole answer", "redirect")),
        ("403", ("answers 403", "HF_TOKEN")),
        ("418", ("answers 418", "try again later")),
    ],
)
@pytest.mark.parametrize("where", ["/api/", "/signed/"])
def test_tries_have_an_end(
    hub: Hub,
    draft: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    fault: str,
    words: tuple[str, ...],
) -> None:
    hub.add("org/draft", draft)
    # A pause that a server asks for is kept, unless it is too long.
    monkeypatch.setattr(ranged, "LONGEST_WAIT", 1.0)
    hub.faults[where] = [fault] * 100
    message = refusal("hf://org/draft")
    for word in words:
        assert word in message
    assert hub.url in message
    if fault != "loop":  # of which the client itself follows twenty
        final = fault in ("403", "418", "429:7")
        assert 100 - len(hub.faults[where]) == (1 if final else 3)


def test_a_pause_that_a_server_asks_for_is_kept(hub: Hub, draft: Path) -> None:
    hub.add("org/draft", draft)
    hub.faults["/api/"] = ["429:1"]
    start = time.monotonic()
    read_draft("hf://org/draft")
    assert time.monotonic() - start >= 1


@pytest.mark.parametrize("where", ["/api/", "config.json", "/signed/"])
def test_slow_answers(hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    hub.add("org/draft", draft)
    hub.faults[where] = ["sleep:1"]
    assert read_draft("hf://org/draft").tensors == read_draft(draft).tensors


def test_answers_that_are_too_slow(hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    hub.add("org/draft", draft)
    hub.faults["/api/"] = ["sleep:1"] * 10
    start = time.monotonic()
    message = refusal("hf://org/draft")
    assert "no answer within 0.2 seconds; check the network" in message
    assert time.monotonic() - start < 2
    assert len(hub.faults["/api/"]) == 7


def test_an_answer_that_drips(hub: Hub, draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte comes in time and all of them never would: 447 of them, one each 0.1 s."""
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.5)
    monkeypatch.setattr(ranged, "PATIENCE", 2)
    hub.add("org/draft", draft)
    hub.faults["config.json"] = ["drip"] * 3
    start = time.monotonic()
    assert "the answer is not there after 1 seconds" in refusal("hf://org/draft")
    assert time.monotonic() - start < 5
    assert len(hub.faults["config.json"]) == 2, "as slow again the next time"


def test_nobody_there(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
    message = refusal("hf://org/draft")
    assert "Connection refused" in message
    assert "check the network, HF_ENDPOINT and proxies, or download it" in message


def test_a_link_that_has_grown_old_is_asked_for_anew(hub: Hub, draft: Path) -> None:
    hub.add("org/draft", draft)
    # The first stretch is the header's, from which the link is kept; then the store says no.
    near = read_draft(draft)
    hub.faults["/signed/"] = ["sleep:0", "403"]
    far = read_draft("hf://org/draft")
    assert list(far.d2t or ()) == list(near.d2t or ())
    assert hub.faults["/signed/"] == []
    assert len(hub.paths(f"/{WEIGHTS}")) == 2, "resolved twice"


def test_a_server_that_does_not_know_ranges(hub: Hub, draft: Path) -> None:
    """A small file is then read from its start; the middle of a large one is not to be had."""
    hub.add("org/draft", draft)
    hub.faults["/signed/"] = ["whole"] * 100
    hub.faults["config.json"] = ["whole"]
    near, far = read_draft(draft), read_draft("hf://org/draft")
    assert (far.tensors, list(far.d2t or ())) == (near.tensors, list(near.d2t or ()))


def test_a_large_file_without_ranges(hub: Hub, tmp_path: Path) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "kimi-k2.5-layers0"
    materialise(fixture, tmp_path / "kimi")
    hub.add("org/kimi", tmp_path / "kimi")
    hub.faults["/signed/"] = ["whole"] * 100
    message = refusal("hf://org/kimi")
    assert "does not answer range requests" in message
    # What a socket takes before it is closed is some megabytes; the file has 4.7 GB.
    time.sleep(0.2)
    assert hub.traffic < 64 * 2**20


def test_a_failure_is_no_finding(hub: Hub, draft: Path) -> None:
    """A table that could not be fetched is not one that the draft does not have."""
    hub.add("org/draft", draft)
    hub.faults["/signed/"] = ["sleep:0", *["503"] * 3]
    with pytest.raises(InputError, match=r"hf://org/draft/model.safetensors: .* answers 503"):
        check("hf://org/draft", ["sglang"])
    # And the next try finds what the first one left.
    assert read_draft("hf://org/draft").d2t is not None


def test_no_room_for_a_mirror(
    hub: Hub, draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    hub.repositories["org/draft"] = Repository({"main": draft})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert "no temporary folder for it: No such file" in refusal("hf://org/draft")
