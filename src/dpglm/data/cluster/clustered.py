"""Records on the workers of a Dask cluster: sums come back, records do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ...arrays import Vector
from ...bounds import Bounds
from ...losses import Loss
from ..record_set import Coins, Grid, Part, RecordSet, RemoteRecords
from ..stream import Source
from ..streamed import Streamed
from ..terms import Term
from .blocks import Blocks
from .table import DaskTable
from .worker import Convert, Pass


def records_of(
    source: Source, convert: Convert, bounds: Bounds, constant: float, loss: Loss, most: int = 0,
    n_units: int | None = None,
) -> RecordSet:  # fmt: skip
    """The records of a source: on a cluster, or read block by block in this process, in every pass.

    They are on a cluster if the source is a Dask collection and there is a current client. ``most`` is how
    many there can be, if their number is private, ``n_units`` the number of persons, if they are of persons.
    """
    if isinstance(source, DaskTable) and (client := source.client) is not None:
        blocks = Blocks(client, source, convert, bounds, constant, loss, most)
        return Clustered(blocks, bounds, constant, most=most)
    return Streamed(source, convert, bounds, constant, most=most, n_units=n_units)


@dataclass(frozen=True, eq=False)
class Clustered(RemoteRecords):
    """The records of a Dask collection, clipped into bounds and kept on the workers.

    Each pass is one task a worker, which sums over its blocks; whole numbers come back. The driver draws all
    noise. Which worker holds which block, and what is computed again after a loss, changes no bit.

    Parameters
    ----------
    blocks : Blocks
    bounds : Bounds
    constant : float
        Value of the constant feature that carries the intercept; 0 for none.
    target : callable, optional
        Maps targets to those of the loss.
    coins : Coins, optional
        Which records take part; by default all.
    part : Part, optional
        The part of the table that these are the records of; by default all of it.
    """

    trusted: ClassVar[str] = (
        "scheduler and workers of the Dask cluster, their network, spill files, logs and dashboards"
    )

    blocks: Blocks
    bounds: Bounds
    constant: float
    target: Callable[[Vector], Vector] | None = None
    coins: Coins | None = None
    aim: str = field(default="", repr=False)
    most: int = 0
    part: Part | None = None

    @property
    def n_records(self) -> int:
        whole = self.blocks.n_records
        return whole if self.part is None else self.part.before(whole)

    @property
    def n_features(self) -> int:
        return self.blocks.n_features

    def steps(self, term: Term, grid: Grid, finely: int = 0) -> NDArray[np.int64]:
        total: NDArray[np.int64] = self.blocks.answer(self._pass(term, grid, finely))
        return total

    def longest(self, term: Term) -> float:
        return float(self.blocks.answer(self._pass(term, None, False)))

    def require_readable(self) -> None:
        self.blocks.require_readable()

    def _pass(self, term: Term, grid: Grid | None, finely: int) -> Pass:
        return Pass(
            self.blocks.agreement, term, grid, finely, self.aim, self.target, self.coins, self.part,
            self.table_size,
        )  # fmt: skip

    def of_part(self, part: Part) -> Clustered:
        return replace(self, part=part)

    def batch(self, coins: Coins) -> Coins:
        return coins

    def rows(self, batch: Coins) -> Clustered:
        return replace(self, coins=batch)

    def with_target(self, target: Callable[[Vector], Vector]) -> Clustered:
        """The same table with other targets."""
        return replace(self, target=target, aim=uuid4().hex)
