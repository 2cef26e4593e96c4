package compat

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func openaiClient(srv *httptest.Server) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(srv.URL+"/v1"), option.WithAPIKey("none"),
		option.WithMaxRetries(0), option.WithHTTPClient(srv.Client()))
}

func askChat(client sdk.Client, stream bool) (answer, error) {
	params := sdk.ChatCompletionNewParams{Model: "m", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("Why?")}}
	var message sdk.ChatCompletionMessage
	if stream {
		s := client.Chat.Completions.NewStreaming(context.Background(), params)
		defer s.Close()
		var all sdk.ChatCompletionAccumulator
		for s.Next() {
			all.AddChunk(s.Current())
		}
		if err := s.Err(); err != nil {
			return answer{}, err
		}
		if len(all.Choices) == 0 {
			return answer{}, nil
		}
		message = all.Choices[0].Message
	} else {
		c, err := client.Chat.Completions.New(context.Background(), params)
		if err != nil {
			return answer{}, err
		}
		if len(c.Choices) == 0 {
			return answer{}, nil
		}
		message = c.Choices[0].Message
	}
	a := answer{Text: message.Content}
	for _, c := range message.ToolCalls {
		a.Calls = append(a.Calls, newCall(c.ID, c.Function.Name, c.Function.Arguments))
	}
	return a, nil
}

func askResponses(client sdk.Client, stream bool) (answer, error) {
	params := responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: sdk.String("Why?")}}
	var resp *responses.Response
	if stream {
		s := client.Responses.NewStreaming(context.Background(), params)
		defer s.Close()
		for s.Next() {
			switch ev := s.Current(); ev.Type {
			case "response.completed", "response.incomplete", "response.failed":
				r := ev.Response
				resp = &r
			}
		}
		if err := s.Err(); err != nil {
			return answer{}, err
		}
	} else {
		var err error
		if resp, err = client.Responses.New(context.Background(), params); err != nil {
			return answer{}, err
		}
	}
	if resp == nil {
		return answer{}, nil
	}
	a := answer{Text: resp.OutputText()}
	for _, item := range resp.Output {
		if item.Type == "function_call" {
			c := item.AsFunctionCall()
			a.Calls = append(a.Calls, newCall(c.CallID, c.Name, c.Arguments))
		}
	}
	return a, nil
}

func TestRecordedChatsReadAsTheOfficialSDKReadsThem(t *testing.T) {
	var v verdicts
	for _, ex := range wiretest.Exchanges(t, ninelives.OpenAIChat) {
		if !readable(ex) {
			continue
		}
		t.Run(ex.Name, func(t *testing.T) {
			resp, err := read(ex, openai.NewChatDecoder, openai.DecodeChatResponse)
			if err != nil {
				t.Fatalf("the recording holds a whole answer: %v", err)
			}
			got, err := askChat(openaiClient(upstream(t, ex)), ex.Stream)
			v.compare(t, ex, got, err, resp)
		})
	}
	v.enough(t)
}

func TestRecordedResponsesReadAsTheOfficialSDKReadsThem(t *testing.T) {
	var v verdicts
	for _, ex := range wiretest.Exchanges(t, ninelives.OpenAIResponses) {
		if !readable(ex) {
			continue
		}
		t.Run(ex.Name, func(t *testing.T) {
			resp, err := read(ex, openai.NewResponsesDecoder, openai.DecodeResponsesResponse)
			if err != nil {
				t.Fatalf("the recording holds a whole answer: %v", err)
			}
			got, err := askResponses(openaiClient(upstream(t, ex)), ex.Stream)
			v.compare(t, ex, got, err, resp)
		})
	}
	v.enough(t)
}

func TestChatRequestsPassTheOfficialTypesWhole(t *testing.T) {
	for name, req := range requests() {
		t.Run(name, func(t *testing.T) {
			enc, err := openai.EncodeChatRequest(req, target(ninelives.OpenAIChat, "openai", "gpt-5.4", false))
			if err != nil {
				t.Fatal(err)
			}
			var params sdk.ChatCompletionNewParams
			if err := json.Unmarshal(enc.Body, &params); err != nil {
				t.Fatalf("the SDK cannot read what we write: %v\n%s", err, enc.Body)
			}
			again, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			sameRequest(t, again, enc.Body)
		})
	}
}

func TestResponsesRequestsPassTheOfficialTypesWhole(t *testing.T) {
	for name, req := range requests() {
		t.Run(name, func(t *testing.T) {
			enc, err := openai.EncodeResponsesRequest(req, target(ninelives.OpenAIResponses, "openai", "gpt-5.4", false))
			if err != nil {
				t.Fatal(err)
			}
			var params responses.ResponseNewParams
			if err := json.Unmarshal(enc.Body, &params); err != nil {
				t.Fatalf("the SDK cannot read what we write: %v\n%s", err, enc.Body)
			}
			again, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			sameRequest(t, again, enc.Body)
		})
	}
}

// server answers the SDK with our encoders, after reading its request with our
// decoders.
func openaiServer(t *testing.T, want string) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		chat := r.URL.Path == "/v1/chat/completions"
		decode := openai.DecodeResponsesRequest
		if chat {
			decode = openai.DecodeChatRequest
		}
		in, err := decode(body)
		if err != nil {
			t.Errorf("we cannot read what the SDK writes: %v\n%s", err, body)
			return
		}
		if got := in.Request.Messages[len(in.Request.Messages)-1].Text(); got != want {
			t.Errorf("the question arrives as %q", got)
		}
		if !in.Stream {
			w.Header().Set("Content-Type", "application/json")
			if chat {
				w.Write(openai.EncodeChatResponse(reply()))
			} else {
				w.Write(openai.EncodeResponsesResponse(reply()))
			}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		var enc wire.Encoder = openai.NewResponsesEncoder(wire.EncodeOptions{ID: "answer_1", Model: "sim-1"})
		if chat {
			enc = openai.NewChatEncoder(wire.EncodeOptions{ID: "answer_1", Model: "sim-1", Usage: in.Usage})
		}
		for _, ev := range events(reply()) {
			w.Write(enc.Event(nil, ev))
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestOfficialOpenAIClientReadsOurAnswers(t *testing.T) {
	client := openaiClient(openaiServer(t, "Why?"))
	want := ours(reply())
	for name, ask := range map[string]func(sdk.Client, bool) (answer, error){"chat": askChat, "responses": askResponses} {
		for _, stream := range []bool{false, true} {
			got, err := ask(client, stream)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s (stream %v): %+v, error %v; want %+v", name, stream, got, err, want)
			}
		}
	}
}
