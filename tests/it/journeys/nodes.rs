//! Several nodes on one PostgreSQL and one object store: failures of a node, of the network or
//! of a clock lose nothing and repeat nothing.
//!
//! `HOLDFAST_KILLS` makes the drills longer, for `make crash`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::journeys::crash::{CrashDrill, kills};
use crate::support::authority::libfaketime;
use crate::support::postgres;
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::proxy::{FaultyProxy, NetworkCondition};
use crate::support::s3::S3Server;

/// Nodes with separate data folders and one set of keys.
struct NodeCluster {
    drill: CrashDrill,
    nodes: Vec<ClusterNode>,
    folder: tempfile::TempDir,
}

struct ClusterNode {
    home: ServerHome,
    server: Option<ServerProcess>,
}

impl ClusterNode {
    fn start(&mut self, wrapper: &[&str], variables: &[(&str, &str)]) {
        self.server = ServerProcess::start(&self.home, wrapper, variables);
        assert!(self.server.is_some(), "a node does not start");
    }

    fn server(&self) -> &ServerProcess {
        self.server.as_ref().unwrap()
    }
}

impl NodeCluster {
    /// Creates nodes without starting them.
    async fn new(
        count: usize,
        database: &str,
        settings: &[(String, String)],
        objects: &Path,
    ) -> Self {
        Self::of(this_program(), count, database, settings, objects).await
    }

    /// Creates nodes that run this `holdfast` binary.
    async fn of(
        program: PathBuf,
        count: usize,
        database: &str,
        settings: &[(String, String)],
        objects: &Path,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = |name: &str| ServerHome {
            program: program.clone(),
            data: folder.path().join(name),
            database: Some(database.to_owned()),
            settings: settings.to_vec(),
        };
        let first = home("operator");
        let drill = CrashDrill::at(first, objects.to_owned()).await;

        let nodes = (0..count).map(|number| {
            let home = home(&format!("node-{number}"));
            std::fs::create_dir_all(&home.data).unwrap();
            for shared in ["keys", "native-code"] {
                let from = folder.path().join("operator").join(shared);
                std::os::unix::fs::symlink(from, home.data.join(shared)).unwrap();
            }

            ClusterNode { home, server: None }
        });

        let nodes = nodes.collect();
        Self {
            drill,
            nodes,
            folder,
        }
    }

    async fn schema_version(&self) -> i64 {
        let store = self.drill.home.store().await;
        let mut connection = store.read().await.unwrap();
        sqlx::query_scalar("select max(version) from migration")
            .fetch_one(&mut *connection)
            .await
            .unwrap()
    }

    fn urls(&self) -> Vec<String> {
        let running = self.nodes.iter().filter_map(|node| node.server.as_ref());
        running.map(|server| server.url.clone()).collect()
    }

    async fn work(&mut self, time: Duration) {
        let urls = self.urls();
        self.drill.work_at(&urls, time).await;
    }

    /// Finishes the envelopes in flight on the first node and asserts that each exists once.
    async fn settle(&mut self) {
        let server = self.nodes[0].server.take().unwrap();
        self.drill.finish(&server, Instant::now()).await;
        drop(server);
        self.nodes.clear();
        self.drill.assert_no_leftovers().await;
    }
}

/// A SIGKILL of any node at any time loses nothing: the other nodes take over its work.
#[tokio::test(flavor = "multi_thread")]
async fn kills_of_any_of_three_nodes_lose_nothing() {
    let store = S3Server::s3s();
    let database = postgres::new_database().await;
    let settings = store.variables("plain");
    let mut cluster = NodeCluster::new(3, &database, &settings, &store.folder()).await;
    for node in &mut cluster.nodes {
        node.start(&[], &[]);
    }

    for _ in 0..kills(4).min(60) {
        let before = Duration::from_millis(300 + cluster.drill.random(1_200));
        cluster.work(before).await;

        // Dropping the server kills its process.
        let victim = cluster.drill.random(3) as usize;
        cluster.nodes[victim].server = None;
        cluster.work(Duration::from_millis(300)).await;
        cluster.nodes[victim].start(&[], &[]);
    }

    cluster.settle().await;
}

