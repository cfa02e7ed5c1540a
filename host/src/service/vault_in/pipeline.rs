//! The steps of vault-in.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::SOURCE;
use super::record::{CustodySource, custody_facts};
use crate::app::App;
use crate::components::Identity;
use crate::components::rules::{Judgement, compliance, documents};
use crate::domain::envelope::{
    Custodian, CustodianStatus, Envelope, EnvelopeStatus, FileType, StoredFile,
};
use crate::domain::event::EventType;
use crate::domain::ledger::LedgerEntry;
use crate::faults;
use crate::files::Area;
use crate::sealing::{SIGNATURE_BYTES, Stamp, Unstamped};
use crate::service::uploads::picture;
use crate::service::{ServiceError, copies, events, facts, integrity, signing};
use crate::store::envelopes::VaultedFiles;
use crate::store::row::Kept;
use crate::store::vault::Intent;
use crate::store::{self, StoreError, envelopes, jobs, ledger, signers, vault};
use crate::worker;

/// A step, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Confirm,
    Fetch,
    Time,
    Seal,
    Copy,
    Certify,
    Record,
    Settle,
}

impl Step {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Fetch => "fetch",
            Self::Time => "time",
            Self::Seal => "seal",
            Self::Copy => "copy",
            Self::Certify => "certify",
            Self::Record => "record",
            Self::Settle => "settle",
        }
    }
}

/// What a seal says of the time at which it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum TrustedTime {
    /// No time stamping authority is configured.
    NotAsked,
    /// The authority's token (RFC 3161), in base64.
    Stamped {
        token: String,
        at: String,
        authority: String,
    },
    /// There is an authority, and it gave no usable token.
    None { reason: String },
}

/// The signers were compared with those at the provider.
#[derive(Clone, Serialize, Deserialize)]
struct Confirmed {
    /// The record tells of the ledger up to this entry.
    ledger_sequence: i64,
}

/// The authoritative copy.
#[derive(Clone, Serialize, Deserialize)]
struct Sealed {
    file: Kept,
    /// SHA-256 of the certificate it is sealed with; none for a document that
    /// is certified against any change and therefore kept as it is.
    seal: Option<String>,
    time: TrustedTime,
}

/// The evaluated record.
#[derive(Clone, Serialize, Deserialize)]
struct Certified {
    certificate: Kept,
    facts: compliance::EnvelopeFacts,
    #[serde(flatten)]
    judgement: Judgement,
    component: Identity,
}

/// Everything that is stored before the envelope is vaulted.
struct Prepared {
    source: Kept,
    sealed: Sealed,
    copy: Kept,
    certified: Certified,
    custody_record: Kept,
}

