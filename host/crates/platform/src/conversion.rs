//! PDFs of word processor documents, through the organization's provider (slot `provider.conversion`).

use std::sync::LazyLock;

use bytes::Bytes;

use crate::documents::{DocumentUpload, UPLOAD_LIMIT, admit, read_whole, read_word};
use crate::{Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_base::fair_queue::{FairQueue, QueueCapacity, QueueTurn, WorkOwner};
use holdfast_components::Documents;
use holdfast_components::providers::ProviderError;
use holdfast_components::rules::documents::DocumentError;
use holdfast_components::rules::variables::VariableValue;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::FileType;
use holdfast_domain::id::OrgId;
use holdfast_domain::template::{SourceFormat, WordDocument};

/// Characters of a provider's reason that the sender gets.
const REASON: usize = 500;

/// Conversions at once on this node. Each holds a document and its PDF, without a reservation while the provider works.
static CONVERSIONS: LazyLock<FairQueue> = LazyLock::new(|| {
    FairQueue::new(QueueCapacity {
        units: 4,
        of_organization: 2,
        waiting: 32,
        waiting_of_organization: 8,
        waiting_of_item: 2,
    })
});

/// Document of a template in memory.
pub struct SourceDocument {
    /// The upload, or the PDF that the provider made of it. Nothing but its type is checked.
    pub pdf: Bytes,
    /// Format of the upload.
    pub format: SourceFormat,
    /// Reserves the memory, and must live as long.
    pub room: QueueTurn,
    /// The upload itself, if it has variables.
    pub word: Option<VariableDocument>,
}

/// Document of a word processor with variables.
pub struct VariableDocument {
    pub kind: WordDocument,
    pub document: Bytes,
    /// Names of the variables, in the order of their first appearance.
    pub names: Vec<String>,
}

/// Reads the upload of a template as a PDF. The organization's provider converts a document of a word
/// processor.
///
/// # Errors
/// `Problem` for any other type of file; `Invalid` without a provider, and for a document that it cannot
/// convert; `OtherProvider` for a failure that a later attempt may not have; `Busy` if too many conversions wait.
pub async fn read_as_pdf(
    core: &Core,
    org: &OrgId,
    owner: &WorkOwner,
    upload: &DocumentUpload,
) -> Result<SourceDocument, ServiceError> {
    let head = upload.file.head();
    if FileType::detect(head).is_some() || !WordDocument::is_archive(head) {
        let (pdf, room) = read_whole(core, owner, upload).await?;
        return Ok(SourceDocument {
            pdf,
            format: SourceFormat::Pdf,
            room,
            word: None,
        });
    }

    let turn = CONVERSIONS.turn(owner, core.store.priority(), 1).await;
    let _turn = turn.ok_or(ServiceError::Busy)?;
    let (kind, document, room) = read_word(core, owner, upload).await?;
    let documents = built_in(core, org, owner);
    let names = documents.find_variables(document.clone()).await?;
    let names = names.map_err(|error| unreadable(kind, error))?;
    // Release the memory reservation before the provider call, which may be slow: the reservations of all organizations
    // are about as much as one document. The turn limits memory held meanwhile.
    drop(room);
    let pdf = convert(core, org, kind, document.clone()).await?;

    let room = admit(core, owner, pdf.len() as u64).await?;
    let word = VariableDocument {
        kind,
        document,
        names,
    };
    Ok(SourceDocument {
        pdf,
        format: SourceFormat::Word,
        room,
        word: Some(word).filter(|word| !word.names.is_empty()),
    })
}

/// Returns the PDF of a document with values in the place of its variables.
///
/// # Errors
/// As [`read_as_pdf`].
pub async fn with_values(
    core: &Core,
    org: &OrgId,
    owner: &WorkOwner,
    (kind, document): (WordDocument, Bytes),
    values: &[(String, String)],
) -> Result<(Bytes, QueueTurn), ServiceError> {
    let turn = CONVERSIONS.turn(owner, core.store.priority(), 1).await;
    let _turn = turn.ok_or(ServiceError::Busy)?;
    let room = admit(core, owner, document.len() as u64).await?;
    let value = |(name, value): &(String, String)| VariableValue {
        name: name.clone(),
        value: value.clone(),
    };
    let values = values.iter().map(value).collect();
    let documents = built_in(core, org, owner);
    let replaced = documents.replace_variables(document, values).await?;
    let replaced = replaced.map_err(|error| unreadable(kind, error))?;

    // Release the memory reservation before the provider call, as `read_as_pdf` does.
    drop(room);
    let pdf = convert(core, org, kind, replaced.into()).await?;
    let room = admit(core, owner, pdf.len() as u64).await?;
    Ok((pdf, room))
}

/// Returns the built-in component: what is a variable is no choice of an organization.
fn built_in(core: &Core, org: &OrgId, owner: &WorkOwner) -> Documents {
    let documents = core
        .components
        .embedded_documents(org, core.store.priority());
    documents.for_owner(owner.clone())
}

/// Refuses a document that the sandbox cannot read, or that exceeds its limits.
fn unreadable(kind: WordDocument, error: DocumentError) -> ServiceError {
    let why = match error {
        DocumentError::Unreadable(why)
        | DocumentError::OverLimit(why)
        | DocumentError::Other(why) => why,
        DocumentError::Encrypted => "The document is protected by a password".to_owned(),
    };
    refused("unreadable_document", kind.as_str(), why)
}

/// Has a document converted by the organization's provider.
async fn convert(
    core: &Core,
    org: &OrgId,
    kind: WordDocument,
    document: Bytes,
) -> Result<Bytes, ServiceError> {
    let instance = core.instance(Slot::Conversion, org);
    // No provider is built in.
    if instance == EMBEDDED {
        let why = if org.is_test() {
            "Test data reaches no service that converts documents: send a PDF"
        } else {
            "No service converts documents for this organization: send a PDF, have an administrator \
             activate a component for provider.conversion, or the operator set [providers.conversion.main]"
        };
        return Err(refused("no_conversion", kind.as_str(), why));
    }

    let lease = core.lease(Slot::Conversion, &instance)?;
    let plugin = core.components.conversion(Some(org), &instance);
    let (name, media_type) = (kind.file_name(), kind.as_str());
    let answered = plugin.convert(lease, document, name, media_type).await;
    let pdf = answered.map_err(|error| match error {
        ProviderError::Rejected(why) => {
            let why: String = why.chars().take(REASON).collect();
            let message = format!("The document could not be converted: {why}");
            refused("conversion_refused", media_type, message)
        }
        error => ServiceError::OtherProvider(Slot::Conversion, error),
    })?;

    // The same limit as of an upload: the PDF takes its place.
    if pdf.len() as u64 > UPLOAD_LIMIT {
        let message = "The PDF that the document became is larger than 50 MiB";
        return Err(refused("too_big", &pdf.len().to_string(), message));
    }

    Ok(pdf)
}

fn refused(code: &str, received: &str, message: impl Into<String>) -> ServiceError {
    ServiceError::invalid(
        code,
        &["file"],
        "a PDF, or a document that a service converts to one",
        received,
        message,
    )
}
