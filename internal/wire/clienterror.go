package wire

import (
	"cmp"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// ClientError is an error as a client is told it. The protocol packages write
// it as the body that each protocol has for errors.
type ClientError struct {
	// Status is the HTTP status; 0 within a stream.
	Status int
	// Class is what failed. Type and Code, where they are empty, are the words
	// that the protocol has for Class and Status.
	Class ninelives.Class
	Type  string
	Code  string
	// Param is the parameter that is at fault (OpenAI).
	Param string
	// Message is for a person. It is redacted once more when it is written; the
	// text of a provider that may echo a key does not belong here.
	Message string
	// RequestID is ours, for support (Anthropic has it in the body).
	RequestID string
	// Details are what machines read beside the type: error.details of Anthropic
	// (error_code), the metadata of Gemini's ErrorInfo. OpenAI has none.
	Details map[string]string
	// Trail is what was tried, in order: categories only, no provider's words. It
	// stands in error.ninelives.attempts in every protocol.
	Trail []Tried
}

// Tried is one attempt at a candidate that failed.
type Tried struct {
	Candidate string
	Class     ninelives.Class
	Status    int // 0 if there was no response
	Took      time.Duration
}

// ErrorOf is the error of a fault that comes within a stream.
func ErrorOf(f *ninelives.Fault) ClientError {
	return ClientError{Class: f.Class, Message: f.Message, RequestID: f.RequestID}
}

// Text is the message, redacted; where there is none, the class stands in.
func (e ClientError) Text() string {
	return Redact(cmp.Or(e.Message, string(e.Class), "the request failed"))
}

// WriteTrail writes what was tried as the last member of an error object;
// nothing if nothing was.
func (e ClientError) WriteTrail(w *rawjson.Writer) {
	if len(e.Trail) == 0 {
		return
	}
	w.Name("ninelives")
	w.Open('{')
	w.Name("attempts")
	w.Open('[')
	for _, t := range e.Trail {
		w.Open('{')
		w.StringMember("candidate", t.Candidate)
		w.StringMember("class", string(t.Class))
		if t.Status != 0 {
			w.IntMember("status", int64(t.Status))
		}
		w.IntMember("took_ms", t.Took.Milliseconds())
		w.Close('}')
	}
	w.Close(']')
	w.Close('}')
}
