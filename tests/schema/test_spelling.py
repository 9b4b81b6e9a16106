"""How cells spell numbers, dates and levels: what is declared is read, and each cell by itself."""

import datetime as dt
import io
import locale
import re
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest
import scipy.sparse as sp

from dpglm import LogisticRegression, Stream, make_private_pipeline
from dpglm.data.files import source_of_file
from dpglm.estimators.stored import model_from_json, model_to_json
from dpglm.schema import Boolean, Category, Date, Number, Ordinal, Schema, Target
from dpglm.schema.diagnosis import read_cell
from dpglm.schema.learning import census_of
from dpglm.schema.roles import Exposure, Offset, Weight
from dpglm.schema.source import EncodedSource
from dpglm.solvers import GradientDescent

ROOT = Path(__file__).resolve().parents[2]


def dense(table):
    return table.toarray() if sp.issparse(table) else table


def number(cell, **spelling):
    """What a cell is read as; None if it is missing, NaN if its record is null."""
    schema = Schema({"x": Number(-1e6, 1e6, **spelling)})
    cells = schema._cells({"x": [cell]}, "x").as_numbers()
    return None if cells.missing[0] else cells.values[0]


def date(cell, format):
    column = Date("1900-01-01", "2100-01-01", format=format)
    (days,) = Schema({"x": column})._cells({"x": [cell]}, "x").as_days().values
    return None if np.isnan(days) else dt.datetime(1970, 1, 1) + dt.timedelta(days=float(days))


COMMA = {"decimal": ",", "thousands": "."}
NUMBERS = [
    ("1,123.40", {"thousands": ","}, 1123.4), ("1.123,40", COMMA, 1123.4), ("12,5", COMMA, 12.5),
    ("1123,4", COMMA, 1123.4), ("-1.123.456,5", COMMA, -1123456.5), ("+,5", COMMA, 0.5), ("5,", COMMA, 5),
    ("1,5e2", COMMA, 150), ("12.5", COMMA, None), ("1.12", COMMA, None), ("1.1234", COMMA, None),
    ("12,5", {"thousands": ","}, None), ("12,34,567.8", {"thousands": ","}, 1234567.8),
    ("1 123", {"thousands": " "}, 1123), ("1\u202f123\u00a0456", {"thousands": " "}, 1123456),
    ("1'123.5", {"thousands": "'"}, 1123.5), ("1,,123", {"thousands": ","}, None),
    (",123", {"thousands": ","}, None), ("1,123", {}, None), ("12.5", {"decimal": ","}, None),
    ("€12", {"strip": "€%"}, 12), ("12 %", {"strip": "€%"}, 12), ("-€ 5", {"strip": "€"}, -5),
    ("€-5", {"strip": "€"}, -5), ("€", {"strip": "€"}, None), ("12 EUR", {"strip": ["EUR", "USD"]}, 12),
    ("EUR 12 EUR", {"strip": ["EUR"]}, 12), ("12 E", {"strip": ["EUR"]}, None), ("<5", {"strip": "<>"}, 5),
    ("1€2", {"strip": "€"}, None), ("kr. 1.123,40", {**COMMA, "strip": ["kr."]}, 1123.4),
    ("infinity", COMMA, None), ("true", COMMA, 1), ("0x10", COMMA, None), ("١٢", COMMA, None),
    ("--5", {"strip": "€"}, None), ("NA", COMMA, "missing"), (" ", COMMA, "missing"),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "spelling", "value"), NUMBERS)
def test_numbers_are_read_as_their_spelling_declares(cell, spelling, value):
    found = number(cell, **spelling)
    assert found is None if value == "missing" else np.isnan(found) if value is None else found == value
    for other in (np.array([cell], dtype=object), pd.Series([cell]), pl.Series([cell]), pa.array([cell])):
        schema = Schema({"x": Number(-1e6, 1e6, missing="indicator", **spelling)})
        alone = dense(schema.encode({"x": other}))
        np.testing.assert_array_equal(alone, dense(schema.encode({"x": [cell, "7"]}))[:1])
    assert number(12.5, **spelling) == 12.5 and number(3, **spelling) == 3  # what is a number already


