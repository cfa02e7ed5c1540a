//! Change requests: changes of components and of their policy that other people than the requester approve.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::clock::Timestamp;
use super::component::{ComponentIdentity, Slot};
use super::component_state::StateSigners;
use super::envelope::words;
use super::funding::FundingMode;
use super::id::{
    ActivationId, ChangeId, ComponentId, EnvelopeId, FundingPackId, OrgId, TemplateId, TokenId,
    UserId,
};
use super::organization::{Permission, Role, SingleSignOn};
use super::user::IssuerIdentity;

/// What a change of an organization's components needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "reviews_required": 2, "reviewers": ["compliance"], "shadow_required": true,
    "shadow_valid_hours": 24, "expires_after_hours": 336,
}]))]
pub struct ChangePolicy {
    /// Number of approvals. With 0, a user with the role changes components alone.
    #[schemars(range(max = 10))]
    pub reviews_required: u32,
    /// Roles of the users who may review.
    #[schemars(length(min = 1, max = 2))]
    pub reviewers: Vec<Role>,
    /// A change of rules is compared with the active ones on past records first.
    pub shadow_required: bool,
    /// Hours for which that comparison counts.
    #[schemars(range(min = 1, max = 8760))]
    pub shadow_valid_hours: u32,
    /// Hours until a request ends that was not applied.
    #[schemars(range(min = 1, max = 8760))]
    pub expires_after_hours: u32,
    /// People who sign the desired state of the organization's components. Without keys, those of the
    /// installation do.
    pub state: StateSigners,
}

impl Default for ChangePolicy {
    fn default() -> Self {
        Self {
            reviews_required: 0,
            reviewers: vec![Role::Admin, Role::Compliance],
            shadow_required: false,
            shadow_valid_hours: 24,
            expires_after_hours: 336,
            state: StateSigners::default(),
        }
    }
}

impl ChangePolicy {
    /// Whether users with this role review changes.
    pub fn lets_review(&self, role: Role) -> bool {
        self.reviewers.iter().any(|named| role.counts_as(*named))
    }

    /// Returns the first invalid member, and why it is invalid.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        if let Some(why) = self.state.problem() {
            return Some(("state", why));
        }
        if !self.state.keys.is_empty() && self.reviews_required == 0 {
            let why = "Keys that sign states need reviews_required of 1 or more: otherwise one person changes both";
            return Some(("state", why.into()));
        }

        self.own_problem()
            .map(|(member, why)| (member, why.to_owned()))
    }

    fn own_problem(&self) -> Option<(&'static str, &'static str)> {
        let hours = |hours: u32| (1..=8760).contains(&hours);
        // A person who may not change rules must not approve a change of them either.
        let may_review = |role: &Role| matches!(role, Role::Admin | Role::Compliance);
        if self.reviews_required > 10 {
            return Some(("reviews_required", "At most 10 reviews can be required"));
        }
        if self.reviewers.is_empty() || !self.reviewers.iter().all(may_review) {
            let why = "Reviewers have the role admin or compliance; name at least one of them";
            return Some(("reviewers", why));
        }

        if !hours(self.shadow_valid_hours) {
            return Some(("shadow_valid_hours", "From 1 to 8760 hours"));
        }
        if !hours(self.expires_after_hours) {
            return Some(("expires_after_hours", "From 1 to 8760 hours"));
        }

        None
    }
}

words! {
    /// State of a change request. `outdated`: another change came first. `expired` is never stored, it
    /// follows from `expires_at`.
    ChangeState {
        Open = "open",
        Applied = "applied",
        Refused = "refused",
        Withdrawn = "withdrawn",
        Outdated = "outdated",
        Expired = "expired",
    }
}

words! {
    /// A reviewer's answer.
    Verdict {
        Approve = "approve",
        Refuse = "refuse",
        Comment = "comment",
    }
}

words! {
    /// Why an approval does not count any more: the token with which it was given was revoked, or the
    /// comparison was made again afterwards.
    VoidReason {
        Revoked = "revoked",
        ComparedAgain = "compared_again",
    }
}

