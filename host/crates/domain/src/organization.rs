//! Organizations, their settings, API keys and scopes.

mod newer;

pub use newer::SetAside;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use iso_currency::Currency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::{Host, Position, Url};

use super::brand::OrganizationBrand;
use super::clock::Timestamp;
use super::component_change::ChangePolicy;
use super::contract_dates::DateOfFact;
use super::dates::DateSettings;
use super::disclosure::{ConsumerDisclosure, SignatureWording, problem_of_wording};
use super::envelope::words;
use super::funding::FundingMode;
use super::id::{KeyId, OrgId};
use super::jurisdiction::Jurisdiction;
use super::locale::{ConsentText, Locale};
use super::reminders::{QuietHours, ReminderPlan};

/// A tenant.
#[derive(Clone, Debug)]
pub struct Organization {
    pub id: OrgId,
    pub name: String,
    pub settings: OrgSettings,
    pub created_at: Timestamp,
}

impl Organization {
    /// Returns the name that signers see: the brand's, or else the organization's.
    pub fn display_name(&self) -> &str {
        let brand = self.settings.brand.name.as_deref();
        let brand = brand.filter(|name| !name.trim().is_empty());
        brand.unwrap_or(&self.name)
    }

    /// Returns the organization that holds this one's test data. It has the same settings, but a name that marks it
    /// as a test on every page, mail and certificate, and no users or rules of its own.
    #[must_use]
    pub fn test(&self) -> Self {
        if self.id.is_test() {
            return self.clone();
        }

        let marked = |name: &str| format!("{name} (TEST)");
        let mut settings = self.settings.clone();
        settings.brand.name = Some(marked(self.display_name()));
        // Test data has no users, so nothing of live sign-ins, components or reviews may act on it.
        settings.single_sign_on = None;
        settings.components = BTreeMap::new();
        settings.component_changes = ChangePolicy::default();
        let is_live = |one: &SetAside| one.is_in("component_changes");
        settings.set_aside.retain(|one| !is_live(one));

        Self {
            id: self.id.test(),
            name: marked(&self.name),
            settings,
            created_at: self.created_at,
        }
    }
}

/// Settings of an organization, which the operator controls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrgSettings {
    /// Vault every signed envelope automatically.
    pub auto_vault: bool,
    /// Payment requested for every envelope.
    pub payment: Option<PaymentSettings>,
    /// Days until an unfinished envelope expires.
    pub envelope_ttl_days: u32,
    /// Component versions pinned for this organization: slot to component id.
    pub components: BTreeMap<String, String>,
    /// Branding that signers see.
    pub brand: OrganizationBrand,
    /// Origins (`https://app.example.com`) that may embed the widgets in their pages.
    pub embed_origins: Vec<PageOrigin>,
    /// Dates in signed documents.
    pub dates: DateSettings,
    /// Origins of the pages to which signers may return after signing.
    pub return_origins: Vec<PageOrigin>,
    /// Language of pages and mails for people who have not chosen one.
    pub language: Locale,
    /// Consent to signing electronically in the organization's own words, by language. It replaces the text
    /// that is made of `consumer_disclosure` and `signature_wording`.
    pub consent: BTreeMap<Locale, ConsentText>,
    /// Statements of the organization about electronic records.
    pub consumer_disclosure: ConsumerDisclosure,
    /// What a signer declares with the signature, by jurisdiction and language.
    pub signature_wording: SignatureWording,
    /// Signers have to open the document as PDF before they can finish.
    pub require_access_demonstration: bool,
    /// Signers have to have every page shown before they can finish.
    pub require_all_pages_shown: bool,
    /// Jurisdiction of chattel paper, for envelopes that state none.
    pub chattel_paper_jurisdiction: Option<Jurisdiction>,
    /// What a change of the organization's components needs.
    pub component_changes: ChangePolicy,
    /// Sign-in of the users at the organization's own issuer.
    pub single_sign_on: Option<SingleSignOn>,
    /// Refuse signers and witnesses with roles that ask for no signature.
    pub refuse_unsigned_roles: bool,
    /// What becomes of scripts and actions of an upload.
    pub active_content: ActiveContent,
    /// Reminders of new envelopes that name no plan of their own.
    pub reminders: Option<ReminderPlan>,
    /// Hours without reminders by a plan.
    pub quiet_hours: Option<QuietHours>,
    /// Address for replies to mails about envelopes, instead of their creators'.
    pub reply_to: Option<String>,
    /// Host of the organization's own for its signing links.
    pub link_host: Option<LinkHost>,
    /// What becomes of contracts that their funding rules stop.
    pub funding: FundingMode,
    /// Days after which loan tapes are deleted; none keeps them.
    pub tape_retention_days: Option<u32>,
    /// Facts that become dates of the organization's contracts.
    pub contract_dates: Vec<DateOfFact>,
    /// Settings of a newer version. During an upgrade, nodes of both versions read and write the same row.
    #[serde(flatten)]
    pub newer: Map<String, Value>,
    /// What a newer version has written inside the settings above, see [`OrgSettings::from_row`].
    #[serde(skip)]
    pub set_aside: Vec<SetAside>,
}

