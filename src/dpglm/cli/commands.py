"""Commands that read tables: from a file to a schema, a plan, a model, its predictions and scores."""

from __future__ import annotations

import csv
import json as jsons
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import strict
from ..data.files import TextFile, source_of_file
from ..datasets import write_adult
from ..evaluation import LOG_LOSS_CUT, METRICS
from ..report import Report, statement
from ..schema import Schema
from ..schema.diagnosis import read_cell
from ..schema.source import EncodedSource, Held, gathered
from ..solvers.record_share import is_unknown
from .common import (
    LEVEL,
    Account,
    Data,
    Delta,
    Json,
    Level,
    ModelFile,
    Quiet,
    Relation,
    Streamed,
    WithDefault,
    columns_of,
    naming_file,
    plain_errors,
    read_model,
    read_text,
    refuse,
    require_apart,
    require_folder,
)
from .reports import print_model

if TYPE_CHECKING:
    from ..estimators.pipeline import PrivatePipeline

# Functions import estimators when they use them, because scikit-learn is slow to import.
MODELS = (
    "LogisticRegression", "LinearSVC", "LinearRegression", "Ridge", "Lasso", "ElasticNet", "LinearSVR",
    "PoissonRegressor", "GammaRegressor", "TweedieRegressor", "NegativeBinomialRegressor", "HuberRegressor",
    "QuantileRegressor",
)  # fmt: skip
"""Names of the estimators whose models can be stored."""

schemas = typer.Typer(help="Public facts about raw columns.")

SchemaFile = Annotated[Path, typer.Argument(help="TOML file that declares the columns.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget.")]
Intervals = Annotated[
    bool,
    typer.Option("--intervals", help="Fit by Newton without a penalty: coefficients come with intervals."),
]
Model = Annotated[
    str | None,
    typer.Option(
        help=f"One of {', '.join(MODELS)}; by default LogisticRegression for classes, LinearRegression "
        "for numbers.",
        show_default=False,
    ),
]


@schemas.callback()
def about() -> None:
    """Public facts about raw columns."""


@schemas.command()
def draft(
    data: Data,
    target: Annotated[str | None, typer.Option(help="Column to be predicted.", show_default=False)] = None,
    peek: Annotated[bool, typer.Option("--peek", help="Read ranges and levels: NOT PRIVATE.")] = False,
    json: Json = False,
) -> None:
    """Print a first schema of a file, from names and types of its columns alone."""
    with plain_errors():
        source = source_of_file(data, ())
        if isinstance(source, TextFile) and not source.names:
            refuse("JSON lines declare no columns: write the schema by hand, or convert the file")
        text = Schema.draft(gathered(source) if peek else source, target=target, peek=peek)
        print(jsons.dumps({"private": not peek, "schema": text}) if json else text.rstrip("\n"))


@schemas.command("try")
def try_cells(
    schema: SchemaFile,
    cell: Annotated[
        list[str],
        typer.Option(help="A column and a value, as admitted=15.04.2026; may be repeated."),
    ],
    json: Json = False,
) -> None:
    """Show how a schema reads cells; no records are needed.

    Exits with status 1 if a cell would make its record a null record.
    """
    with plain_errors():
        declared = _read_schema(schema)
        cells = [read_cell(declared, *_cell(declared, result)) for result in cell]
        print(jsons.dumps([result._asdict() for result in cells]) if json else "\n".join(map(str, cells)))
        if any(result.null for result in cells):
            raise typer.Exit(1)


def _cell(schema: Schema, option: str) -> tuple[str, str]:
    """Split column=value; the name of a column may contain "="."""
    for k, letter in enumerate(option):
        if letter == "=" and option[:k] in schema.columns:
            return option[:k], option[k + 1 :]
    refuse(f"--cell needs a column of the schema and a value, such as {next(iter(schema.columns))}=...")


def plan(
    schema: SchemaFile,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Number of records, which is public; for add-remove a guess.",
            show_default=False,
        ),
    ] = None,
    units: Annotated[
        int | None,
        typer.Option(
            help="Number of persons, which is public, if the schema declares a column of type unit.",
            show_default=False,
        ),
    ] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    neighbours: Relation = "replace-one",
    model: Model = None,
    intervals: Intervals = False,
    stream: Streamed = False,
    json: Json = False,
) -> None:
    """Show what a fit will release, what it costs and how often it reads the table; no data is needed."""
    with plain_errors():
        pipeline = _pipeline(schema, model, intervals, epsilon, delta, neighbours)
        persons = pipeline.schema.beside.unit is not None
        count = units if persons else rows
        if count is None or (rows if persons else units) is not None:
            refuse(
                "the schema declares a column of type unit: give the number of persons, --units, which the "
                "promise treats as public: that of a registry, or of the distinct ids of the file"
                if persons
                else "the schema declares no column of type unit: give the number of records, --rows"
            )
        result = pipeline.plan(count, resident=not stream)
        print(result.to_json() if json else result)


