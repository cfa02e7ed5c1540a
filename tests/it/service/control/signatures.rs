//! Acts that a party signs with a key of its own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use holdfast::config::Config;
use holdfast::domain::clock::Timestamp;
use holdfast::domain::organization::OrgSettings;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::transfers::wait;
use super::{Party, code, designate, vault_out};
use crate::support::{
    TestApp, TestResponse, form, operator_output, postgres, release_form, statement_output,
    verifier_output,
};

/// A party's own key.
enum Signer {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

impl Signer {
    fn ed25519() -> Self {
        let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap())
    }

    fn p256() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random).unwrap())
    }

    fn public_key(&self) -> Value {
        match self {
            Self::Ed25519(pair) => json!({
                "kty": "OKP", "crv": "Ed25519", "x": BASE64URL.encode(pair.public_key()),
            }),
            Self::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (&point[1..33], &point[33..]);
                json!({
                    "kty": "EC", "crv": "P-256",
                    "x": BASE64URL.encode(x), "y": BASE64URL.encode(y),
                })
            }
        }
    }

    /// RFC 7638.
    fn thumbprint(&self) -> String {
        BASE64URL.encode(Sha256::digest(canonical(&self.public_key())))
    }

    fn sign(&self, statement: &Value) -> Value {
        let algorithm = match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
        };
        let header = json!({ "alg": algorithm, "kid": self.thumbprint() });
        let header = BASE64URL.encode(header.to_string());
        let signed = format!("{header}.{}", BASE64URL.encode(canonical(statement)));
        let signature = match self {
            Self::Ed25519(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
            Self::P256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), signed.as_bytes());
                signature.unwrap().as_ref().to_vec()
            }
        };
        let signature = format!("{header}..{}", BASE64URL.encode(signature));

        json!({ "statement": statement, "signature": signature })
    }
}

/// RFC 8785, for texts of ASCII and whole numbers.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let member = |name: &&String| format!("{}:{}", json!(name), canonical(&members[*name]));
            let members: Vec<String> = names.iter().map(member).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(canonical).collect();
            format!("[{}]", values.join(","))
        }
        other => other.to_string(),
    }
}

/// Returns the statement that a refused request asks for.
fn draft(answer: &TestResponse) -> Value {
    assert_eq!(code(answer, 409), "control_signature_required");
    answer.json()["details"]["statement"].clone()
}

impl Party {
    async fn post(&self, app: &TestApp, path: &str, body: &Value) -> TestResponse {
        app.post_as(&self.key, path, body.clone()).await
    }

    /// Sends a request, signs the statement that it asks for, and sends it again.
    async fn signed(
        &self,
        app: &TestApp,
        signer: &Signer,
        path: &str,
        body: Value,
    ) -> TestResponse {
        let asked = self.post(app, path, &body).await;
        let mut body = body;
        body["signed"] = signer.sign(&draft(&asked));
        self.post(app, path, &body).await
    }

    /// Registers the first key of the party.
    async fn register(&self, app: &TestApp, signer: &Signer) -> Value {
        registered(app, &self.key, signer).await
    }
}

async fn registered(app: &TestApp, credential: &str, signer: &Signer) -> Value {
    let mut body = json!({ "name": "Desk", "public_key": signer.public_key() });
    let asked = app.post_as(credential, KEYS, body.clone()).await;
    body["proof"] = signer.sign(&draft(&asked));
    app.post_as(credential, KEYS, body).await.data(201)
}

/// Registers a new key for the organization of an API key.
pub async fn register(app: &TestApp, credential: &str) -> Value {
    registered(app, credential, &Signer::ed25519()).await
}

const KEYS: &str = "/partner/control/keys";
const TRANSFERS: &str = "/partner/control/transfers";

fn record_path(id: &str, act: &str) -> String {
    format!("/partner/control/records/{id}/{act}")
}

