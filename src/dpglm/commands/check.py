"""Counts of cells that a schema does not read as it should: ``dpglm check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..data.files import source_of_file
from ..schema import Schema
from ..schema.source import Held
from .common import (
    Account,
    Data,
    Json,
    Quiet,
    Streamed,
    WithDefault,
    columns_of,
    naming,
    one_sentence,
    text_of,
)


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(check)


def check(
    data: Data,
    schema: Annotated[Path, typer.Argument(help="TOML file that declares the columns.")],
    epsilon: Annotated[float, typer.Option(help="Privacy to be spent on all counts together.")],
    delta: WithDefault = None,
    neighbours: Annotated[str, typer.Option(help="replace-one or zero-out")] = "replace-one",
    ledger: Account = None,
    stream: Streamed = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count cells that are missing, unreadable, out of range or unknown, with noise: a paid release."""
    from ..estimators.checking import check as checked

    with one_sentence(quiet):
        with naming(schema):
            declared = Schema.from_toml(text_of(schema))
        source = source_of_file(data, columns_of(declared, target=True))
        found = checked(
            declared,
            source if stream else Held(source),
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            ledger=ledger,
        )
        print(found.to_json() if json else found)
