//! The people of an envelope: signers in their order, and recipients who do not sign.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::templates::answers;
use holdfast_base::config::{EMBEDDED, SecretText};
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::dates::ZoneName;
use holdfast_domain::envelope::{
    Envelope, Recipient, RecipientKind, Signer, SignerAccess, SignerChannel, SignerKind,
    same_address,
};
use holdfast_domain::id::OrgId;
use holdfast_domain::identity;
use holdfast_domain::locale::Locale;
use holdfast_domain::template::Template;
use holdfast_platform::lookup::room_submission;
use holdfast_platform::passcodes::seal_passcode;
use holdfast_platform::room::changes::SubmitterPlace;
use holdfast_platform::{Core, ServiceError, ValidationIssue};
use holdfast_store::WriteTransaction;

/// One member of `signers[]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RequestedSigner {
    #[schemars(email)]
    pub email: String,
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    /// Submitter role of the template; defaults to `Signer 1`, `Signer 2`, … by position. Only an
    /// `approver` may have a role without fields.
    #[schemars(length(min = 1, max = 200))]
    pub role: Option<String>,
    /// `signer` (default) signs, `approver` approves before or after others, `witness` signs as a
    /// witness of a signer.
    pub kind: Option<SignerKind>,
    /// Role of the witnessed signer, for kind `witness` only. The witness signs
    /// after that signer, and states name and postal address with the signature.
    #[schemars(length(min = 1, max = 200))]
    pub witness_of: Option<String>,
    /// True: the witness is with that signer. The signer's page offers the witness's form after the signature.
    /// The record shows the name that the witness states beside `name`; `email` also gets a link. Only with
    /// `witness_of`, and without `access`.
    pub same_device: Option<bool>,
    /// Group of the signer: a recipient of kind `substitute` with this group may sign in the signer's
    /// place, until the signer has signed.
    #[schemars(length(min = 1, max = 200))]
    pub group: Option<String>,
    /// Place in the signing order; signers with an equal one sign in any order. Given for all signers
    /// or none, and only with a signing order. Defaults to one after the other.
    #[schemars(range(min = 1, max = 50))]
    pub order: Option<i64>,
    /// What the signer enters before the document opens: nothing (default), a code that the signer gets
    /// by mail (`email_code`) or as a text message (`sms_code`), or the `passcode`.
    pub access: Option<SignerAccess>,
    /// Passcode that the sender has given to the signer by another way, for example by telephone.
    /// Required for `access` `passcode`, and only then.
    #[schemars(with = "Option<String>", length(min = 6, max = 64))]
    pub passcode: Option<SecretText>,
    /// Mobile number with country code (E.164), for example `+15125550142`; a number without one is
    /// taken for one of North America. Required for `access` `sms_code` and for text messages.
    #[schemars(length(min = 8, max = 40))]
    pub phone: Option<String>,
    /// How invitations and reminders reach the signer: `email` (default), `sms` or `email_and_sms`.
    /// The signed copy always comes by e-mail.
    pub notify_by: Option<SignerChannel>,
    /// Language of this signer's pages and mails (BCP 47): `en`, `es`, `fr`, `de`, `pt`, `zh-Hans` or
    /// `ar`, also with a region such as `es-MX`. Defaults to the browser's, then to the organization's.
    #[schemars(length(min = 2, max = 35))]
    pub locale: Option<String>,
    /// Time zone of the signer, such as `America/Denver`: the organization's quiet hours count in it for planned
    /// reminders. Defaults to the organization's.
    pub time_zone: Option<ZoneName>,
    /// Whether the signer is a consumer (15 U.S.C. §7006(1)), as the sender states it. The certificate repeats
    /// the statement. Absent: nothing is stated.
    pub consumer: Option<bool>,
}

/// One member of `recipients[]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RequestedRecipient {
    #[schemars(email)]
    pub email: String,
    #[schemars(length(min = 1, max = 500))]
    pub name: String,
    /// `cc` (default) gets the signed copy by e-mail; `viewer` gets a link to read the document while
    /// it is being signed, too; `substitute` may also take the place of a signer of the `group` who has
    /// not signed.
    pub kind: Option<RecipientKind>,
    /// Group of a substitute, who may take the places of its signers. For kind
    /// `substitute` only.
    #[schemars(length(min = 1, max = 200))]
    pub group: Option<String>,
}

