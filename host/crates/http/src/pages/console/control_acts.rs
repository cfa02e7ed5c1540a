//! Acts of control from the pages. Each is confirmed by the user, and signed where the organization has keys.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use maud::html;
use serde_json::{Map, Value, json};

use super::PATH;
use super::control as control_pages;
use super::envelopes::unrecorded;
use super::navigation::{OtherAnswer, PageResult};
use super::passkeys::{ANSWER, CONFIRMS, DeviceForm};
use super::sign_in::local;
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::error::HttpError;
use crate::middleware::extract::valid;
use crate::pages::page_frame::PageLook;
use holdfast_adapters::texts::Texts;
use holdfast_domain::envelope::words;
use holdfast_domain::organization::Permission;
use holdfast_domain::statement::{Statement, challenge};
use holdfast_platform::access::passkeys;
use holdfast_platform::problems::{ControlProblem, StatementProblem};
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::App;
use holdfast_service::control::transfers::{self, RecordsPage};
use holdfast_service::control::{self, keys, pledges, releases};
use holdfast_service::inspection;

words! {
    /// Act of control, as in the addresses of the forms.
    ControlAct {
        Designate = "designate",
        Accept = "accept",
        Decline = "decline",
        Consent = "consent",
        Refuse = "refuse",
        Release = "release",
        Pledge = "pledge",
        ReleasePledge = "release-pledge",
        Offer = "offer",
        AcceptTransfer = "accept-transfer",
        ConfirmTransfer = "confirm-transfer",
        CancelTransfer = "cancel-transfer",
        RegisterKey = "register-key",
        // Agrees that another person's passkey signs, too.
        ApproveKey = "approve-key",
        RevokeKey = "revoke-key",
    }
}

impl ControlAct {
    /// Returns the label of the act's button.
    pub fn label(self, texts: Texts) -> String {
        texts.text(match self {
            Self::Designate => "act-designate",
            Self::Accept => "act-accept",
            Self::Decline => "act-decline",
            Self::Consent => "act-consent",
            Self::Refuse => "act-refuse",
            Self::Release => "act-release",
            Self::Pledge => "act-pledge",
            Self::ReleasePledge => "act-release-pledge",
            Self::Offer => "act-offer",
            Self::AcceptTransfer => "act-accept-transfer",
            Self::ConfirmTransfer => "act-confirm-transfer",
            Self::CancelTransfer => "act-cancel-transfer",
            Self::RegisterKey => "act-register-key",
            Self::ApproveKey => "act-approve-key",
            Self::RevokeKey => "act-revoke-key",
        })
    }

    /// Whether the act ends or refuses something.
    pub fn is_negative(self) -> bool {
        matches!(
            self,
            Self::Decline | Self::Refuse | Self::CancelTransfer | Self::RevokeKey
        )
    }

    /// Returns the consequence of an act that cannot be undone. Other acts have none.
    fn consequence(self, is_paper: bool) -> Option<&'static str> {
        Some(match self {
            Self::Accept => "sure-accept",
            Self::Decline => "sure-decline",
            Self::Consent => "sure-release",
            Self::Refuse => "sure-refuse",
            Self::Release if is_paper => "sure-release-paper",
            Self::Release => "sure-release",
            Self::Pledge => "sure-pledge",
            Self::ReleasePledge => "sure-release-pledge",
            Self::AcceptTransfer => "sure-accept-transfer",
            Self::ConfirmTransfer => "sure-confirm-transfer",
            Self::CancelTransfer => "sure-cancel-transfer",
            Self::RevokeKey => "sure-revoke-key",
            // An offer can be withdrawn, and a key revoked.
            Self::Designate | Self::Offer | Self::RegisterKey | Self::ApproveKey => return None,
        })
    }

    /// Returns the fields of the form that are members of the request.
    fn members(self) -> &'static [&'static str] {
        match self {
            Self::Designate => &["controller"],
            Self::Decline | Self::Refuse => &["reason"],
            Self::Release => &[
                "recipient_name",
                "recipient_organization",
                "recipient_email",
                "purpose_of_release",
                "authorized_signature",
                "medium",
            ],
            Self::Pledge => &["pledgee", "terms"],
            Self::Offer => &["buyer", "terms", "price_reference"],
            Self::RegisterKey | Self::ApproveKey => &["name"],
            _ => &[],
        }
    }
}

