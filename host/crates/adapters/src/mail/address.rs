//! E-mail addresses: the one parser for all of them, so that what a door accepts can be delivered to.
//!
//! Quoted and plus forms stay, and so does the case of letters. Two addresses are the same without regard to case:
//! servers that tell `A@` from `a@` are not known, and people write both.

use lettre::Address;
use url::Host;

/// Maximum length of an address in bytes (RFC 5321, 4.5.3.1.3, without the angle brackets).
const LIMIT: usize = 254;

/// Reason why a text is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressProblem {
    #[error("Write the address alone, without a name: jordan@example.com")]
    Named,
    #[error("Not an e-mail address")]
    Malformed,
    #[error("An e-mail address has at most {LIMIT} characters")]
    TooLong,
}

/// Returns an address in the form in which it is stored and mailed: an internationalized host name in ASCII
/// (RFC 5891).
pub fn parse(text: &str) -> Result<String, AddressProblem> {
    if text.ends_with('>') {
        return Err(AddressProblem::Named);
    }

    // From the right, because a quoted local part may have an @ of its own.
    let (local, host) = text.rsplit_once('@').ok_or(AddressProblem::Malformed)?;
    let host = if host.is_ascii() {
        host.to_owned()
    } else {
        let parsed = Host::parse(host).map_err(|_| AddressProblem::Malformed)?;
        parsed.to_string()
    };
    let address = Address::new(local, &host).map_err(|_| AddressProblem::Malformed)?;
    let address = address.to_string();
    if address.len() > LIMIT {
        return Err(AddressProblem::TooLong);
    }

    Ok(address)
}

/// Returns whether a text is an e-mail address.
pub fn is_address(text: &str) -> bool {
    parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_as_it_is_written() {
        for address in [
            "jordan@example.com",
            "Jordan.Lee+loan@Example.COM",
            "\"jordan lee\"@example.com",
            "jordan@[192.0.2.7]",
            "o'hara@example.co.uk",
        ] {
            assert_eq!(parse(address).as_deref(), Ok(address));
        }
    }

    #[test]
    fn a_host_name_of_other_scripts_is_converted() {
        for (given, stored) in [
            ("jordan@bücher.example", "jordan@xn--bcher-kva.example"),
            ("jordan@例え.テスト", "jordan@xn--r8jz45g.xn--zckzah"),
        ] {
            assert_eq!(parse(given).as_deref(), Ok(stored));
        }
    }

    #[test]
    fn names_and_other_texts_are_refused_with_a_reason() {
        let named = ["Jordan Lee <jordan@example.com>", "<jordan@example.com>"];
        for text in named {
            assert_eq!(parse(text), Err(AddressProblem::Named), "{text}");
        }

        for text in [
            "",
            "jordan",
            "@example.com",
            "jordan@",
            "jordan@exa mple.com",
            "a@b@c..d",
            "jordan@example.com,",
        ] {
            assert_eq!(parse(text), Err(AddressProblem::Malformed), "{text}");
        }

        let long = format!(
            "{}@{}.example",
            "a".repeat(60),
            vec!["b".repeat(60); 4].join(".")
        );
        assert_eq!(parse(&long), Err(AddressProblem::TooLong));
    }
}
