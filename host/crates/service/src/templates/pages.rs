//! Pages of documents as people see them: sizes, pictures and text, computed in the sandbox and
//! cached.
//!
//! Cache keys contain the document's SHA-256, so entries are never stale. The caller checks access
//! first.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::future::Cache;

use holdfast_adapters::files::StoredObjectKey;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::documents;
use holdfast_components::rules::placement::{DocumentFacts, PageFacts, TextLine};
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::envelope::StoredFile;
use holdfast_domain::facts::FactPlace;
use holdfast_domain::id::OrgId;
use holdfast_domain::template::Template;
use holdfast_platform::documents::admit;
use holdfast_platform::fields::placement_area;
use holdfast_platform::room::shown::ShownDocument;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::{StoreError, WriteTransaction, page_facts};

/// Widths of a page's picture in pixels: for a phone held upright, and for a large or sharp screen.
pub const WIDTHS: [u32; 2] = [800, 1_600];
/// Capacity of the picture cache, in bytes.
const PICTURE_BYTES: u64 = 64 * 1024 * 1024;
/// Capacity of the text cache, in bytes.
const TEXT_BYTES: u64 = 16 * 1024 * 1024;
/// Capacity of the cache of documents with entries, in bytes.
const FILLED_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes counted for a line beside its text.
const LINE_BYTES: usize = 64;
/// Time for which a document that exceeded the limits is not tried again.
const TOO_HEAVY: Duration = Duration::from_secs(600);
/// Number of documents with cached page sizes.
const DOCUMENTS: u64 = 1_000;

/// Bytes assumed for a document of unknown size.
const UNKNOWN_SIZE: u64 = 16 * 1024 * 1024;

/// Key of a document's pages: its SHA-256, and the component that read them.
type FactsKey = (String, Option<ComponentIdentity>);
/// Key of a page: the document's SHA-256, and the page number from 1.
type PageKey = (String, u32);
/// Key of a picture: the page, and the width in pixels.
type PictureKey = (PageKey, u32);

/// Caches of page sizes, pictures and texts.
pub struct PageCache {
    facts: Cache<FactsKey, Arc<[PageFacts]>>,
    pictures: Cache<PictureKey, Bytes>,
    texts: Cache<PageKey, Arc<[TextLine]>>,
    /// Documents with the entries of earlier signers, by [`ShownDocument::look`].
    filled: Cache<String, Bytes>,
    /// Documents that exceeded the limits of a call and are not tried again for a while.
    too_heavy: Cache<String, Arc<ServiceError>>,
}

impl Default for PageCache {
    fn default() -> Self {
        Self {
            facts: Cache::new(DOCUMENTS),
            pictures: weighed(PICTURE_BYTES, |picture: &Bytes| picture.len()),
            texts: weighed(TEXT_BYTES, |lines: &Arc<[TextLine]>| {
                lines.iter().map(|line| LINE_BYTES + line.text.len()).sum()
            }),
            filled: weighed(FILLED_BYTES, |pdf: &Bytes| pdf.len()),
            too_heavy: Cache::builder()
                .max_capacity(DOCUMENTS)
                .time_to_live(TOO_HEAVY)
                .build(),
        }
    }
}

impl PageCache {
    /// Forgets all pages. Pages are named by digests, which do not show the record; all are read again.
    pub fn forget(&self) {
        self.facts.invalidate_all();
        self.pictures.invalidate_all();
        self.texts.invalidate_all();
        self.filled.invalidate_all();
        self.too_heavy.invalidate_all();
    }
}

fn weighed<K: Hash + Eq + Send + Sync + 'static, T: Clone + Send + Sync + 'static>(
    bytes: u64,
    weight: impl Fn(&T) -> usize + Send + Sync + 'static,
) -> Cache<K, T> {
    Cache::builder()
        .weigher(move |_: &K, kept: &T| u32::try_from(weight(kept)).unwrap_or(u32::MAX))
        .max_capacity(bytes)
        .build()
}

