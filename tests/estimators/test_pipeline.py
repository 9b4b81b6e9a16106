"""One model of raw tables: a schema and an estimator."""

import warnings

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as datasets
import pyarrow.parquet as parquet
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.utils import estimator_html_repr

import dpglm
from dpglm import (
    Bounds,
    BoundsScaler,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    PrivatePath,
    Stream,
    make_private_pipeline,
)
from dpglm.errors import PrivacyWarning
from dpglm.estimators.sklearn_checks import learning_steps
from dpglm.schema import Boolean, Category, Drop, Exposure, Number, Offset, Schema, Target, Unit, Weight
from dpglm.solvers import GradientDescent, Newton

SCHEMA = Schema(
    {
        "age": Number(18, 90, missing="indicator"),
        "job": Category(["clerk", "nurse"]),
        "member": Boolean(),
        "id": Drop(),
        "home": Target(classes=["rented", "owned"]),
    }
)
RENT = Schema(
    {
        "age": Number(18, 90),
        "job": Category(["clerk", "nurse"], baseline="clerk", other=False),
        "rent": Target(0, 5_000),
    }
)


def homes(n, seed=0):
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame(
        {
            "id": np.arange(n),
            "home": "rented",
            "member": rng.choice([True, False], n),
            "job": rng.choice(["clerk", "nurse", "spy"], n),
            "age": rng.uniform(18, 90, n),
        }
    )
    raw.loc[raw["age"] + 20 * raw["member"] + rng.normal(0, 10, n) > 65, "home"] = "owned"
    raw.loc[rng.uniform(size=n) < 0.05, "age"] = None
    return raw


def rents(n, seed=0):
    rng = np.random.default_rng(seed)
    age, job = rng.uniform(18, 90, n), rng.choice(["clerk", "nurse"], n)
    rent = 500 + 20 * age + 300 * (job == "nurse") + rng.normal(0, 200, n)
    return pd.DataFrame({"rent": rent, "job": job, "age": age})


def seeded(**options):
    return make_private_pipeline(
        SCHEMA, LogisticRegression(epsilon=1.0, solver=GradientDescent(steps=5), random_state=0, **options)
    )


@pytest.mark.filterwarnings("ignore:random_state")
def test_every_table_gives_the_same_model(tmp_path):
    raw = homes(3_000)
    parquet.write_table(pa.Table.from_pandas(raw), tmp_path / "t.parquet", row_group_size=700)
    raw.to_csv(tmp_path / "t.csv", index=False)

    def blocks():
        return (raw.iloc[start : start + 999] for start in range(0, 3_000, 999))

    tables = {
        "pandas": raw,
        "polars": pl.from_pandas(raw),
        "Arrow": pa.Table.from_pandas(raw),
        "dict": {name: raw[name].to_numpy() for name in raw},
        "Parquet": datasets.dataset(tmp_path / "t.parquet"),
        "CSV": datasets.dataset(tmp_path / "t.csv", format="csv"),
        "LazyFrame": pl.scan_csv(tmp_path / "t.csv"),
        "Stream": Stream(blocks, 3_000, 5),
        "DuckDB": duckdb.from_arrow(pa.Table.from_pandas(raw)),
        "Dask": dd.from_pandas(raw, npartitions=3),
        "other order": raw[sorted(raw.columns)],
    }
    models = {name: seeded().fit(table) for name, table in tables.items()}
    expected = models["pandas"]
    assert expected.score(raw) > 0.75
    for name, model in models.items():
        assert np.array_equal(model.estimator_.coef_, expected.estimator_.coef_), name
        predicted = model.predict(tables[name])
        predicted = predicted.compute() if hasattr(predicted, "compute") else predicted
        assert np.array_equal(predicted, expected.predict(raw)), name
        assert model.score(tables[name]) == expected.score(raw), name


