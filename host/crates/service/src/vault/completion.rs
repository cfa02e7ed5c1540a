//! The certificate of completion of a vaulted envelope, and its public verification page.

use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::envelopes::consumer::{self, SignersConsent};
use crate::envelopes::people_notes;
use crate::vault::consent_words::ConsentWriter;
use crate::vault::copies::CopyForm;
use crate::vault::paper;
use holdfast_adapters::texts::Texts;
use holdfast_base::config::EMBEDDED;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::early_style;
use holdfast_components::rules::completion as rules;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::DateSettings;
use holdfast_domain::envelope::{Envelope, EnvelopeKind, Signer, SignerAccess, SignerKind};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::identity::{KbaSession, KbaStatus, last_digits};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::Organization;
use holdfast_platform::lookup;
use holdfast_platform::passcodes;
use holdfast_platform::room::signature::{SignatureValue, component_style};
use holdfast_platform::{Core, ServiceError};
use holdfast_store::room::{self as rooms, RoomSubmission, RoomSubmitter};
use holdfast_store::{envelopes, kba, ledger, organizations, signers};

/// Maximum length of a browser's name on the certificate, in characters.
const DEVICE_LENGTH: usize = 160;

/// Record behind a verification link, for each person who has a copy of the document.
pub struct PublicRecord {
    pub organization: Organization,
    pub envelope: Envelope,
    pub signers: Vec<Signer>,
    /// A paper original replaced the authoritative copy.
    pub is_converted: bool,
}

/// Returns the last part of the verification link. It cannot be guessed, and stays the same as long as
/// the record: it is derived from the hash of the authoritative copy.
fn code(envelope: &Envelope) -> Option<String> {
    if envelope.kind != EnvelopeKind::Esign {
        return None;
    }
    let document = envelope.record.document_hash.as_deref()?;
    let text = format!("verification {} {document}", envelope.id);
    let digest = hex::encode(Sha256::digest(text));
    // 24 hexadecimal digits are 96 bits: too many to guess.
    Some(digest.chars().take(24).collect())
}

/// Returns the link of the verification page; none before the envelope is vaulted, and for uploads
/// that were signed elsewhere.
pub fn verification_url(core: &Core, envelope: &Envelope) -> Option<String> {
    let (base, code) = (core.config.public_url(), code(envelope)?);
    Some(format!(
        "{base}/verify/{}/{}/{code}",
        envelope.org, envelope.id
    ))
}

/// Returns the record behind a verification link, or none for an unknown link.
pub async fn public_record(
    core: &Core,
    org: &str,
    envelope: &str,
    given: &str,
) -> Result<Option<PublicRecord>, ServiceError> {
    // An id that cannot be parsed is answered like an unknown one.
    let (Some(org), Some(id)) = (OrgId::parse(org), EnvelopeId::parse(envelope)) else {
        return Ok(None);
    };

    let mut connection = core.store.read().await?;
    let organization = organizations::get(&mut connection, &org).await?;
    let envelope = envelopes::get(&mut connection, &org, &id).await?;
    let (Some(organization), Some(envelope)) = (organization, envelope) else {
        return Ok(None);
    };

    // Compared by hashes: the time that it takes must not tell how much of a guess is right.
    let right = code(&envelope).map(Sha256::digest);
    if right != Some(Sha256::digest(given)) {
        return Ok(None);
    }

    let signers = signers::list(&mut connection, &org, &id).await?;
    let is_converted = paper::is_converted(&mut connection, &envelope).await?;
    Ok(Some(PublicRecord {
        organization,
        envelope,
        signers,
        is_converted,
    }))
}

/// Writes the certificate of completion, in the organization's language unless another one is given.
/// Equal records give equal bytes.
///
/// # Errors
///
/// `Conflict` before the envelope is vaulted, and for an upload that was signed elsewhere.
pub async fn certificate(
    core: &Core,
    envelope: &Envelope,
    locale: Option<Locale>,
) -> Result<Bytes, ServiceError> {
    let facts = facts(core, envelope, locale).await?;
    let documents = core
        .components
        .embedded_documents(&envelope.org, core.store.priority())
        .for_owner(WorkOwner::new(&envelope.org, envelope.id.as_str()));
    Ok(documents.completion_certificate(facts).await??.into())
}

