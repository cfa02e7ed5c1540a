//! Actions of the signing form: open, save, finish, decline.
//!
//! Each change and the jobs it causes commit together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_handwriting::Handwriting;

use super::answers::AppliedRules;
use super::shown::ShownDocument;
use super::signature::{SignatureValue, is_picture};
use super::{Room, dates_in};
use holdfast_adapters::files::FilesError;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::ComponentError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::{DAY_OF_SIGNING, DateSettings};
use holdfast_domain::entry;
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::field::{ATTACHMENT, Area, Field};
use holdfast_domain::id::OrgId;
use holdfast_domain::job::ExecuteSubmission;
use holdfast_domain::locale::Message;
use holdfast_store::room::{
    self as rooms, GivenConsent, RoomField, RoomSubmission, RoomSubmitter, WitnessStatement,
};
use holdfast_store::{StoreError, WriteTransaction, jobs};

/// Maximum length of a text field's value, in characters.
const TEXT_LIMIT: usize = 4_000;

/// Delay of the job that executes the document. The form executes it before responding to the last
/// signer; the job covers the case that this failed.
const HEAD_START: Duration = Duration::from_secs(3);

/// Data of a signer's form.
pub struct SigningForm {
    pub submission: RoomSubmission,
    pub submitter: RoomSubmitter,
    /// Signer's fields in reading order. A field is required if its rules require it now.
    pub fields: Vec<RoomField>,
    /// Names of the fields that their rules do not show now.
    pub hidden: BTreeSet<String>,
    /// Name of an earlier signer who must finish first.
    pub waits_for: Option<String>,
    /// The document with the entries of those who have signed.
    pub document: ShownDocument,
    /// How the organization writes dates.
    pub dates: DateSettings,
    /// The organization's day, in ISO 8601.
    pub today: String,
}

impl SigningForm {
    /// Returns the form that a signer of `role` would get for a document that was not sent.
    pub fn preview(
        org: &OrgId,
        file: StoredFile,
        fields: Vec<Field>,
        role: &str,
        dates: DateSettings,
        now: Timestamp,
    ) -> Self {
        let fields: Vec<RoomField> = fields.into_iter().map(unsent).collect();
        let own = |field: &&RoomField| field.submitter_uuid == role;
        let value = |field: &RoomField| Some((field.name.clone(), field.default_value.clone()?));
        let submitter = RoomSubmitter {
            name: role.to_owned(),
            role: role.to_owned(),
            values: fields.iter().filter(own).filter_map(value).collect(),
            ..RoomSubmitter::new(org, 0, 0, 0)
        };

        // A preview is stored nowhere, so it needs no ids.
        let submission = RoomSubmission {
            id: 0,
            org: org.clone(),
            template: 0,
            name: String::new(),
            preserve_order: false,
            document: (file.key.clone(), file.sha256.clone()),
            fields,
            date_format: Some(dates.format),
            signed: None,
            created_at: now,
            completed_at: None,
            archived_at: None,
        };

        Self {
            fields: own_fields(&submission, &submitter),
            hidden: BTreeSet::new(),
            waits_for: None,
            document: file.into(),
            today: dates.day(now),
            dates,
            submission,
            submitter,
        }
    }
}

/// Returns a field of a template as a field of a submission.
pub fn unsent(field: Field) -> RoomField {
    RoomField {
        uuid: String::new(),
        submitter_uuid: field.role,
        name: field.name,
        field_type: field.field_type,
        required: field.required,
        readonly: field.readonly,
        default_value: field.default_value,
        options: field.options,
        areas: field.areas,
        rules: field.rules,
    }
}

/// Client that made a request; recorded with the signature.
#[derive(Clone, Debug, Default)]
pub struct RequestOrigin {
    pub ip: Option<String>,
    pub user_agent: Option<String>,
}

/// Locked submission, with the signer in turn.
pub(super) struct SignerTurn {
    pub(super) tx: WriteTransaction,
    pub(super) submission: RoomSubmission,
    pub(super) submitter: RoomSubmitter,
    /// All submitters, in signing order.
    pub(super) submitters: Vec<RoomSubmitter>,
}

/// Key of the consent in [`Problems`].
pub const CONSENT: &str = "consent";

