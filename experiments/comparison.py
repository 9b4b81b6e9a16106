"""Accuracy and time on Adult beside other libraries, at the same epsilon, each as a newcomer would call it.

    python experiments/comparison.py --picture docs/readme.svg

Private libraries: dpglm, and those of `comparison_worker.py`, each in an environment of its own under
`--environments`, filled from the package registry. One that cannot be installed or does not run is printed as
not measured. Not private: scikit-learn, statsmodels and glum, where they are installed. The promises are not
of one kind, and the table says of which kind each is: smaller numbers for a weaker promise are not better.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from outputs import load_pyplot, write_csv
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from dpglm import LogisticRegression
from dpglm.datasets import load_adult

WORKER = Path(__file__).with_name("comparison_worker.py")
OTHERS = {
    "diffprivlib": (["diffprivlib==0.6.6", "scikit-learn==1.7.*"], "pure: delta = 0"),
    "snapml": (["snapml"], "delta = 0.01"),
}
"""What to install, and the promise besides epsilon."""

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Measured:
    """Fits of one library at one epsilon; infinity stands for a fit that is not private."""

    library: str
    version: str
    promise: str
    epsilon: float
    mean: float
    least: float
    most: float
    seconds: float


def of_scores(
    library: str, number: str, promise: str, epsilon: float, scores: list[float], seconds: float
) -> Measured:
    return Measured(
        library, number, promise, epsilon, float(np.mean(scores)), min(scores), max(scores), seconds
    )


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return fit(), time.process_time() - start


def ours(adult: Any, epsilon: float, fits: int) -> Measured:
    model = LogisticRegression(epsilon, classes=[-1, 1])
    scores, seconds = timed(
        lambda: [model.fit(adult.X, adult.y).score(adult.X_test, adult.y_test) for _ in range(fits)]
    )
    promise = "delta = 1/n², replace-one"
    return of_scores("dpglm", version("dpglm"), promise, epsilon, scores, seconds / fits)


def others(
    adult: Any, library: str, python: Path, promise: str, epsilon: float, fits: int
) -> Measured | None:
    """Fits of another library by its own interpreter, or nothing if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        table, models = Path(folder) / "table.npz", Path(folder) / "models.npz"
        np.savez(table, X=adult.X.toarray(), y=(adult.y > 0).astype(int))
        delta = 1 / adult.X.shape[0] ** 2
        command = [python, WORKER, library, table, models, str(epsilon), str(delta), str(fits)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            print(f"{library} at epsilon {epsilon:g} was not measured: {done.stderr.splitlines()[-1:]}")
            return None
        found = np.load(models)
        margins = adult.X_test @ found["coef"].T + found["intercept"]
        scores = [float(np.mean((column > 0) == (adult.y_test > 0))) for column in margins.T]
        return of_scores(library, str(found["version"]), promise, epsilon, scores, float(found["seconds"]))


def interpreter(library: str, folder: Path) -> Path | None:
    """The Python of an environment with a library, made if it is not there; nothing if that fails."""
    python = (folder / library).absolute() / "bin" / "python"
    if not python.exists():
        print(f"setting up {', '.join(OTHERS[library][0])} in {folder / library}", flush=True)
        venv.create(folder / library, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *OTHERS[library][0]]
        if subprocess.run(command, capture_output=True).returncode:
            print(f"{library} was not measured: it cannot be installed")
            return None
    return python


def without_privacy(adult: Any) -> list[Measured]:
    """The libraries that promise nothing, for the accuracy to compare with."""
    X, X_test = adult.X.toarray(), adult.X_test.toarray()
    rows = [("scikit-learn", lambda: PlainLogisticRegression(max_iter=1_000).fit(adult.X, adult.y))]
    y = (adult.y > 0).astype(float)
    try:
        import glum

        model = glum.GeneralizedLinearRegressor(family="binomial", alpha=1e-4)
        rows.append(("glum", lambda: model.fit(X, y)))
    except ImportError:
        print("glum was not measured: it is not installed")
    try:
        import statsmodels.api as sm

        def fitted() -> Any:
            model = sm.GLM(y, sm.add_constant(X), family=sm.families.Binomial())
            return model.fit_regularized(alpha=1e-4, L1_wt=0.0)

        rows.append(("statsmodels", fitted))
    except ImportError:
        print("statsmodels was not measured: it is not installed")
    found = []
    for library, fit in rows:
        model, seconds = timed(fit)
        if library == "statsmodels":
            margins = np.column_stack([np.ones(len(X_test)), X_test]) @ model.params
        else:
            margins = X_test @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]
        score = float(np.mean((margins > 0) == (adult.y_test > 0)))
        found.append(of_scores(library, version(library), "none", float("inf"), [score], seconds))
    return found


