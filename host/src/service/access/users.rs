//! Users of an organization: invitations, roles and the end of access.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::credentials;
use crate::domain::clock::Timestamp;
use crate::domain::id::{OrgId, SignInId, UserId};
use crate::domain::job::MailSignIn;
use crate::domain::organization::Role;
use crate::domain::user::{SignInLink, User, UserStatus};
use crate::mail::is_address;
use crate::service::{Caller, Core, ServiceError, ValidationIssue};
use crate::store::{
    StoreError, WriteTransaction, component_changes, components, jobs, organizations, passkeys,
    users as rows,
};

/// Life of the link in an invitation.
const INVITATION: Duration = Duration::from_secs(7 * 86_400);
/// Time between two links for a user.
pub(super) const PAUSE: Duration = Duration::from_secs(60);
/// Most users of an organization with access.
const MOST: usize = 1_000;

/// A user.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "user_id": "usr_01jdk7m3e8f4x9s2w5v6b0c1da", "email": "ada@acme.example", "role": "compliance", "status": "active",
    "created_by": "user:owner@acme.example", "created_at": "2026-05-04T15:04:05.000Z",
    "signed_in_at": "2026-11-21T09:41:07.250Z",
}]))]
pub struct UserView {
    pub user_id: UserId,
    pub email: String,
    pub role: Role,
    pub status: UserStatus,
    /// Who invited the user.
    pub created_by: String,
    pub created_at: Timestamp,
    /// Last sign-in in the console.
    pub signed_in_at: Option<Timestamp>,
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        Self {
            user_id: user.id.clone(),
            email: user.email.clone(),
            role: user.role,
            status: user.status,
            created_by: user.created_by.clone(),
            created_at: user.created_at,
            signed_in_at: user.signed_in_at,
        }
    }
}

/// Body of `POST /users`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "email": "ada@acme.example", "role": "compliance" }]))]
pub struct NewUser {
    /// Gets a link to sign in.
    #[schemars(email, length(max = 200))]
    pub email: String,
    pub role: Role,
}

/// Body of `PATCH /users/{id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "role": "auditor" }]))]
pub struct ChangeUser {
    pub role: Role,
}

/// Person who manages users.
pub struct UserManager<'a> {
    pub caller: &'a Caller,
    /// None for the operator, who may do everything.
    pub role: Option<Role>,
}

