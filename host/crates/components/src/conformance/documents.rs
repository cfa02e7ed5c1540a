//! Documents that readers and writers (`rules.placement`, `rules.documents`) are asked about.

use super::ConformanceRun;
use crate::documents::{DocumentsPre, PlacementPre};
use crate::inspection::AdmissionReason;
use crate::rules::{documents, placement, vaulting};
use crate::slot::ActiveComponent;
use holdfast_domain::component::ConformanceResult;

/// Version of the vectors for the document slots.
const DOCUMENT_VECTORS: &str = "1.0.0";
/// Document of four pages with text.
pub(super) const CONTRACT: &[u8] =
    include_bytes!("../../../../../tests/fixtures/retail-installment-contract.pdf");

pub(super) fn placement_vectors(
    active: &ActiveComponent<PlacementPre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let mut examination = ConformanceRun::new(DOCUMENT_VECTORS);
    let ask = "a document of four pages is read";
    let facts = examination.ask(active, ask, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_placement_placement()
            .call_inspect(store, CONTRACT)
    });
    if let Some(facts) = facts {
        let pages = facts.map(|facts| facts.pages.len());
        examination.expect(matches!(pages, Ok(4)), ask, "four pages were not found");
    }

    let mut place = |name: &str, text: &str, page| {
        let field = placement::FieldRequest {
            name: "Signature".into(),
            field_type: "signature".into(),
            role: "Buyer".into(),
            required: true,
            default_value: None,
            position: placement::Position::Anchor(placement::Anchor {
                text: text.into(),
                occurrence: None,
                page,
                offset_x: 0.0,
                offset_y: 0.0,
                w: 0.3,
                h: 0.03,
            }),
        };

        examination.ask(active, name, |store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_placement_placement()
                .call_place(store, CONTRACT, &[field])
        })
    };

    // A component that finds every anchor, or none, fails one of these two.
    let there = "an anchor is found where it is";
    let found = place(there, "Buyer signature:", None);
    let nowhere = "an anchor that is not there is an error";
    let missing = place(nowhere, "no such words at all", None);

    if let Some(found) = found {
        // Components may place a field a little differently, so only the page and its edges are compared.
        let right = found.is_ok_and(|fields| {
            fields
                .first()
                .and_then(|field| field.areas.first())
                .is_some_and(|area| {
                    area.page == 4 && (0.0..1.0).contains(&area.x) && (0.0..1.0).contains(&area.y)
                })
        });

        examination.expect(right, there, "it lands elsewhere, or nowhere");
    }

    if let Some(missing) = missing {
        examination.expect(missing.is_err(), nowhere, "a place was made up");
    }

    let name = "the lines of a page are read";
    let lines = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_placement_placement();
        rules.call_text(store, CONTRACT, 4)
    });
    examination.reaches(
        "text",
        name,
        lines.map(|lines| lines.is_ok_and(|all| !all.is_empty())),
    );

    let name = "every place of a text is found";
    let places = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_placement_placement();
        rules.call_occurrences(store, CONTRACT, "Buyer signature:", None)
    });
    let found = places.map(|places| places.is_ok_and(|all| !all.is_empty()));
    examination.reaches("occurrences", name, found);

    let name = "a document without tags has no fields";
    let tags = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_placement_placement();
        rules.call_tags(store, CONTRACT)
    });
    examination.reaches(
        "tags",
        name,
        tags.map(|tags| tags.is_ok_and(|all| all.is_empty())),
    );

    examination.end(true)
}

pub(super) fn documents_vectors(
    active: &ActiveComponent<DocumentsPre>,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let mut examination = ConformanceRun::new(DOCUMENT_VECTORS);
    let name = "a mark is added behind what was signed";
    let request = documents::MarkRequest {
        kind: documents::CopyKind::NonAuthoritative,
        envelope_id: "env_conformance".into(),
        secured_party: Some("First Example Bank".into()),
        marked_at: "2026-01-02T03:04:05.000Z".into(),
        rewrite: false,
    };
    let marked = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_documents_documents()
            .call_mark(store, CONTRACT, &request)
    });
    if let Some(marked) = marked {
        let appended = match marked {
            Ok(documents::Marked::Appended(tail)) => !tail.is_empty(),
            _ => false,
        };
        examination.expect(appended, name, "nothing was appended");
    }

    let name = "a page is shown";
    let picture = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        instance
            .holdfast_documents_documents()
            .call_page_image(store, CONTRACT, 1, 100)
    });
    if let Some(picture) = picture {
        let png = picture.map(|picture| picture.png).unwrap_or_default();
        let shown = png.starts_with(b"\x89PNG");
        examination.expect(shown, name, "no picture was made");
        // The other functions need a picture, so they are asked only if there is one.
        if shown {
            further_documents(&mut examination, active, png);
        }
    }

    examination.end(true)
}

