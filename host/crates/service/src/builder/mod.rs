//! The field builder: a user of the organization places a template's fields on its pages, in a
//! session of one hour for that template only.

mod form_fields;
mod start;

pub use start::{IssuedSession, StartSession, start};

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::templates as template_service;
use crate::templates::pages::PageCache;
use crate::templates::{answers, pages, reserved_names, versions};
use holdfast_adapters::files::StorageArea as FileArea;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::placement::PageFacts;
use holdfast_domain::field::{Area, Field, FieldType, is_signature};
use holdfast_domain::id::{EnvelopeId, OrgId, RequestId, TemplateId};
use holdfast_domain::organization::{Organization, Role};
use holdfast_domain::template::{Template, TemplateReader};
use holdfast_domain::warning::Warning;
use holdfast_platform::access::jwt::{self, ExpiringClaims};
use holdfast_platform::access::{AccessState, BeginningCredential, users};
use holdfast_platform::documents::{
    DocumentUpload, SettledUpload, check_signable, read_whole, settled,
};
use holdfast_platform::organizations as organization_service;
use holdfast_platform::room::form::{SavedForm, SigningForm};
use holdfast_platform::{Core, ServiceError, ValidationIssue};
use holdfast_store::{organizations, signers, templates, users as user_rows};

/// `aud` of session tokens, so that no token of another purpose is accepted as one.
const AUDIENCE: &str = "holdfast field builder";

const FIELDS: usize = 1_000;
const AREAS: usize = 500;
const NAME_CHARACTERS: usize = 200;
const VALUE_CHARACTERS: usize = 4_000;
/// Minimum width and height, as a fraction of the page.
const SMALLEST: f64 = 0.002;

#[derive(Serialize, Deserialize)]
struct BuilderClaims {
    sub: String,
    org: OrgId,
    template: TemplateId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    return_url: Option<String>,
    jti: RequestId,
    aud: String,
    exp: i64,
    /// Credential of who began the session, sealed; none before release 0.2.
    #[serde(default)]
    begun: Option<String>,
    /// Role of the user who began the session; none of others, and before release 0.2.
    #[serde(default)]
    role: Option<Role>,
}

impl ExpiringClaims for BuilderClaims {
    fn exp(&self) -> i64 {
        self.exp
    }
}

/// Builder session: a user and the template they edit.
pub struct FieldBuilderSession {
    /// E-mail address.
    pub user: String,
    pub template: Template,
    /// Page to which the builder leads back.
    pub return_url: Option<String>,
}

/// Template as the builder shows it.
#[derive(Serialize)]
pub struct BuilderTemplate {
    pub template_id: TemplateId,
    pub name: String,
    /// In the order of their first appearance in the fields; then those of the signers of the draft that the document was
    /// made for.
    pub roles: Vec<String>,
    pub fields: Vec<Field>,
    /// Page sizes in points, as displayed. Empty while there is no document.
    pub pages: Vec<PageSize>,
    /// Revision that `SaveFields` must name, so that concurrent edits are not overwritten unseen.
    pub revision: String,
}

#[derive(Serialize)]
pub struct PageSize {
    pub width: f64,
    pub height: f64,
}

/// Body of a save: all fields of the template.
#[derive(Deserialize, JsonSchema)]
pub struct SaveFields {
    pub revision: String,
    pub fields: Vec<Field>,
}

/// Returns the session of a token; none if the token is invalid or expired.
pub async fn session(
    core: &Core,
    access: &AccessState,
    token: &str,
) -> Result<Option<FieldBuilderSession>, ServiceError> {
    let now = core.clock.now();
    let Some(claims) = jwt::read::<BuilderClaims>(&access.builder_keys, AUDIENCE, token, now)
    else {
        return Ok(None);
    };

    // The session ends with the credential that began it.
    let begun = claims.begun.as_deref();
    if !BeginningCredential::is_sealed_in_force(core, &claims.org, begun).await? {
        return Ok(None);
    }

    let mut connection = core.store.read().await?;
    let template = templates::get(&mut connection, &claims.org, &claims.template).await?;
    let Some(template) = template else {
        return Ok(None);
    };

    // Who sees the template may have changed meanwhile, and so may the role.
    if let Some(role) = claims.role {
        let (org, email) = (claims.org.live(), users::address(&claims.sub));
        let user = user_rows::by_address(&mut connection, &org, &email).await?;
        // Users of the operator's issuer can be without a row here.
        let role = user.map_or(role, |user| user.role);
        if !template.is_seen_by(TemplateReader::of(role, &email).as_ref()) {
            return Ok(None);
        }
    }

    // An origin that was withdrawn meanwhile is no way back.
    let return_url = match claims.return_url {
        Some(url) if !is_console(core, &url) => {
            let organization = organizations::get(&mut connection, &claims.org).await?;
            let settings = organization.map(|organization| organization.settings);
            settings
                .is_some_and(|settings| settings.permits_return_to(&url))
                .then_some(url)
        }
        own => own,
    };

    Ok(Some(FieldBuilderSession {
        user: claims.sub,
        template,
        return_url,
    }))
}

