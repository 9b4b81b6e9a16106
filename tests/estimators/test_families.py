"""Families without noise are those of scikit-learn and statsmodels; with noise they have intervals."""

import math
import warnings

import numpy as np
import pytest
from sklearn import linear_model

import dpglm
from dpglm import Bounds
from dpglm.errors import PrivacyWarning, UnsupportedProblem
from dpglm.solvers import Newton

INF = math.inf
N, P = 400, 3
rng = np.random.default_rng(7)
X = rng.normal(size=(N, P))
OFFSET = np.log(rng.uniform(0.2, 1.0, N))
MEAN = np.exp(X @ np.array([0.3, -0.2, 0.1]) + 0.4 + OFFSET)
COUNTS = rng.poisson(MEAN).astype(float)
COSTS = rng.gamma(2.0, MEAN / 2)
WEIGHTS = rng.integers(0, 4, N).astype(float)
BOUNDS = Bounds(row_norm=2.0, target=(0, 4), weight=3.0, offset=(-2.0, 0.0))


def same(model, coef, intercept, tolerance=1e-6):
    np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=tolerance)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=0, atol=tolerance)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize(
    ("ours", "theirs", "y"),
    [
        (dpglm.PoissonRegressor, linear_model.PoissonRegressor, COUNTS),
        (dpglm.GammaRegressor, linear_model.GammaRegressor, COSTS),
    ],
)
def test_without_noise_a_family_is_that_of_scikit_learn(ours, theirs, y, alpha):
    plain = theirs(alpha=alpha, solver="newton-cholesky", tol=1e-10).fit(X, y)
    model = ours(INF, alpha=alpha).fit(X, y)
    same(model, plain.coef_, plain.intercept_)
    assert model.score(X, y) == pytest.approx(plain.score(X, y), abs=1e-9)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0])
def test_without_noise_tweedie_is_that_of_scikit_learn(power):
    y = COSTS if power in (0, 2) else COUNTS * 1.7
    plain = linear_model.TweedieRegressor(power=power, alpha=0.05, solver="newton-cholesky", tol=1e-10)
    plain.fit(X, y)
    same(dpglm.TweedieRegressor(INF, power=power, alpha=0.05).fit(X, y), plain.coef_, plain.intercept_)


