//! Checks the facts of a contract: the ledger has their digests, and the component that read them reads the same again.

use bytes::Bytes;
use serde_json::Value;

use super::formats::FACTS;
use super::report::{OpenQuestion, ReportFinding};
use super::{Bundle, last, strict};
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::fact_map::{
    FACTS_READ, FactAnswers, FactCommitment, FactMapDocument, FactRecord, FactWords,
};
use holdfast_domain::facts::Fact;
use holdfast_domain::hash::sha256;
use holdfast_domain::ledger::LedgerEntry;

const CHECK: &str = "facts";

/// Component that can read the facts of a contract again.
pub trait FactReader {
    /// Returns the identity of the component.
    fn identity(&self) -> ComponentIdentity;

    /// Reads the printed facts of a map, and gives words their canonical values.
    ///
    /// # Errors
    /// The component fails.
    fn read(
        &self,
        pdf: Bytes,
        map: &FactMapDocument,
        words: &[FactWords],
    ) -> Result<FactAnswers, String>;
}

/// Component that read the facts, or the reason why it is not available.
pub type Facts = Result<Box<dyn FactReader + Send>, String>;

/// Compares `facts.json` with the ledger, and with a second reading of the document. `None` for evidence without
/// facts.
pub(super) fn finding(
    bundle: &Bundle,
    entries: &[LedgerEntry],
    authoritative: &Bytes,
    reader: &Facts,
) -> Option<ReportFinding> {
    let recorded = last(entries, FACTS_READ).map(|entry| &entry.details);
    let file = bundle.optional(FACTS);
    let (recorded, file) = match (recorded, file) {
        (None, None) => return None,
        (None, Some(_)) => {
            let why = format!("the ledger has no entry about the {FACTS} of the bundle");
            return Some(ReportFinding::fails(CHECK, why));
        }
        (Some(_), None) if bundle.is_of_export() => {
            let why = format!("the bundle lacks {FACTS}, which the ledger names");
            return Some(ReportFinding::fails(CHECK, why));
        }
        (Some(_), None) => {
            let why = "not among the files of a vault-out: the facts are not shown";
            return Some(ReportFinding::unchecked(CHECK, OpenQuestion::Nothing, why));
        }
        (Some(recorded), Some(file)) => (recorded, file),
    };

    let stored = last(entries, "vault.stored").map(|entry| &entry.details);
    Some(match checked(recorded, file, authoritative, stored) {
        Err(why) => ReportFinding::fails(CHECK, why),
        Ok((record, document)) => read_again(&record, document, reader),
    })
}

/// Checks the file against the ledger, and that the facts are of this document, which it returns.
fn checked(
    recorded: &Value,
    file: &[u8],
    authoritative: &Bytes,
    stored: Option<&Value>,
) -> Result<(FactRecord, Bytes), String> {
    let record: FactRecord =
        strict::read(file).map_err(|error| format!("{FACTS} cannot be read: {error}"))?;
    let recorded: FactCommitment = serde_json::from_value(recorded.clone())
        .map_err(|error| format!("the entry about the facts cannot be read: {error}"))?;
    if record.commitment() != recorded {
        return Err(format!("{FACTS} is not the one in the ledger"));
    }

    let document = stored.and_then(|stored| document_of(authoritative, stored));
    let document = document.filter(|bytes| sha256(bytes) == recorded.document_sha256);
    let document =
        document.ok_or("the facts are of another document than the authoritative copy")?;
    Ok((record, document))
}

/// Returns the beginning of the authoritative copy that was read: the executed document, or what replaces it.
fn document_of(authoritative: &Bytes, stored: &Value) -> Option<Bytes> {
    let rewritten = &stored["rewritten"]["rewritten_size"];
    let size = rewritten
        .as_u64()
        .or_else(|| stored["signed_document_size"].as_u64())?;
    let size = usize::try_from(size).ok()?;
    (size <= authoritative.len()).then(|| authoritative.slice(..size))
}

