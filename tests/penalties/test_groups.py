"""Norms of disjoint and nested groups, against their definition, general solvers and exact numbers."""

from __future__ import annotations

import math
import pickle
import sys
from dataclasses import FrozenInstanceError, replace

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

from dpglm import Bounds, GLMClassifier, GLMRegressor, LogisticRegression, make_private_pipeline
from dpglm.errors import UnsupportedProblem
from dpglm.penalties import ElasticNet, GroupL2, Hierarchy
from dpglm.schema import Category, Number, Schema, Target

P = 6
UNIT = 2.0**-53
EXAMPLES = [
    GroupL2(0.7, [[0, 1], [2, 3, 4], [5]]),
    GroupL2(0.4, [[5, 0], [2, 3, 4], [1]], weights=[1.0, 0.0, 2.5], l1=0.3),
    GroupL2(0.7, [range(P)], l2=0.5),
    GroupL2(0.7, [[0, 1], [2], [0, 1, 2, 3], [4, 5]], weights=[1.0, 2.0, 0.5, 0.3]),
    GroupL2(0.0, [range(P)], l1=0.3, l2=0.2),
    Hierarchy(0.4, [-1, 0, 0, 1, 1, -1]),
    Hierarchy(0.3, [-1, 0, 1, 2, 3, 4], l2=0.5),
]
EVERY = pytest.mark.parametrize("penalty", EXAMPLES, ids=repr)


def parts(penalty, n_features=P):
    """The groups with their weights times the strength, features of an L1 part among them."""
    if isinstance(penalty, Hierarchy):
        groups = [[j for j in range(n_features) if k in lineage(penalty.tree, j)] for k in range(n_features)]
    else:
        groups = [list(group) for group in penalty.groups]
    weighed = [(group, penalty.strength * a) for group, a in zip(groups, penalty.weights, strict=True)]
    return weighed + [([j], penalty.l1) for j in range(n_features)]


def lineage(parents, feature):
    """A feature and its ancestors."""
    return {feature} | (lineage(parents, parents[feature]) if parents[feature] >= 0 else set())


