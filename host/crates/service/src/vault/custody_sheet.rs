//! The words of a record's files, in the language of the organization that keeps it.

use serde_json::Value;

use crate::envelopes::consumer::SignersConsent;
use crate::envelopes::people_notes;
use crate::vault::consent_words::ConsentWriter;
use crate::vault::copies::CopyForm;
use crate::vault::history::in_words;
use holdfast_adapters::texts::Texts;
use holdfast_components::rules::{RulesOpinion, documents, wording as rules};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::destruction::{DestructionCause, DestructionCertificate};
use holdfast_domain::envelope::{Envelope, PaperOriginal, PaperOriginalState, Signer};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::RecordWording;
use holdfast_domain::signature::{
    ExistingSignature, LaterChange, SignatureKind, SignatureStatus, SignatureTimeSource,
    SignatureTrust, SignedPart,
};
use holdfast_evidence::statement::ControlStatement;
use holdfast_platform::log;

/// File name of the certificate in the custody record.
const ATTACHMENT: &str = "ucc-compliance-certificate.json";

/// Beginning of the recorded reason for writing an uploaded picture as a PDF; its content type and a bracket follow.
pub const PICTURE: &str = "the upload is a picture (";

/// Returns the words of marks; none in English, which every mark has.
pub fn mark_words(wording: &RecordWording) -> Option<rules::MarkWords> {
    let texts = Texts::of(wording.language);
    let words = || rules::MarkWords {
        authoritative: texts.text("certificate-authoritative"),
        non_authoritative: texts.text("custody-copy"),
        secured_party: texts.text("mark-secured-party"),
    };
    (wording.language != Locale::En).then(words)
}

/// Returns the key of the words for an act by which control came to a party.
pub fn step_key(act: &str) -> &'static str {
    match act {
        "control.accepted" => "statement-act-accepted",
        "control.transfer.confirmed" => "statement-act-transfer",
        // The chain of control begins with the vaulting.
        _ => "statement-act-stored",
    }
}

/// Returns the key of the words for an act of a certificate of destruction.
fn destruction_act(act: &str) -> &'static str {
    match act {
        "requested" => "destruction-requested",
        "authorized" => "destruction-authorized",
        "consented" => "destruction-consented",
        "erased" => "destruction-erased",
        _ => "destruction-carried-out",
    }
}

/// Returns a signer as a party of the custody record. Only an executed signature has a time.
pub fn signing_party(signer: &Signer) -> documents::Party {
    documents::Party {
        name: signer.name.clone(),
        email: signer.email.clone(),
        role: signer.role.clone(),
        signed_at: signer.signed_at().map(|at| at.to_string()),
    }
}

/// People of a record, and the ledger entries about them.
#[derive(Clone, Copy)]
pub struct RecordPeople<'a> {
    pub envelope: &'a Envelope,
    pub signers: &'a [Signer],
    pub entries: &'a [LedgerEntry],
    pub consents: &'a [SignersConsent],
}

/// Writes the text of a record's files.
#[derive(Clone, Copy)]
pub struct RecordWriter<'a> {
    pub texts: Texts,
    wording: &'a RecordWording,
}

impl<'a> RecordWriter<'a> {
    pub fn new(wording: &'a RecordWording) -> Self {
        Self {
            texts: Texts::of(wording.language),
            wording,
        }
    }

    /// Writes a time of the facts (RFC 3339).
    pub fn moment(self, at: &str) -> String {
        let time = Timestamp::parse(at);
        // A time that cannot be read is printed as it was recorded: the record must not hide it.
        time.map_or_else(
            || at.to_owned(),
            |at| self.texts.exact_moment(&self.wording.dates, at),
        )
    }

    /// Returns who caused an entry of the ledger.
    pub fn actor(self, actor: &str) -> String {
        match actor.split_once(':') {
            Some(("key", id)) => self.texts.with("custody-key", [("id", id)]),
            Some(("payer", email)) => self.texts.with("custody-payer", [("email", email)]),
            Some((_, person)) => person.to_owned(),
            None if actor == "system" => "holdfast".to_owned(),
            None => actor.to_owned(),
        }
    }

    /// Writes an entry of the ledger in words, with what an auditor needs to find it.
    pub fn timeline_entry(self, entry: &LedgerEntry) -> documents::TimelineEntry {
        documents::TimelineEntry {
            at: entry.at.to_string(),
            actor: self.actor(&entry.actor),
            // No entry is left out. An action without words appears under its own name.
            action: in_words(self.texts, entry)
                .or_else(|| retrieval_in_words(self.texts, entry))
                .unwrap_or_else(|| entry.action.clone()),
            detail: format!("{}, SHA-256 {}", entry.action, entry.hash),
        }
    }

    /// Writes the statements about the paper original of an upload.
    pub fn paper_original(self, stated: &PaperOriginal) -> String {
        let key = match stated.state {
            PaperOriginalState::Destroyed => "custody-paper-destroyed",
            PaperOriginalState::Marked => "custody-paper-marked",
            PaperOriginalState::Kept => "custody-paper-kept",
            PaperOriginalState::Unknown => "custody-paper-unknown",
        };
        let by = stated.stated_by.as_deref().unwrap_or_default();

        let statement = self.texts.with(key, [("by", self.actor(by))]);
        match &stated.place {
            Some(place) => format!("{statement} ({place})"),
            None => statement,
        }
    }

    /// Writes how the authoritative copy was sealed, from the certificate of the seal.
    pub fn seal(self, certificate: Option<&str>) -> String {
        match certificate {
            Some(sha256) => (self.texts).with("custody-seal-certificate", [("sha256", sha256)]),
            None => self.texts.text("custody-unsealed"),
        }
    }

