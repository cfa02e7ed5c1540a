//! Pages of documents as people see them: sizes, pictures and text, made in the
//! sandbox and kept for a while.
//!
//! What is kept is named by the document's SHA-256, so that it is never stale;
//! who may see it is decided before it is asked for.

use std::sync::Arc;

use bytes::Bytes;
use moka::future::Cache;
use tokio::sync::OwnedSemaphorePermit;

use super::ServiceError;
use super::uploads::admit;
use crate::app::App;
use crate::components::rules::placement::{PageFacts, TextLine};
use crate::domain::envelope::StoredFile;

/// Pixels across a page's picture; sharp enough for a phone held close.
pub const WIDTH: u32 = 1_100;
/// Bytes of pictures that are kept.
const PICTURE_BYTES: u64 = 64 * 1024 * 1024;
/// Documents whose page sizes are kept.
const DOCUMENTS: u64 = 1_000;

/// Bytes that a document of unknown size is taken for.
const UNKNOWN_SIZE: u64 = 16 * 1024 * 1024;

/// A page of a document: its SHA-256, and the page from 1.
type PageKey = (String, u32);

/// What was made lately.
pub struct Pages {
    facts: Cache<String, Arc<[PageFacts]>>,
    pictures: Cache<PageKey, Bytes>,
}

impl Default for Pages {
    fn default() -> Self {
        let weight =
            |_: &PageKey, picture: &Bytes| u32::try_from(picture.len()).unwrap_or(u32::MAX);
        Self {
            facts: Cache::new(DOCUMENTS),
            pictures: Cache::builder()
                .weigher(weight)
                .max_capacity(PICTURE_BYTES)
                .build(),
        }
    }
}

/// The pages of a document in their order.
pub async fn facts(app: &App, document: &StoredFile) -> Result<Arc<[PageFacts]>, ServiceError> {
    let read = async {
        let _room = room_for(app, document).await?;
        let pdf = app.files.get(document).await?;
        let facts = app.components.placement(None).inspect(pdf).await??;
        Ok(facts.pages.into())
    };
    let key = document.sha256.clone();
    app.pages
        .facts
        .try_get_with(key, read)
        .await
        .map_err(shared)
}

/// A page as a PNG, [`WIDTH`] pixels wide. Who asks while it is being made waits
/// for that one.
pub async fn picture(app: &App, document: &StoredFile, page: u32) -> Result<Bytes, ServiceError> {
    // Every document has a first page: nobody waits until the others are counted.
    if page != 1 && (page == 0 || page as usize > facts(app, document).await?.len()) {
        return Err(ServiceError::NotFound("Page"));
    }
    let draw = async {
        let _room = room_for(app, document).await?;
        let pdf = app.files.get(document).await?;
        let drawn = app
            .components
            .documents(None)
            .page_image(pdf, page, WIDTH)
            .await??;
        Ok(drawn.png.into())
    };
    let key = (document.sha256.clone(), page);
    app.pages
        .pictures
        .try_get_with(key, draw)
        .await
        .map_err(shared)
}

/// Has the first page drawn, for who is about to ask for it.
pub fn draw_first(app: &App, document: StoredFile) {
    let app = app.clone();
    tokio::spawn(async move {
        if let Err(error) = picture(&app, &document, 1).await {
            tracing::debug!(%error, "a first page could not be drawn");
        }
    });
}

/// The lines of a page's text layer. A scan has none.
pub async fn text(
    app: &App,
    document: &StoredFile,
    page: u32,
) -> Result<Vec<TextLine>, ServiceError> {
    let _room = room_for(app, document).await?;
    let pdf = app.files.get(document).await?;
    Ok(app.components.placement(None).text(pdf, page).await??)
}

/// The right to hold a document in memory. One of unknown size counts as a large
/// one.
async fn room_for(app: &App, document: &StoredFile) -> Result<OwnedSemaphorePermit, ServiceError> {
    let size = match document.size {
        0 => UNKNOWN_SIZE,
        size => size.unsigned_abs(),
    };
    admit(app, size).await
}

/// The error itself for whoever asked alone, and its words for all others.
fn shared(error: Arc<ServiceError>) -> ServiceError {
    Arc::try_unwrap(error).unwrap_or_else(|error| match &*error {
        ServiceError::Unreadable { message, reason } => ServiceError::Unreadable {
            message: message.clone(),
            reason: reason.clone(),
        },
        other => ServiceError::Internal(other.to_string()),
    })
}
