"""Which share of the records counted, where the releases of a fit tell.

A null record, one that cannot be read or lacks what may not be missing, adds nothing to any sum. So a release
to which every other record adds a known number says how many there are (docs/proofs/record_share.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector
from ..plan import Plan
from ..problem import Problem
from ..queries import Gram, Moments

ENOUGH = 0.9
"""A smaller share of the records is worth a warning."""

_DEVIATIONS = 2.0
_UNKNOWN = "which share of the records counted cannot be known"
_REMEDY = "`dpglm check` counts missing and unreadable cells of a raw table, column by column"


@dataclass(frozen=True)
class RecordShare:
    """The share of the records that counted, as a release says it.

    Attributes
    ----------
    least, most : float
        Ends of what it may be, but for noise: equal if the release says what it is. They are not cut to
        [0, 1].
    error : float
        Standard error of both ends, from noise.
    release : str
        Name of the query.
    """

    least: float
    most: float
    error: float
    release: str

    @property
    def margin(self) -> float:
        """Two standard errors."""
        return _DEVIATIONS * self.error

    @property
    def is_hidden(self) -> bool:
        """Whether there is so much noise that not even a table of null records would be noticed."""
        return self.margin >= ENOUGH

    @property
    def is_small(self) -> bool:
        """Whether fewer records counted than noise explains."""
        return max(self.most, 0.0) + self.margin < ENOUGH

    def __str__(self) -> str:
        least, most = (min(max(end, 0.0), 1.0) for end in (self.least, self.most))
        error = f"(± {math.ceil(100 * self.margin)} %)"
        if most - least <= self.margin:
            return f"about {100 * (least + most) / 2:.0f} % {error}"
        if most == 1.0:
            return f"at least {100 * least:.0f} % {error}"
        return f"between {100 * least:.0f} % and {100 * most:.0f} % {error}"


def combined(shares: Sequence[RecordShare]) -> RecordShare | None:
    """The mean of several, of which those with less noise count more; None of none."""
    if not shares:
        return None
    errors = np.array([share.error for share in shares])
    best = float(errors.min())
    precision = np.square(best / errors) if best > 0 else np.where(errors == 0, 1.0, 0.0)
    ends = np.array([(share.least, share.most) for share in shares])
    least, most = (precision @ ends / precision.sum()).tolist()
    names = " and ".join(dict.fromkeys(share.release for share in shares))
    return RecordShare(least, most, best / math.sqrt(precision.sum()), names)


def of_sum(plan: Plan, release: str, mean: float, noise: float) -> RecordShare:
    """From a sum to which each record that counts adds 1, over the number of records.

    ``noise`` is the deviation of the noise in ``mean``. A released number of records has noise of its own.
    """
    counting = 0.0 if plan.count is None else plan.count.mechanism.noise / plan.n_records
    return RecordShare(mean, mean, math.hypot(noise, mean * counting), release)


def of_moments(
    plan: Plan, problem: Problem, query: Moments, moments: Vector, noise: float
) -> RecordShare | None:
    """From second moments over the records: a constant has the square 1, and so has the target of a label.

    ``noise`` is the deviation of the noise in the sums. Weights multiply squares, and offsets may.
    """
    if problem.has_weights or math.isfinite(query.largest_offset):
        return None
    units = {}
    if query.coordinates.intercept:
        units[query.coordinates.dimension - 1] = 1.0
    if problem.loss.kind == "classification":
        units[query.size - 1] = query.target_scale**2
    n = plan.n_records
    return combined(
        [
            of_sum(plan, query.name, moments[k, k] / (n * unit), math.sqrt(2.0) * noise / (n * unit))
            for k, unit in units.items()
        ]
    )


def of_gram(plan: Plan, problem: Problem, query: Gram, gram: Vector, noise: float) -> RecordShare | None:
    """From the mean second moments of scaled features and a constant, of records cut to the norm if long.

    ``noise`` is the deviation of the noise in entries beside the diagonal. A record of squared norm r, in
    units of the bound, adds min(r, 1) to the trace and min(1, 1 / r) to the square of the constant. One of
    both is 1, and the other is not more; r is at least the share of the constant in the bound.
    """
    if problem.has_weights or not query.coordinates.intercept:
        return None
    squares, deviation, last = np.diag(gram), math.sqrt(2.0) * noise, float(query.transform[-1, -1])
    constant = float(squares[-1]) / last**2
    features = float(squares[:-1].sum()) / query.norm**2
    trace = features + float(squares[-1]) / query.norm**2
    error = deviation * math.hypot(1.0 / last**2, math.sqrt(len(squares) - 1) / query.norm**2)
    least, most = max(constant, trace), features + constant
    stated = of_sum(plan, query.name, most, error)
    return RecordShare(least, max(least, most), stated.error, query.name)


def in_words(share: RecordShare | None, unit: str) -> str:
    """What a promise says of it."""
    if share is None:
        return f"{_UNKNOWN} from what this fit released: {_REMEDY}"
    if share.is_hidden:
        return f"{_UNKNOWN}, since noise hides it: {_REMEDY}"
    mean = "" if unit == "record" else f", in the mean over the {unit}s"
    return f"{share} of the records counted{mean}; from the {share.release} that this fit released"


def is_unknown(words: str | None) -> bool:
    """Whether a promise says that nobody can know it."""
    return words is not None and words.startswith(_UNKNOWN)


def warning(share: RecordShare | None) -> str | None:
    """Why the table was perhaps not read as it should be, if fewer records counted than noise explains."""
    if share is None or not share.is_small:
        return None
    return (
        f"only {share} of the records counted, as the {share.release} says: the others cannot be read, or "
        f"lack what may not be missing. {_REMEDY}"
    )
