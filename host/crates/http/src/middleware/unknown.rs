//! Unknown names: members of a JSON body, parts of a form, query parameters. A misspelt name is
//! refused, with the nearest known one as a suggestion.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use aide::generate::GenContext;
use aide::openapi::{OpenApi, Parameter, PathItem, Paths, ReferenceOr};
use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::error::HttpError;
use holdfast_platform::ValidationIssue;

/// Longest path that is compared with those of the API.
const LONGEST: usize = 300;
/// Minimum similarity of a suggestion, from 0 to 1.
const ALIKE: f64 = 0.8;

/// Returns the known name that was probably meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Camel case is a likely mistake, and differs by separators and case only.
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let wanted = plain(name);
    known
        .map(|known| (strsim::jaro_winkler(&wanted, &plain(known)), known))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, known)| known)
}

/// Returns a problem such as `Unknown member: templateId; did you mean template_id?`, of a name below `path`.
pub fn issue(
    what: &str,
    name: &str,
    mut path: Vec<Value>,
    nearest: Option<&str>,
) -> ValidationIssue {
    path.push(name.into());
    let code = match what {
        "member" => "unknown_member",
        "part" => "unknown_part",
        _ => "unknown_parameter",
    };
    // The name is the caller's and can be of any length.
    let name: String = name.chars().take(100).collect();
    let message = match nearest {
        Some(nearest) => format!("Unknown {what}: {name}; did you mean {nearest}?"),
        None => format!("Unknown {what}: {name}"),
    };

    ValidationIssue {
        code: code.into(),
        expected: format!("a known {what}"),
        received: name,
        path,
        message,
        nearest: nearest.map(str::to_owned),
    }
}

/// Returns a 400 for an unknown form part or query parameter.
pub fn refusal(what: &str, name: &str, known: &[String]) -> HttpError {
    let nearest = nearest(name, known.iter().map(String::as_str));
    let issue = issue(what, name, Vec::new(), nearest);
    HttpError::bad_request(issue.message.clone()).with_details(json!([issue]))
}

/// Closes every object of a schema to members that it does not list.
pub fn close(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(close),
        Value::Object(members) => {
            // A property may be named `properties`, so only an object with schemas counts.
            if members.get("properties").is_some_and(Value::is_object) {
                members
                    .entry("additionalProperties")
                    // Maps declare their additional members themselves and stay open.
                    .or_insert(Value::Bool(false));
            }

            for (keyword, value) in members {
                match keyword.as_str() {
                    "properties" | "$defs" => {
                        let schemas = value.as_object_mut().into_iter();
                        schemas.flat_map(Map::values_mut).for_each(close);
                    }
                    // These keywords hold values, not schemas.
                    "examples" | "default" | "const" | "enum" => {}
                    _ => close(value),
                }
            }
        }
        _ => {}
    }
}

/// Closes the documented schema of a request body, as [`close`] does for the validated one.
pub fn close_documented(context: &mut GenContext, schema: &Schema) {
    // Schemas can refer to each other in a circle.
    let mut open = references(schema.as_value());
    let mut seen = Vec::new();
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }

        if let Some(definition) = context.schema.definitions_mut().get_mut(&name) {
            close(definition);
            open.extend(references(definition));
        }

        seen.push(name);
    }
}

/// Returns the names of the definitions that a schema references.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Array(schemas) => schemas.iter().flat_map(references).collect(),
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|target| target.rsplit('/').next());
            let below = members.values().flat_map(references);
            own.map(str::to_owned).into_iter().chain(below).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the part names of a form.
pub fn parts_of<T: JsonSchema>() -> Arc<[String]> {
    static KNOWN: LazyLock<RwLock<HashMap<String, Arc<[String]>>>> = LazyLock::new(RwLock::default);

    let id = T::schema_id().into_owned();
    if let Ok(known) = KNOWN.read()
        && let Some(names) = known.get(&id)
    {
        return names.clone();
    }

    let schema = schemars::schema_for!(T);
    let members = schema.get("properties").and_then(Value::as_object);
    let names: Arc<[String]> = members.into_iter().flat_map(Map::keys).cloned().collect();
    if let Ok(mut known) = KNOWN.write() {
        known.insert(id, names.clone());
    }

    names
}

/// Query parameters of every documented operation, by method and route.
#[derive(Default)]
pub struct QueryParameterIndex(HashMap<(String, String), Arc<[String]>>);

impl QueryParameterIndex {
    /// Collects them from the description of the routes below `prefix`.
    pub fn of(document: &OpenApi, prefix: &str) -> Self {
        let paths = document.paths.iter().flat_map(Paths::iter);
        let operations = paths.flat_map(|(path, item)| {
            let operations = item.as_item().into_iter().flat_map(PathItem::iter);
            operations.map(move |(method, operation)| (path, method, operation))
        });
        let known = operations.map(|(path, method, operation)| {
            let parameters = operation.parameters.iter().filter_map(ReferenceOr::as_item);
            let names = parameters.filter_map(|parameter| match parameter {
                Parameter::Query { parameter_data, .. } => Some(parameter_data.name.clone()),
                _ => None,
            });
            let key = (method.to_uppercase(), format!("{prefix}{path}"));
            (key, names.collect())
        });

        Self(known.collect())
    }
}

/// Paths of the API as segments, of which a parameter is none.
pub struct PathIndex(Vec<Vec<Option<String>>>);

impl PathIndex {
    /// Collects them from the description of the routes.
    pub fn of(document: &OpenApi) -> Self {
        let paths = document.paths.iter().flat_map(Paths::iter);
        let segments = paths.map(|(path, _)| {
            let segments = path.split('/').skip(1);
            let fixed = |segment: &str| (!segment.starts_with('{')).then(|| segment.to_owned());
            segments.map(fixed).collect()
        });

        Self(segments.collect())
    }

