"""What TensorRT-LLM's contract says, at the states of its sources that were read.

Expectations are read off the classes and functions that each test names, below ``tensorrt_llm/``:
``modeling_speculative.py`` at the commits b35ac1b6 (version 1.2.0rc2) and 00679c66, the loader and
what lies around it at dated states of the main branch (docs/tensorrt-llm.md). Where those sources
are at hand they are run (``tests/conformance/test_every_release.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eagle3_lint
from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.read import contract_file
from eagle3_lint.contract.rules_folder import read_json, rules_folder
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.diagnostic import Edit
from eagle3_lint.releases import newest, parse_target
from eagle3_lint.simulate.aux_states import aux_states
from eagle3_lint.simulate.load import simulate_load
from eagle3_lint.simulate.switches import taken
from tests.conformance.draft import (
    ABSENT,
    DRAFT_VOCAB,
    HIDDEN,
    V_HEAD,
    VOCAB,
    Draft,
    attention,
    dense,
    llama,
    mla,
    norms,
    two_layers,
)
from tests.drafts import write_case
from tests.unit.loader import Loader

RELEASES = runtime_file("tensorrt-llm").releases
#: One of each of the loader's states: every parameter is asked for; modules without a tensor are
#: passed over; layers.N is renamed; both with the switches of 2026.
STRICT, LENIENT, RENAMING, NEWEST = "1.2.0rc2", "1.2.0rc5", "1.3.0rc3", "1.3.0rc25"
LATENT = "1.2.0rc7"
#: The first that requires transformers 5 (Requires-Dist of its package: 5.5.3).
FIFTH = "1.3.0rc15"

#: A latent draft with the whole vocabulary, as ModelOpt writes it: no d2t.
WHOLE_MLA = (
    mla("midlayer.")
    .drop("d2t", "t2d")
    .put("lm_head.weight", VOCAB, HIDDEN)
    .config(draft_vocab_size=VOCAB)
)

LOADER = Loader("tensorrt-llm")
played, refused, loaded = LOADER.played, LOADER.refused, LOADER.loaded


def since(bound: str) -> list[Any]:
    """Every release, with whether it is the one of ``bound`` or a later one."""
    return [pytest.param(r, covers(f">={bound}", r), id=r) for r in RELEASES]


# -- the way to the class -------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_a_good_draft_loads_whole(release: str) -> None:
    load = loaded(llama(), release)
    assert load.outcome == "ok"
    assert load.vocabulary_map == "d2t"
    assert load.borrowed == ("model.embed_tokens.weight",)


@pytest.mark.parametrize("architectures", [["LlamaForCausalLM"], ["Nothing"]])
def test_the_architectures_do_not_matter(architectures: object) -> None:
    """One model: get_draft_model asks eagle3_model_arch of speculative_config alone."""
    assert loaded(llama().config(architectures=architectures), NEWEST).outcome == "ok"


@pytest.mark.parametrize("release", RELEASES)
def test_but_there_has_to_be_one(release: str) -> None:
    """model_config.py (ModelConfig.from_pretrained) asks for ``pretrained_config.architectures[0]``
    to find out whether it is one of DeepSeek's; the words are Python's."""
    for nothing in (None, ABSENT):
        text = "'NoneType' object is not subscriptable"
        assert refused(llama().config(architectures=nothing), release) == ("TypeError", text)
    text = "list index out of range"
    assert refused(llama().config(architectures=[]), release) == ("IndexError", text)


@pytest.mark.parametrize(("release", "strict"), since(FIFTH))
def test_the_first_letter_of_a_string_will_do(release: str, strict: bool) -> None:
    """transformers 5.5 checks the types of fields (a strict dataclass), 4.57 does not."""
    draft = llama().config(architectures="LlamaForCausalLMEagle3")
    if strict:
        assert refused(draft, release)[0] == "StrictDataclassFieldValidationError"
    else:
        assert loaded(draft, release).outcome == "ok"


@pytest.mark.parametrize("release", [STRICT, NEWEST])
def test_the_model_type_has_to_be_known(release: str) -> None:
    """pyexecutor/config_utils.py (load_pretrained_config) ends in AutoConfig.from_pretrained."""
    kind, text = refused(llama().config(model_type=ABSENT), release)
    assert kind == "ValueError" and "Should have a `model_type` key" in text
    kind, text = refused(llama().config(model_type="eagle3"), release)
    assert kind == "ValueError" and "has model type `eagle3` but Transformers does not" in text
    own = llama().config(model_type=ABSENT, auto_map={"AutoConfig": "configuration.Draft"})
    own = own.config(attention_bias=False)
    assert loaded(own, release).outcome == "ok"


def test_what_is_checked_by_default_stays_sglang_and_vllm() -> None:
    assert [t.runtime for t in newest()] == ["sglang", "vllm"]
    assert [t.release for t in parse_target("tensorrt-llm")] == [RELEASES[-1]]
    assert parse_target("tensorrt_llm==1.2.0")[0].known is False


def test_the_table_of_targets_is_of_the_same_releases() -> None:
    table = read_json(rules_folder() / "targets" / "tensorrt-llm.json")
    assert tuple(table["releases"]) == RELEASES


# -- fields ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "has_default"), since(RENAMING))
def test_draft_vocab_size(release: str, has_default: bool) -> None:
    """Eagle3ForCausalLM.__init__ of b35ac1b6 reads the field; 00679c66 has _ensure_draft_vocab_size
    in front of it (NVIDIA/TensorRT-LLM #10124, 2026-01-22; #6492 shows the error)."""
    draft = llama().drop("d2t", "t2d").put("lm_head.weight", VOCAB, HIDDEN)
    assert loaded(draft.config(draft_vocab_size=None), release).outcome == "ok"
    absent = draft.config(draft_vocab_size=ABSENT)
    if has_default:
        assert loaded(absent, release).outcome == "ok"
    else:
        text = "'LlamaConfig' object has no attribute 'draft_vocab_size'"
        assert refused(absent, release) == ("AttributeError", text)


@pytest.mark.parametrize("release", [STRICT, NEWEST])
def test_fields_that_stop_the_constructor(release: str) -> None:
    """Eagle3DraftModel.__init__ multiplies target_hidden_size by the number of states;
    Eagle3Attention reads attention_bias; modeling_utils.py ties the head to an embedding that is
    not there yet."""
    text = "unsupported operand type(s) for *: 'NoneType' and 'int'"
    assert refused(llama().config(target_hidden_size=None), release) == ("TypeError", text)
    text = "'Qwen2Config' object has no attribute 'attention_bias'"
    assert refused(llama().config(model_type="qwen2"), release) == ("AttributeError", text)
    text = "'NoneType' object has no attribute 'tp_size'"
    tied = llama().config(tie_word_embeddings=True)
    assert refused(tied, release) == ("AttributeError", text)


@pytest.mark.parametrize(("release", "reads"), since(LATENT))
@pytest.mark.parametrize(("value", "kind"), [(None, "NoneType"), ([1, 17, 32], "list")])
def test_eagle_config_that_is_no_object(
    release: str, reads: bool, value: object, kind: str
) -> None:
    """Eagle3DraftModel.__init__ calls .get() since NVIDIA/TensorRT-LLM #9677 (2026-01-02)."""
    draft = llama().config(eagle_config=value)
    if reads:
        text = f"'{kind}' object has no attribute 'get'"
        assert refused(draft, release) == ("AttributeError", text)
    else:
        assert loaded(draft, release).outcome == "ok"


@pytest.mark.parametrize("release", [STRICT, NEWEST])
def test_an_embedding_is_built_for_another_width_only(release: str) -> None:
    """Eagle3DraftModel.__init__: hidden_size_in != hidden_size; else load_weights_from_target_model
    takes the target's, and no module asks for the draft's."""
    load = loaded(llama().embed(7, 5), release)
    assert load.outcome == "ok" and load.ignored == ("embed_tokens.weight", "t2d")
    wide = llama().config(target_hidden_size=96).put("fc.weight", HIDDEN, 3 * 96)
    load = loaded(wide.embed(), release)
    assert load.outcome == "ok" and load.borrowed == ()
    text = "The size of tensor a (1000) must match the size of tensor b (7) at non-singleton"
    assert refused(wide.embed(7), release) == ("RuntimeError", f"{text} dimension 0")


def test_biases_that_are_promised() -> None:
    """Attention.__init__ gives o_proj the bias of q, k and v; GatedMLP has mlp_bias, fc `bias`.
    load_weights_*_helper assert that each is there."""
    draft = llama().config(attention_bias=True, mlp_bias=True, bias=True)
    for release, expected in ((STRICT, ("KeyError", "'bias'")), (NEWEST, ("AssertionError", ""))):
        assert refused(draft, release) == expected
    for name, rows in (("q", 64), ("k", 16), ("v", 16), ("o", 64)):
        draft = draft.put(f"midlayer.self_attn.{name}_proj.bias", rows)
    for name, rows in (("gate", 160), ("up", 160), ("down", 64)):
        draft = draft.put(f"midlayer.mlp.{name}_proj.bias", rows)
    assert refused(draft, NEWEST) == ("AssertionError", "")
    for release in (STRICT, NEWEST):
        assert loaded(draft.put("fc.bias", HIDDEN), release).outcome == "ok"


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "renames"), since(RENAMING))
def test_layers_by_number(release: str, renames: bool) -> None:
    """Eagle3ForCausalLM.load_weights of 00679c66; NVIDIA/TensorRT-LLM #11010, 2026-01-28. Before,
    qkv_proj finds none of its parts."""
    if renames:
        assert loaded(llama("layers.0."), release).outcome == "ok"
    else:
        expected = (
            ("KeyError", "'weight'") if covers(f"<{LENIENT}", release) else ("AssertionError", "")
        )
        assert refused(llama("layers.0."), release) == expected


