"""Without noise an estimator reaches scikit-learn's optimum, whatever the solver and the table."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

import dpglm
from dpglm.losses import Huber, SmoothedHinge
from dpglm.penalties import L2, Zero
from dpglm.solvers import GradientDescent
from dpglm.solvers.exact import minimise

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 20)) * (rng.random((600, 20)) < 0.5) * np.geomspace(0.3, 3, 20) + 0.2
SIGNAL = X @ (rng.standard_normal(20) * (rng.random(20) < 0.4))
LABELS = np.where(SIGNAL + rng.standard_normal(600) > 0.3, 1, -1)
TARGET = SIGNAL + 3.0 + 0.3 * rng.standard_normal(600)

TABLES = {"dense": X, "CSR": sp.csr_array(X)}
INFINITE = float("inf")


def logistic(w, b):
    return np.logaddexp(0, -LABELS * (X @ w + b)).mean() + 0.5 * w @ w / 600


def lasso(w, b):
    return 0.5 * np.square(X @ w + b - TARGET).mean() + 0.1 * np.abs(w).sum()


def ridge(w, b):
    return 0.5 * np.square(X @ w + b - TARGET).mean() + 0.5 * 2.0 / 600 * w @ w


CASES = {
    "logistic + L2": (
        logistic, LABELS,
        lambda **k: dpglm.LogisticRegression(INFINITE, C=1.0, classes=[-1, 1], **k),
        linear_model.LogisticRegression(C=1.0, tol=1e-12, max_iter=100_000),
    ),
    "squared + L1": (
        lasso, TARGET,
        lambda **k: dpglm.Lasso(INFINITE, alpha=0.1, **k),
        linear_model.Lasso(alpha=0.1, tol=1e-14, max_iter=100_000),
    ),
    "squared + L2": (
        ridge, TARGET,
        lambda **k: dpglm.Ridge(INFINITE, alpha=2.0, **k),
        linear_model.Ridge(alpha=2.0, solver="svd"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("solver", ["gradient-descent", "coordinate-descent", "greedy-coordinate-descent"])
@pytest.mark.parametrize("declared", [False, True], ids=["unbounded", "wide bounds"])
def test_an_infinite_epsilon_gives_the_non_private_optimum(case, table, solver, declared):
    target = None if case.startswith("logistic") else (-100, 100)
    bounds = dpglm.Bounds(row_norm=100.0, target=target) if declared else None
    objective, y, make, reference = CASES[case]
    reference.fit(X, y)
    best = objective(np.ravel(reference.coef_), float(np.ravel(reference.intercept_)[0]))
    model = make(solver=solver, bounds=bounds).fit(TABLES[table], y)
    reached = objective(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))
    assert abs(reached - best) <= 1e-6 * best


@pytest.mark.parametrize("solver", ["gradient-descent", "coordinate-descent"])
def test_other_losses_reach_their_optimum_too(solver):
    huber = dpglm.GLMRegressor(INFINITE, loss=Huber(0.5), penalty=L2(0.01), solver=solver).fit(X, TARGET)
    residual = np.clip(X @ huber.coef_ + huber.intercept_ - TARGET, -0.5, 0.5)
    assert np.abs(X.T @ residual / 600 + 0.01 * huber.coef_).max() < 1e-5
    hinge = dpglm.GLMClassifier(
        INFINITE, loss=SmoothedHinge(1.0), penalty=L2(0.01), solver=solver, classes=[-1, 1]
    ).fit(X, LABELS)
    w, b = hinge.coef_[0], hinge.intercept_[0]
    slope = -LABELS * np.clip(1 - LABELS * (X @ w + b), 0, 1)
    assert np.abs(X.T @ slope / 600 + 0.01 * w).max() < 1e-5


@pytest.mark.parametrize("kind", [dpglm.GLMClassifier, dpglm.LogisticRegression])
def test_classes_that_a_line_separates_are_separated_though_there_is_no_minimiser(kind):
    y = np.where(X[:, 0] > 0.2, 1, -1)
    with pytest.warns(ConvergenceWarning):
        model = kind(INFINITE, penalty=Zero(), classes=[-1, 1]).fit(X[:100], y[:100])
    assert np.isfinite(model.coef_).all() and model.score(X[:100], y[:100]) == 1.0


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_more_noise_moves_the_model_further_from_the_optimum():
    bounds = dpglm.Bounds(row_norm=10.0, target=(-10, 20))
    best = dpglm.Ridge(INFINITE, bounds=bounds).fit(X, TARGET).coef_
    solver = GradientDescent(steps=50, clip=5.0, step_size=1e-2)

    def distance(epsilon, seed):
        model = dpglm.Ridge(epsilon, bounds=bounds, solver=solver, random_state=seed).fit(X, TARGET)
        return np.linalg.norm(model.coef_ - best)

    # From epsilon 1 on clips and few steps are what keeps the model from the optimum.
    means = [np.mean([distance(epsilon, seed) for seed in range(10)]) for epsilon in (0.01, 0.1, 1.0)]
    assert means == sorted(means, reverse=True)


def test_columns_far_from_zero_take_few_steps_without_noise():
    """Steps with momentum alone are far from the minimum after 10,000."""
    far = np.random.default_rng(0).normal(100, 1, (100, 2))
    y = far @ [0.2, -0.1] + np.random.default_rng(1).normal(0, 1, 100)
    for model, exact in (
        (dpglm.Ridge(INFINITE, alpha=1.0), linear_model.Ridge(alpha=1.0)),
        (dpglm.LinearRegression(INFINITE), linear_model.LinearRegression()),
    ):
        model.fit(far, y), exact.fit(far, y)
        assert np.allclose(model.coef_, exact.coef_, rtol=1e-4) and model.n_iter_ < 100
        assert model.intercept_ == pytest.approx(exact.intercept_, rel=1e-3)
    bounds = dpglm.Bounds(row_norm=100.0)
    model = dpglm.LogisticRegression(INFINITE, classes=[-1, 1], bounds=bounds, solver="gradient-descent")
    assert model.fit(X, LABELS).n_iter_ < 1000  # 7,380


@pytest.mark.parametrize("steps", range(1, 40))
def test_steps_without_noise_are_no_more_than_allowed_and_lead_downhill(steps):
    curvature = np.geomspace(1e-4, 1, 6)
    solved = [minimise(lambda w: curvature * (w - 1), lambda w, _: w, 1.0, np.zeros(6), steps, smooth)
              for smooth in (False, True)]  # fmt: skip
    momentum, both = (curvature @ np.square(result.w - 1) for result in solved)
    assert solved[1].steps == steps or np.allclose(solved[1].w, 1, atol=1e-3)
    assert both <= curvature.sum() and (steps < 20 or both < momentum)
