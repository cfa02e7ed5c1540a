//! Health checks of the service's dependencies.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::App;
use crate::installation;
use crate::retention::store_holds;
use crate::vault::{Vault, long_term};
use holdfast_base::config::EMBEDDED;
use holdfast_base::disk;
use holdfast_domain::component::Slot;
use holdfast_platform::Core;
use holdfast_platform::log;

/// Result of checking one dependency.
#[derive(Clone, Debug, Serialize)]
pub struct DependencyCheck {
    /// `database`, `storage`, `disk`, `mail`, `seal`, `ledger`, `witnesses`, `clock`, `components`, `providers`, `holds` or
    /// `backups`.
    pub name: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// Description of the check, or the reason for its failure.
    pub detail: String,
}

impl DependencyCheck {
    fn from(name: &'static str, result: Result<String, String>) -> Self {
        let ok = result.is_ok();
        let (Ok(detail) | Err(detail)) = result;
        Self { name, ok, detail }
    }
}

/// Timeout of a provider's response.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which the result of a storage check is reused.
const LATELY: Duration = Duration::from_secs(1);

/// Checks everything the service depends on, including the mail server and the providers.
pub async fn checks(app: &App) -> Vec<DependencyCheck> {
    vec![
        DependencyCheck::from("database", database(app).await),
        DependencyCheck::from("storage", storage(app).await),
        DependencyCheck::from("disk", disk(app)),
        DependencyCheck::from("mail", app.mailer.check().await),
        DependencyCheck::from("seal", seal(app, &app.vault).await),
        DependencyCheck::from("ledger", ledger(app, &app.vault).await),
        DependencyCheck::from("witnesses", witnesses(app).await),
        DependencyCheck::from("clock", clock(app).await),
        DependencyCheck::from("components", components(app, true)),
        DependencyCheck::from("providers", providers(app).await),
        DependencyCheck::from("holds", store_holds::check(app).await),
        DependencyCheck::from("backups", backups(app).await),
    ]
}

/// Checks what every request needs. Dependencies of some calls or of one organization (mails,
/// providers, an organization's own components) do not affect readiness.
pub async fn readiness(app: &App) -> Vec<DependencyCheck> {
    // A provider or mail server that is down would otherwise take every node out of service at once.
    vec![
        DependencyCheck::from("database", database(app).await),
        DependencyCheck::from("storage", storage_lately(app).await),
        DependencyCheck::from("disk", disk(app)),
        DependencyCheck::from("ledger", ledger(app, &app.vault).await),
        DependencyCheck::from("components", components(app, false)),
    ]
}

async fn database(core: &Core) -> Result<String, String> {
    core.store
        .check()
        .await
        .map_err(|error| error.to_string())?;
    Ok(format!("{:?} answers", core.store.dialect()))
}

