//! Templates: the list, one with its pages and fields, a preview as signer, and the field builder.

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Path, Query, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::live::LiveList;
use super::navigation::{self, PageResult, Place, encoded, export};
use super::sign_on::open_builder;
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use super::template_versions;
use crate::error::HttpError;
use crate::middleware::extract::{MultipartForm, valid};
use crate::pages::builder::{preview_look, preview_page};
use crate::reply::{FileReply, Pdf};
use holdfast_domain::id::TemplateId;
use holdfast_domain::organization::{Permission, Role};
use holdfast_domain::template::{
    SourceFormat, Template, TemplateSharing, TemplateVariable, TemplateVersion,
};
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::builder::{self, FieldBuilderSession, PreviewFields};
use holdfast_service::templates::duplicates::{self, DuplicateTemplate};
use holdfast_service::templates::pages::{self, WIDTHS};
use holdfast_service::templates::{
    self, ChangeTemplate, CreateTemplate, CreatedTemplate, TemplateFilter, deletion, folders,
    versions,
};

/// Templates of a page.
const PAGE: i64 = 50;
/// Types of files that the form offers.
const ACCEPTED: &str = ".pdf,.docx,.odt,application/pdf";
/// Most pages that are shown as pictures.
const PICTURES: usize = 20;

pub(super) fn address(id: &impl std::fmt::Display) -> String {
    format!("{PATH}/templates/{id}")
}

#[derive(Default, Deserialize)]
pub struct ListQuery {
    page: Option<i64>,
    /// `yes` lists the deleted templates that can be restored.
    deleted: Option<String>,
    tag: Option<String>,
    folder: Option<String>,
}

/// Lists the templates, with a form for another one.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    list_page(&app, &visitor, &query, None).await
}

async fn list_page(
    app: &App,
    visitor: &Visitor,
    query: &ListQuery,
    refused: Option<&RefusedForm>,
) -> PageResult {
    // Bounds the offset that a hand-written address can ask for.
    let page = query.page.unwrap_or(1).clamp(1, 10_000);
    let filter = TemplateFilter {
        deleted: query.deleted.as_deref() == Some("yes"),
        tag: query.tag.clone().filter(|tag| !tag.is_empty()),
        folder: query.folder.clone().filter(|folder| !folder.is_empty()),
    };
    let (found, total) = templates::list(app, &visitor.caller, &filter, page, PAGE).await?;
    let folders = folders::list(app, &visitor.caller).await?;

    let texts = visitor.texts;
    let more = (total > page * PAGE).then(|| older(&filter, page + 1));
    if filter.deleted {
        return Ok(deleted_page(visitor, &found, more));
    }

    let body = html! {
        @if visitor.may(Permission::Send) { (upload_form(visitor, refused)) }
        @if let Some(tag) = &filter.tag {
            p { (texts.text("template-tag")) ": " strong { (tag) } " · " a href={ (PATH) "/templates" } { (texts.text("template-all")) } }
        }
        @if !folders.is_empty() {
            p {
                (texts.text("template-folders")) ":"
                @for folder in &folders {
                    " "
                    a href={ (PATH) "/templates?folder=" (encoded(folder)) }
                        aria-current=[(filter.folder.as_ref() == Some(folder)).then_some("true")] { (folder) }
                }
                @if filter.folder.is_some() { " · " a href={ (PATH) "/templates" } { (texts.text("template-all")) } }
            }
        }
        @if found.is_empty() {
            p { @if visitor.may(Permission::Send) { (texts.text("empty-templates")) } @else { (texts.text("console-nothing")) } }
        }
        ul.rows {
            @for template in &found {
                li {
                    a href=(address(&template.id)) { (template.name) }
                    p.soft {
                        (template.roles().join(", "))
                        " · " (texts.with("template-fields", [("count", template.fields.len())]))
                        " · " (visitor.moment(template.updated_at))
                        @for tag in &template.tags {
                            " · " a href={ (PATH) "/templates?tag=" (encoded(tag)) } { (tag) }
                        }
                        @if let Some(folder) = &template.folder {
                            " · " a href={ (PATH) "/templates?folder=" (encoded(folder)) } { (folder) }
                        }
                        @if !template.shared_with.is_with_all() { " · " (texts.text("template-limited")) }
                    }
                    // The values of variables are given on the page of the template.
                    @if visitor.may(Permission::Send) && !template.fields.is_empty() && template.variables().is_empty() {
                        (send_form(visitor, &template.id, true))
                    }
                }
            }
        }
        @if let Some(more) = &more { p { a href=(more) { (texts.text("template-older")) } } }
        p { a href={ (PATH) "/packages" } { (texts.text("console-packages")) } }
        p { a href={ (PATH) "/fact-maps" } { (texts.text("facts-maps")) } }
        p { a href={ (PATH) "/templates?deleted=yes" } { (texts.text("template-deleted")) } }
        (export(texts, "templates.csv"))
    };

    Ok(visitor.form_page(
        Place::Templates,
        Some(&LiveList::Templates),
        &texts.text("console-templates"),
        body,
        refused,
    ))
}

