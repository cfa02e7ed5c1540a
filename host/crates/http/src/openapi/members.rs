//! Descriptions of members with types that have none: members with the same meaning in many objects, or a self-evident name.

use serde_json::{Value, json};

/// Name of a member, or schema and name, and its description.
const MEMBERS: &[(&str, &str)] = &[
    ("Area.h", "Height, as a fraction of the page's height."),
    ("Area.w", "Width, as a fraction of the page's width."),
    ("Area.x", "Left edge, as a fraction of the page's width."),
    ("Area.y", "Upper edge, as a fraction of the page's height."),
    (
        "ChangeSingleSignOn.required",
        "Whether users can sign in through the issuer only.",
    ),
    (
        "FieldPlacement.h",
        "Height, as a fraction of the page's height.",
    ),
    (
        "FieldPlacement.w",
        "Width, as a fraction of the page's width.",
    ),
    ("LoggedRequest.status", "HTTP status of the answer."),
    ("accepted_at", "Time of the acceptance."),
    ("acr_values", "Authentication contexts to ask for."),
    ("action", "What was done, or would be."),
    ("activated_by", "Who activated it."),
    ("activation_id", "Id of the activation."),
    ("add_me_as_signer", "Whether the sender signs, too."),
    ("address_line1", "Street and number."),
    ("address_line2", "Further line of the address."),
    ("after", "With the candidate."),
    ("after_sentence", "Answer of the candidate in words."),
    ("anchor_match", "Where the anchor text stands."),
    ("anchor_text", "Text that was searched for."),
    ("answered_at", "Time of the answer."),
    ("areas", "Rectangles on the pages."),
    ("at", "When it happened."),
    ("atomic", "Whether all records go over together, or none."),
    ("attachments", "Attached files."),
    ("attempt_count", "Number of attempts."),
    ("attempts", "Number of attempts."),
    ("authoritative_filename", "Name of its file."),
    (
        "authoritative_signed_url",
        "Link to the authoritative copy.",
    ),
    (
        "authorized_signature",
        "Name of the person who authorizes the release.",
    ),
    (
        "auto_vault",
        "Whether completed envelopes are vaulted by themselves.",
    ),
    (
        "auto_vault_enabled",
        "Whether the envelope is vaulted as soon as everybody has signed.",
    ),
    ("batch_id", "Id of the batch."),
    ("before", "With the active component."),
    (
        "before_sentence",
        "Answer of the active component in words.",
    ),
    ("brand", "Brand on pages and mails."),
    ("bucket", "Number of the bucket."),
    ("buckets", "The buckets."),
    ("builder_url", "URL of the field builder."),
    ("by", "Who reviewed."),
    ("cancelled", "Clients that were cancelled."),
    ("candidate_ms", "Time of the candidate in milliseconds."),
    ("category", "Category of your own."),
    (
        "certificate_issued",
        "Whether a compliance certificate exists.",
    ),
    ("certified_vaulted_copy_filename", "Name of its file."),
    (
        "certified_vaulted_copy_signed_url",
        "Link to the certified copy.",
    ),
    ("change_id", "Id of the change request."),
    ("changed_at", "Time of the last step."),
    (
        "chattel_paper_jurisdiction",
        "State whose law governs chattel paper.",
    ),
    ("check", "Name of the check."),
    ("checks", "The single checks."),
    ("city", "City."),
    ("client_id", "Your own reference of the customer."),
    ("closed_at", "When it was closed."),
    ("closed_by", "Who closed it."),
    ("color", "Color, as in `#1a6b4f`."),
    ("comment", "What the reviewer says."),
    ("company", "Company."),
    ("completed_at", "Time at which the part was completed."),
    ("compliance_certificate_filename", "Name of its file."),
    (
        "compliance_certificate_signed_url",
        "Link to the compliance certificate.",
    ),
    ("compliant", "Whether every check that is required holds."),
    ("component_id", "Id of the component."),
    ("components", "The components and what is active."),
    ("config", "Settings of the instance."),
    ("connected_account", "Account that receives the payment."),
    ("consent", "Text of the consent by language."),
    ("contentType", "Media type."),
    ("content_type", "Media type."),
    ("copy_id", "Id of the copy."),
    ("country", "Country."),
    ("created_at", "Time of creation."),
    ("created_by", "Who created it."),
    ("currency", "Currency, such as `usd`."),
    ("customer_id", "Id of the customer."),
    ("customer_name", "Name of the customer."),
    ("dates", "How documents show dates."),
    ("default_role", "Role of users without a known group."),
    ("default_value", "First value."),
    ("deleted", "Whether it was deleted."),
    ("deliveries_due", "Deliveries that are due."),
    ("deliveries_due_since", "Since when the oldest one is due."),
    ("delivery_id", "Id of the delivery."),
    ("description", "What it is for."),
    ("detail", "Reason for the result."),
    (
        "details",
        "Facts for programs: problems of the request, or an object.",
    ),
    ("differing", "Number of decisions that differ."),
    ("disabled_at", "Since when it is disabled."),
    ("duration_ms", "Duration in milliseconds."),
    ("effective_at", "Time from which it applies."),
    ("email", "E-mail address."),
    ("embed_origins", "Origins whose pages may embed widgets."),
    ("emergency", "Whether it was applied before its review."),
    ("endpoint_id", "Id of the receiver of webhooks."),
    ("endpoints_disabled", "Receivers that are disabled."),
    ("endpoints_paused", "Receivers that are paused."),
    ("entity_type", "Kind of person or company."),
    ("envelope_id", "Id of the envelope."),
    ("envelope_name", "Name of the envelope."),
    ("envelope_ttl_days", "Days after which an envelope expires."),
    ("envelopes", "Number of envelopes."),
    ("envelopes_created", "Envelopes that were created."),
    ("envelopes_vaulted", "Envelopes that were vaulted."),
    ("error", "What failed."),
    ("evaluated_at", "Time of the evaluation."),
    ("event_id", "Id of the event."),
    ("event_type", "Type of the event."),
    ("events", "Types of events, or patterns such as `vault.*`."),
    ("expires_at", "End of validity."),
    ("external_id", "Your own reference."),
    ("failed", "Clients for whom sending failed."),
    ("failed_at", "When it failed."),
    ("failed_count", "Clients for whom sending failed."),
    ("failing_jobs", "Jobs that fail."),
    ("fields", "Signing fields."),
    ("fields_added", "Number of fields of the template."),
    ("fields_sent", "Number of fields that were sent."),
    ("filename", "Name of the file."),
    ("function", "Name of the function."),
    ("functions", "The functions of the interface."),
    ("group", "Name of the group at the issuer."),
    ("h", "Height."),
    ("has_document", "Whether it has a document."),
    ("hash", "Hash of this entry."),
    ("height", "Height in points."),
    ("identity_amount_cents", "Amount in cents."),
    (
        "identity_billed_signers",
        "Signers whose identity check costs.",
    ),
    ("identity_failed", "Identity checks that failed."),
    (
        "identity_unavailable",
        "Identity checks without an answer of the provider.",
    ),
    ("industry", "Industry."),
    ("instance", "Name of the provider instance."),
    ("invitation_id", "Id of the invitation."),
    ("ip_address", "Address of the signer."),
    ("is_active", "Whether it receives webhooks."),
    ("issued_at", "Time of issue."),
    ("issuer", "URL of the issuer."),
    ("item_id", "Id of the client in the batch."),
    ("job_id", "Id of the job."),
    ("job_title", "Job title."),
    ("jobs_failed", "Jobs that failed."),
    ("jobs_waiting", "Jobs that wait."),
    ("joined_at", "When the organization joined."),
    ("kba_id", "Id of the attempt."),
    (
        "kba_required",
        "Whether signers are asked about their identity.",
    ),
    ("key_id", "Id of the key."),
    ("kind", "Kind of the job."),
    ("language", "Language of pages and mails."),
    ("last_used_at", "Time of the last use."),
    ("line_id", "Id of the line."),
    ("made_at", "When it was made."),
    ("master_template_id", "Template that is sent."),
    ("message", "What happened, in words."),
    ("method", "HTTP method."),
    ("missing_requirements", "Requirements that are not met."),
    ("mode", "How the field is placed."),
    ("name", "Name, as people read it."),
    ("node", "Name of the node."),
    ("nodes", "The nodes."),
    ("occurred_at", "When it happened."),
    ("ok", "Whether it succeeded."),
    ("options", "Choices."),
    ("org_id", "Id of the organization."),
    ("organization_id", "Id of the organization."),
    ("organizations", "Number of organizations."),
    ("package_id", "Id of the package."),
    ("page", "Number of the page, from 1."),
    ("payment_id", "Id of the payment."),
    ("pending", "Clients that wait."),
    ("phone", "Phone number."),
    ("platform_fee_cents", "Fee of the platform in cents."),
    ("pledge_id", "Id of the pledge."),
    ("postal_code", "Postal code."),
    (
        "preserve_signing_order",
        "Whether signers sign one after the other.",
    ),
    ("previous_hash", "Hash of the entry before."),
    (
        "price_reference",
        "Reference to the price, such as the number of an agreement.",
    ),
    ("pricing_table", "Whether it has a table of prices."),
    ("primary_contact_name", "Name of the contact."),
    ("problems", "What is wrong."),
    (
        "provider_instance",
        "Name of the signing provider's instance.",
    ),
    ("provider_session_id", "Id of the session at the provider."),
    (
        "provider_template_id",
        "Number of the template at the provider.",
    ),
    (
        "publishable_key",
        "Public key of the payment provider, for the browser.",
    ),
    ("purpose", "What it is for."),
    ("purpose_of_release", "What the record is released for."),
    ("question", "What the signer asks."),
    ("question_id", "Id of the question: `qst_…`."),
    ("questions", "Questions of signers to the sender."),
    ("readonly", "Whether the signer can only read it."),
    ("reason", "Why, in the words of the person who acted."),
    ("received", "Whether the call was processed."),
    ("recipient_email", "E-mail address of the recipient."),
    ("recipient_name", "Person who receives the record."),
    (
        "recipient_organization",
        "Organization that receives the record.",
    ),
    ("recipients", "The people."),
    ("records", "Records that were checked."),
    ("release_id", "Id of the release."),
    ("released_at", "Time of the release."),
    ("requested_at", "Time of the request."),
    ("requested_by", "Who requested it."),
    ("required", "Whether the signer has to fill it in."),
    ("requirement", "What is required."),
    ("response_body", "First bytes of the receiver's answer."),
    ("response_code", "HTTP status of the receiver."),
    (
        "return_origins",
        "Origins that signers may be sent back to.",
    ),
    ("revoked_at", "Time of the revocation."),
    ("role", "Role that fills in fields, such as `Buyer`."),
    ("rollback_reason", "Why it was rolled back."),
    ("rolled_back_at", "When it was rolled back."),
    ("rolled_back_by", "Who rolled it back."),
    ("running", "Clients in progress."),
    ("same", "Whether the result is the recorded one."),
    ("satisfied", "Whether the requirement is met."),
    ("scopes", "Scopes of the key."),
    ("score", "Score from 0 to 100."),
    ("secret_note", "Reminder that the secret is shown once."),
    ("secret_set", "Whether a secret signs them."),
    ("secured_party", "Secured party."),
    ("seen_at", "Last sign of life."),
    ("sent", "Clients whose envelope was sent."),
    ("sent_at", "When it was sent."),
    ("sent_count", "Clients whose envelope was sent."),
    ("session_id", "Id of the session."),
    ("set_at", "When it was set."),
    ("signed_url", "Link that works once."),
    ("signer_id", "Id of the signer: `sgn_…`."),
    ("signers", "The signers."),
    ("size", "Number of entries."),
    ("skipped", "Clients that were skipped."),
    ("skipped_count", "Clients that were skipped."),
    ("slug", "Key of the signer at the provider."),
    ("source", "Where the component comes from."),
    ("source_format", "Format of the document."),
    ("source_package_id", "Package that was chosen."),
    ("source_template_id", "Template that was chosen."),
    ("started_at", "When it began."),
    ("started_by", "Who started it."),
    ("state", "State or province."),
    ("statement_id", "Id of the statement."),
    ("status", "Where it stands."),
    ("tag_ids", "Tags of your own."),
    ("template_id", "Id of the template."),
    ("template_ids", "Ids of the templates, in their order."),
    ("terms", "Conditions, in the words of the parties."),
    ("text", "The text."),
    ("timestamp", "When it happened."),
    ("token", "Token of the widget."),
    ("total_count", "Number of clients."),
    ("transfer_id", "Id of the transfer."),
    ("type", "Type of the field."),
    ("ucc_reference", "Paragraph of the Uniform Commercial Code."),
    ("updated_at", "Time of the last change."),
    ("uploaded_by", "Who uploaded it."),
    ("url", "URL that receives the webhooks."),
    ("user_id", "Id of the user."),
    ("users", "Number of users."),
    ("vault_custody_record_filename", "Name of its file."),
    (
        "vault_custody_record_signed_url",
        "Link to the custody record.",
    ),
    (
        "vault_in_terms_accepted_at",
        "When the terms of vaulting were accepted.",
    ),
    (
        "vault_in_terms_accepted_by",
        "Who accepted the terms of vaulting.",
    ),
    ("vaulted", "Whether the vault has the authoritative copy."),
    ("vector", "Name of the vector."),
    ("vectors", "The vectors."),
    ("version", "Version, such as `1.4.0`."),
    ("view_id", "Id of the view."),
    ("w", "Width."),
    ("webhook_url", "URL that receives the webhooks."),
    ("website_url", "Website."),
    ("width", "Width in points."),
    ("with_problems", "Records with damage."),
    ("world", "WIT world of the component."),
    ("x", "Left edge."),
    ("y", "Upper edge."),
];

