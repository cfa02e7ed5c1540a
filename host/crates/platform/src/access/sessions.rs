//! Sign-in of users in a browser: links by mail, and sessions.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::users::PAUSE;
use super::{WebUser, credentials, users};
use crate::permits::link_codes::{is_link, link_code};
use crate::room::form::RequestOrigin;
use crate::{Core, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{SessionId, SignInId};
use holdfast_domain::organization::Organization;
use holdfast_domain::token::LinkToken;
use holdfast_domain::user::{Session, SignInLink, User, UserStatus};
use holdfast_store::{WriteTransaction, organizations, users as rows};

/// Life of a link that a user asks for.
const LINK: Duration = Duration::from_secs(900);
const DAY: Duration = Duration::from_secs(86_400);
/// Most mails to a user within a day that one network asks for while links of earlier mails work.
const MOST_OF_NETWORK: i64 = 20;
/// The same for all networks.
const MOST_A_DAY: i64 = 100;
/// Interval at which the use of a session is noted.
const SEEN: Duration = Duration::from_secs(60);
/// Time for which links and sessions are kept after their end.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

/// Time for which a confirmation counts.
pub(super) const CONFIRMED: Duration = Duration::from_secs(600);

/// A signed-in user.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub session: Session,
    pub user: User,
    /// Token of the session's forms.
    pub form_token: String,
}

impl SignedIn {
    /// Whether the user showed who they are a short time ago, as sensitive acts require: who stole the cookie cannot.
    pub fn is_confirmed(&self, now: Timestamp) -> bool {
        self.session.confirmed_at + CONFIRMED > now
    }
}

impl From<&SignedIn> for WebUser {
    fn from(signed_in: &SignedIn) -> Self {
        Self {
            org: signed_in.user.org.clone(),
            email: signed_in.user.email.clone(),
            role: signed_in.user.role,
            token: None,
            identity: signed_in.user.identity.clone(),
        }
    }
}

/// Mails links to the users with an address, one for each organization. Callers do not wait for it: its time would
/// tell who has access. The sign-in leads to the page with the path `leads_to`. Mails are counted by the `network` that
/// asks, so that a stranger cannot use up the mails of the user.
pub async fn request_link(
    core: &Core,
    email: &str,
    leads_to: Option<&str>,
    network: &str,
) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let users = rows::with_address(&mut connection, &users::address(email)).await?;
    drop(connection);

    for user in users {
        let mut tx = core.store.begin().await?;
        // Two requests at once would send two mails.
        organizations::lock(&mut tx, &user.org).await?;
        send_requested(core, &mut tx, &user, leads_to, network).await?;
        tx.commit().await?;
    }

    Ok(())
}

/// Mails a link, unless the user got one a moment ago or too many.
async fn send_requested(
    core: &Core,
    tx: &mut WriteTransaction,
    user: &User,
    leads_to: Option<&str>,
    network: &str,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let sent = rows::requested_mails(tx, user, network, now - DAY).await?;
    if sent.last.is_some_and(|last| last + PAUSE > now) {
        return Ok(());
    }

    // Past the limits nothing is sent while an earlier mail has a link that works. Once it is over,
    // there is a mail again: a flood of requests does not end the sign-in of the user.
    let open = rows::open_link(tx, user, now, now + LINK).await?;
    let is_flooded = sent.of_network >= MOST_OF_NETWORK || sent.all >= MOST_A_DAY;
    if is_flooded && open.is_some() {
        return Ok(());
    }

    // A link that works for a while is sent again: a new one for each request would make the user
    // look for the right mail.
    let repeated = open
        .filter(|link| link.expires_at > now + LINK / 2 && link.leads_to.as_deref() == leads_to);
    let link = if let Some(link) = repeated {
        users::mail_link(tx, user, &link.id, now).await?;
        link.id
    } else {
        users::send_link(tx, user, LINK, leads_to, now).await?
    };

    Ok(rows::insert_requested_mail(tx, user, &link, network, now).await?)
}

/// Returns the URL of a link.
pub fn url(core: &Core, id: &SignInId) -> Result<String, ServiceError> {
    let code = link_code(core, "sign-in", id.as_str())?;
    let base = core.config.console_url();
    Ok(format!("{base}/console/enter/{id}/{code}"))
}

/// A sign-in link with its user.
pub struct OfferedSignIn {
    pub link: SignInLink,
    pub user: User,
    pub organization: Organization,
    /// Whether it can be used.
    pub is_open: bool,
}

impl OfferedSignIn {
    /// Whether the user has to sign in at the organization's issuer instead.
    pub fn leads_to_issuer(&self) -> bool {
        self.organization.settings.requires_sign_on()
    }

