//! Records that all engines evaluate, with the checks that each must fail.

use holdfast::components::rules::compliance as component;
pub use holdfast_compliance::status_text;
use holdfast_compliance::types::{
    Custodian, CustodianStatus, EnvelopeFacts, EnvelopeStatus, IdentityVerification, SecuredParty,
    SignedDocument, Submitter,
};

/// A record and the numbers (1 to 8) of the checks that it must fail.
pub struct BenchRecord {
    pub name: &'static str,
    pub facts: EnvelopeFacts,
    pub failing: &'static [usize],
}

/// Returns a complete vaulted envelope: three submitters, three signed documents, two custodians,
/// and all optional fields.
pub fn passing() -> EnvelopeFacts {
    let mut facts = EnvelopeFacts {
        envelope_id: "env_01993b1c9a7e7c41b6f2d5a0c3e84f17".into(),
        envelope_name: "Retail instalment contract 2026-1183".into(),
        customer_id: "cust_01993b1c21f07d0f8a5be1c9d7420b66".into(),
        status: EnvelopeStatus::Vaulted,
        vault_file_path: Some("vault:env_01993b1c9a7e7c41b6f2d5a0c3e84f17/authoritative".into()),
        document_hash: Some("9f2c4be07d1358a6e0b7c5d2134fa86e".repeat(2)),
        copy_file_path: Some("copies:env_01993b1c9a7e7c41b6f2d5a0c3e84f17/copy".into()),
        vault_out_certificate_path: Some(
            "certificates:env_01993b1c9a7e7c41b6f2d5a0c3e84f17".into(),
        ),
        secured_party: Some(SecuredParty {
            name: "First Example Bank".into(),
            role: Some("lender".into()),
            address: Some("1 Example Street, Springfield".into()),
            email: Some("paper@bank.example".into()),
            identifier: Some("LEI 00EXAMPLE00000000001".into()),
        }),
        submitters: Vec::new(),
        signed_documents: Vec::new(),
        custodians: vec![
            custodian("vault@dealer.example", CustodianStatus::Revoked),
            custodian("custody@bank.example", CustodianStatus::Accepted),
        ],
        identity_verifications: vec![IdentityVerification {
            signer_email: "buyer@mail.example".into(),
            outcome: "passed".into(),
            occurred_at: "2026-11-01T09:58:12.000Z".into(),
            ip_address: Some("192.0.2.17".into()),
            provider_session_id: Some("session-4711".into()),
        }],
        attributes: vec![("jurisdiction".into(), "US-IL".into())],
    };

    for (name, email, role) in [
        ("Ada Buyer", "buyer@mail.example", "Buyer"),
        ("Carl Cobuyer", "cobuyer@mail.example", "Co-buyer"),
        ("Sam Seller", "seller@dealer.example", "Seller"),
    ] {
        facts.submitters.push(Submitter {
            name: name.into(),
            email: email.into(),
            role: role.into(),
        });

        facts.signed_documents.push(SignedDocument {
            signer_email: email.into(),
            signed_at: "2026-11-01T10:00:00.000Z".into(),
        });
    }

    facts
}

/// Returns the passing record, records that fail one check each, and unusual ones.
pub fn all() -> Vec<BenchRecord> {
    vec![
        record("everything in place", &[], |_| {}),
        record("not in the vault", &[1], |facts| {
            facts.vault_file_path = None
        }),
        record("no hash", &[2], |facts| facts.document_hash = None),
        record("no custodian has accepted", &[3], |facts| {
            facts
                .custodians
                .retain(|custodian| custodian.status != CustodianStatus::Accepted);
        }),
        record("a signature is missing", &[4], |facts| {
            facts.signed_documents.pop();
        }),
        record("no copy", &[5], |facts| facts.copy_file_path = None),
        record("only viewed", &[6], |facts| {
            facts.status = EnvelopeStatus::Viewed
        }),
        record("no certificate", &[7], |facts| {
            facts.vault_out_certificate_path = None
        }),
        record("no secured party", &[8], |facts| facts.secured_party = None),
        record("an empty path", &[1], |facts| {
            facts.vault_file_path = Some(String::new())
        }),
        record("a hash that is too short", &[2], |facts| {
            facts.document_hash = Some("9f2c".into());
        }),
        record("a hash with other letters", &[2], |facts| {
            facts.document_hash = Some("x".repeat(64));
        }),
        record("no custodian at all", &[3], |facts| {
            facts.custodians.clear()
        }),
        record("nobody has signed", &[4], |facts| {
            facts.signed_documents.clear()
        }),
        record("the copy is elsewhere", &[5], |facts| {
            facts.copy_file_path = Some("vault:copy".into());
        }),
        record("vaulted out", &[6], |facts| {
            facts.status = EnvelopeStatus::VaultedOut
        }),
        record("a secured party without a name", &[8], |facts| {
            if let Some(party) = &mut facts.secured_party {
                party.name = "  ".into();
            }
        }),
        record("signed under another spelling", &[], |facts| {
            if let Some(signed) = facts.signed_documents.first_mut() {
                signed.signer_email = " Buyer@Mail.Example".into();
            }
        }),
        record("signed on paper", &[], |facts| {
            facts.submitters.clear();
            facts.signed_documents.clear();
        }),
        record(
            "nothing but submitters",
            &[1, 2, 3, 4, 5, 6, 7, 8],
            |facts| {
                *facts = EnvelopeFacts {
                    status: EnvelopeStatus::Pending,
                    vault_file_path: None,
                    document_hash: None,
                    copy_file_path: None,
                    vault_out_certificate_path: None,
                    secured_party: None,
                    signed_documents: Vec::new(),
                    custodians: Vec::new(),
                    ..facts.clone()
                };
            },
        ),
    ]
}