/// Checks the object store at most once a second, shared by all callers,
/// because a probe costs four requests. The task runs to the end even if
/// its caller gives up, so that its temporary object is deleted.
async fn storage_lately(app: &App) -> Result<String, String> {
    let app = app.clone();
    let look = tokio::spawn(async move {
        // Held during the check, so that concurrent callers wait for one result.
        let mut last = app.seen.storage.lock().await;
        match &*last {
            Some((at, seen)) if at.elapsed() < LATELY => seen.clone(),
            _ => {
                let seen = storage(&app).await;
                *last = Some((Instant::now(), seen.clone()));
                seen
            }
        }
    });

    look.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn storage(core: &Core) -> Result<String, String> {
    core.files
        .check()
        .await
        .map_err(|error| error.to_string())?;
    Ok("written, read and deleted a probe".into())
}

/// Returns the names and paths of the folders that the service writes to.
pub fn folders(core: &Core) -> Vec<(&'static str, PathBuf)> {
    let data = ("data", core.config.data_dir.clone());
    let objects = core
        .files
        .folder()
        .map(|folder| ("objects", folder.to_owned()));
    [Some(data), objects].into_iter().flatten().collect()
}

fn disk(core: &Core) -> Result<String, String> {
    let mut rooms = Vec::new();
    for (name, folder) in folders(core) {
        let free = disk::free(&folder)
            .map_err(|error| format!("the disk of the {name} folder cannot be asked: {error}"))?;
        let room = format!("{name} folder: {} MiB free", free / (1024 * 1024));
        // Below the reserve uploads are refused, so the node cannot do its whole work.
        if free < disk::LEAST {
            return Err(room);
        }

        rooms.push(room);
    }

    Ok(rooms.join("; "))
}

async fn seal(core: &Core, vault: &Vault) -> Result<String, String> {
    let now = core.clock.now();
    vault
        .sealing
        .check(now)
        .map_err(|error| error.to_string())?;

    // Another time stamp was due three months before, so something keeps it from being made.
    let ending = long_term::ending(core).await;
    if let (number @ 1.., Some(earliest)) = ending.map_err(|error| error.to_string())? {
        return Err(format!(
            "{number} seals are provable for less than 90 days, the first one until {earliest}: the log and the seal of an \
             envelope say why they get no new time stamp"
        ));
    }

    let expires_at = vault.sealing.expires_at();
    let is_ending = vault.sealing.check(now + long_term::WARNING).is_err();
    let ending = if is_ending {
        ", less than 90 days: replace it"
    } else {
        ""
    };
    Ok(format!("a key that is good until {expires_at}{ending}"))
}

async fn ledger(core: &Core, vault: &Vault) -> Result<String, String> {
    log::trusted(core, &vault.log)
        .await
        .map_err(|error| error.to_string())
}

/// Not part of readiness: the ledger continues without its witnesses.
async fn witnesses(core: &Core) -> Result<String, String> {
    let checked = log::cosignatures::check_witnesses(core).await;
    checked.map_err(|error| error.to_string())
}

/// Reports how far back bytes of destroyed records may live on in backups.
async fn backups(core: &Core) -> Result<String, String> {
    let oldest = installation::oldest_backup(core).await;
    let oldest = match oldest.map_err(|error| error.to_string())? {
        Some(at) => {
            let age = core.clock.now().as_seconds() - at.as_seconds();
            format!("the oldest known one is {} days old", age / 86_400)
        }
        None => "none is known, as those of other tools".to_owned(),
    };

    let destroyed = if core.files.has_record_keys() {
        "destroying a record's key destroys what they have of it"
    } else {
        "destroyed records live on in each of them: set storage.record_keys"
    };
    Ok(format!("{oldest}; {destroyed}"))
}

async fn clock(core: &Core) -> Result<String, String> {
    let checked = log::check_clock(core).await;
    checked.map_err(|error| error.to_string())
}

/// Checks the components without waiting for locks held while a component loads.
fn components(app: &App, of_organizations: bool) -> Result<String, String> {
    let broken = app.management.followed.broken();
    let mut broken = broken.iter();
    // Readiness ignores components of organizations: one tenant's upload must not take nodes out of service.
    if let Some(one) = broken.find(|one| one.org.is_none() || of_organizations) {
        let (component, why) = (&one.component, &one.why);
        return Err(format!(
            "{component} was activated and cannot be loaded: {why}"
        ));
    }

    match app.components.document_components_ready() {
        Some(Ok(())) => Ok("loaded, and their canaries passed".into()),
        Some(Err(error)) => Err(error.to_string()),
        // The server listens before they are loaded, and a load balancer should wait until they are.
        None => Err("document components are still being loaded".into()),
    }
}

/// Checks that providers are configured and respond.
async fn providers(core: &Core) -> Result<String, String> {
    let set_up = settings_of_providers(core)?;
    for slot in Slot::ALL.into_iter().filter(|slot| slot.is_provider()) {
        for (name, instance) in core.config.providers.instances(slot).into_iter().flatten() {
            // Any status proves that the provider responds.
            // This client may reach the networks of `providers.allow_networks`, where an operator's
            // provider can be.
            let asked = core.own_http.get(instance.base_url.clone());
            if let Err(error) = asked.timeout(PROVIDER_TIMEOUT).send().await {
                // Configured URLs may contain credentials.
                let why = error.without_url();
                return Err(format!("{slot} {name} cannot be reached: {why}"));
            }
        }
    }

    Ok(set_up)
}

fn settings_of_providers(core: &Core) -> Result<String, String> {
    let mut kinds = Vec::new();
    for (slot, kind, needed) in [
        (Slot::Signing, "signing", &["api_key", "webhook_secret"][..]),
        (Slot::Payment, "payment", &["secret_key", "webhook_secret"]),
        (Slot::Kba, "kba", &["secret_key"]),
        (Slot::Messaging, "messaging", &["auth_token"]),
        (Slot::Conversion, "conversion", &[]),
    ] {
        let mut names = Vec::new();
        // The sandboxes of the other kinds exist in development only, and none converts documents.
        let has_sandbox = !core.config.is_production() && slot != Slot::Conversion;
        if slot == Slot::Signing || has_sandbox {
            names.push(EMBEDDED.to_owned());
        }

        for (name, instance) in core.config.providers.instances(slot).into_iter().flatten() {
            let lacking = |secret: &&&str| !instance.secrets.contains_key(**secret);
            if let Some(missing) = needed.iter().find(lacking) {
                return Err(format!("{kind} provider {name} has no secret {missing}"));
            }
            // The payer's browser needs the key, and the first payment would fail without it.
            if slot == Slot::Payment && instance.publishable_key.is_none() {
                return Err(format!("{kind} provider {name} has no publishable_key"));
            }

            names.push(name.clone());
        }

        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        kinds.push(format!("{kind}: {names}"));
    }

    Ok(kinds.join("; "))
}
