//! Access: tokens and rate limits.

mod rate_limits;
mod tokens;
