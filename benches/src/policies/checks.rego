# The eight checks of the compliance rules, with their sentences, for the Rego
# engine. The order is that of the specification.
package holdfast.compliance

evaluation := [
	single_authoritative_copy,
	tamper_evident_record,
	controlling_party_identified,
	all_signatories_executed,
	copies_identifiable,
	record_fully_executed,
	audit_certificate_generated,
	secured_party_identified,
]

# Check 1.
single_authoritative_copy := {
	"satisfied": true,
	"detail": "One authoritative copy is stored in the vault, written without overwrite and watermarked.",
} if {
	is_set(input.vault_file_path)
} else := {
	"satisfied": false,
	"detail": "The signed document is not yet stored in the vault.",
}

# Check 2.
tamper_evident_record := {
	"satisfied": true,
	"detail": concat("", ["SHA-256 of the stored bytes is on record: ", input.document_hash, "."]),
} if {
	is_sha256(input.document_hash)
} else := {
	"satisfied": false,
	"detail": "The recorded hash is not a SHA-256 digest.",
} if {
	input.document_hash != null
} else := {
	"satisfied": false,
	"detail": "No hash of the stored bytes is on record.",
}

# Check 3: the first accepted permission names the active custodian.
controlling_party_identified := {
	"satisfied": true,
	"detail": concat("", [accepted_custodians[0], " is the active custodian."]),
} if {
	count(accepted_custodians) > 0
} else := {
	"satisfied": false,
	"detail": "No custodian has accepted control of the record.",
}

accepted_custodians := [custodian.email |
	some custodian in input.custodians
	custodian.status == "accepted"
]

# Check 4: a paper envelope has no submitters and passes.
all_signatories_executed := {
	"satisfied": true,
	"detail": "No signers are recorded; the document was signed before it was uploaded.",
} if {
	count(input.submitters) == 0
} else := {
	"satisfied": true,
	"detail": sprintf("Every required signer has signed (%d of %d).", [count(input.submitters), count(input.submitters)]),
} if {
	count(unsigned) == 0
} else := {
	"satisfied": false,
	"detail": concat("", ["Not yet signed by: ", concat(", ", unsigned), "."]),
}

unsigned := [submitter.email |
	some submitter in input.submitters
	not lower(trim_space(submitter.email)) in signers
]

signers := {lower(trim_space(signed.signer_email)) | some signed in input.signed_documents}

# Check 5: the copy must be in the location for copies, not in any other.
copies_identifiable := {
	"satisfied": true,
	"detail": "A copy marked as non-authoritative is stored apart from the authoritative one.",
} if {
	startswith(input.copy_file_path, "copies:")
} else := {
	"satisfied": false,
	"detail": "The stored copy is not in the copies location.",
} if {
	input.copy_file_path != null
} else := {
	"satisfied": false,
	"detail": "No non-authoritative copy is stored.",
}

# Check 6.
record_fully_executed := {
	"satisfied": true,
	"detail": concat("", ["The record is fully executed (status ", input.status, ")."]),
} if {
	input.status in {"completed", "vaulted"}
} else := {
	"satisfied": false,
	"detail": concat("", ["The record is not in a fully executed status (status ", input.status, ")."]),
}

# Check 7.
audit_certificate_generated := {
	"satisfied": true,
	"detail": "A compliance certificate is stored with the record.",
} if {
	is_set(input.vault_out_certificate_path)
} else := {
	"satisfied": false,
	"detail": "The compliance certificate is not yet generated.",
}

# Check 8: a secured party needs a non-blank name.
secured_party_identified := {
	"satisfied": true,
	"detail": concat("", ["The secured party is ", trim_space(input.secured_party.name), "."]),
} if {
	trim_space(input.secured_party.name) != ""
} else := {
	"satisfied": false,
	"detail": "The secured party has no name.",
} if {
	input.secured_party != null
} else := {
	"satisfied": false,
	"detail": "No secured party is recorded.",
}

is_set(path) if {
	is_string(path)
	path != ""
}

# Trimming removes only hexadecimal digits; a regular expression is slower.
is_sha256(text) if {
	count(text) == 64
	trim(text, "0123456789abcdefABCDEF") == ""
}
