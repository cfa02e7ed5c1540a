//! `holdfast listen`, `trigger` and `events`: webhooks on a machine without a public address, from the feed of events.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::output::CommandOutput;
use super::{Failure, termination};
use holdfast_adapters::delivery::{sender, signature};
use holdfast_base::tls;
use holdfast_domain::clock;
use holdfast_domain::event::EventType;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::EventId;
use holdfast_domain::webhook::WebhookSecret;
use holdfast_http::sample_event;
use holdfast_platform::webhooks::feed::EventView;

/// Seconds that a request for events waits for one.
const WAIT: u64 = 20;
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time between two tries.
const LONGEST: Duration = Duration::from_secs(30);

/// Installation and key.
#[derive(Args)]
pub struct Access {
    /// Address of the installation, such as https://sign.example.
    #[arg(long, env = "HOLDFAST_URL")]
    url: Url,
    /// API key with the scope webhooks:listen.
    #[arg(long, env = "HOLDFAST_API_KEY", hide_env_values = true)]
    api_key: String,
}

/// Receiver on this machine.
#[derive(Args)]
pub struct Receiver {
    /// Address of your receiver, such as http://localhost:3000/hooks.
    #[arg(long)]
    forward: Url,
    /// Secret that signs; one of `listen` when absent.
    #[arg(long, env = "HOLDFAST_WEBHOOK_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

#[derive(Args)]
pub struct Listen {
    #[command(flatten)]
    access: Access,
    /// Address of your receiver, such as http://localhost:3000/hooks. Events are only printed when absent.
    #[arg(long)]
    forward: Option<Url>,
    /// Types of events, separated by commas; all when absent.
    #[arg(long)]
    types: Option<String>,
    /// Begin with the oldest event that is kept, instead of the next one.
    #[arg(long)]
    from_start: bool,
    /// File with the last event that was handled, and the secret. A file of this installation and key in the user's
    /// state folder when absent.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

#[derive(Args)]
pub struct Trigger {
    /// Type of the event, such as vault.stored.
    #[arg(value_parser = event_type)]
    event_type: EventType,
    #[command(flatten)]
    receiver: Receiver,
}

#[derive(Subcommand)]
pub enum EventsCommand {
    /// Send an event again to the endpoints that subscribe to it, or to a receiver on this machine.
    Resend {
        event: String,
        #[command(flatten)]
        access: Access,
        /// Address of your receiver. The endpoints of the organization get the event when absent.
        #[arg(long)]
        forward: Option<Url>,
        /// Secret that signs forwarded events.
        #[arg(long, env = "HOLDFAST_WEBHOOK_SECRET", hide_env_values = true)]
        secret: Option<String>,
    },
}

fn event_type(text: &str) -> Result<EventType, String> {
    EventType::parse(text).ok_or_else(|| {
        let known: Vec<&str> = EventType::ALL.iter().map(|one| one.as_str()).collect();
        format!("unknown type of event; known are {}", known.join(", "))
    })
}

/// What a listener keeps.
#[derive(Default, Serialize, Deserialize)]
struct ListenerState {
    /// Last event that was handled.
    cursor: Option<EventId>,
    secret: String,
}

impl ListenerState {
    fn read(file: &Path) -> Result<Option<Self>, Failure> {
        // A file that is unreadable or of something else is an error: a new secret
        // would break the receiver's checks.
        match fs::read(file) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|error| {
                format!("{} is no state of a listener: {error}", file.display())
            })?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, file: &Path) -> Result<(), Failure> {
        super::keep(file, &serde_json::to_vec(self)?)
    }
}

/// Returns the file of an installation and key in the user's state folder.
fn usual_file(access: &Access) -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let states = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    let folder = states.ok_or("name a file with --state")?.join("holdfast");
    fs::create_dir_all(&folder)?;
    // A cursor means nothing to another installation or key. The digest keeps the key out of the file's name.
    let of = sha256(format!("{}\n{}", access.url, access.api_key).as_bytes());
    Ok(folder.join(format!("listen-{}.json", &of[..12])))
}

/// Client that follows no redirect: a key and signed events go to the named address only.
fn client() -> Result<Client, Failure> {
    let made = Client::builder().timeout(TIMEOUT);
    Ok(made.redirect(Policy::none()).build()?)
}

/// Answer with events.
#[derive(Deserialize)]
struct FeedPage {
    data: Vec<EventView>,
}

/// Requests of an installation.
struct Installation<'a> {
    access: &'a Access,
    http: Client,
}

impl<'a> Installation<'a> {
    fn new(access: &'a Access) -> Result<Self, Failure> {
        tls::use_one();
        let http = client()?;
        Ok(Self { access, http })
    }

