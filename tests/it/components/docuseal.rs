//! The signing plugin against a fake DocuSeal, and a contract that both it and the built-in room
//! have to meet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use holdfast::components::ComponentRegistry;
use holdfast::components::egress::NetworkAccess;
use holdfast::components::providers::{ProviderError, ProviderLease};
use holdfast::config::{Config, SecretText};
use holdfast::delivery::guard::AllowedAddresses;
use holdfast::domain::clock::Clock;
use holdfast::domain::component::Slot;
use holdfast::domain::id::EnvelopeId;
use holdfast::domain::organization::OrgSettings;
use holdfast::store::{envelopes, room};
use serde_json::{Value, json};
use sqlx::Row as _;

use crate::service::components::registry::variant;
use crate::support::docuseal::{DocusealFault, FakeDocuseal, SECRET, TOKEN, errors, signature};
use crate::support::{CONTRACT, TestApp, TestResponse, buyer_and_seller, envelope_body, form, pdf};

const LINES: [&str; 6] = [
    "Agreement between the parties.",
    "{{Price;type=number;role=Buyer;required=true}}",
    "{{Agreed;type=checkbox;role=Buyer;required=true}}",
    "{{Buyer signature;type=signature;role=Buyer;required=true}}",
    "{{Remark;type=text;role=Seller;required=false}}",
    "{{Seller signature;type=signature;role=Seller;required=true}}",
];

/// A service and its provider: the fake DocuSeal, or the built-in room.
struct ProviderSetup {
    app: TestApp,
    docuseal: Option<FakeDocuseal>,
}

impl ProviderSetup {
    async fn room() -> Self {
        let app = TestApp::start().await;
        Self {
            app,
            docuseal: None,
        }
    }

    async fn docuseal() -> Self {
        Self::with(|_| {}, true).await
    }

    async fn with(change: impl FnOnce(&mut Config), auto_vault: bool) -> Self {
        let docuseal = FakeDocuseal::start().await;
        let settings = OrgSettings {
            auto_vault,
            ..OrgSettings::default()
        };
        let configure = |config: &mut Config| {
            docuseal.configure(config);
            change(config);
        };
        let app = TestApp::with(configure, settings).await;

        Self {
            app,
            docuseal: Some(docuseal),
        }
    }

    /// Returns the fake DocuSeal. Panics when the provider is the room.
    fn at(&self) -> &FakeDocuseal {
        self.docuseal.as_ref().unwrap()
    }

    async fn template(&self) -> Value {
        let document = pdf::with_lines(&LINES);
        self.app
            .upload(
                "/partner/templates",
                "application/pdf",
                &document,
                &[("name", "Agreement")],
            )
            .await
            .data(200)
    }

    /// Returns the request body for an envelope of this template.
    fn body(template: &Value) -> Value {
        let mut body = envelope_body(&template["template_id"]);
        body["signers"] = buyer_and_seller();
        body["prefilled_data"] = json!({ "Price": 12.5, "Remark": "as seen" });
        body
    }

    /// Sends an envelope and returns its id.
    async fn sent(&self) -> String {
        let template = self.template().await;
        let body = Self::body(&template);
        let envelope = self.app.post("/partner/envelopes", body).await.data(201);
        envelope["envelope_id"].as_str().unwrap().to_owned()
    }

    /// Requests fresh links for all signers.
    async fn links(&self, id: &str) -> Vec<String> {
        let path = format!("/partner/envelopes/{id}/signing-links");
        let links = self.app.get(&path).await.data(200);
        let signers = links["signers"].as_array().unwrap().iter();
        signers
            .map(|signer| signer["embed_url"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn status(&self, id: &str) -> String {
        let path = format!("/partner/envelopes/{id}/status");
        let status = self.app.get(&path).await.data(200);
        status["status"].as_str().unwrap().to_owned()
    }

    /// Follows a link to the provider's own page.
    async fn follow(&self, url: &str) -> String {
        let answer = form::open(&self.app, url).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        answer.headers["location"].to_str().unwrap().to_owned()
    }

    /// Signs like a person who received this link.
    async fn sign(&self, url: &str) {
        let Some(docuseal) = &self.docuseal else {
            let page = form::open(&self.app, url).await;
            assert_eq!(page.status, 200, "{}", page.text());

            let mut values = form::filled(&page.text());
            for (name, value) in &mut values {
                match name.as_str() {
                    "Price" => *value = "12.5".into(),
                    "Remark" => *value = "as seen".into(),
                    _ => {}
                }
            }

            let answer = form::press(&self.app, url, "finish", &values).await;
            assert_eq!(answer.status, 200, "{}", answer.text());

            return;
        };

        let (submission, role) = docuseal.role_at(&self.follow(url).await);
        docuseal.sign(submission, &role, &[]);
        for event_type in ["form.viewed", "form.started", "form.completed"] {
            let hook = docuseal.form_hook(event_type, submission, &role);
            assert_eq!(self.call_back(&hook).await.status, 200);
        }

        if docuseal.shown(submission)["status"] == "completed" {
            let hook = docuseal.submission_hook("submission.completed", submission);
            assert_eq!(self.call_back(&hook).await.status, 200);
        }
    }

    async fn decline(&self, url: &str, reason: &str) {
        let Some(docuseal) = &self.docuseal else {
            form::open(&self.app, url).await;
            let reason = [("reason".to_owned(), reason.to_owned())];
            let answer = form::press(&self.app, url, "decline", &reason).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            return;
        };

        let (submission, role) = docuseal.role_at(&self.follow(url).await);
        docuseal.decline(submission, &role, reason);
        let hook = docuseal.form_hook("form.declined", submission, &role);
        assert_eq!(self.call_back(&hook).await.status, 200);
    }

    /// Returns whether the envelope's submission is archived at the provider.
    async fn is_archived(&self, id: &str) -> bool {
        let mut connection = self.app.store.read().await.unwrap();
        let id = EnvelopeId::parse(id).unwrap();
        let envelope = envelopes::get(&mut connection, &self.app.org, &id).await;
        let submission = envelope.unwrap().unwrap().sending.submission.unwrap();
        let submission = submission.parse().unwrap();
        match &self.docuseal {
            Some(docuseal) => !docuseal.shown(submission)["archived_at"].is_null(),
            None => room::submission(&mut connection, &self.app.org, submission)
                .await
                .unwrap()
                .unwrap()
                .archived_at
                .is_some(),
        }
    }

    /// Sends a webhook with DocuSeal's signature.
    async fn call_back(&self, hook: &Value) -> TestResponse {
        let body = hook.to_string();
        let now = Clock::default().now().as_seconds();
        let header = signature(SECRET.as_bytes(), now, &body);
        self.call_back_with(Some(&header), &body).await
    }

    async fn call_back_with(&self, header: Option<&str>, body: &str) -> TestResponse {
        let mut request = Request::post("/api/v2/callbacks/signing/cloud");
        if let Some(header) = header {
            request = request.header("X-Docuseal-Signature", header);
        }
        self.app
            .send(request.body(Body::from(body.to_owned())).unwrap())
            .await
    }

    async fn envelopes(&self) -> i64 {
        let mut connection = self.app.store.read().await.unwrap();
        let count = sqlx::query("select count(*) as envelopes from envelope");
        let row = count.fetch_one(&mut *connection).await.unwrap();
        row.get("envelopes")
    }

    /// Counts the ledger entries with this action.
    async fn entries(&self, id: &str, action: &str) -> usize {
        let custody = self.app.custody(id).await;
        let entries = custody["entries"].as_array().unwrap().iter();
        entries.filter(|entry| entry["action"] == action).count()
    }

    /// Asserts that creating an envelope fails with this status and leaves no envelope behind.
    async fn fails_to_send(&self, template: &Value, status: u16, message: &str) {
        let answer = self
            .app
            .post("/partner/envelopes", Self::body(template))
            .await;
        assert_eq!(answer.error(status), message);
        assert_eq!(self.envelopes().await, 0);
    }
}

macro_rules! at_both_providers {
    ($($name:ident),* $(,)?) => {
        mod in_the_room {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(super::ProviderSetup::room().await).await;
                }
            )*
        }

        mod at_docuseal {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(super::ProviderSetup::docuseal().await).await;
                }
            )*
        }
    };
}

