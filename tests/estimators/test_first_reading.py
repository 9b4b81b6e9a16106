"""A source is read once before an account is charged: a mistake in it costs nothing."""

import itertools

import dask.array as da
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from dpglm import (
    Bounds,
    LogisticRegression,
    PrivatePath,
    PrivateSearch,
    Ridge,
    Stream,
    evaluate,
    make_private_pipeline,
)
from dpglm.errors import BudgetExceeded, ClusterFailed, SourceChanged
from dpglm.ledger import Ledger
from dpglm.schema import Category, Number, Schema, Target
from dpglm.solvers import GradientDescent

N, P = 300, 4
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, P))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
NOT_AS_STATED = "gave more or fewer records than it states"


@pytest.fixture
def account(tmp_path):
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").create("a", epsilon=10.0, delta=1e-3)


def classifier(account, **changes):
    settings = {"classes": [0, 1], "solver": GradientDescent(steps=3), "ledger": str(account.address)}
    return LogisticRegression(1.0, **settings | changes)


def pairs(*blocks):
    return lambda: iter([(rows, Y[: len(rows)]) for rows in blocks])


def fails():
    yield X[:100], Y[:100]
    raise RuntimeError("secret")


class Rude:
    def _raise(self, *_, **__):
        raise RuntimeError("secret")

    __len__ = __array__ = __iter__ = _raise


def once(*blocks):
    """Readers as ``read`` of one generator; the second wraps it anew each time."""
    made, other = iter(blocks), iter(blocks)
    return lambda: made, lambda: map(lambda block: block, other)


def streams():
    """Readers with a mistake, made anew; what each raises, and its words."""
    one, inside = once((X, Y))
    return {
        "reads nothing": (lambda: None, SourceChanged, "could not be read"),
        "reader fails": (fails, SourceChanged, "could not be read"),
        "targets that raise": (lambda: [(X, Rude())], SourceChanged, "could not be read"),
        "rows that raise": (lambda: [(Rude(), Y)], SourceChanged, "could not be read"),
        "endless": (lambda: itertools.repeat((X, Y)), SourceChanged, NOT_AS_STATED),
        "scalar blocks": (lambda: [1, 2], ValueError, "two dimensions"),
        "wider block": (pairs(X[:200], np.ones((100, 8))), ValueError, "a block has 8 features"),
        "fewer rows": (pairs(X[:-1]), SourceChanged, NOT_AS_STATED),
        "more rows": (pairs(X, X[:1]), SourceChanged, NOT_AS_STATED),
        "no rows": (lambda: [], SourceChanged, NOT_AS_STATED),
        "one generator": (one, SourceChanged, "gave no records when it was read again"),
        "one generator inside": (inside, SourceChanged, "gave no records when it was read again"),
        "no targets": (lambda: [X], ValueError, "have no targets"),
        "targets in the first block only": (lambda: [(X[:9], Y[:9]), X[9:]], ValueError, "have no targets"),
        "fewer targets": (lambda: [(X, Y[:-1])], ValueError, "inconsistent numbers of samples"),
        "text": (lambda: [(X.astype(str), Y)], ValueError, "X must be numeric, its type is str"),
        "text in a later block": (pairs(X[:9], X[9:].astype(str)), ValueError, "X must be numeric"),
        "labels of another kind": (lambda: [(X, Y.astype(str))], ValueError, "classes"),
        "targets of two columns": (lambda: [(X, X[:, :2])], ValueError, "y should be a 1d array"),
    }  # fmt: skip


MISTAKES = list(streams())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_stream_costs_nothing(mistake, account):
    read, kind, words = streams()[mistake]
    with pytest.raises(kind, match=words) as caught:
        classifier(account).fit(Stream(read, N, P))
    assert "before" not in str(caught.value).replace("counted before", "")
    assert len(account.history()) == 1


RELATIONS = {
    "zero-out": {"neighbours": "zero-out"},
    "add-remove": {"neighbours": "add-remove", "delta": 1e-5},
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_stream_costs_nothing_whatever_the_relation(mistake, relation, tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    account = ledger.create("a", epsilon=10.0, delta=1e-3, neighbours=relation)
    read, kind, words = streams()[mistake]
    with pytest.raises(kind, match=words):
        classifier(account, **RELATIONS[relation]).fit(Stream(read, N, P))
    assert len(account.history()) == 1


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"read": 5}, "read must be a function that returns a fresh iterator .* got int"),
        ({"read": [X]}, "read must be a function .* got list"),
        ({"n_samples": X}, "n_samples must be a whole number, got ndarray"),
        ({"n_samples": -1}, "n_samples must be a whole number from 0 on, got -1"),
        ({"n_features": 0}, "n_features must be a whole number from 1 on"),
        ({"n_units": 2.5}, "n_units must be a whole number"),
        ({"feature_names": ["a", "b"]}, "feature_names must be a list of 4 names"),
        ({"feature_names": "abcd"}, "feature_names must be a list of 4 names"),
    ],
)
def test_a_stream_checks_its_arguments(changes, words):
    with pytest.raises(ValueError, match=words):
        Stream(**{"read": pairs(X), "n_samples": N, "n_features": P} | changes)


