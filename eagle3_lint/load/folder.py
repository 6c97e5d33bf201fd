"""A path → a Checkpoint: which files make up the weights, and what is wrong with them."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from eagle3_lint.errors import InputError
from eagle3_lint.load.checkpoint import Checkpoint, Problem, Tensor, WeightsFormat
from eagle3_lint.load.document import Document, DocumentError, load_document
from eagle3_lint.load.header import HeaderError, read_header
from eagle3_lint.load.pickle import read_torch_file

INDEX = "model.safetensors.index.json"
TORCH_INDEX = "pytorch_model.bin.index.json"
_KNOWN_FILES = (".safetensors", ".index.json", ".bin")
#: States of a training that is not exported yet → how to go on.
_TRAINING_STATES = {
    "training_state.pt": "export it with SpecForge (python -m specforge.export)",
    "draft_model.pt": "export it with NeMo Automodel's consolidated safetensors",
    "modelopt_state.pth": "export it with ModelOpt (export_hf_checkpoint.py)",
    "optimizer.pt": "this is a trainer's state; save the model beside it",
}


def _folder_of(path: Path) -> Path:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or folder; give the draft's folder") from None
    except NotADirectoryError:
        raise InputError(f"{path}: a part of this path is a file, not a folder") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        return path
    if stat.S_ISREG(mode) and (path.name == "config.json" or path.name.endswith(_KNOWN_FILES)):
        return path.parent
    raise InputError(
        f"{path}: no draft; give its folder, or the config.json or a weights file in it"
    )


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed: {error.strerror}") from None


def _config(folder: Path, names: list[str]) -> Document:
    path = folder / "config.json"
    if "config.json" not in names:
        for name, step in _TRAINING_STATES.items():
            if name in names:
                raise InputError(f"{folder}: not an exported draft ({name} is there): {step}")
        if any(name.endswith(_KNOWN_FILES) for name in names):
            raise InputError(
                f"{folder}: no config.json beside the weights; copy the one the trainer used"
            )
        raise InputError(f"{folder}: no draft: neither config.json nor weights are in it")
    try:
        # A FIFO would block for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path}: not a regular file")
        return load_document(path)
    except DocumentError as error:
        where = "".join(f":{n}" for n in (error.line, error.column) if n is not None)
        raise InputError(f"{path}{where}: {error.message}; repair or re-export it") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


class _Reader:
    """Collects tensors and problems file by file."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.folder, self.names = folder, names
        self.tensors: list[Tensor] = []
        self.problems: list[Problem] = []
        self.metadata: dict[str, str] = {}
        self.unreadable: set[str] = set()

    def problem(self, kind: str, file: str, message: str, tensor: str | None = None) -> None:
        self.problems.append(Problem(kind, file, message, tensor))

    def _is_file(self, name: str) -> bool:
        try:
            mode = (self.folder / name).stat().st_mode
        except OSError as error:
            self.problem("unreadable", name, f"it cannot be opened: {error.strerror}")
        else:
            if stat.S_ISREG(mode):
                return True
            self.problem("unreadable", name, "it is not a regular file")
        self.unreadable.add(name)
        return False

    def safetensors(self, name: str) -> None:
        if not self._is_file(name):
            return
        try:
            header = read_header(self.folder / name)
        except HeaderError as error:
            self.unreadable.add(name)
            self.problem(error.kind, name, error.message, error.tensor)
            return
        except OSError as error:
            self.unreadable.add(name)
            self.problem("unreadable", name, f"it cannot be read: {error.strerror}")
            return
        self.metadata.update(header.metadata)
        for duplicate in header.duplicates:
            message = f"the header has {duplicate!r} twice; readers take the last"
            self.problem("duplicate-key", name, message, duplicate)
        start = header.data_start
        self.tensors.extend(
            Tensor(t.name, t.dtype, t.shape, name, start + t.begin, t.end - t.begin)
            for t in header.tensors
        )

    def torch(self, name: str) -> None:
        if not self._is_file(name):
            return
        tensors, problem = read_torch_file(self.folder / name)
        self.tensors.extend(tensors)
        if problem is not None:
            self.unreadable.add(name)
            self.problems.append(problem)

    # -- shards -----------------------------------------------------------------------------------

    def weight_map(self, index: str) -> dict[str, str] | None:
        """The index's map of tensor to shard; None, with a problem, when there is none."""
        try:
            document = load_document(self.folder / index)
        except (DocumentError, OSError) as error:
            message = error.message if isinstance(error, DocumentError) else str(error.strerror)
            self.problem("bad-index", index, f"it cannot be read: {message}")
            return None
        found = document.data.get("weight_map")
        if not isinstance(found, Mapping) or not all(isinstance(f, str) for f in found.values()):
            self.problem("bad-index", index, "it has no weight_map of tensor names to file names")
            return None
        return dict(found)

    def shards(self, index: str, weight_map: Mapping[str, str]) -> Iterator[str]:
        """The shards that can be opened, each once, in the order of the index."""
        for shard in dict.fromkeys(weight_map.values()):
            path = PurePosixPath(shard.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or not path.parts:
                self.problem("path-leaves-folder", index, f"it names {shard!r}, outside the folder")
                self.unreadable.add(shard)
            elif not (self.folder / path).exists():
                count = sum(s == shard for s in weight_map.values())
                message = f"the index expects {count} tensors in it, and it is not there"
                self.problem("missing-shard", shard, message)
                self.unreadable.add(shard)
            else:
                yield shard

    def compare(self, index: str, weight_map: Mapping[str, str]) -> None:
        """What the index says against what the shards hold."""
        places: dict[str, list[str]] = {}
        for tensor in self.tensors:
            places.setdefault(tensor.name, []).append(tensor.file)
        for name, files in places.items():
            if len(files) > 1:
                message = f"it is in {files[0]} and in {files[1]}; which one counts is chance"
                self.problem("tensor-in-two-shards", files[1], message, name)
            elif name not in weight_map:
                message = "it is in the shard and not in the index"
                self.problem("not-in-index", files[0], message, name)
            elif files[0] != weight_map[name]:
                message = f"the index says {weight_map[name]}, it is in {files[0]}"
                self.problem("tensor-in-wrong-shard", files[0], message, name)
        for name, shard in weight_map.items():
            if name not in places and shard not in self.unreadable:
                self.problem("named-but-absent", shard, "the index names it, no shard has it", name)


def _read_weights(reader: _Reader) -> WeightsFormat:
    names = reader.names
    safetensors = [n for n in names if n.endswith(".safetensors")]
    if INDEX in names:
        weight_map = reader.weight_map(INDEX)
        if weight_map is not None:
            for shard in reader.shards(INDEX, weight_map):
                reader.safetensors(shard)
            reader.compare(INDEX, weight_map)
        return "safetensors"
    if safetensors:
        chosen = ["model.safetensors"] if "model.safetensors" in safetensors else safetensors
        for name in chosen:
            reader.safetensors(name)
        if len(chosen) > 1:
            reader.compare("the folder", {t.name: t.file for t in reader.tensors})
        if "pytorch_model.bin" in names:
            message = "safetensors and pytorch_model.bin lie side by side; safetensors count"
            reader.problem("weights-twice", "pytorch_model.bin", message)
        return "safetensors"
    if TORCH_INDEX in names:
        weight_map = reader.weight_map(TORCH_INDEX)
        if weight_map is not None:
            for shard in reader.shards(TORCH_INDEX, weight_map):
                reader.torch(shard)
            reader.compare(TORCH_INDEX, weight_map)
        return "torch"
    if "pytorch_model.bin" in names:
        reader.torch("pytorch_model.bin")
        return "torch"
    return "none"


def open_checkpoint(path: str | Path) -> Checkpoint:
    """Read a draft's config.json and the headers of its weights.

    Args:
        path: the folder, or a file in it.

    Raises:
        InputError: nothing can be read there. What is wrong with the weights alone is a Problem.
    """
    folder = _folder_of(Path(path))
    names = _names(folder)
    config = _config(folder, names)
    reader = _Reader(folder, names)
    weights_format = _read_weights(reader)
    if weights_format == "none":
        states = [name for name in _TRAINING_STATES if name in names]
        hint = f": {_TRAINING_STATES[states[0]]}" if states else ""
        message = f"the folder has a configuration and no weights{hint}"
        reader.problem("no-weights", "config.json", message)
    return Checkpoint(
        path=folder,
        config=config,
        tensors=tuple(reader.tensors),
        problems=tuple(reader.problems),
        files=tuple(names),
        weights_format=weights_format,
        metadata=reader.metadata,
    )
