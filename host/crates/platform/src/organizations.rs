//! Settings of an organization that its own users change.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::access::credentials;
use crate::access::single_sign_on::{ChangeSingleSignOn, secret_context};
use crate::permits::four_eyes;
use crate::{Caller, Core, ServiceError};
use holdfast_domain::brand::{BrandColor, BrandLogo};
use holdfast_domain::change::FieldPatch;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::contract_dates::DateOfFact;
use holdfast_domain::dates::DateSettings;
use holdfast_domain::disclosure::{ConsumerDisclosure, SignatureWording};
use holdfast_domain::funding::FundingMode;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::OrgId;
use holdfast_domain::jurisdiction::Jurisdiction;
use holdfast_domain::locale::{ConsentText, Locale};
use holdfast_domain::organization::{
    ActiveContent, LinkHost, LinkHostProblem, OrgSettings, Organization, PageOrigin,
    PaymentSettings, Role, SingleSignOn,
};
use holdfast_domain::party_name;
use holdfast_domain::reminders::{QuietHours, ReminderPlan};
use holdfast_store::{StoreError, WriteTransaction, organizations};

/// Most origins of one list.
const ORIGINS: usize = 50;
/// Longest part of a consent text, in characters.
const CONSENT: usize = 20_000;
/// Longest version of a consent text, in characters.
const CONSENT_VERSION: usize = 500;

/// Branding that signers see.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BrandView {
    /// Display name that replaces the organization's name.
    pub name: Option<String>,
    /// Colour of buttons and lines.
    pub color: Option<BrandColor>,
    /// SHA-256 of the logo.
    pub logo_sha256: Option<String>,
}

/// An organization with its settings.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "org_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Crescent Auto Finance", "created_at": "2026-05-04T15:04:05.000Z",
    "auto_vault": true, "envelope_ttl_days": 30, "payment": null,
    "brand": { "name": "Crescent", "color": "#0b57d0", "logo_sha256": null },
    "embed_origins": ["https://app.crescent.example"], "return_origins": [],
    "dates": { "format": "month_first", "time_zone": "America/New_York" }, "language": "en", "consent": {},
    "consumer_disclosure": {
        "contact_email": "documents@crescent.example", "contact_phone": null, "contact_address": null,
        "paper_fee": { "amount_cents": 0, "currency": "USD" }, "scope": {}, "withdrawal": {}, "requirements": {},
    },
    "signature_wording": {}, "require_access_demonstration": false, "require_all_pages_shown": false,
    "chattel_paper_jurisdiction": "US-DE", "single_sign_on": null, "refuse_unsigned_roles": false,
    "active_content": "warn",
    "reminders": { "first_after_days": 3, "every_days": 3, "at_most": 5 },
    "quiet_hours": { "from": "20:00", "until": "08:00" }, "reply_to": "documents@crescent.example",
    "link_host": {
        "host": "contracts.crescent.example", "verified_at": "2026-11-21T09:41:07.250Z", "in_use": true, "problem": null,
    },
    "funding": "enforce", "tape_retention_days": 365,
    "contract_dates": [{
        "fact": "maturity_date", "name": "End of the term", "notice_days": [60, 0], "notify": ["servicing@crescent.example"],
    }],
}]))]
pub struct OrganizationView {
    pub org_id: OrgId,
    pub name: String,
    pub created_at: Timestamp,
    /// Whether every signed envelope is vaulted automatically.
    pub auto_vault: bool,
    /// Days until an unfinished envelope expires.
    pub envelope_ttl_days: u32,
    /// Payment requested for every envelope. The operator sets it.
    pub payment: Option<PaymentSettings>,
    pub brand: BrandView,
    /// Origins of pages that may embed the widgets.
    pub embed_origins: Vec<PageOrigin>,
    /// Origins of pages to which signers may return after signing.
    pub return_origins: Vec<PageOrigin>,
    /// Dates in signed documents.
    pub dates: DateSettings,
    /// Language of pages and mails for people who have not chosen one.
    pub language: Locale,
    /// Consent to signing electronically in the organization's own words, by language. Where there is one, it
    /// replaces the text that is made of `consumer_disclosure` and `signature_wording`.
    pub consent: BTreeMap<String, ConsentText>,
    /// Statements about electronic records, in the text above the document.
    pub consumer_disclosure: ConsumerDisclosure,
    /// What a signer declares with the signature, by jurisdiction (`US-DE`, `US` or `default`) and language.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, String>>")]
    pub signature_wording: SignatureWording,
    /// Whether signers have to open the document as PDF before they can finish.
    pub require_access_demonstration: bool,
    /// Whether signers have to have every page shown before they can finish. The script of the form reports the pages
    /// that the browser displayed. Without it, or with an empty report, a page counts as shown when its picture or the
    /// PDF was delivered.
    pub require_all_pages_shown: bool,
    /// Jurisdiction of chattel paper, for envelopes that state none.
    pub chattel_paper_jurisdiction: Option<Jurisdiction>,
    /// Sign-in of the users at the organization's own issuer. The secret of the client is not shown.
    pub single_sign_on: Option<SingleSignOn>,
    /// Whether signers and witnesses with roles that ask for no signature are refused.
    pub refuse_unsigned_roles: bool,
    pub active_content: ActiveContent,
    /// Reminders of new envelopes that name no plan of their own.
    pub reminders: Option<ReminderPlan>,
    /// Hours without reminders by a plan, in the time zone of `dates`.
    pub quiet_hours: Option<QuietHours>,
    /// Address for replies to mails about envelopes. Without it, replies go to the user who created the envelope,
    /// or who owns the API key that did.
    pub reply_to: Option<String>,
    /// Host of the organization's own for its signing links.
    pub link_host: Option<LinkHostView>,
    pub funding: FundingMode,
    /// Days after which loan tapes are deleted with their results; null keeps them.
    pub tape_retention_days: Option<u32>,
    /// Facts that become dates of a contract when it is vaulted, with notices before them.
    pub contract_dates: Vec<DateOfFact>,
}

