"""What users read: docstrings, advice, and errors that name argument, value and remedy."""

import inspect
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpglm
from dpglm import (
    Bounds,
    BoundsScaler,
    ElasticNet,
    GLMClassifier,
    GLMRegressor,
    Lasso,
    LinearSVR,
    LogisticRegression,
    Ridge,
    losses,
    penalties,
    solvers,
)
from dpglm.errors import PrivacyWarning
from dpglm.solvers import SOLVERS, GradientDescent

from .small_table import LABELS, TARGET, N, X

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

ESTIMATORS = [
    dpglm.GLMClassifier, dpglm.LogisticRegression, dpglm.LinearSVC, dpglm.GLMRegressor,
    dpglm.LinearRegression, dpglm.Ridge, dpglm.Lasso, dpglm.ElasticNet, dpglm.LinearSVR,
]  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_an_estimator_in_a_notebook_does_not_warn(cls):
    assert cls.__name__ in cls()._repr_html_()
    assert cls.__name__ in make_pipeline(BoundsScaler(), cls())._repr_html_()


@pytest.mark.filterwarnings("ignore:an L1 strength of .* (makes every coefficient 0|leaves few or no)")
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_the_docstring_of_an_estimator_describes_all_that_it_has(cls):
    lines = cls.__doc__.splitlines()
    for name in cls().get_params():
        place = next(k for k, line in enumerate(lines) if re.match(rf"    {name} : \S", line))
        assert lines[place + 1].startswith("        "), name
    model = cls(solver=GradientDescent(steps=2, step_size=0.1)).fit(
        pd.DataFrame(X, columns=list("abc")), LABELS
    )
    for name in vars(model):
        if name.endswith("_") and not name.startswith("_"):
            assert any(re.match(rf"    {name} : \S", line) for line in lines), name
    assert all(f"'{name}'" in cls.__doc__ for name in SOLVERS)
    assert "{" not in cls.__doc__.replace("{-1, 1}", "") and "As in" not in cls.__doc__


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_the_signature_is_the_docstring_in_short(cls):
    text = cls.__doc__[: cls.__doc__.index("Attributes\n")]
    described = re.findall(r"^ *(\w+) : \S", text, re.MULTILINE)
    parameters = inspect.signature(cls).parameters
    assert list(parameters) == described
    assert [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY] == ["epsilon"]
    assert {name: one.default for name, one in parameters.items()} == cls().get_params()
    assert set(vars(cls())) == set(parameters)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_clone_has_the_parameters_of_the_original_and_equals_itself_only(cls):
    model = cls(2.0, delta=1e-6, fit_intercept=False).set_params(verbose=1)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert (twin.epsilon, twin.delta, twin.fit_intercept, twin.verbose) == (2.0, 1e-6, False, 1)
    assert twin != model and hash(model) != hash(twin)
    assert repr(model) == f"{cls.__name__}(delta=1e-06, epsilon=2.0, fit_intercept=False, verbose=1)"


@pytest.mark.parametrize(
    ("cls", "fixed"),
    [
        (LogisticRegression, {"loss": "hinge"}),
        (dpglm.LinearSVC, {"penalty": None}),
        *((cls, {name: None}) for cls in ESTIMATORS[4:] for name in ("loss", "penalty")),
    ],
    ids=repr,
)
def test_a_model_of_one_loss_or_penalty_has_no_parameter_for_it(cls, fixed):
    assert issubclass(cls, GLMClassifier | GLMRegressor)
    with pytest.raises(TypeError, match=next(iter(fixed))):
        cls(**fixed)


