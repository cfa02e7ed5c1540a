//! Clients of a batch.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lock;
use crate::envelopes::lifecycle;
use holdfast_components::rules::lifecycle::BatchTrigger;
use holdfast_domain::bulk::{BatchItem, ItemStatus, NO_EMAIL};
use holdfast_domain::id::{CustomerId, ItemId};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{bulk, customers};

/// Body of `POST /bulk-send/{id}/items`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "customer_ids": ["cust_01jdk7m3e8f4x9s2w5v6b0c1db"] }]))]
pub struct SetClients {
    /// In sending order. Duplicates count once.
    #[schemars(length(min = 1, max = 1000))]
    pub customer_ids: Vec<String>,
}

/// Result of setting a batch's clients.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "added": 1, "skipped_no_email": [], "skipped_own_email": [], "rejected": [],
}]))]
pub struct AddedClients {
    /// Number of clients that will be sent to.
    pub added: usize,
    /// In the batch, but not sent to.
    pub skipped_no_email: Vec<CustomerId>,
    /// In the batch, but not sent to: their address is the sender's own.
    pub skipped_own_email: Vec<CustomerId>,
    /// Not clients of the organization, and not in the batch.
    pub rejected: Vec<String>,
}

/// Replaces the batch's clients.
pub async fn set_clients(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: SetClients,
    answer: &ResponseRecorder<AddedClients>,
) -> Result<AddedClients, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Locked, because a submission of the batch counts and freezes its list.
    let mut batch = lock(&mut tx, caller, id).await?;
    let trigger = BatchTrigger::SetItems;
    let ready = lifecycle::next_batch_status(core, &batch.org, Some(batch.status), trigger).await?;
    let mut added = AddedClients {
        added: 0,
        skipped_no_email: Vec::new(),
        skipped_own_email: Vec::new(),
        rejected: Vec::new(),
    };

    let ids: Vec<CustomerId> = request
        .customer_ids
        .iter()
        .filter_map(|text| CustomerId::parse(text))
        .collect();
    let known = customers::by_ids(&mut tx, &batch.org, &ids).await?;
    let mut items: Vec<BatchItem> = Vec::new();

    let mut seen = HashSet::new();
    for text in &request.customer_ids {
        if !seen.insert(text.as_str()) {
            continue;
        }

        let client = CustomerId::parse(text).and_then(|id| known.get(&id));
        // One unknown client is no reason to refuse the others. The answer names it.
        let Some(client) = client else {
            added.rejected.push(text.clone());
            continue;
        };

        // Skipped clients stay in the list, so that users see which ones the batch does not reach.
        let skipped = batch.skips(client.email.as_deref());
        match skipped {
            Some(NO_EMAIL) => added.skipped_no_email.push(client.id.clone()),
            Some(_) => added.skipped_own_email.push(client.id.clone()),
            None => added.added += 1,
        }

        items.push(BatchItem {
            id: ItemId::new(),
            org: batch.org.clone(),
            batch: batch.id.clone(),
            position: items.len() as i64,
            customer: client.id.clone(),
            customer_name: client.name.clone(),
            email: client.email.clone(),
            status: match skipped {
                None => ItemStatus::Pending,
                Some(_) => ItemStatus::Skipped,
            },
            envelope: None,
            error: skipped.map(str::to_owned),
            sent_at: None,
            attempts: 0,
            lease_epoch: 0,
        });
    }

    bulk::replace_items(&mut tx, &batch, &items, now).await?;

    // An empty list does not make the batch ready.
    if !items.is_empty() {
        batch.status = ready;
    }

    bulk::update(&mut tx, &batch, now).await?;
    answer.commit(tx, &added).await?;
    Ok(added)
}
