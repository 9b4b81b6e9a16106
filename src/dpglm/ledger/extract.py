"""What a statement or a command shows of an account: its terms, what remains, its journal, and a chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from ..privacy import Neighbours
from .account import Account
from .address import Address
from .journal import CHARGED, WHOLE, Entry, State, Terms

MOST_ENTRIES = 50
"""An extract shows the opening and the latest entries, at most so many."""


def account_at(address: str) -> Account:
    """The account at an address, which names one."""
    place = Address.parse(address)
    if place.account is None:
        raise ValueError("add #account to the address of the ledger")
    return Account(place.absolute())


def extract(account: Account | str) -> dict[str, object]:
    """The account as JSON-able values, after a check of its whole journal.

    Parameters
    ----------
    account : Account or str
        Or its address.

    Returns
    -------
    dict
        Terms and sums as ``dpglm ledger show --json`` prints them, ``left`` in words, ``journal`` with the
        opening and the latest entries, and ``omitted``: how many entries lie between these.
    """
    account = account_at(account) if isinstance(account, str) else account
    state, entries = account.verify(), account.history()
    rows = [_row(state, entry) for entry in entries]
    shown = rows if len(rows) <= MOST_ENTRIES else [rows[0], *rows[1 - MOST_ENTRIES :]]
    return {
        **summary(state, account.part),
        "share_spent": _share(state, state.last),
        "left": str(state.remaining(account.part)),
        "journal": shown,
        "omitted": len(rows) - len(shown),
    }


def summary(state: State, part: str | None) -> dict[str, object]:
    """Terms of an account, what was spent and what is left."""
    terms, remaining = state.terms, state.remaining(part)
    return {
        "account": terms.name,
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "neighbours": terms.neighbours,
        "unit": terms.unit,
        "mu": terms.budget.mu,
        "mu_spent": state.spent(part).mu,
        "epsilon_spent": state.spent_epsilon(part),
        "mu_left": remaining.mu,
        "slack_left": float(remaining.price.slack),
        "one_more_fit_at": remaining.epsilon(),
        "ten_more_fits_at": remaining.epsilon(10),
        "entries": state.last.number + 1,
        "parts": list(state.parts),
        "head": state.last.hash,
    }


def how_it_adds(state: State, part: str | None) -> str:
    """What was spent, as one promise, and why it is not the sum of the epsilons of the fits."""
    return (
        f"spent: epsilon {state.spent_epsilon(part):g} at delta {state.terms.delta:g}, for everything "
        "together. Epsilons of fits, at deltas of their own, do not add up: squares of mu do"
    )


def like_the_last(state: State, entries: Sequence[Entry], part: str | None) -> str | None:
    """What is left at the delta of the last fit, if that is not the account's."""
    plans = [entry.content.get("plan") for entry in entries if entry.kind == "reservation"]
    budget = plans[-1].get("budget") if plans and isinstance(plans[-1], dict) else None
    delta = budget.get("delta") if isinstance(budget, dict) else None
    if not isinstance(delta, float) or not 0 < delta < 1 or delta == state.terms.delta:
        return None
    epsilon = state.remaining(part).epsilon(delta=delta)
    return f"one more fit at the delta of the last, {delta:.3g}: epsilon {epsilon:g}" if epsilon else None


def running(state: State, entries: Sequence[Entry]) -> list[float]:
    """The share of the budget, in squares of mu, that is spent after each entry."""
    return [_share(state, entry) for entry in entries]


