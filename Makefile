# demo, test, bench, lint: the only commands a newcomer needs; check, try and dev are for every day. Everything is installed into .venv and target; with LOCKED=1 the Python
# packages are those of requirements/, checked by their hashes.

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $(p))))
VENV := .venv
BIN := $(VENV)/bin
CARGO ?= cargo

# What the native core is made of: not its tests.
RUST_SOURCES := $(shell find crates -name '*.rs' -not -path '*/tests/*' -not -path '*/benches/*' -not -path '*/examples/*' -not -name tests.rs) \
	$(shell find benches p4include python/holdfast/apps -name '*.p4') \
	$(wildcard crates/*/Cargo.toml) Cargo.toml $(wildcard Cargo.lock)

# The rooms of architectures, which rustfmt does not find: a macro declares them.
ROOMS := $(wildcard crates/ir/src/architecture/*.rs crates/engine/src/architecture/*.rs) $(patsubst crates/ir/src/architecture/%,crates/compile/src/lower/%,$(wildcard crates/ir/src/architecture/*.rs))

# Tests and lints share the product's build of the dependencies; tests/profile.toml says what differs for our own crates.
CHECKED := --release --config tests/profile.toml

# The environment of builds by hand: little is optimised, and what did not change is not compiled again.
DAILY := CARGO_INCREMENTAL=1 CARGO_PROFILE_RELEASE_INCREMENTAL=true CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=false

# Builds the native core and installs the package in place; the compiler's progress is shown, pip's chatter only if it fails.
install = VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release $(1) > $(VENV)/install.log || { cat $(VENV)/install.log; exit 1; }

comma := ,

# UPGRADE=--upgrade takes the newest ones.
locked = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE) \
	--custom-compile-command "make lock" $(1) --output-file requirements/$(2).txt

.PHONY: demo test test-rust test-python test-computing test-waiting test-gateways test-live check try dev bench lint format release test-aarch64 site man shell-env lock clean prerequisites

demo: $(VENV)/.installed
	@$(BIN)/holdfast demo

test: test-rust test-python

test-rust: prerequisites
	$(CARGO) test $(CHECKED) --workspace --quiet

test-python: test-computing test-waiting test-gateways

# What only computes, a process per processor.
test-computing: $(VENV)/.test-installed
	$(BIN)/python -m pytest --ignore=tests/live --ignore=tests/web --ignore-glob='tests/p4runtime/abuse/test_[!m]*' --quiet --numprocesses=auto --maxprocesses=8 --dist=loadfile

# What runs in real time, of which a third is waiting, two beside each other.
test-waiting: $(VENV)/.test-installed
	$(BIN)/python -m pytest tests/p4runtime/abuse tests/live tests/web --ignore=tests/p4runtime/abuse/test_memory.py --ignore=tests/live/test_bng.py --quiet --numprocesses=2 --dist=loadfile

# The broadband gateways, which fill a machine by themselves.
test-gateways: $(VENV)/.test-installed
	$(BIN)/python -m pytest tests/live/test_bng.py

# The part of the tests that needs root: namespaces, packet sockets, kernel TCP.
test-live: $(VENV)/.test-installed
	$(BIN)/python -m pytest tests/live

# What is quick, for every day: formats, types, unit tests of all crates, and the Python tests that take a moment, with the core of make dev.
check: | $(VENV)/.test-installed
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 $(ROOMS)
	$(BIN)/ruff check conftest.py python tests benches fuzz
	$(BIN)/mypy
	$(DAILY) $(CARGO) test $(CHECKED) --workspace --lib --quiet
	$(BIN)/python -m pytest --quick --quiet --numprocesses=auto --maxprocesses=8 --dist=loadfile

# One test of one crate: make try CRATE=engine TEST=meter::
try: prerequisites
	$(DAILY) $(CARGO) test $(CHECKED) -p holdfast-$(CRATE) $(TEST)

# Puts the native core of this moment into the package: incrementally, hardly optimised. make demo and make test build the fast one again.
dev: | $(VENV)/.maturin
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(DAILY) $(BIN)/maturin develop --release
	@[ ! -e $(VENV)/.installed ] || touch -d @0 $(VENV)/.installed

# Packets per second beside hand-written code, tables on their own, table updates per second through P4Runtime, simulated networks, and
# one of them in ns-3 where that is installed. BENCH=--quick shows that it works, and compares small dumbbells' results with ns-2's and
# ns-3's and two flows with the kernel's; and the page of a small network.
bench: $(VENV)/.installed
	$(BIN)/holdfast bench $(BENCH)
	$(BIN)/holdfast bench --tables $(BENCH)
	$(BIN)/python benches/p4runtime.py $(filter --quick,$(BENCH))
	$(BIN)/holdfast bench --simulation $(BENCH)
	$(BIN)/python benches/ns3_dumbbell.py $(if $(filter --quick,$(BENCH)),--quick --repeat 1)
	$(if $(filter --quick,$(BENCH)),$(BIN)/python benches/ns2_agreement.py --quick)
	$(if $(filter --quick,$(BENCH)),$(BIN)/python benches/ns3_agreement.py --quick)
	$(if $(filter --quick,$(BENCH)),$(BIN)/python benches/live_agreement.py --quick)
	$(if $(filter --quick,$(BENCH)),$(BIN)/python benches/page.py --quick)

lint: $(VENV)/.test-installed
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 $(ROOMS)
	$(CARGO) clippy $(CHECKED) --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check conftest.py python tests benches fuzz
	$(BIN)/ruff format --check conftest.py python tests benches fuzz
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest holdfast._core

format: $(VENV)/.test-installed
	$(CARGO) fmt --all
	rustfmt --edition 2024 $(ROOMS)
	$(BIN)/ruff format conftest.py python tests benches fuzz
	$(BIN)/holdfast fmt benches examples p4include python
	$(BIN)/ruff check --fix conftest.py python tests benches fuzz

# p4runtime-shell and PTF need older protobuf than we do, so they live in an environment of their own. The tests use it if it is there.
shell-env: .venv-shell/.installed

# The documentation site, in out/site/html. A link that leads nowhere is an error.
site: .venv-site/.installed $(VENV)/.installed
	$(BIN)/python tests/python/site_build.py out/site
	cd out/site && $(CURDIR)/.venv-site/bin/zensical build --clean --strict

# A man page for each command, in out/man.
man: $(VENV)/.installed
	$(BIN)/python tests/python/command_line.py out/man

# Versions and hashes of all Python packages that CI and releases use (LOCKED=1 installs them), from what pyproject.toml allows.
lock: $(VENV)/.created
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(call locked,pyproject.toml requirements/build.in --extra compare --extra test --extra web,locked)
	$(call locked,pyproject.toml --extra ray --constraint requirements/locked.txt,ray)
	$(call locked,tests/p4runtime/shell-requirements.txt,shell)
	$(call locked,requirements/site.in,site)
	$(call locked,requirements/release.in,release)

# Builds wheels for Linux on x86-64 and, if Rust has its standard library (rustup target add aarch64-unknown-linux-gnu), on aarch64, with the
# commit in their version. They need a C library of 2014 or newer (manylinux_2_17). The first is run in an environment of its own.
release: .venv-release/.installed $(VENV)/.test-installed
	rm -rf dist
	for machine in x86_64 aarch64; do \
		if [ -e "$$($${RUSTC:-rustc} --print target-libdir --target $$machine-unknown-linux-gnu)" ]; then \
			HOLDFAST_COMMIT=$$(git describe --always --dirty) PATH=$(CURDIR)/.venv-release/bin:$$PATH \
				maturin build --release --zig --compatibility manylinux_2_17 --target $$machine-unknown-linux-gnu --out dist || exit 1; \
		else echo "no wheel for $$machine: rustup target add $$machine-unknown-linux-gnu"; fi; \
	done
	for wheel in dist/*.whl; do .venv-release/bin/auditwheel show $$wheel || exit 1; done
	$(BIN)/python tests/python/installed_wheel.py dist/*x86_64.whl

# The tests of the machine code on aarch64, under QEMU (Debian: qemu-user, gcc-aarch64-linux-gnu).
test-aarch64: prerequisites
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
		$(CARGO) test $(CHECKED) --target aarch64-unknown-linux-gnu -p holdfast-jit -p holdfast-conformance

clean:
	rm -rf target dist out $(VENV) .venv-shell .venv-site .venv-release fuzz/target

prerequisites:
	@test -n "$(PYTHON)" || { echo "Holdfast needs Python 3.11 or newer as python3 (or set PYTHON=/path/to/it)."; exit 1; }
	@command -v $(CARGO) >/dev/null || { echo "Holdfast needs a Rust toolchain: install it from https://rustup.rs, then run make again."; exit 1; }

$(VENV)/.created: | prerequisites
	@"$(PYTHON)" -m venv $(VENV) || { echo "Python's venv module is incomplete: install your system's python3-venv package."; rm -rf $(VENV); exit 1; }
	@touch $@

$(VENV)/.maturin: $(VENV)/.created
	$(BIN)/pip install --quiet --disable-pip-version-check $(if $(LOCKED),--require-hashes -r requirements/locked.txt,'maturin>=1.7,<2')
	@touch $@

$(VENV)/.installed: $(VENV)/.maturin pyproject.toml $(RUST_SOURCES)
	@echo "Building Holdfast (a few minutes the first time) ..."
	@$(call install,--extras compare)
	@touch $@

$(VENV)/.test-installed: $(VENV)/.installed
	@$(call install,--extras compare$(comma)test$(comma)web)
	@touch $@

.venv-shell/.installed .venv-site/.installed .venv-release/.installed: .venv-%/.installed: requirements/%.txt | prerequisites
	"$(PYTHON)" -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@
