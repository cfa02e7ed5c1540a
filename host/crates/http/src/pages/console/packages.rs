//! Packages: templates that are sent as one document.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::live::LiveList;
use super::navigation::{Place, export, failed};
use super::signed_in::{ConsoleForm, Visitor};
use crate::middleware::extract::valid;
use holdfast_domain::organization::Permission;
use holdfast_domain::template::Template;
use holdfast_service::templates::packages::{self, ChangePackage, CreatePackage, PackageView};
use holdfast_service::{App, templates};

/// Packages and templates of the page.
const PAGE: i64 = 100;
/// Most templates of a package (specification, "Templates combined").
const MEMBERS: usize = 20;

fn page() -> String {
    format!("{PATH}/packages")
}

/// Lists the packages, with a form for another one.
pub async fn list(State(app): State<App>, visitor: Visitor) -> Response {
    if let Some(refused) = visitor.refusal(Permission::ReadEnvelopes) {
        return refused;
    }

    let read = async {
        let (found, _) = packages::list(&app, &visitor.caller, 1, PAGE).await?;
        let (templates, _) = templates::list(&app, &visitor.caller, 1, PAGE).await?;
        Ok((found, templates))
    };
    let (found, templates) = match read.await {
        Ok(read) => read,
        Err(error) => return failed(error),
    };

    let texts = visitor.texts;
    let changes = visitor.may(Permission::Send);
    // A deleted member stays in the list, because its package cannot be used until it is changed.
    let body = html! {
        @if changes {
            details.card {
                summary { (texts.text("package-new")) }
                (form(&visitor, &templates, None))
            }
        }
        @if found.is_empty() {
            p { @if changes { (texts.text("empty-packages")) } @else { (texts.text("console-nothing")) } }
        }
        ul.rows {
            @for package in &found {
                li {
                    p { strong { (package.name) } @if package.kba_required { " " span.tag { (texts.text("template-kba")) } } }
                    ol {
                        @for member in &package.items {
                            li {
                                a href={ (PATH) "/templates/" (member.template_id) } { (member.name) }
                                @if member.deleted { " " span.tag.wrong { (texts.text("package-deleted")) } }
                            }
                        }
                    }
                    @if changes {
                        details {
                            summary { (texts.text("console-change")) }
                            (form(&visitor, &templates, Some(package)))
                        }
                    }
                }
            }
        }
        (export(texts, "packages.csv"))
    };

    visitor.live_page(
        Place::Templates,
        &LiveList::Packages,
        &texts.text("console-packages"),
        body,
    )
}

/// Renders the form for a new package, or for changing one. Numbers give the order.
fn form(visitor: &Visitor, templates: &[Template], package: Option<&PackageView>) -> Markup {
    let texts = visitor.texts;
    // Several of these forms are on one page, so the ids of their controls have to differ.
    let of = package.map_or("new", |package| package.package_id.as_str());
    let action = match package {
        Some(package) => format!("{}/{}", page(), package.package_id),
        None => page(),
    };
    let place = |template: &Template| {
        let items = package?.items.iter();
        let mut items = items
            .zip(1..)
            .filter(|(item, _)| item.template_id == template.id);
        items.next().map(|(_, place)| place)
    };

    html! {
        form method="post" action=(action) {
            (visitor.token())
            div.field {
                label for={ "name-" (of) } { (texts.text("rules-name")) }
                input id={ "name-" (of) } name="name" required maxlength="500" autocomplete="off"
                    value=[package.map(|package| &package.name)];
            }
            fieldset {
                legend { (texts.text("package-order")) }
                @for template in templates {
                    @let id = format!("at-{of}-{}", template.id);
                    div.numbered {
                        input id=(id) name={ "at-" (template.id) } type="number" min="1" max=(MEMBERS) value=[place(template)];
                        label for=(id) { (template.name) }
                    }
                }
            }
            button type="submit" { (texts.text("settings-save")) }
        }
    }
}

/// Returns the body of a request for a form.
fn body(form: &ConsoleForm) -> Value {
    let mut chosen: Vec<(u32, &str)> = form
        .values
        .iter()
        .filter_map(|(name, value)| {
            // A template without a number is not in the package.
            let id = name.strip_prefix("at-")?;
            Some((value.trim().parse().ok()?, id))
        })
        .collect();
    // Equal numbers go by id, so that the same form always makes the same package.
    chosen.sort_unstable();

    let ids: Vec<&str> = chosen.into_iter().map(|(_, id)| id).collect();
    json!({ "name": form.value("name"), "template_ids": ids })
}

/// Makes a package.
pub async fn create(State(app): State<App>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Send) {
        return refused;
    }

    let new = match valid::<CreatePackage>(body(&form)) {
        Ok(new) => new,
        Err(error) => return error.into_response(),
    };
    match packages::create(&app, &form.visitor.caller, new, &unrecorded()).await {
        Ok(_) => Redirect::to(&page()).into_response(),
        Err(error) => failed(error),
    }
}

/// Changes a package.
pub async fn change(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Send) {
        return refused;
    }

    let change = match valid::<ChangePackage>(body(&form)) {
        Ok(change) => change,
        Err(error) => return error.into_response(),
    };
    match packages::change(&app, &form.visitor.caller, &id, change).await {
        Ok(_) => Redirect::to(&page()).into_response(),
        Err(error) => failed(error),
    }
}
