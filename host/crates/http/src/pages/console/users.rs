//! Users of the organization.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::PATH;
use super::changes::request;
use super::live::LiveList;
use super::navigation::{Place, export, failed, role};
use super::signed_in::{ConsoleForm, Visitor};
use holdfast_domain::organization::{Permission, Role};
use holdfast_domain::user::UserStatus;
use holdfast_platform::ServiceError;
use holdfast_platform::access::users::{self, ChangeUser, NewUser, UserManager, UserView};
use holdfast_platform::components::changes::ProposedChange;
use holdfast_platform::problems::ChangeProblem;
use holdfast_service::App;

/// Lists the users, with a form to invite another.
pub async fn list(State(app): State<App>, visitor: Visitor) -> Response {
    shown(&app, &visitor, None).await
}

async fn shown(app: &App, visitor: &Visitor, problem: Option<String>) -> Response {
    if let Some(refused) = visitor.refusal(Permission::Administer) {
        return refused;
    }

    let found = match users::list(app, &visitor.caller.org).await {
        Ok(found) => found,
        Err(error) => return failed(error),
    };
    let texts = visitor.texts;
    let body = html! {
        @if let Some(problem) = &problem { p.alarm role="alert" { (problem) } }
        ul.rows {
            @for user in &found { li { (row(visitor, user)) } }
        }
        (export(texts, "users.csv"))
        section.card {
            h2 { (texts.text("console-invite")) }
            form method="post" action={ (PATH) "/users" } {
                (visitor.token())
                div.field {
                    label for="email" { (texts.text("sign-in-email")) }
                    input id="email" name="email" type="email" required maxlength="200";
                }
                div.field {
                    label for="role" { (texts.text("console-role")) }
                    (roles(visitor, "role", Role::Sender))
                }
                button type="submit" { (texts.text("console-invite")) }
            }
        }
    };

    let title = texts.text("console-users");
    match problem {
        // The reason stays in sight.
        Some(_) => visitor.page(Place::Users, &title, body),
        None => visitor.live_page(Place::Users, &LiveList::Users, &title, body),
    }
}

fn roles(visitor: &Visitor, id: &str, chosen: Role) -> Markup {
    html! {
        select id=(id) name="role" {
            @for one in Role::ALL {
                option value=(one) selected[*one == chosen] { (role(visitor.texts, *one)) }
            }
        }
    }
}

fn row(visitor: &Visitor, user: &UserView) -> Markup {
    let texts = visitor.texts;
    let action = |name: &str| format!("{PATH}/users/{}/{name}", user.user_id);
    // An ended access has nothing to change. Another invitation of the address gives access again.
    let has_access = user.status != UserStatus::Ended;
    let field = format!("role-{}", user.user_id);
    html! {
        p {
            strong { (user.email) } " "
            span.tag { (role(texts, user.role)) }
            @match user.status {
                UserStatus::Invited => { " " span.soft { (texts.text("console-invited")) } }
                UserStatus::Ended => { " " span.soft { (texts.text("console-ended")) } }
                UserStatus::Active => {}
            }
        }
        @if let Some(at) = user.signed_in_at {
            p.soft { (texts.text("console-signed-in")) " " (visitor.moment(at)) }
        }
        @if has_access && user.email != visitor.signed_in.user.email {
            details {
                summary { (texts.text("console-change")) }
                form method="post" action=(action("role")) {
                    (visitor.token())
                    div.field {
                        label for=(field) { (texts.text("console-role")) }
                        (roles(visitor, &field, user.role))
                    }
                    button type="submit" { (texts.text("console-change-role")) }
                }
                form method="post" action=(action("invite")) {
                    (visitor.token())
                    button.quiet type="submit" { (texts.text("console-invite-again")) }
                }
                form method="post" action=(action("end")) {
                    (visitor.token())
                    button.danger type="submit" { (texts.text("console-end-access")) }
                }
            }
        }
    }
}

/// Whether an act takes the approval of others, and becomes a request for it.
pub fn needs_approval<T>(done: &Result<T, ServiceError>) -> bool {
    matches!(
        done,
        Err(ServiceError::Change(ChangeProblem::ApprovalRequired))
    )
}

/// Shows the list after an act, or with the reason for which it was refused.
async fn after<T>(app: &App, form: &ConsoleForm, done: Result<T, ServiceError>) -> Response {
    match done {
        Ok(_) => Redirect::to(&format!("{PATH}/users")).into_response(),
        // These say what the user can do differently, so they stand above the list. Other errors get a
        // page of their own.
        Err(error @ (ServiceError::Conflict(_) | ServiceError::NotAllowed(_))) => {
            shown(app, &form.visitor, Some(error.to_string())).await
        }
        Err(ServiceError::Invalid(issues)) => {
            let told = issues.iter().map(|issue| issue.message.clone());
            let told: Vec<String> = told.collect();
            shown(app, &form.visitor, Some(told.join("; "))).await
        }
        Err(error) => failed(error),
    }
}

fn manager(visitor: &Visitor) -> UserManager<'_> {
    UserManager {
        caller: &visitor.caller,
        // None would be the operator, who may give every role.
        role: Some(visitor.signed_in.user.role),
    }
}

/// Invites a user.
pub async fn invite(State(app): State<App>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Administer) {
        return refused;
    }
    // An invited address of a thief would have access after the stolen session has ended.
    if let Err(asks) = form.confirmed(&app, &format!("{PATH}/users")).await {
        return asks;
    }
    // The select offers known roles only, so only a hand-made form ends here.
    let Some(role) = Role::parse(form.value("role")) else {
        return Redirect::to(&format!("{PATH}/users")).into_response();
    };

    let email = form.value("email").to_owned();
    let new = NewUser {
        email: email.clone(),
        role,
    };
    let invited = users::invite(&app, &manager(&form.visitor), new).await;
    // Where the policy wants more than one person, the act becomes a change request, because one
    // person must not make a reviewer alone.
    if needs_approval(&invited) {
        let act = form.visitor.texts.text("console-invite");
        let change = ProposedChange::InviteUser { email, role };
        return request(app, &form, change, &act).await;
    }

    after(&app, &form, invited).await
}

/// Mails a user another link.
pub async fn invite_again(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Administer) {
        return refused;
    }
    if let Err(asks) = form.confirmed(&app, &format!("{PATH}/users")).await {
        return asks;
    }
    let invited = users::invite_again(&app, &manager(&form.visitor), &id).await;
    after(&app, &form, invited).await
}

/// Gives a user another role.
pub async fn change(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Administer) {
        return refused;
    }
    if let Err(asks) = form.confirmed(&app, &format!("{PATH}/users")).await {
        return asks;
    }
    let Some(role) = Role::parse(form.value("role")) else {
        return Redirect::to(&format!("{PATH}/users")).into_response();
    };

    let changed = users::change(&app, &manager(&form.visitor), &id, ChangeUser { role }).await;
    // As for an invitation: a role can make its user a reviewer.
    if needs_approval(&changed) {
        let act = form.visitor.texts.text("console-change-role");
        let change = ProposedChange::ChangeRole { user_id: id, role };
        return request(app, &form, change, &act).await;
    }

    after(&app, &form, changed).await
}

/// Ends the access of a user.
pub async fn end(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> Response {
    if let Some(refused) = form.visitor.refusal(Permission::Administer) {
        return refused;
    }
    if let Err(asks) = form.confirmed(&app, &format!("{PATH}/users")).await {
        return asks;
    }
    // Needs no approval of others, because it makes no reviewer.
    let ended = users::end(&app, &manager(&form.visitor), &id).await;
    after(&app, &form, ended).await
}
