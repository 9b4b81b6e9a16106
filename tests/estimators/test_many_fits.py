"""Tools that fit a private model many times say so, once a call, and how often."""

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from dpglm import BoundsScaler, Ledger, LogisticRegression, PrivatePath, check_pipeline
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
    "SelectFromModel": (lambda X, y: SelectFromModel(private()).fit(X, y), "1 time"),
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