/// What a change request would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum RequestedChange {
    /// Activates a component.
    Activate {
        slot: Slot,
        /// Provider instance; null for rules.
        instance: Option<String>,
        component_id: ComponentId,
        /// The component when the change was requested.
        component: ComponentIdentity,
        /// Null: when the change is applied.
        effective_at: Option<Timestamp>,
    },
    /// Rolls back an activation.
    RollBack {
        slot: Slot,
        instance: Option<String>,
        activation_id: ActivationId,
    },
    /// Changes the policy.
    Policy {
        policy: ChangePolicy,
        /// The policy when the change was requested.
        previous: ChangePolicy,
    },
    /// Changes the sign-in at the organization's own issuer; null ends it.
    SingleSignOn {
        /// Null: no issuer from now on.
        single_sign_on: Option<Box<SingleSignOn>>,
        /// What becomes of the secret of the client.
        client_secret: SecretChange,
        /// The sign-in when the change was requested; null without one.
        previous: Option<Box<SingleSignOn>>,
    },
    /// Leads new signing links to a host of the organization's own.
    LinkHost {
        /// Name of the host, in lower case.
        link_host: String,
        /// The host when the change was requested; null without one.
        previous: Option<String>,
    },
    /// Invites a person with a role that reviews changes, or gives an ended user access again.
    InviteUser {
        #[schemars(email)]
        email: String,
        role: Role,
    },
    /// Gives a user a role that reviews changes.
    ChangeRole {
        user_id: UserId,
        email: String,
        role: Role,
        previous: Role,
    },
    /// Separates a user from the account at the issuer, or moves it to another user and ends the first.
    MoveIdentity {
        user_id: UserId,
        email: String,
        identity: IssuerIdentity,
        /// User who gets the account; null separates it only.
        into_user_id: Option<UserId>,
        /// Address of that user.
        into_email: Option<String>,
    },
    /// Waives a stipulation of an envelope for the reason of the request, or drops one of a template.
    WaiveStipulation {
        /// Null: the stipulation is one of a template.
        envelope_id: Option<EnvelopeId>,
        /// Null: the stipulation is one of an envelope.
        template_id: Option<TemplateId>,
        /// Such as `proof_of_income`.
        kind: String,
    },
    /// Publishes a funding pack, or a further version of one.
    PublishFundingPack {
        /// Null: a new pack.
        pack_id: Option<FundingPackId>,
        /// Name of the pack.
        name: String,
        /// Component of the organization for `rules.funding`.
        component_id: ComponentId,
        /// The component when the change was requested.
        component: ComponentIdentity,
        /// Description of the change.
        description: String,
        /// Null: when the change is applied.
        effective_at: Option<Timestamp>,
        /// Envelopes of the organization that show how the rules judge.
        samples: Vec<EnvelopeId>,
        /// Newest version when the change was requested; 0 for a new pack.
        previous: u32,
    },
    /// Subscribes to a funding pack in place of another one, or ends the subscription to it.
    SubscribeFundingPack {
        /// The pack.
        pack_id: FundingPackId,
        /// Name of the pack.
        name: String,
        /// False ends the subscription.
        subscribed: bool,
        /// Version to stay at; null follows the pack.
        version: Option<u32>,
        /// Subscription when the change was requested; null without one.
        previous: Option<SubscribedPack>,
    },
    /// Changes what becomes of contracts that their funding rules stop.
    SetFunding {
        funding: FundingMode,
        /// The setting when the change was requested.
        previous: FundingMode,
    },
}

/// A subscription to a funding pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscribedPack {
    /// The pack.
    pub pack_id: FundingPackId,
    /// Version that it stays at; null for one that follows the pack.
    pub version: Option<u32>,
}

words! {
    /// What becomes of a stored secret.
    SecretChange {
        Keep = "keep",
        Set = "set",
        Remove = "remove",
    }
}

/// Returns the permission that a change of a slot takes. Changes of no slot are about the policy and about people; they take the
/// one that only owners and admins have.
pub fn permission_of(slot: Option<Slot>) -> Permission {
    if slot.is_some_and(|slot| !slot.is_provider()) {
        Permission::ChangeRules
    } else {
        Permission::ChangeProviders
    }
}

/// Implements who may ask for a change, for changes as they are proposed and as they are stored: both have the same
/// variants.
#[macro_export]
macro_rules! change_permission {
    ($change:ty) => {
        impl $change {
            /// Returns the permission of those who make it, which is that of the act without a request.
            pub fn permission(&self) -> $crate::organization::Permission {
                match self {
                    Self::WaiveStipulation { .. } => $crate::organization::Permission::Send,
                    Self::PublishFundingPack { .. } | Self::SubscribeFundingPack { .. } => {
                        $crate::organization::Permission::ChangeRules
                    }
                    _ => $crate::component_change::permission_of(self.slot()),
                }
            }

            /// Returns the slot; `None` for a change of anything else than active components.
            pub fn slot(&self) -> Option<$crate::component::Slot> {
                match self {
                    Self::Activate { slot, .. } | Self::RollBack { slot, .. } => Some(*slot),
                    _ => None,
                }
            }

            /// Whether it activates rules, which past records can be compared with.
            pub fn activates_rules(&self) -> bool {
                matches!(self, Self::Activate { slot, .. } if !slot.is_provider())
            }
        }
    };
}
pub use change_permission;

change_permission!(RequestedChange);

impl RequestedChange {
    /// Returns the number of approvals that it needs under a policy. Two people move an account even where
    /// components are changed alone: who moved it could sign in as another person.
    pub fn reviews_required(&self, policy: &ChangePolicy) -> u32 {
        match self {
            Self::MoveIdentity { .. } => policy.reviews_required.max(1),
            _ => policy.reviews_required,
        }
    }
}

/// Direction in which an answer of rules changed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceDirection {
    /// Refuses more, or gives a lower score.
    Stricter,
    Looser,
    /// The result is the same, in other words.
    Text,
    /// Neither, for example another position of a field.
    Other,
}

