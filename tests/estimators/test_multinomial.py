"""More than two classes as one softmax model."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression as Reference

from dpglm import (
    Bounds,
    GLMClassifier,
    LinearSVC,
    LogisticRegression,
    Neighbours,
    Stream,
    make_private_pipeline,
)
from dpglm.errors import UnsupportedProblem
from dpglm.estimators.stored import model_from_json, model_to_json
from dpglm.losses import Multinomial
from dpglm.penalties import L2, Box, L1Ball
from dpglm.privacy import Budget
from dpglm.problem import Problem
from dpglm.schema import Category, Number, Schema, Target
from dpglm.solvers import SOLVERS, GradientDescent, Newton, PreconditionedDescent, Task
from dpglm.solvers.auto import suited
from dpglm.solvers.preludes import start_from_shares
from dpglm.testing import check_solver

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

rng = np.random.default_rng(0)
N, P, K = 600, 5, 4
X = rng.standard_normal((N, P)) + 0.5
CODES = (X @ rng.standard_normal((P, K)) + rng.gumbel(size=(N, K))).argmax(axis=1)
LABELS = np.array(["ash", "birch", "cedar", "fir"])[CODES]
CLASSES = ["fir", "birch", "ash", "cedar"]
BOUNDS = Bounds(feature=3.0)


def model(epsilon=1.0, **settings):
    return LogisticRegression(epsilon, **({"classes": CLASSES, "bounds": BOUNDS} | settings))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("solver", ["auto", "preconditioned-descent"])
def test_without_noise_it_is_the_optimum_of_scikit_learn(fit_intercept, C, solver):
    found = LogisticRegression(float("inf"), C=C, fit_intercept=fit_intercept, solver=solver, classes=CLASSES)
    found.fit(X, LABELS)
    exact = Reference(C=C, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000).fit(X, LABELS)
    assert np.array_equal(found.classes_, exact.classes_)
    assert np.abs(found.coef_ - exact.coef_).max() < 1e-6
    assert np.abs(found.intercept_ - exact.intercept_).max() < 1e-6
    assert np.abs(found.predict_proba(X) - exact.predict_proba(X)).max() < 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("penalty", ["l1", "elasticnet", None])
def test_without_noise_other_penalties_have_the_objective_of_scikit_learn(penalty):
    C, ratio = (0.1 if penalty else np.inf), {"l1": 1.0, "elasticnet": 0.5, None: 0.0}[penalty]
    found = LogisticRegression(float("inf"), C=C, penalty=penalty, classes=CLASSES).fit(X, LABELS)
    # Before scikit-learn 1.8 the penalty had to be named, and after it naming it is deprecated.
    named = {} if "deprecated" in repr(Reference().penalty) else {"penalty": penalty and "elasticnet"}
    solver = "saga" if penalty else "lbfgs"
    exact = Reference(C=C, l1_ratio=ratio, solver=solver, tol=1e-8, max_iter=5_000, **named)
    exact.fit(X, LABELS)

    def objective(one):
        losses = Multinomial(K).value(X @ one.coef_.T + one.intercept_, CODES)
        sizes = ratio * np.abs(one.coef_) + (1 - ratio) / 2 * one.coef_**2
        return losses.sum() + sizes.sum() / C

    assert objective(found) <= objective(exact) * (1 + 1e-7)
    if penalty == "l1":
        assert np.array_equal(found.coef_ == 0, exact.coef_ == 0) and (found.coef_ == 0).any()


@pytest.mark.parametrize("solver", ["auto", "gradient-descent"])
def test_shapes_and_probabilities_are_those_of_one_softmax_model(solver):
    fitted = model(4.0, solver=solver).fit(X, LABELS)
    assert fitted.coef_.shape == (K, P) and fitted.intercept_.shape == (K,)
    assert fitted.classes_.tolist() == sorted(CLASSES) and fitted.plan_.fits == 1
    inside = np.clip(X, -3, 3)
    margins = inside @ fitted.coef_.T + fitted.intercept_
    assert np.allclose(fitted.decision_function(X), margins, atol=1e-12)
    assert np.allclose(fitted.predict_proba(X), softmax(margins, axis=1), atol=1e-12)
    assert np.array_equal(fitted.predict(X), fitted.classes_[margins.argmax(axis=1)])
    assert "multinomial" in str(fitted.privacy_) and "Multinomial(classes=4)" in str(fitted.privacy_)


@pytest.mark.parametrize("solver", ["preconditioned-descent", GradientDescent(steps=20)])
def test_noise_is_centred_over_the_classes(solver):
    """A shift of all classes changes no prediction, so no noise is left in it."""
    fitted = model(0.5, solver=solver, C=float("inf")).fit(X, LABELS)
    assert np.allclose(fitted.coef_.sum(axis=0), 0, atol=1e-9)
    assert np.allclose(fitted.intercept_.sum(), 0, atol=1e-9)
    assert np.abs(fitted.coef_).max() > 1e-3


@pytest.mark.parametrize("solver", [PreconditionedDescent(), GradientDescent(steps=9)])
@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
def test_its_price_does_not_grow_with_the_number_of_classes(solver, neighbours):
    few, many = (
        model(1.0, classes=None, solver=solver, neighbours=neighbours).plan(10_000, 6, n_classes=k)
        for k in (3, 30)
    )
    assert few.fits == many.fits == 1
    assert [one.mechanism for one in few.releases] == [one.mechanism for one in many.releases]
    rest = model(1.0, multi_class="ovr", solver=solver, neighbours=neighbours).plan(10_000, 6, n_classes=30)

    def noise_of_gradients(plan):
        """That of one gradient that all of them together could be."""
        (gradients,) = (release for release in plan.releases if "gradient" in release.query)
        return gradients.mechanism.noise / gradients.count**0.5

    assert noise_of_gradients(rest) > 5 * noise_of_gradients(many)


@pytest.mark.parametrize("options", [{}, {"solver": GradientDescent(steps=4)},
                                     {"solver": GradientDescent(steps=4, clip=0.5, batch_size=100)},
                                     {"solver": GradientDescent(steps=5), "penalty": "l1"},
                                     {"epsilon": float("inf"), "C": 0.01}],
                         ids=["metric", "rows", "batches", "L1", "no noise"])  # fmt: skip
def test_a_seeded_fit_has_the_same_bits_on_arrays_sparse_tables_and_streams(options):
    rows = np.where(rng.random((N, P)) < 0.5, 0.0, X)
    stream = Stream(lambda: ((rows[k : k + 70], LABELS[k : k + 70]) for k in range(0, N, 70)), N, P)
    expected = model(random_state=3, **options).fit(rows, LABELS)
    for table in (np.asfortranarray(rows), sp.csr_array(rows), sp.csc_matrix(rows), stream):
        y = None if table is stream else LABELS
        found = model(random_state=3, **options).fit(table, y)
        assert found.coef_.tobytes() == expected.coef_.tobytes()
        assert found.intercept_.tobytes() == expected.intercept_.tobytes()


def test_records_that_are_missing_or_of_no_class_change_no_bit():
    rows, labels = X.copy(), LABELS.astype(object)
    rows[7], labels[7] = np.nan, "fir"
    other = rows.copy()
    other[7] = 2.0
    unknown = labels.copy()
    unknown[7] = "oak"
    here, there = (model(random_state=1).fit(*table) for table in ((rows, labels), (other, unknown)))
    assert here.coef_.tobytes() == there.coef_.tobytes()


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_solver_fits_several_classes_one_way_or_the_other_or_refuses_by_name(solver):
    one = SOLVERS[solver]
    automatic = model(1.0, solver=solver)
    assert automatic._outputs_for(K) == (K if one.takes_outputs else 1)
    if not one.takes_outputs:
        with pytest.raises(UnsupportedProblem, match=f"{one.__name__} serves losses of one prediction"):
            model(1.0, solver=solver, multi_class="multinomial").plan(N, P)
        problem = Problem(Multinomial(3), L2(0.1), BOUNDS)
        with pytest.raises(UnsupportedProblem, match="use GradientDescent, PreconditionedDescent"):
            one().plan(problem, N, P, Budget(1.0, 1e-6), Neighbours.ZERO_OUT)


def test_a_penalty_that_is_for_one_coefficient_a_feature_is_refused_by_name():
    with pytest.raises(UnsupportedProblem, match="L1Ball is for one coefficient a feature"):
        model(1.0, penalty=L1Ball(1.0), multi_class="multinomial").plan(N, P)
    assert model(1.0, penalty=L1Ball(1.0), solver="gradient-descent").plan(N, P).fits == K
    fitted = model(2.0, penalty=Box(-0.1, 0.1)).fit(X, LABELS)
    assert fitted.plan_.fits == 1 and np.abs(fitted.coef_).max() <= 0.1


def test_one_against_the_rest_stays_and_is_what_it_was():
    """Each class then is a fit of its own, as `GLMClassifier` has it."""
    settings = {"classes": CLASSES, "bounds": BOUNDS, "random_state": 2, "solver": GradientDescent(steps=3)}
    rest = LogisticRegression(1.0, multi_class="ovr", **settings).fit(X, LABELS)
    other = GLMClassifier(1.0, penalty=L2(1 / N), **settings).fit(X, LABELS)
    assert rest.plan_.fits == K and np.array_equal(rest.coef_, other.coef_)
    assert model(1.0, solver=Newton(intervals=False), C=float("inf")).fit(X, LABELS).plan_.fits == K


@pytest.mark.parametrize("multi_class", ["auto", "multinomial", "ovr"])
def test_two_classes_are_one_binary_model_whatever_is_asked(multi_class):
    labels = np.where(X[:, 0] > 0, 1, -1)
    fits = [
        LogisticRegression(1.0, classes=[-1, 1], random_state=0, **asked).fit(X, labels).coef_
        for asked in ({}, {"multi_class": multi_class})
    ]
    assert fits[0].shape == (1, P) and np.array_equal(*fits)


def test_an_estimator_can_be_fitted_to_other_numbers_of_classes():
    one = model(1.0, random_state=0, classes=None)
    one.fit(X, LABELS)
    two = one.fit(X, LABELS == "fir")
    assert two.coef_.shape == (1, P)
    assert np.array_equal(two.coef_, model(1.0, random_state=0, classes=None).fit(X, LABELS == "fir").coef_)


@pytest.mark.parametrize("multi_class", ["softmax", None, 3])
def test_another_word_for_several_classes_is_refused(multi_class):
    with pytest.raises(ValueError, match="multi_class must be one of"):
        model(1.0, multi_class=multi_class).fit(X, LABELS)


def test_the_loss_is_refused_where_one_prediction_is_expected():
    with pytest.raises(ValueError, match="GLMClassifier needs a loss of one prediction"):
        GLMClassifier(1.0, loss=Multinomial(3), classes=[0, 1, 2]).fit(X, CODES % 3)
    assert LinearSVC(1.0, classes=CLASSES).plan(N, P).fits == K


@pytest.mark.parametrize("solver", [GradientDescent(), GradientDescent(steps=6, clip=0.3, batch_size=90),
                                    PreconditionedDescent()], ids=repr)  # fmt: skip
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_solver_spends_exactly_its_plan(solver, fit_intercept):
    check_solver(solver, Problem(Multinomial(K), L2(0.01), BOUNDS, fit_intercept), X, CODES.astype(float))


def test_auto_takes_the_metric_where_noise_leaves_some_of_it():
    def chosen(n, p, classes):
        problem = Problem(Multinomial(classes), L2(0.1), BOUNDS)
        return type(suited(Task(problem, n, p, Budget(1.0, 1e-6), Neighbours.REPLACE_ONE)))

    assert chosen(10_000, 20, 3) is chosen(10_000, 20, 100) is PreconditionedDescent
    assert chosen(10_000, 5_000, 3) is chosen(100, 290, 3) is GradientDescent
    assert chosen(200, 100, 3) is PreconditionedDescent  # of two classes at q = 0.04 it is gradient descent


def test_predictions_start_from_the_shares_of_classes_as_far_as_noise_leaves_them():
    shares = np.array([0.7, 0.25, 0.05])
    start = start_from_shares(shares, 1e-9)
    assert np.allclose(softmax(start), shares, atol=1e-6) and abs(start.sum()) < 1e-12
    assert np.array_equal(start_from_shares(shares, 10.0), np.zeros(3))
    assert np.isfinite(start_from_shares(np.array([1.0, 0.0, -0.2]), 0.01)).all()


def test_the_model_of_scikit_learn_predicts_the_same():
    fitted = model(2.0).fit(X, LABELS)
    plain = fitted.to_sklearn()
    assert np.allclose(plain.predict_proba(5 * X), fitted.predict_proba(5 * X), atol=1e-12)


def test_a_pipeline_with_a_schema_can_be_stored_and_read():
    features = {f"x{j}": Number(-3, 3) for j in range(P)} | {"side": Category(["left", "right"])}
    schema = Schema({**features, "tree": Target(classes=CLASSES)})
    raw = pd.DataFrame({f"x{j}": X[:, j] for j in range(P)})
    raw["side"], raw["tree"] = np.resize(["left", "right"], N), LABELS
    for settings, fits in (({}, 1), ({"multi_class": "ovr"}, K)):
        pipeline = make_private_pipeline(schema, LogisticRegression(1.0, **settings)).fit(raw)
        text = model_to_json(pipeline)
        again = model_from_json(text)
        assert pipeline.plan_.fits == fits and len(pipeline.raw_coefficients()) == K
        assert (
            np.array_equal(pipeline.predict_proba(raw), again.predict_proba(raw))
            and model_to_json(again) == text
        )
        assert json.loads(text)["parameters"]["multi_class"] == again.estimator.multi_class
