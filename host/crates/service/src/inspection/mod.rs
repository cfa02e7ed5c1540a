//! Looks at a record, by its parties and by people with a view. Each is an entry of the custody ledger
//! and an event for all parties.

pub mod obligor;
pub mod pools;
pub mod releases;
pub mod views;

use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use self::views::ViewView;
use crate::control::pledges::{self, PledgeView};
use crate::control::similar::SimilarView;
use crate::control::{
    Actor, LockedRecord, PartyNames, PartyView, PermittedAct, RecordView, Request, control_view,
    emit_to_all, envelope_of, lock, not_vaulted, permit, record_view,
};
use crate::envelopes::compliance::ComplianceView;
use crate::vault::custody_sheet::RecordWriter;
use crate::vault::{Vault, copies, custody, overview};
use holdfast_adapters::files::FilesError;
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::control::Act;
use holdfast_components::rules::copies::SignatureHandling;
use holdfast_components::rules::watermarks::WatermarkRequest;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{HandedCopy, Look, View, ViewAccess};
use holdfast_domain::envelope::{Envelope, Signer, SignerStatus};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{CopyId, EnvelopeId, SignerId, ViewId};
use holdfast_domain::transfer::{SellerCopy, SoldRecord};
use holdfast_evidence::formats::CustodyLedger;
use holdfast_platform::components::ComponentManager;
use holdfast_platform::documents::{DocumentUpload, admit};
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, events, permits};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{
    WriteTransaction, control as rows, envelopes, similarity, transfers, views as view_rows,
};

/// Longest purpose of a look or a view, in characters.
const PURPOSE: usize = 200;
/// Pages in which a watermark is searched: each has it.
const SEARCHED: u32 = 10;

/// A signer of a record, as its parties see them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecordSigner {
    pub signer_id: SignerId,
    pub name: String,
    pub email: String,
    pub role: String,
    pub status: SignerStatus,
    /// Null for approvers, and for people who were asked for no signature.
    pub signed_at: Option<Timestamp>,
}

impl From<Signer> for RecordSigner {
    fn from(signer: Signer) -> Self {
        Self {
            signed_at: signer.signed_at(),
            signer_id: signer.id,
            name: signer.name,
            email: signer.email,
            role: signer.role,
            status: signer.status,
        }
    }
}

/// A record with everything that a party needs to judge it, apart from the document.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "record": {
        "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Retail instalment contract 2041",
        "status": "vaulted", "document_hash": "9f86d081884c7d65…", "compliance_score": 100,
        "chattel_paper_jurisdiction": "US-DE", "metadata": { "amount": 18400 },
        "originator": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "name": "Maple Motors" },
        "controller": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "First Example Bank" },
        "designee": null, "buyer": null, "pledgee": null, "stage": "controlled", "epoch": 2,
        "changed_at": "2026-11-21T09:45:00.000Z", "controlled_since": "2026-11-21T09:45:00.000Z",
        "release": null, "transfer_id": null, "pledge_id": null,
    },
    "signers": [{
        "signer_id": "sgn_01jdk7m3e8f4x9s2w5v6b0c1dk", "name": "Jordan Lee", "email": "jordan@example.com",
        "role": "Buyer", "status": "completed", "signed_at": "2026-11-21T09:41:07.250Z",
    }],
    "compliance": {
        "compliant": true, "score": 100, "evaluated_at": "2026-11-21T09:46:00.000Z", "missing_requirements": [],
        "checks": [], "rules_component": { "name": "holdfast-compliance", "version": "1.0.0", "sha256": "0b1f…" },
    },
    "pledge": null, "similar": [], "views": [],
    "ledger": { "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "org_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "entries": [], "log": null },
}]))]
pub struct InspectionView {
    pub record: RecordView,
    pub signers: Vec<RecordSigner>,
    /// The checks as the originator's rules answer them now.
    pub compliance: ComplianceView,
    /// The live pledge.
    pub pledge: Option<PledgeView>,
    /// Records with similar documents under other controllers, such as scans of the same contract.
    pub similar: Vec<SimilarView>,
    /// People who may look, by the controller, at the record. Empty for other parties.
    pub views: Vec<ViewView>,
    /// The custody ledger, with this look as its last entry.
    pub ledger: CustodyLedger,
}

/// A watermarked copy: who has it, since when and why.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "copy_id": "cpy_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "party": { "organization_id": "org_01jdk7m3e8f4x9s2w5v6b0c1db", "name": "Example Funding" },
    "holder": "robin@funding.example", "view_id": null, "purpose": "Due diligence",
    "made_at": "2026-11-21T09:45:00.000Z",
}]))]
pub struct CopyView {
    pub copy_id: CopyId,
    pub envelope_id: EnvelopeId,
    /// The party that got it, or that granted the person's view.
    pub party: PartyView,
    /// The person, or the credential of the party.
    pub holder: String,
    pub view_id: Option<ViewId>,
    pub purpose: String,
    pub made_at: Timestamp,
}

