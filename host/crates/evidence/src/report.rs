//! Findings of a verification, and the verdict they add up to.

use std::fmt;

use serde::Serialize;

/// One thing that was checked.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    /// Whether it holds; null where it could not be checked.
    pub ok: Option<bool>,
    /// Explanation in plain words.
    pub detail: String,
}

impl Finding {
    pub(super) fn new(check: &'static str, ok: bool, detail: impl Into<String>) -> Self {
        Self {
            check,
            ok: Some(ok),
            detail: detail.into(),
        }
    }

    pub(super) fn holds(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, true, detail)
    }

    pub(super) fn fails(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, false, detail)
    }

    pub(super) fn unchecked(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            check,
            ok: None,
            detail: detail.into(),
        }
    }
}

/// What a verification concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Every check holds, and the log is one that the reader knows.
    #[serde(rename = "VALID")]
    Valid,
    /// Every check holds, but only the bundle itself vouches for its log.
    #[serde(rename = "CONSISTENT, NOT ANCHORED")]
    NotAnchored,
    /// No check fails, but the deciding rules component is not at hand.
    #[serde(rename = "INTACT, NOT RE-EVALUATED")]
    NotReEvaluated,
    /// A check fails.
    #[serde(rename = "NOT VALID")]
    NotValid,
}

impl Verdict {
    /// Exit code of `holdfast verify`; 2 is a usage error.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::NotValid => 1,
            Self::NotAnchored => 3,
            Self::NotReEvaluated => 4,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Valid => "VALID",
            Self::NotAnchored => "CONSISTENT, NOT ANCHORED",
            Self::NotReEvaluated => "INTACT, NOT RE-EVALUATED",
            Self::NotValid => "NOT VALID",
        })
    }
}

/// Source of the reader's trust in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnchorKind {
    /// `--key`.
    Key,
    /// `--head`.
    Head,
    /// `--trust`.
    Trust,
    /// The installation that runs the verification owns the log.
    Installation,
}

/// The log that the evidence is anchored in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Anchor {
    /// Why the reader believes in the log.
    pub kind: AnchorKind,
    /// Name of the log.
    pub log: String,
    /// Its public key.
    pub public_key: String,
}

/// Result of a verification.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Conclusion.
    pub verdict: Verdict,
    /// True for the verdict `VALID` only.
    pub valid: bool,
    /// Whether the log is one that the reader knows.
    pub anchored: bool,
    /// Source of that knowledge.
    pub anchor: Option<Anchor>,
    /// The envelope that the evidence is about.
    pub envelope_id: String,
    /// Each check.
    pub checks: Vec<Finding>,
}

impl Report {
    pub(super) fn new(envelope_id: String, anchor: Option<Anchor>, checks: Vec<Finding>) -> Self {
        let verdict = if checks.iter().any(|check| check.ok == Some(false)) {
            Verdict::NotValid
        } else if checks.iter().any(|check| check.ok.is_none()) {
            Verdict::NotReEvaluated
        } else if anchor.is_none() {
            Verdict::NotAnchored
        } else {
            Verdict::Valid
        };
        Self {
            verdict,
            valid: verdict == Verdict::Valid,
            anchored: anchor.is_some(),
            anchor,
            envelope_id,
            checks,
        }
    }
}
