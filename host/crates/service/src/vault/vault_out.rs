//! Vault-out: the authoritative copy leaves the vault for good.

use serde_json::json;

use crate::control::releases;
use crate::envelopes::lifecycle;
use crate::vault::copies::OutgoingCopy;
use crate::vault::downloads::{IssuedLink, issue, untouched};
use crate::vault::{paper, repeats};
use holdfast_adapters::files::StorageArea;
use holdfast_base::faults;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus, KeptFile};
use holdfast_domain::event::EventType;
use holdfast_domain::job::DeleteObject;
use holdfast_domain::statement::SignedStatement;
use holdfast_platform::events;
use holdfast_platform::lookup;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::permits::live_data::require_live;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::downloads::LinkedFile;
use holdfast_store::{envelopes, jobs, vault};

pub use holdfast_domain::release::{ReleaseForm, ReleaseMedium};

/// Links to the four files of a release.
pub struct ReleaseLinks {
    pub authoritative: IssuedLink,
    pub copy: IssuedLink,
    pub certificate: IssuedLink,
    pub custody_record: IssuedLink,
}

/// Releases the authoritative copy. Repeating the call with the same recipient and purpose returns fresh
/// links to the same archive, or to the paper original until that was downloaded.
///
/// The archive is written, read back and retained before the live pointer is replaced, and
/// a job deletes the live bytes last: one of the two always exists.
pub async fn vault_out(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: ReleaseForm,
) -> Result<ReleaseLinks, ServiceError> {
    check(&form)?;
    let envelope = lookup::envelope(core, caller, id).await?;
    release(core, caller, envelope, form, None).await
}

/// Like [`vault_out`], for an envelope that may belong to another organization than the caller's. The
/// form was checked. `signed` is the controller's statement, if it releases the record itself.
pub async fn release(
    core: &Core,
    caller: &Caller,
    envelope: Envelope,
    form: ReleaseForm,
    signed: Option<&SignedStatement>,
) -> Result<ReleaseLinks, ServiceError> {
    let links = move_out(core, caller, envelope, form, signed, true).await?;
    links.ok_or_else(|| ServiceError::Internal("a release has no links".into()))
}

/// Releases a record without issuing links. Does nothing if it was released with this form already.
pub async fn release_only(
    core: &Core,
    caller: &Caller,
    id: &str,
    form: ReleaseForm,
) -> Result<(), ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    move_out(core, caller, envelope, form, None, false).await?;
    Ok(())
}

