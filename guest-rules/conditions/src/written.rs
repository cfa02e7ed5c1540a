//! Rules as data, as they are inside a component.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::space;

/// Returns the rules of this component; none if nothing was written. Rules that cannot be read end the call:
/// without them, the pack alone would answer.
pub fn read<T: Default + DeserializeOwned>() -> T {
    match space::content().map(serde_json::from_slice) {
        None => T::default(),
        Some(Ok(rules)) => rules,
        Some(Err(_)) => panic!("the rules inside this component cannot be read"),
    }
}

/// Writes rules into a component.
///
/// # Errors
/// The rules are too large or nested too deeply, or the component has no space for rules.
pub fn write<T>(component: &mut [u8], rules: &T) -> Result<(), String>
where
    T: PartialEq + Serialize + DeserializeOwned,
{
    let text = serde_json::to_vec(rules).map_err(|error| error.to_string())?;
    // The component reads them with the same limits.
    let read = serde_json::from_slice::<T>(&text);
    if !read.is_ok_and(|read| read == *rules) {
        return Err(
            "an expression is nested too deeply, or has a number that is not finite".into(),
        );
    }

    space::write(component, &text)
}
