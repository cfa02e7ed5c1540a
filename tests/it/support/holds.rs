//! Objects that the stand-ins of Azure and Google hold.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Response, StatusCode};

/// Keys of the held objects.
#[derive(Clone, Default)]
pub struct HeldObjects(Arc<Mutex<BTreeSet<String>>>);

impl HeldObjects {
    pub fn has(&self, key: &str) -> bool {
        self.0.lock().unwrap().contains(key)
    }

    pub fn set(&self, key: &str, is_held: bool) {
        let mut keys = self.0.lock().unwrap();
        if is_held {
            keys.insert(key.to_owned());
        } else {
            keys.remove(key);
        }
    }
}

/// Returns an answer without a body.
pub fn answer_of(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}
