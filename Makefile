# Everything on a fresh machine: Python 3.11+ and make are enough. `make demo` first, then `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH_VENV := .venv-torch
MINIMUM_VENV := .venv-minimum
SAMPLE := samples/jobs/dataloader_worker_killed_tee/job

.PHONY: help demo test test-thorough test-torch lint format bench bench-meaning samples screenshots team docs docs-check accuracy drill hostile fuzz mutate coverage trust lock test-minimum dist sbom catalog-check catalog-mutate clean

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1  \t/p' Makefile

# An environment belongs to the checkout that made it: installing this one into it would silently repoint its `triage`.
.PHONY: own-environment
own-environment:
	@for environment in $(VENV) $(TORCH_VENV) $(MINIMUM_VENV); do \
	    [ ! -x $$environment/bin/python ] || $$environment/bin/python .ci/owner.py $$environment "$(CURDIR)" || exit 1; done

# LOCKED=1 installs only files whose digests are in .ci/locked.txt, as .ci/run does; else the newest that pyproject.toml permits.
LOCKED ?=
$(BIN)/.stamp: pyproject.toml $(if $(LOCKED),.ci/locked.txt) | own-environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'triage needs Python 3.11 or newer: make PYTHON=python3.11 …'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(if $(LOCKED),$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/locked.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(LOCKED),--no-deps --no-build-isolation --editable .,--editable '.[dev,fast]')
	touch $@

# What pip installs it compiles, but not what is installed to be edited: else each start compiles anew where Python may write no bytecode.
.PHONY: compiled
compiled: $(BIN)/.stamp
	@$(BIN)/python -m compileall -q triage

demo: compiled ## Diagnose a real sample that ships with the project
	@echo '$$ triage ingest $(SAMPLE)'
	@$(BIN)/triage ingest $(SAMPLE)

test: compiled ## All tests (about 25 minutes on two cores)
	$(BIN)/python -m pytest -n auto --dist worksteal

test-thorough: compiled ## All tests with all examples and variants, of which `make test` tries a part (an hour)
	TRIAGE_TESTS=thorough $(BIN)/python -m pytest -n auto --dist worksteal

lint: $(BIN)/.stamp ## ruff (format and check), the fixtures of the tests, and mypy --strict
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -p no:cacheprovider tests/test_fixtures.py
	$(BIN)/mypy --strict triage

format: $(BIN)/.stamp ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: compiled ## Measure against ripgrep on 1 GiB of generated logs, and write docs/performance.md (20 GB of disk)
	$(BIN)/python bench/run.py

bench-meaning: $(TORCH_VENV)/.stamp ## Measure search by meaning beside full text, and write its table in docs/clustering.md
	$(TORCH_VENV)/bin/python bench/meaning.py --write

catalog-check: $(BIN)/.stamp ## Every signature proves its samples and is silent on healthy jobs
	$(BIN)/triage catalog check

catalog-mutate: $(BIN)/.stamp ## Every clause and every edge of a signature is missed when it is gone (some minutes)
	$(BIN)/triage catalog mutate

docs: $(BIN)/.stamp ## Write what documents take from the program: README's session, docs/signature-index.md, docs/signatures/
	$(BIN)/python docs/generate.py

reasoning: $(BIN)/.stamp ## Measure what each rule is worth and write docs/reasoning.md
	$(BIN)/python docs/measure.py

docs-check: $(BIN)/.stamp ## The documents agree with the program
	$(BIN)/python -m pytest tests/test_docs.py tests/cli

accuracy: $(BIN)/.stamp ## Measure verdicts, roots, ranks and hosts on all composed jobs and write docs/accuracy.md (hours)
	$(BIN)/python bench/accuracy.py all

# Faults at random moments; each drill is repeated N times.
N ?= 20
drill: compiled ## Kill, stop and starve ingest, serve, watch, outbox and migrations N times each, and count what was lost
	$(BIN)/python -m tests.drills --rounds $(N)

hostile: compiled ## Diagnose every class of hostile input at full size (some minutes, 4 GB of disk)
	$(BIN)/python bench/hostile.py

# Seconds for each harness. Atheris has wheels for some versions of Python only; the tests do not need it.
TIME ?= 600
fuzz: compiled ## Fuzz each parser of untrusted bytes for TIME seconds, and keep what breaks one in build/fuzz/findings
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	nice -n 10 $(BIN)/python -m tests.fuzz $(TIME)

