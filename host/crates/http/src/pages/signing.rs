//! The signing form: server-rendered pages at `{signing_host}/{token}`.
//!
//! A plain HTML form that works without JavaScript. The token in the URL is the signer's
//! credential; an invalid one leads to a page that explains the problem.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Form as FormBody, Json, Router};
use maud::html;
use serde_json::{Value, json};

use super::attachments;
use super::code;
use super::drawing;
use super::kba;
use super::page_frame::EmbedMessage;
use super::signer_link::SignerVisit;
use super::signing_files;
use super::signing_page::{DELEGATION, DISPLAYED, QUESTION, SigningPage};
use super::viewing;
use crate::error::HttpError;
use crate::middleware::origin::origin;
use crate::routing::{boxed, get, post};
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::SignerStatus;
use holdfast_domain::identity;
use holdfast_domain::locale::Message;
use holdfast_domain::question::{LONGEST_TEXT, MOST_QUESTIONS};
use holdfast_platform::ServiceError;
use holdfast_platform::kba::{IdentitySubmission, is_open};
use holdfast_platform::room::disclosures::DeliveredToSigner;
use holdfast_platform::room::form::{
    CONSENT, DOCUMENT, FormError, Problems, RequestOrigin, SavedForm,
};
use holdfast_service::App;
use holdfast_service::signing::corrections::{self, SignerChange};
use holdfast_service::signing::questions::{self, AskOutcome};
use holdfast_service::signing::visits::{self, DevicePass, LinkRenewal};
use holdfast_service::signing::{LinkDestination, check_may_decline, destination, reconcile};
use holdfast_service::templates::pages;
use holdfast_store::disclosures::{DeliveredItem, KeptDisclosure};
use holdfast_store::room::GivenConsent;

/// Size limit of a form, which may carry a drawn picture in several fields.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// Returns the routes of the signer's pages, below `path`.
pub fn routes(path: &str) -> Router<App> {
    let below = |name: &str| format!("{path}/{{token}}{name}");
    Router::new()
        .route(&below(""), get(show).post(boxed(submit)))
        .route(&below("/renew"), post(renew))
        .route(&below("/witness"), post(pass_to_witness))
        .merge(signing_files::routes(path))
        .merge(attachments::routes(path))
        .merge(drawing::routes(path))
        .merge(viewing::routes(path))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
}

