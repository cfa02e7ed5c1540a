//! Releases by the controller of a record.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::control::envelope_of;
use crate::vault::vault_out::{self, ReleaseLinks};
use holdfast_domain::control::ReleaseState;
use holdfast_domain::id::{EnvelopeId, OrgId, ReleaseId};
use holdfast_domain::job::NextStep;
use holdfast_domain::release::ReleaseForm;
use holdfast_domain::statement::SignedStatement;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::control as rows;

/// Body of `POST /partner/control/records/{id}/release`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ControllerReleaseForm {
    #[serde(flatten)]
    pub form: ReleaseForm,
    /// Your statement about this act, if your organization has registered a key.
    pub signed: Option<SignedStatement>,
}

/// Releases a record as its controller. No other consent is needed.
pub async fn release(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: ControllerReleaseForm,
) -> Result<ReleaseLinks, ServiceError> {
    let ControllerReleaseForm { form, signed } = form;
    vault_out::check(&form)?;
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Record"))?;
    let envelope = envelope_of(core, caller, &id).await?;
    vault_out::release(core, caller, envelope, form, signed.as_ref()).await
}

/// Time until a release under a legal hold is tried again.
const HELD: Duration = Duration::from_secs(3600);

/// Makes a release that the controller has agreed to. May run twice. While a legal hold is in force, the release waits.
pub async fn make(core: &Core, org: &OrgId, id: &ReleaseId) -> Result<NextStep, ServiceError> {
    let mut connection = core.store.read().await?;
    let request = rows::release(&mut connection, id).await?;
    drop(connection);
    // Refused in the meantime, or made by an earlier run of this job.
    let Some(request) = request.filter(|request| request.state == ReleaseState::Consented) else {
        return Ok(NextStep::Done);
    };

    let form: ReleaseForm = serde_json::from_value(request.form)
        .map_err(|error| ServiceError::Internal(format!("the form of {id}: {error}")))?;
    // In the name of the originator's caller that asked: the consent was to that request.
    let caller = Caller::named(org.clone(), request.requested_by);

    let made = vault_out::release_only(core, &caller, request.envelope.as_str(), form).await;
    match made {
        Err(ServiceError::Control(ControlProblem::LegalHold(_))) => {
            let wait = core.config.sweep_interval.unwrap_or(HELD);
            Ok(NextStep::Again(core.clock.now() + wait))
        }
        made => made.map(|()| NextStep::Done),
    }
}
