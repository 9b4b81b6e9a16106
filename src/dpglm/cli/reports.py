"""Commands that report: ``dpglm show``, ``report``, ``export`` and ``audit``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from .. import strict
from ..errors import NotReleased
from ..inference import FOR_PREDICTION, rough
from ..ledger import extract
from ..report import Report, statement
from .common import (
    LEVEL,
    Json,
    Level,
    ModelFile,
    Quiet,
    console,
    naming_file,
    plain_errors,
    read_model,
    read_text,
    refuse,
    require_apart,
    require_folder,
)

if TYPE_CHECKING:
    from ..audit import Report as Findings
    from ..estimators.pipeline import PrivatePipeline

Scores = Annotated[
    Path | None,
    typer.Option(help="Also show the scores in this file, from `dpglm evaluate --json`.", show_default=False),
]
Audited = Annotated[
    Path | None,
    typer.Option(help="Also show the findings in this file, from `dpglm audit --json`.", show_default=False),
]
Journal = Annotated[
    str | None,
    typer.Option(
        help="Also show the journal of this account, as sqlite:///budget.db#name.", show_default=False
    ),
]


def show(model: ModelFile, level: Level = LEVEL, json: Json = False) -> None:
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
    level: Level = LEVEL,
    json: Json = False,
) -> None:
    """Write the report of a model: one self-contained HTML page."""
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
    level: Level = LEVEL,
) -> None:
    """Write a model in other formats.

    At least one of --onnx, --sklearn, --json, --registry and --card is needed.
    """
    from ..estimators.exports import write_onnx, write_sklearn

    with plain_errors():
        files = [path for path in (onnx, sklearn, json, registry, card) if path is not None]
        if not files:
            refuse("name an output: --onnx, --sklearn, --json, --registry or --card with a file")
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
    """Report on a stored model, with scores, an audit and an account if given; refuses edited files."""
    from ..audit import Report as Findings  # with scikit-learn, which is slow to import

    scores = None
    if evaluation is not None:
        with naming_file(evaluation):
            scores = strict.mapping("the evaluation", strict.from_json(read_text(evaluation)))
            if scores.get("format") != "dpglm evaluation":
                refuse("this is not an evaluation: dpglm evaluate --json prints one")
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


def print_model(model: PrivatePipeline, level: float = LEVEL) -> None:
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


def audit(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of solvers or mechanisms, or package.module:name of an estimator of dpglm "
            "(the object itself, or a function that makes it). By default every solver and mechanism.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Budget of solvers and mechanisms.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Budget of solvers and mechanisms.")] = 0.01,
    runs: Annotated[int, typer.Option(help="Runs on each of two neighbouring tables.")] = 10_000,
    confidence: Annotated[float, typer.Option(help="Confidence of each finding.")] = 0.99,
    seed: Annotated[int | None, typer.Option(help="Makes the audit repeatable.", show_default=False)] = None,
    json: Annotated[
        Path | None, typer.Option(help="Also write the report to this file.", show_default=False)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Find a lower bound on the epsilon that is really spent, and compare it with the claim.

    Exits with status 1 if a claim is refuted.
    """
    from .. import audit as auditing  # with scikit-learn, which is slow to import

    estimators = [target for target in targets or () if ":" in target]
    names = [target for target in targets or () if ":" not in target]
    options: dict[str, Any] = {
        "runs": runs, "confidence": confidence, "random_state": seed, "progress": not quiet
    }  # fmt: skip
    findings = auditing.Report((), confidence)
    try:
        if names or not estimators:
            findings += auditing.audit_registry(names or None, epsilon=epsilon, delta=delta, **options)
        for path in estimators:
            findings += auditing.audit(_load_estimator(path), **options)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    _print_findings(findings)
    if json is not None:
        json.write_text(findings.to_json() + "\n", encoding="utf-8")
    raise typer.Exit(1 if findings.violated else 0)


def _load_estimator(path: str) -> Any:
    """Import the estimator at package.module:name, also from the working directory."""
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot find {path!r}: {error}") from None
    finally:
        sys.path.pop(0)
    return target if hasattr(target, "get_params") and not isinstance(target, type) else target()


def _print_findings(findings: Findings) -> None:
    from ..audit.findings import COLUMNS

    table = Table(caption=f"Each finding from runs holds with probability at least {findings.confidence:g}.")
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for finding in findings.findings:
        table.add_row(*finding.cells, style="bold red" if finding.violated else None)
    console(180).print(table)
