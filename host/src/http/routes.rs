//! Every operation of the API on one page.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, patch_with, post_with};

use super::openapi::describe;
use super::partner::{customers, envelopes, templates, vault};
use super::{callbacks, components, downloads, embed, kba, ledger, payments, web, webhooks};
use crate::service::App;

/// In the order of the specification, grouped by who calls. The errors named
/// here are those of the service; credentials, bodies and ids bring their own.
pub fn api() -> ApiRouter<App> {
    ApiRouter::new()
        // Envelopes (partner).
        .api_route(
            "/partner/envelopes",
            get_with(
                envelopes::list,
                describe("listEnvelopes", "List envelopes, newest first", &[]),
            )
            .post_with(
                envelopes::create,
                describe(
                    "createEnvelope",
                    "Create an envelope, and send it when it has a template",
                    &[404, 409, 502, 503],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}",
            get_with(
                envelopes::read,
                describe("getEnvelope", "Read an envelope", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/status",
            get_with(
                envelopes::status,
                describe("getEnvelopeStatus", "Where an envelope stands", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/upload",
            post_with(
                envelopes::upload,
                describe("uploadDocument", "Attach or replace the document", &[409]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/void",
            post_with(
                envelopes::void,
                describe("voidEnvelope", "Void an envelope", &[409, 502, 503]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/remind",
            post_with(
                envelopes::remind,
                describe(
                    "remindSigners",
                    "Mail a fresh link to who has not signed",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/signing-links",
            get_with(
                envelopes::signing_links,
                describe(
                    "getSigningLinks",
                    "A short-lived link for each signer",
                    &[409],
                ),
            ),
        )
        // Vault (partner).
        .api_route(
            "/partner/envelopes/{id}/vault-in-signed",
            post_with(
                vault::vault_in_signed,
                describe(
                    "vaultInSigned",
                    "Vault a signed envelope",
                    &[409, 422, 502, 503],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault-in-upload",
            post_with(
                vault::vault_in_upload,
                describe("vaultInUpload", "Vault an uploaded document", &[409, 422]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault/signed-url",
            get_with(
                vault::signed_url,
                describe(
                    "getAuthoritativeLink",
                    "A single-use link to the authoritative copy",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault/copy/signed-url",
            get_with(
                vault::copy_signed_url,
                describe(
                    "getCopyLink",
                    "A link to the non-authoritative copy",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault/certificate",
            get_with(
                vault::certificate,
                describe("getCertificate", "The compliance certificate", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/compliance",
            get_with(
                vault::compliance,
                describe("getCompliance", "Evaluate the eight checks now", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/custody",
            get_with(
                vault::custody,
                describe("getCustodyLedger", "The custody ledger", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault-out",
            post_with(
                vault::vault_out,
                describe(
                    "vaultOut",
                    "Release the authoritative copy for good",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/bundle",
            get_with(
                vault::bundle,
                describe(
                    "getEvidenceBundle",
                    "The evidence bundle of a released envelope",
                    &[409],
                ),
            ),
        )
        // Templates (partner).
        .api_route(
            "/partner/templates",
            post_with(
                templates::create,
                describe("createTemplate", "Make a template of a PDF", &[502, 503]),
            ),
        )
        .api_route(
            "/partner/templates/{id}/fields",
            post_with(
                templates::add_fields,
                describe(
                    "addTemplateFields",
                    "Add fields to a template",
                    &[409, 502, 503],
                ),
            ),
        )
        // Customers (partner).
        .api_route(
            "/partner/customers",
            get_with(
                customers::find,
                describe("findCustomer", "Find a customer by e-mail", &[404]),
            ),
        )
        .api_route(
            "/partner/customers/{id}/documents",
            post_with(
                customers::file_document,
                describe(
                    "fileCustomerDocument",
                    "File a document under a customer",
                    &[],
                ),
            ),
        )
        // Webhooks (partner, legacy).
        .api_route(
            "/partner/webhook",
            patch_with(
                webhooks::set_legacy,
                describe("setWebhook", "The key's own webhook endpoint", &[422]),
            ),
        )
        // Embed.
        .api_route(
            "/embed/token",
            post_with(
                embed::token,
                describe(
                    "issueEmbedToken",
                    "A token by which a page shows a widget of one envelope",
                    &[404, 409],
                ),
            ),
        )
        .api_route(
            "/embed/payment-intent",
            post_with(
                payments::intent,
                describe(
                    "createPaymentIntent",
                    "What the payer's browser needs to pay, if whoever holds the token has to",
                    &[502, 503],
                ),
            ),
        )
        .api_route(
            "/embed/payment-status",
            post_with(
                payments::status,
                describe("getPaymentStatus", "Where the payment stands", &[502, 503]),
            ),
        )
        // Everybody.
        .api_route(
            "/ledger/head",
            get_with(
                ledger::head,
                describe(
                    "getLedgerHead",
                    "The signed head of the log of all custody ledgers",
                    &[404],
                ),
            ),
        )
        // Web app.
        .api_route(
            "/envelopes/{id}",
            get_with(
                web::envelope,
                describe("readEnvelope", "Read an envelope, as its organization", &[]),
            ),
        )
        .api_route(
            "/envelopes/{id}/bundle",
            get_with(
                web::bundle,
                describe(
                    "getBundle",
                    "The evidence bundle of a released envelope",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/envelopes/{id}/send",
            post_with(
                web::send,
                describe(
                    "sendEnvelope",
                    "Send an envelope that waits: a template, some or all of a package, several templates, or its own document",
                    &[409, 502, 503],
                ),
            ),
        )
        .api_route(
            "/envelopes/{id}/signing-links",
            get_with(
                web::signing_links,
                describe("readSigningLinks", "A short-lived link for each signer", &[409]),
            ),
        )
        .api_route(
            "/envelopes/{id}/payment-intent",
            post_with(
                payments::collect,
                describe(
                    "collectPayment",
                    "What is needed to collect an envelope's payment, whoever owes it",
                    &[502, 503],
                ),
            ),
        )
        .api_route(
            "/envelopes/{id}/kba",
            get_with(
                kba::results,
                describe(
                    "listKbaResults",
                    "What the signers' identity questions came to, oldest first",
                    &[],
                ),
            ),
        )
        .api_route(
            "/envelopes/{id}/vault-consent",
            post_with(
                web::vault_consent,
                describe(
                    "consentToVaulting",
                    "Accept that an envelope is vaulted unattended, or take it back",
                    &[409],
                ),
            ),
        )
        // Templates and packages.
        .api_route(
            "/templates",
            get_with(
                web::templates::list,
                describe("listTemplates", "List the template library, newest first", &[]),
            )
            .post_with(
                web::templates::create,
                describe(
                    "createLibraryTemplate",
                    "Make a template, with its PDF or without",
                    &[502, 503],
                ),
            ),
        )
        .api_route(
            "/templates/{id}",
            get_with(
                web::templates::read,
                describe("getTemplate", "Read a template", &[]),
            )
            .patch_with(
                web::templates::change,
                describe("changeTemplate", "Change what a template is called", &[409]),
            )
            .delete_with(
                web::templates::delete,
                describe(
                    "deleteTemplate",
                    "Delete a template; what was sent of it stays",
                    &[],
                ),
            ),
        )
        .api_route(
            "/document-packages",
            get_with(
                web::packages::list,
                describe("listPackages", "List packages, newest first", &[]),
            )
            .post_with(
                web::packages::create,
                describe("createPackage", "Put templates into a package", &[404, 409, 502, 503]),
            ),
        )
        .api_route(
            "/document-packages/{id}",
            get_with(
                web::packages::read,
                describe("getPackage", "Read a package", &[]),
            )
            .patch_with(
                web::packages::change,
                describe("changePackage", "Change a package", &[409, 502, 503]),
            ),
        )
        .api_route(
            "/esign/builder-session",
            post_with(
                web::builder_session,
                describe(
                    "startBuilderSession",
                    "A session of the field builder: for a template, an envelope's document or a batch's master",
                    &[404, 409, 502, 503],
                ),
            ),
        )
        // Customers (web app).
        .api_route(
            "/customers",
            get_with(
                web::customers::list,
                describe("listCustomers", "List customers, newest first", &[]),
            )
            .post_with(
                web::customers::create,
                describe("createCustomer", "Create a customer", &[409]),
            ),
        )
        .api_route(
            "/customers/{id}",
            get_with(
                web::customers::read,
                describe("getCustomer", "Read a customer", &[]),
            )
            .patch_with(
                web::customers::change,
                describe("changeCustomer", "Change a customer", &[409]),
            ),
        )
        // Bulk send.
        .api_route(
            "/bulk-send",
            get_with(
                web::bulk::list,
                describe("listBatches", "List bulk batches, newest first", &[]),
            )
            .post_with(
                web::bulk::create,
                describe("createBatch", "Set a bulk batch up", &[404, 409]),
            ),
        )
        .api_route(
            "/bulk-send/{id}",
            get_with(
                web::bulk::read,
                describe("getBatch", "A batch with its counts and items", &[]),
            )
            .patch_with(
                web::bulk::change,
                describe("changeBatch", "Change a batch before it is submitted", &[409]),
            )
            .delete_with(
                web::bulk::delete,
                describe("deleteBatch", "Delete a batch that was not submitted", &[409]),
            ),
        )
        .api_route(
            "/bulk-send/{id}/vault-consent",
            post_with(
                web::bulk::consent,
                describe(
                    "consentToBulkVaulting",
                    "Accept that a batch's envelopes are vaulted unattended, or take it back",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/bulk-send/{id}/items",
            post_with(
                web::bulk::set_clients,
                describe("setClients", "Set the clients of a batch", &[409]),
            ),
        )
        .api_route(
            "/bulk-send/{id}/submit",
            post_with(
                web::bulk::submit,
                describe("submitBatch", "Submit a batch", &[409, 422, 502, 503]),
            ),
        )
        .api_route(
            "/bulk-send/{id}/cancel",
            post_with(
                web::bulk::cancel,
                describe(
                    "cancelBatch",
                    "Cancel a running batch; what was sent stays",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/bulk-send/{id}/retry",
            post_with(
                web::bulk::retry,
                describe(
                    "retryBatch",
                    "Try the failed items of a batch again",
                    &[409, 503],
                ),
            ),
        )
        .api_route(
            "/bulk-send/{id}/events",
            get_with(
                web::bulk::events,
                describe(
                    "watchBatch",
                    "The progress of a batch as server-sent events",
                    &[503],
                ),
            ),
        )
        // Components.
        .api_route(
            "/components",
            get_with(
                components::list,
                describe(
                    "listComponents",
                    "List components: your own and the installation's, newest first",
                    &[],
                ),
            )
            .post_with(
                components::upload,
                describe(
                    "uploadComponent",
                    "Upload a component; it is admitted when it fits a world and passes its vectors",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/components/{id}",
            get_with(
                components::read,
                describe("getComponent", "What is known of a component", &[]),
            ),
        )
        .api_route(
            "/components/{id}/artifact",
            get_with(
                components::artifact,
                describe("getComponentArtifact", "Download a component", &[]),
            ),
        )
        .api_route(
            "/components/{id}/shadow",
            post_with(
                components::shadow,
                describe(
                    "shadowComponent",
                    "Ask the last records again, of this component and the active one; changes nothing",
                    &[],
                ),
            ),
        )
        .api_route(
            "/component-slots",
            get_with(
                components::slots,
                describe(
                    "listComponentSlots",
                    "The active component of every slot, and what was active before",
                    &[],
                ),
            ),
        )
        .api_route(
            "/component-slots/{slot}/activate",
            post_with(
                components::activate,
                describe(
                    "activateComponent",
                    "Put a component into a slot, now or at a time to come",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/component-slots/{slot}/rollback",
            post_with(
                components::roll_back,
                describe(
                    "rollBackComponent",
                    "Take an activation back: what was active before it is again",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/component-slots/{slot}/shadow",
            get_with(
                components::live,
                describe(
                    "getLiveShadow",
                    "What a candidate says beside the active component",
                    &[],
                ),
            )
            .post_with(
                components::start_shadow,
                describe(
                    "startLiveShadow",
                    "Ask a candidate beside the active component, on real traffic",
                    &[],
                ),
            )
            .delete_with(
                components::stop_shadow,
                describe("stopLiveShadow", "End it; what it found stays", &[]),
            ),
        )
        .api_route(
            "/component-ledger",
            get_with(
                components::history,
                describe(
                    "getComponentLedger",
                    "Who decided what about components, when and why, as a hash chain",
                    &[],
                ),
            ),
        )
        .api_route(
            "/component-worlds",
            get_with(
                components::worlds,
                describe(
                    "listComponentWorlds",
                    "The WIT worlds that components can target",
                    &[],
                ),
            ),
        )
        // Webhooks.
        .api_route(
            "/webhooks/endpoints",
            get_with(
                webhooks::list,
                describe("listWebhookEndpoints", "List webhook endpoints", &[]),
            )
            .post_with(
                webhooks::create,
                describe(
                    "createWebhookEndpoint",
                    "Register a webhook endpoint; its secret is shown this once",
                    &[404],
                ),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}",
            patch_with(
                webhooks::change,
                describe("changeWebhookEndpoint", "Change a webhook endpoint", &[]),
            )
            .delete_with(
                webhooks::delete,
                describe(
                    "deleteWebhookEndpoint",
                    "Delete a webhook endpoint; its log stays",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}/rotate-secret",
            post_with(
                webhooks::rotate,
                describe(
                    "rotateWebhookSecret",
                    "A new secret; the one before signs for 48 hours more",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}/test",
            post_with(
                webhooks::test,
                describe("testWebhookEndpoint", "Send a webhook.test event", &[]),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}/deliveries",
            get_with(
                webhooks::deliveries,
                describe(
                    "listWebhookDeliveries",
                    "The delivery log, newest first",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/deliveries/{id}",
            get_with(
                webhooks::delivery,
                describe(
                    "getWebhookDelivery",
                    "One delivery with its payload and attempts",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/deliveries/{id}/redeliver",
            post_with(
                webhooks::redeliver,
                describe("redeliver", "Deliver the event again", &[409]),
            ),
        )
        .api_route(
            "/webhooks/events",
            get_with(
                webhooks::catalog,
                describe("listEventTypes", "The event catalog", &[]),
            ),
        )
        // Providers.
        .api_route(
            "/callbacks/signing/{instance}",
            post_with(
                callbacks::signing,
                describe(
                    "signingCallback",
                    "A signing provider's callback",
                    &[404, 502, 503],
                ),
            ),
        )
        .api_route(
            "/callbacks/payment/{instance}",
            post_with(
                callbacks::payment,
                describe(
                    "paymentCallback",
                    "A payment provider's callback",
                    &[404, 502, 503],
                ),
            ),
        )
        // Whoever holds a link.
        .api_route(
            "/downloads/{token}",
            get_with(
                downloads::download,
                describe("download", "What a download link gives", &[404, 409, 410]),
            ),
        )
}
