package gateway

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// longestWait is the longest Retry-After that a client is given: most of them
// sleep through whatever they are told, an hour as well; some come back at once
// when it is more than a minute.
//
// Source: notes/clients.md §1.4, measured.
const longestWait = 30 * time.Second

// trouble is what went wrong as far as a client is concerned: what it should do
// about it.
type trouble string

const (
	troubleExhausted trouble = "exhausted"    // everything was tried; it may pass, but not by asking again now
	troubleLimited   trouble = "rate_limited" // asking again after the wait will do
	troubleQuota     trouble = "quota"        // somebody has to pay first
	troubleDeadline  trouble = "deadline"     // the time of the call was up
	troubleTooLong   trouble = "too_long"     // more than the model's window holds
	troubleTooLarge  trouble = "too_large"    // more bytes than are taken
	troubleFiltered  trouble = "filtered"     // the provider's rules forbid it
	troubleMalformed trouble = "malformed"    // the request is not as the protocol wants it
	troubleNoModel   trouble = "no_model"     // nobody serves a model of this name
	troubleNotFound  trouble = "not_found"    // no such path, answer or call
	troubleMethod    trouble = "method"       // the path is not asked in this way
	troubleKey       trouble = "client_key"   // the client's key is missing or unknown
	troubleForbidden trouble = "forbidden"    // the client may not do this
	troubleBusy      trouble = "busy"         // the gateway itself cannot take it now
	troubleCanceled  trouble = "canceled"     // the client has left
	troubleInternal  trouble = "internal"     // a mistake of the gateway
)

// refused is what the gateway says no to by itself, before it asks anybody.
type refused struct {
	Trouble trouble
	// Text says what is wrong and what to do about it. What a client sent stands
	// in it only escaped.
	Text string
	// Param is the field or header concerned, if any.
	Param string
	// Code is the protocol's own word for it, where clients look for one: code in
	// OpenAI's protocols, error_code of the details in Anthropic's
	// (thread_unsupported_request). Empty means the usual one.
	Code string
	// Wait is when asking again will do; 0 if that is not known.
	Wait time.Duration
}

func (r *refused) Error() string { return r.Text }

// clientAnswer is what a client is told in place of an answer.
type clientAnswer struct {
	Status int
	Header http.Header
	Error  wire.ClientError
	// Stream, if set, is what a stream with status 200 ends with at once, in place
	// of Error: there are clients that ask 30 times for every status of 500 and
	// more, and once for this.
	Stream *ninelives.Fault
	// Trouble is what it comes to, for logs and metrics.
	Trouble trouble
}

// saying is how a trouble is said in each protocol. Words of OpenAI's and
// Anthropic's are type and code of the error object, Google's its status.
type saying struct {
	status          int
	kind, code      string // OpenAI
	anthropicStatus int    // if it differs
	anthropic       string
	google          string
}

// sayings is the table of notes/clients.md §5.
//
// Sources: the pages on errors of the three APIs, google.rpc.Code.
var sayings = map[trouble]saying{
	troubleExhausted: {503, "service_unavailable_error", "server_is_overloaded", 529, "overloaded_error", "UNAVAILABLE"},
	troubleLimited:   {429, "rate_limit_error", "rate_limit_exceeded", 0, "rate_limit_error", "RESOURCE_EXHAUSTED"},
	troubleQuota:     {429, "insufficient_quota", "insufficient_quota", 0, "billing_error", "RESOURCE_EXHAUSTED"},
	troubleDeadline:  {504, "timeout_error", "timeout", 0, "timeout_error", "DEADLINE_EXCEEDED"},
	troubleTooLong:   {400, "invalid_request_error", "context_length_exceeded", 0, "invalid_request_error", "INVALID_ARGUMENT"},
	troubleTooLarge:  {413, "invalid_request_error", "request_too_large", 0, "request_too_large", "INVALID_ARGUMENT"},
	troubleFiltered:  {400, "invalid_request_error", "content_filter", 0, "invalid_request_error", "INVALID_ARGUMENT"},
	troubleMalformed: {400, "invalid_request_error", "invalid_request", 0, "invalid_request_error", "INVALID_ARGUMENT"},
	troubleNoModel:   {404, "invalid_request_error", "model_not_found", 0, "not_found_error", "NOT_FOUND"},
	troubleNotFound:  {404, "invalid_request_error", "not_found", 0, "not_found_error", "NOT_FOUND"},
	troubleMethod:    {405, "invalid_request_error", "method_not_allowed", 0, "invalid_request_error", "INVALID_ARGUMENT"},
	troubleKey:       {401, "invalid_request_error", "invalid_api_key", 0, "authentication_error", "UNAUTHENTICATED"},
	troubleForbidden: {403, "permission_error", "permission_denied", 0, "permission_error", "PERMISSION_DENIED"},
	troubleBusy:      {503, "service_unavailable_error", "server_is_overloaded", 0, "overloaded_error", "UNAVAILABLE"},
	troubleCanceled:  {499, "canceled", "canceled", 0, "api_error", "CANCELLED"},
	troubleInternal:  {500, "server_error", "internal_error", 0, "api_error", "INTERNAL"},
}

