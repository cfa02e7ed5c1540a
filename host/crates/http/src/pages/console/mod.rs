//! The console: pages for an organization's own people, signed in with a session.
//!
//! | File | Pages |
//! |---|---|
//! | `visitor` | who is signed in, and forms with their token |
//! | `passkeys` | sign-in and confirmation with passkeys, and the own ones |
//! | `fact_maps` | fact maps: one with its versions, and tries |
//! | `facts` | the card with the facts of a contract |
//! | `forms` | forms that come back with their entries and problems |
//! | `sure` | the page before an act that cannot be undone |
//! | `sign_in` | sign-in by a mailed link, sign-out, open sessions |
//! | `sign_on` | sign-in at the organization's issuer |
//! | `frame` | frame with the navigation |
//! | `live` | streams that open pages follow |
//! | `funding` | funding of an envelope: checks, attachments, the package |
//! | `funding_packs` | packs of lenders, own ones and those that are followed |
//! | `home` | envelopes by state, findings |
//! | `activity` | pictures of the last 30 days |
//! | `envelopes` | lists by tab, search, own filters, and acts on several |
//! | `envelope` | one envelope: where it is, its people, its evidence |
//! | `standing` | parts that show where an envelope stands |
//! | `customers` | customers with their envelopes and files |
//! | `keys` | API keys: making, replacing and ending them |
//! | `templates` | templates, their preview, and the way to the builder |
//! | `template_versions` | another PDF for a template, and its earlier versions |
//! | `drafts` | the steps from a document to its sending |
//! | `sending` | the choice of a document, a template or a draft |
//! | `bulk` | bulk send |
//! | `imports` | documents that were signed in other systems |
//! | `packages` | packages of templates |
//! | `vault` | records in the vault |
//! | `insight` | usage, the request log, and the installation for its operator |
//! | `settings` | settings of the organization, with its sign-in |
//! | `people` | users of the organization |
//! | `control` | records under control, transfers, keys |
//! | `control_acts` | acts of control, confirmed and signed |
//! | `developers` | keys and receivers of webhooks, single deliveries |
//! | `receivers` | one receiver with its deliveries, and acts on it |
//! | `graph` | graphs as SVG with their tables |
//! | `rules` | slots, components and their comparison |
//! | `comparison` | differences between two components |
//! | `effective` | calendar of effective dates |
//! | `changes` | change requests of components |
//! | `exports` | lists as CSV |
//! | `destruction` | requests to destroy records, and the steps of people towards it |
//! | `retention` | legal holds, retention schedules, records that are due |
//! | `persons` | data held about a customer: export and erasure |
//! | `audit` | who did what |
//!
//! Reading works without a script. Every form has the token of its session, and the session's cookie is sent with
//! requests from these pages only (`SameSite=Strict`).

mod activity;
mod audit;
mod bulk;
mod changes;
mod comparison;
mod contract_dates;
mod control;
mod control_acts;
mod customers;
mod destruction;
mod developers;
mod drafts;
mod effective;
mod envelope;
mod envelopes;
mod exports;
mod fact_maps;
mod facts;
mod forms;
mod funding;
mod funding_packs;
mod graph;
mod home;
mod imports;
mod insight;
mod keys;
mod live;
mod navigation;
mod open_links;
mod packages;
mod passkeys;
mod persons;
mod receivers;
mod retention;
mod rules;
mod sending;
mod settings;
mod sign_in;
mod sign_on;
mod signed_in;
mod standing;
mod sure;
mod tapes;
mod template_versions;
mod templates;
mod users;
mod vault;

use axum::Router;

use self::live::LiveList;
pub use self::signed_in::read_form;
use crate::routing::{boxed, get, post};
use holdfast_service::App;

/// Path below which the pages are.
pub const PATH: &str = "/console";
/// Path below which the sign-in links are.
pub const ENTRANCE: &str = "/console/enter";

