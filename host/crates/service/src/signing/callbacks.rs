//! Rate and concurrency limits of provider callbacks. Anyone can send callbacks, and only
//! the plugin can verify them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use holdfast_domain::component::Slot;

const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of one instance's callbacks in progress at once.
const IN_HAND: usize = 16;

/// Recent callbacks on this node, by provider instance.
#[derive(Default)]
pub struct CallbackLimits {
    instances: Mutex<HashMap<(Slot, String), CallbackWindow>>,
}

/// Fixed window of one instance, with its concurrency limit.
struct CallbackWindow {
    began: Instant,
    taken: u32,
    in_hand: Arc<Semaphore>,
}

/// Reason why a callback is rejected for now.
#[derive(Debug, PartialEq, Eq)]
pub enum CallbackRejection {
    /// The instance's limit for this minute is used up. Carries the seconds to wait.
    TooMany(u32),
    /// Too many of the instance's callbacks are in progress.
    Busy,
}

impl CallbackLimits {
    /// Counts a callback and returns a permit to process it. `instance` must exist, which bounds
    /// the size of the map.
    ///
    /// # Errors
    /// More than `most` callbacks within a minute, or too many in progress.
    pub fn take(
        &self,
        slot: Slot,
        instance: &str,
        most: u32,
        now: Instant,
    ) -> Result<OwnedSemaphorePermit, CallbackRejection> {
        // A panic elsewhere leaves the counts usable.
        let mut instances = self
            .instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let place = instances.entry((slot, instance.to_owned()));
        let window = place.or_insert_with(|| CallbackWindow {
            began: now,
            taken: 0,
            in_hand: Arc::new(Semaphore::new(IN_HAND)),
        });

        let age = now.saturating_duration_since(window.began);
        if age >= WINDOW {
            (window.began, window.taken) = (now, 0);
        } else if window.taken >= most {
            let left = (WINDOW - age).as_secs_f64().ceil();
            return Err(CallbackRejection::TooMany(left as u32));
        }

        let permit = window.in_hand.clone().try_acquire_owned();
        let permit = permit.map_err(|_| CallbackRejection::Busy)?;

        // Rejected callbacks do not use up the minute's limit.
        window.taken += 1;
        Ok(permit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callback_limit_applies_to_each_instance() {
        let limits = CallbackLimits::default();
        let now = Instant::now();
        let take = |instance, now| limits.take(Slot::Signing, instance, 20, now).map(drop);
        for _ in 0..20 {
            assert_eq!(take("oak", now), Ok(()));
        }

        let later = now + Duration::from_secs(45);
        assert_eq!(take("oak", later), Err(CallbackRejection::TooMany(15)));
        assert_eq!(take("elm", later), Ok(()));
        assert_eq!(take("oak", now + WINDOW), Ok(()));
    }

    #[test]
    fn concurrent_callbacks_of_an_instance_are_limited() {
        let limits = CallbackLimits::default();
        let now = Instant::now();
        let take = || limits.take(Slot::Payment, "oak", 1000, now);
        let mut in_hand: Vec<_> = (0..IN_HAND).map(|_| take().unwrap()).collect();
        assert_eq!(take().unwrap_err(), CallbackRejection::Busy);
        in_hand.pop();
        assert!(take().is_ok());
    }
}
