//! `holdfast dev`: one process to build against. A server for this machine with sample data and keys, and for a
//! project of rules or a plugin: build, check and swap after each change, with its service played from `far-end.json`.

mod project;

use std::fs::{self, File};
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use reqwest::multipart::{Form, Part};
use reqwest::{Client, RequestBuilder, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use project::Project;

use super::output::CommandOutput;
use super::{Failure, keep, termination};
use crate::server;
use crate::start;
use holdfast_base::config::{Config, DeploymentEnvironment};
use holdfast_base::keys::BEARER_TOKENS;
use holdfast_components::ComponentArtifact;
use holdfast_components::inspection;
use holdfast_components::script::PlayedFarEnd;
use holdfast_domain::clock::Clock;
use holdfast_domain::component::Slot;
use holdfast_domain::id::{KeyId, OrgId};
use holdfast_domain::organization::{ApiKeyRecord, OrgSettings, Organization, Role, Scope};
use holdfast_platform::Caller;
use holdfast_platform::access::users::{self, NewUser, UserManager};
use holdfast_platform::access::{self, api_keys, sessions};
use holdfast_service::App;
use holdfast_store::organizations;

/// Folder of the data unless `--data` names one.
const DATA: &str = ".holdfast-dev";
/// File with organization and keys, beside the data.
const STATE: &str = "dev.json";
const OWNER: &str = "you@example.com";
/// Requests a minute of the keys.
const RPM: i64 = 100_000;
/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(300);
/// A document to sign.
const SAMPLE: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/fixtures/retail-installment-contract.pdf"
));

#[derive(Args)]
pub struct Dev {
    /// Project of rules or a plugin (`component new`): built, checked and activated now and after each change.
    project: Option<PathBuf>,
    /// Folder of the data. It stays, with its keys, until you delete it.
    #[arg(long, default_value = DATA)]
    data: PathBuf,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Listen on an address that other machines can reach, without being asked.
    #[arg(long)]
    public: bool,
    /// Receiver of webhooks on this machine, such as http://localhost:3000/hooks.
    #[arg(long, value_name = "URL")]
    hooks: Option<Url>,
}

/// Organization and credentials of a data folder.
#[derive(Clone, Deserialize, Serialize)]
struct DevState {
    org: OrgId,
    key: String,
    test_key: String,
    /// Receivers that are registered, with their secrets.
    #[serde(default)]
    hooks: std::collections::BTreeMap<String, String>,
}

/// Runs until it is interrupted.
pub async fn run(dev: Dev, config: Config, output: &CommandOutput) -> Result<ExitCode, Failure> {
    // The sandboxes let anyone pass as a signer or payer, which real records must never meet.
    if config.is_production() {
        return Err("holdfast dev is for development; this configuration is of production".into());
    }

    permit_address(&dev)?;
    let project = dev.project.as_deref().map(Project::at).transpose()?;

    // Another server there would get the keys.
    let free = TcpListener::bind(dev.listen).await;
    drop(free.map_err(|error| format!("cannot listen on {}: {error}", dev.listen))?);
    fs::create_dir_all(&dev.data)?;

    // A folder of its own is no part of a repository that it lies in.
    if let Ok(mut file) = File::create_new(dev.data.join(".gitignore")) {
        file.write_all(b"*\n")?;
    }

    let app = start::start(settings(&dev, config)).await?;
    let state = set_up(&app, &dev.data).await?;
    // The server runs while the rest waits for it: samples go through its API like those of a partner.
    let serving = tokio::spawn(server::serve(app.clone(), termination()));
    tokio::select! {
        ended = serving => ended??,
        failed = work(&app, &dev, state, project, output) => failed?,
    }

    Ok(ExitCode::SUCCESS)
}

