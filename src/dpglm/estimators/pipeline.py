"""A schema and an estimator as one model of raw tables."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import strict
from ..arrays import Vector
from ..data.cluster import by_blocks, is_dask
from ..data.columns import RecordColumns
from ..data.frames import library_of
from ..data.stream import Source
from ..fit import NAMES, Prelude, SchemaLearning, UnlearntTable, fit_bounds
from ..fit.inputs import Labels
from ..fit.preludes import SHARE
from ..inference import INTERCEPT, Coefficients
from ..plan import Plan
from ..schema import RawCoefficients, Schema
from ..schema.encoder import SchemaEncoder, encoded
from ..schema.learning import Scaled
from ..schema.source import EncodedSource, EncodedTable, Held, RawTable
from .base import PrivateGLM
from .mixins import Inference, Reported
from .parameters import documented
from .sklearn_checks import all_or_nothing


def make_private_pipeline(
    schema: Schema, estimator: PrivateGLM, *, learn_share: float = SHARE
) -> PrivatePipeline:
    """A model of raw tables: the schema encodes them, states the bounds and the target; the estimator fits.

    What the schema leaves to be learnt is learnt first, by releases in the same plan, within the same budget.

    Parameters
    ----------
    schema : Schema
    estimator : estimator of dpglm
        Without bounds and classes of its own: the schema gives them.
    learn_share : float
        Share of the budget, in squared mu, that learning takes if the schema leaves something to be learnt;
        more than 0 and less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import LogisticRegression, make_private_pipeline
    >>> from dpglm.schema import Category, Number, Schema, Target
    >>> schema = Schema(
    ...     {
    ...         "age": Number(18, 90),
    ...         "job": Category(["clerk", "nurse"]),
    ...         "home": Target(classes=["rented", "owned"]),
    ...     }
    ... )
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(18, 90, 5_000)
    >>> table = {"age": age, "job": ["nurse"] * 5_000, "home": np.where(age > 50, "owned", "rented")}
    >>> model = make_private_pipeline(schema, LogisticRegression(epsilon=1.0)).fit(table)
    >>> model.predict({"age": [20, 80], "job": ["clerk", None]}).tolist()
    ['rented', 'owned']
    """
    return PrivatePipeline(schema, estimator, learn_share)


def _is_part(share: float) -> bool:
    return 0 < share < 1


def _fitted_has(name: str) -> Any:
    return available_if(lambda self: hasattr(self.estimator, name))


@documented
class PrivatePipeline(Inference, Reported, MetaEstimatorMixin, BaseEstimator):
    """A schema and an estimator as one model of raw tables; see `make_private_pipeline`.

    Encoding uses declared facts, and facts that were released within the same plan, so the promise holds for
    raw records: a raw record that is changed to anything changes one encoded record.

    Parameters
    ----------
    schema : Schema
    estimator : estimator of dpglm
    learn_share : float
        Share of the budget, in squared mu, that learning takes if the schema leaves something to be learnt;
        more than 0 and less than 1.

    Attributes
    ----------
    schema_ : Schema
        The schema with all that was learnt; the given one if nothing was to be learnt.
    estimator_ : estimator
        The fitted estimator, whose features are those of ``schema_``.
    {promised}
    """

    def __init__(self, schema: Schema, estimator: PrivateGLM, learn_share: float = SHARE) -> None:
        self.schema = schema
        self.estimator = estimator
        self.learn_share = learn_share

    @all_or_nothing
    def fit(self, X: object, y: None = None) -> Self:
        """Fit to the private records of a raw table, which holds the target, too.

        Parameters
        ----------
        X : raw table
            A data frame of pandas or polars, an Arrow table or a dict of arrays; or a table that is read
            block by block: a pyarrow data set, a polars LazyFrame, a DuckDB relation, a Dask data frame, or a
            `dpglm.Stream` of data frames.
        y : None
            The schema names the column of the targets.
        """
        if y is not None:
            raise ValueError("y must be left out: the schema names the column that holds the targets")
        model, schema = self._prepared(), self.schema
        if schema.pending:
            if isinstance(X, EncodedTable):
                raise ValueError(
                    "a table that is encoded already leaves nothing to be learnt: give the raw one"
                )
            raw = UnlearntTable(RawTable(schema, X))
            model.n_features_in_ = schema.n_features
            outcome = model._fit_table(raw, preludes=self._preludes(model))
            learnt: Schema = outcome.findings[0].schema
            _rescale(model, learnt, schema)
        else:
            learnt = schema
            if isinstance(X, Held):
                X = EncodedSource(X.source, schema).in_memory()
            encoded_table = X if isinstance(X, EncodedTable) else self._read(X)
            columns = zip(NAMES, encoded_table.beside, strict=True)
            given = {name: column for name, column in columns if column is not None}
            model.fit(encoded_table.rows, encoded_table.target, **given)
        self.schema_ = learnt
        self.estimator_ = model
        self.plan_ = model.plan_
        public = {**model.privacy_.public, "schema": self.stated_schema}
        if self.schema.pending:
            public["learnt"] = f"by releases of this fit: {', '.join(self.schema.pending)}"
        self.privacy_ = replace(model.privacy_, public=public)
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        return self

    def _read(self, X: object) -> EncodedTable:
        schema = self.schema
        if is_dask(X):
            columns = {
                part: by_blocks(partial(schema.read_part, part=part), X)
                for part, name in schema.beside._asdict().items() if name is not None
            }  # fmt: skip
            return EncodedTable(
                encoded(schema, X), by_blocks(schema.read_target, X), RecordColumns(**columns)
            )
        rows = encoded(schema, X, targets=True)
        if isinstance(rows, Source):
            return EncodedTable(rows, None)
        return EncodedTable(rows, self.schema.read_target(X), self.schema.read_beside(X))

    def _prepared(self) -> PrivateGLM:
        """The estimator with the facts that the schema states."""
        if not isinstance(self.schema, Schema):
            raise ValueError(f"schema must be a dpglm.schema.Schema, got a {type(self.schema).__name__}")
        if not isinstance(self.estimator, PrivateGLM):
            kind, hint = type(self.estimator).__name__, _nested(self.estimator)
            raise ValueError(f"estimator must be one of dpglm, got a {kind}{hint}")
        schema, labels = self.schema, is_classifier(self.estimator)
        if schema.target is None:
            raise ValueError("the schema must declare a target: Target(low, high) or Target(classes=[...])")
        if labels != (schema.classes is not None):
            declared = "a range" if schema.classes is None else "classes"
            raise ValueError(
                f"the schema declares {declared} for target {schema.target!r}, "
                f"{type(self.estimator).__name__} needs {'classes' if labels else 'a range'}"
            )
        for name in ("bounds", "classes"):
            if getattr(self.estimator, name, None) is not None:
                raise ValueError(f"the schema gives {name}: leave them out of the estimator")
        bounds = fit_bounds(schema)
        facts = {"bounds": bounds} | ({"classes": schema.classes} if labels else {})
        model: PrivateGLM = clone(self.estimator).set_params(**facts)
        taken = signature(model.fit).parameters
        for part, name in schema.beside._asdict().items():
            if name is not None and getattr(NAMES, part) not in taken:
                raise ValueError(
                    f"the schema declares column {name!r} as {schema.columns[name].kind}, "
                    f"{type(model).__name__} takes none: declare it as Drop() or fit another model"
                )
        if schema.beside.exposure is not None and model._loss().kind != "count":
            raise ValueError(
                f"the schema declares an exposure, {type(model).__name__} has no log link: declare an Offset"
            )
        return model

    def _preludes(self, model: PrivateGLM) -> tuple[Prelude, ...]:
        """What learns the facts that the schema leaves open."""
        schema = self.schema
        if not schema.pending:
            return ()
        if schema.beside.has_more:
            raise ValueError(
                "a schema with facts that are still to be learnt takes no weight, offset, exposure or unit: "
                "declare the facts"
            )
        share = strict.number("learn_share", self.learn_share, "a number between 0 and 1", _is_part)
        loss = model._loss()
        if getattr(schema._target, "pending", False) and loss.kind != "regression":
            raise ValueError(f"the {loss.name} loss is not one of targets on any scale: declare low and high")
        return (SchemaLearning(schema, share),)

    @property
    def stated_schema(self) -> str:
        """What the promise says of the schema."""
        digest = hashlib.sha256(self.schema.to_toml().encode()).hexdigest()
        return f"{len(self.schema.columns)} declared columns, SHA-256 {digest}"

    def plan(self, n_samples: int, *, resident: bool = True) -> Plan:
        """The whole plan of a fit to a table of this many records, without any data.

        Parameters
        ----------
        n_samples : int
            The number of records, or of persons if the schema declares a `Unit`. With
            ``neighbours="add-remove"`` this is a guess, and the price does not depend on it.
        resident : bool
            Whether the table will be in memory; False for one that is read anew in every pass.
        """
        model = self._prepared()
        recipe = model._recipe(
            n_samples, self.schema.n_features, model._targets(), resident=resident,
            preludes=self._preludes(model),
        )  # fmt: skip
        return recipe.planned().plan

    def _encoded(self, X: object) -> Any:
        """Rows to predict: a cell that cannot be read counts as 0, so that every row has a prediction."""
        check_is_fitted(self)
        return encoded(self.schema_, X, null=False)

    def _offsets(self, X: object) -> dict[str, Any]:
        """Offsets and exposures of the rows of a table in memory, as a prediction takes them."""
        if not self.schema.beside.has_offset or library_of(X) is None:
            return {}
        found = self.schema.read_beside(X, fit=False)
        return {name: part for name, part in found._asdict().items() if part is not None}

    def predict(self, X: object) -> Labels:
        """The prediction for each row of a raw table, which need not have the target.

        Where the table has the declared columns of offset and exposure, they count.
        """
        check_is_fitted(self)
        if is_dask(X) and self.schema.beside.has_offset:
            predicted: Labels = by_blocks(self.predict, X)
            return predicted
        predicted = self.estimator_.predict(self._encoded(X), **self._offsets(X))
        return predicted

    @_fitted_has("decision_function")
    def decision_function(self, X: object) -> Vector:
        """Margins of each row of a raw table."""
        margins: Vector = self.estimator_.decision_function(self._encoded(X), **self._offsets(X))
        return margins

    @_fitted_has("predict_proba")
    def predict_proba(self, X: object) -> Vector:
        """Probability of each class for each row of a raw table."""
        probabilities: Vector = self.estimator_.predict_proba(self._encoded(X), **self._offsets(X))
        return probabilities

    def score(self, X: object, y: None = None) -> float:
        """Accuracy of a classifier, R² of a regressor, on a raw table with its target; **not private**."""
        check_is_fitted(self)
        schema = self.schema_
        if is_dask(X):
            return float(self.estimator_.score(self._encoded(X), by_blocks(schema.read_target, X)))
        rows = encoded(schema, X, targets=True, null=False)
        if isinstance(rows, Source):
            return float(self.estimator_.score(rows, None))
        scored: Any = self.estimator_
        return float(scored.score(rows, schema.read_target(X), **self._offsets(X)))

    def raw_coefficients(self) -> RawCoefficients | list[RawCoefficients]:
        """Coefficients in the units of the raw columns; with more than two classes a list, one for each.

        They hold noise. How much is known only after a fit by `Newton`, whose ``summary()`` states it: other
        solvers release no standard errors, and their coefficients are for prediction.
        """
        check_is_fitted(self)
        rows, intercepts = self.estimator_._rows_of_coef(), np.ravel(self.estimator_.intercept_)
        found = [self.schema_.raw_coefficients(w, b) for w, b in zip(rows, intercepts, strict=True)]
        return found[0] if len(found) == 1 else found

    def _blocks(self, asked: str) -> tuple[Coefficients, ...]:
        """Coefficients with their errors in the units of the raw columns."""
        check_is_fitted(self)
        return tuple(map(partial(_in_raw_units, self.schema_), self.estimator_._blocks(asked)))

    def _sk_visual_block_(self) -> Any:
        """The diagram of a notebook: what encodes, then what fits."""
        steps = [("schema", SchemaEncoder(self.schema)), ("model", self.estimator)]
        return Pipeline(steps)._sk_visual_block_()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _nested(tool: object) -> str:
    """Which way round a tool that holds an estimator goes with a schema."""
    inner = getattr(tool, "estimator", None)
    if not isinstance(inner, PrivateGLM):
        return ""
    name = type(tool).__name__
    return f": put the schema inside, {name}(make_private_pipeline(schema, {type(inner).__name__}(...)))"


def _in_raw_units(schema: Schema, block: Coefficients) -> Coefficients:
    """Coefficients of raw features that are used, then the intercept; 0 if the fit had none."""
    used = np.array([*(feature.used for feature in schema.layout), True])
    raw = schema.raw_map[: len(block.values)].toarray()[:, used]
    return replace(
        block,
        names=(*(feature.name for feature in schema.layout if feature.used), INTERCEPT),
        values=raw.T @ block.values,
        covariance=_moved(raw, block.covariance, block.determined),
        privacy=_moved(raw, block.privacy, block.determined),
    )


def _moved(raw: Vector, covariance: Vector, determined: bool) -> Vector:
    return raw.T @ covariance @ raw if determined else np.zeros((raw.shape[1],) * 2)


def _rescale(model: Any, learnt: Schema, declared: Schema) -> None:
    """Make of a model of stretched rows and scaled targets one of the learnt schema."""
    scaled = Scaled.of(learnt, declared, bool(model.fit_intercept))
    before, p = model._fitted_problem, learnt.n_features
    after = replace(before, bounds=learnt.bounds())
    model.set_params(bounds=after.bounds)
    model._fitted_problem = after
    model.coef_ = model.coef_ * (scaled.stretch * scaled.half)
    model.intercept_ = model.intercept_ * scaled.half + scaled.middle
    if model._uncertainty is not None:
        ratio = before.constant(p) / after.constant(p) if before.fit_intercept else 1.0
        moved = after.join(np.full(p, scaled.stretch * scaled.half), scaled.half * ratio)
        factors = np.outer(moved, moved)
        model._uncertainty = tuple(
            replace(each, covariance=factors * each.covariance, privacy=factors * each.privacy)
            for each in model._uncertainty
        )
