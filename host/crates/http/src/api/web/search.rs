//! Search of envelopes, for web-app users.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{PageWindow, ValidQuery};
use crate::reply::CursorReply;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{EnvelopeKind, EnvelopeStatus, PaymentStatus, SecuredParty};
use holdfast_domain::id::{CustomerId, EnvelopeId};
use holdfast_service::App;
use holdfast_service::envelopes;
use holdfast_store::search::{EnvelopeSearch, FoundEnvelope};

/// Longest text to search for, in characters.
const TEXT_LIMIT: usize = 200;

#[derive(Deserialize, JsonSchema)]
pub struct SearchQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// Id, begin of the external id, or a part of the name, or of the name or address of a signer; at most 200
    /// characters. Case of ASCII letters does not matter.
    q: Option<String>,
    /// Statuses, separated by commas.
    status: Option<String>,
    kind: Option<EnvelopeKind>,
    customer_id: Option<CustomerId>,
    /// Only envelopes created at this time or later.
    created_from: Option<Timestamp>,
    /// Only envelopes created before this time.
    created_before: Option<Timestamp>,
    /// Only vaulted envelopes with a lower compliance score.
    #[schemars(range(min = 1, max = 100))]
    score_below: Option<i64>,
    /// A part of the name of the secured party, or of its other data; at most 200 characters.
    secured_party: Option<String>,
    /// Address of a custodian.
    custodian: Option<String>,
    /// Only envelopes that can still be signed and expire before this time.
    expires_before: Option<Timestamp>,
    payment_status: Option<PaymentStatus>,
    /// `true`: only envelopes that stopped with an error on their way into the vault.
    #[serde(default)]
    stuck: bool,
    /// Last id of the page before.
    starting_after: Option<EnvelopeId>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

/// Envelope that a search found.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_name": "Retail instalment contract 2041",
    "envelope_kind": "esign", "status": "vaulted", "customer_id": "cust_01jdk7m3e8f4x9s2w5v6b0c1db",
    "external_id": "deal-2041", "compliance_score": 88, "created_at": "2026-11-21T09:30:00.000Z",
    "updated_at": "2026-11-21T09:41:07.250Z", "expires_at": "2026-12-21T09:30:00.000Z",
    "secured_party": { "name": "First Example Bank", "role": "assignee" },
}]))]
pub struct EnvelopeHit {
    envelope_id: EnvelopeId,
    envelope_name: String,
    envelope_kind: EnvelopeKind,
    status: EnvelopeStatus,
    customer_id: CustomerId,
    external_id: Option<String>,
    /// Score of the certificate; null before the envelope is vaulted.
    compliance_score: Option<i64>,
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: Option<Timestamp>,
    secured_party: Option<SecuredParty>,
}

impl From<FoundEnvelope> for EnvelopeHit {
    fn from(found: FoundEnvelope) -> Self {
        Self {
            envelope_id: found.id,
            envelope_name: found.name,
            envelope_kind: found.kind,
            status: found.status,
            customer_id: found.customer,
            external_id: found.external_id,
            compliance_score: found.compliance_score,
            created_at: found.created_at,
            updated_at: found.updated_at,
            expires_at: found.expires_at,
            secured_party: found.secured_party,
        }
    }
}

/// Returns the newest envelopes for which all conditions hold. Pages are stable: new envelopes do not move them.
pub async fn search(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::ReadEnvelopes>,
    ValidQuery(query): ValidQuery<SearchQuery>,
) -> Result<CursorReply<EnvelopeHit>, HttpError> {
    let behind = query.starting_after.is_some();
    let window = PageWindow::checked((query.page, query.limit), behind, 20, 100)?;
    let text = words("q", query.q)?;
    if query
        .score_below
        // The schema documents the range, and queries are not validated by schema.
        .is_some_and(|score| !(1..=100).contains(&score))
    {
        return Err(HttpError::bad_request("score_below must be 1 to 100"));
    }

    let search = EnvelopeSearch {
        text,
        statuses: statuses(query.status.as_deref().unwrap_or_default())?,
        kind: query.kind,
        customer: query.customer_id,
        created_from: query.created_from,
        created_before: query.created_before,
        score_below: query.score_below,
        secured_party: words("secured_party", query.secured_party)?,
        custodian: words("custodian", query.custodian)?,
        expires_before: query.expires_before,
        payment: query.payment_status,
        stuck: query.stuck,
        after: query.starting_after,
        ..EnvelopeSearch::default()
    };

    let found = envelopes::search(&app, &caller, &search, window.read()).await?;
    let hits = found.into_iter().map(EnvelopeHit::from).collect();
    Ok(window.reply(hits))
}

/// Reads a text to search for; none if it is empty.
fn words(name: &str, given: Option<String>) -> Result<Option<String>, HttpError> {
    let text = given.map(|text| text.trim().to_owned());
    let text = text.filter(|text| !text.is_empty());
    // A text is searched for in every envelope of the organization, so its length has a limit.
    match text {
        Some(text) if text.chars().count() > TEXT_LIMIT => Err(HttpError::bad_request(format!(
            "{name} has more than {TEXT_LIMIT} characters"
        ))),
        text => Ok(text),
    }
}

pub fn statuses(text: &str) -> Result<Vec<EnvelopeStatus>, HttpError> {
    let named = text.split(',').map(str::trim).filter(|one| !one.is_empty());
    let parsed = named.map(|one| {
        EnvelopeStatus::parse(one).ok_or_else(|| {
            let known = EnvelopeStatus::ALL.iter().map(|status| status.as_str());
            let known: Vec<&str> = known.collect();
            HttpError::bad_request(format!(
                "{one} is no status; known are {}",
                known.join(", ")
            ))
        })
    });

    parsed.collect()
}
