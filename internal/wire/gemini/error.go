package gemini

import (
	"cmp"
	"maps"
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeError writes an error as the body that the protocol has for it. Type is
// its status ("UNAVAILABLE"), Code the reason in an ErrorInfo.
func EncodeError(e wire.ClientError) []byte {
	var w rawjson.Writer
	w.Open('{')
	writeError(&w, e)
	w.Close('}')
	return w.B
}

// writeError writes the member error.
func writeError(w *rawjson.Writer, e wire.ClientError) {
	code, status := statusOf(e.Class)
	if e.Status != 0 {
		code = e.Status
		if word, ok := statuses[code]; ok {
			status = word
		}
	}
	w.Name("error")
	w.Open('{')
	w.IntMember("code", int64(code))
	w.StringMember("message", e.Text())
	w.StringMember("status", cmp.Or(e.Type, status))
	if e.Code != "" || len(e.Details) > 0 {
		w.Name("details")
		w.Open('[')
		w.Open('{')
		w.StringMember("@type", "type.googleapis.com/google.rpc.ErrorInfo")
		w.StringMember("reason", e.Code)
		w.Name("metadata")
		w.Open('{')
		for _, name := range slices.Sorted(maps.Keys(e.Details)) {
			w.StringMember(name, e.Details[name])
		}
		w.Close('}')
		w.Close('}')
		w.Close(']')
	}
	e.WriteTrail(w)
	w.Close('}')
}

// statuses are the API's words for HTTP statuses.
//
// Source: google.rpc.Code and the API's page on errors.
var statuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	409: "ABORTED", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED",
	502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 529: "UNAVAILABLE",
}

// statusOf is the API's code and status for what failed.
//
// Source: google.rpc.Code and the API's page on errors.
func statusOf(c ninelives.Class) (code int, status string) {
	switch c {
	case ninelives.ClassRateLimit, ninelives.ClassBilling:
		code = 429
	case ninelives.ClassAuth:
		code = 401
	case ninelives.ClassModelNotFound:
		code = 404
	case ninelives.ClassFormat, ninelives.ClassContextLength, ninelives.ClassContentFilter:
		code = 400
	case ninelives.ClassTimeout:
		code = 504
	case ninelives.ClassOverloaded, ninelives.ClassNetwork:
		code = 503
	case ninelives.ClassCanceled:
		code = 499
	default:
		code = 500
	}
	return code, statuses[code]
}
