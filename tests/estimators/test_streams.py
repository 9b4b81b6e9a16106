"""Fits and predictions of tables that are read block by block are those of the same table in memory."""

import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from dpglm import Bounds, BoundsScaler, LinearSVC, LogisticRegression, PoissonRegressor, Ridge, Stream
from dpglm.data import stream
from dpglm.errors import SourceChanged, UnsupportedProblem
from dpglm.solvers import CoordinateDescent, GradientDescent, ObjectivePerturbation

N, P = 400, 3
RNG = np.random.default_rng(2)
X = RNG.uniform(-1, 1, (N, P))
X[5, 1], X[17, 0] = np.nan, np.inf
LABELS = np.where(X[:, 0] > 0, "yes", "no").astype(object)
LABELS[9] = None
TARGET = 0.5 * X[:, 1] + 0.1
TARGET[11] = np.nan
FINITE = np.nan_to_num(X, posinf=0.0)
NAMES = ["a", "b", "c"]
TABLE = pa.table({**dict(zip(NAMES, X.T, strict=True)), "label": LABELS, "target": TARGET})

pytestmark = pytest.mark.filterwarnings("ignore:random_state makes", "ignore:.*took all of its steps")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK_ROWS", 64)
    monkeypatch.setattr(stream, "BLOCK_BYTES", 1 << 12)


def classifier(**changes):
    settings = {"classes": ["no", "yes"], "random_state": 3, "solver": GradientDescent(steps=3)}
    return LogisticRegression(epsilon=1.0, **(settings | changes))


def regressor(**changes):
    settings = {
        "bounds": Bounds(row_norm=1.0, target=(-1, 1)),
        "random_state": 3,
        "solver": GradientDescent(steps=3),
    }
    return Ridge(epsilon=1.0, **(settings | changes))


def without(table, name):
    return table.drop_columns([name])


def parquet(table, folder, **options):
    pq.write_table(table.slice(0, 150), folder / "0.parquet", row_group_size=40, **options)
    pq.write_table(table.slice(150), folder / "1.parquet", **options)
    return pads.dataset(folder)


def arrow_file(table, folder):
    with pa.ipc.new_file(str(folder / "0.arrow"), table.schema) as file:
        file.write_table(table, max_chunksize=50)
    return pads.dataset(folder, format="ipc")