DATES = [
    ("15.04.2026", "%d.%m.%Y", "2026-04-15"), (" 5.4.2026 ", "%d.%m.%Y", "2026-04-05"),
    ("04/15/2026", "%m/%d/%Y", "2026-04-15"), ("15/04/2026", "%m/%d/%Y", None),
    ("2026-04-15", "%d.%m.%Y", None), ("2026-04-15", ["%d.%m.%Y", "ISO8601"], "2026-04-15"),
    ("20260415", "%Y%m%d", "2026-04-15"), ("15042026", "%d%m%Y", "2026-04-15"), ("5042026", "%d%m%Y", None),
    ("15 Apr 2026", "%d %b %Y", "2026-04-15"), ("15 april 2026", "%d %B %Y", "2026-04-15"),
    ("15 avril 2026", "%d %B %Y", None), ("04/2026", "%m/%Y", "2026-04-01"), ("2026", "%Y", "2026-01-01"),
    ("15.04.68", "%d.%m.%y", "2068-04-15"), ("15.04.69", "%d.%m.%y", "1969-04-15"),
    ("30.02.2026", "%d.%m.%Y", None), ("15.04.2026 10:30", "%d.%m.%Y", None),
    ("15.04.2026  10:30", "%d.%m.%Y %H:%M", "2026-04-15T10:30:00"),
    ("4/5/2026 12:05 am", "%m/%d/%Y %I:%M %p", "2026-04-05T00:05:00"),
    ("4/5/2026 1:05 PM", "%m/%d/%Y %I:%M %p", "2026-04-05T13:05:00"),
    ("4/5/2026 13:05 PM", "%m/%d/%Y %I:%M %p", None),
    ("2026-04-15 10:30:00.25", "%Y-%m-%d %H:%M:%S.%f", "2026-04-15T10:30:00.25"),
    ("2026-04-15 10:30 +0200", "%Y-%m-%d %H:%M %z", "2026-04-15T08:30:00"),
    ("2026-04-15 10:30Z", "%Y-%m-%d %H:%M%z", "2026-04-15T10:30:00"),
    ("2026-04-15 10:30 +02:75", "%Y-%m-%d %H:%M %z", None), ("100%2026", "100%%%Y", "2026-01-01"),
    ("0000-01-01", "%Y-%m-%d", None), ("0001-01-01 00:00 +2359", "%Y-%m-%d %H:%M %z", "overflow"),
    ("٠١.٠٤.2026", "%d.%m.%Y", None), (46000, "%d.%m.%Y", None),
]  # fmt: skip


@pytest.mark.parametrize(("cell", "format", "day"), DATES)
def test_dates_are_read_as_their_format_declares(cell, format, day):
    found = Schema({"x": Date("1900-01-01", "2100-01-01", format=format)}).encode({"x": [cell, "5"]})
    assert np.isnan(found[0, 0]) == (day is None)
    if day not in (None, "overflow"):
        assert abs(date(cell, format) - dt.datetime.fromisoformat(day)) < dt.timedelta(milliseconds=1)


def test_dates_that_have_a_type_need_no_format():
    schema = Schema({"x": Date("2000-01-01", "2030-01-01", format="%d.%m.%Y")})
    days = np.array(["2015-06-01", "2020-01-01"], dtype="M8[us]")
    np.testing.assert_array_equal(
        schema.encode({"x": days}), schema.encode({"x": ["01.06.2015", "1.1.2020"]})
    )


