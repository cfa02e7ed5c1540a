//! The room's signed callbacks, in DocuSeal's form.
//!
//! A callback is a job that commits with the change it tells of. Its body says
//! only what happened to whom: whoever receives it reads the submission back.

use serde_json::{Value, json};

use super::Room;
use crate::domain::clock::Timestamp;
use crate::domain::hash::hmac_sha256;
use crate::domain::job::RoomCallback;
use crate::store::room::RoomSubmitter;
use crate::store::{StoreError, Tx, jobs};

/// Adds the callback to the transaction of what it tells of.
pub(super) async fn enqueue(
    tx: &mut Tx,
    room: &Room,
    submitter: &RoomSubmitter,
    event_type: &str,
) -> Result<(), StoreError> {
    let id = match event_type {
        "submission.completed" => submitter.submission,
        _ => submitter.id,
    };
    let now = room.clock.now();
    let body = json!({
        "event_type": event_type,
        "timestamp": now,
        "data": { "id": id, "submission_id": submitter.submission },
    });
    jobs::insert(tx, &submitter.org, &RoomCallback(body), None, now).await
}

/// A callback as it goes out: headers and raw body, signed at `now`.
pub fn signed(room: &Room, body: &Value, now: Timestamp) -> (Vec<(String, String)>, Vec<u8>) {
    let body = body.to_string().into_bytes();
    let seconds = now.as_seconds();
    let secret = room.webhook_secret();
    let head = format!("{seconds}.");
    let mac = hmac_sha256(secret.reveal().as_bytes(), &[head.as_bytes(), &body]);
    let signature = format!("{seconds}.{}", hex::encode(mac));
    let headers = vec![
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("X-Docuseal-Signature".to_owned(), signature),
    ];
    (headers, body)
}
