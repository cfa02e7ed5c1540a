//! Fact maps: which facts a contract has, and where they stand in it.
//!
//! A reading is a function of map, inputs and document. A verifier repeats it, so all of it is here, without I/O: the
//! questions to the component that reads documents, and the facts that follow from its answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::Timestamp;
use crate::facts::{
    Fact, FactKind, FactMapIdentity, FactOrigin, FactPlace, FactSheet, FactSource, FactStatus,
};
use crate::hash::canonical_sha256;
use crate::id::{FactMapId, OrgId, PackageId, TemplateId};

/// Facts that identify a contract. Loan tapes find contracts by them.
pub const KEY_FACTS: [&str; 2] = ["contract_number", "vin"];

/// Where a value stands, relative to its anchor text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactDirection {
    /// Right of the anchor, on the same line: the nearest words that are a value.
    RightOf,
    /// Below the anchor, in its column: the nearest line with a value.
    Below,
    /// The number with this position in the line that begins with the anchor.
    NumberOfLine,
}

/// Place in the printed text of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrintedPlace {
    /// Literal text, compared without regard to case and with white space collapsed.
    #[schemars(length(min = 1, max = 200))]
    pub anchor: String,
    /// Number of the match in the order in which the document draws its text; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub occurrence: Option<u32>,
    /// Page to search, from 1; all pages when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub page: Option<u32>,
    /// Where the value stands, relative to the anchor.
    pub direction: FactDirection,
    /// Position of the number in its line, from 1; for `number_of_line` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub number: Option<u32>,
}

/// Fact of a map, with the places where it may stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MappedFact {
    /// Name: lower-case letters, digits and `_`, beginning with a letter.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub name: String,
    /// Type of the value.
    pub kind: FactKind,
    /// ISO 4217 code; required for `money`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Z]{3}$"))]
    pub currency: Option<String>,
    /// Order of dates in numbers: `mdy`, `dmy` or `ymd`. Without it, a date with two readings is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_order: Option<String>,
    /// `,` where a comma separates the decimals; otherwise a point does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal_separator: Option<String>,
    /// Names of signing fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub fields: Vec<String>,
    /// Places in the printed text. The first that has a value is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub printed: Vec<PrintedPlace>,
    /// Member of the envelope's metadata, or `external_id` or `secured_party`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
}

/// Envelopes that a map applies to. Of several maps, the one that names the template counts, then the package, then
/// the kind, then one for all; and of those the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactMapScope {
    /// All envelopes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Envelopes that are made from one of these templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub templates: Vec<TemplateId>,
    /// Envelopes that are made from one of these packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub packages: Vec<PackageId>,
    /// Envelopes with one of these values as `contract_kind` of their metadata.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub contract_kinds: Vec<String>,
}

/// What a map is chosen by.
#[derive(Clone, Debug, Default)]
pub struct MappedEnvelope {
    /// The envelope's template, and those that it was made of.
    pub templates: Vec<TemplateId>,
    pub packages: Vec<PackageId>,
    pub contract_kind: Option<String>,
}

impl FactMapScope {
    /// Returns how closely the scope fits an envelope, the highest number the closest. `None` if it does not apply.
    pub fn closeness(&self, envelope: &MappedEnvelope) -> Option<u8> {
        let has_kind = |kind: &String| self.contract_kinds.contains(kind);
        if envelope
            .templates
            .iter()
            .any(|id| self.templates.contains(id))
        {
            Some(3)
        } else if envelope
            .packages
            .iter()
            .any(|id| self.packages.contains(id))
        {
            Some(2)
        } else if envelope.contract_kind.as_ref().is_some_and(has_kind) {
            Some(1)
        } else {
            self.all.then_some(0)
        }
    }
}

