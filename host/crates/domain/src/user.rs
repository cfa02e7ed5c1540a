//! Users of an organization, and their sessions in browsers.

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{OrgId, SessionId, SignInId, UserId};
use super::organization::Role;

words! {
    /// Status of a user. `invited`: has not signed in yet. `ended`: has no access any more.
    UserStatus {
        Invited = "invited",
        Active = "active",
        Ended = "ended",
    }
}

/// Person of an organization who uses the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub org: OrgId,
    /// In lower case.
    pub email: String,
    pub role: Role,
    pub status: UserStatus,
    /// Who invited the user.
    pub created_by: String,
    pub created_at: Timestamp,
    pub signed_in_at: Option<Timestamp>,
}

/// Link with which a user signs in once. The secret part is not stored: it is derived from the id.
#[derive(Clone, Debug)]
pub struct SignInLink {
    pub id: SignInId,
    pub org: OrgId,
    pub user: UserId,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub used_at: Option<Timestamp>,
}

/// Session of a user in a browser.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: SessionId,
    pub org: OrgId,
    pub user: UserId,
    pub created_at: Timestamp,
    pub seen_at: Timestamp,
    pub expires_at: Timestamp,
    /// Address and browser at the sign-in.
    pub address: Option<String>,
    pub browser: Option<String>,
}
