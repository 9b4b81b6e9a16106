"""
What epsilon does
=================

A smaller epsilon promises more and adds more noise. How much accuracy it costs depends on the number of
records, because the noise of a mean falls with their number and sampling error falls more slowly. The curve
below has error bars: two private fits differ, and must.
"""

# %%
# Five budgets, three fits each, on all records of Adult and on a tenth of them. Adult is a public table, so
# the scores on its test part need no budget.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from dpglm import LogisticRegression
from dpglm.datasets import load_adult

adult = load_adult()
budgets = [0.03, 0.1, 0.3, 1.0, 3.0]


def accuracies(rows, epsilon, fits):
    """Accuracy of several fits to the first rows."""
    model = LogisticRegression(epsilon, classes=[-1, 1])
    X, y = adult.X[:rows], adult.y[:rows]
    return [model.fit(X, y).score(adult.X_test, adult.y_test) for _ in range(fits)]


curves = {rows: np.array([accuracies(rows, e, 3) for e in budgets]) for rows in (32_561, 3_256)}
plain = PlainLogisticRegression(max_iter=1_000).fit(adult.X, adult.y)
exact = plain.score(adult.X_test, adult.y_test)

# %%
# The curve
# ---------
figure, axes = plt.subplots()
for rows, curve in curves.items():
    mean, low, high = curve.mean(axis=1), curve.min(axis=1), curve.max(axis=1)
    bars = [mean - low, high - mean]
    axes.errorbar(budgets, mean, yerr=bars, marker="o", capsize=4, label=f"{rows:,} records")
axes.axhline(exact, color="black", ls="--", lw=1, label="scikit-learn, not private")
axes.axhline(np.mean(adult.y_test == -1), color="grey", ls=":", lw=1, label="always the larger class")
axes.set_xscale("log")
axes.set_xticks(budgets, [f"{e:g}" for e in budgets])
axes.set(xlabel="epsilon", ylabel="accuracy", title="Accuracy over epsilon, mean and range of three fits")
axes.legend(loc="center right", bbox_to_anchor=(1, 0.35))
plt.show()

# %%
# What epsilon means for one person
# ---------------------------------
# Whoever sees the model and knows everything but one record can bet on a fact about that record. If a fair
# coin decides between two possible records, the chance of a right guess can rise from 50 % to at most the
# value in this table. ``docs/guide/manager.md`` explains it in words.
for epsilon in budgets:
    print(f"epsilon {epsilon:<5g} right guess at most {1 / (1 + np.exp(-epsilon)):.1%}")
