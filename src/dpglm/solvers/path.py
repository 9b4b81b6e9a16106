"""The models along a fit: solvers say where they are, and who follows them keeps some of these points.

All of them are functions of releases, so to keep them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ..arrays import Vector


@dataclass
class Path:
    """Points along a fit, each with words that say which it is.

    Attributes
    ----------
    stops : sequence of int
        After how many steps a point is kept.
    points : list of (str, array)
        What was kept so far.
    """

    stops: Sequence[int]
    points: list[tuple[str, Vector]] = field(default_factory=list)
    _sum: Vector | None = None
    _count: int = 0

    def add(self, w: Vector) -> Vector:
        """The mean of all iterates since the last stop, this one included."""
        self._sum = w.copy() if self._sum is None else self._sum + w
        self._count += 1
        return self._sum / self._count

    def keep(self, name: str, w: Vector) -> None:
        """Keep a point."""
        self.points.append((name, w.copy()))
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
        path.keep(f"{steps} steps", point())


def visit_noisy(steps: int, w: Vector, finish: Callable[[Vector], Vector]) -> None:
    """The same at every step, for iterates with noise: what is kept is their mean since the last stop."""
    path = _PATH.get()
    if path is not None and steps <= path.stops[-1]:
        mean = path.add(w)
        if steps in path.stops:
            path.keep(f"{steps} steps", finish(mean))


def visited_within(start: int, stop: int) -> list[int]:
    """The stops after ``start`` and up to ``stop`` steps: for solvers that make many steps at once."""
    path = _PATH.get()
    return [] if path is None else [step for step in path.stops if start < step <= stop]


def offer(models: Callable[[], Iterable[tuple[str, Vector]]]) -> None:
    """Offer models that follow from the last one, with words that say which they are, to those who follow."""
    path = _PATH.get()
    if path is not None:
        for name, w in models():
            path.keep(name, w)
