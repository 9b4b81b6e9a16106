"""Models in the formats of others: a plain estimator of scikit-learn, and ONNX. Encoded rows go in."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..arrays import Vector
from ..errors import UnsupportedProblem
from .pipeline import PrivatePipeline


def plain_model(model: PrivatePipeline) -> BaseEstimator:
    """A fitted linear model of scikit-learn, for rows that the schema has encoded.

    Features lie within their ranges, so nothing is clipped; rows are not cut to a ``row_norm`` of the schema.
    Predicted numbers are not cut to the declared range of the target.
    """
    check_is_fitted(model)
    return model.estimator_.to_sklearn(clip=False)


def write_sklearn(model: PrivatePipeline, path: Path) -> None:
    """Write the plain model with skops: a format that holds no code, unlike a pickle."""
    try:
        from skops import io
    except ModuleNotFoundError:
        raise UnsupportedProblem("this format needs skops: pip install 'dpglm[skops]'") from None
    norm = _largest_norm(model)
    if norm is not None:
        warnings.warn(
            f"scikit-learn has no step that cuts rows to row_norm = {norm:g}, as `predict` does: let "
            "schema.bounds().clip(rows) cut encoded rows before this model predicts",
            UserWarning,
            stacklevel=2,
        )
    io.dump(plain_model(model), path)


def _largest_norm(model: PrivatePipeline) -> float | None:
    """The norm to which predictions cut encoded rows; None if no row can be longer."""
    norm = model.estimator_._fitted_problem.bounds.row_norm
    return norm if norm is not None and norm < model.schema_.radius else None


def write_onnx(model: PrivatePipeline, path: Path, statement: dict[str, Any]) -> None:
    """Write an ONNX graph: encoded rows in; labels and probabilities, or numbers, out.

    Rows are doubles; for models without probabilities, for which the converter knows no doubles, they are
    floats of single precision. Rows are cut to the ``row_norm`` of the schema, and predicted numbers to the
    declared range of the target. The promise is among the metadata.
    """
    try:
        import onnx
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ModuleNotFoundError:
        raise UnsupportedProblem("this format needs skl2onnx: pip install 'dpglm[onnx]'") from None
    plain = plain_model(model)
    options = {id(plain): {"zipmap": False}} if hasattr(plain, "predict_proba") else None
    kind = DoubleTensorType if is_regressor(plain) or options else FloatTensorType
    rows = kind([None, model.schema_.n_features])
    graph = convert_sklearn(plain, initial_types=[("X", rows)], options=options)
    norm = _largest_norm(model)
    if norm is not None:
        low, high = model.estimator_._fitted_problem.bounds.ranges(model.schema_.n_features)
        _shorten(onnx, graph, norm, low, high)
    target = model.estimator_._fitted_problem.bounds.target
    if is_regressor(plain) and target is not None:
        _cut(onnx, graph, target)
    facts = {
        "features": "\n".join(model.schema_.features),
        "schema": model.schema_.to_toml(),
        "privacy": model.privacy_.to_json(),
        "statement_digest": str(statement["digest"]),
    }
    onnx.helper.set_model_props(graph, facts)
    onnx.checker.check_model(graph)
    path.write_bytes(graph.SerializeToString())


def _shorten(onnx: Any, graph: Any, norm: float, low: Vector, high: Vector) -> None:
    """Cut rows as `Bounds.clip` does before anything else of a graph sees them.

    Features are cut to their ranges, none of which exceeds the norm, and what is longer still is scaled down.
    """
    (rows,) = graph.graph.input
    for node in graph.graph.node:
        node.input[:] = ["short" if name == rows.name else name for name in node.input]
    kind, whole = rows.type.tensor_type.elem_type, onnx.TensorProto.INT64
    graph.graph.initializer.extend(
        [
            onnx.helper.make_tensor("least", kind, [len(low)], low),
            onnx.helper.make_tensor("largest", kind, [len(high)], high),
            onnx.helper.make_tensor("row_norm", kind, [], [norm]),
            onnx.helper.make_tensor("entries", whole, [1], [1]),
        ]
    )
    steps = [
        onnx.helper.make_node("Max", [rows.name, "least"], ["raised"]),
        onnx.helper.make_node("Min", ["raised", "largest"], ["within"]),
        onnx.helper.make_node("Mul", ["within", "within"], ["squares"]),
        onnx.helper.make_node("ReduceSum", ["squares", "entries"], ["squared"], keepdims=1),
        onnx.helper.make_node("Sqrt", ["squared"], ["norms"]),
        onnx.helper.make_node("Max", ["norms", "row_norm"], ["longest"]),
        onnx.helper.make_node("Div", ["row_norm", "longest"], ["factor"]),
        onnx.helper.make_node("Mul", ["within", "factor"], ["short"]),
    ]
    for k, step in enumerate(steps):
        graph.graph.node.insert(k, step)


def _cut(onnx: Any, graph: Any, target: tuple[float, float]) -> None:
    """Cut the only output of a graph to a range."""
    (output,) = graph.graph.output
    for node in graph.graph.node:
        node.output[:] = ["uncut" if name == output.name else name for name in node.output]
    kind = output.type.tensor_type.elem_type
    for name, end in zip(("low", "high"), target, strict=True):
        graph.graph.initializer.append(onnx.helper.make_tensor(name, kind, [], [end]))
    graph.graph.node.append(onnx.helper.make_node("Clip", ["uncut", "low", "high"], [output.name]))