// answerFor says what a client is told about an error, in its protocol and so
// that its own retries do not multiply ours. stream says that it asked for a
// streamed answer. Nothing of an answer may have gone out yet.
//
// What a provider said is in it only where that is about the client's own
// request, and only what is safe of it; everything else is said in our words.
func answerFor(p ninelives.Protocol, client clientKind, stream bool, err error, now time.Time) clientAnswer {
	v := judgeError(err, now)
	if v.trouble == troubleTooLarge && client == clientOpencode {
		// It would compact and send again, for ever; and a body that was not read
		// says nothing of what it was.
		v.trouble = troubleMalformed
	}
	if v.trouble == troubleTooLong && v.fault.Status == http.StatusRequestEntityTooLarge && p == ninelives.AnthropicMessages && !v.counted() {
		v.trouble = troubleTooLarge // its own word, where there are no numbers to say it with
	}
	s := sayings[v.trouble]
	a := clientAnswer{Status: s.status, Header: http.Header{}, Trouble: v.trouble}
	a.Error = wire.ClientError{Type: s.kind, Code: s.code, Param: v.param(p), Message: v.message(p, now), Trail: v.trail()}
	switch p {
	case ninelives.AnthropicMessages:
		if s.anthropicStatus != 0 {
			a.Status = s.anthropicStatus
		}
		a.Error.Type, a.Error.Code = s.anthropic, ""
	case ninelives.Gemini:
		a.Error.Type, a.Error.Code = s.google, ""
	}
	if r := v.refused; r != nil && r.Code != "" {
		a.Error.Code = r.Code
		if p == ninelives.AnthropicMessages {
			a.Error.Code, a.Error.Details = "", map[string]string{"error_code": r.Code}
		}
	}
	switch {
	case p == ninelives.OpenAIResponses && client == clientCodex:
		a.forCodex(stream)
	case v.trouble == troubleMalformed && v.fault != nil && v.fault.Status == http.StatusUnprocessableEntity &&
		client == clientSDK && (p == ninelives.OpenAIChat || p == ninelives.OpenAIResponses):
		// Programs catch it by its class. All others ask again for a 422, up to
		// seven times.
		a.Status = http.StatusUnprocessableEntity
	}
	a.Error.Status = a.Status
	if v.wait > 0 {
		a.Header.Set("Retry-After", wholeSeconds(v.wait))
	} else {
		a.Header.Set("X-Should-Retry", "false")
	}
	return a
}

// forCodex makes the answer one that Codex does not ask for 30 times: for a
// status of 500 and more it does, and for 413 and 422 nobody knows.
//
// Source: notes/clients.md §1.3 and §3, measured.
func (a *clientAnswer) forCodex(stream bool) {
	class := ninelives.ClassOverloaded
	switch a.Trouble {
	case troubleTooLarge:
		a.Status = http.StatusBadRequest
		return
	case troubleBusy:
		a.Status = http.StatusTooManyRequests // with Retry-After it waits just so long
		return
	case troubleExhausted, troubleDeadline, troubleInternal:
	case troubleQuota:
		class = ninelives.ClassBilling // for the 429 it would show a message of its own
	default:
		return
	}
	if !stream {
		a.Status = http.StatusTooManyRequests // without Retry-After it asks once
		return
	}
	a.Status = http.StatusOK
	a.Stream = &ninelives.Fault{Class: class, Message: a.Error.Message}
}

