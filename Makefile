# Development commands. They need make and a Python from 3.11 to 3.13. The first
# target that needs .venv creates it, with all three backends; a change of
# pyproject.toml or constraints.txt updates it.

# Variables that can be set: make test BACKENDS=jax TESTS=tests/layers
BACKENDS ?= tensorflow jax torch
# Folders, files, patterns and pytest options.
TESTS ?= tests
# How many parts of `make test` run in parallel. On two cores, three take 14 % less
# time than two: some wait for the processes that they start.
WORKERS ?= 3
# The tests and the backend of `make check`.
CHECK ?= tests/backend tests/blocks tests/layers tests/ops tests/test_cache.py \
	tests/test_architecture.py tests/test_docstrings.py tests/test_promises.py
CHECK_BACKEND ?= torch
# A part of the tests, 2/4: the second quarter.
SHARD ?= 1/1
# Number of mutants that `make mutants` draws.
N ?= 100
# The table of `make benchmarks`; with QUICK=1, every table unless one is named.
QUICK ?=
TABLE ?= $(if $(filter-out 0,$(QUICK)),all,training_step)
KERAS_BACKEND ?= torch
# The tutorials that `make tutorials` runs. Default: those with outdated pages.
TUTORIALS ?=
# `off`: build the site from the committed pages. Any other value: first run the
# tutorials whose page is outdated, which takes minutes each.
DOCS_EXECUTE ?= off
PYTHON ?= python3.11 python3.12 python3.13 python3

VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/made
EXTRAS := docs,examples,export,jax,mutants,release,tensorflow,test,torch,types

# make itself exports variables set on its command line: DATA, MINUTES, ...
export KERAS_BACKEND
export TF_CPP_MIN_LOG_LEVEL ?= 2
export NO_MKDOCS_2_WARNING ?= 1
# By default, glibc returns large blocks to the kernel and faults them in again
# at every training step. Keeping them can halve the time of a step on a CPU.
export MALLOC_ARENA_MAX ?= 1
export MALLOC_TRIM_THRESHOLD_ ?= 4294967296
export MALLOC_MMAP_THRESHOLD_ ?= 4294967296
export MALLOC_TOP_PAD_ ?= 268435456

# On TensorFlow and JAX, tests spend most of their time compiling programs that
# run once. Without XLA's optimizations compilation takes a fifth of the time.
# Set XLA_FLAGS= to test the programs that users run.
QUICK_TO_COMPILE := --xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true \
	--xla_cpu_use_fusion_emitters=false \
	--xla_cpu_parallel_codegen_split_count=1

.PHONY: help translate test check test-gpu mutants benchmarks docs tutorials \
	lint format matrix soak kills dist clean

# Lists the targets under the headings, lines that start with `##@`.
help: ## Show this help
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' \
		$(MAKEFILE_LIST)

##@ Try it

translate: $(STAMP) ## Train a Transformer, translate, score and plot
	$(RUN) examples/translate.py train --preset tiny --minutes 3.7

##@ While you edit

format: $(STAMP) ## Format all code and apply ruff's automatic fixes
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

lint: $(STAMP) ## Check formatting, style, types and the pre-commit config
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m pre_commit validate-config .pre-commit-config.yaml
	$(RUN) -m mypy
	$(RUN) -m tools.verify_types

check: lint ## Lint and run the fastest tests on one backend
	@$(RUN) -m tools.run_tests --backends $(CHECK_BACKEND) \
		--workers $(WORKERS) --tests "$(CHECK)"

##@ Before a pull request

test: export XLA_FLAGS ?= $(QUICK_TO_COMPILE)
test: lint ## Lint and run all tests on each backend
	@$(RUN) -m tools.run_tests --backends $(BACKENDS) \
		--workers $(WORKERS) --shard $(SHARD) --tests "$(TESTS)"
	@echo "make test: lint passed, tests passed on: $(BACKENDS)."

mutants: $(STAMP) ## Run mutation tests on N=100 random changes to the code
	KERAS_BACKEND=torch $(RUN) -m tools.mutants --number $(N)

test-gpu: $(STAMP) ## Run the GPU tests on each backend that sees a GPU
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

##@ Pages

docs: $(STAMP) ## Build the site into site/ from the committed pages
	@[ "$(DOCS_EXECUTE)" = off ] || $(RUN) -m tools.tutorials build
	$(RUN) -m mkdocs build --strict
	@echo "Open site/index.html, or serve the site (search needs a server):"
	@echo "  $(RUN) -m http.server --bind 127.0.0.1 --directory site"

# `make tutorials BACKENDS="tensorflow jax torch"` runs all, or TUTORIALS, with
# QUICK=1.
QUICK_RUNS := tests/site/test_quick_runs.py
tutorials: $(STAMP) ## Run TUTORIALS=NAMES (default: outdated), or all on BACKENDS
ifeq ($(origin BACKENDS),command line)
	@for backend in $(BACKENDS); do \
		KERAS_BACKEND=$$backend XLA_FLAGS="$(QUICK_TO_COMPILE)" \
		$(RUN) -m pytest $(if $(TUTORIALS),$(TUTORIALS:%=\
			"$(QUICK_RUNS)::test_quick_run_in_an_empty_folder[%]"),\
			$(QUICK_RUNS)) || exit 1; done
else
	$(RUN) -m tools.tutorials build $(TUTORIALS)
endif

benchmarks: $(STAMP) ## Run one benchmark: TABLE=training_step; all: QUICK=1
ifneq ($(filter-out 0,$(QUICK)),)
	XLA_FLAGS="$(QUICK_TO_COMPILE)" $(RUN) -m benchmarks $(TABLE)
else
	@$(RUN) -c "from importlib.util import find_spec as f; \
		exit(not (f('ctranslate2') and f('keras_hub')))" \
		|| $(RUN) -m pip install -q -c constraints.txt -e ".[benchmarks]"
	$(RUN) -m benchmarks $(TABLE)
endif

##@ Release

soak: $(STAMP) ## Generate, train and predict for MINUTES=30 on each backend
	@for backend in $(BACKENDS); do \
		KERAS_BACKEND=$$backend $(RUN) -m tools.endurance soak \
			--minutes $(or $(MINUTES),30) || exit 1; done

kills: $(STAMP) ## Kill trainings 40 times on each backend, and compare results
	@for backend in $(BACKENDS); do \
		KERAS_BACKEND=$$backend $(RUN) -m tools.endurance kills || exit 1; done

matrix: $(STAMP) ## Install each extra with each backend in a new environment
	$(RUN) -m tools.matrix

dist: $(STAMP) ## Build wheel and source archive, twice, and check them
	rm -rf build dist
	$(RUN) -m build --no-isolation --outdir dist
	$(RUN) -m build --no-isolation --outdir build/again
	@for file in dist/*; do cmp $$file build/again/$${file#dist/} || exit 1; done
	$(RUN) -m twine check --strict dist/*

##@ Other

clean: ## Delete caches and build outputs; keep .venv and runs
	rm -rf build dist site *.egg-info .hypothesis .mypy_cache .pytest_cache \
		.ruff_cache
	find . \( -name .venv -o -name .git \) -prune -o \
		-name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" sh tools/make_venv.sh $(VENV) $(EXTRAS)
	@touch $(STAMP)
