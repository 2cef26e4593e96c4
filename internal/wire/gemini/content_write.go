package gemini

import (
	"path"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// writer writes parts.
type writer struct {
	rawjson.Writer
	skip   []string // member names that are not written
	answer bool     // the parts are a server's answer
	note   func(format string, args ...any)
	// malformed: a call could not be written, for its arguments are no object.
	malformed bool
}

// parts writes the parts of one content. ownIDs has the ids of calls that are
// the API's own.
func (w *writer) parts(parts []ninelives.Part, ownIDs map[string]bool) {
	var proof string // of the next part
	for _, part := range parts {
		switch p := part.(type) {
		case ninelives.Reasoning:
			if p.Provenance.Field == fieldSignature && p.Provenance.Blob != "" && p.Extra.For(ninelives.Gemini) == nil {
				proof = w.loose(proof)
				proof = p.Provenance.Blob
				continue
			}
			proof = w.loose(proof)
			w.reasoning(p)
			continue
		case ninelives.ToolCall:
			proof = w.loose(proof)
			w.call(p, ownIDs)
			continue
		case ninelives.ToolResult:
			proof = w.loose(proof)
			w.result(p, ownIDs)
			continue
		case ninelives.Opaque:
			proof = w.loose(proof)
			if raw := p.Raw.For(ninelives.Gemini); raw != nil {
				w.Raw(raw)
			}
			continue
		}
		w.said(part, proof)
		proof = ""
	}
	w.loose(proof)
	for _, part := range parts {
		if r, ok := part.(ninelives.ToolResult); ok {
			for _, c := range r.Content {
				switch c.(type) {
				case ninelives.Image, ninelives.File:
					w.said(c, "")
				}
			}
		}
	}
}

// loose writes a proof that has lost the part that it came with.
func (w *writer) loose(proof string) string {
	if proof != "" {
		w.Open('{')
		w.StringMember("text", "")
		w.StringMember("thoughtSignature", proof)
		w.Close('}')
	}
	return ""
}

// said writes a part of content, with a proof if there is one.
func (w *writer) said(part ninelives.Part, proof string) {
	at := w.Open('{')
	var meta ninelives.Meta
	switch p := part.(type) {
	case ninelives.Text:
		meta = p.Meta
		w.StringMember("text", p.Text)
	case ninelives.Refusal:
		w.StringMember("text", p.Text)
	case ninelives.Image:
		meta = p.Meta
		w.media(p.URL, p.FileID, p.MediaType, "", p.Data, "image/jpeg")
	case ninelives.File:
		meta = p.Meta
		w.media(p.URL, p.FileID, p.MediaType, p.Name, p.Data, "")
	}
	if proof != "" {
		w.StringMember("thoughtSignature", proof)
	}
	w.Rest(at, meta.Extra.For(ninelives.Gemini), w.skip)
	w.Close('}')
}

// media writes a picture or a file. The API wants its media type: where none
// is given, it is guessed from the URL.
func (w *writer) media(uri, id, mediaType, name string, data []byte, otherwise string) {
	if data != nil {
		w.Name("inlineData")
		w.Open('{')
		w.StringMember("mimeType", mediaType)
		w.StringMember("data", rawjson.EncodeBase64(data))
	} else {
		if uri == "" {
			uri = id
		}
		if mediaType == "" {
			if mediaType = typeOf(uri); mediaType == "" && name != "" {
				mediaType = typeOf(name)
			}
			if mediaType == "" {
				mediaType = otherwise
			}
		}
		w.Name("fileData")
		w.Open('{')
		if mediaType != "" {
			w.StringMember("mimeType", mediaType)
		}
		w.StringMember("fileUri", uri)
	}
	if name != "" {
		w.StringMember("displayName", name)
	}
	w.Close('}')
}

// typeOf guesses a media type from the end of a name or URL; "" if it cannot.
func typeOf(name string) string {
	name, _, _ = strings.Cut(name, "?")
	switch strings.ToLower(path.Ext(name)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".heic":
		return "image/heic"
	case ".pdf":
		return "application/pdf"
	case ".txt", ".md":
		return "text/plain"
	case ".csv":
		return "text/csv"
	case ".html":
		return "text/html"
	case ".mp3":
		return "audio/mp3"
	case ".wav":
		return "audio/wav"
	case ".ogg":
		return "audio/ogg"
	case ".flac":
		return "audio/flac"
	case ".mp4":
		return "video/mp4"
	case ".mov":
		return "video/mov"
	case ".webm":
		return "video/webm"
	}
	return ""
}

// reasoning writes a thought, or a proof that is a part of its own. Reasoning
// of other protocols has no place in a request; in an answer all that can be
// read is shown as a thought.
func (w *writer) reasoning(p ninelives.Reasoning) {
	at := len(w.B)
	switch field := p.Provenance.Field; {
	case field == fieldSignature:
		at = w.Open('{')
		own := p.Extra.For(ninelives.Gemini)
		if text := rawjson.Get(own, "text"); text != nil {
			w.RawMember("text", text)
		}
		w.StringMember("thoughtSignature", p.Provenance.Blob)
		w.Rest(at, own, w.skip)
		w.Close('}')
		return
	case field == fieldThought, w.answer && p.Text != "":
		at = w.Open('{')
		w.StringMember("text", p.Text)
		w.BoolMember("thought", true)
		if field == fieldThought && p.Provenance.Signature != "" {
			w.StringMember("thoughtSignature", p.Provenance.Signature)
		}
		w.Rest(at, p.Extra.For(ninelives.Gemini), w.skip)
		w.Close('}')
	case p.Text != "":
		w.noted("reasoning of another protocol was left out: %q has no place here", field)
	}
}

func (w *writer) call(p ninelives.ToolCall, ownIDs map[string]bool) {
	if rawjson.Kind([]byte(p.Arguments)) != '{' || !rawjson.Valid([]byte(p.Arguments)) {
		w.malformed = true
		return
	}
	extra := p.Extra.For(ninelives.Gemini)
	at := w.Open('{')
	w.Name("functionCall")
	inner := w.Open('{')
	if p.ID != "" && (w.answer || ownIDs[p.ID]) {
		w.StringMember("id", p.ID)
	}
	w.StringMember("name", p.Name)
	w.Name("args")
	w.RawString(p.Arguments)
	w.Rest(inner, rawjson.Get(extra, "functionCall"), w.skip)
	w.Close('}')
	if p.Signature != "" {
		w.StringMember("thoughtSignature", p.Signature)
	}
	w.Rest(at, extra, append([]string{"functionCall"}, w.skip...))
	w.Close('}')
}

// result writes the result of a call. Pictures and files in it follow all
// results as parts of their own, which every model takes.
func (w *writer) result(p ninelives.ToolResult, ownIDs map[string]bool) {
	extra := p.Extra.For(ninelives.Gemini)
	at := w.Open('{')
	w.Name("functionResponse")
	inner := w.Open('{')
	if ownIDs[p.CallID] {
		w.StringMember("id", p.CallID)
	}
	w.StringMember("name", p.Name)
	w.Name("response")
	w.outcome(p)
	w.Rest(inner, rawjson.Get(extra, "functionResponse"), w.skip)
	w.Close('}')
	w.Rest(at, extra, append([]string{"functionResponse"}, w.skip...))
	w.Close('}')
}

// outcome writes what a tool gave: an object as it is, anything else as the
// value of "output" or "error".
func (w *writer) outcome(p ninelives.ToolResult) {
	text := p.Text()
	if len(p.Content) > 1 {
		text = strings.Join(texts(p.Content), "\n")
	}
	raw := []byte(text)
	if rawjson.Kind(raw) == '{' && rawjson.Valid(raw) && !p.IsError {
		if plain, _ := plainResult(raw); plain == text { // it is not taken for another text
			w.Raw(raw)
			return
		}
	}
	w.Open('{')
	if p.IsError {
		w.StringMember("error", text)
	} else {
		w.StringMember("output", text)
	}
	w.Close('}')
}

func texts(parts []ninelives.Part) []string {
	var list []string
	for _, part := range parts {
		if t, ok := part.(ninelives.Text); ok {
			list = append(list, t.Text)
		}
	}
	return list
}

// ownIDs gives the ids of calls that are the API's own.
func ownIDs(messages []ninelives.Message) map[string]bool {
	var own map[string]bool
	for _, m := range messages {
		for _, c := range m.ToolCalls() {
			if rawjson.Get(c.Extra.For(ninelives.Gemini), "functionCall") != nil {
				if own == nil {
					own = map[string]bool{}
				}
				own[c.ID] = true
			}
		}
	}
	return own
}

// inOrder puts results in the order of the calls before them: calls without
// ids of their own are told apart by it.
func inOrder(results []ninelives.Part, calls []ninelives.ToolCall) []ninelives.Part {
	place := func(part ninelives.Part) int {
		r, ok := part.(ninelives.ToolResult)
		if !ok {
			return len(calls)
		}
		return slices.IndexFunc(calls, func(c ninelives.ToolCall) bool { return c.ID == r.CallID })
	}
	sorted := slices.Clone(results)
	slices.SortStableFunc(sorted, func(a, b ninelives.Part) int { return place(a) - place(b) })
	return sorted
}

func (w *writer) noted(format string, args ...any) {
	if w.note != nil {
		w.note(format, args...)
	}
}
