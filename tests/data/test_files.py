"""Files with a record on each line, and files by the ends of their names."""

import gzip
import io

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from dpglm.data import files
from dpglm.data.files import MAX_LINE, CsvFile, source_of_file
from dpglm.errors import UnreadableFile
from dpglm.schema import Category, Number, Schema, Target
from dpglm.schema.source import EncodedSource

SCHEMA = Schema({"age": Number(0, 100), "job": Category(["clerk", "a, b"]), "y": Target(0, 1)})


def written(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def encoded(path):
    rows, target, _ = EncodedSource(source_of_file(path, ["age", "job", "y"]), SCHEMA).in_memory()
    return (rows.toarray() if sp.issparse(rows) else rows), target


def test_an_archive_that_is_broken_inside_cannot_be_read(tmp_path):
    packed = bytearray(gzip.compress(b"y,age,job\n1,50,clerk\n" * 50))
    packed[12:40] = b"\xc9U\xe8x\xeez%\xb4" * 3 + b"\x00" * 4
    with pytest.raises(UnreadableFile, match="cannot be read"):
        encoded(written(tmp_path, bytes(packed), "t.csv.gz"))


HEADER = "y,age,job\n"
ROWS = "1,50,8675309\n"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ((HEADER + ROWS).replace("\n", "\r"), "carriage returns alone, as on old Macs"),
        ((HEADER + ROWS * 200_000).replace("\n", "\r"), "carriage returns alone, as on old Macs"),
        *[((HEADER + ROWS).encode(code), "UTF-16 or UTF-32")
          for code in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be")],
        ("", "no first line that names its columns"),
        ("\n \n", "no first line that names its columns"),
        ('y,"age\n', "no first line that names its columns"),
    ],
    ids=range(10),
)  # fmt: skip
def test_ends_of_lines_and_encodings_of_others_are_named_and_nothing_is_quoted(content, cause, tmp_path):
    with pytest.raises(UnreadableFile, match=cause) as refused:
        encoded(written(tmp_path, content))
    assert "8675309" not in str(refused.value)


def test_a_line_that_cannot_be_read_is_a_null_record_and_others_stay(tmp_path):
    lines = [
        "y,age,job",
        '1,50,"a, b"',
        "0,50",
        '0,50,"clerk',
        "0,50,clerk,7",
        "",
        "  ",
        '1,100,"cl""erk"',
        "1,x,",
    ]
    rows, target = encoded(written(tmp_path, "\r\n".join(lines)))
    assert rows.shape == (6, 4)  # two lines are blank
    np.testing.assert_array_equal(target, [1, *[np.nan] * 3, 1, 1])
    assert np.isnan(rows).any(axis=1).tolist() == [False, *[True] * 3, False, True]
    assert rows[0].tolist() == [0, 0, 1, 0] and rows[4].tolist() == [1, 0, 0, 1]


def test_a_line_that_is_too_long_is_one_record(tmp_path):
    text = b"age,job,y\n50,clerk,1\n" + b"1," * (2 * MAX_LINE) + b"\n50,clerk,1\n" + b"x" * (MAX_LINE + 5)
    rows, _ = encoded(written(tmp_path, text))
    assert np.isnan(rows).any(axis=1).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.tsv", "t.jsonl", "t.ndjson.gz", "t.parquet", "t.arrow"]
)
def test_every_kind_of_file_gives_the_same_rows(name, tmp_path):
    raw = pd.DataFrame({"job": ["clerk", "spy", None], "y": [0.25, 1, 0], "age": [10, 20.5, 101]})
    path = tmp_path / name
    frame, text = pl.from_pandas(raw), io.BytesIO()
    if ".csv" in name or ".tsv" in name:
        frame.write_csv(text, separator="\t" if "tsv" in name else ",")
    elif "json" in name:
        frame.write_ndjson(text)
    elif "parquet" in name:
        frame.write_parquet(text)
    else:
        frame.write_ipc(text, compat_level=pl.CompatLevel.oldest())
    path.write_bytes(gzip.compress(text.getvalue()) if name.endswith("gz") else text.getvalue())
    rows, target = encoded(path)
    np.testing.assert_array_equal(rows, SCHEMA.encode(raw).toarray())
    np.testing.assert_array_equal(target, raw["y"])


