//! The question to funding rules: the facts of a contract and what the host knows besides.

use super::text_of;
use crate::facts;
use holdfast_components::rules::funding::{
    self, Area, FactOrigin, FundingFacts, Stage, StipulationState, ValueKind,
};
use holdfast_domain::envelope::{Envelope, SignatureExecution, Signer, SignerKind};
use holdfast_domain::facts::{self as known, Fact, FactKind, FactSheet, FactStatus};
use holdfast_domain::funding::{self as nouns, FundingStage, Stipulation};
use holdfast_platform::{Core, ServiceError};

/// Prefix of attributes with the partner's own facts. It keeps a partner's name from posing as an attribute of the
/// host.
const METADATA: &str = "metadata.";
/// Attribute: `esign` or `paper`.
const KIND: &str = "envelope_kind";
/// The missing parts of a signer with a form without a signature.
const NO_FIELD: &str = "a signature field";

/// Returns the facts that were read from the contract; none without a fact map.
pub(super) async fn sheet(
    core: &Core,
    envelope: &Envelope,
    stage: FundingStage,
) -> Result<Option<FactSheet>, ServiceError> {
    match stage {
        // The envelope of a sending is not stored yet, with its document and values.
        FundingStage::BeforeSending => facts::of_draft(core, envelope).await,
        FundingStage::AfterSigning | FundingStage::Transfer => {
            facts::of_envelope(core, &envelope.org, &envelope.id).await
        }
    }
}

/// Writes the question.
pub(super) fn facts(
    envelope: &Envelope,
    people: &[Signer],
    sheet: Option<&FactSheet>,
    stipulations: &[Stipulation],
    stage: FundingStage,
    today: String,
) -> FundingFacts {
    let facts = sheet
        .map(|sheet| sheet.facts.as_slice())
        .unwrap_or_default();
    let own = envelope.own_metadata().into_iter().flatten();
    let own = own.map(|(name, value)| (format!("{METADATA}{name}"), text_of(value)));

    FundingFacts {
        facts: facts.iter().map(fact).collect(),
        signers: people.iter().map(signer).collect(),
        stipulations: stipulations.iter().map(stipulation).collect(),
        secured_party: envelope
            .secured_party
            .as_ref()
            .map(|party| party.name.clone()),
        jurisdictions: envelope
            .jurisdiction()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        today,
        stage: match stage {
            FundingStage::BeforeSending => Stage::BeforeSending,
            FundingStage::AfterSigning => Stage::AfterSigning,
            FundingStage::Transfer => Stage::Transfer,
        },
        attributes: [(KIND.to_owned(), envelope.kind.to_string())]
            .into_iter()
            .chain(own)
            .collect(),
    }
}

fn fact(fact: &Fact) -> funding::Fact {
    let strongest = fact.sources.first();

    funding::Fact {
        name: fact.name.clone(),
        kind: match fact.kind {
            FactKind::Text => ValueKind::Text,
            FactKind::Integer => ValueKind::Integer,
            FactKind::Money => ValueKind::Money,
            FactKind::Percentage => ValueKind::Percentage,
            FactKind::Date => ValueKind::Date,
            FactKind::Vin => ValueKind::Vin,
            FactKind::Boolean => ValueKind::Boolean,
        },
        currency: fact.currency.clone(),
        status: match fact.status {
            FactStatus::Known => funding::FactStatus::Known,
            FactStatus::Conflicting => funding::FactStatus::Conflicting,
            FactStatus::Missing => funding::FactStatus::Missing,
            FactStatus::Unreadable => funding::FactStatus::Unreadable,
        },
        value: fact.value.clone(),
        origin: fact.origin.map(|origin| match origin {
            known::FactOrigin::Signed => FactOrigin::Signed,
            known::FactOrigin::Printed => FactOrigin::Printed,
            known::FactOrigin::Declared => FactOrigin::Declared,
        }),
        words: strongest
            .map(|source| source.words.clone())
            .unwrap_or_default(),
        area: strongest
            .and_then(|source| source.place.as_ref())
            .map(|place| Area {
                page: place.page,
                x: place.x,
                y: place.y,
                w: place.w,
                h: place.h,
            }),
    }
}

