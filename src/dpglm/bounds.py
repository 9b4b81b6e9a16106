"""Public facts about a single record, declared before anybody looks at the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from . import strict
from .arrays import Vector
from .entries import numbers, well_formed

ROWS_PER_UNIT = 1000
"""How many records of a person count, unless another number is declared."""

MOST_OUTPUTS = 1024
"""Predictions of a record up to which the shares of persons allow for what rounding adds."""

SMALLEST, LARGEST = 1e-50, 1e50
"""Bounds outside this range would let squares and products of bounded numbers underflow or overflow."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Public coordinates of a row: features moved and scaled into [-1, 1], then 1 if there is an intercept.

    A null record has coordinates of 0.
    """

    middle: Vector
    half: Vector
    intercept: bool

    @property
    def dimension(self) -> int:
        """How many there are."""
        return len(self.middle) + self.intercept


Ends = float | Vector
Feature = Ends | tuple[Ends, Ends]
"""Largest absolute values, or low and high ends of ranges."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What every record is known, or made, to satisfy.

    Records outside the bounds are clipped into them: an entry is cut to its range, then a row that is longer
    than ``row_norm`` is scaled down to it, and a target is cut to its range.
    Bounds are declared, never measured: a bound computed from the records would leak.

    Parameters
    ----------
    row_norm : float, optional
        Largest Euclidean norm of a row. Infinity means none, which only a fit without noise accepts.
    feature : float, array of shape (n_features,) or (n_features, 2), or tuple (low, high), optional
        Largest absolute value of each feature, one for all or one for each. Or ranges: a pair of ends for
        each feature, or a *tuple* of the low and the high ends, each of them one number or an array. Only
        ranges that contain 0 go with ``row_norm``, and with sparse tables.
    target : (float, float), optional
        Smallest and largest target of a regression.
    weight : float, optional
        Largest weight of a record; weights are cut to [0, weight]. Noise hides a record of this weight.
        Infinity means no bound, which only a fit without noise accepts.
    offset : float or (float, float), optional
        Largest absolute value, or smallest and largest value, of the offset of a record; that of an exposure
        is its logarithm.
    rows_per_unit : int, optional
        How many records of a person count at most: the first ones. It states that the promise is one to
        persons, who may have several records; a fit is then told whose records they are by ``units``.

    Examples
    --------
    >>> from dpglm import Bounds
    >>> Bounds(feature=[3.0, 4.0]).radius(2)
    5.0
    >>> print(Bounds(feature=[(18, 90), (0, 250_000)], target=(0, 1)))
    feature j in [a_j, b_j], target in [0, 1]
    """

    row_norm: float | None = None
    feature: Feature | None = None
    target: tuple[float, float] | None = None
    weight: float | None = None
    offset: float | tuple[float, float] | None = None
    rows_per_unit: int | None = None
    _key: tuple[object, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.row_norm is None and self.feature is None:
            raise ValueError(
                "Bounds needs row_norm, feature or both, since no sensitivity is finite without them: for "
                "example Bounds(row_norm=1.0, target=(low, high))"
            )
        for name in ("row_norm", "weight"):
            object.__setattr__(self, name, _limit(name, getattr(self, name)))
        feature = None if self.feature is None else _feature(self.feature)
        object.__setattr__(self, "feature", feature)
        if isinstance(feature, tuple) and math.isfinite(self._largest_norm) and not self.ranges_contain_zero:
            raise ValueError("ranges of features must contain 0 if a row_norm is given: rows are scaled to 0")
        if self.target is not None:
            object.__setattr__(self, "target", _range("target", self.target))
        if self.offset is not None:
            size = self.offset
            ends = (-_positive("offset", size), float(size)) if isinstance(size, Real) else size
            object.__setattr__(self, "offset", _range("offset", ends))
        if self.rows_per_unit is not None:
            strict.keep(self, rows_per_unit=strict.whole)
        parts = feature if isinstance(feature, tuple) else (feature,)
        shown = tuple(end.tobytes() if isinstance(end, np.ndarray) else end for end in parts)
        key = self.row_norm, shown, self.target, self.weight, self.offset, self.rows_per_unit
        object.__setattr__(self, "_key", key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounds) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def features(self, n_features: int) -> Vector:
        """Bound on the absolute value of each feature: the declared one, or the row norm."""
        low, high = self.ranges(n_features)
        limits: Vector = np.maximum(-low, high)
        return limits

    def largest_feature(self, n_features: int) -> float:
        """Bound on the absolute value of all features."""
        if all(isinstance(end, float) for end in self._ends):
            n_features = 1  # one stands for all
        return float(self.features(n_features).max())

    def ranges(self, n_features: int) -> tuple[Vector, Vector]:
        """Smallest and largest value of each feature: as declared, but for what the row norm forbids."""
        norm = self._largest_norm
        if self.feature is None:
            return np.full(n_features, -norm), np.full(n_features, norm)
        for end in self._ends:
            if isinstance(end, np.ndarray) and end.shape != (n_features,):
                raise ValueError(
                    f"Bounds.feature has {end.size} entries, the table has {n_features} features"
                )
        low, high = (np.broadcast_to(end, n_features).astype(np.float64) for end in self._ends)
        return np.maximum(low, -norm), np.minimum(high, norm)

    def coordinates(self, n_features: int, intercept: bool) -> Coordinates:
        """Coordinates in which every range is [-1, 1]; without an intercept nothing is moved."""
        low, high = self.ranges(n_features)
        if not intercept:
            high = np.maximum(-low, high)
            low = -high
        return Coordinates((low + high) / 2, (high - low) / 2, intercept)

    @property
    def ranges_contain_zero(self) -> bool:
        """Whether 0 lies inside the bounds of every feature."""
        low, high = self._ends
        return bool(np.all(np.asarray(low) <= 0) and np.all(np.asarray(high) >= 0))

    @property
    def _ends(self) -> tuple[Ends, Ends]:
        """The declared ends of ranges."""
        if self.feature is None:
            return -math.inf, math.inf
        return self.feature if isinstance(self.feature, tuple) else (-self.feature, self.feature)

    @property
    def largest_weight(self) -> float:
        """Largest weight of a record; 1, the weight of a record without one, if none is declared."""
        return 1.0 if self.weight is None else self.weight

    @property
    def weight_unit(self) -> float:
        """The weight of a record that has the share 1 of what a record may add."""
        return self.largest_weight if math.isfinite(self.largest_weight) else 1.0

    @property
    def offset_range(self) -> tuple[float, float]:
        """Smallest and largest offset of a record; without end if none is declared."""
        return self.offset if isinstance(self.offset, tuple) else (-math.inf, math.inf)

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
            self.require_sparse()
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
        """Entries of these columns, each cut to its range in the precision that it has."""
        if self.feature is not None:
            low, high = rounded_inward(*self.ranges(n_features), entries.dtype)
            entries = np.clip(entries, low[columns], high[columns])
        return entries.astype(np.float64)

    def require_sparse(self) -> None:
        """Refuse ranges that do not contain 0: the entries that a sparse table leaves out are outside."""
        if not self.ranges_contain_zero:
            raise ValueError("a sparse table needs Bounds whose ranges contain 0")

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
        elif isinstance(self.feature, tuple):
            one = [end for end in self.feature if isinstance(end, float)]
            parts.append(
                f"feature in [{one[0]:g}, {one[1]:g}]" if len(one) == 2 else "feature j in [a_j, b_j]"
            )
        elif self.feature is not None:
            parts.append(f"|feature| <= {self.feature:g}")
        return ", ".join(parts)

    def __str__(self) -> str:
        parts = [self.rows_in_words]
        if self.target is not None:
            parts.append(f"target in [{self.target[0]:g}, {self.target[1]:g}]")
        if self.weight is not None:
            parts.append(f"weight <= {self.weight:g}")
        if isinstance(self.offset, tuple):
            parts.append(f"offset in [{self.offset[0]:g}, {self.offset[1]:g}]")
        if self.rows_per_unit is not None:
            parts.append(f"at most {self.rows_per_unit} records a person")
        return ", ".join(parts)


def rounded_inward(
    low: Vector, high: Vector, dtype: np.dtype[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Ranges in the precision of a table, never wider than they are, nor than its largest numbers.

    A range between two neighbouring numbers of that precision becomes the one that is nearer to 0: no larger
    than the range allows.
    """
    with np.errstate(all="ignore"):  # ends may be beyond that precision
        bottom, top = low.astype(dtype), high.astype(dtype)
        bottom = np.where(bottom < low, np.nextafter(bottom, dtype.type(np.inf)), bottom)
        top = np.where(top > high, np.nextafter(top, dtype.type(-np.inf)), top)
        empty = bottom > top
        return np.where(empty & (low > 0), top, bottom), np.where(empty & (low <= 0), bottom, top)


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


