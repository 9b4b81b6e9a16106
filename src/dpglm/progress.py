"""How much of a fit is done: shares of what is planned, never a value of the data.

Those who do the work say that they did, by `passed` and `released`; those who want to see it open `shown`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Literal, Protocol

PATIENCE = 2.0
"""Fits of fewer seconds show nothing."""

Unit = Literal["releases", "passes"]

_PARTS = 10


class Display(Protocol):
    """What shows a share, from 0 to 1."""

    def show(self, share: float) -> None: ...
    def say(self, line: str) -> None: ...
    def close(self) -> None: ...


class Work:
    """Work that is counted, and displayed once it has taken a while.

    Parameters
    ----------
    title : str
    unit : {"releases", "passes"}
        What is counted.
    total : int
        How many of them there will be.
    exact : bool
        Whether that number is known beforehand. If not, how many there are depends on the records: then the
        display stays at 0 until the work has ended, and shows the same for all records.
    """

    def __init__(self, title: str, unit: Unit, total: int, exact: bool) -> None:
        self._title, self.unit, self._total, self._exact = title, unit, max(total, 1), exact
        self._began, self._done = monotonic(), 0
        self._display: Display | None = None

    def add(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        if self._display is None:
            if monotonic() - self._began < PATIENCE:
                return
            self._display = _display(self._title, self.unit)
        self._display.show(min(self._done / self._total, 1.0) if self._exact else 0.0)

    def say(self, line: str) -> None:
        """Show a line of text beside the share."""
        if self._display is None:
            self._display = _display(self._title, self.unit)
        self._display.say(f"{self._title}: {line}")

    def end(self, done: bool) -> None:
        """All of it is done, or was given up."""
        if self._display is not None:
            if done:
                self._display.show(1.0)
            self._display.close()


_WANTED: ContextVar[bool] = ContextVar("wanted", default=False)
_CURRENT: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def shown(title: str, unit: Unit, total: int, exact: bool = True) -> Iterator[None]:
    """Show the progress of what is done inside (see `Work`)."""
    work, done = Work(title, unit, total, exact), False
    token = _CURRENT.set(work)
    try:
        yield
        done = True
    finally:
        _CURRENT.reset(token)
        work.end(done)


@contextmanager
def wanted() -> Iterator[None]:
    """Show the progress of all fits inside, whether or not they were asked to."""
    token = _WANTED.set(True)
    try:
        yield
    finally:
        _WANTED.reset(token)


def is_wanted() -> bool:
    """Whether progress is to be shown although a fit was not asked to."""
    return _WANTED.get()


@contextmanager
def hidden() -> Iterator[None]:
    """Count nothing of what is done inside: how much it is must stay secret."""
    token = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def passed() -> None:
    """All records were read once."""
    _add("passes", 1)


def released(count: int) -> None:
    """So many releases were made."""
    _add("releases", count)


def said(line: str) -> None:
    """Say why nothing is done."""
    work = _CURRENT.get()
    if work is not None:
        work.say(line)


def _add(unit: Unit, count: int) -> None:
    work = _CURRENT.get()
    if work is not None and work.unit == unit:
        work.add(count)


class TextDisplay:
    """Progress as lines of text, one for each tenth."""

    def __init__(self, title: str, unit: Unit) -> None:
        self._title, self._unit, self._said = title, unit, 0

    def show(self, share: float) -> None:
        for part in range(self._said + 1, int(_PARTS * share) + 1):
            print(f"{self._title}: {100 * part // _PARTS} % of its {self._unit}", file=sys.stderr, flush=True)
            self._said = part

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class BarDisplay:
    """Progress as a bar that vanishes in the end; needs rich."""

    def __init__(self, title: str, unit: Unit) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        said = TextColumn("{task.description}"), TextColumn(f"of its {unit}")
        columns = said[0], BarColumn(), TaskProgressColumn(), said[1]
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress.start()
        self._task = self._progress.add_task(title, total=1.0)

    def show(self, share: float) -> None:
        self._progress.update(self._task, completed=share)

    def say(self, line: str) -> None:
        self._progress.console.print(line)

    def close(self) -> None:
        self._progress.stop()


def _display(title: str, unit: Unit) -> Display:
    """A bar on a terminal, lines elsewhere, without rich, and inside of another bar."""
    if sys.stderr.isatty():
        try:
            from rich.errors import LiveError
        except ModuleNotFoundError:
            return TextDisplay(title, unit)
        try:
            return BarDisplay(title, unit)
        except LiveError:
            pass
    return TextDisplay(title, unit)
