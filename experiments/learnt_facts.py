"""Learnt ranges and levels beside the published algorithms of OpenDP and Tumult, at the same epsilon.

Each competitor is written down plainly from its publication, with exact (floating-point) noise:

* OpenDP's quantiles: the exponential mechanism among given candidates with the score
  -abs((1 - q) below - q above) (`make_private_quantile`), one selection for each end, with evenly spaced
  candidates and with those of dpglm;
* Tumult's quantiles: the exponential mechanism over the intervals between sorted values, weighted by their
  lengths, and a uniform point of the interval (Smith, 2011);
* OpenDP's levels: Laplace noise on the counts of levels that occur, and a threshold
  (`make_laplace_threshold`);
* Tumult's levels: optimal partition selection by the truncated geometric mechanism (Desfontaines, Voss,
  Gipson and Mandayam, 2022), and for those that are kept nothing more.

All serve replace-one neighbours: scores of quantiles have sensitivity 1 there, and counts of levels 2 in the
L1 norm; what is for added and removed records is run at half the epsilon. Ranges: an epsilon for each column,
half of it for each end where two ends are selected. Levels: one epsilon and delta for all columns, which
OpenDP's and Tumult's algorithms divide evenly among them, as basic composition does.

Printed are the distance of both ends from the quantiles at 1/64 and 63/64, as a share of the distance of
these quantiles (median over runs, then mean over columns); and the share of cells whose level was found.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpglm import Neighbours
from dpglm.accounting import Composed, calibrate
from dpglm.accounting import Gaussian as GaussianEvent
from dpglm.curator import Curator
from dpglm.mechanisms import Exponential, Levels, Randomness, Thresholded
from dpglm.queries import ColumnRanges, LevelCounts
from dpglm.queries.learning import tail_of
from dpglm.schema import Number, Schema, Target
from dpglm.schema.numbers import candidates_of
from dpglm.schema.raw import RawTable

Vector = NDArray[np.float64]
Range = tuple[float, float]
TAIL = 1 / 64
WIDEST: dict[str, Range] = {
    "longitude": (-180, 180), "latitude": (-90, 90), "housingMedianAge": (0, 200), "totalRooms": (0, 1e6),
    "totalBedrooms": (0, 1e6), "population": (0, 1e6), "households": (0, 1e6), "medianIncome": (0, 1e3),
    "price": (0, 1e8), "age": (0, 150), "fnlwgt": (0, 1e8), "education_num": (0, 100),
    "hours_per_week": (0, 168), "capital_gain": (0, 1e7),
}  # fmt: skip


def california(data: Path) -> dict[str, Vector]:
    stored = np.load(data / "california_housing" / "data.npz")
    columns = {str(name): stored["X"][:, k] for k, name in enumerate(stored["feature_names"])}
    return columns | {"price": stored["y"]}


def adult(data: Path) -> tuple[dict[str, Vector], dict[str, list[str]]]:
    with gzip.open(data / "adult_raw" / "adult_train.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    numbers = {name: np.array([float(row[name]) for row in rows]) for name in rows[0] if name in WIDEST}
    rest = [name for name in rows[0] if not _is_number(rows[0][name]) and name != "income"]
    return numbers, {name: [row[name] for row in rows] for name in rest}


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "").isdigit()


def ours(values: Vector, widest: Range, epsilon: float, rng: np.random.Generator) -> Range:
    """One selection of both ends, its noise that of an epsilon-DP exponential mechanism."""
    column = Number(learn=True, widest=widest)
    schema = Schema({"x": column, "y": Target(classes=["a", "b"])})
    raw = RawTable(schema, {"x": values, "y": ["a"] * len(values)})
    curator = Curator(raw.records(), Neighbours.REPLACE_ONE, Randomness())  # type: ignore[arg-type]
    mechanism, found = Exponential(2 / epsilon), candidates_of(column)
    query = ColumnRanges(found.scale[None], tail_of(len(values), mechanism.noise))
    low, high = curator.open(query, np.empty(0), mechanism).select(0)
    return float(found.values[low]), float(found.values[high])


def _selected(scores: Vector, epsilon: float, rng: np.random.Generator) -> int:
    return int(np.argmax(scores * (epsilon / 2) + rng.gumbel(size=len(scores))))


def opendp_among(grid: Callable[[Range], Vector]) -> Callable[..., Range]:
    """OpenDP's selection among candidates, one for each end."""

    def learnt(values: Vector, widest: Range, epsilon: float, rng: np.random.Generator) -> Range:
        candidates, ordered = grid(widest), np.sort(values)
        below = np.searchsorted(ordered, candidates, side="left")
        above = len(values) - np.searchsorted(ordered, candidates, side="right")
        low, high = (
            float(candidates[_selected(-np.abs((1 - q) * below - q * above), epsilon / 2, rng)])
            for q in (TAIL, 1 - TAIL)
        )
        return low, high

    return learnt


def tumult(values: Vector, widest: Range, epsilon: float, rng: np.random.Generator) -> Range:
    """The exponential mechanism over intervals between values; for added records, so at half the epsilon."""
    edges = np.concatenate([[widest[0]], np.sort(np.clip(values, *widest)), [widest[1]]])
    lengths, ranks = np.diff(edges), np.arange(len(values) + 1)
    ends = []
    for q in (TAIL, 1 - TAIL):
        with np.errstate(divide="ignore"):
            weights = -np.abs(ranks - q * len(values)) * (epsilon / 2) / 4 + np.log(lengths)
        place = int(np.argmax(weights + rng.gumbel(size=len(weights))))
        ends.append(float(rng.uniform(edges[place], edges[place + 1])))
    return ends[0], ends[1]


