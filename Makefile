# Everything runs in .venv, made on first use from any Python >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench profile docs clean

demo: $(VENV)/.demo
	$(BIN)/dqd demo --out runs/demo

# A worker that crashes, or a test of more than 20 minutes, ends the run at once instead of holding it up for ever.
# Most tests have their programs compiled in the way that is quickest. Those marked `exact` compare bits of two programs.
# A version of XLA that does not know a flag ends the program: then it is left out.
known = $(shell XLA_FLAGS=$(1) JAX_PLATFORMS=cpu $(BIN)/python -c "import jax; jax.devices()" > /dev/null 2>&1 && echo $(1))
WHOLE = $(call known,--xla_cpu_parallel_codegen_split_count=1)
QUICK = $(call known,--xla_cpu_use_fusion_emitters=false) $(WHOLE)
EXACT = $(shell grep -rlw --include='test_*.py' mark.exact tests)
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal --max-worker-restart 0 \
	-o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true
test: lint
	XLA_FLAGS="$(QUICK)" $(PYTEST) -m "not long and not exact"
	XLA_FLAGS="$(WHOLE)" $(PYTEST) -m "exact and not long" $(EXACT)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/scaling.py

# Of one iteration: its kernels, the time of each, copies and calls of libraries; on a GPU where there is one.
profile: $(VENV)/.test
	$(BIN)/python benchmarks/anatomy.py

# Without the network: the pages load nothing from elsewhere.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -E -b html docs build/docs
	@echo "build/docs/index.html"

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[pandas,report,view]"
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[pandas,test,lint,docs]"
	touch $@ $(VENV)/.demo $(VENV)/.docs

$(VENV)/.docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
