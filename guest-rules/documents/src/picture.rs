//! Pictures: checked before decoding, stripped of metadata, shown upright.

mod exif;
mod jpeg;
mod png;

use krilla::SerializeSettings;
use krilla::geom::{Size, Transform};
use krilla::image::Image;
use krilla::page::PageSettings;
use krilla::surface::Surface;

use crate::error::{Result, other, over_limit};
use crate::geometry::DisplayedBox;
use crate::{Picture, PictureFormat};

/// Pixel limit. Phones take pictures of 12 to 50 megapixels; larger files are decompression bombs
/// or posters.
const MAX_PIXELS: u64 = 50_000_000;

/// Limit on decoded bytes; only PNGs are decoded at all.
const MAX_DECODED_BYTES: u64 = 160 * 1024 * 1024;

/// US Letter in points, the paper size of the contracts.
const LETTER: (f32, f32) = (612.0, 792.0);

/// Resolution assumed for a picture that does not fill a page, in dots per inch.
const DOTS_PER_INCH: f32 = 150.0;

/// EXIF orientation (1 to 8): how a stored picture must be turned to be upright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageOrientation(u16);

impl ImageOrientation {
    const UPRIGHT: Self = Self(1);

    fn swaps_sides(self) -> bool {
        self.0 >= 5
    }

    /// Returns the map from the unit square of the stored picture to that of the upright one, y
    /// down.
    fn unit_transform(self) -> Transform {
        let [a, b, c, d, e, f] = match self.0 {
            2 => [-1.0, 0.0, 0.0, 1.0, 1.0, 0.0],
            3 => [-1.0, 0.0, 0.0, -1.0, 1.0, 1.0],
            4 => [1.0, 0.0, 0.0, -1.0, 0.0, 1.0],
            5 => [0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
            6 => [0.0, 1.0, -1.0, 0.0, 1.0, 0.0],
            7 => [0.0, -1.0, -1.0, 0.0, 1.0, 1.0],
            8 => [0.0, -1.0, 1.0, 0.0, 0.0, 1.0],
            _ => [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        };

        Transform::from_row(a, b, c, d, e, f)
    }
}

/// Facts from a picture's header, known before any pixel is decoded.
struct ImageHeader {
    width: u32,
    height: u32,
    bytes_per_pixel: u64,
    orientation: ImageOrientation,
}

/// A validated picture, ready to be drawn.
pub(crate) struct DrawableImage {
    image: Image,
    orientation: ImageOrientation,
    /// Upright size in pixels.
    pub(crate) width: f32,
    pub(crate) height: f32,
}

impl DrawableImage {
    /// Reads a picture. JPEG data is kept without its metadata segments and without bytes after its
    /// end; PNGs are decoded and keep only their pixels.
    pub(crate) fn read(picture: &Picture) -> Result<Self> {
        let (header, pixels) = match picture.format {
            PictureFormat::Png => (png::header(&picture.bytes)?, picture.bytes.clone()),
            PictureFormat::Jpeg => jpeg::strip(&picture.bytes)?,
        };
        if header.width == 0 || header.height == 0 {
            return Err(other("the picture has no pixels"));
        }

        // The header alone decides: a file of some kilobytes can promise gigabytes of pixels.
        let count = u64::from(header.width) * u64::from(header.height);
        if count > MAX_PIXELS {
            return Err(over_limit(format!(
                "a picture of {} x {} pixels; {MAX_PIXELS} in all are accepted",
                header.width, header.height
            )));
        }

        // A JPEG goes into the document as it is, so only a PNG is decoded here.
        let image = match picture.format {
            PictureFormat::Png => {
                if count * header.bytes_per_pixel > MAX_DECODED_BYTES {
                    return Err(over_limit(format!(
                        "a picture of {MAX_DECODED_BYTES} bytes"
                    )));
                }
                Image::from_png(pixels.into(), true)
            }
            PictureFormat::Jpeg => Image::from_jpeg(pixels.into(), true),
        };

        let image =
            image.map_err(|reason| other(format!("the picture cannot be read: {reason}")))?;
        let (mut width, mut height) = (header.width as f32, header.height as f32);
        if header.orientation.swaps_sides() {
            std::mem::swap(&mut width, &mut height);
        }

        Ok(Self {
            image,
            orientation: header.orientation,
            width,
            height,
        })
    }

    /// Draws the picture upright in the centre of a box, as large as its proportions allow.
    pub(crate) fn draw(&self, surface: &mut Surface<'_>, space: DisplayedBox) -> Result<()> {
        let scale = (space.width / self.width).min(space.height / self.height);
        let (width, height) = (self.width * scale, self.height * scale);
        // The orientation turns a unit square, so one matrix serves pictures of every size.
        let unit = Size::from_wh(1.0, 1.0);
        let (Some(unit), true) = (unit, width > 0.0 && height > 0.0) else {
            return Err(other("a picture has no room to be drawn in"));
        };

        surface.push_transform(&Transform::from_row(
            width,
            0.0,
            0.0,
            height,
            space.x + (space.width - width) / 2.0,
            space.y + (space.height - height) / 2.0,
        ));

        surface.push_transform(&self.orientation.unit_transform());
        surface.draw_image(self.image.clone(), unit);
        surface.pop();
        surface.pop();

        Ok(())
    }
}

/// Makes a one-page document that shows the picture upright.
///
/// The page has the picture's size at 150 dots per inch, at most US Letter in the picture's
/// orientation. EXIF orientation is applied; other metadata (place, device, time, thumbnails) does
/// not reach the output, and nothing is resampled.
///
/// # Errors
///
/// `over-limit` for more than 50 megapixels, read from the header before decoding; `other` for
/// bytes that are not a picture of the declared format.
pub fn picture_to_pdf(picture: &Picture) -> Result<Vec<u8>> {
    let picture = DrawableImage::read(picture)?;
    let (width, height) = page_size(picture.width, picture.height);
    let settings = PageSettings::from_wh(width, height)
        .ok_or_else(|| over_limit(format!("a page of {width} x {height} points")))?;
    let mut document = krilla::Document::new_with(SerializeSettings {
        xmp_metadata: false,
        enable_tagging: false,
        ..SerializeSettings::default()
    });
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    let drawn = picture.draw(
        &mut surface,
        DisplayedBox {
            x: 0.0,
            y: 0.0,
            width,
            height,
        },
    );

    surface.finish();
    page.finish();
    drawn?;

    crate::overlay::finish(document)
}

/// Returns the page size in points. The longer side has at least an inch and the shorter one at
/// least 3 points, as some viewers refuse smaller pages.
fn page_size(width: f32, height: f32) -> (f32, f32) {
    let (most_wide, most_high) = if width > height {
        (LETTER.1, LETTER.0)
    } else {
        LETTER
    };
    let natural = 72.0 / DOTS_PER_INCH;
    let fitting = (most_wide / width).min(most_high / height);

    let visible = 72.0 / width.max(height);
    // The paper has the last word: a picture never becomes larger than it.
    let scale = natural.max(visible).min(fitting);
    ((width * scale).max(3.0), (height * scale).max(3.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_pages_fit_on_letter_in_the_orientation_of_the_image() {
        assert_eq!(page_size(3000.0, 4000.0), (594.0, 792.0));
        assert_eq!(page_size(4000.0, 3000.0), (792.0, 594.0));
        assert_eq!(page_size(300.0, 150.0), (144.0, 72.0));
        assert_eq!(page_size(1.0, 1.0), (72.0, 72.0));
        let (width, height) = page_size(1.0, 40_000.0);
        assert!((width, height) == (3.0, 792.0));
    }
}
