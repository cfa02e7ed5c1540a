//! `holdfast org`.

use clap::Subcommand;
use serde_json::{Map, Value};

use super::output::Output;
use super::{Failure, org_id};
use crate::app;
use crate::config::Config;
use crate::domain::clock::Clock;
use crate::domain::id::OrgId;
use crate::domain::organization::{OrgSettings, Organization};
use crate::store::{Store, organizations};

#[derive(Subcommand)]
pub enum Command {
    /// Create an organization.
    Create {
        #[arg(long)]
        name: String,
    },
    /// List organizations.
    List,
    /// Change settings: auto_vault=true, envelope_ttl_days=30, payment={…}, components={…}, brand={…}, embed_origins=[…].
    Set {
        #[arg(value_parser = org_id)]
        org: OrgId,
        /// key=value, with the value as JSON or plain text.
        #[arg(required = true)]
        settings: Vec<String>,
    },
}

pub async fn run(command: Command, config: &Config, output: &Output) -> Result<(), Failure> {
    let store = app::open_store(config).await?;
    match command {
        Command::Create { name } => {
            let organization = Organization {
                id: OrgId::new(),
                name,
                settings: OrgSettings::default(),
                created_at: Clock::default().now(),
            };
            let mut tx = store.begin().await?;
            organizations::insert(&mut tx, &organization).await?;
            tx.commit().await?;
            output.one(&view(&organization), organization.id.as_str());
        }
        Command::List => {
            let mut connection = store.read().await?;
            let found = organizations::list(&mut connection).await?;
            let lines: Vec<String> = found
                .iter()
                .map(|organization| format!("{}  {}", organization.id, organization.name))
                .collect();
            output.one(
                &Value::Array(found.iter().map(view).collect()),
                &lines.join("\n"),
            );
        }
        Command::Set { org, settings } => {
            let mut organization = existing(&store, &org).await?;
            organization.settings = changed(&organization.settings, &settings)?;
            let mut tx = store.begin().await?;
            organizations::set_settings(&mut tx, &org, &organization.settings).await?;
            tx.commit().await?;
            output.one(&view(&organization), "changed");
        }
    }
    Ok(())
}

/// The organization, or an error that names it.
pub async fn existing(store: &Store, org: &OrgId) -> Result<Organization, Failure> {
    let mut connection = store.read().await?;
    let found = organizations::get(&mut connection, org).await?;
    found.ok_or_else(|| format!("there is no organization {org}").into())
}

/// `{org_id, name, …settings}`.
fn view(organization: &Organization) -> Value {
    let mut members = Map::new();
    members.insert("org_id".into(), organization.id.as_str().into());
    members.insert("name".into(), organization.name.as_str().into());
    if let Ok(Value::Object(settings)) = serde_json::to_value(&organization.settings) {
        members.extend(settings);
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
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        members.insert(key.into(), value);
    }
    Ok(serde_json::from_value(Value::Object(members))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(change: &str) -> Result<OrgSettings, String> {
        changed(&OrgSettings::default(), &[change.to_owned()]).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_are_set_by_name() {
        assert!(!set("auto_vault=false").unwrap().auto_vault);
        assert_eq!(set("envelope_ttl_days=7").unwrap().envelope_ttl_days, 7);
        let payment = set(r#"payment={"amount_cents":100,"currency":"USD"}"#)
            .unwrap()
            .payment;
        assert_eq!(payment.unwrap().payer, "first");
    }

    #[test]
    fn an_unknown_setting_lists_the_known_ones() {
        let error = set("auto_vualt=true").unwrap_err();
        assert!(
            error.contains(
                "auto_vault, payment, envelope_ttl_days, components, brand, embed_origins"
            ),
            "{error}"
        );
        assert!(set("auto_vault").is_err());
        assert!(set("auto_vault=perhaps").is_err());
    }
}
