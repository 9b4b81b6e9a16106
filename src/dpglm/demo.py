"""``make demo``: the whole way from the raw Adult census table to a private model, a report and a picture."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpglm import LogisticRegression, Schema, make_private_pipeline
from dpglm.accounting import gaussian_delta, gaussian_mu
from dpglm.arrays import Vector
from dpglm.cli import app
from dpglm.data.files import source_of_file
from dpglm.datasets import RawAdult, write_adult
from dpglm.schema import Category, Column, Drop, Number, Target
from dpglm.schema.source import EncodedSource, EncodedTable
from dpglm.solvers import Newton

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 10.0)


def main(arguments: list[str] | None = None) -> None:
    """Schema, plan, ledger, fit, intervals, paid score, report and picture, all in one folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("adult-demo"), help="folder for all files")
    parser.add_argument("--runs", type=int, default=2, help="fits for each epsilon of the picture")
    options = parser.parse_args(arguments)
    folder: Path = options.out
    files = write_adult(folder)
    (folder / "budget.db").unlink(missing_ok=True)
    account = f"sqlite:///{folder / 'budget.db'}#census"
    model, report = folder / "model.json", folder / "report.html"

    print("Does a person of the 1994 census earn more than 50,000 dollars a year? From a raw CSV file, with")
    print("missing values and categories, to a private model. A schema declares what is public:\n")
    schema = Schema.from_toml(files.schema.read_text(encoding="utf-8"))
    print(schema)

    _run_command("What a fit will release, before a record is read", "plan", files.schema, "--rows", 32561)
    _run_command("A budget for everything that will be released of these records",
           "ledger", "create", account, "--epsilon", 3, "--delta", 1e-6)  # fmt: skip
    _run_command("The fit, paid for by the account",
           "fit", files.train, files.schema, "--epsilon", 1, "--out", model, "--report", report,
           "--ledger", account)  # fmt: skip
    print("\nA second model, for people who ask what matters: coefficients with intervals\n")
    second = _fit_with_intervals(schema, files, account)
    print(second.summary())
    _run_command("What is left of the budget", "ledger", "show", account)
    _run_command("Scores on other records, which are a release, too",
           "evaluate", model, files.test, "--epsilon", 1, "--metric", "accuracy",
           "--metric", "auc")  # fmt: skip

    picture = folder / "privacy_accuracy.png"
    _draw_picture(schema, files, options.runs, second, picture)
    print(f"\nThe report is in {report}, a picture in {picture}")


def _run_command(what: str, *command: object) -> None:
    """Print and run a shell command."""
    words = [str(word) for word in command]
    print(f"\n{what}\n\n$ dpglm {shlex.join(words)}")
    code = app(words, standalone_mode=False)
    if code:
        raise SystemExit(code)


def _fit_with_intervals(schema: Schema, files: RawAdult, account: str) -> Any:
    """Fit a model of few columns by Newton, which releases intervals."""
    few: dict[str, Column | Target | Drop] = {
        "age": Number(17, 90),
        "education_num": Number(1, 16),
        "hours_per_week": Number(1, 99),
        "sex": Category(["Female", "Male"], baseline="Female", other=False),
        "marital_status": Category(["Never-married", "Married-civ-spouse"], baseline="Never-married"),
        "income": Target(classes=["<=50K", ">50K"]),
    }
    columns = {name: few.get(name, Drop()) for name in schema.columns}
    newton = LogisticRegression(epsilon=1.0, penalty=None, solver=Newton(), ledger=account)
    return make_private_pipeline(Schema(columns), newton).fit(source_of_file(files.train, ()))


