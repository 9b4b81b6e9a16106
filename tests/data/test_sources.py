"""Sources give the records of a table, whatever it is stored in and however it is cut."""

import decimal
import threading
import time

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from dpglm.data import adapters, stream
from dpglm.data.adapters import as_source
from dpglm.data.columnar import Levels
from dpglm.data.columns import MappedSource, Paired
from dpglm.data.stream import Stream, guarded, prefetch, rows_per_block
from dpglm.errors import SourceChanged, UnsupportedProblem

N = 230
RNG = np.random.default_rng(5)
NUMBERS = {f"x{j}": RNG.standard_normal(N).astype(np.float32) for j in range(3)}
TABLE = pa.table({**NUMBERS, "label": RNG.choice(["no", "yes"], N)})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK_ROWS", 37)
    monkeypatch.setattr(stream, "BLOCK_BYTES", 37 * 12)


def parquet(folder, **options):
    pq.write_table(TABLE.slice(0, 100), folder / "0.parquet", row_group_size=7, **options)
    pq.write_table(TABLE.slice(100), folder / "1.parquet", row_group_size=90, **options)
    return pads.dataset(folder)


def ipc(folder, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(str(folder / "0.arrow"), TABLE.schema, options=options) as file:
        file.write_table(TABLE, max_chunksize=10)
    return pads.dataset(folder, format="ipc")


class Exporter:
    """A table of a library that is not known, in the stream interface of Arrow."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


SOURCES = {
    "parquet": lambda folder: parquet(folder, compression="none"),
    "snappy": lambda folder: parquet(folder, compression="snappy"),
    "zstd": lambda folder: parquet(folder, compression="zstd"),
    "arrow file": ipc,
    "arrow file, compressed": lambda folder: ipc(folder, "lz4"),
    "table": lambda folder: pads.dataset(TABLE),
    "filtered": lambda folder: parquet(folder).filter(pads.field("x0") < 1e9),
    "lazy frame": lambda folder: pl.from_arrow(TABLE).lazy(),
    "scan": lambda folder: pl.scan_parquet(parquet(folder).files),
    "relation": lambda folder: duckdb.from_arrow(TABLE),
    "stream interface": lambda folder: Exporter(),
}


def collected(source):
    blocks = list(source.blocks())
    targets = [part.through(yes) if isinstance(part, Levels) else part for _, part in blocks]
    return np.concatenate([rows for rows, _ in blocks]), np.concatenate(targets), [len(r) for r, _ in blocks]


def yes(values):
    return np.array([value == "yes" for value in values.to_pylist()], dtype=float)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_gives_the_records_in_blocks_by_columns_each_time_it_is_read(kind, tmp_path):
    source = as_source(SOURCES[kind](tmp_path)).aimed("label")
    assert source.shape == (N, 3) and list(source.feature_names) == ["x0", "x1", "x2"]
    for _ in range(2):
        rows, targets, lengths = collected(source)
        np.testing.assert_array_equal(rows, np.column_stack(list(NUMBERS.values())))
        np.testing.assert_array_equal(targets, yes(TABLE["label"]))
        assert rows.dtype == np.float32 and lengths == [37] * 6 + [8]
    first, _ = next(source.blocks())
    assert first.flags.f_contiguous


def test_missing_numbers_are_nan_and_missing_labels_have_no_number():
    nothing = pa.table(
        {
            "i": pa.array([1, None, 3]),
            "b": pa.array([True, False, None]),
            "d": pa.array([decimal.Decimal("0.10"), None, decimal.Decimal("2")]),
            "n": pa.nulls(3),
            "y": pa.array([None, "yes", "no"]).dictionary_encode(),
        }
    )
    rows, targets, _ = collected(as_source(pads.dataset(nothing)).aimed("y"))
    nan = np.nan
    np.testing.assert_array_equal(rows, [[1, 1, 0.1, nan], [nan, 0, nan, nan], [3, nan, 2, nan]])
    np.testing.assert_array_equal(targets, [nan, 1, 0])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**53 + 1, 3]),
        pa.array([3, 4], pa.uint8()),
        pa.array([True, False]),
        pa.array(["a", "b"]),
        pa.array(["a", "b"]).dictionary_encode().cast(pa.dictionary(pa.uint8(), pa.string())),
    ],
    ids=lambda column: str(column.type).split("<")[0],
)
def test_a_label_is_read_alike_whether_others_are_missing_or_not(column):
    missing = pa.nulls(1, column.type)
    for given in (column, pa.concat_arrays([column, missing])):
        ((_, part),) = (
            as_source(pads.dataset(pa.table({"x": np.ones(len(given)), "y": given}))).aimed("y").blocks()
        )
        if isinstance(part, Levels):
            (level,) = part
            part = np.array([*level.values.to_pylist(), None], dtype=object)[level.places]
        assert part.tolist() == given.to_pylist()


def test_files_with_other_columns_than_the_data_set_are_scanned_as_it_states_them(tmp_path):
    pq.write_table(TABLE, tmp_path / "0.parquet")
    pq.write_table(TABLE.set_column(0, "x0", TABLE["x0"].cast("float64")), tmp_path / "1.parquet")
    pq.write_table(TABLE.drop_columns(["x2"]), tmp_path / "2.parquet")
    source = as_source(pads.dataset(tmp_path, schema=TABLE.schema)).aimed("label")
    rows, _, _ = collected(source)
    assert rows.shape == (3 * N, 3) and rows.dtype == np.float32
    np.testing.assert_array_equal(rows[N : 2 * N], rows[:N])
    assert np.isnan(rows[2 * N :, 2]).all()


def test_a_partition_is_a_column(tmp_path):
    pads.write_dataset(
        TABLE.append_column("part", pa.array(np.arange(N) % 2)), tmp_path, format="parquet",
        partitioning=pads.partitioning(pa.schema([("part", pa.int64())]), flavor="hive"),
    )  # fmt: skip
    source = as_source(pads.dataset(tmp_path, partitioning="hive")).aimed("label")
    rows, _, _ = collected(source)
    assert rows[:, list(source.feature_names).index("part")].sum() == N // 2


def test_a_table_of_arrow_is_a_source_only_if_memory_is_too_small_for_a_copy(monkeypatch):
    assert as_source(TABLE) is None
    monkeypatch.setattr(adapters, "_memory", lambda: 2.0 * TABLE.nbytes - 1)
    rows, targets, _ = collected(as_source(TABLE).aimed("label"))
    np.testing.assert_array_equal(rows, np.column_stack(list(NUMBERS.values())))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_memory_map_is_read_in_blocks_and_a_small_one_is_an_array(order, tmp_path):
    rows = np.asarray(np.column_stack(list(NUMBERS.values())), order=order)
    np.save(tmp_path / "X.npy", rows)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    source = as_source(mapped)
    blocks = [block for block, _ in source.blocks()]
    np.testing.assert_array_equal(np.concatenate(blocks), rows)
    assert len(blocks) == 7 and source.resident() is mapped
    assert as_source(mapped[:30]) is None and as_source(mapped[:, 0]) is None


def test_columns_need_different_names_and_a_target_that_is_there():
    with pytest.raises(ValueError, match="different names"):
        as_source(pads.dataset(pa.Table.from_arrays([TABLE["x0"], TABLE["x1"]], ["a", "a"])))
    with pytest.raises(
        ValueError, match=r"name a column of X, whose columns are \['x0', 'x1', 'x2', 'label'\]"
    ):
        as_source(pads.dataset(TABLE)).aimed("income")
    with pytest.raises(
        ValueError, match="column 'y' of X is of type list: targets must be numbers or labels"
    ):
        as_source(pads.dataset(pa.table({"x": [1.0], "y": [[1]]}))).aimed("y")
    with pytest.raises(ValueError, match="Stream has none by that name"):
        Stream(list, 1, 1).aimed("y")


def test_a_block_has_at_most_so_many_rows_and_bytes():
    assert rows_per_block(4) == 37 and rows_per_block(24) == 18 and rows_per_block(10**9) == 1


def failing(message):
    yield np.ones((1, 1))
    raise RuntimeError(message)


def test_errors_of_a_reader_are_replaced_by_a_sentence_without_context():
    for read in (lambda: failing("a secret"), lambda: 1 / 0, lambda: [1] + None):
        with pytest.raises(SourceChanged, match="could not be read") as caught:
            list(guarded(read))
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        assert "secret" not in str(caught.value)


def test_reading_ahead_keeps_order_and_reads_one_block_before_it_is_asked_for():
    read, closed = [], []

    def blocks():
        try:
            for k in range(10):
                read.append(k)
                yield k
        finally:
            closed.append(True)

    reader = prefetch(blocks())
    for k, block in enumerate(reader):
        time.sleep(0.01)
        assert block == k and len(read) <= k + 2
        if k == 5:
            break
    reader.close()
    assert closed and len(read) <= 7
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("dpglm-reader")]
    assert list(prefetch(iter(range(100)))) == list(range(100))


def test_an_error_while_reading_ahead_arrives_where_blocks_are_used():
    with pytest.raises(SourceChanged, match="could not be read"):
        list(prefetch(Stream(lambda: failing(""), 5, 1).blocks()))


def test_targets_beside_a_source_are_cut_as_its_blocks_are():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    source = Paired(Stream(lambda: [X[:3], X[3:3], X[3:].tolist()], 10, 2), y)
    assert [part.tolist() for _, part in source.blocks()] == [[0, 1, 2], [3, 4, 5, 6, 7, 8, 9]]
    with pytest.raises(SourceChanged, match="more or fewer records"):
        list(Paired(Stream(lambda: [X, X], 10, 2), y).blocks())
    with pytest.raises(UnsupportedProblem, match="come with targets"):
        list(Paired(Stream(lambda: [(X, y)], 10, 2), y).blocks())


def test_a_mapped_source_is_an_array_for_those_who_ask_for_one():
    X = np.arange(20.0).reshape(10, 2)
    source = MappedSource(Stream(lambda: [X[:3], X[3:]], 10, 2), lambda rows: rows / 2)
    np.testing.assert_array_equal(np.asarray(source), X / 2)
    assert np.asarray(source, dtype=np.float32).dtype == np.float32 and source.resident() is None
    for blocks in ([X, X], [X[:4]]):
        with pytest.raises(SourceChanged, match="more or fewer records"):
            np.asarray(MappedSource(Stream(lambda blocks=blocks: blocks, 10, 2), lambda rows: rows))


@pytest.mark.parametrize("coded", [False, True])
def test_bytes_of_a_class_that_are_no_utf8_spoil_their_own_target(coded):
    binary = pa.array([b"yes", b"\xff", b"no", None, b"yes"], pa.binary())
    label = pa.Array.from_buffers(pa.string(), 5, binary.buffers())
    table = pa.table({"a": np.arange(5.0), "label": label.dictionary_encode() if coded else label})
    ((_, targets),) = as_source(pads.dataset(table)).aimed("label").blocks()
    found = targets.through(lambda values: np.array([len(value) for value in values.to_pylist()]))
    np.testing.assert_array_equal(found, [3, 1, 2, np.nan, 3])