/// Who looks at a record.
#[derive(Clone, Copy)]
pub(super) enum Visitor<'a> {
    Party(&'a Caller),
    /// A party that has sold the record and kept its copy.
    Seller(&'a Caller, &'a SoldRecord),
    /// A person with a view.
    Person(&'a View),
}

impl Visitor<'_> {
    async fn lock(
        self,
        core: &Core,
        tx: &mut WriteTransaction,
        id: &str,
    ) -> Result<LockedRecord, ServiceError> {
        match self {
            Self::Party(caller) => lock(tx, caller, id).await,
            Self::Seller(caller, sold) => {
                let unknown = || ServiceError::NotFound("Record");
                let envelope = envelopes::lock(tx, &sold.org, &sold.envelope).await?;
                let envelope = envelope.ok_or_else(unknown)?;

                // Under the lock: it may have got control again.
                let now = transfers::sold_by(tx, &caller.org, &sold.envelope).await?;
                let same = now.is_some_and(|now| now.transfer == sold.transfer);

                let control = rows::of_envelope(tx, &envelope).await?;
                if same {
                    Ok(LockedRecord { envelope, control })
                } else {
                    Err(unknown())
                }
            }
            Self::Person(view) => views::lock_open(core, tx, view).await,
        }
    }
}

/// Returns a record to one of its parties.
pub async fn inspect(
    core: &Core,
    management: &Arc<ComponentManager>,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    purpose: Option<&str>,
) -> Result<InspectionView, ServiceError> {
    let visitor = Visitor::Party(caller);
    let mut tx = core.store.begin().await?;
    let record = visitor.lock(core, &mut tx, id).await?;
    let purpose = purpose.map(checked).transpose()?;
    // Recorded before anything is read, and committed before anything is shown.
    note(core, &mut tx, &record, visitor, Look::Record, purpose, None).await?;
    let LockedRecord { envelope, control } = record;
    let mut names = PartyNames::default();
    let record = record_view(&mut tx, &mut names, &envelope, &control).await?;

    let pledge = match &control.pledge {
        Some(live) => rows::pledge(&mut tx, &live.id).await?,
        None => None,
    };
    let pledge = match &pledge {
        Some(pledge) => Some(pledges::view(&mut tx, &mut names, pledge).await?),
        None => None,
    };

    let views = if control.controller == caller.org {
        view_rows::list(&mut tx, &control).await?
    } else {
        Vec::new()
    };
    let own = OwnedEnvelope {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
    };
    let similar = similarity::list(&mut tx, &own).await?;

    // The rules evaluate the record next. The lock is not held while they run.
    tx.commit().await?;
    let seen = overview::record(core, management, &envelope).await?;
    // The ledger is the originator's. The caller's part in the record was checked under the lock.
    let originator = Caller::system(envelope.org.clone());
    let ledger = custody::ledger(core, vault, &originator, envelope.id.as_str()).await?;
    Ok(InspectionView {
        record,
        signers: seen.signers.into_iter().map(RecordSigner::from).collect(),
        compliance: seen.compliance,
        pledge,
        similar: similar.iter().map(SimilarView::from).collect(),
        views: views.iter().map(ViewView::from).collect(),
        ledger,
    })
}

/// Records a look, if the rules allow it.
pub(super) async fn note(
    core: &Core,
    tx: &mut WriteTransaction,
    record: &LockedRecord,
    visitor: Visitor<'_>,
    look: Look,
    purpose: Option<&str>,
    copy: Option<&CopyId>,
) -> Result<(), ServiceError> {
    let LockedRecord { envelope, control } = record;
    let (party, ask, actor) = match visitor {
        Visitor::Party(caller) => (
            &caller.org,
            Request::of(Act::Inspect, caller),
            caller.actor.clone(),
        ),
        // A seller has no part in the record any more, and looks at it like an invited person.
        Visitor::Seller(caller, _) => (
            &caller.org,
            Request::by(Act::Inspect, Actor::Viewer),
            caller.actor.clone(),
        ),
        Visitor::Person(view) => {
            let ask = Request::by(Act::Inspect, Actor::Viewer);
            (&view.controller, ask, format!("viewer:{}", view.email))
        }
    };

    let PermittedAct(decision) = permit(core, tx, envelope, control, ask).await?;
    let now = core.clock.now();
    let mut names = PartyNames::default();
    let mut data = json!(control_view(&mut names, tx, control).await?);
    data["party"] = json!(names.party(tx, party).await?);
    data["look"] = json!(look);
    data["purpose"] = json!(purpose);

    data["copy_id"] = json!(copy);
    let person = match visitor {
        Visitor::Person(view) => Some(view),
        Visitor::Party(_) | Visitor::Seller(..) => None,
    };
    data["view_id"] = json!(person.map(|view| &view.id));
    data["name"] = json!(person.map(|view| &view.name));

    data["email"] = json!(person.map(|view| &view.email));
    let mut entry = data.clone();
    entry["rules_component"] = decision.component.clone();

    // No decision of its own: looks would displace the acts in replays.
    let event = EventType::ControlViewed;
    events::record(tx, envelope, &actor, event.as_str(), entry, now).await?;
    emit_to_all(tx, envelope, control.parties(), event, &data, now).await?;

    Ok(())
}

