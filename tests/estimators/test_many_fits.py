"""Tools that fit a private model many times say so, once a call, and how often."""

import inspect
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import all_estimators

from dpglm import Bounds, BoundsScaler, Ledger, LogisticRegression, PrivatePath, Ridge, check_pipeline
from dpglm.errors import PrivacyWarning
from dpglm.solvers import GradientDescent


def private(**settings):
    return LogisticRegression(classes=[-1, 1], solver=GradientDescent(steps=1), delta=1e-3, **settings)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 4))
    return X, np.where(X[:, 0] > 0, 1, -1)


TOOLS = {
    "GridSearchCV": (
        lambda X, y: GridSearchCV(private(), {"C": [0.1, 1.0]}, cv=3).fit(X, y),
        "7 times",
    ),
    "RandomizedSearchCV": (
        lambda X, y: RandomizedSearchCV(private(), {"C": [0.1, 1.0]}, n_iter=2, cv=2).fit(X, y),
        "5 times",
    ),
    "cross_val_score": (lambda X, y: cross_val_score(private(), X, y, cv=4), "4 times"),
    "cross_validate": (lambda X, y: cross_validate(private(), X, y, cv=2), "2 times"),
    "RFE": (lambda X, y: RFE(private(), n_features_to_select=2).fit(X, y), "3 times"),
    "RFECV": (lambda X, y: RFECV(private(), cv=2).fit(X, y), "12 times"),
    "BaggingClassifier": (lambda X, y: BaggingClassifier(private(), n_estimators=3).fit(X, y), "3 times"),
    "CalibratedClassifierCV": (lambda X, y: CalibratedClassifierCV(private(), cv=2).fit(X, y), "2 times"),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_warns_once_a_call_and_says_how_many_fits_there_are(tool, table):
    call, times = TOOLS[tool]
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(*table)
        said = [str(one.message) for one in caught if "spends its whole epsilon" in str(one.message)]
        assert len(said) == 1
        assert said[0].startswith(f"{tool} fits LogisticRegression {times}:")
        assert "nobody keeps count" in said[0]


def test_a_fit_by_itself_in_a_pipeline_or_by_a_path_warns_of_nothing(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private().fit(*table)
        make_pipeline(BoundsScaler(-1, 1), private()).fit(*table)
        PrivatePath(private()).fit(*table)


PLACES = ("estimator", "regressor", "estimators", "steps")
META_ESTIMATORS = {
    name: kind
    for name, kind in all_estimators()
    if set(PLACES) & set(inspect.signature(kind.__init__).parameters) and name != "FrozenEstimator"
}
"""Everything of scikit-learn that holds an estimator and fits it."""

ONE_FIT = {"FixedThresholdClassifier", "Pipeline", "SelectFromModel", "TransformedTargetRegressor"}


def holder(kind):
    """A meta-estimator with a private model in each place that takes one."""
    numbers = kind.__name__.endswith("Regressor")
    if numbers:
        bounds = Bounds(row_norm=2.0, target=(-1, 1), weight=1.0)
        model = Ridge(1e4, solver=GradientDescent(steps=1), delta=1e-3, bounds=bounds)
    else:
        bounds = Bounds(row_norm=2.0, weight=1.0)
        model = private(epsilon=1e4, bounds=bounds).set_params(classes=[0, 1, 2])
    values = {
        "estimator": model, "regressor": model, "estimators": [("one", model), ("two", clone(model))],
        "steps": [("range", BoundsScaler(-1, 1)), ("model", model)],
        "final_estimator": PlainRidge() if numbers else Plain(),
        "param_grid": {"verbose": [0]}, "param_distributions": {"verbose": [0]}, "cv": 2, "n_iter": 1,
        "n_features_to_select": 2, "n_estimators": 2, "criterion": "k_best", "k_best": 50,
        "min_samples": 300,
    }  # fmt: skip
    return kind(
        **{name: values[name] for name in inspect.signature(kind.__init__).parameters if name in values}
    )


@pytest.mark.parametrize("name", META_ESTIMATORS)
def test_a_meta_estimator_warns_once_if_and_only_if_it_fits_more_than_once(name, monkeypatch):
    fits = []
    monkeypatch.setattr("dpglm.estimators.sklearn_checks.warn_of_learning_steps", fits.append)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 4))
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    if name.startswith("MultiOutput") or name.endswith("Chain"):
        y = np.c_[y, (X[:, 1] > 0).astype(int)]
    if name.endswith(("Regressor", "RegressorChain")):
        y = X[:, :2] if y.ndim == 2 else X[:, 0]
    if name == "SelfTrainingClassifier":
        y[::2] = -1  # without a label
    if "Threshold" in name:
        y = np.minimum(y, 1)
        tool = holder(META_ESTIMATORS[name]).set_params(estimator__classes=[0, 1])
    else:
        tool = holder(META_ESTIMATORS[name])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tool.fit(X, y)
    said = [str(one.message) for one in caught if "spends its whole epsilon" in str(one.message)]
    assert (len(fits) == 1) == (name in ONE_FIT)
    assert len(said) == (len(fits) > 1)
    assert all(text.startswith(f"{name} fits ") for text in said)