/// Host of an organization's own for its signing links. It has answered with the organization's id before it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkHost {
    /// Lower case and ASCII. Hosts of this machine may have a port.
    pub host: String,
    /// When the host named the organization last.
    pub verified_at: Timestamp,
    /// Why new links do not lead to the host.
    #[serde(default)]
    pub problem: Option<LinkHostProblem>,
}

words! {
    /// Why new signing links do not lead to the organization's own host: it could not be reached for three days, or
    /// it answered without the organization's id.
    LinkHostProblem {
        Unreachable = "unreachable",
        NotNamed = "not_named",
    }
}

impl LinkHost {
    /// Time after the last success for which a host that cannot be reached is used.
    const GRACE: Duration = Duration::from_secs(3 * 86_400);
    /// Longest name of a host, in characters (RFC 1035, section 2.3.4).
    const NAME: usize = 253;

    /// Reads a host that was verified at `now`. None unless it is the name of a host without a port, or a host of this
    /// machine.
    pub fn verified(text: &str, now: Timestamp) -> Option<Self> {
        let url = address(text)?;
        let host = &url[Position::BeforeHost..Position::AfterPort];
        (host.len() <= Self::NAME).then(|| Self {
            host: host.to_owned(),
            verified_at: now,
            problem: None,
        })
    }

    /// Returns the origin of the host: `https`, and `http` for this machine.
    pub fn origin(&self) -> String {
        match address(&self.host) {
            Some(url) => url.origin().ascii_serialization(),
            None => format!("https://{}", self.host),
        }
    }

    /// Whether new links lead to the host.
    pub fn is_in_use(&self) -> bool {
        self.problem.is_none()
    }

    /// Returns the host after a check that found a problem or none.
    #[must_use]
    pub fn after(&self, found: Option<LinkHostProblem>, now: Timestamp) -> Self {
        match found {
            None => Self {
                verified_at: now,
                problem: None,
                ..self.clone()
            },
            // A failure of the network is no sign of another owner, so it ends the use only when it lasts.
            Some(LinkHostProblem::Unreachable) if now <= self.verified_at + Self::GRACE => {
                self.clone()
            }
            Some(problem) => Self {
                problem: Some(problem),
                ..self.clone()
            },
        }
    }
}

/// Returns the address of a host: `https`, and `http` for this machine.
fn address(host: &str) -> Option<Url> {
    // Anything else that an address can have would become part of every link.
    let is_other = |one: char| "/\\?#@%".contains(one) || one.is_whitespace() || one.is_control();
    if host.contains(is_other) {
        return None;
    }

    let url = Url::parse(&format!("https://{host}/")).ok()?;
    if matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
        return Url::parse(&format!("http://{host}/")).ok();
    }

    let is_name = matches!(url.host(), Some(Host::Domain(_))) && url.port().is_none();
    is_name.then_some(url)
}

/// Sign-in at an OpenID Connect issuer. The client's secret is stored apart, sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleSignOn {
    /// Exactly as in the `iss` claim.
    #[schemars(with = "String", url)]
    pub issuer: Url,
    pub client_id: String,
    /// Scopes to ask for, besides `openid`.
    #[serde(default = "sign_on_scopes")]
    #[schemars(length(max = 20))]
    pub scopes: Vec<String>,
    /// Claim with the groups of a user.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// Roles of groups. The first one that a user is in counts.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub roles: Vec<GroupRole>,
    /// Role of users in none of the groups. Without it, they have no access.
    #[serde(default)]
    pub default_role: Option<Role>,
    /// `acr` values of a sign-in that counts as a confirmation of a sensitive act. Any, if there are none.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub acr_values: Vec<String>,
    /// Whether users sign in there only. Mailed links and passkeys then do not sign in.
    #[serde(default)]
    pub required: bool,
    /// Since when users sign in at this issuer. None if it was set before release 0.2.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Actor who set it alone; none if another person approved it, or the operator set it.
    #[serde(default)]
    pub set_by: Option<String>,
}

