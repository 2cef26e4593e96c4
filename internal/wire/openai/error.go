package openai

import (
	"cmp"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeError writes an error as the body that both of OpenAI's protocols have
// for it, in the words that clients know.
func EncodeError(e wire.ClientError) []byte {
	words := errorWordsOf(e)
	var w rawjson.Writer
	w.Open('{')
	w.Name("error")
	w.Open('{')
	w.StringMember("message", e.Text())
	w.StringMember("type", cmp.Or(e.Type, words[0]))
	stringOrNull(&w, "param", e.Param)
	code := e.Code
	if code == "" && e.Type == "" {
		code = words[1]
	}
	stringOrNull(&w, "code", code)
	e.WriteTrail(&w)
	w.Close('}')
	w.Close('}')
	return w.B
}

func stringOrNull(w *rawjson.Writer, name, v string) {
	if v == "" {
		w.RawMember(name, chatNull)
		return
	}
	w.StringMember(name, v)
}

// errorWordsOf finds type and code for an error.
func errorWordsOf(e wire.ClientError) [2]string {
	if words, ok := chatErrorWords[e.Class]; ok {
		return words
	}
	code := string(e.Class)
	switch {
	case e.Status == 401 || e.Status == 403:
		return [2]string{"authentication_error", cmp.Or(code, "invalid_api_key")}
	case e.Status == 429:
		return [2]string{"rate_limit_error", cmp.Or(code, "rate_limit_exceeded")}
	case e.Status >= 400 && e.Status < 500:
		return [2]string{"invalid_request_error", code}
	}
	return [2]string{"server_error", code}
}

// chatErrorWords are OpenAI's type and code for each class that has them.
var chatErrorWords = map[ninelives.Class][2]string{
	ninelives.ClassRateLimit:     {"rate_limit_error", "rate_limit_exceeded"},
	ninelives.ClassBilling:       {"insufficient_quota", "insufficient_quota"},
	ninelives.ClassAuth:          {"authentication_error", "invalid_api_key"},
	ninelives.ClassOverloaded:    {"service_unavailable_error", "server_is_overloaded"},
	ninelives.ClassTimeout:       {"timeout_error", "timeout"},
	ninelives.ClassModelNotFound: {"invalid_request_error", "model_not_found"},
	ninelives.ClassContextLength: {"invalid_request_error", "context_length_exceeded"},
	ninelives.ClassContentFilter: {"invalid_request_error", "content_filter"},
	ninelives.ClassFormat:        {"invalid_request_error", "invalid_request"},
}
