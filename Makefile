# Every target does its own set-up: a fresh machine needs only Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
TESTBED := .venv-testbed
BIN := $(VENV)/bin
JOBS ?= auto

.PHONY: audit test test-slow gallery testbed testbed-wheels lint format clean

audit: $(VENV)/.ready
	$(BIN)/python -m opcheck audit --all

test: $(VENV)/.ready
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "not slow"

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m slow

gallery: $(VENV)/.ready
	$(BIN)/python benchmarks/gallery.py -o docs/gallery.md

# Real packages in a venv of their own: they want other things than opcheck does.
testbed: $(TESTBED)/.ready
	$(TESTBED)/bin/python benchmarks/testbed/run.py

# What a machine without a network needs for the same: unpack into a folder on PYTHONPATH, benchmarks/testbed/run.py.
testbed-wheels:
	$(PYTHON) -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.12 \
	    --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --platform any \
	    -r benchmarks/testbed/requirements.txt -d .whl
	@du -sh .whl

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

$(TESTBED)/.ready: pyproject.toml constraints.txt benchmarks/testbed/requirements.txt
	test -x $(TESTBED)/bin/python || $(PYTHON) -m venv $(TESTBED)
	$(TESTBED)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	$(TESTBED)/bin/python -m pip install -q --disable-pip-version-check --no-deps -r benchmarks/testbed/requirements.txt
	touch $@

clean:
	rm -rf $(VENV) $(TESTBED) .testbed .whl build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .opcheck
