"""What a loss says of itself: who inherits it, and how a false statement is noticed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dpglm import testing
from dpglm.losses import (
    LOSSES,
    Hinge,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Poisson,
    SmoothedHinge,
    Squared,
    Tweedie,
)
from dpglm.testing import check_loss_form

CONSTANTS = {"lipschitz": lambda self, target=None: 2.0, "smoothness": lambda self: 0.5}
CHANGES = {
    "derivative": lambda self, z, y: -y * np.exp(-y * z),
    "value": lambda self, z, y: np.exp(-y * z),
    "curvature": lambda self, z, y: np.exp(-y * z),
    "form_parameter": 3.0,
    "mean": lambda self, z: 2 * z,
    "_helper": lambda self, z: z,
}


def told(loss):
    """What a loss says of itself, with its functions as those of the class that defines them."""
    cls = type(loss)
    return (
        cls.form, cls.slopes, cls.curvature_lipschitz, cls.largest_curvature, cls.conjugate, cls.dual_step
    )  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("parent", LOSSES, ids=lambda parent: parent.name)
def test_a_class_that_changes_a_loss_inherits_nothing_of_what_that_loss_says(parent, change):
    inside = type("Changed", (parent,), {change: CHANGES[change], **CONSTANTS})()
    mixin = type("Mixin", (), {change: CHANGES[change]})
    outside = type("Changed", (mixin, parent), dict(CONSTANTS))()
    below = type("Below", (type(inside),), {"name": "below"})()
    for loss in (inside, outside, below):
        assert told(loss) == (
            None, "any", Loss.curvature_lipschitz, Loss.largest_curvature, Loss.conjugate, Loss.dual_step
        )  # fmt: skip


@pytest.mark.parametrize("parent", [NegativeBinomial, Tweedie], ids=lambda parent: parent.name)
@pytest.mark.parametrize("change", [*CHANGES, "_slope", "_value", "_bend"])
def test_a_class_that_changes_a_loss_of_a_family_inherits_nothing_of_what_the_family_says(parent, change):
    changed = {change: CHANGES.get(change, lambda self, z, y: 3 * z)}
    with pytest.raises(TypeError, match="lipschitz"):
        type("Changed", (parent,), changed)()
    mixin = type("Mixin", (), changed)
    loss = type("Changed", (mixin, parent), dict(CONSTANTS))()
    assert (loss.slope_unit(), loss.joint_constant()) == (2.0, math.inf)
    assert type(loss).slope_at_middle is Loss.slope_at_middle


def test_a_class_that_changes_a_loss_must_say_its_constants():
    for name in ("lipschitz", "smoothness"):
        rest = {other: function for other, function in CONSTANTS.items() if other != name}
        with pytest.raises(TypeError, match=name):
            type("Changed", (Logistic,), {"derivative": CHANGES["derivative"], **rest})()


def test_a_field_that_is_new_changes_a_loss():
    @dataclass(frozen=True)
    class Weighted(Logistic):
        weight: float = 3.0

        lipschitz = CONSTANTS["lipschitz"]
        smoothness = CONSTANTS["smoothness"]

    assert Weighted().form is None and Weighted().slopes == "any"


def test_a_class_that_changes_nothing_keeps_what_its_loss_says():
    @dataclass(frozen=True)
    class Narrow(SmoothedHinge):
        name: ClassVar[str] = "narrow"
        width: float = 0.1

    assert told(Narrow()) == told(SmoothedHinge())
    assert (Narrow().form_parameter, Narrow().smoothness()) == (0.1, pytest.approx(10.0))
    for parent in LOSSES:
        renamed = type("Renamed", (parent,), {"name": "renamed", "link": lambda self, mean: 0.0})()
        assert told(renamed) == told(parent())


def test_a_statement_made_anew_counts_and_changes_no_other():
    tight = type("Tight", (Logistic,), {"curvature_lipschitz": lambda self: 0.2})()
    assert tight.form == 1 and tight.slopes == "logistic" and tight.curvature_lipschitz() == 0.2
    doubled = type("Doubled", (Logistic,), {"derivative": CHANGES["derivative"], "form": 1, **CONSTANTS})()
    assert doubled.form == 1 and doubled.slopes == "any"


@pytest.mark.parametrize("parent", LOSSES, ids=lambda parent: parent.name)
def test_a_dual_step_of_its_own_is_not_that_of_the_kernels(parent):
    loss = type("Own", (parent,), {"dual_step": lambda self, alpha, z, y, weight: 0 * z})()
    assert loss.form is None and loss.slopes == parent.slopes


FALSE = {
    "lipschitz": (Logistic, lambda self, target=None: 0.9),
    "lipschitz of none": (Squared, lambda self, target=None: 10.0),
    "smoothness": (Logistic, lambda self: 0.2),
    "smoothness at a kink": (Hinge, lambda self: 1.0),
    "curvature_lipschitz": (Logistic, lambda self: 0.05),
    "curvature_lipschitz at a jump": (Huber, lambda self: 1.0),
    "joint_constant": (Logistic, lambda self: 0.02),
    "joint_constant of a jump": (Huber, lambda self: 0.25),
    "largest_curvature": (Poisson, lambda self, z, other: self.mean(z)),
    "slopes": (Huber, "signed"),
    "slopes of a hinge": (SmoothedHinge, "logistic"),
    "slopes at a kink": (Hinge, "logistic"),
}


@pytest.mark.parametrize("case", FALSE)
def test_a_false_statement_is_noticed(case):
    parent, statement = FALSE[case]
    name = case.split()[0]
    check_loss_form(parent())
    with pytest.raises(AssertionError, match=f"says of its {name} "):
        check_loss_form(type("False", (parent,), {name: statement, "form": None})())


@dataclass(frozen=True)
class LogCosh(Loss):
    """log(cosh(z - y)), with a code that the kernels do not have."""

    name: ClassVar[str] = "log_cosh"
    kind: ClassVar[str] = "regression"
    form: ClassVar[int | None] = 99

    def value(self, z, y):
        return np.logaddexp(z - y, y - z) - math.log(2)

    def derivative(self, z, y):
        return np.tanh(z - y)

    def curvature(self, z, y):
        return 1 - np.square(np.tanh(z - y))

    def lipschitz(self, target=None):
        return 1.0

    def smoothness(self):
        return 1.0

    def curvature_lipschitz(self):
        return 4 / math.sqrt(27)


def bent(slope):
    """The curvature that a logistic loss of such a slope has."""
    return np.abs(slope) * (1 - np.abs(slope))


@pytest.fixture
def compiled(monkeypatch):
    """Puts log-cosh into the functions that the contract compares: all right but for those that are named."""

    def put(**wrong):
        loss = LogCosh()
        right = {
            "slopes_and_curvatures": lambda form, z, y: (np.tanh(z - y), 1 - np.tanh(z - y) ** 2),
            "dual_steps": lambda form, *rest: loss.dual_step(*rest),
        }
        for name, function in (right | wrong).items():
            monkeypatch.setattr(testing, name, function)
        return loss

    return put


def test_a_loss_with_a_right_compiled_form_keeps_the_contract(compiled):
    check_loss_form(compiled())


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"slopes_and_curvatures": lambda form, z, y: (np.tanh(z), 1 - np.tanh(z - y) ** 2)}, "slope"),
        ({"slopes_and_curvatures": lambda form, z, y: (np.tanh(z - y), bent(np.tanh(z - y)))}, "curvature"),
        ({"slopes_and_curvatures": lambda form, z, y: (np.tanh(z - y), 0 * z)}, "curvature"),
        ({"dual_steps": lambda form, alpha, z, y, weight: 0 * z}, "dual step"),
    ],
)
def test_a_wrong_part_of_a_compiled_form_is_noticed(compiled, wrong, what):
    with pytest.raises(AssertionError, match=f"compiled {what} differs"):
        check_loss_form(compiled(**wrong))
