# Every target does its own set-up: a fresh machine needs only Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= auto

.PHONY: audit test test-slow gallery lint format clean

audit: $(VENV)/.ready
	$(BIN)/python -m opcheck audit --all

test: $(VENV)/.ready
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "not slow"

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m slow

gallery: $(VENV)/.ready
	$(BIN)/python benchmarks/gallery.py -o docs/gallery.md

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m opcheck lint

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A venv is ready once the install has succeeded; a half-made one is made again.
$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "opcheck needs Python 3.11 or newer; call make PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .opcheck
