//! Names of the parties of records.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::AnyConnection;

use crate::domain::id::OrgId;
use crate::store::{StoreError, organizations};

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
    pub(in crate::service) async fn party(
        &mut self,
        connection: &mut AnyConnection,
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
