//! Webhook endpoints: registration, changes, tests and deactivation (specification, "Webhook
//! endpoint management").

pub mod deliveries;
pub mod feed;

use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::idempotency::ResponseRecorder;
use crate::{Caller, Core, ServiceError, ValidationIssue, mails};
use holdfast_adapters::delivery::sender::WebhookSender;
use holdfast_adapters::delivery::sender::{DeliveryPayload, DeliveryTarget};
use holdfast_domain::change::FieldPatch;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::{EndpointId, KeyId, OrgId};
use holdfast_domain::webhook::{
    AttemptOutcome, DeliveryStatus, DisableReason, EncryptedSecret, Endpoint, EndpointHealth,
    EventSelector, PreviousSecret, WebhookSecret,
};
use holdfast_store::deliveries::{Delivery, DeliveryAttempt};
use holdfast_store::webhooks::OwnedEndpoint;
use holdfast_store::{self as store, WriteTransaction, api_keys, events, organizations, webhooks};

/// Maximum number of endpoints per organization (specification, "Limits").
pub const PER_ORGANIZATION: usize = 25;
const PER_KEY: usize = 10;
/// Time for which the previous secret also signs after a rotation.
const GRACE: Duration = Duration::from_secs(48 * 3600);
const SECRET_NOTE: &str = "Keep this secret now: it is shown this once";

/// Body of `POST /webhooks/endpoints`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "url": "https://hooks.example.com/holdfast", "description": "Deal desk", "events": ["envelope.*", "vault.stored"],
}]))]
pub struct CreateEndpoint {
    /// A public `https` URL.
    #[schemars(length(max = 2000))]
    pub url: String,
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// Event types, `<domain>.*`, or `*`.
    #[schemars(length(min = 1, max = 100))]
    pub events: Vec<String>,
    /// API key that the endpoint is attached to. Without one, it belongs to the whole organization.
    pub partner_key_id: Option<String>,
}

/// Body of `PATCH /webhooks/endpoints/{id}`. Absent members stay unchanged.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "events": ["*"], "is_active": true }]))]
pub struct ChangeEndpoint {
    #[schemars(length(max = 2000))]
    pub url: Option<String>,
    /// Null removes it.
    #[serde(default)]
    #[schemars(with = "Option<String>", length(max = 500))]
    pub description: FieldPatch<String>,
    #[schemars(length(min = 1, max = 100))]
    pub events: Option<Vec<String>>,
    /// False ends pending retries at once.
    pub is_active: Option<bool>,
}

/// Body of `PATCH /partner/webhook`. Null clears a member; absent members stay unchanged.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "webhook_url": "https://hooks.example.com/holdfast", "webhook_secret": "a secret of sixteen or more",
}]))]
pub struct LegacyWebhook {
    #[serde(default)]
    #[schemars(with = "Option<String>", length(max = 2000))]
    pub webhook_url: FieldPatch<String>,
    /// At least 16 characters.
    #[serde(default)]
    #[schemars(with = "Option<String>", length(min = 16, max = 500))]
    pub webhook_secret: FieldPatch<String>,
}