// plain is the answer without a word that says the request is too long: what a
// client gets that would shorten it and ask again for ever.
func (a clientAnswer) plain(p ninelives.Protocol) clientAnswer {
	s := sayings[troubleMalformed]
	a.Status, a.Error.Status = s.status, s.status
	a.Error.Type, a.Error.Code = s.kind, s.code
	switch p {
	case ninelives.AnthropicMessages:
		a.Error.Type, a.Error.Code = s.anthropic, ""
	case ninelives.Gemini:
		a.Error.Type, a.Error.Code = s.google, ""
	}
	a.Error.Message = "This request was refused for its size more than once and has not become smaller. " +
		"It is not sent again. Begin a new conversation, or leave out large files and results of tools."
	a.Error.Trail = nil
	return a
}

// overflow says that the client is told that its request is too long.
func (a clientAnswer) overflow() bool {
	return a.Trouble == troubleTooLong || a.Trouble == troubleTooLarge
}

// streamFault is what a stream ends with of which bytes are out: the class is
// the fault's where a client may know it, the message is ours.
func streamFault(err error, now time.Time) *ninelives.Fault {
	v := judgeError(err, now)
	f := &ninelives.Fault{Phase: ninelives.PhaseStream, Message: v.message("", now)}
	switch v.trouble {
	case troubleLimited:
		f.Class = ninelives.ClassRateLimit
	case troubleQuota:
		f.Class = ninelives.ClassBilling
	case troubleDeadline:
		f.Class = ninelives.ClassTimeout
	case troubleCanceled:
		f.Class = ninelives.ClassCanceled
	case troubleTooLong, troubleFiltered, troubleMalformed:
		f.Class = v.fault.Class
	case troubleInternal:
		f.Class = ninelives.ClassUnknown
	default:
		// Where the call could not be helped although not everything was tried,
		// another call may do: that is what a broken stream says to clients.
		if f.Class = ninelives.ClassOverloaded; v.fault != nil && !v.exhausted {
			switch v.fault.Class {
			case ninelives.ClassFormat, // of the host: the request's own is malformed
				ninelives.ClassAuth, ninelives.ClassModelNotFound, ninelives.ClassBilling, ninelives.ClassRateLimit:
			default:
				f.Class = v.fault.Class
			}
		}
	}
	return f
}

