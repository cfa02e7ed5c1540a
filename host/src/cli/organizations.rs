//! `holdfast org`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value, json};

use super::output::CommandOutput;
use super::{Failure, org_id};
use crate::start;
use holdfast_adapters::mail::is_address;
use holdfast_base::config::Config;
use holdfast_base::publishers;
use holdfast_domain::brand::{BrandColor, BrandLogo, OrganizationBrand};
use holdfast_domain::clock::Clock;
use holdfast_domain::control::PartyKey;
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::organization::{OrgSettings, Organization, PaymentSettings, Role};
use holdfast_domain::party_name;
use holdfast_platform::Caller;
use holdfast_platform::access::users::{self, NewUser, UserManager};
use holdfast_platform::access::{credentials, sessions};
use holdfast_platform::components::changes;
use holdfast_platform::organizations as settings;
use holdfast_service::control::{self, keys::PartyKeyView};
use holdfast_store::{Store, components, organizations, party_keys};

#[derive(Subcommand)]
pub enum OrganizationCommand {
    /// Create an organization.
    Create {
        #[arg(long, value_parser = one_line)]
        name: String,
        /// Address of its first owner, who gets a link to sign in to the console.
        #[arg(long, value_name = "EMAIL", value_parser = email)]
        owner: Option<String>,
    },
    /// List organizations.
    List,
    /// Change settings: auto_vault=true, envelope_ttl_days=30, payment={…}, components={…}, brand={…}, embed_origins=[…], return_origins=[…], dates={…}, language=es, consent={…}, consumer_disclosure={…}, signature_wording={…}, require_access_demonstration=true, require_all_pages_shown=true, chattel_paper_jurisdiction=US-DE, component_changes={…}, refuse_unsigned_roles=true, active_content=remove, reminders={…}, quiet_hours={…}, reply_to=documents@example.com, link_host=null, funding=enforce, tape_retention_days=365, contract_dates=[…].
    Set {
        #[arg(value_parser = org_id)]
        org: OrgId,
        /// key=value, with the value as JSON or plain text.
        #[arg(required = true)]
        settings: Vec<String>,
    },
    /// Change the branding that signers see.
    Brand(ChangeBrand),
    /// Revoke a key that the organization signs its acts of control with, for a party that has lost it.
    RevokePartyKey {
        #[arg(value_parser = org_id)]
        org: OrgId,
        /// Id or thumbprint of the key.
        key: String,
    },
    /// List the changes of settings, API keys, web-app tokens and keys for acts of control.
    Audit {
        #[arg(value_parser = org_id)]
        org: OrgId,
    },
}

/// Maximum length in characters of the name of an organization or brand, which is part of every
/// mail's `From`.
const NAME_LIMIT: usize = 100;

#[derive(Args)]
#[command(group(ArgGroup::new("change").required(true).multiple(true).args(["name", "color", "logo", "clear"])))]
pub struct ChangeBrand {
    #[arg(value_parser = org_id)]
    org: OrgId,
    /// Display name that replaces the organization's name.
    #[arg(long, value_parser = one_line)]
    name: Option<String>,
    /// Colour of buttons and lines, as #rrggbb.
    #[arg(long, value_parser = color)]
    color: Option<BrandColor>,
    /// A PNG or JPEG of at most 64 KiB.
    #[arg(long, value_name = "FILE")]
    logo: Option<PathBuf>,
    /// Remove the brand.
    #[arg(long, conflicts_with_all = ["name", "color", "logo"])]
    clear: bool,
}

