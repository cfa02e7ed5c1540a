//! Variables: `[[name]]` in the word processor document of a template. An envelope gives them values, and its PDF is
//! made anew of the document with these, so that the text flows around them.

use std::collections::BTreeMap;

use super::composition::{self, NewComposition};
use super::pages::PageCache;
use super::versions::{FieldOutcome, on_filled_text};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_domain::template::{Template, TemplateVariable, WordDocument};
use holdfast_platform::documents::settled;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, conversion};

/// Values by the names of variables.
pub type VariableValues = BTreeMap<String, String>;

/// Largest length of a value, in characters.
const LONGEST: usize = 5_000;

/// Refuses values that a template has no variable for, and texts that cannot stand in a document.
pub fn check_known(
    template: &Template,
    values: Option<&VariableValues>,
) -> Result<(), ServiceError> {
    let mut issues = Vec::new();
    for (name, value) in values.into_iter().flatten() {
        let path = ["variables", name.as_str()];
        if template.variables().iter().any(|known| known.name == *name) {
            issues.extend(problem_of(&path, value));
        } else {
            issues.push(unknown(&path, name, template));
        }
    }

    checked(issues)
}

/// Sets the defaults of a template's variables. Those that are not named keep theirs.
pub(super) fn set_defaults(
    template: &mut Template,
    wanted: &[TemplateVariable],
) -> Result<(), ServiceError> {
    let mut issues = Vec::new();
    for (index, variable) in wanted.iter().enumerate() {
        let index = index.to_string();
        let path = ["variables", index.as_str(), "default"];
        if let Some(default) = &variable.default {
            issues.extend(problem_of(&path, default));
        }

        let known = template.word_source.as_mut();
        let known = known.and_then(|source| {
            let mut variables = source.variables.iter_mut();
            variables.find(|known| known.name == variable.name)
        });
        match known {
            Some(known) => known.default.clone_from(&variable.default),
            None => {
                let path = ["variables", index.as_str(), "name"];
                issues.push(unknown(&path, &variable.name, template));
            }
        }
    }

    checked(issues)
}

/// Returns a value for each variable: the given one, or the default.
fn complete(
    template: &Template,
    values: Option<&VariableValues>,
) -> Result<Vec<(String, String)>, ServiceError> {
    check_known(template, values)?;
    let mut complete = Vec::new();
    let mut issues = Vec::new();
    for variable in template.variables() {
        let name = &variable.name;
        let given = values.and_then(|values| values.get(name));
        match given.or(variable.default.as_ref()) {
            Some(value) => complete.push((name.clone(), value.clone())),
            None => issues.push(ValidationIssue::new(
                "missing_variable",
                &["variables", name],
                "a text",
                "undefined",
                format!("The template has the variable {name} without a default: give its value"),
            )),
        }
    }

    checked(issues)?;
    Ok(complete)
}

/// Composes the document of a template with values in the place of its variables.
///
/// # Errors
/// `Invalid` for values that are missing, unknown or do not fit, and if a field has no place beside them; those of the
/// conversion.
pub(super) async fn filled(
    core: &Core,
    pages: &PageCache,
    caller: &Caller,
    template: &Template,
    values: Option<&VariableValues>,
    composition: NewComposition,
) -> Result<Template, ServiceError> {
    let values = complete(template, values)?;
    let source = template.word_source.as_ref();
    let source = source.ok_or_else(|| ServiceError::Internal("no variables to fill".into()))?;
    let file = &source.document.0;
    // The type was detected at the upload, so an unknown one is a fault of this program.
    let kind = WordDocument::parse(&file.content_type);
    let kind = kind.ok_or_else(|| ServiceError::Internal("a document of no known type".into()))?;

    let org = &template.org;
    let owner = WorkOwner::new(org, template.id.as_str());
    let document = core.files.get(file).await?;
    let made = conversion::with_values(core, org, &owner, (kind, document), &values);
    let (pdf, room) = made.await?;
    let pdf = settled(core, org, &owner, pdf, (None, false)).await?.pdf;
    let text = on_filled_text(core, pages, template, (pdf, room)).await?;

    let mut issues = Vec::new();
    for change in &text.changes {
        let (expected, message) = match (change.outcome, &change.reason) {
            // Only the author of the template makes fields.
            (FieldOutcome::Added, _) => (
                "values without tags of fields",
                format!(
                    "With these values, the document has another field: {}",
                    change.name
                ),
            ),
            (FieldOutcome::Lost, reason) => {
                let reason = reason.as_deref().unwrap_or_default();
                let name = &change.name;
                (
                    "values that leave each field its place",
                    format!("With these values, {name} has no place: {reason}"),
                )
            }
            (FieldOutcome::Kept | FieldOutcome::Moved | FieldOutcome::Changed, _) => continue,
        };
        let code = "field_without_place";
        issues.push(ValidationIssue::new(
            code,
            &["variables"],
            expected,
            change.name.as_str(),
            message,
        ));
    }
    checked(issues)?;

    let document = Some((text.pdf.clone(), text.placed));
    composition::keep(core, caller, composition, document, text.fields).await
}

