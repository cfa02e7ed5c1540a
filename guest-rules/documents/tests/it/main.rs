//! Tests of the documents component, judged by independent PDF programs.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

mod anew;
mod completion;
mod corpus;
mod custody;
#[path = "../../../reader/tests/support/damage.rs"]
mod damage;
mod damages;
mod fill;
mod fixtures;
mod form_fields;
mod hostile;
mod long_term;
mod marks;
mod merging;
mod pages;
mod pictures;
mod readers;
mod seals;
mod signatures;
mod stripping;
mod support;
mod values;
mod watermarks;