@pytest.mark.parametrize("release", [LENIENT, NEWEST])
def test_names_with_model_in_front_get_it_twice(release: str) -> None:
    """load_weights puts `model.` in front of every name without lm_head."""
    assert refused(llama().rename("midlayer.", "model.midlayer."), release)[0] == "AssertionError"
    load = loaded(llama().rename("norm.", "model.norm."), release)
    assert load.dropped == ("model.norm.weight",)
    assert load.unfilled == ("model.norm.weight",)


def test_any_name_with_lm_head_in_it_counts_as_a_head() -> None:
    """load_weights: `'lm_head' in k` switches the target's head off."""
    draft = llama().drop("lm_head.weight")
    assert "lm_head.weight" in loaded(draft, NEWEST).borrowed
    load = loaded(draft.put("verifier_lm_head.weight", VOCAB, HIDDEN), NEWEST)
    assert "lm_head.weight" not in load.borrowed and load.unfilled == ("lm_head.weight",)


@pytest.mark.parametrize("release", [STRICT, NEWEST])
def test_a_fused_tensor_is_never_asked_for(release: str) -> None:
    """HfWeightMapper asks for the names of the parts."""
    names = [f"midlayer.self_attn.{x}_proj.weight" for x in "qkv"]
    draft = llama().drop(*names).put("midlayer.self_attn.qkv_proj.weight", 96, 2 * HIDDEN)
    expected = ("KeyError", "'weight'") if release == STRICT else ("AssertionError", "")
    assert refused(draft, release) == expected


