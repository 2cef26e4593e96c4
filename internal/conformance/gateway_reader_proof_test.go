package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
)

// good are the bytes of a good stream of the simulator in each protocol.
func good(t *testing.T, f face) string {
	t.Helper()
	var body string
	synctest.Test(t, func(t *testing.T) {
		srv := chaos.New()
		t.Cleanup(srv.Close)
		client := srv.Client()
		t.Cleanup(client.CloseIdleConnections)
		path := strings.Replace(f.path, "/any:", "/instant:", 1)
		ask := strings.Replace(fmt.Sprintf(f.body, `"hi"`, f.stream), `"any"`, `"instant"`, 1)
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, chaos.MemoryURL+path, strings.NewReader(ask))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = string(raw)
	})
	return body
}

// The reader that judges the gateway takes a good stream for one, and trips over
// whatever is done to it.
func TestTheReaderTripsOverWhatIsWrong(t *testing.T) {
	failed := map[ninelives.Protocol]string{
		ninelives.OpenAIChat:        "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\",\"code\":\"down\"}}\n\n",
		ninelives.AnthropicMessages: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"no\"}}\n\n",
		ninelives.OpenAIResponses:   "event: error\ndata: {\"type\":\"error\",\"code\":\"down\",\"message\":\"no\"}\n\n",
		ninelives.Gemini:            "data: {\"error\":{\"code\":500,\"message\":\"no\",\"status\":\"INTERNAL\"}}\n\n",
	}
	for _, f := range faces {
		t.Run(string(f.protocol), func(t *testing.T) {
			whole := good(t, f)
			events := strings.SplitAfter(strings.ReplaceAll(whole, "\r\n", "\n"), "\n\n")
			events = events[:len(events)-1]
			if u := readStream(f.protocol, []byte(whole), nil); len(u.wrong) > 0 || u.text != chaos.Answer || u.finish != f.stop || u.output != 60 || !u.ended {
				t.Fatalf("a good stream: %+v", u)
			}
			half := strings.Join(events[:len(events)/2], "")
			for name, c := range map[string]struct {
				body string
				cut  error
			}{
				"ends in the middle":        {half, nil},
				"cut without a word":        {half, io.ErrUnexpectedEOF},
				"fails and ends politely":   {half + failed[f.protocol], nil},
				"ends and fails":            {whole + failed[f.protocol], nil},
				"cut after its end":         {whole, io.ErrUnexpectedEOF},
				"half an event at the end":  {whole + "data: {\"a\"", nil},
				"twice":                     {whole + whole, nil},
				"an event that is no JSON":  {half + "event: x\ndata: {oops\n\n" + strings.Join(events[len(events)/2:], ""), nil},
				"another answer in between": {half + events[0] + strings.Join(events[len(events)/2:], ""), nil},
			} {
				if name == "fails and ends politely" && f.protocol == ninelives.OpenAIResponses {
					continue // there it is an end of its own
				}
				if name == "another answer in between" && f.protocol == ninelives.Gemini {
					c.body = half + strings.Replace(events[0], `"responseId":"`, `"responseId":"other`, 1) + strings.Join(events[len(events)/2:], "")
				}
				if u := readStream(f.protocol, []byte(c.body), c.cut); len(u.wrong) == 0 {
					t.Errorf("%s: nothing is found wrong", name)
				}
			}
			if u := readStream(f.protocol, []byte(half+failed[f.protocol]), io.ErrUnexpectedEOF); len(u.wrong) > 0 || u.failure == "" || u.ended {
				t.Errorf("an error, and cut: %+v", u)
			}
			// A piece that is lost is seen where the protocol says the whole again, and
			// by its text everywhere.
			lost := strings.Join(append(append([]string{}, events[:10]...), events[11:]...), "")
			if u := readStream(f.protocol, []byte(lost), nil); u.text == chaos.Answer {
				t.Error("a lost piece is not missed")
			}
		})
	}
}
