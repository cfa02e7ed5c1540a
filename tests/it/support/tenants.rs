//! Organizations, their API keys and their web-app users.

use holdfast::domain::clock::Clock;
use holdfast::domain::id::{KeyId, OrgId};
use holdfast::domain::organization::{ApiKeyRecord, OrgSettings, Organization, Scope};
use holdfast::domain::token::ApiKey;
use holdfast::store::{Store, api_keys, organizations};
use serde_json::Value;

use super::TestApp;
use super::commands::{operator, operator_command, printed};

/// Requests a minute of a test's keys: no test that polls on a slow machine comes near.
///
/// Tests of the limit itself create a key with [`TestApp::key_with_limit`].
const AMPLE: i64 = 1_000_000;

impl TestApp {
    /// Creates another organization and returns its API key.
    pub async fn other_organization(&self) -> String {
        new_organization(&self.store, OrgSettings::default(), Scope::ALL)
            .await
            .1
    }

    /// Creates an organization that can be a party of records: its id, and a key with all scopes.
    pub async fn party(&self) -> (OrgId, String) {
        let (org, _) = new_organization(&self.store, OrgSettings::default(), &[]).await;
        let key = new_key(&self.store, &org, Scope::ALL, AMPLE).await;
        (org, key)
    }

    /// Creates another organization and returns its API key and the token of a web-app admin.
    pub async fn other_tenant(&self) -> (String, String) {
        let (org, _) = new_organization(&self.store, OrgSettings::default(), Scope::ALL).await;
        let key = new_key(&self.store, &org, Scope::ALL, AMPLE).await;
        (key, self.admin_of(org.as_str()))
    }

    /// Runs the operator's tool on the service's database, and returns its output.
    pub fn operator(&self, arguments: &[&str]) -> Value {
        let mut command = operator_command(self.data.path(), arguments);
        if let Some(url) = &self.database_url {
            command.env("HOLDFAST_DATABASE_URL", url);
        }
        printed(command.output().unwrap())
    }

    /// Creates another organization and returns the token of a web-app admin.
    pub fn other_admin(&self) -> String {
        let mut create = operator_command(self.root.path(), &["org", "create", "--name", "Oak"]);
        if let Some(url) = &self.database_url {
            create.env("HOLDFAST_DATABASE_URL", url);
        }
        let org = printed(create.output().unwrap());
        self.admin_of(org["org_id"].as_str().unwrap())
    }

    /// Issues a token for a new web-app admin of the organization.
    pub fn admin(&self) -> String {
        self.admin_of(self.org.as_str())
    }

    fn admin_of(&self, org: &str) -> String {
        self.token_of(org, "admin")
    }

    /// Returns the token of one admin, issued on first use.
    pub fn web_admin(&self) -> &str {
        self.admin.get_or_init(|| self.admin())
    }

    /// Issues a web-app token for a role.
    pub fn token(&self, role: &str) -> String {
        self.token_of(self.org.as_str(), role)
    }

    /// Issues a web-app token for a person.
    pub fn person(&self, email: &str, role: &str) -> String {
        self.token_for(self.org.as_str(), email, role)
    }

    /// Issues a web-app token for a person of another organization.
    pub fn token_at(&self, org: &OrgId, email: &str, role: &str) -> String {
        self.token_for(org.as_str(), email, role)
    }

    fn token_of(&self, org: &str, role: &str) -> String {
        self.token_for(org, "oak@oak.example", role)
    }

    fn token_for(&self, org: &str, email: &str, role: &str) -> String {
        let arguments = [
            "token", "issue", "--org", org, "--email", email, "--role", role,
        ];
        let mut command = operator_command(self.root.path(), &arguments);

        // The token has to be valid by the service's clock, which may run ahead.
        let offset = format!("{}ms", self.ahead.as_millis());
        command.env("HOLDFAST_CLOCK_OFFSET", offset);
        if let Some(url) = &self.database_url {
            command.env("HOLDFAST_DATABASE_URL", url);
        }

        let issued = printed(command.output().unwrap());
        issued["token"].as_str().unwrap().to_owned()
    }

    /// Changes settings of the organization with the operator's tool.
    pub fn set_organization(&self, settings: &[&str]) {
        let arguments = [&["org", "set", self.org.as_str()], settings].concat();
        operator(self.data.path(), &arguments);
    }

    /// Creates a key of the same organization with only these scopes.
    pub async fn key_with(&self, scopes: &[Scope]) -> String {
        self.key_with_limit(scopes, AMPLE).await
    }

    /// Creates a key with these scopes and a limit of `rpm` requests a minute.
    pub async fn key_with_limit(&self, scopes: &[Scope], rpm: i64) -> String {
        new_key(&self.store, &self.org, scopes, rpm).await
    }
}

pub(super) async fn new_organization(
    store: &Store,
    settings: OrgSettings,
    scopes: &[Scope],
) -> (OrgId, String) {
    let organization = Organization {
        id: OrgId::new(),
        name: "Maple Street Motors".into(),
        settings,
        created_at: Clock::default().now(),
    };
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &organization).await.unwrap();

    tx.commit().await.unwrap();
    let key = new_key(store, &organization.id, scopes, AMPLE).await;
    (organization.id, key)
}

async fn new_key(store: &Store, org: &OrgId, scopes: &[Scope], rpm: i64) -> String {
    let key = ApiKey::generate(org);
    let record = ApiKeyRecord {
        id: KeyId::new(),
        org: org.clone(),
        name: None,
        scopes: scopes.to_vec(),
        rate_limit_rpm: rpm,
        owner_email: Some("vault@maple.example".into()),
        active: true,
        last_used_at: None,
        revision: 0,
    };

    let mut tx = store.begin().await.unwrap();
    api_keys::insert(&mut tx, &record, &key.hash(), Clock::default().now())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    key.reveal().to_owned()
}

/// Returns the organization that a token names.
pub fn org_of(token: &str) -> String {
    use base64::Engine as _;
    let claims = token.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["org_id"].as_str().unwrap().to_owned()
}
