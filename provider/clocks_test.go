package provider

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

func TestEveryClockRunsOutWhenItSays(t *testing.T) {
	var (
		timeout = ninelives.ClassTimeout
		network = ninelives.ClassNetwork
	)
	every := func(d time.Duration, piece string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				say(w, r, piece, d)
			}
		}
	}
	after := func(first string, then func(http.ResponseWriter, *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			say(w, r, first)
			then(w, r)
		}
	}
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, c := range []struct {
		name    string
		clocks  ninelives.Clocks
		handler http.HandlerFunc
		class   ninelives.Class
		phase   ninelives.Phase
		after   time.Duration
		message string
		text    string
	}{
		{"headers", ninelives.Clocks{Headers: 7 * time.Second}, hang, timeout, ninelives.PhaseHeaders, 7 * time.Second, "no answer within 7s", ""},
		{"headers by default", ninelives.Clocks{}, hang, timeout, ninelives.PhaseHeaders, 30*time.Second + slopeOf(7), "no answer within 30.0014s", ""},
		{"first event, silent", ninelives.Clocks{FirstEvent: 9 * time.Second}, after("", hang), timeout, ninelives.PhaseFirstToken, 9 * time.Second, "nothing of the answer within 9s", ""},
		{"first event, alive", ninelives.Clocks{FirstEvent: 9 * time.Second, Liveness: 2 * time.Second}, every(time.Second, ping), timeout, ninelives.PhaseFirstToken, 9 * time.Second, "nothing of the answer within 9s", ""},
		{"first event, before the headers", ninelives.Clocks{FirstEvent: 9 * time.Second}, hang, timeout, ninelives.PhaseHeaders, 9 * time.Second, "nothing of the answer within 9s", ""},
		{"liveness before the first event", ninelives.Clocks{Liveness: 4 * time.Second}, after(ping, hang), timeout, ninelives.PhaseFirstToken, 4 * time.Second, "the stream was silent for 4s", ""},
		{"liveness", ninelives.Clocks{Liveness: 4 * time.Second}, after(text("Hel"), hang), timeout, ninelives.PhaseStream, 4 * time.Second, "the stream was silent for 4s", "Hel"},
		{"progress", ninelives.Clocks{Progress: 11 * time.Second, Liveness: 4 * time.Second}, after(text("Hel"), every(3*time.Second, ping)), timeout, ninelives.PhaseStream, 11 * time.Second, "the stream was alive but made no progress for 11s", "Hel"},
		{"rate", ninelives.Clocks{MinRate: 2, RateWindow: 10 * time.Second}, every(4*time.Second, text("abcd")), timeout, ninelives.PhaseStream, 10 * time.Second, "the stream was slower than allowed for 10s", "abcdabcdabcd"},
		{"total", ninelives.Clocks{Total: 11500 * time.Millisecond}, every(time.Second, text("a")), timeout, ninelives.PhaseStream, 11500 * time.Millisecond, "the attempt took longer than 11.5s", "aaaaaaaaaaaa"},
		{"total before the headers", ninelives.Clocks{Total: 12 * time.Second}, hang, timeout, ninelives.PhaseHeaders, 12 * time.Second, "the attempt took longer than 12s", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := make(chan time.Duration, 1)
				start := time.Now()
				m := serve(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					c.handler(w, r)
					<-r.Context().Done()
					left <- time.Since(start)
				})
				o := call(t, context.Background(), m, prompt(c.clocks), nil)
				if o.fault == nil {
					t.Fatalf("no fault, text %q", o.text)
				}
				if o.fault.Class != c.class || o.fault.Phase != c.phase || o.took != c.after || o.text != c.text {
					t.Errorf("%s in phase %s after %v, text %q; want %s in phase %s after %v, text %q",
						o.fault.Class, o.fault.Phase, o.took, o.text, c.class, c.phase, c.after, c.text)
				}
				if o.fault.Message != c.message || o.fault.Candidate != "testing/test-model" {
					t.Errorf("%s: %q, want %q", o.fault.Candidate, o.fault.Message, c.message)
				}
				if c.text != "" && (o.fault.Partial == nil || o.fault.Partial.Text() != c.text) {
					t.Errorf("the partial answer is not kept: %+v", o.fault.Partial)
				}
				if seen := <-left; seen != c.after {
					t.Errorf("the upstream was left after %v, want %v", seen, c.after)
				}
			})
		})
	}
	t.Run("dial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			m := serve(t, hang, Dial(func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			}))
			o := call(t, context.Background(), m, prompt(ninelives.Clocks{Dial: 6 * time.Second}), nil)
			if o.fault == nil || o.fault.Class != network || o.fault.Phase != ninelives.PhaseDial || o.took != 6*time.Second ||
				o.fault.Message != "no connection within 6s" || o.fault.Billed != ninelives.BilledNo || o.fault.Scope != ninelives.ScopeHost {
				t.Errorf("%+v after %v", o.fault, o.took)
			}
			<-ended
		})
	})
	t.Run("TLS handshake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan time.Duration, 1)
			start := time.Now()
			m := serve(t, hang, BaseURL("https://llm.test/v1"), Dial(func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go func() {
					_, _ = io.Copy(io.Discard, server) // reads the hello and says nothing
					gone <- time.Since(start)
				}()
				return client, nil
			}))
			o := call(t, context.Background(), m, prompt(ninelives.Clocks{Dial: 6 * time.Second}), nil)
			if o.fault == nil || o.fault.Class != network || o.fault.Phase != ninelives.PhaseDial || o.took != 6*time.Second {
				t.Errorf("%+v after %v", o.fault, o.took)
			}
			if after := <-gone; after != 6*time.Second {
				t.Errorf("the connection was closed after %v", after)
			}
		})
	})
}

