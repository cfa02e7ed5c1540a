//! Transition table of the envelope.
//!
//! One `match` per trigger covers every status, without a catch-all arm: adding a status makes the
//! compiler ask at every trigger.

use crate::refusals::{by_status, refuse, status_text};
use crate::types::{
    EnvelopeFacts, EnvelopeKind, EnvelopeStatus, EnvelopeTrigger, PaymentStatus, Refusal,
    RefusalReason,
};

use EnvelopeStatus::{
    Completed, Declined, Expired, Pending, Preparing, Sent, Uploaded, Vaulted, VaultedOut, Viewed,
    Voided,
};

type Answer = Result<EnvelopeStatus, Refusal>;

/// Returns the status of an envelope after `trigger`, or the refusal.
pub fn envelope(
    current: Option<EnvelopeStatus>,
    trigger: EnvelopeTrigger,
    facts: &EnvelopeFacts,
) -> Answer {
    let Some(status) = current else {
        return match trigger {
            EnvelopeTrigger::Create => Ok(created(facts)),
            EnvelopeTrigger::CreateInBulk => Ok(Preparing),
            _ => refuse(RefusalReason::Missing, "Envelope does not exist"),
        };
    };

    match trigger {
        EnvelopeTrigger::Create | EnvelopeTrigger::CreateInBulk => {
            refuse(RefusalReason::Status, "Envelope exists already")
        }
        EnvelopeTrigger::Upload => upload(status),
        EnvelopeTrigger::Send => send(status, facts),
        EnvelopeTrigger::View => view(status),
        EnvelopeTrigger::Progress => progress(status),
        EnvelopeTrigger::Complete => complete(status),
        EnvelopeTrigger::Decline => decline(status),
        EnvelopeTrigger::Void => void(status),
        EnvelopeTrigger::Expire => expire(status, facts),
        EnvelopeTrigger::VaultInSigned => vault_in_signed(status, facts),
        EnvelopeTrigger::VaultInUpload => vault_in_upload(status, facts),
        EnvelopeTrigger::VaultOut => vault_out(status),
        EnvelopeTrigger::Remind => remind(status),
        EnvelopeTrigger::SigningLinks => signing_links(status),
        EnvelopeTrigger::EmbedSign => embed_sign(status),
        EnvelopeTrigger::EmbedVault => embed_vault(status, facts),
        EnvelopeTrigger::DownloadAuthoritative => download_authoritative(status, facts),
        EnvelopeTrigger::DownloadCopy => download_copy(status, facts),
    }
}

fn created(facts: &EnvelopeFacts) -> EnvelopeStatus {
    // A template has document and fields, so such an envelope is sent at once.
    match facts.kind {
        EnvelopeKind::Paper => Uploaded,
        EnvelopeKind::Esign if facts.has_template => Sent,
        EnvelopeKind::Esign => Pending,
    }
}

/// Attaches a document, or replaces it while no signer has seen it.
fn upload(status: EnvelopeStatus) -> Answer {
    match status {
        Pending | Uploaded => Ok(Uploaded),
        Preparing | Sent | Viewed | Completed | Vaulted | VaultedOut | Declined | Voided
        | Expired => by_status("upload to", status),
    }
}

fn send(status: EnvelopeStatus, facts: &EnvelopeFacts) -> Answer {
    if facts.kind == EnvelopeKind::Paper {
        return refuse(
            RefusalReason::WrongKind,
            "A paper envelope is for a document that was signed elsewhere and cannot be sent for signature",
        );
    }

    // A document comes from a template or from an upload. Without either, there is nothing to sign.
    match status {
        Pending | Uploaded | Preparing => {
            if facts.has_template || facts.has_file {
                Ok(Sent)
            } else {
                refuse(RefusalReason::Missing, "Envelope has no document to send")
            }
        }
        Sent | Viewed | Completed | Vaulted | VaultedOut | Declined | Voided | Expired => {
            by_status("send", status)
        }
    }
}

fn view(status: EnvelopeStatus) -> Answer {
    // A signer opens the page many times, so the second look is no refusal.
    match status {
        Sent | Viewed => Ok(Viewed),
        Pending | Uploaded | Preparing | Completed | Vaulted | VaultedOut | Declined | Voided
        | Expired => by_status("open", status),
    }
}

/// Saving a field counts as viewing: the signer has the document open.
fn progress(status: EnvelopeStatus) -> Answer {
    match status {
        Sent | Viewed => Ok(Viewed),
        Pending | Uploaded | Preparing | Completed | Vaulted | VaultedOut | Declined | Voided
        | Expired => by_status("sign", status),
    }
}

fn complete(status: EnvelopeStatus) -> Answer {
    // A provider may report the same end twice. The second report must not fail.
    match status {
        Sent | Viewed | Completed => Ok(Completed),
        Pending | Uploaded | Preparing | Vaulted | VaultedOut | Declined | Voided | Expired => {
            by_status("complete", status)
        }
    }
}

fn decline(status: EnvelopeStatus) -> Answer {
    // A repeated report is no refusal. A completed document can no longer be declined.
    match status {
        Sent | Viewed | Declined => Ok(Declined),
        Pending | Uploaded | Preparing | Completed | Vaulted | VaultedOut | Voided | Expired => {
            by_status("decline", status)
        }
    }
}

