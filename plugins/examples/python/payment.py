# A payment provider: implements the world of holdfast on top of the API of one vendor.
# The vendor, Example Pay, is fictitious: replace it with yours.

import hmac

STATES = {
    "open": types.PaymentStatus.REQUIRES_PAYMENT,
    "paid": types.PaymentStatus.PAID,
    "canceled": types.PaymentStatus.CANCELED,
}


def amount(value: Any) -> int:
    """Checks minor units of a currency, which are 64 bits wide in the world."""
    if not 0 <= an(int, value) < 2**64:
        not_understood()
    return value


def optional(value: Any) -> str | None:
    return None if value is None else an(str, value)


def intent(charge: Json | None) -> types.Intent:
    if charge is None:
        raise Err(types.ProviderError_NotFound())
    # Only money that has arrived counts. A state that the plugin does not know must not open the vault.
    status = STATES.get(an(str, charge.get("state")))
    if status is None:
        not_understood()
    return types.Intent(
        an(str, charge.get("id")),
        an(str, charge.get("client_token")),
        required("publishable_key"),
        optional(charge.get("page")),
        # Only instances of the operator may have a script.
        None,
        status,
        amount(charge.get("amount")),
        an(str, charge.get("currency")),
    )


class Payment(exports.Payment):
    def create_intent(self, request: types.IntentRequest) -> types.Intent:
        """The vendor returns the existing charge for a known idempotency key, so a lost response charges nobody twice."""
        body = {
            "reference": request.payment_id,
            "contract": request.envelope_id,
            "amount": request.amount,
            "currency": request.currency,
            "account": request.connected_account,
            "fee": request.platform_fee,
            "email": request.payer_email,
        }
        return intent(ask("POST", "/charges", body, request.payment_id))

    def read_intent(self, intent_id: str) -> types.Intent:
        # The id may come from a callback and becomes a part of the path.
        if not re.fullmatch("[A-Za-z0-9_-]+", intent_id):
            raise Err(types.ProviderError_NotFound())
        return intent(ask("GET", f"/charges/{intent_id}"))

    def read_callback(self, callback: types.Callback) -> Any:
        """``X-Vendor-Signature`` is the HMAC-SHA256 of the body, in hexadecimal."""
        signature = [value for name, value in callback.headers if name.lower() == "x-vendor-signature"]
        if not signature:
            raise Err(types.CallbackError_Unverified("no X-Vendor-Signature header"))
        secret = secrets.open("webhook_secret")
        if secret is None:
            raise Err(types.CallbackError_Unverified("no secret webhook_secret is configured"))
        if not hmac.compare_digest(secret.hmac_sha256(callback.body).hex().encode(), signature[0].encode()):
            raise Err(types.CallbackError_Unverified("the signature does not match"))
        try:
            about = parsed(callback.body)
            charge, event = optional(about.get("charge")), optional(about.get("event"))
            total = None if about.get("total") is None else amount(about["total"])
        except Err:
            raise Err(types.CallbackError_Malformed("not an Example Pay callback"))
        if charge is None:
            return types.CallbackSubject_Ignored()
        if event in ("refunded", "disputed") and total is not None:
            return types.CallbackSubject_Reversal((charge, total, event))
        return types.CallbackSubject_Intent(charge)
