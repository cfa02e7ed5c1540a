//! Checks on settings. They run at startup, so that an operator sees a bad value then and not at
//! the first request that needs it.

use std::path::{self, Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use url::Url;

use super::{Config, ConfigError, EMBEDDED, RecordKeyPlace};
use holdfast_domain::checkpoint::is_key_name;
use holdfast_domain::component::Slot;
use holdfast_domain::publisher::problem_of;

/// Upper limit of `bulk.concurrency`: items of bulk batches in flight at one provider.
const MOST_AT_ONCE: usize = 1_000;

/// Folders of the data folder that a backup copies or removes.
const OF_BACKUPS: [&str; 4] = ["objects", "keys", "outbox", "backup-in-progress"];

/// Least value of `console.idle`: the use of a session is noted once a minute.
const LEAST_IDLE: Duration = Duration::from_secs(120);

impl Config {
    /// Resolves secret files and rejects invalid values.
    pub fn checked(mut self) -> Result<Self, ConfigError> {
        for (name, instance) in self
            .providers
            .signing
            .instances
            .iter_mut()
            .chain(&mut self.providers.payment.instances)
            .chain(&mut self.providers.kba.instances)
            .chain(&mut self.providers.messaging.instances)
            .chain(&mut self.providers.conversion.instances)
        {
            // First, because all later checks see the final values.
            instance.read_secret_files(name)?;
        }

        // Development settings are refused first: they would weaken the checks that follow.
        if self.is_production() {
            self.refuse_development_settings()?;
        }

        self.check_urls()?;
        self.check_durations()?;
        self.check_numbers()?;
        // A mistyped key would refuse every upload of its publisher later, far from the setting.
        self.check_publishers()?;
        self.check_console()?;
        self.check_networks()?;
        self.check_witnesses()?;

        if let Some(why) = self.components.state.problem() {
            return Err(ConfigError::refused("components.state", why));
        }

        // A wrong filter hides all further messages, so it is refused before logging begins.
        check_filter(&self.log.filter)?;
        self.seal.key()?;
        self.http.check()?;
        self.check_timestamps()?;

        // With both, it would be undefined which key encrypts new objects.
        if self.storage.encryption_key_file.is_some() && self.storage.encryption_kms_key.is_some() {
            return Err(ConfigError::refused(
                "storage.encryption_kms_key",
                "does not go together with storage.encryption_key_file",
            ));
        }

        self.check_record_keys()?;

        for slot in Slot::ALL {
            self.check_providers(slot)?;
        }

        Ok(self)
    }

    /// Refuses keys of records beside the objects that they encrypt: a backup of the objects would have the keys, too.
    fn check_record_keys(&self) -> Result<(), ConfigError> {
        let is_beside = match self.record_keys() {
            None => false,
            Some(RecordKeyPlace::Folder(folder)) => {
                let (folder, data) = (absolute(&folder), absolute(&self.data_dir));
                let copied = OF_BACKUPS.iter().map(|name| data.join(name));
                let objects = self
                    .storage_url()
                    .and_then(|url| url.strip_prefix("file://"));
                let mut others = copied.chain(objects.map(PathBuf::from));
                folder == data || others.any(|other| folder.starts_with(other))
            }
            Some(RecordKeyPlace::Url(url)) => {
                let objects = self.storage_url().unwrap_or_default().trim_end_matches('/');
                !objects.is_empty() && (url == objects || url.starts_with(&format!("{objects}/")))
            }
        };

        // A path with `..` can lead there, too.
        let place = self.storage.record_keys.as_deref().unwrap_or_default();
        if is_beside || place.split('/').any(|part| part == "..") {
            let why = "must be a place of its own: backups of the documents must not have the keys";
            return Err(ConfigError::refused("storage.record_keys", why));
        }
        Ok(())
    }

    /// Requires `https` when no trust roots are set: the connection is then the only proof of who
    /// issued a timestamp.
    fn check_timestamps(&self) -> Result<(), ConfigError> {
        let url = self.seal.timestamp_url.as_ref();
        let open = url.is_some_and(|url| url.scheme() != "https");
        if open && self.seal.timestamp_trust_file.is_none() {
            let why = "must begin with https:// where seal.timestamp_trust_file is not set";
            return Err(ConfigError::refused("seal.timestamp_url", why));
        }
        Ok(())
    }

    /// Refuses to listen on a public interface while `env` is unset: the payment and identity
    /// sandboxes would otherwise pass for real providers.
    pub fn check_exposure(&self) -> Result<(), ConfigError> {
        if self.env.is_none() && !self.listen.ip().is_loopback() {
            let why = format!(
                "is not set, and {} is no loopback address: set production, or development to \
                 serve other machines with the sandboxes for payments and identity checks",
                self.listen
            );
            return Err(ConfigError::refused("env", why));
        }

        Ok(())
    }

    fn check_urls(&self) -> Result<(), ConfigError> {
        // Links in mails are made of these addresses and live for weeks, so a mistake has to show at the
        // start.
        for (key, url) in [
            ("public_url", &self.public_url),
            ("embed_url", &self.embed_url),
            ("signing_url", &self.signing_url),
        ] {
            if let Some(url) = url {
                check_web_url(key, url)?;
                // Paths are appended to the URL.
                if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
                    let why = "must be a plain address: no user, no query, no fragment";
                    return Err(ConfigError::refused(key, why));
                }
            }
        }

        for (key, url) in [
            ("seal.timestamp_url", &self.seal.timestamp_url),
            ("traces.endpoint", &self.traces.endpoint),
        ] {
            if let Some(url) = url {
                check_web_url(key, url)?;
            }
        }

        if let Some(url) = &self.database_url
            && !["sqlite:", "postgres://", "postgresql://"]
                .iter()
                .any(|begin| url.starts_with(begin))
        {
            // The value may contain a password, so the error does not repeat it.
            let why = "must begin with sqlite://, postgres:// or postgresql://";
            return Err(ConfigError::refused("database_url", why));
        }

        if let Some(oidc) = &self.auth.oidc {
            check_web_url("auth.oidc.issuer", &oidc.issuer)?;
            // The issuer's keys come over this connection: an attacker on the way could replace them and sign
            // in as anyone.
            if oidc.issuer.scheme() != "https" && !self.providers.allow_insecure {
                return Err(ConfigError::refused("auth.oidc.issuer", "must be https"));
            }
            // Without an audience, tokens that the issuer made for other applications would be accepted.
            if oidc.audience.trim().is_empty() {
                return Err(ConfigError::refused("auth.oidc.audience", "is empty"));
            }
        }

        Ok(())
    }

    fn check_durations(&self) -> Result<(), ConfigError> {
        let some = |duration| Some(duration);
        for (key, duration) in [
            ("webhooks.retention", some(self.webhooks.retention)),
            ("webhooks.log_retention", self.webhooks.log_retention),
            ("storage.archive_retention", self.storage.archive_retention),
            (
                "components.compile_limit",
                some(self.components.compile_limit),
            ),
            ("auth.max_token_ttl", some(self.auth.max_token_ttl)),
            ("sweep_interval", self.sweep_interval),
        ] {
            // Zero is no way to switch these off: it would delete at once, or run a task without pause.
            if duration == Some(Duration::ZERO) {
                return Err(ConfigError::refused(key, "must be more than 0"));
            }
        }

        Ok(())
    }

    fn check_numbers(&self) -> Result<(), ConfigError> {
        if self.webhooks.max_attempts == 0 || self.webhooks.retry_delays.is_empty() {
            let why = "needs at least one attempt and one delay";
            return Err(ConfigError::refused("webhooks", why));
        }
        if self.bulk.concurrency > MOST_AT_ONCE {
            let why = format!("must be at most {MOST_AT_ONCE}");
            return Err(ConfigError::refused("bulk.concurrency", why));
        }
        if !(0.0..=1.0).contains(&self.traces.sample) {
            let why = "must be between 0 and 1";
            return Err(ConfigError::refused("traces.sample", why));
        }

        Ok(())
    }

    fn check_console(&self) -> Result<(), ConfigError> {
        let (idle, longest) = (self.console.idle, self.console.session_ttl);
        // A shorter limit than the interval of notes would end sessions that are in use.
        if (LEAST_IDLE..=longest).contains(&idle) {
            Ok(())
        } else {
            Err(ConfigError::refused(
                "console.idle",
                "must be from 2m to console.session_ttl",
            ))
        }
    }

    fn check_publishers(&self) -> Result<(), ConfigError> {
        match problem_of(&self.components.trusted) {
            None => Ok(()),
            Some((name, why)) => Err(ConfigError::refused(
                format!("components.trusted.{name}"),
                why,
            )),
        }
    }

    fn check_providers(&self, slot: Slot) -> Result<(), ConfigError> {
        let Some(instances) = self.providers.instances(slot) else {
            return Ok(());
        };

        // The section is `providers.signing`, the slot `provider.signing`.
        let kind = slot.as_str().replacen("provider", "providers", 1);
        let default = self.providers.default_of(slot);
        if default != EMBEDDED && !instances.contains_key(default) {
            let why = format!("no instance is called {default}");
            return Err(ConfigError::refused(format!("{kind}.default"), why));
        }

        // The signing default is the built-in room, so only the other kinds can lack one.
        let unnamed = match slot {
            Slot::Payment => self.providers.payment.default.is_none(),
            Slot::Kba => self.providers.kba.default.is_none(),
            Slot::Messaging => self.providers.messaging.default.is_none(),
            Slot::Conversion => self.providers.conversion.default.is_none(),
            _ => false,
        };
        if unnamed && instances.len() > 1 {
            let why = "there are several instances: name the one to use";
            return Err(ConfigError::refused(format!("{kind}.default"), why));
        }

        for (name, instance) in instances {
            let key = format!("{kind}.{name}.base_url");
            check_web_url(&key, &instance.base_url)?;
            // Every call carries the instance's secret.
            if instance.base_url.scheme() != "https" && !self.providers.allow_insecure {
                return Err(ConfigError::refused(key, "must be https"));
            }
            if instance.timeout.is_zero() {
                let key = format!("{kind}.{name}.timeout");
                return Err(ConfigError::refused(key, "must be more than 0"));
            }
        }

        Ok(())
    }

    /// Loopback and link-local networks have services of this machine and its cloud, and public ones need no setting.
    fn check_networks(&self) -> Result<(), ConfigError> {
        let mut networks = self.providers.allow_networks.iter();
        match networks.find(|network| !is_private(network)) {
            Some(network) => Err(ConfigError::refused(
                "providers.allow_networks",
                format!("{network} is no private network"),
            )),
            None => Ok(()),
        }
    }

    /// Refuses witnesses that would count twice, and a quorum that cannot be reached.
    fn check_witnesses(&self) -> Result<(), ConfigError> {
        let refused = |why: String| Err(ConfigError::refused("ledger.witnesses", why));
        let witnesses = &self.ledger.witnesses;
        for (index, witness) in witnesses.iter().enumerate() {
            let name = &witness.name;
            check_web_url("ledger.witnesses", &witness.url)?;
            if witness.url.scheme() != "https" && !self.providers.allow_insecure {
                return refused(format!("the url of {name} must be https"));
            }

            let mut before = witnesses.iter().take(index);
            // One key under two names would be a quorum of one.
            if before.any(|other| {
                other.name == *name || other.key.public_key() == witness.key.public_key()
            }) {
                return refused(format!("{name} has the name or the key of another one"));
            }
        }

        match self.ledger.quorum {
            Some(quorum) if quorum == 0 || quorum > witnesses.len() => Err(ConfigError::refused(
                "ledger.quorum",
                "must be from 1 to the number of ledger.witnesses",
            )),
            _ => self.check_own_witness(),
        }
    }

    fn check_own_witness(&self) -> Result<(), ConfigError> {
        match &self.witness.name {
            Some(name) if !is_key_name(name) => Err(ConfigError::refused(
                "witness.name",
                "must have no spaces and no +",
            )),
            None if !self.witness.logs.is_empty() => Err(ConfigError::refused(
                "witness.name",
                "is not set, and witness.logs are: cosignatures have the name of their witness",
            )),
            _ => Ok(()),
        }
    }

    fn refuse_development_settings(&self) -> Result<(), ConfigError> {
        // A shifted clock makes false evidence, and insecure receivers could be read along.
        let development_only = [
            ("clock_offset", self.clock_offset.is_some()),
            ("sweep_interval", self.sweep_interval.is_some()),
            ("webhooks.allow_insecure", self.webhooks.allow_insecure),
            ("providers.allow_insecure", self.providers.allow_insecure),
        ];

        match development_only.iter().find(|(_, set)| *set) {
            Some((key, _)) => Err(ConfigError::refused(*key, "not allowed in production")),
            None => Ok(()),
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn check_web_url(key: &str, url: &Url) -> Result<(), ConfigError> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        let why = "must be an address like https://host, and nothing but http or https";
        return Err(ConfigError::refused(key, why));
    }
    Ok(())
}

/// Checks filters such as `info` or `info,sqlx=warn`. The parser of `tracing` takes an unknown
/// level for a module name and then logs nothing at all.
fn check_filter(filter: &str) -> Result<(), ConfigError> {
    let level = |text: &str| text.parse::<LevelFilter>().is_ok();
    let directives = filter.split(',').map(str::trim);
    let wrong = directives
        .clone()
        .find(|directive| match directive.rsplit_once('=') {
            Some((target, last)) => target.is_empty() || !level(last),
            None => !level(directive),
        });
    if let Some(wrong) = wrong {
        let why = format!(
            "{wrong:?} is neither a level nor MODULE=LEVEL; levels are off, error, warn, info, debug, trace"
        );
        return Err(ConfigError::refused("log.filter", why));
    }

    EnvFilter::builder()
        .parse(filter)
        .map_err(|error| ConfigError::refused("log.filter", error.to_string()))?;

    Ok(())
}

/// Whether a network has private addresses only (RFC 1918, RFC 6598, RFC 4193).
fn is_private(network: &IpNet) -> bool {
    const PRIVATE: [&str; 5] = [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "fc00::/7",
    ];

    let private = PRIVATE.iter().filter_map(|text| text.parse::<IpNet>().ok());
    private.into_iter().any(|private| private.contains(network))
}
