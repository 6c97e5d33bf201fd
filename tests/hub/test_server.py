"""The Hub of these tests, held against huggingface_hub: the client that defines the routes."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.utils import (
    GatedRepoError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from tests.drafts import llama_config, llama_tensors, write_draft
from tests.hub.server import TOKEN, Hub


@pytest.fixture(name="draft")
def _draft(tmp_path: Path) -> Path:
    return write_draft(tmp_path / "draft", llama_config(), llama_tensors())


def test_it_describes_a_repository(hub: Hub, draft: Path) -> None:
    commit = hub.add("org/draft", draft)
    info = HfApi(endpoint=hub.url).model_info("org/draft", revision="main", files_metadata=True)
    assert (info.id, info.sha) == ("org/draft", commit)
    sizes = {file.rfilename: file.size for file in info.siblings or ()}
    assert sizes == {path.name: path.stat().st_size for path in draft.iterdir()}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_it_gives_files(
    hub: Hub, draft: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    commit = hub.add("org/draft", draft)
    found = hf_hub_download("org/draft", name, endpoint=hub.url, cache_dir=tmp_path / "other-cache")
    assert Path(found).read_bytes() == (draft / name).read_bytes()
    assert Path(found).parent.name == commit


def test_it_refuses_as_the_hub_does(hub: Hub, draft: Path) -> None:
    hub.add("org/private", draft, access="private")
    hub.add("org/gated", draft, access="gated")
    api = HfApi(endpoint=hub.url, token=False)
    for name in ("org/nowhere", "org/private"):
        with pytest.raises(RepositoryNotFoundError):
            api.model_info(name)
    with pytest.raises(RevisionNotFoundError):
        api.model_info("org/gated", revision="nowhere")
    with pytest.raises(GatedRepoError):
        api.get_hf_file_metadata(url=f"{hub.url}/org/gated/resolve/main/config.json")
    known = HfApi(endpoint=hub.url, token=TOKEN)
    assert known.model_info("org/private", revision="main").id == "org/private"
