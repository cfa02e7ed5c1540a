//! Questions to rules, and the answers to them that comparisons look at.

use bytes::Bytes;
use holdfast_store::SqlConnection;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::fields::resolved;
use crate::{Core, ServiceError};
use holdfast_components::answers::{AnswerPart, ComponentAnswer, assessment, failure, refused};
use holdfast_components::rules::{
    ComplianceRules, ControlRules, FundingRules, LifecycleRules, TransitionError, compliance,
    control, documents, funding, lifecycle, placement,
};
use holdfast_components::values::kebab;
use holdfast_components::{ComponentArtifact, ComponentError, Documents, Placement, WordedMark};
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::envelope::{EnvelopeStatus, StoredFile};
use holdfast_domain::field::Field;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::OrgId;
use holdfast_store::decisions::{self, DecisionWindow};
use holdfast_store::{StoreError, control as control_rows, funding as funding_rows};

/// Width of rendered page images, in pixels.
const PICTURE: u32 = 400;

/// A question that two components can be asked.
pub enum RulesQuestion {
    Evaluation(Box<compliance::EnvelopeFacts>),
    Move {
        from: Option<EnvelopeStatus>,
        trigger: lifecycle::EnvelopeTrigger,
        facts: lifecycle::EnvelopeFacts,
    },
    Act {
        act: control::Act,
        facts: Box<control::ControlFacts>,
    },
    Funding(Box<funding::FundingFacts>),
    /// Field placement on a stored document, which is read only when its turn comes.
    Placement {
        document: StoredFile,
        fields: Vec<placement::FieldRequest>,
    },
}

/// The question of a recorded decision.
pub struct RecordedQuestion {
    /// Id that the next page begins after.
    pub id: String,
    /// Envelope of the decision.
    pub record: String,
    /// Parameters, in the names of the host.
    pub given: Map<String, Value>,
}

/// Returns a page of an organization's recorded questions, newest first. Only decisions about envelopes are recorded.
pub async fn recorded(
    connection: &mut SqlConnection,
    org: &OrgId,
    slot: Slot,
    window: &DecisionWindow,
    limit: i64,
) -> Result<Vec<RecordedQuestion>, StoreError> {
    Ok(match slot {
        Slot::Compliance => {
            let found = decisions::last_evaluations(connection, org, window, limit).await?;
            let questions = found.into_iter().map(|one| {
                let record = one.envelope.to_string();
                RecordedQuestion::new(record.clone(), record, json!({ "facts": one.facts }))
            });
            questions.collect()
        }
        Slot::Lifecycle => {
            let found = decisions::last_moves(connection, org, window, limit).await?;
            let questions = found.into_iter().map(|one| {
                let given =
                    json!({ "current": one.from, "trigger": one.trigger, "facts": one.facts });
                RecordedQuestion::new(one.id.to_string(), one.envelope.to_string(), given)
            });
            questions.collect()
        }
        Slot::Control => {
            let found = control_rows::last_decisions(connection, org, window, limit).await?;
            let questions = found.into_iter().map(|one| {
                let given = json!({ "act": one.act, "facts": one.facts });
                RecordedQuestion::new(one.id.to_string(), one.envelope.to_string(), given)
            });
            questions.collect()
        }
        Slot::Funding => {
            let found = funding_rows::last_decisions(connection, org, window, limit).await?;
            let questions = found.into_iter().map(|one| {
                let given = json!({ "facts": one.facts });
                RecordedQuestion::new(one.id.to_string(), one.envelope.to_string(), given)
            });
            questions.collect()
        }
        _ => Vec::new(),
    })
}

impl RecordedQuestion {
    fn new(id: String, record: String, given: Value) -> Self {
        let given = match given {
            Value::Object(given) => given,
            _ => Map::new(),
        };
        Self { id, record, given }
    }

    /// Returns the question as the rules of the slot take it.
    pub fn decoded(&self, slot: Slot) -> Result<RulesQuestion, ServiceError> {
        Ok(match slot {
            Slot::Compliance => RulesQuestion::Evaluation(self.parameter("facts")?),
            Slot::Lifecycle => RulesQuestion::Move {
                from: self.parameter("current")?,
                facts: self.parameter("facts")?,
                trigger: self.parameter("trigger")?,
            },
            Slot::Control => RulesQuestion::Act {
                act: self.parameter("act")?,
                facts: self.parameter("facts")?,
            },
            Slot::Funding => RulesQuestion::Funding(self.parameter("facts")?),
            other => return Err(ServiceError::Internal(format!("{other} has no records"))),
        })
    }

