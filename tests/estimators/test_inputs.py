"""What is read from tables and targets: each record is judged alone, and no error or warning tells of one."""

import math
import warnings
from array import array

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from dpglm import Bounds, BoundsScaler, LogisticRegression, Ridge
from dpglm.errors import PrivacyWarning
from dpglm.penalties import L1Ball
from dpglm.solvers import GradientDescent

from . import fuzzing
from .small_table import BOUNDS, DECLARED, LABELS, REGRESSION, TARGET, N, P, X

pytestmark = pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")

STRANGERS = ["x", "1", b"x", None, math.nan, pd.NA, 2**70, 10**400, 0.5, [1], {"a": 1}, {1}, 1j,
             np.array([1, 2]), object(), fuzzing.Rude()]  # fmt: skip


def nulled(table, k=7):
    table = np.array(table, dtype=np.float64)
    table[k] = np.nan
    return table


def without_record(y=LABELS):
    return LogisticRegression(**DECLARED).fit(nulled(X), y).coef_


def objects(values):
    """An array of these, made one by one: NumPy would ask each what it is."""
    array = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        array[k] = value
    return array


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "wrap", [list, tuple, lambda y: pd.Series(objects(y))], ids=["list", "tuple", "series"]
)
def test_a_label_of_another_type_nulls_its_own_record_only(stranger, wrap):
    labels = [int(label) for label in LABELS]
    labels[7] = stranger
    if wrap in (list, tuple) and isinstance(stranger, list):
        labels[7] = [stranger]  # a list of one label is that label
    assert np.array_equal(LogisticRegression(**DECLARED).fit(X, wrap(labels)).coef_, without_record())


def test_one_text_among_listed_numbers_leaves_other_labels_as_they_are():
    labels = [1] * 1000
    plain, odd = (
        LogisticRegression(1.0, classes=[0, 1], fit_intercept=False, random_state=0)
        .fit(np.ones((1000, 1)), y).coef_[0, 0]
        for y in (labels, ["x", *labels[1:]])
    )  # fmt: skip
    assert abs(plain - odd) < 0.1 < 3 < plain


@pytest.mark.parametrize(
    "stranger",
    [value for value in STRANGERS if not isinstance(value, str | int | float)],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrap", ["list", "objects", "frame"])
def test_an_entry_that_is_no_number_nulls_its_own_record_only(stranger, wrap):
    rows = X.tolist()
    rows[7][1] = stranger
    wrapped = {"list": lambda: rows, "objects": lambda: fuzzing._objects(rows),
               "frame": lambda: pd.DataFrame(fuzzing._objects(rows), dtype=object)}[wrap]()  # fmt: skip
    assert np.array_equal(LogisticRegression(**DECLARED).fit(wrapped, LABELS).coef_, without_record())


@pytest.mark.parametrize("stranger", [None, math.nan, pd.NA, 10**400, "text", 1j, {"a": 1}, math.inf],
                         ids=lambda value: type(value).__name__)  # fmt: skip
@pytest.mark.parametrize("wrap", [list, lambda y: pd.Series(y, dtype=object)], ids=["list", "series"])
def test_a_target_that_is_no_number_nulls_its_own_record_only(stranger, wrap):
    target = TARGET.tolist()
    target[7] = stranger
    expected = Ridge(**REGRESSION).fit(nulled(X), TARGET).coef_
    assert np.array_equal(Ridge(**REGRESSION).fit(X, wrap(target)).coef_, expected)


def test_a_target_in_a_row_of_its_own_is_that_target_whatever_the_other_rows_are():
    rows = [[int(label)] for label in LABELS]
    expected = LogisticRegression(**DECLARED).fit(X, LABELS).coef_
    assert np.array_equal(LogisticRegression(**DECLARED).fit(X, rows).coef_, expected)
    rows[7] = [0, 1]
    assert np.array_equal(LogisticRegression(**DECLARED).fit(X, rows).coef_, without_record())


def test_what_is_under_a_mask_is_missing():
    masked = np.ma.array(X, mask=np.zeros_like(X, dtype=bool))
    masked.mask[7, 1] = True
    assert np.array_equal(LogisticRegression(**DECLARED).fit(masked, LABELS).coef_, without_record())
    labels = np.ma.array(LABELS, mask=np.arange(N) == 7)
    assert np.array_equal(LogisticRegression(**DECLARED).fit(X, labels).coef_, without_record())


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"a": X[:, 0], "b": np.round(X[:, 1]), "c": X[:, 2] > 0}).astype(
        {"b": "Int64", "c": "boolean"}),
    pl.DataFrame({"a": X[:, 0], "b": np.round(X[:, 1]).astype(int), "c": X[:, 2] > 0}),
    pa.table({"a": X[:, 0], "b": np.round(X[:, 1]).astype(int), "c": X[:, 2] > 0}),
    pd.DataFrame({"a": X[:, 0], "b": np.round(X[:, 1]), "c": X[:, 2] > 0}).astype({"b": "category"}),
    pd.DataFrame({"a": X[:, 0].astype(object), "b": np.round(X[:, 1]), "c": (X[:, 2] > 0).astype("int8")}),
], ids=["nullable", "polars", "arrow", "category", "objects"])  # fmt: skip
def test_columns_of_any_numeric_type_are_read_as_their_numbers(frame):
    plain = np.column_stack([X[:, 0], np.round(X[:, 1]), X[:, 2] > 0])
    expected = LogisticRegression(**DECLARED).fit(plain, LABELS)
    model = LogisticRegression(**DECLARED).fit(frame, LABELS)
    assert np.array_equal(model.coef_, expected.coef_)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert np.array_equal(model.predict(frame), expected.predict(plain))