/// Content of a fact map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "name": "Retail instalment contract",
    "applies_to": { "templates": ["tmpl_01jdk7m3e8f4x9s2w5v6b0c1da"] },
    "facts": [
        { "name": "amount_financed", "kind": "money", "currency": "USD",
          "printed": [{ "anchor": "Amount Financed", "direction": "below" }] },
        { "name": "vin", "kind": "vin", "fields": ["VIN"], "declared": "vin" },
    ],
}]))]
pub struct FactMapDocument {
    /// Name for people.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Envelopes that the map applies to.
    pub applies_to: FactMapScope,
    /// Facts in the order of the sheet.
    #[schemars(length(min = 1, max = 100))]
    pub facts: Vec<MappedFact>,
}

/// Version of a fact map.
#[derive(Clone, Debug)]
pub struct FactMap {
    pub id: FactMapId,
    pub org: OrgId,
    pub version: u32,
    pub document: FactMapDocument,
    pub made_by: String,
    /// Time of the first version.
    pub created_at: Timestamp,
    /// Time of this version.
    pub updated_at: Timestamp,
}

impl FactMap {
    /// Returns the identity of this version.
    pub fn identity(&self) -> FactMapIdentity {
        FactMapIdentity {
            fact_map_id: self.id.to_string(),
            version: self.version,
            sha256: self.document.sha256(),
        }
    }
}

/// Signing field with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilledField {
    pub name: String,
    /// Role of the signer.
    pub role: String,
    pub value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<FactPlace>,
}

/// What facts are read from, besides the document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FactInputs {
    /// Fields that the map names, with a value.
    pub fields: Vec<FilledField>,
    /// Metadata that the map names.
    pub declared: BTreeMap<String, String>,
}

impl FactInputs {
    /// Returns the SHA-256 of the canonical JSON.
    pub fn sha256(&self) -> String {
        canonical_sha256(&json!(self))
    }
}

/// Words of a field or of metadata, for the fact with this position in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactWords {
    pub fact: usize,
    pub words: String,
}

/// Reading of the printed text for one fact.
#[derive(Clone, Debug, PartialEq)]
pub enum PrintedReading {
    Words {
        words: String,
        place: FactPlace,
        /// Canonical value, or why the words are none.
        value: Result<String, String>,
    },
    Missing,
    /// It should be on pages without text.
    Unreadable,
}

/// Answers of the component that reads documents.
#[derive(Clone, Debug, PartialEq)]
pub struct FactAnswers {
    /// One for each fact of the map.
    pub printed: Vec<PrintedReading>,
    /// One for each of [`FactMapDocument::words`]: the canonical value, or why the words are none.
    pub values: Vec<Result<String, String>>,
}

impl FactMapDocument {
    /// Returns the SHA-256 of the canonical JSON.
    pub fn sha256(&self) -> String {
        canonical_sha256(&json!(self))
    }

    /// Returns the words that need a canonical value, fact by fact: of its fields, then of its metadata.
    pub fn words(&self, inputs: &FactInputs) -> Vec<FactWords> {
        let mut words = Vec::new();
        for (fact, mapped) in self.facts.iter().enumerate() {
            let fields = mapped.filled(inputs).map(|field| &field.value);
            let declared = mapped.declared_in(inputs).map(|(_, value)| value);
            words.extend(fields.chain(declared).map(|value| FactWords {
                fact,
                words: value.clone(),
            }));
        }

        words
    }

    /// Returns the readings of a document that cannot be read.
    pub fn unreadable(&self) -> Vec<PrintedReading> {
        let reading = |fact: &MappedFact| {
            if fact.printed.is_empty() {
                PrintedReading::Missing
            } else {
                PrintedReading::Unreadable
            }
        };
        self.facts.iter().map(reading).collect()
    }

