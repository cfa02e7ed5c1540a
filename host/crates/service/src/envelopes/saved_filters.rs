//! Filters of the list of envelopes that users keep for themselves.

use holdfast_domain::user::User;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::saved_filters::{self, SavedFilter};
use holdfast_store::users;

/// Characters of a name.
pub const LONGEST_NAME: usize = 60;
/// Filters of a user.
pub const MOST: usize = 20;

/// Returns the filters of a user, oldest first.
pub async fn list(core: &Core, user: &User) -> Result<Vec<SavedFilter>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(saved_filters::list(&mut connection, user).await?)
}

/// Saves a filter under a name. A filter of the user with this name gets these conditions instead.
pub async fn save(core: &Core, user: &User, filter: SavedFilter) -> Result<(), ServiceError> {
    let name = filter.name.trim();
    let is_name = !name.is_empty()
        && name.chars().count() <= LONGEST_NAME
        && !name.chars().any(char::is_control);
    if !is_name {
        return Err(ServiceError::invalid(
            "invalid_name",
            &["name"],
            format!("a name of 1 to {LONGEST_NAME} characters in one line"),
            name,
            format!("A filter has a name of 1 to {LONGEST_NAME} characters in one line"),
        ));
    }
    if filter.query.is_empty() {
        return Err(ServiceError::invalid(
            "no_condition",
            &["query"],
            "a condition",
            "",
            "A filter has at least one condition",
        ));
    }

    let mut tx = core.store.begin().await?;
    // The lock keeps two forms that are sent at once within the limit.
    let known = users::lock(&mut tx, &user.org, &user.id).await?;
    known.ok_or(ServiceError::NotFound("User"))?;
    let saved = saved_filters::list(&mut tx, user).await?;
    let is_new = saved.iter().all(|one| one.name != name);
    if is_new && saved.len() >= MOST {
        return Err(ServiceError::Conflict(format!(
            "You have {MOST} filters, and more are not kept. Remove one first"
        )));
    }

    let filter = SavedFilter {
        name: name.to_owned(),
        query: filter.query,
    };
    saved_filters::save(&mut tx, user, &filter, core.clock.now()).await?;
    Ok(tx.commit().await?)
}

/// Removes a filter of a user by its name. One that is already removed is no error.
pub async fn remove(core: &Core, user: &User, name: &str) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    saved_filters::remove(&mut tx, user, name).await?;
    Ok(tx.commit().await?)
}
