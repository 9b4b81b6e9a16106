"""Whether a worker computes, bit for bit, what the driver computes: a public table is summed on both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...arrays import Vector, grid_of_terms, on_column_grids
from ...bounds import Bounds, Coordinates
from ...kernels.arguments import PAIRED
from ...losses import LogCosh, Logistic, Loss, Multinomial
from ..bounded_numbers import (
    ClassSizes,
    CutGains,
    CutValues,
    LossValues,
    MeanRows,
    RowAndTargetSizes,
    RowSizes,
)
from ..products import (
    ClassGradients,
    CrossProducts,
    GramRows,
    JointMargins,
    JointRows,
    MetricClassRows,
    MetricRows,
    MomentRows,
)
from ..records import Records
from ..source import as_data
from ..terms import (
    CutGradient,
    Gradient,
    GramProduct,
    InterceptGradient,
    PreciseGradient,
    SizedGradient,
    SquaredRow,
    Term,
)

_ROWS, _COLUMNS = 96, 19
_ODD = (0.0, -0.0, 5e-324, 1e-310, -1e-300, 2.0**-53, 1.0, -1.0, 1e6, 1e150, 1e308, np.inf, -np.inf, np.nan)
_BOUNDS = Bounds(row_norm=1.0, feature=0.75)
_PACKAGES = ("dpglm", "numpy", "numba")


@dataclass(frozen=True, eq=False, repr=False)
class Probe:
    """A question about a table that everybody knows: its rows have nothing to do with the records.

    Parameters
    ----------
    loss : Loss
        The loss of the fit.
    sparse : bool
        Whether blocks are sparse.
    dtype : dtype
        The type of their entries.
    """

    loss: Loss
    sparse: bool
    dtype: np.dtype[np.floating]

    @np.errstate(all="ignore")
    def answer(self) -> str:
        """A digest of norms, margins, slopes and sums of every kind, as this process computes them."""
        digest = hashlib.sha256()
        for records in self._tables():
            w = _numbers(_COLUMNS + 1, 7) * 4
            z = records.margins(w)
            slopes = records.slopes(self._one, z)
            for values in (records.scale, records.row_norms, z, slopes):
                digest.update(np.where(np.isnan(values), 0.0, values).tobytes())
            for term in self._terms(w):
                if term.cuts is not None:
                    grid: float | Vector = np.full(_COLUMNS + 1, grid_of_terms(term.limit, _ROWS))
                    digest.update(records.steps(term, grid).tobytes())
                    continue
                for finely in (0, 1):
                    digest.update(records.steps(term, grid_of_terms(term.limit, _ROWS), finely).tobytes())
            if self._one.form in PAIRED:
                pair = PreciseGradient(self._one, np.array([w, w * 2.0**-55]), 0.5)
                digest.update(records.steps(pair, grid_of_terms(0.5, _ROWS), 2).tobytes())
            for products in self._products(w):
                digest.update(records.steps(products, 1.0).tobytes())
        return digest.hexdigest()

    @property
    def _one(self) -> Loss:
        """The loss, or a loss of one prediction if it has several."""
        return self.loss if self.loss.outputs == 1 else Logistic()

    def _tables(self) -> Iterator[Records]:
        """The table in each layout that blocks may have."""
        X = (_numbers(_ROWS * _COLUMNS, 3) * 2).reshape(_ROWS, _COLUMNS)
        X *= np.ldexp(1.0, np.arange(_ROWS) % 7 - 3)[:, None]
        X[np.arange(0, _ROWS, 3), np.arange(0, _ROWS, 3) % _COLUMNS] = 0.0
        odd = np.arange(len(_ODD))
        X[5 * odd, odd] = _ODD
        X[-1], X[-2] = 1e-310, 5e-324
        X = X.astype(self.dtype)
        y = _numbers(_ROWS, 5)
        bounds = _BOUNDS
        if self.loss.kind == "classification":
            y = np.where(y > 0, 1.0, -1.0)
        else:
            bounds = Bounds(row_norm=1.0, feature=0.75, target=(0.0, 1.0))
            y[: len(_ODD)] = _ODD
        layouts = [sp.csr_array(X)] if self.sparse else [X, np.asfortranarray(X)]
        return (as_data(table, y, bounds, 0.5) for table in layouts)

    def _terms(self, w: Vector) -> list[Term]:
        return [
            Gradient(self._one, w, 0.5),
            Gradient(self._one, w, 0.5, scales=np.linspace(0.1, 1.0, _COLUMNS)),
            SizedGradient(self._one, w, 0.5),
            InterceptGradient(self._one, w, 0.5),
            CutGradient(self._one, w, np.full(_COLUMNS + 1, 0.125)),
            SquaredRow(1.25),
            GramProduct(w, 1.25),
        ]

    def _products(self, w: Vector) -> list[CrossProducts]:
        """Products of the numbers of a record, as solvers for narrow tables ask for."""
        coordinates = _BOUNDS.coordinates(_COLUMNS, intercept=True)
        metric = on_column_grids(np.outer(w, w[::-1]) + np.eye(_COLUMNS + 1))
        point, points = on_column_grids(w[:, None])[:, 0], np.column_stack([w, w / 2])
        loss = Logistic() if self.loss.kind == "classification" else LogCosh(0.5)
        return [
            MomentRows(coordinates, 1.5, 0.25, 0.5, _ROWS),
            JointRows(loss, coordinates, 1.0, 0.6, _ROWS, metric, point),
            JointMargins(loss, None, 1.0, 0.6, _ROWS, metric[:2, :2], point[:2], w),
            LossValues(loss, coordinates, 2.0, _ROWS, point),
            GramRows(coordinates, 1.5, metric, _ROWS),
            MeanRows(replace(coordinates, intercept=False), 0.9, _ROWS),
            RowSizes(coordinates, 1.5, 0.25, 0.5, _ROWS),
            RowSizes(None, 1.5, 0.25, 0.5, _ROWS),
            RowSizes(None, 1.5, 0.25, 0.5, _ROWS, scales=np.linspace(0.1, 1.0, _COLUMNS)),
            RowAndTargetSizes(coordinates, 1.5, 0.25, 0.5, _ROWS),
            MetricRows(self._one, coordinates, metric, w, 0.5, 0.6, _ROWS),
            CutValues(self._one, 2.0, _ROWS, points),
            CutGains(self._one, 0.5, _ROWS, points),
            *(self._of_classes(coordinates, metric, w) if isinstance(self.loss, Multinomial) else ()),
        ]

    def _of_classes(self, coordinates: Coordinates, metric: Vector, w: Vector) -> list[CrossProducts]:
        """Sums with a prediction for each class."""
        assert isinstance(self.loss, Multinomial)
        points = np.outer(w, np.linspace(-1.0, 2.0, self.loss.classes))
        return [
            ClassGradients(self.loss, points, 0.5, 0.5, _ROWS),
            MetricClassRows(self.loss, coordinates, metric, points, 0.5, 0.6, _ROWS),
            ClassSizes(None, 1.5, self.loss.classes, _ROWS),
        ]


def versions() -> dict[str, str]:
    """The versions, in this process, of what computes sums."""
    return {name: _version(name) for name in _PACKAGES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _numbers(count: int, seed: int) -> NDArray[np.float64]:
    """Numbers between -1 and 1 that are the same in every version of NumPy, on every processor."""
    state = np.random.RandomState(seed)  # noqa: NPY002  # the newer generators may change their streams
    return 2 * state.random_sample(count) - 1
