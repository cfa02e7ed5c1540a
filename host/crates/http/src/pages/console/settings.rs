//! Settings of the organization: brand with a preview, pages that may embed it, consent, sign-in, retention.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::PATH;
use super::changes::request;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place, role};
use super::signed_in::{ConsoleForm, Visitor, refused};
use super::sure::SensitiveAct;
use super::users::needs_approval;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use holdfast_adapters::texts::Texts;
use holdfast_domain::brand::BrandColor;
use holdfast_domain::change::FieldPatch;
use holdfast_domain::funding::FundingMode;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::{LinkHostProblem, Permission, Role, SingleSignOn};
use holdfast_domain::reminders::{DayTime, QuietHours, ReminderPlan};
use holdfast_platform::ServiceError;
use holdfast_platform::access::single_sign_on::redirect_uri;
use holdfast_platform::components::changes::ProposedChange;
use holdfast_platform::link_hosts::{self, NewLinkHost};
use holdfast_platform::organizations::{self, ChangeOrganization, OrganizationView};
use holdfast_service::App;

/// Parts of the settings with their titles, each on a page of its own.
const PARTS: [(&str, &str); 11] = [
    ("general", "settings-general"),
    ("reminders", "settings-reminders"),
    ("brand", "settings-brand"),
    ("origins", "settings-origins"),
    ("link-host", "settings-link-host"),
    ("disclosure", "settings-disclosure"),
    ("wording", "settings-wording"),
    ("consent", "settings-consent"),
    ("funding", "settings-funding"),
    ("sign-on", "settings-sign-on"),
    ("retention", "settings-retention"),
];

fn part_page(part: &str) -> String {
    format!("{PATH}/settings/{part}")
}

/// Shows the first part of the settings.
pub async fn show(app: State<App>, visitor: Visitor) -> PageResult {
    show_part(app, visitor, Path("general".to_owned())).await
}

/// Shows one part of the settings.
pub async fn show_part(
    State(app): State<App>,
    visitor: Visitor,
    Path(part): Path<String>,
) -> PageResult {
    visitor.require(Permission::Administer)?;
    if part == "sign-on" && visitor.signed_in.user.role != Role::Owner {
        return Err(refused(visitor.texts).into());
    }

    shown(&app, &visitor, &part, None).await
}

async fn shown(
    app: &App,
    visitor: &Visitor,
    part: &str,
    refused: Option<&RefusedForm>,
) -> PageResult {
    // As the API answers it, so that no secret is in reach of the page.
    let organization = organizations::get(app, &visitor.caller).await?;
    let texts = visitor.texts;
    let form = FormView::new(texts, &part_page(part), refused);
    let one = &organization;
    let fields = match part {
        "general" => general(&form, one),
        "reminders" => reminders(&form, one),
        "brand" => brand(&form, visitor, one),
        "origins" => origins(&form, one),
        "link-host" => link_host(&form, visitor, one),
        "disclosure" => disclosure(&form, one),
        "wording" => wording(&form, one),
        "consent" => consent(&form, one),
        "funding" => funding(&form, one),
        "sign-on" => sign_on(app, &form, one),
        "retention" => {
            let body = by_operator(app, texts, one);
            return Ok(settings_page(visitor, part, body, None));
        }
        _ => return Err(ServiceError::NotFound("Page").into()),
    };

    let title = PARTS.iter().find(|(name, _)| *name == part);
    let title = title.map_or("console-settings", |(_, title)| *title);
    let body = html! {
        (visitor.identity_first(&part_page(part)))
        p.soft { (texts.text("settings-hint")) }
        (section(visitor, part, title, &form, fields))
    };
    Ok(settings_page(visitor, part, body, refused))
}

