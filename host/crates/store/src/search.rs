//! Search of an organization's envelopes.

use crate::SqlConnection;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row as _};

use super::dialect::SqlDialect;
use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, counts, questions};
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
    /// Only envelopes that wait for this. With `statuses`, both conditions hold.
    pub tab: Option<EnvelopeTab>,
    /// The oldest envelopes first instead of the newest.
    pub oldest_first: bool,
    /// Only envelopes behind this one in the order.
    pub after: Option<EnvelopeId>,
    /// Number of envelopes to skip.
    pub skip: i64,
}

/// What envelopes wait for. Each envelope is in one tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeTab {
    /// An act of the organization's own people: drafts, questions of signers, and signed ones on the way to the vault.
    NeedsYou,
    /// Others: signers, or a batch that prepares them.
    Waiting,
    /// An act that unblocks them: a signer cannot be reached or identified, the vault-in stopped, a payment is missing
    /// after the signatures, the envelope expired, or a signer declined.
    Stuck,
    /// Nothing.
    Done,
}

impl EnvelopeTab {
    pub const ALL: [Self; 4] = [Self::NeedsYou, Self::Waiting, Self::Stuck, Self::Done];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeedsYou => "needs-you",
            Self::Waiting => "waiting",
            Self::Stuck => "stuck",
            Self::Done => "done",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tab| tab.as_str() == text)
    }

    /// Returns how an envelope with a status gets into the tab; none if it never does.
    fn takes(self, status: EnvelopeStatus) -> Option<TabCondition> {
        use EnvelopeStatus::{
            Completed, Declined, Expired, Pending, Preparing, Sent, Uploaded, Vaulted, VaultedOut,
            Viewed, Voided,
        };

        match (self, status) {
            (Self::NeedsYou, Completed) => Some(TabCondition::Untroubled),
            (Self::NeedsYou, Sent | Viewed) => Some(TabCondition::Asked),
            (Self::Waiting, Sent | Viewed) => Some(TabCondition::Unasked),
            (Self::Stuck, Sent | Viewed | Completed) => Some(TabCondition::Troubled),
            (Self::NeedsYou, Pending | Uploaded)
            | (Self::Waiting, Preparing)
            | (Self::Stuck, Expired | Declined)
            | (Self::Done, Vaulted | VaultedOut | Voided) => Some(TabCondition::Any),
            _ => None,
        }
    }
}

/// What sets the envelopes of a status and a tab apart from other tabs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TabCondition {
    Troubled,
    Untroubled,
    /// Without a trouble, and with an open question of a signer.
    Asked,
    /// Without a trouble and an open question.
    Unasked,
    Any,
}

/// Number of envelopes up to which those with a trouble are counted.
pub const MOST_TROUBLES: i64 = 1_000;

/// Numbers of envelopes by tab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TabCounts {
    pub needs_you: i64,
    pub waiting: i64,
    pub stuck: i64,
    pub done: i64,
    /// Whether there are more troubles or questions than are counted: only the numbers of `done` and of all are exact then.
    pub is_capped: bool,
}

/// Returns the query for envelopes with a signer who cannot be reached or did not prove their identity, and has not
/// signed. `org` is the parameter of the organization.
fn trouble_of_signing(org: &str) -> String {
    let (unreached, unidentified) = (unreached(org), unidentified(org));
    format!("{unreached} union all {unidentified}")
}

/// Returns the query for envelopes with an open question of a present signer who has not signed. `org` is the parameter of
/// the organization.
fn open_question(org: &str) -> String {
    let is_open = questions::IS_OPEN;
    format!(
        "select asked.envelope_id from signer_question asked
         where asked.bucket = $1 and asked.org_id = {org} and {is_open}"
    )
}

/// Like [`trouble_of_signing`], for a signed envelope that is not vaulted.
fn trouble_of_vaulting(org: &str) -> String {
    let (stopped, unpaid) = (stopped(), unpaid(org));
    format!("{stopped} union all {unpaid}")
}

