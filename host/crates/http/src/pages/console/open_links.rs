//! Open links of a template: their list with QR codes, a form for another one, and their end.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place, copied};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::qr::svg;
use holdfast_domain::open_link::{OpenLinkSigner, OpenLinkStatus};
use holdfast_domain::organization::Permission;
use holdfast_domain::template::Template;
use holdfast_service::App;
use holdfast_service::envelopes::open_links::{self, CreateOpenLink, OpenLinkView};
use holdfast_service::templates;

/// Links of a page.
const MOST: i64 = 100;

fn address(template: &impl std::fmt::Display) -> String {
    format!("{PATH}/templates/{template}/open-links")
}

/// Lists the open links of a template, with a form for another one.
pub async fn list(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::Send)?;

    page(&app, &visitor, &id, None).await
}

async fn page(app: &App, visitor: &Visitor, id: &str, refused: Option<&RefusedForm>) -> PageResult {
    let caller = &visitor.caller;
    let template = templates::get(app, caller, id).await?;
    let (links, _) = open_links::list(app, caller, id, 1, MOST).await?;

    let texts = visitor.texts;
    let body = html! {
        p { a href={ (PATH) "/templates/" (template.id) } { (template.name) } }
        p.soft { (texts.text("open-links-hint")) }
        ul.rows { @for link in &links { (row(visitor, link)) } }
        (form(visitor, &template, refused))
    };

    let title = texts.text("open-links");
    Ok(visitor.form_page(Place::Templates, None, &title, body, refused))
}

fn row(visitor: &Visitor, link: &OpenLinkView) -> Markup {
    let texts = visitor.texts;
    let act = |name: &str| format!("{PATH}/open-links/{}/{name}", link.open_link_id);
    let status = match link.status {
        OpenLinkStatus::Open => "open-status-open",
        OpenLinkStatus::Expired => "open-status-expired",
        OpenLinkStatus::UsedUp => "open-status-used-up",
        OpenLinkStatus::Closed => "open-status-closed",
    };
    let counts = [("used", link.used), ("limit", link.limit)];

    html! {
        li {
            p { strong { (link.name) } " · " (texts.text(status)) }
            p.soft {
                (link.role) " · " (texts.with("open-count", counts)) " · "
                (texts.text("open-expires")) " " (visitor.moment(link.expires_at))
            }
            @if link.status == OpenLinkStatus::Open {
                (copied(texts, &format!("url-{}", link.open_link_id), &texts.text("open-url"), &link.url))
                details {
                    summary { (texts.text("open-qr")) }
                    img src=(act("qr.svg")) alt=(texts.text("open-qr")) width="200" height="200" loading="lazy";
                    p { a href=(act("qr.svg")) download={ (link.open_link_id) ".svg" } { (texts.text("open-qr-download")) } }
                }
            }
            @if link.status != OpenLinkStatus::Closed {
                form method="post" action=(act("close")) {
                    (visitor.token())
                    button.quiet type="submit" { (texts.text("open-close")) }
                }
            }
        }
    }
}

fn form(visitor: &Visitor, template: &Template, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = address(&template.id);
    let form = FormView::new(texts, &action, refused);
    let roles = template.roles();
    let choices = roles
        .iter()
        .map(|role| ((*role).to_owned(), (*role).to_owned()));
    let choices: Vec<_> = choices.collect();
    let first = roles.first().copied().unwrap_or_default();

    html! {
        section.card {
            h2 { (texts.text("open-new")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.text(&TextField {
                    present: &template.name,
                    limit: 200,
                    ..TextField::required("name", &texts.text("rules-name"))
                }))
                @if roles.len() > 1 {
                    (form.select("role", &texts.text("open-role"), &choices, first))
                    p.soft { (texts.text("open-others")) }
                    @for (at, role) in roles.iter().enumerate() {
                        fieldset {
                            legend { (role) }
                            (form.text(&TextField::new(&format!("name-{at}"), &texts.text("rules-name"))))
                            (form.text(&TextField {
                                kind: "email",
                                limit: 200,
                                ..TextField::new(&format!("email-{at}"), &texts.text("sign-in-email"))
                            }))
                        }
                    }
                }
                (form.text(&TextField {
                    kind: "date",
                    ..TextField::required("expires_at", &texts.text("open-until"))
                }))
                (form.text(&TextField {
                    kind: "number",
                    present: "100",
                    ..TextField::required("limit", &texts.text("open-limit"))
                }))
                (form.text(&TextField {
                    limit: 64,
                    ..TextField::new("code", &texts.text("open-code"))
                }))
                (form.lines("notify", &texts.text("open-notify"), 2, ""))
                (form.tick("verify_email", &texts.text("open-verify"), true))
                (form.tick("proof_of_work", &texts.text("open-proof"), true))
                button type="submit" { (texts.text("open-create")) }
            }
        }
    }
}

