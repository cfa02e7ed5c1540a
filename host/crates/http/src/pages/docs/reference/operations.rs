//! One operation of the API as a section of a page: request, answer, errors.

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

use super::schemas::{MemberRow, SchemaTables, text};
use crate::openapi::example_of;
use crate::pages::docs::guides::Section;

/// An operation of the document.
pub struct ApiOperation<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub described: &'a Value,
}

impl<'a> ApiOperation<'a> {
    /// Name of the operation, and of its place in its page.
    pub fn id(&self) -> &'a str {
        self.described["operationId"].as_str().unwrap_or_default()
    }

    pub fn summary(&self) -> &'a str {
        self.described["summary"].as_str().unwrap_or_default()
    }

    /// Returns the call, as in `POST /partner/envelopes`.
    pub fn call(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }

    /// Returns the description without the summary, which is its heading.
    fn details(&self) -> &'a str {
        let details = self.described["description"].as_str().unwrap_or_default();
        let rest = details.strip_prefix(self.summary());
        rest.map_or(details, |rest| rest.trim_start_matches(['.', ' ']))
    }

    pub fn parameters(&self) -> Vec<MemberRow<'a>> {
        let parameters = self.described["parameters"].as_array();
        let parameters = parameters.into_iter().flatten();
        parameters.map(parameter).collect()
    }

    /// Returns the media types of the body.
    fn bodies(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let content = self.described["requestBody"]["content"].as_object();
        content.into_iter().flatten()
    }

    /// Returns the answers of a success.
    fn answers(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let answers = self.described["responses"].as_object();
        answers
            .into_iter()
            .flatten()
            .filter(|(status, _)| !is_error(status))
    }

    fn errors(&self) -> Vec<&'a str> {
        let answers = self.described["responses"].as_object();
        let mut errors: Vec<&str> = answers
            .into_iter()
            .flatten()
            .map(|(status, _)| status.as_str())
            .filter(|status| is_error(status))
            .collect();
        errors.sort_unstable();

        errors
    }

    pub fn rendered(&self, tables: &SchemaTables<'a>, schemas: &Value) -> Markup {
        let parameters = self.parameters();
        html! {
            section.operation {
                h2 id=(self.id()) { a href={ "#" (self.id()) } { (self.summary()) } }
                p.call { code { (self.call()) } }
                p { (text(self.details())) }
                @if !parameters.is_empty() { (tables.table("Parameters", &parameters)) }
                @for (media, content) in self.bodies() {
                    (tables.members(&format!("Body, {media}"), &content["schema"]))
                }
                (sample(&self.curl(schemas)))
                @for (status, answer) in self.answers() { (rendered_answer(tables, status, answer)) }
                p { "Errors:" @for status in self.errors() { " " a href={ "#error-" (status) } { (status) } } }
            }
        }
    }

    /// Returns the text in which the search looks for the words of a question.
    pub fn section(&self) -> Section {
        let mut text = format!("{} {} {}", self.call(), self.id(), self.details());
        for parameter in self.parameters() {
            for part in [parameter.name, parameter.description.unwrap_or_default()] {
                text.push(' ');
                text.push_str(part);
            }
        }

        Section {
            id: self.id().to_owned(),
            title: self.summary().to_owned(),
            text: text.replace('`', ""),
        }
    }

    /// Returns the call with curl. Identifiers in the path and credentials are variables of the shell.
    fn curl(&self, schemas: &Value) -> String {
        let path: String = self
            .path
            .split('/')
            .skip(1)
            .map(|part| match part.strip_prefix('{') {
                Some(name) => format!("/${}", name.trim_end_matches('}').to_uppercase()),
                None => format!("/{part}"),
            })
            .collect();
        let query = self.query(schemas);

        let media = self.bodies().next();
        // curl sends GET, and POST with a body.
        let method = match (self.method, media) {
            ("get", _) | ("post", Some(_)) => String::new(),
            (method, _) => format!(" -X {}", method.to_uppercase()),
        };

        let mut parts = vec![format!(
            "curl -sS --fail-with-body{method} \"$HOLDFAST_URL/api/v2{path}{query}\""
        )];
        parts.extend(self.headers());
        if let Some((media, content)) = media {
            parts.extend(body(media, &content["example"]));
        }

        // Files go to the disk, as terminals do not show them.
        let mut answers = self.answers().flat_map(|(_, answer)| content_of(answer));
        if let Some((media, _)) = answers.next()
            && let Some(ending) = file_ending(media)
        {
            parts.push(format!("-o answer.{ending}"));
        }

        parts.join(" \\\n  ")
    }

    fn query(&self, schemas: &Value) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for parameter in self.parameters() {
            if parameter.place == Some("query") && parameter.is_required {
                let example = example_of(parameter.name, parameter.schema, schemas);
                query.append_pair(parameter.name, &plain(&example));
            }
        }

        let query = query.finish();
        if query.is_empty() {
            query
        } else {
            format!("?{query}")
        }
    }

    /// Returns the headers of the credential, of repeats and of the organization.
    fn headers(&self) -> Vec<String> {
        let schemes = self.described["security"][0].as_object();
        let scheme = schemes.and_then(|schemes| schemes.keys().next());
        let credential = match scheme.map(String::as_str) {
            Some("apiKey") => Some("X-API-Key: $HOLDFAST_API_KEY"),
            Some("embed") => Some("Authorization: Bearer $EMBED_TOKEN"),
            Some(_) => Some("Authorization: Bearer $HOLDFAST_TOKEN"),
            None => None,
        };

        let parameters = self.parameters();
        let others = parameters
            .iter()
            .filter(|parameter| parameter.place == Some("header"))
            .map(|parameter| match parameter.name {
                "Idempotency-Key" => "Idempotency-Key: $(uuidgen)".to_owned(),
                "X-Org-Id" => "X-Org-Id: $HOLDFAST_ORG".to_owned(),
                name => format!("{name}: …"),
            });

        let headers = credential.map(str::to_owned).into_iter().chain(others);
        headers.map(|header| format!("-H \"{header}\"")).collect()
    }
}

