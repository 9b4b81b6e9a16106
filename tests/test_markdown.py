"""Markdown names files that exist, and is wrapped at 110 columns: a change of a sentence is one of few lines.

Longer lines are allowed where a break would change the meaning or the look: rows of tables, fenced blocks,
displayed formulas, and lines that hold nothing but one link.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 110
FOLDERS = ("docs", "src", "tests", "benchmarks", "experiments", "examples")
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")))
    if "_build" not in page.parts
)
FENCE = re.compile(r"\s*(```|~~~|:::)")
ONE_LINK = re.compile(r"\s*([-*:]|\d+\.)?\s*(\[[^]]*\]\([^)\s]*\)|<?https?://\S*)\S*$")


def too_long(text: str) -> Iterator[int]:
    """Yield the numbers of the lines that must be wrapped."""
    fenced = formula = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not formula and FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            displayed = formula or line.lstrip().startswith("$$")
            formula ^= line.count("$$") % 2 == 1
            free = displayed or line.startswith("|") or ONE_LINK.match(line)
            if len(line) > COLUMNS and not free:
                yield number


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_lines_of_a_page_are_wrapped(page):
    assert list(too_long(page.read_text(encoding="utf-8"))) == []


FILE = re.compile(r"`((?:src/dpglm|tests|docs|benchmarks|experiments|examples)/[\w/]+\.(?:py|md))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_page_names_exist(page):
    named = FILE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


LONG = "word " * 30
URL = "https://example.org/" + 100 * "a"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (LONG, [1]),
        (f"short\n\n- {LONG}", [3]),
        (f"```text\n{LONG}\n```\n{LONG}", [4]),
        (f"$$\n{LONG}\n$$\n{LONG}", [4]),
        (f"$${LONG}$$\n{LONG}", [2]),
        (f"{LONG} $$x$$", [1]),
        (f"| {LONG} |", []),
        (f"- [name]({URL}),\n<{URL}>", []),
        (f"see [name]({URL})", [1]),
        ("é" * COLUMNS, []),
    ],
)
def test_the_checker_knows_which_lines_may_be_long(text, lines):
    assert list(too_long(text)) == lines
