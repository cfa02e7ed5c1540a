//! Search of an organization's envelopes.

use crate::SqlConnection;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row as _};

use super::StoreError;
use super::dialect::SqlDialect;
use super::row::{json_text, query_rows, table_row};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{
    EnvelopeKind, EnvelopeStatus, OWN_METADATA, PaymentStatus, SecuredParty,
};
use holdfast_domain::id::{BatchId, CustomerId, EnvelopeId, OrgId};

/// Conditions of a search; all of them hold.
#[derive(Default)]
pub struct EnvelopeSearch {
    /// The id, the begin of the external id, or a part of the name, or of the name or address of a signer; in any
    /// case, of ASCII letters only on SQLite.
    pub text: Option<String>,
    /// Any of these; all if there are none.
    pub statuses: Vec<EnvelopeStatus>,
    pub kind: Option<EnvelopeKind>,
    pub customer: Option<CustomerId>,
    pub created_from: Option<Timestamp>,
    pub created_before: Option<Timestamp>,
    /// Only certificates with a lower score.
    pub score_below: Option<i64>,
    /// A part of the secured party's name or of its other data, in any case.
    pub secured_party: Option<String>,
    /// Address of a custodian.
    pub custodian: Option<String>,
    /// Only envelopes that can still be signed and expire before this time.
    pub expires_before: Option<Timestamp>,
    pub payment: Option<PaymentStatus>,
    /// Only envelopes that stopped with an error on their way into the vault.
    pub stuck: bool,
    /// The partner's own reference, exactly.
    pub external_id: Option<String>,
    pub updated_from: Option<Timestamp>,
    /// A member of the partner's own metadata, with its value.
    pub metadata: Option<(String, String)>,
    /// Address of a signer, in any case.
    pub signer_email: Option<String>,
    pub batch: Option<BatchId>,
    /// Only older envelopes than this.
    pub after: Option<EnvelopeId>,
    /// Number of envelopes to skip.
    pub skip: i64,
}

/// Envelope of a list or a search.
pub struct FoundEnvelope {
    pub id: EnvelopeId,
    pub name: String,
    pub kind: EnvelopeKind,
    pub status: EnvelopeStatus,
    pub customer: CustomerId,
    pub external_id: Option<String>,
    pub compliance_score: Option<i64>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub secured_party: Option<SecuredParty>,
}

/// Returns the newest envelopes that fit.
pub async fn envelopes(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    org: &OrgId,
    search: &EnvelopeSearch,
    limit: i64,
) -> Result<Vec<FoundEnvelope>, StoreError> {
    let mut conditions = conditions(dialect, org, search);
    if let Some(after) = &search.after {
        conditions.text("envelope_id < {}", after.as_str());
    }

    let text = statement(&conditions.all, &search.statuses, search.skip);
    // Each part reads the skipped rows as well: all of them may be of one status.
    let mut query = query_rows(AssertSqlSafe(text))
        .bind(org.bucket())
        .bind(limit.saturating_add(search.skip));
    for value in conditions.values {
        query = query.bind(value);
    }

    query.fetch_all(connection).await
}

/// Returns the number of envelopes that fit, on all pages.
pub async fn count(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    org: &OrgId,
    search: &EnvelopeSearch,
) -> Result<i64, StoreError> {
    let mut conditions = conditions(dialect, org, search);
    if !search.statuses.is_empty() {
        let named: Vec<String> = search
            .statuses
            .iter()
            .map(|one| format!("'{one}'"))
            .collect();
        conditions
            .all
            .push(format!("status in ({})", named.join(", ")));
    }

    // The second parameter of all these statements is a limit.
    let all = conditions.all.join(" and ");
    let text =
        format!("select count(*) as total from envelope where bucket = $1 and $2 > 0 and {all}");
    let mut query = sqlx::query(AssertSqlSafe(text))
        .bind(org.bucket())
        .bind(1_i64);
    for value in conditions.values {
        query = query.bind(value);
    }

    Ok(query.fetch_one(connection).await?.try_get("total")?)
}