/// Renders a part of the settings below the links to all parts.
fn settings_page(
    visitor: &Visitor,
    part: &str,
    body: Markup,
    refused: Option<&RefusedForm>,
) -> Response {
    let texts = visitor.texts;
    let is_owner = visitor.signed_in.user.role == Role::Owner;
    let parts = PARTS
        .iter()
        .filter(|(name, _)| is_owner || *name != "sign-on");
    let title = texts.text("console-settings");
    let body = html! {
        nav.parts aria-label=(title) {
            @for (name, label) in parts {
                a href=(part_page(name)) aria-current=[(*name == part).then_some("page")] { (texts.text(label)) }
            }
        }
        (body)
    };

    visitor.form_page(Place::Settings, None, &title, body, refused)
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

fn section(
    visitor: &Visitor,
    part: &str,
    title: &'static str,
    form: &FormView<'_>,
    fields: Markup,
) -> Markup {
    let texts = visitor.texts;
    html! {
        section.card {
            h2 { (texts.text(title)) }
            form method="post" action=(part_page(part)) {
                (visitor.token())
                (form.summary())
                (fields)
                button type="submit" { (texts.text("settings-save")) }
            }
        }
    }
}

/// Renders a field with its label.
fn field(form: &FormView<'_>, name: &str, label: &'static str, input: Markup) -> Markup {
    form.field(name, &html! { (form.texts.text(label)) }, input)
}

fn text_field(form: &FormView<'_>, name: &str, label: &'static str, value: &str) -> Markup {
    form.text(&TextField {
        present: value,
        ..TextField::new(name, &form.texts.text(label))
    })
}

fn lines_field(form: &FormView<'_>, name: &str, label: &'static str, lines: &[String]) -> Markup {
    form.lines(name, &form.texts.text(label), 3, &lines.join("\n"))
}

/// Renders the field for one of the languages.
fn language_field(form: &FormView<'_>, name: &str, present: Locale) -> Markup {
    let languages = Locale::ALL.iter();
    let languages = languages.map(|one| (one.as_str().to_owned(), one.own_name().to_owned()));
    let languages: Vec<_> = languages.collect();
    let label = form.texts.text("settings-language");
    form.select(name, &label, &languages, present.as_str())
}

fn general(form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
    let dates = &organization.dates;
    // As text, because the options are the words of the API.
    let format = json!(dates.format);
    let jurisdiction = organization.chattel_paper_jurisdiction.as_ref();
    let days = organization.envelope_ttl_days.to_string();
    let retention = organization.tape_retention_days;
    let retention = retention.map_or(String::new(), |days| days.to_string());

    let formats = [
        ("iso", "2026-11-25"),
        ("month_first", "11/25/2026"),
        ("day_first", "25/11/2026"),
        ("dotted", "25.11.2026"),
    ];
    let formats = formats.map(|(value, example)| (value.to_owned(), example.to_owned()));

    html! {
        (form.tick("auto_vault", &texts.text("settings-auto-vault"), organization.auto_vault))
        (field(form, "envelope_ttl_days", "settings-ttl", html! {
            input id="envelope_ttl_days" name="envelope_ttl_days" type="number" min="1" max="3650" required
                value=(form.value("envelope_ttl_days", &days)) aria-invalid=[form.invalid("envelope_ttl_days")]
                aria-describedby=[form.described("envelope_ttl_days")];
        }))
        (form.text(&TextField {
            kind: "number",
            present: &retention,
            ..TextField::new("tape_retention_days", &texts.text("settings-tape-retention"))
        }))
        (language_field(form, "language", organization.language))
        (form.select("format", &texts.text("settings-dates"), &formats, format.as_str().unwrap_or_default()))
        (text_field(form, "time_zone", "settings-zone", dates.time_zone.as_str()))
        (text_field(form, "jurisdiction", "settings-jurisdiction", jurisdiction.map_or("", |one| one.as_str())))
        (form.text(&TextField {
            kind: "email",
            present: organization.reply_to.as_deref().unwrap_or_default(),
            ..TextField::new("reply_to", &texts.text("settings-reply-to"))
        }))
    }
}

fn reminders(form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
    let plan = organization.reminders;
    let quiet = organization.quiet_hours.as_ref();
    let of_plan =
        |read: fn(&ReminderPlan) -> u8| plan.map_or(String::new(), |plan| read(&plan).to_string());
    let before_expiry = plan.and_then(|plan| plan.before_expiry_days);
    let before_expiry = before_expiry.map_or(String::new(), |days| days.to_string());
    let of_quiet =
        |read: fn(&QuietHours) -> DayTime| quiet.map_or(String::new(), |quiet| read(quiet).into());
    let control = |kind: &'static str, name: &'static str, label: &'static str, present: String| {
        form.text(&TextField {
            kind,
            present: &present,
            ..TextField::new(name, &texts.text(label))
        })
    };

    html! {
        p.soft { (texts.text("settings-reminders-hint")) }
        (control("number", "first_after_days", "settings-reminders-first", of_plan(|plan| plan.first_after_days)))
        (control("number", "every_days", "settings-reminders-every", of_plan(|plan| plan.every_days)))
        (control("number", "at_most", "settings-reminders-most", of_plan(|plan| plan.at_most)))
        (control("number", "before_expiry_days", "settings-reminders-expiry", before_expiry))
        (control("time", "quiet_hours_from", "settings-quiet-from", of_quiet(|quiet| quiet.from)))
        (control("time", "quiet_hours_until", "settings-quiet-until", of_quiet(|quiet| quiet.until)))
    }
}

