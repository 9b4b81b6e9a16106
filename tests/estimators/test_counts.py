"""Counts and amounts: exact in any unit of the exposure without noise, not worse than a constant with it."""

import math

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_tweedie_deviance

import dpglm
from dpglm import Bounds
from dpglm.solvers import (
    CoordinateDescent,
    GradientDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
)

INF = math.inf
rng = np.random.default_rng(40)
N = 3_000
X = rng.uniform(-1, 1, (N, 3))
DAYS = rng.uniform(1, 90, N)
MEAN = DAYS * np.exp(X @ [0.5, -0.4, 0.0] - 4.0)
COUNTS = np.minimum(rng.poisson(MEAN), 5).astype(float)
COSTS = np.minimum(rng.gamma(2.0, MEAN / 2), 5)
UNITS = [1e-6, 1 / 24, 1.0, 90.0, 1e6]
FAMILIES = {
    "poisson": (dpglm.PoissonRegressor, {}, COUNTS),
    "negative binomial": (dpglm.NegativeBinomialRegressor, {}, COUNTS),
    "gamma": (dpglm.GammaRegressor, {"means": (0.005, 5)}, COSTS),
    "tweedie": (dpglm.TweedieRegressor, {"power": 1.5, "means": (0.0005, 5)}, COSTS * (COUNTS > 0)),
}


def in_unit(unit, **more):
    """Bounds with the range of exposures from 1 to 90 days, in a unit of so many days."""
    return Bounds(feature=1.0, target=(0, 5), offset=(math.log(1 / unit), math.log(90 / unit)), **more)


def by_statsmodels(name, y, offset):
    sm = pytest.importorskip("statsmodels.api")
    log = sm.families.links.Log()
    family = {
        "poisson": sm.families.Poisson(),
        "negative binomial": sm.families.NegativeBinomial(alpha=1.0),
        "gamma": sm.families.Gamma(log),
        "tweedie": sm.families.Tweedie(log, 1.5),
    }[name]
    design = np.column_stack([X, np.ones(len(X))])
    return sm.GLM(y, design, family=family, offset=offset).fit(tol=1e-13, maxiter=200).params


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("unit", UNITS)
def test_without_noise_a_fit_is_that_of_statsmodels_in_any_unit_of_the_exposure(name, unit):
    kind, settings, y = FAMILIES[name]
    model = kind(INF, alpha=0, bounds=in_unit(unit), **settings).fit(X, y, exposure=DAYS / unit)
    expected = by_statsmodels(name, y, np.log(DAYS))
    np.testing.assert_allclose(model.coef_, expected[:-1], rtol=0, atol=1e-6)
    assert model.intercept_ == pytest.approx(expected[-1] + math.log(unit), abs=1e-6)


@pytest.mark.parametrize("solver", [GradientDescent, ObjectivePerturbation, OutputPerturbation])
@pytest.mark.parametrize("unit", [1 / 24, 90.0])
def test_without_noise_every_solver_gives_the_minimiser_in_any_unit_of_the_exposure(solver, unit):
    model = dpglm.PoissonRegressor(INF, alpha=0, bounds=in_unit(unit), solver=solver())
    model.fit(X, COUNTS, exposure=DAYS / unit)
    expected = by_statsmodels("poisson", COUNTS, np.log(DAYS))
    np.testing.assert_allclose(model.coef_, expected[:-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("declared", [False, True])
def test_offsets_of_thousands_are_fitted_without_noise(name, declared):
    kind, settings, y = FAMILIES[name]
    bounds = Bounds(feature=1.0, target=(0, 5), offset=(-3000, 3000)) if declared else None
    model = kind(INF, alpha=0, bounds=bounds, **settings).fit(X, y, offset=np.log(DAYS) + 2000)
    expected = by_statsmodels(name, y, np.log(DAYS))
    np.testing.assert_allclose(model.coef_, expected[:-1], rtol=0, atol=1e-6)
    assert model.intercept_ == pytest.approx(expected[-1] - 2000, abs=1e-6)


def test_without_noise_and_intercept_means_outside_of_their_range_are_led_back():
    """At coefficients of 0 all means are above the range of targets, where the loss has no curvature."""
    rows = np.column_stack([X, np.ones(N)])
    model = dpglm.PoissonRegressor(
        INF, alpha=0, fit_intercept=False, bounds=Bounds(feature=20.0, target=(0, 5), offset=(5, 12))
    ).fit(rows, COUNTS, offset=np.log(DAYS) + 6)
    expected = by_statsmodels("poisson", COUNTS, np.log(DAYS) + 6)
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "y", [np.zeros(N), COUNTS * (X[:, 0] > 0.8), COUNTS * (X[:, 0] < 0.8)], ids=["all", "most", "few"]
)
def test_counts_without_a_minimum_have_finite_coefficients_and_a_warning(y):
    rows = np.column_stack([X[:, 0] > 0.8, X[:, 1:]])
    with pytest.warns(ConvergenceWarning):
        model = dpglm.PoissonRegressor(INF, alpha=0, bounds=in_unit(1.0)).fit(rows, y, exposure=DAYS)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)
    assert np.isfinite(model.predict(rows, exposure=DAYS)).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_one_record_is_predicted_without_noise(name):
    kind, settings, _ = FAMILIES[name]
    model = kind(INF, alpha=0, bounds=in_unit(1 / 24), **settings).fit(X[:1], [2.0], exposure=[800.0])
    assert model.predict(X[:1], exposure=[800.0])[0] == pytest.approx(2.0)


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    "solver",
    ["auto", Newton(intervals=False), GradientDescent(), GradientDescent(clip=1.0), ObjectivePerturbation(),
     OutputPerturbation(), CoordinateDescent()],
    ids=lambda solver: solver if isinstance(solver, str) else type(solver).__name__,
)  # fmt: skip
def test_a_private_fit_is_the_same_in_days_weeks_and_hours(name, solver):
    kind, settings, y = FAMILIES[name]
    found = []
    for unit in (1.0, 7.0, 1 / 24):
        model = kind(2.0, alpha=0.1, bounds=in_unit(unit), solver=solver, random_state=1, **settings)
        model.fit(X, y, exposure=DAYS / unit)
        found.append([*model.coef_, model.intercept_ - math.log(unit)])
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=0, atol=1e-9)


