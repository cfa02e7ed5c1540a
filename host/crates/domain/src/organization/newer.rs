//! Settings that a newer version has written: what this version does not know is set aside, and written back.
//!
//! A newer version may add members, and words in the places of [`WORDS`]. It changes no type of a member, so everything
//! else is an inconsistency.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use serde_path_to_error::{Error, Segment};

use super::OrgSettings;

/// Places of words that a newer version may have more of, and what counts instead of an unknown one: the strictest word,
/// or none. `*` is any member or item.
const WORDS: [(&[&str], Option<&str>); 13] = [
    (&["funding"], Some("enforce")),
    (&["active_content"], Some("refuse")),
    (&["link_host", "problem"], Some("not_named")),
    // A role that is not known gives no access, and lets nobody review.
    (&["single_sign_on", "default_role"], None),
    (&["single_sign_on", "roles", "*"], None),
    (&["component_changes", "reviewers", "*"], None),
    (&["dates", "format"], None),
    (&["language"], None),
    (&["consent", "*"], None),
    (&["signature_wording", "*", "*"], None),
    (&["consumer_disclosure", "scope", "*"], None),
    (&["consumer_disclosure", "withdrawal", "*"], None),
    (&["consumer_disclosure", "requirements", "*"], None),
];
/// Place in which nothing is set aside: what is new there can narrow which states a key signs.
const KEYS: &[&str] = &["component_changes", "state"];

/// Part of the stored settings that this version does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAside {
    path: Vec<String>,
    stored: Value,
    /// What this version has in its place.
    read: Option<Value>,
}

impl OrgSettings {
    /// Reads stored settings.
    ///
    /// # Errors
    /// What no version of holdfast writes.
    pub fn from_row(text: &str) -> Result<Self, serde_json::Error> {
        // The usual case. A logo alone has up to 64 KiB, so there is no copy.
        let error = match serde_json::from_str(text) {
            Ok(settings) => return Ok(settings),
            Err(error) => error,
        };

        let stored: Value = serde_json::from_str(text)?;
        let mut readable = stored.clone();
        let mut places = BTreeSet::new();
        loop {
            match serde_path_to_error::deserialize::<_, Self>(&readable) {
                Ok(settings) => return Ok(settings.with_set_aside(&stored, places)),
                Err(unknown) => match cut(&mut readable, &unknown) {
                    Some(place) => places.insert(place),
                    None => return Err(error),
                },
            };
        }
    }

    /// Returns the settings as they are stored: with everything of a newer version that this one has not changed.
    pub fn to_row(&self) -> Value {
        // Settings are texts, numbers and flags, which JSON always has.
        let mut row = serde_json::to_value(self).unwrap_or_default();
        for one in &self.set_aside {
            if let Some((name, parents)) = one.path.split_last()
                && let Some(members) = members_at(&mut row, parents)
                && members.get(name) == one.read.as_ref()
            {
                members.insert(name.clone(), one.stored.clone());
            }
        }

        row
    }

    fn with_set_aside(mut self, stored: &Value, places: BTreeSet<Vec<String>>) -> Self {
        let shown = serde_json::to_value(&self).unwrap_or_default();
        let aside = places.into_iter().filter_map(|path| {
            Some(SetAside {
                stored: at(stored, &path)?.clone(),
                read: at(&shown, &path).cloned(),
                path,
            })
        });
        self.set_aside = aside.collect();
        self
    }
}

impl SetAside {
    /// Whether it is part of a setting.
    pub fn is_in(&self, setting: &str) -> bool {
        self.path.first().is_some_and(|first| first == setting)
    }
}

/// Takes out of the settings what could not be read, and returns its place, or that of the array around it. None for
/// something that no newer version writes.
fn cut(settings: &mut Value, error: &Error<serde_json::Error>) -> Option<Vec<String>> {
    let path: Vec<&Segment> = error.path().iter().collect();
    let why = error.inner().to_string();
    let (depth, instead) = if leads_to(KEYS, &path) {
        return None;
    } else if why.starts_with("unknown field ") {
        (path.len(), None)
    } else if why.starts_with("invalid ") || why.starts_with("missing ") {
        // Another type is no unknown word: ignoring it could make a policy weaker.
        return None;
    } else {
        let (place, instead) = WORDS.iter().find(|(place, _)| leads_to(place, &path))?;
        (place.len(), *instead)
    };

    let (last, parents) = path.get(..depth)?.split_last()?;
    let mut around = settings;
    for step in parents {
        around = match step {
            Segment::Map { key } => around.get_mut(key)?,
            Segment::Seq { index } => around.get_mut(index)?,
            Segment::Enum { .. } | Segment::Unknown => return None,
        };
    }

    match (last, instead) {
        (Segment::Map { key }, Some(word)) => {
            around.as_object_mut()?.insert(key.clone(), word.into());
        }
        (Segment::Map { key }, None) => {
            around.as_object_mut()?.remove(key)?;
        }
        (Segment::Seq { index }, _) => {
            around.as_array_mut()?.remove(*index);
        }
        (Segment::Enum { .. } | Segment::Unknown, _) => return None,
    }

    let steps = path.iter().take(depth).map_while(|step| match step {
        Segment::Map { key } => Some(key.clone()),
        _ => None,
    });
    Some(steps.collect())
}

