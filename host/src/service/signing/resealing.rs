//! Secrets that are kept for long, sealed anew with the current master key: those of webhook
//! endpoints and of organizations' provider instances. Everything else that is sealed ends
//! within a day.

use crate::domain::seal::Sealer;
use crate::service::ServiceError;
use crate::service::signing::provider_instance::InstanceConfig;
use crate::store::{Store, sealed};

/// Seals anew what another generation has sealed; returns how much that was.
pub async fn reseal(store: &Store, sealer: &Sealer) -> Result<usize, ServiceError> {
    let mut resealed = 0;
    for place in sealed::Place::ALL {
        let mut connection = store.read().await?;
        let kept = sealed::list(&mut connection, place).await?;
        drop(connection);
        for text in kept {
            if let Some(new) = sealer.resealed(&text.sealed, &context(place, &text)) {
                let mut tx = store.begin().await?;
                // A secret that was replaced meanwhile is sealed with the current key.
                resealed += usize::from(sealed::replace(&mut tx, place, &text, &new).await?);
                tx.commit().await?;
            }
        }
    }
    Ok(resealed)
}

/// How much another generation has sealed.
pub async fn count(store: &Store, sealer: &Sealer) -> Result<usize, ServiceError> {
    let mut older = 0;
    let mut connection = store.read().await?;
    for place in sealed::Place::ALL {
        let kept = sealed::list(&mut connection, place).await?;
        let other = |text: &&sealed::Text| {
            sealer
                .resealed(&text.sealed, &context(place, text))
                .is_some()
        };
        older += kept.iter().filter(other).count();
    }
    Ok(older)
}

/// What a text was sealed together with.
fn context(place: sealed::Place, text: &sealed::Text) -> String {
    match place {
        sealed::Place::Webhook | sealed::Place::PreviousWebhook => text.id.clone(),
        sealed::Place::Instance => InstanceConfig::context(&text.org, &text.instance),
    }
}
