//! Ids: a prefix, an underscore and 26 base32 characters of a UUIDv7 (TypeID).
//!
//! A value of one of these types is always well-formed. A malformed id in a request does not
//! parse and gets the same response as an id that does not exist.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::clock::Timestamp;

/// Crockford's alphabet in lower case, as TypeID uses it.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const SUFFIX_LENGTH: usize = 26;

/// Number of buckets that organizations are spread over. The bucket is part of every tenant
/// table's key, so this number can never change.
pub const BUCKETS: u8 = 64;

fn suffix() -> String {
    written(Uuid::now_v7().as_u128())
}

fn written(value: u128) -> String {
    // 26 characters of 5 bits are 130 bits: the first holds only three.
    (0..SUFFIX_LENGTH)
        .map(|index| {
            let shift = 5 * (SUFFIX_LENGTH - 1 - index);
            char::from(ALPHABET[((value >> shift) & 31) as usize])
        })
        .collect()
}

fn is_suffix(text: &str) -> bool {
    text.len() == SUFFIX_LENGTH
        && text.bytes().all(|byte| ALPHABET.contains(&byte))
        && text.as_bytes()[0] <= b'7'
}

macro_rules! prefixed_id {
    ($(#[$docs:meta])* $name:ident, $prefix:literal $(, or $alias:literal)*) => {
        $(#[$docs])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            #[allow(dead_code)]
            pub const PREFIX: &str = $prefix;

            /// The greatest id there can be, in every collation that a database may have: newest first, a list
            /// without a place to begin at begins here.
            #[allow(dead_code)]
            pub const LAST: &str = concat!($prefix, "7zzzzzzzzzzzzzzzzzzzzzzzzz");

            /// Generates a new id. Ids sort by the time of their generation.
            #[allow(clippy::new_without_default)]
            #[allow(dead_code)]
            pub fn new() -> Self {
                Self(format!("{}{}", Self::PREFIX, suffix()))
            }

            /// Parses an id; `None` unless `text` has the prefix and shape of this type.
            #[allow(dead_code)]
            pub fn parse(text: &str) -> Option<Self> {
                let prefixes = [$prefix $(, $alias)*];
                let mut rests = prefixes.iter().filter_map(|prefix| text.strip_prefix(prefix));
                rests.any(is_suffix).then(|| Self(text.to_owned()))
            }

            /// Text form, as used in the API.
            #[allow(dead_code)]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let prefixes = concat!($prefix $(, "|", $alias)*);
                schemars::json_schema!({
                    "type": "string",
                    "pattern": format!("^({prefixes})[0-7][0-9a-hjkmnp-tv-z]{{25}}$"),
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| {
                    serde::de::Error::custom(concat!("not an id with the prefix ", $prefix))
                })
            }
        }
    };
}

prefixed_id!(
    /// An organization, or with `org_test_` the test data of one ([`OrgId::test`]).
    OrgId, "org_", or "org_test_"
);
prefixed_id!(KeyId, "key_");
prefixed_id!(EnvelopeId, "env_");
prefixed_id!(CustomerId, "cust_");
prefixed_id!(
    /// A template. The specification uses both prefixes for templates.
    TemplateId, "tmpl_", or "tpl_"
);
prefixed_id!(
    /// A package of templates.
    PackageId, "pkg_"
);
prefixed_id!(
    /// A fact map.
    FactMapId, "fmp_"
);
prefixed_id!(
    /// A bulk batch.
    BatchId, "bsb_"
);
prefixed_id!(
    /// One client of a bulk batch.
    ItemId, "bsi_"
);
prefixed_id!(
    /// A person who signs, approves or witnesses an envelope. A person who takes another one's place
    /// has an id of their own.
    SignerId, "sgn_"
);
prefixed_id!(SubmissionId, "sub_");
prefixed_id!(EventId, "evt_");

impl EventId {
    /// Returns an id that sorts before those that are generated at `at` or later.
    pub fn before(at: Timestamp) -> Self {
        let millis = u128::try_from(at.as_millis()).unwrap_or_default();
        Self(format!("{}{}", Self::PREFIX, written(millis << 80)))
    }

    /// Returns the time at which the id was generated, by the clock of its node.
    pub fn generated_at(&self) -> Timestamp {
        let digits = self.0.bytes().skip(Self::PREFIX.len());
        // An id is well-formed here, so the fallback for an unknown letter is never used.
        let value = digits.fold(0u128, |value, digit| {
            let place = ALPHABET.iter().position(|letter| *letter == digit);
            value << 5 | place.unwrap_or_default() as u128
        });
        // The first 48 bits of a UUIDv7 are milliseconds since 1970 (RFC 9562, section 5.7).
        Timestamp::from_millis(i64::try_from(value >> 80).unwrap_or_default())
    }
}
prefixed_id!(
    /// A webhook endpoint.
    EndpointId, "whep_"
);
prefixed_id!(
    /// A webhook delivery.
    DeliveryId, "wdel_"
);
prefixed_id!(JobId, "job_");
prefixed_id!(
    /// A recorded intent to vault; internal, never part of a response.
    IntentId, "int_"
);
prefixed_id!(RequestId, "req_");
prefixed_id!(
    /// A payment requested at signing.
    PaymentId, "pay_"
);
prefixed_id!(
    /// A signer's attempt to answer identity questions.
    KbaId, "kba_"
);
prefixed_id!(
    /// A question of a signer to the sender.
    QuestionId, "qst_"
);
prefixed_id!(
    /// A web-app user.
    UserId, "usr_"
);
prefixed_id!(
    /// A web-app bearer token.
    TokenId, "tok_"
);
prefixed_id!(
    /// A WebAssembly component.
    ComponentId, "cmp_"
);
prefixed_id!(
    /// A component put into a slot.
    ActivationId, "act_"
);
prefixed_id!(
    /// A line in the log of a provider instance.
    LogLineId, "log_"
);
prefixed_id!(
    /// A requested change of components.
    ChangeId, "chg_"
);
prefixed_id!(
    /// A review of a requested change.
    ReviewId, "rvw_"
);
prefixed_id!(
    /// A candidate that runs beside an active component.
    ShadowId, "shd_"
);
prefixed_id!(
    /// A decision of the rules about a status transition, an act of control or the funding of a contract.
    DecisionId, "dec_"
);
prefixed_id!(
    /// Funding rules that a lender publishes.
    FundingPackId, "fpk_"
);
prefixed_id!(
    /// A conflict between two records with the same fingerprint.
    DisputeId, "dsp_"
);
prefixed_id!(
    /// A transfer of control.
    TransferId, "trf_"
);
prefixed_id!(
    /// A pledge of a record.
    PledgeId, "plg_"
);
prefixed_id!(
    /// A person's permission to look at a record.
    ViewId, "viw_"
);
prefixed_id!(
    /// An invitation of a party.
    InvitationId, "inv_"
);
prefixed_id!(
    /// An open link of a template.
    OpenLinkId, "opl_"
);
prefixed_id!(
    /// A statement of control.
    ControlStatementId, "cst_"
);
prefixed_id!(
    /// A watermarked copy of a record.
    CopyId, "cpy_"
);
prefixed_id!(
    /// A key that a party signs its acts of control with.
    PartyKeyId, "pky_"
);
prefixed_id!(
    /// A requested release of a record that another party controls.
    ReleaseId, "rel_"
);
prefixed_id!(
    /// A tape that is compared with contracts.
    TapeId, "tap_"
);
prefixed_id!(
    /// An import of documents that were signed in another system.
    ImportId, "imp_"
);
prefixed_id!(
    /// A legal hold.
    HoldId, "hld_"
);

prefixed_id!(
    /// A request to destroy records.
    DestructionId, "dst_"
);

prefixed_id!(
    /// A link with which a user signs in once.
    SignInId, "sin_"
);
prefixed_id!(
    /// A session of a user in a browser.
    SessionId, "ses_"
);
prefixed_id!(
    /// A passkey of a user.
    PasskeyId, "psk_"
);
prefixed_id!(
    /// A mail or text message of test data.
    MessageId, "msg_"
);

impl ComponentId {
    /// Derives the id of a component that is built into the binary: the same on every node.
    pub fn of_default(sha256: &[u8; 32]) -> Self {
        let mut value = [0; 16];
        value.copy_from_slice(&sha256[..16]);
        Self(format!("cmp_{}", written(u128::from_be_bytes(value))))
    }
}

impl SignerId {
    /// Derives the id of a signer that was recorded before signers had ids: the same on every node and
    /// in every release.
    pub fn of_recorded(envelope: &EnvelopeId, position: i64) -> Self {
        // A random id would differ between two nodes that read the same old row at the same time.
        let digest = Sha256::digest(format!("signer {envelope} {position}"));
        let mut value = [0; 16];
        value.copy_from_slice(&digest[..16]);
        Self(format!(
            "{}{}",
            Self::PREFIX,
            written(u128::from_be_bytes(value))
        ))
    }
}

impl DeliveryId {
    /// Returns the smallest id of `time`: ids generated earlier sort before it, later ones after.
    pub fn first_at(time: Timestamp) -> Self {
        // A UUIDv7 has its milliseconds in the upper 48 of 128 bits.
        let millis = u128::try_from(time.as_millis()).unwrap_or_default();
        Self(format!("{}{}", Self::PREFIX, written(millis << 80)))
    }
}

impl OrgId {
    const TEST: &str = "org_test_";

    /// Returns the id under which the organization's test data is kept: that of an organization of its own, so
    /// that nothing which belongs to one appears in the other.
    pub fn test(&self) -> Self {
        let suffix = self.live().0.split_off(Self::PREFIX.len());
        Self(format!("{}{suffix}", Self::TEST))
    }

    /// Returns the live organization of a test organization, or itself.
    pub fn live(&self) -> Self {
        match self.0.strip_prefix(Self::TEST) {
            Some(suffix) => Self(format!("{}{suffix}", Self::PREFIX)),
            None => self.clone(),
        }
    }

    /// Whether this is the test data of an organization.
    pub fn is_test(&self) -> bool {
        self.0.starts_with(Self::TEST)
    }

    /// Returns the organization's bucket, 0 to 63: the first byte of SHA-256 of the id,
    /// modulo 64. Every query on tenant data filters by it.
    pub fn bucket(&self) -> i64 {
        i64::from(Sha256::digest(self.0.as_bytes())[0] % BUCKETS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_data_of_an_organization_has_an_id_of_its_own() {
        let live = OrgId::new();
        let test = live.test();
        assert!(test.is_test() && !live.is_test());
        assert_eq!(OrgId::parse(test.as_str()), Some(test.clone()));
        assert_eq!((test.live(), test.test()), (live.clone(), test));
        assert_eq!((live.live(), OrgId::parse("org_test_1")), (live, None));
    }

    #[test]
    fn a_signer_of_an_earlier_release_keeps_one_id() {
        let envelope = EnvelopeId::parse("env_01h455vb4pex5vsknk084sn02q").unwrap();
        let id = SignerId::of_recorded(&envelope, 0);
        assert_eq!(SignerId::parse(id.as_str()), Some(id.clone()));
        assert_eq!(SignerId::of_recorded(&envelope, 0), id);
        assert_ne!(SignerId::of_recorded(&envelope, 1), id);
    }

    #[test]
    fn an_id_is_its_prefix_and_26_characters() {
        let id = EnvelopeId::new();
        assert!(id.as_str().starts_with("env_"));
        assert_eq!(id.as_str().len(), 4 + 26);
        assert_eq!(EnvelopeId::parse(id.as_str()), Some(id));
    }

    #[test]
    fn ids_sort_by_their_creation_time() {
        let first = EventId::new();
        let at = first.generated_at();
        assert!(
            EventId::before(at) <= first
                && first < EventId::before(at + std::time::Duration::from_millis(1))
        );
        assert_eq!(EventId::before(at).generated_at(), at);

        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(first < EventId::new());
    }

    #[test]
    fn an_id_with_a_wrong_prefix_or_format_does_not_parse() {
        let other = CustomerId::new();
        for text in [
            other.as_str(),
            "",
            "env_",
            "env_short",
            "env_zzzzzzzzzzzzzzzzzzzzzzzzzz",
            "env_0123456789ABCDEFGHJKMNPQRS",
            "env_0123456789abcdefghijklmnop",
        ] {
            assert_eq!(EnvelopeId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_template_id_accepts_both_prefixes() {
        let id = TemplateId::new();
        let other = id.as_str().replace("tmpl_", "tpl_");
        assert!(TemplateId::parse(&other).is_some());
    }

    #[test]
    fn the_first_id_of_a_time_sorts_between_earlier_and_later_ids() {
        let id = DeliveryId::new();
        let now = Timestamp::from_millis(jiff::Timestamp::now().as_millisecond());
        let second = std::time::Duration::from_secs(1);
        assert!(DeliveryId::first_at(now - second) < id);
        assert!(id < DeliveryId::first_at(now + second));
        assert!(DeliveryId::parse(DeliveryId::first_at(now).as_str()).is_some());
    }

    #[test]
    fn a_bucket_is_stable() {
        let id = OrgId::parse("org_01h455vb4pex5vsknk084sn02q").unwrap();
        assert_eq!(id.bucket(), id.bucket());
        assert!((0..64).contains(&id.bucket()));
    }
}
