//! Folders of templates: paths of names, such as `Sales/Ohio`. A folder exists as long as a template is in it.

use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::templates;

/// Largest number of names in a path.
const LEVELS: usize = 3;
/// Maximum length of a name, in characters.
const LENGTH: usize = 40;

/// Returns a path without spaces around its names; `None` for the empty path, which is the top.
///
/// # Errors
/// [`ServiceError::Invalid`] for more than three names, and for one that is empty, too long, or has a control character.
pub(super) fn checked(path: &str) -> Result<Option<String>, ServiceError> {
    let path = path.trim();
    if path.is_empty() {
        return Ok(None);
    }

    let names: Vec<&str> = path.split('/').map(str::trim).collect();
    let is_name = |name: &&str| {
        (1..=LENGTH).contains(&name.chars().count()) && !name.chars().any(char::is_control)
    };
    if names.len() <= LEVELS && names.iter().all(is_name) {
        return Ok(Some(names.join("/")));
    }
    Err(ServiceError::invalid(
        "invalid_string",
        &["folder"],
        "1 to 3 names of 1 to 40 characters, separated by slashes",
        path,
        "A folder is a path of at most three names, such as Sales/Ohio",
    ))
}

/// Returns the folders of the templates that the caller sees, in alphabetical order.
pub async fn list(core: &Core, caller: &Caller) -> Result<Vec<String>, ServiceError> {
    let mut connection = core.store.read().await?;
    let reader = caller.template_reader();
    Ok(templates::folders(&mut connection, &caller.org, reader.as_ref()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_path_of_at_most_three_names() {
        let path = |text: &str| checked(text).ok().flatten();
        assert_eq!(path(" Sales / Ohio "), Some("Sales/Ohio".to_owned()));
        assert_eq!(checked("").unwrap(), None);
        let long = "x".repeat(LENGTH + 1);
        for wrong in ["a/b/c/d", "/a", "a//b", "a/", "a\u{7}b", &long] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }
}
