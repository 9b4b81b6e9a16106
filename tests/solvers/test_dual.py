"""Dual coordinate descent: its plan, its price, its minimum without noise, and what stays secret."""

import math
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning

import dpglm
from dpglm import Bounds, Budget, Neighbours
from dpglm.audit.transcript import Recorder, Replayer
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import LOSSES, EpsilonInsensitive, Hinge, Logistic, Loss, Squared, Tweedie
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.mechanisms.sampling import Everyone, Poisson
from dpglm.penalties import L1, L2, Box, ElasticNet, L1Ball, Zero
from dpglm.privacy import PUBLIC_SIZE
from dpglm.problem import Problem
from dpglm.queries import DualForm, DualStep
from dpglm.queries.base import Exact, Opening
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Task,
    get,
)
from dpglm.solvers.base import noise_of_one_pass
from dpglm.solvers.dual_coordinate_descent import _intercept, _query, default_settings
from dpglm.testing import check_solver

rng = np.random.default_rng(0)
N, P = 400, 6
X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.6) * np.linspace(0.2, 1.0, P)
SIGNAL = X @ rng.standard_normal(P)
LABELS = np.where(SIGNAL + 0.5 * rng.standard_normal(N) > 0.2, 1.0, -1.0)
TARGET = SIGNAL + 2.0 + 0.3 * rng.standard_normal(N)
BALL = Bounds(row_norm=1.0)
BUDGET, INFINITE = Budget(1.0, 1e-6), Budget(math.inf, 0.5)
REPLACE = Neighbours.REPLACE_ONE
FORMS = (np.array, np.asfortranarray, sp.csr_array, sp.csc_matrix, np.float32)
SETTINGS = [
    DualCoordinateDescent(),
    DualCoordinateDescent(batch_size=N, average=False),
    DualCoordinateDescent(batch_size=15, clip=0.1, steps=40),
]


def solved(solver, problem, table, y, budget=BUDGET, seed=0):
    plan = solver.plan(problem, *table.shape, budget, REPLACE)
    records = as_data(table, y, problem.bounds, problem.constant(table.shape[1]))
    return solver.run(plan, problem, Curator(records, REPLACE, Randomness(seed)))


def targets(loss):
    return {"classification": LABELS, "regression": TARGET, "count": np.abs(np.round(3 * X[:, 0]))}[loss.kind]


@pytest.mark.parametrize("solver", SETTINGS, ids=repr)
@pytest.mark.parametrize("penalty", [L2(0.01), ElasticNet(0.005, 0.02)], ids=repr)
def test_it_spends_exactly_its_plan(solver, penalty):
    plan = check_solver(solver, Problem(Logistic(), penalty, Bounds(row_norm=1.0)), X, LABELS)
    assert isinstance(plan.releases[0].sampling, Everyone if solver.batch_size == N else Poisson)


@pytest.mark.parametrize("solver", SETTINGS, ids=repr)
@pytest.mark.parametrize("loss", [Logistic(), Hinge()], ids=repr)
def test_layouts_give_the_same_model(solver, loss):
    problem = Problem(loss, L2(0.01), Bounds(row_norm=1.0))
    models = [solved(solver, problem, form(X), LABELS).w for form in FORMS]
    for other in models[1:-1]:
        assert np.allclose(models[0], other, rtol=1e-9, atol=1e-12)
    assert np.allclose(models[0], models[-1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0])
def test_every_loss_can_be_fitted(kind, epsilon):
    loss = kind()
    bounds = Bounds(row_norm=1.0, target=None if loss.kind == "classification" else (0, 4))
    w = solved(
        DualCoordinateDescent(), Problem(loss, L2(0.01), bounds), X, targets(loss), Budget(epsilon, 1e-6)
    ).w
    assert np.isfinite(w).all()


def objective_on(problem, table, y):
    """The function that a fit minimises."""
    rows = as_data(table, y, problem.bounds, problem.constant(table.shape[1]))
    return lambda w: (
        problem.loss.value(rows.dot(w), rows.y).mean() + problem.penalty.value(w[: table.shape[1]])
    )


