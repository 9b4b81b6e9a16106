"""A round of select-then-release: a choice among scores, and the noisy value of the one chosen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from .. import accounting, strict
from ..arrays import Vector
from .additive import Additive
from .base import Mechanism, Selection
from .randomness import Randomness

Answer = tuple[Vector, Vector]
Bounds = tuple[float, Vector]


@dataclass(frozen=True)
class Round(Mechanism):
    """Selects a candidate j by its score, then releases the value of j with noise.

    The answer is (scores, values) with an entry of both for each candidate. The sensitivity is how far any
    one score moves, and a vector of how far each value moves.

    Parameters
    ----------
    selection : Selection
        Chooses j.
    additive : Additive
        Adds noise to the value of j.

    Guarantee
    ---------
    The event is the composition of both, in this order, which costs less than the two in any order. Only the
    one value that was selected is released. Proof: docs/proofs/composition.md.
    """

    name: ClassVar[str] = "round"
    value: ClassVar[str] = "value of the choice"
    noise: float = field(init=False, repr=False, compare=False)
    selection: Selection
    additive: Additive

    def __post_init__(self) -> None:
        if not isinstance(self.selection, Selection):
            raise strict.wrong("selection", self.selection, "a mechanism that selects")
        if not isinstance(self.additive, Additive):
            raise strict.wrong("additive", self.additive, "a mechanism that adds noise")
        # Without noise in either of the two nothing is promised.
        object.__setattr__(self, "noise", min(self.selection.noise, self.additive.noise))

    @property
    def event(self) -> accounting.Event:
        return accounting.Composed((self.selection.event, self.additive.event))

    def entries(self, answer: Answer) -> int:
        return self.selection.entries(answer[0])

    def imprecision(self, entries: int) -> Counter[accounting.Event]:
        """That of a selection among so many candidates, and of one number."""
        return self.selection.imprecision(entries) + self.additive.imprecision(1)

    def require_drawable(self, entries: int) -> None:
        self.selection.require_drawable(entries)
        self.additive.require_drawable(1)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.selection.scaled(factor), self.additive.scaled(factor))

    def release(self, answer: Answer, sensitivity: Bounds, randomness: Randomness) -> tuple[int, float]:
        """The candidate selected, and its noisy value."""
        j = self.selection.release(answer[0], sensitivity[0], randomness)
        return j, self.additive.release(float(answer[1][j]), sensitivity[1][j], randomness)

    def log_likelihood(self, released: tuple[int, float], answer: Answer, sensitivity: Bounds) -> float:
        j, value = released
        choice = self.selection.log_likelihood(j, answer[0], sensitivity[0])
        return choice + self.additive.log_likelihood(value, answer[1][j], sensitivity[1][j])

    def worst_cases(self) -> dict[str, tuple[Answer, Answer]]:
        # Scores as in the worst cases of the selection, and values of all candidates that move by 1.
        return {
            name: ((first, np.ones(len(first))), (second, np.zeros(len(second))))
            for name, (first, second) in self.selection.worst_cases().items()
        }
