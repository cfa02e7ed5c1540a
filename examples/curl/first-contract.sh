#!/usr/bin/env bash
# From a PDF to the evidence bundle of a signed and vaulted contract.
#
#   HOLDFAST_URL=https://host HOLDFAST_API_KEY=lk_… first-contract.sh contract.pdf
set -euo pipefail

pdf=$1
BASE="$HOLDFAST_URL/api/v2"
# Prints the value of a key of the JSON on standard input: `data.status`.
value() { python3 -c 'import json, sys, functools; print(functools.reduce(dict.__getitem__, sys.argv[1].split("."), json.load(sys.stdin)))' "$1"; }
call() { curl --silent --show-error --fail-with-body -H "X-API-Key: $HOLDFAST_API_KEY" "$@"; }

fields='[{ "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
  "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.85, "w": 0.3, "h": 0.04 }] } }]'
template=$(call "$BASE/partner/templates" -F name=Contract -F "file=@$pdf;type=application/pdf" -F "fields_json=$fields" |
  value data.template_id)

# With the same Idempotency-Key, a repeated request returns the same envelope.
envelope=$(call "$BASE/partner/envelopes" -H 'Content-Type: application/json' -H "Idempotency-Key: contract-$template" -d '{
  "template_id": "'"$template"'", "envelope_name": "Contract", "customer_name": "Jordan Ellery",
  "customer_email": "jordan@example.com", "secured_party": { "name": "Crescent Auto Finance, LLC", "role": "assignee" } }')
id=$(value data.envelope_id <<<"$envelope")
echo "sign at $(value data.sign_url <<<"$envelope")"

# A production system receives the webhook vault.stored instead of asking.
for _ in {1..900}; do
  status=$(call "$BASE/partner/envelopes/$id/status" | value data.status)
  [ "$status" != vaulted ] || break
  sleep 1
done
[ "$status" = vaulted ] || { echo "still $status after a quarter of an hour" >&2; exit 1; }
echo "compliance score $(call "$BASE/partner/envelopes/$id/compliance" | value data.compliance.score)"

# The assignment: the authoritative copy leaves this vault, and the bundle is its evidence.
call "$BASE/partner/envelopes/$id/vault-out" -H 'Content-Type: application/json' -o /dev/null -d '{
  "recipient_name": "Robin Park", "recipient_organization": "Crescent Auto Finance, LLC",
  "recipient_email": "robin.park@crescent.example", "purpose_of_release": "Assignment of the contract",
  "acknowledge_authoritative_copy": true, "acknowledge_chain_of_custody": true, "authorized_signature": "Casey Pine" }'
call "$BASE/partner/envelopes/$id/bundle" -o bundle.zip
echo "log key $(call "$BASE/ledger/head" | value data.public_key)"