def draw(rows: list[Measured], majority: float, path: Path) -> None:
    """Accuracy over epsilon, a line for each private library."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    pyplot.rcParams.update({"svg.fonttype": "none", "font.size": 11, "svg.hashsalt": "dpglm"})
    figure, axes = pyplot.subplots(figsize=(7.6, 3.9), layout="constrained")
    colours = dict(zip(("dpglm", *OTHERS), ("#2b6cb0", "#dd8a1c", "#4b9a6a"), strict=True))
    for library, colour in colours.items():
        mine = [row for row in rows if row.library == library]
        if mine:
            bars = np.array([[row.mean - row.least, row.most - row.mean] for row in mine]).T
            label = f"{library}, {mine[0].promise}"
            x, y = [row.epsilon for row in mine], [row.mean for row in mine]
            width = 2 if library == "dpglm" else 1.4
            axes.errorbar(x, y, yerr=bars, marker="o", capsize=3, color=colour, label=label, lw=width)
    exact = next(row.mean for row in rows if row.library == "scikit-learn")
    axes.axhline(exact, color="black", ls="--", lw=1, label="scikit-learn, not private")
    axes.axhline(majority, color="grey", ls=":", lw=1, label="always the larger class")
    axes.set_xscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set(xlabel="epsilon (smaller: more private)", ylabel="accuracy on other records",
             title="Adult: 32,561 census records, as a newcomer would call it")  # fmt: skip
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.patch.set_facecolor("white")
    figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}")


def main() -> None:
    """Measure, print a table, write CSV and a picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fits", type=int, default=5, help="fits for each epsilon")
    parser.add_argument("--only", nargs="*", default=list(OTHERS), help="which other private libraries")
    parser.add_argument("--environments", type=Path, default=Path(".venv-comparison"))
    parser.add_argument("--out", type=Path, default=Path("experiments/results"))
    parser.add_argument("--picture", type=Path, help="where to draw")
    parser.add_argument("--quick", action="store_true", help="1,000 records, two epsilons, dpglm only")
    options = parser.parse_args()
    adult, epsilons = load_adult(), EPSILONS
    if options.quick:
        adult, epsilons = adult._replace(X=adult.X[:1_000], y=adult.y[:1_000]), (1.0, 10.0)
    rows = [ours(adult, epsilon, options.fits) for epsilon in epsilons]
    for library in () if options.quick else options.only:
        python = interpreter(library, options.environments)
        found = [
            others(adult, library, python, OTHERS[library][1], epsilon, options.fits)
            for epsilon in epsilons
            if python is not None
        ]
        rows += [row for row in found if row is not None]
    rows += without_privacy(adult)
    print("| library | version | promise | epsilon | accuracy | least to most | CPU seconds |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        budget = "-" if np.isinf(row.epsilon) else f"{row.epsilon:g}"
        spread = "one fit" if np.isinf(row.epsilon) else f"{row.least:.3f} to {row.most:.3f}"
        print(f"| {row.library} | {row.version} | {row.promise} | {budget} | {row.mean:.3f} | {spread} "
              f"| {row.seconds:.1f} |", flush=True)  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(rows, Measured, options.out / "comparison.csv")
    if options.picture:
        draw(rows, float(np.mean(adult.y_test < 0)), options.picture)


if __name__ == "__main__":
    main()
