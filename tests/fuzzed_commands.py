"""Random commands, schemas, tables and model files: does anything crash, hang, cost an account what was
refused, or fit null records in silence?

Each case runs a command in this process: with options that cannot be meant, with a schema or a model file
that was edited, or with a table whose cells are not what the schema declares. It must end with status 0, or
with status 2 and one sentence; the account of the ledger pays for what was released, and for nothing that was
refused. A fit says which share of its records counted, truly but for noise, or that it cannot know.
``python tests/fuzzed_commands.py 100000`` runs so many cases; a seed and kinds of cases may follow.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
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
from dpglm.data.files import source_of_file
from dpglm.errors import PrivacyWarning
from dpglm.estimators.stored import model_to_json
from dpglm.ledger import Account
from dpglm.schema import Schema
from dpglm.schema.learning import null_records
from dpglm.schema.source import EncodedSource

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

AMOUNTS = (
    "{:,.2f}", "{:.2f} €", "$ {:.2f}", "{:.0f} kg", "about {:.0f}", "{:.0f} %", "({:.2f})", "{:.2f}-",
    "{:.1f}.",
)  # fmt: skip
DATES = (
    "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%y", "%d %b %Y", "%Y%m%d", "%Y-%m-%d %H:%M", "%H:%M", "%Y", "%b %d, %Y",
    "week %W", "%Y-%m-%dT%H:%M:%SZ",
)  # fmt: skip
NO_CELLS = ("", "?", "n/a", "-", "#REF!", "unknown", "\u00a0", '"', "nan", "[1]", "{}", "é")
COLUMNS = {
    "cost": (
        'type = "number", low = 0, high = 9000',
        'type = "number", low = 0, high = 9000, decimal = ",", thousands = "."',
        'type = "number", low = 0, high = 9000, thousands = ",", strip = "€"',
        'type = "number", low = 0, high = 9000, missing = "indicator"',
        'type = "number", low = 0, high = 9000, missing = 0, transform = "log1p"',
        'type = "number", low = 0, high = 9000, knots = [1000, 5000]',
        'type = "number", learn = true, widest = [0, 100000]',
    ),
    "admitted": (
        'type = "date", low = 2020-01-01, high = 2030-01-01',
        'type = "date", low = 2020-01-01, high = 2030-01-01, format = "%d.%m.%Y"',
        'type = "date", low = 2020-01-01, high = 2030-01-01, missing = "indicator"',
    ),
    "ward": (
        'type = "category", levels = ["cardiology", "surgery"]',
        'type = "category", learn = true, most = 4, casefold = true',
        'type = "ordinal", levels = ["cardiology", "surgery"]',
        'type = "boolean"',
        'type = "hashed", buckets = 8, missing = "null"',
    ),
}  # fmt: skip
TARGETS = {
    'classes = ["no", "yes"]': ("LogisticRegression", "LogisticRegression", "LinearSVC"),
    'classes = ["no", "yes", "perhaps"]': ("LogisticRegression", "LinearSVC"),
    "low = 0, high = 10": (
        "LinearRegression", "Ridge", "Lasso", "ElasticNet", "LinearSVR", "PoissonRegressor", "GammaRegressor",
        "TweedieRegressor", "NegativeBinomialRegressor", "HuberRegressor", "QuantileRegressor",
    ),
}  # fmt: skip
BESIDE = {
    "weight": 'type = "weight", high = 2',
    "days": 'type = "exposure", low = 1, high = 9',
    "patient": 'type = "unit", rows = 2',
}


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


def of_tables(rng: np.random.Generator, folder: Path) -> list[str]:
    """A fit of a table whose cells, all or some, are not what the schema declares."""
    n, target = int(pick(rng, (40, 400, 2000))), pick(rng, tuple(TARGETS))
    declared = {name: pick(rng, facts) for name, facts in COLUMNS.items() if rng.random() < 0.8}
    declared["y"] = f'type = "target", {target}'
    if rng.random() < 0.3:
        beside = pick(rng, tuple(BESIDE))
        declared[beside] = BESIDE[beside]
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), unit="D")
    amounts = rng.uniform(1, 9000, n)
    labels = ["no", "yes", "perhaps"] if "perhaps" in target else ["no", "yes"]
    wards = ["no", "yes"] if "boolean" in declared.get("ward", "") else ["cardiology", "surgery"]
    usual: dict[str, Any] = {
        "cost": [f"{x:.2f}" for x in amounts],
        "admitted": days.strftime("%Y-%m-%d"),
        "ward": rng.choice(wards, n),
        "y": rng.choice(labels, n) if "classes" in target else rng.integers(1, 9, n).astype(str),
        "weight": rng.choice(["1", "0.5"], n),
        "days": rng.choice(["2", "7"], n),
        "patient": np.arange(n) // 2,
    }
    table = {name: [str(cell) for cell in usual[name]] for name in declared}
    for _ in range(int(rng.integers(1, 3))):
        name = pick(rng, [one for one in declared if one != "patient"])
        share = pick(rng, (0, 0.5, 0.98, 1, 1, 1))
        way = rng.integers(3)
        if way == 0:
            cells = [pick(rng, NO_CELLS)] * n
        elif name == "admitted":
            cells = list(days.strftime(pick(rng, DATES)))
        elif way == 1:
            change = pick(rng, (str.upper, str.title, "{} ".format, "{}!".format))
            cells = list(map(change, table[name]))
        else:
            cells = [pick(rng, AMOUNTS).format(x) for x in amounts]
            if rng.random() < 0.5:
                cells = [cell.translate({44: 46, 46: 44}) for cell in cells]
        for row in np.flatnonzero(rng.random(n) < share):
            table[name][row] = cells[row]
    text = "\n".join(["[columns]", *(f"{name} = {{ {facts} }}" for name, facts in declared.items())])
    (folder / "odd.toml").write_text(text, encoding="utf-8")
    words = ["fit", str(_written(rng, folder, table)), str(folder / "odd.toml"), "--out", str(folder / "out")]
    words += ["--quiet", "--model", pick(rng, TARGETS[target]), "--delta", "1e-5"]
    words += ["--epsilon", pick(rng, ("0.1", "1", "8", "8", "50"))]
    words += ["--neighbours", pick(rng, ("replace-one", "replace-one", "zero-out", "add-remove"))]
    return [*words, *(word for word in ("--stream", "--json") if rng.random() < 0.3)]


def _written(rng: np.random.Generator, folder: Path, table: dict[str, list[str]]) -> Path:
    """The file of a table, perhaps with separators or types that nobody expects."""
    file = folder / f"odd{pick(rng, ('.csv', '.csv', '.csv', '.tsv', '.jsonl', '.parquet'))}"
    frame = pd.DataFrame(table)
    if file.suffix == ".parquet":
        for name in table:
            if rng.random() < 0.3:
                with contextlib.suppress(ValueError, TypeError):
                    frame[name] = frame[name].astype(
                        pick(rng, ("float", "category", "datetime64[us]", "bytes"))
                    )
        frame.to_parquet(file)
    elif file.suffix == ".jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        usual = "\t" if file.suffix == ".tsv" else ","
        separator = usual if rng.random() < 0.9 else pick(rng, (";", "|", "\t", ","))
        if rng.random() < 0.7:
            frame.to_csv(file, index=False, sep=separator)
        else:  # a separator inside of a cell separates, too
            lines = map(separator.join, [list(table), *zip(*table.values(), strict=True)])
            file.write_text("\n".join(lines), encoding="utf-8")
    return file


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
    "tables": of_tables,
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


_STATED = re.compile(
    r"(about|at least|between) (\d+) %(?: and (\d+) %)? \(± (\d+) %\) of the records counted"
)


def silence(data: str, declared: str, said: str) -> str:
    """What the output of a fit does not say of the records that counted, or says wrongly."""
    schema = Schema.from_toml(Path(declared).read_text(encoding="utf-8"))
    source = EncodedSource(source_of_file(data, schema.used), schema)
    lost = []
    for frame in source.frames():
        null = null_records(schema, frame, len(schema.read_target(frame)))
        beside = schema.read_beside(frame)
        for part in (beside.weight, beside.offset, beside.exposure):
            null |= np.isnan(part) if part is not None else False
        lost.append(null)
    percent = 100 * float(1 - np.concatenate(lost).mean())
    text = " ".join(said.replace("\\u00b1", "±").split())
    if "of the records counted cannot be known" in text:
        return ""
    found = _STATED.search(text)
    if found is None:
        return f"nothing is said of the records, of which {percent:.0f} % count"
    least, margin = int(found[2]), int(found[4])
    # ends that are nearer to each other than the margin are shown as their mean
    most = {"about": least + margin / 2, "at least": 100, "between": int(found[3] or 0)}[found[1]]
    if not least - 4 * margin - 1 <= percent <= most + 4 * margin + 1:  # eight deviations of the noise
        return f"{found[0]}, but {percent:.0f} % do"
    if "Warning: only" not in text and most + margin < 89:
        return f"{found[0]}, without a warning"
    return ""


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
        (folder / f"{name}.json").write_text(model_to_json(fitted), encoding="utf-8")


def opened(address: str, case: int) -> dict[tuple[str, str], Account]:
    """New accounts, by relation and unit: after some hundred fits they would refuse all others."""
    return {
        (relation, unit): Ledger(address).create(
            f"{relation}-{unit}-{case}", epsilon=1e4, delta=0.5, neighbours=relation, unit=unit
        )
        for relation in ("replace-one", "zero-out", "add-remove")
        for unit in ("record", "patient")[: 1 if relation == "add-remove" else 2]
    }


def payer(accounts: dict[tuple[str, str], Account], kind: str, words: list[str]) -> Account:
    """The account for a command: tables are fitted for every relation, and for persons."""
    if kind != "tables":
        return accounts["replace-one", "record"]
    relation = words[words.index("--neighbours") + 1]
    unit = "patient" if BESIDE["patient"] in Path(words[2]).read_text(encoding="utf-8") else "record"
    return accounts.get((relation, unit), accounts[relation, "record"])


def run(cases: int, seed: int = 0, kinds: tuple[str, ...] = tuple(KINDS), stop: bool = True) -> Counter[str]:
    """Run cases; how often each kind ended with each status, or failed if that does not stop the run."""
    rng, found = np.random.default_rng(seed), Counter[str]()
    accounts = dict[tuple[str, str], Account]()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrivacyWarning)
        folder = Path(name)
        prepared(folder)
        for case in range(cases):
            if case % 200 == 0:
                accounts = opened(f"sqlite:///{folder / 'budget.db'}", case)
            kind = pick(rng, kinds)
            words = KINDS[kind](rng, folder)
            account = payer(accounts, kind, words)
            before, began = account.state().last.number, time.monotonic()
            with account:
                code, said = outcome(words)
            took = time.monotonic() - began
            spent = account.state().last.number - before
            pays = code == 0 and words[0] in ("fit", "evaluate") and "--ledger" not in words
            is_charged = spent == 2 * pays  # a reservation and a commitment
            silent = silence(words[1], words[2], said) if code == 0 and words[0] == "fit" else ""
            if code not in (0, 2) or "Traceback" in said or took > SLOW or not is_charged or silent:
                text = f"case {case} of seed {seed}: {words} gave {code} after {took:.1f} s, "
                text += f"{spent} entries: {silent or said[-600:]}"
                if stop:
                    raise AssertionError(text)
                print(text, file=sys.stderr, flush=True)
                found[f"{kind} FAILED"] += 1
            found[f"{kind} {code}"] += 1
            if case % 1000 == 999:
                print(case + 1, dict(found), file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    print(run(int(sys.argv[1]), seed, tuple(sys.argv[3:]) or tuple(KINDS), stop=False))
