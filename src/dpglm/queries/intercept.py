"""The slope of the mean loss along the intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Total, Vector
from ..data.record_set import RecordSet
from ..data.terms import InterceptGradient
from ..losses import Loss
from ..privacy import Neighbours
from .base import LARGEST_LIMIT, LEAST_LIMIT, Query, require_enforceable


@dataclass(frozen=True)
class InterceptSlope(Query):
    """The sum over the records of slope * constant feature, cut to [-clip, clip].

    Guarantee
    ---------
    One record adds a number in [-C, C], so the sum moves by at most C if it is zeroed out, 2 C if it is
    replaced.
    """

    name: ClassVar[str] = "intercept slope"
    takes_units: ClassVar[bool] = True
    loss: Loss
    clip: float

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip, LEAST_LIMIT, LARGEST_LIMIT)

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        (w,) = public
        return data.total(InterceptGradient(self.loss, w, self.clip))

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.clip * neighbours.records_moved
