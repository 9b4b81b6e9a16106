"""Newton's rounds: coefficients with standard errors."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn import linear_model

from dpglm import Bounds, Budget, LinearRegression, LogisticRegression, Neighbours, Ridge, Stream
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import PrivacyWarning, UnsupportedProblem
from dpglm.losses import (
    LOSSES,
    Huber,
    LogCosh,
    Logistic,
    NegativeBinomial,
    Quantile,
    Squared,
    Tweedie,
)
from dpglm.mechanisms import Randomness
from dpglm.penalties import L2, Zero
from dpglm.plan import Plan
from dpglm.problem import Problem
from dpglm.solvers import Newton, newton_steps
from dpglm.testing import check_solver

N, P = 4000, 3
rng = np.random.default_rng(0)
X = rng.uniform([-1.0, 20.0, 0.0], [1.0, 60.0, 1.0], (N, P))
RANGES = Bounds(feature=[(-1.0, 1.0), (20.0, 60.0), (0.0, 1.0)])
SLOPES, INTERCEPT = np.array([1.0, -0.05, 0.8]), 1.5
LABELS = np.where(rng.random(N) < expit(X @ SLOPES + INTERCEPT), 1.0, -1.0)
TARGET = X @ SLOPES + INTERCEPT + 0.3 * rng.standard_normal(N)
WITH_TARGET = Bounds(feature=RANGES.feature, target=(-4.0, 4.0))
CLASSIFIED = {"classes": [-1, 1], "bounds": RANGES, "C": math.inf}


def classifier(epsilon, **settings):
    return LogisticRegression(epsilon, solver=Newton(**settings), random_state=0, **CLASSIFIED)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "settings", [{}, {"rounds": 2}, {"rounds": 6, "leverage": 3.0}, {"deviance_share": 0.1}]
)
@pytest.mark.parametrize("loss", [Logistic(), Squared(), LogCosh(2.0)], ids=lambda loss: loss.name)
def test_it_spends_exactly_its_plan(loss, settings, intercept):
    bounds, y = (RANGES, LABELS) if loss.kind == "classification" else (WITH_TARGET, TARGET)
    check_solver(Newton(**settings), Problem(loss, Zero(), bounds, intercept), X[:500], y[:500])


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_layouts_and_streams_give_the_same_model_bit_for_bit(loss):
    bounds, y = Bounds(feature=60.0, target=(-4.0, 4.0)), TARGET
    if loss.kind == "classification":
        bounds, y = Bounds(feature=60.0), LABELS
    plan = Newton().plan(Problem(loss, Zero(), bounds), N, P, Budget(2.0, 1e-8), Neighbours.REPLACE_ONE)
    problem, found = Problem(loss, Zero(), bounds), []
    order = rng.permutation(N)
    for table, targets in [
        *((layout(X), y) for layout in (np.array, np.asfortranarray, sp.csr_array, sp.csc_matrix)),
        (X[order], y[order]),
    ]:
        records = as_data(table, targets, bounds, problem.constant(P))
        result = Newton.run(plan, problem, Curator(records, plan.neighbours, Randomness(3)))
        found.append((result.w, result.uncertainty.covariance))
    for w, covariance in found[1:]:
        assert np.array_equal(w, found[0][0]) and np.array_equal(covariance, found[0][1])


def test_a_stream_gives_the_coefficients_of_the_array():
    whole = classifier(1.0).fit(X, LABELS)
    stream = Stream(lambda: ((X[k : k + 999], LABELS[k : k + 999]) for k in range(0, N, 999)), N, P)
    streamed = classifier(1.0).fit(stream)
    assert np.array_equal(whole.coef_, streamed.coef_) and np.array_equal(
        whole.covariance_, streamed.covariance_
    )


@pytest.mark.parametrize(
    "bounds", [RANGES, Bounds(row_norm=math.inf), None], ids=["ranges", "none", "default"]
)
def test_without_noise_it_is_the_minimiser_with_the_usual_sandwich(bounds):
    model = LogisticRegression(math.inf, solver=Newton(), classes=[-1, 1], bounds=bounds, C=math.inf).fit(
        X, LABELS
    )
    rows = np.column_stack([X, np.ones(N)])
    w = np.append(model.coef_[0], model.intercept_)
    e = Logistic().derivative(rows @ w, LABELS)
    assert np.abs(rows.T @ e / N).max() < 1e-8
    hessian = (rows * Logistic().curvature(rows @ w, LABELS)[:, None]).T @ rows
    inverse = np.linalg.inv(hessian)
    expected = inverse @ ((rows * (e**2)[:, None]).T @ rows) @ inverse
    assert np.allclose(model.covariance_, expected, rtol=1e-6)
    assert model.determined_ and not model.privacy_covariance_.any()


def test_without_noise_least_squares_are_exact():
    model = LinearRegression(math.inf, solver=Newton()).fit(X, TARGET)
    rows = np.column_stack([X, np.ones(N)])
    expected = np.linalg.lstsq(rows, TARGET, rcond=None)[0]
    assert np.allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-9)


def test_without_noise_dependent_features_are_said_to_be_so():
    doubled = np.column_stack([X, X[:, 0], np.zeros(N)])
    model = LinearRegression(math.inf, solver=Newton()).fit(doubled, TARGET)
    assert not model.determined_ and "dependent" in str(model.summary())
    assert np.isfinite(model.coef_).all() and np.isinf(model.standard_errors_).all()
    assert np.allclose(
        model.predict(doubled), LinearRegression(math.inf, solver=Newton()).fit(X, TARGET).predict(X)
    )


@pytest.mark.parametrize("kind", ["logistic", "linear"])
def test_errors_of_repeated_fits_are_what_the_noise_part_says(kind):
    """The sharpest check of the formula: only noise varies. The bounds fail less than once in a million."""
    scaled = []
    if kind == "logistic":
        exact = LogisticRegression(math.inf, solver=Newton(), **CLASSIFIED).fit(X, LABELS)
    else:
        exact = LinearRegression(math.inf, solver=Newton(), bounds=WITH_TARGET).fit(X, TARGET)
    centre = np.append(np.ravel(exact.coef_), exact.intercept_)
    for seed in range(60):
        if kind == "logistic":
            model = classifier(4.0, leverage=30.0, rounds=5).set_params(random_state=seed).fit(X, LABELS)
        else:
            solver = Newton(leverage=30.0, clip=20.0)
            model = LinearRegression(4.0, solver=solver, bounds=WITH_TARGET, random_state=seed).fit(X, TARGET)
        w = np.append(np.ravel(model.coef_), model.intercept_) - centre
        scaled.append(float(w @ np.linalg.solve(model.privacy_covariance_, w)) / len(w))
    assert 0.6 < np.mean(scaled) < 1.6


def test_intervals_cover_as_often_as_they_say():
    """200 tables: five coefficients' worth of coverage, between 0.91 and 0.985 but once in a million."""
    covered = []
    for seed in range(200):
        own = np.random.default_rng(seed)
        rows = own.uniform(-1, 1, (N, 4))
        w = np.array([1.0, -0.5, 0.25, 0.0])
        y = np.where(own.random(N) < expit(rows @ w - 0.5), 1.0, -1.0)
        model = LogisticRegression(
            4.0, solver=Newton(), classes=[-1, 1], bounds=Bounds(feature=1.0), C=math.inf, random_state=seed
        ).fit(rows, y)
        low, high = model.confidence_intervals().T
        truth = np.append(w, -0.5)
        covered.append((low <= truth) & (truth <= high))
        assert model.determined_
    assert 0.91 < np.mean(covered) < 0.985


