# The two commands: `make bench` and `make test`. Both set up everything they need, once.
# While writing: `make test-fast` runs the tests that need no more than Python and torch, in one to two minutes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: bench test test-fast tools bench-tools check format clean

# What `make bench` runs: any arguments of `torchmark run`.
BENCH ?= standard

# Where the page goes that `make bench` writes of what it has measured, also if some of that failed.
REPORT ?= report.html
# What a run says of itself. It stays empty if there is none, for want of a suite of that name say.
MEASURED := .torchmark/bench.json

bench: $(READY) bench-tools
	@mkdir -p $(dir $(MEASURED)) && rm -f $(MEASURED); \
	$(BIN)/torchmark run $(BENCH) --json $(MEASURED); code=$$?; \
	run=$$(sed -n 's/^ *"id": "\([0-9a-f]*\)",*$$/\1/p' $(MEASURED) 2> /dev/null | head -n 1); \
	if [ -n "$$run" ]; then $(BIN)/torchmark report $$run -o '$(REPORT)' || code=$$(( code ? code : $$? )); fi; \
	exit $$code

# In the order of files: those that take long come first, and many small ones fill what is left. Three processes keep
# two cores busy: one of them waits most of the time, for a worker or for the end of a program.
test: $(READY) tools
	@$(BIN)/python -m pytest -n 3 --no-loadscope-reorder

# Neither Valgrind nor a compiler nor a browser.
FAST := tests/unit tests/test_architecture.py tests/test_public_names.py src --ignore src/torchmark/api
test-fast: $(READY)
	@$(BIN)/python -m pytest -n 2 $(FAST)

# Empty is as if it was not set. Tests start hundreds of processes, which would all compile the program anew.
test test-fast: export PYTHONDONTWRITEBYTECODE :=

# What is needed of the system: Valgrind and a compiler for benchmarks; for tests, also another compiler, a second
# Python with a torch and its headers, and a browser.
OTHER_PYTHON := /usr/bin/python3
OTHER_HEADER := /usr/include/torch/csrc/api/include/torch/torch.h
FIND_TORCH := import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)

# Installs what is in $$missing, if it can; $(1) is who needs it.
define get_missing
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "Installing what the $(1) need of the system:$$missing"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $$missing > /dev/null; \
	else \
	  echo "make: the $(1) need more of the system. Debian, Ubuntu: apt-get install$$missing" >&2; exit 1; \
	fi
endef

define find_missing
	missing=; \
	command -v valgrind > /dev/null || missing="$$missing valgrind"; \
	command -v cc > /dev/null || missing="$$missing gcc libc6-dev"; \
	command -v c++ > /dev/null || missing="$$missing g++"
endef

bench-tools:
	@$(find_missing); \
	$(call get_missing,benchmarks)

tools:
	@$(find_missing); \
	command -v clang++ > /dev/null || missing="$$missing clang"; \
	test -e $(OTHER_HEADER) || missing="$$missing libtorch-dev"; \
	$(OTHER_PYTHON) -c '$(FIND_TORCH)' 2> /dev/null || missing="$$missing python3-torch python3-venv"; \
	command -v chromium > /dev/null || missing="$$missing chromium"; \
	command -v chromedriver > /dev/null || missing="$$missing chromium-driver"; \
	$(call get_missing,tests)

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

# An environment that does not start (its Python was removed, the folder was moved) is made anew.
ifneq ($(shell $(BIN)/python -c pass 2> /dev/null && echo fine),fine)
.PHONY: $(READY)
endif

$(READY): pyproject.toml constraints.txt
	@command -v '$(PYTHON)' > /dev/null || { \
	  echo "make: there is no '$(PYTHON)' here. Install Python 3.10 or newer (Debian, Ubuntu: apt-get install python3 python3-venv), or name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "make: '$(PYTHON)' is too old: torchmark needs Python 3.10 or newer. Name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2> /dev/null || { \
	  echo "make: '$(PYTHON)' cannot make virtual environments. Debian, Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -c pass 2> /dev/null || { echo "Creating $(VENV)"; '$(PYTHON)' -m venv --clear $(VENV); }
	@echo "Installing what torchmark needs into $(VENV) (torch is large: this takes a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt hatchling
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --no-build-isolation --editable '.[dev]'
	@touch $@
