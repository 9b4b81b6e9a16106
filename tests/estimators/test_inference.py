"""Inference on estimators, from what a solver states: here a stand-in whose covariance is known."""

import math
import pickle
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import dpglm
from dpglm import Bounds, ElasticNet, GLMClassifier, GLMRegressor, Lasso, LinearRegression, Ridge, penalties
from dpglm.errors import DpglmError, NotReleased, UnsupportedProblem
from dpglm.losses import LOSSES
from dpglm.solvers import GradientDescent, Newton
from dpglm.solvers.base import Uncertainty

from .small_table import LABELS, TARGET, N, P, X

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

BOUNDS = Bounds(row_norm=4.0, target=(-1, 1))  # the constant feature has the value 2
ATTRIBUTES = ("covariance_", "privacy_covariance_", "standard_errors_", "determined_")
METHODS = ("confidence_intervals", "summary", "deviance")


def covariance(d):
    return 0.01 * (np.eye(d) + 0.1) * np.outer(np.arange(1, d + 1), np.arange(1, d + 1))


@dataclass(frozen=True)
class Stating(GradientDescent):
    """Gradient descent that states an uncertainty; its first run in a list of fates has the first of them."""

    fates: ClassVar[list[dict[str, object]]] = []

    @classmethod
    def run(cls, plan, problem, curator):
        result = super().run(plan, problem, curator)
        d = len(result.w)
        stated = Uncertainty(covariance(d), 0.25 * covariance(d), True, "", "the coefficients of the model.")
        return replace(result, uncertainty=replace(stated, **(cls.fates.pop(0) if cls.fates else {})))


STATED = {"solver": Stating(steps=3), "random_state": 3}
FRAME = pd.DataFrame(X, columns=["age", "hours", "sex"])


def regression(cls=LinearRegression, **settings):
    return cls(bounds=BOUNDS, **STATED | settings)


def classification(**settings):
    return dpglm.LogisticRegression(
        **{"bounds": Bounds(row_norm=4.0), "C": math.inf, "classes": [0, 1], "multi_class": "ovr"}
        | STATED
        | settings
    )


@pytest.fixture
def fates(request):
    Stating.fates[:] = getattr(request, "param", [])
    yield Stating.fates
    Stating.fates.clear()


def test_the_intercept_is_on_the_scale_of_the_user():
    model = regression().fit(X, TARGET)
    scale = np.array([1.0, 1.0, 1.0, 2.0])
    expected = np.diag(scale) @ covariance(4) @ np.diag(scale)
    assert np.allclose(model.covariance_, expected)
    assert np.allclose(model.privacy_covariance_, 0.25 * expected)
    assert np.allclose(model.standard_errors_, np.sqrt(0.011) * np.array([1, 2, 3, 4]) * scale)
    assert model.determined_ is True
    values = np.append(model.coef_, model.intercept_)
    low, high = stats.norm.interval(0.9, values, model.standard_errors_)
    assert np.allclose(model.confidence_intervals(0.9), np.column_stack([low, high]))
    assert model.confidence_intervals().shape == (P + 1, 2)


def test_without_an_intercept_there_are_as_many_errors_as_features():
    model = regression(fit_intercept=False).fit(X, TARGET)
    assert np.allclose(model.covariance_, covariance(3))
    assert model.standard_errors_.shape == (P,) and model.confidence_intervals().shape == (P, 2)
    assert model.summary().blocks[0].names == ("x0", "x1", "x2")
    with pytest.raises(ValueError, match="hypothesis must be among the names 'x0', 'x1', 'x2'"):
        model.wald_test("intercept")


def test_names_come_from_the_table():
    model = regression().fit(FRAME, TARGET)
    assert model.summary().blocks[0].names == ("age", "hours", "sex", "intercept")
    assert model.wald_test("hours") == model.wald_test(1) == model.wald_test([[0, 1, 0, 0]])
    joint = model.wald_test(["age", "sex"])
    w, V = model.coef_[[0, 2]], model.covariance_[np.ix_([0, 2], [0, 2])]
    assert joint.statistic == pytest.approx(w @ np.linalg.inv(V) @ w)
    assert joint.p_value == pytest.approx(stats.chi2.sf(joint.statistic, 2))
    assert model.wald_test([[1, -1, 0, 0]], [0.5]).hypothesis == "age - hours = 0.5"
    nameless = regression().fit(X, TARGET)
    assert nameless.summary().blocks[0].names == ("x0", "x1", "x2", "intercept")
    assert nameless.wald_test("x2").statistic == pytest.approx((nameless.coef_[2] / (3 * 0.011**0.5)) ** 2)


