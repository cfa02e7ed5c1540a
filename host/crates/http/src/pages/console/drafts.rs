//! The steps to a sent document over a stored draft: document, people, fields, details, review.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts as _, Path, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::PATH;
use super::envelope::{pages_of, pictures};
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::funding;
use super::navigation::{PageResult, Place, encoded, failed};
use super::sending::{PARTY_FIELDS, choice_page, filled, value_field, value_name};
use super::sign_on::open_builder;
use super::signed_in::{ConsoleForm, Visitor};
use super::templates::{show_again, variable_field};
use crate::error::HttpError;
use crate::middleware::extract::{MultipartForm, valid};
use holdfast_adapters::texts::Texts;
use holdfast_domain::dates::ZoneName;
use holdfast_domain::envelope::{
    Envelope, Recipient, RecipientKind, Signer, SignerAccess, SignerKind,
};
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::{FIRST_PAYER, Permission, known_currency, minor_digits};
use holdfast_domain::template::Template;
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::App;
use holdfast_service::envelopes::drafts::{
    self, Draft, DraftDetails, DraftPart, DraftPeople, DraftProblem,
};
use holdfast_service::envelopes::planned_sending::{self, PlanSending};
use holdfast_service::envelopes::sending::{self, SendEnvelope};
use holdfast_service::funding::FindingView;
use holdfast_service::templates;
use holdfast_service::templates::variables::VariableValues;

/// Most people of each kind, as in the API.
const PEOPLE: usize = 50;
/// Controls of a signer, each with the number of its row.
const OF_SIGNER: [&str; 15] = [
    "name",
    "email",
    "role",
    "order",
    "access",
    "passcode",
    "phone",
    "locale",
    "kind",
    "notify_by",
    "consumer",
    "time_zone",
    "witness_of",
    "same_device",
    "group",
];
/// Controls of a recipient of a copy.
const OF_RECIPIENT: [&str; 4] = [
    "recipients_name",
    "recipients_email",
    "recipients_kind",
    "recipients_group",
];
/// What signers can be asked for before the document opens.
const ACCESS: [(SignerAccess, &str); 4] = [
    (SignerAccess::None, "send-access-none"),
    (SignerAccess::EmailCode, "send-access-email"),
    (SignerAccess::SmsCode, "send-access-sms"),
    (SignerAccess::Passcode, "send-access-passcode"),
];

/// Parts of signers in the document.
const SIGNER_KINDS: [(SignerKind, &str); 3] = [
    (SignerKind::Signer, "send-kind-signer"),
    (SignerKind::Approver, "send-kind-approver"),
    (SignerKind::Witness, "send-kind-witness"),
];

/// Step of the flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DraftStep {
    Document,
    People,
    Fields,
    Details,
    Review,
}

impl DraftStep {
    const ALL: [Self; 5] = [
        Self::Document,
        Self::People,
        Self::Fields,
        Self::Details,
        Self::Review,
    ];

    fn of(part: DraftPart) -> Self {
        match part {
            DraftPart::People => Self::People,
            DraftPart::Fields => Self::Fields,
            DraftPart::Details => Self::Details,
        }
    }

    fn name(self, texts: Texts) -> String {
        texts.text(match self {
            Self::Document => "envelopes-document",
            Self::People => "console-people",
            Self::Fields => "send-step-fields",
            Self::Details => "send-step-details",
            Self::Review => "send-step-review",
        })
    }

    /// Returns the address of the step of a draft. The first one is over once there is a draft.
    fn address(self, draft: &str) -> String {
        let step = match self {
            Self::Document => return format!("{PATH}/send"),
            Self::People => "people",
            Self::Fields => "fields",
            Self::Details => "details",
            Self::Review => "review",
        };
        format!("{PATH}/drafts/{draft}/{step}")
    }
}

/// Renders the line of steps; those of a stored draft lead to their pages. Narrow screens show the present step, and the
/// line behind it.
pub fn step_line(texts: Texts, current: DraftStep, draft: Option<&Envelope>) -> Markup {
    let steps = html! {
        ol.steps {
            @for step in DraftStep::ALL {
                li.past[step < current] aria-current=[(step == current).then_some("step")] {
                    @match draft {
                        Some(draft) if step != current && step != DraftStep::Document => {
                            a href=(step.address(draft.id.as_str())) { (step.name(texts)) }
                        }
                        _ => span { (step.name(texts)) },
                    }
                }
            }
        }
    };
    let before = DraftStep::ALL.iter().filter(|step| **step < current);
    let present = [
        ("number", (before.count() + 1).to_string()),
        ("total", DraftStep::ALL.len().to_string()),
        ("step", current.name(texts)),
    ];

    html! {
        nav.flow aria-label=(texts.text("envelopes-progress")) {
            (steps)
            // A closed part cannot be opened by a style, so wide screens have a line of their own.
            details {
                summary { (texts.with("send-step-present", present)) }
                (steps)
            }
        }
    }
}

/// Renders the ways to the step before, and on to the next one.
fn onward(texts: Texts, draft: &Draft, back: DraftStep) -> Markup {
    html! {
        div.actions {
            a.button.quiet href=(back.address(draft.envelope.id.as_str())) { (texts.text("console-back")) }
            button type="submit" { (texts.text("send-continue")) }
        }
    }
}

