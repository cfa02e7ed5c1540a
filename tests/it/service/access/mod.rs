//! Access: tokens and rate limits.

mod administration;
mod ends;
mod rate_limits;
mod tokens;
