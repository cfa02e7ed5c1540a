//! Who goes before whom.

/// For whom work is done. Where something is scarce, the earlier goes before the later;
/// nobody waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Before everybody else, and short.
    Urgent,
    /// A request waits for it.
    #[default]
    Request,
    /// A job: document work of requests goes before it (`fair_queue.rs`).
    Job,
    /// A job of a bulk batch, or a mail: its transactions go behind those of all others,
    /// too (`store/turns.rs`).
    Batch,
}
