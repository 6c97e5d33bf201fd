"""The page in a real browser: nothing sticks out, nothing is cut, nothing is fetched or run.

Needs a Chromium; without one these tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from eagle3_lint.contract.runtime import known_runtimes, runtime_file
from tests.drafts import write_case
from tests.unit.report_html.pages import hostile_draft, page_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FIXTURES = Path(__file__).parents[2] / "fixtures"
WIDTHS = (360, 768, 1280)
#: Browsers have no narrow windows of their own, so the page stands in a frame of each width.
FRAMES = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
{frames}
<pre id="told"></pre><script>
function measure(frame) {{
  const view = frame.contentWindow, page = frame.contentDocument;
  const all = (selector) => [...page.querySelectorAll(selector)];
  const box = (e) => e.getBoundingClientRect();
  return {{
    hit: "hit" in view || "hit" in window,
    inner: view.innerWidth,
    scroll: page.documentElement.scrollWidth,
    fetched: view.performance.getEntriesByType("resource").map((r) => r.name),
    out: all("body *").filter((e) => !e.closest(".heard, .shapes, thead"))
      .filter((e) => box(e).right > view.innerWidth + 1 || box(e).left < -1)
      .map((e) => e.tagName + " " + e.className),
    fields: all(".field").length,
    cut: all(".field a, .pill, .badge").filter((e) => e.scrollWidth > e.clientWidth + 1)
      .map((e) => e.textContent),
    edges: all(".box").map((e) => box(e).left),
    marks: all("[data-state]").map((e) => {{
      const b = box(e.querySelector(".state"));
      return [Number(e.getAttribute("data-state")), (b.left + b.right) / 2];
    }}),
  }};
}}
onload = () => {{
  const frames = [...document.querySelectorAll("iframe")];
  const told = frames.map(measure);
  frames.forEach((frame) => frame.remove());
  document.getElementById("told").textContent = JSON.stringify(told);
}};
</script>"""
FRAME = '<iframe style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>'


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    return found