def test_months_have_their_english_names_in_every_locale():
    before = locale.setlocale(locale.LC_TIME)
    known = [name for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8", "C") if _settable(name)]
    try:
        for name in known:
            locale.setlocale(locale.LC_TIME, name)
            assert date("15 May 2026", "%d %b %Y") == dt.datetime(2026, 5, 15)
            assert date("15 Mai 2026", "%d %b %Y") is None
    finally:
        locale.setlocale(locale.LC_TIME, before)


def _settable(name):
    try:
        locale.setlocale(locale.LC_TIME, name)
    except locale.Error:
        return False
    return True


SEXES = Category(["Male", "female", 3], aliases={"M": "Male", "1": "female", "?": 3}, casefold=True)


@pytest.mark.parametrize(
    ("cell", "level"),
    [("Male", 0), (" MALE ", 0), ("m", 0), ("FEMALE", 1), (1, 1), (1.0, 1), ("1.0", 1), (True, 1), ("?", 2),
     ("3.0", 2), (3, 2), ("x", 3), ("NA", 3), (None, 3), ("Ma le", 3)],
)  # fmt: skip
def test_aliases_and_cases_mean_declared_levels(cell, level):
    schema = Schema({"x": SEXES}, missing=["?"])
    assert schema.features == ["x=Male", "x=female", "x=3", "x (other)"]
    assert dense(schema.encode({"x": [cell]})).argmax() == level
    typed = np.array([cell, cell]) if isinstance(cell, float | int) else [cell, cell, object()]
    assert dense(schema.encode({"x": typed}))[0].argmax() == level


def test_cases_count_unless_declared_otherwise():
    plain = Schema({"x": Category(["a"], aliases={"b": "a"})})
    assert dense(plain.encode({"x": ["a", "A", "b", "B"]})).argmax(axis=1).tolist() == [0, 1, 0, 1]


def test_booleans_ordinals_and_classes_have_aliases_and_cases_too():
    schema = Schema(
        {
            "b": Boolean(aliases={"ja": True, "nein": False}, casefold=True, missing=True),
            "o": Ordinal(["low", "High"], aliases={"-1": "low"}, casefold=True),
            "y": Target(classes=["yes", "no"], aliases={"1": "yes", 0: "no"}, casefold=True),
            "w": Weight(10, decimal=","),
            "e": Exposure(1, 1e4, thousands=","),
        }
    )
    table = {
        "b": ["JA", "Nein", "yEs", None], "o": ["HIGH", -1, "low", "High"], "y": ["YES", 1, 0.0, "maybe"],
        "w": ["1,5", "2", "3,25", "x"], "e": ["1,000", "20", "3,000.5", ""],
    }  # fmt: skip
    assert schema.encode(table).tolist() == [[1, 1], [-1, -1], [1, -1], [1, 1]]
    assert schema.read_target(table).tolist() == ["yes", "yes", "no", ""]
    beside = schema.read_beside(table)
    np.testing.assert_array_equal(beside.weight, [1.5, 2, 3.25, np.nan])
    np.testing.assert_array_equal(beside.exposure, [1000, 20, 3000.5, np.nan])
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Offset(-1, 1, decimal=",").spelling is not None and Offset(-1, 1).spelling is None


def test_targets_are_numbers_as_they_are_spelled():
    schema = Schema({"x": Number(0, 1), "y": Target(0, 5000, decimal=",", thousands=".", strip="€")})
    found = schema.read_target({"x": [0] * 4, "y": ["1.123,40 €", "7", 9.5, "9.5"]})
    np.testing.assert_array_equal(found, [1123.4, 7, 9.5, np.nan])


RAW = pd.DataFrame(
    {
        "admitted": ["15.04.2026", "1.5.2026", "2026-04-15", None, "31.12.2025"] * 40,
        "cost": ["1.123,40 €", "12,5", "-3", "", "7.000.000"] * 40,
        "ward": ["Cardiology", "cardio", "SURGERY", "?", "icu"] * 40,
        "again": ["Yes", "no", "NO", "yes", ""] * 40,
    }
)
SCHEMA = Schema(
    {
        "admitted": Date("2020-01-01", "2030-01-01", format="%d.%m.%Y", missing="indicator"),
        "cost": Number(0, 1e4, decimal=",", thousands=".", strip="€", missing="indicator"),
        "ward": Category(["cardiology", "surgery"], aliases={"cardio": "cardiology"}, casefold=True),
        "again": Target(classes=["yes", "no"], casefold=True),
    },
    missing=["?"],
)


def test_every_container_gives_the_same_bits(tmp_path):
    text = RAW.to_csv(index=False)
    (tmp_path / "t.csv").write_text(text)
    RAW.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    table = arrow_csv.read_csv(io.BytesIO(text.encode()))
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=33)
    expected, targets = dense(SCHEMA.encode(RAW)), SCHEMA.read_target(RAW)
    assert np.isnan(expected).any(axis=1).sum() == 40 and (targets == "").sum() == 40
    in_memory = {
        "pandas": pd.read_csv(io.StringIO(text)), "text": pd.read_csv(io.StringIO(text), dtype=str),
        "categories": RAW.astype("category"), "Arrow": table, "polars": pl.read_csv(io.StringIO(text)),
        "dictionaries": pa.table({n: table[n].dictionary_encode() for n in table.column_names}),
        "lists": {name: RAW[name].tolist() for name in RAW},
    }  # fmt: skip
    for name, found in in_memory.items():
        np.testing.assert_array_equal(dense(SCHEMA.encode(found)), expected, err_msg=name)
        assert (SCHEMA.read_target(found) == targets).all(), name
    lazily = SCHEMA.encoder().transform(dd.from_pandas(RAW, npartitions=3))
    np.testing.assert_array_equal(dense(lazily.compute()), expected)
    sources = [source_of_file(tmp_path / f"t.{end}", list(RAW)) for end in ("csv", "jsonl", "parquet")]
    blocks = [RAW.iloc[k : k + 7] for k in range(0, 200, 7)]
    for source in [*sources, Stream(lambda: iter(blocks), 200, 4)]:
        found = EncodedSource(source, SCHEMA).in_memory()
        np.testing.assert_array_equal(dense(found.rows), expected)
        assert (found.target == targets).all()


