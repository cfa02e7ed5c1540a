// The client without a server: how it sends, repeats and fails; and webhooks.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConflictError, Holdfast, HoldfastError, InvalidRequestError, NotFoundError, RateLimitError, WebhookVerificationError,
  signWebhook, verifyWebhook,
} from "../dist/index.js";

const ENVELOPE = { envelope_id: "env_01jdk7m3e8f4x9s2w5v6b0c1dc" };

/** Client whose requests are answered by functions, one after the other. */
function client(...answers) {
  const asked = [];
  const fetch = async (url, init) => {
    asked.push({ url, ...init });
    return answers[Math.min(asked.length, answers.length) - 1](url, init);
  };
  const made = new Holdfast({ url: "https://sign.example/", apiKey: "lk_1", token: "jwt", fetch });
  return { made, asked };
}

const json = (status, body, headers = {}) => () =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
const lost = () => {
  throw new TypeError("fetch failed");
};

test("an operation sends its path, query, body and credential", async () => {
  const { made, asked } = client(json(200, { data: [ENVELOPE], meta: { page: 2, limit: 1, total: 2 } }));
  const page = await made.listEnvelopes({ status: "sent", page: 2 });
  assert.deepEqual(page, { data: [ENVELOPE], meta: { page: 2, limit: 1, total: 2 } });
  assert.equal(asked[0].url, "https://sign.example/api/v2/partner/envelopes?page=2&status=sent");
  assert.equal(asked[0].headers["x-api-key"], "lk_1");
  assert.equal(asked[0].headers["idempotency-key"], undefined);

  const sent = client(json(200, { data: {} }));
  await sent.made.correctSigner({ id: "env_1", role: "Co Buyer/2", body: { email: "kim@elm.example" } });
  assert.equal(sent.asked[0].method, "PATCH");
  assert.equal(sent.asked[0].url, "https://sign.example/api/v2/partner/envelopes/env_1/signers/Co%20Buyer%2F2");
  assert.equal(sent.asked[0].body, '{"email":"kim@elm.example"}');

  const user = client(json(200, { data: { envelopes_created: 1 } }));
  await user.made.getUsage();
  assert.equal(user.asked[0].headers.authorization, "Bearer jwt");
});

test("what is missing or unknown is named before anything is sent", async () => {
  const { made, asked } = client(json(200, {}));
  await assert.rejects(made.getEnvelope({}), /id is required/);
  await assert.rejects(made.listEnvelopes({ stauts: "sent" }), /unknown: stauts/);
  const without = new Holdfast({ url: "https://sign.example" });
  await assert.rejects(without.listEnvelopes(), /apiKey is required/);
  await assert.rejects(new Holdfast({ apiKey: "lk_1" }).listEnvelopes(), /url is required/);
  assert.equal(asked.length, 0);
});

test("a lost answer is asked for again, with the same Idempotency-Key", async () => {
  const { made, asked } = client(lost, json(503, { error: "Try later" }), json(201, { data: ENVELOPE }));
  assert.deepEqual(await made.createEnvelope({ body: { name: "Contract" } }), ENVELOPE);
  const keys = new Set(asked.map((one) => one.headers["idempotency-key"]));
  assert.equal(asked.length, 3);
  assert.equal(keys.size, 1);
  assert.match([...keys][0], /^[0-9a-f-]{36}$/);

  const own = client(json(201, { data: ENVELOPE }));
  await own.made.createEnvelope({ body: { name: "Contract" } }, { idempotencyKey: "deal-2041" });
  assert.equal(own.asked[0].headers["idempotency-key"], "deal-2041");
});

test("a request that could do something twice is not repeated", async () => {
  const { made, asked } = client(lost);
  await assert.rejects(made.changeUser({ id: "usr_1", body: { role: "admin" } }), TypeError);
  assert.equal(asked.length, 1);
});

