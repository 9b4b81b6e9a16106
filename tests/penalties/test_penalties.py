"""The contract of a penalty, on examples of every built-in."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from dpglm.penalties import (
    L1,
    L2,
    PENALTIES,
    Bounded,
    Box,
    ElasticNet,
    Fused,
    GraphFused,
    GroupL2,
    Hierarchy,
    L1Ball,
    Lovasz,
    Separable,
    Submodular,
    TotalVariation,
    Zero,
)
from dpglm.penalties.separable import RescaledPenalty
from dpglm.penalties.set_functions import AnyFeature, Cardinality, Custom, GroupCover, Ordered, Range


def root(features):
    return len(features) ** 0.5


def balance(features):
    return float(len(features) * (6 - len(features)))


RINGS = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (0, 3)]


EXAMPLES = [
    Zero(),
    L1(0.0),
    L1(0.7),
    L2(0.0),
    L2(2.5),
    ElasticNet(0.4, 1.5),
    ElasticNet(0.0, 1.0),
    Box(-1.0, 2.0),
    Box(0.0, math.inf),
    Box(-math.inf, -0.5),
    Box(1.0, 1.0),
    Bounded(-1.0, math.inf, l1=0.3, l2=1.5),
    L1Ball(1.0),
    L1Ball(30.0),
    Submodular(0.0, Cardinality()),
    Submodular(0.7, AnyFeature()),
    Submodular(0.7, Ordered((3.0, 2.0, 2.0, 1.0, 0.5, 0.0))),
    Submodular(0.7, GroupCover([[0, 1], [2, 3, 4], [5]])),
    Submodular(0.7, GroupCover([[0, 1, 2], [1, 2, 3], [3, 4], [4, 5, 0]])),
    Submodular(0.2, Range(6)),
    Submodular(0.3, GroupCover([[0, 1], [2, 3, 4], [5]]), l2=0.5),
    Submodular(0.7, Custom(root, 6)),
    GroupL2(0.0, [[0, 1, 2, 3, 4, 5]]),
    GroupL2(0.7, [[0, 1], [2, 3, 4], [5]]),
    GroupL2(0.7, [[5, 0], [2, 3, 4], [1]], weights=[1.0, 0.0, 2.5], l1=0.3, l2=0.5),
    GroupL2(0.7, [[0, 1], [2], [0, 1, 2, 3], [4, 5]], weights=[1.0, 2.0, 0.5, 0.3]),
    Hierarchy(0.7, [-1, 0, 0, 1, 1, -1]),
    Hierarchy(0.7, [-1, 0, 1, 2, 3, 4], l2=0.5),
    TotalVariation(0.0),
    TotalVariation(0.7),
    TotalVariation(0.7, l2=0.5),
    GraphFused(0.7, RINGS, [1.0, 2.0, 0.5, 0.0, 0.3, 1.0]),
    GraphFused(0.7, [(0, 1), (1, 2), (4, 3)]),
    Fused(0.7, 0.4),
    Fused(0.3, 0.4, RINGS, l2=0.5),
    Lovasz(0.2, balance, 6),
]
EVERY = pytest.mark.parametrize("penalty", EXAMPLES, ids=repr)
SEPARABLE = pytest.mark.parametrize("penalty", [p for p in EXAMPLES if isinstance(p, Separable)], ids=repr)
BALLS = pytest.mark.parametrize("penalty", [p for p in EXAMPLES if isinstance(p, L1Ball)], ids=repr)

# Without a fill every entry is drawn alone, which is also faster.
VECTORS = arrays(np.float64, 6, elements=st.floats(-50, 50), fill=st.nothing())
STEPS = st.floats(0, 20)


def objective(penalty, u, w, step):
    value = penalty.value(u)
    return math.inf if math.isinf(value) else np.sum((u - w) ** 2) / 2 + step * value


def feasible(penalty, u):
    return penalty.prox(u, 0.0)


def test_every_built_in_has_an_example():
    assert {type(p) for p in EXAMPLES} == set(PENALTIES)


@EVERY
@given(w=VECTORS, step=STEPS, competitor=VECTORS, nearness=st.floats(0, 1))
def test_prox_beats_every_competitor(penalty, w, step, competitor, nearness):
    best = penalty.prox(w, step)
    other = feasible(penalty, best + nearness**4 * (competitor - best))
    least = objective(penalty, best, w, step)
    assert math.isfinite(least)
    assert least <= objective(penalty, other, w, step) + 1e-9 * (1 + abs(least))


@EVERY
@given(w=VECTORS, v=VECTORS, step=STEPS)
def test_prox_never_moves_two_points_apart(penalty, w, v, step):
    moved = np.linalg.norm(penalty.prox(w, step) - penalty.prox(v, step))
    assert moved <= np.linalg.norm(w - v) * (1 + 1e-12) + 1e-12


@EVERY
@given(w=VECTORS, v=VECTORS, weight=st.floats(0, 1))
def test_value_is_convex_and_as_strongly_as_promised(penalty, w, v, weight):
    w, v = feasible(penalty, w), feasible(penalty, v)
    m = penalty.strong_convexity
    mixed = penalty.value(weight * w + (1 - weight) * v)
    bound = weight * penalty.value(w) + (1 - weight) * penalty.value(v)
    bound -= m / 2 * weight * (1 - weight) * np.sum((w - v) ** 2)
    assert mixed <= bound + 1e-9 * (1 + abs(bound))


@EVERY
@given(w=VECTORS, step=STEPS)
def test_prox_leaves_its_argument_alone(penalty, w, step):
    before = w.copy()
    result = penalty.prox(w, step)
    assert result.shape == w.shape
    result[:] = 7.0
    np.testing.assert_array_equal(w, before)


@SEPARABLE
@given(v=st.floats(-20, 20), step=st.floats(0.01, 10))
def test_prox_of_one_coordinate_is_the_numerical_minimiser(penalty, v, step):
    l1, l2, low, high = penalty.coordinate_form()
    low, high = max(low, -25.0), min(high, 25.0)
    found = minimize_scalar(
        lambda u: (u - v) ** 2 / 2 + step * (l1 * abs(u) + l2 / 2 * u * u),
        bounds=(low - 1e-12, high + 1e-12),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert penalty.prox(np.array([v]), step)[0] == pytest.approx(found.x, abs=1e-5)


@SEPARABLE
@given(w=VECTORS, steps=arrays(np.float64, 6, elements=STEPS, fill=st.nothing()))
def test_prox_with_a_step_for_each_coordinate_moves_each_as_if_alone(penalty, w, steps):
    whole = penalty.prox(w, steps)
    alone = [penalty.prox(np.array([w_j]), float(t))[0] for w_j, t in zip(w, steps, strict=True)]
    np.testing.assert_array_equal(whole, alone)


@SEPARABLE
@given(w=VECTORS, step=STEPS)
def test_coordinate_form_gives_prox_and_value(penalty, w, step):
    l1, l2, low, high = penalty.coordinate_form()
    soft = np.where(w > 0, 1, -1) * np.clip(np.abs(w) - step * l1, 0, None)
    expected = np.minimum(np.maximum(soft / (1 + step * l2), low), high)
    np.testing.assert_allclose(penalty.prox(w, step), expected, rtol=1e-14)
    inside = np.clip(w, low, high)
    by_hand = sum(l1 * abs(u) + l2 / 2 * u**2 for u in inside)
    assert penalty.value(inside) == pytest.approx(by_hand, rel=1e-12)


@given(w=VECTORS)
def test_values_are_the_documented_formulas(w):
    l1, squares = np.abs(w).sum(), w @ w
    assert Zero().value(w) == 0.0
    assert L1(0.7).value(w) == pytest.approx(0.7 * l1)
    assert L2(2.5).value(w) == pytest.approx(2.5 / 2 * squares)
    assert ElasticNet(l1=0.4, l2=1.5).value(w) == pytest.approx(0.4 * l1 + 1.5 / 2 * squares)
    assert (Box(-1.0, 2.0).value(w) == 0.0) == bool(np.all((w >= -1.0 - 1e-9) & (w <= 2.0 + 2e-9)))
    np.testing.assert_array_equal(Box(-1.0, 2.0).prox(w, 3.0), np.clip(w, -1.0, 2.0))
    assert L1Ball(400.0).value(w) == 0.0


@SEPARABLE
def test_strong_convexity_is_the_quadratic_part(penalty):
    assert penalty.strong_convexity == penalty.coordinate_form()[1]
    assert isinstance(penalty, Separable)


@EVERY
@given(w=VECTORS)
def test_a_penalty_that_is_none_changes_nothing(penalty, w):
    if penalty.is_zero:
        assert penalty.value(w) == 0
        np.testing.assert_array_equal(penalty.prox(w, 2.0), w)


def test_no_penalty_is_recognised():
    none = [
        *(Zero(), L1(0), L2(0.0), ElasticNet(0, 0), Box(-math.inf, math.inf), Submodular(0, Cardinality())),
        *(GroupL2(0, [range(6)]), GroupL2(1, [range(6)], weights=[0]), Hierarchy(0, [-1])),
    ]
    none += [TotalVariation(0), Fused(0, 0.0), GraphFused(0.0, RINGS)]
    assert all(penalty.is_zero for penalty in none)
    assert not any(p.is_zero for p in EXAMPLES if p not in none)


@BALLS
@given(w=VECTORS)
def test_projection_is_feasible_idempotent_and_exact_inside(penalty, w):
    once = penalty.prox(w, 1.0)
    assert penalty.value(once) == 0.0
    np.testing.assert_allclose(penalty.prox(once, 1.0), once, atol=1e-12)
    inside = once * 0.99
    np.testing.assert_array_equal(penalty.prox(inside, 1.0), inside)


@BALLS
@given(w=VECTORS, point=VECTORS)
def test_projection_makes_an_obtuse_angle_with_every_feasible_point(penalty, w, point):
    nearest = penalty.prox(w, 1.0)
    assert (w - nearest) @ (penalty.prox(point, 1.0) - nearest) <= 1e-9 * (1 + w @ w)


def test_projection_onto_the_l1_ball_survives_huge_coefficients():
    np.testing.assert_allclose(L1Ball(1.0).prox(np.array([1e20, -3.0, 0.0]), 1.0), [1, 0, 0])
    np.testing.assert_allclose(L1Ball(1.0).prox(np.array([1e20, -1e20]), 1.0), [0.5, -0.5])


def test_projection_onto_the_l1_ball_solves_its_optimality_condition():
    rng = np.random.default_rng(1)
    for p in (1, 2, 1000):
        w = rng.standard_cauchy(p)
        radius = np.abs(w).sum() / 3
        nearest = L1Ball(radius).prox(w, 1.0)
        assert np.abs(nearest).sum() == pytest.approx(radius, rel=1e-12)
        kept = nearest != 0
        threshold = np.abs(w[kept]) - np.abs(nearest[kept])
        np.testing.assert_allclose(threshold, threshold[0], atol=1e-12 * np.abs(w).max())
        assert np.all(np.abs(w[~kept]) <= threshold[0] * (1 + 1e-9))


@pytest.mark.parametrize("penalty", [Box(-1.0, 2.0), Box(0.0, math.inf), L1Ball(1.0)], ids=repr)
def test_value_is_infinite_outside_and_forgives_rounding(penalty):
    edge = penalty.prox(np.array([-50.0, 50.0]), 1.0)
    assert penalty.value(edge) == 0.0
    nudge = np.array([-1.0, 0.0])
    assert penalty.value(edge + 1e-12 * nudge) == 0.0
    assert math.isinf(penalty.value(edge + 1.5 * nudge))


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (L1, "strength"),
        (L2, "strength"),
        (lambda v: ElasticNet(v, 1.0), "l1"),
        (lambda v: ElasticNet(1.0, v), "l2"),
        (L1Ball, "radius"),
    ],
)
def test_strengths_and_radii_must_be_finite_and_not_negative(make, name, wrong):
    with pytest.raises(ValueError, match=name):
        make(wrong)


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [(2.0, 1.0, "low"), (math.nan, 1.0, "low"), (0.0, math.nan, "high"), (math.inf, math.inf, "low")],
)
def test_a_box_needs_ordered_ends(low, high, name):
    with pytest.raises(ValueError, match=name):
        Box(low, high)


def test_an_empty_l1_ball_is_refused():
    with pytest.raises(ValueError, match="radius"):
        L1Ball(0.0)


def test_penalties_are_frozen_values():
    assert L1(0.5) == L1(0.5)
    assert len({L1(0.5), L1(0.5), L2(0.5)}) == 2
    with pytest.raises(FrozenInstanceError):
        L1(0.5).strength = 1.0


@pytest.mark.parametrize("penalty", [L1(0.3), L2(0.7), ElasticNet(0.2, 0.5), Box(-0.4, 0.1), Zero()])
@pytest.mark.parametrize("quadratic", [0.0, 0.3])
def test_a_penalty_in_scaled_columns_is_that_of_the_columns_as_they_are(penalty, quadratic):
    scales, step, rng = np.array([1.0, 0.25, 0.01]), 0.6, np.random.default_rng(0)
    scaled = RescaledPenalty(penalty, scales, quadratic)
    for v in rng.normal(size=(20, 3)) * [1.0, 1.0, 30.0]:
        u = scaled.prox(v, step)
        assert scaled.value(u) == pytest.approx(penalty.value(scales * u) + quadratic / 2 * u @ u)

        def objective(point, v=v):
            return np.sum(np.square(point - v)) / 2 + step * scaled.value(point)

        others = u + rng.normal(size=(50, 3)) * 10.0 ** rng.uniform(-4, 1, (50, 1))
        assert all(objective(u) <= objective(other) for other in others)
    assert scaled.strong_convexity == pytest.approx(penalty.strong_convexity * 1e-4 + quadratic)
