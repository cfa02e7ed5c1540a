"""Webhooks: verification (Standard Webhooks), and signing for the tests of a receiver."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from typing import Any, Mapping

from .types import WebhookEvent


class WebhookVerificationError(Exception):
    """A webhook that does not come from the service, or is too old."""


def _signature(secret: str, identifier: str, timestamp: int, body: bytes) -> str:
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    if not key:
        raise ValueError("the secret is empty")
    signed = f"{identifier}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def verify_webhook(
    secret: str,
    headers: Mapping[str, str],
    body: bytes | str,
    *,
    tolerance: float = 300,
    now: float | None = None,
) -> WebhookEvent:
    """Verifies a webhook and returns its event. ``body`` is the raw body, before parsing; ``tolerance`` the allowed age
    in seconds."""
    given = {name.lower(): value for name, value in headers.items()}
    identifier, sent = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    signatures = given.get("webhook-signature", "")
    if not identifier or not signatures or not re.fullmatch(r"[0-9]+", sent):
        raise WebhookVerificationError("webhook-id, webhook-timestamp or webhook-signature is missing")
    if abs((time.time() if now is None else now) - int(sent)) > tolerance:
        raise WebhookVerificationError("the webhook is too old, or this clock is wrong")
    raw = body.encode() if isinstance(body, str) else body
    expected = _signature(secret, identifier, int(sent), raw)
    if not any(hmac.compare_digest(expected.encode(), one.encode()) for one in signatures.split(" ")):
        raise WebhookVerificationError("the signature is not that of the secret")
    event: WebhookEvent = json.loads(raw)
    return event


def sign_webhook(secret: str, event: Mapping[str, Any], *, now: float | None = None) -> tuple[dict[str, str], bytes]:
    """Signs an event as the service does, for tests of a receiver. Returns headers and body."""
    body = json.dumps(event).encode()
    timestamp = int(time.time() if now is None else now)
    headers = {
        "content-type": "application/json",
        "x-service-event": event["event_type"],
        "webhook-id": event["event_id"],
        "webhook-timestamp": str(timestamp),
        "webhook-signature": _signature(secret, event["event_id"], timestamp, body),
    }
    return headers, body
