"""Ask a vLLM release which aux hidden states its target models hand over to a draft.

    python -m tests.conformance.vllm_aux_oracle --sources DIR --release R

prints one JSON line per model runner, target model and configuration of ``vllm_aux_cases``, and one
per target model about the runner that it gets. The way from config.json to the captured states is
the release's own: ``EngineArgs`` with its configuration classes, the proposer of the first runner,
the statements of the runner (``vllm_aux_runner``), the target class with its setter and its
defaults, and its forward pass (``vllm_aux_target``).
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

from tests.conformance import sources, standin, vllm_runtime


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="the unpacked release")
    parser.add_argument("--release", required=True)
    parser.add_argument("--transformers", type=Path, default=sources.cache() / "transformers")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    # What a runtime prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    vllm_runtime.prepare(given.sources, given.release, given.transformers)
    # Imported by the first runner; the CPU build of 0.8.5 does not declare it.
    standin.install("vllm", {"numba"})
    from tests.conformance import vllm_standin

    vllm_standin.install()
    from tests.conformance.vllm_aux_world import World

    for answer in World().answers():
        print(json.dumps(answer, default=repr), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
