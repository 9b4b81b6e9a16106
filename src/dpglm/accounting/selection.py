"""Exact price of adaptive rounds [bounded-range selection; release], Lemma 4 of docs/proofs/composition.md.

With eta the range of the selection and W the loss of the release,

    H_0(x) = (1 - e^x)_+,    G(x) = E_W[H_{k-1}(x - W)],
    H_k(x) = max over t in [0, eta] of  p_t G(x - t) + (1 - p_t) G(x - t + eta),

p_t = (1 - e^{t-eta}) / (1 - e^{-eta}). On a grid of step eta/m the curve is taken linear in e^x between
points, which is an upper bound because the true one is convex in e^x. Where x - t runs through one cell
the objective is A z + B + C/z in z = e^{-t}, so its maximum has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector
from .curves import Profile, symmetric
from .pld import TAIL, GridLaw, discretise

_CUT = TAIL / 100
_NO_LOSS = GridLaw(1.0, 0, np.ones(1), 0.0)
# Share of the mass whose losses, the least, are raised: expected values of H rise by no larger a share.
_RAISED = 1e-13


@dataclass(frozen=True)
class SampledCurve:
    """A symmetric curve known at 0, step, 2 step, ...: linear in e^x between, constant after the end."""

    step: float
    values: Vector

    def __call__(self, x: Vector) -> Vector:
        last = len(self.values) - 1
        cell = np.minimum(x / self.step, max(last - 1, 0)).astype(int)  # a quotient may exceed any int
        share = np.expm1(np.minimum(x - cell * self.step, self.step)) / math.expm1(self.step)
        value: Vector = self.values[cell] * (1 - share) + self.values[np.minimum(cell + 1, last)] * share
        return value


def selection_rounds(
    eta: float, release: Profile | None, counts: Iterable[int], cells: int
) -> dict[int, Profile]:
    """Return the dominating curve of k rounds for every k in ``counts``.

    Parameters
    ----------
    eta : float
        Range of the privacy loss of one selection.
    release : Profile or None
        Curve of the release that follows each selection.
    counts : iterable of int
        Numbers of rounds wanted.
    cells : int
        Grid cells per standard deviation of the loss of a round (at most that many per eta).
    """
    from ..kernels.rounds import advance

    counts = set(counts)
    loss = math.hypot(eta / 2, release.size if release else 0.0)
    # a range below one grid step is rounded up to it: an eta-bounded range is eta'-bounded for eta' > eta
    eta = max(eta, 2 * loss / cells)
    per_range = min(cells, max(1, math.ceil(eta * cells / (2 * loss))))
    step = eta / per_range
    law = _without_gains(discretise(release, step, tail=_CUT * 1e-4)) if release else _NO_LOSS
    most = max(counts) * (per_range + law.high) + 1
    curve, wide, after = np.zeros(most), np.empty(3 * most + len(law.mass)), np.empty(3 * most)
    rises = np.expm1(step * np.arange(-per_range, 1.0))
    falls = -np.expm1(-step * np.arange(per_range + law.high + 1.0))
    found, done, size = {}, 0, 1
    for count in sorted(counts):
        size = advance(
            curve, size, count - done, rises, falls, math.expm1(step), law.low, law.mass, law.infinite, _CUT,
            wide, after,
        )  # fmt: skip
        found[count], done = symmetric(SampledCurve(step, curve[:size].copy())), count
    return found


def _without_gains(law: GridLaw) -> GridLaw:
    """The law with its least losses raised to one value: H falls, so no E[H(x - W)] becomes smaller."""
    first = int(np.searchsorted(np.cumsum(law.mass), _RAISED))
    mass = law.mass[first:].copy()
    mass[0] += law.mass[:first].sum()
    return GridLaw(law.step, law.low + first, mass, law.infinite)
