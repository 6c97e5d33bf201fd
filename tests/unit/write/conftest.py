from __future__ import annotations

import os

import pytest

from tests.unit.write.scenes import place

__all__ = ["place"]


@pytest.fixture(autouse=True)
def _no_syncing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power, and hundreds of real syncs take minutes on a busy disk."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
