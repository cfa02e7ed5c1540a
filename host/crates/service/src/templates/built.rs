//! Documents that are made for one envelope, of templates, an upload or nothing.

use std::slice;
use std::sync::Arc;

use crate::templates::composition::{self, NewComposition, ReplacedFields, made_before};
use crate::templates::pages::PageCache;
use crate::templates::selection::SelectedTemplates;
use crate::templates::variables::{self, VariableValues};
use crate::templates::{check_fixed, deletion};
use holdfast_domain::envelope::{Envelope, StoredFile};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::template::{MadeFor, Origin, Template, TemplateSharing};
use holdfast_platform::permits::legal_holds;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{StoreError, envelopes, templates};

/// Returns the template that was built for an envelope from this source, if any.
async fn built(
    core: &Core,
    envelope: &Envelope,
    source: String,
) -> Result<(MadeFor, Option<Template>), ServiceError> {
    let made_for = MadeFor {
        owner: envelope.id.to_string(),
        source,
    };
    let before = made_before(core, &envelope.org, &made_for).await?;
    Ok((made_for, before))
}

/// Returns the document to send. A document edited in the builder takes precedence; otherwise it is
/// composed of the templates' current content.
pub async fn document_to_send(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    envelope: &Envelope,
    selected: &SelectedTemplates,
) -> Result<Template, ServiceError> {
    let (_, before) = built(core, envelope, selected.source()).await?;
    if let Some(before) = before {
        return Ok(before);
    }

    // A template that was edited meanwhile has another hash, and so another document.
    let source = format!("{} as of {}", selected.source(), selected.content());
    let (made_for, before) = built(core, envelope, source).await?;
    if let Some(before) = before {
        return Ok(before);
    }

    let kba_required = selected.kba_required();
    selected
        .compose(core, pages, caller, None, kba_required, Some(made_for))
        .await
}

/// Returns the document that an envelope is sent with: the template itself, or for one with variables a document of the
/// envelope's own with their values.
///
/// # Errors
/// `Invalid` for values that are missing, that no variable has, or that do not fit.
pub async fn with_values(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    envelope: &Envelope,
    template: Template,
    values: Option<&VariableValues>,
) -> Result<Template, ServiceError> {
    variables::check_known(&template, values)?;
    if template.word_source.is_none() {
        return Ok(template);
    }

    let selected = SelectedTemplates::Template(Box::new(template), values.cloned());
    document_to_send(core, pages, caller, envelope, &selected).await
}

/// Returns the template of an envelope's document; creates it if none exists for this source.
pub async fn document_of(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    envelope: &Envelope,
    selected: Option<&SelectedTemplates>,
    name: Option<String>,
    kba_required: Option<bool>,
) -> Result<Template, ServiceError> {
    if selected.is_none()
        && envelope.upload.is_none()
        && let Some(own) = present_document(core, envelope).await?
    {
        check_fixed(own.kba_required, kba_required)?;
        return Ok(own);
    }

    let source = match selected {
        Some(selected) => selected.source(),
        None => own_source(envelope.upload.as_ref()),
    };
    let (made_for, before) = built(core, envelope, source).await?;
    if let Some(before) = before {
        check_fixed(before.kba_required, kba_required)?;
        return Ok(before);
    }

    if let Some(selected) = selected {
        let kba_required = selected.kba_required() || kba_required.unwrap_or_default();
        let made_for = Some(made_for);
        return selected
            .compose(core, pages, caller, name, kba_required, made_for)
            .await;
    }

    // A setting of the previous file also applies to this one.
    check_kept(envelope.sending.kba_required, kba_required)?;
    let new = NewComposition {
        name: name.unwrap_or_else(|| envelope.name.clone()),
        kba_required: kba_required.unwrap_or(envelope.sending.kba_required),
        may_decline: envelope.sending.may_decline,
        // The envelope has a plan of its own.
        reminders: None,
        origin: Origin::Document,
        made_for: Some(made_for),
        shared_with: TemplateSharing::default(),
    };
    match &envelope.upload {
        Some(upload) => {
            let fields = ReplacedFields::default();
            composition::of_upload(core, caller, upload, fields, new).await
        }
        None => composition::empty(core, caller, new).await,
    }
}