/// Plans the signers in signing order; a missing role becomes `Signer N` for position N.
///
/// # Errors
///
/// `Invalid` for an order, a passcode or a telephone number that does not fit the other members.
pub fn planned(
    cipher: &AtRestCipher,
    org: &OrgId,
    requested: Vec<RequestedSigner>,
    preserve_signing_order: bool,
    now: Timestamp,
) -> Result<Vec<Signer>, ServiceError> {
    check_order(&requested, preserve_signing_order)?;
    check_witnesses(&requested, preserve_signing_order)?;
    check_passcodes(&requested)?;
    check_locales(&requested)?;
    let phones = phones(&requested, now)?;
    // Sealed, so that a copy of the database does not open documents.
    let sealed = |passcode: SecretText| seal_passcode(cipher, org, passcode.reveal());
    let mut signers: Vec<Signer> = requested
        .into_iter()
        .zip(phones)
        .zip(1..)
        .map(|((signer, phone), number)| {
            let role = signer.role.unwrap_or_else(|| format!("Signer {number}"));
            Signer {
                kind: signer.kind.unwrap_or(SignerKind::Signer),
                witness_of: signer.witness_of,
                same_device: signer.same_device.unwrap_or(false),
                group: signer.group,
                turn: signer.order.unwrap_or(number),
                access: signer.access.unwrap_or(SignerAccess::None),
                passcode: signer.passcode.map(sealed),
                phone,
                notify_by: signer.notify_by.unwrap_or(SignerChannel::Email),
                locale: signer.locale.as_deref().and_then(Locale::of_tag),
                time_zone: signer.time_zone,
                consumer: signer.consumer,
                // The positions follow the turns, below.
                ..Signer::new(0, signer.name, signer.email, role)
            }
        })
        .collect();

    check_witnessed(&signers, preserve_signing_order)?;
    // The sort is stable: signers of one turn keep the order of the request.
    signers.sort_by_key(|signer| signer.turn);
    for (signer, position) in signers.iter_mut().zip(0..) {
        signer.position = position;
    }

    Ok(signers)
}

fn check_order(requested: &[RequestedSigner], preserved: bool) -> Result<(), ServiceError> {
    let given = requested.iter().filter_map(|signer| signer.order);
    let given: Vec<i64> = given.collect();
    let Some(first) = given.first() else {
        return Ok(());
    };

    let (expected, message) = if !preserved {
        (
            "no order without preserve_signing_order",
            "Signers without a signing order have no place in it",
        )
    } else if given.len() != requested.len() {
        (
            "an order for all signers or none",
            "Some signers have a place in the signing order and others have none",
        )
    } else {
        return Ok(());
    };

    let (path, first) = (["signers", "order"], first.to_string());
    let issue = ValidationIssue::new("signing_order", &path, expected, first, message);
    Err(ServiceError::Invalid(vec![issue]))
}

fn check_passcodes(requested: &[RequestedSigner]) -> Result<(), ServiceError> {
    for (index, signer) in requested.iter().enumerate() {
        let needs = signer.access == Some(SignerAccess::Passcode);
        let (code, expected, message) = match (needs, &signer.passcode) {
            (true, None) => (
                "passcode_required",
                "a passcode of 6 to 64 characters",
                format!("{} is to enter a passcode, and there is none", signer.name),
            ),
            // A signer who types the code has no such space, and the entry is trimmed before the
            // comparison.
            (true, Some(passcode)) if passcode.reveal().trim() != passcode.reveal() => (
                "passcode_spaces",
                "a passcode without spaces at its ends",
                "The passcode begins or ends with a space".to_owned(),
            ),
            (false, Some(_)) => (
                "passcode_unused",
                "no passcode unless access is passcode",
                format!("{} is not asked for the passcode", signer.name),
            ),
            _ => continue,
        };

        // The answer must not repeat the passcode.
        let path = ["signers", &index.to_string(), "passcode"];
        let issue = ValidationIssue::new(code, &path, expected, "", message);
        return Err(ServiceError::Invalid(vec![issue]));
    }

    Ok(())
}

/// Returns the telephone numbers in E.164.
fn phones(
    requested: &[RequestedSigner],
    now: Timestamp,
) -> Result<Vec<Option<String>>, ServiceError> {
    let number = |(index, signer): (usize, &RequestedSigner)| {
        let code = signer.access == Some(SignerAccess::SmsCode);
        let told = signer
            .notify_by
            .is_some_and(|by| by != SignerChannel::Email);

        let path = ["signers", &index.to_string(), "phone"];
        match &signer.phone {
            Some(text) => phone(text, &path, now).map(Some),
            None if code || told => Err(phone_required(&path, &signer.name)),
            None => Ok(None),
        }
    };

    requested.iter().enumerate().map(number).collect()
}

