# Every target does its own set-up: a virtual environment per interpreter in
# .venv/<implementation-version>, the dependencies, and the extensions, built in place.
# Each step leaves a stamp and is redone only if what it was made from has changed.
#   make test PYTHON=~/.pyenv/versions/3.12.1/bin/python ARGS="-k pool"

PYTHON ?= python3
ARGS ?=
JOBS ?= auto
THOROUGH ?= 3000
MINUTES ?= 3
CUDA ?= 13
NUMPY ?=
SANITIZERS ?= address,undefined
WORKSPACE ?= 0
EXAMPLES ?= 100
FUZZ ?= 1000
STEPS ?= 1000000
SEED ?=
BUILD ?=
CORE ?=
CRASHES ?= 200
EXAMPLE ?= train_digits heat_equation larger_than_ram filter_images cluster_pca
ARRAY_API_TESTS_DIR ?= build/array-api-tests
AARCH64 ?= build/aarch64
DEBIAN ?= bookworm

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo quick test test-in-threads test-without-numpys test-aarch64 nightly thorough test-cuda test-ecosystem test-libraries test-numpys-suite conformance fuzz crash lint format sanitize sanitize-fuzz soak bench asv build annotate docs notebooks wheel test-wheel recipe rehearse clean distclean FORCE

# The interpreter's name and version ("cpython-3.12.1"); empty if it is missing or too old.
TAG := $(shell $(PYTHON) -c 'import sys; v = sys.version_info; print("-".join([sys.implementation.name, ".".join(map(str, v[:3])) + getattr(sys, "abiflags", "")]) if v >= (3, 11) else "")' 2>/dev/null)
VENV := .venv/$(TAG)$(NUMPY:%=-numpy-%)
PY := $(VENV)/bin/python
CONSTRAINED := $(if $(NUMPY),PIP_CONSTRAINT=$(CURDIR)/$(VENV)/constraints.txt )
PIP := $(CONSTRAINED)$(PY) -m pip --disable-pip-version-check --quiet
STUBS = $$(find ndx -name '*.pyi')
COMPILED := find ndx -name '*.pyx' -o -name '*.pxd' -o -name '*.[ch]'
GENERATORS := $(wildcard tools/make_methods.py tools/make_stubs.py tools/stubs/*.py tools/tables/*method*.py)
# Without a GIL: some packages have no wheels, or only older ones; others turn the GIL on.
FREE := $(filter cpython-%t,$(TAG))
EXTRAS := $(if $(FREE),,[examples])
ifneq ($(FREE),)
export PYTHON_GIL := 0
export PIP_PREFER_BINARY := 1
endif
TREE := build/sanitize$(if $(findstring thread,$(SANITIZERS)),-thread)/$(TAG)

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile
	@echo 'Variables: PYTHON=<interpreter, 3.11 or newer>, ARGS="<passed on>", JOBS=<test processes>,'
	@echo '           NUMPY=<its version, for an environment of its own: 2.2.0>,'
	@echo '           SEED=<of what is drawn; a new one each time if there is none>,'
	@echo '           ARRAY_API_TESTS_DIR=<checkout of the suite; cloned if there is none>'

demo: $(VENV)/built  ## run the examples (EXAMPLE=heat_equation ARGS="--help")
	@set -e; for name in $(EXAMPLE); do $(PY) examples/$$name.py $(ARGS); done

# The core of each room, in a minute; what is not listed is for `make test`.
QUICK := api/test_creation.py api/test_manipulation.py api/test_public.py api/test_statistical.py \
    array/test_array.py array/test_buffers.py \
    backends/test_registry.py backends/pool/test_behaviours.py \
    cli/test_run_options.py compute/test_folds.py compute/test_matmul.py compute/test_temporaries.py \
    compute/passes/test_passes.py context/test_numpy_memory.py cuda/test_namespace.py cuda/test_workspaces.py \
    differential/test_differential.py files/test_open.py files/test_save.py fusing/test_fuse.py \
    interop/test_borders.py lib/test_dtypes.py lib/test_layout.py lib/test_trees.py \
    memory/test_limits.py memory/test_record.py methods/test_indexing.py methods/test_operators.py \
    numpy/test_methods.py numpy/test_operators.py pipelines/test_parallel_map.py pipelines/test_prefetching.py \
    pipelines/test_roles.py testing/test_assertions.py \
    workspaces/test_cycles.py workspaces/test_escape.py workspaces/test_scopes.py
quick: $(VENV)/built $(VENV)/group-test  ## run the core of the tests, in less than a minute
	$(PY) -m pytest -n $(JOBS) $(addprefix tests/,$(QUICK)) $(ARGS)

test: $(VENV)/built $(VENV)/group-test  ## run the tests (ARGS="-k name")
	$(PY) -m pytest -n $(JOBS) $(ARGS)

# Each test runs in four threads at once; what changes the process's own state, in one.
CORE_ROOMS := $(addprefix tests/,array api methods context fusing)
test-in-threads: $(VENV)/built $(VENV)/group-test $(VENV)/group-threads  ## run tests of the core in threads, for Python without the GIL
	$(PY) -m pytest -n 0 -p no:randomly --parallel-threads=4 $(CORE_ROOMS) $(ARGS)

# NumPy's public functions compute then.
WITHOUT ?= $$($(PY) -c "from ndx._lib.numpy_private import parts; print(*[name for name, *_ in parts()], 'all')")
test-without-numpys: $(VENV)/built $(VENV)/group-test  ## run tests of the core without NumPy's private parts, one by one (WITHOUT="fft loops")
	set -e; for part in $(WITHOUT); do echo "without $$part"; \
	    NDX_WITHOUT_NUMPYS=$$part $(PY) -m pytest -n $(JOBS) $(addprefix tests/,array api methods compute numpy) $(ARGS); done

# Compiled at full speed, run by QEMU some five times slower: each test draws twice.
# The first process tells what differs from this machine in a sweep, to the last bit.
EMULATED = PYTHONPATH="$(CURDIR)" $(ROOT)/usr/bin/python
EMULATED_ROOMS := $(addprefix tests/,array api workspaces backends context methods compute)
test-aarch64: $(AARCH64)/built $(VENV)/built $(VENV)/group-test  ## run the tests for ARM64, emulated (on Debian)
	$(PY) tools/same_bits.py --write $(AARCH64)/bits.json
	$(EMULATED) tools/same_bits.py --compare $(AARCH64)/bits.json
	NDX_EXAMPLES=2 $(EMULATED) -m pytest -n $(JOBS) --hypothesis-profile=thorough --timeout 1800 \
	    -o faulthandler_timeout=0 $(EMULATED_ROOMS) $(ARGS)

# With the whole of large products of parameters, and what takes long or needs much.
nightly: $(VENV)/built $(VENV)/group-test  ## run all tests, also those that take long
	NDX_EXAMPLES=200 $(PY) -m pytest -n $(JOBS) -m "" --timeout 1200 --hypothesis-profile=thorough $(ARGS)

# Property tests alone: the others find no more when they are run for longer.
thorough: $(VENV)/built $(VENV)/group-test  ## draw THOROUGH=3000 times in each property test (SEED=1)
	@seed="$(SEED)"; [ -n "$$seed" ] || seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	echo "make thorough: SEED=$$seed THOROUGH=$(THOROUGH)"; \
	NDX_EXAMPLES=$(THOROUGH) $(PY) -m pytest -n $(JOBS) -m hypothesis --timeout 0 -o faulthandler_timeout=0 \
	    --hypothesis-profile=thorough --hypothesis-seed=$$seed $(ARGS) \
	|| { echo "make thorough: failed with SEED=$$seed" >&2; exit 1; }

# The first time each kernel is compiled: that takes long.
test-cuda:  ## run the tests of GPUs on a real one, with CuPy (CUDA=12 by an older driver)
	@case "$(CUDA)" in 12|13) ;; *) echo "CUDA=$(CUDA): valid are 12 and 13" >&2; exit 2;; esac
	@if command -v nvidia-smi >/dev/null; then \
	    $(MAKE) --no-print-directory $(VENV)/built $(VENV)/group-test $(VENV)/cuda$(CUDA) && \
	    NDX_TEST_CUDA=1 $(PY) -m pytest -m "" --timeout 1800 tests/cuda $(ARGS); \
	else echo "Skipped: there is no NVIDIA driver here (no nvidia-smi), so nothing was" \
	    "tested on a GPU. 'make test' runs the same tests on a stand-in."; fi

# What the second one finds is shrunk, printed, and kept in tests/fuzz/corpus.
fuzz: $(VENV)/built $(VENV)/group-test  ## random programs: on the pools, and of arrays (FUZZ=1000 STEPS=1000000 SEED=1)
	NDX_EXAMPLES=$(FUZZ) NDX_FUZZ_STEPS=100 $(PY) -m pytest --timeout 0 -o faulthandler_timeout=0 \
	    --hypothesis-profile=thorough tests/backends/pool/test_machine.py $(ARGS)
	$(PY) tools/fuzz.py --steps $(STEPS) --threads 1 $(SEED:%=--seed %)
	$(PY) tools/fuzz.py --steps $(STEPS) --threads 3 $(SEED:%=--seed %)
	$(PY) tools/fuzz.py --steps $(STEPS) --threads 4 --share $(SEED:%=--seed %)

crash: $(VENV)/built $(VENV)/group-test  ## kill -9 writers of files at random moments (CRASHES=200)
	NDX_CRASHES=$(CRASHES) $(PY) -m pytest -m "" tests/files/test_crash.py -rP $(ARGS)

# PyTorch's wheel brings some GiB of CUDA's libraries: the group is not for `make test`.
test-ecosystem: $(VENV)/built $(VENV)/group-test $(VENV)/group-ecosystem  ## run the tests with other libraries; write the table of docs/interop.md
	$(PY) tools/ecosystem.py -n $(JOBS) $(ARGS)

test-numpys-suite: $(VENV)/built $(VENV)/group-test  ## run NumPy's own tests with ndx.numpy in its place (ARGS="--only lib/tests")
	$(PY) tools/numpys_suite.py -n $(JOBS) $(ARGS)

test-libraries: $(VENV)/built $(VENV)/group-test $(VENV)/group-libraries  ## run other libraries' tests with ndx.numpy in NumPy's place (ARGS="emcee patsy")
	$(PY) tools/libraries.py -n $(JOBS) $(ARGS)

# The suite at one commit; a checkout of one's own is taken as it is.
SUITE := 55fcc60179efa2680ddd6cd926ddf17b83530e2b
conformance: $(VENV)/built $(VENV)/group-conformance  ## run the standard's own tests (WORKSPACE=1 EXAMPLES=1000)
	@if [ ! -e $(ARRAY_API_TESTS_DIR)/array_api_tests ]; then \
	    git clone --quiet https://github.com/data-apis/array-api-tests $(ARRAY_API_TESTS_DIR) && \
	    git -C $(ARRAY_API_TESTS_DIR) checkout --quiet $(SUITE) && \
	    git -C $(ARRAY_API_TESTS_DIR) submodule --quiet update --init; fi
	cd $(ARRAY_API_TESTS_DIR) && PYTHONPATH=$(CURDIR)/tools NDX_WORKSPACE=$(WORKSPACE) \
	    ARRAY_API_TESTS_MODULE=ndx ARRAY_API_TESTS_VERSION=2025.12 \
	    $(CURDIR)/$(PY) -m pytest array_api_tests -p conformance -p no:cacheprovider \
	    -p no:randomly -n $(JOBS) --disable-deadline --max-examples=$(EXAMPLES) $(ARGS)

lint: $(VENV)/built $(VENV)/group-lint $(VENV)/group-bench  ## check style, layers, sizes, spelling, types and asv's benchmarks
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint ndx
	$(PY) tools/check_layers.py
	$(PY) tools/check_memory.py
	$(PY) tools/check_sizes.py
	$(PY) -m codespell_lib
	$(PY) -m mypy $(STUBS) tests/typing/sample.py
	$(PY) -m pyright --pythonpath $(PY) $(STUBS) tests/typing/sample.py
	cd asv_bench && $(CURDIR)/$(PY) -m asv check --python=same

format: $(VENV)/group-lint  ## apply what `make lint` can repair
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

# A copied tree shadows the package in place, so that its extensions stay as they are.
# With libstdc++ beside it: other packages' C++ (matplotlib's) could not throw without.
# ThreadSanitizer is for the tests that use threads; tools/tsan.supp says what it can't know.
# OpenBLAS has one thread there: it orders its own by atomics that are not instrumented.
RUNTIME := $(if $(findstring thread,$(SANITIZERS)),libtsan,libasan).so
SANITIZED = cd $(TREE) && LD_PRELOAD="$$(gcc -print-file-name=$(RUNTIME)) $$(gcc -print-file-name=libstdc++.so)" \
    PYTHONPATH="$$PWD" PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:strict_string_checks=1 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    TSAN_OPTIONS="suppressions=$$PWD/tools/tsan.supp halt_on_error=0 die_after_fork=0" \
    $(if $(findstring thread,$(SANITIZERS)),OPENBLAS_NUM_THREADS=1) $(CURDIR)/$(PY)

sanitize: $(TREE)/built  ## run the tests under ASan and UBSan, or SANITIZERS=thread (Linux, GCC)
	$(SANITIZED) -m pytest -n $(JOBS) -m "$(if $(findstring thread,$(SANITIZERS)),threads,not nightly)" $(ARGS)

sanitize-fuzz: $(TREE)/built  ## random programs of arrays under the sanitizers (STEPS=100000)
	$(SANITIZED) tools/fuzz.py --corpus $(CURDIR)/tests/fuzz/corpus --steps $(STEPS) --threads 1 $(SEED:%=--seed %)

$(TREE)/built: $(VENV)/built $(VENV)/group-test FORCE
	@mkdir -p $(TREE) && cd $(TREE) && rm -rf ndx tests tools examples benchmarks docs recipe
	@for name in ndx tests tools examples benchmarks docs recipe setup.py pyproject.toml *.md \
	    MANIFEST.in CITATION.cff LICENSE; do if [ -e $$name ]; then cp -Rp $$name $(TREE)/; fi; done
	@find $(TREE)/ndx \( -name '*.so' -o -name '*.pyd' \) -exec rm -f {} +
	cd $(TREE) && NDX_SANITIZE=$(SANITIZERS) $(CURDIR)/$(PY) setup.py --quiet build_ext --inplace

soak: $(VENV)/built  ## run workspaces for minutes; fail if memory grows (MINUTES=3)
	$(PY) tools/soak.py --minutes $(MINUTES) $(ARGS)

bench: $(VENV)/built $(VENV)/group-bench  ## time every function, and programs, against NumPy (ARGS="--only indexing --sizes 1,100")
	@mkdir -p build
	$(PY) benchmarks/sweep.py --json build/sweep.json --plot build/sweep.png $(ARGS)
	$(PY) benchmarks/numpy_face.py
	$(PY) benchmarks/numpy_face.py --size 300
	$(PY) benchmarks/programs.py

asv: $(VENV)/built $(VENV)/group-bench  ## run every asv benchmark once, quickly (ARGS="-b create")
	cd asv_bench && $(CURDIR)/$(PY) -m asv machine --yes >/dev/null
	cd asv_bench && $(CURDIR)/$(PY) -m asv run --quick --show-stderr --python=same $(ARGS)

docs: $(VENV)/built $(VENV)/group-docs  ## build the documentation (build/docs), run its notebooks
	$(PY) tools/make_notebooks.py --check
	$(PY) tools/make_notebooks.py --run
	$(PY) -m sphinx --jobs $(JOBS) --fail-on-warning --keep-going --quiet --fresh-env docs build/docs
	@echo "build/docs/index.html"

notebooks: $(VENV)/group-docs  ## make the tutorials' notebooks from their pages
	$(PY) tools/make_notebooks.py

build: $(VENV)/built  ## write stubs and NumPy's methods, and build the library, in place

annotate: $(VENV)/installed  ## show which lines call Python (build/cython/*-annotate-*/**/*.html)
	NDX_ANNOTATE=1 $(PY) setup.py --quiet build_ext

# BUILD=--no-isolation takes this environment's Cython and NumPy, and what `make build` has
# compiled with them. setuptools keeps what went away from the sources: it goes first.
wheel: $(VENV)/group-build $(VENV)/group-$(if $(FREE),wheel,dist)  ## build the sdist and the wheel, in isolation, into dist/
	@for file in $$(find build/*/lib.* -type f 2>/dev/null); do name=$${file#build/*/lib.*/}; \
	    case $$name in *.so|*.pyd) name=$${name%%.*}.pyx;; esac; [ -e $$name ] || rm $$file; done
	$(if $(FREE),,@if [ -e .git ]; then $(PY) -m check_manifest --no-build-isolation; fi)
	$(PY) -m build --quiet --sdist --wheel --outdir dist $(BUILD)
	$(if $(FREE),,$(PY) -m twine check --strict dist/ndxarray-*)

