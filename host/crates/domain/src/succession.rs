//! Replacement of log keys. A succession is a note (C2SP `signed-note`) that is signed with the
//! old key and the new one:
//!
//! ```text
//! holdfast log key succession
//! <origin>
//! <old verifier key>
//! <new verifier key>
//! <entries in the log>
//! ```
//!
//! The old key signs heads of at most that many entries. Anyone who trusts one of the keys
//! can follow the notes to the others, forwards and backwards.

use super::checkpoint::{Checkpoint, CheckpointError, CheckpointSigner, VerifierKey};

/// First line of a succession. It keeps successions and checkpoints apart.
const TITLE: &str = "holdfast log key succession";

/// Replacement of a log's key by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySuccession {
    old: VerifierKey,
    new: VerifierKey,
    /// Entries in the log when the old key was replaced.
    size: u64,
}

impl KeySuccession {
    /// Returns the note, signed with both keys.
    pub fn sign(old: &CheckpointSigner, new: &CheckpointSigner, origin: &str, size: u64) -> String {
        let body = format!(
            "{TITLE}\n{origin}\n{}\n{}\n{size}\n",
            old.verifier(origin),
            new.verifier(origin)
        );
        let signatures = [old, new].map(|signer| signer.signature(origin, &body));
        format!("{body}\n{}", signatures.concat())
    }

    /// Opens a note, which must be signed with both keys.
    ///
    /// # Errors
    /// When the note is no succession, or a signature is missing or invalid.
    pub fn open(note: &str) -> Result<Self, CheckpointError> {
        let malformed = CheckpointError::Malformed("not a succession of log keys");
        let Some((body, [title, origin, old, new, size])) = parts(note) else {
            return Err(malformed);
        };

        let (old, new) = (VerifierKey::parse(old), VerifierKey::parse(new));
        let (Some(old), Some(new), Ok(size)) = (old, new, size.parse()) else {
            return Err(malformed);
        };
        // Names are compared so that a key of another log cannot take over this one.
        if title != TITLE || old.name() != origin || new.name() != origin {
            return Err(malformed);
        }

        for key in [&old, &new] {
            if !key.has_signed(body, note) {
                return Err(CheckpointError::Unsigned(key.to_string()));
            }
        }

        Ok(Self { old, new, size })
    }

    /// Returns the old key.
    pub fn old_key(&self) -> &VerifierKey {
        &self.old
    }

    /// Returns the new key.
    pub fn new_key(&self) -> &VerifierKey {
        &self.new
    }
}

fn parts(note: &str) -> Option<(&str, [&str; 5])> {
    let body = note.get(..=note.find("\n\n")?)?;
    let lines: Vec<&str> = body.lines().collect();
    Some((body, lines.try_into().ok()?))
}

/// Keys that a verifier accepts: a trusted one, and all that successions connect with it.
#[derive(Clone, Debug)]
pub struct BelievedKeys {
    /// Each key with the maximum number of entries of a head that it may sign.
    keys: Vec<(VerifierKey, u64)>,
}

impl BelievedKeys {
    /// Collects the keys that are connected with `trusted`. Invalid notes are ignored.
    pub fn new(trusted: VerifierKey, successions: &[String]) -> Self {
        // A note that does not open connects nothing. Refusing all of them would
        // let one bad file block verification.
        let all: Vec<KeySuccession> = successions
            .iter()
            .filter_map(|note| KeySuccession::open(note).ok())
            .collect();
        let last_size = |key: &VerifierKey| {
            let succeeded = all.iter().find(|succession| succession.old == *key);
            succeeded.map_or(u64::MAX, |succession| succession.size)
        };

        // Breadth-first search: successions are followed forwards and backwards.
        let mut found = vec![trusted];
        let mut next = 0;
        while let Some(key) = found.get(next).cloned() {
            next += 1;
            for succession in &all {
                for (from, to) in [
                    (&succession.old, &succession.new),
                    (&succession.new, &succession.old),
                ] {
                    if *from == key && !found.contains(to) {
                        found.push(to.clone());
                    }
                }
            }
        }

        Self {
            keys: found
                .into_iter()
                .map(|key| {
                    let size = last_size(&key);
                    (key, size)
                })
                .collect(),
        }
    }

