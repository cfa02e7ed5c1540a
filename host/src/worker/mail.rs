//! Mails to signers.
//!
//! Without a mail server each mail is a file in the outbox folder. A mail may
//! go out twice when the process dies between sending and settling; its link is
//! made at that moment and is no less valid than the first.

use lettre::message::{Mailbox, MultiPart};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use serde::Deserialize;

use crate::app::App;
use crate::domain::envelope::{Envelope, EnvelopeStatus, Signer, SignerStatus};
use crate::domain::id::{EnvelopeId, JobId, OrgId};
use crate::service::links;
use crate::store::{StoreError, envelopes, organizations, signers};

/// Mails a signing link.
pub const INVITE_JOB: &str = "signer.invite";

/// Why a mail did not go out.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("address: {0}")]
    Address(#[from] lettre::address::AddressError),
    #[error("message: {0}")]
    Message(#[from] lettre::error::Error),
    #[error("server: {0}")]
    Smtp(#[from] lettre::transport::smtp::Error),
    #[error("outbox: {0}")]
    Outbox(#[from] std::io::Error),
}

#[derive(Deserialize)]
pub(super) struct Invite {
    envelope: EnvelopeId,
    position: i64,
}

/// Mails a signer the link, unless there is nothing left to sign.
pub(super) async fn invite(app: &App, org: &OrgId, invite: Invite) -> Result<(), MailError> {
    let mut tx = app.store.begin().await?;
    let Some(envelope) = envelopes::get(&mut tx, org, &invite.envelope).await? else {
        return Ok(());
    };
    let signers = signers::list(&mut tx, org, &envelope.id).await?;
    let Some(signer) = signers
        .iter()
        .find(|signer| signer.position == invite.position)
    else {
        return Ok(());
    };
    let open = matches!(
        envelope.status,
        EnvelopeStatus::Sent | EnvelopeStatus::Viewed
    );
    if !open || signer.status == SignerStatus::Completed {
        return Ok(());
    }
    let organization = organizations::get(&mut tx, org).await?;
    let url = links::make(app, &mut tx, &envelope, signer, links::MAIL_LIFE).await?;
    tx.commit().await?;
    let sender =
        organization.map_or_else(|| "holdfast".to_owned(), |organization| organization.name);
    send(app, invitation(app, &envelope, signer, &sender, &url)?).await
}

fn invitation(
    app: &App,
    envelope: &Envelope,
    signer: &Signer,
    sender: &str,
    url: &str,
) -> Result<Message, MailError> {
    let text = format!(
        "Hello {name},\n\n{sender} asks you to sign \"{document}\".\n\nRead and sign it here:\n{url}\n\n\
         The link is meant for you alone and works for seven days.\n",
        name = signer.name,
        document = envelope.name,
    );
    let html = maud::html! {
        p { "Hello " (signer.name) "," }
        p { (sender) " asks you to sign “" (envelope.name) "”." }
        p { a href=(url) { "Read and sign the document" } }
        p { "The link is meant for you alone and works for seven days." }
    };
    let from: Mailbox = app.config.mail_from.parse()?;
    let to = Mailbox::new(Some(signer.name.clone()), signer.email.parse()?);
    Ok(Message::builder()
        .from(from)
        .to(to)
        .subject(format!("{sender} asks you to sign: {}", envelope.name))
        .multipart(MultiPart::alternative_plain_html(text, html.into_string()))?)
}

async fn send(app: &App, message: Message) -> Result<(), MailError> {
    match &app.config.smtp_url {
        Some(url) => {
            let server: AsyncSmtpTransport<Tokio1Executor> =
                AsyncSmtpTransport::<Tokio1Executor>::from_url(url)?.build();
            server.send(message).await?;
        }
        None => {
            let outbox = app.config.data_dir.join("outbox");
            tokio::fs::create_dir_all(&outbox).await?;
            let file = outbox.join(format!("{}.eml", JobId::new()));
            tokio::fs::write(file, message.formatted()).await?;
        }
    }
    Ok(())
}
