# make demo   train five algorithms on PointReach, print the table beside the paper's, draw the trajectories
# make test   lint, types, tests
# make test-cluster   only the tests that kill nodes of a Ray cluster
# make test-fast   only the quick tests, for the inner loop
# make test-fuzz   many damaged and crafted files and command lines
# make test-faults   a crash or a failing disk at every step of every write, kills, commands at once
# make docs   build the documentation as a site, in site/
# All set up everything they need in .venv first; the tests of the report also need a browser, which is installed if there is none.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable

# $(call install,PACKAGE): by Debian's package manager, as root or with sudo
install = if [ "$$(id -u)" = 0 ]; then apt-get update -q && apt-get install -qy --no-install-recommends $(1); \
	else sudo apt-get update -q && sudo apt-get install -qy --no-install-recommends $(1); fi

.PHONY: demo docs test test-fast test-cluster test-faults test-fuzz check browser clean

demo: $(READY)
	$(BIN)/goat bench pointreach --groups pointreach-non-expert-10 --algorithms bc gcsl cql_her wgcsl goat --seeds 3 --out demo
	$(BIN)/goat figure trajectories demo --out demo/trajectories.png

# Material warns of MkDocs 2, which it does not install
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: check browser
	$(BIN)/pytest

test-fast: $(READY)
	$(BIN)/pytest -m 'not slow and not cluster'

test-fuzz: $(READY)
	GOATRL_FUZZ_CASES=500 $(BIN)/pytest -n 0 -s tests/fuzz

test-faults: $(READY)
	cd tests && ../$(BIN)/python -m crashes

test-cluster: $(READY)
	$(BIN)/pytest -n 0 -m cluster

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini

browser:
	@if command -v chromedriver >/dev/null; then for name in $(BROWSERS); do command -v $$name >/dev/null && exit 0; done; fi; \
	echo "No browser with its driver found for the tests of the report; installing Debian's chromium and chromium-driver"; \
	{ $(call install,chromium chromium-driver); } || echo "That failed: the tests that need a browser will be skipped"

$(READY): pyproject.toml constraints.txt Makefile
	@test -n "$(PYTHON)" || { echo "goatrl needs Python 3.11, 3.12 or 3.13; install one, or say make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "Python's venv module is missing; installing Debian's python3-venv"; $(call install,python3-venv); }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache
