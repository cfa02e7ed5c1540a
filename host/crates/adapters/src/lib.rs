//! Adapters to the world outside this process: stored objects, mails, requests to untrusted addresses, seals and
//! time stamps, and the texts that people read.
//!
//! | Module | Holds | Begin with |
//! |---|---|---|
//! | `files` | stored objects, on a disk or in an object store; files on their way | [`files::Files`] |
//! | `mail` | mails and text messages: wording, layout; delivery of mails | [`mail::MailSender`] |
//! | `delivery` | the address guard, attempts of webhooks, OCI registries | [`delivery::sender::WebhookSender`] |
//! | `sealing` | seals (PAdES), and the client of time stamping authorities | [`sealing::SealingKey`] |
//! | `texts` | texts, dates and amounts in seven languages | [`texts::Texts`] |
//!
//! A use case names the file, mail or seal that it needs; these modules know the protocol, its limits and its failures.
//! None of them knows the database: jobs, attempts and their results are recorded by the callers.
//!
//! A put creates an object and never overwrites one. [`delivery::guard`] checks the address of each connection to
//! a webhook receiver, a provider or a registry. Equal documents get equal signatures.
//!
//! Only `mail` uses another module of this crate, `texts`. ARCHITECTURE.md, "Layers", has a row for each.

#![allow(
    missing_docs,
    reason = "public for tests that let a store fail or look names up themselves"
)]

pub mod delivery;
pub mod files;
pub mod mail;
pub mod sealing;
pub mod texts;