@pytest.mark.filterwarnings("ignore:random_state")
def test_the_pipeline_fits_what_its_parts_fit():
    raw = homes(2_000)
    model = seeded().fit(raw)
    alone = LogisticRegression(
        epsilon=1.0,
        solver=GradientDescent(steps=5),
        random_state=0,
        bounds=SCHEMA.bounds(),
        classes=SCHEMA.classes,
    ).fit(SCHEMA.encode(raw), SCHEMA.read_target(raw))
    assert np.array_equal(model.estimator_.coef_, alone.coef_)
    assert model.predict_proba(raw).shape == (2_000, 2) and model.decision_function(raw).shape == (2_000,)
    assert is_classifier(model) and not is_regressor(model) and list(model.classes_) == ["owned", "rented"]
    assert clone(model).schema == SCHEMA
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "LogisticRegression" in model._repr_html_()


@pytest.mark.filterwarnings("ignore:random_state")
def test_a_record_with_a_bad_cell_counts_for_nothing_and_changes_no_other():
    raw = homes(1_000).astype(object)
    zero = raw.copy()
    for bad in ("secret 8675309", None, [1], object()):
        changed = raw.copy()
        changed.at[7, "member"] = bad
        zero.at[7, "home"] = "neither"
        assert np.array_equal(seeded().fit(changed).estimator_.coef_, seeded().fit(zero).estimator_.coef_)
    assert seeded().fit(raw).predict(changed.iloc[[7]]).shape == (1,)


