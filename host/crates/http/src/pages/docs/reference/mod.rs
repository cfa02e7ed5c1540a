//! The reference of the API: an overview, and a page for each group of operations. All are made of the OpenAPI document
//! at the first visit, and need no script.

mod operations;
mod schemas;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use maud::{Markup, html};
use serde_json::Value;

use super::guides::Section;
use super::{DocsPage, sent};
use crate::error::HttpError;
use crate::openapi::TAGS;
use crate::routing::get;
use crate::{API, SharedDocument};
use holdfast_service::App;
use operations::{ApiOperation, json_sample, sample};
use schemas::{MemberRow, SchemaTables, text};

/// Address of the overview.
pub const PATH: &str = "/docs/api";
/// Area of the events, which the document has beside its paths.
const EVENTS: &str = "webhooks";

/// Operations of an area that have a page of their own, because one page would have more than 150 KB.
struct SplitArea {
    area: &'static str,
    slug: &'static str,
    title: &'static str,
    about: &'static str,
    /// Beginnings of their paths, or of the names of events.
    paths: &'static [&'static str],
}

static SPLITS: [SplitArea; 2] = [
    SplitArea {
        area: "component library",
        slug: "component-changes",
        title: "Component changes",
        about: "Requests for changes, their reviews, the policy and the desired state.",
        paths: &[
            "/component-changes",
            "/component-policy",
            "/component-state",
        ],
    },
    SplitArea {
        area: EVENTS,
        slug: "webhooks-control",
        title: "Webhooks of control",
        about: "Events about the control of records.",
        paths: &["control."],
    },
];

/// A page of the reference.
pub struct OperationGroup {
    pub title: String,
    pub about: &'static str,
    slug: String,
    area: &'static str,
    part: Option<&'static SplitArea>,
}

impl OperationGroup {
    pub fn address(&self) -> String {
        format!("{PATH}/{}", self.slug)
    }

    fn is_about_events(&self) -> bool {
        self.area == EVENTS
    }

    /// Whether an operation of the area stands on this page.
    fn has(&self, path: &str) -> bool {
        let is_of = |part: &SplitArea| part.paths.iter().any(|start| path.starts_with(start));
        match self.part {
            Some(part) => is_of(part),
            None => !SPLITS
                .iter()
                .any(|part| part.area == self.area && is_of(part)),
        }
    }
}

/// All groups, in the order of the document.
pub static GROUPS: LazyLock<Vec<OperationGroup>> = LazyLock::new(|| {
    let mut groups = Vec::new();
    for (area, about) in TAGS {
        let (first, rest) = area.split_at(1);
        groups.push(OperationGroup {
            title: format!("{}{rest}", first.to_uppercase()),
            about,
            slug: area.replace(' ', "-"),
            area,
            part: None,
        });

        for part in SPLITS.iter().filter(|part| part.area == area) {
            groups.push(OperationGroup {
                title: part.title.to_owned(),
                about: part.about,
                slug: part.slug.to_owned(),
                area,
                part: Some(part),
            });
        }
    }

    groups
});

/// The written pages.
pub struct ApiReference {
    overview: Bytes,
    groups: Vec<WrittenGroup>,
}

struct WrittenGroup {
    group: &'static OperationGroup,
    page: Bytes,
    operations: Vec<Section>,
}

/// The reference, written at its first visit: most starts are not followed by one.
pub type SharedReference =
    Arc<LazyLock<ApiReference, Box<dyn FnOnce() -> ApiReference + Send + Sync>>>;

pub fn shared(document: SharedDocument) -> SharedReference {
    Arc::new(LazyLock::new(Box::new(move || {
        let document = serde_json::from_slice(&document).unwrap_or_default();
        ApiReference::of(&document)
    })))
}

pub fn routes() -> Router<App> {
    Router::new()
        .route(PATH, get(overview))
        .route(&format!("{PATH}/{{group}}"), get(group))
}

/// `GET /docs/api`.
async fn overview(Extension(reference): Extension<SharedReference>) -> Response {
    sent(reference.overview.clone())
}

/// `GET /docs/api/{group}`.
async fn group(
    Extension(reference): Extension<SharedReference>,
    Path(slug): Path<String>,
) -> Response {
    let mut groups = reference.groups.iter();
    match groups.find(|written| written.group.slug == slug) {
        Some(written) => sent(written.page.clone()),
        None => HttpError::new(StatusCode::NOT_FOUND, "Not found").into_response(),
    }
}