    /// Writes how the file of the parties' copy was made.
    pub fn copy_form(self, form: CopyForm) -> String {
        self.texts.text(match form {
            CopyForm::NewFile => "custody-copy-new-file",
            CopyForm::UpdateOfSigned => "custody-copy-update",
            CopyForm::UpdateOfUnwritable => "custody-copy-update-damaged",
        })
    }

    /// Writes the line about a document that was written anew at vault-in, from its entry; none for the executed
    /// bytes.
    pub fn rewritten(self, rewritten: &Value) -> Option<String> {
        let sha256 = rewritten["rewritten_hash"].as_str()?;
        let reason = rewritten["reason"].as_str().unwrap_or_default();
        // The evidence records the reason in English. Its content type goes into the words of this
        // language.
        let picture = reason
            .strip_prefix(PICTURE)
            .and_then(|kind| kind.strip_suffix(')'));
        let key = match picture {
            Some(_) => "custody-picture",
            None => "custody-repaired",
        };

        let values = [("type", picture.unwrap_or_default()), ("sha256", sha256)];
        Some(self.texts.with(key, values))
    }

    /// Writes the source of the record's times, from `trusted_time` of its entry.
    pub fn trusted_time(self, recorded: &Value) -> String {
        let text = |member: &str| recorded[member].as_str().unwrap_or_default();
        match text("status") {
            // The status is missing where no time stamping authority was asked.
            "" => self.texts.text("certificate-times-own"),
            "stamped" => {
                // Entries of earlier releases do not say whether the authority was checked, and count as
                // unchecked.
                let key = if recorded["checked"] == true {
                    "custody-stamped"
                } else {
                    "custody-stamped-unchecked"
                };
                let moment = self.moment(text("at"));
                let values = [
                    ("moment", moment.as_str()),
                    ("authority", text("authority")),
                ];

                self.texts.with(key, values)
            }
            _ => self
                .texts
                .with("custody-no-time", [("reason", text("reason"))]),
        }
    }

    /// Writes the head of the log before the vaulting: the first three lines of its signed note are the log's name,
    /// size and root hash.
    pub fn log_head(self, note: &str) -> Option<String> {
        let mut lines = note.lines();
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let values = [("origin", origin), ("size", size), ("root", root)];
        Some(self.texts.with("custody-log-head", values))
    }

    /// Writes the result of the built-in pack beside that of other rules.
    pub fn second_evaluation(self, opinions: &[RulesOpinion]) -> Option<String> {
        // The first opinion is the one that decided. The second one is that of the built-in pack.
        let second = opinions.get(1)?;
        let by = &second.component;
        let (score, component) = (second.score.to_string(), by.to_string());
        let values = [
            ("score", score.as_str()),
            ("component", &component),
            ("sha256", &by.sha256),
        ];

        Some(self.texts.with("custody-second-score", values))
    }

    /// Describes a signature that the upload had. The reason that one could not be verified is a detail
    /// of its encoding, in English.
    pub fn existing_signature(self, signature: &ExistingSignature) -> (String, String) {
        let texts = self.texts;
        let status = texts.text(match (signature.status, signature.kind) {
            (SignatureStatus::Valid, SignatureKind::Signature) => "custody-signature-valid",
            (SignatureStatus::Valid, SignatureKind::TimeStamp) => "custody-signature-valid-stamp",
            (SignatureStatus::Altered, _) => "custody-signature-altered",
            (SignatureStatus::NotVerifiable, _) => "custody-signature-not-verifiable",
        });
        let status = match (&signature.problem, signature.status) {
            (Some(problem), SignatureStatus::NotVerifiable) => format!("{status} ({problem})"),
            _ => status,
        };

        // A signature over a part leaves the rest open, so later changes add nothing to the warning.
        let part = match (signature.covers, signature.changes_after_signing) {
            (SignedPart::Part, _) => Some("custody-signature-part"),
            (_, LaterChange::Content) => Some("custody-signature-changed-content"),
            (_, LaterChange::Annotations) => Some("custody-signature-changed-annotations"),
            (_, LaterChange::FormFields) => Some("custody-signature-changed-fields"),
            (_, LaterChange::None | LaterChange::Signatures | LaterChange::Unknown) => None,
        };

        let signer = signature.signer.as_ref();
        let time = signature.signed_at.as_ref().map(|at| {
            let key = match signature.time_source {
                // A time without a stated source may be the signer's own claim.
                Some(SignatureTimeSource::TimeStamp) => "custody-signature-stamped",
                Some(SignatureTimeSource::Signer) | None => "custody-signature-clock",
            };
            texts.with(key, [("moment", self.moment(at))])
        });

        let level = signature.level.as_ref();
        let trust = texts.text(match signature.trust {
            SignatureTrust::Trusted => "custody-signature-trusted",
            SignatureTrust::Untrusted => "custody-signature-untrusted",
            SignatureTrust::NotChecked => "custody-signature-trust-not-checked",
        });
        let facts = [
            Some(status),
            part.map(|key| texts.text(key)),
            signer.map(|signer| texts.with("custody-signature-signer", [("signer", signer)])),
            time,
            level.map(|level| texts.with("custody-signature-level", [("level", level)])),
            Some(trust),
        ];

        let field = [("field", signature.field.as_str())];
        let name = texts.with("custody-existing-signature", field);
        // A signature in a field without a name leaves a blank at the end.
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        (name.trim_end().to_owned(), facts.join(" · "))
    }

