//! Submissions: create, read, archive, fetch the signed document.

use std::fmt::Write as _;

use crate::bindings::exports::holdfast::signing::signing::{
    ProviderError, Submission, SubmissionRequest,
};
use crate::bindings::holdfast::host::blobs::Blob;
use crate::bindings::holdfast::host::{random, room};
use crate::bindings::holdfast::signing::types::{
    SignedValue, SignerStatus, SubmissionStatus, Submitter, SubmitterRequest,
};
use crate::component::{Result, new_id, number};
use crate::templates::{self, is_signature};

/// Creates a submission, or returns the existing one with this external id.
pub(crate) fn create(request: SubmissionRequest) -> Result<Submission> {
    if let Some(known) = room::find_submission_of(&request.external_id) {
        return Ok(shown(known));
    }

    let rejected = |why: &str| Err(ProviderError::Rejected(why.into()));
    let template = templates::find(&request.template_id)?;
    if template.archived {
        return rejected("the template is archived");
    }
    if template.fields.is_empty() {
        return rejected("the template has no fields");
    }
    // Two signers would share one role, and so each other's fields.
    if request.submitters.len() > template.roles.len() {
        return rejected("there are more signers than roles of the template");
    }

    // A field in several places is one field: the signer fills it in once.
    let fields = merged(template.fields);
    let invite = |submitter| invitation(submitter, &template.roles, &fields);
    let invitations = request.submitters.into_iter().map(invite);
    let submission = room::NewSubmission {
        id: new_id(),
        template_id: template.id,
        document: template.document,
        external_id: request.external_id,
        name: request.name,
        preserve_order: request.preserve_order,
        invitations: invitations.collect::<Result<_>>()?,
        fields,
    };

    // Nothing is stored before every invitation is valid, so a refused request leaves no trace.
    room::add_submission(&submission);
    let invited = |invitation| room::Submitter {
        invitation,
        opened_at: None,
        started_at: None,
        consented_at: None,
        consent_version: None,
        consent_locale: None,
        consent_sha256: None,
        attachments: None,
        shown_sha256: None,
        completed_at: None,
        declined_at: None,
        decline_reason: None,
        ip: None,
        user_agent: None,
    };

    Ok(shown(room::Submission {
        id: submission.id,
        fields: submission.fields,
        submitters: submission.invitations.into_iter().map(invited).collect(),
        completed_at: None,
        archived: false,
    }))
}

/// Merges the areas of fields with the same role and name into one field.
fn merged(fields: Vec<room::Field>) -> Vec<room::Field> {
    let mut merged: Vec<room::Field> = Vec::new();
    for field in fields {
        let same = |known: &&mut room::Field| known.name == field.name && known.role == field.role;
        match merged.iter_mut().find(same) {
            Some(known) => {
                known.areas.extend(field.areas);
                // A field that is required in one place has to be filled in.
                known.required |= field.required;
                for (name, value) in field.attributes {
                    if !known.attributes.iter().any(|(given, _)| *given == name) {
                        known.attributes.push((name, value));
                    }
                }
            }
            None => merged.push(field),
        }
    }

    merged
}

fn invitation(
    submitter: SubmitterRequest,
    roles: &[String],
    fields: &[room::Field],
) -> Result<room::Invitation> {
    let role = roles
        .iter()
        .find(|role| role.eq_ignore_ascii_case(&submitter.role))
        .ok_or_else(|| {
            ProviderError::Rejected(format!("the template has no role {}", submitter.role))
        })?;

    // Signatures are never prefilled: each signer signs in person.
    let typed = fields
        .iter()
        .filter(|field| field.role == *role && !is_signature(&field.field_type));
    // A value without a field would be lost silently, and the signer would see an empty form.
    let unknown = |(name, _): &&(String, String)| typed.clone().all(|field| field.name != *name);
    if let Some((name, _)) = submitter.values.iter().find(unknown) {
        let why = format!("role {role} has no field {name}");
        return Err(ProviderError::Rejected(why));
    }

    let defaults = typed.filter_map(|field| {
        let value = field.default_value.clone()?;
        Some((field.name.clone(), value))
    });
    Ok(room::Invitation {
        id: new_id(),
        slug: new_slug(),
        name: submitter.name,
        email: submitter.email,
        role: role.clone(),
        // If a field has two values, the later one counts.
        values: defaults.chain(submitter.values).collect(),
    })
}