def points(count, seed):
    """Points of all sizes, some entries 0, and steps that leave some groups."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        w = rng.standard_normal(P) * 10.0 ** rng.uniform(-1, 1, P)
        yield (w * rng.integers(0, 2, P) if k % 3 == 0 else w), float(np.linalg.norm(w) * rng.exponential())


@EVERY
def test_value_is_the_sum_over_groups(penalty):
    for w, _ in points(50, 0):
        norms = sum(
            weight * math.sqrt(math.fsum(w[j] ** 2 for j in group)) for group, weight in parts(penalty)
        )
        assert penalty.value(w) == pytest.approx(norms + penalty.l2 / 2 * (w @ w), rel=1e-12)


@EVERY
def test_prox_meets_the_optimality_condition(penalty):
    """The subgradient is a sum of vectors of the groups, of norm at most their weights.

    That of a group at which u is not 0 lies along u; the others are sought.
    """
    for w, step in points(60, 1):
        u = penalty.prox(w, step)
        left = w - u - step * penalty.l2 * u
        balls = []
        for group, weight in parts(penalty):
            if np.any(u[group]):
                left[group] -= step * weight * u[group] / np.linalg.norm(u[group])
            elif weight:
                balls.append((group, step * weight))
        scale = 1 + np.linalg.norm(w)
        assert residual(left, balls, 1e-10 * scale) <= 1e-9 * scale


def residual(left, balls, enough):
    """How far a vector is from the sum of balls in the spaces of groups, by alternating projections."""
    left, within = left.copy(), [np.zeros(len(group)) for group, _ in balls]
    for _ in range(20_000):
        if np.linalg.norm(left) <= enough:
            break
        for k, (group, radius) in enumerate(balls):
            wanted = within[k] + left[group]
            nearest = wanted * min(1.0, radius / max(np.linalg.norm(wanted), 1e-300))
            left[group] += within[k] - nearest
            within[k] = nearest
    return np.linalg.norm(left)


def test_a_point_that_is_no_proximal_step_fails_the_optimality_condition():
    left = np.array([0.0, 3.0, 4.0])
    balls = [([0, 1, 2], 4.9), ([1], 0.05)]
    assert residual(left, balls, 1e-10) > 1e-3
    assert residual(left, [([0, 1, 2], 4.9), ([1], 0.3)], 1e-10) <= 1e-10


@EVERY
def test_prox_agrees_with_a_general_solver(penalty):
    """The dual is smooth: subtract from w a vector of each group, of norm at most its weight."""
    groups = [(group, weight) for group, weight in parts(penalty) if weight]
    edges = np.cumsum([0, *(len(group) for group, _ in groups)])
    spread = np.zeros((edges[-1], P))
    spread[np.arange(edges[-1]), [j for group, _ in groups for j in group]] = 1.0
    for w, step in points(15, 2):
        scale = np.linalg.norm(w) or 1.0
        unit = w / scale
        balls = [
            {
                "type": "ineq",
                "fun": lambda z, a=a, b=b, r=step * weight / scale: r * r - z[a:b] @ z[a:b],
                "jac": lambda z, a=a, b=b: (
                    -2 * np.where((np.arange(len(z)) >= a) & (np.arange(len(z)) < b), z, 0)
                ),
            }
            for (_, weight), a, b in zip(groups, edges, edges[1:], strict=False)
        ]
        found = minimize(
            lambda z, unit=unit: np.sum((unit - z @ spread) ** 2) / 2,
            np.zeros(edges[-1]),
            jac=lambda z, unit=unit: spread @ (z @ spread - unit),
            constraints=balls,
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 500},
        )
        expected = (w - scale * found.x @ spread) / (1 + step * penalty.l2)
        np.testing.assert_allclose(penalty.prox(w, step), expected, rtol=0, atol=2e-5 * scale)


@EVERY
def test_groups_are_left_out_whole_and_features_with_all_below_them(penalty):
    draws = np.random.default_rng(3).standard_normal((200, P))
    patterns = {tuple((penalty.prox(draw, 1.0) != 0).tolist()) for draw in draws}
    assert len(patterns) > 1
    for pattern in patterns if penalty.l1 == 0 and isinstance(penalty, GroupL2) else ():
        left_out = [group for group in penalty.groups if not any(pattern[j] for j in group)]
        assert set(np.flatnonzero(~np.array(pattern))) == {j for group in left_out for j in group}
    for pattern in patterns if isinstance(penalty, Hierarchy) else ():
        assert all(pattern[above] for j in range(P) if pattern[j] for above in lineage(penalty.tree, j))


def exact_step(penalty, w, step, p):
    """The proximal step in 60 digits, one group after the other, inner groups first."""
    u = [mpmath.mpf(entry) for entry in w]
    singles = [((j,), penalty.l1) for j in range(p)]
    nested = sorted(zip(penalty.members, penalty.weights, strict=True), key=lambda pair: len(pair[0]))
    for group, weight in [
        *singles,
        *((group, mpmath.mpf(penalty.strength) * weight) for group, weight in nested),
    ]:
        length = mpmath.sqrt(mpmath.fsum(u[j] ** 2 for j in group))
        left = weight * mpmath.mpf(step)
        for j in group:
            u[j] *= max(1 - left / length, 0) if length else 1
    return [entry / (1 + mpmath.mpf(step) * mpmath.mpf(penalty.l2)) for entry in u]


@pytest.mark.parametrize(
    "penalty",
    [
        *EXAMPLES,
        GroupL2(1.0, [range(300)]),
        GroupL2(1.0, [range(k, k + 30) for k in range(0, 300, 30)], l1=0.1, l2=0.1),
        Hierarchy(0.1, range(-1, 99)),
        Hierarchy(1.0, [(j - 1) // 2 for j in range(127)], l2=0.1),
    ],
    ids=lambda penalty: f"{type(penalty).__name__} {len(penalty.members)} {penalty.l1} {penalty.l2}",
)
def test_steps_round_no_more_than_is_proven(penalty):
    mpmath.mp.dps = 60
    rng, p = np.random.default_rng(4), 1 + max(group[-1] for group in penalty.members)
    most = 0.0
    for _ in range(15):
        w = rng.standard_normal(p) * 10.0 ** rng.uniform(-1, 1, p)
        norm = np.linalg.norm(w)
        step = float(norm * 10 ** rng.uniform(-4, 0))
        exact = exact_step(penalty, w, step, p)
        off = mpmath.norm([a - b for a, b in zip(penalty.prox(w, step), exact, strict=True)])
        most = max(most, float(off) / (UNIT * norm / (1 + step * penalty.l2)))
    assert 0.0 < most <= penalty.prox_rounding(p)


@EVERY
def test_noise_alone_keeps_a_feature_in_a_twentieth_of_cases_at_most(penalty):
    draws = np.random.default_rng(5).standard_normal((2_000, P))
    noise = 0.3
    anything = np.mean([np.any(penalty.support(noise * draw, noise)) for draw in draws])
    if 0.0 in penalty.weights and penalty.l1 == 0:
        return
    assert anything <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / len(draws))
    if isinstance(penalty, GroupL2) and penalty.l1 == 0 and len(penalty.groups) < 4:  # disjoint: no less
        assert anything >= 0.05 - 4 * math.sqrt(0.05 * 0.95 / len(draws))


def test_a_long_group_is_kept_whole_and_a_feature_only_with_its_ancestors():
    w = np.array([9.0, 0.1, 0.2, 0.1, 0.3, 0.2])
    groups = GroupL2(0.1, [[0, 1], [2, 3, 4], [5]])
    np.testing.assert_array_equal(groups.support(w, 1.0), [True, True, False, False, False, False])
    np.testing.assert_array_equal(replace(groups, l1=0.1).support(w, 1.0), [True] + [False] * 5)
    w = np.array([9.0, 0.1, 9.0, 9.0, 0.1, 9.0])
    kept = Hierarchy(0.1, [-1, 0, 1, 2, 3, -1]).support(w, 1.0)
    np.testing.assert_array_equal(kept, [True, True, True, True, False, True])
    free = GroupL2(0.1, [[0, 1], [2, 3, 4], [5]], weights=[1, 0, 1])
    np.testing.assert_array_equal(free.support(np.zeros(P), 1.0), [False, False, True, True, True, False])
    assert replace(groups, strength=0.0).support(w, 1.0).all()


@EVERY
def test_the_pattern_of_some_features_is_the_least_that_a_proximal_step_leaves(penalty):
    """Of those with these features: they are the complements of unions of groups."""
    groups = [set(group) for group, weight in parts(penalty) if weight]
    everything = set(range(P))
    unions = {frozenset()}
    for group in groups:
        unions |= {union | group for union in unions}
    for mask in range(2**P):
        kept = np.array([mask >> j & 1 for j in range(P)], dtype=bool)
        least = min(
            (everything - union for union in unions if not union & set(np.flatnonzero(kept))), key=len
        )
        assert set(np.flatnonzero(penalty.pattern(kept))) == least


def test_objective_perturbation_leaves_no_hole_in_a_group(monkeypatch):
    """Coefficients below what hides a zero are 0 only with their group."""
    module = sys.modules["dpglm.solvers.perturbation"]
    rng = np.random.default_rng(10)
    X = rng.uniform(-1, 1, (2_000, P)) / math.sqrt(P)
    y = np.clip(2 * X[:, 0] + 0.05 * X[:, 1] + X[:, 5], -1, 1)
    zeros = {}
    for penalty in (
        GroupL2(0.02, [[0, 1, 2], [3, 4], [5]]),
        GroupL2(0.02, [[0, 1, 2], [3, 4], [5]], l1=1e-9),
    ):
        model = GLMRegressor(
            2.0, penalty=penalty, bounds=Bounds(row_norm=1.0, target=(-1, 1)), random_state=1,
            solver="objective-perturbation", fit_intercept=False,
        )  # fmt: skip
        monkeypatch.setattr(module, "_HIDDEN", 4.0)
        with pytest.warns(UserWarning, match="random_state"):
            coef = model.fit(X, y).coef_
        noise = np.sort(np.abs(coef[:3]))[1] / 1e3  # a limit between the coefficients of the first group
        monkeypatch.setattr(module, "_finishing", lambda plan, query, noise=noise: noise)
        monkeypatch.setattr(module, "_HIDDEN", 1.1e3)
        with pytest.warns(UserWarning, match="random_state"):
            zeros[penalty.l1] = np.flatnonzero(model.fit(X, y).coef_ == 0).tolist()
        monkeypatch.undo()
    assert zeros[0.0] == [3, 4] and set(zeros[1e-9]) > {3, 4}


def test_groups_of_single_features_are_the_lasso():
    single, plain = GroupL2(0.7, [[j] for j in range(P)], l2=0.3), ElasticNet(0.7, 0.3)
    for w, step in points(30, 6):
        assert single.value(w) == pytest.approx(plain.value(w), rel=1e-13)
        np.testing.assert_allclose(single.prox(w, step), plain.prox(w, step), rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(single.support(w, 0.5), plain.support(w, 0.5))


def smoothed_minimiser(X, y, loss, groups, l2):
    """Newton's method on norms sqrt(norm(w_g)² + mu²), for mu down to 1e-9."""
    n, p = X.shape
    w = np.zeros(p)

    def terms(w, mu):
        z = X @ w
        if loss == "squared":
            value, slope, bend = (z - y) ** 2 / 2, z - y, np.ones(n)
        else:
            share = 1 / (1 + np.exp(y * z))
            value, slope, bend = np.logaddexp(0, -y * z), -y * share, share * (1 - share)
        value, slope = np.mean(value) + l2 / 2 * w @ w, X.T @ slope / n + l2 * w
        bend = X.T @ (bend[:, None] * X) / n + l2 * np.eye(p)
        for group, weight in groups:
            length = math.sqrt(w[group] @ w[group] + mu * mu)
            value += weight * length
            slope[group] += weight * w[group] / length
            bend[np.ix_(group, group)] += weight / length * np.eye(len(group))
            bend[np.ix_(group, group)] -= weight / length**3 * np.outer(w[group], w[group])
        return value, slope, bend

    for mu in 10.0 ** -np.arange(10.0):
        for _ in range(30):
            value, slope, bend = terms(w, mu)
            if np.linalg.norm(slope) < 1e-12:
                break
            move, length = np.linalg.solve(bend, -slope), 1.0
            if np.linalg.norm(move) < 1e-11:
                break
            while length > 1e-3 and terms(w + length * move, mu)[0] > value + length / 4 * (slope @ move):
                length /= 2
            w = w + length * move
    return w


