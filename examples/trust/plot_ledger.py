"""
One ledger, three fits
======================

A fit keeps its own promise. Three fits to the same records need a promise about all three, and the second is
usually chosen after looking at the first. A *ledger* keeps the sum: each fit is charged before a record is
read, and one that the account cannot pay for is refused.
"""

# %%
# An account with a budget
# ------------------------
import tempfile
from pathlib import Path

from dpglm import Ledger

place = f"sqlite:///{Path(tempfile.mkdtemp()) / 'budget.db'}"
account = Ledger(place).create("census", epsilon=2.0, delta=1e-8)
print(account.remaining())

# %%
# Three fits, of which the account pays for two
# ---------------------------------------------
from dpglm import LinearSVC, LogisticRegression
from dpglm.datasets import load_adult
from dpglm.errors import BudgetExceeded

adult = load_adult()
remaining = [account.remaining().mu]
fits = {
    "logistic\nepsilon 1": LogisticRegression(1.0, classes=[-1, 1], ledger=f"{place}#census"),
    "SVM\nepsilon 1": LinearSVC(1.0, classes=[-1, 1], ledger=f"{place}#census"),
    "logistic\nepsilon 2": LogisticRegression(2.0, classes=[-1, 1], ledger=f"{place}#census"),
}
answers = []
for model in fits.values():
    try:
        model.fit(adult.X, adult.y)
        answers.append(f"accuracy {model.score(adult.X_test, adult.y_test):.3f}")
    except BudgetExceeded as error:
        answers.append("refused")
        print(error)
    remaining.append(account.remaining().mu)
print(account.remaining())

# %%
# What was spent
# --------------
# The ledger adds up mu², the currency in which Gaussian releases add exactly, also if each fit is chosen
# after looking at the last one.
import matplotlib.pyplot as plt
import numpy as np

budget = remaining[0] ** 2
squares = budget - np.square(remaining)  # what was spent before and after each fit
figure, axes = plt.subplots(figsize=(7.2, 3.4))
axes.bar(list(fits), np.diff(squares), bottom=squares[:-1], color=["C0", "C1", "C3"], width=0.55)
axes.axhline(budget, color="black", ls="--", lw=1)
axes.text(2.45, budget, "budget", ha="right", va="bottom")
for k, answer in enumerate(answers):
    axes.text(k, squares[k + 1] + 0.02 * budget, answer, ha="center", va="bottom")
axes.set(ylabel="spent mu²", title="An account of epsilon = 2", ylim=(0, 1.2 * budget))
axes.grid(axis="x", visible=False)
plt.show()
