//! Open links: whoever opens the link of a template becomes signer of a record of their own.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::envelopes::creation::{self, CreateEnvelope, CreatedEnvelope};
use crate::envelopes::dispatch::{self, SendingOptions};
use crate::envelopes::parties::RequestedSigner;
use crate::templates;
use holdfast_base::config::SecretText;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Signer;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{OpenLinkId, RequestId, TemplateId};
use holdfast_domain::open_link::{OpenLink, OpenLinkSigner, OpenLinkStatus};
use holdfast_domain::organization::Organization;
use holdfast_domain::template::Template;
use holdfast_domain::token::LinkToken;
use holdfast_platform::access::credentials;
use holdfast_platform::idempotency::{self, IdempotencyClaim, ResponseRecorder};
use holdfast_platform::passcodes::{open_passcode, seal_passcode};
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::open_links::{self as rows, CodeFailures};
use holdfast_store::{WriteTransaction, organizations};

/// Latest expiry from now: five years.
const LONGEST: Duration = Duration::from_secs(5 * 366 * 86_400);
/// Wrong passcodes of a network within [`FAILURE_WINDOW`] after which it has to wait.
const MOST_FAILURES: i64 = 5;
const FAILURE_WINDOW: Duration = Duration::from_secs(900);

/// Body of `POST /partner/templates/:id/open-links`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "name": "Membership 2027", "role": "Member", "expires_at": "2027-12-31T23:59:59Z", "limit": 500,
    "signers": [{ "email": "board@club.example", "name": "Ana Diaz", "role": "Board" }],
    "notify": ["office@club.example"],
}]))]
pub struct CreateOpenLink {
    /// Name of the link, and of each record that it makes. Visitors see it.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Role of the template that the visitor takes; the first one when absent. The visitor signs before the
    /// others.
    #[schemars(length(min = 1, max = 200))]
    pub role: Option<String>,
    /// People of the other roles, in signing order: the same ones for each record.
    #[serde(default)]
    #[schemars(length(max = 49))]
    pub signers: Vec<OpenLinkSigner>,
    /// When the link ends: in the future, and at most five years from now.
    pub expires_at: Timestamp,
    /// Maximum number of records.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: i64,
    /// Passcode that visitors enter, and that you tell them by another way. Absent: none is asked for.
    #[schemars(with = "Option<String>", length(min = 6, max = 64))]
    pub code: Option<SecretText>,
    /// E-mail addresses that are told of each new record.
    #[serde(default)]
    #[schemars(length(max = 20), inner(email))]
    pub notify: Vec<String>,
    /// True (default): the visitor gets the signing link by mail, so only a reader of the mailbox can sign.
    /// False: the browser goes on to the document at once, and the evidence states that the address was not
    /// verified.
    pub verify_email: Option<bool>,
}

/// An open link of a template.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "open_link_id": "opl_01jdk7m3e8f4x9s2w5v6b0c1dc", "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da",
    "name": "Membership 2027", "url": "https://sign.example.com/open/07…", "status": "open",
    "role": "Member",
    "signers": [{ "email": "board@club.example", "name": "Ana Diaz", "role": "Board" }],
    "expires_at": "2027-12-31T23:59:59.000Z", "limit": 500, "used": 12, "has_code": false,
    "notify": ["office@club.example"], "verify_email": true,
    "created_at": "2026-11-21T09:45:00.000Z", "closed_at": null,
}]))]
pub struct OpenLinkView {
    /// Id of the link.
    pub open_link_id: OpenLinkId,
    /// Id of the template.
    pub template_id: TemplateId,
    /// Name of the link and of its records.
    pub name: String,
    /// Address to publish.
    pub url: String,
    /// Whether the link takes further records.
    pub status: OpenLinkStatus,
    /// Role of the visitor.
    pub role: String,
    /// People of the other roles.
    pub signers: Vec<OpenLinkSigner>,
    /// When the link ends.
    pub expires_at: Timestamp,
    /// Maximum number of records.
    pub limit: i64,
    /// Records so far.
    pub used: i64,
    /// Whether visitors have to enter the passcode.
    pub has_code: bool,
    /// E-mail addresses that are told of each new record.
    pub notify: Vec<String>,
    /// Whether the visitor gets the signing link by mail only.
    pub verify_email: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// When it was closed; null before.
    pub closed_at: Option<Timestamp>,
}

/// Entries of a visitor.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct VisitorEntries {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[schemars(email)]
    pub email: String,
    /// Language of the page, which the signing form and the mails get.
    pub locale: String,
}

/// Open link as its page shows it.
pub struct ShownOpenLink {
    pub organization: Organization,
    pub link: OpenLink,
    pub status: OpenLinkStatus,
}

