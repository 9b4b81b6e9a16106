"""Tables on a Dask cluster."""

from .driver import ClusterRecords, records_of
from .table import DaskTable, by_blocks, example_of, in_memory, is_dask, of_each_block, split_target

__all__ = [
    "ClusterRecords", "DaskTable", "by_blocks", "example_of", "in_memory", "is_dask", "split_target",
    "of_each_block", "records_of",
]  # fmt: skip
