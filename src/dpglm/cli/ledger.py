"""The command line: ``dpglm ledger create | show | history | verify | plan | enter | export``."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import typer
from rich.table import Table

from ..accounting import gaussian_mu
from ..errors import DpglmError
from ..ledger.account import Ledger
from ..ledger.address import Address
from ..ledger.extract import (
    account_at,
    how_it_adds,
    like_the_last,
    running,
    save_png,
    shares,
    summary,
    text_chart,
    what,
)
from ..ledger.journal import State, verify_export
from ..ledger.price import price_of_mu
from ..privacy import Budget
from .common import Json, console

app = typer.Typer(add_completion=False, help="One budget over all fits.", no_args_is_help=True)

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

AddressArgument = Annotated[
    str, typer.Argument(help="sqlite:///file.db#account or postgresql://user@host/database#account")
]


def _plain_errors(command: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Errors end with one sentence and status 1."""

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return command(*args, **kwargs)
        except (DpglmError, ValueError, OSError) as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(1) from None

    return run


@app.command()
@_plain_errors
def create(
    address: AddressArgument,
    epsilon: Annotated[float, typer.Option(help="Budget for everything together.")],
    delta: Annotated[float, typer.Option(help="Budget for everything together.")],
    neighbours: Annotated[str, typer.Option(help="replace-one, zero-out or add-remove")] = "replace-one",
    unit: Annotated[str, typer.Option(help="Protected unit: record or person.")] = "record",
) -> None:
    """Open an account, and make the database if there is none."""
    parsed = Address.parse(address)
    if parsed.account is None or parsed.part:
        raise ValueError("add #account to the address of the ledger")
    account = Ledger(parsed.url).create(
        parsed.account, epsilon=epsilon, delta=delta, neighbours=neighbours, unit=unit
    )
    typer.echo(f"{account.name}: {account.remaining()}\nuse ledger={str(account.address)!r} in estimators")


@app.command()
@_plain_errors
def show(
    address: AddressArgument,
    png: Annotated[Path | None, typer.Option(help="Also draw what was spent over time.")] = None,
    json: Json = False,
) -> None:
    """Show what accounts may spend, have spent and have left: one #account, or all."""
    parsed = Address.parse(address)
    names = [parsed.account] if parsed.account else Ledger(parsed.url).accounts()
    if parsed.account is None:
        if png is not None:
            raise ValueError("add #account to the address of the ledger: a picture is of one account")
        states = [account_at(f"{parsed.url}#{name}").verify() for name in names]
        _print(json, [summary(state, None) for state in states], _accounts_table(states))
        return
    account = account_at(address)
    state, entries = account.verify(), account.history()
    points = shares(state.terms, entries)
    if png is not None:
        save_png(state.terms, points, png)
    _print(json, summary(state, account.part), _accounts_table([state]))
    if not json:
        shown = console(140)
        for line in text_chart(points):
            shown.print(line, markup=False, highlight=False)
        shown.print(how_it_adds(state, account.part), highlight=False)
        shown.print(f"left: {state.remaining(account.part)}", highlight=False)
        if more := like_the_last(state, entries, account.part):
            shown.print(f"      {more}", highlight=False)
        shown.print(f"head: {state.last.hash}", highlight=False)


@app.command()
@_plain_errors
def history(address: AddressArgument, json: Json = False) -> None:
    """List the entries of an account."""
    account = account_at(address)
    state, entries = account.verify(), account.history()
    table = Table(title=f"{account.name}, {len(entries)} entries")
    for column in ("entry", "date", "kind", "part", "mu", "slack", "spent", "what"):
        table.add_column(column, overflow="fold")
    for entry, spent in zip(entries, running(state, entries), strict=True):
        cost = (f"{entry.charge.mu:.4g}", f"{float(entry.charge.slack):.2g}")
        cells = cost if entry.kind in ("reservation", "release") else ("", "")
        table.add_row(
            str(entry.number), entry.time[:10], entry.kind, entry.part, *cells, f"{spent:.1%}", what(entry)
        )
    _print(json, [json_module.loads(entry.body) | {"hash": entry.hash} for entry in entries], table)
    if not json:
        console(140).print(how_it_adds(state, account.part), highlight=False)


