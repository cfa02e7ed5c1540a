//! The store's contract, tested on both databases.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast::domain::clock::{Clock, Timestamp};
use holdfast::domain::envelope::{
    Envelope, EnvelopeKind, EnvelopeStatus, PaymentStatus, Signer, SignerNotice,
};
use holdfast::domain::id::{BatchId, EnvelopeId, KeyId, OrgId, QuestionId};
use holdfast::domain::job::{
    ArchiveSubmission, JobPayload as _, JobQueue, MailAddressee, MailCompletion, SendBatch,
};
use holdfast::domain::ledger::{DESTROYED, NewEntry, verify_chain};
use holdfast::domain::organization::{ApiKeyRecord, OrgSettings, Organization, Scope};
use holdfast::domain::question::{QuestionClosing, SignerQuestion};
use holdfast::domain::token::ApiKey;
use holdfast::store::envelopes::KeyedEnvelope;
use holdfast::store::idempotency::RequestKey;
use holdfast::store::jobs::LeaseRenewal;
use holdfast::store::search::{self, EnvelopeSearch, EnvelopeTab, TroubleCounts};
use holdfast::store::{
    ACQUIRE_TIMEOUT, STRANGERS, Store, StoreError, activity, api_keys, counts, customers,
    envelopes, glances, idempotency, jobs, ledger, organizations, page_facts, provider_poll,
    questions, rate_windows, record_rows, signers,
};
use serde_json::json;
use sqlx::Row as _;

use crate::support::postgres::{self, is_of_installation};

macro_rules! on_both_databases {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    let folder = tempfile::tempdir().unwrap();
                    let url = format!("sqlite://{}", folder.path().join("test.db").display());
                    let store = super::Store::connect(&url).await.unwrap();
                    store.migrate().await.unwrap();
                    super::$name(store).await;
                }
            )*
        }

        mod on_postgresql {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name(super::postgres::new_store().await).await;
                }
            )*
        }
    };
}

on_both_databases!(
    migrating_again_changes_nothing,
    a_newer_schema_is_accepted,
    an_uncommitted_transaction_changes_nothing,
    each_address_has_one_customer,
    the_ledger_is_one_chain_under_concurrent_writers,
    a_redacted_ledger_keeps_its_hashes,
    a_claim_leases_as_many_jobs_as_it_asks_for,
    a_late_worker_cannot_settle_a_reclaimed_job,
    every_tenant_table_is_keyed_by_bucket_and_indexed_by_organization,
    a_destruction_knows_every_table_that_names_an_envelope,
    a_stored_response_is_settled_only_by_its_claim,
    a_rate_limit_window_ends_and_restarts,
    a_cached_key_is_revalidated,
    envelopes_expire_in_order,
    open_envelopes_are_polled_in_turn,
    the_number_of_envelopes_follows_every_change,
    each_envelope_is_in_one_tab,
    times_to_sign_are_ranked_by_the_database,
    writers_fail_and_give_up_alone,
    kept_pages_are_those_of_one_component_and_are_forgotten,
    strangers_and_known_callers_read_with_different_connections,
);

/// Look-ups of guesses that use all of their connections leave those of known callers free.
async fn strangers_and_known_callers_read_with_different_connections(store: Store) {
    let strangers = store.for_strangers();
    let mut held = Vec::new();
    for _ in 0..STRANGERS {
        held.push(strangers.read().await.unwrap());
    }

    let soon = Duration::from_millis(300);
    assert!(tokio::time::timeout(soon, strangers.read()).await.is_err());
    assert!(
        tokio::time::timeout(ACQUIRE_TIMEOUT, store.check())
            .await
            .is_ok()
    );

    drop(held);
    assert!(strangers.check().await.is_ok());
}

/// During a rolling upgrade, older nodes start on the newer schema.
async fn a_newer_schema_is_accepted(store: Store) {
    let mut tx = store.begin().await.unwrap();
    for statement in [
        "insert into migration (version, sha256) values (9999, 'of the next version')",
        "alter table job add column of_the_next_version text",
        "create table of_the_next_version (id bigint primary key)",
    ] {
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
    }

    tx.commit().await.unwrap();
    store.migrate().await.unwrap();
    let org = OrgId::new();
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    jobs::insert(&mut tx, &org, &mail(), None, now)
        .await
        .unwrap();

    tx.commit().await.unwrap();
    let lease = Duration::from_secs(15);
    let claimed = jobs::claim(&store, JobQueue::Mail, now, lease, 8).await;
    assert_eq!(claimed.unwrap().len(), 1);
}

async fn migrating_again_changes_nothing(store: Store) {
    let (first, second) = tokio::join!(store.migrate(), store.migrate());
    first.unwrap();
    second.unwrap();
}

fn mail() -> MailCompletion {
    MailCompletion(MailAddressee {
        envelope: EnvelopeId::new(),
        position: None,
        question: None,
        is_planner: false,
    })
}

fn archiving() -> ArchiveSubmission {
    ArchiveSubmission {
        envelope: EnvelopeId::new(),
    }
}

