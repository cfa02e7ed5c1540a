//! Errors of the settings. Each text names the key as the operator wrote it.

use figment::error::Kind;

/// Prefix of environment variables that hold settings.
const PREFIX: &str = "HOLDFAST_";

/// Reason the settings were rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value of the wrong type, an unknown key, or a file that is not TOML.
    #[error("invalid setting: {0}")]
    Invalid(String),
    /// An invalid value, or two settings that contradict each other.
    #[error("invalid setting: {}: {why}", as_written(key))]
    Refused {
        /// Key as in the file: `webhooks.retention`.
        key: String,
        /// Reason for the refusal.
        why: String,
    },
    /// The settings file does not exist.
    #[error("there is no settings file {0}")]
    NoFile(String),
    /// A secret's file cannot be read.
    #[error("secret {name} of provider {instance}: cannot read the file {file}: {source}")]
    SecretFile {
        /// Name of the secret.
        name: String,
        /// Provider instance it belongs to.
        instance: String,
        /// Configured path of the file.
        file: String,
        /// I/O error.
        source: std::io::Error,
    },
}

impl ConfigError {
    /// Returns the error for a rejected value.
    pub fn refused(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused {
            key: key.into(),
            why: why.into(),
        }
    }

    /// Converts the first error that figment reports.
    pub(super) fn unreadable(error: &figment::Error) -> Self {
        // The path is that of the operator's file; figment's own text names profiles, which operators never
        // see.
        let mut path = error.path.clone();
        let why = match &error.kind {
            Kind::UnknownField(name, known) => {
                // figment includes the field's name in the path for some errors only.
                if path.last() != Some(name) {
                    path.push(name.clone());
                }
                format!("unknown; known are {}", known.join(", "))
            }
            kind => kind.to_string(),
        };

        if path.is_empty() {
            return Self::Invalid(error.to_string());
        }

        let key = path.join(".");
        let file = error
            .metadata
            .as_ref()
            .and_then(|data| data.source.as_ref());
        // A variable overrides the file, so it is the place to look even if the file has the key as well.
        let place = match (variable(&key), file) {
            (Some(variable), _) => format!(" (variable {variable})"),
            (None, Some(file)) => format!(" (in {file})"),
            (None, None) => String::new(),
        };

        Self::Invalid(format!("{key}{place}: {why}"))
    }
}

/// Formats the key together with the environment variable that sets it, if there is one.
fn as_written(key: &str) -> String {
    match variable(key) {
        Some(variable) => format!("{key} (variable {variable})"),
        None => key.to_owned(),
    }
}

/// Returns the environment variable that sets this key, in the operator's spelling.
fn variable(key: &str) -> Option<String> {
    let expected = format!("{PREFIX}{}", key.replace('.', "__"));
    std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        // figment ignores the case of variables, so operators may use either.
        .find(|name| name.eq_ignore_ascii_case(&expected))
}
