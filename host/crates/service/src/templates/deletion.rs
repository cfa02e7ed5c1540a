//! Deletion of templates, which can be taken back for 30 days.

use std::time::Duration;

use super::get;
use holdfast_components::providers::ProviderError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, TemplateId};
use holdfast_domain::job::{ArchiveTemplate, NextStep};
use holdfast_domain::template::Template;
use holdfast_platform::access::credentials;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::providers::provider;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{
    StoreError, WriteTransaction, jobs, legal_holds as holds, open_links, templates,
};

/// Deletes a template: nothing more is sent from it. Sent envelopes are unaffected.
pub async fn delete(core: &Core, caller: &Caller, id: &str) -> Result<Template, ServiceError> {
    let template = get(core, caller, id).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    legal_holds::permit_deletion(&mut tx, &caller.org).await?;
    remove(&mut tx, &template, &caller.actor, now).await?;
    tx.commit().await?;

    Ok(Template {
        deleted_at: Some(now),
        ..template
    })
}

/// Deletes a template here and schedules its archiving at the provider, for a template of the library once it cannot
/// be restored any more.
pub(crate) async fn remove(
    tx: &mut WriteTransaction,
    template: &Template,
    actor: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    templates::delete(tx, template, now).await?;
    close_links(tx, template, actor, now).await?;
    // The provider never got this template, so there is nothing to archive.
    if template.provider_template.is_none() {
        return Ok(());
    }

    let deleted = Template {
        deleted_at: Some(now),
        ..template.clone()
    };
    let run_at = deleted.restorable_until().unwrap_or(now);
    let job = ArchiveTemplate {
        template: template.id.clone(),
    };
    jobs::insert(tx, &template.org, &job, Some(template.id.as_str()), run_at).await
}

/// Closes the open links of a template, each with an entry.
async fn close_links(
    tx: &mut WriteTransaction,
    template: &Template,
    actor: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let org = &template.org;
    for link in open_links::unclosed(tx, org, &template.id).await? {
        // One that was closed meanwhile has its entry.
        if open_links::close(tx, &link, now).await? {
            let (action, details) = ("open_link.closed", link.details());
            credentials::record_by(tx, Some(org), actor, action, details, now).await?;
        }
    }
    Ok(())
}

/// Takes back the deletion of a template. Restoring a present template changes nothing, so that a repeat is harmless.
///
/// # Errors
/// [`ServiceError::NotFound`] 30 days after the deletion.
pub async fn restore(core: &Core, caller: &Caller, id: &str) -> Result<Template, ServiceError> {
    let not_found = || ServiceError::NotFound("Template");
    let id = TemplateId::parse(id).ok_or_else(not_found)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let found = templates::find(&mut tx, &caller.org, &id).await?;
    let found = found.filter(|template| caller.sees(template));
    let template = found.ok_or_else(not_found)?;
    if template.deleted_at.is_none() {
        return Ok(template);
    }

    // Afterwards the job below archives it at the provider.
    let until = template.restorable_until();
    if until.is_none_or(|until| until <= now) {
        return Err(not_found());
    }

    templates::restore(&mut tx, &template, now).await?;
    tx.commit().await?;
    Ok(Template {
        deleted_at: None,
        updated_at: now,
        provider_stale: true,
        ..template
    })
}

/// Retry interval of archiving while envelopes of the template are out for signing.
const ARCHIVE_WAIT: Duration = Duration::from_secs(3600);

/// Archives a deleted template at its provider once it cannot be restored and none of its envelopes is out for signing:
/// a provider may hide documents of an archived template.
pub async fn archive(core: &Core, org: &OrgId, id: &TemplateId) -> Result<NextStep, ServiceError> {
    let mut connection = core.store.read().await?;
    let template = templates::find(&mut connection, org, id).await?;
    // A provider may hide documents of an archived template, which a legal hold on the organization keeps.
    let in_use = templates::is_out_for_signing(&mut connection, org, id).await?
        || holds::on_organization(&mut connection, org)
            .await?
            .is_some();
    drop(connection);

    // A restored template is in use again. Its next deletion adds another job.
    let Some(template) = template.filter(|template| template.deleted_at.is_some()) else {
        return Ok(NextStep::Done);
    };

    // It may have been restored and deleted again since the job was added.
    let now = core.clock.now();
    if let Some(until) = template.restorable_until().filter(|until| *until > now) {
        return Ok(NextStep::Again(until));
    }
    if in_use {
        let wait = core.config.sweep_interval.unwrap_or(ARCHIVE_WAIT);
        return Ok(NextStep::Again(now + wait));
    }

    if let Some(at_provider) = &template.provider_template {
        let signing = provider(core, org, &template.provider_instance)?;
        match signing.archive_template(at_provider).await {
            Ok(()) => signing.keep(core).await?,
            // Archived or removed at the provider already.
            Err(ProviderError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }

    Ok(NextStep::Done)
}
