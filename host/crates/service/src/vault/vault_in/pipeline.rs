//! The steps of vault-in.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SOURCE;
use super::participants::{self, CalledComponent, PipelineComponents};
use super::provenance::ProvenanceAttributes;
use super::record::{CustodySource, custody_facts};
use super::seal::MadeCopies;
use super::time::TrustedTime;
use crate::envelopes::consumer::{self, SignersConsent};
use crate::envelopes::contract_dates;
use crate::envelopes::facts;
use crate::facts as facts_of_contracts;
use crate::funding;
use crate::signing;
use crate::vault::Vault;
use crate::vault::custody_sheet::{RecordPeople, RecordWriter};
use crate::vault::{copies, integrity, long_term};
use holdfast_adapters::files::{FilesError, StorageArea, UnstoredFile};
use holdfast_base::faults;
use holdfast_components::WordedMark;
use holdfast_components::rules::{ComplianceJudgement, compliance, documents};
use holdfast_domain::component::{ComponentIdentity, EvidenceParticipant, Slot};
use holdfast_domain::envelope::{
    AuthoritativeCopy, Custodian, CustodianStatus, Envelope, EnvelopeStatus, KeptFile, StoredFile,
    VaultRecord,
};
use holdfast_domain::event::EventType;
use holdfast_domain::fact_map::FactRecord;
use holdfast_domain::funding::FundingStage;
use holdfast_domain::hash::sha256;
use holdfast_domain::job::VaultEnvelope;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::signature::ExistingSignature;
use holdfast_platform::documents::existing::existing_signatures;
use holdfast_platform::events;
use holdfast_platform::lookup;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::envelopes::VaultedFiles;
use holdfast_store::vault::VaultIntent;
use holdfast_store::{self as store, StoreError, envelopes, jobs, ledger, signers, vault};

/// Member of a recorded step that lists the components it called.
const CALLED: &str = "components";

/// A pipeline step, in order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipelineStep {
    Confirm,
    Fetch,
    Time,
    Seal,
    Copy,
    Certify,
    Record,
    Settle,
}

impl PipelineStep {
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

/// Result of `confirm`: the signers match the provider's record.
#[derive(Clone, Serialize, Deserialize)]
struct ConfirmStepResult {
    /// Sequence number of the last ledger entry that the custody record includes.
    ledger_sequence: i64,
}

/// Result of `fetch`: the executed document, and the signatures that it has.
#[derive(Clone, Serialize, Deserialize)]
struct FetchStepResult {
    #[serde(flatten)]
    document: KeptFile,
    #[serde(default)]
    existing_signatures: Vec<ExistingSignature>,
}

/// The evaluated record and its certificate.
struct CertifiedRecord {
    certificate: UnstoredFile,
    text: String,
    facts: compliance::EnvelopeFacts,
    judgement: ComplianceJudgement,
    component: ComponentIdentity,
    /// Components that took part up to the certificate, which lists them.
    participants: Vec<EvidenceParticipant>,
}

/// Results of all steps before `settle`.
struct PreparedVaulting {
    fetched: FetchStepResult,
    copies: MadeCopies,
    /// None if no fact map applies.
    contract_facts: Option<FactRecord>,
    certified: CertifiedRecord,
    custody_record: UnstoredFile,
}

/// One run through an envelope's steps.
pub(super) struct VaultInPipeline<'a> {
    pub(super) core: &'a Core,
    pub(super) vault: &'a Vault,
    pub(super) envelope: &'a Envelope,
    pub(super) intent: &'a VaultIntent,
    pub(super) step: PipelineStep,
    pub(super) rules: PipelineComponents,
    /// Components called by the steps done so far.
    pub(super) called: Vec<CalledComponent>,
}

impl<'a> VaultInPipeline<'a> {
    pub(super) fn new(
        core: &'a Core,
        vault: &'a Vault,
        envelope: &'a Envelope,
        intent: &'a VaultIntent,
    ) -> Self {
        Self {
            core,
            vault,
            envelope,
            intent,
            step: PipelineStep::Confirm,
            rules: PipelineComponents::of(core, envelope),
            called: Vec::new(),
        }
    }

    /// Returns the current step, for reporting a failure.
    pub(super) fn step(&self) -> PipelineStep {
        self.step
    }

