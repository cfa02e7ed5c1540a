//! Admission of uploaded components.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use semver::Version;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::attestations::{self, KeptAttestations, OfferedBundles};
use super::{ComponentManager, ComponentOwner, ComponentView, named, object_name, quota, record};
use crate::{Core, Problem, ProblemKind, ServiceError, ValidationIssue};
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_base::config::UploadPolicy;
use holdfast_components::compiler::CompileError;
use holdfast_components::inspection::{AdmissionReason, InspectedComponent};
use holdfast_components::vectors::{VectorChange, VectorSet};
use holdfast_components::{ComponentArtifact, ExaminedComponent, is_reserved_name};
use holdfast_domain::component::{Component, ComponentIdentity, ConformanceResult, Slot};
use holdfast_domain::id::ComponentId;
use holdfast_store::components;

/// Maximum size of a component in bytes.
pub const UPLOAD_LIMIT: u64 = 32 * 1024 * 1024;

/// An uploaded component.
pub struct ComponentUpload {
    /// Lower-case letters, digits and `-`.
    pub name: String,
    /// Semantic version.
    pub version: String,
    /// The component file, on disk until its turn to be compiled.
    pub file: SpooledFile,
    /// Ed25519 signature of the file, in base64.
    pub signature: Option<String>,
    /// Bundles of Sigstore about the file.
    pub bundles: OfferedBundles,
    /// Reference in the registry that the component comes from, for the ledger.
    pub from: Option<String>,
}

/// Reserves a place in the owner's queue of uploads to compile. Called before the upload is
/// read.
///
/// # Errors
/// [`ServiceError::NotAllowed`] when uploads are switched off,
/// [`ProblemKind::Quota`] when too many wait.
pub fn place(
    core: &Core,
    management: &ComponentManager,
    owner: &ComponentOwner,
) -> Result<OwnedSemaphorePermit, ServiceError> {
    let org = owner.org.as_ref();
    let uploads = core.config.components.uploads(core.config.is_production());
    // The operator can always upload. The setting is about unknown code.
    if org.is_some() && uploads == UploadPolicy::Off {
        return Err(ServiceError::NotAllowed(
            "Uploads of components are switched off",
        ));
    }

    management.compiler.place(org).ok_or_else(|| {
        let message = "Too many uploads of this organization wait to be compiled";
        Problem::new(ProblemKind::Quota(30), None, message).into()
    })
}

/// Admits an uploaded component that holds a [`place`]. Returns it, and whether it is new.
///
/// # Errors
/// [`ServiceError::NotAdmitted`] with all reasons, [`ServiceError::Conflict`] when other bytes
/// have its name and version or a size quota is used up, [`ProblemKind::Quota`] when
/// the organization's compile time is used up.
pub async fn upload<E: From<ServiceError>>(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    upload: ComponentUpload,
    may: impl Fn(Slot) -> Result<(), E>,
) -> Result<(ComponentView, bool), E> {
    let version = checked(&upload)?;
    let org = owner.org.as_ref();
    let mut connection = core.store.read().await.map_err(ServiceError::from)?;

    // Repeating an upload succeeds without compiling again.
    if let Some(known) = known(&mut connection, owner, &upload).await? {
        if !upload.bundles.given.is_empty() {
            return Err(ServiceError::Conflict(format!(
                "{} was uploaded before; bundles come with the first upload of a version",
                known.identity
            ))
            .into());
        }

        return Ok((known.into(), false));
    }

    // Before the compile, which is the expensive part. Checked again when the row is written.
    quota::check_size(core, &mut connection, org, upload.file.size()).await?;
    let before = components::newest_named(&mut connection, org, &upload.name)
        .await
        .map_err(ServiceError::from)?;
    let earlier = match &before {
        Some(before) => vectors_of(&mut connection, before).await?,
        None => VectorSet::default(),
    };

    drop(connection);
    // Organizations take turns. No connection is held while this one waits.
    let turn = management.compiler.turn(org).await;
    // After the turn, because earlier uploads of the organization have used up time in between.
    quota::check_compile_time(core, org).await?;
    let began = Instant::now();
    let earlier = EarlierVersion {
        slot: before.as_ref().map(|before| before.slot),
        vectors: earlier,
    };
    let admitted = compiled_and_examined(core, management, owner, &upload, earlier, may).await;

    // Failed attempts are charged, too.
    quota::note_compile_time(core, org, began.elapsed()).await?;
    drop(turn);
    let (bytes, admitted) = admitted?;
    // A component may ask for more only with a new major version, so that an upgrade brings no new capability
    // unseen.
    let reasons = grown(before.as_ref(), &version, &admitted.inspected);
    if !reasons.is_empty() {
        return Err(ServiceError::NotAdmitted(reasons).into());
    }

    let component = Component {
        id: ComponentId::new(),
        org: owner.org.clone(),
        slot: admitted.inspected.slot,
        identity: identity(&upload),
        size: bytes.len() as i64,
        imports: admitted.inspected.imports,
        conformance: admitted.conformance,
        signed_by: admitted.signed_by,
        uploaded_by: owner.actor.clone(),
        created_at: core.clock.now(),
    };

    let kept = AdmittedComponent {
        component,
        bytes,
        vectors: admitted.vectors,
        changed: admitted.changed,
        attestations: admitted.attestations,
        before: before.map(|before| before.id),
    };

    Ok(keep(core, owner, &upload, kept).await?)
}