def objective(problem, table, y, w):
    return objective_on(problem, table, y)(w)


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("penalty", [L2(0.01), L2(3.0), ElasticNet(0.02, 0.01)], ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "CSR"])
def test_without_noise_nothing_near_is_better(kind, penalty, fit_intercept, form):
    problem = Problem(kind(), penalty, Bounds(row_norm=math.inf), fit_intercept)
    y = targets(problem.loss)
    if kind is Tweedie:  # a target of 0 has no slope of 0, where the dual variables start
        with pytest.raises(UnsupportedProblem, match="Newton or GradientDescent"):
            solved(DualCoordinateDescent(), problem, form(X), y, INFINITE)
        return
    result = solved(DualCoordinateDescent(), problem, form(X), y, INFINITE)
    minimised = objective_on(problem, X, y)
    best = minimised(result.w)
    assert result.gap <= 1e-8 * max(1.0, best)
    for scale in (1e-1, 1e-2, 1e-3, 1e-4):
        for _ in range(30):
            rival = result.w + scale * rng.standard_normal(len(result.w))
            assert minimised(rival) >= best - 1e-8 * max(1.0, best)


def test_a_loss_that_kernels_do_not_know_is_minimised_too():
    uncompiled = type("Uncompiled", (Squared,), {"form": None})
    known, other = (
        solved(DualCoordinateDescent(), Problem(loss, L2(0.5), BALL), X[:30], TARGET[:30], INFINITE)
        for loss in (Squared(), uncompiled())
    )
    assert np.allclose(known.w, other.w, atol=1e-6) and other.gap <= 1e-8