FITS = [
    (loss, penalty, seed)
    for loss in ("squared", "logistic")
    for seed, penalty in enumerate(
        [
            GroupL2(0.02, [[0, 1], [2, 3], [4, 5]]),
            GroupL2(0.03, [[0, 1, 2], [3, 4, 5]], l1=0.01),
            GroupL2(0.02, [[0, 3], [1, 2, 4, 5]], l2=0.05),
            GroupL2(0.03, [[0, 1], [2, 3], [4, 5]], weights=[1, 0, 2], l1=0.005, l2=0.01),
            GroupL2(0.02, [[0, 1], [0, 1, 2, 3], [4], [4, 5]]),
            GroupL2(0.005, [[0, 1], [2, 3], [4, 5]]),
            Hierarchy(0.02, [-1, 0, 0, 1, 1, -1]),
            Hierarchy(0.01, [-1, 0, 1, 2, 3, 4], l2=0.02),
            Hierarchy(0.02, {0: [1, 2], 3: [4, 5]}, weights=[2, 1, 1, 2, 1, 0]),
            Hierarchy(0.02, [-1, -1, 0, 0, 1, 1], weights=[1, 1, 2, 2, 2, 2]),
        ]
    )
]


@pytest.mark.parametrize(("loss", "penalty", "seed"), FITS)
def test_without_noise_a_fit_is_the_minimiser_that_another_method_finds(loss, penalty, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (100, P)) / math.sqrt(P)
    z = X @ (np.array([2.0, 1.5, 0.0, 0.0, 1.0, 0.1]) * rng.choice([-1, 1], P)) + 0.2 * rng.standard_normal(
        100
    )
    y = np.sign(z) if loss == "logistic" else np.clip(z, -2, 2)
    expected = smoothed_minimiser(X, y, loss, parts(penalty), penalty.l2)
    kind = GLMClassifier if loss == "logistic" else GLMRegressor
    more = {"classes": [-1, 1]} if loss == "logistic" else {}
    model = kind(math.inf, penalty=penalty, bounds=Bounds(row_norm=1.0), fit_intercept=False, **more).fit(
        X, y
    )
    assert np.any(expected)
    np.testing.assert_allclose(np.ravel(model.coef_), expected, rtol=0, atol=1e-5)