    fn parameter<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<T, ServiceError> {
        stored(&self.record, self.given.get(name).unwrap_or(&Value::Null))
    }
}

/// Decodes a stored value.
pub(super) fn stored<T: for<'de> Deserialize<'de>>(
    record: &str,
    value: &Value,
) -> Result<T, ServiceError> {
    serde_json::from_value(value.clone())
        .map_err(|error| ServiceError::Internal(format!("the record {record}: {error}")))
}

/// Rules of a slot.
#[derive(Clone)]
pub enum AskedRules {
    Compliance(ComplianceRules),
    Lifecycle(LifecycleRules),
    Control(ControlRules),
    Funding(FundingRules),
    Placement(Placement),
    Documents(Documents),
}

impl AskedRules {
    /// Returns the active rules of an organization. None for providers, because a call acts on the vendor's side:
    /// asked again, it would act again.
    pub fn active(core: &Core, org: &OrgId, slot: Slot) -> Option<Self> {
        let (components, org) = (&core.components, Some(org));
        Some(match slot {
            Slot::Compliance => Self::Compliance(components.compliance(org)),
            Slot::Lifecycle => Self::Lifecycle(components.lifecycle(org)),
            Slot::Control => Self::Control(components.control(org)),
            Slot::Funding => Self::Funding(components.funding(org)),
            Slot::Placement => Self::Placement(core.placement(org)),
            Slot::Documents => Self::Documents(core.documents(org)),
            Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging | Slot::Conversion => {
                return None;
            }
        })
    }

    /// Loads a candidate. None for providers.
    pub fn candidate(
        core: &Core,
        slot: Slot,
        artifact: &ComponentArtifact,
    ) -> Result<Option<Self>, ComponentError> {
        let components = &core.components;
        Ok(Some(match slot {
            Slot::Compliance => Self::Compliance(components.compliance_from(artifact)?),
            Slot::Lifecycle => Self::Lifecycle(components.lifecycle_from(artifact)?),
            Slot::Control => Self::Control(components.control_from(artifact)?),
            Slot::Funding => Self::Funding(components.funding_from(artifact)?),
            Slot::Placement => Self::Placement(components.placement_from(artifact)?),
            Slot::Documents => Self::Documents(components.documents_from(artifact)?),
            Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging | Slot::Conversion => {
                return Ok(None);
            }
        }))
    }

    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        match self {
            Self::Compliance(rules) => rules.identity(),
            Self::Lifecycle(rules) => rules.identity(),
            Self::Control(rules) => rules.identity(),
            Self::Funding(rules) => rules.identity(),
            Self::Placement(rules) => rules.identity(),
            Self::Documents(rules) => rules.identity(),
        }
    }

    /// Asks a question that is not about a document. It may take milliseconds of processor time.
    pub fn answer(&self, question: &RulesQuestion) -> ComponentAnswer {
        match (self, question) {
            (Self::Compliance(rules), RulesQuestion::Evaluation(facts)) => {
                // A trap is an answer, too: the report counts it and continues with the next record.
                let evaluation = rules.evaluate(facts);
                evaluation.map_or_else(|error| failure(&error), |one| evaluation_answer(&one))
            }
            (
                Self::Lifecycle(rules),
                RulesQuestion::Move {
                    from,
                    trigger,
                    facts,
                },
            ) => {
                // Without the cache of answers, because the report compares the time of both.
                let led_to = rules.envelope_anew(*from, *trigger, facts);
                move_answer(*from, *trigger, &led_to)
            }
            (Self::Control(rules), RulesQuestion::Act { act, facts }) => {
                decision_answer(*act, &rules.decide(*act, facts))
            }
            (Self::Funding(rules), RulesQuestion::Funding(facts)) => {
                funding_answer(&rules.check(facts))
            }
            // Unreachable: rules are asked the questions of their own slot.
            _ => ComponentAnswer::new(),
        }
    }

    /// Works on a document.
    pub async fn answer_about(&self, pdf: Bytes) -> ComponentAnswer {
        match self {
            Self::Placement(rules) => read(rules, pdf).await,
            Self::Documents(rules) => written(rules, pdf).await,
            // Unreachable: other rules are asked about records.
            _ => ComponentAnswer::new(),
        }
    }
}

/// Converts an evaluation to an answer, check by check.
pub fn evaluation_answer(evaluation: &compliance::Evaluation) -> ComponentAnswer {
    let checks = evaluation.checks.iter();
    checks
        .map(|check| AnswerPart {
            name: check.requirement.clone(),
            reference: Some(check.ucc_reference.clone()),
            value: json!(check.satisfied),
            sentence: Some(check.detail.clone()),
            is_verdict: true,
        })
        .chain([
            AnswerPart::new("compliant", json!(evaluation.compliant)),
            AnswerPart::new("score", json!(evaluation.score)),
        ])
        .collect()
}

