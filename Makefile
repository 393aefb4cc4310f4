# `make help` lists the targets. Python packages are installed into .venv. As root, Debian packages that are missing are
# installed too: bubblewrap and python3-venv by tools/setup, those of the tests by tools/setup-tests.

SHELL := /bin/bash
PYTHON_IN_VENV := .venv/bin/python
SOURCES := $(shell find cockpit tests themes fixtures -type f -not -name '*.pyc')

.PHONY: help setup setup-tests run test real-slurm real-kubernetes kubernetes-answers check format-check lint types imports architecture bench mutants chaos soak pictures requirements sizes format clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-19s%s\n", $$1, $$2 }'

setup: ## prepare .venv and bubblewrap; instant when they are there
	@tools/setup

# Words after `run` go to cockpit (`make run nodes`); options need ARGS (`make run ARGS="jobs -o json"`).
ifeq (run,$(firstword $(MAKECMDGOALS)))
ARGS ?= $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
.DEFAULT: ; @:
endif

setup-tests: setup # what only the tests use: Slurm, podman, MPI, a Kubernetes built once ...
	@tools/setup-tests

run: setup ## open the cockpit on this machine
	@.venv/bin/cockpit $(ARGS)

# Four workers for two cores: tests of the real machine wait for it half of their time, those of a real Slurm for nearly
# all of it. What one process has compiled the others read, also where the environment forbids to keep it.
test: setup setup-tests ## all tests; one file: make test TESTS=tests/sched
	@PYTHONDONTWRITEBYTECODE= $(PYTHON_IN_VENV) -m pytest -n 4 --dist loadgroup --requirements=.requirements.json $(TESTS)

real-slurm: ## the tests of a real Slurm of another Debian (RELEASE=trixie, forky, bullseye) in a chroot; as root
	@tools/real-slurm $(TESTS)

real-kubernetes: setup setup-tests ## the tests of a real Kubernetes, which is built once with Go
	@$(PYTHON_IN_VENV) -m pytest -p no:xdist -m real_kubernetes $(or $(TESTS),tests/real)

kubernetes-answers: setup setup-tests ## answers about waiting pods against the real scheduler: make kubernetes-answers ARGS="--seed 2026 --count 342"
	@$(PYTHON_IN_VENV) -m tests.real.kubernetes.answers $(ARGS)

check: format-check lint types imports architecture ## format, lint, types, import contracts, architecture tests

format-check: setup
	@$(PYTHON_IN_VENV) -m ruff format --check --quiet --diff .

lint: setup
	@$(PYTHON_IN_VENV) -m ruff check --quiet .

types: setup
	@$(PYTHON_IN_VENV) -m mypy --no-error-summary

imports: setup
	@.venv/bin/lint-imports --no-logo

architecture: setup
	@$(PYTHON_IN_VENV) -m pytest -q tests/test_architecture.py

format: setup ## format and sort imports in place
	@$(PYTHON_IN_VENV) -m ruff format --quiet . && $(PYTHON_IN_VENV) -m ruff check --quiet --fix --select I .

bench: setup ## measure every figure and print it beside its bar; writes bench.json
	@$(PYTHON_IN_VENV) -m pytest -q -p no:xdist -o python_files='bench_*.py' --figures=bench.json tests/bench

mutants: setup ## small mutations of the product that its tests miss: make mutants ARGS="--layer sched --count 25 --seed 1"
	@$(PYTHON_IN_VENV) -m tools.mutants $(ARGS)

chaos: setup setup-tests ## elastic jobs while everything fails, for ten minutes: make chaos ARGS=SEED:MINUTES
	@COCKPIT_CHAOS=$(or $(ARGS),1:10) $(PYTHON_IN_VENV) -m pytest -q tests/e2e/chaos

soak: setup ## a monkey at the demo and at a real engine, 3 000 events each: make soak ARGS=SEED:EVENTS
	@COCKPIT_SOAK=$(or $(ARGS),1:3000) $(PYTHON_IN_VENV) -m pytest -q -p no:xdist tests/tui/test_monkey.py

pictures: setup ## docs/pictures: the cockpit as the scripts in fixtures/plays see it
	@set -e; for script in fixtures/plays/*.play; do .venv/bin/cockpit play "$$script" --out docs/pictures; done
	@rm docs/pictures/*.txt

# Runs the tests only when something changed since they last ran.
.requirements.json: $(SOURCES)
	@$(MAKE) test

requirements: setup .requirements.json ## docs/requirements.md: which promises passed tests prove
	@$(PYTHON_IN_VENV) tools/requirements.py

sizes: ## the longest files and functions, to look at now and then
	@$(PYTHON_IN_VENV) tools/sizes.py

clean: ## remove .venv and everything that tools left
	rm -rf .venv .requirements.json bench.json mutants.json build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .grimp_cache .hypothesis .benchmarks
	find cockpit tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
