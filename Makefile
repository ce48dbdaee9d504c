# Everything sets itself up: each target makes .venv from a lock file when it is missing or stale.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
.PHONY: help venv demo test check format bench docs lock browser clean

help:
	@echo "make demo    replay the example agent session through a context policy, offline"
	@echo "make test    run all tests (starts the real services they need)"
	@echo "make check   format, lint, types, import contract"
	@echo "make docs    build the documentation into site/"
	@echo "make bench   run the benchmarks"

$(CORE): requirements/core.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Clew needs Python 3.11 or newer; this is {v.major}.{v.minor}. Try: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/core.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

$(DEV): $(CORE) requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/dev.txt
	@touch $@

venv: $(DEV)

demo: $(CORE)
	@$(BIN)/clew replay examples/session.jsonl --policy pi --window 32000 --html out/demo.html

# The report page is tested in a real browser. Chromium comes from the system's packages when there is none.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { SUDO=$$(test "$$(id -u)" = 0 || echo sudo); \
	       $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

test: $(DEV) browser
	@$(BIN)/python -m pytest -n auto

check: $(DEV)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(DEV)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(DEV)
	@$(BIN)/zensical build --strict --clean

bench: $(DEV)
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# Rewrites the lock files from pyproject.toml.
lock:
	@$(PYTHON) -m venv build/lock && build/lock/bin/pip install -q uv
	@build/lock/bin/uv pip compile -q --universal --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links \
	  --generate-hashes pyproject.toml -o requirements/core.txt
	@build/lock/bin/uv pip compile -q --universal --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links \
	  --generate-hashes --all-extras --group dev pyproject.toml -o requirements/dev.txt

clean:
	rm -rf $(VENV) build dist site out .pytest_cache .mypy_cache .ruff_cache .hypothesis
