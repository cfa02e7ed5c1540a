//! What the host enforces about the control of a record, as facts for compliance rules.

use serde_json::{Value, json};
use sqlx::AnyConnection;

use crate::domain::envelope::Envelope;
use crate::domain::event::EventType;
use crate::evidence::statement::{StatedParty, chain};
use crate::store::{StoreError, control as rows, ledger, organizations};

/// Returns `control_chain`, and while another party than the originator has control,
/// `control.controller`, `.since`, `.pledgee` and `.signs_with`. Empty for a record without acts of control.
pub async fn attributes(
    connection: &mut AnyConnection,
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
        let pledged = entries.iter().rev().find(|entry| {
            control.pledge.is_some() && entry.action == EventType::ControlPledged.as_str()
        });
        let pledgee = pledged.map(|entry| &entry.details["pledgee"]["name"]);
        add(
            "pledgee",
            pledgee.and_then(Value::as_str).map(str::to_owned),
        );
    }
    Ok(attributes)
}
