"""What was spent over time, as a picture and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from .chain import Terms
from .entry import CHARGED, WHOLE, Entry

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
