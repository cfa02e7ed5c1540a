package main

// The API of the vendor. Example Sign is fictitious: replace it with that of your vendor.

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

type vendorArea struct {
	Page uint32  `json:"page"`
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	W    float64 `json:"w"`
	H    float64 `json:"h"`
}

type vendorField struct {
	Name         string       `json:"name"`
	Type         string       `json:"type"`
	Role         string       `json:"role"`
	Required     bool         `json:"required"`
	Readonly     bool         `json:"readonly"`
	DefaultValue *string      `json:"default_value,omitempty"`
	Options      []string     `json:"options"`
	Areas        []vendorArea `json:"areas"`
}

// Members that must be there are pointers: JSON in Go leaves out what is missing without an error.
type vendorTemplate struct {
	ID        *string       `json:"id"`
	Name      *string       `json:"name"`
	Roles     []string      `json:"roles"`
	Fields    []vendorField `json:"fields"`
	Documents *uint32       `json:"documents"`
}

type vendorSubmission struct {
	ID          *string           `json:"id"`
	Status      string            `json:"status"`
	Archived    *bool             `json:"archived"`
	CompletedAt *string           `json:"completed_at"`
	Submitters  []vendorSubmitter `json:"submitters"`
}

type vendorSubmitter struct {
	ID            *string       `json:"id"`
	Name          string        `json:"name"`
	Email         *string       `json:"email"`
	Role          string        `json:"role"`
	Status        string        `json:"status"`
	SigningURL    *string       `json:"signing_url"`
	CompletedAt   *string       `json:"completed_at"`
	DeclineReason *string       `json:"decline_reason"`
	Values        []vendorValue `json:"values"`
}

type vendorValue struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Part of a body: a text, or a document that the host sends in base64.
type part struct {
	number uint8
	_      [3]byte
	value  span
}

const (
	partText       = 0
	partBlobBase64 = 3
)

func textPart(text string) part { return part{number: partText, value: spanOf(text)} }

func blobPart(blob uint32) part { return part{number: partBlobBase64, value: span{at: blob}} }

type hostCall func(methodAt, method, urlAt, url, headersAt, headers, bodyAt, body, answer uint32)

// Sends a request with the instance's key, which only the host can read.
func exchange(call hostCall, method, path string, body []part) (*response, *providerError) {
	base, err := setting("base_url")
	if err != nil {
		return nil, err
	}
	key, isSet := secret("api_key")
	if !isSet {
		return nil, failed(notConfigured, "secret api_key")
	}

	json := spanOf("application/json")
	headers := keep([]header{
		{name: spanOf("Authorization"), number: 1, value: spanOf("Bearer "), secret: key},
		{name: spanOf("Accept"), value: json},
		{name: spanOf("Content-Type"), value: json},
	})
	verb, url := spanOf(method), spanOf(strings.TrimRight(base, "/")+path)
	parts, answered := keep(body), keep([]response{{}})
	call(verb.at, verb.length, url.at, url.length, headers.at, headers.length, parts.at, parts.length, answered.at)
	response := &list[response](answered)[0]
	if response.isError {
		// Denied, unreachable, timeout, and others, which have a reason but for the timeout.
		switch uint8(response.status) {
		case 0:
			return nil, failed(notConfigured, text(response.headers))
		case 2:
			return nil, failed(unreachable, "timed out")
		default:
			return nil, failed(unreachable, text(response.headers))
		}
	}
	return response, nil
}

// Maps the status of a response to an error of the world.
func check(answered *response, body []byte) *providerError {
	status := answered.status
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == 401 || status == 403:
		return failed(notConfigured, "the vendor does not accept api_key")
	case status == 404:
		return &providerError{number: notFound}
	case status == 429:
		for _, header := range list[pair](answered.headers) {
			if strings.EqualFold(text(header.first), "retry-after") {
				if seconds, err := strconv.ParseUint(text(header.second), 10, 32); err == nil {
					wait := uint32(seconds)
					return limited(&wait)
				}
			}
		}
		return limited(nil)
	case status >= 400 && status < 500:
		var refusal struct{ Error *string }
		if json.Unmarshal(body, &refusal) == nil && refusal.Error != nil {
			return failed(rejected, *refusal.Error)
		}
		return failed(rejected, fmt.Sprintf("answered %d", status))
	default:
		// Errors of the vendor's servers pass, so the host repeats the call later.
		return failed(unreachable, fmt.Sprintf("answered %d", status))
	}
}

