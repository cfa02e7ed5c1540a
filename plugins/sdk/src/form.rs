//! Request bodies of type `application/x-www-form-urlencoded`.

/// Encodes names and values into a body, each percent-encoded.
#[must_use]
pub fn encoded(pairs: &[(&str, String)]) -> String {
    let mut body = String::new();
    for (name, value) in pairs {
        if !body.is_empty() {
            body.push('&');
        }
        push(&mut body, name);
        body.push('=');
        push(&mut body, value);
    }

    body
}

/// Appends a percent-encoded text. The unreserved characters of RFC 3986 stay as they are.
fn push(body: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                body.push(char::from(byte));
            }
            _ => body.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_parameter_names_and_values_are_encoded() {
        let pairs = [
            ("metadata[envelope_id]", "env_1".to_owned()),
            ("receipt_email", "kim+1@birch.example".to_owned()),
            ("description", "Préparé & payé".to_owned()),
        ];
        assert_eq!(
            encoded(&pairs),
            "metadata%5Benvelope_id%5D=env_1&receipt_email=kim%2B1%40birch.example\
             &description=Pr%C3%A9par%C3%A9%20%26%20pay%C3%A9"
        );
        assert_eq!(encoded(&[]), "");
    }
}
