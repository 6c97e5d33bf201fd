"""E3L0xx: the files themselves. What is damaged here is damaged for every runtime."""

from __future__ import annotations

from collections.abc import Iterator

from eagle3_lint.diagnostic import Finding, Place
from eagle3_lint.facts import Facts

#: Kind of problem, as the readers name it → rule.
RULE_OF_KIND: dict[str, str] = {}


def check_container(facts: Facts) -> Iterator[Finding]:
    """One finding per problem of the container."""
    for problem in facts.problems:
        rule = RULE_OF_KIND.get(problem.kind, "E3L001")
        yield Finding(
            rule,
            {"file": problem.file, "problem": problem.message},
            (Place(file=problem.file, tensor=problem.tensor),),
        )