/// Returns 14 hexadecimal digits.
fn new_slug() -> String {
    let mut slug = String::new();
    // The slug is an id in evidence and opens nothing, so seven bytes are enough.
    for byte in random::bytes(7) {
        let _ = write!(slug, "{byte:02x}");
    }
    slug
}

pub(crate) fn find(id: &str) -> Result<room::Submission> {
    room::find_submission(number(id)?).ok_or(ProviderError::NotFound)
}

pub(crate) fn archive(id: &str) -> Result<()> {
    let submission = find(id)?;
    // A repeated call is harmless, and changes no record twice.
    if !submission.archived {
        room::archive_submission(submission.id);
    }
    Ok(())
}

pub(crate) fn signed_document(id: &str) -> Result<Blob> {
    let submission = find(id)?;
    let document = submission
        .completed_at
        // Before the last signature there is no executed document. A preview must not be taken for it.
        .and_then(|_| room::executed_document(submission.id));
    document.ok_or_else(|| ProviderError::Rejected("the submission is not completed".into()))
}

/// Returns the public view of a submission. It is completed only after the executed document is
/// stored.
pub(crate) fn shown(submission: room::Submission) -> Submission {
    let declined = |submitter: &room::Submitter| submitter.declined_at.is_some();
    let status = if submission.completed_at.is_some() {
        SubmissionStatus::Completed
    } else if submission.submitters.iter().any(declined) {
        SubmissionStatus::Declined
    } else {
        SubmissionStatus::Pending
    };

    let submitters = submission.submitters.into_iter();
    Submission {
        submission_id: submission.id.to_string(),
        status,
        archived: submission.archived,
        completed_at: submission.completed_at,
        submitters: submitters
            .map(|submitter| self::submitter(submitter, &submission.fields))
            .collect(),
    }
}

fn submitter(submitter: room::Submitter, fields: &[room::Field]) -> Submitter {
    let invitation = submitter.invitation;
    // The furthest step counts, and all earlier times stay set.
    let status = if submitter.completed_at.is_some() {
        SignerStatus::Completed
    } else if submitter.declined_at.is_some() {
        SignerStatus::Declined
    } else if submitter.started_at.is_some() {
        SignerStatus::Started
    } else if submitter.opened_at.is_some() {
        SignerStatus::Viewed
    } else {
        SignerStatus::Pending
    };

    let own = fields.iter().filter(|field| field.role == invitation.role);
    let value = |field: &room::Field| {
        // Prefilled values come first and later ones replace them, so the search begins at the end.
        let entered = invitation.values.iter().rev();
        let (_, value) = entered.clone().find(|(name, _)| *name == field.name)?;
        Some(SignedValue {
            name: field.name.clone(),
            field_type: field.field_type.clone(),
            // The signature itself stays in the document.
            value: if is_signature(&field.field_type) && !value.is_empty() {
                "signed".into()
            } else {
                value.clone()
            },
        })
    };

    // Attributes are the signer's evidence. Those that do not exist yet are left out.
    let attributes = [
        ("slug", Some(invitation.slug.clone())),
        ("ip", submitter.ip),
        ("user_agent", submitter.user_agent),
        ("opened_at", submitter.opened_at),
        ("consented_at", submitter.consented_at),
        ("consent_version", submitter.consent_version),
        ("consent_locale", submitter.consent_locale),
        ("consent_sha256", submitter.consent_sha256),
        ("shown_sha256", submitter.shown_sha256),
        ("attachments", submitter.attachments),
    ];

    Submitter {
        submitter_id: invitation.id.to_string(),
        status,
        // Signers use the host's own page.
        signing_url: String::new(),
        completed_at: submitter.completed_at,
        decline_reason: submitter.decline_reason,
        values: own.filter_map(value).collect(),
        attributes: attributes
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect(),
        name: invitation.name,
        email: invitation.email,
        role: invitation.role,
    }
}