/// Makes the body of the request to the API from a form.
fn body(act: ControlAct, id: &str, form: &ConsoleForm) -> Value {
    let mut body = Map::new();
    for member in act.members() {
        let value = form.value(member);
        // An empty field of the form is an absent member for the API.
        if !value.is_empty() {
            body.insert((*member).to_owned(), value.into());
        }
    }

    // The first attempt has no signature. The service then answers with the statement to sign.
    for member in ["signed", "proof", "public_key"] {
        if let Ok(value) = serde_json::from_str(form.value(member)) {
            body.insert(member.to_owned(), value);
        }
    }

    match act {
        // Sent without the tick as well, so that the refusal names the acknowledgement that is missing.
        ControlAct::Release => {
            for member in [
                "acknowledge_authoritative_copy",
                "acknowledge_chain_of_custody",
            ] {
                body.insert(member.to_owned(), (form.value(member) == "yes").into());
            }
        }
        ControlAct::Pledge => {
            body.insert("envelope_id".into(), id.into());
        }
        ControlAct::Offer => {
            // Each box has its own name, because the values of a form are a map of names.
            let chosen = form.values.keys();
            let chosen = chosen.filter_map(|name| name.strip_prefix("record-"));
            let records: Vec<&str> = chosen.collect();
            body.insert("records".into(), json!(records));
            body.insert("atomic".into(), (form.value("atomic") == "yes").into());
        }
        _ => {}
    }

    Value::Object(body)
}

/// Reason why an act was not performed.
enum NotPerformed {
    /// The form is not one that the API would accept.
    Form(Box<HttpError>),
    Service(ServiceError),
}

impl From<HttpError> for NotPerformed {
    fn from(error: HttpError) -> Self {
        Self::Form(Box::new(error))
    }
}

