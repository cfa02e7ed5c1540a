// Makes src/generated from the OpenAPI document: types by openapi-typescript, and a table of the operations.
// Argument: the document, docs/openapi.json by default.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const file = process.argv[2] ?? new URL("../../../docs/openapi.json", import.meta.url);
const document = JSON.parse(await readFile(file, "utf8"));
const folder = new URL("../src/generated/", import.meta.url);
await mkdir(folder, { recursive: true });

const header = "// Generated from the OpenAPI document; changes are lost.\n\n";
const types = await openapiTS(structuredClone(document), { defaultNonNullable: false });
await writeFile(new URL("schema.ts", folder), header + astToString(types));

const METHODS = ["get", "post", "put", "patch", "delete"];
const named = (operation, place) =>
  (operation.parameters ?? []).filter((one) => one.in === place).map((one) => one.name);
const row = (path, method, operation) => {
  const done = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
  const answer = done?.content?.["application/json"]?.schema?.properties ?? {};
  const body = operation.requestBody?.content ?? {};
  return {
    method: method.toUpperCase(),
    path,
    query: named(operation, "query"),
    repeatable: method === "get" || named(operation, "header").includes("Idempotency-Key"),
    org: named(operation, "header").includes("X-Org-Id"),
    security: Object.keys(operation.security?.[0] ?? {})[0] ?? null,
    form: "multipart/form-data" in body,
    json: "application/json" in body,
    list: "meta" in answer,
    file: !("data" in answer),
  };
};
const rows = Object.entries(document.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method]).map((method) => [
    item[method].operationId,
    row(path, method, item[method]),
  ]),
);
const table = rows.map(([id, row]) => `  ${id}: ${JSON.stringify(row)},`).join("\n");
await writeFile(
  new URL("operations.ts", folder),
  `${header}export const operations = {\n${table}\n} as const;\n`,
);
