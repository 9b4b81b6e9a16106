"""One raw table in every container, and the schema of it."""

from __future__ import annotations

import datetime as dt
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from dpglm.schema import Boolean, Category, Date, Drop, Hashed, Number, Ordinal, Schema, Target, Text

SCHEMA = Schema(
    {
        "age": Number(18, 90, missing="indicator"),
        "gain": Number(0, 1e5, transform="log1p", missing=0.0),
        "hours": Number(1, 99, cuts=(20, 40), missing="indicator"),
        "size": Number(1, 3, knots=(1.5, 2.0), missing="indicator"),
        "job": Category(["clerk", "nurse", "01"], missing="indicator"),
        "grade": Category([1, 2, 3.5], other=False),
        "member": Boolean(missing="indicator"),
        "since": Date("2000-01-01", "2020-12-31", unit="years", missing="indicator"),
        "school": Ordinal(["low", "middle", "high"], missing="indicator"),
        "zip": Hashed(64, key="zip", missing="indicator"),
        "note": Text(128, missing="indicator"),
        "id": Drop(),
        "rent": Target(0, 5_000),
    },
    interactions=[("age", "job"), ("member", "gain")],
    missing=["?"],
)


SPELLED = Schema(
    {
        "age": Number(18, 90, decimal=",", missing="indicator"),
        "gain": Number(0, 1e5, decimal=",", thousands=".", strip=["€", "EUR"], missing=0.0),
        "hours": Number(1, 99, cuts=(20, 40), thousands=" ", strip="~h%", missing="indicator"),
        "job": Category(["Clerk", "nurse", "01"], aliases={"RN": "nurse", "7": "01"}, casefold=True),
        "grade": Category([1, 2, 3.5], aliases={"4": 3.5, "one": 1}, missing="null"),
        "member": Boolean(aliases={"ja": True, "nein": False}, casefold=True, missing="indicator"),
        "since": Date(
            "2000-01-01", "2020-12-31", format=["%d.%m.%Y", "%m/%d/%y %I:%M %p", "%d %b %Y", "%Y%m%d"],
            missing="indicator",
        ),
        "school": Ordinal(["low", "Middle", "high"], aliases={"mid": "Middle"}, casefold=True),
        "id": Drop(),
        "rent": Target(0, 5_000, decimal=",", strip="€"),
    },
    interactions=[("age", "job"), ("member", "gain")],
    missing=["?"],
)  # fmt: skip
"""The same columns, spelled in other ways."""


def spelled_frame(n: int, seed: int = 0) -> pd.DataFrame:
    """The records of a frame as `SPELLED` spells them."""
    raw = frame(n, seed)[list(SPELLED.columns)].astype(object)
    rng = np.random.default_rng(seed)
    ways = {
        "age": lambda x: f"{x:.1f}".replace(".", ","),
        "gain": lambda x: f"{x:,.2f} €".translate(str.maketrans(",.", ".,")),
        "hours": lambda x: f"~{x:.2f} h",
        "job": lambda x: rng.choice([x, x.upper(), "rn"]),
        "grade": lambda x: rng.choice([x, 4, "one"]),
        "member": lambda x: rng.choice(["JA", "nein", x]),
        "since": lambda x: dt.date.fromisoformat(x).strftime(str(rng.choice(["%d.%m.%Y", "%Y%m%d"]))),
        "school": lambda x: rng.choice([x, x.title(), "mid"]),
        "rent": lambda x: f"€{x}".replace(".", ","),
    }
    for name, way in ways.items():
        raw[name] = [None if pd.isna(cell) else way(cell) for cell in raw[name]]
    return raw


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    """Random records, all columns of which have missing cells."""
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame(
        {
            "rent": rng.integers(0, 5_000, n).astype(float),
            "age": rng.integers(10, 99, n).astype(float),
            "gain": rng.exponential(1e3, n),
            "hours": rng.uniform(0, 120, n),
            "size": rng.uniform(0.5, 3.5, n),
            "job": rng.choice(["clerk", "nurse", "01", "spy", "?"], n),
            "grade": rng.choice([1.0, 2.0, 3.5, 4.0], n),
            "member": rng.choice(["true", "false"], n),
            "since": [str(dt.date(1998, 1, 1) + dt.timedelta(int(k))) for k in rng.integers(0, 9000, n)],
            "school": rng.choice(["low", "middle", "high", "other"], n),
            "zip": rng.choice(["A1", "B2", "C3", "D4"], n),
            "note": rng.choice(["back pain", "no pain at all", "Pain; back, again", "-"], n),
            "id": np.arange(n),
        }
    )
    for name in raw.columns.drop(["id", "rent"]):
        raw.loc[rng.uniform(size=n) < 0.1, name] = None
    return raw


def containers(raw: pd.DataFrame, folder) -> dict[str, object]:
    """The same records as read by several libraries, with the types that these find."""
    text = raw.to_csv(index=False)
    path = folder / "table.parquet"
    table = arrow_csv.read_csv(io.BytesIO(text.encode()))
    parquet.write_table(table, path, row_group_size=37)
    typed = raw.astype({"since": "datetime64[us]", "job": "category", "zip": "string"})
    typed["member"] = raw["member"].map({"true": True, "false": False}).astype("boolean")
    typed["grade"] = raw["grade"].astype("Float64")
    return {
        "pandas from CSV": pd.read_csv(io.StringIO(text)),
        "pandas, all text": pd.read_csv(io.StringIO(text), dtype=str),
        "pandas, all text, empty cells": pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False),
        "pandas, typed": typed,
        "pandas of Arrow": pd.read_csv(io.StringIO(text), dtype_backend="pyarrow", engine="pyarrow"),
        "polars from CSV": pl.read_csv(io.StringIO(text)),
        "polars, all text": pl.read_csv(io.StringIO(text), infer_schema=False),
        "polars, typed": pl.read_csv(io.StringIO(text), try_parse_dates=True).with_columns(
            pl.col("job").cast(pl.Categorical)
        ),
        "Arrow from CSV": table,
        "Arrow, in pieces": pa.concat_tables([table.slice(0, 13), table.slice(13, 1), table.slice(14)]),
        "Arrow, dictionaries": table.set_column(
            table.column_names.index("job"), "job", table["job"].dictionary_encode()
        ),
        "Parquet": parquet.read_table(path),
        "record batch": table.combine_chunks().to_batches()[0],
        "dict of arrays": {name: raw[name].to_numpy() for name in reversed(raw.columns)},
        "dict of lists": {name: raw[name].tolist() for name in raw.columns},
        "columns in another order": raw[sorted(raw.columns)],
    }
