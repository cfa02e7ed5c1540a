//! Who may ask, and how often.

mod rate_limits;
mod tokens;
