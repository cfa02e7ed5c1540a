//! Records that the organization controls or has another part in, transfers, and the keys that sign its acts.

use axum::extract::{Path, Query, State};
use axum::response::IntoResponse as _;
use maud::{Markup, html};
use serde::Deserialize;

use super::PATH;
use super::control_acts::ControlAct;
use super::forms::{FormView, RefusedForm, TextField};
use super::live::LiveList;
use super::navigation::{PageResult, Place, export};
use super::signed_in::{ConsoleForm, Visitor};
use crate::reply::{CsvOrJsonLines, FileReply, Pdf};
use holdfast_adapters::texts::Texts;
use holdfast_domain::control::{ControlStage, ReleaseState};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::organization::Permission;
use holdfast_domain::tape::TapeFormat;
use holdfast_domain::transfer::TransferState;
use holdfast_domain::user::Passkey;
use holdfast_platform::access::passkeys;
use holdfast_service::App;
use holdfast_service::control::keys::{self, PartyKeyView};
use holdfast_service::control::tape::{self, TapeOptions};
use holdfast_service::control::transfers::{self, RecordsPage, TransferDetails, TransferView};
use holdfast_service::control::{self, PartyView, RecordView, ReleaseRequestView};
use holdfast_service::inspection;
use holdfast_service::vault::vault_out::ReleaseMedium;
use holdfast_store::control::{ListedPart, RecordFilter};

/// Records or transfers of a page.
const PAGE: i64 = 25;

#[derive(Deserialize)]
pub struct RecordsQuery {
    part: Option<String>,
    after: Option<String>,
}

impl RecordsQuery {
    /// Returns the requested part. A missing or unknown part counts as the controller's.
    pub fn part(&self) -> ListedPart {
        let part = self.part.as_deref().and_then(ListedPart::parse);
        part.unwrap_or(ListedPart::Controller)
    }
}

/// Lists records by the organization's part in them, newest first.
pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<RecordsQuery>,
) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    list_page(&app, &visitor, &query, None).await
}

/// Shows the list of the controller with a refused offer.
pub async fn list_again(app: &App, visitor: &Visitor, refused: &RefusedForm) -> PageResult {
    let query = RecordsQuery {
        part: None,
        after: None,
    };
    list_page(app, visitor, &query, Some(refused)).await
}

async fn list_page(
    app: &App,
    visitor: &Visitor,
    query: &RecordsQuery,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let part = query.part();
    let filter = RecordFilter {
        after: query.after.as_deref().and_then(EnvelopeId::parse),
        ..RecordFilter::of(part)
    };
    // One record more than a page shows whether there are older ones.
    let mut found = control::list(app, &visitor.caller, &filter, PAGE + 1).await?;

    let page = usize::try_from(PAGE).unwrap_or_default();
    let more = found.len() > page;
    found.truncate(page);
    let texts = visitor.texts;
    let parts = [
        (ListedPart::Controller, "control-mine"),
        (ListedPart::Named, "control-offered"),
        (ListedPart::Pledgee, "control-pledged"),
        (ListedPart::Originator, "control-originated"),
    ];

    // Only the controller of a record can offer it, so the boxes appear in that list alone.
    let offers = part == ListedPart::Controller && visitor.may(Permission::Control);
    let action = format!("{PATH}/control/offer/chosen");
    let form = FormView::new(texts, &action, refused);
    // Rendered first, because the same rows stand in the form of an offer or alone.
    let rows = html! {
        ul.rows {
            @for record in &found {
                li {
                    @if offers && record.control.stage == ControlStage::Controlled {
                        (form.tick(
                            &format!("record-{}", record.envelope_id),
                            &format!("{}: {}", texts.text("control-choose"), record.name),
                            false,
                        ))
                    }
                    a href={ (PATH) "/control/records/" (record.envelope_id) } { (record.name) }
                    p.soft {
                        span.tag { (stage(texts, record.control.stage)) } " " (record.control.originator.name)
                        " · " (visitor.moment(record.changed_at))
                        @if asks(record).is_some() { " " span.tag.wrong { (texts.text("control-release-waits")) } }
                    }
                }
            }
        }
    };

    let body = html! {
        @if visitor.may(Permission::Control) { (visitor.identity_first(&format!("{PATH}/control"))) }
        p {
            a href={ (PATH) "/transfers" } { (texts.text("control-transfers")) } " · "
            a href={ (PATH) "/tapes" } { (texts.text("tapes-title")) } " · "
            a href={ (PATH) "/control/keys" } { (texts.text("control-keys")) }
        }
        nav.parts aria-label=(texts.text("control-parts")) {
            @for (one, name) in parts {
                a href={ (PATH) "/control?part=" (one) } aria-current=[(one == part).then_some("page")] {
                    (texts.text(name))
                }
            }
        }
        @if found.is_empty() {
            p { (texts.text("empty-control")) }
        } @else if offers {
            form.card method="post" action=(action) {
                (visitor.token())
                input type="hidden" name="next" value={ (PATH) "/transfers" };
                (form.summary())
                (rows)
                (party_field(&form, "buyer", "control-buyer"))
                (form.text(&TextField::new("price_reference", &texts.text("control-price"))))
                (form.tick("atomic", &texts.text("control-atomic"), false))
                button type="submit" { (ControlAct::Offer.label(texts)) }
            }
        } @else {
            (rows)
        }
        @if let Some(last) = found.last().filter(|_| more) {
            p { a href={ (PATH) "/control?part=" (part) "&after=" (last.envelope_id) } { (texts.text("console-earlier")) } }
        }
        (export(texts, &format!("control.csv?part={part}")))
    };

    Ok(visitor.form_page(
        Place::Control,
        Some(&LiveList::Control),
        &texts.text("console-control"),
        body,
        refused,
    ))
}

