# Every target fills a local .venv with what it needs; nothing but Python >= 3.11 and make has to be there.
PYTHON ?= python3
RUN := .venv/bin/python

DIST := .venv-dist/bin/python -m pip --quiet --disable-pip-version-check
TESTS := -m pytest -n auto --maxprocesses 4 --dist worksteal

.PHONY: demo test coverage test-oldest audit check docs dist clean
.DELETE_ON_ERROR:

demo: .venv/.demo
	$(RUN) -m dpglm.demo

test: .venv/.test
	$(RUN) $(TESTS)

# What the tests cover, and a failure below 95 %. It takes half as long again.
coverage: .venv/.test
	$(RUN) $(TESTS) --cov

# With the oldest dependencies that pyproject.toml allows. They may warn: what they warn of came after them.
test-oldest: .venv-oldest/.test
	.venv-oldest/bin/python $(TESTS) -W default

# The long form of what tests audit in few runs. At this confidence one of its findings accuses a true claim by
# chance less than once in a hundred audits.
audit: .venv/.test
	$(RUN) -m dpglm audit --runs 2000 --confidence 0.99999 --quiet --json audit.json

check: .venv/.check .venv/.test docs
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy src
	$(RUN) -m pytest tests/test_layers.py tests/test_markdown.py

docs: .venv/.docs
	rm -f docs/generated/*.rst  # pages of names that are gone
	$(RUN) -m sphinx -W --keep-going -q -j auto -b html docs docs/_build/html

# The wheel is built from the sdist; both are tried in an environment that has nothing else.
dist: .venv/.dist
	rm -rf dist .venv-dist
	$(RUN) -m build --outdir dist
	$(PYTHON) -m venv .venv-dist
	wheel=$$(ls dist/*.whl) && $(DIST) install "$$wheel[cli]"
	.venv-dist/bin/python -I tests/installed.py src/dpglm
	$(DIST) install --no-deps --force-reinstall dist/*.tar.gz
	.venv-dist/bin/python -I tests/installed.py src/dpglm

clean:
	rm -rf .venv .venv-oldest .venv-dist adult-demo docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
	rm -rf build dist audit.json .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN):
	$(PYTHON) -m venv .venv

.venv/.%: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

.venv-oldest/.test: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python tests/oldest.py pyproject.toml > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[test]" \
		--constraint .venv-oldest/constraints.txt
	@touch $@
