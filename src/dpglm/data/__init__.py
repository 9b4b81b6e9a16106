"""Tables of records: the only package that computes with them."""

from .csc import CSC
from .csr import CSR
from .dense import Dense
from .records import Records
from .source import as_block, as_data

__all__ = ["CSC", "CSR", "Dense", "Records", "as_block", "as_data"]