def what(entry: Entry) -> str:
    """What an entry is about."""
    content = entry.content
    if entry.kind == "opening":
        return f"epsilon {content['epsilon']:g}, delta {content['delta']:g}, {content['neighbours']}"
    if entry.kind == "commitment":
        return f"of entry {content.get('reservation')}"
    if entry.kind == "parts":
        return f"{content.get('rule')}: {', '.join(content.get('names', []))}"
    plan = content.get("plan")
    fit = ""
    if isinstance(plan, dict):
        budget = plan.get("budget", {})
        private = plan.get("neighbours") == Neighbours.ADD_REMOVE.value
        size = "a private number of" if private else plan.get("n_records")
        count = f"{size} {plan.get('unit', 'record')}s"
        fit = f"{plan.get('solver')}, epsilon {budget.get('epsilon')}, {count}"
    return " ".join(filter(None, [str(content.get("text", "")), fit]))


def _share(state: State, entry: Entry) -> float:
    return float(State(state.terms, entry).spent().mu_squared / state.terms.budget.mu_squared)


def _row(state: State, entry: Entry) -> dict[str, object]:
    charged = entry.kind in CHARGED
    share = float(entry.charge.mu_squared / state.terms.budget.mu_squared)
    return {
        "number": entry.number,
        "time": entry.time[: len("2026-01-31")],  # earlier versions wrote seconds
        "kind": entry.kind,
        "part": entry.part,
        "mu": entry.charge.mu if charged else None,
        "share": share if charged else None,
        "spent": _share(state, entry),
        "what": what(entry),
        "hash": entry.hash,
    }


_EIGHTHS = " ▁▂▃▄▅▆▇█"


def shares(terms: Terms, entries: Sequence[Entry]) -> list[tuple[datetime, float]]:
    """For each charge a time and the share of the budget, in mu squared, that is spent from then on.

    Journals know days; the charges of a day are spread over it.
    """
    dates, spent = [], []
    for entry in entries:
        if entry.kind not in CHARGED and entry.number:
            continue
        most = max((price.mu_squared for name, price in entry.spent.items() if name != WHOLE), default=0)
        share = float((entry.spent[WHOLE].mu_squared + most) / terms.budget.mu_squared)
        dates.append(datetime.fromisoformat(entry.time).replace(hour=0, minute=0, second=0, tzinfo=None))
        spent.append(share)
    many, seen = Counter(dates), Counter[datetime]()
    times = []
    for date in dates:
        times.append(date + timedelta(days=seen[date] / many[date]))
        seen[date] += 1
    return list(zip(times, spent, strict=True))


def text_chart(points: Sequence[tuple[datetime, float]], width: int = 60, height: int = 6) -> list[str]:
    """A chart of block characters, one line for each row; time runs to the right, the budget is the top."""
    first, last = points[0][0], max(time for time, _ in points)
    span = (last - first).total_seconds()
    columns = []
    for k in range(width):
        until = span * (k + 1) / width
        seen = [share for time, share in points if (time - first).total_seconds() <= until]
        columns.append(seen[-1] if seen else points[0][1])
    lines = []
    for row in reversed(range(height)):
        cells = (min(8, max(0, round(8 * (share * height - row)))) for share in columns)
        label = "100 %" if row == height - 1 else "  0 %" if row == 0 else "     "
        lines.append(f"{label} │{''.join(_EIGHTHS[cell] for cell in cells)}│")
    lines.append(f"       {first:%Y-%m-%d}".ljust(width - 2) + f"{last:%Y-%m-%d}")
    return lines


def save_png(terms: Terms, points: Sequence[tuple[datetime, float]], path: Path) -> None:
    """Write the chart as a PNG file."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ValueError("a picture needs matplotlib: pip install 'dpglm[demo]'") from None
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    times = np.array([time for time, _ in points], dtype="datetime64[s]")
    axes.step(times, [100 * share for _, share in points], where="post")
    axes.fill_between(times, [100 * share for _, share in points], step="post", alpha=0.2)
    axes.axhline(100, color="black", linewidth=1)
    axes.set(ylim=(0, 105), ylabel="share of the budget in mu², %")
    axes.set_title(f"{terms.name}: epsilon {terms.epsilon:g}, delta {terms.delta:g}", loc="left")
    figure.autofmt_xdate()
    figure.savefig(path, format="png", dpi=150)
