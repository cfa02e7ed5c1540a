//! Open links: each visitor of a template's link becomes signer of a record of their own.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::envelopes::creation::{self, CreateEnvelope, CreatedEnvelope};
use crate::envelopes::dispatch::{self, SendingOptions};
use crate::envelopes::open_link_proofs::VisitorProof;
use crate::envelopes::parties::RequestedSigner;
use crate::funding;
use crate::templates;
use crate::templates::pages::PageCache;
use holdfast_base::config::SecretText;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{CustomerId, EnvelopeId, KeyId, OpenLinkId, RequestId, TemplateId};
use holdfast_domain::open_link::{OpenLink, OpenLinkSigner, OpenLinkStatus, ProofOfWork};
use holdfast_domain::organization::{Organization, Permission};
use holdfast_domain::template::Template;
use holdfast_domain::token::LinkToken;
use holdfast_domain::user::UserStatus;
use holdfast_platform::access::{credentials, users};
use holdfast_platform::idempotency::{
    self, IdempotencyClaim, IdempotencyReceipt, ResponseRecorder,
};
use holdfast_platform::passcodes::{open_passcode, seal_passcode};
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, ValidationIssue};
use holdfast_store::open_links::{self as rows, LinkCount, LinkCounter};
use holdfast_store::{
    SqlConnection, StoreError, WriteTransaction, api_keys, customers, envelopes, organizations,
    signers, templates as template_rows, users as user_rows,
};

/// Latest expiry from now: five years.
const LONGEST: Duration = Duration::from_secs(5 * 366 * 86_400);
/// Wrong passcodes of a network within [`FAILURE_WINDOW`] after which it has to wait.
const MOST_FAILURES: i64 = 5;
const FAILURE_WINDOW: Duration = Duration::from_secs(900);
/// Wrong passcodes of all networks within [`HOUR`] after which all have to wait: a guesser may have many networks.
const MOST_FAILURES_OF_ALL: i64 = 200;
/// Records of a network within [`HOUR`]: each sends a mail to an address that a stranger entered.
const MOST_RECORDS: i64 = 30;
/// The same without a proof of work, which costs a program nothing.
const MOST_UNPROVED: i64 = 3;
/// Such records of all networks within [`HOUR`]: a program may have many networks.
const MOST_UNPROVED_OF_ALL: i64 = 20;
/// Error code for a proof of work that made a record before.
pub const PROOF_USED: &str = "proof_used";
const HOUR: Duration = Duration::from_secs(3600);
/// Time for which the use of a proof is known. Longer than a challenge lives, because clocks of nodes differ.
const PROOF_KEPT: Duration = HOUR;

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
    /// E-mail addresses to notify of each new record.
    #[serde(default)]
    #[schemars(length(max = 20), inner(email))]
    pub notify: Vec<String>,
    /// True (default): the page does not show the signing link; it goes to the mailbox of the visitor.
    /// False: the browser opens the document at once, and the evidence states that the address was not
    /// verified.
    pub verify_email: Option<bool>,
    /// `on` (default): the browser of a visitor computes for about a second before a record is made, and longer while many
    /// are made. A browser without a script gets the signing link by mail, and few such records are made an hour.
    pub proof_of_work: Option<ProofOfWork>,
}

/// An open link of a template.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "open_link_id": "opl_01jdk7m3e8f4x9s2w5v6b0c1dc", "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da",
    "name": "Membership 2027", "url": "https://sign.example.com/open/07…", "status": "open",
    "role": "Member",
    "signers": [{ "email": "board@club.example", "name": "Ana Diaz", "role": "Board" }],
    "expires_at": "2027-12-31T23:59:59.000Z", "limit": 500, "used": 12, "has_code": false,
    "notify": ["office@club.example"], "verify_email": true, "proof_of_work": "on",
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
    /// E-mail addresses to notify of each new record.
    pub notify: Vec<String>,
    /// Whether the page does not show the signing link, which goes to the mailbox of the visitor.
    pub verify_email: bool,
    /// Whether the browser of a visitor computes for about a second before a record is made.
    pub proof_of_work: ProofOfWork,
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
    /// Whether the people of the link fit its template.
    pub is_available: bool,
}

