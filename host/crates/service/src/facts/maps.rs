//! Fact maps of organizations: versioned documents, and the starters that holdfast ships.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::templates::composition;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::fact_map::{
    FactDirection, FactMap, FactMapDocument, FactMapScope, MappedEnvelope, MappedFact,
};
use holdfast_domain::facts::FactKind;
use holdfast_domain::field::{ATTACHMENT, Field, is_signature};
use holdfast_domain::id::{FactMapId, OrgId, PackageId, TemplateId};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue};
use holdfast_store::{SqlConnection, StoreError, fact_maps, packages, templates};

/// Most maps of an organization.
const MAPS: i64 = 200;
/// Versions of a map that are listed.
const VERSIONS: i64 = 50;
/// Most printed places of all facts of a map: each is a search of the document.
const PLACES: usize = 300;

/// Most facts of a map, and letters of a name.
const FACTS: usize = 100;
const NAME: usize = 64;

/// Most bytes of a map: all maps of an organization are read to choose the one of an envelope.
const BYTES: usize = 64 * 1024;

/// Names of the starter maps, with their documents.
const STARTERS: [(&str, &str); 1] = [(
    "retail_installment",
    include_str!("starters/retail_installment.json"),
)];

/// Body of `POST /fact-maps`: a map, or a starter with the differences of this one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "starter": "retail_installment",
    "applies_to": { "templates": ["tmpl_01jdk7m3e8f4x9s2w5v6b0c1da"] },
}]))]
pub struct CreateFactMap {
    /// Name of a starter map, which gives all members that are not here.
    pub starter: Option<String>,
    /// Name for people.
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    /// Envelopes that the map applies to.
    pub applies_to: Option<FactMapScope>,
    /// Facts in the order of the sheet.
    #[schemars(length(min = 1, max = 100))]
    pub facts: Option<Vec<MappedFact>>,
}

/// A fact map.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "fact_map_id": "fmp_01jdk7m3e8f4x9s2w5v6b0c1da", "version": 1,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "name": "Retail instalment contract",
    "applies_to": { "templates": ["tmpl_01jdk7m3e8f4x9s2w5v6b0c1da"] },
    "facts": [
        { "name": "amount_financed", "kind": "money", "currency": "USD",
          "printed": [{ "anchor": "Amount Financed", "direction": "below" }] },
    ],
    "made_by": "ada@oak.example", "created_at": "2026-11-21T09:30:00.000Z",
    "updated_at": "2026-11-21T09:30:00.000Z",
}]))]
pub struct FactMapView {
    /// Id of the map.
    pub fact_map_id: FactMapId,
    /// Number of the present version, from 1.
    pub version: u32,
    /// SHA-256 of the map's canonical JSON (RFC 8785), lower-case hex. Evidence names it.
    pub sha256: String,
    /// Name for people.
    pub name: String,
    /// Envelopes that the map applies to.
    pub applies_to: FactMapScope,
    /// Facts in the order of the sheet.
    pub facts: Vec<MappedFact>,
    /// E-mail address of the user who made the version, or the API key.
    pub made_by: String,
    /// Time of the first version.
    pub created_at: Timestamp,
    /// Time of the present version.
    pub updated_at: Timestamp,
}

impl From<&FactMap> for FactMapView {
    fn from(map: &FactMap) -> Self {
        let document = &map.document;
        Self {
            fact_map_id: map.id.clone(),
            version: map.version,
            sha256: document.sha256(),
            name: document.name.clone(),
            applies_to: document.applies_to.clone(),
            facts: document.facts.clone(),
            made_by: map.made_by.clone(),
            created_at: map.created_at,
            updated_at: map.updated_at,
        }
    }
}

/// A map that holdfast ships, to begin with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "starter": "retail_installment", "name": "Retail instalment contract",
    "facts": [{ "name": "vin", "kind": "vin", "fields": ["VIN"], "declared": "vin" }],
}]))]
pub struct StarterView {
    /// Name of the starter, for `POST /fact-maps`.
    pub starter: String,
    /// Name for people.
    pub name: String,
    /// Facts in the order of the sheet.
    pub facts: Vec<MappedFact>,
}

