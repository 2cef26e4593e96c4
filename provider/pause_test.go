package provider

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// An attempt is seen to wait whenever it does, and what came before is with the
// consumer by then.
func TestAnAttemptSaysWhenItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", typeEvents)
			for _, word := range []string{"one", "two"} {
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word+word)
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		})
		var log []string
		began := time.Now()
		ctx := Pausing(t.Context(), func(attempt int, waiting bool) {
			if word := fmt.Sprintf("%d waits %t", attempt, waiting); len(log) == 0 || log[len(log)-1] != word {
				log = append(log, word)
			}
		})
		req := &ninelives.Request{Messages: []ninelives.Message{{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.Text{Text: "x"}}}},
			Attempt: &ninelives.Attempt{Number: 3}}
		for ev, err := range m.Stream(ctx, req) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := ev.(ninelives.TextDelta); ok {
				log = append(log, fmt.Sprintf("%s after %v", d.Text, time.Since(began)))
			}
		}
		want := []string{"3 waits true", "3 waits false", "one after 0s", "oneone after 0s",
			"3 waits true", "3 waits false", "two after 1s", "twotwo after 1s",
			"3 waits true", "3 waits false", "3 waits true"}
		if !slices.Equal(log, want) {
			t.Errorf("got  %q\nwant %q", log, want)
		}
	})
}