def test_coefficients_and_summary_are_in_raw_units():
    model = make_private_pipeline(RENT, LinearRegression(epsilon=float("inf"), solver=Newton()))
    raw = rents(5_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(raw)
    X = np.column_stack([raw["age"], raw["job"] == "nurse", np.ones(len(raw))])
    expected, *_ = np.linalg.lstsq(X, raw["rent"], rcond=None)
    values, intercept = model.raw_coefficients()
    assert [values["age"], values["job=nurse"], intercept] == pytest.approx(expected, rel=1e-6)
    summary = model.summary()
    (block,) = summary.blocks
    assert block.names == ("age", "job=nurse", "intercept")
    assert block.values == pytest.approx(expected, rel=1e-6)
    residuals = raw["rent"] - X @ expected
    meat = (X * np.square(residuals.to_numpy())[:, None]).T @ X
    bread = np.linalg.inv(X.T @ X)
    sandwich = np.sqrt(np.diag(bread @ meat @ bread))
    assert block.standard_errors == pytest.approx(sandwich, rel=0.02)
    assert "job=nurse" in str(summary)


def test_raw_coefficients_without_an_intercept_have_one_that_follows():
    estimator = LinearRegression(epsilon=float("inf"), fit_intercept=False, solver=Newton())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_private_pipeline(RENT, estimator).fit(rents(500))
    values, intercept = model.raw_coefficients()
    (block,) = model.summary().blocks
    assert block.values == pytest.approx([*values.values(), intercept])
    assert intercept == pytest.approx(-54 * values["age"])


def test_the_promise_names_the_schema_and_the_plan_needs_no_data():
    model = make_private_pipeline(SCHEMA, LogisticRegression(epsilon=0.5))
    plan = model.plan(2_000)
    model.fit(homes(2_000))
    assert model.plan_ == plan and model.privacy_.epsilon <= 0.5
    assert "5 declared columns, SHA-256" in model.privacy_.public["schema"]
    assert model.estimator.bounds is None and model.estimator_.bounds == SCHEMA.bounds()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: make_private_pipeline(SCHEMA, LinearRegression()).fit(homes(50)), "needs a range"),
        (lambda: make_private_pipeline(RENT, LogisticRegression()).fit(rents(50)), "needs classes"),
        (lambda: make_private_pipeline(SCHEMA, "ridge").fit(homes(50)), "estimator must be one of dpglm"),
        (
            lambda: make_private_pipeline(SCHEMA, PrivatePath(LogisticRegression())).fit(homes(50)),
            r"got a PrivatePath: .* PrivatePath\(make_private_pipeline\(schema, LogisticRegression",
        ),
        (lambda: make_private_pipeline({}, LogisticRegression()).fit(homes(50)), "schema must be"),
        (lambda: seeded(classes=[0, 1]).fit(homes(50)), "the schema gives classes"),
        (lambda: seeded(bounds=Bounds(row_norm=1.0)).fit(homes(50)), "the schema gives bounds"),
        (lambda: seeded().fit(homes(50), homes(50)["home"]), "y must be left out"),
        (lambda: seeded().fit(homes(50).drop(columns="home")), "no column 'home'"),
        (lambda: seeded().fit(pl.LazyFrame(homes(50)).drop("age")), "no column 'age'"),
        (
            lambda: make_private_pipeline(Schema({"x": Number(0, 1)}), LinearRegression()).fit({"x": [1]}),
            "must declare a target",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_pipeline_is_shown_in_few_lines_and_its_diagram_has_the_schema():
    model = make_private_pipeline(SCHEMA, LogisticRegression())
    schema = "schema=<Schema: 5 columns, target 'home'>"
    assert " ".join(repr(model).split()) == f"PrivatePipeline(estimator=LogisticRegression(), {schema})"
    assert repr(PrivatePath(model)).count("\n") < 3
    diagram = estimator_html_repr(model)
    assert "SchemaEncoder" in diagram and "LogisticRegression" in diagram


@pytest.mark.parametrize(
    ("step", "names"),
    [
        (StandardScaler(), ["StandardScaler"]),
        (RBFSampler(gamma="scale"), ["RBFSampler"]),
        (RBFSampler(gamma=0.5), []),
        (OneHotEncoder(), ["OneHotEncoder"]),
        (OneHotEncoder(categories=[["a", "b"]]), []),
        (OneHotEncoder(categories=[["a", "b"]], min_frequency=3), ["OneHotEncoder"]),
        (SimpleImputer(), ["SimpleImputer"]),
        (SimpleImputer(strategy="constant", fill_value=0), []),
        (PCA(), ["PCA"]),
        (TfidfVectorizer(), ["TfidfVectorizer"]),
        (HashingVectorizer(), []),
        (SplineTransformer(), ["SplineTransformer"]),
        (SplineTransformer(knots=np.array([[0.0], [1.0]])), []),
        (Normalizer(), []),
        (PolynomialFeatures(), []),
        (BoundsScaler(), []),
        (SCHEMA.encoder(), []),
        ("passthrough", []),
        (make_pipeline(SimpleImputer(), Normalizer()), ["SimpleImputer"]),
        (ColumnTransformer([("a", StandardScaler(), ["x"]), ("b", "drop", ["y"])]), ["StandardScaler"]),
        (ColumnTransformer([("a", "drop", ["x"])], remainder=StandardScaler()), ["StandardScaler"]),
    ],
)
def test_steps_that_learn_are_known_by_name(step, names):
    assert [name for _, name in learning_steps(step)] == names


def test_a_pipeline_whose_steps_learn_warns_by_their_names():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    model = LogisticRegression(epsilon=5.0, classes=[0, 1], solver=GradientDescent(steps=2))
    with pytest.warns(PrivacyWarning, match="StandardScaler, PCA in front of LogisticRegression"):
        make_pipeline(StandardScaler(), BoundsScaler(), PCA(2), model).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(BoundsScaler(), model).fit(X, y)
        model.fit(StandardScaler().fit_transform(X), y)  # nobody can know


@pytest.mark.parametrize(
    "model, target", [(LinearSVC, Target(classes=["no", "yes"])), (LinearSVR, Target(0, 1))]
)
@pytest.mark.parametrize("column", [Weight(2), Offset(-1, 1), Exposure(1, 2), Unit(2)], ids=lambda x: x.kind)
def test_a_column_that_the_estimator_does_not_take_is_refused_in_words(model, target, column):
    schema = Schema({"x": Number(0, 1), "beside": column, "y": target})
    pipeline = make_private_pipeline(schema, model(epsilon=1.0))
    answers = ["no", "yes"] if target.classes else [0, 1]
    table = pd.DataFrame({"x": [0.0, 1.0] * 20, "beside": [1] * 40, "y": answers * 20})
    said = f"column 'beside' as {column.kind}, {model.__name__} takes none"
    for call in (
        lambda: pipeline.plan(40),
        lambda: pipeline.fit(table),
        lambda: pipeline.fit(pa.table(table)),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_the_package_exports_what_a_new_user_needs():
    assert {"Schema", "make_private_pipeline"} <= set(dpglm.__all__)