// Sends a request and returns the body of the response.
func send(method, path string, body []part) ([]byte, *providerError) {
	answered, err := exchange(hostSend, method, path, body)
	if err != nil {
		return nil, err
	}
	bytes := list[byte](answered.body)
	return bytes, check(answered, bytes)
}

func sendJSON(method, path string, value any) ([]byte, *providerError) {
	// Values of these types can always be written.
	body, _ := json.Marshal(value)
	return send(method, path, []part{textPart(string(body))})
}

// Nothing of the response is quoted.
func notUnderstood() *providerError { return failed(unreachable, "the answer is not understood") }

func templateOf(body []byte, err *providerError) (vendorTemplate, *providerError) {
	var found vendorTemplate
	if err != nil {
		return found, err
	}
	wrong := json.Unmarshal(body, &found) != nil
	if wrong || found.ID == nil || found.Name == nil || found.Roles == nil || found.Fields == nil || found.Documents == nil {
		return found, notUnderstood()
	}
	return found, nil
}

var statuses = map[string]uint8{"pending": 0, "completed": 1, "declined": 2, "expired": 3}
var signerStatuses = map[string]uint8{"pending": 0, "viewed": 1, "started": 2, "completed": 3, "declined": 4}

func submissionOf(body []byte, err *providerError) (submission, *providerError) {
	var found vendorSubmission
	if err != nil {
		return submission{}, err
	}
	wrong := json.Unmarshal(body, &found) != nil
	// A status that the plugin does not know must not count as signed or declined. The host asks again later.
	status, isKnown := statuses[found.Status]
	if wrong || !isKnown || found.ID == nil || found.Archived == nil || found.Submitters == nil {
		return submission{}, notUnderstood()
	}

	var submitters []submitter
	for _, one := range found.Submitters {
		status, isKnown := signerStatuses[one.Status]
		if !isKnown || one.ID == nil || one.Email == nil || one.SigningURL == nil {
			return submission{}, notUnderstood()
		}
		submitters = append(submitters, submitter{
			id: spanOf(*one.ID), name: spanOf(one.Name), email: spanOf(*one.Email), role: spanOf(one.Role),
			status: status, signingURL: spanOf(*one.SigningURL),
			completedAt: option(one.CompletedAt), declineReason: option(one.DeclineReason),
			values: keep(mapped(one.Values, func(value vendorValue) signedValue {
				return signedValue{spanOf(value.Name), spanOf(value.Type), spanOf(value.Value)}
			})),
		})
	}
	return submission{
		id: spanOf(*found.ID), status: status, archived: *found.Archived,
		completedAt: option(found.CompletedAt), submitters: keep(submitters),
	}, nil
}

func sent(from field) vendorField {
	return vendorField{
		Name: text(from.name), Type: text(from.fieldType), Role: text(from.role),
		Required: from.required, Readonly: from.readonly, DefaultValue: optional(from.defaultValue),
		Options: mapped(list[span](from.options), text),
		Areas: mapped(list[area](from.areas), func(one area) vendorArea {
			return vendorArea{one.page, one.x, one.y, one.w, one.h}
		}),
	}
}

func received(from vendorField) field {
	return field{
		name: spanOf(from.Name), fieldType: spanOf(from.Type), role: spanOf(from.Role),
		required: from.Required, readonly: from.Readonly, defaultValue: option(from.DefaultValue),
		options: keep(mapped(from.Options, spanOf)),
		areas: keep(mapped(from.Areas, func(one vendorArea) area {
			return area{page: one.Page, x: one.X, y: one.Y, w: one.W, h: one.H}
		})),
	}
}
