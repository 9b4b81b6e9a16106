import numpy as np
import pytest

from dpglm.accounting import NegativeBinomial, PoissonTries, tries_of
from dpglm.mechanisms import Randomness
from dpglm.mechanisms.randomness import draw_tries


@pytest.mark.parametrize(
    "tries",
    [
        tries_of("logarithmic", 4.0),
        tries_of("geometric", 3.0),
        PoissonTries(2.5),
        NegativeBinomial(-0.5, 0.1),
    ],
    ids=lambda tries: tries.words,
)
def test_numbers_of_tries_have_their_law(tries):
    count, chances = 3_000, tries.probabilities()
    randomness = Randomness(5)
    drawn = np.bincount([draw_tries(tries, randomness) for _ in range(count)], minlength=4)
    for k in range(4):
        expected, deviation = count * chances[k], np.sqrt(count * chances[k] * (1 - chances[k]))
        assert abs(drawn[k] - expected) <= 5 * deviation + 1e-9