def test_levels_are_learnt_as_they_are_spelled_and_read_so_afterwards():
    learnt = Category(
        learn=True, most=3, casefold=True, aliases={"cardio": "Cardiology"}, missing="indicator"
    )
    schema = Schema({"ward": learnt, "again": Target(classes=["yes", "no"], casefold=True)}, missing=["?"])
    (counts,) = census_of(schema, RAW[["ward", "again"]]).levels
    assert counts == {"cardiology": 80, "surgery": 40}  # "?" is missing; "icu" has no target
    model = make_private_pipeline(schema, LogisticRegression(20.0, solver=GradientDescent(steps=2)))
    model.fit(pd.concat([RAW[["ward", "again"]]] * 20))
    assert set(model.schema_.columns["ward"].levels) == {"cardiology", "surgery"}
    cells = {"ward": ["CARDIO", "cardiology ", "Surgery", "?", "NULl", "spy"]}
    assert dense(model.schema_.encode(cells)).argmax(axis=1).tolist() == [0, 0, 1, 4, 4, 3]
    again = model_from_json(model_to_json(model))
    assert again.schema == schema and again.schema_ == model.schema_
    assert model.raw_coefficients() == again.raw_coefficients()
    model.report()


def test_which_cells_are_missing_does_not_depend_on_what_is_learnt():
    """The level "na" may be learnt; the cell "NA" stands for a missing value before and after."""
    column = Category(learn=True, casefold=True, missing="null")
    learnt = Category(["na"], learn=True, casefold=True, missing="null")
    for cell in ("NA", "na", "Na", "null", "NULl"):
        found = [
            bool(one.encode(Schema({"x": one, "y": Number(0, 1)})._cells({"x": [cell]}, "x")).null[0])
            for one in (Category([], learn=True, casefold=True, missing="null"), learnt)
        ]
        assert found[0] == found[1], cell
    assert column.spelling == learnt.spelling