def test_records_with_a_weight_count_as_often():
    rng = np.random.default_rng(7)
    X, times = rng.uniform(-1, 1, (100, P)) / 3, rng.integers(0, 4, 100)
    y = np.sign(X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(100))
    bounds = Bounds(row_norm=1.0, weight=3.0)
    for penalty in (GroupL2(0.02, [[0, 1], [2, 3, 4, 5]], l1=0.001), Hierarchy(0.02, [-1, 0, 0, 0, 0, 0])):
        model = GLMClassifier(math.inf, classes=[-1, 1], penalty=penalty, bounds=bounds)
        weighted = clone(model).fit(X, y, sample_weight=times)
        # The objective is relative to n, which is the number of rows.
        again = penalty.scaled(100 / times.sum())
        repeated = GLMClassifier(math.inf, classes=[-1, 1], penalty=again, bounds=Bounds(row_norm=1.0))
        repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        assert np.any(repeated.coef_)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


@pytest.mark.parametrize(
    "solver", ["auto", "gradient-descent", "objective-perturbation", "output-perturbation"]
)
def test_private_fits_are_served(solver):
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, (500, P)) / math.sqrt(P)
    for penalty in (
        GroupL2(0.01, [[0, 1], [2, 3, 4, 5]], l2=0.1),
        Hierarchy(0.01, [-1, 0, 0, 1, 1, -1], l2=0.1),
    ):
        model = LogisticRegression(
            1.0, classes=[-1, 1], penalty=penalty, bounds=Bounds(row_norm=1.0), solver=solver
        ).fit(X, np.sign(X[:, 0]))
        assert np.all(np.isfinite(model.coef_)) and model.privacy_.public["penalty"] == repr(penalty)
        assert solver != "auto" or model.plan_.solver == "gradient descent"


