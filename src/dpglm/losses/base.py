"""What a loss is: a convex function of one prediction and one target."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector

SLOPE_UNIT = 1.25
"""Newton's unit of slopes over their bound: slopes below it leave room for the curvature beside them."""

JOINT = 1 / (4 * (1 - SLOPE_UNIT**-2))
"""The joint constant for a curvature of at most 1 and slopes of at most 1 / SLOPE_UNIT units."""


@dataclass(frozen=True)
class Loss(ABC):
    """A loss l(z, y), convex in z = x·w, and differentiable but for kinks that make its smoothness infinite.

    Losses are elementwise: they take arrays of predictions and targets of one shape and return
    an array of that shape. They never see records, so one loss serves every kind of table.

    Privacy costs and laws depend on what a loss states of itself: ``form``, ``slopes``, ``lipschitz``,
    ``smoothness``, ``curvature_lipschitz``, ``joint_constant``, ``softened``, ``fall``,
    ``largest_curvature``, ``conjugate`` and ``dual_step``.
    A class does not inherit these from a loss that it changes. It changes a loss if it defines anything else
    than these, ``name``, ``kind``, ``for_target``, ``link`` and the default of a field. It then must state
    ``lipschitz`` and ``smoothness``; what else it does not state is as in `Loss`.

    Attributes
    ----------
    name : str
        The name by which `dpglm.losses.get` finds the loss.
    kind : {"classification", "regression", "count"}
        What a target is: -1 or 1, a real number, or a number that is at least 0.
    form : int or None
        Code of the loss in ``dpglm.kernels.formulas``; None if compiled code does not know the loss.
    slopes : {"any", "signed", "logistic"}
        What is known of the derivative a for a given target: nothing; its sign; or its sign and that
        the curvature is at most abs(a) (1 - abs(a)).
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    form: ClassVar[int | None] = None
    slopes: ClassVar[Literal["any", "signed", "logistic"]] = "any"

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for fact in _FACTS:
            owner = _owner(cls, fact)
            more = {"dual_step"} if fact == "form" else set()  # the kernels have that step, too
            if cls.__mro__[owner] is not Loss and any(
                _changes(cls, base, more) for base in cls.__mro__[:owner]
            ):
                setattr(cls, fact, vars(Loss)[fact])

    @classmethod
    def for_target(cls, target: tuple[float, float] | None) -> Self:
        """Return the loss with its usual parameters for targets of a declared range."""
        return cls()

    @property
    def outputs(self) -> int:
        """Predictions of a record: z has one column for each if there are several."""
        return 1

    @property
    def form_parameter(self) -> float:
        """The one number that a compiled slope needs beside z and y; 0 if it needs none."""
        return 0.0

    @property
    def form_range(self) -> tuple[float, float, float, float]:
        """Further numbers for compiled code: the ends of margins, the largest target, the smoothness."""
        return 0.0, 0.0, 0.0, 0.0

    @abstractmethod
    def value(self, z: Vector, y: Vector) -> Vector:
        """Return l(z, y)."""

    @abstractmethod
    def derivative(self, z: Vector, y: Vector) -> Vector:
        """Return the derivative of l in z."""

    @abstractmethod
    def curvature(self, z: Vector, y: Vector) -> Vector:
        """Return the second derivative of l in z; at a kink of the derivative, either side's."""

    @abstractmethod
    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        """Return the supremum of abs(derivative) over all z and all y in `target`, None for any y.

        It is `math.inf` if there is no bound.
        """

    @abstractmethod
    def smoothness(self) -> float:
        """Return the supremum of the curvature over all z and y."""

    def curvature_lipschitz(self) -> float:
        """Return how fast the curvature changes with z at most, `math.inf` where it jumps."""
        return math.inf

    def joint_constant(self) -> float:
        """Return A with curvature² <= 4 A (1 - e²) for all z and y, e being the slope over `slope_unit()`.

        It is `math.inf` if there is none. With it the curvature is released for the price of the slope (see
        docs/proofs/score_and_curvature.md).
        """
        return math.inf

    def slope_unit(self) -> float:
        """Return what `joint_constant` measures slopes in: their bound, or more.

        It must be more for a loss whose curvature does not vanish where slopes reach their bound.
        """
        return self.lipschitz()

    def slope_at_middle(self, target: tuple[float, float]) -> float:
        """Return the largest slope of a target of that range where the middle of the range is predicted."""
        half = (target[1] - target[0]) / 2
        return half if self.kind == "count" else self.smoothness() * half

    def wider(self) -> Loss | None:
        """Return a similar loss with less curvature, whose minimiser is a start for this one; or None.

        Without noise, Newton's method starts from its minimiser where curvature is confined to few records.
        """
        return None

    def softened(self, clip: float) -> Loss:
        """Return a loss with bounded slopes and the same curvature for small ones: by default itself.

        A loss whose slopes have no bound clips them softly at `clip`.
        """
        return self

    def fall(self, target: tuple[float, float] | None = None) -> float:
        """Return a bound on l(0, y) - inf over z of l(z, y), for all y in `target`, None for any y."""
        return math.inf

    def largest_curvature(self, z: Vector, other: Vector) -> Vector | float:
        """Return a bound on the curvature between two predictions."""
        return self.smoothness()

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        """Return the supremum of u z - l(z, y) over z: the convex conjugate, infinite outside its domain."""
        raise NotImplementedError(f"{self.name} does not state its conjugate")

    def dual_step(self, alpha: Vector, z: Vector, y: Vector, weight: Vector) -> Vector:
        """Return the step d that lowers conjugate(-(alpha + d), y) + z d + weight d² / 2 the most.

        By default that is a Newton step from -derivative(z, y) with the largest curvature along the step:
        exact where the curvature is constant, and never beyond the minimum elsewhere. Steps keep the dual
        variable alpha in the domain of the conjugate. The weight, at least 0, is how much a prediction
        changes with a step of 1.
        """
        full = -self.derivative(z, y) - alpha
        return full / (1 + weight * self.largest_curvature(z, z + weight * full))

    def link(self, mean: float) -> float:
        """Return the z that fits targets of this mean best; for regression and count losses."""
        return mean

    def mean(self, z: Vector) -> Vector:
        """Return the target that z predicts, the inverse of `link`."""
        return z