    fn address(&self, path: &str) -> String {
        let url = self.access.url.as_str().trim_end_matches('/');
        format!("{url}/api/v2/partner/events{path}")
    }

    /// Sends a request. An error has the message of the API.
    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Value, AskError> {
        let key = &self.access.api_key;
        let answer = request.header("x-api-key", key).send().await;
        let answer = answer.map_err(|error| AskError::Away(error.to_string()))?;
        let status = answer.status();
        let body = answer.bytes().await;
        let body = body.map_err(|error| AskError::Away(error.to_string()))?;
        let body = serde_json::from_slice::<Value>(&body);
        if status.is_success() {
            return body.map_err(|error| AskError::Refused(error.to_string()));
        }

        // A proxy in between may answer with a page instead of JSON, so the status is the fallback.
        let told = body.unwrap_or_default();
        let told = told["error"].as_str().unwrap_or(status.as_str()).to_owned();
        // A restart or a rate limit ends by itself, so `listen` tries again.
        // Another refusal needs the operator.
        Err(match status {
            StatusCode::GONE => AskError::Gone,
            StatusCode::TOO_MANY_REQUESTS => AskError::Away(told),
            _ if status.is_server_error() => AskError::Away(told),
            _ => AskError::Refused(told),
        })
    }

    async fn events(&self, parameters: &[(&str, String)]) -> Result<Vec<EventView>, AskError> {
        let address = Url::parse_with_params(&self.address(""), parameters);
        let address = address.map_err(|error| AskError::Refused(error.to_string()))?;
        let request = self.http.get(address);
        let page = serde_json::from_value::<FeedPage>(self.ask(request).await?);
        let page = page.map_err(|error| AskError::Refused(error.to_string()))?;
        Ok(page.data)
    }
}

/// Why an installation did not answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    /// It cannot be reached, or is overloaded.
    #[error("the installation does not answer: {0}")]
    Away(String),
    /// The feed does not go back to the last event.
    #[error("the feed does not go back to the last event that was handled")]
    Gone,
    #[error("{0}")]
    Refused(String),
}

/// Sends an event to a receiver as the service does. Returns the status, if there was an answer.
async fn forward(
    http: &Client,
    to: &Url,
    secret: &str,
    event: &EventView,
) -> Result<StatusCode, String> {
    // The signatures cover exactly these bytes, so the event is serialized once.
    let body = serde_json::to_vec(event).map_err(|error| error.to_string())?;
    let (secret, now) = (WebhookSecret::of(secret.to_owned()), clock::of_machine());
    let request = http
        .post(to.clone())
        .header("content-type", "application/json")
        // Receivers that check who calls see what they see from the service.
        .header("user-agent", sender::USER_AGENT)
        .header("x-service-event", &event.event_type)
        .header("x-service-signature", signature::of_body(&secret, &body))
        .header("webhook-id", event.event_id.as_str())
        .header("webhook-timestamp", now.as_seconds().to_string())
        .header(
            "webhook-signature",
            signature::standard(&secret, &event.event_id, now, &body),
        )
        .body(body);

    let answer = request.send().await.map_err(|error| error.to_string())?;
    Ok(answer.status())
}

fn line(event: &EventView) -> String {
    let about = event.envelope_id.as_ref().map_or("", |id| id.as_str());
    format!(
        "{}  {:<28} {about}  {}",
        event.timestamp, event.event_type, event.event_id
    )
}

