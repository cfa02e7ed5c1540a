//! Access: tokens and rate limits.

mod administration;
mod rate_limits;
mod tokens;
