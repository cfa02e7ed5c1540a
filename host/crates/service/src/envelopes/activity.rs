//! Numbers about the envelopes of the last days: what happened, how long it took, and which are stuck.

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::activity::{self, DayCounts, FunnelCounts, SigningTimes};
use holdfast_store::counts;
use holdfast_store::search::{self, TroubleCounts};

/// Days in UTC that the numbers are about, today with them.
pub const DAYS: u32 = 30;

/// Numbers about the envelopes of an organization. All but the stuck ones are about the last [`DAYS`].
pub struct EnvelopeActivity {
    /// The begin of each day, in order.
    pub days: Vec<(Timestamp, DayCounts)>,
    pub times: SigningTimes,
    pub funnel: FunnelCounts,
    pub stuck: StuckCounts,
}

/// Numbers of the envelopes that are stuck now, by cause. Together they are those of the tab of stuck envelopes.
pub struct StuckCounts {
    pub troubles: TroubleCounts,
    pub declined: i64,
    pub expired: i64,
}

/// Returns the numbers about the caller's envelopes.
pub async fn of_organization(
    core: &Core,
    caller: &Caller,
) -> Result<EnvelopeActivity, ServiceError> {
    let (now, org) = (core.clock.now(), &caller.org);
    let days: Vec<Timestamp> = now.last_days(DAYS).collect();
    let from = days.first().copied().unwrap_or(now);

    let mut connection = core.store.read().await?;
    let by_day = activity::by_day(&mut connection, org, from).await?;
    let dialect = core.store.dialect();
    let times = activity::signing_times(&mut connection, dialect, org, from).await?;
    let funnel = activity::funnel(&mut connection, org, from).await?;

    let troubles = search::trouble_counts(&mut connection, dialect, org).await?;
    let by_status = counts::by_status(&mut connection, org).await?;
    let of = |status: EnvelopeStatus| by_status.get(status.as_str()).copied().unwrap_or_default();
    let counted = |day: Timestamp| {
        let counts = by_day.get(&day.date().to_string());
        (day, counts.copied().unwrap_or_default())
    };

    Ok(EnvelopeActivity {
        days: days.into_iter().map(counted).collect(),
        times,
        funnel,
        stuck: StuckCounts {
            troubles,
            declined: of(EnvelopeStatus::Declined),
            expired: of(EnvelopeStatus::Expired),
        },
    })
}
