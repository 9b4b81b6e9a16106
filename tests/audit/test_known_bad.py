"""Every known way to promise too much is caught, and done right it is not."""

import time

import pytest

from dpglm.solvers import DualCoordinateDescent, GradientDescent

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
        known_bad.search_that_pays_for_one_try,
        known_bad.one_key_for_all_classes,
        known_bad.targets_kept_by_the_solver,
        known_bad.targets_kept_by_a_registered_solver,
        known_bad.edge_of_a_block_read_again,
    ],
    ids=lambda fixture: fixture.__name__,
)
def test_a_mechanism_is_caught_done_wrong_and_passes_done_right(fixture):
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
        known_bad.one_noise_for_all_entries,
        known_bad.number_of_steps_from_data,
        known_bad.gap_from_data,
        known_bad.iterations_from_data,
        known_bad.public_choices_from_data,
        known_bad.question_from_data,
        known_bad.noise_scaled_by_the_data,
        known_bad.price_of_a_record_for_persons,
    ],
    ids=lambda fixture: fixture.__name__,
)
def test_a_usual_mistake_is_caught(fixture, monkeypatch):
    started = time.process_time()
    report = fixture(monkeypatch) if "monkeypatch" in fixture.__code__.co_varnames else fixture()
    assert report.violated
    assert time.process_time() - started < SECONDS


def right_and_wrong(*solvers):
    """Each solver done wrong; the first also done right, as all are in the audit of the registry."""
    cases = [(solver, False) for solver in solvers] + [(solvers[0], True)]
    return pytest.mark.parametrize(
        ("solver", "right"),
        cases,
        ids=[f"{s.__name__}, {'right' if right else 'wrong'}" for s, right in cases],
    )


@right_and_wrong(GradientDescent, DualCoordinateDescent)
def test_batches_of_fixed_size_are_caught_where_bystanders_contribute(solver, right, monkeypatch):
    assert known_bad.batches_of_fixed_size(solver, right, monkeypatch).violated is not right


@right_and_wrong(GradientDescent, DualCoordinateDescent)
def test_a_clip_without_the_constant_feature_is_caught_where_there_is_an_intercept(
    solver, right, monkeypatch
):
    report = known_bad.clip_without_the_constant_feature(solver, right, monkeypatch)
    assert report.violated is not right


@pytest.mark.parametrize(
    "fixture", [known_bad.eight_bit_key, known_bad.sixteen_bit_key], ids=lambda fixture: fixture.__name__
)
def test_a_short_key_is_recognised_by_outputs_that_repeat_and_a_long_one_is_not_accused(fixture):
    findings = fixture().findings
    assert any(finding.violated and "seen before" in finding.how for finding in findings)
    assert not fixture(right=True).violated


@pytest.mark.parametrize("place", ["solver", "problem", "loss", "plan"])
def test_targets_are_found_wherever_a_solver_leaves_them(place):
    report = known_bad.targets_kept_by_a_registered_solver(place=place)
    (replay,) = (finding for finding in report.findings if finding.seen == "replay")
    assert replay.violated


def test_a_promise_of_epsilon_alone_is_enough_to_catch_shuffled_batches():
    finding = known_bad.shuffled_batches().findings[0]
    assert finding.lower > finding.epsilon
