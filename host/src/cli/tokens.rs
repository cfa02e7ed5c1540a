//! `holdfast token`: web-app bearer tokens.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::CommandOutput;
use super::{Failure, duration, org_id, organizations, role, roles_help};
use crate::start;
use holdfast_base::config::Config;
use holdfast_base::keys::BEARER_TOKENS;
use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_domain::id::{OrgId, TokenId};
use holdfast_domain::organization::Role;
use holdfast_platform::access::{self, credentials};
use holdfast_store::{Store, component_changes, components, tokens};

/// Action that records the issuing of a token in the organization's credential ledger.
const ISSUED: &str = "token.issued";

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Issue a bearer token for a web-app user.
    Issue(IssueToken),
    /// Revoke a token on all nodes. The next request with it is refused.
    Revoke {
        /// The token, or its id (tok_…) together with --org.
        token: String,
        #[arg(long, value_parser = org_id)]
        org: Option<OrgId>,
    },
    /// List the valid tokens of an organization.
    List {
        #[arg(long, value_parser = org_id)]
        org: OrgId,
    },
}

#[derive(Args)]
pub struct IssueToken {
    #[arg(long, value_parser = org_id)]
    org: OrgId,
    #[arg(long)]
    email: String,
    /// Role: owner, admin, sender, compliance, auditor, controller, developer or member (docs/roles.md).
    #[arg(long, value_parser = role, long_help = roles_help())]
    role: Role,
    /// Lifetime, for example 30m or 8h; at most `auth.max_token_ttl`.
    #[arg(long, default_value = "8h", value_parser = duration)]
    ttl: Duration,
}

pub async fn run(
    command: TokenCommand,
    config: &Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let store = start::open_store(config).await?;
    let now = Clock::ahead_by(config.clock_offset.unwrap_or_default()).now();
    match command {
        TokenCommand::Issue(request) => issue(&store, config, output, &request, now).await,
        TokenCommand::Revoke { token, org } => {
            revoke(&store, config, output, &token, org, now).await
        }
        TokenCommand::List { org } => {
            organizations::existing(&store, &org).await?;
            let listed = unended(&store, &org, now).await?;
            let lines: Vec<String> = listed.iter().map(line).collect();
            output.one(&Value::Array(listed), &lines.join("\n"));
            Ok(())
        }
    }
}

async fn issue(
    store: &Store,
    config: &Config,
    output: &CommandOutput,
    request: &IssueToken,
    now: Timestamp,
) -> Result<(), Failure> {
    organizations::existing(store, &request.org).await?;
    let (ttl, most) = (request.ttl, config.auth.max_token_ttl);
    // The token carries its end, and nothing but a revocation can shorten it later.
    if ttl > most {
        let most = most.as_secs();
        return Err(format!("a token lives for at most {most} s (auth.max_token_ttl)").into());
    }

    let keys = start::keys(config)?.generations(BEARER_TOKENS);
    let issued = access::issue_bearer(&keys, &request.org, &request.email, request.role, ttl, now)?;
    let details = json!({
        "token_id": issued.id,
        "email": request.email,
        "role": request.role,
        "expires_at": issued.expires_at,
    });

    // Recorded before the token is printed: no token without an entry can be in use.
    let mut tx = store.begin().await?;
    credentials::record(&mut tx, Some(&request.org), ISSUED, details, now).await?;
    tx.commit().await?;
    let view = json!({
        "token": issued.text,
        "token_id": issued.id,
        "expires_at": issued.expires_at,
    });

    let note = format!("{} expires at {}", issued.id, issued.expires_at);
    output.with_note(&view, &issued.text, &note);
    Ok(())
}

async fn revoke(
    store: &Store,
    config: &Config,
    output: &CommandOutput,
    token: &str,
    org: Option<OrgId>,
    now: Timestamp,
) -> Result<(), Failure> {
    let (org, id, expires_at) = match (TokenId::parse(token), org) {
        // A revocation is kept until the token would have ended, so that end has to be known.
        (Some(id), Some(org)) => {
            let expires_at = end_of(store, &org, &id, now).await?;
            (org, id, expires_at)
        }
        (Some(_), None) => return Err("a token's id needs --org beside it".into()),
        (None, _) => {
            let keys = start::keys(config)?.generations(BEARER_TOKENS);
            access::own_token(&keys, token, now)
                .ok_or("this is no token of this installation, or one that has ended")?
        }
    };

    let mut tx = store.begin().await?;

    // A review that is being made comes before, or finds the token revoked.
    components::lock_changes(&mut tx).await?;
    component_changes::void_approvals_of_token(&mut tx, &org, &id).await?;

    // A second revocation succeeds and adds no entry, so that a script can repeat it.
    if tokens::revoke(&mut tx, &org, &id, expires_at, now).await? {
        let details = json!({ "token_id": id });
        credentials::record(&mut tx, Some(&org), "token.revoked", details, now).await?;
    }

    tx.commit().await?;
    output.one(
        &json!({ "token_id": id, "org_id": org, "revoked": true }),
        &format!("{id} is revoked"),
    );

    Ok(())
}

/// Returns the expiry of a token from the record of its issuing.
async fn end_of(
    store: &Store,
    org: &OrgId,
    id: &TokenId,
    now: Timestamp,
) -> Result<Timestamp, Failure> {
    let listed = unended(store, org, now).await?;
    let found = listed.iter().find(|token| token["token_id"] == id.as_str());
    let end = found.and_then(|token| Timestamp::parse(token["expires_at"].as_str()?));
    end.ok_or_else(|| format!("{org} has no token {id} that has not ended").into())
}

/// Returns the records of an organization's valid tokens.
async fn unended(store: &Store, org: &OrgId, now: Timestamp) -> Result<Vec<Value>, Failure> {
    let mut connection = store.read().await?;
    // Tokens are stored nowhere. The entry of the issuing is the only record of them.
    let history = credentials::history(&mut connection, Some(org)).await?;
    let mut listed = Vec::new();
    for entry in history.into_iter().filter(|entry| entry.action == ISSUED) {
        let mut token = entry.details;
        let ends = token["expires_at"].as_str().and_then(Timestamp::parse);
        let id = token["token_id"].as_str().and_then(TokenId::parse);
        if let (Some(id), true) = (id, ends > Some(now)) {
            token["issued_at"] = json!(entry.at);
            token["revoked"] = tokens::is_revoked(&mut connection, org, &id).await?.into();
            listed.push(token);
        }
    }

    Ok(listed)
}

fn line(token: &Value) -> String {
    let text = |name: &str| token[name].as_str().unwrap_or_default().to_owned();
    let state = match token["revoked"].as_bool() {
        Some(true) => "revoked",
        _ => "active",
    };
    format!(
        "{}  {state}  {}  {}  until {}",
        text("token_id"),
        text("role"),
        text("email"),
        text("expires_at")
    )
}
