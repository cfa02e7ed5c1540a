//! Statements of control: the obligor of a record gets reasonable proof of who has control (UCC §9-406(c):
//! proof of the assignment).

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::control::statements;
use crate::control::{
    LockedRecord, PartyNames, control_view, emit_to_all, envelope_of, lock, not_vaulted, statement,
};
use crate::envelopes::facts;
use crate::vault::custody_sheet::RecordWriter;
use crate::vault::{Vault, copies, custody, vault_in};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::control::{Refusal, RefusalReason};
use holdfast_domain::control::ControlStage;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::{ControlStatementId, EnvelopeId};
use holdfast_domain::organization::Organization;
use holdfast_domain::statement::SignedStatement;
use holdfast_evidence::formats::LogEvidence;
use holdfast_evidence::statement::{
    ControlStatement, IssuedStatement, STATEMENT_TYPE, StatedCompliance, StatedParty, StatedRecord,
    StatedSigner, chain, entries_of_chain,
};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::log;
use holdfast_platform::permits::link_codes::{is_link, link_code};
use holdfast_platform::permits::live_data::require_live;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError, events};
use holdfast_store::control_statements::{self as rows, StoredStatement};
use holdfast_store::{control, envelopes, ledger, organizations, signers};

/// Body of `POST /partner/envelopes/{id}/control-statement`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "requested_by": "Jordan Lee" }]))]
pub struct StatementForm {
    /// The person who demands it.
    #[schemars(length(min = 1, max = 200))]
    pub requested_by: Option<String>,
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// A statement of control, with the link for the person who demands it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "statement_id": "cst_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "verification_url": "https://holdfast.example/control/cst_01jdk7m3e8f4x9s2w5v6b0c1dc/Xk2…",
    "sha256": "1f8c…",
    "statement": {
        "statement_type": "holdfast_control_statement", "statement_version": "1.0",
        "statement_id": "cst_01jdk7m3e8f4x9s2w5v6b0c1dc", "issued_at": "2026-11-21T09:45:00.000Z",
        "issuer": "holdfast at https://holdfast.example", "requested_by": "Jordan Lee",
        "record": {
            "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Retail instalment contract 2041",
            "hash_algorithm": "SHA-256", "document_hash": "9f86d081884c7d65…",
            "chattel_paper_jurisdiction": "US-DE",
        },
        "originator": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Maple Motors" },
        "controller": {
            "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Maple Motors",
            "since": "2026-11-21T09:42:00.000Z", "act": "vault.stored", "entry": 9, "signs_with": null,
        },
        "control_chain": [], "signers": [],
        "compliance": { "certificate_type": "ucc_9105_2022_electronic_copy", "ucc_9105_compliance": {}, "rules_component": {} },
        "entries": [], "verification_url": "https://holdfast.example/control/cst_01jdk7m3e8f4x9s2w5v6b0c1dc/Xk2…",
    },
}]))]
pub struct StatementView {
    pub statement_id: ControlStatementId,
    pub envelope_id: EnvelopeId,
    /// Page that shows and checks the statement, without an account. It also has the PDF.
    pub verification_url: String,
    /// SHA-256 of the statement's canonical JSON (RFC 8785), lower-case hex. The ledger has it.
    pub sha256: String,
    pub statement: ControlStatement,
}

/// Issues a statement of control as the record's controller.
pub async fn issue(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: StatementForm,
    answer: &ResponseRecorder<StatementView>,
) -> Result<StatementView, ServiceError> {
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Record"))?;
    let envelope = envelope_of(core, caller, &id).await?;
    require_live(&envelope.org)?;
    check(&form)?;
    // Written before the transaction: the rules make the certificate, and no lock should wait for them.
    let (made, epoch) = statement_of(core, caller, &envelope, &form).await?;
    let sha256 = canonical_sha256(&json!(made));
    let mut tx = core.store.begin().await?;
    let record = lock(&mut tx, caller, id.as_str()).await?;

    // Under the lock: control may have passed while the statement was written.
    permitted(caller, &record)?;
    if record.control.epoch != epoch {
        return Err(ServiceError::Busy);
    }

    let (event, statement_id) = (EventType::ControlStated, &made.statement_id);
    // Id and time of a statement differ in each call. The controller signs only members that stay the same
    // until it calls again.
    let content = json!({
        "requested_by": form.requested_by, "document_hash": made.record.document_hash,
        "entry": made.controller.entry,
    });
    let expected = statement(&record, caller, event, content);
    let signed = statements::require(core, &mut tx, &expected, form.signed.as_ref()).await?;

    let LockedRecord { envelope, control } = &record;
    let stored = StoredStatement {
        id: statement_id.clone(),
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
        party: caller.org.clone(),
        body: json!(made),
        controlled_since: control.controlled_since,
    };
    rows::insert(&mut tx, &stored).await?;

    let mut names = PartyNames::default();
    let mut data = json!(control_view(&mut names, &mut tx, control).await?);
    data["party"] = json!(names.party(&mut tx, &caller.org).await?);
    data["statement_id"] = json!(statement_id);
    data["sha256"] = json!(sha256);
    data["requested_by"] = json!(form.requested_by);
    let mut entry = data.clone();
    if let Some(signed) = signed {
        entry["signed"] = signed;
    }

    let now = core.clock.now();
    events::record(&mut tx, envelope, &caller.actor, event.as_str(), entry, now).await?;
    emit_to_all(&mut tx, envelope, control.parties(), event, &data, now).await?;
    let view = StatementView {
        statement_id: made.statement_id.clone(),
        envelope_id: envelope.id.clone(),
        verification_url: made.verification_url.clone(),
        sha256,
        statement: made,
    };
    answer.commit(tx, &view).await?;

    Ok(view)
}

