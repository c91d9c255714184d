# make demo and make test do everything on a fresh Debian with Rust; the others expect their tools.

PREFIX ?= /usr/local
CARGO ?= cargo
CMAKE ?= cmake
JOBS ?= 2
BUILD := build
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

.PHONY: demo test bench header lint install deps library tools test-rust test-c test-install test-readme clean

demo: deps tools
	@$(BUILD)/tools/demo

test: deps test-rust test-c test-readme test-install

bench: deps tools
	$(BUILD)/tools/ring-perf --ranks 2
	$(BUILD)/tools/ring-perf --ranks 4

# Installs the C compilers and cmake where they are missing.
deps:
	@sh tools/deps.sh

library:
	$(CARGO) build --release

# The header is made by build.rs; this says where it is.
header: library
	@echo include/ring.h

tools: library
	@$(CMAKE) -S . -B $(BUILD)/tools > /dev/null
	@$(CMAKE) --build $(BUILD)/tools -j $(JOBS) | grep -v 'Consolidate\|Built target' || true
	@test -x $(BUILD)/tools/demo -a -x $(BUILD)/tools/ring-perf

test-rust:
	$(CARGO) test

test-c: library tools
	$(CMAKE) -S c_tests -B $(BUILD)/c_tests
	$(CMAKE) --build $(BUILD)/c_tests -j $(JOBS)
	ctest --test-dir $(BUILD)/c_tests -j $(JOBS) --output-on-failure

# The README's program is the example, and the example runs.
test-readme: tools
	sh tools/readme-test.sh $(BUILD)/tools

test-install: library
	sh packaging/test/run.sh

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --document-private-items
	git diff --exit-code include/

# DESTDIR is put before PREFIX, for packages.
install: library
	sh packaging/install.sh "$(DESTDIR)" "$(PREFIX)" "$(VERSION)" "$(SOVERSION)"

clean:
	$(CARGO) clean
	rm -rf $(BUILD)
