"""What each penalty recovers: pictures of private fits to drawn truths with a structure and to a real table.

    python experiments/penalty_pictures.py --figures docs   # a minute on one core; two SVG files and tables
    python experiments/penalty_pictures.py --quick          # seconds, too small to mean anything

**Drawn truths.** Least squares, 20,000 records of 60 features with entries of one size and rows of norm 1,
objective perturbation at epsilon 1 and delta 1/n². Every truth has predictions of deviation 0.3 beside noise
of 0.2, within declared targets of -1 to 1. Each of `CASES` names a penalty and the truth that it is for, and
is a column and a row of the picture. The picture shows the fits of the first seed; the tables are means over
all seeds, of the error, norm(w - truth) / norm(truth), and of the score, the share of the true features that
are found less the share of the others that are kept.

**Adult**, from its raw columns by the schema that dpglm comes with: logistic regression at epsilon 1, by
objective perturbation, with the columns as groups (`Schema.groups`) beside plain L1.

One rule sets all strengths, from public quantities: 1.25 times the mean strength at which noise of the
deviation of the gradient leaves nothing of a table without signal. It is that of `structured_recovery.py`,
where the factor was fixed; nothing was chosen on the seeds that are shown.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from dpglm import Bounds, GLMRegressor, LogisticRegression, make_private_pipeline
from dpglm.datasets import write_adult
from dpglm.errors import PrivacyWarning
from dpglm.penalties import L1, GroupCover, GroupL2, Hierarchy, Penalty, Submodular
from dpglm.schema import Schema
from dpglm.solvers import ObjectivePerturbation

P, GROUP, TREE = 60, 6, 15
SIGNAL, NOISE, HALF_RANGE, EPSILON = 0.3, 0.2, 1.0, 1.0
BOUNDS = Bounds(row_norm=1.0, target=(-HALF_RANGE, HALF_RANGE))
FACTOR, DRAWS, FIRST_SEED = 1.25, 50, 3_000
GROUPS = np.arange(P).reshape(-1, GROUP).tolist()

Vector = NDArray[np.float64]
Truth = Callable[[], Vector]


def parents() -> list[int]:
    """Trees of 15 features, each node before what is below it: a root, two children, four, eight."""

    def below(root: int, parent: int, size: int) -> list[int]:
        half = (size - 1) // 2
        return [parent] + (below(root + 1, root, half) + below(root + 1 + half, root, half) if half else [])

    return [node for root in range(0, P, TREE) for node in below(root, -1, TREE)]


def single() -> Vector:
    """Ten features, anywhere."""
    w = np.zeros(P)
    w[[3, 9, 14, 22, 25, 31, 38, 44, 51, 57]] = [1, -0.8, 0.6, 1, -0.6, 0.8, -1, 0.6, 0.8, -0.8]
    return w


def whole_groups() -> Vector:
    """Two groups of six, of unequal sizes."""
    w = np.zeros(P)
    w[GROUPS[2] + GROUPS[7]] = [1, -0.5, 0.3, 0.8, -0.2, 0.6, -0.3, 0.9, 0.5, -1, 0.2, -0.7]
    return w


def parts_of_groups() -> Vector:
    """Two features in each of three groups."""
    w = np.zeros(P)
    w[[13, 16, 31, 32, 54, 58]] = [1, -0.8, 0.7, 1, -0.9, 0.6]
    return w


def branches() -> Vector:
    """Branches of two of the four trees, from the root on."""
    w = np.zeros(P)
    w[[15, 16, 17, 18, 20, 45, 53, 54, 57]] = [1, 0.9, -0.7, 0.5, 0.5, -1, 0.8, 0.6, -0.6]
    return w


def even_groups() -> Vector:
    """Two groups of six, of one size."""
    w = np.zeros(P)
    w[GROUPS[2] + GROUPS[7]] = [1, -1, 1, 1, -1, 1, -1, 1, 1, -1, 1, -1]
    return w


@dataclass(frozen=True)
class Case:
    """A penalty of strength 1, and a truth with the structure that it is for."""

    name: str
    penalty: Penalty
    title: str
    truth: Truth


CASES = (
    Case("L1", L1(1.0), "single features", single),
    Case("GroupL2", GroupL2(1.0, GROUPS), "whole groups", whole_groups),
    Case("GroupL2, l1", GroupL2(0.5, GROUPS, l1=0.5), "parts of groups", parts_of_groups),
    Case("Hierarchy", Hierarchy(1.0, parents()), "branches of trees", branches),
    Case("GroupCover", Submodular(1.0, GroupCover(GROUPS)), "groups of one size", even_groups),
)


def level(penalty: Penalty, n_features: int, draws: int) -> float:
    """The mean strength from which on a proximal step takes everything from noise of deviation 1."""
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        g = rng.standard_normal(n_features)
        nothing = 1e-9 * penalty.value(g)
        low, high = 0.0, 1.0
        while penalty.value(penalty.prox(g, high)) > nothing:
            low, high = high, 2 * high
        for _ in range(25):
            middle = (low + high) / 2
            low, high = (middle, high) if penalty.value(penalty.prox(g, middle)) > nothing else (low, middle)
        found.append(high)
    return float(np.mean(found))


def draw(truth: Vector, n: int, seed: int) -> tuple[Vector, Vector, Vector]:
    """Rows, targets, and the coefficients that made them."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n, P)) / math.sqrt(P)
    w = truth * SIGNAL * math.sqrt(P) / np.linalg.norm(truth)
    return X, X @ w + NOISE * rng.standard_normal(n), w