def test_two_classes_have_one_block():
    model = classification().fit(FRAME, LABELS)
    assert model.covariance_.shape == (4, 4) and model.determined_ is True
    assert model.wald_test("age").outcome == ""
    text = str(model.summary())
    assert "outcome: 1 against 0" in text and "n = 60, p = 3" in text
    assert "NOT PRIVATE: the noise can be predicted" in text  # of the seed
    assert model.summary().blocks[0].values.tolist() == [*model.coef_[0], model.intercept_[0]]


@pytest.mark.parametrize("fates", [[{}, {"determined": False, "reason": "too few."}, {}]], indirect=True)
def test_more_classes_have_a_block_each(fates):
    labels = np.arange(N) % 3
    model = classification(classes=[0, 1, 2]).fit(FRAME, labels)
    assert model.covariance_.shape == (3, 4, 4) and model.standard_errors_.shape == (3, 4)
    assert model.determined_.tolist() == [True, False, True]
    assert model.confidence_intervals().shape == (3, 4, 2)
    assert np.isinf(model.confidence_intervals()[1]).all() and np.isinf(model.standard_errors_[1]).all()
    assert np.isfinite(model.confidence_intervals()[[0, 2]]).all()
    assert np.isnan(model.covariance_[1, 0, 1])
    tests = model.wald_test("age")
    assert [test.outcome for test in tests] == [f"{k} against the rest" for k in range(3)]
    assert tests[2].statistic == pytest.approx(model.coef_[2, 0] ** 2 / model.covariance_[2, 0, 0])
    assert math.isnan(tests[1].p_value)
    text = str(model.summary(level=0.9))
    assert text.count("against the rest") == 3 and "determined : NO" in text and "too few." in text


@pytest.mark.parametrize("fates", [[{"determined": False, "reason": "too few records."}]], indirect=True)
def test_a_fit_that_is_not_determined_gives_no_finite_interval(fates):
    model = regression().fit(X, TARGET)
    assert model.determined_ is False
    assert np.isposinf(model.standard_errors_).all()
    assert np.array_equal(model.confidence_intervals(), np.tile([-np.inf, np.inf], (4, 1)))
    assert math.isnan(model.wald_test([0, 1]).p_value)
    assert "too few records." in str(model.summary()) and "too few records." in model.summary()._repr_html_()


@pytest.mark.parametrize("fates", [[{"deviance": (81.5, 2.5)}]], indirect=True)
def test_a_deviance_that_was_paid_for_is_given(fates):
    assert regression().fit(X, TARGET).deviance() == (81.5, 2.5)


@pytest.mark.parametrize("fates", [[{"deviance": (81.5, 2.5)}, {"deviance": (1.0, 2.0)}] * 2], indirect=True)
def test_every_class_has_its_deviance(fates):
    model = classification(classes=[0, 1, 2, 3]).fit(X, np.arange(N) % 4)
    assert model.deviance() == [(81.5, 2.5), (1.0, 2.0)] * 2


def test_a_deviance_that_nobody_paid_for_is_refused():
    model = regression().fit(X, TARGET)
    with pytest.raises(NotReleased, match=r"nobody paid for .*Newton\(deviance_share=0.05\)"):
        model.deviance()
    for unpaid in ("aic", "bic", "loglike", "llf", "rsquared"):
        assert not hasattr(model, unpaid) and unpaid not in str(model.summary().to_dict())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_refusal_names_newton_if_and_only_if_it_takes_the_loss(loss):
    """The words follow from what Newton serves: they do not name some losses by heart."""
    labels = (X[:, 0] > 0).astype(int) if loss.kind == "classification" else LABELS
    kind = dpglm.GLMClassifier if loss.kind == "classification" else dpglm.GLMRegressor
    bounds = Bounds(feature=1.0, target=None if loss.kind == "classification" else (0.5, 3))
    fitted = kind(loss=loss.name, bounds=bounds, solver=GradientDescent(steps=1, step_size=0.1)).fit(
        X, labels
    )
    try:
        fitted.set_params(solver=Newton()).plan(1_000, X.shape[1])
        served = True
    except UnsupportedProblem:
        served = False
    with pytest.raises(NotReleased) as refused:
        fitted.summary()
    assert ("solver=Newton() of dpglm.solvers does" in str(refused.value)) == served


