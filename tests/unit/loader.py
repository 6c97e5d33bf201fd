"""What a contract makes of a draft: for tests that ask one runtime about many releases."""

from __future__ import annotations

from eagle3_lint.simulate.result import Failure, Load
from tests.conformance.compare import play
from tests.conformance.corpus import Case
from tests.conformance.draft import Draft


class Loader:
    """The loader of one runtime, as its contracts have it."""

    def __init__(self, runtime: str) -> None:
        self.runtime = runtime

    def played(self, draft: Draft, release: str) -> Failure | Load:
        case = Case("one", dict(draft.fields), dict(draft.tensors), draft.d2t, frozenset())
        return play(case, self.runtime, release)

    def refused(self, draft: Draft, release: str) -> tuple[str, str]:
        """Type and text of the exception."""
        failure = self.played(draft, release)
        assert isinstance(failure, Failure), failure
        return failure.type, failure.message

    def loaded(self, draft: Draft, release: str) -> Load:
        load = self.played(draft, release)
        assert isinstance(load, Load), load
        return load
