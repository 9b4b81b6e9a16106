"""Scales of columns: what is released for them, and what they are good for."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from dpglm import Bounds, Budget, LinearRegression, LogisticRegression, Neighbours, Stream
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.penalties import L1, L2, ElasticNet
from dpglm.problem import Problem
from dpglm.queries import ColumnSizes, ScaledRowScale
from dpglm.solvers import GradientDescent
from dpglm.solvers.preludes import scales_of

N, P = 3_000, 400


def words(seed, n=N, p=P, per_row=12):
    """Rows of norm 1 with few words, most of them frequent; the label is a matter of every third word."""
    truth = np.where(np.arange(p) % 3 == 1, np.random.default_rng(99).normal(0.0, 8.0, p), 0.0)
    rng = np.random.default_rng(seed)
    chances = 1.0 / np.arange(1.0, p + 1) ** 1.3
    places = rng.choice(p, size=(n, per_row), p=chances / chances.sum())
    counts = np.zeros((n, p))
    np.add.at(counts, (np.repeat(np.arange(n), per_row), places.ravel()), 1.0)
    X = np.log1p(counts)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
    return X, y


def model(epsilon=1.0, **settings):
    return LogisticRegression(epsilon, classes=[-1.0, 1.0], bounds=Bounds(row_norm=1.0), **settings)


def releases(plan):
    return [release.query for release in plan.releases]


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_sums_are_those_of_gradients_and_of_their_sizes_in_exact_arithmetic(layout, constant):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((40, 6)) < 0.6, rng.normal(size=(40, 6)), 0.0) / 4
    y = rng.choice([-1.0, 1.0], 40)
    records = as_data(layout(X), y, Bounds(row_norm=1.0), constant)
    w = rng.normal(size=6 + bool(constant))
    found = np.asarray(ColumnSizes(Logistic(), 0.3)(records, w))
    rows = np.hstack([X, np.full((40, 1), constant)]) if constant else X
    slopes = -y / (1 + np.exp(y * (rows @ w)))
    slopes *= np.minimum(1.0, 0.3 / (np.abs(slopes) * np.linalg.norm(rows, axis=1)))
    terms = slopes[:, None] * rows
    for total, entries in ((found[: len(w)], terms), (found[len(w) :], np.abs(terms))):
        exact = [float(sum(map(Fraction, column))) for column in entries.T]
        np.testing.assert_allclose(total, exact, rtol=0, atol=1e-12)


def test_what_is_added_for_a_size_is_the_size_of_what_is_added():
    """So that the lemma holds for rounded terms."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        row, y = rng.normal(size=(1, 7)) / 5, rng.choice([-1.0, 1.0], 1)
        found = np.asarray(ColumnSizes(Logistic(), 0.1)(as_data(row, y, Bounds(row_norm=1.0)), np.zeros(7)))
        assert np.array_equal(np.abs(found[:7]), found[7:])


def test_a_fit_has_the_same_bits_on_tables_of_every_layout():
    X, y = words(0)
    fits = [
        model(random_state=7).fit(table, y)
        for table in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X))
    ]
    blocks = [(X[start : start + 700], y[start : start + 700]) for start in range(0, N, 700)]
    fits.append(model(random_state=7).fit(Stream(lambda: iter(blocks), N, P)))
    assert ColumnSizes.name in releases(fits[0].plan_)
    assert all(np.array_equal(fits[0].coef_, fit.coef_) for fit in fits[1:])


def test_scaled_columns_of_single_precision_have_the_bits_of_a_stream_of_them():
    X, y = words(1)
    X = X.astype(np.float32)
    blocks = [(X[:1_000], y[:1_000]), (X[1_000:], y[1_000:])]
    found = model(random_state=7).fit(X, y)
    streamed = model(random_state=7).fit(Stream(lambda: iter(blocks), N, P))
    assert np.array_equal(found.coef_, streamed.coef_)


def test_scaled_columns_predict_better_where_few_words_are_frequent():
    """By 0.0093 in the mean of 16 fits, whose deviation is 0.0006."""
    X, y = words(2, n=16_000)
    X_test, y_test = words(3, n=8_000)
    scores = {
        scaled: np.mean(
            [
                model(1.0, solver=GradientDescent(scale_columns=scaled), random_state=seed)
                .fit(sp.csr_array(X), y)
                .score(X_test, y_test)
                for seed in range(16)
            ]
        )
        for scaled in (False, True)
    }
    assert scores[True] > scores[False] + 0.005