/// Where the visitor gets the document.
pub enum NextPlace {
    /// The link is in a mail.
    Mailbox,
    /// Signing link.
    Document(String),
    /// The address has an unfinished record already, and gets the link of that one again.
    Unfinished(UnfinishedRecord),
}

/// Record that was made for an address and is not signed by all.
pub struct UnfinishedRecord {
    pub envelope: Box<Envelope>,
    /// The signer with the address; none if another person signs now.
    pub visitor: Option<Box<Signer>>,
}

/// Open link of a visitor who makes a record.
#[derive(Clone, Copy)]
pub struct LinkVisit<'a> {
    pub link: &'a OpenLink,
    /// Network of the visitor, by which records count.
    pub network: &'a str,
    pub proof: &'a VisitorProof,
}

/// Result of an entry of the passcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasscodeCheck {
    Right,
    Wrong,
    /// Too many wrong entries, of this network or of all.
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
        proof_of_work: link.proof_of_work,
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
        proof_of_work: request.proof_of_work.unwrap_or(ProofOfWork::On),
        token: core
            .cipher
            .encrypt(token.reveal(), &token_context(caller.org.as_str())),
        created_by: caller.actor.clone(),
        owner_email: caller.email.clone(),
        created_at: now,
        closed_at: None,
        unavailable_at: None,
    };
    check_people(core, &template, &link).await?;

    let mut tx = core.store.begin().await?;
    // Locked, so that a deletion of the template closes this link, too.
    let present = template_rows::lock(&mut tx, &link.org, &link.template).await?;
    if present.is_none() {
        return Err(ServiceError::NotFound("Template"));
    }
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
    // Strangers would write the text of the contract.
    if template.word_source.is_some() {
        let why = "The template has variables, which the visitors of an open link cannot give";
        return Err(ServiceError::Conflict(why.into()));
    }

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

/// Names the members of the request: its `role` is that of the first signer, who is not in its `signers`.
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
        time_zone: None,
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
) -> Result<(), StoreError> {
    credentials::record_by(tx, Some(&link.org), actor, action, link.details(), now).await
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
    let mut connection = core.store.read().await?;
    let link = rows::get(&mut connection, &caller.org, &id).await?;
    let link = link.ok_or_else(unknown)?;
    check_seen(&mut connection, caller, &link).await?;
    view(core, &link)
}

/// Refuses a link like an unknown one if the caller does not see its template.
async fn check_seen(
    connection: &mut SqlConnection,
    caller: &Caller,
    link: &OpenLink,
) -> Result<(), ServiceError> {
    let template = template_rows::find(connection, &link.org, &link.template).await?;
    if template.is_some_and(|template| !caller.sees(&template)) {
        Err(ServiceError::NotFound("Open link"))
    } else {
        Ok(())
    }
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
    check_seen(&mut tx, caller, &link).await?;
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
        is_available: true,
        organization,
        link,
    }))
}

/// Checks an open link before its page is shown. A link is closed if its author may not send any more. If its people do
/// not fit the template any more, it is not available, which the first visit records, and so does the first one that finds
/// it available again.
pub async fn review(core: &Core, shown: &mut ShownOpenLink) -> Result<(), ServiceError> {
    let link = &shown.link;
    if shown.status != OpenLinkStatus::Open {
        return Ok(());
    }

    let now = core.clock.now();
    if !may_author_send(core, link).await? {
        let mut tx = core.store.begin().await?;
        // Another visit may have closed it meanwhile.
        if rows::close(&mut tx, link, now).await? {
            record(&mut tx, link, "system", "open_link.closed", now).await?;
        }
        tx.commit().await?;
        shown.status = OpenLinkStatus::Closed;
        return Ok(());
    }

    let mut connection = core.store.read().await?;
    let template = template_rows::get(&mut connection, &link.org, &link.template).await?;
    drop(connection);
    shown.is_available = match template {
        Some(template) => match check_people(core, &template, link).await {
            Ok(()) => true,
            Err(ServiceError::Invalid(_) | ServiceError::Conflict(_)) => false,
            Err(error) => return Err(error),
        },
        None => false,
    };
    let is_noted = shown.is_available == link.unavailable_at.is_none();
    if is_noted {
        return Ok(());
    }

    let action = if shown.is_available {
        "open_link.available"
    } else {
        "open_link.unavailable"
    };
    let mut tx = core.store.begin().await?;
    if rows::note_available(&mut tx, link, shown.is_available, now).await? {
        record(&mut tx, link, "system", action, now).await?;
    }
    Ok(tx.commit().await?)
}

