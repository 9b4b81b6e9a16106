"""Private scores: what they estimate, how often their intervals hold, what they cost."""

import json
import math
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error, r2_score, roc_auc_score

import dpglm
from dpglm import Bounds, Ledger, LinearRegression, LinearSVC, LogisticRegression, evaluate
from dpglm.audit.auditor import examine
from dpglm.audit.cases import Scored, _case, evaluation_targets
from dpglm.audit.targets import TranscriptTarget
from dpglm.errors import BudgetExceeded, PrivacyWarning, UnsupportedProblem
from dpglm.evaluation import METRICS, EvaluationPlan
from dpglm.plan import Plan
from dpglm.privacy import PUBLIC_SIZE, Budget, Neighbours
from dpglm.queries import ScoreSums
from dpglm.schema import Category, Number, Schema, Target

CLASSES, NUMBERS = (
    ["accuracy", "log_loss", "auc", "calibration"],
    ["r2", "mean_squared_error", "mean_absolute_error"],
)
W = np.array([1.0, -0.7, 0.3])
INF = float("inf")


def labelled(rng, n):
    X = rng.standard_normal((n, 3))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(1 - X @ W)), 1, -1)


def measured(rng, n):
    X = rng.standard_normal((n, 3))
    return X, np.clip(X @ W + 0.6 * rng.standard_normal(n), -3, 3)


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    ends = Bounds(row_norm=4.0, target=(-3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            LogisticRegression(4.0, bounds=Bounds(row_norm=4.0), classes=[-1, 1], random_state=0).fit(
                *labelled(rng, 5_000)
            ),
            LinearRegression(4.0, bounds=ends, random_state=0).fit(*measured(rng, 5_000)),
        )


def test_without_noise_scores_are_those_of_scikit_learn(models):
    (classifier, regressor), rng = models, np.random.default_rng(1)
    X, y = labelled(rng, 4_000)
    found = evaluate(classifier, X, y, CLASSES, epsilon=INF)
    chance = classifier.predict_proba(X)[:, 1]
    assert found["accuracy"].value == pytest.approx(classifier.score(X, y), abs=1e-9)
    assert found["log_loss"].value == pytest.approx(log_loss(y, chance), abs=1e-5)
    assert found["calibration"].value == pytest.approx(np.mean((y > 0) - chance), abs=1e-5)
    margins = classifier.decision_function(X)
    exact = roc_auc_score(y, margins)
    assert found["auc"].value == pytest.approx(exact, abs=0.003)  # margins in a bin are ties
    reach = min(6.0, float(np.linalg.norm(classifier.coef_)) * 4 + abs(float(classifier.intercept_[0])))
    binned = np.clip(np.floor((margins + reach) * 32 / (2 * reach)), 0, 31)
    assert found["auc"].value == pytest.approx(roc_auc_score(y, binned), abs=1e-6)
    X, y = measured(rng, 4_000)
    found, predicted = evaluate(regressor, X, y, NUMBERS, epsilon=INF), regressor.predict(X)
    assert found["r2"].value == pytest.approx(r2_score(y, predicted), abs=1e-4)
    assert found["mean_squared_error"].value == pytest.approx(mean_squared_error(y, predicted), abs=1e-4)
    assert found["mean_absolute_error"].value == pytest.approx(mean_absolute_error(y, predicted), abs=1e-4)
    assert not found.privacy.private


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_intervals_cover_as_often_as_they_say(models, neighbours):
    """Seeds are fixed; `experiments/evaluation_coverage.py` has more tables."""
    rng, tables = np.random.default_rng(2), 40
    for model, draw, names in zip(models, (labelled, measured), (CLASSES, NUMBERS), strict=True):
        truth = evaluate(model, *draw(rng, 100_000), names, epsilon=INF)
        covered = dict.fromkeys(names, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            for seed in range(tables):
                found = evaluate(
                    model, *draw(rng, 3_000), names, epsilon=8.0, neighbours=neighbours.value, level=0.9,
                    random_state=seed,
                )  # fmt: skip
                for one in found.estimates:
                    assert one.determined and one.noise < one.standard_error
                    covered[one.metric] += one.low <= truth[one.metric].value <= one.high
        assert min(covered.values()) >= 30, covered


def test_noise_that_hides_a_score_is_said(models):
    classifier, regressor = models
    rng = np.random.default_rng(3)
    for model, draw, names in ((classifier, labelled, CLASSES), (regressor, measured, NUMBERS)):
        found = evaluate(model, *draw(rng, 30), names, epsilon=0.01, delta=1e-6)
        for one in found.estimates:
            assert not one.determined and "not determined" in str(one)
            assert math.isinf(one.standard_error) and one.high >= one.low
        json.loads(found.to_json())


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
def test_all_holders_of_a_table_give_the_same_bits(models):
    classifier, _ = models
    X, y = labelled(np.random.default_rng(4), 700)
    X[5, 1], X[300:] = np.nan, np.round(X[300:])  # a null record
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    named = LogisticRegression(4.0, bounds=Bounds(row_norm=4.0), classes=[-1, 1], random_state=0)
    named.fit(frame[["a", "b", "c"]], y)
    holders = [
        (classifier, X, y),
        (classifier, np.asfortranarray(X), y.tolist()),
        (classifier, sp.csr_array(X), y),
        (classifier, sp.csc_array(X), y),
        (
            classifier,
            dpglm.Stream(lambda: ((X[k : k + 90], y[k : k + 90]) for k in range(0, 700, 90)), 700, 3),
            None,
        ),
        (classifier, da.from_array(X, chunks=(200, 3)), da.from_array(y, chunks=200)),
    ]
    named_holders = [(named, frame, "y"), (named, ds.dataset(pa.Table.from_pandas(frame)), "y")]
    for group in (holders, named_holders):
        texts = {
            str([(one.value, one.low, one.high, one.bins) for one in
                 evaluate(*holder, CLASSES, epsilon=1.0, random_state=7).estimates])
            for holder in group
        }  # fmt: skip
        assert len(texts) == 1


def test_records_that_do_not_count_change_no_score(models):
    classifier, regressor = models
    rng = np.random.default_rng(5)
    for model, draw, names, bad in (
        (classifier, labelled, CLASSES, 7),
        (regressor, measured, NUMBERS, np.nan),
    ):
        X, y = draw(rng, 2_000)
        clean = evaluate(model, X, y, names, epsilon=INF)
        X, y = np.vstack([X, np.full((400, 3), np.nan), X[:100]]), np.concatenate([y, y[:400], [bad] * 100])
        spoilt = evaluate(model, X, y, names, epsilon=INF)
        for one, other in zip(clean.estimates, spoilt.estimates, strict=True):
            assert other.value == pytest.approx(one.value, abs=2e-4)


def test_an_account_pays_for_all_metrics_of_a_call_at_once(models, tmp_path):
    classifier, _ = models
    X, y = labelled(np.random.default_rng(6), 500)
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    account = Ledger(url).create("held-out", epsilon=1.0, delta=1e-6)
    found = evaluate(classifier, X, y, CLASSES, epsilon=0.9, delta=1e-7, ledger=f"{url}#held-out")
    assert "held-out" in found.privacy.public["ledger"] and len(list(account.history())) == 3
    assert found.privacy.epsilon <= 0.9 and len(found.privacy.releases) == 5
    with pytest.raises(BudgetExceeded):
        evaluate(classifier, X, y, CLASSES, epsilon=0.9, delta=1e-7, ledger=f"{url}#held-out")
    assert Plan.from_json(found.plan.to_json()) == found.plan


def test_a_metric_that_the_model_does_not_have_is_refused_by_name(models):
    classifier, regressor = models
    X, y = labelled(np.random.default_rng(7), 60)
    svm = LinearSVC(4.0, bounds=Bounds(row_norm=4.0), classes=[-1, 1]).fit(X, y)
    for model, names, said in (
        (classifier, "r2", "r2 needs a target with a declared range"),
        (regressor, "auc", "auc needs two classes"),
        (svm, "log_loss", "log_loss needs probabilities"),
    ):
        with pytest.raises(UnsupportedProblem, match=said):
            evaluate(model, X, y, names, epsilon=1.0)
    for names in ("F1", [], ["auc", "auc"]):
        with pytest.raises(ValueError, match="metric must be one or several of"):
            evaluate(classifier, X, y, names, epsilon=1.0)
    with pytest.raises(ValueError, match="log_loss_cut must be positive"):
        evaluate(classifier, X, y, "log_loss", epsilon=1.0, log_loss_cut=0.0)
    ranges = Bounds(row_norm=4.0, target=(0, 5), offset=(-1, 1))
    counts = dpglm.PoissonRegressor(4.0, bounds=ranges).fit(X, np.ones(60), offset=np.zeros(60))
    with pytest.raises(UnsupportedProblem, match="no offsets"):
        evaluate(counts, X, np.ones(60), "r2", epsilon=1.0)
    with pytest.raises(ValueError, match="y must be given"):
        evaluate(classifier, X, epsilon=1.0)
    assert 0 <= evaluate(svm, X, y, "auc", epsilon=100.0)["auc"].value <= 1


def test_three_classes_and_raw_tables_have_scores():
    rng = np.random.default_rng(8)
    schema = Schema(
        {
            "age": Number(0, 100),
            "job": Category(["clerk", "nurse"]),
            "home": Target(classes=["flat", "house", "tent"]),
        }
    )
    age = rng.uniform(0, 100, 3_000)
    home = np.array(["flat", "house", "tent"])[np.digitize(age, [30, 60])]
    table = {"age": age, "job": rng.choice(["clerk", "nurse", "?"], 3_000), "home": home}
    model = dpglm.make_private_pipeline(schema, LogisticRegression(20.0)).fit(table)
    exact = evaluate(model, table, metric=["accuracy", "log_loss"], epsilon=INF)
    assert exact["accuracy"].value == pytest.approx(model.score(table), abs=1e-9)
    assert exact["log_loss"].value == pytest.approx(log_loss(home, model.predict_proba(table)), abs=1e-3)
    private = evaluate(model, pd.DataFrame(table), metric="accuracy", epsilon=1.0)["accuracy"]
    assert abs(private.value - exact["accuracy"].value) < 0.1
    with pytest.raises(ValueError, match="y must be left out"):
        evaluate(model, table, home, epsilon=1.0)


def test_audits_of_all_metrics_stay_below_the_claim_and_replay_to_the_same_scores():
    budget = Budget(1.0, 0.01)
    targets = {f"{t.case.solver.metric} {t.neighbours} {t.subject}": t for t in evaluation_targets(budget)}
    assert len(targets) == 2 * len(METRICS) + 2
    for name, target in [*targets.items()][::2]:  # each metric once, and a stream
        report = examine(target, 4, 0.999, random_state=1)
        assert not report.violated, name


def test_an_audit_refutes_a_score_that_states_too_little(monkeypatch):
    monkeypatch.setattr(ScoreSums, "sensitivity", lambda *_: 0.5)
    target = TranscriptTarget.of(_case("accuracy"), Budget(1.0, 0.01), Neighbours.REPLACE_ONE)
    assert isinstance(target.plan, EvaluationPlan) and isinstance(target.case.solver, Scored)
    assert examine(target, 120, 0.99, random_state=1).violated
