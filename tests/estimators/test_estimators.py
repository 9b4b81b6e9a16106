import itertools
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import dpglm
from dpglm import Bounds, BoundsScaler, GLMClassifier, GLMRegressor, LogisticRegression, Ridge
from dpglm.errors import PlanMismatch, PrivacyWarning
from dpglm.penalties import L1, L1Ball
from dpglm.solvers import CoordinateDescent, GradientDescent, GreedyCoordinateDescent

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

rng = np.random.default_rng(0)
N, P = 3000, 5
X = rng.uniform(-1, 1, (N, P))
LABELS = np.where(X[:, 0] - X[:, 1] + 0.2 * rng.standard_normal(N) > 0, 1, -1)
CLASSES3 = np.array(["high", "low", "middle"])[np.digitize(X[:, 0], [-0.3, 0.3])]
TARGET = X[:, 0] - 0.5 * X[:, 1]
BOUNDS = Bounds(row_norm=1.5, target=(-2, 2))
SOLVERS = ["gradient-descent", "coordinate-descent", "greedy-coordinate-descent", "dual-coordinate-descent",
           GradientDescent(batch_size=300, steps=60)]  # fmt: skip


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_a_private_fit_is_useful(solver, neighbours):
    model = LogisticRegression(4.0, solver=solver, neighbours=neighbours, random_state=0).fit(X, LABELS)
    assert model.score(X, LABELS) > 0.85
    model = Ridge(4.0, solver=solver, neighbours=neighbours, bounds=BOUNDS, random_state=0).fit(X, TARGET)
    assert model.score(X, TARGET) > 0.7


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_dense_sparse_and_single_precision_tables_give_the_same_model(solver, tmp_path):
    np.save(tmp_path / "table.npy", X)
    tables = [X, np.asfortranarray(X), sp.csr_matrix(X), sp.csr_array(X), sp.csc_array(X),
              np.load(tmp_path / "table.npy", mmap_mode="r"), pd.DataFrame(X), X.tolist()]  # fmt: skip
    models = [LogisticRegression(solver=solver, random_state=1).fit(table, LABELS).coef_ for table in tables]
    for other in models[1:]:
        assert np.allclose(models[0], other, rtol=1e-9)
    single = LogisticRegression(solver=solver, random_state=1).fit(X.astype(np.float32), LABELS).coef_
    assert np.allclose(models[0], single, rtol=1e-4)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)], ids=["pandas", "polars"]
)
def test_data_frames_give_their_feature_names(frame):
    names = [f"feature {j}" for j in range(P)]
    model = LogisticRegression(random_state=1).fit(frame(X, columns=names), LABELS)
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == P
    assert np.allclose(model.coef_, LogisticRegression(random_state=1).fit(X, LABELS).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(X, columns=names[::-1]))


def test_the_same_seed_gives_the_same_model_and_no_seed_another():
    fits = [LogisticRegression(random_state=s).fit(X, LABELS).coef_ for s in (1, 1, None, None)]
    assert np.array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[2], fits[3])


@pytest.mark.parametrize(("multi_class", "fits"), [("multinomial", 1), ("ovr", 3)])
def test_more_than_two_classes_are_learnt_either_way(multi_class, fits):
    model = LogisticRegression(20.0, random_state=0, multi_class=multi_class).fit(X, CLASSES3)
    assert model.coef_.shape == (3, P) and model.intercept_.shape == (3,)
    assert model.score(X, CLASSES3) > 0.6
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert model.plan_.fits == fits
    assert "3 classes" in str(model.privacy_)


def test_a_label_outside_the_declared_classes_contributes_nothing():
    labels = LABELS.copy()
    labels[::7] = 5
    zeroed = X.copy()
    zeroed[::7] = np.nan
    declared = {"classes": [-1, 1], "random_state": 3}
    odd = LogisticRegression(**declared).fit(X, labels).coef_
    assert np.array_equal(odd, LogisticRegression(**declared).fit(zeroed, LABELS).coef_)


@pytest.mark.parametrize("classes", [None, ["high", "low", "middle"]], ids=["read off y", "declared"])
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=str)
def test_a_missing_label_contributes_nothing(classes, missing):
    labels = CLASSES3.astype(object)
    labels[::5] = missing
    zeroed = X.copy()
    zeroed[::5] = np.nan
    odd = LogisticRegression(classes=classes, random_state=3).fit(X, labels).coef_
    assert np.array_equal(
        odd, LogisticRegression(classes=classes, random_state=3).fit(zeroed, CLASSES3).coef_
    )


