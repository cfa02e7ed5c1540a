//! Examples of bodies, made from their schemas if their types have none.

use serde_json::{Map, Value, json};

/// Objects inside objects of an example; those further in have their required members only.
const DEPTH: usize = 4;
/// Identifier after the prefix of its kind.
const ID: &str = "01jdk7m3e8f4x9s2w5v6b0c1dc";

/// Adds an example to each JSON body of an operation that has none.
pub fn add(operation: &mut Value, schemas: &Value) {
    let answers = operation["responses"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let answers = answers.keys().map(|status| format!("/responses/{status}"));
    for place in answers.chain(["/requestBody".to_owned()]) {
        let Some(media) = operation.pointer_mut(&format!("{place}/content/application~1json"))
        else {
            continue;
        };

        if media["schema"].is_object() && media.get("example").is_none() {
            media["example"] = value(&media["schema"], "", schemas, 0);
        }
    }
}

/// Returns a value that a schema without references allows.
pub fn of(schema: &Value) -> Value {
    value(schema, "", &Value::Null, 0)
}

/// Returns a value for a member or parameter of that name.
pub fn value_of(name: &str, schema: &Value, schemas: &Value) -> Value {
    value(schema, name, schemas, 0)
}

/// Returns a value that a schema allows.
fn value(schema: &Value, name: &str, schemas: &Value, depth: usize) -> Value {
    // An example of the type is better than a made one. A constant or default is at least valid.
    let stated = [
        &schema["examples"][0],
        &schema["const"],
        &schema["enum"][0],
        &schema["default"],
    ];
    if let Some(stated) = stated.into_iter().find(|stated| !stated.is_null()) {
        return stated.clone();
    }

    if let Some(named) = schema["$ref"].as_str() {
        let named = named.trim_start_matches("#/components/schemas/");
        return value(&schemas[named], name, schemas, depth);
    }

    let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    if let Some(choice) = choices
        .into_iter()
        .flatten()
        .find(|one| one["type"] != "null")
    {
        let chosen = value(choice, name, schemas, depth);
        // A flattened enum has members beside its alternatives, and the example needs both.
        return match object(schema, schemas, depth) {
            Value::Object(mut members) if chosen.is_object() => {
                members.extend(chosen.as_object().cloned().unwrap_or_default());
                members.into()
            }
            _ => chosen,
        };
    }

    // An optional member has the type `[T, null]`, with the useful one first.
    let kinds = schema["type"].as_array();
    let kind = kinds
        .and_then(|kinds| kinds.first())
        .unwrap_or(&schema["type"]);
    match kind.as_str() {
        Some("string") => text(schema, name).into(),
        Some("integer" | "number") => schema["minimum"].as_i64().unwrap_or(0).max(1).into(),
        Some("boolean") => true.into(),
        // Schemas can contain themselves, so the depth ends the recursion.
        Some("array") => match schema["items"].as_object() {
            Some(items) if depth < DEPTH => json!([value(&json!(items), name, schemas, depth + 1)]),
            _ => json!([]),
        },
        Some("object") => object(schema, schemas, depth),
        _ => Value::Null,
    }
}

fn object(schema: &Value, schemas: &Value, depth: usize) -> Value {
    let required = schema["required"].as_array();
    let is_required = |name: &str| {
        let mut names = required.into_iter().flatten();
        names.any(|one| one == name)
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let shown = properties.filter(|(name, _)| depth < DEPTH || is_required(name));
    let members: Map<String, Value> = shown
        .map(|(name, member)| (name.clone(), value(member, name, schemas, depth + 1)))
        .collect();

    members.into()
}

/// Returns a text as a member of that name has it.
fn text(schema: &Value, name: &str) -> String {
    // A pattern begins with the prefix of the id's kind, so generated clients show plausible ids.
    if let Some(pattern) = schema["pattern"].as_str()
        && let Some((prefix, _)) = pattern.trim_start_matches(['^', '(']).split_once('_')
    {
        return format!("{prefix}_{ID}");
    }
    if schema["format"] == "date-time" || name.ends_with("_at") || matches!(name, "at" | "since") {
        return "2026-11-21T09:30:00.000Z".to_owned();
    }
    if schema["format"] == "date" {
        return "2026-11-21".to_owned();
    }

    let text = match name {
        _ if name.ends_with("hash") || name == "sha256" => return "5f".repeat(32),
        // Reserved names and numbers (RFC 2606, RFC 5737, 555-01xx), so no example reaches a real person.
        _ if name.ends_with("email") || name.ends_with("_by") => "kim@elm.example",
        _ if name.ends_with("url") => "https://sign.oak.example/",
        _ if name.ends_with("version") => "1.2.0",
        "name" => "Kim Alvarez",
        "role" => "Buyer",
        "reason" => "The amount differs from the application",
        "external_id" => "deal-2041",
        "ip_address" => "192.0.2.7",
        "phone" => "+12025550143",
        "currency" => "USD",
        "purpose" => "Audit",
        other => other,
    };

    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_follows_its_schema() {
        let schemas = json!({ "Signer": { "type": "object", "properties": {
            "email": { "type": ["string", "null"] }, "role": { "enum": ["Buyer", "Seller"] },
        } } });
        let schema = json!({
            "type": "object",
            "properties": {
                "envelope_id": { "type": "string", "pattern": "^(env_)[0-7][0-9a-z]{25}$" },
                "at": { "type": "string", "format": "date-time" },
                "signers": { "type": "array", "items": { "$ref": "#/components/schemas/Signer" } },
                "buyer": { "anyOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Signer" }] },
                "page": { "type": "integer", "minimum": 1 },
            },
        });

        let signer = json!({ "email": "kim@elm.example", "role": "Buyer" });
        let example = json!({
            "envelope_id": format!("env_{ID}"), "at": "2026-11-21T09:30:00.000Z", "page": 1,
            "signers": [signer], "buyer": signer,
        });
        assert_eq!(value(&schema, "", &schemas, 0), example);
    }
}
