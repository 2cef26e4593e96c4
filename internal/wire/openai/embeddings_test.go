package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestEmbedRequestHasFourFormsOfInput(t *testing.T) {
	for input, want := range map[string]string{
		`"a"`:                `["a"] []`,
		`["a","\u00fc", ""]`: `["a" "ü" ""] []`,
		`[1,2,3]`:            `[] [[1 2 3]]`,
		`[[1,2],[3]]`:        `[] [[1 2] [3]]`,
	} {
		body := `{"model":"m", "input": ` + input + `,"dimensions":8,"encoding_format":"base64","user":"u","x":[1.0]}`
		req, err := DecodeEmbedRequest([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		if got := fmt.Sprintf("%q %v", req.Texts, req.Tokens); got != want {
			t.Errorf("%s: %s", input, got)
		}
		if req.Model != "m" || req.Dimensions != 8 || req.Encoding != "base64" || req.User != "u" || string(req.Extra.JSON) != `{"x":[1.0]}` {
			t.Errorf("%+v", req)
		}
		if at := req.Raw.Model; body[at[0]:at[1]] != `"m"` || string(req.Raw.Body) != body {
			t.Errorf("raw %+v", req.Raw)
		}
		again, err := EncodeEmbedRequest(req, "other")
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeEmbedRequest(again)
		if err != nil || back.Model != "other" || fmt.Sprintf("%q %v", back.Texts, back.Tokens) != want || back.Dimensions != 8 || string(back.Extra.JSON) != `{"x":[1.0]}` {
			t.Errorf("written %s, %v", again, err)
		}
	}
}

func TestEmbedRequestThatMakesNoSenseIsRefused(t *testing.T) {
	for body, says := range map[string]string{
		``:                                          "not a JSON object",
		`[]`:                                        "not a JSON object",
		`{"model":"m","input":"a"`:                  "not closed",
		`{"model":"m","input":tru}`:                 "not valid JSON",
		`{"input":"a"}`:                             "model is missing",
		`{"model":"m"}`:                             "input must be",
		`{"model":"m","input":{}}`:                  "input must be",
		`{"model":"m","input":[]}`:                  "input is empty",
		`{"model":"m","input":["a",1]}`:             "mixture",
		`{"model":"m","input":[1.5]}`:               "input must be",
		`{"model":"m","input":[[1,"a"]]}`:           "input must be",
		`{"model":"m","input":"a","input":1}`:       "twice",
		`{"model":"m","model":"n","input":"a"}`:     "twice",
		`{"model":"m","input":"a","dimensions":-1}`: "dimensions",
		`{"model":"m","input":"a","encoding_format":"json"}`:          "encoding_format",
		`{"model":"m","input":"a","dimensions":99999999999999999999}`: "dimensions",
	} {
		_, err := DecodeEmbedRequest([]byte(body))
		var f *ninelives.Fault
		if !errors.As(err, &f) || f.Class != ninelives.ClassFormat || f.Status != 400 || !strings.Contains(f.Message, says) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestEmbedResponseIsWrittenInTheWantedEncoding(t *testing.T) {
	resp := &ninelives.EmbedResponse{Vectors: [][]byte{[]byte(`[1,-2.5]`), []byte(`"AACAPwAAIMA="`)}, Model: "m", Usage: ninelives.Usage{Input: 4}}
	for encoding, want := range map[string]string{"": `[1,-2.5]`, "float": `[1,-2.5]`, "base64": `"AACAPwAAIMA="`} {
		got, err := EncodeEmbedResponse(resp, encoding)
		whole := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + want + `},{"object":"embedding","index":1,"embedding":` + want +
			`}],"model":"m","usage":{"prompt_tokens":4,"total_tokens":4}}`
		if err != nil || string(got) != whole {
			t.Errorf("%s, %v", got, err)
		}
		back := DecodeEmbedResponse(got, 2)
		if string(back.Vectors[1]) != want || back.Model != "m" || back.Usage.Input != 4 {
			t.Errorf("read back %+v", back)
		}
	}
	resp.Vectors[1] = []byte(`"AADAfw=="`) // not a number
	if got, err := EncodeEmbedResponse(resp, "float"); err == nil {
		t.Errorf("written %s", got)
	}
}
