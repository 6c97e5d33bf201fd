"""A draft with the other form of config.json, because the user asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from eagle3_lint.checks.config import fitting_architecture
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.dialect import CannotBeNestedError, flattened, is_nested, nested
from eagle3_lint.errors import InputError
from eagle3_lint.examine import Examiner, Question
from eagle3_lint.plan.edits import Edited
from eagle3_lint.releases import Target

Form = Literal["flat", "speculators"]


def converted(draft: Edited, form: Form, targets: Sequence[Target], question: Question) -> Edited:
    """The draft in the form that is asked for; the same when it has that form already.

    Args:
        targets: the first one's draft class names a flat configuration's architecture.

    Raises:
        InputError: the draft cannot have that form, with the reason.
    """
    facts = draft.facts
    if is_nested(facts.config) == (form == "speculators"):
        return draft
    states = Examiner(facts, question).trained.states
    if form == "flat":
        target = targets[0]
        runtime = runtime_file(target.runtime, question.rules)
        architecture = fitting_architecture(facts, runtime, target.release)
        if architecture is None:
            raise InputError(
                f"{facts.path}: {target} has no draft class for a layer like this one, so that no"
                " flat configuration could name it; ask for another target"
            )
        return draft.then(flattened(facts, architecture, states, question.rules))
    model = question.model
    try:
        edits = nested(
            facts,
            states,
            model.name if model is not None else None,
            model.architecture if model is not None else None,
            question.rules,
        )
    except CannotBeNestedError as error:
        raise InputError(f"{facts.path}: {error}; keep the flat form") from None
    return draft.then(edits)
