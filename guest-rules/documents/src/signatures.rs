//! Signatures that a document already has: the bytes that each one covers, and what changed after
//! it. Verifying them needs public keys and time, so the host verifies them.

use std::collections::BTreeMap;

use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId};
use sha2::{Digest as _, Sha256};

use crate::error::{Result, over_limit};
use crate::revisions;
use crate::source::{
    MAX_STREAM_BYTES, certification_level, dictionary, is_signed, refuse_encrypted, resolve_in,
};
use crate::{FoundSignature, FoundSignatures, LaterChange, SignatureCoverage};

/// Limit on the signatures of a document. Each one costs a comparison of two revisions.
const MAX_SIGNATURES: usize = 32;

/// Limit on the depth and number of form fields.
const MAX_DEPTH: usize = 32;
const MAX_FIELDS: usize = 20_000;

/// Lists the signatures of a document in the order in which they were appended.
///
/// # Errors
///
/// `encrypted`, `unreadable` and `over-limit` for the document.
pub fn signatures(pdf: &[u8]) -> Result<FoundSignatures> {
    // Most uploads have no signature. They are not parsed a second time for this.
    if !is_signed(pdf) {
        return Ok(FoundSignatures {
            certification_level: None,
            revocation_data: false,
            signatures: Vec::new(),
        });
    }

    refuse_encrypted(pdf)?;
    let document = load(pdf)?;
    let names = names_of_values(&document);

    // All objects are searched: a signature outside of the form covers bytes, too.
    let mut signatures = Vec::new();
    for (id, object) in &document.objects {
        let Some(signature) = object.as_dict().ok().filter(|entry| is_signature(entry)) else {
            continue;
        };
        if signatures.len() == MAX_SIGNATURES {
            return Err(over_limit(format!("{MAX_SIGNATURES} signatures")));
        }

        let name = names.get(id).cloned().unwrap_or_default();
        signatures.push(found(pdf, &document, name, signature));
    }

    // Each later signature covers the earlier ones, so its range ends behind theirs.
    signatures.sort_by_key(|signature| end(&signature.ranges));
    Ok(FoundSignatures {
        certification_level: certification_level(&document)
            .and_then(|level| u8::try_from(level).ok()),
        revocation_data: has_revocation_data(&document),
        signatures,
    })
}

/// Loads a document for a comparison. Large streams are replaced by their digests, which keeps two
/// revisions of a large document in memory.
fn load(pdf: &[u8]) -> Result<Document> {
    let options = LoadOptions {
        filter: Some(digested),
        ..LoadOptions::with_max_decompressed_size(MAX_STREAM_BYTES)
    };
    Ok(Document::load_mem_with_options(pdf, options)?)
}

fn digested(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    const SMALL: usize = 4 * 1024;

    match object {
        // lopdf keeps a stream as changed in place; it takes the returned object only for members
        // of an object stream, which are never streams. Those two kinds are read after the filter.
        Object::Stream(stream) => {
            let kind = stream.dict.get(b"Type").and_then(Object::as_name).ok();
            let structural = matches!(kind, Some(b"ObjStm" | b"XRef"));
            if stream.content.len() > SMALL && !structural {
                stream.content = Sha256::digest(&stream.content).to_vec();
            }
            Some((id, Object::Null))
        }
        plain => Some((id, plain.clone())),
    }
}

/// Returns whether a document has a signature, also one that its author certified it with.
pub(crate) fn has_signature(document: &Document) -> bool {
    let is_one = |object: &Object| object.as_dict().is_ok_and(is_signature);
    // A signature may be a direct value of its field, which is no object of its own.
    let in_field = |field: FormField<'_>| {
        let value = field
            .entry
            .get(b"V")
            .map(|value| resolve_in(document, value));
        value.is_ok_and(is_one)
    };

    certification_level(document).is_some()
        || document.objects.values().any(is_one)
        || fields(document).into_iter().any(in_field)
}

/// Returns whether a dictionary is a signature (ISO 32000-1, table 252).
fn is_signature(entry: &Dictionary) -> bool {
    entry.has(b"ByteRange") && entry.has(b"Contents") && !entry.has(b"Subtype")
}

