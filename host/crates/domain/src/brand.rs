//! Branding of an organization in mails and on the signing form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::envelope::FileType;

/// Maximum size of a logo in bytes. It is small because every mail carries the logo.
pub const LOGO_LIMIT: usize = 64 * 1024;

/// Branding that signers see instead of the product's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrganizationBrand {
    /// Display name that replaces the organization's name.
    pub name: Option<String>,
    /// Colour of buttons and lines.
    pub color: Option<BrandColor>,
    pub logo: Option<BrandLogo>,
}

/// A colour as `#rrggbb`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^#[0-9a-fA-F]{6}$", "examples" = ["#1d4ed8"]))]
pub struct BrandColor([u8; 3]);

impl BrandColor {
    /// Default colour, that of the product's own pages.
    pub const OURS: Self = Self([0x1d, 0x4e, 0xd8]);

    /// Returns white if its contrast on this colour is at least 4.5 (WCAG 2.2), otherwise black:
    /// one of the two always reaches 4.5.
    pub fn text(&self) -> &'static str {
        let channel = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        // These are the formulas of WCAG 2.2 for relative luminance and contrast; white has the luminance 1.
        let [red, green, blue] = self.0.map(channel);

        let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        if (1.05) / (luminance + 0.05) >= 4.5 {
            "#ffffff"
        } else {
            "#000000"
        }
    }
}

impl std::fmt::Display for BrandColor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [red, green, blue] = self.0;
        write!(formatter, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl From<BrandColor> for String {
    fn from(color: BrandColor) -> Self {
        color.to_string()
    }
}

impl TryFrom<String> for BrandColor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text} is no colour; write it as #rrggbb");
        let digits = text.strip_prefix('#').ok_or_else(wrong)?;
        let mut bytes = [0; 3];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| wrong())?;
        Ok(Self(bytes))
    }
}

/// A PNG or JPEG of at most [`LOGO_LIMIT`] bytes; base64 in settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct BrandLogo {
    pub bytes: Vec<u8>,
    pub file_type: FileType,
}

impl BrandLogo {
    /// Checks size and file type.
    ///
    /// # Errors
    /// A message when the bytes are neither PNG nor JPEG, or more than [`LOGO_LIMIT`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.len() > LOGO_LIMIT {
            return Err(format!("a logo has at most {LOGO_LIMIT} bytes"));
        }
        // The declared media type is not asked: an uploader could send HTML or SVG with scripts as an image.
        match FileType::detect(&bytes) {
            Some(file_type @ (FileType::Png | FileType::Jpeg)) => Ok(Self { bytes, file_type }),
            _ => Err("a logo is a PNG or a JPEG".into()),
        }
    }
}

impl From<BrandLogo> for String {
    fn from(logo: BrandLogo) -> Self {
        STANDARD.encode(logo.bytes)
    }
}

impl TryFrom<String> for BrandLogo {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
        Self::new(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_six_hexadecimal_digits_and_has_readable_text() {
        for (color, text) in [
            ("#ffffff", "#000000"),
            ("#000000", "#ffffff"),
            ("#0b57d0", "#ffffff"),
            ("#ffd000", "#000000"),
        ] {
            assert_eq!(BrandColor::try_from(color.to_owned()).unwrap().text(), text);
        }

        for wrong in ["red", "#fff", "#gggggg", "#ffffff;"] {
            assert!(BrandColor::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_logo_has_to_be_a_small_image() {
        let png = b"\x89PNG\r\n\x1a\n".to_vec();
        assert_eq!(BrandLogo::new(png).unwrap().file_type, FileType::Png);
        assert!(BrandLogo::new(b"<svg/>".to_vec()).is_err());
        assert!(BrandLogo::new(vec![0xff; LOGO_LIMIT + 1]).is_err());
    }
}
