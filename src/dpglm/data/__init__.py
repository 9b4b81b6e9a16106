"""Tables of records: the only package that computes with them."""

from .records import Records
from .resident import Dense
from .source import as_block, as_data
from .sparse import CSC, CSR

__all__ = ["CSC", "CSR", "Dense", "Records", "as_block", "as_data"]