at_both_providers!(
    a_contract_is_signed_in_turn_and_vaulted,
    a_decline_ends_the_envelope_with_its_reason,
    a_void_reaches_the_provider,
    names_missing_in_the_template_are_refused_before_sending,
);

async fn a_contract_is_signed_in_turn_and_vaulted(setup: ProviderSetup) {
    let template = setup.template().await;
    let names = |fields: &Value| -> Vec<(String, String, bool)> {
        let fields = fields.as_array().unwrap().iter();
        fields
            .map(|field| {
                let text = |member: &str| field[member].as_str().unwrap().to_owned();
                (text("name"), text("role"), field["required"] == true)
            })
            .collect()
    };
    assert_eq!(
        names(&template["fields"]),
        [
            ("Price", "Buyer", true),
            ("Agreed", "Buyer", true),
            ("Buyer signature", "Buyer", true),
            ("Remark", "Seller", false),
            ("Seller signature", "Seller", true),
        ]
        .map(|(name, role, required)| (name.to_owned(), role.to_owned(), required))
    );

    let envelope = setup
        .app
        .post("/partner/envelopes", ProviderSetup::body(&template))
        .await
        .data(201);
    assert_eq!(envelope["status"], "sent");

    let id = envelope["envelope_id"].as_str().unwrap();

    let links = setup.links(id).await;
    let early = form::open(&setup.app, &links[1]).await;
    assert!(
        early.text().contains("It's not your turn yet"),
        "{}",
        early.text()
    );

    let forced = form::press(&setup.app, &links[1], "finish", &[]).await;
    assert!(
        forced.text().contains("It's not your turn yet"),
        "{}",
        forced.text()
    );

    setup.sign(envelope["sign_url"].as_str().unwrap()).await;
    assert_eq!(setup.status(id).await, "viewed");

    let again = form::open(&setup.app, &links[0]).await;
    assert!(again.text().contains("You have signed"), "{}", again.text());

    // Our own service sends the invitations, one to each signer.
    let mails = setup.app.wait_for_mails(2).await;
    assert!(
        mails.iter().all(|mail| mail.contains("/sign/")),
        "{mails:?}"
    );

    setup.sign(&links[1]).await;
    setup.app.wait_for(id, "vaulted").await;

    let events = setup.app.events(id).await;
    let types: Vec<&str> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types[..9],
        [
            "envelope.created",
            "envelope.sent",
            "signer.viewed",
            "signer.started",
            "signer.completed",
            "signer.viewed",
            "signer.started",
            "signer.completed",
            "envelope.completed",
        ]
    );

    let field = |name: &str, field_type: &str, value: Value, signer: &str| {
        let email = format!("{signer}@example.com");
        json!({ "name": name, "type": field_type, "value": value, "signer_email": email })
    };

    let mut fields = events[8]["data"]["fields"].clone();
    for field in fields.as_array_mut().unwrap() {
        let id = field.as_object_mut().unwrap().remove("signer_id").unwrap();
        assert!(id.as_str().unwrap().starts_with("sgn_"));
    }
    assert_eq!(
        fields,
        json!([
            field("Price", "number", json!(12.5), "buyer"),
            field("Agreed", "checkbox", json!("true"), "buyer"),
            field("Buyer signature", "signature", json!("signed"), "buyer"),
            field("Remark", "text", json!("as seen"), "seller"),
            field("Seller signature", "signature", json!("signed"), "seller"),
        ])
    );

    let verified = setup.app.release_and_verify(id).await;
    assert_eq!(verified["valid"], true, "{verified}");
}

async fn a_decline_ends_the_envelope_with_its_reason(setup: ProviderSetup) {
    let id = setup.sent().await;
    let links = setup.links(&id).await;
    setup.decline(&links[0], "The price is wrong").await;
    assert_eq!(setup.status(&id).await, "declined");

    let events = setup.app.events(&id).await;
    let declined = events.last().unwrap();
    assert_eq!(declined["event_type"], "envelope.declined");
    assert_eq!(declined["data"]["reason"], "The price is wrong");
    assert_eq!(declined["data"]["signer"]["email"], "buyer@example.com");

    let other = form::open(&setup.app, &links[1]).await;
    assert!(other.text().contains("Declined"), "{}", other.text());
}

async fn a_void_reaches_the_provider(setup: ProviderSetup) {
    let id = setup.sent().await;
    assert!(!setup.is_archived(&id).await);

    let path = format!("/partner/envelopes/{id}/void");
    setup
        .app
        .post(&path, json!({ "reason": "A new offer" }))
        .await
        .data(200);
    assert!(setup.is_archived(&id).await);

    let links = setup.app.get(&format!("/partner/envelopes/{id}")).await;
    assert_eq!(links.data(200)["status"], "voided");
}

