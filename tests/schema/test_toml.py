"""Schemas as text, and drafts."""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as datasets
import pyarrow.parquet as parquet
import pytest

from dpglm.schema import Category, Date, Number, Schema, Target
from dpglm.schema.toml import EXAMPLES, KINDS

from .raw_tables import SCHEMA, frame


def test_a_schema_is_the_same_after_it_was_written_and_read(tmp_path):
    odd = Schema(
        {
            'a "quoted" name': Category(["<=50K", 'a"b\\c\n\x7f', "ü", 1, 2.5, True and "x"]),
            "when": Date(dt.date(2000, 1, 1), dt.datetime(2001, 1, 1, 12), missing="2000-06-01"),
            "y": Target(classes=[False, True]),
        },
        missing=["?"],
    )
    for schema in (SCHEMA, odd):
        assert Schema.from_toml(schema.to_toml()) == schema
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    assert Schema.load(tmp_path / "s.toml") == SCHEMA


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[columns", "the schema is no TOML"),
        ("", r"needs a table \[columns\]"),
        ("rows = 5\n[columns]\nx = { type = 'drop' }", "not rows"),
        ("[columns]\nx = 5", "column 'x' needs a type"),
        ("[columns]\nx = { type = 'nombre' }", "column 'x': type must be one of"),
        ("[columns]\nx = { type = 'number' }", "column 'x': a number needs low and high"),
        ("[columns]\nx = { type = 'number', low = '?', high = 1 }", "column 'x': low must be a number"),
        ("[columns]\nx = { type = 'number', low = 0, high = 1, max = 2 }", "column 'x': a number has no max"),
        ("[columns]\nx = { type = 'category', levels = '?' }", "column 'x': levels must be a list"),
        ("[columns]\nx = { type = 'date', low = '?', high = 2020-01-01 }", "column 'x': low must be a date"),
    ],
)
def test_a_wrong_text_is_refused_by_the_name_of_its_column(text, error):
    with pytest.raises(ValueError, match=error):
        Schema.from_toml(text)


def test_a_draft_knows_names_and_types_only(tmp_path):
    raw = pd.DataFrame({"age": [38.5], "job": ["spy"], "old": [True], "day": pd.to_datetime(["2020-01-01"])})
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.Table.from_pandas(raw), path)
    drafts = [
        Schema.draft(table, target="old")
        for table in (raw, pl.from_pandas(raw), pa.Table.from_pandas(raw), datasets.dataset(path),
                      pl.scan_parquet(path), raw.iloc[:0], raw.assign(age=99.0, job="cook"))
    ]  # fmt: skip
    assert len(set(drafts)) == 1
    assert "38.5" not in drafts[0] and "spy" not in drafts[0] and "2020" not in drafts[0]
    assert 'age = { type = "number", low = "?", high = "?", missing = "null" }' in drafts[0]
    assert 'old = { type = "target", classes = [false, true] }' in drafts[0]
    assert '# age = { type = "number", low = 0, high = 120, missing = "indicator" }' in drafts[0]
    with pytest.raises(ValueError, match="column 'age': low must be a number"):
        Schema.from_toml(drafts[0])
    filled = drafts[0].replace('"number", low = "?", high = "?"', '"number", low = 0, high = 120')
    filled = filled.replace('levels = "?"', 'levels = ["spy"]').replace(
        'low = "?", high = "?"', "low = 2000-01-01, high = 2030-01-01"
    )
    assert Schema.from_toml(filled).encode(raw).shape == (1, 4)


def test_a_draft_that_peeks_says_so_and_can_be_used():
    raw = frame(300)
    text = Schema.draft(raw, target="rent", peek=True)
    assert text.startswith("# NOT PRIVATE")
    schema = Schema.from_toml(text)
    assert schema.columns["age"] == Number(10, 98, missing="indicator")
    assert set(schema.columns["job"].levels) == {"clerk", "nurse", "1", "spy", "?"}
    assert isinstance(schema.columns["since"], Date) and schema.target == "rent"
    assert schema.encode(raw).shape[0] == 300


def test_a_draft_shows_a_line_of_each_type_that_can_be_declared():
    text = Schema.draft({"x": [1.0]})
    assert set(EXAMPLES) == set(KINDS)
    for kind, line in EXAMPLES.items():
        assert f"# {line}\n" in text
        (column,) = (
            c
            for n, c in Schema.from_toml(f"[columns]\nz = {{ type = 'boolean' }}\n{line}").columns.items()
            if n != "z"
        )
        assert column.kind == kind
    assert Schema.from_toml("\ufeff[columns]\nz = { type = 'boolean' }").features == ["z"]


def test_a_draft_that_peeks_proposes_spellings_and_asks_about_ids():
    n = 400
    raw = {
        "id": [f"P{k:04d}" for k in range(n)],
        "row": list(range(n)),
        "day": [f"{k % 28 + 1}.0{k % 9 + 1}.2025" for k in range(n)],
        "us": [f"0{k % 9 + 1}/{k % 28 + 1}/2025 1:05 PM" for k in range(n)],
        "cost": [f"{k * 1.5 + 1000:,.2f}".replace(",", " ").replace(".", ",") + " €" for k in range(n)],
        "plain": [f"{k + 0.5}" for k in range(n)],
        "ward": ["Surgery", "surgery", "icu", "ICU"] * (n // 4),
        "note": [f"seen {k} times" for k in range(n)],
        "y": [f"{k},5" for k in range(n)],
    }
    text = Schema.draft(raw, target="y", peek=True)
    lines = {line.split(" = ")[0]: line for line in text.split("[columns]\n")[1].splitlines()}
    assert lines["id"].startswith('id = { type = "?" }  # an id? then "unit"')
    assert lines["row"].endswith('# all numbers differ: an id? then "unit" or "drop"')
    assert lines["day"].endswith('format = "%d.%m.%Y" }  # dates as %d.%m.%Y')
    assert 'format = "%m/%d/%Y %I:%M %p"' in lines["us"] and "#" not in lines["plain"]
    assert lines["cost"].endswith('# numbers with decimal = "," and thousands = " " and strip = "€"')
    assert lines["ward"].endswith("casefold = true }  # some levels differ by case only")
    assert lines["note"] == 'note = { type = "hashed", buckets = 1024 }  # or "text", whose words count'
    assert lines["y"] == 'y = { type = "target", low = 0.5, high = 399.5, decimal = "," }'
    schema = Schema.from_toml(text.replace('id = { type = "?" }', 'id = { type = "drop" }'))
    found = schema.encode(raw)
    assert not (found != found).sum() and len(schema.columns["ward"].levels) == 2


def test_drafts_refuse_what_has_no_columns():
    with pytest.raises(ValueError, match="has no columns"):
        Schema.draft([[1, 2]])
    with pytest.raises(ValueError, match="no column 'z'"):
        Schema.draft({"x": [1]}, target="z")
    with pytest.raises(ValueError, match="needs a table in memory"):
        Schema.draft(pl.LazyFrame({"x": [1]}), peek=True)