def _limit(name: str, value: object) -> float | None:
    """A largest size: positive, infinite for none, or not declared."""
    if value is None or (isinstance(value, Real) and value == math.inf):
        return None if value is None else math.inf
    return _positive(name, value)


def _positive(name: str, value: object) -> float:
    needed = f"a positive number from {SMALLEST:g} to {LARGEST:g}"
    return strict.number(name, value, needed, lambda size: SMALLEST <= size <= LARGEST)


def _feature(given: object) -> Feature:
    """Largest absolute values, or the low and high ends of ranges, from one of the forms that are allowed."""
    if isinstance(given, tuple) and len(given) == 2:
        return _ranges_between(*(_numbers(end) for end in given))
    if not isinstance(given, list | tuple) and np.ndim(given) == 0:  # type: ignore[arg-type]
        return _positive("feature", given)
    values = _numbers(given)
    if values.ndim == 1 and ((values >= SMALLEST) & (values <= LARGEST)).all():
        return _frozen(values)
    pairs = values if values.ndim == 2 and values.shape[1] == 2 else np.zeros((1, 2))
    return _ranges_between(*pairs.T)


def _ranges_between(low: Vector, high: Vector) -> tuple[Ends, Ends]:
    """The low and high ends of ranges; what are no ranges, such as those from 0 to 0, is refused."""
    if low.ndim > 1 or high.ndim > 1 or (low.ndim and high.ndim and low.shape != high.shape):
        raise ValueError("feature must be two numbers or two arrays of one length, if it is a tuple")
    if not (np.all(low >= -LARGEST) and np.all(high <= LARGEST) and np.all(high - low >= SMALLEST)):
        raise ValueError(
            f"feature must be a positive number from {SMALLEST:g} to {LARGEST:g}, a vector of them, one for "
            "each feature, or ranges with low < high: a pair for each feature, or a tuple (low, high)"
        )
    return _end(low), _end(high)


def _numbers(values: object) -> Vector:
    """An array of doubles; an empty table if there is something else in it."""
    found = strict.doubles(values)
    return np.zeros((0, 0)) if found is None else found


def _end(values: Vector) -> Ends:
    return _frozen(values.copy()) if values.ndim else float(values)


def _frozen(values: Vector) -> Vector:
    values.flags.writeable = False
    return values


def _range(name: str, given: object) -> tuple[float, float]:
    return strict.between(name, given, -LARGEST, LARGEST, "two numbers (low, high) with low < high")
