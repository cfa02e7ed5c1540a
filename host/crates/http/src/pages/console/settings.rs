//! Settings of the organization: brand with a preview, pages that may embed it, consent, sign-in, retention.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::PATH;
use super::changes::request;
use super::navigation::{Place, failed, role};
use super::signed_in::{ConsoleForm, Visitor, refused};
use super::users::needs_approval;
use crate::middleware::extract::valid;
use holdfast_adapters::texts::Texts;
use holdfast_domain::brand::BrandColor;
use holdfast_domain::change::FieldPatch;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::{Permission, Role, SingleSignOn};
use holdfast_platform::ServiceError;
use holdfast_platform::access::single_sign_on::redirect_uri;
use holdfast_platform::components::changes::ProposedChange;
use holdfast_platform::organizations::{self, ChangeOrganization, OrganizationView};
use holdfast_service::App;

/// Parts of the settings with their titles, each on a page of its own.
const PARTS: [(&str, &str); 8] = [
    ("general", "settings-general"),
    ("brand", "settings-brand"),
    ("origins", "settings-origins"),
    ("disclosure", "settings-disclosure"),
    ("wording", "settings-wording"),
    ("consent", "settings-consent"),
    ("sign-on", "settings-sign-on"),
    ("retention", "settings-retention"),
];

fn part_page(part: &str) -> String {
    format!("{PATH}/settings/{part}")
}

/// Shows the first part of the settings.
pub async fn show(app: State<App>, visitor: Visitor) -> Response {
    show_part(app, visitor, Path("general".to_owned())).await
}

/// Shows one part of the settings.
pub async fn show_part(
    State(app): State<App>,
    visitor: Visitor,
    Path(part): Path<String>,
) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Administer) {
        return refused;
    }
    if part == "sign-on" && visitor.signed_in.user.role != Role::Owner {
        return refused(visitor.texts);
    }

    // As the API answers it, so that no secret is in reach of the page.
    let organization = match organizations::get(&app, &visitor.caller).await {
        Ok(organization) => organization,
        Err(error) => return failed(error),
    };
    let texts = visitor.texts;
    let shown = match part.as_str() {
        "general" => general(texts, &organization),
        "brand" => brand(&visitor, &organization),
        "origins" => origins(texts, &organization),
        "disclosure" => disclosure(texts, &organization),
        "wording" => wording(texts, &organization),
        "consent" => consent(texts, &organization),
        "sign-on" => sign_on(&app, texts, &organization),
        "retention" => {
            return settings_page(&visitor, &part, by_operator(&app, texts, &organization));
        }
        _ => return failed(ServiceError::NotFound("Page")),
    };

    let title = PARTS.iter().find(|(name, _)| *name == part);
    let title = title.map_or("console-settings", |(_, title)| *title);
    let body = html! {
        p.soft { (texts.text("settings-hint")) }
        (section(&visitor, &part, title, shown))
    };
    settings_page(&visitor, &part, body)
}

/// Renders a part of the settings below the links to all parts.
fn settings_page(visitor: &Visitor, part: &str, body: Markup) -> Response {
    let texts = visitor.texts;
    let is_owner = visitor.signed_in.user.role == Role::Owner;
    let parts = PARTS
        .iter()
        .filter(|(name, _)| is_owner || *name != "sign-on");
    let title = texts.text("console-settings");
    let body = html! {
        nav.parts aria-label=(title) {
            @for (name, label) in parts {
                a href=(part_page(name)) aria-current=[(*name == part).then_some("page")] { (texts.text(*label)) }
            }
        }
        (body)
    };

    visitor.page(Place::Settings, &title, body)
}

/// Renders what the operator of the installation has set.
fn by_operator(app: &App, texts: Texts, organization: &OrganizationView) -> Markup {
    html! {
        section.card {
            h2 { (texts.text("settings-retention")) }
            p { (texts.text("settings-retention-records")) }
            @for (text, days) in retention(app) { p { (texts.with(text, [("days", days)])) } }
            p.soft { (texts.text("settings-operator")) }
        }
        @if let Some(payment) = &organization.payment {
            section.card {
                h2 { (texts.text("settings-payment")) }
                p { (payment.amount_cents) " " (payment.currency) " · " (payment.payer) }
                p.soft { (texts.text("settings-operator")) }
            }
        }
    }
}

