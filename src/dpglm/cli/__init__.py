"""The command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.table import Table
except ModuleNotFoundError:
    raise SystemExit("The command line needs typer and rich: pip install 'dpglm[cli]'") from None

from .. import __version__
from . import commands, ledger

if TYPE_CHECKING:
    from ..audit import Report

# A traceback must not show variables: they hold records.
app = typer.Typer(
    pretty_exceptions_show_locals=False, help="Differentially private generalized linear models."
)
app.add_typer(ledger.app, name="ledger")
app.add_typer(commands.schemas, name="schema")
for command in (
    commands.example, commands.plan, commands.fit, commands.predict, commands.check,
    commands.evaluate, commands.show, commands.report, commands.export,
):  # fmt: skip
    app.command()(command)

_WIDE = 180


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dpglm {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Differentially private generalized linear models."""


@app.command("audit")
def audit_command(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of solvers or mechanisms, or package.module:name of an estimator of dpglm "
            "(the object itself, or a function that makes it). Without any: every solver and mechanism.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Budget of solvers and mechanisms.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Budget of solvers and mechanisms.")] = 0.01,
    runs: Annotated[int, typer.Option(help="Runs on each of two neighbouring tables.")] = 10_000,
    confidence: Annotated[float, typer.Option(help="Of each finding.")] = 0.99,
    seed: Annotated[int | None, typer.Option(help="Makes the audit repeatable.", show_default=False)] = None,
    json: Annotated[
        Path | None, typer.Option(help="Also write the report to this file.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
) -> None:
    """Lower-bound the epsilon that is really spent, and compare it with the one that is claimed.

    Exits with status 1 if a claim is refuted.
    """
    from ..audit import Report, audit, audit_registry  # with scikit-learn, which is slow to import

    estimators = [target for target in targets or () if ":" in target]
    names = [target for target in targets or () if ":" not in target]
    options: dict[str, Any] = {
        "runs": runs, "confidence": confidence, "random_state": seed, "progress": not quiet
    }  # fmt: skip
    report = Report((), confidence)
    try:
        if names or not estimators:
            report += audit_registry(names or None, epsilon=epsilon, delta=delta, **options)
        for path in estimators:
            report += audit(_loaded(path), **options)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    _show(report)
    if json is not None:
        json.write_text(report.to_json() + "\n", encoding="utf-8")
    raise typer.Exit(1 if report.violated else 0)


def _loaded(path: str) -> Any:
    """The estimator at package.module:name; modules of the working directory count."""
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot find {path!r}: {error}") from None
    finally:
        sys.path.pop(0)
    return target if hasattr(target, "get_params") and not isinstance(target, type) else target()


def _show(report: Report) -> None:
    from ..audit.findings import COLUMNS

    table = Table(caption=f"Each finding from runs holds with probability {report.confidence:g} or more.")
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for finding in report.findings:
        table.add_row(*finding.cells, style="bold red" if finding.violated else None)
    # A pipe or a file has no width: rows stay whole there.
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
