"""A scaler that costs no budget: it uses declared ranges, never the data."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..data.cluster import example_of, is_dask
from ..data.columns import MappedSource
from ..data.stream import Source
from ..fit.inputs import numeric_table
from ..fit.readers import lazily, nameless, remember_columns, source_like, source_of

_ENTRIES_A_PART = 1 << 18


class BoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map each feature from its declared range [low, high] to [-1, 1]; what lies outside is cut.

    Nothing is learned from the records, so using it is free. After it, ``Bounds(feature=1.0)`` holds.

    Parameters
    ----------
    low, high : float or array of shape (n_features,)
        Declared range of each feature.

    Examples
    --------
    >>> from dpglm import BoundsScaler
    >>> BoundsScaler(low=[0, 18], high=[10, 98]).fit_transform([[5, 58], [20, 18]])
    array([[ 0.,  0.],
           [ 1., -1.]])
    """

    def __init__(self, low: ArrayLike = -1.0, high: ArrayLike = 1.0) -> None:
        self.low = low
        self.high = high

    def fit(self, X: object, y: object = None) -> Self:
        """Check the declared ranges against the shape of X; no entry of X is used.

        If y is the name of a column of X, this column is no feature.
        """
        if is_dask(X):
            X = example_of(X)
        source = source_of(X, y if isinstance(y, str) else None)
        if source is None:
            shape = numeric_table(self, X, reset=True, missing=True, sparse=False).shape[1:]
        else:
            remember_columns(self, source)
            shape = (source.n_features,)
        try:
            low, high = (
                np.broadcast_to(np.asarray(end, dtype=np.float64), shape) for end in (self.low, self.high)
            )
        except (TypeError, ValueError):
            raise ValueError(
                f"low and high must be numbers or have one entry for each of {shape[0]} features"
            ) from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError("low and high must be finite with low < high")
        self.middle_, self.half_range_ = (low + high) / 2, (high - low) / 2
        return self

    @lazily
    def transform(self, X: object) -> NDArray[np.floating] | Source:
        """The table with every feature in [-1, 1].

        A table that is read block by block stays one: its blocks are scaled as they are read.
        """
        check_is_fitted(self)
        source = source_like(self, X)
        if source is not None:
            return MappedSource(source, nameless(self)._scaled)
        return self._scaled(X)

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def _scaled(self, X: object) -> NDArray[np.floating]:
        """Rows, scaled part by part: the whole table is not copied in double precision."""
        table = np.asarray(numeric_table(self, X, reset=False, missing=True, sparse=False))
        scaled = np.empty_like(table)
        step = max(1, _ENTRIES_A_PART // max(1, table.shape[1]))
        for start in range(0, len(table), step):
            part = (table[start : start + step] - self.middle_) / self.half_range_
            scaled[start : start + step] = np.clip(part, -1.0, 1.0, out=part)
        return scaled

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