/// Returns the query for envelopes with a signer who cannot be reached and has not signed.
fn unreached(org: &str) -> String {
    // The condition of the index `signer_unreached`, word for word.
    format!(
        "select unreached.envelope_id from signer unreached
         where unreached.bucket = $1 and unreached.org_id = {org}
             and unreached.notice_failure is not null and unreached.completed_at is null"
    )
}

/// Returns the query for envelopes with a signer who did not prove their identity and has not signed.
fn unidentified(org: &str) -> String {
    // The condition of the index `kba_session_unpassed`, word for word.
    format!(
        "select unpassed.envelope_id from kba_session unpassed
         where unpassed.bucket = $1 and unpassed.org_id = {org}
             and unpassed.status in ('failed', 'unavailable')
             and exists (select 1 from signer asked where asked.bucket = unpassed.bucket
                 and asked.envelope_id = unpassed.envelope_id
                 and asked.position = unpassed.position and asked.completed_at is null
                 and lower(asked.email) = lower(unpassed.email))
             and not exists (select 1 from kba_session passed where passed.bucket = unpassed.bucket
                 and passed.envelope_id = unpassed.envelope_id
                 and passed.position = unpassed.position and passed.status = 'passed')"
    )
}

/// Returns the query for envelopes with a vault-in stopped by an error.
fn stopped() -> &'static str {
    // The condition of the index `vault_intent_stopped`, word for word.
    "select stopped.envelope_id from vault_intent stopped
     where stopped.bucket = $1 and stopped.failed_step is not null"
}

/// Returns the query for signed envelopes with a missing payment.
fn unpaid(org: &str) -> String {
    // The condition of the index `envelope_unpaid`, word for word.
    format!(
        "select unpaid.envelope_id from envelope unpaid
         where unpaid.bucket = $1 and unpaid.org_id = {org} and unpaid.status = 'completed'
             and unpaid.payment_status = 'requires_payment'"
    )
}

/// Returns the condition of a status in a search; none if no envelope with it can fit.
fn condition_of(
    dialect: SqlDialect,
    search: &EnvelopeSearch,
    status: EnvelopeStatus,
) -> Option<String> {
    if !search.statuses.is_empty() && !search.statuses.contains(&status) {
        return None;
    }

    // The organization is the first value of `conditions`.
    let trouble = || match status {
        EnvelopeStatus::Completed => trouble_of_vaulting("$3"),
        _ => trouble_of_signing("$3"),
    };
    let is = format!("status = '{status}'");
    let is_among = |query: &str| dialect.is_one_of("envelope_id", query);
    match search.tab {
        None => Some(is),
        Some(tab) => Some(match tab.takes(status)? {
            TabCondition::Any => is,
            TabCondition::Troubled => format!("{is} and {}", is_among(&trouble())),
            TabCondition::Untroubled => format!("{is} and envelope_id not in ({})", trouble()),
            TabCondition::Asked => {
                let is_asked = is_among(&open_question("$3"));
                format!("{is} and {is_asked} and envelope_id not in ({})", trouble())
            }
            TabCondition::Unasked => {
                let (trouble, asked) = (trouble(), open_question("$3"));
                format!("{is} and envelope_id not in ({trouble} union all {asked})")
            }
        }),
    }
}

