# Each target does all its own set-up on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-dev
READY_DEMO := $(VENV)/.ready-demo

.PHONY: test demo docs lint format bench clean

# .ready-EXTRA: the environment holds the package with that extra; the demonstration needs less than the tests.
$(VENV)/.ready-%: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("scalegrad needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@

test: $(READY)
	@start=$$(date +%s); \
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy \
	&& $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS) \
	&& echo "make test: green in $$(( $$(date +%s) - start )) s (set-up not counted)"

demo: $(READY_DEMO)
	$(BIN)/scalegrad demo --out demo

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html is the documentation (with search: $(BIN)/mkdocs serve)"

lint: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks cpu

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache dist build