fn signer(signer: &Signer) -> funding::Signer {
    // A form is finished only with all its required signatures and initials.
    let has_no_field =
        signer.kind == SignerKind::Signer && signer.execution == Some(SignatureExecution::NotAsked);
    let missing = has_no_field.then(|| NO_FIELD.to_owned());
    funding::Signer {
        role: signer.role.clone(),
        name: signer.name.clone(),
        is_signed: signer.completed_at.is_some(),
        missing_signatures: missing.into_iter().collect(),
        missing_initials: Vec::new(),
    }
}

fn stipulation(stipulation: &Stipulation) -> funding::Stipulation {
    funding::Stipulation {
        kind: stipulation.kind.clone(),
        state: match stipulation.state {
            nouns::StipulationState::Open => StipulationState::Open,
            nouns::StipulationState::Received => StipulationState::Received,
            nouns::StipulationState::Waived => StipulationState::Waived,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::component::ComponentIdentity;
    use holdfast_domain::envelope::EnvelopeKind;
    use holdfast_domain::facts::{FactMapIdentity, FactPlace, FactSource};
    use holdfast_domain::id::{CustomerId, OrgId};

    fn contract() -> Envelope {
        Envelope::new(
            OrgId::new(),
            CustomerId::new(),
            "Contract".into(),
            EnvelopeKind::Esign,
            "key:1".into(),
            Timestamp::from_millis(0),
        )
    }

    fn sheet() -> FactSheet {
        FactSheet {
            fact_map: FactMapIdentity {
                fact_map_id: "fm_1".into(),
                version: 1,
                sha256: "0".repeat(64),
            },
            component: ComponentIdentity {
                name: "reader".into(),
                version: "1.0.0".into(),
                sha256: "0".repeat(64),
            },
            document_sha256: "0".repeat(64),
            facts: vec![Fact {
                name: "apr".into(),
                kind: FactKind::Percentage,
                currency: None,
                status: FactStatus::Known,
                value: Some("7.9".into()),
                origin: Some(known::FactOrigin::Printed),
                sources: vec![FactSource {
                    origin: known::FactOrigin::Printed,
                    value: Some("7.9".into()),
                    words: "7.90 %".into(),
                    problem: None,
                    place: Some(FactPlace {
                        page: 2,
                        x: 0.25,
                        y: 0.5,
                        w: 0.125,
                        h: 0.0625,
                    }),
                    field: None,
                    role: None,
                }],
            }],
        }
    }

    #[test]
    fn a_question_has_facts_with_places_and_the_partners_own_facts_apart() {
        let mut envelope = contract();
        let own = serde_json::json!({ "envelope_kind": "paper", "miles": 12 });
        envelope
            .metadata
            .insert(holdfast_domain::envelope::OWN_METADATA.into(), own);
        let mut buyer = Signer::new(0, "Ann".into(), "ann@example.com".into(), "Buyer".into());
        buyer.execution = Some(SignatureExecution::NotAsked);
        let open = Stipulation::open(envelope.id.clone(), "insurance".into(), None);
        let stage = FundingStage::AfterSigning;
        let asked = facts(
            &envelope,
            &[buyer],
            Some(&sheet()),
            &[open],
            stage,
            "2026-06-03".into(),
        );

        assert_eq!(asked.facts[0].words, "7.90 %");
        assert_eq!(asked.facts[0].area.as_ref().map(|area| area.page), Some(2));
        assert_eq!(asked.today, "2026-06-03");
        assert!(!asked.signers[0].is_signed);
        assert_eq!(asked.signers[0].missing_signatures, [NO_FIELD]);
        assert_eq!(asked.stipulations[0].state, StipulationState::Open);
        let attribute = |name: &str| {
            let mut all = asked.attributes.iter();
            all.find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(attribute("envelope_kind"), Some("esign"));
        assert_eq!(attribute("metadata.envelope_kind"), Some("paper"));
        assert_eq!(attribute("metadata.miles"), Some("12"));
    }

    #[test]
    fn a_contract_without_a_sheet_has_no_facts() {
        let today = "2026-06-03".to_owned();
        let asked = facts(
            &contract(),
            &[],
            None,
            &[],
            FundingStage::BeforeSending,
            today,
        );
        assert!(asked.facts.is_empty() && asked.secured_party.is_none());
    }
}