/// Role of the users in a group of the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupRole {
    pub group: String,
    pub role: Role,
}

fn sign_on_scopes() -> Vec<String> {
    vec!["email".into()]
}

fn groups_claim() -> String {
    "groups".into()
}

impl SingleSignOn {
    /// Returns the role of a user with these groups.
    pub fn role_of(&self, groups: &[String]) -> Option<Role> {
        let found = self.roles.iter().find(|one| groups.contains(&one.group));
        found.map(|one| one.role).or(self.default_role)
    }

    /// Whether someone can get this role by a group or by default.
    pub fn gives(&self, role: Role) -> bool {
        self.default_role == Some(role) || self.roles.iter().any(|one| one.role == role)
    }

    /// Whether a sign-in with this `acr` counts as a confirmation.
    pub fn confirms(&self, acr: Option<&str>) -> bool {
        self.acr_values.is_empty()
            || acr.is_some_and(|acr| self.acr_values.iter().any(|one| one == acr))
    }
}

impl OrgSettings {
    /// Sets the sign-in at an issuer. `by` is the person who did it alone. Accounts at another issuer, or for another
    /// client, count from now on only.
    pub fn name_issuer(&mut self, new: SingleSignOn, by: Option<String>, now: Timestamp) {
        let same = |one: &&SingleSignOn| one.issuer == new.issuer && one.client_id == new.client_id;
        // A new time ends the accounts of the former issuer. Saving the same issuer again must not do that.
        let present = self.single_sign_on.as_ref().filter(same);
        let since = match present {
            Some(present) => present.since,
            None => Some(now),
        };

        self.single_sign_on = Some(SingleSignOn {
            since,
            set_by: by,
            ..new
        });
    }

    /// Whether users sign in at the organization's issuer only.
    pub fn requires_sign_on(&self) -> bool {
        let issuer = self.single_sign_on.as_ref();
        issuer.is_some_and(|issuer| issuer.required)
    }

    /// Returns whether signers may be sent to `url` after signing.
    pub fn permits_return_to(&self, url: &str) -> bool {
        let origin = Url::parse(url).map(|url| url.origin().ascii_serialization());
        let permitted =
            |origin: &String| self.return_origins.iter().any(|one| one.as_str() == origin);
        origin.as_ref().is_ok_and(permitted)
    }

    /// Returns why consent texts cannot replace these: a version names one text for ever.
    pub fn problem_of_new_texts(&self, new: &BTreeMap<Locale, ConsentText>) -> Option<String> {
        // Evidence names a consent text by its version. Another text under it
        // would rewrite what signers agreed to.
        let changed = new.iter().find(|(locale, text)| {
            let present = self.consent.get(locale);
            present.is_some_and(|present| present != *text && present.version == text.version)
        });
        changed.map(|(locale, text)| {
            let (language, version) = (locale.as_str(), &text.version);
            format!("consent.{language}: version {version} has another text; give the new text a new version")
        })
    }