/// Host of an organization's own for its signing links.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LinkHostView {
    /// Name of the host.
    pub host: String,
    /// When the host named the organization last.
    pub verified_at: Timestamp,
    /// Whether new links lead there. If not, they lead to the installation's address.
    pub in_use: bool,
    /// Why not: `unreachable` for three days, until it answers again; or `not_named`, until it is set again.
    pub problem: Option<LinkHostProblem>,
}

impl From<LinkHost> for LinkHostView {
    fn from(host: LinkHost) -> Self {
        Self {
            in_use: host.is_in_use(),
            host: host.host,
            verified_at: host.verified_at,
            problem: host.problem,
        }
    }
}

impl From<Organization> for OrganizationView {
    fn from(organization: Organization) -> Self {
        let settings = organization.settings;
        let logo = settings.brand.logo.as_ref();
        Self {
            org_id: organization.id,
            name: organization.name,
            created_at: organization.created_at,
            auto_vault: settings.auto_vault,
            envelope_ttl_days: settings.envelope_ttl_days,
            payment: settings.payment,
            brand: BrandView {
                // The hash is enough to compare. The picture has up to 64 KiB.
                logo_sha256: logo.map(|logo| sha256(&logo.bytes)),
                name: settings.brand.name,
                color: settings.brand.color,
            },
            embed_origins: settings.embed_origins,
            return_origins: settings.return_origins,
            dates: settings.dates,
            language: settings.language,
            consent: settings
                .consent
                .into_iter()
                .map(|(locale, text)| (locale.as_str().to_owned(), text))
                .collect(),
            consumer_disclosure: settings.consumer_disclosure,
            signature_wording: settings.signature_wording,
            require_access_demonstration: settings.require_access_demonstration,
            require_all_pages_shown: settings.require_all_pages_shown,
            chattel_paper_jurisdiction: settings.chattel_paper_jurisdiction,
            single_sign_on: settings.single_sign_on,
            refuse_unsigned_roles: settings.refuse_unsigned_roles,
            active_content: settings.active_content,
            reminders: settings.reminders,
            quiet_hours: settings.quiet_hours,
            reply_to: settings.reply_to,
            link_host: settings.link_host.map(LinkHostView::from),
            funding: settings.funding,
            tape_retention_days: settings.tape_retention_days,
            contract_dates: settings.contract_dates,
        }
    }
}

/// Change of the branding: absent members stay unchanged, null clears a value.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeBrand {
    #[serde(default)]
    #[schemars(with = "Option<String>", length(min = 1, max = 100))]
    pub name: FieldPatch<String>,
    #[serde(default)]
    #[schemars(with = "Option<BrandColor>")]
    pub color: FieldPatch<BrandColor>,
    /// PNG or JPEG of at most 64 KiB, in base64.
    #[serde(default)]
    #[schemars(with = "Option<String>", length(max = 87_384))]
    pub logo: FieldPatch<BrandLogo>,
}

