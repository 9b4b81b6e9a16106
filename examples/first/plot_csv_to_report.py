"""
From a raw CSV file to a report
===============================

A raw file has text, missing values and columns of all sizes. A *schema* declares what is known about the
columns before anybody looks at them; it takes the place of scalers and encoders that learn from the records.
"""

# %%
# The file
# --------
# dpglm ships the raw Adult file as CSV, with a schema in TOML.
import tempfile
from pathlib import Path

from dpglm.datasets import write_adult

folder = Path(tempfile.mkdtemp())
files = write_adult(folder)
print(files.schema.read_text())

# %%
# Schema, plan, fit
# -----------------
# ``plan`` states what a fit would release before a record is read.
import pandas as pd

from dpglm import LogisticRegression, Schema, make_private_pipeline

schema = Schema.load(files.schema)
table = pd.read_csv(files.train)
model = make_private_pipeline(schema, LogisticRegression(epsilon=1.0))
print(model.plan(len(table)))
model.fit(table)

# %%
# A report for others
# -------------------
# The report is one HTML file: the promise in words, every release with its price, coefficients in the units
# of the raw columns, and what is not covered. It contains nothing that was not released.
report = folder / "report.html"
model.report(report)
print(f"{report.stat().st_size / 1000:.0f} kB")

# %%
# One column
# ----------
# Coefficients come back in raw units: for a year of age, an hour a week, a level of a category.
import matplotlib.pyplot as plt

values = model.raw_coefficients().values
levels = sorted((name for name in values if name.startswith("marital_status=")), key=values.get)
figure, axes = plt.subplots()
axes.barh([name.removeprefix("marital_status=") for name in levels], [values[name] for name in levels])
axes.set(xlabel="change of the log-odds of a high income", title="Marital status, private at epsilon = 1")
axes.grid(axis="y", visible=False)
plt.show()
