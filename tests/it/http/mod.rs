//! Requests and connections, as clients see them.

mod connections;
mod exposure;
mod fair_use;
mod input;
mod openapi;
mod partner;
mod specification;
