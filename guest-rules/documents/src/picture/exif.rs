//! The orientation, the only EXIF value that is kept.

use super::ImageOrientation;

const ORIENTATION_TAG: u16 = 0x0112;

/// Reads the orientation from a TIFF block; malformed data means upright.
pub(super) fn orientation(tiff: &[u8]) -> ImageOrientation {
    read(tiff).unwrap_or(ImageOrientation::UPRIGHT)
}

fn read(tiff: &[u8]) -> Option<ImageOrientation> {
    let little_endian = match tiff.get(..4)? {
        [b'I', b'I', 42, 0] => true,
        [b'M', b'M', 0, 42] => false,
        _ => return None,
    };
    let u16_at = |at: usize| -> Option<u16> {
        let bytes: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if little_endian {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };

    let u32_at = |at: usize| -> Option<u32> {
        let bytes: [u8; 4] = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if little_endian {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    };
    // Only the first directory counts. A second one describes the thumbnail.
    let directory = u32_at(4)? as usize;
    let entries = usize::from(u16_at(directory)?);

    (0..entries).find_map(|index| {
        // The offset comes from the file, so no sum of it may wrap around.
        let entry = directory
            .checked_add(2)?
            .checked_add(index.checked_mul(12)?)?;
        if u16_at(entry)? != ORIENTATION_TAG {
            return None;
        }

        let value = u16_at(entry.checked_add(8)?)?;
        (1..=8).contains(&value).then_some(ImageOrientation(value))
    })
}