/// Returns the release that waits for the controller's answer.
fn asks(record: &RecordView) -> Option<&ReleaseRequestView> {
    let release = record.release.as_ref();
    release.filter(|release| release.state == ReleaseState::Requested)
}

/// Shows one record, with the acts that the organization may do.
pub async fn show(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    shown(&app, &visitor, &id, None).await
}

/// Renders the page of a record.
pub async fn shown(
    app: &App,
    visitor: &Visitor,
    id: &str,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let record = control::get(app, &visitor.caller, id).await?;
    let texts = visitor.texts;
    // The originator has the envelope's page with its own files. Other parties get a watermarked copy
    // instead.
    let originates = is_own(visitor, Some(&record.control.originator));
    let parties = [
        ("control-originator", Some(&record.control.originator)),
        ("control-controller", Some(&record.control.controller)),
        ("control-designee", record.control.designee.as_ref()),
        ("control-buyer", record.control.buyer.as_ref()),
        ("control-pledgee", record.control.pledgee.as_ref()),
    ];
    let page = format!("{PATH}/control/records/{}", record.envelope_id);
    let copying = format!("{page}/copy");
    let copy = FormView::new(texts, &copying, refused);
    let body = html! {
        @if visitor.may(Permission::Control) { (visitor.identity_first(&page)) }
        p.soft {
            span.tag { (stage(texts, record.control.stage)) } " " code { (record.envelope_id) }
            @if let Some(score) = record.compliance_score { " · " (texts.with("console-score", [("score", score)])) }
        }
        section.card {
            h2 { (texts.text("control-parties")) }
            ul.rows {
                @for (name, party) in parties {
                    @if let Some(party) = party {
                        li { p { strong { (texts.text(name)) } " " (party.name) } p.soft { code { (party.organization_id) } } }
                    }
                }
            }
            p.soft { (texts.text("console-since")) " " (visitor.moment(record.controlled_since)) }
            @if let Some(hash) = &record.document_hash { p.soft { "SHA-256 " code { (hash) } } }
            @if originates && visitor.may(Permission::ReadEnvelopes) {
                p { a href={ (PATH) "/envelopes/" (record.envelope_id) } { (texts.text("custody-envelope")) } }
            }
            @if let Some(transfer) = &record.transfer_id {
                p { a href={ (PATH) "/transfers/" (transfer) } { (texts.text("control-transfers")) } }
            }
        }
        @if visitor.may(Permission::Control) {
            (acts(visitor, &record, refused))
        }
        @if !originates && record.control.stage != ControlStage::Released {
            form.card method="post" action=(copying) {
                (visitor.token())
                h2 { (texts.text("control-copy")) }
                p { (texts.text("control-copy-hint")) }
                (copy.summary())
                (copy.text(&TextField {
                    limit: 200,
                    ..TextField::required("purpose", &texts.text("control-purpose"))
                }))
                button.quiet type="submit" { (texts.text("control-copy")) }
            }
        }
    };

    let list = Some(&LiveList::Control);
    Ok(visitor.form_page(Place::Control, list, &record.name, body, refused))
}

