"""Dual coordinate ascent with dual variables that stay secret, and Newton steps for fits without noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Total, Vector, soft_threshold
from ..data.records import Records
from ..data.terms import DualMoves
from ..kernels.arguments import DualPoint, DualVariables, Form
from ..losses import Loss
from ..mechanisms import Gaussian
from ..mechanisms.sampling import Everyone, Sampling
from ..privacy import Neighbours
from ..tables import Rows
from .base import Batch, Opening, Query, require_enforceable, require_moderate

T = TypeVar("T")

_GAP_ERROR = 2.0**-50
_WIDTH = 100.0
_NARROWER = 5.0
_LEAST_WIDTH = 1e-7
_MOST_ROUNDS = 40
_VAIN_ROUNDS = 4
_MOST_NEWTON_STEPS = 50
_MOST_HALVINGS = 40
_DESCENT_SHARE = 1e-4
_VALUE_ERROR = 2.0**-46
_AT_AN_END = 1e-9
_INTERCEPT_HOLD = 1e-6
_ENTRIES = 1 << 20


@dataclass(frozen=True)
class DualForm:
    """How coefficients follow from the sum of all dual variables times their rows: a public function.

    Coefficient j minimises l1 abs(u) + l2/2 u² - u v_j / n over u in [low, high]; the last one is ``centre``
    more if there is an intercept.
    """

    n: int
    l1: Vector
    l2: Vector
    low: Vector
    high: Vector
    centre: float = 0.0
    intercept: bool = False

    def point(self, v: Vector) -> Vector:
        """The coefficients at v."""
        w: Vector
        if self._plain:
            w = v * self.compiled.inverse
        else:
            w = soft_threshold(v / self.n, self.l1) / self.l2
            np.clip(w, self.low, self.high, out=w)
        if self.intercept:
            w[-1] += self.centre
        return w

    def split(self, w: Vector) -> tuple[Vector, Vector]:
        """Coefficients of the features, and the intercept: one number or none. Both are views."""
        features, intercept = np.split(w, [len(w) - self.intercept])
        return features, intercept

    def around(self, w: Vector) -> DualForm:
        """The form that holds the intercept around where it is at w."""
        _, intercept = self.split(w)
        return replace(self, centre=float(intercept[0])) if self.intercept else self

    @cached_property
    def compiled(self) -> DualPoint:
        """The same for compiled code."""
        inverse = 1 / (self.n * self.l2)
        features, _ = self.split(inverse)
        shared = self._plain and (features == features[:1]).all()
        common = float(features[0]) if shared and len(features) else 0.0
        return DualPoint(self.centre, inverse, self.n * self.l1, self.low, self.high, self._plain, common)

    @cached_property
    def _plain(self) -> bool:
        """Whether coefficients are multiples of v: nothing is thresholded or clipped."""
        return bool(not self.l1.any() and np.isinf(self.low).all() and np.isinf(self.high).all())

    def conjugate(self, v: Vector) -> float:
        """The largest value of u·v/n less the penalty of u, over all coefficients u."""
        w = self.point(v)
        return float(w @ v / self.n - self.penalty(w))

    def penalty(self, w: Vector) -> float:
        """The penalty of coefficients, that of the intercept for how far it is from its centre."""
        features, intercept = self.split(w)
        free = np.concatenate([features, intercept - self.centre])
        return float((self.l1 * np.abs(free) + self.l2 / 2 * np.square(free)).sum())


@dataclass(frozen=True, eq=False)
class DualStep(Query):
    """Sum over the records of dual step times row, each scaled down to L2 norm at most ``clip``.

    Every record keeps a dual variable, 0 at first, that no release ever shows. Its step is the loss's
    ``dual_step`` from there, and is added to it only if the record is in the batch.

    Parameters
    ----------
    loss : Loss
    clip : float
        Largest norm of what a record adds.
    weight, constant_weight : float
        How much a record's prediction changes with its own step: the first times the squared norm of its row
        plus the second times the square of the constant feature.
    shared_weight : float
        How much it changes with the rest of the batch, whose steps are taken to be as long as its own.
    scales : array, optional
        Public factors from 0 to 1 that columns are multiplied by first; w are coefficients of the products.
    constant : float, optional
        The constant feature beside scaled columns; by default that of the records.

    Guarantee
    ---------
    For any dual variable, a record adds a vector of norm at most C, so the sum moves by at most C
    if the record is zeroed out, 2C if it is replaced. The variables of all other records are functions of
    what was released and of their own coins, so they are the same for neighbours. A row in scaled columns is
    a function of one record.
    """

    name: ClassVar[str] = "dual step"
    needs = (Rows,)
    loss: Loss
    clip: float
    weight: float
    constant_weight: float
    shared_weight: float = 0.0
    scales: Vector | None = None
    constant: float | None = None

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)

    def __call__(self, data: Records, *public: Vector) -> Vector:
        (w,) = public
        return self.open(Opening.exact(data, w, Gaussian(0.0))).step(w, Everyone())

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.clip * neighbours.records_moved

    def open(self, opening: Opening) -> OpenDual:
        """Start with dual variables of 0."""
        return OpenDual(self, opening)


class OpenDual:
    """Dual variables behind ``step``, and without noise behind ``ascend``, ``polish`` and ``gap``."""

    def __init__(self, query: DualStep, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Gaussian):
            raise opening.wrong_kind(query, "adds Gaussian noise")
        data, self._releases, self._mechanism = opening.resident, opening.releases, opening.mechanism
        if query.scales is not None:
            data = data.with_columns(query.scales)
        if query.constant is not None:
            data = data.with_constant(query.constant)
        self._query, self._data, self._sensitivity = query, data, query.sensitivity(opening.neighbours)
        self._alpha = np.zeros(data.n_records)
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would reveal something of a record
            own = query.weight * np.square(data.norms)
            own += query.constant_weight * np.square(data.intercept_column)
        self._weight = own + query.shared_weight

    def step(self, w: Vector, sampling: Sampling) -> Vector:
        """The steps of a batch times their rows, made private: costs one event."""
        require_moderate(w)
        return self._releases.sampled(
            lambda batch: self._answer(w, batch), self._keep, self._sensitivity, self._mechanism, sampling
        )

    def _answer(self, w: Vector, batch: Batch) -> tuple[Total, Vector]:
        """The exact sum over a batch, and the dual variables that its steps lead to, not taken yet."""
        data, alpha, weight = self._data, self._alpha, self._weight
        if batch is not None:
            data, alpha, weight = data.rows(batch), alpha[batch], weight[batch]
        moves = np.empty(data.n_records)
        total = data.total(DualMoves(self._query.loss, w, self._query.clip, alpha, weight, moves))
        moves += alpha
        return total, moves

    def _keep(self, batch: Batch, alpha: Vector) -> None:
        self._alpha[slice(None) if batch is None else batch] = alpha

    def ascend(
        self, v: Vector, form: DualForm, order: NDArray[np.int64], passes: int
    ) -> tuple[Vector, NDArray[np.int64], int]:
        """Steps of one record after the other, in ``order``, then of those that moved, and so on.

        Returns the sum v, those that moved in the last pass, and the number of steps. Not private: noise
        must be 0.
        """
        self._require_no_noise()
        v, w, order, steps = v.copy(), form.point(v), order.copy(), 0
        for _ in range(passes):
            steps += len(order)
            order = order[: self._pass(v, w, form, order)]
        return self._exactly(v), order, steps

    def _pass(self, v: Vector, w: Vector, form: DualForm, order: NDArray[np.int64]) -> int:
        """A step of each record of ``order``; those that moved are put first. Returns their number."""
        loss, data = self._query.loss, self._data
        if loss.form is None:
            for i in order:
                moved, alpha = self._answer(w, np.array([i]))
                self._keep(np.array([i]), alpha)
                v += np.asarray(moved)
                w[:] = form.point(v)
            return len(order)
        variables = DualVariables(data.y, self._weight, self._limit, self._alpha)
        return data.ascend(Form.of(loss), variables, v, w, form.compiled, order)

    @cached_property
    def _limit(self) -> Vector:
        """The largest step of each record."""
        with np.errstate(divide="ignore"):
            return self._query.clip / self._data.row_norms

    def polish(self, w: Vector, form: DualForm, tolerance: float) -> tuple[Vector, Vector, int]:
        """Newton steps from w until the gap is at most ``tolerance`` times the objective.

        Returns where the gap was least, the sum v there, and the number of records read. It is w itself, and
        dual variables stay where they are, if no step made the gap less. Not private: noise must be 0.
        """
        self._require_no_noise()
        loss, data = self._query.loss, self._data
        gap, objective = self._gap(w, form, self._alpha)
        best, newton, steps = (gap, w, self._alpha), DualNewton(loss, data, form, self._alpha, w), 0
        unit, waited = loss.lipschitz() ** 2, 0
        width, least = (min(objective, _WIDTH * gap) or gap) / unit, _LEAST_WIDTH * objective / unit
        with np.errstate(all="ignore"):
            for _ in range(_MOST_ROUNDS):
                steps += data.n_records * newton.round(width)
                gap, objective = self._gap(newton.point, form.around(newton.point), newton.alpha)
                waited += 1
                if gap < best[0]:
                    best, waited = (gap, newton.point, newton.alpha), 0
                if waited == _VAIN_ROUNDS or not gap > tolerance * abs(objective):
                    break
                width = max(width / _NARROWER, least)
        _, w, self._alpha = best
        return self._exactly(w), self._exactly(data.t_dot(self._alpha)), steps

    def gap(self, w: Vector, form: DualForm) -> tuple[float, float]:
        """Upper bound on objective minus minimum at w, 0 if rounding hides it; and the objective.

        Not private: noise must be 0. The minimum is over the coefficients, with the intercept held fixed.
        """
        self._require_no_noise()
        gap, primal = self._gap(w, form, self._alpha)
        return self._exactly(gap), self._exactly(primal)

    def _gap(self, w: Vector, form: DualForm, alpha: Vector) -> tuple[float, float]:
        loss, y = self._query.loss, self._data.y
        primal = loss.value(self._data.margins(w), y).mean() + form.penalty(w)
        conjugates, other = loss.conjugate(-alpha, y), form.conjugate(self._data.t_dot(alpha))
        gap = primal + conjugates.mean() + other
        hidden = _GAP_ERROR * (abs(primal) + np.abs(conjugates).mean() + abs(other))
        return 0.0 if abs(gap) <= hidden < np.inf else float(gap), float(primal)

    def _require_no_noise(self) -> None:
        if self._mechanism.noise > 0:
            raise ValueError(
                "steps one by one, Newton steps and the duality gap are not private: for fits without noise "
                "only"
            )

    def _exactly(self, answer: T) -> T:
        """An answer of a fit without noise."""
        exact: T = self._releases.give(answer, 0.0, self._mechanism)
        return exact


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
        intercept[:] = _INTERCEPT_HOLD * self._data.constant**2 / (self._form.n * width)
        current = self._at(self.w, self._data.margins(self.w))
        taken = 0
        while taken < _MOST_NEWTON_STEPS:
            taken += 1
            gradient = self._gradient(current)
            try:
                move = np.asarray(-np.linalg.solve(self._hessian(current), gradient), np.float64)
            except np.linalg.LinAlgError:
                break
            before, current, length = current, *self._line_search(current, move, float(gradient @ move))
            if length == 0.0 or length == 1.0 and before.same_piece(current):
                break
        self.alpha, self._pull, self.w, self.point = current.alpha, current.pull, current.w, current.free
        return taken

    def _line_search(self, current: _Point, move: Vector, slope: float) -> tuple[_Point, float]:
        """The first point of enough descent among halved moves, and its share of the move, 0 if none is."""
        change, length = self._data.dot(move), 1.0
        for _ in range(_MOST_HALVINGS):
            trial = self._at(current.w + length * move, current.z + length * change)
            if trial.value <= current.value + _DESCENT_SHARE * length * slope + _VALUE_ERROR * abs(
                current.value
            ):
                return trial, length
            length /= 2
        return current, 0.0

    def _at(self, w: Vector, z: Vector) -> _Point:
        loss, y, width, loose, form = self._loss, self._data.y, self._width, self._loose, self._form
        step = loss.dual_step(self.alpha, z, y, np.full_like(z, width))
        alpha, u = self.alpha + step, z + width * step
        value = float((loss.value(u, y) + width * step * (self.alpha + step / 2)).mean())
        # At a kink the slope is none of those beside it.
        kinks = np.abs(alpha + loss.derivative(u, y)) > _AT_AN_END * loss.lipschitz()
        shifted = w + loose * self._pull
        shrunk = soft_threshold(shifted, loose * form.l1)
        free = np.clip(shrunk, form.low, form.high)
        off = w - free
        value += float((form.l1 * np.abs(free) + off * (self._pull + off / (2 * loose))).sum())
        value += float((self._l2 * w**2 + self._hold * np.square(w - self._centre)).sum()) / 2
        stiff = (free != shrunk) | ((shrunk == 0.0) & (form.l1 > 0))
        return _Point(w, z, free, value, alpha, (shifted - free) / loose, kinks, stiff)

    def _gradient(self, current: _Point) -> Vector:
        own = self._l2 * current.w + current.pull + self._hold * (current.w - self._centre)
        return own - self._data.t_dot(current.alpha) / self._form.n

    def _hessian(self, current: _Point) -> Vector:
        active, units = np.flatnonzero(current.kinks), np.eye(len(current.w))
        hessian = np.diag(self._l2 + self._hold + current.stiff / self._loose)
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