# -- tensors that are not there -------------------------------------------------------------------

#: What nobody misses: the head is the target's, t2d has no module.
SPARE = ("lm_head.weight", "t2d")
#: Parts of one parameter.
PARTS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")


@pytest.mark.parametrize("name", sorted(llama().tensors))
def test_each_tensor_missing_while_all_are_asked_for(name: str) -> None:
    """modeling_utils.py (_load_weights_impl_v2) before NVIDIA/TensorRT-LLM #9224 (2025-11-26):
    weights[0]["weight"], and module_weights[n] for norms and for d2t."""
    draft = llama().drop(name)
    if name in SPARE:
        assert loaded(draft, STRICT).outcome == "ok"
    else:
        wanted = "'d2t'" if name == "d2t" else "'weight'"
        assert refused(draft, STRICT) == ("KeyError", wanted)


@pytest.mark.parametrize("release", [LENIENT, NEWEST])
@pytest.mark.parametrize("name", sorted(llama().tensors))
def test_each_tensor_missing_since_empty_modules_are_passed_over(name: str, release: str) -> None:
    """Since then `if not module_weights: return`; what is asserted are the parts of one parameter,
    and d2t, which belongs to the module that holds the others."""
    draft = llama().drop(name)
    if name in SPARE:
        assert loaded(draft, release).outcome == "ok"
    elif name == "d2t" or name.split(".")[-2] in PARTS:
        assert refused(draft, release) == ("AssertionError", "")
    else:
        load = loaded(draft, release)
        assert load.unfilled == (f"model.{name}",)
        # RMSNorm starts with ones, Linear with whatever is there (torch.empty).
        held = "ones" if "norm" in name else "garbage"
        assert load.parameters[f"model.{name}"].initial == held


