package gateway

import (
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

// codec is one protocol as it is spoken towards clients.
type codec struct {
	protocol ninelives.Protocol
	// read reads a request; path is where it was sent, which names the model in
	// Gemini's protocol.
	read func(path string, body []byte) (wire.Incoming, error)
	// whole writes an answer that is not streamed.
	whole func(*ninelives.Response) ([]byte, error)
	// encoder writes one that is.
	encoder func(wire.EncodeOptions) wire.Encoder
	// fail writes the body of an error.
	fail func(wire.ClientError) []byte
	// requestID is the header that names the request.
	requestID string
	// idPrefix begins the ids of answers.
	idPrefix string
	// cleanFailure: the error event of a stream is an end of its own, after which
	// the connection need not be cut.
	cleanFailure bool
}

var chat = &codec{
	protocol: ninelives.OpenAIChat,
	read:     func(_ string, body []byte) (wire.Incoming, error) { return openai.DecodeChatRequest(body) },
	whole:    func(r *ninelives.Response) ([]byte, error) { return openai.EncodeChatResponse(r), nil },
	encoder:  func(o wire.EncodeOptions) wire.Encoder { return openai.NewChatEncoder(o) },
	fail:     openai.EncodeError, requestID: "X-Request-Id", idPrefix: "chatcmpl-",
}

var responses = &codec{
	protocol: ninelives.OpenAIResponses,
	read:     func(_ string, body []byte) (wire.Incoming, error) { return openai.DecodeResponsesRequest(body) },
	whole:    func(r *ninelives.Response) ([]byte, error) { return openai.EncodeResponsesResponse(r), nil },
	encoder:  func(o wire.EncodeOptions) wire.Encoder { return openai.NewResponsesEncoder(o) },
	fail:     openai.EncodeError, requestID: "X-Request-Id", idPrefix: "resp_", cleanFailure: true,
}

var messages = &codec{
	protocol: ninelives.AnthropicMessages,
	read:     func(_ string, body []byte) (wire.Incoming, error) { return anthropic.DecodeRequest(body) },
	whole:    anthropic.EncodeResponse,
	encoder:  anthropic.NewEncoder,
	fail:     anthropic.EncodeError, requestID: "Request-Id", idPrefix: "msg_",
}

var generate = &codec{
	protocol: ninelives.Gemini,
	read: func(path string, body []byte) (wire.Incoming, error) {
		model, stream, ok := gemini.ParsePath(path)
		if !ok {
			return wire.Incoming{}, fmt.Errorf("%q is no path of this protocol", path)
		}
		req, err := gemini.DecodeRequest(model, body)
		return wire.Incoming{Request: req, Stream: stream, Usage: true}, err
	},
	whole:   func(r *ninelives.Response) ([]byte, error) { return gemini.EncodeResponse(r), nil },
	encoder: gemini.NewEncoder,
	fail:    gemini.EncodeError, requestID: "X-Request-Id",
}

// geminiArray is Gemini's older form of a stream: one JSON array.
var geminiArray = func() *codec {
	c := *generate
	c.encoder = gemini.NewArrayEncoder
	return &c
}()

// codecOf finds a protocol; nil if clients cannot speak it.
func codecOf(p ninelives.Protocol) *codec {
	for _, c := range []*codec{chat, responses, messages, generate} {
		if c.protocol == p {
			return c
		}
	}
	return nil
}

// ReadRequest reads a client's request as it is kept in the journal: its
// protocol, the path that it was sent to, and its bytes.
func ReadRequest(p ninelives.Protocol, path string, body []byte) (*ninelives.Request, error) {
	c := codecOf(p)
	if c == nil {
		return nil, fmt.Errorf("requests of the protocol %q cannot be read", p)
	}
	path, _, _ = strings.Cut(path, "?")
	in, err := c.read(path, body)
	if err != nil {
		return nil, err
	}
	return in.Request, nil
}