COLUMNS = {
    "data frame": lambda table, folder: table.to_pandas(),
    "polars": lambda table, folder: pl.from_arrow(table),
    "arrow": lambda table, folder: table,
    "parquet": lambda table, folder: parquet(table, folder, compression="none"),
    "snappy": lambda table, folder: parquet(table, folder, compression="snappy"),
    "zstd": lambda table, folder: parquet(table, folder, compression="zstd"),
    "arrow file": arrow_file,
    "lazy frame": lambda table, folder: pl.from_arrow(table).lazy(),
    "relation": lambda table, folder: duckdb.from_arrow(table),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_table_with_columns_gives_the_coefficients_of_the_array(kind, tmp_path):
    labelled = classifier().fit(COLUMNS[kind](without(TABLE, "target"), tmp_path), "label")
    np.testing.assert_array_equal(labelled.coef_, classifier().fit(X, LABELS).coef_)
    assert labelled.feature_names_in_.tolist() == NAMES
    fitted = regressor().fit(COLUMNS[kind](without(TABLE, "label"), tmp_path), "target")
    np.testing.assert_array_equal(fitted.coef_, regressor().fit(X, TARGET).coef_)
    beside = regressor().fit(COLUMNS[kind](TABLE.select(NAMES), tmp_path), TARGET)
    np.testing.assert_array_equal(beside.coef_, fitted.coef_)


def cut(*edges, table=X, order="C"):
    ends = [0, *edges, N]
    return [np.asarray(table[a:b], order=order) for a, b in zip(ends, ends[1:], strict=False)]


@pytest.mark.parametrize(
    "blocks",
    [
        cut(),
        cut(1, 2, 3),
        cut(130, 130, 399),
        cut(*range(7, N, 7)),
        cut(200, order="F"),
        [sp.csr_array(part) for part in cut(100, 300)],
        [pd.DataFrame(part, columns=NAMES) for part in cut(50)],
        [part.tolist() for part in cut(50)],
    ],
    ids=["whole", "single rows", "empty block", "small", "by columns", "sparse", "frames", "lists"],
)
@pytest.mark.parametrize(
    "solver",
    [GradientDescent(steps=3), GradientDescent(steps=5, batch_size=60), ObjectivePerturbation()],
    ids=["all records", "batches", "minimiser"],
)
def test_a_stream_gives_the_coefficients_of_the_array_however_it_is_cut(blocks, solver):
    expected = classifier(solver=solver).fit(X, LABELS).coef_
    rows = Stream(lambda: blocks, N, P)
    np.testing.assert_array_equal(classifier(solver=solver).fit(rows, LABELS).coef_, expected)
    ends = np.cumsum([part.shape[0] if hasattr(part, "shape") else len(part) for part in blocks])
    parts = np.split(LABELS, ends[:-1])
    pairs = Stream(lambda: zip(blocks, parts, strict=True), N, P)
    np.testing.assert_array_equal(classifier(solver=solver).fit(pairs).coef_, expected)
    targets = Stream(lambda: iter(np.split(LABELS, [33, 300])), N, 1)
    np.testing.assert_array_equal(classifier(solver=solver).fit(rows, targets).coef_, expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("solver", [GradientDescent(steps=3), CoordinateDescent(steps=3)])
def test_a_memory_map_gives_the_coefficients_of_the_array_with_every_solver(order, solver, tmp_path):
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    bounded = {"solver": solver, "bounds": Bounds(feature=1.0)}
    expected = classifier(**bounded).fit(X, LABELS)
    fitted = classifier(**bounded).fit(mapped, LABELS)
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    np.save(tmp_path / "finite.npy", np.asarray(FINITE, order=order))
    rows = np.load(tmp_path / "finite.npy", mmap_mode="r")
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected.predict_proba(FINITE))
    piped = make_pipeline(BoundsScaler(-2, 2), classifier(**bounded)).fit(mapped, LABELS)
    np.testing.assert_array_equal(
        piped[-1].coef_, classifier(**bounded).fit(np.clip(X / 2, -1, 1), LABELS).coef_
    )


def test_labels_of_a_memory_map_need_no_declaration(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.warns(UserWarning, match="classes is not given"):
        fitted = classifier(classes=None).fit(mapped, LABELS)
    np.testing.assert_array_equal(fitted.coef_, classifier().fit(X, LABELS).coef_)


@pytest.mark.parametrize("kind", [name for name in COLUMNS if name not in ("data frame", "polars", "arrow")])
def test_predictions_and_scores_of_a_source_are_those_of_the_array(kind, tmp_path):
    model, number = (
        classifier().fit(TABLE.select([*NAMES, "label"]), "label"),
        regressor().fit(FINITE, TARGET),
    )
    table = pa.table({**dict(zip(NAMES, FINITE.T, strict=True)), "label": LABELS})
    source = COLUMNS[kind](table, tmp_path)
    fitted = classifier().fit(source, "label")
    expected = classifier().fit(FINITE, LABELS)
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(fitted, method)(source), getattr(expected, method)(FINITE))
    assert fitted.score(source, "label") == expected.score(FINITE, LABELS) == fitted.score(source, LABELS)
    rows = COLUMNS[kind](table.select(NAMES), tmp_path)
    np.testing.assert_array_equal(model.predict(rows), model.predict(table.select(NAMES)))
    target = np.nan_to_num(TARGET)
    assert number.score(rows, target) == number.score(FINITE, target)


@pytest.mark.parametrize("kind", ["parquet", "lazy frame", "relation"])
def test_a_scaler_in_a_pipeline_scales_a_source_as_it_is_read(kind, tmp_path):
    low, high = [-2, -1, 0], [2, 3, 5]
    table = pa.table({**dict(zip(NAMES, FINITE.T, strict=True)), "target": TARGET})
    source = COLUMNS[kind](table, tmp_path)
    piped = make_pipeline(BoundsScaler(low, high), regressor()).fit(source, "target")
    expected = make_pipeline(BoundsScaler(low, high), regressor()).fit(FINITE, TARGET)
    np.testing.assert_array_equal(piped[-1].coef_, expected[-1].coef_)
    np.testing.assert_array_equal(piped.predict(source), expected.predict(FINITE))
    assert piped[0].feature_names_in_.tolist() == NAMES
    alone = BoundsScaler(low, high).fit(COLUMNS[kind](table.select(NAMES), tmp_path))
    scaled = alone.transform(COLUMNS[kind](table.select(NAMES), tmp_path))
    np.testing.assert_array_equal(np.asarray(scaled), expected[0].transform(FINITE))
    np.testing.assert_array_equal(regressor().fit(scaled, TARGET).coef_, expected[-1].coef_)


def test_a_scaler_reads_no_record_of_a_source_in_its_fit():
    def read():
        raise AssertionError

    scaler = BoundsScaler([0, 0], [1, 2]).fit(Stream(read, 10, 2))
    assert scaler.transform(Stream(read, 10, 2)).shape == (10, 2)


def test_one_row_and_single_precision(tmp_path):
    single = pa.table({"a": np.array([0.5], np.float32), "b": np.array([-0.5], np.float32), "y": [1.0]})
    pq.write_table(single, tmp_path / "0.parquet")
    fitted = regressor(delta=0.1).fit(pads.dataset(tmp_path), "y")
    expected = regressor(delta=0.1).fit(np.array([[0.5, -0.5]], np.float32), [1.0])
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(LABELS).dictionary_encode(),
        pa.array(["other"] * 3 + LABELS[3:].tolist()).dictionary_encode(),
    ],
    ids=["dictionary", "a label that is no class"],
)
def test_the_dictionary_of_a_file_is_never_the_set_of_classes(labels, tmp_path):
    pq.write_table(TABLE.select(NAMES).append_column("label", labels), tmp_path / "0.parquet")
    fitted = classifier().fit(pads.dataset(tmp_path), "label")
    values = np.array(labels.to_pylist(), dtype=object)
    np.testing.assert_array_equal(fitted.coef_, classifier().fit(X, values).coef_)
    with pytest.raises(ValueError, match="classes must be declared for a FileSystemDataset"):
        classifier(classes=None).fit(pads.dataset(tmp_path), "label")
    with pytest.raises(ValueError, match="never equal classes of type int64"):
        classifier(classes=[0, 1]).fit(pads.dataset(tmp_path), "label")


