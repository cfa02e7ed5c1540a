//! The English text of a custody record, from its facts.

use crate::moment::in_words;
use crate::{CustodyFacts, CustodySection, CustodySheet, TableColumn, TableRow};

/// Returns the record as text.
pub(super) fn sheet(facts: &CustodyFacts) -> CustodySheet {
    let name = match facts.envelope_name.trim() {
        "" => "Unnamed envelope",
        name => name,
    };
    let recorded = in_words(&facts.recorded_at);
    CustodySheet {
        envelope_id: facts.envelope_id.clone(),
        document_hash: facts.document_hash.clone(),
        recorded_at: facts.recorded_at.clone(),
        language: "en-US".into(),
        issuer: facts.issuer.clone(),
        title: "Custody record".into(),
        file_title: format!("Custody record of {}", facts.envelope_id),
        file_subject: format!(
            "Who held the authoritative copy of \u{201c}{}\u{201d}, since when, and how that was checked",
            facts.envelope_name
        ),
        document_name: name.to_owned(),
        byline: format!("Issued by {} on {recorded}", facts.issuer),
        verdict: verdict(facts),
        sections: vec![
            envelope(facts),
            documents(facts),
            parties(facts),
            checks(facts),
            timeline(facts),
            provenance(facts),
        ],
        foot: format!("Recorded {recorded}"),
        certificate_json: facts.certificate_json.clone(),
        certificate_about: "Certificate of the control checks this record reports".into(),
    }
}

fn verdict(facts: &CustodyFacts) -> Option<(String, bool)> {
    let all = facts.checks.len();
    let open = facts.checks.iter().filter(|check| !check.satisfied).count();
    let words = match open {
        0 => format!("All {all} control checks are satisfied"),
        _ => format!("{open} of {all} control checks are not satisfied"),
    };
    // A record without checks gets no verdict: zero of zero would look like a confirmation.
    (all > 0).then_some((words, open == 0))
}

fn fact(label: &str, value: &str) -> (String, String) {
    let value = match value.trim() {
        "" => "not given",
        _ => value,
    };
    (label.to_owned(), value.to_owned())
}

fn section(heading: &str, facts: Vec<(String, String)>) -> CustodySection {
    CustodySection {
        heading: heading.to_owned(),
        facts,
        columns: Vec::new(),
        rows: Vec::new(),
        note: String::new(),
    }
}

fn table<const N: usize>(
    heading: &str,
    columns: [(&str, f32); N],
    rows: Vec<TableRow>,
) -> CustodySection {
    let column = |(title, width): (&str, f32)| TableColumn {
        title: title.to_owned(),
        width,
    };
    CustodySection {
        columns: columns.map(column).into(),
        rows,
        ..section(heading, Vec::new())
    }
}

fn row<const N: usize>(satisfied: Option<bool>, cells: [&str; N]) -> TableRow {
    TableRow {
        satisfied,
        cells: cells.map(str::to_owned).into(),
    }
}

fn envelope(facts: &CustodyFacts) -> CustodySection {
    let mut rows = vec![
        fact("Envelope", &facts.envelope_id),
        fact("Customer", &facts.customer_id),
        fact("Custodian", &facts.custodian),
    ];
    rows.extend(
        facts
            .secured_party
            .iter()
            .map(|party| fact("Secured party", party)),
    );

    rows.extend(
        facts
            .attributes
            .iter()
            .map(|(name, value)| fact(name, value)),
    );

    section("Envelope", rows)
}

fn documents(facts: &CustodyFacts) -> CustodySection {
    section(
        "Documents",
        vec![
            fact("Hash algorithm", &facts.hash_algorithm),
            fact("Authoritative copy", &facts.document_hash),
            fact("Non-authoritative copy", &facts.copy_hash),
        ],
    )
}

fn parties(facts: &CustodyFacts) -> CustodySection {
    let columns = [
        ("Party", 0.26),
        ("E-mail", 0.33),
        ("Role", 0.13),
        ("Signed", 0.28),
    ];

    // A party without a time is listed, too. A missing row would hide that a signature is missing.
    let rows = facts.parties.iter().map(|party| {
        let signed = party.signed_at.as_deref();
        let signed = signed.map_or_else(|| "not signed".to_owned(), in_words);
        row(None, [&party.name, &party.email, &party.role, &signed])
    });
    table("Parties", columns, rows.collect())
}

fn checks(facts: &CustodyFacts) -> CustodySection {
    let columns = [
        ("Requirement", 0.35),
        ("Reference", 0.175),
        ("Finding", 0.475),
    ];
    let rows = facts.checks.iter().map(|check| {
        let verdict = if check.satisfied {
            "Satisfied"
        } else {
            "Not satisfied"
        };
        // The verdict stands in words as well: the sign beside it is drawn as lines, and no search finds it.
        let finding = match check.detail.trim() {
            "" => verdict.to_owned(),
            detail => format!("{verdict}. {detail}"),
        };
        let cells = [check.requirement.as_str(), &check.reference, &finding];

        row(Some(check.satisfied), cells)
    });

    table("Control checks", columns, rows.collect())
}

fn timeline(facts: &CustodyFacts) -> CustodySection {
    let columns = [("Time", 0.275), ("Actor", 0.235), ("Event", 0.49)];
    let rows = facts.timeline.iter().map(|entry| {
        let event = match entry.detail.trim() {
            "" => entry.action.clone(),
            detail => format!("{}: {detail}", entry.action),
        };
        row(None, [&in_words(&entry.at), &entry.actor, &event])
    });

    table("Chain of custody", columns, rows.collect())
}

fn provenance(facts: &CustodyFacts) -> CustodySection {
    let rows = vec![
        fact("Rules component", &facts.rules_component),
        fact("Attachment", super::ATTACHMENT),
    ];
    CustodySection {
        note:
            "The attached certificate has these checks in a form for programs. Whoever holds the \
            evidence of this record can repeat them: compute the hash named above over the bytes of \
            the document, compare it with this record, and run the component named here over the \
            facts in the ledger."
                .into(),
        ..section("How this record was made", rows)
    }
}
