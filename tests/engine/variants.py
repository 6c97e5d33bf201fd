"""Drafts that differ from a good one in one thing each, and what the engine is to make of them.

    python -m tests.engine.variants FOLDER

writes all of them, one folder a variant.

Missing norms cannot be shown on this pair as it is: vLLM fills in ones, and the trained weights are
nearly constant (``hidden_norm`` 1.05, ``norm`` 1.34). ``spread_norms`` makes another draft of it
that computes the same and whose norms are as far from one as a real draft's; those defects
start from there.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import numpy as np

import eagle3_lint
from tests.engine.tensors import (
    Array,
    Tensor,
    bfloat16,
    float16,
    int64,
    read_tensors,
    write_tensors,
)

FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
TARGET_MODEL: Final = FIXTURES / "acceptance-target"

Config = dict[str, Any]
States = tuple[int, ...]


@dataclass(frozen=True)
class Draft:
    """A draft in memory.

    Attributes:
        config: of config.json.
        tensors: by name, as in the file.
        trained_on: aux states that the fc was trained on, in the order of its columns.
    """

    config: Config
    tensors: Mapping[str, Tensor]
    trained_on: States

    def fields(self, **changes: Any) -> Draft:
        """With other fields in config.json."""
        return replace(self, config={**self.config, **changes})

    def without_field(self, name: str) -> Draft:
        return replace(self, config={k: v for k, v in self.config.items() if k != name})

    def eagle_config(self, **changes: Any) -> Draft:
        """With other fields in its ``eagle_config``; None takes one away."""
        changed = {**self.config["eagle_config"], **changes}
        return self.fields(eagle_config={k: v for k, v in changed.items() if v is not None})

    def ids(self, *ids: int) -> Draft:
        """With these ids in ``eagle_config``, which the draft class counts (0.32.0
        model_executor/models/llama_eagle3.py:209), and at top level, where both of vLLM's model
        runners look first."""
        return self.eagle_config(**{IDS: list(ids)}).fields(**{IDS: list(ids)})

    def nested_ids(self, *ids: int) -> Draft:
        """With these ids in ``eagle_config`` only, where the V1 model runner looks too."""
        return self.eagle_config(**{IDS: list(ids)})

    def tensor(self, name: str, tensor: Tensor) -> Draft:
        """With another tensor of that name, or with one more."""
        return replace(self, tensors={**self.tensors, name: tensor})

    def without_tensor(self, name: str) -> Draft:
        if name not in self.tensors:
            raise KeyError(f"no such tensor: {name}")
        return replace(self, tensors={k: v for k, v in self.tensors.items() if k != name})

    def write(self, folder: Path) -> Path:
        """Write config.json and model.safetensors; returns ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.config, indent=1)
        (folder / "config.json").write_text(text, encoding="utf-8")
        write_tensors(folder / "model.safetensors", self.tensors)
        return folder


IDS: Final = "eagle_aux_hidden_state_layer_ids"
Build = Callable[[Draft], Draft]


def read_draft(name: str) -> Draft:
    """A trained draft of the fixtures."""
    folder = FIXTURES / name
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Draft(
        config=config,
        tensors=read_tensors(folder / "model.safetensors"),
        trained_on=tuple(config["eagle_config"][IDS]),
    )


class Expectation(Enum):
    """What the engine does with a variant. The words are those of docs/acceptance.md."""

    EQUAL = "as the good draft"
    LOWER = "accepts less"
    NEAR_ONE = "accepts next to nothing"
    LESS_BY_CHANCE = "accepts less, how much depends on uninitialised memory"
    REFUSED = "raises while loading"
    DIES = "raises at the first batch"


@dataclass(frozen=True)
class Variant:
    """One draft to serve.

    Attributes:
        name: of its folder.
        what: what is done to the good draft, in words.
        expectation: what vLLM 0.32.0 is to do with it.
        build: makes it from the trained draft.
        base: that draft's fixture.
    """

    name: str
    what: str
    expectation: Expectation
    build: Build
    base: str = "acceptance-draft"

    def make(self) -> Draft:
        """The variant, in memory."""
        good = read_draft(self.base)
        return self.build(replace(good, config=copy.deepcopy(good.config)))