def test_names_and_types_of_columns_are_checked_before_a_record_is_read(tmp_path):
    source = parquet(TABLE, tmp_path)
    with pytest.raises(ValueError, match="column 'label' of X must be numeric, its type is string"):
        regressor().fit(source, "target")
    with pytest.raises(
        ValueError, match=r"name a column of X, whose columns are \['a', 'b', 'c', 'label', 'target'\]"
    ):
        regressor().fit(source, "income")
    with pytest.raises(ValueError, match=r"name one column of X, whose columns are \['a'"):
        regressor().fit(TABLE, "income")
    with pytest.raises(ValueError, match="requires y"):
        regressor().fit(pads.dataset(TABLE.select(NAMES)))
    with pytest.raises(ValueError, match="a text, and a ndarray has no columns"):
        regressor().fit(X, "target")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor().fit(pads.dataset(TABLE.select(NAMES)), TARGET[1:])
    fitted = regressor().fit(pads.dataset(TABLE.select([*NAMES, "target"])), "target")
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(pads.dataset(TABLE.select(["b", "a", "c"])))
    with pytest.raises(ValueError, match="has 2 features, but Ridge is expecting 3"):
        fitted.predict(Stream(lambda: [X[:, :2]], N, 2))


@pytest.mark.parametrize(
    "once", [iter([X]), (part for part in [X]), TABLE.to_reader()], ids=["iterator", "generator", "reader"]
)
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_what_can_be_read_only_once_is_refused_by_its_type(once, method):
    model = regressor().fit(FINITE, TARGET)
    arguments = (once, TARGET) if method == "fit" else (once,)
    with pytest.raises(ValueError, match=f"X is a {type(once).__name__}, which can be read only once: give"):
        getattr(model, method)(*arguments)