def fit(
    data: Data,
    schema: SchemaFile,
    out: Annotated[Path, typer.Option(help="Where to write the model, as JSON.")],
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    neighbours: Relation = "replace-one",
    model: Model = None,
    intervals: Intervals = False,
    stream: Streamed = False,
    ledger: Account = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a report to this HTML file.", show_default=False)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a private model to the records of a file; print its promise and its coefficients in raw units."""
    from ..estimators.stored import model_to_json

    with plain_errors(quiet):
        pipeline = _pipeline(schema, model, intervals, epsilon, delta, neighbours, ledger)
        require_apart(data, schema, out, report)
        require_folder(out, "model")
        if report is not None:
            require_folder(report, "report")
        source = source_of_file(data, columns_of(pipeline.schema, target=True))
        fitted = pipeline.fit(source if stream else Held(source))
        out.write_text(model_to_json(fitted) + "\n", encoding="utf-8")
        if report is not None:
            report.write_text(Report(statement(fitted)).html(), encoding="utf-8")
        counted = fitted.privacy_.record_share
        if is_unknown(counted):  # no warning: the table may be as it should be
            print(f"Note: {counted}", file=sys.stderr)
        if json:
            print(strict.to_json({"file": str(out), **statement(fitted)}))
        else:
            print_model(fitted)
            print(f"\nThe model is in {out}" + ("" if report is None else f", the report in {report}"))


def check(
    data: Data,
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="Privacy budget for all counts together.")],
    delta: WithDefault = None,
    neighbours: Annotated[str, typer.Option(help="replace-one or zero-out")] = "replace-one",
    ledger: Account = None,
    stream: Streamed = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count cells that are missing, unreadable, out of range or unknown, with noise: a paid release."""
    from ..estimators.checking import check as checked

    with plain_errors(quiet):
        declared = _read_schema(schema)
        source = source_of_file(data, columns_of(declared, target=True))
        result = checked(
            declared,
            source if stream else Held(source),
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            ledger=ledger,
        )
        print(result.to_json() if json else result)


def predict(
    model: ModelFile,
    data: Data,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write; by default the terminal.", show_default=False)
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes.")] = False,
    json: Json = False,
) -> None:
    """Predict the target of each record of a file, which need not contain it."""
    with plain_errors():
        require_apart(model, data, out)
        fitted = read_model(model)
        source = source_of_file(data, columns_of(fitted.schema, target=False))
        if proba and not hasattr(fitted, "predict_proba"):
            refuse(f"a {type(fitted.estimator_).__name__} has no probabilities")
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


def _pipeline(
    schema: Path, model: str | None, intervals: bool, epsilon: float, delta: float | None, neighbours: str,
    ledger: str | None = None,
) -> PrivatePipeline:  # fmt: skip
    declared = _read_schema(schema)
    name = model or ("LinearRegression" if declared.classes is None else "LogisticRegression")
    if name not in MODELS:
        refuse(f"--model must be one of {', '.join(MODELS)}")
    from ..estimators.pipeline import make_private_pipeline
    from ..estimators.stored import ESTIMATORS
    from ..solvers import Newton

    estimator = ESTIMATORS[name](epsilon, delta=delta, neighbours=neighbours, ledger=ledger)
    if intervals:
        without = {"C": math.inf, "alpha": 0.0}
        penalty = {key: without[key] for key in without.keys() & estimator.get_params()}
        estimator.set_params(solver=Newton(), **penalty)
    return make_private_pipeline(declared, estimator)


def _read_schema(schema: Path) -> Schema:
    """Read a schema."""
    with naming_file(schema):
        return Schema.from_toml(read_text(schema))


def example(
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")] = Path("adult"),
    json: Json = False,
) -> None:
    """Write an example: the raw census table Adult as compressed CSV files, and its schema."""
    with plain_errors():
        files = write_adult(folder)
        paths = dict(zip(files._fields, map(str, files), strict=True))
        print(jsons.dumps(paths) if json else "\n".join(f"wrote {path}" for path in files))


def evaluate(
    model: ModelFile,
    data: Data,
    epsilon: Annotated[float, typer.Option(help="Privacy budget for all scores together.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(help=f"One or several of {', '.join(METRICS)}; by default accuracy or r2."),
    ] = None,
    delta: WithDefault = None,
    neighbours: Annotated[str, typer.Option(help="replace-one or zero-out")] = "replace-one",
    ledger: Account = None,
    level: Level = LEVEL,
    log_loss_cut: Annotated[float, typer.Option(help="Largest log loss of a record.")] = LOG_LOSS_CUT,
    stream: Streamed = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score a model on the private records of a file, with noise and intervals: a paid release."""
    from ..estimators.evaluating import evaluate as evaluated

    with plain_errors(quiet):
        fitted = read_model(model)
        names = metric or ["r2" if fitted.schema.classes is None else "accuracy"]
        source = source_of_file(data, columns_of(fitted.schema_, target=True))
        rows = EncodedSource(source, fitted.schema_, null=False)
        result = evaluated(
            fitted,
            rows if stream else rows.in_memory(),
            metric=names,
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            ledger=ledger,
            level=level,
            log_loss_cut=log_loss_cut,
        )
        scores = "\n".join(map(str, result.estimates))
        print(result.to_json() if json else f"{scores}\n\n{result.privacy}")