def test_counts_without_a_declared_range_have_a_rate_of_at_most_one():
    model = GLMRegressor(20.0, loss="poisson", random_state=0).fit(X, (X[:, 0] > 0).astype(float))
    assert (model.predict(X) <= 1).all()
    assert np.corrcoef(model.predict(X), X[:, 0])[0, 1] > 0.5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize(
    "wrap", [np.array, sp.csr_array, sp.csc_matrix, pd.DataFrame, np.longdouble], ids=str
)
def test_no_error_or_warning_depends_on_a_record(solver, wrap):
    tables = [
        X,
        np.where(X > 0.99, np.nan, X),
        np.where(X > 0.99, -np.inf, X),
        X * 10 ** np.linspace(-300, 300, P),
    ]
    targets = [TARGET, np.where(TARGET > 1, np.nan, TARGET), np.where(TARGET > 1, 1e300, TARGET)]
    classes = [LABELS, np.where(X[:, 2] > 0.9, 7, LABELS), np.where(X[:, 2] > 0.9, np.nan, LABELS)]
    # Of arrays all pairs, of other layouts each table and each kind of targets once.
    pairs = itertools.product if wrap is np.array else lambda a, b: zip(a, itertools.cycle(b), strict=False)
    for table, y in pairs(tables, targets):
        model = Ridge(solver=solver, bounds=BOUNDS).fit(wrap(table), y)
        assert np.isfinite(model.coef_).all()
    for table, labels in pairs(tables, classes):
        model = LogisticRegression(solver=solver, classes=[-1, 1]).fit(wrap(table), labels)
        assert np.isfinite(model.coef_).all()


def test_rows_are_clipped_at_prediction_as_in_the_fit():
    model = LogisticRegression(bounds=Bounds(row_norm=0.5), random_state=0).fit(X, LABELS)
    assert np.allclose(model.decision_function(X), model.decision_function(Bounds(row_norm=0.5).clip(X)))


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        GLMClassifier(loss="smoothed_hinge"),
        LogisticRegression(classes=["low", "middle", "high"]),
    ],
    ids=["logistic", "hinge", "one-vs-rest"],
)
def test_plain_classifiers_predict_the_same_on_rows_within_the_bounds(model):
    y = CLASSES3 if model.classes is not None else LABELS
    model = model.fit(X, y)
    plain, inside = model.to_sklearn(clip=False), Bounds(row_norm=1.0).clip(X)
    assert type(plain).__module__.startswith("sklearn")
    assert np.array_equal(plain.predict(inside), model.predict(X))
    if hasattr(model, "predict_proba"):
        assert np.allclose(plain.predict_proba(inside), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore:an L1 strength of .* leaves few or no coefficients")
@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "Lasso", "ElasticNet", "GLMRegressor"])
def test_plain_regressors_predict_the_same_on_rows_within_the_bounds(name):
    model = getattr(dpglm, name)(bounds=BOUNDS).fit(X, TARGET)
    assert np.allclose(model.to_sklearn(clip=False).predict(BOUNDS.clip(X)), model.predict(X))


def test_counts_are_predicted_by_a_clipped_rate():
    counts = rng.poisson(np.exp(X[:, 0]))
    bounds = Bounds(row_norm=1.5, target=(0, 10))
    model = GLMRegressor(20.0, loss="poisson", bounds=bounds, random_state=0).fit(X, counts)
    assert np.corrcoef(model.predict(X), np.exp(X[:, 0]))[0, 1] > 0.8
    assert (model.predict(100 * X) > 0).all() and (model.predict(100 * X) <= 10).all()
    inside = bounds.clip(X)
    assert np.allclose(model.to_sklearn(clip=False).predict(inside), np.exp(model._margins(X)[:, 0]))


def test_a_sparse_penalty_gives_exact_zeros():
    model = dpglm.Lasso(1.0, alpha=0.3, bounds=BOUNDS, solver=GradientDescent(average=False), random_state=0)
    assert (model.fit(X, TARGET).coef_ == 0).any()


@pytest.mark.parametrize(("n", "p"), [(1, 3), (5, 50), (30, 2)])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 50.0])
def test_small_and_wide_tables_are_fitted_without_fuss(n, p, solver, epsilon):
    table = rng.standard_normal((n, p))
    table[:, 0] = 0.0
    model = Ridge(epsilon, solver=solver, bounds=BOUNDS).fit(table, rng.standard_normal(n))
    assert np.isfinite(model.coef_).all() and model.privacy_.epsilon <= epsilon


def test_declared_labels_allow_a_single_class_in_y():
    model = LogisticRegression(classes=[-1, 1]).fit(X, np.ones(N))
    assert model.predict(X[:3]).shape == (3,)


def test_undeclared_labels_are_said_to_be_public():
    with pytest.warns(PrivacyWarning, match="public"):
        LogisticRegression().fit(X, LABELS)


