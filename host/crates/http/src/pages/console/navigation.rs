//! Frame of the pages with their navigation, and parts that several of them have.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use tokio::task::JoinError;

use super::forms::RefusedForm;
use super::live::LiveList;
use super::signed_in::Visitor;
use super::{PATH, home};
use crate::error::HttpError;
use crate::pages::page_frame::PageLook;
use holdfast_adapters::texts::Texts;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::organization::{Permission, Role};
use holdfast_platform::ServiceError;
use holdfast_service::App;

/// Page of the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Home,
    Activity,
    Envelopes,
    Send,
    Templates,
    Customers,
    Vault,
    Control,
    Holds,
    Retention,
    Destruction,
    Rules,
    Developers,
    Audit,
    Users,
    Settings,
    Operator,
    Sessions,
}

/// Place with its path below the console's, and the key of its name.
type MenuEntry = (Place, &'static str, &'static str);

/// Shows the first page, or leads to the first page that the visitor's role may use.
pub async fn land(app: State<App>, visitor: Visitor) -> PageResult {
    if visitor.may(Permission::ReadEnvelopes) {
        return home::show(app, visitor).await;
    }

    let menu = visitor.menu();
    let mut places = menu.iter().flat_map(|(_, places)| places);
    // Every user has the page of their own sign-in.
    let path = places.next().map_or("/sessions", |(_, path, _)| *path);
    Ok(Redirect::to(&format!("{PATH}{path}")).into_response())
}

/// Returns the answer for an error of a service. Its page comes from the layer around all pages.
pub fn failed(error: ServiceError) -> Response {
    HttpError::from(error).into_response()
}

/// A page, or the answer in its place.
pub type PageResult = Result<Response, OtherAnswer>;

/// Answer in place of a page: a refusal, a question before an act, or an error.
pub struct OtherAnswer(Response);

impl From<Response> for OtherAnswer {
    fn from(answer: Response) -> Self {
        Self(answer)
    }
}

impl From<HttpError> for OtherAnswer {
    fn from(error: HttpError) -> Self {
        Self(error.into_response())
    }
}

impl From<ServiceError> for OtherAnswer {
    fn from(error: ServiceError) -> Self {
        Self(failed(error))
    }
}

impl From<JoinError> for OtherAnswer {
    fn from(error: JoinError) -> Self {
        Self(failed(ServiceError::Internal(error.to_string())))
    }
}

impl IntoResponse for OtherAnswer {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Visitor {
    /// Renders a page.
    pub fn page(&self, place: Place, title: &str, body: Markup) -> Response {
        self.page_with_frames(place, title, body, None)
    }

    /// Renders a page that follows the changes of a list, if its visitor may read that.
    pub fn live_page(&self, place: Place, list: &LiveList, title: &str, body: Markup) -> Response {
        let stream = list.is_open_to(self).then(|| list.address());
        let main = html! { main.console data-live=[stream] { h1 { (title) } (body) } };
        self.look(place, title, main, None)
    }

    /// Renders a page with forms. A refused form is shown with its entries, which a live page would replace.
    pub fn form_page(
        &self,
        place: Place,
        list: Option<&LiveList>,
        title: &str,
        body: Markup,
        refused: Option<&RefusedForm>,
    ) -> Response {
        match (refused, list) {
            (Some(refused), _) => {
                let body = html! { (refused.left_over(self.texts)) (body) };
                refused.answer(self.page(place, title, body))
            }
            (None, Some(list)) => self.live_page(place, list, title, body),
            (None, None) => self.page(place, title, body),
        }
    }

    /// Renders a page with frames of another origin.
    pub fn page_with_frames(
        &self,
        place: Place,
        title: &str,
        body: Markup,
        frames: Option<String>,
    ) -> Response {
        self.look(
            place,
            title,
            html! { main.console { h1 { (title) } (body) } },
            frames,
        )
    }

    fn look(&self, place: Place, title: &str, main: Markup, frames: Option<String>) -> Response {
        let texts = self.texts;
        let markup = html! {
            header.top.console {
                p.brand { (self.organization.display_name()) }
                nav aria-label=(texts.text("console-navigation")) {
                    @for (group, places) in self.menu() {
                        @if !places.is_empty() {
                            div.group role="group" aria-labelledby=(group) {
                                span.heading id=(group) { (texts.text(group)) }
                                @for (one, path, name) in places {
                                    a href={ (PATH) (path) } aria-current=[(one == place).then_some("page")] {
                                        (texts.text(name))
                                    }
                                }
                            }
                        }
                    }
                }
                form.leave method="post" action={ (PATH) "/sign-out" } {
                    (self.token())
                    span.who { (self.signed_in.user.email) }
                    button.quiet type="submit" { (texts.text("console-sign-out")) }
                }
            }
            (main)
        };

        let look = PageLook {
            frames,
            ..PageLook::plain(texts)
        };
        look.page(StatusCode::OK, title, None, "console", markup)
    }

