# Everything the project does, as verbs. `make` alone lists them: the words after `##` are the list.
# The work is in scripts/, so that CI, people and make run the same thing.

.DEFAULT_GOAL := help
.PHONY: help setup build install uninstall demo test test-full test-crash test-mpi test-native test-python test-streams wheel fuzz mutants sanitize bench bench-check lint fmt doc clean

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing (Debian packages, private Python environment)
	@scripts/setup

build: ## build the program, optimised: target/release/pario
	cargo build --release

install: ## build, and install program, libraries, headers, manual pages (PREFIX=/usr/local, DESTDIR)
	@scripts/install

uninstall: ## remove what `make install` has installed
	@scripts/install --uninstall

demo: ## set up what is missing, build, and show Pario doing its job
	@scripts/setup
	@scripts/demo

test: ## set up what is missing, build, run every test (about 21 minutes on 2 cores)
	@scripts/test

test-full: ## `make test` with many more random cases, then the tests marked as long
	@scripts/test --full

test-crash: ## processes killed, power cut and files moved under fire, with all that takes long
	@scripts/test-crash

test-mpi: ## MPI programs of every kind over every MPI that can be installed (about an hour)
	@scripts/test-mpi

test-native: ## the C interface under sanitizers and valgrind, with the static library, installed
	@scripts/test-native

test-python: ## the Python package as a wheel, installed by pip beside the packages it works with
	@scripts/setup
	@scripts/test-python --wheel

test-streams: ## data-parallel streams with all that takes long, in C and Fortran, over MPI and on two hosts
	@scripts/test-streams

wheel: ## the Python package with the program and the MPI-IO library, for machines without Rust: target/wheel
	@scripts/wheel

fuzz: ## run every fuzz target for a while (PARIO_FUZZ_SECONDS each, 60 by default)
	@scripts/fuzz

mutants: ## break store, control, wire and meta in every way, and see that a unit test notices (hours)
	@scripts/mutants

sanitize: ## run the tests of the unsafe code under a memory checker
	@scripts/sanitize-kernels

bench: ## set up the yardsticks, then run every benchmark (scripts/bench --quick: a look at all, in minutes)
	@scripts/setup
	@scripts/bench

bench-check: ## run the benchmarks in their quick form and compare every claim with the figures
	@scripts/bench-check

lint: ## formatting, clippy and documentation without a warning, and the repository's own rules
	@scripts/lint

fmt: ## format all Rust code
	cargo fmt --all

doc: ## build the documentation of all crates: target/doc
	cargo doc --workspace --no-deps

clean: ## remove build products and the private environments of Python and MPI
	cargo clean
	rm -rf .venv .mpi
