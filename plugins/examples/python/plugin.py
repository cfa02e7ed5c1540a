"""A signing provider: implements the world of holdfast on top of the API of one vendor.
The vendor, Example Sign, is fictitious: replace it with yours.

The host makes a fresh instance for every call, so no state survives a call. Raised
errors are errors of the world: ``Err(ProviderError_…)``.
"""

import hmac
import json
import re
from typing import Any, Callable, NoReturn, TypeVar

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import blobs, http, secrets, settings, types
from wit_world.imports.http import (
    BodyPart_BlobBase64,
    BodyPart_Bytes,
    BodyPart_Text,
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


def exchange(call: Callable[[http.Request], Any], method: str, path: str, body: list) -> Any:
    """Sends a request with the instance's key, which only the host can read."""
    base = settings.get("base_url")
    if base is None:
        raise not_configured("setting base_url")
    key = secrets.open("api_key")
    if key is None:
        raise not_configured("secret api_key")
    request = http.Request(
        method,
        base.rstrip("/") + path,
        [
            ("authorization", HeaderValue_Secret(("Bearer ", key))),
            ("accept", HeaderValue_Plain("application/json")),
            ("content-type", HeaderValue_Plain("application/json")),
        ],
        body,
    )
    try:
        return call(request)
    except Err as error:
        if isinstance(error.value, HttpError_Denied):
            raise not_configured(error.value.value)
        if isinstance(error.value, HttpError_Timeout):
            raise unreachable("timed out")
        raise unreachable(error.value.value)


def check(status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    """Maps the status of a response to an error of the world."""
    if 200 <= status < 300:
        return
    if status in (401, 403):
        raise not_configured("the vendor does not accept api_key")
    if status == 404:
        raise Err(types.ProviderError_NotFound())
    if status == 429:
        seconds = [value for name, value in headers if name.lower() == "retry-after"]
        told = seconds and re.fullmatch("[0-9]{1,6}", seconds[0])
        raise Err(types.ProviderError_RateLimited(int(seconds[0]) if told else None))
    if status >= 500:
        raise unreachable(f"answered {status}")
    try:
        why = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        why = f"answered {status}"
    raise Err(types.ProviderError_Rejected(str(why)))


def ask(method: str, path: str, body: Json | None = None) -> bytes:
    parts: list = [] if body is None else [BodyPart_Bytes(json.dumps(body).encode())]
    return answered(method, path, parts)


def answered(method: str, path: str, parts: list) -> bytes:
    answer = exchange(http.send, method, path, parts)
    check(answer.status, answer.headers, answer.body)
    return answer.body


def not_understood() -> NoReturn:
    # The error text is left out, because it may quote the response.
    raise unreachable("the answer is not understood")


def parsed(body: bytes) -> Json:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        not_understood()
    if not isinstance(value, dict):
        not_understood()
    return value


def sent(field: types.Field) -> Json:
    default = {} if field.default_value is None else {"default_value": field.default_value}
    return {
        "name": field.name,
        "type": field.field_type,
        "role": field.role,
        "required": field.required,
        "readonly": field.readonly,
        **default,
        "options": field.options,
        "areas": [vars(area) for area in field.areas],
    }


T = TypeVar("T")


def an(kind: type[T], value: Any) -> T:
    """Checks a type: the host ends the whole call if a returned value has another type than the world declares."""
    if type(value) is not kind:
        raise TypeError(f"no {kind.__name__}")
    return value


def optional(value: Any) -> str | None:
    return None if value is None else an(str, value)


def received(field: Json) -> types.Field:
    areas = [types.Area(an(int, area["page"]), *(float(area[side]) for side in "xywh")) for area in field["areas"]]
    return types.Field(
        an(str, field["name"]),
        an(str, field["type"]),
        an(str, field["role"]),
        an(bool, field["required"]),
        an(bool, field["readonly"]),
        optional(field.get("default_value")),
        [an(str, option) for option in field["options"]],
        areas,
        [],
    )


# Errors of a missing or malformed member.
MISUNDERSTOOD = (AttributeError, KeyError, TypeError, ValueError)


def template(body: bytes) -> types.Template:
    value = parsed(body)
    try:
        return types.Template(
            an(str, value["id"]),
            an(str, value["name"]),
            [an(str, role) for role in value["roles"]],
            [received(field) for field in value["fields"]],
            an(int, value["documents"]),
        )
    except MISUNDERSTOOD:
        not_understood()


def submission(body: bytes) -> types.Submission:
    value = parsed(body)
    try:
        return types.Submission(
            an(str, value["id"]),
            types.SubmissionStatus[value["status"].upper()],
            an(bool, value["archived"]),
            optional(value.get("completed_at")),
            [submitter(one) for one in value["submitters"]],
        )
    except MISUNDERSTOOD:
        not_understood()


def submitter(one: Json) -> types.Submitter:
    values = [
        types.SignedValue(an(str, value["name"]), an(str, value["type"]), an(str, value["value"]))
        for value in one["values"]
    ]
    return types.Submitter(
        an(str, one["id"]),
        an(str, one["name"]),
        an(str, one["email"]),
        an(str, one["role"]),
        types.SignerStatus[one["status"].upper()],
        an(str, one["signing_url"]),
        optional(one.get("completed_at")),
        optional(one.get("decline_reason")),
        values,
        [],
    )


def archive(path: str) -> None:
    """Treats a missing object as archived."""
    try:
        ask("DELETE", path)
    except Err as error:
        if not isinstance(error.value, types.ProviderError_NotFound):
            raise


class Signing(exports.Signing):
    def create_template(
        self, name: str, external_id: str, document: blobs.Blob, fields: list[types.Field]
    ) -> types.Template:
        """The vendor returns the existing template for a known external id."""
        begin = json.dumps({"external_id": external_id, "name": name, "fields": [sent(field) for field in fields]})
        # The document goes directly from the host to the vendor, without passing through this
        # memory.
        parts = [BodyPart_Text(begin[:-1] + ',"document":"'), BodyPart_BlobBase64(document), BodyPart_Text('"}')]
        return template(answered("POST", "/templates", parts))

    def read_template(self, template_id: str) -> types.Template:
        return template(ask("GET", f"/templates/{template_id}"))

    def add_fields(self, template_id: str, fields: list[types.Field]) -> types.Template:
        """The host retries a call after a lost response, so fields that exist already are not added again."""
        there = template(ask("GET", f"/templates/{template_id}")).fields
        known = [sent(field) for field in there]
        added = [field for field in map(sent, fields) if field not in known]
        return template(ask("POST", f"/templates/{template_id}/fields", {"fields": added}))

    def clone_template(self, template_id: str, name: str, external_id: str) -> types.Template:
        return template(ask("POST", f"/templates/{template_id}/copies", {"external_id": external_id, "name": name}))

    def archive_template(self, template_id: str) -> None:
        archive(f"/templates/{template_id}")

    def create_submission(self, request: types.SubmissionRequest) -> types.Submission:
        submitters = [
            {"name": one.name, "email": one.email, "role": one.role, "values": dict(one.values)}
            for one in request.submitters
        ]
        body = {
            "template_id": request.template_id,
            "external_id": request.external_id,
            "name": request.name,
            "ordered": request.preserve_order,
            "submitters": submitters,
        }
        return submission(ask("POST", "/submissions", body))

    def read_submission(self, submission_id: str) -> types.Submission:
        return submission(ask("GET", f"/submissions/{submission_id}"))

    def archive_submission(self, submission_id: str) -> None:
        archive(f"/submissions/{submission_id}")

    def signed_document(self, submission_id: str) -> blobs.Blob:
        answer = exchange(http.fetch, "GET", f"/submissions/{submission_id}/document", [])
        check(answer.status, answer.headers, b"")
        if answer.body.read(0, 5) != b"%PDF-":
            raise unreachable("the document is no PDF")
        return answer.body

    def read_callback(self, callback: types.Callback) -> Any:
        """``X-Vendor-Signature`` is the HMAC-SHA256 of the body, in hexadecimal."""
        signature = [value for name, value in callback.headers if name.lower() == "x-vendor-signature"]
        if not signature:
            raise Err(types.CallbackError_Unverified("no X-Vendor-Signature header"))
        secret = secrets.open("webhook_secret")
        if secret is None:
            raise Err(types.CallbackError_Unverified("no secret webhook_secret is configured"))
        if not hmac.compare_digest(secret.hmac_sha256(callback.body).hex().encode(), signature[0].encode()):
            raise Err(types.CallbackError_Unverified("the signature does not match"))
        try:
            about = json.loads(callback.body)
            about = (optional(about.get("submission_id")), optional(about.get("submitter_id")))
        except (*MISUNDERSTOOD, RecursionError):
            raise Err(types.CallbackError_Malformed("not an Example Sign callback"))
        match about:
            case None, _:
                return types.CallbackSubject_Ignored()
            case submission_id, None:
                return types.CallbackSubject_Submission(submission_id)
            case submission_id, submitter_id:
                return types.CallbackSubject_Submitter((submitter_id, submission_id))
