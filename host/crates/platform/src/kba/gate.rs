//! The identity check in front of a document, and one step through it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::outcome;
use crate::{Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_components::providers::{KbaProvider, ProviderError, kba as provider};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::id::KbaId;
use holdfast_domain::identity::{self, KbaSession, KbaStatus, KbaStep};
use holdfast_domain::locale::Message;
use holdfast_store::{envelopes, kba};

/// Time limit of one attempt, from its start.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Window of the two limits below.
const WINDOW: Duration = Duration::from_secs(86_400);
/// Failed attempts allowed within the window.
const FAILURES: usize = 3;
/// Attempts allowed within the window. Each one may cost the provider something.
const BEGINNINGS: usize = 10;
/// Attempts allowed in total, so that guessing day after day cannot succeed.
const BEGINNINGS_IN_ALL: usize = 30;
/// Wrong codes allowed in one attempt.
const WRONG_CODES: usize = 3;

/// State of the identity check for one signer.
pub enum IdentityGate {
    /// The document may be shown.
    Open,
    Shown(IdentityPage),
}

/// Page of the identity check.
pub struct IdentityPage {
    pub asked: IdentityPrompt,
    /// Notice about the last step.
    pub notice: Option<IdentityNotice>,
    /// Problems by control.
    pub problems: BTreeMap<String, Message>,
}

impl IdentityPage {
    fn new(asked: IdentityPrompt) -> Self {
        Self {
            asked,
            notice: None,
            problems: BTreeMap::new(),
        }
    }
}

/// Content of the page.
pub enum IdentityPrompt {
    /// Form for the signer's identity data.
    Identity(Vec<IdentityInput>),
    /// Form for the code that was sent to the signer's phone.
    Code { until: Timestamp },
    Questions {
        questions: Vec<IdentityQuestion>,
        until: Timestamp,
    },
    /// Offer to try again, with the number of attempts left.
    Again { left: usize },
    /// Too many attempts; the signer may return at this time.
    Wait { until: Timestamp },
    /// Too many attempts in total; there is no further one.
    Exhausted,
    /// Another request of this session is in progress.
    Busy,
    /// The provider knows too little about the person described. With `again`, the signer may
    /// correct their data.
    Unavailable { again: bool },
}

/// Input field of the identity form.
#[derive(Clone, Debug)]
pub struct IdentityInput {
    pub name: String,
    pub label: String,
    pub required: bool,
    /// Prefilled or previously entered value.
    pub value: String,
}

/// Question with its choices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IdentityQuestion {
    pub id: String,
    pub text: String,
    /// Pairs of id and text.
    pub choices: Vec<(String, String)>,
}

/// Result of the last step that the signer should know about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityNotice {
    TimeIsOver,
    WrongCode,
    /// The provider did not accept the entered data.
    NotAccepted,
    /// The provider limits the rate.
    TooMany,
    /// The provider could not be reached.
    TryLater,
}

/// Submitted form.
pub struct IdentitySubmission {
    /// Entered values by control.
    pub values: BTreeMap<String, String>,
    pub consent: bool,
    /// Nothing is entered yet: the signer wants to start again.
    pub again: bool,
    pub ip: Option<String>,
}

/// State of a session between two steps. Stored sealed, and deleted with the session's end.
#[derive(Serialize, Deserialize)]
struct SealedSessionState {
    state: String,
    questions: Vec<IdentityQuestion>,
    wrong_codes: usize,
}