/// Asks before it listens on an address that other machines can reach: its providers are sandboxes, its uploads are
/// unlimited, and it calls addresses of this network.
fn permit_address(dev: &Dev) -> Result<(), Failure> {
    if dev.listen.ip().is_loopback() {
        return Ok(());
    }

    let warning = format!(
        "holdfast dev at {}: other machines can reach it, anybody can pass its identity checks and pay nothing, and it \
         calls addresses of this network",
        dev.listen
    );
    if dev.public {
        eprintln!("warning: {warning}");
        return Ok(());
    }

    // A script cannot be asked, so it has to state the intent.
    if !std::io::stdin().is_terminal() {
        return Err(format!("{warning}; give --public if that is meant").into());
    }

    eprint!("{warning}. Listen there? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;

    if answer.trim().eq_ignore_ascii_case("y") {
        Ok(())
    } else {
        Err("not started".into())
    }
}

/// Makes sample data, prints the exports and watches the project, for as long as the server runs.
async fn work(
    app: &App,
    dev: &Dev,
    mut state: DevState,
    project: Option<Project>,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let installation = Installation::new(app, dev, &state)?;
    installation.wait().await?;
    // A receiver that is known keeps its endpoint and secret, so that a restart needs no new configuration.
    if let Some(url) = &dev.hooks
        && !state.hooks.contains_key(url.as_str())
    {
        let secret = installation.register(url).await?;
        state.hooks.insert(url.to_string(), secret);
        store(&dev.data, &state)?;
    }

    let contract = installation.sample().await?;
    announce(app, &installation, &state, dev, &contract, output).await?;
    match project {
        Some(project) => installation.watch(project, &dev.data.canonicalize()?).await,
        None => std::future::pending().await,
    }
}

/// Returns the settings: the defaults, so that no provider or store of another installation is used, with addresses
/// of this machine allowed and without limits on uploads.
fn settings(dev: &Dev, config: Config) -> Config {
    // Secrets and addresses of the operator's settings file stay out: tests must not reach real providers.
    let mut own = Config {
        listen: dev.listen,
        data_dir: dev.data.clone(),
        env: Some(DeploymentEnvironment::Development),
        log: config.log,
        http: config.http,
        ..Config::default()
    };
    own.providers.allow_insecure = true;

    own.webhooks.allow_insecure = true;
    // Each saved file becomes an upload, far more than the quotas of a shared installation allow.
    own.rate_limits.component_uploads = u32::MAX;
    own.components.quota_bytes = 1 << 40;
    own.components.quota_versions = 1_000_000;
    own.components.quota_compile_minutes = 1_000_000;
    own.components.compiles_own_work = true;

    own
}

fn store(data: &Path, state: &DevState) -> Result<(), Failure> {
    keep(&data.join(STATE), &serde_json::to_vec_pretty(state)?)
}

/// Returns organization and keys of the data folder, made at the first start.
async fn set_up(app: &App, data: &Path) -> Result<DevState, Failure> {
    // A broken file is an error, not a first start: new keys would break the developer's shell.
    if let Ok(text) = fs::read(data.join(STATE)) {
        return serde_json::from_slice(&text)
            .map_err(|error| format!("{}: {error}", data.join(STATE).display()).into());
    }

    let now = Clock::default().now();
    let organization = Organization {
        id: OrgId::new(),
        name: "Crescent Auto Finance, LLC".into(),
        settings: OrgSettings::default(),
        created_at: now,
    };

    let mut tx = app.store.begin().await?;
    organizations::insert(&mut tx, &organization).await?;
    let mut keys = Vec::new();
    // One key for each side: test data is visible with a test key only.
    for org in [organization.id.clone(), organization.id.test()] {
        let record = ApiKeyRecord {
            id: KeyId::new(),
            org,
            name: Some("holdfast dev".into()),
            scopes: Scope::ALL.to_vec(),
            rate_limit_rpm: RPM,
            owner_email: Some(OWNER.into()),
            active: true,
            last_used_at: None,
            revision: 0,
        };

        keys.push(api_keys::issue(&mut tx, &record, "operator", now).await?);
    }

    tx.commit().await?;
    let mut keys = keys.into_iter();
    let (Some(key), Some(test_key)) = (keys.next(), keys.next()) else {
        return Err("keys were not made".into());
    };

    let state = DevState {
        org: organization.id,
        key: key.api_key,
        test_key: test_key.api_key,
        hooks: Default::default(),
    };
    // After the commit, so the file never names keys that do not exist. A crash in between makes others.
    store(data, &state)?;

    Ok(state)
}

/// Prints exports on standard output, and links on standard error.
async fn announce(
    app: &App,
    installation: &Installation,
    state: &DevState,
    dev: &Dev,
    contract: &str,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let mut exports = vec![
        ("HOLDFAST_URL", installation.url.clone()),
        // The key of the guides: signing without people, and the clock, take test keys only.
        ("HOLDFAST_API_KEY", state.test_key.clone()),
        ("HOLDFAST_LIVE_KEY", state.key.clone()),
        ("HOLDFAST_TOKEN", installation.token.clone()),
        ("HOLDFAST_ORG", state.org.to_string()),
    ];

    let secret = dev
        .hooks
        .as_ref()
        .and_then(|url| state.hooks.get(url.as_str()));
    if let Some(secret) = secret {
        exports.push(("HOLDFAST_WEBHOOK_SECRET", secret.clone()));
    }

    let lines: Vec<String> = exports
        .iter()
        .map(|(name, value)| format!("export {name}={value}"))
        .collect();
    let view: serde_json::Map<String, Value> = exports
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();

    // The exports alone are on stdout, so that a shell can evaluate them. The rest is for a person.
    let url = &installation.url;
    let note = format!(
        "holdfast dev runs at {url} until Ctrl-C; data in {}\n  guides    {url}/docs\n  console   {}\n  to sign   {contract}",
        dev.data.display(),
        console_link(app, state).await?
    );
    output.with_note(&Value::Object(view), &lines.join("\n"), &note);

    Ok(())
}

/// Returns a link with which the owner signs in once.
async fn console_link(app: &App, state: &DevState) -> Result<String, Failure> {
    let caller = Caller::named(state.org.clone(), "operator");
    let manager = UserManager {
        caller: &caller,
        role: None,
    };

    // A link works once, so each start needs another one for the same owner.
    let known = users::list(app, &state.org).await?;
    let (_, link) = match known.iter().find(|user| user.email == OWNER) {
        Some(user) => users::invite_again(app, &manager, user.user_id.as_str()).await?,
        None => {
            let (email, role) = (OWNER.into(), Role::Owner);
            users::invite(app, &manager, NewUser { email, role }).await?
        }
    };

    Ok(sessions::url(app, &link)?)
}

/// The running server, as its partners and users see it.
struct Installation {
    app: App,
    url: String,
    key: String,
    test_key: String,
    token: String,
    client: Client,
}

impl Installation {
    fn new(app: &App, dev: &Dev, state: &DevState) -> Result<Self, Failure> {
        let keys = start::keys(&app.config)?.generations(BEARER_TOKENS);
        // The token is made at each start, because unlike the keys it ends by itself.
        let (ttl, now) = (app.config.auth.max_token_ttl, app.clock.now());
        let token = access::issue_bearer(&keys, &state.org, OWNER, Role::Owner, ttl, now)?;
        Ok(Self {
            app: app.clone(),
            url: format!("http://{}", dev.listen),
            key: state.key.clone(),
            test_key: state.test_key.clone(),
            token: token.text,
            // A proxy of the environment cannot reach this machine's loopback address.
            client: Client::builder().no_proxy().build()?,
        })
    }

    /// Waits until the server answers.
    async fn wait(&self) -> Result<(), Failure> {
        // The server starts in a task of its own. Ten seconds without an answer mean that it failed.
        for _ in 0..200 {
            if self
                .client
                .get(format!("{}/healthz", self.url))
                .send()
                .await
                .is_ok()
            {
                return Ok(());
            }

            tokio::time::sleep(Duration::from_millis(50)).await;
        }

        Err(format!("nothing listens at {}", self.url).into())
    }

    fn api(&self, path: &str) -> String {
        format!("{}/api/v2{path}", self.url)
    }

    fn as_partner(&self, path: &str) -> RequestBuilder {
        self.client
            .post(self.api(path))
            .header("x-api-key", &self.key)
    }

    fn as_owner(&self, path: &str) -> RequestBuilder {
        self.client.post(self.api(path)).bearer_auth(&self.token)
    }

    /// Sends a request and returns `data` of its answer.
    async fn data(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let answer = request.send().await?;
        // The body is read in any case, because a refusal explains itself there.
        let failed = !answer.status().is_success();
        let body: Value = answer.json().await?;
        if failed {
            let details = body
                .get("details")
                .map_or_else(String::new, |details| format!(": {details:#}"));
            let error = body["error"].as_str().unwrap_or_default();
            return Err(format!("{error}{details}").into());
        }

        Ok(body["data"].clone())
    }

    /// Registers a receiver of all events, also of test data. Returns its secret.
    async fn register(&self, url: &Url) -> Result<String, Failure> {
        let body = json!({ "url": url, "events": ["*"], "description": "holdfast dev" });
        let made = self
            .data(self.as_owner("/webhooks/endpoints").json(&body))
            .await?;
        let secret = text(&made, "secret");

        // Events of test data go only to receivers that a test key has set.
        let body = json!({ "webhook_url": url, "webhook_secret": secret });
        let of_tests = self.client.patch(self.api("/partner/webhook"));
        self.data(of_tests.header("x-api-key", &self.test_key).json(&body))
            .await?;

        Ok(secret)
    }

    async fn read(&self, path: &str) -> Result<Value, Failure> {
        let request = self.client.get(self.api(path));
        self.data(request.header("x-api-key", &self.key)).await
    }

    /// Returns the signing link of the sample contract. A signed one is replaced by another.
    async fn sample(&self) -> Result<String, Failure> {
        let newest = self
            .read("/partner/envelopes?external_id=sample&limit=1")
            .await?;
        // The same sample over restarts, so that they do not fill the console with contracts.
        if let Some(id) = newest[0]["envelope_id"].as_str()
            && let Ok(link) = self.signing_link(id).await
        {
            return Ok(link);
        }

        let id = self.send_sample().await?;
        self.signing_link(&id).await
    }

    async fn signing_link(&self, id: &str) -> Result<String, Failure> {
        let path = format!("/partner/envelopes/{id}/signing-links");
        let links = self.read(&path).await?;
        Ok(text(&links["signers"][0], "embed_url"))
    }

    /// Sends a contract to sign. Returns the id of its envelope.
    async fn send_sample(&self) -> Result<String, Failure> {
        let areas = json!([{ "page": 1, "x": 0.1, "y": 0.85, "w": 0.3, "h": 0.04 }]);
        let fields = json!([{
            "name": "Signature", "type": "signature", "role": "Buyer",
            "placement": { "mode": "absolute", "areas": areas },
        }]);
        let file = Part::bytes(SAMPLE).file_name("contract.pdf");
        let form = Form::new()
            .part("file", file.mime_str("application/pdf")?)
            .text("name", "Retail installment contract")
            .text("fields_json", fields.to_string());
        let template = self.as_partner("/partner/templates").multipart(form);
        let template = self.data(template).await?;
        let body = json!({
            "template_id": template["template_id"], "envelope_name": "Sample contract", "external_id": "sample",
            "customer_name": "Jordan Ellery", "customer_email": "jordan@example.com",
            "secured_party": { "name": "Crescent Auto Finance, LLC", "role": "assignee" },
        });
        let made = self.as_partner("/partner/envelopes").json(&body);

        Ok(text(&self.data(made).await?, "envelope_id"))
    }

    /// Builds, checks and swaps a project now and after each change of its files, until it is interrupted.
    async fn watch(&self, project: Project, data: &Path) -> Result<(), Failure> {
        let far_end = project.far_end().await?;
        let mut seen = None;
        loop {
            let now = Some(project.files(data));
            if seen == now {
                tokio::time::sleep(LOOK).await;
                continue;
            }

            // Noted before the build: a file that is saved during the build starts the next one.
            seen = now;
            let began = Instant::now();
            // A failure is shown and waited out. The author is in the middle of a change.
            match self.swap(&project, far_end.as_deref()).await {
                Ok(done) => eprintln!("{done} ({:.1} s)", began.elapsed().as_secs_f32()),
                Err(error) => eprintln!("not activated, the last one stays active: {error}"),
            }
        }
    }

    /// Builds a project, and activates its component after the checks of an upload and its script.
    async fn swap(
        &self,
        project: &Project,
        far_end: Option<&PlayedFarEnd>,
    ) -> Result<String, Failure> {
        let began = Instant::now();
        let file = project.build().await?;
        let built = began.elapsed().as_secs_f32();
        let bytes = fs::read(&file)?;
        let slot = slot_of(&bytes)?;
        let name = project.name();

        // Each build is a version of its own.
        let version = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)?
            .as_millis();
        let version = format!("0.0.{version}");
        let artifact = ComponentArtifact::uploaded(slot, &name, &version, bytes.clone().into());
        let form = Form::new()
            .part("file", Part::bytes(bytes).file_name("component.wasm"))
            .text("name", name.clone())
            .text("version", version.clone());
        let uploaded = self
            .data(self.as_owner("/components").multipart(form))
            .await?;
        let component_id = text(&uploaded, "component_id");

        // The rehearsal stands between upload and activation, so a plugin that
        // fails its script is never active.
        let mut body = json!({ "component_id": component_id, "reason": "holdfast dev" });
        if slot.is_provider() {
            let far_end = far_end
                .ok_or("a plugin needs a far-end.json beside it, which plays its service")?;

            // The upload has compiled it.
            if let Some(script) = project.script()? {
                far_end.play(script);
            }

            let script = far_end.script();
            let rehearsed = self.app.components.rehearse(artifact, &script).await;
            rehearsed.map_err(|reasons| {
                let reasons = reasons.iter().map(|reason| reason.message.as_str());
                reasons.collect::<Vec<_>>().join("\n  ")
            })?;
            body["instance"] = "dev".into();

            body["config"] = far_end.config();
        }

        let activated = self
            .as_owner(&format!("/component-slots/{slot}/activate"))
            .json(&body);
        let activated = self.data(activated).await?;
        let callback = match activated["callback_url"].as_str() {
            Some(url) => format!("; callbacks at {url}"),
            None => String::new(),
        };

        Ok(format!(
            "{name} {version} is active for {slot}{callback}; built in {built:.1} s"
        ))
    }
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn slot_of(bytes: &[u8]) -> Result<Slot, Failure> {
    let inspected = inspection::inspect(bytes).map_err(|reasons| {
        let reasons = reasons.iter().map(|reason| reason.message.as_str());
        reasons.collect::<Vec<_>>().join("; ")
    })?;
    Ok(inspected.slot)
}