/// Key of the document in [`Problems`].
pub const DOCUMENT: &str = "document-version";

/// Keys of the name and the postal address that a witness of a signer states, among the values and in
/// [`Problems`].
pub const WITNESS: [&str; 2] = ["witness-name", "witness-address"];

/// Maximum length of what a witness states, in characters.
const LONGEST_STATEMENT: usize = 500;

/// Key of the style of typed signatures among the values.
pub const STYLE: &str = "signature-style";

/// Problems by field name.
pub type Problems = BTreeMap<String, Message>;

/// Result of saving values, for the script of the form.
#[derive(Default)]
pub struct SavedForm {
    pub problems: Problems,
    /// Names of the fields that are not shown now.
    pub hidden: BTreeSet<String>,
    /// Names of the fields that must be answered now.
    pub required: BTreeSet<String>,
    /// Results of formulas by field name.
    pub computed: BTreeMap<String, String>,
}

/// Reason a form was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    #[error("no such document")]
    NotFound,
    /// The submission was signed, declined or withdrawn already.
    #[error("the document can no longer be signed")]
    Closed,
    #[error("it is another signer's turn")]
    NotYourTurn,
    #[error("too many large files at once")]
    Busy,
    #[error("some fields need attention")]
    Invalid(Problems),
    /// Its pages cannot be read.
    #[error("the document cannot be read: {0}")]
    Document(String),
    #[error(transparent)]
    Component(#[from] ComponentError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FilesError),
}

impl SavedForm {
    fn new(problems: Problems, applied: &AppliedRules) -> Self {
        let required = applied.fields.iter().filter(|field| field.required);
        Self {
            problems,
            hidden: applied.hidden.clone(),
            required: required.map(|field| field.name.clone()).collect(),
            computed: applied.computed.clone(),
        }
    }
}

impl Room {
    /// Returns what the rules say about a form as it is saved.
    pub async fn saved(&self, org: &OrgId, submitter: i64) -> Result<SavedForm, FormError> {
        let form = self.unruled_form(org, submitter).await?;
        let applied = self.apply_rules(&form, &form.submitter.values).await?;
        Ok(SavedForm::new(Problems::new(), &applied))
    }

    /// Returns the current state of a submitter's form.
    pub async fn form(&self, org: &OrgId, submitter: i64) -> Result<SigningForm, FormError> {
        let form = self.unruled_form(org, submitter).await?;
        Ok(self.tried(form, BTreeMap::new()).await?.0)
    }

    /// Applies the rules of a form's document to its values and these, without saving anything.
    pub async fn tried(
        &self,
        mut form: SigningForm,
        values: BTreeMap<String, String>,
    ) -> Result<(SigningForm, SavedForm), FormError> {
        form.submitter.values.extend(values);
        let mut applied = self.apply_rules(&form, &form.submitter.values).await?;
        let problems = std::mem::take(&mut applied.problems);
        let saved = SavedForm::new(problems, &applied);
        // Results of formulas are computed here, because a browser can send any number.
        form.submitter.values.extend(applied.computed);
        form.hidden = applied.hidden;
        form.fields = applied.fields;
        Ok((form, saved))
    }

    /// Returns the form without the effect of rules about answers.
    pub async fn unruled_form(
        &self,
        org: &OrgId,
        submitter: i64,
    ) -> Result<SigningForm, FormError> {
        let mut connection = self.store.read().await?;
        let mut submitter = rooms::submitter(&mut connection, org, submitter)
            .await?
            .ok_or(FormError::NotFound)?;
        let submission = rooms::submission(&mut connection, org, submitter.submission)
            .await?
            .ok_or(FormError::NotFound)?;
        // A prefilled name without a file would let a required attachment pass as answered.
        drop_loose_files(&submission, &mut submitter);

        let submitters = rooms::submitters(&mut connection, org, submission.id).await?;
        let dates = dates_in(&mut connection, &submission).await?;
        Ok(SigningForm {
            fields: own_fields(&submission, &submitter),
            hidden: BTreeSet::new(),
            waits_for: waits_for(&submission, &submitter, &submitters),
            document: ShownDocument::new(
                submission.file(),
                submission.fields.clone(),
                dates.format,
                submitters.into_iter().filter(has_signed).collect(),
            ),
            today: dates.day(self.clock.now()),
            dates,
            submission,
            submitter,
        })
    }

