"""Lazy frames of polars, whose query is run anew in every pass."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .columnar import Columnar, typed
from .frames import in_doubles
from .stream import asked


@dataclass(frozen=True, eq=False, kw_only=True)
class LazyTable(Columnar):
    """The result of the query of a `polars.LazyFrame`, in batches of its streaming engine."""

    frame: Any

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        import polars

        level = polars.CompatLevel.oldest()
        query = in_doubles(self.frame.select(names))
        for part in query.collect_batches(chunk_size=rows, lazy=True, engine="streaming"):
            yield from part.to_arrow(compat_level=level).to_batches()


def recognised(X: object) -> LazyTable | None:
    """The source of a lazy frame."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(X, polars.LazyFrame):
        return None
    if not hasattr(X, "collect_batches"):
        raise ValueError("a polars LazyFrame needs polars 1.34 or later: update it, or give X.collect()")
    schema = asked(X.collect_schema)
    count = asked(lambda: X.select(polars.len()).collect(engine="streaming").item())
    return LazyTable(n_samples=count, types=typed(schema.names(), schema.dtypes()), frame=X)