REFUSING = [
    dpglm.LogisticRegression(solver=GradientDescent(steps=2), random_state=0),
    Ridge(solver=GradientDescent(steps=2), bounds=BOUNDS, random_state=0),
    Lasso(math.inf, alpha=0.01, bounds=BOUNDS),
    dpglm.LinearSVC(random_state=0),
    dpglm.LinearSVR(random_state=0),
]


@pytest.mark.parametrize("model", REFUSING, ids=lambda model: type(model).__name__)
def test_a_fit_without_inference_refuses_in_words_that_name_newton(model):
    model = clone(model).fit(X, LABELS)
    words = rf"this {type(model).__name__} has no {{}}: .* with penalty .*"
    remedy = r'Newton\(\).*C=float\("inf"\), alpha=0, penalty=None or LinearRegression$'
    if isinstance(model, dpglm.LinearSVC | dpglm.LinearSVR):
        remedy = r"but not for the \w+ loss: for huber, .*logistic.*squared, tweedie$"
    for name in ATTRIBUTES:
        assert not hasattr(model, name)
        with pytest.raises(NotReleased, match=words.format(name) + remedy):
            getattr(model, name)
    for name in METHODS:
        with pytest.raises(NotReleased, match=words.format(name + r"\(\)") + remedy):
            getattr(model, name)()
    with pytest.raises(NotReleased, match=words.format(r"wald_test\(\)") + remedy):
        model.wald_test(0)
    assert issubclass(NotReleased, DpglmError) and issubclass(NotReleased, AttributeError)


def test_before_a_fit_nothing_is_there():
    model = regression()
    for name in ATTRIBUTES:
        assert not hasattr(model, name)
        with pytest.raises(NotFittedError):
            getattr(model, name)
    for name in METHODS:
        with pytest.raises(NotFittedError):
            getattr(model, name)()
    with pytest.raises(NotFittedError):
        model.wald_test("x0")


def test_another_fit_leaves_nothing_of_the_one_before():
    model = regression().fit(X, TARGET)
    assert hasattr(model, "covariance_")
    model.set_params(solver=GradientDescent(steps=2)).fit(X, TARGET)
    assert not any(hasattr(model, name) for name in ATTRIBUTES)
    model.set_params(solver=Stating(steps=2)).fit(X[:, :2], TARGET)
    assert model.covariance_.shape == (3, 3)
    with pytest.raises(ValueError):
        model.fit(X, TARGET[:-1])  # a fit that fails leaves the model as it was
    assert model.covariance_.shape == (3, 3)


def test_results_survive_pickle_and_clones_start_without_them():
    model = regression().fit(FRAME, TARGET)
    twin = pickle.loads(pickle.dumps(model))
    assert np.array_equal(twin.covariance_, model.covariance_)
    assert str(twin.summary()) == str(model.summary())
    assert str(pickle.loads(pickle.dumps(model.summary()))) == str(model.summary())
    assert not hasattr(clone(model), "covariance_")
    old = pickle.loads(pickle.dumps(model))
    del old._uncertainty  # a model of an earlier version
    assert not hasattr(old, "covariance_")


def test_what_is_given_out_cannot_be_changed_in_the_model():
    model = regression().fit(X, TARGET)
    model.covariance_[:] = 0
    model.confidence_intervals()[:] = 0
    assert model.standard_errors_.all()


def test_sparse_coefficients_and_plain_models_are_as_before():
    model = regression().fit(X, TARGET)
    text = str(model.summary())
    plain = model.to_sklearn(clip=False)
    assert np.array_equal(plain.coef_, model.coef_) and not hasattr(plain, "covariance_")
    assert str(model.sparsify().summary()) == text


