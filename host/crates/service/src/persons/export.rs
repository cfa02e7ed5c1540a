//! Everything that an organization holds about a person, as one zip file: a sheet of values, the person's files, and copies of
//! what the person signed. Values of other people are left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::customers::{self, OwnCustomer};
use crate::vault::custody::{self, BundleContent};
use holdfast_adapters::files::{FilesError, SpoolWriter, SpooledFile};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    Envelope, EnvelopeKind, Signer, SignerStatus, StoredFile, masked_address, same_address,
};
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::organization::FIRST_PAYER;
use holdfast_domain::test_mode::TestMessage;
use holdfast_platform::access::credentials;
use holdfast_platform::permits::erased_customers;
use holdfast_platform::{Caller, Core, ServiceError, lookup};
use holdfast_store::customers::CustomerRow;
use holdfast_store::room::{RoomSubmission, RoomSubmitter};
use holdfast_store::test_mode::MessageSearch;
use holdfast_store::{
    SqlConnection, StoreError, deliveries, envelopes, erasures as rows, events, kba, ledger,
    payments, questions, room, signers, test_mode,
};

/// Name of the sheet.
const SHEET: &str = "person.json";
/// Saved messages to one address that are listed, newest first.
const MESSAGES: i64 = 10_000;

/// Returns the file name of an export.
pub fn file_name(id: &str) -> String {
    format!("{id}-export.zip")
}

/// Person that the export is about.
struct Person<'a> {
    customer: &'a CustomerRow,
    /// E-mail address; empty if it is unknown, and then no address matches.
    address: &'a str,
}

impl Person<'_> {
    fn has(&self, address: &str) -> bool {
        !self.address.is_empty() && same_address(self.address, address)
    }
}

/// Part of a record in an export.
struct ExportedRecord {
    sheet: Value,
    files: Vec<(String, BundleContent)>,
}

/// Writes everything that the caller's organization holds about a customer. The export is an entry of its audit list and an
/// event before it is handed out.
///
/// # Errors
/// `NotFound` for an unknown customer, `Problem` (gone) for an erased one.
pub async fn package(core: &Core, caller: &Caller, id: &str) -> Result<SpooledFile, ServiceError> {
    let customer = customers::find(core, caller, id).await?;
    if customer.erased_at.is_some() {
        return Err(erased_customers::gone());
    }
    let person = Person {
        customer: &customer,
        address: customer.email.as_deref().unwrap_or_default(),
    };
    let now = core.clock.now();

    let mut connection = core.store.read().await?;
    let ids = rows::envelopes(&mut connection, &customer, &caller.org).await?;
    let messages = messages(&mut connection, caller, &customer).await?;
    let batches = rows::batches(&mut connection, &customer, &caller.org).await?;
    drop(connection);

    let head = json!({
        "exported_at": now,
        "exported_by": caller.actor,
        "customer": OwnCustomer::from(customer.clone()),
        "batches": batches,
        "messages": messages,
    });
    let mut sheet = SheetWriter::begin(core, &head).await?;
    let mut files = Vec::new();
    for id in &ids {
        if let Some(record) = exported(core, caller, &person, id).await? {
            sheet.add(&record.sheet).await?;
            files.extend(record.files);
        }
    }

    let records = sheet.records;
    let sheet = sheet.finish(&files).await?;
    let count = files.len();
    let mut all = vec![(SHEET.to_owned(), BundleContent::Spooled(sheet))];
    all.extend(files);
    let zip = custody::zipped(core, all).await?;

    // Before it is handed out: a crash leaves an entry without an export, never an export without an entry.
    record_export(core, caller, &customer, records, count, now).await?;
    Ok(zip)
}

/// The sheet while it is written. Its records are members of one list, and only one at a time is in memory.
struct SheetWriter {
    spool: SpoolWriter,
    records: usize,
}

impl SheetWriter {
    async fn begin(core: &Core, head: &Value) -> Result<Self, ServiceError> {
        let spool = SpoolWriter::new(&core.config.spool_folder()).await;
        let mut sheet = Self {
            spool: spool.map_err(FilesError::Spool)?,
            records: 0,
        };
        // The object stays open for the records.
        let head = head.to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        sheet.write(head).await?;
        sheet.write(",\n\"records\":[").await?;
        Ok(sheet)
    }