impl From<ServiceError> for NotPerformed {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

/// Performs an act. Returns links where it made a release.
async fn perform(
    app: &App,
    caller: &Caller,
    act: ControlAct,
    id: &str,
    body: Value,
) -> Result<Vec<(String, String)>, NotPerformed> {
    // Each body passes the schema of the API, so the page permits no more than a program may do.
    match act {
        ControlAct::Designate => {
            control::designate(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::Accept => {
            control::accept(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::Decline => {
            control::decline(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::Consent => {
            releases::consent(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::Refuse => {
            releases::refuse(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::Release => {
            let links = inspection::releases::release(app, caller, id, valid(body)?).await?;
            let files = [
                links.authoritative,
                links.copy,
                links.certificate,
                links.custody_record,
            ];
            // The links are only in this answer, and that to the authoritative copy works once. The page
            // must show them.
            return Ok(files.map(|link| (link.filename, link.url)).into());
        }
        ControlAct::Pledge => {
            pledges::pledge(app, caller, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::ReleasePledge => {
            pledges::release(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::Offer => {
            transfers::propose(app, caller, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::AcceptTransfer => {
            transfers::accept(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::ConfirmTransfer => {
            transfers::confirm(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::CancelTransfer => {
            transfers::cancel(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
        // Both register a key. An approval carries the proof of the other person and the signature of this
        // one.
        ControlAct::RegisterKey | ControlAct::ApproveKey => {
            keys::register(app, caller, valid(body)?, &unrecorded()).await?;
        }
        ControlAct::RevokeKey => {
            keys::revoke(app, caller, id, valid(body)?, &unrecorded()).await?;
        }
    }

    Ok(Vec::new())
}

/// Performs an act, after a confirmation and with the signature of the user's device.
pub async fn act(
    State(app): State<App>,
    Path((name, id)): Path<(String, String)>,
    mut form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Control)?;
    let act = ControlAct::parse(&name).ok_or(ServiceError::NotFound("Page"))?;

    // The browser names the next page. `local` keeps the form from being an open redirect.
    let overview = format!("{PATH}/control");
    let next = local(form.value("next")).unwrap_or(&overview).to_owned();
    form.confirmed(&app, &next).await?;
    ask_if_sure(&app, &form, act, &id, &next).await?;

    // The browser names only a passkey. Key, name and proof are read here, so that it cannot combine
    // those of two people.
    match act {
        ControlAct::RegisterKey => chosen_key(&app, &id, &mut form).await?,
        ControlAct::ApproveKey => requested_key(&app, &id, &mut form).await?,
        _ => {}
    }

    // Before the body is made, which takes the signature from the form.
    take_signature(&mut form);
    let (caller, body) = (form.visitor.caller.clone(), body(act, &id, &form));
    let (acting, of) = (app.clone(), id.clone());

    // Completes even if the browser goes away.
    let done = tokio::spawn(async move { perform(&acting, &caller, act, &of, body).await });
    match done.await? {
        Ok(links) if links.is_empty() => Ok(Redirect::to(&next).into_response()),
        Ok(links) => Ok(released(form.visitor.texts, &next, &links)),
        Err(NotPerformed::Service(ServiceError::Statement(StatementProblem::Missing {
            draft,
            member,
        }))) => Ok(ask(&app, &form, act, &id, &draft, member).await?),
        // The controller was asked; the page of the record shows it.
        Err(NotPerformed::Service(ServiceError::Control(ControlProblem::ConsentRequired(
            Some(_),
        )))) => Ok(Redirect::to(&next).into_response()),
        Err(NotPerformed::Form(error)) => again(&app, &form, act, &next, *error).await,
        Err(NotPerformed::Service(error)) => again(&app, &form, act, &next, error).await,
    }
}

/// Shows the form of a refused act again. A step of a transfer, or one with keys, has no entries.
async fn again(
    app: &App,
    form: &ConsoleForm,
    act: ControlAct,
    next: &str,
    error: impl Into<HttpError>,
) -> PageResult {
    let error = error.into();
    let records = format!("{PATH}/control/records/");
    let record = next.strip_prefix(&records);
    if act != ControlAct::Offer && record.is_none() {
        return Err(error.into());
    }

    let refused = form.refused(error)?;
    match record {
        Some(id) => control_pages::shown(app, &form.visitor, id, Some(&refused)).await,
        None => control_pages::list_again(app, &form.visitor, &refused).await,
    }
}

/// Asks before an act that cannot be undone.
async fn ask_if_sure(
    app: &App,
    form: &ConsoleForm,
    act: ControlAct,
    id: &str,
    next: &str,
) -> Result<(), OtherAnswer> {
    let is_paper = form.value("medium") == "paper";
    let Some(consequence) = act.consequence(is_paper) else {
        return Ok(());
    };

    let texts = form.visitor.texts;
    let object = object_of(app, &form.visitor, act, id).await?;
    form.meant(&SensitiveAct {
        label: act.label(texts),
        objects: vec![object],
        consequence: texts.text(consequence),
        is_typed: matches!(act, ControlAct::Release | ControlAct::Consent),
        back: next.to_owned(),
    })?;
    Ok(())
}

/// Returns the name of what an act is about.
async fn object_of(
    app: &App,
    visitor: &Visitor,
    act: ControlAct,
    id: &str,
) -> Result<String, ServiceError> {
    let caller = &visitor.caller;
    Ok(match act {
        ControlAct::Consent | ControlAct::Refuse => releases::record(app, caller, id).await?.name,
        ControlAct::ReleasePledge => pledges::record(app, caller, id).await?.name,
        ControlAct::AcceptTransfer | ControlAct::ConfirmTransfer | ControlAct::CancelTransfer => {
            let page = RecordsPage {
                state: None,
                after: None,
                limit: 1,
            };
            let transfer = transfers::get(app, caller, id, page).await?.transfer;
            format!("{} → {}", transfer.seller.name, transfer.buyer.name)
        }
        ControlAct::RevokeKey => {
            let keys = keys::list(app, caller).await?;
            let key = keys.into_iter().find(|key| key.key_id.as_str() == id);
            let key = key.ok_or(ServiceError::NotFound("Key"))?;
            key.name.unwrap_or(key.thumbprint)
        }
        _ => control::get(app, caller, id).await?.name,
    })
}

/// For a new key: writes the public key of the chosen passkey into the form.
async fn chosen_key(app: &App, id: &str, form: &mut ConsoleForm) -> Result<(), ServiceError> {
    // Only the user's own: the id in the path could be that of a colleague's passkey.
    let known = passkeys::list(app, &form.visitor.signed_in.user).await?;
    let passkey = known.iter().find(|one| one.id.as_str() == id);
    let passkey = passkey.ok_or(ServiceError::NotFound("Passkey"))?;
    let key = passkeys::party_key(passkey).ok_or(ServiceError::Conflict(
        "Statements are signed with Ed25519 or P-256; this passkey has another kind of key".into(),
    ))?;
    let (user, name) = (&form.visitor.signed_in.user, passkey.name.as_deref());
    // The list of keys is the organization's, so the name starts with the owner of the device.
    let name = match name {
        Some(name) => format!("{}, {name}", user.email),
        None => user.email.clone(),
    };
    form.values.insert("name".into(), name);

    form.values
        .insert("public_key".into(), json!(key).to_string());
    Ok(())
}

/// For the agreement to another person's key: writes that person's registration into the form.
async fn requested_key(app: &App, id: &str, form: &mut ConsoleForm) -> Result<(), ServiceError> {
    // Read from the stored request and not from the form: the second person agrees to what the first
    // one signed.
    let asked = keys::asked(app, &form.visitor.caller).await?;
    let asked = asked.into_iter().find(|one| one.passkey.as_str() == id);
    let asked = asked.ok_or(ServiceError::NotFound("Request"))?;
    let name = asked.body["name"].as_str().unwrap_or_default().to_owned();
    form.values.insert("name".into(), name);

    for member in ["public_key", "proof"] {
        let value = asked.body[member].to_string();
        form.values.insert(member.into(), value);
    }

    Ok(())
}

/// Writes the statement with the device's signature into the field that it was asked for.
fn take_signature(form: &mut ConsoleForm) {
    // The answer was one to the question who the user is.
    if form.value(CONFIRMS) == "yes" {
        return;
    }

    let read = |name: &str| serde_json::from_str::<Value>(form.value(name)).ok();
    let (Some(statement), Some(passkey)) = (read("statement"), read(ANSWER)) else {
        return;
    };

    // Only these two members exist. A hand-made form cannot name another one.
    let member = match form.value("member") {
        "proof" => "proof",
        _ => "signed",
    };
    let signed = json!({ "statement": statement, "passkey": passkey });
    form.values.insert(member.into(), signed.to_string());
}

/// Shows the statement that the act needs, and asks the device of the user to sign it.
async fn ask(
    app: &App,
    form: &ConsoleForm,
    act: ControlAct,
    id: &str,
    draft: &Statement,
    member: &str,
) -> Result<Response, ServiceError> {
    let visitor = &form.visitor;
    let texts = visitor.texts;
    let known = signing_credentials(app, visitor, act, member, id).await?;
    // The user has no key that counts yet, so another person has to agree with theirs.
    if act == ControlAct::RegisterKey && member == "signed" && known.is_empty() {
        return ask_others(app, form, id).await;
    }

    let site = passkeys::site(app).filter(|_| !known.is_empty());
    // The device signs the digest of this statement as its challenge, so the signature covers the act
    // itself.
    let statement = json!(draft);
    let text = serde_json::to_string_pretty(&statement).unwrap_or_default();
    let body = html! {
        p { (texts.text("sign-statement-hint")) }
        p { strong { (act.label(texts)) } }
        pre tabindex="0" { (text) }
        @match &site {
            Some(site) => (DeviceForm {
                kind: "get",
                challenge: BASE64URL.encode(challenge(&statement)),
                site,
                known: known.iter().map(String::as_str).collect(),
                user: None,
                action: &form.path,
                button: texts.text("sign-statement"),
            }.render(texts, html! {
                @for (name, value) in &form.values {
                    @if ![ANSWER, CONFIRMS, "statement", "member"].contains(&name.as_str()) {
                        input type="hidden" name=(name) value=(value);
                    }
                }
                input type="hidden" name="statement" value=(statement.to_string());
                input type="hidden" name="member" value=(member);
            })),
            None => p.problem { (texts.text("sign-statement-no-key")) }
        }
        p { a href=(local(form.value("next")).unwrap_or(PATH)) { (texts.text("console-back")) } }
    };

    let title = texts.text("sign-statement-title");
    Ok(PageLook::plain(texts).console_notice(StatusCode::OK, &title, body))
}

/// Keeps the registration of the user's passkey until a person with a key agrees.
async fn ask_others(app: &App, form: &ConsoleForm, id: &str) -> Result<Response, ServiceError> {
    let (visitor, texts) = (&form.visitor, form.visitor.texts);
    let own = passkeys::list(app, &visitor.signed_in.user).await?;
    let passkey = own.iter().find(|one| one.id.as_str() == id);
    let passkey = passkey.ok_or(ServiceError::NotFound("Passkey"))?;
    let body = body(ControlAct::RegisterKey, id, form);
    keys::ask(app, &visitor.caller, passkey, body).await?;
    let text = html! {
        p { (texts.text("key-asked")) }
        p { a href={ (PATH) "/control/keys" } { (texts.text("console-back")) } }
    };
    let title = texts.text("key-asked-title");

    Ok(PageLook::plain(texts).notice(StatusCode::OK, &title, None, text))
}

/// Returns the credentials that can sign: the new one itself as proof, or those of the user that are keys of the
/// organization.
async fn signing_credentials(
    app: &App,
    visitor: &Visitor,
    act: ControlAct,
    member: &str,
    id: &str,
) -> Result<Vec<String>, ServiceError> {
    let own = passkeys::list(app, &visitor.signed_in.user).await?;
    // Only the new passkey itself can show that it has the private key.
    let is_proof = act == ControlAct::RegisterKey && member == "proof";
    let keys = keys::list(app, &visitor.caller).await?;
    let signs = |thumbprint: &str| {
        keys.iter()
            .any(|key| key.revoked_at.is_none() && key.thumbprint == thumbprint)
    };
    let can_sign = own.into_iter().filter(|passkey| {
        if is_proof {
            passkey.id.as_str() == id
        } else {
            passkeys::party_key(passkey).is_some_and(|key| signs(&key.thumbprint()))
        }
    });

    Ok(can_sign.map(|passkey| passkey.credential_id).collect())
}

/// Shows the files of a release.
fn released(texts: Texts, next: &str, links: &[(String, String)]) -> Response {
    let body = html! {
        p { (texts.text("released-hint")) }
        ul {
            @for (name, url) in links { li { a href=(url) download { (name) } } }
        }
        p { a href=(next) { (texts.text("console-back")) } }
    };

    let title = texts.text("released-title");
    PageLook::plain(texts).notice(StatusCode::OK, &title, None, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_that_cannot_be_undone_names_its_consequence() {
        let says = |act: ControlAct, is_paper: bool| {
            let consequence = act.consequence(is_paper).expect("a consequence");
            Texts::default().text(consequence)
        };

        for (act, consequence) in [
            (
                ControlAct::Accept,
                "Your organization becomes the controller of this record. Only a transfer can change that.",
            ),
            (ControlAct::Decline, "The offer of control ends."),
            (
                ControlAct::Consent,
                "The authoritative copy leaves the vault, and the chain of custody ends here. This cannot be undone.",
            ),
            (
                ControlAct::Refuse,
                "The release does not happen. The other party has to ask again.",
            ),
            (ControlAct::Pledge, "Only the pledgee can end the pledge."),
            (
                ControlAct::ReleasePledge,
                "Your organization gives up its security in this record. This cannot be undone.",
            ),
            (
                ControlAct::AcceptTransfer,
                "Your organization becomes the controller of these records as soon as the seller confirms.",
            ),
            (
                ControlAct::ConfirmTransfer,
                "The buyer becomes the controller of these records. This cannot be undone.",
            ),
            (
                ControlAct::CancelTransfer,
                "The transfer ends, and the seller stays the controller.",
            ),
            (
                ControlAct::RevokeKey,
                "Nobody can sign with this key any more. Earlier signatures stay valid.",
            ),
        ] {
            assert_eq!(says(act, false), consequence);
        }

        assert_eq!(
            says(ControlAct::Release, false),
            says(ControlAct::Consent, false)
        );
        assert_eq!(
            says(ControlAct::Release, true),
            "A paper original replaces the authoritative copy. This cannot be undone."
        );
        assert_eq!(ControlAct::Offer.consequence(false), None);
    }
}
