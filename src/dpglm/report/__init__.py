"""What can be said of a fitted model, for people and for machines, from one dictionary."""

from .card import model_card
from .document import Report
from .page import page
from .registry import registry_entry
from .schemas import SCHEMAS, json_schema
from .statement import STATEMENT_VERSION, statement

__all__ = [
    "SCHEMAS", "STATEMENT_VERSION", "Report", "json_schema", "model_card", "page", "registry_entry",
    "statement",
]  # fmt: skip
