//! Jurisdictions of chattel paper.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// States, the district and territories of the United States that have the Uniform Commercial Code.
const STATES: &str = "AK AL AR AZ CA CO CT DC DE FL GA GU HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND \
                      NE NH NJ NM NV NY OH OK OR PA PR RI SC SD TN TX UT VA VI VT WA WI WV WY";

/// Jurisdiction whose law governs control of a record (UCC §9-306A(b)(1)): a country of ISO 3166-1 such as
/// `CA`, or a subdivision of ISO 3166-2 such as `US-DE`. In the United States it is always a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = "^[A-Z]{2}(-[A-Z0-9]{1,3})?$", "examples" = ["US-DE"]))]
pub struct Jurisdiction(String);

impl Jurisdiction {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Jurisdiction {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (country, part) = match text.split_once('-') {
            Some((country, part)) => (country, Some(part)),
            None => (text.as_str(), None),
        };
        let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
        let known = |part: &str| match country {
            "US" => STATES.split(' ').any(|state| state == part),
            _ => {
                let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
                (1..=3).contains(&part.len()) && part.bytes().all(plain)
            }
        };

        // Chattel paper law is state law in the United States, so the country alone does not decide anything.
        let is_known = match part {
            Some(part) => known(part),
            None => country != "US",
        };
        if country.len() == 2 && letters(country) && is_known {
            Ok(Self(text))
        } else {
            Err(format!(
                "{text} is no jurisdiction; write a state as US-DE, or a country as CA"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jurisdiction_is_a_state_or_another_country() {
        for known in ["US-DE", "US-DC", "US-PR", "CA", "CA-ON", "DE", "GB-SCT"] {
            let parsed = Jurisdiction::try_from(known.to_owned());
            assert_eq!(parsed.unwrap().as_str(), known);
        }

        for unknown in [
            "", "US", "US-XX", "US-", "us-de", "Delaware", "CA-ONTA", "C-A",
        ] {
            let refused = Jurisdiction::try_from(unknown.to_owned());
            assert!(refused.is_err(), "{unknown}");
        }
    }
}
