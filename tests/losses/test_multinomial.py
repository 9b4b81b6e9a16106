"""The multinomial loss: a function of one prediction for each class."""

import math

import numpy as np
import pytest
from sklearn._loss.loss import HalfMultinomialLoss

from dpglm.losses import Multinomial

CLASSES = (2, 3, 7)
EVERY_NUMBER = pytest.mark.parametrize("classes", CLASSES)


def points(classes, count=400):
    rng = np.random.default_rng(classes)
    z = rng.standard_normal((count, classes)) * 10 ** rng.uniform(-3, 3, (count, 1))
    return z, rng.integers(classes, size=count).astype(float)


@EVERY_NUMBER
def test_value_and_derivative_are_those_of_scikit_learn(classes):
    z, y = points(classes)
    loss, reference = Multinomial(classes), HalfMultinomialLoss(n_classes=classes)
    value, slopes = reference.loss_gradient(y_true=y, raw_prediction=z)
    assert np.allclose(loss.value(z, y), value, rtol=1e-12, atol=1e-12)
    assert np.allclose(loss.derivative(z, y), slopes, rtol=1e-12, atol=1e-12)


@EVERY_NUMBER
def test_slopes_have_norm_at_most_the_square_root_of_2_which_is_approached_and_sum_0(classes):
    z, y = points(classes)
    slopes = Multinomial(classes).derivative(z, y)
    norms = np.linalg.norm(slopes, axis=1)
    bound = Multinomial(classes).lipschitz()
    assert bound == math.sqrt(2) and norms.max() <= bound * (1 + 1e-15) and norms.max() > 0.999 * bound
    assert np.allclose(slopes.sum(axis=1), 0, atol=1e-15)


@EVERY_NUMBER
def test_smoothness_is_the_largest_eigenvalue_of_the_hessian(classes):
    rng = np.random.default_rng(0)
    loss, largest = Multinomial(classes), 0.0
    even = np.full(classes, -800.0)
    even[:2] = 0.0
    for z in (even, *(rng.standard_normal((50, classes)) * 3)):
        share = loss.derivative(z[None], np.array([0.0]))[0] + np.eye(classes)[0]
        hessian = np.diag(share) - np.outer(share, share)
        assert np.allclose(np.diag(hessian), loss.curvature(z[None], np.array([0.0]))[0], atol=1e-15)
        largest = max(largest, float(np.linalg.eigvalsh(hessian)[-1]))
    assert largest <= loss.smoothness() * (1 + 1e-12) and largest > 0.999 * loss.smoothness()


@EVERY_NUMBER
def test_no_value_falls_below_that_of_equal_predictions_by_more_than_it_says(classes):
    z, y = points(classes)
    loss = Multinomial(classes)
    assert np.all(loss.value(0 * z, y) - loss.value(z, y) <= loss.fall())


def test_huge_predictions_stay_finite():
    z = np.array([[1e100, -1e100, 0.0], [800.0, 0.0, -800.0]])
    for function in (Multinomial(3).value, Multinomial(3).derivative, Multinomial(3).curvature):
        assert np.isfinite(function(z, np.array([1.0, 2.0]))).all()


@pytest.mark.parametrize("classes", [1, 0, 2.5, "two", math.nan])
def test_a_number_of_classes_that_is_none_is_refused(classes):
    with pytest.raises(ValueError, match="classes must be"):
        Multinomial(classes)
