package main

// The world in Go: types as the component model lays them out in memory, imports of the host, and
// conversions. Nothing here depends on the vendor.

import (
	"runtime/debug"
	"unsafe"
)

// The collector asks the host for the time, which it may not while the host asks for memory. A call is
// short, and its memory goes with its instance.
func init() { debug.SetGCPercent(-1) }

// Place and length of a text or a list in memory.
type span struct{ at, length uint32 }

type optionText struct {
	isSome bool
	_      [3]byte
	value  span
}

type pair struct{ first, second span }

type area struct {
	page       uint32
	_          uint32
	x, y, w, h float64
}

type field struct {
	name, fieldType, role        span
	required, readonly           bool
	_                            [2]byte
	defaultValue                 optionText
	options, areas, ruleOfAnswer span
}

type template struct {
	id, name, roles, fields span
	documents               uint32
}

type submitterRequest struct{ name, email, role, values span }

type signedValue struct{ name, fieldType, value span }

type submitter struct {
	id, name, email, role      span
	status                     uint8
	_                          [3]byte
	signingURL                 span
	completedAt, declineReason optionText
	values, attributes         span
}

type submission struct {
	id          span
	status      uint8
	archived    bool
	_           [2]byte
	completedAt optionText
	submitters  span
}

// Result of an exported function.
type result[T any] struct {
	isError bool
	_       [3]byte
	value   T
}

// Case of a variant whose payload is at most two words.
type variant struct {
	number uint8
	_      [3]byte
	value  span
}

// Result of a call of the host's `http`.
type response struct {
	isError bool
	_       [3]byte
	// The status of a response, or the number of an error.
	status  uint16
	_       [2]byte
	headers span
	// The bytes of a body; of a fetched document its handle.
	body span
}

type header struct {
	name   span
	number uint8
	_      [3]byte
	value  span
	secret uint32
}

// What the host reads or writes lies on the heap: a stack moves and is used again.
var kept []any

// Returns the place of items, which stays valid until the call ends.
func keep[T any](items []T) span {
	if len(items) == 0 {
		return span{}
	}
	kept = append(kept, items)
	return span{address(unsafe.Pointer(&items[0])), uint32(len(items))}
}

func address(pointer unsafe.Pointer) uint32 { return uint32(uintptr(pointer)) }

func list[T any](from span) []T {
	if from.length == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(uintptr(from.at))), from.length)
}

func text(from span) string { return string(list[byte](from)) }

func spanOf(text string) span { return keep([]byte(text)) }

func option(text *string) optionText {
	if text == nil {
		return optionText{}
	}
	return optionText{isSome: true, value: spanOf(*text)}
}

func optional(from optionText) *string {
	if !from.isSome {
		return nil
	}
	value := text(from.value)
	return &value
}

func mapped[A, B any](items []A, convert func(A) B) []B {
	all := make([]B, 0, len(items))
	for _, item := range items {
		all = append(all, convert(item))
	}
	return all
}

// Returns the result of a function to the host.
func answer[T any](value T) uint32 {
	return keep([]result[T]{{value: value}}).at
}

// Errors of the world, by the number of their case.
const (
	notConfigured = iota
	rejected
	notFound
	unreachable
	rateLimited
)

type providerError struct {
	number uint8
	value  span
}

func failed(number uint8, why string) *providerError {
	return &providerError{number, spanOf(why)}
}

// Returns the error for too many requests, with the seconds to wait if they are known.
func limited(seconds *uint32) *providerError {
	if seconds == nil {
		return &providerError{number: rateLimited}
	}
	// An option of a number has the layout of two words: whether it is there, and the number.
	return &providerError{rateLimited, span{1, *seconds}}
}

func refuse(err *providerError) uint32 {
	return keep([]result[variant]{{isError: true, value: variant{number: err.number, value: err.value}}}).at
}

// The host asks for memory for what it returns.

//go:wasmexport cabi_import_realloc
func importRealloc(old, oldSize, align, size uint32) uint32 { return allocate(old, oldSize, size) }

//go:wasmexport cabi_export_realloc
func exportRealloc(old, oldSize, align, size uint32) uint32 { return allocate(old, oldSize, size) }

func allocate(old, oldSize, size uint32) uint32 {
	// Words of 64 bits have the strictest alignment of the world.
	words := make([]uint64, size/8+1)
	place := keep(words).at
	copy(list[byte](span{place, size}), list[byte](span{old, min(oldSize, size)}))
	return place
}

//go:wasmimport holdfast:host/settings@1.0.0 get
func hostSetting(at, length, answer uint32)

//go:wasmimport holdfast:host/secrets@1.0.0 open
func hostSecret(at, length, answer uint32)

//go:wasmimport holdfast:host/secrets@1.0.0 [method]secret.hmac-sha256
func hostHMAC(secret, at, length, answer uint32)

//go:wasmimport holdfast:host/blobs@1.0.0 [method]blob.read
func hostRead(blob uint32, offset uint64, length, answer uint32)

//go:wasmimport holdfast:host/blobs@1.0.0 [resource-drop]blob
func hostDropBlob(blob uint32)

//go:wasmimport holdfast:host/http@1.0.0 send
func hostSend(methodAt, method, urlAt, url, headersAt, headers, bodyAt, body, answer uint32)

//go:wasmimport holdfast:host/http@1.0.0 fetch
func hostFetch(methodAt, method, urlAt, url, headersAt, headers, bodyAt, body, answer uint32)

func setting(name string) (string, *providerError) {
	key, found := spanOf(name), keep([]optionText{{}})
	hostSetting(key.at, key.length, found.at)
	value := optional(list[optionText](found)[0])
	if value == nil {
		return "", failed(notConfigured, "setting "+name)
	}
	return *value, nil
}

// Returns the handle of a secret. Its value cannot be read.
func secret(name string) (uint32, bool) {
	key, found := spanOf(name), keep([]span{{}})
	hostSecret(key.at, key.length, found.at)
	words := list[span](found)[0]
	return words.length, uint8(words.at) == 1
}

// Returns the HMAC-SHA256 with a secret as its key.
func hmac(secret uint32, message span) []byte {
	digest := keep([]span{{}})
	hostHMAC(secret, message.at, message.length, digest.at)
	return list[byte](list[span](digest)[0])
}

func readBlob(blob uint32, length uint32) []byte {
	bytes := keep([]span{{}})
	hostRead(blob, 0, length, bytes.at)
	return list[byte](list[span](bytes)[0])
}