def test_coefficients_do_not_depend_on_the_units_of_columns():
    model = classifier(2.0).fit(X, LABELS)
    scale, shift = np.array([10.0, 0.25, 3.0]), np.array([5.0, -100.0, 0.0])
    low, high = RANGES.ranges(P)
    other = LogisticRegression(
        2.0, solver=Newton(), classes=[-1, 1], C=math.inf, random_state=0,
        bounds=Bounds(feature=(low * scale + shift, high * scale + shift)),
    ).fit(X * scale + shift, LABELS)  # fmt: skip
    assert np.allclose(other.coef_ * scale, model.coef_, rtol=1e-4)
    assert np.allclose(other.standard_errors_[:P] * scale, model.standard_errors_[:P], rtol=1e-4)


def test_a_plan_forecasts_and_a_hopeless_fit_is_refused_or_with_a_seed_warns():
    model = LogisticRegression(1.0, solver=Newton(), classes=[-1, 1], C=math.inf, bounds=Bounds(feature=1.0))
    assert (
        "undetermined" in str(model.plan(1_000, 10)) and "undetermined" in model.plan(1_000, 10)._repr_html_()
    )
    assert "determined, with intervals" in str(model.plan(100_000, 10))
    with pytest.raises(UnsupportedProblem, match="noise would hide every coefficient"):
        model.fit(rng.uniform(-1, 1, (1_000, 10)), LABELS[:1_000])
    model.set_params(random_state=0)
    with pytest.warns(PrivacyWarning, match="noise will hide"):
        model.fit(rng.uniform(-1, 1, (1_000, 10)), LABELS[:1_000])
    assert not model.determined_ and np.isinf(model.confidence_intervals()).all()
    assert model.plan_.passes.most == 3


