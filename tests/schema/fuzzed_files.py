"""Random files, benign and hostile: does a command crash, hang, or quote what is in them?

Each case writes a small CSV, TSV or JSON lines file, plain or compressed, well formed or not, and runs
`dpglm fit`, `predict`, `evaluate` or `schema draft` on it. A command must end with status 0, or with status
2 and one sentence; its output must not have the digits of `MARK`.
``python tests/schema/fuzzed_files.py 100000`` runs so many cases.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from typer.main import get_command

from dpglm.cli import app

COMMAND = get_command(app)

MARK = "8675309"
SLOW = 30.0
"""Seconds: no case may take longer."""

SCHEMA = """
[columns]
age = { type = "number", low = 0, high = 100 }
job = { type = "category", levels = ["clerk", "nurse"] }
since = { type = "date", low = 1990-01-01, high = 2030-01-01, unit = "years", missing = "indicator" }
home = { type = "target", classes = ["owned", "rented"] }
"""
NAMES = ["age", "job", "since", "home"]
CELLS = (
    MARK, f"-{MARK}", f"{MARK}e{MARK}", "nan", "inf", "", " ", '"', '""', f'"{MARK}', f'{MARK}"', "'", "\\",
    "\t", "\r", "\x00", "\ufeff", "\u2028", "\u0085", "é", "漢", "🙂", f"=cmd|{MARK}", "clerk", "nurse",
    '"a, b"', "NULL", "2003-05-17", "0000-00-00", "9999-99-99", "12:00", "true", f"[{MARK}]",
    f'{{"a": {MARK}}}', "1e400", "0x10", "1_000", "1,000", "owned", "rented", MARK * 300, f"\x1b[31m{MARK}",
)  # fmt: skip
ENCODINGS = (
    "utf-8",
    "utf-8",
    "utf-8",
    "utf-8-sig",
    "latin-1",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "cp037",
    "utf-7",
)
RUBBISH = (
    b"", b"\n", b"\n\n\n", b"\x00" * 50, b"\xff\xfe", b"\xef\xbb\xbf", b"PAR1",
    b"ARROW1\x00\x00", b"\x1f\x8b\x08", b"PK\x03\x04", b'"', b",", b",,,,\n",
    b"age,job,since,home", b"age,job,since,home\n", b"{", b"[]\n", b"null\n",
)  # fmt: skip


def content(rng: np.random.Generator) -> tuple[str, bytes]:
    """The end of a file's name, and its content."""
    kind = rng.integers(10)
    if kind == 0:
        junk = RUBBISH[rng.integers(len(RUBBISH))] + rng.bytes(int(rng.integers(60))) * int(rng.integers(4))
        end = (".csv", ".tsv", ".jsonl", ".csv.gz", ".parquet", ".arrow", ".txt")[rng.integers(7)]
        return end, junk + b"\n" + MARK.encode()
    names = list(NAMES)
    change = rng.integers(8)
    if change == 0:
        names.pop(int(rng.integers(4)))
    elif change == 1:
        names.insert(int(rng.integers(5)), ("more", "age", "", f'"{"x" * 40}"', "\x00")[rng.integers(5)])
    elif change == 2:
        rng.shuffle(names)
    rows = [_row(rng, len(names)) for _ in range(int(rng.integers(0, 12)))]
    if kind == 1:
        cells = [CELLS[k] for k in rng.integers(len(CELLS), size=10)]
        lines = [
            f'{{"age": {a}, "job": "{b}", "since": null, "home": "owned"}}'
            for a, b in zip(cells[:5], cells[5:], strict=True)
        ]
        return ".jsonl", "\n".join([*lines, f'{{"age": {MARK}']).encode("utf-8", "surrogatepass")
    separator = "," if kind < 8 else "\t"
    end = ("\n", "\n", "\r\n", "\r")[rng.integers(4)]
    text = end.join([separator.join(names), *(separator.join(row) for row in rows)]) + end * int(
        rng.integers(3)
    )
    encoded = text.encode(ENCODINGS[rng.integers(len(ENCODINGS))], "replace")
    if rng.random() < 0.2:
        place = int(rng.integers(len(encoded) + 1))
        encoded = encoded[:place] + rng.bytes(int(rng.integers(1, 9))) + encoded[place:]
    name = ".csv" if separator == "," else ".tsv"
    if rng.random() < 0.15:
        packed = gzip.compress(encoded, 1)
        return f"{name}.gz", packed[: len(packed) - int(rng.integers(9)) * int(rng.integers(2))]
    return name, encoded


def _row(rng: np.random.Generator, width: int) -> list[str]:
    usual = [f"{rng.uniform(0, 100):.1f}", "clerk", "2010-01-01", "owned" if rng.random() < 0.5 else "rented"]
    row = [
        usual[k] if k < 4 and rng.random() < 0.8 else CELLS[rng.integers(len(CELLS))] for k in range(width)
    ]
    if rng.random() < 0.1:
        row = row[: int(rng.integers(width + 1))] + row[: int(rng.integers(3))]
    return row


def commands(folder: Path, file: Path, rng: np.random.Generator) -> list[str]:
    """The words of a command on a file."""
    kind = rng.integers(8)
    if kind == 0:
        return ["schema", "draft", str(file)]
    if kind < 5:
        return ["predict", str(folder / "model.json"), str(file), "--out", str(folder / "out.csv")]
    if kind == 5:
        return [
            "evaluate",
            str(folder / "model.json"),
            str(file),
            "--epsilon",
            "1",
            "--delta",
            "0.01",
            "--quiet",
        ]
    words = ["fit", str(file), str(folder / "schema.toml"), "--out", str(folder / "m.json"), "--epsilon", "1"]
    return [*words, "--delta", "0.01", "--quiet", *(["--stream"] if kind == 6 else [])]


def outcome(words: list[str]) -> tuple[int, str]:
    """The status and the output of a command."""
    out = io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = COMMAND(words, standalone_mode=False)
        except SystemExit as end:
            code = end.code
    return int(code or 0), out.getvalue()  # type: ignore[call-overload]


def prepared(folder: Path) -> None:
    """A schema, and a model to predict with."""
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    rng = np.random.default_rng(0)
    rows = [
        f"{age:.0f},clerk,2010-01-01,{'owned' if age > 50 else 'rented'}" for age in rng.uniform(0, 100, 200)
    ]
    (folder / "good.csv").write_text("\n".join([",".join(NAMES), *rows]) + "\n", encoding="utf-8")
    words = [
        "fit",
        str(folder / "good.csv"),
        str(folder / "schema.toml"),
        "--out",
        str(folder / "model.json"),
    ]
    code, said = outcome([*words, "--quiet"])
    assert code == 0, said


def run(cases: int, seed: int = 0) -> Counter[int]:
    """Run cases; how often each status was returned."""
    rng, found = np.random.default_rng(seed), Counter[int]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared(folder)
        for case in range(cases):
            end, data = content(rng)
            file = folder / f"t{end}"
            file.write_bytes(data)
            words = commands(folder, file, rng)
            began = time.monotonic()
            code, said = outcome(words)
            took = time.monotonic() - began
            quoted = (
                MARK in said and words[0] != "schema"
            )  # a first line is taken for names, which are public
            if code not in (0, 2) or quoted or "Traceback" in said or took > SLOW:
                raise AssertionError(
                    f"case {case} of seed {seed}: {words[0]} on {data!r} gave {code}: {said}"
                )
            found[code] += 1
            file.unlink()
            if case % 1000 == 999:
                print(case + 1, dict(found), file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(run(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 0))