/// Whether the author of a link may still send: its records are sent in the author's name.
async fn may_author_send(core: &Core, link: &OpenLink) -> Result<bool, ServiceError> {
    let mut connection = core.store.read().await?;
    let author = link.created_by.as_str();
    if let Some(id) = author.strip_prefix("key:").and_then(KeyId::parse) {
        let key = api_keys::by_id(&mut connection, &id).await?;
        return Ok(key.is_some_and(|key| key.active && key.org == link.org));
    }

    if let Some(email) = author.strip_prefix("user:") {
        // Test data has the users of its organization.
        let (org, email) = (link.org.live(), users::address(email));
        let user = user_rows::by_address(&mut connection, &org, &email).await?;
        // Users of the operator's issuer can be without a row here.
        return Ok(user.is_none_or(|user| {
            user.status != UserStatus::Ended && user.role.may(Permission::Send)
        }));
    }

    // Other actors, such as the operator, have no access that could end.
    Ok(true)
}

/// Checks the passcode that a visitor entered. Five wrong entries of a network within 15 minutes lock the
/// link for it until these have passed, and 200 of all networks within an hour lock it for all.
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
    // Read without a transaction first: entries that are refused anyway must not hold up writers.
    let mut connection = core.store.read().await?;
    if let Some(until) = locked_until(&mut connection, link, network, now).await? {
        return Ok(PasscodeCheck::Locked(until));
    }
    drop(connection);

    let mut tx = core.store.begin().await?;
    // Locked, so that each of several entries at once counts.
    rows::lock(&mut tx, &link.org, &link.id).await?;
    if let Some(until) = locked_until(&mut tx, link, network, now).await? {
        return Ok(PasscodeCheck::Locked(until));
    }

    // By hashes, so that the time reveals nothing about the passcode.
    if Sha256::digest(&expected) == Sha256::digest(given.trim()) {
        return Ok(PasscodeCheck::Right);
    }

    for (counter, _, length) in code_limits(network) {
        let count = present_count(&mut tx, link, counter, length, now).await?;
        put_one_more(&mut tx, link, counter, count, now - length).await?;
    }
    let locked = locked_until(&mut tx, link, network, now).await?;
    tx.commit().await?;

    Ok(locked.map_or(PasscodeCheck::Wrong, PasscodeCheck::Locked))
}