    /// Runs all steps that are not recorded yet.
    pub(super) async fn run(&mut self) -> Result<(), ServiceError> {
        let confirmed = self.confirmed().await?;
        let fetched = self.fetched().await?;
        let source = &fetched.document;
        let mut copies = self.make_copies(source).await?;
        self.step = PipelineStep::Certify;
        let contract_facts = self.read_facts(source, &copies).await?;
        let certified = self.certify(source, &copies).await?;
        let called = CalledComponent::new(Slot::Compliance, Ok(certified.component.clone()))?;
        self.called.push(called);

        self.step = PipelineStep::Record;
        let mut further = self.further(source, &copies, &certified);
        let writer = RecordWriter::new(&self.intent.wording);
        let signatures = fetched.existing_signatures.iter();
        further.extend(signatures.map(|signature| writer.existing_signature(signature)));
        let told = self.told_ledger(&confirmed).await?;

        // The custody record is written while the other files are stored.
        let others = [
            (PipelineStep::Seal, &copies.authoritative),
            (PipelineStep::Copy, &copies.copy),
            (PipelineStep::Certify, &certified.certificate),
        ];
        // `join!` lets the stores finish when the record fails, so the next run finds their files
        // complete.
        let (stored, custody_record) = futures::join!(
            store_all(self.core, others),
            self.record(&certified, &copies.copy.file, &told, further),
        );
        self.passed(stored)?;

        let custody_record = custody_record?;
        let stored = store_all(self.core, [(PipelineStep::Record, &custody_record)]).await;
        self.passed(stored)?;
        // Settling waits for the database. The memory of the documents serves other runs meanwhile.
        copies.authoritative.free();
        copies.copy.free();
        self.step = PipelineStep::Settle;
        self.settle(&PreparedVaulting {
            fetched,
            copies,
            contract_facts,
            certified,
            custody_record,
        })
        .await?;

        faults::pass("settled");
        Ok(())
    }

    /// Enters the step that failed, if one did.
    fn passed(
        &mut self,
        stored: Result<(), (PipelineStep, FilesError)>,
    ) -> Result<(), ServiceError> {
        stored.map_err(|(step, error)| {
            self.step = step;
            error.into()
        })
    }

    /// Enters a step. Returns its recorded result if an earlier run completed it.
    pub(super) async fn begin<T: DeserializeOwned>(
        &mut self,
        step: PipelineStep,
    ) -> Result<Option<T>, ServiceError> {
        self.step = step;
        let mut connection = self.core.store.read().await?;
        let given = vault::step(&mut connection, self.envelope, self.intent, step.name()).await?;
        given.map(|given| self.recorded(given)).transpose()
    }

    /// Records the result of the current step with the components it called. If another run
    /// recorded the step first, returns that run's result.
    pub(super) async fn done<T: Serialize + DeserializeOwned>(
        &mut self,
        given: T,
        called: Vec<CalledComponent>,
    ) -> Result<T, ServiceError> {
        let name = self.step.name();
        faults::pass(name);
        let mut given = serde_json::to_value(given).map_err(internal)?;
        if !called.is_empty() {
            given[CALLED] = json!(called);
        }

        let now = self.core.clock.now();
        let mut tx = self.core.store.begin().await?;
        let given =
            vault::record_step(&mut tx, self.envelope, self.intent, name, &given, now).await?;
        tx.commit().await?;
        faults::pass(&format!("{name} recorded"));

        self.recorded(given)
    }

    /// Removes the recorded result of a step, which is out of date.
    pub(super) async fn forget(&self, step: PipelineStep) -> Result<(), ServiceError> {
        let mut tx = self.core.store.begin().await?;
        vault::forget_step(&mut tx, self.envelope, self.intent, step.name()).await?;
        Ok(tx.commit().await?)
    }

    /// Decodes a recorded result and notes the components it names.
    fn recorded<T: DeserializeOwned>(&mut self, given: Value) -> Result<T, ServiceError> {
        if let Some(called) = given.get(CALLED) {
            let called: Vec<CalledComponent> =
                serde_json::from_value(called.clone()).map_err(internal)?;
            self.called.extend(called);
        }
        serde_json::from_value(given).map_err(internal)
    }

