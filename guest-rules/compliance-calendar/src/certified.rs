//! The certificate, with the law that was applied.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::calendar::law_of;
use crate::types::{ComponentIdentity, EnvelopeFacts};
use crate::{pack, written};

/// Member `law` of the certificate.
#[derive(Serialize)]
struct CertifiedLaw<'a> {
    jurisdiction: &'a str,
    /// The text of the statute that was applied.
    applied: &'a str,
    /// Date of the record that the text was chosen by.
    record_date: &'a str,
    time_zone: &'static str,
    effective: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    adjustment: &'a str,
    act: &'a str,
    source: &'a str,
}

/// Returns the certificate as the packs write it, with the member `law` if the record's jurisdiction is in the
/// table.
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
    let (texts, answered) = (pack::texts(law), pack::answers(facts, law));
    certificate.insert("certificate_type".into(), json!(texts.certificate_type));
    certificate.insert("legal_notices".into(), json!(texts.legal_notices));
    let mut esign = texts.esign_checks.iter();
    let is_signed = esign.all(|index| answered.get(*index).is_some_and(|check| check.satisfied));
    certificate["esign_act_compliance"]["compliant"] = json!(is_signed);
    let checks = certificate["ucc_9105_compliance"]["checks"].as_array_mut();
    for (check, answered) in checks.into_iter().flatten().zip(answered) {
        check["statute_reference"] = json!(answered.statute_reference);
    }
    if let Some(found) = law {
        let law = CertifiedLaw {
            jurisdiction: found.law.jurisdiction,
            applied: texts.text,
            record_date: found.date,
            time_zone: "UTC",
            effective: found.law.effective,
            adjustment: found.law.adjustment,
            act: found.law.act,
            source: found.law.source,
        };
        certificate.insert("law".into(), json!(law));
    }
    let mut text = serde_json::to_string_pretty(&certificate).unwrap_or_default();
    text.push('\n');
    text
}
