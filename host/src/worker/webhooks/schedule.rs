//! Retry times of deliveries, as a pure function.

use std::time::Duration;

/// Relative jitter of a delay, in both directions (specification, "Delivery behavior").
const JITTER: f64 = 0.2;

/// Returns the delay after failed attempt number `attempt` (from 1); none if it was the last of
/// `attempts`.
///
/// The delay is `delays[attempt - 1]`, or the last one for all later attempts, multiplied by 0.8 to
/// 1.2 depending on `random` (0 to 1). A receiver may ask for more with `Retry-After`, up to twice
/// the delay.
pub fn wait_after(
    attempt: u32,
    attempts: u32,
    delays: &[Duration],
    retry_after: Option<Duration>,
    random: f64,
) -> Option<Duration> {
    if attempt >= attempts {
        return None;
    }

    // Operators may configure more attempts than delays.
    let index = attempt.saturating_sub(1) as usize;
    let delay = *delays.get(index).or(delays.last())?;
    let jittered = delay.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.clamp(0.0, 1.0));
    // The limit keeps a receiver from putting its deliveries off for ever.
    Some(match retry_after {
        Some(asked) => jittered.max(asked.min(delay * 2)),
        None => jittered,
    })
}

/// Returns a random number from 0 to 1.
pub fn chance() -> f64 {
    let bytes: [u8; 4] = holdfast_domain::token::random();
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::config::WebhookSettings;
    use holdfast_domain::clock::Timestamp;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the times of all attempts of a delivery that always fails.
    fn attempts_at(start: &str, random: f64) -> Vec<String> {
        let settings = WebhookSettings::default();
        let mut now = Timestamp::parse(start).unwrap();
        let mut at = vec![now.to_string()];
        for attempt in 1.. {
            let wait = wait_after(
                attempt,
                settings.max_attempts,
                &settings.retry_delays,
                None,
                random,
            );
            let Some(wait) = wait else { break };
            now = now + wait;

            at.push(now.to_string());
        }

        at
    }

    #[test]
    fn deliveries_have_five_attempts_at_the_specified_times() {
        assert_eq!(
            attempts_at("2026-11-21T09:00:00.000Z", 0.5),
            [
                "2026-11-21T09:00:00.000Z",
                "2026-11-21T09:01:00.000Z",
                "2026-11-21T09:06:00.000Z",
                "2026-11-21T09:36:00.000Z",
                "2026-11-21T11:36:00.000Z",
            ]
        );
        assert_eq!(
            attempts_at("2026-11-21T09:00:00.000Z", 0.0),
            [
                "2026-11-21T09:00:00.000Z",
                "2026-11-21T09:00:48.000Z",
                "2026-11-21T09:04:48.000Z",
                "2026-11-21T09:28:48.000Z",
                "2026-11-21T11:04:48.000Z",
            ]
        );

        assert_eq!(
            attempts_at("2026-11-21T09:00:00.000Z", 1.0)[1..],
            [
                "2026-11-21T09:01:12.000Z",
                "2026-11-21T09:07:12.000Z",
                "2026-11-21T09:43:12.000Z",
                "2026-11-21T12:07:12.000Z",
            ]
        );
    }

    #[test]
    fn a_fifth_delay_allows_a_sixth_attempt() {
        let delays = WebhookSettings::default().retry_delays;
        assert_eq!(wait_after(5, 5, &delays, None, 0.5), None);
        let eight_hours = Some(8 * 3600 * SECOND);
        assert_eq!(wait_after(5, 7, &delays, None, 0.5), eight_hours);
        assert_eq!(wait_after(6, 7, &delays, None, 0.5), eight_hours);
        assert_eq!(wait_after(7, 7, &delays, None, 0.5), None);
        assert_eq!(wait_after(1, 5, &[], None, 0.5), None);
    }

    #[test]
    fn retry_after_is_limited_to_twice_the_delay() {
        let delays = [60 * SECOND];
        let wait = |asked| wait_after(1, 5, &delays, Some(asked * SECOND), 0.5).unwrap();
        assert_eq!(wait(1), 60 * SECOND, "not sooner");
        assert_eq!(wait(90), 90 * SECOND);
        assert_eq!(wait(3600), 120 * SECOND, "not much later");
        let jittered = wait_after(1, 5, &delays, Some(65 * SECOND), 1.0);
        assert_eq!(jittered, Some(72 * SECOND));
    }

    #[test]
    fn jitter_is_spread_evenly() {
        let chances: Vec<f64> = (0..200).map(|_| chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..=1.0).contains(chance)));
        assert!(chances.iter().any(|chance| *chance < 0.3));
        assert!(chances.iter().any(|chance| *chance > 0.7));
    }
}
