//! Values of the component model as JSON, under their names in the WIT package: a record is an
//! object, in which an option may be left out; a variant is the name of its case, or an object with
//! it and its value; a list of named values may be an object; bytes are text, or
//! `{ "base64": "…" }`; a result is `{ "ok": … }` or `{ "err": … }`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{ResourceAny, Type, Val};

/// Resources of a call that hold bytes.
pub trait LentBytes {
    /// Lends bytes to the component.
    fn lend(&mut self, bytes: Bytes) -> Result<ResourceAny, String>;
    /// Takes bytes back.
    fn take(&mut self, handle: ResourceAny) -> Result<Bytes, String>;
}

/// For components that know no resources, as rules.
pub struct NothingLent;

impl LentBytes for NothingLent {
    fn lend(&mut self, _: Bytes) -> Result<ResourceAny, String> {
        Err("rules know no resources".into())
    }

    fn take(&mut self, _: ResourceAny) -> Result<Bytes, String> {
        Err("rules know no resources".into())
    }
}

/// Parses the parameters of a function.
///
/// # Errors
/// The parameter that does not fit, with its path.
pub fn parameters(
    lent: &mut dyn LentBytes,
    signature: &ComponentFunc,
    with: &Map<String, Value>,
) -> Result<Vec<Val>, String> {
    // A misspelled parameter would count as absent, and a vector would test something else.
    if let Some(unknown) = with
        .keys()
        .find(|name| !signature.params().any(|(known, _)| known == *name))
    {
        return Err(format!("has no parameter {unknown}"));
    }

    signature
        .params()
        .map(|(name, ty)| {
            // An option may be left out. For any other type, null does not fit and is reported.
            let value = with.get(name).unwrap_or(&Value::Null);
            read(lent, &ty, value).map_err(|why| format!("{name}: {why}"))
        })
        .collect()
}

/// Parses a value of a type from JSON.
fn read(lent: &mut dyn LentBytes, ty: &Type, value: &Value) -> Result<Val, String> {
    let unfit = || format!("{value} does not fit");
    let whole = || value.as_u64().ok_or_else(unfit);
    let text = || value.as_str().map(str::to_owned).ok_or_else(unfit);
    Ok(match ty {
        Type::Bool => Val::Bool(value.as_bool().ok_or_else(unfit)?),
        Type::U8 => Val::U8(u8::try_from(whole()?).map_err(|_| unfit())?),
        Type::U16 => Val::U16(u16::try_from(whole()?).map_err(|_| unfit())?),
        Type::U32 => Val::U32(u32::try_from(whole()?).map_err(|_| unfit())?),
        Type::U64 => Val::U64(whole()?),
        Type::S64 => Val::S64(value.as_i64().ok_or_else(unfit)?),
        Type::Float64 => Val::Float64(value.as_f64().ok_or_else(unfit)?),
        Type::String => Val::String(text()?),
        Type::Enum(names) => {
            let name = text()?;
            if names.names().any(|known| known == name) {
                Val::Enum(name)
            } else {
                return Err(unfit());
            }
        }
        Type::List(list) if list.ty() == Type::U8 => {
            let bytes = bytes(value).ok_or_else(unfit)?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        Type::List(list) => {
            let named = named(&list.ty(), value);
            let items = named.as_ref().unwrap_or(value).as_array();
            let items = items.ok_or_else(unfit)?.iter();
            let read = items.map(|item| read(lent, &list.ty(), item));
            Val::List(read.collect::<Result<_, _>>()?)
        }
        Type::Tuple(tuple) => {
            let items = value.as_array().ok_or_else(unfit)?;
            if items.len() != tuple.types().len() {
                return Err(unfit());
            }

            let read = tuple.types().zip(items);
            let read = read.map(|(ty, item)| self::read(lent, &ty, item));
            Val::Tuple(read.collect::<Result<_, _>>()?)
        }
        Type::Option(_) if value.is_null() => Val::Option(None),
        Type::Option(option) => Val::Option(Some(Box::new(read(lent, &option.ty(), value)?))),
        Type::Record(record) => {
            let members = value.as_object().ok_or_else(unfit)?;
            let known = |name: &String| record.fields().any(|field| field.name == name);
            // The same holds for members: an option with a wrong name would become none.
            if let Some(unknown) = members.keys().find(|name| !known(name)) {
                return Err(format!("a record has no {unknown}"));
            }

            let mut fields = Vec::new();
            for field in record.fields() {
                let value = members.get(field.name).unwrap_or(&Value::Null);
                let value =
                    read(lent, &field.ty, value).map_err(|why| format!("{}: {why}", field.name))?;
                fields.push((field.name.to_owned(), value));
            }

            Val::Record(fields)
        }
        Type::Variant(variant) => {
            let (name, payload) = match value {
                Value::String(name) => (name.as_str(), &Value::Null),
                Value::Object(case) if case.len() == 1 => {
                    let (name, payload) = case.iter().next().ok_or_else(unfit)?;
                    (name.as_str(), payload)
                }
                _ => return Err(unfit()),
            };

            let mut cases = variant.cases();
            let case = cases
                .find(|case| case.name == name)
                .ok_or_else(|| format!("a variant has no case {name}"))?;
            let payload = match &case.ty {
                Some(ty) => Some(Box::new(read(lent, ty, payload)?)),
                None => None,
            };

            Val::Variant(name.to_owned(), payload)
        }
        Type::Own(_) | Type::Borrow(_) => {
            // The component gets a handle, because a copy in its memory could exceed its limit.
            let bytes = bytes(value).ok_or_else(unfit)?;
            Val::Resource(lent.lend(bytes.into())?)
        }
        _ => return Err("no JSON stands for a value of this type".into()),
    })
}

/// Returns a list of pairs that is written as an object.
pub fn named(item: &Type, value: &Value) -> Option<Value> {
    let (Type::Tuple(pair), Value::Object(members)) = (item, value) else {
        return None;
    };
    let by_name = pair.types().len() == 2 && pair.types().next() == Some(Type::String);
    by_name.then(|| {
        let pairs = members.iter();
        Value::Array(pairs.map(|(name, value)| json!([name, value])).collect())
    })
}

/// Parses bytes: text, or `{ "base64": "…" }`.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        _ => STANDARD.decode(value.get("base64")?.as_str()?).ok(),
    }
}