    /// Returns the facts that follow from the answers. `None` if there are more or fewer than were asked for.
    pub fn facts(&self, inputs: &FactInputs, answers: &FactAnswers) -> Option<Vec<Fact>> {
        if answers.printed.len() != self.facts.len() {
            return None;
        }

        let mut values = answers.values.iter();
        let mut facts = Vec::with_capacity(self.facts.len());
        for (mapped, printed) in self.facts.iter().zip(&answers.printed) {
            let mut sources = Vec::new();
            for field in mapped.filled(inputs) {
                sources.push(FactSource {
                    place: field.place.clone(),
                    field: Some(field.name.clone()),
                    role: Some(field.role.clone()),
                    ..source(FactOrigin::Signed, &field.value, values.next()?)
                });
            }

            let declared = match mapped.declared_in(inputs) {
                Some((key, words)) => Some(FactSource {
                    field: Some(key.to_owned()),
                    ..source(FactOrigin::Declared, words, values.next()?)
                }),
                None => None,
            };
            if let PrintedReading::Words {
                words,
                place,
                value,
            } = printed
            {
                sources.push(FactSource {
                    place: Some(place.clone()),
                    ..source(FactOrigin::Printed, words, value)
                });
            }
            sources.extend(declared);

            let is_unreadable = *printed == PrintedReading::Unreadable;
            facts.push(mapped.fact(sources, is_unreadable));
        }

        values.next().is_none().then_some(facts)
    }
}

impl MappedFact {
    /// Returns the filled fields that the fact names, in the order of the map.
    fn filled<'a>(&'a self, inputs: &'a FactInputs) -> impl Iterator<Item = &'a FilledField> {
        let named = move |name: &'a String| {
            let fields = inputs.fields.iter();
            fields.filter(move |field| field.name == *name)
        };
        self.fields.iter().flat_map(named)
    }

    fn declared_in<'a>(&'a self, inputs: &'a FactInputs) -> Option<(&'a str, &'a String)> {
        let key = self.declared.as_deref()?;
        Some((key, inputs.declared.get(key)?))
    }

    /// Returns the fact with these sources, which are in the order of their strength.
    fn fact(&self, sources: Vec<FactSource>, is_unreadable: bool) -> Fact {
        let is_of_document = |source: &&FactSource| source.origin != FactOrigin::Declared;
        let strongest = sources.iter().find(|source| source.value.is_some());
        // What the originator declares says nothing about a page that could not be read.
        let strongest = strongest.filter(|source| !is_unreadable || is_of_document(source));

        let differs = |source: &FactSource| {
            let value = source.value.as_ref();
            value.is_some() && value != strongest.and_then(|strongest| strongest.value.as_ref())
        };
        let status = match strongest {
            Some(_) if sources.iter().any(differs) => FactStatus::Conflicting,
            Some(_) => FactStatus::Known,
            None if is_unreadable => FactStatus::Unreadable,
            None => FactStatus::Missing,
        };

        Fact {
            name: self.name.clone(),
            kind: self.kind,
            currency: self.currency.clone(),
            status,
            value: strongest.and_then(|source| source.value.clone()),
            origin: strongest.map(|source| source.origin),
            sources,
        }
    }
}

fn source(origin: FactOrigin, words: &str, value: &Result<String, String>) -> FactSource {
    FactSource {
        origin,
        value: value.as_ref().ok().cloned(),
        words: words.to_owned(),
        problem: value.as_ref().err().cloned(),
        place: None,
        field: None,
        role: None,
    }
}

/// Sheet of a contract with all that is needed to read it again: `facts.json` of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactRecord {
    pub sheet: FactSheet,
    pub map: FactMapDocument,
    pub inputs: FactInputs,
}

/// What the custody ledger has of a fact sheet: the details of an entry [`FACTS_READ`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactCommitment {
    pub fact_map: FactMapIdentity,
    /// SHA-256 of the component that read the document.
    pub component_sha256: String,
    /// SHA-256 of the document that was read.
    pub document_sha256: String,
    /// SHA-256 of the canonical JSON of the inputs.
    pub inputs_sha256: String,
    /// SHA-256 of the canonical JSON of the sheet.
    pub sheet_sha256: String,
}