/// Returns how many days the installation keeps data other than evidence.
fn retention(app: &App) -> [(&'static str, i64); 2] {
    let events = app.config.webhooks.retention.as_secs() / (24 * 60 * 60);
    [
        (
            "settings-retention-events",
            i64::try_from(events).unwrap_or(i64::MAX),
        ),
        (
            "settings-retention-requests",
            i64::from(app.config.request_log_days),
        ),
    ]
}

fn section(visitor: &Visitor, part: &str, title: &'static str, fields: Markup) -> Markup {
    let texts = visitor.texts;
    html! {
        section.card {
            h2 { (texts.text(title)) }
            form method="post" action=(part_page(part)) {
                (visitor.token())
                (fields)
                button type="submit" { (texts.text("settings-save")) }
            }
        }
    }
}

/// Renders a field with its label.
fn field(texts: Texts, name: &str, label: &'static str, input: Markup) -> Markup {
    html! { div.field { label for=(name) { (texts.text(label)) } (input) } }
}

fn text_field(texts: Texts, name: &str, label: &'static str, value: &str) -> Markup {
    let input =
        html! { input id=(name) name=(name) value=(value) maxlength="500" spellcheck="false"; };
    field(texts, name, label, input)
}

fn lines_field(texts: Texts, name: &str, label: &'static str, lines: &[String]) -> Markup {
    let input = html! {
        textarea id=(name) name=(name) rows="3" spellcheck="false" { (lines.join("\n")) }
    };
    field(texts, name, label, input)
}

fn general(texts: Texts, organization: &OrganizationView) -> Markup {
    let dates = &organization.dates;
    // As text, because the options are the words of the API.
    let format = json!(dates.format);
    let jurisdiction = organization.chattel_paper_jurisdiction.as_ref();
    html! {
        label.choice {
            input type="checkbox" name="auto_vault" value="yes" checked[organization.auto_vault];
            " " (texts.text("settings-auto-vault"))
        }
        (field(texts, "envelope_ttl_days", "settings-ttl", html! {
            input id="envelope_ttl_days" name="envelope_ttl_days" type="number" min="1" max="3650" required
                value=(organization.envelope_ttl_days);
        }))
        (field(texts, "language", "settings-language", languages("language", organization.language)))
        (field(texts, "format", "settings-dates", html! {
            select id="format" name="format" {
                @for (value, example) in [
                    ("iso", "2026-11-25"), ("month_first", "11/25/2026"), ("day_first", "25/11/2026"), ("dotted", "25.11.2026"),
                ] {
                    option value=(value) selected[format == value] { (example) }
                }
            }
        }))
        (text_field(texts, "time_zone", "settings-zone", dates.time_zone.as_str()))
        (text_field(texts, "jurisdiction", "settings-jurisdiction", jurisdiction.map_or("", |one| one.as_str())))
    }
}

fn languages(name: &str, chosen: Locale) -> Markup {
    html! {
        select id=(name) name=(name) {
            @for one in Locale::ALL {
                option value=(one.as_str()) lang=(one.as_str()) selected[one == chosen] { (one.own_name()) }
            }
        }
    }
}

/// Returns the name of a language in the language itself.
fn language_name(tag: &str) -> String {
    Locale::parse(tag).map_or_else(|| tag.to_owned(), |one| one.own_name().to_owned())
}

fn brand(visitor: &Visitor, organization: &OrganizationView) -> Markup {
    let texts = visitor.texts;
    let brand = &organization.brand;
    let name = brand.name.as_deref().unwrap_or_default();
    // A colour control always has a value. Ours stands for none here, and `change` reads it as none.
    let color = brand.color.clone().unwrap_or(BrandColor::OURS);
    html! {
        (text_field(texts, "brand_name", "settings-brand-name", name))
        (field(texts, "color", "settings-color", html! {
            input id="color" name="color" type="color" value=(color.to_string());
        }))
        (field(texts, "logo", "settings-logo", html! {
            input id="logo" type="file" accept="image/png,image/jpeg" data-into="logo_data";
            input type="hidden" id="logo_data" name="logo_data";
        }))
        @if brand.logo_sha256.is_some() {
            label.choice { input type="checkbox" name="no_logo" value="yes"; " " (texts.text("settings-no-logo")) }
        }
        (preview(texts, visitor.organization.display_name(), &color))
    }
}

/// Renders a mail and a form in the brand's colour. The script repaints it as the fields change.
fn preview(texts: Texts, name: &str, color: &BrandColor) -> Markup {
    let titles = [
        ("0", "settings-preview-mail"),
        ("330", "settings-preview-form"),
    ];
    html! {
        svg.preview viewBox="0 0 650 230" role="img" aria-label=(texts.text("settings-preview")) data-preview="" {
            @for (x, title) in titles {
                g transform=(format!("translate({x} 0)")) {
                    rect x="1" y="1" width="318" height="226" rx="10" fill="#ffffff" stroke="#c8c8d0" {}
                    text data-name="" x="20" y="40" font-size="17" font-weight="700" fill="#1b1b1f" { (name) }
                    rect data-paint="" x="20" y="54" width="280" height="4" fill=(color.to_string()) {}
                    text x="20" y="92" font-size="14" fill="#55555f" { (texts.text(title)) }
                    rect x="20" y="106" width="280" height="8" rx="4" fill="#e7e7ee" {}
                    rect x="20" y="122" width="220" height="8" rx="4" fill="#e7e7ee" {}
                    rect data-paint="" x="20" y="154" width="150" height="44" rx="9" fill=(color.to_string()) {}
                    text data-on="" x="95" y="181" font-size="15" font-weight="600" text-anchor="middle" fill=(color.text()) {
                        (texts.text("settings-preview-button"))
                    }
                }
            }
        }
    }
}

fn origins(texts: Texts, organization: &OrganizationView) -> Markup {
    let texts_of = |list: &[holdfast_domain::organization::PageOrigin]| {
        let texts = list.iter().map(|origin| origin.as_str().to_owned());
        texts.collect::<Vec<_>>()
    };
    html! {
        p.soft { (texts.text("settings-lines")) }
        (lines_field(texts, "embed_origins", "settings-embed", &texts_of(&organization.embed_origins)))
        (lines_field(texts, "return_origins", "settings-return", &texts_of(&organization.return_origins)))
    }
}

/// Names of the texts of a disclosure that are written for each language.
const DISCLOSURE_TEXTS: [(&str, &str); 3] = [
    ("scope", "settings-scope"),
    ("withdrawal", "settings-withdrawal"),
    ("requirements", "settings-requirements"),
];

fn disclosure(texts: Texts, organization: &OrganizationView) -> Markup {
    let own = &organization.consumer_disclosure;
    let line = |text: &Option<String>| text.clone().unwrap_or_default();
    let fee = own.paper_fee.as_ref();
    let amount = fee.map_or_else(String::new, |fee| fee.amount_cents.to_string());
    let currency = fee.map_or("", |fee| fee.currency.as_str());

    // As JSON, so that the texts are found by their names.
    let written = json!(own);
    html! {
        p.soft { (texts.text("settings-disclosure-hint")) }
        (text_field(texts, "contact_email", "settings-contact-email", &line(&own.contact_email)))
        (text_field(texts, "contact_phone", "settings-contact-phone", &line(&own.contact_phone)))
        (text_field(texts, "contact_address", "settings-contact-address", &line(&own.contact_address)))
        (text_field(texts, "paper_fee", "settings-paper-fee", &amount))
        (text_field(texts, "paper_currency", "settings-paper-currency", currency))
        label.choice {
            input type="checkbox" name="require_access" value="yes" checked[organization.require_access_demonstration];
            " " (texts.text("settings-access"))
        }
        ul.rows {
            @for (name, label) in DISCLOSURE_TEXTS {
                @for (language, text) in written[name].as_object().into_iter().flatten() {
                    li {
                        p { strong { (language_name(language)) } " · " (texts.text(label)) }
                        p.soft { (text.as_str().unwrap_or_default()) }
                    }
                }
            }
        }
        (field(texts, "disclosure_language", "settings-language", languages("disclosure_language", organization.language)))
        @for (name, label) in DISCLOSURE_TEXTS {
            (field(texts, name, label, html! { textarea id=(name) name=(name) rows="3" {
                (written[name][organization.language.as_str()].as_str().unwrap_or_default())
            } }))
        }
    }
}

fn wording(texts: Texts, organization: &OrganizationView) -> Markup {
    html! {
        p.soft { (texts.text("settings-wording-hint")) }
        ul.rows {
            @for (jurisdiction, sentences) in &organization.signature_wording {
                @for (language, sentence) in sentences {
                    li {
                        p { strong { (jurisdiction) } " · " (language.own_name()) }
                        p.soft { (sentence) }
                    }
                }
            }
        }
        (text_field(texts, "wording_jurisdiction", "settings-wording-jurisdiction", ""))
        (field(texts, "wording_language", "settings-language", languages("wording_language", organization.language)))
        (field(texts, "wording", "settings-wording-text", html! { textarea id="wording" name="wording" rows="2" {} }))
    }
}

fn consent(texts: Texts, organization: &OrganizationView) -> Markup {
    html! {
        p.soft { (texts.text("settings-consent-hint")) }
        ul.rows {
            @for (language, text) in &organization.consent {
                li { p { strong { (language_name(language)) } " · " (text.version) } p.soft { (text.statement) } }
            }
        }
        (field(texts, "consent_language", "settings-language", languages("consent_language", organization.language)))
        (text_field(texts, "version", "settings-consent-version", ""))
        (field(texts, "statement", "settings-consent-statement", html! { textarea id="statement" name="statement" rows="2" {} }))
        (field(texts, "disclosure", "settings-consent-disclosure", html! { textarea id="disclosure" name="disclosure" rows="4" {} }))
    }
}

/// Writes roles of groups as lines, such as `dealers = sender`.
fn group_lines(settings: &SingleSignOn) -> Vec<String> {
    let lines = settings.roles.iter();
    let lines = lines.map(|one| format!("{} = {}", one.group, one.role));
    lines.collect()
}

fn sign_on(app: &App, texts: Texts, organization: &OrganizationView) -> Markup {
    // The secret of the client is stored encrypted and never shown. Its field begins empty.
    let known = organization.single_sign_on.as_ref();
    let of = |read: fn(&SingleSignOn) -> String| known.map(read).unwrap_or_default();
    html! {
        p.soft { (texts.text("settings-sign-on-hint")) }
        p.soft { (texts.text("settings-redirect")) " " code { (redirect_uri(app)) } }
        @if known.is_some() {
            p.soft {
                (texts.text("settings-sign-on-address")) " "
                code { (app.config.console_url()) (PATH) "/sso/" (organization.org_id) }
            }
        }
        (text_field(texts, "issuer", "settings-issuer", &of(|one| one.issuer.to_string())))
        (text_field(texts, "client_id", "settings-client", &of(|one| one.client_id.clone())))
        (field(texts, "client_secret", "settings-client-secret", html! {
            input id="client_secret" name="client_secret" type="password" autocomplete="new-password" maxlength="1000";
        }))
        (text_field(texts, "scopes", "settings-scopes", &known.map_or("email".into(), |one| one.scopes.join(" "))))
        (text_field(texts, "groups_claim", "settings-groups-claim", &known.map_or("groups".into(), |one| one.groups_claim.clone())))
        (lines_field(texts, "roles", "settings-groups", &known.map(group_lines).unwrap_or_default()))
        (field(texts, "default_role", "settings-default-role", html! {
            select id="default_role" name="default_role" {
                option value="" { (texts.text("settings-no-access")) }
                @for one in Role::ALL {
                    option value=(one) selected[known.is_some_and(|known| known.default_role == Some(*one))] { (role(texts, *one)) }
                }
            }
        }))
        (text_field(texts, "acr_values", "settings-acr", &of(|one| one.acr_values.join(" "))))
        label.choice {
            input type="checkbox" name="required" value="yes" checked[known.is_some_and(|one| one.required)];
            " " (texts.text("settings-required"))
        }
        @if known.is_some() {
            label.choice { input type="checkbox" name="remove" value="yes"; " " (texts.text("settings-sign-on-remove")) }
        }
    }
}

fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns an empty field as null.
fn or_null(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => text.into(),
    }
}