fn is_error(status: &str) -> bool {
    status.starts_with(['4', '5'])
}

fn parameter(described: &Value) -> MemberRow<'_> {
    MemberRow {
        name: described["name"].as_str().unwrap_or_default(),
        schema: &described["schema"],
        is_required: described["required"] == true,
        place: described["in"].as_str(),
        description: described["description"].as_str(),
    }
}

fn content_of(answer: &Value) -> impl Iterator<Item = (&String, &Value)> {
    answer["content"].as_object().into_iter().flatten()
}

fn rendered_answer<'a>(tables: &SchemaTables<'a>, status: &str, answer: &'a Value) -> Markup {
    let description = answer["description"].as_str();
    // The description of every answer without one of its own.
    let description = description.filter(|description| *description != "Done");
    html! {
        p {
            "Answer " b { (status) }
            @for (media, _) in content_of(answer) { ", " code { (media) } }
            @if let Some(description) = description { ": " (text(description)) }
        }
        @for (_, content) in content_of(answer) {
            @if let Some(example) = content.get("example") { (json_sample(example)) }
            @if content["schema"]["properties"].is_object() {
                details {
                    summary { "Members of the answer" }
                    (tables.members("", &content["schema"]))
                }
            }
        }
    }
}

/// Returns the arguments of curl for a body.
fn body(media: &str, example: &Value) -> Vec<String> {
    if media == "application/json" {
        return vec![format!("--json {}", quoted(&indented(example)))];
    }

    let parts = example.as_object().into_iter().flatten();
    parts
        .map(|(name, value)| match name.as_str() {
            "file" => format!("-F file=@{}", plain(value)),
            _ => format!("-F {}", quoted(&format!("{name}={}", plain(value)))),
        })
        .collect()
}

/// Quotes a text for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the ending of a file with an answer. Texts have none, as terminals show them.
fn file_ending(media: &str) -> Option<&str> {
    let is_text = media.starts_with("text/") || media.contains("json");
    let ending = media.rsplit(['/', '.']).next();
    ending.filter(|_| !is_text)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn indented(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

pub fn json_sample(example: &Value) -> Markup {
    sample(&indented(example))
}

/// Renders code. Quotation marks, of which JSON has many, need no escape in the text of an element.
pub fn sample(code: &str) -> Markup {
    let escaped = code
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    html! { pre.example { code { (PreEscaped(escaped)) } } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_call_with_curl_has_variables_for_ids_and_credentials() {
        let described = json!({
            "operationId": "voidEnvelope",
            "summary": "Void an envelope",
            "description": "Void an envelope. API key with the scope `envelopes:write`.",
            "parameters": [
                { "in": "path", "name": "id", "required": true, "schema": { "type": "string" } },
                { "in": "header", "name": "Idempotency-Key", "schema": { "type": "string" } },
                { "in": "query", "name": "email", "required": true, "schema": { "type": "string" } },
            ],
            "requestBody": { "content": { "application/json": { "example": { "reason": "It isn't <signed>" } } } },
            "security": [{ "apiKey": [] }],
            "responses": { "200": { "description": "Done" }, "404": {} },
        });
        let operation = ApiOperation {
            method: "post",
            path: "/partner/envelopes/{id}/void",
            described: &described,
        };
        assert_eq!(
            operation.curl(&Value::Null),
            r#"curl -sS --fail-with-body "$HOLDFAST_URL/api/v2/partner/envelopes/$ID/void?email=kim%40elm.example" \
  -H "X-API-Key: $HOLDFAST_API_KEY" \
  -H "Idempotency-Key: $(uuidgen)" \
  --json '{
  "reason": "It isn'\''t <signed>"
}'"#
        );

        let schemas = json!({});
        let tables = SchemaTables::new(&schemas, [&described]);
        let section = operation.rendered(&tables, &schemas).into_string();
        assert!(section.contains("<h2 id=\"voidEnvelope\">"), "{section}");
        assert!(section.contains("&lt;signed&gt;"), "{section}");
        assert!(
            section.contains("<p>API key with the scope <code>envelopes:write</code>.</p>"),
            "{section}"
        );
        assert!(
            section.contains("<a href=\"#error-404\">404</a>"),
            "{section}"
        );
    }

    #[test]
    fn files_are_sent_as_forms_and_kept_on_the_disk() {
        let described = json!({
            "requestBody": { "content": { "multipart/form-data": { "example": { "file": "contract.pdf", "name": "Sale" } } } },
            "security": [{ "bearer": [] }],
            "responses": { "200": { "content": { "application/pdf": {} } } },
        });
        let operation = ApiOperation {
            method: "post",
            path: "/templates",
            described: &described,
        };
        let call = operation.curl(&Value::Null);
        for part in [
            "-F file=@contract.pdf",
            "-F 'name=Sale'",
            "Bearer $HOLDFAST_TOKEN",
            "-o answer.pdf",
        ] {
            assert!(call.contains(part), "{call}");
        }
    }
}
