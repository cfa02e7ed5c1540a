//! Mails of due jobs: reads the records, writes the letter and sends it.

use serde::Deserialize as _;

use holdfast_adapters::mail::layout::{self, MailBranding};
use holdfast_adapters::mail::letters::{
    self, ContractDateFacts, DeclineRecipient, LinkFacts, MailContent, OutcomeNotice, ReleaseFacts,
    ViewFacts,
};
use holdfast_adapters::mail::message::{MessageDraft, PdfAttachment};
use holdfast_adapters::mail::{EnvelopeMailKind, MailError};
use holdfast_adapters::texts::Texts;
use holdfast_components::providers::ProviderError;
use holdfast_domain::contract_dates::{ContractDate, days_until};
use holdfast_domain::control::{PartyInvitation, ReleaseState};
use holdfast_domain::dates::DateSettings;
use holdfast_domain::envelope::{Envelope, Recipient, Signer, SignerStatus};
use holdfast_domain::event::EventType;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{
    EndpointId, EnvelopeId, InvitationId, MessageId, OrgId, SignInId, ViewId,
};
use holdfast_domain::job::{
    JobPayload as _, MailAccessCode, MailAddressee, MailAnswer, MailCompletion, MailContractDate,
    MailDecline, MailInvitation, MailLater, MailLinkHost, MailOpenLink, MailReleaseRequest,
    MailReminder, MailWithdrawal,
};
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::Organization;
use holdfast_domain::question::SignerQuestion;
use holdfast_domain::test_mode::{MessageChannel, TestMessage};
use holdfast_domain::user::{SignInLink, UserStatus};
use holdfast_platform::access::sessions;
use holdfast_platform::providers::links;
use holdfast_platform::{ServiceError, mails};
use holdfast_service::control::invitations;
use holdfast_service::envelopes::contract_dates;
use holdfast_service::inspection::views as inspected;
use holdfast_service::signing::access_codes;
use holdfast_service::vault::{completion, copies};
use holdfast_service::{App, test_mode};
use holdfast_store::jobs::ClaimedJob;
use holdfast_store::{
    StoreError, control, envelopes, ledger, open_links, organizations, party_invitations,
    questions, signers, users, views, webhooks,
};

/// Size limit of an attached copy in bytes. Many servers take mails of 10 MB, and base64 adds a
/// third to a file.
const COPY_LIMIT: usize = 5 * 1024 * 1024;

/// Reason why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Mail(#[from] MailError),
}

impl DeliveryError {
    /// Returns whether a dependency could not be reached or asked for a later try.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_outage(),
            Self::Service(error) => error.is_outage(),
            Self::Mail(error) => error.is_outage(),
        }
    }

    /// Returns whether a retry cannot succeed.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Store(_) => false,
            Self::Service(error) => matches!(error, ServiceError::NotFound(_)),
            Self::Mail(error) => error.is_final(),
        }
    }
}

/// State of an endpoint that a mail reports.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndpointMailKind {
    Failing,
    Disabled,
}

/// Envelope of a mail or text message, with its addressee.
pub(super) struct MailSubject {
    pub(super) envelope: Envelope,
    signers: Vec<Signer>,
    /// People who do not sign.
    recipients: Vec<Recipient>,
    pub(super) look: MailBranding,
    dates: DateSettings,
    /// The organization's address for replies.
    reply_to: Option<String>,
    /// Address below which the organization's signing links are.
    pub(super) link_url: String,
    /// The organization's language.
    language: Locale,
    /// Position of the addressed signer or recipient; none addresses the creator.
    position: Option<i64>,
    /// Whether the planner of the sending is addressed instead of the creator.
    is_planner: bool,
    /// Question that the mail is about.
    question: Option<SignerQuestion>,
}

/// Letter with its attachment.
struct PreparedMail {
    letter: MailContent,
    attachments: Vec<PdfAttachment>,
}