/// Returns the body of `PATCH /organization` for a form; none for an unknown part.
async fn change(app: &App, part: &str, form: &ConsoleForm) -> Result<Option<Value>, ServiceError> {
    let value = |name: &str| form.value(name);
    let is = |name: &str| value(name) == "yes";
    Ok(Some(match part {
        // Text that is no number becomes 0, which the API refuses with the name of the member.
        "general" => json!({
            "auto_vault": is("auto_vault"),
            "envelope_ttl_days": value("envelope_ttl_days").parse::<u32>().unwrap_or_default(),
            "language": value("language"),
            "dates": { "format": value("format"), "time_zone": value("time_zone") },
            "chattel_paper_jurisdiction": or_null(value("jurisdiction")),
        }),
        "brand" => {
            let mut brand = Map::new();
            brand.insert("name".into(), or_null(value("brand_name")));
            let color = value("color");
            // The control cannot be empty. Our own colour means none, so that a later one of ours applies.
            let is_ours = color == BrandColor::OURS.to_string();
            brand.insert("color".into(), or_null(if is_ours { "" } else { color }));

            // Null removes the logo, and an absent member keeps it.
            if is("no_logo") {
                brand.insert("logo".into(), Value::Null);
            } else if !value("logo_data").is_empty() {
                brand.insert("logo".into(), value("logo_data").into());
            }

            json!({ "brand": brand })
        }
        "origins" => json!({
            "embed_origins": lines(value("embed_origins")), "return_origins": lines(value("return_origins")),
        }),
        "disclosure" => {
            // `PATCH` replaces the whole object, so the texts in other languages are sent along.
            let present = organizations::get(app, &form.visitor.caller).await?;
            json!({
                "consumer_disclosure": disclosure_of(form, json!(present.consumer_disclosure)),
                "require_access_demonstration": is("require_access"),
            })
        }
        "wording" => {
            // Replaced as a whole as well.
            let present = organizations::get(app, &form.visitor.caller).await?;
            json!({ "signature_wording": wording_of(form, json!(present.signature_wording)) })
        }
        "consent" => {
            let present = organizations::get(app, &form.visitor.caller).await?;
            let mut consent = json!(present.consent);
            let language = value("consent_language");

            let parts = ["version", "statement", "disclosure"];
            // Empty fields remove the organization's own words, and the text that is made of the settings
            // applies again.
            if parts.iter().all(|part| value(part).is_empty()) {
                consent.as_object_mut().map(|all| all.remove(language));
            } else {
                consent[language] = json!({
                    "version": value("version"), "statement": value("statement"), "disclosure": value("disclosure"),
                });
            }

            json!({ "consent": consent })
        }
        "sign-on" if is("remove") => json!({ "single_sign_on": null }),
        "sign-on" => json!({ "single_sign_on": sign_on_of(form) }),
        _ => return Ok(None),
    }))
}