def growing():
    calls = []

    def read():
        calls.append(1)
        return [X, X[: len(calls) // 3]]

    return read


def breaking():
    yield X[:100]
    raise RuntimeError(f"could not parse {X[3]}")


@pytest.mark.parametrize("read", [growing(), breaking, lambda: [X[:-1]], lambda: iter([X] * 1_000_000)])
def test_a_source_that_changes_or_breaks_is_refused_in_a_sentence_that_quotes_nothing(read):
    words = "gave other records than before|gave more or fewer records than it states|could not be read"
    with pytest.raises(SourceChanged, match=words) as caught:
        regressor().fit(Stream(read, N, P), TARGET)
    assert not any(digit in str(caught.value) for digit in "0123456789")
    assert caught.value.__context__ is None
    with pytest.raises(SourceChanged):
        regressor().fit(FINITE, TARGET).predict(Stream(lambda: [FINITE[1:]], N, P))


def test_errors_of_engines_are_replaced():
    broken = duckdb.sql("select range::double as a, ('secret' || range)::double as y from range(10)")
    with pytest.raises(SourceChanged, match="could not be read") as caught:
        regressor().fit(broken, "y")
    assert "secret" not in str(caught.value) and caught.value.__context__ is None
    lazy = pl.LazyFrame({"a": ["1", "secret"], "y": [0.0, 1.0]}).with_columns(pl.col("a").cast(pl.Float64))
    with pytest.raises(SourceChanged, match="could not be read"):
        regressor().fit(lazy, "y")


def test_blocks_that_do_not_fit_the_stream_are_refused():
    with pytest.raises(ValueError, match="a block has 2 features, the source states 3"):
        regressor().fit(Stream(lambda: [X[:, :2]], N, P), TARGET)
    with pytest.raises(ValueError, match="blocks of X have no targets"):
        regressor().fit(Stream(lambda: [X], N, P))
    with pytest.raises(UnsupportedProblem, match="come with targets"):
        regressor().fit(Stream(lambda: [(X, TARGET)], N, P), TARGET)
    with pytest.raises(ValueError, match="Stream has none by that name"):
        regressor().fit(Stream(lambda: [X], N, P), "target")


def test_a_solver_that_needs_more_than_passes_is_refused_on_a_stream():
    with pytest.raises(UnsupportedProblem, match="DualCoordinateDescent needs .* rows at random"):
        LinearSVC(solver="dual-coordinate-descent", classes=[0, 1]).fit(
            Stream(lambda: [X], N, P), LABELS == "yes"
        )


MEMORY = """
import resource, sys
import pyarrow as pa, pyarrow.dataset as pads, pyarrow.parquet as pq
import numpy as np
from dpglm import Bounds, BoundsScaler, Ridge
from dpglm.data import stream
from dpglm.solvers import GradientDescent
from sklearn.pipeline import make_pipeline

(folder,) = sys.argv[1:]
stream.BLOCK_ROWS = 1 << 14
def fit(source, y):
    model = Ridge(solver=GradientDescent(steps=2), bounds=Bounds(feature=1.0, target=(-1, 1)))
    make_pipeline(BoundsScaler(-4, 4), model).fit(source, y).predict(source)
small = pa.table({f"c{j}": np.ones(40_000, np.float32) for j in range(21)})
fit(pads.dataset(small), "c20")  # loads and compiles
rng = np.random.default_rng(0)
path = folder + "/0.parquet"
with pq.ParquetWriter(path, small.schema, compression="none", use_dictionary=False) as file:
    for _ in range(30):
        columns = [rng.standard_normal(40_000, dtype=np.float32) for _ in range(21)]
        file.write_table(pa.table(columns, small.schema.names))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fit(pads.dataset(path), "c20")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_a_fit_behind_a_scaler_holds_few_blocks_of_a_file(tmp_path):
    run = [sys.executable, "-W", "ignore", "-c", MEMORY, str(tmp_path)]
    grown = float(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    size = (tmp_path / "0.parquet").stat().st_size / 2**20
    assert size > 95 and grown < 70  # MB, of which 20 are predictions; a pass that kept its blocks takes 96


def test_the_table_of_a_fit_may_be_predicted_with_its_named_columns():
    years = RNG.uniform(1, 2, N)
    plain = pa.table({**dict(zip(NAMES, FINITE.T, strict=True)), "target": np.nan_to_num(np.abs(TARGET))})
    more = plain.append_column("years", pa.array(years)).append_column("weight", pa.array(years / 2))
    bounds = Bounds(row_norm=1.0, target=(0, 1), weight=1.0, offset=(0, 1))
    model = PoissonRegressor(1.0, bounds=bounds, random_state=3, solver=GradientDescent(steps=3))
    names = {"sample_weight": "weight", "exposure": "years"}
    model.fit(pads.dataset(more), "target", **names)
    assert list(model.feature_names_in_) == NAMES
    features = plain.drop_columns(["target"]).to_pandas()
    np.testing.assert_array_equal(model.predict(pads.dataset(more)), model.predict(features))
    by_name = model.predict(pads.dataset(more), exposure="years")
    np.testing.assert_array_equal(by_name, model.predict(features, exposure=years))
    by_array = model.predict(pads.dataset(more), offset=np.zeros(N))
    np.testing.assert_array_equal(by_array, model.predict(features))
    assert model.score(pads.dataset(more), "target", exposure="years") == pytest.approx(
        model.score(features, plain["target"].to_numpy(), exposure=years)
    )
