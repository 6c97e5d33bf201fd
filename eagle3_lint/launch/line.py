"""Write the command that serves a draft, out of ``rules/launch``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from eagle3_lint.frozen import frozen
from eagle3_lint.launch.statements import LaunchRelease, Statement
from eagle3_lint.simulate.configure import fill


@frozen
class Wanted:
    """What a line is to serve.

    Attributes:
        model: the target model's path or repository.
        draft: the draft's folder, an absolute path: a relative one may be taken for something else;
            or its repository.
        trust: the draft brings code of its own.
        dtype: the dtype of its weights, where its configuration names none.
        unquantised: the target is quantised, and the draft is not.
        positions, theirs: what the draft has and the target, where that keeps the server from
            starting.
        runner: the model runner that was asked for.
        parallel: the draft proposes all tokens at once.
        layers: the layers whose outputs the draft was trained on, for a runtime that is told so on
            its command line and would take others.
        revision: the commit of the draft's repository.
    """

    model: str
    draft: str
    trust: bool = False
    dtype: str | None = None
    unquantised: bool = False
    positions: int | None = None
    theirs: int | None = None
    runner: str | None = None
    parallel: bool = False
    layers: tuple[int, ...] | None = None
    revision: str | None = None


@frozen
class Line:
    """A command.

    Attributes:
        env: environment variables that it sets.
        words: program and arguments, as ``argv`` has them.
        notes: why something is in it that is not in every one.
        files: name → content of files that the command reads.
    """

    env: Mapping[str, str]
    words: tuple[str, ...]
    notes: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)


def quantised(config: Mapping[str, object]) -> bool:
    """Whether a configuration says how its weights are quantised."""
    return any(config.get(name) for name in ("quantization_config", "compression_config"))


def write_line(release: LaunchRelease, wanted: Wanted) -> Line:
    """The command with which ``release`` serves what is wanted."""
    line = release.first("line")
    assert line is not None, "rules/launch has a [[line]] for every release"
    added = [add for add in release.all("add") if _applies(add["when"], wanted)]
    # An environment variable and an option that do the same are one addition.
    values = _values(release, wanted)
    env = {name: fill(value, values) for add in added for name, value in _env(add).items()}
    table: dict[str, Any] = dict(line.get("speculation", {}))
    for add in added:
        table.update(add.get("speculation", {}))
    filled = {k: _value(v, values) for k, v in table.items()}
    values["speculation"] = json.dumps(filled, ensure_ascii=False)
    values["file"] = line.get("file")
    files = {}
    if "file" in line:
        held = json.dumps({line["holds"]: filled}, ensure_ascii=False, indent=2)
        files[line["file"]] = held + "\n"
    words = [word for part in (line, *added) for word in part.get("words", ())]
    return Line(
        env=env,
        words=tuple(_filled(word, values) for word in words),
        notes=tuple(_note(add, values) for add in added),
        files=files,
    )


def _value(value: Any, values: Mapping[str, object]) -> Any:
    """A value of the speculation; a list is put in as one."""
    if not isinstance(value, str):
        return value
    held = values.get(value[1:-1]) if value.startswith("{") else None
    return list(held) if isinstance(held, tuple) else fill(value, values)


def _applies(when: str, wanted: Wanted) -> bool:
    return {
        "always": True,
        "trust": wanted.trust,
        "dtype": wanted.dtype is not None,
        "unquantised": wanted.unquantised,
        "context": wanted.positions is not None,
        "runner": wanted.runner is not None,
        "parallel": wanted.parallel,
        "layers": wanted.layers is not None,
        "revision": wanted.revision is not None,
    }[when]


def _values(release: LaunchRelease, wanted: Wanted) -> dict[str, object]:
    runners = release.first("runners")
    return {
        "model": wanted.model,
        "draft": wanted.draft,
        "dtype": wanted.dtype,
        "positions": wanted.positions,
        "theirs": wanted.theirs,
        "layers": wanted.layers,
        "revision": wanted.revision,
        "runner": runners["values"].get(wanted.runner) if runners is not None else None,
    }


def _env(add: Statement) -> Mapping[str, str]:
    env: Mapping[str, str] = add.get("env", {})
    return env


def _filled(word: str, values: Mapping[str, object]) -> str:
    """A word of a template; a path may have braces of its own, so it is put in whole."""
    name = word[1:-1]
    return str(values[name]) if word == f"{{{name}}}" and name in values else word


def _note(add: Statement, values: Mapping[str, object]) -> str:
    names = [*_env(add), *(w for w in add.get("words", ()) if w.startswith("-"))]
    names += list(add.get("speculation", ()))
    return f"{', '.join(names)}: {fill(add['why'], values)}"
