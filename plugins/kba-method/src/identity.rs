//! Identity fields of a signer, and the request that carries them to Method.

use serde_json::{Map, Value, json};

/// One identity field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdentityFieldSpec {
    pub name: &'static str,
    pub label: &'static str,
    pub required: bool,
}

const fn field(name: &'static str, label: &'static str, required: bool) -> IdentityFieldSpec {
    IdentityFieldSpec {
        name,
        label,
        required,
    }
}

/// All fields that Method can use to find the history of a person.
const FIELDS: [IdentityFieldSpec; 10] = [
    field("first_name", "First name", true),
    field("last_name", "Last name", true),
    field("phone", "Mobile phone", true),
    field("date_of_birth", "Date of birth", true),
    field("ssn_last4", "Last four digits of your SSN", true),
    field("line1", "Street address", true),
    field("line2", "Apartment or unit", false),
    field("city", "City", true),
    field("state", "State", true),
    field("zip", "ZIP code", true),
];

/// Returns the fields in the setting `identity_fields`, or all fields without that setting.
pub(crate) fn declared(setting: Option<&str>) -> Vec<IdentityFieldSpec> {
    let Some(setting) = setting else {
        return FIELDS.to_vec();
    };

    // Names unknown to Method are ignored; the order of the form stays that of `FIELDS`.
    let named: Vec<&str> = setting.split(',').map(str::trim).collect();
    FIELDS
        .into_iter()
        .filter(|field| named.contains(&field.name))
        .collect()
}

/// Returns the body of `POST /entities`, without the fields that were not given.
pub(crate) fn entity(identity: &[(String, String)]) -> Value {
    let given = |name: &str| {
        identity
            .iter()
            .find(|(known, value)| known == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    };
    let all = |names: &[(&str, &str)]| -> Map<String, Value> {
        names
            .iter()
            .filter_map(|(ours, theirs)| Some(((*theirs).to_owned(), given(ours)?.into())))
            .collect()
    };
    let individual = all(&[
        ("first_name", "first_name"),
        ("last_name", "last_name"),
        ("phone", "phone"),
        ("email", "email"),
        ("date_of_birth", "dob"),
        ("ssn_last4", "ssn_4"),
    ]);

    let address = all(&[
        ("line1", "line1"),
        ("line2", "line2"),
        ("city", "city"),
        ("state", "state"),
        ("zip", "zip"),
    ]);

    let mut body = json!({ "type": "individual", "individual": individual });
    if !address.is_empty() {
        body["address"] = address.into();
    }

    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn required_identity_fields_are_configurable() {
        assert_eq!(declared(None).len(), FIELDS.len());
        let names = |setting| -> Vec<&str> {
            let fields = declared(Some(setting));
            fields.iter().map(|field| field.name).collect()
        };
        assert_eq!(names("phone, first_name"), ["first_name", "phone"]);
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("shoe_size"), [""; 0]);
    }

    #[test]
    fn personal_data_is_mapped_to_methods_format() {
        let body = entity(&given(&[
            ("first_name", "Kim"),
            ("last_name", "Birch"),
            ("phone", "+15125550123"),
            ("email", "kim@birch.example"),
            ("date_of_birth", "1980-02-29"),
            ("ssn_last4", "1234"),
            ("line1", "1 Oak Street"),
            ("line2", ""),
            ("city", "Austin"),
            ("state", "TX"),
            ("zip", "78701"),
        ]));
        assert_eq!(
            body,
            json!({
                "type": "individual",
                "individual": {
                    "first_name": "Kim", "last_name": "Birch", "phone": "+15125550123",
                    "email": "kim@birch.example", "dob": "1980-02-29", "ssn_4": "1234",
                },
                "address": {
                    "line1": "1 Oak Street", "city": "Austin", "state": "TX", "zip": "78701",
                },
            })
        );

        let little = entity(&given(&[("email", "kim@birch.example")]));
        assert_eq!(
            little,
            json!({ "type": "individual", "individual": { "email": "kim@birch.example" } })
        );
    }
}
