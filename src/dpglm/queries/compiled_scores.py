"""Draws and moves of greedy coordinate descent over a sparse table, each in one call of compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..arrays import Vector
from ..data.records import Records
from ..data.sums import ClippedSums, UpdatedSums
from ..kernels.arguments import Fields, Form, ScoreRule
from ..mechanisms import Randomness
from ..mechanisms.selection import Binned, ScoreStructure

if TYPE_CHECKING:
    from .scores import CoordinateScores


@dataclass(frozen=True, eq=False)
class CompiledScores:
    """The state of `OpenScores`, for `kernels.greedy`.

    Attributes
    ----------
    query : CoordinateScores
    rule : int
        The code of its rule.
    n : int
        The public n.
    data : Records
    sums : UpdatedSums
    bins : Binned
    z, slopes : array of shape (n_records,)
        Margins and slopes; they are updated.
    roots : array of shape (dimension,)
        Roots of the curvatures.
    margin : float
        What is taken from the slack of a score for its rounding.
    """

    query: CoordinateScores
    rule: int
    n: int
    data: Records
    sums: UpdatedSums
    bins: Binned
    z: Vector
    slopes: Vector
    roots: Vector
    margin: float

    @classmethod
    def of(
        cls, query: CoordinateScores, rule: int, n: int, data: Records, sums: ClippedSums,
        kept: ScoreStructure, z: Vector, slopes: Vector, roots: Vector, margin: float,
    ) -> Self | None:  # fmt: skip
        """The same; None where there is no compiled code for this table, structure or loss."""
        if query.loss.form is None or not (isinstance(sums, UpdatedSums) and isinstance(kept, Binned)):
            return None
        return cls(query, rule, n, data, sums, kept, z, slopes, roots, margin)

    def draw(self, randomness: Randomness) -> int:
        """A coordinate by its present score."""
        return randomness.run(*self._for_draws)

    def move(self, j: int, value: float) -> bool:
        """Set coordinate j, a feature of the table; True if all scores must be set again."""
        kernel, before, after = self._for_moves
        return bool(kernel(j, value, *self.data.stored_column(j), *before, self.sums.next_mark(), *after))

    # What stays the same is put together once, in plain tuples: these calls are made at every step.
    @cached_property
    def _for_draws(self) -> tuple[Any, ...]:
        from ..kernels import greedy  # compiled code is loaded by those who use it

        kept = self.sums.kept
        one = np.empty(1, dtype=kept.touched.dtype)
        return greedy.draw, tuple(self._rule), kept.state, kept.points, one, tuple(self.bins.parts[1:])

    @cached_property
    def _for_moves(self) -> tuple[Any, Fields, Fields]:
        from ..kernels import greedy

        values, *bins = self.bins.parts
        margins = tuple(Form.of(self.query.loss)), self.data.y, self.z, self.slopes
        kept, rule = tuple(self.sums.kept), tuple(self._rule)
        return greedy.move, (margins, kept), (rule, values, tuple(bins), self.roots, self.margin)

    @cached_property
    def _rule(self) -> ScoreRule:
        return ScoreRule(self.rule, self.n, *self.query.form, self.data.n_features)
