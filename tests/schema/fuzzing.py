"""Random cells of every type in raw tables: does an error, a warning or another record tell of a cell?

Each case puts anything into a cell of a table, or into a line of a CSV file, some at a time, and compares
what the other records become before and after; or it declares any spelling of a column and reads any cell.
``python tests/schema/fuzzing.py 100000`` runs so many cases.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from raw_tables import SCHEMA, SPELLED, frame, spelled_frame
else:
    from .raw_tables import SCHEMA, SPELLED, frame, spelled_frame

from dpglm.data.files import source_of_file
from dpglm.schema import Boolean, Category, Column, Date, Number, Schema
from dpglm.schema.diagnosis import read_cell
from dpglm.schema.source import EncodedSource

MARK = "8675309"
ROWS, CELLS = 24, 12


class Rude:
    """An object that raises, with the marked text, whatever is asked of it."""

    def _raise(self, *_, **__):
        raise RuntimeError(f"secret {MARK}")

    __float__ = __eq__ = __hash__ = __repr__ = __str__ = __len__ = __array__ = __bool__ = _raise


class Text(str):
    """A text that compares as nothing else does."""

    def __eq__(self, other):
        raise RuntimeError(f"secret {MARK}")

    __hash__ = None


ODD = (
    None, pd.NA, pd.NaT, "", " ", f"secret {MARK}", MARK, b"secret", b"\xff\xfe", 8675309 * 10**400,
    "9" * 5000, 8675309 + 1j, {MARK: 1}, [8675309.0], (1, 2), {1}, object(), Rude(), Text("clerk"),
    np.array([8675309.0]), np.array("clerk"), dt.datetime(2010, 1, 1), dt.date(1, 1, 1),
    dt.datetime.max, dt.time(1),
    dt.timedelta(1), dt.datetime(2010, 1, 1, tzinfo=dt.UTC), np.datetime64("2020"),
    np.datetime64("NaT"), np.timedelta64(1, "D"), slice(None), ..., lambda: None, Decimal("NaN"),
    Decimal("sNaN"), Decimal("1e9999"), Fraction(1, 3), True, False, np.bool_(True), np.str_("clerk"),
    np.float32(0.5), np.int8(3), np.longdouble("1e4000"), float("nan"), float("inf"), -float("inf"), 1e308,
    5e-324, -0.0, 2**63, -(2**80), "1e999", "-1e-999", "1_000", "infinity", "nan", "٣", "１", "\x00",
    "\ud800", "clerk\x00", "CLERK", " clerk ", "01", "1", "1.0", 1, 1.0, "true", "TRUE", "2010-01-01",
    "2010-02-30",
    "2010-W01-1", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "20100101", "=1+1", "'; drop",
    "?", "a" * 10_000, "\u202e", "e\u0301", "\r\n", '"', ",", "0x10", "1e5", "+5", "5.", ".5", "1,5",
    "١٢", "½", "15.04.2010", "5.4.2010", "31.02.2010", "04/15/10 1:05 PM", "15 Apr 2010", "1.123,40 €",
    "-€5", "1,123.40", "1 123", "1\u202f123", "12%", "<5", "€", "EUR", "kr.", "Clerk ", "rn", "ja", "NEIN",
    "MID", "€" * 5000, "1." * 5000, " " * 5000, "ſ", "İ", "ß",
)  # fmt: skip
TABLES = ((SCHEMA, frame), (SPELLED, spelled_frame))
"""Schemas, and what makes records for them."""

LETTERS = list("€%0123456789.,-+eE \t\"'\\\x00\ud800äß日😀abcnNaAtTfF:/TZ_#;|")


def odd_cell(rng: np.random.Generator) -> object:
    """Any object, or a random text or number."""
    kind = rng.integers(4)
    if kind == 0:
        return "".join(rng.choice(LETTERS, rng.integers(0, 12)))
    if kind == 1:
        return float(rng.integers(0, 2**64, dtype=np.uint64).view(np.float64))
    return ODD[rng.integers(len(ODD))]


def cells(cases: int, seed: int = 0) -> list[str]:
    """What went wrong with so many odd cells."""
    rng, wrong = np.random.default_rng(seed), []
    prepared = [_tables(schema, made) for schema, made in TABLES]
    for case in range(0, cases, CELLS):
        schema, names, tables, clean = prepared[rng.integers(len(prepared))]
        which = rng.integers(5)
        raw = {name: tables[which][name].tolist() for name in names}
        places = rng.integers(ROWS // 2, ROWS, CELLS)
        for place in places:
            raw[rng.choice(names)][place] = odd_cell(rng)
        arrays = {name: np.empty(ROWS, dtype=object) for name in names}
        for name in names:
            for k in range(ROWS):
                arrays[name][k] = raw[name][k]
        others = np.setdiff1d(np.arange(ROWS), places)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                after = encoded(schema, raw)
                again = encoded(schema, pd.DataFrame(arrays, dtype=object) if case // CELLS % 2 else arrays)
        except Exception as error:  # whatever it is, it is reported
            wrong.append(f"case {case} raised {type(error).__name__}")
            continue
        if not np.array_equal(after, again, equal_nan=True):
            wrong.append(f"case {case} differs between containers")
        if not np.array_equal(after[others], clean[which][others], equal_nan=True):
            wrong.append(f"case {case} changed another record")
        if not np.linalg.norm(np.nan_to_num(after), axis=1).max() <= schema.radius * (1 + 1e-12):
            wrong.append(f"case {case} is longer than the radius")
    return wrong


def _tables(schema: Schema, made: object) -> tuple:
    """A schema, the columns that become features, tables of clean records and what they become."""
    names = [name for name, column in schema.columns.items() if isinstance(column, Column)]
    tables = [made(ROWS, k)[names].astype(object) for k in range(5)]
    clean = [encoded(schema, {name: table[name].tolist() for name in names}) for table in tables]
    return schema, names, tables, clean


def encoded(schema: Schema, table: object) -> np.ndarray:
    """The features of a table."""
    found = schema.encode(table)
    return found.toarray() if sp.issparse(found) else found


MARKS = list(",.;:' \u00a0_-+5eé€#|\\^]") + ["", "..", None, 5]
SIGNS = [
    "",
    "€",
    "€%",
    "a-",
    "-",
    "1",
    " ",
    "[",
    "()",
    ["EUR"],
    ["kr.", "€"],
    ["", "x"],
    ["^", "\\"],
    [1],
    None,
    5,
]
DIRECTIVES = [*"%YymbBdHIpMSfzjaAZGuUVWcxX", "Y", "m", "d", "", " "]
WORDS = ["clerk", "Clerk", "nurse", "NA", "1", "", " ", 1, 2.0, True, None, "x", "ß", "SS", [1]]


def odd_column(rng: np.random.Generator) -> Column:
    """A column of any declared spelling."""

    def any_of(values: list) -> object:
        return values[rng.integers(len(values))]

    kind = rng.integers(4)
    if kind == 0:
        marks = {"decimal": any_of([",", ".", *MARKS]), "thousands": any_of([None, ".", ",", *MARKS])}
        return Number(-1e6, 1e6, **marks, strip=any_of(SIGNS), missing="indicator")
    if kind == 1:
        formats = [
            "".join(
                "%" + any_of(DIRECTIVES) + any_of([".", "/", " ", "", ":", "x", "("])
                for _ in range(rng.integers(1, 6))
            )
            for _ in range(rng.integers(1, 3))
        ]
        usual = any_of(["%d.%m.%Y", "%m/%d/%y", "%Y%m%d", "%d %b %Y", "ISO8601", "%d.%m.%Y %H:%M"])
        return Date("1900-01-01", "2100-01-01", format=any_of([usual, usual, formats]), missing="indicator")
    aliases = {
        any_of(["a", "RN", "x", "1", 2, "ß", "Ja", "?"]): any_of(WORDS) for _ in range(rng.integers(0, 3))
    }
    casefold = bool(rng.integers(2))
    if kind == 2:
        return Boolean(aliases={key: bool(rng.integers(2)) for key in aliases}, casefold=casefold)
    levels = [word for word in WORDS[: rng.integers(1, 9)] if word not in ("", " ")]
    return Category(levels, aliases=aliases or None, casefold=casefold, missing="indicator")


def spellings(cases: int, seed: int = 0) -> tuple[list[str], int]:
    """What went wrong with so many cells in columns of any declared spelling; how many were declared."""
    rng, wrong, declared = np.random.default_rng(seed), [], 0
    for case in range(0, cases, CELLS):
        try:
            schema = Schema({"x": odd_column(rng)}, missing=["?"])
        except ValueError as error:
            if "\n" in str(error):
                wrong.append(f"spelling {case} was refused in several lines")
            continue
        except Exception as error:  # whatever it is, it is reported
            wrong.append(f"spelling {case} raised {type(error).__name__}: {error}")
            continue
        declared += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                if Schema.from_toml(schema.to_toml()) != schema:
                    wrong.append(f"spelling {case} is another one after it was written")
                column = [odd_cell(rng) for _ in range(CELLS)]
                whole = encoded(schema, {"x": column})
                alone = [encoded(schema, {"x": [cell]}) for cell in column]
                for cell in column:
                    if type(cell) is str:
                        read_cell(schema, "x", cell)
        except Exception as error:  # whatever it is, it is reported
            wrong.append(f"spelling {case} raised {type(error).__name__}: {error}")
            continue
        if not np.array_equal(whole, np.concatenate(alone), equal_nan=True):
            wrong.append(f"spelling {case} reads a cell by the others")
    return wrong, declared


def files(cases: int, folder: Path, seed: int = 0) -> list[str]:
    """What went wrong with so many lines of CSV files that were changed to anything, and with whole files."""
    per_schema = cases // len(TABLES)
    return [text for table in TABLES for text in _files(per_schema, folder, seed, *table)]


def _files(cases: int, folder: Path, seed: int, schema: Schema, made: object) -> list[str]:
    rng, wrong = np.random.default_rng(seed), []
    header, *lines = made(ROWS).to_csv(index=False).encode().splitlines()
    path = folder / "table.csv"
    path.write_bytes(b"\n".join([header, *lines, b""]))
    clean = from_file(schema, path)
    for case in range(0, cases, CELLS):
        changed, places = list(lines), set(rng.integers(0, ROWS, CELLS).tolist())
        for place in places:
            changed[place] = odd_line(changed[place], rng)
        first = odd_line(header, rng) if rng.random() < 0.05 else header
        path.write_bytes(b"\n".join([first, *changed, b""]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = from_file(schema, path)
        except ValueError as error:
            if first == header or MARK in str(error):
                wrong.append(f"file {case} raised a ValueError")
            continue
        except Exception as error:  # whatever it is, it is reported
            wrong.append(f"file {case} raised {type(error).__name__}")
            continue
        others = np.setdiff1d(np.arange(ROWS), list(places))
        if first == header and len(found) != ROWS:
            wrong.append(f"file {case} has another number of records")
        elif first == header and not np.array_equal(found[others], clean[others], equal_nan=True):
            wrong.append(f"file {case} changed another record")
    return wrong


def from_file(schema: Schema, path: Path) -> np.ndarray:
    """The features of all records of a file."""
    rows, _, _ = EncodedSource(source_of_file(path, ()), schema).in_memory()
    return rows.toarray() if sp.issparse(rows) else rows


def odd_line(line: bytes, rng: np.random.Generator) -> bytes:
    """A line with some of its bytes changed, or another one, that is not blank; without an end of a line."""
    kind = rng.integers(7)
    if kind == 0:
        line = rng.bytes(rng.integers(1, 60))
    elif kind == 6:
        line = bytes(rng.choice(list(b", \t\r\x1c"), rng.integers(0, 4)).tolist())
    elif kind == 1:
        line = line[: rng.integers(1, len(line))]
    elif kind == 2:
        line = line + b"," * int(rng.integers(1, 2000)) + MARK.encode()
    elif kind == 3:
        line = b'"' + line
    else:
        found = bytearray(line)
        for _ in range(rng.integers(1, 6)):
            place, byte = rng.integers(0, len(found)), rng.choice(list(b'",;\x00\xff\r\t 9e-\xc3'))
            found[place : place + int(rng.integers(0, 2))] = bytes([byte])
        line = bytes(found)
    line = line.replace(b"\n", b"?")
    return line if line.strip(b" \t\r") else b","


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    problems = cells(count, seed)
    found, declared = spellings(count, seed)
    problems += found
    print(f"{declared} of {-(-count // CELLS)} spellings could be declared")
    with tempfile.TemporaryDirectory() as name:
        problems += files(count, Path(name), seed)
    print("\n".join(problems[:20]) or "nothing was raised, and no record changed another")
    sys.exit(bool(problems))