// wholeSeconds writes a wait in whole seconds, never less than it is.
func wholeSeconds(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// failing is an error as far as a client is concerned.
type failing struct {
	trouble   trouble
	tried     []heal.Tried
	fault     *ninelives.Fault // the last one; may be nil
	exhausted bool
	took      time.Duration
	wait      time.Duration // for Retry-After; 0 if waiting does not help or is not worth it
	back      time.Duration // until somebody may answer again; 0 if unknown
	refused   *refused
}

// judgeError says what an error comes to.
func judgeError(err error, now time.Time) failing {
	var (
		no    *refused
		spent *heal.Exhausted
		fault *ninelives.Fault
	)
	switch {
	case errors.As(err, &no) && no != nil:
		return ofRefused(no)
	case errors.As(err, &spent) && spent != nil:
		return ofExhausted(spent, now)
	case errors.As(err, &fault) && fault != nil:
		return ofFault(fault, now)
	case errors.Is(err, context.DeadlineExceeded):
		return failing{trouble: troubleDeadline}
	case errors.Is(err, context.Canceled):
		return failing{trouble: troubleCanceled}
	}
	return failing{trouble: troubleInternal}
}

func ofRefused(r *refused) failing {
	v := failing{trouble: r.Trouble, refused: r, back: r.Wait}
	if _, known := sayings[r.Trouble]; !known {
		v.trouble = troubleInternal
	}
	switch {
	case r.Trouble == troubleBusy:
		v.wait = min(max(r.Wait, time.Second), longestWait)
	case r.Trouble == troubleLimited && r.Wait <= longestWait:
		v.wait = r.Wait
	}
	return v
}

func ofExhausted(e *heal.Exhausted, now time.Time) failing {
	v := failing{trouble: troubleExhausted, tried: e.Trail, fault: e.Fault, exhausted: true, took: e.Took}
	if e.Back.After(now) {
		v.back = e.Back.Sub(now)
	}
	// What somebody said of the request itself counts for more than that others
	// could not be reached: he would say so again.
	if f := ofRequest(e); f != nil && !e.Deadline {
		own := ofFault(f, now)
		own.tried, own.took = v.tried, v.took
		return own
	}
	if f := e.Fault; f != nil && !e.Deadline && f.Class == ninelives.ClassModelNotFound {
		v.trouble = troubleNoModel
		return v
	}
	var limited, quota, missing int
	for _, t := range e.Trail {
		switch final := t.Fault != nil && t.Fault.Final; {
		case t.Class == ninelives.ClassBilling, t.Class == ninelives.ClassRateLimit && final:
			quota++
		case t.Class == ninelives.ClassRateLimit:
			limited++
		case t.Class == ninelives.ClassModelNotFound:
			missing++
		}
	}
	switch n := len(e.Trail); {
	case e.Deadline:
		v.trouble = troubleDeadline
	case n == 0:
	case quota == n:
		v.trouble = troubleQuota
	case missing == n:
		v.trouble = troubleNoModel
	case limited == n:
		if v.back == 0 && e.Fault != nil {
			v.back = max(e.Fault.RetryAfter, 0)
		}
		// A wait that is only our own guess helps nobody: SDKs would sleep it out
		// three times.
		if v.back > 0 && v.back <= longestWait && hinted(e) {
			v.trouble, v.wait = troubleLimited, v.back
		}
	}
	return v
}

// ofRequest is the last fault of a failed call that is about the request itself;
// nil if there is none. That it was too long for one says nothing of others, but
// where it was the last word.
func ofRequest(e *heal.Exhausted) *ninelives.Fault {
	for _, t := range slices.Backward(e.Trail) {
		switch t.Class {
		case ninelives.ClassContextLength:
			if t.Fault != nil && t.Fault == e.Fault {
				return t.Fault
			}
		case ninelives.ClassFormat, ninelives.ClassContentFilter:
			if t.Fault != nil && t.Fault.Scope != ninelives.ScopeHost {
				return t.Fault
			}
		}
	}
	return nil
}

// hinted says that a provider itself has said when to come back.
func hinted(e *heal.Exhausted) bool {
	if f := e.Fault; f != nil && (f.RetryAfter > 0 || !f.ResetAt.IsZero()) {
		return true
	}
	for _, t := range e.Trail {
		if t.Fault != nil && (t.Fault.RetryAfter > 0 || !t.Fault.ResetAt.IsZero()) {
			return true
		}
	}
	return false
}

// ofFault judges a fault that speaks for itself: the request's own, or one that
// nothing more could be done about.
func ofFault(f *ninelives.Fault, now time.Time) failing {
	v := failing{fault: f}
	class := f.Class
	if class == ninelives.ClassFormat && f.Scope == ninelives.ScopeHost {
		class = ninelives.ClassUnknown // a web page in place of an answer says nothing of the request
	}
	switch class {
	case ninelives.ClassContextLength:
		v.trouble = troubleTooLong
	case ninelives.ClassContentFilter, ninelives.ClassRefusal, ninelives.ClassGuard:
		v.trouble = troubleFiltered
	case ninelives.ClassFormat:
		v.trouble = troubleMalformed
	case ninelives.ClassCanceled:
		v.trouble = troubleCanceled
	default:
		v = ofExhausted(&heal.Exhausted{Fault: f, Back: f.ResetAt, Deadline: errors.Is(f.Err, context.DeadlineExceeded),
			Trail: []heal.Tried{{Candidate: f.Candidate, Class: f.Class, Status: f.Status, Fault: f}}}, now)
		v.exhausted = false
	}
	return v
}