def test_the_promise_states_the_declared_range_of_offsets():
    model = dpglm.PoissonRegressor(2.0, alpha=0.1, bounds=Bounds(feature=1.0, target=(0, 5), offset=(1, 4)))
    model.fit(X, COUNTS, offset=np.log(DAYS))
    assert "offset in [1, 4]" in model.privacy_.public["bounds"]


def drawn(kind, n, seed):
    """Features with rare marks, targets of a law, exposures, and the range of targets."""
    here = np.random.default_rng(seed)
    rows = np.column_stack([here.uniform(-1, 1, (n, 4)), here.random((n, 4)) < [0.3, 0.1, 0.05, 0.5]])
    exposure = here.uniform(0.05, 1, n)
    mean = exposure * np.exp(rows @ [0.3, -0.2, 0, 0, 0.4, 0, 0.5, -0.3])
    if kind == "rare":
        return rows, np.minimum(here.poisson(0.1 * mean), 4).astype(float), exposure, (0, 4)
    if kind == "wide range":
        return rows, here.poisson(mean).astype(float), exposure, (0, 60)
    return rows, np.minimum(here.gamma(0.7, mean / 0.7) + 1e-3, 20), exposure, (0, 20)


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize("kind", ["rare", "wide range", "amounts"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_default_fit_is_not_worse_than_a_constant_rate(kind, epsilon):
    rows, y, exposure, target = drawn(kind, 8_000, 1)
    fresh, truth, told, _ = drawn(kind, 20_000, 2)
    power = 2 if kind == "amounts" else 1
    bounds = Bounds(feature=1.0, target=target, offset=(math.log(0.05), 0.0))
    rate = np.mean(y / exposure) if power == 2 else y.sum() / exposure.sum()
    constant = mean_tweedie_deviance(truth, rate * told, power=power)
    worse = []
    for seed in range(4):
        model = dpglm.TweedieRegressor(
            epsilon, power=power, alpha=1e-4, bounds=bounds, random_state=seed
        ).fit(rows, y, exposure=exposure)
        predicted = np.maximum(model.predict(fresh, exposure=told), 1e-9)
        worse.append(mean_tweedie_deviance(truth, predicted, power=power) / constant - 1)
    assert np.mean(worse) < (0.01 if epsilon < 1 else 0.0)


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_where_nothing_can_be_learnt_a_fit_of_counts_is_a_constant_rate():
    rows, y, exposure, target = drawn("rare", 300, 3)
    bounds = Bounds(feature=1.0, target=target, offset=(math.log(0.05), 0.0))
    for seed in range(5):
        model = dpglm.PoissonRegressor(0.1, alpha=0, bounds=bounds, random_state=seed)
        predicted = model.fit(rows, y, exposure=exposure).predict(rows, exposure=exposure)
        assert np.log(predicted / exposure).std() < 0.6


def test_counts_of_large_tables_alone_are_fitted_in_few_passes():
    """Newton takes the declared range of counts for the size of slopes, which may be far too wide."""
    model = dpglm.PoissonRegressor(4.0, alpha=0, bounds=Bounds(feature=1.0, target=(0, 5)))
    assert model.plan(1_000_000, 10).solver == "gradient descent"
    assert model.plan(100_000_000, 10).solver == "Newton"


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_counts_do_not_depend_on_units_of_columns():
    fits = []
    for unit in (1.0, 1024.0):
        limits = np.array([1.0, 1.0, unit])
        model = dpglm.PoissonRegressor(
            2.0, alpha=0, bounds=Bounds(feature=limits, target=(0, 5)), random_state=0
        ).fit(X * limits, COUNTS)
        assert model.plan_.solver == "gradient descent"
        fits.append([*(model.coef_ * limits), model.intercept_])
    np.testing.assert_allclose(fits[0], fits[1], rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_counts_on_a_stream_are_the_same_bits_as_in_memory():
    bounds = Bounds(feature=[1.0, 1.0, 3.0], target=(0, 5))
    settings = {"epsilon": 1.0, "alpha": 0, "bounds": bounds, "random_state": 3}
    here = dpglm.PoissonRegressor(**settings).fit(X, COUNTS)
    blocks = dpglm.Stream(
        lambda: ((X[k : k + 700], COUNTS[k : k + 700]) for k in range(0, N, 700)), n_samples=N, n_features=3
    )
    there = dpglm.PoissonRegressor(**settings).fit(blocks)
    assert np.array_equal([*here.coef_, here.intercept_], [*there.coef_, there.intercept_])