/// Returns the full names of the fields by the object that is their value.
fn names_of_values(document: &Document) -> BTreeMap<ObjectId, String> {
    let mut names = BTreeMap::new();
    for field in fields(document) {
        if let Ok(Object::Reference(value)) = field.entry.get(b"V") {
            names.insert(*value, field.name);
        }
    }
    names
}

/// A field of the form, with the properties that it inherits.
pub(crate) struct FormField<'a> {
    pub(crate) name: String,
    pub(crate) is_signature: bool,
    pub(crate) entry: &'a Dictionary,
}

/// Lists the fields of the form, and the nodes above them.
pub(crate) fn fields(document: &Document) -> Vec<FormField<'_>> {
    let mut found = Vec::new();
    let form = document
        .catalog()
        .ok()
        .and_then(|catalog| catalog.get(b"AcroForm").ok());
    let form = form.and_then(|form| dictionary(document, form));
    if let Some(Object::Array(roots)) = form
        .and_then(|form| form.get(b"Fields").ok())
        .map(|fields| resolve_in(document, fields))
    {
        for root in roots {
            add_fields(document, root, "", false, 0, &mut found);
        }
    }

    found
}

fn add_fields<'a>(
    document: &'a Document,
    node: &'a Object,
    above: &str,
    inherited: bool,
    depth: usize,
    found: &mut Vec<FormField<'a>>,
) {
    let Some(entry) = dictionary(document, node) else {
        return;
    };
    // Bounded, because the kids in a hostile document can form a cycle.
    if depth > MAX_DEPTH || found.len() >= MAX_FIELDS {
        return;
    }

    let part = entry.get(b"T").and_then(lopdf::decode_text_string).ok();
    // A node without a name is a widget of the field above it.
    let name = match part {
        Some(part) if above.is_empty() => part,
        Some(part) => format!("{above}.{part}"),
        None => above.to_owned(),
    };
    let kind = entry
        .get(b"FT")
        .map(|kind| resolve_in(document, kind))
        .and_then(Object::as_name);

    let is_signature = kind.map_or(inherited, |kind| kind == b"Sig");
    if let Some(Object::Array(kids)) = entry
        .get(b"Kids")
        .ok()
        .map(|kids| resolve_in(document, kids))
    {
        for kid in kids {
            add_fields(document, kid, &name, is_signature, depth + 1, found);
        }
    }

    found.push(FormField {
        name,
        is_signature,
        entry,
    });
}

fn has_revocation_data(document: &Document) -> bool {
    let store = document
        .catalog()
        .ok()
        .and_then(|catalog| catalog.get(b"DSS").ok());
    store
        .and_then(|store| dictionary(document, store))
        .is_some_and(|store| {
            [&b"CRLs"[..], b"OCSPs"].iter().any(|key| {
                let list = store.get(key).map(|list| resolve_in(document, list));
                list.and_then(Object::as_array)
                    .is_ok_and(|list| !list.is_empty())
            })
        })
}

fn found(pdf: &[u8], document: &Document, field: String, signature: &Dictionary) -> FoundSignature {
    let entry = |key: &[u8]| {
        signature
            .get(key)
            .ok()
            .map(|value| resolve_in(document, value))
    };
    // A malformed number ends the list. The range is then incomplete and counts as a part.
    let numbers: Vec<u64> = entry(b"ByteRange")
        .and_then(|range| range.as_array().ok())
        .map(|range| range.iter().map_while(|number| number.as_i64().ok()))
        .into_iter()
        .flatten()
        .map_while(|number| u64::try_from(number).ok())
        .collect();
    let ranges: Vec<(u64, u64)> = numbers
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect();

    let contents = match entry(b"Contents") {
        Some(Object::String(bytes, _)) => bytes.clone(),
        _ => Vec::new(),
    };
    let coverage = coverage(pdf, &ranges, &contents);
    // Only a whole revision can be compared. A part is reported by the coverage itself.
    let later = match coverage {
        SignatureCoverage::Revision => later_change(pdf, document, end(&ranges)),
        SignatureCoverage::WholeDocument | SignatureCoverage::Part => LaterChange::None,
    };

    let claimed_at = entry(b"M")
        .and_then(|moment| lopdf::decode_text_string(moment).ok())
        .and_then(|moment| rfc_3339(&moment));
    FoundSignature {
        field,
        format: entry(b"SubFilter")
            .and_then(|name| name.as_name().ok())
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .unwrap_or_default(),
        ranges,
        contents,
        claimed_at,
        coverage,
        later,
    }
}

