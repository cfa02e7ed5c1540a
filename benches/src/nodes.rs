//! Throughput of one, two and three nodes on one PostgreSQL.
//!
//! All nodes run on this machine, together with the database and the load generator. With only as
//! many CPUs as nodes, the ratios show the cost of coordination, not the gain of more machines.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use crate::Failure;
use crate::load;
use crate::partner::PartnerClient;
use crate::report::{ReportTable, heading};
use crate::server::BenchServer;
use crate::webhooks::database;

const TIME: Duration = Duration::from_secs(3);
const CONNECTIONS: usize = 12;

pub fn run() -> Result<(), Failure> {
    heading("Nodes: one, two and three on one PostgreSQL, on this one machine");
    let server = std::env::var("TEST_POSTGRES_URL")
        .map_err(|_| "no PostgreSQL: run this with `make bench SECTIONS=nodes`")?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut table = ReportTable::new(&[
        "nodes",
        "reads a second",
        "of one",
        "creates a second",
        "of one",
    ]);

    let mut one = None;
    for nodes in 1..=3 {
        let (reads, creates) = runtime.block_on(measure(nodes, &server))?;
        let (first_reads, first_creates) = *one.get_or_insert((reads, creates));
        table.row([
            nodes.to_string(),
            format!("{reads:.0}"),
            format!("{:.2}", reads / first_reads),
            format!("{creates:.0}"),
            format!("{:.2}", creates / first_creates),
        ]);
    }

    table.print();
    Ok(())
}

async fn measure(nodes: usize, server: &str) -> Result<(f64, f64), Failure> {
    let folder = tempfile::tempdir()?;
    let name = format!("nodes_{nodes}");
    let url = database("PostgreSQL", server, &name, folder.path()).await?;
    let objects = format!("file://{}", folder.path().join("objects").display());
    let settings = [("HOLDFAST_STORAGE_URL", objects.as_str())];
    let partner = PartnerClient::start_with(folder.path(), &url, &settings)?;
    let mut others = Vec::new();
    for _ in 1..nodes {
        others.push(PartnerClient::join(folder.path(), &url, &settings)?);
    }

    let servers: Vec<&BenchServer> = std::iter::once(&partner.server)
        .chain(others.iter().map(|(_, node)| node))
        .collect();
    let paper = json!({
        "envelope_name": "Scan", "customer_email": "jo@example.com", "customer_name": "Jo",
        "envelope_kind": "paper",
    });
    let paper = paper.to_string();
    let create = partner.request("POST", "/envelopes", "application/json", paper.as_bytes());
    let id = partner.ask(&create).await?["envelope_id"].take();
    let read = format!("/envelopes/{}/status", id.as_str().unwrap_or_default());
    let read = partner.request("GET", &read, "application/json", &[]);

    let mut rates = [0.0; 2];
    for (rate, (request, status)) in rates.iter_mut().zip([(&read, 200), (&create, 201)]) {
        let mut loads = JoinSet::new();
        for node in &servers {
            let (address, requests) = (node.address, vec![request.clone()]);
            loads.spawn(async move {
                load::run(address, &requests, CONNECTIONS / nodes, TIME, status).await
            });
        }

        let mut answered = 0;
        while let Some(times) = loads.join_next().await {
            answered += times??.len();
        }

        *rate = answered as f64 / TIME.as_secs_f64();
    }

    for (_, node) in others {
        node.stop()?;
    }

    partner.server.stop()?;
    Ok((rates[0], rates[1]))
}