fn step_page(
    visitor: &Visitor,
    draft: &Draft,
    step: DraftStep,
    body: Markup,
    refused: Option<&RefusedForm>,
) -> Response {
    let line = step_line(visitor.texts, step, Some(&draft.envelope));
    let body = html! { (line) (body) };
    visitor.form_page(Place::Send, None, &draft.envelope.name, body, refused)
}

fn redirect(step: DraftStep, draft: &str) -> Response {
    Redirect::to(&step.address(draft)).into_response()
}

/// Reads a draft for a page. An envelope that was sent meanwhile leads to its own page.
async fn read(app: &App, visitor: &Visitor, id: &str) -> Result<Draft, Response> {
    visitor.require(Permission::Send)?;

    drafts::get(app, &visitor.caller, id)
        .await
        .map_err(|error| match error {
            ServiceError::Conflict(_) => {
                Redirect::to(&format!("{PATH}/envelopes/{id}")).into_response()
            }
            error => failed(error),
        })
}

/// Parts of the form for a new document.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct DocumentParts {
    token: String,
    file: String,
    password: String,
}

/// Takes a document as a new draft. Fields come from its tags.
pub async fn upload(State(app): State<App>, request: Request) -> PageResult {
    // The session is checked before the body is read, so that a stranger uploads nothing.
    let (mut parts, body) = request.into_parts();
    let visitor = Visitor::from_request_parts(&mut parts, &app).await?;
    visitor.require(Permission::Send)?;

    let form = visitor.upload::<DocumentParts>(&app, Request::from_parts(parts, body));
    let mut form: MultipartForm<DocumentParts> = form.await?;
    let made = async {
        let file = form.file()?;
        let name = document_name(visitor.texts, file.file_name.as_deref());
        let draft = drafts::of_upload(&app, &app.pages, &visitor.caller, name, file).await?;
        Ok::<_, HttpError>(draft)
    };
    match made.await {
        Ok(draft) => Ok(redirect(DraftStep::People, draft.id.as_str())),
        Err(error) => {
            let action = format!("{PATH}/drafts");
            let members = [("file".to_owned(), "file".to_owned())];
            let refused = RefusedForm::of(&action, &BTreeMap::new(), error, &members)?;
            choice_page(&app, &visitor, Some(&refused)).await
        }
    }
}

/// Returns the name of a document: that of its file, without folders and the ending.
fn document_name(texts: Texts, file: Option<&str>) -> String {
    let file = file.unwrap_or_default();
    let file = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    };
    let name: String = stem
        .trim()
        .chars()
        .filter(|one| !one.is_control())
        .take(500)
        .collect();
    if name.is_empty() {
        texts.text("template-new")
    } else {
        name
    }
}

/// Begins a draft of a template, with the values of its variables.
pub async fn of_template(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let (caller, id) = (&form.visitor.caller, form.value("template"));
    let template = templates::get(&app, caller, id).await?;
    let variables = template.variables().to_vec();
    let mut values = VariableValues::new();
    let mut fields = Vec::new();
    for (index, variable) in variables.into_iter().enumerate() {
        let field = variable_field(index);
        let value = form.value(&field);
        if !value.is_empty() {
            values.insert(variable.name.clone(), value.to_owned());
        }
        fields.push((variable.name, field));
    }

    match drafts::of_template(&app, &app.pages, caller, id, values).await {
        Ok(draft) => Ok(redirect(DraftStep::People, draft.id.as_str())),
        // Only the page of a template with variables has a form that can be corrected.
        Err(error) if fields.is_empty() => Err(error.into()),
        Err(error) => {
            let refused = form.refused_with(error, &fields)?;
            show_again(&app, &form.visitor, id, Some(&refused)).await
        }
    }
}

/// Leads to the first step of a draft that is not complete.
pub async fn open(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    let draft = read(&app, &visitor, &id).await?;
    let problems = drafts::problems(&app, &draft).await?;
    let first = problems.iter().map(|one| DraftStep::of(one.part)).min();
    Ok(redirect(first.unwrap_or(DraftStep::Review), &id))
}

/// Shows the people of a draft.
pub async fn people(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    let draft = read(&app, &visitor, &id).await?;
    Ok(people_page(&visitor, &draft, (0, 0), None))
}

/// Shows the form of the people with at least so many rows for signers and for recipients.
fn people_page(
    visitor: &Visitor,
    draft: &Draft,
    (signers, copies): (usize, usize),
    refused: Option<&RefusedForm>,
) -> Response {
    let texts = visitor.texts;
    let action = DraftStep::People.address(draft.envelope.id.as_str());
    let form = FormView::new(texts, &action, refused);
    let roles = draft
        .template
        .as_ref()
        .map(Template::roles)
        .unwrap_or_default();
    let signers = signers
        .max(draft.signers.len())
        .max(roles.len())
        .clamp(1, PEOPLE);
    let copies = copies.max(draft.recipients.len()).clamp(1, PEOPLE);
    let ordered = draft.envelope.sending.preserve_signing_order;
    // Turns that only repeat the positions are no choice of the sender.
    let is_grouped = draft
        .signers
        .iter()
        .any(|signer| signer.turn != signer.position + 1);
    let body = html! {
        form method="post" action=(action) {
            (visitor.token())
            (form.summary())
            // The Enter key presses the first button of a form.
            button type="submit" hidden { (texts.text("send-continue")) }
            @for at in 0..signers {
                @let signer = draft.signers.get(at);
                @let turn = signer.filter(|_| is_grouped).map(|signer| signer.turn.to_string());
                (signer_row(&form, at, signer, roles.get(at).copied(), &turn.unwrap_or_default()))
            }
            button.quiet type="submit" name="more" value="signers" formnovalidate { (texts.text("send-more-signers")) }
            (form.tick("ordered", &texts.text("send-ordered"), ordered))
            details.card open[!draft.recipients.is_empty() || form.is_refused()] {
                summary { (texts.text("send-copies")) }
                @for at in 0..copies { (recipient_row(&form, at, draft.recipients.get(at))) }
                button.quiet type="submit" name="more" value="recipients" formnovalidate { (texts.text("send-more-copies")) }
            }
            (onward(texts, draft, DraftStep::Document))
        }
    };

    step_page(visitor, draft, DraftStep::People, body, refused)
}