/// The specification gives both 409 and 422 for this refusal; the contract uses 422 with this text.
fn void(status: EnvelopeStatus) -> Answer {
    match status {
        Pending | Uploaded | Preparing | Sent | Viewed => Ok(Voided),
        Completed | Vaulted | VaultedOut | Declined | Voided | Expired => refuse(
            RefusalReason::Semantic,
            format!("Cannot void envelope with status: {}", status_text(status)),
        ),
    }
}

/// Only an invitation expires: an uploaded paper document may wait for its vault-in indefinitely.
fn expire(status: EnvelopeStatus, facts: &EnvelopeFacts) -> Answer {
    if facts.kind == EnvelopeKind::Paper {
        return refuse(RefusalReason::WrongKind, "A paper envelope does not expire");
    }

    match status {
        Pending | Uploaded | Preparing | Sent | Viewed => Ok(Expired),
        Completed | Vaulted | VaultedOut | Declined | Voided | Expired => {
            by_status("expire", status)
        }
    }
}

fn vault_in_signed(status: EnvelopeStatus, facts: &EnvelopeFacts) -> Answer {
    if facts.kind == EnvelopeKind::Paper || facts.is_upload {
        return refuse(
            RefusalReason::WrongKind,
            "Envelope was uploaded, not signed here: use vault-in-upload",
        );
    }

    // A job that is repeated after a crash may find the record in the vault already.
    match status {
        Vaulted => Ok(Vaulted),
        Completed => paid(facts).map(|()| Vaulted),
        Pending | Uploaded | Preparing | Sent | Viewed | VaultedOut | Declined | Voided
        | Expired => by_status("vault", status),
    }
}

fn vault_in_upload(status: EnvelopeStatus, facts: &EnvelopeFacts) -> Answer {
    if !facts.is_upload {
        return refuse(
            RefusalReason::WrongKind,
            "Envelope was not uploaded as a signed document: use vault-in-signed",
        );
    }

    // The missing file comes before the payment: paying would not help.
    match status {
        Vaulted => Ok(Vaulted),
        Uploaded if !facts.has_file => {
            refuse(RefusalReason::Missing, "Envelope has no uploaded file")
        }
        Uploaded => paid(facts).map(|()| Vaulted),
        Pending | Preparing | Sent | Viewed | Completed | VaultedOut | Declined | Voided
        | Expired => by_status("vault", status),
    }
}

/// Releasing again is allowed and returns the same archive.
fn vault_out(status: EnvelopeStatus) -> Answer {
    match status {
        Vaulted | VaultedOut => Ok(VaultedOut),
        Pending | Uploaded | Preparing | Sent | Viewed | Completed | Declined | Voided
        | Expired => by_status("release", status),
    }
}

fn remind(status: EnvelopeStatus) -> Answer {
    // A reminder goes only to a signer who still can sign.
    match status {
        Sent | Viewed => Ok(status),
        Pending | Uploaded | Preparing | Completed | Vaulted | VaultedOut | Declined | Voided
        | Expired => by_status("remind signers of", status),
    }
}

/// Links can be read once the envelope is sent. A finished signer's link shows that nothing is left
/// to do.
fn signing_links(status: EnvelopeStatus) -> Answer {
    match status {
        Sent | Viewed | Completed | Vaulted | VaultedOut => Ok(status),
        Pending | Uploaded | Preparing | Declined | Voided | Expired => {
            by_status("read signing links of", status)
        }
    }
}

fn embed_sign(status: EnvelopeStatus) -> Answer {
    match status {
        Sent | Viewed => Ok(status),
        Pending | Uploaded | Preparing | Completed | Vaulted | VaultedOut | Declined | Voided
        | Expired => by_status("embed signing of", status),
    }
}

fn embed_vault(status: EnvelopeStatus, facts: &EnvelopeFacts) -> Answer {
    // The widget shows the stored copy, so the status without the file is not enough.
    match status {
        Vaulted if facts.has_vault_file => paid(facts).map(|()| Vaulted),
        Vaulted | Pending | Uploaded | Preparing | Sent | Viewed | Completed | VaultedOut
        | Declined | Voided | Expired => by_status("embed the vault of", status),
    }
}

fn download_authoritative(status: EnvelopeStatus, facts: &EnvelopeFacts) -> Answer {
    // After the release the only authoritative copy is elsewhere,
    // and this vault must not hand out a second one.
    match status {
        Vaulted => paid(facts).map(|()| Vaulted),
        Pending | Uploaded | Preparing | Sent | Viewed | Completed | VaultedOut | Declined
        | Voided | Expired => by_status("download the authoritative copy of", status),
    }
}

/// The copy stays readable after the authoritative copy is released.
fn download_copy(status: EnvelopeStatus, facts: &EnvelopeFacts) -> Answer {
    match status {
        Vaulted | VaultedOut => paid(facts).map(|()| status),
        Pending | Uploaded | Preparing | Sent | Viewed | Completed | Declined | Voided
        | Expired => by_status("download the copy of", status),
    }
}

fn paid(facts: &EnvelopeFacts) -> Result<(), Refusal> {
    match facts.payment {
        PaymentStatus::NotRequested | PaymentStatus::Paid => Ok(()),
        PaymentStatus::RequiresPayment => {
            refuse(RefusalReason::Unpaid, "Payment has not been completed")
        }
    }
}
