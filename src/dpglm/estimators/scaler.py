"""A scaler that costs no budget: it uses declared ranges, never the data."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .inputs import numeric_table


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
        """Check the declared ranges against the shape of X; no entry of X is used."""
        shape = numeric_table(self, X, reset=True, missing=True, sparse=False).shape[1:]
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

    def transform(self, X: object) -> NDArray[np.floating]:
        """The table with every feature in [-1, 1]."""
        check_is_fitted(self)
        table = np.asarray(numeric_table(self, X, reset=False, missing=True, sparse=False))
        with np.errstate(all="ignore"):  # a warning about a number would reveal something about a record
            scaled = np.clip((table - self.middle_) / self.half_range_, -1.0, 1.0)
            return scaled.astype(table.dtype, copy=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
