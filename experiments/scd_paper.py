"""Dual coordinate descent beside DP-SGD, and beside its own published form.

Reproduces section 5 of Damaskinos, Mendler-Duenner, Guerraoui, Papandreou and Parnell, "Differentially
Private Stochastic Coordinate Descent": ridge regression, logistic regression and a linear SVM, delta 0.001,
zero-out (their neighbours lack a record), tuning on validation rows by 156 settings of DP-SCD and 2,028
of DP-SGD. What the problems are, and what had to be chosen, is in scd_problems.py.

Left open by the text, and chosen here: the values of the grids and the number of epochs. A batch is given as
a share of the rows, and 12 pairs of share and epochs take the place of 12 batch sizes, for all methods the
same. Their longest has 667 steps. All methods return the mean of the last quarter of their iterates: in a
look at both, DP-SGD was better with it on the ridge problems, and else there was little difference.

    python experiments/scd_paper.py                              # about half an hour on one core
    python experiments/scd_paper.py --problems adult --epsilons 0.1,1
    python experiments/scd_paper.py --whole california:1         # DP-SGD with all of its settings there
    python experiments/scd_paper.py --quick                      # seconds, too small to mean anything

The real tables are read from a folder (--data) with california_housing, mtp_melting_point and phishing; Adult
comes with dpglm. Every problem, method and epsilon leaves a CSV in the output folder, which a later run reads
instead of computing it again, unless --fresh.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from outputs import load_pyplot, write_csv
from scd_problems import DATA, DELTA, NEIGHBOURS, PROBLEMS, QUICK, Task
from scd_published import without_noise
from scd_search import (
    FIRST_FRESH_SEED,
    OVERLAP,
    PUBLISHED,
    SCD,
    SEQUENTIAL,
    SGD,
    Row,
    Scale,
    Setting,
    best,
    clip_of,
    fit,
    fresh,
    more_runs,
    setting_of,
    solver_of,
    tune,
)

from dpglm import Budget
from dpglm.errors import UnsupportedProblem
from dpglm.solvers import DualCoordinateDescent, GradientDescent

METHODS = (SCD, OVERLAP, SGD, PUBLISHED, SEQUENTIAL)
EPSILONS = (1.0, 0.1, 0.3, 3.0, 10.0)
WHOLE_SGD = f"{SGD}, whole grid"
CURVES = (0.1, 1.0)
CURVE_POINTS, CURVE_RUNS, CURVE_EPOCHS = 12, 3, 30
SWEEP_CLIPS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
SWEEP_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
SWEEP_EPOCHS, SWEEP_RUNS = 10, 3
FINALISTS, TUNING_RUNS, NOISY = 8, 5, 1.0
TRIES = (1, 3, 10, 30, 156)

PREAMBLE = """\
Test MSE, or test accuracy in percent, mean and deviation over {seeds} seeds; delta {delta:g}, zero-out.

- Tuning is NOT paid for, as in the paper: settings are those with the best validation score in one run.
  One run is luck where noise is strong: in a second table, up to epsilon {noisy:g}, the best {finalists}
  settings have {runs} each.
- {equal} settings each. Those of {sgd} are drawn at random from its {whole:,}, with a fixed seed.
- {scd} and {sgd} are dpglm's solvers, priced by its accountant as Poisson-sampled Gaussian releases.
- {scd} keeps the dual variables secret, with the overlap 1 of the paper, safe for any batch; "{overlap}" has
  {overlap_pairs} pairs of share and epochs and overlaps {overlaps}.
- "{published}" and {sequential} show the dual variables, and so the batch: priced without sampling.
- Grids: share of the rows and epochs {batches};
  {count} clips c from {low:.3g} to {high:.3g}; {steps} step sizes of {sgd} from {first:g} to {last:g}.