/// Action of the ledger entry about the facts of a contract.
pub const FACTS_READ: &str = "facts.read";

impl FactRecord {
    /// Returns what the ledger has of it.
    pub fn commitment(&self) -> FactCommitment {
        let sheet = &self.sheet;
        FactCommitment {
            fact_map: FactMapIdentity {
                sha256: self.map.sha256(),
                ..sheet.fact_map.clone()
            },
            component_sha256: sheet.component.sha256.clone(),
            document_sha256: sheet.document_sha256.clone(),
            inputs_sha256: self.inputs.sha256(),
            sheet_sha256: canonical_sha256(&json!(sheet)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(name: &str) -> MappedFact {
        MappedFact {
            name: name.into(),
            kind: FactKind::Money,
            currency: Some("USD".into()),
            date_order: None,
            decimal_separator: None,
            fields: vec!["Amount".into()],
            printed: Vec::new(),
            declared: Some("amount".into()),
        }
    }

    fn map() -> FactMapDocument {
        FactMapDocument {
            name: "Loan".into(),
            applies_to: FactMapScope {
                all: true,
                ..FactMapScope::default()
            },
            facts: vec![mapped("amount_financed")],
        }
    }

    fn place() -> FactPlace {
        FactPlace {
            page: 1,
            x: 0.1,
            y: 0.2,
            w: 0.3,
            h: 0.02,
        }
    }

    fn inputs(field: Option<&str>, declared: Option<&str>) -> FactInputs {
        let field = field.map(|value| FilledField {
            name: "Amount".into(),
            role: "Buyer".into(),
            value: value.into(),
            place: Some(place()),
        });
        let declared = declared.map(|value| ("amount".to_owned(), value.to_owned()));
        FactInputs {
            fields: field.into_iter().collect(),
            declared: declared.into_iter().collect(),
        }
    }

    fn printed(value: &str) -> PrintedReading {
        PrintedReading::Words {
            words: format!("${value}"),
            place: place(),
            value: Ok(value.into()),
        }
    }

    /// Reads a fact whose values are canonical already.
    fn fact(inputs: &FactInputs, printed: PrintedReading) -> Fact {
        let map = map();
        let values = map.words(inputs).into_iter().map(|words| Ok(words.words));
        let answers = FactAnswers {
            printed: vec![printed],
            values: values.collect(),
        };
        map.facts(inputs, &answers).unwrap().remove(0)
    }

    fn outcome(fact: &Fact) -> (FactStatus, Option<&str>, Option<FactOrigin>) {
        (fact.status, fact.value.as_deref(), fact.origin)
    }

    #[test]
    fn the_strongest_source_gives_the_value_and_all_are_kept() {
        let all = inputs(Some("1.00"), Some("3.00"));
        let found = fact(&all, printed("2.00"));
        let expected = (
            FactStatus::Conflicting,
            Some("1.00"),
            Some(FactOrigin::Signed),
        );
        assert_eq!(outcome(&found), expected);
        let origins: Vec<FactOrigin> = found.sources.iter().map(|one| one.origin).collect();
        let expected = [
            FactOrigin::Signed,
            FactOrigin::Printed,
            FactOrigin::Declared,
        ];
        assert_eq!(origins, expected);

        let found = fact(&inputs(None, Some("2.00")), printed("2.00"));
        let expected = (FactStatus::Known, Some("2.00"), Some(FactOrigin::Printed));
        assert_eq!(outcome(&found), expected);
    }

    #[test]
    fn a_fact_without_a_source_is_missing() {
        let found = fact(&inputs(None, None), PrintedReading::Missing);
        assert_eq!(outcome(&found), (FactStatus::Missing, None, None));

        let declared = fact(&inputs(None, Some("3.00")), PrintedReading::Missing);
        let expected = (FactStatus::Known, Some("3.00"), Some(FactOrigin::Declared));
        assert_eq!(outcome(&declared), expected);
    }

    #[test]
    fn metadata_is_no_value_of_a_page_that_cannot_be_read() {
        let found = fact(&inputs(None, Some("3.00")), PrintedReading::Unreadable);
        assert_eq!(outcome(&found), (FactStatus::Unreadable, None, None));
        assert_eq!(found.sources.len(), 1);

        let signed = fact(&inputs(Some("1.00"), None), PrintedReading::Unreadable);
        assert_eq!(signed.status, FactStatus::Known);
    }

    #[test]
    fn words_that_are_no_value_are_kept_with_the_reason() {
        let words = PrintedReading::Words {
            words: "N/A".into(),
            place: place(),
            value: Err("\"N/A\" is no number".into()),
        };
        let found = fact(&inputs(None, None), words);
        assert_eq!(found.status, FactStatus::Missing);
        assert_eq!(found.sources[0].words, "N/A");
        assert_eq!(
            found.sources[0].problem.as_deref(),
            Some("\"N/A\" is no number")
        );
    }

    #[test]
    fn more_or_fewer_answers_than_questions_give_no_facts() {
        let (map, inputs) = (map(), inputs(Some("1.00"), None));
        let answers = |printed: usize, values: usize| FactAnswers {
            printed: vec![PrintedReading::Missing; printed],
            values: vec![Ok("1.00".into()); values],
        };
        assert!(map.facts(&inputs, &answers(1, 1)).is_some());
        for (printed, values) in [(0, 1), (2, 1), (1, 0), (1, 2)] {
            assert!(map.facts(&inputs, &answers(printed, values)).is_none());
        }
    }

    #[test]
    fn the_closest_scope_counts() {
        let (template, package) = (TemplateId::new(), PackageId::new());
        let scope = FactMapScope {
            all: true,
            templates: vec![template.clone()],
            packages: vec![package.clone()],
            contract_kinds: vec!["retail".into()],
        };
        let envelope =
            |templates: Vec<TemplateId>, packages: Vec<PackageId>, kind: Option<&str>| {
                MappedEnvelope {
                    templates,
                    packages,
                    contract_kind: kind.map(str::to_owned),
                }
            };

        let closeness = |envelope: &MappedEnvelope| scope.closeness(envelope);
        assert_eq!(closeness(&envelope(vec![template], vec![], None)), Some(3));
        assert_eq!(closeness(&envelope(vec![], vec![package], None)), Some(2));
        assert_eq!(
            closeness(&envelope(vec![], vec![], Some("retail"))),
            Some(1)
        );
        assert_eq!(closeness(&envelope(vec![], vec![], Some("lease"))), Some(0));
        let none = FactMapScope::default();
        assert_eq!(none.closeness(&envelope(vec![], vec![], None)), None);
    }

    #[test]
    fn a_commitment_covers_sheet_map_and_inputs() {
        let (map, inputs) = (map(), inputs(Some("1.00"), None));
        let record = FactRecord {
            sheet: FactSheet {
                fact_map: FactMapIdentity {
                    fact_map_id: "fmp_1".into(),
                    version: 1,
                    sha256: map.sha256(),
                },
                component: crate::component::ComponentIdentity {
                    name: "reader".into(),
                    version: "1.0.0".into(),
                    sha256: "1".repeat(64),
                },
                document_sha256: "2".repeat(64),
                facts: Vec::new(),
            },
            map,
            inputs,
        };
        let commitment = record.commitment();

        let mut changed = record.clone();
        changed.inputs.fields[0].value = "2.00".into();
        assert_ne!(changed.commitment(), commitment);
        let mut changed = record.clone();
        changed.map.facts[0].declared = None;
        assert_ne!(changed.commitment(), commitment);
        let mut changed = record;
        changed.sheet.document_sha256 = "3".repeat(64);
        assert_ne!(changed.commitment(), commitment);
    }
}