@pytest.fixture(scope="module")
def pages(browser: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    kimi = folder / "kimi-draft"
    script = [sys.executable, str(FIXTURES / "build" / "materialise.py")]
    made = [*script, str(FIXTURES / "kimi-k2.5-layers0"), str(kimi)]
    subprocess.run(made, check=True, capture_output=True)
    targets = ["sglang==0.5.9", "sglang==0.5.12", "vllm==0.33.0"]
    long = write_case(
        {"base": "llama", "add": {"x" * 900: ["BF16", 4]}}, folder / ("folder" * 30)
    )  # fmt: skip
    pages = {
        "kimi": page_of(kimi, targets=targets, model="kimi-k2.5")[2],
        "several": page_of(
            FIXTURES / "modelopt-0.47.0-llama",
            FIXTURES / "speculators-0.9.0-qwen3",
            targets=["sglang", "vllm"],
            model=str(FIXTURES / "acceptance-target"),
        )[2],
        "hostile": page_of(hostile_draft(folder), long, targets=["sglang==0.5.9", "vllm"])[2],
    }
    shutil.rmtree(kimi)
    return pages


def run(browser: str, folder: Path, *arguments: str) -> str:
    """What the browser prints."""
    # As root, as in a container, it starts without its sandbox only.
    root = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    command = [
        browser,
        "--headless",
        *root,
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def measured(browser: str, folder: Path, page: str, *widths: int) -> dict[int, dict[str, Any]]:
    """What the browser makes of a page at each width."""
    frames = "".join(FRAME.format(page=escape(page), width=width) for width in widths)
    file = folder / "frames.html"
    file.write_text(FRAMES.format(frames=frames), encoding="utf-8")
    dumped = run(browser, folder, "--dump-dom", file.as_uri())
    _, _, rest = dumped.partition('<pre id="told">')
    told, _, _ = rest.partition("</pre>")
    return dict(zip(widths, json.loads(unescape(told)), strict=True))


@pytest.fixture(scope="module")
def measures(
    browser: str, pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[int, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("measures")
    return {name: measured(browser, folder, page, *WIDTHS) for name, page in pages.items()}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["kimi", "several", "hostile"])
def test_nothing_sticks_out_or_is_cut(
    measures: dict[str, dict[int, dict[str, Any]]], pages: dict[str, str], name: str, width: int
) -> None:
    told = measures[name][width]
    assert told["inner"] == width
    assert told["scroll"] <= width
    assert told["out"] == []
    assert told["cut"] == []
    assert told["fetched"] == []
    assert told["hit"] is False
    releases = sum(len(runtime_file(runtime).releases) for runtime in known_runtimes())
    assert told["fields"] == releases * pages[name].count('class="draft"')


@pytest.mark.parametrize("width", WIDTHS)
def test_marks_stand_at_the_edges_of_boxes(
    measures: dict[str, dict[int, dict[str, Any]]], width: int
) -> None:
    told = measures["kimi"][width]
    edges = told["edges"]
    assert len(edges) == 61
    # Trained on 2, 30, 58; SGLang feeds 3, 31, 59 and vLLM what was trained (the README).
    assert [state for state, _ in told["marks"]] == [2, 30, 58, 3, 31, 59, 2, 30, 58]
    for state, middle in told["marks"]:
        assert middle == pytest.approx(edges[state], abs=0.75)


def test_a_script_that_slipped_through_would_not_run(browser: str, tmp_path: Path) -> None:
    """The page's policy, and that the measure sees a script that does run."""
    draft = write_case({"base": "llama"}, tmp_path / "draft")
    page = page_of(draft)[2].replace("<footer>", "<script>window.hit = 1</script><footer>")
    assert measured(browser, tmp_path, page, 360)[360]["hit"] is False
    start = page.index('<meta http-equiv="Content-Security-Policy"')
    without = page[:start] + page[page.index("/>", start) + 2 :]
    assert measured(browser, tmp_path, without, 360)[360]["hit"] is True


def test_the_measure_sees_what_sticks_out(
    browser: str, pages: dict[str, str], tmp_path: Path
) -> None:
    careless = "body { overflow-wrap: normal } .grid { grid-template-columns: repeat(40, 1fr) }"
    page = pages["kimi"].replace("</style>", f"{careless}</style>")
    told = measured(browser, tmp_path, page, 360)[360]
    assert told["scroll"] > 360
    assert told["out"]
    narrow = ".grid { grid-template-columns: repeat(auto-fill, 2rem) }"
    page = pages["kimi"].replace("</style>", f"{narrow}</style>")
    assert measured(browser, tmp_path, page, 360)[360]["cut"]


@pytest.mark.parametrize(
    ("scheme", "paper"), [("1", b"\xfb\xfb\xf9"), ("0", b"\x14\x17\x1b")], ids=["light", "dark"]
)
def test_a_picture_of_it(
    browser: str, pages: dict[str, str], tmp_path: Path, scheme: str, paper: bytes
) -> None:
    """Light and dark: the stylesheet's two colours of paper."""
    page = tmp_path / "page.html"
    page.write_text(pages["kimi"], encoding="utf-8")
    picture = tmp_path / "page.png"
    run(
        browser,
        tmp_path,
        f"--blink-settings=preferredColorScheme={scheme}",
        "--window-size=1280,2400",
        f"--screenshot={picture}",
        page.as_uri(),
    )
    size, pixels = decoded(picture.read_bytes())
    assert size == (1280, 2400)
    # Whatever the first line's filter is, its first pixel is as it is: nothing stands before it.
    assert pixels[1:4] == paper
    assert picture.stat().st_size > 100_000  # an empty page of that size has some ten kilobytes


def decoded(data: bytes) -> tuple[tuple[int, int], bytes]:
    """Size and filtered lines of a PNG (ISO/IEC 15948): chunks of length, type, data, sum."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    return (width, height), zlib.decompress(packed)