    /// Returns the path below `prefix` that was meant by one with another version segment, or without one.
    pub fn meant(&self, path: &str, prefix: &str) -> Option<String> {
        if path.len() > LONGEST {
            return None;
        }

        let mistaken = ["/api/v1", "/api", "/v2", "/v1", ""];
        let mut rests = mistaken.iter().filter_map(|start| path.strip_prefix(start));
        let rest = rests.find(|rest| self.has(rest))?;
        Some(format!("{prefix}{rest}"))
    }

    fn has(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else {
            return false;
        };
        let given: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        self.0.iter().any(|known| {
            let mut pairs = known.iter().zip(&given);
            known.len() == given.len()
                && pairs.all(|(known, given)| known.as_ref().is_none_or(|known| known == given))
        })
    }
}

/// Query parameters of the requested operation.
#[derive(Clone)]
struct KnownQuery(Arc<[String]>);

/// Attaches the operation's query parameters to the request, for [`check_query`].
pub async fn note_query(
    State(queries): State<Arc<QueryParameterIndex>>,
    route: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    // Most requests have no query, and need no look-up.
    if let (Some(_), Some(route)) = (request.uri().query(), route) {
        let key = (request.method().to_string(), route.as_str().to_owned());
        if let Some(known) = queries.0.get(&key) {
            request.extensions_mut().insert(KnownQuery(known.clone()));
        }
    }
    next.run(request).await
}

/// Refuses a query parameter that the operation does not have. Runs after the credential was
/// checked; operations without a credential (callbacks, downloads) accept any parameter.
pub fn check_query(parts: &Parts) -> Result<(), HttpError> {
    let (Some(KnownQuery(known)), Some(query)) =
        (parts.extensions.get::<KnownQuery>(), parts.uri.query())
    else {
        return Ok(());
    };

    let query = without_brackets(query);
    let mut names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    match names.find(|name| !known.iter().any(|known| known == name)) {
        Some(name) => Err(refusal("query parameter", &name, known)),
        None => Ok(()),
    }
}

/// Writes `metadata[stock]=A-17` as `metadata=stock:A-17`, the form that handlers read. Other parameters are left
/// as they are.
pub fn without_brackets(query: &str) -> Cow<'_, str> {
    let member = |name: &str| {
        let member = name.strip_prefix("metadata[")?.strip_suffix(']')?;
        // A colon would end the name early. With it, the parameter stays an unknown one.
        (!member.contains(':')).then(|| member.to_owned())
    };
    let pairs = || url::form_urlencoded::parse(query.as_bytes());
    if !pairs().any(|(name, _)| member(&name).is_some()) {
        return query.into();
    }

    let mut written = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs() {
        match member(&name) {
            Some(member) => written.append_pair("metadata", &format!("{member}:{value}")),
            None => written.append_pair(&name, &value),
        };
    }

    written.finish().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_api_is_recognized_without_its_version() {
        let list: Vec<Option<String>> = ["partner", "envelopes"]
            .map(|segment| Some(segment.to_owned()))
            .to_vec();
        let one = [list.clone(), vec![None]].concat();
        let paths = PathIndex(vec![list, one]);

        for (path, meant) in [
            ("/partner/envelopes", Some("/api/v2/partner/envelopes")),
            ("/api/partner/envelopes", Some("/api/v2/partner/envelopes")),
            (
                "/api/v1/partner/envelopes/env_1",
                Some("/api/v2/partner/envelopes/env_1"),
            ),
            (
                "/v2/partner/envelopes/env_1",
                Some("/api/v2/partner/envelopes/env_1"),
            ),
            ("/partner/envelopes/env_1/status", None),
            ("/partners/envelopes", None),
            ("/", None),
        ] {
            assert_eq!(paths.meant(path, "/api/v2").as_deref(), meant, "{path}");
        }
    }

    #[test]
    fn a_member_of_metadata_in_brackets_is_read_like_one_before_a_colon() {
        for (query, expected) in [
            (
                "metadata[stock]=A-17&limit=5",
                "metadata=stock%3AA-17&limit=5",
            ),
            ("metadata%5Bstock%5D=A%2017", "metadata=stock%3AA+17"),
            ("metadata=stock:A-17", "metadata=stock:A-17"),
            ("status[stock]=A-17", "status[stock]=A-17"),
            ("metadata[a:b]=c", "metadata[a:b]=c"),
        ] {
            assert_eq!(without_brackets(query), expected);
        }
    }

    #[test]
    fn the_nearest_name_is_found_despite_case_and_separators() {
        let known = ["template_id", "customer_name", "fields_json", "required"];
        for (name, expected) in [
            ("templateId", Some("template_id")),
            ("requird", Some("required")),
            ("fields", Some("fields_json")),
            ("colour", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
    }

    #[test]
    fn schemas_are_closed_except_for_maps() {
        let mut schema = json!({
            "properties": {
                "properties": { "type": "object", "properties": { "a": {} } },
                "map": { "type": "object", "additionalProperties": true },
            },
            "examples": [{ "properties": {} }],
        });
        close(&mut schema);
        assert_eq!(
            schema,
            json!({
                "properties": {
                    "properties": {
                        "type": "object", "properties": { "a": {} }, "additionalProperties": false,
                    },
                    "map": { "type": "object", "additionalProperties": true },
                },
                "examples": [{ "properties": {} }],
                "additionalProperties": false,
            })
        );
    }
}