/// Returns the disclosure with the values of a form. Texts of other languages stay.
fn disclosure_of(form: &ConsoleForm, mut disclosure: Value) -> Value {
    let value = |name: &str| form.value(name);
    for name in ["contact_email", "contact_phone", "contact_address"] {
        disclosure[name] = or_null(value(name));
    }

    disclosure["paper_fee"] = match value("paper_fee") {
        "" => Value::Null,
        amount => json!({
            // Text that is no number is refused with the name of the member.
            "amount_cents": amount.parse::<u64>().map_or_else(|_| json!(amount), Value::from),
            "currency": value("paper_currency").to_ascii_uppercase(),
        }),
    };

    let language = value("disclosure_language");
    for (name, _) in DISCLOSURE_TEXTS {
        if value(name).is_empty() {
            disclosure[name]
                .as_object_mut()
                .map(|all| all.remove(language));
        } else {
            disclosure[name][language] = value(name).into();
        }
    }

    disclosure
}

/// Returns the wordings with the sentence of a form; an empty one removes that of its jurisdiction and
/// language.
fn wording_of(form: &ConsoleForm, mut wordings: Value) -> Value {
    let (jurisdiction, language) = (
        form.value("wording_jurisdiction"),
        form.value("wording_language"),
    );
    let sentence = form.value("wording");
    if !sentence.is_empty() {
        wordings[jurisdiction][language] = sentence.into();
        return wordings;
    }

    let sentences = wordings
        .get_mut(jurisdiction)
        .and_then(Value::as_object_mut);
    let is_empty = sentences.is_some_and(|sentences| {
        sentences.remove(language);
        sentences.is_empty()
    });
    // The last sentence takes its jurisdiction along, so that no entry without sentences stays.
    if is_empty {
        wordings.as_object_mut().map(|all| all.remove(jurisdiction));
    }

    wordings
}