@pytest.mark.parametrize(
    "solver",
    [
        *("newton", "preconditioned-descent", "coordinate-descent", "greedy-coordinate-descent"),
        *("dual-coordinate-descent", "frank-wolfe", "dual-frank-wolfe"),
    ],
)
@pytest.mark.parametrize("penalty", [EXAMPLES[2], EXAMPLES[-1]], ids=["groups", "hierarchy"])
def test_solvers_that_do_not_serve_name_one_that_does(solver, penalty):
    model = GLMClassifier(1.0, classes=[-1, 1], penalty=penalty, bounds=Bounds(row_norm=1.0), solver=solver)
    with pytest.raises(UnsupportedProblem, match="GradientDescent|OutputPerturbation"):
        model.plan(1_000, P)


@EVERY
def test_penalties_are_frozen_values(penalty):
    assert pickle.loads(pickle.dumps(penalty)) == penalty and eval(repr(penalty)) == penalty
    assert hash(penalty) == hash(replace(penalty)) and penalty != replace(penalty, strength=9.0)
    with pytest.raises(FrozenInstanceError):
        penalty.strength = 1.0


def test_equal_penalties_are_equal_however_they_are_given():
    lists = GroupL2(1, [[1, 0], np.array([2])], np.array([math.sqrt(2), 1]))
    assert lists == GroupL2(1.0, ((0, 1), (2,))) == GroupL2(1.0, {"a": [0, 1], "b": [2]})
    trees = [-1, 0, 0, 1], np.array([-1, 0, 0, 1]), {0: [1, 2], 1: [3]}, {1: (3,), 0: (2, 1)}
    assert len({Hierarchy(0.5, tree) for tree in trees}) == 1
    assert GroupL2(0.5, [[0, 1], [2]], l1=0.2, l2=0.4).scaled(2) == GroupL2(1, [[0, 1], [2]], l1=0.4, l2=0.8)
    assert Hierarchy(0.5, [-1, 0], [1, 2], l2=0.4).scaled(2) == Hierarchy(1, [-1, 0], [1, 2], l2=0.8)