/// Sends the mail of a job, unless it is obsolete by now.
pub(super) async fn deliver(
    app: &App,
    job: &ClaimedJob,
    about: EnvelopeMailKind,
    to: MailAddressee,
) -> Result<(), DeliveryError> {
    // Read now and not when the job was queued: names, addresses and the state may have changed since.
    let Some(matter) = MailSubject::read(app, &job.org, to).await? else {
        return Ok(());
    };
    let Some(to) = matter.address() else {
        return Ok(());
    };

    let written = match about {
        EnvelopeMailKind::Invitation => match matter.recipient() {
            Some(recipient) => matter.for_viewer(app, recipient).await?,
            None => matter.with_link(app, letters::invitation).await?,
        },
        EnvelopeMailKind::Reminder => matter.with_link(app, letters::reminder).await?,
        EnvelopeMailKind::AccessCode => matter.with_code(app).await?,
        EnvelopeMailKind::Completion => matter.completed(app).await?,
        EnvelopeMailKind::Decline => matter.declined(app),
        EnvelopeMailKind::Withdrawal => matter.withdrawn(),
        EnvelopeMailKind::Undelivered => matter.undelivered(app).await?,
        EnvelopeMailKind::NotSent => matter.not_sent(),
        EnvelopeMailKind::Question => matter.asked(app),
        EnvelopeMailKind::Answer => matter.answered(app).await?,
        EnvelopeMailKind::Later => matter.with_link(app, letters::later).await?,
    };

    let Some(written) = written else {
        return Ok(());
    };

    let with_copy = !written.attachments.is_empty();
    let sent = match matter.send(app, job, about, to, written).await {
        // The server probably rejects the size. The signer must learn of the completion in any
        // case.
        Err(DeliveryError::Mail(MailError::Server(error))) if with_copy && error.is_permanent() => {
            tracing::warn!(envelope = %matter.envelope.id, %error, "sending mail without its copy");
            let written = matter.told_of_completion(app, None).await?;
            matter.send(app, job, about, to, written).await
        }
        // The sender learns of it: a signer without an invitation never signs.
        Err(DeliveryError::Mail(error)) if error.is_final() => {
            if let Some(signer) = matter.signer() {
                let (envelope, reason) = (&matter.envelope, error.to_string());
                mails::report_undelivered(app, envelope, signer, about.as_str(), &reason).await?;
            }
            Err(error.into())
        }
        sent => sent,
    };

    // Replaces an earlier failure that the sender still sees, for example after a corrected address.
    if let (Ok(()), Some(signer)) = (&sent, matter.signer()) {
        mails::report_accepted(app, &matter.envelope, signer).await?;
    }

    sent
}

/// Reports a mail to a signer that is given up after its last attempt.
pub(super) async fn given_up(app: &App, job: &ClaimedJob) -> Result<(), DeliveryError> {
    let about = match job.kind.as_str() {
        MailInvitation::NAME => EnvelopeMailKind::Invitation,
        MailReminder::NAME => EnvelopeMailKind::Reminder,
        MailAccessCode::NAME => EnvelopeMailKind::AccessCode,
        MailCompletion::NAME => EnvelopeMailKind::Completion,
        MailDecline::NAME => EnvelopeMailKind::Decline,
        MailWithdrawal::NAME => EnvelopeMailKind::Withdrawal,
        MailAnswer::NAME => EnvelopeMailKind::Answer,
        MailLater::NAME => EnvelopeMailKind::Later,
        _ => return Ok(()),
    };

    // A payload that cannot be read names no signer to report about.
    let Ok(to) = MailAddressee::deserialize(&job.payload) else {
        return Ok(());
    };

    // Without this report, the sender would wait for a signer who has never got a mail.
    let matter = MailSubject::read(app, &job.org, to).await?;
    if let Some((matter, signer)) = matter.as_ref().and_then(|one| Some((one, one.signer()?))) {
        let why = "the mail server could not be used";
        mails::report_undelivered(app, &matter.envelope, signer, about.as_str(), why).await?;
    }

    Ok(())
}

