"""Runs with every released number written down, and the same runs over other records.

A solver sees nothing but releases. So a second run that is handed the releases of a first one, over other
records, must return exactly the same; and the exact answers that it passes on the way tell how likely those
releases were for these records.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..curator import Curator
from ..data import Records
from ..mechanisms import Mechanism, Randomness
from ..privacy import Neighbours
from ..queries import Query
from ..sampling import Everyone, Poisson, Sampling


@dataclass
class Transcript:
    """All that a run was given: released values and public random choices, in order."""

    released: list[Any] = field(default_factory=list)
    picked: list[NDArray[np.int64]] = field(default_factory=list)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Every released number in one row."""
        return np.concatenate([np.ravel(value) for value in self.released]).astype(np.float64)


@dataclass(frozen=True)
class Answer:
    """An exact answer on the way of a replayed run, and how it would have been released."""

    exact: Any
    sensitivity: Any
    mechanism: Mechanism
    sampling: Sampling


class TranscriptMismatch(Exception):
    """A run over other records asked for other releases than the one that it replays."""


class Recorder(Curator):
    """A curator that writes down what it gives out, and the exact answers behind it."""

    def __init__(self, records: Records, neighbours: Neighbours, randomness: Randomness) -> None:
        super().__init__(records, neighbours, randomness)
        self.transcript = Transcript()
        self.answers: list[Answer] = []

    def release(
        self, query: Query, mechanism: Mechanism, *public: Any, sampling: Sampling | None = None
    ) -> Any:
        released = super().release(query, mechanism, *public, sampling=sampling)
        if isinstance(sampling, Poisson):
            # The answer of all records: which of them were drawn is nobody's to know.
            self.answers[-1] = replace(self.answers[-1], exact=query(self._records, *public))
        return released

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        self.transcript.picked.append(super().pick(stop, count))
        return self.transcript.picked[-1]

    def _sampled(
        self, answer: Any, keep: Any, sensitivity: Any, mechanism: Mechanism, sampling: Sampling
    ) -> Any:
        everyone, _ = answer(None)
        released = super()._sampled(answer, keep, sensitivity, mechanism, sampling)
        self.answers[-1] = replace(self.answers[-1], exact=everyone)
        return released

    def _noise(self, sensitivity: Any, mechanism: Mechanism) -> None:
        return None

    def _keep(self, scores: Any, sensitivity: float, mechanism: Mechanism, structure: str = "auto") -> None:
        return None

    def _choices(self, *releases: Any) -> None:
        return None

    def _noisy(
        self, answer: Any, sensitivity: Any, mechanism: Mechanism, sampling: Sampling, follows: bool = False
    ) -> Any:
        self.answers.append(Answer(copy.copy(answer), sensitivity, mechanism, sampling))
        released = super()._noisy(answer, sensitivity, mechanism, sampling, follows)
        # A copy: a solver may go on to change what it was given.
        self.transcript.released.append(copy.copy(released))
        return released


class Replayer(Curator):
    """A curator that gives out what a recorder gave, whatever its own records are."""

    def __init__(self, records: Records, recorder: Recorder) -> None:
        super().__init__(records, recorder._neighbours, recorder._randomness)
        self.answers: list[Answer] = []
        self._released, self._picked = (
            iter(recorder.transcript.released),
            iter(recorder.transcript.picked),
        )

    def release(
        self, query: Query, mechanism: Mechanism, *public: Any, sampling: Sampling | None = None
    ) -> Any:
        answer = query(self._records, *public)
        return self._noisy(answer, query.sensitivity(self._neighbours), mechanism, sampling or Everyone())

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        try:
            return next(self._picked)
        except StopIteration:
            raise TranscriptMismatch from None

    def _sampled(
        self, answer: Any, keep: Any, sensitivity: Any, mechanism: Mechanism, sampling: Sampling
    ) -> Any:
        exact, changes = answer(None)
        if not isinstance(sampling, Poisson):
            keep(None, changes)
        # Whose state a secret batch changed is nobody's to know: here it changes nobody's.
        return self._noisy(exact, sensitivity, mechanism, sampling)

    def _noise(self, sensitivity: Any, mechanism: Mechanism) -> None:
        return None

    def _keep(self, scores: Any, sensitivity: float, mechanism: Mechanism, structure: str = "auto") -> None:
        return None

    def _choices(self, *releases: Any) -> None:
        return None

    def _noisy(
        self, answer: Any, sensitivity: Any, mechanism: Mechanism, sampling: Sampling, follows: bool = False
    ) -> Any:
        self._log(np.size(answer), sensitivity, mechanism, sampling, follows)
        self.answers.append(Answer(copy.copy(answer), sensitivity, mechanism, sampling))
        try:
            return copy.copy(next(self._released))
        except StopIteration:
            raise TranscriptMismatch from None


def log_likelihood(transcript: Transcript, answers: Sequence[Answer], without: Sequence[Answer]) -> float:
    """How likely a transcript is, up to a constant, for records with these answers.

    Parameters
    ----------
    transcript : Transcript
    answers : sequence of Answer
        Exact answers of the records along the transcript.
    without : sequence of Answer
        The same with the record in question left out, for releases on a secret batch.
    """
    if not len(transcript.released) == len(answers) == len(without):
        raise TranscriptMismatch
    total = 0.0
    for value, answer, rest in zip(transcript.released, answers, without, strict=True):
        here = answer.mechanism.log_likelihood(value, answer.exact, answer.sensitivity)
        if isinstance(answer.sampling, Poisson) and answer.sampling.rate < 1:
            there = rest.mechanism.log_likelihood(value, rest.exact, rest.sensitivity)
            rate = answer.sampling.rate
            here = np.logaddexp(math.log(rate) + here, math.log1p(-rate) + there)
        total += float(here)
    return total
