//! Rendering pages as images.

use hayro::hayro_interpret::InterpreterSettings;
use hayro::vello_cpu::Pixmap;
use hayro::vello_cpu::color::palette::css::{TRANSPARENT, WHITE};
use hayro::vello_cpu::color::{AlphaColor, Srgb};
use hayro::vello_cpu::peniko::ImageAlphaType;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use hayro_syntax::page::Page;

use crate::error::{Result, other, over_limit};
use crate::geometry::DisplayedBox;
use crate::palette::{self, Colour};
use crate::source;
use crate::{Area, PageImage};

/// Width limit in pixels; signing forms never show more.
const MAX_WIDTH: u32 = 2_400;

/// Pixel limit. A page shaped like a till roll is rendered narrower, as browsers do not open huge
/// images.
const MAX_PIXELS: f32 = 12_000_000.0;

/// Height limit in pixels, for the same reason.
const MAX_HEIGHT: f32 = 16_000.0;

/// Surroundings of a place in an excerpt, across and down, as parts of the page: some lines, and the words that name the
/// value.
const SURROUNDINGS: (f64, f64) = (0.25, 0.06);

/// Width and colour of the frame around the place of an excerpt.
const FRAME: usize = 3;
const FRAME_COLOUR: Colour = [0xc6, 0x28, 0x28];

/// Limit on the bytes of drawing instructions on one page.
const MAX_CONTENT_BYTES: usize = 48 * 1024 * 1024;

/// Renders a page (1-based) as displayed, on white, as a PNG `width` pixels wide. A page of few
/// colours has a palette.
///
/// Widths over 2,400 pixels give a narrower image, and so do very long pages, which would exceed 12
/// megapixels; the result contains the actual size. Annotations and form fields are drawn with the
/// appearances in the document.
///
/// # Errors
///
/// `encrypted` when the document needs a password, `unreadable` for bytes that are not a PDF,
/// `over-limit` for a page with too many drawing instructions, `other` for a page that does not
/// exist or a width of zero.
pub fn page_image(pdf: &[u8], page: u32, width: u32) -> Result<PageImage> {
    let Drawn {
        width,
        height,
        pixels,
        ..
    } = draw_page(pdf, page, width)?;

    Ok(PageImage {
        width,
        height,
        png: encode(width, height, &pixels)?,
    })
}

/// Renders the surroundings of a place as displayed, with a frame around the place. `width` is that of the whole page.
///
/// # Errors
///
/// Those of [`page_image`], and `other` for a place that is no rectangle on the page.
pub fn excerpt(pdf: &[u8], place: &Area, width: u32) -> Result<PageImage> {
    let numbers = [place.x, place.y, place.w, place.h];
    let is_on_page = numbers.iter().all(|number| (0.0..=1.0).contains(number));
    if !is_on_page || place.w == 0.0 || place.h == 0.0 {
        return Err(other("the place is no rectangle on the page"));
    }

    let mut drawn = draw_page(pdf, place.page, width)?;
    let framed = PixelBox::of(&drawn, place, (0.0, 0.0));
    frame(&mut drawn, &framed);
    let shown = PixelBox::of(&drawn, place, SURROUNDINGS);
    let across = drawn.width as usize;
    let rows = (shown.top..shown.bottom).map(|row| row * across);
    let rows = rows.flat_map(|start| &drawn.pixels[start + shown.left..start + shown.right]);
    let pixels: Vec<Colour> = rows.copied().collect();

    let (width, height) = (shown.right - shown.left, shown.bottom - shown.top);
    let (width, height) = (width as u32, height as u32);
    Ok(PageImage {
        width,
        height,
        png: encode(width, height, &pixels)?,
    })
}

/// Part of a drawn page, in pixels. The right and the lower edge are outside.
struct PixelBox {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

impl PixelBox {
    /// Returns a place with its surroundings, as parts of the page.
    fn of(drawn: &Drawn, place: &Area, (across, down): (f64, f64)) -> Self {
        let at = |part: f64, size: u32| (part.clamp(0.0, 1.0) * f64::from(size)) as usize;
        let (width, height) = (drawn.width, drawn.height);
        // At least one pixel, also of a place at the edge.
        let left = at(place.x - across, width).min(width as usize - 1);
        let top = at(place.y - down, height).min(height as usize - 1);
        Self {
            left,
            top,
            right: at(place.x + place.w + across, width).max(left + 1),
            bottom: at(place.y + place.h + down, height).max(top + 1),
        }
    }
}

/// Draws a frame around a part of the page, so that it covers nothing of it.
fn frame(drawn: &mut Drawn, part: &PixelBox) {
    let (width, height) = (drawn.width as usize, drawn.height as usize);
    let inside = |x: usize, y: usize| {
        (part.left..part.right).contains(&x) && (part.top..part.bottom).contains(&y)
    };
    for y in part.top.saturating_sub(FRAME)..(part.bottom + FRAME).min(height) {
        for x in part.left.saturating_sub(FRAME)..(part.right + FRAME).min(width) {
            if !inside(x, y) {
                drawn.pixels[y * width + x] = FRAME_COLOUR;
            }
        }
    }
}

fn draw_page(pdf: &[u8], page: u32, width: u32) -> Result<Drawn> {
    if width == 0 {
        return Err(other("an image is at least one pixel wide"));
    }

    let document = source::parse(pdf)?;
    let pages = document.parsed().pages();
    let found = usize::try_from(page)
        .ok()
        .and_then(|number| pages.get(number.checked_sub(1)?));
    let Some(found) = found else {
        return Err(other(format!("page {page} of {}", pages.len())));
    };
    // A short file can expand to millions of drawing instructions, and each takes time of the sandbox.
    if found
        .page_stream()
        .is_some_and(|content| content.len() > MAX_CONTENT_BYTES)
    {
        return Err(over_limit(format!(
            "{MAX_CONTENT_BYTES} bytes of content on a page"
        )));
    }

    draw(found, &RenderCache::new(), width)
}

/// A drawn page.
pub(crate) struct Drawn {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Row by row.
    pub(crate) pixels: Vec<Colour>,
    /// Pixels of a point, across and down.
    scale: (f32, f32),
}

impl Drawn {
    /// Returns whether a pixel lies in a place, or right beside it.
    pub(crate) fn has_inside(&self, place: DisplayedBox, at: usize) -> bool {
        let width = self.width as usize;
        let (x, y) = ((at % width) as f32, (at / width) as f32);
        let (left, top) = (place.x * self.scale.0, place.y * self.scale.1);
        let right = left + place.width * self.scale.0;
        let bottom = top + place.height * self.scale.1;
        x >= left - 2.0 && x <= right + 1.0 && y >= top - 2.0 && y <= bottom + 1.0
    }
}

/// Draws a page to compare it with another: small, because only whether something shows matters.
pub(crate) fn draw_small<'a>(page: &'a Page<'a>, cache: &RenderCache<'a>) -> Result<Drawn> {
    /// Half a pixel for each point of a letter page.
    const SMALL: u32 = 306;
    draw(page, cache, SMALL)
}