RANGES: dict[str, Callable[..., Range]] = {
    "dpglm": ours,
    "OpenDP, 512 even candidates": opendp_among(lambda widest: np.linspace(*widest, 512)),
    "OpenDP, candidates of dpglm": opendp_among(
        lambda widest: candidates_of(Number(learn=True, widest=widest)).values
    ),
    "Tumult": tumult,
}


def error(found: Range, values: Vector) -> float:
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    return float((abs(found[0] - low) + abs(found[1] - high)) / (high - low))


def twice_as_wide(values: Vector) -> Range:
    """A range twice as wide as the quantiles are apart, around them."""
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    return float(low - (high - low) / 2), float(high + (high - low) / 2)


def covered(kept: list[set[object]], counts: list[Counter[str]]) -> float:
    seen = sum(
        count
        for keep, table in zip(kept, counts, strict=True)
        for level, count in table.items()
        if level in keep
    )
    return seen / sum(table.total() for table in counts)


def our_levels(
    counts: list[Counter[str]], epsilon: float, delta: float, rng: np.random.Generator
) -> list[set[object]]:
    """Gaussian noise for all columns together, a five-hundredth of delta for levels of one record."""
    k, n = len(counts), counts[0].total()
    cutoff = -float(_quantile(delta / 500 / (1 + math.exp(epsilon)) / k))
    template = Thresholded(1.0, cutoff, k)
    events = [GaussianEvent(1.0), *template.imprecision(k * n)]
    mechanism = Thresholded(calibrate(Composed(tuple(events)), epsilon, delta), cutoff, k)
    tables = tuple({level: float(count) for level, count in table.items()} for table in counts)
    released = mechanism.release(
        Levels(tables, n), LevelCounts(k).sensitivity(Neighbours.REPLACE_ONE), Randomness()
    )
    return [set(table) for table in released.counts]


def _quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))


def opendp_levels(
    counts: list[Counter[str]], epsilon: float, delta: float, rng: np.random.Generator
) -> list[set[object]]:
    """Laplace noise of scale 2 / epsilon for each column, and the threshold for its part of delta."""
    each, part, kept = epsilon / len(counts), delta / len(counts), []
    threshold = 1 + 2 / each * math.log(1 / (2 * part))
    for table in counts:
        kept.append({level for level, n in table.items() if n + rng.laplace(0, 2 / each) >= threshold})
    return kept


def tumult_levels(
    counts: list[Counter[str]], epsilon: float, delta: float, rng: np.random.Generator
) -> list[set[object]]:
    """Optimal partition selection; replacing is removing and adding, so at half the epsilon and delta."""
    each, part = epsilon / len(counts) / 2, delta / len(counts) / 2
    kept = []
    for table in counts:
        most = max(table.values())
        chance, now = [0.0], 0.0
        for _ in range(most):
            now = min(math.exp(each) * now + part, 1 - math.exp(-each) * (1 - now - part), 1.0)
            chance.append(now)
        kept.append({level for level, n in table.items() if rng.uniform() < chance[n]})
    return kept


LEVELS = {"dpglm": our_levels, "OpenDP": opendp_levels, "Tumult": tumult_levels}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--quick", action="store_true", help="two drawn columns: its figures mean nothing")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    if arguments.quick:
        columns, texts = {"age": rng.normal(40, 12, 500)}, {"job": list(rng.choice(["a", "b", "c"], 500))}
    else:
        numbers, texts = adult(arguments.data)
        columns = california(arguments.data) | numbers
    print(f"Ranges of {len(columns)} columns: distance from the quantiles, as a share of their distance")
    narrow = {column: twice_as_wide(values) for column, values in columns.items()}
    for words, widest in (("too wide by far", WIDEST), ("twice as wide", narrow)):
        print(f"widest ranges that are {words}")
        for epsilon in (0.02, 0.1, 0.5):
            for name, learn in RANGES.items():
                errors = {
                    column: np.median(
                        [
                            error(learn(values, widest[column], epsilon, rng), values)
                            for _ in range(arguments.runs)
                        ]
                    )
                    for column, values in columns.items()
                }
                worst = max(errors, key=lambda column: errors[column])
                print(
                    f"  epsilon {epsilon:<5} {name:<28} mean {np.mean(list(errors.values())):9.3f}  "
                    f"worst {errors[worst]:9.3f} ({worst})", flush=True,
                )  # fmt: skip
    counts = [Counter(column) for column in texts.values()]
    print(f"\nLevels of {len(counts)} columns together, and of one: share of cells whose level is found")
    for some, words in ((counts, "all"), (counts[-1:], list(texts)[-1])):
        for epsilon in (0.1, 1.0):
            for name, find in LEVELS.items():
                shares = [covered(find(some, epsilon, 1e-9, rng), some) for _ in range(arguments.runs)]
                print(f"epsilon {epsilon:<5} {words:<16} {name:<8} {np.mean(shares):.4f}", flush=True)


if __name__ == "__main__":
    main()
