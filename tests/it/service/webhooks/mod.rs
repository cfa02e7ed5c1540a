//! Webhooks.

mod endpoints;
mod snippets;