    /// Returns the first setting that cannot be used, and why.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        if self.envelope_ttl_days == 0 {
            let why = "envelope_ttl_days must be at least 1";
            return Some(("envelope_ttl_days", why.into()));
        }
        if self.tape_retention_days == Some(0) {
            let why = "tape_retention_days must be at least 1, or null to keep tapes";
            return Some(("tape_retention_days", why.into()));
        }

        // 15 U.S.C. §7001(c) wants a statement and a disclosure; an empty one would prove no consent.
        for text in self.consent.values() {
            let parts = [&text.version, &text.statement, &text.disclosure];
            if parts.iter().any(|part| part.trim().is_empty()) {
                let why = "a consent text needs version, statement and disclosure";
                return Some(("consent", why.into()));
            }
        }

        if let Some(why) = self.consumer_disclosure.problem() {
            let why = format!("consumer_disclosure: {why}");
            return Some(("consumer_disclosure", why));
        }
        if let Some(why) = problem_of_wording(&self.signature_wording) {
            return Some(("signature_wording", format!("signature_wording: {why}")));
        }

        if let Some((member, range)) = self.reminders.and_then(|plan| plan.problem()) {
            return Some(("reminders", format!("reminders.{member} must be {range}")));
        }

        let mut names = HashSet::new();
        for date in &self.contract_dates {
            let name = date.name.trim();
            if name.is_empty() || date.fact.trim().is_empty() || !names.insert(name) {
                let why = "contract_dates: each has a fact and a name, and each name is there once";
                return Some(("contract_dates", why.into()));
            }
        }

        // No full check of addresses, which the API makes: it catches a name or a second line in place of one.
        let is_visible = |one: char| !one.is_whitespace() && !one.is_control();
        let is_address = |text: &str| text.contains('@') && text.chars().all(is_visible);
        let reply_to = self.reply_to.as_deref();
        if reply_to.is_some_and(|text| !is_address(text)) {
            return Some(("reply_to", "reply_to is no e-mail address".into()));
        }

        let (member, why) = self.component_changes.problem()?;
        Some((
            "component_changes",
            format!("component_changes.{member}: {why}"),
        ))
    }

    /// Returns how the files of a record are worded.
    pub fn wording(&self) -> RecordWording {
        RecordWording {
            language: self.language,
            dates: self.dates.clone(),
        }
    }
}

/// Language of the files of a record, and the dates in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordWording {
    pub language: Locale,
    pub dates: DateSettings,
}

impl Default for OrgSettings {
    fn default() -> Self {
        Self {
            // Vaulting at once is the safe default: a partner that forgets it
            // leaves no signed contract unprotected.
            auto_vault: true,
            payment: None,
            envelope_ttl_days: 30,
            components: BTreeMap::new(),
            brand: OrganizationBrand::default(),
            embed_origins: Vec::new(),
            dates: DateSettings::default(),
            return_origins: Vec::new(),
            language: Locale::default(),
            consent: BTreeMap::new(),
            consumer_disclosure: ConsumerDisclosure::default(),
            signature_wording: SignatureWording::new(),
            require_access_demonstration: false,
            require_all_pages_shown: false,
            chattel_paper_jurisdiction: None,
            component_changes: ChangePolicy::default(),
            single_sign_on: None,
            refuse_unsigned_roles: false,
            active_content: ActiveContent::Warn,
            reminders: None,
            quiet_hours: None,
            reply_to: None,
            link_host: None,
            funding: FundingMode::Off,
            tape_retention_days: None,
            contract_dates: Vec::new(),
            newer: Map::new(),
            set_aside: Vec::new(),
        }
    }
}

words! {
    /// What becomes of an upload with scripts, or with actions that start programs, send or fetch data, or happen
    /// when it is opened: the response warns about them, they are removed, or the upload is refused.
    ActiveContent {
        Warn = "warn",
        Remove = "remove",
        Refuse = "refuse",
    }
}

/// Origin of a page of the organization's own: scheme, host and port in a browser's serialization.
/// Plain http is allowed for loopback hosts only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("examples" = ["https://app.example.com"]))]
pub struct PageOrigin(String);

impl PageOrigin {
    /// Text form, such as `https://app.example.com`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PageOrigin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            || format!("{text} is no origin; write it as https://host or https://host:port");
        let url = Url::parse(&text).map_err(|_| wrong())?;
        // A page without TLS can be changed on its way, and with it a signature.
        // A page of the same machine has no such way.
        let secure = match url.scheme() {
            "https" => true,
            "http" => matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")),
            _ => false,
        };

        // The text becomes part of a Content-Security-Policy.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:/[]".contains(&byte);
        // The comparison refuses paths, default ports and upper case, which a
        // browser would not send as an origin.
        if !secure || !text.bytes().all(plain) || url.origin().ascii_serialization() != text {
            return Err(wrong());
        }

        Ok(Self(text))
    }
}

/// A one-time payment at signing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaymentSettings {
    /// Amount in minor units of the currency.
    pub amount_cents: u64,
    /// ISO 4217 code in upper case.
    pub currency: String,
    #[serde(default)]
    pub connected_account: Option<String>,
    #[serde(default)]
    pub platform_fee_cents: Option<u64>,
    /// Role name of the payer, or `first`.
    #[serde(default = "first")]
    pub payer: String,
}

