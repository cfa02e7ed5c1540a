// From a PDF to the evidence bundle of a signed and vaulted contract.
//
//   BASE_URL=https://host/api/v2 API_KEY=lk_live_… npx tsx first-contract.mts contract.pdf

import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const { BASE_URL, API_KEY } = process.env as Record<string, string>;

const fields = [
  {
    name: "Buyer signature",
    type: "signature",
    role: "Buyer",
    required: true,
    placement: { mode: "absolute", areas: [{ page: 1, x: 0.1, y: 0.85, w: 0.3, h: 0.04 }] },
  },
];

interface Envelope {
  envelope_id: string;
  sign_url: string;
}

/** Sends a request; an error carries the message of the API. */
async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { "X-API-Key": API_KEY, ...init.headers };
  const answer = await fetch(BASE_URL + path, { ...init, headers });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

async function data<T>(path: string, init?: RequestInit): Promise<T> {
  return ((await (await call(path, init)).json()) as { data: T }).data;
}

function post<T>(path: string, body: unknown): Promise<T> {
  // With the same Idempotency-Key, a repeated request returns the first answer.
  const headers = { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  return data(path, { method: "POST", headers, body: JSON.stringify(body) });
}

const form = new FormData();
form.set("name", "Contract");
form.set("fields_json", JSON.stringify(fields));
form.set("file", new Blob([await readFile(process.argv[2])], { type: "application/pdf" }), "contract.pdf");
const template = await data<{ template_id: string }>("/partner/templates", { method: "POST", body: form });

const envelope = await post<Envelope>("/partner/envelopes", {
  template_id: template.template_id,
  envelope_name: "Contract",
  customer_name: "Jordan Ellery",
  customer_email: "jordan@example.com",
  secured_party: { name: "Crescent Auto Finance, LLC", role: "assignee" },
});
const path = `/partner/envelopes/${envelope.envelope_id}`;
console.log("sign at", envelope.sign_url);

// A production system receives the webhook vault.stored instead of asking.
while ((await data<{ status: string }>(`${path}/status`)).status !== "vaulted") await sleep(1000);
const { compliance } = await data<{ compliance: { score: number } }>(`${path}/compliance`);
console.log("compliance score", compliance.score);

// The assignment: the authoritative copy leaves this vault, and the bundle is its evidence.
await post(`${path}/vault-out`, {
  recipient_name: "Robin Park",
  recipient_organization: "Crescent Auto Finance, LLC",
  recipient_email: "robin.park@crescent.example",
  purpose_of_release: "Assignment of the contract",
  acknowledge_authoritative_copy: true,
  acknowledge_chain_of_custody: true,
  authorized_signature: "Casey Pine",
});
await writeFile("bundle.zip", Buffer.from(await (await call(`${path}/bundle`)).arrayBuffer()));
console.log("log key", (await data<{ public_key: string }>("/ledger/head")).public_key);
