//! `[http]`.

use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, duration};

/// Limits on connections, and how long a client may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Connections at once. A process that may open fewer files has fewer.
    pub connections: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams: u32,
    /// How long a client may take to send the head of a request.
    #[serde(deserialize_with = "duration")]
    pub header_timeout: Duration,
    /// How long a client may send nothing of a body that it began.
    #[serde(deserialize_with = "duration")]
    pub body_timeout: Duration,
    /// How long a client may read nothing of an answer.
    #[serde(deserialize_with = "duration")]
    pub write_timeout: Duration,
    /// How long a connection stays open without a request.
    #[serde(deserialize_with = "duration")]
    pub idle_timeout: Duration,
    /// Bytes of request bodies held in memory, over all requests.
    pub buffered_bytes: usize,
    /// How long the server may take to end after SIGTERM.
    #[serde(deserialize_with = "duration")]
    pub stop_grace: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 4_096,
            streams: 100,
            header_timeout: seconds(10),
            body_timeout: seconds(30),
            write_timeout: seconds(30),
            idle_timeout: seconds(75),
            buffered_bytes: 128 * 1024 * 1024,
            stop_grace: seconds(20),
        }
    }
}

impl HttpSettings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refused = |key: &str, why: &str| {
            Err(ConfigError::Refused {
                key: format!("http.{key}"),
                why: why.into(),
            })
        };
        for (key, timeout) in [
            ("header_timeout", self.header_timeout),
            ("body_timeout", self.body_timeout),
            ("write_timeout", self.write_timeout),
            ("idle_timeout", self.idle_timeout),
        ] {
            if timeout.is_zero() {
                return refused(key, "must be more than 0");
            }
        }
        if self.connections == 0 {
            return refused("connections", "must be at least 1");
        }
        if self.streams == 0 {
            return refused("streams", "must be at least 1");
        }
        // One JSON body has to fit.
        if self.buffered_bytes < 1024 * 1024 {
            return refused("buffered_bytes", "must be at least 1048576");
        }
        Ok(())
    }
}