/// Maximum amount of a payment in minor units, a limit of card networks.
pub const LARGEST_AMOUNT: u64 = 99_999_999;

impl PaymentSettings {
    /// Validates the settings and returns them with the currency code in upper case.
    ///
    /// # Errors
    /// A message about the first invalid member.
    pub fn checked(self) -> Result<Self, String> {
        let amount = self.amount_cents;
        if !(1..=LARGEST_AMOUNT).contains(&amount) {
            return Err(format!("amount_cents must be from 1 to {LARGEST_AMOUNT}"));
        }
        if self.platform_fee_cents > Some(amount) {
            return Err("platform_fee_cents must not be more than amount_cents".into());
        }

        let code = &self.currency;
        let currency = known_currency(code)
            .ok_or_else(|| format!("{code} is no currency of ISO 4217 that is paid with"))?;
        Ok(Self { currency, ..self })
    }
}

/// Returns a currency code in upper case. `None` unless ISO 4217 lists it as a currency in
/// circulation: funds, metals, test codes and replaced currencies are excluded.
pub fn known_currency(code: &str) -> Option<String> {
    let known = Currency::from_code(&code.to_ascii_uppercase())?;
    let odd = known.is_fund() || known.is_special() || known.is_superseded().is_some();
    let paid_with = known.exponent().is_some() && !odd;
    paid_with.then(|| known.code().to_owned())
}

/// Returns how many digits of an amount in minor units are behind the decimal separator.
pub fn minor_digits(currency: &str) -> u8 {
    // ISO 4217 defines 0, 2 or 3; records of unknown currencies get two.
    let digits = Currency::from_code(currency).and_then(Currency::exponent);
    digits.map_or(2, |digits| u8::try_from(digits).unwrap_or(2))
}

/// Value of [`PaymentSettings::payer`] for the first signer in the signing order.
pub const FIRST_PAYER: &str = "first";

fn first() -> String {
    FIRST_PAYER.into()
}

words! {
    /// Scope of an API key. Every partner endpoint requires one.
    Scope {
        EnvelopesRead = "envelopes:read",
        EnvelopesWrite = "envelopes:write",
        VaultRead = "vault:read",
        VaultWrite = "vault:write",
        VaultRelease = "vault:release",
        ComplianceRead = "compliance:read",
        CustomersRead = "customers:read",
        EsignWrite = "esign:write",
        // Additions: control of records.
        ControlRead = "control:read",
        ControlWrite = "control:write",
        ControlConsent = "control:consent",
        // Reads events, and sends them again.
        WebhooksListen = "webhooks:listen",
        // Legal holds and retention schedules.
        HoldsRead = "holds:read",
        HoldsWrite = "holds:write",
        // Exports and erases the data held about a customer.
        CustomersPrivacy = "customers:privacy",
    }
}

impl Scope {
    /// Returns what keys with the scope may do, in a few words.
    pub fn allows(self) -> &'static str {
        match self {
            Self::EnvelopesRead => "read envelopes, documents, signers and signing links",
            Self::EnvelopesWrite => {
                "create, send, change and void envelopes; templates, open links"
            }
            Self::VaultRead => {
                "download vaulted copies, custody records and completion certificates"
            }
            Self::VaultWrite => "vault a contract",
            Self::VaultRelease => "release the authoritative copy, and export evidence bundles",
            Self::ComplianceRead => "read checks, vault certificates and custody ledgers",
            Self::CustomersRead => "list customers",
            Self::EsignWrite => "embed the signing form in pages",
            Self::ControlRead => "read records under control, transfers, pools and loan tapes",
            Self::ControlWrite => "designate, sell, pledge and accept records; compare loan tapes",
            Self::ControlConsent => "consent to releases, end pledges, and register keys that sign",
            Self::WebhooksListen => "read the feed of events, and send events again",
            Self::HoldsRead => {
                "read legal holds, retention schedules, due records and destructions"
            }
            Self::HoldsWrite => {
                "place legal holds, set retention schedules, and ask for the destruction of records"
            }
            Self::CustomersPrivacy => {
                "export everything that is held about a customer, and ask for its erasure"
            }
        }
    }
}

