"""Options that commands share, and errors in one sentence."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from .. import progress
from ..errors import DpglmError
from ..schema import Schema

if TYPE_CHECKING:
    from ..estimators.pipeline import PrivatePipeline

WRONG_INPUT, UNEXPECTED = 2, 3
"""Exit codes: what was given is wrong; anything else went wrong."""

Data = Annotated[Path, typer.Argument(help="CSV, TSV, JSON lines (also .gz), Parquet, Arrow or Feather.")]
ModelFile = Annotated[Path, typer.Argument(help="Model written by `dpglm fit`.")]
Delta = Annotated[
    float | None, typer.Option(help="By default 1/n²; required for add-remove.", show_default=False)
]
WithDefault = Annotated[float | None, typer.Option("--delta", help="By default 1/n².", show_default=False)]
Relation = Annotated[str, typer.Option("--neighbours", help="replace-one, zero-out or add-remove.")]
LEVEL = 0.95
Level = Annotated[float, typer.Option(help="Coverage probability of intervals.")]
Streamed = Annotated[
    bool, typer.Option("--stream", help="Read the file again in every pass, for tables larger than memory.")
]
Account = Annotated[
    str | None,
    typer.Option(
        help="Account that pays, as sqlite:///budget.db#name. By default that of DPGLM_LEDGER, or none.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]


@contextmanager
def plain_errors(quiet: bool = True) -> Iterator[None]:
    """Print errors as one sentence, without a traceback: its variables would hold records.

    Unless ``quiet``, show progress on stderr; it depends on public counts only.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        try:
            if quiet:
                yield
            else:
                with progress.wanted():
                    yield
        except typer.Exit:
            raise
        except (ValueError, DpglmError) as error:
            message, code = str(error), WRONG_INPUT
        except BrokenPipeError:  # whoever reads the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            message, code = f"{error.filename}: {error.strerror}", WRONG_INPUT
        except MemoryError:
            message, code = "the table does not fit in memory: use --stream", UNEXPECTED
        except Exception as error:
            message = f"an unexpected {type(error).__name__}, whose text may quote records and is not shown"
            code = UNEXPECTED
        else:
            return
    print(f"Error: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"Warning: {message}", file=sys.stderr)


def console(width: int) -> Console:
    """A console that in a pipe or a file, which have no width, keeps the rows of tables whole."""
    return Console(width=None if sys.stdout.isatty() else width)


def refuse(message: str) -> NoReturn:
    """Raise an error whose text is printed."""
    raise ValueError(message)


def read_text(path: Path) -> str:
    """Read a small text file, such as a schema or a model."""
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors mark the order of bytes
    except UnicodeDecodeError:
        refuse("the file is not UTF-8 text; if it is UTF-16, as some shells write, save it as UTF-8")


def read_model(path: Path) -> PrivatePipeline:
    """Read a model; refuses an edited file."""
    from ..estimators.stored import model_from_json  # with scikit-learn, which is slow to import

    with naming_file(path):
        return model_from_json(read_text(path))


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Prefix errors about the content of a file with its name."""
    try:
        yield
    except ValueError as error:
        refuse(f"{path}: {error}")


def columns_of(schema: Schema, target: bool) -> list[str]:
    """Columns to read from JSON lines."""
    left_out = [] if target else schema.unread
    return [name for name in schema.used if name not in left_out]


def require_apart(*paths: Path | None) -> None:
    """Refuse paths of which two name the same file: a command must not overwrite its own files."""
    places = [path.resolve() for path in paths if path is not None]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        refuse(f"{twice.name!r} is named twice: a command does not write over its own files")


def require_folder(path: Path, what: str) -> None:
    """Refuse a path that cannot be written, before any budget is spent."""
    if not path.parent.is_dir():
        refuse(f"there is no folder {str(path.parent)!r} for the {what}")
    if path.is_dir():
        refuse(f"{str(path)!r} is a folder: name a file for the {what}")
    is_new = not path.exists()
    path.open("ab").close()  # says what is wrong with it
    if is_new:
        path.unlink()
