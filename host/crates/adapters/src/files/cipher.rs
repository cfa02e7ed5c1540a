//! Client-side encryption of documents, for operators
//! who do not trust the object store with plain text.
//!
//! Each object has its own key (AES-256-GCM, NIST SP 800-38D), stored in the
//! object's header and wrapped by a key of the operator, or by the key of its record
//! (`record_keys.rs`). The rest is segments of 64
//! KiB, each with an authentication tag. The nonce contains the segment's number
//! and a flag for the last one (the STREAM construction of Hoang, Reyhanitabar,
//! Rogaway and Vizár, 2015), so that a dropped, reordered or truncated segment is
//! detected. Objects stored before encryption was enabled are read as plain bytes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use moka::future::Cache;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::FilesError;
use super::aws::AwsClient;
use super::record_keys::{RECORD, RecordKeys};
use holdfast_base::disk;
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::token::random;

/// First bytes of an encrypted object, followed by the header's length in two bytes.
const MAGIC: &[u8; 4] = b"HFE1";
const LENGTH: usize = 2;
/// Plain bytes in one segment.
const SEGMENT: usize = 64 * 1024;
const TAG: usize = 16;
const SEALED_SEGMENT: usize = SEGMENT + TAG;
/// Associated data of every wrapped key of an object.
pub(super) const CONTEXT: &str = "object key";
/// Maximum header size; a header is a key name and a wrapped key, far below this.
const HEAD_LIMIT: usize = 8 * 1024;
/// Size and lifetime of the cache of unwrapped keys.
const KEPT_KEYS: u64 = 10_000;
const KEPT_FOR: Duration = Duration::from_secs(300);

/// Key of one object, or of one record.
pub(super) type ObjectKey = [u8; 32];

/// Encrypts and decrypts objects.
pub(super) struct ObjectCipher {
    wrap: KeyWrapping,
    unwrapped: Cache<String, ObjectKey>,
}

/// Source of the keys that wrap object keys.
enum KeyWrapping {
    /// Keys of a file; the current one wraps new object keys.
    File {
        current: String,
        keys: BTreeMap<String, AtRestCipher>,
    },
    /// Key that never leaves AWS KMS.
    Kms { aws: Box<AwsClient>, key: String },
}

pub(super) fn refused(why: impl Into<String>) -> FilesError {
    FilesError::Encryption(why.into())
}

impl ObjectCipher {
    /// Reads the keys of a file: one `NAME KEY` a line, the key being 32 bytes in base64. The first
    /// key encrypts new objects, the others decrypt older ones.
    pub(super) fn from_file(path: &Path) -> Result<Self, FilesError> {
        let text = disk::read(path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()))
            .map_err(|why| refused(format!("the key file cannot be read: {why}")))?;
        let mut current = None;