async fn names_missing_in_the_template_are_refused_before_sending(setup: ProviderSetup) {
    let template = setup.template().await;
    let refused = async |change: &dyn Fn(&mut Value), code: &str| {
        let mut body = ProviderSetup::body(&template);
        change(&mut body);
        let answer = setup.app.post("/partner/envelopes", body).await;
        assert_eq!(answer.status, 422, "{}", answer.text());

        let details = answer.json()["details"].take();
        let codes: Vec<&str> = details
            .as_array()
            .unwrap()
            .iter()
            .map(|issue| issue["code"].as_str().unwrap())
            .collect();
        assert!(codes.contains(&code), "{codes:?}");
    };

    let role = |body: &mut Value| body["signers"][1]["role"] = "Guarantor".into();
    refused(&role, "unknown_role").await;
    let field = |body: &mut Value| body["prefilled_data"]["Colour"] = "red".into();
    refused(&field, "unknown_field").await;
    let third = json!({ "email": "x@example.com", "name": "X", "role": "Buyer" });
    let more = |body: &mut Value| body["signers"].as_array_mut().unwrap().push(third.clone());
    refused(&more, "too_many_signers").await;
    assert_eq!(setup.envelopes().await, 0);

    if let Some(docuseal) = &setup.docuseal {
        assert_eq!(docuseal.submissions(), 0);
    }
}

/// DocuSeal counts pages from 1 in requests and from 0 in stored templates, and an absent
/// `required` means true. The shared link is off, so only signers can start a submission.
#[tokio::test(flavor = "multi_thread")]
async fn pages_required_and_shared_link_follow_docuseals_conventions() {
    let setup = ProviderSetup::docuseal().await;
    let area = json!([{ "page": 1, "x": 0.1, "y": 0.2, "w": 0.3, "h": 0.04 }]);
    let field = |name: &str, field_type: &str, role: &str| {
        json!({
            "name": name, "type": field_type, "role": role,
            "placement": { "mode": "absolute", "areas": area },
        })
    };
    let fields = json!([field("First", "signature", "Buyer")]);
    let template = setup.app.template(CONTRACT, &fields).await;

    let sent = &setup.at().requests("POST", "/templates/pdf")[0];
    let requested = &sent.body["documents"][0]["fields"][0];
    assert_eq!(requested["areas"][0]["page"], 1);
    assert_eq!(requested["required"], false);
    assert_eq!(sent.body["shared_link"], false);

    use base64::Engine as _;

    let file = sent.body["documents"][0]["file"].as_str().unwrap();
    let file = base64::engine::general_purpose::STANDARD.decode(file);
    assert_eq!(file.unwrap(), CONTRACT);

    let stored = setup.at().template();
    assert_eq!(stored["fields"][0]["areas"][0]["page"], 0);
    assert_eq!(stored["fields"][0]["required"], false);

    let path = format!(
        "/partner/templates/{}/fields",
        template["template_id"].as_str().unwrap()
    );
    let more = json!({ "fields": [
        field("Second", "signature", "Seller"),
        { "name": "Third", "type": "text", "role": "buyer", "default_value": "as seen",
          "required": true, "placement": { "mode": "absolute", "areas": area } },
    ] });
    setup.app.post(&path, more).await.data(200);

    let stored = setup.at().template();
    let fields = stored["fields"].as_array().unwrap();
    let names: Vec<&Value> = fields.iter().map(|field| &field["name"]).collect();
    assert_eq!(names, ["First", "Second", "Third"]);

    for field in fields {
        assert_eq!(field["areas"][0]["page"], 0, "{field}");
        let attachment = &stored["schema"][0]["attachment_uuid"];
        assert_eq!(field["areas"][0]["attachment_uuid"], *attachment, "{field}");
    }

    assert_eq!(stored["shared_link"], false);
    // Members of a field that the plugin does not know are written back unchanged.
    assert_eq!(fields[0]["preferences"], json!({ "font_size": 11 }));

    // Values are kept by these keys.
    let uuids: std::collections::BTreeSet<&str> = fields
        .iter()
        .map(|field| field["uuid"].as_str().unwrap())
        .collect();
    assert_eq!(uuids.len(), 3);
    assert_eq!(
        fields[2]["submitter_uuid"], fields[0]["submitter_uuid"],
        "a role is the same in either case"
    );
    assert_eq!(stored["submitters"].as_array().unwrap().len(), 2);
}

/// The call that creates a template drops unknown members, so the plugin needs a second call.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_and_read_only_fields_reach_the_template() {
    let setup = ProviderSetup::docuseal().await;
    let document = pdf::with_lines(&[
        "{{Price;type=number;role=Buyer;readonly=true;default=12.5}}",
        "{{Buyer signature;type=signature;role=Buyer;default=Ann}}",
    ]);
    let texts = [("name", "Agreement")];
    setup
        .app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);

    let fields = &setup.at().template()["fields"];
    assert_eq!(fields[0]["readonly"], true);
    assert_eq!(fields[0]["default_value"], 12.5);

    // A signature field must not have a default value.
    assert_eq!(fields[1].get("default_value"), None);
}

/// Prefilled values are sent in the member in which DocuSeal refuses unknown names, with the
/// type of their field and for their role. DocuSeal is asked to send no mails.
#[tokio::test(flavor = "multi_thread")]
async fn docuseal_cannot_drop_sent_values_silently() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let sent = &setup.at().requests("POST", "/submissions")[0].body;
    assert_eq!(sent["send_email"], false);
    assert_eq!(sent["order"], "preserved");

    let [buyer, seller] = [0, 1].map(|index| &sent["submitters"][index]);
    assert_eq!(
        buyer["fields"],
        json!([{ "name": "Price", "default_value": 12.5 }])
    );
    assert_eq!(
        seller["fields"],
        json!([{ "name": "Remark", "default_value": "as seen" }])
    );

    for submitter in [buyer, seller] {
        assert_eq!(submitter.get("values"), None);
        assert_eq!(submitter["external_id"], id.as_str());
        assert_eq!(submitter["metadata"]["envelope_id"], id.as_str());
        assert_eq!(submitter["send_email"], false);
    }
}

/// For a template that was changed at DocuSeal, DocuSeal would silently use the role at the same
/// position and drop the value.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_or_field_missing_at_docuseal_is_detected_before_sending() {
    let setup = ProviderSetup::docuseal().await;
    let template = setup.template().await;
    let message = "Signing provider request failed";
    let renamed = |name: &str| {
        setup.at().change_template(|template| {
            template["submitters"][1]["name"] = name.into();
        });
    };
    renamed("Dealer");

    setup.fails_to_send(&template, 502, message).await;
    renamed("Seller");
    setup.at().change_template(|template| {
        template["fields"][3]["name"] = "Note".into();
    });
    setup.fails_to_send(&template, 502, message).await;

    // The field exists, but belongs to another role.
    setup.at().change_template(|template| {
        template["fields"][3]["name"] = "Remark".into();
        template["fields"][3]["submitter_uuid"] = template["submitters"][0]["uuid"].clone();
    });
    setup.fails_to_send(&template, 502, message).await;
    assert_eq!(setup.at().requests("POST", "/submissions").len(), 0);
}

