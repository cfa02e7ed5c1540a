//! JPEG segments and the choice of those to keep.

use super::{ImageHeader, ImageOrientation, exif};
use crate::error::{Result, other};

const START_OF_IMAGE: u8 = 0xD8;
const END_OF_IMAGE: u8 = 0xD9;
const START_OF_SCAN: u8 = 0xDA;
const APP0: u8 = 0xE0;
const APP1: u8 = 0xE1;
const APP2: u8 = 0xE2;
const APP14: u8 = 0xEE;
const APP15: u8 = 0xEF;
const COMMENT: u8 = 0xFE;

/// Copies a JPEG without metadata: EXIF, XMP, comments, maker notes, embedded previews and bytes
/// after the end of the image. Pixels and the segments that determine colours (JFIF and Adobe
/// markers, the ICC profile) are kept.
pub(super) fn strip(jpeg: &[u8]) -> Result<(ImageHeader, Vec<u8>)> {
    let wrong = || other("the picture is no JPEG");
    let cut_short = || other("the picture ends in the middle");
    if !jpeg.starts_with(&[0xFF, START_OF_IMAGE]) {
        return Err(wrong());
    }

    let mut kept = Vec::with_capacity(jpeg.len());
    kept.extend_from_slice(&[0xFF, START_OF_IMAGE]);
    let mut dimensions = None;
    let mut orientation = ImageOrientation::UPRIGHT;
    let mut scans = 0_u32;

    let mut at = 2;
    loop {
        // Any number of fill bytes may stand before a marker (ITU-T T.81, B.1.1.2).
        let marker = loop {
            match (jpeg.get(at), jpeg.get(at + 1)) {
                (Some(0xFF), Some(0xFF)) => at += 1,
                (Some(0xFF), Some(marker)) => break *marker,
                (Some(_), Some(_)) => return Err(wrong()),
                _ => return Err(cut_short()),
            }
        };

        at += 2;
        if marker == END_OF_IMAGE {
            break;
        }

        // The length includes its own two bytes, so a smaller number is damage.
        let length = match jpeg.get(at..at + 2) {
            Some([high, low]) => usize::from(u16::from_be_bytes([*high, *low])),
            _ => return Err(cut_short()),
        };
        let body = match jpeg.get(at..at + length) {
            Some(segment) if length >= 2 => &segment[2..],
            _ => return Err(cut_short()),
        };
        match marker {
            APP1 => {
                if let Some(tiff) = body.strip_prefix(b"Exif\0\0") {
                    orientation = exif::orientation(tiff);
                }
            }
            // Start of frame; the excluded markers are tables in the same number range.
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                if let Some([_, h1, h2, w1, w2, ..]) = body.get(..6) {
                    let height = u32::from(u16::from_be_bytes([*h1, *h2]));
                    let width = u32::from(u16::from_be_bytes([*w1, *w2]));
                    dimensions = Some((width, height));
                }
            }
            _ => {}
        }

        if is_kept(marker, body) {
            kept.extend_from_slice(&[0xFF, marker]);
            kept.extend_from_slice(&jpeg[at..at + length]);
        }

        at += length;
        if marker == START_OF_SCAN {
            scans += 1;
            let end = at + scan_length(&jpeg[at..]).ok_or_else(cut_short)?;
            kept.extend_from_slice(&jpeg[at..end]);
            at = end;
        }
    }

    // Without a scan there are tables and no pixels.
    let (width, height) = dimensions.filter(|_| scans > 0).ok_or_else(wrong)?;
    kept.extend_from_slice(&[0xFF, END_OF_IMAGE]);
    Ok((
        ImageHeader {
            width,
            height,
            bytes_per_pixel: 0,
            orientation,
        },
        kept,
    ))
}

fn is_kept(marker: u8, body: &[u8]) -> bool {
    match marker {
        // JFIF may carry a thumbnail; the bare header is 14 bytes.
        APP0 => body.starts_with(b"JFIF\0") && body.len() == 14,
        APP2 => body.starts_with(b"ICC_PROFILE\0"),
        APP14 => body.starts_with(b"Adobe"),
        APP1..=APP15 | COMMENT => false,
        _ => true,
    }
}

/// Returns the length of the entropy-coded data up to the next marker that is not a restart.
fn scan_length(data: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += data.get(at..)?.iter().position(|byte| *byte == 0xFF)?;
        match data.get(at + 1)? {
            0x00 | 0xD0..=0xD7 => at += 2,
            0xFF => at += 1,
            _ => return Some(at),
        }
    }
}
