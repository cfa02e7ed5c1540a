# The commands of this project; `make help` lists them. Each installs what it lacks
# (tests/set-up), apart from `make check`, which installs nothing.

# Document for the demo: make demo PDF=path/to/any.pdf
PDF ?=
CRATES = --workspace --exclude holdfast-bench
TARGET = $${CARGO_TARGET_DIR:-target}
# Components that were built from the same sources before, so that a second clone does not compile them.
SETS = COMPONENT_SETS="$${COMPONENT_SETS-$${XDG_CACHE_HOME:-$$HOME/.cache}/holdfast/components}"
# Integration tests that need neither PostgreSQL nor another program beside them.
ON_SQLITE = kind(lib) | kind(bin) | (binary(it) & test(/^(config|evidence|http|keys|layers|room|service|store)::/) \
  & not test(/(on_postgresql|on_both_databases|in_a_browser|a_burst_at_one_node_does_not_take_the_other_nodes_share|concurrent_vault_ins_on_two_nodes_make_one_authoritative_copy|every_node_follows_an_activation|nodes_share_a_rate_limit_window|two_nodes_share_deliveries_without_duplicates)/))

.PHONY: help demo demo-sale serve check test lint deny deb verify release

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{ printf "  make %-13s %s\n", $$1, $$2 }'

demo: ## Build, then walk one contract from template to verified release
	@tests/set-up build
	@$(SETS) tests/phase "Building holdfast" cargo build $(CRATES) --bin holdfast --bin holdfast-verify --bin demo
	@"$(TARGET)/debug/demo" $(if $(PDF),"$(PDF)")

demo-sale: ## The demo, with a sale: originator, lender, funder
	@tests/set-up build
	@$(SETS) tests/phase "Building holdfast" cargo build $(CRATES) --bin holdfast --bin holdfast-verify --bin demo
	@"$(TARGET)/debug/demo" --sale $(if $(PDF),"$(PDF)")

serve: ## The demo, and its server left running
	@tests/set-up build
	@$(SETS) tests/phase "Building holdfast" cargo build $(CRATES) --bin holdfast --bin holdfast-verify --bin demo
	@"$(TARGET)/debug/demo" --serve $(if $(PDF),"$(PDF)")

check: ## Format, lints, unit and SQLite tests; installs nothing
	@tests/set-up --dry-run build
	@cargo fmt --all --check
	@tests/prose --changed
	@tests/shape
	@cargo clippy -q $(CRATES) --all-targets -- -D warnings
	@cargo nextest run $(CRATES) --cargo-quiet --status-level fail -E '$(ON_SQLITE)'

test: ## Every test: PostgreSQL, browser, mail server, kills
	@tests/set-up build
	@cargo fmt --all --check
	@tests/prose
	@tests/shape
	@tests/phase-beside "Installing what the tests need" "tests/set-up test" \
	  "Building and linting" "tests/linted test -q --no-run --all-targets $(CRATES) && tests/linted build -q --bins $(CRATES)"
	@tests/deny
	@tests/with-postgres tests/linted nextest run $(CRATES)
	@tests/linted test -q --doc $(CRATES)

deny: ## Licences, sources and advisories of the dependencies
	@tests/set-up test
	@tests/deny

lint: ## Format and lints of every crate
	@tests/set-up test
	@cargo fmt --all --check
	@cargo clippy -q $(CRATES) --all-targets -- -D warnings
	@cargo check -q -p holdfast-verify
	@cargo check -q -p holdfast-bench

verify: ## The program that verifies bundles, for their recipients
	@tests/set-up build
	@cargo build --profile verifier -p holdfast-verify

deb: ## A Debian package in target/packages
	@tests/set-up build
	@cargo build -q --profile dist --locked --manifest-path host/Cargo.toml --no-default-features
	@cargo build -q --profile verifier --locked -p holdfast-verify
	@target="$(TARGET)"; packaging/build-deb "$$target/dist/holdfast" "$$target/verifier/holdfast-verify" "$$target/packages"

# RELEASE_KEY is the private key that signs; TARGETS="x86_64" and PARTS="deb" leave out arm64 and the image.
RELEASE ?= $(TARGET)/release-page
release: ## Everything that a release page carries (RELEASE_KEY=…)
	@tests/set-up build
	@packaging/release "$(RELEASE)"

include drills.mk