        let mut keys = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }

            let line_is_bad = || {
                refused(format!(
                    "line {} of the key file is not NAME KEY",
                    number + 1
                ))
            };
            let (name, key) = line.trim().split_once(' ').ok_or_else(line_is_bad)?;
            let key = STANDARD.decode(key.trim()).ok();
            let key = key.and_then(|key| ObjectKey::try_from(key).ok());
            let cipher = key.and_then(|key| AtRestCipher::new(&key));
            // With two keys of one name, an object's header would not show which of them opens it.
            if keys
                .insert(name.to_owned(), cipher.ok_or_else(line_is_bad)?)
                .is_some()
            {
                return Err(refused(format!("the key file names {name} twice")));
            }

            current.get_or_insert_with(|| name.to_owned());
        }

        let current = current.ok_or_else(|| refused("the key file holds no key"))?;
        Ok(Self::with(KeyWrapping::File { current, keys }))
    }

    /// Uses a key of AWS KMS, named by its id, ARN or alias.
    pub(super) fn from_kms(aws: AwsClient, key: &str) -> Self {
        let (aws, key) = (Box::new(aws), key.to_owned());
        Self::with(KeyWrapping::Kms { aws, key })
    }

    fn with(wrap: KeyWrapping) -> Self {
        // A KMS key that the operator disables opens nothing any more when this time is over.
        let unwrapped = Cache::builder()
            .max_capacity(KEPT_KEYS)
            .time_to_live(KEPT_FOR)
            .build();
        Self { wrap, unwrapped }
    }

    /// Generates a key; returns it with the text that stores it in wrapped form.
    pub(super) async fn new_key(&self, context: &str) -> Result<(ObjectKey, String), FilesError> {
        match &self.wrap {
            KeyWrapping::File { current, keys } => {
                let cipher = keys.get(current).ok_or_else(|| unknown(current))?;
                let key = random::<32>();
                Ok((
                    key,
                    format!("file:{current} {}", wrapped(cipher, &key, context)),
                ))
            }
            KeyWrapping::Kms { aws, key } => {
                let (key, wrapped) = aws.new_data_key(key, context).await?;
                let key = key.try_into().map_err(|_| refused("KMS gave no key"))?;
                Ok((key, format!("kms {wrapped}")))
            }
        }
    }

    /// Wraps a known key with the current key of the file. None if the key has it already, or if KMS, which replaces
    /// its keys itself, wraps the new ones.
    pub(super) fn wrapped_anew(
        &self,
        head: &str,
        key: &ObjectKey,
        context: &str,
    ) -> Option<String> {
        let KeyWrapping::File { current, keys } = &self.wrap else {
            return None;
        };
        let by = head.split_once(' ').map(|(by, _)| by);
        if by.and_then(|by| by.strip_prefix("file:")) == Some(current.as_str()) {
            return None;
        }

        let cipher = keys.get(current)?;
        Some(format!("file:{current} {}", wrapped(cipher, key, context)))
    }

    /// Unwraps the key in an object's header, or takes it from the cache.
    async fn key_of(&self, head: &str) -> Result<ObjectKey, FilesError> {
        if let Some(key) = self.unwrapped.get(head).await {
            return Ok(key);
        }

        let key = self.open_key(head, CONTEXT).await?;

        // Saves a KMS call for every further read of the object.
        self.unwrapped.insert(head.to_owned(), key).await;
        Ok(key)
    }

    /// Unwraps a key.
    pub(super) async fn open_key(
        &self,
        head: &str,
        context: &str,
    ) -> Result<ObjectKey, FilesError> {
        // The text names the wrapping key, so a replaced key opens the keys that it wrapped, as long as the file has it.
        let (by, wrapped) = head.split_once(' ').ok_or(FilesError::Damaged)?;
        match (&self.wrap, by.strip_prefix("file:")) {
            (KeyWrapping::File { keys, .. }, Some(name)) => {
                let cipher = keys.get(name).ok_or_else(|| unknown(name))?;
                opened(cipher, wrapped, context)
            }
            (KeyWrapping::Kms { aws, .. }, None) if by == "kms" => {
                let key = aws.open_data_key(wrapped, context).await?;
                ObjectKey::try_from(key).map_err(|_| unopened())
            }
            _ => Err(unknown(by)),
        }
    }

    /// Starts encrypting an object.
    pub(super) async fn encrypt(&self) -> Result<ObjectEncryption, FilesError> {
        let (key, head) = self.new_key(CONTEXT).await?;
        ObjectEncryption::begin(&key, &head)
    }
}

/// Wraps a key for its text.
pub(super) fn wrapped(cipher: &AtRestCipher, key: &ObjectKey, context: &str) -> String {
    cipher.encrypt(&STANDARD.encode(key), context)
}

/// Unwraps a key.
pub(super) fn opened(
    cipher: &AtRestCipher,
    wrapped: &str,
    context: &str,
) -> Result<ObjectKey, FilesError> {
    let key = cipher.open(wrapped, context);
    let key = key.and_then(|key| STANDARD.decode(key).ok());
    let key = key.and_then(|key| ObjectKey::try_from(key).ok());
    key.ok_or_else(unopened)
}

pub(super) fn unknown(name: &str) -> FilesError {
    refused(format!(
        "the object is encrypted with {name}, which this node does not have"
    ))
}

pub(super) fn unopened() -> FilesError {
    refused("the object's key does not decrypt: it was changed, or is of another key of that name")
}

/// Segments of one object, in order.
struct SegmentCipher {
    key: LessSafeKey,
    number: u32,
}

