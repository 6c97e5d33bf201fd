"""One imported vLLM release, asked about drafts the way its engine meets them.

``EngineArgs(...).create_engine_config()``, the proposer's constructor and its ``load_model`` (which
calls ``get_model`` and shares the target's embedding and head) are the release's own. Whether the
release is a real installation or unpacked sources with stand-ins is the caller's business.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch

from tests.conformance import telling, vllm_forward, vllm_trace
from tests.conformance.draft import HIDDEN, VOCAB
from tests.conformance.vllm_runtime import optional

MAP: Final = "draft_id_to_target_id"
"""vLLM's name of d2t. Made as zeros, which is the identity: row i is token i."""


class Engine:
    """A release that has been imported.

    ``target`` makes the target model from the engine's config and the target's width.
    """

    repacks = False
    """Whether layers may repack their weights for kernels once they are loaded."""

    def __init__(self, target: Callable[[Any, int], Any]) -> None:
        self.make_target = target
        self.room = tempfile.TemporaryDirectory()
        self.trace = vllm_trace.Trace()
        self.arguments: Any = importlib.import_module("vllm.engine.arg_utils").EngineArgs
        self.configs: Any = importlib.import_module("vllm.config")
        self.proposer: Any = importlib.import_module("vllm.v1.spec_decode.eagle")
        importlib.import_module("vllm.model_executor.model_loader")
        self.grouped = False
        self._watch_construction()
        _do_not_wait()
        gc.freeze()  # loading a model collects garbage twice; what was imported stays

    def ask(self, draft: Path) -> dict[str, Any]:
        """The answer for one draft folder, ready for JSON."""
        self.trace = vllm_trace.Trace()
        error: BaseException | None = None
        found: dict[str, Any] = {}
        try:
            found = self._serve(draft)
        except Exception as raised:
            error = raised
        finally:
            torch.set_default_dtype(torch.float32)
        stage = self.trace.stage
        if error is not None and _in_registry(error):
            stage = "architecture"
        model = self.trace.model
        shapes = self.trace.shapes
        self.trace = vllm_trace.Trace()  # lets go of the model
        words = None if error is None else worded(error, draft)
        return {
            **telling.told(stage, words, found, shapes),
            "architecture": None if model is None else type(model).__name__,
        }

    def _serve(self, draft: Path) -> dict[str, Any]:
        fields = json.loads((draft / "config.json").read_text())
        hidden = target_width(fields)
        config = self._engine_config(draft, hidden)
        config.load_config.use_tqdm_on_load = False
        self._process_groups(config)
        with self.configs.set_current_vllm_config(config):
            target = self.make_target(config, hidden)
            self.trace.stage = "build"
            proposer = self._make_proposer(config)
            proposer.load_model(target)
            self.trace.stage = "done"
            return self._judge(proposer.model, target, config)

    def _engine_config(self, draft: Path, hidden: int) -> Any:
        target = self.target_folder(hidden)
        arguments = self.arguments(
            model=str(target),
            tokenizer=str(target),
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=512,
            enforce_eager=True,
            disable_log_stats=True,
            speculative_config={
                "method": "eagle3",
                "model": str(draft),
                "num_speculative_tokens": 3,
            },
        )
        return arguments.create_engine_config()

    def parameters_read(self, model: Any) -> tuple[set[str], str | None]:
        """See ``vllm_forward``."""
        return vllm_forward.parameters_read(model)

    def target_folder(self, hidden: int) -> Path:
        """A config of a plain Llama target of that width: 24 layers, 2048 positions."""
        folder = Path(self.room.name) / f"target{hidden}"
        if not folder.is_dir():
            folder.mkdir()
            self.write_target(folder, hidden)
        return folder

    def write_target(self, folder: Path, hidden: int) -> None:
        """The files of the target model that this engine reads."""
        (folder / "config.json").write_text(json.dumps(target_config(hidden)))

    def _process_groups(self, config: Any) -> None:
        """One rank of a gloo group, once per process."""
        if self.grouped:
            return
        distributed: Any = importlib.import_module("vllm.distributed")
        meeting = Path(self.room.name) / "meeting"
        with self.configs.set_current_vllm_config(config):
            distributed.init_distributed_environment(1, 0, f"file://{meeting}", 0, "gloo")
            distributed.initialize_model_parallel(1, 1)
        self.grouped = True

    def _make_proposer(self, config: Any) -> Any:
        cls = self.proposer.EagleProposer
        given: dict[str, Any] = {"vllm_config": config, "device": torch.device("cpu")}
        if "runner" in inspect.signature(cls.__init__).parameters:
            given["runner"] = SimpleNamespace(
                device=torch.device("cpu"),
                is_multimodal_raw_input_supported=False,
                uses_mrope=False,
            )
        return cls(**given)

    def _watch_construction(self) -> None:
        """Poison every draft as it is made, and watch its ``load_weights``.

        Models are made by ``initialize_model`` (``_initialize_model`` in the first releases) of the
        model loader; 0.8.5 makes the draft class itself, in its proposer.
        """
        for name in list(sys.modules):
            module = sys.modules[name]
            if not name.startswith("vllm.model_executor.model_loader"):
                continue
            for function in ("initialize_model", "_initialize_model"):
                if function in vars(module):
                    setattr(module, function, self._watched(vars(module)[function]))
        if hasattr(self.proposer, "Eagle3LlamaForCausalLM") and not hasattr(
            self.proposer, "get_model"
        ):
            made = self.proposer.Eagle3LlamaForCausalLM
            self.proposer.Eagle3LlamaForCausalLM = self._watched(made)

    def _watched(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **kwargs: Any) -> Any:
            model = make(*args, **kwargs)
            trace = self.trace
            if trace.stage == "build" and trace.model is None:
                trace.model = model
                trace.shapes = {n: list(p.shape) for n, p in model.named_parameters()}
                vllm_trace.poison(model)
                if not self.repacks:
                    leave_as_loaded(model)
                model.load_weights = self.loading(model)
            return model

        return made

    def loading(self, model: Any) -> Callable[..., Any]:
        """The ``load_weights`` that a draft gets in the place of its own."""
        watched = vllm_trace.watch(model, model.load_weights, self.trace)

        def load(*args: Any, **kwargs: Any) -> Any:
            result = watched(*args, **kwargs)
            self.trace.stage = "after-load"
            _put_zeros_back(model)
            return result

        return load

    def _judge(self, model: Any, target: Any, config: Any) -> dict[str, Any]:
        trace = self.trace
        own = {
            name: vllm_trace.own_rows(model, name, tensor) for name, tensor in trace.loaded.items()
        }
        holes = {name for name, tensor in own.items() if vllm_trace.has_holes(tensor)}
        from_target = _taken_from(model, target, set(own))
        read, failure = self.parameters_read(model)
        draft_vocab = getattr(model.config, "draft_vocab_size", None)
        unmapped = MAP in holes
        unfilled = (holes - from_target) & read
        if unmapped and draft_vocab == VOCAB:
            unfilled.discard(MAP)
        return {
            **vllm_trace.judge(trace, own),
            "unfilled": sorted(unfilled),
            "params_not_loaded": [MAP] if unmapped else [],
            "filled": sorted(set(own) - holes),
            "from_target": sorted(from_target),
            "misfit": _misfits(model, trace.shapes, from_target),
            "unread": sorted(set(own) - read),
            "architectures": list(model.config.architectures or []),
            "dtype": str(config.speculative_config.draft_model_config.dtype).removeprefix("torch."),
            "forward_error": failure,
        }


