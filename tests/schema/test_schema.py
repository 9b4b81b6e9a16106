"""A schema: what it declares, encodes and bounds."""

import math
import time
from decimal import Decimal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from dpglm import Stream
from dpglm.data.files import source_of_file
from dpglm.data.frames import type_kind
from dpglm.penalties import Fused
from dpglm.schema import Boolean, Category, Date, Drop, Hashed, Number, Ordinal, Schema, Target, Text
from dpglm.schema.roles import Exposure, Offset, Unit, Weight
from dpglm.schema.source import EncodedSource
from dpglm.schema.toml import KINDS

from . import fuzzed_files, fuzzing
from .raw_tables import SCHEMA, containers, frame

INCOME = Schema(
    {"age": Number(0, 100), "job": Category(["clerk", "nurse"]), "income": Target(classes=["low", "high"])}
)


def dense(schema, table, **options):
    found = schema.encode(table, **options)
    return found.toarray() if sp.issparse(found) else found


def same_bits(a, b):
    return all(np.array_equal(getattr(a, part), getattr(b, part), equal_nan=part == "data")
               for part in ("data", "indices", "indptr"))  # fmt: skip


def test_every_container_gives_the_same_bits(tmp_path):
    tables = containers(frame(200), tmp_path)
    expected = SCHEMA.encode(tables["pandas from CSV"])
    assert expected.nnz > 200 * 10 and not np.isnan(expected.data).all()
    target = SCHEMA.read_target(tables["pandas from CSV"])
    for name, table in tables.items():
        assert same_bits(SCHEMA.encode(table), expected), name
        assert np.array_equal(SCHEMA.read_target(table), target), name


def test_blocks_give_the_same_bits_as_the_whole():
    raw = frame(300)
    parts = [SCHEMA.encode(raw.iloc[start : start + 7]) for start in range(0, 300, 7)]
    assert same_bits(sp.csr_array(sp.vstack(parts, format="csr")), SCHEMA.encode(raw))


def test_rows_are_within_the_bounds_that_the_schema_states():
    X = SCHEMA.encode(frame(2_000), null=False)
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    bounds = SCHEMA.bounds()
    assert norms.max() <= SCHEMA.radius * (1 + 1e-12) and norms.max() > 0.7 * SCHEMA.radius
    low, high = bounds.ranges(SCHEMA.n_features)
    rows = X.toarray()
    assert (rows >= low).all() and (rows <= high).all()
    assert bounds.target == (0, 5_000) and math.isclose(bounds.row_norm, SCHEMA.radius)
    clipped = bounds.clip(X).toarray()
    assert np.allclose(clipped, rows, rtol=1e-12, atol=0)
    assert math.isclose(sum(SCHEMA.shares.values()), 1.0)


def test_each_column_keeps_to_its_norm_and_weights_scale_it():
    for name, column in SCHEMA.columns.items():
        if isinstance(column, Target | Drop):
            continue
        alone = Schema({name: column})
        norms = np.linalg.norm(dense(alone, frame(500)[[name]], null=False), axis=1)
        assert norms.max() <= 1 + 1e-12 and alone.radius == 1.0, name
    heavy = Schema({"age": Number(18, 90, weight=3.0), "job": Category(["clerk"], weight=0.5)})
    assert heavy.radius == math.hypot(3, 0.5) and heavy.shares["age"] == pytest.approx(9 / 9.25)
    assert dense(heavy, {"age": [90], "job": ["clerk"]}).tolist() == [[3.0, 0.5, 0.0]]


def test_every_kind_of_column_keeps_its_contract():
    kinds = {type(column) for column in SCHEMA.columns.values()}
    assert kinds | {Weight, Offset, Exposure, Unit} == set(KINDS.values())  # these stand beside the features
    for name, column in SCHEMA.columns.items():
        if isinstance(column, Target | Drop):
            continue
        count = column.n_features
        low, high = column.ranges()
        assert len(column.features(name)) == count == len(low) == len(high)
        assert (low <= 0).all() and (high >= 0).all() and (high > low).all()
        raw = column.raw().toarray()
        assert raw.shape == (count + 1, count + 1) and np.linalg.matrix_rank(raw) == count + 1
        assert raw[0].tolist() == [1.0] + [0.0] * count
        assert Schema.from_toml(Schema({name: column}).to_toml()).columns[name] == column


