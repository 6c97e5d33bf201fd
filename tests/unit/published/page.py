"""docs/published.md from the entries: ``python -m tests.unit.published.page`` writes it."""

from __future__ import annotations

from pathlib import Path

from tests.unit.published.configurations import NO_DRAFTS, PUBLISHED
from tests.unit.published.entry import Case, Published

PAGE = Path(__file__).parents[3] / "docs" / "published.md"

_BEFORE = """\
# Published drafts

What is publicly known of EAGLE-3 drafts, and what we expect SGLang and vLLM to do with each. No
draft is downloaded: `tests/unit/published` makes the configuration and a sparse file of true size,
with every tensor's name and shape as its producer writes them, and checks it against the releases
below.

A release is the first that serves the target model and knows the draft's class, the newest known,
one that a public thread names, or one on either side of a change in its sources. *Serves* means
that no error is found, though there may be warnings. What fails says why, with the rule and the
place in that release's sources that decides it (in `srt/` of SGLang's wheel). *Not said yet* marks
what these say and the checker does not; such tests are expected to fail, and fail when they no
longer do.
"""

#: Drafts that are named somewhere and were left out, and why.
_LEFT_OUT = {
    "ginsongsong/eagle3-kimik2.5-w4a8": "Quark INT4 packs the projections of midlayer (I32 and F16 "
    "beside BF16); the names and shapes of its tensors are not known",
    "nvidia/gpt-oss-120b-Eagle3-throughput": "no field is known (sglang PR 32334 names it)",
    "nvidia/Kimi-K2-Thinking-Eagle3, nvidia/Qwen3-235B-A22B-Eagle3, "
    "jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B, zhuyksir/EAGLE3-gpt-oss-20b-bf16, "
    "Zjcxy-SmartAI's and baseten's drafts": "no field is known",
}


def _model(entry: Published) -> str:
    if entry.model is None:
        return "as the draft names it"
    if isinstance(entry.model, str):
        return entry.model
    held = {**entry.model, **entry.model.get("text_config", {})}
    return f"{held['architectures'][0]}, {held['num_hidden_layers']} layers"


def _outcome(case: Case) -> str:
    if case.verdict is None:
        text = "serves"
    else:
        reasons = "; ".join(f"{rule}: {why}" for rule, why in case.errors.items())
        text = f"**{case.verdict}**" + (f" ({reasons})" if reasons else "")
    if case.says:
        text += f", with {' and '.join(case.says)}"
    return f"{text}. *Not said yet*: {case.missed}" if case.missed else text


def _row(entry: Published) -> str:
    cases = "<br>".join(
        f"{case.target.replace('==', ' ')} ({case.why}): {_outcome(case)}" for case in entry.cases
    )
    cells = (entry.name, _model(entry), cases, entry.source, entry.assumed or "nothing")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> str:
    """The page's text."""
    heads = {
        head.name: f"a head of the first EAGLE ({head.source}): told apart and refused"
        for head in NO_DRAFTS
    }
    return "\n".join(
        (
            _BEFORE,
            "| draft | target model | releases and what is expected | source | filled in |",
            "| --- | --- | --- | --- | --- |",
            *map(_row, PUBLISHED),
            "",
            "## Left out",
            "",
            "| what | why |",
            "| --- | --- |",
            *(f"| {what} | {why} |" for what, why in {**heads, **_LEFT_OUT}.items()),
            "",
        )
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
