package provider

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// readWhole reads an answer that came in one piece, and yields it as a stream
// would have.
func (a *attempt) readWhole(resp *http.Response, text []byte) (*ninelives.Response, *ninelives.Fault) {
	t := bytes.TrimSpace(text)
	switch {
	case len(t) == 0, string(t) == "null":
		return nil, a.classify(resp, nil, true)
	case t[0] != '{' && t[0] != '[': // a page of HTML, a plain word
		return nil, a.classify(resp, text, true)
	case !rawjson.Valid(t):
		f := &ninelives.Fault{Class: ninelives.ClassUnknown, Status: resp.StatusCode, Billed: ninelives.BilledMaybe}
		if !beginsAnswer(t) {
			f = a.classify(resp, text, true)
		}
		if f.Class == ninelives.ClassUnknown {
			f.Class, f.Scope, f.Phase, f.Message = ninelives.ClassStreamBroken, ninelives.ScopeModel, a.watch.at(), "the answer is cut or garbled: it is no valid JSON"
		}
		return nil, f
	}
	answer, err := a.codec.decode(text, a.options)
	if err != nil {
		var f *ninelives.Fault
		if !errors.As(err, &f) {
			f = &ninelives.Fault{Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: ninelives.PhaseAnswer, Status: resp.StatusCode,
				Billed: ninelives.BilledMaybe, Message: "the answer cannot be read: " + err.Error(), Err: err}
		}
		return nil, f
	}
	for i, part := range answer.Message.Parts {
		if ev := delta(part, i); ev != nil && !a.emit(ev) {
			return nil, nil
		}
	}
	if a.raw != nil && !a.raw.Stream {
		if a.relay(text, true, false); a.left {
			return nil, nil
		}
	}
	return answer, nil
}

// beginsAnswer says that a broken JSON object is what is left of an answer. Its
// words are the model's own then, and tell nothing about a fault.
func beginsAnswer(text []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if open, err := dec.ReadToken(); err != nil || open.Kind() != jsontext.KindBeginObject {
		return false
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != jsontext.KindString {
			return false
		}
		switch name.String() {
		case "choices", "output", "content", "candidates": // of chat, Responses, Messages, Gemini
			return true
		case "message": // Ollama's, if it is no error's
			if dec.PeekKind() == jsontext.KindBeginObject {
				return true
			}
		}
		if dec.SkipValue() != nil {
			return false
		}
	}
}
