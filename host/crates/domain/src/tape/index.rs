//! Finds the record of a row, and rows that share a key. A million entries take some tens of megabytes: keys are
//! kept as hashes, in sorted lists.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use super::map::{CONTRACT_NUMBER, TapeKey, TapeMap, VIN};
use super::reader::TapeRow;
use super::result::FindingCode;
use super::{cells, result::TapeFinding};
use crate::id::{EnvelopeId, OrgId};

/// Bytes of a key's hash. Of a million keys, two share one by chance with a probability of 10^-17.
const HASH: usize = 12;
/// Most records that a row is compared with by one key. Far more contracts than one vehicle has, and few enough that a
/// value which thousands of contracts share costs no more than any other.
const SHARED: usize = 20;
/// Bytes of an envelope id.
const ID: usize = 30;

type KeyHash = [u8; HASH];

/// Returns the hash of a key without case, spaces and separators, which people write in different ways.
fn hash(key: TapeKey, value: &str) -> Option<KeyHash> {
    let kept = value
        .chars()
        .filter(|one| !one.is_whitespace() && !"-./".contains(*one));
    let plain = kept.collect::<String>().to_uppercase();
    if plain.is_empty() {
        return None;
    }

    let digest = Sha256::digest(format!("{key}\n{plain}"));
    digest.first_chunk::<HASH>().copied()
}

/// A record that rows are looked up in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedRecord {
    pub envelope: EnvelopeId,
    /// Its originator.
    pub org: OrgId,
}

/// Result of looking a row up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowMatch {
    /// No record has one of its keys.
    None,
    One(u32),
    /// Records that share the first key that was found.
    Several {
        key: TapeKey,
        records: Vec<u32>,
    },
    /// So many records have its keys that none of them is compared.
    TooMany(usize),
}

/// The caller's records by their keys.
#[derive(Default)]
pub struct RecordIndex {
    records: Vec<([u8; ID], u32)>,
    orgs: Vec<OrgId>,
    of_org: HashMap<OrgId, u32>,
    keys: Vec<(KeyHash, u32)>,
    is_sorted: bool,
}

impl RecordIndex {
    /// Adds a record, and returns its number. Records come in the order of their ids.
    pub fn add(&mut self, envelope: &EnvelopeId, org: &OrgId) -> Option<u32> {
        let id: [u8; ID] = envelope.as_str().as_bytes().try_into().ok()?;
        let next = u32::try_from(self.orgs.len()).ok()?;
        let owner = *self.of_org.entry(org.clone()).or_insert(next);
        if owner == next {
            self.orgs.push(org.clone());
        }

        let number = u32::try_from(self.records.len()).ok()?;
        self.records.push((id, owner));
        self.add_key(number, TapeKey::EnvelopeId, envelope.as_str());
        Some(number)
    }

    /// Adds a key of a record. One without letters and digits finds nothing.
    pub fn add_key(&mut self, record: u32, key: TapeKey, value: &str) {
        if let Some(hash) = hash(key, value) {
            self.keys.push((hash, record));
            self.is_sorted = false;
        }
    }

