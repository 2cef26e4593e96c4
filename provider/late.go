package provider

import (
	"bytes"

	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// belated says that an event which follows the end of an answer is one that
// clients take for a failure: an error, or what is no JSON. The answer stands, so
// that it is not relayed.
func belated(f wire.Frame) bool {
	data := bytes.TrimSpace(f.Data)
	switch {
	case f.Event == "error", f.Event == "response.failed":
		return true
	case len(data) == 0, bytes.EqualFold(data, []byte("[DONE]")):
		return false
	case !rawjson.Valid(data):
		return true
	}
	failure := rawjson.Get(data, "error")
	return failure != nil && !rawjson.Null(failure) || rawjson.Is(rawjson.Get(data, "type"), "error")
}

// inTime is what may be relayed of the bytes after the last event that was read:
// all of them, but where one that is belated is among them, or begun.
func inTime(rest []byte) []byte {
	if len(bytes.TrimSpace(rest)) == 0 {
		return rest
	}
	in := sse.NewReader(bytes.NewReader(append(bytes.Clone(rest), "\n\n"...)))
	for {
		f, err := in.Next()
		if err != nil {
			return rest
		}
		if belated(f) {
			return nil
		}
	}
}