def test_a_rare_label_needs_more_rounds():
    rare = np.where(rng.random(N) < 0.03, 1.0, -1.0)
    model = classifier(20.0, rounds=3).fit(X, rare)
    assert not model.determined_ and "rare" in str(model.summary())


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.name)
def test_losses_without_a_joint_constant_are_refused(kind):
    problem = Problem(kind(), Zero(), Bounds(row_norm=1.0, target=(0, 1)))
    if kind in (Logistic, Squared, LogCosh, Huber, Tweedie, NegativeBinomial, Quantile):
        steps = Newton().plan(problem, 100, 2, Budget(1.0, 1e-4), Neighbours.ZERO_OUT).steps
        assert steps == 3 if kind is Logistic else steps >= 3
        return
    with pytest.raises(UnsupportedProblem, match="joint_constant"):
        Newton().plan(problem, 100, 2, Budget(1.0, 1e-4), Neighbours.ZERO_OUT)


def test_what_it_does_not_serve_is_refused_with_what_does():
    with pytest.raises(UnsupportedProblem, match="LinearRegression"):
        LogisticRegression(1.0, solver=Newton(), classes=[-1, 1]).plan(100, 2)
    with pytest.raises(UnsupportedProblem, match="GradientDescent"):
        LogisticRegression(1.0, solver=Newton(), classes=[-1, 1], C=math.inf).plan(10**6, 1001)
    with pytest.raises(UnsupportedProblem, match="penalty"):
        problem = Problem(Huber(), L2(1.0), Bounds(row_norm=1.0, target=(0, 1)))
        Newton().plan(problem, 100, 2, Budget(1.0, 1e-4), Neighbours.ZERO_OUT)