fn signer_row(
    form: &FormView<'_>,
    at: usize,
    signer: Option<&Signer>,
    role: Option<&str>,
    turn: &str,
) -> Markup {
    let texts = form.texts;
    let name = |name: &str| format!("{name}-{at}");
    let present = |read: fn(&Signer) -> &str| signer.map_or("", read);
    let role = signer.map_or(role.unwrap_or_default(), |signer| signer.role.as_str());
    let access = signer.map_or(SignerAccess::None, |signer| signer.access);
    let asked = ACCESS.map(|(access, text)| (access.as_str().to_owned(), texts.text(text)));
    let locale = signer.and_then(|signer| signer.locale);
    let consumer = signer.and_then(|signer| signer.consumer);
    let zone = signer.and_then(|signer| signer.time_zone.as_ref());
    let of_programs = [
        (
            "notify_by",
            signer.map_or("", |signer| signer.notify_by.as_str()),
        ),
        (
            "consumer",
            consumer.map_or("", |one| if one { "true" } else { "false" }),
        ),
        ("time_zone", zone.map_or("", ZoneName::as_str)),
    ];
    let is_special = |signer: &Signer| {
        signer.access != SignerAccess::None
            || signer.kind != SignerKind::Signer
            || signer.group.is_some()
    };
    let legend = if role.is_empty() {
        texts.with("send-signer", [("number", at + 1)])
    } else {
        role.to_owned()
    };

    html! {
        fieldset.card {
            legend { h2 { (legend) } }
            (form.text(&TextField {
                present: present(|signer| signer.name.as_str()),
                is_required: at == 0,
                ..TextField::new(&name("name"), &texts.text("rules-name"))
            }))
            (form.text(&TextField {
                kind: "email",
                limit: 200,
                present: present(|signer| signer.email.as_str()),
                is_required: at == 0,
                ..TextField::new(&name("email"), &texts.text("sign-in-email"))
            }))
            (form.text(&TextField {
                limit: 200,
                present: role,
                ..TextField::new(&name("role"), &texts.text("send-role"))
            }))
            // Set by programs; the form leaves them as they are.
            @for (of_program, present) in &of_programs {
                @let value = form.value(&name(of_program), present);
                @if !value.is_empty() { input type="hidden" name=(name(of_program)) value=(value); }
            }
            details open[signer.is_some_and(is_special) || form.is_refused()] {
                summary { (texts.text("send-more")) }
                (part_fields(form, at, signer))
                (form.text(&TextField {
                    kind: "number",
                    present: turn,
                    ..TextField::new(&name("order"), &texts.text("send-order"))
                }))
                (form.select(&name("locale"), &texts.text("settings-language"), &languages(texts),
                    locale.map_or("", Locale::as_str)))
                (form.select(&name("access"), &texts.text("send-access"), &asked, access.as_str()))
                (form.text(&TextField {
                    kind: "password",
                    limit: 64,
                    ..TextField::new(&name("passcode"), &texts.text("code-passcode-label"))
                }))
                (form.text(&TextField {
                    kind: "tel",
                    limit: 40,
                    present: signer.and_then(|signer| signer.phone.as_deref()).unwrap_or_default(),
                    ..TextField::new(&name("phone"), &texts.text("identity-phone"))
                }))
            }
        }
    }
}

/// Renders the part of a signer in the document: as a witness of another signer, or as a member of a group.
fn part_fields(form: &FormView<'_>, at: usize, signer: Option<&Signer>) -> Markup {
    let texts = form.texts;
    let [kind, witness_of, place, group] =
        ["kind", "witness_of", "same_device", "group"].map(|name| format!("{name}-{at}"));
    let kinds = SIGNER_KINDS.map(|(kind, text)| (kind.as_str().to_owned(), texts.text(text)));
    let places = [("", "send-own-link"), ("true", "send-same-device")];
    let places = places.map(|(value, text)| (value.to_owned(), texts.text(text)));
    let present_kind = signer.map_or(SignerKind::Signer, |signer| signer.kind);
    let is_beside = signer.is_some_and(|signer| signer.same_device);
    let of_signer = |read: fn(&Signer) -> Option<&str>| signer.and_then(read).unwrap_or_default();

    html! {
        (form.select(&kind, &texts.text("send-kind"), &kinds, present_kind.as_str()))
        (form.text(&TextField {
            limit: 200,
            present: of_signer(|signer| signer.witness_of.as_deref()),
            ..TextField::new(&witness_of, &texts.text("send-witness-of"))
        }))
        (form.select(&place, &texts.text("send-witness-place"), &places, if is_beside { "true" } else { "" }))
        (form.text(&TextField {
            limit: 200,
            present: of_signer(|signer| signer.group.as_deref()),
            ..TextField::new(&group, &texts.text("send-group"))
        }))
        p.soft { (texts.text("send-group-hint")) }
    }
}

