"""The public part of a fitted model: coefficients, by which records are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..arrays import Vector


class _Rows(Protocol):
    def margins(self, w: Vector) -> Vector: ...


@dataclass(frozen=True, eq=False)
class PublicModel:
    """Coefficients of shape (outputs, features), and intercepts of shape (outputs,)."""

    coef: Vector
    intercept: Vector

    @np.errstate(all="ignore")
    def margins(self, rows: _Rows) -> Vector:
        """Margins of records without a constant feature, shape (n, outputs), as `predict` computes them."""
        products: Vector = np.column_stack([rows.margins(w) for w in self.coef]) + self.intercept
        return products
