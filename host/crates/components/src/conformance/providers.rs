//! Questions to providers, beside services that fail in every known way.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::documents::CONTRACT;
use super::{ConformanceRun, data};
use crate::artifact::{ComponentArtifact, NativeCodeCache};
use crate::background;
use crate::egress::{NetworkAccess, NetworkFailure};
use crate::engine::{CallWatch, EngineSet};
use crate::gate::CallGate;
use crate::inspection::AdmissionReason;
use crate::lent::LentHost;
use crate::limits::Millis;
use crate::providers::{
    ConversionPlugin, ConversionPre, KbaPlugin, KbaPre, MessagingPlugin, MessagingPre,
    PaymentPlugin, PaymentPre, PluginRuntime, ProviderCalls, ProviderError, SigningPlugin,
    SigningPre, conversion, kba, messaging, payment, signing,
};
use crate::slot::{self, ActiveComponent, ComponentHandle, ComponentWorld};
use holdfast_base::config::SecretText;
use holdfast_domain::clock::Clock;
use holdfast_domain::component::{ConformanceResult, Slot};

/// Host name of the simulated external services.
const FAR_END: &str = "far-end.invalid";
/// Number of failures after which the examination stops. Each can use up the limits of a call.
const ENOUGH: usize = 8;
/// Time that all calls of an examination may wait, beside [`BUSY`] times their processor time. The simulated services
/// respond at once, and candidates are examined one at a time.
const MOST_WAIT: Duration = Duration::from_secs(60);
/// How much longer a call may take than its work, because a busy machine has no processor for it.
const BUSY: u32 = 10;

/// Personal data of the questions. Reasons are logged and shown, so they must not contain it.
const EMAIL: &str = "buyer@example.com";
const PHONE: &str = "+15125550142";
const BORN: &str = "1980-02-29";
const CODE: &str = "271828";

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
    /// Texts of the questions that must not be in the reason of an error.
    const PRIVATE: &'static [&'static str] = &[];

    fn ask_all(
        examination: &mut ProviderExamination<'_>,
        plugin: &PluginRuntime<Self>,
    ) -> impl Future<Output = ()> + Send;
}

async fn examine_kind<P: ProviderKind>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ConformanceResult, Vec<AdmissionReason>> {
    let active = loaded::<P>(engines, cache, artifact).await?;
    // A gate of its own, so that an examination takes no permit from the calls of tenants.
    let gate = CallGate::of(Arc::new(Semaphore::new(1)));
    let plugin = PluginRuntime::<P>::new(ComponentHandle::Held(slot::ready(active)), gate);
    let vectors: ProviderVectors = data(PROVIDER_VECTORS)?;
    let (mut run, mut spent) = (ConformanceRun::new(&vectors.version), SpentTime::default());

    for far_end in &vectors.far_ends {
        let mut examination = ProviderExamination {
            run: &mut run,
            far_end,
            private: P::PRIVATE,
            spent: &mut spent,
        };
        P::ask_all(&mut examination, &plugin).await;

        if let Some(why) = spent.excess() {
            run.wrong.push(AdmissionReason::new("over_limit", why));
            break;
        }
        if run.wrong.len() >= ENOUGH {
            break;
        }
    }

    run.memory = plugin.memory_peak();
    run.end(false)
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
    /// The request gets no response.
    fails: Option<NetworkFailure>,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
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

/// Idempotency keys that a call sent, in the order of its requests.
#[derive(Clone, Default)]
struct SentKeys(Arc<Mutex<Vec<String>>>);

impl SentKeys {
    /// Records the keys of a request. Vendors give the header different prefixes.
    fn record(&self, headers: &http::HeaderMap) {
        let keys = headers
            .iter()
            .filter(|(name, _)| name.as_str().contains("idempotency"))
            .map(|(_, value)| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.extend(keys);
    }

    fn sent(&self) -> Vec<String> {
        let sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.clone()
    }
}

impl FarEnd {
    /// Whether the status alone shows that the service did the work.
    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn response(&self) -> http::Response<Bytes> {
        let mut response = http::Response::new(Bytes::from(self.body.repeat(self.times)));
        *response.status_mut() = http::StatusCode::from_u16(self.status).unwrap_or_default();
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (
                http::HeaderName::try_from(name),
                http::HeaderValue::try_from(value),
            ) {
                response.headers_mut().insert(name, value);
            }
        }

        response
    }

    fn lease(&self, keys: SentKeys) -> LentHost {
        let (fails, response) = (self.fails, self.response());
        let far_end = move |request: http::Request<Bytes>| {
            keys.record(request.headers());
            fails.map_or_else(|| Ok(response.clone()), Err)
        };

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
            egress: NetworkAccess::scripted(Arc::new(far_end), FAR_END),
            clock: Clock::default(),
        }
    }
}

