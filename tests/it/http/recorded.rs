//! Requests of partners with the answers of an earlier release. An answer may gain members, and a list items at its end.
//! Existing members keep their name, type and value.
//!
//! `UPDATE_RECORDED=1` records the answers again. That is for new requests only: a changed answer breaks partners.

use std::collections::BTreeMap;
use std::fs;

use axum::body::Body;
use axum::http::Request;
use regex::Regex;
use serde_json::{Value, json};

use crate::support::TestApp;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/fixtures/recorded-requests.json"
);

/// Replaces what differs from run to run: ids by their prefix and order, times, hashes, tokens and addresses.
struct Neutral {
    ids: BTreeMap<String, String>,
    id: Regex,
    others: Vec<(Regex, &'static str)>,
}

impl Neutral {
    fn new() -> Self {
        let pattern = |text: &str| Regex::new(text).unwrap();
        Self {
            ids: BTreeMap::new(),
            id: pattern(r"\b([a-z]{2,5})_[0-7][0-9a-hjkmnp-tv-z]{25}\b"),
            others: vec![
                (pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
                (pattern(r"https?://[^\s/]+"), "HOST"),
                (
                    pattern(r"HOST/(sign|api/v2/downloads)/[^\s\x22]+"),
                    "HOST/$1/TOKEN",
                ),
                (pattern(r"\b[0-9a-f]{64}\b"), "HASH"),
                (pattern(r"^\d{12,}$"), "NUMBER"),
                // Root and signature of a checkpoint (C2SP tlog-checkpoint).
                (
                    pattern(r"\n[A-Za-z0-9+/]{43}=\n\n— (\S+) \S+\n"),
                    "\nROOT\n\n— $1 SIGNATURE\n",
                ),
                (pattern(r"\blk_[0-9a-f]+\b"), "KEY"),
                (pattern(r"\bwhsec_[A-Za-z0-9+/=]+"), "SECRET"),
                (pattern(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "JWT"),
            ],
        }
    }

    fn text(&mut self, text: &str) -> String {
        let ids = &mut self.ids;
        let text = self.id.replace_all(text, |found: &regex::Captures<'_>| {
            let next = format!("{}_{}", &found[1], ids.len());
            ids.entry(found[0].to_owned()).or_insert(next).clone()
        });
        let mut text = text.into_owned();
        for (pattern, instead) in &self.others {
            text = pattern.replace_all(&text, *instead).into_owned();
        }

        text
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let members = members.iter();
                let neutral = members.map(|(name, member)| (name.clone(), self.value(member)));
                Value::Object(neutral.collect())
            }
            // Numbers of templates at the provider, which are random.
            Value::Number(number) if number.as_u64().is_some_and(|number| number > 1 << 40) => {
                "NUMBER".into()
            }
            other => other.clone(),
        }
    }
}

/// Asserts that everything in `before` is in `now`.
fn same(before: &Value, now: &Value, place: &str) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            for (name, member) in before {
                let place = format!("{place}/{name}");
                let now = now.get(name).unwrap_or_else(|| panic!("{place} is gone"));
                same(member, now, &place);
            }
        }
        (Value::Array(before), Value::Array(now)) => {
            assert!(before.len() <= now.len(), "{place}: {before:?} {now:?}");
            for (index, (before, now)) in before.iter().zip(now).enumerate() {
                same(before, now, &format!("{place}/{index}"));
            }
        }
        (before, now) => assert_eq!(before, now, "{place}"),
    }
}

async fn answered(app: &TestApp, request: &Value, kept: &BTreeMap<String, String>) -> Value {
    let filled = |text: &str| {
        kept.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    };
    let (method, path) = request["send"].as_str().unwrap().split_once(' ').unwrap();
    let sent = Request::builder()
        .method(method)
        .uri(format!("/api/v2{}", filled(path)));
    let sent = match request["as"].as_str() {
        None => sent.header("x-api-key", &app.key),
        Some("nobody") => sent,
        Some(role) => sent
            .header("authorization", format!("Bearer {}", app.token(role)))
            .header("x-org-id", app.org.as_str()),
    };

    let body = match &request["body"] {
        Value::Null => Body::empty(),
        body => Body::from(filled(&body.to_string())),
    };
    let answer = app
        .send(
            sent.header("content-type", "application/json")
                .body(body)
                .unwrap(),
        )
        .await;
    let body = match answer.headers["content-type"].to_str().unwrap() {
        "application/json" => answer.json(),
        other => json!({ "content_type": other }),
    };

    json!({ "status": answer.status.as_u16(), "body": body })
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_are_answered_as_before() {
    let app = TestApp::without_auto_vault().await;
    let mut recorded: Vec<Value> = serde_json::from_slice(&fs::read(FILE).unwrap()).unwrap();
    assert!(recorded.len() >= 50, "{}", recorded.len());

    let updates = std::env::var_os("UPDATE_RECORDED").is_some();
    let (mut neutral, mut kept) = (Neutral::new(), BTreeMap::new());
    let template = app.contract_template().await["template_id"].clone();
    kept.insert("template".to_owned(), template.as_str().unwrap().to_owned());

    for one in &mut recorded {
        let answer = answered(&app, one, &kept).await;
        for (name, pointer) in one["keep"].as_object().into_iter().flatten() {
            let found = answer["body"].pointer(pointer.as_str().unwrap());
            let found = found
                .and_then(Value::as_str)
                .unwrap_or_else(|| panic!("{one} {answer}"));
            kept.insert(name.clone(), found.to_owned());
        }

        let answer = neutral.value(&answer);
        if updates {
            one["answer"] = answer
        } else {
            same(&one["answer"], &answer, one["send"].as_str().unwrap())
        }
    }

    if updates {
        let text = serde_json::to_string_pretty(&recorded).unwrap();
        fs::write(FILE, format!("{text}\n")).unwrap();
    }
}
