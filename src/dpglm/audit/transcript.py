"""Runs with every released number written down, and the same runs over other records.

A solver sees nothing but releases. So a second run over other records that is given the releases of a first
run must return exactly the same. Its exact answers show how likely those releases were for its records.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..accounting import Search
from ..arrays import Vector
from ..curator import Curator, Log, NoisyReleases, Opened, Outcome
from ..data import Records
from ..data.record_set import RecordSet
from ..mechanisms import Mechanism, Randomness
from ..mechanisms.additive import Additive
from ..mechanisms.sampling import Everyone, Poisson, Sampling
from ..privacy import Neighbours
from ..queries import Query
from ..queries.base import BatchAnswer, Draws, Keep, Openable, State

_GENERATORS = (Randomness, random.Random, np.random.BitGenerator, np.random.Generator, np.random.RandomState)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type)

T = TypeVar("T")


def separate(thing: T) -> T:
    """A copy that shares nothing with the original but generators of random numbers and what has no copies.

    A generator goes on, as it does in use: a copy would repeat its noise.
    """
    twin = copy.copy(thing)
    memo: dict[int, object] = {}
    for name, value in vars(twin).items():
        if not isinstance(value, _PLAIN):
            memo.update({id(generator): generator for generator in _generators(value)})
            try:
                # Also into a frozen object, which its twin is.
                object.__setattr__(twin, name, copy.deepcopy(value, memo))
            except (TypeError, NotImplementedError, pickle.PickleError):
                continue
    return twin


def differing(here: object, there: object, name: str = "") -> list[str]:
    """Names of what differs between two objects: paths to the attributes and entries in question."""
    if here is there or (type(here) is float and here == there):  # most often, and at every release
        return []
    return sorted(set(_differing(here, there, name, set())))


def _differing(here: Any, there: Any, name: str, seen: set[tuple[int, int]]) -> list[str]:
    if here is there or isinstance(here, _GENERATORS) or (id(here), id(there)) in seen:
        return []
    if type(here) is not type(there):
        return [name]
    if not isinstance(here, _PLAIN):
        seen.add((id(here), id(there)))
    same = _same(here, there)
    if same is not None:
        return [] if same else [name]
    parts = [_contents(thing) for thing in (here, there)]
    if parts[0].keys() != parts[1].keys():
        odd = parts[0].keys() ^ parts[1].keys()
        return [f"{name}.{key}".lstrip(".") for key in sorted(odd, key=str)]
    return [
        found
        for key, part in parts[0].items()
        for found in _differing(part, parts[1][key], f"{name}.{key}".lstrip("."), seen)
    ]


def _same(here: Any, there: Any) -> bool | None:
    """Whether two objects of one type are stored alike; None if their parts decide."""
    if isinstance(here, _PLAIN):
        return bool(here == there or (here != here and there != there))
    if isinstance(here, np.ndarray) and here.dtype != object:
        # NaN equals nothing, but is stored alike.
        return here.shape == there.shape and (
            np.array_equal(here, there) or here.tobytes() == there.tobytes()
        )
    if hasattr(here, "__dict__") or isinstance(here, (dict, list, tuple, np.ndarray)):
        return None
    return bool(here == there or _contents(here) == _contents(there))


def _contents(thing: object) -> dict[object, object]:
    """What an object consists of, by name or place."""
    if isinstance(thing, FunctionType):
        cells = (cell.cell_contents for cell in thing.__closure__ or ())
        return {"code": thing.__code__.co_code, "defaults": thing.__defaults__, **dict(enumerate(cells))}
    found: dict[object, object] = dict(getattr(thing, "__dict__", {}))
    if isinstance(thing, dict):
        return found | thing
    if isinstance(thing, (list, tuple)) or (isinstance(thing, np.ndarray) and thing.dtype == object):
        return found | dict(enumerate(np.ravel(thing) if isinstance(thing, np.ndarray) else thing))
    if found and not any("__reduce__" in vars(kind) for kind in type(thing).__mro__[:-1]):
        return found
    try:
        return found | {"stored": pickle.dumps(thing)}
    except (TypeError, AttributeError, NotImplementedError, pickle.PickleError):
        return found


def _generators(thing: object, seen: set[int] | None = None) -> list[object]:
    """Every generator of random numbers that an object holds, however deep."""
    seen = set() if seen is None else seen
    if isinstance(thing, _GENERATORS):
        return [thing]
    if isinstance(thing, (*_PLAIN, np.ndarray, FunctionType)) or id(thing) in seen:
        return []
    seen.add(id(thing))
    parts: list[object] = list(getattr(thing, "__dict__", {}).values())
    if isinstance(thing, dict):
        parts += thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        parts += thing
    return [generator for part in parts for generator in _generators(part, seen)]


_FEW = 32
_BATCHES = 1 << 12


@dataclass
class Transcript:
    """All that a run was given: released values and public random choices, in order."""

    released: list[Any] = field(default_factory=list)
    picked: list[NDArray[np.int64]] = field(default_factory=list)
    asked: list[tuple[object, ...]] = field(default_factory=list)

    @property
    def numbers(self) -> Vector:
        """Every released number and every public choice in one row."""
        given = [*self.released, *self.picked]
        return np.concatenate([np.ravel(value) for value in given]).astype(np.float64)


@dataclass(frozen=True)
class Answer:
    """An exact answer, and how it is released; on a secret batch of few records, the part of each record."""

    exact: object
    sensitivity: Any
    mechanism: Mechanism
    sampling: Sampling
    parts: Vector | None = None


class TranscriptMismatch(Exception):
    """A replayed run asked for more or fewer releases than the run that it replays."""


@dataclass(frozen=True)
class _Alone:
    """Coins that say yes to the record at one place."""

    place: int

    def taken(self, start: int, stop: int) -> NDArray[np.intp]:
        """The places from start to stop whose coins say yes, counted from ``start``."""
        return np.arange(self.place - start, self.place - start + (start <= self.place < stop))


class _ExactAnswers:
    """The releases of an audit, with the exact answer behind each of them."""

    in_blocks: ClassVar[bool] = False

    def __init__(self, records: RecordSet) -> None:
        self._records = records
        self.answers: list[Answer] = []

    def over(self, records: RecordSet) -> Self:
        """The same for other records; what is seen goes into the same lists, what is logged does not."""
        twin = copy.copy(self)
        twin._records = records
        return twin

    def spend(self, mechanism: Mechanism, entries: int, count: int = 1) -> Draws:
        raise TypeError("an audit must see every exact answer: nothing is drawn in blocks")

    def _see(self, exact: object, sensitivity: object, mechanism: Mechanism) -> None:
        self.answers.append(Answer(copy.copy(exact), sensitivity, mechanism, Everyone()))

    def _parts(self, answer: BatchAnswer[State], everyone: Vector, sampling: Sampling) -> Vector | None:
        """What each record adds alone to an answer on a secret batch; None if too many records add to it.

        Which records of a stream add nothing is not known without reading it: all of them count.
        """
        records = self._records
        adding: NDArray[np.intp] = np.arange(records.table_size)
        if isinstance(records, Records):
            adding = np.flatnonzero(records.row_norms)
            if records.persons is not None:
                adding = np.unique(records.persons.number[adding])
        if not isinstance(sampling, Poisson) or len(adding) > _FEW:
            return None

        def alone(places: NDArray[np.intp]) -> Vector:
            batches = (records.batch(_Alone(int(place))) for place in places)
            parts = [np.asarray(answer(batch)[0], dtype=np.float64) for batch in batches]
            return np.array(parts).reshape(len(parts), everyone.size)

        if isinstance(records, Records):
            # Equal records add the same, unless a solver keeps a state for each: then the sum shows it.
            facts = np.column_stack([records.dense, records.scale, records.y])[adding]
            _, one, kinds = np.unique(facts, axis=0, return_index=True, return_inverse=True)
            parts = alone(adding[one])[np.ravel(kinds)]
            room = 1e-9 * np.abs(parts).max(initial=0.0)
            if np.allclose(parts.sum(axis=0), np.ravel(everyone), rtol=1e-9, atol=room):
                return parts
        return alone(adding)


class Recording(_ExactAnswers):
    """Releases that are written down as they are given out, with the exact answers behind them."""

    def __init__(self, records: RecordSet, neighbours: Neighbours, randomness: Randomness) -> None:
        super().__init__(records)
        self._given = NoisyReleases(records, neighbours, randomness)
        self.released: list[Any] = []

    def over(self, records: RecordSet) -> Self:
        twin = super().over(records)
        twin._given = self._given.over(records)
        return twin

    @property
    def log(self) -> Log:
        return self._given.log

    def give(self, answer: object, sensitivity: Any, mechanism: Mechanism) -> Any:
        self._see(answer, sensitivity, mechanism)
        return self._written(self._given.give(answer, sensitivity, mechanism))

    def sampled(
        self, answer: BatchAnswer[State], keep: Keep[State], sensitivity: float, mechanism: Mechanism,
        sampling: Sampling,
    ) -> Any:  # fmt: skip
        # The answer of all records: which of them were drawn is nobody's to know.
        everyone, _ = answer(None)
        parts = self._parts(answer, np.asarray(everyone), sampling)
        self.answers.append(Answer(everyone, sensitivity, mechanism, sampling, parts))
        return self._written(self._given.sampled(answer, keep, sensitivity, mechanism, sampling))

    def _written(self, released: T) -> T:
        # A copy: a solver may go on to change what it was given.
        self.released.append(copy.copy(released))
        return released


class Replaying(_ExactAnswers):
    """Releases that were given out before, whatever the exact answers are now; these are written down."""

    def __init__(self, records: RecordSet, neighbours: Neighbours, released: Sequence[Any]) -> None:
        super().__init__(records)
        self._released, self._neighbours = iter(released), neighbours
        self.log = Log(neighbours)

    def over(self, records: RecordSet) -> Self:
        twin = super().over(records)
        twin.log = Log(self._neighbours)
        return twin

    def give(self, answer: object, sensitivity: object, mechanism: Mechanism) -> Any:
        self._see(answer, sensitivity, mechanism)
        return self._again()

    def sampled(
        self, answer: BatchAnswer[State], keep: Keep[State], sensitivity: float, mechanism: Mechanism,
        sampling: Sampling,
    ) -> Any:  # fmt: skip
        exact, changes = answer(None)
        # Whose state a secret batch changed is nobody's to know: here it changes nobody's.
        if not isinstance(sampling, Poisson):
            keep(None, changes)
        parts = self._parts(answer, np.asarray(exact), sampling)
        self.answers.append(Answer(exact, sensitivity, mechanism, sampling, parts))
        return self._again()

    def _again(self) -> Any:
        """What was released before for the last answer."""
        answer = self.answers[-1]
        self.log.add(answer.mechanism, answer.mechanism.entries(answer.exact), sampling=answer.sampling)
        return copy.copy(_next(self._released))


class _QuestionLog(Curator):
    """A curator that hears every question it is asked."""

    def release(
        self, query: Query, mechanism: Mechanism, *public: Any, sampling: Sampling | None = None
    ) -> Any:
        self._hear(query, mechanism, *public)
        return super().release(query, mechanism, *public, sampling=sampling)

    def open(self, query: Openable[Opened], w: Vector, mechanism: Mechanism) -> Opened:
        self._hear(query, mechanism, w)
        return super().open(query, w, mechanism)

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        self._hear(stop, count)
        return super().pick(stop, count)

    def best_of(
        self, search: Search, attempt: Callable[[Curator, int], tuple[float, Outcome]]
    ) -> Outcome | None:
        raise TypeError("a search hides the releases of its tries: only its model can be audited")

    def _hear(self, *question: object) -> None:
        raise NotImplementedError


class Recorder(_QuestionLog):
    """A curator that writes down what it is asked and what it gives out.

    Attributes
    ----------
    transcript : Transcript
    answers : list of Answer
        The exact answers behind the releases.
    """

    def __init__(self, records: RecordSet, neighbours: Neighbours, randomness: Randomness) -> None:
        recording = Recording(records, neighbours, randomness)
        super().__init__(records, neighbours, randomness, recording)
        self.answers, self.transcript = recording.answers, Transcript(recording.released)

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        self.transcript.picked.append(super().pick(stop, count))
        return self.transcript.picked[-1]

    def _hear(self, *question: object) -> None:
        self.transcript.asked.append(_question(*question))


class Replayer(_QuestionLog):
    """A curator that gives out what a recorder gave, whatever its own records are.

    Attributes
    ----------
    answers : list of Answer
        The exact answers of its own records.
    mismatches : list of str
        What it was asked otherwise.
    """

    def __init__(self, records: RecordSet, recorder: Recorder) -> None:
        transcript = recorder.transcript
        replaying = Replaying(records, recorder.neighbours, transcript.released)
        # A replay draws nothing.
        super().__init__(records, recorder.neighbours, Randomness(0), replaying)
        self.answers, self.mismatches = replaying.answers, list[str]()
        self._picked, self._asked = iter(transcript.picked), iter(transcript.asked)

    def pick(self, stop: int, count: int) -> NDArray[np.int64]:
        self._hear(stop, count)
        return _next(self._picked)

    def _hear(self, *question: object) -> None:
        """Compare what is asked: a solver that was given the same has the same to ask."""
        if differing(_question(*question), _next(self._asked)):
            self.mismatches.append("public values handed to the curator")


def _next(given: Iterator[T]) -> T:
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
    """
    if len(transcript.released) != len(answers):
        raise TranscriptMismatch("number of releases")
    total = 0.0
    for value, answer in zip(transcript.released, answers, strict=True):
        mechanism, batches = answer.mechanism, _batches(answer)
        if batches is None or not isinstance(mechanism, Additive):
            total += mechanism.log_likelihood(value, answer.exact, answer.sensitivity)
            continue
        log_probabilities, exact = batches
        likely = mechanism.log_likelihoods(np.ravel(value), exact, answer.sensitivity)
        total += float(np.logaddexp.reduce(log_probabilities + likely))
    return total


