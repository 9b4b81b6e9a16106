"""Arguments that cannot be meant are refused in one sentence, before anything is read or charged."""

import dataclasses
import inspect
import math
import warnings

import numpy as np
import pytest

from dpglm import (
    Bounds,
    ElasticNet,
    GammaRegressor,
    GLMClassifier,
    GLMRegressor,
    HuberRegressor,
    Lasso,
    Ledger,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NegativeBinomialRegressor,
    PoissonRegressor,
    PrivatePath,
    PrivateSearch,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
    evaluate,
    penalties,
)
from dpglm.errors import DpglmError
from dpglm.losses import LOSSES
from dpglm.penalties import Bounded
from dpglm.penalties.set_functions import Custom
from dpglm.schema import Number, Schema
from dpglm.solvers import SOLVERS, GradientDescent, Newton, PreconditionedDescent

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
Y = (X[:, 0] > 0).astype(int)
RANGE = {"bounds": Bounds(row_norm=2.0, target=(-1, 1))}


def logistic(**settings):
    return LogisticRegression(**{"classes": [0, 1], "solver": GradientDescent(steps=2), **settings})


BOUNDS = {
    "target": [{0: 1, 1: -1}, {-1, 1}, "12", ("1", "2"), (False, True), (1, 0), (0, 1, 2), (0, np.nan)],
    "offset": [{0: 1, 1: -1}, True, "12", (0, "1")],
    "weight": [True, "1", np.nan],
    "row_norm": [True, "1", [1.0], 10**400],
    "feature": [True, "3", ["3", "4"], [True, True], [[1, 2], [3]], {0: 1}, [1j], ((1, 2), (3,)), [None]],
    "rows_per_unit": [True, 1.0, "1"],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BOUNDS.items() for v in values], ids=str)
def test_bounds_that_are_no_numbers_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be "):
        Bounds(**{"row_norm": 1.0, name: value})


