"""What `defaults` found, as tables beside its goals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from outputs import load_pyplot

GOALS: dict[str, dict[float, float]] = {
    "california": {0.1: 0.62, 1: 0.67},
    "pol": {0.1: 0.27, 1: 0.50},
    "elevators": {0.1: 0.66, 1: 0.76},
    "bike": {0.1: 0.64, 1: 0.70},
    "protein": {0.1: 0.27, 1: 0.29},
    "keggundirected": {0.1: 0.95, 1: 0.97},
    "mtp": {0.1: 0.0, 1: 0.17},
    "covtype": {0.1: 0.753, 1: 0.755},
    "a9a": {0.1: 0.830, 1: 0.848, 4: 0.851},
    "rcv1": {0.1: 0.835, 1: 0.920},
    "imdb": {0.1: 0.65, 1: 0.80, 4: 0.82},
    "phishing": {0.1: 0.90, 1: 0.93},
}
"""Least mean of `auto`, by table and epsilon."""
CLEARLY = {"accuracy": 0.005, "R²": 0.02}
"""Regret that nine cells of ten may have at most."""


@dataclass(frozen=True)
class Row:
    """Held-out accuracy or R² of one solver: mean of several fits, and its standard error.

    ``chosen`` is the solver that `auto` is.
    """

    table: str
    group: str
    kind: str
    n: int
    p: int
    epsilon: float
    solver: str
    score: float
    error: float
    passes: str
    seconds: float
    fits: int
    chosen: str = ""


@dataclass(frozen=True)
class Cell:
    """All rows of a table at an epsilon."""

    auto: Row
    plain: Row
    others: dict[str, Row]
    published: dict[str, Row]

    @property
    def best(self) -> Row:
        """The best other solver."""
        return max(self.others.values(), key=lambda row: row.score)

    @property
    def regret(self) -> float:
        """How much better the best other solver is."""
        return self.best.score - self.auto.score

    @property
    def regret_error(self) -> float:
        """Standard error of the regret."""
        return math.hypot(self.best.error, self.auto.error)

    @property
    def verdict(self) -> str:
        """Whether the goal of the cell is met, if it has one."""
        goal = GOALS.get(self.auto.table, {}).get(self.auto.epsilon)
        if goal is None:
            return ""
        return f"{goal:.3f} {'ok' if self.auto.score >= goal else 'MISSED'}"


def cells(rows: Sequence[Row], solvers: Sequence[str], published: Sequence[str]) -> Iterator[Cell]:
    """Cells in the order of their rows."""
    for auto in (row for row in rows if row.solver == "auto"):
        here = {row.solver: row for row in rows if (row.table, row.epsilon) == (auto.table, auto.epsilon)}
        plain = next(row for row in rows if (row.table, row.solver) == (auto.table, "not private"))
        others, others_published = (
            {name: here[name] for name in names if name in here} for names in (solvers, published)
        )
        yield Cell(auto, plain, others, others_published)


def _words(solver: str) -> str:
    return solver.replace("-", " ")


def _figure(row: Row | None, best: bool = False) -> str:
    if row is None:
        return "-"
    mean = f"**{row.score:.3f}**" if best else f"{row.score:.3f}"
    return f"{mean} ± {row.error:.3f}" if row.fits > 1 else mean


def as_markdown(rows: Sequence[Row], solvers: Sequence[str], published: Sequence[str]) -> str:
    """A table of `auto` with its goals and regret, and one of all solvers, the best in bold."""
    columns = "table | | n x p | not private | epsilon | auto | it is | passes | CPU s | goal"
    first = [f"| {columns} | best other | regret |"]
    first.append("|" + "---|" * 12)
    names = " | ".join(_words(name) for name in (*solvers, *published))
    second = [f"| table | epsilon | auto | {names} |", "|" + "---|" * (3 + len(solvers) + len(published))]
    for cell in cells(rows, solvers, published):
        auto, best = cell.auto, cell.best
        first.append(
            f"| {auto.table} | {auto.group} | {auto.n:,} x {auto.p:,} | {cell.plain.score:.3f} "
            f"| {auto.epsilon:g} | {_figure(auto)} | {auto.chosen} | {auto.passes} | {auto.seconds:.2g} "
            f"| {cell.verdict} | {_words(best.solver)} {_figure(best)} | {cell.regret:+.3f} |"
        )
        most = max(row.score for row in (auto, *cell.others.values(), *cell.published.values()))
        shown = [_figure(auto, auto.score == most)]
        for name in (*solvers, *published):
            row = (cell.others | cell.published).get(name)
            if row is None and _words(name) == auto.chosen.lower():
                shown.append("= auto")
            else:
                time = f" ({row.seconds:.2g} s)" if row is not None else ""
                shown.append(_figure(row, row is not None and row.score == most) + time)
        second.append(f"| {auto.table} | {auto.epsilon:g} | {' | '.join(shown)} |")
    return "\n".join([*first, "", *second])


def _line(name: str, figure: str, goal: str, met: bool) -> str:
    return f"| {name} | {figure} | {goal} | {'ok' if met else 'MISSED'} |"


def verdicts(rows: Sequence[Row], solvers: Sequence[str], published: Sequence[str]) -> str:
    """Goals beside figures: scores, the published regressions, and the distribution of regret."""
    found = list(cells(rows, solvers, published))
    lines = ["| goal | found | asked | |", "|---|---|---|---|"]
    asked = [cell for cell in found if cell.verdict]
    if asked:
        met = sum(cell.verdict.endswith("ok") for cell in asked)
        lines.append(
            _line("cells whose score reaches its goal", f"{met}", f"{len(asked)}", met == len(asked))
        )
    raced = [cell for cell in found if cell.published]
    for name in published if raced else ():
        ahead = sum(cell.auto.score >= cell.published[name].score for cell in raced)
        lines.append(_line(f"cells ahead of {name}", f"{ahead}", f"{len(raced)}", ahead == len(raced)))
    groups = {group: [cell for cell in found if cell.auto.group == group] for group in ("tuning", "test")}
    for group, some in {"all tables": found, **{f"{k} tables": v for k, v in groups.items()}}.items():
        if not some:
            continue
        relative = np.array([cell.regret / CLEARLY[cell.auto.kind] for cell in some])
        middle, most = float(np.median(relative)), float(np.quantile(relative, 0.9))
        lines.append(
            _line(
                f"regret, {group}: median, in units of 0.5 points or 0.02", f"{middle:.2f}", "0", middle <= 0
            )
        )
        lines.append(_line(f"regret, {group}: 90 % quantile, the same", f"{most:.2f}", "1", most <= 1))
    lines.append("")
    for cell in found:
        where = f"- {cell.auto.table}, epsilon {cell.auto.epsilon:g}:"
        if cell.regret > CLEARLY[cell.auto.kind]:
            errors = (
                f"{cell.regret / cell.regret_error:.1f} standard errors" if cell.auto.fits > 1 else "one fit"
            )
            lines.append(f"{where} {_words(cell.best.solver)} is better by {cell.regret:.3f} ({errors})")
        for row in cell.published.values():
            if row.score > cell.auto.score:
                lines.append(f"{where} {row.solver} is better by {row.score - cell.auto.score:.3f}")
    return "\n".join(lines)


def draw_regret(rows: Sequence[Row], solvers: Sequence[str], path: Path) -> None:
    """Regret of every cell, in units of what counts as clear."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    found = list(cells(rows, solvers, ()))
    names = list(dict.fromkeys(cell.auto.table for cell in found))
    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(names) + 1.5))
    for epsilon in dict.fromkeys(cell.auto.epsilon for cell in found):
        some = [cell for cell in found if cell.auto.epsilon == epsilon]
        relative = [max(cell.regret / CLEARLY[cell.auto.kind], -5) for cell in some]
        axes.plot(
            relative, [names.index(cell.auto.table) for cell in some], "o", label=f"epsilon {epsilon:g}"
        )
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.axvline(1, color="grey", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("regret of auto, in units of 0.5 points or 0.02 of R² (below -5 drawn at -5)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
