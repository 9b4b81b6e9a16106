"""Releases that write down what a query tells them."""

from dataclasses import dataclass, field
from typing import ClassVar

from dpglm.mechanisms import Randomness
from dpglm.queries.base import Draws, Exact


class Told(Exact):
    """Releases exact answers and writes down the sensitivities that it is told."""

    def __init__(self):
        self.told = []

    def give(self, answer, sensitivity, mechanism):
        self.told.append(sensitivity)
        return answer


@dataclass(frozen=True)
class ToldDraws(Draws):
    """Writes down the sensitivities that it is asked to pad."""

    told: list = field(default_factory=list)

    def padded(self, sensitivity):
        self.told.append(sensitivity)
        return super().padded(sensitivity)


class ToldInBlocks(Told):
    """Hands out a stream, for the numbers of entries and of releases that are expected."""

    in_blocks = True
    expected: ClassVar[tuple[int, int]]

    def spend(self, mechanism, entries, count=1):
        assert (entries, count) == self.expected
        return ToldDraws(Randomness(0), 1.0, True, self.told)
