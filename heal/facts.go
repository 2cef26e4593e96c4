package heal

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// Facts are what a decision needs to know of a request.
type Facts struct {
	// Input is the estimated size of the prompt in tokens.
	Input int
	// MaxTokens is the caller's limit of the answer; zero means none.
	MaxTokens int
	// Output: the answer must satisfy a form. Default: the caller gave a stand-in.
	Output  bool
	Default bool
	Tools   bool
	Images  bool
	// N is the number of choices.
	N int
	// Background: nobody waits for it. Buffered: nobody watches it.
	Background bool
	Buffered   bool
	// CanFit: the request can be made to fit a smaller window (Request.Fit).
	CanFit bool
}

// FactsOf reads the facts of a request.
func FactsOf(req *ninelives.Request) Facts {
	f := Facts{
		MaxTokens:  req.MaxTokens,
		Tools:      len(req.Tools) > 0 && req.ToolChoice.Mode != ninelives.ToolChoiceNone,
		N:          req.N,
		Background: req.Background,
		Buffered:   req.Buffered,
		CanFit:     req.Fit != nil,
	}
	if req.Output != nil {
		f.Output = true
		f.Default = req.Output.Default != nil
	}
	s := sizeOf(req)
	f.Images = s.images > 0
	f.Tools = f.Tools || req.Raw != nil && req.Raw.Decode != nil && req.Raw.Tools
	f.Input = s.tokens()
	return f
}

// The estimate of tokens: 3.7 bytes a token were measured on prose and code;
// pictures and documents cost vendors about this much each.
const (
	bytesPerToken  = 3.7
	tokensPerImage = 1000
	tokensPerFile  = 3000
)

// size is what a request is made of.
type size struct{ text, images, files int }

func (s size) tokens() int {
	return int(float64(s.text)/bytesPerToken) + s.images*tokensPerImage + s.files*tokensPerFile
}

func sizeOf(req *ninelives.Request) size {
	var s size
	if req.Raw != nil && req.Raw.Decode != nil {
		s.text = req.Raw.Text
	}
	for i := range req.Messages {
		s.add(req.Messages[i].Parts)
	}
	for i := range req.Tools {
		t := &req.Tools[i]
		s.text += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	if req.Output != nil {
		s.text += len(req.Output.Schema)
	}
	return s
}

func (s *size) add(parts []ninelives.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case ninelives.Text:
			s.text += len(p.Text)
		case ninelives.ToolCall:
			s.text += len(p.Name) + len(p.Arguments)
		case ninelives.ToolResult:
			s.add(p.Content)
		case ninelives.Reasoning:
			s.text += len(p.Text)
		case ninelives.Refusal:
			s.text += len(p.Text)
		case ninelives.Opaque:
			s.text += len(p.Raw.JSON)
		case ninelives.Image:
			s.images++
		case ninelives.File:
			s.files++
		}
	}
}
