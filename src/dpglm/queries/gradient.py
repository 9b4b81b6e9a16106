"""The clipped gradient of the loss, summed over the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Total, Vector
from ..data.record_set import RecordSet
from ..data.terms import Gradient
from ..losses import Loss
from ..privacy import Neighbours
from .base import LARGEST_CLIP, LEAST_CLIP, Query, require_enforceable


@dataclass(frozen=True, eq=False)
class ClippedGradient(Query):
    """Sum over the records of their gradient at w, each scaled down to L2 norm at most ``clip``.

    The constant feature, which carries the intercept, is that of the records unless another one is given. If
    there are ``scales``, column j is multiplied by scale j first, and w are coefficients of the products. A
    row with a norm above ``longest`` has the weight longest / norm, before its gradient is clipped: a weight
    that depends on the row alone leaves the mean gradient 0 where the model holds.

    Guarantee
    ---------
    The gradient of a GLM is slope * row. Scaled to norm at most C, one record adds a vector of norm
    at most C, so the sum moves by at most C if it is zeroed out, 2C if it is replaced. Scales and the largest
    norm of full weight are public, so that a scaled row and its weight are functions of one record.
    """

    name: ClassVar[str] = "clipped gradient"
    takes_units: ClassVar[bool] = True
    loss: Loss
    clip: float
    constant: float | None = None
    scales: Vector | None = None
    longest: float | None = None

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)
        if self.longest is not None and not LEAST_CLIP <= self.longest <= LARGEST_CLIP:
            raise ValueError(f"longest must be from {LEAST_CLIP:g} to {LARGEST_CLIP:g}, got {self.longest!r}")

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        (w,) = public
        return data.total(
            Gradient(
                self.loss, w, self.clip, self.longest, scales=self.scales, constant_feature=self.constant
            )
        )

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.clip * neighbours.records_moved
