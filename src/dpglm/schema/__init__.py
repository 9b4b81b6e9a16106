"""Declared facts about raw columns, and how they become features of bounded norm."""

from .boolean import Boolean
from .category import Category
from .coefficients import RawCoefficients
from .column import Column
from .date import Date
from .hashed import Hashed, Text
from .number import Number
from .ordinal import Ordinal
from .roles import Drop, Exposure, Offset, Target, Unit, Weight
from .schema import Schema

__all__ = [
    "Boolean", "Category", "Column", "Date", "Drop", "Exposure", "Hashed", "Number", "Offset", "Ordinal",
    "RawCoefficients", "Schema", "Target", "Text", "Unit", "Weight",
]  # fmt: skip