fn draw<'a>(page: &'a Page<'a>, cache: &RenderCache<'a>, width: u32) -> Result<Drawn> {
    let scale = scale(page, width)?;
    let pixmap = pixmap(page, cache, scale, WHITE);
    let pixels = pixmap.data().iter();
    Ok(Drawn {
        width: u32::from(pixmap.width()),
        height: u32::from(pixmap.height()),
        pixels: pixels.map(|pixel| [pixel.r, pixel.g, pixel.b]).collect(),
        scale,
    })
}

fn pixmap<'a>(
    page: &'a Page<'a>,
    cache: &RenderCache<'a>,
    scale: (f32, f32),
    ground: AlphaColor<Srgb>,
) -> Pixmap {
    render(
        page,
        cache,
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &PixmapSettings {
            x_scale: scale.0,
            y_scale: scale.1,
            bg_color: ground,
        },
    )
}

/// Draws the only page of a document that this component made, on a transparent ground.
pub(crate) fn transparent(pdf: &[u8], width: u32) -> Result<PageImage> {
    let document = source::parse(pdf)?;
    let page = document.parsed().pages().first();
    let page = page.ok_or_else(|| other("no page to draw"))?;
    // The signing page lays the picture over its own page, so the ground must not cover it.
    let pixmap = pixmap(page, &RenderCache::new(), scale(page, width)?, TRANSPARENT);
    let (width, height) = (u32::from(pixmap.width()), u32::from(pixmap.height()));

    // A PNG has its colours apart from the opacity.
    let pixels = pixmap.take_rgba8(ImageAlphaType::Alpha);
    let mut png = Vec::with_capacity(pixels.len() / 8);
    let mut encoder = png::Encoder::new(&mut png, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().map_err(broken)?;
    writer.write_image_data(&pixels).map_err(broken)?;

    writer.finish().map_err(broken)?;
    Ok(PageImage { width, height, png })
}

/// Returns the horizontal and vertical scale. They differ by less than a pixel, so the image
/// has exactly the requested width and loses no row to rounding.
fn scale(page: &Page<'_>, width: u32) -> Result<(f32, f32)> {
    let (page_width, page_height) = page.render_dimensions();
    let sound = page_width.is_finite() && page_height.is_finite();
    if !sound || page_width <= 0.0 || page_height <= 0.0 {
        return Err(other("the page has no usable size"));
    }

    let aspect = page_height / page_width;
    let widest = (MAX_PIXELS / aspect)
        .sqrt()
        .min(MAX_HEIGHT / aspect)
        .min(MAX_WIDTH as f32);
    let width = (width as f32).min(widest).floor().max(1.0);
    let height = (width * aspect).round().clamp(1.0, MAX_HEIGHT);

    // The renderer rounds down, and floating point may land just below the intended number.
    Ok(((width + 0.01) / page_width, (height + 0.01) / page_height))
}

fn encode(width: u32, height: u32, pixels: &[Colour]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(pixels.len() / 8);
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    let Some(picture) = palette::indexed(pixels) else {
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header().map_err(broken)?;
        let data = pixels.as_flattened();
        writer.write_image_data(data).map_err(broken)?;
        writer.finish().map_err(broken)?;
        return Ok(bytes);
    };

    encoder.set_color(png::ColorType::Indexed);
    encoder.set_compression(png::Compression::Balanced);

    // Neighbouring indexes are not neighbouring colours, so filters only cost bytes.
    encoder.set_filter(png::Filter::NoFilter);
    // Black text on white needs about a dozen of shades, and four bits hold sixteen.
    let halves = picture.palette.len() <= 16;
    encoder.set_depth(if halves {
        png::BitDepth::Four
    } else {
        png::BitDepth::Eight
    });

    encoder.set_palette(picture.palette.as_flattened());
    let mut writer = encoder.write_header().map_err(broken)?;
    let data = if halves {
        packed(&picture.pixels, width as usize)
    } else {
        picture.pixels
    };
    writer.write_image_data(&data).map_err(broken)?;

    writer.finish().map_err(broken)?;
    Ok(bytes)
}

/// Packs two indexes into a byte; each row begins with a byte of its own.
fn packed(indexes: &[u8], width: usize) -> Vec<u8> {
    indexes
        .chunks(width)
        .flat_map(|row| row.chunks(2))
        .map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or_default())
        .collect()
}

fn broken(error: png::EncodingError) -> crate::DocumentError {
    other(format!("the image could not be written: {error}"))
}