    /// Asks the provider again who signed. A signer may have delegated since the last callback,
    /// and earlier releases took a completed form for a signature.
    async fn confirmed(&mut self) -> Result<ConfirmStepResult, ServiceError> {
        // An upload was signed elsewhere: there is no provider to ask.
        if self.envelope.is_upload() || self.envelope.sending.provider_instance.is_none() {
            return Ok(ConfirmStepResult {
                ledger_sequence: self.intent.ledger_sequence,
            });
        }

        match self.begin(PipelineStep::Confirm).await? {
            Some(confirmed) => Ok(confirmed),
            None => {
                let ledger_sequence = signing::confirm_signers(self.core, self.envelope).await?;
                self.done(ConfirmStepResult { ledger_sequence }, Vec::new())
                    .await
            }
        }
    }

    /// Returns the executed document: the upload, or what the provider has.
    async fn fetched(&mut self) -> Result<FetchStepResult, ServiceError> {
        let envelope = self.envelope;
        // An upload was stored and checked when it arrived, so there is nothing to fetch.
        if let Some(upload) = envelope.upload.as_ref().filter(|_| envelope.is_upload()) {
            return Ok(FetchStepResult {
                document: KeptFile(upload.clone()),
                existing_signatures: envelope.existing_signatures.clone(),
            });
        }
        if let Some(fetched) = self.begin(PipelineStep::Fetch).await? {
            return Ok(fetched);
        }

        let (fetched, plugin) = self.fetch().await?;
        self.done(fetched, vec![plugin]).await
    }

    /// Stores the provider's document untouched. Returns it with the plugin that fetched it.
    async fn fetch(&self) -> Result<(FetchStepResult, CalledComponent), ServiceError> {
        let (core, envelope) = (self.core, self.envelope);
        let (pdf, plugin) = copies::signed_document(core, envelope).await?;
        let built_in = &self.rules.embedded_documents;
        // Trust roots and clock change. The result is recorded with the step, because a repeat could
        // judge otherwise.
        let existing_signatures = existing_signatures(core, built_in, pdf.clone()).await?;
        let document = self.unstored_whole(StorageArea::Signed, pdf, "application/pdf");
        // Stored before the step is recorded: a recorded step never names a missing file.
        core.files.store(&document).await?;
        let fetched = FetchStepResult {
            document: KeptFile(document.file),
            existing_signatures,
        };

        Ok((fetched, CalledComponent::new(Slot::Signing, Ok(plugin))?))
    }

    /// Reads the facts of the executed document. A repeat reads the same ones, unless the map changed meanwhile; only
    /// those of the run that settles are stored.
    async fn read_facts(
        &mut self,
        source: &KeptFile,
        copies: &MadeCopies,
    ) -> Result<Option<FactRecord>, ServiceError> {
        let document = || copies.document(source);
        let read = facts_of_contracts::read_executed(self.core, self.envelope, document).await?;
        if let Some(record) = &read {
            let reader = Ok(record.sheet.component.clone());
            self.called
                .push(CalledComponent::new(Slot::Placement, reader)?);
        }

        Ok(read)
    }

    async fn certify(
        &self,
        source: &KeptFile,
        copies: &MadeCopies,
    ) -> Result<CertifiedRecord, ServiceError> {
        let rules = &self.rules.compliance;
        let participants = self.participants(rules.identity()?).await?;
        let (authoritative, copy) = (&copies.authoritative.file, &copies.copy.file);
        let mut facts = self.facts_as_vaulted(authoritative, copy).await?;
        let provenance = self.provenance(source, copies, &participants);
        facts.attributes.extend(provenance.attributes());

        // A document that its author certified against any change stays as it is.
        if copies.seal.is_none() {
            facts
                .attributes
                .push((facts::MARK.into(), facts::UNMARKED.into()));
        }

        let owner = self.rules_owner(rules.identity()?).await?;
        facts
            .attributes
            .extend(owner.map(|owner| (facts::RULES_OWNER.to_owned(), owner)));
        let judgement = rules.judge_for_request(&facts).await?;
        let issued_at = self.intent.frozen_at.to_string();
        let issuer = &self.intent.issuer;
        let asked = rules.certificate_for_request(&facts, &issued_at, issuer);
        let (text, component) = asked.await?;
        let bytes = Bytes::from(text.clone());

        let area = StorageArea::Certificates;
        Ok(CertifiedRecord {
            certificate: self.unstored_whole(area, bytes, "application/json"),
            text,
            facts,
            judgement,
            component,
            participants,
        })
    }

