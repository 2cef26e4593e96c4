package gateway

import (
	"bytes"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // sizes of pictures
	_ "image/png"  // sizes of pictures
	"net/http"
	"strconv"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// What a request holds beside its texts, in tokens.
//
// Source: Anthropic's pages on vision (width × height / 750) and token
// counting; the rest is the usual framing of a message.
const (
	tokensPerMessage = 4
	tokensPerCall    = 8
	tokensPerPicture = 1000 // of unknown size
	tokensPerPage    = 3000 // a document of unknown length
	pixelsPerToken   = 750
	largestPicture   = 1600
)

// countTokens answers how many tokens a request has: an estimate of our own,
// at once, for which nobody is asked. Clients send many of these in a row.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.known(w, r); !ok {
		return
	}
	c, path := protocolOf(r), r.URL.Path
	body, forget, err := s.read(w, r, s.plan.Load().Limits)
	defer forget()
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if model, ok := strings.CutSuffix(path, ":countTokens"); ok {
		c, path = generate, model+":generateContent"
		if inner := rawjson.Get(body, "generateContentRequest"); inner != nil { // the whole request, as it would be made
			body = inner
		}
	}
	in, err := c.read(path, body)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	n := tokensOf(in.Request)
	switch c {
	case generate:
		sendJSON(w, []byte(`{"totalTokens":`+strconv.Itoa(n)+`}`))
	case responses:
		sendJSON(w, []byte(`{"object":"response.input_tokens","input_tokens":`+strconv.Itoa(n)+`}`))
	default:
		sendJSON(w, []byte(`{"input_tokens":`+strconv.Itoa(n)+`}`))
	}
}

// tokensOf estimates how many tokens a request has.
func tokensOf(req *ninelives.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += tokensPerMessage + partTokens(m.Parts)
	}
	for _, t := range req.Tools {
		n += tokensPerCall + heal.TextTokens(t.Name) + heal.TextTokens(t.Description) + heal.TextTokens(string(t.Schema))
	}
	if req.Output != nil {
		n += heal.TextTokens(string(req.Output.Schema))
	}
	return n
}

func partTokens(parts []ninelives.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case ninelives.Text:
			n += heal.TextTokens(p.Text)
		case ninelives.Reasoning:
			n += heal.TextTokens(p.Text)
		case ninelives.Refusal:
			n += heal.TextTokens(p.Text)
		case ninelives.ToolCall:
			n += tokensPerCall + heal.TextTokens(p.Name) + heal.TextTokens(p.Arguments)
		case ninelives.ToolResult:
			n += tokensPerCall + partTokens(p.Content)
		case ninelives.Opaque:
			n += heal.TextTokens(string(p.Raw.JSON))
		case ninelives.Image:
			n += pictureTokens(p.Data)
		case ninelives.File:
			n += tokensPerPage
		}
	}
	return n
}

// pictureTokens is what a picture costs, by its size as its first bytes tell it.
func pictureTokens(data []byte) int {
	size, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return tokensPerPicture
	}
	return max(1, min(size.Width*size.Height/pixelsPerToken, largestPicture))
}
