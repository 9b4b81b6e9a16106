"""What can be done with a stored model: ``dpglm show``, ``report``, ``export`` and ``evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import strict
from ..data.files import source_of_file
from ..errors import NotReleased
from ..evaluation import LOG_LOSS_CUT, METRICS
from ..report import page, registry_entry, statement
from ..schema.source import EncodedSource
from .common import (
    Account,
    Data,
    Delta,
    Json,
    Level,
    ModelFile,
    Quiet,
    Streamed,
    columns_of,
    model_of,
    one_sentence,
    refuse,
    require_folder,
)

if TYPE_CHECKING:
    from ..estimators.pipeline import PrivatePipeline

# Functions import estimators when they use them, because scikit-learn is slow to import.
_LEVEL = 0.95


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (evaluate, show, report, export):
        app.command()(command)


def evaluate(
    model: ModelFile,
    data: Data,
    epsilon: Annotated[float, typer.Option(help="Privacy to be spent on all scores together.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(help=f"One or several of {', '.join(METRICS)}; by default accuracy or r2."),
    ] = None,
    delta: Delta = None,
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

    with one_sentence(quiet):
        fitted = model_of(model)
        names = metric or ["r2" if fitted.schema.classes is None else "accuracy"]
        source = source_of_file(data, columns_of(fitted.schema_, target=True))
        rows = EncodedSource(source, fitted.schema_, null=False)
        found = evaluated(
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
        scores = "\n".join(map(str, found.estimates))
        print(found.to_json() if json else f"{scores}\n\n{found.privacy}")


def show(model: ModelFile, level: Level = _LEVEL, json: Json = False) -> None:
    """Show the promise and the coefficients of a model, with intervals if the fit released them."""
    with one_sentence():
        fitted = model_of(model)
        if json:
            print(strict.to_json(statement(fitted, level)))
        else:
            print_model(fitted, level)


def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    level: Level = _LEVEL,
    json: Json = False,
) -> None:
    """Write the report of a model: one HTML page that needs nothing but itself."""
    with one_sentence():
        require_folder(out, "report")
        stated = statement(model_of(model), level)
        out.write_text(page(stated), encoding="utf-8")
        print(
            strict.to_json({"report": str(out), "digest": stated["digest"]})
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
    level: Level = _LEVEL,
) -> None:
    """Write a model in other formats; at least one of --onnx, --sklearn, --json, --registry is needed."""
    from ..estimators.exports import write_onnx, write_sklearn

    with one_sentence():
        files = [path for path in (onnx, sklearn, json, registry) if path is not None]
        if not files:
            refuse("say what to write: --onnx, --sklearn, --json or --registry with a file")
        for path in files:
            require_folder(path, "export")
        fitted = model_of(model)
        stated = statement(fitted, level)
        if onnx is not None:
            write_onnx(fitted, onnx, stated)
        if sklearn is not None:
            write_sklearn(fitted, sklearn)
        if json is not None:
            json.write_text(strict.to_json(stated) + "\n", encoding="utf-8")
        if registry is not None:
            registry.write_text(registry_entry(stated), encoding="utf-8")
        print("\n".join(f"wrote {path}" for path in files))


def print_model(model: PrivatePipeline, level: float = _LEVEL) -> None:
    """Print the promise, and the summary or, if no errors were released, the coefficients in raw units."""
    print(model.privacy_)
    try:
        print(f"\n{model.summary(level)}")
    except NotReleased:
        found = model.raw_coefficients()
        several = found if isinstance(found, list) else [found]
        for one, outcome in zip(several, model.estimator_._outcomes(), strict=True):
            print(f"\nCoefficients in units of the columns{f', {outcome}' if outcome else ''}")
            width = max(len(name) for name in (*one.values, "intercept"))
            for name, value in (*one.values.items(), ("intercept", one.intercept)):
                print(f"{name:<{width}}  {value:12.6g}")