def test_no_map_is_asked_for_with_the_whole_vocabulary() -> None:
    """Eagle3DraftModel.__init__ makes d2t for vocab_size != draft_vocab_size only."""
    draft = llama().config(vocab_size=DRAFT_VOCAB)
    for release in (STRICT, NEWEST):
        assert loaded(draft.drop("d2t"), release).outcome == "ok"
        load = loaded(draft, release)
        assert load.outcome == "ok" and load.ignored == ("d2t", "t2d")


# -- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("fc.weight", (HIDDEN, 64), (192, 64, 1)),
        ("fc.weight", (60, 192), (64, 60, 0)),
        ("norm.weight", (60,), (64, 60, 0)),
        ("lm_head.weight", (300, HIDDEN), (320, 300, 0)),
        ("d2t", (300,), (320, 300, 0)),
        ("midlayer.self_attn.o_proj.weight", (HIDDEN, 32), (64, 32, 1)),
    ],
)
def test_sizes_are_compared_as_copy_does(
    name: str, shape: tuple[int, ...], sizes: tuple[int, int, int]
) -> None:
    """linear.py (copy_weight), base_weight_mapper.py (handle_manual_copy): torch's copy_."""
    text = "The size of tensor a ({}) must match the size of tensor b ({})".format(*sizes[:2])
    expected = ("RuntimeError", f"{text} at non-singleton dimension {sizes[2]}")
    assert refused(llama().put(name, *shape), NEWEST) == expected