@pytest.mark.parametrize(
    ("tool", "leak"),
    [
        (TunedThresholdClassifierCV(private(), cv=0.5, refit=False), "tuned on exact scores"),
        (OneVsOneClassifier(private().set_params(classes=[0, 1])), "how many records two classes have"),
    ],
)
def test_a_tool_that_reveals_more_than_its_fits_says_what(tool, leak, table):
    X, y = table
    if isinstance(tool, OneVsOneClassifier):
        y = np.digitize(X[:, 0], [-0.3, 0.3])
    with pytest.warns(PrivacyWarning, match=leak):
        tool.fit(X, y)


def test_a_fit_in_a_worker_of_a_tool_warns_without_seeing_the_others(table):
    tool = VotingClassifier([("one", private()), ("two", private())], n_jobs=2)
    said = "fit_single_estimator fits LogisticRegression more than once"
    with joblib.parallel_backend("threading", n_jobs=2), pytest.warns(PrivacyWarning, match=said):
        tool.fit(*table)


def test_two_private_models_in_one_pipeline_warn(table):
    with pytest.warns(PrivacyWarning, match="Pipeline fits LogisticRegression more than once"):
        make_pipeline(SelectFromModel(private()), private()).fit(*table)


def test_a_path_inside_of_a_tool_is_named_once(table):
    with pytest.warns(PrivacyWarning, match="cross_val_score fits PrivatePath 2 times"):
        cross_val_score(PrivatePath(private()), *table, cv=2)


def test_the_ledger_is_charged_for_every_fit_of_a_tool(table, tmp_path):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    account = Ledger(url).create("table", epsilon=20, delta=1e-3)
    with pytest.warns(PrivacyWarning, match="5 times.*charged to the ledger"):
        GridSearchCV(private(ledger=f"{url}#table"), {"C": [0.1, 1.0]}, cv=2).fit(*table)
    assert [entry.kind for entry in account.history()].count("reservation") == 5


def test_every_step_that_learns_is_listed():
    assert check_pipeline(make_pipeline(BoundsScaler(-1, 1), private())) == []
    assert check_pipeline(private()) == []
    columns = ColumnTransformer([("range", MinMaxScaler(), [0]), ("same", "passthrough", [1])])
    assert check_pipeline(make_pipeline(columns, StandardScaler(), PrivatePath(private()))) == [
        "columntransformer.range: MinMaxScaler",
        "standardscaler: StandardScaler",
    ]
    assert check_pipeline(make_pipeline(StandardScaler(), Plain()))[-1] == (
        "logisticregression: LogisticRegression"
    )
    search = GridSearchCV(make_pipeline(StandardScaler(), private()), {})
    assert check_pipeline(search) == ["GridSearchCV", "estimator.standardscaler: StandardScaler"]
