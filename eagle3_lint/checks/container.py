"""E3L0xx: the files themselves. What is damaged here is damaged for every runtime."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from eagle3_lint.diagnostic import Finding, Place
from eagle3_lint.facts import Facts

#: Kind of problem, as the readers name it → rule.
RULE_OF_KIND = {
    "too-short": "E3L001", "too-large": "E3L001", "truncated-header": "E3L002",
    "not-utf8": "E3L001", "not-json": "E3L001", "not-an-object": "E3L001",
    "bad-metadata": "E3L001", "bad-tensor-entry": "E3L001", "overflow": "E3L001",
    "sub-byte": "E3L001", "bad-shape": "E3L001", "unreadable": "E3L001",
    "truncated-data": "E3L002", "trailing-bytes": "E3L003", "hole": "E3L004",
    "overlap": "E3L004", "duplicate-key": "E3L005", "unknown-dtype": "E3L006",
    "git-lfs-pointer": "E3L007", "torch-zip": "E3L008", "torch-legacy-pickle": "E3L008",
    "html": "E3L009", "empty-file": "E3L010", "all-zero": "E3L010", "missing-shard": "E3L011",
    "tensor-in-wrong-shard": "E3L012", "tensor-in-two-shards": "E3L013",
    "path-leaves-folder": "E3L014", "not-in-index": "E3L015", "named-but-absent": "E3L015",
    "bad-index": "E3L015", "needs-torch": "E3L016", "bad-torch-file": "E3L017",
    "no-weights": "E3L018", "weights-twice": "E3L019",
}  # fmt: skip


def check_container(facts: Facts) -> Iterator[Finding]:
    """One finding per rule and file, however many tensors it concerns."""
    key = [(RULE_OF_KIND[problem.kind], problem.file) for problem in facts.problems]
    pairs = sorted(zip(key, range(len(key)), facts.problems, strict=True))
    for (rule, file), group in groupby(pairs, key=lambda pair: pair[0]):
        problems = [problem for _, _, problem in group]
        more = f" ({len(problems)} tensors so)" if len(problems) > 1 else ""
        named = f"{problems[0].tensor}: " if problems[0].tensor else ""
        yield Finding(
            rule,
            {"file": file, "problem": f"{named}{problems[0].message}{more}"},
            tuple(Place(file=file, tensor=problem.tensor) for problem in problems),
        )
