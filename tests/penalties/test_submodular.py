"""Norms of set functions, against their definitions over all sets and against general solvers."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize
from sklearn.base import clone

from dpglm import Bounds, GLMRegressor, LogisticRegression
from dpglm.penalties import (
    L1,
    SET_FUNCTIONS,
    AnyFeature,
    Cardinality,
    Custom,
    GroupCover,
    L1Ball,
    Ordered,
    Range,
    SetFunction,
    Submodular,
    check_set_function,
    gaussian_width,
)

P = 6
TABLE = np.random.default_rng(5).standard_normal((8, P))


def information(features):
    """Log-determinant of some columns: submodular, and no two features have the same part in it."""
    some = TABLE[:, features]
    return float(np.linalg.slogdet(np.eye(len(features)) + some.T @ some)[1])


def root(features):
    return len(features) ** 0.5


FUNCTIONS = [
    Cardinality(),
    AnyFeature(),
    Ordered((3.0, 2.0, 2.0, 1.0, 0.5, 0.0)),
    GroupCover([[0, 1], [2, 3, 4], [5]], [1.0, 2.0, 0.5]),
    GroupCover([[0, 1], [2], [3], [0, 1, 2, 3], [4, 5]], [1.0, 2.0, 0.5, 0.3, 0.7]),
    GroupCover([[0, 1, 2], [1, 2, 3], [3, 4], [4, 5, 0]], [1.0, 2.0, 0.5, 0.3]),
    Range(P),
    Custom(information, P),
    Custom(root, P),
]
EVERY = pytest.mark.parametrize("function", FUNCTIONS, ids=repr)
VECTORS = arrays(np.float64, P, elements=st.floats(-50, 50), fill=st.nothing())
SUBNORMAL = 1e-300
"""Far below it, products have no relative precision."""
CASES = 120  # of each function, for each comparison with a solver

SETS = np.array(list(itertools.product([0.0, 1.0], repeat=P))[1:])


def prices(function):
    return np.array([function.value(np.flatnonzero(members)) for members in SETS])


def vectors(seed):
    """Vectors of many scales, a third of them with ties and zeros."""
    rng = np.random.default_rng(seed)
    for k in range(CASES):
        w = rng.standard_normal(P) * 10.0 ** rng.uniform(-1, 1)
        yield (np.round(w) if k % 3 == 0 else w), rng.exponential()


def projection(price, size):
    """The s nearest to size with s(A) <= price(A) for all A, by sequential quadratic programming."""
    unit = np.linalg.norm(size) or 1.0
    found = minimize(
        lambda s: np.sum((s - size / unit) ** 2) / 2,
        np.zeros(P),
        jac=lambda s: s - size / unit,
        constraints={"type": "ineq", "fun": lambda s: price / unit - SETS @ s, "jac": lambda s: -SETS},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 200},
    )
    return unit * found.x


def test_every_built_in_has_an_example():
    assert {type(function) for function in FUNCTIONS} == set(SET_FUNCTIONS)


@EVERY
def test_prox_agrees_with_a_general_solver(function):
    price = prices(function)
    for w, step in vectors(1):
        expected = np.sign(w) * (np.abs(w) - projection(step * price, np.abs(w)))
        np.testing.assert_allclose(function.prox(w, step), expected, rtol=0, atol=1e-8)


@EVERY
def test_linear_minimiser_agrees_with_a_linear_program(function):
    price = prices(function)
    for g, _ in vectors(2):
        vertex = function.linear_minimiser(g)
        assert np.all(SETS @ np.abs(vertex) <= price + 1e-12)
        size = np.abs(g) / (np.abs(g).max() or 1.0)
        best = linprog(-size, SETS, price, bounds=(0, None)).fun * np.abs(g).max()
        assert g @ vertex == pytest.approx(best, abs=1e-8)


@EVERY
def test_norm_is_the_best_of_all_orders(function):
    orders = np.array(list(itertools.permutations(range(P))))
    gains = np.array([function.gains(order) for order in orders])
    for w, _ in vectors(3):
        assert function.norm(w) == pytest.approx(np.max(np.sum(np.abs(w)[orders] * gains, axis=1)), rel=1e-12)


@EVERY
def test_norm_of_a_pattern_of_signs_is_the_value_of_its_set(function):
    rng = np.random.default_rng(4)
    for members, price in zip(SETS, prices(function), strict=True):
        assert function.norm(rng.choice([-1.0, 1.0], P) * members) == pytest.approx(price, rel=1e-12)


@EVERY
@given(w=VECTORS, v=VECTORS, factor=st.floats(-10, 10))
def test_norm_is_a_norm(function, w, v, factor):
    assert function.norm(np.zeros(P)) == 0.0
    assert function.norm(w) >= np.max(np.abs(w)) * min(prices(function)) * (1 - 1e-12)
    assert function.norm(factor * w) == pytest.approx(abs(factor) * function.norm(w), rel=1e-12)
    assert function.norm(w + v) <= (function.norm(w) + function.norm(v)) * (1 + 1e-12) + SUBNORMAL


@EVERY
def test_dual_norm_is_the_largest_ratio_over_all_sets(function):
    price = prices(function)
    assert function.dual_norm(np.zeros(P)) == 0.0
    for g, _ in vectors(5):
        assert function.dual_norm(g) == pytest.approx(np.max(SETS @ np.abs(g) / price), rel=1e-12)


@EVERY
@given(w=VECTORS, g=VECTORS)
def test_inner_products_are_at_most_norm_times_dual_norm(function, w, g):
    assert w @ g <= function.norm(w) * function.dual_norm(g) * (1 + 1e-12) + SUBNORMAL
    assert -g @ function.linear_minimiser(g) == pytest.approx(function.norm(g), rel=1e-12)


@EVERY
@given(w=VECTORS, step=st.floats(0.01, 20))
def test_what_a_proximal_step_takes_away_is_the_projection_onto_the_dual_ball(function, w, step):
    kept = function.prox(w, step)
    taken = (w - kept) / step
    assert function.dual_norm(taken) <= 1 + 1e-9
    assert taken @ kept == pytest.approx(function.norm(kept), rel=1e-9, abs=1e-9)


@EVERY
def test_a_proximal_step_of_the_dual_norm_or_more_leaves_nothing(function):
    for w, _ in vectors(6):
        least = function.dual_norm(w)
        assert np.all(np.abs(function.prox(w, least)) <= 1e-12 * np.abs(w).max())
        assert least == 0 or np.any(function.prox(w, 0.999 * least))


def large_functions(p):
    tens = [range(k, k + 10) for k in range(0, p, 10)]
    return [
        Cardinality(),
        AnyFeature(),
        Ordered(np.sqrt(np.arange(p, 0, -1))),
        GroupCover(tens),
        GroupCover([*([j] for j in range(p)), *tens, range(p)]),
        Range(p),
    ]


@dataclass(frozen=True)
class Hidden(SetFunction):
    """A function of which nothing but its gains is known."""

    function: SetFunction

    def gains(self, order):
        return self.function.gains(order)


@pytest.mark.parametrize("function", large_functions(40), ids=lambda function: type(function).__name__)
def test_closed_forms_agree_with_the_general_algorithm(function):
    rng = np.random.default_rng(7)
    for _ in range(4):
        w = rng.standard_normal(40)
        assert function.dual_norm(w) == pytest.approx(Hidden(function).dual_norm(w), rel=1e-12)
        step = function.dual_norm(w) * rng.uniform(0.02, 0.5)
        general = Hidden(function).prox(w, step)
        np.testing.assert_allclose(function.prox(w, step), general, rtol=0, atol=1e-10)


def test_proximal_steps_of_well_known_norms():
    rng = np.random.default_rng(8)
    for _ in range(50):
        w, step = 10 * rng.standard_normal(30), rng.exponential(5)
        np.testing.assert_allclose(Cardinality().prox(w, step), L1(1.0).prox(w, step), atol=1e-13)
        np.testing.assert_allclose(AnyFeature().prox(w, step), w - L1Ball(step).prox(w, 1.0), atol=1e-12)
        groups = GroupCover([range(10), range(10, 30)], [1.0, 2.0])
        parts = w[:10] - L1Ball(step).prox(w[:10], 1.0), w[10:] - L1Ball(2 * step).prox(w[10:], 1.0)
        np.testing.assert_allclose(groups.prox(w, step), np.concatenate(parts), atol=1e-12)


def test_nested_and_disjoint_groups_need_no_search_over_sets(monkeypatch):
    monkeypatch.setattr(SetFunction, "minimiser", None)
    w = np.arange(1.0, 7.0)
    for groups in (
        [[0, 1], [2, 3, 4, 5]],
        [[3], range(6), [0, 1], [2, 3], [4, 5], [0, 1, 2, 3]],
        [[0] * 6, range(6)],
    ):
        assert np.any(GroupCover(groups).prox(w, 0.1) < w) and GroupCover(groups).dual_norm(w) > 0
    with pytest.raises(TypeError):
        GroupCover([[0, 1, 2, 3], [3, 4, 5]]).prox(w, 0.1)


def test_the_range_leaves_intervals():
    rng = np.random.default_rng(9)
    lengths = set()
    for _ in range(200):
        w = rng.standard_normal(12)
        kept = np.flatnonzero(Range(12).prox(w, Range(12).dual_norm(w) * rng.uniform(0.1, 1)))
        assert np.array_equal(kept, np.arange(kept[0], kept[-1] + 1))
        lengths.add(len(kept))
    assert len(lengths) >= 5


def test_groups_leave_unions_of_complements():
    rng = np.random.default_rng(10)
    groups = GroupCover([[0, 1, 2], [2, 3, 4], [4, 5]])
    for _ in range(200):
        w = rng.standard_normal(P)
        kept = set(np.flatnonzero(groups.prox(w, groups.dual_norm(w) * rng.uniform(0.1, 1))))
        used = [group for group in groups.groups if kept & set(group)]
        free = {j for j in range(P) if all(group in used for group in groups.groups if j in group)}
        assert kept == free


@EVERY
def test_built_in_functions_pass_the_check(function):
    check_set_function(function, P)


@pytest.mark.parametrize("shift", [1.0, 2.0, P - 1.1])
def test_the_length_of_an_interval_needs_a_shift_of_p_minus_1_to_be_submodular(shift):
    with pytest.raises(ValueError, match="not submodular"):
        Custom(lambda features: shift + np.ptp(features) if len(features) else 0.0, P)
    Custom(lambda features: P - 1 + np.ptp(features) if len(features) else 0.0, P)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda features: 1.0 + len(features), "no features must be 0"),
        (lambda features: float(0 in features), "single feature must be positive"),
        (lambda features: -1.0 * len(features), "single feature must be positive"),
        (lambda features: math.nan if len(features) else 0.0, "single feature must be positive"),
        (lambda features: len(features) * (P - len(features) + 0.5), "must not decrease"),
        (lambda features: math.nan if len(features) > 1 else float(len(features)), "must not decrease"),
        (lambda features: len(features) ** 2.0, "not submodular"),
        (lambda features: len(features) + 1.0 * ({2, 4} <= set(features)), "not submodular"),
    ],
)
def test_a_function_without_the_properties_is_refused_by_name(function, reason):
    with pytest.raises(ValueError, match=reason):
        Custom(function, P)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Ordered(()), "first one positive"),
        (lambda: Ordered((0.0, 0.0)), "first one positive"),
        (lambda: Ordered((1.0, -1.0)), "at least 0"),
        (lambda: Ordered((1.0, math.nan)), "finite"),
        (lambda: Ordered((1.0, 2.0)), "not increase"),
        (lambda: GroupCover([[0, 2]]), "every feature"),
        (lambda: GroupCover([[-1, 0]]), "every feature"),
        (lambda: GroupCover([[0], []]), "empty"),
        (lambda: GroupCover([]), "empty"),
        (lambda: GroupCover([[0], [1]], [1.0]), "one weight for each group"),
        (lambda: GroupCover([[0]], [0.0]), "positive"),
        (lambda: Range(1), "p must be at least 2"),
        (lambda: Custom(root, 0), "p must be a whole number from 1 on"),
        (lambda: Submodular(-1.0, Cardinality()), "strength"),
        (lambda: Submodular(math.nan, Cardinality()), "strength"),
    ],
)
def test_wrong_parameters_are_refused(make, reason):
    with pytest.raises(ValueError, match=reason):
        make()


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.n_features is not None], ids=repr)
def test_a_wrong_number_of_coefficients_is_refused(function):
    penalty = Submodular(1.0, function)
    for use in (penalty.value, penalty.dual_norm, penalty.linear_minimiser, lambda w: penalty.prox(w, 1.0)):
        with pytest.raises(ValueError, match="is for 6 features, got 5"):
            use(np.ones(5))


def test_one_step_serves_all_coordinates():
    with pytest.raises(ValueError, match="one step"):
        Submodular(1.0, Range(P)).prox(np.ones(P), np.ones(P))


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if not isinstance(f, Custom)], ids=repr)
def test_gaussian_width_is_the_mean_norm(function):
    norms = [function.norm(g) for g in np.random.default_rng(11).standard_normal((4000, P))]
    error = np.std(norms) / math.sqrt(4000)
    assert gaussian_width(function, P) == pytest.approx(np.mean(norms), abs=5 * error)


def test_gaussian_width_without_a_formula_is_simulated_from_a_seed():
    exact = gaussian_width(Ordered(np.diff(np.sqrt(np.arange(P + 1)))))
    assert gaussian_width(Custom(root, P)) == pytest.approx(exact, rel=0.02)
    assert gaussian_width(Custom(root, P), draws=100) == gaussian_width(Custom(root, P), draws=100)
    assert gaussian_width(Custom(root, P), draws=100) != gaussian_width(Custom(root, P), draws=100, seed=1)


def test_gaussian_widths_that_are_known():
    single = math.sqrt(2 / math.pi)
    assert gaussian_width(Cardinality(), 1000) == pytest.approx(1000 * single, rel=1e-9)
    assert gaussian_width(AnyFeature(), 1) == pytest.approx(single, rel=1e-9)
    assert gaussian_width(AnyFeature(), 2) == pytest.approx(2 / math.sqrt(math.pi), rel=1e-9)
    assert gaussian_width(AnyFeature(), 10**6) == pytest.approx(math.sqrt(2 * math.log(10**6)), rel=0.1)
    assert gaussian_width(Range(2)) == pytest.approx(2 * single, rel=1e-9)
    nested = Ordered(np.ones(50)), GroupCover([[j] for j in range(50)])
    assert [gaussian_width(function) for function in nested] == pytest.approx([50 * single] * 2, rel=1e-9)


@pytest.mark.parametrize(("function", "n_features"), [(Cardinality(), None), (Range(3), 4)])
def test_gaussian_width_needs_the_number_of_features(function, n_features):
    with pytest.raises(ValueError, match="n_features"):
        gaussian_width(function, n_features)


@EVERY
def test_penalties_are_frozen_values_that_can_be_pickled(function):
    penalty = Submodular(0.5, function)
    assert pickle.loads(pickle.dumps(penalty)) == penalty
    assert hash(penalty) == hash(replace(penalty)) and penalty != replace(penalty, strength=1.0)
    assert repr(penalty) == f"Submodular(strength=0.5, function={function!r}, l2=0.0)"
    assert " at 0x" not in repr(penalty)
    with pytest.raises(FrozenInstanceError):
        function.weights = (1.0,)


def test_equal_functions_are_equal_however_they_are_given():
    lists = GroupCover([[1, 0], np.array([2])], np.array([1, 2]))
    tuples = GroupCover(((0, 1), (2,)), (1.0, 2.0))
    assert lists == tuples and hash(lists) == hash(tuples)
    assert len({Ordered([2, 1]), Ordered((2.0, 1.0)), Ordered((2.0, 0.5))}) == 2


@EVERY
def test_a_fit_without_noise_meets_the_optimality_condition(function):
    rng = np.random.default_rng(12)
    X = rng.uniform(-1, 1, (200, P)) / math.sqrt(P)
    y = X @ np.array([0.0, 0.0, 1.0, 0.9, 0.0, 0.0]) + 0.05 * rng.standard_normal(200)
    strength = 0.2 * function.dual_norm(X.T @ y / 200)
    model = GLMRegressor(
        epsilon=math.inf,
        penalty=Submodular(strength, function),
        bounds=Bounds(row_norm=1.0),
        fit_intercept=False,
    ).fit(X, y)
    slope = X.T @ (y - X @ model.coef_) / 200
    assert np.any(model.coef_)
    assert function.dual_norm(slope) <= strength * (1 + 1e-6)
    assert slope @ model.coef_ == pytest.approx(strength * function.norm(model.coef_), rel=1e-5)


@EVERY
def test_a_private_fit_runs_and_says_its_penalty(function):
    rng = np.random.default_rng(13)
    X = rng.uniform(-1, 1, (500, P)) / math.sqrt(P)
    model = LogisticRegression(
        epsilon=1.0, classes=[-1, 1], penalty=Submodular(0.01, function), bounds=Bounds(row_norm=1.0)
    )
    fitted = clone(model).fit(X, np.sign(X[:, 0]))
    assert np.all(np.isfinite(fitted.coef_))
    assert fitted.privacy_.public["penalty"] == repr(model.penalty)
    assert fitted.plan_.solver == "gradient descent"