def _draw_picture(schema: Schema, files: RawAdult, runs: int, second: Any, out: Path) -> None:
    """Draw the picture. The table is public: the accuracies here are neither private nor paid for."""
    train, test = (EncodedSource(source_of_file(path, ()), schema).in_memory() for path in files[:2])
    curve = [[_test_accuracy(schema, epsilon, train, test) for _ in range(runs)] for epsilon in EPSILONS]
    exact = _test_accuracy(schema, float("inf"), train, test)
    majority = max(np.mean(test.target == label) for label in ("<=50K", ">50K"))
    draw(Accuracies(EPSILONS, np.array(curve), exact, float(majority)), second.report().facts, out)
    print("\nAccuracy on the test part, which is public here")
    print(f"  private, epsilon = 1     {np.mean(curve[EPSILONS.index(1.0)]):.2%}")
    print(f"  not private, no noise    {exact:.2%}")
    print(f"  always the larger class  {majority:.2%}")


def _test_accuracy(schema: Schema, epsilon: float, train: EncodedTable, test: EncodedTable) -> float:
    model = make_private_pipeline(schema, LogisticRegression(epsilon)).fit(train)
    return float(model.estimator_.score(test.rows, test.target))


PUBLISHED = {
    "elevators": (0.781, 0.598, 0.388, 0.796),
    "protein": (0.276, 0.268, 0.214, 0.285),
    "keggundirected": (0.973, 0.949, 0.925, 0.974),
}
"""R² on held-out rows at epsilon 1, delta 1/n², replace-one: `METHODS` in their order, means of 2 or 4 fits.

From experiments/README.md, made by experiments/defaults.py, with the published algorithms written from their
formulas with exact prices.
"""

METHODS = ("dpglm", "BoostedAdaSSP", "AdaSSP", "not private")

_COLOURS = ("#0b6b50", "#7fb5dd", "#b9c4cd", "#ffffff")
_INK, _SOFT, _ACCENT, _OTHER = "#1d2126", "#555d66", "#0b6b50", "#a8480f"


class Accuracies(NamedTuple):
    """Accuracies of fits for each epsilon, without noise, and of the larger class."""

    epsilons: Sequence[float]
    curve: Vector
    exact: float
    majority: float


