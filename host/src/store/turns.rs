//! Whose turn it is to write, where there is one writer.
//!
//! SQLite has one writer, and a queue of requests in front of it is as long as
//! there are clients. What has been delivered is recorded before they are served:
//! the longer that waits, the more is delivered twice after a crash. Work that nobody
//! waits for, a bulk batch or its mails, goes behind them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::domain::priority::Priority;

/// Hands the one turn from one writer to the next.
#[derive(Clone, Default)]
pub(super) struct Turns {
    state: Arc<Mutex<State>>,
}

/// So many others go before one of a batch.
const BEFORE_BATCH: u32 = 8;

#[derive(Default)]
struct State {
    taken: bool,
    urgent: VecDeque<oneshot::Sender<Turn>>,
    usual: VecDeque<oneshot::Sender<Turn>>,
    batch: VecDeque<oneshot::Sender<Turn>>,
    /// Others that went while one of a batch waited.
    passed: u32,
}

impl State {
    /// Who is next; they may have stopped waiting.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        if let Some(urgent) = self.urgent.pop_front() {
            return Some(urgent);
        }
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

/// The right to write. Whoever drops it hands it on.
pub(super) struct Turn {
    turns: Turns,
}

impl Turns {
    /// Waits for the turn.
    pub async fn wait(&self, priority: Priority) -> Turn {
        let handed = {
            let mut state = self.lock();
            if !state.taken {
                state.taken = true;
                return self.turn();
            }
            let (hand, handed) = oneshot::channel();
            match priority {
                Priority::Urgent => state.urgent.push_back(hand),
                Priority::Request | Priority::Job => state.usual.push_back(hand),
                Priority::Batch => state.batch.push_back(hand),
            }
            handed
        };
        match handed.await {
            Ok(turn) => turn,
            // The queue lives as long as somebody waits in it.
            Err(_) => self.turn(),
        }
    }

    fn turn(&self) -> Turn {
        Turn {
            turns: self.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        let next = loop {
            match state.next() {
                // Has stopped waiting.
                Some(next) if next.is_closed() => {}
                next => break next,
            }
        };
        state.taken = next.is_some();
        drop(state);
        if let Some(next) = next {
            // Whoever stops waiting now drops it, which hands it on.
            drop(next.send(self.turns.turn()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::Priority::{Batch, Request, Urgent};

    /// In which order these get their turns when all wait at once.
    async fn order(waiting: &[(&'static str, Priority)]) -> Vec<&'static str> {
        let turns = Turns::default();
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
    async fn the_urgent_go_first_batches_last_and_each_in_order() {
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
    async fn batches_are_not_forgotten() {
        let mut waiting = vec![("x", Batch), ("y", Batch)];
        waiting.extend([("a", Request); 20]);
        let order = order(&waiting).await;
        assert_eq!(order.iter().position(|name| *name == "x"), Some(8));
        assert_eq!(order.iter().position(|name| *name == "y"), Some(17));
    }

    #[tokio::test]
    async fn who_gives_up_waiting_holds_up_nobody() {
        let turns = Turns::default();
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
