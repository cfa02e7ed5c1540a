//! Components and their slots, for web-app users with the role `admin`. The role `compliance` may
//! manage rules components only.

use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::HttpError;
use crate::middleware::caller::{RequiredPermission, WebCaller, may, require};
use crate::middleware::extract::{
    MultipartForm, PageWindow, ResourceId, SlotPath, ValidJson, ValidQuery, WholeListQuery,
    page_and_limit,
};
use crate::middleware::limits;
use crate::reply::{Created, CursorReply, DataReply, FileReply, Found, PageReply, Wasm};
use holdfast_base::config::SecretText;
use holdfast_components::behaviour::BehaviourDiff;
use holdfast_components::vectors::VectorSet;
use holdfast_components::worlds::{self, PublishedWorld};
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::component_change::permission_of;
use holdfast_domain::id::{LogLineId, TokenId};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::organization::{Permission, Role};
use holdfast_domain::user::IssuerIdentity;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::components::attestations::{self, AttestationView, OfferedBundles};
use holdfast_platform::components::behaviour::{self, DiffRequest};
use holdfast_platform::components::changes::ChangeOfficer;
use holdfast_platform::components::instance_log::{self, LogLineView};
use holdfast_platform::components::live_shadow::{self, LiveShadow, StartShadow};
use holdfast_platform::components::pull::{self, Login};
use holdfast_platform::components::shadow::{self, ReplayRequest, ShadowReport};
use holdfast_platform::components::trial::{self, TrialView, TryRequest};
use holdfast_platform::components::{
    self, ActivationRequest, ActivationView, ComponentOwner, ComponentUpload, ComponentView,
    RollbackRequest, SlotView, UPLOAD_LIMIT,
};
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::App;

/// Web-app user who reads rules and evidence, or has another permission for them.
pub struct ComponentOfficer<P = may::ReadEvidence> {
    pub(super) caller: Caller,
    owner: ComponentOwner,
    role: Role,
    token: Option<TokenId>,
    identity: Option<IssuerIdentity>,
    _permission: PhantomData<P>,
}

/// Web-app user who may change rules, or providers too.
pub type ChangingOfficer = ComponentOfficer<may::ChangeRules>;

impl<P> From<ComponentOfficer<P>> for ChangeOfficer {
    fn from(officer: ComponentOfficer<P>) -> Self {
        Self {
            caller: officer.caller,
            role: officer.role,
            token: officer.token,
            identity: officer.identity,
        }
    }
}

/// Web-app user who may request changes; which ones depends on the change.
pub type RequestingOfficer = ComponentOfficer<may::RequestChanges>;

impl<P> ComponentOfficer<P> {
    /// Whether the officer has a permission.
    pub(super) fn may(&self, permission: Permission) -> bool {
        self.role.may(permission)
    }

    /// Refuses an officer without a permission.
    pub(super) fn require(&self, permission: Permission) -> Result<(), HttpError> {
        require(self.role, permission)
    }
}

impl ChangingOfficer {
    /// Refuses an officer who changes rules only access to provider slots.
    pub(super) fn may_change(&self, slot: Slot) -> Result<(), HttpError> {
        self.require(permission_of(Some(slot)))
    }
}

impl<P: RequiredPermission> FromRequestParts<App> for ComponentOfficer<P> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let user = WebCaller::<P>::from_request_parts(parts, app).await?;
        Ok(Self {
            owner: ComponentOwner::from(&user.caller),
            caller: user.caller,
            role: user.role,
            token: user.token,
            identity: user.identity,
            _permission: PhantomData,
        })
    }
}

impl<P: RequiredPermission> OperationInput for ComponentOfficer<P> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        WebCaller::<P>::operation_input(context, operation);
    }
}

/// Officer together with the path's slot, which they may change. Both are decided before the body
/// is read.
pub struct SlotOfficer {
    officer: ChangingOfficer,
    slot: Slot,
}