- Columns are standardised with statistics of the training rows, which count as public.
"""

WHOLE = Scale(
    batches=(
        (1.0, 20),
        (1.0, 60),
        (0.1, 3),
        (0.1, 10),
        (0.1, 30),
        (0.03, 1),
        (0.03, 3),
        (0.03, 10),
        (0.01, 1),
        (0.01, 3),
        (0.003, 1),
        (0.003, 2),
    ),
    overlap_batches=((1.0, 20), (0.1, 10), (0.03, 3), (0.03, 10)),
    overlaps=(1.0, 0.3, 0.1),
    clips=tuple(np.logspace(-2, 0.5, 13).tolist()),
    steps=tuple(np.logspace(-1, 2, 13).tolist()),
    seeds=10,
)
TINY = Scale(
    batches=((1.0, 5), (0.1, 1)),
    overlap_batches=((0.1, 1),),
    overlaps=(1.0, 0.3),
    clips=(1.0,),
    steps=(0.3, 3.0),
    seeds=2,
)


@dataclass(frozen=True)
class Figure:
    """The tuned setting of one method at one epsilon, and its scores on the test rows."""

    problem: str
    method: str
    epsilon: float
    settings: int
    validation: float
    mean: float
    deviation: float
    share: float
    epochs: int
    clip: float
    step: float
    overlap: float
    seconds: float


def path_of(task: Task, method: str, epsilon: float, folder: Path, end: str) -> Path:
    name = f"{task.name}_{method}_{epsilon:g}".replace(" ", "_").replace(",", "")
    return folder / f"{name}{end}.csv"


def save(found: Figure, path: Path, end: str) -> None:
    """Keep a figure for later runs, and print it."""
    write_csv([found], Figure, path)
    print(f"- {found.problem}, {found.method}, epsilon {found.epsilon:g}{end}", flush=True)


def measure(task: Task, method: str, epsilon: float, scale: Scale, folder: Path, again: bool) -> Figure:
    """Tune, then score on fresh seeds; or read what an earlier run found."""
    figure, rows = (path_of(task, method, epsilon, folder, end) for end in ("", "_grid"))
    if again or not figure.exists():
        start = time.perf_counter()
        algorithm = SGD if method == WHOLE_SGD else method
        settings = scale.settings(algorithm)
        if method == SGD:
            settings = settings[: len(scale.settings(SCD))]
        tuned = tune(task, algorithm, epsilon, settings)
        write_csv(tuned, Row, rows)
        found = scored(task, method, epsilon, best(task, tuned), len(settings), scale.seeds, start)
        save(found, figure, f": {found.mean:.4f}, {found.seconds:.0f} s")
    return read_csv(figure, Figure)[0]


def again_measured(
    task: Task, method: str, epsilon: float, scale: Scale, folder: Path, again: bool
) -> Figure:
    """The same after more tuning runs of the settings that were best in the first."""
    figure, rows = (path_of(task, method, epsilon, folder, end) for end in ("_finalists", "_grid"))
    if again or not figure.exists():
        start = time.perf_counter()
        algorithm = SGD if method == WHOLE_SGD else method
        tuned = read_csv(rows, Row)
        ranked = sorted(tuned, key=lambda row: row.validation if task.regression else -row.validation)
        finalists = more_runs(task, algorithm, epsilon, ranked[:FINALISTS], TUNING_RUNS)
        found = scored(task, method, epsilon, best(task, finalists), len(tuned), scale.seeds, start)
        save(found, figure, f", {TUNING_RUNS} tuning runs: {found.mean:.4f}")
    return read_csv(figure, Figure)[0]


def scored(
    task: Task, method: str, epsilon: float, row: Row, settings: int, seeds: int, start: float
) -> Figure:
    scores = fresh(task, SGD if method in ("SGD", WHOLE_SGD) else method, setting_of(row), epsilon, seeds)
    found = (settings, row.validation, float(scores.mean()), float(scores.std(ddof=1)))
    values = (row.share, row.epochs, row.clip, row.step, row.overlap, time.perf_counter() - start)
    return Figure(task.name, method, epsilon, *found, *values)


def not_private(task: Task, scale: Scale, seeds: int) -> Figure:
    """SGD without noise or clip, its step and batch tuned."""
    start = time.perf_counter()
    longest = max(scale.batches, key=lambda batch: (batch[1] / batch[0] <= 500, batch[1] / batch[0]))
    settings = [Setting(*longest, 1e6, step) for step in scale.steps]
    row = best(task, tune(task, SGD, math.inf, settings))
    return scored(task, "SGD", math.inf, row, len(settings), seeds, start)


def table(tasks: Sequence[Task], figures: Sequence[Figure]) -> str:
    """Test scores as Markdown: a line for each problem and epsilon."""
    shown = [m for m in (*METHODS, WHOLE_SGD) if any(f.method == m for f in figures)]
    lines = ["| | epsilon | " + " | ".join(shown) + " |", "|---" * (2 + len(shown)) + "|"]
    for task in tasks:
        for epsilon in sorted(
            {f.epsilon for f in figures if f.problem == task.name and f.epsilon < math.inf}
        ):
            found = {f.method: f for f in figures if (f.problem, f.epsilon) == (task.name, epsilon)}
            cells = [_cell(task, found.get(method)) for method in shown]
            lines.append(f"| {task.name}, {task.metric} | {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(task: Task, figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if task.regression:
        return f"{figure.mean:.4f} ± {figure.deviation:.4f}" if figure.mean < 100 else f"{figure.mean:.0e}"
    return f"{figure.mean:.2f} ± {figure.deviation:.2f}"


def references(tasks: Sequence[Task], figures: Sequence[Figure]) -> str:
    lines = ["| without noise | exact minimum (SCD) | SGD |", "|---|---|---|"]
    for task in tasks:
        (figure,) = (f for f in figures if (f.problem, f.method) == (task.name, "SGD"))
        lines.append(f"| {task.name} | {task.score(task.optimum, task.test):.4f} | {figure.mean:.4f} |")
    return "\n".join(lines)


def tuned_settings(tasks: Sequence[Task], figures: Sequence[Figure]) -> str:
    """What the tuned settings are, as Markdown."""
    lines = ["| | method | epsilon | L/n | epochs | c | C | step | overlap |", "|---" * 9 + "|"]
    for task in tasks:
        for f in figures:
            if f.problem == task.name and f.epsilon < math.inf:
                clip = clip_of(task, SGD if f.method == WHOLE_SGD else f.method, setting_of(f))
                step = "-" if math.isnan(f.step) else f"{f.step:.3g}"
                lines.append(
                    f"| {f.problem} | {f.method} | {f.epsilon:g} | {f.share:g} | {f.epochs} | {f.clip:.3g} "
                    f"| {clip:.3g} | {step} | {f.overlap:g} |"
                )
    return "\n".join(lines)


def by_tries(tasks: Sequence[Task], epsilons: Sequence[float], folder: Path) -> str:
    """Validation score that the best of so many settings, drawn at random from the grid, has in the mean."""
    shown = (SCD, OVERLAP, SGD)
    lines = ["| | epsilon | method | " + " | ".join(map(str, TRIES)) + " |", "|---" * (3 + len(TRIES)) + "|"]
    for task in tasks:
        for epsilon in sorted(epsilons):
            for method in shown:
                rows = read_csv(path_of(task, method, epsilon, folder, "_grid"), Row)
                scores = np.sort([row.validation for row in rows])
                scores = scores if task.regression else scores[::-1]
                cells = [_mean_of_best(scores, tries) for tries in TRIES]
                text = (f"{cell:.4f}" if task.regression else f"{cell:.2f}" for cell in cells)
                lines.append(
                    f"| {task.name}, {task.metric} | {epsilon:g} | {method} | " + " | ".join(text) + " |"
                )
    return "\n".join(lines)


def _mean_of_best(scores: Any, tries: int) -> float:
    """Mean of the first of so many scores drawn without replacement; they are in order, the best first."""
    n, tries = len(scores), min(tries, len(scores))
    chances = np.array([math.comb(n - 1 - k, tries - 1) / math.comb(n, tries) for k in range(n)])
    worst = scores[0] if not np.isfinite(scores).any() else scores[np.isfinite(scores)].max()
    return float(chances @ np.where(np.isfinite(scores), scores, worst))


def defaults(tasks: Sequence[Task], epsilons: Sequence[float], seeds: int) -> str:
    """Test scores of dpglm's solvers as they are, as Markdown."""
    solvers = (DualCoordinateDescent(), GradientDescent())
    lines = ["| | epsilon | DP-SCD, defaults | DP-GD, defaults |", "|---|---|---|---|"]
    for task in tasks:
        for epsilon in sorted(epsilons):
            cells = []
            for solver in solvers:
                try:
                    plan = solver.plan(task.problem, *task.shape, Budget(epsilon, DELTA), NEIGHBOURS)
                except UnsupportedProblem:
                    cells.append("-")
                    continue
                runs = (
                    solver.run(plan, task.problem, task.curator(FIRST_FRESH_SEED + k)) for k in range(seeds)
                )
                scores = np.array([task.score(result.w, task.test) for result in runs])
                digits = 4 if task.regression else 2
                cells.append(f"{scores.mean():.{digits}f} ± {scores.std(ddof=1):.{digits}f}")
            lines.append(f"| {task.name}, {task.metric} | {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def verdicts(tasks: Sequence[Task], figures: Sequence[Figure], seeds: int) -> list[str]:
    """Whether DP-SCD is ahead of DP-SGD, and of its published form, at each epsilon."""
    lines = []
    for task in tasks:
        for epsilon in sorted(
            {f.epsilon for f in figures if f.problem == task.name and f.epsilon < math.inf}
        ):
            found = {f.method: f for f in figures if (f.problem, f.epsilon) == (task.name, epsilon)}
            for ours in (SCD, OVERLAP):
                for other in (SGD, WHOLE_SGD, PUBLISHED):
                    if ours in found and other in found:
                        one, two = found[ours], found[other]
                        spread = 2 * math.hypot(one.deviation, two.deviation) / math.sqrt(seeds)
                        close = ", within two standard errors" if abs(one.mean - two.mean) < spread else ""
                        word = "ahead" if task.better(one.mean, two.mean) else "BEHIND"
                        lines.append(
                            f"{word}: {task.name}, epsilon {epsilon:g}, {ours} {one.mean:.4f}, "
                            f"{other} {two.mean:.4f}{close}"
                        )
    return lines


def curves(task: Task, figures: Sequence[Figure]) -> list[tuple[str, float, float]]:
    """Figure 2: (line, epochs, training objective), of the tuned settings."""
    points = []
    for figure in figures:
        wanted = figure.method in (SCD, SGD) and figure.epsilon in CURVES or figure.method == "SGD"
        if figure.problem != task.name or not wanted:
            continue
        method = SCD if figure.method == SCD else SGD
        setting = setting_of(figure)
        steps = solver_of(task, method, setting).steps
        name = "SGD" if figure.method == "SGD" else f"{method}, epsilon {figure.epsilon:g}"
        for k in np.unique(np.geomspace(1, steps, CURVE_POINTS).astype(int)):
            values = [
                task.objective(fit(task, method, setting, figure.epsilon, FIRST_FRESH_SEED + run, int(k)))
                for run in range(CURVE_RUNS if figure.epsilon < math.inf else 1)
            ]
            points.append((name, float(k) * figure.epochs / steps, float(np.mean(values))))
    for k, w in enumerate(without_noise(task, CURVE_EPOCHS, seed=0)):
        points.append(("SCD", k + 1.0, task.objective(w)))
    return points


def sweep(task: Task, shares: Sequence[float], clips: Sequence[float]) -> list[tuple[float, float, float]]:
    """Figure 3: (clip, batch size, test score) of DP-SCD at epsilon 1."""
    points = []
    for clip in clips:
        for share in shares:
            setting = Setting(share, SWEEP_EPOCHS, clip * (1 + share / task.strength))
            scores = fresh(task, SCD, setting, 1.0, SWEEP_RUNS)
            points.append((clip, share * task.shape[0], float(scores.mean())))
    return points


def read_csv(path: Path, kind: type) -> list[Any]:
    convert = {"str": str, "int": int, "float": float}
    kinds = {field.name: convert[str(field.type)] for field in fields(kind)}
    with path.open(newline="") as file:
        return [
            kind(**{name: kinds[name](value) for name, value in line.items()})
            for line in csv.DictReader(file)
        ]


def write_points(points: Sequence[tuple[Any, ...]], names: Sequence[str], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(points)


def draw(count: int, paint: Callable[[Any], None], path: Path) -> None:
    """A picture of ``count`` panels."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    size = (3.6 * count, 3.4) if count > 1 else (5.0, 3.6)
    figure, panels = pyplot.subplots(1, count, figsize=size, layout="constrained", squeeze=False)
    paint(panels.ravel())
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def paint_trade_off(panels: Any, tasks: Sequence[Task], figures: Sequence[Figure]) -> None:
    """SEQ DP-SCD may lie outside."""
    for panel, task in zip(panels, tasks, strict=True):
        exact = task.score(task.optimum, task.test)
        ends = [exact]
        panel.axhline(exact, color="grey", linewidth=0.8, label="exact minimum")
        for figure in figures:
            if (figure.problem, figure.method) == (task.name, "SGD"):
                panel.axhline(figure.mean, color="grey", linewidth=0.8, linestyle=":", label="SGD")
        for method in (*METHODS, WHOLE_SGD):
            shown = sorted(
                (f for f in figures if (f.problem, f.method) == (task.name, method)), key=lambda f: f.epsilon
            )
            if not shown:
                continue
            if method != SEQUENTIAL:
                ends += [f.mean + sign * f.deviation for f in shown for sign in (-1, 1)]
            panel.errorbar(
                [f.epsilon for f in shown],
                [f.mean for f in shown],
                yerr=[f.deviation for f in shown],
                marker="o",
                markersize=3,
                linewidth=1,
                capsize=2,
                label=method,
            )
        panel.set_xscale("log")
        room = 0.05 * (max(ends) - min(ends))
        panel.set_ylim(min(ends) - room, max(ends) + room)
        panel.set_title(f"{task.name}, {task.loss.name}", fontsize=10)
        panel.set_xlabel("epsilon", fontsize=8)
        panel.set_ylabel(f"test {task.metric}", fontsize=8)
    panels[0].legend(fontsize=6)


def paint_lines(
    panels: Any, points: Sequence[tuple[Any, float, float]], labels: tuple[str, str, str]
) -> None:
    """One line for each first entry."""
    (panel,) = panels
    for name in dict.fromkeys(point[0] for point in points):
        at = [point[1:] for point in points if point[0] == name]
        panel.plot(*zip(*at, strict=True), marker="o", markersize=2, linewidth=1, label=f"{labels[0]}{name}")
    panel.set_xscale("log")
    panel.set_xlabel(labels[1], fontsize=8)
    panel.set_ylabel(labels[2], fontsize=8)
    panel.legend(fontsize=6)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--fresh", action="store_true", help="compute again what the output folder has")
    parser.add_argument("--problems", help=f"some of {','.join(PROBLEMS)}")
    parser.add_argument("--epsilons", help="some numbers, by default " + ",".join(f"{e:g}" for e in EPSILONS))
    parser.add_argument("--whole", default="", help="problem:epsilon,... where DP-SGD has all its settings")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real tables")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for CSV, PNG and the table")
    return parser.parse_args()


def run(
    tasks: Sequence[Task], epsilons: Sequence[float], whole: str, scale: Scale, folder: Path, again: bool
) -> tuple[list[Figure], list[Figure]]:
    """The figures of one tuning run, with SGD without noise first, and those of several."""
    figures, finals = [not_private(task, scale, scale.seeds) for task in tasks], []
    for epsilon in epsilons:
        for task in tasks:
            methods = [*METHODS]
            known = path_of(task, WHOLE_SGD, epsilon, folder, "").exists()
            if f"{task.name}:{epsilon:g}" in whole.split(",") or known:
                methods.append(WHOLE_SGD)
            for method in methods:
                figures.append(measure(task, method, epsilon, scale, folder, again))
                if method != SEQUENTIAL and epsilon <= NOISY:
                    finals.append(again_measured(task, method, epsilon, scale, folder, again))
    return figures, finals


def pictures(
    tasks: Sequence[Task], figures: Sequence[Figure], finals: Sequence[Figure], folder: Path, quick: bool
) -> None:
    for name, shown in (("figure_1", figures), ("figure_1_finalists", [*figures[: len(tasks)], *finals])):
        write_csv(shown, Figure, folder / f"{name}.csv")
        draw(len(tasks), partial(paint_trade_off, tasks=tasks, figures=shown), folder / f"{name}.png")
    for task in [task for task in tasks if task.regression][:1]:
        points = curves(task, [*figures[: len(tasks)], *finals])
        write_points(points, ("line", "epochs", "objective"), folder / "figure_2.csv")
        labels = ("", "epochs", f"objective, {task.name}")
        draw(1, partial(paint_lines, points=points, labels=labels), folder / "figure_2.png")
        every = 3 if quick else 1
        swept = sweep(task, SWEEP_SHARES[::every], SWEEP_CLIPS[::every])
        write_points(swept, ("clip", "batch_size", "score"), folder / "figure_3.csv")
        labels = ("C = ", "batch size L", f"test MSE, {task.name}")
        draw(1, partial(paint_lines, points=swept, labels=labels), folder / "figure_3.png")


def main() -> int:
    options = arguments()
    scale, problems = (TINY, QUICK) if options.quick else (WHOLE, PROBLEMS)
    epsilons = tuple(float(e) for e in options.epsilons.split(",")) if options.epsilons else EPSILONS
    epsilons = CURVES[1:] if options.quick else epsilons
    start = time.perf_counter()
    print(
        PREAMBLE.format(
            delta=DELTA, seeds=scale.seeds, equal=len(scale.settings(SCD)), whole=len(scale.settings(SGD)),
            scd=SCD, sgd=SGD, overlap=OVERLAP, published=PUBLISHED, sequential=SEQUENTIAL,
            overlap_pairs=len(scale.overlap_batches), overlaps=scale.overlaps, batches=scale.batches,
            count=len(scale.clips), low=min(scale.clips), high=max(scale.clips), steps=len(scale.steps),
            first=min(scale.steps), last=max(scale.steps), finalists=FINALISTS, runs=TUNING_RUNS, noisy=NOISY,
        )
    )  # fmt: skip
    folder = options.out / ("scd_paper_quick" if options.quick else "scd_paper")
    folder.mkdir(parents=True, exist_ok=True)
    again = options.fresh or options.quick
    tasks = [problems[name](options.data) for name in (options.problems or ",".join(problems)).split(",")]
    for task in tasks:
        print(f"- {task.describe()}", flush=True)
    figures, finals = run(tasks, epsilons, options.whole, scale, folder, again)
    report = "\n\n".join(
        [
            f"One tuning run:\n\n{table(tasks, figures)}",
            references(tasks, figures),
            tuned_settings(tasks, figures),
            "\n".join(verdicts(tasks, figures, scale.seeds)),
            f"The best {FINALISTS} settings with {TUNING_RUNS} tuning runs each:\n\n{table(tasks, finals)}",
            tuned_settings(tasks, finals),
            "\n".join(verdicts(tasks, finals, scale.seeds)),
            f"Validation score of the best of so many settings:\n\n{by_tries(tasks, epsilons, folder)}",
            f"Without any tuning:\n\n{defaults(tasks, epsilons, scale.seeds)}",
        ]
    )
    print(f"\n{report}")
    (folder / "table.md").write_text(f"{report}\n")
    pictures(tasks, figures, finals, folder, options.quick)
    print(f"\n{time.perf_counter() - start:.0f} s; figures in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
