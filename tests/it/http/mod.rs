//! Requests and connections from the client's side.

mod connections;
pub mod console;
mod console_acts;
mod console_cells;
mod console_forms;
mod console_journeys;
mod console_lists;
mod console_records;
mod console_sending;
mod console_words;
mod docs_site;
mod event_feed;
mod exposure;
mod fair_use;
mod governing;
mod input;
mod insight;
mod mcp;
pub mod openapi;
mod partner;
mod passkeys;
mod recorded;
mod roles;
mod sign_on;
mod specification;
mod strangers;
mod weight;
