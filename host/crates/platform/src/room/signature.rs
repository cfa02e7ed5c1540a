//! Values of signature and initials fields: a typed name, or a drawn or uploaded picture.
//!
//! A picture is submitted and stored as a `data:` URL (RFC 2397), so that the form can show it
//! again unchanged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_handwriting::Handwriting;

use holdfast_components::rules::documents::{Picture, PictureFormat};
use holdfast_components::rules::handwriting::HandwritingStyle;
use holdfast_domain::envelope::FileType;
use holdfast_domain::locale::Message;

/// Maximum size of a signature's picture, in bytes.
pub const PICTURE_LIMIT: usize = 300 * 1024;

/// Signature as entered by the signer.
pub enum SignatureValue {
    Typed(String),
    Drawn(Picture),
}

impl SignatureValue {
    /// Parses a value. Rejects `data:` URLs that are not pictures of a supported format; whether
    /// the bytes can be drawn is checked in the sandbox.
    pub fn parse(value: &str) -> Result<Self, Message> {
        let Some(rest) = value.strip_prefix("data:") else {
            return Ok(Self::Typed(value.to_owned()));
        };

        let wrong = || Message::new("problem-picture-format");
        let (head, encoded) = rest.split_once(',').ok_or_else(wrong)?;

        // Checked on the encoded text, before memory is spent on decoding.
        if encoded.len() > PICTURE_LIMIT.div_ceil(3) * 4 {
            let limit = PICTURE_LIMIT / 1024;
            return Err(Message::with_limit("problem-picture-size", limit));
        }

        let bytes = STANDARD.decode(encoded).map_err(|_| wrong())?;
        let format = match (head, FileType::detect(&bytes)) {
            ("image/png;base64", Some(FileType::Png)) => PictureFormat::Png,
            ("image/jpeg;base64", Some(FileType::Jpeg)) => PictureFormat::Jpeg,
            _ => return Err(wrong()),
        };

        Ok(Self::Drawn(Picture { format, bytes }))
    }
}

/// Returns a style as the documents component names it.
pub fn component_style(style: Handwriting) -> HandwritingStyle {
    match style {
        Handwriting::Casual => HandwritingStyle::Casual,
        Handwriting::Formal => HandwritingStyle::Formal,
        Handwriting::Light => HandwritingStyle::Light,
    }
}

/// Returns whether a value is a picture rather than text.
pub fn is_picture(value: &str) -> bool {
    value.starts_with("data:")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    #[test]
    fn a_signature_is_a_typed_name_or_an_image_data_url() {
        assert!(
            matches!(SignatureValue::parse("Ann Lee"), Ok(SignatureValue::Typed(name)) if name == "Ann Lee")
        );
        let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
        assert!(
            matches!(SignatureValue::parse(&url), Ok(SignatureValue::Drawn(picture)) if picture.bytes == PNG)
        );
    }

    #[test]
    fn a_signature_in_an_unsupported_image_format_is_refused() {
        let png = STANDARD.encode(PNG);
        let large = STANDARD.encode([PNG, &vec![0; PICTURE_LIMIT]].concat());
        for wrong in [
            "data:".to_owned(),
            "data:image/png;base64".to_owned(),
            "data:image/png;base64,*".to_owned(),
            format!("data:image/jpeg;base64,{png}"),
            format!("data:image/svg+xml;base64,{png}"),
            format!("data:image/png,{png}"),
            format!("data:image/png;base64,{large}"),
        ] {
            assert!(
                SignatureValue::parse(&wrong).is_err(),
                "{}",
                &wrong[..wrong.len().min(60)]
            );
        }
    }
}
