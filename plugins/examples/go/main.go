// A signing provider: implements the world of holdfast on top of the API of one vendor.
//
// vendor.go has the API of the vendor, abi.go the world in Go; this file maps each function of the
// world to requests. The host makes a fresh instance for every call, so no state survives a call.
package main

import (
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
)

func main() {}

func fieldsOf(at, length uint32) []vendorField {
	return mapped(list[field](span{at, length}), sent)
}

func templateAnswer(body []byte, err *providerError) uint32 {
	found, err := templateOf(body, err)
	if err != nil {
		return refuse(err)
	}
	return answer(template{
		id: spanOf(*found.ID), name: spanOf(*found.Name), roles: keep(mapped(found.Roles, spanOf)),
		fields: keep(mapped(found.Fields, received)), documents: *found.Documents,
	})
}

func submissionAnswer(body []byte, err *providerError) uint32 {
	found, err := submissionOf(body, err)
	if err != nil {
		return refuse(err)
	}
	return answer(found)
}

// The vendor returns the existing template for a known external id.
//
//go:wasmexport holdfast:signing/signing@1.0.0#create-template
func createTemplate(nameAt, name, externalAt, external, document, fieldsAt, fields uint32) uint32 {
	// A handle that was lent for the call has to be given back before it ends.
	defer hostDropBlob(document)
	begin, _ := json.Marshal(map[string]any{
		"external_id": text(span{externalAt, external}),
		"name":        text(span{nameAt, name}),
		"fields":      fieldsOf(fieldsAt, fields),
	})
	// The document goes directly from the host to the vendor, without passing through this memory.
	parts := []part{
		textPart(strings.TrimSuffix(string(begin), "}") + `,"document":"`),
		blobPart(document),
		textPart(`"}`),
	}
	return templateAnswer(send("POST", "/templates", parts))
}

//go:wasmexport holdfast:signing/signing@1.0.0#read-template
func readTemplate(at, length uint32) uint32 {
	return templateAnswer(send("GET", "/templates/"+text(span{at, length}), nil))
}

// The host retries a call after a lost response, so fields that exist already are not added again.
//
//go:wasmexport holdfast:signing/signing@1.0.0#add-fields
func addFields(at, length, fieldsAt, fields uint32) uint32 {
	path := "/templates/" + text(span{at, length})
	there, err := templateOf(send("GET", path, nil))
	if err != nil {
		return refuse(err)
	}
	added := []vendorField{}
	for _, field := range fieldsOf(fieldsAt, fields) {
		isThere := false
		for _, known := range there.Fields {
			isThere = isThere || reflect.DeepEqual(known, field)
		}
		if !isThere {
			added = append(added, field)
		}
	}
	return templateAnswer(sendJSON("POST", path+"/fields", map[string]any{"fields": added}))
}

//go:wasmexport holdfast:signing/signing@1.0.0#clone-template
func cloneTemplate(at, length, nameAt, name, externalAt, external uint32) uint32 {
	body := map[string]any{
		"external_id": text(span{externalAt, external}), "name": text(span{nameAt, name}),
	}
	return templateAnswer(sendJSON("POST", "/templates/"+text(span{at, length})+"/copies", body))
}

// Treats a missing object as archived.
func archive(path string) uint32 {
	if _, err := send("DELETE", path, nil); err != nil && err.number != notFound {
		return refuse(err)
	}
	return answer(variant{})
}

//go:wasmexport holdfast:signing/signing@1.0.0#archive-template
func archiveTemplate(at, length uint32) uint32 {
	return archive("/templates/" + text(span{at, length}))
}

//go:wasmexport holdfast:signing/signing@1.0.0#create-submission
func createSubmission(
	templateAt, templateLength, externalAt, external, nameAt, name, preserveOrder, submittersAt, submitters uint32,
) uint32 {
	asked := mapped(list[submitterRequest](span{submittersAt, submitters}), func(one submitterRequest) map[string]any {
		values := map[string]string{}
		for _, value := range list[pair](one.values) {
			values[text(value.first)] = text(value.second)
		}
		return map[string]any{
			"name": text(one.name), "email": text(one.email), "role": text(one.role), "values": values,
		}
	})
	return submissionAnswer(sendJSON("POST", "/submissions", map[string]any{
		"template_id": text(span{templateAt, templateLength}),
		"external_id": text(span{externalAt, external}),
		"name":        text(span{nameAt, name}),
		"ordered":     preserveOrder == 1,
		"submitters":  asked,
	}))
}

//go:wasmexport holdfast:signing/signing@1.0.0#read-submission
func readSubmission(at, length uint32) uint32 {
	return submissionAnswer(send("GET", "/submissions/"+text(span{at, length}), nil))
}

//go:wasmexport holdfast:signing/signing@1.0.0#archive-submission
func archiveSubmission(at, length uint32) uint32 {
	return archive("/submissions/" + text(span{at, length}))
}

//go:wasmexport holdfast:signing/signing@1.0.0#signed-document
func signedDocument(at, length uint32) uint32 {
	answered, err := exchange(hostFetch, "GET", "/submissions/"+text(span{at, length})+"/document", nil)
	if err == nil {
		err = check(answered, nil)
	}
	if err != nil {
		return refuse(err)
	}
	// A storage in trouble can answer 200 with an error page, which must not be vaulted.
	if string(readBlob(answered.body.at, 5)) != "%PDF-" {
		return refuse(failed(unreachable, "the document is no PDF"))
	}
	return answer(answered.body.at)
}

// Subject of a callback: submission, submitter with submission, or ignored.
type subject struct {
	number        uint8
	_             [3]byte
	first, second span
}

func unverified(why string) uint32 { return refuse(failed(0, why)) }

// `X-Vendor-Signature` is the HMAC-SHA256 of the body, in hexadecimal.
//
//go:wasmexport holdfast:signing/signing@1.0.0#read-callback
func readCallback(headersAt, headers, bodyAt, body uint32) uint32 {
	signature := ""
	isSigned := false
	for _, header := range list[pair](span{headersAt, headers}) {
		if !isSigned && strings.EqualFold(text(header.first), "x-vendor-signature") {
			signature, isSigned = text(header.second), true
		}
	}
	if !isSigned {
		return unverified("no X-Vendor-Signature header")
	}
	key, isSet := secret("webhook_secret")
	if !isSet {
		return unverified("no secret webhook_secret is configured")
	}
	// The host computes the digest: the secret never enters the memory of the plugin.
	expected := hex.EncodeToString(hmac(key, span{bodyAt, body}))
	if subtle.ConstantTimeCompare([]byte(expected), []byte(signature)) != 1 {
		return unverified("the signature does not match")
	}

	var about struct {
		SubmissionID *string `json:"submission_id"`
		SubmitterID  *string `json:"submitter_id"`
	}
	if json.Unmarshal(list[byte](span{bodyAt, body}), &about) != nil {
		return refuse(failed(1, "not an Example Sign callback"))
	}
	switch {
	case about.SubmissionID == nil:
		return answer(subject{number: 2})
	case about.SubmitterID == nil:
		return answer(subject{number: 0, first: spanOf(*about.SubmissionID)})
	default:
		return answer(subject{number: 1, first: spanOf(*about.SubmitterID), second: spanOf(*about.SubmissionID)})
	}
}
