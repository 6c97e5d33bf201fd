"""``check``: a path and some targets in, a report out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eagle3_lint.errors import InputError
from eagle3_lint.examine import Examiner, Question
from eagle3_lint.facts import Facts, gather_facts, is_eagle3_draft
from eagle3_lint.load.folder import open_checkpoint
from eagle3_lint.models import find_target_model, named_in_config
from eagle3_lint.releases import Target, parse_targets
from eagle3_lint.report.model import CheckpointReport, Report
from eagle3_lint.target_model import TargetModel

if TYPE_CHECKING:
    from eagle3_lint.comparison import Comparison
    from eagle3_lint.probe.patch import Patch


def read_draft(path: str | Path) -> Facts:
    """The facts of the draft at ``path``.

    Raises:
        InputError: nothing can be read there, or what is there is no EAGLE-3 draft.
    """
    checkpoint = open_checkpoint(path)
    names = [tensor.name for tensor in checkpoint.tensors]
    whole = any(".layers.2." in name or "_flat_param" in name for name in names)
    if whole and (state := _unfinished(names)):
        raise InputError(f"{path}: not an exported draft: {state}")
    if not is_eagle3_draft(checkpoint.config.data, names):
        raise InputError(_not_a_draft(str(path), checkpoint.config.data, names))
    return gather_facts(checkpoint)


def _unfinished(names: Sequence[str]) -> str:
    from eagle3_lint.unfinished import unfinished_tensors

    return unfinished_tensors(names)


def _not_a_draft(path: str, config: object, names: Sequence[str]) -> str:
    layers = {n.split(".layers.")[1].split(".")[0] for n in names if ".layers." in n}
    if any(n.endswith("fc.weight") for n in names):
        what = "it looks like an EAGLE-1 or EAGLE-2 draft (an fc, but no hidden_norm and no d2t)"
    elif len(layers) > 2:
        what = f"it looks like a whole model of {len(layers)} layers"
    else:
        what = "config.json names no EAGLE-3 architecture and the weights hold no draft's tensors"
    return f"{path}: no EAGLE-3 draft: {what}; give the folder that the trainer exported"


def check(
    path: str | Path,
    targets: Iterable[str] = (),
    target_model: str | None = None,
    *,
    ids_mean: str | None = None,
    trained_on: Sequence[int] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    rules: Path | None = None,
    runner: str | None = None,
    launch: str | None = None,
) -> Report:
    """Say what each target would do with the draft at ``path``.

    Args:
        path: a draft folder or a file inside one.
        targets: ``sglang==0.5.9``, ``vllm>=0.12,<0.22``, ``sglang``, ``sglang@installed``; none
            asks for the newest known SGLang and vLLM. ``sglang@FOLDER`` and ``sglang@WHEEL`` ask
            for sources, patched or not.
        target_model: a known name, a folder or a config.json; None takes what the draft names.
        ids_mean: ``output`` or ``input``: how to read the draft's layer ids.
        trained_on: aux states the draft was trained on.
        select, ignore: rule ids, names, or beginnings of ids.
        rules: another folder of rules than the built-in one.
        runner: vLLM's model runner, ``v1`` or ``v2``; None takes the one of a plain start.
        launch: the command that starts the server, or a script that holds it; it is checked too,
            and says runtime, target model and runner where nothing else does.

    Raises:
        InputError: bad input of any kind, in one line that says what, where and what to do.
    """
    facts, wanted, question = prepare(
        path,
        targets,
        target_model,
        ids_mean=ids_mean,
        trained_on=trained_on,
        select=select,
        ignore=ignore,
        rules=rules,
        runner=runner,
        launch=launch,
    )
    return Report((check_facts(facts, wanted, question),))


def prepare(
    path: str | Path,
    targets: Iterable[str],
    target_model: str | None,
    *,
    ids_mean: str | None = None,
    trained_on: Sequence[int] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    rules: Path | None = None,
    runner: str | None = None,
    launch: str | None = None,
) -> tuple[Facts, list[Target], Question]:
    """Everything that a check or a fix needs to know, read from disk.

    Raises:
        InputError: bad input of any kind.
    """
    wanted = parse_targets(targets, rules)
    model = find_target_model(target_model, rules) if target_model is not None else None
    facts = _with_tokens(read_draft(path), rules)
    command = None
    if launch is not None:
        from eagle3_lint.launch.parse import read_launch

        command = read_launch(launch, facts.path, rules)
        wanted = command.of_its_runtime(wanted)
        runner = runner or command.runner
        model = model if model is not None else command.target_model()
    model = model if model is not None else named_in_config(facts.config, rules)
    question = Question(
        model=model,
        trained_on=tuple(trained_on) if trained_on is not None else None,
        ids_mean=ids_mean,
        select=tuple(select),
        ignore=tuple(ignore),
        rules=rules,
        runner=runner,
        launch=command,
        patches=_patches(wanted, model, rules),
        comparison=_comparison(facts, model),
    )
    return facts, wanted, question


def _with_tokens(facts: Facts, rules: Path | None) -> Facts:
    """The draft with the tokens of its vocabulary, when d2t is missing and a side file has them."""
    if facts.d2t is not None or not any(
        name.endswith(("_meta.pt", "_map.pt")) for name in facts.files
    ):
        return facts
    from eagle3_lint.token_list import recorded_tokens

    return replace(facts, token_list=recorded_tokens(facts, rules))


def _comparison(facts: Facts, model: TargetModel | None) -> Comparison | None:
    """What the weights say beside the target model's, which a known name does not have."""
    if model is None or model.folder is None:
        return None
    from eagle3_lint.comparison import compare_weights

    return compare_weights(facts, model.folder)


def _patches(
    targets: Iterable[Target], model: TargetModel | None, rules: Path | None
) -> dict[Target, Patch]:
    """What the sources say that targets ask for."""
    asked = [target for target in targets if target.sources is not None and target.known]
    if not asked:
        return {}
    from eagle3_lint.probe.patch import read_patch

    architecture = model.architecture if model is not None else None
    return {target: read_patch(target, architecture, rules) for target in asked}


def check_facts(facts: Facts, targets: Sequence[Target], question: Question) -> CheckpointReport:
    """The same for facts already gathered."""
    examiner = Examiner(facts, question)
    return CheckpointReport(
        path=facts.path,
        producer=examiner.producer,
        dialect=facts.dialect,
        results=tuple(examiner.examine(target) for target in targets),
    )
