//! The nouns. This crate knows no I/O and nothing of the host.
//!
//! | Word | Meaning |
//! |---|---|
//! | envelope | one document sent for signature (`esign`) or uploaded already signed (`paper`) |
//! | signer | a person who signs; a *submitter* in the records and at providers |
//! | role | the part a signer plays in a template (`Buyer`), the party it defines |
//! | authoritative copy | the one stored copy that is the contract (UCC §9-105) |
//! | non-authoritative copy | a marked copy, stored apart, free to hand out |
//! | vault in, vault out | storing the authoritative copy; releasing it for good |
//! | custodian | who keeps the authoritative copy for the secured party |
//! | custody ledger | the hash-chained history of an envelope |
//! | log | the Merkle tree of the entries of all custody ledgers |
//! | checkpoint | the log's head, signed |
//! | event | something a webhook receiver may want to know |
//! | endpoint | where an organization has its events delivered |
//! | delivery | one event on its way to one endpoint, with its attempts |
//! | package | templates that go out together, as one document |
//! | batch, item | one document for many clients; one of them |
//! | master template | what a batch's document is cloned from for each client |
//! | slot | what a component is for: `rules.compliance`, `provider.signing` … |
//! | activation | a component put into a slot, from a time on |
//! | instance | a provider that is set up, by its name |
//! | job | work that has to be done after a change was committed |

#![allow(missing_docs, reason = "plain records; each type says what it is")]

pub mod brand;
pub mod bulk;
pub mod change;
pub mod checkpoint;
pub mod clock;
pub mod component;
pub mod envelope;
pub mod event;
pub mod field;
pub mod hash;
pub mod id;
pub mod identity;
pub mod job;
pub mod ledger;
pub mod merkle;
pub mod organization;
pub mod package;
pub mod prefill;
pub mod priority;
pub mod seal;
pub mod succession;
pub mod template;
pub mod token;
pub mod warning;
pub mod webhook;
