package compat

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func anthropicClient(srv *httptest.Server) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("none"),
		option.WithMaxRetries(0), option.WithHTTPClient(srv.Client()))
}

func askMessages(client sdk.Client, stream bool) (answer, error) {
	params := sdk.MessageNewParams{Model: "m", MaxTokens: 100, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("Why?"))}}
	var message sdk.Message
	if stream {
		s := client.Messages.NewStreaming(context.Background(), params)
		defer s.Close()
		for s.Next() {
			if err := message.Accumulate(s.Current()); err != nil {
				return answer{}, err
			}
		}
		if err := s.Err(); err != nil {
			return answer{}, err
		}
	} else {
		m, err := client.Messages.New(context.Background(), params)
		if err != nil {
			return answer{}, err
		}
		message = *m
	}
	var a answer
	for _, b := range message.Content {
		switch b.Type {
		case "text":
			a.Text += b.Text
		case "tool_use":
			a.Calls = append(a.Calls, newCall(b.ID, b.Name, string(b.Input)))
		}
	}
	return a, nil
}

func TestRecordedMessagesReadAsTheOfficialSDKReadsThem(t *testing.T) {
	var v verdicts
	for _, ex := range wiretest.Exchanges(t, ninelives.AnthropicMessages) {
		if !readable(ex) || ex.Provider == "bedrock" && ex.Stream {
			continue // Bedrock's frames are not server-sent events
		}
		t.Run(ex.Name, func(t *testing.T) {
			resp, err := read(ex, anthropic.NewDecoder, anthropic.DecodeResponse)
			if err != nil {
				t.Fatalf("the recording holds a whole answer: %v", err)
			}
			got, err := askMessages(anthropicClient(upstream(t, ex)), ex.Stream)
			v.compare(t, ex, got, err, resp)
		})
	}
	v.enough(t)
}

func TestMessagesRequestsPassTheOfficialTypesWhole(t *testing.T) {
	for name, req := range requests() {
		t.Run(name, func(t *testing.T) {
			enc, err := anthropic.EncodeRequest(req, target(ninelives.AnthropicMessages, "anthropic", "claude-sonnet-4-6", false))
			if err != nil {
				t.Fatal(err)
			}
			var params sdk.MessageNewParams
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

func TestOfficialAnthropicClientReadsOurAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		in, err := anthropic.DecodeRequest(body)
		if err != nil {
			t.Errorf("we cannot read what the SDK writes: %v\n%s", err, body)
			return
		}
		if got := in.Request.Messages[len(in.Request.Messages)-1].Text(); got != "Why?" {
			t.Errorf("the question arrives as %q", got)
		}
		if !in.Stream {
			w.Header().Set("Content-Type", "application/json")
			out, err := anthropic.EncodeResponse(reply())
			if err != nil {
				t.Error(err)
			}
			w.Write(out)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		enc := anthropic.NewEncoder(wire.EncodeOptions{ID: "answer_1", Model: "sim-1"})
		for _, ev := range events(reply()) {
			w.Write(enc.Event(nil, ev))
		}
	}))
	t.Cleanup(srv.Close)
	want := ours(reply())
	for _, stream := range []bool{false, true} {
		got, err := askMessages(anthropicClient(srv), stream)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("stream %v: %+v, error %v; want %+v", stream, got, err, want)
		}
	}
}
