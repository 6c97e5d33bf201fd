"""Commands as a shell takes them, and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from eagle3_lint.launch.line import Line
from eagle3_lint.launch.serving import Serving
from eagle3_lint.version import __version__

SCHEMA = "eagle3-lint/launch/1"


def render_json(path: str, servings: Sequence[Serving]) -> str:
    """The stable JSON form, ending in a newline."""
    document = {
        "schema": SCHEMA,
        "tool": {"version": __version__},
        "path": path,
        "commands": [
            {
                "target": s.result.target.to_json(),
                "verdict": s.result.verdict,
                "env": dict(s.line.env),
                "argv": list(s.line.words),
                **({"files": dict(s.line.files)} if s.line.files else {}),
                "notes": list(s.line.notes),
            }
            for s in servings
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def render(servings: Sequence[Serving], width: int) -> str:
    """Everything as one text that a shell can run: what is not a command is a comment."""
    return "\n".join("\n".join(_block(serving, width)) + "\n" for serving in servings)


def _block(serving: Serving, width: int) -> Iterator[str]:
    yield f"# {serving.result.target}: {serving.result.verdict}"
    for note in serving.line.notes:
        yield f"# {note}"
    for name, content in serving.line.files.items():
        yield f"cat > {shlex.quote(name)} <<'EOF'\n{content}EOF"
    yield shell(serving.line, width)


def shell(line: Line, width: int) -> str:
    """The command, quoted; broken before its options where it is wider than ``width``."""
    parts = [f"{name}={shlex.quote(value)}" for name, value in line.env.items()]
    parts.append("")
    for word in line.words:
        if word.startswith("--"):
            parts.append("")
        parts[-1] = f"{parts[-1]} {shlex.quote(word)}".lstrip()
    whole = " ".join(parts)
    return whole if len(whole) <= width else " \\\n  ".join(parts)