impl SegmentCipher {
    fn new(key: &ObjectKey) -> Result<Self, FilesError> {
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| refused("no cipher"))?;
        Ok(Self {
            key: LessSafeKey::new(key),
            number: 0,
        })
    }

    /// Returns 7 zero bytes, the flag of the last segment, and the segment's number. No random part
    /// is needed, because each key encrypts one object only.
    fn next_nonce(&mut self, last: bool) -> Result<Nonce, FilesError> {
        let mut nonce = [0; NONCE_LEN];
        nonce[7] = u8::from(last);
        nonce[8..].copy_from_slice(&self.number.to_be_bytes());
        // A repeated nonce would break AES-GCM, so the counter must not wrap.
        self.number = self.number.checked_add(1).ok_or(FilesError::Damaged)?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    fn seal(&mut self, piece: &[u8], last: bool, to: &mut BytesMut) -> Result<(), FilesError> {
        let nonce = self.next_nonce(last)?;
        let start = to.len();
        to.extend_from_slice(piece);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut to[start..])
            .map_err(|_| refused("a segment cannot be encrypted"))?;
        to.extend_from_slice(tag.as_ref());

        Ok(())
    }

    fn open(&mut self, mut sealed: BytesMut, last: bool) -> Result<Bytes, FilesError> {
        let nonce = self.next_nonce(last)?;
        let opened = self
            .key
            .open_in_place(nonce, Aad::empty(), &mut sealed)
            .map_err(|_| FilesError::Damaged)?;
        let length = opened.len();
        sealed.truncate(length);
        Ok(sealed.freeze())
    }
}

/// Encryption in progress.
pub(super) struct ObjectEncryption {
    segments: SegmentCipher,
    /// Buffered input: up to one full segment, until it is known whether it is the last.
    waiting: BytesMut,
    done: BytesMut,
}

impl ObjectEncryption {
    /// Starts with the header, which stores the object's key in wrapped form.
    pub(super) fn begin(key: &ObjectKey, head: &str) -> Result<Self, FilesError> {
        let length = u16::try_from(head.len()).map_err(|_| refused("the key's name is long"))?;
        let mut begun = BytesMut::with_capacity(SEALED_SEGMENT);
        begun.extend_from_slice(MAGIC);
        begun.extend_from_slice(&length.to_be_bytes());
        begun.extend_from_slice(head.as_bytes());

        Ok(Self {
            segments: SegmentCipher::new(key)?,
            waiting: BytesMut::with_capacity(SEGMENT),
            done: begun,
        })
    }

    /// Encrypts more bytes; returns the output that is complete so far.
    pub(super) fn update(&mut self, mut piece: &[u8]) -> Result<Bytes, FilesError> {
        while !piece.is_empty() {
            // Only now is it certain that the buffered segment is not the last.
            if self.waiting.len() == SEGMENT {
                let full = self.waiting.split();
                self.segments.seal(&full, false, &mut self.done)?;
            }

            let taken = piece.len().min(SEGMENT - self.waiting.len());
            self.waiting.extend_from_slice(&piece[..taken]);
            piece = &piece[taken..];
        }

        Ok(self.done.split().freeze())
    }

    /// Encrypts the last segment; returns the remaining output.
    pub(super) fn finish(mut self) -> Result<Bytes, FilesError> {
        // Also an empty object has a last segment. Without one, cutting everything off would go unnoticed.
        let last = self.waiting.split();
        self.segments.seal(&last, true, &mut self.done)?;
        Ok(self.done.freeze())
    }
}

/// Bytes of an object as stored.
pub(super) type Raw = BoxStream<'static, Result<Bytes, FilesError>>;

/// Keys that can open an object.
#[derive(Default)]
pub(super) struct ObjectKeys<'a> {
    /// Those of all documents.
    pub documents: Option<&'a ObjectCipher>,
    /// Those of records.
    pub records: Option<&'a RecordKeys>,
    /// Record of the object, if it belongs to one.
    pub record: Option<&'a str>,
}

impl ObjectKeys<'_> {
    /// Returns the key of the object with this header.
    async fn key_of(&self, head: &str) -> Result<ObjectKey, FilesError> {
        if let Some(wrapped) = head.strip_prefix(RECORD) {
            let records = self.records.ok_or_else(|| {
                refused("the object is encrypted with its record's key, and storage.record_keys is not set")
            })?;
            // A header of a record's key in another place was put there.
            let record = self.record.ok_or(FilesError::Damaged)?;
            return records.object_key(record, wrapped).await;
        }

        let documents = self.documents.ok_or_else(|| {
            refused("the object is encrypted, and no encryption key is configured")
        })?;
        documents.key_of(head).await
    }
}

