"""Total variation along a chain of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .extensions import Chain, Extension
from .plateaus import Plateaus


@dataclass(frozen=True)
class TotalVariation(Plateaus):
    """strength * sum of abs(w_{j+1} - w_j) + l2 / 2 * norm(w)²: neighbouring coefficients become equal.

    For features that have an order: bins of a number, ordered levels, periods. The proximal step takes time
    in proportion to the number of features; see Johnson, "A dynamic programming algorithm for the fused lasso
    and L0-segmentation".

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    l2 : float
        Weight of the L2 part. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> TotalVariation(1.0).prox(np.array([1.0, 2.0, 9.0, 8.0]), step=1.0)
    array([2., 2., 8., 8.])
    """

    @cached_property
    def extension(self) -> Extension:
        return Chain()