@pytest.mark.parametrize("column", [
    pd.Series(["secret"] * N, dtype="string"),
    pd.Series(["secret"] * N).astype("category"),
    pd.Series(pd.to_datetime(["2020-01-01"] * N)),
], ids=["text", "category", "date"])  # fmt: skip
def test_a_column_whose_type_is_not_numeric_is_refused_by_its_name(column):
    with pytest.raises(ValueError, match="column 'job' of X must be numeric") as caught:
        LogisticRegression(**DECLARED).fit(pd.DataFrame({"a": X[:, 0], "job": column}), LABELS)
    assert "secret" not in str(caught.value)
    if column.dtype == "string":
        with pytest.raises(ValueError, match="column 'job' of X must be numeric"):
            BoundsScaler(0, 1).fit(pl.DataFrame({"job": ["secret"] * N}))
        with pytest.raises(ValueError, match="column 'job' of X must be numeric"):
            BoundsScaler(0, 1).fit(pa.table({"job": ["secret"] * N}))


@pytest.mark.parametrize(
    "wrong",
    [
        np.array(["secret"] * N),
        np.array([b"secret"] * N),
        X[:, 0] + 1j,
        np.array(["2020-01-01"] * N, dtype="datetime64[D]"),
    ],
    ids=lambda y: str(y.dtype),
)
def test_targets_and_tables_of_a_type_without_numbers_are_refused_by_type(wrong):
    for X_, y_ in ((X, wrong), (wrong[:, None], TARGET)):
        with pytest.raises(ValueError, match="numeric|Complex data not supported") as caught:
            Ridge(**REGRESSION).fit(X_, y_)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("classes", "y"), [
    ([0, 1], np.where(LABELS, "yes", "no")), (["no", "yes"], LABELS), (["no", "yes"], LABELS.astype(float)),
    (["a", "b"], np.array([b"a", b"b"])[LABELS]),
    ([0, 1], pd.Series(np.where(LABELS, "1", "0"), dtype="string")),
    ([0, 1], pd.Series(np.where(LABELS, "1", "0"), dtype="string").astype("category")),
    ([0, 1], pl.Series(["0", "1"] * (N // 2))),
], ids=range(7))  # fmt: skip
def test_labels_whose_type_cannot_match_the_classes_are_refused(classes, y):
    with pytest.raises(ValueError, match="never equal classes of type"):
        LogisticRegression(classes=classes).fit(X, y)


@pytest.mark.parametrize("y", [
    LABELS.astype(bool), LABELS.astype(float), LABELS.astype(np.int8), list(LABELS), pl.Series(LABELS),
    pd.Series(LABELS, dtype="Int64"), pd.Series(LABELS).astype("category"),
], ids=range(7))  # fmt: skip
def test_labels_that_equal_the_classes_in_another_type_count(y):
    expected = LogisticRegression(**DECLARED).fit(X, LABELS).coef_
    assert np.array_equal(LogisticRegression(**DECLARED).fit(X, y).coef_, expected)


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(**DECLARED), Ridge(**REGRESSION), BoundsScaler(0, 120)],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("table", [
    np.array([34.5, 51.25]), [34.5, 51.25], np.array(34.5), np.full((2, 1, 1), 34.5), [[34.5, 1.0], [51.25]],
    pd.Series([34.5, 51.25]), ["34.5", "51.25"],
], ids=range(7))  # fmt: skip
def test_a_table_of_the_wrong_shape_is_refused_without_its_values(estimator, table):
    with pytest.raises(ValueError) as caught:
        estimator.fit(table, [0, 1])
    assert "34.5" not in str(caught.value) and "51.25" not in str(caught.value)
    assert caught.value.__context__ is None


def test_predictions_and_scores_quote_nothing():
    model = LogisticRegression(**DECLARED).fit(X, LABELS)
    for table in (np.full(P, 867.5309), [["secret"] * P], [[867.5309] * (P + 1)], [["secret", None, 1.0]]):
        with pytest.raises(ValueError) as caught:
            model.predict(table)
        assert "867" not in str(caught.value) and "secret" not in str(caught.value)
    assert model.score(X, ["secret"] * N) == 0
    with pytest.raises(ValueError) as caught:
        Ridge(**REGRESSION).fit(X, TARGET).score(X, np.array(["secret"] * N))
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        Bounds(row_norm=1.0).clip(np.array([["secret"]]))
    assert "secret" not in str(caught.value) and caught.value.__context__ is None


def broken(layout, part, place, value):
    table = layout(np.ones((4, 3)))
    getattr(table, part)[place] = value
    return table


MALFORMED = [
    *((layout, "indices", 2, value) for layout in (sp.csr_array, sp.csc_matrix, sp.bsr_array)
      for value in (4, -1)),
    *((layout, "indptr", place, value) for layout in (sp.csr_array, sp.csc_array)
      for place, value in ((0, 1), (1, 100), (2, -1), (-1, 100))),
    *((sp.coo_array, part, 1, value) for part in ("row", "col") for value in (4, -1)),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "part", "place", "value"), MALFORMED, ids=str)