    /// Returns a submission's document with the entries of those who have signed.
    pub async fn shown(&self, org: &OrgId, submission: i64) -> Result<ShownDocument, FormError> {
        let mut connection = self.store.read().await?;
        let submission = rooms::submission(&mut connection, org, submission)
            .await?
            .ok_or(FormError::NotFound)?;
        let submitters = rooms::submitters(&mut connection, org, submission.id).await?;

        let dates = dates_in(&mut connection, &submission).await?;
        Ok(ShownDocument::new(
            submission.file(),
            submission.fields,
            dates.format,
            submitters.into_iter().filter(has_signed).collect(),
        ))
    }

    /// Records that the signer opened the document.
    pub async fn open(
        &self,
        org: &OrgId,
        submitter: i64,
        person: &str,
        origin: &RequestOrigin,
    ) -> Result<(), FormError> {
        let SignerTurn {
            mut tx,
            mut submitter,
            ..
        } = self.turn(org, submitter, person).await?;
        // The first visit counts as evidence. Later ones would overwrite its address and time.
        if submitter.opened_at.is_some() {
            return Ok(());
        }

        submitter.opened_at = Some(self.clock.now());
        submitter.ip = origin.ip.clone();
        submitter.user_agent = origin.user_agent.clone();
        rooms::update_submitter(&mut tx, &submitter).await?;
        self.tell(&mut tx, &submitter).await?;

        Ok(tx.commit().await?)
    }

    /// Saves values without finishing; returns the problems of values that were not saved, and what the
    /// rules say about the others. Unknown field names are ignored.
    pub async fn save(
        &self,
        org: &OrgId,
        submitter: i64,
        person: &str,
        values: &BTreeMap<String, String>,
    ) -> Result<SavedForm, FormError> {
        let (entries, saved) = self.checked_entries(org, submitter, values).await?;
        let tx = self.store.begin().await?;
        let (tx, is_changed) = self.keep(tx, person, entries).await?;
        if is_changed {
            tx.commit().await?;
        }

        Ok(saved)
    }