/// Returns the numbers of an organization's envelopes by tab. The numbers of the statuses are kept; only envelopes with
/// a trouble or a question are counted, and not more than [`MOST_TROUBLES`] of each kind.
pub async fn tab_counts(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    org: &OrgId,
) -> Result<TabCounts, StoreError> {
    let kept = counts::by_status(connection, org).await?;
    let is_among = |query: &str| dialect.is_one_of("envelope_id", query);
    let trouble = trouble_of_signing("$2");
    let is_asked = is_among(&open_question("$2"));
    let mut troubles = [0, 0, 0];
    for (counted, (statuses, trouble)) in troubles.iter_mut().zip([
        (SIGNING, is_among(&trouble)),
        (VAULTING, is_among(&trouble_of_vaulting("$2"))),
        (
            SIGNING,
            format!("{is_asked} and envelope_id not in ({trouble})"),
        ),
    ]) {
        *counted = count_troubles(connection, org, statuses, &trouble).await?;
    }

    let mut counts = TabCounts {
        is_capped: troubles.iter().any(|counted| *counted > MOST_TROUBLES),
        ..TabCounts::default()
    };
    for (status, number) in kept {
        let status = EnvelopeStatus::parse(&status);
        let is_taken = |tab: &EnvelopeTab| {
            // Without a trouble or a question first: those with one are moved below.
            let takes = status.and_then(|status| tab.takes(status));
            let is_moved = |takes| matches!(takes, TabCondition::Troubled | TabCondition::Asked);
            takes.is_some_and(|takes| !is_moved(takes))
        };
        if let Some(tab) = EnvelopeTab::ALL.into_iter().find(is_taken) {
            *counts.of_mut(tab) += number;
        }
    }

    let [signing, vaulting, asked] = troubles;
    counts.waiting = (counts.waiting - signing - asked).max(0);
    counts.needs_you = (counts.needs_you - vaulting).max(0) + asked;
    counts.stuck += signing + vaulting;
    Ok(counts)
}

/// Statuses in which signers can hold an envelope up, and in which the vault-in or a payment can.
const SIGNING: &str = "'sent', 'viewed'";
const VAULTING: &str = "'completed'";

/// Returns the number of an organization's envelopes with a trouble, at most one more than [`MOST_TROUBLES`].
async fn count_troubles(
    connection: &mut SqlConnection,
    org: &OrgId,
    statuses: &str,
    trouble: &str,
) -> Result<i64, StoreError> {
    let text = format!(
        "select count(*) as total from (
             select envelope_id from envelope where bucket = $1 and org_id = $2
                 and status in ({statuses}) and {trouble} limit $3
         ) troubled"
    );
    let row = sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .bind(MOST_TROUBLES + 1)
        .fetch_one(connection)
        .await?;

    Ok(row.try_get("total")?)
}

/// Numbers of stuck envelopes by cause, each at most one more than [`MOST_TROUBLES`]. An envelope counts once, for the
/// first cause that applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TroubleCounts {
    /// A signer cannot be reached.
    pub unreached: i64,
    /// A signer did not prove their identity.
    pub unidentified: i64,
    /// The vault-in stopped with an error.
    pub stopped: i64,
    /// The payment is missing after the signatures.
    pub unpaid: i64,
}

/// Returns the numbers of an organization's envelopes by the trouble that holds them up.
pub async fn trouble_counts(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    org: &OrgId,
) -> Result<TroubleCounts, StoreError> {
    let (unreached, unidentified) = (unreached("$2"), unidentified("$2"));
    let (stopped, unpaid) = (stopped(), unpaid("$2"));
    let is_among = |query: &str| dialect.is_one_of("envelope_id", query);
    let is_first_among = |query: &str, before: &str| {
        format!("{} and envelope_id not in ({before})", is_among(query))
    };

    let mut counts = TroubleCounts::default();
    for (counted, statuses, trouble) in [
        (&mut counts.unreached, SIGNING, is_among(&unreached)),
        (
            &mut counts.unidentified,
            SIGNING,
            is_first_among(&unidentified, &unreached),
        ),
        (&mut counts.stopped, VAULTING, is_among(stopped)),
        (
            &mut counts.unpaid,
            VAULTING,
            is_first_among(&unpaid, stopped),
        ),
    ] {
        *counted = count_troubles(connection, org, statuses, &trouble).await?;
    }

    Ok(counts)
}

impl TabCounts {
    /// Returns the number of a tab.
    pub fn of(mut self, tab: EnvelopeTab) -> i64 {
        *self.of_mut(tab)
    }

    /// Returns the number of all envelopes.
    pub fn all(self) -> i64 {
        self.needs_you + self.waiting + self.stuck + self.done
    }