/// Stops a node at this fault point for longer than its leases last, then lets it continue.
async fn stalled_at(place: &str) {
    let store = S3Server::s3s();
    let database = postgres::new_database().await;
    let settings = store.variables("plain");
    let mut cluster = NodeCluster::new(2, &database, &settings, &store.folder()).await;
    let stop = format!("{place}:2:STOP");

    // One node holds the lease of the log as long as there are entries: the first one to start.
    cluster.nodes[1].start(&[], &[("HOLDFAST_FAULTS", stop.as_str())]);
    cluster.nodes[0].start(&[], &[]);
    let since = Instant::now();

    let good = [cluster.nodes[0].server().url.clone()];
    while !cluster.nodes[1].server().is_stopped() {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "never at {place}"
        );

        cluster
            .drill
            .work_at(&good, Duration::from_millis(200))
            .await;

        if since.elapsed() > Duration::from_secs(10) {
            // The lease of the log expires after five seconds without entries.
            tokio::time::sleep(Duration::from_secs(6)).await;
        }
    }

    // The other node takes over its work and finishes it.
    let server = cluster.nodes[0].server.take().unwrap();
    cluster.drill.finish(&server, Instant::now()).await;
    let mut before = Vec::new();
    for one in &cluster.drill.tracked {
        before.push(cluster.drill.placed_custody(&server, &one.id).await["entries"].clone());
    }

    cluster.nodes[1].server().signal("CONT");
    tokio::time::sleep(Duration::from_secs(3)).await;
    for (one, before) in cluster.drill.tracked.iter().zip(before) {
        let after = cluster.drill.placed_custody(&server, &one.id).await;
        assert_eq!(after["entries"], before, "{place}");
    }

    cluster.drill.assert_each_envelope_once(&server).await;

    // The resumed node works like any other.
    let late = [cluster.nodes[1].server().url.clone()];
    cluster.drill.work_at(&late, Duration::from_secs(1)).await;
    cluster.nodes[0].server = Some(server);

    cluster.settle().await;
}

/// Stops at several fault points. The first and `sequence` are inside a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_paused_beyond_its_leases_writes_nothing() {
    let places = ["settle", "sequence", "seal", "copy", "record", "settled"];
    let share = places.len().min(kills(1) as usize);
    for place in &places[..share] {
        stalled_at(place).await;
    }
}

/// Replaces nodes one after the other, and rolls one of them back to the old version.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an older version: `make test-upgrade`"]
async fn an_old_and_a_new_version_work_side_by_side() {
    let old = std::env::var("TEST_OLD_HOLDFAST").expect("run `make test-upgrade`");
    let old = PathBuf::from(old);
    let database = postgres::new_database().await;
    let objects = tempfile::tempdir().unwrap();
    let url = format!("file://{}", objects.path().display());
    let settings = [("HOLDFAST_STORAGE_URL".to_owned(), url)];
    let mut cluster = NodeCluster::of(old.clone(), 2, &database, &settings, objects.path()).await;
    for node in &mut cluster.nodes {
        node.start(&[], &[]);
    }

    let before = cluster.schema_version().await;
    let time = Duration::from_secs(3);
    cluster.work(time).await;

    for (node, program) in [
        (0, this_program()),
        (0, old),
        (0, this_program()),
        (1, this_program()),
    ] {
        let node = &mut cluster.nodes[node];
        node.server().signal("TERM");
        while !node.server.as_mut().unwrap().is_dead() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        node.home.program = program;
        node.start(&[], &[]);
        cluster.work(time).await;
    }

    let after = cluster.schema_version().await;
    assert!(
        after > before,
        "from schema {before} to {after}: the old version is not older"
    );

    println!(
        "from schema {before} to {after}: {} envelopes",
        cluster.drill.tracked.len()
    );
    cluster.drill.home.program = this_program();

    cluster.settle().await;
}

