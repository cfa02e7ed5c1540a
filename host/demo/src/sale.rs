//! `--sale`: the contract is assigned to a lender, which sells it to a funder. From then on nothing
//! leaves the vault without the funder's consent.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::{DemoPartner, DemoServer, Result, StepPrinter, text};

const LENDER: &str = "Crescent Auto Finance, LLC";
const FUNDER: &str = "Harbor Funding Trust";

/// A party that is an organization of the installation, and signs its acts with a key of its own.
struct SaleParty {
    org: String,
    partner: DemoPartner,
    pair: Ed25519KeyPair,
}

impl SaleParty {
    fn new(server: &DemoServer, name: &str) -> Result<Self> {
        let org = server.operator(&["org", "create", "--name", name])?;
        let org = text(&org, "org_id")?;
        let scopes = "control:read,control:write,control:consent";
        let partner = DemoPartner::with_key(server, &org, scopes, "desk@example.com")?;
        let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let pair = pair.map_err(|_| "no random numbers")?;
        let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).map_err(|_| "no key pair")?;
        Ok(Self { org, partner, pair })
    }

    fn public_key(&self) -> Value {
        let x = BASE64URL.encode(self.pair.public_key());
        json!({ "kty": "OKP", "crv": "Ed25519", "x": x })
    }

    /// RFC 7638.
    fn thumbprint(&self) -> Result<String> {
        let key = serde_json_canonicalizer::to_vec(&self.public_key())?;
        Ok(BASE64URL.encode(digest(&SHA256, &key)))
    }

    /// Registers the public key.
    async fn register(&self) -> Result<()> {
        let key = json!({ "public_key": self.public_key() });
        self.act("/partner/control/keys", &key).await?;
        Ok(())
    }

    /// Sends a request, signs the statement that it asks for, and sends it again.
    async fn act(&self, path: &str, body: &Value) -> Result<Value> {
        // The host drafts the statement, because it names the record's epoch and the installation. The party
        // only signs it.
        let (status, asked) = self.partner.answer_to(path, body).await?;
        if status != 409 || asked["code"] != "control_signature_required" {
            return Err(format!("{path} does not ask for a signature: {asked}").into());
        }
        let asked = &asked["details"];
        let mut body = body.clone();
        body[text(asked, "member")?] = self.signed(&asked["statement"])?;
        self.partner.post(path, &body).await
    }

    /// Signs the canonical form of a statement (RFC 8785) as a JWS with detached content.
    fn signed(&self, statement: &Value) -> Result<Value> {
        let header = json!({ "alg": "EdDSA", "kid": self.thumbprint()? });
        // Both sides sign and verify the canonical form, so the order of members in transit does not matter.
        let header = BASE64URL.encode(header.to_string());
        let content = BASE64URL.encode(serde_json_canonicalizer::to_vec(statement)?);
        let signature = self.pair.sign(format!("{header}.{content}").as_bytes());
        let signature = format!("{header}..{}", BASE64URL.encode(signature));
        Ok(json!({ "statement": statement, "signature": signature }))
    }
}

impl DemoPartner {
    /// Assigns the record to a lender and sells it on. Returns after the funder has agreed to the release
    /// that the originator asks for.
    pub async fn sell(
        &self,
        server: &DemoServer,
        steps: &mut StepPrinter,
        id: &str,
        release: &Value,
    ) -> Result<()> {
        // Parties of a transfer are organizations of the same installation, each with its own API key.
        let (lender, funder) = (
            SaleParty::new(server, LENDER)?,
            SaleParty::new(server, FUNDER)?,
        );
        let record = format!("/partner/control/records/{id}");
        steps.step("Lender and funder register keys: from now on they sign their acts");

        // The first key is registered before any act: from then on, a stolen API key alone can make no act of
        // control.
        for party in [&lender, &funder] {
            party.register().await?;
            steps.fact("key", party.thumbprint()?);
        }

        steps.step("Assign it: the originator designates the lender, which takes control");
        // The originator has registered no key, so its designation needs no signature. The lender's
        // acceptance does.
        let designate = json!({ "controller": lender.org });
        self.post(&format!("{record}/designate"), &designate)
            .await?;
        let accept = format!("{record}/accept");
        let controlled = lender.act(&accept, &json!({})).await?;
        steps.fact("controller", text(&controlled["controller"], "name")?);

        steps.step(
            "Sell it: the lender offers, the funder inspects and accepts, the lender confirms",
        );
        let offer = json!({
            "buyer": funder.org, "records": [id], "atomic": true, "price_reference": "Pool 2026-11",
        });
        let transfers = "/partner/control/transfers";
        let transfer = lender.act(transfers, &offer).await?;

        let transfer = format!("{transfers}/{}", text(&transfer, "transfer_id")?);
        // A background job moves the transfer from state to state, so each act waits for the one before.
        for (party, act, state) in [
            (&funder, "accept", "proposed"),
            (&lender, "confirm", "accepted"),
        ] {
            wait(&lender.partner, &transfer, state).await?;
            // The buyer looks before it accepts. Each inspection becomes an entry of the record's ledger.
            if act == "accept" {
                let inspection = format!("{record}/inspection?purpose=Due%20diligence");
                let seen = funder.partner.get(&inspection).await?;
                let entries = seen["ledger"]["entries"].as_array().map_or(0, Vec::len);
                let score = &seen["compliance"]["score"];
                steps.fact("inspected", format!("{entries} entries, score {score}"));
            }

            let act = format!("{transfer}/{act}");
            party.act(&act, &json!({})).await?;
        }

        let sold = wait(&funder.partner, &transfer, "confirmed").await?;
        steps.fact("receipt", text(&sold["receipt"], "root")?);
        let controlled = funder.partner.get(&record).await?;
        steps.fact("controller", text(&controlled["controller"], "name")?);

        steps.step("The buyer demands proof of control, and the funder gives it");
        // Only the party in control can prove control, so the funder makes the statement and not the
        // originator.
        let path = format!("/partner/envelopes/{id}/control-statement");
        let proof = json!({ "requested_by": "Jordan Lee" });
        let stated = funder.act(&path, &proof).await?;
        steps.fact("check it at", text(&stated, "verification_url")?);

        steps.step("The originator asks for a release, and the funder agrees");
        let vault_out = format!("/partner/envelopes/{id}/vault-out");
        let (status, refused) = self.answer_to(&vault_out, release).await?;
        steps.fact(
            "without consent",
            format!("{status} {}", text(&refused, "code")?),
        );

        // The release is refused, and the refusal itself opens the request that the funder answers.
        if status != 409 {
            return Err("a controlled record was released without consent".into());
        }

        let asked = text(&refused["details"], "release_id")?;
        // The consent queues the release as a job, so the originator need not ask again.
        let consent = format!("/partner/control/releases/{asked}/consent");
        let agreed = funder.act(&consent, &json!({})).await?;
        steps.fact("release", text(&agreed, "state")?);
        self.wait_until(id, "vaulted_out").await?;

        Ok(())
    }
}

async fn wait(partner: &DemoPartner, transfer: &str, state: &str) -> Result<Value> {
    for _ in 0..600 {
        let now = partner.get(transfer).await?;
        if now["state"] == state {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!("the transfer is not {state} after a minute").into())
}
