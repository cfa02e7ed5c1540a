//! Changes of who may approve: the sign-in of users, invitations, roles, and accounts at the issuer. They need
//! the approvals that changes of components need, because who makes reviewers alone approves alone. So does the host of
//! signing links, which sees what signers enter.

use holdfast_store::SqlConnection;

use super::{ChangeOfficer, ChangeProblem, same_account};
use crate::access::single_sign_on::{ChangeSingleSignOn, CheckedSignOn, secret_context};
use crate::access::users::{self, NewUser, UserManager, address};
use crate::{Core, ServiceError, link_hosts, organizations};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component_change::{ComponentChange, RequestedChange, SecretChange};
use holdfast_domain::id::{OrgId, UserId};
use holdfast_domain::organization::{LinkHost, OrgSettings, Role, SingleSignOn};
use holdfast_domain::user::{IssuerIdentity, User, UserStatus};
use holdfast_store::{WriteTransaction, organizations as organization_rows, tokens, users as rows};

impl ChangeOfficer {
    fn manager(&self) -> UserManager<'_> {
        UserManager {
            caller: &self.caller,
            role: Some(self.role),
        }
    }
}

/// A requested change, and the sealed secret that belongs to it.
pub(super) type ProposedAccess = (RequestedChange, Option<String>);

/// Checks a change of the sign-in. `None` ends it.
pub(super) async fn propose_sign_on(
    core: &Core,
    officer: &ChangeOfficer,
    new: Option<ChangeSingleSignOn>,
) -> Result<ProposedAccess, ServiceError> {
    // An admin who names an issuer could sign in as an owner.
    if officer.role != Role::Owner {
        return Err(ServiceError::NotAllowed(
            "Only an owner changes the sign-in",
        ));
    }

    let org = &officer.caller.org;
    let previous = organizations::read(core, org).await?;
    let previous = previous.settings.single_sign_on;
    let checked = match new {
        Some(new) => Some(new.checked(core, previous.as_ref()).await?),
        None => None,
    };

    let (settings, secret) = match checked {
        Some(CheckedSignOn { settings, secret }) => (Some(settings), secret),
        // Without an issuer, the secret of its client has no use and is removed.
        None => (None, Some(None)),
    };
    let client_secret = match &secret {
        // Request and ledger show what becomes of the secret, and not the secret.
        None => SecretChange::Keep,
        Some(None) => SecretChange::Remove,
        Some(Some(_)) => SecretChange::Set,
    };

    // Sealed for the column that it ends in, so that applying only copies it.
    let context = secret_context(org.as_str());
    let sealed = secret.flatten();
    let sealed = sealed.map(|secret| core.cipher.encrypt(&secret, &context));
    let change = RequestedChange::SingleSignOn {
        single_sign_on: settings.map(Box::new),
        client_secret,
        previous: previous.map(Box::new),
    };

    Ok((change, sealed))
}

/// Path of the host in the body of a change request.
pub(super) const LINK_HOST: [&str; 2] = ["change", "link_host"];

/// Checks a host of signing links: it has to name the organization.
pub(super) async fn propose_link_host(
    core: &Core,
    officer: &ChangeOfficer,
    host: &str,
) -> Result<ProposedAccess, ServiceError> {
    let org = &officer.caller.org;
    let host = link_hosts::verified(core, org, host, &LINK_HOST).await?;
    let previous = organizations::read(core, org).await?.settings.link_host;
    let change = RequestedChange::LinkHost {
        link_host: host.host,
        previous: previous.map(|host| host.host),
    };

    Ok((change, None))
}

/// Checks an invitation.
pub(super) fn propose_invitation(
    core: &Core,
    officer: &ChangeOfficer,
    new: &NewUser,
) -> Result<ProposedAccess, ServiceError> {
    officer.manager().may_give(new.role)?;
    users::is_served(core)?;
    let change = RequestedChange::InviteUser {
        email: users::checked_address(&new.email)?,
        role: new.role,
    };
    Ok((change, None))
}

/// Checks a change of a role.
pub(super) async fn propose_role(
    core: &Core,
    officer: &ChangeOfficer,
    user: &str,
    role: Role,
) -> Result<ProposedAccess, ServiceError> {
    let user = named(core, &officer.caller.org, user).await?;
    let manager = officer.manager();
    manager.is_other(&user)?;
    // For both roles: only an owner takes the role of one away or gives it.
    manager.may_give(user.role)?;
    manager.may_give(role)?;
    let change = RequestedChange::ChangeRole {
        user_id: user.id,
        email: user.email,
        role,
        previous: user.role,
    };

    Ok((change, None))
}

