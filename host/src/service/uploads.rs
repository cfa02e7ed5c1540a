//! Files that partners upload.

use bytes::Bytes;
use serde_json::json;

use super::{Caller, ServiceError, envelopes as envelope_service, events, facts};
use crate::app::App;
use crate::components::rules::documents;
use crate::components::rules::lifecycle::EnvelopeTrigger;
use crate::domain::envelope::{FileType, StoredFile};
use crate::files::Area;
use crate::store::envelopes;

/// 50 MiB.
pub const UPLOAD_LIMIT: usize = 52_428_800;

/// An uploaded file.
pub struct Upload {
    /// As the client declared it.
    pub content_type: Option<String>,
    pub bytes: Bytes,
}

/// A stored upload, as the response shows it.
pub struct Stored {
    /// An opaque reference.
    pub path: String,
    pub file: StoredFile,
}

/// Attaches a document to an envelope, or replaces it.
pub async fn upload(
    app: &App,
    caller: &Caller,
    id: &str,
    upload: Upload,
) -> Result<Stored, ServiceError> {
    let file_type = checked_type(&upload, FileType::ALL)?;
    let envelope = envelope_service::get(app, caller, id).await?;
    let next = |envelope: &crate::domain::envelope::Envelope| {
        app.components.rules.envelope(
            Some(envelope.status),
            EnvelopeTrigger::Upload,
            &facts::lifecycle_facts(envelope),
        )
    };
    next(&envelope)?;
    check_readable(app, file_type, &upload.bytes).await?;
    let file = app
        .files
        .put(
            Area::Uploads,
            &envelope.org,
            envelope.id.as_str(),
            upload.bytes,
            file_type.as_str(),
        )
        .await?;
    let now = app.clock.now();
    let mut tx = app.store.begin().await?;
    let mut envelope = envelopes::lock(&mut tx, &caller.org, &envelope.id)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))?;
    let status = next(&envelope)?;
    envelopes::set_upload(&mut tx, &envelope, status, &file, now).await?;
    let details =
        json!({ "sha256": file.sha256, "size": file.size, "content_type": file.content_type });
    events::record(
        &mut tx,
        &envelope,
        &caller.actor,
        "document.uploaded",
        details,
        now,
    )
    .await?;
    tx.commit().await?;
    envelope.upload = Some(file.clone());
    Ok(Stored {
        path: envelope.upload_file_path().unwrap_or_default(),
        file,
    })
}

/// The type by the file's first bytes, which has to be allowed and to agree
/// with what the client declared.
pub fn checked_type(upload: &Upload, allowed: &[FileType]) -> Result<FileType, ServiceError> {
    let names = || {
        allowed
            .iter()
            .map(|kind| kind.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let detected = FileType::detect(&upload.bytes)
        .filter(|detected| allowed.contains(detected))
        .ok_or_else(|| {
            ServiceError::UnsupportedType(format!("File must be one of: {}", names()))
        })?;
    let declared = upload
        .content_type
        .as_deref()
        .and_then(|declared| declared.split(';').next());
    match declared.map(str::trim) {
        // What a client sends when it does not know is no declaration.
        None | Some("" | "application/octet-stream") => Ok(detected),
        Some(declared) if declared.eq_ignore_ascii_case(detected.as_str()) => Ok(detected),
        Some(declared) => Err(ServiceError::UnsupportedType(format!(
            "File is {detected}, not {declared} as declared"
        ))),
    }
}

/// Refuses now what could not be vaulted later.
async fn check_readable(app: &App, kind: FileType, bytes: &Bytes) -> Result<(), ServiceError> {
    match picture(kind, bytes) {
        None => {
            app.components
                .rules
                .inspect(bytes.to_vec().into())
                .await??;
        }
        Some(picture) => {
            app.components.rules.picture_to_pdf(picture).await??;
        }
    }
    Ok(())
}

/// None for a PDF.
pub fn picture(kind: FileType, bytes: &Bytes) -> Option<documents::Picture> {
    let format = match kind {
        FileType::Pdf => return None,
        FileType::Png => documents::PictureFormat::Png,
        FileType::Jpeg => documents::PictureFormat::Jpeg,
    };
    Some(documents::Picture {
        format,
        bytes: bytes.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(bytes: &'static [u8], declared: Option<&str>) -> Result<FileType, String> {
        let upload = Upload {
            content_type: declared.map(str::to_owned),
            bytes: Bytes::from_static(bytes),
        };
        checked_type(&upload, FileType::ALL).map_err(|error| error.to_string())
    }

    #[test]
    fn a_declared_type_has_to_be_true() {
        let pdf = b"%PDF-1.7";
        assert_eq!(checked(pdf, Some("application/pdf")), Ok(FileType::Pdf));
        assert_eq!(
            checked(pdf, Some("application/pdf; charset=x")),
            Ok(FileType::Pdf)
        );
        assert_eq!(
            checked(pdf, Some("application/octet-stream")),
            Ok(FileType::Pdf)
        );
        assert_eq!(checked(pdf, None), Ok(FileType::Pdf));
        assert!(checked(pdf, Some("image/png")).is_err());
        assert!(checked(b"MZ", Some("application/pdf")).is_err());
    }
}