words! {
    /// Role of a web-app user.
    Role {
        Owner = "owner",
        Admin = "admin",
        Sender = "sender",
        Compliance = "compliance",
        Auditor = "auditor",
        Controller = "controller",
        Developer = "developer",
        Member = "member",
    }
}

words! {
    /// What web-app users may do, by their role.
    Permission {
        // Reads envelopes, their signers, checks and ledgers.
        ReadEnvelopes = "read_envelopes",
        // Makes and sends envelopes; templates, packages, customers and batches.
        Send = "send",
        // Reads evidence, rules and decisions, and repeats decisions.
        ReadEvidence = "read_evidence",
        // Requests changes that others approve; each also takes the permission of its act.
        RequestChanges = "request_changes",
        // Changes rules, and requests and reviews such changes.
        ChangeRules = "change_rules",
        // Changes provider instances and the policy of changes.
        ChangeProviders = "change_providers",
        // Reads records that the organization controls or has another part in.
        ReadControl = "read_control",
        // Acts on such records, and registers keys that sign these acts.
        Control = "control",
        // Webhooks; sees and ends API keys.
        Integrate = "integrate",
        // Users, API keys, settings and brand.
        Administer = "administer",
        // Reads who did what, findings of the integrity sweep, and usage.
        Audit = "audit",
        // Places and lifts legal holds, sets retention schedules, destroys records, exports and erases a person's data.
        Hold = "hold",
    }
}

impl Role {
    /// Returns what users with the role may do, in a few words.
    pub fn allows(self) -> &'static str {
        match self {
            Self::Owner => "everything",
            Self::Admin => "everything, apart from changes of owners",
            Self::Sender => "read, make, send and void envelopes; templates, customers and batches",
            Self::Compliance => {
                "read envelopes, evidence, records under control and the audit log; change rules; legal holds and \
                 retention"
            }
            Self::Auditor => "read envelopes, evidence, records under control and the audit log",
            Self::Controller => "read envelopes, and act on records that the organization controls",
            Self::Developer => "manage webhooks; see and end API keys",
            Self::Member => "sign in, and nothing else",
        }
    }

    /// Whether users with this role have a permission.
    pub fn may(self, permission: Permission) -> bool {
        let further: &[Self] = match permission {
            Permission::ReadEnvelopes => &[
                Self::Sender,
                Self::Compliance,
                Self::Auditor,
                Self::Controller,
            ],
            Permission::Send => &[Self::Sender],
            Permission::RequestChanges => &[Self::Sender, Self::Compliance],
            Permission::ReadEvidence | Permission::Audit => &[Self::Compliance, Self::Auditor],
            Permission::ReadControl => &[Self::Compliance, Self::Auditor, Self::Controller],
            Permission::Control => &[Self::Controller],
            Permission::ChangeRules | Permission::Hold => &[Self::Compliance],
            Permission::Integrate => &[Self::Developer],
            Permission::ChangeProviders | Permission::Administer => &[],
        };

        matches!(self, Self::Owner | Self::Admin) || further.contains(&self)
    }

    /// Whether a user with this role counts where another role is named: an owner is an admin, too.
    pub fn counts_as(self, named: Self) -> bool {
        self == named || (self == Self::Owner && named == Self::Admin)
    }
}

impl Permission {
    /// Returns the roles with this permission.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL.iter().copied().filter(move |role| role.may(self))
    }
}

/// Record of an API key, without the key itself.
#[derive(Clone, Debug)]
pub struct ApiKeyRecord {
    pub id: KeyId,
    pub org: OrgId,
    pub name: Option<String>,
    pub scopes: Vec<Scope>,
    pub rate_limit_rpm: i64,
    /// E-mail address of the custodian of envelopes created with this key.
    pub owner_email: Option<String>,
    pub active: bool,
    pub last_used_at: Option<Timestamp>,
    /// Version of the record, incremented by every change.
    pub revision: i64,
}

impl ApiKeyRecord {
    /// Returns which data the key reaches.
    pub fn mode(&self) -> KeyMode {
        if self.org.is_test() {
            KeyMode::Test
        } else {
            KeyMode::Live
        }
    }
}

