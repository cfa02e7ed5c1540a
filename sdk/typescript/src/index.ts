export { Holdfast } from "./client.js";
export type { CallOptions, HoldfastOptions, OperationMethods } from "./client.js";
export * from "./errors.js";
export * from "./webhooks.js";
export type {
  EventType, FileInput, Input, Item, ListId, OperationId, Output, Page, ReceivedFile, Schemas, WebhookEvent,
} from "./types.js";
