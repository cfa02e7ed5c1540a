//! Invitations: a party without an organization here joins by a link in an e-mail, and gets an organization
//! with a key for acts of control.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use holdfast_adapters::mail::is_address;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{JoinedParty, PartyInvitation};
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::{InvitationId, KeyId, OrgId};
use holdfast_domain::job::MailPartyInvitation;
use holdfast_domain::organization::{ApiKeyRecord, OrgSettings, Organization, Scope};
use holdfast_domain::party_name;
use holdfast_domain::token::ApiKey;
use holdfast_platform::access::credentials;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits::link_codes::{is_link, link_code};
use holdfast_platform::permits::live_data::require_live;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::{
    api_keys, deliveries, events, jobs, organizations, party_invitations as rows,
};

/// Time to join.
const TIME: Duration = Duration::from_secs(7 * 86_400);
/// Invitations of an organization within [`TIME`].
const MOST: i64 = 50;
/// Time after joining for which the link gives another key, if the first one was not used.
const LOST: Duration = Duration::from_secs(900);
/// What the key of a party may do.
const SCOPES: [Scope; 4] = [
    Scope::ControlRead,
    Scope::ControlWrite,
    Scope::ControlConsent,
    Scope::VaultRelease,
];
/// Rate limit of that key, in requests per minute.
const RATE: i64 = 100;

/// Body of `POST /partner/control/invitations`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "name": "Second Example Bank", "email": "desk@second.example" }]))]
pub struct InvitationForm {
    /// Name of the party, which its organization gets.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// Gets the link. It is the address for mails about releases afterwards.
    #[schemars(length(max = 200))]
    pub email: String,
}

/// An invitation of a party.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "invitation_id": "inv_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Second Example Bank",
    "email": "desk@second.example", "created_at": "2026-11-21T09:45:00.000Z",
    "expires_at": "2026-11-28T09:45:00.000Z", "organization_id": null, "joined_at": null,
}]))]
pub struct InvitationView {
    pub invitation_id: InvitationId,
    pub name: String,
    pub email: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The party, once it has joined.
    pub organization_id: Option<OrgId>,
    pub joined_at: Option<Timestamp>,
}

impl From<&PartyInvitation> for InvitationView {
    fn from(invitation: &PartyInvitation) -> Self {
        let joined = invitation.joined.as_ref();
        Self {
            invitation_id: invitation.id.clone(),
            name: invitation.name.clone(),
            email: invitation.email.clone(),
            created_at: invitation.created_at,
            expires_at: invitation.expires_at,
            organization_id: joined.map(|joined| joined.org.clone()),
            joined_at: joined.map(|joined| joined.at),
        }
    }
}

