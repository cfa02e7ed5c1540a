//! Host interfaces of a provider component during one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use wasmtime::component::{Resource, ResourceTable};

use super::bindings::signing::holdfast::host as wit;
use super::egress::{BLOB_LIMIT, NetworkAccess, OutboundRequest};
use super::error::TooManyHostCalls;
use super::gate::MemoryReservation;
use super::instance_log::InstanceLogger;
use super::limits::CallLimits;
use super::room::RoomRecords;
use super::wasi::WasiHost;
use holdfast_base::config::SecretText;
use holdfast_domain::clock::Clock;
use holdfast_domain::component::InstanceLogLevel;
use holdfast_domain::hash::hmac_sha256;

/// Maximum number of bytes that one `read` of a blob returns.
const READ_LIMIT: usize = 64 * 1024;
/// Maximum length of a log message in bytes; the rest is cut off.
const LOG_LIMIT: usize = 4 * 1024;
/// Maximum number of handles of a component: blobs, secrets, streams.
const HANDLES: usize = 1_000;
/// Maximum total size of the documents that one call fetches, in bytes.
pub(super) const FETCHED: usize = 2 * BLOB_LIMIT;
/// Maximum number of random bytes that one call of the host returns.
const RANDOM_LIMIT: u32 = 1024;

/// Document that a component holds as a handle.
#[derive(Clone, Debug)]
pub struct LentBlob(pub Bytes);

/// Secret that a component can use but not read.
pub struct LentSecret(pub SecretText);

/// Provider instance of a call, with the settings, secrets and network access it may use.
#[derive(Clone)]
pub struct LentHost {
    /// Component and instance, for log lines.
    pub label: String,
    pub settings: Arc<BTreeMap<String, String>>,
    pub secrets: Arc<BTreeMap<String, SecretText>>,
    pub egress: NetworkAccess,
    /// Records of the signing room; only its component has them.
    pub room: Option<Arc<dyn RoomRecords>>,
    pub clock: Clock,
    /// Log for the administrators of the organization that has the instance.
    pub log: Option<InstanceLogger>,
}

/// Store data of one provider call.
pub struct LentResources {
    pub table: ResourceTable,
    pub(super) outbound: OutboundRequest,
    settings: Arc<BTreeMap<String, String>>,
    pub(super) room: Option<Arc<dyn RoomRecords>>,
    clock: Clock,
    log: Option<InstanceLogger>,
    /// WASI context, created at its first use.
    wasi: Option<Box<WasiHost>>,
    /// Remaining host calls.
    calls_left: u32,
    /// Remaining bytes of documents to fetch.
    pub fetch_left: usize,
    /// Reservation for fetched documents in the memory share of the component's owner.
    pub(super) fetched: Option<MemoryReservation>,
}

impl LentResources {
    pub(super) fn new(
        lease: LentHost,
        limits: &CallLimits,
        fetched: Option<MemoryReservation>,
    ) -> Self {
        let mut table = ResourceTable::new();
        // Handles live until the call ends, so a loop in the plugin could fill the memory with them.
        table.set_max_capacity(HANDLES);
        Self {
            table,
            outbound: OutboundRequest::new(
                lease.label,
                lease.egress.logging(lease.log.clone()),
                lease.secrets,
                limits.requests,
            ),
            settings: lease.settings,
            room: lease.room,
            clock: lease.clock,
            log: lease.log,
            // Most plugins need no WASI, so its context is made at the first use.
            wasi: None,
            calls_left: limits.host_calls,
            fetch_left: FETCHED,
            fetched,
        }
    }

    /// Returns the WASI context and the parts that its traits need.
    pub(super) fn wasi(&mut self) -> (&mut WasiHost, &mut ResourceTable, &mut OutboundRequest) {
        let wasi = self.wasi.get_or_insert_with(|| {
            let log = self.log.clone();
            Box::new(WasiHost::new(&self.outbound.label, self.clock, log))
        });
        (wasi, &mut self.table, &mut self.outbound)
    }

    /// Counts one host call. Fails above the limit, which ends the call of the component.
    pub fn count(&mut self) -> wasmtime::Result<()> {
        match self.calls_left.checked_sub(1) {
            Some(left) => {
                self.calls_left = left;
                Ok(())
            }
            None => Err(TooManyHostCalls.into()),
        }
    }
}

impl wit::blobs::Host for LentResources {}

