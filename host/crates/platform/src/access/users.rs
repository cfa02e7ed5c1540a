//! Users of an organization: invitations, roles and the end of access.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::credentials;
use crate::permits::four_eyes;
use crate::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_adapters::mail::address as mail_address;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, SignInId, UserId};
use holdfast_domain::job::MailSignIn;
use holdfast_domain::organization::Role;
use holdfast_domain::user::{IssuerIdentity, SignInLink, User, UserStatus};
use holdfast_store::{
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
    pub fn may_give(&self, role: Role) -> Result<(), ServiceError> {
        match (role, self.role) {
            (Role::Owner, Some(own)) if own != Role::Owner => {
                Err(ServiceError::NotAllowed("Only an owner manages owners"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a change of the person's own access.
    pub fn is_other(&self, user: &User) -> Result<(), ServiceError> {
        let own = self.caller.email.as_ref();
        if own.is_some_and(|own| own.to_lowercase() == user.email) {
            Err(ServiceError::NotAllowed(
                "Nobody changes the own access: ask another owner or admin",
            ))
        } else {
            Ok(())
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
    let new = NewUser {
        email: checked_address(&new.email)?,
        role: new.role,
    };
    let mut tx = core.store.begin().await?;
    // Where the policy requires approvals, one person must not make a reviewer. The operator may.
    if manager.role.is_some() {
        four_eyes::permit_role(core, &mut tx, &manager.caller.org, new.role).await?;
    }

    let by = manager.caller.actor.clone();
    let invited = invite_in(&mut tx, manager, new, by, core.clock.now()).await?;
    tx.commit().await?;

    Ok(invited)
}

/// Returns an address in the form in which it is stored.
///
/// # Errors
/// `Invalid` if it is none.
pub fn checked_address(text: &str) -> Result<String, ServiceError> {
    if let Ok(email) = mail_address::parse(&address(text)) {
        return Ok(email);
    }

    Err(ServiceError::invalid(
        "invalid_string",
        &["email"],
        "an e-mail address",
        text,
        "Not an e-mail address",
    ))
}

/// Invites a person with a checked address. `by` is the inviter: an actor, or the change that two people agreed on.
pub async fn invite_in(
    tx: &mut WriteTransaction,
    manager: &UserManager<'_>,
    NewUser { email, role }: NewUser,
    by: String,
    now: Timestamp,
) -> Result<(UserView, SignInId), ServiceError> {
    let org = &manager.caller.org;
    // The lock serializes concurrent invitations.
    organizations::lock(tx, org).await?;
    let users = rows::list(tx, org).await?;
    let with_access = users.iter().filter(|user| user.status != UserStatus::Ended);
    if with_access.count() >= MOST {
        return Err(ServiceError::Conflict(format!(
            "The organization has {MOST} users"
        )));
    }

    let user = match users.into_iter().find(|user| user.email == email) {
        Some(user) if user.status == UserStatus::Ended => {
            // The user had access before. Only another person gives it back, and only an owner to an
            // owner.
            manager.is_other(&user)?;
            manager.may_give(user.role)?;
            let again = User {
                role,
                status: UserStatus::Invited,
                created_by: by,
                ..user
            };
            rows::update(tx, &again).await?;

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
                role,
                status: UserStatus::Invited,
                created_by: by,
                created_at: now,
                signed_in_at: None,
                identity: None,
                proved_at: None,
            };

            rows::insert(tx, &user).await?;
            user
        }
    };

    let link = send_link(tx, &user, INVITATION, None, now).await?;
    note(tx, manager, "user.invited", None, &user, now).await?;
    Ok((UserView::from(&user), link))
}

/// Refuses to invite people where no page lets them in.
pub fn is_served(core: &Core) -> Result<(), ServiceError> {
    if core.config.console.enabled {
        Ok(())
    } else {
        Err(ServiceError::Conflict(
            "This installation has switched the console off".into(),
        ))
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
    // The pause keeps a manager from flooding a mailbox.
    if manager.role.is_some() && sent.count > 0 {
        let message = "A link was sent to this user within the last minute";
        return Err(Problem::new(ProblemKind::Quota(60), None, message).into());
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
    let org = &manager.caller.org;
    let mut tx = core.store.begin().await?;

    // A review that begins before counts, and is made void; a later one sees the change.
    components::lock_changes(&mut tx).await?;
    organizations::lock(&mut tx, org).await?;
    let user = find(&mut tx, org, id).await?;
    manager.is_other(&user)?;
    manager.may_give(change.role)?;
    if manager.role.is_some() && change.role != user.role {
        four_eyes::permit_role(core, &mut tx, org, change.role).await?;
    }

    let user = change_in(&mut tx, manager, &user.id, change.role, core.clock.now()).await?;
    tx.commit().await?;
    Ok(user)
}

/// Gives a user another role, in a transaction that has locked the changes of components.
pub async fn change_in(
    tx: &mut WriteTransaction,
    manager: &UserManager<'_>,
    id: &UserId,
    role: Role,
    now: Timestamp,
) -> Result<UserView, ServiceError> {
    let org = &manager.caller.org;
    organizations::lock(tx, org).await?;
    let before = find(tx, org, id.as_str()).await?;
    // A change that two people agreed on comes here directly, so the rights are checked here as well.
    manager.may_give(before.role)?;
    let user = User {
        role,
        ..before.clone()
    };
    rows::update(tx, &user).await?;

    // An old link would sign in with the new role.
    rows::end_links(tx, &user, now).await?;
    if user.role != before.role {
        component_changes::void_approvals_of(tx, &user.org, &actor(&user)).await?;
    }

    // After the update, because the remaining owners count.
    still_owned(tx, &before).await?;
    note(tx, manager, "user.changed", Some(&before), &user, now).await?;
    Ok(UserView::from(&user))
}

/// Separates a user from the account at the issuer, or moves it to `into` and ends the access of the first. All sessions
/// of the first end. The transaction has locked the changes of components.
pub async fn move_identity_in(
    tx: &mut WriteTransaction,
    manager: &UserManager<'_>,
    id: &UserId,
    into: Option<&UserId>,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let org = &manager.caller.org;
    organizations::lock(tx, org).await?;
    let before = find(tx, org, id.as_str()).await?;
    manager.may_give(before.role)?;
    let after = User {
        identity: None,
        ..before.clone()
    };

    // First, because an account belongs to one user at a time.
    rows::update(tx, &after).await?;
    rows::end_sessions(tx, &after, None).await?;
    component_changes::void_approvals_of(tx, org, &actor(&after)).await?;
    note(tx, manager, "user.unbound", Some(&before), &after, now).await?;

    let Some(into) = into else {
        return Ok(());
    };

    let target = find(tx, org, into.as_str()).await?;
    manager.may_give(target.role)?;
    let bound = User {
        identity: before.identity.clone(),
        ..target.clone()
    };
    rows::update(tx, &bound).await?;

    note(tx, manager, "user.bound", Some(&target), &bound, now).await?;
    end_in(tx, manager, &after, now).await
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
    end_in(&mut tx, manager, &user, now).await?;

    tx.commit().await?;
    let ended = User {
        status: UserStatus::Ended,
        ..user
    };
    Ok(UserView::from(&ended))
}

async fn end_in(
    tx: &mut WriteTransaction,
    manager: &UserManager<'_>,
    before: &User,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let user = User {
        status: UserStatus::Ended,
        ..before.clone()
    };
    rows::update(tx, &user).await?;
    rows::end_links(tx, &user, now).await?;
    rows::end_sessions(tx, &user, None).await?;

    passkeys::delete(tx, &user, None).await?;
    component_changes::void_approvals_of(tx, &user.org, &actor(&user)).await?;
    still_owned(tx, before).await?;

    Ok(note(tx, manager, "user.ended", Some(before), &user, now).await?)
}

/// Result of a sign-in at an issuer.
pub(super) enum IssuerSignIn {
    Granted(Box<User>),
    /// The access was ended here.
    Ended,
    /// The address belongs to a user with another account at the issuer.
    OtherAccount,
}

/// User with an account at an issuer, found among those of an organization.
pub(super) enum AccountHolder<'a> {
    /// The account is theirs, even if its address has changed.
    Bound(&'a User),
    /// They have the address, and no account at this issuer yet.
    Named(&'a User),
    /// They have the address, and another account at this issuer.
    OtherAccount,
    Nobody,
}

/// Finds the user of an account. The address is an attribute that can change, or belong to another person later (OpenID
/// Connect Core 1.0, section 5.7), so it counts only until the account is bound.
pub(super) fn holder<'a>(
    users: &'a [User],
    identity: &IssuerIdentity,
    email: &str,
) -> AccountHolder<'a> {
    let bound = |user: &&User| user.identity.as_ref() == Some(identity);
    if let Some(user) = users.iter().find(bound) {
        return AccountHolder::Bound(user);
    }
    let Some(user) = users.iter().find(|user| user.email == email) else {
        return AccountHolder::Nobody;
    };

    match &user.identity {
        Some(other) if other.issuer == identity.issuer => AccountHolder::OtherAccount,
        _ => AccountHolder::Named(user),
    }
}

/// Returns the user who signed in at the organization's issuer, with the role of their groups. A person without access
/// gets it. `set_by` is the person who named the issuer alone.
pub(super) async fn signed_on(
    tx: &mut WriteTransaction,
    org: &OrgId,
    set_by: Option<&str>,
    email: &str,
    role: Role,
    identity: &IssuerIdentity,
    now: Timestamp,
) -> Result<IssuerSignIn, ServiceError> {
    // The same order of locks as in `change` and `end`: the reverse one could deadlock with them.
    components::lock_changes(tx).await?;
    organizations::lock(tx, org).await?;
    let users = rows::list(tx, org).await?;
    let caller = Caller::named(org.clone(), format!("issuer:{}", identity.issuer));
    let manager = UserManager {
        caller: &caller,
        role: None,
    };

    let (user, is_bound) = match holder(&users, identity, email) {
        AccountHolder::Bound(user) => (Some(user.clone()), true),
        AccountHolder::Named(user) => (Some(user.clone()), false),
        AccountHolder::OtherAccount => return Ok(IssuerSignIn::OtherAccount),
        AccountHolder::Nobody => (None, false),
    };
    let Some(user) = user else {
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
            // Who named the issuer alone let in all of its users, also after another issuer is named.
            created_by: set_by.unwrap_or(&caller.actor).to_owned(),
            created_at: now,
            signed_in_at: None,
            identity: Some(identity.clone()),
            // The user is new, so the issuer has no earlier user to impersonate.
            proved_at: Some(now),
        };

        rows::insert(tx, &user).await?;
        note(tx, &manager, "user.provisioned", None, &user, now).await?;
        return Ok(IssuerSignIn::Granted(Box::new(user)));
    };

    // Access that was ended here is not given back by an issuer.
    if user.status == UserStatus::Ended {
        return Ok(IssuerSignIn::Ended);
    }

    let mut user = user;
    if !is_bound {
        let before = user.clone();
        user.identity = Some(identity.clone());
        rows::update(tx, &user).await?;
        note(tx, &manager, "user.bound", Some(&before), &user, now).await?;
    }

    if user.role == role {
        return Ok(IssuerSignIn::Granted(Box::new(user)));
    }

    let is_owner = |one: &&User| one.role == Role::Owner && one.status != UserStatus::Ended;
    if is_owner(&&user) && users.iter().filter(is_owner).count() == 1 {
        // An organization always has an owner.
        return Ok(IssuerSignIn::Granted(Box::new(user)));
    }

    let before = user.clone();
    let user = User { role, ..user };
    rows::update(tx, &user).await?;
    component_changes::void_approvals_of(tx, org, &actor(&user)).await?;
    note(tx, &manager, "user.changed", Some(&before), &user, now).await?;

    Ok(IssuerSignIn::Granted(Box::new(user)))
}

/// Binds a user to an account at the installation's issuer, at the first token of that account. Returns whether the user
/// has this account now.
pub(super) async fn bind(
    core: &Core,
    user: &User,
    identity: &IssuerIdentity,
) -> Result<bool, ServiceError> {
    let mut tx = core.store.begin().await?;
    if !rows::bind(&mut tx, user, identity).await? {
        // Another request was first: of this account, or of another one with the same address.
        let bound = rows::get(&mut tx, &user.org, &user.id).await?;
        return Ok(bound.is_some_and(|bound| bound.identity.as_ref() == Some(identity)));
    }

    let caller = Caller::named(user.org.clone(), format!("issuer:{}", identity.issuer));
    let manager = UserManager {
        caller: &caller,
        role: None,
    };

    let bound = User {
        identity: Some(identity.clone()),
        ..user.clone()
    };
    let now = core.clock.now();
    note(&mut tx, &manager, "user.bound", Some(user), &bound, now).await?;
    tx.commit().await?;

    Ok(true)
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
    if users.iter().any(is_owner) || !is_owner(before) {
        Ok(())
    } else {
        Err(ServiceError::Conflict(
            "The organization needs another owner first".into(),
        ))
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
    let state = |user: &User| {
        let mut state = json!({ "role": user.role, "status": user.status });
        if let Some(identity) = &user.identity {
            state["account"] = json!(identity);
        }
        state
    };
    let details = json!({
        "user_id": user.id, "email": user.email, "before": before.map(state), "after": state(user),
    });

    let actor = &manager.caller.actor;
    credentials::record_by(tx, Some(&user.org), actor, action, details, now).await
}
