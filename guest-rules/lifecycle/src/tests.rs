//! The transition tables of the specification, every status against every trigger.

use crate::types::{
    BatchStatus, BatchTrigger, EnvelopeFacts, EnvelopeKind, EnvelopeStatus, EnvelopeTrigger,
    PaymentStatus, RefusalReason,
};
use crate::{batch, envelope, status_text};

const STATUSES: [EnvelopeStatus; 11] = [
    EnvelopeStatus::Pending,
    EnvelopeStatus::Uploaded,
    EnvelopeStatus::Preparing,
    EnvelopeStatus::Sent,
    EnvelopeStatus::Viewed,
    EnvelopeStatus::Completed,
    EnvelopeStatus::Vaulted,
    EnvelopeStatus::VaultedOut,
    EnvelopeStatus::Declined,
    EnvelopeStatus::Voided,
    EnvelopeStatus::Expired,
];

fn esign() -> EnvelopeFacts {
    EnvelopeFacts {
        kind: EnvelopeKind::Esign,
        has_template: true,
        is_upload: false,
        has_file: false,
        has_vault_file: true,
        payment: PaymentStatus::NotRequested,
        attributes: Vec::new(),
    }
}

fn paper() -> EnvelopeFacts {
    EnvelopeFacts {
        kind: EnvelopeKind::Paper,
        has_template: false,
        is_upload: true,
        has_file: true,
        ..esign()
    }
}

/// Returns the result of `trigger` for each of [`STATUSES`], in order: the next status, or `-` for
/// a refusal by status.
fn row(trigger: EnvelopeTrigger, facts: &EnvelopeFacts) -> String {
    STATUSES
        .iter()
        .map(|status| match envelope(Some(*status), trigger, facts) {
            Ok(next) => status_text(next).to_owned(),
            Err(_) => "-".to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn every_status_and_trigger_matches_the_transition_table() {
    // Columns: pending uploaded preparing sent viewed completed vaulted
    //          vaulted_out declined voided expired
    let table = [
        (
            EnvelopeTrigger::Upload,
            "uploaded uploaded - - - - - - - - -",
        ),
        (EnvelopeTrigger::Send, "sent sent sent - - - - - - - -"),
        (EnvelopeTrigger::View, "- - - viewed viewed - - - - - -"),
        (EnvelopeTrigger::Progress, "- - - viewed viewed - - - - - -"),
        (
            EnvelopeTrigger::Complete,
            "- - - completed completed completed - - - - -",
        ),
        (
            EnvelopeTrigger::Decline,
            "- - - declined declined - - - declined - -",
        ),
        (
            EnvelopeTrigger::Void,
            "voided voided voided voided voided - - - - - -",
        ),
        (
            EnvelopeTrigger::Expire,
            "expired expired expired expired expired - - - - - -",
        ),
        (
            EnvelopeTrigger::VaultInSigned,
            "- - - - - vaulted vaulted - - - -",
        ),
        (EnvelopeTrigger::VaultInUpload, "- - - - - - - - - - -"),
        (
            EnvelopeTrigger::VaultOut,
            "- - - - - - vaulted_out vaulted_out - - -",
        ),
        (EnvelopeTrigger::Remind, "- - - sent viewed - - - - - -"),
        (
            EnvelopeTrigger::SigningLinks,
            "- - - sent viewed completed vaulted vaulted_out - - -",
        ),
        (EnvelopeTrigger::EmbedSign, "- - - sent viewed - - - - - -"),
        (EnvelopeTrigger::EmbedVault, "- - - - - - vaulted - - - -"),
        (
            EnvelopeTrigger::DownloadAuthoritative,
            "- - - - - - vaulted - - - -",
        ),
        (
            EnvelopeTrigger::DownloadCopy,
            "- - - - - - vaulted vaulted_out - - -",
        ),
        (EnvelopeTrigger::Create, "- - - - - - - - - - -"),
        (EnvelopeTrigger::CreateInBulk, "- - - - - - - - - - -"),
    ];

    for (trigger, expected) in table {
        assert_eq!(row(trigger, &esign()), expected, "{trigger:?}");
    }
}

#[test]
fn paper_envelopes_are_vaulted_by_upload_only() {
    assert_eq!(
        row(EnvelopeTrigger::VaultInUpload, &paper()),
        "- vaulted - - - - vaulted - - - -"
    );

    for trigger in [
        EnvelopeTrigger::VaultInSigned,
        EnvelopeTrigger::Send,
        EnvelopeTrigger::Expire,
    ] {
        let refusal = envelope(Some(EnvelopeStatus::Uploaded), trigger, &paper()).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::WrongKind, "{trigger:?}");
    }

    let signed_here = envelope(
        Some(EnvelopeStatus::Completed),
        EnvelopeTrigger::VaultInUpload,
        &esign(),
    );
    assert_eq!(signed_here.unwrap_err().reason, RefusalReason::WrongKind);
}

#[test]
fn the_initial_status_depends_on_kind_and_template() {
    let created = |facts: &EnvelopeFacts| envelope(None, EnvelopeTrigger::Create, facts).unwrap();
    assert_eq!(created(&paper()), EnvelopeStatus::Uploaded);
    assert_eq!(created(&esign()), EnvelopeStatus::Sent);

    let without_template = EnvelopeFacts {
        has_template: false,
        ..esign()
    };
    assert_eq!(created(&without_template), EnvelopeStatus::Pending);
    assert_eq!(
        envelope(None, EnvelopeTrigger::CreateInBulk, &esign()).unwrap(),
        EnvelopeStatus::Preparing
    );
    assert!(envelope(None, EnvelopeTrigger::Void, &esign()).is_err());
}

#[test]
fn voiding_a_finished_envelope_is_refused_with_the_specified_text() {
    let refusal = envelope(
        Some(EnvelopeStatus::Completed),
        EnvelopeTrigger::Void,
        &esign(),
    )
    .unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::Semantic);
    assert_eq!(
        refusal.message,
        "Cannot void envelope with status: completed"
    );
}

#[test]
fn an_unpaid_envelope_cannot_be_vaulted() {
    let unpaid = |facts: EnvelopeFacts| EnvelopeFacts {
        payment: PaymentStatus::RequiresPayment,
        ..facts
    };
    for (status, trigger, facts) in [
        (
            EnvelopeStatus::Completed,
            EnvelopeTrigger::VaultInSigned,
            unpaid(esign()),
        ),
        (
            EnvelopeStatus::Uploaded,
            EnvelopeTrigger::VaultInUpload,
            unpaid(paper()),
        ),
        (
            EnvelopeStatus::Vaulted,
            EnvelopeTrigger::DownloadAuthoritative,
            unpaid(esign()),
        ),
        (
            EnvelopeStatus::Vaulted,
            EnvelopeTrigger::DownloadCopy,
            unpaid(esign()),
        ),
        (
            EnvelopeStatus::Vaulted,
            EnvelopeTrigger::EmbedVault,
            unpaid(esign()),
        ),
    ] {
        let refusal = envelope(Some(status), trigger, &facts).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::Unpaid, "{trigger:?}");
    }

    let paid = EnvelopeFacts {
        payment: PaymentStatus::Paid,
        ..esign()
    };
    assert_eq!(
        envelope(
            Some(EnvelopeStatus::Completed),
            EnvelopeTrigger::VaultInSigned,
            &paid
        )
        .unwrap(),
        EnvelopeStatus::Vaulted
    );
}