    /// Prepares the index for look-ups.
    pub fn sort(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup();
        self.is_sorted = true;
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns a record by its number.
    pub fn record(&self, number: u32) -> Option<IndexedRecord> {
        let (id, org) = self.records.get(number as usize)?;
        Some(IndexedRecord {
            envelope: EnvelopeId::parse(std::str::from_utf8(id).ok()?)?,
            org: self.orgs.get(*org as usize)?.clone(),
        })
    }

    /// Returns the number of a record.
    pub fn number(&self, envelope: &EnvelopeId) -> Option<u32> {
        let found = self.find(TapeKey::EnvelopeId, envelope.as_str());
        found.first().map(|(_, record)| *record)
    }

    /// Returns the SHA-256 over the ids of all records in their order, each with a line feed.
    pub fn sha256(&self) -> String {
        let mut ids: Vec<&[u8; ID]> = self.records.iter().map(|(id, _)| id).collect();
        ids.sort_unstable();
        let mut hasher = Sha256::new();
        for id in ids {
            hasher.update(id);
            hasher.update(b"\n");
        }
        hex::encode(hasher.finalize())
    }

    /// Looks a row up by the keys of the map. A later key decides between records that share an earlier one, and stands
    /// alone behind one that too many records have.
    pub fn look_up(&self, row: &TapeRow, map: &TapeMap) -> RowMatch {
        let (mut found, mut too_many): (Option<(TapeKey, Vec<u32>)>, _) = (None, None);
        for key in &map.keys {
            let cell = map
                .index_of(key.column())
                .and_then(|index| row.cells.get(index)?.as_deref());
            let Some(cell) = cell.filter(|cell| !cells::is_empty(cell)) else {
                continue;
            };

            let of_key = self.find(*key, cell);
            found = match found {
                None if of_key.is_empty() => None,
                None if of_key.len() > SHARED => {
                    too_many = too_many.or(Some(of_key.len()));
                    None
                }
                None => Some((*key, of_key.iter().map(|(_, record)| *record).collect())),
                Some((first, records)) => {
                    let both: Vec<u32> = records
                        .iter()
                        .copied()
                        .filter(|one| {
                            of_key
                                .binary_search_by_key(one, |(_, record)| *record)
                                .is_ok()
                        })
                        .collect();
                    // A key that contradicts the earlier one decides nothing.
                    Some((first, if both.is_empty() { records } else { both }))
                }
            };
            if let Some((_, records)) = &found
                && let [record] = records[..]
            {
                return RowMatch::One(record);
            }
        }

        match found {
            None => too_many.map_or(RowMatch::None, RowMatch::TooMany),
            Some((key, records)) => RowMatch::Several { key, records },
        }
    }

    /// Returns the records with a key, in the order of their numbers.
    fn find(&self, key: TapeKey, value: &str) -> &[(KeyHash, u32)] {
        debug_assert!(self.is_sorted);
        let Some(hash) = hash(key, value) else {
            return &[];
        };
        let first = self.keys.partition_point(|(other, _)| *other < hash);
        let rest = &self.keys[first..];
        let end = rest.partition_point(|(other, _)| *other == hash);
        &rest[..end]
    }
}

/// Keys of the rows that were read so far.
#[derive(Default)]
pub struct KeyScan {
    vins: Vec<(KeyHash, u32)>,
    numbers: Vec<(KeyHash, u32)>,
}

impl KeyScan {
    /// Adds a row.
    pub fn add(&mut self, row: &TapeRow, map: &TapeMap) {
        let Ok(line) = u32::try_from(row.line) else {
            return;
        };
        let of = |fact: &str, key: TapeKey| {
            let cell = row.cells.get(map.index_of(fact)?)?.as_deref()?;
            let cell = Some(cell).filter(|cell| !cells::is_empty(cell))?;
            Some((hash(key, cell)?, line))
        };
        self.vins.extend(of(VIN, TapeKey::VinAndDate));
        self.numbers
            .extend(of(CONTRACT_NUMBER, TapeKey::ContractNumber));
    }