impl UserManager<'_> {
    /// Only owners give the role `owner`, and change owners.
    fn may_give(&self, role: Role) -> Result<(), ServiceError> {
        match (role, self.role) {
            (Role::Owner, Some(own)) if own != Role::Owner => {
                Err(ServiceError::NotAllowed("Only an owner manages owners"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a change of the person's own access.
    fn is_other(&self, user: &User) -> Result<(), ServiceError> {
        let own = self.caller.email.as_ref();
        match own.is_some_and(|own| own.to_lowercase() == user.email) {
            true => Err(ServiceError::NotAllowed(
                "Nobody changes the own access: ask another owner or admin",
            )),
            false => Ok(()),
        }
    }
}

/// Returns the name of a user in ledgers.
fn actor(user: &User) -> String {
    format!("user:{}", user.email)
}

/// Returns an address in the form in which it is stored.
pub fn address(text: &str) -> String {
    text.trim().to_lowercase()
}

/// Lists the users of an organization.
pub async fn list(core: &Core, org: &OrgId) -> Result<Vec<UserView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let users = rows::list(&mut connection, org).await?;
    Ok(users.iter().map(UserView::from).collect())
}

/// Invites a person. The mail has a link to sign in; an ended user gets access again.
pub async fn invite(
    core: &Core,
    manager: &UserManager<'_>,
    new: NewUser,
) -> Result<(UserView, SignInId), ServiceError> {
    manager.may_give(new.role)?;
    is_served(core)?;
    let (org, now) = (&manager.caller.org, core.clock.now());
    let email = address(&new.email);
    if !is_address(&email) {
        return Err(ServiceError::Invalid(vec![ValidationIssue::new(
            "invalid_string",
            &["email"],
            "an e-mail address",
            new.email,
            "Not an e-mail address",
        )]));
    }
    let mut tx = core.store.begin().await?;
    // The lock serializes concurrent invitations.
    organizations::lock(&mut tx, org).await?;
    let users = rows::list(&mut tx, org).await?;
    let with_access = users.iter().filter(|user| user.status != UserStatus::Ended);
    if with_access.count() >= MOST {
        return Err(ServiceError::Conflict(format!(
            "The organization has {MOST} users"
        )));
    }
    let user = match users.into_iter().find(|user| user.email == email) {
        Some(user) if user.status == UserStatus::Ended => {
            manager.is_other(&user)?;
            manager.may_give(user.role)?;
            let again = User {
                role: new.role,
                status: UserStatus::Invited,
                created_by: manager.caller.actor.clone(),
                ..user
            };
            rows::update(&mut tx, &again).await?;
            again
        }
        Some(_) => {
            let message = "A user with this address exists";
            return Err(ServiceError::Conflict(message.into()));
        }
        None => {
            let user = User {
                id: UserId::new(),
                org: org.clone(),
                email,
                role: new.role,
                status: UserStatus::Invited,
                created_by: manager.caller.actor.clone(),
                created_at: now,
                signed_in_at: None,
            };
            rows::insert(&mut tx, &user).await?;
            user
        }
    };
    let link = send_link(&mut tx, &user, INVITATION, None, now).await?;
    note(&mut tx, manager, "user.invited", None, &user, now).await?;
    tx.commit().await?;
    Ok((UserView::from(&user), link))
}

/// Refuses to invite people where no page lets them in.
pub fn is_served(core: &Core) -> Result<(), ServiceError> {
    match core.config.console.enabled {
        true => Ok(()),
        false => Err(ServiceError::Conflict(
            "This installation has switched the console off".into(),
        )),
    }
}

/// Mails the user another link, and ends the earlier ones. Returns its id.
pub async fn invite_again(
    core: &Core,
    manager: &UserManager<'_>,
    id: &str,
) -> Result<(UserView, SignInId), ServiceError> {
    is_served(core)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    organizations::lock(&mut tx, &manager.caller.org).await?;
    let user = find(&mut tx, &manager.caller.org, id).await?;
    manager.may_give(user.role)?;
    let sent = rows::links_since(&mut tx, &user, now - PAUSE).await?;
    if manager.role.is_some() && sent.count > 0 {
        return Err(ServiceError::QuotaUsed {
            message: "A link was sent to this user within the last minute".into(),
            retry_after: 60,
        });
    }
    if user.status == UserStatus::Ended {
        let message = "The user has no access any more: invite the address anew";
        return Err(ServiceError::Conflict(message.into()));
    }
    rows::end_links(&mut tx, &user, now).await?;
    let link = send_link(&mut tx, &user, INVITATION, None, now).await?;
    note(&mut tx, manager, "user.link_sent", None, &user, now).await?;
    tx.commit().await?;
    Ok((UserView::from(&user), link))
}

/// Gives a user another role. Open sessions go on with it.
pub async fn change(
    core: &Core,
    manager: &UserManager<'_>,
    id: &str,
    change: ChangeUser,
) -> Result<UserView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // A review that begins before counts, and is made void; a later one sees the change.
    components::lock_changes(&mut tx).await?;
    organizations::lock(&mut tx, &manager.caller.org).await?;
    let user = find(&mut tx, &manager.caller.org, id).await?;
    manager.is_other(&user)?;
    manager.may_give(user.role)?;
    manager.may_give(change.role)?;
    let before = user.clone();
    let user = User {
        role: change.role,
        ..user
    };
    rows::update(&mut tx, &user).await?;
    // An old link would sign in with the new role.
    rows::end_links(&mut tx, &user, now).await?;
    if user.role != before.role {
        component_changes::void_approvals_of(&mut tx, &user.org, &actor(&user)).await?;
    }
    still_owned(&mut tx, &before).await?;
    note(&mut tx, manager, "user.changed", Some(&before), &user, now).await?;
    tx.commit().await?;
    Ok(UserView::from(&user))
}

/// Ends the access of a user, with all sessions, links and passkeys.
pub async fn end(
    core: &Core,
    manager: &UserManager<'_>,
    id: &str,
) -> Result<UserView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // A review that begins before counts, and is made void; a later one sees the change.
    components::lock_changes(&mut tx).await?;
    organizations::lock(&mut tx, &manager.caller.org).await?;
    let user = find(&mut tx, &manager.caller.org, id).await?;
    manager.is_other(&user)?;
    manager.may_give(user.role)?;
    let before = user.clone();
    let user = User {
        status: UserStatus::Ended,
        ..user
    };
    rows::update(&mut tx, &user).await?;
    rows::end_links(&mut tx, &user, now).await?;
    rows::end_sessions(&mut tx, &user, None).await?;
    passkeys::delete(&mut tx, &user, None).await?;
    component_changes::void_approvals_of(&mut tx, &user.org, &actor(&user)).await?;
    still_owned(&mut tx, &before).await?;
    note(&mut tx, manager, "user.ended", Some(&before), &user, now).await?;
    tx.commit().await?;
    Ok(UserView::from(&user))
}

/// Returns the user who signed in at the organization's issuer, with the role of their groups. A person without access
/// gets it; `None` for one whose access was ended here.
pub(super) async fn signed_on(
    tx: &mut WriteTransaction,
    org: &OrgId,
    email: &str,
    role: Role,
    issuer: &str,
    now: Timestamp,
) -> Result<Option<User>, ServiceError> {
    components::lock_changes(tx).await?;
    organizations::lock(tx, org).await?;
    let users = rows::list(tx, org).await?;
    let caller = Caller {
        org: org.clone(),
        actor: format!("issuer:{issuer}"),
        email: None,
    };
    let manager = UserManager {
        caller: &caller,
        role: None,
    };
    let Some(user) = users.iter().find(|user| user.email == email).cloned() else {
        let with_access = users.iter().filter(|user| user.status != UserStatus::Ended);
        if with_access.count() >= MOST {
            return Err(ServiceError::Conflict(format!(
                "The organization has {MOST} users"
            )));
        }
        let user = User {
            id: UserId::new(),
            org: org.clone(),
            email: email.to_owned(),
            role,
            status: UserStatus::Active,
            created_by: caller.actor.clone(),
            created_at: now,
            signed_in_at: None,
        };
        rows::insert(tx, &user).await?;
        note(tx, &manager, "user.provisioned", None, &user, now).await?;
        return Ok(Some(user));
    };
    if user.status == UserStatus::Ended {
        return Ok(None);
    }
    if user.role == role {
        return Ok(Some(user));
    }
    let is_owner = |one: &&User| one.role == Role::Owner && one.status != UserStatus::Ended;
    if is_owner(&&user) && users.iter().filter(is_owner).count() == 1 {
        // An organization always has an owner.
        return Ok(Some(user));
    }
    let before = user.clone();
    let user = User { role, ..user };
    rows::update(tx, &user).await?;
    component_changes::void_approvals_of(tx, org, &actor(&user)).await?;
    note(tx, &manager, "user.changed", Some(&before), &user, now).await?;
    Ok(Some(user))
}

async fn find(tx: &mut WriteTransaction, org: &OrgId, id: &str) -> Result<User, ServiceError> {
    let unknown = ServiceError::NotFound("User");
    let Some(id) = UserId::parse(id) else {
        return Err(unknown);
    };
    rows::get(tx, org, &id).await?.ok_or(unknown)
}

/// Refuses a change of the last owner.
async fn still_owned(tx: &mut WriteTransaction, before: &User) -> Result<(), ServiceError> {
    let is_owner = |user: &User| user.role == Role::Owner && user.status != UserStatus::Ended;
    let users = rows::list(tx, &before.org).await?;
    match users.iter().any(is_owner) || !is_owner(before) {
        true => Ok(()),
        false => Err(ServiceError::Conflict(
            "The organization needs another owner first".into(),
        )),
    }
}

/// Queues the mail with a link that lives for `life` and leads to a page. Returns the link.
pub(super) async fn send_link(
    tx: &mut WriteTransaction,
    user: &User,
    life: Duration,
    leads_to: Option<&str>,
    now: Timestamp,
) -> Result<SignInId, StoreError> {
    let link = SignInLink {
        id: SignInId::new(),
        org: user.org.clone(),
        user: user.id.clone(),
        created_at: now,
        expires_at: now + life,
        used_at: None,
        leads_to: leads_to.map(str::to_owned),
    };
    rows::insert_link(tx, &link).await?;
    mail_link(tx, user, &link.id, now).await?;
    Ok(link.id)
}

/// Queues the mail with a link that exists.
pub(super) async fn mail_link(
    tx: &mut WriteTransaction,
    user: &User,
    link: &SignInId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let job = MailSignIn { link: link.clone() };
    jobs::insert(tx, &user.org, &job, Some(link.as_str()), now).await
}

async fn note(
    tx: &mut WriteTransaction,
    manager: &UserManager<'_>,
    action: &str,
    before: Option<&User>,
    user: &User,
    now: Timestamp,
) -> Result<(), StoreError> {
    let state = |user: &User| json!({ "role": user.role, "status": user.status });
    let details = json!({
        "user_id": user.id, "email": user.email, "before": before.map(state), "after": state(user),
    });
    let actor = &manager.caller.actor;
    credentials::record_by(tx, Some(&user.org), actor, action, details, now).await
}
