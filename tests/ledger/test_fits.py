"""Fits pay from an account, wherever and however they run."""

import json
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from dpglm import (
    Bounds,
    BoundsScaler,
    ElasticNet,
    GLMClassifier,
    GLMRegressor,
    Lasso,
    Ledger,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    Ridge,
    Schema,
    Stream,
    make_private_pipeline,
)
from dpglm.errors import BudgetExceeded, LedgerError, PrivacyWarning, SourceChanged
from dpglm.ledger import VARIABLE, current_account
from dpglm.solvers import GradientDescent, Newton

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 3))
Y = np.where(X[:, 0] > 0, 1, -1)
QUICK = GradientDescent(steps=3)


@pytest.fixture(autouse=True)
def no_default(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def account(tmp_path):
    return Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=2.0, delta=1e-6)


def model(account=None, epsilon=0.3, **settings):
    settings = {"solver": QUICK, "delta": 1e-7, "classes": [-1, 1], **settings}
    return LogisticRegression(epsilon=epsilon, ledger=account and str(account.address), **settings)


def reservations(account):
    account.verify()
    return [entry for entry in account.history() if entry.kind == "reservation"]


def test_a_fit_is_charged_what_its_plan_costs_and_says_so(account):
    fitted = model(account).fit(X, Y)
    (entry,) = reservations(account)
    assert entry.content["plan"] == json.loads(json.dumps(fitted.plan_.to_dict()))
    assert [entry.kind for entry in account.history()] == ["opening", "reservation", "commitment"]
    assert fitted.privacy_.public["ledger"] == f"account a, entry 1, hash {entry.hash}"
    assert str(account.address.path) not in fitted.privacy_.to_json()


CLASSIFIERS = [LogisticRegression, LinearSVC, GLMClassifier]
REGRESSORS = [LinearRegression, Ridge, Lasso, ElasticNet, LinearSVR, GLMRegressor]


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_every_estimator_pays(account, kind):
    settings = (
        {"classes": [-1, 1]} if kind in CLASSIFIERS else {"bounds": Bounds(row_norm=2.0, target=(-1, 1))}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind(epsilon=0.3, delta=1e-7, ledger=str(account.address), **settings).fit(X, Y)
    assert len(reservations(account)) == 1


def test_a_fit_that_cannot_be_paid_for_reads_nothing(account):
    account.enter("most of it", mu=0.999 * account.remaining().mu)
    reads = []

    def blocks():
        reads.append(1)
        yield X, Y

    stream = Stream(blocks, n_samples=300, n_features=3)
    with pytest.raises(BudgetExceeded) as info:
        model(account).fit(stream)
    assert reads == [] and reservations(account) == []
    small = model(account, epsilon=info.value.epsilon).fit(stream)
    assert reads and len(reservations(account)) == 1
    assert small.coef_.shape == (1, 3)


def test_a_fit_that_fails_after_it_was_reserved_stays_spent(account):
    reads = []

    def blocks():
        reads.append(1)
        yield X, Y
        if len(reads) == 3:  # after the first reading and the look at what follows it
            raise OSError("the disk is gone")

    with pytest.raises(SourceChanged):
        model(account).fit(Stream(blocks, n_samples=300, n_features=3))
    assert [entry.kind for entry in account.history()] == ["opening", "reservation"]
    assert account.state().spent().mu > 0


def test_a_solver_that_cannot_serve_is_refused_before_anything_is_charged(account):
    with pytest.raises(ValueError):
        model(account, solver=Newton(), penalty="l1").fit(X, Y)
    assert reservations(account) == []


def test_several_classes_are_one_charge(account):
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    for settings, fits in (({"multi_class": "ovr"}, 3), ({}, 1)):
        fitted = model(account, classes=[0, 1, 2], **settings).fit(X, labels)
        entry = reservations(account)[-1]
        assert entry.content["plan"]["fits"] == fits and len(fitted.coef_) == 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": float("inf")}, "without noise"),
        ({"random_state": 0}, "random_state makes the noise predictable"),
        ({"neighbours": "zero-out"}, "replace-one neighbours and the fit for zero-out"),
    ],
)
def test_fits_that_an_account_refuses(account, settings, words):
    with pytest.raises(LedgerError, match=words):
        model(account, **settings).fit(X, Y)
    assert len(account.history()) == 1


