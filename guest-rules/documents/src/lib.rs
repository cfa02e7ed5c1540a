//! Placeholder until the component lands in the next commit.
