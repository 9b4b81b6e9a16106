"""Events are values: validated, hashable, scalable and exactly serialisable."""

import json
import math

import numpy as np
import pytest

from dpglm.accounting import (
    Composed,
    Event,
    Exponential,
    Gaussian,
    Imprecision,
    Laplace,
    ObjectivePerturbation,
    PoissonGaussian,
    Pure,
    Repeated,
    compose,
    event_from_dict,
)

EVENTS = [
    Gaussian(0.1 + 0.2),
    Gaussian(0.0),
    Laplace(3.3),
    Exponential(1e-3),
    PoissonGaussian(1.1, 0.01, "zero-out"),
    PoissonGaussian(1.1, 1.0, "replace-one"),
    Pure(0.7),
    Pure(math.inf),
    Imprecision(2.0**-400),
    Repeated(Composed((Exponential(2.0), Gaussian(1.0))), 1_000_000),
    Composed(()),
    Composed((Gaussian(1.0), Repeated(Laplace(2.0), 3), Composed((Pure(1.0),)))),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_json_round_trip_is_exact(event):
    text = json.dumps(event.to_dict(), allow_nan=False)
    again = event_from_dict(json.loads(text))
    assert again == event
    assert hash(again) == hash(event)
    assert isinstance(event, Event)


@pytest.mark.parametrize(
    ("description", "word"),
    [
        ({"kind": "gaussian-ish", "noise": 1.0}, "gaussian-ish"),
        ({"noise": 1.0}, "kind"),
        ({"kind": "gaussian", "scale": 1.0}, "scale"),
        ({"kind": "gaussian"}, "gaussian"),
        ({"kind": "repeated", "event": {"kind": "no"}, "count": 1}, "no"),
        ({"kind": "gaussian", "noise": 1.0, "extra": 2}, "extra"),
        ({"kind": "gaussian", "noise": "1.0"}, "noise"),
        ({"kind": "gaussian", "noise": "inf"}, "noise"),
        ({"kind": "gaussian", "noise": None}, "noise"),
        ({"kind": "gaussian", "noise": True}, "noise"),
        ({"kind": "gaussian", "noise": 10**400}, "noise"),
        ({"kind": ["gaussian"], "noise": 1.0}, "kind"),
        ({"kind": "pure", "epsilon": "infinite"}, "epsilon"),
        ({"kind": "poisson-gaussian", "noise": 1.0, "rate": "0.1", "neighbours": "zero-out"}, "rate"),
        ({"kind": "poisson-gaussian", "noise": 1.0, "rate": 0.1, "neighbours": ["zero-out"]}, "neighbours"),
        ({"kind": "repeated", "event": 3, "count": 1}, "event"),
        ({"kind": "repeated", "event": {"kind": "pure", "epsilon": 1.0}, "count": True}, "count"),
        ({"kind": "repeated", "event": {"kind": "pure", "epsilon": 1.0}, "count": 1.0}, "count"),
        ({"kind": "repeated", "event": {"kind": "pure", "epsilon": 1.0}, "count": 10**400}, "count"),
        ({"kind": "composed", "events": {"kind": "pure", "epsilon": 1.0}}, "events"),
        ({"kind": "composed", "events": [1.0]}, "event"),
        ([("kind", "gaussian")], "event"),
        ("gaussian", "event"),
    ],
)
def test_unknown_descriptions_are_refused(description, word):
    with pytest.raises(ValueError, match=word):
        event_from_dict(description)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: Gaussian(-1.0), "noise"),
        (lambda: Gaussian(math.nan), "noise"),
        (lambda: Gaussian(math.inf), "noise"),
        (lambda: Laplace(-1.0), "noise"),
        (lambda: Exponential(-1.0), "noise"),
        (lambda: Pure(-0.1), "epsilon"),
        (lambda: Pure(math.nan), "epsilon"),
        (lambda: PoissonGaussian(1.0, 0.0, "zero-out"), "rate"),
        (lambda: PoissonGaussian(1.0, 1.1, "zero-out"), "rate"),
        (lambda: PoissonGaussian(1.0, 0.5, "add-remove"), "neighbours"),
        (lambda: Repeated(Gaussian(1.0), 0), "count"),
        (lambda: Repeated(Gaussian(1.0), 1.5), "count"),
        (lambda: Repeated("gaussian", 1), "event"),
        (lambda: Gaussian("1"), "noise"),
        (lambda: Gaussian(True), "noise"),
        (lambda: Imprecision(None), "distance"),
        (lambda: Pure("0.1"), "epsilon"),
        (lambda: ObjectivePerturbation(1.0, -1.0, "any", 1.0, "zero-out"), "curvature"),
        (lambda: ObjectivePerturbation(1.0, 0.1, "steep", 1.0, "zero-out"), "slopes"),
        (lambda: ObjectivePerturbation(1.0, 0.1, "any", "1", "zero-out"), "reach"),
        (lambda: Gaussian(1.0).scaled("2"), "factor"),
        (lambda: Composed([Gaussian(1.0)]), "events"),
        (lambda: Gaussian(1.0).scaled(-1.0), "factor"),
    ],
)
def test_a_wrong_argument_is_named(build, name):
    with pytest.raises(ValueError, match=name):
        build()


def test_numpy_scalars_become_python_values():
    events = [Gaussian(np.float32(0.5)), Pure(np.int64(2)), Repeated(Laplace(np.float64(1.0)), np.int64(3))]
    again = [event_from_dict(json.loads(json.dumps(event.to_dict()))) for event in events]
    assert again == events and type(events[0].noise) is type(events[1].epsilon) is float
    assert type(events[2].count) is int


def test_scaling_multiplies_all_noise():
    tree = Composed((Repeated(Composed((Exponential(1.0), Laplace(2.0))), 3), Pure(4.0), Gaussian(5.0)))
    scaled = Composed((Repeated(Composed((Exponential(2.0), Laplace(4.0))), 3), Pure(2.0), Gaussian(10.0)))
    assert tree.scaled(2.0) == scaled
    assert PoissonGaussian(1.0, 0.5, "zero-out").scaled(3.0) == PoissonGaussian(3.0, 0.5, "zero-out")
    assert Pure(1.0).scaled(0.0) == Pure(math.inf)


def test_events_of_unknown_type_have_no_price():
    class Unknown:
        kind = "unknown"

        def scaled(self, factor):
            return self

        def to_dict(self):
            return {"kind": self.kind}

    with pytest.raises(ValueError, match="Unknown"):
        compose(Unknown())
