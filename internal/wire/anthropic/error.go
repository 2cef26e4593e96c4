package anthropic

import (
	"cmp"
	"maps"
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// EncodeError writes an error as the body that the protocol has for it; it is
// also the data of an error event.
func EncodeError(e wire.ClientError) []byte {
	var w writer
	w.begin("error")
	w.Name("error")
	w.Open('{')
	w.StringMember("type", cmp.Or(e.Type, errorType(e)))
	w.StringMember("message", e.Text())
	if len(e.Details) > 0 {
		w.Name("details")
		w.Open('{')
		for _, name := range slices.Sorted(maps.Keys(e.Details)) {
			w.StringMember(name, e.Details[name])
		}
		w.Close('}')
	}
	e.WriteTrail(&w.Writer)
	w.Close('}')
	if e.RequestID != "" {
		w.StringMember("request_id", e.RequestID)
	}
	w.Close('}')
	return w.B
}

// errorType is the protocol's word for a status or, within a stream, for a
// class. Source: the errors page, 2026.
func errorType(e wire.ClientError) string {
	switch e.Status {
	case 0:
		return classType(e.Class)
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 504:
		return "timeout_error"
	case 503, 529:
		return "overloaded_error"
	}
	if e.Status >= 400 && e.Status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

func classType(c ninelives.Class) string {
	switch c {
	case ninelives.ClassRateLimit:
		return "rate_limit_error"
	case ninelives.ClassOverloaded:
		return "overloaded_error"
	case ninelives.ClassAuth:
		return "authentication_error"
	case ninelives.ClassBilling:
		return "billing_error"
	case ninelives.ClassTimeout:
		return "timeout_error"
	case ninelives.ClassModelNotFound:
		return "not_found_error"
	case ninelives.ClassFormat, ninelives.ClassContextLength, ninelives.ClassContentFilter:
		return "invalid_request_error"
	}
	return "api_error"
}
