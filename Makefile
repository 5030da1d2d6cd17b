# One way to run things: here, in continuous integration and at the desk. Needs Python >= 3.11 and make.

PYTHON ?= python3
CORPUS ?= tests/data/held_out
BIN := .venv/bin

.PHONY: try test check bench eval

try: .venv/.ready  ## complete the examples through the server
	$(BIN)/mercury-lsp try

test: .venv/.ready  ## all tests that need no accelerator
	$(BIN)/python -m pytest -m "not gpu"

check: .venv/.ready  ## formatting, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.ready  ## every benchmark; each writes to benchmarks/results
	set -e; for script in $(sort $(wildcard benchmarks/*.py)); do echo "$$script"; $(BIN)/python "$$script"; done

eval: .venv/.ready  ## keystroke replay, infill, calibration; CORPUS=DIR for other sources, LIMIT=N for a quick look
	set -e; for suite in replay infill calibration; do \
		$(BIN)/python -m mercury_engine.evaluation $$suite --json --corpus "$(CORPUS)" $(LIMIT:%=--limit %) \
			--out runs/evaluation/$$suite.json --plots runs/evaluation; done

.venv/.ready: pyproject.toml constraints.txt $(wildcard kernels/mercury_kernels/cpu/*.[ch] kernels/mercury_kernels/cpu/build.py)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev]'
	touch $@