def test_numbers_are_scaled_cut_and_filled_as_declared():
    cells = {"x": [0, 5, 10, 20, None, "bad", "7.5", float("inf")]}
    nan = math.nan
    expect = {
        "null": [[-1], [0], [1], [1], [nan], [nan], [0.5], [nan]],
        "indicator": [[-1, 0], [0, 0], [1, 0], [1, 0], [0, 1], [nan, 0], [0.5, 0], [nan, 0]],
        2.5: [[-1], [0], [1], [1], [-0.5], [nan], [0.5], [nan]],
    }
    for missing, rows in expect.items():
        found = dense(Schema({"x": Number(0, 10, missing=missing)}), cells)
        np.testing.assert_array_equal(found, rows)
    neutral = dense(Schema({"x": Number(0, 10)}), cells, null=False)
    assert neutral.ravel().tolist() == [-1, 0, 1, 1, 0, 0, 0.5, 0]


def test_logarithms_cut_points_and_splines_are_what_they_are_called():
    log = dense(Schema({"x": Number(1, 100, transform="log")}), {"x": [1, 10, 100]})
    np.testing.assert_allclose(log.ravel(), [-1, 0, 1], atol=1e-15)
    cut = dense(Schema({"x": Number(0, 10, cuts=(3, 7))}), {"x": [0, 3, 6.9, 7, 11]})
    assert cut.argmax(axis=1).tolist() == [0, 1, 1, 2, 2] and (cut.sum(axis=1) == 1).all()
    spline = dense(Schema({"x": Number(0, 10, knots=(3, 7))}), {"x": np.linspace(0, 10, 50)})
    np.testing.assert_allclose(spline.sum(axis=1), 1.0)
    assert spline.shape[1] == 6 and (spline >= 0).all() and spline[0, 0] == spline[-1, -1] == 1.0


def test_a_spline_can_be_any_straight_line():
    x = np.linspace(0, 10, 50)
    X = dense(Schema({"x": Number(0, 10, knots=(3, 7))}), {"x": x})
    coefficients, *_ = np.linalg.lstsq(X, x, rcond=None)
    np.testing.assert_allclose(X @ coefficients, x, atol=1e-12)


def test_levels_are_compared_as_text_and_numbers_by_their_value():
    schema = Schema({"x": Category(["a", 1, "02", True and "yes"], other=True)})
    cells = ["a", " a ", "A", 1, 1.0, "1", "1.0", True, 2, "2", "02", 1.5, None, "yes", float("inf")]
    found = dense(schema, {"x": cells}).argmax(axis=1).tolist()
    assert found == [0, 0, 4, 1, 1, 1, 1, 1, 2, 2, 2, 4, 4, 3, 4]
    without = dense(Schema({"x": Category(["a", "b"], other=False)}), {"x": ["a", "c", None]})
    assert without.tolist() == [[1, 0], [0, 0], [0, 0]]


def test_missing_levels_mean_what_is_declared():
    cells = {"x": ["a", "b", "?", None, float("nan"), ""]}
    for missing, last in {"other": [0, 0, 1], "indicator": [0, 0, 0, 1]}.items():
        found = dense(Schema({"x": Category(["a", "b"], missing=missing)}, missing=["?"]), cells)
        assert (found[2:] == last).all()
    null = dense(Schema({"x": Category(["a", "b"], missing="null")}, missing=["?"]), cells)
    assert np.isnan(null[2:]).any(axis=1).all() and not np.isnan(null[:2]).any()
    declared = dense(Schema({"x": Category(["None", "NA"], missing="null")}), {"x": ["None", "NA", "null"]})
    assert np.isnan(declared).any(axis=1).tolist() == [False, False, True]


@pytest.mark.parametrize(
    "column",
    [
        Number(0, 1, missing="indicator"),
        Category(["a"], missing="indicator"),
        Ordinal(["a", "b"], missing="a"),
        Ordinal(["a", "b"], missing="indicator", fused=True),
        Boolean(missing="indicator"),
        Date("2000-01-01", "2001-01-01", missing="indicator"),
        Hashed(4, missing="indicator"),
        Text(4, missing="indicator"),
    ],
)
def test_a_cell_that_holds_an_object_makes_a_null_record_in_every_column(column):
    schema = Schema({"x": column})
    found = dense(schema, {"x": [object(), None, [1], b"a"]})
    assert np.isnan(found).any(axis=1).tolist() == [True, False, True, True]
    assert not dense(schema, {"x": [object()]}, null=False).any()