/// Returns whether the document may be shown to this signer.
pub async fn is_open(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<bool, ServiceError> {
    if !signer.challenged {
        return Ok(true);
    }
    let mut connection = core.store.read().await?;
    let sessions = kba::of_signer(&mut connection, envelope, signer).await?;
    Ok(has_passed(&sessions))
}

fn has_passed(sessions: &[KbaSession]) -> bool {
    sessions
        .iter()
        .any(|session| session.status == KbaStatus::Passed)
}

/// Returns the page for the signer's current state.
pub async fn gate(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    ip: Option<String>,
) -> Result<IdentityGate, ServiceError> {
    if !signer.challenged {
        return Ok(IdentityGate::Open);
    }

    let challenge = IdentityCheck::of(core, envelope, signer).await?;
    let shown = match challenge.standing() {
        SignerStanding::Passed => return Ok(IdentityGate::Open),
        SignerStanding::At(session) => challenge.show(session)?,
        SignerStanding::Unavailable => challenge.unavailable().await?,
        SignerStanding::Locked(until) => IdentityPrompt::Wait { until },
        SignerStanding::Exhausted => IdentityPrompt::Exhausted,
        SignerStanding::Failed { left } => IdentityPrompt::Again { left },
        SignerStanding::Fresh => {
            let fields = challenge.fields().await?;
            // In the sandbox a start is free. Elsewhere a page view must not use up an attempt.
            if fields.is_empty() && challenge.instance() == EMBEDDED {
                return challenge.start(Vec::new(), ip).await;
            }
            IdentityPrompt::Identity(fields)
        }
    };

    Ok(IdentityGate::Shown(IdentityPage::new(shown)))
}

/// Processes the submitted form, according to the signer's current state.
pub async fn go_on(
    core: &Core,
    envelope: &Envelope,
    signer: &Signer,
    given: IdentitySubmission,
) -> Result<IdentityGate, ServiceError> {
    if !signer.challenged {
        return Ok(IdentityGate::Open);
    }

    let challenge = IdentityCheck::of(core, envelope, signer).await?;
    match challenge.standing() {
        SignerStanding::Passed => Ok(IdentityGate::Open),
        SignerStanding::Locked(until) => Ok(IdentityGate::Shown(IdentityPage::new(
            IdentityPrompt::Wait { until },
        ))),
        SignerStanding::Exhausted => Ok(IdentityGate::Shown(IdentityPage::new(
            IdentityPrompt::Exhausted,
        ))),
        SignerStanding::At(session) => challenge.answer(session.clone(), given).await,
        SignerStanding::Fresh | SignerStanding::Failed { .. } | SignerStanding::Unavailable => {
            challenge.begin(given).await
        }
    }
}

/// State of a signer's attempts.
enum SignerStanding<'a> {
    Passed,
    At(&'a KbaSession),
    Unavailable,
    Locked(Timestamp),
    Exhausted,
    Failed { left: usize },
    Fresh,
}

/// Identity check of one signer.
struct IdentityCheck<'a> {
    core: &'a Core,
    envelope: &'a Envelope,
    signer: &'a Signer,
    sessions: Vec<KbaSession>,
}

impl<'a> IdentityCheck<'a> {
    async fn of(
        core: &'a Core,
        envelope: &'a Envelope,
        signer: &'a Signer,
    ) -> Result<Self, ServiceError> {
        let mut connection = core.store.read().await?;
        let sessions = kba::of_signer(&mut connection, envelope, signer).await?;
        Ok(Self {
            core,
            envelope,
            signer,
            sessions,
        })
    }

