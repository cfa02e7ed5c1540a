"""Requests to the vendor, and its responses; below them the functions of the world.

The host makes a fresh instance for every call, so no state survives a call. Raised
errors are errors of the world: ``Err(ProviderError_…)``.
"""

import json
import re
from typing import Any, NoReturn, TypeVar

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import http, secrets, settings, types
from wit_world.imports.http import (
    BodyPart_Bytes,
    HeaderValue_Plain,
    HeaderValue_Secret,
    HttpError_Denied,
    HttpError_Timeout,
)

Json = dict[str, Any]


def unreachable(why: str) -> Err:
    return Err(types.ProviderError_Unreachable(why))


def not_configured(what: str) -> Err:
    return Err(types.ProviderError_NotConfigured(what))


def not_understood() -> NoReturn:
    # Nothing of the answer is quoted, because it may be about a person.
    raise unreachable("the answer is not understood")


def required(name: str) -> str:
    """Returns a setting of the instance."""
    value = settings.get(name)
    if value is None:
        raise not_configured(f"setting {name}")
    return value


def ask(method: str, path: str, body: Json | None = None, idempotency_key: str | None = None) -> Json | None:
    """Sends JSON and parses the response; ``None`` if the vendor does not know the object.

    The vendor answers a request with the idempotency key of an earlier one like that one.
    """
    base = required("base_url")
    key = secrets.open("api_key")
    if key is None:
        raise not_configured("secret api_key")
    # The secret is a handle. The host fills it in after it has checked the address.
    headers = [
        ("authorization", HeaderValue_Secret(("Bearer ", key))),
        ("accept", HeaderValue_Plain("application/json")),
        ("content-type", HeaderValue_Plain("application/json")),
    ]
    if idempotency_key is not None:
        headers.append(("idempotency-key", HeaderValue_Plain(idempotency_key)))
    parts = [] if body is None else [BodyPart_Bytes(json.dumps(body).encode())]
    try:
        answer = http.send(http.Request(method, base.rstrip("/") + path, headers, parts))
    except Err as error:
        if isinstance(error.value, HttpError_Denied):
            raise not_configured(error.value.value)
        if isinstance(error.value, HttpError_Timeout):
            raise unreachable("timed out")
        raise unreachable(error.value.value)
    if answer.status == 404:
        return None
    check(answer.status, answer.headers, answer.body)
    return parsed(answer.body)


def check(status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    """Maps the status of a response to an error of the world."""
    if 200 <= status < 300:
        return
    if status in (401, 403):
        raise not_configured("the vendor does not accept api_key")
    if status == 429:
        seconds = [value for name, value in headers if name.lower() == "retry-after"]
        told = seconds and re.fullmatch("[0-9]{1,6}", seconds[0])
        raise Err(types.ProviderError_RateLimited(int(seconds[0]) if told else None))
    if not 400 <= status < 500:
        raise unreachable(f"answered {status}")
    # The text of a refusal is not passed on, because it may quote the request.
    try:
        code = json.loads(body)["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        code = None
    is_code = isinstance(code, str) and re.fullmatch("[a-z_]{1,40}", code)
    raise Err(types.ProviderError_Rejected(code if is_code else f"answered {status}"))


def parsed(body: bytes) -> Json:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        not_understood()
    if not isinstance(value, dict):
        not_understood()
    return value


T = TypeVar("T")


def an(kind: type[T], value: Any) -> T:
    """Checks a type: the host ends the whole call if a returned value has another type than the world declares."""
    if type(value) is not kind:
        not_understood()
    return value