@app.command()
@_plain_errors
def verify(
    address: Annotated[str, typer.Argument(help="The address of an account, or a file made by export.")],
    head: Annotated[str | None, typer.Option(help="Hash of an entry that was noted elsewhere.")] = None,
) -> None:
    """Check a whole journal: hashes, order, sums. Print its head, to be noted elsewhere. Exit 1 if broken."""
    if Path(address).is_file():
        state = verify_export(Path(address).read_text(encoding="utf-8"), head)
    else:
        state = account_at(address).verify(head)
    typer.echo(f"{state.terms.name}: {state.last.number + 1} entries, whole\nhead {state.last.hash}")


@app.command()
@_plain_errors
def plan(
    address: AddressArgument,
    epsilon: Annotated[float, typer.Option(help="Of one fit.")],
    delta: Annotated[float | None, typer.Option(help="Of one fit; by default the account's.")] = None,
    records: Annotated[
        int | None, typer.Option(help="Use the default delta of a fit to this many records, 1/n².", min=1)
    ] = None,
    fits: Annotated[int, typer.Option(help="Number of fits.", min=1)] = 1,
    json: Json = False,
) -> None:
    """Tell whether fits with Gaussian releases can be paid for; charges nothing. Status 1 if not."""
    account = account_at(address)
    state = account.state()
    if delta is not None and records is not None:
        raise ValueError("--delta and --records are two ways to state the delta of a fit: give one of them")
    if records is not None:
        budget = Budget.for_records(epsilon, None, records)
    else:
        budget = Budget(epsilon, state.terms.delta if delta is None else delta)
    price = price_of_mu(gaussian_mu(budget.epsilon, budget.delta))
    remaining = state.remaining(account.part)
    most_fits = int(remaining.price.mu_squared / price.mu_squared)
    largest = remaining.epsilon(fits, budget.delta)
    values = {
        "fits": fits, "epsilon": epsilon, "mu": price.mu, "affordable": fits <= most_fits,
        "most_fits": most_fits, "largest_epsilon": largest,
    }  # fmt: skip
    share = float(fits * price.mu_squared / state.terms.budget.mu_squared)
    words = f"{fits} x epsilon {epsilon:g} (delta {budget.delta:.3g}) costs {share:.1%}"
    verdict = "can be paid for" if fits <= most_fits else "cannot be paid for"
    _print(
        json,
        values,
        f"{words} of the budget and {verdict}: at most {most_fits} such fits, or {fits} at {largest:g}\n"
        f"{how_it_adds(state, account.part)}",
    )
    if fits > most_fits:
        raise typer.Exit(1)


@app.command()
@_plain_errors
def enter(
    address: AddressArgument,
    text: Annotated[str, typer.Argument(help="What was released.")],
    mu: Annotated[float | None, typer.Option(help="Of a Gaussian release.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Of any release.")] = None,
    delta: Annotated[float | None, typer.Option(help="Of any release.")] = None,
) -> None:
    """Charge a release that was made elsewhere."""
    entry = account_at(address).enter(text, mu=mu, epsilon=epsilon, delta=delta)
    typer.echo(f"entry {entry.number}: mu {entry.charge.mu:.4g}\nhead {entry.hash}")


@app.command()
@_plain_errors
def export(
    address: AddressArgument,
    output: Annotated[Path | None, typer.Option(help="A file; by default the terminal.")] = None,
) -> None:
    """Print the whole journal as JSON, which `dpglm ledger verify FILE` checks without the database."""
    content = account_at(address).export() + "\n"
    if output is None:
        typer.echo(content, nl=False)
    else:
        output.write_text(content, encoding="utf-8")


def _accounts_table(states: list[State]) -> Table:
    table = Table()
    for column in ("account", "promise", "neighbours", "unit", "spent", "entries", "left"):
        table.add_column(column, overflow="fold")
    for state in states:
        terms = state.terms
        share = float(state.spent().mu_squared / terms.budget.mu_squared)
        table.add_row(
            terms.name, f"epsilon {terms.epsilon:g}, delta {terms.delta:g}", terms.neighbours, terms.unit,
            f"{share:.1%}", str(state.last.number + 1), str(state.remaining()),
        )  # fmt: skip
        for part in state.parts:
            spent = float(state.spent(part).mu_squared / terms.budget.mu_squared)
            remaining = state.remaining(part)
            table.add_row(f"{terms.name}/{part}", "", "", "", f"{spent:.1%}", "", str(remaining))
    return table


def _print(as_json: bool, values: object, shown: object) -> None:
    if as_json:
        typer.echo(json_module.dumps(values, indent=2, allow_nan=False))
    else:
        console(140).print(shown, highlight=False)
