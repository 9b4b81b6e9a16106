"""What a fit promises about its own randomness."""

import numpy as np
import pytest

from dpglm import LogisticRegression


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize("seed", [7, np.random.RandomState(7)], ids=["integer", "RandomState"])
def test_a_seeded_fit_says_that_it_is_not_private_and_another_that_it_is(seed):
    X, y = np.zeros((30, 2)), np.arange(30) % 2
    seeded = LogisticRegression(1.0, classes=[0, 1], random_state=seed).fit(X, y).privacy_
    assert not seeded.secure and str(seeded).startswith("NOT PRIVATE")
    keyed = LogisticRegression(1.0, classes=[0, 1]).fit(X, y).privacy_
    assert keyed.secure and "NOT PRIVATE" not in str(keyed)
