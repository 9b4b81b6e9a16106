"""As the budget grows, fits tend to those without noise: docs/consistency.md states for which solvers.

Every table has three small groups, which are columns of 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from dpglm import Bounds, GLMClassifier, LinearRegression, LogisticRegression, Ridge, Stream
from dpglm.penalties import L1Ball, Zero
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
    ObjectivePerturbation,
    PreconditionedDescent,
)
from dpglm.solvers.iterates import StepGuard

N = 16_000
SHARES = (0.01, 0.03, 0.1)
EFFECTS = np.array([0.6, -0.6, 0.6])

Draw = Callable[[np.random.Generator], tuple[Any, tuple[float, float]]]


def equal_rows(rng: np.random.Generator) -> tuple[Any, tuple[float, float]]:
    """Numbers that fill their declared ranges."""
    return rng.uniform(-1, 1, (N, 3)), (-1.0, 1.0)


def skewed_columns(rng: np.random.Generator) -> tuple[Any, tuple[float, float]]:
    """Log-normal numbers, declared far beyond most of them."""
    return np.minimum(rng.lognormal(0.0, 1.0, (N, 3)), 50.0), (0.0, 50.0)


def long_rows(rng: np.random.Generator) -> tuple[Any, tuple[float, float]]:
    """Numbers of which three in a hundred are five times as large."""
    long = np.where(rng.random(N) < 0.03, 5.0, 1.0)
    return np.clip(rng.normal(0.0, 1.0, (N, 3)) * long[:, None], -15.0, 15.0), (-15.0, 15.0)


DESIGNS: dict[str, Draw] = {"equal": equal_rows, "skewed": skewed_columns, "long": long_rows}
ALL = tuple(DESIGNS)

SOLVERS = {
    "gradient descent": (GradientDescent(), ALL),
    "preconditioned descent": (PreconditionedDescent(), ALL),
    "coordinate descent": (CoordinateDescent(), ALL),
    "greedy coordinate descent": (GreedyCoordinateDescent(), ALL),
    "Newton": (Newton(intervals=False), ALL),
    "objective perturbation": (ObjectivePerturbation(), ALL),
    # Its steps are as short as the longest rows require.
    "dual coordinate descent": (DualCoordinateDescent(), ("equal", "skewed")),
}
CASES = [(name, design) for name, (_, designs) in SOLVERS.items() for design in designs]

LIMITS = {1.0: 0.3, 10.0: 0.12, 100.0: 0.02, 1000.0: 0.02}
"""Largest gap of a group: mean predicted probability minus that of the fit without noise."""


def drawn(design: str) -> tuple[Any, Any, Any, Bounds]:
    """Rows, margins and members of the groups, and what is declared of the rows."""
    rng = np.random.default_rng(list(DESIGNS).index(design))
    numbers, ends = DESIGNS[design](rng)
    members = (rng.random((N, 3)) < SHARES).astype(float)
    margins = numbers @ (np.array([0.5, -0.4, 0.0]) / numbers.std()) + members @ EFFECTS
    bounds = Bounds(feature=[ends] * 3 + [(0.0, 1.0)] * 3)
    return np.hstack([numbers, members]), margins, members > 0, bounds


def largest_gap(prediction: Any, expected: Any, members: Any) -> float:
    """Of the groups, in absolute value."""
    error = prediction - expected
    return max(abs(float(error[group].mean())) for group in members.T)


@pytest.mark.parametrize(("name", "design"), CASES)
def test_the_gap_of_each_small_group_vanishes_as_the_budget_grows(name: str, design: str) -> None:
    X, margins, members, bounds = drawn(design)
    y = (np.random.default_rng(9).random(N) < expit(margins - margins.mean() - 1.6)).astype(int)
    common = {"classes": [0, 1], "bounds": bounds}
    exact = LogisticRegression(float("inf"), **common).fit(X, y).predict_proba(X)[:, 1]
    for epsilon, limit in LIMITS.items():
        if epsilon > 100 and name.startswith(("greedy", "dual")):
            continue  # the first has no plan there, the second takes seconds
        model = LogisticRegression(epsilon, solver=SOLVERS[name][0], random_state=5, **common).fit(X, y)
        assert largest_gap(model.predict_proba(X)[:, 1], exact, members) < limit, epsilon


def test_frank_wolfe_inside_of_its_ball_has_no_gap_with_a_large_budget() -> None:
    """Steps that shrink all coefficients by as much as on the boundary would leave a gap of 0.03."""
    rng = np.random.default_rng(3)
    members = (rng.random((N, 3)) < SHARES).astype(float)
    X, shares = np.hstack([rng.uniform(-1, 1, (N, 8)), members]), members > 0
    margins = X @ np.concatenate([[1.0, -0.8, 0.6, -0.4, 0.3, -0.2, 0.1, 0.0], EFFECTS])
    y = (rng.random(N) < expit(margins - 1.8)).astype(int)
    bounds = Bounds(feature=[(-1.0, 1.0)] * 8 + [(0.0, 1.0)] * 3)
    exact = LogisticRegression(float("inf"), classes=[0, 1], bounds=bounds).fit(X, y)
    ball, expected = L1Ball(1.5 * float(np.abs(exact.coef_).sum())), exact.predict_proba(X)[:, 1]
    model = GLMClassifier(
        100.0, penalty=ball, classes=[0, 1], bounds=bounds, solver=FrankWolfe(), random_state=5
    ).fit(X, y)
    assert np.abs(model.coef_).sum() <= ball.radius * (1 + 1e-9)
    assert largest_gap(model.predict_proba(X)[:, 1], expected, shares) < 0.02


def test_objective_perturbation_does_not_depend_on_the_units_of_columns() -> None:
    X, margins, _, _ = drawn("equal")
    y = (np.random.default_rng(9).random(N) < expit(margins - 1.6)).astype(int)
    limits, units = np.ones(6), 2.0 ** np.array([0, 5, 11, 0, -3, 2])
    common = {"classes": [0, 1], "penalty": Zero(), "solver": ObjectivePerturbation(), "random_state": 5}

    def fitted(table: Any, scales: Any) -> Any:
        return GLMClassifier(4.0, bounds=Bounds(feature=limits * scales), **common).fit(table, y)

    plain, other = fitted(X, np.ones(6)), fitted(X * units, units)
    assert np.allclose(other.coef_ * units, plain.coef_, rtol=1e-9, atol=0)
    assert np.allclose(other.intercept_, plain.intercept_, rtol=1e-9, atol=0)


def test_objective_perturbation_in_scaled_columns_is_the_same_of_a_stream() -> None:
    X, margins, _, bounds = drawn("skewed")
    y = (margins > margins.mean()).astype(int)
    common = {"classes": [0, 1], "bounds": bounds, "solver": ObjectivePerturbation(), "random_state": 5}
    whole = LogisticRegression(4.0, **common).fit(X, y)
    blocks = [(X[k : k + 5_000], y[k : k + 5_000]) for k in range(0, N, 5_000)]
    streamed = LogisticRegression(4.0, **common).fit(Stream(lambda: iter(blocks), N, X.shape[1]))
    assert np.array_equal(whole.coef_, streamed.coef_)
    assert np.array_equal(whole.intercept_, streamed.intercept_)


@pytest.mark.parametrize("design", ALL)
@pytest.mark.parametrize("name", ["gradient descent", "coordinate descent", "Newton"])
def test_means_of_small_groups_tend_to_least_squares_for_skewed_errors(name: str, design: str) -> None:
    """Errors have a long tail, so that clipped residuals do not cancel."""
    X, margins, members, bounds = drawn(design)
    noise = np.random.default_rng(9).exponential(1.0, N) - 1.0
    y = np.clip(margins - margins.mean() + noise, -6.0, 10.0)
    common = {"bounds": Bounds(feature=bounds.feature, target=(-6.0, 10.0))}
    exact = LinearRegression(float("inf"), **common).fit(X, y).predict(X)
    model = LinearRegression(1000.0, solver=SOLVERS[name][0], random_state=5, **common).fit(X, y)
    assert largest_gap(model.predict(X), exact, members) < 0.06
    assert np.sqrt(np.mean(np.square(model.predict(X) - exact))) < 0.04


def test_small_groups_of_several_classes_have_no_gap_with_a_large_budget() -> None:
    X, margins, members, bounds = drawn("long")
    rng = np.random.default_rng(9)
    scores = np.column_stack([margins, -margins, 0.5 * X[:, 2]])
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    common = {"classes": [0, 1, 2], "bounds": bounds}
    exact = LogisticRegression(float("inf"), **common).fit(X, y).predict_proba(X)
    model = LogisticRegression(1000.0, solver=GradientDescent(), random_state=5, **common).fit(X, y)
    for k in range(3):
        assert largest_gap(model.predict_proba(X)[:, k], exact[:, k], members) < 0.03


def test_steps_longer_than_released_gradients_allow_are_shortened_and_go_as_far() -> None:
    """A quadratic whose curvature is five times what a step of 1 assumes."""
    curvature = np.array([5.0, 0.01])
    guard, w = StepGuard(1.0, 0.5, noise=0.0), np.array([1.0, 1.0])
    for _ in range(3):
        gradient = curvature * w
        guard.observe(w, gradient)
        w = w - guard.step_size * gradient
    assert guard.step_size <= 1 / 4.9
    assert guard.step_size / (1 - guard.momentum) == pytest.approx(2.0)


def test_noise_alone_shortens_no_step() -> None:
    rng = np.random.default_rng(0)
    guard, w = StepGuard(1.0, 0.5, noise=1.0), np.zeros(50)
    for _ in range(200):
        gradient = rng.standard_normal(50)
        guard.observe(w, gradient)
        w = w - guard.step_size * gradient
    assert guard.step_size > 0.5


def test_a_ridge_penalty_has_the_same_limit_in_columns_of_unequal_bounds() -> None:
    """Columns are scaled by their bounds, and the penalty is that of the columns as they are."""
    X, margins, _, bounds = drawn("skewed")
    y = np.clip(margins - margins.mean(), -6.0, 10.0)
    common = {"alpha": 0.05, "bounds": Bounds(feature=bounds.feature, target=(-6.0, 10.0))}
    exact = Ridge(float("inf"), **common).fit(X, y)
    model = Ridge(1000.0, solver=GradientDescent(), random_state=5, **common).fit(X, y)
    assert np.allclose(model.coef_, exact.coef_, atol=0.03)