@pytest.mark.parametrize("column", [Number(0, 1), Category(["a"]), Date("2000-01-01", "2001-01-01"), Text(4)])
@pytest.mark.parametrize("text", ["{}x", "{}.{}x", ".{}x", "1e{}x", "2000-01-01T00:00:00.{}x", " {} x"])
def test_a_long_cell_is_read_in_time_that_grows_with_its_length(column, text):
    cell = text.format(*["1" * 2**16] * 2)
    start = time.process_time()
    dense(Schema({"x": column}), {"x": [cell]})
    assert time.process_time() - start < 10  # milliseconds, if each character is looked at a few times


MASKED = np.ma.MaskedArray([1.0, 7.0, 2.0], mask=[0, 1, 0])
NUMBERS = {
    "array": np.array([1, np.nan, 2]),
    "single precision": np.array([1, np.nan, 2], dtype=np.float32),
    "masked": MASKED,
    "masked objects": np.ma.MaskedArray(["1", "x", "2"], mask=[0, 1, 0], dtype=object),
    "text": np.array(["1", "", "2.0"]),
    "nullable": pd.Series([1, None, 2], dtype="Int64"),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, np.nan, 2.0])),
    "categories": pd.Series([1, None, 2], dtype="category"),
    "Arrow in pandas": pd.Series([1, None, 2], dtype="int8[pyarrow]"),
    "decimals": pa.array([Decimal("1.00"), None, Decimal("2.00")]),
    "chunks": pa.chunked_array([pa.array([1.0]), pa.array([None, 2.0])]),
    "dictionaries": pa.chunked_array(
        [pa.array(["1"]).dictionary_encode(), pa.array([None], pa.string()).dictionary_encode(),
         pa.array(["2"]).dictionary_encode()]
    ),
    "views": pa.array(["1", None, "2"]).cast(pa.string_view()),
    "polars": pl.Series([1, None, 2]),
    "polars objects": pl.Series([1, None, Decimal(2)], dtype=pl.Object),
    "polars categories": pl.Series(["1", None, "2"], dtype=pl.Categorical),
}  # fmt: skip


COLUMNS = [
    kind(*facts, missing="indicator")
    for kind, facts in ((Number, (0, 2)), (Category, ([1, 2],)), (Hashed, (8,)), (Ordinal, ([0, 1, 2],)))
]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
def test_every_type_of_numbers_means_the_same(name, column):
    schema = Schema({"x": column})
    np.testing.assert_array_equal(dense(schema, {"x": NUMBERS[name]}), dense(schema, {"x": [1, None, 2]}))


STRING = pa.string()


def unchecked(contents, kind=STRING):
    """Texts whose bytes may be no UTF-8, as files of other programs hold them."""
    binary = pa.array(contents, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(binary), binary.buffers())


SPOILT = [b"1", b"\xff\xfe", None, b"2", b"2"]
UNCHECKED = {
    "string": unchecked(SPOILT),
    "large_string": unchecked(SPOILT, pa.large_string()),
    "string_view": unchecked(SPOILT).cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()),
    "dictionary": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2, 2]), unchecked([b"1", b"\xff\xfe", b"2"])
    ),
    "dictionary of large_string": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2, 2]), unchecked([b"1", b"\xff\xfe", b"2"], pa.large_string())
    ),
    "chunks": pa.chunked_array([unchecked(SPOILT[:2]), unchecked(SPOILT[2:])]),
    "Arrow in pandas": pd.Series(pd.arrays.ArrowExtensionArray(unchecked(SPOILT))),
    "texts in pandas": pd.Series(pd.arrays.ArrowStringArray(unchecked(SPOILT, pa.large_string()))),
}


@pytest.mark.parametrize("name", UNCHECKED)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
def test_bytes_that_are_no_utf8_spoil_their_own_cell(name, column):
    schema = Schema({"x": column})
    with_text = dense(schema, {"x": ["1", "\ufffd\ufffd", None, "2", "2"]})
    np.testing.assert_array_equal(dense(schema, {"x": UNCHECKED[name]}), with_text)


