//! Why settings cannot be used. Each text names the key as the operator wrote it.

use figment::error::Kind;

/// Prefix of variables that are settings.
const PREFIX: &str = "HOLDFAST_";

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value of the wrong type, an unknown key, or a file that is not TOML.
    #[error("invalid setting: {0}")]
    Invalid(String),
    /// A value that makes no sense, or two settings that contradict each other.
    #[error("invalid setting: {}: {why}", as_written(key))]
    Refused {
        /// The key, as in the file: `webhooks.retention`.
        key: String,
        /// The reason.
        why: String,
    },
    /// The settings file is missing.
    #[error("there is no settings file {0}")]
    NoFile(String),
    /// A secret's file cannot be read.
    #[error("secret {name} of provider {instance}: cannot read the file {file}: {source}")]
    SecretFile {
        /// The secret's name.
        name: String,
        /// The provider instance.
        instance: String,
        /// Where it should be.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
}

impl ConfigError {
    /// A setting whose value is refused.
    pub(crate) fn refused(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused {
            key: key.into(),
            why: why.into(),
        }
    }

    /// The first problem that figment found.
    pub(super) fn unreadable(error: &figment::Error) -> Self {
        let mut path = error.path.clone();
        let why = match &error.kind {
            Kind::UnknownField(name, known) => {
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
        let place = match (variable(&key), file) {
            (Some(variable), _) => format!(" (variable {variable})"),
            (None, Some(file)) => format!(" (in {file})"),
            (None, None) => String::new(),
        };
        Self::Invalid(format!("{key}{place}: {why}"))
    }
}

/// The key, and the variable that sets it where one does.
fn as_written(key: &str) -> String {
    match variable(key) {
        Some(variable) => format!("{key} (variable {variable})"),
        None => key.to_owned(),
    }
}

/// The variable that sets a key or a part of it, in the operator's own spelling.
fn variable(key: &str) -> Option<String> {
    let expected = format!("{PREFIX}{}", key.replace('.', "__"));
    std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .find(|name| name.eq_ignore_ascii_case(&expected))
}
