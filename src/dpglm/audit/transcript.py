"""Runs with every released number written down, and the same runs over other records.

A solver sees nothing but releases. So a second run that is handed the releases of a first one, over other
records, must return exactly the same; and the exact answers that it passes on the way tell how likely those
releases were for these records.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..curator import Curator, Log, NoisyReleases
from ..data import Records
from ..mechanisms import Mechanism, Randomness
from ..mechanisms.sampling import Everyone, Poisson, Sampling
from ..privacy import Neighbours
from ..queries import Query
from ..queries.base import Draws
from .comparison import differing

_FEW = 32
_BATCHES = 1 << 12


@dataclass
class Transcript:
    """All that a run was given: released values and public random choices, in order."""

    released: list[Any] = field(default_factory=list)
    picked: list[NDArray[np.int64]] = field(default_factory=list)
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Every released number and every public choice in one row."""
        given = [*self.released, *self.picked]
        return np.concatenate([np.ravel(value) for value in given]).astype(np.float64)


@dataclass(frozen=True)
class Answer:
    """An exact answer on the way of a replayed run, and how it would have been released.

    For a release on a secret batch of few records, ``parts`` are what each record adds.
    """

    exact: Any
    sensitivity: Any
    mechanism: Mechanism
    sampling: Sampling
    parts: NDArray[np.float64] | None = None


class TranscriptMismatch(Exception):
    """A run over other records asked for more or less than the one that it replays; says of what."""


class Recording:
    """Releases that are written down as they are given out, with the exact answers behind them."""

    in_blocks: ClassVar[bool] = False

    def __init__(self, records: Records, neighbours: Neighbours, randomness: Randomness) -> None:
        self._records = records
        self._given = NoisyReleases(records, neighbours, randomness)
        self.released: list[Any] = []
        self.answers: list[Answer] = []

    @property
    def log(self) -> Log:
        return self._given.log

    def give(self, answer: Any, sensitivity: Any, mechanism: Mechanism) -> Any:
        exact = Answer(copy.copy(answer), sensitivity, mechanism, Everyone())
        return self._written(exact, self._given.give(answer, sensitivity, mechanism))

    def spend(self, mechanism: Mechanism, entries: int, count: int = 1) -> Draws:
        raise TypeError(_UNSEEN)

    def sampled(
        self, answer: Any, keep: Any, sensitivity: float, mechanism: Mechanism, sampling: Sampling
    ) -> Any:
        # The answer of all records: which of them were drawn is nobody's to know.
        everyone, _ = answer(None)
        parts = _parts(answer, self._records) if isinstance(sampling, Poisson) else None
        released = self._given.sampled(answer, keep, sensitivity, mechanism, sampling)
        return self._written(Answer(everyone, sensitivity, mechanism, sampling, parts), released)

    def _written(self, answer: Answer, released: Any) -> Any:
        self.answers.append(answer)
        # A copy: a solver may go on to change what it was given.
        self.released.append(copy.copy(released))
        return released


class Replaying:
    """Releases that were given out before, whatever the exact answers are now; these are written down."""

    in_blocks: ClassVar[bool] = False

    def __init__(self, records: Records, neighbours: Neighbours, released: Sequence[Any]) -> None:
        self._records, self._released = records, iter(released)
        self.log = Log(neighbours)
        self.answers: list[Answer] = []

    def give(self, answer: Any, sensitivity: Any, mechanism: Mechanism) -> Any:
        return self._again(Answer(copy.copy(answer), sensitivity, mechanism, Everyone()))

    def spend(self, mechanism: Mechanism, entries: int, count: int = 1) -> Draws:
        raise TypeError(_UNSEEN)

    def sampled(
        self, answer: Any, keep: Any, sensitivity: float, mechanism: Mechanism, sampling: Sampling
    ) -> Any:
        exact, changes = answer(None)
        if isinstance(sampling, Poisson):
            # Whose state a secret batch changed is nobody's to know: here it changes nobody's.
            parts = _parts(answer, self._records)
            return self._again(Answer(exact, sensitivity, mechanism, sampling, parts))
        keep(None, changes)
        return self._again(Answer(exact, sensitivity, mechanism, sampling))

    def _again(self, answer: Answer) -> Any:
        mechanism = answer.mechanism
        self.log.add(mechanism, mechanism.entries(answer.exact), sampling=answer.sampling)
        self.answers.append(answer)
        return copy.copy(_next(self._released))


_UNSEEN = "an audit must see every exact answer: nothing is drawn in blocks"


class Recorder(Curator):
    """A curator that writes down what it is asked and what it gives out."""

    def __init__(self, records: Records, neighbours: Neighbours, randomness: Randomness) -> None:
        self._recording = Recording(records, neighbours, randomness)
        super().__init__(records, neighbours, randomness, self._recording)
        self.transcript = Transcript(self._recording.released)

    @property
    def answers(self) -> list[Answer]:
        """The exact answers behind the releases."""
        return self._recording.answers

    def release(
        self, query: Query, mechanism: Mechanism, *public: Any, sampling: Sampling | None = None
    ) -> Any:
        self.transcript.asked.append(_question(query, mechanism, *public))
        return super().release(query, mechanism, *public, sampling=sampling)

    def open(self, query: Any, w: NDArray[np.float64], mechanism: Any) -> Any:
        self.transcript.asked.append(_question(query, mechanism, w))
        return super().open(query, w, mechanism)

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        self.transcript.asked.append(_question(stop, count))
        self.transcript.picked.append(super().pick(stop, count))
        return self.transcript.picked[-1]


