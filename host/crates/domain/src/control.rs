//! Control of authoritative copies: which party decides about a record (UCC §9-105).

use super::clock::Timestamp;
use super::envelope::{Envelope, words};
use super::id::{
    CopyId, EnvelopeId, InvitationId, KeyId, OrgId, PartyKeyId, PasskeyId, PledgeId, ReleaseId,
    TransferId, ViewId,
};
use super::statement::{PartyPublicKey, SignedStatement};

words! {
    /// Stage of a record between its parties.
    ControlStage {
        // The originator has control; there is no designee or buyer.
        Originated = "originated",
        // A designee was named and has not answered.
        Designated = "designated",
        // Another party than the originator has control.
        Controlled = "controlled",
        // The record is offered to a buyer.
        Proposed = "proposed",
        // The buyer accepted; the controller has not confirmed.
        Accepted = "accepted",
        // The authoritative copy left the vault.
        Released = "released",
    }
}

words! {
    /// State of a requested release.
    ReleaseState {
        Requested = "requested",
        Consented = "consented",
        Refused = "refused",
        Released = "released",
    }
}

words! {
    /// What a person with a view may do.
    ViewAccess {
        View = "view",
        // Also gets watermarked copies.
        Download = "download",
    }
}

words! {
    /// Subject of a look.
    Look {
        // The record's facts, its ledger and certificate.
        Record = "record",
        // The same with the pages of the document, by a person with a view.
        Document = "document",
        // A watermarked copy.
        Copy = "copy",
    }
}

/// A person's permission to look at a record.
#[derive(Clone, Debug)]
pub struct View {
    pub id: ViewId,
    /// Originator of the record.
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// The controller that granted it. The view ends when control passes.
    pub controller: OrgId,
    /// Since when that party had control.
    pub controlled_since: Timestamp,
    pub name: String,
    pub email: String,
    pub access: ViewAccess,
    pub purpose: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    /// Time of the last recorded look at the pages.
    pub opened_at: Option<Timestamp>,
}

/// Invitation of a party that has no organization here.
#[derive(Clone, Debug)]
pub struct PartyInvitation {
    pub id: InvitationId,
    /// The organization that invites.
    pub org: OrgId,
    /// Name that the party's organization gets.
    pub name: String,
    pub email: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub joined: Option<JoinedParty>,
}

/// Party that has accepted its invitation.
#[derive(Clone, Debug)]
pub struct JoinedParty {
    pub org: OrgId,
    /// The key that it was given.
    pub key: KeyId,
    pub at: Timestamp,
}

/// A watermarked copy of a record.
#[derive(Clone, Debug)]
pub struct HandedCopy {
    pub id: CopyId,
    /// Originator of the record.
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// The party that got it, or that granted the view.
    pub party: OrgId,
    /// Who got it: a credential of the party, or the person.
    pub holder: String,
    pub view: Option<ViewId>,
    pub purpose: String,
    pub made_at: Timestamp,
}

/// Pledge that was not released.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LivePledge {
    pub id: PledgeId,
    pub pledgee: OrgId,
}

/// Who controls a record. There is exactly one controller at any time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControlRecord {
    /// Originator: the organization of the envelope.
    pub org: OrgId,
    pub envelope: EnvelopeId,
    pub controller: OrgId,
    /// Designee or buyer that has not taken control yet.
    pub named: Option<OrgId>,
    pub stage: ControlStage,
    /// Number of acts that changed it.
    pub epoch: i64,
    /// The pledge that keeps the record from changing hands.
    pub pledge: Option<LivePledge>,
    /// The release that waits for an answer, or was agreed to.
    pub release: Option<ReleaseId>,
    /// The transfer that locks the record.
    pub transfer: Option<TransferId>,
    /// Time of the last act.
    pub changed_at: Timestamp,
    /// Since when the controller has control.
    pub controlled_since: Timestamp,
}

impl ControlRecord {
    /// Returns the state of a record that has seen no act yet: its originator has control.
    pub fn originated(envelope: &Envelope) -> Self {
        Self {
            org: envelope.org.clone(),
            envelope: envelope.id.clone(),
            controller: envelope.org.clone(),
            named: None,
            stage: ControlStage::Originated,
            epoch: 0,
            pledge: None,
            release: None,
            transfer: None,
            changed_at: envelope.created_at,
            controlled_since: envelope.created_at,
        }
    }

    /// Returns the pledgee of a live pledge.
    pub fn pledgee(&self) -> Option<&OrgId> {
        self.pledge.as_ref().map(|pledge| &pledge.pledgee)
    }

    /// Returns the parties, each once: originator, controller, the designee or buyer, and the pledgee.
    pub fn parties(&self) -> Vec<&OrgId> {
        // One organization can have several of these parts, and it gets each event and each page once.
        let mut parties = vec![&self.org];
        let others = [Some(&self.controller), self.named.as_ref(), self.pledgee()];
        for party in others.into_iter().flatten() {
            if !parties.contains(&party) {
                parties.push(party);
            }
        }
        parties
    }

