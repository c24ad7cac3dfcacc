# make demo   train five algorithms on PointReach, print the table beside the paper's, draw the trajectories
# make test   lint, types, tests
# Both set up everything they need in .venv first.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check clean

demo: $(READY)
	$(BIN)/goat bench pointreach --groups pointreach-non-expert-10 --algorithms bc gcsl cql_her wgcsl goat --seeds 3 --out demo
	$(BIN)/goat figure trajectories demo --out demo/trajectories.png

test: check
	$(BIN)/pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(READY): pyproject.toml constraints.txt Makefile
	@test -n "$(PYTHON)" || { echo "goatrl needs Python 3.11, 3.12 or 3.13; install one, or say make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "Python's venv module is missing; installing Debian's python3-venv"; \
		if [ "$$(id -u)" = 0 ]; then apt-get update -q && apt-get install -qy python3-venv; \
		else sudo apt-get update -q && sudo apt-get install -qy python3-venv; fi; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache
