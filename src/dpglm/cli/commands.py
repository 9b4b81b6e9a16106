"""Commands for tables and models: from a file to a schema, a plan, a model, its predictions and reports."""

from __future__ import annotations

import csv
import json as jsons
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import strict
from ..data.files import source_of_file
from ..data.lines import Lines
from ..datasets import write_adult
from ..errors import NotReleased
from ..evaluation import LOG_LOSS_CUT, METRICS
from ..inference import FOR_PREDICTION, rough
from ..ledger import extract
from ..report import Report, statement
from ..schema import Schema
from ..schema.diagnosis import read_cell
from ..schema.source import EncodedSource, Held, gathered
from ..solvers.record_share import is_unknown
from .common import (
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
Epsilon = Annotated[float, typer.Option(help="Privacy to be spent.")]
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
_LEVEL = 0.95

Scores = Annotated[
    Path | None,
    typer.Option(
        help="Also show the scores that `dpglm evaluate --json` printed to this file.", show_default=False
    ),
]
Audited = Annotated[
    Path | None,
    typer.Option(help="Also show what `dpglm audit --json` wrote to this file.", show_default=False),
]
Journal = Annotated[
    str | None,
    typer.Option(
        help="Also show the journal of this account, as sqlite:///budget.db#name.", show_default=False
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
        if isinstance(source, Lines) and not source.names:
            refuse("JSON lines declare no columns: write the schema by hand, or convert the file")
        text = Schema.draft(gathered(source) if peek else source, target=target, peek=peek)
        print(jsons.dumps({"private": not peek, "schema": text}) if json else text.rstrip("\n"))


@schemas.command("try")
def try_cells(
    schema: SchemaFile,
    cell: Annotated[
        list[str],
        typer.Option(help="A column and what could stand in it, as admitted=15.04.2026; several times."),
    ],
    json: Json = False,
) -> None:
    """Say what a schema reads cells as; no records are needed.

    Exits with status 1 if a cell would make its record a null record.
    """
    with plain_errors():
        declared = _read_schema(schema)
        trials = [read_cell(declared, *_cell(declared, result)) for result in cell]
        print(jsons.dumps([result._asdict() for result in trials]) if json else "\n".join(map(str, trials)))
        if any(result.null for result in trials):
            raise typer.Exit(1)


def _cell(schema: Schema, option: str) -> tuple[str, str]:
    """The column and the cell of an option; a name may have a sign of equality in it."""
    for k, letter in enumerate(option):
        if letter == "=" and option[:k] in schema.columns:
            return option[:k], option[k + 1 :]
    refuse(f"--cell needs a column of the schema and a cell, such as {next(iter(schema.columns))}=...")


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
    from ..estimators.stored import stored

    with plain_errors(quiet):
        pipeline = _pipeline(schema, model, intervals, epsilon, delta, neighbours, ledger)
        require_apart(data, schema, out, report)
        require_folder(out, "model")
        if report is not None:
            require_folder(report, "report")
        source = source_of_file(data, columns_of(pipeline.schema, target=True))
        fitted = pipeline.fit(source if stream else Held(source))
        out.write_text(stored(fitted) + "\n", encoding="utf-8")
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
        Path | None, typer.Option(help="CSV file to write; by default they are printed.", show_default=False)
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities of the classes.")] = False,
    json: Json = False,
) -> None:
    """Predict the target of each record of a file, which need not hold it."""
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
    """The schema of a file."""
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
    epsilon: Annotated[float, typer.Option(help="Privacy to be spent on all scores together.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(help=f"One or several of {', '.join(METRICS)}; by default accuracy or r2."),
    ] = None,
    delta: WithDefault = None,
    neighbours: Annotated[str, typer.Option(help="replace-one or zero-out")] = "replace-one",
    ledger: Account = None,
    level: Level = _LEVEL,
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


def show(model: ModelFile, level: Level = _LEVEL, json: Json = False) -> None:
    """Show the promise and the coefficients of a model, with intervals if the fit released them."""
    with plain_errors():
        fitted = read_model(model)
        if json:
            print(strict.to_json(statement(fitted, level)))
        else:
            print_model(fitted, level)


def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    evaluation: Scores = None,
    audit: Audited = None,
    ledger: Journal = None,
    level: Level = _LEVEL,
    json: Json = False,
) -> None:
    """Write the report of a model: one HTML page that needs nothing but itself."""
    with plain_errors():
        require_apart(model, evaluation, audit, out)
        require_folder(out, "report")
        document = _report(model, level, evaluation, audit, ledger)
        out.write_text(document.html(), encoding="utf-8")
        print(
            strict.to_json({"report": str(out), "digest": document.facts["digest"]})
            if json
            else f"The report is in {out}"
        )


def export(
    model: ModelFile,
    onnx: Annotated[
        Path | None, typer.Option(help="ONNX file: encoded rows in, predictions out.", show_default=False)
    ] = None,
    sklearn: Annotated[
        Path | None, typer.Option(help="Plain scikit-learn model, stored with skops.", show_default=False)
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Statement: promise, releases, coefficients.", show_default=False)
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option(help="YAML entry for the OpenDP deployments registry.", show_default=False),
    ] = None,
    card: Annotated[
        Path | None, typer.Option(help="Model card: Markdown with a YAML header.", show_default=False)
    ] = None,
    evaluation: Scores = None,
    audit: Audited = None,
    ledger: Journal = None,
    level: Level = _LEVEL,
) -> None:
    """Write a model in other formats.

    At least one of --onnx, --sklearn, --json, --registry and --card is needed.
    """
    from ..estimators.exports import write_onnx, write_sklearn

    with plain_errors():
        files = [path for path in (onnx, sklearn, json, registry, card) if path is not None]
        if not files:
            refuse("say what to write: --onnx, --sklearn, --json, --registry or --card with a file")
        require_apart(model, evaluation, audit, *files)
        for path in files:
            require_folder(path, "export")
        fitted = read_model(model)
        document = _report(model, level, evaluation, audit, ledger)
        if onnx is not None:
            write_onnx(fitted, onnx, document.facts)
        if sklearn is not None:
            write_sklearn(fitted, sklearn)
        if json is not None:
            json.write_text(document.json() + "\n", encoding="utf-8")
        if registry is not None:
            registry.write_text(document.registry_entry(), encoding="utf-8")
        if card is not None:
            card.write_text(document.model_card(), encoding="utf-8")
        print("\n".join(f"wrote {path}" for path in files))


def _report(
    model: Path, level: float, evaluation: Path | None, audit: Path | None, ledger: str | None
) -> Report:
    """The report of a stored model with what is given beside it; files that were edited are refused."""
    from ..audit import Report as Findings  # with scikit-learn, which is slow to import

    scores = None
    if evaluation is not None:
        with naming_file(evaluation):
            scores = strict.mapping("the evaluation", strict.from_json(read_text(evaluation)))
            if scores.get("format") != "dpglm evaluation":
                refuse("this is no evaluation: dpglm evaluate --json prints one")
            strict.require_sealed("the evaluation", scores)
    findings = None
    if audit is not None:
        with naming_file(audit):
            findings = Findings.from_json(read_text(audit))
    return Report(
        statement(
            read_model(model),
            level,
            evaluation=scores,
            audit=findings,
            ledger=None if ledger is None else extract(ledger),
        )
    )


def print_model(model: PrivatePipeline, level: float = _LEVEL) -> None:
    """Print the promise, and the summary or, if no errors were released, the coefficients in raw units."""
    print(model.privacy_)
    try:
        print(f"\n{model.summary(level)}")
    except NotReleased:
        shown = rough if model.privacy_.private else "{:.6g}".format  # noise leaves no more digits
        print(f"\n{FOR_PREDICTION[0].upper()}{FOR_PREDICTION[1:]}.")
        raw = model.raw_coefficients()
        several = raw if isinstance(raw, list) else [raw]
        for table, outcome in zip(several, model.estimator_._outcomes(), strict=True):
            print(f"\nCoefficients in units of the columns{f', {outcome}' if outcome else ''}")
            width = max(len(name) for name in (*table.values, "intercept"))
            for name, value in (*table.values.items(), ("intercept", table.intercept)):
                print(f"{name:<{width}}  {shown(value):>12}")
