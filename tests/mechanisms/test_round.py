"""A round of select-then-release: its price, its law and its likelihood."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from dpglm import Budget, Neighbours, accounting
from dpglm.accounting import compose
from dpglm.audit import Claim, audit_function
from dpglm.mechanisms import Exponential, Gaussian, Laplace, LaplaceNoisyMax, LinearTerm, Randomness, Round
from dpglm.mechanisms.randomness import GAUSSIAN_DISTANCE, GUMBEL_DISTANCE
from dpglm.plan.release import Release

KINDS = [
    Round(Exponential(2.0), Gaussian(5.0)),
    Round(Exponential(3.0), Laplace(1.5)),
    Round(LaplaceNoisyMax(2.0), Gaussian(1.0)),
]
ANSWER = np.array([1.0, 0.5, -2.0]), np.array([10.0, -20.0, 30.0])
SENSITIVITY = 0.5, np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_its_event_is_that_of_both_in_this_order_and_scales_with_the_noise(mechanism):
    parts = mechanism.selection.event, mechanism.additive.event
    assert mechanism.event == accounting.Composed(parts)
    assert mechanism.scaled(3.0).event == mechanism.event.scaled(3.0)
    assert mechanism.scaled(3.0) == Round(mechanism.selection.scaled(3.0), mechanism.additive.scaled(3.0))


def test_rounds_cost_less_than_their_parts_in_any_order():
    mechanism = KINDS[0]
    parts = mechanism.selection.event, mechanism.additive.event
    apart = accounting.Composed(tuple(accounting.Repeated(event, 10) for event in parts))
    rounds = accounting.Repeated(mechanism.event, 10)
    assert compose(rounds).delta(2.0) < compose(apart).delta(2.0)


def test_its_imprecision_is_that_of_a_selection_and_of_one_number():
    mechanism = Round(Exponential(2.0), Gaussian(5.0))
    assert mechanism.imprecision(9) == {
        accounting.Imprecision(GUMBEL_DISTANCE): 9,
        accounting.Imprecision(GAUSSIAN_DISTANCE): 1,
    }
    assert mechanism.entries((np.zeros(9), np.zeros(9))) == 9
    assert not Round(LaplaceNoisyMax(2.0), Laplace(5.0)).imprecision(9)
    assert not mechanism.scaled(0.0).imprecision(9)


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_it_draws_what_its_parts_draw_one_after_the_other(mechanism):
    here, there = Randomness(1), Randomness(1)
    for _ in range(50):
        j, value = mechanism.release(ANSWER, SENSITIVITY, here)
        assert j == mechanism.selection.release(ANSWER[0], SENSITIVITY[0], there)
        assert value == mechanism.additive.release(ANSWER[1][j], SENSITIVITY[1][j], there)


def test_the_selection_has_its_law_and_the_value_the_noise_of_its_own_sensitivity():
    mechanism, randomness = KINDS[0], Randomness(3)
    drawn = np.array([mechanism.release(ANSWER, SENSITIVITY, randomness) for _ in range(20_000)])
    chosen, values = drawn[:, 0].astype(int), drawn[:, 1]
    chances = mechanism.selection.probabilities(ANSWER[0], SENSITIVITY[0])
    assert stats.chisquare(np.bincount(chosen, minlength=3), 20_000 * chances).pvalue > 1e-6
    for j in range(3):
        deviations = (values[chosen == j] - ANSWER[1][j]) / (5.0 * SENSITIVITY[1][j])
        assert stats.kstest(deviations, "norm").pvalue > 1e-6


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_its_log_likelihood_is_the_sum_of_both(mechanism):
    for j in range(3):
        expected = mechanism.selection.log_likelihood(j, ANSWER[0], 0.5)
        expected += mechanism.additive.log_likelihood(7.0, ANSWER[1][j], SENSITIVITY[1][j])
        assert mechanism.log_likelihood((j, 7.0), ANSWER, SENSITIVITY) == expected


@pytest.mark.parametrize("mechanism", KINDS[:2], ids=repr)
def test_its_likelihood_ratio_shows_most_of_its_price_and_no_more(mechanism):
    """At the worst cases, where answers are at distance 1 in every entry, the audit does not refute it."""
    budget, randomness = Budget(1.0, 0.01), Randomness(0)
    fitted = mechanism.scaled(accounting.calibrate(mechanism.event, budget.epsilon, budget.delta))
    claim = Claim(compose(fitted.event).epsilon(budget.delta), budget.delta, fitted.event)
    lower = 0.0
    for answers in fitted.worst_cases().values():
        unit = 1.0, np.ones(len(answers[0][0]))

        def run(second, answers=answers, unit=unit):
            released = fitted.release(answers[second], unit, randomness)
            return np.subtract(*(fitted.log_likelihood(released, answer, unit) for answer in answers))

        (finding,) = audit_function(run, claim, runs=2_000).findings
        assert not finding.violated
        lower = max(lower, finding.lower, finding.fitted)
    assert lower > 0.6 * budget.epsilon


def test_without_noise_it_gives_the_largest_and_its_value():
    mechanism = Round(Exponential(0.0), Gaussian(0.0))
    assert mechanism.release(ANSWER, SENSITIVITY, Randomness(0)) == (0, 10.0)
    assert math.isinf(compose(mechanism.event).epsilon(0.1))


@pytest.mark.parametrize("part", range(2))
def test_noise_that_is_missing_in_one_part_is_missing_in_the_round(part):
    parts = [Exponential(1.0), Gaussian(1.0)]
    assert Round(*parts).noise > 0
    parts[part] = parts[part].scaled(0.0)
    assert Round(*parts).noise == 0


@pytest.mark.parametrize(
    ("selection", "additive", "word"),
    [
        (Gaussian(1.0), Gaussian(1.0), "selection"),
        (Exponential(1.0), Exponential(1.0), "additive"),
        (Exponential(1.0), LinearTerm(1.0, 0.1, "any", 1.0, "zero-out"), "additive"),
        (Exponential(1.0), KINDS[0], "additive"),
        (KINDS[0], Gaussian(1.0), "selection"),
        (Exponential(1.0), 1.0, "additive"),
    ],
)
def test_only_a_selection_and_a_noisy_number_make_a_round(selection, additive, word):
    with pytest.raises(ValueError, match=word):
        Round(selection, additive)


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_a_stored_round_is_read_back_and_holds_both_mechanisms(mechanism):
    release = Release("scores", mechanism, 5, ("1", "C_j"), entries=7)
    stored = json.loads(json.dumps(release.to_dict()))
    assert Release.from_dict(stored) == release
    assert stored["mechanism"] == "Round" and "noise" not in stored
    assert stored["parameters"]["selection"]["noise"] == mechanism.selection.noise
    assert release.event(Neighbours.ZERO_OUT) == mechanism.event


def test_a_round_is_told_as_two_lines_of_which_the_second_follows():
    release = Release("scores", KINDS[0], 5, ("1", "C_j"), entries=7)
    first, second = release.stated(fits=2)
    assert (first["query"], first["mechanism"], first["noise"]) == ("scores", "Exponential", 2.0)
    assert (first["sensitivity"], first["entries"], first["follows"]) == ("1", 7, False)
    assert (second["query"], second["mechanism"], second["noise"]) == (Round.value, "Gaussian", 5.0)
    assert (second["sensitivity"], second["entries"], second["follows"]) == ("C_j", 1, True)
    assert first["count"] == second["count"] == 10