    /// Writes the whole custody record. Requirements and findings are the words of the component that ran
    /// the checks.
    pub fn custody_sheet(
        self,
        facts: &documents::CustodyFacts,
        people: RecordPeople<'_>,
    ) -> rules::CustodySheet {
        let texts = self.texts;
        let recorded = self.moment(&facts.recorded_at);
        let name = match facts.envelope_name.trim() {
            "" => texts.text("custody-unnamed"),
            name => name.to_owned(),
        };

        let issued = [("issuer", facts.issuer.as_str()), ("moment", &recorded)];
        rules::CustodySheet {
            envelope_id: facts.envelope_id.clone(),
            document_hash: facts.document_hash.clone(),
            recorded_at: facts.recorded_at.clone(),
            language: self.language(),
            issuer: facts.issuer.clone(),
            title: texts.text("custody-title"),
            file_title: texts.with("custody-file-title", [("id", &facts.envelope_id)]),
            file_subject: texts.with("custody-file-subject", [("name", &name)]),
            document_name: name,
            byline: texts.with("custody-issued", issued),
            verdict: self.verdict(&facts.checks),
            sections: [
                Some(self.envelope(facts)),
                Some(self.documents(facts)),
                Some(self.parties(people)),
                // An upload was signed elsewhere, so there are no consents to report.
                (!people.consents.is_empty()).then(|| self.consents(people.consents)),
                Some(self.checks(facts)),
                Some(self.timeline(facts)),
                Some(self.provenance(facts)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            foot: texts.with("custody-recorded", [("moment", &recorded)]),
            certificate_json: facts.certificate_json.clone(),
            certificate_about: texts.text("custody-certificate"),
        }
    }

    /// States of which moment the checks of a released record are: most of them ask about the vault, where it is
    /// no more.
    pub fn date_checks(
        self,
        sheet: &mut rules::CustodySheet,
        checks: &[documents::CheckResult],
        released_at: &str,
    ) {
        let texts = self.texts;
        let moment = self.moment(released_at);
        let undated = texts.text("custody-checks");
        let dated = texts.with("custody-checks-release", [("moment", moment)]);
        let sections = sheet.sections.iter_mut();
        // Sections have no key, so this one is found by its heading.
        for section in sections.filter(|section| section.heading == undated) {
            section.heading.clone_from(&dated);
        }

        let passed = checks.iter().filter(|check| check.satisfied).count();
        let values = [("passed", passed), ("total", checks.len())];
        if let Some((text, _)) = &mut sheet.verdict {
            *text = texts.with("custody-verdict-release", values);
        }
    }

    /// Writes a statement of control for the obligor of a record.
    pub fn statement_sheet(self, statement: &ControlStatement) -> rules::CustodySheet {
        let texts = self.texts;
        let record = &statement.record;
        let issued = self.moment(&statement.issued_at.to_string());
        let values = [("issuer", statement.issuer.as_str()), ("moment", &issued)];
        let controller = &statement.controller;
        let mut control = vec![
            self.fact("inspect-controller", &controller.name),
            self.fact("inspect-since", &self.moment(&controller.since.to_string())),
        ];

        let person = statement.requested_by.iter();
        control.extend(person.map(|name| self.fact("statement-requested-by", name)));
        control.push(self.fact("inspect-originator", &statement.originator.name));
        let more = [
            ("statement-jurisdiction", &record.chattel_paper_jurisdiction),
            ("statement-key", &controller.signs_with),
        ];
        for (label, value) in more {
            control.extend(value.iter().map(|value| self.fact(label, value)));
        }

        let columns = [
            ("inspect-since", 0.33),
            ("custody-party", 0.34),
            ("custody-event", 0.33),
        ];
        let steps = statement.control_chain.iter().map(|step| {
            let since = self.moment(&step.since.to_string());
            let act = texts.text(step_key(&step.act));
            (None, [since, step.name.clone(), act])
        });
        let chain = self.table("statement-chain", columns, steps);

        let columns = [
            ("custody-party", 0.4),
            ("custody-role", 0.2),
            ("certificate-signed", 0.4),
        ];
        let signers = statement.signers.iter().map(|signer| {
            let unsigned = || texts.text("custody-unsigned");
            let signed = signer.signed_at.map(|at| self.moment(&at.to_string()));
            let signed = signed.unwrap_or_else(unsigned);
            (None, [signer.name.clone(), signer.role.clone(), signed])
        });

        let documents = vec![
            self.fact("custody-envelope", record.envelope_id.as_str()),
            self.fact("custody-algorithm", &record.hash_algorithm),
            self.fact("certificate-authoritative", &record.document_hash),
        ];

        let proof = vec![self.fact("statement-check", &statement.verification_url)];
        rules::CustodySheet {
            envelope_id: record.envelope_id.to_string(),
            document_hash: record.document_hash.clone(),
            recorded_at: statement.issued_at.to_string(),
            language: self.language(),
            issuer: statement.issuer.clone(),
            title: texts.text("statement-title"),
            file_title: texts.text("statement-title"),
            file_subject: texts.with("statement-controlled", [("controller", &controller.name)]),
            document_name: record.name.clone(),
            byline: texts.with("custody-issued", values),
            // The statement is about control. It evaluates nothing.
            verdict: None,
            sections: vec![
                self.section("inspect-control", control),
                chain,
                self.table("vault-who-signed", columns, signers),
                self.section("custody-documents", documents),
                rules::CustodySection {
                    note: texts.text("statement-note"),
                    ..self.section("statement-proof", proof)
                },
            ],
            foot: texts.with("custody-recorded", [("moment", &issued)]),
            certificate_json: serde_json::to_string_pretty(statement).unwrap_or_default(),
            certificate_about: texts.text("statement-json"),
        }
    }

    /// Writes the certificate of a destruction. `entry` is the hash of the entry of the ledger that records it, and `attached`
    /// the JSON with the proof.
    pub fn destruction_sheet(
        self,
        certificate: &DestructionCertificate,
        entry: &str,
        attached: String,
    ) -> rules::CustodySheet {
        let texts = self.texts;
        let record = &certificate.record;
        let destroyed = self.moment(&certificate.destroyed_at.to_string());
        let issued = [
            ("issuer", certificate.issuer.as_str()),
            ("moment", &destroyed),
        ];
        let cause = match &certificate.cause {
            DestructionCause::Destruction(id) => id.as_str(),
            DestructionCause::Erasure(id) => id.as_str(),
        };

        let mut about = vec![
            self.fact("custody-envelope", record.envelope_id.as_str()),
            self.fact("destruction-organization", record.organization_id.as_str()),
            self.fact("inspect-controller", record.controller_id.as_str()),
            self.fact("destruction-when", &destroyed),
            self.fact("destruction-cause", cause),
        ];
        let recipient = certificate.made_out_to.iter();
        about.extend(recipient.map(|name| self.fact("destruction-recipient", name)));

        let columns = [
            ("destruction-when", 0.3),
            ("destruction-act", 0.25),
            ("destruction-by", 0.45),
        ];
        let acts = certificate.acts.iter().map(|act| {
            let role = act.role.map(|role| format!(", {role}")).unwrap_or_default();
            let by = format!("{} ({}{role})", act.by, act.organization_id);
            let at = self.moment(&act.at.to_string());
            (None, [at, texts.text(destruction_act(&act.act)), by])
        });
        let acts = self.table("destruction-acts", columns, acts);

        let columns = [("destruction-file", 0.25), ("custody-algorithm", 0.75)];
        let files = certificate.destroyed.iter();
        let files = files.flat_map(|(name, digests)| {
            let row = move |digest: &String| (None, [name.clone(), format!("{digest} (SHA-256)")]);
            digests.iter().map(row)
        });
        let files = self.table("destruction-files", columns, files);

        let proof = vec![
            self.fact("destruction-ledger", &certificate.ledger.hash),
            self.fact("destruction-entry", entry),
        ];
        let title = texts.text("destruction-certificate");
        rules::CustodySheet {
            envelope_id: record.envelope_id.to_string(),
            document_hash: record.document_hash.clone().unwrap_or_default(),
            recorded_at: certificate.destroyed_at.to_string(),
            language: self.language(),
            issuer: certificate.issuer.clone(),
            file_title: title.clone(),
            file_subject: texts.text("destruction-subject"),
            // The name of the document was destroyed with it.
            document_name: record.envelope_id.to_string(),
            byline: texts.with("custody-issued", issued),
            verdict: None,
            sections: vec![
                self.section("destruction-record", about),
                acts,
                files,
                rules::CustodySection {
                    note: texts.text("destruction-note"),
                    ..self.section("statement-proof", proof)
                },
            ],
            foot: texts.with("custody-recorded", [("moment", &destroyed)]),
            certificate_json: attached,
            certificate_about: texts.text("destruction-json"),
            title,
        }
    }

    /// Returns the language of a file, as PDF states it.
    fn language(self) -> String {
        match self.wording.language {
            Locale::En | Locale::Accented => "en-US".into(),
            other => other.as_str().into(),
        }
    }

    fn verdict(self, checks: &[documents::CheckResult]) -> Option<(String, bool)> {
        let passed = checks.iter().filter(|check| check.satisfied).count();
        let values = [("passed", passed), ("total", checks.len())];
        let text = self.texts.with("vault-checks", values);
        // Without checks, "0 of 0" would read like a verdict.
        (!checks.is_empty()).then_some((text, passed == checks.len()))
    }

    fn fact(self, label: &'static str, value: &str) -> (String, String) {
        let value = match value.trim() {
            "" => self.texts.text("custody-not-given"),
            _ => value.to_owned(),
        };
        (self.texts.text(label), value)
    }

    fn section(self, heading: &'static str, facts: Vec<(String, String)>) -> rules::CustodySection {
        rules::CustodySection {
            heading: self.texts.text(heading),
            facts,
            columns: Vec::new(),
            rows: Vec::new(),
            note: String::new(),
        }
    }

    fn table<const N: usize>(
        self,
        heading: &'static str,
        columns: [(&'static str, f32); N],
        rows: impl Iterator<Item = (Option<bool>, [String; N])>,
    ) -> rules::CustodySection {
        let column = |(title, width)| rules::TableColumn {
            title: self.texts.text(title),
            width,
        };
        let row = |(satisfied, cells): (Option<bool>, [String; N])| rules::TableRow {
            satisfied,
            cells: cells.into(),
        };

        rules::CustodySection {
            columns: columns.map(column).into(),
            rows: rows.map(row).collect(),
            ..self.section(heading, Vec::new())
        }
    }

    fn envelope(self, facts: &documents::CustodyFacts) -> rules::CustodySection {
        let mut rows = vec![
            self.fact("custody-envelope", &facts.envelope_id),
            self.fact("custody-customer", &facts.customer_id),
            self.fact("custody-custodian", &facts.custodian),
        ];
        let party = facts.secured_party.iter();
        rows.extend(party.map(|party| self.fact("custody-secured-party", party)));

        rows.extend(facts.attributes.iter().cloned());
        self.section("custody-envelope", rows)
    }

    fn documents(self, facts: &documents::CustodyFacts) -> rules::CustodySection {
        let rows = vec![
            self.fact("custody-algorithm", &facts.hash_algorithm),
            self.fact("certificate-authoritative", &facts.document_hash),
            self.fact("custody-copy", &facts.copy_hash),
        ];
        self.section("custody-documents", rows)
    }

    /// Returns the reference of a check, with the statute's own paragraph where the specification numbers
    /// it differently. The certificate has both.
    pub fn reference(self, requirement: &str, reference: &str, certificate: &str) -> String {
        let certificate: Value = serde_json::from_str(certificate).unwrap_or_default();
        let checks = certificate["ucc_9105_compliance"]["checks"].as_array();
        let mut checks = checks.into_iter().flatten();
        let check = checks.find(|check| check["requirement"] == requirement);
        let statute = check.and_then(|check| check["statute_reference"].as_str());
        match statute.filter(|statute| *statute != reference) {
            None => reference.to_owned(),
            Some(statute) => {
                let label = self.texts.text("custody-statute");
                format!("{reference} ({label}: {statute})")
            }
        }
    }

    fn parties(self, people: RecordPeople<'_>) -> rules::CustodySection {
        let columns = [
            ("custody-party", 0.26),
            ("custody-email", 0.31),
            ("custody-role", 0.13),
            ("certificate-signed", 0.3),
        ];

        let RecordPeople {
            envelope,
            signers,
            entries,
            ..
        } = people;
        let rows = signers.iter().map(|signer| {
            let moment = |at: Timestamp| self.moment(&at.to_string());
            // A person who approved, or completed a form, must not appear as a signer.
            let act = match signer.signed_at() {
                Some(at) => moment(at),
                None => people_notes::act_in_words(self.texts, signer, moment),
            };
            let notes = people_notes::notes(envelope, signers, entries, signer);
            let notes = notes.iter().map(|note| note.in_words(self.texts));
            let acts: Vec<String> = std::iter::once(act).chain(notes).collect();

            let (name, email) = (signer.name.clone(), signer.email.clone());
            (None, [name, email, signer.role.clone(), acts.join("; ")])
        });

        self.table("custody-parties", columns, rows)
    }

    /// Writes the consent of each signer to electronic records.
    fn consents(self, consents: &[SignersConsent]) -> rules::CustodySection {
        let columns = [
            ("custody-party", 0.22),
            ("custody-requirement", 0.22),
            ("custody-finding", 0.56),
        ];
        let writer = ConsentWriter {
            texts: self.texts,
            dates: &self.wording.dates,
        };
        let rows = consents.iter().flat_map(|consent| {
            let of_signer = writer.rows(consent).into_iter().enumerate();
            of_signer.map(move |(index, (label, value))| {
                let name = match index {
                    // The name appears once for each signer. The rows below it continue.
                    0 => format!("{} ({})", consent.name, consent.role),
                    _ => String::new(),
                };
                (None, [name, label, value])
            })
        });

        self.table("custody-consents", columns, rows)
    }

    fn checks(self, facts: &documents::CustodyFacts) -> rules::CustodySection {
        let columns = [
            ("custody-requirement", 0.35),
            ("custody-reference", 0.175),
            ("custody-finding", 0.475),
        ];
        let rows = facts.checks.iter().map(|check| {
            let verdict = self.texts.text(if check.satisfied {
                "vault-satisfied"
            } else {
                "vault-not-satisfied"
            });
            let finding = format!("{verdict} {}", check.detail);
            let (requirement, reference) = (check.requirement.clone(), check.reference.clone());
            let cells = [requirement, reference, finding.trim_end().to_owned()];

            (Some(check.satisfied), cells)
        });

        self.table("custody-checks", columns, rows)
    }

    fn timeline(self, facts: &documents::CustodyFacts) -> rules::CustodySection {
        let columns = [
            ("custody-time", 0.29),
            ("custody-actor", 0.22),
            ("custody-event", 0.49),
        ];
        let mut before = None;
        let rows = facts.timeline.iter().map(|entry| {
            let mut event = format!("{}: {}", entry.action, entry.detail);
            // The entries are in the order of the hash chain, so an earlier time means that a clock was
            // set back.
            let at = Timestamp::parse(&entry.at);
            if is_clock_back(before, at) {
                event = format!("{event} {}", self.texts.text("custody-clock-back"));
            }

            before = at;
            (None, [self.moment(&entry.at), entry.actor.clone(), event])
        });

        let mut rows: Vec<_> = rows.collect();

        // The record itself is the newest moment.
        if is_clock_back(before, Timestamp::parse(&facts.recorded_at)) {
            let event = self.texts.text("custody-clock-back");
            let actor = self.actor("system");
            rows.push((None, [self.moment(&facts.recorded_at), actor, event]));
        }

        self.table("custody-timeline", columns, rows.into_iter())
    }

    fn provenance(self, facts: &documents::CustodyFacts) -> rules::CustodySection {
        let rows = vec![
            self.fact("custody-rules", &facts.rules_component),
            self.fact("custody-attachment", ATTACHMENT),
        ];
        rules::CustodySection {
            note: self.texts.text("custody-note"),
            ..self.section("custody-made", rows)
        }
    }
}

/// Whether an entry states an earlier time than the one before, by more than nodes may differ.
fn is_clock_back(before: Option<Timestamp>, at: Option<Timestamp>) -> bool {
    let (Some(before), Some(at)) = (before, at) else {
        return false;
    };
    before.since(at) > log::CLOCK_TOLERANCE
}

/// Returns what left the vault, for entries that the parties' history leaves out.
fn retrieval_in_words(texts: Texts, entry: &LedgerEntry) -> Option<String> {
    // An entry of an earlier release lacks these members and keeps the name of its action.
    let details = &entry.details;
    let key = match entry.action.as_str() {
        "archive_links.issued" => {
            let number = details["link_number"].as_u64()?.to_string();
            let recipient = details["recipient_organization"].as_str()?;
            let values = [("number", number.as_str()), ("recipient", recipient)];
            return Some(texts.with("custody-link-issued", values));
        }
        "authoritative.downloaded" if details["file"] == "archive" => "custody-downloaded-archive",
        "authoritative.downloaded" => "custody-downloaded",
        "paper_original.downloaded" => "custody-downloaded-paper",
        "authoritative.download_broken_off" => "custody-broken-off",
        "bundle.exported" => "custody-exported",
        _ => return None,
    };

    Some(texts.text(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use holdfast_domain::component::ComponentIdentity;
    use holdfast_domain::envelope::EnvelopeKind;
    use holdfast_domain::id::{CustomerId, DestructionId, EnvelopeId, OrgId};

    const SIGNED_AT: &str = "2026-11-21T09:36:12.000Z";

    fn entry(action: &str, details: Value) -> LedgerEntry {
        LedgerEntry {
            sequence: 1,
            at: Timestamp::from_millis(0),
            actor: "system".into(),
            action: action.into(),
            details,
            previous_hash: String::new(),
            hash: "ab".into(),
            withheld: false,
        }
    }

    #[test]
    fn an_entry_names_who_caused_it() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        for (actor, words) in [
            ("key:key_1", "API key key_1"),
            ("payer:bo@example.com", "bo@example.com (payer)"),
            ("user:ann@example.com", "ann@example.com"),
            ("system", "holdfast"),
            ("operator", "operator"),
        ] {
            assert_eq!(writer.actor(actor), words);
        }
    }

    /// Each fact about a signature of the upload has its words, and another fact has others.
    #[test]
    fn a_signature_of_the_upload_is_described_by_what_was_verified() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let valid = || ExistingSignature {
            field: "Sig1".into(),
            kind: SignatureKind::Signature,
            status: SignatureStatus::Valid,
            problem: None,
            signer: None,
            certificate_sha256: None,
            signed_at: None,
            time_source: None,
            covers: SignedPart::WholeDocument,
            changes_after_signing: LaterChange::None,
            level: None,
            trust: SignatureTrust::NotChecked,
        };

        let at = writer.moment(SIGNED_AT);
        let changed = |changes_after_signing| ExistingSignature {
            covers: SignedPart::EarlierRevision,
            changes_after_signing,
            trust: SignatureTrust::Trusted,
            ..valid()
        };

        let timed = |source| ExistingSignature {
            signed_at: Some(SIGNED_AT.into()),
            time_source: Some(source),
            trust: SignatureTrust::Trusted,
            ..valid()
        };

        for (signature, words) in [
            (
                valid(),
                "valid signature · certificate not checked against roots".to_owned(),
            ),
            (
                ExistingSignature {
                    kind: SignatureKind::TimeStamp,
                    trust: SignatureTrust::Untrusted,
                    ..valid()
                },
                "valid time stamp · certificate not trusted".into(),
            ),
            (
                ExistingSignature {
                    status: SignatureStatus::Altered,
                    problem: Some("the signed bytes were changed".into()),
                    trust: SignatureTrust::Trusted,
                    ..valid()
                },
                "not valid for this document · certificate trusted".into(),
            ),
            (
                ExistingSignature {
                    status: SignatureStatus::Altered,
                    covers: SignedPart::Part,
                    trust: SignatureTrust::Trusted,
                    ..valid()
                },
                "not valid for this document · covers only a part of its revision · certificate trusted".into(),
            ),
            (
                ExistingSignature {
                    status: SignatureStatus::NotVerifiable,
                    problem: Some("it has no certificate".into()),
                    ..valid()
                },
                "could not be verified (it has no certificate) · certificate not checked against roots".into(),
            ),
            (
                changed(LaterChange::Content),
                "valid signature · a later revision changed the content · certificate trusted".into(),
            ),
            (
                changed(LaterChange::Annotations),
                "valid signature · a later revision changed annotations · certificate trusted".into(),
            ),
            (
                changed(LaterChange::FormFields),
                "valid signature · a later revision changed form fields · certificate trusted".into(),
            ),
            (
                changed(LaterChange::Signatures),
                "valid signature · certificate trusted".into(),
            ),
            (
                ExistingSignature {
                    signer: Some("CN=Ann Lee".into()),
                    level: Some("PAdES-T".into()),
                    ..timed(SignatureTimeSource::TimeStamp)
                },
                format!(
                    "valid signature · by CN=Ann Lee · time-stamped {at} · level PAdES-T · certificate trusted"
                ),
            ),
            (
                timed(SignatureTimeSource::Signer),
                format!("valid signature · by the signer’s clock on {at} · certificate trusted"),
            ),
        ] {
            let field = "Existing signature Sig1".to_owned();
            assert_eq!(writer.existing_signature(&signature), (field, words));
        }
    }

    #[test]
    fn a_paper_original_is_what_the_uploader_stated() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let stated = |state, place: Option<&str>| {
            writer.paper_original(&PaperOriginal {
                state,
                place: place.map(str::to_owned),
                stated_by: Some("user:ann@example.com".into()),
                ..PaperOriginal::default()
            })
        };
        for (state, words) in [
            (
                PaperOriginalState::Destroyed,
                "destroyed, says ann@example.com",
            ),
            (
                PaperOriginalState::Marked,
                "marked as a copy, says ann@example.com",
            ),
            (
                PaperOriginalState::Kept,
                "kept, says ann@example.com; while it exists, this record is not the sole original",
            ),
            (
                PaperOriginalState::Unknown,
                "nothing was stated; if it exists, this record is not the sole original",
            ),
        ] {
            assert_eq!(stated(state, None), words);
        }

        let kept = stated(PaperOriginalState::Kept, Some("Safe 2"));
        assert!(kept.ends_with("not the sole original (Safe 2)"), "{kept}");
    }

    #[test]
    fn the_files_of_a_record_are_described_by_their_entry() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        assert_eq!(writer.seal(Some("ab")), "certificate ab (SHA-256)");
        assert_eq!(
            writer.seal(None),
            "not sealed: the document is certified against any change"
        );

        for (form, words) in [
            (
                CopyForm::NewFile,
                "a file of its own, in which every page has the mark",
            ),
            (
                CopyForm::UpdateOfSigned,
                "an update of the signed document, so that its signatures stay valid; its beginning is the \
                 document without the mark",
            ),
            (
                CopyForm::UpdateOfUnwritable,
                "an update of the document, which could not be written anew; its beginning is the document \
                 without the mark",
            ),
        ] {
            assert_eq!(writer.copy_form(form), words);
        }

        assert_eq!(writer.rewritten(&Value::Null), None);
        let rewritten = |reason: &str| {
            let entry = json!({ "rewritten_hash": "cd", "reason": reason });
            writer.rewritten(&entry).unwrap()
        };
        assert_eq!(
            rewritten("the upload is a picture (image/png)"),
            "the upload is a picture (image/png); SHA-256 of the PDF made from it: cd"
        );
        assert_eq!(
            rewritten("its cross-reference table is damaged"),
            "the document’s structure had to be repaired; SHA-256 of the repaired document: cd"
        );

        let head = "vault.example/ledger\n12\nRoot=\n\n— signature\n";
        assert_eq!(
            writer.log_head(head).unwrap(),
            "vault.example/ledger: 12 entries before, root Root="
        );
        assert_eq!(writer.log_head("vault.example/ledger\n12"), None);
    }

    #[test]
    fn the_time_of_a_record_is_of_the_source_that_was_asked() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let at = writer.moment(SIGNED_AT);
        let stamped = |checked: Option<bool>| {
            writer.trusted_time(&json!({
                "status": "stamped", "at": SIGNED_AT, "authority": "Example TSA", "checked": checked,
            }))
        };
        assert_eq!(stamped(Some(true)), format!("{at}, by Example TSA"));

        for unchecked in [Some(false), None] {
            let words = format!("{at}, by Example TSA (an authority that is not checked)");
            assert_eq!(stamped(unchecked), words);
        }

        let none = json!({ "status": "no trusted time", "reason": "no answer" });
        assert_eq!(writer.trusted_time(&none), "no trusted time: no answer");
        assert_eq!(
            writer.trusted_time(&Value::Null),
            "of this server; no time stamping authority was asked"
        );
    }

    #[test]
    fn a_second_evaluation_is_of_the_pack_beside_other_rules() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let opinion = |name: &str, score| RulesOpinion {
            component: ComponentIdentity {
                name: name.into(),
                version: "1.0.0".into(),
                sha256: "ef".into(),
            },
            compliant: score == 100,
            score,
            missing_requirements: Vec::new(),
        };

        let both = [
            opinion("acme-rules", 100),
            opinion("holdfast-compliance", 88),
        ];
        assert_eq!(
            writer.second_evaluation(&both).unwrap(),
            "score 88, by holdfast-compliance 1.0.0 (ef)"
        );
        assert_eq!(writer.second_evaluation(&both[..1]), None);
    }

