// A signing provider: implements the world of holdfast on top of the API of one vendor.
// The vendor, Example Sign, is fictitious: replace it with yours.
//
// The host makes a fresh instance for every call, so no state survives a call. Thrown
// values are errors of the world: `{ tag, val }`.

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

// Maps the status of a response to an error of the world.
function check(status, header, body) {
  if (status >= 200 && status < 300) return;
  if (status === 401 || status === 403) throw notConfigured("the vendor does not accept api_key");
  if (status === 404) throw { tag: "not-found" };
  if (status === 429) {
    const seconds = header("retry-after");
    throw { tag: "rate-limited", val: /^[0-9]{1,6}$/.test(seconds) ? Number(seconds) : undefined };
  }
  if (status >= 500) throw unreachable(`answered ${status}`);
  let why;
  try {
    why = JSON.parse(body).error;
  } catch {}
  throw { tag: "rejected", val: typeof why === "string" ? why : `answered ${status}` };
}

// Sends JSON with `fetch`. The host replaces the name of the secret by its value when the request
// leaves.
async function ask(method, path, body) {
  const url = address(path);
  if (open("api_key") === undefined) throw notConfigured("secret api_key");
  let status, headers, text;
  try {
    const answer = await fetch(url, {
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
  } catch {
    // `fetch` gives no reason. The log of the host has it, for example a host name that is not
    // allowed.
    throw unreachable("no answer");
  }
  check(status, (name) => headers.get(name), text);
  return text;
}

// Sends or fetches a document, which stays with the host and never passes through this memory.
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

const sent = (field) => ({
  name: field.name,
  type: field.fieldType,
  role: field.role,
  required: field.required,
  readonly: field.readonly,
  ...(field.defaultValue === undefined ? {} : { default_value: field.defaultValue }),
  options: field.options,
  areas: field.areas,
});

// Checks a type: the host ends the whole call if a returned value has another type than the world
// declares.
function is(type, value) {
  if (typeof value !== type) throw new TypeError(`${value} is no ${type}`);
  return value;
}

const optional = (type, value) => (value == null ? undefined : is(type, value));

const received = (field) => ({
  name: is("string", field.name),
  fieldType: is("string", field.type),
  role: is("string", field.role),
  required: is("boolean", field.required),
  readonly: is("boolean", field.readonly),
  defaultValue: optional("string", field.default_value),
  options: field.options.map((option) => is("string", option)),
  areas: field.areas.map(({ page, x, y, w, h }) => ({
    page: is("number", page),
    x: is("number", x),
    y: is("number", y),
    w: is("number", w),
    h: is("number", h),
  })),
  attributes: [],
});

// Parses a response. A missing or malformed member gives `unreachable`, because the response is not
// understood.
function understood(text, make) {
  try {
    return make(JSON.parse(text));
  } catch {
    throw unreachable("the answer is not understood");
  }
}

const template = (text) =>
  understood(text, ({ id, name, roles, fields, documents }) => ({
    templateId: is("string", id),
    name: is("string", name),
    roles: roles.map((role) => is("string", role)),
    fields: fields.map(received),
    documents: is("number", documents),
  }));

const STATUSES = ["pending", "completed", "declined", "expired"];
const OF_SIGNERS = ["pending", "viewed", "started", "completed", "declined"];

function known(status, all) {
  if (!all.includes(status)) throw new TypeError(`${status} is no known status`);
  return status;
}

const submission = (text) =>
  understood(text, ({ id, status, archived, completed_at, submitters }) => ({
    submissionId: is("string", id),
    status: known(status, STATUSES),
    archived: is("boolean", archived),
    completedAt: optional("string", completed_at),
    submitters: submitters.map((one) => ({
      submitterId: is("string", one.id),
      name: is("string", one.name),
      email: is("string", one.email),
      role: is("string", one.role),
      status: known(one.status, OF_SIGNERS),
      signingUrl: is("string", one.signing_url),
      completedAt: optional("string", one.completed_at),
      declineReason: optional("string", one.decline_reason),
      values: one.values.map(({ name, type, value }) => ({
        name: is("string", name),
        fieldType: is("string", type),
        value: is("string", value),
      })),
      attributes: [],
    })),
  }));

// Treats a missing object as archived.
async function archive(path) {
  try {
    await ask("DELETE", path);
  } catch (error) {
    if (error.tag !== "not-found") throw error;
  }
}

export const signing = {
  // The vendor returns the existing template for a known `external_id`.
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

  // The host retries a call after a lost response, so fields that exist already are not added
  // again.
  async addFields(id, fields) {
    const there = template(await ask("GET", `/templates/${id}`)).fields;
    const known = new Set(there.map((field) => JSON.stringify(sent(field))));
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
    let submission, submitter;
    try {
      const about = JSON.parse(new TextDecoder().decode(body));
      submission = optional("string", about.submission_id);
      submitter = optional("string", about.submitter_id);
    } catch {
      throw { tag: "malformed", val: "not an Example Sign callback" };
    }
    if (submission === undefined) return { tag: "ignored" };
    if (submitter === undefined) return { tag: "submission", val: submission };
    return { tag: "submitter", val: [submitter, submission] };
  },
};

// Compares in constant time.
function equal(left, right) {
  let difference = left.length ^ right.length;
  for (let at = 0; at < left.length; at++) difference |= left.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}