def test_columns_are_scaled_for_labels_of_wide_tables_alone():
    assert ColumnSizes.name in releases(model().plan(N, 301))
    assert ScaledRowScale.name in releases(model().plan(N, 301))
    off = GradientDescent(scale_columns=False)
    for plan in (
        model().plan(N, 300),
        model(solver=off).plan(N, 301),
        model(solver=GradientDescent(batch_size=100)).plan(N, 301),
        model(solver=GradientDescent(clip=0.1)).plan(N, 301),
        model(epsilon=np.inf).plan(N, 301),
        LinearRegression(1.0, bounds=Bounds(row_norm=1.0, target=(0, 1)), solver=GradientDescent()).plan(
            N, 301
        ),
    ):
        assert ColumnSizes.name not in releases(plan)
    assert ColumnSizes.name in releases(model(solver=GradientDescent(scale_columns=True)).plan(N, 20))


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_the_noise_of_all_steps_is_that_of_a_plan_without_scales(neighbours):
    """In units of the clip: the first step is as long as its share of the budget allows."""
    budget = Budget.for_records(0.3, None, N)
    problem = Problem(Logistic(), L2(1e-6), Bounds(row_norm=1.0), fit_intercept=False)
    plans = [
        GradientDescent(scale_columns=scaled).plan(problem, N, P, budget, Neighbours(neighbours))
        for scaled in (True, False)
    ]

    def noise(plan):
        gradients, moved = plan["clipped gradient"], plan.neighbours.records_moved
        found = plan.steps * (plan.step_size * gradients.mechanism.noise * moved) ** 2
        if plan.first_step:
            sensitivity = ColumnSizes(Logistic(), 1.0).sensitivity(plan.neighbours)
            found += (plan.first_step * plan[ColumnSizes.name].mechanism.noise * sensitivity) ** 2
        return np.sqrt(found)

    assert plans[0].first_step > 0
    assert noise(plans[0]) == pytest.approx(noise(plans[1]), rel=0.05)


def test_a_first_step_is_not_longer_than_the_other_steps_can_correct():
    """Without a limit the log loss of this fit is 0.437 and not 0.294, and grows with epsilon."""
    X, y = words(2, n=16_000)
    X_test, y_test = words(3, n=4_000)
    private, exact = (
        np.logaddexp(0.0, -y_test * fit.decision_function(X_test)).mean()
        for fit in (
            model(epsilon, penalty=L2(strength), random_state=1).fit(X, y)
            for epsilon, strength in ((1e4, 1e-9), (np.inf, 1e-5))
        )
    )
    assert private <= exact + 0.02
    far = [model(10.0, penalty=L2(1e-5)).plan(n, P).first_step for n in (10**7, 10**8)]
    assert far[0] == pytest.approx(far[1])


@pytest.mark.parametrize("wrong", ["no", 2, float("nan")])
def test_scale_columns_is_true_or_false(wrong):
    with pytest.raises(ValueError, match="scale_columns"):
        GradientDescent(scale_columns=wrong)


@pytest.mark.parametrize("penalty", [L1(0.01), L2(0.3), ElasticNet(0.05, 0.4)], ids=repr)
def test_a_proximal_step_in_scaled_columns_is_that_of_the_penalty_in_their_metric(penalty):
    rng = np.random.default_rng(0)
    problem = Problem(Logistic(), penalty, Bounds(row_norm=1.0), fit_intercept=True)
    w, scales = rng.normal(size=6), rng.uniform(0.2, 1.0, 5)
    found = problem.prox_in_scale(w, 0.7, scales)
    assert found[-1] == w[-1]
    for j in range(5):
        best = minimize(
            lambda u, j=j: (u - w[j]) ** 2 / 2 + 0.7 * penalty.value(u * scales[j]),
            w[j],
            method="Nelder-Mead",
        )
        assert found[j] == pytest.approx(best.x[0], abs=1e-3)


def test_scales_fall_with_noise_and_with_size_and_stay_within_0_and_1():
    sizes = np.array([-1.0, 0.0, 0.002, 0.01, 0.1, 1.0])
    scales = scales_of(sizes, 0.001, 0.0004, 1.0)
    assert ((scales > 0) & (scales <= 1)).all()
    assert scales[0] == pytest.approx(np.sqrt(0.3), rel=0.1)
    assert scales[0] <= scales[1] < scales[2] > scales[3] > scales[4] > scales[5]
    assert np.ptp(scales_of(np.full(6, 0.3), 0.01, 0.001, 1.0)) == 0.0


def test_a_record_that_is_not_finite_counts_as_a_null_record():
    X, y = words(4)
    broken, empty = X.copy(), X.copy()
    broken[5, 3], empty[5] = np.nan, np.nan
    first, second = (model(random_state=1).fit(table, y).coef_ for table in (broken, empty))
    assert np.isfinite(first).all()
    assert np.array_equal(first, second)
