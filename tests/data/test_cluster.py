"""Fits on a real Dask cluster: the same bits as in memory, whatever happens to the workers."""

import os
import pickle
import re
import signal
import sys
import time
from functools import cache
from threading import Timer

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context
from sklearn.base import clone

from dpglm import (
    Bounds,
    BoundsScaler,
    GLMRegressor,
    LogisticRegression,
    PrivatePath,
    PrivateSearch,
    Ridge,
)
from dpglm.data.cluster import driver
from dpglm.data.cluster import table as collections
from dpglm.data.cluster.driver import ClusterBlocks
from dpglm.data.cluster.table import results
from dpglm.errors import ClusterFailed, PrivacyWarning, SourceChanged, UnsupportedProblem, WorkerDiffers
from dpglm.ledger import Ledger
from dpglm.solvers import (
    CoordinateDescent,
    GradientDescent,
    Newton,
    ObjectivePerturbation,
    PreconditionedDescent,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes:dpglm.errors.PrivacyWarning")

N, P = 1200, 5
NAMES = [f"x{j}" for j in range(P)]
SECRET = 123454321


@pytest.fixture(scope="module")
def cluster():
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["dpglm.estimators", "numba"])  # a new worker starts at once
        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                host="127.0.0.1",
            ) as workers,
            Client(workers, set_as_default=False) as client,
        ):
            yield client


@pytest.fixture
def client(cluster):
    cluster.wait_for_workers(2, timeout=300)
    with cluster.as_current():
        yield cluster


@cache
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    X[::7, 1], X[5, 2], X[6, 0] = 0.0, np.nan, np.inf
    y = np.where(np.nan_to_num(X[:, 0]) + rng.standard_normal(N) > 0, "yes", "no")
    return X, y


def model(solver=None, **options):
    solver = solver or GradientDescent(steps=6)
    return LogisticRegression(
        **{"epsilon": 1.0, "classes": ["no", "yes"], "random_state": 3, "solver": solver} | options
    )


def same(one, other):
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()


@cache
def in_memory():
    return model().fit(*table())


def unknown(X):
    """The same array with chunk sizes that Dask does not know."""
    return X[da.ones(len(X), chunks=X.chunks[0], dtype=bool)]


def frame(pieces):
    X, y = table()
    whole = pd.DataFrame(X, columns=NAMES).assign(label=y)
    return dd.from_pandas(whole, npartitions=pieces, sort=False)


def tables():
    X, y = table()
    for rows, columns in ((N, P), (250, P), (401, 2)):
        yield f"array of {rows} x {columns}", da.from_array(X, (rows, columns)), da.from_array(y, 300)
    yield "array with targets in memory", da.from_array(X, (333, P)), y
    yield "column order", da.from_array(X, (400, P)).map_blocks(np.asfortranarray), y
    yield "unknown chunks", unknown(da.from_array(X, (500, P))), unknown(da.from_array(y, 500))
    yield "sparse", da.from_array(X, (350, P)).map_blocks(sp.csr_array), y
    yield (
        "sparse and declared so",
        da.from_array(X, (350, P)).map_blocks(sp.csr_array, meta=sp.csr_array((0, P))),
        y,
    )
    yield "data frame with a column's name", frame(3), "label"
    yield "data frame with a series", frame(4)[NAMES], frame(4)["label"]
    with_empty = dd.concat([frame(2), frame(2).query("x1 > 1e9")])
    yield "data frame with empty partitions", with_empty, "label"


CASES = [pytest.param(X, y, id=name) for name, X, y in tables()]


@pytest.mark.parametrize(("X", "y"), CASES)
def test_a_cluster_gives_the_coefficients_of_memory_bit_for_bit(client, X, y):
    same(model().fit(X, y), in_memory())


@pytest.mark.parametrize(("X", "y"), [CASES[1], CASES[5], CASES[8]])
def test_without_a_client_blocks_are_read_in_this_process_with_the_same_bits(X, y):
    fitted = model().fit(X, y)
    same(fitted, in_memory())
    assert "trusted" not in fitted.privacy_.public


