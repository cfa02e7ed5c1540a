//! Questions to providers, beside services that fail in every known way.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::documents::CONTRACT;
use super::{ConformanceRun, data};
use crate::artifact::{ComponentArtifact, NativeCodeCache};
use crate::background;
use crate::egress::NetworkAccess;
use crate::engine::EngineSet;
use crate::gate::CallGate;
use crate::inspection::AdmissionReason;
use crate::lent::LentHost;
use crate::providers::{
    ConversionPlugin, ConversionPre, KbaPlugin, KbaPre, MessagingPlugin, MessagingPre,
    PaymentPlugin, PaymentPre, PluginRuntime, ProviderCalls, ProviderError, SigningPlugin,
    SigningPre, messaging, payment, signing,
};
use crate::slot::{self, ActiveComponent, ComponentHandle, ComponentWorld};
use holdfast_base::config::SecretText;
use holdfast_domain::clock::Clock;
use holdfast_domain::component::{ConformanceResult, Slot};

/// Host name of the simulated external services.
const FAR_END: &str = "far-end.invalid";

/// Runs a provider against simulated external services that fail in many ways. For any of their
/// responses, each call must return an error of its world, within its limits. Success cannot be
/// tested, because the host does not know the API of the provider's vendor.
pub async fn examine_provider(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    match artifact.slot {
        Slot::Payment => examine_kind::<PaymentPre>(engines, cache, artifact).await,
        Slot::Kba => examine_kind::<KbaPre>(engines, cache, artifact).await,
        Slot::Messaging => examine_kind::<MessagingPre>(engines, cache, artifact).await,
        Slot::Conversion => examine_kind::<ConversionPre>(engines, cache, artifact).await,
        _ => examine_kind::<SigningPre>(engines, cache, artifact).await,
    }
}

/// Kind of provider, with calls of all its functions.
trait ProviderKind: ProviderCalls + ComponentWorld {
    fn ask_all(
        examination: &mut ConformanceRun,
        plugin: &PluginRuntime<Self>,
        far_end: &FarEnd,
    ) -> impl Future<Output = ()> + Send;
}

async fn examine_kind<P: ProviderKind>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let mut active = loaded::<P>(engines, cache, artifact).await?;
    // A slow candidate keeps the next one waiting, so it gets less time than in service.
    active.limits.deadline = active.limits.deadline.min(PER_QUESTION);
    // A gate of its own, so that an examination takes no permit from the calls of tenants.
    let gate = CallGate::of(Arc::new(Semaphore::new(1)));
    let plugin = PluginRuntime::<P>::new(ComponentHandle::Held(slot::ready(active)), gate);
    let mut examination = ConformanceRun::new(&data::<ProviderVectors>(PROVIDER_VECTORS)?.version);

    let began = Instant::now();
    for far_end in data::<ProviderVectors>(PROVIDER_VECTORS)?.far_ends {
        if began.elapsed() > IN_ALL {
            let why = format!("it takes more than {IN_ALL:?} to answer");
            return Err(vec![AdmissionReason::new("over_limit", why)]);
        }

        P::ask_all(&mut examination, &plugin, &far_end).await;
        // Each failure can take the whole deadline, so a broken candidate ends early.
        if examination.wrong.len() >= ENOUGH {
            break;
        }
    }

    examination.memory = plugin.memory_peak();
    examination.end(false)
}

/// Loads a candidate from cached native code.
pub async fn loaded<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ActiveComponent<P>, Vec<AdmissionReason>> {
    let (engines, cache, artifact) = (engines.clone(), cache.clone(), artifact.clone());
    // Loading links native code and runs a canary, which would block an async thread.
    background::run(move || slot::load_candidate::<P>(&engines, &cache, &artifact))
        .await
        .map_err(|error| vec![AdmissionReason::new("conformance", error.to_string())])?
        .map_err(|error| {
            vec![AdmissionReason::new(
                "type_mismatch",
                error.kind.to_string(),
            )]
        })
}

// Candidates are examined one at a time, so one examination must not take long.
/// Time limit of one call of a provider.
const PER_QUESTION: Duration = Duration::from_secs(5);
/// Time limit of the examination: after it no further service is tried.
const IN_ALL: Duration = Duration::from_secs(60);
/// Number of failures after which the examination stops.
const ENOUGH: usize = 8;

const PROVIDER_VECTORS: &str = include_str!("../../../../../wit/host/vectors.json");

#[derive(Deserialize)]
struct ProviderVectors {
    version: String,
    far_ends: Vec<FarEnd>,
}