/// Returns the text of what a recipient is for.
fn recipient_kind(kind: RecipientKind) -> &'static str {
    match kind {
        RecipientKind::Cc => "send-kind-cc",
        RecipientKind::Viewer => "send-kind-viewer",
        RecipientKind::Substitute => "send-kind-substitute",
    }
}

/// Returns the languages of signers, and the choice of none.
fn languages(texts: Texts) -> Vec<(String, String)> {
    let languages = Locale::ALL.iter();
    let languages = languages.map(|one| (one.as_str().to_owned(), one.own_name().to_owned()));
    let of_browser = (String::new(), texts.text("send-browser-language"));
    std::iter::once(of_browser).chain(languages).collect()
}

fn recipient_row(form: &FormView<'_>, at: usize, recipient: Option<&Recipient>) -> Markup {
    let texts = form.texts;
    let [name, email, kind, group] = OF_RECIPIENT.map(|name| format!("{name}-{at}"));
    let kinds = RecipientKind::ALL.iter();
    let kinds = kinds.map(|one| (one.as_str().to_owned(), texts.text(recipient_kind(*one))));
    let kinds: Vec<(String, String)> = kinds.collect();
    let present_kind = recipient.map_or(RecipientKind::Cc, |recipient| recipient.kind);
    html! {
        (form.text(&TextField {
            present: recipient.map_or("", |recipient| recipient.name.as_str()),
            ..TextField::new(&name, &texts.text("rules-name"))
        }))
        (form.text(&TextField {
            kind: "email",
            limit: 200,
            present: recipient.map_or("", |recipient| recipient.email.as_str()),
            ..TextField::new(&email, &texts.text("sign-in-email"))
        }))
        (form.select(&kind, &texts.text("send-kind"), &kinds, present_kind.as_str()))
        (form.text(&TextField {
            limit: 200,
            present: recipient.and_then(|recipient| recipient.group.as_deref()).unwrap_or_default(),
            ..TextField::new(&group, &texts.text("send-group"))
        }))
    }
}

/// Moves the rows with a name or an address to the front and removes the others, so that a row has the index of its
/// person in the request. Returns their number.
fn close_gaps(values: &mut BTreeMap<String, String>, controls: &[&str]) -> usize {
    let mut filled = Vec::new();
    for at in 0..PEOPLE {
        let row: Vec<Option<String>> = controls
            .iter()
            .map(|name| values.remove(&format!("{name}-{at}")))
            .collect();
        let is_given = |value: &Option<String>| {
            value
                .as_deref()
                .is_some_and(|value| !value.trim().is_empty())
        };
        // Name and address are the first controls.
        if row.iter().take(2).any(is_given) {
            filled.push(row);
        }
    }

    for (at, row) in filled.iter().enumerate() {
        for (name, value) in controls.iter().zip(row) {
            if let Some(value) = value {
                values.insert(format!("{name}-{at}"), value.clone());
            }
        }
    }

    filled.len()
}

/// Returns the people of a form, as the API takes them.
fn people_of(form: &ConsoleForm, signers: usize, copies: usize) -> Value {
    let given = |name: String| Some(form.value(&name)).filter(|value| !value.is_empty());
    let signer = |at: usize| {
        let members = OF_SIGNER.iter().filter_map(|name| {
            let value = given(format!("{name}-{at}"))?;
            let value = match (*name, value.parse::<i64>()) {
                ("order", Ok(number)) => json!(number),
                ("consumer" | "same_device", _) => json!(value == "true"),
                _ => json!(value),
            };
            Some(((*name).to_owned(), value))
        });
        Value::Object(members.collect())
    };
    let recipient = |at: usize| {
        let members = OF_RECIPIENT.iter().filter_map(|name| {
            let value = given(format!("{name}-{at}"))?;
            let member = name.trim_start_matches("recipients_");
            Some((member.to_owned(), json!(value)))
        });
        Value::Object(members.collect())
    };

    json!({
        "signers": (0..signers).map(signer).collect::<Vec<_>>(),
        "recipients": (0..copies).map(recipient).collect::<Vec<_>>(),
        "preserve_signing_order": form.value("ordered") == "yes",
    })
}

