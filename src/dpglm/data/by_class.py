"""Factors of the shares of records that depend on their classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector


@dataclass(frozen=True, eq=False)
class ByClass:
    """From codes of classes to the targets of a loss and to factors of the shares of records.

    Parameters
    ----------
    target : callable
        Maps codes to targets.
    factors : array of shape (classes,)
        From 0 to 1: what the share of a record of each class is multiplied by.
    """

    target: Callable[[Vector], Vector]
    factors: Vector

    def __call__(self, codes: Vector) -> Vector:
        return self.target(codes)

    def of(self, codes: Vector) -> Vector:
        """The factor of each record."""
        found: Vector = self.factors[codes.astype(np.intp)]
        return found