/// Gives a watermarked copy. The look is recorded.
pub async fn copy(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::ReadControl)?;

    // A POST, because the look is an entry of the custody ledger and an event for all parties.
    let (caller, purpose) = (&form.visitor.caller, form.value("purpose"));
    let pdf = inspection::copy(&app, &app.vault, caller, &id, purpose).await;
    match pdf {
        Ok(pdf) => {
            let name = format!("{id}-copy.pdf");
            let file = FileReply::<Pdf>::of_bytes(&app, &name, &pdf).await?;
            Ok(file.into_response())
        }
        Err(error) => {
            let refused = form.refused(error)?;
            shown(&app, &form.visitor, &id, Some(&refused)).await
        }
    }
}

/// Whether a party is the user's organization.
fn is_own(visitor: &Visitor, party: Option<&PartyView>) -> bool {
    party.is_some_and(|party| party.organization_id == visitor.caller.org)
}

/// Renders the acts that the organization may do with a record now.
fn acts(visitor: &Visitor, record: &RecordView, refused: Option<&RefusedForm>) -> Markup {
    let (texts, control) = (visitor.texts, &record.control);
    let originates = is_own(visitor, Some(&control.originator));
    let controls = is_own(visitor, Some(&control.controller));
    let id = record.envelope_id.as_str();
    let page = format!("{PATH}/control/records/{id}");
    let view = |act: ControlAct, of: &str| FormView::new(texts, &action_of(act, of), refused);
    let form = |act: ControlAct, of: &str, fields: &dyn Fn(&FormView<'_>) -> Markup| {
        let view = view(act, of);
        let fields = html! { (view.summary()) (fields(&view)) };
        act_form(visitor, act, of, &page, fields)
    };

    let nothing = |_: &FormView<'_>| html! {};
    let reason = |view: &FormView<'_>| {
        view.text(&TextField {
            limit: 2000,
            ..TextField::new("reason", &texts.text("console-reason"))
        })
    };

    // The page leaves out what the stage rules out. The control rules decide again when the form arrives.
    let free = matches!(
        record.control.stage,
        ControlStage::Controlled | ControlStage::Originated
    );
    html! {
        @if is_own(visitor, control.designee.as_ref()) {
            section.card {
                h2 { (texts.text("control-offered-to-you")) }
                (form(ControlAct::Accept, id, &nothing))
                (form(ControlAct::Decline, id, &reason))
            }
        }
        @if originates && controls && record.control.stage == ControlStage::Originated {
            section.card {
                h2 { (ControlAct::Designate.label(texts)) }
                (form(ControlAct::Designate, id, &|view| party_field(view, "controller", "control-controller")))
            }
        }
        @if originates && record.control.stage == ControlStage::Designated {
            section.card { (form(ControlAct::Decline, id, &nothing)) }
        }
        @if let Some(release) = record.release.as_ref().filter(|_| controls || originates) {
            section.card {
                h2 { (texts.text("control-release-waits")) }
                p { (release.recipient_name) ", " (release.recipient_organization) ", " (release.recipient_email) }
                p {
                    (texts.text("release-medium")) ": "
                    @match release.medium {
                        ReleaseMedium::Paper => (texts.text("release-paper")),
                        ReleaseMedium::Electronic => (texts.text("release-electronic")),
                    }
                }
                p.soft { (release.purpose_of_release) " · " (visitor.moment(release.requested_at)) }
                @if controls {
                    @if release.state == ReleaseState::Requested {
                        (form(ControlAct::Consent, release.release_id.as_str(), &nothing))
                    }
                    (form(ControlAct::Refuse, release.release_id.as_str(), &reason))
                } @else {
                    p.soft { (texts.text("control-release-asked")) }
                }
            }
        }
        @if let Some(pledge) = record.pledge_id.as_ref().filter(|_| is_own(visitor, control.pledgee.as_ref())) {
            section.card {
                h2 { (texts.text("control-pledge")) }
                (form(ControlAct::ReleasePledge, pledge.as_str(), &nothing))
            }
        }
        @if controls && free && record.control.epoch > 0 && record.pledge_id.is_none() {
            details.card open[view(ControlAct::Pledge, id).is_refused()] {
                summary { (ControlAct::Pledge.label(texts)) }
                (form(ControlAct::Pledge, id, &|view| html! {
                    (party_field(view, "pledgee", "control-pledgee"))
                    (view.lines("terms", &texts.text("control-terms"), 4, ""))
                }))
            }
        }
        @if may_release(record.control.stage, controls, originates) {
            details.card open[view(ControlAct::Release, id).is_refused()] {
                summary { (ControlAct::Release.label(texts)) }
                (form(ControlAct::Release, id, &release_fields))
            }
        }
        @if record.control.stage == ControlStage::Released && controls && visitor.may(Permission::ReadEvidence) {
            section.card {
                a href={ (PATH) "/envelopes/" (id) "/files/bundle.zip" } download { (texts.text("console-file-bundle")) }
            }
        }
    }
}

