//! All operations of the API on one page.

use aide::axum::ApiRouter;
use aide::axum::routing::{
    delete_with as delete, get_with as get, patch_with as patch, post_with as post, put_with as put,
};

use super::partner::{
    control, customers, destructions, envelopes, events, funding, imports, open_links, persons,
    retention, tapes, templates, test_mode, vault,
};
use super::web::{
    administration, bulk, destructions as people, fact_maps, funding_packs, holds, insight,
    packages, users,
};
use super::{
    callbacks, component_changes, component_state, components, decisions, downloads, embed, kba,
    ledger, payments, web, webhooks,
};
use crate::middleware::caller::{
    ComplianceRead, ControlConsent, ControlRead, ControlWrite, CustomersPrivacy, EnvelopesRead,
    EnvelopesWrite, HoldsRead, HoldsWrite, PartnerCaller as Key, VaultRead, VaultRelease,
    VaultWrite, WebCaller as Web, may,
};
use crate::openapi::describe;
use crate::routing::operation;
use holdfast_service::App;

/// Defines `api` and one function per area. An operation takes two lines: first method, path,
/// handler, name and the errors of its service, then its summary.
macro_rules! areas {
    ($($area:ident {$(
        $method:ident $path:literal, $handler:path => $name:ident [$($error:literal),*]
            $summary:literal;
    )*})*) => {
        /// Builds the router, in the order of the specification, grouped by caller. The errors
        /// named here are those of the service; extractors add those of credentials, bodies and
        /// ids.
        pub fn api() -> ApiRouter<App> {
            ApiRouter::new()$(.merge($area()))*
        }
        $(
            fn $area() -> ApiRouter<App> {
                ApiRouter::new()$(.api_route(
                    $path,
                    $method(
                        operation($handler),
                        describe(stringify!($area), stringify!($name), $summary, &[$($error),*]),
                    ),
                ))*
            }
        )*
    };
}

