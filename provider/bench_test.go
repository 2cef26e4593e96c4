package provider

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// canned answers every request with the same body.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(c))), Request: r}, nil
}

// One attempt with 500 pieces of text, clocks and numbering included, without
// the network.
func BenchmarkStream(b *testing.B) {
	body := canned(strings.Repeat(text("word "), 500) + finish + usage + done)
	m, err := Open("test-model", Provider("testing"), BaseURL("http://llm.test/v1"), Protocol(ninelives.OpenAIChat), Transport(body))
	if err != nil {
		b.Fatal(err)
	}
	req := prompt(ninelives.Clocks{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ninelives.Collect(m.Stream(context.Background(), req)); err != nil {
			b.Fatal(err)
		}
	}
}