/// Whether a path is a place of words, or inside of it.
fn leads_to(place: &[&str], path: &[&Segment]) -> bool {
    let is_step = |(name, step): (&&str, &&Segment)| match step {
        Segment::Map { key } => *name == "*" || key == name,
        Segment::Seq { .. } => *name == "*",
        Segment::Enum { .. } | Segment::Unknown => false,
    };
    path.len() >= place.len() && place.iter().zip(path).all(is_step)
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

fn members_at<'v>(value: &'v mut Value, path: &[String]) -> Option<&'v mut Map<String, Value>> {
    let found = path
        .iter()
        .try_fold(value, |value, name| value.get_mut(name));
    found?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ActiveContent, LinkHostProblem};
    use super::*;
    use crate::funding::FundingMode;
    use crate::organization::Role;

    fn read(stored: &Value) -> OrgSettings {
        OrgSettings::from_row(&stored.to_string()).unwrap()
    }

    /// Settings in which a newer version has written what this one does not know.
    fn newer() -> Value {
        let mut row = serde_json::to_value(OrgSettings::default()).unwrap();
        row["colour_of_the_sky"] = "blue".into();
        row["funding"] = "escalate".into();
        row["active_content"] = "quarantine".into();
        row["language"] = "tlh".into();
        row["dates"] = json!({ "format": "stardate", "time_zone": "UTC", "era": "ad" });
        row["link_host"] = json!({
            "host": "lender.example", "verified_at": "2026-11-21T09:30:00.000Z",
            "problem": "expired", "certificate": { "days": 30 },
        });
        row["single_sign_on"] = json!({
            "issuer": "https://login.example/", "client_id": "holdfast", "scopes": ["email"],
            "groups_claim": "groups", "acr_values": [], "required": true, "since": null, "set_by": null,
            "roles": [
                { "group": "a", "role": "captain" }, { "group": "b", "role": "sender", "until": "2027" },
                { "group": "c", "role": "navigator" },
            ],
            "default_role": "cadet", "issuers": [],
        });
        row["component_changes"]["reviewers"] = json!(["captain", "compliance"]);
        row["component_changes"]["reviews_required"] = 2.into();
        row["component_changes"]["quorum"] = 3.into();
        row["consent"] = json!({
            "tlh": { "version": "1", "statement": "a", "disclosure": "b" },
            "en": { "version": "1", "statement": "a", "disclosure": "b", "tone": "warm" },
        });
        row["signature_wording"] = json!({ "default": { "en": "I sign", "tlh": "nuq" } });
        row
    }

    #[test]
    fn what_a_newer_version_has_written_is_read_and_written_back() {
        let stored = newer();
        let settings = read(&stored);
        assert_eq!(settings.to_row(), stored);

        // An unknown word is never weaker than a known one.
        assert_eq!(settings.funding, FundingMode::Enforce);
        assert_eq!(settings.active_content, ActiveContent::Refuse);
        let host = settings.link_host.as_ref().unwrap();
        assert_eq!(host.problem, Some(LinkHostProblem::NotNamed));
        let policy = &settings.component_changes;
        assert_eq!(
            (policy.reviews_required, &*policy.reviewers),
            (2, &[Role::Compliance][..])
        );
        let issuer = settings.single_sign_on.as_ref().unwrap();
        assert!(issuer.required);
        assert_eq!(
            (issuer.roles.len(), issuer.roles[0].role),
            (1, Role::Sender)
        );
        assert_eq!(issuer.default_role, None);
        assert_eq!(
            (
                settings.consent.len(),
                settings.signature_wording["default"].len()
            ),
            (1, 1)
        );
    }

    #[test]
    fn a_change_replaces_what_it_is_about_and_keeps_the_rest() {
        let stored = newer();
        let mut settings = read(&stored);
        settings.funding = FundingMode::Warn;
        settings.link_host.as_mut().unwrap().problem = None;
        settings.component_changes.reviewers = vec![Role::Admin];
        settings.single_sign_on = None;

        let mut expected = stored;
        expected["funding"] = "warn".into();
        expected["link_host"]["problem"] = Value::Null;
        expected["component_changes"]["reviewers"] = json!(["admin"]);
        expected["single_sign_on"] = Value::Null;
        assert_eq!(settings.to_row(), expected);
    }

    #[test]
    fn settings_that_no_version_writes_are_an_inconsistency() {
        for (member, wrong) in [
            ("auto_vault", json!("yes")),
            ("funding", json!(3)),
            ("reply_to", json!(["a@b.example"])),
            ("return_origins", json!(["ftp://b.example"])),
            (
                "link_host",
                json!({ "verified_at": "2026-11-21T09:30:00.000Z" }),
            ),
            ("component_changes", json!({ "reviews_required": "two" })),
            (
                "component_changes",
                json!({ "state": { "keys": { "ada": { "until": "2027" } } } }),
            ),
            (
                "single_sign_on",
                json!({ "issuer": "none", "client_id": "a", "colour": 1 }),
            ),
        ] {
            let row = json!({ member: wrong });
            assert!(OrgSettings::from_row(&row.to_string()).is_err(), "{row}");
        }
        assert!(OrgSettings::from_row("{").is_err());
    }
}
