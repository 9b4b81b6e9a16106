"""
Auditing a broken model
=======================

A model with too little noise looks better than one with enough. An audit finds out: it fits many times to two
tables that differ in one record, and computes from the outputs a lower bound on the epsilon that was really
spent. A bound above the claim refutes the claim.
"""

# %%
# Two programs with the same claim
# --------------------------------
# Both publish a mean of a hundred numbers from 0 to 1 and claim epsilon 1. One divides the noise by ten, as a
# program does that takes the sensitivity of the mean for that of the sum twice.
import numpy as np

from dpglm.audit import Claim, audit_outputs

rng = np.random.default_rng(0)
first, second = np.full(100, 0.5), np.full(100, 0.5)
first[0], second[0] = 0.0, 1.0  # the tables differ in one record


def published(table, noise, runs=20_000):
    """The means that many runs of a program publish."""
    return table.mean() + rng.laplace(scale=noise / len(table), size=(runs, 1))


claim = Claim(epsilon=1.0, delta=0.0)
programs = {"enough noise": 1.0, "too little noise": 0.1}
outputs = {name: (published(first, noise), published(second, noise)) for name, noise in programs.items()}
reports = {
    name: audit_outputs(*pair, claim, subject=name, seen="mean", neighbours="replace-one")
    for name, pair in outputs.items()
}
for report in reports.values():
    print(report)

# %%
# A model of dpglm
# ----------------
# An estimator needs nothing else: the two tables are built from its bounds, and the claim is read from its
# plan. More runs make the bound sharper; from the shell it is ``dpglm audit``.
from dpglm import LogisticRegression
from dpglm.audit import audit

print(audit(LogisticRegression(epsilon=1.0, classes=[-1, 1]), runs=60))

# %%
# What the auditor sees
# ---------------------
# The outputs for the two tables overlap if there is enough noise, and are told apart if there is not.
import matplotlib.pyplot as plt

figure, panels = plt.subplots(1, 2, figsize=(8, 3.4))
for panel, (name, pair) in zip(panels, outputs.items(), strict=True):
    bins = np.linspace(*np.quantile(np.concatenate(pair), [0.005, 0.995]), 60)
    for table, label in zip(pair, ("first table", "second table"), strict=True):
        panel.hist(table[:, 0], bins, density=True, alpha=0.65, label=label)
    verdict = "REFUTED" if reports[name].violated else "not refuted"
    panel.set(title=f"{name}: claim {verdict}", xlabel="published mean", yticks=[])
    panel.title.set_fontsize(11)
panels[0].legend()
plt.show()
