"""Weights, offsets, exposures and ids of persons: what may stand beside the rows and targets of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import SourceChanged, UnsupportedProblem
from .mapped import Around
from .stream import MISCOUNTED, count_of


class Several(NamedTuple):
    """The target of each record, and what stands beside it; None for what there is not.

    The parts are names of columns, columns as users give them, or those of a block.
    """

    target: Any = None
    weight: Any = None
    offset: Any = None
    exposure: Any = None
    unit: Any = None

    @property
    def has_more(self) -> bool:
        """Whether there is more than a target."""
        return any(part is not None for part in self[1:])

    @property
    def has_offset(self) -> bool:
        """Whether there is an offset or an exposure."""
        return self.offset is not None or self.exposure is not None

    @property
    def names(self) -> list[str]:
        """The parts that are names of columns."""
        return [part for part in self if isinstance(part, str)]

    @property
    def columns(self) -> Several:
        """The parts that are not names of columns."""
        return Several(*(None if isinstance(part, str) else part for part in self))

    def joined(self, other: Several) -> Several:
        """Both, of which one has each part."""
        return Several(*(one if one is not None else two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class Joined(Around):
    """A table together with arrays, one entry for each record, that are held in memory."""

    held: Several

    @property
    def gives_offsets(self) -> bool:
        return self.source.gives_offsets

    @property
    def has_targets(self) -> bool:
        return self.held.target is not None or self.source.has_targets

    def blocks(self) -> Iterator[tuple[object, object]]:
        place = 0
        for rows, found in self.source.blocks():
            given = found if isinstance(found, Several) else Several(found)
            if given.target is not None and self.held.target is not None:
                raise UnsupportedProblem(
                    "the blocks of X come with targets: give no y, or blocks of rows alone"
                )
            here = slice(place, place + count_of(rows))
            place = here.stop
            if place > self.n_samples:
                raise SourceChanged(MISCOUNTED)
            held = Several(*(None if part is None else part[here] for part in self.held))
            yield rows, held.joined(given)