#[test]
fn nothing_can_be_sent_or_vaulted_without_a_document() {
    let empty = EnvelopeFacts {
        has_template: false,
        ..esign()
    };
    let refusal = envelope(Some(EnvelopeStatus::Pending), EnvelopeTrigger::Send, &empty);
    assert_eq!(refusal.unwrap_err().reason, RefusalReason::Missing);

    let no_file = EnvelopeFacts {
        has_file: false,
        ..paper()
    };
    let refusal = envelope(
        Some(EnvelopeStatus::Uploaded),
        EnvelopeTrigger::VaultInUpload,
        &no_file,
    );
    assert_eq!(refusal.unwrap_err().reason, RefusalReason::Missing);
}

#[test]
fn every_batch_status_and_trigger_matches_the_transition_table() {
    const BATCH: [BatchStatus; 6] = [
        BatchStatus::Draft,
        BatchStatus::Ready,
        BatchStatus::Running,
        BatchStatus::Completed,
        BatchStatus::Cancelled,
        BatchStatus::Failed,
    ];

    use BatchStatus::{Cancelled, Completed, Draft, Failed, Ready, Running};

    let table = [
        (BatchTrigger::Create, [None; 6]),
        (
            BatchTrigger::SetItems,
            [Some(Ready), Some(Ready), None, None, None, None],
        ),
        (
            BatchTrigger::Update,
            [Some(Draft), Some(Ready), None, None, None, None],
        ),
        (
            BatchTrigger::Submit,
            [Some(Running), Some(Running), None, None, None, None],
        ),
        (
            BatchTrigger::Finish,
            [None, None, Some(Completed), Some(Completed), None, None],
        ),
        (
            BatchTrigger::Fail,
            [None, None, Some(Failed), None, None, Some(Failed)],
        ),
        (
            BatchTrigger::Cancel,
            [None, None, Some(Cancelled), None, Some(Cancelled), None],
        ),
        (
            BatchTrigger::Delete,
            [Some(Draft), Some(Ready), None, None, None, None],
        ),
    ];
    assert_eq!(batch(None, BatchTrigger::Create).unwrap(), Draft);

    let why = |status, trigger| batch(status, trigger).unwrap_err().message;
    assert_eq!(why(None, BatchTrigger::Submit), "Batch does not exist");
    assert_eq!(
        why(Some(Draft), BatchTrigger::Create),
        "Batch exists already"
    );
    assert_eq!(
        why(Some(Running), BatchTrigger::Submit),
        "Batch has already been submitted"
    );
    assert_eq!(
        why(Some(Running), BatchTrigger::Delete),
        "Cannot delete batch with status: running"
    );

    for (trigger, expected) in table {
        for (status, expected) in BATCH.into_iter().zip(expected) {
            assert_eq!(
                batch(Some(status), trigger).ok(),
                expected,
                "{status:?} {trigger:?}"
            );
        }
    }
}

