"""Random commands, schemas and model files: does anything crash, hang, or cost an account what was refused?

Each case runs a command in this process: with options that cannot be meant, with a schema that was edited, or
with a model file that was edited and sealed anew. It must end with status 0, or with status 2 and one
sentence; the account of the ledger pays for what was released, and for nothing that was refused.
``python tests/fuzzed_commands.py 100000`` runs so many cases.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.main import get_command

from dpglm import Ledger, LogisticRegression, make_private_pipeline, strict
from dpglm.cli import app
from dpglm.estimators.stored import stored
from dpglm.schema import Schema

COMMAND = get_command(app)
SLOW = 30.0
"""Seconds: no case may take longer."""

SCHEMA = """\
[columns]
age = { type = "number", low = 0, high = 100 }
job = { type = "category", levels = ["clerk", "nurse"] }
since = { type = "date", low = 1990-01-01, high = 2030-01-01, unit = "years", missing = "indicator" }
home = { type = "target", classes = ["owned", "rented"] }
"""
ODD_WORDS = (
    "", " ", "nan", "inf", "-inf", "-1", "0", "1", "2", "0.5", "1e-320", "1e-12", "1e300", "1e400", "9" * 400,
    "x", "True", "None", "-", "é", "🙂", "\x00", "\ud800", "*", ".", "..", "/", "~", "a" * 5000, "{}", "[]",
    "1,2", "0x10", "1_0", "zero-out", "add-remove", "accuracy", "Ridge", "LinearSVC", "sqlite:///none.db#a",
    "sqlite:///", "postgresql://localhost:1/x#a",
)  # fmt: skip
ODD_FACTS = (
    "true", "0", "-1", "1e400", "nan", "inf", '""', '" "', '"x"', "[]", "{}", "[1, 2]", '["a", "a"]', "[[1]]",
    "1990-01-01", "12:00:00", "2020-01-01T00:00:00Z", "9" * 30, '"learn"', '"number"', '"unit"', '"weight"',
    '"text"', '"hashed"', '"ordinal"', '"boolean"', '"offset"', '"exposure"', '"drop"', '"indicator"',
    '["clerk", 1]', "[nan]", "-0.0", "1e-320", '"\\u0000"',
)  # fmt: skip
ODD_KEYS = (
    "low", "high", "levels", "type", "unit", "missing", "learn", "most", "weight", "cuts", "knots", "other",
    "baseline", "classes", "transform", "buckets", "key", "row_norm", "interactions", "columns", "", "é",
)  # fmt: skip
ODD_VALUES = (
    None, True, False, 0, -1, 1, 2, 1e308, 0.5, "inf", "-inf", "nan", "", "x", [], {}, [[]], [None], [1],
    [[1]], {"a": 1}, "1", 10**30, "replace-one", "LogisticRegression", "\x00",
)  # fmt: skip


def pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def of_options(rng: np.random.Generator, folder: Path) -> list[str]:
    """A command whose options, or one of whose files, cannot be meant."""
    data, schema, model = (str(folder / name) for name in ("good.csv", "schema.toml", "model.json"))
    out = ["--out", str(folder / "out")]
    every = {
        "plan": ([schema, "--rows", "500"], ("rows", "units", "epsilon", "delta", "neighbours", "model")),
        "fit": ([data, schema, *out], ("epsilon", "delta", "neighbours", "model", "ledger", "report")),
        "predict": ([model, data, *out], ()),
        "evaluate": (
            [model, data, "--epsilon", "1"],
            ("metric", "delta", "neighbours", "ledger", "level", "log-loss-cut"),
        ),
        "show": ([model], ("level",)),
        "report": ([model, *out], ("level", "ledger", "evaluation", "audit")),
        "export": ([model, "--card", str(folder / "card.md")], ("level", "ledger", "evaluation", "registry")),
    }
    name = pick(rng, list(every))
    words, options = every[name]
    words = list(words)
    if not options or rng.random() < 0.3:
        words[int(rng.integers(len(words)))] = pick(rng, ODD_WORDS)
    for _ in range(int(rng.integers(1, 3)) if options else 0):
        words += [f"--{pick(rng, options)}", pick(rng, ODD_WORDS)]
    words += [f"--{pick(rng, ('json', 'stream', 'quiet', 'nothing', 'proba'))}"] * int(rng.integers(2))
    return [name, *words]


def of_schemas(rng: np.random.Generator, folder: Path) -> list[str]:
    """A command on a schema that was edited."""
    lines = SCHEMA.splitlines()
    for _ in range(int(rng.integers(1, 3))):
        k, way = int(rng.integers(len(lines))), int(rng.integers(7))
        before, equals, fact = lines[k].rpartition(" = ")
        if way == 0:
            lines[k] = f"{before}{equals}{pick(rng, ODD_FACTS)}"
        elif way == 1:
            lines[k] = lines[k].replace(" }", f", {pick(rng, ODD_KEYS)} = {pick(rng, ODD_FACTS)} }}")
        elif way == 2:
            words = lines[k].split('"')
            words[int(rng.integers(len(words)))] = pick(
                rng, ("number", "unit", "learn", "category", "date", "é")
            )
            lines[k] = '"'.join(words)
        elif way == 3:
            lines.insert(k, lines[int(rng.integers(len(lines)))])
        elif way == 4:
            lines.insert(k, f"{pick(rng, ODD_KEYS) or 'x'} = {pick(rng, ODD_FACTS)}")
        elif way == 5 and len(lines) > 2:
            lines.pop(k)
        else:
            place = int(rng.integers(len(lines[k]) + 1))
            lines[k] = lines[k][:place] + pick(rng, ("{", "}", '"', "=", ",", "#", "\\", "\x00", "[", "é"))
    file = folder / "odd.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    if rng.random() < 0.6:
        return ["plan", str(file), pick(rng, ("--rows", "--units")), "500"]
    return ["fit", str(folder / "good.csv"), str(file), "--out", str(folder / "out"), "--quiet"]


def of_models(rng: np.random.Generator, folder: Path) -> list[str]:
    """A command on a model file that was edited, with a seal that fits or not."""
    stored = folder / pick(rng, ("model.json", "newton.json"))
    values = json.loads(stored.read_text(encoding="utf-8"))
    values.pop("digest")
    for _ in range(int(rng.integers(1, 3))):
        _edit(rng, values)
    text = json.dumps(strict.sealed(values)) if rng.random() < 0.9 else json.dumps(values)
    if rng.random() < 0.05:
        text = text[: int(rng.integers(len(text)))]
    file = folder / "odd.json"
    file.write_text(text, encoding="utf-8")
    data = str(folder / "good.csv")
    return pick(
        rng,
        (
            ["show", str(file)], ["show", str(file), "--json"], ["predict", str(file), data, "--json"],
            ["evaluate", str(file), data, "--epsilon", "0.1", "--delta", "1e-9", "--quiet"],
            ["report", str(file), "--out", str(folder / "out")],
            ["export", str(file), "--card", str(folder / "out"), "--json", str(folder / "out.json")],
        ),
    )  # fmt: skip


def _edit(rng: np.random.Generator, values: Any) -> None:
    """Change one value somewhere inside."""
    while True:
        places = list(values) if isinstance(values, dict) else list(range(len(values)))
        if not places:
            return
        place = pick(rng, places)
        inner = values[place]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.15:
            break
        values = inner
    way = rng.random()
    if way < 0.7:
        values[place] = deepcopy(pick(rng, ODD_VALUES))
    elif isinstance(values, dict):
        values[str(pick(rng, ODD_KEYS))] = deepcopy(pick(rng, ODD_VALUES))
        if way < 0.85:
            values.pop(place)
    else:
        values.append(deepcopy(pick(rng, ODD_VALUES)))


KINDS: dict[str, Callable[[np.random.Generator, Path], list[str]]] = {
    "options": of_options,
    "schemas": of_schemas,
    "models": of_models,
}


def outcome(words: list[str]) -> tuple[int, str]:
    """The status and the output of a command."""
    out, code = io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            COMMAND.main(words, prog_name="dpglm")
        except SystemExit as end:
            code = end.code or 0
        except Exception:
            out.write(traceback.format_exc())
            code = 1
    return int(code), out.getvalue()


def prepared(folder: Path) -> None:
    """A table, a schema, two models, and an account that pays."""
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    rng = np.random.default_rng(0)
    rows = [
        f"{age:.0f},clerk,2010-01-01,{'owned' if age > 50 else 'rented'}" for age in rng.uniform(0, 100, 500)
    ]
    table = "\n".join(["age,job,since,home", *rows]) + "\n"
    (folder / "good.csv").write_text(table, encoding="utf-8")
    frame = pd.read_csv(folder / "good.csv")
    for name, model in {
        "model": LogisticRegression(epsilon=2.0),
        "newton": LogisticRegression(epsilon=50.0, C=float("inf"), delta=1e-5),
    }.items():
        fitted = make_private_pipeline(Schema.from_toml(SCHEMA), model).fit(frame)
        (folder / f"{name}.json").write_text(stored(fitted), encoding="utf-8")


def run(cases: int, seed: int = 0, kinds: tuple[str, ...] = tuple(KINDS), stop: bool = True) -> Counter[str]:
    """Run cases; how often each kind ended with each status, or failed if that does not stop the run."""
    rng, found = np.random.default_rng(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        prepared(folder)
        address = f"sqlite:///{folder / 'budget.db'}"
        account = Ledger(address).create("table", epsilon=1e4, delta=0.5)
        entries = len(account.history())
        with account:
            for case in range(cases):
                kind = pick(rng, kinds)
                words = KINDS[kind](rng, folder)
                began = time.monotonic()
                code, said = outcome(words)
                took = time.monotonic() - began
                before, entries = entries, len(account.history())
                spent = entries - before
                pays = code == 0 and words[0] in ("fit", "evaluate") and "--ledger" not in words
                is_charged = spent == 2 * pays  # a reservation and a commitment
                if code not in (0, 2) or "Traceback" in said or took > SLOW or not is_charged:
                    text = f"case {case} of seed {seed}: {words} gave {code} after {took:.1f} s, "
                    text += f"{spent} entries: {said[-600:]}"
                    if stop:
                        raise AssertionError(text)
                    print(text, file=sys.stderr, flush=True)
                    found[f"{kind} FAILED"] += 1
                found[f"{kind} {code}"] += 1
                if case % 1000 == 999:
                    print(case + 1, dict(found), file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    print(run(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, stop=False))
