//! Re-encryption of long-lived secrets with the current master key: those of webhook
//! endpoints and of organizations' provider instances. All other encrypted data expires
//! within a day.

use crate::domain::seal::Sealer;
use crate::service::ServiceError;
use crate::service::signing::provider_instance::InstanceConfig;
use crate::store::{Store, sealed};

/// Re-encrypts secrets of older key generations. Returns their number.
pub async fn reseal(store: &Store, sealer: &Sealer) -> Result<usize, ServiceError> {
    let mut resealed = 0;
    for place in sealed::Place::ALL {
        let mut connection = store.read().await?;
        let kept = sealed::list(&mut connection, place).await?;
        drop(connection);
        for text in kept {
            if let Some(new) = sealer.resealed(&text.sealed, &context(place, &text)) {
                let mut tx = store.begin().await?;
                // Compare-and-swap: a secret replaced meanwhile uses the current key already.
                resealed += usize::from(sealed::replace(&mut tx, place, &text, &new).await?);
                tx.commit().await?;
            }
        }
    }
    Ok(resealed)
}

/// Returns the number of secrets encrypted with an older key generation.
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

/// Returns the context that binds a secret's ciphertext to its row.
fn context(place: sealed::Place, text: &sealed::Text) -> String {
    match place {
        sealed::Place::Webhook | sealed::Place::PreviousWebhook => text.id.clone(),
        sealed::Place::Instance => InstanceConfig::context(&text.org, &text.instance),
    }
}