    #[test]
    fn what_left_the_vault_is_named_by_the_file_of_its_entry() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let link = json!({ "link_number": 2, "recipient_organization": "Second Bank" });
        for (action, details, words) in [
            (
                "archive_links.issued",
                link,
                "Link 2 to the released file was issued for Second Bank",
            ),
            (
                "authoritative.downloaded",
                json!({}),
                "The authoritative copy was downloaded from the vault",
            ),
            (
                "authoritative.downloaded",
                json!({ "file": "archive" }),
                "The released authoritative copy was downloaded",
            ),
            (
                "paper_original.downloaded",
                json!({}),
                "The file of the paper original was downloaded",
            ),
            (
                "authoritative.download_broken_off",
                json!({}),
                "A download broke off",
            ),
            (
                "bundle.exported",
                json!({}),
                "An evidence copy was exported",
            ),
            // Entries of earlier releases have no number.
            ("archive_links.issued", json!({}), "archive_links.issued"),
            ("download_link.issued", json!({}), "download_link.issued"),
        ] {
            let line = writer.timeline_entry(&entry(action, details));
            assert_eq!(line.action, words);
            assert_eq!(line.detail, format!("{action}, SHA-256 ab"));
        }
    }

    fn facts(checks: Vec<documents::CheckResult>) -> documents::CustodyFacts {
        documents::CustodyFacts {
            envelope_id: "env_1".into(),
            envelope_name: "Loan".into(),
            customer_id: "cus_1".into(),
            issuer: "Maple".into(),
            recorded_at: SIGNED_AT.into(),
            hash_algorithm: "SHA-256".into(),
            document_hash: "ab".into(),
            copy_hash: "cd".into(),
            secured_party: None,
            custodian: "vault@maple.example".into(),
            parties: Vec::new(),
            timeline: Vec::new(),
            checks,
            rules_component: "holdfast-compliance 1.0.0 (ef)".into(),
            certificate_json: "{}".into(),
            attributes: Vec::new(),
        }
    }

    #[test]
    fn a_certificate_of_destruction_names_acts_files_and_proof() {
        let (dealer, bank) = (OrgId::new(), OrgId::new());
        let certificate = json!({
            "certificate_type": "holdfast_destruction_certificate",
            "certificate_version": "1.0",
            "issuer": "Maple",
            "installation": { "origin": "maple.example", "public_key": "key", "url": "https://maple.example" },
            "made_out_to": "Ohio",
            "record": {
                "envelope_id": EnvelopeId::new(), "organization_id": dealer, "controller_id": bank,
                "kind": "esign", "status": "vaulted", "created_at": SIGNED_AT,
                "hash_algorithm": "SHA-256", "document_hash": "ab",
            },
            "cause": { "destruction_id": DestructionId::new() },
            "acts": [
                { "act": "requested", "organization_id": dealer, "by": "key:key_1", "at": SIGNED_AT },
                {
                    "act": "consented", "organization_id": bank, "by": "user:usr_1",
                    "role": "compliance", "at": SIGNED_AT,
                },
                { "act": "erased", "organization_id": dealer, "by": "user:usr_2", "at": SIGNED_AT },
            ],
            "destroyed": { "authoritative": ["ab"] },
            "ledger": { "sequence": 9, "hash": "cd" },
            "destroyed_at": SIGNED_AT,
        });
        let certificate: DestructionCertificate =
            serde_json::from_str(&certificate.to_string()).unwrap();
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let sheet = writer.destruction_sheet(&certificate, "ef", "{}".into());

        let subject = "What was destroyed, by whose acts, and when";
        assert_eq!(sheet.file_subject, subject);
        let [about, acts, files, proof] = &sheet.sections[..] else {
            panic!("{} sections", sheet.sections.len());
        };
        let fact = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        let recipient = fact("Certificates made out to", "Ohio");
        assert!(about.facts.contains(&recipient), "{:?}", about.facts);
        let behind_time = acts.rows.iter().map(|row| row.cells[1..].join(": "));
        let expected = [
            format!("requested: key:key_1 ({dealer})"),
            format!("consented: user:usr_1 ({bank}, compliance)"),
            format!("erased with the data of a person: user:usr_2 ({dealer})"),
        ];
        assert_eq!(behind_time.collect::<Vec<_>>(), expected);

        assert_eq!(files.heading, "Destroyed files");
        assert_eq!(files.rows[0].cells, ["authoritative", "ab (SHA-256)"]);
        let expected = [
            fact("Ledger before the destruction", "cd"),
            fact("Entry of the destruction", "ef"),
        ];
        assert_eq!(proof.facts, expected);
        let note = "The ledger of the record has the SHA-256 of this certificate";
        assert!(proof.note.starts_with(note), "{}", proof.note);
        let about = "Certificate with its proof (JSON)";
        assert_eq!(sheet.certificate_about, about);
    }

    #[test]
    fn a_custody_record_names_its_document_issuer_and_moment() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let check = |satisfied| documents::CheckResult {
            requirement: "Single authoritative copy".into(),
            reference: "UCC §9-105(b)(2)".into(),
            satisfied,
            detail: "It is stored.".into(),
        };
        let facts = facts(vec![check(true), check(false)]);

        let envelope = Envelope::new(
            OrgId::new(),
            CustomerId::new(),
            "Loan".into(),
            EnvelopeKind::Esign,
            "key:key_1".into(),
            Timestamp::from_millis(0),
        );
        let people = RecordPeople {
            envelope: &envelope,
            signers: &[],
            entries: &[],
            consents: &[],
        };
        let mut sheet = writer.custody_sheet(&facts, people);

        let at = writer.moment(SIGNED_AT);
        assert_eq!(sheet.title, "Custody record");
        assert_eq!(sheet.file_title, "Custody record of env_1");
        assert_eq!(
            sheet.file_subject,
            "Who held the authoritative copy of “Loan”, since when, and how that was checked"
        );
        assert_eq!(sheet.byline, format!("Issued by Maple on {at}"));
        assert_eq!(sheet.foot, format!("Recorded {at}"));

        let about = "Certificate of the control checks that this record reports";
        assert_eq!(sheet.certificate_about, about);

        let verdict = |text: &str| Some((text.to_owned(), false));
        let now = "1 of 2 checks of UCC §9-105 are satisfied";
        assert_eq!(sheet.verdict, verdict(now));

        let heading = |sheet: &rules::CustodySheet, at: usize| sheet.sections[at].heading.clone();
        let headings: Vec<String> = (0..6).map(|at| heading(&sheet, at)).collect();
        assert_eq!(
            headings[3..],
            [
                "Control checks",
                "Chain of custody",
                "How this record was made"
            ]
        );

        let findings: Vec<&str> = (sheet.sections[3].rows.iter())
            .map(|row| row.cells[2].as_str())
            .collect();
        assert_eq!(
            findings,
            ["Satisfied. It is stored.", "Not satisfied. It is stored."]
        );
        assert_eq!(
            sheet.sections[5].note,
            "The attached certificate has these checks in a form for programs. Whoever holds the evidence of this \
             record can repeat them: compute the hash named above over the bytes of the document, compare it with this \
             record, and run the component named here over the facts in the ledger."
        );

        // The final record states the moment of its checks.
        writer.date_checks(&mut sheet, &facts.checks, SIGNED_AT);
        assert_eq!(
            heading(&sheet, 3),
            format!("Control checks, as at the release on {at}")
        );

        let then = "As at the release: 1 of 2 checks of UCC §9-105 are satisfied";
        assert_eq!(sheet.verdict, verdict(then));
    }

    #[test]
    fn a_reference_has_the_statutes_own_paragraph_where_that_is_another() {
        let wording = RecordWording::default();
        let writer = RecordWriter::new(&wording);
        let certificate = json!({ "ucc_9105_compliance": { "checks": [
            { "requirement": "Single", "statute_reference": "UCC §9-105(b)(1)" },
            { "requirement": "Copies", "statute_reference": "UCC §9-105(b)(5)" },
        ] } });
        let reference = |requirement: &str, reference: &str| {
            writer.reference(requirement, reference, &certificate.to_string())
        };
        assert_eq!(
            reference("Single", "UCC §9-105(b)(2)"),
            "UCC §9-105(b)(2) (Statute: UCC §9-105(b)(1))"
        );

        let same = reference("Copies", "UCC §9-105(b)(5)");
        assert_eq!(same, "UCC §9-105(b)(5)");
    }

    #[test]
    fn a_step_of_the_chain_is_named_by_its_act() {
        let texts = Texts::default();
        for (act, words) in [
            ("vault.stored", "the contract was stored"),
            ("control.accepted", "took control"),
            ("control.transfer.confirmed", "took control in a transfer"),
        ] {
            assert_eq!(texts.text(step_key(act)), words);
        }
    }
}