    /// Whether the user has to show that they have the mailbox before they approve: the issuer was named since.
    pub fn needs_proof(&self) -> bool {
        let sign_on = self.organization.settings.single_sign_on.as_ref();
        let since = sign_on.and_then(|sign_on| sign_on.since);
        since.is_some_and(|since| self.user.needs_proof(since))
    }
}

/// Returns what a link offers; none for an unknown link.
pub async fn offered(
    core: &Core,
    id: &str,
    code: &str,
) -> Result<Option<OfferedSignIn>, ServiceError> {
    let Some(id) = SignInId::parse(id) else {
        return Ok(None);
    };
    // A forged code is refused before the database is asked.
    if !is_link(core, "sign-in", id.as_str(), code)? {
        return Ok(None);
    }

    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let Some(link) = rows::link(&mut connection, &id).await? else {
        return Ok(None);
    };

    let user = rows::get(&mut connection, &link.org, &link.user).await?;
    let organization = organizations::get(&mut connection, &link.org).await?;
    Ok(user.zip(organization).map(|(user, organization)| {
        let is_open =
            link.used_at.is_none() && link.expires_at > now && user.status != UserStatus::Ended;
        OfferedSignIn {
            link,
            user,
            organization,
            is_open,
        }
    }))
}

/// Signs a user in. Returns the secret of the new session; none if the link is over.
pub async fn sign_in(
    core: &Core,
    offered: OfferedSignIn,
    origin: RequestOrigin,
) -> Result<Option<LinkToken>, ServiceError> {
    if !offered.is_open || offered.leads_to_issuer() {
        return Ok(None);
    }

    let (link, now) = (&offered.link, core.clock.now());
    let mut tx = core.store.begin().await?;
    organizations::lock(&mut tx, &link.org).await?;
    // Compare-and-swap: two clicks on one link begin one session.
    if !rows::use_link(&mut tx, link, now).await? {
        return Ok(None);
    }

    // The user may have lost access meanwhile.
    let user = rows::get(&mut tx, &link.org, &link.user).await?;
    let Some(user) = user.filter(|user| user.status != UserStatus::Ended) else {
        return Ok(None);
    };

    // A link of an earlier mail must not begin another session.
    rows::end_links(&mut tx, &user, now).await?;
    let by = json!({ "link_id": link.id });
    let secret = begin(core, &mut tx, user, NewSession::of(core, origin, by)).await?;
    tx.commit().await?;

    Ok(Some(secret))
}

/// Notes that a user who has to sign in at the issuer has the mailbox. The link proves this and begins no session. One
/// person alone could have named the present issuer.
pub async fn prove(core: &Core, offered: &OfferedSignIn) -> Result<(), ServiceError> {
    if !offered.is_open {
        return Ok(());
    }

    let (link, now) = (&offered.link, core.clock.now());
    let mut tx = core.store.begin().await?;
    organizations::lock(&mut tx, &link.org).await?;

    if rows::use_link(&mut tx, link, now).await? {
        rows::prove(&mut tx, &link.org, &link.user, now).await?;
        tx.commit().await?;
    }

    Ok(())
}

/// How a session begins.
pub(super) struct NewSession {
    pub origin: RequestOrigin,
    /// Way of the sign-in, for the ledger.
    pub by: Value,
    pub confirmed_at: Timestamp,
    pub issuer: Option<String>,
    /// Whether the sign-in showed what no issuer can show for the user.
    pub proves: bool,
}

impl NewSession {
    /// Describes a sign-in at this installation, by which users show who they are.
    pub fn of(core: &Core, origin: RequestOrigin, by: Value) -> Self {
        Self {
            origin,
            by,
            confirmed_at: core.clock.now(),
            issuer: None,
            proves: true,
        }
    }
}

/// Begins a session.
pub(super) async fn begin(
    core: &Core,
    tx: &mut WriteTransaction,
    user: User,
    new: NewSession,
) -> Result<LinkToken, ServiceError> {
    let now = core.clock.now();
    let user = User {
        status: UserStatus::Active,
        signed_in_at: Some(now),
        // Proved by a link or a passkey of this installation, not by the claim of an issuer.
        proved_at: if new.proves {
            Some(now)
        } else {
            user.proved_at
        },
        ..user
    };

    rows::update(tx, &user).await?;
    // Only the hash of the secret is stored: a copy of the database opens no session.
    let secret = LinkToken::generate(user.org.bucket());
    let session = Session {
        id: SessionId::new(),
        org: user.org.clone(),
        user: user.id.clone(),
        created_at: now,
        seen_at: now,
        confirmed_at: new.confirmed_at,
        expires_at: now + core.config.console.session_ttl,
        address: new.origin.ip,
        browser: new.origin.user_agent,
        issuer: new.issuer,
    };

    rows::insert_session(tx, &session, &secret.hash()).await?;
    let details = json!({
        "user_id": user.id, "session_id": session.id, "address": session.address,
        "browser": session.browser, "expires_at": session.expires_at, "by": new.by,
    });
    let actor = format!("user:{}", user.email);
    let action = "user.signed_in";
    credentials::record_by(tx, Some(&user.org), &actor, action, details, now).await?;

    Ok(secret)
}