/// Sends a mail about a webhook endpoint to its creator.
pub(super) async fn about_endpoint(
    app: &App,
    job: &ClaimedJob,
    endpoint: &EndpointId,
    health: EndpointMailKind,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let endpoint = webhooks::get(&mut connection, &job.org, endpoint).await?;
    let organization = organizations::get(&mut connection, &job.org).await?;
    // Returned to the pool, because sending may take a minute. The other mails here do the same.
    drop(connection);

    let (Some(endpoint), Some(organization)) = (endpoint, organization) else {
        return Ok(());
    };

    let texts = Texts::of(organization.settings.language);
    let page = app
        .config
        .console_page(&format!("receivers/{}", endpoint.id));

    // Nothing to send if the endpoint has recovered, or was created by a key without an e-mail
    // address.
    let letter = match health {
        EndpointMailKind::Disabled if !endpoint.is_active => {
            letters::endpoint_disabled(texts, &endpoint, page)
        }
        EndpointMailKind::Failing if endpoint.is_active => {
            letters::endpoint_failing(texts, &organization.settings.dates, &endpoint, page)
        }
        _ => return Ok(()),
    };

    if !endpoint.created_by.contains('@') {
        return Ok(());
    }

    notify(app, job, &organization, &endpoint.created_by, &letter).await
}

/// Sends a mail to a person of an organization, who does not sign anything.
async fn notify(
    app: &App,
    job: &ClaimedJob,
    organization: &Organization,
    to: &str,
    letter: &MailContent,
) -> Result<(), DeliveryError> {
    let mailer = &app.mailer;
    let draft = MessageDraft {
        id: &job.id,
        from: mailer.from(),
        to,
        return_path: None,
        reply_to: None,
        letter,
        look: &MailBranding::of(organization),
        attachments: Vec::new(),
        at: app.clock.now(),
    };

    hand_over(app, job, None, draft).await
}

/// Sends a mail. One of test data is kept to be read instead.
async fn hand_over(
    app: &App,
    job: &ClaimedJob,
    envelope: Option<&EnvelopeId>,
    draft: MessageDraft<'_>,
) -> Result<(), DeliveryError> {
    let kept = job.org.is_test().then(|| TestMessage {
        id: MessageId::new(),
        org: job.org.clone(),
        channel: MessageChannel::Email,
        envelope: envelope.cloned(),
        to: draft.to.trim().to_owned(),
        subject: Some(draft.letter.subject.clone()),
        body: layout::text(draft.letter, draft.look),
        link: draft.letter.button.as_ref().map(|one| one.url.clone()),
        attachments: draft
            .attachments
            .iter()
            .map(|one| one.name.clone())
            .collect(),
        at: draft.at,
    });

    // What a mail server would refuse is refused in a test, too.
    let message = draft.message()?;
    match kept {
        Some(kept) => {
            // A repeat of the job with a new link is another message, as in a real mailbox.
            let source = format!("{}-{}", job.id, sha256(kept.body.as_bytes()));
            Ok(test_mode::keep(app, &source, &kept).await?)
        }
        None => Ok(app.mailer.send(&job.id, &message).await?),
    }
}

/// Notifies a person of a contract's date, unless it was removed or moved, or the envelope ended without a contract.
pub(super) async fn about_contract_date(
    app: &App,
    job: &ClaimedJob,
    notice: &MailContractDate,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let organization = organizations::get(&mut connection, &job.org).await?;
    let envelope = envelopes::get(&mut connection, &job.org, &notice.envelope).await?;
    drop(connection);
    let (Some(organization), Some(envelope)) = (organization, envelope) else {
        return Ok(());
    };

    // The mail server may have been away, so that the day is nearer now, or the date is another one.
    let mut dates = envelope.contract_dates().into_iter();
    let is_it = |date: &ContractDate| date.name == notice.name && date.date == notice.date;
    let is_there = dates.any(|planned| is_it(&planned.date));
    if !is_there || contract_dates::has_no_contract(&envelope) {
        return Ok(());
    }

    let settings = &organization.settings;
    let zone = &settings.dates.time_zone;
    // Test data has no users, so it has no page for them.
    let page = app
        .config
        .console_page(&format!("envelopes/{}", envelope.id));
    let letter = letters::contract_date(&ContractDateFacts {
        texts: Texts::of(settings.language),
        document: &envelope.name,
        name: &notice.name,
        date: &settings.dates.format.written(&notice.date.to_string()),
        days: days_until(notice.date, zone, app.clock.now()),
        page: page.filter(|_| !envelope.org.is_test()),
        reference: envelope.id.as_str(),
    });

    notify(app, job, &organization, &notice.to, &letter).await
}

