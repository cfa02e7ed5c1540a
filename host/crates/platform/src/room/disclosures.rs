//! Records what a signer's pages delivered before the consent: the text about electronic records, pictures
//! of the document's pages, the document as PDF.

use std::collections::BTreeSet;

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
            DeliveredItem::Disclosure(_) | DeliveredItem::Displayed(_) | DeliveredItem::Pdf => None,
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
            all_pages_displayed_at: self.all_displayed_at(page_count),
            signer_confirmed,
        })
    }

    /// Returns the numbers of the pages that the browser displayed.
    pub fn displayed_pages(&self) -> Vec<u32> {
        let pages = self.items.iter().filter_map(|(item, _)| match item {
            DeliveredItem::Displayed(number) => Some(*number),
            _ => None,
        });
        pages.collect()
    }

    /// Returns when the last page of a document of `page_count` pages was first displayed; none before.
    fn all_displayed_at(&self, page_count: usize) -> Option<Timestamp> {
        let times: Option<Vec<Timestamp>> = page_numbers(page_count)
            .map(|number| self.first(&DeliveredItem::Displayed(number)))
            .collect();
        times?.into_iter().max()
    }

    /// Returns the first page that was not shown. `is_watched` is whether the browser reports the pages that it
    /// displays. One without the script, or with an empty report, does not: then a page counts as shown if its
    /// picture or the whole document was delivered.
    pub fn unshown_page(&self, page_count: usize, is_watched: bool) -> Option<u32> {
        let is_delivered = |number| {
            let page = self.first(&DeliveredItem::Page(number));
            page.or(self.first(&DeliveredItem::Pdf)).is_some()
        };
        let is_displayed = |number| self.first(&DeliveredItem::Displayed(number)).is_some();
        page_numbers(page_count).find(|number| {
            if is_watched {
                !is_displayed(*number)
            } else {
                !is_delivered(*number)
            }
        })
    }
}

fn page_numbers(page_count: usize) -> std::ops::RangeInclusive<u32> {
    1..=u32::try_from(page_count).unwrap_or(u32::MAX)
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

    /// Records that the browser displayed these pages; the first time of each counts.
    pub async fn pages_displayed(
        &self,
        reader: DocumentReader<'_>,
        pages: &BTreeSet<u32>,
    ) -> Result<(), StoreError> {
        let known = self.delivered_to(reader).await?;
        let items = pages.iter().map(|page| DeliveredItem::Displayed(*page));
        let new: Vec<DeliveredItem> = items.filter(|item| known.first(item).is_none()).collect();
        if new.is_empty() {
            return Ok(());
        }

        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        for item in &new {
            rows::delivered(&mut tx, reader, item, now).await?;
        }
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

    #[test]
    fn all_pages_are_displayed_when_the_last_one_is() {
        let pages = [1, 2].map(|page| (DeliveredItem::Page(page), 1));
        let displayed = [
            (DeliveredItem::Displayed(2), 8),
            (DeliveredItem::Displayed(1), 5),
        ];
        let first = [&pages[..], &displayed[..1]].concat();
        let first = delivered(&first);
        assert_eq!(first.unshown_page(2, true), Some(1));
        assert_eq!(first.access(2, true).unwrap().all_pages_displayed_at, None);

        let both = delivered(&[&pages[..], &displayed[..]].concat());
        assert_eq!(both.unshown_page(2, true), None);
        let at = both.access(2, true).unwrap().all_pages_displayed_at;
        assert_eq!(at, Some(Timestamp::from_millis(8)));
    }

    #[test]
    fn without_reports_the_delivered_pages_count_as_shown() {
        let page = delivered(&[(DeliveredItem::Page(1), 1)]);
        assert_eq!(page.unshown_page(2, false), Some(2));
        let pdf = delivered(&[(DeliveredItem::Pdf, 1)]);
        assert_eq!(pdf.unshown_page(2, false), None);
        assert_eq!(pdf.unshown_page(2, true), Some(1));
    }
}