/// Repeating a request after a lost response would create a second submission.
#[tokio::test(flavor = "multi_thread")]
async fn a_submission_with_a_lost_response_is_looked_up_and_not_repeated() {
    let lost = [
        DocusealFault::DroppedAfter,
        DocusealFault::AnswerAfter(500, json!({ "status": 500 })),
        DocusealFault::HangingAfter,
    ];
    for fault in lost {
        let setup = ProviderSetup::docuseal().await;
        let template = setup.template().await;
        setup.at().fail("POST", "/submissions", fault.clone(), 1);
        let envelope = setup
            .app
            .post("/partner/envelopes", ProviderSetup::body(&template))
            .await
            .data(201);
        assert_eq!(setup.at().submissions(), 1, "{fault:?}");
        assert_eq!(setup.at().requests("POST", "/submissions").len(), 1);

        let id = envelope["envelope_id"].as_str().unwrap();
        let looked = setup.at().requests("GET", "/submitters");
        assert_eq!(looked.len(), 2, "before and after: {fault:?}");
        assert!(looked[1].path.contains(id), "{}", looked[1].path);

        let links = setup.links(id).await;
        setup.sign(&links[0]).await;
        setup.sign(&links[1]).await;

        setup.app.wait_for(id, "vaulted").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_provider_leaves_no_envelope_behind() {
    let setup = ProviderSetup::docuseal().await;
    let template = setup.template().await;
    let message = "Signing provider request failed";

    let internal = DocusealFault::Answer(500, errors::internal().1);
    for fault in [internal, DocusealFault::Garbage, DocusealFault::Hanging] {
        setup.at().fail("POST", "/submissions", fault, 1);
        setup.fails_to_send(&template, 502, message).await;
        assert_eq!(setup.at().submissions(), 0);
    }
}

/// Every shape of an error, and the response that our caller gets.
#[tokio::test(flavor = "multi_thread")]
async fn every_docuseal_error_is_mapped_to_an_api_error() {
    let setup = ProviderSetup::docuseal().await;
    let template = setup.template().await;
    let failed = "Signing provider request failed";

    let unconfigured = "Provider is not configured";
    for ((status, body), ours, message) in [
        (errors::not_authenticated(), 503, unconfigured),
        (errors::not_authorized(), 502, failed),
        (errors::wrong_mode(), 503, unconfigured),
        (errors::not_found(), 502, failed),
        (errors::pro(), 503, unconfigured),
        (errors::validation(), 502, failed),
        (errors::bad_json(), 502, failed),
        (errors::too_many_requests(), 502, failed),
        (errors::internal(), 502, failed),
    ] {
        let fault = DocusealFault::Answer(status, body);
        setup.at().fail("POST", "/submissions", fault, 1);
        setup.fails_to_send(&template, ours, message).await;
    }

    assert_eq!(setup.at().submissions(), 0);
    // Without a fault the envelope is sent.
    let body = ProviderSetup::body(&template);
    setup.app.post("/partner/envelopes", body).await.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_free_docuseal_build_refuses_templates_with_a_clear_error() {
    let setup = ProviderSetup::docuseal().await;
    setup.at().be_the_free_build();
    let fields = json!([]).to_string();
    let texts = [("name", "Contract"), ("fields_json", fields.as_str())];
    let answer = setup
        .app
        .upload("/partner/templates", "application/pdf", CONTRACT, &texts)
        .await;
    assert_eq!(answer.error(503), "Provider is not configured");
}

/// DocuSeal responds 403 for objects of another account; the plugin reports them as not found.
#[tokio::test(flavor = "multi_thread")]
async fn another_accounts_template_is_not_found() {
    let plugin = StandalonePlugin::start().await;
    let template = plugin.template().await;
    plugin.docuseal.give_away(template.parse().unwrap());
    let found = plugin.clone(&template, "copy-1").await;
    assert!(matches!(found, Err(ProviderError::NotFound)), "{found:?}");

    let unknown = plugin.clone("4711", "copy-1").await;
    assert!(
        matches!(unknown, Err(ProviderError::NotFound)),
        "{unknown:?}"
    );
}

/// A clone inherits the shared link of its source, and a repeat of the call is
/// another clone.
#[tokio::test(flavor = "multi_thread")]
async fn a_clone_is_private_and_made_once() {
    let plugin = StandalonePlugin::start().await;
    let template = plugin.template().await;
    plugin
        .docuseal
        .change_template(|template| template["shared_link"] = true.into());
    let clone = plugin.clone(&template, "copy of 1 & 2").await.unwrap();
    assert_ne!(clone, template);
    assert_eq!(plugin.docuseal.template()["shared_link"], false);
    assert_eq!(plugin.docuseal.templates(), 2);

    let again = plugin.clone(&template, "copy of 1 & 2").await.unwrap();
    assert_eq!((again, plugin.docuseal.templates()), (clone, 2));

    // The plugin gives up a clone that stays shared.
    plugin.docuseal.change_template(|_| {});
    let fault = DocusealFault::Answer(200, json!({ "id": 0 }));
    plugin.docuseal.fail("PUT", "/templates/", fault, 1);
    let source = plugin.shared().await;
    let refused = plugin.clone(&source, "copy-3").await;
    assert!(
        matches!(refused, Err(ProviderError::Rejected(_))),
        "{refused:?}"
    );
    assert_ne!(plugin.docuseal.template()["archived_at"], Value::Null);
}

/// The plugin on its own, without a service.
struct StandalonePlugin {
    docuseal: FakeDocuseal,
    components: ComponentRegistry,
    lease: ProviderLease,
}

impl StandalonePlugin {
    async fn start() -> Self {
        let docuseal = FakeDocuseal::start().await;
        let mut config = Config::default();
        docuseal.configure(&mut config);
        let instance = &config.providers.signing.instances["cloud"];
        let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let cache = cache.join("native-code-of-component-tests");
        let setting = ("base_url".to_owned(), instance.base_url.to_string());

        let secret = ("api_key".to_owned(), SecretText::new(TOKEN));
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            components: ComponentRegistry::with_defaults(cache, [9; 32]).unwrap(),
            lease: ProviderLease {
                room: None,
                log: None,
                label: "provider.signing cloud".into(),
                settings: Arc::new(BTreeMap::from([setting])),
                secrets: Arc::new(BTreeMap::from([secret])),
                egress: NetworkAccess::network(
                    reqwest::Client::new(),
                    vec!["127.0.0.1".into()],
                    instance.timeout,
                    AllowedAddresses::public(true),
                ),
                clock: Clock::default(),
            },
            docuseal,
        }
    }

    async fn template(&self) -> String {
        let signing = self.components.signing(None, "cloud");
        let template = signing
            .create_template(self.lease.clone(), "A", "tmpl-1", CONTRACT.into(), &[])
            .await;
        template.unwrap().template_id
    }

    /// Creates a template with the shared link on.
    async fn shared(&self) -> String {
        let template = self.template().await;
        self.docuseal
            .change_template(|template| template["shared_link"] = true.into());
        template
    }

    async fn clone(&self, template: &str, external_id: &str) -> Result<String, ProviderError> {
        let signing = self.components.signing(None, "cloud");
        let clone = signing
            .clone_template(self.lease.clone(), template, "A copy", external_id)
            .await?;
        Ok(clone.template_id)
    }
}

/// Our link redirects to the provider's form. The provider's link never expires, so no response
/// contains it.
#[tokio::test(flavor = "multi_thread")]
async fn no_response_contains_the_providers_link() {
    let setup = ProviderSetup::docuseal().await;
    let template = setup.template().await;
    let created = setup
        .app
        .post("/partner/envelopes", ProviderSetup::body(&template))
        .await;
    let shown = setup.at().shown(setup.at().submission());
    let slug = shown["submitters"][0]["slug"].as_str().unwrap().to_owned();
    assert!(!created.text().contains(&slug), "{}", created.text());

    let id = created.data(201)["envelope_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for path in ["", "/signing-links", "/status", "/custody"] {
        let answer = setup
            .app
            .get(&format!("/partner/envelopes/{id}{path}"))
            .await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains(&slug), "{path}: {}", answer.text());
    }

    let links = setup.links(&id).await;
    assert!(setup.follow(&links[0]).await.ends_with(&slug));
}

/// A signer who opens the link while the provider is unreachable gets a page that explains it.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_sees_a_retry_page_while_the_provider_is_unreachable() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let links = setup.links(&id).await;
    let internal = DocusealFault::Answer(500, errors::internal().1);
    setup
        .at()
        .fail("GET", "/submissions/", internal, usize::MAX);

    let page = form::open(&setup.app, &links[0]).await;
    setup.at().recover();
    assert_eq!(page.status, 502);
    assert!(
        page.text().contains("try again in a few minutes"),
        "{}",
        page.text()
    );

    setup.follow(&links[0]).await;
}

