//! Adapters to the world outside this process: stored objects, mails, requests to untrusted addresses, seals and
//! time stamps, and the texts that people read.
//!
//! A use case names what it wants; these modules know the protocol, its limits and its failures.

#![allow(
    missing_docs,
    reason = "public for tests that let a store fail or look names up themselves"
)]

pub mod delivery;
pub mod files;
pub mod mail;
pub mod sealing;
pub mod texts;
