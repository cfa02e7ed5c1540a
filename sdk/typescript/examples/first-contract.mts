// From a PDF to the evidence bundle of a signed and vaulted contract. Argument: the PDF.
import { openAsBlob } from "node:fs";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";

const holdfast = new Holdfast();
const areas = [{ page: 1, x: 0.1, y: 0.85, w: 0.3, h: 0.04 }];
const fields = [{ name: "Signature", type: "signature", role: "Buyer", placement: { mode: "absolute", areas } }];
const file = await openAsBlob(process.argv[2]!, { type: "application/pdf" });
const { template_id } = await holdfast.createTemplate({
  body: { file, name: "Contract", fields_json: JSON.stringify(fields) },
});
const { envelope_id: id, sign_url } = await holdfast.createEnvelope({
  body: {
    template_id,
    envelope_name: "Contract",
    customer_name: "Jordan Ellery",
    customer_email: "jordan@example.com",
    secured_party: { name: "Crescent Auto Finance, LLC", role: "assignee" },
  },
});
console.log(`sign at ${sign_url}`);
// A production system receives the webhook vault.stored instead of asking.
for (let tries = 0; (await holdfast.getEnvelopeStatus({ id })).status !== "vaulted"; tries += 1) {
  if (tries === 900) throw new Error("the contract is not vaulted after a quarter of an hour");
  await sleep(1000);
}
console.log(`compliance score ${(await holdfast.getCompliance({ id })).compliance.score}`);
await holdfast.vaultOut({
  id,
  body: {
    recipient_name: "Robin Park",
    recipient_organization: "Crescent Auto Finance, LLC",
    recipient_email: "robin.park@crescent.example",
    purpose_of_release: "Assignment of the contract",
    acknowledge_authoritative_copy: true,
    acknowledge_chain_of_custody: true,
    authorized_signature: "Casey Pine",
  },
});
await writeFile("bundle.zip", (await holdfast.getEvidenceBundle({ id })).stream);
console.log(`log key ${(await holdfast.getLedgerHead()).public_key}`);