// slopeOf is the time that so many tokens of input add to a clock.
func slopeOf(tokens int) time.Duration { return time.Duration(tokens) * 2 * time.Second / 10_000 }

func TestNoClockRunsWhileTheConsumerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r, text("a"), 900*time.Millisecond, text("b"), 900*time.Millisecond, text("c"), finish, usage, done)
		})
		second := ninelives.Clocks{FirstEvent: time.Second, Liveness: time.Second, Progress: time.Second, MinRate: 0.1, RateWindow: time.Second, Total: 2 * time.Second}
		o := call(t, context.Background(), m, prompt(second), func(ev ninelives.Event) {
			if _, ok := ev.(ninelives.TextDelta); ok {
				time.Sleep(10 * time.Minute)
			}
		})
		if o.fault != nil || o.text != "abc" || o.took != 30*time.Minute {
			t.Errorf("text %q after %v, fault %v", o.text, o.took, o.fault)
		}
	})
}

func TestAWaitThatIsSpreadOverManyReadsAddsUp(t *testing.T) {
	// A ping every second leaves the progress clock running, and what the
	// consumer takes between two texts does not count.
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r, text("a"))
			for range 4 {
				say(w, r, time.Second, ping)
			}
			say(w, r, text("b"))
			for r.Context().Err() == nil {
				say(w, r, time.Second, ping)
			}
		})
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{Progress: 5500 * time.Millisecond}), nil)
		if o.fault == nil || o.text != "ab" || o.took != 4*time.Second+5500*time.Millisecond {
			t.Errorf("text %q after %v, fault %v", o.text, o.took, o.fault)
		}
	})
}

func TestARateIsTakenOverItsWindow(t *testing.T) {
	// 20 bytes at once pay for two windows of 10 bytes each at 1 byte/s, but
	// only while they lie within the last window.
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r, text(strings.Repeat("x", 20)), 6*time.Second, text("abcd"), forever)
		})
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{MinRate: 1, RateWindow: 10 * time.Second, Liveness: -1, Progress: -1}), nil)
		if o.fault == nil || o.took != 10*time.Second {
			t.Errorf("after %v, fault %v", o.took, o.fault)
		}
	})
}

func TestClocksThatAreSwitchedOffDoNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r, 24*time.Hour, text("late"), 24*time.Hour, finish, done)
		})
		off := ninelives.Clocks{Dial: -1, Headers: -1, FirstEvent: -1, Liveness: -1, Progress: -1, Total: -1}
		if o := call(t, context.Background(), m, prompt(off), nil); o.text != "late" || o.took != 48*time.Hour {
			t.Errorf("text %q after %v, fault %v", o.text, o.took, o.fault)
		}
	})
}

func TestTheEndOfAnAnswerIsNotWaitedForLong(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []any
		took   time.Duration
		input  int
	}{
		{"usage and [DONE] follow", []any{text("a"), finish, time.Second, usage, done}, time.Second, 7},
		{"nothing follows the finish reason", []any{text("a"), finish, forever}, linger, 0},
		{"pings follow it", []any{text("a"), finish, time.Second, ping, time.Second, ping, time.Second, ping, forever}, linger, 0},
		{"usage, and the socket stays open", []any{text("a"), finish, time.Second, usage, forever}, linger, 7},
		{"[DONE], and the socket stays open", []any{text("a"), finish, usage, done, forever}, afterglow, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := serve(t, func(w http.ResponseWriter, r *http.Request) { say(w, r, c.pieces...) })
				var whole time.Duration
				start := time.Now()
				o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), func(ev ninelives.Event) {
					if _, ok := ev.(ninelives.Done); ok {
						whole = time.Since(start)
					}
				})
				if o.resp == nil || o.resp.Usage.Input != c.input || o.took != c.took {
					t.Errorf("%+v after %v, fault %v; want it after %v", o.resp, o.took, o.fault, c.took)
				}
				if c.took == afterglow && whole != 0 {
					t.Errorf("the answer came after %v, want at once", whole)
				}
			})
		})
	}
}

func TestTheCallersOwnEndComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The caller's deadline and a dial clock of the same length: it was the caller.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		m := serve(t, nil, Dial(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		o := call(t, ctx, m, prompt(ninelives.Clocks{Dial: 6 * time.Second}), nil)
		if o.fault == nil || o.fault.Class != ninelives.ClassCanceled || o.took != 5*time.Second {
			t.Errorf("%v after %v", o.fault, o.took)
		}
	})
}

func TestStopMeansStop(t *testing.T) {
	for name, pieces := range map[string][]any{
		"before the headers":     {forever},
		"before the first event": {ping, forever},
		"within the stream":      {text("a"), forever},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := make(chan time.Time, 1)
				m := serve(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if pieces[0] != any(forever) {
						say(w, r, pieces...)
					}
					<-r.Context().Done()
					left <- time.Now()
				})
				ctx, cancel := context.WithCancel(context.Background())
				var stopped time.Time
				time.AfterFunc(3*time.Second, func() { stopped = time.Now(); cancel() })
				o := call(t, ctx, m, prompt(ninelives.Clocks{}), nil)
				if o.fault == nil || o.fault.Class != ninelives.ClassCanceled || o.took != 3*time.Second {
					t.Errorf("%v after %v", o.fault, o.took)
				}
				if at := <-left; !at.Equal(stopped) {
					t.Errorf("the upstream was left %v late", at.Sub(stopped))
				}
			})
		})
	}
	t.Run("by leaving the loop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			left := make(chan time.Time, 1)
			m := serve(t, func(w http.ResponseWriter, r *http.Request) {
				say(w, r, text("a"), text("b"), forever)
				left <- time.Now()
			})
			start := time.Now()
			for ev := range m.Stream(context.Background(), prompt(ninelives.Clocks{})) {
				if _, ok := ev.(ninelives.TextDelta); ok {
					break
				}
			}
			if at := <-left; !at.Equal(start) || !time.Now().Equal(start) {
				t.Errorf("left after %v", at.Sub(start))
			}
		})
	})
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		m, err := Open("m", Provider("testing"), BaseURL("http://127.0.0.1:1/v1"))
		if err != nil {
			t.Fatal(err)
		}
		if o := call(t, ctx, m, prompt(ninelives.Clocks{}), nil); o.fault == nil || o.fault.Class != ninelives.ClassCanceled || o.fault.Phase != ninelives.PhasePrepare {
			t.Errorf("%v", o.fault)
		}
	})
}

func TestDefaultClocksAreThoseOfTheDefaultPolicy(t *testing.T) {
	p := heal.DefaultPolicy()
	req := ninelives.Prompt(strings.Repeat("word", 30_000))
	for _, local := range []bool{false, true} {
		c := ninelives.Candidate{Local: local, LocalModel: local}
		got := clocksFor(c, req, true)
		want := p.ClocksFor(c, heal.Facts{Input: inputTokens(req)})
		if got.Dial != want.Dial || got.Headers != want.Headers || got.FirstEvent != want.FirstEvent || got.Liveness != want.Liveness || got.Progress != want.Progress || got.Total != want.Total {
			t.Errorf("local %v:\n got %+v\nwant %+v", local, got, want)
		}
	}
	if got := clocksFor(ninelives.Candidate{}, ninelives.Prompt(""), false); got.Total != p.Buffered || got.Headers > 0 || got.FirstEvent > 0 || got.Progress > 0 {
		t.Errorf("an answer that does not stream: %+v", got)
	}
}

// A stream that breaks after a long silence would be as silent the next time:
// that is a timeout, whoever gave up first.
func TestStreamThatBreaksAfterALongSilenceHasTimedOut(t *testing.T) {
	for _, c := range []struct {
		silence time.Duration
		class   ninelives.Class
	}{
		{0, ninelives.ClassStreamBroken},
		{15*time.Second - 1, ninelives.ClassStreamBroken},
		{15 * time.Second, ninelives.ClassTimeout},
		{30 * time.Second, ninelives.ClassTimeout}, // together with our own clock
	} {
		for name, end := range map[string]func(){"politely": func() {}, "with a cut": func() { panic(http.ErrAbortHandler) }} {
			synctest.Test(t, func(t *testing.T) {
				m := serve(t, func(w http.ResponseWriter, r *http.Request) {
					say(w, r, text("Hel"), c.silence)
					end()
				})
				o := call(t, context.Background(), m, prompt(ninelives.Clocks{Liveness: 30 * time.Second}), nil)
				if o.fault == nil || o.fault.Class != c.class || o.fault.Phase != ninelives.PhaseStream || o.took != c.silence {
					t.Errorf("%s of silence, ended %s: %v after %s", c.silence, name, o.fault, o.took)
				}
			})
		}
	}
}
