//! Components and their activations.
//!
//! Organization `None` is the installation; its rows have an empty `org_id`.

use crate::SqlConnection;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{RowColumns, TableRow, json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction, owned};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{
    Component, ComponentActivation, ComponentIdentity, RolledBack, Slot,
};
use holdfast_domain::id::{ActivationId, ComponentId, OrgId};

/// Activation that put a component in a slot.
pub struct SlotActivation {
    pub activation: ActivationId,
    /// Owner of the component; none is the installation.
    pub component_owner: Option<OrgId>,
    /// Whether the component came with a release, this one or an earlier one, and was not uploaded.
    pub is_of_release: bool,
}

/// Raises the revision. The row lock serializes all
/// changes to components until the transaction ends.
pub async fn begin_change(tx: &mut WriteTransaction) -> Result<(), StoreError> {
    // Nodes poll this number. In the same transaction, it never announces a change that they cannot see yet.
    sqlx::query("update component_revision set revision = revision + 1 where id = 1")
        .run(tx)
        .await
}

/// Locks all changes of components until the transaction ends, like [`begin_change`], for what nodes need not
/// follow.
pub async fn lock_changes(tx: &mut WriteTransaction) -> Result<(), StoreError> {
    let text = format!(
        "select revision from component_revision where id = 1 {}",
        tx.dialect.for_update()
    );
    sqlx::query(AssertSqlSafe(text))
        .fetch_one(&mut **tx)
        .await?;
    Ok(())
}

/// Returns the revision, which rises with every change.
pub async fn revision(connection: &mut SqlConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("select revision from component_revision where id = 1")
        .fetch_one(connection)
        .await?;
    Ok(row.try_get("revision")?)
}

/// Adds a component. Returns false if its id exists
/// already, as for a default component stored earlier.
pub async fn insert(tx: &mut WriteTransaction, component: &Component) -> Result<bool, StoreError> {
    let (bucket, org) = owned(component.org.as_ref());
    // Every node stores the default components at its start; the first row stays.
    sqlx::query(
        "insert into component (bucket, component_id, org_id, slot, name, version, sha256, size,
             imports, conformance, signed_by, uploaded_by, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         on conflict (bucket, component_id) do nothing",
    )
    .bind(bucket)
    .bind(component.id.as_str())
    .bind(org)
    .bind(component.slot.as_str())
    .bind(&component.identity.name)
    .bind(&component.identity.version)
    .bind(&component.identity.sha256)
    .bind(component.size)
    .bind(json_text(&component.imports))
    .bind(json_text(&component.conformance))
    .bind(component.signed_by.as_deref())
    .bind(&component.uploaded_by)
    .bind(component.created_at.to_string())
    .changes_row(tx)
    .await
}

/// Adds the vectors that hold for a component.
pub async fn insert_vectors(
    tx: &mut WriteTransaction,
    component: &Component,
    vectors: &Value,
) -> Result<(), StoreError> {
    let text = "insert into component_vectors (bucket, component_id, org_id, vectors)
         values ($1, $2, $3, $4)";
    insert_beside(tx, component, text, vectors).await
}

/// Returns the vectors that hold for a component, if there are any.
pub async fn vectors(
    connection: &mut SqlConnection,
    component: &Component,
) -> Result<Option<Value>, StoreError> {
    let text = "select component_id, vectors as value from component_vectors
         where bucket = $1 and component_id = $2";
    beside(connection, component, "component_vectors", text).await
}

/// Adds what publishers say about a component.
pub async fn insert_attestations(
    tx: &mut WriteTransaction,
    component: &Component,
    attestations: &Value,
) -> Result<(), StoreError> {
    let text = "insert into component_attestations (bucket, component_id, org_id, attestations)
         values ($1, $2, $3, $4)";
    insert_beside(tx, component, text, attestations).await
}

