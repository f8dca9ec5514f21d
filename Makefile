# Needs make, pip and a Python that is new enough. Everything is installed into .venv.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.PHONY: help demo test lint composition benchmark clean

help:
	@echo "make demo       compare the solvers on a few games and draw the result"
	@echo "make test       run the tests"
	@echo "make lint       check format, style and types"
	@echo "make composition  run every solver on every form of game and write docs/composition.md"
	@echo "make benchmark  measure speed"
	@echo "make clean      remove .venv and everything else that was built; keeps results/"
	@echo "Use another Python with: make PYTHON=/path/to/python3 ..."

demo: $(VENV)/plot.stamp
	@$(BIN)/python examples/compare_solvers.py

test: $(VENV)/dev.stamp
	@$(BIN)/python -m pytest

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy

composition: $(VENV)/dev.stamp
	@PYTHONPATH=tests/support $(BIN)/python -m composition

benchmark: $(VENV)/plot.stamp
	@$(BIN)/python examples/benchmark.py

clean:
	@rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says which extra is installed; it is out of date when pyproject.toml has changed since.
$(VENV)/%.stamp: pyproject.toml | $(VENV)/created.stamp
	@echo "Installing spiel_cfr[$*] into $(VENV) (a minute or two the first time) ..."
	@$(PIP) install --config-settings editable_mode=compat --editable '.[$*]'
	@touch $@

$(VENV)/created.stamp:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
	  "spiel_cfr needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + \
	  ". Try: make PYTHON=python3.11 ...")'
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@
