"""Preconditioned descent, and the two numbers that it and gradient descent release first."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss

from dpglm import Bounds, Budget, LinearRegression, LogisticRegression, Neighbours, Ridge, Stream, threads
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Logistic, Squared
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.penalties import L1, L2, Zero
from dpglm.problem import Problem
from dpglm.queries import MeanRow, gradients
from dpglm.solvers import (
    GradientDescent,
    PreconditionedDescent,
    Task,
    gradient_descent,
    recalibration,
)
from dpglm.solvers.preludes import PrivateSetting, RowScalePrelude, deviations_of, shortened

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

rng = np.random.default_rng(0)
N, P = 3_000, 6
MIXING = np.eye(P) + 0.8 * np.triu(rng.standard_normal((P, P)), 1)
X = np.clip(rng.uniform(-1, 1, (N, P)) @ MIXING / 3, -1, 1)
SLOPES = np.array([0.4, -0.3, 0.2, 0.0, 0.1, -0.2])
Y = np.clip(X @ SLOPES - 0.3 + 0.05 * rng.standard_normal(N), -1, 1)
LABELS = np.where(rng.random(N) < 1 / (1 + np.exp(-6 * (X @ SLOPES) + 2.0)), 1, -1)
BOUNDS = Bounds(feature=1.0, target=(-1, 1))


def r2(model, table, y):
    left = y - model.predict(table)
    return 1 - left @ left / np.sum((y - y.mean()) ** 2)


def test_a_large_budget_finds_what_least_squares_finds():
    model = LinearRegression(1_000.0, bounds=BOUNDS, solver=PreconditionedDescent(), random_state=1).fit(X, Y)
    exact = LinearRegression(math.inf, bounds=BOUNDS).fit(X, Y)
    assert r2(model, X, Y) > r2(exact, X, Y) - 0.005


def test_without_noise_it_is_the_exact_minimiser():
    here, there = (
        Ridge(math.inf, alpha=3.0, bounds=BOUNDS, solver=solver).fit(X, Y)
        for solver in (PreconditionedDescent(), GradientDescent())
    )
    assert np.allclose(here.coef_, there.coef_, atol=1e-7)


def test_units_of_columns_do_not_matter():
    """The fit in years and dollars predicts what the fit of scaled columns predicts: ranges are public."""
    low, high = np.array([18.0, 0, -5, 100, 0, 1e-3]), np.array([90.0, 2e5, 5, 101, 1, 2e-3])
    raw = low + (X + 1) / 2 * (high - low)
    scaled, units = (
        LinearRegression(1.0, bounds=bounds, solver=PreconditionedDescent(), random_state=3).fit(table, Y)
        for table, bounds in ((X, BOUNDS), (raw, Bounds(feature=(low, high), target=(-1, 1))))
    )
    assert np.allclose(scaled.predict(X), units.predict(raw), atol=1e-5)


@pytest.mark.parametrize("solver", [PreconditionedDescent(steps=5), GradientDescent(steps=5)], ids=repr)
def test_layouts_threads_streams_and_blocks_give_the_same_bits(solver, monkeypatch):
    def fitted(table, labels=LABELS):
        model = LogisticRegression(
            1.0, classes=[-1, 1], solver=solver, bounds=Bounds(feature=1.0), random_state=5
        )
        model.fit(table, labels)
        return np.append(model.coef_, model.intercept_)

    expected = fitted(X)
    for table in (np.asfortranarray(X), sp.csr_array(X), sp.csc_matrix(X)):
        assert np.array_equal(fitted(table), expected)
    cut = [(X[k : k + 700], LABELS[k : k + 700]) for k in range(0, N, 700)]
    assert np.array_equal(fitted(Stream(lambda: iter(cut), N, P), None), expected)
    monkeypatch.setattr(threads, "PROCESSORS", 1)
    assert np.array_equal(fitted(X), expected)
    monkeypatch.setattr(gradients, "_MOST_BYTES", 0)  # the matrix is multiplied in every pass
    assert np.array_equal(fitted(X), expected)


def test_no_column_deviates_more_than_its_mean_allows():
    """Numbers in [-1, 1] of any law; the bound is reached by those at the ends."""
    laws = [drawn(size=(500, 40)) for drawn in (rng.random, rng.standard_normal, rng.standard_cauchy)]
    columns = np.hstack([np.clip(k * law - c, -1, 1) for law in laws for k in (0.1, 3) for c in (0, 0.9)])
    means = columns.mean(axis=0)
    assert (columns.std(axis=0) <= deviations_of(means, 0.0) + 1e-12).all()
    ends = np.where(rng.random((500, 9)) < np.linspace(0.1, 0.9, 9), -1.0, 1.0)
    assert np.allclose(ends.std(axis=0), deviations_of(ends.mean(axis=0), 0.0))
    assert (deviations_of(means + 0.1, 0.05) >= deviations_of(means + 0.1, 0.0)).all()


def test_a_column_that_fills_little_of_its_range_is_found():
    """Its variance is a tenth of what noise hides in the first Gram matrix."""
    wide = Bounds(feature=[40.0, 1, 1, 1, 1, 1], target=(-1, 1))
    table = np.random.default_rng(1).uniform(-1, 1, (20_000, P))
    y = np.clip(table @ [0.5, 0.1, -0.1, 0.1, 0.05, 0.0], -1, 1)
    scores = [
        r2(
            LinearRegression(1.0, bounds=wide, solver=PreconditionedDescent(), random_state=k).fit(table, y),
            table,
            y,
        )
        for k in range(3)
    ]
    assert min(scores) > 0.95


def test_little_noise_pays_for_two_gram_matrices_and_much_for_one():
    def count(n):
        plan = PreconditionedDescent().plan(
            Problem(Squared(), Zero(), BOUNDS), n, 20, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE
        )
        return plan["Gram matrix"].count

    assert count(1_000) == 1 and count(100_000) == 2


def test_rare_labels_are_found():
    """The intercept starts at the released log-odds: a rare class is not lost in the larger one."""
    n = 40_000
    table = rng.uniform(-1, 1, (n, 3))
    labels = np.where(rng.random(n) < 1 / (1 + np.exp(-8 * table[:, 0] + 7.0)), 1, -1)
    assert 0.06 < np.mean(labels > 0) < 0.12
    model = LogisticRegression(
        2.0, classes=[-1, 1], bounds=Bounds(feature=1.0), solver=PreconditionedDescent(), random_state=2
    ).fit(table, labels)
    found = model.predict(table)
    assert np.mean(found[labels > 0] > 0) > 0.25
    assert np.mean(found == labels) > np.mean(labels < 0) + 0.005


def learned(plan, problem, curator, coordinates):
    return RowScalePrelude.learn(plan, problem, curator, PrivateSetting.public(problem, P, coordinates))


def test_the_two_numbers_are_the_mean_squared_norm_and_the_best_constant():
    problem = Problem(Squared(), Zero(), Bounds(feature=2.0, target=(-1, 3)))
    plan = GradientDescent().plan(problem, N, P, Budget(1e6, 1e-6), Neighbours.REPLACE_ONE)
    table, y = 2 * X, 1 + 2 * Y
    records = as_data(table, y, problem.bounds, problem.constant(P))
    found = learned(plan, problem, Curator(records, Neighbours.REPLACE_ONE, Randomness(1)), None)
    assert found.norm == pytest.approx(np.sqrt(np.mean(np.sum(table**2, axis=1))), rel=1e-2)
    assert found.start == pytest.approx(y.mean(), abs=1e-2)


def test_the_spread_of_targets_is_learnt_and_never_too_small():
    problem = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-20, 30)))
    plan = PreconditionedDescent().plan(problem, N, P, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)
    coordinates = problem.bounds.coordinates(P, False)
    records = as_data(X, Y, problem.bounds, problem.constant(P))
    found = [
        learned(plan, problem, Curator(records, Neighbours.REPLACE_ONE, Randomness(k)), coordinates).spread
        for k in range(20)
    ]
    assert min(found) >= 0.02 and np.median(found) < 0.5  # it is 0.01, and its noise 0.1
    exact = replace(plan, releases=tuple(replace(r, mechanism=Gaussian(1e-6)) for r in plan.releases))
    wide = Problem(Squared(), Zero(), BOUNDS)
    records = as_data(X, Y, BOUNDS, wide.constant(P))
    curator = Curator(records, Neighbours.REPLACE_ONE, Randomness(1))
    assert learned(exact, wide, curator, coordinates).spread == pytest.approx(Y.std(), rel=1e-2)


@pytest.mark.parametrize("solver", [PreconditionedDescent(), GradientDescent()], ids=repr)
def test_a_range_of_targets_that_is_too_wide_costs_little(solver):
    scores = [
        r2(
            LinearRegression(
                2.0, bounds=Bounds(feature=1.0, target=(-top, top)), solver=solver, random_state=4
            ).fit(X, Y), X, Y,
        )
        for top in (1.0, 4.0)
    ]  # fmt: skip
    assert scores[1] > 0.9 * scores[0] > 0.6


def test_wide_regressions_do_not_pay_for_a_range_that_is_too_wide():
    drawn = np.random.default_rng(0)
    turned = np.linalg.qr(drawn.standard_normal((400, 400)))[0]
    table = drawn.standard_normal((2_000, 400)) / np.sqrt(1.0 + np.arange(400)) @ turned.T
    table /= 1.2 * np.abs(table).max(axis=0)
    signal = table @ turned[:, :20].sum(axis=1)
    y = np.clip(signal / signal.std() + drawn.standard_normal(2_000), -5, 5)
    bounds = Bounds(feature=1.0, target=(-20.0, 20.0))
    model = LinearRegression(1.0, bounds=bounds, solver=GradientDescent(), random_state=0).fit(table, y)
    assert r2(model, table, y) > 0


def test_a_feature_in_a_huge_unit_does_not_hide_the_others():
    tiny = X * np.append(np.ones(P - 1), 1e-9)  # its penalty outweighs all records, so its coefficient is 0
    high = np.append(np.ones(P - 1), 1e-9)
    bounds = Bounds(feature=(-high, high), target=(-1.0, 1.0))
    with_it = Ridge(5.0, bounds=bounds, solver=PreconditionedDescent(), random_state=2).fit(tiny, Y)
    rest = Bounds(feature=1.0, target=(-1.0, 1.0))
    without = Ridge(5.0, bounds=rest, solver=PreconditionedDescent(), random_state=2).fit(X[:, :-1], Y)
    assert r2(with_it, tiny, Y) == pytest.approx(r2(without, X[:, :-1], Y), abs=0.02)


def task(n, epsilon=1.0, penalty=None, p=P):
    problem = Problem(Logistic(), penalty or Zero(), Bounds(feature=1.0))
    return Task(problem, n, p, Budget(epsilon, 1e-6), Neighbours.REPLACE_ONE)


def test_the_share_for_the_two_numbers_grows_for_small_tables_until_it_would_be_noise():
    shares = [RowScalePrelude(task(n)).share for n in (10**6, 500, 400, 5)]
    assert shares[0] == 0.02 < shares[1] < shares[2] <= 0.2 and shares[3] == 0.0
    small = GradientDescent().plan_for(task(5))
    assert not small.learns_scales and GradientDescent().plan_for(task(400)).learns_scales
    assert "too few" in small.warning and GradientDescent().plan_for(task(10**4)).warning is None


def test_what_it_does_not_serve_is_refused_by_name():
    with pytest.raises(UnsupportedProblem, match="takes an L2 penalty or none"):
        PreconditionedDescent().plan_for(task(1_000, penalty=L1(0.1)))
    with pytest.raises(UnsupportedProblem, match="at most 1000 features"):
        PreconditionedDescent().plan_for(task(1_000, p=1_001))
    with pytest.raises(ValueError, match="gram_share"):
        PreconditionedDescent(gram_share=0.99).plan_for(task(1_000))


def test_the_penalty_shrinks_coefficients():
    sizes = [
        np.linalg.norm(
            Ridge(50.0, alpha=alpha, bounds=BOUNDS, solver=PreconditionedDescent(), random_state=1)
            .fit(X, Y)
            .coef_
        )
        for alpha in (0.0, 300.0, 30_000.0)
    ]
    assert sizes[0] > 1.3 * sizes[1] > 5 * sizes[2]
    exact = Ridge(math.inf, alpha=300.0, bounds=BOUNDS).fit(X, Y)
    assert sizes[1] == pytest.approx(np.linalg.norm(exact.coef_), rel=0.15)


def test_an_l2_problem_is_served_with_any_relation_and_without_an_intercept():
    problem = Problem(Squared(), L2(0.01), Bounds(feature=1.0, target=(-1, 1)), fit_intercept=False)
    for neighbours in Neighbours:
        plan = PreconditionedDescent().plan(problem, N, P, Budget(2.0, 1e-6), neighbours)
        records = as_data(X, Y + 0.3, problem.bounds, 0.0)
        w = PreconditionedDescent.run(plan, problem, Curator(records, neighbours, Randomness(2))).w
        assert w.shape == (P,) and np.corrcoef(X @ w, X @ SLOPES)[0, 1] > 0.9


@pytest.mark.parametrize("solver", [PreconditionedDescent(clip=0.15)], ids=repr)
def test_the_last_rounds_correct_what_clipping_does_to_a_rare_label(solver, monkeypatch):
    drawn = np.random.default_rng(0)
    table = np.clip(drawn.uniform(-1, 1, (12_000, P)) @ MIXING / 3, -1, 1)
    rare = np.where(drawn.random(12_000) < 1 / (1 + np.exp(-6 * (table @ SLOPES) + 4.0)), 1, -1)
    assert np.mean(rare > 0) < 0.05

    def share_of_rare():
        """The median of nine fits, over the share of the label."""
        shares = []
        for seed in range(9):
            settings = {"classes": [-1, 1], "bounds": Bounds(feature=1.0), "random_state": seed}
            model = LogisticRegression(1.0, solver=solver, **settings).fit(table, rare)
            assert sum(release.query == "recalibration" for release in model.plan_.releases) == corrected
            shares.append(model.predict_proba(table)[:, 1].mean() / np.mean(rare > 0))
        return np.median(shares)

    corrected = 1
    found = share_of_rare()
    assert 0.45 < found < 1.4
    monkeypatch.setattr(recalibration, "_USEFUL", 0.0)
    corrected = 0
    assert share_of_rare() < found / 1.5


def test_the_last_rounds_of_gradient_descent_correct_what_clipping_does_to_a_rare_label(monkeypatch):
    monkeypatch.setattr(
        gradient_descent, "_CLIP_OF_NARROW", 0.0
    )  # it clips little on tables as narrow as this
    monkeypatch.setattr(gradient_descent, "_FEW", 1)
    rare = np.where(np.random.default_rng(0).random(N) < 1 / (1 + np.exp(-6 * (X @ SLOPES) + 4.5)), 1, -1)
    assert np.mean(rare > 0) < 0.05

    def share_of_rare():
        """The median of five fits, over the share of the label."""
        settings = {"classes": [-1, 1], "bounds": Bounds(feature=1.0), "solver": GradientDescent()}
        fits = [LogisticRegression(3.0, random_state=seed, **settings).fit(X, rare) for seed in range(5)]
        for fit in fits:
            assert sum(release.query == "recalibration" for release in fit.plan_.releases) == corrected
        return np.median([fit.predict_proba(X)[:, 1].mean() / np.mean(rare > 0) for fit in fits])

    corrected = 1
    found = share_of_rare()
    assert 0.5 < found < 1.4
    monkeypatch.setattr(recalibration, "_USEFUL", 0.0)
    corrected = 0
    assert share_of_rare() < found / 1.5


def test_without_an_intercept_gradient_descent_corrects_the_scale_alone(monkeypatch):
    drawn = np.random.default_rng(0)
    place = drawn.integers(60, size=20_000)
    effects = np.repeat([2.0, -1.5, 0.5], 20)
    labels = drawn.random(20_000) < 1 / (1 + np.exp(-effects[place]))

    def fits():
        settings = {"classes": [False, True], "bounds": Bounds(row_norm=1.0), "fit_intercept": False}
        models = [
            LogisticRegression(1.0, solver=GradientDescent(), random_state=seed, **settings)
            for seed in range(3)
        ]
        return [model.fit(np.eye(60)[place], labels) for model in models]

    def scale(models):
        return np.mean([np.ravel(model.coef_) @ effects / (effects @ effects) for model in models])

    corrected = fits()
    assert all(model.plan_.releases[-1].query == "recalibration" for model in corrected)
    assert all(model.intercept_ == 0 for model in corrected) and 0.75 < scale(corrected) < 1.25
    monkeypatch.setattr(recalibration, "_USEFUL", 0.0)
    assert scale(fits()) > 1.4


def test_the_last_steps_are_left_out_where_they_would_be_noise_or_have_nothing_to_correct():
    def last(n, epsilon=1.0, **settings):
        chosen = {"classes": [-1, 1], "bounds": Bounds(feature=1.0), **settings}
        plan = LogisticRegression(epsilon, solver="preconditioned-descent", **chosen).plan(n, 10)
        return [release.count for release in plan.releases if release.query == "recalibration"]

    assert last(3_000) == [2]
    assert last(60) == last(10**6) == last(3_000, fit_intercept=False) == []


def clustered(share, kind, seed=0, n=20_000):
    """Sixteen short columns, and four that are mostly 0: where one is not, the row is long."""
    drawn = np.random.default_rng(seed)
    long = (drawn.random((n, 4)) < share) * drawn.uniform(0.5, 1.0, (n, 4))
    table = np.column_stack([np.clip(0.05 * drawn.standard_normal((n, 16)), -1, 1), long])
    margins = table @ np.append(6 * drawn.standard_normal(16), [2.0, -2.0, 2.0, 2.0])
    ranges = [(-1, 1)] * 16 + [(0, 1)] * 4
    if kind == "labels":
        labels = (drawn.random(n) < 1 / (1 + np.exp(1 - margins))).astype(int)
        return LogisticRegression, table, labels, {"classes": [0, 1], "bounds": Bounds(feature=ranges)}
    targets = np.clip(margins + 0.5 * drawn.standard_normal(n), -8, 8)
    return LinearRegression, table, targets, {"bounds": Bounds(feature=ranges, target=(-8, 8))}


@pytest.mark.parametrize("kind", ["labels", "targets"])
def test_more_budget_does_not_make_a_fit_of_long_rows_worse(kind):
    """Steps of length 1 in the metric of shortened rows diverged along the direction of the long ones."""
    Model, table, y, declared = clustered(0.1, kind)

    def loss(epsilon):
        model = Model(epsilon, solver=PreconditionedDescent(), random_state=1, **declared).fit(table, y)
        if kind == "targets":
            return 1 - model.score(table, y)
        return log_loss(y, model.predict_proba(table))

    losses = [loss(epsilon) for epsilon in (1.0, 4.0, 20.0, math.inf)]
    assert losses[0] < losses[-1] + 0.02
    assert max(losses[1:]) < losses[-1] + 0.003


def test_labels_of_wide_tables_get_momentum_and_targets_do_not():
    labels = LogisticRegression(4.0, classes=[-1, 1], bounds=Bounds(row_norm=1.0)).plan(25_000, 50_000)
    targets = LinearRegression(4.0, bounds=Bounds(row_norm=1.0, target=(-1, 1))).plan(25_000, 50_000)
    assert (labels.steps, targets.steps) == (100, 150)
    assert 0 < labels.momentum <= 0.8
    assert targets.momentum == 0


def test_auto_takes_it_for_real_targets_while_noise_leaves_a_hundredth_and_for_labels_six():
    bounds = Bounds(feature=1.0, target=(-1.0, 1.0))

    def solver_of_targets(n):
        return LinearRegression(epsilon=0.1, bounds=bounds).plan(n, 202).solver

    assert [solver_of_targets(n) for n in (660, 3_301)] == ["gradient descent", "preconditioned descent"]
    for bounds in (Bounds(feature=1.0), Bounds(row_norm=1.0)):
        labels = LogisticRegression(epsilon=0.1, bounds=bounds, classes=[-1, 1])
        chosen = [labels.plan(n, 68).solver for n in (1_250, 1_450)]
        assert chosen == ["gradient descent", "preconditioned descent"]


def test_auto_takes_it_for_real_targets_of_up_to_a_thousand_features_if_the_table_is_small():
    targets = LinearRegression(epsilon=1.0, bounds=Bounds(feature=1.0, target=(-1.0, 1.0)))
    chosen = [targets.plan(n, p).solver for n, p in ((50_000, 1_000), (50_000, 1_001), (100_000, 1_000))]
    assert chosen == ["preconditioned descent", "gradient descent", "gradient descent"]


def test_auto_takes_it_for_labels_of_up_to_a_thousand_features_if_ranges_are_declared_and_records_are_many():
    ranges, norms = (
        LogisticRegression(epsilon=1.0, bounds=bounds, classes=[-1, 1])
        for bounds in (Bounds(feature=1.0), Bounds(row_norm=1.0))
    )
    chosen = [ranges.plan(n, p).solver for n, p in ((50_000, 400), (2_000, 400), (50_000, 1_001))]
    assert chosen == ["preconditioned descent", "gradient descent", "gradient descent"]
    assert norms.plan(50_000, 400).solver == "gradient descent"


def test_rows_at_one_end_of_wide_ranges_are_fitted_nearly_as_well():
    """They are moved by a released mean. Without that, R² falls from 0.89 to 0.36."""
    scores = []
    for shift in (0.0, 8.0):
        bounds = Bounds(feature=(-1.0 - shift, 1.0 + shift), target=(-1, 1))
        fits = (
            LinearRegression(2.0, bounds=bounds, solver=PreconditionedDescent(), random_state=seed)
            for seed in range(8)
        )
        scores.append(np.mean([r2(model.fit(X + shift, Y), X + shift, Y) for model in fits]))
    assert scores[1] > scores[0] - 0.1


def test_rows_that_are_mostly_zero_are_not_clipped_to_next_to_nothing():
    """The size beside the mean is that of rows scaled down, a tenth of the typical one. Taken for the typical
    size of moved rows, it makes R² fall from 0.94 to 0.05."""
    draw = np.random.default_rng(0)
    rows = np.where(draw.random((20_000, 1)) < 0.1, draw.uniform(-1, 1, (20_000, 5)), 0.0)
    targets = rows @ SLOPES[:5] + 0.02 * draw.standard_normal(20_000)
    fits = (
        LinearRegression(1.0, bounds=BOUNDS, solver=PreconditionedDescent(), random_state=seed)
        for seed in range(4)
    )
    assert np.mean([r2(model.fit(rows, targets), rows, targets) for model in fits]) > 0.75


def test_a_mean_that_is_noise_is_not_used():
    noisy = 0.1 * np.random.default_rng(1).standard_normal(50)
    middle, freedom = shortened(noisy, 0.2)
    assert np.allclose(middle, noisy.mean())
    assert freedom == 1.0
    middle, freedom = shortened(np.linspace(-0.5, 0.5, 50), 1e-9)
    assert np.allclose(middle, np.linspace(-0.5, 0.5, 50))
    assert freedom == pytest.approx(50.0)


def test_without_an_intercept_no_row_is_moved():
    for intercept in (True, False):
        model = LinearRegression(1.0, bounds=BOUNDS, fit_intercept=intercept, solver=PreconditionedDescent())
        names = [release.query for release in model.plan(N, P).releases]
        assert (MeanRow.name in names) == intercept