impl FromRequestParts<App> for SlotOfficer {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let officer = ChangingOfficer::from_request_parts(parts, app).await?;
        let SlotPath(slot) = SlotPath::from_request_parts(parts, app).await?;
        // Refused here, before a body of up to 32 MiB is read.
        let slot = known(&slot)?;
        officer.may_change(slot)?;
        Ok(Self { officer, slot })
    }
}

impl OperationInput for SlotOfficer {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        ChangingOfficer::operation_input(context, operation);
        SlotPath::operation_input(context, operation);
    }
}

/// Officer with a permit for one upload, acquired before its bytes are read.
pub struct ComponentUploader {
    officer: ChangingOfficer,
    _place: OwnedSemaphorePermit,
}

impl FromRequestParts<App> for ComponentUploader {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let officer = ChangingOfficer::from_request_parts(parts, app).await?;
        let org = officer.caller.org.as_str();
        // Compiling and checking a component is expensive, so uploads have a limit of their own.
        limits::admit(app, LimitedCredential::Uploads, org, parts)?;
        // A place in the queue comes before the body: a full queue must not cost an upload.
        let _place = components::place(app, &app.management, &officer.owner)?;
        Ok(Self { officer, _place })
    }
}

impl OperationInput for ComponentUploader {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        ChangingOfficer::operation_input(context, operation);
    }
}

/// Multipart form of an upload.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "acme-rules.wasm", "name": "acme-rules", "version": "1.0.0" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct ComponentForm {
    /// A WebAssembly component, at most 32 MiB. Required without `from`.
    #[schemars(extend("format" = "binary"))]
    file: Option<String>,
    /// Place of the component in a registry instead: `oci://host/name@sha256:…`. Bundles that refer to it there
    /// come with it.
    from: Option<String>,
    /// User of the registry. Login and password are used for this pull only.
    username: Option<String>,
    /// Password or access token of the user.
    password: Option<String>,
    /// Lower-case letters, digits and `-`; at most 64.
    name: String,
    /// Semantic version.
    version: String,
    /// Ed25519 signature of the file, in base64. Required where only signed components are
    /// admitted.
    signature: Option<String>,
    /// Bundles of Sigstore about the file: one JSON object, or JSON Lines. At most 10. All texts of the form together
    /// have at most 1 MiB.
    bundles: Option<String>,
    /// Manifest of the component in a registry, if bundles are about it.
    manifest: Option<String>,
}

pub async fn upload(
    State(app): State<App>,
    uploader: ComponentUploader,
    mut form: MultipartForm<ComponentForm>,
) -> Result<Created<ComponentView>, HttpError> {
    let mut text = |name: &str| {
        let text = form.texts.remove(name).filter(|text| !text.is_empty());
        text.ok_or_else(|| HttpError::bad_request(format!("{name} is required")))
    };
    let (name, version) = (text("name")?, text("version")?);
    // The generic form takes `password` as that of a protected PDF, so it is removed before the file is read.
    let login = match (text("username"), text("password")) {
        (Ok(username), Ok(password)) => Some(Login {
            username,
            password: SecretText::new(password),
        }),
        (Err(_), Err(_)) => None,
        _ => return Err(HttpError::bad_request("username and password go together")),
    };

    // After the password of a registry, which is none of the file.
    let file = form.file();
    let mut text = |name: &str| {
        let text = form.texts.remove(name).filter(|text| !text.is_empty());
        text.ok_or_else(|| HttpError::bad_request(format!("{name} is required")))
    };
    let bundles = OfferedBundles::split(&text("bundles").unwrap_or_default());
    let given = OfferedBundles {
        given: bundles.map_err(|why| HttpError::bad_request(format!("bundles: {why}")))?,
        manifest: text("manifest").ok().map(Into::into),
        ..OfferedBundles::default()
    };

    let excluded = |what: &str| HttpError::bad_request(format!("{what} exclude each other"));
    let (file, from, bundles) = match (file, text("from")) {
        // Contradictions are refused instead of ignored: a caller who sends both means something else.
        (Ok(_), Err(_)) if login.is_some() => return Err(excluded("file and username")),
        (Ok(upload), Err(_)) => (upload.file, None, given),
        (Err(_), Ok(_)) if !given.given.is_empty() => return Err(excluded("from and bundles")),
        (Err(_), Ok(_)) if given.manifest.is_some() => return Err(excluded("from and manifest")),
        (Err(_), Ok(from)) => {
            let pulled = pull::pull(&app, &from, login).await?;
            (pulled.file, Some(pulled.from), pulled.bundles)
        }
        (Ok(_), Ok(_)) => return Err(excluded("file and from")),
        (Err(_), Err(_)) => return Err(HttpError::bad_request("file or from is required")),
    };

    // The form's own limit is that of documents, which is larger.
    if file.size() > UPLOAD_LIMIT {
        return Err(HttpError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("file is larger than {UPLOAD_LIMIT} bytes"),
        ));
    }

    let upload = ComponentUpload {
        from,
        name,
        version,
        signature: text("signature").ok(),
        bundles,
        file,
    };

    let officer = &uploader.officer;

    // The slot is known only once the component has been inspected, so the service calls back.
    let may = |slot| officer.may_change(slot);
    let (component, _) =
        components::upload(&app, &app.management, &officer.owner, upload, may).await?;
    Ok(DataReply::new(&component))
}

