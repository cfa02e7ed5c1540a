//! Fact maps: their list, a form for another one, and the page of one with its facts, its versions, its text, and a try
//! on a contract.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, PreEscaped, html};
use serde_json::json;

use super::PATH;
use super::envelopes::unrecorded;
use super::facts;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place, status};
use super::signed_in::{ConsoleForm, Visitor};
use crate::error::HttpError;
use crate::middleware::extract::valid;
use holdfast_adapters::texts::Texts;
use holdfast_domain::fact_map::{
    FactDirection, FactMapDocument, FactMapScope, MappedFact, PrintedPlace,
};
use holdfast_domain::organization::Permission;
use holdfast_domain::toml_document;
use holdfast_platform::ServiceError;
use holdfast_service::facts::maps::{self, CreateFactMap, FactMapView};
use holdfast_service::facts::trial::{self, TriedEnvelope};
use holdfast_service::templates::{self, TemplateFilter};
use holdfast_service::{App, envelopes};
use holdfast_store::search::{EnvelopeSearch, FoundEnvelope};

/// Templates and contracts to choose from.
const CHOICE: i64 = 50;
/// Choice beside the names of the starters: the fields of the template.
const OF_FIELDS: &str = "fields";
/// Rows of the text.
const ROWS: u8 = 24;

fn address(id: &impl std::fmt::Display) -> String {
    format!("{PATH}/fact-maps/{id}")
}

/// Lists the maps, with a form for another one.
pub async fn list(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    list_page(&app, &visitor, None).await
}

async fn list_page(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    let found = maps::list(app, &visitor.caller).await?;
    let form = if visitor.may(Permission::Send) {
        new_form(app, visitor, refused).await?
    } else {
        html! {}
    };

    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("facts-maps-hint")) }
        @if found.is_empty() { p { (texts.text("facts-maps-none")) } }
        ul.rows {
            @for map in &found {
                li {
                    a href=(address(&map.fact_map_id)) { (map.name) }
                    p.soft { (scope(texts, &map.applies_to)) }
                    p.soft {
                        (texts.with("template-version", [("number", map.version)])) " · "
                        (visitor.moment(map.updated_at)) " · " (map.made_by)
                    }
                }
            }
        }
        (form)
        p { a href={ (PATH) "/templates" } { (texts.text("console-templates")) } }
    };
    let title = texts.text("facts-maps");
    Ok(visitor.form_page(Place::Templates, None, &title, body, refused))
}

/// Renders the form for a map that begins with a starter, or with the fields of a template.
async fn new_form(
    app: &App,
    visitor: &Visitor,
    refused: Option<&RefusedForm>,
) -> Result<Markup, ServiceError> {
    let filter = TemplateFilter::default();
    let (found, _) = templates::list(app, &visitor.caller, &filter, 1, CHOICE).await?;
    let texts = visitor.texts;
    let all = std::iter::once((String::new(), texts.text("facts-map-all")));
    let templates = found
        .iter()
        .map(|one| (one.id.to_string(), one.name.clone()));
    let templates: Vec<(String, String)> = all.chain(templates).collect();
    let starters = maps::starters()?.into_iter();
    let fields = (OF_FIELDS.to_owned(), texts.text("facts-map-fields-of"));
    let begins: Vec<(String, String)> = starters
        .map(|one| (one.starter, one.name))
        .chain(std::iter::once(fields))
        .collect();

    let action = format!("{PATH}/fact-maps");
    let form = FormView::new(texts, &action, refused);
    Ok(html! {
        section.card {
            h2 { (texts.text("facts-map-new")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.text(&TextField {
                    limit: 200,
                    ..TextField::required("name", &texts.text("rules-name"))
                }))
                (form.select("template", &texts.text("facts-map-for"), &templates, ""))
                (form.select("begin", &texts.text("facts-map-begin"), &begins, ""))
                button type="submit" { (texts.text("facts-map-create")) }
            }
        }
    })
}