    async fn rules_owner(&self, rules: ComponentIdentity) -> Result<Option<String>, ServiceError> {
        let mut connection = self.core.store.read().await?;
        let at = self.intent.frozen_at;
        Ok(participants::rules_owner(&mut connection, self.envelope, &rules, at).await?)
    }

    /// Returns the components that took part up to the certificate, including its writer.
    async fn participants(
        &self,
        compliance: ComponentIdentity,
    ) -> Result<Vec<EvidenceParticipant>, ServiceError> {
        let mut connection = self.core.store.read().await?;
        let mut called = participants::before(&mut connection, self.envelope).await?;
        called.extend(self.called.iter().cloned());
        called.push(CalledComponent::new(Slot::Compliance, Ok(compliance))?);
        let now = self.core.clock.now();
        Ok(participants::named(&mut connection, self.envelope, &called, now).await?)
    }

    /// Returns the certificate's participants and those called after it.
    async fn all_participants(
        &self,
        certified: &CertifiedRecord,
    ) -> Result<Vec<EvidenceParticipant>, ServiceError> {
        let mut all = certified.participants.clone();
        // The certificate lists its components and is written. Only those called since are named in
        // addition.
        let mut late = self.called.clone();
        late.retain(|called| !all.iter().any(|known| called.is(known)));
        let mut connection = self.core.store.read().await?;
        let now = self.core.clock.now();
        all.extend(participants::named(&mut connection, self.envelope, &late, now).await?);
        Ok(all)
    }

    /// Collects the members of the certificate's `provenance` object.
    fn provenance(
        &self,
        source: &KeptFile,
        copies: &MadeCopies,
        participants: &[EvidenceParticipant],
    ) -> ProvenanceAttributes {
        let mut provenance = ProvenanceAttributes::default();
        provenance.note("components", &json!(participants));
        provenance.note("rewritten", &copies.rewritten_from(source));
        provenance.note("trusted_time", &copies.time.certified());
        provenance
    }

    /// Returns the request that marks a copy, in the words of this record.
    pub(super) fn mark_request(&self, kind: documents::CopyKind) -> WordedMark {
        let (at, wording) = (self.intent.frozen_at, &self.intent.wording);
        copies::mark_request(self.envelope, kind, at, wording)
    }

    /// Returns additional facts for the custody record, by name.
    fn further(
        &self,
        source: &KeptFile,
        copies: &MadeCopies,
        certified: &CertifiedRecord,
    ) -> Vec<(String, String)> {
        let writer = RecordWriter::new(&self.intent.wording);
        let texts = writer.texts;
        // The intent froze the head of the log, so a repeated run names the same one.
        let note = self.intent.checkpoint.as_deref();
        let log = note.and_then(|note| writer.log_head(note));
        let is_upload = self.envelope.is_upload();
        let uploaded = is_upload.then(|| texts.text("custody-uploaded"));
        let paper = is_upload.then(|| writer.paper_original(&self.envelope.paper_original()));

        let is_test = self.envelope.org.is_test();
        let named = [
            (
                "certificate-note",
                is_test.then(|| texts.text("certificate-test")),
            ),
            (
                "custody-second",
                writer.second_evaluation(&certified.judgement.opinions),
            ),
            ("certificate-signed", uploaded),
            ("custody-paper", paper),
            ("certificate-signed-document", Some(source.0.sha256.clone())),
            (
                "custody-copy-form",
                Some(writer.copy_form(copies.copy_form)),
            ),
            (
                "custody-rewritten",
                writer.rewritten(&copies.rewritten_from(source)),
            ),
            ("custody-seal", Some(writer.seal(copies.seal.as_deref()))),
            (
                "custody-trusted-time",
                Some(writer.trusted_time(&copies.time.told())),
            ),
            ("custody-log", log),
        ];

        let told = named.into_iter();
        told.filter_map(|(name, value)| Some((texts.text(name), value?)))
            .collect()
    }