fn organization() -> Organization {
    Organization {
        id: OrgId::new(),
        name: "Maple".into(),
        settings: OrgSettings::default(),
        created_at: Clock::default().now(),
    }
}

async fn an_uncommitted_transaction_changes_nothing(store: Store) {
    let organization = organization();
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &organization).await.unwrap();
    drop(tx);
    let mut connection = store.read().await.unwrap();
    assert!(
        organizations::get(&mut connection, &organization.id)
            .await
            .unwrap()
            .is_none()
    );

    drop(connection);

    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &organization).await.unwrap();
    tx.commit().await.unwrap();
    let mut connection = store.read().await.unwrap();
    let found = organizations::get(&mut connection, &organization.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.name, "Maple");
    assert_eq!(found.settings, OrgSettings::default());
}

async fn each_address_has_one_customer(store: Store) {
    let (org, other) = (OrgId::new(), OrgId::new());
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    let first = customers::upsert_by_email(&mut tx, &org, "Ann@Example.com", "Ann", now)
        .await
        .unwrap()
        .id;

    let again = customers::upsert_by_email(&mut tx, &org, "ann@example.com ", "Ann B.", now)
        .await
        .unwrap()
        .id;
    let foreign = customers::upsert_by_email(&mut tx, &other, "ann@example.com", "Ann", now)
        .await
        .unwrap()
        .id;
    assert_eq!(first, again);
    assert_ne!(first, foreign);

    let found = customers::get(&mut tx, &org, &first)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.name, "Ann B.");
    assert_eq!(found.email.as_deref(), Some("ann@example.com"));
    assert!(
        customers::get(&mut tx, &other, &first)
            .await
            .unwrap()
            .is_none()
    );
}

async fn the_ledger_is_one_chain_under_concurrent_writers(store: Store) {
    let (org, envelope) = (OrgId::new(), EnvelopeId::new());
    let writers = (0..20).map(|number| {
        let (store, org, envelope) = (store.clone(), org.clone(), envelope.clone());
        tokio::spawn(async move {
            // The loser of a race gets a unique violation and tries again.
            loop {
                let mut tx = store.begin().await.unwrap();
                let entry = NewEntry {
                    at: Timestamp::from_millis(number),
                    actor: "test".into(),
                    action: "test.written".into(),
                    details: json!({ "number": number, "ratio": 0.1, "text": "ü\u{0}".trim_end_matches('\u{0}') }),
                };
                match ledger::append(&mut tx, Some(&org), &envelope, entry).await {
                    Ok(_) => return tx.commit().await.unwrap(),
                    Err(error) => assert!(error.is_unique_violation(), "{error}"),
                }
            }
        })
    });

    futures::future::join_all(writers)
        .await
        .into_iter()
        .for_each(|writer| writer.unwrap());
    let mut connection = store.read().await.unwrap();
    let entries = ledger::list(&mut connection, Some(&org), &envelope)
        .await
        .unwrap();
    assert_eq!(entries.len(), 20);

    verify_chain(&entries).unwrap();
}

