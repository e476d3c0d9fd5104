# Everything a person does in this repository is a target here; `.ci/run` calls nothing else.
#
#   make demo     the main job: best of N on the small real model
#   make test     all tests
#   make bench    all benchmarks, into benchmarks/results/
#   make lint     formatting, lint rules, import contracts
#   make types    mypy --strict
#   make wheel    a wheel and a source archive in dist/; the wheel carries the runners, ready built
#   make docs     rebuild the generated pages of docs/
#   make bindings rebuild what the compiled guest SDKs have of wit/
#   make transcripts  write what the conformance suite of the guest SDKs expects, from its program in Python
#   make toolchains  install what builds programs in Rust, on Debian as root; otherwise say what is left out
#   make clean    remove what the other targets made, but not .venv (`make distclean`) or the user's caches
#
# Needs make, a Python from 3.11 to 3.13 with venv, and a package index.

VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
PYTEST_ARGS ?=
CANDIDATES := python3 python3.13 python3.12 python3.11
PYTHON ?= $(shell for python in $(CANDIDATES); do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$python && break; done)

export PIP_ROOT_USER_ACTION := ignore

define COPY_RUNNERS
import shutil
from tartlet.languages.registry import LANGUAGES
from tartlet.progress import silent
for language in LANGUAGES:
    if language.source_mode is not None:
        shutil.copyfile(language.source_mode.runner_component(silent), f"build/runner/{language.name}.wasm")
endef
export COPY_RUNNERS

.PHONY: demo test bench lint types wheel docs bindings transcripts toolchains constraints install install-dev clean distclean
.DELETE_ON_ERROR:

demo: install
	@$(BIN)/tartlet run examples/best_of_n --input '{"n": 5}'

test: install-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: install-dev
	$(BIN)/python -m benchmarks

lint: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: install-dev
	$(BIN)/mypy -p tartlet -p tartlet_engine
	MYPYPATH=guest-sdk/bindings $(BIN)/mypy -p tartlet_bindings

wheel: install-dev
	mkdir -p build/runner
	$(BIN)/python -c "$$COPY_RUNNERS"
	$(BIN)/python -m build --no-isolation --sdist --wheel --outdir dist .

docs: install-dev
	$(BIN)/python -m tartlet.wit_docs docs/wit.md

bindings: install-dev
	PYTHONPATH=guest-sdk/bindings $(BIN)/python -m tartlet_bindings

transcripts: install-dev
	$(BIN)/python guest-sdk/conformance/record.py

toolchains:
	./.ci/toolchains

# The versions that the tests ran with. The torch in use may be a local build (+cpu), which an index does not know.
constraints:
	$(PIP) freeze --exclude-editable --all | grep -E '^[A-Za-z0-9_.-]+==' | grep -vi '^torch==' > constraints.new
	(echo '# The versions that the tests ran with; `make constraints` writes this file.'; \
		(cat constraints.new; echo '$(TORCH)') | LC_ALL=C sort -f) > constraints.txt
	rm constraints.new

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

# torch first and by version: left to the resolver, it may become a build of several gigabytes.
$(VENV)/.torch:
	@test -n "$(PYTHON)" || { echo "No Python from 3.11 to 3.13 with venv found; name one: make PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt pip
	$(PIP) install --constraint constraints.txt $(TORCH)
	@touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[build]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.torch pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf build dist benchmarks/results
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