/// Reads the facts again with the same component.
fn read_again(record: &FactRecord, document: Bytes, reader: &Facts) -> ReportFinding {
    // The digests prove the facts. Only a component at hand can show that the document states them.
    let unchecked = |why: String| ReportFinding::unchecked(CHECK, OpenQuestion::Nothing, why);
    let (sheet, map) = (&record.sheet, &record.map);
    let count = sheet.facts.len();
    let reader = match reader {
        Ok(reader) if reader.identity().sha256 == sheet.component.sha256 => reader,
        Ok(_) => {
            let component = &sheet.component;
            return unchecked(format!(
                "{count} facts as in the ledger; {component}, which read them, is not at hand"
            ));
        }
        Err(why) => return unchecked(format!("{count} facts as in the ledger; {why}")),
    };

    let words = map.words(&record.inputs);
    let answers = match reader.read(document, map, &words) {
        Ok(answers) => answers,
        Err(why) => return unchecked(format!("{count} facts as in the ledger; {why}")),
    };
    match map.facts(&record.inputs, &answers) {
        Some(facts) if facts == sheet.facts => {
            let detail = format!("{} reads the same {count} facts again", sheet.component);
            ReportFinding::holds(CHECK, detail)
        }
        // Time and memory of a reading depend on the machine, so a document can be unread at vault-in and readable here.
        Some(_) if is_unread(record, &answers) => unchecked(format!(
            "{count} facts as in the ledger; the document could not be read when they were recorded"
        )),
        Some(facts) => {
            let names = differing(&sheet.facts, &facts).join(", ");
            let why = format!("{} reads other facts: {names}", sheet.component);
            ReportFinding::fails(CHECK, why)
        }
        None => ReportFinding::fails(CHECK, "the component gives another number of facts"),
    }
}

/// Returns whether the recorded facts are those of a document that could not be read.
fn is_unread(record: &FactRecord, answers: &FactAnswers) -> bool {
    let unread = FactAnswers {
        printed: record.map.unreadable(),
        values: answers.values.clone(),
    };
    let facts = record.map.facts(&record.inputs, &unread);
    facts.is_some_and(|facts| facts == record.sheet.facts)
}

