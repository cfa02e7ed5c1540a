//! Names of the parties of records.

use std::collections::HashMap;

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Serialize;

use holdfast_domain::control::{ControlRecord, ControlStage};
use holdfast_domain::id::OrgId;
use holdfast_store::{StoreError, organizations};

/// Organization that takes part in a record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PartyView {
    pub organization_id: OrgId,
    pub name: String,
}

/// Names of organizations that were read already.
#[derive(Default)]
pub struct PartyNames(HashMap<OrgId, String>);

impl PartyNames {
    /// Returns a party with its name; an empty one for an organization that is gone.
    pub async fn party(
        &mut self,
        connection: &mut SqlConnection,
        org: &OrgId,
    ) -> Result<PartyView, StoreError> {
        // The steps of a transfer ask for the same two parties for each of up to 10,000 records.
        let name = match self.0.get(org) {
            Some(name) => name.clone(),
            None => {
                let found = organizations::get(connection, org).await?;
                let name = found.map(|found| found.name).unwrap_or_default();
                self.0.insert(org.clone(), name.clone());
                name
            }
        };

        Ok(PartyView {
            organization_id: org.clone(),
            name,
        })
    }
}

/// Who controls a record, as in answers and events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ControlView {
    /// Created the record.
    pub originator: PartyView,
    /// Decides about the authoritative copy.
    pub controller: PartyView,
    /// Was offered control by the originator and has not answered.
    pub designee: Option<PartyView>,
    /// Was offered control by the controller in a transfer.
    pub buyer: Option<PartyView>,
    /// Has a pledge of the record, which does not change hands until the pledgee releases it.
    pub pledgee: Option<PartyView>,
    pub stage: ControlStage,
    /// Number of acts so far.
    pub epoch: i64,
}

/// Returns who controls a record, with names.
pub async fn control_view(
    names: &mut PartyNames,
    connection: &mut SqlConnection,
    control: &ControlRecord,
) -> Result<ControlView, StoreError> {
    let named = match &control.named {
        Some(named) => Some(names.party(connection, named).await?),
        None => None,
    };
    // One column holds both: a record is never designated and offered at the same time.
    let (designee, buyer) = match control.transfer {
        None => (named, None),
        Some(_) => (None, named),
    };

    let pledgee = match control.pledgee() {
        Some(pledgee) => Some(names.party(connection, pledgee).await?),
        None => None,
    };
    Ok(ControlView {
        pledgee,
        originator: names.party(connection, &control.org).await?,
        controller: names.party(connection, &control.controller).await?,
        designee,
        buyer,
        stage: control.stage,
        epoch: control.epoch,
    })
}