impl ApiReference {
    fn of(document: &Value) -> Self {
        let groups: Vec<(&OperationGroup, Vec<ApiOperation<'_>>)> = GROUPS
            .iter()
            .map(|group| (group, operations_of(document, group)))
            .collect();
        let overview = written("API reference", PATH, &overview_content(document, &groups));

        let groups = groups.into_iter().map(|(group, operations)| {
            let content = if group.is_about_events() {
                events_content(document, group, &operations)
            } else {
                group_content(document, group, &operations)
            };
            WrittenGroup {
                group,
                page: written(&group.title, &group.address(), &content),
                operations: operations.iter().map(ApiOperation::section).collect(),
            }
        });

        Self {
            overview,
            groups: groups.collect(),
        }
    }

    /// Returns address and title of each page with a text for each operation.
    pub fn sections(&self) -> impl Iterator<Item = (String, &str, &Section)> {
        self.groups.iter().flat_map(|written| {
            let sections = written.operations.iter();
            sections.map(move |section| {
                let title = written.group.title.as_str();
                (written.group.address(), title, section)
            })
        })
    }
}

fn written(title: &str, address: &str, content: &Markup) -> Bytes {
    let page = DocsPage {
        title,
        address: Some(address),
        guide: None,
        content,
    };
    page.written().into()
}

fn operations_of<'a>(document: &'a Value, group: &OperationGroup) -> Vec<ApiOperation<'a>> {
    let place = if group.is_about_events() {
        "webhooks"
    } else {
        "paths"
    };
    let mut operations = Vec::new();
    for (path, item) in document[place].as_object().into_iter().flatten() {
        for (method, described) in item.as_object().into_iter().flatten() {
            if described["tags"][0] == group.area && group.has(path) {
                operations.push(ApiOperation {
                    method,
                    path,
                    described,
                });
            }
        }
    }

    operations
}