/// Returns the body of `POST /partner/templates/{id}/open-links` for a form, or the form with its problem.
fn request(template: &Template, form: &ConsoleForm) -> Result<Value, RefusedForm> {
    let roles = template.roles();
    // A template with one role has no choice of it.
    let role = Some(form.value("role")).filter(|role| !role.is_empty());
    let role = role.or(roles.first().copied()).unwrap_or_default();
    let others = roles
        .iter()
        .enumerate()
        .filter(|(_, other)| **other != role);

    let mut signers = Vec::new();
    for (at, other) in others {
        let (name, email) = (format!("name-{at}"), format!("email-{at}"));
        let signer = json!({
            "role": other, "name": form.value(&name), "email": form.value(&email),
        });
        // The index of a person in the request is not that of the fields, so each is checked here.
        if form.value(&name).is_empty() {
            let problem = form.visitor.texts.text("open-name-wrong");
            return Err(form.refused_at(&name, problem));
        }
        if valid::<OpenLinkSigner>(signer.clone()).is_err() {
            let problem = form.visitor.texts.text("open-email-wrong");
            return Err(form.refused_at(&email, problem));
        }

        signers.push(signer);
    }

    let limit = form.value("limit");
    let notify: Vec<&str> = form.value("notify").split_whitespace().collect();
    let mut body = json!({
        "name": form.value("name"), "role": role, "signers": signers,
        "expires_at": format!("{}T23:59:59Z", form.value("expires_at")),
        // Another text is refused by the schema, which names the field.
        "limit": limit.parse::<i64>().map_or_else(|_| Value::from(limit), Value::from),
        "notify": notify, "verify_email": form.value("verify_email") == "yes",
        "proof_of_work": if form.value("proof_of_work") == "yes" { "on" } else { "off" },
    });
    let code = form.value("code");
    if !code.is_empty() {
        body["code"] = code.into();
    }

    Ok(body)
}

/// Creates an open link.
pub async fn create(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let visitor = &form.visitor;
    let template = templates::get(&app, &visitor.caller, &id).await?;
    let body = match request(&template, &form) {
        Ok(body) => body,
        Err(refused) => return page(&app, visitor, &id, Some(&refused)).await,
    };
    let made = match valid::<CreateOpenLink>(body) {
        Ok(new) => open_links::create(&app, &visitor.caller, &id, new, &unrecorded())
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };

    match made {
        Ok(_) => Ok(Redirect::to(&address(&id)).into_response()),
        Err(error) => page(&app, visitor, &id, Some(&form.refused(error)?)).await,
    }
}

/// Returns the address of a link as a QR code.
pub async fn qr(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::Send)?;

    let link = open_links::get(&app, &visitor.caller, &id).await?;
    let drawing = svg(&link.url)?;
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "private, max-age=3600"),
        // Opened by itself, the drawing runs and loads nothing.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    Ok((headers, drawing).into_response())
}

/// Closes a link. Its records stay.
pub async fn close(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let (caller, texts) = (&form.visitor.caller, form.visitor.texts);
    let link = open_links::get(&app, caller, &id).await?;
    form.meant(&SensitiveAct {
        label: texts.text("open-close"),
        objects: vec![link.name],
        consequence: texts.text("sure-open-close"),
        is_typed: false,
        back: address(&link.template_id),
    })?;

    let link = open_links::close(&app, caller, &id, &unrecorded()).await?;
    Ok(Redirect::to(&address(&link.template_id)).into_response())
}
