"""E3L617: numbers of tokens that do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.checks.launch_finding import finding, written
from eagle3_lint.checks.subject import Subject
from eagle3_lint.diagnostic import Finding
from eagle3_lint.launch.options import Given, whole_number
from eagle3_lint.launch.parse import Launch
from eagle3_lint.launch.statements import LaunchRelease
from eagle3_lint.simulate.configure import fill


def check_counts(
    subject: Subject, launch: Launch, release: LaunchRelease, given: Given
) -> Iterator[Finding]:
    """Findings about the numbers; the statements of ``[[count]]`` say which hold."""
    if given.gives("adaptive"):
        return
    for statement in release.all("count"):
        seen = _COUNTS[statement["do"]](given, release)
        if seen is None:
            continue
        adjusted = statement["do"] == "adjusted"
        error = fill(statement.get("raises", ""), seen).rstrip(": ")
        yield finding(
            subject,
            launch,
            "E3L617",
            "adjusted" if adjusted else "count",
            {**seen, "error": error},
            word=str(seen["option"]),
            statement=statement,
            effect="none" if adjusted else None,
            severity="info" if adjusted else None,
        )


Seen = dict[str, object] | None


def _together(given: Given, release: LaunchRelease) -> Seen:
    others = [m for m in ("topk", "draft-tokens") if given.gives(m)]
    if given.gives("steps") or not others or given.partial:
        return None
    option = given.names[others[0]]
    return {"option": option, "what": f"{option} without {written(release, 'steps')}"}


def _topk_missing(given: Given, release: LaunchRelease) -> Seen:
    if not given.gives("steps") or given.gives("topk") or given.partial:
        return None
    option = given.names["steps"]
    return {"option": option, "what": f"{option} without {written(release, 'topk')}"}


def _adjusted(given: Given, release: LaunchRelease) -> Seen:
    steps, asked = given.number("steps"), given.number("draft-tokens")
    if given.number("topk") != 1 or steps is None or asked is None or asked == steps + 1:
        return None
    return {"option": given.names["draft-tokens"], "asked": asked, "steps": steps, "is": steps + 1}


def _tree(given: Given, release: LaunchRelease) -> Seen:
    steps, topk = given.number("steps"), given.number("topk")
    asked = given.number("draft-tokens")
    if steps is None or topk is None or asked is None or topk < 2:
        return None
    nodes = topk + (steps - 1) * topk * topk
    if asked - 1 <= nodes:
        return None
    what = f"{asked} draft tokens of a tree with {nodes} nodes ({steps} steps of topk {topk})"
    return {"option": given.names["draft-tokens"], "what": what}


def _required(given: Given, release: LaunchRelease) -> Seen:
    table = given.speculation or {}
    counts = ("num_speculative_tokens", "num_speculative_tokens_per_batch_size")
    if given.speculation is None or any(table.get(c) is not None for c in counts):
        return None
    return {"option": "num_speculative_tokens", "what": "a draft without num_speculative_tokens"}


def _positive(given: Given, release: LaunchRelease) -> Seen:
    tokens = whole_number(given.field("num_speculative_tokens"))
    if tokens is None or tokens > 0:
        return None
    what = f"num_speculative_tokens {tokens}"
    return {"option": "num_speculative_tokens", "what": what, "tokens": tokens}


def _draft_tp(given: Given, release: LaunchRelease) -> Seen:
    own = whole_number(given.field("draft_tensor_parallel_size"))
    target = given.number("tensor-parallel") if given.gives("tensor-parallel") else 1
    if own is None or target is None or own in (1, target) or given.partial:
        return None
    what = f"draft_tensor_parallel_size {own} beside a target on {target}"
    return {"option": "draft_tensor_parallel_size", "what": what, "draft_tp": own}


_COUNTS = {
    "together": _together,
    "topk-missing": _topk_missing,
    "adjusted": _adjusted,
    "tree": _tree,
    "required": _required,
    "positive": _positive,
    "draft-tp": _draft_tp,
}