def draw(accuracies: Accuracies, facts: dict[str, Any], out: Path) -> None:
    """Draw all four parts.

    Parameters
    ----------
    accuracies : Accuracies
    facts : dict
        The statement of a model with intervals.
    out : Path
        A PNG file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8.4), layout="constrained", facecolor="#faf8f4")
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.25, h_pad=0.18)
    figure.suptitle(
        "Private models of the Adult census, by dpglm", x=0.012, ha="left", size=19, weight="bold",
        color=_INK,
    )  # fmt: skip
    (a, b), (c, d) = figure.subplots(2, 2)
    for axes in (a, b, c, d):
        axes.set_facecolor("#faf8f4")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=_SOFT)
    _draw_accuracy(a, accuracies)
    _draw_comparison(b)
    _draw_coefficients(c, facts["fits"][0]["coefficients"])
    _draw_person(d, accuracies.epsilons, facts["records"])
    figure.savefig(out, dpi=130)


def _title(axes: Any, title: str, below: str) -> None:
    axes.set_title(title, loc="left", size=12.5, weight="bold", color=_INK, pad=22)
    axes.text(0, 1.02, below, transform=axes.transAxes, size=9.5, color=_SOFT).set_in_layout(False)


def _draw_accuracy(axes: Any, accuracies: Accuracies) -> None:
    from matplotlib.ticker import FuncFormatter, PercentFormatter

    _title(axes, "What privacy costs", "accuracy on the test part of Adult, by default fits")
    mean = accuracies.curve.mean(axis=1)
    axes.fill_between(
        accuracies.epsilons,
        accuracies.curve.min(axis=1),
        accuracies.curve.max(axis=1),
        color=_ACCENT,
        alpha=0.2,
        linewidth=0,
    )
    label = f"dpglm, mean and range of {accuracies.curve.shape[1]} fits"
    axes.plot(accuracies.epsilons, mean, marker="o", color=_ACCENT, label=label)
    axes.axhline(accuracies.exact, color=_INK, linestyle="--", linewidth=1, label="not private")
    axes.axhline(
        accuracies.majority, color=_SOFT, linestyle=":", linewidth=1, label="always the larger class"
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel("epsilon, delta = 1/n² (smaller: more private)", color=_SOFT)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(frameon=False, loc="center right", fontsize=9)


def _draw_comparison(axes: Any) -> None:
    _title(axes, "Published algorithms, same guarantee", "R² of three regressions, epsilon 1")
    places, wide = np.arange(len(PUBLISHED)), 0.2
    for k, (method, colour) in enumerate(zip(METHODS, _COLOURS, strict=True)):
        heights = [figures[k] for figures in PUBLISHED.values()]
        bars = axes.bar(
            places + (k - 1.5) * wide, heights, 0.92 * wide, color=colour, label=method, edgecolor=_INK,
            linewidth=0.5,
        )  # fmt: skip
        axes.bar_label(bars, [f"{height:.2f}" for height in heights], size=8, color=_INK, padding=1)
    axes.set_xticks(places, list(PUBLISHED))
    axes.set_ylim(0, 1.35)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.set_xlabel("measured by experiments/defaults.py", color=_SOFT)
    axes.legend(frameon=False, loc="upper left", fontsize=9, ncols=2)


def _draw_coefficients(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    _title(axes, "What matters, with 95 % intervals", "change of the log-odds over the range of each column")
    shown = sorted(
        (row for row in rows if row["range"] is not None), key=lambda row: float(row["value"] * row["range"])
    )
    for place, row in enumerate(shown):
        colour = _ACCENT if row["value"] >= 0 else _OTHER
        axes.scatter([row["value"] * row["range"]], [place], color=colour, zorder=3)
        if row["low"] is not None:  # noise did not hide it
            ends = [row[name] * row["range"] for name in ("low", "high")]
            axes.plot(ends, [place, place], color=colour, linewidth=5, alpha=0.45, solid_capstyle="round")
    axes.axvline(0, color=_SOFT, linestyle=":", linewidth=1)
    axes.set_yticks(range(len(shown)), [f"{row['name']}\n{_words(row)}" for row in shown], size=8.5)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_xlabel("log-odds of an income above 50,000 dollars", color=_SOFT)


def _words(row: dict[str, Any]) -> str:
    ends = "not determined" if row["low"] is None else f"{row['low']:.3g} to {row['high']:.3g}"
    return f"{row['value']:.3g} ({ends})"


def _draw_person(axes: Any, epsilons: Sequence[float], records: int) -> None:
    from matplotlib.ticker import FuncFormatter, PercentFormatter

    _title(
        axes, "What epsilon means for one person", "right guesses of someone who knows all others, at most"
    )
    grid = np.geomspace(min(epsilons), max(epsilons), 60)
    rights = [right_guesses(epsilon, records) for epsilon in grid]
    axes.plot(grid, rights, color=_ACCENT, linewidth=2.5)
    axes.fill_between(grid, 0.5, rights, color=_ACCENT, alpha=0.12)
    for epsilon in epsilons:
        if epsilon >= 0.1:
            right = right_guesses(epsilon, records)
            axes.scatter([epsilon], [right], color=_ACCENT, zorder=3)
            words = f"{math.ceil(1000 * right) / 10:.1f} %"
            axes.annotate(words, (epsilon, right), (-6, 7), textcoords="offset points", ha="right", size=9)
    axes.axhline(0.5, color=_SOFT, linestyle=":", linewidth=1)
    axes.text(min(epsilons), 0.508, "a coin toss", size=9, color=_SOFT)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_ylim(0.48, 1.0)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("epsilon, delta = 1/n²", color=_SOFT)


def right_guesses(epsilon: float, records: int) -> float:
    """Upper bound on right guesses between two equally likely records: (1 + delta at epsilon 0) / 2."""
    return (1 + gaussian_delta(gaussian_mu(epsilon, 1 / records**2), 0.0)) / 2


if __name__ == "__main__":
    main()
