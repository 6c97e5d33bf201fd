"""Ask a vLLM release what it does with a draft, by letting it.

    python -m tests.conformance.vllm_oracle --sources DIR --release R DRAFT...

prints one JSON line per draft folder (``-`` reads folders from standard input). Everything from
``EngineArgs`` to the proposer's sharing of embedding and head is the release's own code, run from
its unpacked sources on the CPU; see ``vllm_standin`` for what is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path

from tests.conformance import sources, vllm_runtime


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="the unpacked release")
    parser.add_argument("--release", required=True)
    parser.add_argument("--transformers", type=Path, default=sources.cache() / "transformers")
    parser.add_argument("drafts", nargs="*", help="folders; - reads one a line from stdin")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    drafts = given.drafts
    if drafts == ["-"]:
        drafts = [line.strip() for line in sys.stdin if line.strip()]
    # What a runtime prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    vllm_runtime.prepare(given.sources, given.release, given.transformers)
    from tests.conformance import vllm_standin

    vllm_standin.install()
    from tests.conformance.vllm_engine import Engine

    engine = Engine(vllm_standin.target_model)
    for draft in drafts:
        folder = Path(draft)
        print(json.dumps({"case": folder.name, **engine.ask(folder)}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
