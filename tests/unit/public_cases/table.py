"""Print docs/public-cases.md's table.

    python -m tests.unit.public_cases.table [--write]

``--write`` puts it into the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.unit.public_cases.aux_states import AUX_STATES
from tests.unit.public_cases.case import Case
from tests.unit.public_cases.elsewhere import WHY_NOT
from tests.unit.public_cases.formats import FORMATS
from tests.unit.public_cases.heads import HEADS_AND_EMBEDDINGS
from tests.unit.public_cases.names import NAMES
from tests.unit.public_cases.quantisation import QUANTISATION
from tests.unit.public_cases.switches import SWITCHES
from tests.unit.public_cases.threads import THREADS
from tests.unit.public_cases.vocabulary import VOCABULARY

CASES: Final = (
    *NAMES,
    *HEADS_AND_EMBEDDINGS,
    *VOCABULARY,
    *AUX_STATES,
    *SWITCHES,
    *QUANTISATION,
    *FORMATS,
)
PAGE: Final = Path(__file__).parents[3] / "docs" / "public-cases.md"
BEGIN: Final = "<!-- output of: python -m tests.unit.public_cases.table -->\n"
END: Final = "\n<!-- end of output -->"


def _told(case: Case) -> str:
    """One draft in a cell."""
    expected = "; ".join(map(str, case.expected))
    states = ", ".join(map(str, case.trained_on or ()))
    trained = f", trained on {states}" if states else ""
    note = f" *{case.note}.*" if case.note else ""
    return f"{case.what}{trained}: {expected}.{note}"


def table() -> Iterator[str]:
    """The table, line by line."""
    yield "| number | report | class | what is asserted, or why nothing is |"
    yield "| --- | --- | --- | --- |"
    for number, thread in sorted(THREADS.items()):
        cells = [_told(case) for case in CASES if number in case.numbers]
        if number in WHY_NOT:
            cells.append(WHY_NOT[number] + ".")
        yield f"| {number} | {thread.where} | {thread.kind} | {'<br>'.join(cells)} |"


def renewed(page: str) -> str:
    """The page with the table between its two markers."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{PAGE.name} has no {BEGIN.strip()} with an {END.strip()}")
    return before + BEGIN + "\n".join(table()) + END + after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(renewed(PAGE.read_text()))
    else:
        print("\n".join(table()))


if __name__ == "__main__":
    main()
