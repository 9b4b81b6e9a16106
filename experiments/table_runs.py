"""The command line of experiments that go through the tables for prediction."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from inference_tables import DATA
from prediction_tables import Table

Load = Callable[[Path], Table]


def parser_of(words: str | None, tables: Mapping[str, Load]) -> argparse.ArgumentParser:
    """A parser of the options that all of them have."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tables", help="some of " + ", ".join(tables) + ", separated by semicolons")
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="seconds: two small drawn tables")
    return parser


def loaded(tables: Mapping[str, Load], given: argparse.Namespace) -> Iterator[tuple[str, Table]]:
    """The tables that are asked for and there, one by one."""
    for name in given.tables.split(";") if given.tables else tables:
        try:
            table = tables[name](given.data)
        except FileNotFoundError:
            print(f"No {name}: its file is not in {given.data}")
            continue
        yield name, table
