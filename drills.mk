# Drills, fuzzing and benchmarks: slow, and apart from `make test`, which runs short versions.

.PHONY: test-nodes test-shards test-citus test-upgrade test-image reproduce first-light crash corpus damages facts-set journeys mutants fuzz fuzz-api fuzz-pdf bench bench-scale

# Sections of the benchmark; all when empty.
SECTIONS ?=
# Tests that can run on several nodes: not those with stores of their own, that read a
# database file, send parts to s3s-fs, or count the work of one node.
ON_NODES = binary(it) & not test(/^(backup|moving|store|cli::plugin_kit|components::(artifacts|documents)|files::object_storage)::/) \
  & not test(/^journeys::(crash|nodes|webhook_drills|bulk_drills|seal_drills)::/) \
  & not test(/_on_sqlite$$/) & not test(/(fifty_megabytes|is_stored_nowhere|orphaned_objects_are_removed|cannot_be_stored_is_a_500)/) \
  & not test(/(an_issuer|archived_at_docuseal|seal_without_a_usable_time_stamp|vault_ins_on_two_nodes|hangs_delays_no_other|a_thousand_switches|a_monitor_sees_growth)/)

# The integration tests once more, each on several nodes that share PostgreSQL and S3.
# Tests of SQLite or of a data folder are left out.
NODES ?= 2
test-nodes: ## Integration tests on several nodes (NODES=2), PostgreSQL and S3
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@TEST_NODES=$(NODES) tests/with-s3 tests/with-postgres cargo nextest run $(CRATES) --profile nodes -E '$(ON_NODES)'

# Every statement that locks rows has to name their bucket, as a sharded database requires.
test-shards: ## The same on tables partitioned by bucket
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@TEST_SHARDS=partitions TEST_POSTGRES_OPTIONS="-c log_statement=all -c log_line_prefix=" TEST_NODES=$(NODES) \
	  tests/with-s3 tests/with-postgres sh -c "cargo nextest run $(CRATES) --profile nodes -E '$(ON_NODES)' && tests/locks-name-a-bucket"

# A coordinator and two workers. CITUS_SOURCE is a folder with the source where Citus is not
# installed.
test-citus: ## The same on a Citus cluster
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@TEST_NODES=$(NODES) tests/with-s3 tests/with-citus cargo nextest run $(CRATES) --profile nodes -E '$(ON_NODES)'

# OLD is the binary of the older version. Without it, the version before the last schema change
# is built.
test-upgrade: ## An older version beside this one
	@tests/set-up test
	@cargo nextest run --no-run $(CRATES)
	@old="$(OLD)"; TEST_OLD_HOLDFAST="$${old:-$$(tests/older-version)}" tests/with-postgres \
	  cargo nextest run $(CRATES) --run-ignored only --no-capture -E 'test(an_old_and_a_new_version)'

fuzz-api: ## Search for answers that OpenAPI does not document
	@tests/set-up build
	@cargo build -q $(CRATES) --bin holdfast
	@tests/fuzz-api

fuzz: ## Fuzz the PDF code natively: 3 targets of 10 minutes
	@tests/set-up build
	@tests/fuzz

fuzz-pdf: ## 5,000 damaged documents through the API
	@tests/set-up test
	@HOLDFAST_MUTATED=$${HOLDFAST_MUTATED:-5000} tests/with-postgres cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(damaged_documents_never_make_the_service_fail)'

# CORPUS names folders with PDFs, separated by colons.
CORPUS ?= tests/fixtures:tests/fixtures/hunt
corpus: ## Every PDF of CORPUS signed, uploaded and compared by two other readers
	@tests/set-up test
	@HOLDFAST_CORPUS="$$(realpath $(subst :, ,$(CORPUS)) | paste -sd:)" tests/with-postgres cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(every_document_of_the_corpus_is_shown_alike_or_refused)'

damages: ## 2,000 documents damaged in 100 ways
	@tests/set-up test
	@HOLDFAST_DAMAGED=$${HOLDFAST_DAMAGED:-2000} cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(a_damaged_document_looks_the_same_or_is_refused)'

journeys: ## Clicks and seconds of what people do in the console, on a desktop and a phone
	@tests/set-up test
	@HOLDFAST_SCREENS=both tests/with-postgres cargo nextest run $(CRATES) --no-capture -E 'test(journeys::effort::) + test(pages_of_the_console_are_light)'

# Contracts as PDFs in five layouts, five errors in tapes for each, and documents of others: the tables of docs/tape.md.
facts-set: ## 2,000 made contracts against tapes with 10,000 errors
	@tests/set-up test
	@HOLDFAST_CONTRACTS=$${HOLDFAST_CONTRACTS:-2000} cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(facts::made_set::)'

# 300 kills on SQLite and 100 on PostgreSQL, at every step of vault-in and vault-out and at
# random; 100 each while records change hands; 300 each while time stamps are renewed; 20 each during 30,000 webhook events and a bulk batch of 1,000 on both; failing disks;
# 44 during moves of MOVE_RECORDS envelopes to PostgreSQL and back.
crash: ## Kill servers at every step of their work; an hour
	@tests/set-up test
	@HOLDFAST_KILLS=$${HOLDFAST_KILLS:-300} MOVE_RECORDS=$${MOVE_RECORDS:-100000} tests/with-postgres cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(crash::) or test(webhook_drills::crash) or test(bulk_drills::) or test(control_drills::) or test(seal_drills::) or test(nodes::) or test(kills_at_each_step_of_a_move)'

# With RELEASE, the folder of a release, and KEY, its public key, its own programs and image.
test-image: ## Container image and Kubernetes manifest on podman
	@tests/set-up test
ifeq ($(origin RELEASE), file)
	@cargo build -q --release -p holdfast -p holdfast-verify
	@target="$(TARGET)"; tests/with-s3 tests/with-postgres tests/image "$$target/release/holdfast" "$$target/release/holdfast-verify"
else
	@tests/with-s3 tests/with-postgres tests/image "$(RELEASE)" "$(KEY)"
endif

# Builds of the last commit; TARGETS and PARTS as for `make release`.
reproduce: ## A release built twice in two folders: the same bytes
	@tests/set-up build
	@tests/reproducible-release

first-light: ## Seconds from a release (RELEASE=… KEY=…) to a signed contract
	@tests/first-light "$(RELEASE)" "$(KEY)"

SCALE ?= 1000000
bench-scale: ## Requests with 100,000 envelopes against SCALE=1000000
	@tests/set-up test
	@cargo build -q --release -p holdfast -p holdfast-bench
	@target="$(TARGET)"; SCALE=$(SCALE) tests/with-postgres "$$target/release/holdfast-bench" scale

bench: ## Ratios of one run: SECTIONS="partner vault"
	@tests/set-up test
	@cargo build -q --release -p holdfast -p holdfast-bench
	@target="$(TARGET)"; tests/with-postgres "$$target/release/holdfast-bench" $(SECTIONS)

# 500 mutants of the built-in rules, and the starters that take longest to build.
mutants: ## Mutants of the built-in rules against the behaviour diff
	@tests/set-up test
	@HOLDFAST_MUTANTS=$${HOLDFAST_MUTANTS:-500} HOLDFAST_STARTERS=all tests/with-postgres cargo nextest run $(CRATES) \
	  --profile drill --no-capture -E 'test(mutants_of_the_built_in_rules_do_not_escape) + test(starters_build_and_answer) + test(providers_pass_their_tests)'
