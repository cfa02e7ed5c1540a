//! Domain types: records, ids, ledgers and the log. No I/O, and no dependency on other crates of the host.
//!
//! # Glossary
//!
//! One term for one thing. Code, comments, logs and documentation use these terms.
//!
//! **Actors**
//!
//! | Term | Meaning |
//! |---|---|
//! | installation | all nodes that share one database, one object store and one set of keys |
//! | node | one running server process of an installation |
//! | operator | person who runs the installation and its commands |
//! | organization | tenant: the owner of envelopes, templates, keys and settings |
//! | bucket | one of 64 partitions of tenant data, derived from the organization's id |
//! | partner | program of an organization that calls the API with an API key |
//! | user | person of an organization who uses the web app or the console; has a role such as `admin` |
//! | session | sign-in of a user in one browser |
//! | logged request | request of an organization's program or user, kept for 30 days without private values |
//! | passkey | key on a person's device with which the person signs in, confirms and signs (WebAuthn) |
//! | caller | authenticated sender of a request: an API key, a user or an embed token |
//! | scope | permission of an API key |
//! | test data | what keys of mode `test` make: kept under an id of its own (`org_test_…`), and in no live list |
//! | customer | business contact of an organization that an envelope is for; *client* in batches |
//!
//! **Signing**
//!
//! | Term | Meaning |
//! |---|---|
//! | envelope | one document sent for signature (`esign`) or uploaded already signed (`paper`) |
//! | status, transition | state of an envelope or batch; a change of it, which a trigger requests |
//! | signer | person who signs an envelope; *submitter* at signing providers |
//! | role | part of a signer in a template, for example `Buyer`; *party* in contracts |
//! | payer | signer who makes the payment that is requested at signing |
//! | template | document with fields and roles, from which envelopes are made |
//! | package | templates that are sent together as one document |
//! | field | value or signature that a role fills in; it has one or more areas |
//! | area | rectangle of a field on a page |
//! | anchor | text in a document that determines the position of a field |
//! | tag | field definition written into the text of a document, as `{{…}}` |
//! | builder | editor of fields in the browser |
//! | submission | an envelope at a signing provider |
//! | signing room | built-in signing provider, instance `embedded` |
//! | executed document | document with all signatures, from the signing provider |
//! | signing link | unguessable URL with which a signer opens an envelope |
//! | question | comment of a signer to the sender; while one is open, the envelope waits for the sender |
//! | embed token | short-lived token for a widget in a partner's page |
//! | disclosure | text about electronic records that a signer reads before agreeing to them (15 U.S.C. §7001(c)) |
//! | identity questions | knowledge-based authentication (KBA) of a signer by a provider |
//! | KBA session | one attempt of a signer to pass the identity questions |
//! | payment intent | a requested payment at a payment provider |
//! | batch, item | bulk send of one document to many clients; the part for one client |
//! | master template | template of a batch, cloned for each item |
//! | prefill | filling fields of a batch from the attributes of a client |
//!
//! **Vault and evidence**
//!
//! | Term | Meaning |
//! |---|---|
//! | vault | storage of authoritative copies |
//! | legal hold | order of an organization that nothing of its records leaves or is deleted until two people lift it |
//! | retention schedule | how long an organization keeps its records after an event; when the time is over, a record is *due* |
//! | authoritative copy | the one stored copy that is the contract (UCC §9-105) |
//! | non-authoritative copy | marked copy for anyone who needs to read the document |
//! | vault-in, vault-out | storing the authoritative copy; releasing it to its new keeper |
//! | archive | storage of released authoritative copies |
//! | import | making records of documents that were signed in another system, from an archive of files with a manifest |
//! | paper original | document, printed once, that replaces the authoritative copy |
//! | secured party | party that the contract is assigned to |
//! | custodian | person who keeps the authoritative copy for the secured party |
//! | facts | all data of a record that rules evaluate |
//! | contract facts | amounts, dates and numbers that a contract states, each with the places where it stands |
//! | fact map, fact sheet | which facts contracts have and where they stand; the facts of one contract, read with a map |
//! | check, requirement | one test of the compliance rules; the provision that it tests |
//! | certificate | result of the compliance rules about a vaulted envelope |
//! | custody record | PDF with the history of an envelope |
//! | seal | signature of the installation over a whole document (PAdES) |
//! | time stamp | statement of an independent authority about the time of a seal (RFC 3161) |
//! | ledger, entry | append-only hash chain; one link of it |
//! | custody ledger | ledger of an envelope |
//! | component ledger | ledger of the component changes of an organization or the installation |
//! | log | Merkle tree over the entries of all ledgers (RFC 6962) |
//! | head, checkpoint | size and root hash of the log; a signed head (C2SP) |
//! | tile | stored group of 256 neighbouring hashes of the log |
//! | witness of a log, cosignature | program that signs the heads of a log, each only if it extends the last one; its signature (C2SP) |
//! | quorum | number of witnesses that have to cosign a head |
//! | succession | replacement of a log key, signed with the old and the new key |
//! | evidence, bundle | files that prove an envelope; the folder or zip that contains them |
//! | verifier | person or program that checks evidence |
//! | trust anchor | key or head of the log that the verifier got independently of the evidence |
//! | re-evaluation | repeating a decision with the component that made it |
//! | integrity sweep | regular check of all stored documents and ledgers |
//!
//! **Control**
//!
//! | Term | Meaning |
//! |---|---|
//! | record | vaulted envelope with its authoritative copy |
//! | originator | organization that created the record |
//! | controller | party that alone decides about the authoritative copy |
//! | designee, buyer | party that was offered control and has not taken it yet |
//! | act | what a party does with a record: designate, accept, release … |
//! | transfer | offer, acceptance and confirmation by which control passes from a seller to a buyer |
//! | pledge, pledgee | record as security for a loan, which keeps it from changing hands; the party that lends |
//! | statement | description of an act that its party signs with a key of its own |
//! | pool, tape | records of one transfer; table with a row for each |
//! | loan tape | table that a party writes itself, with a row for each contract; it is compared with the facts of the contracts |
//! | tape map | which column of a loan tape is which fact, and how its values are read |
//! | view, look | permission of a person to look at a record; one inspection of it, which the ledger has |
//! | obligor | party against which a record is enforced, such as the buyer of a car |
//! | statement of control | proof for the obligor of the present controller |
//! | release request | release by the originator that waits for the controller's consent |
//! | fingerprint | keyed hash of a record's document or collateral, to find it registered twice |
//! | epoch | number of changes of a record's control; a fencing token for acts |
//!
//! **Components**
//!
//! | Term | Meaning |
//! |---|---|
//! | component | WebAssembly component behind a WIT interface |
//! | world, interface | WIT contract of a slot; a set of functions in it |
//! | slot | purpose of a component: `rules.compliance`, `provider.signing` … |
//! | rules | component that decides; it sees only its arguments |
//! | provider, plugin | external service for signing, payment or KBA; the component that calls it |
//! | instance | configured provider, by its name |
//! | default component | built-in component of a slot without an activation |
//! | pack | built-in compliance rules of one edition of the law |
//! | baseline | pack that the result of other compliance rules is compared with |
//! | own component | component that an organization uploaded for itself |
//! | candidate | component that is being examined |
//! | admission | checks of an uploaded component, and storing it |
//! | inspection | admission check of slot, imports and types |
//! | test vector, conformance | call with a known result; the admission check with test vectors |
//! | canary | test call whenever a component is loaded |
//! | script | simulated external service for the tests of a plugin |
//! | activation, rollback | making a component active in a slot from a time on; its reversal |
//! | change request | change of components, or of their policy, that other people approve |
//! | desired state, drift | signed list of the components that shall be active; difference from it |
//! | shadow | candidate that runs beside the active component, without effect |
//! | decision | stored result of rules, with facts and component |
//! | block | run of decisions of an organization's rules, to which an entry of its ledger commits |
//! | funding pack, subscription | funding rules that a lender publishes; their use by an invited originator |
//! | stipulation | attachment that the funding of a contract depends on |
//! | artifact, native code | bytes of a component; machine code compiled from them |
//! | fuel | deterministic measure of the work of rules |
//! | gate, turn | limit of concurrent calls; permission for one call |
//! | time slice, memory share | limits for all calls of one organization's own components |
//! | lease of a provider call | settings, secrets and network access for one provider call |
//!
//! **Delivery and background work**
//!
//! | Term | Meaning |
//! |---|---|
//! | event | notification about a change, written to the outbox with the change |
//! | outbox | events and jobs that are committed with the change that causes them |
//! | endpoint | URL that receives events of an organization |
//! | selector | pattern of event types that an endpoint receives |
//! | delivery, attempt | one event for one endpoint; one request that sends it |
//! | callback | request from a provider that reports a change |
//! | job | background work that is committed with the change that needs it |
//! | kind of a job | name, payload, queue and retry policy |
//! | worker | task of a node that runs jobs or deliveries |
//! | claim, lease | taking a job, item or delivery; the time-limited right to work on it |
//! | fencing token | counter that invalidates the writes of a worker that lost its lease |
//! | intent to vault | recorded steps of a vault-in, from which a job continues after a crash |
//! | wake-up | hint to other nodes that there is work; it may be lost |
//! | idempotency key | key with which a repeated request gets the first response |
//! | sealed value | text encrypted for the database (AES-256-GCM) |
//! | master key, log key | key that seals values; key that signs the head of the log |
//! | sandbox provider | simulated payment or KBA provider for development |

