//! Three-way value of a nullable field in a PATCH body.

use serde::{Deserialize, Deserializer};

/// Field of a PATCH body, marked `#[serde(default)]`: an absent member keeps the stored value,
/// null clears it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldPatch<T> {
    /// The member is absent.
    #[default]
    Keep,
    /// The member is null.
    Clear,
    /// The member has a value.
    Set(T),
}

impl<T> FieldPatch<T> {
    /// Converts the new value, if the member has one.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> FieldPatch<U> {
        match self {
            Self::Keep => FieldPatch::Keep,
            Self::Clear => FieldPatch::Clear,
            Self::Set(value) => FieldPatch::Set(convert(value)),
        }
    }

    /// Applies the change to `field`.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FieldPatch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde calls this only for a member that is present: absence is the `Default` value.
        Ok(match Option::deserialize(deserializer)? {
            None => Self::Clear,
            Some(value) => Self::Set(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct PatchBody {
        #[serde(default)]
        name: FieldPatch<String>,
    }

    #[test]
    fn an_absent_member_keeps_its_value_and_null_clears_it() {
        for (body, expected) in [
            ("{}", Some("before")),
            (r#"{"name":null}"#, None),
            (r#"{"name":"after"}"#, Some("after")),
        ] {
            let patch: PatchBody = serde_json::from_str(body).unwrap();
            let mut name = Some("before".to_owned());
            patch.name.apply(&mut name);
            assert_eq!(name.as_deref(), expected, "{body}");
        }

        assert!(serde_json::from_str::<PatchBody>(r#"{"name":1}"#).is_err());
    }
}