pub async fn run(
    command: OrganizationCommand,
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let store = start::open_store(config).await?;
    match command {
        OrganizationCommand::Create { name, owner } => {
            // An installation that would refuse the owner refuses the organization, too.
            let owner = match owner {
                Some(email) => {
                    let app = start::start(config.clone()).await?;
                    users::is_served(&app)?;
                    Some((app, email))
                }
                None => None,
            };

            let organization = Organization {
                id: OrgId::new(),
                name,
                settings: OrgSettings::default(),
                created_at: Clock::default().now(),
            };
            // The invitation needs the organization's row, so it follows in a transaction of its own. If
            // it fails, `holdfast user invite` repeats it.
            let mut tx = store.begin().await?;
            organizations::insert(&mut tx, &organization).await?;

            tx.commit().await?;
            let Some((app, email)) = owner else {
                output.one(&view(&organization), organization.id.as_str());
                return Ok(());
            };

            let caller = Caller::named(organization.id.clone(), "operator");
            let manager = UserManager {
                caller: &caller,
                role: None,
            };

            let owner = NewUser {
                email,
                role: Role::Owner,
            };
            let (owner, link) = users::invite(&app, &manager, owner).await?;
            let url = sessions::url(&app, &link)?;
            let mut shown = view(&organization);
            shown["owner"] = json!(owner);

            shown["url"] = json!(url);
            let note = format!("{} signs in with this link once: {url}", owner.email);
            output.with_note(&shown, organization.id.as_str(), &note);
        }
        OrganizationCommand::List => {
            let mut connection = store.read().await?;
            let mut found = organizations::list(&mut connection).await?;
            // The test side of an organization shares its name and is no customer.
            found.retain(|organization| !organization.id.is_test());
            let lines: Vec<String> = found
                .iter()
                .map(|organization| format!("{}  {}", organization.id, organization.name))
                .collect();

            output.one(
                &Value::Array(found.iter().map(view).collect()),
                &lines.join("\n"),
            );
        }
        OrganizationCommand::Set { org, settings } => {
            let change = |present| changed(&present, &settings);
            let organization = change_settings(&store, &org, change).await?;
            output.one(&view(&organization), "changed");
        }
        OrganizationCommand::Audit { org } => {
            // Without this check, a mistyped id would look like an organization without changes.
            existing(&store, &org).await?;
            let mut connection = store.read().await?;
            let entries = credentials::history(&mut connection, Some(&org)).await?;
            let line =
                |entry: &LedgerEntry| format!("{}  {}  {}", entry.at, entry.action, entry.details);
            let lines: Vec<String> = entries.iter().map(line).collect();
            output.one(&serde_json::to_value(&entries)?, &lines.join("\n"));
        }
        OrganizationCommand::RevokePartyKey { org, key } => {
            existing(&store, &org).await?;
            let mut tx = store.begin().await?;
            // A revoked key keeps its row, because old signatures are verified with it.
            let keys = party_keys::list(&mut tx, &org).await?;
            let named =
                |held: &PartyKey| held.id.as_str() == key || held.public_key.thumbprint() == key;
            let valid = keys
                .into_iter()
                .find(|held| named(held) && held.revoked_at.is_none());
            let valid = valid.ok_or_else(|| format!("{org} has no valid key {key}"))?;

            let now = Clock::default().now();
            let revoked = control::keys::revoke_by_operator(&mut tx, valid, now).await?;
            tx.commit().await?;

            output.one(&json!(PartyKeyView::from(&revoked)), "revoked");
        }
        OrganizationCommand::Brand(change) => {
            let rebrand = |present: OrgSettings| {
                Ok(OrgSettings {
                    brand: rebranded(present.brand.clone(), &change)?,
                    ..present
                })
            };
            let organization = change_settings(&store, &change.org, rebrand).await?;
            output.one(&view(&organization), "changed");
        }
    }

    Ok(())
}

/// Changes the settings of an organization, with its row locked. A new policy of changes goes to the
/// component ledger.
async fn change_settings(
    store: &Store,
    org: &OrgId,
    change: impl FnOnce(OrgSettings) -> Result<OrgSettings, Failure>,
) -> Result<Organization, Failure> {
    let mut tx = store.begin().await?;
    // First this lock and then the organization's, as in every change of access. Otherwise
    // two changes could wait for each other.
    components::lock_changes(&mut tx).await?;
    organizations::lock(&mut tx, org).await?;
    let organization = organizations::get(&mut tx, org).await?;
    let mut organization = organization.ok_or_else(|| unknown(org))?;
    let before = organization.clone();
    organization.settings = change(organization.settings)?;

    organizations::set_settings(&mut tx, &organization).await?;
    let now = Clock::default().now();
    let previous = before.settings.component_changes.clone();
    let next = &organization.settings.component_changes;
    if *next != previous {
        changes::set_by_operator(&mut tx, org, &previous, next, now).await?;
    }

    // In the same transaction, so that no setting differs from the audit log.
    settings::record(&mut tx, "operator", before, &organization, now).await?;
    tx.commit().await?;
    Ok(organization)
}

