//! Rules about the answers of signers, as the placement component applies them to a form.

use std::collections::{BTreeMap, BTreeSet};

use super::Room;
use super::form::{Problems, SigningForm, unsent};
use holdfast_components::ComponentError;
use holdfast_components::rules::field_rules::{Entry, FieldState, Problem, RuledField};
use holdfast_domain::dates::DateFormat;
use holdfast_domain::field::Field;
use holdfast_domain::locale::Message;
use holdfast_store::room::RoomField;

/// What the rules say about a signer's fields.
pub(super) struct AppliedRules {
    /// The signer's fields; `required` holds for the entries so far.
    pub(super) fields: Vec<RoomField>,
    /// Names of the fields that are not shown.
    pub(super) hidden: BTreeSet<String>,
    /// Results of formulas by field name.
    pub(super) computed: BTreeMap<String, String>,
    /// Entries against the rules, by field name.
    pub(super) problems: Problems,
    /// Whether any field of the document has a rule.
    pub(super) has_rules: bool,
}

impl Room {
    /// Applies the rules of a form's document to these values of its signer, and to the entries of those
    /// who have signed.
    pub(super) async fn apply_rules(
        &self,
        form: &SigningForm,
        values: &BTreeMap<String, String>,
    ) -> Result<AppliedRules, ComponentError> {
        let mut applied = AppliedRules {
            fields: form.fields.clone(),
            hidden: BTreeSet::new(),
            computed: BTreeMap::new(),
            problems: Problems::new(),
            has_rules: has_rules(&form.submission.fields),
        };
        if !applied.has_rules {
            return Ok(applied);
        }

        // The signer's own fields come first, with what the form knows about them.
        let role = &form.submitter.role;
        let all = form.submission.fields.iter();
        let others = all.filter(|field| field.submitter_uuid != *role);

        // Signed answers are final: their rules are not applied again.
        let has_signed = |field: &RoomField| {
            let mut signed = form.document.signed.iter();
            signed.any(|other| other.role == field.submitter_uuid)
        };
        let final_or_ruled = |field: &RoomField| {
            if has_signed(field) {
                RuledField {
                    attributes: Vec::new(),
                    ..ruled(field)
                }
            } else {
                ruled(field)
            }
        };

        let ruled = form.fields.iter().chain(others).map(final_or_ruled);
        let ruled = ruled.collect();
        let own = entries(role, values);
        let signed = form.document.signed.iter();
        let signed = signed.flat_map(|other| entries(&other.role, &other.values));
        let rules = self
            .components
            .answer_rules(&form.submitter.org, self.store.priority());

        let states = rules
            .apply(ruled, own.chain(signed).collect(), form.today.clone())
            .await?;
        // The component answers in the order of the question, so the signer's
        // own fields come first here, too.
        for (field, state) in applied.fields.iter_mut().zip(states) {
            let FieldState {
                shown,
                required,
                computed,
                problem,
            } = state;
            field.required = required;

            if !shown {
                applied.hidden.insert(field.name.clone());
            }

            if let Some(computed) = computed {
                applied.computed.insert(field.name.clone(), computed);
            }

            // A signer cannot correct a value that only the sender can change.
            let problem = problem.filter(|_| !field.readonly);
            if let Some(problem) = problem {
                let why = message(field, problem, form.dates.format);
                applied.problems.insert(field.name.clone(), why);
            }
        }

        Ok(applied)
    }
}

/// Returns whether any field has a rule.
fn has_rules(fields: &[RoomField]) -> bool {
    fields.iter().any(|field| !field.rules.is_empty())
}

fn entries<'a>(
    role: &'a str,
    values: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = Entry> + 'a {
    // A picture of a signature counts as an answer; its bytes do not matter.
    let brief = |value: &str| {
        if super::signature::is_picture(value) {
            "data:".to_owned()
        } else {
            value.to_owned()
        }
    };

    values.iter().map(move |(name, value)| Entry {
        role: role.to_owned(),
        name: name.clone(),
        value: brief(value),
    })
}

fn ruled(field: &RoomField) -> RuledField {
    RuledField {
        name: field.name.clone(),
        field_type: field.field_type.clone(),
        role: field.submitter_uuid.clone(),
        required: field.required,
        attributes: field.rules.attributes(),
    }
}

/// Returns a field of a template as the rules see it.
pub fn ruled_field(field: &Field) -> RuledField {
    ruled(&unsent(field.clone()))
}

fn message(field: &RoomField, problem: Problem, dates: DateFormat) -> Message {
    let is_date = field.field_type == "date";
    // The rules have ISO dates. The signer reads the limit in the form of the document.
    let limit = |limit: &str| {
        if is_date {
            dates.written(limit)
        } else {
            limit.to_owned()
        }
    };
    match problem {
        Problem::TooSmall(least) if is_date => Message::Limit("problem-too-early", limit(&least)),
        Problem::TooSmall(least) => Message::Limit("problem-too-small", limit(&least)),
        Problem::TooBig(most) if is_date => Message::Limit("problem-too-late", limit(&most)),
        Problem::TooBig(most) => Message::Limit("problem-too-big", limit(&most)),
        Problem::TooLong(most) => Message::with_limit("problem-too-long", most as usize),
        Problem::NoMatch(Some(words)) => Message::Written(words),
        Problem::NoMatch(None) => Message::new("problem-pattern"),
    }
}