    /// Checks values for [`Room::keep`], before its transaction because pictures are rendered in the sandbox. Returns
    /// the problems of values that would not be kept, too.
    pub async fn checked_entries<'a>(
        &self,
        org: &OrgId,
        submitter: i64,
        values: &'a BTreeMap<String, String>,
    ) -> Result<(CheckedEntries<'a>, SavedForm), FormError> {
        let form = self.unruled_form(org, submitter).await?;
        let CheckedValues {
            valid,
            problems,
            applied,
        } = self.checked(&form, values).await?;

        let saved = SavedForm::new(problems, &applied);
        let entries = CheckedEntries {
            form,
            values,
            valid,
            computed: applied.computed,
        };
        Ok((entries, saved))
    }

    /// Keeps checked values in the caller's transaction, which the caller commits with its own change. Returns whether
    /// any value changed, too.
    pub async fn keep(
        &self,
        tx: WriteTransaction,
        person: &str,
        entries: CheckedEntries<'_>,
    ) -> Result<(WriteTransaction, bool), FormError> {
        let CheckedEntries {
            form,
            values,
            valid,
            computed,
        } = entries;
        let SignerTurn {
            mut tx,
            mut submitter,
            ..
        } = self
            .turn_in(tx, &form.submitter.org, form.submitter.id, person)
            .await?;

        let styled = take_style(&mut submitter, values);
        // A save without a new value is no start of signing.
        let is_changed = take(&form.fields, &mut submitter, valid) || styled;
        if is_changed {
            submitter.values.extend(computed);
            self.start(&mut tx, &mut submitter).await?;
            rooms::update_submitter(&mut tx, &submitter).await?;
        }

        Ok((tx, is_changed))
    }

    /// Signs: all required fields must be filled, with new or saved values, and the signer must
    /// consent; `consent` is what stands against one if there is no valid one. Valid values are saved even if others
    /// are rejected.
    ///
    /// `shown` is the [`ShownDocument::version`] on the signer's page. A document that changed since is
    /// not signed: without an order, another signer may have signed meanwhile. A client that does not
    /// send the version signs the current document.
    pub async fn finish(
        &self,
        org: &OrgId,
        (submitter, person): (i64, &str),
        values: &BTreeMap<String, String>,
        consent: Result<GivenConsent, Problems>,
        shown: Option<&str>,
        origin: &RequestOrigin,
    ) -> Result<(), FormError> {
        let form = self.unruled_form(org, submitter).await?;
        let CheckedValues {
            valid,
            mut problems,
            applied,
        } = self.checked(&form, values).await?;
        // A refused consent is one problem among others, so the signer sees all of them at once.
        let consent = match consent {
            Ok(consent) => Some(consent),
            Err(why) => {
                problems.extend(why);
                None
            }
        };

        let SignerTurn {
            mut tx,
            submission,
            mut submitter,
            submitters,
        } = self.turn(org, submitter, person).await?;
        // Computed under the lock, because another signer may have finished since the form was read.
        let signed = submitters.iter().filter(|other| has_signed(other)).cloned();
        let document = ShownDocument::new(
            submission.file(),
            submission.fields.clone(),
            form.dates.format,
            signed.collect(),
        );
        let version = document.version();

        // The rules were applied to the entries of others, and to this signer's own, before the lock.
        let answers = |saved: &BTreeMap<String, String>| {
            let mut all = saved.clone();
            all.extend(valid.clone());
            all.retain(|name, value| !value.is_empty() && !applied.computed.contains_key(name));
            all
        };
        let is_stale = applied.has_rules
            && (version != form.document.version()
                || answers(&submitter.values) != answers(&form.submitter.values));
        if is_stale || shown.is_some_and(|shown| shown != version) {
            problems.insert(DOCUMENT.into(), Message::new("problem-document-changed"));
        }

        // A page sends the results that the signer saw.
        for (name, result) in &applied.computed {
            if shown.is_some() && values.get(name).is_some_and(|seen| seen != result) {
                let why = Message::new("problem-result-changed");
                problems.entry(name.clone()).or_insert(why);
            }
        }

        let styled = take_style(&mut submitter, values);
        let changed = take(&form.fields, &mut submitter, valid) || styled;
        submitter.values.extend(applied.computed);

        // The day of signing comes from the server, because the clock of a browser can be set to any day.
        for field in &applied.fields {
            let value = submitter.values.entry(field.name.clone());
            let value = value.or_insert_with(|| unset(field).to_owned());
            if field.field_type == "date" && value == DAY_OF_SIGNING {
                value.clone_from(&form.today);
            }

            if is_missing(field, value) {
                let why = Message::new("problem-required");
                problems.entry(field.name.clone()).or_insert(why);
            }
        }

        // A signature field may be optional, but a contract without any signature is none.
        let shown_fields = applied.fields.iter();
        let shown_fields = shown_fields.filter(|field| !applied.hidden.contains(&field.name));
        if let Some(field) = unsigned(shown_fields, &submitter.values) {
            let why = Message::new("problem-unsigned");
            problems.entry(field.name.clone()).or_insert(why);
        }

        submitter.witness = stated_by_witness(&submitter, &submitters, values, &mut problems);
        if !problems.is_empty() {
            // The valid entries are kept, so that the signer corrects one field and not all. A statement
            // belongs to a signature only.
            submitter.witness = None;
            if changed {
                self.start(&mut tx, &mut submitter).await?;
                rooms::update_submitter(&mut tx, &submitter).await?;
                tx.commit().await?;
            }
            return Err(FormError::Invalid(problems));
        }

        // A field that its condition hides has no answer, even if the signer filled it in before.
        for name in &applied.hidden {
            submitter.values.insert(name.clone(), String::new());
            submitter.attachments.remove(name);
        }

        let now = self.clock.now();
        self.start(&mut tx, &mut submitter).await?;
        submitter.opened_at.get_or_insert(now);
        submitter.consented_at = Some(now);
        submitter.consent = consent;
        submitter.completed_at = Some(now);
        submitter.shown_sha256 = Some(version);

        // Keeps the address recorded at opening when this request has none.
        submitter.ip = origin.ip.clone().or(submitter.ip);
        submitter.user_agent = origin.user_agent.clone().or(submitter.user_agent);
        rooms::update_submitter(&mut tx, &submitter).await?;
        self.tell(&mut tx, &submitter).await?;

        // The lock makes one signer the last. The key keeps a repeated request from adding a second job.
        let completes = |other: &RoomSubmitter| other.id == submitter.id || has_signed(other);
        if submitters.iter().all(completes) {
            let job = ExecuteSubmission {
                submission: submission.id,
            };
            let key = submission.id.to_string();
            jobs::insert(&mut tx, org, &job, Some(&key), now + HEAD_START).await?;
        }

        Ok(tx.commit().await?)
    }

    /// Splits the submitted values into valid ones and problems, and applies the rules about answers.
    async fn checked(
        &self,
        form: &SigningForm,
        values: &BTreeMap<String, String>,
    ) -> Result<CheckedValues, FormError> {
        let mut valid = BTreeMap::new();
        let mut problems = Problems::new();
        // The sandbox limits the waiting calls of one document, so that a form cannot keep it from others.
        let owner = WorkOwner::new(&form.submitter.org, &form.submission.id.to_string());

        let typed = |field: &&RoomField| !field.is_locked() && field.field_type != ATTACHMENT;
        for field in form.fields.iter().filter(typed) {
            let Some(value) = values.get(&field.name).map(|value| value.trim()) else {
                continue;
            };

            // A stored signature was checked when it was first submitted.
            let known = form.submitter.values.get(&field.name);
            let known = known.is_some_and(|known| known == value && field.is_signature());
            let verdict = if known {
                Ok(value.to_owned())
            } else {
                self.check(field, value, &owner).await?
            };
            match verdict {
                Ok(stored) => drop(valid.insert(field.name.clone(), stored)),
                Err(why) => drop(problems.insert(field.name.clone(), why)),
            }
        }

        let mut given = form.submitter.values.clone();
        given.extend(valid.clone());
        let mut applied = self.apply_rules(form, &given).await?;
        let chosen = values.get(STYLE).and_then(|name| Handwriting::parse(name));
        let style = chosen.or(form.submitter.signature_style);
        let mut written = given.clone();
        written.extend(applied.computed.clone());

        written.retain(|name, _| !applied.hidden.contains(name));
        // Asked before the signature: a value without room would fail when the signer has gone.
        let unfit = self.fit_problems(form, &written, style).await?;
        applied.problems.extend(unfit);

        // A value against its rule is not saved. The others are judged without it.
        let all = std::mem::take(&mut applied.problems).into_iter();
        let (wrong, others) = all.partition(|(name, _)| valid.contains_key(name));
        let wrong: Problems = wrong;
        applied.problems = others;

        // A rejected value must not decide which fields are shown, so the rules see the earlier one again.
        if !wrong.is_empty() {
            for name in wrong.keys() {
                valid.remove(name);
                let before = form.submitter.values.get(name).cloned();
                given.insert(name.clone(), before.unwrap_or_default());
            }
            applied = self.apply_rules(form, &given).await?;
        }

        // A value that was saved on an earlier day may be wrong by now.
        problems.extend(std::mem::take(&mut applied.problems));
        problems.extend(wrong);

        Ok(CheckedValues {
            valid,
            problems,
            applied,
        })
    }

    /// Checks that a value fits its field, and returns it as it is stored. A picture is
    /// rendered in the sandbox, to see that it can be drawn.
    async fn check(
        &self,
        field: &RoomField,
        value: &str,
        owner: &WorkOwner,
    ) -> Result<Result<String, Message>, FormError> {
        // Cheap checks come before the sandbox call.
        let stored = match stored_value(field, value) {
            Ok(stored) => stored,
            Err(why) => return Ok(Err(why)),
        };
        if !field.is_signature() {
            return Ok(Ok(stored));
        }

        match SignatureValue::parse(value) {
            Ok(SignatureValue::Typed(_)) => Ok(Ok(stored)),
            Ok(SignatureValue::Drawn(picture)) => {
                let drawn = self
                    .components
                    .documents(None, self.store.priority())
                    .for_owner(owner.clone())
                    .picture_to_pdf(picture)
                    .await?;

                Ok(drawn
                    .map(|_| stored)
                    .map_err(|_| Message::new("problem-picture-unreadable")))
            }
            Err(why) => Ok(Err(why)),
        }
    }

    /// Records that the signer declined.
    pub async fn decline(
        &self,
        org: &OrgId,
        submitter: i64,
        person: &str,
        reason: &str,
        origin: &RequestOrigin,
    ) -> Result<(), FormError> {
        let SignerTurn {
            mut tx,
            mut submitter,
            ..
        } = self.turn(org, submitter, person).await?;
        submitter.declined_at = Some(self.clock.now());
        // Cut and not refused: a person who declines must not be held up by a limit.
        submitter.decline_reason = Some(reason.chars().take(TEXT_LIMIT).collect());

        submitter.ip = origin.ip.clone().or(submitter.ip);
        submitter.user_agent = origin.user_agent.clone().or(submitter.user_agent);
        rooms::update_submitter(&mut tx, &submitter).await?;
        self.tell(&mut tx, &submitter).await?;

        Ok(tx.commit().await?)
    }

    /// Opens a transaction with the submission locked; fails unless it is this signer's turn. `person` is
    /// the address of the visitor: another person may have taken the place since the request began.
    pub(super) async fn turn(
        &self,
        org: &OrgId,
        submitter: i64,
        person: &str,
    ) -> Result<SignerTurn, FormError> {
        let tx = self.store.begin().await?;
        self.turn_in(tx, org, submitter, person).await
    }

    /// Like [`Room::turn`], in a transaction of the caller.
    async fn turn_in(
        &self,
        mut tx: WriteTransaction,
        org: &OrgId,
        submitter: i64,
        person: &str,
    ) -> Result<SignerTurn, FormError> {
        let found = rooms::submitter(&mut tx, org, submitter)
            .await?
            .ok_or(FormError::NotFound)?;

        // Serializes all changes of a submission: two signers cannot both be the last one.
        let submission = rooms::lock_submission(&mut tx, org, found.submission)
            .await?
            .ok_or(FormError::NotFound)?;
        let submitters = rooms::submitters(&mut tx, org, submission.id).await?;
        let mut submitter = submitters
            .iter()
            .find(|candidate| candidate.id == submitter)
            .cloned()
            .ok_or(FormError::NotFound)?;
        drop_loose_files(&submission, &mut submitter);

        // One decline ends the document for all, although the others have not answered.
        let declined = submitters
            .iter()
            .any(|submitter| submitter.declined_at.is_some());
        let is_replaced = submitter.email != person;
        if is_replaced || submitter.is_done() || declined || submission.archived_at.is_some() {
            return Err(FormError::Closed);
        }
        if waits_for(&submission, &submitter, &submitters).is_some() {
            return Err(FormError::NotYourTurn);
        }

        Ok(SignerTurn {
            tx,
            submission,
            submitter,
            submitters,
        })
    }

    /// Records the start of signing when the first field is saved.
    pub(super) async fn start(
        &self,
        tx: &mut WriteTransaction,
        submitter: &mut RoomSubmitter,
    ) -> Result<(), FormError> {
        if submitter.started_at.is_none() {
            submitter.started_at = Some(self.clock.now());
            self.tell(tx, submitter).await?;
        }
        Ok(())
    }
}