/// Asks a person of the controller about a requested release, unless it was answered already.
pub(super) async fn about_release(
    app: &App,
    job: &ClaimedJob,
    MailReleaseRequest { release, to }: &MailReleaseRequest,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let request = control::release(&mut connection, release).await?;
    let Some(request) = request.filter(|request| request.state == ReleaseState::Requested) else {
        return Ok(());
    };

    let originator = organizations::get(&mut connection, &request.org).await?;
    let controller = organizations::get(&mut connection, &request.controller).await?;
    let envelope = envelopes::get(&mut connection, &request.org, &request.envelope).await?;
    drop(connection);

    let (Some(originator), Some(controller), Some(envelope)) = (originator, controller, envelope)
    else {
        return Ok(());
    };

    let form = |member: &str| request.form[member].as_str().unwrap_or_default();
    // In the controller's language, because its people decide about the release.
    let letter = letters::release_request(&ReleaseFacts {
        texts: Texts::of(controller.settings.language),
        originator: &originator.name,
        document: &envelope.name,
        recipient: form("recipient_organization"),
        purpose: form("purpose_of_release"),
        is_paper: form("medium") == "paper",
        reference: release.as_str(),
        page: app
            .config
            .console_page(&format!("control/records/{}", request.envelope)),
    });

    notify(app, job, &controller, to, &letter).await
}

/// Sends a person the link to a record, unless their view is over.
pub(super) async fn about_view(
    app: &App,
    job: &ClaimedJob,
    id: &ViewId,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let Some(view) = views::get(&mut connection, id).await? else {
        return Ok(());
    };

    let controller = organizations::get(&mut connection, &view.controller).await?;
    let envelope = envelopes::get(&mut connection, &view.org, &view.envelope).await?;
    drop(connection);
    let (Some(controller), Some(envelope)) = (controller, envelope) else {
        return Ok(());
    };
    // The controller may have revoked the view while this job waited for a mail server.
    if view.revoked_at.is_some() || view.expires_at <= app.clock.now() {
        return Ok(());
    }

    let texts = Texts::of(controller.settings.language);
    let letter = letters::view(&ViewFacts {
        texts,
        sender: controller.display_name(),
        document: &envelope.name,
        to: &view.name,
        until: &texts.moment(&controller.settings.dates, view.expires_at),
        url: inspected::url(app, id)?,
        reference: id.as_str(),
    });

    notify(app, job, &controller, &view.email, &letter).await
}

/// Sends a party the link to join, unless it has joined.
pub(super) async fn about_invitation(
    app: &App,
    job: &ClaimedJob,
    id: &InvitationId,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let invitation = party_invitations::get(&mut connection, id).await?;
    let now = app.clock.now();
    // An operator may have switched invitations off since. A link that no page serves must not go out.
    let on = app.config.control.invitations;
    let open = |one: &PartyInvitation| on && one.joined.is_none() && one.expires_at > now;
    let Some(invitation) = invitation.filter(open) else {
        return Ok(());
    };

    let sender = organizations::get(&mut connection, &invitation.org).await?;
    drop(connection);
    let Some(sender) = sender else {
        return Ok(());
    };

    let texts = Texts::of(sender.settings.language);
    let url = invitations::url(app, id)?;
    let (from, name) = (sender.display_name(), &invitation.name);
    let letter = letters::party_invitation(texts, from, name, url, id.as_str());
    notify(app, job, &sender, &invitation.email, &letter).await
}

/// Notifies a person of a record that a visitor of an open link made.
pub(super) async fn about_open_link(
    app: &App,
    job: &ClaimedJob,
    about: &MailOpenLink,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let link = open_links::get(&mut connection, &job.org, &about.link).await?;
    let organization = organizations::get(&mut connection, &job.org).await?;
    let people = signers::list(&mut connection, &job.org, &about.envelope).await?;
    drop(connection);

    let (Some(link), Some(organization)) = (link, organization) else {
        return Ok(());
    };
    let visitor = people.iter().find(|signer| signer.role == link.role);
    let (Some(to), Some(visitor)) = (link.notify.get(about.place), visitor) else {
        return Ok(());
    };

    let id = about.envelope.as_str();
    let page = app.config.console_page(&format!("envelopes/{id}"));
    let texts = Texts::of(organization.settings.language);
    let letter = letters::open_link_used(texts, &link.name, visitor, page, id);
    notify(app, job, &organization, to, &letter).await
}

