//! Envelopes that were sent or vaulted, and their events.

use serde_json::{Value, json};

use super::{TestApp, form, pdf};

impl TestApp {
    /// Sends the contract to one buyer and returns the envelope.
    pub async fn sent_envelope(&self) -> Value {
        let template = self.contract_template().await;
        self.post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await
        .data(201)
    }

    /// Sends a contract that a buyer and a seller sign in turn. Returns the envelope's id and a
    /// signing link for each.
    pub async fn sent_to_two(&self) -> (String, [String; 2]) {
        self.sent_to_two_signers(true).await
    }

    /// The same without an order: both can sign at any time.
    pub async fn sent_to_two_at_once(&self) -> (String, [String; 2]) {
        self.sent_to_two_signers(false).await
    }

    async fn sent_to_two_signers(&self, in_order: bool) -> (String, [String; 2]) {
        let document = pdf::with_lines(&[
            "{{First;type=signature;role=Buyer;required=true}}",
            "Between",
            "{{Second;type=signature;role=Seller;required=true}}",
        ]);
        let texts = [("name", "Two")];
        let template = self
            .upload("/partner/templates", "application/pdf", &document, &texts)
            .await
            .data(200);
        let mut body = envelope_body(&template["template_id"]);
        body["signers"] = buyer_and_seller();

        body["preserve_signing_order"] = in_order.into();
        let envelope = self.post("/partner/envelopes", body).await.data(201);
        let id = envelope["envelope_id"].as_str().unwrap().to_owned();
        let links = self
            .get(&format!("/partner/envelopes/{id}/signing-links"))
            .await
            .data(200);
        let url = |index: usize| {
            links["signers"][index]["embed_url"]
                .as_str()
                .unwrap()
                .to_owned()
        };

        (id, [url(0), url(1)])
    }

    /// Sends the contract, signs it, waits until it is vaulted, and returns the envelope's id.
    pub async fn vaulted_envelope(&self) -> String {
        let envelope = self.sent_envelope().await;
        let id = envelope["envelope_id"].as_str().unwrap().to_owned();
        let url = envelope["sign_url"].as_str().unwrap().to_owned();
        form::sign(self, &url).await;
        self.wait_for(&id, "vaulted").await;
        id
    }

    /// Returns the types of an envelope's events, in the order of the outbox.
    pub async fn event_types(&self, id: &str) -> Vec<String> {
        let events = self.events(id).await;
        events
            .iter()
            .map(|event| event["event_type"].as_str().unwrap().to_owned())
            .collect()
    }

    pub async fn events(&self, id: &str) -> Vec<Value> {
        let id = holdfast::domain::id::EnvelopeId::parse(id).unwrap();
        let mut connection = self.store.read().await.unwrap();
        let bodies = holdfast::store::events::bodies(&mut connection, &self.org, &id)
            .await
            .unwrap();
        bodies
            .iter()
            .map(|body| serde_json::from_str(body).unwrap())
            .collect()
    }
}

/// Returns the request body that creates an envelope from a template.
pub fn envelope_body(template_id: &Value) -> Value {
    json!({
        "envelope_name": "Retail instalment contract",
        "customer_email": "jordan.lee@example.com",
        "customer_name": "Jordan Lee",
        "template_id": template_id,
        "external_id": "deal-17",
        "secured_party": { "name": "First Example Bank", "role": "assignee" },
    })
}

/// Returns two signers for a template with the roles buyer and seller.
pub fn buyer_and_seller() -> Value {
    json!([
        { "email": "buyer@example.com", "name": "Ann Buyer", "role": "Buyer" },
        { "email": "seller@example.com", "name": "Bob Seller", "role": "Seller" },
    ])
}