/// Values of a form that [`Room::checked_entries`] has checked.
pub struct CheckedEntries<'a> {
    form: SigningForm,
    /// Submitted values.
    values: &'a BTreeMap<String, String>,
    valid: BTreeMap<String, String>,
    /// Results of formulas by field name.
    computed: BTreeMap<String, String>,
}

/// Submitted values, checked.
struct CheckedValues {
    valid: BTreeMap<String, String>,
    problems: Problems,
    applied: AppliedRules,
}

fn has_signed(submitter: &RoomSubmitter) -> bool {
    submitter.completed_at.is_some()
}

/// Returns the name and the postal address that a witness of a signer states, in one line each; none for
/// other signers. Problems of them are added.
fn stated_by_witness(
    submitter: &RoomSubmitter,
    submitters: &[RoomSubmitter],
    values: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> Option<WitnessStatement> {
    let role = submitter.witness_of.as_ref()?;
    let [name, address] = WITNESS.map(|control| {
        let entered = values.get(control).map_or("", String::as_str);
        let line = entered.replace(char::is_control, " ").trim().to_owned();
        if line.is_empty() {
            problems.insert(control.into(), Message::new("problem-required"));
        } else if line.chars().count() > LONGEST_STATEMENT {
            let why = Message::with_limit("problem-too-long", LONGEST_STATEMENT);
            problems.insert(control.into(), why);
        }
        line
    });

    // On the device of the signer, only the name distinguishes the two.
    let mut witnessed = submitters
        .iter()
        .filter(|other| other.role.eq_ignore_ascii_case(role));
    if witnessed.any(|signer| is_same_name(&signer.name, &name)) {
        problems.insert(WITNESS[0].into(), Message::new("problem-own-witness"));
    }

    Some(WitnessStatement { name, address })
}

/// Compares names without regard to case and spaces.
fn is_same_name(left: &str, right: &str) -> bool {
    let letters = |name: &str| name.to_lowercase().replace(char::is_whitespace, "");
    letters(left) == letters(right)
}

/// Stores the style of typed signatures; returns whether it changed. An unknown style is ignored,
/// like unknown fields: programs that fill in every control must still be able to sign.
fn take_style(submitter: &mut RoomSubmitter, values: &BTreeMap<String, String>) -> bool {
    let chosen = values.get(STYLE).and_then(|name| Handwriting::parse(name));
    let changed = chosen.is_some() && chosen != submitter.signature_style;
    submitter.signature_style = chosen.or(submitter.signature_style);
    changed
}

/// Stores values in the signer's fields; returns whether any value changed.
fn take(
    fields: &[RoomField],
    submitter: &mut RoomSubmitter,
    values: BTreeMap<String, String>,
) -> bool {
    let mut changed = false;
    for field in fields {
        let Some(value) = values.get(&field.name) else {
            continue;
        };

        // An unticked box is an answer; an empty text is none.
        changed |= match submitter.values.get(&field.name) {
            Some(before) => value != before,
            None => !value.is_empty(),
        };

        submitter.values.insert(field.name.clone(), value.clone());
    }

    changed
}

/// Removes values of fields for files that have no file: the sender may have prefilled them.
fn drop_loose_files(submission: &RoomSubmission, submitter: &mut RoomSubmitter) {
    let own = submission.fields.iter();
    let own = own.filter(|field| field.submitter_uuid == submitter.role);
    for field in own.filter(|field| field.field_type == ATTACHMENT) {
        if !submitter.attachments.contains_key(&field.name) {
            submitter.values.remove(&field.name);
        }
    }
}

fn own_fields(submission: &RoomSubmission, submitter: &RoomSubmitter) -> Vec<RoomField> {
    let own = |field: &&RoomField| field.submitter_uuid == submitter.role;
    let mut fields: Vec<RoomField> = submission.fields.iter().filter(own).cloned().collect();
    // The server sets the day of signing, so its field takes no entry.
    for field in &mut fields {
        let value = submitter.values.get(&field.name);
        field.readonly |= field.field_type == "date" && value.is_some_and(|v| v == DAY_OF_SIGNING);
    }

    fields.sort_by_key(reading_order);
    let mut signatures = fields.iter_mut().filter(|field| field.is_signature());

    // The only signature field is always required; the page and the browser enforce the same.
    if let (Some(only), None) = (signatures.next(), signatures.next()) {
        only.required = true;
    }

    fields
}

/// Place of a field for a reader: page, row and distance from the left. Rows are a hundredth of the
/// page, because fields of one line rarely have exactly the same height. A field with several places
/// counts where it is first, and one without a place comes last.
fn reading_order(field: &RoomField) -> (u32, i64, i64) {
    #[expect(clippy::cast_possible_truncation, reason = "fractions of a page")]
    let place = |area: &Area| {
        let row = (area.y * 100.0).round() as i64;
        (area.page, row, (area.x * 10_000.0).round() as i64)
    };
    let first = field.areas.iter().map(place).min();
    first.unwrap_or((u32::MAX, 0, 0))
}

/// Returns the first signature or initials field, if the signer has filled none of them.
fn unsigned<'a>(
    fields: impl Iterator<Item = &'a RoomField> + Clone,
    values: &BTreeMap<String, String>,
) -> Option<&'a RoomField> {
    let mut signatures = fields.filter(|field| field.is_signature());
    let executed = |field: &RoomField| values.get(&field.name).is_some_and(|v| !v.is_empty());
    // An approver has no such field and signs nothing.
    let first = signatures.clone().next()?;
    (!signatures.any(executed)).then_some(first)
}