/// Deletes the document that was made for an envelope which is not kept, best effort: nothing leads to such a document.
pub async fn forget(core: &Core, caller: &Caller, document: &Template) {
    if let Err(error) = forgotten(core, caller, document).await {
        let template = &document.id;
        tracing::warn!(%template, %error, "document without an envelope could not be deleted");
    }
}

async fn forgotten(core: &Core, caller: &Caller, document: &Template) -> Result<(), ServiceError> {
    let made_for = document.made_for.as_ref();
    let Some(envelope) = made_for.and_then(|made_for| EnvelopeId::parse(&made_for.owner)) else {
        return Ok(());
    };

    let mut tx = core.store.begin().await?;
    // A commit that reported an error may have succeeded, with only its response lost.
    let kept = envelopes::get_with_destroyed(&mut tx, &document.org, &envelope).await?;
    let present = templates::get(&mut tx, &document.org, &document.id).await?;
    let Some(document) = present.filter(|_| kept.is_none()) else {
        return Ok(());
    };

    legal_holds::permit_deletion(&mut tx, &document.org).await?;
    let now = core.clock.now();
    deletion::remove(&mut tx, &document, &caller.actor, now).await?;
    match tx.commit().await {
        // A dry run keeps no document either.
        Ok(()) | Err(StoreError::Rehearsed) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the present document of an envelope, if it was made for the envelope.
async fn present_document(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<Template>, ServiceError> {
    let Some(id) = &envelope.template else {
        return Ok(None);
    };
    let mut connection = core.store.read().await?;
    let template = templates::get(&mut connection, &envelope.org, id).await?;
    // A template of the library is not the envelope's to edit.
    let is_own = |template: &Template| {
        let made_for = template.made_for.as_ref();
        made_for.is_some_and(|made_for| made_for.owner == envelope.id.as_str())
    };
    Ok(template.filter(is_own))
}

/// Returns the key of an envelope's own document: that of its upload, or one that was begun without a file.
fn own_source(upload: Option<&StoredFile>) -> String {
    // The hash is part of the key: another file gets another document.
    upload.map_or_else(
        || "new".into(),
        |upload| format!("upload {}", upload.sha256),
    )
}

/// Returns the attributes of a document under which the field builder finds it again.
fn own_document(envelope: &Envelope, name: String, kba_required: bool) -> NewComposition {
    NewComposition {
        name,
        kba_required,
        may_decline: envelope.sending.may_decline,
        // The envelope has a plan of its own.
        reminders: None,
        origin: Origin::Document,
        made_for: Some(MadeFor {
            owner: envelope.id.to_string(),
            source: own_source(envelope.upload.as_ref()),
        }),
        // Who sees the envelope sees its document.
        shared_with: TemplateSharing::default(),
    }
}

/// Copies the document of another envelope with its fields. From then on it is the envelope's own: the field builder
/// edits it, and changes of its source do not reach it.
pub async fn copied(
    core: &Core,
    pages: &Arc<PageCache>,
    caller: &Caller,
    source: &Template,
    envelope: &Envelope,
) -> Result<Template, ServiceError> {
    let composition = own_document(envelope, source.name.clone(), source.kba_required);
    composition::of_templates(core, pages, caller, slice::from_ref(source), composition).await
}

/// Returns the document of a corrected envelope, which is the envelope's own: another file, or the same with other
/// fields.
pub async fn corrected(
    core: &Core,
    caller: &Caller,
    document: &StoredFile,
    fields: ReplacedFields<'_>,
    envelope: &Envelope,
) -> Result<Template, ServiceError> {
    let kba_required = envelope.sending.kba_required;
    let composition = own_document(envelope, envelope.name.clone(), kba_required);
    composition::of_upload(core, caller, document, fields, composition).await
}

/// Attaching another file cannot switch off identity verification.
fn check_kept(is: bool, wanted: Option<bool>) -> Result<(), ServiceError> {
    check_fixed(is, wanted.filter(|wanted| !wanted))
}