# Several minutes go into the environment; CORE=1 installs, and so tests, less. NUMPY is
# that of the environment: the wheel is built with the newest.
test-wheel: wheel  ## install the wheel into an empty environment, and run the tests (CORE=1)
	$(CONSTRAINED)$(PY) tools/try_wheel.py --folder build/try-wheel/$(TAG) $(if $(CORE),--core) -n $(JOBS) $(ARGS)

recipe: $(VENV)/built $(VENV)/group-test $(VENV)/group-recipe  ## render the conda recipe
	$(PY) -m pytest tests/distribution/test_recipe.py $(ARGS)

# CONTRIBUTING.md, "How to release", has the whole list.
RELEASE ?= $$($(PY) -c "import ndx; print(ndx.__version__)")
PYTHONS ?= $(PYTHON)
rehearse: $(VENV)/built  ## all of a release but the upload, in a clone (RELEASE=0.2.0 PYTHONS="python3.11 python3.12")
	$(PY) tools/release.py $(RELEASE) $(PYTHONS:%=--python %) $(ARGS)

clean:  ## remove what was built, keep the environments
	rm -rf build dist *.egg-info .venv/*/built docs/reference/api
	find ndx \( -name '*.so' -o -name '*.pyd' \) -exec rm -f {} +

distclean: clean  ## remove the environments too
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

# --- set-up ------------------------------------------------------------------------------

# Without a usable interpreter this is the first thing to be made, and it says so.
$(VENV)/python:
	@if [ -z "$(TAG)" ]; then echo "ndx needs Python 3.11 or newer, and '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>/dev/null || echo not one). Choose another:" \
	    "make test PYTHON=/path/to/python3.12" >&2; exit 1; fi
	$(PYTHON) -m venv --clear $(VENV)
	@echo 'numpy$(NUMPY:%===%)' > $(VENV)/constraints.txt
	$(PIP) install --upgrade "pip>=25.1"
	@touch $@

$(VENV)/group-%: pyproject.toml $(VENV)/python
	$(PIP) install --group $*$(if $(FREE),$(if $(filter test,$*),-without-gil))
	@touch $@

# The package itself (metadata, path, what the example needs), without its extensions.
# Environments from before it was called ndxarray have it as `ndx`, too: that goes first.
$(VENV)/installed: $(VENV)/group-build
	@rm -rf ndx.egg-info
	$(PIP) --quiet uninstall --yes ndx
	NDX_BUILD_EXT=0 $(PIP) install --no-build-isolation --editable '.$(EXTRAS)'
	@touch $@

# The package again, with CuPy and CUDA's libraries; those of another version go first,
# since both are the module `cupy`.
$(VENV)/cuda12 $(VENV)/cuda13: $(VENV)/cuda%: $(VENV)/installed
	$(PIP) uninstall --yes cupy-cuda$(filter-out $*,12 13)x
	@rm -f $(VENV)/cuda1*
	NDX_BUILD_EXT=0 $(PIP) install --no-build-isolation --editable '.[cuda$*]'
	@touch $@

# The list notices files that went away. Several `make` may write it at the same time,
# each to a file of its own.
$(VENV)/sources: FORCE | $(VENV)/python
	@new=$@.$$$$; $(COMPILED) | LC_ALL=C sort > $$new || exit 1; \
	if cmp -s $@ $$new; then rm $$new; else mv $$new $@; fi

$(VENV)/built: $(VENV)/installed $(VENV)/sources setup.py $(GENERATORS) $(shell $(COMPILED))
	@find ndx \( -name '*.so' -o -name '*.pyd' \) ! -name '_compiled.*' -exec rm -f {} +
	$(PY) setup.py --quiet build_ext --inplace
	@touch $@

# Debian's Python for ARM64, of the same version as this one, and NumPy's wheel for it.
MINOR := $(basename $(TAG:cpython-%=%))
ROOT := $(abspath $(AARCH64))/root
WHEELS := $(foreach glibc,28 27 17,--platform manylinux_2_$(glibc)_aarch64) --platform manylinux2014_aarch64
$(AARCH64)/python: pyproject.toml tools/emulated_python.sh | $(VENV)/built
	@for name in mmdebstrap qemu-aarch64-static aarch64-linux-gnu-gcc; do command -v $$name >/dev/null || \
	    { echo "make test-aarch64 needs $$name:" \
	    "apt-get install mmdebstrap qemu-user-static gcc-aarch64-linux-gnu" >&2; exit 1; }; done
	rm -rf $(ROOT) && mkdir -p $(AARCH64)/sysconfig
	mmdebstrap --quiet --arch=arm64 --variant=extract \
	    --include=python$(MINOR),libpython$(MINOR)-dev,libstdc++6 $(DEBIAN) $(ROOT) \
	    || { echo "Name a release with Python $(MINOR) (DEBIAN=trixie), or another PYTHON." >&2; exit 1; }
	ln -s python$(MINOR) $(ROOT)/usr/bin/python3
	install -m 755 tools/emulated_python.sh $(ROOT)/usr/bin/python
	$(PIP) install --target $(ROOT)/usr/lib/python3/dist-packages --only-binary=:all: $(WHEELS) \
	    --python-version $(MINOR) --group test-core tqdm \
	    "numpy==$$($(PY) -c 'import numpy; print(numpy.__version__)')"
	cp $(ROOT)/usr/lib/python$(MINOR)/_sysconfigdata__aarch64-linux-gnu.py $(AARCH64)/sysconfig
	@touch $@

# Its `sysconfig` names the compiler, and says how the library is to be called.
$(AARCH64)/built: $(AARCH64)/python $(VENV)/built
	_PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__aarch64-linux-gnu PYTHONPATH=$(AARCH64)/sysconfig \
	    _PYTHON_HOST_PLATFORM=linux-aarch64 CC="aarch64-linux-gnu-gcc --sysroot=$(ROOT)" \
	    CPPFLAGS=-I$(ROOT)/usr/include/python$(MINOR) $(PY) setup.py --quiet build_ext --inplace
	@touch $@