def leave_as_loaded(model: Any) -> None:
    """Keep layers from repacking their weights for kernels: what was loaded is looked at."""
    for module in model.modules():
        method = getattr(module, "quant_method", None)
        if method is not None:
            with contextlib.suppress(AttributeError):
                method.process_weights_after_loading = lambda *_: None


def _put_zeros_back(model: Any) -> None:
    mapping = getattr(model, MAP, None)
    if isinstance(mapping, torch.Tensor) and vllm_trace.has_holes(mapping.data):
        mapping.data.zero_()


def _taken_from(model: Any, target: Any, names: set[str]) -> set[str]:
    """The parameters whose layer is the target's own object, or whose data the target's is."""
    lent = {id(m) for m in target.modules()}
    storages = {p.untyped_storage()._cdata for p in target.parameters()}
    taken = set()
    for name in names:
        owner_name, _, leaf = name.rpartition(".")
        try:
            owner = model.get_submodule(owner_name)
        except AttributeError:
            continue
        weight = getattr(owner, leaf, None)
        shared = isinstance(weight, torch.Tensor) and weight.untyped_storage()._cdata in storages
        if id(owner) in lent or shared:
            taken.add(name)
    return taken


def _misfits(model: Any, shapes: dict[str, list[int]], taken: set[str]) -> list[str]:
    """Parameters taken from the target whose shape is not the one that the draft asked for."""
    return sorted(
        name
        for name in taken
        if list(model.get_submodule(name.rpartition(".")[0]).weight.shape) != shapes[name]
    )


def target_width(fields: dict[str, Any]) -> int:
    """The width of the target model a draft config asks for."""
    inner = fields.get("transformer_layer_config")
    for held, key in (
        (fields, "target_hidden_size"),
        (fields, "hidden_size"),
        (inner if isinstance(inner, dict) else {}, "hidden_size"),
    ):
        if isinstance(held.get(key), int):
            return int(held[key])
    return HIDDEN


def target_config(hidden: int) -> dict[str, Any]:
    """config.json of the target model."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": 160,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_hidden_layers": 24,
        "vocab_size": VOCAB,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }


def _do_not_wait() -> None:
    """Reading a config that cannot be read is tried twice, two seconds apart."""
    for name in ("vllm.transformers_utils.config", "vllm.transformers_utils.repo_utils"):
        module = optional(name)
        if module is not None and hasattr(module, "time"):
            module.time = SimpleNamespace(sleep=lambda _: None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what pydantic wrapped or what it was raised from."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        here = waiting.pop(0)
        if id(here) in seen:
            continue
        seen.add(id(here))
        yield here
        listed = getattr(here, "errors", None)
        if callable(listed):
            with contextlib.suppress(Exception):
                for entry in listed():
                    inner = (entry.get("ctx") or {}).get("error")
                    if isinstance(inner, BaseException):
                        waiting.append(inner)
        if here.__cause__ is not None:
            waiting.append(here.__cause__)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(error.__traceback__)
    return [f for f in frames if "/vllm/" in f.filename]


def _in_registry(error: BaseException) -> bool:
    """Whether class resolution raised (models/registry.py, model_loader/utils.py)."""
    return any(
        frame.filename.endswith("models/registry.py") or frame.name == "resolve_transformers_arch"
        for cause in _causes(error)
        for frame in _frames(cause)
    )


def worded(error: BaseException, draft: Path) -> dict[str, str]:
    """Type, message, and the release's file and line of the innermost cause."""
    place = ""
    for cause in _causes(error):
        frames = _frames(cause)
        if frames:
            path = frames[-1].filename.rpartition("/vllm/")[2]
            place = f"{path}:{frames[-1].lineno}"
    message = re.sub(r"0x[0-9a-f]+", "0x...", str(error).replace(str(draft), "<draft>"))
    return {
        "type": type(error).__name__,
        "message": message[:telling.MESSAGE_LIMIT],
        "where": place,
    }