    fn standing(&self) -> SignerStanding<'_> {
        standing(&self.sessions, self.core.clock.now())
    }

    /// Opens a provider instance. A running session stays with the instance that started it.
    fn provider(&self, instance: &str) -> Result<Box<dyn KbaProvider>, ServiceError> {
        super::provider(self.core, &self.envelope.org, instance)
    }

    /// Returns the organization's instance.
    fn instance(&self) -> String {
        self.core.instance(Slot::Kba, &self.envelope.org)
    }

    /// Returns the fields that the provider requires, prefilled with the signer's name.
    async fn fields(&self) -> Result<Vec<IdentityInput>, ServiceError> {
        let instance = self.instance();
        let declared = self
            .provider(&instance)?
            .required_identity()
            .await
            .map_err(|error| failed(error.into()))?;
        // Only a suggestion. The signer corrects a name that has other parts.
        let (first, last) = self
            .signer
            .name
            .rsplit_once(' ')
            .unwrap_or((&self.signer.name, ""));

        Ok(declared
            .into_iter()
            .map(|field| IdentityInput {
                value: match field.name.as_str() {
                    "first_name" => first.trim().to_owned(),
                    "last_name" => last.to_owned(),
                    _ => String::new(),
                },
                name: field.name,
                label: field.label,
                required: field.required,
            })
            .collect())
    }

    /// Lets the signer correct their data. Where none is entered, the answer would stay the same.
    async fn unavailable(&self) -> Result<IdentityPrompt, ServiceError> {
        let again = !self.fields().await?.is_empty();
        Ok(IdentityPrompt::Unavailable { again })
    }

    fn show(&self, session: &KbaSession) -> Result<IdentityPrompt, ServiceError> {
        let until = session.expires_at;
        Ok(match session.step {
            KbaStep::Code => IdentityPrompt::Code { until },
            KbaStep::Questions => IdentityPrompt::Questions {
                questions: self.kept(session)?.questions,
                until,
            },
            // Another request is waiting for the provider's answer.
            KbaStep::Starting | KbaStep::Answering => IdentityPrompt::Busy,
        })
    }

    fn kept(&self, session: &KbaSession) -> Result<SealedSessionState, ServiceError> {
        // The session's id is the context of the encryption: a state in another row does not open.
        let sealed = session.sealed.as_deref().unwrap_or_default();
        let opened = self.core.cipher.open(sealed, session.id.as_str());
        opened
            .and_then(|text| serde_json::from_str(&text).ok())
            .ok_or_else(|| ServiceError::Internal(format!("{} cannot be opened", session.id)))
    }

    /// Starts an attempt with the entered identity data.
    async fn begin(&self, given: IdentitySubmission) -> Result<IdentityGate, ServiceError> {
        let fields = self.fields().await?;
        // Without fields there is nothing to correct, so the provider would answer the same again.
        if fields.is_empty() && matches!(self.standing(), SignerStanding::Unavailable) {
            let asked = IdentityPrompt::Unavailable { again: false };
            return Ok(IdentityGate::Shown(IdentityPage::new(asked)));
        }

        // Without identity fields, the form answers an attempt that has expired.
        let about_them = fields
            .iter()
            .any(|field| given.values.contains_key(&field.name));
        let begun_before =
            !self.sessions.is_empty() && matches!(self.standing(), SignerStanding::Fresh);
        let late = begun_before && !given.again && !about_them;
        let notice = late.then_some(IdentityNotice::TimeIsOver);
        if !fields.is_empty() && (given.again || !about_them) {
            return Ok(IdentityGate::Shown(IdentityPage {
                notice,
                ..IdentityPage::new(IdentityPrompt::Identity(fields))
            }));
        }

        let now = self.core.clock.now();
        let mut problems = BTreeMap::new();
        let mut identity = Vec::new();
        for field in &fields {
            let text = given.values.get(&field.name).map_or("", |text| text.trim());
            if text.is_empty() {
                if field.required {
                    problems.insert(field.name.clone(), Message::new("identity-needed"));
                }
                continue;
            }

            match identity::read(&field.name, text, now) {
                Ok(value) => identity.push((field.name.clone(), value)),
                Err(why) => drop(problems.insert(field.name.clone(), why)),
            }
        }

        // The data goes to a third party, so the signer has to agree before anything is sent.
        if !fields.is_empty() && !given.consent {
            problems.insert("consent".into(), Message::new("identity-consent-needed"));
        }

        if !problems.is_empty() {
            // Entered values go back to the browser they came from and are stored nowhere.
            let typed = |field: IdentityInput| IdentityInput {
                value: given.values.get(&field.name).cloned().unwrap_or_default(),
                ..field
            };
            return Ok(IdentityGate::Shown(IdentityPage {
                asked: IdentityPrompt::Identity(fields.into_iter().map(typed).collect()),
                notice: None,
                problems,
            }));
        }

        let begun = self.start(identity, given.ip).await?;
        Ok(match notice {
            Some(notice) => with(begun, notice),
            None => begun,
        })
    }

    /// Starts a session at the provider. The attempt is committed before the call, so that it
    /// counts regardless of the outcome.
    async fn start(
        &self,
        mut identity: Vec<(String, String)>,
        ip: Option<String>,
    ) -> Result<IdentityGate, ServiceError> {
        let now = self.core.clock.now();
        let session = KbaSession {
            id: KbaId::new(),
            org: self.envelope.org.clone(),
            envelope: self.envelope.id.clone(),
            position: self.signer.position,
            email: self.signer.email.clone(),
            instance: self.instance(),
            status: KbaStatus::Open,
            step: KbaStep::Starting,
            sealed: None,
            provider_session: None,
            ip,
            price_cents: 0,
            started_at: now,
            expires_at: now + TIME_LIMIT,
            ended_at: None,
        };

        // Before the attempt is counted: without a provider it would be lost.
        let provider = self.provider(&session.instance)?;
        let mut tx = self.core.store.begin().await?;
        let (org, id) = (&self.envelope.org, &self.envelope.id);

        // The envelope's lock serializes parallel starts, so that the limits hold.
        envelopes::lock(&mut tx, org, id).await?;
        let sessions = kba::of_signer(&mut tx, self.envelope, self.signer).await?;
        match standing(&sessions, now) {
            SignerStanding::Passed => return Ok(IdentityGate::Open),
            SignerStanding::At(_) => {
                return Ok(IdentityGate::Shown(IdentityPage::new(IdentityPrompt::Busy)));
            }
            SignerStanding::Locked(until) => {
                return Ok(IdentityGate::Shown(IdentityPage::new(
                    IdentityPrompt::Wait { until },
                )));
            }
            SignerStanding::Exhausted => {
                return Ok(IdentityGate::Shown(IdentityPage::new(
                    IdentityPrompt::Exhausted,
                )));
            }
            SignerStanding::Unavailable | SignerStanding::Failed { .. } | SignerStanding::Fresh => {
            }
        }

        kba::insert(&mut tx, &session).await?;
        tx.commit().await?;
        // From the envelope and not from the form, in which a signer could enter another person's address.
        identity.push(("email".into(), self.signer.email.clone()));
        let progress = provider.start(identity).await;
        self.follow(session, progress, 0).await
    }

    /// Submits a code or answers.
    async fn answer(
        &self,
        session: KbaSession,
        given: IdentitySubmission,
    ) -> Result<IdentityGate, ServiceError> {
        let asked = self.show(&session)?;
        let answers = match &asked {
            IdentityPrompt::Code { .. } => {
                let code = given.values.get("code").map_or("", |code| code.trim());
                if code.is_empty() {
                    return Ok(incomplete(
                        asked,
                        [("code", Message::new("identity-enter-code"))],
                    ));
                }

                vec![("code".to_owned(), code.to_owned())]
            }
            IdentityPrompt::Questions { questions, .. } => {
                let answer = |question: &IdentityQuestion| given.values.get(&question.id).cloned();
                let unanswered: Vec<&str> = questions
                    .iter()
                    .filter(|question| answer(question).is_none_or(|answer| answer.is_empty()))
                    .map(|question| question.id.as_str())
                    .collect();
                if !unanswered.is_empty() {
                    let problems: Vec<(String, Message)> = unanswered
                        .into_iter()
                        .map(|id| (id.to_owned(), Message::new("identity-choose")))
                        .collect();
                    return Ok(incomplete(asked, problems));
                }

                questions
                    .iter()
                    .filter_map(|question| Some((question.id.clone(), answer(question)?)))
                    .collect()
            }
            _ => return Ok(IdentityGate::Shown(IdentityPage::new(asked))),
        };

        // Opened before the step is taken: a session that cannot be opened must not be left in progress.
        let kept = self.kept(&session)?;
        let sealed = session.sealed.clone();
        let provider = self.provider(&session.instance)?;
        let mut tx = self.core.store.begin().await?;

        // Compare-and-swap of the step: of two identical submissions, one reaches the provider.
        let taken = kba::step(&mut tx, &session, KbaStep::Answering, sealed.as_deref()).await?;
        tx.commit().await?;
        if !taken {
            return Ok(IdentityGate::Shown(IdentityPage::new(IdentityPrompt::Busy)));
        }

        let progress = match session.step {
            KbaStep::Code => {
                let code = answers.first().map_or("", |(_, code)| code);
                provider.submit_code(&kept.state, code).await
            }
            _ => provider.submit_answers(&kept.state, answers).await,
        };

        let before = session.step;
        let session = KbaSession {
            step: KbaStep::Answering,
            // Record the address of the answer, not the one that opened the page.
            ip: given.ip.or(session.ip),
            ..session
        };
        if let Err(ProviderError::Unreachable(_)) = &progress {
            // The provider may have processed it. The signer can send the same again; the plugin
            // detects a repeat.
            let mut tx = self.core.store.begin().await?;
            // A session that has ended meanwhile stays as it is; the next submission shows its state.
            kba::step(&mut tx, &session, before, sealed.as_deref()).await?;
            tx.commit().await?;

            return Ok(IdentityGate::Shown(IdentityPage {
                notice: Some(IdentityNotice::TryLater),
                ..IdentityPage::new(asked)
            }));
        }

        // Kept with the session, so that a reload does not give further codes.
        let codes = match &progress {
            Ok(progress) if progress.step == provider::Step::CodeWrong => kept.wrong_codes + 1,
            _ => kept.wrong_codes,
        };
        self.follow(session, progress, codes).await
    }

    /// Applies the provider's answer to the session.
    async fn follow(
        &self,
        session: KbaSession,
        progress: Result<provider::Progress, ProviderError>,
        wrong_codes: usize,
    ) -> Result<IdentityGate, ServiceError> {
        let progress = match progress {
            Ok(progress) => progress,
            Err(error) => return self.broken_off(session, error).await,
        };
        let provider_session = Some(progress.session_id.as_str());
        let (step, questions, notice) = match progress.step {
            provider::Step::CodeSent => (KbaStep::Code, Vec::new(), None),
            // Each wrong code sends another one to a phone, which may be a stranger's.
            provider::Step::CodeWrong if wrong_codes >= WRONG_CODES => {
                let shown = self
                    .ended(&session, KbaStatus::Ended, provider_session)
                    .await?;
                return Ok(with(shown, IdentityNotice::TooMany));
            }
            provider::Step::CodeWrong => {
                (KbaStep::Code, Vec::new(), Some(IdentityNotice::WrongCode))
            }
            provider::Step::Questions(questions) => {
                let questions = questions.into_iter().map(question).collect();
                (KbaStep::Questions, questions, None)
            }
            provider::Step::Passed => {
                return self
                    .ended(&session, KbaStatus::Passed, provider_session)
                    .await;
            }
            provider::Step::Failed => {
                return self
                    .ended(&session, KbaStatus::Failed, provider_session)
                    .await;
            }
            provider::Step::Unavailable => {
                let status = KbaStatus::Unavailable;
                return self.ended(&session, status, provider_session).await;
            }
            provider::Step::Expired => {
                let shown = self
                    .ended(&session, KbaStatus::Ended, provider_session)
                    .await?;
                return Ok(with(shown, IdentityNotice::TimeIsOver));
            }
        };

        let kept = SealedSessionState {
            state: progress.state,
            questions,
            wrong_codes,
        };
        let text = json!(kept).to_string();
        let sealed = self.core.cipher.encrypt(&text, session.id.as_str());

        // Only if the session is still open: its time may be over, or another tab has ended it.
        let mut tx = self.core.store.begin().await?;
        let moved = kba::step(&mut tx, &session, step, Some(&sealed)).await?;
        tx.commit().await?;
        let until = session.expires_at;
        let asked = match (moved, step) {
            (true, KbaStep::Code) => IdentityPrompt::Code { until },
            (true, _) => IdentityPrompt::Questions {
                questions: kept.questions,
                until,
            },
            // The session has expired, or another request has ended it.
            (false, _) => return self.as_it_is(Some(IdentityNotice::TimeIsOver)).await,
        };

        Ok(IdentityGate::Shown(IdentityPage {
            notice,
            ..IdentityPage::new(asked)
        }))
    }

    async fn ended(
        &self,
        session: &KbaSession,
        status: KbaStatus,
        provider_session: Option<&str>,
    ) -> Result<IdentityGate, ServiceError> {
        let (core, envelope, signer) = (self.core, self.envelope, self.signer);
        outcome::record(core, envelope, signer, session, status, provider_session).await?;
        self.as_it_is(None).await
    }

    /// Ends the session without a result after a provider error. The signer may start again.
    async fn broken_off(
        &self,
        session: KbaSession,
        error: ProviderError,
    ) -> Result<IdentityGate, ServiceError> {
        let notice = match &error {
            ProviderError::Rejected(_) => IdentityNotice::NotAccepted,
            ProviderError::RateLimited(_) => IdentityNotice::TooMany,
            _ => IdentityNotice::TryLater,
        };
        let (core, envelope, signer) = (self.core, self.envelope, self.signer);
        // No result: nothing goes to the ledger, and no price is charged. The attempt counts all the same.
        outcome::record(core, envelope, signer, &session, KbaStatus::Ended, None).await?;

        // A provider's refusal may quote the signer's input, which must not be logged.
        let why = match &error {
            ProviderError::Rejected(_) => "refused".to_owned(),
            other => other.to_string(),
        };
        tracing::warn!(kba = %session.id, why, "identity provider call failed");

        // Other errors are the provider's and not the signer's, and are answered as an outage.
        match notice {
            IdentityNotice::NotAccepted | IdentityNotice::TooMany => {
                self.as_it_is(Some(notice)).await
            }
            _ => Err(failed(error)),
        }
    }

    /// Returns the state after a step. Never starts an attempt.
    async fn as_it_is(&self, notice: Option<IdentityNotice>) -> Result<IdentityGate, ServiceError> {
        let now = Self::of(self.core, self.envelope, self.signer).await?;
        let asked = match now.standing() {
            SignerStanding::Passed => return Ok(IdentityGate::Open),
            SignerStanding::At(session) => now.show(session)?,
            SignerStanding::Unavailable => now.unavailable().await?,
            SignerStanding::Locked(until) => IdentityPrompt::Wait { until },
            SignerStanding::Exhausted => IdentityPrompt::Exhausted,
            SignerStanding::Failed { left } => IdentityPrompt::Again { left },
            SignerStanding::Fresh => IdentityPrompt::Identity(now.fields().await?),
        };

        Ok(IdentityGate::Shown(IdentityPage {
            notice,
            ..IdentityPage::new(asked)
        }))
    }
}

