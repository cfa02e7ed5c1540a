//! Facts of a contract: typed values, and the places where they stand.
//!
//! Values are canonical texts, so that two facts are equal when their texts are: money has a point and at least two
//! decimals (`21500.00`), a percentage has no sign and no closing zeros (`7.9`), dates are ISO 8601, a VIN has capital
//! letters, and white space in texts is collapsed. No value is ever a binary fraction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::ComponentIdentity;

/// Type of a fact's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    Text,
    Integer,
    /// Amount in the currency of the fact.
    Money,
    /// `7.9` is 7.9 %.
    Percentage,
    Date,
    /// Vehicle identification number of 17 characters (49 CFR part 565).
    Vin,
    Boolean,
}

/// Where a value comes from, the strongest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FactOrigin {
    /// A field that a signer filled in, or that was filled in before the signature.
    Signed,
    /// The printed text of the document.
    Printed,
    /// Metadata of the originator. The contract does not say it.
    Declared,
}

/// Rectangle on a displayed page, in fractions of the page from its top left corner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactPlace {
    /// Page, from 1.
    pub page: u32,
    /// Left edge, as a fraction of the page's width.
    pub x: f64,
    /// Upper edge, as a fraction of the page's height.
    pub y: f64,
    /// Width, as a fraction of the page's width.
    pub w: f64,
    /// Height, as a fraction of the page's height.
    pub h: f64,
}

impl FactPlace {
    /// Rounds to millionths of a page, which is all that a place needs: such a number is the same after it is written
    /// as JSON and read again, and the digests of a sheet depend on that.
    pub fn new(page: u32, [x, y, w, h]: [f64; 4]) -> Self {
        let [x, y, w, h] = [x, y, w, h].map(tidy);
        Self { page, x, y, w, h }
    }
}

/// Bound for places beside the page.
const FARTHEST: f64 = 1_000.0;

fn tidy(fraction: f64) -> f64 {
    // JSON has no infinities, and a component can return any number.
    if !fraction.is_finite() {
        return 0.0;
    }
    // The sum has no negative zero.
    (fraction.clamp(-FARTHEST, FARTHEST) * 1e6).round() / 1e6 + 0.0
}

/// One place that a fact was read from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactSource {
    /// Where the source is.
    pub origin: FactOrigin,
    /// Canonical value; none if the words are no value of the fact's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The words as they stand there.
    pub words: String,
    /// Why the words are no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Where the words stand, unless they are metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<FactPlace>,
    /// Name of the signed field, or key of the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Role of the signer who filled the field in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// What is known about a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactStatus {
    /// All sources with a value agree.
    Known,
    /// Sources differ. The value is that of the strongest one.
    Conflicting,
    /// The document and the metadata do not have it.
    Missing,
    /// It should be on pages without text, such as a scan. A value is never guessed.
    Unreadable,
}

/// A fact of a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// Name in the fact map, such as `amount_financed`.
    pub name: String,
    /// Type of the value.
    pub kind: FactKind,
    /// ISO 4217 code of an amount of money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// What is known about it.
    pub status: FactStatus,
    /// Canonical value of the strongest source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Origin of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<FactOrigin>,
    /// All sources, the strongest first.
    pub sources: Vec<FactSource>,
}

/// Version of a fact map that facts were read with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactMapIdentity {
    /// Id of the map.
    pub fact_map_id: String,
    /// Number of its version, from 1.
    pub version: u32,
    /// SHA-256 of the map's canonical JSON (RFC 8785), lower-case hex.
    pub sha256: String,
}

/// All facts of a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "fact_map": {
        "fact_map_id": "fmp_01jdk7m3e8f4x9s2w5v6b0c1da", "version": 2,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    },
    "component": {
        "name": "holdfast-placement", "version": "0.1.0",
        "sha256": "4be1c0d1884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    },
    "document_sha256": "1f5c0d9a7e7b0a3c44d1b2f58a0e9c6d3b8a7f6e5d4c3b2a19080f7e6d5c4b3a",
    "facts": [{
        "name": "amount_financed", "kind": "money", "currency": "USD", "status": "known",
        "value": "21500.00", "origin": "printed",
        "sources": [{
            "origin": "printed", "value": "21500.00", "words": "$ 21,500.00",
            "place": { "page": 1, "x": 0.58, "y": 0.23, "w": 0.11, "h": 0.02 },
        }],
    }],
}]))]
pub struct FactSheet {
    /// Map that the facts were read with.
    pub fact_map: FactMapIdentity,
    /// Component that read the document.
    pub component: ComponentIdentity,
    /// SHA-256 of the document that was read.
    pub document_sha256: String,
    /// In the order of the map.
    pub facts: Vec<Fact>,
}

impl FactSheet {
    /// Returns the fact of this name.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_same_after_it_is_written_and_read() {
        let place = FactPlace::new(1, [1.0 / 3.0, -1e-9, f64::NAN, f64::INFINITY]);
        let text = serde_json::to_string(&place).unwrap();
        assert_eq!(text, r#"{"page":1,"x":0.333333,"y":0.0,"w":0.0,"h":0.0}"#);
        let read: FactPlace = serde_json::from_str(&text).unwrap();
        assert_eq!(read, place);
        assert_eq!(FactPlace::new(1, [1e300; 4]).x, FARTHEST);
    }
}
