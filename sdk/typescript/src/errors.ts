import type { components } from "./generated/schema.js";

/** One problem in a request body, as answers with status 422 list them. */
export type ValidationIssue = components["schemas"]["ValidationIssue"];

/** An answer that is no success. `code` and `details` are those of the API. */
export class HoldfastError extends Error {
  override readonly name: string = "HoldfastError";
  readonly status: number;
  readonly code: string | undefined;
  readonly details: unknown;
  /** Id of the request, as in the request log. */
  readonly requestId: string | undefined;
  /** Waiting time in seconds before another try makes sense. */
  readonly retryAfter: number | undefined;

  constructor(status: number, body: unknown, headers: Headers) {
    const told = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
    super(typeof told["error"] === "string" ? told["error"] : `HTTP status ${status}`);
    this.status = status;
    this.code = typeof told["code"] === "string" ? told["code"] : undefined;
    this.details = told["details"];
    this.requestId = headers.get("x-request-id") ?? undefined;
    const wait = Number(headers.get("retry-after") ?? Number.NaN);
    this.retryAfter = Number.isFinite(wait) ? wait : undefined;
  }

  /** Problems of the request body; none for other errors. */
  get issues(): ValidationIssue[] {
    return Array.isArray(this.details) ? (this.details as ValidationIssue[]) : [];
  }
}

/** The credential is missing or not valid (401). */
export class AuthenticationError extends HoldfastError {
  override readonly name = "AuthenticationError";
}
/** The credential does not allow the operation (403). */
export class PermissionError extends HoldfastError {
  override readonly name = "PermissionError";
}
/** There is no such object in the organization (404). */
export class NotFoundError extends HoldfastError {
  override readonly name = "NotFoundError";
}
/** The state of the object does not allow the operation (409). */
export class ConflictError extends HoldfastError {
  override readonly name = "ConflictError";
}
/** The body is well-formed and not valid (422); `issues` has the problems. */
export class InvalidRequestError extends HoldfastError {
  override readonly name = "InvalidRequestError";
}
/** Too many requests (429). */
export class RateLimitError extends HoldfastError {
  override readonly name = "RateLimitError";
}

const KINDS: Record<number, typeof HoldfastError> = {
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  422: InvalidRequestError,
  429: RateLimitError,
};

/** Returns the error of an answer. */
export async function errorOf(answer: Response): Promise<HoldfastError> {
  const body: unknown = await answer.json().catch(() => undefined);
  const kind = KINDS[answer.status] ?? HoldfastError;
  return new kind(answer.status, body, answer.headers);
}