/// Notifies an owner or admin of a change of the host of signing links, unless the access has ended.
pub(super) async fn about_link_host(
    app: &App,
    job: &ClaimedJob,
    about: &MailLinkHost,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    // Test data has the users of its organization.
    let user = users::get(&mut connection, &job.org.live(), &about.user).await?;
    let organization = organizations::get(&mut connection, &job.org).await?;
    drop(connection);
    let (Some(user), Some(organization)) = (user, organization) else {
        return Ok(());
    };
    if user.status == UserStatus::Ended {
        return Ok(());
    }

    let texts = Texts::of(organization.settings.language);
    let by = about.by.strip_prefix("user:").unwrap_or(&about.by);
    let page = app.config.console_page("settings/link-host");
    let letter =
        letters::link_host_changed(texts, &organization.name, by, about.host.as_deref(), page);
    notify(app, job, &organization, &user.email, &letter).await
}

/// Sends a user the link to sign in, unless it is over.
pub(super) async fn with_sign_in(
    app: &App,
    job: &ClaimedJob,
    id: &SignInId,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let now = app.clock.now();
    let link = users::link(&mut connection, id).await?;
    // The mail server may have been away for longer than the link lives.
    let open = |link: &SignInLink| link.used_at.is_none() && link.expires_at > now;
    let Some(link) = link.filter(open) else {
        return Ok(());
    };

    let user = users::get(&mut connection, &link.org, &link.user).await?;
    let organization = organizations::get(&mut connection, &link.org).await?;
    drop(connection);
    let (Some(user), Some(organization)) = (user, organization) else {
        return Ok(());
    };

    let texts = Texts::of(organization.settings.language);
    let until = texts.moment(&organization.settings.dates, link.expires_at);
    let url = sessions::url(app, id)?;
    let letter = letters::sign_in(texts, &organization.name, &user.email, &until, url);
    notify(app, job, &organization, &user.email, &letter).await
}

impl MailSubject {
    pub(super) async fn read(
        app: &App,
        org: &OrgId,
        to: MailAddressee,
    ) -> Result<Option<Self>, DeliveryError> {
        let mut connection = app.store.read().await?;
        let envelope = envelopes::get(&mut connection, org, &to.envelope).await?;
        let organization = organizations::get(&mut connection, org).await?;
        let (Some(envelope), Some(organization)) = (envelope, organization) else {
            return Ok(None);
        };

        let signers = signers::list(&mut connection, org, &envelope.id).await?;
        let recipients = signers::recipients(&mut connection, org, &envelope.id).await?;
        let question = match &to.question {
            None => None,
            Some(id) => {
                let asked = questions::list(&mut connection, org, &envelope.id).await?;
                asked.into_iter().find(|question| question.id == *id)
            }
        };

        Ok(Some(Self {
            envelope,
            signers,
            recipients,
            look: MailBranding::of(&organization),
            link_url: app.config.link_url(&organization.settings),
            dates: organization.settings.dates,
            reply_to: organization.settings.reply_to,
            language: organization.settings.language,
            position: to.position,
            is_planner: to.is_planner,
            question,
        }))
    }

    async fn send(
        &self,
        app: &App,
        job: &ClaimedJob,
        about: EnvelopeMailKind,
        to: &str,
        PreparedMail {
            letter,
            attachments,
        }: PreparedMail,
    ) -> Result<(), DeliveryError> {
        let mailer = &app.mailer;
        let id = &self.envelope.id;
        // Only mails to signers get an address of their own, because only their bounces are recorded.
        let return_path = self
            .signer()
            .and_then(|signer| mailer.return_path(id, signer, about));
        let draft = MessageDraft {
            id: &job.id,
            from: mailer.from(),
            to,
            return_path,
            reply_to: self.reply_to(),
            letter: &letter,
            look: &self.look,
            attachments,
            at: app.clock.now(),
        };

        // The job's id becomes the `Message-ID`, so that a repeat is recognizable.
        hand_over(app, job, Some(id), draft).await
    }