@pytest.mark.parametrize(
    "ledger", ["sqlite:///nowhere.db#a", "sqlite:///nowhere.db", "postgresql://me:secret@h/d#a", 3, ""]
)
def test_a_ledger_that_cannot_be_used_refuses_the_fit(ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError):
        model(None).set_params(ledger=ledger).fit(X, Y)
    assert list(tmp_path.iterdir()) == []


def test_a_block_is_the_default_and_ends(account, tmp_path):
    other = Ledger(f"sqlite:///{tmp_path}/budget.db").create("b", epsilon=2.0, delta=1e-6)
    with account as entered:
        assert entered is account
        model().fit(X, Y)
        with other:
            model().fit(X, Y)
            model(account).fit(X, Y)
        model().fit(X, Y)
    model().fit(X, Y)
    assert len(reservations(account)) == 3 and len(reservations(other)) == 1
    assert current_account() is None


def test_a_block_whose_fit_fails_ends_too(account):
    with pytest.raises(RuntimeError), account:
        raise RuntimeError
    assert current_account() is None


def test_two_threads_cannot_have_different_defaults(account, tmp_path):
    other = Ledger(f"sqlite:///{tmp_path}/budget.db").create("b", epsilon=2.0, delta=1e-6)
    found = []

    def enter():
        try:
            with other:
                found.append("entered")
        except LedgerError as error:
            found.append(str(error))

    with account:
        joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(enter)() for _ in range(1))
        import threading

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert "another thread" in found[-1]


def test_the_environment_is_the_default(account, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(account.address))
    fitted = model().fit(X, Y)
    assert len(reservations(account)) == 1
    assert fitted.ledger is None and "budget.db" not in repr(vars(fitted))
    monkeypatch.setenv(VARIABLE, "sqlite:///nowhere.db#a")
    with pytest.raises(LedgerError):
        model().fit(X, Y)


def test_clones_and_pickles_pay_from_the_same_account(account):
    named = model(account)
    for copy in (clone(named), pickle.loads(pickle.dumps(named)), clone(pickle.loads(pickle.dumps(named)))):
        copy.fit(X, Y)
    with account:
        sent = pickle.dumps(model())
        cloned = clone(model())
    pickle.loads(sent).fit(X, Y)
    clone(pickle.loads(sent)).fit(X, Y)
    clone(cloned).fit(X, Y)
    assert len(reservations(account)) == 6


def test_a_fresh_process_inherits_the_block(account):
    program = (
        "import numpy as np\nfrom dpglm import LogisticRegression\n"
        "from dpglm.solvers import GradientDescent\n"
        "x = np.ones((50, 2)); y = np.repeat([-1, 1], 25)\n"
        "solver = GradientDescent(steps=2)\n"
        "LogisticRegression(epsilon=0.1, delta=1e-7, classes=[-1, 1], solver=solver).fit(x, y)"
    )
    with account:
        subprocess.run([sys.executable, "-c", program], check=True)
    assert len(reservations(account)) == 1


def test_workers_that_were_there_before_the_block_pay_too(account):
    def fit(estimator):
        return estimator.fit(X, Y).coef_

    with joblib.parallel_config("loky", n_jobs=2):
        joblib.Parallel()(joblib.delayed(len)("ab") for _ in range(2))  # starts the workers
        with account:
            joblib.Parallel()(joblib.delayed(fit)(model()) for _ in range(3))
    assert len(reservations(account)) == 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validation_charges_every_fit(account, n_jobs):
    cross_val_score(model(account), X, Y, cv=3, n_jobs=n_jobs)
    assert len(reservations(account)) == 3


def test_grid_search_stops_at_the_budget(account):
    pipeline = make_pipeline(BoundsScaler(low=-1.0, high=1.0), model(account, epsilon=0.8))
    grid = {"logisticregression__C": [0.1, 1.0, 10.0, 100.0]}
    with pytest.raises(BudgetExceeded):
        GridSearchCV(pipeline, grid, cv=4, error_score="raise").fit(X, Y)
    made = len(reservations(account))
    assert 0 < made < 16
    # by default scikit-learn goes on after an error, but no fit gets through, and then it raises
    with pytest.raises(ValueError, match="All the 16 fits failed"):
        GridSearchCV(pipeline, grid, cv=4).fit(X, Y)
    assert len(reservations(account)) == made