fn standing(sessions: &[KbaSession], now: Timestamp) -> SignerStanding<'_> {
    // A pass counts for good, so no limit is looked at.
    if has_passed(sessions) {
        return SignerStanding::Passed;
    }

    let open =
        |session: &&KbaSession| session.status == KbaStatus::Open && session.expires_at > now;
    // Before the limits: a session that runs may end, even if it is the last one.
    if let Some(session) = sessions.iter().rev().find(open) {
        return SignerStanding::At(session);
    }
    if sessions.len() >= BEGINNINGS_IN_ALL {
        return SignerStanding::Exhausted;
    }

    let recent: Vec<&KbaSession> = sessions
        .iter()
        .filter(|session| session.started_at > now - WINDOW)
        .collect();
    let failures: Vec<&&KbaSession> = recent
        .iter()
        .filter(|session| session.status == KbaStatus::Failed)
        .collect();

    // The limit is free again when the oldest of the last `limit` attempts leaves the window.
    let over = |times: Vec<Timestamp>, limit: usize| {
        let oldest = times.len().checked_sub(limit)?;
        times.get(oldest).map(|at| *at + WINDOW)
    };
    let failed_at = failures.iter().map(|session| session.started_at).collect();
    let begun_at = recent.iter().map(|session| session.started_at).collect();
    if let Some(until) = over(failed_at, FAILURES).or_else(|| over(begun_at, BEGINNINGS)) {
        return SignerStanding::Locked(until);
    }

    // Sessions without a result are skipped, so that they do not hide an `unavailable`, which is final.
    let last = sessions
        .iter()
        .rev()
        .find(|session| super::is_result(session.status));
    match last.map(|session| session.status) {
        Some(KbaStatus::Unavailable) => SignerStanding::Unavailable,
        Some(KbaStatus::Failed) => SignerStanding::Failed {
            left: FAILURES - failures.len(),
        },
        _ => SignerStanding::Fresh,
    }
}