/// `types` interfaces have no functions.
impl super::bindings::signing::holdfast::signing::types::Host for LentResources {}
impl super::bindings::payment::holdfast::payment::types::Host for LentResources {}
impl super::bindings::kba::holdfast::kba::types::Host for LentResources {}
impl super::bindings::messaging::holdfast::messaging::types::Host for LentResources {}
impl super::bindings::conversion::holdfast::conversion::types::Host for LentResources {}

impl wit::blobs::HostBlob for LentResources {
    async fn size(&mut self, blob: Resource<LentBlob>) -> wasmtime::Result<u64> {
        self.count()?;
        Ok(self.table.get(&blob)?.0.len() as u64)
    }

    async fn sha256(&mut self, blob: Resource<LentBlob>) -> wasmtime::Result<String> {
        self.count()?;
        Ok(hex::encode(Sha256::digest(&self.table.get(&blob)?.0)))
    }

    async fn read(
        &mut self,
        blob: Resource<LentBlob>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Vec<u8>> {
        self.count()?;
        let bytes = &self.table.get(&blob)?.0;
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let length = (length as usize).min(READ_LIMIT).min(bytes.len() - start);
        Ok(bytes.slice(start..start + length).to_vec())
    }

    async fn drop(&mut self, blob: Resource<LentBlob>) -> wasmtime::Result<()> {
        self.table.delete(blob)?;
        Ok(())
    }
}

impl wit::settings::Host for LentResources {
    async fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        self.count()?;
        Ok(self.settings.get(&key).cloned())
    }
}

impl wit::secrets::Host for LentResources {
    async fn open(&mut self, name: String) -> wasmtime::Result<Option<Resource<LentSecret>>> {
        self.count()?;
        match self.outbound.secrets.get(&name) {
            Some(secret) => Ok(Some(self.table.push(LentSecret(secret.clone()))?)),
            None => Ok(None),
        }
    }
}

impl wit::secrets::HostSecret for LentResources {
    async fn hmac_sha256(
        &mut self,
        secret: Resource<LentSecret>,
        message: Vec<u8>,
    ) -> wasmtime::Result<Vec<u8>> {
        self.count()?;
        let key = self.table.get(&secret)?.0.reveal().as_bytes();
        Ok(hmac_sha256(key, &[&message]).to_vec())
    }

    async fn equals(
        &mut self,
        secret: Resource<LentSecret>,
        candidate: String,
    ) -> wasmtime::Result<bool> {
        self.count()?;
        // In constant time: callbacks can be sent by anyone, with any candidate.
        let secret = self.table.get(&secret)?.0.reveal().as_bytes();
        Ok(secret.ct_eq(candidate.as_bytes()).into())
    }

    async fn drop(&mut self, secret: Resource<LentSecret>) -> wasmtime::Result<()> {
        self.table.delete(secret)?;
        Ok(())
    }
}

impl wit::log::Host for LentResources {
    async fn write(&mut self, level: wit::log::Level, message: String) -> wasmtime::Result<()> {
        self.count()?;
        note(&self.outbound.label, self.log.as_ref(), level, message);
        Ok(())
    }
}

/// Writes a component's message to the host's log, and to that of its instance, which has no details.
pub(super) fn note(
    component: &str,
    log: Option<&InstanceLogger>,
    level: wit::log::Level,
    mut message: String,
) {
    message.truncate(message.floor_char_boundary(LOG_LIMIT));
    // Lines of an instance are limited for each minute, so details would push out its errors.
    let shown = match level {
        wit::log::Level::Debug => None,
        wit::log::Level::Info => Some(InstanceLogLevel::Info),
        wit::log::Level::Warn => Some(InstanceLogLevel::Warn),
        wit::log::Level::Error => Some(InstanceLogLevel::Error),
    };
    if let (Some(log), Some(level)) = (log, shown) {
        log.write(level, &message);
    }

    match level {
        wit::log::Level::Debug => tracing::debug!(component, "{message}"),
        wit::log::Level::Info => tracing::info!(component, "{message}"),
        wit::log::Level::Warn => tracing::warn!(component, "{message}"),
        wit::log::Level::Error => tracing::error!(component, "{message}"),
    }
}

impl wit::clock::Host for LentResources {
    async fn now(&mut self) -> wasmtime::Result<u64> {
        self.count()?;
        Ok(u64::try_from(self.clock.now().as_millis()).unwrap_or_default())
    }
}

impl wit::random::Host for LentResources {
    async fn bytes(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        self.count()?;
        let mut bytes = vec![0; length.min(RANDOM_LIMIT) as usize];
        let filled = getrandom::fill(&mut bytes);
        filled.map_err(|error| wasmtime::Error::msg(error.to_string()))?;
        Ok(bytes)
    }
}
