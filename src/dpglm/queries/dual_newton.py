"""Newton steps to the minimiser for losses whose slope jumps: for fits without noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector, soft_threshold
from ..data.records import Records
from ..losses import Loss

if TYPE_CHECKING:
    from .dual_step import DualForm

_MOST_NEWTON_STEPS = 50
_MOST_HALVINGS = 40
_ENOUGH = 1e-4
_VALUE_ERROR = 2.0**-46
_AT_AN_END = 1e-9
_HELD = 1e-6
_ENTRIES = 1 << 20


class DualNewton:
    """Dual variables of a piecewise linear loss, moved by the proximal point method on the dual problem.

    A round maximises the dual objective less width / (2n) times the squared distance from where the dual
    variables are. That is to minimise, over the coefficients, an objective in which each loss is rounded off
    over the width: it is piecewise quadratic, and Newton steps end at its minimum (the semismooth Newton
    augmented Lagrangian method; Li, Sun and Toh, 2018). Rounds lead to the minimiser for any width: a smaller
    one takes fewer of them, and leaves fewer records at a kink.

    An L1 part or an interval of a coefficient is rounded off in the same way and has a variable of its own.
    ``point`` holds the coefficients with the zeros of the one and inside the other.

    Parameters
    ----------
    loss : Loss
        With exact dual steps.
    data : Records
    form : DualForm
    alpha : array of shape (n_records,)
        Dual variables to start from.
    w : array
        Coefficients to start from, the intercept being the last one.
    """

    def __init__(self, loss: Loss, data: Records, form: DualForm, alpha: Vector, w: Vector) -> None:
        self._loss, self._data, self._form = loss, data, form
        self.alpha, self.w, self.point = alpha, w, w
        self._pull = np.zeros_like(w)
        self._l2 = form.l2.copy()
        _, free = form.split(self._l2)
        free[:] = 0.0
        self._entry = float(np.square(data.row_norms).mean()) / len(w) or 1.0

    def round(self, width: float) -> int:
        """Move dual variables and coefficients to where a round ends; the number of Newton steps."""
        self._width, self._loose = width, width / self._entry
        self._hold, self._centre = np.zeros_like(self.w), self.w
        _, intercept = self._form.split(self._hold)  # little beside the curvature that one record adds
        intercept[:] = _HELD * self._data.constant**2 / (self._form.n * width)
        here = self._at(self.w, self._data.margins(self.w))
        taken = 0
        while taken < _MOST_NEWTON_STEPS:
            taken += 1
            gradient = self._gradient(here)
            try:
                move = np.asarray(-np.linalg.solve(self._hessian(here), gradient), np.float64)
            except np.linalg.LinAlgError:
                break
            before, here, length = here, *self._along(here, move, float(gradient @ move))
            if length == 0.0 or length == 1.0 and before.same_piece(here):
                break
        self.alpha, self._pull, self.w, self.point = here.alpha, here.pull, here.w, here.free
        return taken

    def _along(self, here: _Point, move: Vector, slope: float) -> tuple[_Point, float]:
        """The first point of enough descent among halved moves, and its share of the move, 0 if none is."""
        change, length = self._data.dot(move), 1.0
        for _ in range(_MOST_HALVINGS):
            ahead = self._at(here.w + length * move, here.z + length * change)
            if ahead.value <= here.value + _ENOUGH * length * slope + _VALUE_ERROR * abs(here.value):
                return ahead, length
            length /= 2
        return here, 0.0

    def _at(self, w: Vector, z: Vector) -> _Point:
        loss, y, width, loose, form = self._loss, self._data.y, self._width, self._loose, self._form
        step = loss.dual_step(self.alpha, z, y, np.full_like(z, width))
        alpha, u = self.alpha + step, z + width * step
        value = float((loss.value(u, y) + width * step * (self.alpha + step / 2)).mean())
        # At a kink the slope is none of those beside it.
        kinks = np.abs(alpha + loss.derivative(u, y)) > _AT_AN_END * loss.lipschitz()
        ahead = w + loose * self._pull
        shrunk = soft_threshold(ahead, loose * form.l1)
        free = np.clip(shrunk, form.low, form.high)
        off = w - free
        value += float((form.l1 * np.abs(free) + off * (self._pull + off / (2 * loose))).sum())
        value += float((self._l2 * w**2 + self._hold * np.square(w - self._centre)).sum()) / 2
        stiff = (free != shrunk) | ((shrunk == 0.0) & (form.l1 > 0))
        return _Point(w, z, free, value, alpha, (ahead - free) / loose, kinks, stiff)

    def _gradient(self, here: _Point) -> Vector:
        own = self._l2 * here.w + here.pull + self._hold * (here.w - self._centre)
        return own - self._data.t_dot(here.alpha) / self._form.n

    def _hessian(self, here: _Point) -> Vector:
        active, units = np.flatnonzero(here.kinks), np.eye(len(here.w))
        hessian = np.diag(self._l2 + self._hold + here.stiff / self._loose)
        chunk = max(_ENTRIES // len(units), 1)
        for start in range(0, len(active), chunk):
            rows = self._data.rows(active[start : start + chunk])
            columns = np.column_stack([rows.dot(unit) for unit in units])
            hessian += columns.T @ columns / (self._form.n * self._width)
        return hessian


@dataclass(frozen=True, eq=False)
class _Point:
    """Coefficients, margins, the rounded objective there, new dual variables, and what is at a kink."""

    w: Vector
    z: Vector
    free: Vector
    value: float
    alpha: Vector
    pull: Vector
    kinks: NDArray[np.bool_]
    stiff: NDArray[np.bool_]

    def same_piece(self, other: _Point) -> bool:
        return np.array_equal(self.kinks, other.kinks) and np.array_equal(self.stiff, other.stiff)