def _batches(answer: Answer) -> tuple[Vector, Vector] | None:
    """Log-probability and exact answer of every batch that adds something of its own; None without any."""
    sampling = answer.sampling
    if answer.parts is None or not isinstance(sampling, Poisson) or sampling.rate == 1:
        return None
    same = Counter(part.tobytes() for part in answer.parts if part.any())
    counts = tuple(same.values())
    if math.prod(count + 1 for count in counts) > _BATCHES:
        return None
    drawn, chances = _draws(counts, sampling.rate)
    parts = np.array([np.frombuffer(part) for part in same]).reshape(len(same), answer.parts.shape[1])
    return chances, drawn @ parts


@lru_cache(maxsize=64)
def _draws(counts: tuple[int, ...], rate: float) -> tuple[Vector, Vector]:
    """How many of each kind of equal records a batch may hold, and the log-probability of that."""
    drawn = list(itertools.product(*(range(count + 1) for count in counts)))
    chances = [
        math.log(math.prod(map(math.comb, counts, numbers)))
        + sum(numbers) * math.log(rate)
        + (sum(counts) - sum(numbers)) * math.log1p(-rate)
        for numbers in drawn
    ]
    return np.array(drawn, dtype=np.float64), np.array(chances)


def _question(*values: object) -> tuple[object, ...]:
    """What a solver asked, as it was then: of a query its settings, not what it found out since."""
    return tuple(
        (type(value), *(getattr(value, part.name) for part in fields(value)))
        if is_dataclass(value)
        else copy.copy(value)
        for value in values
    )
