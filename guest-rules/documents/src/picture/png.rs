//! PNG headers.

use super::{ImageHeader, ImageOrientation, exif};
use crate::error::{Result, other};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Reads size, depth and orientation without inflating anything.
pub(super) fn header(png: &[u8]) -> Result<ImageHeader> {
    let wrong = || other("the picture is no PNG");
    let mut rest = png.strip_prefix(SIGNATURE).ok_or_else(wrong)?;
    let mut header = None;

    let mut orientation = ImageOrientation::UPRIGHT;
    while let Some((length, kind)) = rest
        .split_at_checked(8)
        .and_then(|(start, _)| start.split_first_chunk::<4>())
    {
        let length = u32::from_be_bytes(*length) as usize;
        // A file that is cut short may still have its header. The decoder refuses the rest of it.
        let Some(body) = rest.get(8..8usize.saturating_add(length)) else {
            break;
        };

        match kind {
            b"IHDR" => header = Some(dimensions(body).ok_or_else(wrong)?),
            b"eXIf" => orientation = exif::orientation(body),
            b"IEND" => break,
            _ => {}
        }

        rest = rest.get(length.saturating_add(12)..).unwrap_or_default();
    }

    let (width, height, bytes_per_pixel) = header.ok_or_else(wrong)?;
    Ok(ImageHeader {
        width,
        height,
        bytes_per_pixel,
        orientation,
    })
}

fn dimensions(ihdr: &[u8]) -> Option<(u32, u32, u64)> {
    let width = u32::from_be_bytes(ihdr.get(..4)?.try_into().ok()?);
    let height = u32::from_be_bytes(ihdr.get(4..8)?.try_into().ok()?);
    let bytes_per_sample = if *ihdr.get(8)? == 16 { 2 } else { 1 };
    let samples = match *ihdr.get(9)? {
        0 => 2,
        // A palette is expanded, with its transparency.
        2 | 3 | 6 => 4,
        4 => 2,
        _ => return None,
    };

    Some((width, height, samples * bytes_per_sample))
}