/// Renders the button that begins a draft of a template.
fn send_form(visitor: &Visitor, template: &TemplateId, is_quiet: bool) -> Markup {
    html! {
        form method="post" action={ (PATH) "/drafts/template" } {
            (visitor.token())
            button.quiet[is_quiet] type="submit" name="template" value=(template) {
                (visitor.texts.text("console-send"))
            }
        }
    }
}

/// Renders the form that begins a draft of a template with values of its variables.
fn variables_form(visitor: &Visitor, template: &Template, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{PATH}/drafts/template");
    let form = FormView::new(texts, &action, refused);
    html! {
        section.card {
            h2 { (texts.text("template-variables")) }
            p.soft { (texts.text("template-variables-note")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                input type="hidden" name="template" value=(template.id);
                @for (index, variable) in template.variables().iter().enumerate() {
                    @let present = variable.default.as_deref().unwrap_or_default();
                    (form.lines(&variable_field(index), &variable.name, 2, present))
                }
                button type="submit" { (texts.text("console-send")) }
            }
        }
    }
}

/// Returns the name of the field with the value of a variable.
pub(super) fn variable_field(index: usize) -> String {
    format!("variable-{index}")
}

/// Returns the name of the field with the default of a variable.
fn default_field(index: usize) -> String {
    format!("default-{index}")
}

/// Returns the name of the box of a role that sees a template.
fn role_field(role: Role) -> String {
    format!("shared_{role}")
}

/// Renders the fields for the folder of a template and the users who see it.
fn sharing_fields(visitor: &Visitor, template: &Template, form: &FormView<'_>) -> Markup {
    let texts = visitor.texts;
    let shared = &template.shared_with;
    let users = shared.users.join(", ");
    html! {
        (form.text(&TextField {
            present: template.folder.as_deref().unwrap_or_default(),
            limit: 200,
            ..TextField::new("folder", &texts.text("template-folder"))
        }))
        fieldset {
            legend { (texts.text("template-shared-roles")) }
            @for role in shared_roles() {
                (form.tick(&role_field(role), &navigation::role(texts, role), shared.roles.contains(&role)))
            }
        }
        (form.text(&TextField {
            present: &users,
            limit: 10_000,
            ..TextField::new("shared_users", &texts.text("template-shared-users"))
        }))
    }
}

/// Returns the roles that a template can be shared with: those that read templates and do not see all.
fn shared_roles() -> impl Iterator<Item = Role> {
    let roles = Permission::ReadEnvelopes.roles();
    roles.filter(|role| !matches!(role, Role::Owner | Role::Admin))
}

/// Returns the address of a further page of the list.
fn older(filter: &TemplateFilter, page: i64) -> String {
    let tag = filter.tag.as_deref().unwrap_or_default();
    if let Some(folder) = &filter.folder {
        return format!("{PATH}/templates?folder={}&page={page}", encoded(folder));
    }
    if filter.deleted {
        format!("{PATH}/templates?deleted=yes&page={page}")
    } else if tag.is_empty() {
        format!("{PATH}/templates?page={page}")
    } else {
        format!("{PATH}/templates?tag={}&page={page}", encoded(tag))
    }
}

/// Lists deleted templates with the day until which each can be restored.
fn deleted_page(visitor: &Visitor, found: &[Template], more: Option<String>) -> Response {
    let texts = visitor.texts;
    let body = html! {
        @if found.is_empty() { p { (texts.text("console-nothing")) } }
        ul.rows {
            @for template in found {
                li {
                    p { strong { (template.name) } }
                    @if let Some(until) = template.restorable_until() {
                        p.soft { (texts.text("template-restorable")) " " (visitor.moment(until)) }
                    }
                    @if visitor.may(Permission::Send) {
                        form method="post" action={ (address(&template.id)) "/restore" } {
                            (visitor.token())
                            button.quiet type="submit" { (texts.text("template-restore")) }
                        }
                    }
                }
            }
        }
        @if let Some(more) = &more { p { a href=(more) { (texts.text("template-older")) } } }
        p { a href={ (PATH) "/templates" } { (texts.text("template-all")) } }
    };

    let title = texts.text("template-deleted");
    visitor.page(Place::Templates, &title, body)
}

/// Renders the form that takes a document.
fn upload_form(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{PATH}/templates");
    let form = FormView::new(texts, &action, refused);
    html! {
        section.card {
            h2 { (texts.text("template-new")) }
            form method="post" action=(action) enctype="multipart/form-data" {
                (visitor.token())
                (form.summary())
                (form.file(&texts.text("template-file"), Some(ACCEPTED)))
                (form.text(&TextField::required("name", &texts.text("rules-name"))))
                (form.tick("kba_required", &texts.text("template-kba"), false))
                (form.tick("accept_certification_loss", &texts.text("template-certification"), false))
                button type="submit" { (texts.text("template-upload")) }
            }
        }
    }
}

/// Fields of the form for a new template.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct TemplateFields {
    token: String,
    file: String,
    name: String,
    kba_required: String,
    accept_certification_loss: String,
}