/// One run over an envelope's steps.
pub(super) struct Pipeline<'a> {
    app: &'a App,
    envelope: &'a Envelope,
    intent: &'a Intent,
    step: Step,
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(app: &'a App, envelope: &'a Envelope, intent: &'a Intent) -> Self {
        Self {
            app,
            envelope,
            intent,
            step: Step::Confirm,
        }
    }

    /// The step at which it is.
    pub(super) fn step(&self) -> Step {
        self.step
    }

    /// Does what is not done yet.
    pub(super) async fn run(&mut self) -> Result<(), ServiceError> {
        let confirmed = self.confirmed().await?;
        let source = match self.begin(Step::Fetch).await? {
            Some(source) => source,
            None => self.done(self.fetch().await?).await?,
        };
        let sealed = self.sealed(&source).await?;
        let copy = match self.begin(Step::Copy).await? {
            Some(copy) => copy,
            None => self.done(self.copy(&source).await?).await?,
        };
        let certified = match self.begin(Step::Certify).await? {
            Some(certified) => certified,
            None => self.done(self.certify(&sealed, &copy).await?).await?,
        };
        let custody_record = match self.begin(Step::Record).await? {
            Some(record) => record,
            None => {
                let further = self.further(&source, &sealed, &certified);
                let told = self.told_ledger(&confirmed).await?;
                let record = self.record(&certified, &copy, &told, further).await?;
                self.done(record).await?
            }
        };
        self.step = Step::Settle;
        self.settle(&Prepared {
            source,
            sealed,
            copy,
            certified,
            custody_record,
        })
        .await?;
        faults::pass("settled");
        Ok(())
    }

    /// Goes on to a step: what it gave, when it is done already.
    async fn begin<T: DeserializeOwned>(&mut self, step: Step) -> Result<Option<T>, ServiceError> {
        self.step = step;
        let mut connection = self.app.store.read().await?;
        let given = vault::step(&mut connection, self.envelope, self.intent, step.name()).await?;
        given.map(recorded).transpose()
    }

    /// Records what the present step gave. Another pipeline may have been first:
    /// what it recorded counts.
    async fn done<T: Serialize + DeserializeOwned>(&self, given: T) -> Result<T, ServiceError> {
        let name = self.step.name();
        faults::pass(name);
        let given = serde_json::to_value(given).map_err(internal)?;
        let now = self.app.clock.now();
        let mut tx = self.app.store.begin().await?;
        let given =
            vault::record_step(&mut tx, self.envelope, self.intent, name, &given, now).await?;
        tx.commit().await?;
        faults::pass(&format!("{name} recorded"));
        recorded(given)
    }

    /// Asks the provider again who signed: a signature may have been passed on since its last
    /// callback, and earlier releases took a completed form for a signature.
    async fn confirmed(&mut self) -> Result<Confirmed, ServiceError> {
        if self.envelope.is_upload || self.envelope.provider_instance.is_none() {
            return Ok(Confirmed {
                ledger_sequence: self.intent.ledger_sequence,
            });
        }
        match self.begin(Step::Confirm).await? {
            Some(confirmed) => Ok(confirmed),
            None => {
                let ledger_sequence = signing::confirm_signers(self.app, self.envelope).await?;
                self.done(Confirmed { ledger_sequence }).await
            }
        }
    }

    /// The executed document, stored untouched.
    async fn fetch(&self) -> Result<Kept, ServiceError> {
        let (app, envelope) = (self.app, self.envelope);
        if let Some(upload) = envelope.upload.as_ref().filter(|_| envelope.is_upload) {
            return Ok(Kept(upload.clone()));
        }
        let pdf = copies::signed_document(app, envelope).await?;
        self.store(Area::Signed, pdf, "application/pdf").await
    }

    /// The executed document as a PDF.
    async fn executed(&self, source: &Kept) -> Result<Bytes, ServiceError> {
        let bytes = self.app.files.get(&source.0).await?;
        let kind = FileType::parse(&source.0.content_type).unwrap_or(FileType::Pdf);
        match picture(kind, &bytes) {
            None => Ok(bytes),
            Some(picture) => {
                let pdf = self
                    .app
                    .components
                    .documents(Some(&self.envelope.org))
                    .picture_to_pdf(picture)
                    .await??;
                Ok(pdf.into())
            }
        }
    }

    /// Two steps: what the time stamping authority says is recorded before the
    /// copy that holds it is stored, so that a repeat makes the same copy.
    async fn sealed(&mut self, source: &Kept) -> Result<Sealed, ServiceError> {
        if let Some(sealed) = self.begin(Step::Seal).await? {
            return Ok(sealed);
        }
        let time: Option<TrustedTime> = self.begin(Step::Time).await?;
        let (pdf, seal, time) = match self.sign(source).await? {
            Err(unsealed) => (unsealed, None, TrustedTime::NotAsked),
            Ok(unstamped) => {
                let time = match time.filter(|time| time.is_about(&unstamped)) {
                    Some(time) => time,
                    None => {
                        let said = self.trusted_time(&unstamped).await;
                        let kept = self.done(said.clone()).await?;
                        if kept.is_about(&unstamped) {
                            kept
                        } else {
                            said
                        }
                    }
                };
                let sealed = unstamped.finish(time.token().as_deref())?;
                let seal = self.app.sealing.fingerprint()?;
                (sealed.into(), Some(seal), time)
            }
        };
        self.step = Step::Seal;
        let file = self.store(Area::Vault, pdf, "application/pdf").await?;
        self.done(Sealed { file, seal, time }).await
    }

    /// Marks the executed document and signs it. One that is certified against any
    /// change is kept as it is.
    async fn sign(&self, source: &Kept) -> Result<Result<Unstamped, Bytes>, ServiceError> {
        let executed = self.executed(source).await?;
        let kind = documents::CopyKind::Authoritative;
        let at = self.intent.frozen_at;
        let marked = copies::mark(self.app, self.envelope, executed, kind, at).await?;
        let Some(marked) = marked else {
            return Ok(Err(self.executed(source).await?));
        };
        let request = documents::SealRequest {
            name: self.intent.issuer.clone(),
            reason: format!("Authoritative copy of {}", self.envelope.id),
            signed_at: self.intent.frozen_at.to_string(),
            signature_bytes: SIGNATURE_BYTES,
        };
        let (components, org) = (&self.app.components, Some(&self.envelope.org));
        let rules = components.documents(org);
        let space = rules.prepare_seal(marked.clone(), request).await??;
        let prepared = copies::joined(marked, &space.appended);
        components
            .placement(org)
            .inspect(prepared.clone())
            .await??;
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let place = place(space.place_start)..place(space.place_end);
        let now = self.app.clock.now();
        Ok(Ok(self.app.sealing.sign(prepared.into(), place, now)?))
    }

    /// A token of the authority for the signature. None is no reason to stop,
    /// and is told everywhere.
    async fn trusted_time(&self, unstamped: &Unstamped) -> TrustedTime {
        let Some(authority) = &self.app.timestamps else {
            return TrustedTime::NotAsked;
        };
        let reason = match authority.stamp(&unstamped.signature_digest()).await {
            Ok(stamp) if unstamped.has_room_for(stamp.size()) => {
                return TrustedTime::Stamped {
                    at: stamp.at.to_string(),
                    token: stamp.base64(),
                    authority: stamp.authority,
                };
            }
            Ok(_) => "the token is larger than its place".to_owned(),
            Err(error) => error.to_string(),
        };
        self.app.metrics.without_trusted_time.inc();
        tracing::error!(envelope = %self.envelope.id, reason, "no trusted time");
        TrustedTime::None { reason }
    }

    async fn copy(&self, source: &Kept) -> Result<Kept, ServiceError> {
        let executed = self.executed(source).await?;
        let at = self.intent.frozen_at;
        let copy = copies::non_authoritative(self.app, self.envelope, executed, at).await?;
        self.store(Area::Copies, copy, "application/pdf").await
    }

    async fn certify(&self, sealed: &Sealed, copy: &Kept) -> Result<Certified, ServiceError> {
        let facts = self.facts_as_vaulted(&sealed.file.0, &copy.0).await?;
        let rules = self.app.components.compliance(Some(&self.envelope.org));
        let judgement = rules.judge(&facts)?;
        let issued_at = self.intent.frozen_at.to_string();
        let (text, component) = rules.certificate(&facts, &issued_at, &self.intent.issuer)?;
        let certificate = self.store(Area::Certificates, text.into(), "application/json");
        Ok(Certified {
            certificate: certificate.await?,
            facts,
            judgement,
            component,
        })
    }

    /// What the custody record tells beside what every record has.
    fn further(
        &self,
        source: &Kept,
        sealed: &Sealed,
        certified: &Certified,
    ) -> Vec<(String, String)> {
        let seal = match &sealed.seal {
            Some(certificate) => format!("certificate {certificate} (SHA-256)"),
            None => "not sealed: the document is certified against any change".to_owned(),
        };
        let time = match &sealed.time {
            TrustedTime::NotAsked => None,
            TrustedTime::Stamped { at, authority, .. } => Some(format!("{at}, by {authority}")),
            TrustedTime::None { reason } => Some(format!("no trusted time: {reason}")),
        };
        // A note begins with the log's name, its size and its root.
        let note = self.intent.checkpoint.as_deref();
        let log = note.and_then(|note| {
            let mut lines = note.lines();
            let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
            Some(format!("{origin}: {size} entries before, root {root}"))
        });
        let second = certified.judgement.opinions.get(1);
        let second = second.map(|second| {
            let (by, score) = (&second.component, second.score);
            format!("score {score}, by {by} ({})", by.sha256)
        });
        let named = [
            ("Second evaluation", second),
            ("Executed document", Some(source.0.sha256.clone())),
            ("Seal", Some(seal)),
            ("Trusted time", time),
            ("Log of all ledgers", log),
        ];
        let told = named.into_iter();
        told.filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }

    async fn record(
        &self,
        certified: &Certified,
        copy: &Kept,
        told: &[LedgerEntry],
        further: Vec<(String, String)>,
    ) -> Result<Kept, ServiceError> {
        let certificate = self.app.files.get(&certified.certificate.0).await?;
        let facts = custody_facts(CustodySource {
            envelope: self.envelope,
            intent: self.intent,
            facts: &certified.facts,
            evaluation: &certified.judgement.evaluation,
            component: &certified.component,
            copy: &copy.0,
            custodian: &self.custodian(),
            told,
            certificate_json: String::from_utf8_lossy(&certificate).into_owned(),
            further,
        });
        let record = self
            .app
            .components
            .documents(Some(&self.envelope.org))
            .custody_record(facts)
            .await??;
        self.store(Area::Certificates, record.into(), "application/pdf")
            .await
    }

    async fn store(
        &self,
        area: Area,
        bytes: Bytes,
        content_type: &str,
    ) -> Result<Kept, ServiceError> {
        let (org, owner) = (&self.envelope.org, self.envelope.id.as_str());
        let file = self.app.files.put(area, org, owner, bytes, content_type);
        Ok(Kept(file.await?))
    }

    fn custodian(&self) -> Custodian {
        Custodian {
            email: self.envelope.created_by.clone(),
            status: CustodianStatus::Accepted,
        }
    }

    /// The record as the pipeline is about to leave it: the certificate is
    /// evaluated as of the vaulted state.
    async fn facts_as_vaulted(
        &self,
        authoritative: &StoredFile,
        copy: &StoredFile,
    ) -> Result<compliance::EnvelopeFacts, ServiceError> {
        let vaulted = Envelope {
            status: EnvelopeStatus::Vaulted,
            vault: Some(authoritative.clone()),
            document_hash: Some(authoritative.sha256.clone()),
            copy: Some(copy.clone()),
            certificate: Some(authoritative.clone()),
            ..self.envelope.clone()
        };
        let mut connection = self.app.store.read().await?;
        let mut facts = facts::compliance_facts(&mut connection, &vaulted).await?;
        let custodian = self.custodian();
        if !facts
            .custodians
            .iter()
            .any(|known| known.email == custodian.email)
        {
            facts.custodians.push(compliance::Custodian {
                email: custodian.email,
                status: compliance::CustodianStatus::Accepted,
            });
        }
        let checkpoint = self.intent.checkpoint.clone();
        facts
            .attributes
            .extend(checkpoint.map(|checkpoint| ("ledger_checkpoint".to_owned(), checkpoint)));
        Ok(facts)
    }

    /// The ledger up to the intent, or what was confirmed after it: later entries
    /// are no part of the record.
    async fn told_ledger(&self, confirmed: &Confirmed) -> Result<Vec<LedgerEntry>, ServiceError> {
        let mut connection = self.app.store.read().await?;
        let (org, id) = (&self.envelope.org, &self.envelope.id);
        let mut entries = ledger::list(&mut connection, Some(org), id).await?;
        entries.retain(|entry| entry.sequence <= confirmed.ledger_sequence);
        Ok(entries)
    }

    /// One transaction: pointers, custodian, status, ledger and events.
    async fn settle(&self, prepared: &Prepared) -> Result<(), ServiceError> {
        let now = self.app.clock.now();
        let mut tx = self.app.store.begin().await?;
        let envelope = envelopes::lock(&mut tx, &self.envelope.org, &self.envelope.id)
            .await?
            .ok_or(ServiceError::NotFound("Envelope"))?;
        if envelope.status != self.envelope.status {
            return Err(StoreError::Conflict.into());
        }
        vault::finish_intent(&mut tx, &envelope, self.intent, SOURCE, now).await?;
        let certified = &prepared.certified;
        let files = VaultedFiles {
            authoritative: &prepared.sealed.file.0,
            copy: &prepared.copy.0,
            certificate: &certified.certificate.0,
            custody_record: &prepared.custody_record.0,
            compliance_score: certified.judgement.evaluation.score,
        };
        envelopes::set_vaulted(&mut tx, &envelope, &files, now).await?;
        signers::assign_custodian(&mut tx, &envelope, &self.custodian(), now).await?;
        let first_look = integrity::next_look(&envelope.id, now);
        store::integrity::plan(&mut tx, &envelope, first_look).await?;
        let job = envelope.id.as_str();
        jobs::remove(&mut tx, &envelope.org, worker::VAULT_JOB, job).await?;

        let component = json!(certified.component);
        let facts = json!(certified.facts);
        let at = self.intent.frozen_at;
        vault::insert_evaluation(&mut tx, &envelope, &facts, &component, at).await?;
        let hash = &prepared.sealed.file.0.sha256;
        let stored = json!({
            "document_hash": hash,
            "signed_document_hash": prepared.source.0.sha256,
            "copy_hash": prepared.copy.0.sha256,
            "certificate_hash": certified.certificate.0.sha256,
            "custody_record_hash": prepared.custody_record.0.sha256,
            "seal_certificate_hash": prepared.sealed.seal,
            "trusted_time": prepared.sealed.time.told(),
            "custodian": self.custodian().email,
        });
        let actor = self.intent.requested_by.as_str();
        let action = EventType::VaultStored.as_str();
        events::record(&mut tx, &envelope, actor, action, stored, now).await?;
        let evaluation = &certified.judgement.evaluation;
        let mut evaluated = json!({
            "score": evaluation.score,
            "missing_requirements": evaluation.missing_requirements,
            "component": component,
            "issued_at": at,
            "issuer": self.intent.issuer,
            "facts": facts,
        });
        if !certified.judgement.opinions.is_empty() {
            evaluated["evaluations"] = json!(certified.judgement.opinions);
        }
        let action = "compliance.evaluated";
        events::record(&mut tx, &envelope, "system", action, evaluated, now).await?;

        let path = format!("vault:{}/authoritative", envelope.id);
        let data = json!({ "path": path, "hash": hash });
        events::emit(&mut tx, &envelope, EventType::VaultStored, data, now).await?;
        if let TrustedTime::None { reason } = &prepared.sealed.time {
            let data = json!({ "reason": reason });
            let event_type = EventType::VaultWithoutTrustedTime;
            events::emit(&mut tx, &envelope, event_type, data, now).await?;
        }
        let verdict = if evaluation.compliant {
            EventType::VaultCompliancePassed
        } else {
            EventType::VaultComplianceFailed
        };
        let data = json!({
            "score": evaluation.score,
            "missing_requirements": evaluation.missing_requirements,
        });
        events::emit(&mut tx, &envelope, verdict, data, now).await?;
        faults::pass("settle");
        Ok(tx.commit().await?)
    }
}

