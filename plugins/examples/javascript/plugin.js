// A signing provider: what holdfast asks, in the words of one vendor's API. The vendor
// is Example Sign, which nobody offers: put yours in its place.
//
// The host makes a fresh instance for every call, so nothing is kept between two. What
// is thrown is an error of the world: `{ tag, val }`.

import { fetch as fetchBlob, send } from "holdfast:host/http@1.0.0";
import { open } from "holdfast:host/secrets@1.0.0";
import { get as setting } from "holdfast:host/settings@1.0.0";

const notConfigured = (val) => ({ tag: "not-configured", val });
const unreachable = (val) => ({ tag: "unreachable", val });

function address(path) {
  const base = setting("base_url");
  if (base === undefined) throw notConfigured("setting base_url");
  return base.replace(/\/+$/, "") + path;
}

// What an answer's status means to the host.
function check(status, header, body) {
  if (status >= 200 && status < 300) return;
  if (status === 401 || status === 403) throw notConfigured("the vendor does not accept api_key");
  if (status === 404) throw { tag: "not-found" };
  if (status === 429) {
    const seconds = Number.parseInt(header("retry-after") ?? "", 10);
    throw { tag: "rate-limited", val: Number.isNaN(seconds) ? undefined : seconds };
  }
  if (status >= 500) throw unreachable(`answered ${status}`);
  let why;
  try {
    why = JSON.parse(body).error;
  } catch {}
  throw { tag: "rejected", val: why ?? `answered ${status}` };
}

// The text of the error is left out: it may quote the answer.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw unreachable("the answer is not understood");
  }
}

