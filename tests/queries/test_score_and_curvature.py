"""Gradient, Hessian and covariance of the scores in one release (docs/proofs/score_and_curvature.md)."""

import math

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.bounds import Coordinates
from dpglm.data import as_data
from dpglm.losses import Huber, LogCosh, Logistic
from dpglm.privacy import PUBLIC_SIZE
from dpglm.queries import ScoreAndCurvature
from dpglm.testing import check_query

BOUNDS = Bounds(row_norm=1.0, target=(-1, 1))
LOSSES = pytest.mark.parametrize("loss", [Logistic(), LogCosh(0.3)], ids=repr)


def query(loss, neighbours, intercept=False, less=1.0, leverage=1.7, n=4):
    coordinates = Coordinates(np.zeros(4), np.ones(4), intercept)
    made = ScoreAndCurvature(loss, coordinates, leverage, ScoreAndCurvature.weight_for(loss, neighbours), n)
    object.__setattr__(made, "weight", less * made.weight)
    return made


def opposed_and_flat(query, rng, count=4000):
    """The largest share of the sensitivity among pairs that differ in slope, curvature and direction."""
    allowed, worst = query.sensitivity(Neighbours.REPLACE_ONE), 0.0
    metric = np.eye(4) * 1.7
    for _ in range(count):
        x = rng.standard_normal(4)
        x /= np.linalg.norm(x)
        other = x + rng.choice([0.0, 0.3, 3.0]) * rng.standard_normal(4)
        other /= np.linalg.norm(other)
        sizes = rng.choice([1.0, rng.uniform(0.3, 1.0)], 2)
        w = rng.standard_normal(4) * 10 ** rng.uniform(-1, 2)
        pair = [
            np.asarray(query(as_data(size * row[None], np.array([y]), BOUNDS), metric, w))
            for size, row, y in zip(sizes, (x, other), rng.choice([-1.0, 1.0], 2), strict=True)
        ]
        worst = max(worst, float(np.linalg.norm(pair[0] - pair[1])) / allowed)
    return worst


@LOSSES
@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_sensitivity_holds_and_is_reached(loss, neighbours, intercept):
    """Over more than three thousand pairs in all."""
    share = check_query(
        query(loss, neighbours, intercept), neighbours, BOUNDS, constant=float(intercept), pairs=400
    )
    assert 0.999 <= share <= 1 + 1e-9


@LOSSES
def test_no_pair_exceeds_the_sensitivity(loss):
    assert opposed_and_flat(query(loss, Neighbours.REPLACE_ONE), np.random.default_rng(0), 2_000) <= 1 + 1e-9


@LOSSES
def test_with_a_weight_that_is_a_fifth_less_the_sensitivity_is_exceeded(loss):
    """One record has the largest slope, the other nearly that of the other sign, and some curvature."""
    rows = np.array([[1.0, 1e-3, 0, 0], [1.0, 0, 1e-3, 0]]) / math.hypot(1, 1e-3)
    targets = (-1.0, 1.0) if loss.kind == "classification" else (0.0, 0.0)

    def largest_share(less):
        asked = query(loss, Neighbours.REPLACE_ONE, less=less)
        moved = []
        for z in np.linspace(-4, 0, 200) * loss.lipschitz():
            w = np.array([0.0, 1e9, 1e3 * z, 0])
            pair = [
                np.asarray(asked(as_data(row[None], np.array([y]), BOUNDS), 1.7 * np.eye(4), w))
                for row, y in zip(rows, targets, strict=True)
            ]
            moved.append(float(np.linalg.norm(pair[0] - pair[1])))
        return max(moved) / asked.sensitivity(Neighbours.REPLACE_ONE)

    assert 0.999 < largest_share(1.0) <= 1 + 1e-9
    assert largest_share(0.8) > 1.05


def test_a_weight_below_the_least_is_refused():
    coordinates = Coordinates(np.zeros(2), np.ones(2), False)
    with pytest.raises(ValueError, match="weight must be at least"):
        ScoreAndCurvature(Logistic(), coordinates, 1.0, 0.12, 10)
    with pytest.raises(ValueError, match="leverage"):
        ScoreAndCurvature(Logistic(), coordinates, 1e-200, 0.2, 10)


@LOSSES
@pytest.mark.parametrize("layout", [np.array, np.asfortranarray])
def test_the_parts_are_the_weighted_sums(loss, layout):
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-3, 5, (300, 3)), rng.choice([-1.0, 1.0], 300)
    bounds = Bounds(feature=(-3.0, 5.0), target=(-1, 1))
    coordinates = Coordinates(np.full(3, 1.0), np.full(3, 4.0), True)
    asked = ScoreAndCurvature(
        loss, coordinates, 1.2, ScoreAndCurvature.weight_for(loss, Neighbours.REPLACE_ONE), 300
    )
    metric, w = rng.standard_normal((4, 4)), rng.standard_normal(4)
    found = asked.parts(np.asarray(asked(as_data(layout(X), y, bounds, 2.0), metric, w)))
    rows = np.column_stack([(X - 1) / 4, np.ones(300)])
    u, z = rows @ metric, rows @ w
    omega = np.minimum(1, 1.2**2 / np.square(u).sum(axis=1))
    e, k = loss.derivative(z, y) / loss.lipschitz(), loss.curvature(z, y)
    assert np.allclose(found.gradient, u.T @ (omega * e), atol=1e-3)
    assert np.allclose(found.hessian, (u * (omega * k)[:, None]).T @ u, atol=1e-3)
    assert np.allclose(found.scores, (u * np.square(omega * e)[:, None]).T @ u, atol=1e-3)


def test_without_a_limit_the_parts_are_exact_and_in_the_coordinates_of_the_records():
    rng = np.random.default_rng(3)
    X, y, w = rng.standard_normal((200, 3)), rng.choice([-1.0, 1.0], 200), rng.standard_normal(4)
    coordinates = Coordinates(np.zeros(3), np.ones(3), True)
    asked = ScoreAndCurvature(Logistic(), coordinates, math.inf, 1.0, 200)
    records = as_data(X, y, Bounds(row_norm=math.inf), 1.0)
    found = asked.parts(np.asarray(asked(records, np.eye(4), w)))
    rows = np.column_stack([X, np.ones(200)])
    z = rows @ w
    e, k = Logistic().derivative(z, y), Logistic().curvature(z, y)
    assert np.allclose(found.gradient, rows.T @ e, rtol=1e-12)
    assert np.allclose(found.hessian, (rows * k[:, None]).T @ rows, rtol=1e-12)
    assert np.allclose(found.scores, (rows * np.square(e)[:, None]).T @ rows, rtol=1e-12)
    assert math.isinf(asked.sensitivity(Neighbours.REPLACE_ONE))


def test_a_loss_that_breaks_its_statement_breaks_no_sensitivity():
    """Curvature is cut beside the slope: a loss whose curvature stays where its slope ends is harmless."""
    lie = type("Lie", (Huber,), {"joint_constant": lambda self: 0.25})(0.3)
    coordinates = Coordinates(np.zeros(4), np.ones(4), False)
    asked = ScoreAndCurvature(lie, coordinates, 1.7, math.sqrt(25 / 96), 4)
    assert opposed_and_flat(asked, np.random.default_rng(4), 1_000) <= 1 + 1e-9