    /// Returns the addressed signer.
    pub(super) fn signer(&self) -> Option<&Signer> {
        let position = self.position?;
        let mut signers = self.signers.iter();
        signers.find(|signer| signer.position == position)
    }

    /// Returns the addressed recipient who does not sign.
    fn recipient(&self) -> Option<&Recipient> {
        let position = self.position?;
        let mut recipients = self.recipients.iter();
        recipients.find(|recipient| recipient.position == position)
    }

    /// Returns the texts in the addressee's language.
    pub(super) fn texts(&self) -> Texts {
        let chosen = self.signer().and_then(|signer| signer.locale);
        Texts::of(Locale::chosen(chosen, None, self.language))
    }

    /// Returns the basis of a notification to the addressee.
    fn notice(&self) -> OutcomeNotice<'_> {
        OutcomeNotice {
            texts: self.texts(),
            sender: &self.look.sender,
            envelope: &self.envelope,
            to: self.name(),
        }
    }

    fn address(&self) -> Option<&str> {
        let signer = self.signer().map(|signer| signer.email.as_str());
        match self.position {
            Some(_) => signer.or_else(|| Some(self.recipient()?.email.as_str())),
            None if self.is_planner => self.envelope.failed_planner(),
            None => self.envelope.creator_email(),
        }
    }

    /// Returns the addressee's name; none for the creator.
    fn name(&self) -> Option<&str> {
        let signer = self.signer().map(|signer| signer.name.as_str());
        signer.or_else(|| Some(self.recipient()?.name.as_str()))
    }

    /// Replies of signers and recipients go to the organization's address for them, or else to the creator. Those to a
    /// question go to the signer who asked.
    fn reply_to(&self) -> Option<&str> {
        if self.position.is_none() {
            return Some(self.question.as_ref()?.email.as_str());
        }
        let own = self.reply_to.as_deref();
        own.or_else(|| self.envelope.creator_email())
    }

    /// Writes a letter with a signing link; none for a signer who can no longer sign.
    async fn with_link(
        &self,
        app: &App,
        letter: fn(LinkFacts<'_>) -> MailContent,
    ) -> Result<Option<PreparedMail>, DeliveryError> {
        let (Some(url), Some(signer)) = (self.signing_link(app).await?, self.signer()) else {
            return Ok(None);
        };

        let letter = letter(LinkFacts {
            texts: self.texts(),
            sender: &self.look.sender,
            envelope: &self.envelope,
            signer,
            signers: &self.signers,
            dates: &self.dates,
            url,
        });

        Ok(Some(PreparedMail::plain(letter)))
    }

    /// Creates a link for the addressed signer; none if they can no longer sign.
    pub(super) async fn signing_link(&self, app: &App) -> Result<Option<String>, DeliveryError> {
        // A reminder may have waited for hours, and its signer may have signed in that time.
        let open = self.envelope.status.is_out_for_signing();
        match self.signer() {
            Some(signer) if open && signer.status != SignerStatus::Completed => {
                self.link(app, signer).await
            }
            _ => Ok(None),
        }
    }

    /// Writes the letter with the code that opens the document; none once the code is outdated.
    async fn with_code(&self, app: &App) -> Result<Option<PreparedMail>, DeliveryError> {
        let Some(signer) = self.signer() else {
            return Ok(None);
        };
        // The code is no part of the job: it is sealed in its own row, and a newer one replaces it there.
        let code = access_codes::code_to_send(app, &self.envelope, signer).await?;
        let minutes = access_codes::CODE_LIFE.as_secs() / 60;
        let letter = |code: String| self.notice().access_code(&code, minutes);
        Ok(code.map(letter).map(PreparedMail::plain))
    }

    /// Writes a letter with a link to read the document; none once it can no longer be signed.
    async fn for_viewer(
        &self,
        app: &App,
        viewer: &Recipient,
    ) -> Result<Option<PreparedMail>, DeliveryError> {
        let open = self.envelope.status.is_out_for_signing();
        if !open || !viewer.kind.reads_along() {
            return Ok(None);
        }
        let url = self.view_link(app, viewer).await?;
        let letter = match &viewer.group {
            Some(group) => self.notice().substitute(group, url),
            None => self.notice().viewing(url),
        };
        Ok(Some(PreparedMail::plain(letter)))
    }

    async fn view_link(&self, app: &App, recipient: &Recipient) -> Result<String, DeliveryError> {
        let mut tx = app.store.begin().await?;
        let url = links::make_view(app, &mut tx, &self.envelope, recipient).await?;
        tx.commit().await?;
        Ok(url)
    }

    /// Creates a link for a signer; none if another person has taken the place since this mail was
    /// begun, who gets a mail of their own.
    async fn link(&self, app: &App, signer: &Signer) -> Result<Option<String>, DeliveryError> {
        let mut tx = app.store.begin().await?;
        if !links::is_current(&mut tx, &self.envelope, signer).await? {
            return Ok(None);
        }
        let url = links::make(app, &mut tx, &self.envelope, signer, links::MAIL_LIFE).await?;
        // The link is stored before the mail leaves, so a mail never has a link that is not valid.
        tx.commit().await?;
        Ok(Some(url))
    }

    async fn completed(&self, app: &App) -> Result<Option<PreparedMail>, DeliveryError> {
        let finished = self.envelope.status.is_signed();
        if !finished {
            return Ok(None);
        }
        let attachment = attachable_copy(app, &self.envelope).await?;
        Ok(Some(self.told_of_completion(app, attachment).await?))
    }

    async fn told_of_completion(
        &self,
        app: &App,
        attachment: Option<PdfAttachment>,
    ) -> Result<PreparedMail, DeliveryError> {
        let certificate = match &attachment {
            Some(_) => certificate(app, &self.envelope, self.texts()).await?,
            None => None,
        };
        // A signer who was replaced meanwhile gets no link, since it would open the place of another person.
        let copy = match (&attachment, self.signer(), self.recipient()) {
            (Some(_), _, _) => letters::CopyDelivery::Attached {
                certificate: certificate.is_some(),
            },
            (None, Some(signer), _) => match self.link(app, signer).await? {
                Some(url) => letters::CopyDelivery::Linked(url),
                None => letters::CopyDelivery::Kept,
            },
            (None, None, Some(recipient)) => {
                letters::CopyDelivery::Linked(self.view_link(app, recipient).await?)
            }
            (None, None, None) => letters::CopyDelivery::Kept,
        };

        let letter = self.notice().completed(copy);
        Ok(PreparedMail {
            letter,
            attachments: attachment.into_iter().chain(certificate).collect(),
        })
    }

    fn declined(&self, app: &App) -> Option<PreparedMail> {
        let mut signers = self.signers.iter();
        let decliner = signers.find(|signer| signer.status == SignerStatus::Declined)?;
        // Test data has no users, so it has no page for them.
        let page = app
            .config
            .console_page(&format!("envelopes/{}", self.envelope.id));
        let page = page.filter(|_| !self.envelope.org.is_test());
        // Reason and name of the decliner go to the creator alone. Other signers learn the outcome only.
        let told = match self.signer() {
            None if self.position.is_some() => DeclineRecipient::OtherSigner,
            None => DeclineRecipient::Creator {
                by: &decliner.name,
                reason: decliner.decline_reason.as_deref().unwrap_or_default(),
                page: page.as_deref(),
            },
            Some(signer) if signer.position == decliner.position => DeclineRecipient::Decliner,
            Some(_) => DeclineRecipient::OtherSigner,
        };

        Some(PreparedMail::plain(self.notice().declined(told)))
    }

    /// Writes to the sender about the newest mail that could not be delivered.
    async fn undelivered(&self, app: &App) -> Result<Option<PreparedMail>, DeliveryError> {
        let (org, id) = (&self.envelope.org, &self.envelope.id);
        // Several failures share one job, so the ledger decides which was the last.
        let mut connection = app.store.read().await?;
        let failed = EventType::SignerDeliveryFailed.as_str();
        let entry = ledger::last_of(&mut connection, org, id, failed).await?;
        let Some(details) = entry.map(|entry| entry.details) else {
            return Ok(None);
        };

        let name = details["signer"]["name"].as_str().unwrap_or_default();
        let reason = details["reason"].as_str().unwrap_or_default();
        let letter = self.notice().undelivered(name, reason);
        Ok(Some(PreparedMail::plain(letter)))
    }

    /// Writes to the sender why a draft was not sent; none if it was planned again or sent since.
    fn not_sent(&self) -> Option<PreparedMail> {
        let failure = self.envelope.sending_failure()?;
        let letter = self.notice().not_sent(&failure.reason);
        Some(PreparedMail::plain(letter))
    }

    /// Writes to the sender what a signer asks; none once the question is closed.
    fn asked(&self, app: &App) -> Option<PreparedMail> {
        let question = self.question.as_ref();
        let question = question.filter(|question| question.closing.is_none())?;
        // Test data has no users, so it has no page for them.
        let page = format!("envelopes/{}#questions", self.envelope.id);
        let page = app.config.console_page(&page);
        let page = page.filter(|_| !self.envelope.org.is_test());
        Some(PreparedMail::plain(self.notice().question(question, page)))
    }

    /// Writes the sender's answer to the signer who asked; none for another person in the place.
    async fn answered(&self, app: &App) -> Result<Option<PreparedMail>, DeliveryError> {
        let (Some(question), Some(signer)) = (&self.question, self.signer()) else {
            return Ok(None);
        };
        let Some(answer) = question.answer().filter(|_| question.signer == signer.id) else {
            return Ok(None);
        };

        let url = self.signing_link(app).await?;
        let letter = self.notice().answer(&question.text, answer, url);
        Ok(Some(PreparedMail::plain(letter)))
    }

    fn withdrawn(&self) -> Option<PreparedMail> {
        self.name()?;
        Some(PreparedMail::plain(self.notice().withdrawn()))
    }
}