/// Returns the vectors that hold for a component and later versions of it.
pub async fn vectors_of(
    connection: &mut holdfast_store::SqlConnection,
    component: &Component,
) -> Result<VectorSet, ServiceError> {
    let Some(vectors) = components::vectors(connection, component).await? else {
        return Ok(VectorSet::default());
    };
    serde_json::from_value(vectors)
        .map_err(|error| ServiceError::Internal(format!("vectors of {}: {error}", component.id)))
}

/// Component that is to be kept.
struct AdmittedComponent {
    component: Component,
    bytes: Bytes,
    vectors: VectorSet,
    changed: Vec<VectorChange>,
    attestations: KeptAttestations,
    /// The earlier version; the component passed its vectors.
    before: Option<ComponentId>,
}

/// Results of examining an admitted component.
struct AdmissionResult {
    inspected: InspectedComponent,
    conformance: ConformanceResult,
    vectors: VectorSet,
    changed: Vec<VectorChange>,
    signed_by: Option<String>,
    attestations: KeptAttestations,
}

/// What the version before demands of a candidate.
struct EarlierVersion {
    slot: Option<Slot>,
    vectors: VectorSet,
}

/// Verifies, compiles and examines an upload. Runs under a turn of the compile queue, because
/// it holds the file in memory.
async fn compiled_and_examined<E: From<ServiceError>>(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    upload: &ComponentUpload,
    before: EarlierVersion,
    may: impl Fn(Slot) -> Result<(), E>,
) -> Result<(Bytes, AdmissionResult), E> {
    let bytes = upload.file.read().await;
    let bytes = bytes.map_err(|error| ServiceError::from(FilesError::Spool(error)))?;
    // Before the compiler: where signatures are required, unknown bytes are not even parsed.
    let signatures = attestations::verified(core, owner, upload, &bytes).await?;
    let compiled = management.compiler.compile(bytes.clone()).await;
    let (inspected, native) = compiled.map_err(ServiceError::from)?;

    // The slot is known only after inspection, so its permission is checked here.
    may(inspected.slot)?;
    let signed_by = signatures.publisher(&core.config, inspected.slot)?;

    // Vectors are about functions of a slot: those of another are not asked.
    let vectors = match before.slot {
        Some(slot) if slot != inspected.slot => VectorSet::default(),
        _ => before.vectors,
    };
    let examined = examine(core, upload, &bytes, inspected.slot, native, vectors).await?;
    let admitted = AdmissionResult {
        inspected,
        conformance: examined.conformance,
        vectors: examined.vectors,
        changed: examined.changed,
        signed_by,
        attestations: signatures.kept,
    };

    Ok((bytes, admitted))
}

/// Stores the bytes, then the row: a row never points to missing bytes.
async fn keep(
    core: &Core,
    owner: &ComponentOwner,
    upload: &ComponentUpload,
    admitted: AdmittedComponent,
) -> Result<(ComponentView, bool), ServiceError> {
    let AdmittedComponent {
        component,
        bytes,
        vectors,
        changed,
        attestations,
        before,
    } = admitted;
    let statements = json!(attestations);

    core.files
        .keep(&object_name(&component.identity.sha256), bytes)
        .await?;
    let mut tx = core.store.begin().await?;
    components::begin_change(&mut tx).await?;

    // Another upload of the same name and version may have been admitted since the first check.
    if let Some(known) = known(&mut tx, owner, upload).await? {
        return Ok((known.into(), false));
    }

    // Concurrent uploads may have used up the quota since the first check.
    let beside = vectors.size() + statements.to_string().len();
    let size = upload.file.size() + beside as u64;
    quota::check_size(core, &mut tx, owner.org.as_ref(), size).await?;
    // The candidate has passed the vectors of the version that was the newest before it was compiled.
    let newest = components::newest_named(&mut tx, owner.org.as_ref(), &upload.name).await?;
    if let Some(newest) = newest
        && Some(&newest.id) != before.as_ref()
        && vectors_of(&mut tx, &newest).await? != VectorSet::default()
    {
        return Err(ServiceError::Conflict(format!(
            "Another version of {} was uploaded at the same time: upload this one again",
            upload.name
        )));
    }

    components::insert(&mut tx, &component).await?;
    let mut details = json!({ "component": named(&component) });
    if let Some(from) = &upload.from {
        details["from"] = json!(from);
    }

    if !vectors.vectors.is_empty() {
        components::insert_vectors(&mut tx, &component, &json!(vectors)).await?;
        details["vectors"] = json!(vectors.vectors.len());
    }

    if !attestations.is_empty() {
        components::insert_attestations(&mut tx, &component, &statements).await?;
        details["attestations"] = attestations.summary();
    }

    if !changed.is_empty() {
        details["changed_vectors"] = json!(changed);
    }

    record(core, &mut tx, owner, "component.uploaded", details).await?;
    tx.commit().await?;
    Ok((component.into(), true))
}

