"""
Adult in ten lines
==================

Does a person of the 1994 census earn more than 50,000 dollars a year? The table ships with dpglm: 32,561
records of 123 features, sparse. A private model needs one more argument than scikit-learn's, the budget
``epsilon``, and the list of classes, which would otherwise be read from the records.
"""

# %%
# The fit
# -------
from dpglm import LogisticRegression
from dpglm.datasets import load_adult

adult = load_adult()
model = LogisticRegression(epsilon=1.0, classes=[-1, 1])
model.fit(adult.X, adult.y)
print(f"accuracy on the test part: {model.score(adult.X_test, adult.y_test):.4f}")

# %%
# The promise
# -----------
# Everything that the promise rests on is printed with it: what was public, each mechanism with its noise, how
# the price was added up, and what is *not* covered.
print(model.privacy_)

# %%
# The coefficients
# ----------------
# The largest ones, as bars. They were released under the promise above, so they may be shown to anybody.
import matplotlib.pyplot as plt
import numpy as np

largest = np.argsort(-np.abs(model.coef_[0]))[:14][::-1]
values = model.coef_[0][largest]
figure, axes = plt.subplots(figsize=(7.2, 4.6))
axes.barh([adult.feature_names[j] for j in largest], values, color=np.where(values > 0, "C0", "C1"))
axes.set(xlabel="coefficient", title="What goes with a high income, epsilon = 1")
axes.grid(axis="y", visible=False)
plt.show()