@pytest.mark.parametrize("mistake", ["wider block", "fewer rows", "one generator", "labels of another kind"])
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda model: PrivatePath(model),
        lambda model: PrivateSearch(model, {"C": [0.1, 1.0]}, runs=3),
        lambda model: model.set_params(class_weight="balanced"),
        lambda model: model.set_params(classes=[0, 1, 2]),
        lambda model: model.set_params(classes=[0, 1, 2], multi_class="ovr"),
    ],
    ids=["path", "search", "balanced", "multinomial", "one against the rest"],
)
def test_a_choice_and_class_weights_read_the_source_first(mistake, wrapped, account):
    read, kind, words = streams()[mistake]
    with pytest.raises(kind, match=words):
        wrapped(classifier(account, solver="auto")).fit(Stream(read, N, P))
    assert len(account.history()) == 1


def test_a_mistake_in_a_stream_costs_no_evaluation(account):
    model = LogisticRegression(1.0, classes=[0, 1]).fit(X, Y)
    for mistake, (read, kind, words) in streams().items():
        with pytest.raises(kind, match=words):
            evaluate(model, Stream(read, N, P), epsilon=1.0, ledger=str(account.address))
        assert len(account.history()) == 1, mistake
    evaluate(model, Stream(pairs(X), N, P), epsilon=1.0, ledger=str(account.address))
    assert len(account.history()) > 1