    /// Returns the groups of the navigation with the places that the visitor may see. Each page checks the permission
    /// itself.
    fn menu(&self) -> [(&'static str, Vec<MenuEntry>); 4] {
        let may = |permission| self.may(permission);
        let reads = may(Permission::ReadEnvelopes);
        let shown = |all: &[(MenuEntry, bool)]| -> Vec<MenuEntry> {
            let shown = all.iter().filter(|(_, shown)| *shown);
            shown.map(|(entry, _)| *entry).collect()
        };

        [
            (
                "menu-work",
                shown(&[
                    ((Place::Home, "", "console-home"), reads),
                    ((Place::Envelopes, "/envelopes", "console-envelopes"), reads),
                    (
                        (Place::Send, "/send", "console-send"),
                        may(Permission::Send),
                    ),
                    ((Place::Templates, "/templates", "console-templates"), reads),
                    ((Place::Customers, "/customers", "console-customers"), reads),
                ]),
            ),
            (
                "menu-records",
                shown(&[
                    (
                        (Place::Vault, "/vault", "console-vault"),
                        may(Permission::ReadEvidence),
                    ),
                    (
                        (Place::Control, "/control", "console-control"),
                        may(Permission::ReadControl),
                    ),
                    (
                        (Place::Holds, "/holds", "console-holds"),
                        may(Permission::ReadEvidence),
                    ),
                    (
                        (Place::Retention, "/retention", "console-retention"),
                        may(Permission::ReadEvidence),
                    ),
                    (
                        (Place::Destruction, "/destructions", "console-destruction"),
                        may(Permission::ReadEvidence),
                    ),
                ]),
            ),
            (
                "menu-oversight",
                shown(&[
                    ((Place::Activity, "/activity", "console-activity"), reads),
                    (
                        (Place::Rules, "/rules", "console-rules"),
                        may(Permission::ReadEvidence),
                    ),
                    (
                        (Place::Audit, "/audit", "console-audit"),
                        may(Permission::Audit),
                    ),
                ]),
            ),
            (
                "menu-organization",
                shown(&[
                    (
                        (Place::Users, "/users", "console-users"),
                        may(Permission::Administer),
                    ),
                    (
                        (Place::Settings, "/settings", "console-settings"),
                        may(Permission::Administer),
                    ),
                    (
                        (Place::Developers, "/developers", "console-developers"),
                        may(Permission::Integrate),
                    ),
                    (
                        (Place::Operator, "/operator", "console-operator"),
                        self.operates,
                    ),
                    ((Place::Sessions, "/sessions", "console-sessions"), true),
                ]),
            ),
        ]
    }

    /// Renders the token that every form of the session has.
    pub fn token(&self) -> Markup {
        html! { input type="hidden" name="token" value=(self.signed_in.form_token); }
    }

    /// Renders a form that is only its button, with the class of that.
    pub fn button(&self, action: &str, class: Option<&str>, text: &'static str) -> Markup {
        html! {
            form method="post" action=(action) {
                (self.token())
                button class=[class] type="submit" { (self.texts.text(text)) }
            }
        }
    }

    /// Renders a moment in the organization's form of dates.
    pub fn moment(&self, at: Timestamp) -> Markup {
        let text = self.texts.moment(&self.organization.settings.dates, at);
        html! { time datetime=(at) { (text) } }
    }
}

/// Renders the link to a list as CSV, by its address below the console's.
pub fn export(texts: Texts, address: &str) -> Markup {
    html! { p { a href={ (PATH) "/" (address) } download { (texts.text("console-export")) } } }
}

/// Renders a value to be copied: a field that the keyboard selects as a whole, and with a script a button.
pub fn copied(texts: Texts, id: &str, label: &str, value: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { (label) }
            div.copied {
                input id=(id) readonly value=(value) spellcheck="false" autocomplete="off";
                button.quiet type="button" data-copy=(id) hidden { (texts.text("console-copy")) }
            }
        }
    }
}

/// Returns a text as it stands in a query.
pub fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns the query of a search, without empty conditions.
pub fn query<'a>(conditions: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    // Browsers send empty fields of a search as well. Links to its other pages stay short without them.
    let given = conditions
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(given).finish()
}

/// Returns the name of a status.
pub fn status(texts: Texts, status: EnvelopeStatus) -> String {
    texts.text(match status {
        EnvelopeStatus::Pending => "status-pending",
        EnvelopeStatus::Uploaded => "status-uploaded",
        EnvelopeStatus::Preparing => "status-preparing",
        EnvelopeStatus::Sent => "status-sent",
        EnvelopeStatus::Viewed => "status-viewed",
        EnvelopeStatus::Completed => "status-completed",
        EnvelopeStatus::Vaulted => "status-vaulted",
        EnvelopeStatus::VaultedOut => "status-vaulted-out",
        EnvelopeStatus::Declined => "status-declined",
        EnvelopeStatus::Voided => "status-voided",
        EnvelopeStatus::Expired => "status-expired",
    })
}

/// Returns the name of a role.
pub fn role(texts: Texts, role: Role) -> String {
    texts.text(match role {
        Role::Owner => "role-owner",
        Role::Admin => "role-admin",
        Role::Sender => "role-sender",
        Role::Compliance => "role-compliance",
        Role::Auditor => "role-auditor",
        Role::Controller => "role-controller",
        Role::Developer => "role-developer",
        Role::Member => "role-member",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_a_word_of_its_own() {
        for (of, word) in [
            (EnvelopeStatus::Completed, "completed"),
            (EnvelopeStatus::Vaulted, "in the vault"),
            (EnvelopeStatus::VaultedOut, "released"),
            (EnvelopeStatus::Declined, "declined"),
            (EnvelopeStatus::Expired, "expired"),
        ] {
            assert_eq!(status(Texts::default(), of), word);
        }
    }
}