#![allow(missing_docs, reason = "plain records; each type says what it is")]

pub mod at_rest;
pub mod brand;
pub mod bulk;
pub mod cell;
pub mod change;
pub mod checkpoint;
pub mod clock;
pub mod collateral;
pub mod component;
pub mod component_change;
pub mod component_state;
pub mod contract_dates;
pub mod control;
pub mod dates;
pub mod decision;
pub mod destruction;
pub mod disclosure;
pub mod entry;
pub mod envelope;
pub mod erasure;
pub mod event;
pub mod fact_map;
pub mod facts;
pub mod field;
pub mod funding;
pub mod hash;
pub mod hold;
pub mod id;
pub mod identity;
pub mod import;
pub mod job;
pub mod jurisdiction;
pub mod ledger;
pub mod locale;
pub mod log_witness;
pub mod merkle;
pub mod open_link;
pub mod organization;
pub mod package;
pub mod party_name;
pub mod passkey;
pub mod prefill;
pub mod priority;
pub mod publisher;
pub mod question;
pub mod release;
pub mod reminders;
pub mod request_log;
pub mod retention;
pub mod signature;
pub mod similarity;
pub mod statement;
pub mod succession;
pub mod tape;
pub mod template;
pub mod test_mode;
pub mod token;
pub mod toml_document;
pub mod transfer;
pub mod user;
pub mod warning;
pub mod webhook;