    /// Returns the rows that share a key.
    pub fn finish(self) -> SharedKeys {
        let mut shared = Vec::new();
        repeated(self.vins, FindingCode::DuplicateVin, &mut shared);
        repeated(
            self.numbers,
            FindingCode::DuplicateContractNumber,
            &mut shared,
        );
        shared.sort_by_key(|(line, _, _)| *line);
        SharedKeys(shared)
    }
}

/// Adds each row of a key that has several, with the first other row.
fn repeated(
    mut keys: Vec<(KeyHash, u32)>,
    code: FindingCode,
    shared: &mut Vec<(u32, u32, FindingCode)>,
) {
    keys.sort_unstable();
    for rows in keys.chunk_by(|(one, _), (next, _)| one == next) {
        let [(_, first), (_, second), ..] = rows else {
            continue;
        };
        for (_, line) in rows {
            let other = if line == first { second } else { first };
            shared.push((*line, *other, code));
        }
    }
}

/// Rows that share a VIN or a contract number.
pub struct SharedKeys(Vec<(u32, u32, FindingCode)>);

impl SharedKeys {
    /// Returns what is reported about a row.
    pub fn of(&self, line: u64) -> Vec<TapeFinding> {
        let first = self
            .0
            .partition_point(|(other, _, _)| u64::from(*other) < line);
        let of_line = self.0[first..]
            .iter()
            .take_while(|(other, _, _)| u64::from(*other) == line);
        of_line
            .map(|(_, other, code)| also_on(*code, u64::from(*other)))
            .collect()
    }
}

/// Reports another line with the same key or record.
pub fn also_on(code: FindingCode, line: u64) -> TapeFinding {
    TapeFinding::of_row(code, format!("also on line {line}"))
}

/// Records that rows have listed so far, with the first line of each.
pub struct ListedRecords(Vec<u32>);

impl ListedRecords {
    pub fn new(index: &RecordIndex) -> Self {
        Self(vec![0; index.len()])
    }

    /// Notes that a row lists a record. Returns the first line that does, if this is another one.
    pub fn note(&mut self, record: u32, line: u64) -> Option<u64> {
        let first = self.0.get_mut(record as usize)?;
        if *first == 0 {
            *first = u32::try_from(line).unwrap_or(u32::MAX);
            return None;
        }
        Some(u64::from(*first))
    }