/// Body of `PATCH /organization`: absent members stay unchanged, null clears a value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "language": "es", "brand": { "color": "#0b57d0" }, "return_origins": ["https://app.crescent.example"],
}]))]
pub struct ChangeOrganization {
    pub auto_vault: Option<bool>,
    #[schemars(range(min = 1, max = 3650))]
    pub envelope_ttl_days: Option<u32>,
    pub brand: Option<ChangeBrand>,
    #[schemars(length(max = 50))]
    pub embed_origins: Option<Vec<PageOrigin>>,
    #[schemars(length(max = 50))]
    pub return_origins: Option<Vec<PageOrigin>>,
    pub dates: Option<DateSettings>,
    pub language: Option<Locale>,
    /// True: a create or send with a signer or witness with a role that asks for no signature is refused with 422.
    pub refuse_unsigned_roles: Option<bool>,
    /// What becomes of scripts and actions of an upload.
    pub active_content: Option<ActiveContent>,
    /// What becomes of contracts that their funding rules stop.
    pub funding: Option<FundingMode>,
    /// Days after which loan tapes are deleted with their results; null keeps them. It counts for tapes of before, too.
    #[serde(default)]
    #[schemars(with = "Option<u32>", range(min = 1, max = 3650))]
    pub tape_retention_days: FieldPatch<u32>,
    /// Replaces all facts that become dates of a contract. Contracts that are in the vault keep their dates.
    #[schemars(length(max = 20))]
    pub contract_dates: Option<Vec<DateOfFact>>,
    #[schemars(with = "Option<BTreeMap<String, ConsentText>>")]
    pub consent: Option<BTreeMap<Locale, ConsentText>>,
    /// Replaces the whole object; null restores the text that states nothing on the organization's behalf.
    #[serde(default)]
    #[schemars(with = "Option<ConsumerDisclosure>")]
    pub consumer_disclosure: FieldPatch<ConsumerDisclosure>,
    /// Replaces all wordings; null restores ours.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, BTreeMap<String, String>>>")]
    pub signature_wording: FieldPatch<SignatureWording>,
    /// Whether signers have to open the document as PDF before they can finish.
    pub require_access_demonstration: Option<bool>,
    /// Whether signers have to have every page shown before they can finish. The script of the form reports the pages
    /// that the browser displayed. Without it, or with an empty report, a page counts as shown when its picture or the
    /// PDF was delivered.
    pub require_all_pages_shown: Option<bool>,
    #[serde(default)]
    #[schemars(with = "Option<Jurisdiction>")]
    pub chattel_paper_jurisdiction: FieldPatch<Jurisdiction>,
    /// Envelopes that were created before keep their plan.
    #[serde(default)]
    #[schemars(with = "Option<ReminderPlan>")]
    pub reminders: FieldPatch<ReminderPlan>,
    /// Hours without reminders by a plan, in the time zone of `dates`.
    #[serde(default)]
    #[schemars(with = "Option<QuietHours>")]
    pub quiet_hours: FieldPatch<QuietHours>,
    /// Address for replies to mails about envelopes.
    #[serde(default)]
    #[schemars(with = "Option<String>", email)]
    pub reply_to: FieldPatch<String>,
    /// Only owners change it: who names the issuer decides who signs in.
    #[serde(default)]
    #[schemars(with = "Option<ChangeSingleSignOn>")]
    pub single_sign_on: FieldPatch<ChangeSingleSignOn>,
}

