// Requests to the vendor, and its responses.
//
// The host makes a fresh instance for every call, so no state survives a call. Thrown
// values are errors of the world: `{ tag, val }`.

import { open } from "holdfast:host/secrets@1.0.0";
import { get as setting } from "holdfast:host/settings@1.0.0";

const notConfigured = (val) => ({ tag: "not-configured", val });
const unreachable = (val) => ({ tag: "unreachable", val });
// Nothing of the answer is quoted, because it may be about a person.
const notUnderstood = () => unreachable("the answer is not understood");

// Returns a setting of the instance.
function required(name) {
  const value = setting(name);
  if (value === undefined) throw notConfigured(`setting ${name}`);
  return value;
}

// Sends JSON with `fetch` and parses the response; `undefined` if the vendor does not know the object.
// The host replaces the name of the secret by its value when the request leaves. The vendor answers a
// request with the idempotency key of an earlier one like that one.
async function ask(method, path, body, idempotencyKey) {
  const url = required("base_url").replace(/\/+$/, "") + path;
  if (open("api_key") === undefined) throw notConfigured("secret api_key");
  const headers = {
    authorization: "Bearer {{secret:api_key}}",
    accept: "application/json",
    "content-type": "application/json",
  };
  if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
  let answer, text;
  try {
    answer = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    text = await answer.text();
  } catch {
    // `fetch` gives no reason. The log of the host has it, for example a host name that is not
    // allowed.
    throw unreachable("no answer");
  }
  if (answer.status === 404) return undefined;
  check(answer.status, answer.headers.get("retry-after"), text);
  return parsed(text);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw notUnderstood();
  }
}

// Maps the status of a response to an error of the world. The text of a refusal is not passed on,
// because it may quote the request.
function check(status, seconds, text) {
  if (status >= 200 && status < 300) return;
  if (status === 401 || status === 403) throw notConfigured("the vendor does not accept api_key");
  if (status === 429) {
    throw { tag: "rate-limited", val: /^[0-9]{1,6}$/.test(seconds) ? Number(seconds) : undefined };
  }
  if (status < 400 || status >= 500) throw unreachable(`answered ${status}`);
  let code;
  try {
    code = JSON.parse(text).code;
  } catch {}
  const isCode = typeof code === "string" && /^[a-z_]{1,40}$/.test(code);
  throw { tag: "rejected", val: isCode ? code : `answered ${status}` };
}

// Checks a type: the host ends the whole call if a returned value has another type than the world
// declares.
function is(type, value) {
  if (typeof value !== type) throw notUnderstood();
  return value;
}

// Returns an object of the vendor.
function object(value) {
  if (typeof value !== "object" || value === null) throw notUnderstood();
  return value;
}