    /// Returns the records that no row lists.
    pub fn unlisted(&self) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.0)
            .filter(|(_, line)| **line == 0)
            .map(|(record, _)| record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(keys: &str) -> TapeMap {
        let text = format!(
            r#"{{"columns":[{{"column":"n","fact":"contract_number"}},{{"column":"v","fact":"vin"}},
                {{"column":"e","fact":"envelope_id"}},{{"column":"x","fact":"external_id"}}]{keys}}}"#
        );
        TapeMap::parse(&text).unwrap()
    }

    fn row(line: u64, cells: [&str; 4]) -> TapeRow {
        let cells = cells.map(|cell| Some(cell.to_owned()));
        TapeRow {
            line,
            cells: cells.into(),
        }
    }

    fn index() -> (RecordIndex, Vec<EnvelopeId>) {
        let (org, mut index) = (OrgId::new(), RecordIndex::default());
        let ids: Vec<EnvelopeId> = (0..3).map(|_| EnvelopeId::new()).collect();
        for id in &ids {
            index.add(id, &org).unwrap();
        }
        for (record, key, value) in [
            (0, TapeKey::ContractNumber, "A-1"),
            (1, TapeKey::ContractNumber, "A-2"),
            (2, TapeKey::ContractNumber, "A-2"),
            (0, TapeKey::VinAndDate, "1M8GDM9AXKP042788"),
            (1, TapeKey::VinAndDate, "1M8GDM9AXKP042788"),
            (2, TapeKey::ExternalId, "deal 7"),
        ] {
            index.add_key(record, key, value);
        }
        index.sort();
        (index, ids)
    }

    #[test]
    fn a_row_finds_its_record_by_the_first_key_that_decides() {
        let (index, ids) = index();
        let found = |cells| index.look_up(&row(2, cells), &map(""));
        assert_eq!(found(["a1", "", "", ""]), RowMatch::One(0));
        assert_eq!(
            found(["A-2", "1m8gdm9axkp042788", "", ""]),
            RowMatch::One(1)
        );
        assert_eq!(found(["A-2", "", "", "DEAL-7"]), RowMatch::One(2));
        assert_eq!(found(["", "", ids[1].as_str(), ""]), RowMatch::One(1));
        assert_eq!(found(["A-9", "n/a", "", "deal 8"]), RowMatch::None);
        assert_eq!(found(["", "-", "", ""]), RowMatch::None);
        let several = |key, records: &[u32]| RowMatch::Several {
            key,
            records: records.into(),
        };
        assert_eq!(
            found(["A-2", "", "", ""]),
            several(TapeKey::ContractNumber, &[1, 2])
        );
        assert_eq!(
            found(["", "1M8GDM9AXKP042788", "", ""]),
            several(TapeKey::VinAndDate, &[0, 1])
        );

        // A key that is not in the map finds nothing.
        let numbers = map(r#","keys":["contract_number"]"#);
        assert_eq!(
            index.look_up(&row(2, ["", "", ids[0].as_str(), ""]), &numbers),
            RowMatch::None
        );
        assert_eq!(index.record(2).unwrap().envelope, ids[2]);
        assert_eq!(index.number(&ids[2]), Some(2));
        assert_eq!(index.record(3), None);
    }

    #[test]
    fn a_key_of_too_many_records_leaves_the_choice_to_the_others() {
        let (org, mut index) = (OrgId::new(), RecordIndex::default());
        for number in 0..=SHARED {
            let record = index.add(&EnvelopeId::new(), &org).unwrap();
            index.add_key(record, TapeKey::ContractNumber, "pending");
            index.add_key(record, TapeKey::ExternalId, &format!("deal {number}"));
        }
        index.sort();

        let found = |cells| index.look_up(&row(2, cells), &map(""));
        assert_eq!(
            found(["pending", "", "", ""]),
            RowMatch::TooMany(SHARED + 1)
        );
        assert_eq!(found(["pending", "", "", "deal 7"]), RowMatch::One(7));
    }

    #[test]
    fn rows_that_share_a_key_name_each_other() {
        let map = map("");
        let mut scan = KeyScan::default();
        for (line, cells) in [
            (2, ["A-1", "1M8GDM9AXKP042788", "", ""]),
            (3, ["A-2", "1m8gdm9axkp042788", "", ""]),
            (4, ["A-2", "", "", ""]),
            (5, ["A-3", "n/a", "", ""]),
            (6, ["a 2", "N/A", "", ""]),
        ] {
            scan.add(&row(line, cells), &map);
        }

        let shared = scan.finish();
        let of = |line| -> Vec<(FindingCode, String)> {
            let found = shared.of(line).into_iter();
            found
                .map(|finding| (finding.code, finding.detail.unwrap_or_default()))
                .collect()
        };
        assert_eq!(
            of(2),
            [(FindingCode::DuplicateVin, "also on line 3".into())]
        );
        let both = of(3);
        assert!(
            both.contains(&(FindingCode::DuplicateVin, "also on line 2".into())),
            "{both:?}"
        );
        assert!(
            both.contains(&(
                FindingCode::DuplicateContractNumber,
                "also on line 4".into()
            )),
            "{both:?}"
        );
        assert_eq!(
            of(6),
            [(
                FindingCode::DuplicateContractNumber,
                "also on line 3".into()
            )]
        );
        assert!(of(5).is_empty());
    }

    #[test]
    fn records_without_a_row_are_known_at_the_end() {
        let (index, _) = index();
        let mut listed = ListedRecords::new(&index);
        assert_eq!(listed.note(1, 4), None);
        assert_eq!(listed.note(1, 9), Some(4));
        assert_eq!(listed.note(99, 1), None);
        assert_eq!(listed.unlisted().collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn the_population_has_a_digest() {
        let (one, ids) = index();
        let mut other = RecordIndex::default();
        for id in ids.iter().rev() {
            other.add(id, &OrgId::new()).unwrap();
        }
        let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
        assert_eq!(one.sha256(), crate::hash::sha256(text.as_bytes()));
        assert_eq!(other.sha256(), one.sha256());
    }
}
