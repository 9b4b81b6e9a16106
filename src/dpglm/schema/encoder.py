"""A schema as a transformer of scikit-learn."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from ..data.adapters import as_source
from ..data.cluster import by_blocks, is_dask
from ..data.frames import column_names, library_of, text_names
from .column import RawCoefficients
from .schema import Schema
from .source import EncodedSource, names_of


class SchemaEncoder(TransformerMixin, BaseEstimator):
    """Encode raw tables by declared facts; nothing is learnt from the records, so it costs no budget.

    It takes data frames of pandas and polars, Arrow tables, dicts of arrays; and tables that are read block
    by block: pyarrow data sets, polars LazyFrames, DuckDB relations, Dask data frames, and a `dpglm.Stream`
    of data frames. Columns are matched by name.

    Parameters
    ----------
    schema : Schema

    Examples
    --------
    >>> from dpglm.schema import Number, Ordinal, Schema
    >>> encoder = Schema({"size": Ordinal(["S", "M", "L"]), "price": Number(0, 10)}).encoder()
    >>> encoder.fit_transform({"price": [10, 5, 0], "size": ["M", "L", "S"]})
    array([[ 0.,  1.],
           [ 1.,  0.],
           [-1., -1.]])
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def fit(self, X: object, y: object = None) -> Self:
        """Check the names of the columns of X; no cell is read."""
        self._require_schema()
        names = _names_of(X)
        if names is not None:
            self.schema.require_columns(names, target=False)
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        return self

    def transform(self, X: Any) -> Any:
        """The encoded rows: an array, a CSR table if the schema `is_sparse`, or a source of such blocks."""
        self._require_schema()
        return encoded(self.schema, X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the encoded features."""
        return np.array(self.schema.features, dtype=object)

    def raw_coefficients(self, coef: ArrayLike, intercept: float = 0.0) -> RawCoefficients:
        """Coefficients in the units of the raw columns; see `Schema.raw_coefficients`."""
        return self.schema.raw_coefficients(coef, intercept)

    def _require_schema(self) -> None:
        if not isinstance(self.schema, Schema):
            raise ValueError(f"schema must be a dpglm.schema.Schema, got a {type(self.schema).__name__}")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.two_d_array = False
        return tags


def encoded(schema: Schema, X: Any, *, targets: bool = False, null: bool = True) -> Any:
    """The encoded rows of any table; a source gives targets, too, if they are asked for."""
    if is_dask(X):
        schema.require_columns(text_names(getattr(X, "columns", [])), target=False)
        return by_blocks(partial(schema.encode, null=null), X)
    source = None if library_of(X) is not None else as_source(X)
    if source is not None:
        return EncodedSource(source, schema, targets, null)
    return schema.encode(X, null=null)


def _names_of(X: Any) -> list[str] | None:
    """Names of the columns of a table; None if only its blocks tell."""
    if is_dask(X):
        return text_names(getattr(X, "columns", []))
    if library_of(X) is not None:
        return text_names(column_names(X))
    source = as_source(X)
    return None if source is None else names_of(source)