    async fn add(&mut self, record: &Value) -> Result<(), ServiceError> {
        let separator = if self.records == 0 { "\n" } else { ",\n" };
        self.write(separator).await?;
        self.write(&record.to_string()).await?;
        self.records += 1;
        Ok(())
    }

    async fn finish(
        mut self,
        files: &[(String, BundleContent)],
    ) -> Result<SpooledFile, ServiceError> {
        let names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
        self.write(&format!("],\n\"files\":{}}}\n", json!(names)))
            .await?;
        Ok(self.spool.finish().await.map_err(FilesError::Spool)?)
    }

    async fn write(&mut self, text: &str) -> Result<(), ServiceError> {
        let written = self.spool.write(text.as_bytes()).await;
        Ok(written.map_err(FilesError::Spool)?)
    }
}

async fn record_export(
    core: &Core,
    caller: &Caller,
    customer: &CustomerRow,
    records: usize,
    files: usize,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let (org, event) = (&caller.org, EventType::CustomerExported);
    let data = json!({ "customer_id": customer.id, "records": records, "files": files });
    let mut tx = core.store.begin().await?;
    let (actor, action) = (&caller.actor, event.as_str());
    credentials::record_by(&mut tx, Some(org), actor, action, data.clone(), now).await?;

    let event = Event::of_organization(org.clone(), event, now, data);
    events::insert(&mut tx, &event);
    deliveries::fan_out(&mut tx, &event).await?;
    Ok(tx.commit().await?)
}

/// Returns the saved messages of test data to the address and the telephone number of a customer.
async fn messages(
    connection: &mut SqlConnection,
    caller: &Caller,
    customer: &CustomerRow,
) -> Result<Vec<TestMessage>, StoreError> {
    let phone = customer.datum("phone");
    let mut found = Vec::new();
    for to in [customer.email.clone(), phone].into_iter().flatten() {
        let search = MessageSearch {
            to: Some(to),
            ..MessageSearch::default()
        };
        found.extend(test_mode::list(connection, &caller.org, &search, MESSAGES).await?);
    }
    Ok(found)
}

/// Returns what a record holds about a person; none if the record is gone.
async fn exported(
    core: &Core,
    caller: &Caller,
    person: &Person<'_>,
    id: &EnvelopeId,
) -> Result<Option<ExportedRecord>, ServiceError> {
    let org = &caller.org;
    let mut connection = core.store.read().await?;
    let envelope = match envelopes::get(&mut connection, org, id).await {
        Err(StoreError::Destroyed) => None,
        found => found?,
    };
    let Some(envelope) = envelope else {
        return Ok(None);
    };

    let all = signers::list(&mut connection, org, id).await?;
    let (own, others): (Vec<&Signer>, Vec<&Signer>) =
        all.iter().partition(|signer| person.has(&signer.email));
    let recipients = signers::recipients(&mut connection, org, id).await?;
    let copies = recipients.iter().filter(|one| person.has(&one.email));
    let copies: Vec<Value> = copies
        .map(|one| json!({ "kind": one.kind, "name": one.name, "email": one.email }))
        .collect();
    let others: Vec<Value> = others
        .iter()
        .map(|other| json!({ "role": other.role, "email": masked_address(&other.email) }))
        .collect();

    let checks = identity_checks(&mut connection, person, &envelope, &own).await?;
    let questions = asked(&mut connection, person, &envelope).await?;
    let events = named_events(&mut connection, person, &envelope).await?;
    let entries = named_entries(&mut connection, person, &envelope).await?;
    let is_customer = envelope.customer == person.customer.id;
    let mut sheet = json!({
        "envelope_id": envelope.id,
        "name": envelope.name,
        "kind": envelope.kind,
        "status": envelope.status,
        "external_id": envelope.external_id,
        "is_customer": is_customer,
        "created_at": envelope.created_at,
        "signed_at": envelope.signed_at,
        "signers": own.iter().map(|signer| signer_sheet(signer)).collect::<Vec<_>>(),
        "receives_copies_as": copies,
        "other_signers": others,
        "identity_checks": checks,
        "questions": questions,
        "events": events,
        "ledger": entries,
    });
    if is_customer {
        // The sender's own words about this customer's contract.
        sheet["metadata"] = json!(envelope.own_metadata());
    }
    if let Some(payment) = payments::get(&mut connection, org, id).await? {
        let pays = |role: &str| own.iter().any(|signer| signer.role == role);
        let payer = payment.asked.payer.as_str();
        let is_first = payer == FIRST_PAYER && own.iter().any(|signer| signer.position == 0);
        if is_first || pays(payer) || (is_customer && all.is_empty()) {
            sheet["payment"] = json!({
                "amount_cents": payment.asked.amount_cents,
                "currency": payment.asked.currency,
                "status": envelope.payment,
            });
        }
    }

    let mut files = documents(&envelope, is_customer, &own);
    if let Some(number) = lookup::room_submission(&envelope) {
        let submission = room::submission(&mut connection, org, number).await?;
        let submitters = room::submitters(&mut connection, org, number).await?;
        let forms = submitters.iter().filter(|one| person.has(&one.email));
        let forms: Vec<&RoomSubmitter> = forms.collect();
        files.extend(attachments(&envelope, &forms));
        let forms = forms
            .iter()
            .map(|form| form_sheet(submission.as_ref(), form));
        sheet["forms"] = forms.collect();
    }

    Ok(Some(ExportedRecord { sheet, files }))
}