async fn facts(
    core: &Core,
    envelope: &Envelope,
    locale: Option<Locale>,
) -> Result<rules::CompletionFacts, ServiceError> {
    if envelope.kind != EnvelopeKind::Esign {
        let why = "Envelope was signed elsewhere: there is no signing to certify";
        return Err(ServiceError::Conflict(why.into()));
    }

    let org = &envelope.org;
    let mut connection = core.store.read().await?;
    let organization = organizations::get(&mut connection, org)
        .await?
        .ok_or(ServiceError::NotFound("Organization"))?;
    let signers = signers::list(&mut connection, org, &envelope.id).await?;
    let entries = ledger::list(&mut connection, Some(org), &envelope.id).await?;

    let checks = kba::list(&mut connection, org, &envelope.id).await?;
    let room = match lookup::room_submission(envelope) {
        Some(id) => {
            let submission = rooms::submission(&mut connection, org, id).await?;
            let submitters = rooms::submitters(&mut connection, org, id).await?;
            submission.map(|submission| (submission, submitters))
        }
        None => None,
    };

    let consents = consumer::consents(&mut connection, envelope, &signers).await?;
    drop(connection);
    let not_yet = || ServiceError::Conflict("Envelope is not vaulted".into());
    let url = verification_url(core, envelope).ok_or_else(not_yet)?;
    let stored = entry(&entries, EventType::VaultStored, None).ok_or_else(not_yet)?;
    let texts = Texts::of(locale.unwrap_or(organization.settings.language));
    let source = CertificateSource {
        envelope,
        signers: &signers,
        texts,
        dates: &organization.settings.dates,
        entries: &entries,
        checks: &checks,
        room: room.as_ref(),
        consents: &consents,
    };

    Ok(rules::CompletionFacts {
        title: texts.text("certificate-name"),
        // The time of the vaulting, not of this request: equal records give equal bytes.
        issued_at: stored.at.to_string(),
        document_name: envelope.name.clone(),
        rows: source.about(&organization, stored),
        signers: signers.iter().map(|signer| source.signer(signer)).collect(),
        verification_url: url,
        verification_caption: texts.text("certificate-caption"),
    })
}

/// Returns the first entry of a kind, about one signer if one is given.
fn entry<'a>(
    entries: &'a [LedgerEntry],
    kind: EventType,
    signer: Option<&Signer>,
) -> Option<&'a LedgerEntry> {
    entries.iter().find(|entry| {
        let is_about = signer.is_none_or(|signer| people_notes::is_about(entry, signer));
        entry.action == kind.as_str() && is_about
    })
}

struct CertificateSource<'a> {
    envelope: &'a Envelope,
    signers: &'a [Signer],
    texts: Texts,
    dates: &'a DateSettings,
    entries: &'a [LedgerEntry],
    checks: &'a [KbaSession],
    room: Option<&'a (RoomSubmission, Vec<RoomSubmitter>)>,
    consents: &'a [SignersConsent],
}