/// Whether a URL is a page of the console.
fn is_console(core: &Core, url: &str) -> bool {
    // The slash belongs to the prefix: a longer host name must not pass.
    url.starts_with(&format!("{}/console/", core.config.console_url()))
}

/// Returns the organization that issued a token, also when it has expired. None for a forged one.
pub async fn issuer(
    core: &Core,
    access: &AccessState,
    token: &str,
) -> Result<Option<Organization>, ServiceError> {
    let claims = jwt::read_expired::<BuilderClaims>(&access.builder_keys, AUDIENCE, token);
    let Some(claims) = claims else {
        return Ok(None);
    };
    let mut connection = core.store.read().await?;
    Ok(organizations::get(&mut connection, &claims.org).await?)
}

/// Returns the organization of a session.
pub async fn organization(
    core: &Core,
    session: &FieldBuilderSession,
) -> Result<Organization, ServiceError> {
    organization_service::read(core, &session.template.org).await
}

/// Returns the template with its pages.
pub async fn show(
    core: &Core,
    pages: &PageCache,
    session: &FieldBuilderSession,
) -> Result<BuilderTemplate, ServiceError> {
    let template = &session.template;
    let pages = page_sizes(core, pages, template).await?;
    Ok(BuilderTemplate {
        template_id: template.id.clone(),
        name: template.name.clone(),
        roles: roles(core, template).await?,
        revision: revision(template),
        fields: template.fields.clone(),
        pages: pages
            .iter()
            .map(|page| PageSize {
                width: page.width,
                height: page.height,
            })
            .collect(),
    })
}

/// Returns the roles that fields can be given to.
async fn roles(core: &Core, template: &Template) -> Result<Vec<String>, ServiceError> {
    let mut roles: Vec<String> = template.roles().into_iter().map(str::to_owned).collect();
    let made_for = template.made_for.as_ref();
    let Some(envelope) = made_for.and_then(|made_for| EnvelopeId::parse(&made_for.owner)) else {
        return Ok(roles);
    };

    let mut connection = core.store.read().await?;
    for signer in signers::list(&mut connection, &template.org, &envelope).await? {
        if !roles.contains(&signer.role) {
            roles.push(signer.role);
        }
    }

    Ok(roles)
}

async fn page_sizes(
    core: &Core,
    pages: &PageCache,
    template: &Template,
) -> Result<Vec<PageFacts>, ServiceError> {
    match &template.document {
        Some(document) => Ok(pages::facts(core, pages, document).await?.to_vec()),
        None => Ok(Vec::new()),
    }
}

fn revision(template: &Template) -> String {
    // Only what the builder edits counts, so a new name does not refuse a save.
    let fields = serde_json::to_vec(&template.fields).unwrap_or_default();
    let document = template.document.as_ref();
    let mut digest = Sha256::new_with_prefix(fields);
    digest.update(document.map_or("", |document| document.sha256.as_str()));
    hex::encode(digest.finalize())
}

/// Replaces all fields, here and at the provider.
pub async fn save(
    core: &Core,
    pages: &PageCache,
    session: &FieldBuilderSession,
    save: SaveFields,
) -> Result<BuilderTemplate, ServiceError> {
    let template = &session.template;
    if template.document.is_none() {
        return Err(ServiceError::Conflict("Template has no document".into()));
    }
    // An early answer for an outdated browser. The compare-and-swap of `write` decides.
    if save.revision != revision(template) {
        return Err(versions::changed());
    }

    let sizes = page_sizes(core, pages, template).await?;
    let issues = issues(&save.fields, sizes.len());
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    check_answers(core, template, &save.fields).await?;
    let saved = Template {
        fields: save.fields,
        ..template.clone()
    };
    write(core, pages, session, saved).await
}

