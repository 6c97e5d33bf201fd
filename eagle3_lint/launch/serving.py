"""A draft and its targets → a command for each, with what a check says of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from eagle3_lint.checks.subject import Subject
from eagle3_lint.checks.switches import positions
from eagle3_lint.contract.rules_folder import read_json, rules_folder
from eagle3_lint.errors import InputError
from eagle3_lint.examine import Examiner, Question
from eagle3_lint.facts import Facts
from eagle3_lint.frozen import frozen
from eagle3_lint.launch.line import Line, Wanted, quantised, write_line
from eagle3_lint.launch.statements import launch_file
from eagle3_lint.load import is_address, repository
from eagle3_lint.models import NAMING, normal
from eagle3_lint.releases import Target
from eagle3_lint.report.model import Result
from eagle3_lint.target_model import TargetModel

#: Where the target model stands in a command when nobody named it.
PLACEHOLDER = "TARGET"
_DTYPES = {"BF16": "bfloat16", "F16": "float16"}


@frozen
class Serving:
    """One target: the command, and what the target would do with the draft."""

    result: Result
    line: Line


def serve(
    facts: Facts, targets: list[Target], question: Question, model: str | None
) -> list[Serving]:
    """A command for each target.

    Args:
        model: the target model as the user names it; None takes what the draft's config names.
    """
    examiner = Examiner(facts, question)
    argument = model_argument(model, facts.config, question.model, question.rules)
    return [_serve(examiner, target, argument) for target in targets]


def _serve(examiner: Examiner, target: Target, model: str) -> Serving:
    question, facts = examiner.question, examiner.facts
    subject = examiner.subject(target) if target.known else None
    statements = launch_file(target.runtime, question.rules).release(target.release)
    short = _short(subject) if subject is not None else None
    runners = subject is not None and bool(subject.release.runners)
    draft, revision = draft_argument(facts.path)
    wanted = Wanted(
        model=model,
        draft=draft,
        trust="auto_map" in facts.config,
        dtype=unnamed_dtype(facts),
        unquantised=_unquantised(facts, question.model),
        positions=short[0] if short is not None else None,
        theirs=short[1] if short is not None else None,
        runner=question.runner if runners else None,
        parallel=facts.config.get("speculators_model_type") == "peagle",
        layers=_layers(subject) if subject is not None else None,
        revision=revision,
    )
    line = write_line(statements, wanted)
    notes = [*line.notes, *_notes(examiner, subject, model)]
    if revision is not None and not any(revision in word for word in line.words):
        notes.append(
            f"the main branch is served, {revision} was checked: this release cannot be told of a"
            f" draft's revision. hf download {draft} --revision {revision} --local-dir DIR gives a"
            " folder to serve"
        )
    told = replace(line, notes=tuple(notes))
    return Serving(examiner.examine(target, spans=False), told)


def _notes(examiner: Examiner, subject: Subject | None, model: str) -> list[str]:
    """What is left to the user."""
    notes = []
    if model == PLACEHOLDER:
        notes.append(
            f"{PLACEHOLDER}: the target model's path or repository, which -m names; quantisation"
            " and length depend on it"
        )
    elif examiner.question.model is None:
        notes.append(f"{model}: not known here, and quantisation and length depend on it (-m)")
    asked = examiner.question.runner
    if asked is not None and (subject is None or not subject.release.runners):
        notes.append(f"--runner {asked}: this release has one model runner")
    return notes


def _layers(subject: Subject) -> tuple[int, ...] | None:
    """The layers to capture, where an option names them and the default would be others."""
    trained = subject.trained.states
    if "option" not in subject.release.aux or not trained or trained == subject.fed.states:
        return None
    return tuple(state - 1 for state in trained) if min(trained) > 0 else None


def draft_argument(path: str) -> tuple[str, str | None]:
    """How a command names the draft: an absolute path, or its repository and the commit.

    Raises:
        InputError: it is no folder and no repository, so that no server could be given it.
    """
    if not is_address(path):
        return os.path.abspath(path), None
    named = repository(path)
    if named is None:
        raise InputError(f"{path}: servers take a folder or a whole repository; download it first")
    return named


def _short(subject: Subject) -> tuple[int, int] | None:
    """Positions of the draft and the target, when the server refuses the draft for them."""
    theirs = subject.model.max_position_embeddings if subject.model is not None else None
    statement = next((s for s in subject.release.contexts if s["does"] == "refuses"), None)
    if theirs is None or statement is None:
        return None
    own = positions(subject.resolution.config, statement)
    return (own, theirs) if own is not None and own < theirs else None


def _unquantised(facts: Facts, model: TargetModel | None) -> bool:
    return model is not None and model.quantised is True and not quantised(facts.config)


def unnamed_dtype(facts: Facts) -> str | None:
    """The dtype of a draft's weights, when its configuration names none or float32."""
    named = facts.config.get("dtype") or facts.config.get("torch_dtype")
    if named not in (None, "float32"):
        return None
    dtypes = {t.dtype for t in facts.tensors.values() if t.dtype in (*_DTYPES, "F32")}
    return _DTYPES.get(dtypes.pop()) if len(dtypes) == 1 else None


# -- the target model ------------------------------------------------------------------------------


def model_argument(
    asked: str | None,
    config: Mapping[str, object],
    model: TargetModel | None,
    rules: Path | None = None,
) -> str:
    """How a command names the target model: an absolute path, a repository, or a placeholder."""
    if asked is not None:
        path = Path(asked)
        if path.exists():
            return os.path.abspath(path.parent if path.is_file() else path)
        named = asked.removeprefix("hf://").partition("@")[0]
        return named if "/" in named else _repository(model, rules) or named
    speculators = config.get("speculators_config")
    verifier = speculators.get("verifier") if isinstance(speculators, Mapping) else None
    names = [config.get(field) for field in NAMING]
    names.append(verifier.get("name_or_path") if isinstance(verifier, Mapping) else None)
    for name in names:
        # A path of the machine that trained it is of no use here.
        if isinstance(name, str) and name.count("/") == 1 and name[0] not in "./~":
            return name
    return _repository(model, rules) or PLACEHOLDER


def _repository(model: TargetModel | None, rules: Path | None) -> str | None:
    """The repository of a known model."""
    folder = rules_folder() if rules is None else rules
    if model is None:
        return None
    for entry in read_json(folder / "targets" / "models.json")["models"]:
        if normal(entry["name"]) == normal(model.name):
            return str(entry["repo"])
    return None