@pytest.mark.parametrize(
    "options",
    [
        {"solver": GradientDescent(steps=5, batch_size=200)},
        {"solver": ObjectivePerturbation()},
        {"solver": Newton(), "C": np.inf},
        {"epsilon": np.inf, "bounds": Bounds(row_norm=2.0), "solver": GradientDescent(steps=20)},
        {"classes": ["maybe", "no", "yes"]},
        {"classes": ["maybe", "no", "yes"], "solver": PreconditionedDescent(steps=4), "epsilon": 4.0},
        {"classes": ["maybe", "no", "yes"], "multi_class": "ovr"},
        {"fit_intercept": False, "bounds": Bounds(feature=0.5)},
    ],
    ids=[
        "batches",
        "objective perturbation",
        "Newton",
        "no noise",
        "multinomial",
        "multinomial in a metric",
        "one against the rest",
        "other bounds",
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_kind_of_fit_has_the_bits_of_memory(client, options):
    X, y = table()
    same(model(**options).fit(da.from_array(X, (250, P)), y), model(**options).fit(X, y))


@pytest.mark.parametrize(
    "choice",
    [
        PrivatePath(model(GradientDescent(steps=8, batch_size=300)), share=0.1),
        PrivatePath(model(PreconditionedDescent(steps=4)), share=0.1),
        PrivateSearch(model(GradientDescent(steps=3)), {"C": [1e-4, 1.0]}, runs=2),
    ],
    ids=["path of batches", "ridge path", "search"],
)
def test_a_choice_among_models_has_the_bits_of_memory(client, choice):
    X, y = table()
    found = clone(choice).fit(da.from_array(X, (250, P)), da.from_array(y, 250))
    expected = clone(choice).fit(X, y)
    same(found.best_estimator_, expected.best_estimator_)
    assert found.best_params_ == expected.best_params_ and found.plan_ == expected.plan_


def test_a_regression_has_the_bits_of_memory(client):
    X = table()[0].astype(np.float32)
    y = np.clip(np.nan_to_num(X[:, 3]), -1, 1)
    bounds = Bounds(row_norm=2.0, target=(-1.0, 1.0))
    ridge = Ridge(epsilon=1.0, bounds=bounds, random_state=1, solver=GradientDescent(steps=4))
    expected = ridge.fit(X, y).coef_.tobytes()
    assert ridge.fit(da.from_array(X, (250, P)), da.from_array(y, 250)).coef_.tobytes() == expected


def test_one_worker_gives_the_same_bits(client, monkeypatch):
    X, y = table()
    one = next(iter(client.nthreads()))
    compute = client.compute
    monkeypatch.setattr(client, "compute", lambda tasks: compute(tasks, workers=[one]))
    same(model().fit(da.from_array(X, (250, P)), y), in_memory())


def before_pass(monkeypatch, number, action):
    """Do something before pass ``number`` of a fit; a list that grows with each pass."""
    passes, answer = [], ClusterBlocks.answer

    def interrupted(self, order):
        passes.append(order)
        if len(passes) == number:
            action()
        return answer(self, order)

    monkeypatch.setattr(ClusterBlocks, "answer", interrupted)
    return passes


def kill_one(client):
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


def test_a_killed_worker_changes_no_bit(client, monkeypatch):
    X, y = table()
    passes = before_pass(monkeypatch, 4, lambda: kill_one(client))
    same(model().fit(da.from_array(X, (150, P)), y), in_memory())
    assert len(passes) == 1 + 9


def unseeded(block):
    return np.random.default_rng().standard_normal(block.shape)


def test_a_source_that_changes_is_refused(client, monkeypatch):
    before_pass(monkeypatch, 3, lambda: kill_one(client))
    X = da.zeros((N, P), chunks=(150, P)).map_blocks(unseeded)
    with pytest.raises(SourceChanged) as caught:
        model().fit(X, table()[1])
    sentence = "the source gave other records than before: every pass must read the same table"
    assert str(caught.value) == sentence


def spoil(address, dask_worker):
    """Change the last digit of every slope on one worker."""
    from dpglm.data import records

    if dask_worker.address == address:
        records.exact_slopes = records._slopes
        records._slopes = lambda *given: np.nextafter(records.exact_slopes(*given), 9)


def mend():
    from dpglm.data import records

    records._slopes = getattr(records, "exact_slopes", records._slopes)


@pytest.mark.parametrize("asked_first", [True, False])
def test_a_worker_that_rounds_otherwise_is_refused_before_a_record_is_read(
    client, monkeypatch, tmp_path, asked_first
):
    X, y = table()
    if not asked_first:  # a worker that comes later is asked when it gets its first block
        monkeypatch.setattr(ClusterBlocks, "_require_agreement", lambda self: None)
    client.run(spoil, max(client.nthreads()))
    try:
        with pytest.raises(WorkerDiffers, match=r"computes other numbers than this process: it has dpglm"):
            model().fit(da.from_array(X, (250, P)).map_blocks(noted, str(tmp_path), dtype=float), y)
    finally:
        client.run(mend)
    assert not asked_first or not list(tmp_path.iterdir())


def noted(block, folder):
    if len(block):
        open(os.path.join(folder, "read"), "w").close()
    return block


def quoting(block):
    if len(block):
        raise ValueError(f"cannot read {SECRET}")
    return block


def too_wide(block):
    return np.hstack([block, np.full((len(block), 1), float(SECRET))])


@pytest.mark.parametrize("broken", [quoting, too_wide])
@pytest.mark.parametrize("on_cluster", [True, False])
def test_no_error_quotes_a_record(request, broken, on_cluster):
    if on_cluster:
        request.getfixturevalue("client")
    X, y = table()
    made = da.from_array(X, (400, P)).map_blocks(broken, dtype=float, chunks=((400, 400, 400), (P,)))
    with pytest.raises((ClusterFailed, ValueError)) as caught:
        model().fit(made, y)
    seen = caught.value
    assert str(SECRET) not in str(seen)
    assert on_cluster is False or isinstance(seen, ClusterFailed)
    assert seen.__cause__ is None
    assert seen.__context__ is None


def test_names_of_tasks_and_texts_of_their_arguments_say_nothing(client, monkeypatch):
    X, y = table()
    passes = before_pass(monkeypatch, 0, None)
    model(GradientDescent(steps=3, batch_size=600)).fit(da.from_array(X, (250, P), name="given"), y)
    names = {str(name) for name in client.run_on_scheduler(names_of_tasks)}
    ours = {name for name in names if "dpglm" in name}
    assert len(ours) > 5
    assert all(re.fullmatch(r"dpglm-[0-9a-f]{32}", name) for name in ours)
    assert {repr(order) for order in passes} == {"<Reading>", "<Pass>"}


def names_of_tasks(dask_scheduler):
    return [entry[0] for entry in dask_scheduler.transition_log]


def test_nothing_as_large_as_a_block_comes_back(client, monkeypatch):
    X, y = table()
    sizes = []

    def weighed(*arguments):
        found = results(*arguments)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(driver, "results", weighed)
    model().fit(da.from_array(X, (N // 2, P)), y)
    assert len(sizes) == 2 + 9
    assert max(sizes) < X.nbytes / 20


def test_an_interrupt_leaves_nothing_on_the_cluster(client, monkeypatch):
    X, y = table()
    before = our_tasks(client)  # those of earlier tests, as long as a traceback holds them

    def interrupt():
        monkeypatch.setattr(driver, "results", interrupted)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    before_pass(monkeypatch, 3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model().fit(da.from_array(X, (250, P)), y)
    deadline = time.monotonic() + 300  # for a machine with much else to do; nothing is left at once
    while our_tasks(client) - before:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def our_tasks(client):
    return {name for name in client.run_on_scheduler(present_tasks) if "dpglm" in name}


def present_tasks(dask_scheduler):
    return [str(name) for name in dask_scheduler.tasks]


def test_the_promise_names_who_is_trusted(client):
    X, y = table()
    fitted = model().fit(da.from_array(X, (600, P)), y)
    assert fitted.privacy_.public["trusted"].startswith("scheduler and workers of the Dask cluster")
    assert "trusted" not in in_memory().privacy_.public


def test_a_solver_that_needs_more_than_passes_is_refused_by_name(client):
    X, y = table()
    with pytest.raises(UnsupportedProblem, match=r"^CoordinateDescent needs .* DaskTable offers passes only"):
        model(CoordinateDescent(), bounds=Bounds(feature=1.0)).fit(da.from_array(X, (600, P)), y)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_predictions_are_lazy_and_the_same(method, kind):
    X = np.nan_to_num(table()[0], posinf=0.0)
    given = da.from_array(X, (500, 2))
    if kind == "frame":
        given = dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=3)
    fitted = model().fit(pd.DataFrame(X, columns=NAMES) if kind == "frame" else X, table()[1])
    lazy = getattr(fitted, method)(given)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), getattr(fitted, method)(given.compute()))


def test_scores_and_scaled_tables_are_those_of_memory():
    X, y = np.nan_to_num(table()[0], posinf=0.0), table()[1]
    fitted = model().fit(pd.DataFrame(X, columns=NAMES), y)
    given = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(label=y), npartitions=3)
    expected = fitted.score(pd.DataFrame(X, columns=NAMES), y)
    assert fitted.score(given, "label") == fitted.score(given[NAMES], given["label"]) == expected
    lazy = BoundsScaler(low=-2, high=2).fit_transform(da.from_array(X, (500, 2)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), BoundsScaler(low=-2, high=2).fit_transform(X))
    with pytest.warns(PrivacyWarning, match="no range of targets"):
        regressor = GLMRegressor(random_state=0).fit(X, X[:, 0])
    assert regressor.score(da.from_array(X, (500, P)), da.from_array(X[:, 0], 300)) == regressor.score(
        X, X[:, 0]
    )


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (da.zeros((6, 2), chunks=3), None, "y must be given"),
        (da.zeros((6, 2), chunks=3), "label", "X is a Dask array, which has no names"),
        (da.zeros((6, 2), chunks=3), np.zeros(5), "y must have as many entries as X has rows, which are 6"),
        (da.zeros((6, 2), chunks=3), da.zeros(7), "y must have as many entries as X has rows, which are 6"),
        (da.zeros(6, chunks=3), da.zeros(6), "X must be a Dask array of two dimensions or a Dask data frame"),
        (frame(2), "labels", "y is 'labels', which is not the name of a column of X"),
        (frame(2)[NAMES], frame(3)["label"], "y must have the chunks of X: it has 3, X has 2"),
        (frame(2), "x1", "column 'label' of X must be numeric"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_words(X, y, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        GLMRegressor(bounds=Bounds(row_norm=1.0, target=(0, 1)), solver="gradient-descent").fit(X, y)


@pytest.fixture(scope="module")
def no_worker():
    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("X", [da.zeros((6, 2), chunks=3), frame(2)], ids=["array", "data frame"])
def test_a_cluster_without_a_worker_is_given_up_in_words_and_costs_nothing(no_worker, X, tmp_path):
    account = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").create("a", epsilon=5.0, delta=1e-3)
    fitted = model(random_state=None, ledger=str(account.address))
    began = time.monotonic()
    y, words = (
        np.array(["no"] * 6) if isinstance(X, da.Array) else "label",
        r"^no worker .* for 0.4 s: start workers",
    )
    with (
        dask.config.set({"dpglm.cluster.timeout": "400 ms"}),
        no_worker.as_current(),
        pytest.raises(ClusterFailed, match=words),
    ):
        fitted.fit(X, y)
    assert time.monotonic() - began < 60
    assert len(account.history()) == 1
    assert not our_tasks(no_worker)


def small_cluster():
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )  # fmt: skip


def test_new_workers_take_over_when_all_were_lost_at_once(monkeypatch):
    X, y = table()
    submit, submitted = ClusterBlocks._submit, []

    def replaced(self, *arguments, **options):
        submitted.append(1)
        if len(submitted) == 1:  # a task for a worker that is lost, while there is no other one
            workers.scale(0)
            wait_until_none(client)
            Timer(0.5, workers.scale, [2]).start()
        return submit(self, *arguments, **options)

    monkeypatch.setattr(ClusterBlocks, "_submit", replaced)
    with small_cluster() as workers, Client(workers, set_as_default=False) as client, client.as_current():
        same(model().fit(da.from_array(X, (250, P)), y), in_memory())


def test_the_loss_of_all_workers_ends_a_fit_with_one_line_of_progress(monkeypatch, capsys):
    monkeypatch.setattr(collections, "_SILENCE", 0.3)
    X, y = table()
    with (
        small_cluster() as workers,
        Client(workers, set_as_default=False) as client,
        client.as_current(),
        dask.config.set({"dpglm.cluster.timeout": "1 s"}),
    ):
        passes = before_pass(monkeypatch, 4, lambda: workers.scale(0) or wait_until_none(client))
        with pytest.raises(ClusterFailed, match="^no worker of the Dask cluster computed anything for 1 s"):
            model(verbose=1).fit(da.from_array(X, (250, P)), y)
    assert len(passes) == 4
    said = [line for line in capsys.readouterr().err.splitlines() if "no worker" in line]
    assert said and all(
        re.fullmatch(r"gradient descent: Dask cluster: no worker for \d s", line) for line in said
    )


def wait_until_none(client):
    while client.nthreads():
        time.sleep(0.05)


def test_a_cluster_that_works_for_longer_than_the_limit_is_not_given_up(client):
    X, y = table()
    slow = da.from_array(X, (N // 2, P)).map_blocks(rested, dtype=float)
    with dask.config.set({"dpglm.cluster.timeout": "300 ms"}):
        same(model().fit(slow, y), in_memory())


def rested(block):
    time.sleep(1.0)
    return block