/// Returns the conditions of a search, but its statuses and its place.
fn conditions(dialect: SqlDialect, org: &OrgId, search: &EnvelopeSearch) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.text("org_id = {}", org.as_str());
    if let Some(customer) = &search.customer {
        conditions.text("customer_id = {}", customer.as_str());
    }

    if let Some(kind) = search.kind {
        conditions.text("kind = {}", kind.as_str());
    }

    if let Some(from) = search.created_from {
        conditions.text("created_at >= {}", &from.to_string());
    }

    if let Some(before) = search.created_before {
        conditions.text("created_at < {}", &before.to_string());
    }

    if let Some(score) = search.score_below {
        conditions.all.push(format!("compliance_score < {score}"));
        // The condition of the index `envelope_below`, word for word.
        if score <= 100 {
            conditions.all.push("compliance_score < 100".into());
        }
    }

    if let Some(before) = search.expires_before {
        conditions.text("expires_at < {}", &before.to_string());
        // Others no longer expire. The condition of the index `envelope_expiring_of_org`, word for word.
        let open = "status in ('pending', 'uploaded', 'preparing', 'sent', 'viewed')";
        conditions.all.push(open.into());
    }

    if let Some(payment) = search.payment {
        // A word of an enumeration: as a literal, it finds the index `envelope_unpaid`.
        let is = format!("payment_status = '{}'", payment.as_str());
        conditions.all.push(is);
    }

    // A partial index has only intents that stopped, so the search need not read all envelopes.
    if search.stuck {
        let stopped = "envelope_id in (select envelope_id from vault_intent
             where bucket = $1 and failed_step is not null)";
        conditions.all.push(stopped.into());
    }

    if let Some(party) = &search.secured_party {
        let part = format!("%{}%", escaped(party));
        conditions.text("lower(secured_party) like lower({}) escape '!'", &part);
    }

    if let Some(custodian) = &search.custodian {
        let kept = "exists (select 1 from custodian c where c.bucket = envelope.bucket
             and c.envelope_id = envelope.envelope_id and lower(c.email) = lower({}))";
        conditions.text(kept, custodian);
    }

    // `lower` on both sides: `like` ignores case on SQLite, and does not on PostgreSQL.
    if let Some(text) = &search.text {
        let text = text.clone();
        let part = format!("%{}%", escaped(&text));
        let begin = format!("{}%", escaped(&text));
        let (id, begin, part) = (
            conditions.value(&text),
            conditions.value(&begin),
            conditions.value(&part),
        );

        conditions.all.push(format!(
            "(envelope_id = {id} or lower(external_id) like lower({begin}) escape '!'
                 or lower(name) like lower({part}) escape '!'
                 or exists (select 1 from signer s
                     where s.bucket = envelope.bucket and s.envelope_id = envelope.envelope_id
                         and (lower(s.name) like lower({part}) escape '!'
                             or lower(s.email) like lower({part}) escape '!')))"
        ));
    }

    if let Some(reference) = &search.external_id {
        conditions.text("external_id = {}", reference);
    }

    if let Some(from) = search.updated_from {
        conditions.text("updated_at >= {}", &from.to_string());
    }

    if let Some(email) = &search.signer_email {
        let signs = "exists (select 1 from signer s where s.bucket = envelope.bucket
             and s.envelope_id = envelope.envelope_id and lower(s.email) = lower({}))";
        conditions.text(signs, email);
    }

    if let Some(batch) = &search.batch {
        conditions.text("bulk_batch = {}", batch.as_str());
    }

    if let Some((member, value)) = &search.metadata {
        let own = dialect.json_member("metadata", OWN_METADATA, member);
        // A text is stored with quotation marks, a number or a boolean without.
        let text = conditions.value(&json_text(&Value::from(value.as_str())));
        let plain = conditions.value(value);
        conditions.all.push(format!("{own} in ({text}, {plain})"));
    }

    conditions
}

/// Writes the statement. Its second parameter is the number of envelopes with those to skip. Several statuses are searched one by one: each reads the newest of its own from an index, however
/// many envelopes have another status.
fn statement(conditions: &[String], statuses: &[EnvelopeStatus], skip: i64) -> String {
    let conditions = conditions.join(" and ");
    let part = |name: &str, more: &str| {
        format!(
            "select * from (
                 select {{columns}} from envelope where bucket = $1 and {conditions}{more} order by envelope_id desc limit $2
             ) {name}"
        )
    };

    // Each status once, even if the caller names it twice; words of an enumeration, not of the caller.
    let each = EnvelopeStatus::ALL
        .iter()
        .filter(|one| statuses.contains(one));
    let named = each.map(|one| part(&format!("of_{one}"), &format!(" and status = '{one}'")));
    let mut parts: Vec<String> = named.collect();
    if parts.is_empty() {
        parts.push(part("of_all", ""));
    }

    let parts = parts.join(" union all ");
    format!("{parts} order by envelope_id desc limit $2 - {skip} offset {skip}")
}

/// Conditions of a statement with bucket and limit as its first two parameters.
#[derive(Default)]
struct Conditions {
    all: Vec<String>,
    values: Vec<String>,
}

impl Conditions {
    /// Adds a condition with one parameter, written as `{}`.
    fn text(&mut self, condition: &str, value: &str) {
        let parameter = self.value(value);
        self.all.push(condition.replace("{}", &parameter));
    }

    fn value(&mut self, value: &str) -> String {
        self.values.push(value.to_owned());
        format!("${}", self.values.len() + 2)
    }
}

/// Escapes the wildcards of `like` with `!`.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '!' | '%' | '_') {
            escaped.push('!');
        }
        escaped.push(letter);
    }
    escaped
}

table_row! {
    FoundEnvelope of "envelope" by "envelope_id" {
        id: parsed("envelope_id", EnvelopeId::parse),
        name: text("name"),
        kind: parsed("kind", EnvelopeKind::parse),
        status: parsed("status", EnvelopeStatus::parse),
        customer: parsed("customer_id", CustomerId::parse),
        external_id: optional_text("external_id"),
        compliance_score: optional_number("compliance_score"),
        created_at: time("created_at"),
        updated_at: time("updated_at"),
        expires_at: optional_time("expires_at"),
        secured_party: optional_json("secured_party"),
    }
}
