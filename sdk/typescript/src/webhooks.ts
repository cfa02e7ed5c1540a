import { createHmac, timingSafeEqual } from "node:crypto";
import type { WebhookEvent } from "./types.js";

/** A webhook that does not come from the service, or is too old. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

type HeaderSource = Headers | Record<string, string | string[] | undefined>;

function header(headers: HeaderSource, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? (found[0] ?? "") : (found ?? "");
}

function signature(secret: string, id: string, timestamp: number, body: Uint8Array | string): string {
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret);
  if (key.length === 0) throw new TypeError("the secret is empty");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}

function same(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * Verifies a webhook (Standard Webhooks) and returns its event. `body` is the raw body, before parsing; `tolerance`
 * the allowed age in seconds, 300 when absent.
 */
export function verifyWebhook(
  secret: string,
  headers: HeaderSource,
  body: Uint8Array | string,
  { tolerance = 300, now = Date.now() }: { tolerance?: number; now?: number } = {},
): WebhookEvent {
  const [id, sent, given] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
    header(headers, name),
  ) as [string, string, string];
  const timestamp = Number(sent);
  if (!id || !given || !/^\d+$/.test(sent)) {
    throw new WebhookVerificationError("webhook-id, webhook-timestamp or webhook-signature is missing");
  }
  if (Math.abs(now / 1000 - timestamp) > tolerance) {
    throw new WebhookVerificationError("the webhook is too old, or this clock is wrong");
  }
  const expected = signature(secret, id, timestamp, body);
  if (!given.split(" ").some((one) => same(one, expected))) {
    throw new WebhookVerificationError("the signature is not that of the secret");
  }
  const text = typeof body === "string" ? body : Buffer.from(body).toString("utf8");
  return JSON.parse(text) as WebhookEvent;
}

/** Signs an event as the service does, for tests of a receiver. Returns headers and body. */
export function signWebhook(
  secret: string,
  event: WebhookEvent,
  now = Date.now(),
): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify(event);
  const timestamp = Math.floor(now / 1000);
  return {
    body,
    headers: {
      "content-type": "application/json",
      "x-service-event": event.event_type,
      "webhook-id": event.event_id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signature(secret, event.event_id, timestamp, body),
    },
  };
}
