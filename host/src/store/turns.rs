//! Whose turn it is to write, where there is one writer.
//!
//! SQLite has one writer, and a queue of requests in front of it is as long as
//! there are clients. What has been delivered is recorded before they are served:
//! the longer that waits, the more is delivered twice after a crash.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Hands the one turn from one writer to the next.
#[derive(Clone, Default)]
pub(super) struct Turns {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    taken: bool,
    urgent: VecDeque<oneshot::Sender<Turn>>,
    others: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to write. Whoever drops it hands it on.
pub(super) struct Turn {
    turns: Turns,
}

impl Turns {
    /// Waits for the turn; `urgent` goes before everybody who is not.
    pub async fn wait(&self, urgent: bool) -> Turn {
        let handed = {
            let mut state = self.lock();
            if !state.taken {
                state.taken = true;
                return self.turn();
            }
            let (hand, handed) = oneshot::channel();
            match urgent {
                true => state.urgent.push_back(hand),
                false => state.others.push_back(hand),
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
            let next = state.urgent.pop_front();
            match next.or_else(|| state.others.pop_front()) {
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

    #[tokio::test]
    async fn the_urgent_go_first_and_each_in_order() {
        let turns = Turns::default();
        let first = turns.wait(false).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for (name, urgent) in [("a", false), ("b", false), ("c", true), ("d", true)] {
            let (turns, order) = (turns.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let _turn = turns.wait(urgent).await;
                order.lock().unwrap().push(name);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for one in waiting {
            one.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["c", "d", "a", "b"]);
    }

    #[tokio::test]
    async fn who_gives_up_waiting_holds_up_nobody() {
        let turns = Turns::default();
        let first = turns.wait(false).await;
        let other = turns.clone();
        let gone = tokio::spawn(async move { drop(other.wait(true).await) });
        tokio::task::yield_now().await;
        gone.abort();
        let _ = gone.await;
        drop(first);
        drop(turns.wait(false).await);
        drop(turns.wait(true).await);
    }
}