fn record(
    name: &'static str,
    failing: &'static [usize],
    change: impl FnOnce(&mut EnvelopeFacts),
) -> BenchRecord {
    let mut facts = passing();
    change(&mut facts);
    BenchRecord {
        name,
        facts,
        failing,
    }
}

fn custodian(email: &str, status: CustodianStatus) -> Custodian {
    Custodian {
        email: email.into(),
        status,
    }
}

/// Returns a custodian's status as the policies of the other engines write it.
pub fn custodian_status_text(status: CustodianStatus) -> &'static str {
    match status {
        CustodianStatus::Pending => "pending",
        CustodianStatus::Accepted => "accepted",
        CustodianStatus::Revoked => "revoked",
    }
}

/// Converts a record to the types of the host.
pub fn for_component(facts: &EnvelopeFacts) -> component::EnvelopeFacts {
    let facts = facts.clone();
    component::EnvelopeFacts {
        envelope_id: facts.envelope_id,
        envelope_name: facts.envelope_name,
        customer_id: facts.customer_id,
        status: component_status(facts.status),
        vault_file_path: facts.vault_file_path,
        document_hash: facts.document_hash,
        copy_file_path: facts.copy_file_path,
        vault_out_certificate_path: facts.vault_out_certificate_path,
        secured_party: facts.secured_party.map(|party| component::SecuredParty {
            name: party.name,
            role: party.role,
            address: party.address,
            email: party.email,
            identifier: party.identifier,
        }),
        submitters: converted(facts.submitters, |submitter| component::Submitter {
            name: submitter.name,
            email: submitter.email,
            role: submitter.role,
        }),
        signed_documents: converted(facts.signed_documents, |signed| component::SignedDocument {
            signer_email: signed.signer_email,
            signed_at: signed.signed_at,
        }),
        custodians: converted(facts.custodians, |custodian| component::Custodian {
            email: custodian.email,
            status: match custodian.status {
                CustodianStatus::Pending => component::CustodianStatus::Pending,
                CustodianStatus::Accepted => component::CustodianStatus::Accepted,
                CustodianStatus::Revoked => component::CustodianStatus::Revoked,
            },
        }),
        identity_verifications: converted(facts.identity_verifications, |verification| {
            component::IdentityVerification {
                signer_email: verification.signer_email,
                outcome: verification.outcome,
                occurred_at: verification.occurred_at,
                ip_address: verification.ip_address,
                provider_session_id: verification.provider_session_id,
            }
        }),
        attributes: facts.attributes,
    }
}

fn converted<A, B>(list: Vec<A>, convert: impl FnMut(A) -> B) -> Vec<B> {
    list.into_iter().map(convert).collect()
}

fn component_status(status: EnvelopeStatus) -> component::EnvelopeStatus {
    match status {
        EnvelopeStatus::Pending => component::EnvelopeStatus::Pending,
        EnvelopeStatus::Uploaded => component::EnvelopeStatus::Uploaded,
        EnvelopeStatus::Preparing => component::EnvelopeStatus::Preparing,
        EnvelopeStatus::Sent => component::EnvelopeStatus::Sent,
        EnvelopeStatus::Viewed => component::EnvelopeStatus::Viewed,
        EnvelopeStatus::Completed => component::EnvelopeStatus::Completed,
        EnvelopeStatus::Vaulted => component::EnvelopeStatus::Vaulted,
        EnvelopeStatus::VaultedOut => component::EnvelopeStatus::VaultedOut,
        EnvelopeStatus::Declined => component::EnvelopeStatus::Declined,
        EnvelopeStatus::Voided => component::EnvelopeStatus::Voided,
        EnvelopeStatus::Expired => component::EnvelopeStatus::Expired,
    }
}
