//! Payment intents: request parameters and responses.

use serde::Deserialize;

/// A payment requested by the host.
pub(crate) struct WantedIntent<'a> {
    pub payment_id: &'a str,
    pub envelope_id: &'a str,
    /// Minor units of the currency.
    pub amount: u64,
    /// ISO 4217, upper case.
    pub currency: &'a str,
    pub connected_account: Option<&'a str>,
    pub platform_fee: Option<u64>,
    pub payer_email: Option<&'a str>,
}

/// Returns the parameters of `POST /v1/payment_intents`. A connected account makes it a destination
/// charge: that account receives the money, less the platform's fee.
pub(crate) fn parameters(wanted: &WantedIntent<'_>) -> Vec<(&'static str, String)> {
    let mut pairs = vec![
        ("amount", wanted.amount.to_string()),
        ("currency", wanted.currency.to_ascii_lowercase()),
        ("automatic_payment_methods[enabled]", "true".to_owned()),
        ("metadata[payment_id]", wanted.payment_id.to_owned()),
        ("metadata[envelope_id]", wanted.envelope_id.to_owned()),
    ];
    // A fee needs a receiver to be taken from. Stripe refuses one without a connected account.
    if let Some(account) = wanted.connected_account {
        pairs.push(("transfer_data[destination]", account.to_owned()));
        if let Some(fee) = wanted.platform_fee.filter(|fee| *fee > 0) {
            pairs.push(("application_fee_amount", fee.to_string()));
        }
    }

    if let Some(email) = wanted.payer_email {
        pairs.push(("receipt_email", email.to_owned()));
    }

    pairs
}

/// A payment intent as returned by Stripe.
#[derive(Debug, Deserialize)]
pub(crate) struct IntentAnswer {
    pub id: String,
    /// For the payer's browser.
    pub client_secret: String,
    pub status: String,
    /// Minor units.
    pub amount: u64,
    /// ISO 4217, lower case.
    pub currency: String,
}

/// Returns Stripe's units for one ISO 4217 minor unit, as a fraction (numerator, denominator), for
/// the currencies in which they differ. For historical reasons Stripe uses two digits for ISK and
/// UGX, and it uses none for MGA.
fn scale(currency: &str) -> (u64, u64) {
    match currency {
        "ISK" | "UGX" => (100, 1),
        "MGA" => (1, 100),
        _ => (1, 1),
    }
}

/// Converts an amount to Stripe's units. Returns `None` if Stripe cannot represent it: in
/// currencies with three digits the last digit must be 0.
pub(crate) fn to_stripe(currency: &str, amount: u64) -> Option<u64> {
    let (more, fewer) = scale(currency);
    // Stripe takes three-digit currencies in steps of ten only. Rounding would change the price.
    let three_digits = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"].contains(&currency);
    let step = if three_digits { 10 } else { fewer };
    // Refused before any money moves: an amount that was scaled wrongly is a wrong charge.
    amount
        .is_multiple_of(step)
        .then(|| amount.checked_mul(more))?
        .map(|amount| amount / fewer)
}

/// Converts an amount of Stripe to minor units of ISO 4217.
pub(crate) fn from_stripe(currency: &str, amount: u64) -> u64 {
    let (more, fewer) = scale(currency);
    amount.saturating_mul(fewer) / more
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: WantedIntent<'_> = WantedIntent {
        payment_id: "pay_1",
        envelope_id: "env_1",
        amount: 4900,
        currency: "USD",
        connected_account: Some("acct_1"),
        platform_fee: Some(100),
        payer_email: Some("kim@birch.example"),
    };

    fn value<'a>(pairs: &'a [(&str, String)], name: &str) -> Option<&'a str> {
        let found = pairs.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_connected_account_receives_the_amount_minus_the_fee() {
        let pairs = parameters(&WANTED);
        assert_eq!(value(&pairs, "amount"), Some("4900"));
        assert_eq!(value(&pairs, "currency"), Some("usd"));
        assert_eq!(value(&pairs, "transfer_data[destination]"), Some("acct_1"));
        assert_eq!(value(&pairs, "application_fee_amount"), Some("100"));
        assert_eq!(value(&pairs, "metadata[envelope_id]"), Some("env_1"));
        assert_eq!(value(&pairs, "receipt_email"), Some("kim@birch.example"));
    }

    #[test]
    fn no_fee_is_set_without_a_connected_account() {
        let pairs = parameters(&WantedIntent {
            connected_account: None,
            ..WANTED
        });
        assert_eq!(value(&pairs, "transfer_data[destination]"), None);
        assert_eq!(value(&pairs, "application_fee_amount"), None);
    }

    #[test]
    fn amounts_use_stripes_minor_units() {
        for (currency, ours, theirs) in [
            ("USD", 4900, 4900),
            ("JPY", 500, 500),
            ("ISK", 500, 50_000),
            ("UGX", 500, 50_000),
            ("MGA", 4900, 49),
            ("KWD", 1230, 1230),
        ] {
            assert_eq!(to_stripe(currency, ours), Some(theirs), "{currency}");
            assert_eq!(from_stripe(currency, theirs), ours, "{currency}");
        }

        for (currency, ours) in [("MGA", 4950), ("KWD", 1234), ("ISK", u64::MAX)] {
            assert_eq!(to_stripe(currency, ours), None, "{currency}");
        }
    }

    #[test]
    fn a_payment_intent_response_is_parsed() {
        let text = r#"{"id":"pi_1","client_secret":"pi_1_secret_x","status":"succeeded","amount":1,"currency":"usd"}"#;
        let answer: IntentAnswer = serde_json::from_str(text).unwrap();
        assert_eq!(
            (answer.id, answer.client_secret, answer.status),
            ("pi_1".into(), "pi_1_secret_x".into(), "succeeded".into())
        );
        assert_eq!((answer.amount, answer.currency), (1, "usd".into()));
    }
}