/// One difference between two answers about a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionDifference {
    /// Id of the envelope or template.
    pub record_id: String,
    /// The check, the transition, or the part of a document. Checks with another name are the same if they test
    /// the same provision.
    pub check: String,
    pub direction: DifferenceDirection,
    pub before: Value,
    pub after: Value,
    /// The sentences of the two components about the check.
    pub before_sentence: Option<String>,
    pub after_sentence: Option<String>,
}

/// Differences about the same check in the same direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceGroup {
    pub check: String,
    pub direction: DifferenceDirection,
    /// Number of records.
    pub count: u64,
    /// The first of them.
    pub example: DecisionDifference,
}

/// Differences between two components on generated facts, about the same check in the same direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BehaviourGroup {
    pub check: String,
    pub direction: DifferenceDirection,
    /// Number of questions.
    pub count: u64,
    pub counterexample: Counterexample,
}

/// Smallest found facts on which two components differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counterexample {
    /// Known facts that it begins with.
    pub base: String,
    /// Changes of these facts. If one of them is taken back, the difference disappears.
    pub changes: Vec<FactChange>,
    /// All parameters. Left out in a change request.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub given: Map<String, Value>,
    pub before: Value,
    pub after: Value,
    pub before_sentence: Option<String>,
    pub after_sentence: Option<String>,
    /// Pages with the areas of both placements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<DrawnPage>,
}

/// Page with the areas that two placement components chose. Lengths are in hundredths of a point, from the
/// top left corner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrawnPage {
    /// Number of the page, starting at 1.
    pub number: u32,
    pub width: u32,
    pub height: u32,
    /// Text of the page, at most 200 lines.
    pub text: Vec<DrawnText>,
    pub before: Vec<DrawnArea>,
    pub after: Vec<DrawnArea>,
}

/// Text of a page with its area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrawnText {
    pub text: String,
    pub area: DrawnArea,
}

/// Rectangle of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrawnArea {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}

/// Change of one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactChange {
    /// Path in the parameters.
    pub field: String,
    pub from: Value,
    pub to: Value,
}

/// Comparison of a candidate with the active rules on generated facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratedComparison {
    /// Number of questions.
    pub asked: u64,
    /// Number of questions with another answer.
    pub differing: u64,
    /// Number of questions on which one of the two failed.
    pub failed: u64,
    /// Differences of decisions by check and direction, the most frequent first.
    pub groups: Vec<BehaviourGroup>,
}

/// Comparison of a candidate with the active rules on past records and on generated facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeComparison {
    pub at: Timestamp,
    /// The active rules that the candidate was compared with. If others are active when the change is applied,
    /// the comparison does not count.
    pub active: ComponentIdentity,
    /// Number of records.
    pub compared: u64,
    /// Number of records with a difference.
    pub differing: u64,
    /// Number of records on which one of the two failed.
    pub failed: u64,
    /// Differences by check and direction, also those of the text only.
    pub groups: Vec<DifferenceGroup>,
    /// Comparison on generated facts. Null for slots without any, and for requests made before it existed.
    #[serde(default)]
    pub generated: Option<GeneratedComparison>,
}

/// Result of the first call of a provider with settings that are to be activated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderProbe {
    /// The service answered, and does not know the object that it was asked for.
    pub ok: bool,
    /// The plugin's own reason otherwise.
    pub reason: Option<String>,
}

/// Origin of changed rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSource {
    /// Address of the repository.
    #[schemars(length(min = 1, max = 500))]
    pub url: String,
    /// Commit that the component was built from.
    #[schemars(length(min = 1, max = 100))]
    pub commit: String,
}

/// Content of a change request, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeContent {
    pub change: RequestedChange,
    pub reason: String,
    pub source: Option<ChangeSource>,
    pub is_emergency: bool,
    /// Activation that was effective when the change was requested; none for a default component.
    pub base: Option<ActivationId>,
    /// SHA-256 of the ids of all activations in the place, those that are scheduled included.
    pub base_digest: String,
    pub comparison: Option<ChangeComparison>,
    pub probe: Option<ProviderProbe>,
    /// Approvals that the policy required when the change was applied.
    pub approvals_required: Option<u32>,
    /// Account with which it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<IssuerIdentity>,
}

/// A change request.
#[derive(Clone, Debug)]
pub struct ComponentChange {
    pub id: ChangeId,
    pub org: OrgId,
    pub content: ChangeContent,
    /// Sealed settings of a provider instance, until the request is closed.
    pub config: Option<String>,
    pub state: ChangeState,
    /// Actor, such as `user:ada@acme.example`.
    pub requested_by: String,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
    pub closed_by: Option<String>,
    pub closed_at: Option<Timestamp>,
    /// Activation that it made or rolled back.
    pub activation: Option<ActivationId>,
}

/// One person's review of a change request; the last one counts.
#[derive(Clone, Debug)]
pub struct ChangeReview {
    /// Actor, such as `user:grace@acme.example`.
    pub by: String,
    pub role: Role,
    /// Token of the session. Revoking it ends the approval.
    pub token: Option<TokenId>,
    /// Account with which it was given.
    pub identity: Option<IssuerIdentity>,
    pub verdict: Verdict,
    pub comment: Option<String>,
    pub at: Timestamp,
    /// Why an approval does not count any more.
    pub void: Option<VoidReason>,
}