@pytest.mark.parametrize("target", [Target(0, 2), Target(classes=["1", "2"])])
@pytest.mark.parametrize("streamed", [False, True])
def test_bytes_that_are_no_utf8_in_targets_and_files(target, streamed, tmp_path):
    schema = Schema({"x": Category(["1"]), "y": target})
    table = pa.table({"x": UNCHECKED["string"], "y": UNCHECKED["dictionary"]})
    pq.write_table(table, tmp_path / "t.parquet")
    source = source_of_file(tmp_path / "t.parquet", ())
    rows, found = EncodedSource(source, schema).in_memory()[:2] if streamed else (schema.encode(table), None)
    found = schema.read_target(table) if found is None else found
    wanted = ["1", "", "", "2", "2"] if target.is_class else [1, math.nan, math.nan, 2, 2]
    np.testing.assert_array_equal(found, wanted)
    assert (rows.toarray() if sp.issparse(rows) else rows).tolist() == [[1, 0], *[[0, 1]] * 4]


def test_columns_without_values_are_missing_and_columns_without_cells_are_refused():
    schema = Schema({"x": Category(["a"], missing="indicator")})
    none, one = pa.array([None], pa.string()), pa.array(["a"])
    empty = pa.chunked_array([none.dictionary_encode(), one.dictionary_encode()])
    levels = pd.Series([None] * 2, dtype="category")
    for column in (pa.nulls(2), [None, None], np.array([np.nan, np.nan]), levels):
        assert dense(schema, {"x": column}).tolist() == [[0, 0, 1]] * 2
    assert dense(schema, {"x": empty}).tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(ValueError, match="names that are text"):
        schema.encode(pd.DataFrame([[1]]))
    with pytest.raises(ValueError, match="column 'x' has type"):
        schema.encode({"x": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="column 'x' has type"):
        schema.encode({"x": np.zeros(2, dtype="m8[s]")})
    with pytest.raises(ValueError, match="column 'x' has type list"):
        schema.encode({"x": "text"})


def test_the_encoder_takes_tables_that_are_read_block_by_block():
    raw = frame(60).drop(columns="rent")
    encoder, whole = SCHEMA.encoder(), SCHEMA.encode(raw)
    lazy = encoder.fit(pl.LazyFrame(raw)).transform(pl.LazyFrame(raw))
    assert same_bits(sp.vstack([rows for rows, _ in lazy.blocks()], format="csr"), whole)
    spread = dd.from_pandas(raw, npartitions=2)
    found = encoder.fit(spread).transform(spread).compute()
    np.testing.assert_array_equal(found.toarray(), whole.toarray())
    stream = Stream(lambda: [raw], 60, 12)
    assert encoder.fit(stream).transform(stream).shape == whole.shape
    with pytest.raises(ValueError, match="come with targets"):
        list(encoder.transform(Stream(lambda: [(raw, [1])], 60, 12)).blocks())


def test_a_baseline_has_no_feature():
    schema = Schema({"x": Category(["a", "b", "c"], baseline="b", other=False)})
    assert schema.features == ["x=a", "x=c"]
    assert dense(schema, {"x": ["a", "b", "c"]}).tolist() == [[1, 0], [0, 0], [0, 1]]


def test_truth_values_and_ordinals():
    truths = [True, False, 1, 0, "yes", "No", "T", "f", "TRUE", "false", None, "maybe", 2]
    found = dense(Schema({"x": Boolean()}), {"x": truths}).ravel()
    np.testing.assert_array_equal(found, [1, -1, 1, -1, 1, -1, 1, -1, 1, -1, *[math.nan] * 3])
    assert dense(Schema({"x": Boolean(missing=False)}), {"x": [None]}).tolist() == [[-1]]
    sizes = Schema({"x": Ordinal(["S", "M", "L"], missing="M")})
    assert dense(sizes, {"x": ["S", "M", "L", "XL", None]}).ravel().tolist() == [-1, 0, 1, 0, 0]
    scores = Schema({"x": Ordinal([0, 1, 2], missing=0)})
    assert dense(scores, {"x": [None, 0, 1, 2]}).ravel().tolist() == [-1, -1, 0, 1]


def test_dates_of_every_type_and_unit_are_the_same_moment():
    schema = Schema({"x": Date("2000-01-01", "2020-01-01", unit="years")})
    days = ["2000-01-01", "2010-01-01T12:00:00", "2020-01-01", "1990-05-05"]
    text = dense(schema, {"x": days})
    assert text[0] == text[3] == -1 and text[2] == 1
    times = np.array(days, dtype="datetime64[s]")
    for unit in ("s", "ms", "us", "ns"):
        typed = times.astype(f"datetime64[{unit}]")
        zoned = pd.Series(typed).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
        columns = [typed, pa.array(typed), zoned]
        columns += [] if unit == "s" else [pl.Series(typed)]  # polars has no seconds
        columns += [] if unit == "ns" else [list(typed.astype("O"))]  # Python has no nanoseconds
        for column in columns:
            assert np.array_equal(dense(schema, {"x": column}), text), (unit, type(column))
    assert np.isnan(dense(schema, {"x": ["no date", "2010-13-01", None, 5]})).all()
    offset = dense(schema, {"x": ["2010-01-01T21:00:00+09:00"]})
    assert offset[0] == text[1]


def test_numbers_are_no_dates():
    schema = Schema({"x": Date("2000-01-01", "2020-01-01", missing="indicator")})
    for kind in (np.int64, np.uint8, bool):
        with pytest.raises(ValueError, match="column 'x' has type"):
            schema.encode({"x": np.ones(2, dtype=kind)})
    for column in (np.array([20_100_101.0, np.nan]), [20_100_101, None], pa.array([1.5, None])):
        found = dense(schema, {"x": column})
        assert np.isnan(found[0]).any() and found[1].tolist() == [0, 1]


FINE = ["2020-01-01T01:02:03.123456789", "1969-12-31T23:59:59.999999999", "2020-01-01T05:00:00.000000999"]
TYPED = {
    "nanoseconds": np.array(FINE, dtype="datetime64[ns]"),
    "nanoseconds in pandas": pd.Series(pd.to_datetime(FINE)),
    "nanoseconds with a zone": pd.Series(pd.to_datetime(FINE)).dt.tz_localize("Asia/Tokyo"),
    "moments in categories": pd.Series(pd.to_datetime(FINE)).astype("category"),
    "picoseconds": np.array(FINE[:1], dtype="datetime64[ps]"),
    "steps of days": np.array(["2020-01-01", "NaT"], dtype="datetime64[2D]"),
    "months": np.array(["2020-01", "1900-05"], dtype="datetime64[M]"),
    "far years": np.array(["12000-01-01", "-5000-02-03", "2020-01-01"], dtype="datetime64[s]"),
    "extended precision": np.array([0.1, "1e4000", 2, "nan"], dtype=np.longdouble),
    "single precision": np.array([0.1, 2, np.inf, np.nan], dtype=np.float32),
    "doubles": np.array([0.1, 2, np.inf, -np.inf, np.nan]),
    "large whole numbers": np.array([2**64 - 1, 2**53 + 1, 1], dtype=np.uint64),
    "truth values": np.array([True, False]),
}


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize(
    "column",
    [
        Number(0, 2, missing="indicator"),
        Category([2, "inf", "-Infinity"], missing="indicator"),
        Ordinal([1, 2]),
        Ordinal([1, 2], fused=True),
        Boolean(missing="indicator"),
        Date("1960-01-01", "2020-01-02", unit="seconds", missing="indicator"),
        Hashed(512),
        Text(512),
    ],
    ids=lambda column: column.kind,
)
def test_another_cell_that_makes_a_column_one_of_objects_changes_no_record(name, column):
    typed, schema = TYPED[name], Schema({"x": column})
    objects = np.array([*typed, "bad"], dtype=object)
    if type_kind(typed.dtype) in column.refused:
        with pytest.raises(ValueError, match="column 'x' has type"):
            schema.encode({"x": typed})
        return
    for found in (objects, list(objects), pd.Series(objects, dtype=object)):
        np.testing.assert_array_equal(dense(schema, {"x": typed}), dense(schema, {"x": found})[:-1])


@pytest.mark.parametrize(
    "column", [Category([1, "inf"], missing="indicator"), Hashed(512), Text(512), Number(0, 1)]
)
@pytest.mark.parametrize(
    ("number", "spellings"),
    [
        (math.inf, ["inf", "Infinity", "+INF", " inf ", "1e400", "9" * 400, 10**400, Decimal("1e400")]),
        (-math.inf, ["-inf", "-Infinity", "-1e400", -(10**400), np.longdouble("-inf")]),
    ],
)
def test_every_infinite_number_means_the_same(column, number, spellings):
    schema = Schema({"x": column})
    typed = dense(schema, {"x": np.array([number])})
    for cell in spellings:
        np.testing.assert_array_equal(dense(schema, {"x": [cell]}), typed, err_msg=repr(cell)[:20])
        np.testing.assert_array_equal(dense(schema, {"x": [cell, "a"]})[:1], typed)
    assert np.isnan(typed).any() == isinstance(column, Number)
    assert Schema.from_toml(schema.to_toml()) == schema


def test_a_duration_is_no_number():
    assert np.isnan(dense(Schema({"x": Number(0, 2)}), {"x": [np.timedelta64(1, "ns"), "a"]})).all()


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_moments_in_dictionaries_whatever_chunk_has_none(empty):
    schema = Schema({"x": Date("2000-01-01", "2020-01-01", missing="indicator")})
    parts = [np.array([day], "M8[us]") for day in ("2001-01-01", "2002-01-01", "2003-01-01")]
    parts[empty][:] = "NaT"
    chunks = pa.chunked_array([pa.array(part).dictionary_encode() for part in parts])
    np.testing.assert_array_equal(dense(schema, {"x": chunks}), dense(schema, {"x": np.concatenate(parts)}))


def test_hashes_depend_on_the_key_alone():
    cells = {"x": ["a", "b", "a", 1, "1.0", None]}
    one, other = (dense(Schema({"x": Hashed(1000, key=key)}), cells).argmax(axis=1) for key in ("", "k"))
    assert one[0] == one[2] != one[1] and one[3] == one[4] and list(one[:2]) != list(other[:2])
    assert one[:2].tolist() == [928, 668]  # any change here changes what stored models mean


def test_words_are_hashed_whatever_their_case_and_order():
    schema = Schema({"x": Text(1000)})
    X = dense(schema, {"x": ["Back pain", "pain, BACK! pain", "", "knee"]})
    assert (X[0] == X[1]).all() and not X[2].any() and (X[0] != X[3]).any()
    np.testing.assert_allclose(np.linalg.norm(X[[0, 1, 3]], axis=1), 1.0)


def test_products_are_products():
    X = dense(SCHEMA, frame(300), null=False)
    names = SCHEMA.features
    by_name = {name: X[:, k] for k, name in enumerate(names)}
    products = [name for name in names if " : " in name]
    assert len(products) == 2 * 5 + 2 * 1
    for name in products:
        a, b = name.split(" : ")
        np.testing.assert_allclose(by_name[name], by_name[a] * by_name[b])


def test_raw_coefficients_predict_what_encoded_ones_predict():
    """Exactly for values inside of their ranges, missing ones included."""
    raw = {
        "age": [20.0, 50.0, None],
        "job": ["clerk", "spy", None],
        "size": ["M", "L", None],
        "member": [True, False, None],
        "day": ["2001-01-01", "2005-06-01", None],
        "gain": [3.0, 10.0, 99.0],
    }
    schema = Schema(
        {
            "age": Number(18, 90, missing="indicator", weight=2.0),
            "job": Category(["clerk"], missing="indicator"),
            "size": Ordinal(["S", "M", "L"], missing="indicator"),
            "member": Boolean(missing="indicator"),
            "day": Date("2000-01-01", "2010-01-01", missing="indicator"),
            "gain": Number(1, 100, transform="log"),
        },
        interactions=[("age", "job"), ("member", "age")],
    )
    w = np.random.default_rng(0).normal(size=schema.n_features)
    encoded = dense(schema, raw) @ w + 0.7
    values, intercept = schema.raw_coefficients(w, 0.7)
    age = [{"age": x} if x is not None else {"age (missing)": 1} for x in raw["age"]]
    job = [{"job=clerk": 1}, {"job (other)": 1}, {"job (missing)": 1}]
    member = [{"member": 1}, {"member": 0}, {"member (missing)": 1}]
    size = [{"size": 1}, {"size": 2}, {"size (missing)": 1}]
    day = [{"day": 366}, {"day": 1978}, {"day (missing)": 1}]
    for k in range(3):
        row = age[k] | job[k] | member[k] | size[k] | day[k] | {"log(gain)": math.log(raw["gain"][k])}
        for first, second in ((age[k], job[k]), (member[k], age[k])):
            row |= {f"{a} : {b}": x * y for a, x in first.items() for b, y in second.items()}
        assert sum(values[name] * x for name, x in row.items()) + intercept == pytest.approx(encoded[k])
    plain = Schema({"age": Number(18, 90)}).encoder().raw_coefficients([36.0], 1.0)
    assert plain.values == {"age": 1.0} and plain.intercept == 1.0 - 54.0


def test_the_encoder_is_a_transformer_of_scikit_learn():
    encoder = clone(SCHEMA.encoder())
    X = encoder.fit_transform(frame(50))
    assert X.shape == (50, len(encoder.get_feature_names_out())) and sp.issparse(X)
    assert encoder.schema == SCHEMA
    with pytest.raises(ValueError, match="a Schema|dpglm.schema.Schema"):
        type(encoder)("schema").fit(frame(5))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda raw: raw.drop(columns="age"), "the table has no column 'age', which the schema declares"),
        (lambda raw: raw.assign(secret=1), "the schema does not declare column 'secret'"),
        (lambda raw: raw.rename(columns={"age": "38.5"}), "the table has no column 'age'"),
        (lambda raw: raw.assign(age=pd.Timestamp("2020-01-01")), "column 'age' has type datetime64"),
        (lambda raw: raw.assign(age=[b"1"] * len(raw)).to_numpy(), "matched by name"),
        (lambda raw: pd.concat([raw, raw[["age"]]], axis=1), "different names"),
        (lambda raw: pa.table({"age": [[1]], "job": ["a"]}), "column 'age' has type list"),
        (lambda raw: {"age": [1], "job": []}, "different lengths"),
        (lambda raw: pl.DataFrame({"age": [{"a": 1}], "job": ["x"]}), "column 'age' has type"),
    ],
)
def test_wrong_columns_are_named_and_no_value_is_quoted(change, text):
    raw = pd.DataFrame({"age": [38.5], "job": ["clerk"]})
    with pytest.raises(ValueError, match=text) as caught:
        INCOME.encode(change(raw))
    assert "38.5" not in str(caught.value)