    fn of_mut(&mut self, tab: EnvelopeTab) -> &mut i64 {
        match tab {
            EnvelopeTab::NeedsYou => &mut self.needs_you,
            EnvelopeTab::Waiting => &mut self.waiting,
            EnvelopeTab::Stuck => &mut self.stuck,
            EnvelopeTab::Done => &mut self.done,
        }
    }
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

/// Returns the envelopes that fit, the newest first unless the search asks for the oldest.
pub async fn envelopes(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    org: &OrgId,
    search: &EnvelopeSearch,
    limit: i64,
) -> Result<Vec<FoundEnvelope>, StoreError> {
    let mut conditions = conditions(dialect, org, search);
    if let Some(after) = &search.after {
        let behind = if search.oldest_first {
            "envelope_id > {}"
        } else {
            "envelope_id < {}"
        };
        conditions.text(behind, after.as_str());
    }

    let Some(text) = statement(dialect, &conditions.all, search) else {
        return Ok(Vec::new());
    };
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
    if !search.statuses.is_empty() || search.tab.is_some() {
        let each = EnvelopeStatus::ALL.iter();
        let each: Vec<String> = each
            .filter_map(|status| condition_of(dialect, search, *status))
            .map(|condition| format!("({condition})"))
            .collect();
        if each.is_empty() {
            return Ok(0);
        }
        conditions.all.push(format!("({})", each.join(" or ")));
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
        let parameter = conditions.value(&part);
        let is_like = dialect.is_like("secured_party", &parameter, &part);
        conditions.all.push(is_like);
    }

    if let Some(custodian) = &search.custodian {
        let kept = "exists (select 1 from custodian c where c.bucket = envelope.bucket
             and c.envelope_id = envelope.envelope_id and lower(c.email) = lower({}))";
        conditions.text(kept, custodian);
    }

    if let Some(text) = &search.text {
        let part = format!("%{}%", escaped(text));
        let begin = format!("{}%", escaped(text));
        let id = conditions.value(text);
        let (with_begin, with_part) = (conditions.value(&begin), conditions.value(&part));
        let has_part = |column| dialect.is_like(column, &with_part, &part);
        let reference = dialect.is_like("external_id", &with_begin, &begin);
        let (name, signer, address) = (has_part("name"), has_part("s.name"), has_part("s.email"));

        // One pass over the signers, when the first envelope is not found by its own columns. A look at the signers of
        // each envelope takes four times as long when nothing is found.
        conditions.all.push(format!(
            "(envelope_id = {id} or {reference} or {name}
                 or envelope_id in (select s.envelope_id from signer s
                     where s.bucket = $1 and s.org_id = $3 and ({signer} or {address})))"
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

/// Writes the statement; none if no envelope can fit. Its second parameter is the number of envelopes with those to skip. Several statuses are searched one by one: each reads the first of its own from an index, however
/// many envelopes have another status.
fn statement(
    dialect: SqlDialect,
    conditions: &[String],
    search: &EnvelopeSearch,
) -> Option<String> {
    let conditions = conditions.join(" and ");
    let order = if search.oldest_first { "asc" } else { "desc" };
    let part = |name: &str, more: &str| {
        format!(
            "select * from (
                 select {{columns}} from envelope where bucket = $1 and {conditions}{more} order by envelope_id {order} limit $2
             ) {name}"
        )
    };

    let parts = if search.statuses.is_empty() && search.tab.is_none() {
        vec![part("of_all", "")]
    } else {
        // Each status once, even if the caller names it twice; words of an enumeration, not of the caller.
        let each = EnvelopeStatus::ALL.iter().filter_map(|one| {
            let condition = condition_of(dialect, search, *one)?;
            Some(part(&format!("of_{one}"), &format!(" and {condition}")))
        });
        each.collect::<Vec<_>>()
    };

    let (parts, skip) = (parts.join(" union all "), search.skip);
    let all = format!("{parts} order by envelope_id {order} limit $2 - {skip} offset {skip}");
    (!parts.is_empty()).then_some(all)
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