/// Where the visitor gets the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPlace {
    /// The link is in a mail.
    Mailbox,
    /// Signing link.
    Document(String),
}

/// Result of an entry of the passcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasscodeCheck {
    Right,
    Wrong,
    /// Too many wrong entries of this network.
    Locked(Timestamp),
}

/// Returns the context that binds the ciphertext of a token to its organization.
pub fn token_context(org: &str) -> String {
    format!("open link {org}")
}

fn view(core: &Core, link: &OpenLink) -> Result<OpenLinkView, ServiceError> {
    let token = core
        .cipher
        .open(&link.token, &token_context(link.org.as_str()));
    let token = token.ok_or_else(|| {
        ServiceError::Internal("the token of an open link cannot be opened".into())
    })?;
    Ok(OpenLinkView {
        open_link_id: link.id.clone(),
        template_id: link.template.clone(),
        name: link.name.clone(),
        url: format!("{}/open/{token}", core.config.public_url()),
        status: link.status(core.clock.now()),
        role: link.role.clone(),
        signers: link.signers.clone(),
        expires_at: link.expires_at,
        limit: link.limit,
        used: link.used,
        has_code: link.code.is_some(),
        notify: link.notify.clone(),
        verify_email: link.verify_email,
        created_at: link.created_at,
        closed_at: link.closed_at,
    })
}

