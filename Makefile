# Needs make, pip and a Python that is new enough. Everything is installed into .venv.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help demo test test-all lint composition atlas docs dist benchmark clean

help:
	@echo "make demo       compare the solvers on a few games and draw the result"
	@echo "make test       run the quick tests (5 minutes on two cores)"
	@echo "make test-all   run all tests (an hour on two cores)"
	@echo "make lint       check format, style and types"
	@echo "make composition  run every solver on every form of game and write docs/composition.md"
	@echo "make atlas      compute the atlas of solved games again, print what has changed and write docs/atlas.md"
	@echo "make docs       build the documentation as a site, in site/"
	@echo "make dist       build a wheel and an sdist, and install and try them in a new environment"
	@echo "make benchmark  measure speed"
	@echo "make clean      remove .venv and everything else that was built; keeps results/"
	@echo "Use another Python with: make PYTHON=/path/to/python3 ..."

demo: $(VENV)/plot.stamp
	@$(BIN)/python examples/compare_solvers.py

test: $(VENV)/dev.stamp
	@echo "Running the quick tests: 5 minutes on two cores where kernels have to be compiled, less the next time ..."
	@$(BIN)/python -m pytest -n logical --dist worksteal

test-all: $(VENV)/all.stamp
	@echo "Running all tests, which takes an hour on two cores ..."
	@$(BIN)/python -m pytest -n logical --dist worksteal -m ""

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy

composition: $(VENV)/all.stamp
	@PYTHONPATH=tests/support $(BIN)/python -m composition

atlas: $(VENV)/dev.stamp
	@$(BIN)/python examples/atlas.py

docs: $(VENV)/docs.stamp
	@$(BIN)/python -m mkdocs --quiet build --strict
	@echo "Wrote site/index.html"

# The tree that is checked is what an sdist holds: the wheel is built from that, not from here.
dist: $(VENV)/dev.stamp
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist .
	@$(BIN)/python -m twine check --strict dist/*
	@rm -rf build/clean && $(PYTHON) -m venv build/clean
	@build/clean/bin/python -m pip --disable-pip-version-check install dist/*.whl
	@cd build/clean && bin/python -W error::DeprecationWarning:spiel_cfr -c "import spiel_cfr; \
	  print(spiel_cfr.solve('kuhn_poker', exploitability=1e-6)); \
	  print(spiel_cfr.explore(spiel_cfr.CFRSolver('kuhn_poker'), 'kuhn.html'))"

benchmark: $(VENV)/plot.stamp
	@$(BIN)/python examples/benchmark.py

clean:
	@rm -rf $(VENV) build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says which extra is installed; it is out of date when pyproject.toml has changed since.
$(VENV)/%.stamp: pyproject.toml | $(VENV)/created.stamp
	@echo "Installing spiel_cfr[$*] into $(VENV): a few minutes the first time; plot takes 0.6 GB, dev 1.3, all 1.7 ..."
	@$(PIP) install --config-settings editable_mode=compat --editable '.[$*]'
	@touch $@

$(VENV)/created.stamp:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
	  "spiel_cfr needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + \
	  ". Try: make PYTHON=python3.11 ...")'
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@
