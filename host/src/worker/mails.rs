//! A due mail: read what it is about, write it, send it.

use crate::components::providers::ProviderError;
use crate::domain::envelope::{Envelope, Signer, SignerStatus};
use crate::domain::id::{EndpointId, OrgId};
use crate::domain::job::Addressee;
use crate::mail::MailError;
use crate::mail::layout::Look;
use crate::mail::letters::{self, Letter, Told};
use crate::mail::message::{Draft, Pdf};
use crate::service::signing::links;
use crate::service::vault::copies;
use crate::service::{App, ServiceError};
use crate::store::jobs::ClaimedJob;
use crate::store::{StoreError, envelopes, organizations, signers, webhooks};

/// Largest copy that travels with a mail, in bytes: many servers take 10 MB, and
/// in a mail a file grows by a third.
const COPY_LIMIT: usize = 5 * 1024 * 1024;

/// Why a mail did not go out.
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
    /// Something that it needs could not be reached, or asks to come again.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_outage(),
            Self::Service(error) => error.is_outage(),
            Self::Mail(error) => error.is_outage(),
        }
    }

    /// Trying again would not help.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Store(_) => false,
            Self::Service(error) => matches!(error, ServiceError::NotFound(_)),
            Self::Mail(error) => error.is_final(),
        }
    }
}

/// What a mail tells of.
#[derive(Clone, Copy, Debug)]
pub(super) enum About {
    Invitation,
    Reminder,
    Completion,
    Decline,
    Withdrawal,
}

/// What a mail says of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Health {
    Failing,
    Disabled,
}

/// The envelope that a mail is about.
struct Matter {
    envelope: Envelope,
    signers: Vec<Signer>,
    look: Look,
    /// Which of the signers is written to; none: the creator.
    position: Option<i64>,
}

/// A letter and its attachment.
struct Written {
    letter: Letter,
    attachment: Option<Pdf>,
}

/// Sends the mail of a job, unless there is nothing left to say.
pub(super) async fn deliver(
    app: &App,
    job: &ClaimedJob,
    about: About,
    to: Addressee,
) -> Result<(), DeliveryError> {
    let Some(matter) = Matter::read(app, &job.org, to).await? else {
        return Ok(());
    };
    let Some(to) = matter.address() else {
        return Ok(());
    };
    let written = match about {
        About::Invitation => matter.with_link(app, letters::invitation).await?,
        About::Reminder => matter.with_link(app, letters::reminder).await?,
        About::Completion => matter.completed(app).await?,
        About::Decline => matter.declined(),
        About::Withdrawal => matter.withdrawn(),
    };
    let Some(written) = written else {
        return Ok(());
    };
    let with_copy = written.attachment.is_some();
    match matter.send(app, job, to, written).await {
        // Too large for that server, as likely as not: what has to be told is told.
        Err(DeliveryError::Mail(MailError::Server(error))) if with_copy && error.is_permanent() => {
            tracing::warn!(envelope = %matter.envelope.id, %error, "a mail goes without its copy");
            let written = matter.told_of_completion(app, None).await?;
            matter.send(app, job, to, written).await
        }
        sent => sent,
    }
}

/// Sends a mail about a webhook endpoint to whoever made it.
pub(super) async fn about_endpoint(
    app: &App,
    job: &ClaimedJob,
    endpoint: &EndpointId,
    health: Health,
) -> Result<(), DeliveryError> {
    let mut connection = app.store.read().await?;
    let endpoint = webhooks::get(&mut connection, &job.org, endpoint).await?;
    let organization = organizations::get(&mut connection, &job.org).await?;
    drop(connection);
    let (Some(endpoint), Some(organization)) = (endpoint, organization) else {
        return Ok(());
    };
    // Put right since, or made by a key that nobody can be written to about.
    let letter = match health {
        Health::Disabled if !endpoint.is_active => letters::endpoint_disabled(&endpoint),
        Health::Failing if endpoint.is_active => letters::endpoint_failing(&endpoint),
        _ => return Ok(()),
    };
    if !endpoint.created_by.contains('@') {
        return Ok(());
    }
    let mailer = &app.mailer;
    let draft = Draft {
        id: &job.id,
        from: mailer.from(),
        to: &endpoint.created_by,
        reply_to: None,
        letter: &letter,
        look: &Look::of(&organization),
        attachment: None,
        at: app.clock.now(),
    };
    Ok(mailer.send(&job.id, &draft.message()?).await?)
}

