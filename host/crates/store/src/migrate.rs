//! Schema migrations.
//!
//! Each migration runs once, in order, in one transaction with the others. A row in `migration` is
//! the lock that makes nodes starting together wait for each other. An advisory lock is not used,
//! because not every PostgreSQL-like database has one.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Row as _};

use super::{SqlConnection, Store, StoreError, moves};

macro_rules! migrations {
    ($($version:literal $file:literal),* $(,)?) => {
        &[$(($version, include_str!(concat!("../../../../migrations/", $file, ".sql")))),*]
    };
}

const MIGRATIONS: &[(i64, &str)] = migrations![
    1 "0001_organizations",
    2 "0002_customers",
    3 "0003_templates",
    4 "0004_envelopes",
    5 "0005_ledger",
    6 "0006_events_and_jobs",
    7 "0007_vault",
    8 "0008_signing_room",
    9 "0009_partner_surface",
    10 "0010_frozen_issuer",
    11 "0011_pipeline_and_log",
    12 "0012_consent",
    13 "0013_provider_poll",
    14 "0014_template_sync",
    15 "0015_webhooks",
    16 "0016_components",
    17 "0017_composition_and_bulk",
    18 "0018_payment_and_kba",
    19 "0019_traces",
    20 "0020_buckets",
    21 "0021_deliveries_of_an_event",
    22 "0022_events_of_an_organization",
    23 "0023_compliance_score",
    24 "0024_component_quotas",
    25 "0025_credentials",
    26 "0026_browsers_of_signers",
    27 "0027_document_that_a_signer_saw",
    28 "0028_existing_signatures",
    29 "0029_signature_style",
    30 "0030_return_url",
    31 "0031_languages",
    32 "0032_roles_of_signers",
    33 "0033_access_codes",
    34 "0034_attachments_of_signers",
    35 "0035_text_messages",
    36 "0036_wording_of_a_record",
    37 "0037_envelope_counts",
    38 "0038_page_facts",
    39 "0039_control",
    40 "0040_transfers",
    41 "0041_fingerprints",
    42 "0042_party_keys",
    43 "0043_pledges",
    44 "0044_views",
    45 "0045_similar_records",
    46 "0046_party_invitations",
    47 "0047_sellers_copies",
    48 "0048_component_changes",
    49 "0049_component_vectors",
    50 "0050_instance_log",
    51 "0051_decision_blocks",
    52 "0052_component_state",
    53 "0053_component_attestations",
    54 "0054_users",
    55 "0055_passkeys",
    56 "0056_decisions_without_block",
    57 "0057_party_key_requests",
    58 "0058_single_sign_on",
    59 "0059_request_log",
    60 "0060_rare_envelopes",
    61 "0061_event_feed",
    62 "0062_envelopes_by_external_id",
    63 "0063_test_mode",
    64 "0064_signer_identity",
    66 "0066_consumer_disclosures",
    67 "0067_user_identities",
    70 "0070_sign_in_mails",
    71 "0071_access_code_failures",
    72 "0072_newest_entry",
    73 "0073_disputes",
    74 "0074_kba_billed_by_person",
    80 "0080_template_repairs",
    81 "0081_signer_notices",
    82 "0082_submission_dates",
    83 "0083_troubled_envelopes",
    85 "0085_template_versions",
    87 "0087_signer_questions",
    88 "0088_open_links",
    89 "0089_activity_and_filters",
    90 "0090_mail_subject",
    92 "0092_groups_and_witnesses",
    95 "0095_drawing_handovers",
    96 "0096_contract_facts",
    97 "0097_funding",
    98 "0098_tapes",
    99 "0099_template_sharing_and_variables",
    100 "0100_open_link_proofs",
    101 "0101_tapes_of_pools",
    102 "0102_legal_holds",
    103 "0103_retention",
    104 "0104_log_witnesses",
    105 "0105_seal_states",
    106 "0106_destroyed_details",
    107 "0107_destruction",
    109 "0109_customer_erasures",
    110 "0110_object_holds_and_reminders",
    111 "0111_moves",
    112 "0112_keys_of_records",
    113 "0113_imports",
];