/// Returns what publishers say about a component, if they say anything.
pub async fn attestations(
    connection: &mut SqlConnection,
    component: &Component,
) -> Result<Option<Value>, StoreError> {
    let text = "select component_id, attestations as value from component_attestations
         where bucket = $1 and component_id = $2";
    beside(connection, component, "component_attestations", text).await
}

/// Adds a JSON value about a component to another table.
async fn insert_beside(
    tx: &mut WriteTransaction,
    component: &Component,
    text: &'static str,
    value: &Value,
) -> Result<(), StoreError> {
    let (bucket, org) = owned(component.org.as_ref());
    sqlx::query(text)
        .bind(bucket)
        .bind(component.id.as_str())
        .bind(org)
        .bind(value.to_string())
        .run(tx)
        .await
}

/// Returns the JSON value about a component in another table.
async fn beside(
    connection: &mut SqlConnection,
    component: &Component,
    table: &'static str,
    text: &'static str,
) -> Result<Option<Value>, StoreError> {
    let (bucket, _) = owned(component.org.as_ref());
    let row = sqlx::query(text)
        .bind(bucket)
        .bind(component.id.as_str())
        .fetch_optional(connection)
        .await?;

    row.map(|row| {
        let columns = RowColumns::of(&row, table, "component_id");
        columns.json("value")
    })
    .transpose()
}

/// Returns a component of the organization or of the installation.
pub async fn get(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    id: &ComponentId,
) -> Result<Option<Component>, StoreError> {
    let (bucket, owner) = owned(org);
    // Organizations use the installation's components, too, so an id may belong to either owner.
    query_rows(
        "select {columns} from component
         where component_id = $1 and ((bucket = $2 and org_id = $3) or (bucket = 0 and org_id = ''))",
    )
    .bind(id.as_str())
    .bind(bucket)
    .bind(owner)
    .fetch_optional(connection)
    .await
}

/// Returns the owner's component with this name and version.
pub async fn by_version(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    name: &str,
    version: &str,
) -> Result<Option<Component>, StoreError> {
    let (bucket, owner) = owned(org);
    query_rows(
        "select {columns} from component
         where bucket = $1 and org_id = $2 and name = $3 and version = $4
         order by component_id limit 1",
    )
    .bind(bucket)
    .bind(owner)
    .bind(name)
    .bind(version)
    .fetch_optional(connection)
    .await
}

/// Returns the owner's most recently uploaded component of this name.
pub async fn newest_named(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    name: &str,
) -> Result<Option<Component>, StoreError> {
    let (bucket, owner) = owned(org);
    query_rows(
        "select {columns} from component where bucket = $1 and org_id = $2 and name = $3
         order by created_at desc, component_id desc limit 1",
    )
    .bind(bucket)
    .bind(owner)
    .bind(name)
    .fetch_optional(connection)
    .await
}

/// Returns a component with these bytes, of any owner.
pub async fn by_sha256(
    connection: &mut SqlConnection,
    sha256: &str,
) -> Result<Option<Component>, StoreError> {
    // Any owner will do: equal bytes are the same component, and evidence names the digest only.
    query_rows(
        "select {columns} from component where sha256 = $1 order by bucket, component_id limit 1",
    )
    .bind(sha256)
    .fetch_optional(connection)
    .await
}

/// Returns the activation that put a component in a slot for an organization, and the component's
/// owner. If several match, the effective one wins: the organization's before the installation's,
/// and later ones before earlier ones.
pub async fn activated(
    connection: &mut SqlConnection,
    org: &OrgId,
    slot: Slot,
    identity: &ComponentIdentity,
    at: Timestamp,
) -> Result<Option<SlotActivation>, StoreError> {
    // A decision names its component by name, version and digest. Rolled back
    // activations count, because the decision may be older than the rollback.
    query_rows(
        "select a.activation_id, c.org_id as owner_id, c.uploaded_by
         from component_activation a join component c on c.component_id = a.component_id
         where ((a.bucket = $1 and a.org_id = $2) or (a.bucket = 0 and a.org_id = ''))
             and ((c.bucket = $1 and c.org_id = $2) or (c.bucket = 0 and c.org_id = ''))
             and a.slot = $3 and a.sha256 = $4 and a.name = $5 and a.version = $6
             and a.effective_at <= $7
         order by case when a.org_id = '' then 1 else 0 end, a.effective_at desc,
             a.activation_id desc
         limit 1",
    )
    .bind_org(org)
    .bind(slot.as_str())
    .bind(&identity.sha256)
    .bind(&identity.name)
    .bind(&identity.version)
    .bind(at.to_string())
    .fetch_optional(connection)
    .await
}

