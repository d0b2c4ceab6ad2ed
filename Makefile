# What a checkout can do, given make and one Python from 3.11 to 3.13. The first
# target that needs .venv makes it, with all three backends; a change of
# pyproject.toml or constraints.txt brings it up to date.

# All of these can be set: make test BACKENDS=jax TESTS=tests/layers
BACKENDS ?= tensorflow jax torch
# Folders, files and patterns, and options of pytest.
TESTS ?= tests
# How many parts of `make test` run at a time.
WORKERS ?= 2
# What `make check` runs, and with which backend.
CHECK ?= tests/backend tests/blocks tests/layers tests/ops tests/test_cache.py \
	tests/test_architecture.py tests/test_docstrings.py tests/test_promises.py
CHECK_BACKEND ?= torch
# How many mutants `make mutants` draws.
N ?= 100
TABLE ?= training_step
KERAS_BACKEND ?= torch
# What `make tutorials` runs; empty: those whose page is out of date.
TUTORIALS ?=
# `off`: the site is built from the pages that are committed. Anything else: the
# tutorials whose page is out of date are run first, which takes minutes each.
DOCS_EXECUTE ?= off
PYTHON ?= python3.11 python3.12 python3.13 python3

VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/made
EXTRAS := docs,explain,jax,mutants,pretrained,tensorflow,test,text,torch,tutorials

# make hands on what stands on its command line by itself: DATA, MINUTES, ...
export KERAS_BACKEND
export TF_CPP_MIN_LOG_LEVEL ?= 2
export NO_MKDOCS_2_WARNING ?= 1
# glibc gives every large block back to the kernel and takes it anew, page by
# page, at each training step. Kept, steps on a CPU take up to half the time.
export MALLOC_ARENA_MAX ?= 1
export MALLOC_TRIM_THRESHOLD_ ?= 4294967296
export MALLOC_MMAP_THRESHOLD_ ?= 4294967296
export MALLOC_TOP_PAD_ ?= 268435456

# Most of the time of the tests on TensorFlow and JAX goes into compiling programs
# that run once: XLA leaves out what only makes them faster, which takes a fifth
# of the time. XLA_FLAGS= tests the programs that users get.
QUICK_TO_COMPILE := --xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true \
	--xla_cpu_use_fusion_emitters=false \
	--xla_cpu_parallel_codegen_split_count=1

.PHONY: help translate test check test-gpu mutants benchmarks docs tutorials \
	lint format clean

help: ## Say what make can do (this text)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' \
		$(MAKEFILE_LIST)

translate: $(STAMP) ## Train a Transformer, translate, score, draw pictures
	$(RUN) tutorials/translate.py

test: export XLA_FLAGS ?= $(QUICK_TO_COMPILE)
test: lint ## Lint, then run all tests on each backend
	@$(RUN) -m tools.run_tests --backends $(BACKENDS) \
		--workers $(WORKERS) --tests "$(TESTS)"
	@echo "make test: lint passed, tests passed on: $(BACKENDS)."

check: lint ## Lint, then the quickest tests on one backend: in between edits
	@$(RUN) -m tools.run_tests --backends $(CHECK_BACKEND) \
		--workers $(WORKERS) --tests "$(CHECK)"

mutants: $(STAMP) ## See whether tests notice N=100 random changes of the code
	KERAS_BACKEND=torch $(RUN) -m tools.mutants --number $(N)

test-gpu: $(STAMP) ## Run the tests that need a GPU, on each backend that sees one
	@for backend in $(BACKENDS); do \
		export KERAS_BACKEND=$$backend; \
		seen=$$($(RUN) -m tools.gpu) || exit 1; \
		echo "$$seen"; \
		case "$$seen" in *"no GPU") continue ;; esac; \
		$(RUN) -m pytest -m gpu $(TESTS) || [ $$? -eq 5 ] || { \
			echo "make test-gpu: stopped, tests failed on $$backend." >&2; \
			exit 1; \
		}; \
	done

benchmarks: $(STAMP) ## Measure a table beside its peers: TABLE=training_step
	@$(RUN) -c "from importlib.util import find_spec as f; \
		exit(not (f('ctranslate2') and f('keras_hub')))" \
		|| $(RUN) -m pip install -q -c constraints.txt -e ".[benchmarks]"
	$(RUN) -m benchmarks $(TABLE)

docs: $(STAMP) ## Build the site into site/, from what is committed
	@[ "$(DOCS_EXECUTE)" = off ] || $(RUN) -m tools.tutorials build
	$(RUN) -m mkdocs build --strict
	@echo "Open site/index.html, or serve it, with a search that works:"
	@echo "  $(RUN) -m http.server --bind 127.0.0.1 --directory site"

tutorials: $(STAMP) ## Run the tutorials whose page is out of date: TUTORIALS=
	$(RUN) -m tools.tutorials build $(TUTORIALS)

lint: $(STAMP) ## Check format, style and the pre-commit hooks; change nothing
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m pre_commit validate-config .pre-commit-config.yaml

format: $(STAMP) ## Format all code and mend what ruff can mend
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

clean: ## Delete caches and build output; keep .venv and runs
	rm -rf build dist site *.egg-info .hypothesis .pytest_cache .ruff_cache
	find . \( -name .venv -o -name .git \) -prune -o \
		-name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" sh tools/make_venv.sh $(VENV) $(EXTRAS)
	@touch $(STAMP)