def test_the_advice_of_the_warning_about_targets_works():
    with pytest.warns(PrivacyWarning, match=r"clipped to \[-1, 1\]") as caught:
        Ridge().fit(X, TARGET)
    advice = re.search(r"bounds=(Bounds\(.*\)),", str(caught[0].message))[1]
    declared = eval(advice, {"Bounds": Bounds, "low": -1.0, "high": 2.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Ridge(20.0, bounds=declared).fit(X, TARGET)
    with pytest.raises(ValueError, match=r"for example Bounds\(row_norm=1.0, target="):
        Bounds(target=(0, 100))


def test_an_l1_strength_that_zeroes_everything_is_said():
    with pytest.warns(UserWarning, match="L1 strength of 1 makes every coefficient 0.*well below 1$"):
        Lasso(bounds=Bounds(feature=1.0, target=(-1, 1))).fit(X, TARGET)
    # It is true at the limit, and not far below it.
    table, y = np.tile([[1.0], [-1.0]], (50, 1)), np.tile([1.0, -1.0], 50)
    limits = {"bounds": Bounds(feature=1.0, target=(-1, 1))}
    with pytest.warns(UserWarning, match="every coefficient 0"):
        assert Lasso(math.inf, alpha=1.0, **limits).fit(table, y).coef_[0] == 0
    with pytest.warns(UserWarning, match="leaves few or no coefficients: from 1 on, all are 0"):
        assert Lasso(math.inf, alpha=0.99, **limits).fit(table, y).coef_[0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Lasso(math.inf, alpha=0.25, **limits).fit(table, y)
    with pytest.warns(UserWarning, match="leaves few or no coefficients"):
        ElasticNet(math.inf, **limits).fit(table, y)
    # Without an intercept the slope at 0 is what a coefficient starts from.
    bare = {"fit_intercept": False, "bounds": Bounds(feature=1.0, target=(-1, 2))}
    with pytest.warns(UserWarning, match="every coefficient 0.*well below 2$"):
        assert Lasso(math.inf, alpha=2.0, **bare).fit(table, 2 * y).coef_[0] == 0
    with pytest.warns(UserWarning, match="leaves few or no coefficients"):
        assert Lasso(math.inf, alpha=1.4, **bare).fit(table, np.where(y > 0, 2.0, -1.0)).coef_[0] > 0


@pytest.mark.parametrize(
    ("name", "l1", "l2"), [("l1", 1.0, 0.0), ("l2", 0.0, 1.0), ("elasticnet", 0.25, 0.75)]
)
def test_penalties_have_the_names_of_scikit_learn(name, l1, l2):
    from sklearn.linear_model import LogisticRegression as Plain

    C = 0.5
    model = LogisticRegression(math.inf, C=C, penalty=name, l1_ratio=0.25, classes=[0, 1]).fit(X, LABELS)
    form = model._fitted_problem.penalty.coordinate_form()
    assert np.allclose(form[:2], (l1 / (C * N), l2 / (C * N)))
    # Before 1.8 the penalty had to be named, and after it naming it is deprecated.
    named = {} if "deprecated" in repr(Plain().penalty) else {"penalty": "elasticnet"}
    plain = Plain(C=C, l1_ratio=l1, solver="saga", tol=1e-10, max_iter=100_000, **named).fit(X, LABELS)
    assert np.allclose(model.coef_, plain.coef_, atol=1e-4)


def test_no_penalty_has_several_names():
    labels = LABELS ^ (np.arange(N) % 5 == 0)  # no line separates them, so there is a minimiser
    fits = [
        LogisticRegression(math.inf, classes=[0, 1], **none).fit(X, labels).coef_
        for none in ({"penalty": None}, {"C": math.inf}, {"penalty": dpglm.penalties.Zero()})
    ]
    assert np.allclose(fits[0], fits[1]) and np.allclose(fits[0], fits[2])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Ridge(bounds=(0, 1)), r"bounds must be a dpglm.Bounds or None, got \(0, 1\)"),
        (Ridge(alpha=-1), "alpha must be a finite number of at least 0, got -1"),
        (dpglm.Lasso(alpha="a"), "alpha must be .* got 'a'"),
        (dpglm.ElasticNet(l1_ratio=2), "l1_ratio must be a number from 0 to 1, got 2"),
        (dpglm.LinearSVR(C="a"), "C must be a positive number, got 'a'"),
        (Ridge(delta="x"), "delta must .* got 'x'"),
        (Ridge("x"), "epsilon must .* got 'x'"),
        (GLMRegressor(loss=["squared"]), "loss must be"),
        (GLMRegressor(penalty="l1"), r"penalty must be .* such as L1\(0.01\) .* got 'l1'"),
        (Ridge(solver=["auto"]), "solver must be"),
        (Ridge(random_state="a"), "random_state must be .* got 'a'"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_error_names_argument_and_value_of_a_regressor(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, TARGET)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LogisticRegression(penalty="l3"), r"penalty must be one of \['l2', 'l1', 'elasticnet'\].* got 'l3'"),
        (LogisticRegression(penalty=3), "penalty must be .* got 3"),
        (GLMClassifier(penalty="l2"), "penalty must be .* got 'l2'"),
        (LogisticRegression(penalty="elasticnet", l1_ratio=-1), "l1_ratio must be .* got -1"),
        (LogisticRegression(C="a"), "C must be a positive number, got 'a'"),
        (LogisticRegression(C=0), "C must be a positive number, got 0"),
    ],
    ids=str,
)
def test_an_error_names_argument_and_value_of_a_classifier(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, LABELS)