fn unknown(org: &OrgId) -> Failure {
    format!("there is no organization {org}").into()
}

/// Applies a change to a brand. Options that are not given keep their value.
fn rebranded(brand: OrganizationBrand, change: &ChangeBrand) -> Result<OrganizationBrand, Failure> {
    if change.clear {
        return Ok(OrganizationBrand::default());
    }

    let logo = change.logo.as_deref().map(read_logo).transpose()?;
    Ok(OrganizationBrand {
        name: change.name.clone().or(brand.name),
        color: change.color.clone().or(brand.color),
        logo: logo.or(brand.logo),
    })
}

fn read_logo(file: &Path) -> Result<BrandLogo, Failure> {
    let named = |error: String| Failure::from(format!("{}: {error}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| named(error.to_string()))?;
    BrandLogo::new(bytes).map_err(named)
}

fn color(text: &str) -> Result<BrandColor, String> {
    BrandColor::try_from(text.to_owned())
}

fn email(text: &str) -> Result<String, String> {
    let address = text.trim();
    if is_address(address) {
        Ok(address.to_owned())
    } else {
        Err("not an e-mail address".into())
    }
}

fn one_line(text: &str) -> Result<String, String> {
    let name = party_name::normalized(text).map_err(|problem| problem.to_string())?;
    if name.chars().count() > NAME_LIMIT {
        return Err(format!("a name has at most {NAME_LIMIT} characters"));
    }
    Ok(name)
}

/// Returns the organization, or an error with its id.
pub async fn existing(store: &Store, org: &OrgId) -> Result<Organization, Failure> {
    let mut connection = store.read().await?;
    let found = organizations::get(&mut connection, org).await?;
    found.ok_or_else(|| unknown(org))
}

/// JSON view: `{org_id, name, …settings}`, with the type of a logo but not its bytes.
fn view(organization: &Organization) -> Value {
    let mut members = Map::new();
    members.insert("org_id".into(), organization.id.as_str().into());
    members.insert("name".into(), organization.name.as_str().into());
    if let Ok(Value::Object(settings)) = serde_json::to_value(&organization.settings) {
        members.extend(settings);
    }

    // A logo has up to 64 KiB, which would bury the other settings on a terminal.
    if let (Some(logo), Some(brand)) = (&organization.settings.brand.logo, members.get_mut("brand"))
    {
        brand["logo"] = json!({ "bytes": logo.bytes.len(), "type": logo.file_type });
    }

    Value::Object(members)
}

fn changed(settings: &OrgSettings, changes: &[String]) -> Result<OrgSettings, Failure> {
    let Value::Object(mut members) = serde_json::to_value(settings)? else {
        return Err("settings are an object".into());
    };

    let known: Vec<String> = members.keys().cloned().collect();
    for change in changes {
        let (key, value) = change
            .split_once('=')
            .ok_or_else(|| format!("{change}: expected key=value"))?;
        if !known.iter().any(|name| name == key) {
            return Err(format!("unknown setting {key}; known are {}", known.join(", ")).into());
        }

        // Plain text saves the operator from quoting JSON strings in a shell.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        members.insert(key.into(), value);
    }

    let present = settings;
    let mut settings: OrgSettings = serde_json::from_value(Value::Object(members))?;
    settings.set_aside = present.set_aside.clone();
    if let Some(why) = present.problem_of_new_texts(&settings.consent) {
        return Err(why.into());
    }

    // A host is used after it has named the organization, which a text of the operator does not prove.
    if settings.link_host.is_some() && settings.link_host != present.link_host {
        let why = "link_host is set by the organization: PUT /organization/link-host checks the host. \
                   link_host=null removes it";
        return Err(why.into());
    }

    settings.payment = settings.payment.map(PaymentSettings::checked).transpose()?;
    // The same checks as in the API, because both write the same row.
    if let Some((_, why)) = settings.problem() {
        return Err(why.into());
    }

    let signers = &settings.component_changes.state.keys;
    if let Some((name, why)) = publishers::problem_of_signers(signers) {
        return Err(format!("component_changes.state: {name} {why}").into());
    }

    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::locale::Locale;

    fn set(change: &str) -> Result<OrgSettings, String> {
        changed(&OrgSettings::default(), &[change.to_owned()]).map_err(|error| error.to_string())
    }

    #[test]
    fn organization_settings_are_set_by_name() {
        assert!(!set("auto_vault=false").unwrap().auto_vault);
        assert_eq!(set("envelope_ttl_days=7").unwrap().envelope_ttl_days, 7);

        let payment = set(r#"payment={"amount_cents":100,"currency":"USD"}"#)
            .unwrap()
            .payment;
        assert_eq!(payment.unwrap().payer, "first");

        let refused = |payment: &str| set(&format!("payment={payment}")).unwrap_err();
        let greedy = r#"{"amount_cents":100,"currency":"USD","platform_fee_cents":101}"#;
        assert!(refused(greedy).contains("must not be more than"));
        assert!(refused(r#"{"amount_cents":100,"currency":"ZZZ"}"#).contains("ISO 4217"));

        let dates = r#"dates={"format":"month_first","time_zone":"America/New_York"}"#;
        assert_eq!(set(dates).unwrap().dates.format.as_str(), "month_first");

        let wrong = set(r#"dates={"time_zone":"EST5"}"#).unwrap_err();
        assert!(wrong.contains("EST5 is no time zone"), "{wrong}");
        assert!(refused(r#"{"amount_cents":0,"currency":"USD"}"#).contains("from 1 to"));
        assert_eq!(set("language=es-MX").unwrap().language, Locale::Es);

        let state = set("chattel_paper_jurisdiction=US-DE").unwrap();
        let state = state.chattel_paper_jurisdiction.unwrap();
        assert_eq!(state.as_str(), "US-DE");

        let wrong = set("chattel_paper_jurisdiction=Delaware").unwrap_err();
        assert!(wrong.contains("write a state as US-DE"), "{wrong}");

        let strict = set(r#"component_changes={"reviews_required":2}"#).unwrap();
        assert_eq!(strict.component_changes.reviews_required, 2);

        let wrong = set(r#"component_changes={"reviewers":[]}"#).unwrap_err();
        assert!(wrong.contains("name at least one of them"), "{wrong}");

        let wrong = set("language=tlh").unwrap_err();
        assert!(wrong.contains("en, es, fr, de, pt, zh-Hans, ar"), "{wrong}");

        let consent =
            r#"{"de":{"version":"7","statement":"Ja.","disclosure":"Papier geht auch."}}"#;
        let consent = set(&format!("consent={consent}")).unwrap().consent;
        assert_eq!(consent[&Locale::De].version, "7");

        let reply_to = set("reply_to=documents@maple.example").unwrap().reply_to;
        assert_eq!(reply_to.as_deref(), Some("documents@maple.example"));
        assert!(
            set("reply_to=Maple")
                .unwrap_err()
                .contains("no e-mail address")
        );

        assert_eq!(set("link_host=null").unwrap().link_host, None);
        let unverified =
            r#"link_host={"host":"maple.example","verified_at":"2026-11-21T09:41:07.250Z"}"#;
        assert!(set(unverified).unwrap_err().contains("checks the host"));

        let empty = r#"consent={"de":{"version":"","statement":"Ja.","disclosure":"-"}}"#;
        assert!(set(empty).unwrap_err().contains("needs version"));
    }

    #[test]
    fn an_unknown_setting_lists_the_known_ones() {
        let error = set("auto_vualt=true").unwrap_err();
        assert!(
            error.contains(
                "auto_vault, payment, envelope_ttl_days, components, brand, embed_origins, dates, return_origins, language, consent, consumer_disclosure, signature_wording, require_access_demonstration, require_all_pages_shown, chattel_paper_jurisdiction, component_changes, single_sign_on, refuse_unsigned_roles, active_content, reminders, quiet_hours, reply_to, link_host, funding, tape_retention_days, contract_dates"
            ),
            "{error}"
        );
        assert!(set("auto_vault").is_err());
        assert!(set("auto_vault=perhaps").is_err());
    }
}