async fn show(State(app): State<App>, visit: SignerVisit) -> Response {
    // Before the closed pages: that of a signed document offers the copy, which needs the code as well.
    if visit.asks_for_code() {
        return code::ask(&app, &visit).await;
    }
    if let Some(page) = visit.closed() {
        return page;
    }
    if let Some(page) = kba::closed(&app, &visit, visit.origin.ip.clone()).await {
        return page;
    }

    match kba::recognise(&app, &visit).await {
        Ok(cookie) => kba::with_cookie(opened(&app, visit).await, cookie),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Shows the form. Programs fetch links, too: the signer is `viewed` by the first request of the page itself, or by the
/// first act.
async fn opened(app: &App, visit: SignerVisit) -> Response {
    // Another provider has the form. The link still leads through this host, because that provider
    // admits anyone at any time.
    let Some(submitter) = visit.room_submitter() else {
        return elsewhere(app, &visit).await;
    };
    render(app, &visit, submitter, FormFeedback::default()).await
}

/// Records that the document is shown to the signer, once.
///
/// # Errors
/// The page with the reason.
async fn note_seen(app: &App, visit: &SignerVisit, submitter: i64) -> Result<(), Response> {
    if visit.signer.status != SignerStatus::Pending {
        return Ok(());
    }

    let (org, person) = (&visit.envelope.org, &visit.signer.email);
    let opened = app.room().open(org, submitter, person, &visit.origin).await;
    match opened {
        Ok(()) => {
            follow(app, visit, None).await;
            Ok(())
        }
        // The act itself reports it.
        Err(FormError::NotYourTurn) => Ok(()),
        Err(error) => Err(visit.failed(error)),
    }
}

/// Redirects to the form of an external provider, after our own checks.
async fn elsewhere(app: &App, visit: &SignerVisit) -> Response {
    match destination(app, &visit.envelope, &visit.signer).await {
        Ok(LinkDestination::Page(url)) => Redirect::to(&url).into_response(),
        Ok(LinkDestination::NotYourTurn(other)) => visit.not_yet(StatusCode::OK, Some(&other)),
        Ok(LinkDestination::PassedOn) => {
            visit.notice_of_end(StatusCode::OK, "replaced-title", "replaced")
        }
        Ok(LinkDestination::Closed) => visit.failed(FormError::Closed),
        // The link is valid, so the signer is asked to try again later. The log has the cause.
        Err(ServiceError::Provider(error)) => {
            tracing::warn!(envelope = %visit.envelope.id, %error, "redirect to provider failed");
            visit.unavailable("unavailable-document")
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Submitted form: the pressed button and the values of the controls.
struct SubmittedForm {
    action: String,
    /// Name of the field from which the signer removes the file.
    detached: Option<String>,
    /// Name of the field for which the signer chooses a file on the next page.
    attaching: Option<String>,
    /// Name of the field for which the signer draws on a phone.
    drawing: Option<String>,
    /// Value of the consent's control: SHA-256 of the text that the page showed.
    consent: Option<String>,
    reason: String,
    /// Question to the sender.
    question: String,
    values: BTreeMap<String, String>,
    /// Version of the document on the page.
    document: Option<String>,
    /// Numbers of the pages that the script reported as displayed; none without the script.
    displayed: Option<BTreeSet<u32>>,
    origin: RequestOrigin,
    /// Sent by the script that saves while the signer types and displays the answer itself.
    by_script: bool,
}

impl SubmittedForm {
    async fn read(app: &App, request: Request) -> Option<Self> {
        let (parts, body) = request.into_parts();
        let origin = origin(app, &parts);
        let by_script = is_by_script(&parts.headers);
        let request = Request::from_parts(parts, body);
        let pairs = FormBody::<Vec<(String, String)>>::from_request(request, app).await;

        // Browsers send CRLF, which would count as two characters and differ from what the script sends.
        let pairs = pairs.ok()?.0.into_iter();
        let pairs = pairs.map(|(name, value)| (name, value.replace("\r\n", "\n")));
        // A checkbox sends a hidden `false` before its own `true`: the last wins.
        let mut values: BTreeMap<String, String> = pairs.collect();
        let mut action = values.remove("action").unwrap_or_default();
        // Without the script, this button removes a drawn signature: an empty value replaces it.
        if let Some(field) = action.strip_prefix("clear:") {
            values.insert(field.to_owned(), String::new());
            action = "save".into();
        }

        let detached = action.strip_prefix("detach:").map(str::to_owned);
        if detached.is_some() {
            action = "detach".into();
        }

        let attaching = action.strip_prefix("attach:").map(str::to_owned);
        let drawing = action.strip_prefix("phone:").map(str::to_owned);
        // The form's own controls leave the map, so that only values of fields remain in it.
        Some(Self {
            action,
            detached,
            attaching,
            drawing,
            consent: values.remove("consent"),
            document: values.remove(DOCUMENT),
            displayed: values.remove(DISPLAYED).as_deref().and_then(page_list),
            reason: values
                .remove("reason")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            question: values.remove(QUESTION).unwrap_or_default(),
            values,
            origin,
            by_script,
        })
    }
}

/// Reads page numbers with commas between them. The script begins with a 0, which is no page: so a form without the
/// script, in which the control is empty, differs from one in which no page was displayed yet.
fn page_list(text: &str) -> Option<BTreeSet<u32>> {
    let numbers = text.split(',').map(|number| number.trim().parse());
    numbers.collect::<Result<BTreeSet<u32>, _>>().ok()
}

impl SubmittedForm {
    /// Converts the form to input for the identity check.
    fn about_identity(self) -> IdentitySubmission {
        IdentitySubmission {
            again: self.values.contains_key("again"),
            values: self.values,
            consent: self.consent.is_some_and(|value| value == "yes"),
            ip: self.origin.ip,
        }
    }
}

/// The consent's control in a submitted form.
enum ConsentTick {
    /// Not ticked.
    Absent,
    /// Ticked beside another text than the present one, or one that this signer was never shown.
    OfAnotherText,
    /// Ticked beside the present text.
    Valid {
        /// Time at which the text was first shown.
        shown_at: Timestamp,
        delivered: DeliveredToSigner,
    },
}

impl ConsentTick {
    /// Compares the control with the text that the signer was shown. The organization may have changed it
    /// since.
    async fn of(
        app: &App,
        visit: &SignerVisit,
        submitter: i64,
        sent: &SubmittedForm,
    ) -> Result<Self, ServiceError> {
        let Some(value) = sent.consent.as_deref() else {
            return Ok(Self::Absent);
        };

        // The digest names the text itself. A `yes` of an old page, or the digest of an earlier text, is
        // no consent to this one (decision 0055).
        let sha256 = visit.consent.sha256();
        if value != sha256 {
            return Ok(Self::OfAnotherText);
        }

        // 15 U.S.C. §7001(c)(1) puts the statement before the consent, so a text that this signer's page
        // never delivered does not count.
        let delivered = app.room().delivered_to(visit.reader(submitter)).await?;
        let shown_at = delivered.first(&DeliveredItem::Disclosure(sha256));
        Ok(
            shown_at.map_or(Self::OfAnotherText, |shown_at| Self::Valid {
                shown_at,
                delivered,
            }),
        )
    }

    fn is_valid(&self) -> bool {
        matches!(self, Self::Valid { .. })
    }

    /// Returns the consent to sign a document of so many pages, or why there is none.
    fn consent(&self, visit: &SignerVisit, page_count: usize) -> Result<GivenConsent, Message> {
        let (shown_at, delivered) = match self {
            Self::Absent => return Err(Message::new("problem-consent")),
            Self::OfAnotherText => return Err(Message::new("problem-consent-changed")),
            Self::Valid {
                shown_at,
                delivered,
            } => (*shown_at, delivered),
        };
        // The organization asks for a consent that demonstrates access (15 U.S.C. §7001(c)(1)(C)(ii)).
        if visit.require_access && delivered.first(&DeliveredItem::Pdf).is_none() {
            return Err(Message::new("problem-open-pdf"));
        }

        Ok(GivenConsent {
            version: visit.consent.text.version.clone(),
            locale: visit.consent.locale,
            sha256: visit.consent.sha256(),
            shown_at: Some(shown_at),
            // The sentence beside the box confirms that the document could be read, so the tick is the
            // signer's own statement.
            demonstrated: delivered.access(page_count, true),
        })
    }
}

/// Reads the consent of a submitted form.
async fn given_consent(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    sent: &SubmittedForm,
) -> Result<(ConsentTick, Result<GivenConsent, Problems>), ServiceError> {
    let is_finished = sent.action == "finish";
    let mut page_count = 0;
    let mut unshown = None;

    // Before the tick is read: the consent states the pages displayed until now.
    if is_finished && visit.require_pages {
        page_count = count_pages(app, visit, submitter).await?;
        note_displayed(app, visit, submitter, sent, page_count).await?;
        let delivered = app.room().delivered_to(visit.reader(submitter)).await?;
        unshown = delivered.unshown_page(page_count, sent.displayed.is_some());
    }

    let tick = ConsentTick::of(app, visit, submitter, sent).await?;
    // Only a consent that is recorded needs it.
    if is_finished && tick.is_valid() && page_count == 0 {
        page_count = count_pages(app, visit, submitter).await?;
    }

    let consent = tick.consent(visit, page_count);
    let mut consent = consent.map_err(|why| Problems::from([(CONSENT.to_owned(), why)]));
    if let Some(page) = unshown {
        let page = usize::try_from(page).unwrap_or(usize::MAX);
        let why = Message::with_limit("problem-page-unshown", page);
        let mut problems = consent.err().unwrap_or_default();
        problems.insert(DISPLAYED.to_owned(), why);
        consent = Err(problems);
    }

    Ok((tick, consent))
}

async fn count_pages(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
) -> Result<usize, ServiceError> {
    // Rules change fields and never pages, so the cheaper form without them is enough.
    let room = app.room();
    let form = room.unruled_form(&visit.envelope.org, submitter).await?;
    let shown = pages::shown_facts(app, &app.pages, &form.document).await?;
    Ok(shown.len())
}

/// Records the pages that the script reports as displayed. Numbers that no page has are left out.
async fn note_displayed(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    sent: &SubmittedForm,
    page_count: usize,
) -> Result<(), ServiceError> {
    let Some(displayed) = &sent.displayed else {
        return Ok(());
    };
    let is_page = |page: &&u32| (1..=page_count).contains(&usize::try_from(**page).unwrap_or(0));
    let pages: BTreeSet<u32> = displayed.iter().filter(is_page).copied().collect();

    let reader = visit.reader(submitter);
    app.room().pages_displayed(reader, &pages).await?;
    Ok(())
}

/// Result of a submitted form, for showing the form again.
#[derive(Default)]
pub(super) struct FormFeedback {
    entered: BTreeMap<String, String>,
    problems: Problems,
    consent: bool,
    reason: String,
    question: String,
    review: bool,
}

impl From<Problems> for FormFeedback {
    fn from(problems: Problems) -> Self {
        Self {
            problems,
            ..Self::default()
        }
    }
}

/// Saves, finishes or declines, depending on the pressed button.
async fn submit(State(app): State<App>, visit: SignerVisit, request: Request) -> Response {
    if visit.asks_for_code() {
        return match SubmittedForm::read(&app, request).await {
            // The script cannot show the page that asks for a code, so an error stops it.
            Some(sent) if sent.by_script => {
                HttpError::new(StatusCode::FORBIDDEN, "A code is needed first").into_response()
            }
            Some(sent) => {
                let given = sent.values.get("code").map_or("", String::as_str);
                code::submitted(&app, &visit, &sent.action, given).await
            }
            None => code::ask(&app, &visit).await,
        };
    }

    if let Some(page) = visit.closed() {
        return page;
    }
    let Some(sent) = SubmittedForm::read(&app, request).await else {
        return visit.notice_of_end(StatusCode::BAD_REQUEST, "incomplete-title", "incomplete");
    };

    // Checked for every form: a copied request must not skip the identity questions.
    match is_open(&app, &visit.envelope, &visit.signer).await {
        Ok(true) => {}
        // Forms of the identity check are posted to the same path.
        Ok(false) => return kba::go_on(&app, &visit, sent.about_identity()).await,
        Err(error) => return HttpError::from(error).into_response(),
    }

    match kba::recognise(&app, &visit).await {
        Ok(cookie) => kba::with_cookie(submitted(&app, visit, sent).await, cookie),
        Err(error) => HttpError::from(error).into_response(),
    }
}

async fn submitted(app: &App, visit: SignerVisit, sent: SubmittedForm) -> Response {
    let Some(submitter) = visit.room_submitter() else {
        return elsewhere(app, &visit).await;
    };
    // Without the script, no request reports that the page was seen. The first act then shows that a
    // person opened it.
    if let Err(failed) = note_seen(app, &visit, submitter).await {
        return failed;
    }
    if sent.action == "seen" {
        return StatusCode::NO_CONTENT.into_response();
    }

    if sent.action == "displayed" {
        return displayed(app, &visit, submitter, &sent).await;
    }

    // A signer who names another person signs nothing, so no consent is read.
    if sent.action == "delegate" {
        return delegated(app, visit, submitter, sent).await;
    }

    // The page only leaves the button away.
    if sent.action == "decline"
        && let Err(error) = check_may_decline(&visit.envelope, &visit.signer)
    {
        return HttpError::from(error).into_response();
    }
    if sent.action == "ask" {
        return asked(app, &visit, submitter, sent).await;
    }
    if sent.action == "later" {
        return postponed(app, &visit, submitter, sent).await;
    }
    if let Some(field) = sent.drawing.clone() {
        return drawn_on_phone(app, &visit, submitter, sent, &field).await;
    }

    let (tick, consent) = match given_consent(app, &visit, submitter, &sent).await {
        Ok(read) => read,
        Err(error) => return HttpError::from(error).into_response(),
    };

    let done = act(app, &visit, submitter, &sent, consent).await;
    let ended = sent.action == "finish" || sent.action == "decline";

    // A save changes the envelope only the first time, when the signer becomes `started`.
    if ended {
        follow(app, &visit, Some(submitter)).await;
    } else if done.is_ok() && visit.signer.status != SignerStatus::Started {
        follow(app, &visit, None).await;
    }

    match done {
        Ok(saved) if sent.by_script => Json(for_script(visit.texts, &saved)).into_response(),
        // Read again, because the act and `follow` have changed envelope and signer since.
        Ok(_) if sent.action == "finish" => visit.again(app).await.signed_page(true),
        Ok(_) if sent.action == "decline" => visit.declined_page(),
        // A redirect, so that a reload saves nothing twice.
        Ok(saved) if saved.problems.is_empty() && sent.action != "review" => match sent.attaching {
            Some(field) => to_choice(app, &visit, submitter, &field).await,
            None => back(&visit),
        },
        Ok(SavedForm { problems, .. }) | Err(FormError::Invalid(problems)) => {
            let outcome = FormFeedback {
                review: sent.action == "review",
                consent: tick.is_valid(),
                entered: sent.values,
                reason: sent.reason,
                question: sent.question,
                problems,
            };
            render(app, &visit, submitter, outcome).await
        }
        // Completed already, for example by a second press of the button.
        Err(FormError::Closed) => {
            let visit = visit.again(app).await;
            visit
                .closed()
                .unwrap_or_else(|| visit.failed(FormError::Closed))
        }
        Err(error) => visit.failed(error),
    }
}

/// Returns what the form's script shows after saving.
pub(super) fn for_script(texts: Texts, saved: &SavedForm) -> Value {
    let problems = saved.problems.iter();
    let problems: BTreeMap<&String, String> = problems
        .map(|(name, why)| (name, texts.message(why)))
        .collect();
    json!({
        "problems": problems,
        "hidden": saved.hidden,
        "required": saved.required,
        "computed": saved.computed,
    })
}

/// Returns whether the form's script sent a request and displays the answer itself.
pub(super) fn is_by_script(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    // A browser that opens a page never accepts JSON alone.
    accept.is_some_and(|accept| accept == "application/json")
}

/// Performs the action. Saving returns the problems of the saved values; they prevent finishing,
/// not saving.
async fn act(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    sent: &SubmittedForm,
    consent: Result<GivenConsent, Problems>,
) -> Result<SavedForm, FormError> {
    let (org, room, person) = (
        &visit.envelope.org,
        &app.room(),
        visit.signer.email.as_str(),
    );
    match sent.action.as_str() {
        "finish" => {
            // The consent goes along as a result, so that the room reports a missing one together with the
            // other problems.
            let (values, shown) = (&sent.values, sent.document.as_deref());
            room.finish(
                org,
                (submitter, person),
                values,
                consent,
                shown,
                &sent.origin,
            )
            .await?;

            Ok(SavedForm::default())
        }
        // A decline ends the envelope for all parties, so the sender has to learn why.
        "decline" if sent.reason.is_empty() => {
            let why = ("reason".to_owned(), Message::new("problem-reason"));
            Err(FormError::Invalid(Problems::from([why])))
        }
        "decline" => {
            room.decline(org, submitter, person, &sent.reason, &sent.origin)
                .await?;
            Ok(SavedForm::default())
        }
        "detach" => {
            // The button belongs to the form, so entries beside the removed file are saved, too.
            if let Some(field) = &sent.detached {
                room.detach(org, (submitter, person), field).await?;
            }
            room.save(org, submitter, person, &sent.values).await
        }
        // Also for an unknown button: a save signs nothing and loses nothing.
        _ => room.save(org, submitter, person, &sent.values).await,
    }
}

/// Records the pages that the script reports while the signer reads.
async fn displayed(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    sent: &SubmittedForm,
) -> Response {
    let noted = async {
        // It is not needed otherwise, and each report would write.
        if visit.require_pages {
            let page_count = count_pages(app, visit, submitter).await?;
            note_displayed(app, visit, submitter, sent, page_count).await?;
        }
        Ok::<_, ServiceError>(())
    };

    match noted.await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Asks the named person to sign in the signer's place.
async fn delegated(app: &App, visit: SignerVisit, submitter: i64, sent: SubmittedForm) -> Response {
    let given = |name: &str| sent.values.get(name).map_or("", |value| value.trim());
    let [name, email, phone] = DELEGATION.map(given);
    let mut problems = Problems::new();
    if name.is_empty() {
        problems.insert(DELEGATION[0].into(), Message::new("delegate-name-missing"));
    } else if name.chars().count() > corrections::LONGEST_NAME {
        let why = Message::with_limit("problem-too-long", corrections::LONGEST_NAME);
        problems.insert(DELEGATION[0].into(), why);
    }

    let stored = corrections::stored_address(email);
    let email = stored.as_deref().unwrap_or_default();
    if email.is_empty() {
        problems.insert(DELEGATION[1].into(), Message::new("delegate-email-missing"));
    } else if email.eq_ignore_ascii_case(&visit.signer.email) {
        problems.insert(DELEGATION[1].into(), Message::new("delegate-own-address"));
    }

    // Codes by text message must not go on to the telephone of the earlier signer.
    let needs_phone = visit.signer.needs_phone();
    if needs_phone && identity::read("phone", phone, app.clock.now()).is_err() {
        problems.insert(DELEGATION[2].into(), Message::new("delegate-phone-missing"));
    }

    if !problems.is_empty() {
        let outcome = FormFeedback {
            entered: sent.values,
            problems,
            ..FormFeedback::default()
        };
        return render(app, &visit, submitter, outcome).await;
    }

    let change = SignerChange {
        name,
        email,
        phone: needs_phone.then_some(phone),
        reason: None,
        group: None,
    };

    // The service checks that the envelope allows it. The page only hides the button.
    let delegated = corrections::delegate(app, &visit.envelope, &visit.signer, &change).await;
    let Err(error) = delegated else {
        let body = html! { p { (visit.texts.with("delegated", [("name", name)])) } };
        let done = EmbedMessage::Completed;
        return visit.notice(StatusCode::OK, "delegated-title", done, body);
    };

    let Some(why) = problem_of_person(&error) else {
        return HttpError::from(error).into_response();
    };
    let problem = (DELEGATION[1].to_owned(), Message::new(why));
    let outcome = FormFeedback {
        entered: sent.values,
        problems: Problems::from([problem]),
        ..FormFeedback::default()
    };
    render(app, &visit, submitter, outcome).await
}

/// Returns the text about a person who may not sign in the signer's place; none for another error.
fn problem_of_person(error: &ServiceError) -> Option<&'static str> {
    let ServiceError::Problem(problem) = error else {
        return None;
    };
    match problem.code? {
        corrections::OWN_WITNESS => Some("delegate-own-witness"),
        corrections::GROUP_MEMBER => Some("delegate-group-member"),
        _ => None,
    }
}

/// Saves the entries beside a button that is about something else, because it sends the whole form.
async fn saved(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    sent: &SubmittedForm,
) -> Result<SavedForm, Response> {
    let (org, person) = (&visit.envelope.org, &visit.signer.email);
    let saved = app.room().save(org, submitter, person, &sent.values).await;
    let saved = saved.map_err(|error| visit.failed(error))?;
    if visit.signer.status != SignerStatus::Started {
        follow(app, visit, None).await;
    }
    Ok(saved)
}

/// Saves the form, and mails the signer a link to finish it later.
async fn postponed(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    sent: SubmittedForm,
) -> Response {
    let problems = match saved(app, visit, submitter, &sent).await {
        Ok(saved) => saved.problems,
        Err(failed) => return failed,
    };
    // An entry that is not kept is corrected while the person is there.
    if !problems.is_empty() {
        let outcome = FormFeedback {
            entered: sent.values,
            problems,
            ..FormFeedback::default()
        };
        return render(app, visit, submitter, outcome).await;
    }

    let (status, text) = match visits::postpone(app, &visit.envelope, &visit.signer).await {
        Ok(LinkRenewal::Mailed) => (StatusCode::OK, "later-mailed"),
        Ok(LinkRenewal::TooSoon) => (StatusCode::TOO_MANY_REQUESTS, "later-too-often"),
        Ok(LinkRenewal::NotYet | LinkRenewal::Closed) => return visit.failed(FormError::Closed),
        Err(error) => return HttpError::from(error).into_response(),
    };

    let texts = visit.texts;
    let body = html! {
        p { (texts.text(text)) }
        p { a.button href=(visit.path()) { (texts.text("later-back")) } }
    };
    visit
        .look
        .notice(status, &texts.text("later-title"), None, body)
}

/// Saves the form, and shows a code by which the signer draws the entry of a field on a phone.
async fn drawn_on_phone(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    sent: SubmittedForm,
    field: &str,
) -> Response {
    let problems = match saved(app, visit, submitter, &sent).await {
        Ok(saved) => saved.problems,
        Err(failed) => return failed,
    };
    // The script saves entries by itself. Without it, an entry that is not kept would be lost on the way.
    if !sent.by_script && !problems.is_empty() {
        let outcome = FormFeedback {
            entered: sent.values,
            problems,
            ..FormFeedback::default()
        };
        return render(app, visit, submitter, outcome).await;
    }

    drawing::offer(app, visit, submitter, field, sent.by_script).await
}

/// Asks the sender a question.
async fn asked(app: &App, visit: &SignerVisit, submitter: i64, sent: SubmittedForm) -> Response {
    let mut problems = match saved(app, visit, submitter, &sent).await {
        Ok(saved) => saved.problems,
        Err(failed) => return failed,
    };

    let why = match questions::ask(app, &visit.envelope, &visit.signer, &sent.question).await {
        // A redirect, so that a reload asks nothing twice.
        Ok(AskOutcome::Asked) if problems.is_empty() => return back(visit),
        // Entries that are not kept are corrected while the person is there.
        Ok(AskOutcome::Asked) => {
            let outcome = FormFeedback {
                entered: sent.values,
                problems,
                ..FormFeedback::default()
            };
            return render(app, visit, submitter, outcome).await;
        }
        Ok(AskOutcome::Empty) => Message::new("question-missing"),
        Ok(AskOutcome::TooLong) => Message::with_limit("problem-too-long", LONGEST_TEXT),
        Ok(AskOutcome::TooMany) => Message::with_limit("question-too-many", MOST_QUESTIONS),
        Ok(AskOutcome::Closed) => return visit.failed(FormError::Closed),
        Err(error) => return HttpError::from(error).into_response(),
    };

    problems.insert(QUESTION.to_owned(), why);
    let outcome = FormFeedback {
        entered: sent.values,
        question: sent.question,
        problems,
        ..FormFeedback::default()
    };
    render(app, visit, submitter, outcome).await
}

/// Leads to the page where the file of a field is chosen.
async fn to_choice(app: &App, visit: &SignerVisit, submitter: i64, field: &str) -> Response {
    match app.room().form(&visit.envelope.org, submitter).await {
        Ok(form) => {
            let index = form.fields.iter().position(|one| one.name == field);
            let page = index.map(|index| format!("{}/attachments/{index}", visit.path()));
            page.map_or_else(|| back(visit), |page| Redirect::to(&page).into_response())
        }
        Err(error) => visit.failed(error),
    }
}

fn back(visit: &SignerVisit) -> Response {
    Redirect::to(visit.path()).into_response()
}

/// Updates the envelope before the signer is answered.
///
/// The room's jobs do the same a little later, so that a failure here needs no retry.
pub(super) async fn follow(app: &App, visit: &SignerVisit, finished: Option<i64>) {
    let followed = async {
        // First, because the provider reports the submission as completed once the document is executed.
        if let Some(submitter) = finished {
            let org = &visit.envelope.org;
            let form = app.room().form(org, submitter).await?;
            app.room()
                .execute(org, form.submission.id)
                .await
                .map_err(|error| ServiceError::Internal(error.to_string()))?;
        }

        reconcile(app, &visit.envelope).await.map(drop)
    };

    if let Err(error) = followed.await {
        tracing::warn!(%error, "envelope update after a signer's action is left to the worker");
    }
}

/// Leads from the page of a signer to the form of the witness.
async fn pass_to_witness(State(app): State<App>, visit: SignerVisit) -> Response {
    if visit.expired {
        return back(&visit);
    }

    match visits::pass_to_witness(&app, &visit.envelope, &visit.signer).await {
        Ok(DevicePass::Opened(url)) => Redirect::to(&url).into_response(),
        Ok(DevicePass::TooOften) => {
            let texts = visit.texts;
            let body = html! { p { (texts.text("witness-too-often")) } };
            let (status, title) = (StatusCode::TOO_MANY_REQUESTS, texts.text("witness-open"));
            visit.look.notice(status, &title, None, body)
        }
        // The witness has signed meanwhile, or the document has ended. The page shows it.
        Ok(DevicePass::Closed) => back(&visit),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Mails a fresh link, or the copy.
async fn renew(State(app): State<App>, visit: SignerVisit) -> Response {
    // A working link needs no successor, and the signer would get a mail for nothing.
    if !visit.expired {
        return back(&visit);
    }

    let texts = visit.texts;
    match visits::renew(&app, &visit.envelope, &visit.signer).await {
        Ok(LinkRenewal::Mailed) => {
            let body = html! { p { (texts.text("link-mailed")) } };
            let title = texts.text("link-mailed-title");
            visit.look.notice(StatusCode::OK, &title, None, body)
        }
        Ok(LinkRenewal::TooSoon) => {
            let body = html! { p { (texts.text("link-too-soon")) } };
            let title = texts.text("link-too-soon-title");
            let page = visit
                .look
                .notice(StatusCode::TOO_MANY_REQUESTS, &title, None, body);
            let wait = visits::COOL_DOWN.as_secs().to_string();
            ([(header::RETRY_AFTER, wait)], page).into_response()
        }
        Ok(LinkRenewal::NotYet) => visit.failed(FormError::NotYourTurn),
        Ok(LinkRenewal::Closed) => {
            let closed = visit.closed();
            closed.unwrap_or_else(|| visit.failed(FormError::Closed))
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Records that the page with the text about electronic records is delivered. Without the record, a consent
/// would have no text to refer to, so the page is not shown if it fails.
async fn note_disclosure(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
) -> Result<(), ServiceError> {
    // A prefetch or a HEAD request delivers the text to no person.
    if !visit.is_seen {
        return Ok(());
    }

    let consent = &visit.consent;
    let text = KeptDisclosure {
        sha256: consent.sha256(),
        version: consent.text.version.clone(),
        locale: consent.locale.as_str().to_owned(),
        body: consent.body(),
    };

    let reader = visit.reader(submitter);
    Ok(app.room().disclosure_shown(reader, &text).await?)
}

/// Renders the form, or the page that names the signer who comes first.
pub(super) async fn render(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    outcome: FormFeedback,
) -> Response {
    let read = async {
        let form = app.room().form(&visit.envelope.org, submitter).await;
        let form = form?;
        if form.waits_for.is_none() {
            // Drawing starts while the page sizes are still being read.
            pages::draw_first(app, &app.pages, form.document.clone());
        }

        let pages = pages::shown_facts(app, &app.pages, &form.document).await?;
        Ok::<_, ServiceError>((form, pages))
    };

    let (form, pages) = match read.await {
        Ok(read) => read,
        Err(error) => return HttpError::from(error).into_response(),
    };
    // The visit was read earlier. Another tab may have finished the form since.
    if form.submitter.is_done() {
        return visit.failed(FormError::Closed);
    }
    if let Some(other) = &form.waits_for {
        return visit.not_yet(StatusCode::OK, Some(other));
    }

    if let Err(error) = note_disclosure(app, visit, submitter).await {
        return HttpError::from(error).into_response();
    }
    let read = async {
        let asked = questions::of_signer(app, &visit.envelope, &visit.signer).await?;
        let displayed = if visit.require_pages {
            let delivered = app.room().delivered_to(visit.reader(submitter)).await?;
            delivered.displayed_pages()
        } else {
            Vec::new()
        };
        Ok::<_, ServiceError>((asked, displayed))
    };
    let (asked, displayed) = match read.await {
        Ok(read) => read,
        Err(error) => return HttpError::from(error).into_response(),
    };

    let shown = SigningPage {
        path: visit.path(),
        look: &visit.look,
        texts: visit.texts,
        consent_text: &visit.consent,
        title: &visit.envelope.name,
        name: &visit.signer.name,
        role: &visit.signer.role,
        kind: visit.signer.kind,
        on_own_device: !visit.signer.same_device,
        allow_delegation: visit.envelope.sending.allow_delegation,
        delegate_phone: visit.signer.needs_phone(),
        may_decline: visit.envelope.sending.may_decline,
        owes: visit.owes.as_deref(),
        pages: &pages,
        form: &form,
        entered: &outcome.entered,
        problems: &outcome.problems,
        consent: outcome.consent,
        require_access: visit.require_access,
        require_pages: visit.require_pages,
        displayed: &displayed,
        reason: &outcome.reason,
        question: &outcome.question,
        asked: &asked,
        review: outcome.review,
        preview: false,
        unseen: visit.signer.status == SignerStatus::Pending,
    };

    let status = if outcome.problems.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };

    let (title, ready) = (&visit.envelope.name, Some(EmbedMessage::Ready));
    visit
        .look
        .page(status, title, ready, "signing", shown.markup())
}
