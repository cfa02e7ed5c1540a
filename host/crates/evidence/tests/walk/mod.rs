//! Changes of files in bundles, generated from the files themselves: a member that a later release adds is
//! changed, too.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Files of a bundle by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A changed bundle, and the change in words.
pub struct ChangedBundle {
    pub change: String,
    pub files: Files,
}

/// Returns bundles with one change each: every scalar of every JSON file has other values, every member and
/// item is gone, every object has one member more or one of its members twice, every item is there twice,
/// every file is gone, and every other file has another first, middle and last byte.
pub fn changed_bundles(files: &Files) -> impl Iterator<Item = ChangedBundle> + '_ {
    files.iter().flat_map(move |(name, bytes)| {
        let changed = move |change: String, bytes: Vec<u8>| {
            let mut files = files.clone();
            files.insert(name.clone(), bytes);
            ChangedBundle {
                change: format!("{name}: {change}"),
                files,
            }
        };

        let contents = match serde_json::from_slice(bytes) {
            Ok(value) if name.ends_with(".json") => changed_texts(&value),
            _ => changed_bytes(bytes),
        };
        let contents = contents.into_iter();
        contents
            .map(move |(change, bytes)| changed(change, bytes))
            .chain([without(files, name)])
    })
}

fn without(files: &Files, name: &str) -> ChangedBundle {
    let mut files = files.clone();
    files.remove(name);
    ChangedBundle {
        change: format!("{name} is gone"),
        files,
    }
}

fn changed_bytes(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let places = [0, bytes.len() / 2, bytes.len() - 1];
    let flipped = places.map(|at| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        (format!("byte {at}"), bytes)
    });
    let longer = [bytes, b"\n"].concat();
    Vec::from_iter(flipped.into_iter().chain([("longer".to_owned(), longer)]))
}

/// Returns the texts of a JSON file with one change each.
fn changed_texts(root: &Value) -> Vec<(String, Vec<u8>)> {
    let mut texts = Vec::new();
    for pointer in pointers(root) {
        let mut put = |change: &str, edit: &dyn Fn(&mut Value)| {
            let mut changed = root.clone();
            edit(changed.pointer_mut(&pointer).unwrap());
            texts.push((format!("{pointer} {change}"), text(&changed)));
        };
        match root.pointer(&pointer).unwrap() {
            Value::Object(members) => {
                put("with a member more", &|value| {
                    value["added_member"] = json!(1);
                });
                put("with a null more", &|value| {
                    value["added_member"] = Value::Null;
                });

                for name in members.keys() {
                    put(&format!("without {name}"), &|value| {
                        value.as_object_mut().unwrap().shift_remove(name);
                    });
                }
            }
            Value::Array(items) => {
                put("with an item more", &|value| {
                    value.as_array_mut().unwrap().push(json!({}));
                });

                for index in 0..items.len() {
                    put(&format!("without item {index}"), &|value| {
                        value.as_array_mut().unwrap().remove(index);
                    });
                    put(&format!("with item {index} twice"), &|value| {
                        let items = value.as_array_mut().unwrap();
                        items.insert(index, items[index].clone());
                    });
                }
            }
            scalar => {
                for other in other_values(scalar) {
                    put(&format!("is {other}"), &|value| *value = other.clone());
                }
            }
        }

        texts.extend(with_duplicates(root, &pointer));
    }

    texts
}

/// Returns the JSON pointers of all values, the root first.
fn pointers(root: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut next = 0;
    while let Some(pointer) = found.get(next).cloned() {
        next += 1;
        match root.pointer(&pointer).unwrap() {
            Value::Object(members) => found.extend(members.keys().map(|name| {
                let name = name.replace('~', "~0").replace('/', "~1");
                format!("{pointer}/{name}")
            })),
            Value::Array(items) => {
                found.extend((0..items.len()).map(|index| format!("{pointer}/{index}")));
            }
            _ => {}
        }
    }

    found
}

/// Returns values that differ from a scalar, near and far, of its type and of another.
fn other_values(scalar: &Value) -> Vec<Value> {
    match scalar {
        Value::String(text) => {
            let mut others = vec![
                json!(format!("{text}x")),
                json!(format!(" {text}")),
                json!(format!("{text}\n")),
                json!(""),
                Value::Null,
            ];
            for other in [text.to_uppercase(), text.to_lowercase()] {
                others.extend((other != *text).then(|| json!(other)));
            }

            if let Some((last, rest)) = text.as_bytes().split_last()
                && last.is_ascii_alphanumeric()
            {
                let other = if *last == b'0' { '1' } else { '0' };
                let rest = String::from_utf8_lossy(rest);
                others.push(json!(format!("{rest}{other}")));
            }

            others.retain(|other| other != scalar);
            others
        }
        Value::Number(number) => {
            let mut others = vec![json!(number.to_string()), Value::Null];
            if let Some(number) = number.as_i64() {
                others.extend([json!(number + 1), json!(number - 1), json!(number + 256)]);
            }
            others
        }
        Value::Bool(truth) => vec![json!(!truth), Value::Null, json!("true")],
        Value::Null => vec![json!("text"), json!(0), json!(false), json!({}), json!([])],
        Value::Object(_) | Value::Array(_) => Vec::new(),
    }
}

/// Returns texts in which a member of this object is there twice, with the same and with another value.
fn with_duplicates(root: &Value, pointer: &str) -> Vec<(String, Vec<u8>)> {
    // Replaced in the text, as no JSON value has a member twice.
    const PLACEHOLDER: &str = "\u{1}twice";

    let Some(Value::Object(members)) = root.pointer(pointer) else {
        return Vec::new();
    };

    let mut texts = Vec::new();
    for (name, value) in members {
        for (what, twin) in [("same", value.clone()), ("other", json!("twin"))] {
            for first in [true, false] {
                let mut changed = root.clone();
                let object = changed.pointer_mut(pointer).unwrap();
                let object = object.as_object_mut().unwrap();
                let pair = (PLACEHOLDER.to_owned(), twin.clone());
                let given = std::mem::take(object);
                *object = if first {
                    Map::from_iter([pair].into_iter().chain(given))
                } else {
                    Map::from_iter(given.into_iter().chain([pair]))
                };

                let rendered = String::from_utf8(text(&changed)).unwrap();
                let rendered =
                    rendered.replace(&json!(PLACEHOLDER).to_string(), &json!(name).to_string());
                let change = format!("{pointer} with {name} twice, {what}, first: {first}");
                texts.push((change, rendered.into_bytes()));
            }
        }
    }

    texts
}

fn text(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap()
}