async fn a_redacted_ledger_keeps_its_hashes(store: Store) {
    let (org, envelope) = (OrgId::new(), EnvelopeId::new());
    let signer =
        json!({ "signer": { "signer_id": "sgn_1", "email": "ann@example.com", "name": "Ann" } });
    let mut tx = store.begin().await.unwrap();
    for (action, details) in [
        ("signer.viewed", signer.clone()),
        ("signer.completed", signer),
        (DESTROYED, json!({ "document_hash": "ab" })),
    ] {
        let actor = if action == DESTROYED {
            "system"
        } else {
            "signer:ann@example.com"
        };
        let entry = NewEntry {
            at: Timestamp::from_millis(0),
            actor: actor.into(),
            action: action.into(),
            details,
        };
        ledger::append(&mut tx, Some(&org), &envelope, entry)
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();

    // The job that destroys a record may run twice.
    for _ in 0..2 {
        let mut tx = store.begin().await.unwrap();
        ledger::redact(&mut tx, &org, &envelope).await.unwrap();
        tx.commit().await.unwrap();
    }

    let mut connection = store.read().await.unwrap();
    let entries = ledger::list(&mut connection, Some(&org), &envelope)
        .await
        .unwrap();
    verify_chain(&entries).unwrap();
    let withheld: Vec<bool> = entries.iter().map(|entry| entry.withheld).collect();
    assert_eq!(withheld, [true, true, false]);

    let text = serde_json::to_string(&entries).unwrap();
    assert!(
        !text.contains("ann@example.com") && !text.contains("Ann"),
        "{text}"
    );
}

/// Holds for every query plan, with and without table statistics.
async fn a_claim_leases_as_many_jobs_as_it_asks_for(store: Store) {
    let org = OrgId::new();
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    for _ in 0..20 {
        let batch = SendBatch {
            batch: BatchId::new(),
        };
        jobs::insert(&mut tx, &org, &mail(), None, now)
            .await
            .unwrap();
        jobs::insert(&mut tx, &org, &batch, None, now)
            .await
            .unwrap();

        jobs::insert(&mut tx, &org, &archiving(), None, now)
            .await
            .unwrap();
    }

    tx.commit().await.unwrap();
    let lease = Duration::from_secs(30);
    for (queue, wanted, limit) in [
        (JobQueue::Other, ArchiveSubmission::NAME, 5),
        (JobQueue::Mail, MailCompletion::NAME, 3),
        (JobQueue::Bulk, SendBatch::NAME, 4),
        (JobQueue::Other, ArchiveSubmission::NAME, 8),
    ] {
        let claimed = jobs::claim(&store, queue, now, lease, limit).await.unwrap();
        assert_eq!(claimed.len() as i64, limit);
        assert!(claimed.iter().all(|job| job.kind == wanted));
        let mut tx = store.begin().await.unwrap();
        sqlx::query("analyze").execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }
}

async fn a_late_worker_cannot_settle_a_reclaimed_job(store: Store) {
    let (org, job) = (OrgId::new(), archiving());
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    for _ in 0..2 {
        jobs::insert(&mut tx, &org, &job, Some("key"), now)
            .await
            .unwrap();
    }

    tx.commit().await.unwrap();

    let lease = Duration::from_secs(30);
    let early = jobs::claim(
        &store,
        JobQueue::Other,
        now - Duration::from_secs(1),
        lease,
        10,
    )
    .await
    .unwrap();
    assert!(early.is_empty());

    let first = jobs::claim(&store, JobQueue::Other, now, lease, 10)
        .await
        .unwrap();
    assert_eq!(first.len(), 1, "the second insert found the first");
    assert_eq!(first[0].payload, json!(job));
    assert!(
        jobs::claim(&store, JobQueue::Other, now, lease, 10)
            .await
            .unwrap()
            .is_empty(),
        "leased"
    );

    let later = now + Duration::from_secs(31);
    let second = jobs::claim(&store, JobQueue::Other, later, lease, 10)
        .await
        .unwrap();
    assert_eq!(
        second[0].attempts, 0,
        "a worker that died is no failure of the job's"
    );

    jobs::finish(&store, &first[0]).await.unwrap();
    let after = later + Duration::from_secs(31);
    let third = jobs::claim(&store, JobQueue::Other, after, lease, 10)
        .await
        .unwrap();
    assert_eq!(third.len(), 1, "the first worker was too late to finish it");

    let longer = after + Duration::from_secs(60);
    let renewed = async |job| jobs::renew(&store, job, longer).await.unwrap();
    assert_eq!(renewed(&third[0]).await, LeaseRenewal::Renewed);
    assert_eq!(renewed(&second[0]).await, LeaseRenewal::TakenOver);

    let while_renewed = jobs::claim(&store, JobQueue::Other, after + lease, lease, 10)
        .await
        .unwrap();
    assert!(while_renewed.is_empty());

    jobs::settle_failure(&store, &third[0], "broken", Some(after))
        .await
        .unwrap();
    let fourth = jobs::claim(&store, JobQueue::Other, after, lease, 10)
        .await
        .unwrap();
    jobs::finish(&store, &fourth[0]).await.unwrap();
    assert_eq!(renewed(&fourth[0]).await, LeaseRenewal::Over);

    let end = after + Duration::from_secs(3600);
    assert!(
        jobs::claim(&store, JobQueue::Other, end, lease, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

/// Every tenant table has the bucket in its key and an index on the organization.
async fn every_tenant_table_is_keyed_by_bucket_and_indexed_by_organization(store: Store) {
    let mut connection = store.read().await.unwrap();
    let sqlite = store.dialect() == holdfast::store::SqlDialect::Sqlite;
    let definitions = if sqlite {
        "select tbl_name as name, coalesce(sql, '') as text from sqlite_master"
    } else {
        "select tablename::text as name, indexdef::text as text from pg_indexes where schemaname = 'public'"
    };
    let rows = sqlx::query(definitions)
        .fetch_all(&mut *connection)
        .await
        .unwrap();

    let mut by_table: std::collections::BTreeMap<String, String> = Default::default();
    for row in rows {
        let (name, text): (String, String) =
            (row.try_get("name").unwrap(), row.try_get("text").unwrap());
        let all = by_table.entry(name).or_default();
        all.push_str(&text.to_lowercase().replace(" using btree", ""));
        all.push('\n');
    }

    let tenant: Vec<_> = by_table
        .iter()
        .filter(|(name, _)| !is_of_installation(name))
        .collect();
    assert!(tenant.len() >= 15, "{tenant:?}");

    for (name, text) in tenant {
        let keyed = if sqlite {
            "primary key (bucket,"
        } else {
            "_pkey on public"
        };
        assert!(text.contains(keyed), "{name}: {text}");

        let indexed = ["(bucket, org_id", "(org_id"]
            .iter()
            .any(|index| text.contains(index));
        assert!(indexed, "{name} has no index on its organization: {text}");
    }
}

/// A new table with rows of records has to state what a destruction leaves of them, and each statement has to fit its table.
async fn a_destruction_knows_every_table_that_names_an_envelope(store: Store) {
    let mut connection = store.read().await.unwrap();
    let columns = if store.dialect() == holdfast::store::SqlDialect::Sqlite {
        "select m.name as name from sqlite_master m join pragma_table_info(m.name) c
         where m.type = 'table' and c.name = 'envelope_id'"
    } else {
        "select table_name::text as name from information_schema.columns
         where table_schema = 'public' and column_name = 'envelope_id'"
    };
    let rows = sqlx::query(columns)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    drop(connection);
    let named: BTreeSet<String> = rows.iter().map(|row| row.get("name")).collect();
    assert!(named.len() > 40, "{named:?}");

    let known = record_rows::RECORD_TABLES.iter().map(|one| one.table);
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");

    let organization = organization();
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &organization).await.unwrap();
    let envelope = Envelope::new(
        organization.id.clone(),
        holdfast::domain::id::CustomerId::new(),
        "Lease of Jordan Lee".into(),
        EnvelopeKind::Paper,
        "user:ada@oak.example".into(),
        Timestamp::from_millis(0),
    );
    envelopes::insert(&mut tx, &envelope).await.unwrap();
    record_rows::destroy(&mut tx, &envelope).await.unwrap();
    tx.commit().await.unwrap();

    let mut connection = store.read().await.unwrap();
    let left = envelopes::get(&mut connection, &organization.id, &envelope.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((left.name.as_str(), left.created_by.as_str()), ("", ""));
    assert_eq!(left.status, envelope.status);
    assert!(store.empty_write_ahead_log().await.unwrap());
}

async fn new_key(store: &Store) -> ApiKeyRecord {
    let organization = organization();
    let key = ApiKeyRecord {
        id: KeyId::new(),
        org: organization.id.clone(),
        name: None,
        scopes: Scope::ALL.to_vec(),
        rate_limit_rpm: 100,
        owner_email: None,
        active: true,
        last_used_at: None,
        revision: 0,
    };

    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &organization).await.unwrap();
    let hash = ApiKey::generate(&OrgId::new()).hash();
    api_keys::insert(&mut tx, &key, &hash, Clock::default().now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    key
}

async fn a_stored_response_is_settled_only_by_its_claim(store: Store) {
    let key = RequestKey {
        org: OrgId::new(),
        actor: "key:1".into(),
        key: "k".into(),
    };
    let now = Clock::default().now();
    let later = now + Duration::from_secs(60);

    let mut tx = store.begin().await.unwrap();
    let won = idempotency::claim(&mut tx, &key, "print", "first", now, later, None).await;
    assert!(won.unwrap());

    let won = idempotency::claim(&mut tx, &key, "print", "second", now, later, None).await;
    assert!(!won.unwrap(), "the key is taken");

    let kept = idempotency::get(&mut tx, &key).await.unwrap().unwrap();
    assert!(kept.answer.is_none());

    let again = later + Duration::from_secs(60);
    let won = idempotency::claim(&mut tx, &key, "print", "second", now, again, Some(&kept)).await;
    assert!(won.unwrap(), "taken over");

    let late = idempotency::settle(&mut tx, &key, "first", 201, "{}").await;
    assert!(matches!(late, Err(StoreError::Conflict)));

    idempotency::settle(&mut tx, &key, "second", 201, "{}")
        .await
        .unwrap();
    idempotency::release(&mut tx, &key, "second").await.unwrap();
    let kept = idempotency::get(&mut tx, &key).await.unwrap().unwrap();
    assert_eq!(kept.answer, Some((201, "{}".into())), "settled is settled");

    idempotency::forget(&mut tx, again).await.unwrap();
    assert!(idempotency::get(&mut tx, &key).await.unwrap().is_none());

    tx.commit().await.unwrap();
}

async fn a_rate_limit_window_ends_and_restarts(store: Store) {
    let key = new_key(&store).await;
    let start = Timestamp::from_millis(1_000_000);
    let window = Duration::from_secs(60);
    let mut tx = store.begin().await.unwrap();

    let mut seen = Vec::new();
    for seconds in [0, 30, 59, 60, 61] {
        let now = start + Duration::from_secs(seconds);
        let shared = rate_windows::lease(&mut tx, &key, 10, now, now - window)
            .await
            .unwrap();
        let began = shared.started_at.as_seconds() - start.as_seconds();
        seen.push((began, shared.leased));
    }

    assert_eq!(seen, [(0, 10), (0, 20), (0, 30), (60, 10), (60, 20)]);
    tx.commit().await.unwrap();
}

async fn a_cached_key_is_revalidated(store: Store) {
    let key = new_key(&store).await;
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    let customer = customers::upsert_by_email(&mut tx, &key.org, "jo@example.com", "Jo", now)
        .await
        .unwrap()
        .id;

    let creator = "jo@example.com".to_owned();
    let envelope = Envelope::new(
        key.org.clone(),
        customer,
        "Contract".into(),
        EnvelopeKind::Esign,
        creator,
        now,
    );
    envelopes::insert(&mut tx, &envelope).await.unwrap();

    let found = envelopes::get_for_key(&mut tx, &key, &envelope.id).await;
    assert!(matches!(found.unwrap(), KeyedEnvelope::Yes(Some(found)) if found.id == envelope.id));

    let nobodys = envelopes::get_for_key(&mut tx, &key, &EnvelopeId::new()).await;
    assert!(matches!(nobodys.unwrap(), KeyedEnvelope::Yes(None)));

    api_keys::deactivate(&mut tx, &key.id).await.unwrap();
    let changed = envelopes::get_for_key(&mut tx, &key, &envelope.id).await;
    assert!(matches!(changed.unwrap(), KeyedEnvelope::No));

    tx.commit().await.unwrap();
}

async fn envelopes_expire_in_order(store: Store) {
    let org = organization();
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &org).await.unwrap();

    let customer = customers::upsert_by_email(&mut tx, &org.id, "jo@example.com", "Jo", now)
        .await
        .unwrap()
        .id;
    for days in [3_u64, 1, 2, 400] {
        let creator = "jo@example.com".to_owned();
        let (name, kind) = (format!("due after {days}"), EnvelopeKind::Esign);
        let mut envelope =
            Envelope::new(org.id.clone(), customer.clone(), name, kind, creator, now);
        envelope.expires_at = Some(now + Duration::from_secs(days * 86_400));
        envelopes::insert(&mut tx, &envelope).await.unwrap();
    }

    let later = now + Duration::from_secs(10 * 86_400);
    let mut names = Vec::new();
    let mut after = None;
    while let Some(next) = envelopes::expiring(&mut tx, later, after.as_ref(), 1)
        .await
        .unwrap()
        .into_iter()
        .next()
    {
        let envelope = envelopes::get(&mut tx, &next.org, &next.id).await.unwrap();
        names.push(envelope.unwrap().name);
        after = Some(next);
    }

    assert_eq!(names, ["due after 1", "due after 2", "due after 3"]);
    tx.commit().await.unwrap();
}

/// Percentiles are by nearest rank, and of one organization only.
async fn times_to_sign_are_ranked_by_the_database(store: Store) {
    let (org, other) = (OrgId::new(), OrgId::new());
    let begin = Timestamp::parse("2026-11-01T09:00:00.000Z").unwrap();
    let minute = Duration::from_secs(60);
    let mut tx = store.begin().await.unwrap();
    for (owner, minutes) in (1..=10)
        .map(|minutes| (&org, minutes))
        .chain([(&other, 999)])
    {
        let envelope = EnvelopeId::new();
        for (action, at) in [
            ("envelope.created", begin),
            ("envelope.sent", begin),
            // An envelope that was corrected and sent again counts from its first sending.
            ("envelope.sent", begin + minute / 2),
            ("envelope.completed", begin + minute * minutes),
        ] {
            let entry = NewEntry {
                at,
                actor: "test".into(),
                action: action.into(),
                details: json!({}),
            };
            ledger::append(&mut tx, Some(owner), &envelope, entry)
                .await
                .unwrap();
        }
    }
    tx.commit().await.unwrap();

    let mut connection = store.read().await.unwrap();
    let dialect = store.dialect();
    for (from, expected) in [
        (begin, (10, Some(300_000), Some(540_000))),
        (begin + minute * 10, (1, Some(600_000), Some(600_000))),
        (begin + minute * 11, (0, None, None)),
    ] {
        let times = activity::signing_times(&mut connection, dialect, &org, from);
        let times = times.await.unwrap();
        let times = (times.envelopes, times.median, times.ninetieth);
        assert_eq!(times, expected, "{from}");
    }

    let days = activity::by_day(&mut connection, &org, begin)
        .await
        .unwrap();
    let days: Vec<_> = days.into_iter().collect();
    let counts = activity::DayCounts {
        created: 10,
        // Each was sent twice on the day.
        sent: 10,
        completed: 10,
    };
    assert_eq!(days, [("2026-11-01".to_owned(), counts)]);
}

fn question_of(signer: &Signer, now: Timestamp) -> SignerQuestion {
    SignerQuestion {
        id: QuestionId::new(),
        signer: signer.id.clone(),
        position: signer.position,
        name: signer.name.clone(),
        email: signer.email.clone(),
        role: signer.role.clone(),
        text: "Is it new?".into(),
        asked_at: now,
        closing: None,
    }
}

/// The tabs of the console divide the envelopes, and their numbers are those of the searches.
async fn each_envelope_is_in_one_tab(store: Store) {
    let org = organization();
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &org).await.unwrap();
    let customer = customers::upsert_by_email(&mut tx, &org.id, "jo@example.com", "Jo", now)
        .await
        .unwrap()
        .id;

    // Each status, and once more for those that an unreached signer or a missing payment holds up.
    let plain = EnvelopeStatus::ALL.iter().map(|status| (*status, false));
    let held_up = [
        EnvelopeStatus::Sent,
        EnvelopeStatus::Viewed,
        EnvelopeStatus::Completed,
        EnvelopeStatus::Vaulted,
    ];
    for (status, is_held_up) in plain.chain(held_up.map(|status| (status, true))) {
        let mut envelope = Envelope::new(
            org.id.clone(),
            customer.clone(),
            format!("{status} {is_held_up}"),
            EnvelopeKind::Esign,
            "jo@example.com".into(),
            now,
        );
        envelope.status = status;
        envelope.payment = is_held_up.then_some(PaymentStatus::RequiresPayment);
        envelopes::insert(&mut tx, &envelope).await.unwrap();

        let (name, email) = ("Ann".into(), "ann@example.com".into());
        let signer = Signer::new(0, name, email, "Buyer".into());
        signers::insert(&mut tx, &envelope, &signer).await.unwrap();
        let notice = SignerNotice {
            at: now,
            failure: is_held_up.then(|| "550 no such user".into()),
        };
        signers::set_notice(&mut tx, &envelope, &signer, &notice)
            .await
            .unwrap();
    }

    // One that is out for signing, with an open question and one that is closed.
    let mut asked = Envelope::new(
        org.id.clone(),
        customer,
        "asked".into(),
        EnvelopeKind::Esign,
        "jo@example.com".into(),
        now,
    );
    asked.status = EnvelopeStatus::Sent;
    envelopes::insert(&mut tx, &asked).await.unwrap();
    let signer = Signer::new(0, "Ann".into(), "ann@example.com".into(), "Buyer".into());
    signers::insert(&mut tx, &asked, &signer).await.unwrap();
    let (first, second) = (question_of(&signer, now), question_of(&signer, now));
    for question in [&first, &second] {
        questions::insert(&mut tx, &asked, question).await.unwrap();
    }

    let dismissal = QuestionClosing {
        answer: None,
        by: "user:jo@example.com".into(),
        at: now,
    };
    questions::close(&mut tx, &asked, &first.id, &dismissal)
        .await
        .unwrap();
    let again = questions::close(&mut tx, &asked, &first.id, &dismissal).await;
    assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");

    tx.commit().await.unwrap();
    let mut connection = store.read().await.unwrap();
    let kept = questions::list(&mut connection, &org.id, &asked.id)
        .await
        .unwrap();
    let open: Vec<bool> = kept.iter().map(|one| one.closing.is_none()).collect();
    assert_eq!(open, [false, true]);

    let counts = search::tab_counts(&mut connection, store.dialect(), &org.id)
        .await
        .unwrap();
    assert!(!counts.is_capped, "{counts:?}");
    let troubles = search::trouble_counts(&mut connection, store.dialect(), &org.id).await;
    let expected = TroubleCounts {
        unreached: 2,
        unpaid: 1,
        ..TroubleCounts::default()
    };
    assert_eq!(troubles.unwrap(), expected);
    let mut all = Vec::new();
    for (tab, expected) in [
        (
            EnvelopeTab::NeedsYou,
            &[
                "asked",
                "completed false",
                "pending false",
                "uploaded false",
            ][..],
        ),
        (
            EnvelopeTab::Waiting,
            &["preparing false", "sent false", "viewed false"],
        ),
        (
            EnvelopeTab::Stuck,
            &[
                "completed true",
                "declined false",
                "expired false",
                "sent true",
                "viewed true",
            ],
        ),
        (
            EnvelopeTab::Done,
            &[
                "vaulted false",
                "vaulted true",
                "vaulted_out false",
                "voided false",
            ],
        ),
    ] {
        let of_tab = EnvelopeSearch {
            tab: Some(tab),
            ..EnvelopeSearch::default()
        };
        let dialect = store.dialect();
        let found = search::envelopes(&mut connection, dialect, &org.id, &of_tab, 100)
            .await
            .unwrap();
        let mut names: Vec<String> = found.iter().map(|one| one.name.clone()).collect();
        names.sort();
        assert_eq!(names, expected, "{tab:?}");

        let counted = search::count(&mut connection, dialect, &org.id, &of_tab)
            .await
            .unwrap();
        let of_names = i64::try_from(names.len()).unwrap();
        assert_eq!((counts.of(tab), counted), (of_names, of_names), "{tab:?}");
        all.extend(found.into_iter().map(|one| one.id));
    }

    // Backwards, behind the oldest one.
    all.sort();
    let oldest = EnvelopeSearch {
        oldest_first: true,
        after: all.first().cloned(),
        ..EnvelopeSearch::default()
    };
    let dialect = store.dialect();
    let found = search::envelopes(&mut connection, dialect, &org.id, &oldest, 3)
        .await
        .unwrap();
    let found: Vec<EnvelopeId> = found.into_iter().map(|one| one.id).collect();
    assert_eq!(found, all[1..4]);

    let nothing = EnvelopeSearch {
        tab: Some(EnvelopeTab::Done),
        statuses: vec![EnvelopeStatus::Sent],
        ..EnvelopeSearch::default()
    };
    let found = search::envelopes(&mut connection, dialect, &org.id, &nothing, 3)
        .await
        .unwrap();
    assert!(found.is_empty());

    let ids: Vec<&EnvelopeId> = all.iter().collect();
    let glances = glances::of_envelopes(&mut connection, &org.id, &ids)
        .await
        .unwrap();
    assert_eq!(glances.len(), all.len());
    assert!(glances.values().all(|glance| glance.signers.len() == 1));
    let other = organization();
    let foreign = glances::of_envelopes(&mut connection, &other.id, &ids)
        .await
        .unwrap();
    assert!(foreign.is_empty());
}

/// Lists show these numbers; the check corrects them after a node of an earlier version wrote.
async fn the_number_of_envelopes_follows_every_change(store: Store) {
    let org = organization();
    let now = Clock::default().now();
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &org).await.unwrap();
    let customer = customers::upsert_by_email(&mut tx, &org.id, "jo@example.com", "Jo", now)
        .await
        .unwrap()
        .id;

    tx.commit().await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..30 {
        let (store, org, customer) = (store.clone(), org.id.clone(), customer.clone());
        writers.spawn(async move {
            let (name, kind) = (format!("number {number}"), EnvelopeKind::Esign);
            let creator = "jo@example.com".to_owned();
            let envelope = Envelope::new(org, customer, name, kind, creator, now);
            let mut tx = store.begin().await.unwrap();
            envelopes::insert(&mut tx, &envelope).await.unwrap();
            tx.commit().await.unwrap();

            if number % 3 == 0 {
                let mut tx = store.begin().await.unwrap();
                let declined = EnvelopeStatus::Declined;
                envelopes::set_status(&mut tx, &envelope, declined, now)
                    .await
                    .unwrap();

                match number % 2 {
                    0 => tx.commit().await.unwrap(),
                    // Rolled back.
                    _ => drop(tx),
                }
            }
        });
    }

    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }

    let numbers = async || {
        let mut connection = store.read().await.unwrap();
        let mut numbers = Vec::new();
        for status in [
            None,
            Some(EnvelopeStatus::Pending),
            Some(EnvelopeStatus::Declined),
            Some(EnvelopeStatus::Vaulted),
        ] {
            let number = counts::envelopes(&mut connection, &org.id, status);
            numbers.push(number.await.unwrap());
        }

        numbers
    };
    assert_eq!(numbers().await, [30, 25, 5, 0]);

    assert_eq!(counts::check(&store, &org.id).await.unwrap(), []);
    let mut tx = store.begin().await.unwrap();
    for statement in [
        "update envelope set status = 'declined' where name = 'number 1'",
        "delete from envelope_count where status = 'declined'",
    ] {
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
    }

    tx.commit().await.unwrap();
    assert_eq!(counts::check(&store, &org.id).await.unwrap().len(), 2);
    assert_eq!(numbers().await, [30, 24, 6, 0]);
    assert_eq!(counts::check(&store, &org.id).await.unwrap(), []);
}

