"""``make demo``: the whole way from the raw Adult census table to a private model, a report and a picture."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from dpglm import LogisticRegression, Schema, make_private_pipeline
from dpglm.cli import app
from dpglm.data.files import source_of_file
from dpglm.datasets import RawAdult, write_adult
from dpglm.demo_picture import Accuracies, draw
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

    _shell("What a fit will release, before a record is read", "plan", files.schema, "--rows", 32561)
    _shell("A budget for everything that will be released of these records",
           "ledger", "create", account, "--epsilon", 3, "--delta", 1e-6)  # fmt: skip
    _shell("The fit, paid for by the account",
           "fit", files.train, files.schema, "--epsilon", 1, "--out", model, "--report", report,
           "--ledger", account)  # fmt: skip
    print("\nA second model, for people who ask what matters: coefficients with intervals\n")
    second = _with_intervals(schema, files, account)
    print(second.summary())
    _shell("What is left of the budget", "ledger", "show", account)
    _shell("Scores on other records, which are a release, too",
           "evaluate", model, files.test, "--epsilon", 1, "--metric", "accuracy",
           "--metric", "auc")  # fmt: skip

    picture = folder / "privacy_accuracy.png"
    _picture(schema, files, options.runs, second, picture)
    print(f"\nThe report is in {report}, a picture in {picture}")


def _shell(what: str, *command: object) -> None:
    """Run a command of the shell, and show it."""
    words = [str(word) for word in command]
    print(f"\n{what}\n\n$ dpglm {shlex.join(words)}")
    code = app(words, standalone_mode=False)
    if code:
        raise SystemExit(code)


def _with_intervals(schema: Schema, files: RawAdult, account: str) -> Any:
    """A model of few columns, by the solver that releases how far coefficients may be off."""
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


def _picture(schema: Schema, files: RawAdult, runs: int, second: Any, out: Path) -> None:
    """Draw what convinces. The table is public: the accuracies here are not private, and not paid for."""
    train, test = (EncodedSource(source_of_file(path, ()), schema).in_memory() for path in files[:2])
    curve = [[_accuracy(schema, epsilon, train, test) for _ in range(runs)] for epsilon in EPSILONS]
    exact = _accuracy(schema, float("inf"), train, test)
    majority = max(np.mean(test.target == label) for label in ("<=50K", ">50K"))
    draw(Accuracies(EPSILONS, np.array(curve), exact, float(majority)), second.report().facts, out)
    print("\nAccuracy on the test part, which is public here")
    print(f"  private, epsilon = 1     {np.mean(curve[EPSILONS.index(1.0)]):.2%}")
    print(f"  not private, no noise    {exact:.2%}")
    print(f"  always the larger class  {majority:.2%}")


def _accuracy(schema: Schema, epsilon: float, train: EncodedTable, test: EncodedTable) -> float:
    model = make_private_pipeline(schema, LogisticRegression(epsilon)).fit(train)
    return float(model.estimator_.score(test.rows, test.target))


if __name__ == "__main__":
    main()