/// Creates a map, and leads to it.
pub async fn create(State(app): State<App>, form: ConsoleForm) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Send)?;

    let made = async {
        let new = requested(&app, &form).await?;
        Ok::<_, HttpError>(maps::create(&app, &visitor.caller, new, &unrecorded()).await?)
    };
    let error = match made.await {
        Ok(map) => return Ok(Redirect::to(&address(&map.fact_map_id)).into_response()),
        Err(error) => error,
    };

    let refused = if error.status() == StatusCode::NOT_FOUND {
        form.refused_at("template", visitor.texts.text("problem-option"))
    } else {
        let members = [
            ("starter", "begin"),
            ("facts", "begin"),
            ("applies_to", "template"),
        ];
        let members = members.map(|(member, field)| (member.to_owned(), field.to_owned()));
        form.refused_with(error, &members)?
    };
    list_page(&app, visitor, Some(&refused)).await
}

/// Returns the map that a form asks for.
async fn requested(app: &App, form: &ConsoleForm) -> Result<CreateFactMap, HttpError> {
    let (begin, template) = (form.value("begin"), form.value("template"));
    let mut body = json!({ "name": form.value("name") });
    body["applies_to"] = if template.is_empty() {
        json!({ "all": true })
    } else {
        json!({ "templates": [template] })
    };

    if begin == OF_FIELDS {
        let template = templates::get(app, &form.visitor.caller, template).await?;
        body["facts"] = json!(maps::of_fields(&template.fields)?);
    } else {
        body["starter"] = begin.into();
    }
    valid::<CreateFactMap>(body)
}

/// What the page of a map shows besides the map.
#[derive(Default)]
struct MapAnswer {
    /// Problems of the text, each with its line.
    problems: Vec<String>,
    tried: Option<TriedEnvelope>,
}

/// Shows a map.
pub async fn show(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    map_page(&app, &visitor, &id, &MapAnswer::default(), None).await
}

async fn map_page(
    app: &App,
    visitor: &Visitor,
    id: &str,
    answer: &MapAnswer,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let map = maps::get(app, &visitor.caller, id).await?;
    let versions = maps::versions(app, &visitor.caller, id).await?;
    let newest = EnvelopeSearch::default();
    let contracts = envelopes::search(app, &visitor.caller, &newest, CHOICE).await?;

    let (texts, sends) = (visitor.texts, visitor.may(Permission::Send));
    let body = html! {
        p.soft {
            code { (map.fact_map_id) } " · " (texts.with("template-version", [("number", map.version)])) " · "
            (visitor.moment(map.updated_at)) " · " (map.made_by)
        }
        p.soft { "SHA-256 " code { (map.sha256) } }
        p { (scope(texts, &map.applies_to)) }
        @if let Some(tried) = &answer.tried { (outcome(texts, tried)) }
        section.card {
            h2 { (texts.text("facts-map-facts")) }
            (facts_of(texts, &map.facts))
        }
        @if sends { (text_form(visitor, &map, &contracts, answer, refused)) }
        (version_list(visitor, &map, &versions))
        p { a href={ (PATH) "/fact-maps" } { (texts.text("facts-maps")) } }
    };
    Ok(visitor.form_page(Place::Templates, None, &map.name, body, refused))
}

/// Renders the envelopes that a map applies to.
fn scope(texts: Texts, scope: &FactMapScope) -> Markup {
    let packages = scope.packages.iter().map(|id| id.to_string());
    let others: Vec<String> = packages.chain(scope.contract_kinds.clone()).collect();
    html! {
        (texts.text("facts-map-for")) ": "
        @if scope.all { (texts.text("facts-map-all")) }
        @for template in &scope.templates {
            a href={ (PATH) "/templates/" (template) } { code { (template) } } " "
        }
        (others.join(", "))
    }
}