/// Time that the calls of an examination have taken.
#[derive(Default)]
struct SpentTime {
    worked: Duration,
    waited: Duration,
}

impl SpentTime {
    /// Describes why no further call is made, if the calls have waited for too long.
    fn excess(&self) -> Option<String> {
        let most = MOST_WAIT + self.worked * BUSY;
        let (worked, waited) = (Millis(self.worked), Millis(self.waited));
        (self.waited > most).then(|| {
            format!(
                "its calls took {worked} of processor time on this machine and waited for {waited}; the services of \
                 the examination respond at once"
            )
        })
    }
}

/// Questions to a provider beside one simulated service.
struct ProviderExamination<'a> {
    run: &'a mut ConformanceRun,
    far_end: &'a FarEnd,
    /// Texts that must not be in the reason of an error.
    private: &'static [&'static str],
    /// Time of all calls, those beside other services included.
    spent: &'a mut SpentTime,
}

impl ProviderExamination<'_> {
    fn lease(&self) -> LentHost {
        self.far_end.lease(SentKeys::default())
    }

    /// Makes a call and records its result. Success is a failure of the vector, unless `may_do` allows it.
    async fn ask<T>(
        &mut self,
        call: &str,
        may_do: bool,
        answer: impl Future<Output = Result<T, ProviderError>>,
    ) -> Option<T> {
        let ended = self.measured(answer).await?;
        self.judge(call, may_do, ended)
    }

    /// Makes a call and measures its time. `None` if earlier calls have used up the time of the examination.
    async fn measured<R>(&mut self, call: impl Future<Output = R>) -> Option<R> {
        if self.spent.excess().is_some() {
            return None;
        }

        // On a busy machine a call waits for its processor, which is no fault of the candidate.
        let (watch, began) = (CallWatch::new(None), Instant::now());
        let ended = watch.run(call).await;
        let worked = watch.shows();
        self.spent.worked += worked;
        self.spent.waited += began.elapsed().saturating_sub(worked);
        self.run.slowest = self.run.slowest.max(worked);

        Some(ended)
    }

    fn judge<T>(&mut self, call: &str, may_do: bool, ended: Result<T, ProviderError>) -> Option<T> {
        self.run.asked += 1;
        let function = call.split_once(' ').map_or(call, |(function, _)| function);
        self.run.called(function, ended.is_ok());

        let name = format!("{call}, and the far end {}", self.far_end.name);
        // An error of the world is a good answer here. A trap or an exceeded limit is not.
        match ended {
            Err(ProviderError::Component(error)) if !self.far_end.may_break => {
                self.run.wrong(&name, &format!("no answer: {}", error.kind));
                None
            }
            Err(error) => {
                let reason = error.to_string();
                let quotes = self.private.iter().any(|text| reason.contains(text));
                let otherwise = "the reason quotes personal data of the call";
                self.run.expect(!quotes, &name, otherwise);
                None
            }
            Ok(answer) => {
                self.run.expect(may_do, &name, "ends as if it had worked");
                Some(answer)
            }
        }
    }

    /// Makes a call twice, as the host does that did not see the first result. A key that is new each
    /// time would make the service do everything twice.
    async fn ask_twice<T, F>(&mut self, call: &str, ask: impl Fn(LentHost) -> F)
    where
        F: Future<Output = Result<T, ProviderError>>,
    {
        let (first, second) = (SentKeys::default(), SentKeys::default());
        let lease = self.far_end.lease(first.clone());
        self.ask(call, false, ask(lease)).await;

        let repeated = format!("{call} again");
        let lease = self.far_end.lease(second.clone());
        self.ask(&repeated, false, ask(lease)).await;

        // A call that was ended in between has sent fewer requests.
        let (first, second) = (first.sent(), second.sent());
        let is_same = first.iter().zip(&second).all(|(one, other)| one == other);
        self.run.expect(
            is_same,
            &format!("{repeated}, and the far end {}", self.far_end.name),
            "it has another idempotency key than the first call",
        );
    }

    /// Calls the function that checks settings, if the component has it. A status can be all that it needs.
    async fn ask_probe(&mut self, probe: impl Future<Output = Result<Option<()>, ProviderError>>) {
        let answered = match self.measured(probe).await {
            Some(Ok(Some(()))) => Ok(()),
            Some(Err(error)) => Err(error),
            // A component without the function is complete.
            Some(Ok(None)) | None => return,
        };

        let may_do = self.far_end.gone || self.far_end.is_success();
        self.judge("probe", may_do, answered);
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
    async fn ask_all(examination: &mut ProviderExamination<'_>, plugin: &SigningPlugin) {
        let request = signing::SubmissionRequest {
            template_id: "1".into(),
            external_id: "env_conformance".into(),
            name: "Conformance".into(),
            preserve_order: true,
            submitters: vec![signing::SubmitterRequest {
                name: "Bo Buyer".into(),
                email: EMAIL.into(),
                role: "Buyer".into(),
                values: Vec::new(),
            }],
        };

        let document = Bytes::from_static(CONTRACT);
        let call = plugin.create_template(
            examination.lease(),
            "Conformance",
            "tmpl_conformance",
            document,
            &[],
        );
        examination.ask("create-template", false, call).await;

        let call = plugin.read_template(examination.lease(), "1");
        examination.ask("read-template", false, call).await;

        // Without fields there is nothing to send, so success is right.
        let call = plugin.add_fields(examination.lease(), "1", &[]);
        examination.ask("add-fields", true, call).await;

        let call = plugin.clone_template(examination.lease(), "1", "Copy", "tmpl_copy");
        examination.ask("clone-template", false, call).await;

        // Archiving needs only the status of the response, so it may succeed with any body.
        let done = examination.far_end.gone || examination.far_end.is_success();
        let call = plugin.archive_template(examination.lease(), "1");
        examination.ask("archive-template", done, call).await;

        let create = |lease| plugin.create_submission(lease, request.clone());
        examination.ask_twice("create-submission", create).await;

        let call = plugin.read_submission(examination.lease(), "1");
        examination.ask("read-submission", false, call).await;

        let call = plugin.archive_submission(examination.lease(), "1");
        examination.ask("archive-submission", done, call).await;

        let call = plugin.signed_document(examination.lease(), "1");
        examination.ask("signed-document", false, call).await;

        let (headers, body) = unsigned();
        let callback = signing::Callback { headers, body };
        let read = plugin.read_callback(examination.lease(), callback);
        // Anyone can send a callback, so one without a signature must be refused.
        let call = async { read.await?.map_err(|_| ProviderError::NotFound) };
        let name = "read-callback without a signature";
        examination.ask(name, false, call).await;
    }
}

