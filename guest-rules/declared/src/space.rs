//! The space for rules inside the component's bytes: a mark, the length, and the rules as JSON.

use std::hint::black_box;

use crate::rules::DeclaredRules;

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

/// Returns the rules of this component; none if nothing was written. Rules that cannot be read end the call:
/// without them, the pack alone would answer.
pub(crate) fn rules() -> DeclaredRules {
    // The compiler must not know the content, which changes after it.
    let space: &[u8; SIZE] = black_box(&SPACE);
    let length = &space[MARK.len()..MARK.len() + LENGTH];
    if *length == EMPTY {
        return DeclaredRules::default();
    }
    let length = std::str::from_utf8(length).ok();
    let length = length.and_then(|length| length.parse::<usize>().ok());
    let rules = length.and_then(|length| space[MARK.len() + LENGTH..].get(..length));
    match rules.and_then(|rules| serde_json::from_slice(rules).ok()) {
        Some(rules) => rules,
        None => panic!("the rules inside this component cannot be read"),
    }
}

/// Writes rules into a component.
///
/// # Errors
/// The rules are too large or nested too deeply, or the component has no space for rules.
pub fn write(component: &mut [u8], rules: &DeclaredRules) -> Result<(), String> {
    let text = serde_json::to_vec(rules).map_err(|error| error.to_string())?;
    // The component reads them with the same limits.
    let read = serde_json::from_slice::<DeclaredRules>(&text);
    if !read.is_ok_and(|read| read == *rules) {
        return Err(
            "an expression is nested too deeply, or has a number that is not finite".into(),
        );
    }
    let most = SIZE - MARK.len() - LENGTH;
    if text.len() > most {
        return Err(format!(
            "the rules have {} bytes, and {most} fit",
            text.len()
        ));
    }
    // The mark with the letter that fills the space: elsewhere, the mark alone may be.
    let marked: Vec<u8> = MARK.iter().copied().chain(EMPTY).collect();
    let at = component
        .windows(marked.len())
        .position(|window| window == marked)
        .ok_or("the component has no space for rules")?;
    let space = &mut component[at + MARK.len()..at + SIZE];
    space[..LENGTH].copy_from_slice(format!("{:08}", text.len()).as_bytes());
    space[LENGTH..LENGTH + text.len()].copy_from_slice(&text);
    Ok(())
}
