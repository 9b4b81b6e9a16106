"""Events are values: validated, hashable, scalable and exactly serialisable."""

import json
import math

import numpy as np
import pytest

from dpglm.accounting import compose, event_from_dict, events

EVENTS = [
    events.Gaussian(0.1 + 0.2),
    events.Gaussian(0.0),
    events.Laplace(3.3),
    events.Exponential(1e-3),
    events.PoissonGaussian(1.1, 0.01, "zero-out"),
    events.PoissonGaussian(1.1, 1.0, "replace-one"),
    events.Pure(0.7),
    events.Pure(math.inf),
    events.Imprecision(2.0**-400),
    events.Repeated(events.Composed((events.Exponential(2.0), events.Gaussian(1.0))), 1_000_000),
    events.Composed(()),
    events.Composed(
        (events.Gaussian(1.0), events.Repeated(events.Laplace(2.0), 3), events.Composed((events.Pure(1.0),)))
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_json_round_trip_is_exact(event):
    text = json.dumps(event.to_dict(), allow_nan=False)
    again = event_from_dict(json.loads(text))
    assert again == event
    assert hash(again) == hash(event)
    assert isinstance(event, events.Event)


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
        (lambda: events.Gaussian(-1.0), "noise"),
        (lambda: events.Gaussian(math.nan), "noise"),
        (lambda: events.Gaussian(math.inf), "noise"),
        (lambda: events.Laplace(-1.0), "noise"),
        (lambda: events.Exponential(-1.0), "noise"),
        (lambda: events.Pure(-0.1), "epsilon"),
        (lambda: events.Pure(math.nan), "epsilon"),
        (lambda: events.PoissonGaussian(1.0, 0.0, "zero-out"), "rate"),
        (lambda: events.PoissonGaussian(1.0, 1.1, "zero-out"), "rate"),
        (lambda: events.PoissonGaussian(1.0, 0.5, "add-remove"), "neighbours"),
        (lambda: events.Repeated(events.Gaussian(1.0), 0), "count"),
        (lambda: events.Repeated(events.Gaussian(1.0), 1.5), "count"),
        (lambda: events.Repeated("gaussian", 1), "event"),
        (lambda: events.Gaussian("1"), "noise"),
        (lambda: events.Gaussian(True), "noise"),
        (lambda: events.Imprecision(None), "distance"),
        (lambda: events.Pure("0.1"), "epsilon"),
        (lambda: events.ObjectivePerturbation(1.0, -1.0, "any", 1.0, "zero-out"), "curvature"),
        (lambda: events.ObjectivePerturbation(1.0, 0.1, "steep", 1.0, "zero-out"), "slopes"),
        (lambda: events.ObjectivePerturbation(1.0, 0.1, "any", "1", "zero-out"), "reach"),
        (lambda: events.Gaussian(1.0).scaled("2"), "factor"),
        (lambda: events.Composed([events.Gaussian(1.0)]), "events"),
        (lambda: events.Gaussian(1.0).scaled(-1.0), "factor"),
    ],
)
def test_a_wrong_argument_is_named(build, name):
    with pytest.raises(ValueError, match=name):
        build()


def test_numpy_scalars_become_python_values():
    given = [
        events.Gaussian(np.float32(0.5)),
        events.Pure(np.int64(2)),
        events.Repeated(events.Laplace(np.float64(1.0)), np.int64(3)),
    ]
    again = [event_from_dict(json.loads(json.dumps(event.to_dict()))) for event in given]
    assert again == given and type(given[0].noise) is type(given[1].epsilon) is float
    assert type(given[2].count) is int


def test_scaling_multiplies_all_noise():
    tree = events.Composed(
        (
            events.Repeated(events.Composed((events.Exponential(1.0), events.Laplace(2.0))), 3),
            events.Pure(4.0),
            events.Gaussian(5.0),
        )
    )
    scaled = events.Composed(
        (
            events.Repeated(events.Composed((events.Exponential(2.0), events.Laplace(4.0))), 3),
            events.Pure(2.0),
            events.Gaussian(10.0),
        )
    )
    assert tree.scaled(2.0) == scaled
    one, three = (events.PoissonGaussian(noise, 0.5, "zero-out") for noise in (1.0, 3.0))
    assert one.scaled(3.0) == three
    assert events.Pure(1.0).scaled(0.0) == events.Pure(math.inf)


def test_events_of_unknown_type_have_no_price():
    class Unknown:
        kind = "unknown"

        def scaled(self, factor):
            return self

        def to_dict(self):
            return {"kind": self.kind}

    with pytest.raises(ValueError, match="Unknown"):
        compose(Unknown())