/// Decrypts a stored object of `size` bytes; returns its plain bytes and their number.
pub(super) async fn decrypted(
    keys: ObjectKeys<'_>,
    raw: Raw,
    size: u64,
) -> Result<(Raw, u64), FilesError> {
    let mut raw = SegmentReader {
        raw,
        begun: BytesMut::new(),
        missing: size,
    };
    let prefix = MAGIC.len() + LENGTH;
    raw.fill(prefix).await?;

    // Stored before encryption was switched on. The caller compares the hash in any case.
    if !raw.begun.starts_with(MAGIC) {
        return Ok((raw.rest(), size));
    }
    if raw.begun.len() < prefix {
        return Err(raw.cut_off());
    }

    raw.begun.advance(MAGIC.len());
    let length = usize::from(raw.begun.get_u16());

    // Limits the memory that a corrupted length can claim.
    if length > HEAD_LIMIT {
        return Err(FilesError::Damaged);
    }

    raw.fill(length).await?;
    if raw.begun.len() < length {
        return Err(raw.cut_off());
    }

    let head = raw.begun.split_to(length);
    let head = std::str::from_utf8(&head).map_err(|_| FilesError::Damaged)?;
    let segments = SegmentCipher::new(&keys.key_of(head).await?)?;
    let sealed = size.saturating_sub((prefix + length) as u64);

    // Every segment, including a partial last one, carries one tag.
    let tags = sealed.div_ceil(SEALED_SEGMENT as u64) * TAG as u64;
    let plain = sealed.saturating_sub(tags);
    let state = Some((raw, segments));
    let pieces = futures::stream::try_unfold(state, |state| async move {
        let Some((mut raw, mut segments)) = state else {
            return Ok(None);
        };

        // One byte more than a segment shows whether this segment is the last.
        raw.fill(SEALED_SEGMENT + 1).await?;
        let last = raw.begun.len() <= SEALED_SEGMENT;
        if last && (raw.begun.len() < TAG || raw.missing > 0) {
            return Err(raw.cut_off());
        }

        let length = raw.begun.len().min(SEALED_SEGMENT);
        let sealed = raw.begun.split_to(length);
        let piece = segments.open(sealed, last)?;
        Ok(Some((piece, (!last).then_some((raw, segments)))))
    });

    Ok((pieces.boxed(), plain))
}

struct SegmentReader {
    raw: Raw,
    begun: BytesMut,
    /// Bytes still to come, according to the size that the store reported.
    missing: u64,
}

impl SegmentReader {
    /// Reads until at least `length` bytes are buffered or the object ends.
    async fn fill(&mut self, length: usize) -> Result<(), FilesError> {
        while self.begun.len() < length {
            match self.raw.try_next().await? {
                Some(piece) => {
                    self.missing = self.missing.saturating_sub(piece.len() as u64);
                    self.begun.extend_from_slice(&piece);
                }
                None => break,
            }
        }

        Ok(())
    }

    /// Returns the error for missing bytes: a damaged object, or an interrupted transfer.
    fn cut_off(&self) -> FilesError {
        match self.missing {
            0 => FilesError::Damaged,
            _ => FilesError::BrokenOff,
        }
    }