fn overview_content(
    document: &Value,
    groups: &[(&OperationGroup, Vec<ApiOperation<'_>>)],
) -> Markup {
    let base = document["servers"][0]["url"].as_str().unwrap_or_default();
    let url = base.strip_suffix(API).unwrap_or(base);
    let info = &document["info"];
    let example = format!(
        "export HOLDFAST_URL={url}\n\
         export HOLDFAST_API_KEY=lk_test_…\n\
         curl -sS --fail-with-body \"$HOLDFAST_URL{API}/partner/envelopes\" \\\n  \
         -H \"X-API-Key: $HOLDFAST_API_KEY\""
    );

    html! {
        h1 { "API reference" }
        p {
            "Version " (info["version"].as_str().unwrap_or_default()) ", at " code { (base) } ". Generators and other programs read the "
            a href={ (API) "/openapi.json" } { "OpenAPI 3.1 document" } "."
        }
        p {
            "The examples take the address and the key from the shell. A " a href="/docs/test-mode" { "test key" }
            " reaches test data only. The console shows the first two lines with each new key."
        }
        (sample(&example))
        h2 #authentication { "Authentication" }
        (credentials(document))
        p {
            "Each operation names the scope that a key needs, or the roles of the user: " a href="/docs/roles" { "roles and scopes" } "."
        }
        h2 #errors { "Errors" }
        (errors(document))
        h2 #limits { "Limits and repeats" }
        p { (text(info["description"].as_str().unwrap_or_default())) }
        (headers(document))
        h2 #lists { "Lists" }
        p {
            "Lists are given page by page: " code { "page" } " counts from 1, and " code { "limit" } " is the number of items. "
            code { "meta.total" } " counts the items of all pages. Where a list takes " code { "starting_after" }
            ", the last id of a page gives the next one, and items that are added meanwhile change nothing. "
            code { "meta.has_more" } " is true while more follow."
        }
        @for (group, operations) in groups {
            h2 { a href=(group.address()) { (group.title) } }
            p { (group.about) }
            ul.calls {
                @for operation in operations {
                    li {
                        a href={ (group.address()) "#" (operation.id()) } { (operation.summary()) }
                        " " code { (name(group, operation)) }
                    }
                }
            }
        }
    }
}

/// Returns the call, or the name of the event.
fn name(group: &OperationGroup, operation: &ApiOperation<'_>) -> String {
    if group.is_about_events() {
        operation.path.to_owned()
    } else {
        operation.call()
    }
}

fn credentials(document: &Value) -> Markup {
    let schemes = document["components"]["securitySchemes"].as_object();
    html! {
        table.members {
            thead { tr { th { "Credential" } th { "Header" } } }
            tbody {
                @for (_, scheme) in schemes.into_iter().flatten() {
                    tr {
                        td { (scheme["description"].as_str().unwrap_or_default()) }
                        td {
                            code {
                                @if scheme["type"] == "apiKey" { (scheme["name"].as_str().unwrap_or_default()) ": …" }
                                @else { "Authorization: Bearer …" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the body of errors, and the meaning of each status.
fn errors(document: &Value) -> Markup {
    let schemas = &document["components"]["schemas"];
    let body = &schemas["Error"];
    let tables = SchemaTables::new(schemas, [body]);
    html! {
        p {
            "Every error has this body. Programs decide by the status, and by " code { "code" } " where one status has several causes: "
            a href="/docs/errors" { "errors" } "."
        }
        (tables.members("", body))
        (statuses(document))
    }
}

/// Renders the statuses of errors, to which operations link.
fn statuses(document: &Value) -> Markup {
    let answers = document["components"]["responses"].as_object();
    html! {
        table.members {
            thead { tr { th { "Status" } th { "Meaning" } } }
            tbody {
                @for (name, answer) in answers.into_iter().flatten() {
                    @let status = name.trim_start_matches("Error");
                    tr id={ "error-" (status) } {
                        td { (status) }
                        td { (text(answer["description"].as_str().unwrap_or_default())) }
                    }
                }
            }
        }
    }
}

/// Renders the headers that answers can have.
fn headers(document: &Value) -> Markup {
    let described = &document["components"]["headers"];
    // The document lists headers by other names than requests have.
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut unread = vec![&document["paths"], &document["components"]["responses"]];
    while let Some(value) = unread.pop() {
        let Some(members) = value.as_object() else {
            continue;
        };
        for (name, header) in value["headers"].as_object().into_iter().flatten() {
            let reference = header["$ref"].as_str().unwrap_or_default();
            if let Some(inner) = reference.strip_prefix("#/components/headers/") {
                names.insert(name, inner);
            }
        }
        unread.extend(members.values());
    }

    html! {
        table.members {
            thead { tr { th { "Header of an answer" } th { "Meaning" } } }
            tbody {
                @for (name, inner) in names {
                    tr {
                        td { code { (name) } }
                        td { (text(described[inner]["description"].as_str().unwrap_or_default())) }
                    }
                }
            }
        }
    }
}

/// Renders the heading of a page and the links to its operations.
fn beginning(group: &OperationGroup, operations: &[ApiOperation<'_>]) -> Markup {
    html! {
        h1 { (group.title) }
        p { (group.about) " " a href=(PATH) { "Credentials, errors, limits and lists" } " are the same for all groups." }
        ul.calls {
            @for operation in operations {
                li { a href={ "#" (operation.id()) } { (operation.summary()) } " " code { (name(group, operation)) } }
            }
        }
    }
}

fn group_content(
    document: &Value,
    group: &OperationGroup,
    operations: &[ApiOperation<'_>],
) -> Markup {
    let schemas = &document["components"]["schemas"];
    let described = operations.iter().map(|operation| operation.described);
    let tables = SchemaTables::new(schemas, described);
    html! {
        (beginning(group, operations))
        @for operation in operations { (operation.rendered(&tables, schemas)) }
        @if tables.has_shared_objects() {
            h2 #objects { "Objects" }
            (tables.shared_objects())
        }
        h2 #errors { "Errors" }
        (statuses(document))
        p { "Codes of single causes: " a href="/docs/errors#codes" { "errors" } "." }
    }
}

/// Renders events. All have the same headers and the same members around `data`.
fn events_content(document: &Value, group: &OperationGroup, events: &[ApiOperation<'_>]) -> Markup {
    let schemas = &document["components"]["schemas"];
    let tables = SchemaTables::new(schemas, []);
    let headers = events
        .first()
        .map(ApiOperation::parameters)
        .unwrap_or_default();
    let common = events.first().map(|event| common_members(body(event)));

    html! {
        (beginning(group, events))
        p {
            "Each event is a POST to your receiver, which answers any 2xx within ten seconds. Its name is the "
            code { "event_type" } " in the body. "
            a href="/docs/webhooks" { "Receiving webhooks" } " explains signatures and retries."
        }
        (tables.table("Headers", &headers))
        (tables.table("Members of every event", &common.unwrap_or_default()))
        @for (at, event) in events.iter().enumerate() {
            @let data = &body(event)["schema"]["properties"]["data"];
            @let earlier = events[..at].iter().find(|earlier| body(earlier)["schema"]["properties"]["data"] == *data);
            section.operation {
                h2 id=(event.id()) { a href={ "#" (event.id()) } { (event.path) } }
                p { (event.summary()) }
                @if let Some(earlier) = earlier {
                    p { "Its data has the members of " a href={ "#" (earlier.id()) } { (earlier.path) } "." }
                } @else {
                    (tables.members("data", data))
                }
                (json_sample(&body(event)["example"]))
            }
        }
    }
}

fn body<'a>(event: &ApiOperation<'a>) -> &'a Value {
    &event.described["requestBody"]["content"]["application/json"]
}

fn common_members(body: &Value) -> Vec<MemberRow<'_>> {
    let members = body["schema"]["properties"].as_object();
    members
        .into_iter()
        .flatten()
        .filter(|(name, _)| !["data", "event_type"].contains(&name.as_str()))
        .map(|(name, schema)| MemberRow {
            name,
            schema,
            is_required: true,
            place: None,
            description: None,
        })
        .collect()
}
