"""vLLM's two model runners, as far as they choose which layers of the target model are captured.

A runner is made without its constructor (which wants a GPU and a cache); the statements of the
constructor and of ``load_model`` that are about aux hidden states are cut out of the release's file
and run as they stand, in the names of their own module, with that runner as ``self``. Methods and
functions they call are the release's own.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from types import CodeType
from typing import Any, Final

from tests.conformance.vllm_runtime import optional

ENABLED: Final = "use_aux_hidden_state_outputs"

SET_UP: Final = "_setup_eagle3_aux_hidden_state_outputs"
"""The first runner has a method of its own for it since 0.22.0."""

FIRST: Final = "vllm.v1.worker.gpu_model_runner"
"""The model runner that there always was."""

SECOND: Final = "vllm.v1.worker.gpu.model_runner"
"""The one that ``VLLM_USE_V2_MODEL_RUNNER`` takes; it has EAGLE-3 from 0.17.0 on."""


class Runner:
    """One of the two runners of a release. Raises LookupError when its module has no EAGLE-3."""

    def __init__(self, module: str) -> None:
        self.module: Any = importlib.import_module(module)
        self.kind: Any = self.module.GPUModelRunner
        path = Path(str(inspect.getsourcefile(self.module)))
        found = methods(ast.parse(path.read_text(encoding="utf-8")))
        self._decide = _compiled(deciding(found["__init__"]), path)
        self._set_up: CodeType | None = None
        if SET_UP not in found:
            self._set_up = _compiled(setting(found["load_model"]), path)

    def choose(self, config: Any, proposer: Any, model: Any) -> bool:
        """Let the runner tell ``model`` what to capture; False when it does not want anything."""
        runner = self.kind.__new__(self.kind)
        runner.__dict__.update(
            vllm_config=config,
            speculative_config=config.speculative_config,
            parallel_config=config.parallel_config,
            device=None,
            drafter=proposer,
            model=model,
            pp_handler=None,
            pp_size=1,
            use_pp=False,
        )
        setattr(runner, ENABLED, False)
        self._run(self._decide, runner)
        if not getattr(runner, ENABLED):
            return False
        if self._set_up is None:
            getattr(runner, SET_UP)()
        else:
            self._run(self._set_up, runner)
        return True

    def _run(self, code: CodeType, runner: Any) -> None:
        exec(code, {**vars(self.module), "self": runner})


def methods(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The methods of ``GPUModelRunner``."""
    return {
        node.name: node
        for runner in tree.body
        if isinstance(runner, ast.ClassDef) and runner.name == "GPUModelRunner"
        for node in runner.body
        if isinstance(node, ast.FunctionDef)
    }


def _compiled(node: ast.stmt, path: Path) -> CodeType:
    """The statement alone, with its place in the file."""
    return compile(ast.Module(body=[node], type_ignores=[]), str(path), "exec")


def _assigns(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Attribute) and target.attr == ENABLED for target in node.targets
    )


def deciding(constructor: ast.FunctionDef) -> ast.stmt:
    """The statement that decides for EAGLE-3: an ``if`` that names the method, or (0.33.0, second
    runner) an assignment that asks a function."""
    statements = [node for node in ast.walk(constructor) if isinstance(node, ast.stmt)]
    branches = [
        node
        for node in statements
        if isinstance(node, ast.If)
        and "'eagle3'" in ast.unparse(node.test)
        and any(map(_assigns, node.body))
    ]
    asking = [
        node
        for node in statements
        if _assigns(node) and "requires_aux_hidden_states" in ast.unparse(node)
    ]
    if not branches and not asking:
        raise LookupError(f"nothing sets {ENABLED} for eagle3")
    return [*branches, *asking][0]


def setting(load_model: ast.FunctionDef) -> ast.stmt:
    """The innermost ``if`` on that decision which tells the model its layers."""
    found = [
        node
        for node in ast.walk(load_model)
        if isinstance(node, ast.If)
        and ast.unparse(node.test) == f"self.{ENABLED}"
        and "aux_hidden_state_layers" in ast.unparse(node)
    ]
    if not found:
        raise LookupError("nothing sets the layers")
    return found[-1]


def takes_second(config: Any) -> bool:
    """Whether a plain start on a GPU takes the second runner (config/vllm.py, envs.py)."""
    if hasattr(type(config), "use_v2_model_runner"):
        settings: Any = importlib.import_module("vllm.config.vllm")
        settings.HAS_TRITON = True  # which no machine without a GPU has
        return bool(config.use_v2_model_runner)
    environment: Any = importlib.import_module("vllm.envs")
    return bool(getattr(environment, "VLLM_USE_V2_MODEL_RUNNER", False))


def runners() -> dict[str, Runner]:
    """``v1`` and, where the release has EAGLE-3 in it, ``v2``."""
    found = {"v1": Runner(FIRST)}
    if optional("vllm.v1.worker.gpu.spec_decode.eagle.eagle3_utils") is not None:
        found["v2"] = Runner(SECOND)
    return found
