"""The auditor on dpglm itself."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from dpglm import Bounds, Budget, Lasso, LogisticRegression, Neighbours
from dpglm.accounting import compose
from dpglm.audit import (
    Claim,
    Finding,
    Report,
    audit,
    audit_function,
    audit_outputs,
    audit_probabilities,
    audit_registry,
    examine,
)
from dpglm.audit.cases import learning_targets
from dpglm.audit.registry import exact_findings, mechanism_targets, solver_targets
from dpglm.audit.targets import FitTarget, TranscriptTarget, worst_tables
from dpglm.cli import app
from dpglm.curator import NoisyReleases
from dpglm.mechanisms import MECHANISMS, Exponential, LaplaceNoisyMax, LinearTerm, Randomness
from dpglm.mechanisms.sampling import Poisson
from dpglm.plan import Plan
from dpglm.queries import (
    LEARNING,
    QUERIES,
    CellCounts,
    CellSums,
    ClippedGradient,
    Gains,
    HeldOutScores,
    RecordCount,
    ScoreSums,
)
from dpglm.queries.base import Draws
from dpglm.solvers import (
    SOLVERS,
    CoordinateDescent,
    DualCoordinateDescent,
    GradientDescent,
    Result,
)

BUDGET = Budget(1.0, 0.01)
SOLVER_TARGETS = [[*solver_targets(solver, BUDGET)] for solver in SOLVERS.values()]
TARGETS = [target for targets in SOLVER_TARGETS for target in targets]
TARGETS += [target for mechanism in MECHANISMS for target in mechanism_targets(mechanism, BUDGET)]
FIRST = [TARGETS.index(targets[0]) for targets in SOLVER_TARGETS]


pytestmark = pytest.mark.usefixtures("minimisers_are_found_once")


def named(target):
    return f"{target.subject}, {target.neighbours}"


def runs_of(target):
    """Many releases of mechanisms, which show how large noise is; fewer runs of solvers that use it.

    The first case of a solver must show half of its claim. The others show that releases follow from the
    table alone by their replays, and noise that is missing; ``make audit`` runs each two thousand times. A
    random linear term has a minimiser of its own in every run: half of the runs will do.
    """
    if not isinstance(target, TranscriptTarget):
        return 2_000 // target.repeats
    slow = any(isinstance(release.mechanism, LinearTerm) for release in target.plan.releases)
    first = any(target is targets[0] for targets in SOLVER_TARGETS)
    return (300 if first else 30) // (1 + slow)


@pytest.fixture(scope="module")
def examined(request):
    """The report about a target, and the likelihood ratios of its runs on both tables.

    Of this scope, so that tests of one target follow each other and share its runs.
    """
    target, ratios = TARGETS[request.param], ([], [])

    def run(second, randomness):
        row = type(target).run(target, second, randomness)
        ratios[second].append(row[0])
        return row

    with pytest.MonkeyPatch.context() as patch:
        if isinstance(target, TranscriptTarget):
            patch.setattr(target, "run", run)
        return examine(target, runs_of(target), random_state=11), np.array(ratios)


def shown(ratios, epsilon):
    """The delta at an epsilon that log-likelihood ratios on the first table show, and its standard error."""
    parts = np.maximum(1 - np.exp(epsilon - ratios), 0.0)
    return parts.mean(), parts.std() / np.sqrt(len(parts))


@pytest.mark.parametrize(
    "examined", range(len(TARGETS)), ids=[named(target) for target in TARGETS], indirect=True
)
def test_every_registered_solver_and_mechanism_keeps_its_claim(examined):
    report, _ = examined
    assert not report.violated, str(report)


@pytest.mark.parametrize("examined", FIRST, ids=SOLVERS, indirect=True)
def test_the_transcript_of_every_solver_shows_half_of_the_claim(examined):
    """By its likelihood ratios, which need fewer runs than a bound from counts; most show nine tenths."""
    (finding,) = (finding for finding in examined[0].findings if finding.seen == "transcript")
    delta, error = shown(examined[1][0], finding.epsilon / 2)
    assert delta - 3 * error > finding.delta


def test_every_query_is_released_by_some_audited_solver():
    released = {
        release.query.split(", round")[0]
        for target in TARGETS
        if isinstance(target, TranscriptTarget)
        for release in target.plan.releases
    }
    released |= {ScoreSums.name, CellSums.name}  # tests/evaluation/test_evaluate.py, by the names of metrics
    released |= {CellCounts.name}  # tests/evaluation/test_check.py
    released |= {Gains.name, HeldOutScores.name}  # test_search.py
    assert released == {query.name for query in QUERIES}


def test_every_query_that_learns_is_audited_and_replayed():
    targets = list(learning_targets(BUDGET))
    learnt = {release.query for target in targets for release in target.plan.learning}
    learnt |= {RecordCount.name}  # tests/estimators/test_add_remove.py, in whole fits
    assert learnt == {query.name for query in LEARNING}
    for target in targets:
        report = examine(target, 4, random_state=1)
        assert not report.violated and len(report.findings) == 2


@pytest.mark.parametrize("mechanism", [Exponential, LaplaceNoisyMax])
def test_a_selection_shows_at_least_seven_tenths_of_the_claim_exactly(mechanism):
    ratios = [finding.ratio for finding in exact_findings(mechanism, BUDGET).findings]
    assert 0.7 <= max(ratios) <= 1.0


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_the_claim_of_a_plan_is_what_its_event_costs(delta):
    target = TranscriptTarget.of(GradientDescent.audit_cases()[0], Budget(1.0, delta), Neighbours.ZERO_OUT)
    assert target.claim.delta == delta
    assert compose(target.claim.event).delta(target.claim.epsilon) <= delta


TRANSCRIPTS = [k for k, target in enumerate(TARGETS) if isinstance(target, TranscriptTarget)]


@pytest.mark.parametrize("examined", TRANSCRIPTS, ids=[named(TARGETS[k]) for k in TRANSCRIPTS], indirect=True)
def test_likelihood_ratios_of_transcripts_are_ratios_and_show_no_more_than_the_claim(examined):
    """They have mean one under the second table, and so have their inverses under the first."""
    report, (first, second) = examined
    for ratios in (np.exp(second), np.exp(-first)):
        assert abs(ratios.mean() - 1) < 6 * ratios.std() / np.sqrt(len(ratios))
        assert ratios.std() > 0.1
    claim = report.findings[0]
    for ratios in (first, -second):
        delta, error = shown(ratios, claim.epsilon)
        assert delta - 6 * error <= claim.delta


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_every_solver_has_a_case_with_an_intercept_and_bystanders_that_contribute(solver):
    for case in solver.audit_cases():
        X, y = case.bystanders
        (row, first), (_, second) = case.first, case.second
        # Opposed in every coordinate, the constant feature included, and all bystanders like the second.
        if case.problem.fit_intercept and first == -second and (row == X).all() and (y == second).all():
            assert 0 < np.linalg.norm(row) < case.problem.constant(len(row))
            return
    raise AssertionError(f"{solver.__name__} has no such case")


@pytest.mark.parametrize(
    "solver", [GradientDescent, DualCoordinateDescent], ids=lambda solver: solver.__name__
)
def test_the_worst_cases_of_sampled_solvers_include_secret_batches_with_and_without_bystanders(solver):
    contributing = {
        bool(target.case.bystanders[0].any())
        for target in solver_targets(solver, BUDGET)
        for release in target.plan.releases
        if isinstance(release.sampling, Poisson)
    }
    assert contributing == {True, False}


@dataclass(frozen=True)
class Peeking(GradientDescent):
    """Reaches around the curator: the answer depends on a record in its last digits only."""

    def run(self, plan, problem, curator):
        result = super().run(plan, problem, curator)
        return Result(result.w + 1e-12 * curator._records.block.dot(np.ones(len(result.w)))[0], result.steps)


def test_a_solver_that_reaches_around_the_curator_is_caught_by_replay():
    case = GradientDescent.audit_cases()[0]
    peeking = type(case)(
        Peeking(steps=2, clip=0.1, step_size=0.1), case.problem, case.bystanders, case.first, case.second
    )
    report = examine(TranscriptTarget.of(peeking, BUDGET, Neighbours.REPLACE_ONE), runs=20, random_state=0)
    assert [finding.verdict for finding in report.findings if finding.seen == "replay"] == ["DIFFERS"]


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(classes=[0, 1], neighbours="zero-out"),
        LogisticRegression(classes=["a", "b", "c"]),
        LogisticRegression(classes=[-1, 1], solver=CoordinateDescent(steps=5)),
        Lasso(alpha=0.01, bounds=Bounds(feature=[1.0, 8.0, 2.0], target=(0, 10))),
    ],
    ids=["zero-out", "three classes", "coordinate descent", "auto for unequal columns"],
)
def test_estimators_are_audited_without_being_told_anything(estimator):
    report = audit(estimator, runs=60, random_state=1)
    assert [finding.seen for finding in report.findings] == ["model", "transcript", "replay"]
    assert not report.violated, str(report)
    assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_an_audit_takes_a_table_of_yours_dense_or_sparse(layout):
    X, y = layout(np.eye(6, 3)), np.resize([-1, 1], 6)
    for neighbours, second in (("replace-one", ([0, 0, 1.0], -1)), ("zero-out", None)):
        model = LogisticRegression(classes=[-1, 1], neighbours=neighbours, solver=GradientDescent(steps=2))
        report = audit(model, X, y, ([1.0, 0, 0], 1), second, runs=20, random_state=2)
        assert not report.violated and report.findings[0].neighbours == neighbours


@dataclass(frozen=True)
class OneMore(GradientDescent):
    """Releases once more if a record says so."""

    def run(self, plan, problem, curator):
        if curator._records.block.dot(np.ones(2))[0] > 0:
            curator.release(ClippedGradient(problem.loss, plan.clip), plan.releases[0].mechanism, np.zeros(2))
        return super().run(plan, problem, curator)


def test_a_number_of_releases_that_depends_on_a_record_is_caught():
    case = replace(GradientDescent.audit_cases()[0], solver=OneMore(steps=2, clip=0.1, step_size=0.1))
    report = examine(TranscriptTarget.of(case, BUDGET, Neighbours.REPLACE_ONE), runs=20, random_state=0)
    (replay,) = (finding for finding in report.findings if finding.seen == "replay")
    assert replay.violated and "number of releases" in replay.how


def test_noise_missing_from_compiled_blocks_is_caught_though_transcripts_do_not_use_them(monkeypatch):
    def silent(self, mechanism, entries, count=1):
        self.log.add(mechanism, entries, count)
        return Draws(Randomness(0), rounding=0.0)

    monkeypatch.setattr(NoisyReleases, "spend", silent)
    report = examine(next(solver_targets(CoordinateDescent, BUDGET)), runs=200, random_state=0)
    assert [finding.seen for finding in report.findings if finding.violated] == ["model"]


def test_a_plan_that_overspends_is_caught(monkeypatch):
    calibrated = Plan.calibrated

    def quarter(self):
        plan = calibrated(self)
        return replace(plan, releases=tuple(release.scaled(0.1) for release in plan.releases))

    monkeypatch.setattr(Plan, "calibrated", quarter)
    assert examine(next(solver_targets(GradientDescent, BUDGET)), runs=200, random_state=0).violated


class KeepsAScaler(LogisticRegression):
    """Stores things that are not equal to themselves, but tell nothing."""

    def fit(self, X, y):
        self.scaler_, self.missing_, self.table_ = StandardScaler(), float("nan"), sp.eye_array(2)
        return super().fit(X, y)


def test_attributes_that_only_look_different_are_not_accused():
    assert not audit(KeepsAScaler(classes=[-1, 1]), runs=10, random_state=1).violated


class CountsItsFits(LogisticRegression):
    """Writes into objects that its copies would share, but nothing about a record."""

    def __init__(self, *, classes=None, notes=None, solver="auto", random_state=None):
        super().__init__(classes=classes, solver=solver, random_state=random_state)
        self.notes = notes

    def fit(self, X, y):
        self.notes["fits"] = self.notes.get("fits", 0) + 1
        self.notes["noise"] = self.notes["generator"].standard_normal()
        return super().fit(X, y)


def test_fits_share_generators_and_nothing_else():
    notes = {"generator": np.random.default_rng(0)}
    model = CountsItsFits(classes=[-1, 1], notes=notes, solver=GradientDescent(steps=2))
    target = FitTarget(model, worst_tables(model), Claim(1.0, 0.0))
    seen = [target.fitted(False, Randomness(0)).notes for _ in range(3)]
    assert "fits" not in notes and [note["fits"] for note in seen] == [1, 1, 1]
    assert len({note["noise"] for note in seen}) == 3
    assert all(note["generator"] is notes["generator"] for note in seen)


class KeepsAMean(LogisticRegression):
    """Stores a statistic of the records beside the model."""

    def fit(self, X, y):
        self.mean_ = np.nanmean(X)
        return super().fit(X, y)


def test_a_statistic_stored_beside_the_model_is_caught_by_replay():
    report = audit(KeepsAMean(classes=[-1, 1], neighbours="zero-out"), runs=10, random_state=1)
    (replay,) = (finding for finding in report.findings if finding.seen == "replay")
    assert replay.violated and "mean_" in replay.how


class Foreign:
    """An estimator of another library, with Laplace noise on a mean of [0, 1]."""

    def __init__(self, scale):
        self.scale, self.rng = scale, np.random.default_rng(0)

    def fit(self, X, y):
        self.coef_ = X.mean(axis=0) + self.rng.laplace(scale=self.scale, size=X.shape[1])


@pytest.mark.parametrize(("scale", "violated"), [(0.1, False), (0.05, True)])
def test_an_estimator_of_another_library_is_audited_against_the_claim_that_is_given(scale, violated):
    X, y = np.zeros((9, 1)), np.zeros(9)
    report = audit(Foreign(scale), X, y, ([1.0], 0.0), ([0.0], 0.0), epsilon=1.0, runs=4_000)
    assert report.violated is violated


def test_outputs_whose_number_depends_on_the_table_are_told_apart():
    report = audit_function(lambda second: [0.0] * (1 + second), Claim(1.0, 0.0), runs=100)
    assert report.violated


def test_a_seed_of_the_audit_does_not_hide_one_of_the_estimator():
    with pytest.raises(ValueError, match="random_state of its own"):
        audit(LogisticRegression(random_state=0), random_state=1)


def test_an_infinite_claim_is_never_refuted():
    outputs = np.zeros((100, 1)), np.ones((100, 1))
    assert not audit_outputs(*outputs, Claim(math.inf, 0.0)).violated
    assert not audit_outputs(*outputs, Claim(1000.0, 0.0)).violated


def test_what_an_audit_needs_is_asked_for():
    with pytest.raises(ValueError, match="come with X"):
        audit(LogisticRegression(), first=([1.0], 1))
    with pytest.raises(ValueError, match="leave it out"):
        audit(
            LogisticRegression(neighbours="zero-out"), np.eye(3), [1, 1, -1], ([1, 1, 1], 1), ([1, 1, 1], 1)
        )
    with pytest.raises(ValueError, match="view="):
        X, record = np.zeros((4, 1)), ([1.0], 0.0)
        audit(StandardScaler(), X, np.zeros(4), record, epsilon=1.0)
    with pytest.raises(ValueError, match="sum 1"):
        audit_probabilities([0.5, 0.4], [0.5, 0.5], Claim(1.0, 0.0))
    with pytest.raises(ValueError, match="runs must be"):
        audit_registry(["Laplace"], runs=3)
    with pytest.raises(ValueError, match="nothing to audit"):
        audit(LogisticRegression(epsilon=float("inf")))
    with pytest.raises(ValueError, match="replace-one needs"):
        audit(LogisticRegression(), np.zeros((3, 1)), np.ones(3), ([1.0], 1.0))
    with pytest.raises(ValueError, match="y and the record first"):
        audit(LogisticRegression(), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="needs X, y, first and epsilon"):
        audit(Foreign(1.0))
    with pytest.raises(ValueError, match="leave epsilon and delta out"):
        audit(LogisticRegression(), epsilon=1.0)
    with pytest.raises(ValueError, match="nothing is called"):
        audit_registry(["no-such-solver"])


def test_an_audit_with_a_seed_can_be_repeated():
    reports = [audit_registry(["Laplace"], runs=200, random_state=4) for _ in range(2)]
    assert reports[0] == reports[1]


def test_a_report_survives_json_and_prints_a_row_for_each_finding():
    finding = Finding("it", "model", "replace-one", 1.0, 0.0, float("inf"), 0.0, 10, True, "output 0 above 1")
    report = Report((finding,), 0.99)
    assert Report.from_dict(json.loads(report.to_json())) == report
    assert len(str(report).splitlines()) == 2 and "VIOLATED" in str(report)
    assert Claim(1.0, 0.0).allows(0.5, 0.5)


def test_the_command_line_prints_a_table_writes_json_and_tells_by_its_status(tmp_path):
    path = tmp_path / "report.json"
    arguments = ["audit", "Laplace", "--runs", "200", "--seed", "1", "--json", str(path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "Laplace" in done.output and "holds" in done.output
    assert not Report.from_dict(json.loads(path.read_text())).violated


def test_the_command_line_audits_an_estimator_by_its_path_and_fails_if_it_lies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from dpglm import LogisticRegression\n"
        "def honest():\n    return LogisticRegression(classes=[-1, 1])\n"
        "seeded = LogisticRegression(classes=[-1, 1], random_state=0)\n"
    )
    runner = CliRunner()
    assert (
        runner.invoke(app, ["audit", "mine:honest", "--runs", "40", "--seed", "1", "--quiet"]).exit_code == 0
    )
    lying = runner.invoke(app, ["audit", "mine:seeded", "--runs", "40", "--quiet"])
    assert lying.exit_code == 1 and "VIOLATED" in lying.output


@pytest.mark.parametrize("target", ["no-such-solver", "no_such_module:model", "dpglm:NoSuchModel"])
def test_the_command_line_names_a_target_that_it_does_not_know(target):
    done = CliRunner().invoke(app, ["audit", target, "--runs", "10", "--quiet"])
    assert done.exit_code == 2
