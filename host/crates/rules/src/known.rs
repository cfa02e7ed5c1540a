//! Known calls of each slot, from which generated questions begin: the published vectors, and
//! documents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use wasmtime::component::Type;
use wasmtime::component::types::ComponentFunc;

use super::questions::BaseQuestion;
use super::values::{kebab, named};
use holdfast_domain::component::Slot;

const COMPLIANCE: &str = include_str!("../../../../wit/compliance/vectors.json");
const CONTROL: &str = include_str!("../../../../wit/control/vectors.json");
const FUNDING: &str = include_str!("../../../../wit/funding/vectors.json");
const CONTRACT: &[u8] =
    include_bytes!("../../../../tests/fixtures/retail-installment-contract.pdf");

/// Returns the known calls of a function. Functions that are asked everything need none.
pub fn calls(slot: Slot, function: &str) -> Vec<BaseQuestion> {
    match (slot, function) {
        (Slot::Compliance, "evaluate") => vectors(
            COMPLIANCE,
            &["vectors"],
            |vector| json!({ "facts": vector["facts"] }),
        ),
        (Slot::Compliance, "certificate") => vectors(COMPLIANCE, &["vectors"], |vector| {
            json!({
                "facts": vector["facts"], "issued-at": "2026-01-02T03:04:05.000Z", "issuer": "Example",
                "component": { "name": "rules", "version": "1.0.0", "sha256": "0".repeat(64) },
            })
        }),
        (Slot::Control, "decide") => vectors(
            CONTROL,
            &["way", "never"],
            |vector| json!({ "act": vector["act"], "facts": vector["facts"] }),
        ),
        (Slot::Funding, "check") => vectors(
            FUNDING,
            &["vectors", "never"],
            |vector| json!({ "facts": vector["facts"] }),
        ),
        (Slot::Placement, _) => placement(function),
        _ => Vec::new(),
    }
}

/// Converts a call that the host wrote to the names of the WIT package.
pub fn with_wit_names(signature: &ComponentFunc, call: &BaseQuestion) -> BaseQuestion {
    let mut with = Map::new();
    for (parameter, ty) in signature.params() {
        // A recorded call can be older than a parameter, which is absent then.
        let value = call.with.get(parameter).unwrap_or(&Value::Null);
        with.insert(parameter.to_owned(), wit_names(&ty, value));
    }

    BaseQuestion {
        name: call.name.clone(),
        with,
    }
}

/// Converts an answer that the host wrote to the names of the WIT package.
pub fn answer_with_wit_names(signature: &ComponentFunc, answer: &Value) -> Value {
    let ty = signature.results().next();
    ty.map_or(Value::Null, |ty| wit_names(&ty, answer))
}

fn call(name: &str, with: Value) -> BaseQuestion {
    BaseQuestion {
        name: name.to_owned(),
        with: with.as_object().cloned().unwrap_or_default(),
    }
}

fn vectors(text: &str, lists: &[&str], with: fn(&Value) -> Value) -> Vec<BaseQuestion> {
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    let vectors = lists
        .iter()
        .filter_map(|list| all[*list].as_array())
        .flatten();
    vectors
        .map(|vector| call(vector["name"].as_str().unwrap_or_default(), with(vector)))
        .collect()
}

fn placement(function: &str) -> Vec<BaseQuestion> {
    let pdf = json!({ "base64": STANDARD.encode(CONTRACT) });
    let with = match function {
        "place" => {
            let field = |name: &str, kind: &str, position: Value| {
                json!({
                    "name": name, "field-type": kind, "role": "Buyer", "required": true,
                    "default-value": null, "position": position,
                })
            };

            let anchor = |text: &str| {
                json!({ "anchor": {
                    "text": text, "occurrence": 1, "page": null,
                    "offset-x": 0.05, "offset-y": 0.0, "w": 0.2, "h": 0.03,
                } })
            };

            let area = json!({ "page": 1, "x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05 });
            json!({ "pdf": pdf, "fields": [
                field("Signature", "signature", anchor("Buyer signature:")),
                field("Date", "date", json!({ "absolute": [area] })),
            ] })
        }
        "text" => json!({ "pdf": pdf, "page": 1 }),
        "occurrences" => json!({ "pdf": pdf, "text": "Buyer signature:", "page": null }),
        _ => json!({ "pdf": pdf }),
    };

    vec![call("a retail installment contract", with)]
}

/// Converts facts that the host wrote to the names of the WIT package.
fn wit_names(ty: &Type, value: &Value) -> Value {
    match (ty, value) {
        (Type::Option(_), Value::Null) => Value::Null,
        (Type::Option(option), value) => wit_names(&option.ty(), value),
        (Type::Enum(_), Value::String(name)) => json!(kebab(name)),
        (Type::Record(record), Value::Object(members)) => {
            let fields = record.fields();
            let named = fields.map(|field| {
                // Vectors of the host have underscores, vectors of a team the names of WIT.
                let ours = field.name.replace('-', "_");
                let value = members.get(field.name).or_else(|| members.get(&ours));
                let value = value.unwrap_or(&Value::Null);
                (field.name.to_owned(), wit_names(&field.ty, value))
            });
            Value::Object(named.collect())
        }
        // Bytes are one value here and no list of numbers.
        (Type::List(list), Value::Array(items)) if list.ty() != Type::U8 => {
            let items = items.iter();
            Value::Array(items.map(|item| wit_names(&list.ty(), item)).collect())
        }
        (Type::Variant(variant), Value::Object(case)) => {
            let named = case.iter().map(|(name, payload)| {
                let name = kebab(name);
                let ty = variant.cases().find(|case| case.name == name);
                let ty = ty.and_then(|case| case.ty);
                let payload = ty.map_or(Value::Null, |ty| wit_names(&ty, payload));
                (name, payload)
            });
            Value::Object(named.collect())
        }
        (Type::Variant(_), Value::String(name)) => json!(kebab(name)),
        (Type::Result(result), Value::Object(of)) => {
            let named = of.iter().map(|(name, payload)| {
                let ty = if name == "ok" {
                    result.ok()
                } else {
                    result.err()
                };
                let payload = ty.map_or(Value::Null, |ty| wit_names(&ty, payload));
                (name.clone(), payload)
            });

            Value::Object(named.collect())
        }
        // Attributes are a list of pairs in WIT, and an object in recorded facts.
        (Type::List(list), value) => named(&list.ty(), value).unwrap_or_else(|| value.clone()),
        (_, value) => value.clone(),
    }
}
