"""Public facts about the columns of a raw table, in one declaration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .. import strict
from ..arrays import Vector
from ..bounds import Bounds
from ..data.columns import RecordColumns
from ..data.frames import (
    column_entries,
    column_names,
    column_type,
    library_of,
    row_count,
    text_names,
    type_kind,
    type_name,
)
from ..penalties import Fused, GraphFused, Penalty
from . import toml
from .cells import MISSING_TEXTS, Cells, read_cells
from .column import Column, Feature, RawCoefficients, encoded_table, product, product_ranges, raw_map
from .roles import Drop, Offset, Role, Target, Unit, Weight

if TYPE_CHECKING:
    from .encoder import SchemaEncoder

Declared = Column | Target | Role | Drop

LEARN = "learn"
"""The norm of rows that is still to be learnt."""


def _is_norm(norm: float) -> bool:
    return 0 < norm < math.inf


def _require_declared(columns: object) -> None:
    """Refuse what is no mapping from names to declarations of columns."""
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns):
        raise ValueError("columns must be a mapping from names to columns such as Number(low, high)")
    for name, column in columns.items():
        if not isinstance(column, Declared):
            raise ValueError(
                f"column {name!r} must be a Number, Category, Boolean, Date, Ordinal, Hashed, Text, "
                f"Target, Weight, Offset, Exposure, Unit or Drop, got a {type(column).__name__}"
            )


@dataclass(frozen=True)
class Schema:
    """What is publicly known of the columns of a raw table, and so how it becomes features of bounded norm.

    Columns are matched by name, in any order. Nothing is learnt from records here: what a column leaves to be
    learnt, a fit of `make_private_pipeline` learns and pays for. A cell that cannot be read
    makes its own record a null record, which counts for nothing, and changes no other record.

    Parameters
    ----------
    columns : mapping of str to column
        A `Number`, `Category`, `Boolean`, `Date`, `Ordinal`, `Hashed`, `Text`, `Target`, `Weight`, `Offset`,
        `Exposure`, `Unit` or `Drop` for each column of the table.
    interactions : sequence of pairs of str
        Pairs of columns whose products are features, too.
    missing : sequence of str
        Texts that stand for a missing value, such as "?", besides those that pandas reads as missing.
    row_norm : float or "learn", optional
        Norm to which encoded rows are cut, if that is less than the radius; "learn" learns it in the fit,
        privately and as part of its price.

    Examples
    --------
    >>> from dpglm.schema import Category, Number, Schema, Target
    >>> schema = Schema(
    ...     {
    ...         "age": Number(17, 90),
    ...         "sex": Category(["Female", "Male"], other=False),
    ...         "income": Target(classes=["<=50K", ">50K"]),
    ...     }
    ... )
    >>> schema.features
    ['age', 'sex=Female', 'sex=Male']
    >>> schema.encode({"sex": ["Male", "Female"], "age": [90, "53.5"]})
    array([[1., 0., 1.],
           [0., 1., 0.]])
    >>> round(schema.radius, 3)
    1.414
    """

    columns: Mapping[str, Declared]
    interactions: Sequence[Sequence[str]] = ()
    missing: Sequence[str] = ()
    row_norm: float | str | None = None

    def __post_init__(self) -> None:
        _require_declared(self.columns)
        object.__setattr__(self, "columns", dict(self.columns))
        if not self._encoded:
            raise ValueError("a schema needs at least one column that becomes a feature")
        kinds = [column.kind for column in self.columns.values() if isinstance(column, Target | Role)]
        if len(set(kinds)) < len(kinds):
            raise ValueError("a schema has at most one target, weight, offset, exposure and unit")
        pairs = tuple(
            tuple(strict.sequence("interactions", pair))
            for pair in strict.sequence("interactions", self.interactions)
        )
        for pair in pairs:
            self._check_pair(pair)
        object.__setattr__(self, "interactions", pairs)
        texts = tuple(strict.sequence("missing", self.missing))
        if not all(isinstance(text, str) for text in texts):
            raise strict.wrong("missing", self.missing, "texts that stand for a missing value")
        object.__setattr__(self, "missing", texts)
        if self.row_norm is not None and self.row_norm != LEARN:
            norm = strict.number("row_norm", self.row_norm, 'a positive number or "learn"', _is_norm)
            object.__setattr__(self, "row_norm", norm)
        if len(set(self.features)) < len(self.features):
            raise ValueError("two features of the schema have the same name: rename a column")

    def _check_pair(self, pair: tuple[object, ...]) -> None:
        choices = [name for name, column in self._encoded.items() if column.slots is not None]
        if len(pair) != 2 or pair[0] == pair[1] or not all(name in choices for name in pair):
            raise strict.wrong("interactions", list(pair), f"pairs of different columns among {choices}")

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """The schema that a TOML text declares; see `to_toml`."""
        return cls(**toml.read_toml(text))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """The schema of a TOML file."""
        return cls.from_toml(Path(path).read_text(encoding="utf-8"))

    def to_toml(self) -> str:
        """The schema as TOML text: a line for each column."""
        return toml.write_toml(self.columns, self.interactions, self.missing, self.row_norm)

    @staticmethod
    def draft(frame: object, *, target: str | None = None, peek: bool = False) -> str:
        """A first TOML text for a table, to be completed by hand.

        Parameters
        ----------
        frame : data frame, Arrow table, data set, LazyFrame or dict of arrays
        target : str, optional
            Name of the column that is to be predicted.
        peek : bool
            False uses names and types of columns only: ranges and levels are left to be filled in. True reads
            them off the records, which is **not private**; the text says so.
        """
        return toml.draft(frame, target, strict.flag("peek", peek))

    @property
    def _encoded(self) -> dict[str, Column]:
        return {name: column for name, column in self.columns.items() if isinstance(column, Column)}

    @property
    def pending(self) -> list[str]:
        """What is still to be learnt: names of columns, and "norm of rows"."""
        names = [name for name, column in self.columns.items() if getattr(column, "pending", False)]
        return [*names, "norm of rows"] if self.row_norm == LEARN else names

    @property
    def used(self) -> list[str]:
        """Names of the columns that are read: all but those that are left out."""
        return [name for name, column in self.columns.items() if not isinstance(column, Drop)]

    @property
    def target(self) -> str | None:
        """Name of the target; None if there is none."""
        return next((name for name, column in self.columns.items() if isinstance(column, Target)), None)

    @property
    def beside(self) -> RecordColumns:
        """Names of the columns of weights, offsets, exposures and ids; None for those that there are not."""
        names = {column.kind: name for name, column in self.columns.items() if isinstance(column, Role)}
        return RecordColumns(**names)

    @property
    def unread(self) -> list[str | None]:
        """Names of the columns that predictions do not read: target, weight and id."""
        return [self.target, self.beside.weight, self.beside.unit]

    @property
    def classes(self) -> list[Any] | None:
        """The classes of the target; None if it is a number or there is none."""
        target = self._target
        return list(target.classes) if target is not None and target.is_class else None

    @property
    def _target(self) -> Target | None:
        return next((column for column in self.columns.values() if isinstance(column, Target)), None)

    @cached_property
    def layout(self) -> tuple[Feature, ...]:
        """What each place of an encoded row holds: the features of each column, then the products."""
        groups = {}
        for name, column in self._encoded.items():
            unused = column.unused(name)
            groups[name] = [Feature(one, (name,), one not in unused) for one in column.features(name)]
        products = [
            Feature(f"{x.name} : {y.name}", (a, b), x.used and y.used)
            for a, b in self.interactions for x in groups[a] for y in groups[b]
        ]  # fmt: skip
        return *(feature for group in groups.values() for feature in group), *products

    @property
    def features(self) -> list[str]:
        """Names of the features in their order: those of each column, then the products."""
        return [feature.name for feature in self.layout]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._edges[-1]

    @cached_property
    def _edges(self) -> list[int]:
        """Where the features of each column, then those of each pair, begin; and how many there are."""
        widths = [column.n_features for column in self._encoded.values()]
        pairs = [self._encoded[a].n_features * self._encoded[b].n_features for a, b in self.interactions]
        return [0, *accumulate([*widths, *pairs])]

    def groups(self) -> dict[str, list[int]]:
        """The features of each column, and of each pair: the groups of `penalties.GroupL2`.

        Examples
        --------
        >>> from dpglm.schema import Category, Number, Schema
        >>> schema = Schema({"age": Number(17, 90), "size": Category(["S", "M", "L"], other=False)})
        >>> schema.groups()
        {'age': [0], 'size': [1, 2, 3]}
        """
        return {
            name: list(range(*edges)) for name, edges in zip(self.norms, pairwise(self._edges), strict=True)
        }

    @property
    def norms(self) -> dict[str, float]:
        """Largest norm of the features of each column, and of each pair."""
        columns = self._encoded
        products = {f"{a} : {b}": columns[a].weight * columns[b].weight for a, b in self.interactions}
        return {name: column.weight for name, column in columns.items()} | products

    @property
    def radius(self) -> float:
        """Largest Euclidean norm of an encoded row. Noise is scaled to it."""
        return math.sqrt(sum(norm * norm for norm in self.norms.values()))

    @property
    def shares(self) -> dict[str, float]:
        """Share of each column, and of each pair, in the squared radius."""
        return {name: (norm / self.radius) ** 2 for name, norm in self.norms.items()}

    @property
    def is_sparse(self) -> bool:
        """Whether encoded tables are CSR tables: at most half of a row is different from zero."""
        slots = [column.slots for column in self._encoded.values()]
        entries = sum(1 if count is None else count for count in slots)
        return None in slots or 2 * entries <= self._edges[len(slots)]

    def bounds(self) -> Bounds:
        """What holds for every encoded record: its norm, the range of each feature, that of the target."""
        ranges, target_range = self._ranges, self._target_range
        norm = self.radius if not isinstance(self.row_norm, float) else min(self.radius, self.row_norm)
        weights = [column.high for column in self.columns.values() if isinstance(column, Weight)]
        ends = [column.ends for column in self.columns.values() if isinstance(column, Offset)]
        return Bounds(
            row_norm=norm, feature=ranges, target=target_range, weight=weights[0] if weights else None,
            offset=(sum(end[0] for end in ends), sum(end[1] for end in ends)) if ends else None,
            rows_per_unit=next((unit.rows for unit in self.columns.values() if isinstance(unit, Unit)), None),
        )  # fmt: skip

    @property
    def _ranges(self) -> tuple[Vector, Vector]:
        """Smallest and largest value of each feature."""
        columns = self._encoded
        ranges = [[column.weight * end for end in column.ranges()] for column in columns.values()]
        for a, b in self.interactions:
            weight = columns[a].weight * columns[b].weight
            ranges.append([weight * end for end in product_ranges(columns[a], columns[b])])
        low, high = (np.concatenate([pair[k] for pair in ranges]) for k in range(2))
        return low, high

    @property
    def _target_range(self) -> tuple[float, float] | None:
        """Smallest and largest target; None if they are not declared."""
        target = self._target
        if target is None or target.low is None or target.high is None:
            return None
        return target.low, target.high

    @property
    def fused(self) -> list[tuple[int, int]]:
        """Neighbouring levels and bins, as pairs of places of features: those of columns with ``fused``."""
        ends = zip(self._edges, self._encoded.values(), strict=False)
        return [(begin + k, begin + k + 1) for begin, column in ends for k in range(column.neighbours - 1)]

    def penalty(self, strength: float, *, l1: float = 0.0, l2: float = 0.0) -> Penalty:
        """The penalty that draws neighbours among the levels and bins of ``fused`` columns to equal values.

        Parameters
        ----------
        strength : float
            Weight of the sum of jumps between neighbours, beside the mean loss.
        l1, l2 : float
            Weights of an L1 and an L2 part, over all features.

        Examples
        --------
        >>> from dpglm.schema import Boolean, Number, Ordinal, Schema
        >>> school = Ordinal(["none", "some", "all"], fused=True)
        >>> schema = Schema({"member": Boolean(), "age": Number(0, 90, cuts=[30, 60]), "school": school})
        >>> schema.penalty(0.01, l2=0.001)
        GraphFused(strength=0.01, l2=0.001, edges=((4, 5), (5, 6)), weights=(1.0, 1.0))
        """
        if not self.fused:
            raise ValueError("no column has fused=True: it is for Ordinal(levels) and for Number(cuts=...)")
        if strict.level("l1", l1):
            return Fused(strength, l1, self.fused, l2=l2)
        return GraphFused(strength, self.fused, l2=l2)

    def require_columns(self, names: Sequence[str], target: bool = True) -> None:
        """Refuse a table that lacks a column, or has one that is not declared.

        Parameters
        ----------
        names : sequence of str
            Columns of the table.
        target : bool
            Whether the target is needed, and the columns beside it.
        """
        needed = [
            name for name, column in self.columns.items()
            if isinstance(column, Column) or target and isinstance(column, Target | Role)
        ]  # fmt: skip
        lacking = [name for name in needed if name not in names]
        if lacking:  # names of the table are not shown: a file without a header has records there
            raise ValueError(
                f"the table has no column {', '.join(map(repr, lacking))}, which the schema declares"
            )
        extra = [name for name in names if name not in self.columns]
        if extra:
            raise ValueError(
                f"the schema does not declare column {', '.join(map(repr, extra))}: declare it, with "
                'type = "drop" or as Drop() if it is not to be used'
            )

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def encode(self, frame: object, *, null: bool = True) -> Vector | sp.csr_array:
        """The features of the records of a table in memory: an array, or a CSR table if `is_sparse`.

        Parameters
        ----------
        frame : data frame of pandas or polars, Arrow table or record batch, dict of arrays
        null : bool
            True makes a record with a cell that cannot be read a row with NaN, which a private fit counts as
            a null record. False takes 0 for the features of that cell, as predictions do.
        """
        if self.pending:
            raise ValueError(
                f"{', '.join(map(repr, self.pending))} must be learnt first: fit make_private_pipeline, "
                "whose schema_ has what was learnt"
            )
        count = self._checked(frame, target=False)
        columns = self._encoded
        parts = {}
        for name, column in columns.items():
            parts[name] = column.encode(self._cells(frame, name))
        groups = [(parts[name], column.weight) for name, column in columns.items()]
        for a, b in self.interactions:
            both: Any = product(parts[a], parts[b], columns[b].n_features)  # type: ignore[arg-type]
            groups.append((both, columns[a].weight * columns[b].weight))
        return encoded_table(groups, self._edges, count, self.is_sparse, null)

    def read_target(self, frame: object) -> Vector | NDArray[np.str_]:
        """The targets of a table in memory: numbers, or classes; NaN or "" for a record without one."""
        target, name = self._target, self.target
        if target is None or name is None:
            raise ValueError("the schema declares no target")
        self._checked(frame, target=True)
        return target.read(self._cells(frame, name))

    def read_beside(self, frame: object, fit: bool = True) -> RecordColumns:
        """Weights, offsets, exposures and ids of a table in memory; None for those that there are not.

        Parameters
        ----------
        frame : data frame of pandas or polars, Arrow table or record batch, dict of arrays
        fit : bool
            Whether the table is fitted: then all declared columns are needed. For predictions weights and
            ids are not read, and offsets and exposures may be left out.
        """
        self._checked(frame, target=fit)
        names, parts = column_names(frame), dict[str, Any]()
        for part, name in self.beside._asdict().items():
            if name in names and (fit or name not in self.unread):
                column = self.columns[name]
                assert isinstance(column, Role)
                if isinstance(column, Unit):
                    parts[part] = column.ids(column_entries(frame, name), self._missing_texts)
                else:
                    parts[part] = column.read(self._cells(frame, name))
        return RecordColumns(**parts)

    def read_part(self, frame: object, part: str) -> Vector:
        """One of weight, offset, exposure and unit of a table in memory."""
        numbers: Vector = getattr(self.read_beside(frame), part)
        return numbers

    def _checked(self, frame: object, target: bool) -> int:
        """How many records a table has, if it has the declared columns."""
        if library_of(frame) is None:
            raise ValueError(
                "X must be a data frame of pandas or polars, an Arrow table or a dict of arrays, got a "
                f"{type(frame).__name__}: columns are matched by name"
            )
        self.require_columns(text_names(column_names(frame)), target)
        return row_count(frame)

    def _cells(self, frame: object, name: str) -> Cells:
        """What the cells of a column stand for, as its spelling says."""
        column, kind = self.columns[name], column_type(frame, name)
        if isinstance(column, Column) and type_kind(kind) in column.refused:
            raise ValueError(
                f"column {name!r} has type {type_name(kind)}, the schema declares a {column.kind}: "
                "convert it, or declare what it is"
            )
        spelling, cells = getattr(column, "spelling", None), read_cells(frame, name, self._missing_texts)
        return cells if spelling is None else spelling.read(cells)

    @cached_property
    def _missing_texts(self) -> frozenset[str]:
        return MISSING_TEXTS | {text.strip() for text in self.missing}

    @cached_property
    def raw_map(self) -> sp.csr_array:
        """The matrix T that takes raw features, then 1, to encoded features, then 1.

        Coefficients w and intercept b of encoded features are coefficients T'(w, b) of raw ones.
        """
        return raw_map(self._encoded, self.interactions, self._edges)

    def raw_coefficients(self, coef: ArrayLike, intercept: float = 0.0) -> RawCoefficients:
        """Coefficients in the units of the raw columns: slope per unit of a number, per level of a category.

        Parameters
        ----------
        coef : array of shape (n_features,)
        intercept : float
        """
        encoded = np.ravel(np.asarray(coef, dtype=np.float64))
        if len(encoded) != self.n_features:
            raise ValueError(f"coef has {len(encoded)} entries, the schema has {self.n_features} features")
        raw = self.raw_map.T @ np.append(encoded, float(intercept))
        pairs = zip(self.layout, raw[:-1].tolist(), strict=True)
        values = {feature.name: value for feature, value in pairs if feature.used}
        return RawCoefficients(values, float(raw[-1]))

    def encoder(self) -> SchemaEncoder:
        """The schema as a transformer of scikit-learn."""
        from .encoder import SchemaEncoder  # scikit-learn is slow to import

        return SchemaEncoder(self)

    def __repr__(self) -> str:
        target = "" if self.target is None else f", target {self.target!r}"
        return f"<Schema: {len(self.columns)} columns{target}>"  # all columns would fill the screen

    def __str__(self) -> str:
        edges, shares = self._edges, self.shares
        width = max(len(name) for name in shares)
        lines = [f"{self.n_features} features, rows of norm at most {self.radius:.4g}"]
        for k, (name, share) in enumerate(shares.items()):
            kind = self._encoded[name].kind if name in self._encoded else "product"
            count = edges[k + 1] - edges[k]
            lines.append(f"{name:<{width}}  {kind:<8}  {count:>7} features  {share:6.1%} of the squared norm")
        if self.target is not None:
            lines.append(f"target: {self.target}")
        if self.pending:
            lines.append(f"learnt in the fit: {', '.join(self.pending)}")
        return "\n".join(lines)