ARGUMENTS = {
    "classes": [
        [0, 1, 1], [1, True], [np.nan, 0], [None, 0], [[0], [1]], "01", {0: 1, 1: 1},
        [0, np.datetime64("NaT")],
    ],
    "verbose": ["yes", -3, 1.5, np.nan, None],
    "epsilon": [1e-320, 1e-100, True, "1", -1, np.nan],
    "delta": [True, "x", 0],
    "C": [True, "1", 0],
    "random_state": [True, -1, 1.5, "a"],
    "fit_intercept": [1, "yes"],
    "lower": [True, "0", (0, 1), [[1], [2, 3]]],
    "monotone": [{0: True}, 5, {0: "up"}],
    "class_weight": [{0: True, 1: 1}, {0: "1"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in ARGUMENTS.items() for v in values], ids=str
)
def test_a_fit_with_an_argument_that_cannot_be_meant_is_refused_and_not_charged(name, value, tmp_path):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    account = Ledger(url).create("table", epsilon=20, delta=1e-3)
    for neighbours in ("replace-one", "add-remove"):
        model = logistic(ledger=f"{url}#table", neighbours=neighbours, delta=1e-6).set_params(**{name: value})
        with warnings.catch_warnings(), pytest.raises(ValueError, match=name):
            warnings.simplefilter("ignore")
            model.fit(X, Y)
    assert [entry.kind for entry in account.history()] == ["opening"]


@pytest.mark.parametrize("name", ["steps", "batch_size"])
def test_a_flag_is_no_number_of_steps(name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1 on, got True"):
        GradientDescent(**{name: True})
    with pytest.raises(ValueError, match="rounds must be a whole number"):
        Newton(rounds=True)
    with pytest.raises(ValueError, match="steps must be a whole number"):
        PreconditionedDescent(steps=np.True_)


@pytest.mark.parametrize("level", [1e-300, 1 - 1e-16, True, 0, 1])
def test_a_quantile_that_no_table_has_is_refused(level):
    with pytest.raises(ValueError, match="level must be strictly between 0 and 1"):
        QuantileRegressor(quantile=level, **RANGE).fit(X, X[:, 0])


@pytest.mark.parametrize("p", [2**63, 2**40, True, 0, 2.0])
def test_a_set_function_of_too_many_features_is_refused_at_once(p):
    with pytest.raises(ValueError, match="^p must be"):
        Custom(len, p=p)


def test_ends_of_another_number_of_features_are_refused_in_words():
    model = logistic(penalty=Bounded(low=(0, 1), high=2.0))
    with pytest.raises(ValueError, match="Bounded has 2 ends, the table has 3 features"):
        model.fit(X, Y)
    for low in ("0", True, ((0, 1), (0,)), np.nan):
        with pytest.raises(ValueError, match="low must be a number, or one for each coefficient"):
            Bounded(low=low, high=2.0)


@pytest.mark.parametrize("value", [None, True, 5, "age", len, {"age": "job"}])
def test_interactions_that_are_no_list_are_refused(value):
    with pytest.raises(ValueError, match="^interactions must be"):
        Schema({"age": Number(0, 1)}, interactions=value)
    with pytest.raises(ValueError, match="^high must be a number"):
        Number(0, 10**400)


@pytest.mark.parametrize("metric", [None, 5, [], [5], {}, {"accuracy"}, ["accuracy", "accuracy"], "f1"])
def test_a_metric_that_is_no_name_is_refused(metric):
    model = logistic(epsilon=8.0).fit(X, Y)
    with pytest.raises(ValueError, match="^metric must be"):
        evaluate(model, X, Y, metric, epsilon=1.0)


@pytest.mark.parametrize("candidates", [None, 5, {}, [], "x", [None], [{"C": [1]}, 5], {"C": 1.0}])
def test_candidates_that_are_none_are_refused(candidates):
    with pytest.raises(ValueError, match="^candidates must be"):
        PrivateSearch(logistic(), candidates, runs=2).fit(X, Y)


@pytest.mark.parametrize("name", ["max_iter", "tol", "n_jobs", "warm_start", "data_norm"])
def test_a_parameter_of_another_library_is_refused_with_what_to_write(name):
    with pytest.raises(TypeError, match=f"LogisticRegression has no parameter '{name}': "):
        LogisticRegression(**{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        Ridge(nothing=1)


def test_metrics_is_said_to_be_metric():
    model = logistic(epsilon=8.0).fit(X, Y)
    with pytest.raises(TypeError, match="evaluate has no parameter 'metrics': it is called metric"):
        evaluate(model, X, Y, metrics=["accuracy"], epsilon=1.0)


ODD = (
    None, True, np.True_, -1, 0, 1.5, math.nan, math.inf, 1e308, 10**400, "", "x", b"1", [], {}, set(), [1],
    [[1], [1, 2]], {"a": 1}, object(), len, np.array([]), np.array([1, 2]), np.ones((2, 2)), 1j, [None], int,
)  # fmt: skip
NUMBERS = {"bounds": Bounds(row_norm=2.0, target=(0.01, 3))}
REGRESSORS = (
    ElasticNet, GammaRegressor, GLMRegressor, HuberRegressor, Lasso, LinearRegression, LinearSVR,
    NegativeBinomialRegressor, PoissonRegressor, QuantileRegressor, Ridge, TweedieRegressor,
)  # fmt: skip
CLASSIFIERS = (GLMClassifier, LinearSVC, LogisticRegression)
PENALTIES = (
    penalties.Bounded(0.0, 1.0), penalties.Box(0.0, 1.0), penalties.ElasticNet(1.0, 1.0), penalties.L1(1.0),
    penalties.L1Ball(1.0), penalties.L2(1.0),
)  # fmt: skip
FOREIGN = ("broadcast", "inhomogeneous", "truth value", "setting an array", "could not convert", "ufunc")
"""What NumPy says."""


def of_estimator(kind):
    given = NUMBERS if kind in REGRESSORS else {"classes": [0, 1]}
    names = set(inspect.signature(kind).parameters) - {"ledger", "random_state"}
    return {name: lambda value, name=name: kind(**{**given, name: value}).plan(200, 3) for name in names}


def of_solver(kind):
    names = [field.name for field in dataclasses.fields(kind) if field.init and field.name != "candidates"]
    return {
        name: lambda value, name=name: logistic(solver=kind(**{name: value})).plan(200, 3) for name in names
    }


def of_penalty(penalty):
    names = [field.name for field in dataclasses.fields(penalty)]
    return {
        name: lambda value, name=name: logistic(penalty=dataclasses.replace(penalty, **{name: value})).plan(
            9, 3
        )
        for name in names
    }


def of_loss(kind):
    given, model = (
        (NUMBERS, GLMRegressor) if kind.kind != "classification" else ({"classes": [0, 1]}, GLMClassifier)
    )
    return {
        field.name: lambda value, name=field.name: model(loss=kind(**{name: value}), **given).plan(200, 3)
        for field in dataclasses.fields(kind)
        if field.init
    }


def of_search(kind):
    given = {"candidates": {"C": [1.0, 0.1]}} if kind is PrivateSearch else {}
    names = set(inspect.signature(kind).parameters) - {"estimator"}
    return {
        name: lambda value, name=name: kind(logistic(), **{**given, name: value}).plan(200, 3)
        for name in names
    }


PARTS = {
    **{kind.__name__: of_estimator(kind) for kind in (*REGRESSORS, *CLASSIFIERS)},
    **{kind.__name__: of_solver(kind) for kind in dict.fromkeys(SOLVERS.values())},
    **{f"penalty {type(one).__name__}": of_penalty(one) for one in PENALTIES},
    **{f"loss {kind.__name__}": of_loss(kind) for kind in LOSSES},
    **{kind.__name__: of_search(kind) for kind in (PrivateSearch, PrivatePath)},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", PARTS)
def test_no_argument_ends_in_another_error_or_in_the_words_of_another_library(part):
    """A parameter takes a value, or refuses it with a ValueError in words of its own."""
    for name, make in PARTS[part].items():
        for value in ODD:
            try:
                make(value)
            except (ValueError, DpglmError) as error:
                assert not any(words in str(error) for words in FOREIGN), f"{name}={value!r}: {error}"
            except Exception as error:
                raise AssertionError(f"{name}={value!r}: {type(error).__name__}: {error}") from error
