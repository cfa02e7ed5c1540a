//! Standing of envelopes: the next actor, the begin of the wait, and troubles.

use std::collections::BTreeMap;

use serde_json::Value;

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{EnvelopeStatus, PaymentStatus, Signer};
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::identity::KbaStatus;
use holdfast_platform::signers::in_turn;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::glances::{self, EnvelopeGlance};
use holdfast_store::search::{self, TabCounts};

/// Member of the partner's own metadata with the amount of a contract.
const AMOUNT: &str = "amount";
/// Member with the currency of the amount.
const CURRENCY: &str = "currency";

/// Who has to act on an envelope.
pub enum NextActor {
    /// The organization's own people.
    Sender,
    /// Signers who can sign now.
    Signers(Vec<Signer>),
    /// This service.
    Service,
    /// No actor: the envelope is done.
    Nobody,
}

/// Reason for which an envelope does not go on.
pub enum Trouble {
    /// A mail or text message to this signer failed for good, for this reason.
    Unreached { name: String, reason: String },
    /// This signer did not prove their identity.
    Unidentified { name: String },
    /// The vault-in stopped with an error.
    VaultingStopped,
    /// The payment is missing after the signatures.
    Unpaid,
}

/// Where an envelope stands.
pub struct EnvelopeStanding {
    pub glance: EnvelopeGlance,
    pub next: NextActor,
    /// Time since which the next actor has been waited for, or at which the envelope was done.
    pub since: Timestamp,
    pub trouble: Option<Trouble>,
    /// Amount of the contract, as the partner wrote it.
    pub amount: Option<String>,
}

/// Returns where envelopes stand. Ids of other organizations are left out.
pub async fn of_envelopes(
    core: &Core,
    caller: &Caller,
    ids: &[&EnvelopeId],
) -> Result<BTreeMap<EnvelopeId, EnvelopeStanding>, ServiceError> {
    let mut connection = core.store.read().await?;
    let glances = glances::of_envelopes(&mut connection, &caller.org, ids).await?;
    let standings = glances.into_iter().map(|(id, glance)| (id, judge(glance)));
    Ok(standings.collect())
}

/// Returns the numbers of the caller's envelopes by tab.
pub async fn tab_counts(core: &Core, caller: &Caller) -> Result<TabCounts, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(search::tab_counts(&mut connection, core.store.dialect(), &caller.org).await?)
}

fn judge(glance: EnvelopeGlance) -> EnvelopeStanding {
    let trouble = trouble(&glance);
    let (next, since) = next(&glance);
    EnvelopeStanding {
        amount: amount(&glance),
        next,
        since,
        trouble,
        glance,
    }
}

fn next(glance: &EnvelopeGlance) -> (NextActor, Timestamp) {
    match glance.status {
        EnvelopeStatus::Pending | EnvelopeStatus::Uploaded => match glance.send_at {
            Some(_) => (NextActor::Service, glance.updated_at),
            None => (NextActor::Sender, glance.created_at),
        },
        EnvelopeStatus::Preparing => (NextActor::Service, glance.created_at),
        EnvelopeStatus::Sent | EnvelopeStatus::Viewed => {
            // A signer who asks waits for the answer, and may sign before it comes.
            if let Some(asked_at) = glance.asked_at {
                return (NextActor::Sender, asked_at);
            }

            let turn = in_turn(glance.preserve_signing_order, &glance.signers);
            let turn: Vec<Signer> = turn.cloned().collect();
            let since = turn_since(glance, &turn);
            // All have signed, and the provider has not told it yet.
            if turn.is_empty() {
                return (NextActor::Service, since);
            }
            (NextActor::Signers(turn), since)
        }
        EnvelopeStatus::Completed => {
            let since = glance.stopped_at.or(glance.signed_at);
            (NextActor::Sender, since.unwrap_or(glance.updated_at))
        }
        EnvelopeStatus::Declined | EnvelopeStatus::Expired => {
            (NextActor::Sender, glance.updated_at)
        }
        EnvelopeStatus::Vaulted | EnvelopeStatus::VaultedOut | EnvelopeStatus::Voided => {
            (NextActor::Nobody, glance.updated_at)
        }
    }
}

