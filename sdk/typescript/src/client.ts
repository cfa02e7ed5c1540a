import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { errorOf } from "./errors.js";
import { operations } from "./generated/operations.js";
import type { Input, Item, ListId, OperationId, Output, ReceivedFile } from "./types.js";

export interface HoldfastOptions {
  /** Address of the installation, such as `https://sign.example`. `HOLDFAST_URL` when absent. */
  url?: string;
  /** API key of a partner. `HOLDFAST_API_KEY` when absent. */
  apiKey?: string;
  /** Bearer token of a user. `HOLDFAST_TOKEN` when absent. */
  token?: string;
  /** Id of the organization, which some operations of users need. `HOLDFAST_ORG` when absent. */
  org?: string;
  /** Token of a widget, as `issueEmbedToken` returns it. */
  embedToken?: string;
  /** Tries after the first one; 3 when absent. */
  retries?: number;
  /** Longest time of one try in milliseconds; 60,000 when absent. Files that are sent or received may take longer. */
  timeout?: number;
  /** Sends a request instead of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What a single call does differently. */
export interface CallOptions {
  /** The same key and body within 24 hours gives the first answer again. A new key for each call when absent. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

type Rest<Id extends OperationId> = {} extends Input<Id>
  ? [input?: Input<Id>, options?: CallOptions]
  : [input: Input<Id>, options?: CallOptions];

/** A method for each operation of the API. */
export type OperationMethods = {
  [Id in OperationId]: (...rest: Rest<Id>) => Promise<Output<Id>>;
};

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly query: readonly string[];
  readonly repeatable: boolean;
  /** Whether the operation names the organization. */
  readonly org: boolean;
  readonly security: "apiKey" | "bearer" | "embed" | null;
  readonly form: boolean;
  readonly json: boolean;
  readonly list: boolean;
  readonly file: boolean;
}

type AnyInput = Record<string, unknown> & { body?: unknown };

/** Longest wait between two tries in seconds. */
const LONGEST_WAIT = 60;

class Client {
  readonly #options: HoldfastOptions;

  constructor(options: HoldfastOptions = {}) {
    this.#options = options;
    for (const [id, operation] of Object.entries(operations)) {
      const call = (input: AnyInput = {}, more: CallOptions = {}) => this.#call(operation, input, more);
      Object.defineProperty(this, id, { value: call, enumerable: true });
    }
  }

  /**
   * Goes through all items of a list, page by page: `for await (const one of client.each("listEnvelopes"))`.
   */
  async *each<Id extends ListId>(id: Id, given: Input<Id> = {} as Input<Id>): AsyncGenerator<Item<Id>> {
    const operation: Operation = operations[id];
    const input = given as AnyInput & { page?: number };
    let asked: AnyInput = operation.query.includes("limit") ? { limit: 100, ...input } : input;
    for (;;) {
      const page = (await this.#call(operation, asked, {})) as {
        data: Record<string, unknown>[];
        meta: { has_more?: boolean; page?: number; limit: number; total?: number };
      };
      yield* page.data as Item<Id>[];
      const { page: number = 1, limit, total = 0, has_more = number * limit < total } = page.meta;
      const last = page.data.at(-1);
      if (!has_more || !last) return;
      const name = Object.keys(last).find((key) => key === "id" || key === "line" || key.endsWith("_id"));
      const behind = operation.query.includes("starting_after") && input.page === undefined && name;
      asked = behind ? { ...asked, starting_after: last[behind] } : { ...asked, page: number + 1 };
    }
  }

  async #call(operation: Operation, input: AnyInput, options: CallOptions): Promise<unknown> {
    return this.#send(operation, this.#request(operation, input, options), options);
  }

