"""The models along a fit: solvers say where they are, and who follows them keeps some of these points.

All of them are functions of releases, so to keep them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from ..arrays import Vector


class Model(NamedTuple):
    """A model along a fit.

    Attributes
    ----------
    name : str
        Words that say which it is.
    w : array
        Its coefficients, in terms of the records' own features.
    credit : float
        How much more than the whole fit it would gain on other rows than on those of the fit, in the sum
        over as many of them: the whole fit is fitted more closely to its own rows. An estimate, 0 if there
        is none.
    """

    name: str
    w: Vector
    credit: float = 0.0


@dataclass
class Path:
    """Models along a fit.

    Attributes
    ----------
    stops : sequence of int
        After how many steps a point is kept.
    points : list of Model
        What was kept so far.
    """

    stops: Sequence[int]
    points: list[Model] = field(default_factory=list)
    _sum: Vector | None = None
    _count: int = 0

    def add(self, w: Vector) -> Vector:
        """The mean of all iterates since the last stop, this one included."""
        self._sum = w.copy() if self._sum is None else self._sum + w
        self._count += 1
        return self._sum / self._count

    def keep(self, model: Model) -> None:
        """Keep a model."""
        self.points.append(model._replace(w=model.w.copy()))
        self._sum, self._count = None, 0


_PATH: ContextVar[Path | None] = ContextVar("path", default=None)


@contextmanager
def followed(stops: Sequence[int]) -> Iterator[Path]:
    """Keep the points that solvers visit inside, in this thread."""
    path = Path(stops)
    token = _PATH.set(path)
    try:
        yield path
    finally:
        _PATH.reset(token)


def visit(steps: int, point: Callable[[], Vector]) -> None:
    """So many steps are done: ``point`` returns the coefficients, in terms of the records' own features."""
    path = _PATH.get()
    if path is not None and steps in path.stops:
        path.keep(Model(f"{steps} steps", point()))


def visit_noisy(steps: int, w: Vector, finish: Callable[[Vector], Vector]) -> None:
    """The same at every step, for iterates with noise: what is kept is their mean since the last stop."""
    path = _PATH.get()
    if path is not None and steps <= path.stops[-1]:
        mean = path.add(w)
        if steps in path.stops:
            path.keep(Model(f"{steps} steps", finish(mean)))


def visited_within(start: int, stop: int) -> list[int]:
    """The stops after ``start`` and up to ``stop`` steps: for solvers that make many steps at once."""
    path = _PATH.get()
    return [] if path is None else [step for step in path.stops if start < step <= stop]


def offer(models: Callable[[], Iterable[Model]]) -> None:
    """Offer models that follow from the last one to those who follow."""
    path = _PATH.get()
    if path is not None:
        for model in models():
            path.keep(model)