/// Checks the functions that return a whole document.
fn further_documents(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<DocumentsPre>,
    png: Vec<u8>,
) {
    type Given = Result<Vec<u8>, documents::DocumentError>;

    // Only the kind of file is compared: two components may write different bytes for the same page.
    let gives = |function: &str, answer: Option<Given>| {
        let pdf = answer.map(|pdf| pdf.is_ok_and(|pdf| pdf.starts_with(b"%PDF")));
        (function.to_owned(), pdf)
    };
    let mut all = Vec::new();
    let name = "tags are removed";
    let stripped = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_strip_tags(store, CONTRACT)
    });
    all.push((name, gives("strip-tags", stripped)));

    let name = "a value is written at its place";
    let field = documents::FilledField {
        areas: vec![documents::Area {
            page: 1,
            x: 0.1,
            y: 0.1,
            w: 0.3,
            h: 0.03,
        }],
        value: documents::FieldValue::Typed("Bo Buyer".into()),
    };

    let filled = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_fill(store, CONTRACT, std::slice::from_ref(&field))
    });
    all.push((name, gives("fill", filled)));
    let name = "a picture becomes a document";

    let picture = documents::Picture {
        format: documents::PictureFormat::Png,
        bytes: png,
    };
    let pictured = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_picture_to_pdf(store, &picture)
    });
    all.push((name, gives("picture-to-pdf", pictured)));

    let name = "two documents become one";
    let both = [CONTRACT.to_vec(), CONTRACT.to_vec()];
    let merged = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_merge(store, &both)
    });
    all.push((name, gives("merge", merged)));

    let name = "a custody record is written";
    let facts = custody_facts();
    let record = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_custody_record(store, &facts)
    });
    all.push((name, gives("custody-record", record)));

    for (name, (function, given)) in all {
        examination.reaches(&function, name, given);
    }

    let name = "a place for a signature is added";
    let request = documents::SealRequest {
        name: "Example".into(),
        reason: "Conformance".into(),
        signed_at: "2026-01-02T03:04:05.000Z".into(),
        signature_bytes: 8192,
    };
    let space = examination.ask(active, name, |store, pre| {
        let instance = pre.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_documents();
        rules.call_prepare_seal(store, CONTRACT, &request)
    });
    let placed = space.map(|space| space.is_ok_and(|space| space.place_start < space.place_end));
    examination.reaches("prepare-seal", name, placed);

    // A component without this function is fine: the host then marks each copy on its own.
    if active.pre.vaulting.is_some() {
        both_copies(examination, active, request);
    }
}

/// Checks the function that makes both copies for the vault.
fn both_copies(
    examination: &mut ConformanceRun,
    active: &ActiveComponent<DocumentsPre>,
    seal: documents::SealRequest,
) {
    let name = "both copies are updates of what was signed";
    let mark = |kind| documents::MarkRequest {
        kind,
        envelope_id: "env_conformance".into(),
        secured_party: None,
        marked_at: "2026-01-02T03:04:05.000Z".into(),
        rewrite: false,
    };
    let request = vaulting::VaultRequest {
        authoritative: mark(documents::CopyKind::Authoritative),
        seal,
        copy: mark(documents::CopyKind::NonAuthoritative),
        words: None,
    };
    let made = examination.ask(active, name, |store, pre| {
        let vaulting = pre.vaulting.as_ref();
        let vaulting = vaulting.ok_or_else(|| wasmtime::Error::msg("it is not exported"))?;
        let instance = vaulting.instantiate(&mut *store)?;
        let rules = instance.holdfast_documents_vaulting();
        rules.call_prepare_copies(store, CONTRACT, &request)
    });

    // None is an answer too: the host then calls the other functions.
    let fits = made.map(|made| match made {
        Ok(None) => true,
        Ok(Some(made)) => has_empty_place(&made.authoritative) && !made.copy.is_empty(),
        Err(_) => false,
    });

    examination.reaches("prepare-copies", name, fits);
}

/// Returns whether an update of the contract has an empty place for a signature.
fn has_empty_place(space: &documents::SealSpace) -> bool {
    // Offsets count from the beginning of the document, and the update is appended to it.
    let at = |offset: u64| usize::try_from(offset).ok()?.checked_sub(CONTRACT.len());
    let place = at(space.place_start).zip(at(space.place_end));
    let place = place.and_then(|(start, end)| space.appended.get(start..end));
    place
        .and_then(|place| place.strip_prefix(b"<")?.strip_suffix(b">"))
        // The host writes its signature there, so the component must leave zeros.
        .is_some_and(|digits| digits.iter().all(|digit| *digit == b'0'))
}

fn custody_facts() -> documents::CustodyFacts {
    documents::CustodyFacts {
        envelope_id: "env_conformance".into(),
        envelope_name: "Conformance".into(),
        customer_id: "cus_conformance".into(),
        issuer: "Example".into(),
        recorded_at: "2026-01-02T03:04:05.000Z".into(),
        hash_algorithm: "SHA-256".into(),
        document_hash: "0".repeat(64),
        copy_hash: "1".repeat(64),
        secured_party: Some("First Example Bank".into()),
        custodian: "Example".into(),
        parties: Vec::new(),
        timeline: Vec::new(),
        checks: Vec::new(),
        rules_component: "candidate 0.0.0".into(),
        certificate_json: "{}".into(),
        attributes: Vec::new(),
    }
}