/// Describes the members of a schema.
pub fn describe(schema: &str, value: &mut Value) {
    match value {
        Value::Object(members) => {
            let properties = members.get_mut("properties").and_then(Value::as_object_mut);
            for (name, member) in properties.into_iter().flatten() {
                // A referenced schema describes itself, and the type's own words come first.
                if member.is_object()
                    && member.get("$ref").is_none()
                    && member.get("description").is_none()
                    && let Some(text) = description(schema, name)
                {
                    member["description"] = json!(text);
                }
            }

            members.values_mut().for_each(|one| describe(schema, one));
        }
        Value::Array(items) => items.iter_mut().for_each(|one| describe(schema, one)),
        _ => {}
    }
}

fn description(schema: &str, name: &str) -> Option<&'static str> {
    let own = format!("{schema}.{name}");
    let find = |key: &str| MEMBERS.binary_search_by_key(&key, |(known, _)| known);
    // The same name can mean another thing in one schema.
    let found = find(&own).or_else(|_| find(name)).ok()?;
    Some(MEMBERS.get(found)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_sorted() {
        assert!(MEMBERS.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn the_document_uses_each_description() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/openapi.json");
        let document = std::fs::read_to_string(path).unwrap();
        for (name, text) in MEMBERS {
            assert!(document.contains(&json!(text).to_string()), "{name}");
        }
    }
}
