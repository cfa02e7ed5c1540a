//! `[http]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ConfigError, duration};

/// Connection limits and client timeouts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Maximum number of open connections; lower when the process's file limit requires it.
    pub connections: usize,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    pub streams: u32,
    /// Timeout for receiving a request's head.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub header_timeout: Duration,
    /// Timeout between two pieces of a request body.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub body_timeout: Duration,
    /// Timeout for a client that does not read the response.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub write_timeout: Duration,
    /// Time after which an idle connection is closed.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub idle_timeout: Duration,
    /// Memory for buffered request bodies, in bytes, shared by all requests.
    pub buffered_bytes: usize,
    /// Time for requests in flight to finish after SIGTERM.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
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
        // Zero does not mean "no limit" here: every connection would be closed at once.
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

        // Without a connection or a stream, the server would listen and answer nothing.
        if self.connections == 0 {
            return refused("connections", "must be at least 1");
        }
        if self.streams == 0 {
            return refused("streams", "must be at least 1");
        }

        // One JSON body of the maximum size must fit.
        if self.buffered_bytes < 1024 * 1024 {
            return refused("buffered_bytes", "must be at least 1048576");
        }

        Ok(())
    }
}
