"""The command line."""

from __future__ import annotations

from typing import Annotated

try:
    import rich  # noqa: F401
    import typer
except ModuleNotFoundError:
    raise SystemExit("The command line needs typer and rich: pip install 'dpglm[cli]'") from None

from .. import __version__
from . import commands, ledger, reports

# A traceback must not show variables: they hold records.
app = typer.Typer(
    pretty_exceptions_show_locals=False, help="Differentially private generalized linear models."
)
app.add_typer(ledger.app, name="ledger")
app.add_typer(commands.schemas, name="schema")
for command in (
    commands.example, commands.plan, commands.fit, commands.predict, commands.check,
    commands.evaluate, reports.show, reports.report, reports.export, reports.audit,
):  # fmt: skip
    app.command()(command)


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