fn waits_for(
    submission: &RoomSubmission,
    submitter: &RoomSubmitter,
    submitters: &[RoomSubmitter],
) -> Option<String> {
    let is_before = |other: &RoomSubmitter| {
        // Signers of one group have the same turn and do not wait for each other.
        let is_earlier = submission.preserve_order && other.turn < submitter.turn;
        let witnessed = submitter.witness_of.as_deref();
        // A witness waits for the signature, also without an order.
        is_earlier || witnessed.is_some_and(|role| other.role.eq_ignore_ascii_case(role))
    };
    submitters
        .iter()
        .find(|other| is_before(other) && other.completed_at.is_none())
        .map(|other| other.name.clone())
}

/// Returns the value of an untouched field.
fn unset(field: &RoomField) -> &'static str {
    match field.field_type.as_str() {
        "checkbox" => "false",
        _ => "",
    }
}

fn is_missing(field: &RoomField, value: &str) -> bool {
    let empty = match field.field_type.as_str() {
        "checkbox" => value != "true",
        _ => value.is_empty(),
    };
    field.required && empty && !field.is_locked()
}

/// Checks the format of a value, and returns its stored form; empty values pass.
pub(super) fn stored_value(field: &RoomField, value: &str) -> Result<String, Message> {
    // Pictures have a limit of their own, in bytes.
    let picture = field.is_signature() && is_picture(value);
    if !picture && value.chars().count() > TEXT_LIMIT {
        return Err(Message::with_limit("problem-too-long", TEXT_LIMIT));
    }

    let stored = entry::stored(&field.field_type, &field.options, value);
    stored.ok_or(match field.field_type.as_str() {
        "number" => Message::new("problem-number"),
        "date" => Message::new("problem-date"),
        _ => Message::new("problem-option"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::field::FieldRules;

    fn field(field_type: &str) -> RoomField {
        RoomField {
            uuid: String::new(),
            submitter_uuid: "Buyer".into(),
            name: "field".into(),
            field_type: field_type.into(),
            required: true,
            readonly: false,
            default_value: None,
            options: vec!["red".into(), "blue".into()],
            areas: Vec::new(),
            rules: FieldRules::default(),
        }
    }

    #[test]
    fn form_values_have_to_match_their_field_type() {
        for (field_type, good, bad) in [
            ("number", "12.5", "twelve"),
            ("number", "-3", "NaN"),
            ("date", "2026-11-21", "21.11.2026"),
            ("checkbox", "true", "yes"),
            ("select", "red", "green"),
        ] {
            assert!(
                stored_value(&field(field_type), good).is_ok(),
                "{field_type} {good}"
            );
            assert!(
                stored_value(&field(field_type), bad).is_err(),
                "{field_type} {bad}"
            );
        }

        assert!(stored_value(&field("text"), &"x".repeat(TEXT_LIMIT + 1)).is_err());
    }

    #[test]
    fn fields_are_offered_in_reading_order() {
        let at = |name: &str, places: &[(u32, f64, f64)]| RoomField {
            name: name.into(),
            areas: places
                .iter()
                .map(|&(page, x, y)| Area {
                    page,
                    x,
                    y,
                    w: 0.1,
                    h: 0.02,
                })
                .collect(),
            ..field("text")
        };

        let mut fields = [
            at("page 4", &[(4, 0.1, 0.1)]),
            at("nowhere", &[]),
            at("second column", &[(1, 0.6, 0.501)]),
            at("first column", &[(1, 0.1, 0.503)]),
            at("two places", &[(3, 0.1, 0.1), (1, 0.1, 0.2)]),
        ];
        fields.sort_by_key(reading_order);

        let names = fields.map(|field| field.name);
        let expected = [
            "two places",
            "first column",
            "second column",
            "page 4",
            "nowhere",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_required_checkbox_has_to_be_ticked() {
        assert!(is_missing(&field("checkbox"), "false"));
        assert!(!is_missing(&field("checkbox"), "true"));
        assert!(is_missing(&field("text"), ""));
        let optional = RoomField {
            required: false,
            ..field("text")
        };
        assert!(!is_missing(&optional, ""));
    }
}