/// Returns the counters of wrong passcodes, with the number that locks the link, and the time in which they count.
fn code_limits(network: &str) -> [(LinkCounter<'_>, i64, Duration); 2] {
    [
        (LinkCounter::CodesOf(network), MOST_FAILURES, FAILURE_WINDOW),
        (LinkCounter::Codes, MOST_FAILURES_OF_ALL, HOUR),
    ]
}

/// Returns until when wrong passcodes lock a link for a network; none if they do not.
async fn locked_until(
    connection: &mut SqlConnection,
    link: &OpenLink,
    network: &str,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let mut until: Option<Timestamp> = None;
    for (counter, most, length) in code_limits(network) {
        let count = present_count(connection, link, counter, length, now).await?;
        if count.number >= most {
            until = until.max(Some(count.began_at + length));
        }
    }
    Ok(until)
}

/// Returns a count within a time, which begins now if nothing was counted lately.
async fn present_count(
    connection: &mut SqlConnection,
    link: &OpenLink,
    counter: LinkCounter<'_>,
    length: Duration,
    now: Timestamp,
) -> Result<LinkCount, StoreError> {
    let kept = rows::count_of(connection, link, counter).await?;
    let kept = kept.filter(|kept| kept.began_at + length > now);
    Ok(kept.unwrap_or(LinkCount {
        number: 0,
        began_at: now,
    }))
}

async fn put_one_more(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    counter: LinkCounter<'_>,
    count: LinkCount,
    forgotten: Timestamp,
) -> Result<(), StoreError> {
    let more = LinkCount {
        number: count.number + 1,
        ..count
    };
    rows::put_count(tx, link, counter, more, forgotten).await
}

/// Takes one of the remaining records of a link for an address, in the transaction of the record.
///
/// # Errors
/// `Conflict` if the link takes no further records, or the address has an unfinished one; `Quota` if the network made too
/// many, or too many were made without a proof of work; `Problem` with [`PROOF_USED`].
pub(super) async fn take(
    tx: &mut WriteTransaction,
    visit: LinkVisit<'_>,
    email: &str,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let link = visit.link;
    if !rows::take(tx, link, now).await? {
        let why = "The open link takes no further records";
        return Err(ServiceError::Conflict(why.into()));
    }

    // The row of the link is locked from here on, so that two forms cannot both be the first of an address.
    if unfinished(tx, link, email).await?.is_some() {
        let why = "The address has an unfinished document of this open link";
        return Err(ServiceError::Conflict(why.into()));
    }

    check_counts(tx, visit, now).await?;
    Ok(count(tx, visit, now).await?)
}

/// Refuses a proof of work that made a record before, and a record above the limits of an hour.
async fn check_counts(
    connection: &mut SqlConnection,
    visit: LinkVisit<'_>,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let link = visit.link;
    if let Some(counter) = uses_of(visit.proof) {
        let used = present_count(connection, link, counter, PROOF_KEPT, now).await?;
        if used.number > 0 {
            let why = "The proof of work was used for another document; open the page again";
            return Err(Problem::new(ProblemKind::State, PROOF_USED, why).into());
        }
    }

    for (counter, most) in record_limits(visit) {
        let made = present_count(connection, link, counter, HOUR, now).await?;
        if made.number >= most {
            let message = format!("{most} documents of an open link an hour are made in this way");
            let wait = (made.began_at + HOUR).since(now).as_secs() + 1;
            let wait = u32::try_from(wait).unwrap_or(u32::MAX);
            return Err(Problem::new(ProblemKind::Quota(wait), None, message).into());
        }
    }

    Ok(())
}

/// Counts a record and the use of its proof.
async fn count(
    tx: &mut WriteTransaction,
    visit: LinkVisit<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let records = record_limits(visit).into_iter();
    let records = records.map(|(counter, _)| (counter, HOUR));
    let proof = uses_of(visit.proof).map(|counter| (counter, PROOF_KEPT));
    for (counter, length) in records.chain(proof) {
        let present = present_count(tx, visit.link, counter, length, now).await?;
        put_one_more(tx, visit.link, counter, present, now - length).await?;
    }

    Ok(())
}

/// Returns the counter of the uses of a proof; none without one.
fn uses_of(proof: &VisitorProof) -> Option<LinkCounter<'_>> {
    match proof {
        VisitorProof::Valid(challenge) => Some(LinkCounter::Challenge(challenge)),
        VisitorProof::NotAsked | VisitorProof::Absent => None,
    }
}

/// Returns the counters of records within [`HOUR`], with the number after which visitors have to wait.
fn record_limits(visit: LinkVisit<'_>) -> Vec<(LinkCounter<'_>, i64)> {
    let mut limits = vec![
        (LinkCounter::RecordsOf(visit.network), MOST_RECORDS),
        // Counted for the difficulty of the work.
        (LinkCounter::Records, i64::MAX),
    ];
    if *visit.proof == VisitorProof::Absent {
        limits.push((LinkCounter::UnprovedOf(visit.network), MOST_UNPROVED));
        limits.push((LinkCounter::Unproved, MOST_UNPROVED_OF_ALL));
    }
    limits
}

/// Returns how many records of a link were made within an hour.
pub(super) async fn recent_records(
    connection: &mut SqlConnection,
    link: &OpenLink,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let made = present_count(connection, link, LinkCounter::Records, HOUR, now).await?;
    Ok(made.number)
}

/// Keeps which record an address got last.
pub(super) async fn keep_record(
    tx: &mut WriteTransaction,
    link: &OpenLink,
    customer: &CustomerId,
    envelope: &EnvelopeId,
) -> Result<(), StoreError> {
    rows::put_record(tx, link, customer, envelope).await
}

/// Returns the record of an address that is out for signing.
async fn unfinished(
    connection: &mut SqlConnection,
    link: &OpenLink,
    email: &str,
) -> Result<Option<Envelope>, StoreError> {
    let Some(customer) = customers::by_email(connection, &link.org, email).await? else {
        return Ok(None);
    };
    let Some(id) = rows::record_of(connection, link, &customer.id).await? else {
        return Ok(None);
    };

    let envelope = envelopes::get_with_destroyed(connection, &link.org, &id).await?;
    // Only final records are destroyed, so one that is out for signing is whole.
    Ok(envelope.filter(|envelope| envelope.status.is_out_for_signing()))
}

