//! The built-in signing room: the provider behind `provider_instance`
//! `embedded`.
//!
//! It is a provider like any other. It knows templates, submissions and
//! submitters, not envelopes; it speaks a subset of DocuSeal's HTTP API
//! (`api.rs`) and tells of changes by signed callbacks (`callbacks.rs`). The
//! rest of the host reaches it through the signing plugin, over the plugin's
//! egress, without a socket. Only the signing form talks to it directly
//! (`form.rs`): that is the room's own user interface.

use std::sync::Arc;

use crate::components::Components;
use crate::config::SecretText;
use crate::domain::clock::Clock;
use crate::domain::hash::hmac_sha256;
use crate::domain::id::OrgId;
use crate::domain::token::random;
use crate::files::Files;
use crate::store::Store;

mod api;
pub mod callbacks;
pub mod execute;
pub mod form;
mod json;
pub mod signature;
mod submissions;
mod templates;

pub use api::router;

/// The host name that stands for the room in URLs. Nothing resolves it: the
/// egress of the `embedded` instance hands its requests to [`router`].
pub const HOST: &str = "signing-room.internal";

/// The signing room.
#[derive(Clone)]
pub struct Room {
    pub(crate) store: Store,
    pub(crate) files: Files,
    pub(crate) components: Arc<Components>,
    pub(crate) clock: Clock,
    key: [u8; 32],
}

impl Room {
    /// `key` makes the room's tokens; it never leaves the process.
    pub fn new(
        store: Store,
        files: Files,
        components: Arc<Components>,
        clock: Clock,
        key: [u8; 32],
    ) -> Self {
        Self {
            store,
            files,
            components,
            clock,
            key,
        }
    }

    /// The API token of an organization, as DocuSeal's `X-Auth-Token`.
    pub fn token(&self, org: &OrgId) -> SecretText {
        SecretText::new(format!(
            "{org}.{}",
            hex::encode(self.mac(&["token", org.as_str()]))
        ))
    }

    /// The organization a token is for; none when the room did not make it.
    fn organization(&self, token: &str) -> Option<OrgId> {
        let (org, mac) = token.split_once('.')?;
        let org = OrgId::parse(org)?;
        let expected = self.token(&org);
        let expected = expected.reveal().split_once('.')?.1;
        bool::from(subtle::ConstantTimeEq::ct_eq(
            expected.as_bytes(),
            mac.as_bytes(),
        ))
        .then_some(org)
    }

    /// The secret that signs the room's callbacks.
    pub fn webhook_secret(&self) -> SecretText {
        SecretText::new(format!("whsec_{}", hex::encode(self.mac(&["webhook"]))))
    }

    /// The credential in the URL of a submission's executed document.
    fn document_credential(&self, org: &OrgId, submission: i64) -> String {
        hex::encode(self.mac(&["document", org.as_str(), &submission.to_string()]))
    }

    /// Each part ends with a zero, so that no two lists of parts read the same.
    fn mac(&self, parts: &[&str]) -> [u8; 32] {
        let ended: Vec<&[u8]> = parts
            .iter()
            .flat_map(|part| [part.as_bytes(), &[0]])
            .collect();
        hmac_sha256(&self.key, &ended)
    }
}

/// A new numeric id: 52 random bits, exact in every JSON reader.
fn new_id() -> i64 {
    i64::from_be_bytes(random::<8>()) & ((1 << 52) - 1)
}

/// A new slug: 14 letters and digits, as DocuSeal's.
fn new_slug() -> String {
    hex::encode(random::<7>())
}
