"""Tables on a Dask cluster."""

from .clustered import Clustered, records_of
from .lazy import by_blocks, in_memory, named_apart, of_each_block
from .table import DaskTable, example_of, is_dask

__all__ = [
    "Clustered", "DaskTable", "by_blocks", "example_of", "in_memory", "is_dask", "named_apart",
    "of_each_block", "records_of",
]  # fmt: skip
