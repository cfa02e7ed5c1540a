//! Custody ledgers, the log, and released bundles.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{TestApp, operator_output};

impl TestApp {
    /// Returns an envelope's custody ledger.
    pub async fn custody(&self, id: &str) -> Value {
        let path = format!("/partner/envelopes/{id}/custody");
        self.get(&path).await.data(200)
    }

    /// Returns the details of the only ledger entry with this action.
    pub async fn entry(&self, id: &str, action: &str) -> Value {
        let custody = self.custody(id).await;
        let mut entries = custody["entries"].as_array().unwrap().iter();
        let mut found = entries.by_ref().filter(|entry| entry["action"] == action);
        let details = found.next().unwrap()["details"].clone();
        assert_eq!(found.next(), None, "{action}");
        details
    }

    /// Downloads the copy for the parties.
    pub async fn copy(&self, id: &str) -> Vec<u8> {
        let path = format!("/partner/envelopes/{id}/vault/copy/signed-url");
        let link = self.get(&path).await.data(200);
        self.get(link["signed_url"].as_str().unwrap()).await.bytes
    }

    /// Returns the public key of the installation's log.
    pub async fn ledger_key(&self) -> String {
        let head = self.get_as("", "/ledger/head").await.data(200);
        head["public_key"].as_str().unwrap().to_owned()
    }

    /// Releases an envelope and returns the report of `holdfast verify` on the bundle.
    pub async fn release_and_verify(&self, id: &str) -> Value {
        let path = format!("/partner/envelopes/{id}/vault-out");
        self.post(&path, release_form()).await.data(200);
        let (data, id) = (self.data.path().to_owned(), id.to_owned());
        let verified =
            tokio::task::spawn_blocking(move || operator_output(&data, &["verify", &id]));
        serde_json::from_slice(&verified.await.unwrap().stdout).unwrap()
    }

    /// Releases an envelope and returns a folder with the recipient's files and the ledger.
    pub async fn released_bundle(&self, id: &str) -> TempDir {
        let path = format!("/partner/envelopes/{id}/vault-out");
        let release = self.post(&path, release_form()).await.data(200);
        let bundle = tempfile::tempdir().unwrap();
        for file in [
            "authoritative",
            "certified_vaulted_copy",
            "compliance_certificate",
            "vault_custody_record",
        ] {
            let url = release[format!("{file}_signed_url")].as_str().unwrap();
            let name = release[format!("{file}_filename")].as_str().unwrap();
            std::fs::write(bundle.path().join(name), self.get(url).await.bytes).unwrap();
        }

        let custody = format!("/partner/envelopes/{id}/custody");
        let ledger = self.get(&custody).await.data(200).to_string();
        std::fs::write(bundle.path().join("custody-ledger.json"), ledger).unwrap();

        bundle
    }
}

pub fn release_form() -> Value {
    json!({
        "recipient_name": "Robin Park",
        "recipient_organization": "First Example Bank",
        "recipient_email": "robin.park@bank.example",
        "purpose_of_release": "Assignment of the contract",
        "acknowledge_authoritative_copy": true,
        "acknowledge_chain_of_custody": true,
        "authorized_signature": "Jordan Maple",
    })
}
