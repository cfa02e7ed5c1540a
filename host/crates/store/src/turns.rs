//! Priority queue for the single writer of SQLite.
//!
//! The queue of requests grows with the number of clients. Urgent work, such as recording webhook
//! deliveries, goes first: the longer that waits, the more deliveries are repeated after a crash.
//! Batch work, such as bulk sends and their mails, goes last.
//!
//! A writer that is done leaves its transaction open for the next one, so that both pay for one commit. The turn
//! decides when it is committed: none waits, only a batch does, enough writers share it, or an urgent one is done.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use holdfast_domain::priority::PriorityClass;

use super::writers::SqliteWriter;

/// Passes the write turn from one writer to the next.
#[derive(Clone)]
pub(super) struct WriterQueue {
    state: Arc<Mutex<WriterQueueState>>,
    writer: Arc<SqliteWriter>,
}

/// Number of writers that share a commit. The first of them waits for all others.
const SHARING: usize = 8;

/// Number of other writers that may pass a waiting batch writer, so that batches do not starve.
const BEFORE_BATCH: u32 = 8;

#[derive(Default)]
struct WriterQueueState {
    taken: bool,
    urgent: VecDeque<oneshot::Sender<WriterTurn>>,
    usual: VecDeque<oneshot::Sender<WriterTurn>>,
    batch: VecDeque<oneshot::Sender<WriterTurn>>,
    /// Number of other writers that passed since a batch writer began to wait.
    passed: u32,
}

impl WriterQueueState {
    /// Returns whether the next writer may share the open transaction: a batch may not: its turn also comes while
    /// requests wait.
    fn shares_next(&self) -> bool {
        let is_waiting = |waiter: &oneshot::Sender<WriterTurn>| !waiter.is_closed();
        let is_batch = self.passed >= BEFORE_BATCH && self.batch.iter().any(is_waiting);
        self.urgent.iter().any(is_waiting) || (!is_batch && self.usual.iter().any(is_waiting))
    }

    /// Returns the next waiter, which may have given up.
    fn next(&mut self) -> Option<oneshot::Sender<WriterTurn>> {
        if let Some(urgent) = self.urgent.pop_front() {
            return Some(urgent);
        }

        // Urgent writers are not counted: they are few and must never wait for a batch.
        if self.passed < BEFORE_BATCH
            && let Some(usual) = self.usual.pop_front()
        {
            self.passed += u32::from(!self.batch.is_empty());
            return Some(usual);
        }

        self.passed = 0;
        self.batch.pop_front().or_else(|| self.usual.pop_front())
    }
}

/// Right to write; dropping it passes the turn on.
pub(super) struct WriterTurn {
    turns: WriterQueue,
    /// Urgent work is committed at once, with what others left open: it does not wait for further writers.
    is_urgent: bool,
}

impl WriterQueue {
    pub fn of(writer: Arc<SqliteWriter>) -> Self {
        Self {
            state: Arc::default(),
            writer,
        }
    }

    /// Waits for the turn.
    pub async fn wait(&self, priority: PriorityClass) -> WriterTurn {
        let handed = {
            let mut state = self.lock();
            if !state.taken {
                state.taken = true;
                return self.turn(priority);
            }

            let (hand, handed) = oneshot::channel();
            match priority {
                PriorityClass::Urgent => state.urgent.push_back(hand),
                PriorityClass::Request | PriorityClass::Job => state.usual.push_back(hand),
                PriorityClass::Batch => state.batch.push_back(hand),
            }

            handed
        };

        match handed.await {
            Ok(mut turn) => {
                // Whoever passes the turn on does not know for what it is used.
                turn.is_urgent = matches!(priority, PriorityClass::Urgent);
                turn
            }
            // Unreachable: the queue outlives its waiters.
            Err(_) => self.turn(priority),
        }
    }

    fn turn(&self, priority: PriorityClass) -> WriterTurn {
        WriterTurn {
            turns: self.clone(),
            is_urgent: matches!(priority, PriorityClass::Urgent),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WriterQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WriterTurn {
    fn drop(&mut self) {
        let writer = &self.turns.writer;
        let next = loop {
            let shares = self.turns.lock().shares_next();
            if self.is_urgent || !shares || writer.sharing() >= SHARING {
                writer.commit_shared();
            }

            let mut state = self.turns.lock();
            let next = loop {
                match state.next() {
                    // The waiter has given up.
                    Some(next) if next.is_closed() => {}
                    next => break next,
                }
            };
            // Who was to share the transaction has given up just now: it must not stay open.
            if next.is_none() && writer.sharing() > 0 {
                continue;
            }
            state.taken = next.is_some();
            break next;
        };

        // The queue is unlocked here, because a failed send drops a turn, which locks it again.
        if let Some(next) = next {
            // If the waiter gives up right now, dropping the turn in the channel passes it on.
            drop(next.send(self.turns.turn(PriorityClass::Request)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteFile;

    use super::PriorityClass::{Batch, Request, Urgent};

    /// Nothing here writes, so the file is never opened.
    fn queue() -> WriterQueue {
        let file = SqliteFile::parse("sqlite://unused.db").unwrap();
        WriterQueue::of(Arc::new(SqliteWriter::new(file)))
    }

    /// Returns the order in which writers that wait together get their turns.
    async fn order(waiting: &[(&'static str, PriorityClass)]) -> Vec<&'static str> {
        let turns = queue();
        let first = turns.wait(Request).await;
        let order = Arc::new(Mutex::new(Vec::new()));

        let mut tasks = Vec::new();
        for (name, priority) in waiting.iter().copied() {
            let (turns, order) = (turns.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let _turn = turns.wait(priority).await;
                order.lock().unwrap().push(name);
            }));
            tokio::task::yield_now().await;
        }

        drop(first);
        for task in tasks {
            task.await.unwrap();
        }

        let order = order.lock().unwrap();
        order.clone()
    }

    #[tokio::test]
    async fn writes_are_ordered_by_priority_and_arrival() {
        let waiting = [
            ("a", Request),
            ("x", Batch),
            ("b", Request),
            ("c", Urgent),
            ("d", Urgent),
        ];
        assert_eq!(order(&waiting).await, ["c", "d", "a", "b", "x"]);
    }

    #[tokio::test]
    async fn low_priority_writes_are_not_starved() {
        let mut waiting = vec![("x", Batch), ("y", Batch)];
        waiting.extend([("a", Request); 20]);
        let order = order(&waiting).await;
        assert_eq!(order.iter().position(|name| *name == "x"), Some(8));
        assert_eq!(order.iter().position(|name| *name == "y"), Some(17));
    }

    #[tokio::test]
    async fn a_cancelled_waiter_does_not_block_other_writers() {
        let turns = queue();
        let first = turns.wait(Request).await;
        let other = turns.clone();
        let gone = tokio::spawn(async move { drop(other.wait(Urgent).await) });
        tokio::task::yield_now().await;
        gone.abort();
        let _ = gone.await;

        drop(first);
        drop(turns.wait(Request).await);
        drop(turns.wait(Urgent).await);
    }
}
