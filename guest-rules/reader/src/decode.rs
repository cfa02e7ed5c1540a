//! Decoding streams without letting a small file become a large one.

use std::io::Read;

use flate2::read::ZlibDecoder;
use hayro_syntax::Filter;
use hayro_syntax::object::Stream;

use crate::error::ReadError;
use crate::limits::Limit;

/// Deflate cannot expand by more than this, so most streams need no second look.
const MAX_DEFLATE_RATIO: usize = 1_032;

/// The decoded bytes of a stream, none when its filters fail on it.
///
/// Flate streams that could pass `ceiling_bytes` are inflated up to it first, because
/// the decoder itself knows no limit. Other filters are bounded by the sandbox only.
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
        // Each layer of a nested bomb is opened only as far as the ceiling.
        encoded = inflate_up_to(&encoded, ceiling_bytes)?.into();
    }
    let Ok(decoded) = stream.decoded_data() else {
        return Ok(None);
    };
    if decoded.len() > ceiling_bytes {
        return Err(ReadError::OverLimit(Limit::PageContent));
    }
    Ok(Some(decoded.into_owned()))
}

/// Damaged data yields what came before the damage, as the real decoder does.
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
            return Err(ReadError::OverLimit(Limit::PageContent));
        }
    }
    Ok(decoded)
}
