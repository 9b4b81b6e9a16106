"""Seeded fits of every solver, stored as numbers: a change of code that changes a law is seen.

``python tests/golden/fits.py`` compares all fits with those of `fits.json`, bit for bit; with ``--write`` it
stores them. Write them anew only with a change that moves a draw on purpose, and say so in the changelog.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import dpglm
from dpglm import Bounds, GLMClassifier, GLMRegressor, Lasso, LinearSVR, LogisticRegression, Ridge
from dpglm.penalties import L1, L2, Box, GroupCover, L1Ball, Submodular
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    DualFrankWolfe,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
    PreconditionedDescent,
)

STORED = Path(__file__).with_name("fits.json")

N, P = 240, 8
rng = np.random.default_rng(2026)
X = rng.uniform(-1, 1, (N, P)) * np.linspace(0.2, 1.0, P)
X[rng.random((N, P)) < 0.5] = 0.0
SIGNAL = X @ np.array([1.0, -2.0, 0.0, 0.5, 0.0, 0.0, 1.5, -1.0])
TARGET = np.clip(SIGNAL + 0.2 * rng.standard_normal(N), -2, 2)
LABELS = (SIGNAL + 0.3 * rng.standard_normal(N) > 0).astype(int)
THREE = np.digitize(SIGNAL, [-0.4, 0.4])
COUNTS = rng.poisson(np.exp(np.clip(SIGNAL, -2, 1)))

ROWS = Bounds(row_norm=1.2)
RANGE = Bounds(row_norm=1.2, target=(-2, 2))
COLUMNS = Bounds(feature=np.linspace(0.2, 1.0, P), target=(-2, 2))
GROUPS = Submodular(0.01, GroupCover([[0, 1], [2, 3], [4, 5], [6, 7]]), l2=0.1)
TWO, SEED = {"classes": [0, 1], "bounds": ROWS}, {"random_state": 7}
BALL = {"penalty": L1Ball(3.0), **TWO}

MODELS = {
    "gradient descent": (LogisticRegression(2.0, solver=GradientDescent(), **TWO), LABELS),
    "gradient descent, zero-out": (
        LogisticRegression(2.0, neighbours="zero-out", solver=GradientDescent(steps=9), **TWO), LABELS),
    "gradient descent, batches": (
        LogisticRegression(2.0, solver=GradientDescent(steps=12, batch_size=30), **TWO), LABELS),
    "gradient descent, three classes": (
        LogisticRegression(4.0, classes=[0, 1, 2], bounds=ROWS, solver=GradientDescent(steps=7),
                           multi_class="ovr"), THREE),
    "gradient descent, multinomial": (
        LogisticRegression(4.0, classes=[0, 1, 2], bounds=ROWS, solver=GradientDescent(steps=7)), THREE),
    "gradient descent, multinomial batches": (
        LogisticRegression(4.0, classes=[0, 1, 2], bounds=ROWS,
                           solver=GradientDescent(steps=7, clip=0.5, batch_size=60)), THREE),
    "preconditioned descent, multinomial": (
        LogisticRegression(4.0, classes=[0, 1, 2], bounds=ROWS, solver=PreconditionedDescent()), THREE),
    "gradient descent, squared": (
        dpglm.LinearRegression(2.0, bounds=RANGE, solver=GradientDescent()), TARGET),
    "gradient descent, Huber": (
        GLMRegressor(2.0, loss="huber", bounds=RANGE, solver=GradientDescent()), TARGET),
    "gradient descent, counts": (
        GLMRegressor(2.0, loss="poisson", bounds=Bounds(row_norm=1.2, target=(0, 6)),
                     solver=GradientDescent(steps=20)), COUNTS),
    "gradient descent, given clip": (
        LogisticRegression(2.0, solver=GradientDescent(steps=9, clip=0.3), **TWO), LABELS),
    "preconditioned descent": (LogisticRegression(2.0, solver=PreconditionedDescent(), **TWO), LABELS),
    "preconditioned descent, squared": (
        Ridge(8.0, bounds=COLUMNS, solver=PreconditionedDescent(), neighbours="zero-out"), TARGET),
    "Newton": (
        LogisticRegression(8.0, penalty=None, classes=[0, 1], bounds=ROWS, solver=Newton()), LABELS),
    "Newton, zero-out, no intercept": (
        LogisticRegression(8.0, penalty=None, classes=[0, 1], bounds=ROWS, neighbours="zero-out",
                           fit_intercept=False, solver=Newton(rounds=2, leverage=3.0)), LABELS),
    "Newton, squared": (
        dpglm.LinearRegression(8.0, bounds=COLUMNS, solver=Newton(deviance_share=0.1)), TARGET),
    "coordinate descent": (Ridge(2.0, bounds=COLUMNS, solver=CoordinateDescent()), TARGET),
    "coordinate descent, private moments": (
        LogisticRegression(2.0, solver=CoordinateDescent(steps=40, periods=2), **TWO), LABELS),
    "coordinate descent, uniform clip": (
        Lasso(2.0, alpha=0.01, bounds=RANGE, solver=CoordinateDescent(
            steps=30, clip_rule="uniform", second_moments="even")), TARGET),
    "greedy": (Lasso(4.0, alpha=0.01, bounds=COLUMNS, solver=GreedyCoordinateDescent(steps=6)), TARGET),
    "greedy, gs-s": (
        dpglm.ElasticNet(4.0, alpha=0.01, bounds=COLUMNS,
                         solver=GreedyCoordinateDescent(steps=4, rule="gs-s")), TARGET),
    "greedy, gs-q, box": (
        GLMRegressor(4.0, penalty=Box(-1.0, 1.0), bounds=COLUMNS,
                     solver=GreedyCoordinateDescent(steps=4, rule="gs-q")), TARGET),
    "Frank-Wolfe": (LogisticRegression(4.0, solver=FrankWolfe(steps=20), **BALL), LABELS),
    "Frank-Wolfe, binned": (
        LogisticRegression(4.0, solver=FrankWolfe(steps=15, selection="binned"), **BALL), LABELS),
    "Frank-Wolfe, grouped": (
        LogisticRegression(4.0, solver=FrankWolfe(steps=15, selection="grouped"), **BALL), LABELS),
    "Frank-Wolfe, Gumbel": (
        LogisticRegression(4.0, fit_intercept=False, solver=FrankWolfe(steps=15, selection="gumbel"), **BALL),
        LABELS),
    "Frank-Wolfe, squared": (
        GLMRegressor(40.0, penalty=L1Ball(3.0), bounds=RANGE, solver=FrankWolfe(steps=20)), TARGET),
    "Frank-Wolfe, sharp": (LogisticRegression(200.0, solver=FrankWolfe(steps=30), **BALL), LABELS),
    "dual coordinate descent": (dpglm.LinearSVC(2.0, C=0.1, solver=DualCoordinateDescent(), **TWO), LABELS),
    "dual coordinate descent, logistic": (
        LogisticRegression(2.0, C=0.1, solver=DualCoordinateDescent(steps=9, batch_size=40), **TWO), LABELS),
    "dual coordinate descent, tube": (
        LinearSVR(2.0, C=0.1, bounds=RANGE, solver=DualCoordinateDescent(steps=6)), TARGET),
    "dual Frank-Wolfe": (
        GLMRegressor(8.0, penalty=GROUPS, bounds=RANGE, solver=DualFrankWolfe(steps=8)), TARGET),
    "output perturbation": (
        GLMClassifier(2.0, penalty=L2(0.2), solver=OutputPerturbation(), **TWO), LABELS),
    "output perturbation, groups": (
        GLMRegressor(8.0, penalty=GROUPS, bounds=RANGE, solver=OutputPerturbation()), TARGET),
    "objective perturbation": (
        GLMClassifier(2.0, penalty=L1(0.01), solver=ObjectivePerturbation(), **TWO), LABELS),
    "objective perturbation, squared": (Ridge(2.0, bounds=RANGE, solver=ObjectivePerturbation()), TARGET),
    "no noise, gradient descent": (LogisticRegression(float("inf"), solver=GradientDescent(), **TWO), LABELS),
    "no noise, Newton": (LogisticRegression(float("inf"), **TWO), LABELS),
    "no noise, multinomial": (LogisticRegression(float("inf"), classes=[0, 1, 2], bounds=ROWS), THREE),
    "no noise, coordinate descent": (Lasso(float("inf"), alpha=0.01, bounds=COLUMNS), TARGET),
    "no noise, greedy": (
        Lasso(float("inf"), alpha=0.01, bounds=COLUMNS, solver=GreedyCoordinateDescent()), TARGET),
    "no noise, Frank-Wolfe": (
        LogisticRegression(float("inf"), solver=FrankWolfe(steps=50), **BALL), LABELS),
    "no noise, dual": (LinearSVR(float("inf"), bounds=RANGE), TARGET),
}  # fmt: skip
TABLES = {
    "dense": X,
    "columns": np.asfortranarray(X),
    "float32": X.astype(np.float32),
    "sparse": sp.csr_array(X),
}


def fitted(name: str, table: str) -> list[float]:
    """Coefficients and intercept of a case."""
    model, y = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(**SEED).fit(TABLES[table], y)
    return [float(value) for value in (*np.ravel(model.coef_), *np.ravel(model.intercept_))]


def fits() -> dict[str, list[float]]:
    """All cases."""
    return {f"{name} | {table}": fitted(name, table) for name in MODELS for table in TABLES}


def stored() -> dict[str, list[float]]:
    """All cases as they were stored."""
    return json.loads(STORED.read_text())


if __name__ == "__main__":
    now = fits()
    if "--write" in sys.argv:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in now.items())
        STORED.write_text("{\n" + lines + "\n}\n")
    then = stored()
    moved = [name for name in now if now[name] != then.get(name)]
    for name in moved:
        before = then.get(name, [])
        distance = max(map(abs, np.subtract(now[name], before))) if len(before) == len(now[name]) else np.inf
        print(f"{name}: moved by {distance:.3g}")
    print(f"{len(now) - len(moved)} of {len(now)} fits are the same bit for bit")