/// Returns the pages of a document, in order.
pub async fn facts(
    core: &Core,
    pages: &PageCache,
    document: &StoredFile,
) -> Result<Arc<[PageFacts]>, ServiceError> {
    // Another component may read other sizes, so its identity is part of the key.
    let identity = core.components.placement_identity();
    let read = async {
        // The key of the object names its organization, because this function is called without one.
        let org = StoredObjectKey::parse(&document.key).map(|key| key.org);
        if let (Some(org), Some(identity)) = (&org, &identity)
            && let Some(kept) = kept(core, org, document, identity).await
        {
            return Ok::<Vec<_>, ServiceError>(kept);
        }

        let rules = core.placement(None);
        let read = made_of(core, pages, document, async |pdf, owner| {
            let rules = rules.clone().for_owner(owner);
            Ok(rules.inspect(pdf).await??.pages)
        });
        let read = read.await?;

        // Only a later visitor needs it.
        if let (Some(org), Ok(identity)) = (org, rules.identity()) {
            let kept = async {
                let mut tx = core.store.begin().await?;
                keep_pages(core, &mut tx, (&org, &document.sha256), &identity, &read).await?;
                tx.commit().await
            };
            if let Err(error) = kept.await {
                tracing::warn!(%error, "pages of a document could not be kept");
            }
        }

        Ok(read)
    };

    let key = (document.sha256.clone(), identity.clone());
    let facts = &pages.facts;
    let found = facts.try_get_with(key, async { Ok(read.await?.into()) });
    found.await.map_err(ServiceError::shared)
}

/// Returns the pages of a document that this component read before.
async fn kept(
    core: &Core,
    org: &OrgId,
    document: &StoredFile,
    identity: &ComponentIdentity,
) -> Option<Vec<PageFacts>> {
    let found = async {
        let mut connection = core.store.read().await?;
        page_facts::get(
            &mut connection,
            org,
            &document.sha256,
            &page_facts::reader(identity),
        )
        .await
    };

    match found.await {
        Ok(kept) => kept,
        // The rows only save time: the document can be read again.
        Err(error) => {
            tracing::warn!(%error, "kept pages of a document could not be read");
            None
        }
    }
}

/// Keeps the pages of a template's document with it.
pub async fn keep(
    core: &Core,
    tx: &mut WriteTransaction,
    template: &Template,
    facts: &DocumentFacts,
    identity: &ComponentIdentity,
) -> Result<(), StoreError> {
    match &template.document {
        Some(document) => {
            let document = (&template.org, document.sha256.as_str());
            keep_pages(core, tx, document, identity, &facts.pages).await
        }
        None => Ok(()),
    }
}

async fn keep_pages(
    core: &Core,
    tx: &mut WriteTransaction,
    (org, sha256): (&OrgId, &str),
    identity: &ComponentIdentity,
    pages: &[PageFacts],
) -> Result<(), StoreError> {
    let now = core.clock.now();
    page_facts::keep(tx, org, sha256, &page_facts::reader(identity), pages, now).await
}

/// Returns a page as a PNG with the entries of earlier signers: the narrowest of [`WIDTHS`] that
/// is at least `width` pixels wide, or else the widest. Concurrent callers share one computation.
pub async fn picture(
    core: &Core,
    pages: &PageCache,
    document: &ShownDocument,
    page: u32,
    width: u32,
) -> Result<Bytes, ServiceError> {
    // Two widths keep the cache small. A picture for each screen would fill it.
    let [narrow, wide] = WIDTHS;
    let width = if width <= narrow { narrow } else { wide };

    // Every document has a first page, so it does not wait for the page count.
    if page != 1 {
        check_page(core, pages, document, page).await?;
    }

    let draw = made_of(core, pages, &document.file, async |pdf, owner| {
        let pdf = with_entries(core, pages, document, pdf, &owner).await?;
        let rules = core.documents(None).for_owner(owner);
        Ok(rules.page_image(pdf, page, width).await??.png.into())
    });

    let key = ((document.look(), page), width);
    pages
        .pictures
        .try_get_with(key, draw)
        .await
        .map_err(ServiceError::shared)
}

/// Returns the surroundings of a place on a page as a PNG, with a frame around the place. Kept with the pictures of pages.
pub async fn excerpt(
    core: &Core,
    pages: &PageCache,
    org: &OrgId,
    document: &StoredFile,
    place: &FactPlace,
) -> Result<Bytes, ServiceError> {
    // A place may reach beyond the page, where nothing is to be seen.
    let (x, y) = (place.x.clamp(0.0, 1.0), place.y.clamp(0.0, 1.0));
    let (right, bottom) = (place.x + place.w, place.y + place.h);
    let area = documents::Area {
        page: place.page,
        x,
        y,
        w: right.clamp(0.0, 1.0) - x,
        h: bottom.clamp(0.0, 1.0) - y,
    };
    if area.w <= 0.0 || area.h <= 0.0 {
        return Err(ServiceError::NotFound("Picture"));
    }

    let width = WIDTHS[1];
    let priority = core.store.priority();
    // An excerpt has no replaceable meaning, so the built-in renderer draws it.
    let rules = core.components.embedded_documents(org, priority);
    let draw = made_of(core, pages, document, async |pdf, owner| {
        let rules = rules.clone().for_owner(owner);
        Ok(rules.excerpt(pdf, area, width).await??.png.into())
    });

    let look = format!("{} {x} {y} {right} {bottom}", document.sha256);
    let found = pages
        .pictures
        .try_get_with(((look, place.page), width), draw);
    found.await.map_err(ServiceError::shared)
}

