# A table of contents. `make demo` shows the main job, `make test` runs everything.

ifeq ($(shell command -v cargo),)
$(error aclshim needs Rust 1.88 or newer: cargo was not found on PATH (see rustup.rs, or your distribution's rustup package))
endif
ifeq ($(shell command -v $(CC)),)
$(error aclshim needs a C compiler: $(CC) was not found on PATH (on Debian: apt-get install gcc libc6-dev))
endif

BUILT    := target
SKIPPED  := $(BUILT)/skipped.txt
SIM      := $(BUILT)/sim
OLD_SIMS := $(SIM)/cann-8.5 $(SIM)/no-batch
EXAMPLES := $(patsubst c-examples/%.c,$(BUILT)/c-examples/%,$(wildcard c-examples/*.c))
TESTING  := $(BUILT)/c-examples/testing
PACKAGES := $(BUILT)/aclshim.pc $(BUILT)/aclshim-sim.pc

# Against the vendor's header and library where CANN is installed, else against ours.
ifdef ASCEND_HOME_PATH
ACL_CFLAGS  := -isystem $(ASCEND_HOME_PATH)/include
ACL_LDFLAGS := -L$(ASCEND_HOME_PATH)/lib64
else
ACL_CFLAGS  := -Iinclude
ACL_LDFLAGS := -L$(SIM)
endif

.PHONY: build demo test fuzz miri bench install lint header docs aarch64 clean FORCE
.DEFAULT_GOAL := build

## build: the shim, the command, the simulated device and the C examples
build: $(BUILT)/release/libaclshim.so $(SIM)/libascendcl.so $(OLD_SIMS:=/libascendcl.so) $(EXAMPLES) $(PACKAGES) $(TESTING)

$(BUILT)/release/libaclshim.so: FORCE
	@[ -e $@ ] || echo "Building; the first time takes some minutes." >&2
	@cargo build --release --quiet -p aclshim -p aclshim-cli -p aclshim-sim

# One library under two names: two files would be two devices.
define stage_sim
	@mkdir -p $(@D)
	@cmp -s $(1) $@ || { cp $(1) $@.$$$$ && mv $@.$$$$ $@; }
	@ln -sfn libascendcl.so $(@D)/libacl_rt.so
endef

$(SIM)/libascendcl.so: $(BUILT)/release/libaclshim.so FORCE
	$(call stage_sim,$(BUILT)/release/libascendcl.so)

# The libraries of older releases, without the functions that did not exist yet.
$(SIM)/cann-8.5/libascendcl.so: FEATURE := cann-8-5
$(SIM)/no-batch/libascendcl.so: FEATURE := no-batch
$(OLD_SIMS:=/libascendcl.so): FORCE
	@cargo build --release --quiet -p aclshim-sim --features $(FEATURE) --target-dir $(BUILT)/old/$(FEATURE)
	$(call stage_sim,$(BUILT)/old/$(FEATURE)/release/libascendcl.so)

$(BUILT)/c-examples/%: c-examples/%.c $(wildcard c-examples/*.h include/acl/*.h) | $(SIM)/libascendcl.so
	@mkdir -p $(@D)
	@$(CC) -std=c99 -g -O2 -Wall -Wextra -Wpedantic -Werror $(ACL_CFLAGS) $< -o $@ $(ACL_LDFLAGS) -lascendcl -lpthread

# Examples of tests, by the Makefile that a user copies. One whose framework is missing is not built, and that is said.
$(TESTING): $(PACKAGES) $(SIM)/libascendcl.so FORCE
	@mkdir -p $@
	@$(MAKE) --silent --no-print-directory -C c-examples/testing OUT=$(CURDIR)/$@ \
		ACL_CFLAGS="$(patsubst -I%,-I$(CURDIR)/%,$(ACL_CFLAGS))" ACL_LIBS="$(patsubst -L$(SIM),-L$(CURDIR)/$(SIM),$(ACL_LDFLAGS)) -lascendcl" \
		ACLSHIM_CFLAGS=-I$(CURDIR)/$(BUILT)/include ACLSHIM=$(CURDIR)/$(BUILT)/release/aclshim

# For programs that are built against this tree: PKG_CONFIG_PATH=target. The header stands alone in its folder, so that
# ours of the vendor's is not found before the vendor's own.
$(PACKAGES): $(BUILT)/%.pc: dist/%.pc.in dist/fill_in.sh Cargo.toml Makefile
	@mkdir -p $(BUILT)/include
	@ln -sfn ../../include/aclshim.h $(BUILT)/include/aclshim.h
	@SIMDIR=$(CURDIR)/$(SIM) SIMINCLUDE=$(CURDIR)/include INCLUDEDIR=$(CURDIR)/$(BUILT)/include \
		LIBDIR=$(CURDIR)/$(BUILT)/release COMMAND=$(CURDIR)/$(BUILT)/release/aclshim PYTHON=$(CURDIR)/python \
		sh dist/fill_in.sh <$< >$@

## demo: a KV-cache offload on the simulated device, seen by the shim
demo: build
	@sh c-examples/demo.sh $(BUILT)

## test: everything; what a missing tool made us skip is listed at the end, and in CI that is a failure
test: build
	@rm -f $(SKIPPED)
	@$(MAKE) --no-print-directory lint
	@cargo test --quiet --workspace
	@RUSTFLAGS="--cfg loom" cargo test --quiet -p aclshim-trace --release --test loom --target-dir $(BUILT)/loom
	@if [ -s $(SKIPPED) ]; then echo "skipped:"; sed 's/^/  /' $(SKIPPED); [ -z "$$CI" ]; fi

## fuzz: reads nonsense made of real traces and rings, FUZZ seconds long; `make test` does so shortly
FUZZ ?= 600
fuzz: build
	@ACLSHIM_FUZZ_SECONDS=$(FUZZ) cargo test --quiet --test fuzz -- --nocapture

## miri: reader and writer of rings under an interpreter that knows what is undefined; some minutes, by hand
miri:
	@cargo +nightly miri --version >/dev/null 2>&1 || { \
		echo "miri: needs a nightly Rust with its component: rustup toolchain install nightly --component miri rust-src" >&2; exit 1; }
	@MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p aclshim-trace --lib --target-dir $(BUILT)/miri -- reader:: record ring:: slot told --skip segment_reader

## bench: what a call costs, all variants side by side (BENCH=--quick for a first look)
bench: $(BUILT)/release/libaclshim.so
	@cargo build --release --quiet -p aclshim-bench -p aclshim-bench-naive
	@$(BUILT)/release/aclshim-bench $(BENCH)

## install: the shim, the command, the header and all that belongs to them, below PREFIX (of a package: in DESTDIR)
PREFIX ?= /usr/local
install: build
	@sh dist/install.sh '$(BUILT)' '$(abspath $(PREFIX))' '$(DESTDIR)'

## lint: format and clippy, where they are installed
lint:
	@if cargo fmt --version >/dev/null 2>&1; then cargo fmt --all --check; \
	else mkdir -p $(BUILT) && echo "lint: needs cargo fmt" >>$(SKIPPED); fi
	@if cargo clippy --version >/dev/null 2>&1; then cargo clippy --quiet --workspace --all-targets -- -D warnings; \
	else mkdir -p $(BUILT) && echo "lint: needs cargo clippy" >>$(SKIPPED); fi

## header: include/aclshim.h from the documented Rust types
header:
	@ACLSHIM_UPDATE=1 cargo test --quiet --test generated

## docs: the pages that are made from the tables
docs: header

## aarch64: shim, command and simulated device for aarch64, and that the tests compile; in target/aarch64-unknown-linux-gnu
ARM := aarch64-unknown-linux-gnu
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
aarch64:
	@command -v aarch64-linux-gnu-gcc >/dev/null || \
		{ echo "aarch64: needs aarch64-linux-gnu-gcc (on Debian: apt-get install gcc-aarch64-linux-gnu)" >&2; exit 1; }
	@ls "$$(rustc --print target-libdir --target $(ARM))"/libstd-*.rlib >/dev/null 2>&1 || \
		{ echo "aarch64: needs Rust's library for it (rustup target add $(ARM))" >&2; exit 1; }
	@cargo build --release --quiet --target $(ARM) -p aclshim -p aclshim-cli -p aclshim-sim
	@cargo check --release --quiet --target $(ARM) --workspace --all-targets

clean:
	@cargo clean
