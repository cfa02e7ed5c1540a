// A provider of text messages: implements the world of holdfast on top of the API of one vendor.
// The vendor, Example Text, is fictitious: replace it with yours.

const wrongAddress = () => notConfigured("setting base_url: the vendor's API is not there");

export const messaging = {
  // The vendor returns the existing message for a known idempotency key, so a lost response sends nothing
  // twice.
  async send({ id, to, text }) {
    const answer = await ask("POST", "/messages", { from: required("from"), to, text }, id);
    if (answer === undefined) throw wrongAddress();
    const taken = object(answer);
    // Some vendors answer 2xx for messages that they will never deliver. The reason contains no number.
    if (taken.state === "undeliverable") throw { tag: "rejected", val: "the number receives no text messages" };
    if (taken.state !== "queued" && taken.state !== "sent") throw notUnderstood();
    return is("string", taken.id);
  },
};

export const probing = {
  async probe() {
    // Checked without a request: a message without a sender is refused only when it is sent.
    required("from");
    const account = await ask("GET", "/account");
    if (account === undefined) throw wrongAddress();
    is("string", object(account).id);
  },
};