/// Of many writers at once, some fail, some give up and some are cancelled at any moment. An
/// acknowledged write is stored; an abandoned one is not.
async fn writers_fail_and_give_up_alone(store: Store) {
    let now = Clock::default().now();
    let mut writers = Vec::new();
    for number in 0..200_u64 {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            let org = Organization {
                name: format!("number {number}"),
                ..organization()
            };
            let mut tx = store.begin().await.unwrap();
            organizations::insert(&mut tx, &org).await.unwrap();

            match number % 5 {
                1 => return drop(tx),
                2 => {
                    // The statement fails, and the transaction with it.
                    let twice = organizations::insert(&mut tx, &org).await;
                    assert!(twice.unwrap_err().is_unique_violation());
                    return;
                }
                _ => {}
            }

            customers::upsert_by_email(&mut tx, &org.id, "jo@example.com", "Jo", now)
                .await
                .unwrap();

            tx.commit().await.unwrap();
        }));
    }

    // Every fifth is cancelled soon.
    for (number, writer) in writers
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 5 == 4)
    {
        tokio::time::sleep(Duration::from_micros(number as u64 * 7)).await;
        writer.abort();
    }

    for (number, writer) in writers.into_iter().enumerate() {
        match writer.await {
            Ok(()) => {}
            Err(error) if error.is_cancelled() && number % 5 == 4 => {}
            Err(error) => panic!("{number}: {error}"),
        }
    }

    let mut connection = store.read().await.unwrap();
    let rows = sqlx::query(
        "select name, (select count(*) from customer
             where customer.org_id = organization.org_id) as customers
         from organization",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();

    let mut names = std::collections::BTreeSet::new();
    for row in &rows {
        let customers: i64 = row.try_get("customers").unwrap();
        assert_eq!(customers, 1, "all of a transaction or nothing");

        let name: String = row.try_get("name").unwrap();
        names.insert(
            name.strip_prefix("number ")
                .unwrap()
                .parse::<u64>()
                .unwrap(),
        );
    }

    for number in (0..200).filter(|number| number % 5 != 4) {
        let committed = !matches!(number % 5, 1 | 2);
        assert_eq!(names.contains(&number), committed, "{number}");
    }

    // The database is free for others again.
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &organization())
        .await
        .unwrap();

    tx.commit().await.unwrap();
}