table_row! {
    SlotActivation of "component_activation" by "activation_id" also "uploaded_by" {
        activation: parsed("activation_id", ActivationId::parse),
        component_owner: parsed("owner_id", owner),
        is_of_release: |row| row.text("uploaded_by")? == Component::OF_RELEASE,
    }
}

/// Lists the components of the organization and of the installation, newest first, optionally of
/// one slot only. Also returns the total number.
pub async fn list(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    slot: Option<Slot>,
    page: i64,
    limit: i64,
) -> Result<(Vec<Component>, i64), StoreError> {
    // Page and total share the condition, so that they cannot drift apart.
    const WHERE: &str = "where ((bucket = $1 and org_id = $2) or (bucket = 0 and org_id = ''))
         and ($3 = '' or slot = $3)";

    let (bucket, owner) = owned(org);
    let slot = slot.map_or("", Slot::as_str);
    let text = format!(
        "select {{columns}} from component {WHERE} order by created_at desc, component_id desc
         limit $4 offset $5"
    );
    let found = query_rows(AssertSqlSafe(text))
        .bind(bucket)
        .bind(owner)
        .bind(slot)
        .bind(limit)
        .bind((page - 1).saturating_mul(limit))
        .fetch_all(&mut *connection)
        .await?;

    let text = format!("select count(*) as total from component {WHERE}");
    let row = sqlx::query(AssertSqlSafe(text))
        .bind(bucket)
        .bind(owner)
        .bind(slot)
        .fetch_one(connection)
        .await?;

    Ok((found, row.try_get("total")?))
}