fn signer_sheet(signer: &Signer) -> Value {
    json!({
        "signer_id": signer.id,
        "name": signer.name,
        "email": signer.email,
        "phone": signer.phone,
        "role": signer.role,
        "kind": signer.kind,
        "access": signer.access,
        "notify_by": signer.notify_by,
        "locale": signer.locale,
        "consumer": signer.consumer,
        "status": signer.status,
        "completed_at": signer.completed_at,
        "decline_reason": signer.decline_reason,
        "newest_message": signer.notice.as_ref().map(|notice| {
            json!({ "at": notice.at, "failure": notice.failure })
        }),
    })
}

/// Returns the answers, consent and device of a person in the signing form.
fn form_sheet(submission: Option<&RoomSubmission>, form: &RoomSubmitter) -> Value {
    let consent = form.consent.as_ref().map(|consent| {
        json!({
            "at": form.consented_at,
            "version": consent.version,
            "locale": consent.locale,
            "text_sha256": consent.sha256,
            "shown_at": consent.shown_at,
            "demonstrated": consent.demonstrated,
        })
    });
    let attached: Map<String, Value> = form
        .attachments
        .iter()
        .map(|(field, file)| {
            let about = json!({ "name": file.name, "sha256": file.sha256, "size": file.size });
            (field.clone(), about)
        })
        .collect();

    json!({
        "document": submission.map(|submission| &submission.name),
        "role": form.role,
        "answers": form.values,
        "prefilled": form.prefilled,
        "attachments": attached,
        "witness": form.witness,
        "consent": consent,
        "ip_address": form.ip,
        "device": form.user_agent,
        "opened_at": form.opened_at,
        "started_at": form.started_at,
        "completed_at": form.completed_at,
        "declined_at": form.declined_at,
    })
}

/// Returns the outcomes of a person's identity checks, with the networks and browsers they were made from.
async fn identity_checks(
    connection: &mut SqlConnection,
    person: &Person<'_>,
    envelope: &Envelope,
    own: &[&Signer],
) -> Result<Value, StoreError> {
    let sessions = kba::list(connection, &envelope.org, &envelope.id).await?;
    let sessions = sessions.iter().filter(|session| person.has(&session.email));
    let sessions: Vec<Value> = sessions
        .map(|session| {
            json!({
                "kba_id": session.id,
                "status": session.status,
                "started_at": session.started_at,
                "ended_at": session.ended_at,
                "ip_address": session.ip,
            })
        })
        .collect();

    let mut browsers = Vec::new();
    for signer in own {
        for browser in kba::browsers(connection, envelope, signer).await? {
            browsers.push(json!({ "ip_address": browser.ip, "added_at": browser.rebound_at }));
        }
    }
    Ok(json!({ "sessions": sessions, "browsers": browsers }))
}

