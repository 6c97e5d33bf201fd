"""Train the target model and the drafts of the acceptance suite, on one CPU core.

    OMP_NUM_THREADS=1 python -m tests.engine.train_pair FOLDER

writes ``FOLDER/acceptance-target`` and, for every entry of ``DRAFTS``, ``FOLDER/<name>``. A name
after the folder makes only that one; a draft needs the target to be there. On an idle core the
target takes about six minutes, a draft four to six. Needs torch, transformers, safetensors, numpy.

Training is in float32, what is written is bfloat16. The draft here is plain torch and computes
what vLLM's ``model_executor/models/llama_eagle3.py`` (0.32.0) computes with one layer,
``norm_before_residual`` off and ``norm_output`` off; nothing of vLLM runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (torch's own convention)
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from tests.engine.language import COMMON, CONTEXT, VOCAB, Language

HIDDEN: Final = 128
HEADS: Final = 4
HEAD_DIM: Final = 32
INTERMEDIATE: Final = 256
TARGET_LAYERS: Final = 8
POSITIONS: Final = 512
NORM_EPS: Final = 1e-6
ROPE_THETA: Final = 10000.0

TEXTS: Final = 16
"""Texts of one batch."""
LENGTH: Final = 136
PASSES: Final = 3
"""Passes of the training-time test: the draft is trained to propose as many tokens in a row."""
PASS_DECAY: Final = 0.8
LEARNING_RATE: Final = 3e-3
WARM_UP: Final = 40
TARGET: Final = "acceptance-target"
TARGET_STEPS: Final = 550
PROMPTS: Final = 16
PROMPT_LENGTH: Final = 64


@dataclass(frozen=True)
class DraftRecipe:
    """A draft to train: on which aux states (in the order of fc's columns), for how long."""

    name: str
    aux_states: tuple[int, ...]
    steps: int


DRAFTS: Final = (
    # vLLM's default for 8 layers, (2, n // 2, n - 3): with ids or without, the same is fed.
    DraftRecipe("acceptance-draft", (2, 4, 5), 500),
    # Far from the default, so that ids which are not read show.
    DraftRecipe("acceptance-draft-alt", (1, 4, 7), 350),
)


class Trainer:
    """AdamW with a linear warm-up and a cosine that ends at a twentieth of the rate."""

    def __init__(self, module: nn.Module, steps: int) -> None:
        self._parameters = list(module.parameters())
        self._optimiser = torch.optim.AdamW(
            self._parameters, lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.01
        )
        self._steps = steps

    def steps(self) -> Iterator[int]:
        """The steps, with the learning rate of each already set."""
        for step in range(self._steps):
            cosine = 0.5 * (1 + np.cos(np.pi * step / self._steps))
            rate = LEARNING_RATE * min(1, (step + 1) / WARM_UP) * (0.05 + 0.95 * cosine)
            for group in self._optimiser.param_groups:
                group["lr"] = rate
            yield step

    def descend(self, loss: Tensor) -> None:
        """One step down ``loss``, a scalar."""
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._optimiser.step()


class Progress:
    """Prints a line now and then."""

    def __init__(self, name: str, steps: int) -> None:
        self._name, self._steps, self._started = name, steps, time.monotonic()

    def report(self, step: int, **figures: Any) -> None:
        """Print the figures of every 50th step and of the last."""
        if step % 50 == 0 or step == self._steps - 1:
            seconds = time.monotonic() - self._started
            print(f"{self._name} {step} {figures} {seconds:.0f} s", flush=True)


def batch(language: Language, random: np.random.Generator) -> Tensor:
    """Ids of one batch, [TEXTS, LENGTH]."""
    return torch.from_numpy(language.sample(TEXTS, LENGTH, random))


def write_prompts(language: Language, folder: Path) -> None:
    """Write ``prompts.json``: what ``serve.py`` has the target model go on from."""
    prompts = language.sample(PROMPTS, PROMPT_LENGTH, np.random.default_rng(99))
    (folder / "prompts.json").write_text(json.dumps(prompts.tolist()), encoding="utf-8")


def train_target(language: Language, folder: Path, steps: int) -> None:
    """Train the target model on next tokens and save it, in bfloat16, to ``folder``."""
    torch.manual_seed(0)
    random = np.random.default_rng(1)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        num_hidden_layers=TARGET_LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HEAD_DIM,
        max_position_embeddings=POSITIONS,
        rms_norm_eps=NORM_EPS,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.05,
    )
    model = LlamaForCausalLM(config)
    trainer, progress = Trainer(model, steps), Progress(folder.name, steps)
    for step in trainer.steps():
        ids = batch(language, random)
        # The free tokens at the beginning cannot be predicted.
        logits = model(ids).logits[:, CONTEXT - 1 : -1]
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, CONTEXT:].reshape(-1))
        trainer.descend(loss)
        progress.report(step, loss=round(loss.item(), 3))
    model.to(torch.bfloat16).save_pretrained(folder)
    write_prompts(language, folder)