/// Attaches or replaces the template's document. Fields on pages that still exist stay in place;
/// the others are removed. Fields of the document's own form are added.
pub async fn attach(
    core: &Core,
    pages: &PageCache,
    session: &FieldBuilderSession,
    file: DocumentUpload,
) -> Result<(BuilderTemplate, Vec<Warning>), ServiceError> {
    let template = &session.template;
    let (pdf, _room) = read_whole(
        core,
        &WorkOwner::new(&template.org, template.id.as_str()),
        &file,
    )
    .await?;

    let owner = WorkOwner::new(&template.org, template.id.as_str());
    let SettledUpload {
        pdf,
        repair,
        warnings,
        ..
    } = settled(
        core,
        &template.org,
        &owner,
        pdf,
        (file.password.as_deref(), false),
    )
    .await?;

    let reader = core.placement(Some(&template.org));
    let count = reader.inspect(pdf.clone()).await??.pages.len();
    check_signable(core, owner, pdf.clone()).await?;
    let mut fields = template.fields.clone();
    // The new document may have fewer pages.
    for field in &mut fields {
        field.areas.retain(|area| area.page as usize <= count);
    }

    fields.retain(|field| !field.areas.is_empty());
    form_fields::add(core, template, pdf.clone(), count, &mut fields).await?;
    let document = core
        .files
        .put(
            FileArea::Templates,
            &template.org,
            template.id.as_str(),
            pdf,
            "application/pdf",
        )
        .await?;

    let attached = Template {
        document: Some(document),
        repair,
        fields,
        // The variables are those of the document before.
        word_source: None,
        ..template.clone()
    };

    let shown = write(core, pages, session, attached).await?;
    Ok((shown, warnings))
}

/// Body of a preview: the fields as they are in the browser.
#[derive(Deserialize, JsonSchema)]
pub struct PreviewFields {
    pub fields: Vec<Field>,
    /// Role of the signer.
    pub role: String,
    /// Entries that the author tries, by field name.
    #[serde(default)]
    pub values: Option<BTreeMap<String, String>>,
}

/// The form that a signer of a role will get.
pub struct FormPreview {
    pub form: SigningForm,
    /// What the rules say about the tried entries.
    pub tried: SavedForm,
    pub pages: Arc<[PageFacts]>,
    pub organization: Organization,
    /// Whether signers may decline.
    pub may_decline: bool,
}

/// Makes the signing form of the fields in the browser. Nothing is stored.
pub async fn preview(
    core: &Core,
    pages: &PageCache,
    session: &FieldBuilderSession,
    shown: PreviewFields,
) -> Result<FormPreview, ServiceError> {
    let template = &session.template;
    let Some(document) = &template.document else {
        return Err(ServiceError::Conflict("Template has no document".into()));
    };

    let pages = pages::facts(core, pages, document).await?;
    let issues = issues(&shown.fields, pages.len());
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues));
    }

    // The preview refuses what a save would refuse.
    check_answers(core, template, &shown.fields).await?;
    let organization = organization(core, session).await?;
    let (dates, now) = (organization.settings.dates.clone(), core.clock.now());
    let form = SigningForm::preview(
        &template.org,
        document.clone(),
        shown.fields,
        &shown.role,
        dates,
        now,
    );

    let values = shown.values.unwrap_or_default();
    let tried = core.room().tried(form, values).await;
    let (form, tried) = tried?;
    Ok(FormPreview {
        form,
        tried,
        pages,
        organization,
        may_decline: template.may_decline,
    })
}

/// Writes the local template first: its compare-and-swap decides between two concurrent editors.
/// Nothing is sent from it until the provider has the same content.
async fn write(
    core: &Core,
    pages: &PageCache,
    session: &FieldBuilderSession,
    after: Template,
) -> Result<BuilderTemplate, ServiceError> {
    let before = &session.template;
    let now = core.clock.now();
    // Another document makes another version; other fields do not.
    let after = if after.document == before.document {
        after
    } else {
        versions::next(before, after, session.user.clone(), now)
    };

    let mut tx = core.store.begin().await?;
    versions::write(&mut tx, before, &after, now).await?;
    tx.commit().await?;

    let (template, user) = (after.id.as_str(), session.user.as_str());
    tracing::info!(template, user, "template changed in the builder");
    // `synced` looks at this mark, which the row has by now.
    let written = Template {
        provider_stale: true,
        ..after
    };
    let session = FieldBuilderSession {
        user: session.user.clone(),
        template: template_service::synced(core, written).await?,
        return_url: session.return_url.clone(),
    };

    show(core, pages, &session).await
}

/// Refuses rules about answers that could not be applied.
async fn check_answers(
    core: &Core,
    template: &Template,
    fields: &[Field],
) -> Result<(), ServiceError> {
    match &template.document {
        Some(document) => {
            // Defaults and signatures are tried out on the pages, which takes the whole document.
            let pdf = core.files.get(document).await?;
            let at = (&template.org, template.provider_instance.as_str());
            answers::check(core, at, &pdf, fields, 0).await
        }
        None => Ok(()),
    }
}