async fn asked(
    connection: &mut SqlConnection,
    person: &Person<'_>,
    envelope: &Envelope,
) -> Result<Vec<Value>, StoreError> {
    let all = questions::list(connection, &envelope.org, &envelope.id).await?;
    let own = all.iter().filter(|question| person.has(&question.email));
    let own = own.map(|question| {
        json!({
            "question": question.text,
            "asked_at": question.asked_at,
            "answer": question.answer(),
        })
    });
    Ok(own.collect())
}

/// Returns the events that name a person, with the person's part of their data.
async fn named_events(
    connection: &mut SqlConnection,
    person: &Person<'_>,
    envelope: &Envelope,
) -> Result<Vec<Value>, StoreError> {
    let bodies = events::bodies(connection, &envelope.org, &envelope.id).await?;
    let named = bodies.iter().filter_map(|body| {
        let event: Value = serde_json::from_str(body).ok()?;
        let data = own_part(event.get("data")?, person, false)?;
        Some(json!({
            "event_type": event["event_type"],
            "event_id": event["event_id"],
            "timestamp": event["timestamp"],
            "data": data,
        }))
    });
    Ok(named.collect())
}

/// Returns the entries of the ledger that name a person, with the person's part of their details.
async fn named_entries(
    connection: &mut SqlConnection,
    person: &Person<'_>,
    envelope: &Envelope,
) -> Result<Vec<Value>, StoreError> {
    let entries = ledger::list(connection, Some(&envelope.org), &envelope.id).await?;
    let named = entries
        .iter()
        .filter_map(|entry| named_entry(entry, person));
    Ok(named.collect())
}

fn named_entry(entry: &LedgerEntry, person: &Person<'_>) -> Option<Value> {
    let actor = entry.actor.strip_prefix("signer:");
    let is_actor = actor.is_some_and(|actor| person.has(actor));
    let details = own_part(&entry.details, person, is_actor);
    if !is_actor && details.is_none() {
        return None;
    }

    Some(json!({
        "sequence": entry.sequence,
        "at": entry.at,
        "actor": is_actor.then_some(&entry.actor),
        "action": entry.action,
        "details": details,
        "hash": entry.hash,
    }))
}

/// Members with the address of the person that an object is about.
const NAMING: [&str; 4] = ["email", "signer_email", "signer", "to"];

/// Returns the part of a value that is about a person: the address, and plain members of objects that name the person alone.
/// Addresses of others are left out, and objects about them, wherever they stand.
fn own_part(value: &Value, person: &Person<'_>, is_own_act: bool) -> Option<Value> {
    match value {
        Value::String(text) if person.has(text) => Some(value.clone()),
        Value::Array(items) => {
            let own = items
                .iter()
                .filter_map(|item| own_part(item, person, false));
            let own: Vec<Value> = own.collect();
            (!own.is_empty()).then_some(Value::Array(own))
        }

        Value::Object(members) => {
            let named = NAMING.iter().filter_map(|name| members.get(*name));
            let (own, others): (Vec<&Value>, Vec<&Value>) =
                named.partition(|value| names(value, person));
            let is_own = others.is_empty() && (is_own_act || !own.is_empty());

            let own: Map<String, Value> = members
                .iter()
                // With its salt, the commitment to a destroyed entry could be opened by trying.
                .filter(|(name, _)| *name != "salt")
                .filter_map(|(name, value)| {
                    let kept = if is_own && is_plain(value) {
                        Some(value.clone())
                    } else {
                        own_part(value, person, false)
                    };
                    Some((name.clone(), kept?))
                })
                .collect();
            (!own.is_empty()).then_some(Value::Object(own))
        }
        _ => None,
    }
}