// Sends JSON with `fetch`. The host puts the secret in place of its name, on the way out.
async function ask(method, path, body) {
  let status, headers, text;
  try {
    const answer = await fetch(address(path), {
      method,
      headers: {
        authorization: "Bearer {{secret:api_key}}",
        accept: "application/json",
        "content-type": "application/json",
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    ({ status, headers } = answer);
    text = await answer.text();
  } catch (error) {
    if (error?.tag) throw error;
    throw unreachable("no answer");
  }
  check(status, (name) => headers.get(name), text);
  return text;
}

// Sends or fetches a document, which stays with the host and never comes through here.
function pass(call, method, path, body) {
  const key = open("api_key");
  if (key === undefined) throw notConfigured("secret api_key");
  const plain = (val) => ({ tag: "plain", val });
  let answer;
  try {
    answer = call({
      method,
      url: address(path),
      headers: [
        ["authorization", { tag: "secret", val: ["Bearer ", key] }],
        ["accept", plain("application/json")],
        ["content-type", plain("application/json")],
      ],
      body,
    });
  } catch (error) {
    if (!error.payload) throw error;
    const { tag, val } = error.payload;
    throw tag === "denied" ? notConfigured(val) : unreachable(val ?? tag);
  }
  const header = (name) => answer.headers.find(([known]) => known.toLowerCase() === name)?.[1];
  const text = answer.body instanceof Uint8Array ? new TextDecoder().decode(answer.body) : "";
  check(answer.status, header, text);
  return answer.body;
}

const sent = ({ fieldType, attributes, ...field }) => ({
  name: field.name,
  type: fieldType,
  role: field.role,
  required: field.required,
  readonly: field.readonly,
  ...(field.defaultValue === undefined ? {} : { default_value: field.defaultValue }),
  options: field.options,
  areas: field.areas,
});

const received = (field) => ({
  name: field.name,
  fieldType: field.type,
  role: field.role,
  required: field.required,
  readonly: field.readonly,
  defaultValue: field.default_value ?? undefined,
  options: field.options,
  areas: field.areas,
  attributes: [],
});

// A member that is missing makes it an answer that is not understood.
function understood(make) {
  try {
    return make();
  } catch {
    throw unreachable("the answer is not understood");
  }
}

function template(text) {
  const { id, name, roles, fields, documents } = parsed(text) ?? {};
  if (typeof id !== "string" || !Array.isArray(roles)) throw unreachable("the answer is not understood");
  return understood(() => ({ templateId: id, name, roles, fields: fields.map(received), documents }));
}

const STATUSES = ["pending", "completed", "declined", "expired"];
const OF_SIGNERS = ["pending", "viewed", "started", "completed", "declined"];

function known(status, all) {
  if (!all.includes(status)) throw unreachable(`${status} is no known status`);
  return status;
}

function submission(text) {
  const { id, status, archived, completed_at, submitters } = parsed(text) ?? {};
  if (typeof id !== "string" || !Array.isArray(submitters)) throw unreachable("the answer is not understood");
  return {
    submissionId: id,
    status: known(status, STATUSES),
    archived,
    completedAt: completed_at ?? undefined,
    submitters: submitters.map((one) => ({
      submitterId: one.id,
      name: one.name,
      email: one.email,
      role: one.role,
      status: known(one.status, OF_SIGNERS),
      signingUrl: one.signing_url,
      completedAt: one.completed_at ?? undefined,
      declineReason: one.decline_reason ?? undefined,
      values: one.values.map(({ name, type, value }) => ({ name, fieldType: type, value })),
      attributes: [],
    })),
  };
}

// What is gone already is as good as archived.
async function archive(path) {
  try {
    await ask("DELETE", path);
  } catch (error) {
    if (error.tag !== "not-found") throw error;
  }
}

export const signing = {
  // The vendor gives the same template again for an `external_id` that it knows.
  createTemplate(name, externalId, document, fields) {
    const begin = JSON.stringify({ external_id: externalId, name, fields: fields.map(sent) });
    const body = pass(send, "POST", "/templates", [
      { tag: "text", val: `${begin.slice(0, -1)},"document":"` },
      { tag: "blob-base64", val: document },
      { tag: "text", val: '"}' },
    ]);
    return template(new TextDecoder().decode(body));
  },

  async readTemplate(id) {
    return template(await ask("GET", `/templates/${id}`));
  },

  // The host repeats a call whose end it did not see: what is there is not added again.
  async addFields(id, fields) {
    const there = parsed(await ask("GET", `/templates/${id}`)).fields ?? [];
    const same = (field) => JSON.stringify(sent(received(field)));
    const known = new Set(understood(() => there.map(same)));
    const added = fields.map(sent).filter((field) => !known.has(JSON.stringify(field)));
    return template(await ask("POST", `/templates/${id}/fields`, { fields: added }));
  },

  async cloneTemplate(id, name, externalId) {
    return template(await ask("POST", `/templates/${id}/copies`, { external_id: externalId, name }));
  },

  archiveTemplate: (id) => archive(`/templates/${id}`),

  async createSubmission(request) {
    const submitters = request.submitters.map(({ name, email, role, values }) => ({
      name,
      email,
      role,
      values: Object.fromEntries(values),
    }));
    return submission(
      await ask("POST", "/submissions", {
        template_id: request.templateId,
        external_id: request.externalId,
        name: request.name,
        ordered: request.preserveOrder,
        submitters,
      }),
    );
  },

  async readSubmission(id) {
    return submission(await ask("GET", `/submissions/${id}`));
  },

  archiveSubmission: (id) => archive(`/submissions/${id}`),

  signedDocument(id) {
    const blob = pass(fetchBlob, "GET", `/submissions/${id}/document`, []);
    if (new TextDecoder().decode(blob.read(0n, 5)) !== "%PDF-") throw unreachable("the document is no PDF");
    return blob;
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
    let about;
    try {
      about = JSON.parse(new TextDecoder().decode(body));
    } catch {}
    if (about === null || typeof about !== "object") throw { tag: "malformed", val: "not an Example Sign callback" };
    if (about.submission_id === undefined) return { tag: "ignored" };
    if (about.submitter_id === undefined) return { tag: "submission", val: about.submission_id };
    return { tag: "submitter", val: [about.submitter_id, about.submission_id] };
  },
};

// Compares without stopping at the first difference.
function equal(left, right) {
  let difference = left.length ^ right.length;
  for (let at = 0; at < left.length; at++) difference |= left.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}