async fn a_sale_is_signed_by_both_parties(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let (lender, funder) = (Party::new(&app).await, Party::new(&app).await);
    let (lenders, funders) = (Signer::ed25519(), Signer::p256());
    let key = lender.register(&app, &lenders).await;
    assert_eq!(key["thumbprint"], lenders.thumbprint());

    funder.register(&app, &funders).await;

    let mut pool = Vec::new();
    for _ in 0..2 {
        let id = app.vaulted_envelope().await;
        designate(&app, &id, &lender.org).await.data(200);
        let accept = record_path(&id, "accept");
        let accepted = lender.signed(&app, &lenders, &accept, json!({})).await;
        assert_eq!(accepted.data(200)["stage"], "controlled");
        pool.push(id);
    }

    let entry = app.entry(&pool[0], "control.accepted").await;
    let statement = &entry["signed"]["statement"];
    assert_eq!(entry["signed"]["public_key"], lenders.public_key());
    assert_eq!(statement["subject"], pool[0]);
    assert_eq!(statement["epoch"], 1);

    let record = lender.record(&app, &pool[0]).await.data(200);
    assert_eq!(
        statement["content"]["document_hash"],
        record["document_hash"]
    );

    let person = json!({
        "envelope_id": pool[0], "name": "Robin Park", "email": "robin@example.com",
    });
    let views = "/partner/control/views";
    let view = lender.signed(&app, &lenders, views, person).await.data(201);
    let end = format!("{views}/{}/revoke", view["view_id"].as_str().unwrap());
    let ended = lender.signed(&app, &lenders, &end, json!({})).await;
    ended.data(200);

    let path = format!("/partner/envelopes/{}/control-statement", pool[0]);
    let demand = json!({ "requested_by": "Jordan Lee" });
    let stated = lender.signed(&app, &lenders, &path, demand).await.data(201);
    let url = stated["verification_url"].as_str().unwrap();
    let data = form::open(&app, &format!("{url}/statement.json")).await;
    let statement: Value = serde_json::from_slice(&data.bytes).unwrap();
    let verified = |statement: &Value, key: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), statement.to_string()).unwrap();
        let output = statement_output(file.path().to_str().unwrap(), &["--key", key]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };

    let log_key = app.ledger_key().await;
    let report = verified(&statement, &log_key);
    assert_eq!(report["verdict"], "VALID", "{report:#}");
    assert_eq!(report["signed_with"], lenders.thumbprint());
    assert_eq!(
        statement["statement"]["controller"]["signs_with"],
        lenders.thumbprint()
    );

    let mut unsigned = statement.clone();
    unsigned["issued"]["details"]["signed"] = Value::Null;
    assert_eq!(verified(&unsigned, &log_key)["verdict"], "NOT VALID");

    let offer = json!({ "buyer": funder.org, "records": pool, "price_reference": "Pool 7" });
    let offered = lender.signed(&app, &lenders, TRANSFERS, offer).await;
    let transfer = offered.data(202)["transfer_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let offered = wait(&app, &lender, &transfer, "proposed").await;

    let step = |act: &str| format!("{TRANSFERS}/{transfer}/{act}");
    let asked = draft(&funder.post(&app, &step("accept"), &json!({})).await);
    assert_eq!(asked["content"]["records"], offered["offer"]);

    let accepted = funder
        .signed(&app, &funders, &step("accept"), json!({}))
        .await;
    accepted.data(202);
    let accepted = wait(&app, &lender, &transfer, "accepted").await;
    assert_eq!(accepted["receipt"]["root"], offered["offer"]["root"]);

    let confirmed = lender
        .signed(&app, &lenders, &step("confirm"), json!({}))
        .await;
    confirmed.data(202);
    wait(&app, &funder, &transfer, "confirmed").await;

    // The originator asks, the funder signs its consent to exactly this release.
    let id = &pool[0];
    let release = super::asked(&vault_out(&app, id, release_form()).await);
    let consent = format!("/partner/control/releases/{release}/consent");
    let consented = funder.signed(&app, &funders, &consent, json!({})).await;
    consented.data(200);
    app.wait_for(id, "vaulted_out").await;

    let (bundle, key) = (app.released_bundle(id).await, app.ledger_key().await);
    let verified = verifier_output(bundle.path().to_str().unwrap(), &["--key", &key]);
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(report["verdict"], "VALID", "{report:#}");

    let signers = report["signers"].as_array().unwrap();
    let signed_with = |party: &Party, signer: &Signer| {
        signers.contains(&json!({
            "organization_id": party.org, "thumbprints": [signer.thumbprint()],
        }))
    };
    assert!(signed_with(&lender, &lenders) && signed_with(&funder, &funders));

    app.events_fit_their_schemas(10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_is_signed_by_both_parties_on_sqlite() {
    a_sale_is_signed_by_both_parties(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_is_signed_by_both_parties_on_postgresql() {
    let database = postgres::new_database().await;
    a_sale_is_signed_by_both_parties(|config| config.database_url = Some(database)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_does_not_fit_is_refused_and_changes_nothing() {
    let app = TestApp::start().await;
    let (id, lender) = (app.vaulted_envelope().await, Party::new(&app).await);
    let (signer, other) = (Signer::ed25519(), Signer::ed25519());
    let stranger = Party::new(&app).await;
    designate(&app, &id, &lender.org).await.data(200);
    lender.register(&app, &signer).await;
    stranger.register(&app, &other).await;

    let accept = record_path(&id, "accept");
    let unsigned = lender.post(&app, &accept, &json!({})).await;
    let good = draft(&unsigned);
    assert_eq!(unsigned.json()["details"]["member"], "signed");

    let with = |member: &str, value: Value| {
        let mut changed = good.clone();
        changed[member] = value;
        changed
    };
    let now = Timestamp::parse(good["issued_at"].as_str().unwrap()).unwrap();
    let hour = |hours: i64| json!(Timestamp::from_millis(now.as_millis() + hours * 3_600_000));
    let mut longer = with("expires_at", hour(30));
    longer["issued_at"] = hour(0);

    let mut past = with("expires_at", hour(-1));
    past["issued_at"] = hour(-2);
    let mut ahead = with("expires_at", hour(3));
    ahead["issued_at"] = hour(2);
    let mut elsewhere = good.clone();
    elsewhere["installation"]["url"] = json!("https://restored.example");
    let tampered = {
        let mut signed = signer.sign(&good);
        signed["statement"]["nonce"] = json!("another-nonce-than-the-signed");
        signed
    };
    let refused = [
        (
            signer.sign(&with("act", json!("control.declined"))),
            422,
            "statement_mismatch",
        ),
        (
            signer.sign(&with("party", json!(stranger.org))),
            422,
            "statement_mismatch",
        ),
        (
            signer.sign(&with("subject", json!(app.vaulted_envelope().await))),
            422,
            "statement_mismatch",
        ),
        (
            signer.sign(&with("content", json!({ "document_hash": "00" }))),
            422,
            "statement_mismatch",
        ),
        // Made for a restored copy, or without saying where it counts.
        (signer.sign(&elsewhere), 422, "statement_mismatch"),
        (
            signer.sign(&with("installation", Value::Null)),
            422,
            "statement_mismatch",
        ),
        (
            signer.sign(&with("epoch", json!(0))),
            409,
            "statement_outdated",
        ),
        (
            signer.sign(&with("epoch", Value::Null)),
            409,
            "statement_outdated",
        ),
        (signer.sign(&past), 409, "statement_expired"),
        (signer.sign(&ahead), 409, "statement_expired"),
        (signer.sign(&longer), 409, "statement_expired"),
        (tampered, 422, "invalid_signature"),
        (other.sign(&good), 422, "invalid_signature"),
        (
            json!({ "statement": good, "signature": "no..jws" }),
            422,
            "invalid_signature",
        ),
    ];
    for (signed, status, expected) in refused {
        let answer = lender
            .post(&app, &accept, &json!({ "signed": signed }))
            .await;
        assert_eq!(code(&answer, status), expected, "{signed}");

        let record = lender.record(&app, &id).await.data(200);
        assert_eq!(
            (&record["stage"], &record["epoch"]),
            (&json!("designated"), &json!(1))
        );
    }

    // A member that is there twice: one reader would see the signed value, another one the other.
    let twice = json!({ "signed": signer.sign(&good) }).to_string();
    let twice = twice.replacen("\"act\":", "\"act\":\"control.declined\",\"act\":", 1);
    let answer = app
        .post_text(&lender.key, &accept, "application/json", twice)
        .await;
    assert!(answer.error(400).contains("act is there twice"));

    let short = signer.sign(&with("nonce", json!("short")));
    let answer = lender
        .post(&app, &accept, &json!({ "signed": short }))
        .await;
    answer.error(422);

    // Of refused statements none was used up.
    let signed = signer.sign(&good);
    let accepted = lender
        .post(&app, &accept, &json!({ "signed": signed }))
        .await;
    assert_eq!(accepted.data(200)["stage"], "controlled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_used_once() {
    let app = TestApp::start().await;
    let (lender, buyer, signer) = (
        Party::new(&app).await,
        Party::new(&app).await,
        Signer::p256(),
    );
    let id = app.vaulted_envelope().await;
    designate(&app, &id, &lender.org).await.data(200);

    lender.act(&app, &id, "accept", json!({})).await.data(200);
    lender.register(&app, &signer).await;
    let mut offer = json!({ "buyer": buyer.org, "records": [id] });
    let asked = draft(&lender.post(&app, TRANSFERS, &offer).await);
    offer["signed"] = signer.sign(&asked);
    let transfer = lender.post(&app, TRANSFERS, &offer).await.data(202);
    let transfer = transfer["transfer_id"].as_str().unwrap().to_owned();
    wait(&app, &lender, &transfer, "proposed").await;

    let cancel = format!("{TRANSFERS}/{transfer}/cancel");
    lender
        .signed(&app, &signer, &cancel, json!({}))
        .await
        .data(202);
    wait(&app, &lender, &transfer, "cancelled").await;
    let again = lender.post(&app, TRANSFERS, &offer).await;
    assert_eq!(code(&again, 409), "statement_replayed");

    // An act that was signed for an earlier state of the record does not return either.
    let release = super::asked(&vault_out(&app, &id, release_form()).await);
    let refuse = format!("/partner/control/releases/{release}/refuse");
    let mut body = json!({ "reason": "Not agreed" });
    body["signed"] = signer.sign(&draft(&lender.post(&app, &refuse, &body).await));
    lender.post(&app, &refuse, &body).await.data(200);
    let release = super::asked(&vault_out(&app, &id, release_form()).await);
    let refuse = format!("/partner/control/releases/{release}/refuse");
    let answer = lender.post(&app, &refuse, &body).await;
    assert_eq!(code(&answer, 422), "statement_mismatch");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_a_key_signs_its_own_release() {
    let (app, id, lender) = super::controlled().await;
    let signer = Signer::ed25519();
    lender.register(&app, &signer).await;
    let path = record_path(&id, "release");
    let asked = draft(&lender.post(&app, &path, &release_form()).await);
    let mut form = release_form();
    form["signed"] = signer.sign(&asked);

    form["recipient_email"] = json!("someone@else.example");
    let other = lender.post(&app, &path, &form).await;
    assert_eq!(code(&other, 422), "statement_mismatch");
    assert!(app.objects("archive").is_empty());

    form["recipient_email"] = release_form()["recipient_email"].clone();
    lender.post(&app, &path, &form).await.data(200);
    let entry = app.entry(&id, "control.released").await;
    assert_eq!(
        entry["signed"]["statement"]["content"]["form"],
        release_form()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_added_and_revoked_by_signatures_of_their_party() {
    let app = TestApp::start().await;
    let (lender, other) = (Party::new(&app).await, Party::new(&app).await);
    let (first, second, third) = (Signer::ed25519(), Signer::p256(), Signer::ed25519());

    // Only the owner of a key registers it.
    let mut body = json!({ "public_key": first.public_key() });
    let statement = draft(&lender.post(&app, KEYS, &body).await);
    body["proof"] = second.sign(&statement);
    assert_eq!(
        code(&lender.post(&app, KEYS, &body).await, 422),
        "invalid_signature"
    );

    for wrong in [
        json!({ "kty": "RSA", "crv": "P-256", "x": "AQAB" }),
        json!({ "kty": "OKP", "crv": "Ed25519", "x": "AQAB" }),
    ] {
        let body = json!({ "public_key": wrong, "proof": first.sign(&statement) });
        lender.post(&app, KEYS, &body).await.error(422);
    }

    let secret = json!({ "kty": "OKP", "crv": "Ed25519", "x": "AQAB", "d": "secret-part" });
    let refused = lender
        .post(&app, KEYS, &json!({ "public_key": secret }))
        .await;
    assert!(!refused.text().contains("secret-part"));

    refused.error(422);
    body["proof"] = first.sign(&statement);
    let key = lender.post(&app, KEYS, &body).await.data(201);
    let again = first.sign(&draft(
        &lender
            .post(&app, KEYS, &json!({ "public_key": first.public_key() }))
            .await,
    ));
    let mut again = json!({ "public_key": first.public_key(), "proof": again });
    again["signed"] = first.sign(&draft(&lender.post(&app, KEYS, &again).await));

    lender.post(&app, KEYS, &again).await.error(422);

    // A further key needs the signature of one that is registered.
    let mut body = json!({ "public_key": second.public_key() });
    body["proof"] = second.sign(&draft(&lender.post(&app, KEYS, &body).await));
    let asked = lender.post(&app, KEYS, &body).await;
    assert_eq!(asked.json()["details"]["member"], "signed");

    body["signed"] = second.sign(&draft(&asked));
    assert_eq!(
        code(&lender.post(&app, KEYS, &body).await, 422),
        "invalid_signature"
    );

    body["signed"] = first.sign(&draft(&asked));
    lender.post(&app, KEYS, &body).await.data(201);

    // Keys are those of one organization.
    let revoke = format!("{KEYS}/{}/revoke", key["key_id"].as_str().unwrap());
    other.post(&app, &revoke, &json!({})).await.error(404);
    let listed = app.get_as(&other.key, KEYS).await;
    assert_eq!(listed.data(200), json!([]));

    let statement = draft(&lender.post(&app, &revoke, &json!({})).await);
    let body = json!({ "signed": second.sign(&statement) });
    let revoked = lender.post(&app, &revoke, &body).await.data(200);
    assert_ne!(revoked["revoked_at"], Value::Null);

    let answer = lender.post(&app, &revoke, &json!({})).await;
    assert_eq!(code(&answer, 409), "signing_key_revoked");

    let id = app.vaulted_envelope().await;
    designate(&app, &id, &lender.org).await.data(200);
    let accept = record_path(&id, "accept");
    let refused = lender.signed(&app, &first, &accept, json!({})).await;
    assert_eq!(code(&refused, 409), "signing_key_revoked");

    // A party that lost its keys turns to the operator, and registers another.
    let arguments = [
        "org",
        "revoke-party-key",
        lender.org.as_str(),
        &second.thumbprint(),
    ];
    let revoked = operator_output(app.data.path(), &arguments);
    assert!(revoked.status.success(), "{revoked:?}");

    let unsigned = lender.post(&app, &accept, &json!({})).await;
    assert_eq!(code(&unsigned, 409), "control_signature_required");

    lender.register(&app, &third).await;
    lender
        .signed(&app, &third, &accept, json!({}))
        .await
        .data(200);

    let audit = operator_output(app.data.path(), &["org", "audit", lender.org.as_str()]);
    let audit: Value = serde_json::from_slice(&audit.stdout).unwrap();
    let actions: Vec<&str> = audit
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .filter(|action| action.starts_with("control.key."))
        .collect();
    assert_eq!(
        actions,
        [
            "control.key.registered",
            "control.key.registered",
            "control.key.revoked",
            "control.key.revoked",
            "control.key.registered",
        ]
    );
}