# `make mutate N=20 ROOM=clusters` tries fewer; N has another default than for drills.
ROOM ?=
mutate: MUTANTS = $(if $(filter file,$(origin N)),300,$(N))
mutate: compiled ## Change N comparisons, constants and guards in each of five packages, and list the changes that no test notices (hours)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutate]'
	nice -n 10 $(BIN)/python -m tests.mutation $(MUTANTS) $(ROOM)

coverage: compiled ## Measure which lines and branches the tests run, in the packages that read and judge evidence, or with ROOM=store those of its own tests
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutate]'
	$(BIN)/python bench/line_coverage.py $(ROOM)

trust: $(BIN)/.stamp ## Write docs/trust.md from what hostile, fuzz, drill, mutate and coverage measured
	$(BIN)/python bench/trust.py

# One file for all platforms and Pythons, and one with the oldest versions for the oldest Python on Linux.
LOCK := $(BIN)/uv pip compile pyproject.toml --python-version 3.11 --upgrade --generate-hashes --no-annotate --quiet --custom-compile-command 'make lock'
lock: $(BIN)/.stamp ## Choose the newest versions for .ci/locked.txt, and the oldest permitted ones for .ci/minimum.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCK) --universal --extra dev --extra fast -o .ci/locked.txt
	$(LOCK) --resolution lowest-direct --no-build --python-platform x86_64-manylinux_2_28 --extra web --extra slack --extra similar --extra postgres --extra fast --extra test -o .ci/minimum.txt

$(MINIMUM_VENV)/.stamp: pyproject.toml .ci/minimum.txt | own-environment
	$(PYTHON) -m venv $(MINIMUM_VENV)
	$(MINIMUM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r .ci/minimum.txt
	$(MINIMUM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Old packages warn of what newer ones changed, so warnings are no errors here.
MINIMUM_TESTS := tests/scan tests/sources tests/artifacts tests/settings tests/render tests/store tests/bots tests/catalog/test_load.py \
    tests/catalog/test_read.py tests/catalog/test_match.py tests/service/test_access.py tests/service/test_security.py tests/test_samples.py
test-minimum: $(MINIMUM_VENV)/.stamp ## The tests that depend on other packages, with the oldest permitted versions (Python 3.11, Linux)
	$(MINIMUM_VENV)/bin/python -m pytest -n auto -W default $(MINIMUM_TESTS)

dist: $(BIN)/.stamp ## Build the wheel and the sdist of the last commit twice, compare their bytes, and write dist/
	$(BIN)/python .ci/build.py

sbom: $(BIN)/.stamp ## List the packages that the installed triage uses in dist/sbom.json (CycloneDX)
	$(BIN)/python .ci/sbom.py

# The last two lines bring sources that tests/with_torch/test_raise_statements.py reads, and nothing that they depend on. The setup of
# DeepSpeed imports torch.
$(TORCH_VENV)/.stamp: pyproject.toml | own-environment
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[torch]'
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps accelerate==1.15.0 lightning==2.6.6 transformers==5.23.0 ray==2.60.0
	DS_BUILD_OPS=0 $(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation deepspeed==0.19.8
	touch $@

test-torch: $(BIN)/.stamp $(TORCH_VENV)/.stamp ## The tests that need torch 2.13.0, in an environment of its own
	TRIAGE_TORCH=$(CURDIR)/$(TORCH_VENV)/bin/python $(BIN)/python -m pytest tests/with_torch

screenshots: $(BIN)/.stamp ## Make the pictures of docs/web.md again (needs chromium)
	$(BIN)/python docs/screenshots.py

team: compiled ## Play a week of a support team on 500 composed jobs and write docs/team.md (some minutes)
	$(BIN)/python docs/team.py

samples: own-environment ## Record the samples again (needs the CPU build of torch)
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet torch==2.13.0 numpy
	$(TORCH_VENV)/bin/python samples/record/record.py --python $(TORCH_VENV)/bin/python -o samples/jobs

clean: ## Remove what was made
	rm -rf $(VENV) $(TORCH_VENV) $(MINIMUM_VENV) build dist .pytest_cache .mypy_cache .ruff_cache bench/data
