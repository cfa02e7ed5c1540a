//! Similarity of texts by MinHash: which documents may be scans or reprints of each other.

use super::hash::hmac_sha256;

/// Number of values of a signature.
pub const VALUES: usize = 128;
/// Values of a band. Two documents are compared if they share a band.
const ROWS: usize = 5;
/// Documents that share less than this part of their values are not reported.
const THRESHOLD: f64 = 0.6;
/// Number of similar documents that are the contracts on one form, and no scans.
const CROWD: usize = 10;
/// How much more similar than such a crowd a scan is, unless both are nearly equal.
const DISTANCE: f64 = 0.1;
const NEARLY_EQUAL: f64 = 0.9;
/// Documents that one comparison reports.
const REPORTED: usize = 5;

/// Returns how many of the most similar documents are reported. `similarities` are in descending order.
/// On forms with few numbers of the customer all contracts are similar; a scan stands out.
pub fn reported(similarities: &[f64]) -> usize {
    let level = similarities.get(CROWD - 1).copied().unwrap_or_default();
    let needed = if level >= THRESHOLD {
        (level + DISTANCE).min(NEARLY_EQUAL)
    } else {
        THRESHOLD
    };
    let near = similarities.iter().take(REPORTED);
    near.take_while(|similarity| **similarity >= needed).count()
}

/// Keyed values of a document's words: a search for a word in them needs the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature([u32; VALUES]);

impl Signature {
    /// Hashes MinHash values with the installation's key. None unless there are [`VALUES`].
    pub fn keyed(key: &[u8], values: &[u32]) -> Option<Self> {
        let keyed = |value: &u32| {
            let [a, b, c, d, ..] = hmac_sha256(key, &[b"similarity\n", &value.to_be_bytes()]);
            u32::from_be_bytes([a, b, c, d])
        };
        let keyed: Vec<u32> = values.iter().map(keyed).collect();
        keyed.try_into().ok().map(Self)
    }

    /// Parses the form of the database.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = hex::decode(text).ok()?;
        let values = bytes.chunks_exact(4);
        let values: Vec<u32> = values
            .filter_map(|four| Some(u32::from_be_bytes(four.try_into().ok()?)))
            .collect();
        values.try_into().ok().map(Self)
    }

    /// Returns the form of the database: eight hex digits for each value.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self
            .0
            .iter()
            .flat_map(|value| value.to_be_bytes())
            .collect();
        hex::encode(bytes)
    }

    /// Returns a text for each band.
    pub fn bands(&self) -> Vec<String> {
        let band = |(index, values): (usize, &[u32])| {
            let values: Vec<String> = values.iter().map(|value| format!("{value:08x}")).collect();
            format!("{index}:{}", values.concat())
        };
        self.0.chunks_exact(ROWS).enumerate().map(band).collect()
    }

    /// Estimates the part of their words that two documents share, from 0 to 1.
    pub fn similarity(&self, other: &Self) -> f64 {
        let equal = self.0.iter().zip(&other.0);
        let equal = equal.filter(|(one, other)| one == other).count();
        // Both are at most 128.
        u32::try_from(equal).map_or(0.0, f64::from) / 128.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documents_that_stand_out_are_reported() {
        assert_eq!(reported(&[]), 0);
        assert_eq!(reported(&[0.59]), 0);
        assert_eq!(reported(&[0.98, 0.61, 0.4]), 2);
        assert_eq!(reported(&[0.99; 8]), 5);
        let crowd = [0.7; 20];
        assert_eq!(reported(&crowd), 0);
        assert_eq!(reported(&[&[0.95, 0.81], crowd.as_slice()].concat()), 2);
        assert_eq!(reported(&[0.95; 20]), 5, "nearly equal");
    }

    #[test]
    fn a_signature_is_keyed_and_survives_the_database() {
        let values: Vec<u32> = (0..128).collect();
        let one = Signature::keyed(b"key", &values).unwrap();
        assert_eq!(Signature::parse(&one.text()), Some(one.clone()));
        assert_eq!(one.similarity(&one), 1.0);

        let other_key = Signature::keyed(b"other", &values).unwrap();
        assert_eq!(one.similarity(&other_key), 0.0);
        assert_eq!(one.bands().len(), 25);

        let mut changed = values.clone();
        changed[0] = 7_000;
        let changed = Signature::keyed(b"key", &changed).unwrap();
        assert_eq!(one.similarity(&changed), 127.0 / 128.0);
        assert_ne!(one.bands()[0], changed.bands()[0]);
        assert_eq!(one.bands()[1..], changed.bands()[1..]);
        assert_eq!(Signature::keyed(b"key", &values[1..]), None);
        assert_eq!(Signature::parse("00"), None);
    }
}