areas! {
    partner_envelopes {
        get "/partner/envelopes", envelopes::list => listEnvelopes [422]
            "List envelopes, newest first";
        post "/partner/envelopes", envelopes::create::<Key<EnvelopesWrite>> => createEnvelope [404, 409, 502, 503]
            "Create an envelope, and send it when it has a template";
        get "/partner/envelopes/{id}", envelopes::read => getEnvelope []
            "Read an envelope";
        get "/partner/envelopes/{id}/status", envelopes::status => getEnvelopeStatus []
            "Read the status of an envelope";
        post "/partner/envelopes/{id}/upload", envelopes::upload::<Key<EnvelopesWrite>> => uploadDocument [409]
            "Attach or replace the document";
        put "/partner/envelopes/{id}/paper-original", envelopes::state_paper_original::<Key<EnvelopesWrite>>
            => statePaperOriginal [409]
            "State what became of the paper original of an upload";
        post "/partner/envelopes/{id}/void", envelopes::void::<Key<EnvelopesWrite>> => voidEnvelope [409, 502, 503]
            "Void an envelope";
        post "/partner/envelopes/{id}/extend", envelopes::extend::<Key<EnvelopesWrite>> => extendEnvelope [409]
            "Move the expiry to a later time";
        put "/partner/envelopes/{id}/contract-dates", envelopes::set_contract_dates::<Key<EnvelopesWrite>> => setContractDates [409]
            "Set dates of the contract and the notices before them";
        post "/partner/envelopes/{id}/copy", envelopes::copy::<Key<EnvelopesWrite>> => copyEnvelope [409]
            "Create a draft from an envelope";
        post "/partner/envelopes/{id}/correct", envelopes::correct::<Key<EnvelopesWrite>>
            => correctEnvelope [409, 502, 503]
            "Correct the document or fields, and send again";
        get "/partner/envelopes/{id}/document", envelopes::document::<Key<EnvelopesRead>> => getUnsignedDocument [409]
            "Download the document without signatures";
        get "/partner/envelopes/{id}/attachments", envelopes::attachments::<Key<EnvelopesRead>> => listAttachments []
            "List the files that signers attached";
        get "/partner/envelopes/{id}/attachments/{sha256}", envelopes::attachment::<Key<EnvelopesRead>> => getAttachment []
            "Download a file that a signer attached";
        get "/partner/envelopes/{id}/facts", envelopes::facts::<Key<EnvelopesRead>> => getFacts [502, 503]
            "Read the facts of a contract, with the places where they stand";
    }
    partner_signers {
        post "/partner/envelopes/{id}/remind", envelopes::remind::<Key<EnvelopesWrite>> => remindSigners [409]
            "Mail a new link to signers who have not signed";
        get "/partner/envelopes/{id}/signing-links", envelopes::signing_links => getSigningLinks [409]
            "Create a short-lived link for each signer";
        get "/partner/envelopes/{id}/signers", envelopes::signers::<Key<EnvelopesRead>> => listSigners []
            "List the signers and the other recipients";
        patch "/partner/envelopes/{id}/signers/{role}", envelopes::correct_signer::<Key<EnvelopesWrite>> => correctSigner [409]
            "Correct or replace a signer who has not signed";
        put "/partner/envelopes/{id}/reminders", envelopes::plan_reminders::<Key<EnvelopesWrite>> => planReminders [409]
            "Plan reminders of signers who do not sign";
        put "/partner/envelopes/{id}/send-at", envelopes::plan_sending::<Key<EnvelopesWrite>> => planSending [409]
            "Plan the sending of a draft";
        get "/partner/envelopes/{id}/questions", envelopes::questions::<Key<EnvelopesRead>> => listQuestions []
            "List the questions of signers to the sender";
        post "/partner/envelopes/{id}/questions/{question_id}/close", envelopes::close_question::<Key<EnvelopesWrite>>
            => closeQuestion [409]
            "Answer a question of a signer, or dismiss it";
    }

    partner_vault {
        post "/partner/envelopes/{id}/vault-in-signed", vault::vault_in_signed::<Key<VaultWrite>>
            => vaultInSigned [409, 422, 502, 503]
            "Vault a signed envelope";
        post "/partner/envelopes/{id}/vault-in-upload", vault::vault_in_upload::<Key<VaultWrite>> => vaultInUpload [409, 422]
            "Vault an uploaded document";
        get "/partner/envelopes/{id}/vault/signed-url", vault::signed_url => getAuthoritativeLink [409]
            "Create a link to the authoritative copy for one download";
        get "/partner/envelopes/{id}/vault/copy/signed-url", vault::copy_signed_url::<Key<VaultRead>> => getCopyLink [409]
            "Create a link to the non-authoritative copy";
        get "/partner/envelopes/{id}/vault/certificate", vault::certificate::<Key<ComplianceRead>> => getCertificate []
            "Read the compliance certificate";
        get "/partner/envelopes/{id}/completion-certificate", vault::completion_certificate::<Key<VaultRead>>
            => getCompletionCertificate [409]
            "Download the certificate of completion";
        get "/partner/envelopes/{id}/custody-record", vault::custody_record::<Key<VaultRead>> => getCustodyRecord [409]
            "Download the custody record";
        get "/partner/envelopes/{id}/compliance", vault::compliance::<Key<ComplianceRead>> => getCompliance []
            "Evaluate the eight checks now";
        get "/partner/envelopes/{id}/custody", vault::custody::<Key<ComplianceRead>> => getCustodyLedger []
            "Read the custody ledger";
        post "/partner/envelopes/{id}/vault-out", vault::vault_out => vaultOut [409]
            "Release the authoritative copy permanently";
        get "/partner/envelopes/{id}/bundle", vault::bundle::<Key<VaultRelease>> => getEvidenceBundle [409]
            "The evidence bundle of a released envelope";
    }

    partner_funding {
        post "/partner/envelopes/{id}/funding-check", funding::check::<Key<EnvelopesWrite>> => checkFunding [503]
            "Check a contract by the funding rules";
        get "/partner/envelopes/{id}/stipulations", funding::list_stipulations::<Key<EnvelopesRead>>
            => listStipulations []
            "List the attachments that the funding depends on";
        put "/partner/envelopes/{id}/stipulations", funding::set_stipulations::<Key<EnvelopesWrite>>
            => setStipulations [409, 422]
            "Set the attachments that the funding depends on";
        post "/partner/envelopes/{id}/stipulations/{stipulation}/waiver", funding::waive::<Key<EnvelopesWrite>>
            => waiveStipulation [409, 422]
            "Waive a required attachment, with a reason";
        get "/partner/envelopes/{id}/funding-package", funding::package::<Key<VaultRead>> => getFundingPackage [409]
            "Download the funding package of a vaulted contract";
        get "/partner/templates/{id}/stipulations", funding::template_stipulations::<Key<EnvelopesRead>>
            => listTemplateStipulations []
            "List the attachments that contracts of a template need";
        put "/partner/templates/{id}/stipulations", funding::set_template_stipulations::<Key<EnvelopesWrite>>
            => setTemplateStipulations [409, 422]
            "Set the attachments that contracts of a template need";
    }

    partner_control {
        get "/partner/control/records", control::list::<Key<ControlRead>> => listControlRecords [404, 422]
            "List records that you control, were offered or originated, newest first";
        get "/partner/control/records/{id}", control::read::<Key<ControlRead>> => getControlRecord [409]
            "Read who controls a record";
        post "/partner/control/records/{id}/designate", control::designate::<Key<ControlWrite>>
            => designateController [409]
            "Offer control of a record to another organization";
        post "/partner/control/records/{id}/accept", control::accept::<Key<ControlWrite>> => acceptControl [409]
            "Take control of a record that was offered to you";
        post "/partner/control/records/{id}/decline", control::decline::<Key<ControlWrite>> => declineControl [409]
            "Decline control that was offered to you, or withdraw the offer";
        post "/partner/control/records/{id}/release", control::release::<Key<VaultRelease>>
            => releaseControlledRecord [409]
            "Release a record that you control";
        get "/partner/control/records/{id}/bundle", vault::bundle::<Key<VaultRelease>> => getControlledBundle [409]
            "The evidence bundle of a released record that you control";
        get "/partner/control/transfers", control::transfers::<Key<ControlRead>> => listTransfers []
            "List transfers that you sell or buy in, newest first";
        post "/partner/control/transfers", control::propose::<Key<ControlWrite>> => proposeTransfer [422]
            "Offer records that you control to a buyer";
        get "/partner/control/transfers/{id}", control::transfer::<Key<ControlRead>> => getTransfer []
            "Read a transfer with its records";
        post "/partner/control/transfers/{id}/accept", control::accept_transfer::<Key<ControlWrite>>
            => acceptTransfer [409]
            "Accept an offer as its buyer";
        post "/partner/control/transfers/{id}/confirm", control::confirm_transfer::<Key<ControlWrite>>
            => confirmTransfer [409]
            "Confirm an accepted transfer as its seller; control passes to the buyer";
        post "/partner/control/transfers/{id}/cancel", control::cancel_transfer::<Key<ControlWrite>>
            => cancelTransfer [409]
            "End a transfer before it is confirmed";
        post "/partner/control/releases/{id}/consent", control::consent::<Key<ControlConsent>>
            => consentToRelease [409]
            "Agree to a requested release; it is made in the background";
        post "/partner/control/releases/{id}/refuse", control::refuse::<Key<ControlConsent>> => refuseRelease [409]
            "Refuse a requested release";
        get "/partner/control/pools/{id}/proofs", control::proofs::<Key<ControlRead>> => getPoolProofs [409]
            "The proofs of a transfer's records in one zip";
        get "/partner/control/pools/{id}/tape", control::tape::<Key<ControlRead>> => getPoolTape [409]
            "Get a row for each record of a transfer";
        post "/partner/control/pledges", control::pledge::<Key<ControlWrite>> => pledgeRecord [409, 422]
            "Pledge a record that you control";
        post "/partner/control/pledges/{id}/release", control::release_pledge::<Key<ControlConsent>>
            => releasePledge [409]
            "Release a pledge as its pledgee";
        post "/partner/envelopes/{id}/control-statement", control::state_control::<Key<ControlWrite>>
            => issueControlStatement [409, 422]
            "Prove to the obligor of a record that you have control";
        get "/partner/control/records/{id}/inspection", control::inspection::<Key<ControlRead>>
            => inspectRecord [409, 422]
            "Inspect a record; the look is recorded";
        get "/partner/control/records/{id}/copy", control::copy::<Key<ControlRead>> => getWatermarkedCopy [409, 422]
            "Get a watermarked copy of a record; it is recorded with its holder";
        get "/partner/control/copies/{id}", control::handed_copy::<Key<ControlRead>> => getCopyHolder []
            "Read who has a watermarked copy";
        post "/partner/control/copies/trace", control::trace::<Key<ControlRead>> => traceCopy []
            "Find out whose watermarked copy a file is";
        post "/partner/control/views", control::grant_view::<Key<ControlWrite>> => grantView [404, 409, 422]
            "Let a person look at a record that you control";
        post "/partner/control/views/{id}/revoke", control::revoke_view::<Key<ControlWrite>> => revokeView [409]
            "End a person's view of a record";
        get "/partner/control/disputes/{id}", control::dispute::<Key<ControlRead>> => getDispute []
            "Read a dispute about two records of one document or collateral";
        post "/partner/control/disputes/{id}", control::state_case::<Key<ControlWrite>> => stateCase [422]
            "State your case in a dispute";
        post "/partner/control/invitations", control::invite::<Key<ControlWrite>> => inviteParty [409, 422]
            "Invite a party that has no organization here";
        get "/partner/control/invitations/{id}", control::invitation::<Key<ControlRead>> => getInvitation []
            "Read an invitation";
        get "/partner/control/keys", control::list_keys::<Key<ControlRead>> => listPartyKeys []
            "List the keys that your organization signs its acts of control with";
        post "/partner/control/keys", control::register_key::<Key<ControlConsent>> => registerPartyKey [409, 422]
            "Register a key; your organization then signs all its acts of control";
        post "/partner/control/keys/{id}/revoke", control::revoke_key::<Key<ControlConsent>>
            => revokePartyKey [409]
            "Revoke a key of your organization";
    }

    partner_retention {
        get "/partner/legal-holds", retention::list::<Key<HoldsRead>> => listLegalHolds []
            "List legal holds, newest first";
        post "/partner/legal-holds", retention::place::<Key<HoldsWrite>> => placeLegalHold [404, 409, 422]
            "Place a legal hold on a record, a customer, a pool or all of your records";
        get "/partner/legal-holds/{id}", retention::read::<Key<HoldsRead>> => getLegalHold []
            "Read a legal hold";
        get "/partner/retention-schedules", retention::schedules::<Key<HoldsRead>> => getRetentionSchedules []
            "Read how long records are kept";
        put "/partner/retention-schedules", retention::set_schedules::<Key<HoldsWrite>>
            => setRetentionSchedules [422]
            "Set how long records are kept";
        get "/partner/envelopes/{id}/retention", retention::of_record::<Key<EnvelopesRead>> => getRetention []
            "Read how long a record is kept";
        post "/partner/envelopes/{id}/retention-events", retention::report::<Key<EnvelopesWrite>>
            => reportRetentionEvent [409, 422]
            "Report that a contract was paid off";
        get "/partner/retention/due", retention::due::<Key<HoldsRead>> => listDueRecords []
            "List records whose retention is over";
        get "/partner/destructions", destructions::list::<Key<HoldsRead>> => listDestructions []
            "List requests to destroy records, newest first";
        post "/partner/destructions", destructions::request::<Key<HoldsWrite>> => requestDestruction [404, 409, 422]
            "Ask two people to destroy records";
        get "/partner/destructions/{id}", destructions::read::<Key<HoldsRead>> => getDestruction []
            "Read a request to destroy records";
        get "/partner/destructions/{id}/certificate", destructions::certificate::<Key<HoldsRead>> => getDestructionCertificate [409, 503]
            "Download the certificate of a record's destruction";
        post "/partner/customers/{id}/export", persons::export::<Key<CustomersPrivacy>> => exportCustomer [410]
            "Download everything that is held about a customer";
        post "/partner/customers/{id}/erase", persons::erase => requestErasure [409, 410]
            "Ask for the erasure of a customer, or try again what was refused";
        get "/partner/customers/{id}/erasure", persons::erasure::<Key<CustomersPrivacy>> => getErasure []
            "Read how far the erasure of a customer is";
    }

    partner_tapes {
        post "/partner/control/tapes", tapes::submit::<Key<ControlWrite>> => submitTape [404, 409]
            "Compare a loan tape with the contracts of your records";
        get "/partner/control/tapes", tapes::list::<Key<ControlRead>> => listTapes []
            "List your loan tapes, newest first";
        get "/partner/control/tapes/{id}", tapes::read::<Key<ControlRead>> => getTape []
            "Read how a loan tape compares with its contracts";
        delete "/partner/control/tapes/{id}", tapes::delete::<Key<ControlWrite>> => deleteTape [409]
            "Delete a loan tape with its results";
        get "/partner/control/tapes/{id}/rows", tapes::rows::<Key<ControlRead>> => listTapeRows []
            "List the results of a loan tape's rows";
        get "/partner/control/tapes/{id}/rows/{line}/picture", tapes::place::<Key<ControlRead>> => getTapePicture [503]
            "See the place in the contract that a finding is about";
        get "/partner/control/tapes/{id}/report", tapes::report::<Key<ControlRead>> => getTapeReport [409, 422]
            "Download the report of a loan tape";
        get "/partner/control/tape-maps", tapes::list_maps::<Key<ControlRead>> => listTapeMaps []
            "List the maps by which columns of loan tapes are read";
        get "/partner/control/tape-maps/{name}", tapes::read_map::<Key<ControlRead>> => getTapeMap []
            "Read a map of loan tapes";
        put "/partner/control/tape-maps/{name}", tapes::put_map::<Key<ControlWrite>> => putTapeMap [409, 422]
            "Store a map of loan tapes under a name";
    }

    partner_imports {
        post "/partner/imports", imports::submit::<Key<EnvelopesWrite>> => createImport []
            "Import documents that were signed in another system";
        get "/partner/imports", imports::list::<Key<EnvelopesRead>> => listImports []
            "List your imports, newest first";
        get "/partner/imports/{id}", imports::read::<Key<EnvelopesRead>> => getImport []
            "Read how far an import is";
        get "/partner/imports/{id}/rows", imports::rows::<Key<EnvelopesRead>> => listImportRows []
            "List the results of an import's rows";
        get "/partner/imports/{id}/report", imports::report::<Key<EnvelopesRead>> => getImportReport []
            "Download the results of an import as a table";
    }

    partner_templates {
        post "/partner/templates", templates::create => createTemplate [502, 503]
            "Create a template from a PDF";
        post "/partner/templates/{id}/fields", templates::add_fields => addTemplateFields [409, 502, 503]
            "Add fields to a template";
        get "/partner/templates/{id}/open-links", open_links::list => listOpenLinks []
            "List the open links of a template, newest first";
        post "/partner/templates/{id}/open-links", open_links::create => createOpenLink [409, 502, 503]
            "Create an open link of a template: whoever opens it signs a record of their own";
        get "/partner/open-links/{id}", open_links::read => getOpenLink []
            "Read an open link with its address and its count of records";
        get "/partner/open-links/{id}/qr", open_links::qr => getOpenLinkQr []
            "Get the address of an open link as a QR code";
        post "/partner/open-links/{id}/close", open_links::close => closeOpenLink []
            "Close an open link; its records stay";
    }

    partner_customers {
        get "/partner/customers", customers::find => findCustomer [404]
            "Find a customer by e-mail";
        post "/partner/customers/{id}/documents", customers::file_document => fileCustomerDocument [409]
            "File a document under a customer";
    }

    partner_test {
        get "/test/inbox", test_mode::inbox => listTestMessages [403]
            "List the mails and text messages of test data, which are not sent, newest first";
        post "/test/envelopes/{id}/sign", test_mode::sign => simulateSigning [403, 409, 422]
            "Sign a test envelope in the place of its signers";
        post "/test/envelopes/{id}/decline", test_mode::decline => simulateDecline [403, 409, 422]
            "Decline a test envelope in the place of a signer";
        get "/test/clock", test_mode::clock => getTestClock [403]
            "Read how far the time of test data was advanced";
        post "/test/clock", test_mode::advance => advanceTestClock [403, 409]
            "Advance the time of test data: expiry, retries and links";
    }

    partner_events {
        get "/partner/events", events::list => listEvents [404, 410]
            "List events in the order in which they happened, and wait for the next";
        get "/partner/events/{id}", events::read => getEvent []
            "Read an event";
        post "/partner/events/{id}/resend", events::resend => resendEvent [409]
            "Send an event again to the endpoints that subscribe to it";
    }

    partner_webhook {
        patch "/partner/webhook", webhooks::set_legacy => setWebhook [422]
            "Set the webhook endpoint of the key";
    }

    embed_widgets {
        post "/embed/token", embed::token => issueEmbedToken [404, 409]
            "Create a token that shows a widget of one envelope";
        post "/embed/payment-intent", payments::intent => createPaymentIntent [502, 503]
            "Create the payment intent of the payer who holds the token";
        post "/embed/payment-status", payments::status => getPaymentStatus [502, 503]
            "Read the status of the payment";
    }

    public_ledger {
        get "/ledger/head", ledger::head => getLedgerHead [404]
            "Read the signed head of the log of all custody ledgers";
    }

    web_envelopes {
        get "/envelopes", web::search::search => searchEnvelopes [422]
            "Search the envelopes of the organization, newest first";
        post "/envelopes", envelopes::create::<Web<may::Send>> => makeEnvelope [404, 409, 502, 503]
            "Create an envelope, and send it when it has a template";
        get "/envelopes/{id}", web::envelope => readEnvelope []
            "Read an envelope of the organization";
        post "/envelopes/{id}/upload", envelopes::upload::<Web<may::Send>> => attachDocument [409]
            "Attach or replace the document";
        put "/envelopes/{id}/paper-original", envelopes::state_paper_original::<Web<may::Send>>
            => notePaperOriginal [409]
            "State what became of the paper original of an upload";
        post "/envelopes/{id}/void", envelopes::void::<Web<may::Send>> => cancelEnvelope [409, 502, 503]
            "Void an envelope";
        post "/envelopes/{id}/extend", envelopes::extend::<Web<may::Send>> => postponeExpiry [409]
            "Move the expiry to a later time";
        put "/envelopes/{id}/contract-dates", envelopes::set_contract_dates::<Web<may::Send>> => putContractDates [409]
            "Set dates of the contract and the notices before them";
        post "/envelopes/{id}/copy", envelopes::copy::<Web<may::Send>> => duplicateEnvelope [409]
            "Create a draft from an envelope";
        post "/envelopes/{id}/correct", envelopes::correct::<Web<may::Send>> => replaceDocument [409, 502, 503]
            "Correct the document or fields, and send again";
        get "/envelopes/{id}/document", envelopes::document::<Web<may::ReadEnvelopes>>
            => readUnsignedDocument [409]
            "Download the document without signatures";
        get "/envelopes/{id}/attachments", envelopes::attachments::<Web<may::ReadEnvelopes>>
            => readAttachments []
            "List the files that signers attached";
        get "/envelopes/{id}/attachments/{sha256}", envelopes::attachment::<Web<may::ReadEnvelopes>>
            => readAttachment []
            "Download a file that a signer attached";
        get "/envelopes/{id}/facts", envelopes::facts::<Web<may::ReadEnvelopes>> => readFacts [502, 503]
            "Read the facts of a contract, with the places where they stand";
        get "/envelopes/{id}/compliance", vault::compliance::<Web<may::ReadEnvelopes>> => readCompliance []
            "Evaluate the eight checks now";
        get "/envelopes/{id}/custody", vault::custody::<Web<may::ReadEnvelopes>> => readCustodyLedger []
            "Read the custody ledger";
        get "/envelopes/{id}/certificate", vault::certificate::<Web<may::ReadEnvelopes>> => readCertificate []
            "Read the compliance certificate";
        get "/envelopes/{id}/completion-certificate", vault::completion_certificate::<Web<may::ReadEnvelopes>>
            => readCompletionCertificate [409]
            "Download the certificate of completion";
        get "/envelopes/{id}/custody-record", vault::custody_record::<Web<may::ReadEnvelopes>>
            => readCustodyRecord [409]
            "Download the custody record";
        get "/envelopes/{id}/copy-link", vault::copy_signed_url::<Web<may::ReadEnvelopes>>
            => readCopyLink [409]
            "Create a link to the non-authoritative copy";
        post "/envelopes/{id}/vault-in-signed", vault::vault_in_signed::<Web<may::Send>>
            => vaultSigned [409, 422, 502, 503]
            "Vault a signed envelope";
        post "/envelopes/{id}/vault-in-upload", vault::vault_in_upload::<Web<may::Send>>
            => vaultUpload [409, 422]
            "Vault an uploaded document";
        get "/envelopes/{id}/bundle", web::bundle => getBundle [409]
            "The evidence bundle of a released envelope";
        post "/envelopes/{id}/verify", web::verify => verifyEnvelope [409]
            "Verify the evidence of a vaulted or released envelope";
        post "/envelopes/{id}/replay", web::replay => replayEnvelope []
            "Repeat all decisions about an envelope with the components that made them";
        post "/envelopes/{id}/send", web::send => sendEnvelope [409, 502, 503]
            "Send a pending envelope with a template, several templates, a package or its own document";
        post "/envelopes/{id}/payment-intent", payments::collect => collectPayment [502, 503]
            "Create the payment intent of an envelope on behalf of its payer";
        get "/envelopes/{id}/kba", kba::results => listKbaResults []
            "List results of identity questions, oldest first";
        post "/envelopes/{id}/vault-consent", web::vault_consent => consentToVaulting [409]
            "Give or withdraw consent to automatic vaulting of an envelope";
    }
    web_signers {
        post "/envelopes/{id}/remind", envelopes::remind::<Web<may::Send>> => remindPeople [409]
            "Mail a new link to signers who have not signed";
        put "/envelopes/{id}/reminders", envelopes::plan_reminders::<Web<may::Send>> => setReminders [409]
            "Plan reminders of signers who do not sign";
        put "/envelopes/{id}/send-at", envelopes::plan_sending::<Web<may::Send>> => setSendingTime [409]
            "Plan the sending of a draft";
        get "/envelopes/{id}/signers", envelopes::signers::<Web<may::ReadEnvelopes>> => readSigners []
            "List the signers and the other recipients";
        patch "/envelopes/{id}/signers/{role}", envelopes::correct_signer::<Web<may::Send>> => changeSigner [409]
            "Correct or replace a signer who has not signed";
        get "/envelopes/{id}/questions", envelopes::questions::<Web<may::ReadEnvelopes>> => readQuestions []
            "List the questions of signers to the sender";
        post "/envelopes/{id}/questions/{question_id}/close", envelopes::close_question::<Web<may::Send>>
            => answerQuestion [409]
            "Answer a question of a signer, or dismiss it";
        get "/envelopes/{id}/signing-links", web::signing_links => readSigningLinks [409]
            "Create a short-lived link for each signer";
    }

    web_control {
        get "/control/records", control::list::<Web<may::ReadControl>> => listControlRecordsAsUser [404, 422]
            "List records that you control, were offered or originated, newest first";
        get "/control/records/{id}", control::read::<Web<may::ReadControl>> => getControlRecordAsUser [409]
            "Read who controls a record";
        post "/control/records/{id}/designate", control::designate::<Web<may::Control>>
            => designateControllerAsUser [409]
            "Offer control of a record to another organization";
        post "/control/records/{id}/accept", control::accept::<Web<may::Control>> => acceptControlAsUser [409]
            "Take control of a record that was offered to you";
        post "/control/records/{id}/decline", control::decline::<Web<may::Control>> => declineControlAsUser [409]
            "Decline control that was offered to you, or withdraw the offer";
        post "/control/records/{id}/release", control::release::<Web<may::Control>>
            => releaseControlledRecordAsUser [409]
            "Release a record that you control";
        get "/control/records/{id}/bundle", vault::bundle::<Web<may::Control>> => getControlledBundleAsUser [409]
            "The evidence bundle of a released record that you control";
        get "/control/transfers", control::transfers::<Web<may::ReadControl>> => listTransfersAsUser []
            "List transfers that you sell or buy in, newest first";
        post "/control/transfers", control::propose::<Web<may::Control>> => proposeTransferAsUser [422]
            "Offer records that you control to a buyer";
        get "/control/transfers/{id}", control::transfer::<Web<may::ReadControl>> => getTransferAsUser []
            "Read a transfer with its records";
        post "/control/transfers/{id}/accept", control::accept_transfer::<Web<may::Control>>
            => acceptTransferAsUser [409]
            "Accept an offer as its buyer";
        post "/control/transfers/{id}/confirm", control::confirm_transfer::<Web<may::Control>>
            => confirmTransferAsUser [409]
            "Confirm an accepted transfer as its seller; control passes to the buyer";
        post "/control/transfers/{id}/cancel", control::cancel_transfer::<Web<may::Control>>
            => cancelTransferAsUser [409]
            "End a transfer before it is confirmed";
        post "/control/releases/{id}/consent", control::consent::<Web<may::Control>>
            => consentToReleaseAsUser [409]
            "Agree to a requested release; it is made in the background";
        post "/control/releases/{id}/refuse", control::refuse::<Web<may::Control>> => refuseReleaseAsUser [409]
            "Refuse a requested release";
        get "/control/pools/{id}/proofs", control::proofs::<Web<may::ReadControl>> => getPoolProofsAsUser [409]
            "The proofs of a transfer's records in one zip";
        get "/control/pools/{id}/tape", control::tape::<Web<may::ReadControl>> => getPoolTapeAsUser [409]
            "Get a row for each record of a transfer";
        post "/control/pledges", control::pledge::<Web<may::Control>> => pledgeRecordAsUser [409, 422]
            "Pledge a record that you control";
        post "/control/pledges/{id}/release", control::release_pledge::<Web<may::Control>>
            => releasePledgeAsUser [409]
            "Release a pledge as its pledgee";
        post "/envelopes/{id}/control-statement", control::state_control::<Web<may::Control>>
            => issueControlStatementAsUser [409, 422]
            "Prove to the obligor of a record that you have control";
        get "/control/records/{id}/inspection", control::inspection::<Web<may::ReadControl>>
            => inspectRecordAsUser [409, 422]
            "Inspect a record; the look is recorded";
        get "/control/records/{id}/copy", control::copy::<Web<may::ReadControl>> => getWatermarkedCopyAsUser [409, 422]
            "Get a watermarked copy of a record; it is recorded with its holder";
        get "/control/copies/{id}", control::handed_copy::<Web<may::ReadControl>> => getCopyHolderAsUser []
            "Read who has a watermarked copy";
        post "/control/copies/trace", control::trace::<Web<may::ReadControl>> => traceCopyAsUser []
            "Find out whose watermarked copy a file is";
        post "/control/views", control::grant_view::<Web<may::Control>> => grantViewAsUser [404, 409, 422]
            "Let a person look at a record that you control";
        post "/control/views/{id}/revoke", control::revoke_view::<Web<may::Control>> => revokeViewAsUser [409]
            "End a person's view of a record";
        get "/control/disputes/{id}", control::dispute::<Web<may::ReadControl>> => getDisputeAsUser []
            "Read a dispute about two records of one document or collateral, as a user";
        post "/control/disputes/{id}", control::state_case::<Web<may::Control>> => stateCaseAsUser [422]
            "State your case in a dispute, as a user";
        post "/control/invitations", control::invite::<Web<may::Control>> => invitePartyAsUser [409, 422]
            "Invite a party that has no organization here";
        get "/control/invitations/{id}", control::invitation::<Web<may::ReadControl>> => getInvitationAsUser []
            "Read an invitation";
        get "/control/keys", control::list_keys::<Web<may::ReadControl>> => listPartyKeysAsUser []
            "List the keys that your organization signs its acts of control with";
        post "/control/keys", control::register_key::<Web<may::Control>> => registerPartyKeyAsUser [409, 422]
            "Register a key; your organization then signs all its acts of control";
        post "/control/keys/{id}/revoke", control::revoke_key::<Web<may::Control>> => revokePartyKeyAsUser [409]
            "Revoke a key of your organization";
    }

    web_retention {
        get "/legal-holds", retention::list::<Web<may::ReadEvidence>> => listLegalHoldsAsUser []
            "List legal holds, newest first";
        post "/legal-holds", retention::place::<Web<may::Hold>> => placeLegalHoldAsUser [404, 409, 422]
            "Place a legal hold on a record, a customer, a pool or all of your records";
        get "/legal-holds/{id}", retention::read::<Web<may::ReadEvidence>> => getLegalHoldAsUser []
            "Read a legal hold";
        post "/legal-holds/{id}/lift", holds::request_lift => requestLift [409, 422]
            "Ask a second person to lift a legal hold";
        post "/legal-holds/{id}/lift/approve", holds::approve_lift => approveLift [409]
            "Lift a legal hold, as the second person";
        delete "/legal-holds/{id}/lift", holds::withdraw_lift => withdrawLift [409]
            "Take back the request to lift a legal hold";
        get "/retention-schedules", retention::schedules::<Web<may::ReadEvidence>> => getRetentionSchedulesAsUser []
            "Read how long records are kept";
        put "/retention-schedules", retention::set_schedules::<Web<may::Hold>> => setRetentionSchedulesAsUser [422]
            "Set how long records are kept";
        post "/envelopes/{id}/retention-events", retention::report::<Web<may::Send>> => reportRetentionEventAsUser [409, 422]
            "Report that a contract was paid off";
        get "/retention/due", retention::due::<Web<may::ReadEvidence>> => listDueRecordsAsUser []
            "List records whose retention is over";
        get "/destructions", destructions::list::<Web<may::ReadEvidence>> => listDestructionsAsUser []
            "List requests to destroy records, newest first";
        post "/destructions", destructions::request::<Web<may::Hold>> => requestDestructionAsUser [404, 409, 422]
            "Ask a second person to authorize the destruction of records";
        get "/destructions/{id}", destructions::read::<Web<may::ReadEvidence>> => getDestructionAsUser []
            "Read a request to destroy records";
        delete "/destructions/{id}", people::withdraw => withdrawDestruction [409]
            "Withdraw a request to destroy records";
        post "/destructions/{id}/authorize", people::authorize => authorizeDestruction [409]
            "Authorize the destruction of records, as the second person";
        delete "/destructions/{id}/authorize", people::take_back => withdrawDestructionAuthorization [409]
            "Take back the authorization of a destruction";
        post "/destructions/{id}/carry-out", people::carry_out => carryOutDestruction [409]
            "Destroy the records of an authorized request, as a person who did not authorize it";
        get "/destructions/{id}/certificate", destructions::certificate::<Web<may::ReadEvidence>> => getDestructionCertificateAsUser [409, 503]
            "Download the certificate of a record's destruction";
        get "/control/destructions", people::asked => listAskedDestructions []
            "List requests to destroy records that your organization controls";
        post "/control/destructions/{id}/consent", people::consent => consentToDestruction [409]
            "Consent to the destruction of records that your organization controls";
        delete "/control/destructions/{id}/consent", people::withdraw_consent => withdrawDestructionConsent [409]
            "Take back the consent to a destruction";
        post "/customers/{id}/export", persons::export::<Web<may::Hold>> => exportCustomerAsUser [410]
            "Download everything that is held about a customer";
        post "/customers/{id}/erase", web::persons::erase => requestErasureAsUser [409, 410]
            "Ask for the erasure of a customer, or try again what was refused";
        delete "/customers/{id}/erase", web::persons::withdraw_erasure => withdrawErasure [409]
            "Take back the request to erase a customer";
        post "/customers/{id}/erase/approve", web::persons::approve_erasure => approveErasure [409]
            "Erase a customer, as the second person";
        get "/customers/{id}/erasure", persons::erasure::<Web<may::Hold>> => getErasureAsUser []
            "Read how far the erasure of a customer is";
    }

    web_tapes {
        post "/control/tapes", tapes::submit::<Web<may::Control>> => submitTapeAsUser [404, 409]
            "Compare a loan tape with the contracts of your records";
        get "/control/tapes", tapes::list::<Web<may::ReadControl>> => listTapesAsUser []
            "List your loan tapes, newest first";
        get "/control/tapes/{id}", tapes::read::<Web<may::ReadControl>> => getTapeAsUser []
            "Read how a loan tape compares with its contracts";
        delete "/control/tapes/{id}", tapes::delete::<Web<may::Control>> => deleteTapeAsUser [409]
            "Delete a loan tape with its results";
        get "/control/tapes/{id}/rows", tapes::rows::<Web<may::ReadControl>> => listTapeRowsAsUser []
            "List the results of a loan tape's rows";
        get "/control/tapes/{id}/rows/{line}/picture", tapes::place::<Web<may::ReadControl>> => getTapePictureAsUser [503]
            "See the place in the contract that a finding is about";
        get "/control/tapes/{id}/report", tapes::report::<Web<may::ReadControl>> => getTapeReportAsUser [409, 422]
            "Download the report of a loan tape";
        get "/control/tape-maps", tapes::list_maps::<Web<may::ReadControl>> => listTapeMapsAsUser []
            "List the maps by which columns of loan tapes are read";
        get "/control/tape-maps/{name}", tapes::read_map::<Web<may::ReadControl>> => getTapeMapAsUser []
            "Read a map of loan tapes";
        put "/control/tape-maps/{name}", tapes::put_map::<Web<may::Control>> => putTapeMapAsUser [409, 422]
            "Store a map of loan tapes under a name";
    }

    web_imports {
        post "/imports", imports::submit::<Web<may::Send>> => createImportAsUser []
            "Import documents that were signed in another system";
        get "/imports", imports::list::<Web<may::ReadEnvelopes>> => listImportsAsUser []
            "List your imports, newest first";
        get "/imports/{id}", imports::read::<Web<may::ReadEnvelopes>> => getImportAsUser []
            "Read how far an import is";
        get "/imports/{id}/rows", imports::rows::<Web<may::ReadEnvelopes>> => listImportRowsAsUser []
            "List the results of an import's rows";
        get "/imports/{id}/report", imports::report::<Web<may::ReadEnvelopes>> => getImportReportAsUser []
            "Download the results of an import as a table";
    }

    web_templates_and_packages {
        get "/templates", web::templates::list => listTemplates []
            "List the template library, newest first";
        post "/templates", web::templates::create => createLibraryTemplate [502, 503]
            "Create a template, with or without a PDF";
        get "/templates/{id}", web::templates::read => getTemplate []
            "Read a template";
        patch "/templates/{id}", web::templates::change => changeTemplate [409]
            "Change the name, external id or tags of a template";
        delete "/templates/{id}", web::templates::delete => deleteTemplate [409]
            "Delete a template, which can be restored for 30 days; envelopes already sent stay";
        post "/templates/{id}/restore", web::templates::restore => restoreTemplate [409]
            "Restore a template that was deleted in the last 30 days";
        post "/templates/{id}/duplicate", web::templates::duplicate => duplicateTemplate [503]
            "Create a template with the document and fields of another one";
        get "/templates/{id}/document", web::templates::document => getTemplateDocument [503]
            "Download the document of a template";
        get "/templates/{id}/versions", web::templates::list_versions => listTemplateVersions []
            "List the newest 100 versions of a template, newest first";
        post "/templates/{id}/versions", web::templates::add_version => createTemplateVersion [409, 503]
            "Replace the document of a template and keep its fields, or go back to an earlier version";
        get "/document-packages", packages::list => listPackages []
            "List packages, newest first";
        post "/document-packages", packages::create => createPackage [404, 409, 502, 503]
            "Create a package of templates";
        get "/document-packages/{id}", packages::read => getPackage []
            "Read a package";
        patch "/document-packages/{id}", packages::change => changePackage [409, 502, 503]
            "Change a package";
        get "/fact-maps", fact_maps::list => listFactMaps []
            "List fact maps, newest first";
        post "/fact-maps", fact_maps::create => createFactMap [404, 409]
            "Create a fact map, also from a starter";
        get "/fact-maps/starters", fact_maps::starters => listFactMapStarters []
            "List the maps to begin with";
        get "/fact-maps/{id}", fact_maps::read => getFactMap []
            "Read a fact map";
        put "/fact-maps/{id}", fact_maps::replace => replaceFactMap [409]
            "Add a version to a fact map";
        delete "/fact-maps/{id}", fact_maps::delete => deleteFactMap [409]
            "Delete a fact map; facts that were read with it stay";
        post "/fact-maps/{id}/try", fact_maps::attempt => tryFactMap [502, 503]
            "Read the facts of stored documents with a map, and draw where they stand";
        post "/esign/builder-session", web::builder_session => startBuilderSession [404, 409, 502, 503]
            "Start a field builder session for a template, a document or a batch";
    }

    web_customers {
        get "/customers", web::customers::list => listCustomers []
            "List customers, newest first";
        post "/customers", web::customers::create => createCustomer [409]
            "Create a customer";
        get "/customers/{id}", web::customers::read => getCustomer [410]
            "Read a customer";
        patch "/customers/{id}", web::customers::change => changeCustomer [409, 410]
            "Change a customer";
    }

    web_funding {
        post "/envelopes/{id}/funding-check", funding::check::<Web<may::Send>> => checkFundingAsUser [503]
            "Check a contract by the funding rules";
        get "/envelopes/{id}/stipulations", funding::list_stipulations::<Web<may::ReadEnvelopes>>
            => listStipulationsAsUser []
            "List the attachments that the funding depends on";
        put "/envelopes/{id}/stipulations", funding::set_stipulations::<Web<may::Send>> => setStipulationsAsUser [409, 422]
            "Set the attachments that the funding depends on";
        post "/envelopes/{id}/stipulations/{stipulation}/waiver", funding::waive::<Web<may::Send>>
            => waiveStipulationAsUser [409, 422]
            "Waive a required attachment, with a reason";
        get "/envelopes/{id}/funding-package", funding::package::<Web<may::ReadEvidence>>
            => getFundingPackageAsUser [409]
            "Download the funding package of a vaulted contract";
        get "/funding-packs", funding_packs::list => listFundingPacks []
            "List your funding packs, and those that you were invited to";
        post "/funding-packs", funding_packs::publish => publishFundingPack [409, 422]
            "Publish a funding pack";
        post "/funding-packs/{id}/versions", funding_packs::publish_version => publishFundingPackVersion [409, 422]
            "Publish a further version of a funding pack";
        post "/funding-packs/{id}/invitations", funding_packs::invite => inviteToFundingPack [422]
            "Invite an organization to a funding pack";
        post "/funding-packs/{id}/subscription", funding_packs::subscribe => subscribeToFundingPack [422]
            "Follow a funding pack, stay at one of its versions, or end the subscription";
    }

    bulk_send {
        get "/bulk-send", bulk::list => listBatches []
            "List bulk batches, newest first";
        post "/bulk-send", bulk::create => createBatch [404, 409]
            "Create a bulk batch";
        get "/bulk-send/{id}", bulk::read => getBatch []
            "Read a batch with its counts and items";
        patch "/bulk-send/{id}", bulk::change => changeBatch [409]
            "Change a batch before it is submitted";
        delete "/bulk-send/{id}", bulk::delete => deleteBatch [409]
            "Delete a batch that was not submitted";
        post "/bulk-send/{id}/vault-consent", bulk::consent => consentToBulkVaulting [409]
            "Give or withdraw consent to automatic vaulting of a batch";
        post "/bulk-send/{id}/items", bulk::set_clients => setClients [409]
            "Set the clients of a batch";
        post "/bulk-send/{id}/submit", bulk::submit => submitBatch [409, 422, 502, 503]
            "Submit a batch";
        post "/bulk-send/{id}/cancel", bulk::cancel => cancelBatch [409]
            "Cancel a running batch; envelopes already sent stay";
        post "/bulk-send/{id}/retry", bulk::retry => retryBatch [409, 503]
            "Retry the failed items of a batch";
        get "/bulk-send/{id}/events", bulk::events => watchBatch [503]
            "Follow the progress of a batch as server-sent events";
    }

    component_library {
        get "/components", components::list => listComponents []
            "List components: your own and the installation's, newest first";
        post "/components", components::upload => uploadComponent [409]
            "Upload a component; it is admitted when it fits a world and passes its vectors";
        get "/components/{id}", components::read => getComponent []
            "Read a component";
        get "/components/{id}/artifact", components::artifact => getComponentArtifact []
            "Download a component";
        post "/components/{id}/shadow", components::shadow => shadowComponent []
            "Compare a component with the active one on stored records; changes nothing";
        get "/components/{id}/vectors", components::vectors => listComponentVectors []
            "List the vectors that a component brought or inherited, and must keep";
        get "/components/{id}/attestations", components::attestations => listComponentAttestations []
            "List what publishers say about a component: signatures, provenance, bills of materials";
        post "/components/{id}/diff", components::diff => diffComponent []
            "Compare a component with the active one on generated facts; changes nothing";
        get "/component-slots", components::slots => listComponentSlots []
            "List slots with their active component and history";
        post "/component-slots/{slot}/activate", components::activate => activateComponent [409]
            "Activate a component in a slot, now or on an effective date";
        post "/component-slots/{slot}/try", components::try_out => tryComponent [404, 409, 422, 503]
            "Send one template through a signing provider's candidate; activates nothing";
        post "/component-slots/{slot}/rollback", components::roll_back => rollBackComponent [409]
            "Roll back to the previous activation";
        get "/component-slots/{slot}/shadow", components::live => getLiveShadow []
            "Read the results of a live comparison";
        post "/component-slots/{slot}/shadow", components::start_shadow => startLiveShadow []
            "Start comparing a candidate with the active component on live traffic";
        delete "/component-slots/{slot}/shadow", components::stop_shadow => stopLiveShadow []
            "Stop a live comparison; its results stay";
        get "/component-slots/{slot}/log", components::log => getInstanceLog [422]
            "Read the log of your provider instances, newest first";
        get "/component-policy", component_changes::policy => getComponentPolicy []
            "Read what a change of components needs";
        put "/component-policy", component_changes::set_policy => setComponentPolicy [409]
            "Set what a change of components needs";
        get "/component-changes", component_changes::list => listComponentChanges []
            "List change requests, newest first";
        post "/component-changes", component_changes::create => requestComponentChange [404, 409, 422]
            "Request a change of components that others approve";
        get "/component-changes/{id}", component_changes::read => getComponentChange []
            "Read a change request with its reviews";
        post "/component-changes/{id}/reviews", component_changes::review => reviewComponentChange [409]
            "Approve, refuse or comment on a change request";
        post "/component-changes/{id}/apply", component_changes::apply => applyComponentChange [409, 422]
            "Make an approved change";
        post "/component-changes/{id}/withdraw", component_changes::withdraw
            => withdrawComponentChange [409]
            "Withdraw a change request";
        post "/component-changes/{id}/shadow", component_changes::compare
            => compareComponentChange [409]
            "Compare the candidate of a change request on past records again";
        get "/component-state", component_state::read => getComponentState [404]
            "Read the desired state of your components, compared with what is active";
        post "/component-state", component_state::apply => applyComponentState [404, 409, 422]
            "Set the signed desired state of your components, or compare it";
        get "/decisions", decisions::export => exportDecisions []
            "Export the decisions of your rules, with the proof that none is left out";
        get "/component-ledger", components::history => getComponentLedger []
            "List decisions about components as a hash chain";
        get "/component-worlds", components::worlds => listComponentWorlds [429]
            "List the WIT worlds that components can target";
    }

    administration {
        get "/api-keys", administration::keys => listApiKeys []
            "List the API keys of the organization";
        post "/api-keys", administration::create_key => createApiKey [409]
            "Create an API key; it is shown this once";
        patch "/api-keys/{id}", administration::change_key => changeApiKey [409]
            "Change scopes or rate limit of an API key";
        post "/api-keys/{id}/rotate", administration::rotate_key => rotateApiKey [409]
            "Replace an API key; the old one stops working at once";
        post "/api-keys/{id}/deactivate", administration::deactivate_key => deactivateApiKey []
            "Deactivate an API key for good";
        get "/organization", administration::organization => getOrganization []
            "Read the settings of the organization";
        patch "/organization", administration::change_organization => changeOrganization [422]
            "Change settings of the organization";
        put "/organization/link-host", administration::set_link_host => setLinkHost [409, 422]
            "Lead new signing links to a host of your own";
        delete "/organization/link-host", administration::remove_link_host => removeLinkHost []
            "Lead new signing links to the installation's address";
        get "/users", users::list => listUsers []
            "List the users of the organization";
        post "/users", users::invite => inviteUser [409, 422]
            "Invite a user, who gets a link to sign in";
        patch "/users/{id}", users::change => changeUser [409]
            "Give a user another role";
        post "/users/{id}/invite", users::invite_again => inviteUserAgain [409]
            "Mail a user another link to sign in";
        post "/users/{id}/end", users::end => endUser [409]
            "End the access of a user";
        get "/audit-log", administration::audit_log => listAuditLog []
            "List who changed keys, tokens, settings and components, newest first";
        get "/findings", administration::findings => listFindings []
            "List envelopes with a changed or incomplete stored record";
        get "/usage", insight::usage => getUsage [422]
            "Count envelopes and identity checks of a month";
        get "/request-log", insight::request_log => listRequestLog []
            "List requests of the last 30 days, newest first";
        get "/request-log/{id}", insight::logged_request => getLoggedRequest []
            "Read one request with what was answered";
        get "/installation", insight::installation => getInstallation [404]
            "Read the state of the whole installation, for its operator";
        get "/installation/disputes", insight::disputes => listDisputes [404]
            "List disputes about records, for operators";
        post "/installation/disputes/{id}/suspension", insight::request_suspension => requestSuspension [404, 409, 422]
            "Ask a second operator to suspend a claim";
        post "/installation/disputes/{id}/suspension/approve", insight::approve_suspension => approveSuspension [404, 409]
            "Suspend a claim, as the second operator";
        delete "/installation/disputes/{id}/suspension", insight::lift_suspension => liftSuspension [404, 409]
            "End the suspension of a claim, or the request for it";
    }

    webhook_endpoints {
        get "/webhooks/endpoints", webhooks::list => listWebhookEndpoints []
            "List webhook endpoints";
        post "/webhooks/endpoints", webhooks::create => createWebhookEndpoint [404]
            "Register a webhook endpoint; its secret is shown this once";
        patch "/webhooks/endpoints/{id}", webhooks::change => changeWebhookEndpoint []
            "Change a webhook endpoint";
        delete "/webhooks/endpoints/{id}", webhooks::delete => deleteWebhookEndpoint []
            "Delete a webhook endpoint; its log stays";
        post "/webhooks/endpoints/{id}/rotate-secret", webhooks::rotate => rotateWebhookSecret []
            "Rotate the secret; the previous one signs for another 48 hours";
        post "/webhooks/endpoints/{id}/test", webhooks::test => testWebhookEndpoint []
            "Send a webhook.test event";
        get "/webhooks/endpoints/{id}/deliveries", webhooks::deliveries => listWebhookDeliveries []
            "List deliveries, newest first";
        get "/webhooks/deliveries/{id}", webhooks::delivery => getWebhookDelivery []
            "Read a delivery with its payload and attempts";
        post "/webhooks/deliveries/{id}/redeliver", webhooks::redeliver => redeliver [409]
            "Repeat a delivery";
        get "/webhooks/events", webhooks::catalog => listEventTypes []
            "List event types";
    }

    provider_callbacks {
        post "/callbacks/signing/{instance}", callbacks::signing => signingCallback [404, 502, 503]
            "Receive a callback of a signing provider";
        post "/callbacks/payment/{instance}", callbacks::payment => paymentCallback [404, 502, 503]
            "Receive a callback of a payment provider";
    }

    download_links {
        get "/downloads/{token}", downloads::download => download [404, 409, 410, 429]
            "What a download link gives";
    }
}