/// Stores the people of a draft, or shows the form with one row more.
pub async fn save_people(
    State(app): State<App>,
    Path(id): Path<String>,
    mut form: ConsoleForm,
) -> PageResult {
    let draft = read(&app, &form.visitor, &id).await?;
    let signers = close_gaps(&mut form.values, &OF_SIGNER);
    let copies = close_gaps(&mut form.values, &OF_RECIPIENT);
    let rows = match form.value("more") {
        "signers" => Some((signers + 1, copies)),
        "recipients" => Some((signers, copies + 1)),
        _ => None,
    };
    if let Some(rows) = rows {
        let kept = form.kept();
        return Ok(people_page(&form.visitor, &draft, rows, Some(&kept)));
    }

    let saved = match valid::<DraftPeople>(people_of(&form, signers, copies)) {
        Ok(people) => drafts::set_people(&app, &form.visitor.caller, &id, people)
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    let renamed = [("signers".to_owned(), "name-0".to_owned())];
    match saved {
        Ok(()) => Ok(redirect(DraftStep::Fields, &id)),
        Err(error) => {
            let refused = form.refused_with(error, &renamed)?;
            let rows = (signers, copies);
            Ok(people_page(&form.visitor, &draft, rows, Some(&refused)))
        }
    }
}

/// Shows the fields of a draft by role, and the way to the builder.
pub async fn fields(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    let draft = read(&app, &visitor, &id).await?;
    let texts = visitor.texts;
    let template = draft.template.as_ref();
    let template = template.filter(|template| !template.fields.is_empty());
    let body = html! {
        @match template {
            None => p.alarm { (texts.text("template-no-fields")) },
            Some(template) => section.card {
                h2 { (texts.text("template-roles")) }
                ul.rows {
                    @for role in template.roles() {
                        @let own = template.fields.iter().filter(|field| field.role == role);
                        @let names: Vec<&str> = own.map(|field| field.name.as_str()).collect();
                        li {
                            p { strong { (role) } }
                            p.soft { (names.join(", ")) }
                            p {
                                a href={ (PATH) "/templates/" (template.id) "/preview?role=" (encoded(role)) } {
                                    (texts.text("template-preview"))
                                }
                            }
                        }
                    }
                }
            },
        }
        form method="post" action=(DraftStep::Fields.address(&id)) {
            (visitor.token())
            button.quiet[template.is_some()] type="submit" { (texts.text("template-edit")) }
        }
        div.actions {
            a.button.quiet href=(DraftStep::People.address(&id)) { (texts.text("console-back")) }
            // Without fields the builder is the next step.
            a.button.quiet[template.is_none()] href=(DraftStep::Details.address(&id)) { (texts.text("send-continue")) }
        }
    };

    Ok(step_page(&visitor, &draft, DraftStep::Fields, body, None))
}

/// Opens the builder, which leads back to the step.
pub async fn place_fields(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    let back = DraftStep::Fields.address(&id);
    Ok(open_builder(&app, &form.visitor, ("envelope_id", &id), &back).await)
}

/// Shows the details of a draft.
pub async fn details(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    let draft = read(&app, &visitor, &id).await?;
    Ok(details_page(&visitor, &draft, None))
}

fn details_page(visitor: &Visitor, draft: &Draft, refused: Option<&RefusedForm>) -> Response {
    let (texts, envelope) = (visitor.texts, &draft.envelope);
    let action = DraftStep::Details.address(envelope.id.as_str());
    let form = FormView::new(texts, &action, refused);
    let until = envelope
        .expires_at
        .map(|at| at.date().to_string())
        .unwrap_or_default();
    let values: Vec<_> = draft.template.iter().flat_map(filled).collect();
    let body = html! {
        form method="post" action=(action) {
            (visitor.token())
            (form.summary())
            section.card {
                (form.text(&TextField {
                    present: &envelope.name,
                    ..TextField::required("envelope_name", &texts.text("send-name"))
                }))
                (form.text(&TextField {
                    present: envelope.external_id.as_deref().unwrap_or_default(),
                    ..TextField::new("external_id", &texts.text("send-reference"))
                }))
                (form.text(&TextField {
                    limit: 200,
                    present: envelope.sending.subject.as_deref().unwrap_or_default(),
                    ..TextField::new("subject", &texts.text("send-subject"))
                }))
                (form.lines("message", &texts.text("send-message"), 4,
                    envelope.sending.message.as_deref().unwrap_or_default()))
                (form.text(&TextField {
                    kind: "date",
                    present: &until,
                    ..TextField::new("until", &texts.text("send-until"))
                }))
            }
            (reminder_fields(&form, envelope))
            (payment_fields(&form, draft))
            @if !values.is_empty() {
                details.card open[form.is_refused() || envelope.prefilled().is_some()] {
                    summary { (texts.text("send-values")) }
                    @for (at, field) in values {
                        @let present = envelope.prefilled().and_then(|values| values.get(&field.name));
                        (value_field(&form, at, field, &shown_value(present)))
                    }
                }
            }
            details.card open[form.is_refused() || envelope.secured_party.is_some()] {
                summary { (texts.text("send-party")) }
                p.soft { (texts.text("send-party-hint")) }
                @let party = json!(envelope.secured_party);
                @for (name, label) in PARTY_FIELDS {
                    (form.text(&TextField {
                        present: party[name.trim_start_matches("party_")].as_str().unwrap_or_default(),
                        ..TextField::new(name, &texts.text(label))
                    }))
                }
            }
            (onward(texts, draft, DraftStep::Fields))
        }
    };

    step_page(visitor, draft, DraftStep::Details, body, refused)
}

/// Returns a stored value as it is entered.
fn shown_value(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn reminder_fields(form: &FormView<'_>, envelope: &Envelope) -> Markup {
    let texts = form.texts;
    let plan = envelope.reminders().map(|planned| planned.plan);
    let [first, every, most] = match plan {
        Some(plan) => {
            [plan.first_after_days, plan.every_days, plan.at_most].map(|one| one.to_string())
        }
        None => Default::default(),
    };

    let before_expiry = plan.and_then(|plan| plan.before_expiry_days);
    let before_expiry = before_expiry.map_or(String::new(), |days| days.to_string());

    let fields = [
        ("first_after_days", "settings-reminders-first", first),
        ("every_days", "settings-reminders-every", every),
        ("at_most", "settings-reminders-most", most),
        (
            "before_expiry_days",
            "settings-reminders-expiry",
            before_expiry,
        ),
    ];

    html! {
        details.card open[form.is_refused() || plan.is_some()] {
            summary { (texts.text("settings-reminders")) }
            @for (name, label, present) in &fields {
                (form.text(&TextField {
                    kind: "number",
                    present,
                    ..TextField::new(name, &texts.text(label))
                }))
            }
        }
    }
}

fn payment_fields(form: &FormView<'_>, draft: &Draft) -> Markup {
    let texts = form.texts;
    // The payment of the organization applies without entries here.
    let asked = draft.payment.as_ref().filter(|payment| payment.own);
    let asked = asked.map(|payment| &payment.asked);
    let amount = asked.map(|asked| major_units(asked.amount_cents, &asked.currency));
    let payer = asked.map(|asked| asked.payer.as_str());
    let payer = payer.filter(|payer| *payer != FIRST_PAYER);
    html! {
        details.card open[form.is_refused() || asked.is_some()] {
            summary { (texts.text("settings-payment")) }
            (form.text(&TextField {
                present: amount.as_deref().unwrap_or_default(),
                pattern: Some(r"[0-9]{1,10}([.][0-9]{1,3})?"),
                ..TextField::new("amount", &texts.text("envelopes-amount"))
            }))
            (form.text(&TextField {
                limit: 3,
                present: asked.map_or("", |asked| asked.currency.as_str()),
                ..TextField::new("currency", &texts.text("settings-paper-currency"))
            }))
            (form.text(&TextField {
                limit: 200,
                present: payer.unwrap_or_default(),
                ..TextField::new("payer", &texts.text("send-payer"))
            }))
        }
    }
}

/// Writes an amount with a point before its minor units.
fn major_units(amount: u64, currency: &str) -> String {
    let digits = usize::from(minor_digits(currency));
    if digits == 0 {
        return amount.to_string();
    }

    let text = format!("{amount:0width$}", width = digits + 1);
    let (whole, minor) = text.split_at(text.len() - digits);
    format!("{whole}.{minor}")
}

/// Reads an amount with a point before its minor units; none if it is no amount of the currency.
fn minor_units(amount: &str, currency: &str) -> Option<u64> {
    let digits = usize::from(minor_digits(currency));
    let (whole, minor) = amount.split_once('.').unwrap_or((amount, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || minor.len() > digits || !are_digits(whole) || !are_digits(minor) {
        return None;
    }
    format!("{whole}{minor:0<digits$}").parse().ok()
}

/// Returns the details of a form, as the API takes them.
fn details_of(draft: &Draft, form: &ConsoleForm) -> Value {
    let some = |name: &str| {
        let value = form.value(name);
        (!value.is_empty()).then(|| Value::from(value))
    };
    let envelope = &draft.envelope;
    let mut details = json!({ "envelope_name": form.value("envelope_name") });
    for name in ["external_id", "subject", "message"] {
        if let Some(value) = some(name) {
            details[name] = value;
        }
    }

    // An unchanged day keeps the time of the day that it has.
    let present = envelope.expires_at.map(|at| at.date().to_string());
    let until = form.value("until");
    if !until.is_empty() && present.as_deref() != Some(until) {
        details["expires_at"] = format!("{until}T23:59:59Z").into();
    }

    let plan = ["first_after_days", "every_days", "at_most"];
    let expiry = Some("before_expiry_days").filter(|name| !form.value(name).is_empty());
    if expiry.is_some() || plan.iter().any(|name| !form.value(name).is_empty()) {
        // A number that is none is out of its range.
        let number = |name: &str| form.value(name).parse::<u8>().unwrap_or(u8::MAX);
        let members = plan.into_iter().chain(expiry);
        let members = members.map(|name| (name.to_owned(), json!(number(name))));
        details["reminders"] = Value::Object(members.collect());
    }

    if let Some(amount) = some("amount") {
        let currency = form.value("currency");
        let code = known_currency(currency).unwrap_or_default();
        let amount = amount.as_str().unwrap_or_default();
        // Zero is out of the range of amounts, and so refused at its field.
        let cents = minor_units(amount, &code).unwrap_or_default();
        details["payment"] = json!({ "amount_cents": cents, "currency": currency });
        if let Some(payer) = some("payer") {
            details["payment"]["payer"] = payer;
        }
    }

    if let Some(name) = some("party_name") {
        // The form has some of the members, and leaves the others as they are.
        let mut party = match json!(envelope.secured_party) {
            Value::Object(party) => party,
            _ => Map::new(),
        };
        party.insert("name".into(), name);
        for (member, field) in [("role", "party_role"), ("identifier", "party_identifier")] {
            party.insert(member.into(), some(field).unwrap_or(Value::Null));
        }
        details["secured_party"] = Value::Object(party);
    }

    let mut values = envelope.prefilled().cloned().unwrap_or_default();
    for (at, field) in draft.template.iter().flat_map(filled) {
        match some(&value_name(at)) {
            Some(value) => values.insert(field.name.clone(), value),
            None => values.remove(&field.name),
        };
    }
    details["prefilled_data"] = Value::Object(values);

    details
}

/// Stores the details of a draft.
pub async fn save_details(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let draft = read(&app, &form.visitor, &id).await?;
    let saved = match valid::<DraftDetails>(details_of(&draft, &form)) {
        Ok(details) => drafts::set_details(&app, &form.visitor.caller, &id, details)
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    let renamed = [
        ("expires_at", "until"),
        ("amount_cents", "amount"),
        ("secured_party", "party_name"),
    ];
    let renamed = renamed.map(|(member, field)| (member.to_owned(), field.to_owned()));
    match saved {
        Ok(()) => Ok(redirect(DraftStep::Review, &id)),
        Err(error) => {
            let refused = form.refused_with(error, &renamed)?;
            Ok(details_page(&form.visitor, &draft, Some(&refused)))
        }
    }
}

/// Shows everything prepared, and everything missing.
pub async fn review(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    let draft = read(&app, &visitor, &id).await?;
    review_page(&app, &visitor, &draft, &[], None).await
}

/// Shows the review, with the findings that have stopped the sending.
async fn review_page(
    app: &App,
    visitor: &Visitor,
    draft: &Draft,
    found: &[FindingView],
    refused: Option<&RefusedForm>,
) -> PageResult {
    let (texts, envelope) = (visitor.texts, &draft.envelope);
    let problems = drafts::problems(app, draft).await?;
    let pages = pages_of(app, envelope).await;
    let address = |step: DraftStep| step.address(envelope.id.as_str());
    let form = FormView::new(texts, &address(DraftStep::Review), refused);
    let zone = &visitor.organization.settings.dates.time_zone;
    let planned = envelope.planned_sending().map(|planned| planned.at);
    let send_at = planned.map(|at| zone.local(at).strftime("%Y-%m-%dT%H:%M").to_string());
    let send_at = send_at.unwrap_or_default();
    let body = html! {
        (form.summary())
        @if !found.is_empty() {
            section.card {
                h2 { (texts.text("funding-stopped")) }
                (funding::findings(texts, found))
                (funding::marked_pages(texts, envelope, found, &pages))
            }
        }
        (missing(texts, envelope, &problems))
        (people_card(texts, draft))
        section.card {
            h2 { (texts.text("send-step-details")) }
            dl.facts {
                @for (name, fact) in facts(visitor, draft) { div { dt { (name) } dd { (fact) } } }
            }
            p { a href=(address(DraftStep::Details)) { (texts.text("console-change")) } }
        }
        (pictures(texts, envelope, 0, pages.len()))
        form method="post" action=(address(DraftStep::Review)) {
            (visitor.token())
            @if problems.is_empty() {
                // The Enter key presses the first button of a form.
                button type="submit" hidden { (texts.text("console-send")) }
                details.card open[form.is_refused() || planned.is_some()] {
                    summary { (texts.text("send-later")) }
                    (form.text(&TextField {
                        kind: "datetime-local",
                        present: &send_at,
                        ..TextField::new("send_at", &texts.with("send-at", [("zone", zone.as_str())]))
                    }))
                    @if planned.is_some() {
                        button.quiet type="submit" name="end" value="yes" { (texts.text("send-end-plan")) }
                    }
                }
            }
            div.actions {
                a.button.quiet href=(address(DraftStep::Details)) { (texts.text("console-back")) }
                @if problems.is_empty() { button type="submit" { (texts.text("console-send")) } }
            }
        }
    };

    let step = DraftStep::Review;
    Ok(step_page(visitor, draft, step, body, refused))
}

/// Renders the people of a draft, with witnesses and groups.
fn people_card(texts: Texts, draft: &Draft) -> Markup {
    html! {
        section.card {
            h2 { (texts.text("console-people")) }
            ul.rows {
                @for signer in &draft.signers {
                    li {
                        p { strong { (signer.name) } " " span.soft { (signer.role) } }
                        p.soft { (signer.email) @if let Some(phone) = &signer.phone { " · " (phone) } }
                        @if let Some(role) = &signer.witness_of {
                            p.soft {
                                (texts.with("send-witnesses", [("role", role.as_str())]))
                                @if signer.same_device { " · " (texts.text("send-same-device")) }
                            }
                        }
                    }
                }
                @for recipient in &draft.recipients {
                    li {
                        p { strong { (recipient.name) } " " span.soft { (texts.text(recipient_kind(recipient.kind))) } }
                        p.soft { (recipient.email) }
                    }
                }
            }

            @for (group, (needed, members)) in groups_of(draft) {
                @let values = [("group", group.to_owned()), ("needed", needed.to_string()), ("members", members.to_string())];
                p { (texts.with("send-group-rule", values)) }
            }

            p { a href=(DraftStep::People.address(draft.envelope.id.as_str())) { (texts.text("console-change")) } }
        }
    }
}

/// Returns the groups of a draft: how many members sign, and how many members there are.
fn groups_of(draft: &Draft) -> BTreeMap<&str, (usize, usize)> {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for group in draft
        .signers
        .iter()
        .filter_map(|signer| signer.group.as_deref())
    {
        let (needed, members) = groups.entry(group).or_default();
        *needed += 1;
        *members += 1;
    }
    for group in draft
        .recipients
        .iter()
        .filter_map(|recipient| recipient.group.as_deref())
    {
        let (_, members) = groups.entry(group).or_default();
        *members += 1;
    }
    groups
}

/// Renders missing parts, with links to the steps.
fn missing(texts: Texts, envelope: &Envelope, problems: &[DraftProblem]) -> Markup {
    html! {
        @if !problems.is_empty() {
            section.card {
                h2 { (texts.text("send-missing")) }
                ul.rows {
                    @for problem in problems {
                        @let step = DraftStep::of(problem.part);
                        li {
                            @match (&problem.message, problem.part) {
                                (Some(message), _) => span lang="en" dir="ltr" { (message) },
                                (None, DraftPart::Fields) => (texts.text("template-no-fields")),
                                (None, _) => (texts.text("send-no-people")),
                            }
                            " "
                            a href=(step.address(envelope.id.as_str())) { (step.name(texts)) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the details of a draft that have a value, with their names.
fn facts(visitor: &Visitor, draft: &Draft) -> Vec<(String, Markup)> {
    let (texts, envelope) = (visitor.texts, &draft.envelope);
    let text = |text: &str| html! { (text) };

    let reminders = envelope.reminders().map(|planned| {
        let plan = planned.plan;
        html! { (plan.first_after_days) " / " (plan.every_days) " / " (plan.at_most) }
    });
    let payment = draft.payment.as_ref().map(|payment| {
        let asked = &payment.asked;
        text(&texts.amount(asked.amount_cents, &asked.currency))
    });
    let party = envelope.secured_party.as_ref();

    let facts = [
        ("send-name", Some(text(&envelope.name))),
        ("send-reference", envelope.external_id.as_deref().map(text)),
        (
            "send-subject",
            envelope.sending.subject.as_deref().map(text),
        ),
        (
            "send-message",
            envelope.sending.message.as_deref().map(text),
        ),
        (
            "envelopes-expires",
            envelope.expires_at.map(|at| visitor.moment(at)),
        ),
        ("settings-reminders", reminders),
        ("settings-payment", payment),
        ("send-party", party.map(|party| text(&party.name))),
    ];

    let given = facts
        .into_iter()
        .filter_map(|(name, fact)| Some((texts.text(name), fact?)));
    given.collect()
}

/// Sends a draft with everything that was prepared.
pub async fn send(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    let draft = read(&app, &form.visitor, &id).await?;
    let (caller, later) = (form.visitor.caller.clone(), form.value("send_at"));
    let acted = if form.value("end") == "yes" {
        let none = PlanSending { send_at: None };
        let ended = planned_sending::plan(&app, &caller, &id, none, &unrecorded()).await;
        ended.map(|_| "planned").map_err(HttpError::from)
    } else {
        match valid::<SendEnvelope>(sending_of(&form.visitor, later)) {
            Ok(request) => send_draft(app.clone(), caller, id.clone(), request)
                .await
                .map(|()| if later.is_empty() { "sent" } else { "planned" })
                .map_err(HttpError::from),
            Err(error) => Err(error),
        }
    };
    match acted {
        Ok(done) => {
            let page = format!("{PATH}/envelopes/{id}?done={done}");
            Ok(Redirect::to(&page).into_response())
        }
        Err(error) => {
            let found = funding::of_refusal(&error);
            let refused = form.refused(error)?;
            review_page(&app, &form.visitor, &draft, &found, Some(&refused)).await
        }
    }
}

/// Returns the body of a sending, at a local time if there is one.
fn sending_of(visitor: &Visitor, later: &str) -> Value {
    if later.is_empty() {
        return json!({});
    }

    // The API refuses a text that is no time, at its field.
    let at = visitor
        .organization
        .settings
        .dates
        .time_zone
        .moment_of(later);
    json!({ "send_at": at.map_or_else(|| later.to_owned(), |at| at.to_string()) })
}

/// Sends a draft to the people who were named for it, now or later. Completes even if the browser goes away: the
/// provider is called first.
pub async fn send_draft(
    app: App,
    caller: Caller,
    id: String,
    request: SendEnvelope,
) -> Result<(), ServiceError> {
    let sent = tokio::spawn(async move {
        let (locks, pages) = (&app.vault.locks, &app.pages);
        sending::send(&app, locks, pages, &caller, &id, request, &unrecorded())
            .await
            .map(drop)
    });
    match sent.await {
        Ok(outcome) => outcome,
        Err(error) => Err(ServiceError::Internal(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_becomes_that_of_its_document() {
        let name = |file| document_name(Texts::default(), file);
        assert_eq!(name(Some("Lease 2041.pdf")), "Lease 2041");
        assert_eq!(name(Some("C:\\papers\\Lease.v2.pdf")), "Lease.v2");
        assert_eq!(name(Some(".pdf")), ".pdf");
        assert_eq!(name(None), "A new document");
    }

    #[test]
    fn amounts_are_entered_in_major_units() {
        for (text, currency, cents) in [
            ("12.50", "USD", Some(1250)),
            ("12", "USD", Some(1200)),
            ("500", "JPY", Some(500)),
            ("1.5", "JPY", None),
            ("12.345", "USD", None),
            ("twelve", "USD", None),
            ("", "USD", None),
        ] {
            assert_eq!(minor_units(text, currency), cents, "{text} {currency}");
        }
        assert_eq!(major_units(5, "USD"), "0.05");
        assert_eq!(major_units(500, "JPY"), "500");
    }

    #[test]
    fn a_row_without_a_person_is_left_out() {
        let mut values: BTreeMap<String, String> = [
            ("name-0", " "),
            ("email-0", ""),
            ("role-0", "Buyer"),
            ("name-2", "Ann"),
            ("role-2", "Seller"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(close_gaps(&mut values, &OF_SIGNER), 1);
        assert_eq!(values["name-0"], "Ann");
        assert_eq!(values["role-0"], "Seller");
        assert_eq!(values.len(), 2);
    }
}
