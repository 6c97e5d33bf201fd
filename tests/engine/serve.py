"""Serve a target model with each of some drafts on the real vLLM engine, and count.

    OMP_NUM_THREADS=1 VLLM_PYTHON serve.py --target DIR --out FILE DRAFT...

VLLM_PYTHON is a Python that has vLLM; nothing of eagle3-lint is imported, so that it may be any.
FILE gets one JSON line about the run (versions, settings) and then one line per draft, as soon as
it is measured:

    draft                  name of its folder
    sha256                 of its config.json and model.safetensors, one after the other
    acceptance_length      1 + accepted / drafts: tokens gained per step of the target model
    accepted_per_position  how often the first, second, third proposed token was accepted
    drafts                 how often tokens were proposed
    same_as_target         whether every output is what the target model alone says
    error                  null, or type, message and stage (load, generate) of what was raised

vLLM is imported once; each engine then runs in a fork of that process.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # The engine in this process, so that a fork of it has everything imported.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    # What a CPU without triton-cpu gets anyway; the other runner reads layer ids elsewhere.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
}
ENGINE: Final = {
    "dtype": "bfloat16",
    "enable_prefix_caching": False,
    "enforce_eager": True,
    "max_model_len": 256,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 16,
    "seed": 0,
    "skip_tokenizer_init": True,
}
SPECULATION: Final = {"method": "eagle3", "num_speculative_tokens": 3}
# ignore_eos: all texts have the same length, so that drafts are compared on the same work.
SAMPLING: Final = {"detokenize": False, "ignore_eos": True, "max_tokens": 64, "temperature": 0}

LONGEST_MESSAGE: Final = 300
PATIENCE: Final = 600.0
"""Seconds after which an engine counts as hanging."""
COUNTERS: Final = "vllm:spec_decode_num_"

Record = dict[str, Any]
Tokens = list[list[int]]


def fingerprint(draft: Path) -> str:
    """What tells whether a stored measurement is about this very draft."""
    digest = hashlib.sha256()
    for name in ("config.json", "model.safetensors"):
        digest.update((draft / name).read_bytes())
    return digest.hexdigest()


def counted(metrics: Sequence[Any]) -> Record:
    """Acceptance from the engine's own counters."""
    # A vector has values, a counter one value.
    values: Record = {m.name: getattr(m, "value", None) or getattr(m, "values", 0) for m in metrics}
    drafts = values[COUNTERS + "drafts"]
    accepted = values[COUNTERS + "accepted_tokens"]
    per_position = values[COUNTERS + "accepted_tokens_per_pos"]
    times = max(drafts, 1)
    return {
        "acceptance_length": round(1 + accepted / times, 3),
        "accepted_per_position": [round(n / times, 3) for n in per_position],
        "drafts": drafts,
    }


def error_record(stage: str, error: BaseException, draft: Path | None) -> Record:
    """What was raised; the draft goes by its name alone."""
    message = str(error)
    if draft is not None:
        message = message.replace(f"{draft.parent}/", "")
    return {"type": type(error).__name__, "message": message[:LONGEST_MESSAGE], "stage": stage}


def serve(target: Path, prompts: Tokens, draft: Path | None) -> tuple[Record, Tokens | None]:
    """One engine: what it counted, or what it raised, and the tokens of every text."""
    from vllm import LLM, SamplingParams

    stage = "load"
    record: Record = {
        "acceptance_length": None,
        "accepted_per_position": None,
        "drafts": None,
        "error": None,
    }
    tokens = None
    arguments: dict[str, Any] = dict(ENGINE)
    if draft is not None:
        arguments["speculative_config"] = {"model": str(draft), **SPECULATION}
    try:
        engine = LLM(model=str(target), disable_log_stats=False, **arguments)
        stage = "generate"
        answers = engine.generate(
            [{"prompt_token_ids": prompt} for prompt in prompts],
            SamplingParams(**SAMPLING),
            use_tqdm=False,
        )
        tokens = [list(answer.outputs[0].token_ids) for answer in answers]
        if draft is not None:
            record.update(counted(engine.get_metrics()))
    except BaseException as error:  # SystemExit too: the engine's way to die is what is measured
        traceback.print_exc()
        record["error"] = error_record(stage, error, draft)
    return record, tokens


def _answer(pipe: Connection, target: Path, prompts: Tokens, draft: Path | None) -> None:
    pipe.send(serve(target, prompts, draft))
    pipe.close()
    # Threads of the engine could keep the process from ending in the usual way.
    sys.stderr.flush()
    os._exit(0)


def serve_in_fork(
    target: Path, prompts: Tokens, draft: Path | None
) -> tuple[Record, Tokens | None]:
    """The same in a process of its own, which may die or hang without harm."""
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe(duplex=False)
    process = forking.Process(target=_answer, args=(theirs, target, prompts, draft))
    process.start()
    theirs.close()
    try:
        if ours.poll(PATIENCE):
            answer: tuple[Record, Tokens | None] = ours.recv()
            return answer
        error = {"type": "Timeout", "message": f"no answer in {PATIENCE:.0f} s", "stage": None}
    except EOFError:
        process.join()
        message = f"the engine's process ended with {process.exitcode}"
        error = {"type": "Death", "message": message, "stage": None}
    finally:
        process.kill()
        process.join()
    return {"error": error}, None


def about_the_run(prompts: Tokens) -> Record:
    """Versions and settings: what a reader needs to repeat the run."""
    import torch
    import vllm

    return {
        "versions": {
            "vllm": vllm.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "device": "cpu" if not torch.cuda.is_available() else torch.cuda.get_device_name(),
        "environment": {name: os.environ[name] for name in ENVIRONMENT},
        "engine": ENGINE,
        "speculation": SPECULATION,
        "sampling": SAMPLING,
        "prompts": {"count": len(prompts), "tokens": sorted({len(p) for p in prompts})},
    }


def main() -> int:
    """Parse the command line; the target alone first, then every draft."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--target", type=Path, required=True, help="with a prompts.json inside")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("drafts", nargs="+", type=Path)
    options = parser.parse_args()
    prompts: Tokens = json.loads((options.target / "prompts.json").read_text(encoding="utf-8"))

    with tempfile.TemporaryDirectory() as room, options.out.open("w", encoding="utf-8") as out:
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        for name in ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR"):
            os.environ.setdefault(name, f"{room}/{name}")
        # Everything an engine imports, before the first fork.
        import vllm.entrypoints.llm
        import vllm.model_executor.models.llama_eagle3
        import vllm.v1.worker.cpu_model_runner  # noqa: F401

        def write(record: Record) -> None:
            print(json.dumps(record), file=out, flush=True)

        write(about_the_run(prompts))
        alone, expected = serve_in_fork(options.target, prompts, None)
        if expected is None:
            print(f"the target model alone does not run: {alone['error']}", file=sys.stderr)
            return 1
        for draft in options.drafts:
            record, tokens = serve_in_fork(options.target, prompts, draft)
            same = None if tokens is None else tokens == expected
            write(
                {
                    "draft": draft.name,
                    "sha256": fingerprint(draft),
                    **record,
                    "same_as_target": same,
                }
            )
            print(f"{draft.name}: {record}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
