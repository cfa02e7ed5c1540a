//! Signers as events and the ledger name them, and whose turn it is.

use serde_json::{Value, json};

use holdfast_domain::envelope::{Envelope, Signer, SignerStatus};

/// Returns the signers who can sign now: all who have not signed, and with signing order only those of
/// the earliest turn among them. A witness of a signer waits until that one has signed.
pub fn invited_now<'a>(
    envelope: &Envelope,
    signers: &'a [Signer],
) -> impl Iterator<Item = &'a Signer> + Clone {
    in_turn(envelope.sending.preserve_signing_order, signers)
}

/// Like [`invited_now`], by whether the signers of the envelope sign in order.
pub fn in_turn(ordered: bool, signers: &[Signer]) -> impl Iterator<Item = &Signer> + Clone {
    let open = signers.iter().filter(|signer| !has_completed(signer));
    let turn = open.clone().map(|signer| signer.turn).min();
    open.filter(move |signer| !ordered || Some(signer.turn) == turn)
        .filter(move |signer| witnessed(signers, signer).is_none_or(has_completed))
}

fn has_completed(signer: &Signer) -> bool {
    signer.status == SignerStatus::Completed
}

/// Returns the signer that a witness witnesses; none for other signers.
pub fn witnessed<'a>(signers: &'a [Signer], witness: &Signer) -> Option<&'a Signer> {
    let role = witness.witness_of.as_deref()?;
    signers.iter().find(|signer| signer.has_role(role))
}

/// Formats a signer for events and the ledger: `{signer_id, position, email, name, role}`, with the
/// position from 1. Readers join by the id, because two signers may share an e-mail address.
pub fn signer_view(signer: &Signer) -> Value {
    json!({
        "signer_id": signer.id, "position": signer.position + 1,
        "email": signer.email, "name": signer.name, "role": signer.role,
    })
}

/// Like [`signer_view`], with the telephone if there is one: where it belongs to what happened.
pub fn contact_view(signer: &Signer) -> Value {
    let mut view = signer_view(signer);
    if let Some(phone) = &signer.phone {
        view["phone"] = json!(phone);
    }
    view
}
