"""From a PDF to the evidence bundle of a signed and vaulted contract. Argument: the PDF."""

import json
import sys
import time

from holdfast import Holdfast

holdfast = Holdfast()
areas = [{"page": 1, "x": 0.1, "y": 0.85, "w": 0.3, "h": 0.04}]
placement = {"mode": "absolute", "areas": areas}
fields = [{"name": "Signature", "type": "signature", "role": "Buyer", "placement": placement}]
with open(sys.argv[1], "rb") as file:
    template = holdfast.create_template(file=file, name="Contract", fields_json=json.dumps(fields))
envelope = holdfast.create_envelope(
    {
        "template_id": template["template_id"],
        "envelope_name": "Contract",
        "customer_name": "Jordan Ellery",
        "customer_email": "jordan@example.com",
        "secured_party": {"name": "Crescent Auto Finance, LLC", "role": "assignee"},
    }
)
id = envelope["envelope_id"]
print("sign at", envelope["sign_url"], flush=True)
# A production system receives the webhook vault.stored instead of asking.
for _ in range(900):
    if holdfast.get_envelope_status(id)["status"] == "vaulted":
        break
    time.sleep(1)
else:
    raise TimeoutError("the contract is not vaulted after a quarter of an hour")
print("compliance score", holdfast.get_compliance(id)["compliance"]["score"])
holdfast.vault_out(
    id,
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
holdfast.get_evidence_bundle(id).save("bundle.zip")
print("log key", holdfast.get_ledger_head()["public_key"])