@pytest.mark.parametrize(
    "settings",
    [{"rounds": 1}, {"rounds": 9}, {"rounds": 2.5}, {"leverage": 0.0}, {"leverage": math.inf}, {"clip": -1.0},
     {"deviance_share": 1.0}, {"deviance_share": 0.0}],
)  # fmt: skip
def test_impossible_settings_are_refused_by_name(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Newton(**settings)


def test_a_plan_whose_steps_are_not_its_rounds_is_refused():
    plan = classifier(1.0, deviance_share=0.1).plan(10_000, P)
    assert Plan.from_json(plan.to_json()) == plan and plan.passes.most == plan.steps + 1
    with pytest.raises(ValueError, match="edited|steps"):
        Plan.from_dict(plan.to_dict() | {"settings": plan.to_dict()["settings"] | {"steps": 2}})


def test_the_deviance_is_near_twice_the_loss_and_says_how_near():
    model = classifier(8.0, deviance_share=0.2).fit(X, LABELS)
    z = model.decision_function(X)
    value, error = model.deviance()
    loss = np.minimum(Logistic().value(z, LABELS), 3.0).sum()
    assert 0 < error < 0.05 * loss and abs(value - 2 * loss) < 6 * error


@pytest.mark.parametrize(
    "table",
    [np.zeros((50, 2)), np.ones((1, 2)), np.full((50, 2), np.nan), np.column_stack([X[:50, 0], X[:50, 0]])],
    ids=["zeros", "one row", "null", "twice the same"],
)
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
def test_degenerate_tables_give_finite_coefficients_and_no_interval(table, epsilon):
    y = np.resize([1.0, -1.0], len(table))
    with np.errstate(all="raise"):
        model = LogisticRegression(
            epsilon,
            delta=1e-3,
            solver=Newton(),
            classes=[-1, 1],
            C=math.inf,
            bounds=Bounds(feature=1.0),
            random_state=0,
        ).fit(table, y)
        line = LinearRegression(
            epsilon, delta=1e-3, solver=Newton(), bounds=Bounds(feature=1.0, target=(-1, 1)), random_state=0
        ).fit(table, y)
    for found in (model, line):
        assert np.isfinite(found.coef_).all() and np.isfinite(found.intercept_).all()
        assert not found.determined_ or epsilon > 1


def test_estimates_are_combined_by_the_inverse_of_their_noise():
    one, two = np.eye(2), 3.0 * np.eye(2)
    first, second = (
        newton_steps.Estimate(np.full(2, w), np.eye(2), noise, 9.0, 0.0)
        for w, noise in ((1.0, one), (5.0, two))
    )
    found = newton_steps.combined([first, second])
    assert np.allclose(found.w, 2.0) and np.allclose(found.noise, 0.75 * np.eye(2))


def test_the_second_order_term_is_that_of_a_noisy_inverse():
    """Monte Carlo: the covariance of (H + E)⁻¹ r over the noise E of the Hessian and over r."""
    d, noise = 3, 0.05
    root = rng.standard_normal((d, d))
    hessian, covariance = root @ root.T + np.eye(d), np.diag([1.0, 2.0, 0.5])
    draws = rng.standard_normal((200_000, d, d)) * noise
    errors = (draws + np.swapaxes(draws, 1, 2)) / math.sqrt(2)
    r = rng.standard_normal((200_000, d)) @ np.sqrt(covariance)
    inverse = np.linalg.inv(hessian)
    first = (inverse @ r[..., None])[..., 0]
    moved = first - (inverse @ errors @ first[..., None])[..., 0]
    assert np.allclose(np.cov(moved.T), newton_steps.noise_aware(inverse, covariance, noise), atol=0.02)


def test_a_ridge_without_noise_is_that_of_scikit_learn():
    rows = X / [1.0, 60.0, 1.0]
    model = Ridge(math.inf, alpha=50.0, solver=Newton(intervals=False)).fit(rows, TARGET)
    expected = linear_model.Ridge(alpha=50.0).fit(rows, TARGET)
    assert np.allclose(model.coef_, expected.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(expected.intercept_, rel=1e-8)
    assert not hasattr(model, "covariance_")


def test_a_ridge_shrinks_private_coefficients_towards_that_of_the_ridge():
    bounds, exact = WITH_TARGET, {}
    for alpha in (0.0, 2_000.0):
        solver = Newton(intervals=False)
        exact[alpha] = Ridge(math.inf, alpha=alpha, solver=solver, bounds=bounds).fit(X, TARGET).coef_
        private = Ridge(20.0, alpha=alpha, solver=solver, bounds=bounds, random_state=0).fit(X, TARGET)
        assert np.allclose(private.coef_, exact[alpha], atol=0.05)
    assert np.abs(exact[0.0] - exact[2_000.0]).max() > 0.2


def test_auto_takes_newton_for_very_large_tables_and_without_noise():
    def chosen(n, p, **settings):
        plan = LogisticRegression(1.0, classes=[-1, 1], bounds=Bounds(feature=1.0), **settings).plan(n, p)
        return plan.solver, getattr(plan, "intervals", None)

    assert chosen(10**8, 10) == ("Newton", False)
    assert chosen(10**8, 10, penalty=None) == ("Newton", True)
    assert chosen(1_000, 10) == chosen(10**6, 10) == ("preconditioned descent", None)
    assert chosen(1, 10) == chosen(100_000, 10, penalty="l1") == ("gradient descent", None)
    assert chosen(10**9, 301) == ("gradient descent", None)
    for n, solver in ((50_000, "preconditioned descent"), (10**8, "Newton")):
        for resident in (True, False):
            assert LinearRegression(1.0, bounds=WITH_TARGET).plan(n, P, resident=resident).solver == solver
    exact = LogisticRegression(math.inf, classes=[-1, 1])
    assert [exact.plan(100_000, p).solver for p in (10, 301)] == ["Newton", "gradient descent"]


def test_the_mean_of_two_hessians_makes_the_error_of_an_early_round_cubic():
    rows, truth = np.column_stack([rng.uniform(-1, 1, (500, 2)), np.ones(500)]), np.array([0.5, -0.5, -2.0])
    chance = expit(rows @ truth)

    def round_at(w):
        curve = expit(rows @ w) * (1 - expit(rows @ w))
        gradient, hessian = rows.T @ (expit(rows @ w) - chance), rows.T @ (rows * curve[:, None])
        parts = newton_steps.Parts(gradient, hessian, hessian)
        state = newton_steps.State(w, np.eye(3), np.eye(3))
        return newton_steps.Round(state, parts, newton_steps.Deviations(0.0, 0.0, 0.0), 1.0, 1.0, np.zeros(3))

    alone, both = [], []
    for away in (0.1, 0.05):
        early, last = round_at(truth + away), round_at(truth)
        alone.append(np.linalg.norm(early.estimate()[0].w - truth))
        improved, _ = early.with_curvature_of(last, linear=False).estimate()
        both.append(np.linalg.norm(improved.w - truth))
    assert alone[0] / alone[1] == pytest.approx(4, rel=0.2)
    assert both[0] / both[1] == pytest.approx(8, rel=0.3) and both[0] < alone[0] / 8


def test_the_mean_of_two_noisy_hessians_of_squares_is_weighted_by_precision_and_trace():
    def round_with(scale, deviation):
        parts = newton_steps.Parts(np.ones(3), scale * np.diag([1.0, 2.0, 3.0]), np.eye(3))
        noise = newton_steps.Deviations(0.1, deviation, 0.1)
        state = newton_steps.State(np.zeros(3), np.eye(3), np.eye(3))
        return newton_steps.Round(state, parts, noise, 1.0, 1.0, np.zeros(3))

    early, last = round_with(10.0, 0.3), round_with(8.0, 0.4)
    mean = early.with_curvature_of(last, linear=True)
    assert np.allclose(mean.parts.hessian, early.parts.hessian)
    own, late = 0.3, 0.4 * 10 / 8
    share = 0.16 / (0.09 + 0.16)
    assert mean.noise.hessian == pytest.approx(math.hypot(share * own, (1 - share) * late))


@pytest.mark.parametrize("kind", ["logistic", "linear"])
def test_the_forecast_of_the_length_falls_to_one_with_the_records(kind):
    model = classifier(1.0)
    if kind == "linear":
        model = LinearRegression(1.0, solver=Newton(), bounds=WITH_TARGET)
    lengths = [model.plan(n, 3).forecast_length for n in (2_000, 20_000, 200_000, 20_000_000)]
    assert all(before > after for before, after in zip(lengths, lengths[1:], strict=False))
    assert lengths[0] < 12 and lengths[-1] < 1.1
    assert model.plan(100, 3).forecast_length is None


SCALES = np.array([1e8, 1e-8, 1e3])


@pytest.mark.parametrize("kind", ["scales", "offset", "heavy", "nearly equal"])
@pytest.mark.parametrize("linear", [True, False])
def test_without_noise_features_of_any_scale_reach_the_minimum(kind, linear):
    own = np.random.default_rng(1)
    rows = own.standard_normal((3000, 3))
    table = {
        "scales": rows * SCALES,
        "offset": rows + 1e6,
        "heavy": own.standard_cauchy((3000, 3)),
        "nearly equal": np.column_stack([rows, rows[:, 0] + 1e-4 * own.standard_normal(3000)]),
    }[kind]
    middle, deviation = table.mean(axis=0), table.std(axis=0)
    moved = (table - middle) / deviation
    margin = (table if kind == "heavy" else rows) @ np.array([0.6, -0.4, 0.2])
    if linear:
        y = margin + 0.1 * own.standard_normal(3000)
        model = LinearRegression(math.inf, solver=Newton()).fit(table, y)
        residual = y - moved @ (model.coef_ * deviation)
        slope = residual - residual.mean()
    else:
        y = np.where(own.random(3000) < expit(margin), 1.0, -1.0)
        model = LogisticRegression(math.inf, solver=Newton(), classes=[-1, 1], C=math.inf).fit(table, y)
        intercept = model.intercept_ + middle @ model.coef_[0]
        slope = Logistic().derivative(moved @ (model.coef_[0] * deviation) + intercept, y)
    assert np.abs(moved.T @ slope / 3000).max() < 1e-8
    if kind == "scales":
        assert model.determined_
        alike = type(model)(**model.get_params()).fit(rows, y)
        assert np.allclose(model.standard_errors_[:3] * SCALES, alike.standard_errors_[:3], rtol=1e-6)


@pytest.mark.parametrize("bounds", [None, Bounds(feature=100.0)], ids=["no bounds", "bounds"])
@pytest.mark.parametrize("classes", ["separable", "nearly separable", "one class"])
def test_without_noise_classes_without_a_minimiser_are_said_to_be_so(classes, bounds):
    rows, y = X[:500, :2], LABELS[:500].copy()
    if classes == "separable":
        y = np.where(rows[:, 0] > 0, 1.0, -1.0)
    elif classes == "one class":
        y[:] = 1.0
    else:
        rows = np.column_stack([rows, np.arange(500) < 20])
        y[:20] = 1.0
    model = LogisticRegression(math.inf, solver=Newton(), classes=[-1, 1], bounds=bounds, C=math.inf)
    with pytest.warns(UserWarning, match="may not have reached the minimum"):
        model.fit(rows, y)
    assert not model.determined_ and np.isinf(model.standard_errors_).all()


def test_a_noisy_round_does_not_throw_a_strong_signal_off():
    """Errors in units of the stated ones: their deviation was 2.4 when early steps were taken whole."""
    errors = []
    for seed in range(100):
        own = np.random.default_rng(seed)
        rows = own.uniform(-1, 1, (5_000, 1))
        y = np.where(own.random(5_000) < expit(6 * rows[:, 0]), 1.0, -1.0)
        model = LogisticRegression(
            2.0, solver=Newton(), classes=[-1, 1], bounds=Bounds(feature=1.0), C=math.inf, random_state=seed
        ).fit(rows, y)
        errors.append((model.coef_[0, 0] - 6) / model.standard_errors_[0])
    assert 0.7 < np.std(errors) < 1.45


def test_estimates_that_noise_sets_apart_from_the_last_are_not_combined():
    far, last = (newton_steps.Estimate(np.full(2, w), np.eye(2), np.eye(2), 9.0, 0.0) for w in (9.0, 1.0))
    assert newton_steps.combined([far, last]) is last


def test_a_step_that_noise_explains_is_not_taken():
    parts = newton_steps.Parts(np.full(2, 1.0), 100 * np.eye(2), np.eye(2))
    state = newton_steps.State(np.zeros(2), np.eye(2), np.eye(2))
    for noise, moves in ((5.0, False), (0.01, True)):
        deviations = newton_steps.Deviations(noise, 1e-6, 0.1)
        round_ = newton_steps.Round(state, parts, deviations, 1.0, 1.0, np.zeros(2))
        estimate, step = round_.estimate()
        assert bool(newton_steps.moved(round_, step, 4.0, estimate).w.any()) is moves


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e12])
@pytest.mark.parametrize("epsilon", [8.0, math.inf])
@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_a_penalty_of_a_column_in_any_unit_leaves_the_others_as_they_are(unit, epsilon):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (5_000, 3))
    y = np.where(X @ [3.0, -2.0, 2.0] + rng.logistic(size=len(X)) > 0, 1, -1)
    scale = np.array([1.0, 1.0, unit])
    model = LogisticRegression(
        epsilon, bounds=Bounds(feature=(-scale, scale)), classes=[-1, 1], random_state=0
    ).fit(X * scale, y)
    kept = X if unit > 1 else X[:, :2]  # a coefficient in units of 1e12 would be too large for the penalty
    exact = linear_model.LogisticRegression(C=1.0 if unit < 1 else 1e6).fit(kept, y)
    assert model.plan_.solver == ("Newton" if epsilon == math.inf else "preconditioned descent")
    assert model.score(X * scale, y) == pytest.approx(exact.score(kept, y), abs=0.01)


def test_a_plan_without_intervals_forecasts_none():
    model = LogisticRegression(50.0, classes=[0, 1], C=float("inf"))
    plain = model.set_params(solver=Newton(intervals=False)).plan(5_000, 3)
    assert "intervals about" not in plain.forecast and plain.warning is None
    assert "intervals about" in model.set_params(solver=Newton()).plan(5_000, 3).forecast
