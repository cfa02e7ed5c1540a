//! `holdfast user`: users of an organization, who sign in with a link.

use clap::{Args, Subcommand};
use serde_json::json;

use super::output::CommandOutput;
use super::{Failure, org_id, organizations, role, roles_help};
use crate::start;
use holdfast_base::config::Config;
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::Role;
use holdfast_platform::Caller;
use holdfast_platform::access::sessions;
use holdfast_platform::access::users::{self, ChangeUser, NewUser, UserManager, UserView};

#[derive(Subcommand)]
pub enum UserCommand {
    /// Invite a user, for example the first owner. Prints the link to sign in, which is also mailed.
    Invite {
        #[arg(long, value_parser = org_id)]
        org: OrgId,
        #[arg(long)]
        email: String,
        /// Role: owner, admin, sender, compliance, auditor, controller, developer or member (docs/roles.md).
        #[arg(long, value_parser = role, long_help = roles_help())]
        role: Role,
    },
    /// Print and mail a new link to sign in.
    Link(NamedUser),
    /// Give a user another role.
    Role {
        #[command(flatten)]
        named: NamedUser,
        #[arg(value_parser = role, help = "New role", long_help = roles_help())]
        role: Role,
    },
    /// End the access of a user, with all sessions and links.
    End(NamedUser),
    /// List the users of an organization.
    List {
        #[arg(long, value_parser = org_id)]
        org: OrgId,
    },
}

#[derive(Args)]
pub struct NamedUser {
    /// Id of the user (usr_…).
    user: String,
    #[arg(long, value_parser = org_id)]
    org: OrgId,
}

/// Runs a command.
pub async fn run(
    command: UserCommand,
    config: Config,
    output: &CommandOutput,
) -> Result<(), Failure> {
    let app = start::start(config).await?;
    let org = match &command {
        UserCommand::Invite { org, .. } | UserCommand::List { org } => org,
        UserCommand::Link(named) | UserCommand::Role { named, .. } | UserCommand::End(named) => {
            &named.org
        }
    };
    // A mistyped id must be an error here, not an organization without users.
    organizations::existing(&app.store, org).await?;

    let caller = Caller::named(org.clone(), "operator");
    // The operator of the installation has no role in it. None permits every role,
    // so the first owner can be invited.
    let manager = UserManager {
        caller: &caller,
        role: None,
    };

    let with_link = |user: &UserView, url: &str| {
        let mut view = json!(user);
        view["url"] = json!(url);
        output.with_note(
            &view,
            url,
            &format!("{} signs in with this link once", user.email),
        );
    };

    match command {
        UserCommand::Invite { email, role, .. } => {
            let (user, link) = users::invite(&app, &manager, NewUser { email, role }).await?;
            with_link(&user, &sessions::url(&app, &link)?);
        }
        UserCommand::Link(named) => {
            let (user, link) = users::invite_again(&app, &manager, &named.user).await?;
            with_link(&user, &sessions::url(&app, &link)?);
        }
        UserCommand::Role { named, role } => {
            let user = users::change(&app, &manager, &named.user, ChangeUser { role }).await?;
            output.one(&json!(user), &line(&user));
        }
        UserCommand::End(named) => {
            let user = users::end(&app, &manager, &named.user).await?;
            output.one(&json!(user), &line(&user));
        }
        UserCommand::List { org } => {
            let found = users::list(&app, &org).await?;
            let lines: Vec<String> = found.iter().map(line).collect();
            output.one(&json!(found), &lines.join("\n"));
        }
    }

    Ok(())
}

fn line(user: &UserView) -> String {
    format!(
        "{}  {:<10} {:<8} {}",
        user.user_id, user.role, user.status, user.email
    )
}