/// Returns the pages of a document with the entries of earlier signers. A text that is too long for its field adds
/// pages at the end.
pub async fn shown_facts(
    core: &Core,
    pages: &PageCache,
    document: &ShownDocument,
) -> Result<Arc<[PageFacts]>, ServiceError> {
    if !document.may_have_more_pages() {
        return facts(core, pages, &document.file).await;
    }

    let read = made_of(core, pages, &document.file, async |pdf, owner| {
        let pdf = with_entries(core, pages, document, pdf, &owner).await?;
        let rules = core.placement(None).for_owner(owner);
        Ok(rules.inspect(pdf).await??.pages.into())
    });
    let key = (document.look(), core.components.placement_identity());
    let found = pages.facts.try_get_with(key, read);

    found.await.map_err(ServiceError::shared)
}

/// Draws the first page in the background, for a client that is about to request it. Most screens
/// get the narrow picture.
pub fn draw_first(core: &Core, pages: &Arc<PageCache>, document: ShownDocument) {
    let (core, pages) = (core.clone(), pages.clone());
    tokio::spawn(async move {
        if let Err(error) = picture(&core, &pages, &document, 1, WIDTHS[0]).await {
            tracing::debug!(%error, "first page could not be drawn");
        }
    });
}

/// Returns the lines of a page's text layer; a scan has none. The entries of earlier signers are
/// part of it, with a line that names the signer for each.
pub async fn text(
    core: &Core,
    pages: &PageCache,
    document: &ShownDocument,
    page: u32,
) -> Result<Arc<[TextLine]>, ServiceError> {
    check_page(core, pages, document, page).await?;
    let read = made_of(core, pages, &document.file, async |pdf, owner| {
        let pdf = with_entries(core, pages, document, pdf, &owner).await?;
        let reader = core.placement(None).for_owner(owner);
        let mut lines = reader.text(pdf, page).await??;
        for entry in document.entries() {
            let here = entry.areas.iter().filter(|area| area.page == page);
            lines.extend(here.map(|area| TextLine {
                text: entry.text(),
                area: placement_area(area),
            }));
        }

        Ok(lines.into())
    });

    let key = (document.look(), page);
    pages
        .texts
        .try_get_with(key, read)
        .await
        .map_err(ServiceError::shared)
}

/// Writes the entries of earlier signers into a document.
async fn with_entries(
    core: &Core,
    pages: &PageCache,
    document: &ShownDocument,
    pdf: Bytes,
    owner: &WorkOwner,
) -> Result<Bytes, ServiceError> {
    if !document.has_entries() {
        return Ok(pdf);
    }

    let fill = async {
        let entries = document.filled()?;
        let rules = core.documents(None).for_owner(owner.clone());
        Ok::<_, ServiceError>(rules.fill(pdf, entries).await??.into())
    };
    pages
        .filled
        .try_get_with(document.look(), fill)
        .await
        .map_err(ServiceError::shared)
}

async fn check_page(
    core: &Core,
    pages: &PageCache,
    document: &ShownDocument,
    page: u32,
) -> Result<(), ServiceError> {
    if page == 0 || page as usize > shown_facts(core, pages, document).await?.len() {
        return Err(ServiceError::NotFound("Page"));
    }
    Ok(())
}

/// Computes something from a document's bytes, with a memory reservation for them.
async fn made_of<T>(
    core: &Core,
    pages: &PageCache,
    document: &StoredFile,
    make: impl AsyncFnOnce(Bytes, WorkOwner) -> Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    let failed = &pages.too_heavy;
    if let Some(error) = failed.get(&document.sha256).await {
        return Err(ServiceError::shared(error));
    }

    // The key names the owner, so that one organization cannot take all turns.
    let owner = StoredObjectKey::parse(&document.key).map_or_else(WorkOwner::default, |key| {
        WorkOwner::new(&key.org, &key.owner)
    });
    let _room = admit(core, &owner, size(document)).await?;
    let pdf = core.files.get(document).await?;
    let made = make(pdf, owner).await;
    if let Err(ServiceError::Component(error)) = &made
        && error.by_document
    {
        // Cached, so that page views do not exhaust the sandbox again and again.
        let error = Arc::new(ServiceError::Component(error.again()));
        failed.insert(document.sha256.clone(), error).await;
    }

    made
}

/// Returns the size to reserve; an unknown size counts as large.
fn size(document: &StoredFile) -> u64 {
    match document.size {
        0 => UNKNOWN_SIZE,
        size => size.unsigned_abs(),
    }
}