impl ProviderKind for PaymentPre {
    async fn ask_all(examination: &mut ProviderExamination<'_>, plugin: &PaymentPlugin) {
        let request = payment::IntentRequest {
            payment_id: "pay_conformance".into(),
            envelope_id: "env_conformance".into(),
            amount: 4900,
            currency: "USD".into(),
            connected_account: Some("acct_conformance".into()),
            platform_fee: Some(100),
            payer_email: Some(EMAIL.into()),
        };

        let create = |lease| plugin.create_intent(lease, request.clone());
        examination.ask_twice("create-intent", create).await;

        let call = plugin.read_intent(examination.lease(), "1");
        examination.ask("read-intent", false, call).await;

        let (headers, body) = unsigned();
        let callback = payment::Callback { headers, body };
        let read = plugin.read_callback(examination.lease(), callback);
        // An accepted callback without a signature would let anyone report a payment as made.
        let call = async { read.await?.map_err(|_| ProviderError::NotFound) };
        let name = "read-callback without a signature";
        examination.ask(name, false, call).await;
    }
}

impl ProviderKind for KbaPre {
    const PRIVATE: &'static [&'static str] = &[EMAIL, PHONE, BORN, CODE];

    async fn ask_all(examination: &mut ProviderExamination<'_>, plugin: &KbaPlugin) {
        let asked = plugin.required_identity(examination.lease());
        let asked = async { asked.await.map_err(ProviderError::from) };
        // The answer can be a constant of the plugin, so it may succeed with any far end.
        let fields = examination.ask("required-identity", true, asked).await;

        // Every field that the plugin asks for gets a value, or it would refuse before it asks the far end.
        let fields = fields.into_iter().flatten();
        let identity = fields
            .map(|field| {
                let value = example_of(&field.name).to_owned();
                (field.name, value)
            })
            .chain([("email".to_owned(), EMAIL.to_owned())])
            .collect();
        let call = plugin.start(examination.lease(), identity);
        examination.ask("start", false, call).await;

        let call = plugin.submit_code(examination.lease(), "{}", CODE);
        examination.ask("submit-code", false, call).await;

        let answers = vec![("1".into(), "1".into())];
        let call = plugin.submit_answers(examination.lease(), "{}", answers);
        examination.ask("submit-answers", false, call).await;

        let probe = plugin.probe::<kba::ProviderError>(examination.lease());
        examination.ask_probe(probe).await;
    }
}

