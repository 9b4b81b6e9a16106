"""What can be said of a fitted model, once for people and once for machines, from one dictionary."""

from .page import page
from .registry import registry_entry
from .statement import STATEMENT_VERSION, statement

__all__ = ["STATEMENT_VERSION", "page", "registry_entry", "statement"]