/// Whether the organization can release a record, or ask its controller to agree to a release.
fn may_release(stage: ControlStage, controls: bool, originates: bool) -> bool {
    match stage {
        ControlStage::Originated => originates,
        // The originator of a controlled record only asks: a release needs the controller's consent (UCC
        // §9-105(b)(4)).
        ControlStage::Controlled => controls || originates,
        _ => false,
    }
}

fn release_fields(form: &FormView<'_>) -> Markup {
    let texts = form.texts;
    let fields = [
        ("recipient_name", "release-recipient", "text", 500),
        (
            "recipient_organization",
            "release-organization",
            "text",
            500,
        ),
        ("recipient_email", "release-email", "email", 500),
        ("purpose_of_release", "release-purpose", "text", 2_000),
        ("authorized_signature", "release-signature", "text", 500),
    ];

    // The API refuses a release without both.
    let acknowledged = [
        ("acknowledge_authoritative_copy", "release-acknowledge-copy"),
        (
            "acknowledge_chain_of_custody",
            "release-acknowledge-custody",
        ),
    ];

    let media = [("", "release-electronic"), ("paper", "release-paper")];
    let media = media.map(|(value, label)| (value.to_owned(), texts.text(label)));
    html! {
        @for (name, label, kind, limit) in fields {
            (form.text(&TextField {
                kind,
                limit,
                ..TextField::required(name, &texts.text(label))
            }))
        }
        (form.select("medium", &texts.text("release-medium"), &media, ""))
        @for (name, label) in acknowledged {
            label.choice {
                input type="checkbox" id=(name) name=(name) value="yes" required checked[form.is_ticked(name, false)];
                " " (texts.text(label))
            }
            (form.problem(name))
        }
    }
}

/// Returns the address of the form of an act.
fn action_of(act: ControlAct, of: &str) -> String {
    format!("{PATH}/control/{act}/{of}")
}

/// Renders the form of an act.
fn act_form(visitor: &Visitor, act: ControlAct, of: &str, next: &str, fields: Markup) -> Markup {
    html! {
        form method="post" action=(action_of(act, of)) {
            (visitor.token())
            input type="hidden" name="next" value=(next);
            (fields)
            button.danger[act.is_negative()] type="submit" { (act.label(visitor.texts)) }
        }
    }
}

/// Renders the field for the id of an organization.
fn party_field(form: &FormView<'_>, name: &str, label: &'static str) -> Markup {
    form.text(&TextField {
        limit: 100,
        pattern: Some("org_[0-9a-z]+"),
        ..TextField::required(name, &format!("{} (org_…)", form.texts.text(label)))
    })
}

/// Lists transfers, newest first.
pub async fn transfers(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    // Older ones are in the export.
    let found = transfers::list(&app, &visitor.caller, None, PAGE).await?;
    let texts = visitor.texts;
    let body = html! {
        @if found.is_empty() { p { (texts.text("empty-transfers")) } }
        ul.rows {
            @for one in &found {
                li {
                    a href={ (PATH) "/transfers/" (one.transfer_id) } { (one.seller.name) " → " (one.buyer.name) }
                    p.soft {
                        span.tag { (transfer_state(texts, one.state)) } " " (visitor.moment(one.created_at))
                        @if let Some(reference) = &one.price_reference { " · " (reference) }
                    }
                }
            }
        }
        (export(texts, "transfers.csv"))
    };

    Ok(visitor.live_page(
        Place::Control,
        &LiveList::Transfers,
        &texts.text("control-transfers"),
        body,
    ))
}

