# make            the library, and the C programs in build/tools
# make demo       four processes on this host reduce arrays, and lose one of them
# make test       every test
# make test-faults  those of ranks that die, stop or disagree
# make test-large   those of 2 GiB, which need 12 GiB of memory and are skipped without
# make test-cinstall  `cargo cinstall` beside make install; installs cargo-c into build/cargo-c, which takes some minutes
# make test-mlx   those with stock MLX, in a Python of its own that this installs: programs on libring's plugin, and mixed rings
# make test-go    those of the Go package and its example; some of them: cd bindings/go && ./with_checkout.sh go test -run Close
# make test-swift   the package for Swift where Swift is; its module map, by clang, in any case
# make bench      ring-perf on rings of two, four and eight, to benches/results; BENCH_FLAGS="--ranks 2 --rounds 5"
# make bench-peers  libring beside its peers, which are installed first; Debian and root, PEERS_FLAGS="--rounds 5 --n 2"
# make bench-collectives  every collective beside Open MPI's; Debian and root, COLLECTIVES_FLAGS="--rounds 5 --n 2"
# make bench-mlx  an MLX program's all_sum on libring and on MLX's ring; MLX_FLAGS="--rounds 5 --n 2"
# make accuracy   how close sums and means of 16-bit floats come to the exact ones, with and without wide accumulation
# make bench-kernels  each reduction beside a copy of the same bytes
# make bench-links  rings of four whose links are 1 Gbit/s; needs root on Linux, LINKS="SCENARIO..." for some
# make fuzz       the decoders, each for FUZZ_SECONDS=60
# make lint       formatting, clippy, documentation, C warnings, the ABI
# make docs       the header's documentation to build/docs/html, the crate's to target/doc
# make abi        the ABI beside its list (abi/libring.abi) and the last release; `make abi-update` accepts additions
# make header     include/ring.h from src/ffi
# make install    PREFIX=/usr/local LIBDIR=lib INCLUDEDIR=include BINDIR=bin DESTDIR=
# make deps       the commands that these need, by apt-get

PREFIX ?= /usr/local
LIBDIR ?= lib
INCLUDEDIR ?= include
BINDIR ?= bin
DESTDIR ?=
FUZZ_SECONDS ?= 60
BENCH_FLAGS ?=
PEERS_FLAGS ?=
COLLECTIVES_FLAGS ?=
MLX_FLAGS ?=
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)

