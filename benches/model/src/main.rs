//! `holdfast-model`: the resource that saturates first at a given load, simulated from measured service times.
//!
//! Machines with several nodes and databases of their own cannot be had for every change, so the
//! service times of one machine (`make bench`) are put through a network of queues: requests arrive
//! at random (Poisson), wait for a core of a node, for a core of their database shard, and for the next
//! write of that shard's log, which all waiting commits share (group commit).
//!
//! Assumptions, each of which a real installation can violate:
//!
//! - Requests spread evenly over nodes and shards; organizations are spread by their bucket.
//! - A statement costs the same at every size (measured up to 10,000,000 envelopes, see docs/capacity.md).
//! - Cores of nodes and databases are as fast as the measured ones, and are not shared.
//! - Locks are not waited for: creates touch different rows, apart from counters in 16 rows.
//! - Service times vary exponentially around the measured mean.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Measured on two cores with both programs on one disk; see docs/capacity.md for the run.
const MEASURED: ServiceTimes = ServiceTimes {
    node_cpu: 1.0e-3,
    database_cpu: 1.9e-3,
    flush: 0.4e-3,
    log_bytes: 13e3,
    round_trips: 20.0,
    puts: 5.0,
};

/// Cost of creating, sending and later vaulting one envelope.
struct ServiceTimes {
    /// Seconds of a node's core for a create, with its jobs.
    node_cpu: f64,
    /// Seconds of a database's core for a create, with its jobs.
    database_cpu: f64,
    /// Seconds until the log is on the disk.
    flush: f64,
    /// Bytes of the database's log for a create.
    log_bytes: f64,
    /// Statements that wait for each other.
    round_trips: f64,
    /// Objects of an envelope by the time it is in the vault.
    puts: f64,
}

/// Machines of an installation.
struct Installation {
    name: &'static str,
    shards: usize,
    /// Cores of each database.
    database_cores: usize,
}

const INSTALLATIONS: [Installation; 4] = [
    Installation {
        name: "one database, 8 cores",
        shards: 1,
        database_cores: 8,
    },
    Installation {
        name: "one database, 64 cores",
        shards: 1,
        database_cores: 64,
    },
    Installation {
        name: "8 shards, 32 cores each",
        shards: 8,
        database_cores: 32,
    },
    Installation {
        name: "64 shards, 32 cores each",
        shards: 64,
        database_cores: 32,
    },
];

/// Cores of a node, and the share of them that a plan uses.
const NODE_CORES: usize = 8;
const PLANNED_USE: f64 = 0.6;
/// Seconds between a node and its database, there and back.
const HOP: f64 = 0.3e-3;
/// Bytes a second that a database writes to its log without falling behind.
const LOG_BANDWIDTH: f64 = 400e6;
/// Writes a second of one prefix of an object store (the published figure of Amazon S3), and prefixes.
const PUTS_OF_A_PREFIX: f64 = 3_500.0;
const PREFIXES: f64 = 64.0;
/// Creates that are simulated; the first tenth is not counted.
const CREATES: usize = 200_000;

fn main() {
    println!(
        "| Creates a second | Databases | Nodes of {NODE_CORES} cores | Nodes busy | Database cores busy | Log bandwidth | \
         Object store | p50 ms | p99 ms | First to saturate |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for rate in [1_000.0, 10_000.0, 100_000.0] {
        for installation in &INSTALLATIONS {
            row(rate, installation);
        }
    }
}

fn row(rate: f64, installation: &Installation) {
    let nodes = (rate * MEASURED.node_cpu / (NODE_CORES as f64 * PLANNED_USE)).ceil();
    let shards = installation.shards as f64;
    let shares = [
        (
            "nodes",
            rate * MEASURED.node_cpu / (nodes * NODE_CORES as f64),
        ),
        (
            "cores of the databases",
            rate * MEASURED.database_cpu / (shards * installation.database_cores as f64),
        ),
        (
            "log of the databases",
            rate * MEASURED.log_bytes / (shards * LOG_BANDWIDTH),
        ),
        (
            "object store",
            rate * MEASURED.puts / (PUTS_OF_A_PREFIX * PREFIXES),
        ),
    ];
    let busiest = shares.iter().copied().fold(
        ("", 0.0),
        |most, next| {
            if next.1 > most.1 { next } else { most }
        },
    );
    let (p50, p99) = if busiest.1 < 1.0 {
        let times = simulated(rate, nodes as usize, installation);
        let at = |share: f64| times[(times.len() as f64 * share) as usize] * 1e3;
        (format!("{:.1}", at(0.5)), format!("{:.1}", at(0.99)))
    } else {
        ("grows".into(), "grows".into())
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    println!(
        "| {rate:.0} | {} | {nodes:.0} | {} | {} | {} | {} | {p50} | {p99} | {} |",
        installation.name,
        percent(shares[0].1),
        percent(shares[1].1),
        percent(shares[2].1),
        percent(shares[3].1),
        busiest.0,
    );
}

/// A time that sorts.
#[derive(Clone, Copy, PartialEq)]
struct Moment(f64);

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Cores that work on one request each, in the order of arrival.
struct Cores(BinaryHeap<Reverse<Moment>>);

impl Cores {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| Reverse(Moment(0.0))).collect())
    }

    /// Returns when work that arrives at `at` is done.
    fn work(&mut self, at: f64, takes: f64) -> f64 {
        let free = self.0.pop().map_or(0.0, |Reverse(free)| free.0);
        let done = free.max(at) + takes;
        self.0.push(Reverse(Moment(done)));
        done
    }
}