/// Prints events as they happen, and forwards them to a receiver, each until it accepts it.
#[expect(clippy::print_stderr, reason = "progress of a command for people")]
pub async fn listen(listen: Listen, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let installation = Installation::new(&listen.access)?;
    let file = match &listen.state {
        Some(file) => file.clone(),
        None => usual_file(&listen.access)?,
    };
    let known = ListenerState::read(&file)?;
    let is_new = known.is_none();

    // The secret stays the same over restarts, so the receiver needs it only once.
    let mut state = known.unwrap_or_else(|| ListenerState {
        cursor: None,
        secret: WebhookSecret::generate().reveal().to_owned(),
    });
    // A developer wants the next event, not the history of the organization.
    if is_new && !listen.from_start {
        let newest = [("newest", "true".to_owned()), ("limit", "1".to_owned())];
        state.cursor = installation
            .events(&newest)
            .await?
            .pop()
            .map(|event| event.event_id);
    }

    // Written before the first event, or a crash would lose the secret that is printed below.
    state.write(&file)?;
    eprintln!("listening to {}", listen.access.url);
    if listen.forward.is_some() {
        eprintln!("secret of forwarded webhooks: {}", state.secret);
    }

    // Each wait listens for the signal, because a request for events alone takes up to 20 seconds.
    let stop = termination();
    tokio::pin!(stop);
    let mut waits = Waits::default();
    loop {
        let mut parameters = vec![("wait", WAIT.to_string()), ("limit", "100".to_owned())];
        parameters.extend(listen.types.clone().map(|types| ("types", types)));
        parameters.extend(
            state
                .cursor
                .as_ref()
                .map(|id| ("starting_after", id.to_string())),
        );

        let found = tokio::select! {
            () = &mut stop => return Ok(ExitCode::SUCCESS),
            found = installation.events(&parameters) => found,
        };
        let found = match found {
            Ok(found) => found,
            Err(AskError::Refused(why)) => return Err(why.into()),
            Err(AskError::Gone) => {
                eprintln!(
                    "{}; going on with the oldest one that is kept",
                    AskError::Gone
                );
                state.cursor = None;
                continue;
            }
            Err(error) => {
                eprintln!("{error}");
                tokio::select! {
                    () = &mut stop => return Ok(ExitCode::SUCCESS),
                    () = waits.next() => continue,
                }
            }
        };

        waits = Waits::default();
        // Events are forwarded one after the other, so a receiver sees them in the order of the feed.
        for event in found {
            output.one(&json!(event), &line(&event));
            // The command stands in for the service, which retries too. A receiver
            // that restarts gets its event.
            let mut tries = Waits::default();
            while let Some(to) = &listen.forward {
                let sent = tokio::select! {
                    () = &mut stop => return Ok(ExitCode::SUCCESS),
                    sent = forward(&installation.http, to, &state.secret, &event) => sent,
                };
                let why = match sent {
                    Ok(status) if status.is_success() => break,
                    Ok(status) => format!("{to} answered {status}"),
                    Err(error) => error,
                };
                eprintln!("{}: {why}; trying again", event.event_id);

                tokio::select! {
                    () = &mut stop => return Ok(ExitCode::SUCCESS),
                    () = tries.next() => {}
                }
            }

            // A crash repeats this event at most. Receivers recognize its id.
            state.cursor = Some(event.event_id);
            state.write(&file)?;
        }
    }
}

/// Growing waits between tries.
#[derive(Default)]
struct Waits(u32);

impl Waits {
    async fn next(&mut self) {
        let wait = Duration::from_millis(500) * 2u32.saturating_pow(self.0);
        self.0 += 1;
        tokio::time::sleep(wait.min(LONGEST)).await;
    }
}

/// Sends a sample of an event to a receiver.
pub async fn trigger(trigger: Trigger, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let sample = sample_event(trigger.event_type);
    let mut event: EventView = serde_json::from_value(sample)?;
    // Receivers drop ids that they know, so a fixed id would arrive only once.
    event.event_id = EventId::new();
    event.timestamp = clock::of_machine();

    sent(
        &trigger.receiver.forward,
        trigger.receiver.secret,
        &event,
        output,
    )
    .await
}

async fn sent(
    to: &Url,
    secret: Option<String>,
    event: &EventView,
    output: &CommandOutput,
) -> Result<ExitCode, Failure> {
    tls::use_one();
    let secret = secret
        .ok_or("the secret that signs is required: --secret, as `holdfast listen` printed it")?;
    let http = client()?;
    // One try only: a person is waiting and sees the answer.
    let status = forward(&http, to, &secret, event).await?;
    let value = json!({ "event": event, "status": status.as_u16() });
    output.one(&value, &format!("{}\n{to} answered {status}", line(event)));

    Ok(if status.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs a command about events.
pub async fn events(command: EventsCommand, output: &CommandOutput) -> Result<ExitCode, Failure> {
    let EventsCommand::Resend {
        event,
        access,
        forward,
        secret,
    } = command;
    let installation = Installation::new(&access)?;

    // The id becomes a part of the path, so a text that is no id must not reach the address.
    let id = EventId::parse(&event).ok_or("not an event id (evt_…)")?;
    // A receiver on this machine is not registered, so the event is fetched and sent from here.
    if let Some(to) = &forward {
        let read = installation
            .http
            .get(installation.address(&format!("/{id}")));
        let found = installation.ask(read).await?;
        let found: EventView = serde_json::from_value(found["data"].clone())?;
        return sent(to, secret, &found, output).await;
    }

    let again = installation
        .http
        .post(installation.address(&format!("/{id}/resend")));
    let made = installation.ask(again).await?;
    let made = made["data"].as_array().cloned().unwrap_or_default();
    let lines: Vec<String> = made
        .iter()
        .map(|one| format!("{} to {}", one["delivery_id"], one["endpoint_id"]).replace('"', ""))
        .collect();
    let text = if lines.is_empty() {
        "no active endpoint subscribes to this event".to_owned()
    } else {
        lines.join("\n")
    };
    output.one(&json!(made), &text);

    Ok(ExitCode::SUCCESS)
}
