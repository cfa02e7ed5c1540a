//! Packages: templates that are sent as one document.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::live::LiveList;
use super::navigation::{PageResult, Place, export};
use super::signed_in::{ConsoleForm, Visitor};
use crate::error::HttpError;
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
pub async fn list(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    shown(&app, &visitor, None).await
}

async fn shown(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    let (caller, all) = (&visitor.caller, templates::TemplateFilter::default());
    let (found, _) = packages::list(app, caller, 1, PAGE).await?;
    let (templates, _) = templates::list(app, caller, &all, 1, PAGE).await?;

    let texts = visitor.texts;
    let changes = visitor.may(Permission::Send);
    // A deleted member stays in the list, because its package cannot be used until it is changed.
    let body = html! {
        @if changes {
            @let view = view_of(visitor, None, refused);
            details.card open[view.is_refused()] {
                summary { (texts.text("package-new")) }
                (form(visitor, &view, &templates, None))
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
                        @let view = view_of(visitor, Some(package), refused);
                        details open[view.is_refused()] {
                            summary { (texts.text("console-change")) }
                            (form(visitor, &view, &templates, Some(package)))
                        }
                    }
                }
            }
        }
        (export(texts, "packages.csv"))
    };

    Ok(visitor.form_page(
        Place::Templates,
        Some(&LiveList::Packages),
        &texts.text("console-packages"),
        body,
        refused,
    ))
}

/// Returns the address of the form for a new package, or for changing one.
fn action_of(package: Option<&PackageView>) -> String {
    match package {
        Some(package) => format!("{}/{}", page(), package.package_id),
        None => page(),
    }
}

/// Returns one of the forms. Several are on the page, so the ids of their controls have to differ.
fn view_of<'a>(
    visitor: &Visitor,
    package: Option<&PackageView>,
    refused: Option<&'a RefusedForm>,
) -> FormView<'a> {
    let of = package.map_or("new", |package| package.package_id.as_str());
    FormView::new(visitor.texts, &action_of(package), refused).with_ids(of)
}

/// Renders the form for a new package, or for changing one. Numbers give the order.
fn form(
    visitor: &Visitor,
    view: &FormView<'_>,
    templates: &[Template],
    package: Option<&PackageView>,
) -> Markup {
    let texts = visitor.texts;
    let place = |template: &Template| {
        let items = package?.items.iter();
        let mut items = items
            .zip(1..)
            .filter(|(item, _)| item.template_id == template.id);
        items.next().map(|(_, place): (_, u32)| place.to_string())
    };
    let name = package.map_or("", |package| package.name.as_str());

    html! {
        form method="post" action=(action_of(package)) {
            (visitor.token())
            (view.summary())
            (view.text(&TextField {
                present: name,
                ..TextField::required("name", &texts.text("rules-name"))
            }))
            fieldset id=(view.id("templates")) tabindex="-1" aria-describedby=[view.described("templates")] {
                legend { (texts.text("package-order")) }
                (view.problem("templates"))
                @for template in templates {
                    @let field = format!("at-{}", template.id);
                    @let id = view.id(&field);
                    div.numbered {
                        input id=(id) name=(field) type="number" min="1" max=(MEMBERS)
                            value=(view.value(&field, &place(template).unwrap_or_default()));
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

/// Refuses a form with a place that is no number of the list.
fn misplaced(form: &ConsoleForm) -> Option<RefusedForm> {
    let is_place = |text: &str| {
        let place = text.parse::<usize>();
        text.is_empty() || place.is_ok_and(|place| (1..=MEMBERS).contains(&place))
    };
    let names = form.values.keys().filter(|name| name.starts_with("at-"));
    let mut places = names.map(|name| form.value(name));
    if places.all(is_place) {
        return None;
    }

    let texts = form.visitor.texts;
    let problem = texts.with("package-place-wrong", [("most", MEMBERS)]);
    Some(form.refused_at("templates", problem))
}

/// Makes a package.
pub async fn create(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;
    if let Some(refused) = misplaced(&form) {
        return shown(&app, &form.visitor, Some(&refused)).await;
    }

    let made = match valid::<CreatePackage>(body(&form)) {
        Ok(new) => packages::create(&app, &form.visitor.caller, new, &unrecorded())
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    after(&app, &form, made).await
}

/// Leads to the packages, or shows the refused form among them.
async fn after(app: &App, form: &ConsoleForm, done: Result<PackageView, HttpError>) -> PageResult {
    let members = [("template_ids".to_owned(), "templates".to_owned())];
    match done {
        Ok(_) => Ok(Redirect::to(&page()).into_response()),
        Err(error) => {
            let refused = form.refused_with(error, &members)?;
            shown(app, &form.visitor, Some(&refused)).await
        }
    }
}

/// Changes a package.
pub async fn change(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;
    if let Some(refused) = misplaced(&form) {
        return shown(&app, &form.visitor, Some(&refused)).await;
    }

    let changed = match valid::<ChangePackage>(body(&form)) {
        Ok(change) => packages::change(&app, &form.visitor.caller, &id, change)
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    after(&app, &form, changed).await
}