/// Returns the time at which the turn of these signers began: the sending, or the last act of the turns before.
fn turn_since(glance: &EnvelopeGlance, turn: &[Signer]) -> Timestamp {
    let sent = glance.sent_at.unwrap_or(glance.created_at);
    let Some(first) = turn.iter().map(|signer| signer.turn).min() else {
        return sent;
    };
    if !glance.preserve_signing_order {
        return sent;
    }

    let before = glance.signers.iter().filter(|signer| signer.turn < first);
    let acted = before.filter_map(|signer| signer.completed_at);
    acted.fold(sent, Timestamp::max)
}

/// Returns the trouble of an envelope. The conditions are those of the tab of stuck envelopes (`store/search.rs`).
fn trouble(glance: &EnvelopeGlance) -> Option<Trouble> {
    if glance.status == EnvelopeStatus::Completed {
        let is_unpaid = glance.payment == Some(PaymentStatus::RequiresPayment);
        return match glance.stopped_at {
            Some(_) => Some(Trouble::VaultingStopped),
            None => is_unpaid.then_some(Trouble::Unpaid),
        };
    }
    if !glance.status.is_out_for_signing() {
        return None;
    }

    let mut open = glance
        .signers
        .iter()
        .filter(|signer| signer.completed_at.is_none());
    let unreached = open.clone().find_map(|signer| {
        let reason = signer.notice.as_ref()?.failure.clone()?;
        let name = signer.name.clone();
        Some(Trouble::Unreached { name, reason })
    });

    unreached.or_else(|| {
        let unidentified = open.find(|signer| is_unidentified(glance, signer))?;
        let name = unidentified.name.clone();
        Some(Trouble::Unidentified { name })
    })
}

/// Whether a signer failed the identity questions and has not passed them since.
fn is_unidentified(glance: &EnvelopeGlance, signer: &Signer) -> bool {
    let attempts = glance.identity.iter();
    let mut attempts = attempts.filter(|attempt| attempt.position == signer.position);
    let has_passed = attempts
        .clone()
        .any(|attempt| attempt.status == KbaStatus::Passed);

    // Another person may have taken the place since the attempt.
    let is_own = |email: &str| email.to_lowercase() == signer.email.to_lowercase();
    !has_passed && attempts.any(|attempt| is_own(&attempt.email))
}