/// Returns the end of the last covered range.
fn end(ranges: &[(u64, u64)]) -> u64 {
    ranges
        .last()
        .map_or(0, |(offset, length)| offset.saturating_add(*length))
}

/// Determines which part of the file two ranges cover. The gap between them must hold exactly the
/// signature: anything else in it could be changed unnoticed.
fn coverage(pdf: &[u8], ranges: &[(u64, u64)], contents: &[u8]) -> SignatureCoverage {
    let covered = || -> Option<usize> {
        // Bytes before the first range could be replaced without breaking the signature.
        let [(0, before), (after, _)] = ranges else {
            return None;
        };

        let gap = pdf.get(usize::try_from(*before).ok()?..usize::try_from(*after).ok()?)?;
        let digits = gap.strip_prefix(b"<")?.strip_suffix(b">")?;
        let same = digits.len() == 2 * contents.len()
            && digits
                .chunks_exact(2)
                .zip(contents)
                .all(|(pair, byte)| hexadecimal(pair) == Some(*byte));

        let end = usize::try_from(end(ranges)).ok()?;
        (same && end <= pdf.len()).then_some(end)
    };

    let Some(end) = covered() else {
        return SignatureCoverage::Part;
    };

    // White space behind the end shows nothing.
    // A revision ends with its marker, or the range cuts through one.
    let (revision, rest) = pdf.split_at(end);
    if rest.iter().all(u8::is_ascii_whitespace) {
        SignatureCoverage::WholeDocument
    } else if revision.trim_ascii_end().ends_with(b"%%EOF") {
        SignatureCoverage::Revision
    } else {
        SignatureCoverage::Part
    }
}

fn hexadecimal(pair: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()
}

fn later_change(pdf: &[u8], document: &Document, end: u64) -> LaterChange {
    // The revision is read from its own bytes, as a reader saw it when the signature was made.
    let revision = usize::try_from(end).ok().and_then(|end| pdf.get(..end));
    match revision.map(load) {
        // A table that had to be rebuilt may describe objects of another revision.
        Some(Ok(revision)) if revision.xref_recovery.is_none() => {
            revisions::change(&revision, document)
        }
        _ => LaterChange::Unknown,
    }
}

/// Converts `D:20260501123000+02'00'` (ISO 32000-1, 7.9.4) to RFC 3339. A missing zone means UTC.
fn rfc_3339(moment: &str) -> Option<String> {
    let moment = moment.trim().strip_prefix("D:")?;
    let (digits, zone) = moment.split_at_checked(14)?;
    let number = |from: usize, to: usize, highest: u32| -> Option<&str> {
        let digits = digits.get(from..to)?;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        (all && digits.parse::<u32>().ok()? <= highest).then_some(digits)
    };
    let (year, month, day) = (number(0, 4, 9999)?, number(4, 6, 12)?, number(6, 8, 31)?);

    let (hour, minute, second) = (number(8, 10, 23)?, number(10, 12, 59)?, number(12, 14, 59)?);
    let zone: String = zone.chars().filter(|sign| *sign != '\'').collect();
    // Some programs write an offset after the Z, which can only be zero.
    let zone = match zone.as_bytes() {
        [] | [b'Z', ..] => "Z".to_owned(),
        [sign @ (b'+' | b'-'), a, b, c, d]
            if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()) =>
        {
            let digits: Vec<char> = [a, b, c, d]
                .iter()
                .map(|digit| char::from(**digit))
                .collect();
            format!(
                "{}{}{}:{}{}",
                char::from(*sign),
                digits[0],
                digits[1],
                digits[2],
                digits[3]
            )
        }
        _ => return None,
    };

    (month != "00" && day != "00")
        .then(|| format!("{year}-{month}-{day}T{hour}:{minute}:{second}{zone}"))
}
