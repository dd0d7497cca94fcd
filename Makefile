# Everything a newcomer needs. `make demo` and `make test` set themselves up.
# A Linux machine without an NVIDIA GPU saves gigabytes with PyTorch's own CPU wheels:
#   make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu
# The first Python of 3.11 to 3.14 that runs here, of several with one name the fastest, unless you name one:
#   make demo PYTHON=/path/to/python3
PYTHON ?=
TORCH_INDEX ?=
TORCH_VERSION := 2.13.0
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKS := $(wildcard requirements/*.lock)
STAMP := $(VENV)/.installed-$(shell cat $(LOCKS) Makefile 2>/dev/null | cksum | cut -d' ' -f1)

.PHONY: help install demo up check test test-all mutants lint format bench lock clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' Makefile | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

install: $(STAMP)  ## Make .venv from the lock

$(STAMP): $(LOCKS)
	@test -x $(BIN)/python || { \
	  python="$(or $(PYTHON),$$(tools/pythons.sh | head -n 1))"; \
	  "$${python:-false}" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "$(if $(PYTHON),$(PYTHON) is no Python of 3.11 or newer with venv.,No Python of 3.11 to 3.14 with venv was found.)" \
	      "Install one (Debian and Ubuntu: apt install python3-venv), or name one: make PYTHON=/path/to/python3 ..."; exit 1; }; \
	  echo "$$python -m venv $(VENV)"; "$$python" -m venv $(VENV); }
	$(PIP) --no-deps --require-hashes -r requirements/dev.lock
	$(if $(TORCH_VERSION),$(PIP) torch==$(TORCH_VERSION) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)))
	$(PIP) --no-deps --no-build-isolation --editable .
	rm -f $(VENV)/.installed-*
	touch $@

demo: install  ## Run the whole study with simulated respondents, then serve it (ARGS="--exit" to end after the table)
	$(BIN)/python manage.py demo $(ARGS)

up: install  ## Start web, workers and beat under one process manager
	$(BIN)/python manage.py up $(ARGS)

check: install  ## Run the fast tests: no server, browser or torch (ARGS="--repeat 10" for ten orders)
	$(BIN)/python -m tests.run --fast $(ARGS)

test: install  ## Run the tests but the thorough ones (ARGS="--repeat 3" for three orders, ARGS="--shuffle 7" for one again)
	$(BIN)/python -m tests.run $(ARGS)

test-all: install  ## Run all tests, and all that use the database on PostgreSQL too
	$(BIN)/python -m tests.run --all $(ARGS)

mutants: install  ## Put small faults into a package, and list what no test notices (ARGS=survey/panels)
	$(BIN)/python -m tests.mutants $(ARGS)

lint: install  ## ruff, mypy (django-stubs), import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install  ## Let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install  ## Run every benchmark; each ends in one line of JSON
	@for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit $$?; done

lock: install  ## Resolve requirements/*.in again (PACKAGE=name: upgrade this package alone)
	$(PIP) uv
	$(BIN)/python tools/lock.py $(if $(PACKAGE),--package $(PACKAGE))
	@echo "Now: make install && $(BIN)/python tools/third_party_notices.py"

clean:  ## Remove the virtual environment and every run-time file
	rm -rf $(VENV) .venv-second var .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
