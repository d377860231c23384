# Every target sets itself up: only Python 3.11+, make and (for speed) a C compiler are expected.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
BUILT := $(VENV)/.built
COMPILERS := $(VENV)/.compilers
# Everything that is compiled, in whatever folder it lies.
COMPILED := $(shell sed -n 's|\.|/|g; s|^ottla/.*|src/&.py|p' src/ottla/compiled.txt)
SOURCES := $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.pxd' -o -name '*.txt' -not -path '*.egg-info/*')
WHEEL := .build/wheel/.built
MEASURED := .build/measured/.ready
# What chance decides in tests, their order first of all: the same each time, unless another seed is asked for.
SEED ?= 0

.PHONY: demo test interop bench lint format soak fuzz docs messages lock release-check clean

demo: $(READY)
	$(BIN)/python -m tools.demo

# Four at a time on two cores: tests also wait, for brokers and Spark to start.
test: $(WHEEL) lint
	$(BIN)/pytest tests --ignore=tests/interop -n 4 --dist worksteal -q --randomly-seed=$(SEED)
	$(BIN)/pytest tests/records -q --kernel=interpreted --randomly-seed=$(SEED)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_code.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

interop: $(WHEEL)
	$(BIN)/pytest tests/interop -q --timeout=900 --randomly-seed=$(SEED)

bench: $(MEASURED)
	.build/measured/bin/python -m benchmarks

soak: $(READY)
	$(BIN)/python -m tests.soak

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz

docs: $(READY)
	$(BIN)/python -m tools.generate_docs
	$(BIN)/python -m tests.conversation.page
	$(BIN)/python tools/import_graph.py --write

# The classes of Kafka's messages, from kio's definitions.
messages: $(READY)
	$(BIN)/python tools/generate_messages.py

lock: $(READY)
	$(BIN)/pip install -q uv
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 \
	  --extra parquet --extra spark pyproject.toml requirements/dev.in -o requirements/dev.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 \
	  -c requirements/dev.txt requirements/build.in -o requirements/build.txt

# Everything that users would get is built and tried; PYTHONS="python3.11 python3.13" for some Pythons only.
release-check: $(READY)
	$(BIN)/python -m tools.release_check $(PYTHONS)

# Packages are downloaded while modules are compiled, which needs none of them.
$(READY): requirements/dev.txt requirements/build.txt pyproject.toml setup.py src/ottla/compiled.txt $(COMPILED) \
  $(filter %.pxd,$(SOURCES))
	@$(MAKE) -s --no-print-directory $(COMPILERS)
	@$(MAKE) -s --no-print-directory -j2 $(INSTALLED) $(BUILT)
	@$(BIN)/python -m compileall -q src
	@touch $(READY)

$(COMPILERS): requirements/build.txt
	@echo "set-up 1/3: a Python environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q --require-hashes -r requirements/build.txt
	@touch $(COMPILERS)

$(INSTALLED): $(COMPILERS) requirements/dev.txt pyproject.toml
	@echo "set-up 2/3: download and install $(shell grep -c == requirements/dev.txt) packages (a minute or two)"
	@$(BIN)/pip install -q --require-hashes -r requirements/dev.txt
	@OTTLA_COMPILE=no $(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $(INSTALLED)

# Kernels and hot modules are compiled in place; an edited one makes the environment stale, and is compiled again.
# What compilers say is shown if they fail.
$(BUILT): $(COMPILERS) setup.py src/ottla/compiled.txt $(COMPILED) $(filter %.pxd,$(SOURCES))
	@echo "set-up 3/3: compile $(words $(COMPILED)) modules (a minute or two the first time)"
	@mkdir -p build
	@OTTLA_COMPILE=strict $(BIN)/python setup.py -q build_ext --inplace >build/compile.log 2>&1 \
	  || { cat build/compile.log; exit 1; }
	@sed -n '/^ottla: NOT/,$$p' build/compile.log
	@find src -name '*.so' -exec touch {} +
	@touch $(BUILT)

# The wheel of this checkout, as users get it; of what is compiled already nothing is compiled again.
$(WHEEL): $(READY) $(SOURCES) README.md
	@echo "wheel: pack"
	@rm -rf .build/wheel && mkdir -p .build/wheel
	@OTTLA_COMPILE=strict $(BIN)/pip wheel -q --no-deps --no-build-isolation -w .build/wheel . >build/wheel.log 2>&1 \
	  || { cat build/wheel.log; exit 1; }
	@touch $(WHEEL)

# What is measured is the wheel, in an environment with the same packages but without this checkout.
$(MEASURED): $(WHEEL) requirements/dev.txt
	@echo "bench: install the wheel into .build/measured"
	@test -x .build/measured/bin/python || $(PYTHON) -m venv .build/measured
	@.build/measured/bin/pip install -q --require-hashes -r requirements/dev.txt
	@.build/measured/bin/pip install -q --no-deps --force-reinstall .build/wheel/*.whl
	@touch $(MEASURED)

clean:
	rm -rf $(VENV) .build build src/*.egg-info
	find src -name '*.so' -delete
