//! Users of an organization, and their sessions in browsers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{OrgId, PasskeyId, SessionId, SignInId, UserId};
use super::organization::Role;

words! {
    /// Status of a user. `invited`: has not signed in yet. `ended`: has no access any more.
    UserStatus {
        Invited = "invited",
        Active = "active",
        Ended = "ended",
    }
}

/// Account at an OpenID Connect issuer (Core 1.0, section 5.7): its address may change, or belong to somebody else later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuerIdentity {
    /// Claim `iss`.
    pub issuer: String,
    /// Claim `sub`.
    pub subject: String,
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
    /// Account at an issuer, bound at the first sign-in there.
    pub identity: Option<IssuerIdentity>,
    /// Last time at which the user showed a mailed link or a passkey of this installation, which no issuer can show for
    /// them, or at which an issuer let them in.
    pub proved_at: Option<Timestamp>,
}

impl User {
    /// Whether others than the present issuer let the user in, and the user has shown neither a mailed link nor a passkey since
    /// the issuer was named: without such a proof, the issuer could name any user.
    pub fn needs_proof(&self, since: Timestamp) -> bool {
        self.proved_at.is_none_or(|at| at < since)
    }
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
    /// Path of the page to which the sign-in leads.
    pub leads_to: Option<String>,
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
    /// When the user last showed who they are: at the sign-in, or later with a passkey.
    pub confirmed_at: Timestamp,
    /// Address and browser at the sign-in.
    pub address: Option<String>,
    pub browser: Option<String>,
    /// Issuer at which the user signed in, if it was one.
    pub issuer: Option<String>,
}

/// Passkey of a user.
#[derive(Clone, Debug)]
pub struct Passkey {
    pub id: PasskeyId,
    pub org: OrgId,
    pub user: UserId,
    /// base64url, as the browser names it.
    pub credential_id: String,
    /// `SubjectPublicKeyInfo` in DER (RFC 5280), base64url.
    pub public_key: String,
    pub name: Option<String>,
    /// Uses that the device counted; 0 if it does not count.
    pub use_count: i64,
    pub created_at: Timestamp,
    pub used_at: Option<Timestamp>,
}