/// Returns a value of an identity field, in the format of the world.
fn example_of(field: &str) -> &'static str {
    match field {
        "phone" => PHONE,
        "date_of_birth" => BORN,
        "ssn_last4" => "0000",
        "state" => "TX",
        "zip" => "78701",
        _ => "Conformance",
    }
}

impl ProviderKind for MessagingPre {
    const PRIVATE: &'static [&'static str] = &[PHONE, CODE];

    async fn ask_all(examination: &mut ProviderExamination<'_>, plugin: &MessagingPlugin) {
        let message = messaging::TextMessage {
            id: "msg_conformance".into(),
            to: PHONE.into(),
            text: format!("Your code is {CODE}"),
        };
        let send = |lease| plugin.send(lease, message.clone());
        examination.ask_twice("send", send).await;

        let probe = plugin.probe::<messaging::ProviderError>(examination.lease());
        examination.ask_probe(probe).await;
    }
}

impl ProviderKind for ConversionPre {
    async fn ask_all(examination: &mut ProviderExamination<'_>, plugin: &ConversionPlugin) {
        // The service is simulated, so any bytes can stand for the document.
        let document = Bytes::from_static(CONTRACT);
        let (name, kind) = ("document.odt", "application/vnd.oasis.opendocument.text");
        let call = plugin.convert(examination.lease(), document, name, kind);
        examination.ask("convert", false, call).await;

        let probe = plugin.probe::<conversion::ProviderError>(examination.lease());
        examination.ask_probe(probe).await;
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::egress::{EgressBody, OutgoingRequest};

    fn far_end(name: &str) -> FarEnd {
        let vectors: ProviderVectors = data(PROVIDER_VECTORS).unwrap();
        let mut all = vectors.far_ends.into_iter();
        all.find(|far_end| far_end.name == name).unwrap()
    }

    /// Runs questions beside a service, and returns the failures and the time of the calls.
    async fn examined(
        name: &str,
        questions: impl AsyncFnOnce(&mut ProviderExamination<'_>),
    ) -> (ConformanceRun, SpentTime) {
        let (mut run, mut spent) = (ConformanceRun::new("1"), SpentTime::default());
        let far_end = far_end(name);
        let mut examination = ProviderExamination {
            run: &mut run,
            far_end: &far_end,
            private: &[PHONE, CODE],
            spent: &mut spent,
        };
        questions(&mut examination).await;

        (run, spent)
    }

    fn wrong(run: &ConformanceRun) -> Vec<&str> {
        let wrong = run.wrong.iter();
        wrong.map(|reason| reason.message.as_str()).collect()
    }

    /// A provider that sends one message, with this idempotency key.
    async fn send(lease: LentHost, key: String) -> Result<(), ProviderError> {
        let request = OutgoingRequest {
            method: http::Method::POST,
            url: Url::parse(&format!("http://{FAR_END}/messages")).unwrap(),
            headers: vec![("Idempotency-Key".into(), key)],
            body: EgressBody::whole(Bytes::new()),
        };
        match lease.egress.open(request).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(ProviderError::Unreachable(answer.status.to_string())),
            Err(error) => Err(ProviderError::Unreachable(format!("{error:?}"))),
        }
    }

    #[tokio::test]
    async fn a_call_that_succeeds_beside_a_failing_service_is_wrong() {
        for name in [
            "fails",
            "does not answer in time",
            "cannot be reached",
            "sends its callers elsewhere",
            "asks to wait",
        ] {
            let questions = async |examination: &mut ProviderExamination<'_>| {
                let sent = send(examination.lease(), "msg_1".into());
                examination.ask("send", false, sent).await;
                let careless = async { Ok(()) };
                examination.ask("send", false, careless).await;
            };
            let (run, _) = examined(name, questions).await;
            let expected = format!("\"send, and the far end {name}\": ends as if it had worked");
            assert_eq!(wrong(&run), [expected]);
            assert_eq!(run.asked, 2);
        }
    }

