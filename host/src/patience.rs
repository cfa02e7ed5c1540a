//! Work that no request waits for, as a property of the task that does it.

use std::future::Future;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A job: document work of requests goes before it (`fair_queue.rs`).
    Job,
    /// A job of a bulk batch, or a mail: where there is one writer, its transactions go
    /// behind those of all others, too (`store/turns.rs`).
    Patient,
}

tokio::task_local! {
    static KIND: Kind;
}

/// Does the work of a job.
pub async fn as_job<F: Future>(work: F) -> F::Output {
    KIND.scope(Kind::Job, work).await
}

/// Does the work of a job that gives way to all others.
pub async fn patiently<F: Future>(work: F) -> F::Output {
    KIND.scope(Kind::Patient, work).await
}

/// Whether a job does this.
pub fn is_job() -> bool {
    KIND.try_get().is_ok()
}

/// Whether this gives way to all other work.
pub fn is_patient() -> bool {
    KIND.try_get().is_ok_and(|kind| kind == Kind::Patient)
}
