# Everything from a fresh clone: `make demo` shows it working, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo docs check test test-all test-minimum test-torch paper speed suite scale soak fuzz \
	kill-save sanitize clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py --output demo

# What decides whether a change lands, in less than five minutes on two cores: style, types, the tests
# with the native kernel, and those that depend on the kernel again with NumPy.
test: $(VENV)/.test check
	$(BIN)/pytest -n 2 -m "not slow"
	GEOMIX_KERNEL=numpy $(BIN)/pytest -n 2 -m "kernel and not slow" tests

# Everything with both kernels, the benchmarks from end to end too.
test-all: $(VENV)/.test check
	GEOMIX_MUTATIONS=10000 $(BIN)/pytest -n 2
	GEOMIX_KERNEL=numpy GEOMIX_MUTATIONS=10000 $(BIN)/pytest -n 2

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The oldest NumPy, SciPy, scikit-learn, pandas and pyarrow that pyproject.toml allows, in a venv
# of their own.
MINIMUM_VENV := build/minimum-venv
test-minimum:
	test -x $(MINIMUM_VENV)/bin/python || $(PYTHON) -m venv $(MINIMUM_VENV)
	$(MINIMUM_VENV)/bin/python .ci/minimum_versions.py > build/minimum.txt
	$(MINIMUM_VENV)/bin/pip install --quiet --disable-pip-version-check \
		--constraint build/minimum.txt '.[test]' --config-settings=build-dir=build/minimum
	$(MINIMUM_VENV)/bin/python -c 'import geomix; geomix.show_versions()'
	$(MINIMUM_VENV)/bin/pytest -n 2 tests -m "not slow"

# The site, into build/docs/html; every warning is an error, broken internal links included.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/docs/doctrees docs build/docs/html
	@echo "open build/docs/html/index.html"

# PyTorch is large, so its tests are skipped where it is not installed. This pins the release whose
# wheel is the CPU build; a plain "torch" may bring gigabytes of CUDA along.
test-torch: $(VENV)/.test
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pytest tests/test_torch.py tests/core/test_array_api.py
	$(BIN)/python examples/torch_head.py

# The paper's experiments; PAPER="--quick", PAPER="--only wdbc" and the like.
paper: $(VENV)/.bench
	$(BIN)/python benchmarks/paper --readme $(PAPER)

speed: $(VENV)/.bench
	$(BIN)/python benchmarks/speed.py

# Threads, worker processes, kills and odd files, with counts. For a long run:
# SOAK="--seconds 120 --workers 25 --kills 334 --worker-kills 50 --output benchmarks/results/soak.md"
SOAK ?= --seconds 60 --workers 8 --kills 100 --worker-kills 5
soak: $(VENV)/.test
	GEOMIX_SOAK_SECONDS=10 $(BIN)/pytest -s tests/core/test_native.py -k threads_share_a_scorer
	$(BIN)/python tests/soak.py $(SOAK)

# Native code on hostile rows for ten minutes, then damaged and hostile model files by the hundred
# thousand; FUZZ_SECONDS=60 MUTATIONS=1000000 SEED=7 for others.
FUZZ_SECONDS ?= 600
MUTATIONS ?= 200000
SEED ?= 1
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz_native.py --seconds $(FUZZ_SECONDS) --seed $(SEED)
	GEOMIX_MUTATIONS=$(MUTATIONS) GEOMIX_MUTATION_SEED=$(SEED) $(BIN)/pytest -n 2 \
		tests/modelfile/test_modelfile_hostile.py -k mutated

# 300 times kill -9 while a model is being saved: how many files were broken.
kill-save: $(VENV)/.test
	GEOMIX_KILLS=300 $(BIN)/pytest -s tests/modelfile/test_atomic.py -k kill_9

# Streams, clusters and boosted trees on them; SCALE="--data FOLDER --steps memory,stream".
scale: $(VENV)/.bench
	$(BIN)/python benchmarks/scale.py $(SCALE)

# SUITE="--data FOLDER --models geomix,lightgbm" and the like; benchmarks/README.md has them all.
suite: $(VENV)/.bench
	$(BIN)/python benchmarks/suite.py $(SUITE)

# The native tests on a build with the address and undefined behaviour sanitizers, in a venv of
# its own. Python itself leaks on purpose, so leaks are not checked. Tests of memory are skipped:
# the sanitizer needs more of it.
SANITIZE_VENV := build/sanitize-venv
SANITIZED = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) \
	$$($(CXX) -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 $(SANITIZE_VENV)/bin/python
sanitize:
	test -x $(SANITIZE_VENV)/bin/python || $(PYTHON) -m venv $(SANITIZE_VENV)
	$(SANITIZE_VENV)/bin/pip install --quiet --disable-pip-version-check '.[test]' \
		--config-settings=cmake.define.GEOMIX_SANITIZE=ON \
		--config-settings=build-dir=build/sanitize
	$(SANITIZED) -c 'from geomix.core import kernel; assert kernel.is_native, "the build failed"'
	$(SANITIZED) -m pytest tests/core/test_native.py tests/core/test_native_sparse.py \
		tests/core/test_spline.py

# A stamp per set of extras: installing again is skipped until pyproject.toml changes.
$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[plots]'
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(VENV)/.docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

$(VENV)/.bench: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
