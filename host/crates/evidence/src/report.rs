//! Findings of a verification, and the resulting verdict.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Result of one check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReportFinding {
    /// Name of the check.
    pub check: &'static str,
    /// Whether the check passed; null if it could not be run.
    pub ok: Option<bool>,
    /// Explanation in plain words.
    pub detail: String,
}

impl ReportFinding {
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

/// Verdict of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum EvidenceVerdict {
    /// All checks pass, and the verifier knows the log.
    #[serde(rename = "VALID")]
    Valid,
    /// All checks pass, but only the bundle itself vouches for its log.
    #[serde(rename = "CONSISTENT, NOT ANCHORED")]
    NotAnchored,
    /// No check fails, but the rules component that decided is not available.
    #[serde(rename = "INTACT, NOT RE-EVALUATED")]
    NotReEvaluated,
    /// At least one check fails.
    #[serde(rename = "NOT VALID")]
    NotValid,
}

impl EvidenceVerdict {
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

impl fmt::Display for EvidenceVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Valid => "VALID",
            Self::NotAnchored => "CONSISTENT, NOT ANCHORED",
            Self::NotReEvaluated => "INTACT, NOT RE-EVALUATED",
            Self::NotValid => "NOT VALID",
        })
    }
}

/// Source of the verifier's trust in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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

/// Log that the evidence is anchored in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerdictAnchor {
    /// Source of the verifier's trust in the log.
    pub kind: AnchorKind,
    /// Name of the log.
    pub log: String,
    /// Public key of the log.
    pub public_key: String,
}

/// Party that signed its acts of control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignerReport {
    /// Id of the organization.
    pub organization_id: String,
    /// Thumbprints of its keys (RFC 7638).
    pub thumbprints: Vec<String>,
}

/// Control of a record, as its acts show it.
pub(super) struct ControlReport {
    /// Name of the controller.
    pub(super) controller: String,
    pub(super) signers: Vec<SignerReport>,
}

/// Result of a verification.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerificationReport {
    /// Conclusion.
    pub verdict: EvidenceVerdict,
    /// True for the verdict `VALID` only.
    pub valid: bool,
    /// Whether the verifier knows the log.
    pub anchored: bool,
    /// Known log that anchors the evidence.
    pub anchor: Option<VerdictAnchor>,
    /// Id of the envelope.
    pub envelope_id: String,
    /// Name of the party that controls the record, or that did at its release. Null if that is its
    /// originator, without an act of another party.
    pub controlled_by: Option<String>,
    /// Parties that signed their acts of control. Compare the keys with those that the parties publish.
    pub signers: Vec<SignerReport>,
    /// Result of each check.
    pub checks: Vec<ReportFinding>,
}

impl VerificationReport {
    pub(super) fn new(
        envelope_id: String,
        anchor: Option<VerdictAnchor>,
        checks: Vec<ReportFinding>,
    ) -> Self {
        let verdict = if checks.iter().any(|check| check.ok == Some(false)) {
            EvidenceVerdict::NotValid
        } else if checks.iter().any(|check| check.ok.is_none()) {
            EvidenceVerdict::NotReEvaluated
        } else if anchor.is_none() {
            EvidenceVerdict::NotAnchored
        } else {
            EvidenceVerdict::Valid
        };
        Self {
            verdict,
            valid: verdict == EvidenceVerdict::Valid,
            anchored: anchor.is_some(),
            anchor,
            envelope_id,
            controlled_by: None,
            signers: Vec::new(),
            checks,
        }
    }
}