/// Returns the plan of reminders and the quiet hours of a form; empty fields end them.
fn reminders_of(form: &ConsoleForm) -> Value {
    let value = |name: &str| form.value(name);
    // A number that is none is out of its range.
    let number = |name: &str| value(name).parse::<u8>().unwrap_or(u8::MAX);
    let plan = ["first_after_days", "every_days", "at_most"];
    let expiry = Some("before_expiry_days").filter(|name| !value(name).is_empty());
    let reminders = if expiry.is_none() && plan.iter().all(|name| value(name).is_empty()) {
        Value::Null
    } else {
        json!(
            plan.into_iter()
                .chain(expiry)
                .map(|name| (name, number(name)))
                .collect::<BTreeMap<_, _>>()
        )
    };

    let quiet = ["quiet_hours_from", "quiet_hours_until"].map(value);
    let quiet = match quiet {
        ["", ""] => Value::Null,
        [from, until] => json!({ "from": from, "until": until }),
    };
    json!({ "reminders": reminders, "quiet_hours": quiet })
}

/// Returns the name of a language in the language itself.
fn language_name(tag: &str) -> String {
    Locale::parse(tag).map_or_else(|| tag.to_owned(), |one| one.own_name().to_owned())
}

fn brand(form: &FormView<'_>, visitor: &Visitor, organization: &OrganizationView) -> Markup {
    let texts = visitor.texts;
    let brand = &organization.brand;
    let name = brand.name.as_deref().unwrap_or_default();
    // A colour control always has a value. Ours stands for none here, and `change` reads it as none.
    let color = brand.color.clone().unwrap_or(BrandColor::OURS);
    html! {
        (text_field(form, "brand_name", "settings-brand-name", name))
        (field(form, "color", "settings-color", html! {
            input id="color" name="color" type="color" value=(form.value("color", &color.to_string()))
                aria-invalid=[form.invalid("color")] aria-describedby=[form.described("color")];
        }))
        (field(form, "logo", "settings-logo", html! {
            input id="logo" type="file" accept="image/png,image/jpeg" data-into="logo_data";
            input type="hidden" id="logo_data" name="logo_data";
        }))
        @if brand.logo_sha256.is_some() {
            (form.tick("no_logo", &texts.text("settings-no-logo"), false))
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

fn origins(form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
    let texts_of = |list: &[holdfast_domain::organization::PageOrigin]| {
        let texts = list.iter().map(|origin| origin.as_str().to_owned());
        texts.collect::<Vec<_>>()
    };
    html! {
        p.soft { (texts.text("settings-lines")) }
        (lines_field(form, "embed_origins", "settings-embed", &texts_of(&organization.embed_origins)))
        (lines_field(form, "return_origins", "settings-return", &texts_of(&organization.return_origins)))
    }
}

fn link_host(form: &FormView<'_>, visitor: &Visitor, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
    let own = organization.link_host.as_ref();
    html! {
        p.soft { (texts.text("settings-link-host-hint")) }
        p { code { (link_hosts::FILE) } ": " code { (organization.org_id) } }
        (text_field(form, "host", "settings-link-host-name", own.map_or("", |own| own.host.as_str())))
        @if let Some(own) = own {
            p.soft { (texts.text("settings-link-host-verified")) " " (visitor.moment(own.verified_at)) }
            @if let Some(problem) = own.problem { p { (texts.text(link_host_problem(problem))) } }
        }
    }
}

/// Returns the text that explains why links do not lead to a host.
pub fn link_host_problem(problem: LinkHostProblem) -> &'static str {
    match problem {
        LinkHostProblem::Unreachable => "settings-link-host-unreachable",
        LinkHostProblem::NotNamed => "settings-link-host-not-named",
    }
}

/// Names of the texts of a disclosure that are written for each language.
const DISCLOSURE_TEXTS: [(&str, &str); 3] = [
    ("scope", "settings-scope"),
    ("withdrawal", "settings-withdrawal"),
    ("requirements", "settings-requirements"),
];

fn disclosure(form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
    let own = &organization.consumer_disclosure;
    let line = |text: &Option<String>| text.clone().unwrap_or_default();
    let fee = own.paper_fee.as_ref();
    let amount = fee.map_or_else(String::new, |fee| fee.amount_cents.to_string());
    let currency = fee.map_or("", |fee| fee.currency.as_str());

    // As JSON, so that the texts are found by their names.
    let written = json!(own);
    html! {
        p.soft { (texts.text("settings-disclosure-hint")) }
        (text_field(form, "contact_email", "settings-contact-email", &line(&own.contact_email)))
        (text_field(form, "contact_phone", "settings-contact-phone", &line(&own.contact_phone)))
        (text_field(form, "contact_address", "settings-contact-address", &line(&own.contact_address)))
        (text_field(form, "paper_fee", "settings-paper-fee", &amount))
        (text_field(form, "paper_currency", "settings-paper-currency", currency))
        (form.tick("require_access", &texts.text("settings-access"), organization.require_access_demonstration))
        (form.tick("require_pages", &texts.text("settings-pages"), organization.require_all_pages_shown))
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
        (language_field(form, "disclosure_language", organization.language))
        @for (name, label) in DISCLOSURE_TEXTS {
            @let present = written[name][organization.language.as_str()].as_str();
            (form.lines(name, &texts.text(label), 3, present.unwrap_or_default()))
        }
    }
}

fn wording(form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
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
        (text_field(form, "wording_jurisdiction", "settings-wording-jurisdiction", ""))
        (language_field(form, "wording_language", organization.language))
        (form.lines("wording", &texts.text("settings-wording-text"), 2, ""))
    }
}

fn consent(form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
    html! {
        p.soft { (texts.text("settings-consent-hint")) }
        ul.rows {
            @for (language, text) in &organization.consent {
                li { p { strong { (language_name(language)) } " · " (text.version) } p.soft { (text.statement) } }
            }
        }
        (language_field(form, "consent_language", organization.language))
        (text_field(form, "version", "settings-consent-version", ""))
        (form.lines("statement", &texts.text("settings-consent-statement"), 2, ""))
        (form.lines("disclosure", &texts.text("settings-consent-disclosure"), 4, ""))
    }
}

fn funding(form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;
    let modes = [
        (FundingMode::Off, "settings-funding-off"),
        (FundingMode::Warn, "settings-funding-warn"),
        (FundingMode::Enforce, "settings-funding-enforce"),
    ];
    let modes = modes.map(|(mode, text)| (mode.to_string(), texts.text(text)));
    let present = organization.funding.as_str();
    html! {
        p.soft { (texts.text("settings-funding-hint")) }
        (form.select("funding", &texts.text("settings-funding-mode"), &modes, present))
        p { a href={ (PATH) "/fact-maps" } { (texts.text("facts-maps")) } }
        p { a href={ (PATH) "/funding" } { (texts.text("funding-packs")) } }
    }
}

/// Writes roles of groups as lines, such as `dealers = sender`.
fn group_lines(settings: &SingleSignOn) -> Vec<String> {
    let lines = settings.roles.iter();
    let lines = lines.map(|one| format!("{} = {}", one.group, one.role));
    lines.collect()
}

fn sign_on(app: &App, form: &FormView<'_>, organization: &OrganizationView) -> Markup {
    let texts = form.texts;

    // The secret of the client is stored encrypted and never shown. Its field begins empty.
    let known = organization.single_sign_on.as_ref();
    let of = |read: fn(&SingleSignOn) -> String| known.map(read).unwrap_or_default();

    let roles = Role::ALL
        .iter()
        .map(|one| (one.to_string(), role(texts, *one)));
    let none = std::iter::once((String::new(), texts.text("settings-no-access")));
    let roles: Vec<_> = none.chain(roles).collect();

    let default_role = known.and_then(|known| known.default_role);
    let default_role = default_role.map_or("", |role| role.as_str());

    html! {
        p.soft { (texts.text("settings-sign-on-hint")) }
        p.soft { (texts.text("settings-redirect")) " " code { (redirect_uri(app)) } }
        @if known.is_some() {
            p.soft {
                (texts.text("settings-sign-on-address")) " "
                code { (app.config.console_url()) (PATH) "/sso/" (organization.org_id) }
            }
        }

        (text_field(form, "issuer", "settings-issuer", &of(|one| one.issuer.to_string())))
        (text_field(form, "client_id", "settings-client", &of(|one| one.client_id.clone())))
        (form.text(&TextField {
            kind: "password",
            limit: 1000,
            ..TextField::new("client_secret", &texts.text("settings-client-secret"))
        }))
        (text_field(form, "scopes", "settings-scopes", &known.map_or("email".into(), |one| one.scopes.join(" "))))
        (text_field(form, "groups_claim", "settings-groups-claim", &known.map_or("groups".into(), |one| one.groups_claim.clone())))
        (lines_field(form, "roles", "settings-groups", &known.map(group_lines).unwrap_or_default()))
        (form.select("default_role", &texts.text("settings-default-role"), &roles, default_role))
        (text_field(form, "acr_values", "settings-acr", &of(|one| one.acr_values.join(" "))))
        (form.tick("required", &texts.text("settings-required"), known.is_some_and(|one| one.required)))

        @if known.is_some() {
            (form.tick("remove", &texts.text("settings-sign-on-remove"), false))
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
            "tape_retention_days": match value("tape_retention_days") {
                "" => Value::Null,
                days => days.parse::<u32>().unwrap_or_default().into(),
            },
            "language": value("language"),
            "dates": { "format": value("format"), "time_zone": value("time_zone") },
            "chattel_paper_jurisdiction": or_null(value("jurisdiction")),
            "reply_to": or_null(value("reply_to")),
        }),
        "reminders" => reminders_of(form),
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
                "require_all_pages_shown": is("require_pages"),
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
        "funding" => json!({ "funding": value("funding") }),
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

/// Members of the settings, with the fields that have other names.
const RENAMED: [(&str, &str); 4] = [
    ("chattel_paper_jurisdiction", "jurisdiction"),
    ("logo", "logo"),
    ("currency", "paper_currency"),
    ("signature_wording", "wording"),
];

/// Shows the settings with a refused form.
async fn again(
    app: &App,
    form: &ConsoleForm,
    part: &str,
    error: impl Into<HttpError>,
) -> PageResult {
    let renamed = RENAMED.map(|(member, field)| (member.to_owned(), field.to_owned()));
    let refused = form.refused_with(error, &renamed)?;
    shown(app, &form.visitor, part, Some(&refused)).await
}

/// Sets the host of signing links; an empty field removes it.
async fn save_link_host(app: &App, form: &ConsoleForm) -> PageResult {
    let (caller, host, part) = (&form.visitor.caller, form.value("host"), "link-host");
    let changed = if host.is_empty() {
        link_hosts::remove(app, caller).await
    } else {
        match valid::<NewLinkHost>(json!({ "host": host })) {
            Ok(new) => link_hosts::set(app, caller, new).await,
            Err(error) => return again(app, form, part, error).await,
        }
    };

    // The host sees what signers enter, so the policy may require that others agree.
    if needs_approval(&changed) {
        let act = form.visitor.texts.text("settings-link-host");
        let change = ProposedChange::LinkHost {
            link_host: host.to_owned(),
        };
        return Ok(request(app.clone(), form, change, &act).await?);
    }

    match changed {
        Ok(_) => Ok(Redirect::to(&part_page(part)).into_response()),
        Err(error) => again(app, form, part, error).await,
    }
}

/// Changes one part of the settings.
pub async fn save(
    State(app): State<App>,
    Path(part): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Administer)?;

    // Before the confirmation, so that a user without the role is not asked for a passkey first. The
    // service checks it again.
    let own = visitor.signed_in.user.role;
    if part == "sign-on" && own != Role::Owner {
        return Err(refused(visitor.texts).into());
    }
    form.confirmed(&app, &part_page(&part)).await?;

    if part == "link-host" {
        return save_link_host(&app, &form).await;
    }

    let sign_on = &visitor.organization.settings.single_sign_on;
    if part == "sign-on"
        && form.value("remove") == "yes"
        && let Some(present) = sign_on
    {
        form.meant(&SensitiveAct {
            label: visitor.texts.text("settings-sign-on-remove"),
            objects: vec![present.issuer.to_string()],
            consequence: visitor.texts.text("sure-sign-on-remove"),
            is_typed: false,
            back: part_page(&part),
        })?;
    }

    let body = match change(&app, &part, &form).await {
        Ok(Some(body)) => body,
        Ok(None) => return Err(ServiceError::NotFound("Page").into()),
        Err(error) => return again(&app, &form, &part, error).await,
    };
    let new = match valid::<ChangeOrganization>(body) {
        Ok(new) => new,
        Err(error) => return again(&app, &form, &part, error).await,
    };
    // Copied, because `change` takes the body and a request for approval needs the settings again.
    let requested = match (&new.single_sign_on, new.funding) {
        (FieldPatch::Keep, Some(funding)) => ProposedChange::SetFunding { funding },
        (FieldPatch::Set(new), _) => ProposedChange::SingleSignOn {
            single_sign_on: Some(Box::new(new.clone())),
        },
        _ => ProposedChange::SingleSignOn {
            single_sign_on: None,
        },
    };

    let changed = organizations::change(&app, &visitor.caller, own, new).await;
    // The policy may require that others approve changes of sign-in and funding.
    if needs_approval(&changed) {
        let act = visitor.texts.text(match requested {
            ProposedChange::SetFunding { .. } => "settings-funding",
            _ => "sign-on-title",
        });
        return Ok(request(app, &form, requested, &act).await?);
    }

    match changed {
        Ok(_) => Ok(Redirect::to(&part_page(&part)).into_response()),
        Err(error) => again(&app, &form, &part, error).await,
    }
}
