//! The integration tests: one program, folders like `host/src`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod backup;
mod browser;
#[path = "../../guest-rules/reader/tests/support/mod.rs"]
mod builder;
mod bulk;
mod bulk_drills;
mod compatibility;
mod component_isolation;
mod component_registry;
mod component_uploads;
mod components;
mod connections;
mod crash;
mod customers;
#[path = "../../guest-rules/reader/tests/support/damage.rs"]
mod damage;
mod documents;
mod docuseal;
mod embed;
mod envelopes;
mod evidence;
mod exposure;
mod fair_use;
mod field_builder;
mod full_disk;
mod idempotency;
mod input;
mod integrity;
mod journeys;
mod kba;
mod keys;
mod layers;
mod ledger;
mod mail;
mod misbehaving;
mod nodes;
mod object_storage;
mod openapi;
mod operator;
mod packages;
mod packaging;
mod partner;
mod payments;
mod pipeline;
mod plugin_kit;
mod rate_limits;
mod room;
mod seals;
mod sending;
mod settings;
mod signing;
mod specification;
mod store;
mod support;
mod template_library;
mod tokens;
mod traces;
mod trusted_time;
mod vault;
mod verdicts;
mod webhook_addresses;
mod webhook_drills;
mod webhook_snippets;
mod webhooks;
