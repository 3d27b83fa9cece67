PYTHON ?= python3
PY := .venv/bin/python
LINKS := schemas pipeline judges annotation dashboards data

.PHONY: setup demo test test-fast test-newest test-oldest lint bench docs clean

setup: .venv/.stamp

.venv/.stamp: pyproject.toml Makefile .ci/constraints.txt
	@{ command -v uv >/dev/null 2>&1 && \
	  uv venv -q --clear --python "$$(command -v $(PYTHON))" .venv && \
	  uv pip install -q --python $(PY) -c .ci/constraints.txt pip -e '.[dev,lake,remote,ray]'; } || \
	{ $(PYTHON) -m venv --clear --without-pip .venv && \
	  $(PYTHON) -m pip --python $(PY) install -q -c .ci/constraints.txt pip -e '.[dev,lake,remote,ray]'; }
	@mkdir -p .typecheck/coaudit
	@for p in $(LINKS); do ln -sfn ../../$$p .typecheck/coaudit/$$p; done
	@ln -sfn ../../coaudit/__init__.py .typecheck/coaudit/__init__.py
	-@$(if $(PYTHONDONTWRITEBYTECODE),$(PY) -m compileall -q -j 0 .venv/lib coaudit $(filter-out data,$(LINKS)))
	@touch $@

# One thread a process: the statistics work on small matrices, over which more threads only fight.
export OPENBLAS_NUM_THREADS := 1
# Bytecode is kept whatever the shell says: without it, each process compiles for seconds all that it imports. A
# shell that has none written is given all of it by `setup`, for commands that are run without make.
unexport PYTHONDONTWRITEBYTECODE

test: setup lint
	$(PY) -P -m pytest -q -r fER -n auto --dist loadgroup

test-fast: setup
	$(PY) -P -m pytest -q -n auto --dist loadgroup -m "not slow and not long"

NEWEST = $(shell for python in python3.14 python3.13 python3.12 $$(ls -d ~/.pyenv/versions/3.1[2-9]*/bin/python3 2>/dev/null | sort -rV); do $$python -c 'import sys; print(sys.executable)' 2>/dev/null && break; done)

# All but the slow tests once more with the newest versions that pyproject.toml admits, on the newest Python that
# is here, and with the oldest, on the system's own Python where that is a 3.11: Debian's 3.11.2 lacks what later
# ones of it have.
test-newest: RESOLUTION := highest
test-newest: PYTHON = $(or $(NEWEST),python3)
# Inspect's own reader needs other versions than those of .ci/constraints.txt.
test-newest: EXTRAS := dev,inspect
test-oldest: EXTRAS := dev
test-oldest: RESOLUTION := lowest-direct
test-oldest: PYTHON := $(or $(shell /usr/bin/python3 -c 'import sys; sys.version_info[:2] == (3, 11) and print(sys.executable)' 2>/dev/null),$(PYTHON))
test-newest test-oldest: test-%:
	@command -v uv >/dev/null || { echo "$@ needs uv: pip install uv" >&2; exit 1; }
	@uv venv -q --clear --python "$$(command -v $(PYTHON))" .venv-$*
	@uv pip install -q --python .venv-$*/bin/python --resolution $(RESOLUTION) -e '.[$(EXTRAS)]'
	.venv-$*/bin/python -P -m pytest -q -n auto --dist loadgroup -m "not slow"

lint: setup
	$(PY) -m ruff check . && $(PY) -m ruff format --check . && $(PY) -m mypy
	cd benchmarks && ../$(PY) -m mypy --config-file ../pyproject.toml *.py

demo: setup
	.venv/bin/coaudit demo

docs: setup
	$(PY) -P -m coaudit.pipeline.cli.reference
	$(PY) -m tests.structure.draw

BENCHMARKS := agreement_speed permutations ingest growth length analysis judging engines labelstudio dashboard live machines segments

bench: setup
	@for name in $(BENCHMARKS); do echo "== $$name"; $(PY) benchmarks/$$name.py || exit 1; done

clean:
	rm -rf .venv .venv-newest .venv-oldest .typecheck build .pytest_cache .mypy_cache .ruff_cache demo
