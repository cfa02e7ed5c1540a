"""Errors of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from .types import ValidationIssue


class HoldfastError(Exception):
    """An answer that is no success. ``code`` and ``details`` are those of the API."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        told: dict[str, Any] = body if isinstance(body, dict) else {}
        self.status = status
        self.message = str(told.get("error") or f"HTTP status {status}")
        self.code: str | None = told.get("code")
        self.details: Any = told.get("details")
        #: Id of the request, as in the request log.
        self.request_id: str | None = headers.get("x-request-id")
        wait = headers.get("retry-after", "")
        #: Waiting time in seconds before another try makes sense.
        self.retry_after: int | None = int(wait) if wait.isdigit() else None
        super().__init__(self.message)

    @property
    def issues(self) -> list[ValidationIssue]:
        """Problems of the request body; none for other errors."""
        return self.details if isinstance(self.details, list) else []


class AuthenticationError(HoldfastError):
    """The credential is missing or not valid (401)."""


class PermissionDeniedError(HoldfastError):
    """The credential does not allow the operation (403)."""


class NotFoundError(HoldfastError):
    """There is no such object in the organization (404)."""


class ConflictError(HoldfastError):
    """The state of the object does not allow the operation (409)."""


class InvalidRequestError(HoldfastError):
    """The body is well-formed and not valid (422); ``issues`` has the problems."""


class RateLimitError(HoldfastError):
    """Too many requests (429)."""


KINDS: dict[int, type[HoldfastError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: InvalidRequestError,
    429: RateLimitError,
}