async fn move_out(
    core: &Core,
    caller: &Caller,
    envelope: Envelope,
    form: ReleaseForm,
    signed: Option<&SignedStatement>,
    issues_links: bool,
) -> Result<Option<ReleaseLinks>, ServiceError> {
    // Every copy of test data is marked as not authoritative, so there is nothing to release.
    require_live(&envelope.org)?;
    let release = EnvelopeTrigger::VaultOut;

    // Refuse early, before bytes are copied. Decided again under the lock below. A held record is not even asked for.
    lifecycle::next_status(core, &envelope, release).await?;
    let asking = Some(&caller.org);
    legal_holds::check(&mut *core.store.read().await?, asking, &envelope).await?;
    releases::require(core, caller, &envelope, &form, signed).await?;
    let archive = match envelope.record.authoritative.live() {
        Some(live) => {
            let bytes = untouched(core, &envelope, core.files.get(live).await).await?;
            if form.medium == ReleaseMedium::Paper {
                // Fails here for a document that cannot be printed; it stays in the vault.
                let now = core.clock.now();
                let copy = OutgoingCopy::of(bytes.clone());
                paper::original(core, &envelope, &form, copy, now).await?;
            }

            let (org, owner) = (&envelope.org, envelope.id.as_str());
            let put = core
                .files
                .put(StorageArea::Archive, org, owner, bytes, "application/pdf");
            let archive = put.await?;

            // Protects the archive from removal before anything points to it.
            core.files.retain(&archive, core.clock.now()).await?;
            Some(archive)
        }
        // A repeated call: the first one has made the archive.
        None => None,
    };

    faults::pass("archived");
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let (envelope, decided) =
        lifecycle::lock_for(core, &mut tx, &envelope.org, &envelope.id, release).await?;
    // A repeat is refused, too: its links would give the released copy out once more.
    legal_holds::permit(&mut tx, asking, &envelope).await?;
    let permit = releases::permit_release(core, &mut tx, caller, &envelope, &form, signed).await?;
    let earlier = match envelope.status {
        EnvelopeStatus::VaultedOut => Some(repeats::bind(&mut tx, &envelope, &form).await?),
        _ => None,
    };

    // On a repeat the status stays the same, and only links are issued.
    if decided.status != envelope.status {
        let (Some(archive), Some(live)) = (archive, envelope.record.authoritative.live()) else {
            return Err(ServiceError::Internal(
                "a vaulted envelope has no live copy".into(),
            ));
        };

        // Pointer, release and deletion job commit together. A crash before the commit leaves the record
        // in the vault, and an archive that no row names.
        envelopes::set_vaulted_out(&mut tx, &envelope, &archive, now).await?;
        decided.record(&mut tx, &envelope, now).await?;
        vault::insert_release(&mut tx, &envelope, &json!(form), now).await?;
        let mut details = json!({ "form": form, "document_hash": archive.sha256 });
        if issues_links {
            details["link_number"] = json!(1);
        }

        // The release names the rules in force, because later evaluations of it use them.
        if let Ok(rules) = core.components.compliance(Some(&envelope.org)).identity() {
            details["rules_component"] = json!(rules);
        }

        let action = EventType::VaultReleased.as_str();
        events::record(&mut tx, &envelope, &caller.actor, action, details, now).await?;
        let mut data = json!({ "recipient_organization": form.recipient_organization });
        if form.medium == ReleaseMedium::Paper {
            data["medium"] = json!(form.medium);
        }

        events::emit(&mut tx, &envelope, EventType::VaultReleased, data, now).await?;
        if let Some(permit) = permit {
            releases::released(core, &mut tx, caller, permit, form.medium).await?;
        }

        // Deleted by a job after the commit, so that a crash leaves at least one of the two.
        let job = DeleteObject {
            key: live.key.clone(),
            instead: Some(KeptFile(archive.clone())),
        };
        jobs::insert(&mut tx, &envelope.org, &job, Some(&live.key), now).await?;
    }

    if !issues_links {
        tx.commit().await?;
        faults::pass("released");
        return Ok(None);
    }

    if let Some(released) = &earlier {
        repeats::reissue(core, &mut tx, caller, &envelope, released).await?;
    }

    let file = repeats::file_of(form.medium);
    let release = ReleaseLinks {
        authoritative: issue(core, &mut tx, &envelope, file).await?,
        copy: issue(core, &mut tx, &envelope, LinkedFile::Copy).await?,
        certificate: issue(core, &mut tx, &envelope, LinkedFile::Certificate).await?,
        custody_record: issue(core, &mut tx, &envelope, LinkedFile::CustodyRecord).await?,
    };

    tx.commit().await?;
    faults::pass("released");
    Ok(Some(release))
}

/// Requires both acknowledgements to be `true`.
pub fn check(form: &ReleaseForm) -> Result<(), ServiceError> {
    let issues: Vec<ValidationIssue> = [
        (
            "acknowledge_authoritative_copy",
            form.acknowledge_authoritative_copy,
        ),
        (
            "acknowledge_chain_of_custody",
            form.acknowledge_chain_of_custody,
        ),
    ]
    .into_iter()
    .filter(|(_, acknowledged)| !acknowledged)
    .map(|(name, _)| {
        ValidationIssue::new(
            "invalid_literal",
            &[name],
            "true",
            "false",
            format!("{name} must be true"),
        )
    })
    .collect();

    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}
