"""A clipped gradient together with the sizes of its entries, which say how large columns are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Total, Vector
from ..data.record_set import RecordSet
from ..data.terms import SizedGradient
from ..losses import Loss
from ..privacy import Neighbours
from .base import Query, require_enforceable


@dataclass(frozen=True)
class ColumnSizes(Query):
    """Sums over the records of their clipped gradient g at w, and of the absolute values of its entries.

    Gradients are those of `ClippedGradient`. The sums of g come first, then those of abs(g).

    Guarantee
    ---------
    A record adds (g, abs(g)) with norm(g) at most C, which has norm at most sqrt(2) C: what zeroing it out
    can move the sums by. Let h replace g. Each entry contributes (g - h)² + (abs(g) - abs(h))², which is at
    most 2 g² + 2 h²: it is 2 (g - h)² if both have the same sign, and 2 g² + 2 h² if not. Together these are
    at most 4 C². So replacing a record moves the sums by at most 2 C, as it moves the gradient alone: the
    sizes cost nothing (docs/proofs/column_sizes.md).
    """

    name: ClassVar[str] = "clipped gradient and column sizes"
    loss: Loss
    clip: float
    constant: float | None = None

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        (w,) = public
        return data.total(SizedGradient(self.loss, w, self.clip, constant_feature=self.constant))

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.clip * (2.0 if neighbours is Neighbours.REPLACE_ONE else math.sqrt(2.0) * (1 + 2.0**-50))