/// The ledger distinguishes forms completed by their signer from those completed through the
/// API.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_records_how_and_from_where_a_signer_completed() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let links = setup.links(&id).await;
    setup.sign(&links[0]).await;
    setup.at().sign_by_api(submission, "Seller");
    let hook = setup.at().form_hook("form.completed", submission, "Seller");
    assert_eq!(setup.call_back(&hook).await.status, 200);

    let custody = setup.app.custody(&id).await;
    let completions: Vec<&Value> = custody["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["action"] == "signer.completed")
        .map(|entry| &entry["details"])
        .collect();
    assert_eq!(completions[0]["completion_method"], "form");
    assert_eq!(completions[0]["ip"], "203.0.113.7");
    assert_eq!(completions[0]["user_agent"], "A browser");
    assert_eq!(completions[1]["completion_method"], "api");
    assert_eq!(completions[1].get("ip"), None);
}

/// Only an undocumented endpoint returns the signer's IP address.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_completes_without_the_completions_endpoint() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let internal = DocusealFault::Answer(500, errors::internal().1);
    setup.at().fail("GET", "/events/form", internal, usize::MAX);
    let links = setup.links(&id).await;
    setup.sign(&links[0]).await;
    let details = setup.app.entry(&id, "signer.completed").await;
    assert_eq!(details["completion_method"], "form");
    assert_eq!(details.get("ip"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_needs_a_recent_signature_over_time_and_body() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    setup.at().view(submission, "Buyer");
    let body = setup
        .at()
        .form_hook("form.viewed", submission, "Buyer")
        .to_string();

    let now = Clock::default().now().as_seconds();
    let good = signature(SECRET.as_bytes(), now, &body);
    let hex = good.split_once('.').unwrap().1;
    use base64::Engine as _;

    let decoded = base64::engine::general_purpose::STANDARD
        .decode(SECRET.strip_prefix("whsec_").unwrap())
        .unwrap();

    let other_time = format!("{}.{hex}", now + 1);
    for (why, header) in [
        ("a test delivery is not signed", None),
        ("no time", Some(hex.to_owned())),
        ("another time", Some(other_time)),
        (
            "too old",
            Some(signature(SECRET.as_bytes(), now - 330, &body)),
        ),
        (
            "not yet",
            Some(signature(SECRET.as_bytes(), now + 330, &body)),
        ),
        (
            "another secret",
            Some(signature(b"whsec_other", now, &body)),
        ),
        ("the decoded secret", Some(signature(&decoded, now, &body))),
        (
            "another body",
            Some(signature(SECRET.as_bytes(), now, "{}")),
        ),
    ] {
        let answer = setup.call_back_with(header.as_deref(), &body).await;
        assert_eq!(answer.error(401), "Callback could not be verified", "{why}");
    }

    assert_eq!(setup.status(&id).await, "sent");
    let taken = setup.call_back_with(Some(&good), &body).await;
    assert_eq!(taken.status, 200);
    assert_eq!(setup.status(&id).await, "viewed");

    let garbage = signature(SECRET.as_bytes(), now, "[]");
    let answer = setup.call_back_with(Some(&garbage), "[]").await;
    assert_eq!(answer.status, 400);
}

/// Callbacks can arrive twice, late, in any order, and about other submissions.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_or_reordered_callback_changes_nothing() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let viewed = setup.at().form_hook("form.viewed", submission, "Buyer");
    setup.at().sign(submission, "Buyer", &[]);
    setup.at().sign(submission, "Seller", &[]);
    let hooks = [
        setup
            .at()
            .submission_hook("submission.completed", submission),
        setup.at().form_hook("form.completed", submission, "Seller"),
        setup.at().form_hook("form.completed", submission, "Buyer"),
        viewed,
        json!({ "event_type": "template.updated", "timestamp": "now", "data": { "id": 1 } }),
        json!({ "event_type": "submission.created", "timestamp": "now", "data": { "id": 4711 } }),
    ];
    for _ in 0..2 {
        for hook in &hooks {
            assert_eq!(setup.call_back(hook).await.status, 200, "{hook}");
        }
    }

    setup.app.wait_for(&id, "vaulted").await;
    for (event_type, times) in [
        ("signer.viewed", 2),
        ("signer.started", 2),
        ("signer.completed", 2),
        ("envelope.completed", 1),
        ("vault.stored", 1),
    ] {
        let types = setup.app.event_types(&id).await;
        let told = types.iter().filter(|told| *told == event_type).count();
        assert_eq!(told, times, "{event_type}");
        assert_eq!(setup.entries(&id, event_type).await, times, "{event_type}");
    }
}