def test_the_words_of_copy() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as raised:
        torch.empty(64, 192).copy_(torch.empty(64, 64))
    assert str(raised.value) == refused(llama().put("fc.weight", 64, 64), NEWEST)[1]
    torch.empty(64, 192).copy_(torch.empty(64, 1))
    altered = loaded(llama().put("fc.weight", 64, 1), NEWEST).altered
    assert [a.how for a in altered] == ["spread"]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("fc.weight", (1, 192)),
        ("fc.weight", (192,)),
        ("fc.weight", (1, 1)),
        ("norm.weight", (1,)),
        ("midlayer.self_attn.o_proj.weight", (64,)),
    ],
)
def test_what_copy_repeats(name: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    whole = llama().tensors[name][1]
    torch.empty(whole).copy_(torch.empty(shape))  # says nothing
    altered = loaded(llama().put(name, *shape), NEWEST).altered
    assert [(a.tensor, a.how) for a in altered] == [(name, "spread")]


def test_norms_are_taken_for_an_fc_that_is_missing() -> None:
    """base_weight_mapper.py (filter_weights) takes every name that begins as the module's does, so
    that ``model.fc`` has ``model.fc_norm.0.weight`` and no weight: linear.py asserts one."""
    draft = llama().drop("fc.weight").config(fc_norm=True)
    for i in range(3):
        draft = draft.put(f"fc_norm.{i}.weight", HIDDEN)
    assert refused(draft, NEWEST) == ("AssertionError", "")
    assert loaded(llama().drop("fc.weight"), NEWEST).unfilled == ("model.fc.weight",)


@pytest.mark.parametrize(
    ("missing", "alike"),
    [
        ("fc.weight", "fc2.weight"),
        ("norm.weight", "norm_x.weight"),
        ("lm_head.weight", "lm_head2.weight"),
        ("midlayer.self_attn.o_proj.weight", "midlayer.self_attn.o_proj_x.weight"),
    ],
)
def test_other_names_are_taken_too(missing: str, alike: str) -> None:
    """The same; without such a name the module is passed over."""
    draft = llama().drop(missing)
    assert loaded(draft, NEWEST).error is None
    assert refused(draft.put(alike, HIDDEN, HIDDEN), NEWEST) == ("AssertionError", "")
    assert loaded(llama().put(alike, HIDDEN, HIDDEN), NEWEST).dropped == (alike,)


@pytest.mark.parametrize("release", [STRICT, NEWEST])
def test_a_d2t_that_is_missed_is_made_from_t2d(release: str, tmp_path: Path) -> None:
    draft = write_case({"base": "llama", "remove": ["d2t"]}, tmp_path / "draft")
    target = f"tensorrt-llm=={release}"
    (result,) = eagle3_lint.check(draft, [target]).checkpoints[0].results
    (finding,) = (d for d in result.diagnostics if d.severity == "error")
    assert finding.rule == "E3L211"
    assert finding.fix is not None and finding.fix.edits == (Edit.add_d2t("d2t"),)
    done = eagle3_lint.fix(draft, [target])
    assert done.after.checkpoints[0].results[0].verdict == "serves"


def test_columns_of_a_layer_that_reads_one_state() -> None:
    draft = llama()
    for name in "qkv":
        draft = draft.grow(f"midlayer.self_attn.{name}_proj.weight", 1, -HIDDEN)
    text = "The size of tensor a (128) must match the size of tensor b (64)"
    expected = ("RuntimeError", f"{text} at non-singleton dimension 1")
    assert refused(draft, NEWEST) == expected


# -- several layers -------------------------------------------------------------------------------


def wide_second() -> Draft:
    """A second layer that takes the embedding too, with both norms."""
    draft = two_layers("midlayer.1.", "input_layernorm", "hidden_norm", "post_attention_layernorm")
    for name, spec in attention("midlayer.1.", inputs=2 * HIDDEN).items():
        draft = draft.put(name, *spec[1])
    return draft.rename("layers.0.", "midlayer.0.")


def narrow_second() -> Draft:
    """A second layer that takes the state alone, with hidden_norm."""
    draft = two_layers("midlayer.1.", "hidden_norm", "post_attention_layernorm")
    return draft.rename("layers.0.", "midlayer.0.")


def test_later_layers() -> None:
    """Eagle3DecoderLayer: with b35ac1b6 every layer is alike; since #9677 those after the first
    take the state alone (next_layer_regular, true unless eagle_config says otherwise)."""
    assert loaded(wide_second(), STRICT).outcome == "ok"
    assert refused(narrow_second(), STRICT) == ("RuntimeError", size(2 * HIDDEN, HIDDEN))
    for release in (LATENT, NEWEST):
        assert loaded(narrow_second(), release).outcome == "ok"
        assert refused(wide_second(), release) == ("RuntimeError", size(HIDDEN, 2 * HIDDEN))
        alike = wide_second().eagle(next_layer_regular=False)
        assert loaded(alike, release).outcome == "ok"


def size(a: int, b: int) -> str:
    text = f"The size of tensor a ({a}) must match the size of tensor b ({b})"
    return f"{text} at non-singleton dimension 1"


def test_several_layers_by_number() -> None:
    """load_weights of 00679c66: layers.N becomes midlayer.N."""
    draft = two_layers("layers.1.", "hidden_norm", "post_attention_layernorm")
    assert loaded(draft, RENAMING).outcome == "ok"


def test_a_projection_before_attention() -> None:
    """Eagle3DraftModel.__init__: eh_proj_before_attn makes every layer take the state alone, behind
    enorm and eh_proj (hidden × 2 hidden)."""
    tensors = {
        **attention("midlayer.", inputs=HIDDEN),
        **dense("midlayer."),
        **norms("midlayer.", "hidden_norm", "post_attention_layernorm"),
        "enorm.weight": ("BF16", (HIDDEN,)),
        "eh_proj.weight": ("BF16", (HIDDEN, 2 * HIDDEN)),
    }
    draft = llama().drop("midlayer.input_layernorm.weight").eagle(eh_proj_before_attn=True)
    for name, (_, shape) in tensors.items():
        draft = draft.put(name, *shape)
    for release in (LATENT, NEWEST):
        assert loaded(draft, release).outcome == "ok"


# -- norms of the states --------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "has"), since("1.3.0rc22"))
def test_norms_of_each_state(release: str, has: bool) -> None:
    """00679c66 Eagle3DraftModel.__init__; NVIDIA/TensorRT-LLM #14988, 2026-06-24, after 1.3.0rc15
    and before 1.3.0rc22."""
    names = [f"fc_norm.{i}.weight" for i in range(3)]
    draft = llama().config(fc_norm=True)
    for name in names:
        draft = draft.put(name, HIDDEN)
    assert loaded(draft, release).dropped == (() if has else tuple(names))


@pytest.mark.parametrize(("release", "has"), since("1.3.0rc11"))
def test_a_norm_of_all_states_is_switched_on_inside_eagle_config(release: str, has: bool) -> None:
    """00679c66 Eagle3DraftModel.__init__ asks eagle_config; NVIDIA/TensorRT-LLM #12561, in the
    release notes of 1.3.0rc11."""
    draft = llama().put("input_norm.weight", 3 * HIDDEN)
    assert loaded(draft.config(norm_before_fc=True), release).dropped == ("input_norm.weight",)
    nested = loaded(draft.eagle(norm_before_fc=True), release)
    assert nested.dropped == (() if has else ("input_norm.weight",))


# -- aux states -----------------------------------------------------------------------------------


@pytest.mark.parametrize("release", [STRICT, NEWEST])
def test_ids_in_the_draft_are_not_read(release: str) -> None:
    """speculative/eagle3.py (Eagle3OneModelSpecMetadata): the outputs of layers 1, n // 2 - 1 and
    n - 4, that is states 2, 18 and 33 of 36 layers."""
    statement = runtime_file("tensorrt-llm").release(release).aux
    config = {
        "eagle_aux_hidden_state_layer_ids": [3, 4, 5],
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 4, 5]},
    }
    fed = aux_states(statement, None, config, 36)
    assert (fed.ids, fed.states) == ((), (1 + 1, 36 // 2 - 1 + 1, 36 - 4 + 1))


@pytest.mark.parametrize(("layers", "fails"), [(1, False), (2, True), (5, True), (6, False)])
def test_a_target_of_few_layers(layers: int, fails: bool) -> None:
    """The same: `num_layers <= 5` raises, one layer is taken as it is."""
    contract = contract_file("tensorrt-llm", "Eagle3ForCausalLM").contract(NEWEST)
    config = {**llama().fields, "attention_bias": False}
    known = {"config_class": "LlamaConfig", "target_hidden": HIDDEN, "target_vocab": VOCAB}
    shapes = {name: shape for name, (_, shape) in llama().tensors.items()}
    load = simulate_load(contract, config, shapes, {**known, "target_layers": layers, "tp": 1})
    text = "Not enough hidden layers for default EAGLE3 capture"
    expected = ("ValueError", text) if fails else None
    assert (load.error and (load.error.type, load.error.message)) == expected


# -- latent attention -----------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "has"), since(LATENT))
def test_latent_attention(release: str, has: bool) -> None:
    """Eagle3MLAttention since NVIDIA/TensorRT-LLM #9677 (2026-01-02); before, q_proj is looked for
    and is not there."""
    if has:
        load = loaded(WHOLE_MLA, release)
        assert load.outcome == "ok"
        name = "model.midlayer.self_attn.kv_a_proj_with_mqa.weight"
        # 24 of q_lora_rank, 16 of kv_lora_rank, 4 of qk_rope_head_dim.
        assert load.parameters[name].shape == (24 + 16 + 4, 2 * HIDDEN)
    else:
        # A head_dim that fits o_proj: sizes are not what the class stumbles over first.
        draft = WHOLE_MLA.config(head_dim=V_HEAD)
        kind = "KeyError" if covers(f"<{LENIENT}", release) else "AssertionError"
        assert refused(draft, release)[0] == kind


@pytest.mark.parametrize("release", [LATENT, NEWEST])
def test_latent_attention_with_a_reduced_vocabulary(release: str) -> None:
    """modeling_deepseekv3.py (DeepseekV3WeightLoader) asks the module that holds d2t for
    named_parameters(), those of its submodules included, and v_b_proj is in no checkpoint."""
    expected = ("KeyError", "'midlayer.self_attn.v_b_proj'")
    assert refused(mla("midlayer."), release) == expected


@pytest.mark.parametrize("name", sorted(WHOLE_MLA.tensors))
def test_latent_attention_wants_every_tensor_but_the_head(name: str) -> None:
    """The same loader has no way around a module without tensors, but for skip_modules."""
    draft = WHOLE_MLA.drop(name)
    if name == "lm_head.weight":
        assert loaded(draft, NEWEST).outcome == "ok"
    else:
        assert refused(draft, NEWEST)[0] in ("KeyError", "AssertionError")


# -- the forward pass -----------------------------------------------------------------------------

OFF: dict[str, object] = {
    "norm_before_residual": False, "norm_before_fc": False, "fc_norm": False, "norm_output": False,
    "last_norm": True, "sliding_window": None, "parallel_drafting": False,
}  # fmt: skip
EVERYTHING: dict[str, Any] = {
    "norm_before_residual": True, "norm_before_fc": True, "fc_norm": True, "norm_output": True,
    "sliding_window": 512, "layer_types": ["sliding_attention"], "parallel_drafting": True,
    "mask_token_id": 7,
}  # fmt: skip


def takes(release: str, name: str, **fields: Any) -> object:
    """The value of a switch for a draft with these fields."""
    draft = llama().config(**fields)
    load = loaded(draft, release)
    statement = contract_file("tensorrt-llm", "Eagle3ForCausalLM").switches(release)[name]
    return taken(statement, draft.fields, load.environment)


@pytest.mark.parametrize("release", RELEASES)
def test_switches_at_the_top_of_config(release: str) -> None:
    """apply_eagle3_fc, Eagle3DecoderLayer.forward and Eagle3DraftModel.forward; fc_norm and
    norm_output since #14988."""
    late = covers(">=1.3.0rc22", release)
    expected = {**OFF, "fc_norm": late, "norm_output": late}
    found = {name: bool(takes(release, name, **EVERYTHING)) for name in OFF}
    assert found == {name: bool(value) for name, value in expected.items()}


@pytest.mark.parametrize("release", RELEASES)
def test_switches_inside_eagle_config(release: str) -> None:
    nested = {"norm_before_fc": True, "return_hidden_post_norm": True, "use_last_layernorm": False}
    found = {name: bool(takes(release, name, eagle_config=nested)) for name in OFF}
    expected = {
        **OFF,
        "norm_before_fc": covers(">=1.3.0rc11", release),
        "norm_output": covers(f">={LATENT}", release),
    }
    assert found == {name: bool(value) for name, value in expected.items()}


def test_norms_exclude_one_another() -> None:
    """apply_eagle3_fc: fc_norm, else norm_before_fc."""
    nested = {"norm_before_fc": True}
    assert not takes(NEWEST, "norm_before_fc", eagle_config=nested, fc_norm=True)


@pytest.mark.parametrize(
    ("nested", "top", "on"),
    [(True, False, True), (False, True, True), (False, False, False), (ABSENT, True, True)],
)
def test_either_switch_hands_on_the_normed_state(nested: object, top: bool, on: bool) -> None:
    """00679c66 Eagle3DraftModel.__init__: eagle_config.return_hidden_post_norm or norm_output."""
    inside = {} if nested is ABSENT else {"return_hidden_post_norm": nested}
    assert bool(takes(NEWEST, "norm_output", eagle_config=inside, norm_output=top)) is on


SCALED = {"rope_type": "llama3", "factor": 8.0}
PARAMETERS = {**SCALED, "rope_theta": 500000.0, "partial_rotary_factor": 0.5}


@pytest.mark.parametrize(("release", "fifth"), since(FIFTH))
def test_where_the_rotary_embedding_is_read(release: str, fifth: bool) -> None:
    """attention_backend/interface.py (RopeParams.from_config): with transformers 5 it takes what
    rope_parameters holds over into the configuration, where 4 knows no such field."""
    new: dict[str, object] = {"rope_theta": ABSENT, "rope_parameters": PARAMETERS}
    assert takes(release, "rope_theta", **new) == (500000.0 if fifth else 10000)
    assert takes(release, "rope_scaling", **new) == (PARAMETERS if fifth else None)
    assert takes(release, "partial_rotary_factor", **new) == (0.5 if fifth else 1)
    assert takes(release, "rope_theta", rope_theta=500000.0) == 500000.0
    assert takes(release, "rope_scaling", rope_scaling=SCALED) == SCALED
    assert takes(release, "partial_rotary_factor", partial_rotary_factor=0.5) == 0.5


def test_what_rope_scaling_hides() -> None:
    """transformers 5.5.4 (rope_scaling is another name of rope_parameters), run by hand with
    RopeParams.from_config: base 600000 from the top, 900000 from inside, the share from inside."""
    both: dict[str, object] = {"rope_scaling": SCALED, "rope_parameters": PARAMETERS}
    assert takes(NEWEST, "rope_theta", **both, rope_theta=600000.0) == 600000.0
    assert takes(NEWEST, "rope_scaling", **both) == SCALED
    inside = {**both, "rope_scaling": {**SCALED, "rope_theta": 900000.0}}
    assert takes(NEWEST, "rope_theta", **inside) == 900000.0
    share = {"rope_type": "default", "partial_rotary_factor": 0.25}
    for place in ("rope_scaling", "rope_parameters"):
        config = {place: share, "partial_rotary_factor": 0.5}
        assert takes(NEWEST, "partial_rotary_factor", **config) == 0.25


@pytest.mark.parametrize("key", ["type", "rope_type"])
def test_a_rope_type_that_is_none(key: str) -> None:
    """functional.py (RotaryScalingType.from_string)."""
    expected = ("ValueError", "Unsupported rotary scaling type: su")
    assert refused(llama().config(rope_scaling={key: "su", "factor": 2.0}), NEWEST) == expected
    assert loaded(llama().config(rope_scaling={key: "yarn", "factor": 2.0}), NEWEST).outcome == "ok"
