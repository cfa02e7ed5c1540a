//! Re-encryption of long-lived secrets with the current master key: those of webhook
//! endpoints and of organizations' provider instances and issuers, passcodes, open links, and the key of the fingerprints. All other encrypted data expires
//! within a day.

use crate::envelopes::open_links::token_context;
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_platform::ServiceError;
use holdfast_platform::access::single_sign_on::secret_context;
use holdfast_platform::passcodes::passcode_context;
use holdfast_platform::permits::double_pledge::KEY_CONTEXT;
use holdfast_platform::providers::instance::InstanceConfig;
use holdfast_store::{Store, sealed};

/// Re-encrypts secrets of older key generations. Returns their number.
pub async fn reencrypt(store: &Store, cipher: &AtRestCipher) -> Result<usize, ServiceError> {
    let mut resealed = 0;
    for place in sealed::SealedColumn::ALL {
        let mut connection = store.read().await?;
        let kept = sealed::list(&mut connection, place).await?;
        drop(connection);

        for text in kept {
            if let Some(new) = cipher.reencrypted(&text.sealed, &context(place, &text)) {
                // One transaction for each secret: a crash keeps the work that is done.
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
pub async fn count(store: &Store, cipher: &AtRestCipher) -> Result<usize, ServiceError> {
    let mut older = 0;
    let mut connection = store.read().await?;
    for place in sealed::SealedColumn::ALL {
        let kept = sealed::list(&mut connection, place).await?;
        let other = |text: &&sealed::SealedText| {
            cipher
                .reencrypted(&text.sealed, &context(place, text))
                .is_some()
        };
        older += kept.iter().filter(other).count();
    }

    Ok(older)
}

/// Returns the context that binds a secret's ciphertext to its row.
fn context(place: sealed::SealedColumn, text: &sealed::SealedText) -> String {
    match place {
        sealed::SealedColumn::Webhook | sealed::SealedColumn::PreviousWebhook => text.id.clone(),
        sealed::SealedColumn::Passcode | sealed::SealedColumn::OpenLinkCode => {
            passcode_context(&text.org)
        }
        sealed::SealedColumn::OpenLink => token_context(&text.org),
        sealed::SealedColumn::Fingerprints => KEY_CONTEXT.into(),
        sealed::SealedColumn::SignOn => secret_context(&text.org),
        sealed::SealedColumn::Instance | sealed::SealedColumn::RequestedInstance => {
            InstanceConfig::context(&text.org, &text.instance)
        }
    }
}
