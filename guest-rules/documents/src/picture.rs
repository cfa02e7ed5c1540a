//! Pictures: checked before they are decoded, stripped of metadata, shown upright.

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

/// A phone takes 12 to 50 megapixels; past that, a picture is a bomb or a poster.
const MAX_PIXELS: u64 = 50_000_000;

/// Bytes a picture may decode to; only PNGs are decoded at all.
const MAX_DECODED_BYTES: u64 = 160 * 1024 * 1024;

/// US Letter, the paper of the contracts this serves.
const LETTER: (f32, f32) = (612.0, 792.0);

/// Dots per inch assumed of a picture that does not fill a page.
const DOTS_PER_INCH: f32 = 150.0;

/// How a stored picture must be turned to stand upright (EXIF orientation, 1 to 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orientation(u16);

impl Orientation {
    const UPRIGHT: Self = Self(1);

    fn swaps_sides(self) -> bool {
        self.0 >= 5
    }

    /// From the unit square of the stored picture to that of the upright one, y down.
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

/// What a picture's header says, before a pixel is looked at.
struct Header {
    width: u32,
    height: u32,
    bytes_per_pixel: u64,
    orientation: Orientation,
}

/// A picture that may be drawn.
pub(crate) struct Drawable {
    image: Image,
    orientation: Orientation,
    /// Upright size in pixels.
    pub(crate) width: f32,
    pub(crate) height: f32,
}

impl Drawable {
    /// Reads a picture. JPEG data stays as it is, without its metadata segments and without
    /// whatever follows its end; PNGs are decoded and keep pixels only.
    pub(crate) fn read(picture: &Picture) -> Result<Self> {
        let (header, pixels) = match picture.format {
            PictureFormat::Png => (png::header(&picture.bytes)?, picture.bytes.clone()),
            PictureFormat::Jpeg => jpeg::strip(&picture.bytes)?,
        };
        if header.width == 0 || header.height == 0 {
            return Err(other("the picture has no pixels"));
        }
        let count = u64::from(header.width) * u64::from(header.height);
        if count > MAX_PIXELS {
            return Err(over_limit(format!(
                "a picture of {} x {} pixels; {MAX_PIXELS} in all are accepted",
                header.width, header.height
            )));
        }
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

    /// Draws the picture upright in the middle of a box, as large as its proportions allow.
    pub(crate) fn draw(&self, surface: &mut Surface<'_>, space: DisplayedBox) -> Result<()> {
        let scale = (space.width / self.width).min(space.height / self.height);
        let (width, height) = (self.width * scale, self.height * scale);
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

/// A one-page document that shows the picture upright.
///
/// The page is as large as the picture at 150 dots per inch, at most US Letter in the
/// picture's own orientation. EXIF orientation is applied; other metadata (place, device,
/// time, thumbnails) does not reach the output, and nothing is resampled.
///
/// # Errors
///
/// `over-limit` for more than 50 megapixels, told from the header before anything is decoded;
/// `other` for bytes that are no picture of the declared format.
pub fn picture_to_pdf(picture: &Picture) -> Result<Vec<u8>> {
    let picture = Drawable::read(picture)?;
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

/// Points. Never under an inch on the longer side nor under 3 points on the shorter one:
/// some viewers refuse smaller pages.
fn page_size(width: f32, height: f32) -> (f32, f32) {
    let (most_wide, most_high) = if width > height {
        (LETTER.1, LETTER.0)
    } else {
        LETTER
    };
    let natural = 72.0 / DOTS_PER_INCH;
    let fitting = (most_wide / width).min(most_high / height);
    let visible = 72.0 / width.max(height);
    let scale = natural.max(visible).min(fitting);
    ((width * scale).max(3.0), (height * scale).max(3.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_fit_on_letter_in_the_orientation_of_the_picture() {
        assert_eq!(page_size(3000.0, 4000.0), (594.0, 792.0));
        assert_eq!(page_size(4000.0, 3000.0), (792.0, 594.0));
        assert_eq!(page_size(300.0, 150.0), (144.0, 72.0));
        assert_eq!(page_size(1.0, 1.0), (72.0, 72.0));
        let (width, height) = page_size(1.0, 40_000.0);
        assert!((width, height) == (3.0, 792.0));
    }
}
