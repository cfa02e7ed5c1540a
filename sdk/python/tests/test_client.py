"""The client without a server: how it sends, repeats and fails; and webhooks."""

import io
import json
import time
import unittest
from typing import Any, Callable, Iterator
from unittest import mock

import httpx
from holdfast import (
    ConflictError,
    Holdfast,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    WebhookVerificationError,
    sign_webhook,
    verify_webhook,
)

ENVELOPE = {"envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc"}
Answer = Callable[[httpx.Request], httpx.Response]


def answered(status: int, body: Any, headers: dict[str, str] | None = None) -> Answer:
    return lambda _: httpx.Response(status, json=body, headers=headers)


def lost(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("lost", request=request)


def client(*answers: Answer, **options: Any) -> tuple[Holdfast, list[httpx.Request]]:
    """Client whose requests are answered by functions, one after the other."""
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        request.read()
        asked.append(request)
        return answers[min(len(asked), len(answers)) - 1](request)

    options = {"api_key": "lk_1", "token": "jwt", **options}
    return Holdfast("https://sign.example/", transport=httpx.MockTransport(handler), **options), asked


@mock.patch("time.sleep")
class ClientTest(unittest.TestCase):
    def test_an_operation_sends_its_path_query_body_and_credential(self, _: Any) -> None:
        found, asked = client(answered(200, {"data": [ENVELOPE], "meta": {"page": 2, "limit": 1, "total": 2}}))
        page = found.list_envelopes(status="sent", page=2)
        self.assertEqual((page.data, page.meta["total"]), ([ENVELOPE], 2))
        self.assertEqual(str(asked[0].url), "https://sign.example/api/v2/partner/envelopes?page=2&status=sent")
        self.assertEqual(asked[0].headers["x-api-key"], "lk_1")
        self.assertNotIn("idempotency-key", asked[0].headers)

        sent, asked = client(answered(200, {"data": {}}))
        sent.correct_signer("env_1", "Co Buyer/2", {"email": "kim@elm.example"})
        self.assertEqual(asked[0].method, "PATCH")
        self.assertTrue(str(asked[0].url).endswith("/partner/envelopes/env_1/signers/Co%20Buyer%2F2"))
        self.assertEqual(json.loads(asked[0].content), {"email": "kim@elm.example"})

        user, asked = client(answered(200, {"data": []}), org="org_1")
        user.get_usage()
        self.assertEqual(asked[0].headers["authorization"], "Bearer jwt")

    def test_what_is_missing_is_named_before_anything_is_sent(self, _: Any) -> None:
        found, asked = client(answered(200, {}))
        with self.assertRaisesRegex(ValueError, "id is required"):
            found.get_envelope("")
        with self.assertRaisesRegex(ValueError, "api_key is required"):
            Holdfast("https://sign.example").list_envelopes()
        with self.assertRaisesRegex(ValueError, "url is required"):
            Holdfast(api_key="lk_1").list_envelopes()
        self.assertEqual(asked, [])

    def test_a_lost_answer_is_asked_for_again_with_the_same_idempotency_key(self, _: Any) -> None:
        made, asked = client(lost, answered(503, {"error": "Try later"}), answered(201, {"data": ENVELOPE}))
        body: Any = {"envelope_name": "Contract"}
        self.assertEqual(made.create_envelope(body), ENVELOPE)
        self.assertEqual(len(asked), 3)
        keys = {request.headers["idempotency-key"] for request in asked}
        self.assertEqual([len(key) for key in keys], [36])
        own, asked = client(answered(201, {"data": ENVELOPE}))
        own.create_envelope(body, idempotency_key="deal-2041")
        self.assertEqual(asked[0].headers["idempotency-key"], "deal-2041")

    def test_a_request_that_could_do_something_twice_is_not_repeated(self, _: Any) -> None:
        made, asked = client(lost)
        with self.assertRaises(httpx.ReadError):
            made.change_user("usr_1", {"role": "admin"})
        self.assertEqual(len(asked), 1)

    def test_retry_after_is_waited_for(self, sleep: Any) -> None:
        limited = answered(429, {"error": "Rate limit exceeded"}, {"retry-after": "7"})
        made, asked = client(limited, answered(200, {"data": ENVELOPE}))
        made.get_envelope("env_1")
        self.assertEqual(len(asked), 2)
        self.assertGreaterEqual(sleep.call_args.args[0], 7)

    def test_a_body_that_breaks_off_is_asked_for_again(self, _: Any) -> None:
        def broken(request: httpx.Request) -> httpx.Response:
            def pieces() -> Iterator[bytes]:
                yield b'{"data"'
                raise httpx.ReadError("lost", request=request)

            return httpx.Response(200, content=pieces())

        made, asked = client(broken, answered(200, {"data": ENVELOPE}))
        self.assertEqual(made.get_envelope("env_1"), ENVELOPE)
        self.assertEqual(len(asked), 2)

    def test_errors_have_a_type_and_what_the_api_says(self, _: Any) -> None:
        issue = {"code": "invalid_type", "path": ["name"], "message": "Required"}
        for status, kind in [(404, NotFoundError), (409, ConflictError), (422, InvalidRequestError), (418, HoldfastError)]:
            body = {"error": "No", "code": "kba_required", "details": [issue]}
            made, _asked = client(answered(status, body, {"x-request-id": "req_1"}))
            with self.assertRaises(kind) as caught:
                made.get_envelope("env_1")
            error = caught.exception
            self.assertEqual((str(error), error.status, error.code), ("No", status, "kba_required"))
            self.assertEqual((error.request_id, error.issues), ("req_1", [issue]))
        made, _asked = client(lambda _: httpx.Response(429, text="<html>"), retries=0)
        with self.assertRaises(RateLimitError) as caught:
            made.list_envelopes()
        self.assertEqual(caught.exception.issues, [])

    def test_lists_are_gone_through_by_page_or_by_their_last_item(self, _: Any) -> None:
        pages, asked = client(
            answered(200, {"data": [{"template_id": "t_3"}, {"template_id": "t_2"}], "meta": {"page": 1, "limit": 2, "total": 3}}),
            answered(200, {"data": [{"template_id": "t_1"}], "meta": {"page": 2, "limit": 2, "total": 3}}),
        )
        found = [one["template_id"] for one in pages.each(pages.list_templates, limit=2)]
        self.assertEqual(found, ["t_3", "t_2", "t_1"])
        self.assertIn("page=2", str(asked[1].url))

        # The first page has a number, and those behind it follow its last item.
        both, asked = client(
            answered(200, {"data": [{"envelope_id": "env_3"}, {"envelope_id": "env_2"}], "meta": {"page": 1, "limit": 2, "total": 3}}),
            answered(200, {"data": [{"envelope_id": "env_1"}], "meta": {"limit": 2, "has_more": False}}),
        )
        stable = [one["envelope_id"] for one in both.each(both.list_envelopes, limit=2)]
        self.assertEqual(stable, ["env_3", "env_2", "env_1"])
        self.assertIn("starting_after=env_2", str(asked[1].url))

        cursor, asked = client(
            answered(200, {"data": [{"transfer_id": "trf_2"}], "meta": {"limit": 1, "has_more": True}}),
            answered(200, {"data": [{"transfer_id": "trf_1"}], "meta": {"limit": 1, "has_more": False}}),
        )
        self.assertEqual([one["transfer_id"] for one in cursor.each(cursor.list_transfers)], ["trf_2", "trf_1"])
        self.assertIn("starting_after=trf_2", str(asked[1].url))

        # A row of a tape has its line as its place, and may name an envelope.
        rows, asked = client(
            answered(200, {"data": [{"line": 2, "envelope_id": "env_1"}], "meta": {"limit": 1, "has_more": True}}),
            answered(200, {"data": [{"line": 3, "envelope_id": None}], "meta": {"limit": 1, "has_more": False}}),
        )
        self.assertEqual([one["line"] for one in rows.each(rows.list_tape_rows, "tap_1")], [2, 3])
        self.assertIn("starting_after=2", str(asked[1].url))

        whole, asked = client(answered(200, {"data": [{"endpoint_id": "whe_1"}], "meta": {"page": 1, "limit": 100, "total": 1}}))
        self.assertEqual(len(list(whole.each(whole.list_webhook_endpoints))), 1)
        self.assertEqual(len(asked), 1)
        self.assertTrue(asked[0].url.path.endswith("/webhooks/endpoints"))

    def test_files_are_sent_as_forms_and_received_as_streams(self, _: Any) -> None:
        made, asked = client(answered(503, {"error": "Try later"}), answered(200, {"data": ENVELOPE}))
        file = io.BytesIO(b"%PDF-1.7")
        made.upload_document("env_1", file=("contract.pdf", file))
        for request in asked:
            self.assertIn(b'filename="contract.pdf"', request.content)
            self.assertIn(b"%PDF-1.7", request.content)

        # A form without a file is a form nevertheless.
        pulled, asked = client(answered(201, {"data": {}}))
        pulled.upload_component(name="rules-acme", version="1.0.0", from_="registry.example/rules:1")
        self.assertTrue(asked[0].headers["content-type"].startswith("multipart/form-data"))
        self.assertIn(b"registry.example/rules:1", asked[0].content)

        headers = {"content-type": "application/pdf", "content-disposition": 'attachment; filename="env_1.pdf"'}
        made, _asked = client(lambda _: httpx.Response(200, content=b"%PDF-1.7", headers=headers))
        with made.get_unsigned_document("env_1") as received:
            self.assertEqual((received.name, received.content_type), ("env_1.pdf", "application/pdf"))
            self.assertEqual(b"".join(received), b"%PDF-1.7")


class WebhookTest(unittest.TestCase):
    def test_webhooks_are_verified_and_can_be_signed_for_tests(self) -> None:
        event = {"event_type": "vault.stored", "event_id": "evt_1", "org_id": "org_1", "envelope_id": "env_1", "data": {}}
        for secret in ["whsec_c2VjcmV0", "plain secret"]:
            headers, body = sign_webhook(secret, event)
            self.assertEqual(verify_webhook(secret, headers, body), event)
            both = {**headers, "webhook-signature": "v1,b2xk " + headers["webhook-signature"]}
            self.assertEqual(verify_webhook(secret, both, body.decode()), event)
            old, _ = sign_webhook(secret, event, now=time.time() - 301)
            for bad, text, why in [
                (headers, body + b" ", "not that of the secret"),
                ({**headers, "webhook-signature": ""}, body, "missing"),
                ({**headers, "webhook-timestamp": "soon"}, body, "missing"),
                (old, body, "too old"),
            ]:
                with self.assertRaisesRegex(WebhookVerificationError, why):
                    verify_webhook(secret, bad, text)
        headers, body = sign_webhook("plain secret", event)
        for empty in ["", "whsec_"]:
            with self.assertRaisesRegex(ValueError, "the secret is empty"):
                verify_webhook(empty, headers, body)


if __name__ == "__main__":
    unittest.main()
