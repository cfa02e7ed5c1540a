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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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
    pub x: f64,
    pub y: f64,
    pub w: f64,
    pub h: f64,
}

/// One place that a fact was read from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactSource {
    pub origin: FactOrigin,
    /// Canonical value; none if the words are no value of the fact's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The words as they stand there.
    pub words: String,
    /// Why the words are no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
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
    pub kind: FactKind,
    /// ISO 4217 code of an amount of money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    pub status: FactStatus,
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
    pub fact_map_id: String,
    pub version: u32,
    /// SHA-256 of the map's canonical JSON (RFC 8785), lower-case hex.
    pub sha256: String,
}

/// All facts of a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactSheet {
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
