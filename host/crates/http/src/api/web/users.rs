//! Users of the organization, for its owners and admins.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{ResourceId, ValidJson, ValidQuery, WholeListQuery};
use crate::reply::{Created, DataReply, Found, PageReply};
use holdfast_platform::access::users::{self, ChangeUser, NewUser, UserManager, UserView};
use holdfast_service::App;

fn manager(user: &WebCaller<may::Administer>) -> UserManager<'_> {
    UserManager {
        caller: &user.caller,
        role: Some(user.role),
    }
}

pub async fn list(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<UserView>, HttpError> {
    query.page_of(&users::list(&app, &user.caller.org).await?)
}

/// The link to sign in goes to the address only, so no user can act in the name of another. Owners manage owners.
pub async fn invite(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ValidJson(new): ValidJson<NewUser>,
) -> Result<Created<UserView>, HttpError> {
    // The sign-in link is dropped here: only the mail may carry it.
    let (invited, _) = users::invite(&app, &manager(&user), new).await?;
    Ok(DataReply::new(&invited))
}

pub async fn invite_again(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ResourceId(id): ResourceId,
) -> Result<Found<UserView>, HttpError> {
    let (invited, _) = users::invite_again(&app, &manager(&user), &id).await?;
    Ok(DataReply::new(&invited))
}

/// Open sessions go on with the new role.
pub async fn change(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ResourceId(id): ResourceId,
    ValidJson(change): ValidJson<ChangeUser>,
) -> Result<Found<UserView>, HttpError> {
    let changed = users::change(&app, &manager(&user), &id, change).await?;
    Ok(DataReply::new(&changed))
}

/// Ends all sessions and links of the user. Bearer tokens are revoked apart.
pub async fn end(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ResourceId(id): ResourceId,
) -> Result<Found<UserView>, HttpError> {
    let ended = users::end(&app, &manager(&user), &id).await?;
    Ok(DataReply::new(&ended))
}