test("Retry-After is waited for", async () => {
  const { made, asked } = client(json(429, { error: "Rate limit exceeded" }, { "retry-after": "1" }), json(200, { data: ENVELOPE }));
  const begun = performance.now();
  await made.getEnvelope({ id: "env_1" });
  assert.ok(performance.now() - begun >= 990);
  assert.equal(asked.length, 2);
});

test("a body that breaks off is asked for again, and one that takes too long ends", async () => {
  const broken = () => new Response(new ReadableStream({ start: (body) => body.error(new TypeError("terminated")) }));
  const { made, asked } = client(broken, json(200, { data: ENVELOPE }));
  assert.deepEqual(await made.getEnvelope({ id: "env_1" }), ENVELOPE);
  assert.equal(asked.length, 2);

  const silent = (_url, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const options = { url: "https://sign.example", apiKey: "k", retries: 0, timeout: 20 };
  const late = new Holdfast({ ...options, fetch: silent }).listEnvelopes();
  await assert.rejects(late, (error) => error.name === "TimeoutError");
});

test("errors have a type, and what the API says", async () => {
  const issue = { code: "invalid_type", expected: "a value", received: "undefined", path: ["name"], message: "Required" };
  for (const [status, kind] of [[404, NotFoundError], [409, ConflictError], [422, InvalidRequestError], [418, HoldfastError]]) {
    const body = { error: "No", code: "kba_required", details: [issue] };
    const { made } = client(json(status, body, { "x-request-id": "req_1" }));
    const error = await made.createEnvelope({ body: {} }).catch((error) => error);
    assert.ok(error instanceof kind && error instanceof HoldfastError);
    assert.equal(error.message, "No");
    assert.equal(error.status, status);
    assert.equal(error.code, "kba_required");
    assert.equal(error.requestId, "req_1");
    assert.deepEqual(error.issues, [issue]);
  }
  const { made } = client(() => new Response("<html>", { status: 429 }));
  const error = await new Holdfast({ url: "https://sign.example", apiKey: "k", retries: 0, fetch: async () => new Response("<html>", { status: 429 }) })
    .listEnvelopes()
    .catch((error) => error);
  assert.ok(error instanceof RateLimitError, String(made));
  assert.deepEqual(error.issues, []);
});

test("lists are gone through by page or by their last item", async () => {
  const pages = client(
    json(200, { data: [{ user_id: "usr_3" }, { user_id: "usr_2" }], meta: { page: 1, limit: 2, total: 3 } }),
    json(200, { data: [{ user_id: "usr_1" }], meta: { page: 2, limit: 2, total: 3 } }),
  );
  const found = [];
  for await (const one of pages.made.each("listTemplates", { limit: 2 })) found.push(one.user_id);
  assert.deepEqual(found, ["usr_3", "usr_2", "usr_1"]);
  assert.match(pages.asked[1].url, /page=2/);

  // The first page has a number, and those behind it follow its last item.
  const both = client(
    json(200, { data: [{ envelope_id: "env_3" }, { envelope_id: "env_2" }], meta: { page: 1, limit: 2, total: 3 } }),
    json(200, { data: [{ envelope_id: "env_1" }], meta: { limit: 2, has_more: false } }),
  );
  const stable = [];
  for await (const one of both.made.each("listEnvelopes", { limit: 2 })) stable.push(one.envelope_id);
  assert.deepEqual(stable, ["env_3", "env_2", "env_1"]);
  assert.match(both.asked[1].url, /starting_after=env_2/);

  const cursor = client(
    json(200, { data: [{ transfer_id: "trf_2" }], meta: { limit: 1, has_more: true } }),
    json(200, { data: [{ transfer_id: "trf_1" }], meta: { limit: 1, has_more: false } }),
  );
  const all = [];
  for await (const one of cursor.made.each("listTransfers", { limit: 1 })) all.push(one.transfer_id);
  assert.deepEqual(all, ["trf_2", "trf_1"]);
  assert.match(cursor.asked[1].url, /starting_after=trf_2/);

  // A row of a tape has its line as its place, and may name an envelope.
  const rows = client(
    json(200, { data: [{ line: 2, envelope_id: "env_1" }], meta: { limit: 1, has_more: true } }),
    json(200, { data: [{ line: 3, envelope_id: null }], meta: { limit: 1, has_more: false } }),
  );
  const lines = [];
  for await (const one of rows.made.each("listTapeRows", { id: "tap_1" })) lines.push(one.line);
  assert.deepEqual(lines, [2, 3]);
  assert.match(rows.asked[1].url, /starting_after=2/);

  const whole = client(json(200, { data: [{ endpoint_id: "whe_1" }], meta: { page: 1, limit: 100, total: 1 } }));
  for await (const one of whole.made.each("listWebhookEndpoints")) assert.equal(one.endpoint_id, "whe_1");
  assert.equal(whole.asked.length, 1);
  assert.match(whole.asked[0].url, /\/endpoints(\?|$)/);
});

test("files are sent as forms and received as streams", async () => {
  const { made, asked } = client(json(200, { data: ENVELOPE }));
  await made.uploadDocument({ id: "env_1", body: { file: new File(["%PDF-1.7"], "contract.pdf", { type: "application/pdf" }) } });
  assert.ok(asked[0].body instanceof FormData);
  assert.equal(asked[0].body.get("file").name, "contract.pdf");
  assert.equal(asked[0].headers["content-type"], undefined);

  // A form without a file is a form nevertheless.
  const pulled = client(json(201, { data: {} }));
  await pulled.made.uploadComponent({ body: { name: "rules-acme", version: "1.0.0", from: "registry.example/rules:1" } });
  assert.equal(pulled.asked[0].body.get("from"), "registry.example/rules:1");

  // The time of a try ends with the headers of a file.
  const slow = (_url, { signal }) => {
    const start = (body) => setTimeout(() => (signal.aborted ? body.error(signal.reason) : body.close()), 60);
    return Promise.resolve(new Response(new ReadableStream({ start })));
  };
  const options = { url: "https://sign.example", apiKey: "k", timeout: 20, fetch: slow };
  assert.equal(await (await new Holdfast(options).getUnsignedDocument({ id: "env_1" })).text(), "");

  const headers = { "content-type": "application/pdf", "content-disposition": 'attachment; filename="env_1.pdf"', "content-length": "8" };
  const file = await client(() => new Response("%PDF-1.7", { headers })).made.getUnsignedDocument({ id: "env_1" });
  assert.equal(file.name, "env_1.pdf");
  assert.equal(file.contentType, "application/pdf");
  assert.equal(file.size, 8);
  assert.equal(await file.text(), "%PDF-1.7");
});

test("webhooks are verified, and can be signed for tests", () => {
  const event = { event_type: "vault.stored", event_id: "evt_1", org_id: "org_1", envelope_id: "env_1", timestamp: "2026-11-21T09:30:00.000Z", data: {} };
  for (const secret of ["whsec_c2VjcmV0", "plain secret"]) {
    const { headers, body } = signWebhook(secret, event);
    assert.deepEqual(verifyWebhook(secret, headers, body), event);
    assert.deepEqual(verifyWebhook(secret, new Headers(headers), Buffer.from(body)), event);
    const both = { ...headers, "webhook-signature": `v1,b2xk ${headers["webhook-signature"]}` };
    assert.deepEqual(verifyWebhook(secret, both, body), event);
    for (const [bad, text, why] of [
      [headers, `${body} `, /not that of the secret/],
      [{ ...headers, "webhook-signature": "" }, body, /missing/],
      [{ ...headers, "webhook-timestamp": "soon" }, body, /missing/],
      [signWebhook(secret, event, Date.now() - 301_000).headers, body, /too old/],
    ]) {
      assert.throws(() => verifyWebhook(secret, bad, text), (error) => error instanceof WebhookVerificationError && why.test(error.message));
    }
  }
  const { headers, body } = signWebhook("plain secret", event);
  for (const empty of ["", "whsec_"]) assert.throws(() => verifyWebhook(empty, headers, body), /the secret is empty/);
});
