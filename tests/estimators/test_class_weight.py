"""Weights of classes: declared, or balanced by counts that a fit releases first."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as Reference

from dpglm import (
    Bounds,
    GLMClassifier,
    Ledger,
    LinearSVC,
    LogisticRegression,
    Neighbours,
    PrivatePath,
    PrivateSearch,
    Stream,
    make_private_pipeline,
)
from dpglm.audit.auditor import examine
from dpglm.audit.cases import CountingTarget, learning_targets
from dpglm.audit.findings import Claim
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import PrivacyWarning, UnsupportedProblem
from dpglm.estimators.stored import model_from_json, model_to_json
from dpglm.fit.preludes import LARGEST_RATIO, ClassCounting
from dpglm.mechanisms import Randomness
from dpglm.plan import Plan
from dpglm.privacy import PUBLIC_SIZE, Budget
from dpglm.queries import ClassCounts
from dpglm.schema import Number, Schema, Target
from dpglm.solvers import GradientDescent

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

INF = math.inf
rng = np.random.default_rng(0)
N, P = 900, 4
X = rng.standard_normal((N, P))
SCORES = X @ rng.standard_normal((P, 3)) + rng.gumbel(size=(N, 3)) + [2.0, 0.0, 0.5]
LABELS = {2: SCORES[:, :2].argmax(axis=1), 3: np.array(["ash", "birch", "fir"])[SCORES.argmax(axis=1)]}
DECLARED = {2: {0: 0.25, 1: 3.0}, 3: {"fir": 0.2, "ash": 0.5}}
BOUNDS = Bounds(row_norm=3.0)


def model(k, epsilon=2.0, **settings):
    return LogisticRegression(
        epsilon, **({"classes": np.unique(LABELS[k]), "bounds": BOUNDS, "random_state": 1} | settings)
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["declared", "balanced"])
def test_without_noise_it_is_the_optimum_of_scikit_learn(k, kind):
    weights = DECLARED[k] if kind == "declared" else kind
    found = LogisticRegression(INF, C=0.7, classes=np.unique(LABELS[k]), class_weight=weights)
    exact = Reference(C=0.7, class_weight=weights, tol=1e-12, max_iter=10_000).fit(X, LABELS[k])
    found.fit(X, LABELS[k])
    assert np.abs(found.coef_ - exact.coef_).max() < 1e-6
    assert np.abs(found.intercept_ - exact.intercept_).max() < 1e-6


@pytest.mark.parametrize("largest", [None, 2.0, INF])
def test_a_class_weight_multiplies_the_weight_of_a_record(largest):
    weights, y = rng.uniform(0.1, 2.0, N), LABELS[2]
    bounds = Bounds(row_norm=INF, weight=largest)
    found = LogisticRegression(INF, bounds=bounds, classes=[0, 1], class_weight=DECLARED[2])
    found.fit(X, y, sample_weight=weights)
    exact = Reference(class_weight=DECLARED[2], tol=1e-12, max_iter=10_000).fit(X, y, weights)
    assert np.abs(found.coef_ - exact.coef_).max() < 1e-6
    assert np.abs(found.intercept_ - exact.intercept_).max() < 1e-6


def test_one_against_the_rest_weighs_the_records_by_their_class():
    y = LABELS[3]
    found = model(3, INF, multi_class="ovr", class_weight=DECLARED[3], bounds=None).fit(X, y)
    weights = np.array([DECLARED[3].get(label, 1.0) for label in y])
    for k, label in enumerate(found.classes_):
        exact = Reference(tol=1e-12, max_iter=10_000).fit(X, y == label, weights)
        assert np.abs(found.coef_[k] - exact.coef_).max() < 1e-6


@pytest.mark.parametrize("kind", ["declared", "balanced"])
@pytest.mark.parametrize("k", [2, 3])
def test_arrays_sparse_tables_streams_and_dask_give_the_same_bits(k, kind):
    dask = pytest.importorskip("dask.array")
    y, cuts = LABELS[k], [0, 250, 600, N]
    fitted = model(k, class_weight=DECLARED[k] if kind == "declared" else kind)
    expected = fitted.fit(X, y).coef_.tobytes()
    assert fitted.fit(sp.csr_array(X), y).coef_.tobytes() == expected
    parts = [slice(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    stream = Stream(lambda: ((X[part], y[part]) for part in parts), N, P)
    assert fitted.fit(stream).coef_.tobytes() == expected
    if kind == "declared" and k == 2:
        return  # a cluster takes longest
    rows, labels = dask.from_array(X, chunks=(300, P)), dask.from_array(y, chunks=300)
    assert fitted.fit(rows, labels).coef_.tobytes() == expected


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize("multi_class", ["auto", "ovr"])
def test_counts_are_a_release_of_the_plan_and_the_promise(neighbours, multi_class):
    fitted = model(3, class_weight="balanced", neighbours=neighbours.value, multi_class=multi_class)
    plan = fitted.plan(N, P)
    (release,) = plan.learning
    moved = math.sqrt(2 if neighbours is Neighbours.REPLACE_ONE else 1)
    assert (release.query, release.count, release.entries) == ("class counts", 1, 3)
    assert release.sensitivity == f"{moved:.4g}"
    assert plan.learning_share == pytest.approx(0.02, rel=0.1)
    assert plan.epsilon <= 2.0 + 1e-9
    assert plan.passes.most == 1 + plan.fits * sum(one.count for one in plan.releases)
    assert "learn     1 x class counts" in str(plan)
    assert Plan.from_json(plan.to_json()) == plan
    fitted.fit(X, LABELS[3])
    assert fitted.plan_ == plan
    assert fitted.privacy_.epsilon == plan.epsilon
    assert fitted.privacy_.releases[0]["query"] == "class counts"
    assert fitted.privacy_.public["class weights"].endswith("balanced by noisy counts, a release of this fit")
    assert "weight <= 1" in fitted.privacy_.public["bounds"]


def test_declared_weights_cost_nothing_and_bound_the_weight():
    fitted = model(2, class_weight=DECLARED[2], bounds=Bounds(row_norm=3.0, weight=2.0))
    fitted.fit(X, LABELS[2])
    assert not fitted.plan_.learning
    assert "weight <= 6" in fitted.privacy_.public["bounds"]
    assert fitted.privacy_.public["class weights"] == "0.25, 3 in the order of the classes, declared"


def test_a_ledger_pays_for_the_counts(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=4.0, delta=1e-5)
    fitted = model(2, 1.0, class_weight="balanced", random_state=None, ledger=str(account.address))
    fitted.fit(X, LABELS[2])
    (entry,) = (entry for entry in account.history() if entry.kind == "reservation")
    assert entry.content["plan"]["learning"][0]["query"] == "class counts"
    assert "ledger" in fitted.privacy_.public


def test_a_rare_class_is_predicted_with_balanced_weights():
    table = np.random.default_rng(3).standard_normal((6000, P))
    y = table[:, 0] + 0.5 * np.random.default_rng(4).standard_normal(6000) > 2.0
    assert y.mean() < 0.05

    def shares(**settings):
        """Median shares of each class that are predicted to be rare, over five fits."""
        fits = [
            LogisticRegression(1.0, classes=[False, True], bounds=BOUNDS, random_state=seed, **settings)
            for seed in range(5)
        ]
        predicted = [fit.fit(table, y).predict(table) for fit in fits]
        return np.median([(one[y].mean(), one[~y].mean()) for one in predicted], axis=0)

    assert shares()[0] < 0.5
    found, wrong = shares(class_weight="balanced")
    assert found > 0.65 and wrong < 0.15


class Weak(CountingTarget):
    """Claims the budget, whatever its plan has for noise."""

    claim = Claim(1.0, 0.01)


class Counts:
    """A curator that releases given counts."""

    def __init__(self, *counts):
        self.counts = np.array(counts, dtype=float)

    def release(self, query, mechanism):
        return self.counts


@pytest.mark.parametrize(
    ("counts", "weights"),
    [((300, 600), (1, 0.5)), ((10, 890), (1, 0.1)), ((-40, 900), (1, 0.1)), ((-5, -9), (1, 1))],
)
def test_weights_from_noisy_counts_stay_within_a_public_ratio(counts, weights):
    found = ClassCounting(2).run(
        model(2, class_weight="balanced").plan(N, P), None, lambda _: Counts(*counts)
    )
    assert found.factors == pytest.approx(weights)
    assert max(found.factors) == 1 == found.largest
    assert max(found.factors) <= LARGEST_RATIO * min(found.factors)


def test_classes_are_not_counted_where_counts_would_be_noise():
    fitted = model(2, 0.1, class_weight="balanced")
    assert not fitted.plan(N, P).learning
    with pytest.warns(PrivacyWarning, match="balanced.* has no effect"):
        fitted.fit(X, LABELS[2])
    assert fitted.plan_ == fitted.plan(N, P)
    assert fitted.privacy_.public["class weights"].startswith("1, 1 in the order")


def test_a_class_of_weight_zero_has_no_effect():
    y, changed = LABELS[2], X.copy()
    changed[y == 0] *= -1
    first, second = (
        model(2, INF, fit_intercept=False, class_weight={0: 0.0}).fit(t, y) for t in (X, changed)
    )
    assert first.coef_.tobytes() == second.coef_.tobytes()


@pytest.mark.parametrize(
    ("given", "words"),
    [("even", "balanced"), ({0: -1.0}, "at least 0"), ({0: math.nan}, "at least 0"), ({0: "1"}, "at least 0"),
     ({7: 2.0}, r"\[7\], which are none"), ({0: 0.0, 1: 0.0}, "one is positive"), ([1.0, 2.0], "mapping")],
)  # fmt: skip
def test_other_weights_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        model(2, class_weight=given).fit(X, LABELS[2])
    with pytest.raises(ValueError, match=words):
        model(2, class_weight=given).plan(N, P)


def test_a_plan_without_labels_knows_the_largest_weight():
    plan = model(2, classes=None, class_weight=DECLARED[2], solver=GradientDescent()).plan(N, P)
    assert plan == model(2, class_weight=DECLARED[2], solver=GradientDescent()).fit(X, LABELS[2]).plan_


def test_solvers_and_losses_without_weights_refuse_them():
    assert "class_weight" not in LinearSVC().get_params()
    hinge = GLMClassifier(
        1.0, loss="hinge", solver="coordinate-descent", classes=[0, 1], class_weight={0: 2.0}
    )
    with pytest.raises(UnsupportedProblem):
        hinge.fit(X, LABELS[2])


@pytest.mark.parametrize("given", [{0: 2.0}, "balanced"])
def test_searches_and_choices_refuse_them(given):
    """Their candidates have problems of their own, which would not know the weights."""
    with pytest.raises(UnsupportedProblem, match="takes no class_weight"):
        PrivatePath(model(2, class_weight=given)).fit(X, LABELS[2])
    with pytest.raises(UnsupportedProblem, match="takes no class_weight"):
        PrivateSearch(model(2), {"class_weight": [None, given]}).fit(X, LABELS[2])


def test_a_schema_may_learn_facts_beside_the_counts():
    schema = Schema({"x": Number(learn=True, widest=(-50, 50)), "y": Target(classes=["ash", "birch", "fir"])})
    estimator = LogisticRegression(4.0, class_weight="balanced", random_state=0)
    pipeline = make_private_pipeline(schema, estimator)
    frame = pd.DataFrame({"x": X[:, 0], "y": LABELS[3]})
    pipeline.fit(frame)
    assert [release.query for release in pipeline.plan_.learning] == ["range of a column", "class counts"]
    assert pipeline.plan_.epsilon <= 4.0 + 1e-9
    again = model_from_json(model_to_json(pipeline))
    assert np.array_equal(again.predict(frame), pipeline.predict(frame))


def test_the_audit_notices_counts_with_too_little_noise():
    """With the noise that they have, `tests/audit` holds them to their claim."""
    target = next(one for one in learning_targets(Budget(1.0, 0.01)) if isinstance(one, CountingTarget))
    halved = tuple(release.scaled(0.25) for release in target.plan.learning)
    weak = Weak(
        target.case, target.schema, replace(target.plan, learning=halved), target.first, target.second
    )
    assert examine(weak, 200, random_state=5).violated


def test_noise_of_a_count_is_what_the_plan_says():
    """The grid of the counts, too coarse, would enlarge it."""
    plan = model(2, class_weight="balanced").plan(N, P)
    mechanism, query = plan["class counts"].mechanism, ClassCounts(2, N)
    records = as_data(X, LABELS[2], BOUNDS)
    curator = Curator(records, Neighbours.REPLACE_ONE, Randomness(0))
    exact = np.bincount(LABELS[2])
    assert np.array_equal(np.asarray(query(records)), exact)
    noise = np.array([curator.release(query, mechanism) - exact for _ in range(400)])
    assert noise.std() == pytest.approx(mechanism.noise * math.sqrt(2), rel=0.15)