/// Returns the routes; none where the console is switched off.
pub fn routes(enabled: bool) -> Router<App> {
    // Without routes, a switched-off console reads no cookie and answers like an unknown path.
    if !enabled {
        return Router::new();
    }

    let below = |rest: &str| format!("{PATH}{rest}");
    let live = |list: LiveList| get(move |app, visitor| live::follow(app, visitor, list));
    Router::new()
        .route(PATH, get(navigation::land))
        .route(
            &below("/sign-in"),
            get(sign_in::ask).post(boxed(sign_in::send)),
        )
        .route(
            &below("/enter/{link}/{code}"),
            get(sign_in::offer).post(boxed(sign_in::enter)),
        )
        .route(&below("/sign-in/passkey"), post(passkeys::sign_in))
        .route(&below("/sso"), get(sign_on::choose))
        .route(&below("/sso/callback"), get(sign_on::finish))
        .route(
            &below("/sso/{org}"),
            get(sign_on::offer).post(boxed(sign_on::begin)),
        )
        .route(&below("/confirm"), post(passkeys::confirm))
        .route(&below("/passkeys"), post(passkeys::add))
        .route(&below("/passkeys/{id}/remove"), post(passkeys::remove))
        .route(&below("/sign-out"), post(sign_in::leave))
        .route(&below("/sessions"), get(sign_in::sessions))
        .route(&below("/sessions/{id}/end"), post(sign_in::end_session))
        .route(&below("/envelopes"), get(envelopes::list))
        .route(&below("/activity"), get(activity::show))
        .route(&below("/filters"), post(envelopes::save_filter))
        .route(&below("/filters/remove"), post(envelopes::remove_filter))
        .route(&below("/customers"), get(customers::list))
        .route(&below("/customers/{id}"), get(customers::show))
        .route(&below("/customers/{id}/export"), post(persons::export))
        .route(&below("/customers/{id}/erasure"), get(persons::show))
        .route(
            &below("/customers/{id}/erasure/{step}"),
            post(persons::step),
        )
        .route(&below("/customers.csv"), get(exports::customers))
        .route(&below("/envelopes/{id}"), get(envelope::show))
        .route(
            &below("/envelopes/{id}/decisions"),
            get(envelope::decisions),
        )
        // These only show something, but they issue credentials. A POST needs the token of the session.
        .route(&below("/envelopes/{id}/links"), post(envelope::links))
        .route(&below("/envelopes/{id}/embed"), post(envelope::embed))
        .route(&below("/envelopes/{id}/files/{file}"), get(envelope::file))
        .route(
            &below("/envelopes/{id}/signers/{position}"),
            post(envelope::correct),
        )
        .route(&below("/envelopes/{id}/remind"), post(envelope::remind))
        .route(
            &below("/envelopes/{id}/questions/{question}"),
            post(envelope::close_question),
        )
        .route(&below("/envelopes/{id}/void"), post(envelope::void))
        .route(&below("/envelopes/{id}/edit"), post(envelope::edit))
        .route(&below("/envelopes/{id}/send"), post(envelope::send))
        .route(&below("/envelopes/{id}/dates"), post(contract_dates::add))
        .route(
            &below("/envelopes/{id}/dates/remove"),
            post(contract_dates::remove),
        )
        .route(&below("/envelopes/{id}/extend"), post(envelope::extend))
        .route(&below("/envelopes/{id}/copy"), post(envelope::copy))
        .route(&below("/envelopes/{id}/correct"), post(envelope::replace))
        .route(&below("/envelopes/{id}/vault"), post(envelope::vault))
        .route(
            &below("/envelopes/{id}/pages/{page}"),
            get(envelope::picture),
        )
        .route(&below("/envelopes/{id}/verify"), post(envelope::verify))
        .route(
            &below("/envelopes/{id}/funding-check"),
            post(funding::check),
        )
        .route(
            &below("/envelopes/{id}/stipulations"),
            post(funding::require),
        )
        .route(
            &below("/envelopes/{id}/stipulations/{kind}/file"),
            post(funding::receive),
        )
        .route(
            &below("/envelopes/{id}/stipulations/{kind}/waive"),
            post(funding::waive),
        )
        .route(
            &below("/users"),
            get(users::list).post(boxed(users::invite)),
        )
        .route(&below("/users/{id}/role"), post(users::change))
        .route(&below("/users/{id}/invite"), post(users::invite_again))
        .route(&below("/users/{id}/end"), post(users::end))
        .route(&below("/send"), get(sending::choose))
        .route(&below("/drafts"), post(drafts::upload))
        .route(&below("/drafts/template"), post(drafts::of_template))
        .route(&below("/drafts/{id}"), get(drafts::open))
        .route(
            &below("/drafts/{id}/people"),
            get(drafts::people).post(boxed(drafts::save_people)),
        )
        .route(
            &below("/drafts/{id}/fields"),
            get(drafts::fields).post(boxed(drafts::place_fields)),
        )
        .route(
            &below("/drafts/{id}/details"),
            get(drafts::details).post(boxed(drafts::save_details)),
        )
        .route(
            &below("/drafts/{id}/review"),
            get(drafts::review).post(boxed(drafts::send)),
        )
        .route(
            &below("/templates"),
            get(templates::list).post(boxed(templates::upload)),
        )
        .route(&below("/bulk"), get(bulk::list).post(boxed(bulk::create)))
        .route(&below("/bulk/{id}"), get(bulk::show))
        .route(&below("/bulk/{id}/events"), get(bulk::events))
        .route(&below("/bulk/{id}/table"), post(bulk::table))
        .route(&below("/bulk/{id}/clients"), post(bulk::clients))
        // The router prefers the literal paths above, in any order of the calls.
        .route(&below("/bulk/{id}/{act}"), post(bulk::act))
        .route(
            &below("/imports"),
            get(imports::list).post(boxed(imports::upload)),
        )
        .route(&below("/imports/{id}"), get(imports::show))
        .route(&below("/imports/{id}/report.csv"), get(imports::report))
        .route(
            &below("/packages"),
            get(packages::list).post(boxed(packages::create)),
        )
        .route(&below("/packages/{id}"), post(packages::change))
        .route(&below("/vault"), get(vault::list))
        .route(&below("/vault.csv"), get(exports::vault))
        .route(&below("/live"), live(LiveList::Envelopes))
        .route(&below("/live/templates"), live(LiveList::Templates))
        .route(&below("/live/packages"), live(LiveList::Packages))
        .route(&below("/live/bulk"), live(LiveList::Batches))
        .route(&below("/live/control"), live(LiveList::Control))
        .route(&below("/live/control/keys"), live(LiveList::ControlKeys))
        .route(&below("/live/transfers"), live(LiveList::Transfers))
        .route(&below("/live/rules"), live(LiveList::Rules))
        .route(&below("/live/developers"), live(LiveList::Developers))
        .route(&below("/live/requests"), live(LiveList::Requests))
        .route(&below("/live/audit"), live(LiveList::Audit))
        .route(&below("/live/users"), live(LiveList::Users))
        .route(&below("/live/sessions"), live(LiveList::Sessions))
        .route(&below("/live/operator"), live(LiveList::Installation))
        .route(&below("/receivers/{id}/live"), get(live::deliveries))
        .route(&below("/envelopes/act"), post(envelopes::act_on_several))
        .route(&below("/templates/{id}"), get(templates::show))
        .route(
            &below("/templates/{id}/pages/{page}"),
            get(templates::picture),
        )
        .route(&below("/templates/{id}/preview"), get(templates::preview))
        .route(&below("/templates/{id}/edit"), post(templates::edit))
        .route(&below("/templates/{id}/rename"), post(templates::rename))
        .route(&below("/templates/{id}/delete"), post(templates::delete))
        .route(&below("/templates/{id}/restore"), post(templates::restore))
        .route(
            &below("/templates/{id}/duplicate"),
            post(templates::duplicate),
        )
        .route(&below("/templates/{id}/document"), get(templates::document))
        .route(
            &below("/templates/{id}/versions"),
            post(template_versions::compare),
        )
        .route(
            &below("/templates/{id}/versions/confirm"),
            post(template_versions::confirm),
        )
        .route(
            &below("/templates/{id}/versions/restore"),
            post(template_versions::restore),
        )
        .route(
            &below("/templates/{id}/open-links"),
            get(open_links::list).post(boxed(open_links::create)),
        )
        .route(&below("/open-links/{id}/qr.svg"), get(open_links::qr))
        .route(&below("/open-links/{id}/close"), post(open_links::close))
        .route(&below("/usage"), get(insight::usage))
        .route(&below("/requests"), get(insight::requests))
        .route(&below("/requests/{id}"), get(insight::request))
        .route(&below("/operator"), get(insight::operator))
        .route(&below("/settings"), get(settings::show))
        .route(
            &below("/settings/{part}"),
            get(settings::show_part).post(boxed(settings::save)),
        )
        .route(&below("/developers"), get(developers::show))
        .route(&below("/keys"), post(keys::create))
        .route(&below("/keys/{id}/rotate"), post(keys::rotate))
        .route(&below("/keys/{id}/deactivate"), post(keys::deactivate))
        .route(&below("/receivers"), post(receivers::create))
        .route(&below("/receivers/{id}"), get(receivers::show))
        .route(&below("/receivers/{id}/edit"), post(receivers::edit))
        .route(&below("/receivers/{id}/test"), post(receivers::test))
        .route(&below("/receivers/{id}/enable"), post(receivers::enable))
        .route(&below("/receivers/{id}/disable"), post(receivers::disable))
        .route(&below("/receivers/{id}/rotate"), post(receivers::rotate))
        .route(&below("/receivers/{id}/delete"), post(receivers::delete))
        .route(&below("/deliveries/{id}"), get(developers::delivery))
        .route(
            &below("/deliveries/{id}/redeliver"),
            post(developers::redeliver),
        )
        .route(&below("/control"), get(control::list))
        .route(&below("/control/keys"), get(control::keys))
        .route(&below("/control/records/{id}"), get(control::show))
        .route(&below("/control/records/{id}/copy"), post(control::copy))
        .route(&below("/control/{act}/{id}"), post(control_acts::act))
        .route(&below("/transfers"), get(control::transfers))
        .route(&below("/transfers/{id}"), get(control::transfer))
        .route(&below("/transfers/{id}/tape.csv"), get(control::tape))
        .route(
            &below("/tapes"),
            get(tapes::list).post(boxed(tapes::upload)),
        )
        .route(&below("/tapes/maps"), post(tapes::save_map))
        .route(&below("/tapes/{id}"), get(tapes::show))
        .route(
            &below("/tapes/{id}/columns"),
            get(tapes::choose).post(boxed(tapes::take_columns)),
        )
        .route(&below("/tapes/{id}/delete"), post(tapes::delete))
        .route(&below("/tapes/{id}/pictures/{picture}"), get(tapes::place))
        .route(&below("/tapes/{id}/report/{format}"), get(tapes::report))
        .route(
            &below("/fact-maps"),
            get(fact_maps::list).post(boxed(fact_maps::create)),
        )
        .route(
            &below("/fact-maps/{id}"),
            get(fact_maps::show).post(boxed(fact_maps::save)),
        )
        .route(&below("/fact-maps/{id}/versions"), post(fact_maps::restore))
        .route(
            &below("/funding"),
            get(funding_packs::list).post(boxed(funding_packs::publish)),
        )
        .route(
            &below("/funding/{id}/versions"),
            post(funding_packs::publish_version),
        )
        .route(
            &below("/funding/{id}/invitations"),
            post(funding_packs::invite),
        )
        .route(
            &below("/funding/{id}/subscription"),
            post(funding_packs::subscribe),
        )
        .route(
            &below("/holds"),
            get(retention::list).post(boxed(retention::place)),
        )
        .route(&below("/holds/{id}/{step}"), post(retention::step))
        .route(
            &below("/retention"),
            get(retention::show).post(boxed(retention::save)),
        )
        .route(
            &below("/destructions"),
            get(destruction::list).post(boxed(destruction::request)),
        )
        .route(&below("/destructions/{id}/{step}"), post(destruction::step))
        .route(
            &below("/destructions/{id}/certificate/{file}"),
            get(destruction::certificate),
        )
        .route(&below("/rules"), get(rules::show))
        .route(&below("/rules/{slot}"), get(rules::slot))
        .route(
            &below("/rules/{slot}/activate/{id}"),
            post(changes::activate),
        )
        .route(
            &below("/rules/{slot}/roll-back/{id}"),
            post(changes::roll_back),
        )
        .route(&below("/components"), post(rules::upload))
        .route(&below("/components/{id}"), get(rules::component))
        .route(&below("/components/{id}/compare"), post(rules::compare))
        .route(&below("/changes/{id}"), get(changes::show))
        .route(&below("/changes/{id}/review"), post(changes::review))
        .route(&below("/changes/{id}/{act}"), post(changes::act))
        .route(&below("/audit"), get(audit::show))
        .route(&below("/envelopes.csv"), get(exports::envelopes))
        .route(&below("/audit.csv"), get(exports::audit))
        .route(&below("/users.csv"), get(exports::users))
        .route(&below("/templates.csv"), get(exports::templates))
        .route(&below("/batches.csv"), get(exports::batches))
        .route(&below("/bulk/{id}/clients.csv"), get(exports::clients))
        .route(&below("/transfers.csv"), get(exports::transfers))
        .route(&below("/packages.csv"), get(exports::packages))
        .route(&below("/control.csv"), get(exports::records))
        .route(&below("/control/keys.csv"), get(exports::control_keys))
        .route(&below("/keys.csv"), get(exports::keys))
        .route(&below("/receivers.csv"), get(exports::receivers))
        .route(&below("/changes.csv"), get(exports::changes))
        .route(&below("/activations.csv"), get(exports::activations))
        .route(&below("/components.csv"), get(exports::components))
        .route(&below("/sessions.csv"), get(exports::sessions))
        .route(
            &below("/operator/organizations.csv"),
            get(exports::organizations),
        )
        .route(&below("/operator/nodes.csv"), get(exports::nodes))
        .route(&below("/operator/jobs.csv"), get(exports::jobs))
        .route(&below("/requests.csv"), get(exports::requests))
        .route(
            &below("/receivers/{id}/deliveries.csv"),
            get(exports::deliveries),
        )
}