def fitted(penalty: Penalty, at: float, X: Vector, y: Vector, seed: int) -> Vector:
    """Coefficients of a private fit with the penalty at the strength of the rule."""
    settings: dict[str, Any] = {
        "epsilon": EPSILON, "solver": ObjectivePerturbation(), "bounds": BOUNDS, "fit_intercept": False,
    }  # fmt: skip
    plan: Any = GLMRegressor(penalty=penalty, **settings).plan(*X.shape)
    deviation = math.hypot(HALF_RANGE / math.sqrt(3 * P * len(y)), plan.deviation)
    penalty = penalty.scaled(FACTOR * at * deviation)
    model = GLMRegressor(penalty=penalty, random_state=seed, **settings).fit(X, y)
    return np.asarray(model.coef_)


@dataclass(frozen=True, eq=False)
class Panel:
    """Fits of one truth with one penalty: the first, and means over all seeds."""

    truth: Vector
    first: Vector
    error: float
    score: float


def panel(case: Case, truth: Truth, at: float, n: int, seeds: int) -> Panel:
    """All fits of one panel."""
    errors, scores, kept = [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        X, y, w = draw(truth(), n, seed)
        coef = fitted(case.penalty, at, X, y, seed)
        errors.append(float(np.linalg.norm(coef - w) / np.linalg.norm(w)))
        scores.append(float(np.mean(coef[w != 0] != 0) - np.mean(coef[w == 0] != 0)))
        kept.append(coef)
    return Panel(w, kept[0], float(np.mean(errors)), float(np.mean(scores)))


@dataclass(frozen=True, eq=False)
class Model:
    """Models of Adult with one penalty.

    Parameters
    ----------
    name : str
    kept : array
        Share of the fits in which each feature remains.
    accuracy, loss : float
        Means over the fits, on the test part.
    """

    name: str
    kept: Vector
    accuracy: float
    loss: float


def adult(seeds: int, draws: int, rows: int | None) -> tuple[dict[str, list[int]], list[Model]]:
    """The features of each column; private fits with both penalties, then fits of the same without noise."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_adult(folder)
        schema = Schema.load(files.schema)
        train, test = pd.read_csv(files.train, nrows=rows), pd.read_csv(files.test, nrows=rows)
    groups, p, n = schema.groups(), schema.n_features, len(train)
    answers = np.asarray(schema.read_target(test)) == ">50K"
    private, exact = [], []
    for name, unit in (("GroupL2", GroupL2(1.0, groups)), ("L1", L1(1.0))):
        settings: dict[str, Any] = {"penalty": unit, "solver": ObjectivePerturbation()}
        plan: Any = make_private_pipeline(schema, LogisticRegression(EPSILON, **settings)).plan(n)
        # Slopes of the logistic loss are 1/2 where predictions are 0; the mean square of entries is at most
        # that of the norm over p.
        deviation = math.hypot(schema.radius / (2 * math.sqrt(p * n)), plan.deviation)
        settings["penalty"] = unit.scaled(FACTOR * level(unit, p, draws) * deviation)
        runs = [
            predicted(
                schema, LogisticRegression(EPSILON, random_state=seed, **settings), train, test, answers
            )
            for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        ]
        kept, right, loss = (np.mean([run[k] for run in runs], axis=0) for k in range(3))
        private.append(Model(f"{name}, epsilon {EPSILON:g}", kept, float(right), float(loss)))
        model = LogisticRegression(math.inf, penalty=settings["penalty"])
        exact.append(Model(f"{name}, no noise", *predicted(schema, model, train, test, answers)))
    return groups, [*private, *exact]


def predicted(schema: Schema, model: Any, train: Any, test: Any, answers: Any) -> tuple[Vector, float, float]:
    """Which features remain in one fit, and its accuracy and log loss on the test part."""
    pipeline: Any = make_private_pipeline(schema, model).fit(train)
    chance = pipeline.predict_proba(test)[:, 1]
    kept = (pipeline.estimator_.coef_[0] != 0).astype(float)
    return kept, float(np.mean((chance > 0.5) == answers)), float(log_loss(answers, chance))


# Pictures


STYLE = """
.recovery { color: #1d2126; background: transparent; font: 12px system-ui, 'DejaVu Sans', sans-serif; }
@media (prefers-color-scheme: dark) { .recovery { color: #e3e7ec; } }
.recovery text { fill: currentColor; }
.recovery .title { font-size: 13px; font-weight: 600; }
.recovery .soft { opacity: .72; }
.recovery .strong { font-weight: 700; }
.recovery .frame { fill: none; stroke: currentColor; stroke-opacity: .22; }
.recovery .own { fill: none; stroke: currentColor; stroke-width: 2; stroke-opacity: .85; }
.recovery .band { fill: currentColor; fill-opacity: .045; }
.recovery .truth { fill: currentColor; fill-opacity: .3; }
.recovery .axis { stroke: currentColor; stroke-opacity: .45; }
.recovery .right { fill: #2f86c9; stroke: #2f86c9; }
.recovery .wrong { fill: #e0701e; stroke: #e0701e; }
"""


def svg(width: int, height: int, title: str, description: str, parts: Sequence[str]) -> str:
    """A picture that follows the light or dark theme of its page."""
    return "\n".join(
        [
            f'<svg class="recovery" role="img" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" xmlns="http://www.w3.org/2000/svg">',
            f"<title>{escape(title)}</title><desc>{escape(description)}</desc>",
            f"<style>{STYLE}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """One line of text."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def stems(found: Panel, x: float, y: float, width: float, height: float) -> list[str]:
    """Truth as bars; coefficients as circles on stems, those of features that do not matter as crosses."""
    step, middle = width / P, y + height / 2
    unit = (height / 2 - 4) / (1.12 * float(np.abs(found.truth).max()))
    parts = [
        f'<rect class="band" x="{x + k * GROUP * step:.1f}" y="{y:.1f}" width="{GROUP * step:.1f}" '
        f'height="{height:.1f}"/>'
        for k in range(1, P // GROUP, 2)
    ]
    for j in np.flatnonzero(found.truth):
        tall = unit * float(found.truth[j])
        parts.append(
            f'<rect class="truth" x="{x + j * step:.1f}" y="{middle - max(tall, 0):.1f}" '
            f'width="{step:.1f}" height="{abs(tall):.1f}"/>'
        )
    parts.append(f'<path class="axis" d="M{x:.1f} {middle:.1f}h{width:.1f}"/>')
    for j in np.flatnonzero(found.first):
        at = x + (j + 0.5) * step
        top = min(max(middle - unit * float(found.first[j]), y + 3), y + height - 3)
        kind = "right" if found.truth[j] else "wrong"
        parts.append(f'<path class="{kind}" d="M{at:.1f} {middle:.1f}V{top:.1f}"/>')
        if found.truth[j]:
            parts.append(f'<circle class="{kind}" cx="{at:.1f}" cy="{top:.1f}" r="2.1"/>')
        else:
            cross = f"M{at - 2.4:.1f} {top - 2.4:.1f}l4.8 4.8m0 -4.8l-4.8 4.8"
            parts.append(f'<path class="{kind}" stroke-width="1.4" d="{cross}"/>')
    return parts


def drawn_picture(panels: dict[tuple[int, int], Panel], seeds: int) -> str:
    """A row for each truth, a column for each penalty; the pair that belongs together has a frame."""
    count, left, top, width, height, gap = len(CASES), 128, 74, 166, 92, 34
    parts = [
        '<rect class="truth" x="128" y="9" width="10" height="10"/>', text(144, 18, "truth", "soft"),
        '<circle class="right" cx="199" cy="14" r="3"/>', text(208, 18, "kept, and it matters", "soft"),
        '<path class="wrong" stroke-width="1.6" d="M347 11l6 6m0 -6l-6 6"/>',
        text(360, 18, "kept, and it does not", "soft"),
        '<rect class="own" x="504" y="9" width="14" height="10"/>',
        text(525, 18, "the penalty for this truth", "soft"),
        text(10, top - 8, "truth", "soft"), text(left, 46, "penalty", "soft"),
    ]  # fmt: skip
    for column, case in enumerate(CASES):
        parts.append(text(left + column * (width + 12), top - 8, case.name, "title"))
    for row, case in enumerate(CASES):
        y = top + row * (height + gap)
        first, *rest = case.title.rsplit(" ", 1)
        parts += [text(10, y + height / 2 - 4, first, "title")]
        parts += [text(10, y + height / 2 + 12, word, "title") for word in rest]
        least = min(round(panels[row, column].error, 2) for column in range(count))
        for column in range(count):
            x, found = left + column * (width + 12), panels[row, column]
            parts += stems(found, x, y, width, height)
            kind = "own" if row == column else "frame"
            parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>')
            kind = "strong" if round(found.error, 2) == least else "soft"
            parts.append(text(x + 2, y + height + 15, f"error {found.error:.2f}", kind))
            parts.append(text(x + width - 2, y + height + 15, f"score {found.score:.2f}", "soft", "end"))
    title = "What each penalty recovers of five drawn truths"
    words = f"Private fits at epsilon {EPSILON:g}; errors and scores are means over {seeds} seeds."
    full = left + count * (width + 12)
    return svg(full, top + count * (height + gap), title, words, parts)


def adult_picture(groups: dict[str, list[int]], models: Sequence[Model], seeds: int) -> str:
    """A line for each column, a square for each of its features: in which share of the fits it remains."""
    left, top, side, gap = 136, 100, 15, 40
    width = side * max(map(len, groups.values()))
    order = sorted(groups, key=lambda column: -max(models[0].kept[groups[column]]))
    parts = []
    for k, share in enumerate((0.0, 0.5, 1.0)):
        x = left + 120 * k
        parts += square(x, 8, share, "right"), text(x + 20, 20, f"in {share:.0%} of fits", "soft")
    parts.append(text(10, top - 12, "column", "soft"))
    for place, model in enumerate(models[:2]):
        x, kind = left + place * (width + gap), "right" if place == 0 else "wrong"
        parts.append(text(x, top - 48, model.name, "title"))
        parts.append(
            text(x, top - 31, f"{model.kept.sum():.1f} of {len(model.kept)} features remain", "soft")
        )
        words = f"accuracy {model.accuracy:.4f}, log loss {model.loss:.4f}"
        parts.append(text(x, top - 14, words, "soft"))
        for row, column in enumerate(order):
            for k, j in enumerate(groups[column]):
                parts.append(square(x + k * side, top + row * 24, float(model.kept[j]), kind))
    for row, column in enumerate(order):
        parts.append(text(10, top + row * 24 + 11, column.replace("_", " "), "title"))
    title = "Which columns of Adult remain in a private fit"
    words = f"A square is a feature. Logistic regression, objective perturbation, {seeds} seeds."
    return svg(left + 2 * width + gap + 10, top + 24 * len(order) + 4, title, words, parts)


def square(x: float, y: float, share: float, kind: str) -> str:
    """A feature, filled by the share of the fits in which it remains."""
    return (
        f'<rect class="{kind}" x="{x}" y="{y}" width="12" height="12" rx="2" fill-opacity="{share:.2f}" '
        f'stroke-opacity="{0.5 + 0.5 * share:.2f}"/>'
    )


# Tables


def show_drawn(panels: dict[tuple[int, int], Panel]) -> None:
    """Means of errors and scores: a line for each truth, a column for each penalty."""
    for key in ("error", "score"):
        print(f"\n{key}\n\n| truth | " + " | ".join(case.name for case in CASES) + " |")
        print("|---" * (len(CASES) + 1) + "|")
        for row, case in enumerate(CASES):
            cells = [f"{getattr(panels[row, column], key):.2f}" for column in range(len(CASES))]
            print(f"| {case.title} | " + " | ".join(cells) + " |")


def show_adult(groups: dict[str, list[int]], models: Sequence[Model]) -> None:
    """Share of the fits in which a feature of each column remains, how many features do, and losses."""
    print("\n| Adult | features | " + " | ".join(model.name for model in models) + " |")
    print("|---" * (len(models) + 2) + "|")
    for column, group in groups.items():
        shares = [f"{model.kept[group].max():.2f}" for model in models]
        print(f"| {column} | {len(group)} | " + " | ".join(shares) + " |")
    lines = {
        f"features that remain | {len(models[0].kept)}": [f"{model.kept.sum():.1f}" for model in models],
        "accuracy | ": [f"{model.accuracy:.4f}" for model in models],
        "log loss | ": [f"{model.loss:.4f}" for model in models],
    }
    for name, cells in lines.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--figures", type=Path, help="folder for the two pictures")
    parser.add_argument("--seeds", type=int, default=20, help="fits of each kind")
    parser.add_argument("--records", type=int, default=20_000, help="records of a drawn truth")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)  # fixed seeds: a study, not a private fit
    n, seeds, draws, rows = (
        (500, 1, 3, 500) if options.quick else (options.records, options.seeds, DRAWS, None)
    )
    levels = [level(case.penalty, P, draws) for case in CASES]
    panels = {
        (row, column): panel(CASES[column], CASES[row].truth, levels[column], n, seeds)
        for row, column in product(range(len(CASES)), repeat=2)
    }
    show_drawn(panels)
    groups, models = adult(seeds, draws, rows)
    show_adult(groups, models)
    if options.figures:
        options.figures.mkdir(parents=True, exist_ok=True)
        pictures = {"truths": drawn_picture(panels, seeds), "adult": adult_picture(groups, models, seeds)}
        for name, picture in pictures.items():
            (options.figures / f"penalty_{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
