"""Sends requests: credentials, idempotency keys, tries, errors, pages and files."""

from __future__ import annotations

import json
import os
import random
import re
import time
import uuid
from dataclasses import dataclass
from typing import IO, Any, Callable, Generic, Iterator, Mapping, TypeVar, Union
from urllib.parse import quote

import httpx

from .errors import KINDS, HoldfastError

T = TypeVar("T")

#: A file of a form: bytes, an open file, or a pair of its name and one of both. Open files
#: are read from their beginning while they are sent.
FileInput = Union[bytes, IO[bytes], "tuple[str, Union[bytes, IO[bytes]]]"]

#: Longest wait between two tries in seconds.
LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list."""

    data: list[T]
    #: ``page``, ``limit`` and ``total``, or ``limit`` and ``has_more``.
    meta: dict[str, Any]


class ReceivedFile:
    """A file that was answered. It is read while it arrives, once; ``with`` closes it early."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        named = re.search(r'filename="([^"]*)"', answer.headers.get("content-disposition", ""))
        self.name = named.group(1) if named else None
        self.content_type: str = answer.headers.get("content-type", "application/octet-stream")

    def __enter__(self) -> ReceivedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_bytes()

    def read(self) -> bytes:
        """Returns the whole file."""
        return self._answer.read()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file to disk."""
        with open(path, "wb") as file:
            for piece in self:
                file.write(piece)


@dataclass(frozen=True)
class Operation:
    """What the document says about an operation."""

    method: str
    path: str
    #: Cannot do anything twice: a GET, or a call with an Idempotency-Key.
    repeatable: bool
    #: ``apiKey``, ``bearer``, ``embed``, or none.
    security: str | None
    #: Whether the operation names the organization.
    org: bool = False
    list: bool = False
    file: bool = False
    #: Whether pages follow by ``starting_after`` instead of by number.
    cursor: bool = False
    #: Whether the caller chooses the length of a page.
    limit: bool = False


class Transport:
    """Base of the client."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        token: str | None = None,
        *,
        org: str | None = None,
        embed_token: str | None = None,
        retries: int = 3,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Each of the first four is that of the environment when absent: ``HOLDFAST_URL``, ``HOLDFAST_API_KEY``,
        ``HOLDFAST_TOKEN`` and ``HOLDFAST_ORG``."""
        self._url = url or os.environ.get("HOLDFAST_URL", "")
        self._api_key = api_key or os.environ.get("HOLDFAST_API_KEY")
        self._token = token or os.environ.get("HOLDFAST_TOKEN")
        self._org = org or os.environ.get("HOLDFAST_ORG")
        self._embed_token = embed_token
        self._retries = retries
        self._client = httpx.Client(timeout=timeout, transport=transport, follow_redirects=False)

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def each(self, method: Callable[..., Page[T]], /, *args: Any, **parameters: Any) -> Iterator[T]:
        """Goes through all items of a list, page by page: ``client.each(client.list_envelopes, status="sent")``."""
        operation: Operation = getattr(method, "operation")
        asked = {"limit": 100, **parameters} if operation.limit else dict(parameters)
        while True:
            page = method(*args, **asked)
            yield from page.data
            number = page.meta.get("page", 1)
            more = page.meta.get("has_more", number * page.meta["limit"] < page.meta.get("total", 0))
            if not more or not page.data:
                return
            if operation.cursor and "page" not in parameters:
                last: Any = page.data[-1]
                asked["starting_after"] = next(
                    v for k, v in last.items() if k in ("id", "line") or k.endswith("_id")
                )
            else:
                asked["page"] = number + 1

    def _call(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        body: Any = None,
        form: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        request = self._request(operation, path, query, body, form, idempotency_key)
        answer = self._send(operation, request)
        if operation.file:
            return ReceivedFile(answer)
        told = answer.json()
        return Page(told["data"], told["meta"]) if operation.list else told["data"]

    def _request(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        body: Any,
        form: Mapping[str, Any] | None,
        idempotency_key: str | None,
    ) -> dict[str, Any]:
        if not self._url:
            raise ValueError("url is required: pass it, or set HOLDFAST_URL")
        place = operation.path
        for name, value in path.items():
            if not value:
                raise ValueError(f"{name} is required")
            place = place.replace("{" + name + "}", quote(str(value), safe=""))
        headers = {"accept": "application/json, */*", **self._credential(operation)}
        if operation.method != "GET" and operation.repeatable:
            headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
        request: dict[str, Any] = {
            "method": operation.method,
            "url": f"{self._url.rstrip('/')}/api/v2{place}",
            "headers": headers,
            "params": {name: _text(value) for name, value in query.items() if value is not None},
        }
        if form is not None:
            request["files"] = {
                name: _file(value) if name == "file" else (None, _text(value))
                for name, value in form.items()
                if value is not None
            }
        elif body is not None:
            request["json"] = body
        return request

    def _credential(self, operation: Operation) -> dict[str, str]:
        def needed(value: str | None, name: str) -> str:
            if not value:
                raise ValueError(f"{name} is required for this operation")
            return value

        match operation.security:
            case "apiKey":
                return {"x-api-key": needed(self._api_key, "api_key")}
            case "bearer":
                named = {"x-org-id": needed(self._org, "org")} if operation.org else {}
                return {"authorization": f"Bearer {needed(self._token, 'token')}", **named}
            case "embed":
                return {"authorization": f"Bearer {needed(self._embed_token, 'embed_token')}"}
            case _:
                return {}

    def _send(self, operation: Operation, request: dict[str, Any]) -> httpx.Response:
        """Sends a request. It is repeated if that cannot do anything twice, or nothing was done."""
        file = (request.get("files") or {}).get("file")
        opened = file[1] if file and not isinstance(file[1], bytes) else None
        once = opened is not None and not opened.seekable()
        tries = 0
        while True:
            last = tries >= self._retries or once
            wait = min(2.0**tries / 2, LONGEST_WAIT) * random.uniform(0.5, 1.0)
            try:
                built = self._client.build_request(**request)
                answer = self._client.send(built, stream=operation.file)
            except httpx.TransportError:
                if last or not operation.repeatable:
                    raise
            else:
                if answer.is_success:
                    return answer
                error = _error(answer)
                # A conflict with a concurrent change has a waiting time; others stay conflicts.
                undone = error.status == 429 or (error.status == 409 and error.retry_after is not None)
                passing = operation.repeatable and error.status in (502, 503, 504)
                if last or not (undone or passing):
                    raise error
                wait = max(wait, min(error.retry_after or 0, LONGEST_WAIT))
            time.sleep(wait)
            tries += 1


S = TypeVar("S", bound=Transport)


def _error(answer: httpx.Response) -> HoldfastError:
    try:
        body = json.loads(answer.read())
    except ValueError:
        body = None
    return KINDS.get(answer.status_code, HoldfastError)(answer.status_code, body, answer.headers)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _file(given: FileInput) -> tuple[str, bytes | IO[bytes]]:
    if isinstance(given, tuple):
        return given
    name = getattr(given, "name", None)
    return (os.path.basename(name) if isinstance(name, str) else "file", given)
