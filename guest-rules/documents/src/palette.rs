//! Pictures of few colours. Most pages are black text on white. Its anti-aliasing needs only a
//! dozen shades, and such a picture has a quarter of the bytes.

use std::collections::HashMap;

/// Largest difference in one channel between a colour and the one that stands for it. It is not
/// visible in the edges of letters.
const SPACING: u8 = 16;

/// A colour on at least this part of the picture, such as the background of a table, stays exact.
const EXACT_FROM: usize = 400;

/// Number of colours from which a picture is a photograph.
const MAX_COLOURS: usize = 16_384;

/// Entries of a palette, by the format.
const MAX_ENTRIES: usize = 256;

/// A colour: red, green and blue.
pub(crate) type Colour = [u8; 3];

/// A picture of indexes into a palette.
pub(crate) struct IndexedPicture {
    pub(crate) palette: Vec<Colour>,
    /// One byte a pixel.
    pub(crate) pixels: Vec<u8>,
}

/// Reduces a picture to at most 256 colours; none for a photograph.
pub(crate) fn indexed(pixels: &[Colour]) -> Option<IndexedPicture> {
    let mut counted: Vec<(Colour, usize)> = count(pixels)?.into_iter().collect();
    // The colour breaks a tie, so equal input gives equal bytes.
    counted.sort_unstable_by_key(|(colour, count)| (std::cmp::Reverse(*count), *colour));

    let mut palette: Vec<Colour> = Vec::new();
    for (colour, count) in &counted {
        let exact = count * EXACT_FROM >= pixels.len();
        if exact
            || palette
                .iter()
                .all(|entry| distance(entry, colour) > SPACING)
        {
            if palette.len() == MAX_ENTRIES {
                return None;
            }
            palette.push(*colour);
        }
    }

    let indexes: HashMap<Colour, u8> = counted
        .iter()
        .map(|(colour, _)| (*colour, nearest(&palette, colour)))
        .collect();
    let mut written = Vec::with_capacity(pixels.len());

    // Most pixels equal their neighbour, which spares a look into the map.
    let mut last = (pixels.first().copied()?, nearest(&palette, pixels.first()?));
    for pixel in pixels {
        if *pixel != last.0 {
            last = (*pixel, indexes.get(pixel).copied().unwrap_or_default());
        }
        written.push(last.1);
    }

    Some(IndexedPicture {
        palette,
        pixels: written,
    })
}

/// Counts the pixels of each colour, by runs; none if there are too many colours.
fn count(pixels: &[Colour]) -> Option<HashMap<Colour, usize>> {
    let mut counted = HashMap::new();
    for run in pixels.chunk_by(|left, right| left == right) {
        *counted.entry(*run.first()?).or_default() += run.len();
        if counted.len() > MAX_COLOURS {
            return None;
        }
    }
    Some(counted)
}

fn distance(left: &Colour, right: &Colour) -> u8 {
    let channels = left.iter().zip(right);
    channels
        .map(|(left, right)| left.abs_diff(*right))
        .max()
        .unwrap_or_default()
}

fn nearest(palette: &[Colour], colour: &Colour) -> u8 {
    let best = (0u8..=255)
        .zip(palette)
        .min_by_key(|(_, entry)| distance(entry, colour));
    best.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_merged_and_large_areas_stay_exact() {
        let mut pixels = vec![[255; 3]; 10_000];
        pixels.extend(vec![[245; 3]; 5_000]);
        pixels.extend((0..=255).map(|shade| [shade; 3]));
        let picture = indexed(&pixels).unwrap();
        assert!(picture.palette.len() <= 18, "{}", picture.palette.len());
        assert_eq!(picture.palette[0], [255; 3]);
        assert_eq!(picture.palette[1], [245; 3]);

        for (pixel, index) in pixels.iter().zip(&picture.pixels) {
            let entry = picture.palette[usize::from(*index)];
            assert!(distance(&entry, pixel) <= SPACING);
        }
    }

    #[test]
    fn a_photograph_keeps_its_colours() {
        let colours = |red: u8| (0..=255).map(move |green| [red, green, red ^ green]);
        let pixels: Vec<Colour> = (0..=255).flat_map(colours).collect();
        assert!(indexed(&pixels).is_none());
    }

    #[test]
    fn no_pixels_make_no_picture() {
        assert!(indexed(&[]).is_none());
    }
}
