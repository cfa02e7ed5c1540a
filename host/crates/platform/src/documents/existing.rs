//! Signatures that a document has before holdfast seals it.

use bytes::Bytes;
use memchr::memmem;

use crate::{Core, ServiceError};
use holdfast_components::Documents;
use holdfast_components::rules::found::{self, FoundSignature, FoundSignatures};
use holdfast_domain::signature::{ExistingSignature, LaterChange, SignedPart};
use holdfast_evidence::existing::{UnverifiedSignature, UnverifiedSignatures, verify};
use holdfast_evidence::revocation::ValidationData;

/// Finds and verifies the signatures of a document. The built-in component reads the document in its
/// sandbox; the host has the roots, the clock and fast arithmetic.
pub async fn existing_signatures(
    core: &Core,
    built_in: &Documents,
    pdf: Bytes,
) -> Result<Vec<ExistingSignature>, ServiceError> {
    // Never compressed (ISO 32000-2, 12.8.1): most documents need no call of the sandbox.
    if memmem::find(&pdf, b"/ByteRange").is_none() {
        return Ok(Vec::new());
    }

    let found = built_in.signatures(pdf.clone()).await??;
    // Few documents have revocation data. The others are not read again for them.
    let data = if found.revocation_data {
        let data = built_in.validation_data(pdf.clone()).await??;
        ValidationData::read(&data.certificates, &data.crls, &data.ocsps)
    } else {
        ValidationData::default()
    };
    let found = unverified(found, data);
    let (roots, now) = (core.signature_roots.clone(), core.clock.now());
    // Verifying many signatures is long arithmetic, which must not hold a thread that serves requests.
    let verified =
        tokio::task::spawn_blocking(move || verify(&pdf, &found, roots.as_deref(), now)).await;
    verified.map_err(|error| ServiceError::Internal(error.to_string()))
}

fn unverified(found: FoundSignatures, validation_data: ValidationData) -> UnverifiedSignatures {
    UnverifiedSignatures {
        certification_level: found.certification_level,
        validation_data,
        signatures: found.signatures.into_iter().map(signature).collect(),
    }
}

fn signature(found: FoundSignature) -> UnverifiedSignature {
    UnverifiedSignature {
        field: found.field,
        format: found.format,
        ranges: found.ranges,
        contents: found.contents,
        claimed_at: found.claimed_at,
        covers: match found.coverage {
            found::SignatureCoverage::WholeDocument => SignedPart::WholeDocument,
            found::SignatureCoverage::Revision => SignedPart::EarlierRevision,
            found::SignatureCoverage::Part => SignedPart::Part,
        },
        later: match found.later {
            found::LaterChange::None => LaterChange::None,
            found::LaterChange::Signatures => LaterChange::Signatures,
            found::LaterChange::FormFields => LaterChange::FormFields,
            found::LaterChange::Annotations => LaterChange::Annotations,
            found::LaterChange::Content => LaterChange::Content,
            found::LaterChange::Unknown => LaterChange::Unknown,
        },
    }
}