  #request(operation: Operation, input: AnyInput, options: CallOptions): { url: string; init: RequestInit } {
    const { url = process.env["HOLDFAST_URL"] } = this.#options;
    if (!url) throw new TypeError("url is required: pass it, or set HOLDFAST_URL");
    const used = new Set(["body"]);
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = input[name];
      if (value === undefined || value === "") throw new TypeError(`${name} is required`);
      used.add(name);
      return encodeURIComponent(String(value));
    });
    const query = new URLSearchParams();
    for (const name of operation.query) {
      used.add(name);
      const value = input[name];
      if (value !== undefined && value !== null) query.set(name, String(value));
    }
    const unknown = Object.keys(input).filter((name) => !used.has(name));
    if (unknown.length > 0) throw new TypeError(`unknown: ${unknown.join(", ")}`);

    const headers: Record<string, string> = { accept: "application/json, */*", ...this.#credential(operation) };
    if (operation.method !== "GET" && operation.repeatable) {
      headers["idempotency-key"] = options.idempotencyKey ?? randomUUID();
    }
    const init: RequestInit = { method: operation.method, headers, redirect: "manual" };
    const body = input.body as Record<string, unknown> | undefined;
    if (operation.form && body && (!operation.json || body["file"] instanceof Blob)) {
      init.body = formOf(body);
    } else if (body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    const suffix = query.size > 0 ? `?${query}` : "";
    return { url: `${url.replace(/\/+$/, "")}/api/v2${path}${suffix}`, init };
  }

  #credential(operation: Operation): Record<string, string> {
    const { HOLDFAST_API_KEY, HOLDFAST_TOKEN, HOLDFAST_ORG } = process.env;
    const { apiKey = HOLDFAST_API_KEY, token = HOLDFAST_TOKEN, org = HOLDFAST_ORG, embedToken } = this.#options;
    const needed = (value: string | undefined, name: string): string => {
      if (!value) throw new TypeError(`${name} is required for this operation`);
      return value;
    };
    const named = operation.org ? { "x-org-id": needed(org, "org") } : {};
    switch (operation.security) {
      case "apiKey":
        return { "x-api-key": needed(apiKey, "apiKey") };
      case "bearer":
        return { authorization: `Bearer ${needed(token, "token")}`, ...named };
      case "embed":
        return { authorization: `Bearer ${needed(embedToken, "embedToken")}` };
      default:
        return {};
    }
  }

  /** Sends a request. It is repeated if that cannot do anything twice, or nothing was done. */
  async #send(
    operation: Operation,
    { url, init }: { url: string; init: RequestInit },
    { signal }: CallOptions,
  ): Promise<unknown> {
    const { retries = 3, timeout = 60_000, fetch: send = fetch } = this.#options;
    for (let tries = 0; ; tries += 1) {
      const limit = new AbortController();
      const late = () => limit.abort(new DOMException("The answer took too long", "TimeoutError"));
      const timer = init.body instanceof FormData ? undefined : setTimeout(late, timeout);
      const until = signal ? AbortSignal.any([signal, limit.signal]) : limit.signal;
      const last = tries >= retries;
      let wait = Math.min(2 ** tries / 2, LONGEST_WAIT) * (0.5 + Math.random() / 2);
      try {
        const answer = await send(url, { ...init, signal: until });
        if (answer.ok) return operation.file ? received(answer) : await parsed(operation, answer);
        const error = await errorOf(answer);
        // A conflict with a concurrent change has a waiting time; others stay conflicts.
        const undone = answer.status === 429 || (answer.status === 409 && error.retryAfter !== undefined);
        const passing = operation.repeatable && [502, 503, 504].includes(answer.status);
        if (last || !(undone || passing)) throw error;
        wait = Math.max(wait, Math.min(error.retryAfter ?? 0, LONGEST_WAIT));
      } catch (error) {
        const lost = error instanceof TypeError || (error as Error).name === "TimeoutError";
        if (last || !lost || !operation.repeatable || signal?.aborted) throw error;
      } finally {
        clearTimeout(timer);
      }
      await sleep(wait * 1000, undefined, signal ? { signal } : {});
    }
  }
}

function formOf(body: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined || value === null) continue;
    if (value instanceof Blob) {
      form.set(name, value, value instanceof File ? value.name : "file");
    } else {
      form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
  }
  return form;
}

async function parsed(operation: Operation, answer: Response): Promise<unknown> {
  const { data, meta } = (await answer.json()) as { data: unknown; meta?: unknown };
  return operation.list ? { data, meta } : data;
}

function received(answer: Response): ReceivedFile {
  const name = /filename="([^"]*)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1];
  const length = answer.headers.get("content-length");
  return {
    name,
    contentType: answer.headers.get("content-type") ?? "application/octet-stream",
    size: length === null ? undefined : Number(length),
    stream: answer.body ?? new ReadableStream(),
    bytes: async () => new Uint8Array(await answer.arrayBuffer()),
    text: () => answer.text(),
  };
}

/** Client of an installation. It has a method for each operation, such as `createEnvelope`. */
export type Holdfast = Client & OperationMethods;
export const Holdfast = Client as new (options?: HoldfastOptions) => Holdfast;
