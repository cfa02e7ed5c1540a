//! Records what a signer's pages delivered before the consent: the text about electronic records, pictures
//! of the document's pages, the document as PDF.

use super::Room;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::disclosure::DemonstratedAccess;
use holdfast_store::StoreError;
use holdfast_store::disclosures::{self as rows, DeliveredItem, DocumentReader, KeptDisclosure};

/// Deliveries to a signer so far.
#[derive(Clone, Debug, Default)]
pub struct DeliveredToSigner {
    items: Vec<(DeliveredItem, Timestamp)>,
}

impl DeliveredToSigner {
    /// Returns when an item was first delivered.
    pub fn first(&self, item: &DeliveredItem) -> Option<Timestamp> {
        let found = self.items.iter().find(|(known, _)| known == item);
        found.map(|(_, at)| *at)
    }

    /// Returns what shows that the signer could access a document of `page_count` pages; none if nothing of
    /// it was delivered.
    pub fn access(&self, page_count: usize, signer_confirmed: bool) -> Option<DemonstratedAccess> {
        let pages = self.items.iter().filter_map(|(item, at)| match item {
            DeliveredItem::Page(number) => Some((*number, *at)),
            DeliveredItem::Disclosure(_) | DeliveredItem::Pdf => None,
        });
        let pdf_delivered_at = self.first(&DeliveredItem::Pdf);
        // A tick alone shows nothing: the consent has to demonstrate access (15 U.S.C. §7001(c)(1)(C)(ii)).
        if pages.clone().next().is_none() && pdf_delivered_at.is_none() {
            return None;
        }

        let times = pages.clone().map(|(_, at)| at);
        let (first_page_at, last_page_at) = (times.clone().min(), times.max());
        // Browsers load pages in any order, and equal evidence has to make an equal certificate.
        let mut pages_delivered: Vec<u32> = pages.map(|(number, _)| number).collect();
        pages_delivered.sort_unstable();

        Some(DemonstratedAccess {
            pages_delivered,
            page_count,
            first_page_at,
            last_page_at,
            pdf_delivered_at,
            signer_confirmed,
        })
    }
}

impl Room {
    /// Records that a page with this text was delivered, and keeps the text.
    pub async fn disclosure_shown(
        &self,
        reader: DocumentReader<'_>,
        text: &KeptDisclosure,
    ) -> Result<(), StoreError> {
        let item = DeliveredItem::Disclosure(text.sha256.clone());
        if self.was_delivered(reader, &item).await? {
            return Ok(());
        }

        let now = self.clock.now();
        // Text and delivery commit together, so a digest in the evidence always has its words.
        let mut tx = self.store.begin().await?;
        rows::keep(&mut tx, reader.org, text, now).await?;
        rows::delivered(&mut tx, reader, &item, now).await?;

        tx.commit().await
    }

    /// Records that a part of the document was delivered.
    pub async fn part_delivered(
        &self,
        reader: DocumentReader<'_>,
        item: &DeliveredItem,
    ) -> Result<(), StoreError> {
        if self.was_delivered(reader, item).await? {
            return Ok(());
        }
        // Two requests may get here at once. The row that was first stays.
        let mut tx = self.store.begin().await?;
        rows::delivered(&mut tx, reader, item, self.clock.now()).await?;
        tx.commit().await
    }

    /// Returns all deliveries to a signer so far.
    pub async fn delivered_to(
        &self,
        reader: DocumentReader<'_>,
    ) -> Result<DeliveredToSigner, StoreError> {
        let mut connection = self.store.read().await?;
        let items = rows::deliveries(&mut connection, reader).await?;
        Ok(DeliveredToSigner { items })
    }

    /// Returns whether an item was delivered before. Pages are fetched again and again, and only the first
    /// time is written.
    async fn was_delivered(
        &self,
        reader: DocumentReader<'_>,
        item: &DeliveredItem,
    ) -> Result<bool, StoreError> {
        let delivered = self.delivered_to(reader).await?;
        Ok(delivered.first(item).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(items: &[(DeliveredItem, i64)]) -> DeliveredToSigner {
        let item = |(item, at): &(DeliveredItem, i64)| (item.clone(), Timestamp::from_millis(*at));
        DeliveredToSigner {
            items: items.iter().map(item).collect(),
        }
    }

    #[test]
    fn a_text_alone_demonstrates_no_access_to_the_document() {
        let text = DeliveredItem::Disclosure("00".into());
        assert_eq!(delivered(&[(text, 1)]).access(3, true), None);
        assert_eq!(DeliveredToSigner::default().access(3, true), None);
    }

    #[test]
    fn the_pages_that_were_delivered_are_named_and_no_others() {
        let pages = [(DeliveredItem::Page(3), 5), (DeliveredItem::Page(1), 9)];
        let access = delivered(&pages).access(4, true).unwrap();
        assert_eq!((access.pages_delivered, access.page_count), (vec![1, 3], 4));
        assert_eq!(access.first_page_at, Some(Timestamp::from_millis(5)));
        assert_eq!(access.last_page_at, Some(Timestamp::from_millis(9)));
        assert_eq!(access.pdf_delivered_at, None);
    }
}