impl PreparedMail {
    fn plain(letter: MailContent) -> Self {
        Self {
            letter,
            attachments: Vec::new(),
        }
    }
}

/// Returns the certificate of completion; none for an envelope that is not vaulted automatically.
async fn certificate(
    app: &App,
    envelope: &Envelope,
    texts: Texts,
) -> Result<Option<PdfAttachment>, DeliveryError> {
    // The news of the completion matters more than an attachment, so a certificate
    // that cannot be had is left out.
    match completion::certificate(app, envelope, Some(texts.locale())).await {
        Ok(bytes) => Ok(Some(PdfAttachment {
            name: texts.text("certificate-name"),
            bytes,
        })),
        Err(ServiceError::Conflict(_)) => Ok(None),
        Err(error @ ServiceError::Unreadable(_)) => {
            tracing::warn!(envelope = %envelope.id, %error, "certificate cannot be attached to mail");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the copy to attach; none if it is too large or permanently unavailable. The mail reports
/// the completion in any case.
async fn attachable_copy(
    app: &App,
    envelope: &Envelope,
) -> Result<Option<PdfAttachment>, DeliveryError> {
    // Before the copy is read: a large one would be loaded only to be thrown away.
    let known_size = envelope
        .record
        .copy
        .as_ref()
        .map(|copy| copy.size.unsigned_abs());
    if known_size.is_some_and(|size| size > COPY_LIMIT as u64) {
        return Ok(None);
    }

    match copies::signers_copy(app, &app.vault, envelope).await {
        Ok(copy) if copy.size > COPY_LIMIT as u64 => Ok(None),
        Ok(copy) => Ok(Some(PdfAttachment {
            name: envelope.name.clone(),
            bytes: copy.whole().await.map_err(ServiceError::from)?,
        })),
        // These do not end by themselves. Any other error makes the job wait,
        // so that the copy goes out later.
        Err(
            error @ (ServiceError::Conflict(_)
            | ServiceError::Unreadable(_)
            | ServiceError::Provider(ProviderError::NotFound)),
        ) => {
            tracing::warn!(envelope = %envelope.id, %error, "copy cannot be attached to mail");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