/// Returns a telephone number in E.164.
///
/// # Errors
///
/// `Invalid` if it is none.
pub fn phone(text: &str, path: &[&str], now: Timestamp) -> Result<String, ServiceError> {
    identity::read("phone", text, now).map_err(|_| {
        ServiceError::invalid(
            "invalid_phone",
            path,
            "a mobile number with country code, such as +15125550142",
            // The answer does not repeat the number, which is personal data.
            "",
            "This is no telephone number",
        )
    })
}

/// Returns the error for a signer who gets text messages and has no number.
pub fn phone_required(path: &[&str], name: &str) -> ServiceError {
    ServiceError::invalid(
        "phone_required",
        path,
        "a mobile number with country code, such as +15125550142",
        "",
        format!("{name} is to get text messages, and there is no number"),
    )
}

/// Refuses languages without texts.
fn check_locales(requested: &[RequestedSigner]) -> Result<(), ServiceError> {
    let unknown = requested.iter().enumerate().filter_map(|(index, signer)| {
        let tag = signer.locale.as_deref()?;
        let path = ["signers", &index.to_string(), "locale"];
        Locale::of_tag(tag).is_none().then(|| {
            ValidationIssue::new(
                "unknown_locale",
                &path,
                Locale::known(),
                tag,
                format!("There are no texts in the language {tag}"),
            )
        })
    });

    let unknown: Vec<ValidationIssue> = unknown.collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(unknown))
    }
}

/// Refuses a witness without a signer to witness: with signing order, in the same or an earlier turn.
fn check_witnesses(requested: &[RequestedSigner], preserved: bool) -> Result<(), ServiceError> {
    let turn = |index: usize| {
        // Without a given order, the place in the list is the turn.
        let order = requested.get(index).and_then(|signer| signer.order);
        order.unwrap_or(i64::try_from(index).unwrap_or(i64::MAX))
    };

    let signs = |signer: &RequestedSigner| matches!(signer.kind, None | Some(SignerKind::Signer));
    for (index, witness) in requested.iter().enumerate() {
        let mut others = requested.iter().enumerate();
        let seen = others
            .any(|(other, signer)| signs(signer) && (!preserved || turn(other) <= turn(index)));
        if witness.kind == Some(SignerKind::Witness) && !seen {
            return Err(ServiceError::invalid(
                "witness_first",
                &["signers", &index.to_string(), "kind"],
                "a signer before the witness",
                SignerKind::Witness.as_str(),
                format!("Nobody signs before the witness {}", witness.name),
            ));
        }
    }

    Ok(())
}

/// Refuses a witness of a signer who is not there, who signs later, or who has the same address, and a witness at no
/// signer's device.
fn check_witnessed(signers: &[Signer], preserved: bool) -> Result<(), ServiceError> {
    for (index, witness) in signers.iter().enumerate() {
        // A code goes to the address of the witness, which is not known to be theirs.
        let is_open = witness.witness_of.is_some() && witness.access == SignerAccess::None;
        if witness.same_device && !is_open {
            return Err(ServiceError::invalid(
                "same_device",
                &["signers", &index.to_string(), "same_device"],
                "a witness with witness_of and without access",
                "true",
                format!("{} cannot sign on the device of a signer", witness.name),
            ));
        }

        let Some(role) = &witness.witness_of else {
            continue;
        };

        let witnessed = signers
            .iter()
            .find(|signer| signer.kind == SignerKind::Signer && signer.has_role(role));
        let (code, expected, message) = if witness.kind != SignerKind::Witness {
            (
                "witness_of_unused",
                "no witness_of unless kind is witness",
                format!("{} is no witness", witness.name),
            )
        } else if witnessed.is_none() {
            (
                "unknown_role",
                "the role of a signer of the envelope",
                format!("No signer has the role {role}"),
            )
        } else if witnessed.is_some_and(|signer| preserved && signer.turn > witness.turn) {
            (
                "witness_first",
                "a signer before the witness",
                format!("{role} signs after the witness {}", witness.name),
            )
        } else if !witness.same_device
            && witnessed.is_some_and(|signer| same_address(&signer.email, &witness.email))
        {
            // Beside the signer, the witness need not have an address, and states another name.
            (
                "own_witness",
                "a witness with another address than the signer",
                format!("{} would witness their own signature", witness.name),
            )
        } else {
            continue;
        };

        let path = ["signers", &index.to_string(), "witness_of"];
        let issue = ValidationIssue::new(code, &path, expected, role.as_str(), message);
        return Err(ServiceError::Invalid(vec![issue]));
    }

    Ok(())
}

