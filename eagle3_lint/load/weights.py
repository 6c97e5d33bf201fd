"""Which files of a folder are its weights, and what they hold.

Both runtimes choose alike (sglang 0.5.9 srt/model_loader/loader.py:381, vllm 0.32.0
model_executor/model_loader/default_loader.py:147, both ``_prepare_weights``): every
``*.safetensors`` in the folder itself, or else every ``*.bin`` except a trainer's own. Of the
safetensors, those that ``model.safetensors.index.json`` does not name are left out, if it exists.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from eagle3_lint.load import bring
from eagle3_lint.load.checkpoint import Problem, ProblemKind, Tensor, WeightsFormat
from eagle3_lint.load.document import Document, DocumentError, load_document
from eagle3_lint.load.header import HeaderError, read_header
from eagle3_lint.load.pickle import read_torch_file

INDEX = "model.safetensors.index.json"
TORCH_INDEX = "pytorch_model.bin.index.json"
#: vllm 0.32.0 model_executor/model_loader/weight_utils.py:614, the same in sglang 0.5.9.
_TRAINERS_OWN = ("training_args.bin", "optimizer.bin")
_PART = re.compile(r"(.*-)(\d+)(-of-)(\d+)(\.safetensors)")
_MOST_PARTS = 1000  # more than any checkpoint has: the number means something else
_DRIVE = re.compile(r"[A-Za-z]:")


class WeightsReader:
    """Collects tensors and problems file by file.

    Attributes:
        weight_map: tensor → shard as the index says; None without a readable index.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        # The runtimes' glob leaves hidden files out.
        visible = sorted((n for n in names if not n.startswith(".")), key=_natural)
        self.safetensors = [n for n in visible if n.endswith(".safetensors")]
        self.bins = [n for n in visible if n.endswith(".bin") and not n.endswith(_TRAINERS_OWN)]
        self.indices = [n for n in (INDEX, TORCH_INDEX) if n in visible]
        self.tensors: list[Tensor] = []
        self.problems: list[Problem] = []
        self.metadata: dict[str, str] = {}
        self.index: Document | None = None
        self.weight_map: Mapping[str, str] | None = None
        self._unread: set[str] = set()

    def read(self) -> WeightsFormat:
        """Read the headers of all weights; the result is in the attributes."""
        if self.safetensors or (INDEX in self.indices and not self.bins):
            self._read_safetensors()
            return "safetensors"
        if self.bins:
            self._read_torch()
            return "torch"
        return "none"

    def _problem(
        self, kind: ProblemKind, file: str, message: str, tensor: str | None = None
    ) -> None:
        self.problems.append(Problem(kind, file, message, tensor))

    # -- one file ----------------------------------------------------------------------------------

    def _is_file(self, name: str) -> bool:
        """Whether a name can be opened without blocking; a problem if not."""
        try:
            mode = (self.folder / name).stat().st_mode
        except FileNotFoundError:
            message = "it is a link to a file that is not there: an incomplete download"
        except OSError as error:
            message = f"it cannot be opened: {error.strerror}"
        else:
            if stat.S_ISREG(mode):
                return True
            message = "it is not a regular file"
        self._problem("unreadable", name, message)
        self._unread.add(name)
        return False

    def _read_header(self, name: str) -> None:
        if not self._is_file(name):
            return
        try:
            header = read_header(self.folder / name)
        except HeaderError as error:
            self._unread.add(name)
            self._problem(error.kind, name, error.message, error.tensor)
            return
        except OSError as error:
            self._unread.add(name)
            self._problem("unreadable", name, f"it cannot be read: {error.strerror}")
            return
        self.metadata.update(header.metadata)
        for duplicate in header.duplicates:
            message = f"the header has tensor {duplicate!r} twice, and readers take the last"
            self._problem("duplicate-key", name, message, duplicate)
        start = header.data_start
        self.tensors.extend(
            Tensor(t.name, t.dtype, t.shape, name, start + t.begin, t.end - t.begin)
            for t in header.tensors
        )

    # -- which files -------------------------------------------------------------------------------

    def _read_safetensors(self) -> None:
        if INDEX in self.indices:
            self._read_index(INDEX)
        if self.weight_map is None:
            chosen = self._unindexed()
        else:
            self._miss_shards(INDEX, self.weight_map, self.safetensors)
            named = set(self.weight_map.values())
            chosen = [name for name in self.safetensors if name in named]
            self._explain_extras([name for name in self.safetensors if name not in named])
        for name in chosen:
            self._read_header(name)
        self._compare()
        for name in self.bins:
            if name.startswith("pytorch_model"):
                message = "the safetensors beside it are what every runtime loads"
                self._problem("weights-twice", name, message)

    def _read_torch(self) -> None:
        if INDEX in self.indices:
            message = f"none of its shards is here, so runtimes load {', '.join(self.bins)}"
            self._problem("bad-index", INDEX, message)
        if TORCH_INDEX in self.indices:
            self._read_index(TORCH_INDEX)
        if self.weight_map is not None:
            self._miss_shards(TORCH_INDEX, self.weight_map, self.bins)
        for name in self.bins:
            if not self._is_file(name):
                continue
            bring(self.folder / name, "whole")
            tensors, problem = read_torch_file(self.folder / name)
            self.tensors.extend(tensors)
            if problem is None:
                continue
            self.problems.append(problem)
            self._unread.add(name)
            if problem.kind == "needs-torch":
                self._unread.update(self.bins)
                break
        self._compare()

    def _unindexed(self) -> list[str]:
        """The files that are loaded without an index: all, though of doubtful ones one is told."""
        consolidated = [n for n in self.safetensors if n.startswith("consolidated")]
        others = [n for n in self.safetensors if n not in consolidated]
        if others:
            self._explain_extras(consolidated)
        chosen = others or consolidated
        adapters = [n for n in chosen if n.startswith("adapter_")]
        weights = [n for n in chosen if n not in adapters]
        if weights:
            for name in adapters:
                message = f"runtimes load this adapter as weights, together with {weights[0]}"
                self._problem("weights-twice", name, message)
        if len(weights) > 1:
            message = (
                f"no {INDEX} says which of the {len(weights)} safetensors files belong together,"
                f" so runtimes load them all: {', '.join(weights)}"
            )
            self._problem("bad-index", weights[0], message)
        for name in _missing_parts(weights):
            message = "it is not there, and the names of the other parts ask for it"
            self._problem("missing-shard", name, message)
        return chosen

    def _explain_extras(self, names: Iterable[str]) -> None:
        for name in names:
            if name.startswith("consolidated"):
                # vllm 0.32.0 model_executor/model_loader/default_loader.py:170 (since 0.10.1).
                message = "vLLM takes this file for a Mistral checkpoint and loads nothing else"
                self._problem("weights-twice", name, message)
            else:
                message = f"{INDEX} does not name it, so runtimes pass it over"
                self._problem("not-in-index", name, message)

    # -- the index ---------------------------------------------------------------------------------

    def _read_index(self, name: str) -> None:
        """Take the map of tensor to shard from an index; a problem when it has none."""
        try:
            document = load_document(self.folder / name)
        except DocumentError as error:
            line = "" if error.line is None else f" (line {error.line})"
            self._problem("bad-index", name, f"it cannot be read: {error.message}{line}")
            return
        except OSError as error:
            self._problem("bad-index", name, f"it cannot be read: {error.strerror}")
            return
        self.index = document
        found = document.data.get("weight_map")
        if not isinstance(found, dict) or not all(isinstance(f, str) for f in found.values()):
            message = "it has no weight_map from tensor names to file names"
            self._problem("bad-index", name, message)
            return
        for pointer in document.duplicates:
            message = f"it has {pointer} twice, and readers take the last"
            self._problem("bad-index", name, message)
        self.weight_map = found

    def _miss_shards(
        self, index: str, weight_map: Mapping[str, str], present: Sequence[str]
    ) -> None:
        expected: dict[str, int] = {}
        for shard in weight_map.values():
            expected[shard] = expected.get(shard, 0) + 1
        for shard, count in expected.items():
            if shard in present:
                continue
            self._unread.add(shard)
            if _leaves_folder(shard):
                message = f"it names {shard!r}, which is not a file of this folder"
                self._problem("path-leaves-folder", index, message)
                continue
            message = f"the index expects {count} tensors in it, and it is not there"
            if "/" in shard:
                message = (
                    f"the index expects {count} tensors in it, and runtimes look for shards in the"
                    " folder itself only"
                )
            self._problem("missing-shard", shard, message)

    def _compare(self) -> None:
        """What each tensor's shard is against where else it is and where the index has it."""
        places: dict[str, list[str]] = {}
        for tensor in self.tensors:
            places.setdefault(tensor.name, []).append(tensor.file)
        for name, files in places.items():
            if len(files) > 1:
                message = (
                    f"tensor {name!r} is in {' and in '.join(files)}; which one counts depends on"
                    " the order in which a runtime opens them"
                )
                self._problem("tensor-in-two-shards", files[1], message, name)
            elif self.weight_map is None:
                continue
            elif name not in self.weight_map:
                message = f"tensor {name!r} is in this shard and not in the index"
                self._problem("not-in-index", files[0], message, name)
            elif self.weight_map[name] != files[0]:
                message = f"the index has tensor {name!r} in {self.weight_map[name]}"
                self._problem("tensor-in-wrong-shard", files[0], message, name)
        for name, shard in (self.weight_map or {}).items():
            if name not in places and shard not in self._unread:
                message = f"the index has tensor {name!r} in it, and no shard holds that tensor"
                self._problem("named-but-absent", shard, message, name)


def _natural(name: str) -> list[int | str]:
    """A sort key by which part 2 comes before part 10, as vLLM sorts from 0.16.0 on."""
    return [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", name)]


def _leaves_folder(shard: str) -> bool:
    """Whether a shard's name leads elsewhere, as it is written; links are the user's own affair."""
    path = PurePosixPath(shard.replace("\\", "/"))
    return not path.parts or path.is_absolute() or ".." in path.parts or bool(_DRIVE.match(shard))


def _missing_parts(names: Sequence[str]) -> list[str]:
    """Parts that names like ``model-00001-of-00002.safetensors`` ask for and that are not there."""
    missing: dict[str, None] = {}
    for name in names:
        match = _PART.fullmatch(name)
        if match is None or int(match[4]) > _MOST_PARTS:
            continue
        width = len(match[2])
        for part in range(1, int(match[4]) + 1):
            due = f"{match[1]}{part:0{width}}{match[3]}{match[4]}{match[5]}"
            if due not in names:
                missing[due] = None
    return list(missing)