async fn open_envelopes_are_polled_in_turn(store: Store) {
    let org = organization();
    let now = Clock::default().now();
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &org).await.unwrap();
    let customer = customers::upsert_by_email(&mut tx, &org.id, "jo@example.com", "Jo", now)
        .await
        .unwrap()
        .id;

    let mut all = Vec::new();
    for (age, status, submission) in [
        (7, EnvelopeStatus::Sent, Some("1")),
        (9, EnvelopeStatus::Viewed, Some("2")),
        (8, EnvelopeStatus::Sent, Some("3")),
        // Not due yet, without a submission, and closed.
        (1, EnvelopeStatus::Sent, Some("4")),
        (9, EnvelopeStatus::Sent, None),
        (9, EnvelopeStatus::Completed, Some("5")),
    ] {
        let (name, kind) = (format!("{age} minutes"), EnvelopeKind::Esign);
        let (creator, at) = ("jo@example.com".to_owned(), now - minutes(age));
        let mut envelope = Envelope::new(org.id.clone(), customer.clone(), name, kind, creator, at);
        envelope.status = status;
        envelope.sending.submission = submission.map(str::to_owned);
        envelopes::insert(&mut tx, &envelope).await.unwrap();
        all.push(envelope);
    }

    tx.commit().await.unwrap();
    let claimed = async |at: Timestamp, limit: i64| {
        let due = provider_poll::claim(&store, at - minutes(5), at, limit).await;
        let mut due: Vec<EnvelopeId> = due.unwrap().into_iter().map(|due| due.envelope).collect();
        due.sort_by(|left, right| left.as_str().cmp(right.as_str()));
        due
    };

    let sorted = |which: &[usize]| {
        let mut ids: Vec<EnvelopeId> = which.iter().map(|index| all[*index].id.clone()).collect();
        ids.sort_by(|left, right| left.as_str().cmp(right.as_str()));
        ids
    };
    assert_eq!(
        claimed(now, 2).await,
        sorted(&[1, 2]),
        "the longest forgotten"
    );
    assert_eq!(claimed(now, 2).await, sorted(&[0]));
    assert_eq!(claimed(now, 2).await, [], "each was taken once");

    let later = now + minutes(4);
    assert_eq!(claimed(later, 10).await, sorted(&[3]));

    // A poll that a callback triggered counts too.
    let mut tx = store.begin().await.unwrap();
    let later = now + minutes(5);
    let since = provider_poll::looked(&mut tx, &all[0], true, later).await;
    assert_eq!(since.unwrap(), Some(later));

    let since = provider_poll::looked(&mut tx, &all[0], true, later + minutes(1)).await;
    assert_eq!(since.unwrap(), Some(later), "since the first time");

    let since = provider_poll::looked(&mut tx, &all[0], false, later + minutes(1)).await;
    assert_eq!(since.unwrap(), None);

    tx.commit().await.unwrap();
    assert_eq!(claimed(later, 10).await, sorted(&[1, 2]));

    let (one, other) = tokio::join!(
        claimed(later + minutes(60), 2),
        claimed(later + minutes(60), 2)
    );
    assert_eq!([one, other].concat().len(), 4, "two nodes share them");
}