/// Two accounts can use the same submission ids: a callback concerns only the instance with the
/// secret that signed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_affects_only_its_own_instance() {
    let verified = |config: &mut Config| {
        let mut instance = config.providers.signing.instances["cloud"].clone();
        let secret = SecretText::new("whsec_verified");
        instance.secrets.insert("webhook_secret".into(), secret);
        config
            .providers
            .signing
            .instances
            .insert("verified".into(), instance);
    };

    let setup = ProviderSetup::with(verified, true).await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    setup.at().view(submission, "Buyer");
    let body = setup
        .at()
        .form_hook("form.viewed", submission, "Buyer")
        .to_string();

    let now = Clock::default().now().as_seconds();
    let header = signature(b"whsec_verified", now, &body);
    let to = |instance: &str| {
        Request::post(format!("/api/v2/callbacks/signing/{instance}"))
            .header("X-Docuseal-Signature", &header)
            .body(Body::from(body.clone()))
            .unwrap()
    };
    assert_eq!(setup.app.send(to("cloud")).await.status, 401);
    assert_eq!(setup.app.send(to("verified")).await.status, 200);
    assert_eq!(setup.status(&id).await, "sent");
}

/// A callback that arrives while the provider is unreachable is refused, so that it is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_callback_is_refused_for_retry_while_the_provider_is_unreachable() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    setup.at().view(submission, "Buyer");
    let hook = setup.at().form_hook("form.viewed", submission, "Buyer");
    let limited = DocusealFault::Answer(429, errors::too_many_requests().1);
    setup.at().fail("GET", "/submissions/", limited, 1);
    assert_eq!(setup.call_back(&hook).await.status, 502);
    assert_eq!(setup.status(&id).await, "sent");
    assert_eq!(setup.call_back(&hook).await.status, 200);
    assert_eq!(setup.status(&id).await, "viewed");
}

/// After a delegation the next poll finds the new signer: old links stop working, and the new
/// signer gets one.
#[tokio::test(flavor = "multi_thread")]
async fn a_delegated_signer_replaces_the_original_on_record() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let links = setup.links(&id).await;
    setup.app.wait_for_mails(1).await;
    setup
        .at()
        .delegate(submission, "Buyer", "carol@example.com", "Carol");

    let passed_on = form::open(&setup.app, &links[0]).await;
    assert!(
        passed_on.text().contains("Signer replaced")
            && passed_on
                .text()
                .contains("Another person has been asked to sign in your place."),
        "{}",
        passed_on.text()
    );

    let details = setup.app.entry(&id, "signer.delegated").await;
    assert_eq!(details["role"], "Buyer");
    assert_eq!(details["from"], "buyer@example.com");
    assert_eq!(details["to"], "carol@example.com");
    assert_ne!(
        details["signer"]["signer_id"],
        details["previous"]["signer_id"]
    );

    // The old link has stopped working.
    assert_eq!(form::open(&setup.app, &links[0]).await.status, 410);

    let mails = setup.app.wait_for_mails(2).await;
    assert!(mails.iter().any(|mail| mail.contains("carol@example.com")));

    let links = setup.links(&id).await;
    setup.sign(&links[0]).await;
    setup.sign(&links[1]).await;
    setup.app.wait_for(&id, "vaulted").await;
    let completed = &setup.app.events(&id).await[8]["data"]["signers"];
    assert_eq!(completed[0]["email"], "carol@example.com");
    assert_eq!(completed[0]["name"], "Carol");
    assert_eq!(setup.entries(&id, "signer.delegated").await, 1);
}

/// The telephone belongs to the original signer: the new signer gets a mail.
#[tokio::test(flavor = "multi_thread")]
async fn a_delegated_signer_gets_no_text_message_on_the_originals_telephone() {
    let setup = ProviderSetup::docuseal().await;
    let mut body = ProviderSetup::body(&setup.template().await);
    body["signers"][0]["phone"] = "+15125550142".into();
    body["signers"][0]["notify_by"] = "sms".into();
    body["signers"][0]["access"] = "sms_code".into();
    let envelope = setup.app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();

    setup.app.wait_for_texts(1).await;
    let submission = setup.at().submission();
    setup
        .at()
        .delegate(submission, "Buyer", "carol@example.com", "Carol");
    setup
        .call_back(&setup.at().form_hook("form.viewed", submission, "Buyer"))
        .await;

    setup.app.entry(id, "signer.delegated").await;
    let mails = setup.app.wait_for_mails(1).await;
    assert!(mails.iter().any(|mail| mail.contains("carol@example.com")));

    // The code comes by mail as well.
    let links = setup.links(id).await;
    let page = form::press(&setup.app, &links[0], "send-code", &[]).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("c…l@example.com"), "{}", page.text());

    let mails = setup.app.wait_for_mails(2).await;
    assert!(mails.iter().any(|mail| mail.contains("Your code")));
    assert_eq!(setup.app.wait_for_texts(1).await.len(), 1);
}

/// The same for a signer who has already completed the form.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_changed_after_signing_is_detected() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let links = setup.links(&id).await;
    setup.sign(&links[0]).await;
    setup
        .at()
        .delegate(submission, "Buyer", "carol@example.com", "");

    setup.sign(&links[1]).await;
    let details = setup.app.entry(&id, "signer.delegated").await;
    assert_eq!(details["to"], "carol@example.com");
}

/// Of two concurrent polls, the older response must not undo the newer one.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_poll_response_does_not_restore_an_old_signer() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    setup.at().view(submission, "Buyer");
    let hook = setup.at().form_hook("form.viewed", submission, "Buyer");
    let late = DocusealFault::Late(Duration::from_millis(600));
    setup.at().fail("GET", "/submissions/", late, 1);

    let meanwhile = async {
        while setup.at().requests("GET", "/submissions/").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        tokio::time::sleep(Duration::from_millis(100)).await;
        setup
            .at()
            .delegate(submission, "Buyer", "carol@example.com", "Carol");
        setup.call_back(&hook).await.status
    };

    let (late, meanwhile) = tokio::join!(setup.call_back(&hook), meanwhile);
    assert_eq!((late.status.as_u16(), meanwhile.as_u16()), (200, 200));

    let details = setup.app.entry(&id, "signer.delegated").await;
    assert_eq!(details["to"], "carol@example.com");
}

