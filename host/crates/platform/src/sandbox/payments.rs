//! Payment sandbox: the payer pays by pressing a button.

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};

use super::Sandbox;
use holdfast_components::ComponentError;
use holdfast_components::providers::payment::{
    Callback, CallbackError, CallbackSubject, Intent, IntentRequest, PaymentStatus,
};
use holdfast_components::providers::{PaymentProvider, ProviderError};
use holdfast_domain::id::OrgId;
use holdfast_domain::job::PaidInSandbox;
use holdfast_domain::token::random;
use holdfast_store::sandbox::{self, SandboxIntent as Kept};
use holdfast_store::{StoreError, jobs};

/// Sandbox for one organization; without one it can only read callbacks.
pub(super) struct SandboxPayments {
    pub sandbox: Sandbox,
    pub org: Option<OrgId>,
}

impl PaymentProvider for SandboxPayments {
    fn create_intent(
        &self,
        request: IntentRequest,
    ) -> BoxFuture<'_, Result<Intent, ProviderError>> {
        async move {
            let kept = self.create(request).await?;
            Ok(self.sandbox.shown(kept))
        }
        .boxed()
    }

    fn read_intent<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Intent, ProviderError>> {
        async move {
            let found = self.sandbox.intent(id).await.map_err(failed)?;
            // The lookup by id is not scoped by organization, so the owner is checked here.
            let own = found.filter(|intent| Some(&intent.org) == self.org.as_ref());
            Ok(self.sandbox.shown(own.ok_or(ProviderError::NotFound)?))
        }
        .boxed()
    }

    fn read_callback(
        &self,
        _: Callback,
    ) -> BoxFuture<'_, Result<Result<CallbackSubject, CallbackError>, ComponentError>> {
        let why = "the sandbox sends no requests".to_owned();
        ready(Ok(Err(CallbackError::Unverified(why)))).boxed()
    }
}

impl SandboxPayments {
    async fn create(&self, request: IntentRequest) -> Result<Kept, ProviderError> {
        // A callback has no organization, and only a caller with one may create a payment.
        let no_org = || ProviderError::NotConfigured("no organization is named".into());
        let org = self.org.clone().ok_or_else(no_org)?;
        let too_much = |_| ProviderError::Rejected("the amount is too large".into());
        let kept = Kept {
            // The unguessable id is the only credential of the payer's page.
            id: format!("pi_{:02x}{}", org.bucket(), hex::encode(random::<20>())),
            payment: request.payment_id,
            amount: request.amount.try_into().map_err(too_much)?,
            currency: request.currency,
            paid: false,
            org,
        };

        let insert = async {
            let mut tx = self.sandbox.store.begin().await?;
            // The store returns the existing intent of a repeated payment, as a processor does for an
            // idempotency key.
            let kept = sandbox::insert(&mut tx, kept, self.sandbox.clock.now()).await?;
            tx.commit().await?;
            Ok(kept)
        };

        insert.await.map_err(failed)
    }
}

/// Converts a database error; the sandbox stores its records in this server's database.
fn failed(error: StoreError) -> ProviderError {
    tracing::error!(%error, "the payment sandbox failed");
    ProviderError::Unreachable("the sandbox's records could not be read or written".into())
}

impl Sandbox {
    fn shown(&self, kept: Kept) -> Intent {
        Intent {
            client_secret: format!("{}_secret", kept.id),
            publishable_key: "pk_sandbox".into(),
            page: Some(format!("{}/sandbox/payments/{}", self.public_url, kept.id)),
            script: None,
            status: if kept.paid {
                PaymentStatus::Paid
            } else {
                PaymentStatus::RequiresPayment
            },
            amount: kept.amount.unsigned_abs(),
            currency: kept.currency,
            intent_id: kept.id,
        }
    }

    /// Returns a payment by the id in its page's URL.
    pub async fn intent(&self, id: &str) -> Result<Option<Kept>, StoreError> {
        // The payer's page knows the id only. The bucket in it names the partition to read.
        let bucket = id.strip_prefix("pi_").and_then(|rest| rest.get(..2));
        let Some(bucket) = bucket.and_then(|digits| i64::from_str_radix(digits, 16).ok()) else {
            return Ok(None);
        };
        let mut connection = self.store.read().await?;
        sandbox::get(&mut connection, bucket, id).await
    }

    /// Marks a payment as paid and adds the job that reports it. Paying twice has no effect.
    pub async fn pay(&self, intent: &Kept) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        // Only the first call adds the job, in the same transaction.
        if sandbox::set_paid(&mut tx, intent).await? {
            let job = PaidInSandbox::of(&intent.id);
            jobs::insert(&mut tx, &intent.org, &job, None, now).await?;
        }
        tx.commit().await
    }
}
