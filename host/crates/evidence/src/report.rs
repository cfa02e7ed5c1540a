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
    /// What a check that could not be run leaves open.
    #[serde(skip)]
    pub(super) open: OpenQuestion,
}

/// What a check that could not be run leaves open. It decides the verdict, if no check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenQuestion {
    /// Nothing that the verdict states: the release that wrote the evidence did not record it.
    Nothing,
    /// Whether a log that the verifier knows holds the evidence.
    Anchor,
    /// Whether the rules that were in force decide the same again.
    Rules,
}

impl OpenQuestion {
    /// Returns the best verdict that it permits.
    fn best_verdict(self) -> EvidenceVerdict {
        match self {
            Self::Nothing => EvidenceVerdict::Valid,
            Self::Anchor => EvidenceVerdict::NotAnchored,
            Self::Rules => EvidenceVerdict::NotReEvaluated,
        }
    }
}

impl ReportFinding {
    pub(super) fn new(check: &'static str, ok: bool, detail: impl Into<String>) -> Self {
        Self {
            check,
            ok: Some(ok),
            detail: detail.into(),
            open: OpenQuestion::Nothing,
        }
    }

    /// Returns the best verdict that the finding permits.
    fn best_verdict(&self) -> EvidenceVerdict {
        match self.ok {
            Some(true) => EvidenceVerdict::Valid,
            Some(false) => EvidenceVerdict::NotValid,
            None => self.open.best_verdict(),
        }
    }

    pub(super) fn holds(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, true, detail)
    }

    pub(super) fn fails(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, false, detail)
    }

    pub(super) fn unchecked(
        check: &'static str,
        open: OpenQuestion,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            check,
            ok: None,
            detail: detail.into(),
            open,
        }
    }
}

/// Verdict of a verification, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum EvidenceVerdict {
    /// No check fails or leaves the verdict open, and the verifier knows the log.
    #[serde(rename = "VALID")]
    Valid,
    /// No check fails, but it is not shown that a log that the verifier knows holds the evidence.
    #[serde(rename = "CONSISTENT, NOT ANCHORED")]
    NotAnchored,
    /// No check fails, but the rules component that decided, or its activation, is not available.
    #[serde(rename = "INTACT, NOT RE-EVALUATED")]
    NotReEvaluated,
    /// No check fails, but details of records are withheld, so that what these records state is not shown. Of the records
    /// of a transfer only.
    #[serde(rename = "CONSISTENT, NOT COMPLETE")]
    NotComplete,
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
            Self::NotReEvaluated | Self::NotComplete => 4,
        }
    }
}

impl fmt::Display for EvidenceVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Valid => "VALID",
            Self::NotAnchored => "CONSISTENT, NOT ANCHORED",
            Self::NotReEvaluated => "INTACT, NOT RE-EVALUATED",
            Self::NotComplete => "CONSISTENT, NOT COMPLETE",
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
    /// Result of the rules, from the certificate. Null unless the rules gave the same certificate again,
    /// and for the verdict `NOT VALID`.
    pub rules_result: Option<RulesResult>,
    /// How often files left the vault, by the ledger.
    pub retrievals: RetrievalCounts,
    /// Result of each check.
    pub checks: Vec<ReportFinding>,
}

/// What the rules found about the record. It is no finding on enforceability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RulesResult {
    /// Points of 100.
    pub score: u64,
    /// Whether the rules found every requirement satisfied.
    pub compliant: bool,
}

/// Completed retrievals of the authoritative copy, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RetrievalCounts {
    /// The authoritative copy, before its release.
    pub authoritative: u64,
    /// The authoritative copy, by the link of its release.
    pub archive: u64,
    /// The file that a paper original is printed from.
    pub paper_original: u64,
    /// Bundles: evidence copies.
    pub bundle: u64,
    /// Downloads that broke off. The client may have received most of the file.
    pub broken_off: u64,
}

impl VerificationReport {
    pub(super) fn new(
        envelope_id: String,
        anchor: Option<VerdictAnchor>,
        checks: Vec<ReportFinding>,
    ) -> Self {
        let anchoring = match anchor {
            Some(_) => EvidenceVerdict::Valid,
            None => EvidenceVerdict::NotAnchored,
        };
        // Verdicts are ordered from best to worst, so the worst finding decides.
        let verdict = checks
            .iter()
            .map(ReportFinding::best_verdict)
            .fold(anchoring, EvidenceVerdict::max);

        Self {
            verdict,
            valid: verdict == EvidenceVerdict::Valid,
            anchored: anchor.is_some(),
            anchor,
            envelope_id,
            controlled_by: None,
            signers: Vec::new(),
            rules_result: None,
            retrievals: RetrievalCounts::default(),
            checks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(anchored: bool, checks: &[ReportFinding]) -> EvidenceVerdict {
        let anchor = anchored.then(|| VerdictAnchor {
            kind: AnchorKind::Key,
            log: "vault.example/ledger".into(),
            public_key: String::new(),
        });
        VerificationReport::new(String::new(), anchor, checks.to_vec()).verdict
    }

    #[test]
    fn the_verdict_follows_from_what_is_left_open() {
        let holds = ReportFinding::holds("one", "");
        let fails = ReportFinding::fails("two", "");
        let open = |question| ReportFinding::unchecked("three", question, "");
        let [nothing, anchor, rules] = [
            OpenQuestion::Nothing,
            OpenQuestion::Anchor,
            OpenQuestion::Rules,
        ]
        .map(open);
        for (finding, anchored, not_anchored) in [
            (&holds, EvidenceVerdict::Valid, EvidenceVerdict::NotAnchored),
            (
                &nothing,
                EvidenceVerdict::Valid,
                EvidenceVerdict::NotAnchored,
            ),
            (
                &anchor,
                EvidenceVerdict::NotAnchored,
                EvidenceVerdict::NotAnchored,
            ),
            (
                &rules,
                EvidenceVerdict::NotReEvaluated,
                EvidenceVerdict::NotReEvaluated,
            ),
            (&fails, EvidenceVerdict::NotValid, EvidenceVerdict::NotValid),
        ] {
            let checks = [holds.clone(), finding.clone()];
            assert_eq!(verdict(true, &checks), anchored, "{finding:?}");
            assert_eq!(verdict(false, &checks), not_anchored, "{finding:?}");
        }

        let worst = EvidenceVerdict::NotValid;
        assert_eq!(verdict(true, &[anchor, rules, fails]), worst);
    }
}