/// Version of the row that serves as the lock.
const LOCK: i64 = 0;

/// How the schema of a database compares with that of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// The database has no schema of this program.
    Absent,
    /// Migrations are missing.
    Older,
    Current,
    /// The schema is of another program or of a newer version.
    Other,
}

/// Compares the schema of a database with that of this program, and changes nothing.
pub(super) async fn state(store: &Store) -> Result<SchemaState, StoreError> {
    let mut connection = store.read().await?;
    if !moves::has_table(&mut connection, store.dialect(), "migration").await? {
        return Ok(SchemaState::Absent);
    }

    let applied = applied(&mut connection).await?;
    let known = MIGRATIONS.iter().filter(|(version, text)| {
        let sha256 = applied.get(version);
        sha256.is_some_and(|sha256| *sha256 == hex::encode(Sha256::digest(text.as_bytes())))
    });
    let known = known.count();

    // The row of the lock is none of a migration.
    let foreign = applied.keys().filter(|version| **version != LOCK).count() - known;
    Ok(if foreign > 0 {
        SchemaState::Other
    } else if known == 0 {
        SchemaState::Absent
    } else if known < MIGRATIONS.len() {
        SchemaState::Older
    } else {
        SchemaState::Current
    })
}

/// Returns the SHA-256 of each applied migration, and of the row that serves as the lock.
async fn applied(connection: &mut SqlConnection) -> Result<HashMap<i64, String>, StoreError> {
    let rows = sqlx::query("select version, sha256 from migration")
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get("version")?, row.try_get("sha256")?)))
        .collect()
}

/// Runs the missing migrations. Other nodes may be writing to the tables meanwhile; if the database
/// resolves a deadlock by rolling this transaction back, it is retried.
pub(super) async fn run(store: &Store) -> Result<(), StoreError> {
    prepare(store).await?;
    let mut attempts = 0;
    loop {
        match apply(store).await {
            Err(error) if attempts < 10 && error.is_rolled_back() => {
                tracing::warn!(%error, "migration was rolled back by the database, retrying");
                attempts += 1;
            }
            result => return result,
        }
    }
}

async fn apply(store: &Store) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    let lock = format!(
        "select version from migration where version = $1 {}",
        store.dialect().for_update()
    );
    sqlx::query(AssertSqlSafe(lock))
        .bind(LOCK)
        .fetch_one(&mut *tx)
        .await?;

    // Read under the lock: another node may have migrated while this one waited.
    let applied = applied(&mut tx).await?;
    for (version, text) in MIGRATIONS {
        let sha256 = hex::encode(Sha256::digest(text.as_bytes()));
        match applied.get(version) {
            Some(applied) if *applied == sha256 => {}
            // Released migrations are immutable; a changed one means a wrong or modified program.
            Some(_) => return Err(StoreError::ChangedMigration(*version)),
            None => {
                let note = "insert into migration (version, sha256) values";
                let all = format!("{text}\n{note} ({version}, '{sha256}')");
                // Raw, because a migration contains several statements.
                sqlx::raw_sql(AssertSqlSafe(all)).execute(&mut *tx).await?;
                tracing::info!(version, "migration applied");
            }
        }
    }

    tx.commit().await
}

/// Creates the table and its lock row. Despite `if not exists`, two nodes creating the table at the
/// same moment can collide inside PostgreSQL; the retry then finds it.
async fn prepare(store: &Store) -> Result<(), StoreError> {
    let mut attempts = 0;
    loop {
        match create_table(store).await {
            Err(error) if attempts < 5 && error.is_unique_violation() => attempts += 1,
            result => return result,
        }
    }
}

async fn create_table(store: &Store) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "create table if not exists migration (version bigint primary key, sha256 text not null)",
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        "insert into migration (version, sha256) values ($1, '') on conflict (version) do nothing",
    )
    .bind(LOCK)
    .execute(&mut *tx)
    .await?;

    tx.commit().await
}
