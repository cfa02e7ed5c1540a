//! Webhooks in the OpenAPI document: one for each type of event, with the schema of its body.

use aide::openapi::{
    OpenApi, Operation, Parameter, ParameterData, ParameterSchemaOrContent, PathItem, ReferenceOr,
    RequestBody, Response, StatusCode,
};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, json};

use super::openapi::{content, schema_object};
use holdfast_domain::bulk::BatchStatus;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::control::ControlStage;
use holdfast_domain::envelope::{EnvelopeKind, EnvelopeStatus};
use holdfast_domain::erasure::ErasureState;
use holdfast_domain::event::EventType;
use holdfast_domain::funding::{AppliedPack, FundingStage};
use holdfast_domain::identity::KbaStatus;
use holdfast_domain::retention::Retention;
use holdfast_service::control::disputes::SuspensionView;
use holdfast_service::control::invitations::InvitationView;
use holdfast_service::control::keys::PartyKeyView;
use holdfast_service::control::pledges::PledgeView;
use holdfast_service::control::transfers::TransferView;
use holdfast_service::control::{PartyView, ReleaseRequestView};
use holdfast_service::funding::FindingView;
use holdfast_service::inspection::views::ViewView;
use holdfast_service::retention::holds::HoldView;

/// Adds the webhooks to the document.
pub fn add(api: &mut OpenApi) {
    for event in EventType::ALL {
        let item = PathItem {
            post: Some(operation(*event)),
            ..PathItem::default()
        };
        api.webhooks
            .insert(event.to_string(), ReferenceOr::Item(item));
    }
}

fn operation(event: EventType) -> Operation {
    let (description, _) = event.described();
    let taken = Response {
        description: "Any 2xx within ten seconds accepts the event; anything else is retried"
            .into(),
        ..Response::default()
    };
    let mut operation = Operation {
        tags: vec!["webhooks".into()],
        summary: Some(description.into()),
        operation_id: Some(name(event)),
        parameters: headers(),
        request_body: Some(ReferenceOr::Item(RequestBody {
            required: true,
            content: content("application/json", body(event), None),
            ..RequestBody::default()
        })),
        ..Operation::default()
    };

    // Any success counts, so the answer is a range and not one status.
    operation
        .responses
        .get_or_insert_default()
        .responses
        .insert(StatusCode::Range(2), ReferenceOr::Item(taken));

    operation
}

/// Returns the name of the handler that a generator makes: `onVaultStored`.
fn name(event: EventType) -> String {
    let words = event.as_str().split(['.', '_']);
    let words = words.map(|word| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_uppercase() + rest,
        None => String::new(),
    });
    format!("on{}", words.collect::<String>())
}

fn headers() -> Vec<ReferenceOr<Parameter>> {
    // A header of some deliveries only, such as the signature of a rotated secret, is left out: all of these
    // are required.
    let headers = [
        ("webhook-id", "Id of the event, the same on every retry"),
        ("webhook-timestamp", "Seconds since 1970"),
        (
            "webhook-signature",
            "`v1,` and the signature of Standard Webhooks",
        ),
        ("X-Service-Event", "Type of the event"),
        ("X-Service-Delivery", "Id of the delivery"),
        ("X-Service-Endpoint", "Id of the receiver"),
        ("X-Service-Signature", "`sha256=` and the HMAC of the body"),
    ];

    let header = |(name, description): (&str, &str)| {
        let schema = schema_object(json_schema!({ "type": "string" }));
        ReferenceOr::Item(Parameter::Header {
            parameter_data: ParameterData {
                name: name.into(),
                description: Some(description.into()),
                required: true,
                deprecated: None,
                format: ParameterSchemaOrContent::Schema(schema),
                example: None,
                examples: Default::default(),
                explode: None,
                extensions: Default::default(),
            },
            style: Default::default(),
        })
    };

    headers.into_iter().map(header).collect()
}

/// Returns the schema of an event's body.
pub fn body(event: EventType) -> Schema {
    let (description, members) = event.described();
    let mut data = Map::new();
    // Every event has these, and null where it is about no envelope.
    for member in ["envelope_id", "customer_id", "external_id"] {
        data.insert(member.into(), json!({ "type": ["string", "null"] }));
    }

    // `required` below has only the members of every event of the type.
    for member in members.iter().chain(sometimes(event)) {
        data.insert((*member).into(), schema_of(event, member).to_value());
    }

    json_schema!({
        "type": "object",
        "description": description,
        "required": ["event_type", "event_id", "org_id", "envelope_id", "timestamp", "data"],
        "properties": {
            "event_type": { "const": event.as_str() },
            "event_id": { "type": "string", "pattern": "^evt_[0-9a-z]{26}$" },
            "org_id": { "type": "string", "pattern": "^org_(test_)?[0-9a-z]{26}$" },
            "envelope_id": { "type": ["string", "null"], "pattern": "^env_[0-9a-z]{26}$" },
            "timestamp": { "type": "string", "format": "date-time" },
            "data": { "type": "object", "properties": data, "required": members },
        },
    })
}

/// Returns the members that only some events of a type have.
fn sometimes(event: EventType) -> &'static [&'static str] {
    match event {
        EventType::EnvelopeCreated => &["open_link"],
        EventType::VaultReleased | EventType::ControlReleased => &["medium"],
        // Of an envelope that was voided because its document was corrected.
        EventType::EnvelopeVoided => &["corrected_by", "void_signatures"],
        EventType::VaultTamperDetected => &["problems"],
        // By its cause.
        EventType::RecordDestroyed => &["destruction_id", "erasure_id"],
        // Of a claim that was outranked.
        EventType::ControlDisputed => &["kind", "since"],
        _ => &[],
    }
}