impl ChangeOrganization {
    fn apply(self, settings: &mut OrgSettings) -> Result<(), ServiceError> {
        let refused = |path: &[&str], expected: &str, why: &str| {
            ServiceError::invalid("invalid_value", path, expected, "another value", why)
        };

        if let Some(mut brand) = self.brand {
            // Signers see this name in place of the registered one: no second line and no invisible
            // characters.
            if let FieldPatch::Set(name) = &mut brand.name {
                *name = party_name::normalized(name).map_err(|problem| {
                    refused(&["brand", "name"], "one line", &problem.to_string())
                })?;
            }

            brand.name.apply(&mut settings.brand.name);
            brand.color.apply(&mut settings.brand.color);
            brand.logo.apply(&mut settings.brand.logo);
        }

        for (name, origins) in [
            ("embed_origins", &self.embed_origins),
            ("return_origins", &self.return_origins),
        ] {
            if origins.as_ref().is_some_and(|all| all.len() > ORIGINS) {
                return Err(refused(&[name], "at most 50 origins", "Too many origins"));
            }
        }

        let is_long = |text: &ConsentText| {
            let parts = [&text.version, &text.statement, &text.disclosure];
            parts.into_iter().any(|part| part.chars().count() > CONSENT)
        };
        let consent = self.consent.as_ref();
        if consent.is_some_and(|consent| consent.values().any(is_long)) {
            return Err(refused(
                &["consent"],
                "shorter texts",
                "The text is too long",
            ));
        }

        let mut consent = consent.into_iter().flatten();
        let long = consent.find(|(_, text)| text.version.chars().count() > CONSENT_VERSION);
        if let Some((language, _)) = long {
            return Err(refused(
                &["consent", language.as_str(), "version"],
                "at most 500 characters",
                "The version is too long",
            ));
        }

        settings.auto_vault = self.auto_vault.unwrap_or(settings.auto_vault);
        settings.envelope_ttl_days = self.envelope_ttl_days.unwrap_or(settings.envelope_ttl_days);
        if let Some(origins) = self.embed_origins {
            settings.embed_origins = origins;
        }

        if let Some(origins) = self.return_origins {
            settings.return_origins = origins;
        }

        if let Some(dates) = self.dates {
            settings.dates = dates;
        }

        if let Some(consent) = self.consent {
            // Consents name the version, which has to stand for one text for ever.
            if let Some(why) = settings.problem_of_new_texts(&consent) {
                return Err(refused(&["consent"], "a new version", &why));
            }
            settings.consent = consent;
        }

        match self.consumer_disclosure {
            FieldPatch::Keep => {}
            FieldPatch::Clear => settings.consumer_disclosure = ConsumerDisclosure::default(),
            FieldPatch::Set(new) => settings.consumer_disclosure = new,
        }

        match self.signature_wording {
            FieldPatch::Keep => {}
            FieldPatch::Clear => settings.signature_wording = SignatureWording::new(),
            FieldPatch::Set(new) => settings.signature_wording = new,
        }

        let required = self.require_access_demonstration;
        settings.require_access_demonstration =
            required.unwrap_or(settings.require_access_demonstration);
        let required = self.require_all_pages_shown;
        settings.require_all_pages_shown = required.unwrap_or(settings.require_all_pages_shown);
        settings.language = self.language.unwrap_or(settings.language);
        let refuses = self.refuse_unsigned_roles;
        settings.refuse_unsigned_roles = refuses.unwrap_or(settings.refuse_unsigned_roles);
        settings.active_content = self.active_content.unwrap_or(settings.active_content);
        settings.funding = self.funding.unwrap_or(settings.funding);
        self.tape_retention_days
            .apply(&mut settings.tape_retention_days);

        if let Some(dates) = self.contract_dates {
            settings.contract_dates = dates;
        }
        self.chattel_paper_jurisdiction
            .apply(&mut settings.chattel_paper_jurisdiction);
        self.reminders.apply(&mut settings.reminders);
        self.quiet_hours.apply(&mut settings.quiet_hours);
        self.reply_to.apply(&mut settings.reply_to);
        match settings.problem() {
            Some((setting, why)) => Err(refused(&[setting], "a value that can be used", &why)),
            None => Ok(()),
        }
    }
}

/// Returns an organization.
pub async fn read(core: &Core, org: &OrgId) -> Result<Organization, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = organizations::get(&mut connection, org).await?;
    found.ok_or(ServiceError::NotFound("Organization"))
}

/// Returns the organization of the caller.
pub async fn get(core: &Core, caller: &Caller) -> Result<OrganizationView, ServiceError> {
    Ok(read(core, &caller.org).await?.into())
}