class RMSNorm(nn.Module):
    """Root mean square norm over the last axis, as wide as HIDDEN."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + NORM_EPS) * self.weight


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A projection without bias."""
    return nn.Linear(inputs, outputs, bias=False)


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary embedding by halves: ``x`` [batch, heads, T, HEAD_DIM] at ``positions`` [T]."""
    frequencies = 1.0 / ROPE_THETA ** (torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)
    angles = positions[:, None].float() * frequencies
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    first, second = x[..., : HEAD_DIM // 2], x[..., HEAD_DIM // 2 :]
    return x * cos + torch.cat([-second, first], -1) * sin


KeysAndValues = tuple[Tensor, Tensor]


class Attention(nn.Module):
    """Attention of the draft's layer, which reads embedding and hidden state side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = linear(2 * HIDDEN, HEADS * HEAD_DIM)
        self.k_proj = linear(2 * HIDDEN, HEADS * HEAD_DIM)
        self.v_proj = linear(2 * HIDDEN, HEADS * HEAD_DIM)
        self.o_proj = linear(HEADS * HEAD_DIM, HIDDEN)

    def forward(self, x: Tensor, positions: Tensor, passes: list[KeysAndValues]) -> Tensor:
        """Attend from one pass of the training-time test to itself and the earlier ones.

        Args:
            x: [batch, T, 2 * HIDDEN].
            positions: [T].
            passes: keys and values of the earlier passes; this one's are appended. The first pass
                is attended to causally, each later one only at the query's own index: there, as in
                serving, the draft has seen exactly one token more per pass.
        """
        texts, length = x.shape[:2]

        def split(y: Tensor) -> Tensor:
            return y.view(texts, length, HEADS, HEAD_DIM).transpose(1, 2)

        query = rotated(split(self.q_proj(x)), positions)
        passes.append((rotated(split(self.k_proj(x)), positions), split(self.v_proj(x))))
        (first_keys, first_values), *later = passes
        scale = HEAD_DIM**0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        causal = (query @ first_keys.transpose(-1, -2) / scale).masked_fill(future, -torch.inf)
        own = [(query * keys).sum(-1, keepdim=True) / scale for keys, _ in later]
        weights = torch.cat([causal, *own], -1).softmax(-1)
        out = weights[..., :length] @ first_values
        for n, (_, values) in enumerate(later):
            out = out + weights[..., length + n : length + n + 1] * values
        return torch.as_tensor(
            self.o_proj(out.transpose(1, 2).reshape(texts, length, HEADS * HEAD_DIM))
        )


class MLP(nn.Module):
    """Llama's gated MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = linear(HIDDEN, INTERMEDIATE)
        self.up_proj = linear(HIDDEN, INTERMEDIATE)
        self.down_proj = linear(INTERMEDIATE, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x)))


class Layer(nn.Module):
    """The draft's only decoder layer."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden_norm = RMSNorm()
        self.input_layernorm = RMSNorm()
        self.post_attention_layernorm = RMSNorm()
        self.self_attn = Attention()
        self.mlp = MLP()

    def forward(
        self, embedded: Tensor, hidden: Tensor, positions: Tensor, passes: list[KeysAndValues]
    ) -> Tensor:
        """The residual stream after the layer, [batch, T, HIDDEN] like both inputs."""
        x = torch.cat([self.input_layernorm(embedded), self.hidden_norm(hidden)], -1)
        # norm_before_residual off: the state as it came is what the residual carries.
        residual = hidden + self.self_attn(x, positions, passes)
        return torch.as_tensor(residual + self.mlp(self.post_attention_layernorm(residual)))


class Draft(nn.Module):
    """An EAGLE-3 draft; parameters are named as SpecForge names them in a checkpoint."""

    def __init__(self, aux_states: int) -> None:
        super().__init__()
        self.fc = linear(aux_states * HIDDEN, HIDDEN)
        self.midlayer = Layer()
        self.norm = RMSNorm()
        self.lm_head = linear(HIDDEN, COMMON)


@dataclass(frozen=True)
class Lesson:
    """What the target model says about one batch.

    Attributes:
        embedded: its embeddings of the tokens, [TEXTS, LENGTH, HIDDEN].
        aux: the aux states that the draft reads, side by side, [TEXTS, LENGTH, states * HIDDEN].
        best: its greedy next tokens, [TEXTS, LENGTH].
        soft: its probabilities, cut to the draft vocabulary, [TEXTS, LENGTH, COMMON].
    """

    embedded: Tensor
    aux: Tensor
    best: Tensor
    soft: Tensor


