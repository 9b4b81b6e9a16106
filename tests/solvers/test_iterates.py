"""Iterates: their mean, those that are kept, and models that follow from the last one, with their credit."""

import math

import numpy as np
import pytest

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Huber, Logistic, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L2, L1Ball, Zero
from dpglm.problem import Problem
from dpglm.solvers import (
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
    PreconditionedDescent,
    run,
)
from dpglm.solvers.iterates import (
    Iterates,
    Quadratic,
    TailMean,
    freedom_of_largest,
    optimism_of,
    tail_weights,
)

N, P = 400, 6
BOUNDS = Bounds(feature=1.0, target=(-2, 2))


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8, 9, 500])
def test_the_mean_is_over_the_tail_of_of_the_iterates_rounded_up(steps):
    iterates = np.random.default_rng(steps).standard_normal((steps, 3))
    tail = TailMean(steps, iterates[0])
    for w in iterates:
        tail.add(w)
    count = math.ceil(steps / 4)
    assert np.allclose(tail.mean, iterates[-count:].mean(axis=0))
    assert tail_weights(steps).tolist() == [0.0] * (steps - count) + [1.0] * count


def test_noisy_iterates_are_kept_as_their_mean_since_the_last_stop():
    iterates, points = Iterates([2, 5]), np.arange(12.0).reshape(6, 2)
    for steps, w in enumerate(points, start=1):
        iterates.add_noisy(steps, w, lambda mean: 10 * mean)
    assert [model.name for model in iterates.models] == ["2 steps", "5 steps"]
    expected = 10 * points[:2].mean(axis=0), 10 * points[2:5].mean(axis=0)
    assert all(np.allclose(model.w, w) for model, w in zip(iterates.models, expected, strict=True))