/// Checks that an account at the issuer can be separated from a user, or moved to `into`.
pub(super) async fn propose_move(
    core: &Core,
    officer: &ChangeOfficer,
    user: &str,
    into: Option<&str>,
) -> Result<ProposedAccess, ServiceError> {
    let org = &officer.caller.org;
    let user = named(core, org, user).await?;
    let manager = officer.manager();
    manager.may_give(user.role)?;

    let Some(identity) = user.identity else {
        let message = "The user has not signed in at an issuer";
        return Err(ServiceError::Conflict(message.into()));
    };

    let into = match into {
        Some(into) => Some(named(core, org, into).await?),
        None => None,
    };
    if let Some(into) = &into {
        manager.may_give(into.role)?;
        // A user with an account would lose it to the moved one.
        let is_free = into.identity.is_none() && into.status != UserStatus::Ended;
        if !is_free || into.id == user.id {
            let message = "An account is moved to another user who has access and no account";
            return Err(ServiceError::Conflict(message.into()));
        }
    }

    let change = RequestedChange::MoveIdentity {
        user_id: user.id,
        email: user.email,
        identity,
        into_email: into.as_ref().map(|into| into.email.clone()),
        into_user_id: into.map(|into| into.id),
    };

    Ok((change, None))
}

async fn named(core: &Core, org: &OrgId, id: &str) -> Result<User, ServiceError> {
    let unknown = || ServiceError::NotFound("User");
    let id = UserId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let user = rows::get(&mut connection, org, &id).await?;
    user.ok_or_else(unknown)
}

/// Whether what an access change was requested about is still as it was.
pub(super) async fn is_unchanged(
    connection: &mut SqlConnection,
    org: &OrgId,
    change: &RequestedChange,
) -> Result<bool, ServiceError> {
    // An approval is about the state that the reviewers saw.
    Ok(match change {
        RequestedChange::SingleSignOn { previous, .. } => {
            let organization = organization_rows::get(connection, org).await?;
            let present = organization.and_then(|one| one.settings.single_sign_on);
            present.as_ref() == previous.as_deref()
        }
        RequestedChange::LinkHost { previous, .. } => {
            let organization = organization_rows::get(connection, org).await?;
            let present = organization.and_then(|one| one.settings.link_host);
            present.map(|host| host.host) == *previous
        }
        RequestedChange::ChangeRole {
            user_id, previous, ..
        } => {
            let user = rows::get(connection, org, user_id).await?;
            user.is_some_and(|user| user.role == *previous && user.status != UserStatus::Ended)
        }
        RequestedChange::MoveIdentity {
            user_id,
            identity,
            into_user_id,
            ..
        } => {
            let user = rows::get(connection, org, user_id).await?;
            let has_it = user.is_some_and(|user| user.identity.as_ref() == Some(identity));
            let is_free = match into_user_id {
                Some(into) => {
                    let into = rows::get(connection, org, into).await?;
                    into.is_some_and(|one| {
                        one.identity.is_none() && one.status != UserStatus::Ended
                    })
                }
                None => true,
            };

            has_it && is_free
        }
        _ => true,
    })
}

/// Makes an approved change of access; none of another kind.
pub(super) async fn make(
    tx: &mut WriteTransaction,
    officer: &ChangeOfficer,
    change: &ComponentChange,
    approved_by: &[String],
    now: Timestamp,
) -> Result<(), ServiceError> {
    let (org, manager) = (&change.org, officer.manager());
    // Without an approval it is the act of one person, as without a request.
    let alone = approved_by.is_empty().then(|| change.requested_by.clone());
    match &change.content.change {
        RequestedChange::SingleSignOn {
            single_sign_on,
            client_secret,
            ..
        } => {
            let secret = match client_secret {
                SecretChange::Keep => None,
                SecretChange::Set => Some(change.config.as_deref()),
                SecretChange::Remove => Some(None),
            };
            let settings = single_sign_on.as_deref().cloned();
            let actor = &officer.caller.actor;
            organizations::put_sign_on(tx, org, actor, settings, secret, alone, now).await?;
        }
        RequestedChange::LinkHost { link_host, .. } => {
            let actor = &officer.caller.actor;
            // `apply` has read the file of the host again.
            let host = LinkHost::verified(link_host, now);
            link_hosts::put(tx, org, actor, host, now).await?;
        }
        RequestedChange::InviteUser { email, role } => {
            // The officer who applies needs the power as well, and may be another one than the requester.
            manager.may_give(*role)?;
            let new = NewUser {
                email: email.clone(),
                role: *role,
            };

            // Where two people let a user in, neither is the inviter.
            let by = alone.unwrap_or_else(|| format!("change:{}", change.id));
            users::invite_in(tx, &manager, new, by, now).await?;
        }
        RequestedChange::ChangeRole { user_id, role, .. } => {
            manager.may_give(*role)?;
            users::change_in(tx, &manager, user_id, *role, now).await?;
        }
        RequestedChange::MoveIdentity {
            user_id,
            into_user_id,
            ..
        } => users::move_identity_in(tx, &manager, user_id, into_user_id.as_ref(), now).await?,
        RequestedChange::Activate { .. }
        | RequestedChange::RollBack { .. }
        | RequestedChange::Policy { .. }
        | RequestedChange::WaiveStipulation { .. }
        | RequestedChange::PublishFundingPack { .. }
        | RequestedChange::SubscribeFundingPack { .. }
        | RequestedChange::SetFunding { .. } => {}
    }

    Ok(())
}