/// Takes a document, and leads to its template. Fields come from its tags.
pub async fn upload(State(app): State<App>, request: Request) -> PageResult {
    // The session is checked before the body is read, so that a stranger uploads nothing.
    let (mut parts, body) = request.into_parts();
    let visitor = Visitor::from_request_parts(&mut parts, &app).await?;
    visitor.require(Permission::Send)?;

    let form = visitor.upload::<TemplateFields>(&app, Request::from_parts(parts, body));
    let mut form = form.await?;
    let entries = form.texts.clone();
    match make(&app, &visitor, &mut form).await {
        Ok(made) => Ok(Redirect::to(&address(&made.template.id)).into_response()),
        Err(error) => {
            let action = format!("{PATH}/templates");
            let members = ["name", "file"].map(|name| (name.to_owned(), name.to_owned()));
            let refused = RefusedForm::of(&action, &entries, error, &members)?;
            list_page(&app, &visitor, &ListQuery::default(), Some(&refused)).await
        }
    }
}

async fn make(
    app: &App,
    visitor: &Visitor,
    form: &mut MultipartForm<TemplateFields>,
) -> Result<CreatedTemplate, HttpError> {
    let file = form.file()?;
    let mut text = |name: &str| form.texts.remove(name).unwrap_or_default();
    let name = text("name").trim().to_owned();
    // `CreateTemplate` is built here and not parsed, so no schema checks the name.
    let problem = match name.chars().count() {
        0 => Some("name is required"),
        1..=500 => None,
        _ => Some("name has more than 500 characters"),
    };
    if let Some(problem) = problem {
        let issue = json!([{ "path": ["name"], "message": problem }]);
        return Err(HttpError::bad_request(problem).with_details(issue));
    }

    let new = CreateTemplate {
        name,
        external_id: None,
        file,
        fields: None,
        kba_required: text("kba_required") == "yes",
        source_format: SourceFormat::Pdf,
        pricing_table: false,
        accept_certification_loss: text("accept_certification_loss") == "yes",
        folder: None,
        shared_with: TemplateSharing::default(),
    };

    Ok(templates::create(app, &visitor.caller, new, &unrecorded()).await?)
}

/// Shows one template.
pub async fn show(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    show_again(&app, &visitor, &id, None).await
}

pub(super) async fn show_again(
    app: &App,
    visitor: &Visitor,
    id: &str,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let template = templates::get(app, &visitor.caller, id).await?;
    let count = match &template.document {
        Some(document) => pages::facts(app, &app.pages, document).await?.len(),
        None => 0,
    };
    let versions = versions::list(app, &visitor.caller, id).await?;

    Ok(shown(visitor, &template, count, &versions, refused))
}