/// Endpoint without its secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "endpoint_id": "whep_01jdk7m3e8f4x9s2w5v6b0c1de", "url": "https://hooks.example.com/holdfast",
    "description": "Deal desk", "events": ["envelope.*", "vault.stored"], "is_active": true,
    "partner_key_id": null, "secret_set": true, "grace_expires_at": null,
    "failing_since": null, "paused_until": null, "disabled_reason": null, "disabled_at": null,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
}]))]
pub struct EndpointView {
    pub endpoint_id: EndpointId,
    pub url: String,
    pub description: Option<String>,
    pub events: Vec<String>,
    pub is_active: bool,
    /// Null for an endpoint of the whole organization.
    pub partner_key_id: Option<KeyId>,
    /// Whether deliveries are signed.
    pub secret_set: bool,
    /// End of the period in which deliveries also carry the signature of the previous secret.
    pub grace_expires_at: Option<Timestamp>,
    /// Time since which every attempt has failed. After five days the endpoint is disabled.
    pub failing_since: Option<Timestamp>,
    /// End of a pause. After ten consecutive failures, single deliveries probe the endpoint.
    pub paused_until: Option<Timestamp>,
    /// Reason for which this service disabled it: `gone` (it answered 410) or `failing`.
    pub disabled_reason: Option<DisableReason>,
    pub disabled_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl EndpointView {
    fn of(endpoint: &Endpoint, now: Timestamp) -> Self {
        let previous = endpoint.previous.as_ref().map(|previous| previous.until);
        let (disabled_reason, disabled_at) = endpoint.health.disabled.unzip();
        Self {
            endpoint_id: endpoint.id.clone(),
            url: endpoint.url.clone(),
            description: endpoint.description.clone(),
            events: endpoint
                .selectors
                .iter()
                .map(|selector| selector.as_str().to_owned())
                .collect(),
            is_active: endpoint.is_active,
            partner_key_id: endpoint.key.clone(),
            secret_set: endpoint.secret.is_some(),
            grace_expires_at: previous.filter(|until| now < *until),
            failing_since: endpoint.health.failing_since,
            paused_until: endpoint.health.paused_until.filter(|until| now < *until),
            disabled_reason,
            disabled_at,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
        }
    }
}

/// Endpoint with its new secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "endpoint_id": "whep_01jdk7m3e8f4x9s2w5v6b0c1de", "url": "https://hooks.example.com/holdfast",
    "description": "Deal desk", "events": ["*"], "is_active": true,
    "partner_key_id": null, "secret_set": true, "grace_expires_at": null,
    "failing_since": null, "paused_until": null, "disabled_reason": null, "disabled_at": null,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.000Z",
    "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD0NVb7fAs6Q8=",
    "secret_note": "Keep this secret now: it is shown this once",
}]))]
pub struct WithSecret {
    #[serde(flatten)]
    pub endpoint: EndpointView,
    /// The key of `X-Service-Signature`, to be used literally.
    pub secret: String,
    secret_note: &'static str,
}

impl WithSecret {
    fn of(endpoint: &Endpoint, secret: &WebhookSecret, now: Timestamp) -> Self {
        Self {
            endpoint: EndpointView::of(endpoint, now),
            secret: secret.reveal().to_owned(),
            secret_note: SECRET_NOTE,
        }
    }
}

/// Result of the legacy setting.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "webhook_url": "https://hooks.example.com/holdfast", "secret_set": true,
    "endpoint_id": "whep_01jdk7m3e8f4x9s2w5v6b0c1de",
}]))]
pub struct LegacyView {
    /// Null if nothing is delivered.
    webhook_url: Option<String>,
    secret_set: bool,
    /// Null if there never was a URL.
    endpoint_id: Option<EndpointId>,
}

/// Result of a test.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "delivered": true, "status_code": 204 }]))]
pub struct EndpointTestResult {
    /// Whether the receiver answered 2xx.
    pub delivered: bool,
    /// Null without an answer.
    pub status_code: Option<u16>,
}

/// Returns the caller's endpoints, oldest first, or only those of the named key.
pub async fn list(
    core: &Core,
    caller: &Caller,
    key: Option<&str>,
) -> Result<Vec<EndpointView>, ServiceError> {
    let key = match key.map(KeyId::parse) {
        None => None,
        Some(Some(key)) => Some(key),
        // A malformed id matches no key.
        Some(None) => return Ok(Vec::new()),
    };
    let mut connection = core.store.read().await?;
    let found = webhooks::list(&mut connection, &caller.org, key.as_ref()).await?;

    let now = core.clock.now();
    Ok(found
        .iter()
        .map(|endpoint| EndpointView::of(endpoint, now))
        .collect())
}

