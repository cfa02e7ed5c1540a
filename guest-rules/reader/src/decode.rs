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

/// Returns whether the Flate data of a stream reach their end; true for other filters. Stops at the limit of
/// what a page may have, which [`decode`] refuses.
pub(crate) fn is_whole(stream: &Stream<'_>) -> bool {
    if stream.filters().first() != Some(&Filter::FlateDecode) {
        return true;
    }
    let data = stream.raw_data();
    let mut inflater = Decompress::new(true);
    let mut room = vec![0; 64 * 1024];
    loop {
        let (read, written) = (inflater.total_in(), inflater.total_out());
        let rest = usize::try_from(read).ok().and_then(|read| data.get(read..));
        let status =
            inflater.decompress(rest.unwrap_or_default(), &mut room, FlushDecompress::None);
        match status {
            Ok(Status::StreamEnd) => return true,
            Ok(_) if inflater.total_in() > read || inflater.total_out() > written => {}
            Ok(_) | Err(_) => return false,
        }
        if inflater.total_out() > MAX_PAGE_CONTENT_BYTES as u64 {
            return true;
        }
    }
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