    async fn record(
        &self,
        certified: &CertifiedRecord,
        copy: &StoredFile,
        told: &[LedgerEntry],
        further: Vec<(String, String)>,
    ) -> Result<UnstoredFile, ServiceError> {
        let (org, id) = (&self.envelope.org, &self.envelope.id);
        let signers = signers::list(&mut *self.core.store.read().await?, org, id).await?;
        let facts = custody_facts(CustodySource {
            envelope: self.envelope,
            intent: self.intent,
            facts: &certified.facts,
            signers: &signers,
            evaluation: &certified.judgement.evaluation,
            component: &certified.component,
            copy,
            custodian: &self.custodian(),
            told,
            certificate_json: certified.text.clone(),
            further,
        });

        let consents = self.consents().await?;
        let people = RecordPeople {
            envelope: self.envelope,
            signers: &signers,
            // Only the entries up to the intent, so that a repeated run writes the same record.
            entries: told,
            consents: &consents,
        };
        let sheet = RecordWriter::new(&self.intent.wording).custody_sheet(&facts, people);
        let record = self.rules.documents.custody_record(facts, sheet).await??;

        Ok(self.unstored_whole(StorageArea::Certificates, record.into(), "application/pdf"))
    }

    /// Returns what the signers agreed to.
    async fn consents(&self) -> Result<Vec<SignersConsent>, StoreError> {
        let mut connection = self.core.store.read().await?;
        let (org, id) = (&self.envelope.org, &self.envelope.id);
        let signers = signers::list(&mut connection, org, id).await?;
        consumer::consents(&mut connection, self.envelope, &signers).await
    }

    fn unstored_whole(&self, area: StorageArea, bytes: Bytes, content_type: &str) -> UnstoredFile {
        let sha256 = sha256(&bytes);
        self.unstored(area, (vec![bytes], sha256), content_type)
    }

    /// Takes the pieces of a file of the envelope and the SHA-256 of all.
    pub(super) fn unstored(
        &self,
        area: StorageArea,
        pieces: (Vec<Bytes>, String),
        content_type: &str,
    ) -> UnstoredFile {
        let (org, owner) = (&self.envelope.org, self.envelope.id.as_str());
        UnstoredFile::new(area, org, owner, pieces, content_type)
    }

    fn custodian(&self) -> Custodian {
        Custodian {
            email: self.envelope.created_by.clone(),
            status: CustodianStatus::Accepted,
        }
    }