_FACTS = (
    "form",
    "slopes",
    "lipschitz",
    "smoothness",
    "curvature_lipschitz",
    "joint_constant",
    "slope_unit",
    "slope_at_middle",
    "softened",
    "fall",
    "largest_curvature",
    "conjugate",
    "dual_step",
)
_HARMLESS = {"name", "kind", "for_target", "link", "wider"}


def _owner(cls: type[Loss], fact: str) -> int:
    """The place, among the classes of a loss, of the one that states a fact.

    What an abstract family states follows from what its losses define, so it is the statement of the first
    loss that is derived from the family, and of no class that changes that one.
    """
    classes = cls.__mro__
    owner = next(k for k, base in enumerate(classes) if fact in vars(base))
    if classes[owner] is Loss or not inspect.isabstract(classes[owner]):
        return owner
    losses = (k for k in range(owner) if issubclass(classes[k], Loss) and not inspect.isabstract(classes[k]))
    return max(losses, default=owner)


def _changes(cls: type[Loss], base: type, more: set[str]) -> bool:
    """Whether one of the classes that a loss is made of defines what changes others, or any of ``more``."""
    fields = getattr(cls, "__dataclass_fields__", {})  # while the class is being made, those of its bases
    return any(
        name in more
        or not (
            name in _HARMLESS.union(_FACTS)
            or (name.startswith("__") and name.endswith("__"))
            or name.startswith("_abc_")
            or (name in fields and not hasattr(value, "__get__"))
        )
        for name, value in vars(base).items()
    )


def inside(values: Vector, low: Vector | float, high: Vector | float) -> NDArray[np.bool_]:
    """Whether values lie in an interval, up to what rounding may have added."""
    slack = _INTERVAL_SLACK * (1 + np.abs(values))
    return (values >= low - slack) & (values <= high + slack)


_INTERVAL_SLACK = 1e-12
SMALLEST = 1e-300
"""What stands for a weight of 0 where steps are divided by it."""
