//! Uploads and downloads in progress: how much of them one owner may have at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes on the disk of open uploads of one credential, or of one network without a credential.
const UPLOADED: u64 = 256 * 1024 * 1024;
/// The same of one organization.
const UPLOADED_BY_ORGANIZATION: u64 = 512 * 1024 * 1024;
/// Most files that one network reads at once.
const DOWNLOADS: u64 = 32;

/// Amounts by owner; cheap to clone.
#[derive(Clone, Default)]
pub struct OpenTransfers(Arc<Mutex<HashMap<String, u64>>>);

/// Amount of one transfer; dropping it releases the amount.
pub struct TransferShare {
    transfers: OpenTransfers,
    /// Owners with the limit of each.
    owners: Vec<(String, u64)>,
    amount: u64,
}

impl OpenTransfers {
    /// Begins an upload of a credential and an organization, as far as they are known.
    pub fn upload(&self, credential: Option<&str>, org: Option<&str>) -> TransferShare {
        let credential = credential.map(|text| (format!("credential {text}"), UPLOADED));
        let org = org.map(|text| (format!("organization {text}"), UPLOADED_BY_ORGANIZATION));
        self.share(credential.into_iter().chain(org).collect())
    }

    /// Begins a download. Returns none if the network has too many.
    pub fn download(&self, network: &str) -> Option<TransferShare> {
        let mut share = self.share(vec![(format!("reader {network}"), DOWNLOADS)]);
        share.grow(1).then_some(share)
    }

    fn share(&self, owners: Vec<(String, u64)>) -> TransferShare {
        TransferShare {
            transfers: self.clone(),
            owners,
            amount: 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TransferShare {
    /// Adds to the amount. Returns false, and adds nothing, if an owner has no room for it.
    pub fn grow(&mut self, by: u64) -> bool {
        // One lock for check and change, or two uploads could both take the last room.
        let mut held = self.transfers.lock();
        let has_room = |(owner, most): &(String, u64)| {
            held.get(owner).copied().unwrap_or_default() + by <= *most
        };
        if !self.owners.iter().all(has_room) {
            return false;
        }

        for (owner, _) in &self.owners {
            *held.entry(owner.clone()).or_default() += by;
        }

        self.amount += by;
        true
    }
}

impl Drop for TransferShare {
    fn drop(&mut self) {
        let mut held = self.transfers.lock();
        for (owner, _) in &self.owners {
            let left = held.get(owner).copied().unwrap_or_default();
            // Owners without transfers leave the map, because networks and credentials
            // have no limit in number.
            match left.saturating_sub(self.amount) {
                0 => held.remove(owner),
                left => held.insert(owner.clone(), left),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPLOAD: u64 = 50 * 1024 * 1024;

    #[test]
    fn open_uploads_of_a_credential_and_an_organization_are_limited() {
        let transfers = OpenTransfers::default();
        let upload = |credential: &str, org: &str| {
            let mut share = transfers.upload(Some(credential), Some(org));
            share.grow(UPLOAD).then_some(share)
        };
        let first: Vec<_> = (0..10).map_while(|_| upload("key_1", "oak")).collect();
        assert_eq!(first.len(), 5);

        let second: Vec<_> = (0..10).map_while(|_| upload("key_2", "oak")).collect();
        assert_eq!(second.len(), 5);
        assert!(upload("key_3", "oak").is_none());
        assert!(upload("key_4", "elm").is_some());

        drop(first);
        assert!(upload("key_1", "oak").is_some());

        drop(second);
        assert!(transfers.lock().is_empty());
    }

    #[test]
    fn downloads_of_one_network_are_limited() {
        let transfers = OpenTransfers::default();
        let mut open: Vec<_> = (0..100).map_while(|_| transfers.download("net")).collect();
        assert_eq!(open.len() as u64, DOWNLOADS);
        assert!(transfers.download("other").is_some());
        open.pop();
        assert!(transfers.download("net").is_some());
    }
}