impl CertificateSource<'_> {
    fn moment(&self, at: Timestamp) -> String {
        self.texts.exact_moment(self.dates, at)
    }

    /// Returns the rows that have a value, with the text of their labels.
    fn present<const N: usize>(
        &self,
        rows: [(&'static str, Option<String>); N],
    ) -> Vec<(String, String)> {
        let rows = rows.into_iter();
        rows.filter_map(|(label, value)| Some((self.texts.text(label), value?)))
            .collect()
    }

    fn about(&self, organization: &Organization, stored: &LedgerEntry) -> Vec<(String, String)> {
        let envelope = self.envelope;
        let is_test = envelope.org.is_test();
        // Without a time stamping authority the times are those of this server, and the certificate has
        // to state it.
        let without_authority = stored.details["trusted_time"].is_null();
        let moment = |entry: &LedgerEntry| self.moment(entry.at);
        let hash = |hash: &str| format!("{hash} (SHA-256)");
        let record = &envelope.record;

        // Where the copy begins with the signed document, its hash would tell which part to cut out.
        let signed = &stored.details["signed_document_hash"];
        let is_apart = stored.details["copy_kind"] == json!(CopyForm::NewFile);
        let signed = signed.as_str().filter(|_| is_apart);
        let rows = [
            (
                "certificate-note",
                is_test.then(|| self.texts.text("certificate-test")),
            ),
            (
                "certificate-sent-by",
                Some(organization.display_name().to_owned()),
            ),
            (
                "certificate-sent",
                entry(self.entries, EventType::EnvelopeSent, None).map(moment),
            ),
            (
                "certificate-completed",
                entry(self.entries, EventType::EnvelopeCompleted, None).map(moment),
            ),
            ("certificate-vaulted", Some(moment(stored))),
            (
                "certificate-times",
                without_authority.then(|| self.texts.text("certificate-times-own")),
            ),
            ("certificate-reference", Some(envelope.id.to_string())),
            ("certificate-signed-document", signed.map(hash)),
            (
                "certificate-authoritative",
                record.document_hash.as_deref().map(hash),
            ),
            (
                "certificate-copy",
                record.copy.as_ref().map(|copy| hash(&copy.sha256)),
            ),
        ];

        self.present(rows)
    }

    fn signer(&self, signer: &Signer) -> rules::SignerSummary {
        let of = |kind| entry(self.entries, kind, Some(signer));
        let viewed = of(EventType::SignerViewed);
        let signed = of(EventType::SignerCompleted);
        let detail = |name: &str| signed.and_then(|entry| entry.details[name].as_str());
        let moment = |entry: &LedgerEntry| self.moment(entry.at);
        let rows = [
            ("certificate-opened", viewed.map(moment)),
            ("certificate-code", self.code(signer)),
            ("certificate-identity", self.identity(signer)),
            (
                "certificate-signed",
                signer.signed_at().map(|at| self.moment(at)),
            ),
            (
                "certificate-approved",
                signer.approved_at().map(|at| self.moment(at)),
            ),
            ("certificate-form-completed", self.unsigned_form(signer)),
            ("certificate-address", detail("ip").map(str::to_owned)),
            (
                "certificate-browser",
                // The browser sends this text. A long one must not fill the page.
                detail("user_agent").map(|agent| agent.chars().take(DEVICE_LENGTH).collect()),
            ),
        ];

        let mut rows = self.present(rows);
        let notes = people_notes::notes(self.envelope, self.signers, self.entries, signer);
        let label = || self.texts.text("certificate-note");
        rows.extend(
            notes
                .iter()
                .map(|note| (label(), note.in_words(self.texts))),
        );

        rows.extend(self.consent(signer));
        rows.extend(signed.into_iter().flat_map(|entry| self.files(entry)));
        rules::SignerSummary {
            name: signer.name.clone(),
            about: format!("{}, {}", self.role(signer), signer.email),
            signature: self.signature(signer),
            rows,
        }
    }

    /// Returns when a signer completed a form that asked for no signature.
    fn unsigned_form(&self, signer: &Signer) -> Option<String> {
        // A signature or an approval has a row of its own.
        let is_unsigned = signer.signed_at().is_none() && signer.approved_at().is_none();
        let at = signer.completed_at.filter(|_| is_unsigned)?;
        let moment = [("moment", self.moment(at))];
        Some(self.texts.with("certificate-no-signature", moment))
    }

    /// Returns the rows about the signer's consent to electronic records.
    fn consent(&self, signer: &Signer) -> Vec<(String, String)> {
        let mut consents = self.consents.iter();
        let own = consents.find(|consent| consent.position == signer.position);
        let writer = ConsentWriter {
            texts: self.texts,
            dates: self.dates,
        };
        own.map(|own| writer.rows(own)).unwrap_or_default()
    }

    /// Returns the files that a signer attached, with their hashes.
    fn files(&self, signed: &LedgerEntry) -> Vec<(String, String)> {
        let files = signed.details["attachments"].as_array();
        let row = |file: &Value| {
            let (name, sha256) = (file["name"].as_str()?, file["sha256"].as_str()?);
            let label = self.texts.text("certificate-file");
            Some((label, format!("{name}, {sha256} (SHA-256)")))
        };
        files.into_iter().flatten().filter_map(row).collect()
    }

    /// Returns role and kind of a signer.
    fn role(&self, signer: &Signer) -> String {
        let role = [("role", signer.role.as_str())];
        match signer.kind {
            SignerKind::Signer => signer.role.clone(),
            SignerKind::Approver => self.texts.with("signer-approver", role),
            SignerKind::Witness => self.texts.with("signer-witness", role),
        }
    }

    /// Returns the kind of code that the signer entered, and when first.
    fn code(&self, signer: &Signer) -> Option<String> {
        let key = match signer.access {
            SignerAccess::None => return None,
            SignerAccess::EmailCode => "certificate-code-mailed",
            SignerAccess::SmsCode => "certificate-code-texted",
            SignerAccess::Passcode => "certificate-code-passcode",
        };

        // A code that was never entered proves nothing, so it has no row.
        let entered = self.entries.iter().find(|entry| {
            entry.action == passcodes::CONFIRMED && people_notes::is_about(entry, signer)
        })?;
        let moment = self.moment(entered.at);
        let phone = entered.details["signer"]["phone"].as_str();
        let values = [
            ("moment", moment.as_str()),
            ("digits", last_digits(phone.unwrap_or_default())),
        ];

        Some(self.texts.with(key, values))
    }

    fn identity(&self, signer: &Signer) -> Option<String> {
        // A signer may be replaced. A check of the earlier person does not identify this one.
        let passed = |check: &&KbaSession| check.status == KbaStatus::Passed && check.is_of(signer);
        let check = self.checks.iter().rev().find(passed)?;
        let at = check.ended_at.map(|at| self.moment(at)).unwrap_or_default();
        let values = [("moment", at.as_str()), ("provider", &check.instance)];

        // The sandbox asked no person.
        let key = if check.instance == EMBEDDED {
            "certificate-identity-sandbox"
        } else {
            "certificate-identity-passed"
        };

        Some(self.texts.with(key, values))
    }

    /// Returns the first signature that the signer gave in the signing room, or else the initials.
    fn signature(&self, signer: &Signer) -> Option<rules::SignatureAppearance> {
        // Only the built-in signing room keeps the signatures of its signers here.
        let (submission, submitters) = self.room?;
        let submitter = submitters
            .iter()
            .find(|one| one.position == signer.position)?;
        let value = |kind: &str| {
            let mut own = submission.fields.iter();
            own.find_map(|field| {
                let own = field.field_type == kind && field.submitter_uuid == submitter.role;
                let value = submitter.values.get(&field.name).filter(|_| own)?;
                (!value.is_empty()).then_some(value)
            })
        };
        // Some forms ask for initials only.
        let value = value("signature").or_else(|| value("initials"))?;

        Some(match SignatureValue::parse(value).ok()? {
            SignatureValue::Typed(name) => {
                rules::SignatureAppearance::Typed(rules::TypedSignature {
                    name,
                    style: submitter
                        .signature_style
                        .map(|style| early_style(component_style(style))),
                })
            }
            SignatureValue::Drawn(picture) => rules::SignatureAppearance::Drawn(picture),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::envelope::{SignatureExecution, SignerStatus};
    use holdfast_domain::id::{CustomerId, KbaId};
    use holdfast_domain::identity::KbaStep;

    fn at() -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn moment() -> String {
        Texts::default().exact_moment(&DateSettings::default(), at())
    }

    fn completed(kind: SignerKind, execution: SignatureExecution) -> Signer {
        let role = "Buyer".to_owned();
        Signer {
            kind,
            status: SignerStatus::Completed,
            completed_at: Some(at()),
            execution: Some(execution),
            ..Signer::new(0, "Ann".into(), "ann@example.com".into(), role)
        }
    }

    /// Returns the rows about a signer of a record with these entries and identity checks.
    fn rows(signer: &Signer, entries: &[LedgerEntry], checks: &[KbaSession]) -> Vec<String> {
        let (org, customer) = (OrgId::new(), CustomerId::new());
        let (kind, creator) = (EnvelopeKind::Esign, "key:key_1".into());
        let envelope = Envelope::new(org, customer, "Loan".into(), kind, creator, at());
        let source = CertificateSource {
            envelope: &envelope,
            signers: std::slice::from_ref(signer),
            texts: Texts::default(),
            dates: &DateSettings::default(),
            entries,
            checks,
            room: None,
            consents: &[],
        };

        let summary = source.signer(signer);
        let rows = summary.rows.into_iter();
        let rows = rows.map(|(label, value)| format!("{label}: {value}"));
        std::iter::once(summary.about).chain(rows).collect()
    }

    #[test]
    fn a_person_signed_approved_or_completed_a_form() {
        use SignatureExecution::{Executed, NotAsked};

        let now = moment();
        for (kind, execution, about, act) in [
            (
                SignerKind::Signer,
                Executed,
                "Buyer",
                format!("Signed: {now}"),
            ),
            (
                SignerKind::Witness,
                Executed,
                "Buyer (witness)",
                format!("Signed: {now}"),
            ),
            (
                SignerKind::Approver,
                NotAsked,
                "Buyer (approver)",
                format!("Approved: {now}"),
            ),
            (
                SignerKind::Signer,
                NotAsked,
                "Buyer",
                format!("Form completed: {now}; no signature was asked"),
            ),
        ] {
            let rows = rows(&completed(kind, execution), &[], &[]);
            assert_eq!(rows, [format!("{about}, ann@example.com"), act]);
        }
    }

    #[test]
    fn a_code_is_named_by_the_way_that_it_came() {
        use SignerAccess::{EmailCode, None, Passcode, SmsCode};

        let now = moment();
        for (access, words) in [
            (EmailCode, Some(format!("mailed code, {now}"))),
            (
                SmsCode,
                Some(format!(
                    "code by text message to the number ending in 67, {now}"
                )),
            ),
            (Passcode, Some(format!("passcode of the sender, {now}"))),
            (None, Option::None),
        ] {
            let signer = Signer {
                access,
                ..completed(SignerKind::Signer, SignatureExecution::Executed)
            };
            let entered = LedgerEntry {
                sequence: 1,
                at: at(),
                actor: "signer:ann@example.com".into(),
                action: passcodes::CONFIRMED.into(),
                details: json!({ "signer": { "signer_id": signer.id, "phone": "+15551234567" } }),
                previous_hash: String::new(),
                hash: String::new(),
                withheld: false,
            };

            let row = |rows: &[String]| {
                let mut rows = rows.iter();
                let row = rows.find_map(|row| row.strip_prefix("Code before the document: "));
                row.map(str::to_owned)
            };
            assert_eq!(row(&rows(&signer, &[entered], &[])), words);
            assert_eq!(row(&rows(&signer, &[], &[])), Option::None, "not entered");
        }
    }

    #[test]
    fn an_identity_check_is_of_this_person_and_says_who_asked() {
        let now = moment();
        let signer = completed(SignerKind::Signer, SignatureExecution::Executed);
        let check = |instance: &str, status, email: &str| KbaSession {
            id: KbaId::new(),
            org: OrgId::new(),
            envelope: EnvelopeId::new(),
            position: 0,
            email: email.into(),
            instance: instance.into(),
            status,
            step: KbaStep::Questions,
            sealed: None,
            provider_session: None,
            ip: None,
            price_cents: 0,
            started_at: at(),
            expires_at: at(),
            ended_at: Some(at()),
        };

        let said = |check: KbaSession| {
            let rows = rows(&signer, &[], &[check]);
            let mut rows = rows.iter();
            let row = rows.find_map(|row| row.strip_prefix("Identity check: "));
            row.map(str::to_owned)
        };
        let own = "ann@example.com";
        assert_eq!(
            said(check("main", KbaStatus::Passed, own)).unwrap(),
            format!(
                "knowledge questions answered, {now} (provider main); NIST SP 800-63A-4 does not accept them as \
                 identity verification"
            )
        );

        assert_eq!(
            said(check(EMBEDDED, KbaStatus::Passed, own)).unwrap(),
            format!("simulated, {now}: nobody was asked, and it proves nothing")
        );
        assert_eq!(said(check("main", KbaStatus::Failed, own)), None);
        assert_eq!(
            said(check("main", KbaStatus::Passed, "bo@example.com")),
            None
        );
    }
}
