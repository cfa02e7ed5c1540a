//! Prefilled fields of a bulk document: maps field names to a client's attributes.
//!
//! A field is prefilled when its name, without case, spaces and punctuation, is one
//! of the names in [`NAMES`]; `docs/bulk-send.md` documents the table for users.

use super::field::Field;

/// Client attributes, each with the field names that it prefills.
pub const NAMES: &[(&str, &[&str])] = &[
    (
        "name",
        &[
            "name",
            "fullname",
            "clientname",
            "customername",
            "buyername",
            "signername",
        ],
    ),
    (
        "email",
        &["email", "emailaddress", "clientemail", "customeremail"],
    ),
    (
        "phone",
        &[
            "phone",
            "phonenumber",
            "telephone",
            "clientphone",
            "customerphone",
        ],
    ),
    ("company", &["company", "companyname", "businessname"]),
    ("job_title", &["jobtitle"]),
    ("entity_type", &["entitytype"]),
    (
        "client_id",
        &["clientid", "customerid", "clientnumber", "customernumber"],
    ),
    ("category", &["category"]),
    ("industry", &["industry"]),
    (
        "address_line1",
        &[
            "address",
            "addressline1",
            "address1",
            "street",
            "streetaddress",
        ],
    ),
    ("address_line2", &["addressline2", "address2"]),
    ("city", &["city", "town"]),
    ("state", &["state", "province", "region"]),
    ("postal_code", &["postalcode", "postcode", "zip", "zipcode"]),
    ("country", &["country"]),
    ("website_url", &["website", "websiteurl", "url"]),
    (
        "primary_contact_name",
        &[
            "primarycontact",
            "primarycontactname",
            "contactname",
            "contact",
        ],
    ),
];

/// Returns the client attribute that prefills fields of this name.
fn datum(field: &str) -> Option<&'static str> {
    let plain: String = field
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    NAMES
        .iter()
        .find(|(_, names)| names.contains(&plain.as_str()))
        .map(|(datum, _)| *datum)
}

/// Returns names and values for the fields of `role`. `known` looks up an attribute of the
/// client and returns `None` when it is not set. A field with options is prefilled only with one
/// of its options; a signature is never prefilled.
pub fn values(
    fields: &[Field],
    role: &str,
    known: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    for field in fields.iter().filter(|field| field.role == role) {
        let takes = |value: &String| match field.field_type.as_str() {
            "text" => true,
            "select" | "radio" => field.options.contains(value),
            "number" => value.trim().parse::<f64>().is_ok_and(f64::is_finite),
            _ => false,
        };
        let value = datum(&field.name).and_then(&known).filter(takes);

        // Fields with the same name share one value.
        if let Some(value) = value
            && !values.iter().any(|(name, _)| *name == field.name)
        {
            values.push((field.name.clone(), value));
        }
    }

    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldRules;

    fn field(name: &str, field_type: &str, role: &str) -> Field {
        Field {
            name: name.into(),
            field_type: field_type.into(),
            role: role.into(),
            required: false,
            readonly: false,
            default_value: None,
            options: vec!["Oregon".into()],
            areas: Vec::new(),
            anchor_match: None,
            rules: FieldRules::default(),
        }
    }

    fn known(datum: &str) -> Option<String> {
        match datum {
            "name" => Some("Jordan Lee".into()),
            "state" => Some("Oregon".into()),
            "client_id" => Some("C-17".into()),
            _ => None,
        }
    }

    #[test]
    fn names_are_compared_without_case_spaces_and_punctuation() {
        let fields = [
            field("Client name:", "text", "Buyer"),
            field("FULL_NAME", "text", "Buyer"),
            field("Nickname", "text", "Buyer"),
        ];
        let values = values(&fields, "Buyer", known);
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Client name:", "FULL_NAME"]);
        assert_eq!(values[0].1, "Jordan Lee");
    }

    #[test]
    fn a_prefill_matches_the_type_of_its_field() {
        let taken = |field_type: &str, name: &str| {
            values(&[field(name, field_type, "Buyer")], "Buyer", known).len()
        };
        assert_eq!(taken("select", "State"), 1);
        assert_eq!(taken("select", "Name"), 0);
        assert_eq!(taken("number", "Client ID"), 0);

        for field_type in ["signature", "initials", "date", "checkbox"] {
            assert_eq!(taken(field_type, "Name"), 0, "{field_type}");
        }
        assert_eq!(taken("text", "City"), 0);
    }

    #[test]
    fn fields_of_another_party_are_not_prefilled() {
        let fields = [field("Name", "text", "Seller")];
        assert!(values(&fields, "Buyer", known).is_empty());
    }

    #[test]
    fn each_prefill_name_stands_for_one_value() {
        let mut all: Vec<&str> = NAMES
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let count = all.len();
        all.sort_unstable();

        all.dedup();
        assert_eq!(all.len(), count);
    }
}
