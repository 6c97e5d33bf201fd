"""Ask a vLLM release what it does with a draft, by letting it.

    python -m tests.conformance.vllm_oracle --sources DIR --release R DRAFT...

prints one JSON line per draft folder (``-`` reads folders from standard input). Everything from
``EngineArgs`` to the proposer's sharing of embedding and head is the release's own code, run from
its unpacked sources on the CPU; see ``vllm_standin`` for what is replaced.
"""

from __future__ import annotations

from pathlib import Path

from tests.conformance import telling, vllm_runtime


def prepare(folder: Path, release: str, transformers_root: Path) -> telling.Ask:
    """A release that answers."""
    vllm_runtime.prepare(folder, release, transformers_root)
    from tests.conformance import vllm_standin

    vllm_standin.install()
    from tests.conformance.vllm_engine import Engine

    return Engine(vllm_standin.target_model).ask


if __name__ == "__main__":
    raise SystemExit(telling.answer_all(__doc__, prepare, None))