# How each is made. Random numbers come from Python's generator, whose streams do not depend on a
# library's release.


def _shuffled(count: int, seed: int) -> Array:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return np.array(order)


def _gauss(count: int, scale: float, seed: int) -> list[float]:
    normal = random.Random(seed)
    return [normal.gauss(0.0, scale) for _ in range(count)]


def good(draft: Draft) -> Draft:
    """Nothing is done."""
    return draft


def spread_norms(draft: Draft) -> Draft:
    """The same function with norm weights spread by exp(0.7 N): what a norm is multiplied by,
    the columns of the next weight are divided by."""
    hidden = draft.config["hidden_size"]
    factors = np.array([math.exp(x) for x in _gauss(hidden, 0.7, seed=6)])
    # The layer reads [embedding, hidden state]; only the second half went through hidden_norm.
    both = np.concatenate([np.ones(hidden), factors])
    scaled = {"midlayer.hidden_norm.weight": factors, "norm.weight": factors}
    divided = {f"midlayer.self_attn.{n}_proj.weight": both for n in "qkv"}
    divided["lm_head.weight"] = factors
    for name, by in scaled.items():
        draft = draft.tensor(name, bfloat16(draft.tensors[name].floats() * by))
    for name, by in divided.items():
        draft = draft.tensor(name, bfloat16(draft.tensors[name].floats() / by))
    return draft


def layers_names(draft: Draft) -> Draft:
    """``layers.0.`` in place of ``midlayer.``."""
    renamed = {k.replace("midlayer.", "layers.0."): v for k, v in draft.tensors.items()}
    return replace(draft, tensors=renamed)


def no_hidden_norm(draft: Draft) -> Draft:
    return spread_norms(draft).without_tensor("midlayer.hidden_norm.weight")


def no_final_norm(draft: Draft) -> Draft:
    return spread_norms(draft).without_tensor("norm.weight")


def _tokens(draft: Draft) -> Array:
    """Target id of each draft row: row + d2t."""
    d2t = draft.tensors["d2t"].elements
    return d2t + np.arange(len(d2t))


def d2t_absolute(draft: Draft) -> Draft:
    """``d2t`` holds target ids where offsets are read."""
    return draft.tensor("d2t", int64(_tokens(draft)))


def d2t_permuted(draft: Draft) -> Draft:
    """Valid offsets to the right tokens, at the wrong rows."""
    tokens = _tokens(draft)
    order = _shuffled(len(tokens), seed=4)
    return draft.tensor("d2t", int64(tokens[order] - np.arange(len(tokens))))


def head_shuffled(draft: Draft) -> Draft:
    head = draft.tensors["lm_head.weight"]
    return draft.tensor("lm_head.weight", head.rows(_shuffled(len(head.elements), seed=5)))


def random_embedding(draft: Draft) -> Draft:
    """An embedding of its own that was never trained."""
    shape = draft.config["vocab_size"], draft.config["hidden_size"]
    values = _gauss(math.prod(shape), 0.05, seed=3)
    return draft.tensor("embed_tokens.weight", bfloat16(np.array(values).reshape(shape)))


def fc_reversed(draft: Draft) -> Draft:
    """Trained on the states in falling order, and saying so."""
    fc = draft.tensors["fc.weight"]
    count = len(draft.trained_on)
    blocks = np.split(fc.elements, count, axis=1)
    reversed_states = draft.trained_on[::-1]
    changed = draft.tensor("fc.weight", Tensor(fc.dtype, np.concatenate(blocks[::-1], axis=1)))
    return replace(changed.ids(*reversed_states), trained_on=reversed_states)


def half_precision(draft: Draft) -> Draft:
    """float16 weights and a config that says so."""
    tensors = {k: float16(v) if v.is_float else v for k, v in draft.tensors.items()}
    return replace(draft, tensors=tensors).fields(torch_dtype="float16")


def ids_at_top(draft: Draft) -> Draft:
    """The ids beside the other fields, and no ``eagle_config``."""
    ids = draft.config["eagle_config"][IDS]
    return draft.without_field("eagle_config").fields(**{IDS: ids})