@torch.no_grad()
def ask_target(target: Any, ids: Tensor, aux_states: Sequence[int], kept: Tensor) -> Lesson:
    """Run the target model. Aux state k is ``hidden_states[k]`` of Hugging Face."""
    said = target(ids, output_hidden_states=True)
    return Lesson(
        embedded=F.embedding(ids, target.model.embed_tokens.weight),
        aux=torch.cat([said.hidden_states[k] for k in aux_states], -1),
        best=said.logits.argmax(-1),
        soft=said.logits[..., kept].softmax(-1),
    )


def draft_loss(draft: Draft, lesson: Lesson, kept: Tensor) -> tuple[Tensor, list[float]]:
    """Loss over all passes, and per pass how often draft and target name the same token.

    In pass k, index i reads the embedding of token i+1+k at position i+k, and is to say what the
    target says at i+1+k. The hidden state is the fc's output in pass 0 and the draft's own,
    before the final norm, from then on.
    """
    length = LENGTH - PASSES
    hidden = draft.fc(lesson.aux[:, :length])
    passes: list[KeysAndValues] = []
    loss, agreement = torch.zeros(()), []
    for k in range(PASSES):
        now = slice(1 + k, 1 + k + length)
        positions = torch.arange(length) + k
        hidden = draft.midlayer(lesson.embedded[:, now], hidden, positions, passes)
        logits = draft.lm_head(draft.norm(hidden))
        counted = torch.isin(lesson.best[:, now], kept).float()
        counted[:, :CONTEXT] = 0
        cross = -(lesson.soft[:, now] * logits.log_softmax(-1)).sum(-1)
        loss = loss + PASS_DECAY**k * (cross * counted).sum() / counted.sum()
        same = kept[logits.argmax(-1)] == lesson.best[:, now]
        agreement.append(round(same[:, CONTEXT:].float().mean().item(), 3))
    return loss, agreement


def frequent_tokens(language: Language, random: np.random.Generator) -> Tensor:
    """The COMMON most frequent ids of a sample, ascending."""
    ids = torch.from_numpy(language.sample(256, LENGTH, random))
    counts = torch.bincount(ids[:, CONTEXT:].reshape(-1), minlength=VOCAB)
    return counts.topk(COMMON).indices.sort().values


def draft_config(aux_states: Sequence[int]) -> dict[str, Any]:
    """A config.json in the manner of SpecForge's templates."""
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HEAD_DIM,
        "vocab_size": VOCAB,
        "draft_vocab_size": COMMON,
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": NORM_EPS,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": 0,
        "eos_token_id": 1,
        "attention_bias": False,
        "mlp_bias": False,
        "rope_theta": ROPE_THETA,
        "rope_scaling": None,
        "use_cache": True,
        "initializer_range": 0.02,
        "pad_token_id": 0,
        "pretraining_tp": 1,
        "eagle_config": {
            # vLLM's reading: id k is aux state k.
            "eagle_aux_hidden_state_layer_ids": list(aux_states),
            "use_aux_hidden_state": True,
        },
    }


def write_draft(draft: Draft, kept: Tensor, aux_states: Sequence[int], folder: Path) -> None:
    """Write config.json and model.safetensors (bfloat16; ``d2t`` as offsets)."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: p.to(torch.bfloat16).contiguous() for name, p in draft.state_dict().items()}
    tensors["d2t"] = kept - torch.arange(COMMON)
    tensors["t2d"] = torch.isin(torch.arange(VOCAB), kept)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    text = json.dumps(draft_config(aux_states), indent=1)
    (folder / "config.json").write_text(text, encoding="utf-8")


def train_draft(language: Language, target_folder: Path, recipe: DraftRecipe, folder: Path) -> None:
    """Train one draft against the saved target model and write it to ``folder``."""
    torch.manual_seed(0)
    random = np.random.default_rng(2)
    target = LlamaForCausalLM.from_pretrained(target_folder, dtype=torch.float32).eval()
    kept = frequent_tokens(language, random)
    draft = Draft(len(recipe.aux_states))
    trainer, progress = Trainer(draft, recipe.steps), Progress(recipe.name, recipe.steps)
    for step in trainer.steps():
        lesson = ask_target(target, batch(language, random), recipe.aux_states, kept)
        loss, agreement = draft_loss(draft, lesson, kept)
        trainer.descend(loss)
        progress.report(step, loss=round(loss.item(), 3), agreement_per_pass=agreement)
    write_draft(draft, kept, recipe.aux_states, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and train what is asked for."""
    names = [TARGET, *(recipe.name for recipe in DRAFTS)]
    parser = argparse.ArgumentParser(prog="python -m tests.engine.train_pair")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(names)}")
    wanted = set(options.names or names)
    # More threads would change the order of sums, and with it the bytes.
    torch.set_num_threads(1)
    language = Language()
    if TARGET in wanted:
        train_target(language, options.folder / TARGET, TARGET_STEPS)
    for recipe in DRAFTS:
        if recipe.name in wanted:
            train_draft(language, options.folder / TARGET, recipe, options.folder / recipe.name)


if __name__ == "__main__":
    main()
