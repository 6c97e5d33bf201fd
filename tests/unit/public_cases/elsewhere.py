"""Reports that no test here can have, and why.

A reason that begins with "launch line" belongs to what is said of command lines.
"""

from __future__ import annotations

WHY_NOT: dict[int, str] = {
    5: "no draft at all: `check` says so and ends with 2 (test_a_whole_model_is_no_draft)",
    23: "the class of EAGLE-1 drafts for Llama 4 (`EagleLlama4ForCausalLM`, method eagle), which "
        "is no EAGLE-3 draft; the fault was vLLM's alone",
    24: "tokenspeed only: SGLang's tied head is the embedding itself and follows it when it is "
        "replaced (0.5.23 models/llama_eagle3.py:303), vLLM does not tie",
    27: "the converter with transformers 4.54.1, which raises before anything is written",
    49: "launch line: the draft is good, the algorithm EAGLE skips its fc",
    55: "training data alone: the ids are those that were meant",
    56: "what Kimi-K3's states hold depends on an environment variable "
        "(VLLM_KIMI_K3_AUX_ATTN_RES_STREAM, 0.33.0 models/kimi_k3/nvidia/model.py:1052) and on "
        "what the trainer saw; config.json says neither",
    70: "the source draft's rope is needed: a target model with llama3 scaling and a draft "
        "without is what SpecForge's and SafeAILab's own templates train",
    72: "the trainer's release is not in the files, and the value is the one that was asked for",
    73: "the trainer's release is not in the files; later ones train with yarn",
    74: "as 72",
    77: "vllm-ascend only: one rotary table for both models; SGLang and vLLM have one for each",
    81: "launch line: the draft inherits what `--quantization` says (0.5.13 server_args.py:1233)",
    84: "Quark; no contract describes its layers, and the card does not say how it fails",
    85: "vllm-ascend only: a rotated target model's description is no part of the draft",
    86: "launch line: the cache's dtype, in releases whose error is not known",
    89: "an engine before EAGLE-3",
    99: "launch line: the draft's attention backend",
    101: "TensorRT-LLM only",
    102: "the error is not known; 1, 9 and 28 are what it can have been",
    104: "vllm-ascend only, and no fault of a draft",
    105: "what two layers accept was trained; both runtimes serve them (10, 13)",
    106: "the trainer's release is not in the files",
    109: "a loop of the scheduler, error not known",
    110: "one commit of vLLM, whatever the draft",
    112: "the error is not known; 17 is what it most likely was",
}  # fmt: skip