PENALTIES = {
    "elastic net in a box": [[0.01, 0.3, -1.0, 1.0]] * P,
    "L2 of each its own": [[0.0, 0.3 + 0.1 * j, -math.inf, math.inf] for j in range(P)],
    "common L2": [[0.0, 0.3, -math.inf, math.inf]] * P,
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("loss", [cls() for cls in LOSSES], ids=lambda loss: loss.name)
def test_compiled_passes_and_single_steps_agree(loss, form, penalty):
    table, y = form(X[:50]), targets(loss)[:50]
    uncompiled = type("Uncompiled", (type(loss),), {"form": None})()
    intercept = [0.0, 0.1, -math.inf, math.inf]
    shape = DualForm(50, *np.array([*PENALTIES[penalty], intercept]).T, 0.5, True)
    assert (shape.compiled.common != 0) == (penalty == "common L2")
    records = as_data(table, y, Bounds(row_norm=1.0), 0.5)
    order, ends = rng.permutation(50), []
    for one in (loss, uncompiled):
        opened = Curator(records, REPLACE, Randomness(0)).open(
            DualStep(one, 0.4, 2.0, 6.0), np.zeros(P + 1), Gaussian(0.0)
        )
        v, moved, steps = opened.ascend(np.zeros(P + 1), shape, order, 1)
        assert steps == 50 and set(moved) <= set(order)
        ends.append(opened.ascend(v, shape, order, 1)[0])
    assert np.allclose(*ends, rtol=1e-10, atol=1e-12)


OPTIMA = {
    "ridge": (
        lambda **k: dpglm.Ridge(math.inf, alpha=2.0, **k),
        linear_model.Ridge(alpha=2.0, solver="svd"),
        lambda z, y, w: 0.5 * np.square(z - y).mean() + w @ w / N,
        TARGET,
    ),
    "elastic net": (
        lambda **k: dpglm.ElasticNet(math.inf, alpha=0.1, l1_ratio=0.5, **k),
        linear_model.ElasticNet(alpha=0.1, l1_ratio=0.5, tol=1e-12, max_iter=100_000),
        lambda z, y, w: 0.5 * np.square(z - y).mean() + 0.05 * np.abs(w).sum() + 0.025 * w @ w,
        TARGET,
    ),
    "logistic": (
        lambda **k: dpglm.LogisticRegression(math.inf, C=3.0, classes=[-1, 1], **k),
        linear_model.LogisticRegression(C=3.0, tol=1e-12, max_iter=100_000),
        lambda z, y, w: np.logaddexp(0, -y * z).mean() + w @ w / (6 * N),
        LABELS,
    ),
    "SVC": (
        lambda **k: dpglm.LinearSVC(math.inf, C=0.5, classes=[-1, 1], **k),
        svm.LinearSVC(C=0.5, loss="hinge", dual=True, tol=1e-12, max_iter=1_000_000, random_state=0),
        lambda z, y, w: np.maximum(1 - y * z, 0).mean() + w @ w / N,
        LABELS,
    ),
    "SVR": (
        lambda **k: dpglm.LinearSVR(math.inf, C=0.5, tube=0.2, **k),
        svm.LinearSVR(C=0.5, epsilon=0.2, dual=True, tol=1e-12, max_iter=1_000_000, random_state=0),
        lambda z, y, w: np.maximum(np.abs(z - y) - 0.2, 0).mean() + w @ w / N,
        TARGET,
    ),
}


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")  # it is asked for more than it can do
@pytest.mark.parametrize("name", OPTIMA)
@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_reaches_the_optimum_of_scikit_learn_and_its_duality_gap_says_so(name, form, fit_intercept):
    make, reference, value, y = OPTIMA[name]
    reference = type(reference)(**{**reference.get_params(), "fit_intercept": fit_intercept})
    if fit_intercept and name.startswith("SV"):
        # liblinear penalises the intercept, libsvm does not.
        common = {"kernel": "linear", "C": 0.5, "tol": 1e-10}
        reference = svm.SVC(**common) if name == "SVC" else svm.SVR(epsilon=0.2, **common)
    reference.fit(X, y)
    model = make(solver="dual-coordinate-descent", fit_intercept=fit_intercept).fit(form(X), y)
    ends = []
    for one in (model, reference):
        w, b = np.ravel(one.coef_), float(np.ravel(one.intercept_)[0]) if fit_intercept else 0.0
        ends.append(value(X @ w + b, y, w))
    assert ends[0] <= ends[1] + 1e-6 * ends[1]
    assert ends[0] >= ends[1] * (1 - 1e-4)  # liblinear is not that exact itself
    assert 0 <= model.gap_ + 1e-12 <= 1e-8


@pytest.mark.parametrize("shift", [1e3, 1e6, -1e6])
@pytest.mark.parametrize("make", [dpglm.Ridge, dpglm.LinearSVR])
def test_an_intercept_far_from_its_start_is_found(make, shift):
    near, far = (
        make(math.inf, solver="dual-coordinate-descent").fit(X, TARGET + offset) for offset in (0.0, shift)
    )
    assert np.allclose(near.coef_, far.coef_, atol=1e-3)
    assert far.intercept_ - shift == pytest.approx(near.intercept_, abs=1e-3)


def test_steps_of_batches_without_noise_are_the_algorithm_as_it_is_written():
    problem = Problem(Squared(), L2(0.05), Bounds(row_norm=1.0), fit_intercept=False)
    solver = DualCoordinateDescent(batch_size=N, clip=0.02, steps=30, overlap=1.0, average=False)
    rows = X + 1e-3
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    result = solved(solver, problem, rows, TARGET, INFINITE)
    alpha, v = np.zeros(N), np.zeros(P)
    for _ in range(30):
        moves = (TARGET - rows @ v / (0.05 * N) - alpha) / (1 + 1 / 0.05)
        moves /= np.maximum(1, np.abs(moves) / 0.02)
        alpha += moves
        v += rows.T @ moves
    assert np.allclose(result.w, v / (0.05 * N), rtol=1e-10)
    w = result.w
    gap = (
        0.5 * np.square(rows @ w - TARGET).mean() + 0.025 * w @ w
        + (0.5 * alpha**2 - alpha * TARGET).mean() + v @ v / (2 * 0.05 * N**2)
    )  # fmt: skip
    assert result.gap == pytest.approx(gap, rel=1e-9)


@pytest.mark.parametrize("overlap", [0.5, 2 / 3, 1.0])
def test_batches_of_parallel_rows_do_not_run_away(overlap):
    problem = Problem(Squared(), L2(0.01), Bounds(row_norm=1.0), fit_intercept=False)
    solver = DualCoordinateDescent(batch_size=N, steps=500, overlap=overlap, average=False)
    w = solved(solver, problem, np.ones((N, 1)), TARGET, INFINITE).w
    assert w == pytest.approx(TARGET.mean() / 1.01, rel=1e-3)


def test_batches_come_to_the_same_minimum_however_much_is_clipped():
    problem = Problem(Logistic(), L2(0.1), Bounds(row_norm=1.0), fit_intercept=False)
    best = solved(DualCoordinateDescent(), problem, X, LABELS, INFINITE).w
    for clip, steps in ((1.0, 2000), (0.01, 4000)):
        solver = DualCoordinateDescent(batch_size=40, clip=clip, steps=steps, average=False)
        assert np.allclose(solved(solver, problem, X, LABELS, INFINITE).w, best, atol=1e-6)


def test_the_sum_of_all_noise_is_a_linear_term_of_the_objective():
    problem = Problem(Logistic(), L2(0.1), Bounds(row_norm=1.0), fit_intercept=False)
    records = as_data(X, LABELS, problem.bounds)
    curator = Curator(records, REPLACE, Randomness(0))
    form = DualForm(N, *problem.coordinate_form(P))
    opened = curator.open(DualStep(Logistic(), 1.0, 0.1 / 0.1, 0.0), np.zeros(P), Gaussian(0.0))
    noise, v = rng.standard_normal(P), np.zeros(P)
    v += noise
    for _ in range(3000):
        v += opened.step(form.point(v), Poisson(0.1))
    w = form.point(v)
    gradient = records.t_dot(Logistic().derivative(records.dot(w), LABELS)) / N + 0.1 * w
    assert np.allclose(gradient, noise / N, atol=1e-9)


def test_a_private_fit_shows_nothing_of_the_dual_variables():
    problem = Problem(Hinge(), L2(0.1), Bounds(row_norm=1.0))
    records = as_data(X, LABELS, problem.bounds, 0.5)
    curator, query = Curator(records, REPLACE, Randomness(0)), DualStep(Hinge(), 1.0, 1.0, 1.0)
    opened = curator.open(query, np.zeros(P + 1), Gaussian(1.0))
    form = DualForm(N, *problem.coordinate_form(P), 0.0, True)
    with pytest.raises(ValueError, match="not private"):
        opened.ascend(np.zeros(P + 1), form, np.arange(N), 1)
    with pytest.raises(ValueError, match="not private"):
        opened.gap(np.zeros(P + 1), form)
    with pytest.raises(ValueError, match="not private"):
        opened.polish(np.zeros(P + 1), form, 1e-11)
    assert [name for name in vars(type(opened)) if not name.startswith("_")] == [
        "step", "ascend", "polish", "gap",
    ]  # fmt: skip


def test_more_noise_moves_the_model_further_from_the_optimum():
    problem = Problem(Logistic(), L2(0.02), Bounds(row_norm=1.0))
    best = solved(DualCoordinateDescent(), problem, X, LABELS, INFINITE).w
    solver = DualCoordinateDescent(batch_size=40, clip=0.1, steps=100)

    def distance(epsilon):
        budget = Budget(epsilon, 1e-6)
        return np.mean(
            [np.linalg.norm(solved(solver, problem, X, LABELS, budget, s).w - best) for s in range(5)]
        )

    means = [distance(epsilon) for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("penalty", [Zero(), L1(0.1), Box(-1.0, 1.0), L1Ball(1.0)], ids=repr)
def test_a_penalty_without_an_l2_part_is_refused_with_the_way_out(penalty):
    problem = Problem(Logistic(), penalty, Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match="L2 part.*ElasticNet"):
        DualCoordinateDescent().plan(problem, N, P, BUDGET, REPLACE)


def test_a_loss_without_a_conjugate_is_fitted_with_noise_only():
    untold = type("Untold", (Hinge,), {"conjugate": Loss.conjugate})()
    problem = Problem(untold, L2(0.1), Bounds(row_norm=1.0))
    assert np.isfinite(solved(DualCoordinateDescent(), problem, X, LABELS).w).all()
    with pytest.raises(UnsupportedProblem, match="conjugate"):
        DualCoordinateDescent().plan(problem, N, P, INFINITE, REPLACE)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_gap_of_unfinished_steps_is_an_upper_bound(fit_intercept):
    problem = Problem(Logistic(), L2(0.02), Bounds(row_norm=1.0), fit_intercept)
    best = objective(problem, X, LABELS, solved(DualCoordinateDescent(), problem, X, LABELS, INFINITE).w)
    for steps in (1, 10, 100, 1000):
        result = solved(DualCoordinateDescent(20, steps=steps), problem, X, LABELS, INFINITE)
        excess = objective(problem, X, LABELS, result.w) - best
        # With an intercept, the bound is for those around its own, where the best one comes to lie.
        assert result.gap >= (0.0 if fit_intercept and steps < 100 else excess) - 1e-12
        assert steps < 1000 or result.gap < 1e-3


def test_slopes_without_a_bound_need_a_clip():
    problem = Problem(Squared(), L2(0.1), Bounds(row_norm=1.0))
    with pytest.raises(UnsupportedProblem, match="clip"):
        DualCoordinateDescent().plan(problem, N, P, BUDGET, REPLACE)
    assert DualCoordinateDescent(clip=0.1, steps=5).plan(problem, N, P, BUDGET, REPLACE).clip == 0.1


@pytest.mark.parametrize("name", ["steps", "clip", "batch_size", "overlap"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_impossible_settings_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        DualCoordinateDescent(**{name: value})


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive()], ids=repr)
def test_a_loss_whose_slope_jumps_is_for_dual_coordinate_descent(loss):
    bounds = Bounds(row_norm=1.0, target=None if loss.kind == "classification" else (0, 4))
    problem = Problem(loss, L2(0.01), bounds)
    assert isinstance(get("auto", Task(problem, 100, P, BUDGET, REPLACE, 1)), DualCoordinateDescent)
    for solver in (GradientDescent(), CoordinateDescent(), GreedyCoordinateDescent()):
        with pytest.raises(UnsupportedProblem, match="curvature.*DualCoordinateDescent"):
            solver.plan(problem, N, P, BUDGET, REPLACE)
    with pytest.raises(UnsupportedProblem, match="curvature"):
        GradientDescent(step_size=0.1).plan(problem, N, P, INFINITE, REPLACE)
    with pytest.raises(UnsupportedProblem, match="curvature"):
        FrankWolfe().plan(replace(problem, penalty=L1Ball(1.0)), N, P, BUDGET, REPLACE)
    assert np.isfinite(solved(GradientDescent(step_size=0.1, steps=5), problem, X, targets(loss)).w).all()


def test_too_few_passes_without_noise_are_told():
    model = dpglm.LogisticRegression(
        math.inf, C=1e6, classes=[-1, 1], solver=DualCoordinateDescent(batch_size=1, steps=50)
    )
    with pytest.warns(ConvergenceWarning):
        model.fit(X, LABELS)
    assert model.gap_ > 1e-3


@pytest.mark.parametrize("table", [np.zeros((5, 3)), np.ones((1, 2)), rng.standard_normal((4, 30))], ids=str)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, math.inf])
def test_small_wide_and_empty_tables_are_fitted_without_fuss(table, epsilon):
    model = dpglm.LinearSVC(epsilon, classes=[-1, 1]).fit(table, np.resize([1, -1], len(table)))
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("radius", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("strength", [1e-300, 1e-12, 1.0, 1e300])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("given", [(None, None), (0.1, None), (None, 10**6)], ids=str)
def test_usual_settings_are_usable_however_extreme_the_problem_is(radius, strength, epsilon, given):
    clip, steps = given
    for loss in (Logistic(), Hinge()):
        problem = Problem(loss, L2(strength), Bounds(row_norm=radius))
        for n, p in ((1, 1), (1, 10**7), (10**9, 1)):
            noise = noise_of_one_pass(n, Budget(epsilon, 1e-6), REPLACE, 1)
            size, cut, count = default_settings(problem, n, p, noise, None, clip, steps, 1.0)
            assert 1 <= size <= n and 0 < cut < math.inf and 1 <= count <= (steps or 10_000)


def test_a_prediction_answers_to_its_own_step_by_the_weights_of_row_and_constant_feature():
    records = as_data([[0.3, 0.4]], [2.0], Bounds(row_norm=1.0), 0.7)
    answer = DualStep(Squared(), math.inf, 3.0, 5.0)(records, np.zeros(3))
    assert np.allclose(answer, 2.0 / (1 + 3.0 * 0.25 + 5.0 * 0.49) * np.array([0.3, 0.4, 0.7]))


def test_weights_are_those_of_a_batch_and_of_each_strength():
    problem = Problem(Logistic(), L2(0.05), Bounds(row_norm=1.0))
    plan = DualCoordinateDescent(batch_size=N // 4).plan(problem, N, P, BUDGET, REPLACE)
    query, (strength, ratio) = _query(problem, plan), _intercept(problem, P)
    assert (query.clip, query.weight, query.constant_weight) == (
        plan.clip,
        1 / (0.05 * N),
        1 / (strength * N),
    )
    assert query.shared_weight == pytest.approx(2 / 3 * (N // 4 - 1) / N * (1 / 0.05 + ratio))
    assert strength == 0.25 * 0.5**2 / 50 and ratio == 0.5**2 / strength


def test_the_mean_of_the_last_quarter_of_the_iterates_is_returned():
    problem = Problem(Logistic(), L2(0.05), Bounds(row_norm=1.0))
    ends = [
        solved(
            DualCoordinateDescent(batch_size=N, clip=0.02, steps=steps, average=False),
            problem, X, LABELS, INFINITE,
        ).w
        for steps in (8, 9, 10)
    ]  # fmt: skip
    mean = solved(DualCoordinateDescent(batch_size=N, clip=0.02, steps=10), problem, X, LABELS, INFINITE).w
    assert np.allclose(mean, np.mean(ends, axis=0), rtol=1e-12)


def test_the_gap_is_that_of_an_intercept_held_around_its_centre():
    strength, centre, w = 0.3, 1.5, np.linspace(-1, 1, P + 1)
    l2 = np.append(np.full(P, 0.1), strength)
    form = DualForm(N, 0 * l2, l2, 0 * l2 - math.inf, 0 * l2 + math.inf, centre, True)
    records = as_data(X, TARGET, Bounds(row_norm=1.0), 0.5)
    opened = Curator(records, REPLACE, Randomness(0)).open(
        DualStep(Squared(), 1.0, 1.0, 1.0), w, Gaussian(0.0)
    )
    v = opened.step(w, Everyone())
    rows = np.column_stack([Bounds(row_norm=1.0).clip(X), np.full(N, 0.5)])
    alpha = opened._alpha
    held = w - centre * (np.arange(P + 1) == P)
    primal = 0.5 * np.square(rows @ w - TARGET).mean() + (l2 / 2 * held**2).sum()
    dual = (alpha * TARGET - alpha**2 / 2).mean() - (v**2 / (2 * l2)).sum() / N**2 - centre * v[-1] / N
    assert opened.gap(w, form) == pytest.approx((primal - dual, primal), rel=1e-9)


class Overflowing(Squared):
    """A loss that overflows."""

    def dual_step(self, alpha, z, y, weight):
        return np.where(y > 0, np.inf, np.nan)


def test_steps_that_overflow_add_no_more_than_the_clip():
    records = as_data([[0.6, 0.8], [0.0, 0.0]], [1.0, -1.0], Bounds(row_norm=1.0))
    assert np.allclose(DualStep(Overflowing(), 0.1, 1.0, 1.0)(records, np.zeros(2)), [0.06, 0.08])


def test_a_step_at_a_point_that_diverged_is_refused():
    opened = Curator(as_data(X, LABELS, Bounds(row_norm=1.0)), REPLACE, Randomness(0)).open(
        DualStep(Hinge(), 1.0, 1.0, 1.0), np.zeros(P), Gaussian(1.0)
    )
    with pytest.raises(FloatingPointError, match="diverged"):
        opened.step(np.full(P, 1e101), Everyone())


@pytest.mark.parametrize(
    "model",
    [dpglm.Ridge(math.inf, alpha=3e3, fit_intercept=False), dpglm.LinearSVR(math.inf, C=1e-4)],
    ids=repr,
)
def test_a_minimum_that_is_reached_at_once_is_seen_at_once(model):
    """A gap that is nothing but rounding does not fall any more, and is 0."""
    draws = np.random.default_rng(5)
    for n in range(20, 40):
        table = draws.standard_normal((n, 3))
        if isinstance(model, dpglm.Ridge):
            model.set_params(solver="dual-coordinate-descent")
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            assert np.max(model.fit(table, table[:, 0] + 3).n_iter_) < 1000 * n
        assert model.gap_ >= 0


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.name)
def test_weights_that_overflow_neither_warn_of_a_record_nor_let_it_add_more_than_the_clip(kind):
    for entry in (0.0, 1e-160, 1.0, 1e40, 1e99):
        for target in (1.0,) if kind.kind == "classification" else (0.0, 1.0, 1e99):
            records = as_data([[entry, entry]], [target], Bounds(row_norm=1e50), 5e49)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                query = DualStep(kind(), 1.0, 1e300, 1e300)
                opened = query.open(Opening(records, np.zeros(3), REPLACE, Exact(), Gaussian(0.0)))
                for size in (0.0, 1.0, -1e50, 0.0):
                    moved = opened.step(np.full(3, size), Everyone())
                    assert np.linalg.norm(moved) <= 1.0 + 1e-15


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_neighbours_in_any_states_move_the_answer_by_at_most_the_sensitivity(kind, neighbours):
    draws, query = np.random.default_rng(6), DualStep(kind(), 0.3, 0.4, 0.2, 0.1)
    largest = 0.0
    for _ in range(300):
        table, w = draws.standard_normal((2, 4, P)), 10 ** draws.uniform(-2, 2) * draws.standard_normal(P + 1)
        y = (
            np.abs(draws.choice([-1.0, 1.0], (2, 4)))
            if kind.kind == "count"
            else draws.choice([-1.0, 1.0], (2, 4))
        )
        states = 10 ** draws.uniform(-3, 3) * draws.standard_normal((2, 4))
        table[1, 1:], y[1, 1:], states[1, 1:] = table[0, 1:], y[0, 1:], states[0, 1:]
        if neighbours is Neighbours.ZERO_OUT:
            table[1, 0] = math.nan
        answers = []
        for rows, target, alpha in zip(table, y, states, strict=True):
            records = as_data(rows, target, BALL, 0.5)
            opened = query.open(Opening(records, w, neighbours, Exact(), Gaussian(0.0)))
            opened._alpha[:] = alpha
            answers.append(opened.step(w, Everyone()))
        largest = max(largest, np.linalg.norm(answers[0] - answers[1]) / query.sensitivity(neighbours))
    assert 0.8 <= largest <= 1 + 1e-12


def test_usual_clip_and_steps_let_a_dual_variable_go_its_way():
    problem = Problem(Logistic(), L2(1.0), Bounds(row_norm=1.0), fit_intercept=False)
    way, usual = 0.8, partial(default_settings, problem, 10_000, 5, 5e-5, None)
    largest = 1 / (1 + (1 + 0.5 * 1999) / 10_000 / 4)
    batch, clip, steps = usual(None, None, 0.5)
    assert batch == 2000 and clip == pytest.approx(0.3 * largest)
    assert way <= 0.2 * steps * clip < way + 0.2 * clip
    _, clip, _ = usual(None, 6, 0.5)
    assert 0.2 * 6 * clip == pytest.approx(way)
    assert usual(None, 2, 0.5)[1] == pytest.approx(largest)
    assert usual(0.01, None, 0.5)[2] == 400


@pytest.mark.parametrize("batch_size", [N, N // 4])
def test_a_replay_over_the_same_records_has_the_exact_answers_of_all_records(batch_size):
    problem = Problem(Logistic(), L2(0.05), Bounds(row_norm=1.0))
    solver = DualCoordinateDescent(batch_size=batch_size, clip=1.0, steps=4)
    plan = solver.plan(problem, N, P, BUDGET, REPLACE)
    records = as_data(X, LABELS, problem.bounds, problem.constant(P))
    recorder = Recorder(records, REPLACE, Randomness(0))
    model = solver.run(plan, problem, recorder).w
    replayer = Replayer(records, recorder)
    assert np.array_equal(solver.run(plan, problem, replayer).w, model)
    same = [np.array_equal(a.exact, b.exact) for a, b in zip(recorder.answers, replayer.answers, strict=True)]
    # A secret batch has moved states of the recorder's records, so only the first answer is the same.
    assert same == ([True] * 4 if batch_size == N else [True] + [False] * 3)
    assert np.allclose(recorder.answers[0].exact, _query(problem, plan)(records, 0 * model))


FREE = (-math.inf, math.inf)
JUMPS = pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.0), EpsilonInsensitive(0.3)], ids=repr)


def opened_at_zero(loss, table, part, intercept):
    """An opened query at zero with a form of (l1, l2, low, high) for each coefficient."""
    n, p = table.shape
    parts = np.array([part] * p + [(0.0, 1e-3, *FREE)] * intercept).T
    form = DualForm(n, *parts, 0.0, intercept)
    records = as_data(table, targets(loss)[:n], Bounds(row_norm=math.inf), 1.0 if intercept else 0.0)
    opened = Curator(records, REPLACE, Randomness(0)).open(
        DualStep(loss, math.inf, 1 / (n * part[1]), 1e3 / n), np.zeros(p + intercept), Gaussian(0.0)
    )
    return opened, form


@JUMPS
@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "part",
    [(0.0, 1e-4, *FREE), (0.05, 1e-3, *FREE), (0.0, 1e-3, -0.2, 0.1), (0.01, 1e-2, -0.5, 0.0)],
    ids=["L2", "elastic net", "box", "all"],
)
@pytest.mark.parametrize("n", [N, 4])
def test_newton_steps_alone_close_the_gap_where_slopes_jump(loss, form, intercept, part, n):
    opened, shape = opened_at_zero(loss, form(X[:n]), part, intercept)
    w, v, steps = opened.polish(np.zeros(P + intercept), shape, 1e-11)
    held = replace(shape, centre=float(w[-1])) if intercept else shape
    gap, value = opened.gap(w, held)
    assert gap <= 1e-11 * value + 1e-15 and 0 < steps < 300 * n
    assert ((w[:P] >= part[2]) & (w[:P] <= part[3])).all()
    assert np.allclose(v, opened._data.t_dot(opened._alpha))


class Stuck(Hinge):
    """A loss whose dual steps lead nowhere."""

    form = None

    def dual_step(self, alpha, z, y, weight):
        return np.zeros_like(z)


def test_newton_steps_that_do_not_help_leave_everything_where_it_was():
    opened, shape = opened_at_zero(Stuck(), X, (0.0, 1e-3, *FREE), True)
    before = opened.gap(np.zeros(P + 1), shape)
    w, v, _ = opened.polish(np.zeros(P + 1), shape, 1e-11)
    assert not w.any() and not v.any() and not opened._alpha.any()
    assert opened.gap(w, shape) == before


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("unit", [1.0, 1e5])
def test_support_vector_regression_without_noise_ends_soon_on_many_records(C, unit):
    draws = np.random.default_rng(2)
    x = draws.uniform(-1, 1, (5000, 2))
    y = unit * (0.5 + x @ [0.3, -0.2] + draws.normal(0, 0.05, 5000))
    model = dpglm.LinearSVR(math.inf, C=C * unit).fit(x, y)
    value = np.abs(x @ model.coef_ + model.intercept_ - y).mean() + model.coef_ @ model.coef_ / (
        1e4 * C * unit
    )
    assert model.gap_ <= 1e-11 * value and model.n_iter_ < 300 * 5000
    # The mean loss cannot fall along any coefficient, nor along the intercept.
    for direction in (*np.eye(2), np.zeros(2)):
        for step in (-1e-6 * unit, 1e-6 * unit):
            w, b = model.coef_ + step * direction, model.intercept_ + (0.0 if direction.any() else step)
            rival = np.abs(x @ w + b - y).mean() + w @ w / (1e4 * C * unit)
            assert rival >= value * (1 - 1e-11)


@pytest.mark.parametrize("C", [1.0, 30.0])
def test_support_vector_machines_with_weak_penalties_reach_the_optimum_of_libsvm(C):
    draws = np.random.default_rng(3)
    x = draws.standard_normal((300, 3))
    y = x @ [1.0, -0.5, 0.0] + 2.0 + 0.3 * draws.standard_normal(300)
    ours = dpglm.LinearSVR(math.inf, C=C, tube=0.1).fit(x, y)
    theirs = svm.SVR(kernel="linear", C=C, epsilon=0.1, tol=1e-8).fit(x, y)
    ends = [
        np.maximum(np.abs(x @ np.ravel(one.coef_) + one.intercept_ - y) - 0.1, 0).mean()
        + np.square(one.coef_).sum() / (600 * C)
        for one in (ours, theirs)
    ]
    assert ends[0] <= ends[1] * (1 + 1e-11) and ends[0] >= ends[1] * (1 - 1e-5)
