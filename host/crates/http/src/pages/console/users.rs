//! Users of the organization.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::PATH;
use super::changes::request;
use super::forms::{FormView, RefusedForm, TextField};
use super::live::LiveList;
use super::navigation::{PageResult, Place, export, role};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use holdfast_domain::organization::{Permission, Role};
use holdfast_domain::user::UserStatus;
use holdfast_platform::ServiceError;
use holdfast_platform::access::users::{self, ChangeUser, NewUser, UserManager, UserView};
use holdfast_platform::components::changes::ProposedChange;
use holdfast_platform::problems::ChangeProblem;
use holdfast_service::App;

/// Lists the users, with a form to invite another.
pub async fn list(State(app): State<App>, visitor: Visitor) -> PageResult {
    shown(&app, &visitor, None).await
}

async fn shown(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    visitor.require(Permission::Administer)?;

    let found = users::list(app, &visitor.caller.org).await?;
    let texts = visitor.texts;
    let action = format!("{PATH}/users");
    let invitation = FormView::new(texts, &action, refused);
    let body = html! {
        (visitor.identity_first(&action))
        ul.rows {
            @for user in &found { li { (row(visitor, user, refused)) } }
        }
        (export(texts, "users.csv"))
        section.card {
            h2 { (texts.text("console-invite")) }
            form method="post" action=(action) {
                (visitor.token())
                (invitation.summary())
                (invitation.text(&TextField {
                    kind: "email",
                    limit: 200,
                    ..TextField::required("email", &texts.text("sign-in-email"))
                }))
                (roles(visitor, &invitation, Role::Sender))
                button type="submit" { (texts.text("console-invite")) }
            }
        }
    };

    let title = texts.text("console-users");
    Ok(visitor.form_page(Place::Users, Some(&LiveList::Users), &title, body, refused))
}

fn roles(visitor: &Visitor, form: &FormView<'_>, present: Role) -> Markup {
    let roles = Role::ALL
        .iter()
        .map(|one| (one.to_string(), role(visitor.texts, *one)));
    let roles: Vec<_> = roles.collect();
    let label = visitor.texts.text("console-role");
    form.select("role", &label, &roles, present.as_str())
}

fn row(visitor: &Visitor, user: &UserView, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = |name: &str| format!("{PATH}/users/{}/{name}", user.user_id);

    // An ended access has nothing to change. Another invitation of the address gives access again.
    let has_access = user.status != UserStatus::Ended;

    let of = |name: &str| {
        FormView::new(texts, &action(name), refused).with_ids(format!("{name}-{}", user.user_id))
    };
    let [change, invite, end] = ["role", "invite", "end"].map(of);
    let is_refused = [&change, &invite, &end]
        .into_iter()
        .any(FormView::is_refused);

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
            details open[is_refused] {
                summary { (texts.text("console-change")) }
                form method="post" action=(action("role")) {
                    (visitor.token())
                    (change.summary())
                    (roles(visitor, &change, user.role))
                    button type="submit" { (texts.text("console-change-role")) }
                }
                form method="post" action=(action("invite")) {
                    (visitor.token())
                    (invite.summary())
                    button.quiet type="submit" { (texts.text("console-invite-again")) }
                }
                form method="post" action=(action("end")) {
                    (visitor.token())
                    (end.summary())
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
async fn after<T>(app: &App, form: &ConsoleForm, done: Result<T, ServiceError>) -> PageResult {
    match done {
        Ok(_) => Ok(Redirect::to(&format!("{PATH}/users")).into_response()),
        Err(error) => {
            let refused = form.refused(error)?;
            shown(app, &form.visitor, Some(&refused)).await
        }
    }
}

/// Shows the list again after a form that names no known role.
async fn without_role(app: &App, form: &ConsoleForm) -> PageResult {
    let problem = form.visitor.texts.text("problem-required");
    let refused = form.refused_at("role", problem);
    shown(app, &form.visitor, Some(&refused)).await
}

fn manager(visitor: &Visitor) -> UserManager<'_> {
    UserManager {
        caller: &visitor.caller,
        // None would be the operator, who may give every role.
        role: Some(visitor.signed_in.user.role),
    }
}

/// Returns a user of the organization.
async fn user(app: &App, visitor: &Visitor, id: &str) -> Result<UserView, ServiceError> {
    let known = users::list(app, &visitor.caller.org).await?;
    let user = known.into_iter().find(|user| user.user_id.as_str() == id);
    user.ok_or(ServiceError::NotFound("User"))
}

/// Asks before an act that takes the access of a user, or that concerns the owners.
fn ask_if_sure(
    form: &ConsoleForm,
    user: UserView,
    label: &'static str,
    consequence: &'static str,
) -> Result<(), Response> {
    let texts = form.visitor.texts;
    form.meant(&SensitiveAct {
        label: texts.text(label),
        objects: vec![user.email],
        consequence: texts.text(consequence),
        is_typed: false,
        back: format!("{PATH}/users"),
    })
}

/// Invites a user.
pub async fn invite(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Administer)?;
    // An invited address of a thief would have access after the stolen session has ended.
    form.confirmed(&app, &format!("{PATH}/users")).await?;
    let Some(role) = Role::parse(form.value("role")) else {
        return without_role(&app, &form).await;
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
        return Ok(request(app, &form, change, &act).await?);
    }

    after(&app, &form, invited).await
}

/// Mails a user another link.
pub async fn invite_again(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Administer)?;
    form.confirmed(&app, &format!("{PATH}/users")).await?;
    let invited = users::invite_again(&app, &manager(&form.visitor), &id).await;
    after(&app, &form, invited).await
}

/// Gives a user another role.
pub async fn change(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Administer)?;
    form.confirmed(&app, &format!("{PATH}/users")).await?;
    let Some(role) = Role::parse(form.value("role")) else {
        return without_role(&app, &form).await;
    };

    let user = user(&app, &form.visitor, &id).await?;
    // Owners decide who else is one. Other roles can be given back at any time.
    let is_about_owners = [user.role, role].contains(&Role::Owner) && user.role != role;
    if is_about_owners {
        ask_if_sure(&form, user, "console-change-role", "sure-user-owner")?;
    }

    let changed = users::change(&app, &manager(&form.visitor), &id, ChangeUser { role }).await;
    // As for an invitation: a role can make its user a reviewer.
    if needs_approval(&changed) {
        let act = form.visitor.texts.text("console-change-role");
        let change = ProposedChange::ChangeRole { user_id: id, role };
        return Ok(request(app, &form, change, &act).await?);
    }

    after(&app, &form, changed).await
}

/// Ends the access of a user.
pub async fn end(State(app): State<App>, Path(id): Path<String>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Administer)?;
    form.confirmed(&app, &format!("{PATH}/users")).await?;
    let user = user(&app, &form.visitor, &id).await?;
    ask_if_sure(&form, user, "console-end-access", "sure-user-end")?;

    // Needs no approval of others, because it makes no reviewer.
    let ended = users::end(&app, &manager(&form.visitor), &id).await;
    after(&app, &form, ended).await
}
