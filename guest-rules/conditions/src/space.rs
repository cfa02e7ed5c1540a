//! The space inside the component's bytes for rules or tables that are written after it was built: a mark, the
//! length, and the content.

use std::hint::black_box;

const SIZE: usize = 48 * 1024;
const MARK: &[u8; 24] = b"holdfast: declared rules";
/// Length of the rules, in bytes, after the mark.
const LENGTH: usize = 8;

/// Length of a space without rules.
const EMPTY: [u8; LENGTH] = [b'.'; LENGTH];

/// Filled with a letter, because linkers leave zeros out.
static SPACE: [u8; SIZE] = {
    let mut space = [b'.'; SIZE];
    let mut at = 0;
    while at < MARK.len() {
        space[at] = MARK[at];
        at += 1;
    }
    space
};

/// Returns the content of this component; none if nothing was written. A length that cannot be read ends the
/// call: without the content, other rules would answer.
pub(crate) fn content() -> Option<&'static [u8]> {
    // The compiler must not know the content, which changes after it.
    let space: &'static [u8; SIZE] = black_box(&SPACE);
    let length = &space[MARK.len()..MARK.len() + LENGTH];
    if *length == EMPTY {
        return None;
    }

    let length = std::str::from_utf8(length).ok();
    let length = length.and_then(|length| length.parse::<usize>().ok());
    match length.and_then(|length| space[MARK.len() + LENGTH..].get(..length)) {
        Some(content) => Some(content),
        None => panic!("the content of this component cannot be read"),
    }
}

/// Writes content into a component.
///
/// # Errors
/// The content is too large, or the component has no space for it.
pub fn write(component: &mut [u8], content: &[u8]) -> Result<(), String> {
    let most = SIZE - MARK.len() - LENGTH;
    if content.len() > most {
        return Err(format!(
            "the content has {} bytes, and {most} fit",
            content.len()
        ));
    }

    // The mark with the letter that fills the space: elsewhere, the mark alone may be.
    let marked: Vec<u8> = MARK.iter().copied().chain(EMPTY).collect();
    let at = component
        .windows(marked.len())
        .position(|window| window == marked)
        .ok_or("the component has no space for content")?;
    let space = &mut component[at + MARK.len()..at + SIZE];
    space[..LENGTH].copy_from_slice(format!("{:08}", content.len()).as_bytes());

    space[LENGTH..LENGTH + content.len()].copy_from_slice(content);
    Ok(())
}
