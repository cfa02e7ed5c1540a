//! An object store that injects faults.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFault {
    /// A put stores nothing.
    PutFails,
    /// A put stores its bytes, and its response is lost.
    AnswerLost,
    /// A put never returns.
    Stall,
    /// A get returns half of the bytes.
    ShortGet,
    /// The disk is full.
    NoSpace,
    /// A put overwrites an existing object, even when asked to create one.
    Overwrites,
}

/// An object folder that injects a fault into operations on one area.
pub struct FaultyStore {
    inner: LocalFileSystem,
    fault: StorageFault,
    area: &'static str,
    left: AtomicI64,
}

impl FaultyStore {
    pub fn new(folder: &std::path::Path, fault: StorageFault, area: &'static str) -> Arc<Self> {
        std::fs::create_dir_all(folder).unwrap();
        Arc::new(Self {
            inner: LocalFileSystem::new_with_prefix(folder).unwrap(),
            fault,
            area,
            left: AtomicI64::new(i64::MAX),
        })
    }

    /// Limits the fault to the next `times` operations.
    pub fn fail(&self, times: i64) {
        self.left.store(times, Ordering::SeqCst);
    }

    fn strikes(&self, faults: &[StorageFault], location: &Path) -> Option<StorageFault> {
        let here = location.as_ref().starts_with(self.area) && faults.contains(&self.fault);
        (here && self.left.fetch_sub(1, Ordering::SeqCst) > 0).then_some(self.fault)
    }
}

fn broken(errno: i32) -> object_store::Error {
    object_store::Error::Generic {
        store: "faulty",
        source: Box::new(std::io::Error::from_raw_os_error(errno)),
    }
}

const ENOSPC: i32 = 28;
const ECONNRESET: i32 = 104;

impl fmt::Display for FaultyStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} in {}", self.fault, self.area)
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        let faults = [
            StorageFault::PutFails,
            StorageFault::AnswerLost,
            StorageFault::Stall,
            StorageFault::NoSpace,
            StorageFault::Overwrites,
        ];
        match self.strikes(&faults, location) {
            Some(StorageFault::PutFails) => return Err(broken(ECONNRESET)),
            Some(StorageFault::NoSpace) => return Err(broken(ENOSPC)),
            Some(StorageFault::Stall) => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            Some(StorageFault::AnswerLost) => {
                self.inner.put_opts(location, payload, options).await?;
                return Err(broken(ECONNRESET));
            }
            Some(StorageFault::Overwrites) => options.mode = PutMode::Overwrite,
            Some(StorageFault::ShortGet) | None => {}
        }

        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut found = self.inner.get_opts(location, options).await?;
        if self.strikes(&[StorageFault::ShortGet], location).is_some() {
            let (meta, range) = (found.meta.clone(), found.range.clone());
            let attributes = found.attributes.clone();
            let extensions = found.extensions.clone();
            let bytes = found.bytes().await?;

            // The metadata still announces the full size, like a connection that breaks.
            let half = bytes.slice(..bytes.len() / 2);
            found = GetResult {
                payload: GetResultPayload::Stream(
                    futures::stream::once(async move { Ok(half) }).boxed(),
                ),
                meta,
                range,
                attributes,
                extensions,
            };
        }

        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
