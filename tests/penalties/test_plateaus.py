"""Penalties for equal coefficients, against their definitions over all sets and against other solvers."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear
from sklearn.base import clone

from dpglm import Bounds, GLMRegressor, LogisticRegression
from dpglm.errors import UnsupportedProblem
from dpglm.kernels import proximal
from dpglm.losses import Logistic
from dpglm.penalties import L1, L2, Fused, GraphFused, Lovasz, TotalVariation, gaussian_width
from dpglm.privacy import Budget, Neighbours
from dpglm.problem import Problem
from dpglm.solvers import (
    CoordinateDescent,
    GradientDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
    PreconditionedDescent,
)

P = 8
RING = [(k, (k + 1) % P) for k in range(P)]
TANGLE = [(0, 1), (0, 2), (1, 4), (2, 3), (3, 5), (5, 6), (4, 6), (1, 6), (2, 1), (7, 5)]
WEIGHTS = [1.0, 0.25, 2.0, 0.5, 1.5, 0.0, 1.0, 0.75, 0.3, 0.2]
ISLANDS = [(1, 0), (1, 2), (5, 4), (6, 5)]


def balance(features):
    """The number of pairs of which one is in the set: a cut function of all edges."""
    return float(len(features) * (P - len(features)))


def rises(features):
    """The number of neighbours of which only the second is in the set: a directed cut."""
    return float(sum((j - 1) not in features for j in features if j > 0))


def spread(features):
    """A concave function of the share of the features: no cut function of a graph."""
    share = len(features) / P
    return math.sqrt(share) + math.sqrt(1 - share) - 1.0


def cut_function(edges, weights):
    def value(subset):
        return sum(c for (i, j), c in zip(edges, weights, strict=True) if (i in subset) != (j in subset))

    return value


CHAIN = [(k, k + 1) for k in range(P - 1)]
CASES = [
    (TotalVariation(1.0), cut_function(CHAIN, [1.0] * (P - 1))),
    (
        GraphFused(1.0, CHAIN[:5], [0.5, 1.0, 0.0, 2.0, 1.0]),
        cut_function(CHAIN[:5], [0.5, 1.0, 0.0, 2.0, 1.0]),
    ),
    (GraphFused(1.0, ISLANDS), cut_function(ISLANDS, [1.0] * 4)),
    (GraphFused(1.0, RING), cut_function(RING, [1.0] * P)),
    (GraphFused(1.0, TANGLE, WEIGHTS), cut_function(TANGLE, WEIGHTS)),
    (GraphFused(1.0, [*RING, (1, 0), (4, 5)]), cut_function([*RING, (1, 0), (4, 5)], [1.0] * (P + 2))),
    (Lovasz(1.0, balance, P), balance),
    (Lovasz(1.0, rises, P), rises),
    (Lovasz(1.0, spread, P), spread),
]
EVERY = pytest.mark.parametrize(("penalty", "function"), CASES, ids=[repr(case[0]) for case in CASES])
ALL_SETS = [tuple(np.flatnonzero(m).tolist()) for m in itertools.product([0, 1], repeat=P)]
MEMBERS = np.array([[j in subset for j in range(P)] for subset in ALL_SETS], dtype=float)


def prices(function):
    return np.array([function(subset) for subset in ALL_SETS])


def vectors(count, seed):
    """Vectors of many scales, a third of them with ties, and steps."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        w = rng.standard_normal(P) * 10.0 ** rng.uniform(-1, 1)
        yield (np.round(w) if k % 3 == 0 else w), float(rng.exponential())


def variation(edges, weights, w):
    return sum(c * abs(w[i] - w[j]) for (i, j), c in zip(edges, weights, strict=True))


@EVERY
def test_value_is_the_integral_of_the_values_of_level_sets(penalty, function):
    for w, _ in vectors(60, 1):
        ends = np.unique(w)
        inside = [function(tuple(np.flatnonzero(w > x).tolist())) for x in ends[:-1]]
        assert penalty.value(w) == pytest.approx(float(np.diff(ends) @ inside), rel=1e-12, abs=1e-12)