def test_a_search_that_runs_out_half_way_has_no_model(account):
    with (
        pytest.warns(FitFailedWarning),
        pytest.warns(UserWarning, match="non-finite"),
        pytest.raises(BudgetExceeded),
    ):
        GridSearchCV(model(account, epsilon=0.8), {"C": [0.1, 1.0, 10.0]}, cv=3).fit(X, Y)
    assert 0 < len(reservations(account)) < 9


def test_a_search_within_the_budget_charges_fits_and_refit(account):
    search = GridSearchCV(model(account, epsilon=0.1), {"C": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert len(reservations(account)) == 5
    assert "ledger" in search.best_estimator_.privacy_.public


def test_a_cluster_is_charged_once_by_the_driver(account):
    dask = pytest.importorskip("dask.array")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(account).fit(dask.from_array(X, chunks=(100, 3)), dask.from_array(Y, chunks=100))
    assert len(reservations(account)) == 1


def test_parts_are_charged_by_their_address(account):
    north, south = account.parts("clinic, from the public register", ["north", "south"])
    for part in (north, south):
        model(part, epsilon=1.6).fit(X, Y)
    assert {entry.part for entry in reservations(account)} == {"north", "south"}
    with pytest.raises(BudgetExceeded):
        model(north, epsilon=1.6).fit(X, Y)


def test_a_commitment_that_fails_leaves_model_and_charge(account, monkeypatch):
    from dpglm.ledger import Account

    def fails(self, entry):
        raise LedgerError("the server is gone")

    monkeypatch.setattr(Account, "commit", fails)
    with pytest.warns(PrivacyWarning, match="is paid for, but the ledger could not note"):
        fitted = model(account).fit(X, Y)
    assert fitted.coef_.shape == (1, 3) and len(reservations(account)) == 1


def test_an_audit_charges_no_account(account, monkeypatch):
    from dpglm.audit import audit

    monkeypatch.setenv(VARIABLE, str(account.address))
    audit(
        LogisticRegression(epsilon=1.0, classes=[-1, 1], solver=QUICK, ledger=str(account.address)), runs=10
    )
    assert len(account.history()) == 1


def test_without_sqlalchemy_the_extra_is_named(account, monkeypatch):
    monkeypatch.setitem(sys.modules, "dpglm.ledger.storage", None)
    with pytest.raises(LedgerError, match=r"pip install 'dpglm\[ledger\]'"):
        model(account).fit(X, Y)


LEARNT = """
[columns]
age = { type = "number", low = 0, high = 100 }
job = { type = "category", learn = true, most = 4 }
sick = { type = "target", classes = ["no", "yes"] }
"""


def learnt(epsilon, delta, address, relation="replace-one"):
    jobs = np.random.default_rng(0).choice(["clerk", "nurse"], 2_000)
    table = {"age": np.linspace(1, 99, 2_000), "job": jobs, "sick": np.where(jobs == "nurse", "yes", "no")}
    model = LogisticRegression(epsilon, delta=delta, solver=QUICK, ledger=address, neighbours=relation)
    return make_private_pipeline(Schema.from_toml(LEARNT), model).fit(table)


@pytest.mark.parametrize("relation", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("delta", [1e-5, 3e-5, 1e-4, 1e-3])
def test_an_untouched_account_pays_for_a_fit_that_learns_levels(tmp_path, relation, delta):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=5.0, delta=delta, neighbours=relation)
    for epsilon in (1.0, 0.1):
        learnt(epsilon, 1e-5, str(account.address), relation)
    assert len(reservations(account)) == 2


def test_a_refusal_for_want_of_delta_names_delta(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=5.0, delta=1e-9)
    with pytest.raises(BudgetExceeded, match=r"delta is what lacks.*smaller delta.*larger one"):
        learnt(1.0, 1e-2, str(account.address))
    assert len(account.history()) == 1
    learnt(1.0, 1e-9, str(account.address))
