package wire_test

import (
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

func TestErrorsAreWrittenAsEachProtocolHasThem(t *testing.T) {
	trail := []wire.Tried{
		{Candidate: "a/b", Class: ninelives.ClassOverloaded, Status: 503, Took: 1500 * time.Millisecond},
		{Candidate: "c", Class: ninelives.ClassNetwork},
	}
	const attempts = `,"ninelives":{"attempts":[{"candidate":"a/b","class":"overloaded","status":503,"took_ms":1500},{"candidate":"c","class":"network","took_ms":0}]}`
	for name, tt := range map[string]struct {
		e                         wire.ClientError
		openai, anthropic, gemini string
	}{
		"everything was tried": {
			wire.ClientError{Status: 503, Class: ninelives.ClassOverloaded, Message: "two were tried", RequestID: "req_1", Trail: trail},
			`{"error":{"message":"two were tried","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"` + attempts + `}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"two were tried"` + attempts + `},"request_id":"req_1"}`,
			`{"error":{"code":503,"message":"two were tried","status":"UNAVAILABLE"` + attempts + `}}`,
		},
		"the status is the finer word": {
			wire.ClientError{Status: 529, Class: ninelives.ClassAuth, Message: "m"},
			`{"error":{"message":"m","type":"authentication_error","param":null,"code":"invalid_api_key"}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`,
			`{"error":{"code":529,"message":"m","status":"UNAVAILABLE"}}`,
		},
		"details": {
			wire.ClientError{Status: 400, Class: ninelives.ClassFormat, Message: "no threads", Param: "thread", Details: map[string]string{"error_code": "thread_unsupported_request", "b": "c"}},
			`{"error":{"message":"no threads","type":"invalid_request_error","param":"thread","code":"invalid_request"}}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"no threads","details":{"b":"c","error_code":"thread_unsupported_request"}}}`,
			`{"error":{"code":400,"message":"no threads","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"","metadata":{"b":"c","error_code":"thread_unsupported_request"}}]}}`,
		},
		"words of one's own": {
			wire.ClientError{Status: 409, Type: "T", Code: "C", Message: "key sk-abcdefghijklmnop\n"},
			`{"error":{"message":"key [redacted]","type":"T","param":null,"code":"C"}}`,
			`{"type":"error","error":{"type":"T","message":"key [redacted]"}}`,
			`{"error":{"code":409,"message":"key [redacted]","status":"T","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"C","metadata":{}}]}}`,
		},
		"nothing known": {
			wire.ClientError{Status: 404},
			`{"error":{"message":"the request failed","type":"invalid_request_error","param":null,"code":null}}`,
			`{"type":"error","error":{"type":"not_found_error","message":"the request failed"}}`,
			`{"error":{"code":404,"message":"the request failed","status":"NOT_FOUND"}}`,
		},
		"within a stream": {
			wire.ErrorOf(&ninelives.Fault{Class: ninelives.ClassStreamBroken}),
			`{"error":{"message":"stream_broken","type":"server_error","param":null,"code":"stream_broken"}}`,
			`{"type":"error","error":{"type":"api_error","message":"stream_broken"}}`,
			`{"error":{"code":500,"message":"stream_broken","status":"INTERNAL"}}`,
		},
	} {
		for protocol, pair := range map[string][2]string{
			"OpenAI": {string(openai.EncodeError(tt.e)), tt.openai}, "Anthropic": {string(anthropic.EncodeError(tt.e)), tt.anthropic},
			"Gemini": {string(gemini.EncodeError(tt.e)), tt.gemini},
		} {
			if pair[0] != pair[1] || !rawjson.Valid([]byte(pair[0])) {
				t.Errorf("%s, %s:\n got %s\nwant %s", name, protocol, pair[0], pair[1])
			}
		}
	}
}

func TestEverySignOfLifeIsOneThatAllClientsTake(t *testing.T) {
	o := wire.EncodeOptions{ID: "x", Model: "m"}
	for name, tt := range map[string]struct {
		e    wire.Encoder
		want string
	}{
		"chat":         {openai.NewChatEncoder(o), ": keep-alive\n\n"},
		"messages":     {anthropic.NewEncoder(o), "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
		"gemini":       {gemini.NewEncoder(o), ": keep-alive\n\n"},
		"gemini array": {gemini.NewArrayEncoder(o), "\n"},
	} {
		if got := string(tt.e.KeepAlive(nil)); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
		tt.e.Event(nil, ninelives.TextDelta{Text: "a"})
		if got := string(tt.e.KeepAlive(nil)); got != tt.want {
			t.Errorf("%s, later: %q", name, got)
		}
	}
}