@pytest.mark.parametrize(
    ("groups", "more", "said"),
    [
        ([[0, 1], [1, 2]], {}, r"feature 1 is in two groups.*GroupCover"),
        ([[0, 1], [0, 1]], {}, r"the group \[0, 1\] is given twice"),
        ([[0, 0], [1]], {}, "must not have a feature twice"),
        ([[0, 1], []], {}, "must have a feature, got an empty one"),
        ([], {}, "there must be a group"),
        ([[0], [2]], {}, "feature 1 is in no group, 2 is in one.*weight 0"),
        ([[0, -1]], {}, "a feature of a group must be a whole number from 0 on, got -1"),
        ([[0, 1.5]], {}, "a feature of a group must be a whole number from 0 on, got 1.5"),
        ([0, 1], {}, "groups must be a sequence of sequences of features"),
        (3, {}, "groups must be a sequence of sequences of features"),
        ([[0], [1]], {"weights": [1, -1]}, "weights must be 2 numbers, finite and >= 0"),
        ([[0], [1]], {"weights": [1]}, "weights must be 2 numbers"),
        ([[0], [1]], {"weights": [1, math.inf]}, "weights must be 2 numbers"),
        ([[0], [1]], {"weights": ["a", "b"]}, "weights must be 2 numbers"),
        ([[0], [1]], {"strength": -1.0}, "strength must be finite and >= 0"),
        ([[0], [1]], {"l1": -1.0}, "l1 must be finite and >= 0"),
        ([[0], [1]], {"l2": math.nan}, "l2 must be finite and >= 0"),
    ],
)
def test_groups_that_make_no_penalty_are_refused_in_one_sentence(groups, more, said):
    with pytest.raises(ValueError, match=said) as refused:
        GroupL2(**{"strength": 1.0, "groups": groups, **more})
    assert "\n" not in str(refused.value) and ". " not in str(refused.value)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ([1, 0, -1], "tree has a cycle: feature 0 is below itself"),
        ([-1, 1], "tree has a cycle: feature 1 is below itself"),
        ({0: [1], 1: [2], 2: [0]}, "tree has a cycle: feature 0 is below itself"),
        ([-1, 0, 3], "the parent of feature 2 is 3, but tree has 3 features"),
        ([-1, -2], "a parent in tree must be a whole number from -1 on, got -2"),
        ([-1, None], "a parent in tree must be a whole number from -1 on, got None"),
        ({0: [2], 1: [2]}, "feature 2 has two parents in tree, 0 and 1"),
        ({0: [2]}, "feature 1 is not in tree"),
        ({0: [-1]}, "a child in tree must be a whole number from 0 on"),
        ({"a": [0]}, "a feature of tree must be a whole number from 0 on"),
        ({}, "feature 0 is not in tree"),
        ([], "tree must have a feature"),
        (5, "tree must be the parent of each feature"),
    ],
)
def test_trees_that_are_none_are_refused_in_one_sentence(tree, said):
    with pytest.raises(ValueError, match=said) as refused:
        Hierarchy(1.0, tree)
    assert "\n" not in str(refused.value) and ". " not in str(refused.value)


@pytest.mark.parametrize("penalty", [GroupL2(1.0, [[0, 1]]), Hierarchy(1.0, [-1, 0])], ids=repr)
def test_a_table_of_another_width_and_several_steps_are_refused(penalty):
    name = type(penalty).__name__
    for width in (1, 3):
        with pytest.raises(ValueError, match=f"{name} is for 2 features, got {width}"):
            GLMRegressor(1.0, penalty=penalty, bounds=Bounds(row_norm=1.0, target=(-1, 1))).plan(100, width)
    with pytest.raises(ValueError, match=f"{name} needs one step"):
        penalty.prox(np.zeros(2), np.ones(2))


SCHEMA = Schema(
    {
        "age": Number(0, 100),
        "colour": Category(["red", "green", "blue"], other=False),
        "size": Category(["S", "M", "L", "XL"]),
        "paid": Target(classes=["no", "yes"]),
    },
    interactions=[("age", "colour")],
)


def test_groups_of_a_schema_are_its_columns_and_pairs():
    groups = SCHEMA.groups()
    assert [SCHEMA.features[j] for j in groups["colour"]] == ["colour=red", "colour=green", "colour=blue"]
    assert list(groups) == ["age", "colour", "size", "age : colour"] == list(SCHEMA.shares)
    assert [j for group in groups.values() for j in group] == list(range(SCHEMA.n_features))
    GroupL2(0.01, groups)


def test_a_private_fit_keeps_columns_of_a_schema_whole():
    rng, n = np.random.default_rng(9), 20_000
    colour = rng.choice(["red", "green", "blue"], n)
    table = {"age": rng.uniform(0, 100, n), "colour": colour, "size": rng.choice(["S", "M", "L", "XL"], n)}
    table["paid"] = np.where(rng.random(n) < np.where(colour == "red", 0.8, 0.35), "yes", "no")
    penalty = GroupL2(0.001, SCHEMA.groups(), l2=0.05)
    model = LogisticRegression(2.0, penalty=penalty, solver="output-perturbation", random_state=0)
    with pytest.warns(UserWarning, match="random_state"):
        fitted = make_private_pipeline(SCHEMA, model).fit(table)
    coef = fitted.estimator_.coef_[0]
    kept = {name: set((coef[group] != 0).tolist()) for name, group in SCHEMA.groups().items()}
    assert all(len(both) == 1 for both in kept.values())
    assert kept["colour"] == {True} and kept["size"] == {False}