/// No callback follows the last one, so only a final poll finds later changes. Check 4 and the
/// custody record have to name the people who really signed.
#[tokio::test(flavor = "multi_thread")]
async fn signers_are_confirmed_immediately_before_vault_in() {
    let setup = ProviderSetup::with(|_| {}, false).await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let links = setup.links(&id).await;
    setup.sign(&links[0]).await;
    setup.sign(&links[1]).await;
    assert_eq!(setup.status(&id).await, "completed");

    setup
        .at()
        .delegate(submission, "Seller", "carol@example.com", "Carol");

    let vault_in = format!("/partner/envelopes/{id}/vault-in-signed");
    let internal = DocusealFault::Answer(500, errors::internal().1);
    setup
        .at()
        .fail("GET", "/submissions/", internal, usize::MAX);
    let answer = setup.app.post(&vault_in, json!({})).await;
    assert_eq!(answer.error(502), "Signing provider request failed");

    let token = setup.app.admin();
    let shown = setup
        .app
        .get_with_bearer(&token, &format!("/envelopes/{id}"))
        .await
        .data(200);
    assert_eq!(shown["vault_error"]["step"], "confirm", "{shown}");

    setup.at().recover();
    setup.app.post(&vault_in, json!({})).await.data(200);
    let details = setup.app.entry(&id, "signer.delegated").await;
    assert_eq!(details["to"], "carol@example.com");

    let evaluated = setup.app.entry(&id, "compliance.evaluated").await;
    let facts = &evaluated["facts"];
    assert_eq!(facts["submitters"][1]["email"], "carol@example.com");
    assert_eq!(
        facts["signed_documents"][1]["signer_email"],
        "carol@example.com"
    );
    assert_eq!(evaluated["missing_requirements"], json!([]));

    let record = setup
        .app
        .objects("certificates")
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .find(|bytes| bytes.starts_with(b"%PDF-"))
        .unwrap();
    let record = pdf::text(&record);
    assert!(record.contains("signer.delegated"), "{record}");
    assert!(record.contains("carol@example.com"), "{record}");

    let verified = setup.app.release_and_verify(&id).await;
    assert_eq!(verified["valid"], true, "{verified}");
}

/// Until all signers have signed, DocuSeal returns a preview of the documents. Their URLs need
/// no credential, so they must not leak.
#[tokio::test(flavor = "multi_thread")]
async fn a_preview_is_never_vaulted() {
    let setup = ProviderSetup::with(|_| {}, false).await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let links = setup.links(&id).await;
    setup.sign(&links[0]).await;
    setup.sign(&links[1]).await;

    // The mails with the copy have already fetched the document.
    setup.app.wait_until_idle().await;
    let documents = format!("/submissions/{submission}/documents");
    let mailed = setup.at().requests("GET", &documents).len();
    let mailed_files = setup.at().requests("GET", "/file/").len();
    setup.at().reopen(submission);
    let vault_in = format!("/partner/envelopes/{id}/vault-in-signed");
    let answer = setup.app.post(&vault_in, json!({})).await;
    assert_eq!(answer.error(502), "Signing provider request failed");
    assert_eq!(setup.at().requests("GET", &documents).len(), mailed);

    setup.at().complete_again(submission);

    // A storage that is down may respond 200 with an HTML page.
    setup.at().fail("GET", "/file/", DocusealFault::Garbage, 1);
    let answer = setup.app.post(&vault_in, json!({})).await;
    assert_eq!(answer.error(502), "Signing provider request failed");

    setup.app.post(&vault_in, json!({})).await.data(200);
    let asked = setup.at().requests("GET", &documents);
    assert!(
        asked
            .iter()
            .all(|request| request.path.ends_with("?merge=true"))
    );

    let fetched = setup.at().requests("GET", "/file/");
    assert_eq!(fetched.len() - mailed_files, 2);
    assert!(fetched.iter().all(|request| request.token.is_none()));

    let signed: Vec<Vec<u8>> = setup
        .app
        .objects("signed")
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    assert_eq!(signed.len(), 1);
    assert!(signed[0].ends_with(b"% executed\n"));
}

/// Starts a setup that polls often and gets no callbacks.
async fn polled() -> ProviderSetup {
    let often = |config: &mut Config| config.sweep_interval = Some(Duration::from_millis(100));
    ProviderSetup::with(often, true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_finds_changes_without_callbacks() {
    let setup = polled().await;
    let other = setup.sent().await;
    let lost = setup.at().submission();
    let id = setup.sent().await;
    let submission = setup.at().submission();

    // A submission that cannot be read does not stop the poll of the others.
    setup.at().give_away(lost);
    setup.at().sign(submission, "Buyer", &[]);
    setup.app.wait_for_event(&id, "signer.completed").await;
    setup.at().sign(submission, "Seller", &[]);
    setup.app.wait_for(&id, "vaulted").await;
    assert_eq!(setup.status(&other).await, "sent");

    let metrics = setup.app.metrics().await;
    let failed = metrics
        .lines()
        .find_map(|line| line.strip_prefix("holdfast_provider_polls_failed_total "))
        .unwrap();
    assert!(failed.parse::<u64>().unwrap() > 0, "{failed}");

    setup.at().take_back(lost);
    setup.at().decline(lost, "Buyer", "Too late");
    setup.app.wait_for(&other, "declined").await;

    // Closed submissions are not polled.
    let path = format!("/submissions/{submission}?");
    let looks = setup.at().requests("GET", &path).len();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(setup.at().requests("GET", &path).len(), looks);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_expired_at_docuseal_ends_the_envelope() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    setup.at().expire(submission);
    let hook = setup.at().submission_hook("submission.expired", submission);
    assert_eq!(setup.call_back(&hook).await.status, 200);
    assert_eq!(setup.status(&id).await, "expired");

    setup.app.wait_for_event(&id, "envelope.expired").await;

    // DocuSeal could extend the expired submission, so it is archived as well.
    let deadline = Instant::now() + Duration::from_secs(120);
    while !setup.is_archived(&id).await {
        assert!(Instant::now() < deadline, "not archived");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The submission can no longer be signed, although the service has not ended the envelope.
#[tokio::test(flavor = "multi_thread")]
async fn a_submission_archived_at_docuseal_is_reported_once() {
    let setup = polled().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let links = setup.links(&id).await;
    setup.at().archive(submission);
    let hook = setup
        .at()
        .submission_hook("submission.archived", submission);
    assert_eq!(setup.call_back(&hook).await.status, 200);
    assert_eq!(
        setup.entries(&id, "submission.archived").await,
        0,
        "not at once"
    );

    setup.app.wait_for_entry(&id, "submission.archived").await;
    let closed = form::open(&setup.app, &links[0]).await;
    assert_eq!(closed.status, 409, "{}", closed.text());

    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(setup.entries(&id, "submission.archived").await, 1);

    // It can still be voided.
    let path = format!("/partner/envelopes/{id}/void");
    setup.app.post(&path, json!({})).await.data(200);
}

/// A void archives the submission before it closes the envelope. A poll in between must not
/// report the archived submission as foreign.
#[tokio::test(flavor = "multi_thread")]
async fn our_own_void_is_not_reported_as_a_foreign_archive() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let submission = setup.at().submission();
    let path = format!("/partner/envelopes/{id}/void");
    let hook = setup
        .at()
        .submission_hook("submission.archived", submission);

    let late = DocusealFault::Late(Duration::from_millis(500));
    setup.at().fail("DELETE", "/submissions/", late, 1);
    let meanwhile = async {
        while !setup.is_archived(&id).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        for _ in 0..2 {
            assert_eq!(setup.call_back(&hook).await.status, 200);
        }

        setup.status(&id).await
    };

    let (voided, meanwhile) = tokio::join!(setup.app.post(&path, json!({})), meanwhile);
    assert_eq!(meanwhile, "sent", "the callbacks came before the void");

    voided.data(200);
    assert_eq!(setup.call_back(&hook).await.status, 200);
    assert_eq!(setup.entries(&id, "submission.archived").await, 0);
}

/// A void that cannot reach the provider fails and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_void_fails_when_the_provider_is_unreachable() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    let internal = DocusealFault::Answer(500, errors::internal().1);
    setup.at().fail("DELETE", "/submissions/", internal, 1);
    let path = format!("/partner/envelopes/{id}/void");
    let answer = setup.app.post(&path, json!({})).await;
    assert_eq!(answer.error(502), "Signing provider request failed");
    assert_eq!(setup.status(&id).await, "sent");

    setup.app.post(&path, json!({})).await.data(200);
    assert!(setup.is_archived(&id).await);
}

/// The service sends reminders itself, because DocuSeal would ignore the signing order.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_mails_reminders_itself() {
    let setup = ProviderSetup::docuseal().await;
    let id = setup.sent().await;
    setup.app.wait_for_mails(1).await;
    let path = format!("/partner/envelopes/{id}/remind");
    let later = json!({ "signer_email": "seller@example.com" });
    assert_eq!(setup.app.post(&path, later).await.status, 422);

    let reminded = setup.app.post(&path, json!({})).await.data(200);
    assert_eq!(reminded["reminded"], json!(["buyer@example.com"]));

    setup.app.wait_for_mails(2).await;
    assert_eq!(setup.at().requests("PUT", "/submitters").len(), 0);
}

/// The provider reports a signer as completed although the form has no signature.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_completed_without_a_signature_counts_as_unsigned() {
    let setup = ProviderSetup::docuseal().await;
    let document =
        pdf::with_lines(&["{{Buyer signature;type=signature;role=Buyer;required=false}}"]);
    let texts = [("name", "Optional")];
    let template = setup
        .app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let body = envelope_body(&template["template_id"]);
    let envelope = setup.app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let link = setup.links(id).await.remove(0);
    let (submission, role) = setup.at().role_at(&setup.follow(&link).await);

    let unsigned = [("Buyer signature", Value::Null)];
    setup.at().sign(submission, &role, &unsigned);
    for _ in 0..2 {
        let hook = setup
            .at()
            .submission_hook("submission.completed", submission);
        assert_eq!(setup.call_back(&hook).await.status, 200);
    }

    assert_eq!(setup.status(id).await, "viewed");
    let links = format!("/partner/envelopes/{id}/signing-links");
    let links = setup.app.get(&links).await.data(200);
    assert_eq!(links["signers"][0]["status"], "started");

    let told = setup.app.entry(id, "signer.not_executed").await;
    assert_eq!(
        told,
        json!({ "role": "Buyer", "fields": ["Buyer signature"] })
    );

    let compliance = format!("/partner/envelopes/{id}/compliance");
    let compliance = setup.app.get(&compliance).await.data(200);
    assert_eq!(compliance["compliance"]["checks"][3]["satisfied"], false);
}

