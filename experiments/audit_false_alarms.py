"""How often the auditor accuses dpglm: many audits of every registered solver and mechanism.

Each audit may accuse a true claim with probability 1 - confidence. The script counts, and says what chance
allows.
"""

from __future__ import annotations

import argparse
from collections import Counter

from scipy import stats

from dpglm import Budget
from dpglm.audit import examine
from dpglm.audit.registry import mechanism_targets, solver_targets
from dpglm.mechanisms import MECHANISMS
from dpglm.solvers import SOLVERS


def main() -> None:
    """Print the number of accusations for each target and for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=500, help="runs on each table in one audit")
    parser.add_argument("--confidence", type=float, default=0.99)
    arguments = parser.parse_args()
    budget = Budget(1.0, 0.01)
    targets = [target for solver in SOLVERS.values() for target in solver_targets(solver, budget)]
    targets += [target for mechanism in MECHANISMS for target in mechanism_targets(mechanism, budget)]
    findings: Counter[str] = Counter()
    accused: Counter[str] = Counter()
    for k in range(arguments.audits):
        target = targets[k % len(targets)]
        for finding in examine(target, arguments.runs, arguments.confidence, random_state=k).findings:
            name = f"{finding.subject} | {finding.seen} | {finding.neighbours}"
            findings[name] += 1
            accused[name] += finding.violated
    print("| target | seen | relation | findings | accused |\n|---|---|---|---|---|")
    for name, count in findings.items():
        print(f"| {name} | {count} | {accused[name]} |")
    total, chance = sum(accused.values()), 1 - arguments.confidence
    # Findings of one audit share its runs; counting audits instead makes the allowance smaller.
    expected, most = arguments.audits * chance, stats.binom.isf(1e-6, arguments.audits, chance)
    verdict = "within" if total <= most else "BEYOND"
    print(f"\n{arguments.audits} audits: {total} of {sum(findings.values())} findings accuse.")
    print(f"Chance may make {expected:g} on average and {most:g} at most: {verdict} what it allows.")


if __name__ == "__main__":
    main()
