"""
Text with a million features
============================

A vocabulary that is read from private texts is a statistic of these texts. A public hash needs no vocabulary:
each word falls into one of 2\\ :sup:`20` columns. The table stays sparse, and so does the work.
"""

# %%
# Made-up reviews
# ---------------
# 20,000 reviews of 30 words, from a language of 5,000 words. Forty words of it praise, forty words complain.
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

rng = np.random.default_rng(0)
words = np.array([f"word{k}" for k in range(5_000)])
weights = 1 / np.arange(10, 5_010)
praise, blame = words[40:120:2], words[41:121:2]


def review(good):
    """Some words of the language, and five of praise or of blame, mostly of the right kind."""
    kinds = rng.random(5) < (0.8 if good else 0.2)
    return " ".join([*rng.choice(words, 25, p=weights / weights.sum()),
                     *np.where(kinds, rng.choice(praise, 5), rng.choice(blame, 5))])  # fmt: skip


labels = rng.integers(0, 2, 24_000)
texts = [review(label) for label in labels]
print(texts[0])

# %%
# Hashing and fit
# ---------------
# Rows have norm 1, which is the default bound, so nothing else is declared.
hashed = HashingVectorizer(n_features=2**20, alternate_sign=False, binary=True)
X = hashed.transform(texts)
train, test = slice(0, 20_000), slice(20_000, None)
print(X.shape, f"{X.nnz / X.shape[0]:.0f} entries in a row")

# %%
from dpglm import LogisticRegression

model = LogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X[train], labels[train])
print(f"accuracy on other reviews: {model.score(X[test], labels[test]):.3f}")

# %%
# What the model learnt
# ---------------------
# The coefficients of words of praise, words of blame and all others. Each coefficient has noise, but a review
# adds up thirty of them. If only a few of millions of features matter, ``FrankWolfe`` with an ``L1Ball`` or
# ``GreedyCoordinateDescent`` select them instead.
import matplotlib.pyplot as plt

kinds = {"other words": np.setdiff1d(words, [*praise, *blame]), "blame": blame, "praise": praise}
figure, axes = plt.subplots()
for (name, chosen), colour in zip(kinds.items(), ("lightgrey", "C1", "C0"), strict=True):
    values = model.coef_[0][hashed.transform(chosen).indices]
    axes.hist(values, bins=40, density=True, alpha=0.8, color=colour, label=name)
axes.set(xlabel="coefficient of a word", ylabel="density", title="1,048,576 features, epsilon = 1")
axes.set_yticks([])
axes.legend()
plt.show()