/// Renders the facts of a map as a table.
fn facts_of(texts: Texts, facts: &[MappedFact]) -> Markup {
    let columns = [
        "envelopes-fact",
        "facts-map-kind",
        "facts-map-fields",
        "facts-map-printed",
        "facts-map-declared",
    ];
    html! {
        div.scroll tabindex="0" role="region" aria-label=(texts.text("facts-map-facts")) {
            table {
                thead { tr { @for column in columns { th scope="col" { (texts.text(column)) } } } }
                tbody {
                    @for fact in facts {
                        tr {
                            th scope="row" { code { (fact.name) } }
                            td {
                                (json!(fact.kind).as_str().unwrap_or_default())
                                @if let Some(currency) = &fact.currency { " " (currency) }
                                @if let Some(order) = &fact.date_order { " " (order) }
                            }
                            td { (fact.fields.join(", ")) }
                            td { @for place in &fact.printed { p.soft { (printed(texts, place)) } } }
                            td { (fact.declared.as_deref().unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }
}

/// Renders where the printed text has a value.
fn printed(texts: Texts, place: &PrintedPlace) -> Markup {
    let text = match place.direction {
        FactDirection::RightOf => "facts-map-right-of",
        FactDirection::Below => "facts-map-below",
        FactDirection::NumberOfLine => "facts-map-number-of-line",
    };
    let values = [
        ("anchor", place.anchor.clone()),
        ("number", place.number.unwrap_or(1).to_string()),
    ];
    html! {
        (texts.with(text, values))
        @if let Some(page) = place.page { " · " (texts.with("envelopes-fact-page", [("page", page)])) }
    }
}

/// Renders the text of a map, which is tried on a contract, or stored as a version.
fn text_form(
    visitor: &Visitor,
    map: &FactMapView,
    contracts: &[FoundEnvelope],
    answer: &MapAnswer,
    refused: Option<&RefusedForm>,
) -> Markup {
    let (texts, action) = (visitor.texts, address(&map.fact_map_id));
    let form = FormView::new(texts, &action, refused);
    let choices: Vec<(String, String)> = contracts
        .iter()
        .map(|one| {
            let (day, state) = (one.created_at.date(), status(texts, one.status));
            (
                one.id.to_string(),
                format!("{} · {state} · {day}", one.name),
            )
        })
        .collect();

    html! {
        section.card {
            h2 { (texts.text("facts-map-text")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.lines("text", &texts.text("facts-map-toml"), ROWS, &text_of(map)))
                @if answer.problems.len() > 1 {
                    ul { @for problem in &answer.problems { li.problem { (problem) } } }
                }
                (form.select("envelope", &texts.text("facts-map-contract"), &choices, ""))
                div.actions {
                    button.quiet type="submit" name="act" value="try" { (texts.text("facts-map-try")) }
                    button type="submit" name="act" value="save" { (texts.text("facts-map-save")) }
                }
                p.soft { (texts.text("facts-map-save-hint")) }
            }
        }
    }
}

/// Returns the content of a map as its text.
fn text_of(map: &FactMapView) -> String {
    let document = FactMapDocument {
        name: map.name.clone(),
        applies_to: map.applies_to.clone(),
        facts: map.facts.clone(),
    };
    toml_document::written(&document).unwrap_or_default()
}

/// Renders the facts that a map reads from a contract, and the pages that it reads them from.
fn outcome(texts: Texts, tried: &TriedEnvelope) -> Markup {
    html! {
        section.card id="tried" {
            h2 { (texts.text("facts-map-tried")) }
            p {
                a href={ (PATH) "/envelopes/" (tried.envelope_id) } { code { (tried.envelope_id) } }
            }
            @if tried.component.is_none() {
                p.alarm { (texts.text("facts-map-no-document")) }
            } @else {
                (facts::table(texts, &tried.facts))
                p.soft { (texts.text("facts-map-colours")) }
            }
            @for drawing in &tried.drawings {
                figure.page-drawing {
                    // Drawn by this program, which writes texts of the document as texts.
                    (PreEscaped(&drawing.svg))
                    figcaption { (texts.with("envelopes-fact-page", [("page", drawing.page)])) }
                }
            }
        }
    }
}

fn version_list(visitor: &Visitor, map: &FactMapView, versions: &[FactMapView]) -> Markup {
    let texts = visitor.texts;
    html! {
        details.card {
            summary { (texts.text("template-versions")) }
            ul.rows {
                @for one in versions {
                    li {
                        p {
                            strong { (texts.with("template-version", [("number", one.version)])) }
                            @if one.version == map.version { " · " (texts.text("template-version-present")) }
                        }
                        p.soft { (visitor.moment(one.updated_at)) " · " (one.made_by) }
                        p.soft { "SHA-256 " code { (one.sha256) } }
                        @if visitor.may(Permission::Send) && one.version != map.version {
                            form method="post" action={ (address(&map.fact_map_id)) "/versions" } {
                                (visitor.token())
                                input type="hidden" name="number" value=(one.version);
                                button.quiet type="submit" { (texts.text("template-version-restore")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Stores the text of a map as its next version, or tries it on a contract first.
pub async fn save(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    // As it was sent: without its first lines, the numbers of the others would be wrong.
    let text = form.values.get("text").map_or("", String::as_str);
    let document = match read(text) {
        Ok(document) => document,
        Err(problems) => return again(&app, &form, &id, problems).await,
    };
    if form.value("act") == "try" {
        return attempt(&app, &form, &id, document).await;
    }

    let caller = &form.visitor.caller;
    match maps::replace(&app, caller, &id, document, &unrecorded()).await {
        Ok(_) => Ok(Redirect::to(&address(&id)).into_response()),
        Err(error) => again(&app, &form, &id, problems_at(text, error)?).await,
    }
}

/// Returns the problems of a text. An error that no other text prevents stays one.
fn problems_at(text: &str, error: ServiceError) -> Result<Vec<String>, HttpError> {
    let error = HttpError::from(error);
    if error.status().is_server_error() {
        Err(error)
    } else {
        Ok(by_line(text, error))
    }
}

/// Returns the message of each issue, with its line.
fn by_line(text: &str, error: HttpError) -> Vec<String> {
    let error = error.with_lines(toml_document::lines(text));
    let issues: Vec<String> = error.issues().into_iter().map(|(_, issue)| issue).collect();
    if issues.is_empty() {
        vec![error.message().to_owned()]
    } else {
        issues
    }
}

/// Reads the text of a map, or returns its problems.
fn read(text: &str) -> Result<FactMapDocument, Vec<String>> {
    let value = toml_document::json(text).map_err(|why| vec![why])?;
    valid::<FactMapDocument>(value).map_err(|error| by_line(text, error))
}

/// Shows a map with the problems of the text that was sent.
async fn again(app: &App, form: &ConsoleForm, id: &str, problems: Vec<String>) -> PageResult {
    let first = problems.first().cloned().unwrap_or_default();
    let refused = form.refused_at("text", first);
    let answer = MapAnswer {
        problems,
        tried: None,
    };
    map_page(app, &form.visitor, id, &answer, Some(&refused)).await
}

/// Reads the facts of a contract with the text of a form. Nothing is stored.
async fn attempt(app: &App, form: &ConsoleForm, id: &str, document: FactMapDocument) -> PageResult {
    let (visitor, envelope) = (&form.visitor, form.value("envelope"));
    if let Err(error) = envelopes::get(app, &visitor.caller, envelope).await {
        let ServiceError::NotFound(_) = error else {
            return Err(error.into());
        };
        let refused = form.refused_at("envelope", visitor.texts.text("problem-option"));
        return map_page(app, visitor, id, &MapAnswer::default(), Some(&refused)).await;
    }

    match trial::changed(app, &visitor.caller, id, document, envelope).await {
        Ok(tried) => {
            let answer = MapAnswer {
                problems: Vec::new(),
                tried: Some(tried),
            };
            map_page(app, visitor, id, &answer, Some(&form.kept())).await
        }
        Err(error) => {
            let text = form.values.get("text").map_or("", String::as_str);
            again(app, form, id, problems_at(text, error)?).await
        }
    }
}

/// Makes an earlier version the present one.
pub async fn restore(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    // No version has the number 0.
    let number = form.value("number").parse().unwrap_or_default();
    maps::restore(&app, &form.visitor.caller, &id, number, &unrecorded()).await?;
    Ok(Redirect::to(&address(&id)).into_response())
}