/// Changes settings of the caller's organization. `role` is the caller's.
pub async fn change(
    core: &Core,
    caller: &Caller,
    role: Role,
    mut change: ChangeOrganization,
) -> Result<OrganizationView, ServiceError> {
    let org = &caller.org;
    // An admin who names an issuer could sign in as an owner.
    if !matches!(change.single_sign_on, FieldPatch::Keep) && role != Role::Owner {
        return Err(ServiceError::NotAllowed(
            "Only an owner changes the sign-in",
        ));
    }

    // Before the transaction, because the settings of the issuer are read from its server.
    let sign_on = match std::mem::take(&mut change.single_sign_on) {
        FieldPatch::Keep => FieldPatch::Keep,
        FieldPatch::Clear => FieldPatch::Clear,
        FieldPatch::Set(new) => {
            let present = read(core, org).await?.settings.single_sign_on;
            FieldPatch::Set(new.checked(core, present.as_ref()).await?)
        }
    };

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // This lock comes before that of the organization, in the same order as in a change request.
    if !matches!(sign_on, FieldPatch::Keep) {
        four_eyes::permit_setting(core, &mut tx, org).await?;
    }

    organizations::lock(&mut tx, org).await?;
    let found = organizations::get(&mut tx, org).await?;
    let mut organization = found.ok_or(ServiceError::NotFound("Organization"))?;
    let before = organization.clone();
    change.apply(&mut organization.settings)?;
    // Lenders rely on it that a contract which their rules stop is not sent.
    if organization.settings.funding != before.settings.funding {
        four_eyes::permit_act(core, &mut tx, org).await?;
    }

    match sign_on {
        FieldPatch::Keep => {}
        FieldPatch::Clear => {
            organization.settings.single_sign_on = None;
            organizations::set_sign_on_secret(&mut tx, org, None).await?;
        }
        FieldPatch::Set(new) => {
            let by = Some(caller.actor.clone());
            organization.settings.name_issuer(new.settings, by, now);
            // An absent secret keeps the present one, which the caller cannot read back.
            if let Some(secret) = new.secret {
                let context = secret_context(org.as_str());
                let sealed = secret.map(|secret| core.cipher.encrypt(&secret, &context));
                organizations::set_sign_on_secret(&mut tx, org, sealed.as_deref()).await?;
            }
        }
    }

    organizations::set_settings(&mut tx, &organization).await?;
    record(&mut tx, &caller.actor, before, &organization, now).await?;
    tx.commit().await?;

    Ok(organization.into())
}

/// Sets the sign-in of a change request. `secret` is sealed; `None` keeps the present one. `alone` is the person who
/// requested it where no approval was needed.
pub async fn put_sign_on(
    tx: &mut WriteTransaction,
    org: &OrgId,
    actor: &str,
    settings: Option<SingleSignOn>,
    secret: Option<Option<&str>>,
    alone: Option<String>,
    now: Timestamp,
) -> Result<(), ServiceError> {
    // The settings are one document: a concurrent change of another member would be lost.
    organizations::lock(tx, org).await?;
    let found = organizations::get(tx, org).await?;
    let mut organization = found.ok_or(ServiceError::NotFound("Organization"))?;
    let before = organization.clone();

    match settings {
        Some(settings) => organization.settings.name_issuer(settings, alone, now),
        None => organization.settings.single_sign_on = None,
    }

    if let Some(secret) = secret {
        organizations::set_sign_on_secret(tx, org, secret).await?;
    }

    organizations::set_settings(tx, &organization).await?;
    Ok(record(tx, actor, before, &organization, now).await?)
}

/// Sets what becomes of contracts that their funding rules stop, for a change request.
pub async fn put_funding(
    tx: &mut WriteTransaction,
    org: &OrgId,
    actor: &str,
    funding: FundingMode,
    now: Timestamp,
) -> Result<(), ServiceError> {
    organizations::lock(tx, org).await?;
    let found = organizations::get(tx, org).await?;
    let mut organization = found.ok_or(ServiceError::NotFound("Organization"))?;
    let before = organization.clone();

    organization.settings.funding = funding;
    organizations::set_settings(tx, &organization).await?;
    Ok(record(tx, actor, before, &organization, now).await?)
}

/// Records what changed in the credential ledger; nothing if nothing did.
pub async fn record(
    tx: &mut WriteTransaction,
    actor: &str,
    before: Organization,
    after: &Organization,
    now: Timestamp,
) -> Result<(), StoreError> {
    let org = after.id.clone();
    // Compared as views, so that the entry has neither the logo nor a secret.
    let [before, after] = [before, after.clone()].map(|one| json!(OrganizationView::from(one)));
    let mut changed = Map::new();

    let members = after.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(name, value)| before[name.as_str()] != **value) {
        let change = json!({ "before": before[name.as_str()], "after": value });
        changed.insert(name.clone(), change);
    }

    if changed.is_empty() {
        return Ok(());
    }

    let details = json!({ "changed": Value::Object(changed) });
    credentials::record_by(tx, Some(&org), actor, "settings.changed", details, now).await
}
