package provider

import (
	"io"
	"mime"
	"net/http"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/bedrock"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// codec is one protocol as a client speaks it.
type codec struct {
	encode  func(*ninelives.Request, wire.Target) (wire.Encoded, error)
	decode  func([]byte, wire.DecodeOptions) (*ninelives.Response, error)
	decoder func(wire.DecodeOptions) wire.Decoder
	header  map[string]string
}

var codecs = map[ninelives.Protocol]codec{
	ninelives.OpenAIChat: {
		encode:  openai.EncodeChatRequest,
		decode:  openai.DecodeChatResponse,
		decoder: openai.NewChatDecoder,
	},
	ninelives.OpenAIResponses: {
		encode:  openai.EncodeResponsesRequest,
		decode:  openai.DecodeResponsesResponse,
		decoder: openai.NewResponsesDecoder,
	},
	ninelives.AnthropicMessages: {
		encode:  anthropic.EncodeRequest,
		decode:  anthropic.DecodeResponse,
		decoder: anthropic.NewDecoder,
		// Source: Anthropic's "Versions"; there has been one since 2023.
		header: map[string]string{"Anthropic-Version": "2023-06-01"},
	},
	ninelives.Gemini: {
		encode:  gemini.EncodeRequest,
		decode:  gemini.DecodeResponse,
		decoder: gemini.NewDecoder,
	},
}

// frames reads the units of a stream.
type frames interface {
	Next() (wire.Frame, error)
}

const typeEvents = "text/event-stream"

// framesOf finds the framing of a streamed answer. Whatever is no AWS event
// stream is read as server-sent events: content types are often wrong, and
// what holds no event is given back whole.
func framesOf(h http.Header, body io.Reader, c ninelives.Candidate) frames {
	if mediaType(h) == bedrock.ContentType {
		return bedrock.NewReader(body, c)
	}
	return sse.NewReader(body)
}

func mediaType(h http.Header) string {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