/// Returns an endpoint; none if it was deleted.
pub async fn find(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<Option<EndpointView>, ServiceError> {
    let id = parse(id)?;
    let mut connection = core.store.read().await?;
    let found = webhooks::get(&mut connection, &caller.org, &id).await?;
    let now = core.clock.now();
    Ok(found.map(|endpoint| EndpointView::of(&endpoint, now)))
}

/// Registers an endpoint with a new secret.
pub async fn create(
    core: &Core,
    webhooks: &WebhookSender,
    caller: &Caller,
    request: CreateEndpoint,
    answer: &ResponseRecorder<WithSecret>,
) -> Result<WithSecret, ServiceError> {
    let mut issues = Vec::new();
    // Before the transaction, because checking a URL resolves its host name.
    let url = checked_url(webhooks, &request.url, "url", &mut issues).await;
    let selectors = selectors(&request.events, &mut issues);

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let key = match &request.partner_key_id {
        None => None,
        Some(text) => Some(own_key(&mut tx, &caller.org, text).await?),
    };

    // The lock serializes concurrent creates, so that the limits hold.
    organizations::lock(&mut tx, &caller.org).await?;
    admit(&mut tx, &caller.org, key.as_ref()).await?;
    let secret = WebhookSecret::generate();
    let mut endpoint = Endpoint {
        description: request.description,
        key,
        ..new_endpoint(caller, url, selectors, now)
    };
    endpoint.secret = Some(EncryptedSecret::encrypt(
        &secret,
        &endpoint.id,
        &core.cipher,
    ));

    webhooks::insert(&mut tx, &endpoint).await?;
    let shown = WithSecret::of(&endpoint, &secret, now);
    answer.commit(tx, &shown).await?;
    tracing::info!(endpoint = %endpoint.id, actor = caller.actor, "webhook endpoint registered");

    Ok(shown)
}

fn new_endpoint(
    caller: &Caller,
    url: String,
    selectors: Vec<EventSelector>,
    now: Timestamp,
) -> Endpoint {
    Endpoint {
        id: EndpointId::new(),
        org: caller.org.clone(),
        url,
        description: None,
        selectors,
        is_active: true,
        key: None,
        legacy: false,
        secret: None,
        previous: None,
        created_by: caller.creator(),
        created_at: now,
        updated_at: now,
        health: EndpointHealth::default(),
    }
}

/// Returns the normalized URL; a problem is added to the issues.
async fn checked_url(
    webhooks: &WebhookSender,
    text: &str,
    member: &str,
    issues: &mut Vec<ValidationIssue>,
) -> String {
    match webhooks.check(text).await {
        Ok(url) => return url.into(),
        Err(why) => issues.push(ValidationIssue::new(
            "invalid_url",
            &[member],
            "a public HTTPS URL",
            text,
            format!("The URL cannot be used: {why}"),
        )),
    }

    String::new()
}

fn selectors(texts: &[String], issues: &mut Vec<ValidationIssue>) -> Vec<EventSelector> {
    let mut selectors = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        match EventSelector::parse(text) {
            // A repeated selector is harmless: an endpoint gets an event once.
            Some(selector) if selectors.contains(&selector) => {}
            Some(selector) => selectors.push(selector),
            None => issues.push(ValidationIssue::new(
                "invalid_selector",
                &["events", &index.to_string()],
                "an event type, <domain>.* or *",
                text,
                format!("{text} selects no event; GET /webhooks/events lists them"),
            )),
        }
    }

    selectors
}

async fn own_key(
    tx: &mut WriteTransaction,
    org: &OrgId,
    text: &str,
) -> Result<KeyId, ServiceError> {
    let not_found = || ServiceError::NotFound("API key");
    let id = KeyId::parse(text).ok_or_else(not_found)?;
    let key = api_keys::by_id(&mut *tx, &id).await?;
    // A key of another organization is answered like an unknown one.
    let own = key.is_some_and(|key| key.org == *org);
    own.then_some(id).ok_or_else(not_found)
}

/// Checks the endpoint limits. The caller holds the organization's lock, so that concurrent
/// requests are counted one by one.
async fn admit(
    tx: &mut WriteTransaction,
    org: &OrgId,
    key: Option<&KeyId>,
) -> Result<(), ServiceError> {
    let endpoints = webhooks::list(&mut *tx, org, None).await?;
    // An endpoint of the whole organization counts for no key.
    let of_key = endpoints
        .iter()
        .filter(|endpoint| key.is_some() && endpoint.key.as_ref() == key);
    if endpoints.len() >= PER_ORGANIZATION || of_key.count() >= PER_KEY {
        return Err(ServiceError::Semantic("Endpoint limit reached".into()));
    }
    Ok(())
}

