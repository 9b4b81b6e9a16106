"""Random mistakes in streams, Dask collections and raw streams: does a refused call cost anything?

Each case makes a small table that is read block by block, spoils one of its blocks in the same way in every
pass, and fits or evaluates with an account. A call must either return and be charged once, or be refused in a
sentence that quotes no record, and leave the account as it was.
``python tests/data/fuzzing.py 20000`` runs so many cases.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import warnings
from collections import Counter

import dask
import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

from dpglm import Bounds, LogisticRegression, Ridge, Stream, evaluate, make_private_pipeline
from dpglm.errors import DpglmError
from dpglm.ledger import Ledger
from dpglm.schema import Category, Number, Schema, Target
from dpglm.solvers import GradientDescent, Newton

MARK = "8675309"
N, P = 24, 3
NAMES = ["a", "b", "c"]
RELATIONS = {"replace-one": None, "zero-out": None, "add-remove": 1e-5}


class Rude:
    """An object that raises, with the marked text, whatever is asked of it."""

    def _raise(self, *_, **__):
        raise RuntimeError(f"secret {MARK}")

    __float__ = __eq__ = __hash__ = __repr__ = __str__ = __len__ = __array__ = __bool__ = __iter__ = _raise


class RudeShape(Rude):
    shape = property(Rude._raise)


CONTAINERS = {
    "array": np.asarray,
    "float32": lambda rows: rows.astype(np.float32),
    "list": lambda rows: rows.tolist(),
    "frame": lambda rows: pd.DataFrame(rows, columns=NAMES[: rows.shape[1]]),
    "unnamed frame": pd.DataFrame,
    "polars": lambda rows: pl.DataFrame(rows, schema=[f"c{j}" for j in range(rows.shape[1])], orient="row"),
    "arrow": lambda rows: pa.table({f"c{j}": rows[:, j] for j in range(rows.shape[1])}),
    "csr": sp.csr_array,
    "masked": lambda rows: np.ma.array(rows, mask=rows > 0.9),
}
"""What a block may be."""

BAD_ROWS = {
    "narrower": lambda rows: rows[:, :-1],
    "wider": lambda rows: np.hstack([rows, rows]),
    "no columns": lambda rows: rows[:, :0],
    "one dimension": lambda rows: rows[:, 0],
    "three dimensions": lambda rows: rows[None],
    "a number": lambda rows: float(MARK),
    "an array of no dimension": lambda rows: np.array(float(MARK)),
    "nothing": lambda rows: None,
    "text": lambda rows: f"secret {MARK}",
    "bytes": lambda rows: MARK.encode(),
    "texts": lambda rows: np.full(rows.shape, f"secret {MARK}"),
    "complex": lambda rows: rows + 1j,
    "times": lambda rows: np.full(rows.shape, np.datetime64("2020")),
    "structured": lambda rows: np.zeros(len(rows), dtype=[("a", float)]),
    "a dict": lambda rows: {"a": rows[:, 0].tolist()},
    "a set": lambda rows: {MARK},
    "rude": lambda rows: Rude(),
    "rude shape": lambda rows: RudeShape(),
    "a type": lambda rows: np.ndarray,
    "ragged": lambda rows: [[0.8675309], [1.0, 2.0]],
    "a generator": lambda rows: (row for row in rows),
    "frame of texts": lambda rows: pd.DataFrame({name: [f"secret {MARK}"] * len(rows) for name in NAMES}),
    "doubled names": lambda rows: pd.DataFrame(rows, columns=["a"] * rows.shape[1]),
    "empty list": lambda rows: [],
    "malformed": lambda rows: _malformed(rows),
    "a Dask array": lambda rows: da.from_array(rows),
    "a stream": lambda rows: Stream(lambda: [rows], len(rows), P),
}  # fmt: skip
BAD_TARGETS = {
    "none": lambda y: None,
    "fewer": lambda y: y[:-1],
    "more": lambda y: np.append(y, 1),
    "two columns": lambda y: np.column_stack([y, y]),
    "a number": lambda y: 1,
    "texts": lambda y: np.full(len(y), MARK),
    "bytes": lambda y: np.full(len(y), MARK.encode()),
    "complex": lambda y: y + 1j,
    "times": lambda y: np.full(len(y), np.datetime64("2020")),
    "sparse": lambda y: sp.csr_array(y[None, :].astype(float)),
    "rude": lambda y: Rude(),
    "a dict": lambda y: {MARK: 1},
    "a generator": lambda y: iter(y),
}
ODD_TARGETS = {
    "list": lambda y: y.tolist(),
    "series": pd.Series,
    "floats": lambda y: y.astype(float),
    "objects": lambda y: _objects(y),
    "missing": lambda y: np.where(np.arange(len(y)) == 0, np.nan, y),
    "column": lambda y: y[:, None],
}
READS = [
    "none",
    "raises",
    "raises later",
    "once",
    "once inside",
    "endless",
    "not iterable",
    "triples",
    "rude",
]


def _malformed(rows):
    table = sp.csr_array(rows)
    table.indices = table.indices + 99
    return table


def _objects(y):
    values = y.astype(object)
    if len(values):
        values[0] = Rude()
    return values


def _cuts(rng, n):
    edges = np.sort(rng.integers(0, n + 1, rng.integers(0, 4)))
    return list(itertools.pairwise([0, *edges.tolist(), n]))


def _pick(rng, choices):
    return list(choices)[rng.integers(len(choices))]


def _reader(kind, blocks):
    """A function that reads blocks with a mistake of its own."""
    made = iter(blocks)

    def raises(count):
        yield from blocks[:count]
        raise RuntimeError(f"secret {MARK}")

    return {
        "none": lambda: None,
        "raises": lambda: raises(0),
        "raises later": lambda: raises(1),
        "once": lambda: made,
        "once inside": lambda: map(lambda block: block, made),
        "endless": lambda: itertools.chain.from_iterable(itertools.repeat(blocks, 10**4)),
        "not iterable": lambda: 8675309,
        "triples": lambda: [(*block, 1) if isinstance(block, tuple) else (block, 1, 2) for block in blocks],
        "rude": Rude()._raise,
    }.get(kind, lambda: iter(blocks))


def stream(rng, words):
    """A stream of blocks, with mistakes or without, and the targets beside it."""
    n = N if rng.random() < 0.95 else int(rng.integers(0, 3))
    X = rng.uniform(-1, 1, (n, P))
    y = (X[:, 0] > 0).astype(int)
    container, together = _pick(rng, CONTAINERS), rng.random() < 0.7
    words.append(container)
    blocks = []
    spoilt_rows = _pick(rng, BAD_ROWS) if rng.random() < 0.4 else ""
    spoilt_targets = _pick(rng, BAD_TARGETS) if rng.random() < 0.25 else ""
    odd = _pick(rng, ODD_TARGETS) if rng.random() < 0.3 else ""
    words += [spoilt_rows, spoilt_targets, odd]
    cuts = _cuts(rng, n)
    spoilt = int(rng.integers(len(cuts)))
    for k, (start, stop) in enumerate(cuts):
        rows, targets = X[start:stop], y[start:stop]
        block = BAD_ROWS[spoilt_rows](rows) if spoilt_rows and k == spoilt else CONTAINERS[container](rows)
        targets = BAD_TARGETS[spoilt_targets](targets) if spoilt_targets and k == spoilt else targets
        if odd and not (spoilt_targets and k == spoilt):
            targets = ODD_TARGETS[odd](targets)
        blocks.append((block, targets) if together else block)
    reads = _pick(rng, READS) if rng.random() < 0.3 else ""
    stated = n + (int(rng.integers(-2, 3)) if rng.random() < 0.15 else 0)
    words += [reads, f"{stated - n:+d}"]
    return Stream(_reader(reads, blocks), max(stated, 0), P), None if together else y


def collection(rng, words):
    """A Dask array, or its targets, some blocks of which are not as declared."""
    X = rng.uniform(-1, 1, (N, P))
    y = (X[:, 0] > 0).astype(int)
    rows, targets = da.from_array(X, (int(rng.integers(3, N)), P)), da.from_array(y, int(rng.integers(3, N)))
    kind = _pick(rng, BAD_ROWS) if rng.random() < 0.6 else ""
    words += ["dask", kind]
    if kind:
        last = rows.numblocks[0] - 1

        def spoilt(block, block_info=None):
            here = block_info[0]["chunk-location"][0] == last if block_info else False
            return BAD_ROWS[kind](block) if here else block

        rows = rows.map_blocks(spoilt, dtype=float, meta=np.empty((0, P)))
    other = rng.random()
    if other < 0.1:
        rows = rows.astype(_pick(rng, ["U9", "S9", complex, object, "M8[s]"]))
    elif other < 0.2:
        targets = targets.astype(_pick(rng, ["U9", "S9", complex, object]))
    elif other < 0.3:
        targets = targets[:-1]
    return rows, targets


def raw(rng, words):
    """A stream of data frames, with mistakes or without."""
    frame = pd.DataFrame(
        {"a": rng.uniform(-1, 1, N), "k": rng.choice(["u", "v"], N), "y": rng.choice(["0", "1"], N)}
    )
    mistakes = {
        "renamed": lambda part: part.rename(columns={"a": MARK}),
        "without a column": lambda part: part.drop(columns="k"),
        "without a target": lambda part: part.drop(columns="y"),
        "one more": lambda part: part.assign(z=1),
        "doubled": lambda part: part.set_axis(["a", "a", "y"], axis=1),
        "array": lambda part: part.to_numpy(),
        "pair": lambda part: (part, part["y"]),
        "dict": lambda part: {name: part[name].tolist() for name in part},
        "ragged dict": lambda part: {"a": [1.0], "k": ["u"] * 3, "y": ["0", "1"]},
        "list": lambda part: part.to_numpy().tolist(),
        "other types": lambda part: part.assign(a="x", k=1, y=2.0),
        "complex": lambda part: part.assign(a=1j),
        "nested": lambda part: part.assign(a=[[8675309]] * len(part)),
        "rude cell": lambda part: part.assign(a=[Rude() for _ in range(len(part))]),
        "rude": lambda part: Rude(),
        "nothing": lambda part: None,
        "index": lambda part: part.set_index(["k"]),
        "two levels": lambda part: part.set_axis(pd.MultiIndex.from_product([["a", "k", "y"], [1]]), axis=1),
    }  # fmt: skip
    kind = _pick(rng, mistakes) if rng.random() < 0.7 else ""
    cuts = _cuts(rng, N)
    spoilt = int(rng.integers(len(cuts)))
    blocks = [
        mistakes[kind](frame[start:stop]) if kind and k == spoilt else frame[start:stop]
        for k, (start, stop) in enumerate(cuts)
    ]
    reads = _pick(rng, READS) if rng.random() < 0.3 else ""
    stated = N + (int(rng.integers(-2, 3)) if rng.random() < 0.15 else 0)
    words += ["raw", kind, reads, f"{stated - N:+d}"]
    return Stream(_reader(reads, blocks), stated, 3)


def call(rng, accounts, words):
    """One call with its account: a function, and the account that pays for it."""
    relation = _pick(rng, RELATIONS)
    words.append(relation)
    account = accounts[relation]
    common = {"neighbours": relation, "delta": RELATIONS[relation], "ledger": str(account.address)}
    kind = rng.random()
    if kind < 0.3:
        learn = rng.random() < 0.5
        k = Category(learn=True, most=2) if learn else Category(["u", "v"])
        schema = Schema({"a": Number(-1, 1), "k": k, "y": Target(classes=["0", "1"])})
        common["delta"] = 1e-4
        model = LogisticRegression(0.05, solver=GradientDescent(steps=2), **common)
        table = raw(rng, words)
        return account, lambda: make_private_pipeline(schema, model).fit(table)
    X, y = stream(rng, words) if kind < 0.85 else collection(rng, words)
    solver = GradientDescent(steps=2) if rng.random() < 0.8 else Newton()
    settings = {"solver": solver, **common}
    if rng.random() < 0.5:
        weights = {"class_weight": "balanced"} if rng.random() < 0.2 else {}
        model = LogisticRegression(0.05, classes=[0, 1], **settings, **weights)
    else:
        model = Ridge(
            0.05,
            bounds=Bounds(row_norm=1.0, target=(-1, 1)),
            **settings | {"solver": GradientDescent(steps=2)},
        )
    if rng.random() < 0.2 and relation != "add-remove":
        words.append("evaluate")
        table = np.random.default_rng(0).uniform(-1, 1, (50, P))
        metric = "accuracy" if isinstance(model, LogisticRegression) else "r2"
        fitted = model.set_params(
            ledger=None, neighbours="replace-one", delta=None, solver=GradientDescent(steps=2)
        )
        fitted.fit(table, (table[:, 0] > 0).astype(int))
        return account, lambda: evaluate(
            fitted, X, y, metric, epsilon=0.05, neighbours=relation, ledger=str(account.address)
        )
    more = {}
    if relation != "add-remove" and isinstance(X, Stream) and rng.random() < 0.1:
        more["sample_weight"] = np.ones(X.n_samples + int(rng.random() < 0.2))
        words.append("weights")
        model.set_params(bounds=Bounds(row_norm=1.0, target=(-1, 1), weight=2.0))
    return account, lambda: model.fit(X, y, **more)


def opened(folder, round_):
    ledger = Ledger(f"sqlite:///{folder}/{round_}.db")
    return {
        relation: ledger.create(relation, epsilon=50.0, delta=0.5, neighbours=relation)
        for relation in RELATIONS
    }


def refused(error):
    """What is wrong with the way in which a call was refused; nothing if it is right."""
    if not isinstance(error, ValueError | TypeError | DpglmError):
        return f"{type(error).__name__}"
    text, seen = str(error), error
    while seen is not None:
        if MARK in str(seen) or MARK[:3] + "." in str(seen):
            return "a record is quoted"
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return "many words" if len(text) > 400 or text.count("\n") > 1 else ""


def main(count, seed=0):
    found, seen, done = Counter(), Counter(), 0
    accounts = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        dask.config.set(scheduler="sync"),
    ):
        warnings.simplefilter("ignore")
        for case in range(count):
            if case % 200 == 0:
                accounts = opened(folder, case)
            rng, words = np.random.default_rng([seed, case]), []
            account, run = call(rng, accounts, words)
            before, error = account.state().last.number, None
            try:
                run()
            except Exception as raised:
                error = raised
            charged = account.state().last.number - before
            if error is None:
                done += 1
                wrong = "" if charged == 2 else f"{charged} entries for a call that returned"
            else:
                seen[f"{type(error).__name__}: {str(error)[:90] if MARK not in str(error) else ''}"] += 1
                wrong = refused(error) or (f"{charged} entries for a refused call" if charged else "")
            if wrong:
                found[wrong] += 1
                if found[wrong] < 6:
                    print(case, wrong, [word for word in words if word], repr(error)[:300])
    print(f"{count} cases, {done} returned, {sum(found.values())} wrong: {dict(found)}")
    for sentence, times in seen.most_common():
        print(f"{times:6d}  {sentence}")
    return sum(found.values())


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), *map(int, sys.argv[2:]))))