STEP := sh tools/step.sh
SUFFIX := $(if $(filter Darwin,$(shell uname -s)),dylib,so)
CMAKE_FLAGS := -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
# Where MPI's header is missing its program can't be looked at; its own build does.
C_FILES := $(filter-out benches/collectives/openmpi.c,$(wildcard tools/*/*.c benches/*/*.c examples/c/*.c)) \
  benches/peers/workers/ring.c bindings/go/shims.c $(wildcard plugins/mpi/*.c plugins/mpi/test/*.c)
# The barrier that processes share isn't macOS's.
ifeq ($(shell uname -s),Linux)
C_FILES += $(wildcard benches/peers/limits/*.c)
endif
# clang and gcc each see what the other doesn't.
C_WARNINGS := -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -Iinclude -Itools/common -Itools/ring-accuracy

.PHONY: all library tools c-tests demo test test-rust test-c test-faults test-large test-mlx test-tools test-go test-valgrind test-install test-cinstall test-swift bench bench-peers bench-collectives bench-mlx bench-kernels bench-links accuracy fuzz lint docs abi abi-update header install deps build-deps lint-deps clean
.DEFAULT_GOAL := all

all: tools

deps:
	@sh tools/deps.sh test
	@sh tools/deps.sh lint

build-deps:
	@sh tools/deps.sh build

lint-deps:
	@sh tools/deps.sh lint

# Cargo optimises no crate as a whole that is an rlib besides, as this one is for its Rust tests:
# cargo build --release makes a library that works, and is a fifth larger.
library: build-deps
	@$(STEP) "building the library" "" cargo rustc --release --locked --lib --crate-type cdylib,staticlib

tools: library
	@$(STEP) "configuring the C programs" "" cmake -S . -B build/tools $(CMAKE_FLAGS)
	@$(STEP) "building the C programs" "" cmake --build build/tools -j $(JOBS)

demo: tools
	@build/tools/demo

# Steps of one make after the other: each has the cores to itself.
test: deps
	@$(MAKE) --no-print-directory test-rust
	@$(MAKE) --no-print-directory test-tools
	@$(MAKE) --no-print-directory test-c
	@$(MAKE) --no-print-directory test-mlx
	@$(MAKE) --no-print-directory test-go
	@$(MAKE) --no-print-directory test-valgrind
	@$(MAKE) --no-print-directory test-install
	@$(MAKE) --no-print-directory test-swift

test-rust:
	@$(STEP) "Rust tests" "^test result" cargo test --locked

test-tools: tools
	@$(STEP) "ring-perf, benches, examples, demo, README" "tests passed\|(Skipped)" ctest --test-dir build/tools -LE mlx -j $(JOBS) --output-on-failure

c-tests: library
	@$(STEP) "configuring the C tests" "" cmake -S c_tests -B build/c_tests
	@$(STEP) "building the C tests" "" cmake --build build/c_tests -j $(JOBS)

test-c: c-tests
	@$(STEP) "C tests" "tests passed\|(Skipped)" ctest --test-dir build/c_tests -LE "valgrind|mlx" -j $(JOBS) --output-on-failure

test-faults: c-tests
	@$(STEP) "faults" "tests passed\|(Skipped)" ctest --test-dir build/c_tests -L faults -j $(JOBS) --output-on-failure

test-large: c-tests
	@$(STEP) "calls of 2 GiB" "tests passed" ctest --test-dir build/c_tests -L large --output-on-failure

# One after the other: eight ranks on two cores have company enough.
test-mlx: tools c-tests
	@sh tools/deps.sh mlx
	@$(STEP) "MLX programs" "tests passed\|(Skipped)" ctest --test-dir build/tools -L mlx --output-on-failure
	@$(STEP) "rings with stock MLX" "tests passed\|(Skipped)" ctest --test-dir build/c_tests -L mlx --output-on-failure

GO := sh bindings/go/with_checkout.sh sh
test-go: tools
	@sh tools/deps.sh go
	@$(STEP) "gofmt, go vet" "" $(GO) bindings/go/test.sh check
	@$(STEP) "Go tests" "^ok" $(GO) bindings/go/test.sh test
	@$(STEP) "Go tests, race detector" "^ok\|Skipped" $(GO) bindings/go/test.sh race
	@$(STEP) "Go example" "" $(GO) examples/go/test.sh

test-valgrind: c-tests
	@$(STEP) "C programs in valgrind" "tests passed\|Skipped" ctest --test-dir build/c_tests -L valgrind -j $(JOBS) --output-on-failure

test-install: tools
	@$(STEP) "installing and linking" "" sh packaging/test/run.sh

test-cinstall: tools
	@sh tools/deps.sh cinstall
	@PATH="$(CURDIR)/build/cargo-c/bin:$$PATH" $(STEP) "cargo cinstall" "skipped" sh packaging/test/cinstall.sh

test-swift: tools
	@$(STEP) "Swift" "there is no Swift\|Executed .* tests" sh packaging/staged.sh sh bindings/swift/test.sh

bench: tools
	@sh tools/deps.sh bench
	@python3 benches/bench.py $(BENCH_FLAGS)

bench-peers: tools
	@sh tools/deps.sh peers
	@sh benches/peers/bench.sh --markdown benches/results/peers.md $(PEERS_FLAGS)

bench-collectives: tools
	@sh tools/deps.sh collectives
	@sh benches/collectives/bench.sh --markdown benches/results/collectives.md $(COLLECTIVES_FLAGS)

bench-mlx: tools
	@sh tools/deps.sh mlx
	@sh benches/mlx/bench.sh --markdown benches/results/mlx.md $(MLX_FLAGS)

bench-kernels: build-deps
	@cargo bench --quiet --locked --bench kernels

bench-links: deps tools
	@sh benches/links/run.sh build/tools $(LINKS)

accuracy: tools
	@build/tools/ring-accuracy

fuzz: deps
	@FUZZ_SECONDS=$(FUZZ_SECONDS) sh fuzz/run.sh

lint: lint-deps
	@$(STEP) "cargo fmt" "" cargo fmt --check
	@$(STEP) "cargo fmt (fuzz)" "" cargo fmt --check --manifest-path fuzz/Cargo.toml
	@$(STEP) "cargo fmt (peers)" "" cargo fmt --check --manifest-path benches/peers/workers/rust/Cargo.toml
	@$(STEP) "cargo clippy" "" cargo clippy --locked --all-targets -- -D warnings
	@RUSTDOCFLAGS="-D warnings" $(STEP) "rustdoc, private items" "" cargo doc --locked --no-deps --document-private-items
	@$(MAKE) --no-print-directory docs abi
	@$(STEP) "the header is the source's" "" git diff --exit-code include/ring.h
	@$(STEP) "C warnings (gcc)" "" gcc $(C_WARNINGS) $(C_FILES)
	@$(STEP) "C warnings (clang)" "" clang $(C_WARNINGS) $(C_FILES)

# What users read: pages of private items, which lint looks at, would stay.
docs:
	@sh tools/deps.sh docs
	@rm -rf target/doc
	@RUSTDOCFLAGS="-D warnings" $(STEP) "rustdoc" "" cargo doc --locked --no-deps
	@mkdir -p build/docs
	@$(STEP) "Doxygen" "" doxygen docs/Doxyfile

abi: library
	@sh tools/deps.sh abi
	@$(STEP) "the ABI is as listed" "" python3 abi/abi.py check include/ring.h target/release/libring.$(SUFFIX) abi/libring.abi
	@$(STEP) "the ABI since the last release" "skipped" sh abi/since_tag.sh

abi-update: library
	@python3 abi/abi.py update include/ring.h target/release/libring.$(SUFFIX) abi/libring.abi

header:
	@$(STEP) "generating include/ring.h" "" cargo check --locked

# The plugin is built last; whoever has it may still lack the ring-perf that is installed.
MPI_PLUGIN := target/release/libring_mpi.$(SUFFIX)
INSTALLED_PERF := target/release/libring/ring-perf
$(MPI_PLUGIN):
	@$(MAKE) --no-print-directory tools
$(INSTALLED_PERF): | $(MPI_PLUGIN)
	@$(MAKE) --no-print-directory tools

install: $(MPI_PLUGIN) $(INSTALLED_PERF)
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" INCLUDEDIR="$(INCLUDEDIR)" BINDIR="$(BINDIR)" DESTDIR="$(DESTDIR)" sh packaging/install.sh

clean:
	cargo clean
	rm -rf build
