# Every target sets itself up: a clean clone needs python3 (3.11 or newer, with venv and pip) and make.
# The stamps in .venv remember what is installed, so a second run calls no pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

DEMO_EXTRAS := plot,text
TEST_EXTRAS := $(DEMO_EXTRAS),sklearn,web,notebook,zh,vision,audio,export,ct2,hf,docs,dev

# Two test processes with one thread each. Threads that compete for a core make small operations
# up to 200 times slower, so raise WORKERS rather than the threads.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST_ARGS ?=

# The pins hold on every pip line, in isolated builds too: an unpinned torch may be gigabytes of CUDA.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PIP_INSTALL := $(BIN)/python -m pip install --quiet

DEMO_STAMP := $(VENV)/.installed-demo
TEST_STAMP := $(VENV)/.installed-test

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz mutate hostile kills sanitize coverage check fix peers agreement bench docs wheel clean
.NOTPARALLEL: # two pips must not write to one environment

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

# Some systems package venv without its own pip; the one at hand then installs it.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) \
	    && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

$(DEMO_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[$(DEMO_EXTRAS)]'
	@touch $@

$(TEST_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[$(TEST_EXTRAS)]'
	@touch $(DEMO_STAMP) $@

demo: $(DEMO_STAMP) ## see it work
	$(BIN)/regard demo --output regard-demo.png

test: $(TEST_STAMP) ## every test and doctest
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

MINUTES ?= 60
SEED ?= 0
WITHOUT ?=
fuzz: $(TEST_STAMP) ## compare random attentions with the definition for MINUTES=60; failures are kept as tests
	$(ONE_THREAD) $(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED) --without '$(WITHOUT)'

COUNT ?= 150
mutate: $(TEST_STAMP) ## change COUNT=150 lines, one at a time, and see whether the tests notice
	$(ONE_THREAD) $(BIN)/python -m tests.mutation --count $(COUNT) --seed $(SEED) --workers $(WORKERS)

# The library is built with both sanitizers, in a cache of its own; their runtime must be loaded before Python.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1
SANITIZED := tests/compute/kernels tests/models/kernels $(addprefix tests/contracts/test_,few_queries.py layout.py leads.py)
# Tests that compile, with our compiler or torch's, take minutes under a sanitizer.
UNSANITIZED := not compile and not traced and not graph and not generated
sanitize: $(TEST_STAMP) ## the tests of our C++ loops under AddressSanitizer and UBSan
	$(ONE_THREAD) REGARD_CXXFLAGS='$(SANITIZERS)' REGARD_CACHE=$(CURDIR)/build/sanitized ASAN_OPTIONS=detect_leaks=0 \
	    LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	    $(BIN)/python -m pytest -n 0 -x $(SANITIZED) --ignore tests/compute/kernels/test_native.py -k '$(UNSANITIZED)' $(PYTEST_ARGS)

coverage: $(TEST_STAMP) ## make test with branch coverage of algebra and compute; takes twice as long
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term $(PYTEST_ARGS)

# Damaged images, sounds, recordings, run folders and requests: none may cause an exception that is not ours.
hostile: COUNT := 20000 # unless the command line gives another
hostile: $(TEST_STAMP) ## COUNT=20000 damaged files and requests: no status 500, no traceback, no growing memory
	$(ONE_THREAD) $(BIN)/python -m tests.hostile $(COUNT) $(SEED)

check: $(TEST_STAMP) ## lint, format, types, which module may import which, and docs/catalog.md
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python docs/build.py --check

kills: $(TEST_STAMP) ## kill a run, or fail its disk and its peers, at every operation; writes docs/faults.md
	$(ONE_THREAD) $(BIN)/python tests/training/fault_table.py

fix: $(TEST_STAMP) ## let ruff repair and format what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

peers: $(TEST_STAMP) ## install the libraries that we are compared with, in .venv-peers
	$(BIN)/python -m benchmarks.peers

agreement: peers ## compare our numbers with those of the libraries that people come from; writes benchmarks/results/agreement.json
	KERAS_BACKEND=torch PYTHONPATH=src:. .venv-peers/bin/python -m benchmarks.agreement

bench: peers ## measure every performance claim; let nothing else run meanwhile
	$(BIN)/python -m benchmarks

docs: $(TEST_STAMP) ## docs/catalog.md from the docstrings, and site/: both languages, every block of code run
	$(BIN)/python docs/build.py
	$(ONE_THREAD) NO_MKDOCS_2_WARNING=1 $(BIN)/python docs/website.py

# Every source compiled three times, for processors of any age; auditwheel finds the oldest systems that it runs on.
wheel: $(TEST_STAMP) ## dist/: an sdist, and a wheel with compiled kernels, each tried in an empty environment
	$(PIP_INSTALL) -e '.[release]'
	rm -rf dist build/wheel
	$(BIN)/python -m build --sdist
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/python -m build --wheel --outdir build/wheel
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --only-plat --wheel-dir dist build/wheel/*.whl
	$(BIN)/python release/try_wheel.py dist/*.whl dist/*.tar.gz

clean: ## remove what the other targets made
	rm -rf $(VENV) .venv-peers build dist site .coverage .coverage.* htmlcov .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
