# Each target sets up everything it needs. `make setup` alone leaves .venv/bin/isrflow.
PYTHON ?=
export PYTHON
BIN := .venv/bin

.PHONY: setup test test-all release-check kafka-current lint demo demo-kafka simulate soak bench lock clean

setup: .venv/setup.stamp

.venv/setup.stamp: deploy/requirements.lock pyproject.toml deploy/setup.sh
	@bash deploy/setup.sh

# The tests start several hundred Python processes. Each of them would compile isrflow again if an environment forbade
# Python to write bytecode.
test test-all: export PYTHONDONTWRITEBYTECODE :=

# What a newcomer runs: all tests in one process, and a few of each kind that starts Spark, brokers or a browser.
test: setup lint
	@$(BIN)/python -m pytest --numprocesses=2 --dist=loadgroup \
		-m "smoke or not (spark or kafka_bus or mock_brokers or kraft or zookeeper or browser)"

# Everything but what is marked long. Three workers take 7 GiB. A fourth saves nothing on two cores, even if the tests
# mostly wait.
# tests/README.md says what runs a second time.
test-all: setup lint
	@$(BIN)/python -m tests.support.second_chance --numprocesses=3 --dist=loadgroup -m "not long"

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

demo: setup
	@$(BIN)/isrflow demo $(ARGS)

demo-kafka: setup
	@$(BIN)/isrflow demo --kafka $(ARGS)

simulate: setup
	@$(BIN)/python -m tests.simulation.run --seed $(or $(SEED),1) --count $(or $(N),1000) $(ARGS)

# An engine under load for MINUTES. Fails if anything grows, and leaves samples and a plot in build/soak.
soak: setup
	@$(BIN)/python -m tests.soak.run --minutes $(or $(MINUTES),2) --out build/soak $(ARGS)

# bench/README.md lists the benchmarks: make bench-quick, make bench-layers, ... Each writes into build/bench.
bench: setup
	@$(BIN)/python -m bench.run $(ARGS)

bench-%: setup
	@$(BIN)/python -m bench.run $* $(ARGS)

# Write deploy/requirements.lock again from pyproject.toml, and conf/jars.lock.toml from the roots in
# deploy/lock_jars.py. This is the only target that needs uv.
lock: setup
	@command -v uv >/dev/null || { echo "make lock needs uv: install it with 'pip install uv'." >&2; exit 1; }
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --upgrade \
	    --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet -o deploy/requirements.lock
	uv pip compile pyproject.toml --extra engine --extra zookeeper --universal --python-version 3.11 --generate-hashes \
	    --constraint deploy/requirements.lock --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet \
	    -o deploy/container/engine.lock
	@$(BIN)/python deploy/lock_jars.py

# Says which versions of Kafka are newer than those that isrflow runs, and what they change for a controller.
kafka-current: setup
	@$(BIN)/python -m deploy.kafka_current

# Says whether this commit can be released, and builds it into dist.
release-check: setup
	@$(BIN)/python -m deploy.release_check

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