#: Fields of a Llama config that speculators keeps in ``transformer_layer_config``.
_LAYER_FIELDS: Final = (
    "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings", "rms_norm_eps",
    "hidden_act", "attention_bias", "mlp_bias", "rope_theta", "tie_word_embeddings",
    "bos_token_id", "eos_token_id",
)  # fmt: skip


def speculators(draft: Draft) -> Draft:
    """The names and the nested configuration of the speculators library."""
    config = draft.config
    proposal = {
        "proposal_type": "greedy",
        "speculative_tokens": 3,
        "verifier_accept_k": 1,
        "accept_tolerance": 0.0,
    }
    nested = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.3.0",
        "draft_vocab_size": config["draft_vocab_size"],
        "target_hidden_size": None,
        "norm_before_residual": False,
        "torch_dtype": config["torch_dtype"],
        "tie_word_embeddings": False,
        IDS: config["eagle_config"][IDS],
        "transformer_layer_config": {field: config[field] for field in _LAYER_FIELDS},
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [proposal],
            "verifier": {
                "name_or_path": TARGET_MODEL.name,
                "architectures": ["LlamaForCausalLM"],
            },
        },
    }
    return replace(layers_names(draft), config=nested)


def fixed(draft: Draft, *, form: Literal["flat", "speculators"]) -> Draft:
    """What ``fix --as`` makes of it for the engine, read back from disk."""
    with TemporaryDirectory() as room:
        folder = draft.write(Path(room) / "draft")
        eagle3_lint.fix(
            folder,
            ["vllm==0.32.0"],
            str(TARGET_MODEL),
            trained_on=draft.trained_on,
            runner="v1",
            as_=form,
        )
        text = (folder / "config.json").read_text(encoding="utf-8")
        # The nested form names the target model: by its name here, so that the draft is the same
        # wherever the checkout lies.
        config = json.loads(text.replace(str(TARGET_MODEL), TARGET_MODEL.name))
        return Draft(config, read_tensors(folder / "model.safetensors"), draft.trained_on)


_EQUAL, _LOWER, _NEAR_ONE = Expectation.EQUAL, Expectation.LOWER, Expectation.NEAR_ONE
_ALT: Final = "acceptance-draft-alt"

