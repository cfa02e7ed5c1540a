//! Whole stories: people with a browser, and servers that die on the way.

mod browser;
mod bulk_drills;
pub mod crash;
pub mod main_job;
mod nodes;
mod webhook_drills;
