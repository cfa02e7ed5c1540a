// Makes example-sign.wasm.
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const { component } = await componentize(await readFile("plugin.js", "utf8"), {
  witPath: "wit",
  worldName: "signing-provider",
  // A plugin sends requests but does not serve any.
  disableFeatures: ["fetch-event"],
});
await writeFile("example-sign.wasm", component);
