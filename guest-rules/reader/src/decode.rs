//! Decoding streams with a limit on the decoded size.

use std::io::Read;

use flate2::read::ZlibDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use hayro_syntax::Filter;
use hayro_syntax::object::Stream;

use crate::error::ReadError;
use crate::limits::{MAX_PAGE_CONTENT_BYTES, ReadLimit};

/// Maximum expansion of Deflate; streams that stay below the ceiling at this ratio need no check.
const MAX_DEFLATE_RATIO: usize = 1_032;

/// Returns the decoded bytes of a stream, or `None` if a filter fails.
///
/// Flate streams that could exceed `ceiling_bytes` are first inflated up to that size, because the
/// decoder has no limit. Other filters are bounded by the sandbox only.
pub(crate) fn decode(
    stream: &Stream<'_>,
    ceiling_bytes: usize,
) -> Result<Option<Vec<u8>>, ReadError> {
    let mut encoded = stream.raw_data();
    for filter in stream.filters() {
        if filter != Filter::FlateDecode {
            break;
        }
        if encoded.len().saturating_mul(MAX_DEFLATE_RATIO) <= ceiling_bytes {
            break;
        }

        // Each layer of a nested bomb is inflated only up to the ceiling.
        encoded = inflate_up_to(&encoded, ceiling_bytes)?.into();
    }

    let Ok(decoded) = stream.decoded_data() else {
        return Ok(None);
    };
    if decoded.len() > ceiling_bytes {
        return Err(ReadError::OverLimit(ReadLimit::PageContent));
    }

    Ok(Some(decoded.into_owned()))
}

/// State of compressed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlateState {
    /// They reach their end. The checksum does not matter.
    Whole,
    /// They end early; readers show the part that exists.
    Cut,
    /// They cannot be decoded; readers show different parts of them.
    Damaged,
}

impl FlateState {
    /// Examines Flate data (RFC 1950) of `filters` layers, up to a limit of decoded bytes.
    #[must_use]
    pub fn of(data: &[u8], filters: usize) -> Self {
        let mut data = std::borrow::Cow::Borrowed(data);
        let mut state = Self::Whole;
        for _ in 0..filters {
            let (found, decoded) = inflated(&data);
            if found == Self::Damaged {
                return found;
            }

            if found == Self::Cut {
                state = found;
            }

            data = decoded.into();
        }

        state
    }
}

/// Inflates data without looking at their checksum, and returns their state and the first bytes.
fn inflated(data: &[u8]) -> (FlateState, Vec<u8>) {
    let mut decoded = Vec::new();
    let [method, flags, data @ ..] = data else {
        return (FlateState::Cut, decoded);
    };

    // RFC 1950, 2.2: Deflate, and a check of the two bytes.
    let is_header = method & 15 == 8 && (u32::from(*method) * 256 + u32::from(*flags)) % 31 == 0;
    if !is_header {
        return (FlateState::Damaged, decoded);
    }

    let mut inflater = Decompress::new(false);
    let mut room = vec![0; 64 * 1024];
    loop {
        let (read, written) = (inflater.total_in(), inflater.total_out());
        let rest = usize::try_from(read).ok().and_then(|read| data.get(read..));
        let status =
            inflater.decompress(rest.unwrap_or_default(), &mut room, FlushDecompress::None);
        let made = usize::try_from(inflater.total_out() - written).unwrap_or_default();
        decoded.extend_from_slice(room.get(..made).unwrap_or_default());

        match status {
            Ok(Status::StreamEnd) => return (FlateState::Whole, decoded),
            Ok(_) if inflater.total_in() > read || made > 0 => {}
            Ok(_) => return (FlateState::Cut, decoded),
            Err(_) => return (FlateState::Damaged, decoded),
        }

        // Limit of a page; `decode` refuses more.
        if decoded.len() > MAX_PAGE_CONTENT_BYTES {
            return (FlateState::Whole, decoded);
        }
    }
}

/// Returns the state of a stream's Flate data; of other filters nothing is known.
pub(crate) fn flate_state(stream: &Stream<'_>) -> FlateState {
    let filters = stream.filters();
    let flate = filters.iter();
    let layers = flate.take_while(|filter| **filter == Filter::FlateDecode);
    FlateState::of(&stream.raw_data(), layers.count())
}

/// Inflates data up to a limit. Damaged data yields the bytes before the damage, as in the real
/// decoder.
fn inflate_up_to(data: &[u8], ceiling_bytes: usize) -> Result<Vec<u8>, ReadError> {
    let mut decoder = ZlibDecoder::new(data);
    let mut decoded = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(read) = decoder.read(&mut chunk) {
        if read == 0 {
            break;
        }

        decoded.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if decoded.len() > ceiling_bytes {
            return Err(ReadError::OverLimit(ReadLimit::PageContent));
        }
    }

    Ok(decoded)
}
