"""What happens between the table of a user and coefficients: recipe, preludes, records, session."""

from ..data.columns import NAMES
from .inputs import Table, numeric_table, numeric_target
from .keys import class_set, codes_of, is_missing, labels_of
from .preludes import ClassCounting, Prelude, SchemaLearning, fit_bounds
from .presentations import ClassWeights, Presentation, TargetMap, of_offsets
from .readers import ColumnReader, offsets, with_default_bounds
from .recipe import Recipe, budget_of
from .session import Outcome, Session, guarantee_of, randomness_of, run, warn_of_delta
from .tables import FitTable, NumericTable, TableReader, TargetReader, UnlearntTable

__all__ = [
    "NAMES", "ClassCounting", "ClassWeights", "ColumnReader", "FitTable", "NumericTable", "Outcome",
    "Prelude", "Presentation", "Recipe", "SchemaLearning", "Session", "Table", "TableReader", "TargetMap",
    "TargetReader", "UnlearntTable", "budget_of", "class_set", "codes_of", "fit_bounds", "guarantee_of",
    "is_missing", "labels_of", "numeric_table", "numeric_target", "of_offsets", "offsets", "randomness_of",
    "run", "warn_of_delta", "with_default_bounds",
]  # fmt: skip
