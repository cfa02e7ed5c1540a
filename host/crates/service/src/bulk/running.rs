//! Submitting, cancelling and retrying a batch.

use super::{BatchView, UNKNOWN, check_fixed_text, get, lock};
use crate::envelopes::{dispatch, lifecycle, parties};
use crate::templates::warnings;
use holdfast_components::rules::lifecycle::BatchTrigger;
use holdfast_domain::bulk::{Batch, BatchStatus, ItemStatus, SubmittedMaster};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::job::{SendBatch, VoidBatch};
use holdfast_domain::template::Template;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::organizations;
use holdfast_platform::providers::provider;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, kba};
use holdfast_store::{StoreError, WriteTransaction, bulk, jobs, templates};

/// Jobs per batch: so many of its chunks can be in progress at once, on one or several nodes.
const LANES: usize = 4;

/// Submits a batch.
pub async fn submit(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<BatchView>,
) -> Result<BatchView, ServiceError> {
    // Read without a lock, because the checks below call the provider. The state is compared again
    // under the lock before the batch is submitted.
    let batch = get(core, caller, id).await?;
    let trigger = BatchTrigger::Submit;
    lifecycle::next_batch_status(core, &batch.org, Some(batch.status), trigger).await?;

    if core.config.bulk.concurrency == 0 {
        return Err(ServiceError::NotConfigured(
            "Bulk send is not configured".into(),
        ));
    }

    let master = check_setup(core, &batch).await?;
    if !caller.sees(&master) {
        return Err(ServiceError::NotFound("Template"));
    }
    // An earlier version of it may have been restored meanwhile.
    check_fixed_text(&[&master])?;
    check_parties(&batch, &master)?;
    check_provider(&master)?;
    check_signatures(core, &batch, &master).await?;
    kba::check_step(core, &batch.org, batch.kba_required || master.kba_required).await?;
    let master = dispatch::ready(core, master).await?;
    let submitted = SubmittedMaster {
        provider_template: frozen(core, &batch, &master).await?,
        roles: master.roles().into_iter().map(str::to_owned).collect(),
        fields: master.fields.clone(),
        forbids_declining: !master.may_decline,
        reminders: master.reminders,
        lost: false,
    };

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut now_is = bulk::lock(&mut tx, &batch.org, &batch.id)
        .await?
        .ok_or(UNKNOWN)?;

    // Submit exactly the state that was checked and that the provider has copied.
    let now_has = templates::get(&mut tx, &batch.org, &master.id).await?;
    let same_content = now_has
        .is_some_and(|now_has| now_has.content() == master.content() && !now_has.provider_stale);
    if now_is.updated_at != batch.updated_at || !same_content {
        // The rules explain a changed status better than a conflict does, so they are asked first.
        lifecycle::next_batch_status(core, &batch.org, Some(now_is.status), trigger).await?;
        return Err(StoreError::Conflict.into());
    }

    now_is.status =
        lifecycle::next_batch_status(core, &batch.org, Some(now_is.status), trigger).await?;
    now_is.submitted = Some(submitted);
    let view = run(&mut tx, now_is, now).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns the master template, or one issue for each missing part of the setup.
async fn check_setup(core: &Core, batch: &Batch) -> Result<Template, ServiceError> {
    let refuse = |code: &str, path: &str, expected: &str, message: &str| {
        ValidationIssue::new(code, &[path], expected, "none", message)
    };
    let mut connection = core.store.read().await?;
    let master = match &batch.master {
        None => None,
        Some(master) => templates::get(&mut connection, &batch.org, master).await?,
    };

    let counts = bulk::counts_of(&mut connection, &batch.org, &batch.id).await?;
    drop(connection);
    // Everything that is missing in one answer, because a user completes the setup in several places.
    let mut issues = Vec::new();
    match &master {
        None => issues.push(refuse(
            "no_master_template",
            "master_template_id",
            "a master template",
            "The batch has no master template",
        )),
        Some(master) if master.document.is_none() => issues.push(refuse(
            "no_document",
            "master_template_id",
            "a template with a document",
            "The master template has no document",
        )),
        Some(_) => {}
    }

    if counts.pending == 0 {
        issues.push(refuse(
            "no_client_with_email",
            "items",
            "a client with an email address",
            "No client has an email address to send to",
        ));
    }

    if batch.auto_vault_enabled && batch.terms.is_none() {
        issues.push(refuse(
            "terms_not_accepted",
            "auto_vault_enabled",
            "accepted terms",
            "The terms of unattended vaulting have not been accepted",
        ));
    }

    match master {
        Some(master) if issues.is_empty() => Ok(master),
        _ => Err(ServiceError::Invalid(issues)),
    }
}

/// Clones the master at the provider, so that later edits do not affect the batch; each client's
/// copy is cloned from this one. A repeat after a lost answer finds the existing clone, unless the
/// master has changed since.
async fn frozen(core: &Core, batch: &Batch, master: &Template) -> Result<String, ServiceError> {
    let signing = provider(core, &batch.org, &master.provider_instance)?;
    let source = master.provider_template.as_deref().unwrap_or_default();
    let external_id = format!("{}.{}", batch.id, &master.content()[..16]);
    let clone = signing.clone_template(source, &batch.name, &external_id);
    let clone = clone.await?;
    signing.keep(core).await?;
    Ok(clone.template_id)
}

/// Checks that the master template has exactly as many parties as there are signers.
fn check_parties(batch: &Batch, master: &Template) -> Result<(), ServiceError> {
    let (parties, signers) = (master.roles().len(), batch.signers());
    if parties == signers {
        return Ok(());
    }

    let issue = ValidationIssue::new(
        "party_count",
        &["master_template_id"],
        signers.to_string(),
        parties.to_string(),
        format!("The master template has {parties} parties for {signers} signers"),
    );

    Err(ServiceError::Invalid(vec![issue]))
}

/// Refuses a master template that needs more than its signing provider can do.
fn check_provider(master: &Template) -> Result<(), ServiceError> {
    let mut issues = parties::unsupported(master, &[], &[], master.may_decline);
    if issues.is_empty() {
        return Ok(());
    }

    // A batch has no such members of its own: they are settings of its template.
    for issue in &mut issues {
        issue.path = vec!["master_template_id".into()];
    }
    Err(ServiceError::Invalid(issues))
}

/// Refuses roles that sign nothing, where the organization refuses them. A batch has no witnesses or
/// approvers.
async fn check_signatures(
    core: &Core,
    batch: &Batch,
    master: &Template,
) -> Result<(), ServiceError> {
    let organization = organizations::read(core, &batch.org).await?;
    if !organization.settings.refuse_unsigned_roles {
        return Ok(());
    }

    let unsigned = |role: &&str| !warnings::is_asked_to_sign(master, role);
    let issues: Vec<_> = master
        .roles()
        .into_iter()
        .filter(unsigned)
        .map(|role| {
            ValidationIssue::new(
                "no_signature_field",
                &["master_template_id"],
                "a signature or initials field for each role",
                role,
                warnings::no_signature_field(role),
            )
        })
        .collect();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

/// Inserts the jobs that send the batch, in the transaction of the change.
async fn run(
    tx: &mut WriteTransaction,
    mut batch: Batch,
    now: Timestamp,
) -> Result<BatchView, ServiceError> {
    batch.runs += 1;
    batch.updated_at = now;
    bulk::update(tx, &batch, now).await?;
    let counts = bulk::counts_of(tx, &batch.org, &batch.id).await?;

    let job = SendBatch {
        batch: batch.id.clone(),
    };
    for lane in 0..LANES {
        // The run is part of the key, so that a retry gets new jobs.
        let key = format!("{} {} {lane}", batch.id, batch.runs);
        jobs::insert(tx, &batch.org, &job, Some(&key), now).await?;
    }

    Ok(BatchView::of(&batch, &counts))
}

/// Cancels a running batch: pending items are not sent any more.
pub async fn cancel(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<BatchView>,
) -> Result<BatchView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut batch = lock(&mut tx, caller, id).await?;
    let trigger = BatchTrigger::Cancel;
    batch.status =
        lifecycle::next_batch_status(core, &batch.org, Some(batch.status), trigger).await?;
    // Items in progress are left to their lanes, which settle them. The provider may have sent them already.
    let (from, to) = (ItemStatus::Pending, ItemStatus::Cancelled);
    bulk::move_items(&mut tx, &batch, from, to, None, now).await?;

    batch.updated_at = now;
    bulk::update(&mut tx, &batch, now).await?;

    // Items that failed to be sent leave envelopes, which this job voids.
    let job = VoidBatch {
        batch: batch.id.clone(),
    };
    jobs::insert_or_revive(&mut tx, &batch.org, &job, batch.id.as_str(), now).await?;
    let counts = bulk::counts_of(&mut tx, &batch.org, &batch.id).await?;
    let view = BatchView::of(&batch, &counts);
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Retries the failed items of a batch, each with its existing envelope.
///
/// A retry is a second submission of the failed items, so the rules are asked the same question as
/// for the first: may a `ready` batch be submitted?
pub async fn retry(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<BatchView>,
) -> Result<BatchView, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut batch = lock(&mut tx, caller, id).await?;
    if !matches!(batch.status, BatchStatus::Completed | BatchStatus::Failed) {
        return Err(ServiceError::Conflict(format!(
            "Cannot retry batch with status: {}",
            batch.status
        )));
    }

    if core.config.bulk.concurrency == 0 {
        return Err(ServiceError::NotConfigured(
            "Bulk send is not configured".into(),
        ));
    }

    let (failed, pending) = (ItemStatus::Failed, ItemStatus::Pending);
    let moved = bulk::move_items(&mut tx, &batch, failed, pending, None, now).await?;
    if moved == 0 {
        return Err(ServiceError::Conflict("No item of the batch failed".into()));
    }

    // The cause of the lost master may have been fixed.
    if let Some(master) = &mut batch.submitted {
        master.lost = false;
    }

    let (ready, trigger) = (Some(BatchStatus::Ready), BatchTrigger::Submit);
    batch.status = lifecycle::next_batch_status(core, &batch.org, ready, trigger).await?;
    let view = run(&mut tx, batch, now).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}