/// Changes an endpoint. Disabling it gives up pending deliveries; enabling or moving it resets its
/// health.
pub async fn change(
    core: &Core,
    webhooks: &WebhookSender,
    caller: &Caller,
    id: &str,
    request: ChangeEndpoint,
) -> Result<EndpointView, ServiceError> {
    let mut issues = Vec::new();
    // Before the transaction, because checking a URL resolves its host name.
    let url = match &request.url {
        None => None,
        Some(text) => Some(checked_url(webhooks, text, "url", &mut issues).await),
    };
    let chosen = request.events.as_deref();
    let chosen = chosen.map(|texts| selectors(texts, &mut issues));

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    let id = parse(id)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    // The dispatcher may disable the endpoint at the same time.
    let mut endpoint = locked(&mut tx, &caller.org, &id).await?;
    if let Some(url) = url {
        move_to(&mut endpoint, url);
    }

    request.description.apply(&mut endpoint.description);
    if let Some(selectors) = chosen {
        endpoint.selectors = selectors;
    }

    if let Some(is_active) = request.is_active {
        set_active(&mut tx, &mut endpoint, is_active, now).await?;
    }

    endpoint.updated_at = now;
    webhooks::update(&mut tx, &endpoint).await?;
    tx.commit().await?;
    tracing::info!(endpoint = %endpoint.id, actor = caller.actor, "webhook endpoint changed");

    Ok(EndpointView::of(&endpoint, now))
}

const NOT_FOUND: ServiceError = ServiceError::NotFound("Webhook endpoint");

fn parse(id: &str) -> Result<EndpointId, ServiceError> {
    EndpointId::parse(id).ok_or(NOT_FOUND)
}

async fn locked(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &EndpointId,
) -> Result<Endpoint, ServiceError> {
    webhooks::lock(tx, org, id).await?.ok_or(NOT_FOUND)
}

/// Sets the URL. The previous receiver's health does not apply to the new one.
fn move_to(endpoint: &mut Endpoint, url: String) {
    if endpoint.url != url {
        endpoint.url = url;
        // Moving it does not enable it, so the reason stays visible.
        endpoint.health = EndpointHealth {
            disabled: endpoint.health.disabled,
            ..EndpointHealth::default()
        };
    }
}

async fn set_active(
    tx: &mut WriteTransaction,
    endpoint: &mut Endpoint,
    is_active: bool,
    now: Timestamp,
) -> Result<(), ServiceError> {
    // Failures of before must not pause it again at its first one.
    if is_active && !endpoint.is_active {
        endpoint.health = EndpointHealth::default();
    }
    endpoint.is_active = is_active;
    // Otherwise they would all be sent when it is enabled again.
    if !is_active {
        store::deliveries::give_up(tx, endpoint, now).await?;
    }
    Ok(())
}

/// Deleted endpoint. Its log remains.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "endpoint_id": "whep_01jdk7m3e8f4x9s2w5v6b0c1de", "deleted": true }]))]
pub struct DeletedEndpoint {
    endpoint_id: EndpointId,
    deleted: bool,
}