VARIANTS: Final[tuple[Variant, ...]] = (
    # Spellings
    Variant("good", "nothing: `midlayer.` names, SpecForge's fields", _EQUAL, good),
    Variant("layers-names", "`layers.0.` names", _EQUAL, layers_names),
    Variant(
        "llama-architecture",
        "`architectures` is LlamaForCausalLM",
        _EQUAL,
        lambda d: d.fields(architectures=["LlamaForCausalLM"]),
    ),
    Variant("float16", "float16 weights and `torch_dtype`", _EQUAL, half_precision),
    Variant("no-t2d", "`t2d` missing", _EQUAL, lambda d: d.without_tensor("t2d")),
    Variant("speculators", "speculators' names and config", _EQUAL, speculators),
    # Conversions by `fix`
    Variant(
        "nested-by-fix", "`fix --as speculators`", _EQUAL, lambda d: fixed(d, form="speculators")
    ),
    Variant(
        "flat-by-fix",
        "speculators' names and config, `fix --as flat`",
        _EQUAL,
        lambda d: fixed(speculators(d), form="flat"),
    ),
    # Tensors that are missing or wrong
    Variant("spread-norms", "the same function with uneven norm weights", _EQUAL, spread_norms),
    Variant("no-hidden-norm", "spread-norms, `hidden_norm` missing", _LOWER, no_hidden_norm),
    Variant("no-final-norm", "spread-norms, `norm` missing", _LOWER, no_final_norm),
    Variant(
        "no-fc",
        "`fc.weight` missing",
        Expectation.LESS_BY_CHANCE,
        lambda d: d.without_tensor("fc.weight"),
    ),
    Variant(
        "random-embedding", "an `embed_tokens` that was never trained", _NEAR_ONE, random_embedding
    ),
    # Vocabulary and head
    Variant("no-d2t", "`d2t` missing", _NEAR_ONE, lambda d: d.without_tensor("d2t")),
    Variant("d2t-absolute", "`d2t` holds target ids", Expectation.DIES, d2t_absolute),
    Variant("d2t-permuted", "`d2t` permuted", _NEAR_ONE, d2t_permuted),
    Variant("head-shuffled", "rows of `lm_head` shuffled", _NEAR_ONE, head_shuffled),
    Variant(
        "no-head", "`lm_head` missing", _NEAR_ONE, lambda d: d.without_tensor("lm_head.weight")
    ),
    Variant(
        "no-draft-vocab-size",
        "`draft_vocab_size` missing",
        Expectation.REFUSED,
        lambda d: d.without_field("draft_vocab_size"),
    ),
    # Aux states; the draft was trained on 2, 4, 5, which is also vLLM's default for 8 layers
    Variant("ids-1-3-4", "ids 1, 3, 4", _LOWER, lambda d: d.ids(1, 3, 4)),
    Variant("ids-3-5-6", "ids 3, 5, 6", _LOWER, lambda d: d.ids(3, 5, 6)),
    Variant("ids-0-1-2", "ids 0, 1, 2", _LOWER, lambda d: d.ids(0, 1, 2)),
    Variant(
        "nested-ids-3-5-6",
        "ids 3, 5, 6 in `eagle_config` only",
        _LOWER,
        lambda d: d.nested_ids(3, 5, 6),
    ),
    Variant("ids-5-4-2", "ids 5, 4, 2", _EQUAL, lambda d: d.ids(5, 4, 2)),
    Variant("fc-for-5-4-2", "ids 5, 4, 2 and fc columns in that order", _LOWER, fc_reversed),
    Variant("no-ids", "no ids", _EQUAL, lambda d: d.eagle_config(**{IDS: None})),
    Variant("ids-at-top", "ids at top level, no `eagle_config`", _EQUAL, ids_at_top),
    Variant("two-ids", "ids 2, 5", Expectation.REFUSED, lambda d: d.ids(2, 5)),
    Variant("id-past-the-end", "ids 2, 4, 50", Expectation.DIES, lambda d: d.ids(2, 4, 50)),
    Variant(
        "aux-off",
        "`use_aux_hidden_state` false",
        _LOWER,
        lambda d: d.eagle_config(use_aux_hidden_state=False),
    ),
    # The same on a draft that was trained on 1, 4, 7
    Variant("alt-good", "nothing; trained on 1, 4, 7", _EQUAL, good, _ALT),
    Variant("alt-ids-at-top", "ids at top level, no `eagle_config`", _EQUAL, ids_at_top, _ALT),
    Variant("alt-no-ids", "no ids", _LOWER, lambda d: d.eagle_config(**{IDS: None}), _ALT),
    Variant(
        "alt-no-eagle-config",
        "no `eagle_config`",
        _LOWER,
        lambda d: d.without_field("eagle_config"),
        _ALT,
    ),
    Variant(
        "alt-speculators-no-ids",
        "speculators' names and config, no ids",
        _LOWER,
        lambda d: speculators(d).without_field(IDS),
        _ALT,
    ),
    # Switches of the forward pass
    Variant(
        "norm-before-residual",
        "`norm_before_residual` true",
        _LOWER,
        lambda d: d.fields(norm_before_residual=True),
    ),
    Variant(
        "speculators-no-switch",
        "speculators' config without `norm_before_residual`",
        _LOWER,
        lambda d: speculators(d).without_field("norm_before_residual"),
    ),
    Variant("rope-theta", "`rope_theta` 1e6, not 1e4", _EQUAL, lambda d: d.fields(rope_theta=1e6)),
    Variant(
        "positions-64",
        "`max_position_embeddings` 64",
        _NEAR_ONE,
        lambda d: d.fields(max_position_embeddings=64),
    ),
    Variant(
        "positions-100",
        "`max_position_embeddings` 100",
        _LOWER,
        lambda d: d.fields(max_position_embeddings=100),
    ),
)


def write_variants(folder: Path) -> dict[str, Path]:
    """Write every variant under ``folder``; returns the folder of each by name."""
    return {variant.name: variant.make().write(folder / variant.name) for variant in VARIANTS}


def main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.variants")
    parser.add_argument("folder", type=Path)
    written = write_variants(parser.parse_args().folder)
    print(f"{len(written)} drafts")


if __name__ == "__main__":
    main()
