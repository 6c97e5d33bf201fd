"""What people write for a place on the Hub, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagle3_lint.errors import InputError
from eagle3_lint.load import is_address, lies_elsewhere
from eagle3_lint.load.remote.address import is_hub, parse
from eagle3_lint.load.remote.spans import joined, missing

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "repository", "revision", "path"),
    [
        ("hf://org/name", "org/name", None, ""),
        ("hf://org/name/", "org/name", None, ""),
        ("hf://models/org/name", "org/name", None, ""),
        ("hf:/org/name", "org/name", None, ""),  # what pathlib makes of it
        ("org/name", "org/name", None, ""),
        ("org/name@v1.0", "org/name", "v1.0", ""),
        (f"hf://org/Na.me-2_x@{COMMIT}", "org/Na.me-2_x", COMMIT, ""),
        # The order of huggingface_hub's own hf:// addresses.
        ("hf://org/name@dev/sub/folder", "org/name", "dev", "sub/folder"),
        ("hf://org/name@refs/pr/12", "org/name", "refs/pr/12", ""),
        ("hf://org/name@refs/pr/12/sub", "org/name", "refs/pr/12", "sub"),
        ("hf://org/name@feature%2Fx/sub", "org/name", "feature/x", "sub"),
        # And the revision at the end, where people put it.
        ("hf://org/name/sub/folder@dev", "org/name", "dev", "sub/folder"),
        ("hf://org/name/sub@refs/pr/12", "org/name", "refs/pr/12", "sub"),
        ("hf://org/name/sub/config.json", "org/name", None, "sub/config.json"),
        ("https://huggingface.co/org/name", "org/name", None, ""),
        ("https://hf.co/org/name/", "org/name", None, ""),
        ("https://huggingface.co/org/name/tree/main", "org/name", "main", ""),
        ("https://huggingface.co/org/name/tree/dev/sub/a%20b", "org/name", "dev", "sub/a b"),
        ("https://huggingface.co/org/name/blob/main/config.json?x=1", "org/name", "main",
         "config.json"),
        ("https://huggingface.co/org/name/tree/refs%2Fpr%2F3/sub", "org/name", "refs/pr/3", "sub"),
        ("https://huggingface.co/org/name/tree/refs/pr/3/sub", "org/name", "refs/pr/3", "sub"),
    ],
)  # fmt: skip
def test_addresses(text: str, repository: str, revision: str | None, path: str) -> None:
    assert is_hub(text)
    found = parse(text)
    assert found.given == text
    assert (found.repository, found.revision, found.path) == (repository, revision, path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hf://", "write hf://org/name"),
        ("hf://org", "write hf://org/name"),
        ("hf://org/", "write hf://org/name"),
        ("hf://org/name@", "write hf://org/name"),
        ("hf://org/name/../../etc", "write hf://org/name"),
        ("hf://../name", "write hf://org/name"),
        ("hf://o rg/name", "write hf://org/name"),
        ("hf://datasets/org/name", "datasets/ has none"),
        ("https://huggingface.co/spaces/org/name", "spaces/ has none"),
        ("https://huggingface.co/org/name/discussions/3", "write hf://org/name"),
        ("https://huggingface.co/org", "write hf://org/name"),
    ],
)
def test_what_is_none(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"{text}: ")
    assert words in str(caught.value)


def test_another_endpoint_has_pages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example.org/")
    assert parse("https://hub.example.org/org/name/tree/dev").revision == "dev"
    assert not is_hub("https://example.org/org/name")


def test_where_a_path_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    for text in ("hf://org/name", "s3://bucket/draft", "memory://draft", "simplecache::gs://b/d"):
        assert is_address(text), text
        assert lies_elsewhere(text), text
    for text in ("org/name", "./org/none", "/org/none", "none", "a/b/c", "C:/org", "org/",
                 "out/config.json", "out/model.safetensors", "~/draft"):  # fmt: skip
        assert not lies_elsewhere(text), text
    assert lies_elsewhere("org/none")
    assert lies_elsewhere("org/none@v1")
    assert not is_address("org/none")


def test_stretches() -> None:
    assert joined([(5, 9), (0, 2), (2, 4), (7, 12), (3, 3)]) == [(0, 4), (5, 12)]
    assert joined([(0, 2), (5, 6)], gap=3) == [(0, 6)]
    assert joined([(0, 2), (6, 7)], gap=3) == [(0, 2), (6, 7)]
    assert missing([(0, 10)], [(2, 4), (6, 7)]) == [(0, 2), (4, 6), (7, 10)]
    assert missing([(3, 5), (8, 9)], [(0, 6)]) == [(8, 9)]
    assert missing([(3, 5)], [(0, 3), (5, 9)]) == [(3, 5)]
    assert missing([(0, 4)], []) == [(0, 4)]
