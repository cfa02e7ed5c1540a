//! Batches yield to people: how much of their time they work follows how long requests take.
//!
//! While requests are answered about as fast as without a batch, the share of time in which batches work grows by a
//! sixteenth an interval. While they are slow, it is halved (additive increase, multiplicative decrease). It never
//! falls below a sixteenth, so that a crowd of slow requests cannot stop a batch.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time over which the latency of requests is averaged before the share changes.
const INTERVAL: Duration = Duration::from_millis(100);
/// Growth of the share an interval, and its lower bound.
const STEP: f64 = 1.0 / 16.0;
/// Latency, as a multiple of the usual one, at which requests count as slow.
const SLOW: f64 = 1.5;
/// Shorter latencies count as this one: below it, the noise of the machine is larger than any difference.
const SHORTEST: f64 = 0.001;
/// Weight of a new latency in the usual one.
const WEIGHT: f64 = 1.0 / 16.0;
/// Longest pause of a lane, so that it notices a quiet time soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How much of their time the batches of this node work.
pub struct BatchPace {
    state: Mutex<PaceState>,
}

struct PaceState {
    /// Usual seconds of a request, by method and route.
    usual: HashMap<String, HashMap<String, f64>>,
    /// Share of their time in which lanes work.
    share: f64,
    /// Lanes at work.
    working: usize,
    /// Sum and number of the multiples of the usual latency since `since`.
    multiples: (f64, u32),
    since: Instant,
}

/// A lane at work.
pub struct LaneAtWork<'a> {
    pace: &'a BatchPace,
    started: Instant,
}

impl Default for BatchPace {
    fn default() -> Self {
        Self {
            state: Mutex::new(PaceState {
                usual: HashMap::new(),
                share: 1.0,
                working: 0,
                multiples: (0.0, 0),
                since: Instant::now(),
            }),
        }
    }
}

impl BatchPace {
    /// Notes how long a request took.
    pub fn answered(&self, method: &str, route: &str, duration: Duration) {
        let seconds = duration.as_secs_f64().max(SHORTEST);
        let mut state = self.state();
        let PaceState {
            usual,
            working,
            multiples,
            ..
        } = &mut *state;

        let known = usual
            .get_mut(method)
            .and_then(|routes| routes.get_mut(route));
        let Some(usual) = known else {
            let routes = usual.entry(method.to_owned()).or_default();
            routes.insert(route.to_owned(), seconds);
            return;
        };
        if *working == 0 {
            *usual += (seconds - *usual) * WEIGHT;
            return;
        }

        // After a start in the middle of a batch, the first latency is none without a batch.
        *usual = usual.min(seconds);
        multiples.0 += seconds / *usual;
        multiples.1 += 1;
    }

    /// Begins a piece of a batch.
    pub fn begin(&self) -> LaneAtWork<'_> {
        self.state().working += 1;
        LaneAtWork {
            pace: self,
            started: Instant::now(),
        }
    }

    fn state(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PaceState {
    /// Adapts the share once an interval.
    fn adapt(&mut self, now: Instant) {
        let intervals = now.duration_since(self.since).as_secs_f64() / INTERVAL.as_secs_f64();
        if intervals < 1.0 {
            return;
        }

        let (sum, count) = self.multiples;
        let is_slow = count > 0 && sum / f64::from(count) > SLOW;
        let share = if is_slow {
            self.share / 2.0
        } else {
            self.share + STEP * intervals
        };

        self.share = share.clamp(STEP, 1.0);
        self.multiples = (0.0, 0);
        self.since = now;
    }
}

impl LaneAtWork<'_> {
    /// Ends the piece, and returns how long the lane pauses before the next one.
    pub fn end(self) -> Duration {
        let now = Instant::now();
        let mut state = self.pace.state();
        state.adapt(now);
        let worked = now.duration_since(self.started);
        worked.mul_f64(1.0 / state.share - 1.0).min(LONGEST_PAUSE)
    }
}

impl Drop for LaneAtWork<'_> {
    fn drop(&mut self) {
        self.pace.state().working -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_millis(4);

    fn with_usual() -> BatchPace {
        let pace = BatchPace::default();
        pace.answered("GET", "/envelopes", USUAL);
        pace
    }

    /// Returns the share after intervals in which each request took `duration`.
    fn share_after(pace: &BatchPace, intervals: u32, duration: Duration) -> f64 {
        let lane = pace.begin();
        for _ in 0..intervals {
            pace.answered("GET", "/envelopes", duration);
            let mut state = pace.state();
            let later = state.since + INTERVAL;
            state.adapt(later);
        }

        drop(lane);
        pace.state().share
    }

    #[test]
    fn slow_requests_halve_the_share_down_to_a_sixteenth() {
        let pace = with_usual();
        assert_eq!(share_after(&pace, 1, USUAL * 2), 0.5);
        assert_eq!(share_after(&pace, 1, USUAL * 2), 0.25);
        assert_eq!(share_after(&pace, 20, USUAL * 2), STEP);
    }

    #[test]
    fn requests_as_fast_as_usual_let_the_share_grow_by_a_sixteenth() {
        let pace = with_usual();
        share_after(&pace, 1, USUAL * 2);
        assert_eq!(share_after(&pace, 1, USUAL), 0.5 + STEP);
        assert_eq!(share_after(&pace, 20, USUAL), 1.0);
    }

    #[test]
    fn without_requests_batches_take_all_of_the_time() {
        let pace = with_usual();
        share_after(&pace, 4, USUAL * 2);
        let mut state = pace.state();
        let later = state.since + INTERVAL * 16;
        state.adapt(later);
        assert_eq!(state.share, 1.0);
    }

    #[test]
    fn the_usual_latency_is_learned_while_no_lane_works() {
        let pace = with_usual();
        share_after(&pace, 8, USUAL * 3);
        assert_eq!(pace.state().usual["GET"]["/envelopes"], USUAL.as_secs_f64());

        for _ in 0..200 {
            pace.answered("GET", "/envelopes", USUAL * 3);
        }
        let learned = pace.state().usual["GET"]["/envelopes"];
        assert!(
            (learned / USUAL.as_secs_f64() - 3.0).abs() < 0.01,
            "{learned}"
        );
    }

    #[test]
    fn a_lane_pauses_in_proportion_to_its_work() {
        let pace = with_usual();
        assert_eq!(pace.begin().end(), Duration::ZERO);

        pace.state().share = 0.25;
        let mut lane = pace.begin();
        lane.started -= Duration::from_millis(50);
        let pause = lane.end();
        assert!(pause >= Duration::from_millis(150), "{pause:?}");
        assert!(pause < Duration::from_secs(1), "{pause:?}");
    }
}