/// Whether a value has no parts, and no address.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('@'),
        Value::Number(_) | Value::Bool(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether a value is the address of a person, or an object with it.
fn names(value: &Value, person: &Person<'_>) -> bool {
    let address = value.as_str().or_else(|| value.get("email")?.as_str());
    address.is_some_and(|address| person.has(address))
}

/// Returns the person's files, and the copy of a contract that the person signed. The authoritative copy stays in the vault.
fn documents(
    envelope: &Envelope,
    is_customer: bool,
    own: &[&Signer],
) -> Vec<(String, BundleContent)> {
    let has_signed = own
        .iter()
        .any(|signer| signer.status == SignerStatus::Completed);
    let (folder, file) = if has_signed {
        ("documents", envelope.record.copy.as_ref())
    } else if is_customer && envelope.kind == EnvelopeKind::Paper {
        let copy = envelope.record.copy.as_ref();
        ("files", copy.or(envelope.upload.as_ref()))
    } else {
        return Vec::new();
    };

    let named = file.map(|file| {
        let name = format!("{folder}/{}.{}", envelope.id, ending(&file.content_type));
        (name, BundleContent::Stored(file.clone()))
    });
    named.into_iter().collect()
}

/// Returns the files that a person attached, by their hashes: their names are words of others.
fn attachments(envelope: &Envelope, forms: &[&RoomSubmitter]) -> Vec<(String, BundleContent)> {
    let attached = forms.iter().flat_map(|form| form.attachments.values());
    // One file can answer two fields, or stand in two forms of the person.
    let named: BTreeMap<String, StoredFile> = attached
        .map(|attachment| {
            let file = attachment.file();
            let ending = ending(&file.content_type);
            let name = format!("attachments/{}/{}.{ending}", envelope.id, file.sha256);
            (name, file)
        })
        .collect();
    let named = named.into_iter();
    named
        .map(|(name, file)| (name, BundleContent::Stored(file)))
        .collect()
}

fn ending(content_type: &str) -> &'static str {
    match content_type {
        "application/pdf" => "pdf",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::id::CustomerId;

    fn part(value: Value, is_own_act: bool) -> Option<Value> {
        let now = Timestamp::from_millis(0);
        let customer = CustomerRow {
            id: CustomerId::new(),
            email: Some("jordan@example.com".into()),
            name: "Jordan Lee".into(),
            details: Map::new(),
            created_at: now,
            updated_at: now,
            erased_at: None,
        };
        let person = Person {
            customer: &customer,
            address: "jordan@example.com",
        };
        own_part(&value, &person, is_own_act)
    }

    #[test]
    fn objects_about_others_are_left_out() {
        let jordan =
            json!({ "name": "Jordan Lee", "email": "Jordan@example.com", "role": "Buyer" });
        let casey = json!({ "name": "Casey Kim", "email": "casey@example.com", "role": "Seller" });
        let both = json!({ "signers": [jordan, casey], "reason": "Typed by the sender" });
        assert_eq!(part(both, false), Some(json!({ "signers": [jordan] })));

        // The person took the place of another one.
        let changed = json!({ "signer": jordan, "previous": casey, "at": "2026-11-21" });
        let own = json!({ "signer": jordan, "at": "2026-11-21" });
        assert_eq!(part(changed, false), Some(own));
        assert_eq!(
            part(json!({ "signer": casey, "reason": "No" }), false),
            None
        );
    }

    #[test]
    fn addresses_of_others_and_salts_are_left_out() {
        let entry = json!({
            "signer": { "email": "jordan@example.com", "role": "Buyer", "invited_by": "user:ada@oak.example" },
            "by": "user:ada@oak.example", "salt": "00ff", "at": "2026-11-21",
        });
        let own = json!({
            "signer": { "email": "jordan@example.com", "role": "Buyer" }, "at": "2026-11-21",
        });
        assert_eq!(part(entry, true), Some(own));

        let both =
            json!({ "email": "jordan@example.com", "to": "casey@example.com", "ip": "192.0.2.7" });
        let own = json!({ "email": "jordan@example.com" });
        assert_eq!(part(both, true), Some(own));
    }

    #[test]
    fn values_of_a_form_belong_to_the_signer_that_they_name() {
        let fields = json!({ "fields": [
            { "name": "City", "value": "Salem", "signer_email": "jordan@example.com" },
            { "name": "Price", "value": 9, "signer_email": "casey@example.com" },
        ] });
        let own = json!({ "fields": [
            { "name": "City", "value": "Salem", "signer_email": "jordan@example.com" },
        ] });
        assert_eq!(part(fields, false), Some(own));
    }

    #[test]
    fn details_of_an_own_act_are_the_persons_unless_they_name_another() {
        let act = json!({ "ip": "192.0.2.7", "pages": [1, 2] });
        assert_eq!(part(act.clone(), true), Some(json!({ "ip": "192.0.2.7" })));
        assert_eq!(part(act, false), None);

        let named = json!({ "signer": { "email": "casey@example.com" }, "ip": "192.0.2.9" });
        assert_eq!(part(named, true), None);
    }
}
