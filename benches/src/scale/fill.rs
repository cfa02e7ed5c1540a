//! Test data: organizations after a year of use.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast::domain::clock::Clock;
use holdfast::domain::id::{
    BatchId, CustomerId, DecisionId, DeliveryId, EndpointId, EnvelopeId, EventId, ItemId, KeyId,
    OrgId, PackageId, TemplateId,
};
use holdfast::domain::organization::{ApiKeyRecord, OrgSettings, Organization, Scope};
use holdfast::domain::token::ApiKey;
use holdfast::store::{Store, api_keys, counts, organizations};
use serde_json::json;

use crate::Failure;

/// Envelopes of one organization; larger data sets have more organizations.
pub const OF_ORGANIZATION: usize = 1_000;

/// An organization, its key, and the id of one object of each kind.
pub struct SeedIds {
    pub org: OrgId,
    pub key: String,
    pub some: BTreeMap<&'static str, String>,
}

/// Kinds of objects with ids, and their number in an organization.
const KINDS: [(&str, fn() -> String, usize); 10] = [
    (
        "envelope",
        || EnvelopeId::new().to_string(),
        OF_ORGANIZATION,
    ),
    ("event", || EventId::new().to_string(), 3 * OF_ORGANIZATION),
    (
        "decision",
        || DecisionId::new().to_string(),
        3 * OF_ORGANIZATION,
    ),
    ("endpoint", || EndpointId::new().to_string(), 1),
    (
        "delivery",
        || DeliveryId::new().to_string(),
        OF_ORGANIZATION,
    ),
    ("customer", || CustomerId::new().to_string(), 100),
    ("template", || TemplateId::new().to_string(), 50),
    ("package", || PackageId::new().to_string(), 25),
    ("batch", || BatchId::new().to_string(), 50),
    ("item", || ItemId::new().to_string(), OF_ORGANIZATION),
];

/// Adds envelopes as after a year of use: most are vaulted, with a signer, ledger, events,
/// decisions, a webhook delivery and a planned integrity check. Their organizations have customers,
/// templates, packages and batches.
pub async fn fill(store: &Store, count: usize, known: &mut Vec<SeedIds>) -> Result<(), Failure> {
    let now = Clock::default().now();
    let then = (now - Duration::from_secs(86_400 * 100)).to_string();
    let tomorrow = (now + Duration::from_secs(86_400)).to_string();
    for _ in 0..count.div_ceil(OF_ORGANIZATION) {
        let org = OrgId::new();
        let key = ApiKey::generate(&org);
        let organization = Organization {
            id: org.clone(),
            name: "Maple Street Motors".into(),
            settings: OrgSettings::default(),
            created_at: now,
        };

        let record = ApiKeyRecord {
            id: KeyId::new(),
            org: org.clone(),
            name: None,
            scopes: Scope::ALL.to_vec(),
            rate_limit_rpm: 1_000_000,
            owner_email: None,
            active: true,
            last_used_at: None,
            revision: 0,
        };

        let ids = KINDS.map(|(kind, make, count)| {
            let ids: Vec<String> = (0..count).map(|_| make()).collect();
            (kind, ids)
        });
        let ids = BTreeMap::from(ids);
        let some: BTreeMap<_, _> = ids
            .iter()
            .map(|(kind, ids)| (*kind, ids[ids.len() / 2].clone()))
            .collect();

        let mut tx = store.begin().await?;
        organizations::insert(&mut tx, &organization).await?;
        api_keys::insert(&mut tx, &record, &key.hash(), now).await?;

        for (kind, statement) in STATEMENTS {
            sqlx::query(sqlx::AssertSqlSafe(format!("{GIVEN} {statement}")))
                .bind(json!(ids[kind]).to_string())
                .bind(org.bucket())
                .bind(org.as_str())
                .bind(json!(ids["customer"]).to_string())
                .bind(&then)
                .bind(&tomorrow)
                .bind(json!(ids["envelope"]).to_string())
                .bind(&some["endpoint"])
                .bind(&some["batch"])
                .bind(json!(ids["event"]).to_string())
                .execute(&mut *tx)
                .await?;
        }

        tx.commit().await?;

        // The statements above do not keep the numbers.
        counts::check(store, &org).await?;
        let key = key.reveal().to_owned();
        known.push(SeedIds { org, key, some });
    }

    let mut connection = store.read().await?;

    // The database would do this on its own after some time.
    sqlx::query("vacuum (analyze)")
        .execute(&mut *connection)
        .await?;

    Ok(())
}

/// Parameters: `$1` ids, `$2` bucket, `$3` organization, `$4` customers, `$5` then, `$6` tomorrow,
/// `$7` envelopes, `$8` endpoint, `$9` batch, `$10` events. This prefix names them in every
/// statement, so all statements bind the same parameters.
const GIVEN: &str = "with given as (select cast($1 as text), cast($2 as bigint), cast($3 as text),
    cast($4 as text), cast($5 as text), cast($6 as text), cast($7 as text), cast($8 as text),
    cast($9 as text), cast($10 as text))";