class Replayer(Curator):
    """A curator that gives out what a recorder gave, whatever its own records are.

    ``strayed`` names what it was asked otherwise.
    """

    def __init__(self, records: Records, recorder: Recorder) -> None:
        transcript = recorder.transcript
        self._replaying = Replaying(records, recorder.neighbours, transcript.released)
        # A replay draws nothing.
        super().__init__(records, recorder.neighbours, Randomness(0), self._replaying)
        self.strayed: list[str] = []
        self._picked, self._asked = iter(transcript.picked), iter(transcript.asked)

    @property
    def answers(self) -> list[Answer]:
        """The exact answers of its own records."""
        return self._replaying.answers

    def release(
        self, query: Query, mechanism: Mechanism, *public: Any, sampling: Sampling | None = None
    ) -> Any:
        self._note(query, mechanism, *public)
        return super().release(query, mechanism, *public, sampling=sampling)

    def open(self, query: Any, w: NDArray[np.float64], mechanism: Any) -> Any:
        self._note(query, mechanism, w)
        return super().open(query, w, mechanism)

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        self._note(stop, count)
        return _next(self._picked)

    def _note(self, *question: Any) -> None:
        """Compare what is asked: a solver that was given the same has the same to ask."""
        if differing(_question(*question), _next(self._asked)):
            self.strayed.append("public values handed to the curator")


def _next(given: Iterator[Any]) -> Any:
    try:
        return next(given)
    except StopIteration:
        raise TranscriptMismatch("number of releases") from None


def differing_releases(here: Sequence[Answer], there: Sequence[Answer]) -> list[str]:
    """What differs in the way two runs released their answers, which must not depend on a record."""
    if len(here) != len(there):
        raise TranscriptMismatch("number of releases")
    return [
        name
        for name in ("sensitivity", "mechanism", "sampling")
        for one, other in zip(here, there, strict=True)
        if differing(getattr(one, name), getattr(other, name))
    ]


def log_likelihood(transcript: Transcript, answers: Sequence[Answer]) -> float:
    """How likely a transcript is, up to a constant, for records with these answers.

    A release on a secret batch is a mixture over all batches. Where these are too many, it counts as one on
    all records: a weaker statistic, which an audit may use as well.

    Parameters
    ----------
    transcript : Transcript
    answers : sequence of Answer
        Exact answers of the records along the transcript.
    """
    if len(transcript.released) != len(answers):
        raise TranscriptMismatch("number of releases")
    total = 0.0
    for value, answer in zip(transcript.released, answers, strict=True):
        likely = [
            log_probability + answer.mechanism.log_likelihood(value, exact, answer.sensitivity)
            for log_probability, exact in _batches(answer)
        ]
        total += float(np.logaddexp.reduce(likely))
    return total


def _batches(answer: Answer) -> list[tuple[float, Any]]:
    """Log-probability and exact answer of every batch that adds something of its own."""
    sampling = answer.sampling
    if answer.parts is None or not isinstance(sampling, Poisson) or sampling.rate == 1:
        return [(0.0, answer.exact)]
    same = Counter(part.tobytes() for part in answer.parts if part.any())
    counts = tuple(same.values())
    if math.prod(count + 1 for count in counts) > _BATCHES:
        return [(0.0, answer.exact)]
    drawn, chances = _draws(counts, sampling.rate)
    parts = np.array([np.frombuffer(part) for part in same]).reshape(len(same), answer.parts.shape[1])
    return list(zip(chances, drawn @ parts, strict=True))


@lru_cache(maxsize=64)
def _draws(counts: tuple[int, ...], rate: float) -> tuple[NDArray[np.float64], list[float]]:
    """How many of each kind of equal records a batch may hold, and the log-probability of that."""
    drawn = list(itertools.product(*(range(count + 1) for count in counts)))
    chances = [
        math.log(math.prod(map(math.comb, counts, numbers)))
        + sum(numbers) * math.log(rate)
        + (sum(counts) - sum(numbers)) * math.log1p(-rate)
        for numbers in drawn
    ]
    return np.array(drawn, dtype=np.float64), chances


def _parts(answer: Any, records: Records) -> NDArray[np.float64] | None:
    """What each record that adds anything would add alone to an answer on a batch; None if they are many."""
    adding = np.flatnonzero(records.row_norms)
    if len(adding) > _FEW:
        return None
    parts = [answer(adding[[k]])[0] for k in range(len(adding))]
    return np.array(parts).reshape(len(parts), records.n_features + bool(records.constant))


def _question(*values: Any) -> tuple[Any, ...]:
    """What a solver asked, as it was then: of a query its settings, not what it found out since."""
    return tuple(
        (type(value), *(getattr(value, part.name) for part in fields(value)))
        if is_dataclass(value)
        else copy.copy(value)
        for value in values
    )