    fn rest(self) -> Raw {
        let begun = self.begun.freeze();
        futures::stream::iter((!begun.is_empty()).then_some(Ok(begun)))
            .chain(self.raw)
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lines: &str) -> Result<ObjectCipher, FilesError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, lines).unwrap();
        ObjectCipher::from_file(&path)
    }

    fn key(byte: u8) -> String {
        STANDARD.encode([byte; 32])
    }

    async fn encrypted(cipher: &ObjectCipher, bytes: &[u8], at_once: usize) -> Vec<u8> {
        let mut encryption = cipher.encrypt().await.unwrap();
        let mut all = Vec::new();
        for piece in bytes.chunks(at_once) {
            all.extend(encryption.update(piece).unwrap());
        }
        all.extend(encryption.finish().unwrap());
        all
    }

    async fn read(
        cipher: Option<&ObjectCipher>,
        stored: &[u8],
        at_once: usize,
    ) -> Result<(Vec<u8>, u64), FilesError> {
        read_of(cipher, stored, stored.len(), at_once).await
    }

    /// Reads an object with a reported size of `size`.
    async fn read_of(
        cipher: Option<&ObjectCipher>,
        stored: &[u8],
        size: usize,
        at_once: usize,
    ) -> Result<(Vec<u8>, u64), FilesError> {
        let pieces: Vec<_> = stored
            .chunks(at_once)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let raw = futures::stream::iter(pieces).boxed();
        let keys = ObjectKeys {
            documents: cipher,
            ..ObjectKeys::default()
        };
        let (pieces, size) = decrypted(keys, raw, size as u64).await?;
        let bytes: Vec<Bytes> = pieces.try_collect().await?;
        Ok((bytes.concat(), size))
    }

    #[tokio::test]
    async fn decryption_does_not_depend_on_the_piece_sizes() {
        let cipher = keys(&format!("2026 {}", key(1))).unwrap();
        for size in [
            0,
            1,
            SEGMENT - 1,
            SEGMENT,
            SEGMENT + 1,
            3 * SEGMENT,
            200_001,
        ] {
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            for at_once in [1_000, SEGMENT, 1_000_000] {
                let stored = encrypted(&cipher, &bytes, at_once).await;
                assert!(size < 40 || !stored.windows(40).any(|part| part == &bytes[..40]));
                let (read, told) = read(Some(&cipher), &stored, at_once).await.unwrap();
                assert!(read == bytes && told == size as u64, "{size} by {at_once}");
            }
        }
    }

    /// Every change is detected, and no bytes after it are returned.
    #[tokio::test]
    async fn changed_truncated_or_moved_segments_are_detected() {
        let cipher = keys(&format!("2026 {}", key(1))).unwrap();
        let stored = encrypted(&cipher, &vec![5; 3 * SEGMENT], SEGMENT).await;
        let body = stored.len() - 3 * SEALED_SEGMENT;
        let segment = |n: usize| body + n * SEALED_SEGMENT..body + (n + 1) * SEALED_SEGMENT;
        let mut flipped = stored.clone();
        flipped[body + SEALED_SEGMENT + 9] ^= 1;
        let swapped = [
            &stored[..body],
            &stored[segment(1)],
            &stored[segment(0)],
            &stored[segment(2)],
        ]
        .concat();

        let shorter = stored[..segment(1).end].to_vec();
        let longer = [&stored[..], &stored[segment(2)]].concat();
        let cut = stored[..body + 7].to_vec();
        for changed in [flipped, swapped, shorter, longer, cut] {
            let answer = read(Some(&cipher), &changed, SEGMENT).await;
            assert!(matches!(answer, Err(FilesError::Damaged)), "{answer:?}");
        }

        // Bytes that the store reported and did not deliver.
        for given in [body - 5, body + 7, segment(1).end, segment(2).end - 1] {
            let answer = read_of(Some(&cipher), &stored[..given], stored.len(), SEGMENT).await;
            assert!(matches!(answer, Err(FilesError::BrokenOff)), "{given}");
        }
    }

    #[tokio::test]
    async fn older_keys_decrypt_and_the_first_key_encrypts() {
        let old = keys(&format!("2025 {}", key(1))).unwrap();
        let both = format!("# rotated\n2026 {}\n2025 {}\n", key(2), key(1));
        let both = keys(&both).unwrap();
        let before = encrypted(&old, b"contract", 100).await;
        let after = encrypted(&both, b"contract", 100).await;
        for stored in [&before, &after] {
            assert_eq!(read(Some(&both), stored, 50).await.unwrap().0, b"contract");
        }

        let why = read(Some(&old), &after, 50).await.unwrap_err().to_string();
        assert!(why.contains("file:2026") || why.contains("2026"), "{why}");

        let why = read(None, &after, 50).await.unwrap_err().to_string();
        assert!(why.contains("no encryption key is configured"), "{why}");

        // Objects older than all keys are read as plain bytes.
        let plain = read(Some(&both), b"%PDF-1.7 of before", 3).await.unwrap();
        assert_eq!(plain, (b"%PDF-1.7 of before".to_vec(), 18));
        assert_eq!(read(None, b"", 3).await.unwrap(), (Vec::new(), 0));
    }

    #[test]
    fn an_unusable_key_file_is_refused_with_a_reason() {
        for (lines, why) in [
            (String::new(), "holds no key"),
            ("2026".into(), "line 1"),
            (format!("2026 {}\n2025 c2hvcnQ=", key(1)), "line 2"),
            (format!("2026 {0}\n2026 {0}", key(1)), "names 2026 twice"),
        ] {
            let error = keys(&lines).err().unwrap().to_string();
            assert!(error.contains(why), "{error}");
        }

        let error = ObjectCipher::from_file(Path::new("/nowhere"))
            .err()
            .unwrap();
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
