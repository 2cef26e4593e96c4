// Package wire holds what the protocol packages below it share: the contract
// between them and the provider, the dialects of servers as data, the repair
// of histories, the assembly of tool calls, and the one classification of
// faults. It is the only place that knows what providers send.
//
// A protocol package (openai, anthropic, gemini, …) translates between bytes
// and the vocabulary of package ninelives in both directions:
//
//	client side   EncodeRequest, DecodeResponse, NewDecoder (streams)
//	server side   DecodeRequest, EncodeResponse, NewEncoder (streams)
//
// None of them does I/O, reads a clock or starts a goroutine.
package wire

import (
	"fmt"
	"slices"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Target is whom a request is written for.
type Target struct {
	Candidate ninelives.Candidate
	// Dialect is the dialect with all repairs applied (see Dialect.Apply).
	Dialect Dialect
	// Stream asks for a streamed answer.
	Stream bool
	// Room is about how many bytes the body will have: so much is taken at once.
	Room int
}

// Notes tell, a line each and each once, what could not be sent as it was.
type Notes []string

// Add adds a line.
func (n *Notes) Add(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(*n, line) {
		*n = append(*n, line)
	}
}

// Encoded is a request in bytes.
type Encoded struct {
	Body []byte
	// Header are extra header fields that the body needs (beta switches).
	Header map[string]string
	// Names maps tool names as sent back to the caller's own; nil if all are alike.
	Names map[string]string
	// Notes tell, a line each, what could not be sent as it was.
	Notes Notes
	// OutputTool is the tool that the request forces to get structured output;
	// empty if none. It goes into DecodeOptions.
	OutputTool string
}

// Incoming is a client's request, read by the server side of a protocol.
type Incoming struct {
	Request *ninelives.Request
	// Stream says that the client asked for a streamed answer.
	Stream bool
	// Usage says that it asked for usage in the stream, where the protocol
	// leaves that to the client.
	Usage bool
}

// DecodeOptions tell a decoder about the request that it reads the answer of.
type DecodeOptions struct {
	Candidate ninelives.Candidate
	Dialect   Dialect
	// Names maps tool names as sent to the caller's own.
	Names map[string]string
	// Tools are the request's tools: their schemas decide where a nested JSON
	// string is decoded, and textual tool calls are matched against their names.
	Tools []ninelives.Tool
	// MaxTokens is the limit that was sent, 0 if none: an answer that is cut
	// there is truncated, whatever it says.
	MaxTokens int
	// OutputTool is the tool that was forced to get structured output; its
	// arguments are the text of the answer. Empty if none.
	OutputTool string
	// Attempt is the number that every emitted event carries. Numbering where
	// the event is made saves the second allocation of numbering it later.
	Attempt int
	// Now is when the answer began: a stamp in an error inside of it is a wait
	// from there. Zero means unknown: a stamp then tells no wait.
	Now time.Time
	// Garbled is asked what to do about a frame of a stream that is no JSON and
	// comes before the end of the answer: true loses what it held and reads on.
	// Nil is false: the stream is broken.
	Garbled func() bool
}

// ReadOn says that the stream is to be read on after a frame that is no JSON.
func (o DecodeOptions) ReadOn() bool { return o.Garbled != nil && o.Garbled() }

// Frame is one unit of a stream: a server-sent event, a line of NDJSON, a
// message of an AWS event stream. Data is only valid until the next one is read.
type Frame struct {
	Event string
	ID    string
	Data  []byte
}

// State is how far a stream has come.
type State int

// The states of a stream.
const (
	// Open: the terminal marker has not been seen.
	Open State = iota
	// Finished: the terminal marker has been seen, the answer stands; usage
	// may still follow.
	Finished
	// Closed: nothing worth reading follows.
	Closed
)

// Decoder reads the frames of one streamed answer. It is not safe for
// concurrent use.
type Decoder interface {
	// Frame reads one frame and emits its events: deltas only, never Done. An
	// emit that returns false stops the frame. The error is a *Fault for an
	// error that the provider reports in band; after Finished there is none.
	Frame(f Frame, emit func(ninelives.Event) bool) error
	// State tells how far the stream has come.
	State() State
	// Response gives the answer so far. When the stream is still Open, cause
	// (nil at a clean end of file) makes it a *Fault of class stream_broken,
	// or empty if not one frame came, with the partial answer in it.
	Response(cause error) (*ninelives.Response, error)
}

// EncodeOptions tell an Encoder what the head of a streamed answer says. The
// answer itself is only known at its end.
type EncodeOptions struct {
	// ID, Model and Created of the answer; where they are empty, those of the
	// Response are written once they are known.
	ID      string
	Model   string
	Created time.Time
	// Usage says that the client asked for usage in the stream, where the
	// protocol leaves it to the client.
	Usage bool
	// Maker is whose reasoning the answer has, where that has no proof of its own
	// that would only come later; zero if that is not known. A client that wants
	// one gets a mark in its place (see Mark).
	Maker ninelives.Provenance
}

// Encoder writes one streamed answer for a client: it is what a Decoder reads.
// It is not safe for concurrent use.
type Encoder interface {
	// Event appends an event to dst, framing included. Deltas are written as
	// they are; Done writes what no delta had, the end and the terminal marker.
	// Notices and Discards have no form on the wire and append nothing.
	Event(dst []byte, ev ninelives.Event) []byte
	// Fail appends the protocol's own error event, after which nothing follows:
	// never a made-up end.
	Fail(dst []byte, fault *ninelives.Fault) []byte
	// KeepAlive appends a sign of life that every client of the protocol reads
	// over and that resets the idle limits of all that have one.
	//
	// Source: measured with 16 clients, November 2026.
	KeepAlive(dst []byte) []byte
	// Adopt makes the encoder go on with an answer that the client holds the
	// beginning of in the bytes of a provider of the same protocol. It is called
	// before any event. Heads are those of the frames that the client holds that
	// no delta was read from, and, where any chunk names the answer, the first one;
	// told is what was read from the others, a delta for each part suffices; frames
	// is how many there were in all.
	//
	// What follows is written into the same answer: under its id, into the
	// blocks and items that are open, with the numbers that come next. A call
	// must be held by the client whole or not at all.
	Adopt(heads []byte, told []ninelives.Event, frames int)
}