/// Returns all problems of all fields.
fn issues(fields: &[Field], pages: usize) -> Vec<ValidationIssue> {
    // The author corrects a page of fields at once, so all problems are reported.
    let mut issues = reserved_names(fields);
    issues.extend(answers::options(fields));
    if fields.len() > FIELDS {
        let message = format!("A template has at most {FIELDS} fields");
        let received = fields.len().to_string();
        issues.push(ValidationIssue::new(
            "too_big",
            &["fields"],
            FIELDS.to_string(),
            received,
            message,
        ));
    }

    // Fields of one name hold one value, so they have one type.
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, field) in fields.iter().enumerate() {
        let index = index.to_string();
        let mut say = |code: &str, path: &[&str], expected: &str, received: &str, message: &str| {
            let path = [&["fields", index.as_str()], path].concat();
            issues.push(ValidationIssue::new(
                code, &path, expected, received, message,
            ));
        };
        // The same limits as in the schema of `RequestedField`, which the API checks.
        for (member, text) in [("name", &field.name), ("role", &field.role)] {
            let length = text.trim().chars().count();
            if length == 0 || length > NAME_CHARACTERS {
                say(
                    "wrong_length",
                    &[member],
                    "1 to 200 characters",
                    text,
                    "Enter 1 to 200 characters",
                );
            }
        }

        let kind = field.field_type.as_str();
        if FieldType::parse(kind).is_none() {
            say(
                "invalid_enum_value",
                &["type"],
                &FieldType::ALL
                    .iter()
                    .map(|kind| kind.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
                kind,
                "Unknown type of field",
            );
        }

        let first = *types.entry(&field.name).or_insert(kind);
        if first != kind {
            let message = format!("Field {} exists with type {first}", field.name);
            say("conflicting_type", &["type"], first, kind, &message);
        }

        let default = field.default_value.as_deref().unwrap_or_default();
        if !default.is_empty() && is_signature(kind) {
            say(
                "signature_field",
                &["default_value"],
                "none",
                default,
                "Nobody signs for somebody else",
            );
        }

        if default.chars().count() > VALUE_CHARACTERS {
            say(
                "too_big",
                &["default_value"],
                "at most 4000 characters",
                "more",
                "Enter at most 4000 characters",
            );
        }

        if field.areas.is_empty() || field.areas.len() > AREAS {
            say(
                "wrong_length",
                &["areas"],
                "1 to 500 areas",
                &field.areas.len().to_string(),
                "Place the field on a page",
            );
        }

        for (place, area) in field.areas.iter().enumerate() {
            if !fits(area, pages) {
                let message = "The area is not on a page of the document";
                say(
                    "outside_page",
                    &["areas", &place.to_string()],
                    "an area on a page",
                    "one outside",
                    message,
                );
            }
        }
    }

    issues
}

/// Returns whether an area is within its page, with a tolerance for rounding.
fn fits(area: &Area, pages: usize) -> bool {
    const ROUNDING: f64 = 1e-6;
    // NaN fails every comparison, so such an area counts as outside.
    let inside = |start: f64, length: f64| {
        start >= 0.0 && length >= SMALLEST && start + length <= 1.0 + ROUNDING
    };
    area.page >= 1
        && area.page as usize <= pages
        && inside(area.x, area.w)
        && inside(area.y, area.h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::field::FieldRules;

    fn field(name: &str, field_type: &str, area: Area) -> Field {
        Field {
            name: name.into(),
            field_type: field_type.into(),
            role: "Buyer".into(),
            required: true,
            readonly: false,
            default_value: None,
            options: Vec::new(),
            areas: vec![area],
            anchor_match: None,
            rules: FieldRules::default(),
        }
    }

    const PLACE: Area = Area {
        page: 1,
        x: 0.1,
        y: 0.9,
        w: 0.3,
        h: 0.1,
    };

    fn codes(fields: &[Field]) -> Vec<String> {
        issues(fields, 2)
            .into_iter()
            .map(|issue| issue.code)
            .collect()
    }

    #[test]
    fn a_field_has_a_name_a_role_a_type_and_a_place_on_a_page() {
        assert!(codes(&[field("Name", "text", PLACE)]).is_empty());
        assert_eq!(codes(&[field(" ", "text", PLACE)]), ["wrong_length"]);
        assert_eq!(
            codes(&[field("Name", "stamp", PLACE)]),
            ["invalid_enum_value"]
        );
        assert_eq!(codes(&[field("Plan", "select", PLACE)]), ["too_small"]);

        for wrong in [
            Area { page: 3, ..PLACE },
            Area { page: 0, ..PLACE },
            Area { y: 0.95, ..PLACE },
            Area { x: -0.1, ..PLACE },
            Area { w: 0.0, ..PLACE },
            Area {
                w: f64::NAN,
                ..PLACE
            },
        ] {
            assert_eq!(
                codes(&[field("Name", "text", wrong)]),
                ["outside_page"],
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn fields_of_one_name_have_one_type_and_signatures_no_default() {
        let both = [field("Name", "text", PLACE), field("Name", "date", PLACE)];
        assert_eq!(codes(&both), ["conflicting_type"]);
        let signed = Field {
            default_value: Some("Ann".into()),
            ..field("Signature", "signature", PLACE)
        };
        assert_eq!(codes(&[signed]), ["signature_field"]);
    }
}
