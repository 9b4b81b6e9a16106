"""Calibration: outcomes beside predicted probabilities, overall and in ten bins."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..losses import Logistic
from ..queries import CellSums
from ..scores import Reliability
from .metric import SEEN, Metric, Released, Setting, Stage
from .result import Bin, Estimate

BINS = 10
_COUNTED = 0.5


class CalibrationMetric(Metric):
    """Mean of outcome - predicted probability of class 1; and the same in each bin of probabilities."""

    name = "calibration"
    stages = (Stage("calibration", 1.0, 2 * BINS, "sqrt(2.5) (a record is in one bin)"),)
    needs = "probabilities of two classes"

    def serves(self, setting: Setting) -> bool:
        return setting.n_classes == 2 and len(setting.model.coef) == 1 and type(setting.loss) is Logistic

    def run(self, setting: Setting, release: Released, level: float) -> Estimate:
        query = CellSums(Reliability(1 + 1 / BINS, BINS), setting.model, setting.n_records, _COUNTED)
        released, noise = release("calibration", query)
        counts, gaps = released[:BINS] / _COUNTED, released[BINS:]
        counting, n = noise / _COUNTED, float(setting.n_records)
        count = min(max(float(counts.sum()), 1.0), n)
        bins = []
        for k, (size, total) in enumerate(zip(counts, gaps, strict=True)):
            low, high = k / BINS, (k + 1) / BINS
            seen = size > SEEN * counting
            gap = float(np.clip(total / size, -high, 1 - low)) if seen else 0.0
            variance = _variance(low, high, gap)
            error = math.sqrt(variance / size + (noise**2 + (gap * counting) ** 2) / size**2) if seen else 0.0
            share = float(np.clip(size / count, 0, 1))
            bins.append(Bin(low, high, share, gap, error if seen else math.inf))
        overall = float(gaps.sum()) / count
        # Bins that are not seen count with the largest variance.
        between = sum(max(one.share, 0.0) * _variance(one.low, one.high, one.gap) for one in bins)
        noisy = math.sqrt(BINS) * math.hypot(noise, overall * counting) / count
        found = self.estimate(
            overall, math.sqrt(between / count), noisy, level, count > SEEN * counting * math.sqrt(BINS),
            (-1.0, 1.0), "mean of outcome - predicted probability; its bins:",
        )  # fmt: skip
        return replace(found, bins=tuple(bins))


def _variance(low: float, high: float, gap: float) -> float:
    """The largest variance of outcome - probability in a bin whose mean gap is known."""
    shares = np.clip(np.linspace(low, high, 11) + gap, 0.0, 1.0)
    return float((shares * (1 - shares)).max()) + (high - low) ** 2 / 4
