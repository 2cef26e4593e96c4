package provider

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Over random servers: exactly one end, never after the clocks allow, nothing
// half accepted, and afterwards no goroutine (the bubble would not end).
func TestAnyServerComesToOneEndInTime(t *testing.T) {
	clocks := ninelives.Clocks{
		Dial: 2 * time.Second, Headers: 3 * time.Second, FirstEvent: 5 * time.Second,
		Liveness: 2 * time.Second, Progress: 4 * time.Second, Total: 20 * time.Second,
	}
	rapid.Check(t, func(rt *rapid.T) {
		wait := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 500 * time.Millisecond, 1900 * time.Millisecond, 2100 * time.Millisecond, 10 * time.Second})
		type step struct {
			piece string
			wait  time.Duration
		}
		piece := rapid.SampledFrom([]string{"", ping, text("a"), text("bc"), finish, usage, done, "data: {", "\n\n", "garbage\n", `data: {"error":{"message":"overloaded"}}` + "\n\n"})
		var steps []step
		for range rapid.IntRange(0, 12).Draw(rt, "steps") {
			steps = append(steps, step{piece.Draw(rt, "piece"), wait.Draw(rt, "wait")})
		}
		status := rapid.SampledFrom([]int{200, 200, 200, 200, 429, 500}).Draw(rt, "status")
		before := wait.Draw(rt, "before the headers")
		ending := rapid.SampledFrom([]string{"clean", "hang", "cut"}).Draw(rt, "ending")
		leave := rapid.IntRange(-8, 3).Draw(rt, "the consumer leaves after")
		cancel := rapid.SampledFrom([]time.Duration{0, 0, 0, 700 * time.Millisecond, 3 * time.Second}).Draw(rt, "cancelled after")

		synctest.Test(t, func(t *testing.T) {
			m := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				say(w, r, before)
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(status)
				for _, s := range steps {
					say(w, r, s.piece, s.wait)
				}
				switch ending {
				case "hang":
					<-r.Context().Done()
				case "cut":
					if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
						c.Close()
					}
				}
			})
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			if cancel > 0 {
				defer time.AfterFunc(cancel, stop).Stop()
			}
			start := time.Now()
			ends, events, left := 0, 0, false
			var said strings.Builder
			for ev, err := range m.Stream(ctx, prompt(clocks)) {
				if ends > 0 {
					rt.Fatal("the stream goes on after its end")
				}
				switch e := ev.(type) {
				case nil:
					ends++
					if _, ok := err.(*ninelives.Fault); !ok {
						rt.Fatalf("the error is no fault: %v", err)
					}
				case ninelives.TextDelta:
					said.WriteString(e.Text)
					events++
				case ninelives.Done:
					ends++
					if e.Response.Text() != said.String() {
						rt.Fatalf("Done says %q, the deltas said %q", e.Response.Text(), said.String())
					}
					if e.Response.Finish == "" {
						rt.Fatal("half an answer was accepted")
					}
				}
				if leave >= 0 && events > leave {
					left = true
					break
				}
			}
			took := time.Since(start)
			if !left && ends != 1 {
				rt.Fatalf("%d ends", ends)
			}
			if most := clocks.Total + linger + afterglow; took > most {
				rt.Fatalf("took %v, more than %v", took, most)
			}
			if cancel > 0 && took > cancel+afterglow {
				rt.Fatalf("cancelled after %v, ended after %v", cancel, took)
			}
		})
	})
}