/// The log of a database: one write at a time, which takes all commits that wait for it.
#[derive(Default)]
struct CommitLog {
    /// End of the write that has begun, and of the next one.
    running: f64,
    next: f64,
}

impl CommitLog {
    fn commit(&mut self, at: f64, takes: f64) -> f64 {
        if at >= self.next {
            self.running = at + takes;
            self.next = self.running;
            return self.running;
        }
        if at >= self.running {
            self.running = self.next;
        }
        self.next = self.running + takes;
        self.next
    }
}

/// Steps of a create.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Request,
    Database,
    Commit,
    Answer,
}

/// Returns the sorted durations of creates, in seconds.
fn simulated(rate: f64, nodes: usize, installation: &Installation) -> Vec<f64> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut of_nodes: Vec<Cores> = (0..nodes).map(|_| Cores::new(NODE_CORES)).collect();
    let mut of_databases: Vec<Cores> = (0..installation.shards)
        .map(|_| Cores::new(installation.database_cores))
        .collect();
    let mut logs: Vec<CommitLog> = (0..installation.shards)
        .map(|_| CommitLog::default())
        .collect();
    let mut events = BinaryHeap::new();
    let mut began = Vec::with_capacity(CREATES);
    let mut at = 0.0;
    for create in 0..CREATES {
        at += random.exponential(1.0 / rate);
        began.push(at);
        events.push(Reverse((Moment(at), Step::Request, create)));
    }
    let mut durations = Vec::with_capacity(CREATES);
    while let Some(Reverse((Moment(now), step, create))) = events.pop() {
        let (node, shard) = (create % nodes, create % installation.shards);
        let mut half = |mean: f64| random.exponential(mean / 2.0);
        let next = match step {
            Step::Request => {
                let done = of_nodes[node].work(now, half(MEASURED.node_cpu));
                Some((done + HOP * MEASURED.round_trips, Step::Database))
            }
            Step::Database => {
                let takes = half(MEASURED.database_cpu) + half(MEASURED.database_cpu);
                Some((of_databases[shard].work(now, takes), Step::Commit))
            }
            Step::Commit => Some((logs[shard].commit(now, MEASURED.flush), Step::Answer)),
            Step::Answer => {
                let done = of_nodes[node].work(now, half(MEASURED.node_cpu));
                if create >= CREATES / 10 {
                    durations.push(done - began[create]);
                }
                None
            }
        };
        if let Some((at, step)) = next {
            events.push(Reverse((Moment(at), step, create)));
        }
    }
    durations.sort_by(f64::total_cmp);
    durations
}

/// Xorshift: repeatable.
struct Random(u64);

impl Random {
    fn exponential(&mut self, mean: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let unit = ((self.0 >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        -mean * unit.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_that_wait_share_the_next_write() {
        let mut log = CommitLog::default();
        assert_eq!(log.commit(0.0, 1.0), 1.0);
        assert_eq!(log.commit(0.2, 1.0), 2.0);
        assert_eq!(log.commit(0.9, 1.0), 2.0);
        assert_eq!(log.commit(1.5, 1.0), 3.0);
        assert_eq!(log.commit(9.0, 1.0), 10.0);
    }

    #[test]
    fn an_idle_installation_takes_its_service_times() {
        let times = simulated(10.0, 1, &INSTALLATIONS[0]);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let expected =
            MEASURED.node_cpu + MEASURED.database_cpu + MEASURED.flush + HOP * MEASURED.round_trips;
        assert!((mean / expected - 1.0).abs() < 0.1, "{mean} {expected}");
    }
}
