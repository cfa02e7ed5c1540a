//! End-to-end tests: people with a browser, and servers that crash.

mod browser;
mod bulk_drills;
mod control_drills;
pub mod crash;
mod dealer;
mod destruction_drills;
mod effort;
mod examples;
pub mod main_job;
mod nodes;
mod parties;
mod phone;
mod seal_drills;
mod truth_matrix;
mod webhook_drills;