fn check(form: &StatementForm) -> Result<(), ServiceError> {
    match form.requested_by.as_deref().map(str::trim) {
        Some("") => Err(ServiceError::invalid(
            "too_small",
            &["requested_by"],
            "the name of a person",
            "",
            "Name the person who demands the statement",
        )),
        _ => Ok(()),
    }
}

/// Only the controller of a record in the vault states that it has control.
fn permitted(caller: &Caller, record: &LockedRecord) -> Result<(), ServiceError> {
    let LockedRecord { envelope, control } = record;
    if control.controller != caller.org {
        return Err(ControlProblem::Refused(Refusal {
            reason: RefusalReason::WrongParty,
            message: "Only the controller states that it has control".into(),
            source: "UCC 9-406(c)".into(),
        })
        .into());
    }

    let held = envelope.record.authoritative.live().is_some();
    if held && control.stage != ControlStage::Released {
        Ok(())
    } else {
        Err(not_vaulted())
    }
}

/// Writes the statement. Returns it with the epoch of the record that it is about.
async fn statement_of(
    core: &Core,
    caller: &Caller,
    envelope: &Envelope,
    form: &StatementForm,
) -> Result<(ControlStatement, i64), ServiceError> {
    // A statement from a clock behind the log would look older than it is.
    log::check_clock(core).await?;
    let org = &envelope.org;
    let mut connection = core.store.read().await?;
    let control = control::of_envelope(&mut connection, envelope).await?;
    let record = LockedRecord {
        envelope: envelope.clone(),
        control,
    };
    permitted(caller, &record)?;

    let epoch = record.control.epoch;
    let mut names = PartyNames::default();
    let originator = names.party(&mut connection, org).await?;
    let originator = StatedParty {
        organization_id: originator.organization_id,
        name: originator.name,
    };

    let signers = signers::list(&mut connection, org, &envelope.id).await?;
    let issued_at = core.clock.now();
    let mut facts = facts::compliance_facts(&mut connection, envelope, issued_at).await?;
    let rules = core.components.compliance(Some(org));
    // As at vault-in, so that the same facts lead to the same certificate.
    let decides = rules.identity()?;
    let owner = vault_in::rules_owner(&mut connection, envelope, &decides, issued_at).await?;
    facts
        .attributes
        .extend(owner.map(|owner| (facts::RULES_OWNER.to_owned(), owner)));

    let entries = ledger::list(&mut connection, Some(org), &envelope.id).await?;
    let installation = log::installation(core, &mut connection).await?;
    // Given back before the rules run, which can take seconds.
    drop(connection);
    let issuer = vault_in::issuer(core, &envelope.org);
    let at = issued_at.to_string();
    let asked = rules.certificate_for_request(&facts, &at, &issuer);
    let (certificate, _) = asked.await?;
    let mut certificate: Value = serde_json::from_str(&certificate)
        .map_err(|error| ServiceError::Internal(format!("the certificate: {error}")))?;

    let entries = entries_of_chain(&entries);
    let chain = chain(&originator, &entries);
    let controller = chain
        .last()
        .filter(|last| last.organization_id == caller.org);

    // Control has passed in this moment.
    let controller = controller.cloned().ok_or(ServiceError::Busy)?;
    let id = ControlStatementId::new();
    let statement = ControlStatement {
        statement_type: STATEMENT_TYPE.into(),
        statement_version: "1.0".into(),
        verification_url: url(core, &id)?,
        statement_id: id,
        issued_at,
        issuer,
        installation: Some(installation),
        requested_by: form.requested_by.clone(),
        record: StatedRecord {
            envelope_id: envelope.id.clone(),
            name: envelope.name.clone(),
            hash_algorithm: "SHA-256".into(),
            document_hash: envelope.record.document_hash.clone().unwrap_or_default(),
            chattel_paper_jurisdiction: envelope.jurisdiction().map(str::to_owned),
        },
        originator,
        controller,
        control_chain: chain,
        signers: signers
            .into_iter()
            .map(|signer| StatedSigner {
                signed_at: signer.signed_at(),
                name: signer.name,
                role: signer.role,
            })
            .collect(),
        // Not the people in the certificate: each signer can get a statement.
        compliance: StatedCompliance {
            certificate_type: certificate["certificate_type"].take(),
            ucc_9105_compliance: certificate["ucc_9105_compliance"].take(),
            rules_component: certificate["rules_component"].take(),
        },
        entries,
    };

    Ok((statement, epoch))
}