def test_a_malformed_sparse_table_is_refused_before_a_kernel_reads_it(layout, part, place, value):
    table = broken(layout, part, place, value)
    sparse = LogisticRegression(classes=[0, 1], solver="frank-wolfe", penalty=L1Ball(1.0))
    for estimator in (LogisticRegression(**DECLARED), sparse):
        with pytest.raises(ValueError, match="malformed sparse table"):
            estimator.fit(table, [0, 1, 0, 1])
    model = LogisticRegression(**DECLARED).fit(np.ones((4, 3)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="malformed sparse table"):
        model.predict(broken(layout, part, place, value))


def test_a_sparse_table_whose_indices_are_no_integers_is_refused():
    table = sp.csr_array(np.ones((4, 3)))
    table.indices = table.indices.astype(float)
    with pytest.raises(ValueError, match="malformed sparse table"):
        LogisticRegression(**DECLARED).fit(table, [0, 1, 0, 1])


def edited(table, action):
    action(table)
    return table


@pytest.mark.parametrize("table", [
    edited(sp.lil_array(np.ones((4, 3))), lambda t: t.rows[1].append(7)),
    edited(sp.lil_array(np.ones((4, 3))), lambda t: t.rows[1].__setitem__(0, 9)),
    edited(sp.lil_array(np.ones((4, 3))), lambda t: t.rows.__setitem__(2, None)),
    edited(sp.dok_array(np.ones((4, 3))), lambda t: t._dict.__setitem__((9, 0), 1.0)),
    edited(sp.dok_array(np.ones((4, 3))), lambda t: t._dict.__setitem__("place", 1.0)),
    edited(sp.csr_array(np.ones((4, 3))), lambda t: setattr(t, "data", t.data[:, None])),
    edited(sp.bsr_array(np.ones((4, 3))), lambda t: setattr(t, "data", np.ones((1, 3, 2)))),
], ids=range(7))  # fmt: skip
def test_lists_keys_and_blocks_that_do_not_fit_the_shape_are_refused(table):
    with pytest.raises(ValueError, match="malformed sparse table"):
        LogisticRegression(**DECLARED).fit(table, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="malformed sparse table"):
        Bounds(row_norm=1.0).clip(table)


@pytest.mark.parametrize("layout", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_a_sparse_table_in_the_other_byte_order_is_read_as_its_numbers(layout):
    swapped = layout(X)
    for part in ("data", "indices", "indptr") if layout is not sp.coo_array else ("data",):
        values = getattr(swapped, part)
        setattr(swapped, part, values.astype(values.dtype.newbyteorder()))
    if layout is sp.coo_array:
        swapped.coords = tuple(index.astype(index.dtype.newbyteorder()) for index in swapped.coords)
    expected = LogisticRegression(**DECLARED).fit(layout(X), LABELS).coef_
    assert np.array_equal(LogisticRegression(**DECLARED).fit(swapped, LABELS).coef_, expected)


LARGE = 2**53
"""From here on not every integer is a float."""


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("wrap", [
    lambda y: pd.Series(y, dtype="Int64"), lambda y: pl.Series(y, dtype=pl.Int64), lambda y: pa.array(y),
    lambda y: np.ma.array([label or 0 for label in y], mask=[label is None for label in y], dtype=np.int64),
    lambda y: np.ma.array([label or 0 for label in y], mask=[label is None for label in y], fill_value=LARGE),
    lambda y: pa.record_batch({"y": pa.array(y)}), lambda y: pa.table({"y": pa.array(y)}),
    lambda y: [math.nan if label is None else label for label in y],
], ids=["nullable", "polars", "arrow", "masked", "filled", "batch", "table", "list"])  # fmt: skip
def test_a_missing_label_leaves_other_integers_as_they_are(wrap):
    """NumPy would turn all of them into floats, in which the two classes are one number."""
    labels = [LARGE + int(label) for label in LABELS]
    labels[7] = None
    declared = {**DECLARED, "classes": [LARGE, LARGE + 1]}
    assert np.array_equal(LogisticRegression(**declared).fit(X, wrap(labels)).coef_, without_record())


def test_moments_are_labels_in_any_unit():
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    declared = {**DECLARED, "classes": days}
    expected = LogisticRegression(**DECLARED).fit(X, LABELS).coef_
    for y in (days[LABELS], days[LABELS].astype("datetime64[ns]"), list(days[LABELS].astype(object)),
              pd.Series(days[LABELS])):  # fmt: skip
        assert np.array_equal(LogisticRegression(**declared).fit(X, y).coef_, expected)
    odd = list(days[LABELS].astype("datetime64[s]"))
    odd[7] += np.timedelta64(1, "s")
    assert np.array_equal(LogisticRegression(**declared).fit(X, odd).coef_, without_record())


@pytest.mark.parametrize("classes", [[0, "a"], {"a", 1}, [None, 1]], ids=range(3))
def test_declared_classes_of_several_types_are_refused(classes):
    with pytest.raises(ValueError, match="classes must be labels of one type"):
        LogisticRegression(classes=classes).fit(X, LABELS)
    with pytest.raises(ValueError, match="classes must be labels of one type"):
        LogisticRegression(classes=classes).plan(N, P)


def test_a_set_of_classes_is_taken():
    expected = LogisticRegression(**DECLARED).fit(X, LABELS).coef_
    assert np.array_equal(
        LogisticRegression(**{**DECLARED, "classes": {0, 1}}).fit(X, LABELS).coef_, expected
    )


@pytest.mark.parametrize("rows", [
    [pd.Series(row) for row in X], [array("d", row) for row in X], [tuple(row) for row in X],
], ids=["series", "array", "tuple"])  # fmt: skip
def test_rows_may_be_sequences_of_any_kind(rows):
    expected = LogisticRegression(**DECLARED).fit(X, LABELS).coef_
    assert np.array_equal(LogisticRegression(**DECLARED).fit(rows, LABELS).coef_, expected)


@pytest.mark.parametrize("row", [None, 3.0, "text", fuzzing.Rude(), pd.NA], ids=range(5))
def test_a_row_that_is_none_nulls_its_own_record_only(row):
    rows = X.tolist()
    rows[7] = row
    assert np.array_equal(LogisticRegression(**DECLARED).fit(rows, LABELS).coef_, without_record())


def test_a_frame_of_sparse_and_dense_columns_is_read_as_its_numbers():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray(X[:, 0]), "b": X[:, 1], "c": X[:, 2]})
    expected = LogisticRegression(**DECLARED).fit(X, LABELS).coef_
    assert np.array_equal(LogisticRegression(**DECLARED).fit(frame, LABELS).coef_, expected)


