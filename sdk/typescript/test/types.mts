// Compiles if, and only if, the types of the client accept what the API accepts.
import { Holdfast, verifyWebhook, type Schemas } from "holdfast";

const holdfast = new Holdfast();
const { status } = await holdfast.getEnvelope({ id: "env_1" });
export const known: Schemas["EnvelopeStatus"] = status;
const page = await holdfast.listEnvelopes({ status: "sent" });
export const numbers: (number | undefined)[] = [page.meta.limit, page.meta.total];
export const names: string[] = page.data.map((one) => one.envelope_name);
for await (const transfer of holdfast.each("listTransfers")) names.push(transfer.transfer_id);
export const bytes: Uint8Array = await (await holdfast.getUnsignedDocument({ id: "env_1" })).bytes();
await holdfast.remindSigners({ id: "env_1" });
await holdfast.uploadDocument({ id: "env_1", body: { file: new Blob() } });
const event = verifyWebhook("whsec_c2VjcmV0", {}, "{}");
if (event.event_type === "envelope.declined") names.push(event.data.signer.email);

// @ts-expect-error a status is not any text
export const wrong: "sent" = status;
// @ts-expect-error there is no such parameter
await holdfast.listEnvelopes({ stauts: "sent" });
// @ts-expect-error the id is missing
await holdfast.getEnvelope({});
// @ts-expect-error the customer is missing
await holdfast.createEnvelope({ body: { envelope_name: "Contract" } });
// @ts-expect-error an upload takes a file
await holdfast.uploadDocument({ id: "env_1", body: { file: "contract.pdf" } });
// @ts-expect-error only lists have pages
holdfast.each("getEnvelope");