/// Shows one transfer with its records.
pub async fn transfer(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    // A transfer may have 10,000 records. The tape has all of them.
    let page = RecordsPage {
        state: None,
        after: None,
        limit: 100,
    };
    let details = transfers::get(&app, &visitor.caller, &id, page).await?;
    let (texts, one) = (visitor.texts, &details.transfer);
    let page = format!("{PATH}/transfers/{}", one.transfer_id);
    let body = html! {
        p.soft {
            span.tag { (transfer_state(texts, one.state)) } " "
            (texts.text("control-until")) " " (visitor.moment(one.expires_at))
        }
        section.card {
            h2 { (texts.text("control-parties")) }
            p { (one.seller.name) " → " (one.buyer.name) }
            @if let Some(terms) = &one.terms { p { (terms) } }
            @if let Some(reference) = &one.price_reference { p.soft { (reference) } }
            p { a href={ (page) "/tape.csv" } download { (texts.text("control-tape")) } }
            @if visitor.may(Permission::Control) {
                @for act in possible(one, one.seller.organization_id == visitor.caller.org) {
                    (act_form(&visitor, *act, one.transfer_id.as_str(), &page, html! {}))
                }
            }
        }
        (records(&visitor, &details))
    };

    Ok(visitor.live_page(
        Place::Control,
        &LiveList::Transfers,
        &texts.text("control-transfer"),
        body,
    ))
}

/// Returns the steps that a side can make in a transfer.
fn possible(transfer: &TransferView, sells: bool) -> &'static [ControlAct] {
    match (transfer.state, sells) {
        (TransferState::Proposed, false) => {
            &[ControlAct::AcceptTransfer, ControlAct::CancelTransfer]
        }
        (TransferState::Accepted, true) => {
            &[ControlAct::ConfirmTransfer, ControlAct::CancelTransfer]
        }
        // Either side may end the offer until the seller has confirmed it.
        (TransferState::Proposed, true) | (TransferState::Accepted, false) => {
            &[ControlAct::CancelTransfer]
        }
        // The transfer is over, or a job is making the step that a party asked for.
        _ => &[],
    }
}

fn records(visitor: &Visitor, details: &TransferDetails) -> Markup {
    let texts = visitor.texts;
    html! {
        section.card {
            h2 { (texts.text("control-records")) }
            p.soft {
                @for (state, count) in &details.transfer.counts { span.tag { (state) ": " (count) } " " }
            }
            ul.rows {
                @for record in &details.records {
                    li {
                        a href={ (PATH) "/control/records/" (record.envelope_id) } { code { (record.envelope_id) } }
                        @if let Some(reason) = &record.reason { p.problem { (reason) } }
                    }
                }
            }
            @if details.has_more { p.soft { "…" } }
        }
    }
}

/// Gives the table of a transfer's records.
pub async fn tape(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    // Samples and columns of their own are for programs. The page gives the whole pool.
    let options = TapeOptions {
        format: TapeFormat::Csv,
        columns: None,
        sample: None,
        seed: None,
        exceptions: false,
    };

    let (kind, name) = (options.format.content_type(), format!("{id}.csv"));
    let file = tape::tape(&app, &visitor.caller, &id, options).await?;
    Ok(FileReply::<CsvOrJsonLines>::named_as(kind, &name, file).into_response())
}