/// Creates a map.
pub async fn create(
    core: &Core,
    caller: &Caller,
    request: CreateFactMap,
    answer: &ResponseRecorder<FactMapView>,
) -> Result<FactMapView, ServiceError> {
    let document = requested(request)?;
    check(core, caller, &document).await?;
    let now = core.clock.now();
    let map = FactMap {
        id: FactMapId::new(),
        org: caller.org.clone(),
        version: 1,
        document,
        made_by: caller.creator(),
        created_at: now,
        updated_at: now,
    };

    let view = FactMapView::from(&map);
    let mut tx = core.store.begin().await?;
    let known = fact_maps::list(&mut tx, &caller.org, MAPS).await?;
    if i64::try_from(known.len()).is_ok_and(|known| known >= MAPS) {
        let why = format!("An organization has at most {MAPS} fact maps; delete one first");
        return Err(ServiceError::Conflict(why));
    }

    fact_maps::insert(&mut tx, &map).await?;
    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Adds a version to a map. Facts that were read with earlier ones stay as they are.
pub async fn replace(
    core: &Core,
    caller: &Caller,
    id: &str,
    document: FactMapDocument,
    answer: &ResponseRecorder<FactMapView>,
) -> Result<FactMapView, ServiceError> {
    let before = read(core, caller, id).await?;
    check(core, caller, &document).await?;
    let map = FactMap {
        version: before.version.saturating_add(1),
        document,
        made_by: caller.creator(),
        updated_at: core.clock.now(),
        ..before
    };

    let view = FactMapView::from(&map);
    let mut tx = core.store.begin().await?;
    // Compare-and-swap: the second of two concurrent changes is refused.
    fact_maps::replace(&mut tx, &map).await?;
    answer.commit(tx, &view).await?;
    Ok(view)
}

/// Makes an earlier version the present one, as a new version with its content.
pub async fn restore(
    core: &Core,
    caller: &Caller,
    id: &str,
    number: u32,
    answer: &ResponseRecorder<FactMapView>,
) -> Result<FactMapView, ServiceError> {
    let present = read(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let earlier = fact_maps::version(&mut connection, &caller.org, &present.id, number).await?;
    drop(connection);
    let earlier = earlier.ok_or(ServiceError::NotFound("Version"))?;

    replace(core, caller, id, earlier.document, answer).await
}

/// Returns the versions of a map, newest first.
pub async fn versions(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<Vec<FactMapView>, ServiceError> {
    let map = read(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let found = fact_maps::versions(&mut connection, &caller.org, &map.id, VERSIONS).await?;
    Ok(found.iter().map(FactMapView::from).collect())
}

/// Deletes a map. Facts that were read with it stay.
pub async fn delete(core: &Core, caller: &Caller, id: &str) -> Result<FactMapId, ServiceError> {
    let map = read(core, caller, id).await?;
    let mut tx = core.store.begin().await?;
    fact_maps::delete(&mut tx, &map, core.clock.now()).await?;
    tx.commit().await?;
    Ok(map.id)
}

/// Returns a map of the caller's organization.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<FactMapView, ServiceError> {
    Ok(FactMapView::from(&read(core, caller, id).await?))
}

/// Returns the maps of the caller's organization, newest first.
pub async fn list(core: &Core, caller: &Caller) -> Result<Vec<FactMapView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let maps = fact_maps::list(&mut connection, &caller.org, MAPS).await?;
    Ok(maps.iter().map(FactMapView::from).collect())
}

pub(super) async fn read(core: &Core, caller: &Caller, id: &str) -> Result<FactMap, ServiceError> {
    let unknown = || ServiceError::NotFound("Fact map");
    let id = FactMapId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let found = fact_maps::get(&mut connection, &caller.org, &id).await?;
    found.ok_or_else(unknown)
}

/// Returns the starter maps.
pub fn starters() -> Result<Vec<StarterView>, ServiceError> {
    let view = |(name, text): &(&str, &str)| {
        let document = parsed(text)?;
        Ok::<_, ServiceError>(StarterView {
            starter: (*name).to_owned(),
            name: document.name,
            facts: document.facts,
        })
    };
    STARTERS.iter().map(view).collect()
}

fn parsed(text: &str) -> Result<FactMapDocument, ServiceError> {
    serde_json::from_str(text).map_err(|error| ServiceError::Internal(error.to_string()))
}

/// Returns a fact for each field of a template that people fill in. Fields that a starter knows get its name and type.
pub fn of_fields(fields: &[Field]) -> Result<Vec<MappedFact>, ServiceError> {
    let known: Vec<MappedFact> = starters()?
        .into_iter()
        .flat_map(|starter| starter.facts)
        .collect();
    let mut facts: Vec<MappedFact> = Vec::new();
    for field in fields {
        let is_value = !is_signature(&field.field_type) && field.field_type != ATTACHMENT;
        let is_mapped = facts.iter().any(|fact| fact.fields.contains(&field.name));
        if !is_value || is_mapped {
            continue;
        }

        let is_same = |name: &String| name.eq_ignore_ascii_case(&field.name);
        let starter = known.iter().find(|fact| fact.fields.iter().any(is_same));
        let mut fact = starter.cloned().unwrap_or_else(|| fact_of(field));
        // The text around a field is that of its own document, which the starter does not know.
        (fact.fields, fact.printed, fact.declared) = (vec![field.name.clone()], Vec::new(), None);
        let is_taken = facts.iter().any(|one| one.name == fact.name);
        if !fact.name.is_empty() && !is_taken && facts.len() < FACTS {
            facts.push(fact);
        }
    }

    Ok(facts)
}

/// Returns a fact of a field that no starter knows.
fn fact_of(field: &Field) -> MappedFact {
    MappedFact {
        name: fact_name(&field.name),
        kind: match field.field_type.as_str() {
            "date" => FactKind::Date,
            "checkbox" => FactKind::Boolean,
            // A number is an amount, a rate or a count, which the field does not tell.
            _ => FactKind::Text,
        },
        currency: None,
        date_order: None,
        decimal_separator: None,
        fields: Vec::new(),
        printed: Vec::new(),
        declared: None,
    }
}

/// Returns a name of a fact for the name of a field; empty for one without a letter of ASCII.
fn fact_name(field: &str) -> String {
    let lower = field.to_ascii_lowercase();
    let words = lower.split(|one: char| !one.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name = words.join("_");
    let name = name.trim_start_matches(|one: char| !one.is_ascii_lowercase());
    name.chars().take(NAME).collect()
}

/// Returns the map that a body asks for.
fn requested(request: CreateFactMap) -> Result<FactMapDocument, ServiceError> {
    let starter = match &request.starter {
        None => None,
        Some(name) => {
            let known = STARTERS.iter().find(|(known, _)| known == name);
            let (_, text) = known.ok_or_else(|| {
                let names: Vec<&str> = STARTERS.iter().map(|(name, _)| *name).collect();
                issue(
                    "unknown_starter",
                    &["starter"],
                    names.join(", "),
                    name.as_str(),
                    "There is no such starter map",
                )
            })?;
            Some(parsed(text)?)
        }
    };

    let (name, facts) = starter.map(|map| (map.name, map.facts)).unzip();
    let missing = |member: &str| {
        issue(
            "required",
            &[member],
            "a value",
            "nothing",
            format!("{member} is required without a starter"),
        )
    };
    Ok(FactMapDocument {
        name: request.name.or(name).ok_or_else(|| missing("name"))?,
        // Which templates a map is for is always the organization's own choice.
        applies_to: request.applies_to.ok_or_else(|| {
            let why = "applies_to is required: templates, packages, contract_kinds, or all";
            issue("required", &["applies_to"], "a scope", "nothing", why)
        })?,
        facts: request.facts.or(facts).ok_or_else(|| missing("facts"))?,
    })
}

fn issue(
    code: &str,
    path: &[&str],
    expected: impl Into<String>,
    received: impl Into<String>,
    message: impl Into<String>,
) -> ServiceError {
    let issue = ValidationIssue::new(code, path, expected, received, message);
    ServiceError::Invalid(vec![issue])
}

/// Refuses a map that contradicts itself, or that names templates and packages of others.
pub(super) async fn check(
    core: &Core,
    caller: &Caller,
    document: &FactMapDocument,
) -> Result<(), ServiceError> {
    let issues = problems(document);
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    composition::found(core, caller, &document.applies_to.templates).await?;
    let mut connection = core.store.read().await?;
    for id in &document.applies_to.packages {
        let package = packages::get(&mut connection, &caller.org, id).await?;
        package.ok_or(ServiceError::NotFound("Package"))?;
    }

    Ok(())
}

/// Returns all problems of a map.
fn problems(document: &FactMapDocument) -> Vec<ValidationIssue> {
    let scope = &document.applies_to;
    let mut issues = Vec::new();
    if *scope == FactMapScope::default() {
        issues.push(ValidationIssue::new(
            "no_scope",
            &["applies_to"],
            "templates, packages, contract_kinds, or all",
            "{}",
            "The map applies to no envelope",
        ));
    }

    let mut names = BTreeSet::new();
    for (index, fact) in document.facts.iter().enumerate() {
        let index = index.to_string();
        if !names.insert(fact.name.as_str()) {
            issues.push(ValidationIssue::new(
                "duplicate_name",
                &["facts", &index, "name"],
                "another name for each fact",
                fact.name.as_str(),
                format!("The map has two facts with the name {}", fact.name),
            ));
        }

        issues.extend(problems_of(&index, fact));
    }

    let places: usize = document.facts.iter().map(|fact| fact.printed.len()).sum();
    if places > PLACES {
        issues.push(ValidationIssue::new(
            "too_big",
            &["facts"],
            format!("at most {PLACES} printed places in all"),
            places.to_string(),
            "The map has too many printed places",
        ));
    }

    let size = json!(document).to_string().len();
    if size > BYTES {
        issues.push(ValidationIssue::new(
            "too_big",
            &["facts"],
            format!("a map of at most {BYTES} bytes"),
            size.to_string(),
            "The map is too big",
        ));
    }

    issues
}

/// Returns the problems of one fact.
fn problems_of(index: &str, fact: &MappedFact) -> Vec<ValidationIssue> {
    let mut issues = Vec::new();
    let mut refuse = |code: &str, steps: &[&str], expected: &str, received: &str, why: String| {
        let path: Vec<&str> = ["facts", index]
            .into_iter()
            .chain(steps.iter().copied())
            .collect();
        issues.push(ValidationIssue::new(code, &path, expected, received, why));
    };
    let name = &fact.name;

    if fact.fields.is_empty() && fact.printed.is_empty() && fact.declared.is_none() {
        let why = format!("Fact {name} has no source");
        refuse("no_source", &[], "fields, printed or declared", "none", why);
    }

    let is_money = fact.kind == FactKind::Money;
    if is_money != fact.currency.is_some() {
        let (expected, received) = if is_money {
            ("an ISO 4217 code, such as USD", "nothing")
        } else {
            ("no currency", "a currency")
        };
        let why = format!("Only amounts of money have a currency, and all of them; fact {name}");
        refuse("currency", &["currency"], expected, received, why);
    }

    if let Some(order) = &fact.date_order
        && (fact.kind != FactKind::Date || !["mdy", "dmy", "ymd"].contains(&order.as_str()))
    {
        let why = format!("date_order of fact {name} is no order of a date");
        refuse(
            "date_order",
            &["date_order"],
            "mdy, dmy or ymd, for a date",
            order,
            why,
        );
    }

    let is_number = matches!(
        fact.kind,
        FactKind::Integer | FactKind::Money | FactKind::Percentage
    );
    if let Some(separator) = &fact.decimal_separator
        && (!is_number || ![",", "."].contains(&separator.as_str()))
    {
        let why = format!("decimal_separator of fact {name} is none of a number");
        refuse(
            "decimal_separator",
            &["decimal_separator"],
            ", or . for a number",
            separator,
            why,
        );
    }

    for (place, printed) in fact.printed.iter().enumerate() {
        let place = place.to_string();
        let counts = printed.direction == FactDirection::NumberOfLine;
        if counts != printed.number.is_some() {
            let why = format!("number belongs to number_of_line, and only to that; fact {name}");
            refuse(
                "number",
                &["printed", &place, "number"],
                if counts { "1 or more" } else { "no number" },
                if counts { "nothing" } else { "a number" },
                why,
            );
        }

        if printed.anchor.trim().is_empty() {
            let why = format!("An anchor of fact {name} is blank");
            refuse(
                "blank",
                &["printed", &place, "anchor"],
                "a text of the document",
                &printed.anchor,
                why,
            );
        }
    }

    issues
}

/// Returns the map that applies to an envelope.
pub(super) async fn applying(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<FactMap>, StoreError> {
    let mut maps = fact_maps::list(connection, &envelope.org, MAPS).await?;
    // Test data is read with the maps of its organization.
    if envelope.org.is_test() {
        maps.extend(fact_maps::list(connection, &envelope.org.live(), MAPS).await?);
    }
    if maps.is_empty() {
        return Ok(None);
    }

    let mapped = mapped(connection, envelope).await?;
    let applying = maps.into_iter().filter_map(|map| {
        let closeness = map.document.applies_to.closeness(&mapped)?;
        Some((closeness, map))
    });
    // Ids sort by age, so of two equally close maps the newer one is chosen.
    let closest = applying.max_by(|(one, first), (other, second)| {
        one.cmp(other).then_with(|| first.id.cmp(&second.id))
    });
    Ok(closest.map(|(_, map)| map))
}

/// Returns what the map of an envelope is chosen by.
async fn mapped(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<MappedEnvelope, StoreError> {
    let source = |member: &str| envelope.metadata.get(member).and_then(Value::as_str);
    let mut templates: Vec<TemplateId> = envelope.template.iter().cloned().collect();
    templates.extend(source("source_template_id").and_then(TemplateId::parse));
    let mut packages: Vec<PackageId> = source("source_package_id")
        .and_then(PackageId::parse)
        .into_iter()
        .collect();

    // The document of an envelope can be composed of several templates.
    if let Some(id) = &envelope.template {
        let template = templates::find(connection, &envelope.org, id).await?;
        let made_for = template.and_then(|template| template.made_for);
        let source = made_for.map(|made_for| made_for.source);
        // It names the ids of what the document was composed of.
        for id in source.iter().flat_map(|source| source.split_whitespace()) {
            packages.extend(PackageId::parse(id));
            templates.extend(TemplateId::parse(id));
        }
    }

    let own = envelope.own_metadata();
    let kind = own.and_then(|own| own.get("contract_kind"));
    Ok(MappedEnvelope {
        templates,
        packages,
        contract_kind: kind.and_then(Value::as_str).map(str::to_owned),
    })
}

/// Returns a version of a map of the organization; for test data, also of its live one.
pub(super) async fn version(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &FactMapId,
    number: u32,
) -> Result<Option<FactMap>, StoreError> {
    let own = fact_maps::version(connection, org, id, number).await?;
    if own.is_some() || !org.is_test() {
        return Ok(own);
    }
    fact_maps::version(connection, &org.live(), id, number).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::field::FieldRules;

    fn starter() -> FactMapDocument {
        let request = CreateFactMap {
            starter: Some("retail_installment".into()),
            name: None,
            applies_to: Some(FactMapScope {
                all: true,
                ..FactMapScope::default()
            }),
            facts: None,
        };
        requested(request).unwrap()
    }

    fn codes(change: impl FnOnce(&mut FactMapDocument)) -> Vec<(String, String)> {
        let mut document = starter();
        change(&mut document);
        let issues = problems(&document).into_iter();
        let path = |path: Vec<Value>| {
            let steps = path.iter().map(|step| match step {
                Value::String(step) => step.clone(),
                step => step.to_string(),
            });
            steps.collect::<Vec<_>>().join(".")
        };
        issues.map(|issue| (issue.code, path(issue.path))).collect()
    }

    fn one(code: &str, path: &str) -> Vec<(String, String)> {
        vec![(code.to_owned(), path.to_owned())]
    }

    #[test]
    fn each_starter_is_a_map_without_problems() {
        assert!(codes(|_| {}).is_empty());
        for starter in starters().unwrap() {
            assert!(!starter.facts.is_empty(), "{}", starter.starter);
        }
    }

    #[test]
    fn problems_of_a_map_name_their_place() {
        let found = codes(|map| map.applies_to = FactMapScope::default());
        assert_eq!(found, one("no_scope", "applies_to"));
        let found = codes(|map| map.facts[1].name = "apr".into());
        assert_eq!(found, one("duplicate_name", "facts.1.name"));
        let found = codes(|map| map.facts[0].currency = Some("USD".into()));
        assert_eq!(found, one("currency", "facts.0.currency"));
        let found = codes(|map| map.facts[1].currency = None);
        assert_eq!(found, one("currency", "facts.1.currency"));
        let found = codes(|map| map.facts[0].date_order = Some("mdy".into()));
        assert_eq!(found, one("date_order", "facts.0.date_order"));
        let found = codes(|map| map.facts[0].decimal_separator = Some(";".into()));
        assert_eq!(found, one("decimal_separator", "facts.0.decimal_separator"));
        let found = codes(|map| map.facts[0].printed[0].number = Some(1));
        assert_eq!(found, one("number", "facts.0.printed.0.number"));
        let found = codes(|map| map.facts[0].printed[0].anchor = "  ".into());
        assert_eq!(found, one("blank", "facts.0.printed.0.anchor"));
        let found = codes(|map| {
            let fact = &mut map.facts[0];
            (fact.fields, fact.printed, fact.declared) = (Vec::new(), Vec::new(), None);
        });
        assert_eq!(found, one("no_source", "facts.0"));
        let found = codes(|map| {
            let place = map.facts[0].printed[0].clone();
            map.facts[0].printed = vec![place; PLACES];
        });
        assert_eq!(found, one("too_big", "facts"));
        let found = codes(|map| map.facts[0].fields = vec!["x".repeat(BYTES)]);
        assert_eq!(found, one("too_big", "facts"));
    }

    #[test]
    fn a_field_becomes_a_fact_with_the_name_and_type_that_a_starter_has_for_it() {
        let field = |name: &str, field_type: &str| Field {
            name: name.into(),
            field_type: field_type.into(),
            role: "Buyer".into(),
            required: true,
            readonly: false,
            default_value: None,
            options: Vec::new(),
            areas: Vec::new(),
            anchor_match: None,
            rules: FieldRules::default(),
        };
        let fields = [
            field("Amount financed", "number"),
            field("Delivery Day", "date"),
            field("2nd Driver's name", "text"),
            field("2nd Driver's name", "text"),
            field("Owner-occupied", "checkbox"),
            field("Sign here", "signature"),
            field("Pay stub", "attachment"),
            field("合同", "text"),
        ];

        let facts = of_fields(&fields).unwrap();
        let found: Vec<_> = facts
            .iter()
            .map(|one| (one.name.as_str(), one.kind))
            .collect();
        assert_eq!(
            found,
            [
                ("amount_financed", FactKind::Money),
                ("delivery_day", FactKind::Date),
                ("nd_driver_s_name", FactKind::Text),
                ("owner_occupied", FactKind::Boolean),
            ]
        );
        assert_eq!(facts[0].currency.as_deref(), Some("USD"));
        assert_eq!(facts[0].fields, ["Amount financed"]);
        assert!(facts.iter().all(|one| one.printed.is_empty()));
        let map = FactMapDocument { facts, ..starter() };
        assert!(problems(&map).is_empty());
    }

    #[test]
    fn a_map_without_a_starter_has_all_members() {
        let empty = CreateFactMap {
            starter: None,
            name: None,
            applies_to: None,
            facts: None,
        };
        let refused = |request: CreateFactMap| match requested(request) {
            Err(ServiceError::Invalid(issues)) => issues[0].path.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(empty.clone()), ["name"]);
        let unknown = CreateFactMap {
            starter: Some("lease".into()),
            ..empty.clone()
        };
        assert_eq!(refused(unknown), ["starter"]);
        let without_scope = CreateFactMap {
            starter: Some("retail_installment".into()),
            ..empty
        };
        assert_eq!(refused(without_scope), ["applies_to"]);
    }
}
