# Commands of the project. Every target creates .venv and installs what it needs; the second call starts at once.
# Settings: PYTHON=python3.12 (the interpreter that makes .venv); for `verify` TIER= SEED= CLAIMS= WORKERS= DASK= OUT=; for
# `figures` and `report` CHAPTERS= SEED= WORKERS=.

PYTHON ?= python3
VENV ?= .venv
TIER ?= standard
SEED ?=
CLAIMS ?=
CHAPTERS ?=
WORKERS ?=
DASK ?=
OUT ?=
ARGS ?=
PICTURE_OPTIONS = $(if $(SEED),--seed $(SEED)) $(if $(WORKERS),--workers $(WORKERS))

BIN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
UV_VENV = uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" $(VENV)
UV_INSTALL = uv pip install --quiet --python $(BIN)
PIP_INSTALL = $(BIN) -m pip install --quiet --disable-pip-version-check
CHECKED := derivations numerics verify tests tools

.DEFAULT_GOAL := help
.PHONY: bench-peers help verify figures report test bench lint format clean

help: ## show this help
	@echo "make TARGET [SETTING=value ...]"
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  \1@\2/p' $(MAKEFILE_LIST) | awk -F@ '{ printf "%-14s %s\n", $$1, $$2 }'

verify: $(STAMP) ## judge every claim by Monte Carlo: TIER=quick|standard|full SEED= CLAIMS="bbp ..." WORKERS= DASK=tcp://... OUT=
	@$(BIN) -m verify $(CLAIMS) --tier $(TIER) $(if $(SEED),--seed $(SEED)) $(if $(WORKERS),--workers $(WORKERS)) $(if $(DASK),--dask '$(DASK)') $(if $(OUT),--out $(OUT))

figures: $(STAMP) ## draw the figures into figures/: CHAPTERS="bbp ..." SEED= WORKERS=
	@$(BIN) -m verify figures $(CHAPTERS) $(PICTURE_OPTIONS)

report: $(STAMP) ## write the HTML report from stored draws and figures: CHAPTERS="bbp ..." SEED= WORKERS= OUT=
	@$(BIN) -m verify report $(CHAPTERS) $(PICTURE_OPTIONS) $(if $(OUT),--out $(OUT))

test: $(STAMP) ## run the tests, without the benchmarks: ARGS="-k bbp" goes to pytest
	@$(BIN) -m pytest -n auto --dist worksteal --benchmark-skip $(ARGS)

bench: $(STAMP) ## run the benchmarks, each beside its baseline
	@$(BIN) -m pytest --benchmark-only $(ARGS)

bench-peers: $(STAMP) ## time and error of rmtool and freealg on the same tasks, in an environment of their own
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -c "import rmtool, freealg" 2>/dev/null || .venv-peers/bin/python -m pip install --quiet "rmtool>=1,<2" "freealg>=0.12,<1"
	@$(BIN) tools/bench_peers.py .venv-peers/bin/python

lint: $(STAMP) ## check style (ruff) and types (mypy)
	@$(BIN) -m ruff check $(CHECKED)
	@$(BIN) -m ruff format --check $(CHECKED)
	@$(BIN) -m mypy derivations numerics verify

format: $(STAMP) ## format the code and sort the imports
	@$(BIN) -m ruff check --fix --quiet $(CHECKED)
	@$(BIN) -m ruff format $(CHECKED)

clean: ## remove .venv and all caches; stored draws and results stay
	rm -rf $(VENV) build dist *.egg-info .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find $(CHECKED) -type d -name __pycache__ -prune -exec rm -rf {} +

# Installed once, and again when pyproject.toml changes. uv is used where there is one, else venv and pip.
$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found; install Python 3.11 or later, or name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1); name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "installing into $(VENV) (once) ..."
	@{ command -v uv >/dev/null && $(UV_VENV) && $(UV_INSTALL) --editable '.[test,dev]'; } || \
	{ $(PYTHON) -m venv $(VENV) && $(PIP_INSTALL) --editable '.[test,dev]'; }
	@{ command -v uv >/dev/null && $(UV_INSTALL) --only-binary heyoka --editable '.[fast]' 2>/dev/null; } || \
	$(PIP_INSTALL) --only-binary heyoka --editable '.[fast]' 2>/dev/null || \
	echo "heyoka could not be installed (is there a wheel for this platform?): without the fast backend all else works"
	@touch $(STAMP)