/// Insert statements, with the kind of object that each adds.
const STATEMENTS: &[(&str, &str)] = &[
    (
        "customer",
        "insert into customer (bucket, customer_id, org_id, email, name, details, created_at, updated_at)
         select $2, value, $3, 'jo' || n || '@example.com', 'Jo', '{}', $5, $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)",
    ),
    (
        "envelope",
        "insert into envelope (bucket, envelope_id, org_id, customer_id, name, kind, status, external_id,
             metadata, is_upload, preserve_signing_order, created_by, created_at, updated_at, looked_at)
         select $2, value, $3, cast($4 as json) ->> cast(n % json_array_length(cast($4 as json)) as integer),
             'Contract ' || n, 'esign',
             case when n % 20 = 0 then 'pending' when n % 20 = 1 then 'sent' else 'vaulted' end,
             'deal-' || n, '{}', 0, 0, 'office@example.com', $5, $5, $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)",
    ),
    (
        "envelope",
        "insert into signer (bucket, envelope_id, position, org_id, name, email, role, status)
         select $2, value, 1, $3, 'Jo', 'jo@example.com', 'Buyer', 'completed'
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "envelope",
        "insert into ledger_entry (bucket, envelope_id, sequence, org_id, at, actor, action, details,
             previous_hash, hash)
         select $2, value, step, $3, $5, 'system', 'envelope.created', '{\"customer\":\"somebody\"}',
             md5(value) || md5(value), md5(value || step) || md5(value)
         from json_array_elements_text(cast($1 as json)) as each (value), generate_series(1, 4) as step",
    ),
    (
        "envelope",
        "insert into ledger_leaf (bucket, envelope_id, sequence, leaf_index)
         select $2, value, step, step
         from json_array_elements_text(cast($1 as json)) as each (value), generate_series(1, 4) as step",
    ),
    (
        "event",
        "insert into event (bucket, event_id, org_id, envelope_id, event_type, body, created_at)
         select $2, value, $3, envelope, 'envelope.completed', '', $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = (n - 1) / 3 + 1",
    ),
    (
        "decision",
        "insert into lifecycle_decision (bucket, decision_id, org_id, envelope_id, from_status,
             trigger_name, to_status, facts, component, at)
         select $2, value, $3, envelope, 'sent', 'signed', 'completed', '{}',
             'lifecycle@1.0.0', $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = (n - 1) / 3 + 1",
    ),
    (
        "envelope",
        "insert into integrity_check (bucket, envelope_id, org_id, due_at)
         select $2, value, $3, $6
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         where n % 20 > 1",
    ),
    (
        "endpoint",
        "insert into webhook_endpoint (bucket, endpoint_id, org_id, url, events, is_active, legacy,
             created_by, created_at, updated_at, lease_epoch)
         select $2, value, $3, 'https://dealer.example/', '[\"*\"]', 1, 0, 'office@example.com', $5, $5, 0
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "delivery",
        "insert into webhook_delivery (bucket, delivery_id, org_id, endpoint_id, event_id, event_type,
             envelope_id, status, attempts, created_at, updated_at)
         select $2, value, $3, $8, event, 'envelope.completed',
             envelope, case when n % 100 = 0 then 'failed' else 'delivered' end, 1, $5, $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = n
         join json_array_elements_text(cast($10 as json)) with ordinality as about (event, o) on o = 3 * n",
    ),
    (
        "delivery",
        "insert into webhook_attempt (bucket, delivery_id, attempt, org_id, at, response_code, duration_ms)
         select $2, value, 1, $3, $5, 200, 20
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "template",
        "insert into template (bucket, template_id, org_id, name, kba_required, provider_instance, fields,
             created_at, updated_at)
         select $2, value, $3, 'Contract', 0, 'signing', '[]', $5, $5
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "package",
        "insert into document_package (bucket, package_id, org_id, name, template_ids, created_at, updated_at)
         select $2, value, $3, 'Deal', '[]', $5, $5
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "batch",
        "insert into bulk_batch (bucket, batch_id, org_id, name, document_source, kba_required,
             preserve_signing_order, add_me_as_signer, auto_vault_enabled, tag_ids, status, runs,
             created_by, created_at, updated_at)
         select $2, value, $3, 'Notices', 'template', 0, 0, 0, 1, '[]', 'completed', 1,
             'office@example.com', $5, $5
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "item",
        "insert into bulk_item (bucket, item_id, org_id, batch_id, position, customer_id, customer_name,
             email, status, envelope_id, sent_at, run_at, lease_epoch, attempts)
         select $2, value, $3, $9, n, 'cust_' || substr(value, 5), 'Jo', 'jo@example.com', 'sent', envelope,
             $5, $5, 1, 1
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = n",
    ),
];