def test_targets_are_classes_or_numbers():
    cells = {"age": [1] * 4, "job": ["clerk"] * 4, "income": ["low", " high ", "?", None]}
    assert INCOME.read_target(cells).tolist() == ["low", "high", "", ""]
    assert INCOME.classes == ["low", "high"] and INCOME.target == "income"
    numbers = Schema({"x": Number(0, 1), "y": Target(classes=[0, 1])})
    found = numbers.read_target({"x": [0] * 4, "y": ["1", 0.0, True, 2]})
    np.testing.assert_array_equal(found, [1, 0, 1, math.nan])


FUSED = Schema(
    {
        "member": Boolean(),
        "age": Number(0, 90, cuts=[30, 60], fused=True, missing="indicator"),
        "town": Category(["a", "b"]),
        "school": Ordinal(["none", "some", "all"], fused=True, missing="indicator", weight=2.0),
        "rank": Ordinal([1, 2, 3]),
        "year": Number(0, 3, cuts=[1, 2]),
        "y": Target(-1, 1),
    },
    interactions=[["member", "age"]],
)


def test_fused_levels_have_a_feature_each():
    names = ["school=none", "school=some", "school=all", "school (missing)"]
    assert [name for name in FUSED.features if name.startswith("school")] == names
    column = Schema({"x": Ordinal(["none", "some", "all"], fused=True, missing="indicator", weight=2.0)})
    found = dense(column, {"x": ["some", None, "all", "other", object()]})
    np.testing.assert_array_equal(
        found[:4], 2.0 * np.array([[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0] * 4])
    )
    assert np.isnan(found[4]).any() and column.radius == 2.0
    null = dense(Schema({"x": Ordinal([0, 1], fused=True)}), {"x": [1, None, 0]})
    assert np.isnan(null).any(axis=1).tolist() == [False, True, False]
    level = dense(Schema({"x": Ordinal([0, 1], fused=True, missing=0)}), {"x": [1, None]})
    np.testing.assert_array_equal(level, [[0, 1], [1, 0]])
    assert column.raw_coefficients([1, 2, 3, 4]).values["x=all"] == 6.0