fn question(question: provider::Question) -> IdentityQuestion {
    IdentityQuestion {
        id: question.id,
        text: question.text,
        choices: question
            .choices
            .into_iter()
            .map(|choice| (choice.id, choice.text))
            .collect(),
    }
}

fn incomplete<Name: Into<String>>(
    asked: IdentityPrompt,
    problems: impl IntoIterator<Item = (Name, Message)>,
) -> IdentityGate {
    let problems = problems.into_iter().map(|(name, why)| (name.into(), why));
    IdentityGate::Shown(IdentityPage {
        problems: problems.collect(),
        ..IdentityPage::new(asked)
    })
}

fn with(gate: IdentityGate, notice: IdentityNotice) -> IdentityGate {
    match gate {
        IdentityGate::Open => IdentityGate::Open,
        IdentityGate::Shown(shown) => IdentityGate::Shown(IdentityPage {
            notice: Some(notice),
            ..shown
        }),
    }
}

fn failed(error: ProviderError) -> ServiceError {
    ServiceError::OtherProvider(Slot::Kba, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::id::{EnvelopeId, OrgId};

    fn session(status: KbaStatus, started: i64) -> KbaSession {
        let at = Timestamp::from_millis(started * 1000);
        KbaSession {
            id: KbaId::new(),
            org: OrgId::new(),
            envelope: EnvelopeId::new(),
            position: 0,
            email: "kim@birch.example".into(),
            instance: "embedded".into(),
            status,
            step: KbaStep::Questions,
            sealed: None,
            provider_session: None,
            ip: None,
            price_cents: 0,
            started_at: at,
            expires_at: at + TIME_LIMIT,
            ended_at: None,
        }
    }

    const DAY: i64 = 86_400;

    fn stands(sessions: &[KbaSession], seconds: i64) -> String {
        match standing(sessions, Timestamp::from_millis(seconds * 1000)) {
            SignerStanding::Passed => "passed".into(),
            SignerStanding::At(_) => "at".into(),
            SignerStanding::Unavailable => "unavailable".into(),
            SignerStanding::Locked(until) => format!("locked until {}", until.as_seconds()),
            SignerStanding::Exhausted => "exhausted".into(),
            SignerStanding::Failed { left } => format!("{left} left"),
            SignerStanding::Fresh => "fresh".into(),
        }
    }

    #[test]
    fn an_open_session_counts_until_it_expires() {
        let open = [session(KbaStatus::Open, 1000)];
        assert_eq!(stands(&open, 1599), "at");
        assert_eq!(stands(&open, 1600), "fresh");
    }

    #[test]
    fn three_failures_in_a_day_block_further_attempts() {
        let mut failed = vec![session(KbaStatus::Failed, 1000)];
        assert_eq!(stands(&failed, 1100), "2 left");

        failed.push(session(KbaStatus::Failed, 2000));
        assert_eq!(stands(&failed, 2100), "1 left");

        failed.push(session(KbaStatus::Failed, 3000));
        assert_eq!(
            stands(&failed, 3100),
            format!("locked until {}", 1000 + DAY)
        );
        assert_eq!(stands(&failed, 1000 + DAY), "1 left");
    }

    #[test]
    fn started_sessions_count_as_attempts() {
        let begun: Vec<KbaSession> = (0..10).map(|at| session(KbaStatus::Ended, at)).collect();
        assert_eq!(stands(&begun[..9], 100), "fresh");
        assert_eq!(stands(&begun, 100), format!("locked until {DAY}"));
        assert_eq!(stands(&begun, DAY), "fresh");
    }

    #[test]
    fn the_total_number_of_attempts_is_limited() {
        let daily: Vec<KbaSession> = (0..30)
            .map(|day| session(KbaStatus::Failed, day * DAY))
            .collect();
        assert_eq!(stands(&daily[..29], 40 * DAY), "3 left");
        assert_eq!(stands(&daily, 40 * DAY), "exhausted");
        assert_eq!(stands(&daily, 4000 * DAY), "exhausted");
    }

    #[test]
    fn a_signer_who_passed_gets_no_further_questions() {
        let mut sessions = vec![session(KbaStatus::Passed, 0)];
        sessions.push(session(KbaStatus::Failed, 10));
        assert_eq!(stands(&sessions, 40 * DAY), "passed");
    }

    #[test]
    fn unavailable_identity_questions_are_final() {
        let mut sessions = vec![session(KbaStatus::Unavailable, 0)];
        assert_eq!(stands(&sessions, 10), "unavailable");
        sessions.push(session(KbaStatus::Ended, 10));
        assert_eq!(stands(&sessions, 700), "unavailable");
    }
}
