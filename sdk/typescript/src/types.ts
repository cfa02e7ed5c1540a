import type { operations as Operations, webhooks as Webhooks, components } from "./generated/schema.js";
import type { operations as table } from "./generated/operations.js";

/** Name of an operation, such as `createEnvelope`. */
export type OperationId = keyof typeof table;

type Part<T, K extends string> = T extends { [P in K]: infer V } ? V : T extends { [P in K]?: infer V } ? V : never;
type Given<T> = [Exclude<T, undefined>] extends [never] ? {} : Exclude<T, undefined>;

type Parameters_<Id extends OperationId> = Part<Operations[Id], "parameters">;
type InPath<Id extends OperationId> = Given<Part<Parameters_<Id>, "path">>;
type InQuery<Id extends OperationId> = Given<Part<Parameters_<Id>, "query">>;

/** A file of a form: `await fs.openAsBlob(path)` reads it while it is sent. */
export type FileInput = Blob;

type WithFile<T> = { [K in keyof T]: K extends "file" ? FileInput | Exclude<T[K], string> : T[K] };
type Content<Id extends OperationId> = Part<Exclude<Part<Operations[Id], "requestBody">, undefined>, "content">;
type Json<C> = C extends { "application/json": infer B } ? B : never;
type Form<C> = C extends { "multipart/form-data": infer B } ? WithFile<B> : never;
type Body<Id extends OperationId> = [Content<Id>] extends [never]
  ? {}
  : {} extends Json<Content<Id>>
    ? { body?: Json<Content<Id>> | Form<Content<Id>> }
    : { body: Json<Content<Id>> | Form<Content<Id>> };

/** What an operation takes: the names of its path and query, and `body`. */
export type Input<Id extends OperationId> = InPath<Id> & InQuery<Id> & Body<Id>;

type Answers<Id extends OperationId> = Part<Operations[Id], "responses">;
type Success<R> = R extends { 200: infer A } ? A : R extends { 201: infer A } ? A : R extends { 202: infer A } ? A : never;
type Answer<Id extends OperationId> = Json<Part<Success<Answers<Id>>, "content">>;

/** A page of a list. */
export interface Page<T, M> {
  data: T[];
  meta: M;
}

/** A file that was answered. It can be read once. */
export interface ReceivedFile {
  name: string | undefined;
  contentType: string;
  /** Size in bytes, if the answer states it. */
  size: number | undefined;
  stream: ReadableStream<Uint8Array>;
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
}

/** What an operation returns: `data` of its answer, a page of a list, or a file. */
export type Output<Id extends OperationId> = [Answer<Id>] extends [never]
  ? ReceivedFile
  : Answer<Id> extends { data: (infer T)[]; meta: infer M }
    ? Page<T, M>
    : Answer<Id> extends { data: infer D }
      ? D
      : ReceivedFile;

/** Operations that answer with pages. */
export type ListId = { [Id in OperationId]: (typeof table)[Id]["list"] extends true ? Id : never }[OperationId];
/** Item of a list. */
export type Item<Id extends ListId> = Answer<Id> extends { data: (infer T)[] } ? T : never;

/** Types of events. */
export type EventType = keyof Webhooks;
type EventBody<T extends EventType> = Json<
  Part<Exclude<Part<Part<Webhooks[T], "post">, "requestBody">, undefined>, "content">
>;
/** An event, as this service posts it. `event_type` tells what `data` has. */
export type WebhookEvent = { [T in EventType]: EventBody<T> }[EventType];

/** Types of the API by their names in the OpenAPI document. */
export type Schemas = components["schemas"];
