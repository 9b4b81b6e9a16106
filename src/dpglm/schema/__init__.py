"""Declared facts about raw columns, and how they become features of bounded norm."""

from .categories import Boolean, Category, Hashed, Ordinal, Text
from .column import Column, RawCoefficients
from .numbers import Date, Number
from .roles import Drop, Exposure, Offset, Target, Unit, Weight
from .schema import Schema

__all__ = [
    "Boolean", "Category", "Column", "Date", "Drop", "Exposure", "Hashed", "Number", "Offset", "Ordinal",
    "RawCoefficients", "Schema", "Target", "Text", "Unit", "Weight",
]  # fmt: skip