/// The clock of one of two machines is set an hour ahead and then back.
#[tokio::test(flavor = "multi_thread")]
async fn a_jumping_clock_only_causes_log_messages() {
    let database = postgres::new_database().await;
    let objects = tempfile::tempdir().unwrap();
    let url = format!("file://{}", objects.path().display());
    let settings = [("HOLDFAST_STORAGE_URL".to_owned(), url)];
    let mut cluster = NodeCluster::new(2, &database, &settings, objects.path()).await;
    let clock = cluster.folder.path().join("clock");
    let set = |offset: &str| std::fs::write(&clock, format!("{offset}\n")).unwrap();
    set("+0");

    let library = libfaketime();
    let began = holdfast::domain::clock::Clock::default().now();

    cluster.nodes[0].start(&[], &[]);
    let variables = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    cluster.nodes[1].start(&[], &variables);

    cluster.work(Duration::from_secs(1)).await;
    for offset in ["+3600", "-3600", "+0"] {
        set(offset);
        cluster.work(Duration::from_secs(2)).await;
    }

    set("+3600");
    let since = Instant::now();
    while !cluster.nodes[1]
        .server()
        .has_said("clock differs from this node's time")
    {
        assert!(since.elapsed() < Duration::from_secs(60));
        cluster.work(Duration::from_millis(200)).await;
    }

    assert!(
        !cluster.nodes[0]
            .server()
            .has_said("clock differs from this node's time")
    );

    let server = cluster.nodes[0].server.take().unwrap();
    cluster.drill.finish(&server, Instant::now()).await;
    let ended = holdfast::domain::clock::Clock::default().now();
    for one in &cluster.drill.tracked {
        let custody = cluster.drill.placed_custody(&server, &one.id).await;
        let times = custody["entries"].as_array().unwrap().iter();
        let times = times.map(|entry| entry["at"].as_str().unwrap().to_owned());
        let times: Vec<String> = times.collect();
        let slack = Duration::from_secs(2);
        let bounds = ((began - slack).to_string(), (ended + slack).to_string());
        assert!(
            times.iter().all(|at| *at >= bounds.0 && *at <= bounds.1),
            "{times:?}"
        );
    }

    cluster.nodes[0].server = Some(server);
    cluster.settle().await;
}

/// The networks to the database and to the object store fail in every way.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_recover_from_network_failures() {
    let store = S3Server::s3s();
    let direct = postgres::new_database().await;
    let at = url::Url::parse(&direct).unwrap();
    let to = format!("{}:{}", at.host_str().unwrap(), at.port().unwrap());
    let to_database = FaultyProxy::start(to).await;
    let to_store = FaultyProxy::start(store.url.strip_prefix("http://").unwrap().to_owned()).await;
    let mut through = at;
    through.set_port(Some(to_database.address.port())).unwrap();

    let mut settings = store.variables("plain");
    for (name, value) in &mut settings {
        if name == "AWS_ENDPOINT" {
            *value = format!("http://{}", to_store.address);
        }
    }

    let mut cluster = NodeCluster::new(2, through.as_str(), &settings, &store.folder()).await;
    for node in &mut cluster.nodes {
        node.start(&[], &[]);
    }

    let faults = [
        NetworkCondition::Cut,
        NetworkCondition::Silent,
        NetworkCondition::Slow(Duration::from_millis(30)),
        NetworkCondition::Short(3_000),
    ];
    let ready = format!("{}/readyz", cluster.nodes[0].server().url);

    let http = reqwest::Client::new();
    let urls = cluster.urls();
    for (what, proxy) in [("database", &to_database), ("store", &to_store)] {
        for fault in faults {
            cluster.work(Duration::from_millis(300)).await;
            proxy.become_(fault);
            if fault == NetworkCondition::Cut {
                let answer = http.get(&ready).send().await.unwrap();
                assert_eq!(answer.status(), 503, "{what}");
            }

            if fault == NetworkCondition::Cut {
                let (refused, away) = match what {
                    "database" => (cluster.drill.create(&urls[0]).await, "The database"),
                    _ => (cluster.drill.upload(&urls[0]).await, "The document store"),
                };
                let refused = refused.unwrap_err();
                let expected = format!("{away} cannot be reached right now");
                assert!(
                    refused.starts_with("503") && refused.contains(&expected),
                    "{refused}"
                );
            }

            let time =
                tokio::time::timeout(Duration::from_secs(4), cluster.work(Duration::from_secs(3)));

            // Requests can hang on a silent network, so the clients give up after a while.
            let _ = time.await;
            proxy.become_(NetworkCondition::Good);
        }
    }

    // The same nodes recover without a restart.
    cluster.work(Duration::from_secs(1)).await;
    cluster.settle().await;
}