    /// Names the party that shall get control.
    pub fn designated(self, to: OrgId) -> Self {
        Self {
            named: Some(to),
            stage: ControlStage::Designated,
            ..self
        }
    }

    /// Offers the record to a buyer, which locks it.
    pub fn proposed(self, to: OrgId, transfer: TransferId) -> Self {
        Self {
            named: Some(to),
            stage: ControlStage::Proposed,
            transfer: Some(transfer),
            ..self
        }
    }

    /// Notes that the buyer accepted the offer.
    pub fn accepted(self) -> Self {
        Self {
            stage: ControlStage::Accepted,
            ..self
        }
    }

    /// Ends a designation or an offer; control stays with the controller.
    pub fn kept(self) -> Self {
        // An originator that bought its record back is where it began, so the stage is the first one again.
        let stage = if self.controller == self.org {
            ControlStage::Originated
        } else {
            ControlStage::Controlled
        };
        Self {
            named: None,
            stage,
            transfer: None,
            ..self
        }
    }

    /// Gives control to the designee or buyer. Without one, nothing changes.
    pub fn passed_on(self) -> Self {
        let Some(to) = self.named else {
            return self;
        };

        Self {
            controller: to,
            named: None,
            ..self
        }
        .kept()
    }
}

/// Pledge of a record to a party that lends on it.
#[derive(Clone, Debug)]
pub struct Pledge {
    pub id: PledgeId,
    /// Originator.
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// The controller that pledged it.
    pub pledgor: OrgId,
    pub pledgee: OrgId,
    pub terms: Option<String>,
    pub created_at: Timestamp,
    pub released_at: Option<Timestamp>,
}

/// Key that a party signs its acts with.
#[derive(Clone, Debug)]
pub struct PartyKey {
    pub id: PartyKeyId,
    pub org: OrgId,
    pub name: Option<String>,
    pub public_key: PartyPublicKey,
    pub created_at: Timestamp,
    /// Credential that registered it.
    pub created_by: String,
    /// The statement by which it was registered, signed with the key itself.
    pub registration: SignedStatement,
    pub revoked_at: Option<Timestamp>,
}

/// Request of a person that the own passkey signs for the organization.
#[derive(Clone, Debug)]
pub struct PartyKeyRequest {
    pub passkey: PasskeyId,
    pub org: OrgId,
    /// E-mail address.
    pub requested_by: String,
    /// Body of the registration, with the proof.
    pub body: serde_json::Value,
    pub requested_at: Timestamp,
}

impl PartyKey {
    /// Returns the id of the credential, if the key is a passkey's.
    pub fn credential(&self) -> Option<&str> {
        let passkey = self.registration.passkey.as_ref();
        passkey.map(|passkey| passkey.credential_id.as_str())
    }
}

/// Requested release of a record that another party controls.
#[derive(Clone, Debug)]
pub struct ReleaseRequest {
    pub id: ReleaseId,
    /// Originator.
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// The party that was asked.
    pub controller: OrgId,
    pub state: ReleaseState,
    /// The release form. A consent covers this form only.
    pub form: serde_json::Value,
    pub requested_by: String,
    pub requested_at: Timestamp,
    pub answer: Option<ReleaseAnswer>,
}

/// Answer of the controller.
#[derive(Clone, Debug)]
pub struct ReleaseAnswer {
    pub by: String,
    pub at: Timestamp,
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> ControlRecord {
        let org = OrgId::new();
        ControlRecord {
            controller: org.clone(),
            org,
            envelope: EnvelopeId::new(),
            named: None,
            stage: ControlStage::Originated,
            epoch: 0,
            pledge: None,
            release: None,
            transfer: None,
            changed_at: Timestamp::from_millis(0),
            controlled_since: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn control_moves_only_by_acceptance() {
        let (record, lender) = (record(), OrgId::new());
        let designated = record.clone().designated(lender.clone());
        assert_eq!(designated.controller, record.org);
        assert_eq!(designated.parties(), [&record.org, &lender]);
        assert_eq!(designated.clone().kept(), record);

        let controlled = designated.passed_on();
        assert_eq!(controlled.controller, lender);
        assert_eq!(controlled.stage, ControlStage::Controlled);
        assert_eq!(controlled.clone().passed_on(), controlled);

        let (funder, transfer) = (OrgId::new(), TransferId::new());
        let offered = controlled.clone().proposed(funder.clone(), transfer);
        assert_eq!(offered.controller, lender);
        assert_eq!(offered.clone().accepted().kept(), controlled);

        let sold = offered.accepted().passed_on();
        assert_eq!(
            (sold.controller.clone(), sold.transfer.clone()),
            (funder, None)
        );

        let back = sold.proposed(record.org.clone(), TransferId::new());
        assert_eq!(back.accepted().passed_on(), record);
    }
}