/// Returns the signed-in user of a session's secret.
pub async fn signed_in(core: &Core, secret: &str) -> Result<Option<SignedIn>, ServiceError> {
    let Some(secret) = LinkToken::parse(secret) else {
        return Ok(None);
    };

    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let found = rows::session_of(&mut connection, &secret, now).await?;
    drop(connection);

    let Some((session, user)) = found else {
        return Ok(None);
    };
    if session.seen_at + core.config.console.idle <= now || !is_admitted(core, &session).await? {
        return Ok(None);
    }

    // A page causes several requests, and only the first one of a minute writes.
    if session.seen_at + SEEN <= now {
        let mut tx = core.store.begin().await?;
        rows::seen(&mut tx, &session, now).await?;
        tx.commit().await?;
    }

    Ok(Some(SignedIn {
        session,
        user,
        form_token: form_token(&secret),
    }))
}

/// Returns a session with its user as they are now; none if it is over. Asking is no use of the session.
pub async fn again(core: &Core, before: &SignedIn) -> Result<Option<SignedIn>, ServiceError> {
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let user = rows::get(&mut connection, &before.user.org, &before.user.id).await?;
    let Some(user) = user.filter(|user| user.status == UserStatus::Active) else {
        return Ok(None);
    };

    let seen_after = now - core.config.console.idle;
    let open = rows::sessions(&mut connection, &user, now, seen_after).await?;
    drop(connection);
    let mut open = open.into_iter();
    let Some(session) = open.find(|session| session.id == before.session.id) else {
        return Ok(None);
    };
    if !is_admitted(core, &session).await? {
        return Ok(None);
    }

    Ok(Some(SignedIn {
        session,
        user,
        form_token: before.form_token.clone(),
    }))
}

/// Whether the organization admits sessions that began in this way: those of an issuer end when another one is named or none,
/// and where an issuer is required, others have ended.
async fn is_admitted(core: &Core, session: &Session) -> Result<bool, ServiceError> {
    let mut connection = core.store.read().await?;
    let organization = organizations::get(&mut connection, &session.org).await?;
    let settings = organization.map(|organization| organization.settings);
    let sign_on = settings.and_then(|settings| settings.single_sign_on);
    Ok(match (&session.issuer, sign_on) {
        (Some(began), Some(sign_on)) => {
            // The setting and the token may differ by a slash at the end.
            began.trim_end_matches('/') == sign_on.issuer.as_str().trim_end_matches('/')
        }
        (Some(_), None) => false,
        (None, sign_on) => sign_on.is_none_or(|sign_on| !sign_on.required),
    })
}

/// Derives the token of a session's forms, which pages of other origins do not know.
fn form_token(secret: &LinkToken) -> String {
    let digest = Sha256::digest(format!("form\n{}", secret.reveal()));
    hex::encode(&digest[..16])
}

/// Returns the open sessions of a user.
pub async fn list(core: &Core, user: &User) -> Result<Vec<Session>, ServiceError> {
    let mut connection = core.store.read().await?;
    let now = core.clock.now();
    let seen_after = now - core.config.console.idle;
    Ok(rows::sessions(&mut connection, user, now, seen_after).await?)
}

/// Ends one session of a user, or all of them.
pub async fn end(core: &Core, user: &User, only: Option<&SessionId>) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let ended = rows::end_sessions(&mut tx, user, only).await?;
    if ended > 0 {
        let details = json!({ "user_id": user.id, "session_id": only, "sessions": ended });
        let actor = format!("user:{}", user.email);
        let action = "session.ended";
        credentials::record_by(&mut tx, Some(&user.org), &actor, action, details, now).await?;
    }

    Ok(tx.commit().await?)
}

/// Deletes old links and sessions.
pub async fn forget(core: &Core) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    rows::forget(&mut tx, core.clock.now() - KEPT).await?;
    Ok(tx.commit().await?)
}