/// Like [`unfinished`], with the signer who has the address.
async fn unfinished_record(
    core: &Core,
    link: &OpenLink,
    email: &str,
) -> Result<Option<UnfinishedRecord>, ServiceError> {
    let mut connection = core.store.read().await?;
    let Some(envelope) = unfinished(&mut connection, link, email).await? else {
        return Ok(None);
    };

    let people = signers::list(&mut connection, &envelope.org, &envelope.id).await?;
    let address = users::address(email);
    // A person who signs in the visitor's place has another address, and did not ask for a mail.
    let visitor = people
        .into_iter()
        .find(|signer| signer.role == link.role && users::address(&signer.email) == address);
    Ok(Some(UnfinishedRecord {
        envelope: Box::new(envelope),
        visitor: visitor.map(Box::new),
    }))
}

/// Creates and sends the record of a visitor, unless the address has an unfinished one. `form` identifies the shown
/// form: sent twice, it makes one record.
///
/// # Errors
///
/// `Conflict` for a link that is used up, expired or closed; `Quota` for a network that made too many records; `Problem`
/// with [`PROOF_USED`]; those of creating an envelope.
pub async fn open(
    core: &Core,
    pages: &Arc<PageCache>,
    visit: LinkVisit<'_>,
    visitor: VisitorEntries,
    form: &str,
) -> Result<NextPlace, ServiceError> {
    let link = visit.link;
    let caller = Caller {
        org: link.org.clone(),
        actor: link.actor(),
        email: link.owner_email.clone(),
        token: None,
        role: None,
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

    // Before anything is made at the provider. The transaction of the record asks again.
    if let Some(record) = unfinished_record(core, link, &visitor.email).await? {
        release(core, &receipt).await;
        return Ok(NextPlace::Unfinished(record));
    }

    let request = CreateEnvelope {
        envelope_name: link.name.clone(),
        customer_email: visitor.email.clone(),
        customer_name: visitor.name.clone(),
        template_id: Some(link.template.to_string()),
        external_id: None,
        prefilled_data: None,
        variables: None,
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
        funding: None,
    };
    let shows_link = !link.verify_email;
    let answer = ResponseRecorder::new(receipt.clone(), 200, move |created: &CreatedEnvelope| {
        // A link that went to the mailbox is not stored, so that no repeat of the form shows it.
        let url = created.sign_url.as_ref().filter(|_| shows_link);
        json!({ "sign_url": url })
    });

    let created = match permit(core, visit).await {
        Ok(()) => creation::create_by(core, pages, &caller, request, Some(visit), &answer).await,
        Err(error) => Err(error),
    };
    match created {
        Ok(created) => Ok(next(link, created.sign_url.as_deref())),
        Err(error) => {
            release(core, &receipt).await;
            // Another form with the same address may have been faster.
            let may_be_second = matches!(error, ServiceError::Conflict(_));
            let record = if may_be_second {
                unfinished_record(core, link, &visitor.email).await?
            } else {
                None
            };
            record
                .map(NextPlace::Unfinished)
                .ok_or_else(|| for_visitor(link, error))
        }
    }
}

/// Refuses a visitor over the limits before anything is made at the provider, because a repeat costs a program nothing. The
/// transaction of the record asks again.
async fn permit(core: &Core, visit: LinkVisit<'_>) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    check_counts(&mut connection, visit, core.clock.now()).await
}

/// Returns the error that a visitor sees. Findings of the funding rules are for the sender alone.
fn for_visitor(link: &OpenLink, error: ServiceError) -> ServiceError {
    let ServiceError::Problem(problem) = &error else {
        return error;
    };
    if problem.code != Some(funding::REFUSED) {
        return error;
    }

    tracing::warn!(link = %link.id, %error, "the funding rules stopped a record of an open link");
    let why = "This document cannot be sent at present; ask its sender";
    ServiceError::Conflict(why.into())
}

/// Lets the same form be sent again. Without this, it would wait for the lease.
async fn release(core: &Core, receipt: &IdempotencyReceipt) {
    if let Err(error) = receipt.release(core).await {
        tracing::warn!(%error, "an idempotency key was not released");
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
