//! Envelopes in each state that a person brings about, to look at in the console.

use std::path::Path;

use reqwest::multipart;
use serde_json::{Value, json};

use super::{DemoPartner, DemoServer, Result, signature_on_first_page, text, tick_of};

impl DemoPartner {
    /// Makes the samples. Returns the link of the one that waits for a signature.
    pub async fn samples(&self, server: &mut DemoServer, pdf: &Path) -> Result<String> {
        let document = std::fs::read(pdf)?;
        let fields = json!([signature_on_first_page()]);
        let template = self.template(document.clone(), &fields).await?;
        let template = text(&template, "template_id")?;
        let sent = async |name: &str| {
            let envelope = self
                .sample(name, json!({ "template_id": template }))
                .await?;
            Ok::<_, Box<dyn std::error::Error>>((
                text(&envelope, "envelope_id")?,
                text(&envelope, "sign_url")?,
            ))
        };

        self.sample("Draft without a document", json!({})).await?;
        let paper = json!({ "envelope_kind": "paper" });
        let uploaded = self.sample("Signed on paper, uploaded", paper).await?;
        self.upload(&text(&uploaded, "envelope_id")?, document)
            .await?;

        // Opening the form is enough: the room records the signer as viewed.
        let (_, viewed) = sent("Opened by its signer").await?;
        self.http.get(&viewed).send().await?.error_for_status()?;
        let (_, declined) = sent("Declined").await?;
        let reason = [
            ("action", "decline"),
            ("reason", "The rate is not the one we agreed on"),
        ];
        self.press(&declined, &reason).await?;

        let (voided, _) = sent("Voided").await?;
        let why = json!({ "reason": "Replaced by a new offer" });
        self.post(&format!("/partner/envelopes/{voided}/void"), &why)
            .await?;
        let finish = [
            ("action", "finish"),
            ("Buyer signature", "Jordan A. Ellery"),
        ];

        // This sample comes before the clock goes ahead. Nothing is sealed while the clock is behind the
        // ledger.
        let (vaulted, link) = sent("In the vault").await?;
        self.press(&link, &finish).await?;
        self.wait_until(&vaulted, "vaulted").await?;
        let set =
            |server: &DemoServer, setting| server.operator(&["org", "set", &self.org, setting]);
        set(server, "envelope_ttl_days=1")?;
        // An envelope takes its lifetime from the organization when it is created, so only this one has a
        // day.
        let (expired, _) = sent("Expired").await?;

        set(server, "envelope_ttl_days=30")?;

        // For the moment, this is tomorrow.
        server.restart(&[
            ("HOLDFAST_CLOCK_OFFSET", "25h"),
            ("HOLDFAST_SWEEP_INTERVAL", "1s"),
        ])?;
        self.wait_until(&expired, "expired").await?;
        server.restart(&[])?;

        // Signed, and not in the vault yet.
        set(server, "auto_vault=false")?;
        let (completed, link) = sent("Signed, to be vaulted on request").await?;
        self.press(&link, &finish).await?;
        // The setting counts when the last signer finishes, so it is restored only after that.
        self.wait_until(&completed, "completed").await?;
        set(server, "auto_vault=true")?;

        Ok(sent("Waits for your signature").await?.1)
    }

    /// Creates an envelope with further members.
    async fn sample(&self, name: &str, more: Value) -> Result<Value> {
        let mut body = json!({
            "envelope_name": name,
            "customer_email": "jordan.ellery@example.com",
            "customer_name": "Jordan A. Ellery",
            "secured_party": { "name": "Crescent Auto Finance, LLC", "role": "assignee" },
        });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }

        self.post("/partner/envelopes", &body).await
    }

    async fn upload(&self, id: &str, document: Vec<u8>) -> Result<Value> {
        let file = multipart::Part::bytes(document)
            .file_name("contract.pdf")
            .mime_str("application/pdf")?;
        let path = format!("{}/partner/envelopes/{id}/upload", self.api);
        let form = multipart::Form::new().part("file", file);
        self.send(self.http.post(path).multipart(form)).await
    }

    /// Sends the signing form, with the tick for the text about electronic records that it shows.
    async fn press(&self, url: &str, values: &[(&str, &str)]) -> Result<()> {
        let form = self.http.get(url).send().await?.error_for_status()?;
        let consent = tick_of(&form.text().await?)?;
        let values = [values, &[("consent", consent.as_str())]].concat();
        // The signer's page is fetched, too, so that the certificate can state a delivered document.
        let page = self.http.get(format!("{url}/pages/1.png")).send().await?;
        page.error_for_status()?;
        let answer = self.http.post(url).form(&values).send().await?;
        answer.error_for_status()?;
        Ok(())
    }
}
