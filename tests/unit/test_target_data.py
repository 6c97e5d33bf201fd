"""Target models and configuration classes: the data fit their schemas and what the sources say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from eagle3_lint.contract.ranges import covers
from eagle3_lint.contract.rules_folder import read_json, rules_folder
from eagle3_lint.contract.runtime import runtime_file
from eagle3_lint.models import normal

RULES = rules_folder()
TABLES: dict[str, dict[str, Any]] = {
    runtime: read_json(RULES / "targets" / f"{runtime}.json") for runtime in ("sglang", "vllm")
}
MODELS: list[dict[str, Any]] = read_json(RULES / "targets" / "models.json")["models"]
CLASSES: dict[str, Any] = read_json(RULES / "config_classes.json")
FILES = {
    "targets/sglang.json": "targets",
    "targets/vllm.json": "targets",
    "targets/models.json": "models",
    "config_classes.json": "config_classes",
}


@pytest.mark.parametrize(("file", "schema"), FILES.items())
def test_the_file_fits_its_schema(file: str, schema: str) -> None:
    checker = Draft202012Validator(read_json(RULES / "schema" / f"{schema}.schema.json"))
    assert [error.message for error in checker.iter_errors(read_json(RULES / file))] == []


@pytest.mark.parametrize("schema", sorted(set(FILES.values())))
def test_a_schema_is_a_schema_and_refuses_what_it_does_not_know(schema: str) -> None:
    raw = read_json(RULES / "schema" / f"{schema}.schema.json")
    Draft202012Validator.check_schema(raw)
    file = next(name for name, used in FILES.items() if used == schema)
    spoiled = {**read_json(RULES / file), "unheard_of": 1}
    assert not Draft202012Validator(raw).is_valid(spoiled)


@pytest.mark.parametrize("file", FILES)
def test_the_file_is_small_enough_for_a_cold_start(file: str) -> None:
    # A hundred kilobytes of JSON parse in well under two milliseconds.
    assert (RULES / file).stat().st_size < 150_000


# --- the tables against themselves -----------------------------------


def spans(entry: Mapping[str, Any]) -> Iterator[str]:
    yield entry["registered"]
    yield from entry.get("eagle3", ())
    for part in ("why_not", "policy", "notes"):
        yield from (item["in"] for item in entry.get(part, ()))


def state(runtime: str, release: str, architecture: str) -> str:
    """``yes``, ``unregistered``, ``no-hook`` or another case."""
    entry = TABLES[runtime]["architectures"].get(architecture)
    if entry is None or not covers(entry["registered"], release):
        return "unregistered"
    if any(covers(span, release) for span in entry.get("eagle3", ())):
        return "yes"
    cases = [why["case"] for why in entry.get("why_not", ()) if covers(why["in"], release)]
    return str(cases[0]) if cases else "no-hook"


def states(runtime: str) -> Iterator[tuple[str, str, str]]:
    for architecture in TABLES[runtime]["architectures"]:
        for release in TABLES[runtime]["releases"]:
            yield architecture, release, state(runtime, release, architecture)


@pytest.mark.parametrize("runtime", TABLES)
def test_it_speaks_of_the_releases_that_the_contracts_speak_of(runtime: str) -> None:
    assert tuple(TABLES[runtime]["releases"]) == runtime_file(runtime).releases


@pytest.mark.parametrize("runtime", TABLES)
def test_every_range_covers_a_release(runtime: str) -> None:
    releases = TABLES[runtime]["releases"]
    empty = [
        (architecture, span)
        for architecture, entry in TABLES[runtime]["architectures"].items()
        for span in spans(entry)
        if not any(covers(span, release) for release in releases)
    ]
    assert empty == []


@pytest.mark.parametrize("runtime", TABLES)
def test_no_release_has_two_answers(runtime: str) -> None:
    twice = []
    for architecture, entry in TABLES[runtime]["architectures"].items():
        for release in TABLES[runtime]["releases"]:
            answers = [s for s in entry.get("eagle3", ()) if covers(s, release)]
            answers += [w["case"] for w in entry.get("why_not", ()) if covers(w["in"], release)]
            policies = [p for p in entry.get("policy", ()) if covers(p["in"], release)]
            outside = answers and not covers(entry["registered"], release)
            if len(answers) > 1 or len(policies) > 1 or outside:
                twice.append((architecture, release))
    assert twice == []


@pytest.mark.parametrize("runtime", TABLES)
def test_every_state_but_yes_has_exactly_one_error(runtime: str) -> None:
    errors = TABLES[runtime]["errors"]
    found = {(r, s): sum(e["state"] == s and covers(e["in"], r) for e in errors)
             for _, r, s in states(runtime) if s != "yes"}  # fmt: skip
    assert {key: count for key, count in found.items() if count != 1} == {}


def test_every_fed_sglang_target_has_an_id_policy() -> None:
    # But one: it hands the ids to code outside the wheel.
    without = {a for a, e in TABLES["sglang"]["architectures"].items()
               if "eagle3" in e and "policy" not in e}  # fmt: skip
    assert without == {"MindSporeForCausalLM"}


# --- spot checks, read by hand in the sources named beside them -----------------------------------

SGLANG = [
    # models/kimi_k25.py:648 has no hook in 0.5.9, :841 has one in 0.5.10; no such file in 0.5.8.
    ("0.5.8.post1", "KimiK25ForConditionalGeneration", "unregistered"),
    ("0.5.9", "KimiK25ForConditionalGeneration", "no-hook"),
    ("0.5.10", "KimiK25ForConditionalGeneration", "yes"),
    ("0.5.23", "KimiK25ForConditionalGeneration", "yes"),
    # Inherits the hook (0.5.2 models/qwen2_5_vl.py:657), but models/glm4_moe.py captures nothing;
    # from 0.5.4.post2 on (models/glm4v.py:546) it inherits nn.Module and has no hook.
    ("0.5.2", "Glm4vMoeForConditionalGeneration", "nothing-captured"),
    ("0.5.4.post1", "Glm4vMoeForConditionalGeneration", "nothing-captured"),
    ("0.5.4.post2", "Glm4vMoeForConditionalGeneration", "no-hook"),
    # models/minimax_m2.py:809 is the hook; get_embed_and_head (:824) came with 0.5.5.post3.
    ("0.5.5.post1", "MiniMaxM2ForCausalLM", "no-embedding"),
    ("0.5.5.post3", "MiniMaxM2ForCausalLM", "yes"),
    # 0.5.4.post2 models/deepseek_v2.py:3779
    ("0.5.4.post1", "DeepseekV3ForCausalLM", "no-hook"),
    ("0.5.4.post2", "DeepseekV3ForCausalLM", "yes"),
    # 0.4.8 models/llama.py:700
    ("0.4.8", "LlamaForCausalLM", "yes"),
    # 0.4.9 models/mllama4.py:229; the class of 0.4.8 (:22) has no hook
    ("0.4.8", "Llama4ForConditionalGeneration", "no-hook"),
    ("0.4.9", "Llama4ForConditionalGeneration", "yes"),
    # 0.5.11 models/qwen3_vl.py:1398 marks what models/qwen3_5.py:1114 does not look at; mended in
    # 0.5.22 models/qwen3_vl.py:1793
    ("0.5.10", "Qwen3_5ForConditionalGeneration", "no-hook"),
    ("0.5.11", "Qwen3_5ForConditionalGeneration", "nothing-captured"),
    ("0.5.21", "Qwen3_5ForConditionalGeneration", "nothing-captured"),
    ("0.5.22", "Qwen3_5ForConditionalGeneration", "yes"),
    # 0.5.23 models/qwen4_exp.py:2171 returns its streams in the place of the captured states
    ("0.5.23", "Qwen4ExpForConditionalGeneration", "nothing-captured"),
    # 0.5.5.post3 models/qwen2_5_vl.py:575 unpacks the states and drops them
    ("0.5.5.post2", "Qwen2_5_VLForConditionalGeneration", "yes"),
    ("0.5.5.post3", "Qwen2_5_VLForConditionalGeneration", "states-dropped"),
    ("0.5.6", "Qwen2_5_VLForConditionalGeneration", "yes"),
    # 0.5.23 models/qwen2_moe.py:1418 is the hook; the class has no get_embed_and_head
    ("0.5.23", "Qwen2MoeForCausalLM", "no-embedding"),
    # 0.5.12 models/gemma3_mm.py:497; none in 0.5.11 (class at :111)
    ("0.5.11", "Gemma3ForConditionalGeneration", "no-hook"),
    ("0.5.12", "Gemma3ForConditionalGeneration", "yes"),
    # Registered through transformers' own classes only, which have no hook.
    ("0.5.23", "TransformersForCausalLM", "no-hook"),
    # A draft of EAGLE-1 is registered like a model.
    ("0.5.9", "LlamaForCausalLMEagle", "no-hook"),
    ("0.5.9", "NoSuchForCausalLM", "unregistered"),
]
VLLM = [
    # model_executor/models/llama.py:531
    ("0.8.5", "LlamaForCausalLM", "yes"),
    # class at 0.11.0 qwen3_moe.py:571, with the interface at 0.11.1 qwen3_moe.py:630
    ("0.11.0", "Qwen3MoeForCausalLM", "no-hook"),
    ("0.11.1", "Qwen3MoeForCausalLM", "yes"),
    # registry.py:362 in 0.15.0; the interface comes with 0.18.0 kimi_k25.py:321
    ("0.14.1", "KimiK25ForConditionalGeneration", "unregistered"),
    ("0.17.1", "KimiK25ForConditionalGeneration", "no-hook"),
    ("0.18.0", "KimiK25ForConditionalGeneration", "yes"),
    # 0.19.1 minimax_m2.py:497, 0.20.0 minimax_m2.py:506
    ("0.19.1", "MiniMaxM2ForCausalLM", "no-hook"),
    ("0.20.0", "MiniMaxM2ForCausalLM", "yes"),
    # 0.19.0 gemma4.py:1047, 0.19.1 gemma4.py:1399
    ("0.19.0", "Gemma4ForCausalLM", "no-hook"),
    ("0.19.1", "Gemma4ForCausalLM", "yes"),
    # Has the methods, but not the flag of the protocol (0.17.1 apertus.py:475), 0.18.0 :481
    ("0.17.1", "ApertusForCausalLM", "no-hook"),
    ("0.18.0", "ApertusForCausalLM", "yes"),
    # 0.17.0 qwen3_5.py:298 captures nothing; 0.18.0 qwen3_5.py:357 captures, but is no mixin
    ("0.17.1", "Qwen3_5ForConditionalGeneration", "nothing-captured"),
    ("0.18.0", "Qwen3_5ForConditionalGeneration", "no-mixin"),
    ("0.19.1", "Qwen3_5ForConditionalGeneration", "no-mixin"),
    ("0.20.0", "Qwen3_5ForConditionalGeneration", "yes"),
    # 0.12.0 qwen3_vl_moe.py:95 has a forward pass of its own, 0.15.0 :118 captures
    ("0.14.1", "Qwen3VLMoeForConditionalGeneration", "nothing-captured"),
    ("0.15.0", "Qwen3VLMoeForConditionalGeneration", "yes"),
    # Text model Exaone4ForCausalLM (exaone4_5.py:363), whose decoder (exaone4.py:293) is no mixin
    ("0.33.0", "Exaone4_5_ForConditionalGeneration", "no-mixin"),
    # 0.22.0 nemotron_h.py:783
    ("0.21.0", "NemotronHForCausalLM", "no-hook"),
    ("0.22.0", "NemotronHForCausalLM", "yes"),
    # 0.24.0 models/deepseek_v4/nvidia/model.py:1317, 0.25.0 :1357
    ("0.24.0", "DeepseekV4ForCausalLM", "no-hook"),
    ("0.25.0", "DeepseekV4ForCausalLM", "yes"),
    # 0.15.1 models/transformers/base.py:505 wants 5.0, METADATA says <5; 0.19.1 allows 5.5.1 on
    ("0.15.1", "TransformersForCausalLM", "transformers-too-old"),
    ("0.19.1", "TransformersForCausalLM", "yes"),
    # 0.33.0 glm4_moe.py:534
    ("0.33.0", "Glm4MoeForCausalLM", "no-hook"),
]


@pytest.mark.parametrize(("release", "architecture", "expected"), SGLANG)
def test_sglang(release: str, architecture: str, expected: str) -> None:
    assert state("sglang", release, architecture) == expected


@pytest.mark.parametrize(("release", "architecture", "expected"), VLLM)
def test_vllm(release: str, architecture: str, expected: str) -> None:
    assert state("vllm", release, architecture) == expected


POLICIES = [
    ("0.4.8", "LlamaForCausalLM", "default-only"),  # models/llama.py:700 takes no ids
    ("0.5.23", "LlamaForCausalLM", "plus1"),  # models/llama.py:941
    ("0.5.12.post1", "DeepseekV3ForCausalLM", "plus1"),  # models/deepseek_v2.py:2541
    ("0.5.13", "DeepseekV3ForCausalLM", "plus1-if-first-is-1"),  # models/deepseek_v2.py:2752
    # models/kimi_k25.py:928 hands on to the same method
    ("0.5.12.post1", "KimiK25ForConditionalGeneration", "plus1"),
    ("0.5.23", "KimiK25ForConditionalGeneration", "plus1-if-first-is-1"),
    ("0.5.16", "GptOssForCausalLM", "plus1"),  # models/gpt_oss.py:1284
    ("0.5.17", "GptOssForCausalLM", "plus1-unless-max-is-n"),  # models/gpt_oss.py:1340
    # models/minimax_m3_vl.py:224 adds one to its own default too
    ("0.5.18", "MiniMaxM3SparseForConditionalGeneration", "plus1-also-on-default"),
]


@pytest.mark.parametrize(("release", "architecture", "expected"), POLICIES)
def test_id_policy(release: str, architecture: str, expected: str) -> None:
    entry = TABLES["sglang"]["architectures"][architecture]
    assert [p["policy"] for p in entry["policy"] if covers(p["in"], release)] == [expected]


WHITELISTS = [
    ("0.8.5", ["llama"]),  # config.py:2588
    ("0.10.0", ["llama"]),
    ("0.10.1", ["llama", "qwen"]),  # config/__init__.py:2347
    ("0.15.1", ["llama", "qwen", "minicpm", "gpt_oss"]),  # config/speculative.py:672
    ("0.22.0", None),  # config/speculative.py has no such list any more
]


@pytest.mark.parametrize(("release", "expected"), WHITELISTS)
def test_list_of_model_types(release: str, expected: list[str] | None) -> None:
    found = [w for w in TABLES["vllm"]["whitelists"] if covers(w["in"], release)]
    assert [w["model_types"] for w in found] == ([] if expected is None else [expected])


def test_vllm_takes_kimi_from_0_18_on() -> None:
    # 0.17.0 config/speculative.py:768 leaves it out, 0.18.0 config/speculative.py:780 has it.
    lists = {r: next(w for w in TABLES["vllm"]["whitelists"] if covers(w["in"], r))
             for r in ("0.17.1", "0.18.0")}  # fmt: skip
    accepted = {r: [w for w in lists[r]["model_types"] if w in "kimi_k2"] for r in lists}
    assert accepted == {"0.17.1": [], "0.18.0": ["kimi_k2"]}
    # What pydantic makes of the ValueError that 0.17.0 config/speculative.py:786 raises.
    assert lists["0.17.1"]["raises"] == (
        "ValidationError: 1 validation error for SpeculativeConfig\n"
        "  Value error, eagle3 is only supported for {known} models. "
        "Got self.target_model_config.hf_text_config.model_type='{model_type}'"
    )


# --- models -----------------------------------


def test_no_two_models_share_a_name() -> None:
    names = [n for m in MODELS for n in {*map(normal, (m["name"], m["repo"], *m["aliases"]))}]
    assert sorted(names) == sorted(set(names))


def test_every_model_is_known_to_a_runtime() -> None:
    known = {name for table in TABLES.values() for name in table["architectures"]}
    assert [m["name"] for m in MODELS if m["architecture"] not in known] == []


SIZES = [
    # config.json of moonshotai/Kimi-K2.5: text_config
    ("kimi-k2.5", 7168, 61, 163840),
    # config.json of meta-llama/Llama-3.1-8B-Instruct
    ("llama-3.1-8b", 4096, 32, 128256),
    # transformers 5.19.0 models/gpt_oss/configuration_gpt_oss.py: defaults of gpt-oss-120b
    ("gpt-oss-120b", 2880, 36, 201088),
    # convert_gemma3_weights.py: 42 * 128 wide, 62 layers
    ("gemma-3-27b", 42 * 128, 62, 262208),
    # three dense and 89 expert layers
    ("glm-4.5", 5120, 3 + 89, 151552),
]


@pytest.mark.parametrize(("name", "hidden", "layers", "vocab"), SIZES)
def test_sizes(name: str, hidden: int, layers: int, vocab: int) -> None:
    model = next(m for m in MODELS if m["name"] == name)
    found = (model["hidden_size"], model["num_hidden_layers"], model["vocab_size"])
    assert found == (hidden, layers, vocab)


# --- configuration classes -----------------------------------


def fields(model_type: str, version: str) -> dict[str, Any]:
    order: list[str] = CLASSES["transformers"]
    known = [d for d in CLASSES["details"][model_type]
             if order.index(d["since"]) <= order.index(version)]  # fmt: skip
    return dict(known[-1]["fields"])


DEFAULTS = [
    # transformers 4.57.1 models/llama/configuration_llama.py:178, :184 and :209, :195
    ("llama", "4.57.1", "absent", "tie_word_embeddings", {"value": False}),
    ("llama", "4.57.1", "absent", "head_dim", {"formula": "hidden_size // num_attention_heads"}),
    ("llama", "4.57.1", "null", "head_dim", {"formula": "hidden_size // num_attention_heads"}),
    ("llama", "4.57.1", "null", "num_key_value_heads", {"formula": "num_attention_heads"}),
    # 4.52.3 models/mistral/configuration_mistral.py:146 keeps a null head_dim
    ("mistral", "4.52.3", "absent", "head_dim", {"value": None}),
    # 4.57.1 models/qwen3/configuration_qwen3.py:163
    ("qwen3", "4.57.1", "absent", "head_dim", {"value": 128}),
    # 4.57.1 models/deepseek_v3/configuration_deepseek_v3.py:158 and :168
    ("deepseek_v3", "4.57.1", "absent", "hidden_size", {"value": 7168}),
    ("deepseek_v3", "4.57.1", "absent", "q_lora_rank", {"value": 1536}),
]


@pytest.mark.parametrize(("model_type", "version", "when", "field", "expected"), DEFAULTS)
def test_class_default(
    model_type: str, version: str, when: str, field: str, expected: dict[str, Any]
) -> None:
    assert fields(model_type, version)[when][field] == expected


def test_a_qwen3_draft_keeps_a_null_head_dim_in_4_57() -> None:
    # 4.57.1 models/qwen3/configuration_qwen3.py:195 takes what it is given.
    assert "head_dim" not in fields("qwen3", "4.57.1")["null"]


KNOWN_SINCE = [
    # models/auto/configuration_auto.py: 4.57.1:186 and not in 4.54.1; 5.3.0:284 and not in 4.57.1
    ("gpt_oss", "4.55.2"),
    ("minimax_m2", "5.3.0"),
    ("kimi_k2", None),  # in no version that was run
]


@pytest.mark.parametrize(("model_type", "since"), KNOWN_SINCE)
def test_model_type_is_known_since(model_type: str, since: str | None) -> None:
    assert CLASSES["types"].get(model_type, {}).get("since") == since


def test_the_files_are_plain_json() -> None:
    # Strict readers stumble over NaN and Infinity, which Python writes and reads without a word.
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    for file in FILES:
        json.loads((RULES / file).read_text(encoding="utf-8"), parse_constant=refuse)