/// Returns the schema of a type with its parts inside it.
pub fn inlined<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    schema.remove("title");
    schema
}

/// Returns the schema of a member of a type.
fn member_of<T: JsonSchema>(member: &str) -> Option<Schema> {
    let schema = inlined::<T>();
    let found = schema.get("properties")?.get(member)?.clone();
    found.try_into().ok()
}

fn text() -> Schema {
    json_schema!({ "type": "string" })
}

fn optional_text() -> Schema {
    json_schema!({ "type": ["string", "null"] })
}

fn moment() -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

fn number() -> Schema {
    json_schema!({ "type": "integer" })
}

fn signer() -> Schema {
    json_schema!({
        "type": "object",
        "required": ["name", "email", "role"],
        "properties": {
            "name": { "type": "string" }, "email": { "type": "string" }, "role": { "type": "string" },
        },
    })
}

fn list(of: Schema) -> Schema {
    json_schema!({ "type": "array", "items": of })
}

fn or_null(of: Schema) -> Schema {
    json_schema!({ "anyOf": [of, { "type": "null" }] })
}

/// Returns the schema of a member of an event's data.
fn schema_of(event: EventType, member: &str) -> Schema {
    use EventType as E;

    // These events carry the same object as the API's answer, so the schema is that of its type.
    let typed = match event {
        E::ControlTransferProposed
        | E::ControlTransferAccepted
        | E::ControlTransferConfirmed
        | E::ControlTransferCancelled
        | E::ControlTransferExpired
        | E::ControlTransferFailed => member_of::<TransferView>(member),
        E::ControlKeyRegistered | E::ControlKeyRevoked => member_of::<PartyKeyView>(member),
        E::ControlPartyJoined => member_of::<InvitationView>(member),
        E::HoldPlaced | E::HoldLifted => member_of::<HoldView>(member),
        E::RetentionDue => member_of::<Retention>(member),
        _ => None,
    };

    if let Some(typed) = typed {
        return typed;
    }

    match (event, member) {
        (E::EnvelopeCreated, "status") => inlined::<EnvelopeStatus>(),
        (E::KbaVerified, "status") => inlined::<KbaStatus>(),
        (E::BulkCompleted, "status") => inlined::<BatchStatus>(),
        (_, "envelope_kind") => inlined::<EnvelopeKind>(),
        (_, "open_link") => json_schema!({
            "type": "object",
            "required": ["open_link_id", "name"],
            "properties": {
                "open_link_id": { "type": "string" }, "name": { "type": "string" },
            },
        }),
        (E::FundingReady | E::FundingIncomplete | E::FundingRefused, "stage") => {
            inlined::<FundingStage>()
        }
        (_, "findings") => list(inlined::<FindingView>()),
        (_, "rules_component") => inlined::<ComponentIdentity>(),
        (_, "pack") => or_null(inlined::<AppliedPack>()),
        (_, "stage") => inlined::<ControlStage>(),
        (_, "release") => inlined::<ReleaseRequestView>(),
        (_, "pledge") => inlined::<PledgeView>(),
        (_, "view") => inlined::<ViewView>(),
        (_, "originator" | "controller" | "party") => inlined::<PartyView>(),
        (_, "designee" | "buyer" | "pledgee") => or_null(inlined::<PartyView>()),
        (_, "signer" | "previous") => signer(),
        (_, "signers" | "void_signatures") => list(signer()),
        // Values are those that signers entered, so their type depends on the field.
        (_, "fields") => list(json_schema!({
            "type": "object",
            "required": ["name", "value"],
            "properties": {
                "name": { "type": "string" },
                "value": { "type": ["string", "number", "boolean", "null"] },
            },
        })),
        (_, "reminded" | "missing_requirements") => list(text()),
        (_, "counts") => json_schema!({
            "type": "object", "additionalProperties": { "type": "integer" },
        }),
        (_, "problems") => list(json_schema!({ "type": "object" })),
        (_, "fields_truncated") => json_schema!({ "type": "boolean" }),
        (_, "at" | "expires_at" | "since" | "completed_at" | "expired_at" | "planned_for") => {
            moment()
        }
        (EventType::ControlDisputed, "step") => json_schema!({
            "type": "string",
            "enum": [
                "outranked", "stated_by_record", "stated_by_claim", "suspension_requested",
                "suspended", "suspension_lifted",
            ],
        }),
        (_, "suspension") => or_null(inlined::<SuspensionView>()),
        (E::CustomerErased, "state") => inlined::<ErasureState>(),
        (_, "epoch" | "score" | "amount_cents" | "days") => number(),
        (E::CustomerExported, "records" | "files") => number(),
        (E::CustomerErased, "erased" | "refused") => number(),
        (_, "similarity") => json_schema!({ "type": "number" }),
        (
            _,
            "reason" | "expected_hash" | "actual_hash" | "ip_address" | "purpose" | "view_id"
            | "name" | "email" | "copy_id" | "requested_by" | "path" | "hash" | "release_id"
            | "answer",
        ) => optional_text(),
        _ => text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_a_name_and_a_schema_of_its_members() {
        assert_eq!(name(EventType::VaultStored), "onVaultStored");
        assert_eq!(
            name(EventType::EnvelopeReminderSent),
            "onEnvelopeReminderSent"
        );

        for event in EventType::ALL {
            let schema = body(*event).to_value();
            let data = &schema["properties"]["data"]["properties"];
            for member in event.described().1 {
                assert!(data[member].is_object(), "{event}: {member}");
            }
            assert_eq!(schema["properties"]["event_type"]["const"], event.as_str());
        }
    }
}