    /// Opens a checkpoint, which must be signed with one of the keys while it was in use.
    ///
    /// # Errors
    /// The error for the trusted key, as for [`VerifierKey::open`], or
    /// [`CheckpointError::Succeeded`].
    pub fn open(&self, note: &str) -> Result<(Checkpoint, &VerifierKey), CheckpointError> {
        let mut first_error = None;
        for (key, last_size) in &self.keys {
            let error = match key.open(note) {
                // A stolen old key must not sign new heads, so it counts
                // only up to the size of its succession.
                Ok(checkpoint) if checkpoint.size <= *last_size => return Ok((checkpoint, key)),
                Ok(_) => CheckpointError::Succeeded(key.to_string()),
                Err(error) => error,
            };
            first_error = first_error.or(Some(error));
        }

        Err(first_error.unwrap_or(CheckpointError::Malformed("no key is believed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "vault.example/ledger";

    fn signer(seed: u8) -> CheckpointSigner {
        CheckpointSigner::new(&[seed; 32]).unwrap()
    }

    fn head(size: u64) -> Checkpoint {
        Checkpoint {
            origin: ORIGIN.into(),
            size,
            root: [9; 32],
        }
    }

    fn believed(seed: u8, notes: &[String]) -> BelievedKeys {
        BelievedKeys::new(signer(seed).verifier(ORIGIN), notes)
    }

    #[test]
    fn a_key_succession_links_both_keys() {
        let notes = [
            KeySuccession::sign(&signer(1), &signer(2), ORIGIN, 10),
            KeySuccession::sign(&signer(2), &signer(3), ORIGIN, 20),
        ];
        for trusted in [1, 2, 3] {
            for (by, size) in [(1, 10), (2, 20), (3, 30)] {
                let note = signer(by).sign(&head(size));
                let (opened, key) = believed(trusted, &notes)
                    .open(&note)
                    .map_err(drop)
                    .map_or_else(
                        |()| panic!("trusting {trusted}, signed by {by}"),
                        |(opened, key)| (opened, key.clone()),
                    );
                assert_eq!(opened.size, size);
                assert_eq!(key, signer(by).verifier(ORIGIN));
            }
        }
    }

    #[test]
    fn a_replaced_key_signs_no_further_entries() {
        let notes = [KeySuccession::sign(&signer(1), &signer(2), ORIGIN, 10)];
        let late = signer(1).sign(&head(11));
        for trusted in [1, 2] {
            let error = believed(trusted, &notes).open(&late).map(drop).unwrap_err();
            assert!(matches!(
                error,
                CheckpointError::Succeeded(_) | CheckpointError::Unsigned(_)
            ));
        }
    }

    #[test]
    fn a_key_succession_needs_both_signatures_over_the_exact_text() {
        let note = KeySuccession::sign(&signer(1), &signer(2), ORIGIN, 10);
        assert!(KeySuccession::open(&note).is_ok());

        let lines: Vec<&str> = note.lines().collect();
        for without in [6, 7] {
            let mut kept = lines.clone();
            kept.remove(without);
            let one = format!("{}\n", kept.join("\n"));
            assert!(
                matches!(KeySuccession::open(&one), Err(CheckpointError::Unsigned(_))),
                "{one}"
            );
        }

        let later = note.replace("\n10\n", "\n99\n");
        assert!(matches!(
            KeySuccession::open(&later),
            Err(CheckpointError::Unsigned(_))
        ));

        for text in ["", "\n\n", TITLE, &signer(1).sign(&head(3))] {
            assert!(
                matches!(
                    KeySuccession::open(text),
                    Err(CheckpointError::Malformed(_))
                ),
                "{text}"
            );
        }

        let forged = [KeySuccession::sign(&signer(9), &signer(3), ORIGIN, 10)];
        let head = signer(3).sign(&head(5));
        assert!(believed(1, &forged).open(&head).is_err());
    }
}