/// Checks the reason of a look.
pub(super) fn checked(purpose: &str) -> Result<&str, ServiceError> {
    let purpose = purpose.trim();
    if !purpose.is_empty() && purpose.chars().count() <= PURPOSE {
        return Ok(purpose);
    }

    let message = "State why the record is looked at";
    let issue = ValidationIssue::of_length(&["purpose"], purpose, PURPOSE, message);
    Err(ServiceError::Invalid(vec![issue]))
}

/// Makes a watermarked copy for a party of the record, or for one that sold it and kept its copy.
pub async fn copy(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    purpose: &str,
) -> Result<Bytes, ServiceError> {
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Record"))?;
    let mut connection = core.store.read().await?;

    // A party that gets the record back inspects it as any other.
    let sold = match rows::of_party(&mut connection, &caller.org, &id).await? {
        Some(_) => None,
        None => transfers::sold_by(&mut connection, &caller.org, &id).await?,
    };
    // A former party is not found by the record, only by its sale.
    let envelope = match &sold {
        Some(sold) => envelopes::get(&mut connection, &sold.org, &sold.envelope).await?,
        None => None,
    };

    drop(connection);
    let envelope = match envelope {
        Some(envelope) => envelope,
        None => envelope_of(core, caller, &id).await?,
    };
    let purpose = checked(purpose)?;
    let visitor = match &sold {
        Some(sold) if sold.copy == SellerCopy::Removed => return Err(permits::copies::removed()),
        Some(sold) => Visitor::Seller(caller, sold),
        None => Visitor::Party(caller),
    };

    hand_over(core, vault, &envelope, visitor, &caller.creator(), purpose).await
}

/// Makes a watermarked copy for a person with a view. Returns it with the name of the document.
///
/// # Errors
/// `NotFound` for a view that permits no download, or one that is over.
pub async fn copy_for(
    core: &Core,
    vault: &Vault,
    view: &View,
) -> Result<(String, Bytes), ServiceError> {
    if view.access != ViewAccess::Download {
        return Err(views::unknown());
    }

    // Only for the name and the file: `hand_over` checks the view again under the lock.
    let envelope = views::open_envelope(core, view).await?;
    let envelope = envelope.ok_or_else(views::unknown)?;
    let holder = format!("{} <{}>", view.name, view.email);
    let purpose = view.purpose.as_deref().unwrap_or("Inspection");
    let visitor = Visitor::Person(view);
    let pdf = hand_over(core, vault, &envelope, visitor, &holder, purpose).await?;

    Ok((envelope.name, pdf))
}

/// Makes a copy of the non-authoritative copy with a mark for its holder. It is recorded before it leaves.
async fn hand_over(
    core: &Core,
    vault: &Vault,
    envelope: &Envelope,
    visitor: Visitor<'_>,
    holder: &str,
    purpose: &str,
) -> Result<Bytes, ServiceError> {
    if envelope.record.copy.is_none() {
        return Err(not_vaulted());
    }

    let (org, now) = (&envelope.org, core.clock.now());
    let (party, view) = match visitor {
        Visitor::Party(caller) | Visitor::Seller(caller, _) => (&caller.org, None),
        Visitor::Person(view) => (&view.controller, Some(view.id.clone())),
    };
    let copy = HandedCopy {
        id: CopyId::new(),
        org: org.clone(),
        envelope: envelope.id.clone(),
        party: party.clone(),
        holder: holder.to_owned(),
        view,
        purpose: purpose.to_owned(),
        made_at: now,
    };

    let sold_at = match visitor {
        Visitor::Seller(_, sold) if sold.copy == SellerCopy::Marked => Some(sold.sold_at),
        _ => None,
    };
    // Made before the transaction, because no lock should wait for the sandbox. The copy leaves after the
    // commit only, so that no copy is out without its entry.
    let pdf = watermarked(core, vault, envelope, &copy, sold_at).await?;
    let mut tx = core.store.begin().await?;
    // The visitor may have lost the record while the copy was made.
    let record = visitor.lock(core, &mut tx, envelope.id.as_str()).await?;

    let (look, id) = (Look::Copy, Some(&copy.id));
    note(core, &mut tx, &record, visitor, look, Some(purpose), id).await?;
    view_rows::insert_copy(&mut tx, &copy).await?;
    tx.commit().await?;

    Ok(pdf)
}