async fn kept_pages_are_those_of_one_component_and_are_forgotten(store: Store) {
    let org = new_key(&store).await.org;
    let then = Clock::default().now();
    let now = then + Duration::from_secs(60);
    let (old, new) = ("a".repeat(64), "b".repeat(64));

    let mut tx = store.begin().await.unwrap();
    for (document, at) in [(&old, then), (&new, now)] {
        page_facts::keep(&mut tx, &org, document, "reader 1", &[1, 2], at)
            .await
            .unwrap();
    }

    // A later component reads the document again.
    page_facts::keep(&mut tx, &org, &new, "reader 2", &[3], now)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let kept = async |document: &str, component: &str| {
        let mut connection = store.read().await.unwrap();
        let kept = page_facts::get::<Vec<u8>>(&mut connection, &org, document, component);
        kept.await.unwrap()
    };
    assert_eq!(kept(&old, "reader 1").await, Some(vec![1, 2]));
    assert_eq!(kept(&new, "reader 1").await, None);

    let mut tx = store.begin().await.unwrap();
    page_facts::forget(&mut tx, now).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(kept(&old, "reader 1").await, None);
    assert_eq!(kept(&new, "reader 2").await, Some(vec![3]));
}

/// With another plan, each page of the records of a tape reads all keys of its organization.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_finds_keys_of_records_by_the_records() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    let store = Store::connect(&url).await.unwrap();
    store.migrate().await.unwrap();

    let plan = "explain query plan select key_name, key_value, envelope_id from contract_fact_key
        where bucket = $1 and org_id = $2 and envelope_id in ($3, $4)";
    let mut connection = store.read().await.unwrap();
    let steps = sqlx::query(plan)
        .bind(1_i64)
        .bind("org_1")
        .bind("env_1")
        .bind("env_2")
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    let step: String = steps[0].try_get("detail").unwrap();
    assert!(step.contains("envelope_id=?"), "{step}");
}
