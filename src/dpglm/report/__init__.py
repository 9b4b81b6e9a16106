"""Reports on a fitted model, for people and for machines, from one dictionary of facts."""

from .exports import Report, model_card, registry_entry
from .page import page
from .statement import SCHEMAS, STATEMENT_VERSION, json_schema, statement

__all__ = [
    "SCHEMAS", "STATEMENT_VERSION", "Report", "json_schema", "model_card", "page", "registry_entry",
    "statement",
]  # fmt: skip
