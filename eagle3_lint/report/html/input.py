"""What the page shows of a draft beside its report."""

from __future__ import annotations

from eagle3_lint.coverage import Coverage
from eagle3_lint.diagnostic import Severity
from eagle3_lint.facts import Facts
from eagle3_lint.frozen import frozen
from eagle3_lint.report.model import Verdict
from eagle3_lint.target_model import TargetModel


@frozen
class ReleaseVerdict:
    """One known release.

    Attributes:
        rule, reason: the finding that decides the verdict, else the first that is no mere
            information; the message does not name the release, so that neighbours can agree.
        severity: of that finding, where it does not decide the verdict.
    """

    release: str
    verdict: Verdict
    rule: str | None = None
    reason: str = ""
    severity: Severity | None = None


@frozen
class RuntimeVerdicts:
    """Every known release of a runtime, oldest first."""

    runtime: str
    title: str
    releases: tuple[ReleaseVerdict, ...]


@frozen
class HtmlInput:
    """One draft.

    Attributes:
        model: the target model; None when it is not known.
        coverage: how its vocabulary covers the target model's, if anything says so.
        history: the draft before every known release of every runtime.
    """

    facts: Facts
    model: TargetModel | None
    coverage: Coverage | None
    history: tuple[RuntimeVerdicts, ...]
