"""The area under the ROC curve, in two steps: distributions of margins, then the mean of its influence."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Vector
from ..queries import CellSums
from ..scores import ClassesByMargin, RankInfluence
from .means import SCORE_SUMS
from .metric import SEEN, Metric, Released, Setting, Stage
from .result import Estimate

BINS = 32


class RankingMetric(Metric):
    """Probability that a record of class 1 has a larger margin than one of class 0; ties count half."""

    name = "auc"
    stages = (
        Stage("AUC: margins by class", 0.35, 2 * BINS, "sqrt(2) (a record is in one cell)"),
        Stage("AUC: influence", 0.65, 3, SCORE_SUMS),
    )
    needs = "two classes"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes == 2 and len(setting.model.coef) == 1

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        cells = ClassesByMargin(0.0, BINS, setting.reach)
        counts, noise = release(
            "AUC: margins by class", CellSums(cells, setting.model, setting.n_records, 1.0)
        )
        below, sizes = zip(*(_distribution(part) for part in (counts[:BINS], counts[BINS:])), strict=True)
        (zeros, ones), least = sizes, min(sizes)
        middle = [(np.append(0.0, edges[:-1]) + edges) / 2 for edges in below]
        masses = [np.diff(edges, prepend=0.0) for edges in below]
        rough = float(masses[1] @ middle[0])
        values = np.array([(1 - middle[1] - rough) / zeros, (middle[0] - rough) / ones])
        values[:, 0] += np.where(np.ptp(values), 0.0, 1.0 / setting.n_records)  # a range of some length
        score = RankInfluence(cells, values)
        sums = self.sums(setting, release, "AUC: influence", score)
        value = rough + score.middle * sums.count + score.half * sums.total
        squares = (
            score.half**2 * sums.squares + 2 * score.half * score.middle * sums.total
            + score.middle**2 * sums.count
        )  # fmt: skip
        owed = math.hypot(
            score.half**2 * sums.squaring, 2 * score.half * score.middle * sums.noise,
            (score.half**2 + score.middle**2) * sums.counting,
        )  # fmt: skip
        # What the first order leaves: products of two errors of the distributions, each of BINS steps.
        left = noise**2 * BINS / least**2
        return self.estimate(
            value,
            math.sqrt(max(squares, 0.0) + owed),
            math.hypot(score.half * sums.noise, score.middle * sums.counting, left),
            level,
            least > SEEN * noise * math.sqrt(BINS) and sums.seen,
            (0.0, 1.0),
            f"pairs that are ranked right; margins in the same of {BINS} bins are ties, "
            f"{100 * float(masses[0] @ masses[1]):.1f} % of pairs",
        )


def _distribution(counts: Vector) -> tuple[Vector, float]:
    """The distribution function at the upper ends of bins, and the number of records, from noisy counts."""
    sums = np.cumsum(counts)
    size = max(float(sums[-1]), 1.0)
    rising = np.maximum.accumulate(sums)
    falling = np.minimum.accumulate(sums[::-1])[::-1]
    edges: Vector = np.clip((rising + falling) / (2 * size), 0.0, 1.0)
    edges[-1] = 1.0
    return edges, size
