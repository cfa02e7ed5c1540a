//! The signed desired state of an organization's components, for web-app users with the role `admin` or
//! `compliance`. A state with providers is an admin's.

use axum::extract::State;

use super::components::{ChangingOfficer, ComponentOfficer};
use crate::error::HttpError;
use crate::middleware::extract::ValidJson;
use crate::reply::{DataReply, Found};
use holdfast_platform::ServiceError;
use holdfast_platform::components::ComponentOwner;
use holdfast_platform::components::changes::ChangeOfficer;
use holdfast_platform::components::desired_state::{self, SignedState, StateView};
use holdfast_service::App;

pub async fn read(
    State(app): State<App>,
    officer: ComponentOfficer,
) -> Result<Found<StateView>, HttpError> {
    let owner = ComponentOwner::from(&officer.caller);
    let current = desired_state::current(&app, &owner).await?;
    let current = current.ok_or(ServiceError::NotFound("Component state"))?;
    Ok(DataReply::new(&current))
}

/// Each difference becomes a change request, which is applied at once where your policy needs no approval. The same
/// state may be sent again. With `dry_run` nothing changes.
pub async fn apply(
    State(app): State<App>,
    officer: ChangingOfficer,
    ValidJson(signed): ValidJson<SignedState>,
) -> Result<Found<StateView>, HttpError> {
    let owner = ComponentOwner::from(&officer.caller);
    // The officer's role limits the state, too, although others have signed it.
    for desired in desired_state::parsed(&owner, &signed.state)?.components {
        officer.may_change(desired.slot)?;
    }
    let officer = ChangeOfficer::from(officer);
    let applied =
        desired_state::apply(&app, &app.management, &owner, Some(&officer), &signed).await?;
    Ok(DataReply::new(&applied))
}
