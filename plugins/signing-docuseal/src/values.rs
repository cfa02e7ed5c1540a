//! Conversion between texts and DocuSeal's JSON values, and encoding of texts for URLs.

use serde_json::{Number, Value};

/// Returns a JSON value as the text that a person would have typed.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Converts a text to the JSON value for a field of this type. A text that does not convert is sent
/// unchanged, and DocuSeal decides.
pub(crate) fn typed(field_type: &str, text: &str) -> Value {
    let typed = match field_type {
        "number" => number(text).map(Value::Number),
        "checkbox" => text.parse().ok().map(Value::Bool),
        "multiple" => serde_json::from_str(text).ok().filter(Value::is_array),
        _ => None,
    };
    typed.unwrap_or_else(|| text.into())
}

fn number(text: &str) -> Option<Number> {
    match text.parse::<i64>() {
        Ok(whole) => Some(whole.into()),
        Err(_) => Number::from_f64(text.parse().ok()?),
    }
}

/// Returns a signer's input as text. Files come as URLs that are credentials and expire, so for
/// them only their presence is reported.
pub(crate) fn entered(field_type: &str, value: &Value) -> String {
    let given = text(value);
    match field_type {
        _ if given.is_empty() => given,
        _ if is_signature(field_type) => "signed".into(),
        "image" | "stamp" | "payment" | "kba" | "file" | "verification" => "attached".into(),
        _ => given,
    }
}

/// Returns whether a field is filled by signing, not by typing a value.
pub(crate) fn is_signature(field_type: &str) -> bool {
    matches!(field_type, "signature" | "initials")
}

/// Encodes a text for a query string.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }

    encoded
}

/// Returns a UUID (RFC 9562, version 8) that is always the same for the same parts.
pub(crate) fn uuid_of(parts: &[&str]) -> String {
    // FNV-1a with 128 bits; a separator keeps different splits of the same text apart.
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash ^= u128::from(byte);
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    // Version 8 is for values of one's own making. The variant is that of RFC 9562.
    let version = hash & !(0xf << 76) | (0x8 << 76);
    let variant = version & !(0x3 << 62) | (0x2 << 62);
    let hex = format!("{variant:032x}");
    let group = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [
        group(0, 8),
        group(8, 12),
        group(12, 16),
        group(16, 20),
        group(20, 32),
    ]
    .join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prefill_has_the_type_of_its_field() {
        for (field_type, text, expected) in [
            ("number", "12", json!(12)),
            ("number", "12.5", json!(12.5)),
            ("number", "twelve", json!("twelve")),
            ("number", "NaN", json!("NaN")),
            ("checkbox", "true", json!(true)),
            ("checkbox", "false", json!(false)),
            ("checkbox", "yes", json!("yes")),
            ("multiple", r#"["a","b"]"#, json!(["a", "b"])),
            ("multiple", "a", json!("a")),
            ("text", "12", json!("12")),
            ("text", "true", json!("true")),
        ] {
            assert_eq!(typed(field_type, text), expected, "{field_type} {text}");
        }
    }

    #[test]
    fn entered_values_are_texts_and_never_file_urls() {
        let url = json!("https://example.com/file/secret");
        for (field_type, value, expected) in [
            ("signature", &url, "signed"),
            ("initials", &url, "signed"),
            ("image", &url, "attached"),
            ("kba", &url, "attached"),
            ("signature", &Value::Null, ""),
            ("file", &json!([]), ""),
            ("number", &json!(12), "12"),
            ("number", &json!(12.5), "12.5"),
            ("checkbox", &json!(true), "true"),
            ("multiple", &json!(["a", "b"]), "a, b"),
            ("text", &json!("12"), "12"),
        ] {
            assert_eq!(entered(field_type, value), expected, "{field_type} {value}");
        }
    }

    #[test]
    fn query_parameter_texts_are_escaped() {
        assert_eq!(percent_encoded("env_01h-455.vb~4"), "env_01h-455.vb~4");
        assert_eq!(percent_encoded("a b&c=d/é"), "a%20b%26c%3Dd%2F%C3%A9");
    }

    #[test]
    fn derived_uuids_depend_only_on_their_parts() {
        let uuid = uuid_of(&["1", "Buyer"]);
        assert_eq!(uuid, uuid_of(&["1", "Buyer"]));
        assert_ne!(uuid, uuid_of(&["1B", "uyer"]));
        assert_ne!(uuid, uuid_of(&["1", "Buyer", ""]));
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(uuid.as_bytes()[14], b'8', "{uuid}");
        assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }
}
