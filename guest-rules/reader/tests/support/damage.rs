//! Damages documents, identically in every run.

/// A pseudo-random sequence that is the same on every machine (Knuth's MMIX generator).
pub struct DamageSequence(pub u64);

impl DamageSequence {
    /// Returns a number from 0 up to but excluding `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

/// Returns a copy with up to seven bytes, words or stretches changed.
pub fn mutate(original: &[u8], sequence: &mut DamageSequence) -> Vec<u8> {
    const WORDS: [&[u8]; 12] = [
        b"<<",
        b">>",
        b"[",
        b"(",
        b"99999999999",
        b"-1",
        b" R",
        b"/",
        b"obj",
        b"0.0000001",
        b"\\",
        b"endstream",
    ];

    let mut pdf = original.to_vec();
    for _ in 0..=sequence.below(6) {
        let at = sequence.below(pdf.len());
        match sequence.below(5) {
            0 => pdf[at] = u8::try_from(sequence.below(256)).unwrap(),
            1 => {
                let end = (at + sequence.below(40)).min(pdf.len());
                pdf.drain(at..end);
            }
            2 => {
                let word = WORDS[sequence.below(WORDS.len())];
                pdf.splice(at..at, word.iter().copied());
            }
            3 => {
                let end = (at + sequence.below(200)).min(pdf.len());
                let copy = pdf[at..end].to_vec();
                let to = sequence.below(pdf.len());
                pdf.splice(to..to, copy);
            }
            _ if sequence.below(8) == 0 => pdf.truncate(at),
            _ => pdf[at] ^= 1 << sequence.below(8),
        }

        if pdf.is_empty() {
            break;
        }
    }

    pdf
}
