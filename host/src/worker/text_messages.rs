//! Text messages of due jobs: reads the records, writes the message and sends it.

use serde::Deserialize as _;
use sha2::{Digest as _, Sha256};

use super::mails::{DeliveryError, MailSubject};
use holdfast_adapters::mail::wording::TextWording;
use holdfast_components::providers::messaging::TextMessage;
use holdfast_domain::id::MessageId;
use holdfast_domain::job::{
    JobPayload as _, MailAddressee, TextAccessCode, TextInvitation, TextReminder,
};
use holdfast_domain::test_mode::{MessageChannel, TestMessage};
use holdfast_platform::mails;
use holdfast_platform::messaging::{self, SentText, TextMessageKind};
use holdfast_service::signing::access_codes;
use holdfast_service::{App, test_mode};
use holdfast_store::jobs::ClaimedJob;

/// Sends the text message of a job, unless it is obsolete by now.
pub(super) async fn deliver(
    app: &App,
    job: &ClaimedJob,
    about: TextMessageKind,
    to: MailAddressee,
) -> Result<(), DeliveryError> {
    let Some(matter) = MailSubject::read(app, &job.org, to).await? else {
        return Ok(());
    };
    // A correction may have removed the telephone since. The sender chose another way then.
    let Some((signer, phone)) = matter
        .signer()
        .and_then(|one| Some((one, one.phone.clone()?)))
    else {
        return Ok(());
    };

    let wording = TextWording {
        texts: matter.texts(),
        sender: &matter.look.sender,
        document: &matter.envelope.name,
        kind: signer.kind,
    };
    let text = match about {
        TextMessageKind::Invitation | TextMessageKind::Reminder => {
            let url = matter.signing_link(app).await?;
            url.map(|url| match about {
                TextMessageKind::Reminder => wording.reminder(&url),
                _ => wording.invitation(&url),
            })
        }
        TextMessageKind::AccessCode => {
            let code = access_codes::code_to_send(app, &matter.envelope, signer).await?;
            code.map(|code| wording.access_code(&code, &matter.link_url))
        }
    };

    let Some(text) = text else {
        return Ok(());
    };

    // Lets the provider recognize a repeat. A new attempt has a new link, and is another message.
    let digest = hex::encode(Sha256::digest(&text));
    let message = TextMessage {
        id: format!("{}-{}", job.id, &digest[..12]),
        to: phone,
        text,
    };
    // Nothing of test data reaches a real telephone. Its organization reads the message instead.
    let kept = job.org.is_test().then(|| TestMessage {
        id: MessageId::new(),
        org: job.org.clone(),
        channel: MessageChannel::Sms,
        envelope: Some(matter.envelope.id.clone()),
        to: message.to.clone(),
        subject: None,
        body: message.text.clone(),
        link: None,
        attachments: Vec::new(),
        at: app.clock.now(),
    });

    let source = message.id.clone();
    match (messaging::send(app, &job.org, message).await?, kept) {
        // The provider will never accept this number, so the sender learns of it and the job ends.
        (SentText::Refused(why), _) => {
            messaging::report(app, &matter.envelope, signer, about, &why).await?;
            return Ok(());
        }
        (SentText::Taken, Some(kept)) => test_mode::keep(app, &source, &kept).await?,
        (SentText::Taken, None) => {}
    }

    Ok(mails::report_accepted(app, &matter.envelope, signer).await?)
}

/// Reports a text message that is given up after its last attempt.
pub(super) async fn given_up(app: &App, job: &ClaimedJob) -> Result<(), DeliveryError> {
    let about = match job.kind.as_str() {
        TextInvitation::NAME => TextMessageKind::Invitation,
        TextReminder::NAME => TextMessageKind::Reminder,
        TextAccessCode::NAME => TextMessageKind::AccessCode,
        _ => return Ok(()),
    };

    // A payload that cannot be read names no signer to report about.
    let Ok(to) = MailAddressee::deserialize(&job.payload) else {
        return Ok(());
    };

    // Without this report, the sender would wait for a signer who has never got a message.
    let matter = MailSubject::read(app, &job.org, to).await?;
    if let Some((matter, signer)) = matter.as_ref().and_then(|one| Some((one, one.signer()?))) {
        let why = "the provider could not be used";
        messaging::report(app, &matter.envelope, signer, about, why).await?;
    }

    Ok(())
}