fn unknown(path: &[&str], name: &str, template: &Template) -> ValidationIssue {
    let known: Vec<&str> = template
        .variables()
        .iter()
        .map(|variable| variable.name.as_str())
        .collect();
    let expected = if known.is_empty() {
        "no variables: the template has none".to_owned()
    } else {
        format!("one of: {}", known.join(", "))
    };
    let message = format!("The template has no variable {name}");
    ValidationIssue::new("unknown_variable", path, expected, name, message)
}

/// Returns why a text cannot take the place of a variable.
fn problem_of(path: &[&str], value: &str) -> Option<ValidationIssue> {
    let is_hidden = |one: char| one.is_control() && !['\n', '\r', '\t'].contains(&one);
    let (expected, message) = if value.chars().count() > LONGEST {
        let expected = format!("at most {LONGEST} characters");
        (expected, "The value is too long".to_owned())
    } else if value.chars().any(is_hidden) {
        let expected = "a text without control characters".to_owned();
        (expected, "The value has a control character".to_owned())
    } else if value.contains("{{") || value.contains("}}") {
        // Tags are instructions of the template's author, and values can come from anyone.
        let expected = "a text without {{ and }}".to_owned();
        (expected, "The value has brackets of a tag".to_owned())
    } else {
        return None;
    };

    Some(ValidationIssue::new(
        "invalid_string",
        path,
        expected,
        "",
        message,
    ))
}

fn checked(issues: Vec<ValidationIssue>) -> Result<(), ServiceError> {
    if issues.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(issues))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::envelope::{KeptFile, StoredFile};
    use holdfast_domain::id::OrgId;
    use holdfast_domain::template::WordSource;

    fn template() -> Template {
        let variable = |name: &str, default: Option<&str>| TemplateVariable {
            name: name.into(),
            default: default.map(str::to_owned),
        };
        let document = StoredFile {
            key: "templates/1".into(),
            sha256: "00".into(),
            size: 1,
            content_type: WordDocument::Docx.as_str().into(),
        };
        Template {
            word_source: Some(WordSource {
                document: KeptFile(document),
                variables: vec![variable("customer", None), variable("city", Some("Toledo"))],
            }),
            ..Template::new(
                OrgId::new(),
                "Lease".into(),
                "embedded".into(),
                Timestamp::from_millis(0),
            )
        }
    }

    fn values(given: &[(&str, &str)]) -> VariableValues {
        let given = given.iter();
        given
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    /// Returns the codes and the last steps of the paths of a refusal.
    fn refused<T>(result: Result<T, ServiceError>) -> Vec<(String, String)> {
        let Err(ServiceError::Invalid(issues)) = result else {
            return Vec::new();
        };
        let last = |issue: &ValidationIssue| issue.path.last().map(ToString::to_string);
        issues
            .iter()
            .map(|issue| {
                (
                    issue.code.clone(),
                    last(issue).unwrap_or_default().replace('"', ""),
                )
            })
            .collect()
    }

    #[test]
    fn each_variable_gets_the_given_value_or_its_default() {
        let given = values(&[("customer", "Ana\nLee")]);
        let complete = complete(&template(), Some(&given)).unwrap();
        let expected = [("customer", "Ana\nLee"), ("city", "Toledo")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(complete, expected);
    }

    #[test]
    fn missing_unknown_and_unfit_values_are_named() {
        let template = template();
        let refused_of =
            |given: &[(&str, &str)]| refused(complete(&template, Some(&values(given))));
        let issue = |code: &str, name: &str| vec![(code.to_owned(), name.to_owned())];
        assert_eq!(refused_of(&[]), issue("missing_variable", "customer"));
        assert_eq!(
            refused_of(&[("customer", "a"), ("cty", "b")]),
            issue("unknown_variable", "cty")
        );
        for value in [
            "{{Sign;type=signature}}",
            "}}",
            "\u{7}",
            &"x".repeat(LONGEST + 1),
        ] {
            assert_eq!(
                refused_of(&[("customer", value)]),
                issue("invalid_string", "customer")
            );
        }
    }

    #[test]
    fn defaults_are_set_by_name_and_taken_away() {
        let mut template = template();
        let wanted = |name: &str, default: Option<&str>| TemplateVariable {
            name: name.into(),
            default: default.map(str::to_owned),
        };
        set_defaults(&mut template, &[wanted("customer", Some("Ana"))]).unwrap();
        set_defaults(&mut template, &[wanted("city", None)]).unwrap();
        let defaults: Vec<Option<&str>> = template
            .variables()
            .iter()
            .map(|variable| variable.default.as_deref())
            .collect();
        assert_eq!(defaults, [Some("Ana"), None]);

        let unknown = set_defaults(&mut template, &[wanted("cty", None)]);
        assert_eq!(
            refused(unknown),
            [("unknown_variable".to_owned(), "name".to_owned())]
        );
    }
}
