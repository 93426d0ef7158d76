# Two commands: `make run` runs the whole pipeline on the bundled data, `make test` proves it. Both set up .venv first.
SHELL := /bin/sh
BIN := .venv/bin
export PYTHONPATH :=
export FIB_HOME ?= $(CURDIR)/.fib

.DEFAULT_GOAL := help
.PHONY: help setup run test test-all check bench starter pins ui clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup:  ## create .venv from the exact pins (once)
	@sh infra/setup/make_venv.sh

run: setup  ## run the main job on the bundled data and print what was decided
	@$(BIN)/fib run $(ARGS)

test: setup  ## run the tests (not the slow ones)
	@$(BIN)/python -m pytest -m "not slow and not gpu" $(ARGS)

test-all: setup  ## run every test that needs no GPU
	@$(BIN)/python -m pytest -m "not gpu" $(ARGS)

check: setup  ## linters, types, import contracts, file sizes
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python infra/setup/file_sizes.py

bench: setup  ## one benchmark: make bench NAME=apply
	@$(BIN)/python tests/benchmarks/bench_$(NAME).py

starter: setup  ## regenerate the bundled dataset from its sources (deterministic)
	@$(BIN)/python infra/starter/make.py

pins: setup  ## resolve infra/requirements/pipeline.in again (needs uv on PATH)
	@for v in 11 12; do uv pip compile -q --no-header --no-annotate --no-emit-index-url --python-version 3.$$v \
	  infra/requirements/pipeline.in -o infra/requirements/py3$$v.txt; done

ui: setup  ## open the Prefect and MLflow pages of this home
	@$(BIN)/fib ui

clean:  ## remove state and caches of this checkout (not .venv)
	rm -rf .fib build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