fn shown(
    visitor: &Visitor,
    template: &Template,
    count: usize,
    versions: &[TemplateVersion],
    refused: Option<&RefusedForm>,
) -> Response {
    let texts = visitor.texts;
    let act = |name: &str| format!("{}/{name}", address(&template.id));
    let sends = visitor.may(Permission::Send);
    // Only the first pages of a long document are shown, because each picture is drawn in the sandbox.
    let body = html! {
        p.soft {
            code { (template.id) }
            @if let Some(external) = &template.external_id { " · " (external) }
            " · " (visitor.moment(template.updated_at))
            @for tag in &template.tags {
                " · " a href={ (PATH) "/templates?tag=" (encoded(tag)) } { (tag) }
            }
            @if let Some(folder) = &template.folder {
                " · " a href={ (PATH) "/templates?folder=" (encoded(folder)) } { (folder) }
            }
            @if !template.shared_with.is_with_all() { " · " (texts.text("template-limited")) }
        }
        @if template.fields.is_empty() { p.alarm { (texts.text("template-no-fields")) } }
        @if sends {
            div.actions {
                // Each envelope of a template with variables needs their values.
                @if !template.fields.is_empty() && template.variables().is_empty() {
                    (send_form(visitor, &template.id, false))
                    a.button.quiet href=(act("open-links")) { (texts.text("open-links")) }
                }
                form method="post" action=(act("edit")) {
                    (visitor.token())
                    button.quiet type="submit" { (texts.text("template-edit")) }
                }
            }
        }
        @if sends && !template.fields.is_empty() && !template.variables().is_empty() {
            (variables_form(visitor, template, refused))
        }
        section.card {
            h2 { (texts.text("template-roles")) }
            ul.rows {
                @for one in template.roles() {
                    li {
                        p { strong { (one) } }
                        p.soft {
                            @let own: Vec<&str> = template.fields.iter().filter(|field| field.role == one).map(|field| field.name.as_str()).collect();
                            (own.join(", "))
                        }
                        p { a href={ (act("preview")) "?role=" (encoded(one)) } { (texts.text("template-preview")) } }
                    }
                }
            }
        }
        @if count > 0 {
            section.card {
                h2 { (texts.text("template-pages")) }
                div.sheets {
                    @for number in 1..=count.min(PICTURES) {
                        img src={ (act("pages")) "/" (number) ".png" } loading="lazy" width="200" height="259"
                            alt=(texts.with("signing-page", [("number", number), ("count", count)]));
                    }
                }
                p { a href=(act("document")) download { (texts.text("template-download")) } }
            }
        }
        (template_versions::section(visitor, template, versions, refused))
        @if sends {
            @let duplicate = FormView::new(texts, &act("duplicate"), refused).with_ids("duplicate");
            @let copy = texts.with("template-duplicate-name", [("name", template.name.as_str())]);
            details.card open[duplicate.is_refused()] {
                summary { (texts.text("template-duplicate")) }
                form method="post" action=(act("duplicate")) {
                    (visitor.token())
                    (duplicate.summary())
                    (duplicate.text(&TextField {
                        present: &copy,
                        ..TextField::required("name", &texts.text("rules-name"))
                    }))
                    button type="submit" { (texts.text("template-duplicate")) }
                }
            }
            @let tags = template.tags.join(", ");
            @let rename = FormView::new(texts, &act("rename"), refused);
            details.card open[rename.is_refused()] {
                summary { (texts.text("console-change")) }
                form method="post" action=(act("rename")) {
                    (visitor.token())
                    (rename.summary())
                    (rename.text(&TextField {
                        present: &template.name,
                        ..TextField::required("name", &texts.text("rules-name"))
                    }))
                    (rename.text(&TextField {
                        present: &tags,
                        ..TextField::new("tags", &texts.text("template-tags"))
                    }))
                    (rename.tick("may_decline", &texts.text("template-may-decline"), template.may_decline))
                    (sharing_fields(visitor, template, &rename))
                    @for (index, variable) in template.variables().iter().enumerate() {
                        @let label = texts.with("template-variable-default", [("name", variable.name.as_str())]);
                        (rename.lines(&default_field(index), &label, 2, variable.default.as_deref().unwrap_or_default()))
                    }
                    button type="submit" { (texts.text("settings-save")) }
                }
                form method="post" action=(act("delete")) {
                    (visitor.token())
                    button.danger type="submit" { (texts.text("template-delete")) }
                }
            }
        }
    };

    visitor.form_page(Place::Templates, None, &template.name, body, refused)
}

/// Returns a picture of a page.
pub async fn picture(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, name)): Path<(String, String)>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let not_found = || ServiceError::NotFound("Page");
    let page = name.strip_suffix(".png").and_then(|page| page.parse().ok());
    let page = page.ok_or_else(not_found)?;
    let template = templates::get(&app, &visitor.caller, &id).await?;
    let document = template.document.ok_or_else(not_found)?.into();
    let picture = pages::picture(&app, &app.pages, &document, page, WIDTHS[0]).await?;

    // The address does not name the document, so a replaced one shows after an hour at most.
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        (header::CACHE_CONTROL, "private, max-age=3600"),
    ];
    Ok((headers, Body::from(picture)).into_response())
}

#[derive(Deserialize)]
pub struct PreviewQuery {
    role: Option<String>,
}

