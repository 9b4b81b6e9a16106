"""From a file to a model and its predictions: ``dpglm schema draft``, ``plan``, ``fit`` and ``predict``."""

from __future__ import annotations

import csv
import json as jsons
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..data.files import source_of_file
from ..data.lines import Lines
from ..errors import DpglmError, NotReleased
from ..schema import RawCoefficients, Schema
from ..schema.source import Held, gathered

if TYPE_CHECKING:
    from ..estimators.pipeline import PrivatePipeline

# Functions import estimators when they use them, because scikit-learn is slow to import.
MODELS = (
    "LogisticRegression", "LinearSVC", "LinearRegression", "Ridge", "Lasso", "ElasticNet", "LinearSVR",
)  # fmt: skip
"""Names of the estimators whose models can be stored."""

WRONG_INPUT, UNEXPECTED = 2, 3
"""Exit codes: what was given is wrong; anything else went wrong."""

schemas = typer.Typer(help="Public facts about raw columns.")

Data = Annotated[Path, typer.Argument(help="CSV, TSV, JSON lines (also .gz), Parquet, Arrow or Feather.")]
SchemaFile = Annotated[Path, typer.Argument(help="TOML file that declares the columns.")]
Epsilon = Annotated[float, typer.Option(help="Privacy to be spent.")]
Delta = Annotated[float | None, typer.Option(help="By default 1/n².", show_default=False)]
Model = Annotated[
    str | None,
    typer.Option(
        help=f"One of {', '.join(MODELS)}; by default LogisticRegression for classes, LinearRegression "
        "for numbers.",
        show_default=False,
    ),
]
Streamed = Annotated[
    bool, typer.Option("--stream", help="Read the file anew in every pass, for tables beyond memory.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.add_typer(schemas, name="schema")
    for command in (plan, fit, predict):
        app.command()(command)


@schemas.callback()
def about() -> None:
    """Public facts about raw columns."""


@schemas.command()
def draft(
    data: Data,
    target: Annotated[str | None, typer.Option(help="Column to be predicted.", show_default=False)] = None,
    peek: Annotated[bool, typer.Option("--peek", help="Read ranges and levels: NOT PRIVATE.")] = False,
) -> None:
    """Print a first schema of a file, from names and types of its columns alone."""
    with one_sentence():
        source = source_of_file(data, ())
        if isinstance(source, Lines) and not source.names:
            _refuse("JSON lines declare no columns: write the schema by hand, or convert the file")
        print(Schema.draft(gathered(source) if peek else source, target=target, peek=peek), end="")


def plan(
    schema: SchemaFile,
    rows: Annotated[int, typer.Option(help="Number of records, which is public.")],
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    model: Model = None,
    stream: Streamed = False,
    json: Json = False,
) -> None:
    """Show what a fit will release, what it costs and how often it reads the table; no data is needed."""
    with one_sentence():
        found = _pipeline(schema, model, epsilon, delta).plan(rows, resident=not stream)
        print(found.to_json() if json else found)


def fit(
    data: Data,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="Where to write the model, as JSON.")],
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    model: Model = None,
    stream: Streamed = False,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Account that pays for the fit, as sqlite:///budget.db#name. By default that of "
            "DPGLM_LEDGER, or none.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Fit a private model to the records of a file; print its promise and its coefficients in raw units."""
    from ..estimators.stored import stored

    with one_sentence():
        pipeline = _pipeline(schema, model, epsilon, delta, ledger)
        if not out.parent.is_dir():
            _refuse(f"there is no folder {str(out.parent)!r} for the model")
        source = source_of_file(data, _columns(pipeline.schema, target=True))
        fitted = pipeline.fit(source if stream else Held(source))
        out.write_text(stored(fitted) + "\n", encoding="utf-8")
        found = fitted.raw_coefficients()
        if json:
            several = found if isinstance(found, list) else [found]
            raw = [{"coefficients": one.values, "intercept": one.intercept} for one in several]
            stated = {"model": str(out), "privacy": fitted.privacy_.to_dict(), "fits": raw}
            print(jsons.dumps(stated, indent=2))
        else:
            print(fitted.privacy_)
            try:
                print(f"\n{fitted.summary()}")
            except NotReleased:
                _show(fitted, found)
            print(f"\nThe model is in {out}")


def predict(
    model: Annotated[Path, typer.Argument(help="Model that `dpglm fit` wrote.")],
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write; by default they are printed.", show_default=False)
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes.")] = False,
    json: Json = False,
) -> None:
    """Predict the target of each record of a file, which need not hold it."""
    from ..estimators.stored import restored

    with one_sentence():
        fitted = restored(_text(model))
        source = source_of_file(data, _columns(fitted.schema, target=False))
        if proba and not hasattr(fitted, "predict_proba"):
            _refuse(f"a {type(fitted.estimator_).__name__} has no probabilities")
        values: Any = fitted.predict_proba(source) if proba else fitted.predict(source)
        names = list(map(str, fitted.classes_)) if proba else ["prediction"]
        rows = values.tolist() if proba else [[value] for value in values.tolist()]
        if json:
            text = jsons.dumps([dict(zip(names, row, strict=True)) for row in rows])
            print(text) if out is None else out.write_text(text + "\n", encoding="utf-8")
        elif out is None:
            csv.writer(sys.stdout, lineterminator="\n").writerows([names, *rows])
        else:
            with out.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([names, *rows])


@contextmanager
def one_sentence() -> Iterator[None]:
    """Say in one sentence what is wrong, without a traceback: its variables would hold records."""
    with warnings.catch_warnings():
        warnings.showwarning = _said
        try:
            yield
        except typer.Exit:
            raise
        except (ValueError, DpglmError) as error:
            message, code = str(error), WRONG_INPUT
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


def _said(message: Warning | str, *_: object, **__: object) -> None:
    print(f"Warning: {message}", file=sys.stderr)


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        _refuse(f"the file {str(path)!r} is no text")


def _pipeline(
    schema: Path, model: str | None, epsilon: float, delta: float | None, ledger: str | None = None
) -> PrivatePipeline:
    declared = Schema.from_toml(_text(schema))
    name = model or ("LinearRegression" if declared.classes is None else "LogisticRegression")
    if name not in MODELS:
        _refuse(f"--model must be one of {', '.join(MODELS)}")
    from ..estimators.pipeline import make_private_pipeline
    from ..estimators.stored import ESTIMATORS

    return make_private_pipeline(declared, ESTIMATORS[name](epsilon, delta=delta, ledger=ledger))


def _columns(schema: Schema, target: bool) -> list[str]:
    """Columns of JSON lines that are read."""
    left_out = [] if target else [schema.target, schema.beside.weight]
    return [name for name in schema.used if name not in left_out]


def _show(model: PrivatePipeline, found: RawCoefficients | list[RawCoefficients]) -> None:
    several = found if isinstance(found, list) else [found]
    for one, outcome in zip(several, model.estimator_._outcomes(), strict=True):
        print(f"\nCoefficients in units of the columns{f', {outcome}' if outcome else ''}")
        width = max(len(name) for name in (*one.values, "intercept"))
        for name, value in (*one.values.items(), ("intercept", one.intercept)):
            print(f"{name:<{width}}  {value:12.6g}")