def test_a_mistake_in_weights_offsets_and_units_costs_nothing(account, tmp_path):
    weighted = {"bounds": Bounds(row_norm=1.0, weight=2.0)}
    with pytest.raises(ValueError):
        classifier(account, **weighted).fit(Stream(pairs(X), N, P), None, np.ones(N - 1))
    with pytest.raises(ValueError, match="have no targets"):
        classifier(account, **weighted).fit(Stream(lambda: [X], N, P), None, np.ones(N))
    assert len(account.history()) == 1
    of_persons = Ledger(f"sqlite:///{tmp_path / 'p.db'}").create("p", epsilon=10.0, delta=1e-3, unit="person")
    ids = np.arange(N) // 3
    for read, stated in ((pairs(X), N // 3 + 1), (pairs(X[:-1]), N // 3), (pairs(X[::-1][:, :3]), N // 3)):
        with pytest.raises((SourceChanged, ValueError)):
            classifier(of_persons).fit(Stream(read, N, P, n_units=stated), None, units=ids)
    with pytest.raises(SourceChanged, match="must be sorted"):
        classifier(of_persons).fit(Stream(pairs(X), N, P, n_units=N // 3), None, units=ids[::-1])
    assert len(of_persons.history()) == 1
    classifier(of_persons).fit(Stream(pairs(X), N, P, n_units=N // 3), None, units=ids)
    assert len(of_persons.history()) == 3


def quoting(block, block_info=None):
    if len(block) and block_info[0]["chunk-location"][0]:
        raise ValueError("secret")
    return block


def dask_tables():
    A, b = da.from_array(X, (100, P)), da.from_array(Y, 100)
    yield "array of text", A.astype("U5"), b, ValueError, "X must be numeric, its type is str"
    yield "labels of text", A, b.astype("U5"), ValueError, "classes"
    yield "a block that raises", A.map_blocks(quoting, dtype=float), b, ClusterFailed, "could not be read"
    wider = A.map_blocks(lambda block: np.ones((100, 5)), dtype=float, chunks=((100,) * 3, (P,)))
    yield "another width", wider, b, ValueError, "a block has 5 features, the source states 4"
    shorter = A.map_blocks(lambda block: block[:7], dtype=float, chunks=((100,) * 3, (P,)))
    yield "fewer rows", shorter, b, ValueError, "inconsistent numbers"
    rows = dd.from_pandas(FRAME, npartitions=3)
    yield "column of text", rows.assign(a="x"), "y", ValueError, "column 'a' of X must be numeric"
    bad = rows.map_partitions(lambda part: part.rename(columns={"y": "z"}), meta=FRAME)
    yield "another column", bad, "y", (ClusterFailed, KeyError, ValueError), "."


@pytest.mark.parametrize("case", list(dask_tables()), ids=lambda case: case[0])
def test_a_mistake_in_a_dask_collection_costs_nothing(case, account):
    _, rows, targets, kind, words = case
    with pytest.raises(kind, match=words):
        classifier(account).fit(rows, targets)
    assert len(account.history()) == 1


def other_tables(folder):
    pq.write_table(pa.Table.from_pandas(FRAME), folder / "0.parquet")
    pq.write_table(pa.Table.from_pandas(FRAME.drop(columns="a")), folder / "1.parquet")
    (folder / "2.parquet").write_bytes((folder / "0.parquet").read_bytes())
    table = pads.dataset([folder / "0.parquet", folder / "2.parquet"])
    (folder / "2.parquet").write_bytes(b"PAR1")
    yield table
    yield pl.LazyFrame({"a": ["1", "secret"], "y": [0, 1]}).with_columns(pl.col("a").cast(pl.Float64))
    yield duckdb.sql("select ('secret' || range)::double as a, range % 2 as y from range(10)")


def test_an_engine_that_fails_costs_nothing(account, tmp_path):
    for table in other_tables(tmp_path):
        with pytest.raises(SourceChanged, match="could not be read"):
            classifier(account).fit(table, "y")
    assert len(account.history()) == 1


COLUMNS = {"a": Number(-1, 1), "y": Target(classes=["0", "1"]), "k": Category(["u", "v"])}
LEARNT = {**COLUMNS, "k": Category(learn=True, most=3)}
RAW = pd.DataFrame({"a": X[:, 0], "y": Y.astype(str), "k": np.where(X[:, 1] > 0, "u", "v")})
RAW_STREAMS = {
    "another column": (lambda: [RAW.rename(columns={"a": "z"})], ValueError, "a"),
    "another column later": (lambda: [RAW[:9], RAW[9:].drop(columns="y")], ValueError, "y"),
    "fewer rows": (lambda: [RAW[:-1]], SourceChanged, NOT_AS_STATED),
    "one generator": (None, SourceChanged, "gave no records when it was read again"),
    "pairs": (lambda: [(RAW, Y)], ValueError, "come with targets"),
    "arrays": (lambda: [X], ValueError, "frame"),
    "endless": (lambda: itertools.repeat(RAW), SourceChanged, NOT_AS_STATED),
    "fails": (lambda: map(len, [5]), SourceChanged, "could not be read"),
}


@pytest.mark.parametrize("columns", [COLUMNS, LEARNT], ids=["declared", "learnt"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mistake", RAW_STREAMS)
def test_a_mistake_in_a_raw_stream_costs_nothing(mistake, columns, relation, tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    account = ledger.create("a", epsilon=10.0, delta=1e-2, neighbours=relation)
    read, kind, words = RAW_STREAMS[mistake]
    if mistake == "one generator":
        read, _ = once(RAW)
    model = classifier(account, classes=None, neighbours=relation, delta=1e-4)
    with pytest.raises(kind, match=words):
        make_private_pipeline(Schema(columns), model).fit(Stream(read, N, 3))
    assert len(account.history()) == 1


@pytest.mark.parametrize("columns", [COLUMNS, LEARNT], ids=["declared", "learnt"])
def test_a_block_of_empty_columns_adds_no_record(columns):
    blocks = [{name: RAW[name].tolist()[part] for name in RAW} for part in (slice(0), slice(None))]
    model = LogisticRegression(1.0, solver=GradientDescent(steps=3), delta=1e-4)
    fitted = make_private_pipeline(Schema(columns), model).fit(Stream(lambda: blocks, N, 3))
    assert np.isfinite(fitted.estimator_.coef_).all()


def test_a_fit_reads_a_stream_once_more_than_its_plan_states():
    passes = []

    def read():
        for k, block in enumerate(((X[:200], Y[:200]), (X[200:], Y[200:]))):
            passes.append(k)
            yield block

    model = LogisticRegression(1.0, classes=[0, 1], solver=GradientDescent(steps=7)).fit(Stream(read, N, P))
    assert passes.count(1) in (model.plan_.passes.most + 1, model.plan_.passes.most + 2)  # read ahead
    assert passes.count(0) == model.plan_.passes.most + 2  # and the first block, to see that it is there


def test_an_account_that_cannot_pay_reads_nothing(account):
    def read():
        raise AssertionError("was read")

    with pytest.raises(BudgetExceeded):
        classifier(account).set_params(epsilon=500.0).fit(Stream(read, N, P))
    model = Ridge(
        1.0, bounds=Bounds(row_norm=1.0, target=(-1, 1)), ledger=str(account.address), random_state=0
    )
    with pytest.warns(match="random_state"), pytest.raises(ValueError, match="random_state"):
        model.fit(Stream(read, N, P))