    /// Returns the record's facts as if it were vaulted already, because the certificate
    /// describes the vaulted state.
    async fn facts_as_vaulted(
        &self,
        authoritative: &StoredFile,
        copy: &StoredFile,
    ) -> Result<compliance::EnvelopeFacts, ServiceError> {
        let vaulted = Envelope {
            status: EnvelopeStatus::Vaulted,
            record: VaultRecord {
                authoritative: AuthoritativeCopy::Live(authoritative.clone()),
                document_hash: Some(authoritative.sha256.clone()),
                copy: Some(copy.clone()),
                // Only its presence counts here: the certificate itself does not exist yet.
                certificate: Some(authoritative.clone()),
                ..VaultRecord::default()
            },
            ..self.envelope.clone()
        };

        let mut connection = self.core.store.read().await?;
        let mut facts =
            facts::compliance_facts(&mut connection, &vaulted, self.intent.frozen_at).await?;

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

    /// Returns the ledger up to the intent, or up to the confirmation after it. Later entries
    /// are excluded, so that every run writes the same record.
    async fn told_ledger(
        &self,
        confirmed: &ConfirmStepResult,
    ) -> Result<Vec<LedgerEntry>, ServiceError> {
        let mut connection = self.core.store.read().await?;
        let (org, id) = (&self.envelope.org, &self.envelope.id);
        let mut entries = ledger::list(&mut connection, Some(org), id).await?;
        entries.retain(|entry| entry.sequence <= confirmed.ledger_sequence);
        Ok(entries)
    }

    /// Vaults the envelope in one transaction: pointers, custodian, status, ledger and events.
    async fn settle(&self, prepared: &PreparedVaulting) -> Result<(), ServiceError> {
        let now = self.core.clock.now();
        let PreparedVaulting {
            fetched,
            copies,
            contract_facts,
            certified,
            custody_record,
        } = prepared;
        // `named` takes a connection of its own, so it runs before the transaction has one.
        let participants = self.all_participants(certified).await?;
        let sheet = contract_facts.as_ref().map(|record| &record.sheet);
        let dates = contract_dates::of_facts(self.core, &self.envelope.org, sheet).await?;

        let mut tx = self.core.store.begin().await?;
        let envelope =
            lookup::lock_envelope(&mut tx, &self.envelope.org, &self.envelope.id).await?;

        // The other run, or a withdrawal, was first: the caller reads the envelope's new state.
        if envelope.status != self.envelope.status {
            return Err(StoreError::Conflict.into());
        }

        // An upload skips the step. The row makes it the source that the integrity check reads.
        if envelope.is_upload() {
            let fetched = serde_json::to_value(fetched).map_err(internal)?;
            vault::record_step(&mut tx, &envelope, self.intent, SOURCE, &fetched, now).await?;
        }

        vault::finish_intent(&mut tx, &envelope, self.intent, SOURCE, now).await?;
        let authoritative = &copies.authoritative.file;
        let files = VaultedFiles {
            authoritative,
            copy: &copies.copy.file,
            certificate: &certified.certificate.file,
            custody_record: &custody_record.file,
            compliance_score: certified.judgement.evaluation.score,
            existing_signatures: &fetched.existing_signatures,
        };
        envelopes::set_vaulted(&mut tx, &envelope, &files, now).await?;

        if copies.seal.is_some() {
            long_term::begin(&mut tx, &envelope, copies.time.untimed(), now).await?;
        }

        signers::assign_custodian(&mut tx, &envelope, &self.custodian(), now).await?;
        let first_look = integrity::next_look(&envelope.id, now);
        store::integrity::plan(&mut tx, &envelope, first_look).await?;

        // The envelope is vaulted with this commit, so the resume job has nothing left to do.
        let key = envelope.id.as_str();
        jobs::remove::<VaultEnvelope>(&mut tx, &envelope.org, key).await?;

        let component = json!(certified.component);
        let facts = json!(certified.facts);
        // The evaluation has the frozen time that the certificate states.
        let at = self.intent.frozen_at;
        let answer = json!(certified.judgement.answer());
        vault::insert_evaluation(&mut tx, &envelope, &facts, &answer, &component, at).await?;
        let (source, hash) = (&fetched.document, &authoritative.sha256);
        let mut stored = json!({
            "document_hash": hash,
            "signed_document_hash": source.0.sha256,
            "signed_document_size": source.0.size,
            "rewritten": copies.rewritten_from(source),
            "copy_hash": copies.copy.file.sha256,
            "copy_kind": copies.copy_form,
            "certificate_hash": certified.certificate.file.sha256,
            "custody_record_hash": custody_record.file.sha256,
            "seal_certificate_hash": copies.seal,
            "trusted_time": copies.time.told(),
            "custodian": self.custodian().email,
            "components": participants,
        });

        if !fetched.existing_signatures.is_empty() {
            stored["existing_signatures"] = json!(fetched.existing_signatures);
        }

        let actor = self.intent.requested_by.as_str();
        let action = EventType::VaultStored.as_str();
        events::record(&mut tx, &envelope, actor, action, stored, now).await?;
        // A verifier repeats the certificate from this entry: it has facts, issuer, time and component.
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
        facts_of_contracts::keep(&mut tx, &envelope, contract_facts.as_ref(), now).await?;
        contract_dates::add(&mut tx, &envelope, &dates, now).await?;

        let path = format!("vault:{}/authoritative", envelope.id);
        let data = json!({ "path": path, "hash": hash });
        events::emit(&mut tx, &envelope, EventType::VaultStored, data, now).await?;

        // A missing time stamp does not stop the vaulting, so the partner learns of it by an event.
        if let TrustedTime::None { reason } = &copies.time {
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
        funding::queue(&mut tx, &envelope, FundingStage::AfterSigning, now).await?;

        faults::pass("settle");
        Ok(tx.commit().await?)
    }
}

/// Stores files side by side.
async fn store_all<const N: usize>(
    core: &Core,
    files: [(PipelineStep, &UnstoredFile); N],
) -> Result<(), (PipelineStep, FilesError)> {
    let stores = files.map(|(step, file)| async move {
        let stored = core.files.store(file).await;
        faults::pass(step.name());
        stored.map_err(|error| (step, error))
    });
    let stored = futures::future::join_all(stores).await;
    stored.into_iter().collect()
}

fn internal(error: impl std::fmt::Display) -> ServiceError {
    ServiceError::Internal(error.to_string())
}