def test_weights_and_offsets_without_noise_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    design = np.column_stack([X, np.ones(N)])
    for family, model in (
        (sm.families.Poisson(), dpglm.PoissonRegressor(INF, alpha=0)),
        (
            sm.families.NegativeBinomial(alpha=0.7),
            dpglm.NegativeBinomialRegressor(INF, alpha=0, dispersion=0.7),
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = sm.GLM(COUNTS, design, family=family, offset=OFFSET, freq_weights=WEIGHTS).fit(tol=1e-12)
        model.fit(X, COUNTS, exposure=np.exp(OFFSET), sample_weight=WEIGHTS)
        same(model, plain.params[:-1], plain.params[-1])
        np.testing.assert_allclose(
            model.predict(X, offset=OFFSET), plain.predict(design, offset=OFFSET), rtol=1e-6
        )


def test_without_noise_huber_is_that_of_scikit_learn_at_its_scale():
    y = np.log(COSTS)
    plain = linear_model.HuberRegressor(alpha=0.01, tol=1e-12, max_iter=10_000).fit(X, y)
    model = dpglm.HuberRegressor(INF, threshold=1.35 * plain.scale_, alpha=0.01 * plain.scale_).fit(X, y)
    same(model, plain.coef_, plain.intercept_, 1e-5)  # scikit-learn's own steps end there


def test_without_noise_a_quantile_is_that_of_scikit_learn():
    plain = linear_model.QuantileRegressor(quantile=0.7, alpha=0).fit(X, COSTS)
    same(dpglm.QuantileRegressor(INF, quantile=0.7, alpha=0).fit(X, COSTS), plain.coef_, plain.intercept_)


ESTIMATORS = [
    (dpglm.PoissonRegressor(INF, alpha=0), COUNTS),
    (dpglm.LinearRegression(INF), COSTS),
    (dpglm.Ridge(INF), COSTS),
    (dpglm.LogisticRegression(INF, classes=[False, True]), COUNTS > 0),
    (dpglm.LogisticRegression(INF, classes=[False, True], solver="gradient-descent"), COUNTS > 0),
]


@pytest.mark.parametrize(("model", "y"), ESTIMATORS, ids=repr)
def test_a_record_of_weight_two_is_the_record_twice(model, y):
    again = np.repeat(np.arange(N), WEIGHTS.astype(int))
    coef, intercept = (lambda m: (m.coef_.copy(), m.intercept_))(
        model.fit(X[again], y[again], offset=OFFSET[again])
    )
    same(model.fit(X, y, sample_weight=WEIGHTS, offset=OFFSET), coef, intercept)


@pytest.mark.parametrize(("model", "y"), ESTIMATORS, ids=repr)
def test_a_constant_offset_shifts_the_intercept(model, y):
    plain = model.fit(X, y)
    coef, intercept = plain.coef_.copy(), plain.intercept_
    same(model.fit(X, y, offset=np.full(N, 0.7)), coef, intercept - 0.7)


def test_twice_the_weight_is_twice_the_record_also_where_gradients_are_clipped():
    from dpglm.data import as_data
    from dpglm.losses import Logistic
    from dpglm.queries import ClippedGradient

    w, y = np.array([3.0, -2.0, 1.0, 0.5]), np.where(COUNTS > 0, 1.0, -1.0)
    bounds = Bounds(row_norm=2.0, weight=2.0)
    once, twice = (
        as_data(X[rows], np.column_stack([y[rows], np.full(len(rows), weight), 0 * y[rows]]), bounds, 1.0, N)
        for rows, weight in ((np.arange(50), 2.0), (np.repeat(np.arange(50), 2), 1.0))
    )
    query = ClippedGradient(Logistic(), 0.3)
    np.testing.assert_allclose(np.asarray(query(once, w)), np.asarray(query(twice, w)), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_weights_and_offsets_give_the_same_bits_on_arrays_streams_and_named_columns():
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.dataset")
    beside = {"sample_weight": WEIGHTS, "offset": OFFSET}

    def read():
        for k in range(0, N, 90):
            yield X[k : k + 90], COUNTS[k : k + 90]

    table = pd.DataFrame(X, columns=list("abc")).assign(y=COUNTS, w=WEIGHTS, o=OFFSET)
    source = pa.dataset.dataset(pa.Table.from_pandas(table, preserve_index=False))
    for solver in ("gradient-descent", "newton"):
        model = dpglm.PoissonRegressor(2.0, alpha=0, bounds=BOUNDS, random_state=3, solver=solver)
        expected = model.fit(X, COUNTS, **beside).coef_.tobytes()
        named = {"sample_weight": "w", "offset": "o"}
        for given, y, more in (
            (dpglm.Stream(read, N, P), None, beside), (np.asfortranarray(X), COUNTS, beside),
            (table, "y", named), (source, "y", named),
        ):  # fmt: skip
            assert model.fit(given, y, **more).coef_.tobytes() == expected
    here = model.predict(table[["a", "b", "c"]], offset=OFFSET)
    assert np.array_equal(here, model.predict(table.drop(columns=["y", "w"]), offset="o"))
    assert np.array_equal(here, model.predict(source, offset="o"))


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_weights_and_offsets_give_the_same_bits_on_dask():
    da = pytest.importorskip("dask.array")
    model = dpglm.PoissonRegressor(2.0, alpha=0, bounds=BOUNDS, random_state=3, solver="gradient-descent")
    expected = model.fit(X, COUNTS, sample_weight=WEIGHTS, offset=OFFSET).coef_.tobytes()
    rows, *columns = (da.from_array(part, chunks=(150, *part.shape[1:])) for part in (X, COUNTS, WEIGHTS))
    assert model.fit(rows, columns[0], sample_weight=columns[1], offset=OFFSET).coef_.tobytes() == expected


def test_a_private_fit_of_counts_has_intervals_that_cover():
    n = 40_000
    rows = rng.uniform(-1, 1, (n, 2))
    exposure = rng.uniform(0.5, 1.0, n)
    y = np.minimum(rng.poisson(exposure * np.exp(rows @ [0.5, -0.3] - 0.5)), 4)
    bounds = Bounds(feature=1.0, target=(0, 4), offset=(-1.0, 0.0))
    model = dpglm.PoissonRegressor(2.0, alpha=0, means=(0, 2.0), bounds=bounds, solver="newton")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.set_params(random_state=1).fit(rows, y, exposure=exposure)
    assert model.determined_ and "x0" in str(model.summary())
    low, high = model.confidence_intervals(0.9999).T
    assert np.all((low < [0.5, -0.3, -0.5]) & (high > [0.5, -0.3, -0.5]))
    assert np.all(model.standard_errors_ < 0.2)


@pytest.mark.parametrize("solver", ["coordinate-descent", "frank-wolfe", "dual-coordinate-descent"])
def test_solvers_that_take_no_weights_refuse_them_by_name(solver):
    model = dpglm.LogisticRegression(1.0, classes=[False, True], solver=solver,
                                     bounds=Bounds(feature=1.0, weight=2.0))  # fmt: skip
    with pytest.raises(UnsupportedProblem, match="takes no weights of records: use GradientDescent"):
        model.fit(X, COUNTS > 0, sample_weight=WEIGHTS)


def test_what_has_no_declared_range_is_refused_or_clipped_with_a_warning():
    model = dpglm.PoissonRegressor(1.0, bounds=Bounds(row_norm=1.0, target=(0, 4)))
    with pytest.raises(ValueError, match="no range of offsets is declared"):
        model.fit(X, COUNTS, offset=OFFSET)
    with pytest.warns(PrivacyWarning, match=r"weights are clipped to \[0, 1\]"):
        model.fit(X, COUNTS, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="has no log link"):
        dpglm.LinearRegression(INF).fit(X, COUNTS, exposure=np.exp(OFFSET))


def test_weights_and_offsets_that_are_no_numbers_drop_their_record_alone():
    bad, kept = np.arange(4), np.arange(4, N)
    weights, offsets = np.ones(N), OFFSET.copy()
    weights[:2], offsets[2:4] = (np.nan, np.inf), (np.nan, -np.inf)
    model = dpglm.PoissonRegressor(INF, alpha=0)
    expected = model.fit(X[kept], COUNTS[kept], offset=OFFSET[kept])
    coef, intercept = expected.coef_.copy(), expected.intercept_
    same(model.fit(X, COUNTS, sample_weight=weights, offset=offsets), coef, intercept)
    assert len(bad) == 4


def test_constraints_keep_coefficients_where_they_belong():
    y = X @ np.array([1.0, -1.0, 0.5])
    free = dpglm.LinearRegression(INF)
    assert free.set_params(positive=True).fit(X, y).coef_.min() == 0
    plain = linear_model.LinearRegression(positive=True).fit(X, y)
    np.testing.assert_allclose(free.coef_, plain.coef_, atol=1e-6)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = dpglm.Ridge(INF, monotone={"a": "decreasing", 1: "increasing"}, upper=[9, 9, 0.2])
    assert np.allclose(model.fit(frame, y).coef_, [0, 0, 0.2])
    assert np.allclose(dpglm.Lasso(INF, alpha=1e-6, lower=-0.3).fit(X, y).coef_[1], -0.3)
    with pytest.raises(ValueError, match="leave no value"):
        dpglm.Ridge(INF, lower=1.0, upper=0.0).fit(X, y)
    with pytest.raises(ValueError, match="monotone names the feature 'd'"):
        dpglm.Ridge(INF, monotone={"d": "increasing"}).fit(frame, y)


def test_metadata_routing_takes_weights_through_pipelines_and_searches():
    import sklearn
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    with sklearn.config_context(enable_metadata_routing=True):
        model = dpglm.PoissonRegressor(INF).set_fit_request(sample_weight=True, exposure=True)
        model = model.set_score_request(sample_weight=False, exposure=False)
        pipeline = make_pipeline(dpglm.BoundsScaler(), model)
        pipeline.fit(X, COUNTS, sample_weight=WEIGHTS, exposure=np.exp(OFFSET))
        search = GridSearchCV(model, {"alpha": [0.0, 1.0]}, cv=2)
        search.fit(X, COUNTS, sample_weight=WEIGHTS, exposure=np.exp(OFFSET))
    expected = dpglm.PoissonRegressor(INF, **search.best_params_)
    expected.fit(X, COUNTS, sample_weight=WEIGHTS, exposure=np.exp(OFFSET))
    same(search.best_estimator_, expected.coef_, expected.intercept_)


def test_tweedie_refuses_what_is_not_convex():
    for settings in ({"power": 3.0}, {"power": 0.5}, {"power": 0.0, "link": "log"},
                     {"power": 1.5, "link": "identity"}):  # fmt: skip
        with pytest.raises(ValueError, match="power"):
            dpglm.TweedieRegressor(INF, **settings).fit(X, COUNTS)


def test_a_schema_declares_weight_and_exposure():
    from dpglm.schema import Exposure, Number, Schema, Target, Weight

    schema = Schema({"x": Number(-3, 3), "n": Target(0, 9), "w": Weight(3), "years": Exposure(0.1, 1.0)})
    assert Schema.from_toml(schema.to_toml()) == schema
    bounds = schema.bounds()
    assert (bounds.weight, bounds.offset) == (3.0, (math.log(0.1), 0.0))
    table = {"x": X[:, 0], "n": COUNTS, "w": WEIGHTS, "years": np.exp(OFFSET)}
    model = dpglm.make_private_pipeline(schema, dpglm.PoissonRegressor(INF, alpha=0))
    fitted = model.fit(table)
    plain = dpglm.PoissonRegressor(INF, alpha=0, bounds=bounds)
    plain.fit(schema.encode({"x": X[:, 0]}), COUNTS, sample_weight=WEIGHTS, exposure=np.exp(OFFSET))
    same(fitted.estimator_, plain.coef_, plain.intercept_)
    by_exposure = fitted.predict({"x": X[:, 0], "years": np.exp(OFFSET)})
    np.testing.assert_allclose(by_exposure, fitted.predict({"x": X[:, 0]}) * np.exp(OFFSET), rtol=1e-9)
    with pytest.raises(ValueError, match="no log link"):
        dpglm.make_private_pipeline(schema, dpglm.LinearRegression(1.0)).fit(table)


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_newton_states_its_plan_for_counts(neighbours):
    model = dpglm.PoissonRegressor(1.0, alpha=0, bounds=BOUNDS, solver=Newton(), neighbours=neighbours)
    assert model.plan(100_000, 3).epsilon <= 1.0
    with pytest.raises(UnsupportedProblem, match="deviance"):
        model.set_params(solver=Newton(deviance_share=0.1)).plan(100_000, 3)


def test_a_regression_leaves_out_records_whose_target_or_offset_is_not_finite():
    bounds = Bounds(row_norm=2.0, target=(0, 4), offset=(-1.0, 1.0))
    target, offset = COUNTS.astype(float), np.clip(OFFSET, -1.0, 1.0)
    broken, moved = target.copy(), offset.copy()
    broken[:2], moved[2:4] = (np.inf, -np.inf), (np.inf, -np.inf)
    rows = X.copy()
    rows[:4] = np.nan
    model = dpglm.LinearRegression(1.0, bounds=bounds, random_state=0)
    expected = model.fit(rows, target, offset=offset).coef_.tobytes()
    assert model.fit(X, broken, offset=moved).coef_.tobytes() == expected