@EVERY
def test_value_is_the_largest_product_with_a_point_of_the_base_polytope(penalty, function):
    price = prices(function)
    for w, _ in vectors(6, 2):
        unit = np.abs(w).max() or 1.0
        best = linprog(-w / unit, MEMBERS, price, np.ones((1, P)), [0.0], bounds=(None, None))
        assert penalty.value(w) == pytest.approx(-best.fun * unit, rel=1e-9, abs=1e-9)


@EVERY
def test_level_sets_of_a_proximal_step_are_the_best_of_all_sets(penalty, function):
    price = prices(function)
    for w, step in vectors(40, 3):
        u = penalty.prox(w, step)
        scale = np.abs(w).max() + step * price.max()
        for level in (ends := np.unique(np.round(u, 9)))[:-1] + np.diff(ends) / 2:
            costs = step * price - MEMBERS @ (w - level)
            above = step * function(tuple(np.flatnonzero(u > level).tolist())) - np.sum(
                (w - level)[u > level]
            )
            assert above <= costs.min() + 1e-12 * P * scale
        # No part of a level is worth being split off, from above or from below.
        assert np.sum(w - u) == pytest.approx(0.0, abs=1e-12 * scale * P)
        assert np.all(MEMBERS @ (w - u) <= step * price + 1e-11 * scale)


@EVERY
def test_what_a_proximal_step_takes_away_is_a_subgradient(penalty, function):
    price = prices(function)
    for w, step in vectors(40, 4):
        u = penalty.prox(w, step)
        taken = (w - u) / step
        assert np.all(MEMBERS @ taken <= price + 1e-9)
        assert taken @ u == pytest.approx(penalty.value(u), rel=1e-9, abs=1e-9)


def test_a_function_of_ones_own_with_free_jumps_has_no_finite_dual_norm():
    g = -np.arange(3.0)
    assert Lovasz(1.0, rises, 3).dual_norm(g) == math.inf
    np.testing.assert_array_equal(Lovasz(1.0, rises, 3, l2=1.0).denoised(g, 1.0), g)


@pytest.mark.parametrize(("penalty", "function"), [case for case in CASES if case[1] is not rises])
def test_dual_norm_is_the_least_step_that_leaves_no_jump_that_costs(penalty, function):
    price = prices(function)
    for g, _ in vectors(20, 5):
        flat = penalty.prox(g, 1e6)
        assert penalty.value(flat) <= 1e-9 * np.abs(g).max()
        least, rest = penalty.dual_norm(g), g - flat
        ratios = (MEMBERS @ rest)[price > 0] / price[price > 0]
        assert least == pytest.approx(max(ratios.max(), 0.0), rel=1e-7, abs=1e-9)
        if least > 1e-6:
            assert penalty.value(penalty.prox(g, 0.99 * least)) > 0
            np.testing.assert_allclose(penalty.prox(g, 1.01 * least), flat, atol=1e-8 * np.abs(g).max())
        assert least == replace(penalty, strength=7.0, l2=3.0).dual_norm(g)