fn amount(glance: &EnvelopeGlance) -> Option<String> {
    let text = |member: &str| match glance.own_metadata.get(member)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let amount = text(AMOUNT)?;
    Some(match text(CURRENCY) {
        Some(currency) => format!("{amount} {currency}"),
        None => amount,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use holdfast_domain::envelope::{EnvelopeKind, SignerNotice, SignerStatus};
    use holdfast_store::glances::IdentityAttempt;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn signer(position: i64, name: &str) -> Signer {
        let email = format!("{}@example.com", name.to_lowercase());
        Signer::new(position, name.into(), email, format!("Role {position}"))
    }

    fn sent(signers: Vec<Signer>) -> EnvelopeGlance {
        EnvelopeGlance {
            id: EnvelopeId::new(),
            name: "Contract".into(),
            kind: EnvelopeKind::Esign,
            status: EnvelopeStatus::Sent,
            created_at: at(1),
            updated_at: at(9),
            signed_at: None,
            preserve_signing_order: true,
            payment: None,
            own_metadata: Map::new(),
            send_at: None,
            stopped_at: None,
            sent_at: Some(at(2)),
            reminded_at: None,
            asked_at: None,
            signers,
            identity: Vec::new(),
        }
    }

    fn names(standing: &EnvelopeStanding) -> Vec<&str> {
        match &standing.next {
            NextActor::Signers(signers) => signers.iter().map(|one| one.name.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn the_next_signer_is_waited_for_since_the_one_before_signed() {
        let both = || vec![signer(0, "Ann"), signer(1, "Bob")];
        let first = judge(sent(both()));
        assert_eq!((names(&first), first.since), (vec!["Ann"], at(2)));

        let mut signers = both();
        signers[0].status = SignerStatus::Completed;
        signers[0].completed_at = Some(at(5));
        let second = judge(sent(signers));
        assert_eq!((names(&second), second.since), (vec!["Bob"], at(5)));

        let together = judge(EnvelopeGlance {
            preserve_signing_order: false,
            ..sent(both())
        });
        assert_eq!(names(&together), ["Ann", "Bob"]);
    }

    #[test]
    fn an_envelope_with_an_open_question_waits_for_the_sender() {
        let asked = judge(EnvelopeGlance {
            asked_at: Some(at(6)),
            ..sent(vec![signer(0, "Ann")])
        });
        assert!(matches!(asked.next, NextActor::Sender) && asked.since == at(6));

        // The asker may sign before the answer.
        let signed = judge(EnvelopeGlance {
            status: EnvelopeStatus::Completed,
            asked_at: Some(at(6)),
            signed_at: Some(at(7)),
            ..sent(vec![signer(0, "Ann")])
        });
        assert_eq!(signed.since, at(7));
    }

    #[test]
    fn an_envelope_is_held_up_by_a_failed_mail_or_a_failed_identity_check() {
        assert!(judge(sent(vec![signer(0, "Ann")])).trouble.is_none());

        let mut unreached = signer(0, "Ann");
        unreached.notice = Some(SignerNotice {
            at: at(3),
            failure: Some("550".into()),
        });
        let trouble = judge(sent(vec![unreached])).trouble;
        assert!(matches!(trouble, Some(Trouble::Unreached { reason, .. }) if reason == "550"));

        let attempt = |email: &str, status| IdentityAttempt {
            position: 0,
            email: email.into(),
            status,
        };
        let asked = |identity| {
            judge(EnvelopeGlance {
                identity,
                ..sent(vec![signer(0, "Ann")])
            })
        };
        let failed = || attempt("ann@example.com", KbaStatus::Failed);
        let trouble = asked(vec![failed()]).trouble;
        assert!(matches!(trouble, Some(Trouble::Unidentified { name }) if name == "Ann"));

        let passed = attempt("ann@example.com", KbaStatus::Passed);
        assert!(asked(vec![failed(), passed]).trouble.is_none());
        let of_another = attempt("earlier@example.com", KbaStatus::Failed);
        assert!(asked(vec![of_another]).trouble.is_none());
    }

    #[test]
    fn a_signed_envelope_is_held_up_by_its_vault_in_or_its_payment() {
        let completed = || EnvelopeGlance {
            status: EnvelopeStatus::Completed,
            signed_at: Some(at(7)),
            ..sent(vec![signer(0, "Ann")])
        };
        let fine = judge(completed());
        assert!(fine.trouble.is_none() && fine.since == at(7));

        let unpaid = judge(EnvelopeGlance {
            payment: Some(PaymentStatus::RequiresPayment),
            ..completed()
        });
        assert!(matches!(unpaid.trouble, Some(Trouble::Unpaid)));

        let stopped = judge(EnvelopeGlance {
            stopped_at: Some(at(8)),
            ..completed()
        });
        assert!(matches!(stopped.trouble, Some(Trouble::VaultingStopped)));
    }

    #[test]
    fn an_amount_is_a_member_of_the_partners_metadata() {
        let of = |own: Value| {
            let own_metadata = own.as_object().unwrap().clone();
            let glance = EnvelopeGlance {
                own_metadata,
                ..sent(Vec::new())
            };
            judge(glance).amount
        };
        assert_eq!(of(json!({ "deal": "7" })), None);
        assert_eq!(of(json!({ "amount": 12000 })).unwrap(), "12000");
        let with_currency = of(json!({ "amount": "12,000.00", "currency": "USD" }));
        assert_eq!(with_currency.unwrap(), "12,000.00 USD");
    }
}
