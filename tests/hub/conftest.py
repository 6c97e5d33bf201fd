"""A Hub of one's own, and nothing of the user's: endpoint, token, cache and clocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants, file_download

from eagle3_lint import load
from eagle3_lint.load import remote
from eagle3_lint.load.remote import ranged, store
from tests.hub.server import Hub, serve


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing opened, nothing cached, nobody logged in, and no long pauses."""
    monkeypatch.setattr(remote, "_OPENED", remote._Opened())
    monkeypatch.setattr(load, "MIRRORS", {})
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 5)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ranged, "WAITS", (0.01, 0.02))
    monkeypatch.setattr(store, "WAITS", (0.01, 0.02))


@pytest.fixture(name="hub")
def _hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        for module in (constants, file_download):  # where older versions have a copy
            monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
        yield hub
