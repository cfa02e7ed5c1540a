//! What the host enforces about the control of a record, as facts for compliance rules.

use holdfast_store::SqlConnection;
use serde_json::json;

use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::id::OrgId;
use holdfast_evidence::statement::{StatedParty, chain};
use holdfast_store::{StoreError, control as rows, ledger, organizations};

/// Returns `control_chain`, and while another party than the originator has control,
/// `control.controller`, `.since`, `.pledgee`, `.pledgee_is_transferor` and `.signs_with`. Empty for a record
/// without acts of control.
pub async fn attributes(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Vec<(String, String)>, StoreError> {
    let control = rows::of_envelope(connection, envelope).await?;
    if control.epoch == 0 {
        return Ok(Vec::new());
    }

    let entries = ledger::list(connection, Some(&envelope.org), &envelope.id).await?;
    let organization = organizations::get(connection, &envelope.org).await?;
    let originator = StatedParty {
        organization_id: envelope.org.clone(),
        name: organization.map(|found| found.name).unwrap_or_default(),
    };
    let chain = chain(&originator, &entries);
    let mut attributes = vec![("control_chain".to_owned(), json!(chain).to_string())];

    let mut add = |name: &str, value: Option<String>| {
        attributes.extend(value.map(|value| (format!("control.{name}"), value)));
    };
    if let Some(last) = chain.last()
        && control.controller != control.org
    {
        add("controller", Some(last.name.clone()));
        add("since", Some(last.since.to_string()));
        add("signs_with", last.signs_with.clone());
        // A record has one pledge at most, so the newest entry is about the live one.
        let pledged = entries.iter().rev().find(|entry| {
            control.pledge.is_some() && entry.action == EventType::ControlPledged.as_str()
        });
        let pledgee = pledged.map(|entry| &entry.details["pledgee"]);
        let name = pledgee.and_then(|pledgee| pledgee["name"].as_str());
        add("pledgee", name.map(str::to_owned));

        // UCC §9-105(e)(2)(B): a power shared with the transferor is not exclusive.
        let transferor = chain.iter().rev().nth(1).map(|step| &step.organization_id);
        let pledgee = pledgee.and_then(|pledgee| pledgee["organization_id"].as_str());
        let is_transferor = pledgee.is_some() && pledgee == transferor.map(OrgId::as_str);
        add(
            "pledgee_is_transferor",
            is_transferor.then(|| true.to_string()),
        );
    }

    Ok(attributes)
}
