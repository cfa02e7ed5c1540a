//! Waiting times of a signer: for the form, for its first page, and for the signing itself after
//! the form is sent; alone, and with a hundred signers at once.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::Failure;
use crate::documents::text_document;
use crate::load::{self, LoadConnection};
use crate::partner::{FORM, PartnerClient, form};
use crate::report::{self, ReportTable, median, millis, percentile};

const PAGES: usize = 100;
const ROUNDS: usize = 5;
const AT_ONCE: usize = 100;

/// Runs the measurements and prints two tables.
pub fn run() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let url = format!("sqlite://{}", folder.path().join("holdfast.db").display());
        let partner = PartnerClient::start(folder.path(), &url)?;
        alone(&partner).await?;
        at_once(&partner).await?;
        partner.server.stop()
    })
}

/// Durations of a signer's requests, in the order of a visit.
struct SignerVisit {
    form: Duration,
    page: Duration,
    finish: Duration,
}

async fn alone(partner: &PartnerClient) -> Result<(), Failure> {
    report::heading(&format!("Signing a contract of {PAGES} pages"));
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // A new document for each round, so nothing is cached.
        let template = template(partner, PAGES + round).await?;
        first.push(visit(partner, &envelope(partner, &template).await?).await?);
        later.push(visit(partner, &envelope(partner, &template).await?).await?);
    }

    let mut table = ReportTable::new(&[
        "visitor",
        "form ms",
        "first page ms",
        "both ms",
        "finish to completed ms",
    ]);
    for (who, visits) in [("first to open it", &first), ("after others", &later)] {
        let of = |part: fn(&SignerVisit) -> Duration| {
            let times: Vec<f64> = visits.iter().map(|visit| millis(part(visit))).collect();
            format!("{:.1}", median(&times))
        };
        table.row([
            who.to_owned(),
            of(|visit| visit.form),
            of(|visit| visit.page),
            of(|visit| visit.form + visit.page),
            of(|visit| visit.finish),
        ]);
    }

    table.print();
    println!(
        "\nServer time over a kept connection; medians of {ROUNDS}; SQLite, the built-in room. The form is sent with its\n\
         values and answered when the document is executed and the envelope `completed`; the vaulting of the\n\
         contracts before goes on beside it. Goal: form and first page under 300 ms."
    );

    Ok(())
}

async fn at_once(partner: &PartnerClient) -> Result<(), Failure> {
    report::heading(&format!("{AT_ONCE} signers at once"));
    let template = template(partner, 4).await?;
    let mut urls = Vec::new();
    for _ in 0..AT_ONCE {
        urls.push(envelope(partner, &template).await?);
    }

    let address = partner.server.address;
    let began = Instant::now();
    let tasks: Vec<_> = urls
        .into_iter()
        .map(|path| tokio::spawn(async move { visit_at(address, &path).await }))
        .collect();
    let mut visits = Vec::new();
    for task in tasks {
        visits.push(task.await??);
    }

    let took = began.elapsed();
    let mut table = ReportTable::new(&["step", "p50 ms", "p99 ms"]);
    let steps: [(&str, fn(&SignerVisit) -> Duration); 3] = [
        ("form", |visit| visit.form),
        ("first page", |visit| visit.page),
        ("finish to completed", |visit| visit.finish),
    ];
    for (name, part) in steps {
        let times: Vec<f64> = visits.iter().map(|visit| millis(part(visit))).collect();
        let of = |percent| format!("{:.0}", percentile(&times, percent));
        table.row([name.to_owned(), of(50), of(99)]);
    }

    table.print();
    println!(
        "\nEach opens the form of an envelope of their own, sees its first page and signs: all within {:.1} s,\n\
         {:.0} signatures a second, each document executed; the vaulting goes on beside it.",
        took.as_secs_f64(),
        AT_ONCE as f64 / took.as_secs_f64()
    );

    Ok(())
}

async fn template(partner: &PartnerClient, pages: usize) -> Result<Value, Failure> {
    let fields = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": pages, "x": 0.1, "y": 0.8, "w": 0.3, "h": 0.05 }] },
    }]);
    let fields = fields.to_string();
    let pdf = Bytes::from(text_document(pages)?);
    let body = form(&pdf, &[("name", "Contract"), ("fields_json", &fields)]);
    let created = partner.request("POST", "/templates", FORM, &body);

    Ok(partner.ask(&created).await?["template_id"].take())
}

/// Creates an envelope and returns the path of the first signer's form.
async fn envelope(partner: &PartnerClient, template: &Value) -> Result<String, Failure> {
    let body = json!({
        "envelope_name": "Contract", "customer_email": "jo@example.com", "customer_name": "Jo",
        "template_id": template,
    });
    let json = "application/json";
    let create = partner.request("POST", "/envelopes", json, body.to_string().as_bytes());
    let created = partner.ask(&create).await?;
    let url = created["sign_url"].as_str().ok_or("no sign_url")?;
    let start = url.find("/sign/").ok_or("no path of a form")?;

    Ok(url[start..].to_owned())
}

async fn visit(partner: &PartnerClient, path: &str) -> Result<SignerVisit, Failure> {
    visit_at(partner.server.address, path).await
}

async fn visit_at(address: SocketAddr, path: &str) -> Result<SignerVisit, Failure> {
    let mut connection = LoadConnection::open(address).await?;
    let (form, shown) = timed(&mut connection, &load::get(address, path, &[])).await?;
    let page = format!("{path}/pages/1.png");
    let (page, _) = timed(&mut connection, &load::get(address, &page, &[])).await?;
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let body = load::signing_body(&shown)?;
    let finish = load::request(address, "POST", path, &headers, &body);
    let (finish, _) = timed(&mut connection, &finish).await?;

    Ok(SignerVisit { form, page, finish })
}

/// Returns how long a response took, and its body.
async fn timed(
    connection: &mut LoadConnection,
    request: &[u8],
) -> Result<(Duration, Vec<u8>), Failure> {
    let asked = Instant::now();
    let answer = connection.ask(request).await?;
    let took = asked.elapsed();
    if answer.status == 200 {
        Ok((took, answer.body))
    } else {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        Err(format!("{}: {text}", answer.status).into())
    }
}
