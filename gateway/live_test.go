package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func graceOf(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

var (
	liveAsked  = [32]byte{1}
	liveStream = http.Header{"Content-Type": {"text/event-stream"}}
)

// beginLive begins a call of client a that is named "call".
func beginLive(t *testing.T, v *live, key string) *liveCall {
	t.Helper()
	l, joined, err := v.begin(t.Context(), liveKey{"a", key}, liveAsked, false)
	if err != nil || joined {
		t.Fatalf("the call was not begun: joined %t, %v", joined, err)
	}
	l.named("call")
	return l
}

func sayLive(t *testing.T, k *liveSink, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if _, err := k.Write([]byte("data: " + s + "\n\n")); err != nil {
			t.Errorf("%q was not written: %v", s, err)
		}
	}
}

func TestARepeatedKeyJoinsTheRunningCallAndReplaysTheEndedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(30 * time.Second))
		l := beginLive(t, v, "key")
		k := l.sink()
		k.Start(200, liveStream)
		sayLive(t, k, "one")

		var clients [3]liveClient
		for i := range clients[:2] {
			m := l
			if i > 0 {
				var joined bool
				var err error
				if m, joined, err = v.begin(t.Context(), liveKey{"a", "key"}, liveAsked, false); !joined || err != nil || m != l {
					t.Fatalf("the running call was not joined: %t, %v", joined, err)
				}
			}
			go func() {
				if err := m.follow(t.Context(), &clients[i], http.Header{}); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		sayLive(t, k, "two")
		k.end(nil)
		synctest.Wait()
		m, joined, err := v.begin(t.Context(), liveKey{"a", "key"}, liveAsked, false)
		if !joined || err != nil {
			t.Fatalf("the ended call was not replayed: %t, %v", joined, err)
		}
		if err := m.follow(t.Context(), &clients[2], http.Header{}); err != nil {
			t.Error(err)
		}
		const want = "data: one\nid: call-1\n\ndata: two\nid: call-2\n\n"
		for i := range clients {
			if got := clients[i].String(); got != want || clients[i].status != 200 {
				t.Errorf("client %d got %d %q", i, clients[i].status, got)
			}
		}
	})
}

func TestAKeyIsTheClientsOwnAndForOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		l := beginLive(t, v, "key")
		defer l.end(nil)
		if _, _, err := v.begin(t.Context(), liveKey{"a", "key"}, [32]byte{2}, false); !errors.Is(err, errKeyReused) {
			t.Errorf("another request under the same key: %v", err)
		}
		m, joined, err := v.begin(t.Context(), liveKey{"b", "key"}, liveAsked, false)
		if err != nil || joined {
			t.Errorf("another client joined: %t, %v", joined, err)
		}
		m.end(nil)
		for _, c := range [][2]string{{"b", "call"}, {"", "call"}, {"a", "other"}} {
			if err := v.resume(t.Context(), &liveClient{}, http.Header{}, c[0], c[1]); !errors.Is(err, errNoCall) {
				t.Errorf("client %q takes up %q: %v", c[0], c[1], err)
			}
		}
	})
}

func TestCallsWithoutAKeyAreNeverJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		l, m := beginLive(t, v, ""), beginLive(t, v, "")
		if l == m {
			t.Error("two calls without a key are one")
		}
		l.end(nil)
		m.end(nil)
	})
}

func TestACallEndsWhenNobodyComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(30 * time.Second))
		began := time.Now()
		l := beginLive(t, v, "key")
		r, _ := l.attach(0)
		time.Sleep(time.Minute) // attended calls have no grace
		l.detach(r)
		time.Sleep(29 * time.Second)
		r, _ = l.attach(0) // in time
		time.Sleep(time.Minute)
		s, _ := l.attach(0)
		l.detach(r)
		time.Sleep(time.Minute) // the other one is still there
		if l.context().Err() != nil {
			t.Fatalf("the call ended after %v: %v", time.Since(began), context.Cause(l.context()))
		}
		l.detach(s)
		left := time.Now()
		<-l.context().Done()
		if took := time.Since(left); took != 30*time.Second || context.Cause(l.context()) != errAbandoned {
			t.Errorf("the call ended %v after its last client, by %v", took, context.Cause(l.context()))
		}
		l.end(context.Cause(l.context()))
	})
}

func TestACallThatNoClientEverReachesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := beginLive(t, newLive(graceOf(30*time.Second)), "key")
		began := time.Now()
		<-l.context().Done()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it ended after %v", took)
		}
		l.end(nil)
	})
}

func TestADetachedCallNeedsNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		ctx, leave := context.WithCancel(t.Context())
		l, _, _ := v.begin(ctx, liveKey{client: "a"}, liveAsked, true)
		leave()
		l.named("call")
		r, _ := l.attach(0)
		l.detach(r)
		time.Sleep(time.Hour)
		if l.context().Err() != nil {
			t.Error("it ended without its client")
		}
		stopped := errors.New("stopped")
		if !l.stop(stopped) || context.Cause(l.context()) != stopped {
			t.Errorf("it was not stopped: %v", context.Cause(l.context()))
		}
		l.end(stopped)
		if l.stop(stopped) {
			t.Error("an ended call was stopped")
		}
	})
}

func TestAFailedCallCanBeReadToItsEndButNotReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("cut")
		for _, c := range []struct {
			status int
			err    error
		}{{200, broken}, {503, nil}} {
			v := newLive(graceOf(time.Second))
			l := beginLive(t, v, "key")
			k := l.sink()
			k.Start(c.status, liveStream)
			sayLive(t, k, "one", "two")
			k.end(c.err)
			var rest liveClient
			if err := v.resume(t.Context(), &rest, http.Header{"Last-Event-Id": {"call-1"}}, "a", "call"); err != c.err || rest.String() != "data: two\nid: call-2\n\n" {
				t.Errorf("the rest is %q, %v", rest.String(), err)
			}
			m, joined, err := v.begin(t.Context(), liveKey{"a", "key"}, liveAsked, false)
			if joined || err != nil {
				t.Errorf("%d %v was replayed: %v", c.status, c.err, err)
			}
			m.end(nil)
		}
	})
}

func TestAnAnswerThatWasStoppedIsNeverWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := errors.New("stopped")
		for name, breakOff := range map[string]func(*liveCall, *liveSink) error{
			"stopped": func(l *liveCall, _ *liveSink) error { l.stop(stopped); return stopped },
			"left alone": func(l *liveCall, _ *liveSink) error {
				<-l.context().Done()
				return errAbandoned
			},
			"too long": func(l *liveCall, k *liveSink) error {
				l.out.limit = 0
				_, _ = k.Write([]byte("data: two\n\n"))
				return errOutputFull
			},
		} {
			v := newLive(graceOf(time.Second))
			l := beginLive(t, v, "key")
			k := l.sink()
			k.Start(200, liveStream)
			sayLive(t, k, "one")
			want := breakOff(l, k)
			k.end(nil) // as who wrote it did not notice
			if err := v.resume(t.Context(), &liveClient{}, http.Header{}, "a", "call"); !errors.Is(err, want) {
				t.Errorf("%s: it ends with %v, want %v", name, err, want)
			}
			m, joined, err := v.begin(t.Context(), liveKey{"a", "key"}, liveAsked, false)
			if joined || err != nil {
				t.Errorf("%s: its half is replayed, %v", name, err)
			}
			m.end(nil)
		}
	})
}

func TestAFailureWithAProperEndIsNotReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		l := beginLive(t, v, "key")
		k := l.sink()
		k.Start(200, liveStream)
		sayLive(t, k, "response.failed")
		l.failed()
		k.end(nil)
		if err := v.resume(t.Context(), &liveClient{}, http.Header{}, "a", "call"); err != nil {
			t.Errorf("it does not end properly: %v", err)
		}
		m, joined, err := v.begin(t.Context(), liveKey{"a", "key"}, liveAsked, false)
		if joined || err != nil {
			t.Errorf("it is replayed, %v", err)
		}
		m.end(nil)
	})
}

func TestAnEndedAnswerIsKeptForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		l := beginLive(t, v, "key")
		k := l.sink()
		k.Start(200, liveStream)
		sayLive(t, k, "one")
		k.end(nil)
		time.Sleep(endedFor - 1)
		if err := v.resume(t.Context(), &liveClient{}, http.Header{}, "a", "call"); err != nil {
			t.Errorf("just before: %v", err)
		}
		if v.pool.used.Load() == 0 {
			t.Error("what is kept does not count")
		}
		time.Sleep(1)
		synctest.Wait()
		if n := v.pool.used.Load(); n != 0 || len(v.byID)+len(v.byKey) != 0 {
			t.Errorf("%d bytes and %d calls are kept longer", n, len(v.byID)+len(v.byKey))
		}
	})
}

func TestEndedAnswersAreBoundedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		for i := range 20 {
			l, _, err := v.begin(t.Context(), liveKey{"a", string(rune('a' + i))}, liveAsked, false)
			if err != nil {
				t.Fatal(err)
			}
			l.named(string(rune('a' + i)))
			k := l.sink()
			k.Start(200, http.Header{})
			if _, err := k.Write(make([]byte, 7<<20)); err != nil {
				t.Fatal(err)
			}
			k.end(nil)
			if used := v.pool.used.Load(); used > endedBytes {
				t.Fatalf("%d bytes are kept of ended answers", used)
			}
		}
		if len(v.byKey) != 9 || v.byKey[liveKey{"a", "t"}] == nil {
			t.Errorf("%d answers of 7 MiB are kept of 64 MiB", len(v.byKey))
		}
	})
}

func TestTheJournalReplaysWhatIsNotInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		asks := 0
		v.recall = func(_ context.Context, key liveKey) (recalled, bool) {
			asks++
			return recalled{id: "old", hash: liveAsked, status: 200, header: liveStream, body: []byte("data: one\n\ndata: two\n\n")}, key == liveKey{"a", "key"}
		}
		if _, _, err := v.begin(t.Context(), liveKey{"a", "key"}, [32]byte{2}, false); !errors.Is(err, errKeyReused) {
			t.Errorf("another request under the same key: %v", err)
		}
		for range 2 {
			l, joined, err := v.begin(t.Context(), liveKey{"a", "key"}, liveAsked, false)
			if err != nil || !joined {
				t.Fatalf("it was not replayed: %v", err)
			}
			var got liveClient
			if err := l.follow(t.Context(), &got, http.Header{"Last-Event-Id": {"old-1"}}); err != nil || got.String() != "data: two\nid: old-2\n\n" {
				t.Errorf("got %q, %v", got.String(), err)
			}
		}
		if asks != 2 {
			t.Errorf("the journal was asked %d times, want once for each request until it was in memory", asks)
		}
		l, joined, err := v.begin(t.Context(), liveKey{"b", "key"}, liveAsked, false)
		if joined || err != nil {
			t.Errorf("what the journal does not know: joined %t, %v", joined, err)
		}
		l.end(nil)
	})
}

func TestALastEventIDThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLive(graceOf(time.Second))
		l := beginLive(t, v, "key")
		l.end(nil)
		for _, id := range []string{"call-1", "call--1", "call-x", "call", "other-0", "-", "call-99999999999999999999"} {
			if err := v.resume(t.Context(), &liveClient{}, http.Header{"Last-Event-Id": {id}}, "a", "call"); !errors.Is(err, errPosition) {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// Clients that come and go while the call ends or is stopped: each that attached
// sees one end, and nothing is left over.
func TestComingGoingAndEndingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 50 {
			v := newLive(graceOf(time.Millisecond))
			l := beginLive(t, v, "key")
			var all sync.WaitGroup
			all.Go(func() {
				k := l.sink()
				k.Start(200, liveStream)
				for range 100 {
					if _, err := k.Write([]byte("data: x\n\n")); err != nil {
						k.end(err)
						return
					}
					time.Sleep(time.Millisecond / 4)
				}
				k.end(nil)
			})
			for c := range 4 {
				all.Go(func() {
					ctx, leave := context.WithTimeout(t.Context(), time.Duration(1+c*i)*time.Millisecond)
					defer leave()
					var got liveClient
					err := l.follow(ctx, &got, http.Header{})
					if n := strings.Count(got.String(), "data: x"); err == nil && n != 100 {
						t.Errorf("a whole answer has %d of 100 events", n)
					}
				})
			}
			if i%3 == 0 {
				all.Go(func() { l.stop(errors.New("stopped")) })
			}
			all.Wait()
			if l.clients != 0 || l.alone != nil || !l.over || len(l.out.readers) != 0 {
				t.Fatalf("left over: %d clients, %d readers, over %t", l.clients, len(l.out.readers), l.over)
			}
		}
	})
}

func TestAClientTakesUpItsStreamOverHTTP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	v := newLive(graceOf(time.Minute))
	l := beginLive(t, v, "key")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := v.resume(r.Context(), newConnection(w, r, time.Minute), r.Header, "a", "call"); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	defer srv.Close()
	client := srv.Client()
	defer client.CloseIdleConnections()
	get := func(last string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		req.Header.Set("Last-Event-ID", last)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}

	k := l.sink()
	k.Start(200, liveStream)
	sayLive(t, k, "one", "two")
	res := get("")
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); line != "data: one\n" {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	_ = res.Body.Close() // the connection is lost in mid-stream
	sayLive(t, k, "three")

	res = get("call-1")
	done := make(chan string)
	go func() {
		rest, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		done <- string(rest)
	}()
	sayLive(t, k, "four")
	k.end(nil)
	if rest := <-done; rest != "data: two\nid: call-2\n\ndata: three\nid: call-3\n\ndata: four\nid: call-4\n\n" || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("the rest is %q", rest)
	}
	_ = res.Body.Close()
	v.mu.Lock()
	v.sweep.Stop()
	v.mu.Unlock()
}
