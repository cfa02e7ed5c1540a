//! Certification authority of this installation.

use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use der::EncodePem as _;
use der::asn1::{GeneralizedTime, UtcTime};
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{EncodePrivateKey as _, LineEnding};
use x509_cert::Certificate;
use x509_cert::builder::{Builder as _, CertificateBuilder, Profile};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::SubjectPublicKeyInfoOwned;
use x509_cert::time::{Time, Validity};

use super::{SealError, unusable};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::token::random;

/// Lifetimes of the authority's certificate and of the sealing key's.
const AUTHORITY_LIFE: Duration = Duration::from_secs(20 * 365 * 86_400);
const KEY_LIFE: Duration = Duration::from_secs(5 * 365 * 86_400);

/// Creates an authority and a sealing key certified by it. The files are written to a temporary
/// folder that is then renamed: if two processes start together, one result wins as a whole.
pub(super) fn make(folder: &Path, now: Timestamp) -> Result<(), SealError> {
    let authority_key = new_key();
    let authority_name = name("holdfast sealing authority")?;
    let authority = certificate(
        Profile::Root,
        &authority_name,
        &authority_key,
        &authority_key,
        (now, AUTHORITY_LIFE),
    )?;

    let key = new_key();
    // The certificate permits signatures only, because the key is used for nothing else.
    let profile = Profile::Leaf {
        issuer: authority_name,
        enable_key_agreement: false,
        enable_key_encipherment: false,
    };
    let subject = name("holdfast vault")?;
    let own = certificate(profile, &subject, &key, &authority_key, (now, KEY_LIFE))?;

    let parent = folder.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    // In the same folder, because a rename between file systems is a copy that can stop half-way.
    let beside = tempfile::tempdir_in(parent)?;
    let text = key.to_pkcs8_pem(LineEnding::LF).map_err(unusable)?;
    write(&beside.path().join("key.pem"), text.as_bytes())?;

    // The authority's private key is discarded after signing this one certificate, so that theft of
    // the folder does not allow forging others.
    let mut chain = String::new();
    for certificate in [own, authority] {
        chain += &certificate.to_pem(LineEnding::LF).map_err(unusable)?;
    }

    write(&beside.path().join("certificates.pem"), chain.as_bytes())?;
    match fs::rename(beside.path(), folder) {
        Ok(()) => {
            // The folder was renamed, so it must not be deleted as temporary.
            let _ = beside.keep();
            // Without syncing the parent folder, a crash could undo the rename.
            fs::File::open(parent)?.sync_all()?;
            Ok(())
        }
        // Another process was first; its key is used.
        Err(_) if folder.join("key.pem").exists() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Deletes the authority's private key, which older releases stored.
pub(super) fn forget_key(folder: &Path) -> io::Result<()> {
    match fs::remove_file(folder.join("authority-key.pem")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file that only its owner can read.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;

    file.sync_all()
}

fn new_key() -> SigningKey {
    loop {
        // A random value exceeds the curve's order about once in 2^32 tries.
        if let Ok(key) = SigningKey::from_slice(&random::<32>()) {
            return key;
        }
    }
}

fn name(common: &str) -> Result<Name, SealError> {
    Name::from_str(&format!("CN={common}")).map_err(unusable)
}

fn certificate(
    profile: Profile,
    subject: &Name,
    key: &SigningKey,
    issuer: &SigningKey,
    (from, life): (Timestamp, Duration),
) -> Result<Certificate, SealError> {
    let time = |at: Timestamp| -> Result<Time, SealError> {
        let since = Duration::from_secs(at.as_seconds().unsigned_abs());
        // Dates through 2049 have to be UTCTime (RFC 5280, 4.1.2.5).
        match UtcTime::from_unix_duration(since) {
            Ok(time) => Ok(Time::UtcTime(time)),
            Err(_) => GeneralizedTime::from_unix_duration(since)
                .map(Time::GeneralTime)
                .map_err(unusable),
        }
    };
    let validity = Validity {
        not_before: time(from)?,
        not_after: time(from + life)?,
    };

    let mut serial = random::<16>();

    // The number must be positive and of full length, so the first bits are 01.
    serial[0] = serial[0] & 0x7f | 0x40;
    let serial = SerialNumber::new(&serial).map_err(unusable)?;
    let public = SubjectPublicKeyInfoOwned::from_key(*key.verifying_key()).map_err(unusable)?;
    CertificateBuilder::new(profile, serial, validity, subject.clone(), public, issuer)
        .and_then(|builder| builder.build::<DerSignature>())
        .map_err(unusable)
}