/// Lists the keys that sign the organization's acts, and the user's passkeys that can become one.
pub async fn keys(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    let known = keys::list(&app, &visitor.caller).await?;
    let own = passkeys::list(&app, &visitor.signed_in.user).await?;
    let asked = keys::asked(&app, &visitor.caller).await?;

    let (texts, page) = (visitor.texts, format!("{PATH}/control/keys"));
    let may = visitor.may(Permission::Control);
    // Revoked keys stay in the list, because earlier acts are signed with them.
    let body = html! {
        p { (texts.text("control-keys-hint")) }
        section.card {
            h2 { (texts.text("control-keys")) }
            @if known.is_empty() { p.soft { (texts.text("empty-control-keys")) } }
            ul.rows {
                @for key in &known {
                    li {
                        (key_row(&visitor, key))
                        @if may && key.revoked_at.is_none() {
                            (act_form(&visitor, ControlAct::RevokeKey, key.key_id.as_str(), &page, html! {}))
                        }
                    }
                }
            }
            (export(texts, "control/keys.csv"))
        }
        @if may && !asked.is_empty() {
            section.card {
                h2 { (texts.text("key-requests")) }
                ul.rows {
                    @for one in &asked {
                        li {
                            p { strong { (one.requested_by) } " " (visitor.moment(one.requested_at)) }
                            (act_form(&visitor, ControlAct::ApproveKey, one.passkey.as_str(), &page, html! {}))
                        }
                    }
                }
            }
        }
        @if may {
            section.card {
                h2 { (texts.text("passkeys-title")) }
                p { a href={ (PATH) "/sessions" } { (texts.text("passkey-add")) } }
                ul.rows {
                    @for passkey in own.iter().filter(|one| can_become_key(one, &known)) {
                        li {
                            p { strong { (passkey.name.as_deref().unwrap_or("–")) } }
                            (act_form(&visitor, ControlAct::RegisterKey, passkey.id.as_str(), &page, html! {}))
                        }
                    }
                }
            }
        }
    };

    Ok(visitor.live_page(
        Place::Control,
        &LiveList::ControlKeys,
        &texts.text("control-keys"),
        body,
    ))
}

/// Whether a passkey has a usable key that is not registered yet.
fn can_become_key(passkey: &Passkey, known: &[PartyKeyView]) -> bool {
    // Statements are signed with Ed25519 or P-256, so an RSA passkey has no key for them.
    passkeys::party_key(passkey).is_some_and(|key| known.iter().all(|one| one.public_key != key))
}

fn key_row(visitor: &Visitor, key: &PartyKeyView) -> Markup {
    let texts = visitor.texts;
    html! {
        p {
            strong { (key.name.as_deref().unwrap_or("–")) } " "
            @if key.revoked_at.is_some() { span.tag.wrong { (texts.text("console-inactive")) } }
        }
        p.soft { code { (key.thumbprint) } " · " (visitor.moment(key.created_at)) }
    }
}

fn stage(texts: Texts, stage: ControlStage) -> String {
    texts.text(match stage {
        ControlStage::Originated => "stage-originated",
        ControlStage::Designated => "stage-designated",
        ControlStage::Controlled => "stage-controlled",
        ControlStage::Proposed => "stage-proposed",
        ControlStage::Accepted => "stage-accepted",
        ControlStage::Released => "stage-released",
    })
}

fn transfer_state(texts: Texts, state: TransferState) -> String {
    texts.text(match state {
        // A job ends these steps within moments, so users see one name for all of them.
        TransferState::Proposing
        | TransferState::Accepting
        | TransferState::Confirming
        | TransferState::Cancelling
        | TransferState::Expiring
        | TransferState::Failing => "transfer-in-progress",
        TransferState::Proposed => "transfer-proposed",
        TransferState::Accepted => "transfer-accepted",
        TransferState::Confirmed => "transfer-confirmed",
        TransferState::Cancelled => "transfer-cancelled",
        TransferState::Expired => "transfer-expired",
        TransferState::Failed => "transfer-failed",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_and_a_state_have_words_of_their_own() {
        let texts = Texts::default();
        for (of, words) in [
            (ControlStage::Originated, "with its originator"),
            (ControlStage::Designated, "offered"),
            (ControlStage::Controlled, "controlled"),
            (ControlStage::Proposed, "in an offer"),
            (ControlStage::Accepted, "accepted by the buyer"),
            (ControlStage::Released, "released"),
        ] {
            assert_eq!(stage(texts, of), words);
        }

        for (state, words) in [
            (TransferState::Expiring, "in progress"),
            (TransferState::Confirmed, "confirmed"),
            (TransferState::Expired, "expired"),
        ] {
            assert_eq!(transfer_state(texts, state), words);
        }
    }

    #[test]
    fn a_button_names_the_act_that_it_makes() {
        for (act, label) in [
            (ControlAct::Designate, "Offer control"),
            (ControlAct::Accept, "Take control"),
            (ControlAct::Decline, "Decline"),
            (ControlAct::Consent, "Agree to the release"),
            (ControlAct::Release, "Release the authoritative copy"),
            (ControlAct::Offer, "Offer to the buyer"),
            (ControlAct::ConfirmTransfer, "Confirm"),
            (ControlAct::RegisterKey, "Sign acts with this passkey"),
        ] {
            assert_eq!(act.label(Texts::default()), label);
        }
    }
}