/// Each refusal names the kind of the envelope, or the missing part.
#[test]
fn a_refusal_states_the_kind_or_what_is_missing() {
    use EnvelopeStatus::{Completed, Pending, Sent, Uploaded};
    use EnvelopeTrigger::{Create, Expire, Send, VaultInSigned, VaultInUpload};

    let without_template = EnvelopeFacts {
        has_template: false,
        ..esign()
    };
    let without_file = EnvelopeFacts {
        has_file: false,
        ..paper()
    };

    let unpaid = EnvelopeFacts {
        payment: PaymentStatus::RequiresPayment,
        ..esign()
    };
    for (status, trigger, facts, words) in [
        (None, Send, esign(), "Envelope does not exist"),
        (Some(Pending), Create, esign(), "Envelope exists already"),
        (
            Some(Uploaded),
            Send,
            paper(),
            "A paper envelope is for a document that was signed elsewhere and cannot be sent for signature",
        ),
        (
            Some(Pending),
            Send,
            without_template,
            "Envelope has no document to send",
        ),
        (
            Some(Sent),
            Expire,
            paper(),
            "A paper envelope does not expire",
        ),
        (
            Some(Uploaded),
            VaultInSigned,
            paper(),
            "Envelope was uploaded, not signed here: use vault-in-upload",
        ),
        (
            Some(Completed),
            VaultInUpload,
            esign(),
            "Envelope was not uploaded as a signed document: use vault-in-signed",
        ),
        (
            Some(Uploaded),
            VaultInUpload,
            without_file,
            "Envelope has no uploaded file",
        ),
        (
            Some(Completed),
            VaultInSigned,
            unpaid,
            "Payment has not been completed",
        ),
    ] {
        let refusal = envelope(status, trigger, &facts).unwrap_err();
        assert_eq!(refusal.message, words, "{trigger:?}");
    }
}

/// Each refusal of a status names the call and the status.
#[test]
fn a_refusal_of_a_status_names_the_call() {
    use EnvelopeStatus::{Completed, Pending, Voided};
    use EnvelopeTrigger::{
        DownloadAuthoritative, DownloadCopy, EmbedSign, EmbedVault, Remind, SigningLinks, Upload,
        Void,
    };

    for (status, trigger, words) in [
        (
            Completed,
            Upload,
            "Cannot upload to envelope with status: completed",
        ),
        (Voided, Void, "Cannot void envelope with status: voided"),
        (
            Voided,
            Remind,
            "Cannot remind signers of envelope with status: voided",
        ),
        (
            Pending,
            SigningLinks,
            "Cannot read signing links of envelope with status: pending",
        ),
        (
            Completed,
            EmbedSign,
            "Cannot embed signing of envelope with status: completed",
        ),
        (
            Pending,
            EmbedVault,
            "Cannot embed the vault of envelope with status: pending",
        ),
        (
            Pending,
            DownloadAuthoritative,
            "Cannot download the authoritative copy of envelope with status: pending",
        ),
        (
            Pending,
            DownloadCopy,
            "Cannot download the copy of envelope with status: pending",
        ),
    ] {
        let refusal = envelope(Some(status), trigger, &esign()).unwrap_err();
        assert_eq!(refusal.message, words);
    }
}
