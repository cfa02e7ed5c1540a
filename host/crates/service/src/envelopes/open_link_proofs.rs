//! Proof of work of open links: the browser of a visitor computes for about a second before a record is made, so that a
//! program that makes many records pays for each.
//!
//! A challenge is `expiry.difficulty.random.code`. The code is a keyed hash of the link and of the other parts, so that
//! challenges are not stored; a used one is. A proof is a number: the SHA-256 of the challenge, a point and the number
//! begins with as many zero bits as the difficulty.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::envelopes::open_links;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::open_link::{OpenLink, ProofOfWork};
use holdfast_domain::token::random;
use holdfast_platform::permits::link_codes::{is_link, link_code};
use holdfast_platform::{Core, ServiceError};

/// Time in which a challenge can be used.
const LIFE: Duration = Duration::from_secs(600);
/// Difficulty on a quiet link: a phone computes about 16,000 digests in a second.
const EASIEST: u32 = 14;
/// A minute of a phone.
const HARDEST: u32 = 20;
/// Records of a link within an hour below which the work is the easiest.
const CALM: i64 = 20;
/// Longest challenge and proof, in bytes.
const LONGEST: usize = 200;
/// Kind of the keyed hash.
const KIND: &str = "open link proof";

/// What the browser of a visitor has computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisitorProof {
    /// The link asks for no proof.
    NotAsked,
    /// The browser computed nothing, for example because it runs no script.
    Absent,
    /// Random part of a challenge that was met. It counts once.
    Valid(String),
}

/// Returns a challenge for the page of a link; none if the link asks for no proof.
pub async fn challenge(core: &Core, link: &OpenLink) -> Result<Option<String>, ServiceError> {
    if link.proof_of_work == ProofOfWork::Off {
        return Ok(None);
    }

    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let recent = open_links::recent_records(&mut connection, link, now).await?;
    drop(connection);

    let (expires, random) = (now + LIFE, hex::encode(random::<16>()));
    let terms = format!("{}.{}.{random}", expires.as_millis(), difficulty(recent));
    let code = link_code(core, KIND, &signed(link, &terms))?;
    Ok(Some(format!("{terms}.{code}")))
}

/// Checks the proof of a form; none for one that is wrong, too late, or of another link. Whether it was used before is
/// known to the transaction of the record.
pub fn check(
    core: &Core,
    link: &OpenLink,
    challenge: &str,
    proof: &str,
) -> Result<Option<VisitorProof>, ServiceError> {
    if link.proof_of_work == ProofOfWork::Off {
        return Ok(Some(VisitorProof::NotAsked));
    }
    if proof.is_empty() {
        return Ok(Some(VisitorProof::Absent));
    }

    if challenge.len() > LONGEST || proof.len() > LONGEST {
        return Ok(None);
    }
    let Some((terms, code)) = challenge.rsplit_once('.') else {
        return Ok(None);
    };
    if !is_link(core, KIND, &signed(link, terms), code)? {
        return Ok(None);
    }

    let is_met = |terms: &Terms<'_>| {
        let digest = Sha256::digest(format!("{challenge}.{proof}"));
        terms.expires > core.clock.now() && zero_bits(&digest) >= terms.difficulty
    };
    let met = Terms::read(terms).filter(is_met);
    Ok(met.map(|terms| VisitorProof::Valid(terms.random.to_owned())))
}

/// Parts of a challenge that the code protects.
struct Terms<'a> {
    expires: Timestamp,
    difficulty: u32,
    random: &'a str,
}

impl<'a> Terms<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split('.');
        Some(Self {
            expires: Timestamp::from_millis(parts.next()?.parse().ok()?),
            difficulty: parts.next()?.parse().ok()?,
            random: parts.next()?,
        })
    }
}

fn signed(link: &OpenLink, terms: &str) -> String {
    format!("{} {terms}", link.id)
}

/// Returns the difficulty for so many records within an hour. Twice as many records take twice the work.
fn difficulty(recent: i64) -> u32 {
    let times = u64::try_from(recent / CALM).unwrap_or_default() + 1;
    (EASIEST + times.ilog2()).min(HARDEST)
}

fn zero_bits(digest: &[u8]) -> u32 {
    let zeros = digest.iter().take_while(|byte| **byte == 0).count();
    let next = digest.get(zeros).map_or(0, |byte| byte.leading_zeros());
    u32::try_from(zeros).unwrap_or_default() * 8 + next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_rises_with_the_records_of_an_hour() {
        let found = [0, 19, 20, 59, 60, 140, 10_000].map(difficulty);
        assert_eq!(found, [14, 14, 15, 15, 16, 17, 20]);
    }

    #[test]
    fn zero_bits_are_counted_from_the_left() {
        assert_eq!(zero_bits(&[0, 0, 0x1f]), 19);
        assert_eq!(zero_bits(&[0x80, 0]), 0);
        assert_eq!(zero_bits(&[0, 0]), 16);
    }
}
