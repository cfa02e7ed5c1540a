// Calls every operation of the API once, at a real server: HOLDFAST_URL, HOLDFAST_API_KEY, HOLDFAST_TOKEN, HOLDFAST_ORG
// and HOLDFAST_EMBED_TOKEN. An operation may refuse, as the objects of most examples do not exist, but only in the ways
// that the document names, and for another reason than its path, method, parameters or credential.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Holdfast, HoldfastError } from "../dist/index.js";
import { operations } from "../dist/generated/operations.js";

const client = new Holdfast({ embedToken: process.env.HOLDFAST_EMBED_TOKEN, retries: 0 });
const document = await (await fetch(`${process.env.HOLDFAST_URL}/api/v2/openapi.json`)).json();
const described = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
);
// Changes of the organization come last: they could make later calls fail.
described.sort((one, other) => Number(one.path === "/organization") - Number(other.path === "/organization"));

const resolved = (schema) => (schema.$ref ? document.components.schemas[schema.$ref.split("/").at(-1)] : schema);

/** A value that a parameter allows. */
function value(parameter) {
  const schema = resolved(parameter.schema);
  const id = /^\^\(?(\w+?_)/.exec(schema.pattern ?? "")?.[1];
  const known = { slot: "rules.compliance", role: "Buyer", sha256: "0".repeat(64), instance: "embedded", token: "t" };
  const of = schema.anyOf?.[0] ? resolved(schema.anyOf[0]) : schema;
  return known[parameter.name] ?? (id ? `${id}01jdk7m3e8f4x9s2w5v6b0c1dc` : (of.enum?.[0] ?? of.oneOf?.[0]?.const ?? "env_01jdk7m3e8f4x9s2w5v6b0c1dc"));
}

function body(content) {
  const form = content["multipart/form-data"];
  if (!form) return content["application/json"]?.example;
  return { ...form.example, file: new File(["%PDF-1.7"], "contract.pdf", { type: "application/pdf" }) };
}

test("there is a method for every operation", () => {
  const named = described.map(({ operation }) => operation.operationId).sort();
  assert.deepEqual(Object.keys(operations).sort(), named);
  for (const name of named) assert.equal(typeof client[name], "function", name);
});

for (const { path, method, operation } of described) {
  const id = operation.operationId;
  test(`${id} reaches ${method} ${path}`, async () => {
    const input = {};
    for (const parameter of operation.parameters ?? []) {
      const needed = parameter.in === "path" || (parameter.in === "query" && parameter.required);
      if (needed) input[parameter.name] = parameter.name === "email" ? "kim@elm.example" : value(parameter);
    }
    const sent = operation.requestBody && body(operation.requestBody.content);
    if (sent) input.body = sent;
    try {
      const answer = await client[id](input, { signal: AbortSignal.timeout(20_000) });
      if (operations[id].file) await answer.stream.cancel();
      else if (operations[id].list) assert.ok(Array.isArray(answer.data));
      else assert.notEqual(answer, undefined);
    } catch (error) {
      assert.ok(error instanceof HoldfastError, String(error.stack));
      assert.ok(operation.responses[error.status], `${error.status}: ${error.message}`);
      // Callbacks of providers are signed by those.
      const credential = operation.security.length > 0 ? [401] : [];
      assert.ok(![400, 405, ...credential].includes(error.status), `${error.status}: ${error.message}`);
      assert.notEqual(error.message, "Not found");
    }
  });
}