/// One template goes through a candidate before any signer meets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_is_tried_with_one_template() {
    let docuseal = FakeDocuseal::start().await;
    let insecure = |config: &mut Config| config.providers.allow_insecure = true;
    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let admin = app.admin();
    let bytes = variant(Slot::Signing, "own");
    let uploaded = app
        .upload_component(&admin, "own-sign", "1.0.0", &bytes)
        .await
        .data(201);

    let template = app.contract_template().await;
    let request = |token: &str| {
        json!({
            "component_id": uploaded["component_id"], "instance": "own", "template_id": template["template_id"],
            "config": {
                "base_url": format!("{}/api", docuseal.url),
                "secrets": { "api_key": token, "webhook_secret": SECRET },
            },
        })
    };

    let path = "/component-slots/provider.signing/try";
    let tried = async |body: Value| app.post_with_bearer(&admin, path, body).await;
    let good = tried(request(TOKEN)).await.data(200);
    assert_eq!(good["ok"], true, "{good:#}");

    let calls: Vec<&Value> = good["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["call"])
        .collect();
    assert_eq!(
        calls,
        ["create-template", "read-template", "archive-template"]
    );
    assert_eq!(good["fields_sent"], good["fields_at_provider"]);
    assert!(good["provider_template_id"].is_string());
    assert_eq!(docuseal.requests("DELETE", "/templates/").len(), 1);

    let wrong = tried(request("misspelt")).await;
    assert!(!wrong.text().contains("misspelt"));

    let wrong = wrong.data(200);
    assert_eq!(
        (&wrong["ok"], wrong["steps"].as_array().unwrap().len()),
        (&json!(false), 1)
    );
    assert!(wrong["steps"][0]["reason"].is_string(), "{wrong:#}");

    // Nothing is active, and the ledger has both trials.
    let slots = app
        .get_with_bearer(&admin, "/component-slots")
        .await
        .data(200);
    let mut slots = slots.as_array().unwrap().iter();
    let signing = slots
        .find(|slot| slot["slot"] == "provider.signing")
        .unwrap();
    assert_eq!(signing["instances"], json!([]));

    let ledger = app
        .get_with_bearer(&admin, "/component-ledger")
        .await
        .data(200);
    let trials = ledger.as_array().unwrap().iter();
    let trials: Vec<&Value> = trials
        .filter(|entry| entry["action"] == "component.tried")
        .map(|entry| &entry["details"])
        .collect();
    assert_eq!(
        (
            &trials[0]["ok"],
            &trials[0]["external_id"],
            &trials[1]["ok"]
        ),
        (&json!(true), &good["external_id"], &json!(false))
    );

    let mut bad = request(TOKEN);
    bad["template_id"] = json!("tmpl_01jt8s5gq2e6m9x4k7w3c5d8fb");
    tried(bad).await.error(404);
    let empty = json!({ "name": "Empty" });
    let empty = app
        .post_with_bearer(&admin, "/templates", empty)
        .await
        .data(201);

    let mut bad = request(TOKEN);
    bad["template_id"] = empty["template_id"].clone();
    tried(bad).await.error(409);
    let mut bad = request(TOKEN);
    bad["config"] = Value::Null;
    assert!(
        tried(bad.clone())
            .await
            .error(422)
            .contains("has no settings")
    );

    let rules = "/component-slots/rules.compliance/try";
    app.post_with_bearer(&admin, rules, request(TOKEN))
        .await
        .error(422);
    app.post_with_bearer(&app.token("compliance"), path, request(TOKEN))
        .await
        .error(403);

    app.post_with_bearer(&app.other_admin(), path, request(TOKEN))
        .await
        .error(404);

    // The stored secrets are not for a component that others have to approve.
    let policy = json!({ "reviews_required": 1 });
    app.as_bearer(axum::http::Method::PUT, &admin, "/component-policy", policy)
        .await
        .data(200);

    tried(bad).await.error(409);
}
