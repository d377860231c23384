# Every target sets itself up: only Python 3.11+, make and (for speed) a C compiler are expected.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
HOT := $(shell sed -n 's|^    "\(src/ottla/.*\.py\)",$$|\1|p' setup.py)
# What chance decides in tests, their order first of all: the same each time, unless another seed is asked for.
SEED ?= 0

.PHONY: demo test interop bench lint format soak fuzz docs messages lock clean

demo: $(READY)
	$(BIN)/python -m ottla.cli.demo

# Three at a time on two cores: tests also wait, for brokers and Spark to start.
test: $(READY) lint
	$(BIN)/pytest tests --ignore=tests/interop -n 3 --dist worksteal -q --randomly-seed=$(SEED)
	$(BIN)/pytest tests/records -q --kernel=interpreted --randomly-seed=$(SEED)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

interop: $(READY)
	$(BIN)/pytest tests/interop -q --timeout=900 --randomly-seed=$(SEED)

bench: $(READY)
	$(BIN)/python -m benchmarks

soak: $(READY)
	$(BIN)/python -m tests.soak

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz

docs: $(READY)
	$(BIN)/python -m ottla.cli.docs
	$(BIN)/python -m tests.conversation.page

# The classes of Kafka's messages, from kio's definitions.
messages: $(READY)
	$(BIN)/python tools/generate_messages.py

lock: $(READY)
	$(BIN)/pip install -q uv
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 \
	  --extra parquet --extra spark pyproject.toml requirements/dev.in -o requirements/dev.txt

# Kernels and hot modules are compiled in place; an edited one makes the environment stale, and is compiled again.
$(READY): $(INSTALLED) setup.py $(wildcard src/ottla/*/*kernel.p*) $(HOT)
	OTTLA_COMPILE=strict $(BIN)/python setup.py -q build_ext --inplace --parallel 2
	find src -name '*.so' -exec touch {} +
	$(BIN)/python -m compileall -q src
	touch $(READY)

$(INSTALLED): requirements/dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --require-hashes -r requirements/dev.txt
	OTTLA_COMPILE=no $(BIN)/pip install -q --no-deps --no-build-isolation -e .
	touch $(INSTALLED)

clean:
	rm -rf $(VENV) .build build src/*.so src/ottla/*.so src/ottla/*/*.so src/ottla/*/*kernel.c
