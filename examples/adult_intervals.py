"""Which features go with an income above 50,000 dollars? Coefficients with intervals, private and not.

    python examples/adult_intervals.py --epsilon 1 --plot adult_intervals.png

The Adult census table has 48,842 records. The form that ships with dpglm has age and hours in five bands, of
which the middle is taken here, and the years of education follow from the degree. It takes a few seconds, and
needs matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from dpglm import Bounds, LogisticRegression
from dpglm.datasets import load_adult
from dpglm.solvers import Newton

AGE = {"17 to 25": 21, "26 to 32": 29, "33 to 40": 36.5, "41 to 49": 45, "50 to 90": 60}
HOURS = {"1 to 34": 24, "35 to 39": 37, "= 40": 40, "41 to 47": 44, "48 to 99": 55}
DEGREES = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
"""From the first to the last step of education, which the census numbers from 1 to 16."""

# Declared: what the bands and the questionnaire allow, in the units of the columns.
RANGES = {
    "age (10 years)": (2.1, 6.0),
    "education (steps)": (1, 16),
    "hours a week (10)": (2.4, 5.5),
    "man": (0, 1),
    "married": (0, 1),
    "white": (0, 1),
    "capital gain": (0, 1),
    "capital loss": (0, 1),
    "private employer": (0, 1),
    "born in the US": (0, 1),
}


def adult() -> tuple[pd.DataFrame, np.ndarray]:
    """Ten features of all records, and whether the income exceeds 50,000 dollars."""
    stored = load_adult()
    ones = pd.DataFrame.sparse.from_spmatrix(
        sp.csr_array(sp.vstack([stored.X, stored.X_test])), columns=stored.feature_names
    )

    def numbers(attribute: str, values: dict[str, float]) -> np.ndarray:
        """The number of each record's band or level; 0 if it has none."""
        return sum(value * ones[f"{attribute} {level}"].to_numpy() for level, value in values.items())

    columns = (
        numbers("age", AGE) / 10,
        numbers("education", {f"= {name}": step for step, name in enumerate(DEGREES, start=1)}),
        numbers("hours per week", HOURS) / 10,
        ones["sex = Male"],
        ones["marital status = Married-civ-spouse"],
        ones["race = White"],
        ones["capital gain 114 to 99999"],
        ones["capital loss 155 to 4356"],
        ones["workclass = Private"],
        ones["native country = United-States"],
    )
    table = pd.DataFrame(dict(zip(RANGES, map(np.asarray, columns), strict=True)), dtype=float)
    return table, np.concatenate([stored.y, stored.y_test]) > 0


def without_privacy(table: pd.DataFrame, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of scikit-learn, and their standard errors by the sandwich formula."""
    plain = PlainLogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8).fit(table, y)
    rows = np.column_stack([table, np.ones(len(table))])
    values = np.append(plain.coef_[0], plain.intercept_)
    chance = expit(rows @ values)
    bread = np.linalg.inv(rows.T @ (rows * (chance * (1 - chance))[:, None]))
    meat = rows.T @ (rows * ((chance - y) ** 2)[:, None])
    return values, np.sqrt(np.diagonal(bread @ meat @ bread))


def forest_plot(path: Path, names: list[str], fits: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """Draw coefficients with 95 % intervals, one row for each name; each fit has values and errors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 0.42 * len(names) + 1.2), layout="constrained")
    places = np.arange(len(names))[::-1]
    for k, ((label, (values, errors)), colour) in enumerate(
        zip(fits.items(), ("#1f5fa8", "#8a8a8a"), strict=True)
    ):
        heights = places + (0.14 if k == 0 else -0.14)
        axes.errorbar(values, heights, xerr=1.96 * errors, fmt="o", ms=4, lw=1.6, color=colour, label=label)
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(places, names)
    axes.set_xlabel("change of the log-odds of an income above 50,000 dollars, 95 % intervals")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    figure.savefig(path, dpi=150)
    print(f"wrote {path}")


def main() -> None:
    """Fit with and without privacy, print both, draw both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--plot", type=Path, default=Path("adult_intervals.png"))
    arguments = parser.parse_args()

    table, y = adult()
    model = LogisticRegression(
        epsilon=arguments.epsilon,
        C=float("inf"),
        classes=[False, True],
        bounds=Bounds(feature=np.array(list(RANGES.values()))),
        solver=Newton(),
    ).fit(table, y)
    summary = model.summary()
    print(summary)
    print(model.wald_test(["white", "born in the US"]))

    values, errors = without_privacy(table, y)
    private = summary.blocks[0]
    beside = pd.DataFrame(
        {
            "private": private.values,
            "std err": private.standard_errors,
            "not private": values,
            "std err ": errors,
            "times as long": private.standard_errors / errors,
            "apart (std err)": (private.values - values) / private.standard_errors,
        },
        index=private.names,
    )
    print("\nBeside the fit of scikit-learn, which is not private (Adult is a public table):")
    print(beside.round(3).to_string())
    if not summary.determined:
        print("The fit is not determined, so there is nothing to draw.")
        return
    features = slice(len(RANGES))  # all but the intercept
    fits = {
        f"private, epsilon = {arguments.epsilon:g}": (private.values, private.standard_errors),
        "not private": (values, errors),
    }
    shown = {label: (w[features], error[features]) for label, (w, error) in fits.items()}
    forest_plot(arguments.plot, list(RANGES), shown)


if __name__ == "__main__":
    main()
