"""Tables on a Dask cluster."""

from .driver import Clustered, records_of
from .table import DaskTable, by_blocks, example_of, in_memory, is_dask, named_apart, of_each_block

__all__ = [
    "Clustered", "DaskTable", "by_blocks", "example_of", "in_memory", "is_dask", "named_apart",
    "of_each_block", "records_of",
]  # fmt: skip