/// Adds an activation; requires [`begin_change`].
pub async fn activate(
    tx: &mut WriteTransaction,
    activation: &ComponentActivation,
    component: &Component,
) -> Result<(), StoreError> {
    let (bucket, org) = owned(activation.org.as_ref());
    // Name, version and digest are copied: nodes follow activations without reading the components.
    sqlx::query(
        "insert into component_activation (bucket, activation_id, org_id, slot, instance,
             component_id, name, version, sha256, config, reason, activated_by, created_at,
             effective_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(bucket)
    .bind(activation.id.as_str())
    .bind(org)
    .bind(activation.slot.as_str())
    .bind(&activation.instance)
    .bind(activation.component.as_str())
    .bind(&component.identity.name)
    .bind(&component.identity.version)
    .bind(&component.identity.sha256)
    .bind(activation.config.as_deref())
    .bind(activation.reason.as_deref())
    .bind(&activation.activated_by)
    .bind(activation.created_at.to_string())
    .bind(activation.effective_at.to_string())
    .run(tx)
    .await
}

/// Replaces an activation's settings; requires [`begin_change`].
pub async fn set_config(
    tx: &mut WriteTransaction,
    activation: &ComponentActivation,
    config: &str,
) -> Result<(), StoreError> {
    let (bucket, org) = owned(activation.org.as_ref());
    // Scheduled activations that inherited the settings follow a change of them, without a new row.
    sqlx::query(
        "update component_activation set config = $4
         where bucket = $1 and org_id = $2 and activation_id = $3",
    )
    .bind(bucket)
    .bind(org)
    .bind(activation.id.as_str())
    .bind(config)
    .run(tx)
    .await
}

/// Records the rollback of an activation; requires [`begin_change`].
pub async fn roll_back(
    tx: &mut WriteTransaction,
    activation: &ComponentActivation,
    rolled_back: &RolledBack,
) -> Result<(), StoreError> {
    let (bucket, org) = owned(activation.org.as_ref());
    // The row stays: decisions name its component, and the history shows the reason of the rollback.
    sqlx::query(
        "update component_activation
         set rolled_back_at = $4, rolled_back_by = $5, rollback_reason = $6
         where bucket = $1 and org_id = $2 and activation_id = $3",
    )
    .bind(bucket)
    .bind(org)
    .bind(activation.id.as_str())
    .bind(rolled_back.at.to_string())
    .bind(&rolled_back.by)
    .bind(rolled_back.reason.as_deref())
    .run(tx)
    .await
}

/// Marks an activation as superseded, so that nodes no longer load it; requires [`begin_change`].
pub async fn supersede(
    tx: &mut WriteTransaction,
    activation: &ComponentActivation,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (bucket, org) = owned(activation.org.as_ref());
    // The history still shows the row. Only the set that every node loads gets smaller.
    sqlx::query(
        "update component_activation set superseded_at = $4
         where bucket = $1 and org_id = $2 and activation_id = $3",
    )
    .bind(bucket)
    .bind(org)
    .bind(activation.id.as_str())
    .bind(at.to_string())
    .run(tx)
    .await
}

/// Returns number of an organization's components, and their total size with their vectors and attestations.
pub async fn usage(connection: &mut SqlConnection, org: &OrgId) -> Result<(i64, i64), StoreError> {
    let (bucket, owner) = owned(Some(org));
    // Vectors and attestations count: they are kept for ever like the bytes, and uploaders choose their size.
    let row = sqlx::query(
        "select count(*) as versions,
             cast(coalesce(sum(c.size + coalesce(length(v.vectors), 0)
                 + coalesce(length(a.attestations), 0)), 0) as bigint) as bytes
         from component c
             left join component_vectors v
                 on v.bucket = c.bucket and v.component_id = c.component_id
             left join component_attestations a
                 on a.bucket = c.bucket and a.component_id = c.component_id
         where c.bucket = $1 and c.org_id = $2",
    )
    .bind(bucket)
    .bind(owner)
    .fetch_one(connection)
    .await?;

    Ok((row.try_get("bytes")?, row.try_get("versions")?))
}

/// Records the compile time of an organization's
/// component, and deletes records from before `since`.
pub async fn note_compile(
    tx: &mut WriteTransaction,
    org: &OrgId,
    at: Timestamp,
    millis: i64,
    since: Timestamp,
) -> Result<(), StoreError> {
    let (bucket, owner) = owned(Some(org));
    // The quota looks back from now, so older rows have no use. Deleted here, they need no chore.
    sqlx::query("delete from component_compile where bucket = $1 and org_id = $2 and at < $3")
        .bind(bucket)
        .bind(owner)
        .bind(since.to_string())
        .execute(&mut **tx)
        .await?;

    sqlx::query(
        "insert into component_compile (bucket, compile_id, org_id, at, millis)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(bucket)
    // The id only has to be unique; no activation has it.
    .bind(ActivationId::new().as_str())
    .bind(owner)
    .bind(at.to_string())
    .bind(millis)
    .run(tx)
    .await
}

/// Returns the compile time of an organization's components since a time, in milliseconds.
pub async fn compiled_since(
    connection: &mut SqlConnection,
    org: &OrgId,
    since: Timestamp,
) -> Result<i64, StoreError> {
    let (bucket, owner) = owned(Some(org));
    let row = sqlx::query(
        "select cast(coalesce(sum(millis), 0) as bigint) as millis from component_compile
         where bucket = $1 and org_id = $2 and at >= $3",
    )
    .bind(bucket)
    .bind(owner)
    .bind(since.to_string())
    .fetch_one(connection)
    .await?;

    Ok(row.try_get("millis")?)
}

/// Lists the owner's activations, newest first, optionally of one slot only.
pub async fn activations(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    slot: Option<Slot>,
    limit: i64,
) -> Result<Vec<ComponentActivation>, StoreError> {
    let (bucket, owner) = owned(org);
    query_rows(
        "select {columns} from component_activation
         where bucket = $1 and org_id = $2 and ($3 = '' or slot = $3)
         order by activation_id desc limit $4",
    )
    .bind(bucket)
    .bind(owner)
    .bind(slot.map_or("", Slot::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Lists the owner's activations of a slot that were neither rolled back nor superseded.
pub async fn live_of(
    connection: &mut SqlConnection,
    org: Option<&OrgId>,
    slot: Slot,
) -> Result<Vec<ComponentActivation>, StoreError> {
    let (bucket, owner) = owned(org);
    // Activations of a future time are included: they take effect without another change.
    query_rows(
        "select {columns} from component_activation
         where bucket = $1 and org_id = $2 and slot = $3 and rolled_back_at is null
             and superseded_at is null",
    )
    .bind(bucket)
    .bind(owner)
    .bind(slot.as_str())
    .fetch_all(connection)
    .await
}

/// Lists the most recent uploads of all owners.
pub async fn newest(
    connection: &mut SqlConnection,
    limit: i64,
) -> Result<Vec<Component>, StoreError> {
    // Of all owners: nodes compile new uploads ahead, so that an activation takes effect at once.
    query_rows("select {columns} from component order by component_id desc limit $1")
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// Lists the live activations of all owners, oldest first, with their components' identities.
pub async fn live(
    connection: &mut SqlConnection,
) -> Result<Vec<(ComponentActivation, ComponentIdentity)>, StoreError> {
    // Activations of a future time are included: each node switches by its own clock, without another read.
    query_rows::<ComponentActivation>(
        "select {columns}, name, version, sha256 from component_activation
         where rolled_back_at is null and superseded_at is null order by activation_id",
    )
    .fetch_rows(connection)
    .await?
    .iter()
    .map(|row| {
        let identity = ComponentIdentity::of_row(row)?;
        Ok((ComponentActivation::of_row(row)?, identity))
    })
    .collect()
}

// Components and their activations have these columns.
table_row! {
    ComponentIdentity of "component" by "component_id" also "component_id" {
        name: text("name"),
        version: text("version"),
        sha256: text("sha256"),
    }
}

table_row! {
    Component of "component" by "component_id" also "name", "version", "sha256" {
        id: parsed("component_id", ComponentId::parse),
        org: parsed("org_id", owner),
        slot: parsed("slot", Slot::parse),
        identity: |row| ComponentIdentity::read(row)?,
        size: number("size"),
        imports: json("imports"),
        conformance: json("conformance"),
        signed_by: optional_text("signed_by"),
        uploaded_by: text("uploaded_by"),
        created_at: time("created_at"),
    }
}

table_row! {
    ComponentActivation of "component_activation" by "activation_id"
        also "rolled_back_at", "rolled_back_by", "rollback_reason"
    {
        id: parsed("activation_id", ActivationId::parse),
        org: parsed("org_id", owner),
        slot: parsed("slot", Slot::parse),
        instance: text("instance"),
        component: parsed("component_id", ComponentId::parse),
        config: optional_text("config"),
        reason: optional_text("reason"),
        activated_by: text("activated_by"),
        created_at: time("created_at"),
        effective_at: time("effective_at"),
        // Time and actor are written together: a time alone is an inconsistent row.
        rolled_back: |row| match row.optional_time("rolled_back_at")? {
            Some(at) => Some(RolledBack {
                at,
                by: row.text("rolled_back_by")?,
                reason: row.optional_text("rollback_reason")?,
            }),
            None => None,
        },
    }
}

/// Parses an owner column; the outer `None` means that it is invalid.
#[expect(clippy::option_option, reason = "the installation is an owner too")]
fn owner(text: &str) -> Option<Option<OrgId>> {
    match text {
        "" => Some(None),
        text => OrgId::parse(text).map(Some),
    }
}