BAD = [
    (lambda: Number(0, 1, decimal=""), "decimal must be one character"),
    (lambda: Number(0, 1, decimal=None), "decimal must be one character"),
    (lambda: Number(0, 1, decimal="5"), "decimal must be one character"),
    (lambda: Number(0, 1, decimal=" "), "decimal must be no space"),
    (lambda: Number(0, 1, thousands="-"), "thousands must be one character"),
    (lambda: Number(0, 1, thousands="."), "decimal and thousands must differ"),
    (lambda: Number(0, 1, strip="1"), "strip must be characters"),
    (lambda: Number(0, 1, strip=["EUR", ""]), "strip must be characters"),
    (lambda: Number(0, 1, strip="-"), "strip must be characters"),
    (lambda: Number(0, 1, strip=5), "strip must be a list"),
    (lambda: Weight(1, decimal="12"), "decimal must be one character"),
    (lambda: Offset(0, 1, strip=[1]), "strip must be characters"),
    (lambda: Target(0, 1, casefold=True), "a target with a range has no casefold"),
    (lambda: Target(classes=["a", "b"], decimal=","), "a target with classes has no decimal"),
    (lambda: Date("2000-01-01", "2001-01-01", format="%d.%m"), "a year, a month before a day"),
    (lambda: Date("2000-01-01", "2001-01-01", format="%d.%Y"), "a year, a month before a day"),
    (lambda: Date("2000-01-01", "2001-01-01", format="%x"), "%x is none of them"),
    (lambda: Date("2000-01-01", "2001-01-01", format="%A %d.%m.%Y"), "%A is none of them"),
    (lambda: Date("2000-01-01", "2001-01-01", format="%d.%m.%Y %Y"), "each part of a date once"),
    (lambda: Date("2000-01-01", "2001-01-01", format="%d.%m.%Y %I"), "%I with %p"),
    (lambda: Date("2000-01-01", "2001-01-01", format="%d.%m.%Y%"), "% is none of them"),
    (lambda: Date("2000-01-01", "2001-01-01", format="dd.mm.yyyy"), "a year, a month before a day"),
    (lambda: Date("2000-01-01", "2001-01-01", format=5), "format must be a list"),
    (lambda: Date("2000-01-01", "2001-01-01", format=[5]), "format must be a string"),
    (lambda: Date("2000-01-01", "2001-01-01", format=[]), "format must be at least one"),
    (lambda: Category(["a", "A"], casefold=True), "casefold makes two levels the same"),
    (lambda: Category(["a"], aliases={"b": "c"}), "which is none of the levels"),
    (lambda: Category(["a", "b"], aliases={"b": "a"}), "the alias 'b' is a level already"),
    (lambda: Category(["a", "b"], aliases={"x": "a", "X": "b"}, casefold=True), "stands for two levels"),
    (lambda: Category(["a"], aliases={"x": None}), "aliases must be strings, numbers or booleans"),
    (lambda: Category(["a"], aliases={" ": "a"}), "aliases must be strings, numbers or booleans"),
    (lambda: Category(["a"], aliases=["x"]), "aliases must be a mapping"),
    (lambda: Category(["a"], casefold="yes"), "casefold must be True or False"),
    (lambda: Category(learn=True, aliases={"a": "b", "b": "c"}), "stands for an alias"),
    (lambda: Boolean(aliases={"yes": False}), "the alias 'yes' is a level already"),
    (lambda: Boolean(aliases={"ja": "maybe"}), "which is none of the levels"),
    (lambda: Ordinal(["a", "b"], aliases={"c": "d"}), "which is none of the levels"),
]


@pytest.mark.parametrize(("make", "text"), BAD)
def test_a_spelling_that_cannot_be_meant_is_refused(make, text):
    with pytest.raises(ValueError, match=text) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("cell", ["{0}€", "€{0}", "{0}.{0}", "1.{0},5", "{0} {0}", " {0}"])
def test_a_long_cell_is_read_in_time_that_grows_with_its_length(cell):
    import time

    column = Number(0, 1, decimal=",", thousands=".", strip=["€", "€€", "kr"])
    for fill in ("1" * 2**16, "€" * 2**16, " " * 2**16, "1.123." * 2**14, "kr" * 2**15):
        start = time.process_time()
        Schema({"x": column}).encode({"x": [cell.format(fill)]})
        assert time.process_time() - start < 5


def test_the_table_of_accepted_cells_is_right():
    """Each row in docs/schema.md has a declaration, cells that it reads, and cells that it does not."""
    text = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    part = text.split("| declaration | read as a value | not read |")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines()[2:]]
    assert len(rows) > 12
    for declaration, read, unread in rows:
        (declared,) = re.findall(r"`([^`]*)`", declaration)
        kind, *facts = declared.split(", ", 1)
        line = ", ".join([f'type = "{kind}"', *facts])
        schema = Schema.from_toml(f"[columns]\nother = {{ type = 'boolean' }}\nx = {{ {line} }}")
        for cell in re.findall(r"`([^`]*)`", read):
            found = read_cell(schema, "x", cell)
            assert not found.null and "unknown" not in found.meaning, (declaration, cell, found)
        for cell in re.findall(r"`([^`]*)`", unread):
            found = read_cell(schema, "x", cell)
            assert found.null or "unknown" in found.meaning, (declaration, cell, found)


def test_missing_cells_are_those_of_the_table():
    from dpglm.schema.cells import MISSING_TEXTS

    text = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    (listed,) = re.findall(
        r"Strings that stand for a missing value in every schema:(.*?)\.\n", text, re.DOTALL
    )
    assert set(re.findall(r"`([^`]*)`", listed)) | {""} == MISSING_TEXTS
