"""Every known way to promise too much is caught, and done right it is not."""

import time

import pytest

from . import known_bad

SECONDS = 60


@pytest.mark.parametrize(
    "fixture",
    [
        known_bad.laplace_noisy_max,
        known_bad.laplace_noisy_max_sampled,
        known_bad.frank_wolfe_with_a_free_sign,
        known_bad.visible_dual_variables,
        known_bad.shuffled_batches,
    ],
    ids=lambda fixture: fixture.__name__,
)
def test_a_mechanism_from_the_papers_is_caught_as_printed_and_passes_done_right(fixture):
    started = time.process_time()
    assert fixture().violated
    assert time.process_time() - started < SECONDS
    assert not fixture(right=True).violated


@pytest.mark.parametrize(
    "fixture",
    [
        known_bad.noise_forgotten_on_one_coordinate,
        known_bad.seed_reused_in_every_release,
        known_bad.seed_reused_in_every_fit,
        known_bad.data_dependent_scaling,
        known_bad.clip_after_average,
        known_bad.sensitivity_of_a_mean_for_a_sum,
    ],
    ids=lambda fixture: fixture.__name__,
)
def test_a_usual_mistake_is_caught(fixture, monkeypatch):
    started = time.process_time()
    report = fixture(monkeypatch) if "monkeypatch" in fixture.__code__.co_varnames else fixture()
    assert report.violated
    assert time.process_time() - started < SECONDS


def test_a_promise_of_epsilon_alone_is_enough_to_catch_shuffled_batches():
    finding = known_bad.shuffled_batches().findings[0]
    assert finding.lower > finding.epsilon
