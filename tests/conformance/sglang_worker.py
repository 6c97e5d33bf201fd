"""What SGLang's draft worker does once the draft is loaded: share the embedding and head, take the
map.

The statements are the release's own. Where they are a method of the worker they are called as such;
where they stand in the middle of ``__init__`` (which also builds the runner and captures graphs)
the statements that touch the loaded draft are compiled from the source by themselves.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any, Final

# The spec v2 worker is the default from 0.5.11 on (server_args.py, SGLANG_ENABLE_SPEC_V2).
V2_DEFAULT: Final = (0, 5, 11)
MODULE: Final = "sglang.srt.speculative.eagle_worker"


class _Worker:
    """A worker with the given attributes and, for the rest, the methods of the release's class."""

    def __init__(self, cls: type, **attributes: Any) -> None:
        self.__dict__.update(attributes)
        self.__dict__["_cls"] = cls

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["_cls"], name)
        return MethodType(value, self) if isinstance(value, FunctionType) else value


def release_key(release: str) -> tuple[int, ...]:
    """``0.4.4.post2`` -> (0, 4, 4)."""
    return tuple(int(part) for part in release.split(".")[:3])


class DraftWorker:
    """The part of one release's draft worker that follows loading."""

    def __init__(self, sources: Path, release: str) -> None:
        suffix = "_v2" if release_key(release) >= V2_DEFAULT else ""
        self.module = importlib.import_module(MODULE + suffix)
        path = sources / "sglang" / "srt" / "speculative" / f"eagle_worker{suffix}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        owner, self.method = _sharing_function(tree)
        self.cls: type = getattr(self.module, owner.name)
        self.inline = [
            compile(ast.Module([statement], []), str(path), "exec")
            for statement in _inline_statements(owner, self.method)
        ]

    def finish(self, model: Any, model_config: Any, target: Any) -> Any:
        """Do to ``model`` what the worker does; returns the worker's ``hot_token_id``.

        ``target`` is the target model's runner. Raises what the release's statements raise.
        """
        runner = SimpleNamespace(model=model, model_config=model_config)
        worker = _Worker(
            self.cls,
            speculative_algorithm=_Eagle3(),
            hot_token_id=None,
            draft_model_runner=runner,
            draft_runner=runner,
            target_worker=SimpleNamespace(model_runner=target),
            server_args=SimpleNamespace(speculative_token_map=None),
        )
        for code in self.inline:
            self._run(code, worker)
        if self.method != "__init__":
            getattr(worker, self.method)()
        return worker.hot_token_id

    def _run(self, code: CodeType, worker: _Worker) -> None:
        scope = {**vars(self.module), "self": worker}
        exec(code, scope)
        for name in ("embed", "head"):
            if name in scope:
                vars(self.module)[name] = scope[name]


class _Eagle3:
    def is_eagle3(self) -> bool:
        return True

    def is_eagle(self) -> bool:
        return True


def _sharing_function(tree: ast.Module) -> tuple[ast.ClassDef, str]:
    """The class and function that call ``set_embed``. Raises LookupError when there is none."""
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for function in (node for node in owner.body if isinstance(node, ast.FunctionDef)):
            if "set_embed(" in ast.unparse(function):
                return owner, function.name
    raise LookupError("no function shares the target's embedding")


def _inline_statements(owner: ast.ClassDef, method: str) -> list[ast.stmt]:
    """The statements of ``__init__`` that read the loaded draft: sharing, the map, the aux
    switch."""
    init = next(
        node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    )
    wanted = []
    for statement in init.body:
        text = ast.unparse(statement)
        shares = method == "__init__" and ("get_embed_and_head()" in text or "set_embed(" in text)
        if shares or "eagle_use_aux_hidden_state" in text:
            wanted.append(statement)
    return wanted