@pytest.mark.parametrize(
    ("sizes", "name"),
    [((0, 3), "n_samples"), ((100.5, 3), "n_samples"), ((100, -3), "n_features"), (("a", 3), "n_samples")],
    ids=str,
)
def test_a_plan_for_an_impossible_table_is_refused(sizes, name):
    for model in (Ridge(), LogisticRegression()):
        with pytest.raises(ValueError, match=f"{name} must be a whole number from 1 on"):
            model.plan(*sizes)
    with pytest.raises(ValueError, match="n_classes must be a whole number from 1 on"):
        LogisticRegression().plan(10, 3, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"row_norm": 1.0, "target": 5}, "target must be two numbers .* got 5"),
        ({"row_norm": 1.0, "target": ("a", 1)}, "target must be two numbers"),
        ({"row_norm": "a"}, "row_norm must be a positive number .* got 'a'"),
        ({"feature": "a"}, "feature must be a positive number .* got 'a'"),
        ({"feature": ["a"]}, "feature must be a positive number"),
    ],
    ids=str,
)
def test_impossible_bounds_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        Bounds(**arguments)


def test_a_numpy_generator_is_a_random_state():
    fits = [LogisticRegression(classes=[0, 1], random_state=np.random.default_rng(s)).fit(X, LABELS).coef_
            for s in (1, 1, 2)]  # fmt: skip
    assert np.array_equal(fits[0], fits[1]) and not np.array_equal(fits[0], fits[2])


@pytest.mark.parametrize(("make", "name"), [
    (lambda: GradientDescent(clip="a"), "clip"), (lambda: GradientDescent(clip=True), "clip"),
    (lambda: solvers.CoordinateDescent(share="a"), "share"),
    (lambda: solvers.ObjectivePerturbation(quadratic="a"), "quadratic"),
    (lambda: solvers.DualCoordinateDescent(overlap="a"), "overlap"),
    (lambda: solvers.FrankWolfe(step_size="a"), "step_size"),
    (lambda: Lasso(solver=solvers.GreedyCoordinateDescent(warm_start="a")).plan(10, 2), "warm_start"),
    (lambda: penalties.L1(None), "strength"), (lambda: penalties.L2("a"), "strength"),
    (lambda: penalties.ElasticNet("a", 1), "l1"), (lambda: penalties.L1Ball("x"), "radius"),
    (lambda: penalties.Box("a", 1), "low"), (lambda: losses.Huber("a"), "threshold"),
    (lambda: LinearSVR(tube="a").plan(10, 2), "tube"),
], ids=range(14))  # fmt: skip
def test_a_setting_of_the_wrong_type_is_refused_by_its_name(make, name):
    with pytest.raises(ValueError, match=f"{name} must "):
        make()


def test_probabilities_are_those_of_the_logistic_loss_only():
    class Steeper(losses.Logistic):
        def derivative(self, z, y):
            return 2 * super().derivative(z, y)

        def lipschitz(self, target=None):
            return 2.0

        def smoothness(self):
            return 0.5

    assert hasattr(GLMClassifier(loss=losses.Logistic()), "predict_proba")
    assert not hasattr(GLMClassifier(loss=Steeper()), "predict_proba")
