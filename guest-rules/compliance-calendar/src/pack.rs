//! The two packs of checks.

use crate::calendar::LawInForce;
use crate::types::EnvelopeFacts;
use crate::{amended, specified};

/// Check with its result.
pub(crate) struct AnsweredCheck {
    pub requirement: &'static str,
    pub ucc_reference: &'static str,
    pub statute_reference: &'static str,
    pub satisfied: bool,
    pub detail: String,
}

/// Statements in the certificate of a pack besides its checks.
pub(crate) struct PackTexts {
    pub certificate_type: &'static str,
    pub esign_checks: [usize; 2],
    pub legal_notices: &'static [&'static str],
    /// Name of the text of the statute.
    pub text: &'static str,
}

/// Returns the results of the checks that apply.
pub(crate) fn answers(facts: &EnvelopeFacts, law: &LawInForce<'_>) -> Vec<AnsweredCheck> {
    // Each pack has a type of rule of its own, which a function could not take.
    macro_rules! answered {
        ($pack:ident) => {{
            let rules = $pack::RULES.iter().zip($pack::answers(facts));
            let answered = rules.map(|(rule, (satisfied, detail))| AnsweredCheck {
                requirement: rule.requirement,
                ucc_reference: rule.ucc_reference,
                statute_reference: rule.statute_reference,
                satisfied,
                detail,
            });
            answered.collect()
        }};
    }

    if law.is_amended() {
        answered!(amended)
    } else {
        answered!(specified)
    }
}

pub(crate) fn texts(law: &LawInForce<'_>) -> PackTexts {
    if law.is_amended() {
        PackTexts {
            certificate_type: amended::CERTIFICATE_TYPE,
            esign_checks: amended::ESIGN_CHECKS,
            legal_notices: amended::LEGAL_NOTICES,
            text: "UCC §9-105 as amended in 2022",
        }
    } else {
        PackTexts {
            certificate_type: specified::CERTIFICATE_TYPE,
            esign_checks: specified::ESIGN_CHECKS,
            legal_notices: specified::LEGAL_NOTICES,
            text: "UCC §9-105 before the amendments of 2022",
        }
    }
}