async fn watermarked(
    core: &Core,
    vault: &Vault,
    envelope: &Envelope,
    copy: &HandedCopy,
    sold_at: Option<Timestamp>,
) -> Result<Bytes, ServiceError> {
    let org = &envelope.org;
    let mut connection = core.store.read().await?;
    let wording = copies::wording(&mut connection, org).await?;
    let mut names = PartyNames::default();
    let party = names.party(&mut connection, &copy.party).await?;
    drop(connection);
    let writer = RecordWriter::new(&wording);
    let moment = writer.moment(&copy.made_at.to_string());
    let values = [
        ("holder", copy.holder.as_str()),
        ("party", &party.name),
        ("moment", &moment),
        ("purpose", &copy.purpose),
        ("id", copy.id.as_str()),
    ];

    // The line survives a print. The hidden text and the metadata survive in a file without the line.
    let mut line = writer.texts.with("copy-line", values);
    if let Some(at) = sold_at {
        let moment = writer.moment(&at.to_string());
        line += " · ";
        line += &writer.texts.with("copy-sold", [("moment", moment)]);
    }

    let request = WatermarkRequest {
        line,
        at_head: false,
        hidden: copy.id.to_string(),
        marked_at: copy.made_at.to_string(),
    };

    let pdf = copies::signers_copy(core, vault, envelope).await?;
    copies::watermarked(core, envelope, pdf, request, SignatureHandling::Keep).await
}

/// Returns a watermarked copy of a record in which the caller's organization has a part, or which it got.
pub async fn handed_copy(core: &Core, caller: &Caller, id: &str) -> Result<CopyView, ServiceError> {
    let unknown = || ServiceError::NotFound("Copy");
    let id = CopyId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let copy = view_rows::copy(&mut connection, &id).await?;
    let copy = copy.ok_or_else(unknown)?;
    let record = rows::of_record(&mut connection, &copy.envelope).await?;
    let is_party = record.is_some_and(|record| record.parties().contains(&&caller.org));
    // A party that left the record may still trace the copies that it was given.
    if !is_party && ![&copy.org, &copy.party].contains(&&caller.org) {
        return Err(unknown());
    }

    let mut names = PartyNames::default();
    Ok(CopyView {
        party: names.party(&mut connection, &copy.party).await?,
        copy_id: copy.id,
        envelope_id: copy.envelope,
        holder: copy.holder,
        view_id: copy.view,
        purpose: copy.purpose,
        made_at: copy.made_at,
    })
}

/// Finds the watermark of a file, and returns the copy that it was.
pub async fn trace(
    core: &Core,
    caller: &Caller,
    upload: &DocumentUpload,
) -> Result<CopyView, ServiceError> {
    let owner = WorkOwner::new(&caller.org, "trace");
    // The file counts against the shared memory for documents, like every upload.
    let _room = admit(core, &owner, upload.file.size()).await?;
    let pdf = upload.file.read().await.map_err(FilesError::Spool)?;
    let reader = core.placement(None).for_owner(owner);
    let facts = reader.inspect(pdf.clone()).await??;
    let count = u32::try_from(facts.pages.len()).unwrap_or(u32::MAX);
    for page in 1..=count.min(SEARCHED) {
        // A copy of strangers is answered like an unknown one: the mark alone reveals nothing about the
        // record.
        for line in reader.text(pdf.clone(), page).await?? {
            if let Some(id) = copy_id(&line.text) {
                return handed_copy(core, caller, id.as_str()).await;
            }
        }
    }

    Err(ServiceError::invalid(
        "no_watermark",
        &["file"],
        "a watermarked copy",
        "",
        "The file has no watermark",
    ))
}

/// Returns the id that a line contains.
fn copy_id(line: &str) -> Option<CopyId> {
    // The other words of a line may contain the prefix, too.
    let starts = line.match_indices(CopyId::PREFIX).map(|(start, _)| start);
    let length = CopyId::new().as_str().len();
    let mut ids = starts.filter_map(|start| CopyId::parse(line.get(start..start + length)?));
    ids.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_copy_is_found_in_a_line() {
        let id = CopyId::new();
        for line in [format!("{id}"), format!("cpy_ Copy for Ann · {id} · end")] {
            assert_eq!(copy_id(&line), Some(id.clone()), "{line}");
        }
        assert_eq!(copy_id("cpy_01jdk7"), None);
        assert_eq!(copy_id("Copy for Ann"), None);
    }
}