def test_the_error_of_a_promise_is_that_of_the_fit():
    model = regression(random_state=None).fit(X, TARGET)
    assert "privacy    : epsilon = 1, delta = 0.000278, replace-one" in str(model.summary())
    stated = model.summary().to_dict()
    assert (stated["private"], stated["n_records"], stated["n_features"]) == (True, N, P)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = regression(epsilon=math.inf, random_state=None).fit(X, TARGET)
    assert "NOT PRIVATE: epsilon is infinite" in str(exact.summary())


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        Ridge(alpha=0),
        Lasso(alpha=0),
        ElasticNet(alpha=0),
        dpglm.LogisticRegression(C=math.inf),
        dpglm.LogisticRegression(C=math.inf, penalty="l1"),
        dpglm.LogisticRegression(C=math.inf, penalty="elasticnet"),
        dpglm.LogisticRegression(penalty=None),
        GLMClassifier(),
        GLMRegressor(),
        GLMRegressor(penalty=penalties.L2(0.0)),
    ],
    ids=repr,
)
def test_no_penalty_is_recognised_by_whatever_name(model):
    assert model._problem(100, 2).penalty.is_zero


@pytest.mark.parametrize(
    "model",
    [
        Ridge(alpha=1e-9),
        Lasso(alpha=1e-9),
        ElasticNet(alpha=1e-9),
        dpglm.LogisticRegression(C=1e9),
        GLMRegressor(penalty=penalties.L1Ball(1e9)),
        GLMRegressor(penalty=penalties.Box(0.0, math.inf)),
    ],
    ids=repr,
)
def test_a_weak_penalty_is_one(model):
    assert not model._problem(100, 2).penalty.is_zero


def sandwich(rows, slopes, curvatures):
    bread = np.linalg.inv(rows.T @ (rows * curvatures[:, None]))
    return bread @ (rows.T @ (rows * np.square(slopes)[:, None])) @ bread


def raw_table(n):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.uniform(18, 90, n), "income": rng.uniform(0, 2e5, n)})
    return table, Bounds(feature=[(18, 90), (0, 200_000)]), rng


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("epsilon", "tolerance"), [(math.inf, 1e-4), (300.0, 0.1)])
def test_newton_states_the_sandwich_on_the_scale_of_the_columns(epsilon, tolerance, fit_intercept):
    table, bounds, rng = raw_table(20_000)
    rows = np.column_stack([table, np.ones(len(table))])[:, : 2 + fit_intercept]
    chance = 1 / (1 + np.exp(0.02 * (table.age - 50) - 5e-6 * (table.income - 1e5)))
    labels = rng.random(len(table)) < chance.to_numpy()
    model = dpglm.LogisticRegression(
        epsilon, C=math.inf, classes=[False, True], bounds=bounds, solver=Newton(), random_state=0,
        fit_intercept=fit_intercept,
    ).fit(table, labels)  # fmt: skip
    w = np.append(model.coef_[0], model.intercept_)[: rows.shape[1]]
    fitted = 1 / (1 + np.exp(-rows @ w))
    expected = sandwich(rows, fitted - labels, fitted * (1 - fitted))
    errors = np.sqrt(np.diagonal(expected))
    assert np.allclose(model.standard_errors_, errors, rtol=tolerance)
    assert np.allclose(model.covariance_ / np.outer(errors, errors), expected / np.outer(errors, errors),
                       atol=tolerance)  # fmt: skip
    truth = np.array([-0.02, 5e-6, 1.0 - 0.5])[: rows.shape[1]]
    if fit_intercept:
        assert np.abs((w - truth) / errors).max() < 4
        assert model.wald_test(np.eye(3), truth).p_value > 1e-4


@pytest.mark.parametrize(("epsilon", "tolerance"), [(math.inf, 1e-4), (300.0, 0.1)])
def test_newton_states_the_sandwich_of_least_squares(epsilon, tolerance):
    table, bounds, rng = raw_table(20_000)
    rows = np.column_stack([table, np.ones(len(table))])
    truth = np.array([-0.5, 1e-3, 300.0])
    target = rows @ truth + rng.uniform(-50, 50, len(table))
    model = LinearRegression(
        epsilon, bounds=replace(bounds, target=(100, 600)), solver=Newton(clip=20), random_state=0
    ).fit(table, target)
    w = np.append(model.coef_, model.intercept_)
    expected = sandwich(rows, rows @ w - target, np.ones(len(table)))
    errors = np.sqrt(np.diagonal(expected))
    assert np.allclose(model.standard_errors_, errors, rtol=tolerance)
    assert np.abs((w - truth) / errors).max() < 4
    assert model.wald_test(["age", "income"]).p_value < 1e-9
    assert (np.diagonal(model.privacy_covariance_) > 0).all() == math.isfinite(epsilon)