/// Refuses a second person for a power that always needs two: the one who asked for it, also under another address of the
/// same account; an invitee or the inviter of that person; and another invitee of one person, who could be both.
pub async fn permit_second(
    tx: &mut WriteTransaction,
    second: &ChangeOfficer,
    first: &str,
    first_account: Option<&IssuerIdentity>,
) -> Result<(), ServiceError> {
    let (org, actor) = (&second.caller.org, &second.caller.actor);
    check_access(tx, second).await?;
    if second.is(first) || same_account(second.identity.as_ref(), first_account) {
        return Err(ChangeProblem::RequesterReviews.into());
    }

    let tree = InvitationTree::read(tx, org).await?;
    if tree.are_related(actor, first) || tree.share_an_inviter(actor, first) {
        return Err(ChangeProblem::InviteeReviews.into());
    }
    if tree.is_unconfirmed(actor) {
        return Err(ChangeProblem::IdentityUnconfirmed.into());
    }

    Ok(())
}

/// Refuses an officer with a revoked token, or with an access that has ended since the request began. Returns the user, if the
/// organization knows one with the address.
pub(super) async fn check_access(
    tx: &mut WriteTransaction,
    officer: &ChangeOfficer,
) -> Result<Option<User>, ServiceError> {
    // The token was valid when the request began, and may have been revoked since.
    let org = &officer.caller.org;
    if let Some(token) = &officer.token
        && tokens::is_revoked(tx, org, token).await?
    {
        return Err(ServiceError::NotAllowed("Your token was revoked"));
    }

    let email = officer.caller.email.as_deref().unwrap_or_default();
    let user = rows::by_address(tx, org, &address(email)).await?;
    if user
        .as_ref()
        .is_some_and(|user| user.status == UserStatus::Ended)
    {
        return Err(ServiceError::NotAllowed("Your access has ended"));
    }

    Ok(user)
}

/// Users of an organization, with who let each of them in.
pub(super) struct InvitationTree {
    users: Vec<User>,
    sign_on: Option<SingleSignOn>,
}

impl InvitationTree {
    pub(super) async fn read(
        connection: &mut SqlConnection,
        org: &OrgId,
    ) -> Result<Self, ServiceError> {
        let organization = organization_rows::get(connection, org).await?;
        let settings = organization.map_or_else(OrgSettings::default, |one| one.settings);
        Ok(Self {
            users: rows::list(connection, org).await?,
            sign_on: settings.single_sign_on,
        })
    }

    /// Whether one of two actors let the other in, directly or through others: one person could be both.
    pub(super) fn are_related(&self, one: &str, other: &str) -> bool {
        self.inviters(one).contains(&other.to_lowercase())
            || self.inviters(other).contains(&one.to_lowercase())
    }

    /// Whether one person let in both actors, directly or through others.
    fn share_an_inviter(&self, one: &str, other: &str) -> bool {
        let others = self.inviters(other);
        let people = self.inviters(one).into_iter();
        people
            .filter(|by| by.starts_with("user:"))
            .any(|by| others.contains(&by))
    }

    /// Returns who let an actor in, and who let those in. It ends at the operator, and at what two people approved.
    fn inviters(&self, actor: &str) -> Vec<String> {
        let mut found = Vec::new();
        // In lower case: addresses of one person differ in case by accident.
        let mut actor = actor.to_lowercase();
        // A user of an issuer may have named that issuer: such a chain is a circle and would never end.
        while let Some(by) = self.inviter(&actor).filter(|by| !found.contains(by)) {
            found.push(by.clone());
            actor = by;
        }
        found
    }

    fn inviter(&self, actor: &str) -> Option<String> {
        let email = actor.strip_prefix("user:")?;
        let user = self.users.iter().find(|user| user.email == email)?;
        let by = match user.created_by.strip_prefix("issuer:") {
            // The person who named the issuer let in all of its users.
            Some(issuer) => {
                let is_it = |one: &&SingleSignOn| {
                    one.issuer.as_str().trim_end_matches('/') == issuer.trim_end_matches('/')
                };
                self.sign_on.as_ref().filter(is_it)?.set_by.as_deref()?
            }
            None => user.created_by.as_str(),
        };

        Some(by.to_lowercase())
    }

    /// Whether an actor has to show a mailed link or a passkey before they approve.
    pub(super) fn is_unconfirmed(&self, actor: &str) -> bool {
        let since = self.sign_on.as_ref().and_then(|one| one.since);
        let email = actor.to_lowercase();
        let email = email.strip_prefix("user:").unwrap_or_default();
        let user = self.users.iter().find(|user| user.email == email);
        // Without an issuer of the organization, no sign-in could have named another person's address.
        let (Some(since), Some(user)) = (since, user) else {
            return false;
        };
        user.needs_proof(since)
    }
}