@pytest.mark.parametrize("p", [1, 2, 3, 50, 20_000])
def test_a_step_along_a_chain_has_a_dual_certificate(p):
    """u = w - differences of z, with z within the strength and at its ends where u jumps."""
    rng = np.random.default_rng(p)
    for strength in (0.1, 3.0, 100.0):
        w = np.repeat(rng.standard_normal(-(-p // 10)) * 5, 10)[:p] + rng.standard_normal(p)
        u = TotalVariation(strength).prox(w, 0.5)
        z, jumps = np.cumsum(w - u), np.diff(u)
        most = 0.5 * strength
        assert abs(z[-1]) <= 1e-9
        assert np.all(np.abs(z[:-1]) <= most + 1e-9)
        assert np.all(np.abs(z[:-1] + most * np.sign(jumps))[jumps != 0] <= 1e-9)


def grid(side):
    places = np.arange(side * side).reshape(side, side)
    across = np.stack([places[:, :-1].ravel(), places[:, 1:].ravel()], axis=1)
    down = np.stack([places[:-1].ravel(), places[1:].ravel()], axis=1)
    return np.concatenate([across, down])


@pytest.mark.parametrize("strength", [0.03, 0.3, 1.0, 30.0])
def test_a_step_on_a_grid_of_ten_thousand_has_a_flow_as_certificate(monkeypatch, strength):
    """By weak duality it does not matter where the flow comes from: it is checked against w and u alone."""
    rng, side = np.random.default_rng(7), 100
    edges = grid(side)
    flows, compute = [], proximal.flatten_cuts

    def kept(network, *others):
        capacity = network.left[network.twins] + network.left
        compute(network, *others)
        half = (network.left[network.twins] - network.left) / capacity.max()
        tails = np.repeat(np.arange(side * side), np.diff(network.begins))
        flows.append((tails, network.heads, half))

    monkeypatch.setattr(proximal, "flatten_cuts", kept)
    w = 3.0 * np.kron(rng.standard_normal((4, 4)), np.ones((25, 25))).ravel() + rng.standard_normal(
        side * side
    )
    u = GraphFused(strength, edges).prox(w, 1.0)
    tails, heads, shares = flows[0]
    jumps = u[tails] - u[heads]
    # Flow that no plateau settles across its border is full there; inside it is what was computed.
    full = np.where(jumps > 0, 1.0, np.where(jumps < 0, -1.0, shares))
    assert np.all(np.abs(full) <= 1.0)
    left = np.bincount(tails, strength * full, side * side)
    assert np.linalg.norm(w - u - left) <= 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_and_a_graph_that_is_one_agree(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(40)
    w, weights = 3 * rng.standard_normal(40), rng.exponential(size=39)
    chain = GraphFused(0.7, [(k, k + 1) for k in range(39)], weights)
    graph = GraphFused(0.7, np.stack([order[:-1], order[1:]], axis=1), weights)
    assert type(chain.extension) is not type(graph.extension)
    moved = np.empty(40)
    moved[order] = w
    np.testing.assert_allclose(graph.prox(moved, 1.0)[order], chain.prox(w, 1.0), rtol=0, atol=1e-12)


def test_a_chain_given_by_its_cut_function_has_the_same_steps():
    rng = np.random.default_rng(5)
    w, weights = 3 * rng.standard_normal(16), rng.exponential(size=15)
    edges = [(k, k + 1) for k in range(15)]
    own, chain = Lovasz(0.7, cut_function(edges, weights), 16), GraphFused(0.7, edges, weights)
    np.testing.assert_allclose(own.prox(w, 1.0), chain.prox(w, 1.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 1e-8, 1.0, 1e8, 1e150])
def test_a_step_scales_with_its_argument(factor):
    w = np.random.default_rng(3).standard_normal(P)
    for penalty in (TotalVariation(0.3), GraphFused(0.3, RING), GraphFused(0.3, TANGLE, WEIGHTS)):
        np.testing.assert_allclose(
            penalty.prox(factor * w, factor) / factor, penalty.prox(w, 1.0), atol=1e-12
        )
        assert np.ptp(penalty.prox(w, 1e300)[:5]) <= 1e-12


def test_shifts_pass_through_and_strong_steps_leave_means():
    w = np.random.default_rng(4).standard_normal(P)
    for penalty, _ in CASES:
        np.testing.assert_allclose(penalty.prox(w + 5.0, 0.4), penalty.prox(w, 0.4) + 5.0, atol=1e-12)
    islands = GraphFused(1.0, ISLANDS).prox(w, 1e6)
    np.testing.assert_allclose(
        islands, [w[:3].mean()] * 3 + [w[3]] + [w[4:7].mean()] * 3 + [w[7]], atol=1e-12
    )


@pytest.mark.parametrize("edges", [None, RING, TANGLE])
def test_the_l1_part_comes_second_and_is_exact(edges):
    """The subgradients of both parts at the result add up to what the step took away."""
    weights = None if edges is None else np.random.default_rng(1).exponential(size=len(edges)).tolist()
    for w, step in vectors(40, 6):
        penalty = Fused(0.8, 0.5, edges, weights)
        u = penalty.prox(w, step)
        pairs = CHAIN if edges is None else edges
        differences = np.zeros((len(pairs), P))
        for row, (i, j) in zip(differences, pairs, strict=True):
            row[i], row[j] = 1.0, -1.0
        strengths = 0.8 * np.array([1.0] * len(pairs) if weights is None else weights)
        parts = np.concatenate([strengths[:, None] * differences, 0.5 * np.eye(P)]) * step
        slopes = np.sign(np.round(np.concatenate([differences @ u, u]), 10))
        low, high = np.where(slopes == 0, -1.0, slopes - 1e-9), np.where(slopes == 0, 1.0, slopes + 1e-9)
        left = lsq_linear(parts.T, w - u, (low, high), method="bvls", tol=1e-14).cost
        assert math.sqrt(2 * left) <= 1e-7 * (1 + np.linalg.norm(w))


@pytest.mark.parametrize("penalty", [TotalVariation(0.3), GraphFused(0.3, RING), Lovasz(0.3, balance, P)])
def test_equal_coefficients_are_equal_bit_for_bit(penalty):
    sizes = [len(np.unique(penalty.prox(w, step))) for w, step in vectors(60, 8)]
    assert min(sizes) == 1 and 1 < np.mean(sizes) < P


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: TotalVariation(-1.0), "strength must be finite and >= 0"),
        (lambda: TotalVariation(1.0, l2=math.nan), "l2 must be finite and >= 0"),
        (lambda: Fused(1.0, math.nan), "l1 must be finite and >= 0"),
        (lambda: Fused(1.0, 1.0, weights=[1.0]), "give edges, too"),
        (lambda: GraphFused(1.0, [(0, 0)]), r"two different features, got \(0, 0\)"),
        (lambda: GraphFused(1.0, [(0, 1), (-1, 2)]), "counted from 0, got feature -1"),
        (lambda: GraphFused(1.0, [(0, 2**40)]), "counted from 0, got feature 1099511627776"),
        (lambda: GraphFused(1.0, []), "one pair at least"),
        (lambda: GraphFused(1.0, "01"), "pairs of features"),
        (lambda: GraphFused(1.0, 5), "pairs of features"),
        (lambda: GraphFused(1.0, [(0, 1, 2)]), "pairs of features"),
        (lambda: GraphFused(1.0, [(0, 1), (2,)]), "pairs of features"),
        (lambda: GraphFused(1.0, [(0, 0.5)]), "pairs of features"),
        (lambda: GraphFused(1.0, [(0, math.nan)]), "pairs of features"),
        (lambda: GraphFused(1.0, [(0, 1)], [-1.0]), "weights must be finite numbers of at least 0"),
        (lambda: GraphFused(1.0, [(0, 1)], [math.nan]), "weights must be finite numbers of at least 0"),
        (lambda: GraphFused(1.0, [(0, 1)], 1.0), "weights must be finite numbers of at least 0"),
        (lambda: GraphFused(1.0, [(0, 1)], [1.0, 2.0]), "one for each of 1 edges, got 2"),
        (
            lambda: GraphFused(1.0, [(0, 7)]).prox(np.ones(7), 1.0),
            "feature 7, counted from 0, and there are 7",
        ),
        (lambda: GraphFused(1.0, RING).value(np.ones(7)), "feature 7, counted from 0, and there are 7"),
        (lambda: GraphFused(1.0, RING).prox(np.ones(P), np.ones(P)), "one step"),
        (lambda: Lovasz(1.0, len, P), "value of all features must be 0, got 8"),
        (lambda: Lovasz(1.0, lambda A: 1.0 + balance(A), P), "value of no features must be 0, got 1"),
        (lambda: Lovasz(1.0, lambda A: -balance(A), P), "must be at least 0"),
        (lambda: Lovasz(1.0, lambda A: math.nan if 0 < len(A) < P else 0.0, P), "must be"),
        (lambda: Lovasz(1.0, lambda A: balance(A) ** 4, P), "not submodular"),
        (lambda: Lovasz(1.0, 3, P), "function must be"),
        (lambda: Lovasz(1.0, balance, 0), "p must be a whole number from 1 on"),
        (lambda: Lovasz(1.0, balance, P).prox(np.ones(5), 1.0), "is for 8 features, got 5"),
        (lambda: gaussian_width(TotalVariation(1.0)), "n_features must be given"),
        (lambda: gaussian_width(GraphFused(1.0, RING), 5), "feature 7"),
        (lambda: gaussian_width(Lovasz(1.0, balance, P), 5), "n_features"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(make, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("penalty", [case[0] for case in CASES], ids=repr)
def test_gaussian_width_is_the_mean_of_the_extension(penalty):
    values = [penalty.value(g) for g in np.random.default_rng(11).standard_normal((1000, P))]
    draws = 1000 if isinstance(penalty, Lovasz) else None
    error = np.std(values) / math.sqrt(1000) * math.sqrt(2 if draws else 1)
    assert gaussian_width(penalty, P, draws) == pytest.approx(np.mean(values), abs=5 * error)


@pytest.mark.parametrize("penalty", [case[0] for case in CASES[:6]], ids=repr)
def test_noise_raises_a_penalty_by_its_gaussian_width_at_most(penalty):
    """And by about that where the coefficients are equal."""
    g = 0.3 * np.random.default_rng(12).standard_normal((1000, P))
    most = 0.3 * gaussian_width(penalty, P)
    for w, sharp in ((np.full(P, 2.0), True), (np.arange(float(P)), False)):
        rise = np.mean([penalty.value(w + noise) - penalty.value(w) for noise in g])
        assert rise <= 1.1 * most
        assert sharp == (rise >= 0.9 * most)


def test_gaussian_widths_that_are_known():
    assert gaussian_width(TotalVariation(3.0), 61) == pytest.approx(60 * 2 / math.sqrt(math.pi), rel=1e-12)
    assert gaussian_width(GraphFused(1.0, RING), P) == pytest.approx(P * 2 / math.sqrt(math.pi), rel=1e-12)
    assert gaussian_width(Fused(3.0, 5.0), P, draws=10) == gaussian_width(Fused(1.0, 0.0), P, draws=10)


def test_penalties_are_values_that_can_be_pickled_and_scaled():
    for penalty in (
        TotalVariation(0.5),
        GraphFused(0.5, RING, l2=0.1),
        Fused(0.5, 0.2),
        Lovasz(0.5, balance, P),
    ):
        penalty.prox(np.ones(P), 1.0)
        assert pickle.loads(pickle.dumps(penalty)) == penalty
        assert hash(penalty) == hash(replace(penalty)) and penalty != replace(penalty, strength=1.0)
        w = np.arange(float(P)) ** 2
        assert penalty.scaled(3.0).value(w) == pytest.approx(3.0 * penalty.value(w), rel=1e-12)
        assert " at 0x" not in repr(penalty)
    assert GraphFused(1.0, np.array(RING)) == GraphFused(1.0, RING, np.ones(P))
    assert eval(repr(GraphFused(0.5, RING))) == GraphFused(0.5, RING)


def test_many_edges_are_a_digest_in_the_name():
    first, second = GraphFused(0.5, grid(50)), GraphFused(0.5, grid(50)[::-1])
    assert len(repr(first)) < 200 and "4,900" in repr(first) and repr(first) != repr(second)


def differences(penalty, p):
    """The matrix D for which the penalty is norm1(D w), from its definition."""
    if isinstance(penalty, Lovasz):
        rows = [(i, j, 1.0) for i in range(p) for j in range(i)]
    elif getattr(penalty, "edges", None) is None:
        rows = [(k, k + 1, 1.0) for k in range(p - 1)]
    else:
        rows = [(*ends, weight) for ends, weight in zip(penalty.edges, penalty.weights, strict=True)]
    D = np.zeros((len(rows), p))
    for row, (i, j, weight) in zip(D, rows, strict=True):
        row[i], row[j] = penalty.strength * weight, -penalty.strength * weight
    return np.concatenate([D, penalty.l1_part * np.eye(p)]) if penalty.l1_part else D


def pairs(p):
    return lambda features: float(len(features) * (p - len(features)))


def problems():
    """Twenty penalties, with tables that they are for."""
    rng = np.random.default_rng(20)
    for k in range(20):
        p = int(rng.integers(5, 10))
        edges = [(i, j) for i in range(p) for j in range(i) if rng.random() < 0.4] or [(0, 1)]
        strength, weights = float(10 ** rng.uniform(-3.0, -1.5)), rng.exponential(size=len(edges)).tolist()
        penalty = [
            TotalVariation(strength),
            GraphFused(strength, edges, weights, l2=0.01),
            Fused(strength, strength / 3),
            Fused(strength, strength / 3, edges, weights),
            Lovasz(strength / p, pairs(p), p),
        ][k % 5]
        X = rng.uniform(-1, 1, (200, p)) / math.sqrt(p)
        truth = np.repeat(rng.standard_normal(3), [2, p - 4, 2]) * [1.0, 0.0][k % 2]
        yield penalty, X, X @ (truth + 0.5) + 0.1 * rng.standard_normal(200)


PROBLEMS = pytest.mark.parametrize(("penalty", "X", "y"), list(problems()), ids=range(20))
BOUNDS = Bounds(row_norm=1.0)


def fitted(penalty, X, y):
    model = GLMRegressor(epsilon=math.inf, penalty=penalty, bounds=BOUNDS, fit_intercept=False)
    return model.fit(X, y).coef_


@PROBLEMS
def test_a_fit_without_noise_agrees_with_an_active_set_method_for_the_dual(penalty, X, y):
    """The dual of least squares is a least-squares problem in a box, which BVLS solves exactly."""
    n, p = X.shape
    R = np.linalg.cholesky(X.T @ X / n + penalty.l2 * np.eye(p)).T
    D, moment = differences(penalty, p), X.T @ y / n
    A, b = np.linalg.solve(R.T, D.T), np.linalg.solve(R.T, moment)
    # Many z give one w; a little of z² makes it a problem of full rank.
    A, b = np.concatenate([A, 1e-7 * np.eye(len(D))]), np.concatenate([b, np.zeros(len(D))])
    z = lsq_linear(A, b, (-1.0, 1.0), method="bvls", tol=1e-15, max_iter=5000).x
    expected = np.linalg.solve(R, np.linalg.solve(R.T, moment - D.T @ z))
    np.testing.assert_allclose(fitted(penalty, X, y), expected, rtol=0, atol=1e-5)


@PROBLEMS
def test_a_fit_without_noise_agrees_with_cvxpy(penalty, X, y):
    w = cp.Variable(X.shape[1])
    objective = cp.sum_squares(X @ w - y) / (2 * len(y)) + cp.norm1(differences(penalty, len(X[0])) @ w)
    problem = cp.Problem(cp.Minimize(objective + penalty.l2 / 2 * cp.sum_squares(w)))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    np.testing.assert_allclose(fitted(penalty, X, y), w.value, rtol=0, atol=1e-5)


def bins(n, p, seed, size=1.0):
    """Rows with a 1 for one of p ordered bins, and effects of the bins on five plateaus."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.choice(np.arange(1, p), 4, replace=False))
    effects = np.repeat(rng.uniform(-size, size, 5), np.diff([0, *ends, p]))
    place = rng.integers(p, size=n)
    return np.eye(p)[place], effects[place], effects, rng


PRIVATE = Bounds(row_norm=1.0, target=(-3, 3))


@pytest.mark.parametrize("seed", range(2))
def test_a_private_fit_recovers_plateaus_that_ridge_and_l1_do_not(seed):
    """Errors of ridge and L1 at the best of some strengths, of total variation at one that is fixed."""
    X, margins, effects, rng = bins(20_000, 60, seed, size=2.0)
    y = rng.random(20_000) < 1 / (1 + np.exp(-margins))

    def error(penalty):
        model = LogisticRegression(
            1.0, penalty=penalty, bounds=BOUNDS, solver=ObjectivePerturbation(),
            classes=[False, True], fit_intercept=False, random_state=seed,
        ).fit(X, y)  # fmt: skip
        return np.linalg.norm(model.coef_ - effects), len(np.unique(model.coef_))

    ours, plateaus = error(TotalVariation(1e-3))
    others = [error(kind(10.0**k))[0] for kind in (L1, L2) for k in (-4.5, -4, -3.75, -3.5, -3.25)]
    assert ours <= 0.6 * min(others)
    assert plateaus <= 20


@EVERY
def test_noise_is_averaged_over_as_many_coefficients_as_a_penalty_makes_equal(penalty, function):
    prices = [function([j]) for j in range(P)]
    np.testing.assert_allclose(penalty.extension.single_prices(P), prices, rtol=1e-12)
    if min(prices) == 0:  # a free coefficient has all of its noise
        assert penalty.noise_share(P, 1e-9) == 1.0
        return
    share = replace(penalty, strength=5.0).noise_share(P, 0.5)
    assert share == pytest.approx(0.1 / np.mean(prices)) and penalty.noise_share(P, 1e9) == 1.0


def test_the_share_of_noise_that_is_stated_is_the_one_that_is_left():
    noise, strength, p = 0.1, 0.5, 10_000
    slopes = np.random.default_rng(0).normal(0, noise, p)
    left = np.std(TotalVariation(strength).prox(slopes, 1.0)) / noise
    assert 0.5 < left / TotalVariation(strength).noise_share(p, noise) < 2.0


def test_the_default_quadratic_term_is_weak_beside_a_penalty_that_takes_noise_away():
    def plan(penalty, **settings):
        problem = Problem(Logistic(), penalty, BOUNDS)
        solver = ObjectivePerturbation(**settings)
        return solver.plan(problem, 20_000, 60, Budget(1.0, 1e-8), Neighbours.REPLACE_ONE)

    chosen = [plan(TotalVariation(strength)).quadratic for strength in (0.0, 1e-4, 3e-4, 1.0)]
    assert chosen[0] == chosen[1] == plan(L1(1.0)).quadratic > 1.2 * chosen[2] > 1.3 * chosen[3]
    # Nothing holds a feature that is in no edge.
    assert plan(GraphFused(1.0, [(0, 1)])).quadratic == chosen[0]
    assert plan(L1(1.0), quadratic=chosen[3] / 4).epsilon <= 1.0  # the budget allows far less


def test_output_perturbation_levels_what_noise_alone_could_have_made():
    X, margins, effects, rng = bins(20_000, 20, 3)
    y, penalty = margins + 0.1 * rng.standard_normal(20_000), TotalVariation(1e-4, l2=0.02)
    models = {
        sparse: GLMRegressor(
            1.0, penalty=penalty, bounds=PRIVATE, solver=OutputPerturbation(sparse=sparse), random_state=0,
            fit_intercept=False,
        ).fit(X, y).coef_
        for sparse in (False, True)
    }  # fmt: skip
    assert len(np.unique(models[False])) == 20 > 10 > len(np.unique(models[True]))
    exact = GLMRegressor(math.inf, penalty=penalty, bounds=PRIVATE, fit_intercept=False).fit(X, y).coef_
    errors = {sparse: np.linalg.norm(coef - exact) for sparse, coef in models.items()}
    assert errors[True] < errors[False]


@pytest.mark.parametrize(
    ("penalty", "draws"),
    [(TotalVariation(1.0), 100), (GraphFused(1.0, RING), 15), (Fused(1.0, 1.0, RING), 15)],
)
def test_noise_alone_is_levelled_in_all_but_a_twentieth_of_cases(penalty, draws):
    rng = np.random.default_rng(9)
    found = [penalty.denoised(2.0 + 0.1 * rng.standard_normal(P), 0.1) for _ in range(draws)]
    flat = np.mean([len(np.unique(w)) == 1 for w in found])
    assert flat >= 0.8 and (draws < 100 or 0.9 <= flat < 1)
    assert np.mean([w.mean() for w in found]) == pytest.approx(2.0, abs=0.05)
    jump = np.repeat([0.0, 9.0], P // 2) + 0.1 * rng.standard_normal(P)
    assert len(np.unique(penalty.denoised(jump, 0.1))) >= 2
    np.testing.assert_array_equal(penalty.denoised(jump, 0.0), jump)


def test_plateaus_that_noise_alone_could_have_made_are_zero_with_an_l1_part():
    w = np.repeat([0.02, 9.0], P // 2)
    found = Fused(1.0, 1.0).denoised(w, 0.1)
    np.testing.assert_array_equal(found, np.repeat([0.0, 9.0], P // 2))
    np.testing.assert_array_equal(TotalVariation(1.0).denoised(w, 0.1), w)


def test_rounding_restores_equal_values_within_twice_the_width():
    w = np.array([1.0, 1.0 + 1e-9, 1.0 - 0.5e-9, 5.0, 1e-10, 2e-10, 7.0, 7.0])
    found = TotalVariation(1.0).rounded(w, 1e-9)
    np.testing.assert_allclose(found, [1, 1, 1, 5, 0, 0, 7, 7], rtol=0, atol=1e-9)
    assert len(np.unique(found)) == 4
    np.testing.assert_array_equal(TotalVariation(0.0).rounded(w, 1e-12), w)


@pytest.mark.parametrize("penalty", [case[0] for case in CASES[:6]], ids=repr)
def test_auto_takes_a_solver_that_serves_them(penalty):
    rng = np.random.default_rng(13)
    X = rng.uniform(-1, 1, (500, P)) / math.sqrt(P)
    model = LogisticRegression(epsilon=1.0, classes=[-1, 1], penalty=penalty.scaled(0.01), bounds=BOUNDS)
    fit = clone(model).fit(X, np.sign(X[:, 0]))
    assert np.all(np.isfinite(fit.coef_))
    assert fit.plan_.solver == "gradient descent"
    assert fit.privacy_.public["penalty"] == repr(model.penalty)


@pytest.mark.parametrize("solver", [Newton(), PreconditionedDescent(), CoordinateDescent()])
def test_other_solvers_refuse_them_and_name_what_they_take(solver):
    model = GLMRegressor(1.0, penalty=TotalVariation(0.1), bounds=PRIVATE, solver=solver)
    with pytest.raises(UnsupportedProblem, match="L2|sum over coordinates|separable|GradientDescent"):
        model.plan(1000, 5)


@pytest.mark.parametrize("solver", [GradientDescent(), ObjectivePerturbation(), OutputPerturbation()])
def test_no_noise_gives_one_minimiser_for_every_solver(solver):
    X, y, _, _ = bins(500, 8, 1)
    penalty = Fused(0.01, 0.003, RING, l2=0.01)
    coef = GLMRegressor(math.inf, penalty=penalty, bounds=PRIVATE, solver=solver).fit(X, y).coef_
    expected = GLMRegressor(math.inf, penalty=penalty, bounds=PRIVATE).fit(X, y).coef_
    np.testing.assert_allclose(coef, expected, rtol=0, atol=1e-7)
