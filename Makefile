# Everything on a fresh machine: Python 3.11+ and make are enough. `make demo` first, then `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH_VENV := .venv-torch
SAMPLE := samples/jobs/dataloader_worker_killed_tee/job

.PHONY: help demo test test-torch lint format bench bench-meaning samples screenshots docs docs-check accuracy catalog-check catalog-mutate clean

help: ## Show what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1  \t/p' Makefile

# An environment belongs to the checkout that made it: installing this one into it would silently repoint its `triage`.
.PHONY: own-environment
own-environment:
	@for environment in $(VENV) $(TORCH_VENV); do \
	    [ ! -x $$environment/bin/python ] || $$environment/bin/python .ci/owner.py $$environment "$(CURDIR)" || exit 1; done

$(BIN)/.stamp: pyproject.toml | own-environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'triage needs Python 3.11 or newer: make PYTHON=python3.11 …'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,fast]'
	touch $@

# What pip installs it compiles, but not what is installed to be edited: else each start compiles anew where Python may write no bytecode.
.PHONY: compiled
compiled: $(BIN)/.stamp
	@$(BIN)/python -m compileall -q triage

demo: compiled ## Diagnose a real sample that ships with the project
	@echo '$$ triage ingest $(SAMPLE)'
	@$(BIN)/triage ingest $(SAMPLE)

test: compiled ## All tests (under ten minutes)
	$(BIN)/python -m pytest -n auto

lint: $(BIN)/.stamp ## ruff (format and check) and mypy --strict
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict triage

format: $(BIN)/.stamp ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: compiled ## Measure against ripgrep on 1 GiB of generated logs
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

samples: own-environment ## Record the samples again (needs the CPU build of torch)
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet torch==2.13.0 numpy
	$(TORCH_VENV)/bin/python samples/record/record.py --python $(TORCH_VENV)/bin/python -o samples/jobs

clean: ## Remove what was made
	rm -rf $(VENV) $(TORCH_VENV) build dist .pytest_cache .mypy_cache .ruff_cache bench/data
