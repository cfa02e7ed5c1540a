# The few commands of this project. Each installs what it lacks (tests/set-up).

# A document of one's own for the demo: make demo PDF=path/to/any.pdf
PDF ?=
# Sections of the benchmark; all when empty.
SECTIONS ?=
CRATES = --workspace --exclude holdfast-bench
# On several nodes: not what has stores of its own, looks into a database file, sends parts
# to s3s-fs, or counts what one node does.
ON_NODES = binary(it) & not test(/^(backup|store|cli::plugin_kit|components::(artifacts|documents)|files::object_storage)::/) \
  & not test(/^journeys::(crash|nodes|webhook_drills|bulk_drills)::/) \
  & not test(/_on_sqlite$$/) & not test(/(fifty_megabytes|is_kept_nowhere|orphaned_objects_are_removed|cannot_be_kept_is_a_500)/) \
  & not test(/(an_issuer|archived_by_somebody_else|seal_is_made_and_everybody_is_told|vault_ins_on_two_nodes|hangs_delays_no_other|a_thousand_switches|a_monitor_sees_growth)/)

.PHONY: demo serve deny test test-nodes test-shards test-citus test-upgrade test-image lint bench bench-scale crash deb verify fuzz-api fuzz fuzz-pdf

demo:
	@tests/set-up build
	@cargo build -q $(CRATES) --bin holdfast --example demo
	@target="$${CARGO_TARGET_DIR:-target}"; "$$target/debug/examples/demo" $(if $(PDF),"$(PDF)")

# The demo, and its server left running.
serve:
	@tests/set-up build
	@cargo build -q $(CRATES) --bin holdfast --example demo
	@target="$${CARGO_TARGET_DIR:-target}"; "$$target/debug/examples/demo" --serve $(if $(PDF),"$(PDF)")

# The tests are built before anything is linted: from scratch, the components
# then compile beside all the rest.
test:
	@tests/set-up test
	@cargo fmt --all --check
	@cargo nextest run --no-run $(CRATES)
	@cargo clippy -q $(CRATES) --all-targets -- -D warnings
	@tests/deny
	@tests/with-postgres cargo nextest run $(CRATES)
	@cargo test -q --doc $(CRATES)

# The integration tests once more, each on several nodes that share PostgreSQL and S3.
# What is about SQLite or a data folder has no part in it.
NODES ?= 2
test-nodes:
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@TEST_NODES=$(NODES) tests/with-s3 tests/with-postgres cargo nextest run $(CRATES) --profile nodes -E '$(ON_NODES)'

# The same on a database whose tables are partitioned by bucket, and whatever locks rows
# names their bucket: what a database that is spread over shards asks for.
test-shards:
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@TEST_SHARDS=partitions TEST_POSTGRES_OPTIONS="-c log_statement=all -c log_line_prefix=" TEST_NODES=$(NODES) \
	  tests/with-s3 tests/with-postgres sh -c "cargo nextest run $(CRATES) --profile nodes -E '$(ON_NODES)' && tests/locks-name-a-bucket"

# The same on a Citus cluster of a coordinator and two workers; CITUS_SOURCE is a folder
# with its source, where it is not installed.
test-citus:
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@TEST_NODES=$(NODES) tests/with-s3 tests/with-citus cargo nextest run $(CRATES) --profile nodes -E '$(ON_NODES)'

# An older version beside this one: OLD is its binary; else it is built, as it was before
# the last change of the schema.
test-upgrade:
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@old="$(OLD)"; TEST_OLD_HOLDFAST="$${old:-$$(tests/older-version)}" tests/with-postgres \
	  cargo nextest run $(CRATES) --run-ignored only --no-capture -E 'test(an_old_and_a_new_version)'

# Licences, sources and advisories of the dependencies.
deny:
	@tests/set-up test
	@tests/deny

lint:
	@tests/set-up test
	@cargo fmt --all --check
	@cargo clippy -q $(CRATES) --all-targets -- -D warnings
	@cargo check -q -p holdfast-verify

# Looks for answers that the OpenAPI document does not know.
fuzz-api:
	@tests/set-up build
	@cargo build -q $(CRATES) --bin holdfast
	@tests/fuzz-api

# Fuzzes what reads and writes documents, natively: 3 targets of 10 minutes.
fuzz:
	@tests/set-up build
	@tests/fuzz

# 5,000 damaged documents through the template endpoint and the real components.
fuzz-pdf:
	@tests/set-up test
	@HOLDFAST_MUTATED=$${HOLDFAST_MUTATED:-5000} tests/with-postgres cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(damaged_documents_never_make_the_service_fail)'

# Kills servers: 300 times with SQLite, 100 times with PostgreSQL, at every step
# of vault-in and vault-out and at random; 20 times while 30,000 webhook events
# flow and 20 times in a bulk batch of 1,000, on both; and lets disks fail to sync. About twenty minutes.
crash:
	@tests/set-up test
	@HOLDFAST_KILLS=$${HOLDFAST_KILLS:-300} tests/with-postgres cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(crash::) or test(webhook_drills::crash) or test(bulk_drills::) or test(nodes::)'

# The program that checks bundles, for whoever gets one.
verify:
	@tests/set-up build
	@cargo build --profile dist -p holdfast-verify

# A Debian package in target/packages.
deb:
	@tests/set-up build
	@cargo build -q --profile dist --locked -p holdfast
	@target="$${CARGO_TARGET_DIR:-target}"; packaging/build-deb "$$target/dist/holdfast" "$$target/packages"

# The OCI image around a release binary, and the Kubernetes manifest with it, on podman.
test-image:
	@tests/set-up test
	@cargo build -q --release -p holdfast
	@target="$${CARGO_TARGET_DIR:-target}"; tests/with-s3 tests/with-postgres tests/image "$$target/release/holdfast"

# The same requests with 100,000 envelopes and with so many, and the plans of their queries.
SCALE ?= 1000000
bench-scale:
	@tests/set-up test
	@cargo build -q --release -p holdfast -p holdfast-bench
	@target="$${CARGO_TARGET_DIR:-target}"; SCALE=$(SCALE) tests/with-postgres "$$target/release/holdfast-bench" scale

# Prints ratios; asserts nothing.
bench:
	@tests/set-up test
	@cargo build -q --release -p holdfast -p holdfast-bench
	@target="$${CARGO_TARGET_DIR:-target}"; tests/with-postgres "$$target/release/holdfast-bench" $(SECTIONS)