def test_undeclared_target_ranges_are_said_to_be_clipped():
    with pytest.warns(PrivacyWarning, match=r"clipped to \[-1, 1\]"):
        Ridge().fit(X, TARGET)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (LogisticRegression(epsilon=-1.0), LABELS, "epsilon"),
        (LogisticRegression(delta=2.0), LABELS, "delta"),
        (LogisticRegression(neighbours="add-one"), LABELS, "neighbours"),
        (LogisticRegression(solver="simplex"), LABELS, "solver"),
        (LogisticRegression(C=-1.0), LABELS, "C must"),
        (LogisticRegression(bounds=3.0), LABELS, "bounds"),
        (LogisticRegression(bounds=Bounds(row_norm=math.inf)), LABELS, "bounds"),
        (LogisticRegression(bounds=Bounds(feature=[1.0, 2.0])), LABELS, "features"),
        (LogisticRegression(classes=[1]), LABELS, "classes"),
        (LogisticRegression(bounds=BOUNDS), LABELS, "target"),
        (LogisticRegression(fit_intercept="no"), LABELS, "fit_intercept"),
        (LogisticRegression(random_state=0.5), LABELS, "random_state"),
        (LogisticRegression(), np.ones(N), "class"),
        (LogisticRegression(), LABELS[:-1], "inconsistent"),
        (LogisticRegression(penalty=L1Ball(1.0), solver="coordinate-descent"), LABELS, "L1Ball"),
        (GLMClassifier(loss="squared"), LABELS, "squared"),
        (GLMRegressor(loss="logistic"), TARGET, "logistic"),
        (GLMRegressor(loss="cubic"), TARGET, "loss"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_") and not hasattr(model, "privacy_")


def test_a_fit_that_releases_something_else_than_its_plan_is_refused():
    class Greedy(GradientDescent):
        def run(self, plan, problem, curator):
            result = super().run(plan, problem, curator)
            super().run(plan, problem, curator)
            return result

    model = LogisticRegression(solver=Greedy(steps=3))
    with pytest.raises(PlanMismatch):
        model.fit(X, LABELS)
    assert not any(hasattr(model, name) for name in ("coef_", "classes_", "plan_", "privacy_"))


def test_a_pickled_model_keeps_its_promise():
    model = LogisticRegression(random_state=0).fit(X, LABELS)
    again = pickle.loads(pickle.dumps(model))
    assert again.privacy_ == model.privacy_ and np.array_equal(again.predict(X), model.predict(X))


def test_a_prediction_uses_the_bounds_of_the_fit():
    model = LogisticRegression(bounds=Bounds(row_norm=0.5), random_state=0).fit(X, LABELS)
    before = model.decision_function(X)
    assert np.array_equal(model.set_params(bounds=Bounds(row_norm=9.0)).decision_function(X), before)


def test_verbose_prints_the_plan(capsys):
    LogisticRegression(verbose=1).fit(X, LABELS)
    assert "preconditioned descent: 3000 records x 5 features" in capsys.readouterr().out


def test_the_scaler_learns_nothing_from_the_records():
    scaler = BoundsScaler(low=[-2.0] * P, high=3.0)
    first, second = scaler.fit(X).transform(X), BoundsScaler(low=-2.0, high=3.0).fit(X[:1] * 50).transform(X)
    assert np.array_equal(first, second)
    assert np.abs(first).max() <= 1
    pipeline = make_pipeline(
        BoundsScaler(-1, 1), LogisticRegression(bounds=Bounds(feature=1.0), penalty=L1(1e-3), random_state=0)
    )
    assert pipeline.fit(X, LABELS).score(X, LABELS) > 0.7


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), ([0.0, 1.0], 2.0), (0.0, math.inf)])
def test_impossible_ranges_are_refused(low, high):
    with pytest.raises(ValueError, match="low and high"):
        BoundsScaler(low, high).fit(X)


def test_coordinate_descent_uses_declared_feature_bounds_without_paying_for_moments():
    model = LogisticRegression(solver=CoordinateDescent(), bounds=Bounds(feature=1.0)).fit(X, LABELS)
    assert model.plan_.second_moments == "bounds" and len(model.plan_.releases) == 1


@pytest.mark.parametrize(
    "labels", [LABELS, CLASSES3, TARGET], ids=["two classes", "three classes", "regression"]
)
def test_a_sparse_coefficient_predicts_as_a_dense_one_does(labels):
    kind, bounds = (Ridge, BOUNDS) if labels is TARGET else (LogisticRegression, None)
    model = kind(2.0, solver=GreedyCoordinateDescent(steps=2), bounds=bounds, random_state=0).fit(X, labels)
    assert np.count_nonzero(np.atleast_2d(model.coef_), axis=1).max() <= 2
    dense, coefficients = model.predict(X), model.coef_.copy()
    assert model.sparsify() is model
    assert sp.issparse(model.coef_)
    assert np.array_equal(model.predict(X), dense)
    assert np.array_equal(model.predict(sp.csr_array(X)), dense)
    inside = (bounds or Bounds(row_norm=1.0)).clip(X)
    plain = pickle.loads(pickle.dumps(model)).to_sklearn().predict(inside)
    assert np.allclose(plain, dense) if labels is TARGET else np.array_equal(plain, dense)
    model.densify()
    assert np.array_equal(model.coef_, coefficients)
    assert model.coef_.shape == coefficients.shape


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize("seed", [7, np.random.RandomState(7)], ids=["integer", "RandomState"])
def test_a_seeded_fit_says_that_it_is_not_private_and_another_that_it_is(seed):
    X, y = np.zeros((30, 2)), np.arange(30) % 2
    seeded = LogisticRegression(1.0, classes=[0, 1], random_state=seed).fit(X, y).privacy_
    assert not seeded.secure and str(seeded).startswith("NOT PRIVATE")
    keyed = LogisticRegression(1.0, classes=[0, 1]).fit(X, y).privacy_
    assert keyed.secure and "NOT PRIVATE" not in str(keyed)