/// Simulated external service that gives the same response to all requests.
#[derive(Clone, Deserialize)]
struct FarEnd {
    name: String,
    status: u16,
    body: String,
    /// Number of repetitions of the body.
    #[serde(default = "once")]
    times: usize,
    /// The service reports that the object is gone, which may count as archived.
    #[serde(default)]
    gone: bool,
    /// The response is too large for the runtime of some languages: a trap counts as an
    /// error.
    #[serde(default)]
    may_break: bool,
}

pub(super) fn once() -> usize {
    1
}

impl FarEnd {
    fn lease(&self) -> LentHost {
        let mut answer = http::Response::new(Bytes::from(self.body.repeat(self.times)));
        *answer.status_mut() = http::StatusCode::from_u16(self.status).unwrap_or_default();
        // Plugins of different vendors read different names, so the common ones are all set.
        let settings = [
            ("base_url", format!("http://{FAR_END}")),
            ("publishable_key", "conformance-key".to_owned()),
            ("account_sid", "conformance-account".to_owned()),
            ("from", "+15550100".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));

        let secrets = ["api_key", "auth_token", "secret_key", "webhook_secret"]
            .map(|name| (name.to_owned(), SecretText::new("conformance-secret")));
        LentHost {
            // Only the built-in instance gets records of the signing room.
            room: None,
            log: None,
            label: "conformance".into(),
            settings: Arc::new(BTreeMap::from(settings)),
            secrets: Arc::new(BTreeMap::from(secrets)),
            egress: NetworkAccess::scripted(Arc::new(move |_| answer.clone()), FAR_END),
            clock: Clock::default(),
        }
    }
}

/// Records the result of a call. Success is a failure of the vector, unless `may_do` allows it.
fn note(
    examination: &mut ConformanceRun,
    far_end: &FarEnd,
    call: &str,
    began: Instant,
    ended: Result<(), ProviderError>,
    may_do: bool,
) {
    examination.asked += 1;
    examination.slowest = examination.slowest.max(began.elapsed());
    let function = call.split_once(' ').map_or(call, |(function, _)| function);
    examination.called(function, ended.is_ok());

    let name = format!("{call}, and the far end {}", far_end.name);
    // An error of the world is a good answer here. A trap or an exceeded limit is not.
    match ended {
        Err(ProviderError::Component(error)) if !far_end.may_break => {
            examination.wrong(&name, &format!("no answer: {}", error.kind));
        }
        Err(_) => {}
        Ok(()) => examination.expect(may_do, &name, "ends as if it had worked"),
    }
}

/// Returns headers and body of an unsigned callback.
fn unsigned() -> (Vec<(String, String)>, Vec<u8>) {
    (
        vec![("content-type".into(), "application/json".into())],
        b"{\"event_type\":\"form.completed\",\"data\":{\"id\":1}}".to_vec(),
    )
}

impl ProviderKind for SigningPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &SigningPlugin, far_end: &FarEnd) {
        let lease = || far_end.lease();
        let document = Bytes::from_static(CONTRACT);
        let request = signing::SubmissionRequest {
            template_id: "1".into(),
            external_id: "env_conformance".into(),
            name: "Conformance".into(),
            preserve_order: true,
            submitters: vec![signing::SubmitterRequest {
                name: "Bo Buyer".into(),
                email: "buyer@example.com".into(),
                role: "Buyer".into(),
                values: Vec::new(),
            }],
        };

        let mut note = |call: &str, began, ended, may_do| {
            note(examination, far_end, call, began, ended, may_do);
        };
        let began = Instant::now();
        let ended =
            plugin.create_template(lease(), "Conformance", "tmpl_conformance", document, &[]);
        note("create-template", began, ended.await.map(drop), false);

        let began = Instant::now();
        let ended = plugin.read_template(lease(), "1").await;
        note("read-template", began, ended.map(drop), false);
        let began = Instant::now();
        let ended = plugin.add_fields(lease(), "1", &[]).await;
        // Without fields there is nothing to send, so success is right.
        note("add-fields", began, ended.map(drop), true);
        let began = Instant::now();

        let ended = plugin
            .clone_template(lease(), "1", "Copy", "tmpl_copy")
            .await;
        note("clone-template", began, ended.map(drop), false);

        // Archiving needs only the status of the response, so it may succeed with any body.
        let done = far_end.gone || (200..300).contains(&far_end.status);
        let began = Instant::now();
        let ended = plugin.archive_template(lease(), "1").await;
        note("archive-template", began, ended, done);
        let began = Instant::now();
        let ended = plugin.create_submission(lease(), request).await;
        note("create-submission", began, ended.map(drop), false);

