//! Field values in the event `envelope.completed`.

use serde_json::{Value, json};

use holdfast_components::providers::signing as provider;
use holdfast_domain::envelope::Signer;

/// Maximum number of fields in `envelope.completed`, and their maximum total size.
const FIELDS_LIMIT: usize = 200;
const FIELDS_BYTES: usize = 64 * 1024;

/// Returns the event's `fields[]` and whether it was truncated (at 200 fields or 64 KiB).
/// Values are numbers for `number` fields, `signed` for signatures, and text otherwise.
///
/// Each field names its signer by id: two signers may share an e-mail address.
pub fn completed_fields(
    submission: &provider::Submission,
    signers: &[Signer],
) -> (Vec<Value>, bool) {
    let mut fields = Vec::new();
    let mut bytes = 0;
    for submitter in &submission.submitters {
        let id = Some(&submitter.submitter_id);
        let signer = signers
            .iter()
            .find(|signer| signer.provider_submitter.as_ref() == id);

        for value in &submitter.values {
            let field = json!({
                "name": value.name,
                "type": value.field_type,
                "value": event_value(value),
                "signer_email": submitter.email,
                "signer_id": signer.map(|signer| &signer.id),
            });
            bytes += field.to_string().len();

            if fields.len() == FIELDS_LIMIT || bytes > FIELDS_BYTES {
                return (fields, true);
            }

            fields.push(field);
        }
    }

    (fields, false)
}

fn event_value(value: &provider::SignedValue) -> Value {
    match value.field_type.as_str() {
        // The picture of a signature stays here. The event states only that there is one.
        "signature" | "initials" if !value.value.is_empty() => "signed".into(),
        // A number that cannot be parsed stays text, so the partner loses nothing.
        "number" => value
            .value
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map_or_else(|| value.value.as_str().into(), Value::Number),
        _ => value.value.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(values: Vec<(&str, &str, &str)>) -> provider::Submission {
        provider::Submission {
            submission_id: "1".into(),
            status: provider::SubmissionStatus::Completed,
            archived: false,
            completed_at: None,
            submitters: vec![provider::Submitter {
                submitter_id: "1".into(),
                name: "Ann".into(),
                email: "ann@example.com".into(),
                role: "Buyer".into(),
                status: provider::SignerStatus::Completed,
                signing_url: String::new(),
                completed_at: None,
                decline_reason: None,
                values: values
                    .into_iter()
                    .map(|(name, field_type, value)| provider::SignedValue {
                        name: name.into(),
                        field_type: field_type.into(),
                        value: value.into(),
                    })
                    .collect(),
                attributes: Vec::new(),
            }],
        }
    }

    #[test]
    fn completed_values_have_the_types_of_the_contract() {
        let (fields, truncated) = completed_fields(
            &submission(vec![
                ("amount", "number", "12.5"),
                ("agreed", "checkbox", "true"),
                ("signature", "signature", "Ann"),
                ("initials", "initials", ""),
                ("note", "text", "12"),
            ]),
            &[],
        );

        let values: Vec<&Value> = fields.iter().map(|field| &field["value"]).collect();
        assert_eq!(
            values,
            [
                &json!(12.5),
                &json!("true"),
                &json!("signed"),
                &json!(""),
                &json!("12")
            ]
        );
        assert!(!truncated);
    }

    #[test]
    fn long_lists_of_completed_fields_are_truncated_with_a_flag() {
        let (fields, truncated) = completed_fields(&submission(vec![("a", "text", "x"); 201]), &[]);
        assert_eq!((fields.len(), truncated), (200, true));
        let long = "x".repeat(40_000);
        let (fields, truncated) = completed_fields(&submission(vec![("a", "text", &long); 2]), &[]);
        assert_eq!((fields.len(), truncated), (1, true));
    }
}
