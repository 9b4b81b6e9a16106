"""Values whose annotations say what a field may be, how it is written and how it is read."""

import json
import math
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

import numpy as np
import pytest

from dpglm import codec, strict

NOT_NEGATIVE = strict.within("at least 0", lambda value: value >= 0)


class Relation(Enum):
    REPLACE = "replace"
    REMOVE = "remove"


@dataclass(frozen=True)
class Inner(codec.Tagged):
    level: codec.Level
    kind = "inner"

    @classmethod
    def from_dict(cls, values):
        kind, rest = codec.kind_of("inner", values, {"inner": cls})
        return codec.from_dict(kind, "inner", rest)


@dataclass(frozen=True)
class Outer:
    bound: Annotated[float, NOT_NEGATIVE]
    count: int
    name: str
    flag: bool
    mode: Literal["fast", "exact"]
    relation: Relation
    numbers: tuple[float, ...] | None
    words: tuple[str, ...]
    inner: Inner
    inners: tuple[Inner, ...]

    def __post_init__(self):
        codec.check(self)


GOOD = {
    "bound": math.inf, "count": np.int64(3), "name": "inf", "flag": np.True_, "mode": "fast",
    "relation": Relation.REMOVE, "numbers": [1, 2.5], "words": ["a"], "inner": Inner(1.0),
    "inners": (Inner(0.0), Inner(2.0)),
}  # fmt: skip


@pytest.mark.parametrize("numbers", [None, [1, 2.5]])
def test_a_value_that_is_written_is_read_and_holds_python_values(numbers):
    value = Outer(**GOOD | {"numbers": numbers})
    text = json.dumps(codec.to_dict(value), allow_nan=False)
    assert codec.from_dict(Outer, "outer", json.loads(text)) == value
    assert type(value.count) is int and type(value.flag) is bool and value.words == ("a",)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("bound", -1.0), ("bound", "1"), ("bound", math.nan), ("count", 0), ("count", True), ("name", " "),
        ("flag", 1), ("mode", "slow"), ("relation", "remove"), ("numbers", [math.inf]), ("numbers", 1.0),
        ("words", [1]), ("inner", 1.0), ("inners", [Inner(1.0)]), ("inners", (1.0,)),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(name, wrong):
    with pytest.raises(ValueError, match=name):
        Outer(**GOOD | {name: wrong})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("relation", "other"), ("inner", {"kind": "other"}), ("inner", {"kind": "inner"}), ("inners", {})],
)
def test_what_cannot_be_read_is_named(name, wrong):
    with pytest.raises(ValueError, match=name):
        codec.from_dict(Outer, "outer", codec.to_dict(Outer(**GOOD)) | {name: wrong})


@pytest.mark.parametrize("change", [{"extra": 1}, {"count": None}])
def test_missing_and_unknown_fields_are_named(change):
    values = {**codec.to_dict(Outer(**GOOD)), **change}
    values = {key: value for key, value in values.items() if value is not None or key == "numbers"}
    with pytest.raises(ValueError, match=next(iter(change))):
        codec.from_dict(Outer, "outer", values)


@pytest.mark.parametrize("hint", [float, list[int], int | str, tuple[int, int]])
def test_an_annotation_without_a_check_is_refused(hint):
    with pytest.raises(TypeError, match="field"):
        codec.check_of("field", hint)