/// Deletes an endpoint and gives up its deliveries, including those in progress.
pub async fn delete(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<DeletedEndpoint, ServiceError> {
    let id = parse(id)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let endpoint = locked(&mut tx, &caller.org, &id).await?;
    // The row stays, because its log refers to it.
    webhooks::delete(&mut tx, &endpoint, now).await?;
    store::deliveries::give_up(&mut tx, &endpoint, now).await?;
    tx.commit().await?;

    tracing::info!(endpoint = %id, actor = caller.actor, "webhook endpoint deleted");
    Ok(DeletedEndpoint {
        endpoint_id: id,
        deleted: true,
    })
}

/// Gives an endpoint a new secret. The previous one also signs for another 48 hours.
pub async fn rotate(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<WithSecret>,
) -> Result<WithSecret, ServiceError> {
    let id = parse(id)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut endpoint = locked(&mut tx, &caller.org, &id).await?;
    let secret = WebhookSecret::generate();
    let sealed = EncryptedSecret::encrypt(&secret, &id, &core.cipher);
    // The receiver cannot switch at the same moment, so both secrets sign for a while.
    endpoint.previous = endpoint.secret.replace(sealed).map(|old| PreviousSecret {
        secret: old,
        until: now + GRACE,
    });

    endpoint.updated_at = now;
    webhooks::update(&mut tx, &endpoint).await?;
    let shown = WithSecret::of(&endpoint, &secret, now);
    answer.commit(tx, &shown).await?;
    tracing::info!(endpoint = %id, actor = caller.actor, "webhook secret rotated");

    Ok(shown)
}

/// Sends a test event to one endpoint, active or not, and returns the result. The attempt is logged
/// without the receiver's answer.
pub async fn test(
    core: &Core,
    webhooks: &WebhookSender,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<EndpointTestResult>,
) -> Result<EndpointTestResult, ServiceError> {
    let id = parse(id)?;
    let mut connection = core.store.read().await?;
    let endpoint = webhooks::get(&mut connection, &caller.org, &id).await?;
    drop(connection);
    let endpoint = endpoint.ok_or(NOT_FOUND)?;
    let now = core.clock.now();
    let data = json!({ "message": "A test, asked for by an administrator" });

    let test = EventType::WebhookTest;
    let event = Event::of_organization(endpoint.org.clone(), test, now, data);
    let mut delivery = Delivery::new(&event, endpoint.id.clone(), now);
    let parcel = DeliveryPayload {
        delivery: delivery.id.clone(),
        event: event.event_id.clone(),
        event_type: event.event_type,
        body: Bytes::from(event.body()),
    };

    let sealed_otherwise =
        || ServiceError::Internal("the secret is sealed with another key".into());
    let target = DeliveryTarget::of(&endpoint, &core.cipher).ok_or_else(sealed_otherwise)?;
    // No transaction is open: the receiver may take ten seconds.
    let outcome = webhooks.send(&target, &parcel, now).await;
    let tested = EndpointTestResult {
        delivered: outcome.is_success(),
        status_code: outcome.status,
    };

    // Recorded as ended, so that no worker sends it again.
    delivery.attempts = 1;
    delivery.due_at = None;
    delivery.status = if tested.delivered {
        DeliveryStatus::Delivered
    } else {
        DeliveryStatus::Failed
    };

    let withheld = AttemptOutcome {
        body: None,
        ..outcome
    };
    let mut tx = core.store.begin().await?;
    events::insert(&mut tx, &event);
    store::deliveries::insert(&mut tx, delivery.clone());

    let attempt = DeliveryAttempt::of(1, now, withheld);
    store::deliveries::insert_attempt(&mut tx, &delivery, &attempt).await?;
    answer.commit(tx, &tested).await?;

    Ok(tested)
}

/// Legacy setting of an API key. Changes the key's own endpoint, creating it if there is none.
pub async fn set_legacy(
    core: &Core,
    webhooks: &WebhookSender,
    caller: &Caller,
    key: &KeyId,
    request: LegacyWebhook,
) -> Result<LegacyView, ServiceError> {
    let mut issues = Vec::new();
    let url = match &request.webhook_url {
        FieldPatch::Set(text) => {
            FieldPatch::Set(checked_url(webhooks, text, "webhook_url", &mut issues).await)
        }
        FieldPatch::Clear => FieldPatch::Clear,
        FieldPatch::Keep => FieldPatch::Keep,
    };

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    let secret = request.webhook_secret.map(WebhookSecret::of);
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;

    // Concurrent calls must not create two endpoints.
    organizations::lock(&mut tx, &caller.org).await?;
    let mut own = webhooks::list(&mut tx, &caller.org, Some(key)).await?;
    own.retain(|endpoint| endpoint.legacy);
    let endpoint = match (own.pop(), url) {
        (Some(known), url) => {
            let mut endpoint = locked(&mut tx, &caller.org, &known.id).await?;
            match url {
                FieldPatch::Set(url) => {
                    move_to(&mut endpoint, url);
                    // Setting a URL again is how a partner of this interface enables its endpoint.
                    set_active(&mut tx, &mut endpoint, true, now).await?;
                }
                FieldPatch::Clear => set_active(&mut tx, &mut endpoint, false, now).await?,
                FieldPatch::Keep => {}
            }

            if !matches!(secret, FieldPatch::Keep) {
                let seal = |secret| EncryptedSecret::encrypt(&secret, &endpoint.id, &core.cipher);
                secret.map(seal).apply(&mut endpoint.secret);
                // A secret set by the caller replaces the old one at once, without a grace period.
                endpoint.previous = None;
            }

            endpoint.updated_at = now;
            webhooks::update(&mut tx, &endpoint).await?;
            Some(endpoint)
        }
        (None, FieldPatch::Set(url)) => {
            admit(&mut tx, &caller.org, Some(key)).await?;
            let mut endpoint = Endpoint {
                key: Some(key.clone()),
                legacy: true,
                ..new_endpoint(caller, url, vec![EventSelector::all()], now)
            };
            let seal = |secret| EncryptedSecret::encrypt(&secret, &endpoint.id, &core.cipher);
            secret.map(seal).apply(&mut endpoint.secret);

            webhooks::insert(&mut tx, &endpoint).await?;
            Some(endpoint)
        }
        (None, _) if matches!(secret, FieldPatch::Set(_)) => {
            return Err(ServiceError::invalid(
                "missing",
                &["webhook_url"],
                "a public HTTPS URL",
                "null",
                "There is no endpoint yet that could have a secret",
            ));
        }
        (None, _) => None,
    };

    tx.commit().await?;
    Ok(LegacyView {
        webhook_url: endpoint
            .as_ref()
            .filter(|endpoint| endpoint.is_active)
            .map(|endpoint| endpoint.url.clone()),
        secret_set: endpoint
            .as_ref()
            .is_some_and(|endpoint| endpoint.secret.is_some()),
        endpoint_id: endpoint.map(|endpoint| endpoint.id),
    })
}

/// Disables an endpoint because of its receiver's behaviour at `url`, and informs its owner.
pub async fn disable(
    core: &Core,
    disabled: &OwnedEndpoint,
    url: &str,
    reason: DisableReason,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let (org, id) = (&disabled.org, &disabled.endpoint);
    let mut tx = core.store.begin().await?;
    let found = webhooks::lock(&mut tx, org, id).await?;

    // The endpoint may have moved or been disabled since the failed attempt.
    let Some(mut endpoint) = found.filter(|found| found.is_active && found.url == url) else {
        return Ok(());
    };

    // Its pending deliveries end, too: they would only fail against the same receiver.
    set_active(&mut tx, &mut endpoint, false, now).await?;
    endpoint.health.disabled = Some((reason, now));
    endpoint.updated_at = now;
    webhooks::update(&mut tx, &endpoint).await?;
    // In this transaction, so that no endpoint is disabled without a mail.
    mails::endpoint_disabled(&mut tx, org, id, now).await?;
    tx.commit().await?;
    tracing::warn!(endpoint = %id, %reason, "webhook endpoint disabled");

    Ok(())
}

/// Event type of the catalog.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "event_type": "vault.stored", "domain": "vault", "description": "The authoritative copy is in the vault",
    "data": ["envelope_id", "customer_id", "external_id", "path", "hash"],
}]))]
pub struct CatalogEntry {
    event_type: &'static str,
    /// `<domain>.*` selects all types of the domain.
    domain: &'static str,
    description: &'static str,
    /// Members of the event's `data`.
    data: Vec<&'static str>,
}

/// Returns all event types that an endpoint can select.
pub fn catalog() -> Vec<CatalogEntry> {
    let entry = |event_type: &EventType| {
        let (description, members) = event_type.described();
        // These two are about no envelope.
        let common: &[&str] = match event_type {
            EventType::BulkCompleted | EventType::WebhookTest => &[],
            _ => &["envelope_id", "customer_id", "external_id"],
        };

        let name = event_type.as_str();
        CatalogEntry {
            event_type: name,
            domain: name.split('.').next().unwrap_or(name),
            description,
            data: [common, members].concat(),
        }
    };

    EventType::ALL.iter().map(entry).collect()
}