#[derive(Deserialize, JsonSchema)]
pub struct ComponentQuery {
    /// Page number, from 1.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    slot: Option<Slot>,
}

pub async fn list(
    State(app): State<App>,
    officer: ComponentOfficer,
    ValidQuery(query): ValidQuery<ComponentQuery>,
) -> Result<PageReply<ComponentView>, HttpError> {
    let (page, limit) = page_and_limit(query.page, query.limit, 20, 100)?;
    let (found, total) = components::list(&app, &officer.owner, query.slot, page, limit).await?;
    Ok(PageReply::new(&found, page, limit, total))
}

pub async fn read(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
) -> Result<Found<ComponentView>, HttpError> {
    let component = components::get(&app, &officer.owner, &id).await?;
    Ok(DataReply::new(&component.into()))
}

/// Returns the component's bytes, for readers of evidence that names it.
pub async fn artifact(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Wasm>, HttpError> {
    let component = components::get(&app, &officer.owner, &id).await?;
    let bytes = components::kept(&app, &component).await?;
    let ComponentIdentity { name, version, .. } = &component.identity;
    let name = format!("{name}-{version}.wasm");
    FileReply::of_bytes(&app, &name, &bytes).await
}

pub async fn shadow(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<ReplayRequest>,
) -> Result<Found<ShadowReport>, HttpError> {
    let report = shadow::replay(
        &app,
        &app.management,
        &officer.caller,
        &id,
        &request,
        |_| {},
    )
    .await?;

    Ok(DataReply::new(&report))
}

/// Returns the team's vectors that hold for a component.
pub async fn vectors(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
) -> Result<Found<VectorSet>, HttpError> {
    let vectors = behaviour::vectors(&app, &officer.owner, &id).await?;
    Ok(DataReply::new(&vectors))
}

/// Returns the verified bundles of Sigstore that came with a component: signatures, provenance, bills of materials.
pub async fn attestations(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<AttestationView>, HttpError> {
    query.page_of(&attestations::list(&app, &officer.owner, &id).await?)
}

pub async fn diff(
    State(app): State<App>,
    officer: ComponentOfficer,
    ResourceId(id): ResourceId,
    ValidJson(request): ValidJson<DiffRequest>,
) -> Result<Found<BehaviourDiff>, HttpError> {
    let diff = behaviour::diff(&app, &app.management, &officer.caller, &id, &request).await?;
    Ok(DataReply::new(&diff))
}

pub async fn slots(
    State(app): State<App>,
    officer: ComponentOfficer,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<SlotView>, HttpError> {
    query.page_of(&components::slots(&app, &app.management, &officer.owner).await?)
}

pub async fn activate(
    State(app): State<App>,
    SlotOfficer { officer, slot }: SlotOfficer,
    ValidJson(request): ValidJson<ActivationRequest>,
) -> Result<Created<ActivationView>, HttpError> {
    let activation =
        components::activate(&app, &app.management, &officer.owner, slot, request).await?;
    Ok(DataReply::new(&activation))
}

/// Creates the template at the vendor, reads it and archives it. Activates nothing. For `provider.signing`.
pub async fn try_out(
    State(app): State<App>,
    SlotOfficer { officer, slot }: SlotOfficer,
    ValidJson(request): ValidJson<TryRequest>,
) -> Result<Found<TrialView>, HttpError> {
    // Completes even if the client disconnects: the vendor's template is archived.
    let tried = tokio::spawn(async move {
        trial::try_out(&app, &app.management, &officer.caller, slot, request).await
    });
    let tried = tried
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))??;
    Ok(DataReply::new(&tried))
}

pub async fn roll_back(
    State(app): State<App>,
    SlotOfficer { officer, slot }: SlotOfficer,
    ValidJson(request): ValidJson<RollbackRequest>,
) -> Result<Found<ActivationView>, HttpError> {
    let activation =
        components::roll_back(&app, &app.management, &officer.owner, slot, request).await?;
    Ok(DataReply::new(&activation))
}

#[derive(Deserialize, JsonSchema)]
pub struct LogQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// Provider instance; all of the organization if absent.
    instance: Option<String>,
    /// Last id of the page before.
    starting_after: Option<LogLineId>,
    /// 1 to 100; 50 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

/// Returns what the plugins of the organization's instances wrote, and requests and calls that failed.
pub async fn log(
    State(app): State<App>,
    SlotOfficer { officer, slot }: SlotOfficer,
    ValidQuery(query): ValidQuery<LogQuery>,
) -> Result<CursorReply<LogLineView>, HttpError> {
    let (instance, after) = (query.instance.as_deref(), query.starting_after.as_ref());
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 50, 100)?;
    let org = &officer.caller.org;
    let found = instance_log::list(&app, org, slot, instance, after, window.read()).await?;
    Ok(window.reply(found))
}

