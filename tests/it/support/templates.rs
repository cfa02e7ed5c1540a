//! Documents, templates made from them, and the field builder.

use axum::http::Request;
use serde_json::{Value, json};

use super::{TestApp, TestResponse};

pub const CONTRACT: &[u8] = include_bytes!("../../fixtures/retail-installment-contract.pdf");

impl TestApp {
    /// Creates a template of the demo contract: the buyer signs at an anchor and dates the first
    /// page.
    pub async fn contract_template(&self) -> Value {
        let fields = json!([
            {
                "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
                "placement": {
                    "mode": "anchor", "anchor_text": "Buyer signature:",
                    "offset_x": 0.17, "offset_y": -0.012, "w": 0.32, "h": 0.03,
                },
            },
            {
                "name": "Signed on", "type": "date", "role": "Buyer", "required": true,
                "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.72, "y": 0.035, "w": 0.2, "h": 0.02 }] },
            },
        ]);

        self.template(CONTRACT, &fields).await
    }

    pub async fn template(&self, pdf: &[u8], fields: &Value) -> Value {
        self.new_template(pdf, fields).await.data(200)
    }

    /// Asks for a template with these fields.
    pub async fn new_template(&self, pdf: &[u8], fields: &Value) -> TestResponse {
        let fields = fields.to_string();
        let texts = [("name", "Contract"), ("fields_json", fields.as_str())];
        self.upload("/partner/templates", "application/pdf", pdf, &texts)
            .await
    }

    /// Starts a field builder session for a template and returns its token.
    pub async fn template_session(&self, template: &str) -> String {
        let request = json!({ "template_id": template });
        let session = self
            .post_with_bearer(&self.admin(), "/esign/builder-session", request)
            .await
            .data(201);
        let url = session["builder_url"].as_str().unwrap();
        url.split_once("#token=").unwrap().1.to_owned()
    }

    /// Sends a request like the field builder's script.
    pub async fn builder(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.send(request.body(body.into()).unwrap()).await
    }
}

/// Returns a PDF of `size` bytes: the contract, padded with a comment of spaces.
pub fn padded(size: usize) -> Vec<u8> {
    let mut pdf = CONTRACT.to_vec();
    let tail = pdf.split_off(pdf.windows(9).rposition(|w| w == b"startxref").unwrap());
    pdf.extend(b"%");
    pdf.resize(size - tail.len() - 1, b' ');
    pdf.push(b'\n');
    pdf.extend(tail);
    assert_eq!(pdf.len(), size);
    pdf
}