/// Invites a party. It gets a mail with a link.
pub async fn invite(
    core: &Core,
    caller: &Caller,
    form: InvitationForm,
    answer: &ResponseRecorder<InvitationView>,
) -> Result<InvitationView, ServiceError> {
    if !core.config.control.invitations {
        let why = "This installation has switched invitations off: its operator registers parties";
        return Err(ServiceError::Conflict(why.into()));
    }
    require_live(&caller.org)?;

    let issues = addressee_issues(&form.name, &form.email);
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    // A name without a normalized form was refused with the issues above.
    let name = party_name::normalized(&form.name).unwrap_or_default();
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;

    // Two at the same moment count each other.
    organizations::lock(&mut tx, &caller.org).await?;
    // One invitation could otherwise grow into any number of organizations.
    if rows::was_invited(&mut tx, &caller.org).await? {
        let why = "An organization that was invited does not invite others";
        return Err(ServiceError::Conflict(why.into()));
    }
    if rows::count_since(&mut tx, &caller.org, now - TIME).await? >= MOST {
        let why = format!("{MOST} invitations in seven days are the most");
        return Err(ServiceError::Conflict(why));
    }

    if organizations::is_name_taken(&mut tx, &name).await? {
        // Guesses of names get no more answers than invitations.
        rows::insert_refused(&mut tx, &caller.org, now).await?;
        tx.commit().await?;

        return Err(ServiceError::invalid(
            "name_taken",
            &["name"],
            "a name that no organization here has, and none that looks like it",
            name,
            "Ask this party for the id of its organization",
        ));
    }

    let invitation = PartyInvitation {
        id: InvitationId::new(),
        org: caller.org.clone(),
        name,
        email: form.email,
        created_at: now,
        expires_at: now + TIME,
        joined: None,
    };

    rows::insert(&mut tx, &invitation).await?;
    let details = json!(InvitationView::from(&invitation));
    let action = "party.invited";
    credentials::record_by(
        &mut tx,
        Some(&caller.org),
        &caller.actor,
        action,
        details,
        now,
    )
    .await?;

    // The job has no link: it is derived from the id when the mail is written, and stored nowhere.
    let job = MailPartyInvitation {
        invitation: invitation.id.clone(),
    };
    let key = Some(job.invitation.as_str());
    jobs::insert(&mut tx, &caller.org, &job, key, now).await?;
    let view = InvitationView::from(&invitation);
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns an invitation by the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<InvitationView, ServiceError> {
    let unknown = || ServiceError::NotFound("Invitation");
    let id = InvitationId::parse(id).ok_or_else(unknown)?;
    let found = rows::get(&mut *core.store.read().await?, &id).await?;
    let found = found.filter(|invitation| invitation.org == caller.org);
    Ok(InvitationView::from(&found.ok_or_else(unknown)?))
}

/// Returns the link of an invitation.
pub fn url(core: &Core, id: &InvitationId) -> Result<String, ServiceError> {
    let code = link_code(core, "join", id.as_str())?;
    Ok(format!("{}/join/{id}/{code}", core.config.public_url()))
}

/// An invitation as its page shows it.
pub struct ShownInvitation {
    /// The organization that invites.
    pub organization: Organization,
    pub invitation: PartyInvitation,
    /// Whether the time to join is over.
    pub expired: bool,
}

/// Returns the invitation behind a link, or none for an unknown link.
pub async fn find(
    core: &Core,
    id: &str,
    given: &str,
) -> Result<Option<ShownInvitation>, ServiceError> {
    let Some(id) = InvitationId::parse(id) else {
        return Ok(None);
    };
    // Before the database is read: a guessed link costs a hash and no query.
    if !is_link(core, "join", id.as_str(), given)? {
        return Ok(None);
    }

    let mut connection = core.store.read().await?;
    let Some(invitation) = rows::get(&mut connection, &id).await? else {
        return Ok(None);
    };

    let organization = organizations::get(&mut connection, &invitation.org).await?;
    Ok(organization.map(|organization| ShownInvitation {
        organization,
        expired: invitation.expires_at <= core.clock.now(),
        invitation,
    }))
}

/// What a party gets when it joins. The key is shown once.
pub struct Membership {
    pub org: OrgId,
    pub key: ApiKey,
}

/// Makes the organization of an invited party with its first key. A repeat soon afterwards makes another key,
/// unless the first one was used: the answer with it may be lost. None if the invitation is over or was used.
pub async fn join(core: &Core, id: &InvitationId) -> Result<Option<Membership>, ServiceError> {
    // The operator may have switched invitations off after this one was mailed.
    if !core.config.control.invitations {
        return Ok(None);
    }

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // Locked, so that two clicks at the same moment make one organization.
    let invitation = rows::lock(&mut tx, id).await?;
    let Some(invitation) = invitation.filter(|invitation| invitation.expires_at > now) else {
        return Ok(None);
    };

    let actor = format!("invitation:{id}");
    let org = match &invitation.joined {
        Some(joined) => joined.org.clone(),
        None => OrgId::new(),
    };
    let key = ApiKey::generate(&org);
    if let Some(joined) = &invitation.joined {
        let record = api_keys::by_id(&mut tx, &joined.key).await?;
        let unused = |record: &ApiKeyRecord| record.active && record.last_used_at.is_none();
        // A key in use has reached its party. From then on the link, which may be forwarded, gives no other.
        let Some(record) = record.filter(unused).filter(|_| joined.at + LOST > now) else {
            return Ok(None);
        };

        api_keys::replace_hash(&mut tx, &record.id, &key.hash()).await?;
        let details = json!({ "key_id": record.id });
        credentials::record_by(
            &mut tx,
            Some(&joined.org),
            &actor,
            "key.rotated",
            details,
            now,
        )
        .await?;

        tx.commit().await?;
        return Ok(Some(Membership { org, key }));
    }

    let organization = Organization {
        id: org,
        name: invitation.name.clone(),
        settings: OrgSettings::default(),
        created_at: now,
    };
    organizations::insert(&mut tx, &organization).await?;

    let record = ApiKeyRecord {
        id: KeyId::new(),
        org: organization.id.clone(),
        name: Some("Invitation".into()),
        scopes: SCOPES.to_vec(),
        rate_limit_rpm: RATE,
        owner_email: Some(invitation.email.clone()),
        active: true,
        last_used_at: None,
        revision: 0,
    };

    api_keys::insert(&mut tx, &record, &key.hash(), now).await?;
    let details = json!({
        "key_id": record.id, "name": record.name, "scopes": record.scopes,
        "rate_limit_rpm": record.rate_limit_rpm, "owner_email": record.owner_email,
        "invited_by": invitation.org,
    });
    let org = &organization.id;
    credentials::record_by(&mut tx, Some(org), &actor, "key.created", details, now).await?;

    let joined = JoinedParty {
        org: organization.id.clone(),
        key: record.id,
        at: now,
    };
    rows::set_joined(&mut tx, &invitation, &joined).await?;
    let (inviter, org) = (invitation.org.clone(), joined.org.clone());

    let invitation = PartyInvitation {
        joined: Some(joined),
        ..invitation
    };
    let data = json!(InvitationView::from(&invitation));
    // The inviter needs the new id for its next act, such as a designation.
    let event = Event::of_organization(inviter, EventType::ControlPartyJoined, now, data);
    events::insert(&mut tx, &event);

    deliveries::fan_out(&mut tx, &event).await?;
    tx.commit().await?;
    Ok(Some(Membership { org, key }))
}

/// Returns the problems with the name and the address of the person who gets a link. The schema of the
/// body has limited their lengths.
pub(crate) fn addressee_issues(name: &str, email: &str) -> Vec<ValidationIssue> {
    let mut issues = Vec::new();
    // The name is part of the mail, where further lines could pass for our own text.
    if let Err(problem) = party_name::normalized(name) {
        let expected = "one line that is not empty";
        let message = format!("The link is sent to this name, and {problem}");
        issues.push(ValidationIssue::new(
            "invalid_string",
            &["name"],
            expected,
            name,
            message,
        ));
    }

    if !is_address(email) {
        let (expected, message) = ("an e-mail address", "The link goes to this address");
        issues.push(ValidationIssue::new(
            "invalid_email",
            &["email"],
            expected,
            email,
            message,
        ));
    }

    issues
}
