"""Public facts about a single record, declared before anybody looks at the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .arrays import Vector
from .entries import numbers, well_formed

SMALLEST, LARGEST = 1e-50, 1e50
"""Bounds outside this range would let squares and products of bounded numbers underflow or overflow."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What every record is known, or made, to satisfy.

    Records outside the bounds are clipped into them: an entry is cut to its feature bound, then a
    row that is longer than ``row_norm`` is scaled down to it, and a target is cut to its range.
    Bounds are declared, never measured: a bound computed from the records would leak.

    Parameters
    ----------
    row_norm : float, optional
        Largest Euclidean norm of a row. Infinity means none, which only a fit without noise accepts.
    feature : float or array of shape (n_features,), optional
        Largest absolute value of each feature.
    target : (float, float), optional
        Smallest and largest target of a regression.

    Examples
    --------
    >>> from dpglm import Bounds
    >>> Bounds(feature=[3.0, 4.0]).radius(2)
    5.0
    """

    row_norm: float | None = None
    feature: float | Vector | None = None
    target: tuple[float, float] | None = None
    _key: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.row_norm is None and self.feature is None:
            raise ValueError(
                "Bounds needs row_norm, feature or both, since no sensitivity is finite without them: for "
                "example Bounds(row_norm=1.0, target=(low, high))"
            )
        if self.row_norm is not None:
            unlimited = isinstance(self.row_norm, Real) and self.row_norm == math.inf
            limit = math.inf if unlimited else _positive("row_norm", self.row_norm)
            object.__setattr__(self, "row_norm", limit)
        feature = self.feature
        if feature is not None and np.ndim(feature) == 0:
            feature = _positive("feature", feature)
        elif feature is not None:
            feature = _positive_vector(feature)
        object.__setattr__(self, "feature", feature)
        if self.target is not None:
            object.__setattr__(self, "target", _range(self.target))
        shown = feature.tobytes() if isinstance(feature, np.ndarray) else feature
        object.__setattr__(self, "_key", (self.row_norm, shown, self.target))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounds) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def features(self, n_features: int) -> Vector:
        """Bound on the absolute value of each feature: the declared one, or the row norm."""
        if self.feature is None:
            return np.full(n_features, self._largest_norm)
        if isinstance(self.feature, np.ndarray) and self.feature.shape != (n_features,):
            raise ValueError(
                f"Bounds.feature has {self.feature.size} entries, the table has {n_features} features"
            )
        limits: Vector = np.minimum(np.broadcast_to(self.feature, n_features), self._largest_norm)
        return limits

    def radius(self, n_features: int) -> float:
        """Largest Euclidean norm that a row within the bounds can have."""
        if self.feature is None:
            return self._largest_norm
        return min(float(np.linalg.norm(self.features(n_features))), self._largest_norm)

    @property
    def _largest_norm(self) -> float:
        return math.inf if self.row_norm is None else self.row_norm

    @property
    def limits_rows(self) -> bool:
        """Whether there is a row that lies outside."""
        return self.feature is not None or self.row_norm != math.inf

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a row
    def clip(self, X: ArrayLike | sp.sparray | sp.spmatrix) -> Vector | sp.csr_array:
        """A copy of ``X`` with every row inside the bounds, as a prediction sees it.

        Parameters
        ----------
        X : array, data frame or sparse table of shape (n, n_features)

        Returns
        -------
        array or CSR table
            In double precision; sparse if X is.

        Examples
        --------
        >>> from dpglm import Bounds
        >>> Bounds(row_norm=1.0).clip([[3.0, 4.0], [0.3, 0.4]])
        array([[0.6, 0.8],
               [0.3, 0.4]])
        """
        if sp.issparse(X):
            rows = sp.csr_array(well_formed(X), copy=True)
            rows.sum_duplicates()
            rows.data = self._cut(rows.data, rows.indices, rows.shape[1])
            factors = self.shrink(np.sqrt(rows.multiply(rows).sum(axis=1)))
            return sp.csr_array(sp.diags_array(factors) @ rows)
        rows = np.atleast_2d(_floats(X))
        if rows.ndim != 2:
            raise ValueError(f"X must have two dimensions, a row for each record, got shape {rows.shape}")
        rows = self._cut(rows, slice(None), rows.shape[1])
        return rows * self.shrink(np.linalg.norm(rows, axis=1))[:, None]

    def _cut(
        self, entries: NDArray[np.floating], columns: NDArray[np.integer] | slice, n_features: int
    ) -> Vector:
        """Entries of these columns, each cut to its feature bound in the precision that it has."""
        if self.feature is not None:
            limit = rounded_down(self.features(n_features), entries.dtype)[columns]
            entries = np.clip(entries, -limit, limit)
        return entries.astype(np.float64)

    def shrink(self, norms: Vector) -> Vector:
        """Factor at most 1 that brings rows of these norms inside ``row_norm``."""
        if self._largest_norm == math.inf:
            return np.ones_like(norms)
        return self._largest_norm / np.maximum(norms, self._largest_norm)

    @property
    def rows_in_words(self) -> str:
        """The bounds of a row, in words."""
        parts = []
        if self.row_norm is not None:
            parts.append(f"row norm <= {self.row_norm:g}")
        if isinstance(self.feature, np.ndarray):
            low, high = self.feature.min(), self.feature.max()
            parts.append(f"|feature j| <= b_j with b_j between {low:g} and {high:g}")
        elif self.feature is not None:
            parts.append(f"|feature| <= {self.feature:g}")
        return ", ".join(parts)

    def __str__(self) -> str:
        if self.target is None:
            return self.rows_in_words
        return f"{self.rows_in_words}, target in [{self.target[0]:g}, {self.target[1]:g}]"


def rounded_down(limit: Vector, dtype: np.dtype[np.floating]) -> NDArray[np.floating]:
    """The limits in the precision of a table, never above their true value, nor above its largest number."""
    with np.errstate(all="ignore"):  # limits may be beyond that precision
        edge = limit.astype(dtype)
        return np.where(edge > limit, np.nextafter(edge, np.zeros_like(edge)), edge)


def _floats(X: ArrayLike) -> NDArray[np.floating]:
    """X in single or double precision; NaN for an object that is no number."""
    try:
        typed = hasattr(X, "dtype") or hasattr(X, "__array__")
        array = np.asarray(X) if typed else np.asarray(X, dtype=object)
        if array.dtype == object:
            return numbers(array.ravel()).reshape(array.shape)
        return array if array.dtype == np.float32 else array.astype(np.float64)
    except Exception:  # an object may raise anything, and the message would quote an entry
        pass
    raise ValueError("X must be numeric, it holds something else")


def _positive(name: str, value: object) -> float:
    if not (isinstance(value, Real) and SMALLEST <= float(value) <= LARGEST):
        raise ValueError(f"{name} must be a positive number from {SMALLEST:g} to {LARGEST:g}, got {value!r}")
    return float(value)


def _positive_vector(values: object) -> Vector:
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.zeros((0, 0))
    if vector.ndim != 1 or not ((vector >= SMALLEST) & (vector <= LARGEST)).all():
        raise ValueError(
            f"feature must be a positive number from {SMALLEST:g} to {LARGEST:g}, or a vector of them, one "
            "for each feature"
        )
    vector.flags.writeable = False
    return vector


def _range(target: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in target)
    except (TypeError, ValueError):
        low = high = math.nan
    if not -LARGEST <= low < high <= LARGEST:
        raise ValueError(f"target must be two numbers (low, high) with low < high, got {target!r}")
    return low, high
