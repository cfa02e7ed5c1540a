"""From a PDF to the evidence bundle of a signed and vaulted contract.

    BASE_URL=https://host/api/v2 API_KEY=lk_live_… python3 first_contract.py contract.pdf
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

BASE_URL = os.environ["BASE_URL"]
API_KEY = os.environ["API_KEY"]
FIELDS = [
    {
        "name": "Buyer signature",
        "type": "signature",
        "role": "Buyer",
        "required": True,
        "placement": {
            "mode": "absolute",
            "areas": [{"page": 1, "x": 0.1, "y": 0.85, "w": 0.3, "h": 0.04}],
        },
    }
]


def call(method, path, body=None, headers=None):
    """Returns the bytes of an answer; an error carries the message of the API."""
    request = urllib.request.Request(BASE_URL + path, body, {"X-API-Key": API_KEY, **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from None


def data(*arguments, **named):
    return json.loads(call(*arguments, **named))["data"]


def post_json(path, body):
    # With the same Idempotency-Key, a repeated request returns the first answer.
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    return data("POST", path, json.dumps(body).encode(), headers=headers)


def upload_template(pdf):
    boundary = uuid.uuid4().hex
    parts = [
        (b'name="name"', b"Contract"),
        (b'name="fields_json"', json.dumps(FIELDS).encode()),
        (b'name="file"; filename="contract.pdf"\r\nContent-Type: application/pdf', pdf),
    ]
    separator = b"--" + boundary.encode()
    body = b"".join(
        separator + b"\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + content + b"\r\n"
        for head, content in parts
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    return data("POST", "/partner/templates", body + separator + b"--\r\n", headers=headers)


def main():
    template = upload_template(Path(sys.argv[1]).read_bytes())
    envelope = post_json(
        "/partner/envelopes",
        {
            "template_id": template["template_id"],
            "envelope_name": "Contract",
            "customer_name": "Jordan Ellery",
            "customer_email": "jordan@example.com",
            "secured_party": {"name": "Crescent Auto Finance, LLC", "role": "assignee"},
        },
    )
    path = f"/partner/envelopes/{envelope['envelope_id']}"
    print("sign at", envelope["sign_url"], flush=True)
    # A production system receives the webhook vault.stored instead of asking.
    while data("GET", f"{path}/status")["status"] != "vaulted":
        time.sleep(1)
    print("compliance score", data("GET", f"{path}/compliance")["compliance"]["score"])
    # The assignment: the authoritative copy leaves this vault, and the bundle is its evidence.
    post_json(
        f"{path}/vault-out",
        {
            "recipient_name": "Robin Park",
            "recipient_organization": "Crescent Auto Finance, LLC",
            "recipient_email": "robin.park@crescent.example",
            "purpose_of_release": "Assignment of the contract",
            "acknowledge_authoritative_copy": True,
            "acknowledge_chain_of_custody": True,
            "authorized_signature": "Casey Pine",
        },
    )
    Path("bundle.zip").write_bytes(call("GET", f"{path}/bundle"))
    print("log key", data("GET", "/ledger/head")["public_key"])


if __name__ == "__main__":
    main()