    #[test]
    fn a_service_that_asks_to_wait_says_how_long() {
        let far_end = far_end("asks to wait");
        let response = far_end.response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "30");
    }

    #[tokio::test]
    async fn a_repeated_call_carries_the_same_idempotency_key() {
        let (run, _) = examined("fails", async |examination| {
            let stable = |lease| send(lease, "msg_1".into());
            examination.ask_twice("send", stable).await;
        })
        .await;
        assert_eq!((wrong(&run).len(), run.asked), (0, 2));

        let number = Mutex::new(0);
        let (run, _) = examined("fails", async |examination| {
            let fresh = |lease| {
                let mut number = number.lock().unwrap();
                *number += 1;
                send(lease, format!("attempt {number}"))
            };
            examination.ask_twice("send", fresh).await;
        })
        .await;
        assert_eq!(
            wrong(&run),
            [
                "\"send again, and the far end fails\": it has another idempotency key than the first call"
            ]
        );
    }

    #[tokio::test]
    async fn a_reason_does_not_quote_personal_data() {
        let (run, _) = examined("refuses and quotes the request", async |examination| {
            for reason in ["answered 400", "+15125550142 is no mobile phone"] {
                let refused = async { Err::<(), _>(ProviderError::Rejected(reason.into())) };
                examination.ask("send", false, refused).await;
            }
        })
        .await;
        assert_eq!(
            wrong(&run),
            [
                "\"send, and the far end refuses and quotes the request\": the reason quotes personal data of the call"
            ]
        );
    }

    /// A probe may be content with a status that is no failure, and with nothing else.
    #[tokio::test]
    async fn a_probe_that_passes_beside_a_failing_service_is_wrong() {
        for (name, expected) in [
            ("answers an empty list", 0),
            ("knows no such thing", 0),
            ("knows no such key", 1),
            ("does not answer in time", 1),
        ] {
            let (run, _) = examined(name, async |examination| {
                examination.ask_probe(async { Ok(Some(())) }).await;
            })
            .await;
            assert_eq!(wrong(&run).len(), expected, "{name}");
        }

        let (run, _) = examined("knows no such key", async |examination| {
            examination.ask_probe(async { Ok(None) }).await;
        })
        .await;
        assert_eq!(run.asked, 0, "a component without the function");
    }

    #[tokio::test]
    async fn the_time_in_which_a_call_waits_is_no_work() {
        let (run, spent) = examined("fails", async |examination| {
            let waits = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Err::<(), _>(ProviderError::NotFound)
            };
            examination.ask("send", false, waits).await;
        })
        .await;
        assert!(spent.worked < spent.waited, "{:?}", spent.worked);
        assert_eq!(run.slowest, spent.worked);
        assert_eq!(spent.excess(), None);
    }

    #[tokio::test]
    async fn an_examination_ends_when_its_calls_wait_for_too_long() {
        let (run, spent) = examined("fails", async |examination| {
            examination.spent.waited = MOST_WAIT * 2;
            let refused = async { Err::<(), _>(ProviderError::NotFound) };
            examination.ask("send", false, refused).await;
        })
        .await;
        assert_eq!(run.asked, 0);
        assert_eq!(
            spent.excess().unwrap(),
            "its calls took 0 ms of processor time on this machine and waited for 120000 ms; the services of the \
             examination respond at once"
        );
    }

    #[test]
    fn a_busy_machine_may_let_a_call_wait_for_its_processor() {
        let waited = MOST_WAIT * 2;
        for (seconds, ends) in [(5, true), (7, false)] {
            let worked = Duration::from_secs(seconds);
            let spent = SpentTime { worked, waited };
            assert_eq!(spent.excess().is_some(), ends, "{seconds} s of work");
        }
    }
}