def test_json_lines_that_are_no_objects_are_null_records(tmp_path):
    lines = [
        '{"age": 50, "job": "clerk", "y": 1}',
        "[1]",
        "{",
        "9" * 6000,
        '{"age": [1], "y": {}}',
        "[" * 100_000,
    ]
    rows, target = encoded(written(tmp_path, "\n".join(lines), "t.jsonl"))
    assert np.isnan(rows).any(axis=1).tolist() == [False, *[True] * 5] and np.isnan(target[1:]).all()


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("t.csv", b"", "no first line that names its columns"),
        ("t.csv", b'"age,job', "no first line that names its columns"),
        ("t.csv", b" \r\n\t\n", "no first line that names its columns"),
        ("t.csv", b"8675309,clerk\n1,2\n", "the table has no column 'age', 'job', 'y'"),
        ("t.csv", b"age,job,y,age\n1,clerk,1,1", "different names"),
        ("t.csv.gz", b"8675309", "'t.csv.gz' cannot be read"),
        ("t.parquet", b"8675309", "'t.parquet' cannot be read as parquet"),
        ("t.xlsx", b"8675309", "must end in one of .csv"),
        ("missing.csv", None, "there is no file"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(name, content, error, tmp_path):
    path = tmp_path / name if content is None else written(tmp_path, content, name)
    with pytest.raises(ValueError, match=error) as caught:
        encoded(path)
    assert "8675309" not in str(caught.value)


def test_a_file_without_records_is_a_table_of_none(tmp_path):
    rows, target = encoded(written(tmp_path, b"age,job,y\n", "t.csv"))
    assert rows.shape[0] == len(target) == 0


def test_a_file_that_ends_within_its_compression_is_refused(tmp_path):
    whole = gzip.compress(b"age,job,y\n" + b"50,clerk,1\n" * 1000)
    with pytest.raises(UnreadableFile, match="cannot be read"):
        encoded(written(tmp_path, whole[:-20], "t.csv.gz"))


def test_arrow_reads_lines_as_they_are_read_one_by_one(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    letters = list("0123456789.,,,,, \t;'\\-eE\u00e4\u2028\x0b\x1cNA")
    lines = ["".join(rng.choice(letters, rng.integers(3, 12))) + "x" for _ in range(4_000)]
    lines = [line for line in lines if line.count(",") == 2]
    assert len(lines) > 200
    source = CsvFile(written(tmp_path, "age,job,y\n" + "\n".join(lines)))
    ((fast, _),) = source.blocks()
    assert not isinstance(fast, dict)
    monkeypatch.setattr(files, "arrow_cells", lambda *_: None)
    ((slow, _),) = source.blocks()
    assert fast.to_pydict() == slow


BLANK, TABS = ["", " ", "   "], ["\t\t", " \t \t "]
NOT_BLANK = ["\x1c", "\x0b", ",,", ", ,", "\u2028", "\xa0", '""']


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.tsv.gz", "t.jsonl", "t.jsonl.gz"])
@pytest.mark.parametrize("line", [*BLANK, *TABS, *NOT_BLANK], ids=repr)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_blank_line_is_no_record_and_any_other_is_one(line, name, end, place, tmp_path):
    """As pandas has it: separators and quotes make a record, spaces and other tabs do not."""
    mark = "\t" if "tsv" in name else ","
    good = '{"age": 50, "job": "clerk", "y": 1}' if "json" in name else mark.join(["50", "clerk", "1"])
    lines = [good] * 2
    lines.insert(place, line)
    header = [] if "json" in name else ["", " ", mark.join(["age", "job", "y"])]
    is_blank = line in BLANK or line in TABS and mark == ","
    for closed in ("", end):
        text = end.join(header + lines) + closed
        content = text.encode()
        path = written(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
        rows, target = encoded(path)
        if "json" not in name and line != "\xa0" and end == "\n":
            assert len(pd.read_csv(io.StringIO(text), sep=mark)) == len(rows)
        assert source_of_file(path, ["age", "job", "y"]).n_samples == len(rows) == 3 - is_blank
        if not is_blank:
            assert np.isnan(rows[place]).any() and np.isnan(target[place])
            rows, target = np.delete(rows, place, axis=0), np.delete(target, place)
        assert (rows == [0, 1, 0, 0]).all() and (target == 1).all()


@pytest.mark.parametrize(
    "lines", [["", "1"], ["1", ""], ["", ""], [" ", "\t", "1"], ["", "x" * 40, '"a"', ""], ['""', "1"]]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_blank_line_of_one_column_is_no_record_either(lines, end, tmp_path, monkeypatch):
    text = end.join(["x", *lines, ""])
    source, kept = CsvFile(written(tmp_path, text)), [line for line in lines if line.strip()]
    blocks = list(source.blocks())
    assert [isinstance(block, dict) for block, _ in blocks] == [any('"' in line for line in kept)] * len(
        blocks
    )
    fast = [block if isinstance(block, dict) else block.to_pydict() for block, _ in blocks]
    monkeypatch.setattr(files, "arrow_cells", lambda *_: None)
    assert fast == [block for block, _ in source.blocks()]
    assert fast == ([{"x": [line.strip('"') for line in kept]}] if kept else [])
    assert source.n_samples == len(kept) == len(pd.read_csv(io.StringIO(text)))


def test_lines_are_read_one_by_one_where_arrow_fails(tmp_path, monkeypatch):
    from pyarrow import csv

    source = CsvFile(written(tmp_path, "age,job,y\n50,clerk,1\n"))
    ((fast, _),) = source.blocks()

    def fail(*_, **__):
        raise OverflowError("value too large to convert to int32_t")

    monkeypatch.setattr(csv, "ReadOptions", fail)
    ((slow, _),) = source.blocks()
    assert slow == fast.to_pydict() == {"age": ["50"], "job": ["clerk"], "y": ["1"]}


def test_lines_are_counted_and_read_alike(tmp_path):
    path = written(tmp_path, "age,job,y\n" + "50,clerk,1\n\n" * 40_000)
    source = CsvFile(path)
    assert source.n_samples == 40_000 == sum(len(block["age"]) for block, _ in source.blocks())