pub async fn start_shadow(
    State(app): State<App>,
    SlotOfficer { officer, slot }: SlotOfficer,
    ValidJson(request): ValidJson<StartShadow>,
) -> Result<Created<LiveShadow>, HttpError> {
    let org = &officer.caller.org;
    let started =
        live_shadow::start(&app, &app.management, &officer.owner, org, slot, &request).await?;
    Ok(DataReply::new(&started))
}

pub async fn live(
    State(app): State<App>,
    officer: ComponentOfficer,
    SlotPath(slot): SlotPath,
) -> Result<Found<LiveShadow>, HttpError> {
    let slot = known(&slot)?;
    let org = &officer.caller.org;
    Ok(DataReply::new(
        &live_shadow::view(&app, &officer.owner, org, slot).await?,
    ))
}

pub async fn stop_shadow(
    State(app): State<App>,
    SlotOfficer { officer, slot }: SlotOfficer,
) -> Result<Found<LiveShadow>, HttpError> {
    let org = &officer.caller.org;
    Ok(DataReply::new(
        &live_shadow::stop(&app, &app.management, &officer.owner, org, slot).await?,
    ))
}

/// Returns the log of decisions about the organization's components, with actor, time and reason.
pub async fn history(
    State(app): State<App>,
    officer: ComponentOfficer,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<LedgerEntry>, HttpError> {
    query.page_of(&components::history(&app, &officer.owner).await?)
}

/// Lists the worlds that a component can target. Public, for component authors: nothing here is
/// secret.
pub async fn worlds(
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<PublishedWorld>, HttpError> {
    query.page_of(&Slot::ALL.map(worlds::world))
}

fn known(slot: &str) -> Result<Slot, HttpError> {
    Slot::parse(slot).ok_or_else(|| ServiceError::NotFound("Component slot").into())
}