/// Returns the link of a statement.
fn url(core: &Core, id: &ControlStatementId) -> Result<String, ServiceError> {
    let code = link_code(core, "statement", id.as_str())?;
    Ok(format!("{}/control/{id}/{code}", core.config.public_url()))
}

/// A statement as its page shows it.
pub struct ShownStatement {
    /// The controller that issued it.
    pub organization: Organization,
    pub statement: ControlStatement,
    stored: StoredStatement,
    /// Whether that party still has control of the record, and it is in the vault.
    pub still: bool,
}

/// Returns a statement with the entry that records it, and the proofs.
pub async fn issued(
    core: &Core,
    vault: &Vault,
    shown: &ShownStatement,
) -> Result<IssuedStatement, ServiceError> {
    let ShownStatement {
        stored, statement, ..
    } = shown;
    let own = Caller::system(stored.org.clone());
    let ledger = custody::ledger(core, vault, &own, stored.envelope.as_str()).await?;
    let issued = ledger.entries.into_iter().find(|entry| {
        entry.action == EventType::ControlStated.as_str()
            && entry.details["statement_id"].as_str() == Some(stored.id.as_str())
    });
    let (Some(issued), Some(log)) = (issued, ledger.log) else {
        return Err(ServiceError::Busy);
    };

    // The file has the proofs of those entries only that the statement rests on.
    let mut chosen: Vec<i64> = statement
        .entries
        .iter()
        .map(|entry| entry.sequence)
        .collect();
    chosen.push(issued.sequence);
    let mut inclusion = log.inclusion;
    inclusion.retain(|proof| chosen.contains(&proof.sequence));

    if inclusion.len() < chosen.len() {
        // The newest entry is placed within a second.
        return Err(ServiceError::Busy);
    }

    Ok(IssuedStatement {
        statement: stored.body.clone(),
        issued,
        // How the log grew since the vault-in belongs to the bundle.
        log: LogEvidence {
            inclusion,
            certified: None,
            ..log
        },
    })
}

/// Returns the statement behind a link, or none for an unknown link.
pub async fn find(
    core: &Core,
    id: &str,
    given: &str,
) -> Result<Option<ShownStatement>, ServiceError> {
    let Some(id) = ControlStatementId::parse(id) else {
        return Ok(None);
    };
    // Before the database is read: a guessed link costs a hash and no query.
    if !is_link(core, "statement", id.as_str(), given)? {
        return Ok(None);
    }

    let mut connection = core.store.read().await?;
    let Some(stored) = rows::get(&mut connection, &id).await? else {
        return Ok(None);
    };

    let organization = organizations::get(&mut connection, &stored.party).await?;
    let envelope = envelopes::get(&mut connection, &stored.org, &stored.envelope).await?;
    // A deleted organization or envelope makes the link unknown.
    let (Some(organization), Some(envelope)) = (organization, envelope) else {
        return Ok(None);
    };

    let control = control::of_envelope(&mut connection, &envelope).await?;
    let statement = serde_json::from_value(stored.body.clone())
        .map_err(|error| ServiceError::Internal(format!("the statement {id}: {error}")))?;
    Ok(Some(ShownStatement {
        // Control may have passed on and come back.
        still: control.controller == stored.party
            && control.controlled_since == stored.controlled_since
            && envelope.record.authoritative.live().is_some(),
        organization,
        statement,
        stored,
    }))
}

/// Writes a statement as a PDF for people, in the language of the controller. Equal statements give equal
/// bytes.
pub async fn pdf(core: &Core, shown: &ShownStatement) -> Result<Bytes, ServiceError> {
    let (statement, org) = (&shown.statement, &shown.organization.id);
    let wording = copies::wording(&mut *core.store.read().await?, org).await?;
    let sheet = RecordWriter::new(&wording).statement_sheet(statement);
    // A sheet has no replaceable meaning (docs/decisions/0031), so the built-in writer makes it.
    let documents = core
        .components
        .embedded_documents(org, core.store.priority())
        .for_owner(WorkOwner::new(org, statement.record.envelope_id.as_str()));
    Ok(documents.sheet(sheet).await??.into())
}
