//! Users who see a template: all of the organization, or those of some roles and addresses. Owners, admins and API keys
//! see every template.

use holdfast_domain::template::{Template, TemplateSharing};
use holdfast_platform::{Caller, ServiceError};

/// Returns a sharing with its addresses in lower case and without repetitions.
///
/// # Errors
/// [`ServiceError::Invalid`] if the caller would not see the template any more.
pub(super) fn checked(
    caller: &Caller,
    wanted: &TemplateSharing,
) -> Result<TemplateSharing, ServiceError> {
    let mut sharing = TemplateSharing::default();
    for role in &wanted.roles {
        if !sharing.roles.contains(role) {
            sharing.roles.push(*role);
        }
    }
    for user in &wanted.users {
        let user = user.trim().to_lowercase();
        if !sharing.users.contains(&user) {
            sharing.users.push(user);
        }
    }

    let reader = caller.template_reader();
    if reader.is_none_or(|reader| sharing.includes(&reader)) {
        return Ok(sharing);
    }
    Err(ServiceError::invalid(
        "excludes_caller",
        &["shared_with"],
        "your own role or address among them",
        "",
        "You would not see the template any more: add your role or your address",
    ))
}

/// Returns who sees a template that is made of others: those who see all of them, and at least its author.
pub(super) fn of_sources(caller: &Caller, sources: &[&Template]) -> TemplateSharing {
    let shared = sources.iter().map(|source| &source.shared_with);
    let mut limited = shared.filter(|sharing| !sharing.is_with_all());
    let Some(first) = limited.next() else {
        return TemplateSharing::default();
    };
    if limited.all(|other| other == first) {
        return first.clone();
    }

    // Sharings that differ may have no one in common but the author.
    TemplateSharing {
        roles: Vec::new(),
        users: vec![caller.creator().to_lowercase()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::clock::Timestamp;
    use holdfast_domain::id::OrgId;
    use holdfast_domain::organization::Role;

    fn caller(role: Option<Role>) -> Caller {
        Caller {
            email: Some("ana@oak.example".into()),
            role,
            ..Caller::system(OrgId::new())
        }
    }

    fn with(roles: &[Role], users: &[&str]) -> TemplateSharing {
        TemplateSharing {
            roles: roles.to_vec(),
            users: users.iter().map(|user| (*user).to_owned()).collect(),
        }
    }

    #[test]
    fn addresses_are_kept_in_lower_case_and_once() {
        let wanted = with(
            &[Role::Sender, Role::Sender],
            &["Lee@Oak.example", " lee@oak.example"],
        );
        let kept = checked(&caller(None), &wanted).unwrap();
        assert_eq!(kept, with(&[Role::Sender], &["lee@oak.example"]));
    }

    #[test]
    fn a_user_cannot_lock_themselves_out() {
        let wanted = with(&[Role::Compliance], &[]);
        assert!(checked(&caller(Some(Role::Sender)), &wanted).is_err());
        assert!(checked(&caller(Some(Role::Admin)), &wanted).is_ok());
        let own = with(&[Role::Compliance], &["ANA@oak.example"]);
        assert!(checked(&caller(Some(Role::Sender)), &own).is_ok());
        assert!(checked(&caller(Some(Role::Sender)), &TemplateSharing::default()).is_ok());
    }

    #[test]
    fn a_template_of_others_is_seen_by_no_further_users() {
        let template = |shared_with: TemplateSharing| Template {
            shared_with,
            ..Template::new(
                OrgId::new(),
                "Lease".into(),
                "embedded".into(),
                Timestamp::from_millis(0),
            )
        };
        let open = template(TemplateSharing::default());
        let senders = template(with(&[Role::Sender], &[]));
        let auditors = template(with(&[Role::Auditor], &[]));
        let by = caller(Some(Role::Sender));
        let of = |sources: &[&Template]| of_sources(&by, sources);
        assert_eq!(of(&[&open, &open]), TemplateSharing::default());
        assert_eq!(of(&[&open, &senders, &senders]), with(&[Role::Sender], &[]));
        assert_eq!(of(&[&senders, &auditors]), with(&[], &["ana@oak.example"]));
    }
}