/// Plans the recipients who do not sign. Their positions follow those of the signers.
///
/// # Errors
///
/// `Invalid` for substitutes without a group of signers, and for groups that cannot have substitutes: also if
/// `kba_required`, because signers are asked about their identity.
pub fn recipients(
    requested: Vec<RequestedRecipient>,
    signers: &[Signer],
    kba_required: bool,
) -> Result<Vec<Recipient>, ServiceError> {
    // A link names its person by position, so recipients must not share those of signers.
    let first = signers.iter().map(|signer| signer.position + 1).max();
    let planned: Vec<Recipient> = requested
        .into_iter()
        .zip(first.unwrap_or_default()..)
        .map(|(recipient, position)| Recipient {
            position,
            name: recipient.name,
            email: recipient.email,
            kind: recipient.kind.unwrap_or(RecipientKind::Cc),
            group: recipient.group,
        })
        .collect();

    let issues = issues_of_groups(signers, &planned, kba_required);
    if issues.is_empty() {
        Ok(planned)
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Returns the problems of signers and substitutes of a group.
fn issues_of_groups(
    signers: &[Signer],
    recipients: &[Recipient],
    kba_required: bool,
) -> Vec<ValidationIssue> {
    let mut issues = Vec::new();
    for (index, signer) in signers.iter().enumerate() {
        // A link follows its person to another place, and substitutes read the document without a code and a check.
        if signer.group.is_some() && signer.access != SignerAccess::None {
            issues.push(ValidationIssue::new(
                "access_in_group",
                &["signers", &index.to_string(), "access"],
                "signers of a group without access",
                signer.access.as_str(),
                format!("A substitute of {} enters no code", signer.name),
            ));
        }
        if signer.group.is_some() && kba_required {
            issues.push(ValidationIssue::new(
                "kba_in_group",
                &["signers", &index.to_string(), "group"],
                "no groups where signers are asked about their identity",
                signer.group.as_deref().unwrap_or_default(),
                format!(
                    "A substitute of {} is not asked about the identity",
                    signer.name
                ),
            ));
        }
        // A substitute has no telephone here to which codes and invitations could go.
        if signer.group.is_some() && signer.needs_phone() {
            issues.push(ValidationIssue::new(
                "phone_in_group",
                &["signers", &index.to_string(), "group"],
                "signers of a group without text messages",
                signer.group.as_deref().unwrap_or_default(),
                format!("A substitute of {} gets no text messages", signer.name),
            ));
        }
    }

    // Each signature of a group has to come from another person.
    let mut members: Vec<(&str, &str, [String; 2])> = signers
        .iter()
        .enumerate()
        .filter_map(|(index, signer)| {
            let place = ["signers".to_owned(), index.to_string()];
            Some((signer.group.as_deref()?, signer.email.as_str(), place))
        })
        .collect();
    for (index, recipient) in recipients.iter().enumerate() {
        let group = recipient.group.as_deref();
        let is_substitute = recipient.kind == RecipientKind::Substitute;
        let has_group = signers
            .iter()
            .any(|signer| group.is_some() && signer.group.as_deref() == group);
        let (code, expected, message) = match group {
            Some(_) if !is_substitute => (
                "group_unused",
                "no group unless kind is substitute",
                format!("{} is no substitute", recipient.name),
            ),
            None if is_substitute => (
                "group_required",
                "the group of a signer",
                format!("{} is the substitute of nobody", recipient.name),
            ),
            Some(name) if !has_group => (
                "unknown_group",
                "the group of a signer",
                format!("No signer has the group {name}"),
            ),
            Some(name) => {
                let place = ["recipients".to_owned(), index.to_string()];
                members.push((name, recipient.email.as_str(), place));
                continue;
            }
            None => continue,
        };

        let path = ["recipients", &index.to_string(), "group"];
        let value = group.unwrap_or_default();
        issues.push(ValidationIssue::new(code, &path, expected, value, message));
    }

    for (index, (group, email, [list, at])) in members.iter().enumerate() {
        let mut before = members[..index].iter();
        if before.any(|(other, known, _)| other == group && same_address(known, email)) {
            issues.push(ValidationIssue::new(
                "duplicate_member",
                &[list.as_str(), at.as_str(), "group"],
                "people with different addresses in one group",
                *email,
                format!("The group {group} has the address {email} twice"),
            ));
        }
    }

    issues
}

/// Returns the problems of people, and of a form without a way to decline, that only the built-in signing room can
/// serve, for a template of another provider.
pub fn unsupported(
    template: &Template,
    signers: &[Signer],
    recipients: &[Recipient],
    may_decline: bool,
) -> Vec<ValidationIssue> {
    let provider = template.provider_instance.as_str();
    if provider == EMBEDDED {
        return Vec::new();
    }

    let turns: BTreeSet<i64> = signers.iter().map(|signer| signer.turn).collect();
    let viewer = |recipient: &Recipient| recipient.kind.reads_along();
    let mut issues = Vec::new();
    let mut refuse = |member: &str, value: &str, what: &str| {
        issues.push(ValidationIssue::new(
            "unsupported_by_provider",
            &[member],
            "what the signing provider can do",
            value,
            format!("Signing provider {provider} has no {what}"),
        ));
    };

    // Other providers know an order of single signers only.
    if turns.len() < signers.len() {
        refuse("signers", "order", "groups in the signing order");
    }

    if recipients.iter().any(viewer) {
        refuse(
            "recipients",
            RecipientKind::Viewer.as_str(),
            "viewers and substitutes",
        );
    }

    if signers.iter().any(|signer| signer.witness_of.is_some()) {
        refuse("signers", "witness_of", "witnesses of a signer");
    }

    if !may_decline {
        refuse("may_decline", "false", "form without a way to decline");
    }

    if !answers::unsupported(provider, &template.fields).is_empty() {
        let what = "rules about answers and no files of signers";
        refuse("template_id", template.id.as_str(), what);
    }

    issues
}

/// Returns whether a signer has no fields, so that no provider knows the role.
pub fn is_without_fields(template: &Template, signer: &Signer) -> bool {
    signer.kind == SignerKind::Approver
        && template.provider_instance == EMBEDDED
        && !template
            .roles()
            .iter()
            .any(|role| role.eq_ignore_ascii_case(&signer.role))
}

/// Gives the submitters of a new submission in the signing room their order, and adds the approvers
/// without fields. The submission has to be written in `tx` already.
pub async fn arrange(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signers: &mut [Signer],
) -> Result<(), ServiceError> {
    // The plugin has created submitters one after the other already, so most envelopes need no write.
    let in_order = |signer: &Signer| signer.turn == signer.position + 1;
    let known = |signer: &Signer| signer.provider_submitter.is_some();
    let is_arranged =
        |signer: &Signer| in_order(signer) && known(signer) && signer.witness_of.is_none();
    if signers.iter().all(is_arranged) {
        return Ok(());
    }
    let Some(submission) = room_submission(envelope) else {
        return Ok(());
    };

    let places: Vec<SubmitterPlace<'_>> = signers
        .iter()
        .map(|signer| SubmitterPlace {
            id: signer
                .provider_submitter
                .as_ref()
                .and_then(|id| id.parse().ok()),
            name: &signer.name,
            email: &signer.email,
            role: &signer.role,
            position: signer.position,
            turn: signer.turn,
            witness_of: signer.witness_of.as_deref(),
        })
        .collect();

    let room = core.room();
    let ids = room.arrange(tx, &envelope.org, submission, &places).await?;
    for (signer, id) in signers.iter_mut().zip(ids) {
        signer.provider_submitter = Some(id.to_string());
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(role: &str, kind: SignerKind, order: Option<i64>) -> RequestedSigner {
        RequestedSigner {
            email: format!("{role}@example.com"),
            name: role.into(),
            role: Some(role.into()),
            kind: Some(kind),
            witness_of: None,
            same_device: None,
            group: None,
            order,
            access: None,
            passcode: None,
            phone: None,
            notify_by: None,
            locale: None,
            time_zone: None,
            consumer: None,
        }
    }

    fn planned(
        requested: Vec<RequestedSigner>,
        ordered: bool,
    ) -> Result<Vec<Signer>, ServiceError> {
        let cipher = AtRestCipher::new(&[7; 32]).unwrap();
        let now = Timestamp::from_millis(0);
        super::planned(&cipher, &OrgId::new(), requested, ordered, now)
    }

    #[test]
    fn a_passcode_is_given_exactly_where_it_is_asked_for() {
        let buyer = |access, passcode: Option<&str>| RequestedSigner {
            access,
            passcode: passcode.map(SecretText::new),
            ..signer("Buyer", SignerKind::Signer, None)
        };
        let passcode = Some(SignerAccess::Passcode);
        assert!(planned(vec![buyer(passcode, None)], true).is_err());
        assert!(planned(vec![buyer(None, Some("4711"))], true).is_err());

        let planned = planned(vec![buyer(passcode, Some("471147"))], true).unwrap();
        assert!(!planned[0].passcode.as_ref().unwrap().contains("4711"));
    }

    #[test]
    fn signers_stand_in_the_order_of_their_groups() {
        let requested = vec![
            signer("Lender", SignerKind::Signer, Some(2)),
            signer("Buyer", SignerKind::Signer, Some(1)),
            signer("Co-buyer", SignerKind::Signer, Some(1)),
        ];
        let planned = planned(requested, true).unwrap();
        let places = planned
            .iter()
            .map(|signer| (signer.role.as_str(), signer.position, signer.turn));

        let expected = [("Buyer", 0, 1), ("Co-buyer", 1, 1), ("Lender", 2, 2)];
        assert_eq!(places.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_order_has_to_be_complete_and_in_use() {
        let buyer = || signer("Buyer", SignerKind::Signer, Some(1));
        let lender = || signer("Lender", SignerKind::Signer, None);
        assert!(planned(vec![buyer(), lender()], true).is_err());
        assert!(planned(vec![buyer()], false).is_err());
        assert!(planned(vec![lender()], false).is_ok());
    }

    #[test]
    fn a_witness_needs_a_signer_before() {
        let buyer = |order| signer("Buyer", SignerKind::Signer, order);
        let witness = |order| signer("Witness", SignerKind::Witness, order);
        assert!(planned(vec![witness(None), buyer(None)], true).is_err());
        assert!(planned(vec![buyer(Some(1)), witness(Some(1))], true).is_ok());
        assert!(planned(vec![witness(None), buyer(None)], false).is_ok());
    }

    #[test]
    fn a_witness_of_a_signer_does_not_sign_first() {
        let witness = |role: &str| RequestedSigner {
            witness_of: Some(role.into()),
            ..signer("Witness", SignerKind::Witness, Some(1))
        };
        let buyer = || signer("Buyer", SignerKind::Signer, Some(1));
        let seller = || signer("Seller", SignerKind::Signer, Some(2));
        assert!(planned(vec![buyer(), seller(), witness("buyer")], true).is_ok());
        assert!(planned(vec![buyer(), seller(), witness("Seller")], true).is_err());
    }

    #[test]
    fn another_signing_provider_always_offers_to_decline() {
        let refused = |instance: &str, may_decline| {
            let now = Timestamp::from_millis(0);
            let template = Template::new(OrgId::new(), "One".into(), instance.into(), now);
            let people = planned(vec![signer("Buyer", SignerKind::Signer, None)], true).unwrap();
            unsupported(&template, &people, &[], may_decline).len()
        };
        assert_eq!(refused(EMBEDDED, false), 0);
        assert_eq!(refused("docuseal", false), 1);
        assert_eq!(refused("docuseal", true), 0);
    }

    #[test]
    fn a_group_has_no_codes_and_no_questions_about_the_identity() {
        let manager = |access| RequestedSigner {
            group: Some("Managers".into()),
            access,
            ..signer("Manager", SignerKind::Signer, None)
        };
        let open = planned(vec![manager(None)], true).unwrap();
        assert!(recipients(Vec::new(), &open, false).is_ok());
        assert!(recipients(Vec::new(), &open, true).is_err());
        let code = Some(SignerAccess::EmailCode);
        let guarded = planned(vec![manager(code)], true).unwrap();
        assert!(recipients(Vec::new(), &guarded, false).is_err());
    }

    #[test]
    fn a_signer_witnesses_no_signature_of_their_own() {
        let witness = |email: &str, same_device| RequestedSigner {
            email: email.into(),
            witness_of: Some("Buyer".into()),
            same_device,
            ..signer("Witness", SignerKind::Witness, None)
        };
        let buyer = || signer("Buyer", SignerKind::Signer, None);
        let beside = Some(true);
        assert!(planned(vec![buyer(), witness("buyer@EXAMPLE.com", None)], true).is_err());
        assert!(planned(vec![buyer(), witness("buyer@example.com", beside)], true).is_ok());
        assert!(planned(vec![buyer(), witness("witness@example.com", None)], true).is_ok());
    }
}
