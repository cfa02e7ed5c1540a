// A payment provider: implements the world of holdfast on top of the API of one vendor.
// The vendor, Example Pay, is fictitious: replace it with yours.

// Whether a text can be a part of a path.
const isId = (text) => /^[A-Za-z0-9_-]+$/.test(text);

const optional = (type, value) => (value == null ? undefined : is(type, value));

const STATES = { open: "requires-payment", paid: "paid", canceled: "canceled" };

// Minor units of a currency, which are 64 bits wide in the world.
function amount(value) {
  if (!Number.isSafeInteger(value) || value < 0) throw notUnderstood();
  return BigInt(value);
}

function intent(answer) {
  if (answer === undefined) throw { tag: "not-found" };
  const charge = object(answer);
  // Only money that has arrived counts. A state that the plugin does not know must not open the vault.
  if (!Object.hasOwn(STATES, is("string", charge.state))) throw notUnderstood();
  return {
    intentId: is("string", charge.id),
    clientSecret: is("string", charge.client_token),
    publishableKey: required("publishable_key"),
    page: optional("string", charge.page),
    // Only instances of the operator may have a script.
    script: undefined,
    status: STATES[charge.state],
    amount: amount(charge.amount),
    currency: is("string", charge.currency),
  };
}

export const payment = {
  // The vendor returns the existing charge for a known idempotency key, so a lost response charges nobody
  // twice.
  async createIntent(request) {
    const body = {
      reference: request.paymentId,
      contract: request.envelopeId,
      amount: Number(request.amount),
      currency: request.currency,
      account: request.connectedAccount ?? null,
      fee: request.platformFee === undefined ? null : Number(request.platformFee),
      email: request.payerEmail ?? null,
    };
    return intent(await ask("POST", "/charges", body, request.paymentId));
  },

  async readIntent(id) {
    // The id may come from a callback and becomes a part of the path.
    if (!isId(id)) throw { tag: "not-found" };
    return intent(await ask("GET", `/charges/${id}`));
  },

  // `X-Vendor-Signature` is the HMAC-SHA256 of the body, in hexadecimal.
  readCallback({ headers, body }) {
    const unverified = (val) => ({ tag: "unverified", val });
    const header = headers.find(([name]) => name.toLowerCase() === "x-vendor-signature");
    if (header === undefined) throw unverified("no X-Vendor-Signature header");
    const secret = open("webhook_secret");
    if (secret === undefined) throw unverified("no secret webhook_secret is configured");
    const digest = Array.from(secret.hmacSha256(body), (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (!equal(digest, header[1])) throw unverified("the signature does not match");
    let charge, event, total;
    try {
      const about = object(JSON.parse(new TextDecoder().decode(body)));
      charge = optional("string", about.charge);
      event = optional("string", about.event);
      total = about.total == null ? undefined : amount(about.total);
    } catch {
      throw { tag: "malformed", val: "not an Example Pay callback" };
    }
    if (charge === undefined) return { tag: "ignored" };
    const isReversal = (event === "refunded" || event === "disputed") && total !== undefined;
    return isReversal ? { tag: "reversal", val: [charge, total, event] } : { tag: "intent", val: charge };
  },
};

// Compares in constant time.
function equal(left, right) {
  let difference = left.length ^ right.length;
  for (let at = 0; at < left.length; at++) difference |= left.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}