/// Runs the conformance tests of the slot against a compiled component.
async fn examine(
    core: &Core,
    upload: &ComponentUpload,
    bytes: &Bytes,
    slot: Slot,
    native: Vec<u8>,
    before: VectorSet,
) -> Result<ExaminedComponent, ServiceError> {
    let artifact = ComponentArtifact::hashed(slot, identity(upload), bytes.clone());
    // The examination runs the component, and looks for its native code in the cache.
    core.components
        .keep_native(slot, &artifact.identity, native)
        .await?;
    let examined = core.components.examine(artifact.clone(), before).await;
    examined.map_err(|reasons| {
        // Native code of a rejected component must not stay on disk.
        core.components.forget_native(&artifact);
        ServiceError::NotAdmitted(reasons)
    })
}

impl From<CompileError> for ServiceError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Refused(reasons) => Self::NotAdmitted(reasons),
            CompileError::Io(error) => Self::Internal(format!("the compiler: {error}")),
        }
    }
}

/// Returns the upload's name, version and digest.
fn identity(upload: &ComponentUpload) -> ComponentIdentity {
    ComponentIdentity {
        name: upload.name.clone(),
        version: upload.version.clone(),
        sha256: upload.file.sha256().to_owned(),
    }
}

/// Validates the upload's name and version.
fn checked(upload: &ComponentUpload) -> Result<Version, ServiceError> {
    let mut issues = Vec::new();
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let name = upload.name.as_str();
    if name.is_empty() || name.len() > 64 || !name.bytes().all(letters) {
        issues.push(ValidationIssue::new(
            "invalid_string",
            &["name"],
            "1 to 64 lower-case letters, digits and -",
            name,
            "Not a component's name",
        ));
    }

    // Evidence names components, and an upload must not pass for a built-in one.
    if is_reserved_name(name) {
        issues.push(ValidationIssue::new(
            "reserved",
            &["name"],
            "another name",
            name,
            "A component that comes with the program has this name",
        ));
    }

    let version = Version::parse(&upload.version);
    if version.is_err() || upload.version.len() > 64 {
        issues.push(ValidationIssue::new(
            "invalid_string",
            &["version"],
            "a semantic version, for example 1.2.0",
            upload.version.as_str(),
            "Not a semantic version",
        ));
    }

    match version {
        Ok(version) if issues.is_empty() => Ok(version),
        _ => Err(ServiceError::Invalid(issues)),
    }
}

/// Returns the component if the same one was uploaded before.
async fn known(
    connection: &mut holdfast_store::SqlConnection,
    owner: &ComponentOwner,
    upload: &ComponentUpload,
) -> Result<Option<Component>, ServiceError> {
    let (org, name) = (owner.org.as_ref(), upload.name.as_str());
    let found = components::by_version(connection, org, name, &upload.version).await?;
    match found {
        // A version means the same bytes for ever: past decisions name it.
        Some(other) if other.identity.sha256 != upload.file.sha256() => {
            Err(ServiceError::Conflict(format!(
                "{name} {} was uploaded before with other bytes",
                upload.version
            )))
        }
        found => Ok(found),
    }
}

/// Checks that an upgrade imports nothing that its predecessor did not, unless the major
/// version is raised, and that it stays in its slot.
fn grown(
    before: Option<&Component>,
    version: &Version,
    now: &InspectedComponent,
) -> Vec<AdmissionReason> {
    let Some(before) = before else {
        return Vec::new();
    };
    if before.slot != now.slot {
        return vec![AdmissionReason::new(
            "version",
            format!(
                "{} is for {}, and this is for {}: give it another name",
                before.identity, before.slot, now.slot
            ),
        )];
    }

    let same_major =
        Version::parse(&before.identity.version).is_ok_and(|before| before.major == version.major);
    // A newer minor version of an interface is no new capability.
    let interface = |import: &String| import.split('@').next().unwrap_or_default().to_owned();
    let had: Vec<String> = before.imports.iter().map(interface).collect();
    now.imports
        .iter()
        .filter(|import| same_major && !had.contains(&interface(import)))
        .map(|import| {
            AdmissionReason::new(
                "version",
                format!(
                    "asks for `{import}`, which {} did not: raise the major version",
                    before.identity
                ),
            )
        })
        .collect()
}