/// Returns the names of facts that differ.
fn differing<'a>(recorded: &'a [Fact], read: &'a [Fact]) -> Vec<&'a str> {
    let pairs = recorded.iter().zip(read);
    let mut names: Vec<&str> = pairs
        .filter(|(recorded, read)| recorded != read)
        .map(|(recorded, _)| recorded.name.as_str())
        .collect();
    // Facts behind the end of the shorter list.
    let common = recorded.len().min(read.len());
    let rest = recorded.iter().skip(common).chain(read.iter().skip(common));
    names.extend(rest.map(|fact| fact.name.as_str()));
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::fact_map::{
        FactDirection, FactInputs, FactMapScope, MappedFact, PrintedPlace, PrintedReading,
    };
    use holdfast_domain::facts::{FactKind, FactMapIdentity, FactPlace, FactSheet};

    const DOCUMENT: &[u8] = b"executed";

    struct KnownReader {
        identity: ComponentIdentity,
        value: &'static str,
    }

    impl FactReader for KnownReader {
        fn identity(&self) -> ComponentIdentity {
            self.identity.clone()
        }

        fn read(
            &self,
            pdf: Bytes,
            _: &FactMapDocument,
            _: &[FactWords],
        ) -> Result<FactAnswers, String> {
            assert_eq!(pdf, DOCUMENT);
            Ok(answers(self.value))
        }
    }

    fn answers(value: &str) -> FactAnswers {
        FactAnswers {
            printed: vec![PrintedReading::Words {
                words: value.into(),
                place: FactPlace {
                    page: 1,
                    x: 0.1,
                    y: 0.2,
                    w: 0.3,
                    h: 0.4,
                },
                value: Ok(value.into()),
            }],
            values: Vec::new(),
        }
    }

    fn identity() -> ComponentIdentity {
        ComponentIdentity {
            name: "reader".into(),
            version: "1.0.0".into(),
            sha256: "1".repeat(64),
        }
    }

    fn reader(value: &'static str) -> Facts {
        let identity = identity();
        Ok(Box::new(KnownReader { identity, value }))
    }

    fn record() -> FactRecord {
        let map = FactMapDocument {
            name: "Loan".into(),
            applies_to: FactMapScope::default(),
            facts: vec![MappedFact {
                name: "vin".into(),
                kind: FactKind::Vin,
                currency: None,
                date_order: None,
                decimal_separator: None,
                fields: Vec::new(),
                printed: Vec::new(),
                declared: None,
            }],
        };
        let inputs = FactInputs::default();
        FactRecord {
            sheet: FactSheet {
                fact_map: FactMapIdentity {
                    fact_map_id: "fmp_1".into(),
                    version: 1,
                    sha256: map.sha256(),
                },
                component: identity(),
                document_sha256: sha256(DOCUMENT),
                facts: map.facts(&inputs, &answers("A")).unwrap(),
            },
            map,
            inputs,
        }
    }

    fn entry(action: &str, details: Value) -> LedgerEntry {
        LedgerEntry {
            sequence: 1,
            at: Timestamp::from_millis(0),
            actor: "system".into(),
            action: action.into(),
            details,
            previous_hash: String::new(),
            hash: String::new(),
            withheld: false,
        }
    }

    fn entries() -> Vec<LedgerEntry> {
        vec![
            entry(
                "vault.stored",
                json!({ "signed_document_size": DOCUMENT.len() }),
            ),
            entry(FACTS_READ, json!(record().commitment())),
        ]
    }

    fn bundle(record: Option<&FactRecord>) -> Bundle {
        let component_ledger = ("component-ledger.json".to_owned(), Bytes::new());
        let file = record.map(|record| (FACTS.to_owned(), json!(record).to_string().into()));
        Bundle::of_files(std::iter::once(component_ledger).chain(file))
    }

    /// Returns the outcome for an authoritative copy that begins with [`DOCUMENT`].
    fn outcome(
        bundle: &Bundle,
        entries: &[LedgerEntry],
        reader: &Facts,
    ) -> Option<(Option<bool>, String)> {
        let authoritative = Bytes::from_static(b"executed, marked and sealed");
        let finding = finding(bundle, entries, &authoritative, reader)?;
        Some((finding.ok, finding.detail))
    }

    #[test]
    fn the_same_component_reads_the_same_facts_again() {
        let bundle = bundle(Some(&record()));
        for (reader, ok, detail) in [
            (
                reader("A"),
                Some(true),
                "reader 1.0.0 reads the same 1 facts again",
            ),
            (
                reader("B"),
                Some(false),
                "reader 1.0.0 reads other facts: vin",
            ),
            (
                Err("no reader".into()),
                None,
                "1 facts as in the ledger; no reader",
            ),
        ] {
            let expected = Some((ok, detail.to_owned()));
            assert_eq!(outcome(&bundle, &entries(), &reader), expected);
        }
    }

    #[test]
    fn a_document_that_could_not_be_read_in_time_does_not_contradict_the_ledger() {
        let mut record = record();
        record.map.facts[0].printed = vec![PrintedPlace {
            anchor: "VIN".into(),
            occurrence: None,
            page: None,
            direction: FactDirection::RightOf,
            number: None,
        }];
        record.sheet.fact_map.sha256 = record.map.sha256();
        let unread = FactAnswers {
            printed: record.map.unreadable(),
            values: Vec::new(),
        };
        record.sheet.facts = record.map.facts(&record.inputs, &unread).unwrap();
        let mut entries = entries();
        entries[1].details = json!(record.commitment());

        let found = outcome(&bundle(Some(&record)), &entries, &reader("A"));
        let why =
            "1 facts as in the ledger; the document could not be read when they were recorded";
        assert_eq!(found, Some((None, why.to_owned())));
    }

    #[test]
    fn evidence_without_a_fact_map_has_no_facts() {
        assert_eq!(outcome(&bundle(None), &[], &reader("A")), None);
    }

    #[test]
    fn the_files_of_a_vault_out_come_without_the_facts() {
        let (ok, detail) = outcome(&Bundle::of_files([]), &entries(), &reader("A")).unwrap();
        let why = "not among the files of a vault-out: the facts are not shown";
        assert_eq!((ok, detail.as_str()), (None, why));
    }

    #[test]
    fn facts_that_the_ledger_does_not_have_are_refused() {
        let mut changed = record();
        changed.sheet.facts[0].value = Some("B".into());
        let mut of_another = entries();
        of_another[0].details["signed_document_size"] = json!(3);
        for (bundle, entries, why) in [
            (
                bundle(None),
                entries(),
                "the bundle lacks facts.json, which the ledger names",
            ),
            (
                bundle(Some(&record())),
                Vec::new(),
                "the ledger has no entry about the facts.json of the bundle",
            ),
            (
                bundle(Some(&changed)),
                entries(),
                "facts.json is not the one in the ledger",
            ),
            (
                bundle(Some(&record())),
                of_another,
                "the facts are of another document than the authoritative copy",
            ),
        ] {
            let (ok, detail) = outcome(&bundle, &entries, &reader("A")).unwrap();
            assert_eq!((ok, detail.as_str()), (Some(false), why));
        }
    }
}
