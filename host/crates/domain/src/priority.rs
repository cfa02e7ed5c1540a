//! Priority of work that competes for a limited resource.

/// Priority class, highest first. A scarce resource goes to the higher class first, without
/// starving the lower ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PriorityClass {
    /// Short work that goes before everything else.
    Urgent,
    /// Work that a request waits for.
    #[default]
    Request,
    /// A job. Document work of requests goes before it (`fair_queue.rs`).
    Job,
    /// A job of a bulk batch, or a mail. Its transactions also yield to those of all other
    /// classes (`store/turns.rs`).
    Batch,
}
