"""The sections of a report. Each takes the statement and returns HTML, or nothing if it does not apply."""

from .beside import audited, evaluated, paid
from .model import model
from .promise import promise, released
from .table import not_covered, public, read, versions

__all__ = [
    "audited", "evaluated", "model", "not_covered", "paid", "promise", "public", "read", "released",
    "versions",
]  # fmt: skip
