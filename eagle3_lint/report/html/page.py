"""``render_html``: the page as one text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from eagle3_lint.report.html.excerpt import whole
from eagle3_lint.report.html.findings import panel
from eagle3_lint.report.html.grid import grid
from eagle3_lint.report.html.groups import Group, grouped
from eagle3_lint.report.html.input import HtmlInput
from eagle3_lint.report.html.layers import layer_diagram
from eagle3_lint.report.html.marks import mark, pill, shapes
from eagle3_lint.report.html.markup import Markup, counted, folded, joined, lines, tag, text
from eagle3_lint.report.html.tensors import tensor_tables
from eagle3_lint.report.html.vocabulary import vocabulary
from eagle3_lint.report.model import VERDICTS, CheckpointReport, Report
from eagle3_lint.version import __version__

#: Nothing is fetched and no script runs, whatever slipped through.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def render_html(report: Report, inputs: Sequence[HtmlInput] | None = None) -> str:
    """The report as a page, ending in a newline.

    Args:
        inputs: what else to show of each checkpoint, in the report's order
            (:mod:`eagle3_lint.report.html.gather`); None leaves those sections out.
    """
    known: Sequence[HtmlInput | None] = inputs or [None] * len(report.checkpoints)
    pairs = list(zip(report.checkpoints, known, strict=True))
    articles = (
        _article(checkpoint, beside, f"d{number}")
        for number, (checkpoint, beside) in enumerate(pairs, 1)
    )
    body = tag(
        "body",
        lines(
            shapes(),
            _banner(report),
            _contents(report) if len(pairs) > 1 else None,
            tag("main", lines(*articles)),
            tag("footer", f"eagle3-lint {__version__}"),
        ),
    )
    page = tag("html", lines(_head(report), body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _head(report: Report) -> Markup:
    names = [PurePath(c.path).name or c.path for c in report.checkpoints]
    about = names[0] if len(names) == 1 else counted(len(names), "draft")
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return tag(
        "head",
        lines(
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="generator", content=f"eagle3-lint {__version__}"),
            # Else browsers ask the server for one.
            tag("link", rel="icon", href="data:,"),
            tag("title", f"{about} – eagle3-lint"),
            tag("style", Markup(style)),
        ),
    )


def _banner(report: Report) -> Markup:
    summary = report.summary
    if not summary.errors and not summary.warnings:
        told = "No errors, no warnings"
    else:
        told = f"{counted(summary.errors, 'error')}, {counted(summary.warnings, 'warning')}"
        told += f"; {summary.fixable} with a safe fix" if summary.fixable else ""
    if summary.unreadable:
        drafts = counted(len(report.checkpoints), "draft")
        told += f"; {summary.unreadable} of {drafts} could not be read"
    told += "."
    return tag(
        "header",
        tag("p", f"eagle3-lint {__version__}", class_="brand"),
        tag("h1", "EAGLE-3 draft report"),
        tag("p", told, class_="summary"),
        class_="banner",
    )


def _contents(report: Report) -> Markup:
    items = (
        tag(
            "li",
            tag("a", c.path, href=f"#d{number}"),
            " ",
            *(pill(v) for v in reversed(VERDICTS) if v in {r.verdict for r in c.results}),
            "unreadable" if c.error is not None else None,
        )
        for number, c in enumerate(report.checkpoints, 1)
    )
    return tag("nav", tag("h2", "Drafts"), tag("ol", *items), class_="contents",
               aria_label="Drafts")  # fmt: skip


# -- one draft ----------------------------------------------------------------------------------


def _article(checkpoint: CheckpointReport, beside: HtmlInput | None, name: str) -> Markup:
    if checkpoint.error is not None:
        told = tag("p", f"It could not be read: {checkpoint.error}")
        head = tag("h2", checkpoint.path, class_="path")
        return tag("article", lines(head, told), class_="draft", id=name)
    groups = grouped(checkpoint.results)
    sections = list(_sections(checkpoint, beside, groups, name))
    links = (tag("li", tag("a", title, href=f"#{name}-{key}")) for key, title, _ in sections)
    return tag(
        "article",
        lines(
            tag("h2", checkpoint.path, class_="path"),
            _description(checkpoint, beside),
            _verdicts(groups, name),
            tag("nav", tag("ul", *links), class_="inside", aria_label=f"In {checkpoint.path}"),
            *(
                tag("section", lines(tag("h3", title), content), id=f"{name}-{key}", class_=key)
                for key, title, content in sections
            ),
        ),
        class_="draft",
        id=name,
    )


def _sections(
    checkpoint: CheckpointReport, beside: HtmlInput | None, groups: Sequence[Group], name: str
) -> Iterator[tuple[str, str, Markup]]:
    """Key, title and content of each section."""
    document = beside.facts.document if beside is not None else None
    panels = (panel(group, document, f"{name}-target-{i}") for i, group in enumerate(groups))
    yield "targets", "What each target does", joined(panels, "\n")
    if beside is not None:
        asked = {
            (r.target.runtime, r.target.release)
            for r in checkpoint.results
            if r.target.sources is None
        }
        yield "releases", "Every known release", grid(beside.history, asked, f"{name}-history")
    layers = beside.model.num_hidden_layers if beside is not None and beside.model else None
    yield "states", "Aux hidden states", layer_diagram(checkpoint, layers, f"{name}-layers")
    if beside is None:
        return
    yield "tensors", "Tensors", tensor_tables(beside.facts, groups)
    yield "vocabulary", "Vocabulary", vocabulary(beside.coverage, f"{name}-vocabulary")
    pointers = [
        p.pointer
        for r in checkpoint.results
        for d in r.diagnostics
        for p in d.where
        if p.file == "config.json" and p.pointer
    ]
    shown = folded("Show the file", whole(beside.facts.document, pointers))
    yield "config", "config.json", shown


def _verdicts(groups: Sequence[Group], name: str) -> Markup:
    """The answer in a glance."""
    items = (
        tag(
            "li",
            tag(
                "a",
                mark(group.first.verdict),
                tag("span", tag("b", group.label), " ", group.first.verdict),
                href=f"#{name}-target-{i}",
                class_=f"tile {group.first.verdict}",
            ),
        )
        for i, group in enumerate(groups)
    )
    return tag("ul", *items, class_="tiles")


def _description(checkpoint: CheckpointReport, beside: HtmlInput | None) -> Markup:
    producer = checkpoint.producer
    version = f" {producer.version}" if producer.version else ""
    sure = "" if producer.confidence == "certain" else f" ({producer.confidence})"
    by = "unknown" if producer.name == "unknown" else f"{producer.name}{version}{sure}"
    entries: list[tuple[str, Markup]] = [
        ("Written by", text(by)),
        ("Names of tensors", tag("code", checkpoint.dialect)),
    ]
    if beside is not None:
        named = beside.facts.config.get("architectures")
        architectures = ", ".join(map(str, named)) if isinstance(named, list) else ""
        entries.append(("Architecture", tag("code", architectures or "none")))
    entries.append(("Target model", _model(checkpoint, beside)))
    return tag(
        "dl",
        *(tag("div", tag("dt", term), tag("dd", value)) for term, value in entries),
        class_="facts",
    )


def _model(checkpoint: CheckpointReport, beside: HtmlInput | None) -> Markup:
    model = beside.model if beside is not None else None
    if model is None:
        named = next((r.target.model for r in checkpoint.results if r.target.model), None)
        return text(named or "not known; name it with --target-model")
    sizes = (
        (model.num_hidden_layers, "layers"),
        (model.hidden_size, "wide"),
        (model.vocab_size, "tokens"),
    )
    told = ", ".join(f"{size:,} {what}" for size, what in sizes if size is not None)
    return joined((text(model.name), " ", tag("code", model.architecture),
                   tag("span", f" {told}", class_="quiet")))  # fmt: skip