fn sign_on_of(form: &ConsoleForm) -> Value {
    let value = |name: &str| form.value(name);
    let words = |name: &str| value(name).split_whitespace().collect::<Vec<_>>();
    let roles = lines(value("roles")).into_iter().map(|line| {
        // A group may have an equals sign in its name.
        let (group, role) = line.rsplit_once('=').unwrap_or((line, ""));
        json!({ "group": group.trim(), "role": role.trim() })
    });
    let mut settings = json!({
        "issuer": value("issuer"), "client_id": value("client_id"), "scopes": words("scopes"),
        "groups_claim": value("groups_claim"), "roles": roles.collect::<Vec<_>>(),
        "default_role": or_null(value("default_role")), "acr_values": words("acr_values"),
        "required": value("required") == "yes",
    });

    // An empty field keeps the secret that is stored.
    if !value("client_secret").is_empty() {
        settings["client_secret"] = value("client_secret").into();
    }

    settings
}

/// Changes one part of the settings.
pub async fn save(State(app): State<App>, Path(part): Path<String>, form: ConsoleForm) -> Response {
    let visitor = &form.visitor;
    if let Some(refused) = visitor.refusal(Permission::Administer) {
        return refused;
    }

    // Before the confirmation, so that a user without the role is not asked for a passkey first. The
    // service checks it again.
    let own = visitor.signed_in.user.role;
    if part == "sign-on" && own != Role::Owner {
        return refused(visitor.texts);
    }
    if let Err(asks) = form.confirmed(&app, &part_page(&part)).await {
        return asks;
    }

    let body = match change(&app, &part, &form).await {
        Ok(Some(body)) => body,
        Ok(None) => return failed(ServiceError::NotFound("Page")),
        Err(error) => return failed(error),
    };
    let new = match valid::<ChangeOrganization>(body) {
        Ok(new) => new,
        Err(error) => return error.into_response(),
    };
    // Copied, because `change` takes the body and a request for approval needs the settings again.
    let sign_on = match &new.single_sign_on {
        FieldPatch::Set(new) => Some(new.clone()),
        FieldPatch::Clear | FieldPatch::Keep => None,
    };

    let changed = organizations::change(&app, &visitor.caller, own, new).await;
    // The issuer decides who signs in, so the policy may require that others agree.
    if needs_approval(&changed) {
        let act = visitor.texts.text("sign-on-title");
        let change = ProposedChange::SingleSignOn {
            single_sign_on: sign_on.map(Box::new),
        };
        return request(app, &form, change, &act).await;
    }

    match changed {
        Ok(_) => Redirect::to(&part_page(&part)).into_response(),
        Err(error) => failed(error),
    }
}
