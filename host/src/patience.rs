//! Work that nobody waits for: a bulk batch, its mails. Where there is one writer, its
//! transactions go behind those of requests (`store/turns.rs`), also those that a
//! provider makes for it in this process.

use std::future::Future;

tokio::task_local! {
    static PATIENT: ();
}

/// Does work that nobody waits for.
pub async fn patiently<F: Future>(work: F) -> F::Output {
    PATIENT.scope((), work).await
}

/// For a task of its own: as patiently as who starts it.
pub fn as_patiently<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let patient = is_patient();
    async move {
        match patient {
            true => patiently(work).await,
            false => work.await,
        }
    }
}

/// Whether nobody waits for what is being done.
pub fn is_patient() -> bool {
    PATIENT.try_with(|()| ()).is_ok()
}