impl Matter {
    async fn read(app: &App, org: &OrgId, to: Addressee) -> Result<Option<Self>, DeliveryError> {
        let mut connection = app.store.read().await?;
        let envelope = envelopes::get(&mut connection, org, &to.envelope).await?;
        let organization = organizations::get(&mut connection, org).await?;
        let (Some(envelope), Some(organization)) = (envelope, organization) else {
            return Ok(None);
        };
        let signers = signers::list(&mut connection, org, &envelope.id).await?;
        Ok(Some(Self {
            envelope,
            signers,
            look: Look::of(&organization),
            position: to.position,
        }))
    }

    async fn send(
        &self,
        app: &App,
        job: &ClaimedJob,
        to: &str,
        Written { letter, attachment }: Written,
    ) -> Result<(), DeliveryError> {
        let mailer = &app.mailer;
        let draft = Draft {
            id: &job.id,
            from: mailer.from(),
            to,
            reply_to: self.reply_to(),
            letter: &letter,
            look: &self.look,
            attachment,
            at: app.clock.now(),
        };
        Ok(mailer.send(&job.id, &draft.message()?).await?)
    }

    /// The signer who is written to.
    fn signer(&self) -> Option<&Signer> {
        let position = self.position?;
        let mut signers = self.signers.iter();
        signers.find(|signer| signer.position == position)
    }

    fn address(&self) -> Option<&str> {
        match self.position {
            Some(_) => self.signer().map(|signer| signer.email.as_str()),
            None => self.envelope.creator_email(),
        }
    }

    /// Signers answer to the creator.
    fn reply_to(&self) -> Option<&str> {
        self.position?;
        self.envelope.creator_email()
    }

    /// Nothing for who cannot sign any more.
    async fn with_link(
        &self,
        app: &App,
        letter: fn(&str, &Envelope, &str, String) -> Letter,
    ) -> Result<Option<Written>, DeliveryError> {
        let open = self.envelope.status.is_out_for_signing();
        let signer = self
            .signer()
            .filter(|signer| open && signer.status != SignerStatus::Completed);
        let Some(signer) = signer else {
            return Ok(None);
        };
        let url = self.link(app, signer).await?;
        let letter = letter(&self.look.sender, &self.envelope, &signer.name, url);
        Ok(Some(Written::plain(letter)))
    }

    async fn link(&self, app: &App, signer: &Signer) -> Result<String, DeliveryError> {
        let mut tx = app.store.begin().await?;
        let url = links::make(app, &mut tx, &self.envelope, signer, links::MAIL_LIFE).await?;
        tx.commit().await?;
        Ok(url)
    }

    async fn completed(&self, app: &App) -> Result<Option<Written>, DeliveryError> {
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
        attachment: Option<Pdf>,
    ) -> Result<Written, DeliveryError> {
        let copy = match (&attachment, self.signer()) {
            (Some(_), _) => letters::Copy::Attached,
            (None, Some(signer)) => letters::Copy::Linked(self.link(app, signer).await?),
            (None, None) => letters::Copy::Kept,
        };
        let to = self.signer().map(|signer| signer.name.as_str());
        let letter = letters::completed(&self.envelope, to, copy);
        Ok(Written { letter, attachment })
    }

    fn declined(&self) -> Option<Written> {
        let mut signers = self.signers.iter();
        let decliner = signers.find(|signer| signer.status == SignerStatus::Declined)?;
        let told = match self.signer() {
            None => Told::Creator {
                by: &decliner.name,
                reason: decliner.decline_reason.as_deref().unwrap_or_default(),
            },
            Some(signer) if signer.position == decliner.position => Told::Decliner,
            Some(_) => Told::OtherSigner,
        };
        let to = self.signer().map(|signer| signer.name.as_str());
        let letter = letters::declined(&self.look.sender, &self.envelope, to, told);
        Some(Written::plain(letter))
    }

    fn withdrawn(&self) -> Option<Written> {
        let signer = self.signer()?;
        let letter = letters::withdrawn(&self.look.sender, &self.envelope, &signer.name);
        Some(Written::plain(letter))
    }
}

impl Written {
    fn plain(letter: Letter) -> Self {
        Self {
            letter,
            attachment: None,
        }
    }
}

/// The signer's copy; none when it is too large for a mail, or can never be
/// had. The mail has to tell that all have signed in any case.
async fn attachable_copy(app: &App, envelope: &Envelope) -> Result<Option<Pdf>, DeliveryError> {
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
        Ok(copy) => Ok(Some(Pdf {
            name: envelope.name.clone(),
            bytes: copy.whole().await.map_err(ServiceError::from)?,
        })),
        Err(
            error @ (ServiceError::Conflict(_)
            | ServiceError::Unreadable { .. }
            | ServiceError::Provider(ProviderError::NotFound)),
        ) => {
            tracing::warn!(envelope = %envelope.id, %error, "a copy cannot be mailed");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