        let began = Instant::now();
        let ended = plugin.read_submission(lease(), "1").await;
        note("read-submission", began, ended.map(drop), false);
        let began = Instant::now();
        let ended = plugin.archive_submission(lease(), "1").await;
        note("archive-submission", began, ended, done);
        let began = Instant::now();

        let ended = plugin.signed_document(lease(), "1").await;
        note("signed-document", began, ended.map(drop), false);
        let began = Instant::now();
        let (headers, body) = unsigned();
        let callback = signing::Callback { headers, body };
        // Anyone can send a callback, so one without a signature must be refused.
        let ended = match plugin.read_callback(lease(), callback).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ProviderError::NotFound),
            Err(error) => Err(error.into()),
        };

        note("read-callback without a signature", began, ended, false);
    }
}

impl ProviderKind for PaymentPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &PaymentPlugin, far_end: &FarEnd) {
        let lease = || far_end.lease();
        let mut note = |call: &str, began, ended| {
            note(examination, far_end, call, began, ended, false);
        };
        let request = payment::IntentRequest {
            payment_id: "pay_conformance".into(),
            envelope_id: "env_conformance".into(),
            amount: 4900,
            currency: "USD".into(),
            connected_account: Some("acct_conformance".into()),
            platform_fee: Some(100),
            payer_email: Some("buyer@example.com".into()),
        };

        let began = Instant::now();
        let ended = plugin.create_intent(lease(), request).await;
        note("create-intent", began, ended.map(drop));
        let began = Instant::now();
        let ended = plugin.read_intent(lease(), "1").await;
        note("read-intent", began, ended.map(drop));
        let began = Instant::now();

        let (headers, body) = unsigned();
        let callback = payment::Callback { headers, body };
        // An accepted callback without a signature would let anyone report a payment as made.
        let ended = match plugin.read_callback(lease(), callback).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ProviderError::NotFound),
            Err(error) => Err(error.into()),
        };

        note("read-callback without a signature", began, ended);
    }
}

impl ProviderKind for KbaPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &KbaPlugin, far_end: &FarEnd) {
        let lease = || far_end.lease();
        let mut note = |call: &str, began, ended, may_do| {
            note(examination, far_end, call, began, ended, may_do);
        };
        let began = Instant::now();
        let asked = plugin.required_identity(lease()).await;
        // Every field that the plugin asks for gets a value, or it would refuse before it asks the far end.
        let fields = asked.as_ref().map_or(&[][..], |fields| fields);
        let identity = fields
            .iter()
            .map(|field| (field.name.clone(), "conformance".to_owned()))
            .chain([("email".to_owned(), "buyer@example.com".to_owned())])
            .collect();

        // The answer can be a constant of the plugin, so it may succeed with any far end.
        note(
            "required-identity",
            began,
            asked.map(drop).map_err(ProviderError::from),
            true,
        );
        let began = Instant::now();

        let ended = plugin.start(lease(), identity).await;
        note("start", began, ended.map(drop), false);
        let began = Instant::now();
        let ended = plugin.submit_code(lease(), "{}", "123456").await;
        note("submit-code", began, ended.map(drop), false);
        let began = Instant::now();
        let answers = vec![("1".into(), "1".into())];
        let ended = plugin.submit_answers(lease(), "{}", answers).await;

        note("submit-answers", began, ended.map(drop), false);
    }
}

impl ProviderKind for MessagingPre {
    async fn ask_all(examination: &mut ConformanceRun, plugin: &MessagingPlugin, far_end: &FarEnd) {
        let message = messaging::TextMessage {
            id: "msg_conformance".into(),
            to: "+15125550142".into(),
            text: "Conformance".into(),
        };
        let began = Instant::now();
        let ended = plugin.send(far_end.lease(), message).await;
        note(examination, far_end, "send", began, ended.map(drop), false);
    }
}

impl ProviderKind for ConversionPre {
    async fn ask_all(
        examination: &mut ConformanceRun,
        plugin: &ConversionPlugin,
        far_end: &FarEnd,
    ) {
        // The service is simulated, so any bytes can stand for the document.
        let document = Bytes::from_static(CONTRACT);
        let (name, kind) = ("document.odt", "application/vnd.oasis.opendocument.text");
        let began = Instant::now();
        let ended = plugin.convert(far_end.lease(), document, name, kind).await;
        note(
            examination,
            far_end,
            "convert",
            began,
            ended.map(drop),
            false,
        );
    }
}