words! {
    /// Data that a key reaches.
    KeyMode {
        Live = "live",
        Test = "test",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_data_has_the_settings_and_a_marked_name() {
        let mut live = Organization {
            id: OrgId::new(),
            name: "Oak".into(),
            settings: OrgSettings::default(),
            created_at: Timestamp::from_millis(0),
        };
        live.settings.envelope_ttl_days = 2;

        let test = live.test();
        assert_eq!(test.display_name(), "Oak (TEST)");
        assert_eq!(test.settings.envelope_ttl_days, 2);
        assert_eq!(
            (test.id.clone(), test.test().name),
            (live.id.test(), test.name)
        );
    }

    #[test]
    fn settings_of_a_newer_version_are_kept() {
        let stored = r#"{"envelope_ttl_days": 7, "colour_of_the_sky": "blue"}"#;
        let mut settings: OrgSettings = serde_json::from_str(stored).unwrap();
        settings.envelope_ttl_days = 8;

        let written = serde_json::to_value(&settings).unwrap();
        assert_eq!(written["envelope_ttl_days"], 8);
        assert_eq!(written["colour_of_the_sky"], "blue");
    }

    #[test]
    fn a_link_host_is_a_plain_name() {
        let now = Timestamp::from_millis(0);
        for (text, origin) in [
            (
                "Contracts.Lender.example",
                "https://contracts.lender.example",
            ),
            ("verträge.example", "https://xn--vertrge-9wa.example"),
            ("127.0.0.1:9000", "http://127.0.0.1:9000"),
        ] {
            let host = LinkHost::verified(text, now).unwrap();
            assert_eq!(host.origin(), origin);
        }

        for wrong in [
            "",
            "https://lender.example",
            "lender.example/sign",
            "lender.example:8443",
            "user@lender.example",
            "lender.example?a",
            "192.0.2.7",
            "two words.example",
        ] {
            assert_eq!(LinkHost::verified(wrong, now), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_host_that_cannot_be_reached_has_days_of_grace() {
        let day = Duration::from_secs(86_400);
        let begin = Timestamp::from_millis(0);
        let host = LinkHost::verified("lender.example", begin).unwrap();
        let (away, other) = (LinkHostProblem::Unreachable, LinkHostProblem::NotNamed);

        assert_eq!(host.after(Some(away), begin + day * 3), host);
        let ended = host.after(Some(away), begin + day * 4);
        assert_eq!(ended.problem, Some(away));
        assert!(ended.after(None, begin + day * 5).is_in_use());
        assert_eq!(host.after(Some(other), begin).problem, Some(other));
    }

    #[test]
    fn an_origin_is_parsed_like_a_browser_does() {
        for good in [
            "https://app.example.com",
            "https://app.example.com:8443",
            "http://localhost:3000",
            "http://127.0.0.1:9000",
        ] {
            assert!(PageOrigin::try_from(good.to_owned()).is_ok(), "{good}");
        }

        for wrong in [
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://*.example.com",
            "http://app.example.com",
            "https://app.example.com; script-src *",
            "https://app.example.com:443",
            "app.example.com",
            "*",
            "null",
        ] {
            assert!(PageOrigin::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}

#[cfg(test)]
mod money {
    use super::*;

    #[test]
    fn amounts_are_in_minor_units_of_known_currencies() {
        assert_eq!(known_currency("usd").as_deref(), Some("USD"));
        assert_eq!(known_currency("JPY").as_deref(), Some("JPY"));

        for unknown in [
            "XXX", "XTS", "XAU", "CLF", "USN", "HRK", "US", "DOLLAR", "", "UŚD",
        ] {
            assert_eq!(known_currency(unknown), None, "{unknown}");
        }

        for (currency, digits) in [("USD", 2), ("JPY", 0), ("KWD", 3), ("ZZZ", 2)] {
            assert_eq!(minor_digits(currency), digits, "{currency}");
        }
    }

    #[test]
    fn a_default_payment_is_validated_on_write_only() {
        let read = |text: &str| serde_json::from_str::<PaymentSettings>(text).unwrap();
        let usd = read(r#"{"amount_cents":4900,"currency":"usd"}"#);
        assert_eq!(usd.checked().unwrap().currency, "USD");

        for wrong in [
            r#"{"amount_cents":0,"currency":"USD"}"#,
            r#"{"amount_cents":100000000,"currency":"USD"}"#,
            r#"{"amount_cents":100,"currency":"XXX"}"#,
            r#"{"amount_cents":100,"currency":"USD","platform_fee_cents":101}"#,
        ] {
            assert!(read(wrong).checked().is_err(), "{wrong}");
        }
    }
}
