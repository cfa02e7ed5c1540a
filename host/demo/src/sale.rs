//! `--sale`: the contract is assigned to a lender, which sells it to a funder. From then on nothing
//! leaves the vault without the funder's consent.

use std::time::Duration;

use serde_json::{Value, json};

use super::{DemoPartner, DemoServer, Result, StepPrinter, text};

const LENDER: &str = "Crescent Auto Finance, LLC";
const FUNDER: &str = "Harbor Funding Trust";

/// A party that is an organization of the installation, with its own key.
struct SaleParty {
    org: String,
    partner: DemoPartner,
}

impl SaleParty {
    fn new(server: &DemoServer, name: &str) -> Result<Self> {
        let org = server.operator(&["org", "create", "--name", name])?;
        let org = text(&org, "org_id")?;
        let scopes = "control:read,control:write,control:consent";
        let partner = DemoPartner::with_key(server, &org, scopes, "desk@example.com")?;
        Ok(Self { org, partner })
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
        let (lender, funder) = (
            SaleParty::new(server, LENDER)?,
            SaleParty::new(server, FUNDER)?,
        );
        let record = format!("/partner/control/records/{id}");

        steps.step("Assign it: the originator designates the lender, which takes control");
        let designate = json!({ "controller": lender.org });
        self.post(&format!("{record}/designate"), &designate)
            .await?;
        let accept = format!("{record}/accept");
        let controlled = lender.partner.post(&accept, &json!({})).await?;
        steps.fact("controller", text(&controlled["controller"], "name")?);

        steps.step("Sell it: the lender offers, the funder accepts, the lender confirms");
        let offer = json!({
            "buyer": funder.org, "records": [id], "atomic": true, "price_reference": "Pool 2026-11",
        });
        let transfers = "/partner/control/transfers";
        let transfer = lender.partner.post(transfers, &offer).await?;
        let transfer = format!("{transfers}/{}", text(&transfer, "transfer_id")?);
        for (party, act, state) in [
            (&funder, "accept", "proposed"),
            (&lender, "confirm", "accepted"),
        ] {
            wait(&lender.partner, &transfer, state).await?;
            let act = format!("{transfer}/{act}");
            party.partner.post(&act, &json!({})).await?;
        }
        let sold = wait(&funder.partner, &transfer, "confirmed").await?;
        steps.fact("receipt", text(&sold["receipt"], "root")?);
        let controlled = funder.partner.get(&record).await?;
        steps.fact("controller", text(&controlled["controller"], "name")?);

        steps.step("The originator asks for a release, and the funder agrees");
        let vault_out = format!("/partner/envelopes/{id}/vault-out");
        let (status, refused) = self.answer_to(&vault_out, release).await?;
        steps.fact(
            "without consent",
            format!("{status} {}", text(&refused, "code")?),
        );
        if status != 409 {
            return Err("a controlled record was released without consent".into());
        }
        let asked = text(&refused["details"], "release_id")?;
        let consent = format!("/partner/control/releases/{asked}/consent");
        let agreed = funder.partner.post(&consent, &json!({})).await?;
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