/// Creates an open link of a template.
///
/// # Errors
///
/// `Invalid` for people that do not fit the roles of the template, an expiry or a passcode; `Conflict` for a
/// template that cannot be sent.
pub async fn create(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: CreateOpenLink,
    answer: &ResponseRecorder<OpenLinkView>,
) -> Result<OpenLinkView, ServiceError> {
    let template = dispatch::sendable(core, caller, id).await?;
    let now = core.clock.now();
    check_form(&request, now)?;

    let seal = |code: SecretText| seal_passcode(&core.cipher, &caller.org, code.reveal());
    let token = LinkToken::generate(caller.org.bucket());
    let first_role = template.roles().first().map(|role| (*role).to_owned());
    let link = OpenLink {
        id: OpenLinkId::new(),
        org: caller.org.clone(),
        template: template.id.clone(),
        name: request.name,
        role: request.role.or(first_role).unwrap_or_default(),
        signers: request.signers,
        expires_at: request.expires_at,
        limit: request.limit,
        used: 0,
        code: request.code.map(seal),
        notify: request.notify,
        verify_email: request.verify_email.unwrap_or(true),
        token: core
            .cipher
            .encrypt(token.reveal(), &token_context(caller.org.as_str())),
        created_by: caller.actor.clone(),
        owner_email: caller.email.clone(),
        created_at: now,
        closed_at: None,
    };
    check_people(core, &template, &link).await?;

    let mut tx = core.store.begin().await?;
    rows::insert(&mut tx, &link, &token).await?;
    record(&mut tx, &link, &caller.actor, "open_link.created", now).await?;
    let view = view(core, &link)?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

fn check_form(request: &CreateOpenLink, now: Timestamp) -> Result<(), ServiceError> {
    let mut issues = Vec::new();
    let until = request.expires_at;
    if until <= now || until > now + LONGEST {
        issues.push(ValidationIssue::new(
            "not_later",
            &["expires_at"],
            "in the future, and within five years",
            until.to_string(),
            "The link has to end in the future, and within five years",
        ));
    }

    // The entry of a visitor is trimmed before the comparison.
    let code = request.code.as_ref().map(SecretText::reveal);
    if code.is_some_and(|code| code.trim() != code) {
        issues.push(ValidationIssue::new(
            "passcode_spaces",
            &["code"],
            "a passcode without spaces at its ends",
            // The answer must not repeat the passcode.
            "",
            "The passcode begins or ends with a space",
        ));
    }

    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Checks that a record of this link could be sent: a visitor can do nothing about roles that do not fit.
async fn check_people(
    core: &Core,
    template: &Template,
    link: &OpenLink,
) -> Result<(), ServiceError> {
    let organization = organizations::get(&mut *core.store.read().await?, &link.org).await?;
    let organization = organization.ok_or(ServiceError::NotFound("Organization"))?;
    let visitor = VisitorEntries {
        name: "Visitor".into(),
        email: "visitor@example.com".into(),
        locale: organization.settings.language.as_str().into(),
    };
    let wanted = SendingOptions {
        signers: Some(people(link, &visitor)),
        preserve_signing_order: true,
        recipients: Vec::new(),
        customer: None,
        prefilled: None,
        payer: None,
        may_decline: None,
        refuse_unsigned_roles: organization.settings.refuse_unsigned_roles,
    };

    dispatch::plan(core, template, &wanted)
        .map(drop)
        .map_err(of_request)
}

/// Names the members of the request: its `role` is that of the first signer, whom its `signers` do not have.
fn of_request(error: ServiceError) -> ServiceError {
    let mut issues = match error {
        ServiceError::Invalid(issues) => issues,
        other => return other,
    };

    for issue in &mut issues {
        match issue.path.get(1).and_then(Value::as_u64) {
            Some(0) => issue.path = vec!["role".into()],
            Some(index) => issue.path[1] = (index - 1).into(),
            None => {}
        }
    }

    ServiceError::Invalid(issues)
}

/// Returns the signers of a record: the visitor, then the fixed people.
fn people(link: &OpenLink, visitor: &VisitorEntries) -> Vec<RequestedSigner> {
    let signer = |name: &str, email: &str, role: &str, locale: Option<&str>| RequestedSigner {
        email: email.to_owned(),
        name: name.to_owned(),
        role: Some(role.to_owned()),
        kind: None,
        order: None,
        access: None,
        passcode: None,
        phone: None,
        notify_by: None,
        locale: locale.map(str::to_owned),
        consumer: None,
        witness_of: None,
        same_device: None,
        group: None,
    };

    let (name, email, locale) = (&visitor.name, &visitor.email, &visitor.locale);
    let first = signer(name, email, &link.role, Some(locale));
    let others = link.signers.iter();
    let others = others.map(|other| signer(&other.name, &other.email, &other.role, None));
    std::iter::once(first).chain(others).collect()
}

/// Writes an act on a link to the organization's ledger of credentials.
async fn record(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    actor: &str,
    action: &str,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let details = json!({
        "open_link_id": link.id, "template_id": link.template, "name": link.name, "role": link.role,
        "expires_at": link.expires_at, "limit": link.limit, "has_code": link.code.is_some(),
        "verify_email": link.verify_email,
    });
    Ok(credentials::record_by(tx, Some(&link.org), actor, action, details, now).await?)
}

/// Returns a page of the links of a template, newest first, and the total number.
pub async fn list(
    core: &Core,
    caller: &Caller,
    template: &str,
    page: i64,
    limit: i64,
) -> Result<(Vec<OpenLinkView>, i64), ServiceError> {
    let template = templates::get(core, caller, template).await?;
    let mut connection = core.store.read().await?;
    let (found, total) =
        rows::list(&mut connection, &caller.org, &template.id, page, limit).await?;
    drop(connection);

    let views: Result<Vec<_>, _> = found.iter().map(|link| view(core, link)).collect();
    Ok((views?, total))
}

/// Returns a link of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<OpenLinkView, ServiceError> {
    let unknown = || ServiceError::NotFound("Open link");
    let id = OpenLinkId::parse(id).ok_or_else(unknown)?;
    let link = rows::get(&mut *core.store.read().await?, &caller.org, &id).await?;
    view(core, &link.ok_or_else(unknown)?)
}

/// Closes a link. Its records stay; a closed link is returned as it is.
pub async fn close(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<OpenLinkView>,
) -> Result<OpenLinkView, ServiceError> {
    let unknown = || ServiceError::NotFound("Open link");
    let id = OpenLinkId::parse(id).ok_or_else(unknown)?;
    let now = core.clock.now();

    let mut tx = core.store.begin().await?;
    let link = rows::lock(&mut tx, &caller.org, &id).await?;
    let mut link = link.ok_or_else(unknown)?;
    if rows::close(&mut tx, &link, now).await? {
        link.closed_at = Some(now);
        record(&mut tx, &link, &caller.actor, "open_link.closed", now).await?;
    }

    let view = view(core, &link)?;
    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Returns the open link behind a token; none for an unknown one.
pub async fn find(core: &Core, token: &LinkToken) -> Result<Option<ShownOpenLink>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(link) = rows::by_token(&mut connection, token).await? else {
        return Ok(None);
    };

    let organization = organizations::get(&mut connection, &link.org).await?;
    Ok(organization.map(|organization| ShownOpenLink {
        status: link.status(core.clock.now()),
        organization,
        link,
    }))
}

/// Checks the passcode that a visitor entered. Five wrong entries of a network within 15 minutes lock the
/// link for it until these have passed.
pub async fn check_code(
    core: &Core,
    link: &OpenLink,
    given: &str,
    network: &str,
) -> Result<PasscodeCheck, ServiceError> {
    let Some(sealed) = &link.code else {
        return Ok(PasscodeCheck::Right);
    };
    let expected = open_passcode(&core.cipher, &link.org, sealed).ok_or_else(|| {
        ServiceError::Internal("the passcode of an open link cannot be opened".into())
    })?;

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Locked, so that each of several entries at once counts.
    rows::lock(&mut tx, &link.org, &link.id).await?;
    let counted = rows::failures_of(&mut tx, link, network).await?;
    let counted = counted.filter(|counted| counted.began_at + FAILURE_WINDOW > now);
    if let Some(counted) = counted
        && counted.failures >= MOST_FAILURES
    {
        return Ok(PasscodeCheck::Locked(counted.began_at + FAILURE_WINDOW));
    }

    // By hashes, so that the time reveals nothing about the passcode.
    if Sha256::digest(&expected) == Sha256::digest(given.trim()) {
        return Ok(PasscodeCheck::Right);
    }

    let state = CodeFailures {
        failures: counted.map_or(0, |counted| counted.failures) + 1,
        began_at: counted.map_or(now, |counted| counted.began_at),
    };
    rows::put_failures(&mut tx, link, network, state, now - FAILURE_WINDOW).await?;
    tx.commit().await?;

    Ok(if state.failures >= MOST_FAILURES {
        PasscodeCheck::Locked(state.began_at + FAILURE_WINDOW)
    } else {
        PasscodeCheck::Wrong
    })
}

/// Creates and sends the record of a visitor. `form` identifies the shown form: sent twice, it makes one
/// record.
///
/// # Errors
///
/// `Conflict` for a link that is used up, expired or closed; those of creating an envelope.
pub async fn open(
    core: &Core,
    link: &OpenLink,
    visitor: VisitorEntries,
    form: &str,
) -> Result<NextPlace, ServiceError> {
    let caller = Caller {
        org: link.org.clone(),
        actor: link.actor(),
        email: link.owner_email.clone(),
        token: None,
    };

    // A form without the token of a page of ours is one that is sent once.
    let is_token =
        (1..=64).contains(&form.len()) && form.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let form = if is_token {
        form.to_owned()
    } else {
        RequestId::new().to_string()
    };
    let entries = json!([visitor.name, visitor.email]).to_string();
    let claim = idempotency::claim(core, &caller, &form, &sha256(entries.as_bytes())).await?;
    let receipt = match claim {
        IdempotencyClaim::Go(receipt) => receipt,
        IdempotencyClaim::Replay(_, body) => {
            let kept: Value = serde_json::from_str(&body).unwrap_or_default();
            return Ok(next(link, kept["sign_url"].as_str()));
        }
    };

    let request = CreateEnvelope {
        envelope_name: link.name.clone(),
        customer_email: visitor.email.clone(),
        customer_name: visitor.name.clone(),
        template_id: Some(link.template.to_string()),
        external_id: None,
        prefilled_data: None,
        secured_party: None,
        envelope_kind: None,
        signers: Some(people(link, &visitor)),
        preserve_signing_order: Some(true),
        recipients: None,
        allow_delegation: None,
        may_decline: None,
        payment: None,
        return_url: None,
        subject: None,
        message: None,
        reminders: None,
        collateral: None,
        chattel_paper_jurisdiction: None,
        paper_original: None,
        send_at: None,
        metadata: None,
    };
    let answer = ResponseRecorder::new(
        receipt.clone(),
        200,
        |created: &CreatedEnvelope| json!({ "sign_url": created.sign_url }),
    );

    let created = creation::create_by(core, &caller, request, Some(link), &answer).await;
    match created {
        Ok(created) => Ok(next(link, created.sign_url.as_deref())),
        Err(error) => {
            // The same form can be sent again. Without this, it would wait for the lease.
            if let Err(kept) = receipt.release(core).await {
                tracing::warn!(error = %kept, "an idempotency key was not released");
            }
            Err(error)
        }
    }
}

fn next(link: &OpenLink, sign_url: Option<&str>) -> NextPlace {
    // The address is verified by the mail alone: the link must reach its reader in no other way.
    match sign_url.filter(|_| !link.verify_email) {
        Some(url) => NextPlace::Document(url.to_owned()),
        None => NextPlace::Mailbox,
    }
}

/// Returns what the ledger has about the link of a record: which one, who its visitor is, and how the visitor
/// got the document.
pub fn origin(link: &OpenLink, signers: &[Signer]) -> Value {
    let visitor = signers.iter().find(|signer| signer.role == link.role);
    let way = if link.verify_email {
        "email"
    } else {
        "browser"
    };
    json!({
        "open_link_id": link.id, "name": link.name,
        "signer_id": visitor.map(|visitor| &visitor.id), "reached_by": way,
    })
}

/// Returns the metadata of a record about its link.
pub fn metadata(link: &OpenLink) -> Value {
    json!({ "open_link_id": link.id, "name": link.name })
}