def test_weights_of_a_score_are_not_quoted():
    for model, y in ((Ridge(**REGRESSION), TARGET), (LogisticRegression(**DECLARED), LABELS)):
        model.fit(X, y)
        assert model.score(X, y, sample_weight=np.ones(N)) == pytest.approx(model.score(X, y))
        with pytest.raises(ValueError, match="sample_weight must be numeric") as caught:
            model.score(X, y, sample_weight=np.array(["secret"] * N))
        assert "secret" not in str(caught.value)


class Liar(list):
    """A list that does not have the length that it says."""

    def __len__(self):
        return 1


class Unwilling(tuple):
    __slots__ = ()

    def __iter__(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize("stranger", [Liar(), Unwilling((1,)), fuzzing.Rude(), np.complex64(1 + 1j)],
                         ids=["liar", "unwilling", "rude", "complex"])  # fmt: skip
@pytest.mark.parametrize("wrap", [
    list, lambda y: pl.Series(y, dtype=pl.Object),
    lambda y: pd.array(fuzzing._objects([[label] for label in y])[:, 0], dtype=object),
], ids=["list", "polars", "pandas"])  # fmt: skip
def test_an_object_that_raises_or_lies_nulls_its_own_record_only(stranger, wrap):
    labels = [int(label) for label in LABELS]
    labels[7] = stranger
    assert np.array_equal(LogisticRegression(**DECLARED).fit(X, wrap(labels)).coef_, without_record())
    target = TARGET.tolist()
    target[7] = stranger
    expected = Ridge(**REGRESSION).fit(nulled(X), TARGET).coef_
    assert np.array_equal(Ridge(**REGRESSION).fit(X, wrap(target)).coef_, expected)


def with_a_signalling_nan(values):
    """Single precision whose one NaN makes every cast of it an invalid operation."""
    values = np.array(values, dtype=np.float32)
    values.reshape(-1).view(np.uint32)[21] = 0x7F800001
    return values


LONG = np.array(X, dtype=np.longdouble)
LONG[7, 0] = np.longdouble("1e4000")
OVERFLOWING = sp.lil_array(X.astype(np.float32))
OVERFLOWING.data[7][0] = 1e300


@pytest.mark.parametrize("table", [
    with_a_signalling_nan(X), np.ma.array(with_a_signalling_nan(X)), LONG, np.ma.array(LONG), OVERFLOWING,
    pd.DataFrame({"a": with_a_signalling_nan(X)[:, 0], "b": X[:, 1], "c": X[:, 2]}),
], ids=["single", "masked single", "long", "masked long", "lists", "frame"])  # fmt: skip
def test_no_cast_of_an_entry_warns_or_raises(table):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        model = LogisticRegression(**DECLARED).fit(table, LABELS)
        LogisticRegression(**DECLARED).fit(X, with_a_signalling_nan(LABELS))
        LogisticRegression(**DECLARED | {"classes": None}).fit(X, with_a_signalling_nan(LABELS))
        if not sp.issparse(table):
            BoundsScaler(-1, 1).fit_transform(table)
    assert np.isfinite(model.coef_).all()


def test_no_prediction_warns_or_raises_for_tiny_entries():
    model = LogisticRegression(**DECLARED).fit(X, LABELS)
    with np.errstate(all="raise"):
        for predict in (model.predict, model.predict_proba, model.decision_function, BOUNDS.clip):
            predict(np.full((2, P), 5e-324))


@pytest.mark.parametrize("solver", ["frank-wolfe", "dual-coordinate-descent", "objective-perturbation"])
def test_a_fit_does_not_depend_on_how_numpy_treats_floating_point_errors(solver):
    model = LogisticRegression(
        classes=[0, 1],
        solver=solver,
        penalty=L1Ball(1.0) if solver == "frank-wolfe" else "l2",
        random_state=3,
    )
    expected = model.fit(X, LABELS).coef_
    with np.errstate(all="raise"):
        assert np.array_equal(model.fit(X, LABELS).coef_, expected)


def test_what_a_mask_hides_in_objects_and_rows_is_missing():
    mask = np.zeros((N, P), dtype=bool)
    mask[7, 1] = True
    objects = np.ma.array(X.astype(object), mask=mask, fill_value=0.5)
    rows = [np.ma.array(row, mask=hidden) for row, hidden in zip(X, mask, strict=True)]
    for table in (objects, rows):
        assert np.array_equal(LogisticRegression(**DECLARED).fit(table, LABELS).coef_, without_record())


@pytest.mark.parametrize("table", [
    lambda entry: pa.record_batch({"a": [True, entry, False], "b": [0.1, 0.2, 0.3]}),
    lambda entry: pl.Series([[True, False], [True, entry], [False, False]], dtype=pl.Array(pl.Boolean, 2)),
], ids=["batch", "series"])  # fmt: skip
def test_a_missing_entry_causes_no_warning_of_its_own(table):
    told = []
    for entry in (True, None):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            LogisticRegression(**DECLARED).fit(table(entry), [0, 1, 1])
        told.append([str(one.message) for one in caught])
    assert told[0] == told[1]


def test_doubled_small_integers_are_added_as_numbers():
    place = ([0, 0, 1], [0, 0, 1])
    small = sp.coo_array((np.array([100, 100, 1], dtype=np.int8), place), shape=(3, 2))
    models = [LogisticRegression(**DECLARED).fit(table, [0, 1, 1]) for table in (small, small.astype(float))]
    assert np.array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("y", [np.array(8675309), np.float64(8675309), 8675309, "8675309"], ids=range(4))
def test_a_target_without_a_dimension_is_refused_without_its_value(y):
    for estimator in (LogisticRegression(**DECLARED), Ridge(**REGRESSION)):
        with pytest.raises(ValueError, match="1d array|numeric") as caught:
            estimator.fit([[0.1]], y)
        assert "8675309" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize(("labels", "classes"), [
    (["a", "b", "a", math.nan], ["a", "b"]), ([LARGE, LARGE + 1, LARGE, math.nan], [LARGE, LARGE + 1]),
    ([0, 1, 0, math.nan], [0, 1]), ([False, True, True, None], [False, True]), ([0, 1, 0, pd.NA], [0, 1]),
], ids=range(5))  # fmt: skip
def test_a_missing_label_is_no_class_and_changes_no_type(labels, classes):
    model = LogisticRegression(random_state=3).fit(X[:4], labels)
    assert model.classes_.tolist() == classes
    assert model.classes_.dtype == np.array(classes).dtype


@pytest.mark.parametrize(("y", "classes"), [
    (np.array(["a", "a long label"]), [0, 1]), (pd.Series(["HIV", "none"]).astype("category"), [0, 1]),
    (pl.Series(["HIV", "none"], dtype=pl.Enum(["HIV", "none"])), [0, 1]),
], ids=range(3))  # fmt: skip
def test_a_refusal_by_type_says_nothing_of_the_values(y, classes):
    with pytest.raises(ValueError) as caught:
        Ridge(**REGRESSION).fit(X[:2], y)
    assert "HIV" not in str(caught.value) and "12" not in str(caught.value)
    try:
        LogisticRegression(classes=classes).fit(X[:2], y)
    except ValueError as problem:
        assert "HIV" not in str(problem) and "12" not in str(problem)


def test_clipping_quotes_nothing_and_reads_objects_one_by_one():
    rows = fuzzing._objects([[0.3, 0.4], [3.0, fuzzing.Rude()], [np.complex64(1j), 10**400]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(
            Bounds(row_norm=1.0).clip(rows), [[0.3, 0.4], [math.nan] * 2, [math.nan] * 2], equal_nan=True
        )
        assert np.isnan(Bounds(row_norm=1.0).clip([[1.0, 1j]])).all()


def test_solvers_run_without_warnings_about_numbers(monkeypatch):
    class Careless(GradientDescent):
        def run(self, plan, problem, curator):
            np.array([1.0, 0.0]) / np.zeros(2)
            np.exp(np.array([1e4]))
            return super().run(plan, problem, curator)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        LogisticRegression(classes=[0, 1], solver=Careless(steps=2)).fit(X, LABELS)


def test_fuzzed_tables_give_nothing_away():
    assert not fuzzing.main(250, seed=12)


def test_sparse_columns_around_another_value_than_zero_are_read_and_huge_integers_are_refused_in_words():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (60, 2))
    labels = (rows[:, 0] > 0).astype(int)
    model = LogisticRegression(float("inf"), classes=[0, 1])
    expected = model.fit(rows, labels).coef_
    for fill in (np.nan, 0.0, 1.0):
        frame = pd.DataFrame(rows).astype(pd.SparseDtype(float, fill))
        assert np.allclose(model.fit(frame, labels).coef_, expected, atol=1e-9)
    huge = pl.DataFrame({"a": [1] * 60, "b": [2] * 60}).with_columns(pl.col("a").cast(pl.Int128))
    with pytest.raises(ValueError, match="column 'a' of X must be numeric, its type is Int128"):
        model.fit(huge, labels)