def test_the_penalty_of_a_schema_ties_neighbours_of_columns_that_ask_for_it_and_no_other():
    names = FUSED.features
    assert [(names[i], names[j]) for i, j in FUSED.fused] == [
        ("age [0, 30)", "age [30, 60)"),
        ("age [30, 60)", "age [60, 90]"),
        ("school=none", "school=some"),
        ("school=some", "school=all"),
    ]
    w = np.random.default_rng(0).standard_normal(FUSED.n_features)
    free = np.setdiff1d(np.arange(FUSED.n_features), np.ravel(FUSED.fused))
    found = FUSED.penalty(100.0).prox(w, 1.0)
    np.testing.assert_array_equal(found[free], w[free])
    np.testing.assert_allclose(found[1:4], w[1:4].mean())
    assert FUSED.penalty(0.5, l1=0.1, l2=0.2) == Fused(0.5, 0.1, FUSED.fused, l2=0.2)


def test_fused_columns_survive_toml():
    assert Schema.from_toml(FUSED.to_toml()) == FUSED
    assert FUSED.to_toml().count("fused = true") == 2


BAD = [
    (lambda: Number(5, 5), "low must be less than high"),
    (lambda: Number("?", 5), "low must be a number"),
    (lambda: Number(0, 1, missing="mean"), "missing must be one of"),
    (lambda: Number(0, 1, missing=7), "missing must be"),
    (lambda: Number(0, 1, transform="log"), "low must be more than 0"),
    (lambda: Number(0, 1, cuts=[0.7, 0.2]), "cuts must be increasing"),
    (lambda: Number(0, 1, cuts=[0.5], knots=[0.5]), "give one of"),
    (lambda: Number(0, 1, fused=True), "fused is for bins: give cuts"),
    (lambda: Number(0, 1, cuts=[0.5], fused=1), "fused must be True or False"),
    (lambda: Ordinal(["a", "b"], fused="yes"), "fused must be True or False"),
    (lambda: Schema({"x": Number(0, 1, cuts=[0.5])}).penalty(0.1), "no column has fused=True"),
    (lambda: Schema({"x": Number(0, 1, cuts=[0.5], fused=True)}).penalty(-1.0), "strength must be finite"),
    (lambda: Number(0, 1, weight=0), "weight must be positive"),
    (lambda: Category([]), "levels must be at least one"),
    (lambda: Category("abc"), "levels must be a list"),
    (lambda: Category([1, "1.0"]), "the same level twice"),
    (lambda: Category(["a"], baseline="b"), "baseline must be one of the levels"),
    (lambda: Ordinal(["a"]), "at least two levels"),
    (lambda: Ordinal(["a", "b"], missing="c"), "missing must be"),
    (lambda: Date("2000-01-01", "1999-01-01"), "low must be less than high"),
    (lambda: Date("?", "1999-01-01"), "low must be a date|origin must be a date"),
    (lambda: Hashed(0), "buckets must be"),
    (lambda: Text(16, key="k" * 65), "key must be"),
    (lambda: Target(), "either a range"),
    (lambda: Target(0, 1, classes=[0, 1]), "either a range"),
    (lambda: Target(classes=["a"]), "at least two classes"),
    (lambda: Target(classes=["a", 1]), "classes of one type"),
    (lambda: Schema({"x": Drop()}), "at least one column"),
    (lambda: Schema({"x": (0, 1)}), "column 'x' must be a Number"),
    (lambda: Schema({"x": Number(0, 1)}, interactions=[("x", "z")]), "pairs of different columns"),
    (lambda: Schema({"x": Number(0, 1), "y": Target(0, 1), "z": Target(0, 1)}), "at most one target"),
    (lambda: Schema({"x": Number(0, 1)}, missing=[1]), "missing must be texts"),
    (lambda: Schema({"x": Number(0, 1)}).raw_coefficients([1, 2]), "coef has 2 entries"),
    (lambda: Schema({"x": Number(0, 1)}).read_target({"x": [1]}), "declares no target"),
]


@pytest.mark.parametrize(("make", "text"), BAD)
def test_what_cannot_be_declared_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_changed_cell_changes_its_own_record_and_nothing_is_raised():
    assert fuzzing.cells(5_000) == []


def test_any_spelling_is_refused_or_reads_each_cell_by_itself():
    wrong, declared = fuzzing.spellings(4_000)
    assert wrong == [] and declared > 100


def test_a_changed_line_changes_its_own_record_and_nothing_is_quoted(tmp_path):
    assert fuzzing.files(3_000, tmp_path) == []


def test_commands_on_random_files_neither_crash_nor_quote_them():
    assert sum(fuzzed_files.run(60).values()) == 60


def test_the_schema_states_who_uses_how_much_of_the_radius():
    text = str(INCOME)
    assert "4 features, rows of norm at most 1.414" in text and "50.0% of the squared norm" in text


def test_an_empty_table_has_no_rows():
    arrow = pa.table({"age": pa.array([], "int8"), "job": pa.array([], "string")})
    for table in (pd.DataFrame({"age": [], "job": []}), arrow, {"age": [], "job": []}):
        assert INCOME.encode(table).shape == (0, 4)