fn written_bytes(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(error) => json!({ "base64": STANDARD.encode(error.as_bytes()) }),
    }
}

/// Converts a value to JSON. Absent options are left out of records.
///
/// # Errors
/// The value has a type that no JSON stands for.
pub fn written(lent: &mut dyn LentBytes, value: &Val) -> Result<Value, String> {
    let payload = |lent: &mut dyn LentBytes, payload: &Option<Box<Val>>| match payload {
        Some(payload) => written(lent, payload),
        None => Ok(Value::Null),
    };
    Ok(match value {
        Val::Bool(value) => json!(value),
        Val::U8(value) => json!(value),
        Val::U16(value) => json!(value),
        Val::U32(value) => json!(value),
        Val::U64(value) => json!(value),
        Val::S64(value) => json!(value),
        Val::Float64(value) => json!(value),
        Val::String(text) | Val::Enum(text) => json!(text),
        // An empty list shows no type, so empty bytes are written as a list.
        Val::List(items) if matches!(items.first(), Some(Val::U8(_))) => {
            let bytes = items.iter().map(|item| match item {
                Val::U8(byte) => *byte,
                _ => 0,
            });
            written_bytes(bytes.collect())
        }
        Val::List(items) | Val::Tuple(items) => {
            let items = items.iter().map(|item| written(lent, item));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Val::Record(fields) => {
            let mut members = Map::new();
            for (name, value) in fields {
                // A member that is added later then changes no answer that was recorded before.
                if !matches!(value, Val::Option(None)) {
                    members.insert(name.clone(), written(lent, value)?);
                }
            }

            Value::Object(members)
        }
        Val::Option(value) => payload(lent, value)?,
        Val::Variant(name, None) => json!(name),
        Val::Variant(name, value) => {
            let value = payload(lent, value)?;
            Value::Object(Map::from_iter([(name.clone(), value)]))
        }
        Val::Result(Ok(value)) => json!({ "ok": payload(lent, value)? }),
        Val::Result(Err(value)) => json!({ "err": payload(lent, value)? }),
        Val::Resource(handle) => written_bytes(lent.take(*handle)?.to_vec()),
        _ => return Err("answers with a value that no JSON stands for".into()),
    })
}

/// Converts `VaultedOut` and `vaulted_out` to `vaulted-out`.
pub fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }

        kebab.push(if letter == '_' {
            '-'
        } else {
            letter.to_ascii_lowercase()
        });
    }

    kebab
}
