"""What can be done with a stored model: ``dpglm show``, ``report``, ``export`` and ``evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import strict
from ..data.files import source_of_file
from ..errors import NotReleased
from ..evaluation import LOG_LOSS_CUT, METRICS
from ..inference import FOR_PREDICTION, rough
from ..ledger import extract
from ..report import Report, statement
from ..schema.source import EncodedSource
from .common import (
    Account,
    Data,
    Json,
    Level,
    ModelFile,
    Quiet,
    Streamed,
    WithDefault,
    columns_of,
    model_of,
    naming,
    one_sentence,
    refuse,
    require_apart,
    require_folder,
    text_of,
)

if TYPE_CHECKING:
    from ..estimators.pipeline import PrivatePipeline

# Functions import estimators when they use them, because scikit-learn is slow to import.
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
    evaluation: Scores = None,
    audit: Audited = None,
    ledger: Journal = None,
    level: Level = _LEVEL,
    json: Json = False,
) -> None:
    """Write the report of a model: one HTML page that needs nothing but itself."""
    with one_sentence():
        require_apart(model, evaluation, audit, out)
        require_folder(out, "report")
        found = _reported(model, level, evaluation, audit, ledger)
        out.write_text(found.html(), encoding="utf-8")
        print(
            strict.to_json({"report": str(out), "digest": found.facts["digest"]})
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

    with one_sentence():
        files = [path for path in (onnx, sklearn, json, registry, card) if path is not None]
        if not files:
            refuse("say what to write: --onnx, --sklearn, --json, --registry or --card with a file")
        require_apart(model, evaluation, audit, *files)
        for path in files:
            require_folder(path, "export")
        fitted = model_of(model)
        found = _reported(model, level, evaluation, audit, ledger)
        if onnx is not None:
            write_onnx(fitted, onnx, found.facts)
        if sklearn is not None:
            write_sklearn(fitted, sklearn)
        if json is not None:
            json.write_text(found.json() + "\n", encoding="utf-8")
        if registry is not None:
            registry.write_text(found.registry_entry(), encoding="utf-8")
        if card is not None:
            card.write_text(found.model_card(), encoding="utf-8")
        print("\n".join(f"wrote {path}" for path in files))


def _reported(
    model: Path, level: float, evaluation: Path | None, audit: Path | None, ledger: str | None
) -> Report:
    """The report of a stored model with what is given beside it; files that were edited are refused."""
    from ..audit import Report as Findings  # with scikit-learn, which is slow to import

    scores = None
    if evaluation is not None:
        with naming(evaluation):
            scores = strict.mapping("the evaluation", strict.from_json(text_of(evaluation)))
            if scores.get("format") != "dpglm evaluation":
                refuse("this is no evaluation: dpglm evaluate --json prints one")
            strict.require_sealed("the evaluation", scores)
    findings = None
    if audit is not None:
        with naming(audit):
            findings = Findings.from_json(text_of(audit))
    return Report(
        statement(
            model_of(model),
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
        found = model.raw_coefficients()
        several = found if isinstance(found, list) else [found]
        for one, outcome in zip(several, model.estimator_._outcomes(), strict=True):
            print(f"\nCoefficients in units of the columns{f', {outcome}' if outcome else ''}")
            width = max(len(name) for name in (*one.values, "intercept"))
            for name, value in (*one.values.items(), ("intercept", one.intercept)):
                print(f"{name:<{width}}  {shown(value):>12}")
