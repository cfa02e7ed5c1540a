"""Client of holdfast: electronic signatures and tamper-evident authoritative copies."""

from ._operations import Operations
from ._transport import FileInput, Page, ReceivedFile
from .errors import (
    AuthenticationError,
    ConflictError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
)
from .webhooks import WebhookVerificationError, sign_webhook, verify_webhook


class Holdfast(Operations):
    """Client of an installation. It has a method for each operation, such as ``create_envelope``."""


__all__ = [
    "AuthenticationError",
    "ConflictError",
    "FileInput",
    "Holdfast",
    "HoldfastError",
    "InvalidRequestError",
    "NotFoundError",
    "Page",
    "PermissionDeniedError",
    "RateLimitError",
    "ReceivedFile",
    "WebhookVerificationError",
    "sign_webhook",
    "verify_webhook",
]
