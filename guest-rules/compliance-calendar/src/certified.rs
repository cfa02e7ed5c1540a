//! The certificate, with the law that was applied and the reason.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::calendar::{EnactedLaw, LawInForce, law_of, signature_date};
use crate::types::{ComponentIdentity, EnvelopeFacts};
use crate::{pack, record, written};

/// Member `law` of the certificate.
#[derive(Serialize)]
struct CertifiedLaw<'a> {
    jurisdiction: &'a str,
    /// `in the table`, `not in the table`, or `not in the table: enacted, date unknown`.
    status: &'static str,
    /// The text of the statute that was applied.
    applied: &'a str,
    /// Why this text was applied.
    why: String,
    /// Date of the question, which the text was chosen by.
    question_date: Option<&'a str>,
    time_zone: &'static str,
    #[serde(flatten)]
    enacted: Option<CertifiedAct<'a>>,
}

/// Statements of the table about the act.
#[derive(Serialize)]
struct CertifiedAct<'a> {
    effective: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    adjustment: &'a str,
    act: &'a str,
    source: &'a str,
    review: &'a str,
}

impl<'a> CertifiedAct<'a> {
    fn of(law: EnactedLaw<'a>) -> Self {
        Self {
            effective: law.effective,
            adjustment: law.adjustment,
            act: law.act,
            source: law.source,
            review: if law.review.is_empty() {
                "not reviewed"
            } else {
                law.review
            },
        }
    }
}

/// Returns the certificate as the packs write it, with the member `law` if a jurisdiction is stated.
pub fn certificate(
    facts: &EnvelopeFacts,
    issued_at: &str,
    issuer: &str,
    component: &ComponentIdentity,
) -> String {
    let text = written::certificate(facts, issued_at, issuer, component);
    let Ok(mut certificate) = serde_json::from_str::<Map<String, Value>>(&text) else {
        return text;
    };

    let law = law_of(facts);
    let (texts, answered) = (pack::texts(&law), pack::answers(facts, &law));

    // The shared writer knows one pack. Its type, notices and references are replaced by those that apply.
    certificate.insert("certificate_type".into(), json!(texts.certificate_type));
    let notices = written::legal_notices(facts, record::is_paper(facts), texts.legal_notices);
    certificate.insert("legal_notices".into(), json!(notices));

    // An upload has no result: it stays null.
    if certificate["esign_act_compliance"]["compliant"].is_boolean() {
        let mut esign = texts.esign_checks.iter();
        let is_signed =
            esign.all(|index| answered.get(*index).is_some_and(|check| check.satisfied));
        certificate["esign_act_compliance"]["compliant"] = json!(is_signed);
    }

    let checks = certificate["ucc_9105_compliance"]["checks"].as_array_mut();
    for (check, answered) in checks.into_iter().flatten().zip(answered) {
        check["statute_reference"] = json!(answered.statute_reference);
    }

    if let Some(law) = certified(facts, &law, texts.text) {
        certificate.insert("law".into(), json!(law));
    }

    let mut text = serde_json::to_string_pretty(&certificate).unwrap_or_default();
    text.push('\n');
    text
}

fn certified<'a>(
    facts: &EnvelopeFacts,
    law: &LawInForce<'a>,
    applied: &'a str,
) -> Option<CertifiedLaw<'a>> {
    let (jurisdiction, status, date, enacted) = match *law {
        LawInForce::NotStated => return None,
        LawInForce::NotInTable { jurisdiction, date } => {
            (jurisdiction, "not in the table", date, None)
        }
        LawInForce::DateUnknown { law, date } => (
            law.jurisdiction,
            "not in the table: enacted, date unknown",
            date,
            Some(law),
        ),
        LawInForce::Dated { law, date } => (law.jurisdiction, "in the table", date, Some(law)),
    };

    Some(CertifiedLaw {
        jurisdiction,
        status,
        applied,
        why: reason(facts, law),
        question_date: date,
        time_zone: "UTC",
        enacted: enacted.map(CertifiedAct::of),
    })
}

/// Returns why a text of the statute was applied.
fn reason(facts: &EnvelopeFacts, law: &LawInForce<'_>) -> String {
    let LawInForce::Dated { law: act, date } = law else {
        return match law {
            LawInForce::DateUnknown { .. } => "The amendments of 2022 are enacted there, and the table has no source that states from when on they are in effect. The text before them was applied.".into(),
            _ => "The table has no row for this jurisdiction. It does not say that the amendments of 2022 are not enacted there. The text before them was applied.".into(),
        };
    };
    let Some(date) = date else {
        return "No date of the question is stated. The text before the amendments of 2022 was applied.".into();
    };

    if *date < act.effective {
        return format!(
            "The question is of {date}, before the amendments take effect on {}.",
            act.effective
        );
    }

    let mut why = format!(
        "The question is of {date}, and the amendments are in effect since {}.",
        act.effective
    );
    // A reader might expect the law of the day of the signature.
    if signature_date(facts).is_some_and(|signed| signed < act.effective) {
        why += " They govern transactions that were entered into before as well (UCC §A-301(a)).";
    }

    if !act.adjustment.is_empty() && *date < act.adjustment {
        why += &format!(
            " What was perfected under the text before stays so until the adjustment date, {} (UCC §§A-302 to A-306).",
            act.adjustment
        );
    }

    why
}
