"""The model a draft drafts for, and what a release says of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eagle3_lint.frozen import frozen


@frozen
class TargetModel:
    """Sizes and names of a target model.

    Attributes:
        name: short name (``kimi-k2.5``) or where its config.json is.
        architecture: ``architectures[0]`` as the runtimes see it.
        model_type: of the text model, when a wrapper holds one.
        num_hidden_layers: decoder layers; aux state k exists for 0 <= k <= this.
        source: where the values come from.
        folder: the folder of its config.json, if it was read from one; weights may be beside it.
        kv_size: numbers per token and layer in the cache of keys (KV heads × head_dim); None for
            latent attention, or when nothing is known.
        dtype: of its weights outside of quantised ones (``bfloat16``, …), if that is known.
        rope: the scaling of its rotary embedding; None when there is none, or nothing is known.
        attention_layers: the layers that attend over all positions, where a hybrid has others too;
            None when all do, or nothing is known.
    """

    name: str
    architecture: str
    model_type: str | None
    hidden_size: int | None
    num_hidden_layers: int | None
    vocab_size: int | None
    max_position_embeddings: int | None = None
    quantised: bool | None = None
    source: str = ""
    folder: Path | None = None
    attention_layers: tuple[int, ...] | None = None
    rope: Mapping[str, object] | None = None
    kv_size: int | None = None
    dtype: str | None = None


@frozen
class Support:
    """Whether one release can feed an EAGLE-3 draft from one architecture.

    Attributes:
        state: ``yes``; ``no-hook`` (the model runs, but hands over no aux hidden states);
            ``refused`` (a list of model types in the release leaves it out); ``unregistered``
            (the release does not know the model at all); ``unknown`` (the architecture is in no
            table); or another case that the table names (``no-embed``, ``nothing-captured``).
        error_type, error_message: what the runtime raises.
        since: the first known release that supports it, if any does.
        until: the last one, when support was lost again.
        policy: how the release turns ids into aux states for this architecture.
        note: what else is known (hand-checked defects).
        hint: what not to try instead; a template over ``hidden`` and ``fc_in``.
    """

    state: str
    error_type: str = ""
    error_message: str = ""
    since: str | None = None
    until: str | None = None
    policy: str | None = None
    note: str = ""
    hint: str = ""
    source: str = ""