@pytest.mark.parametrize(
    ("solver", "penalty"),
    [
        (GradientDescent(steps=8), L2(0.1)),
        (PreconditionedDescent(steps=8), L2(0.1)),
        (GreedyCoordinateDescent(steps=8), L2(0.1)),
        (FrankWolfe(steps=8), L1Ball(1.0)),
        (Newton(rounds=8, intervals=False), L2(0.1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_run_returns_models_at_its_stops_only_if_it_is_asked_and_else_does_the_same(solver, penalty):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (N, P)), np.resize([1.0, -1.0], N)
    problem = Problem(Logistic(), penalty, Bounds(feature=1.0))
    plan = solver.plan(problem, N, P, Budget(5.0, 1e-6), Neighbours.REPLACE_ONE)
    records = as_data(X, y, problem.bounds, problem.constant(P))
    plain, kept, none = (
        run(plan, problem, Curator(records, Neighbours.REPLACE_ONE, Randomness(3)), stops)
        for stops in (None, [2, 4], [])
    )
    assert np.array_equal(plain.w, kept.w) and np.array_equal(plain.w, none.w)
    assert plain.iterates == () and [model.name for model in kept.iterates[:2]] == ["2 steps", "4 steps"]
    derived = [model.name for model in none.iterates]
    assert derived == [model.name for model in kept.iterates[2:]]
    assert bool(derived) == bool({"sparse", "ridge"} & set(solver.path))


@pytest.fixture(scope="module")
def regression():
    """A table, its least squares fit, and the quadratic whose minimiser that is; optimism 1."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (N, P)), np.ones(N)])
    y = X[:, 0] - X[:, 1] + 0.3 + 0.1 * rng.standard_normal(N)
    gram = X.T @ X / N
    to_records = np.linalg.inv(np.linalg.cholesky(gram).T)
    unit = np.diag(np.append(np.ones(P), 0.0))
    return X, y, np.linalg.lstsq(X, y)[0], Quadratic(to_records, to_records.T @ unit @ to_records, 1.0)


def test_a_sparse_model_is_the_least_squares_fit_of_its_features_and_the_last_one_is_the_mean(regression):
    X, y, w, quadratic = regression
    models = list(quadratic.sparse_models(Problem(Squared(), Zero(), BOUNDS), w))
    assert [model.name for model in models] == ["3 features", "1 feature", "0 features"]
    for model in models:
        kept = np.append(np.flatnonzero(model.w[:P]), P)
        assert model.w[kept] == pytest.approx(np.linalg.lstsq(X[:, kept], y)[0])
    assert models[-1].w[P] == pytest.approx(y.mean())


def test_a_ridge_model_minimises_with_its_penalty_and_is_credited_with_the_freedom_that_it_gives_up(
    regression,
):
    X, y, w, quadratic = regression
    for model in quadratic.ridge_models(w):
        slopes = X.T @ (y - X @ model.w) / N
        strength = slopes[0] / model.w[0]
        assert slopes[:P] == pytest.approx(strength * model.w[:P], abs=1e-9)
        assert slopes[P] == pytest.approx(0.0, abs=1e-9)
        penalised = X.T @ X / N + np.diag(np.append(np.full(P, strength), 0.0))
        freedom = np.trace(np.linalg.solve(penalised, X.T @ X / N))
        assert model.credit == pytest.approx(P + 1 - freedom, rel=1e-6)


def test_largest_coefficients_of_noise_have_the_stated_degrees_of_freedom():
    squares = np.sort(np.random.default_rng(0).standard_normal((4_000, 200)) ** 2, axis=1)[:, ::-1]
    for count in (3, 25, 100):
        assert squares[:, :count].sum(axis=1).mean() == pytest.approx(
            freedom_of_largest(count, 200), rel=0.05
        )
    assert freedom_of_largest(0, 200) == 0.0 and freedom_of_largest(200, 200) == 200.0


def test_the_credit_of_few_features_of_noise_is_half_of_what_they_gain_more_on_other_rows():
    """Mallows' correction is the whole of it, if residuals have the variance of targets."""
    rng, n, p = np.random.default_rng(0), 1_000, 40
    problem = Problem(Squared(), Zero(), Bounds(feature=2.0, target=(-4, 4)), fit_intercept=False)
    more, credits = [], []
    for _ in range(200):
        X, other = rng.uniform(-2, 2, (2, n, p))
        y, targets = rng.standard_normal((2, n))
        w = np.linalg.lstsq(X, y)[0]
        to_records = np.linalg.inv(np.linalg.cholesky(X.T @ X / n).T)
        quadratic = Quadratic(to_records, np.eye(p), optimism_of(problem, 1.0 / 4.0))
        model = next(m for m in quadratic.sparse_models(problem, w) if m.name == "2 features")
        own, others = (
            np.sum((b - A @ w) ** 2) - np.sum((b - A @ model.w) ** 2) for A, b in ((X, y), (other, targets))
        )
        more.append(others - own)
        credits.append(model.credit)
    assert np.mean(more) == pytest.approx(2 * np.mean(credits), rel=0.12)


@pytest.mark.parametrize(
    ("problem", "spread", "expected"),
    [
        (Problem(Logistic(), Zero(), Bounds(feature=1.0)), 1.0, 0.5),
        (Problem(Logistic(), Zero(), Bounds(feature=1.0, weight=2.0)), 1.0, 0.0),
        (Problem(Squared(), L2(0.1), BOUNDS), 0.5, 1.0),
        (Problem(Squared(), L2(0.1), BOUNDS), 1.0, 0.0),
        (Problem(Huber(1.0), Zero(), BOUNDS), 0.25, 0.25),
    ],
)
def test_optimism_follows_from_the_loss_and_the_spread_of_targets(problem, spread, expected):
    assert optimism_of(problem, spread) == expected


def test_a_constraint_has_no_sparse_models(regression):
    _, _, w, quadratic = regression
    assert not list(quadratic.sparse_models(Problem(Squared(), L1Ball(5.0), BOUNDS), w))
