# A provider of text messages: implements the world of holdfast on top of the API of one vendor.
# The vendor, Example Text, is fictitious: replace it with yours.


def wrong_address() -> Err:
    return not_configured("setting base_url: the vendor's API is not there")


class Messaging(exports.Messaging):
    def send(self, message: types.TextMessage) -> str:
        """The vendor returns the existing message for a known idempotency key, so a lost response sends nothing twice."""
        body = {"from": required("from"), "to": message.to, "text": message.text}
        taken = ask("POST", "/messages", body, message.id)
        if taken is None:
            raise wrong_address()
        # Some vendors answer 2xx for messages that they will never deliver. The reason contains no number.
        if taken.get("state") == "undeliverable":
            raise Err(types.ProviderError_Rejected("the number receives no text messages"))
        if taken.get("state") not in ("queued", "sent"):
            not_understood()
        return an(str, taken.get("id"))


class Probing(exports.Probing):
    def probe(self) -> None:
        # Checked without a request: a message without a sender is refused only when it is sent.
        required("from")
        account = ask("GET", "/account")
        if account is None:
            raise wrong_address()
        an(str, account.get("id"))
