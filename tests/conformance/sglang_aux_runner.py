"""How an SGLang release reads a draft's configuration and tells its target model what to capture.

From the release: the statements of ``model_executor/model_runner.py`` that read ids and call the
target model's hook, later the functions of ``model_executor/model_runner_components/
{spec_aux_hidden_state,attention_backend_setup}.py``; the call of the hook in
``model_executor/cuda_graph_runner.py``, in releases that have one; and the draft worker's own
reading in ``speculative/eagle_worker*.py``. The configuration is that of config.json.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from tests.conformance.aux_cases import IDS, SWITCH
from tests.conformance.wheel_code import ANYTHING, Anything, WheelCode

HOOK: Final = "set_eagle3_layers_to_capture"
RUNNER: Final = "model_executor/model_runner.py"
GRAPHS: Final = "model_executor/cuda_graph_runner.py"
READING: Final = "model_executor/model_runner_components/spec_aux_hidden_state.py"
SETTING: Final = "model_executor/model_runner_components/attention_backend_setup.py"
WORKERS: Final = ("speculative/eagle_worker.py", "speculative/eagle_worker_v2.py")


class Eagle3:
    """``SpeculativeAlgorithm.EAGLE3``."""

    def is_eagle(self) -> bool:
        return True

    def is_eagle3(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Callable[[], bool]:
        return lambda: False


class ServerArgs(Anything):
    """Server arguments that name a draft."""

    speculative_draft_model_path = "draft"


class Draft(Anything):
    """``ModelConfig`` of the draft: its config.json, and one layer."""

    def __init__(self, hf_config: Any) -> None:
        self.hf_config = hf_config
        self.num_nextn_predict_layers = 1


class GraphRunner(Anything):
    """The CUDA graph runner of a model runner."""

    def __init__(self, model_runner: Any) -> None:
        self.model_runner = model_runner


class Asked:
    """A target model that remembers how its hook was called."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def set_eagle3_layers_to_capture(self, layer_ids: Any = None) -> None:
        self.calls.append(layer_ids)


class Runner:
    """The parts of a release's model runner that read ids and hand them to the target model."""

    def __init__(self, code: WheelCode) -> None:
        self.code = code
        self.apart = code.parse(READING) is not None
        self.reading = self._statement(RUNNER, _is_constant(IDS))
        self.setting = self._statement(RUNNER, _calls_hook)
        self.graphs = self._statement(GRAPHS, _calls_hook)
        found = ((path, self._statement(path, _is_constant(SWITCH))) for path in WORKERS)
        self.worker = next(((path, s) for path, s in found if s is not None), None)

    @property
    def sets_before_graphs(self) -> bool:
        """Whether graphs are captured with the ids already set."""
        return self.graphs is None

    def read(self, hf_config: Any) -> Any:
        """The runner, knowing what it reads of the draft's configuration before anything else."""
        state = SimpleNamespace(
            spec_algorithm=Eagle3(),
            is_draft_worker=False,
            model_config=ANYTHING,
            dtype=ANYTHING,
            _build_model_config=lambda *given, **named: Draft(hf_config),
        )
        if self.apart:
            read = self._function(READING, "_resolve_eagle_aux_hidden_state", hf_config)
            _call(
                read,
                config=state,
                spec_algorithm=Eagle3(),
                server_args=ServerArgs(),
                is_draft_worker=False,
            )
        elif self.reading is not None and self.reading is not self.setting:
            self.code.run(self.reading, RUNNER, {"self": state, **_names(hf_config)})
        return state

    def set(self, state: Any, model: Any, hf_config: Any) -> None:
        """The runner hands the ids over; some releases read them only now."""
        if self.apart:
            hand_over = self._function(SETTING, "configure_aux_hidden_state_capture", hf_config)
            _call(hand_over, **{**vars(state), "model": model})
        elif self.setting is not None:
            state.model = model
            self.code.run(self.setting, RUNNER, {"self": state, **_names(hf_config)})

    def set_for_graphs(self, state: Any, model: Any) -> None:
        """What the graph runner itself tells the target model."""
        if self.graphs is not None:
            state.model = model
            names = {"self": GraphRunner(state), "model_runner": state}
            self.code.run(self.graphs, GRAPHS, names)

    def read_by_worker(self, hf_config: Any) -> None:
        """The draft worker's own reading, in releases that have one."""
        if self.worker is not None:
            path, statement = self.worker
            draft = SimpleNamespace(model_config=Draft(hf_config))
            worker = SimpleNamespace(
                speculative_algorithm=Eagle3(), draft_model_runner=draft, draft_runner=draft
            )
            self.code.run(statement, path, {"self": worker})

    def _statement(self, path: str, wanted: Callable[[ast.AST], bool]) -> ast.stmt | None:
        tree = self.code.parse(path)
        return None if tree is None else _outermost(tree, wanted)

    def _function(self, path: str, name: str, hf_config: Any) -> Callable[..., Any]:
        return self.code.function(path, name, _names(hf_config))


def _names(hf_config: Any) -> dict[str, Any]:
    """What the runner's statements find under the names that matter."""

    def from_server_args(*given: Any, **named: Any) -> Draft:
        return Draft(hf_config)

    return {
        "ModelConfig": SimpleNamespace(from_server_args=from_server_args),
        "server_args": ServerArgs(),
        "get_spec": ServerArgs,
    }


def _call(function: Callable[..., Any], **known: Any) -> None:
    """Calls with all keywords that it takes."""
    wanted = inspect.signature(function).parameters
    function(**{name: known.get(name, ANYTHING) for name in wanted})


def _outermost(tree: ast.Module, wanted: Callable[[ast.AST], bool]) -> ast.stmt | None:
    """The outermost ``if`` of a method that has a wanted node in it. Dummy runs do not count."""
    for cls in tree.body:
        for method in cls.body if isinstance(cls, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and method.name != "_dummy_run":
                for node in ast.walk(method):
                    if isinstance(node, ast.If) and any(map(wanted, ast.walk(node))):
                        return node
    return None


def _is_constant(value: str) -> Callable[[ast.AST], bool]:
    return lambda node: isinstance(node, ast.Constant) and node.value == value


def _calls_hook(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == HOOK
    )