/// Converts a lifecycle decision to an answer.
pub fn move_answer(
    from: Option<EnvelopeStatus>,
    trigger: lifecycle::EnvelopeTrigger,
    led_to: &Result<EnvelopeStatus, TransitionError>,
) -> ComponentAnswer {
    let what = format!(
        "{} from {}",
        json!(trigger).as_str().unwrap_or_default(),
        from.map_or("nothing", EnvelopeStatus::as_str)
    );
    match led_to {
        Ok(to) => vec![AnswerPart::new(what, json!(to))],
        Err(TransitionError::Refused(refusal)) => {
            let reason = json!(refusal.reason);
            let reason = kebab(reason.as_str().unwrap_or_default());
            vec![AnswerPart {
                sentence: Some(refusal.message.clone()),
                ..AnswerPart::new(what, json!(refused(&reason)))
            }]
        }
        Err(TransitionError::Component(error)) => failure(error),
    }
}

/// Converts a decision about an act to an answer.
pub fn decision_answer(
    act: control::Act,
    decision: &Result<control::Decision, ComponentError>,
) -> ComponentAnswer {
    match decision {
        Ok(decision) => vec![AnswerPart::new(format!("{act:?}"), json!(decision))],
        Err(error) => failure(error),
    }
}

/// Converts an assessment to an answer, finding by finding.
pub fn funding_answer(assessed: &Result<funding::Assessment, ComponentError>) -> ComponentAnswer {
    match assessed {
        Ok(assessed) => assessment(&json!(assessed)),
        Err(error) => failure(error),
    }
}

/// Inspects a document with a reader component.
async fn read(rules: &Placement, pdf: Bytes) -> ComponentAnswer {
    let facts = match rules.inspect(pdf.clone()).await {
        Ok(facts) => facts,
        Err(error) => return failure(&error),
    };
    // The first page only, because documents take longer than other records.
    let text = match rules.text(pdf, 1).await {
        Ok(text) => text,
        Err(error) => return failure(&error),
    };

    vec![
        AnswerPart::new("pages", json!(format!("{facts:?}"))),
        AnswerPart::new(
            "text of the first page, SHA-256",
            json!(sha256(format!("{text:?}").as_bytes())),
        ),
    ]
}

/// Marks and renders a document with a writer component.
async fn written(rules: &Documents, pdf: Bytes) -> ComponentAnswer {
    // Fixed values: with the present time, both copies would differ in each run.
    let request = documents::MarkRequest {
        kind: documents::CopyKind::NonAuthoritative,
        envelope_id: "env_shadow".into(),
        secured_party: Some("First Example Bank".into()),
        marked_at: "2026-01-02T03:04:05.000Z".into(),
        rewrite: false,
    };
    let request = WordedMark {
        request,
        words: None,
    };
    let marked = match rules.mark(pdf.clone(), request).await {
        Ok(Ok(documents::Marked::Unchanged)) => json!("as it was"),
        Ok(Ok(documents::Marked::Appended(bytes) | documents::Marked::Rewritten(bytes))) => {
            json!(sha256(&bytes))
        }
        Ok(Err(refused)) => json!(format!("{refused:?}")),
        Err(error) => return failure(&error),
    };

    let picture = match rules.page_image(pdf, 1, PICTURE).await {
        Ok(Ok(picture)) => json!(sha256(&picture.png)),
        Ok(Err(refused)) => json!(format!("{refused:?}")),
        Err(error) => return failure(&error),
    };
    vec![
        AnswerPart::new("the document with a copy's mark, SHA-256", marked),
        AnswerPart::new("picture of the first page, SHA-256", picture),
    ]
}

/// Converts placed fields to an answer, by field name.
pub fn placed(fields: &[Field]) -> ComponentAnswer {
    fields
        .iter()
        .map(|field| AnswerPart::new(format!("field {}", field.name), json!(field.areas)))
        .collect()
}

/// Places fields with placement rules.
pub(super) async fn asked_to_place(
    rules: &Placement,
    pdf: Bytes,
    fields: Vec<placement::FieldRequest>,
) -> ComponentAnswer {
    match rules.place(pdf, fields).await {
        Ok(Ok(fields)) => placed(&fields.into_iter().map(resolved).collect::<Vec<_>>()),
        Ok(Err(refused)) => vec![AnswerPart::new("fields", json!(format!("{refused:?}")))],
        Err(error) => failure(&error),
    }
}
