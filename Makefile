# Every target fills a local .venv with what it needs; nothing but Python >= 3.11 and make has to be there.
PYTHON ?= python3
RUN := .venv/bin/python

.PHONY: demo test check docs clean
.DELETE_ON_ERROR:

demo: .venv/.demo
	$(RUN) -m dpglm.demo

test: .venv/.test
	$(RUN) -m pytest -n auto --maxprocesses 4 --dist worksteal

check: .venv/.check .venv/.test docs
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy src
	$(RUN) -m pytest tests/test_layers.py

docs: .venv/.docs
	$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:
	rm -rf .venv docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN):
	$(PYTHON) -m venv .venv

.venv/.%: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@
