package openai

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// EncodeEmbedRequest writes a request for vectors.
func EncodeEmbedRequest(req *ninelives.EmbedRequest, model string) ([]byte, error) {
	var w rawjson.Writer
	place := w.Open('{')
	w.StringMember("model", model)
	w.Name("input")
	w.Open('[')
	for _, text := range req.Texts {
		w.String(text)
	}
	for _, tokens := range req.Tokens {
		w.Open('[')
		for _, t := range tokens {
			w.Int(int64(t))
		}
		w.Close(']')
	}
	w.Close(']')
	if req.Encoding != "" {
		w.StringMember("encoding_format", req.Encoding)
	}
	if req.Dimensions > 0 {
		w.IntMember("dimensions", int64(req.Dimensions))
	}
	if req.User != "" {
		w.StringMember("user", req.User)
	}
	w.Rest(place, req.Extra.For(ninelives.OpenAIChat), nil)
	w.Close('}')
	return w.B, nil
}

// DecodeEmbedRequest reads a client's request for vectors. Its Raw is body,
// which must not change while the call runs. The error is a *ninelives.Fault of
// class format, in words for the client.
func DecodeEmbedRequest(body []byte) (*ninelives.EmbedRequest, error) {
	head, err := wire.Peek(ninelives.OpenAIChat, body)
	if err != nil {
		return nil, err
	}
	if !rawjson.Valid(body) {
		return nil, badEmbed("the body is not valid JSON")
	}
	req := &ninelives.EmbedRequest{Raw: &ninelives.Raw{Protocol: ninelives.OpenAIChat, Body: body, Model: head.ModelAt}}
	var kept rawjson.Kept
	var input []byte
	for m := range rawjson.Members(body) {
		switch string(m.Name) {
		case "model":
			req.Model = rawjson.String(m.Value)
		case "input":
			if input != nil {
				return nil, badEmbed("the member %q stands twice in the body", "input")
			}
			input = m.Value
		case "encoding_format":
			req.Encoding = rawjson.String(m.Value)
		case "dimensions":
			n, ok := rawjson.Int(m.Value)
			if !rawjson.Null(m.Value) && (!ok || n < 1 || n > 1<<20) {
				return nil, badEmbed("dimensions must be a positive whole number")
			}
			req.Dimensions = int(n)
		case "user":
			req.User = rawjson.String(m.Value)
		default:
			kept.Add(m)
		}
	}
	if extra := kept.Object(); extra != nil {
		req.Extra = ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: extra}
	}
	if req.Model == "" {
		return nil, badEmbed("model is missing: name the embedding model")
	}
	if e := req.Encoding; e != "" && e != ninelives.EncodingFloat && e != ninelives.EncodingBase64 {
		return nil, badEmbed("encoding_format must be float or base64")
	}
	if err := embedInput(req, input); err != nil {
		return nil, err
	}
	return req, nil
}

// embedInput reads the four forms of the input: a text, a list of texts, a list
// of tokens, and a list of those.
func embedInput(req *ninelives.EmbedRequest, v []byte) error {
	const forms = "input must be a text, a list of texts, a list of tokens or a list of such lists"
	if rawjson.Kind(v) == '"' {
		req.Texts = []string{rawjson.String(v)}
		return nil
	}
	if rawjson.Kind(v) != '[' {
		return badEmbed(forms)
	}
	var kind byte
	var tokens []int
	for el := range rawjson.Elements(v) {
		k := rawjson.Kind(el)
		if k >= '0' && k <= '9' {
			k = '0'
		}
		if kind == 0 {
			kind = k
		}
		if k != kind {
			return badEmbed("%s, not a mixture of them", forms)
		}
		switch k {
		case '"':
			req.Texts = append(req.Texts, rawjson.String(el))
		case '0':
			n, ok := rawjson.Int(el)
			if !ok {
				return badEmbed(forms)
			}
			tokens = append(tokens, int(n))
		case '[':
			list := []int{}
			for t := range rawjson.Elements(el) {
				n, ok := rawjson.Int(t)
				if !ok || n < 0 {
					return badEmbed(forms)
				}
				list = append(list, int(n))
			}
			req.Tokens = append(req.Tokens, list)
		default:
			return badEmbed(forms)
		}
	}
	if tokens != nil {
		req.Tokens = [][]int{tokens}
	}
	if req.Inputs() == 0 {
		return badEmbed("input is empty")
	}
	return nil
}

func badEmbed(format string, args ...any) error {
	return &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
		Status: 400, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
}

// DecodeEmbedResponse reads vectors out of body, which must be valid JSON and
// not change as long as they are used. They come in the order of the inputs,
// whatever theirs is in the answer; one that is missing is nil.
func DecodeEmbedResponse(body []byte, inputs int) *ninelives.EmbedResponse {
	resp := &ninelives.EmbedResponse{Vectors: make([][]byte, inputs)}
	for m := range rawjson.Members(body) {
		switch string(m.Name) {
		case "model":
			resp.Model = rawjson.String(m.Value)
		case "usage":
			resp.Usage.Extra = ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: m.Value}
			n, ok := rawjson.Int(rawjson.Get(m.Value, "prompt_tokens"))
			if !ok {
				n, ok = rawjson.Int(rawjson.Get(m.Value, "total_tokens"))
			}
			if ok {
				resp.Usage.Input, resp.Usage.Reported = int(n), ninelives.UsageInput
			}
		case "data":
			at := 0
			for el := range rawjson.Elements(m.Value) {
				i := at
				if n, ok := rawjson.Int(rawjson.Get(el, "index")); ok {
					i = int(n)
				}
				if i >= 0 && i < inputs {
					resp.Vectors[i] = rawjson.Get(el, "embedding")
				}
				at++
			}
		}
	}
	return resp
}

// EncodeEmbedResponse writes an answer for a client that wants its vectors in
// the given encoding.
func EncodeEmbedResponse(resp *ninelives.EmbedResponse, encoding string) ([]byte, error) {
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("object", "list")
	w.Name("data")
	w.Open('[')
	for i, v := range resp.Vectors {
		v, err := embedVector(resp, i, v, encoding)
		if err != nil {
			return nil, err
		}
		w.Open('{')
		w.StringMember("object", "embedding")
		w.IntMember("index", int64(i))
		w.RawMember("embedding", v)
		w.Close('}')
	}
	w.Close(']')
	w.StringMember("model", resp.Model)
	w.Name("usage")
	w.Open('{')
	w.IntMember("prompt_tokens", int64(resp.Usage.Input))
	w.IntMember("total_tokens", int64(resp.Usage.Input))
	w.Close('}')
	w.Close('}')
	return w.B, nil
}

// embedVector is vector i in the wanted encoding, untouched where it has it.
func embedVector(resp *ninelives.EmbedResponse, i int, v []byte, encoding string) ([]byte, error) {
	isText, wantsText := rawjson.Kind(v) == '"', encoding == ninelives.EncodingBase64
	if isText == wantsText {
		return v, nil
	}
	floats, err := resp.Floats(i)
	if err != nil {
		return nil, err
	}
	var w rawjson.Writer
	if wantsText {
		bytes := make([]byte, 0, 4*len(floats))
		for _, f := range floats {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(f))
		}
		w.String(base64.StdEncoding.EncodeToString(bytes))
		return w.B, nil
	}
	w.Open('[')
	for _, f := range floats {
		if f != f || f > math.MaxFloat32 || f < -math.MaxFloat32 {
			return nil, fmt.Errorf("vector %d holds a number that JSON has no form for", i)
		}
		w.Float(float64(f))
	}
	w.Close(']')
	return w.B, nil
}
