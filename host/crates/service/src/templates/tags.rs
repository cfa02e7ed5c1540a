//! Tags: words by which an organization sorts its templates.

use holdfast_platform::{ServiceError, ValidationIssue};

/// Maximum length of a tag, in characters.
const LENGTH: usize = 40;

/// Returns tags without spaces around them and without repetitions.
///
/// # Errors
/// [`ServiceError::Invalid`] with an issue for each tag that is empty, too long, or has a comma or control character.
pub(super) fn checked(tags: &[String]) -> Result<Vec<String>, ServiceError> {
    let mut kept: Vec<String> = Vec::new();
    let mut issues = Vec::new();
    for (index, tag) in tags.iter().enumerate() {
        let tag = tag.trim();
        let length = tag.chars().count();
        // Forms separate tags by commas, and so does the list that a filter searches.
        let is_word = |one: char| one != ',' && !one.is_control();
        if length == 0 || length > LENGTH || !tag.chars().all(is_word) {
            let (index, expected) = (index.to_string(), "1 to 40 characters without a comma");
            let message = "A tag has 1 to 40 characters and no comma";
            let path = ["tags", index.as_str()];
            issues.push(ValidationIssue::new(
                "invalid_string",
                &path,
                expected,
                tag,
                message,
            ));
        } else if !kept.iter().any(|known| known == tag) {
            kept.push(tag.to_owned());
        }
    }

    if issues.is_empty() {
        Ok(kept)
    } else {
        Err(ServiceError::Invalid(issues))
    }
}
