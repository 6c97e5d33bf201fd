"""Workflow commands, read back as the runner reads them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from eagle3_lint.diagnostic import Fix, Place
from eagle3_lint.report.github import render
from eagle3_lint.report.places import visible
from tests.unit.report.samples import ODD, checked, diagnostic, draft, everything, one

ROOT = Path("/repository")


class Command(NamedTuple):
    name: str
    properties: dict[str, str]
    message: str


def read(line: str) -> Command:
    """A command as the runner takes it apart (src/Runner.Common/ActionCommand.cs, TryParseV2).

    The order in which it takes escapes back is its own: the per cent sign comes last.
    """
    assert line.startswith("::")
    end = line.index("::", 2)
    name, _, told = line[2:end].partition(" ")
    properties = {}
    for pair in filter(None, told.strip().split(",")):
        key, _, value = pair.partition("=")
        for code, character in (("%3A", ":"), ("%2C", ",")):
            value = value.replace(code, character)
        properties[key] = data(value)
    return Command(name, properties, data(line[end + 2 :]))


def data(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def commands(text: str) -> list[Command]:
    # The runner's lines end where .NET's do: at \r, \n or both.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert lines.pop() == ""
    return [read(line) for line in lines]


@pytest.mark.parametrize(
    ("severity", "name"), [("error", "error"), ("warning", "warning"), ("info", "notice")]
)
def test_a_line(severity: str, name: str) -> None:
    place = Place("config.json", pointer="/a", line=7)
    text = render(one(diagnostic("too wide", place, severity=severity), "/repository/a b"), ROOT)
    assert text == (
        f"::{name} file=a b/config.json,line=7,"
        "title=E3L201 tensor-dropped (sglang 0.5.9 serving kimi-k2.5)::too wide\n"
    )


def test_weights_have_no_line() -> None:
    place = Place("model.safetensors", tensor="fc.weight")
    [command] = commands(render(one(diagnostic("m", place), "/repository/a"), ROOT))
    assert command.properties["file"] == "a/model.safetensors"
    assert set(command.properties) == {"file", "title"}


def test_no_place_is_the_configuration() -> None:
    [command] = commands(render(one(diagnostic(), "/repository/a"), ROOT))
    assert command.properties["file"] == "a/config.json"


def test_a_fix_is_told() -> None:
    found = diagnostic("m", fix=Fix("set it to 100%", "unsafe"))
    [command] = commands(render(one(found), ROOT))
    assert command.message == "m\nunsafe fix: set it to 100%"


def test_odd_characters_come_back() -> None:
    found = diagnostic(f"drops {ODD}", Place("config.json"))
    path = "/repository/50%,a:b::c=d%0A"
    [command] = commands(render(one(found, path), ROOT))
    assert command.message == visible(f"drops {ODD}")
    assert command.properties["file"] == "50%,a:b::c=d%0A/config.json"


def test_a_name_cannot_begin_a_command() -> None:
    found = diagnostic("drops\n::stop-commands::x\r::add-mask::y\n##[error]z")
    [command] = commands(render(one(found), ROOT))
    assert command.name == "error"


def test_nothing_for_nothing(tmp_path: Path) -> None:
    assert render(checked(draft(tmp_path, "good"), tmp_path), tmp_path) == ""


def test_real_drafts(tmp_path: Path) -> None:
    report = everything(tmp_path)
    found = commands(render(report, tmp_path))
    names = {"error": "error", "warning": "warning", "info": "notice"}
    assert [c.name for c in found] == [names[d.severity] for d in report.diagnostics()]
    for command, diagnostic_ in zip(found, report.diagnostics(), strict=True):
        assert command.message.startswith(visible(diagnostic_.message))
        path = tmp_path / command.properties["file"]
        assert path.parent.parent == tmp_path or path.parent == tmp_path
        if "line" in command.properties:
            assert path.name == "config.json"
            lines = path.read_text().splitlines()
            key = (diagnostic_.where[0].pointer or "").rpartition("/")[2]
            assert f'"{key}"' in lines[int(command.properties["line"]) - 1]