/// Shows the form that a signer will get. Nothing is stored.
pub async fn preview(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(query): Query<PreviewQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let template = templates::get(&app, &visitor.caller, &id).await?;
    let first = template.roles().first().map(|role| (*role).to_owned());
    let shown = PreviewFields {
        fields: template.fields.clone(),
        role: query.role.or(first).unwrap_or_default(),
        values: None,
    };

    // The preview is made for a session of the builder. This one has no token and ends with the call.
    let session = FieldBuilderSession {
        user: visitor.caller.creator(),
        template,
        return_url: None,
    };
    let form = builder::preview(&app, &app.pages, &session, shown).await?;

    let template = session.template;
    let look = preview_look(&form);
    Ok(preview_page(
        look,
        &template.name,
        &address(&template.id),
        &form,
    ))
}

/// Opens the builder, which leads back to the template.
pub async fn edit(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    Ok(open_builder(&app, &form.visitor, ("template_id", &id), &address(&id)).await)
}

/// Changes the name, tags, folder, sharing and defaults of a template, and whether signers may decline.
pub async fn rename(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let caller = &form.visitor.caller;
    let mut entries = json!({
        "name": form.value("name"), "may_decline": form.value("may_decline") == "yes",
    });
    if form.values.contains_key("tags") {
        entries["tags"] = json!(words(form.value("tags")));
    }
    if form.values.contains_key("folder") {
        entries["folder"] = json!(form.value("folder"));
    }
    // Browsers leave out boxes without a tick, so this field stands for all of them.
    if form.values.contains_key("shared_users") {
        let roles = shared_roles().filter(|role| form.value(&role_field(*role)) == "yes");
        let roles: Vec<Role> = roles.collect();
        let users = words(form.value("shared_users"));
        entries["shared_with"] = json!({ "roles": roles, "users": users });
    }
    if form.values.contains_key(&default_field(0)) {
        let template = templates::get(&app, caller, &id).await?;
        entries["variables"] = defaults(&template, &form);
    }

    let changed = match valid::<ChangeTemplate>(entries) {
        Ok(change) => templates::change(&app, caller, &id, change)
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    match changed {
        Ok(_) => Ok(Redirect::to(&address(&id)).into_response()),
        Err(error) => show_again(&app, &form.visitor, &id, Some(&form.refused(error)?)).await,
    }
}

/// Returns the words of a field that are separated by commas.
fn words(text: &str) -> Vec<&str> {
    let words = text.split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the defaults of variables as the API takes them. An empty one is none.
fn defaults(template: &Template, form: &ConsoleForm) -> Value {
    let default = |(index, variable): (usize, &TemplateVariable)| {
        let default = form.value(&default_field(index));
        let default = Some(default).filter(|default| !default.is_empty());
        json!({ "name": variable.name, "default": default })
    };
    template
        .variables()
        .iter()
        .enumerate()
        .map(default)
        .collect()
}

/// Makes a duplicate, and leads to it.
pub async fn duplicate(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let caller = &form.visitor.caller;
    let made = match valid::<DuplicateTemplate>(json!({ "name": form.value("name") })) {
        Ok(new) => duplicates::duplicate(&app, caller, &id, new, &unrecorded())
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    match made {
        Ok(made) => Ok(Redirect::to(&address(&made.template.id)).into_response()),
        Err(error) => show_again(&app, &form.visitor, &id, Some(&form.refused(error)?)).await,
    }
}

#[derive(Deserialize)]
pub struct DocumentQuery {
    version: Option<i64>,
}

/// Sends the document of a template, or of one of its versions.
pub async fn document(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(query): Query<DocumentQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let document = duplicates::document(&app, &visitor.caller, &id, query.version).await?;
    let reply = FileReply::<Pdf>::of_bytes(&app, &document.file_name, &document.pdf).await?;
    Ok(reply.into_response())
}

/// Takes back the deletion of a template.
pub async fn restore(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    deletion::restore(&app, &form.visitor.caller, &id).await?;
    Ok(Redirect::to(&address(&id)).into_response())
}

/// Deletes a template, which can be restored for a while. Documents that were sent from it stay.
pub async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let (caller, texts) = (&form.visitor.caller, form.visitor.texts);
    let template = templates::get(&app, caller, &id).await?;
    form.meant(&SensitiveAct {
        label: texts.text("template-delete"),
        objects: vec![template.name],
        consequence: texts.text("sure-template-delete"),
        is_typed: false,
        back: address(&id),
    })?;

    deletion::delete(&app, caller, &id).await?;
    Ok(Redirect::to(&format!("{PATH}/templates")).into_response())
}