impl TrustedTime {
    /// The token as DER.
    fn token(&self) -> Option<Vec<u8>> {
        use base64::Engine as _;
        match self {
            Self::Stamped { token, .. } => {
                base64::engine::general_purpose::STANDARD.decode(token).ok()
            }
            Self::NotAsked | Self::None { .. } => None,
        }
    }

    /// Whether it was said of this signature: the sealing key may have been
    /// replaced since.
    fn is_about(&self, unstamped: &Unstamped) -> bool {
        match self.token() {
            None => !matches!(self, Self::Stamped { .. }),
            Some(token) => Stamp::open(token, &unstamped.signature_digest()).is_ok(),
        }
    }

    /// As the ledger tells it: nothing when nobody was asked.
    fn told(&self) -> serde_json::Value {
        match self {
            Self::NotAsked => serde_json::Value::Null,
            Self::Stamped { at, authority, .. } => {
                json!({ "status": "stamped", "at": at, "authority": authority })
            }
            Self::None { reason } => json!({ "status": "no trusted time", "reason": reason }),
        }
    }
}

fn recorded<T: DeserializeOwned>(given: serde_json::Value) -> Result<T, ServiceError> {
    serde_json::from_value(given).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> ServiceError {
    ServiceError::Internal(error.to_string())
}
