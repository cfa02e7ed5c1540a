//! Trusted root certificates: of time stamping authorities, and of signers.

use std::path::Path;
use std::time::Duration;

use cms::cert::CertificateChoices;
use cms::signed_data::SignedData;
use der::{Decode as _, Encode as _};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;

use holdfast_domain::clock::Timestamp;

/// Encoded object identifier id-kp-timeStamping (RFC 3161, section 2.3).
pub(crate) const TIME_STAMPING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];

/// Encoded purposes of certificates that sign documents: document signing (RFC 9336), protection
/// of mail and client authentication (RFC 5280), and those of Adobe and Microsoft.
pub(crate) const DOCUMENT_SIGNING: [&[u8]; 5] = [
    &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x24],
    &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04],
    &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x2f, 0x01, 0x01, 0x05],
    &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x0a, 0x03, 0x0c],
];

/// Error: a file of root certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {why}")]
pub struct TrustError {
    /// Path of the file.
    pub file: String,
    /// Reason.
    pub why: String,
}

/// Trusted root certificates.
pub struct TrustRoots {
    roots: Vec<CertificateDer<'static>>,
}

impl TrustRoots {
    /// Reads the roots from a file of PEM certificates.
    ///
    /// # Errors
    /// The file cannot be read, or contains no usable certificate.
    pub fn read(file: &Path) -> Result<Self, TrustError> {
        let about = |error: &dyn std::fmt::Display| TrustError {
            file: file.display().to_string(),
            why: error.to_string(),
        };
        let pem = std::fs::read(file).map_err(|error| about(&error))?;
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let roots = roots.map_err(|error| about(&error))?;
        if roots.is_empty() {
            return Err(about(&"it holds no certificate"));
        }

        // A root that cannot be used would be skipped later, and evidence would fail without naming the file.
        for root in &roots {
            anchor_from_trusted_cert(root).map_err(|error| about(&error))?;
        }

        Ok(Self { roots })
    }

    /// Returns the roots.
    pub fn certificates(&self) -> Vec<Certificate> {
        let roots = self.roots.iter();
        roots
            .filter_map(|root| Certificate::from_der(root).ok())
            .collect()
    }

    /// Checks the certificate path from a signer to a root: signatures, validity at the given time,
    /// and that the certificate serves one of the purposes or states none. Revocation is not
    /// checked.
    pub(crate) fn check(
        &self,
        message: &SignedData,
        signer: &Certificate,
        at: Timestamp,
        purposes: &[&'static [u8]],
    ) -> Result<(), String> {
        let anchors: Vec<_> = self
            .roots
            .iter()
            .filter_map(|root| anchor_from_trusted_cert(root).ok())
            .collect();
        let between: Vec<_> = message
            .certificates
            .iter()
            .flat_map(|certificates| certificates.0.iter())
            .filter_map(|choice| match choice {
                CertificateChoices::Certificate(certificate) => encoded(certificate).ok(),
                CertificateChoices::Other(_) => None,
            })
            .collect();

        let signer = encoded(signer).map_err(|error| error.to_string())?;
        let seconds = at.as_seconds().unsigned_abs();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let leads_to_root = |purpose: &'static [u8]| {
            // `stamp::opened` requires the purpose of a time stamp in the signer's own certificate.
            let purpose = KeyUsage::required_if_present(purpose);
            EndEntityCert::try_from(&signer).and_then(|signer| {
                let algorithms = ALL_VERIFICATION_ALGS;
                signer
                    .verify_for_usage(algorithms, &anchors, &between, at, purpose, None, None)
                    .map(|_| ())
            })
        };

        // Signers' certificates state different purposes, and one of them is enough.
        let mut why = String::from("no purpose");
        for purpose in purposes {
            match leads_to_root(purpose) {
                Ok(()) => return Ok(()),
                Err(error) => why = error.to_string(),
            }
        }

        Err(format!("its certificate leads to no trusted root: {why}"))
    }
}

fn encoded(certificate: &Certificate) -> der::Result<CertificateDer<'static>> {
    Ok(certificate.to_der()?.into())
}
