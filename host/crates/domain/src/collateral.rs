//! Declared collateral of a record: what identifies the thing that secures it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::envelope::words;
use super::id::OrgId;

words! {
    /// Kind of an identifier.
    CollateralKind {
        // Vehicle identification number (ISO 3779, 49 CFR 565).
        Vin = "vin",
        // Hull identification number (33 CFR 181).
        Hin = "hin",
        // Serial number, with its manufacturer.
        Serial = "serial",
        // Parcel number, with its county.
        Parcel = "parcel",
        // The originator's own number of the contract.
        ContractNumber = "contract_number",
    }
}

/// Identifier of collateral.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Collateral {
    pub kind: CollateralKind,
    /// Case, spaces, dots, slashes and dashes are ignored.
    #[schemars(length(min = 1, max = 100))]
    pub value: String,
}

impl Collateral {
    /// Returns a text that is equal for equal collateral. It contains the originator for a contract number,
    /// which another originator may use as well.
    ///
    /// # Errors
    /// A message about the identifier.
    pub fn normalized(&self, originator: &OrgId) -> Result<String, String> {
        // People write the same number with and without separators, and both spellings must find each other.
        let plain = |character: &char| !character.is_whitespace() && !"-./".contains(*character);
        let value: String = self.value.chars().filter(plain).collect();
        let mut value = value.to_uppercase();
        if value.is_empty() {
            return Err("the value has neither letters nor digits".into());
        }

        // Only numbers that are unique in the whole market go without the originator.
        let scope = match self.kind {
            CollateralKind::Vin => {
                check_vin(&value)?;
                ""
            }
            CollateralKind::Hin => {
                check_hin(&value)?;
                ""
            }
            // No public rule describes these numbers, so any non-empty one is accepted.
            CollateralKind::Serial | CollateralKind::Parcel => "",
            CollateralKind::ContractNumber => originator.as_str(),
        };

        if self.kind == CollateralKind::Hin && value.len() == 14 {
            // The same hull with and without its country.
            value = value.split_off(2);
        }

        Ok(format!("{}\n{scope}\n{value}", self.kind))
    }
}

/// Requires 17 characters of the alphabet and the check digit of 49 CFR 565.15(c).
fn check_vin(vin: &str) -> Result<(), String> {
    const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];

    if vin.chars().count() != 17 {
        return Err("a VIN has 17 characters".into());
    }

    let mut sum = 0;
    for (character, weight) in vin.chars().zip(WEIGHTS) {
        let value = match character {
            '0'..='9' => character.to_digit(10).unwrap_or_default(),
            // The letters I, O and Q do not occur in a VIN, so the values jump where they would be.
            'A'..='H' => character as u32 - 'A' as u32 + 1,
            'J'..='N' => character as u32 - 'J' as u32 + 1,
            'P' => 7,
            'R' => 9,
            'S'..='Z' => character as u32 - 'S' as u32 + 2,
            _ => return Err(format!("{character} does not occur in a VIN")),
        };

        sum += value * weight;
    }

    let digit = match sum % 11 {
        10 => 'X',
        rest => char::from_digit(rest, 10).unwrap_or_default(),
    };
    if vin.chars().nth(8) == Some(digit) {
        Ok(())
    } else {
        Err("the check digit of the VIN is wrong".into())
    }
}

/// Requires the twelve characters of 33 CFR 181.25, after an optional country code.
fn check_hin(hin: &str) -> Result<(), String> {
    let letters = hin
        .chars()
        .all(|character| character.is_ascii_alphanumeric());
    // 33 CFR 181.25 has no check digit, so only form and length can be wrong here.
    if letters && [12, 14].contains(&hin.len()) {
        Ok(())
    } else {
        Err("a hull identification number has 12 or 14 letters and digits".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: CollateralKind, value: &str) -> Result<String, String> {
        let value = value.into();
        Collateral { kind, value }.normalized(&OrgId::new())
    }

    #[test]
    fn a_vin_is_normalized_and_has_its_check_digit() {
        let vin = text(CollateralKind::Vin, "1M8GDM9AXKP042788").unwrap();
        assert_eq!(vin, "vin\n\n1M8GDM9AXKP042788");
        assert_eq!(
            text(CollateralKind::Vin, "1m8-gdm9 axkp.042788").unwrap(),
            vin
        );
        assert!(text(CollateralKind::Vin, "11111111111111111").is_ok());

        for wrong in [
            "1M8GDM9A1KP042788",
            "1M8GDM9AXKP04278",
            "1M8GDM9AXKP0427888",
            "IM8GDM9AXKP042788",
            "1M8GDM9AXKP04278é",
            "",
        ] {
            assert!(text(CollateralKind::Vin, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_identifiers_have_their_own_rules() {
        let hull = text(CollateralKind::Hin, "US-ABC12345D404").unwrap();
        assert_eq!(text(CollateralKind::Hin, "ABC12345D404").unwrap(), hull);
        assert!(text(CollateralKind::Hin, "ABC1234").is_err());
        assert!(text(CollateralKind::Serial, " - ").is_err());
        let serial = text(CollateralKind::Serial, "Deere 1-234/5").unwrap();
        assert_eq!(serial, "serial\n\nDEERE12345");
        let number = || text(CollateralKind::ContractNumber, "2041").unwrap();
        assert_ne!(number(), number(), "of two originators");
    }
}
